"""Why were these requests slow? The tables and findings of a capture in, one answer in plain words and numbers out.

`Why.to_dict()` has every number of its text; what is not a finding (percentiles, counts, the frames' bytes) is computed
here. Which lines the text has, `text.py` decides; which finding leads, `headline.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from latpcap import arrays, findings, spill, words
from latpcap import presentation as show
from latpcap.answers import capture_kind, headline, text, traffic
from latpcap.answers.types import Family, Head, OneExchange, Overall, Request, Row, Skipped, Slow, Total
from latpcap.findings import evidence, fixes, lookups, openings, quality, socket_options, transfers
from latpcap.findings.schema import Finding, Grade, LatencyFinding
from latpcap.limits import LIMITS
from latpcap.options import TableName
from latpcap.tables import NS_PER_MS, SETUP, Completeness, HasTables, of_stretches, stretches
from latpcap.user_waits import cause_totals, proxies, slow_requests
from latpcap.vocabulary import BACKEND, PROVEN, STALL

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.side_sources import SideSource


class Subject(HasTables, Protocol):
    """What an answer is about: a capture, a part of one, or many captures together."""

    name: str
    frames: int

    @property
    def title(self) -> str:
        """What it is, in a few words."""

    @property
    def display_filter(self) -> str | None:
        """What it was limited to."""

    @property
    def seconds(self) -> float:
        """How long it lasts."""

    @property
    def damage(self) -> Sequence[str]:
        """A sentence for each place where rows were lost."""

    @property
    def unfiltered(self) -> HasTables:
        """The whole of which this is a part."""

    def rows(self, name: TableName) -> int:
        """How many rows a table has."""


@dataclass(frozen=True)
class Question:
    """What an answer is to be about: a threshold of its own, one server, or a list of so many."""

    slow_ms: float | None = None
    server: str | None = None
    top: int | None = None


EVERYTHING = Question()

WHY_VERSION = 3
"""Of `Why.to_dict()`. It rises when a key goes, or changes its name or meaning; `latpcap schema why` tells the form."""


class Why:
    """Why was it slow, who waited for whom, how sure is that, and what would mend it?

    `str(why)` is the answer in at most 15 lines; `to_dict()` has every number of it, durations in ms.
    """

    def __init__(self, data: Overall | OneExchange):
        self.lang = words.current()
        """The language of its sentences: that in which it was made."""
        self.data = data
        """What `to_dict` gives, with findings, senders and checks as dataclasses."""

    @classmethod
    def of(
        cls,
        capture: Subject,
        scope: HasTables,
        *,
        stream: int | None = None,
        question: Question = EVERYTHING,
    ) -> Why:
        """Why were the exchanges of this capture slow? `scope` is the capture or, with its number, a stream of it."""
        return cls(_overall(capture, scope, stream, question))

    @classmethod
    def of_exchange(cls, capture: Subject, number: int) -> Why:
        """Why was this one exchange slow? IndexError where there is no such exchange."""
        return cls(_one_exchange(capture, number))

    def with_beside(self, added: Sequence[SideSource]) -> Why:
        """Add what a trace or a log shows; gives the answer itself where there is none. Where a trace of the headline's
        server contradicts it, the headline names that, and there is no fix.
        """
        if not added or self.data["kind"] != "overall":
            return self
        data: Overall = {**self.data, "beside": [one.to_dict() for one in added]}
        if otherwise := headline.contradicted(data):
            data["headline"], data["fix"] = words.say("but", headline=data["headline"][:-1], but=otherwise), None
        return Why(data)

    def to_dict(self) -> dict[str, Any]:
        """Which numbers stand behind the answer? Plain dicts, lists, strings and numbers (for JSON)."""
        plain: dict[str, Any] = {"schema": WHY_VERSION, **self.data}
        for name in ("findings", "events", "quality"):
            if name in plain:
                plain[name] = [row.to_dict() for row in plain[name]]
        if self._lead is not None:
            plain["findings"].insert(0, self._lead.to_dict())
        if plain.get("lead") is not None:
            plain["lead"] = plain["lead"].to_dict()
        if "senders" in plain:
            plain["senders"] = {side: asdict(pool) for side, pool in plain["senders"].items()}
        return plain

    @property
    def _lead(self) -> Finding | None:
        """The finding whose sentence the headline is; None where it speaks of the requests' causes."""
        return self.data["lead"] if self.data["kind"] == "overall" else None

    @property
    def findings(self) -> list[Finding]:
        """The headline's own first; what took time of the requests, the most first; then what happened besides."""
        if self.data["kind"] != "overall":
            return []
        first = [] if self._lead is None else [self._lead]
        return [*first, *self.data["findings"], *(e for e in self.data["events"] if e is not self._lead)]

    @property
    def verdict(self) -> str | None:
        """Which cause is the headline? Of one exchange its top cause, None where it has none."""
        return self.data["verdict"] if self.data["kind"] == "overall" else self.data["top_cause"]

    @property
    def server(self) -> str | None:
        """Whose requests does the headline speak of? "address:port"; None for one exchange, or without requests."""
        return self.data.get("server") if self.data["kind"] == "overall" else None

    @property
    def confidence(self) -> float | None:
        """How sure is the headline? 0.9 and more is proven, above 0.5 probable; None where nothing was judged."""
        return self.data.get("confidence") if self.data["kind"] == "overall" else None

    @property
    def headline(self) -> str:
        """The answer in one sentence; of one exchange, what took the most of it."""
        if self.data["kind"] == "overall":
            return self.data["headline"]
        return str(self).split("\n", 1)[0]

    @property
    def fix(self) -> str | None:
        """The fix of what the headline names; None where nothing is slow, or nothing mends it."""
        return self.data.get("fix") if self.data["kind"] == "overall" else None

    @property
    def grade(self) -> Grade | None:
        """How sure the headline's cause is: proven, probable, suspected, unknown; None without a judged request."""
        if self.data["kind"] != "overall":
            return None
        first = self._lead or headline.pushed(self.data) or next(iter(self.data["findings"]), None)
        return first.grade if first is not None else None

    @property
    def picture(self) -> dict[str, int]:
        """Which flow graph shows the evidence? Arguments of `Capture.flow_graph` ("exchange"), or the "stream" whose
        graph it is; empty where no packets of TCP show it.
        """
        if self.data["kind"] == "exchange":
            return {"exchange": self.data["exchange"]}
        if self._lead is None and "typical" in self.data:
            typical = self.data["typical"]
            known = typical["exchange"] < self.data["exchanges"]  # else it is a set-up, or a pause
            return {"exchange": typical["exchange"]} if known else {"stream": typical["stream"]}
        lead = self._lead or headline.pushed(self.data)
        return {} if lead is None or lead.worst_stream is None else {"stream": lead.worst_stream}

    @property
    def servers(self) -> list[Row]:
        """The servers with requests, the one whose slow requests did the most harm first; empty for one exchange."""
        return list(self.data.get("servers", [])) if self.data["kind"] == "overall" else []

    def for_owner(self) -> list[str]:
        """What does each owner need to know? A paragraph for each team, the headline's first: what, proof, a command
        to check it where the capture lies, and the fix. ValueError for the answer of one exchange.

        >>> print(lp.read().why().for_owner()[0].splitlines()[0])
        For whoever runs the server 192.168.0.30:8080
        """
        if self.data["kind"] != "overall":
            raise ValueError("one exchange has one answer: paragraphs for owners are of a capture")
        with words.language(self.lang):
            return text.paragraphs(self.data, self.data["headline"])

    def __str__(self) -> str:
        with words.language(self.lang):
            return text.one_exchange(self.data) if self.data["kind"] == "exchange" else text.overall(self.data)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from latpcap import html

        title, _, rest = str(self).partition("\n")
        return html.card(title, html.text(rest))


def _head(capture: Subject) -> Head:
    return {
        "file": getattr(capture, "called", None) or Path(capture.name).name,
        "filter": capture.display_filter,
        "frames": capture.frames,
        "streams": capture.rows("streams"),
        "exchanges": capture.rows("exchanges"),
        "seconds": capture.seconds,
        "damage": capture.damage,
    }


def _overall(capture: Subject, scope: HasTables, stream: int | None, question: Question) -> Overall:
    """Of a capture, or of one stream of it."""
    data = _judged(capture, scope, stream, question)
    data["lead"] = headline.leading(data)
    data["headline"] = headline.headline(data)
    other = _mostly(data, scope) if stream is None else None
    if other is not None:
        data["headline"] = headline.prepend_main_traffic(data, other)
    if data["capture_kind"] == "scan" and "server" in data:
        data["verdict"] = "scan"  # not what the requests that were answered waited for
    if data.get("pushed", 0) and "slow" in data and data["slow"]["how"] == "none" and data["verdict"] != "scan":
        data["verdict"] = "pushes"  # what its few requests took is nobody's question
    if "fix" in data:
        data["fix"] = _fix(data)
    lead = data["lead"] or headline.pushed(data)
    if lead is not None and (lead is data["lead"] or headline.has_sentence(data, lead)):
        data["verdict"], data["confidence"], data["fix"] = lead.cause, lead.confidence, lead.fix
    return data


def _mostly(data: Overall, scope: HasTables) -> str | None:
    """What most frames are, where few are TCP's and no filter chose them."""
    if not data["streams"] or data["filter"] is not None or not hasattr(scope, "records"):
        return None
    streams = findings.read_from(scope)["streams"]
    segments = sum(int(arrays.numbers(streams, f"{side}_packets").sum()) for side in ("client", "server"))
    if 2 * segments > data["frames"] or data["frames"] < show.MIN_FRAMES:
        return None
    return capture_kind.mostly(scope.records(), segments)


def _fix(data: Overall) -> str | None:
    """The fix of what the headline names; None where nothing is slow and nothing is held up."""
    late, first = headline.late_request(data), data["findings"][0]
    if late is not None:
        return late.fix
    if data["closes_late"] and data["slow"]["count"]:
        return words.fix("late_close")
    if first.grade == "unknown" or not (data["slow"]["how"] != "none" or first.cause == STALL):
        return None
    changed = [e for e in data["events"] if e.kind == "change" and e.sender == data["owners"].get("nagle")]
    here = [e for e in changed if cause_totals.endpoint(e.server, e.server_port) == data["server"]]
    if first.fix is None or first.cause != STALL:
        return first.fix
    if not here:
        return words.say("fix_before_first", fix=first.fix) if first.nodelay == "on" else first.fix
    when = "fix_set_from" if here[-1].nodelay == "on" else "fix_set_before"
    return words.say(when, fix=first.fix, frame=here[-1].worst_frames[0])


def _judged(capture: Subject, scope: HasTables, stream: int | None, question: Question) -> Overall:
    data = cast(Overall, {"kind": "overall", **_head(capture), "scope": stream})
    tables = findings.read_from(scope)
    streams = tables["streams"]
    checks = quality.judge(tables)
    data["quality"] = checks
    position, positions = arrays.codes(streams, "position")
    data["positions"] = sorted(word for code, word in enumerate(positions) if (position == code).any())
    data["lost"] = quality.lost(streams, tables["exchanges"])
    ledger = cause_totals.CauseTotals(streams, tables["exchanges"], tables["causes"], question.slow_ms)
    if question.server is not None:
        ledger.put_first(question.server, lambda server: evidence.names_of(server, tables))
    found = findings.rows(tables, checks, ledger, servers=1)
    data["findings"] = [f for f in found if isinstance(f, LatencyFinding)]
    data["events"] = [f for f in found if f.kind != "latency"]
    known = capture_kind.kind_of(tables, data["events"], alone=not ledger.servers)
    if known is None and not streams.num_rows and data["filter"] is None and hasattr(scope, "records"):
        known = capture_kind.without_tcp(scope.records())
    data["capture_kind"], data["capture_sentence"] = known or ("requests" if ledger.servers else "nothing", "")
    data["dns"] = lookups.summary(tables)
    if not ledger.servers:
        data["verdict"] = "no_exchanges"
        data["silent"], data["shook"], data["ends"] = _silent(streams), _shook(streams), _ends(streams)
        data["open_ms"] = _open_ms(streams, tables["exchanges"])
        bare = not streams.num_rows and data["filter"] is None
        data["skipped"] = _skipped(tables["issues"]) if bare else []
        data["pings"] = tables["probes"].num_rows if bare else 0  # without TCP there are no others
        return data
    server = ledger.servers[0]
    items = ledger.spent(server)
    data["server"], data["servers"], data["shown"] = (
        server.name,
        _servers(ledger, data["quality"], tables["exchanges"]),
        question.top or 0,
    )
    software = evidence.software_of(server, tables)
    names = evidence.names_of(server, tables)
    data["traffic"] = traffic.of(tables["exchanges"], server.all_requests, server.port, software, names)
    data["slow"] = _slow(server, items, tables, question.slow_ms)
    data["families"] = _families(items, server)
    data["pauses"] = openings.pauses(tables, server.address, server.port)
    data["cut"], data["incomplete"], data["complete"] = server.cut, server.incomplete, len(server.rows)
    data["goodbyes"] = server.goodbyes
    data["p50_ms"], data["p90_ms"], data["p99_ms"] = (arrays.percentile(server.latency, s) for s in (0.50, 0.90, 0.99))
    data["total_ms"] = server.total_ms
    data["causes"] = _totals(items, tables["causes"])
    if not data["findings"]:
        data["verdict"] = "no_time"
        return data
    _main(data, items, tables)
    if items[0].owner == BACKEND:
        at = proxies.source(server, items[0].cause, ledger, tables["exchanges"])
        sentence = fixes.backend_clause(items[0].cause, at, headline.phrase(data["findings"][0]))
        data["backend"] = {"server": at.server.name if at else fixes.unknown_backend(), "text": sentence}
    pooled = findings.by_server(capture.arrow("evidence")).get((server.address, server.port), [])
    data["senders"] = {side: socket_options.pool(pooled, side) for side in ("server", "client")}
    data["pushed"] = _pushes(tables, server)
    data["halves"] = _halves(data, server, tables)
    if data["halves"]:
        first = data["findings"][0]
        data["confidence"] = min(first.confidence, LIMITS["mixed_confidence"])
        data["findings"][0] = replace(
            first, grade="probable", confidence=data["confidence"], proven=0, rival=words.say("rival_halves"),
            rival_lost=words.say("rival_halves_lost", n=data["halves"]),
        )  # fmt: skip
    stall_frames(data, capture.unfiltered.arrow)
    return data


def _pushes(tables: Mapping[str, pa.Table], server: cause_totals.Server) -> int:
    """How many messages did this server push, where they are nearly all that it said? Else 0."""
    pushed = findings.pushes_of(tables)
    if pushed is None:
        return 0
    streams = tables["streams"]
    address, addresses = arrays.codes(streams, "server")
    here = address == arrays.code_of(addresses, server.address)
    here &= arrays.numbers(streams, "server_port") == server.port
    many = int(pushed.of_streams(arrays.numbers(streams, "stream")[here]).sum())
    return many if many >= show.MIN_PUSHES_PER_REQUEST * len(server.all_requests) else 0


def _halves(data: Overall, server: cause_totals.Server, tables: Mapping[str, pa.Table]) -> int:
    """Where nothing but the path takes time, and no reader sees messages: so many turns began at the client just as the
    answer to the one before came, every second one. They may be second halves, held until that was acknowledged.
    """
    import numpy as np

    first, exchanges, streams = data["findings"][0], tables["exchanges"], tables["streams"]
    hidden = first.cause == "network" and data["slow"]["how"] == "none" and not data["senders"]["client"].refuted
    if not hidden or len(server.rows) < 2 * show.MIN_HALVES or data["traffic"]["protocol"] != "tls":
        return 0
    rows = np.sort(server.rows)
    stream, start, end = (arrays.numbers(exchanges, name)[rows] for name in ("stream", "start", "end"))
    rows = np.lexsort((start, stream))
    stream, start, end = stream[rows], start[rows], end[rows]
    place = spill.places(arrays.numbers(streams, "stream"), stream)
    near = np.nan_to_num(arrays.numbers(streams, "client_rtt_ms").astype(float)[place[1:]], nan=np.inf) < show.NEAR_MS
    gap = (start[1:] - end[:-1]) / NS_PER_MS
    second = (stream[1:] == stream[:-1]) & near & (gap >= 0) & (gap <= show.MAX_HALF_GAP_MS)
    count, in_a_row = int(second.sum()), bool((second[1:] & second[:-1]).any())
    return count if count >= show.MIN_HALVES and not in_a_row and count >= show.MIN_HALVES_SHARE * len(gap) else 0


def _servers(ledger: cause_totals.CauseTotals, checks: Sequence[quality.Check], exchanges: pa.Table) -> list[Row]:
    """The servers with requests, in their order, those behind a proxy after it: how many requests, how many slow,
    and what takes their time.
    """
    rows: list[Row] = []
    most = quality.ceiling(list(checks))
    behind = proxies.fronts(ledger.servers, exchanges)
    ranks = {share: arrays.nearest_ranks([len(one.rows) for one in ledger.servers], share) for share in (0.50, 0.99)}
    for place in proxies.in_order(len(ledger.servers), behind):
        server, front = ledger.servers[place], behind.get(place)
        items = ledger.spent(server) if place < show.MIN_SERVERS_EXAMINED else []
        families = slow_requests.by_family(items, server.waited_for, len(server.rows)) if items else {}
        rows.append(
            {
                "server": server.name,
                "behind": None if front is None else ledger.servers[front].name,
                "requests": len(server.rows),
                "slow": 0 if items and _unfelt(server, items) else len(server.slow),
                "p50_ms": float(server.latency[ranks[0.50][place]]),
                "p99_ms": float(server.latency[ranks[0.99][place]]),
                "total_ms": server.total_ms,
                "family": next(iter(families), None),
                "grade": findings.grade(items[0].cause, min(most, items[0].confidence)) if items else None,
            }
        )
    return rows


def _families(items: list[cause_totals.CauseTotal], server: cause_totals.Server) -> list[Family]:
    spent = slow_requests.by_family(items, server.waited_for, len(server.rows))
    total = sum(sum(causes.values()) for causes in spent.values()) or 1.0
    return [
        {"family": name, "ms": sum(causes.values()), "share": sum(causes.values()) / total, "causes": causes}
        for name, causes in spent.items()
    ]


def _slow(
    server: cause_totals.Server,
    items: list[cause_totals.CauseTotal],
    tables: Mapping[str, pa.Table],
    slow_ms: float | None,
) -> Slow:
    """How many of these requests are slow, from where on, and which is the worst?"""
    import numpy as np

    exchanges, count = tables["exchanges"], len(server.rows)
    mine = spill.row_mask(server.rows, exchanges.num_rows)
    took, limits, polls, streams = spill.Column("float64"), spill.Column("float64"), 0, 0
    for span, part in arrays.sliced(exchanges):
        which = mine[span]
        took.add(np.nan_to_num(arrays.numbers(part, "network_ms").astype(float))[which])
        limits.add(slow_requests.limits(part, slow_ms)[which])
        polls += int(slow_requests.polls(part)[which].sum())
        streams += int(slow_requests.streams(part)[which].sum())
    unfelt = slow_ms is None and _unfelt(server, items)
    return {
        "how": "none" if unfelt else slow_requests.how(len(server.slow), count),
        "count": len(server.slow),
        "of": count,
        "limit_ms": float(spill.nth_smallest(limits.array(), count // 2)),
        "path_ms": float(spill.nth_smallest(took.array(), count // 2)),
        "trip_ms": _trip_ms(server, tables["streams"]),
        "unread": server.unread,
        "polls": polls + server.polls,
        "streams": streams,
        "in_queue": transfers.in_queue(server, tables) if "transfers" in tables else 0,
        "worst": _worst(server, items, exchanges) if len(server.slow) else None,
    }


def _trip_ms(server: cause_totals.Server, streams: pa.Table) -> float:
    """The round trip of this server's handshakes at the median; 0 where none was seen."""
    import numpy as np

    here = arrays.equals(streams, "server", server.address) & (arrays.numbers(streams, "server_port") == server.port)
    trips = arrays.numbers(streams, "initial_rtt_ms").astype(float)[here]
    trips = trips[~np.isnan(trips)]
    return float(np.median(trips)) if len(trips) else 0.0


def _unfelt(server: cause_totals.Server, items: list[cause_totals.CauseTotal]) -> bool:
    """Are its slow requests few, and too short for anybody to notice?"""
    if not len(server.slow):
        return False
    longest = float(server.latency[server.rows == server.slow[-1]][0])
    return slow_requests.unfelt(items, server.slow, len(server.rows), longest)


def _worst(server: cause_totals.Server, items: list[cause_totals.CauseTotal], exchanges: pa.Table) -> Request:
    """The slowest request by its name: the request, its frames, and what took the most of it."""
    at = int(server.slow[-1])
    columns = ["exchange", "stream", "method", "target", "request_first_frame", "response_last_frame"]
    [row] = exchanges.select(columns).slice(at, 1).to_pylist()
    spent = [(float(ms), item.cause) for item in items for ms in item.ms[item.rows == at]]
    most, cause = max(spent, default=(0.0, None))
    frames = [frame for frame in (row["request_first_frame"], row["response_last_frame"]) if frame is not None]
    return {
        "exchange": row["exchange"],
        "stream": row["stream"],
        "name": evidence.called(row["method"], row["target"]),
        "latency_ms": float(server.latency[server.rows == at][0]),
        "frames": frames,
        "cause": cause,
        "cause_ms": most,
    }


def _skipped(issues: pa.Table) -> list[Skipped]:
    """What of a capture without TCP was not understood, the most frames first: there may be TCP in it."""
    rows = [row for row in issues.select(["kind", "reason", "count"]).to_pylist() if row["kind"] == "skipped"]
    rows.sort(key=lambda row: -row["count"])
    return [{"reason": row["reason"], "frames": row["count"]} for row in rows]


def _silent(streams: pa.Table) -> dict[str, int]:
    """Connections without any exchange, by how far they got."""
    code, answers = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets")
    data = code & Completeness.DATA != 0
    unanswered = (code & Completeness.SYN != 0) & (answers == 0) & ~data
    counts = {"unanswered": unanswered, "without_data": ~data & ~unanswered, "without_answer": data}
    return {name: int(which.sum()) for name, which in counts.items() if which.any()}


def _open_ms(streams: pa.Table, exchanges: pa.Table) -> float:
    """How long did the request wait that waited the longest for an answer which never was complete? 0 without one."""
    import numpy as np

    requests = np.flatnonzero(~arrays.equals(exchanges, "protocol", SETUP))
    if not len(requests):
        return 0.0
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream")[requests])
    waited = arrays.numbers(streams, "end")[place] - arrays.numbers(exchanges, "request_end")[requests]
    return max(float(waited.max()) / NS_PER_MS, 0.0)


def _shook(streams: pa.Table) -> list[float] | None:
    """The shortest and the longest round trip of the handshakes; None where none is as long as a slow request."""
    import numpy as np

    trips = arrays.numbers(streams, "initial_rtt_ms").astype(float)
    trips = trips[~np.isnan(trips)]
    if not len(trips) or trips.max() < LIMITS["slow_ms"]:
        return None
    return [float(trips.min()), float(trips.max())]


def _ends(streams: pa.Table) -> dict[str, int]:
    """Who closed connections first, and how: how many, by word."""
    closed, by = arrays.codes(streams, "closed_by")
    return {word: n for code, word in enumerate(by) if (n := int((closed == code).sum()))}


def _totals(items: list[cause_totals.CauseTotal], causes: pa.Table) -> list[Total]:
    """Time and exchanges per cause and owner as the table of causes has them, the most time first."""
    import numpy as np

    (cause, causes_of), (owner, owners) = arrays.codes(causes, "cause"), arrays.codes(causes, "owner")
    duration, number = arrays.numbers(causes, "duration_ms"), arrays.numbers(causes, "exchange")
    confidence, levels = arrays.levels(causes, "confidence")
    rows = spill.concatenated([i.causes for i in items])
    if len(rows) and int(number.max()) - int(number.min()) >= 2 * len(number):
        number = np.unique(number, return_inverse=True)[1]  # captures that are joined have numbers far apart
    first = int(number.min()) if len(rows) else 0
    hit = int(number.max()) + 1 - first if len(rows) else 0
    spent: dict[int, list[float]] = {}
    exchanges: dict[int, arrays.Array] = {}
    for span in spill.parts(len(rows)):
        mine = rows[span]
        key, ms = cause[mine].astype(np.int64) * len(owners) + owner[mine], duration[mine]
        sure = (levels >= PROVEN)[confidence[mine]]
        for code in arrays.distinct(key).tolist():
            which = key == code
            total = spent.setdefault(code, [0.0, 0.0])
            total[0] += float(ms[which].sum())
            total[1] += float(ms[which & sure].sum())
            exchanges.setdefault(code, np.zeros(hit, bool))[number[mine[which]] - first] = True
        spill.release_memory()
    found: list[Total] = [
        {
            "cause": causes_of[code // len(owners)],
            "owner": owners[code % len(owners)],
            "total_ms": total,
            "exchanges": int(exchanges[code].sum()),
            "proven_ms": proven,
        }
        for code, (total, proven) in spent.items()
    ]
    return sorted(found, key=lambda t: (-t["total_ms"], t["cause"], t["owner"]))


def _main(data: Overall, items: Sequence[cause_totals.CauseTotal], tables: Mapping[str, pa.Table]) -> None:
    """What the first finding, the one that took the most time, gives the whole headline."""
    import numpy as np

    first, item = data["findings"][0], items[0]
    data["verdict"], data["hit"] = first.cause, first.exchanges
    data["proven"] = first.proven if first.cause == STALL else None
    data["share"] = {
        "p50": {"ms": first.of_p50_ms, "of_ms": data["p50_ms"], "share": first.of_p50_share},
        "p90": {"ms": first.of_p90_ms, "of_ms": data["p90_ms"], "share": first.of_p90_share},
        "p99": {"ms": first.of_p99_ms, "of_ms": data["p99_ms"], "share": first.of_p99_share},
        "all": first.share,
    }
    data["confidence"], data["fix"] = first.confidence, first.fix
    data["owners"] = {"nagle": item.owner, "delayed_ack": item.held_by} if item.held_by else {item.cause: item.owner}
    numbers = arrays.numbers(tables["exchanges"], "exchange")
    at = int(spill.places(numbers, np.array([first.typical_exchange], numbers.dtype))[0])
    pieces, longest = evidence.pieces(item, first.typical_exchange, tables["causes"])
    data["typical"] = {
        "exchange": first.typical_exchange,
        "stream": first.typical_stream,
        "latency_ms": tables["exchanges"]["latency_ms"][at].as_py(),
        "frames": list(first.typical_frames),
        "ms": first.typical_ms,
        "pieces": pieces,
        "longest_ms": longest,
        "owner": item.owner,
        "confidence": first.confidence,
    }
    data["waits_ms"], data["longest_ms"] = _waits_ms(item, items)
    data["fin_released"], data["first_fast"] = _spared(item, tables)
    data["closes_late"] = _closes_late(item, tables["causes"])


def _waits_ms(first: cause_totals.CauseTotal, items: Sequence[cause_totals.CauseTotal]) -> tuple[float, float]:
    """What each slow request waited for the first cause and its family, at the median of those that did and at most;
    beyond the path's round trip, unless that is the cause. 0 where none is slow.
    """
    import numpy as np

    slow, name = np.sort(first.server.slow), slow_requests.family(first.cause)
    waited = np.zeros(len(slow))
    for item in items:
        if slow_requests.family(item.cause) == name and (item.cause != "network" or first.cause == "network"):
            hit = np.isin(item.rows, slow)
            np.add.at(waited, np.searchsorted(slow, item.rows[hit]), item.ms[hit])
        spill.release_memory()
    waited = np.sort(waited[waited > 0])
    return (arrays.percentile(waited, 0.5), float(waited[-1])) if len(waited) else (0.0, 0.0)


def _closes_late(item: cause_totals.CauseTotal, causes: pa.Table) -> bool:
    """Is it mostly the time until the server closed behind its last byte?"""
    rule, rules = arrays.codes(causes, "rule")
    if "late_close" not in rules:
        return False
    mine = item.causes[rule[item.causes] == rules.index("late_close")]
    late = float(arrays.numbers(causes, "duration_ms")[mine].sum())
    return late > item.total_ms / 2


def _spared(item: cause_totals.CauseTotal, tables: Mapping[str, pa.Table]) -> tuple[int, int]:
    """Of a stall: exchanges whose wait the peer's FIN ended, and first exchanges of streams that had no stall yet."""
    import numpy as np

    if item.cause != STALL:
        return 0, 0
    exchanges, causes = tables["exchanges"], tables["causes"]
    rule, rules = arrays.codes(causes, "rule")
    fin = arrays.code_of(rules, "nagle_fin_release")
    numbers = arrays.numbers(exchanges, "exchange")[item.server.rows]
    ended = arrays.distinct(arrays.numbers(causes, "exchange")[rule == fin])
    index, stream = arrays.numbers(exchanges, "index"), arrays.numbers(exchanges, "stream")
    stalled = spill.row_mask(item.rows, exchanges.num_rows)
    later = arrays.distinct(stream[stalled & (index > 0)])
    first = item.server.rows[index[item.server.rows] == 0]
    first = first[~np.isin(first, item.server.slow)]
    spared = first[~stalled[first] & np.isin(stream[first], later)]
    return int(np.isin(ended, numbers).sum()), len(spared)


def stall_frames(data: Overall, arrow: Callable[[TableName], pa.Table]) -> None:
    """Of a stall: what its three frames carry, and the times between them."""
    frames = data["typical"]["frames"]
    if data["findings"][0].cause != STALL or len(frames) != 3:
        return
    import numpy as np

    events = arrow("events")
    rows = np.flatnonzero(np.isin(arrays.numbers(events, "frame"), frames))
    times, lengths, from_client = (arrays.numbers(events, c)[rows].tolist() for c in ("time", "len", "from_client"))
    if len(times) == 3:
        data["typical"]["bytes"] = [lengths[0], lengths[2]]
        data["typical"]["sender"] = "client" if from_client[0] else "server"
        data["typical"]["ack_after_ms"] = (times[1] - times[0]) / NS_PER_MS
        data["typical"]["release_us"] = (times[2] - times[1]) / 1e3


def _one_exchange(capture: Subject, number: int) -> OneExchange:
    """Of one exchange. IndexError where there is no such exchange."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = stretches(capture)
    found = (
        table.filter(pc.equal(table["exchange"], pa.scalar(number, pa.uint64()))) if 0 <= number < 2**63 else table[:0]
    )
    if found.num_rows == 0:
        have = table["exchange"]
        if not len(have):
            raise IndexError(f"no exchange {number}: {capture.title} has none")
        raise IndexError(f"no exchange {number}: those of {capture.title} are {have[0]} to {have[-1]}")
    row = found.select(
        ["exchange", "stream", "index", "protocol", "method", "target", "status", "latency_ms", "client_latency_ms",
         "ttfb_ms", "complete", "cut_by", "request_first_frame", "response_last_frame", "top_cause"]
    ).to_pylist()[0]  # fmt: skip
    causes = of_stretches(capture.arrow("causes"))
    mine = causes.filter(pc.equal(causes["exchange"], pa.scalar(number, pa.uint64())))
    data = cast(OneExchange, {"kind": "exchange", **_head(capture), **row})
    data["causes"] = mine.select(
        [
            "cause",
            "parent",
            "owner",
            "duration_ms",
            "from_frame",
            "to_frame",
            "evidence",
            "rule",
            "confidence",
        ]
    ).to_pylist()
    return data
