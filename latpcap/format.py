"""Formats counts, durations, shares, names and errors as short texts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence


def count(number: int, word: str) -> str:
    """Return a number with its noun: "1 frame", "4,966 frames"."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def endpoint(address: str, port: int) -> str:
    """Return address and port as Wireshark and URLs write them: IPv6 addresses in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def ms(value: float) -> str:
    """Return milliseconds with as many digits as are significant: 1,204, 43.8, 0.26, 0.004."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.3f}"


def us(value: float) -> str:
    """Return microseconds as "2 us" (at least 1), or from 1,000 on as "1.4 ms"."""
    if value < 1000:
        return f"{max(value, 1):.0f} us"
    return f"{value / 1000:.1f} ms" if value < 99_950 else f"{ms(value / 1000)} ms"


def percent(share: float) -> str:
    """Return a share of 0 to 1 in percent: "96 %", "0.4 %", "under 0.1 %"."""
    if 0 < share < 0.0005:
        return "under 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.095 or share == 0 else f"{100 * share:.1f} %"


def printable(text: str) -> str:
    """Return the text with unprintable characters, which may disturb a terminal, replaced by "�"."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def requested(method: str | None, target: str | None) -> str:
    """Return a request as method and target; SQL, whose text begins with the method, as the text alone."""
    parts = [part for part in (method, target) if part]
    doubled = len(parts) == 2 and parts[1].upper().startswith(parts[0].upper() + " ")
    return parts[1] if doubled else " ".join(parts)


def escaped(text: str) -> str:
    """Return a name in one line, with control characters and undecodable bytes as escapes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def phrase(problem: BaseException) -> str:
    """Return the message of an error as one lower-case phrase. Abbreviations and class names keep their capitals."""
    text = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    if isinstance(problem, OSError) and problem.errno and "Detail: [errno" in text:  # pyarrow's own format
        text = os.strerror(problem.errno)
    text = " ".join(text.split()) or type(problem).__name__
    return text[:1].lower() + text[1:] if text.partition(" ")[0][1:].islower() else text


def _escape(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:  # a surrogate escape: a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()


def shortest(paths: Sequence[str]) -> list[str]:
    """Short distinct names of paths: the last part, and as many folders before it as distinguish it from the others.
    Equal paths have equal names.
    """
    parts = {path: path.replace("\\", "/").rstrip("/").split("/") for path in paths}
    names = {path: folders[-1] for path, folders in parts.items()}
    depth = 1
    while True:
        counts = Counter(names.values())
        alike = [path for path, name in names.items() if counts[name] > 1 and len(parts[path]) > depth]
        if not alike:
            return [names[path] for path in paths]
        depth += 1
        for path in alike:
            names[path] = "/".join(parts[path][-depth:])
