"""`latpcap batch`, `latpcap compare` and `latpcap why RESULTS`: the same words as in Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latpcap.cli.options import EXIT_UNREADABLE, KeylogOption
from latpcap.errors import Interrupted, OutputError

if TYPE_CHECKING:
    from latpcap.answers.why import Why
    from latpcap.archive.sites import Sites

EXIT_FAILED = 1
"""The exit code of a comparison for which a rule of `--fail-on` fails."""
EXIT_INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of SIGINT."""


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
    keylog: KeylogOption = None,
) -> None:
    """Analyse many captures into a Parquet data set. Run again, it goes on where it was."""
    from latpcap.archive.public import batch as work

    client = None if scheduler is None else _client(scheduler)
    try:
        done = work(
            inputs,
            output,
            jobs=jobs,
            client=client,
            events=not no_events,
            series=not no_series,
            quiet=quiet,
            keylog=keylog,
        )
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
        return Client(address, timeout="10s")
    except (OSError, ValueError) as problem:
        raise OutputError(f"{address}: no Dask scheduler answers ({problem})") from None


def why(
    location: str,
    *,
    is_whole: bool,
    sites: Sites = "auto",
    slow_ms: float | None = None,
    server: str | None = None,
    top: int | None = None,
) -> Why | None:
    """Return the answer of stored results; None where `location` is none. `is_whole`: no limit was given."""
    from latpcap.archive.public import open_results
    from latpcap.archive.results import is_results

    if not is_results(location):
        return None
    if not is_whole:
        raise typer.BadParameter("streams and exchanges are numbered within a capture; give its file instead")
    return open_results(location, sites=sites).why(slow_ms=slow_ms, server=server, top=top)


def compare(
    before: Annotated[str, typer.Argument(help="A capture, or the results of a batch.")],
    after: Annotated[str, typer.Argument(help="The same, later or elsewhere.")],
    fail_on: Annotated[
        list[str] | None,
        typer.Option("--fail-on", help="Exit 1 if so: p99_ms>20 (afterwards), p99_ms>+5 or >+10% (rise beyond noise)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every number of the answer as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write a page to mail: one HTML file.")
    ] = None,
    keylog: KeylogOption = None,
) -> None:
    """Did it get better, which cause moved, by how much, and is that more than noise?"""
    from latpcap.archive.public import compare as work

    comparison = work(before, after, keylog=keylog)
    try:
        failing = [sentence for rule in fail_on or () if (sentence := comparison.failing(rule))]
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--fail-on") from None
    typer.echo(json.dumps(comparison.to_dict(), indent=2) if as_json else str(comparison))
    if output is not None:
        comparison.to_html(output)
    for sentence in failing:
        typer.echo(f"latpcap: {sentence}", err=True)
    if failing:
        sys.exit(EXIT_FAILED)
