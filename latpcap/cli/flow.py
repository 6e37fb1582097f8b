"""The command `flow`: a flow graph as a picture or as text."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from latpcap.cli import joining, opening
from latpcap.cli.options import (
    DpiOption,
    ExchangeOption,
    File,
    FramesOption,
    MarkOption,
    Scope,
    ServerOption,
    drawable_language,
    frames_range,
    in_language,
    over_time,
    save,
    span,
    usage_errors,
)
from latpcap.options import Flows

if TYPE_CHECKING:
    from latpcap.plot.flow.graph import FlowGraph


@dataclass(frozen=True)
class Page:
    """Options for how a page is drawn."""

    time: Annotated[str, typer.Option("--time", help="relative, delta, delta_displayed, date or epoch.")] = "relative"
    to_scale: Annotated[bool, typer.Option("--to-scale", help="Long gaps get room as long as they took.")] = False
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", help="At most so many rows on a page (60; 36 of a PDF).", min=1)
    ] = None
    mark_ms: MarkOption = 5.0
    collapse: Annotated[
        bool | None,
        typer.Option(
            "--collapse/--no-collapse", help="Runs of data segments as one row each, or none (default: long runs)."
        ),
    ] = None


@dataclass(frozen=True)
class Chosen:
    """Options for what is drawn."""

    exchange: ExchangeOption = None
    of_server: ServerOption = None
    frames: FramesOption = None
    flows: Annotated[str, typer.Option("--flows", help="tcp, icmp, all, or any (as tshark).")] = "tcp"

    def rows(self) -> dict[str, Any]:
        """Return the keyword arguments `exchange` and `frames` of a flow graph."""
        is_number = self.exchange is not None and self.exchange.isdecimal()
        exchange = int(cast(str, self.exchange)) if is_number else self.exchange
        return {"exchange": exchange, "frames": frames_range(self.frames)}


@dataclass(frozen=True)
class Right:
    """Options for a second graph to the right."""

    beside: Annotated[
        str | None, typer.Option("--beside", help="Another capture, drawn to the right on the same time scale.")
    ] = None
    beside_stream: Annotated[
        int | None, typer.Option("--beside-stream", help="A stream to the right, of --beside or of FILE.", min=0)
    ] = None

    @property
    def is_wanted(self) -> bool:
        """Whether there is a second graph."""
        return self.beside is not None or self.beside_stream is not None


@over_time
@in_language
def flow(
    file: File,
    *,
    server: Annotated[str | None, typer.Argument(help="With --join: the capture at the server's side.")] = None,
    more: joining.More = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The picture: .png, .svg, .pdf; .txt as tshark writes it. Without: that text."
        ),
    ] = None,
    chosen: Chosen,
    page: Page,
    pages: Annotated[
        bool, typer.Option("--pages", help="All pages: .png and .svg as numbered files (.pdf has them anyway).")
    ] = False,
    right: Right,
    dpi: DpiOption = 200,
    scope: Scope,
    join: Annotated[
        bool, typer.Option("--join", help="FILE, SERVER and more, captures in a row: all points on one clock.")
    ] = False,
) -> None:
    """Who sent what to whom, and where did the time go? Wireshark's flow graph, with the causes of the gaps."""
    rows = chosen.rows()
    picture = None if output is None or str(output) == "-" else output
    if join != (server is not None):
        raise typer.BadParameter("takes two captures or more, the client's side first", param_hint="--join")
    if server is not None:
        if scope.display_filter is not None or right.is_wanted or span() or chosen.of_server is not None:
            raise typer.BadParameter("takes no filter, no server, no time and nothing beside", param_hint="--join")
        joined = joining.every([file, server, *(more or [])], scope.keylog)
        with drawable_language(), usage_errors():
            points = joined.flow_graph(stream=scope.stream, **rows)
        if picture is not None:
            save(lambda: points, picture, dpi=dpi)
        else:
            typer.echo("\n".join(points.lines()))
        return
    if output is None and right.is_wanted:
        raise typer.BadParameter("two graphs beside each other are a picture: give -o", param_hint="--beside")
    settings = {**rows, **asdict(page)}
    capture = _read(file, scope) if right.is_wanted else _opened(file, chosen, scope, picture)
    with drawable_language():
        graph = _graph(capture, scope.stream, chosen, settings)
        if picture is None:
            for line in graph.lines():  # not joined: the text may be longer than the capture
                sys.stdout.write(f"{line}\n")
        elif not right.is_wanted:
            save(lambda: graph, picture, dpi=dpi, pages=pages or None)
        else:
            second_capture = _read(right.beside, scope) if right.beside else capture
            save(lambda: graph.beside(_graph(second_capture, right.beside_stream, chosen, settings)), picture, dpi=dpi)


def _read(file: str, scope: Scope) -> Any:
    return opening.read(file, scope.display_filter, keylog=scope.keylog)


def _opened(file: str, chosen: Chosen, scope: Scope, picture: Path | None) -> Any:
    """Open what one graph draws: a stream, the packets around what is chosen, or the capture."""
    from latpcap.views.flows import Around

    if chosen.flows != "tcp" or scope.display_filter is not None:
        return _read(file, scope)
    if scope.stream is not None:
        return opening.open_stream(file, scope.stream, keylog=scope.keylog)
    is_part = chosen.frames is None if chosen.exchange is not None else chosen.of_server is None
    twice = opening.reopen(file, keylog=scope.keylog) if is_part else None
    if not twice:
        return _read(file, scope)
    return Around(twice, drawn=picture is not None and picture.suffix != ".txt")


def _graph(capture: Any, stream: int | None, chosen: Chosen, settings: dict[str, Any]) -> FlowGraph:
    from latpcap.views.capture import Stream

    with usage_errors():
        if stream is None:
            return capture.flow_graph(flows=cast(Flows, chosen.flows), server=chosen.of_server, **settings)
        if chosen.flows != "tcp":
            raise ValueError(f"--flows {chosen.flows} is for a capture, not for a stream")
        if chosen.of_server is not None:
            raise ValueError("--server is for a capture, not for a stream")
        of_stream = capture if isinstance(capture, Stream) else capture.stream(stream)
        return of_stream.flow_graph(**settings)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(flow)
