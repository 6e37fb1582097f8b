"""The `flow` command of `latpcap`: a flow graph by the words that Python has for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from latpcap.cli import joining
from latpcap.cli.options import (
    File,
    FilterOption,
    KeylogOption,
    StreamOption,
    drawable_language,
    frames_range,
    in_language,
    over_time,
    save,
    span,
)
from latpcap.options import Flows

if TYPE_CHECKING:
    from latpcap.plot.flow import FlowGraph
    from latpcap.tables import Needed
    from latpcap.views.capture import Capture, Stream
    from latpcap.views.projection import Projection


def register(
    app: typer.Typer,
    read: Callable[..., Capture],
    one: Callable[..., Stream],
    reopen: Callable[..., Callable[[Needed], Projection] | None],
) -> None:
    """Adds the command to the program; `read` opens a capture and warns of damage, `one` a stream of it, and `reopen`
    what is needed of it, more than once.
    """

    @app.command()
    @over_time
    @in_language
    def flow(
        file: File,
        server: Annotated[str | None, typer.Argument(help="With --join: the capture at the server's side.")] = None,
        more: joining.More = None,
        output: Annotated[
            Path | None,
            typer.Option(
                "-o", "--output", help="The picture: .png, .svg, .pdf; .txt as tshark writes it. Without: that text."
            ),
        ] = None,
        stream: StreamOption = None,
        exchange: Annotated[
            str | None,
            typer.Option("--exchange", help="worst, typical, first, or a number; with --stream: its number there."),
        ] = None,
        frames: Annotated[
            str | None, typer.Option("--frames", help="Only these frames, as FIRST-LAST (frame.number).")
        ] = None,
        flows: Annotated[str, typer.Option("--flows", help="tcp, icmp or all.")] = "tcp",
        time: Annotated[
            str, typer.Option("--time", help="relative, delta, delta_displayed, date or epoch.")
        ] = "relative",
        to_scale: Annotated[bool, typer.Option("--to-scale", help="Long gaps get room as long as they took.")] = False,
        max_rows: Annotated[
            int | None, typer.Option("--max-rows", help="At most so many rows on a page (60; 36 of a PDF).", min=1)
        ] = None,
        mark_ms: Annotated[float, typer.Option("--mark-ms", help="Mark waits of at least so many ms.")] = 5.0,
        collapse: Annotated[
            bool | None,
            typer.Option(
                "--collapse/--no-collapse", help="Runs of data segments as one row each, or none (default: long runs)."
            ),
        ] = None,
        pages: Annotated[
            bool, typer.Option("--pages", help="All pages: .png and .svg as numbered files (.pdf has them anyway).")
        ] = False,
        beside: Annotated[
            str | None, typer.Option("--beside", help="Another capture, drawn to the right on the same time scale.")
        ] = None,
        beside_stream: Annotated[
            int | None, typer.Option("--beside-stream", help="A stream to the right, of --beside or of FILE.", min=0)
        ] = None,
        dpi: Annotated[float, typer.Option("--dpi", help="Pixels per inch of a PNG.", min=20, max=1200)] = 200,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        join: Annotated[
            bool, typer.Option("--join", help="FILE, SERVER and more, captures in a row: all points on one clock.")
        ] = False,
    ) -> None:
        """Who sent what to whom, and where did the time go? Wireshark's flow graph, with the causes of the gaps."""
        from latpcap.views import capture as views
        from latpcap.views.flows import Around

        which = int(exchange) if exchange is not None and exchange.isdecimal() else exchange
        chosen = frames_range(frames)
        if join != (server is not None):
            raise typer.BadParameter("takes two captures or more, the client's side first", param_hint="--join")
        if server is not None:
            if display_filter is not None or beside is not None or beside_stream is not None or span():
                raise typer.BadParameter("takes no filter, no time and nothing beside", param_hint="--join")
            pair = joining.every([file, server, *(more or [])], keylog)
            with drawable_language():
                try:
                    points = pair.flow_graph(exchange=which, stream=stream, frames=chosen)
                except ValueError as problem:
                    raise typer.BadParameter(str(problem)) from None
                if output is None or str(output) == "-":
                    typer.echo("\n".join(points.lines()))
                else:
                    save(lambda: points, output, dpi=dpi)
            return
        beside_it = beside is not None or beside_stream is not None
        if output is None and beside_it:
            raise typer.BadParameter("two graphs beside each other are a picture: give -o", param_hint="--beside")

        def graph(scope: Any, number: int | None) -> FlowGraph:
            options: dict[str, Any] = {"exchange": which, "frames": chosen, "time": time, "to_scale": to_scale}
            options |= {"max_rows": max_rows, "mark_ms": mark_ms, "collapse": collapse}
            try:
                if number is not None:
                    if flows != "tcp":
                        raise ValueError(f"--flows {flows} is for a capture, not for a stream")
                    alone = scope if isinstance(scope, views.Stream) else scope.stream(number)
                    return alone.flow_graph(**options)
                found: FlowGraph = scope.flow_graph(flows=cast(Flows, flows), **options)
                return found
            except ValueError as problem:
                raise typer.BadParameter(str(problem)) from None

        capture: Any
        twice = None
        if stream is None and which is not None and chosen is None and flows == "tcp" and display_filter is None:
            twice = None if beside_it else reopen(file, keylog=keylog)
        if twice is not None:
            capture = Around(twice)
        elif stream is None or flows != "tcp" or display_filter is not None or beside_it:
            capture = read(file, display_filter, keylog=keylog)
        else:
            capture = one(file, stream, keylog=keylog)
        with drawable_language():
            left = graph(capture, stream)
            if output is None or str(output) == "-":
                for line in left.lines():  # the text of a long capture is longer than the capture
                    sys.stdout.write(f"{line}\n")
                return
            if not beside_it:
                save(lambda: left, output, dpi=dpi, pages=pages or None)
                return
            other = capture if beside is None else read(beside, display_filter, keylog=keylog)
            save(lambda: left.beside(graph(other, beside_stream)), output, dpi=dpi)
