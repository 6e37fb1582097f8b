"""The `latpcap` command, with the names and order of Python's API.

Answers go to standard output; warnings and errors, one line each, to standard error. `exit_codes` has the exit codes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

from latpcap import bars
from latpcap.cli import (
    answers,
    archive,
    exit_codes,
    flow,
    joining,
    mcp,
    packets,
    plots,
    report,
    schema,
    statistics,
    tables,
)
from latpcap.cli.options import SAMPLE, Listed
from latpcap.reading import sources
from latpcap.reading.unpack import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Container


_SUFFIXES = (".pcap", ".pcapng", ".cap", *(f".{suffix}" for suffix in SUFFIXES))
"""A first word that ends so is a file of `why`, whether it exists or not."""

app = typer.Typer(
    cls=Listed,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Tells from a packet capture why each request was slow, who waited for whom, and which frames show it.",
)


def main() -> None:
    """Run the command, and end the process with its exit code."""
    exit_codes.run(_work)


def _work() -> int | None:
    program: Any = typer.main.get_command(app)  # built once: `app(words)` would build it again
    words = [str(sources.SAMPLE) if word == SAMPLE else word for word in sys.argv[1:]]
    with bars.command():
        code: int | None = program(_completed(words, program.commands), standalone_mode=False)
    return code


def _completed(words: list[str], commands: Container[str]) -> list[str]:
    """Insert "why" before a file: `latpcap FILE` means `latpcap why FILE`, also with options before or after it."""
    if not words or words[0] in commands:
        return words
    options = words[0].startswith("-") and words[0] != "-"
    files = any(word == "-" or "://" in word or os.path.lexists(word) for word in words[: None if options else 1])
    return ["why", *words] if files or Path(words[0]).suffix.lower() in _SUFFIXES else words


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


answers.register(app)
tables.register(app)
app.command()(archive.batch)
app.command()(archive.compare)
flow.register(app)
packets.register(app)
statistics.register(app)
plots.register(app)
joining.register(app)
report.register(app)
app.command()(schema.schema)
mcp.register(app)


@app.command()
def man() -> None:
    """Print the manual page: `latpcap man | man -l -`, or save it as man1/latpcap.1 below a folder of MANPATH."""
    from latpcap import __version__
    from latpcap.cli import manual

    typer.echo(manual.page(typer.main.get_command(app), __version__), nl=False)
