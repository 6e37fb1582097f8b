"""The `latpcap` command: the same words as in Python, in the same order.

Exit codes: 0 analysed; 1 a rule of `compare --fail-on` fails; 2 wrong usage or an output that cannot be written; 3 a
capture could not be read.
Answers go to standard output; warnings and errors, one line each, to standard error.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

from latpcap.cli import answers, archive, flow, live, mcp, packets, plots, tables
from latpcap.cli.options import SAMPLE, warn
from latpcap.errors import CaptureError, LatpcapError
from latpcap.reading import sources

if TYPE_CHECKING:
    from latpcap.views.capture import Capture

EXIT_USAGE = 2
EXIT_UNREADABLE = 3
_SUFFIXES = (".pcap", ".pcapng", ".cap", ".gz", ".zst", ".lz4", ".bz2", ".xz")
"""A word that ends so is meant as a file, also where there is none of that name."""

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Tells from a packet capture why each request was slow, who waited for whom, and which frames show it.",
)


def main() -> None:
    """Runs the command and turns every known error into one line and an exit code."""
    words = _completed([str(sources.SAMPLE) if word == SAMPLE else word for word in sys.argv[1:]])
    try:
        if code := app(words, standalone_mode=False):  # of a typer that turns Ctrl-C into one
            _stop("interrupted", code)
    except CaptureError as problem:
        _stop(str(problem), EXIT_UNREADABLE)
    except (LatpcapError, IndexError) as problem:
        _stop(str(problem), EXIT_USAGE)
    except BrokenPipeError:
        # the reader of our output went away (head, less): nothing to say, and nothing left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (KeyboardInterrupt, typer.Abort):
        _stop("interrupted", 130)
    except Exception as problem:
        # the parser's own errors carry their sentence; anything else is a bug and shows itself
        if not hasattr(problem, "format_message"):
            raise
        text = problem.format_message()
        if "\n" in text:  # no command at all: the help is the answer
            typer.echo(text, err=True)
            sys.exit(EXIT_USAGE)
        _stop(f"{text.removesuffix('.')} (see --help)", EXIT_USAGE)


def _completed(words: list[str]) -> list[str]:
    """`latpcap FILE` means `latpcap why FILE`, also with options before or behind the file."""
    known = {command.name for command in typer.main.get_group(app).commands.values()}
    if not words or words[0] in known:
        return words
    options = words[0].startswith("-") and words[0] != "-"
    files = any(word == "-" or "://" in word or os.path.lexists(word) for word in words[: None if options else 1])
    return ["why", *words] if files or Path(words[0]).suffix.lower() in _SUFFIXES else words


def _stop(sentence: str, code: int) -> None:
    typer.echo(f"latpcap: {sentence}", err=True)
    sys.exit(code)


def _read(file: str, display_filter: str | None = None, *, keylog: str | None = None, again: bool = False) -> Capture:
    """Opens a capture and warns of damage; `again`: its bytes are wanted twice, so that standard input is kept."""
    from latpcap.archive.results import is_results
    from latpcap.views.capture import read

    if file != "-" and is_results(file):
        reads = "why, compare, latency, plot latency and plot waterfall read them, in Python latpcap.open_results"
        raise CaptureError(file, f"holds the results of a batch, expected a capture file; {reads}")
    if display_filter is not None:
        from latpcap.reading.filters.grammar import parse

        parse(display_filter)  # a slip of the pen is said before a long file is read
    capture = read(_source(file, again=again or display_filter is not None), keylog=keylog, progress=True)
    warn(capture)
    return capture if display_filter is None else capture.filter(display_filter)


def _source(file: str, *, again: bool = False) -> Any:
    """What `read` is given for this word: a pipe ends with Ctrl-C, and is kept where its bytes are wanted twice."""
    found = live.pipe(file)
    if file != "-" or not again:
        return file if found is None else found
    blocks = iter(lambda: sys.stdin.buffer.read(1 << 20) if found is None else found.read(1 << 20), b"")
    held = io.BytesIO(b"".join(blocks))
    held.name = "<stdin>"
    return held


def _version(asked: bool) -> None:
    if asked:
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


answers.register(app, _read)
tables.register(app, _read, _source)
app.command()(archive.batch)
app.command()(archive.compare)
flow.register(app, _read)
packets.register(app, _read)
plots.register(app, _read)
mcp.register(app)


@app.command()
def man() -> None:
    """Print the manual page: `latpcap man | man -l -`, or save it as man1/latpcap.1 below a folder of MANPATH."""
    from latpcap import __version__
    from latpcap.cli import manual

    typer.echo(manual.page(typer.main.get_command(app), __version__), nl=False)
