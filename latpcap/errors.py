"""Which errors can latpcap raise, and what do they say?

Reads nothing. `LatpcapError` is the root; a caller who catches it catches all of ours:

    LatpcapError
        CaptureError    a capture could not be read at all
        FilterError     a display filter makes no sense
        OutputError     a result could not be written

A capture that is damaged part-way raises nothing: its rows up to the damage are given, and the damage is
a row of `Capture.issues`.
"""

from __future__ import annotations

from collections.abc import Sequence

from latpcap.format import escaped


class LatpcapError(Exception):
    """Did latpcap give up with a reason? Names in its sentence are escaped where they would disturb a terminal."""

    def __str__(self) -> str:
        return escaped(super().__str__())


class CaptureError(LatpcapError):
    """Why could this capture not be read?

    `file` is the name as given, `offset` the byte (after decompression) where reading stopped or None,
    `layer` what was being read ("file", "pcap", "pcapng", "gzip"), `reason` a lower-case phrase.
    """

    def __init__(self, file: str, reason: str, *, offset: int | None = None, layer: str = "file"):
        self.file = file
        self.reason = reason
        self.offset = offset
        self.layer = layer
        where = file if offset is None else f"{file}: byte {offset:,}"
        super().__init__(f"{where}: {reason}")


_MOST_SHOWN = 500
"""Characters of a filter, and of a reason, that an error shows."""


class FilterError(LatpcapError):
    """Where is the mistake in this display filter?

    `expression` is the filter, `offset` the character at fault (from 0; its length where the end came too early),
    `length` how many characters, `reason` a lower-case phrase, `near` names that may have been meant.
    """

    def __init__(self, expression: str, offset: int, reason: str, *, length: int = 1, near: Sequence[str] = ()):
        reason = escaped(reason)  # it may quote a string of several lines
        self.expression = expression
        self.offset = offset
        self.length = length
        self.reason = reason
        self.near = list(near)
        hint = f"; near: {', '.join(near)}" if near else ""
        # of a filter that no line holds, what is around the mistake
        begin = 0 if len(expression) <= _MOST_SHOWN else max(0, min(offset, len(expression)) - _MOST_SHOWN // 3)
        part = expression[begin : begin + _MOST_SHOWN]
        shown = "".join(letter if letter.isprintable() else " " for letter in part)
        mark = " " * (offset - begin) + "^" + "~" * (min(length, begin + len(part) - offset) - 1)
        why = reason if len(reason) <= _MOST_SHOWN else f"{reason[:_MOST_SHOWN]}..."
        super().__init__(f"filter: {why}{hint}\n    {shown}\n    {mark}")

    def __str__(self) -> str:
        return "\n".join(escaped(line) for line in Exception.__str__(self).split("\n"))


class OutputError(LatpcapError):
    """Why could this result not be written?"""


class Interrupted(KeyboardInterrupt):
    """How far was the work when somebody stopped it? What is done is kept. (No LatpcapError: Ctrl-C is no error.)"""


_LACKS = ("failed to map segment", "annot allocate memory", "can't start new thread", "Failed to launch worker thread",
          "bad_alloc", "Resource temporarily unavailable")  # fmt: skip


def lacks_memory(problem: BaseException) -> bool:
    """Does this exception come of a lack of memory? Libraries in C raise others than MemoryError, too."""
    text = str(problem)
    return isinstance(problem, MemoryError) or any(sign in text for sign in _LACKS)
