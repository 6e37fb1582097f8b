"""Open the capture that a command names, for as much of it as the command needs, and warn of damage.

A pipe is read once: what needs it twice keeps its bytes. Knows no command.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from latpcap import spill
from latpcap.cli import live
from latpcap.cli.options import span, warn
from latpcap.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from latpcap.tables import Needed
    from latpcap.views.answer_view import AnswerView
    from latpcap.views.capture import Capture, Stream
    from latpcap.views.projection import Projection


def open_answer_view(file: str, *, keylog: str | None = None) -> AnswerView | Capture:
    """Open a capture for its answer or findings alone; a pipe cannot be read again, so all of it is kept."""
    from latpcap.archive.results import is_results
    from latpcap.views import answer_view

    if file == "-" or live.is_pipe(file) or is_results(file) or span():
        return read(file, keylog=keylog)
    spill.configure_malloc()
    capture = answer_view.read(file, keylog=keylog, progress=True)
    warn(capture)
    return capture


def read(file: str, display_filter: str | None = None, *, keylog: str | None = None, reread: bool = False) -> Capture:
    """Open a capture and warn of damage; `reread`: its bytes are wanted twice, so that standard input is kept."""
    from latpcap.views.capture import read as read_capture

    if display_filter is not None:
        from latpcap.reading.filters.grammar import parse

        parse(display_filter)  # a mistake is reported before a long file is read
    limited = span()
    capture = read_capture(
        source(file, reread=reread or display_filter is not None), **limited, keylog=keylog, progress=True
    )
    warn(capture)
    return capture if display_filter is None else capture.filter(display_filter)


def open_projection(file: str, needed: Needed, *, keylog: str | None = None, reread: bool = False) -> Projection:
    """Open a capture for what is needed of its tables and warn of damage; `reread` as in `read`."""
    from latpcap.views import projection

    spill.configure_malloc()
    capture = projection.read(source(file, reread=reread), needed, keylog=keylog, progress=True)
    warn(capture)
    return capture


def reopen(file: str, *, keylog: str | None = None, warned: bool = False) -> Callable[[Needed], Projection] | None:
    """Open a capture for what is needed of its tables, each time that it is called, and warn of damage once, if it
    was not `warned` of; None where that cannot be done.
    """
    from latpcap.views import projection

    if file == "-" or "://" in file or live.is_pipe(file) or span():
        return None
    opened_source = source(file)
    spill.configure_malloc()

    def opened(needed: Needed) -> Projection:
        nonlocal warned
        capture = projection.read(opened_source, needed, keylog=keylog, progress=True)
        if not warned:
            warn(capture)
        warned = True
        return capture

    return opened


def open_stream(file: str, number: int, *, keylog: str | None = None, reread: bool = False) -> Stream:
    """Open one stream of a capture alone and warn of damage; `reread` as in `read`."""
    from latpcap.views.capture import read_stream

    if span():
        return read(file, keylog=keylog, reread=reread).stream(number)
    spill.configure_malloc()
    opened = read_stream(source(file, reread=reread), number, keylog=keylog, progress=True)
    warn(opened.capture)
    return opened


def source(file: str, *, reread: bool = False) -> Any:
    """Return what `read` is given for this word: a pipe ends with Ctrl-C, and is kept where its bytes are wanted
    twice.
    """
    from latpcap.archive.results import is_results

    if file != "-" and is_results(file):
        reads = "why, compare, latency, plot latency and plot waterfall read them, in Python latpcap.open_results"
        raise CaptureError(file, f"holds the results of a batch, expected a capture file; {reads}")
    piped = live.pipe(file)
    if file != "-" or not reread:
        return file if piped is None else piped
    blocks = iter(lambda: sys.stdin.buffer.read(1 << 20) if piped is None else piped.read(1 << 20), b"")
    copy = io.BytesIO(b"".join(blocks))
    copy.name = "<stdin>"
    return copy
