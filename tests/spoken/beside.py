"""What a trace of system calls and a server's log add to an answer."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable

import pandas as pd
from test_beside import CAPTURE, LOG, TRACE

import latpcap as lp

THINK = pathlib.Path(__file__).parents[1] / "cases" / "think" / "capture.pcap"


def altered(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert re.search(old, text, re.MULTILINE), old
        text = re.sub(old, new, text, flags=re.MULTILINE)
    return text


def options_set() -> str:
    """The trace with TCP_NODELAY set on its first connection, and set and taken off on its second."""
    lines, accepted = [], 0
    for line in TRACE.read_text().splitlines():
        lines.append(line)
        found = re.match(r"(\d+ +\S+) accept4.* = (\d+)$", line)
        if found:
            accepted += 1
            values = {1: (1,), 2: (1, 0)}.get(accepted, ())
            lines += [f"{found[1]} setsockopt({found[2]}, SOL_TCP, TCP_NODELAY, [{v}], 4) = 0" for v in values]
    return "\n".join(lines)


def written(every: int, ahead: int, path: pathlib.Path = CAPTURE) -> str:
    """A trace of a program that wrote every so manyth of its segments when it left, the others so many ms before."""
    capture = lp.read(path)
    began = {row.stream: (row.start, row.client, row.client_port) for row in capture.streams.itertuples()}
    calls = [
        (
            start - pd.Timedelta(500, "ms"),
            f'accept4(6, {{sin_port=htons({port}), sin_addr=inet_addr("{client}")}}, [16], 0) = {10 + stream}',
        )
        for stream, (start, client, port) in began.items()
    ]
    sent = capture.events[~capture.events["from_client"] & (capture.events["len"] > 0)]
    for number, row in enumerate(sent.itertuples()):
        early = pd.Timedelta(0 if every and number // 2 % every == 0 else ahead, "ms")
        calls.append((row.time - early, f'write({10 + row.stream}, ""..., {row.len}) = {row.len}'))
    return "\n".join(f"{when:%H:%M:%S.%f} {call}" for when, call in sorted(calls))


BESIDE: dict[str, tuple[Callable[[], str], Callable[[], str], str]] = {
    "the program's own time in the log": (
        TRACE.read_text, lambda: altered(LOG.read_text(), (r"rt=[\d.]+", "rt=0.043")),
        "of the time passed in the server by its own clock: the program, or what it asks",
    ),
    "a part of the time in the log": (
        options_set, lambda: altered(LOG.read_text(), (r"rt=[\d.]+", "20000")),
        "TCP_NODELAY never set (3), on (1), set on and off (1)",
    ),
    "another log and trace": (
        lambda: altered(TRACE.read_text(), (r"htons\(4", "htons(2")),
        lambda: altered(LOG.read_text(), ("GET / ", "GET /other ")),
        "none of the trace's connections is one of this capture",
    ),
    "all written late": (
        lambda: written(1, 0), LOG.read_text, "; but the trace contradicts: the program wrote the late bytes late.",
    ),
    "an answer that lay in the kernel": (
        lambda: written(0, 59, THINK), LOG.read_text,
        "; but the trace contradicts: the kernel held what the program had written.",
    ),
    "half of it written late": (lambda: written(2, 43), LOG.read_text, "the trace says so of a part"),
}  # fmt: skip
"""What a trace and a log say beside the capture of nginx, and a part of what is then said."""


def beside(name: str, folder: pathlib.Path) -> lp.Why:
    """The answer with this trace and this log."""
    files = {"strace": folder / "trace", "access_log": folder / "log"}
    for file, make in zip(files.values(), BESIDE[name], strict=False):
        file.write_text(make())  # type: ignore[operator]
    return lp.read(THINK if "lay" in name else CAPTURE).why(**files)
