"""The command `report`: one page to mail, or the lines of wrk, ping, hping3, traceroute, curl or pgbench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from latpcap.cli import opening
from latpcap.cli.options import FilterOption, KeylogOption, in_language, over_time, span
from latpcap.options import Tool

if TYPE_CHECKING:
    from latpcap.views.capture import Capture
    from latpcap.views.projection import Projection

Page = Annotated[Path, typer.Option("-o", "--output", help="The page: one HTML file that fetches nothing.")]


@over_time
@in_language
def report(
    file: Annotated[
        str, typer.Argument(help="A capture, or the results of a batch; --sample takes the sample.", metavar="FILE")
    ],
    output: Page = Path("report.html"),
    tool: Annotated[
        str | None,
        typer.Option("--as", help=f"Print what this tool would have: {', '.join(get_args(Tool))}. No page."),
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", help="With --as: only this address, or address:port.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --as: its numbers as JSON.")] = False,
    display_filter: FilterOption = None,
    keylog: KeylogOption = None,
) -> None:
    """Write one page to mail: answer, servers, timeline, waterfall, exchanges and flow graphs, in one HTML file."""
    from latpcap import page, reports
    from latpcap.archive.public import open_results
    from latpcap.archive.results import is_results
    from latpcap.views.page_source import PageSource

    stored = file != "-" and is_results(file)
    if stored and (display_filter is not None or tool is not None or span()):
        hint = "--as" if tool is not None else "--filter" if display_filter is not None else "--start, --end"
        raise typer.BadParameter("is for a capture, not for the results of a batch", param_hint=hint)
    if tool is not None:
        name = _known(tool)
        if display_filter is None and not span():
            capture: Capture | Projection = opening.open_projection(
                file, reports.needed(name), keylog=keylog, reread=True
            )
        else:
            capture = opening.read(file, display_filter, keylog=keylog, reread=True)
        _print(capture, name, server, as_json=as_json)
    elif server is not None or as_json:
        raise typer.BadParameter("is for --as", param_hint="--json" if as_json else "--server")
    else:
        parts = None if stored or display_filter is not None else opening.reopen(file, keylog=keylog, warned=True)
        if stored:
            open_results(file).to_html(output)
        elif parts is None:
            opening.read(file, display_filter, keylog=keylog, reread=True).to_html(output)
        else:
            page_source = PageSource(lambda: opening.open_answer_view(file, keylog=keylog), parts)
            page.write(output, page.of_parts(page_source, page_source.around))


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(report)


def _known(tool: str) -> Tool:
    tools: dict[str, Tool] = {word: word for word in get_args(Tool)}
    if tool not in tools:
        raise typer.BadParameter(f"expected {', '.join(tools)}, got {tool!r}", param_hint="--as")
    return tools[tool]


def _print(capture: Capture | Projection, tool: Tool, server: str | None, *, as_json: bool) -> None:
    """Print what the tool would have printed, by its own formulas; "#" marks what cannot be known."""
    from latpcap import reports

    try:
        report = reports.make_report(capture, tool, server)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--as") from None
    typer.echo(json.dumps(report.to_dict(), indent=2) if as_json else str(report))
