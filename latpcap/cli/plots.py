"""The commands `latency` and `plot`: reports and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from latpcap import options
from latpcap.cli import joining, opening
from latpcap.cli.export import Form
from latpcap.cli.options import (
    ByOption,
    Canvas,
    Drawn,
    File,
    FilterOption,
    FramesOption,
    KeylogOption,
    Listed,
    MarkOption,
    ScaleOption,
    Scope,
    ServerOption,
    frames_range,
    grouped,
    over_time,
)
from latpcap.format import shortest
from latpcap.lazy import pa
from latpcap.tables import Needed, TableSlice

if TYPE_CHECKING:
    from latpcap.views.latency import Latency

Files = Annotated[list[str], typer.Argument(help="One capture, or several to lay over each other.")]


@dataclass(frozen=True)
class Measured:
    """Options for the latencies that are measured."""

    by: ByOption = None
    which: Annotated[
        str, typer.Option("--which", help="latency_ms (at the capture) or client_latency_ms (estimated).")
    ] = "latency_ms"
    percentiles: Annotated[str, typer.Option("--percentiles", help="Percentiles with commas between.")] = "50,75,90,99"


plots = typer.Typer(cls=Listed, no_args_is_help=True, rich_markup_mode=None, help="Draws a picture of a capture.")


def _opened(file: str, needed: Needed | None, scope: Scope, *, stored: bool = False) -> Any:
    """Return the needed part of a whole capture, or a capture or stream as selected; with `stored` also results of a
    batch. `needed` None: all tables.
    """
    from latpcap.archive.public import open_results
    from latpcap.archive.results import is_results

    if not (stored and file != "-" and is_results(file)):
        if scope.is_whole and needed is not None:
            return opening.open_projection(file, needed, keylog=scope.keylog)
        return scope.of(opening.read, file)
    if not scope.is_whole:
        raise typer.BadParameter("streams, filters and times are of one capture; give its file, not the results")
    return open_results(file)


def _measured(file: str, how: Measured, scope: Scope) -> Latency:
    from latpcap.views.groups import of_processes
    from latpcap.views.latency import needed

    try:
        ranks = [float(word) for word in how.percentiles.split(",")]
    except ValueError:
        reason = f"expected numbers, as in 50,99.9, got {how.percentiles!r}"
        raise typer.BadParameter(reason, param_hint="--percentiles") from None
    try:
        columns: Needed = {"exchanges": TableSlice(needed(how.by, cast(options.Which, how.which)))}
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    capture = _opened(file, None if of_processes(how.by) else columns, scope, stored=True)
    try:
        answer: Latency = capture.latency(how.by or None, which=how.which, percentiles=ranks)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    return answer


@over_time
def latency(file: File, how: Measured, scope: Scope, form: Form) -> None:
    """How long did the requests take? Count, mean, deviation and percentiles, as wrk reports them."""
    from latpcap.cli import export

    name = form.name
    answer = _measured(file, how, scope)
    if name == "text" and (form.output is None or str(form.output) == "-"):
        typer.echo(str(answer))
        return
    table = pa.Table.from_pandas(answer.table, preserve_index=False).replace_schema_metadata()
    export.give(table, form.output, name)


@plots.command(name="latency")
@over_time
def plot_latency(files: Files, how: Measured, drawn: Drawn, scale: ScaleOption = "auto") -> None:
    """How are the latencies distributed? Shares with percentiles, and counts; several captures overlaid."""
    first, *others = [_measured(file, how, drawn) for file in files]
    titles = [latency.title for latency in (first, *others)]
    labels = shortest(files) if len(set(titles)) < len(titles) else None
    drawn.save(lambda: first.plot(*others, labels=labels, scale=cast(options.Scale, scale)))


@plots.command()
@over_time
def waterfall(
    file: File,
    *,
    by: ByOption = None,
    sort: Annotated[str, typer.Option("--sort", help="latency_ms (longest first), start, or a cause.")] = "latency_ms",
    align: Annotated[
        str, typer.Option("--align", help="start: all bars begin at 0; clock: at their time, --max-rows of them.")
    ] = "start",
    top: Annotated[int | None, typer.Option("--top", help="Only the first N exchanges.", min=1)] = None,
    max_rows: Annotated[int, typer.Option("--max-rows", help="At most so many bars with names.", min=1)] = 60,
    drawn: Drawn,
) -> None:
    """Where did each exchange's time go? Bars that are cut into their causes."""
    from latpcap.plot.waterfall_rows import needed
    from latpcap.views import groups

    words: Any = (by or [], sort)
    try:
        columns = needed(groups.needed(groups.chosen(words[0])), words[1])
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    capture = _opened(file, columns, drawn, stored=True)
    drawn.save(lambda: capture.waterfall(by=by or None, sort=sort, align=align, top=top, max_rows=max_rows))


@plots.command()
@over_time
def timeline(file: File, *, scale: ScaleOption = "auto", drawn: Drawn) -> None:
    """When were exchanges slow, and what happened on the wire then?"""
    from latpcap.plot.timeline import needed

    capture = _opened(file, needed(), drawn, stored=True)
    drawn.save(lambda: capture.timeline(scale=scale))


@plots.command()
@over_time
def throughput(
    file: File,
    *,
    by: Annotated[str, typer.Option("--by", help="What the areas are: direction, server or stream.")] = "direction",
    drawn: Drawn,
) -> None:
    """How many bytes moved when, and whose? Mbit/s over the clock, stacked, as Wireshark's I/O graph."""
    from latpcap.plot.throughput import needed

    capture = _opened(file, needed(), drawn)
    drawn.save(lambda: capture.throughput(by=by))


@plots.command()
@over_time
def evidence(
    file: File,
    *,
    server: ServerOption = None,
    panels: Annotated[
        str, typer.Option("--panels", help="Some of path, kernel, program, holds, with commas between.")
    ] = "path,kernel,program,holds",
    drawn: Drawn,
) -> None:
    """What do the verdicts on one server rest on? Path over time, kernel, program, and holds, as measured."""
    from latpcap.plot.evidence import needed

    capture = _opened(file, needed(), drawn)
    drawn.save(lambda: capture.distributions(server=server, panels=panels.split(",")))


@plots.command(name="time-sequence")
@over_time
def time_sequence(
    file: File,
    stream: Annotated[int, typer.Option("--stream", help="This tcp.stream.", min=0)],
    sender: Annotated[str | None, typer.Option("--sender", help="client or server; else who sends more.")] = None,
    frames: FramesOption = None,
    panels: Annotated[
        str, typer.Option("--panels", help="Some of sequence, flight, rtt, throughput, with commas between.")
    ] = "sequence,flight,rtt,throughput",
    display_filter: FilterOption = None,
    keylog: KeylogOption = None,
    mark_ms: MarkOption = 5.0,
    *,
    canvas: Canvas,
) -> None:
    """How did the bytes move, and where did they stand still? tcptrace's time-sequence graph, with the stalls."""
    chosen = frames_range(frames)
    if display_filter is None:
        scope = opening.open_stream(file, stream, keylog=keylog)
    else:
        scope = opening.read(file, display_filter, keylog=keylog).stream(stream)
    more: dict[str, Any] = {"sender": sender, "frames": chosen, "mark_ms": mark_ms}
    canvas.save(lambda: scope.time_sequence(panels=cast(list[options.SequencePanel], panels.split(",")), **more))


@plots.command()
@grouped
def delay(
    client: joining.Client,
    server: joining.Server,
    join: Annotated[bool, typer.Option("--join", hidden=True, help="As of why; this picture always joins.")] = True,
    keylog: KeylogOption = None,
    *,
    canvas: Canvas,
) -> None:
    """How long were packets on the way between two points, and which were lost? Two captures on one clock."""
    pair = joining.joined(client, server, keylog)
    canvas.save(pair.delays)


def register(app: typer.Typer) -> None:
    """Add `latency` and the commands of `plot` to the program."""
    app.command()(latency)
    app.add_typer(plots, name="plot")
