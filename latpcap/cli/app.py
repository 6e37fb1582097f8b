"""The `latpcap` command: the same words as in Python, in the same order.

Exit codes are in exit_codes.py. Answers go to standard output; warnings and errors, one line each, to standard error.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

from latpcap import bars, spill
from latpcap.cli import (
    answers,
    archive,
    exit_codes,
    flow,
    joining,
    live,
    mcp,
    packets,
    plots,
    report,
    statistics,
    tables,
)
from latpcap.cli.options import SAMPLE, Listed, span, warn
from latpcap.errors import CaptureError
from latpcap.reading import sources
from latpcap.reading.unpack import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from latpcap.tables import Needed
    from latpcap.views.capture import Capture, Stream
    from latpcap.views.partial_answer import AnswerView
    from latpcap.views.partial_report import Projection

_SUFFIXES = (".pcap", ".pcapng", ".cap", *(f".{suffix}" for suffix in SUFFIXES))
"""A word that ends so is meant as a file, also where there is none of that name."""

app = typer.Typer(
    cls=Listed,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Tells from a packet capture why each request was slow, who waited for whom, and which frames show it.",
)


def main() -> None:
    """Runs the command; however it ends is for exit_codes.py to say."""
    exit_codes.run(_work)


def _work() -> int | None:
    program: Any = typer.main.get_command(app)  # it is made once: `app(words)` would make it again
    words = [str(sources.SAMPLE) if word == SAMPLE else word for word in sys.argv[1:]]
    with bars.command():
        code: int | None = program(_completed(words, program.commands), standalone_mode=False)
    return code


def _completed(words: list[str], known: Container[str]) -> list[str]:
    """`latpcap FILE` means `latpcap why FILE`, also with options before or behind the file."""
    if not words or words[0] in known:
        return words
    options = words[0].startswith("-") and words[0] != "-"
    files = any(word == "-" or "://" in word or os.path.lexists(word) for word in words[: None if options else 1])
    return ["why", *words] if files or Path(words[0]).suffix.lower() in _SUFFIXES else words


def _answer_view(file: str, *, keylog: str | None = None) -> AnswerView | Capture:
    """Opens a capture for its answer or findings alone; a pipe cannot be read again, so all of it is kept."""
    from latpcap.archive.results import is_results
    from latpcap.views import partial_answer

    if file == "-" or live.is_pipe(file) or is_results(file) or span():
        return _read(file, keylog=keylog)
    spill.trim()
    capture = partial_answer.read(file, keylog=keylog, progress=True)
    warn(capture)
    return capture


def _read(file: str, display_filter: str | None = None, *, keylog: str | None = None, reread: bool = False) -> Capture:
    """Opens a capture and warns of damage; `reread`: its bytes are wanted twice, so that standard input is kept."""
    from latpcap.views.capture import read

    if display_filter is not None:
        from latpcap.reading.filters.grammar import parse

        parse(display_filter)  # a mistake is reported before a long file is read
    limited = span()
    capture = read(_source(file, reread=reread or display_filter is not None), **limited, keylog=keylog, progress=True)
    warn(capture)
    return capture if display_filter is None else capture.filter(display_filter)


def _projection(file: str, needed: Needed, *, keylog: str | None = None, reread: bool = False) -> Projection:
    """Opens a capture for what is needed of its tables and warns of damage; `reread` as in `_read`."""
    from latpcap.views import partial_report

    spill.trim()
    capture = partial_report.read(_source(file, reread=reread), needed, keylog=keylog, progress=True)
    warn(capture)
    return capture


def _reopen(file: str, *, keylog: str | None = None, warned: bool = False) -> Callable[[Needed], Projection] | None:
    """Opens a capture for what is needed of its tables, each time that it is called, and warns of damage once, if it
    was not `warned` of; None where that cannot be done.
    """
    from latpcap.views import partial_report

    if file == "-" or "://" in file or live.is_pipe(file) or span():
        return None
    source = _source(file)
    spill.trim()

    def read(needed: Needed) -> Projection:
        nonlocal warned
        capture = partial_report.read(source, needed, keylog=keylog, progress=True)
        if not warned:
            warn(capture)
        warned = True
        return capture

    return read


def _stream(file: str, number: int, *, keylog: str | None = None, reread: bool = False) -> Stream:
    """Opens one stream of a capture alone and warns of damage; `reread` as in `_read`."""
    from latpcap.views.capture import read_stream

    if span():
        return _read(file, keylog=keylog, reread=reread).stream(number)
    spill.trim()
    found = read_stream(_source(file, reread=reread), number, keylog=keylog, progress=True)
    warn(found.capture)
    return found


def _source(file: str, *, reread: bool = False) -> Any:
    """What `read` is given for this word: a pipe ends with Ctrl-C, and is kept where its bytes are wanted twice."""
    from latpcap.archive.results import is_results

    if file != "-" and is_results(file):
        reads = "why, compare, latency, plot latency and plot waterfall read them, in Python latpcap.open_results"
        raise CaptureError(file, f"holds the results of a batch, expected a capture file; {reads}")
    found = live.pipe(file)
    if file != "-" or not reread:
        return file if found is None else found
    blocks = iter(lambda: sys.stdin.buffer.read(1 << 20) if found is None else found.read(1 << 20), b"")
    held = io.BytesIO(b"".join(blocks))
    held.name = "<stdin>"
    return held


def _version(wanted: bool) -> None:
    if wanted:
        import latpcap

        typer.echo(f"latpcap {latpcap.__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("-V", "--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


answers.register(app, _read, _answer_view)
tables.register(app, _read, _projection, _answer_view, _source)
app.command()(archive.batch)
app.command()(archive.compare)
flow.register(app, _read, _stream, _reopen)
packets.register(app, _read, _stream)
statistics.register(app, _read)
plots.register(app, _read, _projection, _stream)
joining.register(app)
report.register(app, _read, _projection, _answer_view, _reopen)
mcp.register(app)


@app.command()
def man() -> None:
    """Print the manual page: `latpcap man | man -l -`, or save it as man1/latpcap.1 below a folder of MANPATH."""
    from latpcap import __version__
    from latpcap.cli import manual

    typer.echo(manual.page(typer.main.get_command(app), __version__), nl=False)
