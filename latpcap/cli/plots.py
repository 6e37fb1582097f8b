"""The `latency` and `plot` commands of `latpcap`: reports and pictures by the words that Python has for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from latpcap import options
from latpcap.cli import joining
from latpcap.cli.export import AsCsv, AsJson, AsJsonl, Out
from latpcap.cli.options import File, FilterOption, KeylogOption, StreamOption, frames_range, over_time, save, span
from latpcap.format import shortest
from latpcap.tables import Kept, Needed

if TYPE_CHECKING:
    from latpcap.views.capture import Capture, Stream
    from latpcap.views.latency import Latency
    from latpcap.views.projection import Projection

Files = Annotated[list[str], typer.Argument(help="One capture, or several to lay over each other.")]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        help="Group by server, client, uri, status, capture, folder …, any column of exchanges, or a span of time "
        "(10s, 5min, hour); repeat.",
    ),
]
Which = Annotated[str, typer.Option("--which", help="latency_ms (at the capture) or client_latency_ms (estimated).")]
Percentiles = Annotated[str, typer.Option("--percentiles", help="Percentiles with commas between.")]
Picture = Annotated[Path, typer.Option("-o", "--output", help="The picture: .png, .svg or .pdf.")]
Dpi = Annotated[float, typer.Option("--dpi", help="Pixels per inch of a PNG 8 inches wide.", min=20, max=1200)]
Scale = Annotated[str, typer.Option("--scale", help="Of the latencies: auto, log or linear.")]

plots = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Draws a picture of a capture.")


def register(
    app: typer.Typer,
    read: Callable[..., Capture],
    projection: Callable[..., Capture | Projection],
    one: Callable[..., Stream],
) -> None:
    """Adds the commands to the program; `read` opens a capture and warns of damage, `projection` for some columns,
    `one` for a stream alone.
    """

    def opened(
        file: str,
        needed: Needed,
        stream: int | None,
        display_filter: str | None,
        *,
        stored: bool = False,
        keylog: str | None = None,
    ) -> Any:
        """What is needed of a whole capture; a part of one, or where they will do the results of a batch."""
        from latpcap.archive.results import is_results

        whole = stream is None and display_filter is None and not span()
        if whole and not (stored and file != "-" and is_results(file)):
            return projection(file, needed, keylog=keylog)
        return _scope(read, file, stream, display_filter, stored=stored, keylog=keylog)

    def timed(
        file: str,
        by: list[str] | None,
        which: str,
        percentiles: str,
        stream: int | None,
        display_filter: str | None,
        keylog: str | None,
    ) -> Latency:
        from latpcap.views.groups import of_processes
        from latpcap.views.latency import needed

        try:
            columns = needed(by, cast(options.Which, which))
        except ValueError as problem:
            raise typer.BadParameter(str(problem)) from None
        if of_processes(by):
            return _latency(
                _scope(read, file, stream, display_filter, stored=True, keylog=keylog), by, which, percentiles
            )
        scope = opened(file, {"exchanges": Kept(columns)}, stream, display_filter, stored=True, keylog=keylog)
        return _latency(scope, by, which, percentiles)

    @app.command()
    @over_time
    def latency(
        file: File,
        by: By = None,
        which: Which = "latency_ms",
        percentiles: Percentiles = "50,75,90,99",
        stream: StreamOption = None,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        output: Out = None,
        as_json: AsJson = False,
        as_jsonl: AsJsonl = False,
        as_csv: AsCsv = False,
    ) -> None:
        """How long did the requests take? Count, mean, deviation and percentiles, as wrk reports them."""
        from latpcap.cli import export

        form = export.form(json=as_json, jsonl=as_jsonl, csv=as_csv)
        answer = timed(file, by, which, percentiles, stream, display_filter, keylog)
        if form == "text" and (output is None or str(output) == "-"):
            typer.echo(str(answer))
            return
        import pyarrow as pa

        table = pa.Table.from_pandas(answer.table, preserve_index=False).replace_schema_metadata()
        export.give(table, output, form)

    @plots.command(name="latency")
    @over_time
    def plot_latency(
        files: Files,
        output: Picture,
        by: By = None,
        which: Which = "latency_ms",
        percentiles: Percentiles = "50,75,90,99",
        stream: StreamOption = None,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        scale: Scale = "auto",
        dpi: Dpi = 200,
    ) -> None:
        """How are the latencies distributed? Shares with percentiles, and counts; several captures overlaid."""
        first, *others = [timed(file, by, which, percentiles, stream, display_filter, keylog) for file in files]
        titles = [one.title for one in (first, *others)]
        labels = shortest(files) if len(set(titles)) < len(titles) else None
        save(lambda: first.plot(*others, labels=labels, scale=cast(options.Scale, scale)), output, dpi=dpi)

    @plots.command()
    @over_time
    def waterfall(
        file: File,
        output: Picture,
        by: By = None,
        sort: Annotated[
            str, typer.Option("--sort", help="latency_ms (longest first), start, or a cause.")
        ] = "latency_ms",
        align: Annotated[
            str, typer.Option("--align", help="start: all bars begin at 0; clock: at their time, --max-rows of them.")
        ] = "start",
        top: Annotated[int | None, typer.Option("--top", help="Only the first N exchanges.", min=1)] = None,
        max_rows: Annotated[int, typer.Option("--max-rows", help="At most so many bars with names.", min=1)] = 60,
        stream: StreamOption = None,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        dpi: Dpi = 200,
    ) -> None:
        """Where did each exchange's time go? Bars that are cut into their causes."""
        from latpcap.plot.waterfall_rows import needed
        from latpcap.views import groups

        words: Any = (by or [], sort)
        try:
            columns = needed(groups.needed(groups.chosen(words[0])), words[1])
        except ValueError as problem:
            raise typer.BadParameter(str(problem)) from None
        scope = opened(file, columns, stream, display_filter, stored=True, keylog=keylog)
        save(
            lambda: scope.waterfall(by=by or None, sort=sort, align=align, top=top, max_rows=max_rows), output, dpi=dpi
        )

    @plots.command()
    @over_time
    def timeline(
        file: File,
        output: Picture,
        scale: Scale = "auto",
        stream: StreamOption = None,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        dpi: Dpi = 200,
    ) -> None:
        """When were exchanges slow, and what happened on the wire then?"""
        from latpcap.plot.timeline import needed

        scope = opened(file, needed(), stream, display_filter, stored=True, keylog=keylog)
        save(lambda: scope.timeline(scale=scale), output, dpi=dpi)

    @plots.command()
    @over_time
    def throughput(
        file: File,
        output: Picture,
        by: Annotated[str, typer.Option("--by", help="What the areas are: direction, server or stream.")] = "direction",
        stream: StreamOption = None,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        dpi: Dpi = 200,
    ) -> None:
        """How many bytes moved when, and whose? Mbit/s over the clock, stacked, as Wireshark's I/O graph."""
        from latpcap.plot.throughput import needed

        scope = opened(file, needed(), stream, display_filter, keylog=keylog)
        save(lambda: scope.throughput(by=by), output, dpi=dpi)

    @plots.command()
    @over_time
    def evidence(
        file: File,
        output: Picture,
        server: Annotated[
            str | None, typer.Option("--server", help="Address or address:port; else the one with the most evidence.")
        ] = None,
        panels: Annotated[
            str, typer.Option("--panels", help="Some of path, kernel, program, holds, with commas between.")
        ] = "path,kernel,program,holds",
        stream: StreamOption = None,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        dpi: Dpi = 200,
    ) -> None:
        """What do the verdicts on one server rest on? Path over time, kernel, program, and holds, as measured."""
        from latpcap.plot.evidence import needed

        scope = opened(file, needed(), stream, display_filter, keylog=keylog)
        save(lambda: scope.distributions(server=server, panels=panels.split(",")), output, dpi=dpi)

    @plots.command(name="time-sequence")
    @over_time
    def time_sequence(
        file: File,
        output: Picture,
        stream: Annotated[int, typer.Option("--stream", help="This tcp.stream.", min=0)],
        sender: Annotated[str | None, typer.Option("--sender", help="client or server; else who sends more.")] = None,
        frames: Annotated[str | None, typer.Option("--frames", help="Only these frames, as FIRST-LAST.")] = None,
        panels: Annotated[
            str, typer.Option("--panels", help="Some of sequence, flight, rtt, throughput, with commas between.")
        ] = "sequence,flight,rtt,throughput",
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        mark_ms: Annotated[float, typer.Option("--mark-ms", help="Waits from so many ms on are marked.")] = 5.0,
        dpi: Dpi = 200,
    ) -> None:
        """How did the bytes move, and where did they stand still? tcptrace's time-sequence graph, with the stalls."""
        chosen = frames_range(frames)
        if display_filter is None:
            scope = one(file, stream, keylog=keylog)
        else:
            scope = read(file, display_filter, keylog=keylog).stream(stream)
        more: dict[str, Any] = {"sender": sender, "frames": chosen, "mark_ms": mark_ms}
        save(
            lambda: scope.time_sequence(panels=cast(list[options.SequencePanel], panels.split(",")), **more),
            output,
            dpi=dpi,
        )

    @plots.command()
    def delay(
        client: joining.Client,
        server: joining.Server,
        output: Picture,
        join: Annotated[bool, typer.Option("--join", hidden=True, help="As of why; this picture always joins.")] = True,
        keylog: KeylogOption = None,
        dpi: Dpi = 200,
    ) -> None:
        """How long were packets on the way between two points, and which were lost? Two captures on one clock."""
        pair = joining.joined(client, server, keylog)
        save(pair.delays, output, dpi=dpi)

    app.add_typer(plots, name="plot")


def _latency(scope: Any, by: list[str] | None, which: str, percentiles: str) -> Latency:
    try:
        ranks = [float(word) for word in percentiles.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"expected numbers, as in 50,99.9, got {percentiles!r}", param_hint="--percentiles"
        ) from None
    try:
        answer: Latency = scope.latency(by or None, which=which, percentiles=ranks)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    return answer


def _scope(
    read: Callable[..., Capture],
    file: str,
    stream: int | None,
    display_filter: str | None,
    *,
    stored: bool,
    keylog: str | None,
) -> Any:
    """A capture, a part of one, or, where they will do, the results of a batch."""
    from latpcap.archive.results import is_results

    if stored and is_results(file):
        from latpcap.archive.public import open_results

        if stream is not None or display_filter is not None or span():
            raise typer.BadParameter("streams, filters and times are of one capture; give its file, not the results")
        return open_results(file)
    capture = read(file, display_filter, keylog=keylog)
    return capture if stream is None else capture.stream(stream)
