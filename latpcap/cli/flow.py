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
    exchange: ExchangeOption = None,
    of_server: ServerOption = None,
    frames: FramesOption = None,
    flows: Annotated[str, typer.Option("--flows", help="tcp, icmp, all, or any (as tshark).")] = "tcp",
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
    from latpcap.views import capture as views
    from latpcap.views.flows import Around

    which = int(exchange) if exchange is not None and exchange.isdecimal() else exchange
    chosen = frames_range(frames)
    file_wanted = output is not None and str(output) != "-"
    if join != (server is not None):
        raise typer.BadParameter("takes two captures or more, the client's side first", param_hint="--join")
    if server is not None:
        if scope.display_filter is not None or right.is_wanted or span() or of_server is not None:
            raise typer.BadParameter("takes no filter, no server, no time and nothing beside", param_hint="--join")
        joined = joining.every([file, server, *(more or [])], scope.keylog)
        with drawable_language(), usage_errors():
            points = joined.flow_graph(exchange=which, stream=scope.stream, frames=chosen)
        if file_wanted:
            save(lambda: points, cast(Path, output), dpi=dpi)
        else:
            typer.echo("\n".join(points.lines()))
        return
    if output is None and right.is_wanted:
        raise typer.BadParameter("two graphs beside each other are a picture: give -o", param_hint="--beside")

    def graph(capture: Any, stream: int | None) -> FlowGraph:
        how: dict[str, Any] = {"exchange": which, "frames": chosen, **asdict(page)}
        with usage_errors():
            if stream is not None:
                if flows != "tcp":
                    raise ValueError(f"--flows {flows} is for a capture, not for a stream")
                if of_server is not None:
                    raise ValueError("--server is for a capture, not for a stream")
                alone = capture if isinstance(capture, views.Stream) else capture.stream(stream)
                return alone.flow_graph(**how)
            return capture.flow_graph(flows=cast(Flows, flows), server=of_server, **how)

    def opened() -> Any:
        plain = flows == "tcp" and scope.display_filter is None and not right.is_wanted
        if plain and scope.stream is not None:
            return opening.stream(file, scope.stream, keylog=scope.keylog)
        around = plain and (chosen is None if which is not None else of_server is None)
        twice = opening.reopen(file, keylog=scope.keylog) if around else None
        drawn = file_wanted and cast(Path, output).suffix != ".txt"
        return Around(twice, drawn=drawn) if twice else opening.read(file, scope.display_filter, keylog=scope.keylog)

    capture = opened()
    with drawable_language():
        left = graph(capture, scope.stream)
        if not file_wanted:
            for line in left.lines():  # not joined: the text may be longer than the capture
                sys.stdout.write(f"{line}\n")
            return
        picture = cast(Path, output)
        if not right.is_wanted:
            save(lambda: left, picture, dpi=dpi, pages=pages or None)
            return
        other = opening.read(right.beside, scope.display_filter, keylog=scope.keylog) if right.beside else capture
        save(lambda: left.beside(graph(other, right.beside_stream)), picture, dpi=dpi)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(flow)
