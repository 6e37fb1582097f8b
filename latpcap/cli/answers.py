"""The command `why`: one capture's answer, a line for each of several captures, or one answer over all of them."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
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


class Limits(TypedDict):
    """Options that limit an answer."""

    slow_ms: float | None
    server: str | None
    top: int | None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Options of `why` that choose captures, a part of them, and what is slow there."""

    stream: StreamOption = None
    exchange: ExchangeOption = None
    display_filter: FilterOption = None
    keylog: KeylogOption = None
    join: Annotated[
        bool,
        typer.Option("--join", help="Captures of the same traffic, from the client's side on; one beside a proxy."),
    ] = False
    together: Annotated[bool, typer.Option("--together", help="One answer over all of several captures.")] = False
    sites: Annotated[
        str, typer.Option("--sites", help="Private addresses of several captures: auto, one, folder or capture.")
    ] = "auto"
    slow_ms: Annotated[
        float | None,
        typer.Option("--slow-ms", min=0, help="Slow is what takes so many ms beyond the path's round trip."),
    ] = None
    server: ServerOption = None
    top: Annotated[int | None, typer.Option("--top", min=1, help="List so many servers.")] = None
    strace: Annotated[
        str | None,
        typer.Option("--strace", help="A trace of the program's system calls (strace -f -tt) beside it."),
    ] = None
    access_log: Annotated[
        str | None,
        typer.Option("--access-log", help="The server's log (combined, with the request's time) beside it."),
    ] = None

    @property
    def is_about_whole(self) -> bool:
        """Whether no stream, exchange, filter or time limits the captures."""
        return self.is_without_number and self.display_filter is None and not span()

    @property
    def is_without_number(self) -> bool:
        """Whether neither a stream nor an exchange is chosen."""
        return self.stream is None and self.exchange is None

    @property
    def limits(self) -> Limits:
        """The keyword arguments of `Capture.why` besides stream and exchange."""
        return {"slow_ms": self.slow_ms, "server": self.server, "top": self.top}

    def read(self, file: str) -> Capture:
        """Read a capture, or its part that passes the filter."""
        return opening.read(file, self.display_filter, keylog=self.keylog)


@dataclass(frozen=True, kw_only=True)
class Form:
    """Options of `why` for how the answer is given."""

    for_owner: Annotated[
        bool, typer.Option("--for-owner", help="A paragraph for each team: what, proof, how to check it, fix.")
    ] = False
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="The answer and the flow graph of its evidence: .png, .svg or .pdf."),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Every number of the answer as JSON.")] = False
    actions: Annotated[
        bool, typer.Option("--actions", help="With --json: what clients did to get one thing, and its parts.")
    ] = False

    def give(self, answer: Why, **more: Any) -> None:
        """Print an answer; `more` is added to its JSON."""
        if self.as_json:
            typer.echo(json.dumps({**answer.to_dict(), **more}, indent=2))
        else:
            typer.echo("\n\n".join(answer.for_owner()) if self.for_owner else colour.answer(str(answer)))


@over_time
@in_language
def why(files: Files, *, selection: Selection, form: Form) -> None:
    """Why were the requests slow, who waited for whom, and which frames show it? Also of the results of a batch."""
    sites = _sites(selection.sites)
    _refuse_forms(files, selection, form)
    if selection.join:
        _joined(files, selection, form)
    elif selection.strace is not None or selection.access_log is not None:
        _with_traces(files, selection, form)
    elif len(files) == 1:
        _single(files[0], selection, form, sites)
    elif selection.together:
        if not selection.is_about_whole:
            raise typer.BadParameter("is about whole captures, without a limit", param_hint="--together")
        form.give(_over_all(files, selection, sites))
    else:
        _each(files, selection, form, sites)


def _refuse_forms(files: list[str], selection: Selection, form: Form) -> None:
    """Raise where the answer cannot be given in this form."""
    is_joined_or_many = selection.join or len(files) > 1
    if form.picture is not None and (is_joined_or_many or selection.strace or selection.access_log):
        raise typer.BadParameter("is for the answer of one capture", param_hint="--picture")
    if form.for_owner and (is_joined_or_many or form.as_json or selection.exchange is not None):
        raise typer.BadParameter("is for the text of one capture's answer", param_hint="--for-owner")
    if form.actions and (is_joined_or_many or not form.as_json or not selection.is_without_number):
        raise typer.BadParameter("is for --json of one capture, or of the results of a batch", param_hint="--actions")


def _joined(files: list[str], selection: Selection, form: Form) -> None:
    """Answer over captures of the same traffic."""
    is_limited = any([selection.strace, selection.access_log, selection.together, *selection.limits.values()])
    if is_limited or not selection.is_about_whole:
        raise typer.BadParameter("takes captures, the client's side first, and no limit", param_hint="--join")
    answer = joining.every(files, selection.keylog).why()
    typer.echo(json.dumps(answer.to_dict(), indent=2) if form.as_json else colour.answer(str(answer)))


def _with_traces(files: list[str], selection: Selection, form: Form) -> None:
    """Answer for one capture and what was recorded beside it."""
    if len(files) > 1 or not selection.is_without_number:
        raise typer.BadParameter("is for one capture, as a whole", param_hint="--strace, --access-log")
    capture = selection.read(files[0])
    form.give(_limited(selection, partial(capture.why, strace=selection.strace, access_log=selection.access_log)))


def _single(file: str, selection: Selection, form: Form, sites: Sites) -> None:
    """Answer for one capture or for the results of a batch, with a picture if wanted."""
    answer = _of_file(file, selection, sites)
    form.give(answer, **({"actions": _actions(file, selection)} if form.actions else {}))
    if not (form.as_json or form.for_owner or selection.display_filter):
        _print_picture_command(file, answer)
    if form.picture is not None:
        with drawable_language() as lang:
            drawn_answer = answer if answer.lang == lang else _of_file(file, selection, sites)
            _draw(drawn_answer, selection.read(file), selection.stream, form.picture)


def _of_file(file: str, selection: Selection, sites: Sites) -> Why:
    if (stored := _stored(file, selection, sites)) is not None:
        return stored
    if selection.is_about_whole:
        return _limited(selection, opening.open_answer_view(file, keylog=selection.keylog).why)
    return _of_part(selection.read(file), selection)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(why)


def _actions(file: str, selection: Selection) -> list[dict[str, Any]]:
    """Return the rows of the table `actions`; the answer itself does not need them."""
    from latpcap.archive.public import open_results
    from latpcap.archive.results import is_results

    if file != "-" and is_results(file):
        return export.rows(open_results(file).to_arrow("actions"))
    return export.rows(selection.read(file).arrow("actions"))


def _sites(sites: str) -> Sites:
    from latpcap.archive.sites import checked

    try:
        return checked(sites)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--sites") from None


def _print_picture_command(file: str, answer: Why) -> None:
    """Print the command that draws the evidence."""
    if file == "-" or not answer.picture:
        return
    from latpcap.reading import sources

    ((name, number),) = answer.picture.items()
    file = SAMPLE if file == str(sources.SAMPLE) else file
    typer.echo(words.line("picture", f"latpcap flow {escaped(shlex.quote(file))} --{name} {number} -o flow.png"))


def _stored(file: str, selection: Selection, sites: Sites) -> Why | None:
    """Return the answer over the results of a batch; None where `file` is none."""
    return _limited(selection, partial(archive.why, file, is_whole=selection.is_about_whole, sites=sites))


def _limited(selection: Selection, why: Callable[..., _Answer]) -> _Answer:
    try:
        return why(**selection.limits)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--server") from None


def _of_part(capture: Capture, selection: Selection) -> Why:
    exchange: Any = selection.exchange
    if exchange is not None and exchange.isdecimal():
        exchange = int(exchange)
    try:
        return capture.why(stream=selection.stream, exchange=exchange, **selection.limits)
    except ValueError as problem:
        hint = "--exchange" if exchange is not None else "--server"
        raise typer.BadParameter(str(problem), param_hint=hint) from None


def _draw(answer: Why, capture: Capture, stream: int | None, picture: Path) -> None:
    """Write the answer above the flow graph of its evidence, or of the slowest request if it names none."""
    from latpcap.plot.ticket import Ticket

    evidence = answer.picture
    try:
        if stream is not None and "exchange" not in evidence:
            graph = capture.stream(stream).flow_graph()
        elif "stream" in evidence:
            graph = capture.stream(evidence["stream"]).flow_graph()
        else:
            graph = capture.flow_graph(exchange=evidence.get("exchange", "worst"))
    except (NoSuchRowError, ValueError) as problem:
        raise typer.BadParameter(f"nothing to draw: {problem}", param_hint="--picture") from None
    save(lambda: Ticket(answer.text, graph), picture)


def _each(files: list[str], selection: Selection, form: Form, sites: Sites) -> None:
    """Print a line for each file as soon as it is known; a file that cannot be read is reported and skipped."""
    if not selection.is_without_number:
        raise typer.BadParameter("streams and exchanges are numbered within a capture: give one file")
    names = shortest(files)
    width = max(map(len, names))
    answers: list[dict[str, Any]] = []
    failed = False
    for file, name in zip(files, names, strict=True):
        try:
            answer = _stored(file, selection, sites) or _without_server(file, selection)
        except CaptureError as problem:
            typer.echo(f"latpcap: {problem}", err=True)
            failed = True
            continue
        if form.as_json:
            answers.append(answer.to_dict())
        else:
            typer.echo(f"{name:{width}}  {_line(answer)}")
    if form.as_json:
        typer.echo(json.dumps(answers, indent=2))
    if failed:
        sys.exit(EXIT_UNREADABLE)


def _without_server(file: str, selection: Selection) -> Why:
    """Answer for one of several captures, which `--server` does not limit."""
    is_whole = selection.is_about_whole
    capture = opening.open_answer_view(file, keylog=selection.keylog) if is_whole else selection.read(file)
    return capture.why(slow_ms=selection.slow_ms, top=selection.top)


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


def _over_all(files: list[str], selection: Selection, sites: Sites) -> Why:
    """Return one answer over several captures, each analysed by itself, by way of temporary results."""
    from latpcap.archive.public import batch, open_results
    from latpcap.reading import same_traffic, sources

    for sentence in same_traffic.warnings([origin for file in files for origin in _origins(file, sources)]):
        typer.echo(f"latpcap: warning: {sentence}", err=True)
    with tempfile.TemporaryDirectory(prefix="latpcap-") as scratch:
        folder = Path(scratch) / "all"  # the answer begins with this name
        done = batch(files, folder, events=False, series=False, keylog=selection.keylog, quiet=not sys.stderr.isatty())
        for failure in done.failed:
            typer.echo(f"latpcap: warning: {failure}", err=True)
        if len(done.failed) == len(files):
            raise CaptureError(files[0], "none of these could be read")
        answer = open_results(folder, sites=sites).why(**selection.limits)
        str(answer)  # its text may still read from the folder
        return answer
