"""`latpcap batch`: the options of `latpcap.batch` as words of the command line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from latpcap.errors import Interrupted, OutputError

EXIT_UNREADABLE = 3
EXIT_INTERRUPTED = 130


def batch(
    inputs: Annotated[list[str], typer.Argument(help="Folders, files, globs, URLs, or @FILE with one of them a line.")],
    output: Annotated[str, typer.Option("-o", "--output", help="The results: a folder or a URL.")],
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Captures at a time; one a core if not given.", min=1)
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="A Dask scheduler, as in tcp://head:8786.")
    ] = None,
    no_events: Annotated[bool, typer.Option("--no-events", help="Leave out the longest table.")] = False,
    no_series: Annotated[bool, typer.Option("--no-series", help="Never join files of a rotated capture.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary, only what failed.")] = False,
) -> None:
    """Analyse many captures into a Parquet data set. Run again, it goes on where it was."""
    from latpcap.archive.batch import batch as work

    client = None if scheduler is None else _client(scheduler)
    try:
        done = work(inputs, output, jobs=jobs, client=client, events=not no_events, series=not no_series, quiet=quiet)
    except Interrupted as problem:  # before typer makes something else of it
        typer.echo(f"latpcap: {problem}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    if quiet:
        for failure in done.failed:
            typer.echo(f"latpcap: {failure}", err=True)
    else:
        typer.echo(str(done))
    if done.failed:
        sys.exit(EXIT_UNREADABLE)


def _client(address: str) -> object:
    try:
        from distributed import Client
    except ImportError:
        raise OutputError("--scheduler needs Dask: pip install 'latpcap[dask]'") from None
    try:
        client: object = Client(address, timeout="10s")
        return client
    except (OSError, ValueError) as problem:
        raise OutputError(f"{address}: no Dask scheduler answers ({problem})") from None
