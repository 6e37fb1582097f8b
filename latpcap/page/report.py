"""The HTML report of a capture, of the results of a batch, or of a comparison: one file that fetches nothing.

Reads answers, tables and finished pictures; `parts.py` and `pictures.py` make the markup. A content security policy
allows only latpcap's own script to run, so that text from a capture cannot become a script.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from latpcap import arrays, files, words
from latpcap.errors import LatpcapError, OutputError
from latpcap.format import endpoint, requested
from latpcap.lazy import np, pa, pd
from latpcap.page import parts, pictures
from latpcap.page.parts import Column, safe
from latpcap.user_waits.waits import KINDS

if TYPE_CHECKING:
    from latpcap.answers.why import Why
    from latpcap.arrays import Array
    from latpcap.options import Group, Pick, TableName, ThroughputGroup
    from latpcap.plot.flow.graph import FlowGraph
    from latpcap.plot.throughput import Throughput
    from latpcap.plot.waterfall import Waterfall

MAX_ROWS, BARS, GRAPHS, ACTIONS = 500, 25, 4, 12
"""Upper bounds on the rows of a table, the bars of a waterfall, the flow graphs, and the actions."""
_PACKETS = 40
"""Upper bound on the rows of a flow graph."""
_NARROW = ("count", "p50_ms", "p99_ms")
"""Columns of servers that a phone shows."""

EXCHANGES = [
    "exchange",
    "stream",
    "server",
    "server_port",
    "protocol",
    "method",
    "target",
    "status",
    "start",
    "latency_ms",
    "top_cause",
]


class HasTable(Protocol):
    """Numbers by group."""

    @property
    def table(self) -> pd.DataFrame:
        """A row per group."""


class Subject(Protocol):
    """A source with an answer: a capture, a part of one, or the results of a batch."""

    @property
    def title(self) -> str:
        """A short description."""

    @property
    def findings(self) -> pd.DataFrame:
        """The table of findings."""

    def why(self) -> Why:
        """Return the answer."""

    def waterfall(self, *, top: int | None = None) -> Waterfall:
        """Return the waterfall of its longest exchanges."""

    def latency(self, by: Group | None = None) -> HasTable:
        """Return the latencies of its requests."""


class Drawing(Protocol):
    """A source of flow graphs."""

    def flow_graph(self, *, exchange: int | Pick | None = None, max_rows: int | None = None) -> FlowGraph:
        """Return the flow graph of an exchange."""


class Listed(Subject, Protocol):
    """A source with tables of requests."""

    def arrow(self, name: TableName) -> pa.Table:
        """Return one of its tables."""

    def throughput(self, *, by: ThroughputGroup = "direction") -> Throughput:
        """Return the payload over time."""


class Whole(Listed, Drawing, Protocol):
    """A capture."""


def write(path: str | os.PathLike[str], page: str) -> None:
    """Write a page; OutputError for another suffix than .html, or where the file cannot be written."""
    suffix = Path(path).suffix
    if suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"{path}: unknown suffix {suffix!r}; a report is .html")
    try:
        files.write(Path(path), page.encode())
    except OSError as problem:
        raise OutputError(f"{path}: {problem.strerror or problem}") from None


def of_capture(capture: Whole) -> str:
    """Return the report of a capture: actions, answer, servers, findings, rates, time, waterfall, exchanges, flow
    graphs.
    """
    return of_parts(capture, lambda _: capture)


def of_parts(capture: Listed, around: Callable[[Sequence[int]], Drawing]) -> str:
    """Return the report of a source that is read in parts; `around` returns the flow graphs' source for streams."""
    requests = _Requests(capture.arrow("exchanges").select(EXCHANGES))
    evidence = capture.why().picture.get("exchange")
    worst = requests.rows([*requests.of(evidence), *requests.firsts()][:GRAPHS])
    graphs = _graphs(around([row["stream"] for row in worst]), worst, evidence)
    return _page(capture, requests, graphs, capture.arrow("actions"), _rates(capture))


def of_results(results: Subject, exchanges: pa.Table) -> str:
    """Return the report of stored results, without flow graphs, as their captures are not read again."""
    return _page(results, _Requests(exchanges.select(EXCHANGES)), [])


def of_comparison(changes: str, numbers: dict[str, Any], sides: Sequence[Subject]) -> str:
    """Return the report of a comparison: what changed, in words and in numbers, then the answer and the waterfall of
    both sides.
    """
    bodies = [
        _section("page_changed", f"<pre>{parts.safe_lines(changes.splitlines())}</pre>"),
        _section("page_latency", _changes(numbers["metrics"])),
        _section("page_causes", _changes(numbers["causes"])),
    ]
    heads = (("page_before", "page_before_waterfall", "before"), ("page_after", "page_after_waterfall", "after"))
    for (answer_head, waterfall_head, word), side in zip(heads, sides, strict=True):
        bodies.append(_answered(words.say(answer_head, title=side.title), side, word))
        bodies += _waterfall(side, words.say(waterfall_head), f"{word}-waterfall")
    title = " → ".join(side.title for side in sides)
    return _document(title, "latpcap compare", bodies)


def _changes(rows: list[dict[str, Any]]) -> str:
    heads = [Column("name"), *(Column(name, True, 3) for name in ("before", "after", "change", "low", "high"))]
    sentence_by_moved = {True: "page_moved", False: "page_noise", None: "page_unknown"}
    cells = [[*(row[head.name] for head in heads), words.say(sentence_by_moved[row["moved"]])] for row in rows]
    return parts.table([*heads, Column("moved")], cells, stacks=True)


def _actions(actions: pa.Table | None) -> list[str]:
    """Return the section of the longest actions of clients, with the parts of each."""
    if actions is None or not actions.num_rows:
        return []
    order = actions.sort_by([("total_ms", "descending"), ("action", "ascending")]).slice(0, ACTIONS)
    times = ["total_ms", *(f"{kind}_ms" for kind in (*KINDS, "other"))]
    heads = [
        Column("server"),
        Column("what"),
        *(Column(name, True, 1, extra=name != "total_ms") for name in times),
        Column("ended"),
    ]
    rows = [
        [endpoint(row["server"], row["server_port"]), row["name"], *(row[name] for name in times), row["ended"]]
        for row in order.to_pylist()
    ]
    note = words.say("page_actions_all" if len(rows) == actions.num_rows else "page_actions_some",
                     n=len(rows), of=actions.num_rows)  # fmt: skip
    return [_section("page_actions", parts.note(note), parts.table(heads, rows))]


def _rates(capture: Listed) -> list[str]:
    """Return the section of payload over time, if there are transfers."""
    if not capture.arrow("transfers").num_rows:
        return []
    try:
        picture = capture.throughput(by="server")
    except ValueError:  # no segment with payload
        return []
    return [_section("page_rates", f'<figure><div class="wide">{_inline(picture.svg())}</div></figure>')]


def _section(head: str, *bodies: str) -> str:
    """Return a section under this heading of the catalogue, named as its id goes on after "page_"."""
    return parts.section(words.say(head), *bodies, name=head.removeprefix("page_"))


def _page(
    subject: Subject,
    requests: _Requests,
    graphs: list[str],
    actions: pa.Table | None = None,
    rates: Sequence[str] = (),
) -> str:
    """Return the page of a capture or of stored results; sections without rows are left out."""
    text = subject.why().text
    bodies = [*_actions(actions), _section("page_answer", parts.answer(text))]
    if requests.total:
        bodies.append(_section("page_servers", _servers(subject)))
    bodies += _findings(subject)
    bodies += rates
    if len(requests.timed):
        dots = requests.dots()
        if dots.ns.min() < dots.ns.max():
            bodies.append(_timeline(requests, dots))
        bodies += _waterfall(subject, words.say("page_waterfall"), "waterfall")
        bodies.append(_longest(requests))
    if graphs:
        bodies.append(_section("page_flow", *graphs))
    return _document(subject.title, text.title, bodies)


def _answered(head: str, subject: Subject, name: str) -> str:
    text = subject.why().text
    return parts.section(head, parts.answer(text), parts.note(text.title), name=name)


class _Requests:
    """The requests of the report, with columns to select from and rows for those that are named."""

    def __init__(self, exchanges: pa.Table):
        self._table = exchanges
        self.total: int = exchanges.num_rows
        self._latency = arrays.numbers(exchanges, "latency_ms").astype(float)
        self.timed = np.flatnonzero(~np.isnan(self._latency))
        """Rows of the requests with a latency."""
        self.by_length = self.timed[np.argsort(-self._latency[self.timed], kind="stable")]
        """The rows of `timed`, the longest request first."""

    def dots(self) -> pictures.Dots:
        """Return the dots of the timeline."""
        code, causes = arrays.codes(self._table, "top_cause")
        ns = arrays.numbers(self._table, "start")
        return pictures.Dots(ns[self.timed], self._latency[self.timed], code[self.timed], causes)

    def firsts(self) -> list[int]:
        """Return the row of the longest request of each top cause, the longest first."""
        code, _ = arrays.codes(self._table, "top_cause")
        first = np.unique(code[self.by_length], return_index=True)[1]
        return self.by_length[np.sort(first)].tolist()

    def of(self, exchange: int | None) -> list[int]:
        """Return the row of this exchange, in a list; empty for None or an unknown exchange."""
        rows: list[int] = np.flatnonzero(arrays.numbers(self._table, "exchange") == exchange).tolist()
        return rows if exchange is not None else []

    def rows(self, rows: Sequence[int] | Array) -> list[dict[str, Any]]:
        """These rows as dicts: instants in ns, the request in words, and the text shown at the pointer (`tip`)."""
        table = self._table.take(arrays.integers(rows, "int64"))
        index = table.schema.get_field_index("start")
        dicts: list[dict[str, Any]] = table.set_column(index, "ns", table["start"].cast(pa.int64())).to_pylist()
        for row in dicts:
            row["request"] = requested(row["method"], row["target"]) or row["protocol"]
            latency = "" if row["latency_ms"] is None else f"{row['latency_ms']:,.3f} ms, "
            row["tip"] = f"{row['request']}\n{latency}{pictures.instant(row['ns'])} UTC\ntcp.stream eq {row['stream']}"
        return dicts


def _servers(subject: Subject) -> str:
    frame = subject.latency(by="server").table
    names = ["count", "left_out", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms", "requests_per_s"]
    heads = [
        Column("server"),
        *(Column(name, True, 3 if "_" in name[-3:] else 0, extra=name not in _NARROW) for name in names),
    ]
    rows = frame[[head.name for head in heads]].head(MAX_ROWS).itertuples(index=False, name=None)
    return parts.table(heads, rows) + _more(len(frame), "page_more_servers")


def _more(rows: int, note: str) -> str:
    """Return the note on rows that a table leaves out."""
    omitted = rows - MAX_ROWS
    return parts.note(words.say(note, n=omitted)) if omitted > 0 else ""


def _findings(subject: Subject) -> list[str]:
    heads = [Column("server"), Column("cause"), Column("owner"), Column("grade"), Column("exchanges", True),
             Column("total_ms", True, 1), Column("of_p50_ms", True, 1), Column("of_p99_ms", True, 1),
             Column("fix", whole=True), Column("filter", whole=True)]  # fmt: skip
    first_rows = subject.findings.head(MAX_ROWS)[[*(head.name for head in heads), "server_port", "text"]]
    rows = first_rows.astype(object).where(first_rows.notna(), None).to_dict("records")
    if not rows:
        return []
    for row in rows:
        row["server"] = None if row["server"] is None else endpoint(row["server"], row["server_port"])
        row["fix"] = row["fix"] or row["text"]
    cells = [[row[head.name] for head in heads] for row in rows]
    left_out = _more(len(subject.findings), "page_more_findings")
    return [_section("page_findings", parts.table(heads, cells, stacks=True) + left_out)]


def _timeline(requests: _Requests, dots: pictures.Dots) -> str:
    first, last = int(dots.ns.min()), int(dots.ns.max())
    about = words.say("page_dots_merged" if len(dots.ns) > pictures.MAX_DOTS else "page_dots",
                      first=pictures.instant(first), last=pictures.instant(last))  # fmt: skip
    tips = [row["tip"] for row in requests.rows(requests.timed[dots.named()])]
    return _section("page_timeline", parts.note(about), pictures.timeline(dots, tips))


def _waterfall(subject: Subject, head: str, name: str) -> list[str]:
    try:
        plan = subject.waterfall(top=BARS).plan
    except ValueError:  # no exchange
        return []
    sentence = "page_bars_all" if plan.shown == plan.total else "page_bars_some"
    about = parts.note(words.say("page_bars_one" if plan.total == 1 else sentence, n=plan.shown, of=plan.total))
    return [parts.section(head, about, pictures.waterfall(plan), name=name)]


def _longest(requests: _Requests) -> str:
    total, timed = requests.total, len(requests.timed)
    first_rows = requests.rows(requests.by_length[:MAX_ROWS])
    heads = [Column("exchange", True, extra=True), Column("latency_ms", True, 3), Column("request"),
             Column("server", extra=True), Column("top_cause"), Column("status", extra=True), Column("stream", True),
             Column("started", extra=True)]  # fmt: skip
    cells = [
        [row["exchange"], row["latency_ms"], row["request"], endpoint(row["server"], row["server_port"]),
         row["top_cause"], row["status"], row["stream"], pictures.instant(row["ns"])]
        for row in first_rows
    ]  # fmt: skip
    sentence = "page_requests_all" if len(first_rows) == total else "page_requests_some"
    about = words.say(sentence, n=len(first_rows), of=total)
    if timed < total:
        about += words.say("page_unfinished", n=total - timed)
    find = safe(words.say("page_find"))
    box = f'<input type="search" data-table="exchanges-table" placeholder="{find}" aria-label="{find}">'
    table = parts.table(heads, cells, name="exchanges-table")
    return _section("page_exchanges", parts.note(about), box, table)


def _graphs(drawing: Drawing, worst: Sequence[dict[str, Any]], evidence: int | None) -> list[str]:
    """Return the flow graph of the answer's evidence, then that of the longest exchange of each top cause. (The longest
    of all would often show one cause only.)
    """
    figures = []
    for row in {row["exchange"]: row for row in worst}.values():
        try:
            graph = drawing.flow_graph(exchange=row["exchange"], max_rows=_PACKETS)
            svg = _inline(graph.svg())
        except (ValueError, LatpcapError):
            continue
        line = row["tip"].replace("\n", ", ")
        caption = words.say("page_graph_of" if row["top_cause"] else "page_graph", exchange=row["exchange"], about=line,
                            cause=row["top_cause"])  # fmt: skip
        if row["exchange"] == evidence:
            caption = words.say("page_graph_evidence", caption=caption)
        caption = f"<figcaption>{safe(caption, 300)}</figcaption>"
        figures.append(f'<figure class="flow">{caption}<div class="wide">{svg}</div></figure>')
    return figures


def _inline(svg: str) -> str:
    """Return a picture's own element, without what would reach the rest of the page: its head and its style sheet."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    return svg.replace("<svg ", '<svg class="zooms" role="img" ', 1)


@lru_cache(maxsize=2)
def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _document(title: str, about: str, bodies: Sequence[str]) -> str:
    """Return the page of these sections, with links to each; its policy allows no script but its own."""
    script, style = _asset("page.js"), _asset("page.css")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'; base-uri 'none'; "
        "form-action 'none'"
    )
    links = "".join(
        f'<a href="#{name}">{head}</a>'
        for name, head in re.findall(r'<section id="([\w-]+)"><h2>(.*?)</h2>', "".join(bodies))
    )
    head = (
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)} · latpcap</title>\n<style>\n{style}</style>\n"
    )
    top = f"<header><h1>{safe(title)}</h1><p>{safe(about, 300)}</p><nav>{links}</nav></header>\n"
    body = "\n".join(bodies)
    return (
        f'<!DOCTYPE html>\n<html lang="{words.current()}">\n<head>\n{head}</head>\n'
        f"<body>\n<main>\n{top}{body}\n</main>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )
