"""The command `why`: one capture's answer, a line for each of several captures, or one answer over all of them."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar

import typer

from latpcap import words
from latpcap.cli import archive, colour, export, joining, opening
from latpcap.cli.options import (
    EXIT_UNREADABLE,
    SAMPLE,
    ExchangeOption,
    FilterOption,
    KeylogOption,
    ServerOption,
    StreamOption,
    drawable_language,
    in_language,
    over_time,
    save,
    span,
)
from latpcap.errors import CaptureError, NoSuchRowError
from latpcap.format import count, escaped, ms, shortest

if TYPE_CHECKING:
    from latpcap.answers.why import Why
    from latpcap.archive.sites import Sites
    from latpcap.views.capture import Capture


_Answer = TypeVar("_Answer")

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Captures (pcap, pcapng; also packed) or results of a batch; - is stdin, --sample the sample. A line each "
        "where there are several.",
    ),
]


@over_time
@in_language
def why(
    files: Files,
    stream: StreamOption = None,
    exchange: ExchangeOption = None,
    display_filter: FilterOption = None,
    keylog: KeylogOption = None,
    join: Annotated[
        bool,
        typer.Option("--join", help="Captures of the same traffic, from the client's side on; one beside a proxy."),
    ] = False,
    together: Annotated[bool, typer.Option("--together", help="One answer over all of several captures.")] = False,
    sites: Annotated[
        str, typer.Option("--sites", help="Private addresses of several captures: auto, one, folder or capture.")
    ] = "auto",
    slow_ms: Annotated[
        float | None,
        typer.Option("--slow-ms", min=0, help="Slow is what takes so many ms beyond the path's round trip."),
    ] = None,
    server: ServerOption = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="List so many servers.")] = None,
    strace: Annotated[
        str | None,
        typer.Option("--strace", help="A trace of the program's system calls (strace -f -tt) beside it."),
    ] = None,
    access_log: Annotated[
        str | None,
        typer.Option("--access-log", help="The server's log (combined, with the request's time) beside it."),
    ] = None,
    for_owner: Annotated[
        bool, typer.Option("--for-owner", help="A paragraph for each team: what, proof, how to check it, fix.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="The answer and the flow graph of its evidence: .png, .svg or .pdf."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every number of the answer as JSON.")] = False,
    actions: Annotated[
        bool, typer.Option("--actions", help="With --json: what clients did to get one thing, and its parts.")
    ] = False,
) -> None:
    """Why were the requests slow, who waited for whom, and which frames show it? Also of the results of a batch."""
    is_whole = stream is None and exchange is None and display_filter is None and not span()
    apart = _apart(sites)
    wanted: Wanted = {"slow_ms": slow_ms, "server": server, "top": top}
    if picture is not None and (join or strace or access_log or len(files) > 1):
        raise typer.BadParameter("is for the answer of one capture", param_hint="--picture")
    if for_owner and (join or as_json or exchange is not None or len(files) > 1):
        raise typer.BadParameter("is for the text of one capture's answer", param_hint="--for-owner")
    if actions and (not as_json or join or len(files) > 1 or stream is not None or exchange is not None):
        raise typer.BadParameter("is for --json of one capture, or of the results of a batch", param_hint="--actions")
    if join:
        limited = strace or access_log or slow_ms or server or top or together
        if not is_whole or limited:
            raise typer.BadParameter("takes captures, the client's side first, and no limit", param_hint="--join")
        pair = joining.every(files, keylog).why()
        typer.echo(json.dumps(pair.to_dict(), indent=2) if as_json else colour.answer(str(pair)))
        return
    if strace is not None or access_log is not None:
        if len(files) > 1 or stream is not None or exchange is not None:
            raise typer.BadParameter("is for one capture, as a whole", param_hint="--strace, --access-log")
        capture = opening.read(files[0], display_filter, keylog=keylog)
        report = _about(wanted, partial(capture.why, strace=strace, access_log=access_log))
        typer.echo(json.dumps(report.to_dict(), indent=2) if as_json else _text(report, for_owner))
        return
    if len(files) == 1 or together:
        if len(files) > 1 and not is_whole:
            raise typer.BadParameter("is about whole captures, without a limit", param_hint="--together")

        def ask() -> Why:
            several = len(files) > 1
            answer = _over_all(files, keylog, wanted, apart) if several else _stored(files[0], is_whole, wanted, apart)
            if answer is None and is_whole:
                answer = _about(wanted, opening.answer_view(files[0], keylog=keylog).why)
            return answer or _of(opening.read(files[0], display_filter, keylog=keylog), stream, exchange, wanted)

        answer = ask()
        data = {**answer.to_dict(), "actions": _actions(files[0], display_filter, keylog)} if actions else None
        typer.echo(json.dumps(data or answer.to_dict(), indent=2) if as_json else _text(answer, for_owner))
        if len(files) == 1 and not (as_json or for_owner or display_filter):
            _picture(files[0], answer)
        if picture is not None:
            with drawable_language() as lang:
                drawn = answer if answer.lang == lang else ask()
                _draw(drawn, opening.read(files[0], display_filter, keylog=keylog), stream, picture)
        return
    if not (stream is None and exchange is None):
        raise typer.BadParameter("streams and exchanges are numbered within a capture: give one file")

    def of_file(file: str) -> Why:
        capture = (
            opening.answer_view(file, keylog=keylog) if is_whole else opening.read(file, display_filter, keylog=keylog)
        )
        return capture.why(slow_ms=slow_ms, top=top)

    _each(files, lambda file: _stored(file, is_whole, wanted, apart) or of_file(file), as_json=as_json)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(why)


def _actions(file: str, display_filter: str | None, keylog: str | None) -> list[dict[str, Any]]:
    """Return the rows of the table `actions`; the answer itself does not need them."""
    from latpcap.archive.public import open_results
    from latpcap.archive.results import is_results

    if file != "-" and is_results(file):
        return export.rows(open_results(file).to_arrow("actions"))
    return export.rows(opening.read(file, display_filter, keylog=keylog).arrow("actions"))


class Wanted(TypedDict):
    """Options of `why` besides stream and exchange."""

    slow_ms: float | None
    server: str | None
    top: int | None


def _text(answer: Why, for_owner: bool) -> str:
    return "\n\n".join(answer.for_owner()) if for_owner else colour.answer(str(answer))


def _apart(sites: str) -> Sites:
    from latpcap.archive.sites import checked

    try:
        return checked(sites)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--sites") from None


def _picture(file: str, answer: Why) -> None:
    """Print the command that draws the evidence, after the answer."""
    if file == "-" or not answer.picture:
        return
    from latpcap.reading import sources

    ((name, number),) = answer.picture.items()
    file = SAMPLE if file == str(sources.SAMPLE) else file
    typer.echo(words.line("picture", f"latpcap flow {escaped(shlex.quote(file))} --{name} {number} -o flow.png"))


def _stored(file: str, is_whole: bool, wanted: Wanted, sites: Sites) -> Why | None:
    return _about(wanted, lambda **of: archive.why(file, is_whole=is_whole, sites=sites, **of))


def _about(wanted: Wanted, why: Callable[..., _Answer]) -> _Answer:
    try:
        return why(**wanted)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--server") from None


def _of(capture: Capture, stream: int | None, exchange: str | None, wanted: Wanted) -> Why:
    which: Any = int(exchange) if exchange is not None and exchange.isdecimal() else exchange
    try:
        return capture.why(stream=stream, exchange=which, **wanted)
    except ValueError as problem:
        hint = "--exchange" if exchange is not None else "--server"
        raise typer.BadParameter(str(problem), param_hint=hint) from None


def _draw(answer: Why, capture: Capture, stream: int | None, picture: Path) -> None:
    """Write the answer above the flow graph of its evidence, or of the slowest request if it names none."""
    from latpcap.plot.ticket import Ticket

    shown = answer.picture
    try:
        if stream is not None and "exchange" not in shown:
            graph = capture.stream(stream).flow_graph()
        elif "stream" in shown:
            graph = capture.stream(shown["stream"]).flow_graph()
        else:
            graph = capture.flow_graph(exchange=shown.get("exchange", "worst"))
    except (NoSuchRowError, ValueError) as problem:
        raise typer.BadParameter(f"nothing to draw: {problem}", param_hint="--picture") from None
    save(lambda: Ticket(str(answer), graph), picture)


def _each(files: list[str], why: Callable[[str], Why], *, as_json: bool) -> None:
    """Print a line for each file as soon as it is known; a file that cannot be read is reported and skipped."""
    names = shortest(files)
    width = max(map(len, names))
    answers: list[dict[str, Any]] = []
    failed = False
    for file, name in zip(files, names, strict=True):
        try:
            answer = why(file)
        except CaptureError as problem:
            typer.echo(f"latpcap: {problem}", err=True)
            failed = True
            continue
        if as_json:
            answers.append(answer.to_dict())
        else:
            typer.echo(f"{name:{width}}  {_line(answer)}")
    if as_json:
        typer.echo(json.dumps(answers, indent=2))
    if failed:
        sys.exit(EXIT_UNREADABLE)


def _line(answer: Why) -> str:
    """Return an answer in one line: the number of requests, their latency, and the headline."""
    row, headline = answer.to_dict(), answer.headline
    if "p50_ms" not in row:
        return headline
    return (
        f"{count(row['exchanges'], 'request'):>16}  p50 {ms(row['p50_ms']):>6}  p99 {ms(row['p99_ms']):>6} ms  "
        f"{headline}"
    )


def _origins(file: str, sources: Any) -> list[Any]:
    """Return the files that a word names; none if it cannot be opened, which the batch reports."""
    try:
        return list(sources.origins(file))
    except CaptureError:
        return []


def _over_all(files: list[str], keylog: str | None, wanted: Wanted, sites: Sites) -> Why:
    """Return one answer over several captures, each analysed by itself, by way of temporary results."""
    from latpcap.archive.public import batch, open_results
    from latpcap.reading import same_traffic, sources

    for sentence in same_traffic.warnings([origin for file in files for origin in _origins(file, sources)]):
        typer.echo(f"latpcap: warning: {sentence}", err=True)
    with tempfile.TemporaryDirectory(prefix="latpcap-") as scratch:
        folder = Path(scratch) / "all"  # the answer begins with this name
        done = batch(files, folder, events=False, series=False, keylog=keylog, quiet=not sys.stderr.isatty())
        for failure in done.failed:
            typer.echo(f"latpcap: warning: {failure}", err=True)
        if len(done.failed) == len(files):
            raise CaptureError(files[0], "none of these could be read")
        answer = open_results(folder, sites=sites).why(**wanted)
        str(answer)  # its text may still read from the folder
        return answer
