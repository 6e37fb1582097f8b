"""The `latency` and `plot` commands of `latpcap`: reports and pictures by the words that Python has for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from latpcap import options
from latpcap.cli import joining, opening
from latpcap.cli.export import Form
from latpcap.cli.options import File, FilterOption, KeylogOption, Listed, Scope, frames_range, over_time, save
from latpcap.format import shortest
from latpcap.tables import Kept, Needed

if TYPE_CHECKING:
    from latpcap.views.latency import Latency

Files = Annotated[list[str], typer.Argument(help="One capture, or several to lay over each other.")]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        help="Group by server, client, uri, status, capture, folder …, any column of exchanges, or a span of time "
        "(10s, 5min, hour); repeat.",
    ),
]
Picture = Annotated[Path, typer.Option("-o", "--output", help="The picture: .png, .svg or .pdf.")]
Dpi = Annotated[float, typer.Option("--dpi", help="Pixels per inch of a PNG 8 inches wide.", min=20, max=1200)]
Scale = Annotated[str, typer.Option("--scale", help="Of the latencies: auto, log or linear.")]


@dataclass(frozen=True)
class Measured:
    """Options that say which latencies are measured, and how."""

    by: By = None
    which: Annotated[
        str, typer.Option("--which", help="latency_ms (at the capture) or client_latency_ms (estimated).")
    ] = "latency_ms"
    percentiles: Annotated[str, typer.Option("--percentiles", help="Percentiles with commas between.")] = "50,75,90,99"


plots = typer.Typer(cls=Listed, no_args_is_help=True, rich_markup_mode=None, help="Draws a picture of a capture.")


def _opened(file: str, needed: Needed | None, scope: Scope, *, stored: bool = False) -> Any:
    """What is needed of a whole capture (all of it: None); a part of one, or where they will do the results of a
    batch.
    """
    from latpcap.archive.public import open_results
    from latpcap.archive.results import is_results

    if not (stored and file != "-" and is_results(file)):
        if scope.whole and needed is not None:
            return opening.projection(file, needed, keylog=scope.keylog)
        return scope.of(opening.read, file)
    if not scope.whole:
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
        columns: Needed = {"exchanges": Kept(needed(how.by, cast(options.Which, how.which)))}
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    capture = _opened(file, None if of_processes(how.by) else columns, scope, stored=True)
    try:
        answer: Latency = capture.latency(how.by or None, which=how.which, percentiles=ranks)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    return answer


@over_time
def latency(
    file: File,
    how: Measured,
    scope: Scope,
    form: Form,
) -> None:
    """How long did the requests take? Count, mean, deviation and percentiles, as wrk reports them."""
    from latpcap.cli import export

    name = form.name
    answer = _measured(file, how, scope)
    if name == "text" and (form.output is None or str(form.output) == "-"):
        typer.echo(str(answer))
        return
    import pyarrow as pa

    table = pa.Table.from_pandas(answer.table, preserve_index=False).replace_schema_metadata()
    export.give(table, form.output, name)


@plots.command(name="latency")
@over_time
def plot_latency(
    files: Files,
    output: Picture,
    how: Measured,
    scope: Scope,
    scale: Scale = "auto",
    dpi: Dpi = 200,
) -> None:
    """How are the latencies distributed? Shares with percentiles, and counts; several captures overlaid."""
    first, *others = [_measured(file, how, scope) for file in files]
    titles = [one.title for one in (first, *others)]
    labels = shortest(files) if len(set(titles)) < len(titles) else None
    save(lambda: first.plot(*others, labels=labels, scale=cast(options.Scale, scale)), output, dpi=dpi)


@plots.command()
@over_time
def waterfall(
    file: File,
    output: Picture,
    *,
    by: By = None,
    sort: Annotated[str, typer.Option("--sort", help="latency_ms (longest first), start, or a cause.")] = "latency_ms",
    align: Annotated[
        str, typer.Option("--align", help="start: all bars begin at 0; clock: at their time, --max-rows of them.")
    ] = "start",
    top: Annotated[int | None, typer.Option("--top", help="Only the first N exchanges.", min=1)] = None,
    max_rows: Annotated[int, typer.Option("--max-rows", help="At most so many bars with names.", min=1)] = 60,
    scope: Scope,
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
    capture = _opened(file, columns, scope, stored=True)
    save(
        lambda: capture.waterfall(by=by or None, sort=sort, align=align, top=top, max_rows=max_rows),
        output,
        dpi=dpi,
    )


@plots.command()
@over_time
def timeline(
    file: File,
    output: Picture,
    *,
    scale: Scale = "auto",
    scope: Scope,
    dpi: Dpi = 200,
) -> None:
    """When were exchanges slow, and what happened on the wire then?"""
    from latpcap.plot.timeline import needed

    capture = _opened(file, needed(), scope, stored=True)
    save(lambda: capture.timeline(scale=scale), output, dpi=dpi)


@plots.command()
@over_time
def throughput(
    file: File,
    output: Picture,
    *,
    by: Annotated[str, typer.Option("--by", help="What the areas are: direction, server or stream.")] = "direction",
    scope: Scope,
    dpi: Dpi = 200,
) -> None:
    """How many bytes moved when, and whose? Mbit/s over the clock, stacked, as Wireshark's I/O graph."""
    from latpcap.plot.throughput import needed

    capture = _opened(file, needed(), scope)
    save(lambda: capture.throughput(by=by), output, dpi=dpi)


@plots.command()
@over_time
def evidence(
    file: File,
    output: Picture,
    *,
    server: Annotated[
        str | None, typer.Option("--server", help="Address or address:port; else the one with the most evidence.")
    ] = None,
    panels: Annotated[
        str, typer.Option("--panels", help="Some of path, kernel, program, holds, with commas between.")
    ] = "path,kernel,program,holds",
    scope: Scope,
    dpi: Dpi = 200,
) -> None:
    """What do the verdicts on one server rest on? Path over time, kernel, program, and holds, as measured."""
    from latpcap.plot.evidence import needed

    capture = _opened(file, needed(), scope)
    save(lambda: capture.distributions(server=server, panels=panels.split(",")), output, dpi=dpi)


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
        scope = opening.stream(file, stream, keylog=keylog)
    else:
        scope = opening.read(file, display_filter, keylog=keylog).stream(stream)
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


def register(app: typer.Typer) -> None:
    """Adds `latency` and the commands of `plot` to the program."""
    app.command()(latency)
    app.add_typer(plots, name="plot")
