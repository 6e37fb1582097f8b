"""The exceptions that latpcap raises. Catching `LatpcapError` catches all of them:
    LatpcapError
        CaptureError    a capture could not be read at all
        FilterError     a display filter makes no sense
        NoSuchRowError  a number names no row, frame or page; also an IndexError
        OutputError     a result could not be written

A capture that is damaged part-way raises nothing: its rows up to the damage are returned, and `Capture.issues` has a
row about the damage.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence

from latpcap.format import escaped


class LatpcapError(Exception):
    """Base of latpcap's errors. `str()` escapes control characters, which names in a message may contain."""

    def __str__(self) -> str:
        return escaped(super().__str__())


class CaptureError(LatpcapError):
    """A capture cannot be read.

    `file` is the name as given, `offset` the byte (after decompression) where reading stopped (None: not known),
    `layer` what was being read ("file", "pcap", "pcapng", "gzip"), `reason` a lower-case phrase.
    """

    def __init__(self, file: str, reason: str, *, offset: int | None = None, layer: str = "file"):
        self.file = file
        self.reason = reason
        self.offset = offset
        self.layer = layer
        where = file if offset is None else f"{file}: byte {offset:,}"
        super().__init__(f"{where}: {reason}")


_MAX_SHOWN_LETTERS = 500
"""Upper bound on the letters of a filter, and of a reason, that a message shows."""


class FilterError(LatpcapError):
    """A display filter is not valid.

    `expression` is the filter, `offset` the character at fault (from 0; the filter's length where it ends too early),
    `length` how many characters, `reason` a lower-case phrase, `near` similar names that exist.
    """

    def __init__(self, expression: str, offset: int, reason: str, *, length: int = 1, near: Sequence[str] = ()):
        reason = escaped(reason)  # it may quote a string of several lines
        self.expression = expression
        self.offset = offset
        self.length = length
        self.reason = reason
        self.near = list(near)
        hint = f"; near: {', '.join(near)}" if near else ""
        # of a long filter only the surroundings of the mistake are shown
        begin = max(0, min(offset, len(expression)) - _MAX_SHOWN_LETTERS // 3)
        begin = begin if len(expression) > _MAX_SHOWN_LETTERS else 0
        part = expression[begin : begin + _MAX_SHOWN_LETTERS]
        shown = "".join(letter if letter.isprintable() else " " for letter in part)
        mark = " " * (offset - begin) + "^" + "~" * (min(length, begin + len(part) - offset) - 1)
        why = reason if len(reason) <= _MAX_SHOWN_LETTERS else f"{reason[:_MAX_SHOWN_LETTERS]}..."
        super().__init__(f"filter: {why}{hint}\n    {shown}\n    {mark}")

    def __str__(self) -> str:
        return "\n".join(escaped(line) for line in Exception.__str__(self).split("\n"))


class NoSuchRowError(LatpcapError, IndexError):
    """A number given by the caller names no stream, exchange, frame, node or page. Callers may catch IndexError."""


class OutputError(LatpcapError):
    """A result cannot be written."""


class Interrupted(KeyboardInterrupt):
    """Work was stopped by Ctrl-C; what was finished is kept. Not a LatpcapError, because Ctrl-C is not an error."""


def show_bug(problem: BaseException) -> None:
    """Print the traceback of a bug on standard error, if LATPCAP_TRACEBACK is set."""
    if os.environ.get("LATPCAP_TRACEBACK"):
        traceback.print_exception(problem)


_OUT_OF_MEMORY = ("failed to map segment", "annot allocate memory", "can't start new thread",
                  "Failed to launch worker thread", "bad_alloc", "Resource temporarily unavailable")  # fmt: skip


def is_out_of_memory(problem: BaseException) -> bool:
    """Return whether an exception is due to a lack of memory. C libraries raise other types than MemoryError."""
    text = str(problem)
    return isinstance(problem, MemoryError) or any(phrase in text for phrase in _OUT_OF_MEMORY)
