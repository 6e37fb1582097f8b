"""The answer `Why`: reads the tables and findings of a capture, returns text and numbers.

This module computes the numbers that are not in findings: percentiles, counts, the bytes of frames. `headline.py`
chooses the leading finding, `text.py` the lines of the text. `Why.to_dict()` has every number of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from latpcap import arrays, findings, spill, words
from latpcap import presentation as show
from latpcap.answers import capture_kind, headline, text, traffic, types
from latpcap.answers.text import Text
from latpcap.answers.types import Facts, Head, Judged, NoRequests, OneExchange, Overall, Typical, WithRequests
from latpcap.errors import NoSuchRowError
from latpcap.findings import evidence, fixes, lookups, openings, quality, socket_options, transfers
from latpcap.findings.schema import Finding, Grade, LatencyFinding
from latpcap.lazy import np, pa, pc
from latpcap.limits import LIMITS
from latpcap.options import TableName
from latpcap.tables import NS_PER_MS, Completeness, HasTables, of_stretches, read_stretches, request_mask
from latpcap.user_waits import cause_totals, proxies, slow_requests
from latpcap.user_waits.servers import Server
from latpcap.vocabulary import BACKEND, PROVEN, STALL

if TYPE_CHECKING:
    from latpcap.side_sources import SideSource


class Subject(HasTables, Protocol):
    """What an answer is about: a capture, a part of one, or several captures together."""

    name: str
    frames: int

    @property
    def title(self) -> str:
        """A short name for error messages."""

    @property
    def display_filter(self) -> str | None:
        """The display filter that selected its packets; None without one."""

    @property
    def seconds(self) -> float:
        """Time from its first packet to its last one."""

    @property
    def damage(self) -> Sequence[str]:
        """One sentence for each place where rows were lost."""

    @property
    def unfiltered(self) -> HasTables:
        """The whole of which this is a part."""

    def rows(self, name: TableName) -> int:
        """Return the number of rows of a table."""


@dataclass(frozen=True)
class Question:
    """Options of an answer: a slowness threshold, the server to start with, the number of servers to list, events."""

    slow_ms: float | None = None
    server: str | None = None
    top: int | None = None
    quoted: Callable[[int, list[int]], pa.Table] | None = None
    """Returns the events of a stream with these frames; None: they are in the table `events`."""


EVERYTHING = Question()

WHY_VERSION = 3
"""Version of `Why.to_dict()`, raised when a key is removed or changes its name or meaning (`latpcap schema why`)."""


class Why:
    """The answer for a capture, a stream or one exchange: cause, owner, confidence and fix.

    `str(why)` is the answer in at most 15 lines, and one for each sentence of a trace or log; `to_dict()` has every
    number of it, durations in ms.
    """

    def __init__(self, data: Overall | OneExchange):
        self.lang = words.current()
        """Language of its sentences: the one that was set when it was made."""
        self.data = data
        """What `to_dict` has, as dataclasses."""

    @classmethod
    def of(
        cls, capture: Subject, scope: HasTables, *, stream: int | None = None, question: Question = EVERYTHING
    ) -> Why:
        """Answer for the exchanges of `scope`: the capture itself, or the stream of it with this number."""
        return cls(_overall(capture, scope, stream, question))

    @classmethod
    def of_exchange(cls, capture: Subject, number: int) -> Why:
        """Answer for one exchange. IndexError if there is no such exchange."""
        return cls(_one_exchange(capture, number))

    def with_beside(self, added: Sequence[SideSource]) -> Why:
        """Add what system-call traces and logs show; without any, return the answer itself.

        If a trace of the headline's server contradicts the headline, the headline says so and there is no fix.
        """
        if not added or isinstance(self.data, OneExchange):
            return self
        data = replace(self.data, beside=[source.to_dict() for source in added])
        if otherwise := headline.contradicted(data):
            clause = words.say("but", headline=data.headline.clause, but=otherwise)
            data = replace(data, headline=replace(data.headline, clause=clause), fix=None)
        return Why(data)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain dicts, lists, strings and numbers (for JSON)."""
        kind = "exchange" if isinstance(self.data, OneExchange) else "overall"
        return {"schema": WHY_VERSION, "kind": kind, **self.data.to_dict()}

    @property
    def findings(self) -> list[Finding]:
        """The findings: the headline's own, then causes of the requests' time, the most time first, then others."""
        if isinstance(self.data, OneExchange):
            return []
        lead, common = self.data.lead, self.data.facts.common
        return [
            *filter(None, [lead]),
            *common.findings,
            *(finding for finding in common.other_findings if finding is not lead),
        ]

    @property
    def verdict(self) -> str | None:
        """The cause in the headline; for one exchange its top cause, None without one."""
        return self.data.top_cause if isinstance(self.data, OneExchange) else self.data.verdict

    @property
    def server(self) -> str | None:
        """The server in the headline as "address:port"; None for one exchange, or without requests."""
        return self._requests.server if self._requests is not None else None

    @property
    def confidence(self) -> float | None:
        """Confidence of the headline: from 0.9 proven, above 0.5 probable; None where nothing was judged."""
        return None if isinstance(self.data, OneExchange) else self.data.confidence

    @property
    def headline(self) -> str:
        """The answer in one sentence; for one exchange its first line."""
        return self.text.title if isinstance(self.data, OneExchange) else self.data.headline.text

    @property
    def fix(self) -> str | None:
        """The fix of the headline's cause; None where nothing is slow, or no fix is known."""
        return None if isinstance(self.data, OneExchange) else self.data.fix

    @property
    def grade(self) -> Grade | None:
        """The grade of the headline's cause: proven, probable, suspected or unknown; None without a judged request."""
        if isinstance(self.data, OneExchange):
            return None
        first = self.data.lead or self.data.push or next(iter(self.data.facts.common.findings), None)
        return first.grade if first is not None else None

    @property
    def picture(self) -> dict[str, int]:
        """Arguments of `Capture.flow_graph` for the evidence, an exchange or a stream; empty without packets of TCP."""
        data = self.data
        if isinstance(data, OneExchange):
            return {"exchange": data.exchange}
        if data.lead is None and isinstance(data.facts, Judged):
            typical = data.facts.typical
            # beyond the exchanges are set-ups and pauses, which have no graph
            is_exchange = typical["exchange"] < data.facts.common.head.exchanges
            return {"exchange": typical["exchange"]} if is_exchange else {"stream": typical["stream"]}
        lead = data.lead or data.push
        return {} if lead is None or lead.worst_stream is None else {"stream": lead.worst_stream}

    @property
    def servers(self) -> list[types.Row]:
        """The servers with requests, the most harmful slow requests first; empty for one exchange."""
        return list(self._requests.servers) if self._requests is not None else []

    @property
    def _requests(self) -> WithRequests | None:
        facts = self.data.facts if isinstance(self.data, Overall) else None
        return None if facts is None or isinstance(facts, NoRequests) else facts.requests

    def for_owner(self) -> list[str]:
        """Return one paragraph for each owner, the headline's first: cause, proof, a command to check it, and the fix.

        ValueError for the answer of one exchange.

        >>> print(lp.read().why().for_owner()[0].splitlines()[0])
        For whoever runs the server 192.168.0.30:8080
        """
        if isinstance(self.data, OneExchange):
            raise ValueError("one exchange has one answer: paragraphs for owners are of a capture")
        with words.language(self.lang):
            return text.paragraphs(self.data, self._located)

    def _located(self, file: str, finding: Finding) -> tuple[str, Finding]:
        """Return the file of a finding's evidence, and the finding with its numbers in that file."""
        return file, finding

    @property
    def text(self) -> Text:
        """The answer in words: its title, headline and lines."""
        with words.language(self.lang):
            return text.one_exchange(self.data) if isinstance(self.data, OneExchange) else text.overall(self.data)

    def __str__(self) -> str:
        return str(self.text)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from latpcap import html

        answer_text = self.text
        return html.card(answer_text.title, html.text(answer_text.below_title))


def _head(capture: Subject) -> Head:
    """Return the entries that both kinds of answers have."""
    return Head(
        file=getattr(capture, "called", None) or Path(capture.name).name,
        filter=capture.display_filter,
        frames=capture.frames,
        streams=capture.rows("streams"),
        exchanges=capture.rows("exchanges"),
        seconds=capture.seconds,
        damage=capture.damage,
    )


def _overall(capture: Subject, scope: HasTables, stream: int | None, question: Question) -> Overall:
    """Compute the answer for a capture, or for one stream of it."""
    facts = _facts(capture, scope, stream, question)
    lead = headline.leading(facts)
    push = None if lead is not None else headline.pushed(facts)
    first_sentence = headline.headline(facts, lead, push)
    main_traffic = _main_traffic(facts, scope) if stream is None else None
    if main_traffic is not None:
        clause = words.say("mostly_other", other=main_traffic, rest=words.inside(first_sentence.clause))
        first_sentence = replace(first_sentence, clause=clause)
    confidence, fix = (facts.confidence, facts.fix) if isinstance(facts, Judged) else (None, None)
    answer = Overall(facts, lead, push, first_sentence, _verdict(facts), confidence, fix)
    first = lead or answer.push_in_headline
    return answer if first is None else replace(answer, verdict=first.cause, confidence=first.confidence, fix=first.fix)


def _verdict(facts: Facts) -> str:
    """Return the cause in a headline that is not a finding's sentence."""
    if isinstance(facts, NoRequests):
        return facts.verdict
    if facts.common.capture_kind == "scan":
        return "scan"  # the headline is the scan, not the few answered requests
    if isinstance(facts, Judged) and facts.pushed and facts.requests.slow["how"] == "none":
        return "pushes"  # the server mainly pushes; its few requests are not slow
    return facts.requests.verdict


def _main_traffic(facts: Facts, scope: HasTables) -> str | None:
    """Return the kind of most frames, where TCP is the smaller part and no filter chose the frames; else None."""
    head = facts.common.head
    if not head.streams or head.filter is not None or not hasattr(scope, "records"):
        return None
    streams = findings.read_from(scope)["streams"]
    segments = sum(int(arrays.numbers(streams, f"{side}_packets").sum()) for side in ("client", "server"))
    if 2 * segments > head.frames or head.frames < show.MIN_FRAMES:
        return None
    return capture_kind.mostly(scope.records(), segments)


def _facts(capture: Subject, scope: HasTables, stream: int | None, question: Question) -> Facts:
    """Judge the requests: compute what the headline is chosen from."""
    tables = findings.read_from(scope)
    streams, stretches = tables["streams"], tables["stretches"]
    checks = quality.judge(tables)
    totals = cause_totals.CauseTotals(streams, stretches, tables["causes"], question.slow_ms)
    if question.server is not None:
        totals.put_first(question.server, lambda server: evidence.names_of(server, tables))
    rows = findings.rows(tables, checks, totals, max_servers=1)
    other_findings = [row for row in rows if row.kind != "latency"]
    is_without_tcp = not streams.num_rows and capture.display_filter is None
    kind = capture_kind.kind_of(tables, other_findings, alone=not totals.servers)
    if kind is None and is_without_tcp and hasattr(scope, "records"):
        kind = capture_kind.without_tcp(scope.records())
    kind_id, kind_sentence = kind or ("requests" if totals.servers else "nothing", "")
    position, positions = arrays.codes(streams, "position")
    common = types.CommonFacts(
        head=_head(capture),
        scope=stream,
        quality=checks,
        positions=sorted(word for code, word in enumerate(positions) if (position == code).any()),
        lost=quality.lost(streams, stretches),
        findings=[row for row in rows if isinstance(row, LatencyFinding)],
        other_findings=other_findings,
        capture_kind=kind_id,
        capture_sentence=kind_sentence,
        dns=lookups.summary(tables),
    )
    if totals.servers:
        return _facts_of_requests(common, totals, capture, tables, question)
    closed, closed_by = arrays.codes(streams, "closed_by")
    return NoRequests(
        common=common,
        silent=_unanswered(streams),
        shook=_slow_handshakes(streams),
        ends={word: n for code, word in enumerate(closed_by) if (n := int((closed == code).sum()))},
        open_ms=_open_ms(streams, stretches),
        skipped=_skipped(tables["issues"]) if is_without_tcp else [],
        pings=tables["probes"].num_rows if is_without_tcp else 0,
    )


def _facts_of_requests(
    common: types.CommonFacts,
    totals: cause_totals.CauseTotals,
    capture: Subject,
    tables: Mapping[str, pa.Table],
    question: Question,
) -> types.RequestFacts:
    """Judge the requests to the first server."""
    server, stretches = totals.servers[0], tables["stretches"]
    items = totals.spent(server)
    software, names = evidence.software_of(server, tables), evidence.names_of(server, tables)
    requests = WithRequests(
        common=common,
        server=server.name,
        servers=_servers(totals, common.quality, stretches),
        shown=question.top or 0,
        traffic=traffic.of(stretches, server.all_requests, server.port, software, names),
        slow=_slow(server, items, tables, question.slow_ms),
        families=_families(items, server),
        pauses=openings.pauses(tables, server.address, server.port),
        cut=server.cut,
        incomplete=server.incomplete,
        complete=len(server.rows),
        goodbyes=server.goodbyes,
        p50_ms=arrays.percentile(server.latency, 0.50),
        p90_ms=arrays.percentile(server.latency, 0.90),
        p99_ms=arrays.percentile(server.latency, 0.99),
        total_ms=server.total_ms,
        causes=_totals(items, tables["causes"]),
        verdict=common.findings[0].cause if common.findings else "no_time",
    )
    if not common.findings:
        return requests
    quoted = question.quoted or (lambda _stream, _frames: capture.unfiltered.arrow("events"))
    typical = _typical(common.findings[0], items[0], tables, quoted)
    evidence_rows = findings.by_server(capture.arrow("evidence")).get((server.address, server.port), [])
    senders = {side: socket_options.pool(evidence_rows, side) for side in ("server", "client")}
    return _judged(requests, typical, senders, items, totals, tables)


def _judged(
    requests: WithRequests,
    typical: Typical,
    senders: Mapping[str, socket_options.Pool],
    items: Sequence[cause_totals.CauseTotal],
    totals: cause_totals.CauseTotals,
    tables: Mapping[str, pa.Table],
) -> Judged:
    """Add what is known about the first finding, the one with the most time."""
    first, item = requests.common.findings[0], items[0]
    halves = _halves(requests, senders["client"], item.server, tables)
    graded = first
    if halves:
        confidence = min(first.confidence, LIMITS["mixed_confidence"])
        rival, rival_lost = words.say("rival_halves"), words.say("rival_halves_lost", n=halves)
        graded = replace(first, grade="probable", confidence=confidence, proven=0, rival=rival, rival_lost=rival_lost)
        common = replace(requests.common, findings=[graded, *requests.common.findings[1:]])
        requests = replace(requests, common=common)
    owners = {"nagle": item.owner, "delayed_ack": item.held_by} if item.held_by else {item.cause: item.owner}
    waits_ms, longest_ms = _waits_ms(item, items)
    fin_released, first_fast = _unstalled(item, tables)
    closes_late = _closes_late(item, tables["causes"])
    return Judged(
        requests=requests,
        hit=first.exchanges,
        proven=first.proven if first.cause == STALL else None,
        share={
            "p50": {"ms": first.of_p50_ms, "of_ms": requests.p50_ms, "share": first.of_p50_share},
            "p90": {"ms": first.of_p90_ms, "of_ms": requests.p90_ms, "share": first.of_p90_share},
            "p99": {"ms": first.of_p99_ms, "of_ms": requests.p99_ms, "share": first.of_p99_share},
            "all": first.share,
        },
        confidence=graded.confidence,
        fix=_fix(requests, graded, owners, closes_late=closes_late),
        owners=owners,
        typical=typical,
        waits_ms=waits_ms,
        longest_ms=longest_ms,
        fin_released=fin_released,
        first_fast=first_fast,
        closes_late=closes_late,
        backend=_backend(first, item, totals, tables["stretches"]) if item.owner == BACKEND else None,
        senders=senders,
        pushed=_pushes(tables, item.server),
        halves=halves,
    )


def _fix(requests: WithRequests, first: LatencyFinding, owners: dict[str, str], *, closes_late: bool) -> str | None:
    """Return the fix of the headline's cause; None where nothing is slow and nothing was held.

    If TCP_NODELAY changed during the capture, the fix names the frame from which, or up to which, it was missing.
    """
    late_setup = headline.late_request(requests)
    if late_setup is not None:
        return late_setup.fix
    if closes_late and requests.slow["count"]:
        return words.fix("late_close")
    if first.grade == "unknown" or not (requests.slow["how"] != "none" or first.cause == STALL):
        return None
    changed = [row for row in requests.common.of_kind("change") if row.sender == owners.get("nagle")]
    at_server = [finding for finding in changed if headline.server_of(finding) == requests.server]
    if first.fix is None or first.cause != STALL:
        return first.fix
    if not at_server:
        return words.say("fix_before_first", fix=first.fix) if first.nodelay == "on" else first.fix
    sentence = "fix_set_from" if at_server[-1].nodelay == "on" else "fix_set_before"
    return words.say(sentence, fix=first.fix, frame=at_server[-1].worst_frames[0])


def _backend(
    first: LatencyFinding, item: cause_totals.CauseTotal, totals: cause_totals.CauseTotals, stretches: pa.Table
) -> types.Behind:
    """Return the server that the first server waited for, and what the requests to that one wait for."""
    source = proxies.source(item.server, item.cause, totals, stretches)
    clause = fixes.backend_clause(item.cause, source, headline.phrase(first))
    return {"server": source.server.name if source else fixes.unknown_backend(), "text": clause}


def _pushes(tables: Mapping[str, pa.Table], server: Server) -> int:
    """Return the number of messages that this server pushed, if it mainly pushes; else 0."""
    pushed = findings.pushes_of(tables)
    if pushed is None:
        return 0
    numbers = arrays.numbers(tables["streams"], "stream")[_is_of_server(tables["streams"], server)]
    count = int(pushed.of_streams(numbers).sum())
    return count if count >= show.MIN_PUSHES_PER_REQUEST * len(server.all_requests) else 0


def _halves(requests: WithRequests, client: socket_options.Pool, server: Server, tables: Mapping[str, pa.Table]) -> int:
    """Count turns of TLS that may be the second half of a request, held until the first half was acknowledged.

    Such a turn begins at the client within 0.1 ms of the response before it, which acknowledged the first half. Counted
    only if about every second turn is like this, nothing but the path takes time, and no request is slow; else 0.
    """
    cause, stretches, streams = requests.common.findings[0].cause, tables["stretches"], tables["streams"]
    is_possible = cause == "network" and requests.slow["how"] == "none" and not client.refuted
    if not is_possible or len(server.rows) < 2 * show.MIN_HALVES or requests.traffic["protocol"] != "tls":
        return 0
    rows = np.sort(server.rows)
    stream, start, end = (arrays.numbers(stretches, name)[rows] for name in ("stream", "start", "end"))
    rows = np.lexsort((start, stream))
    stream, start, end = stream[rows], start[rows], end[rows]
    stream_rows = spill.positions_of(arrays.numbers(streams, "stream"), stream)
    client_rtt = arrays.numbers(streams, "client_rtt_ms").astype(float)[stream_rows[1:]]
    near_client = np.nan_to_num(client_rtt, nan=np.inf) < show.NEAR_MS
    gap_ms = (start[1:] - end[:-1]) / NS_PER_MS
    follows_at_once = (stream[1:] == stream[:-1]) & near_client & (gap_ms >= 0) & (gap_ms <= show.MAX_HALF_GAP_MS)
    count, in_a_row = int(follows_at_once.sum()), bool((follows_at_once[1:] & follows_at_once[:-1]).any())
    return count if count >= show.MIN_HALVES and not in_a_row and count >= show.MIN_HALVES_SHARE * len(gap_ms) else 0


def _servers(totals: cause_totals.CauseTotals, checks: Sequence[quality.Check], stretches: pa.Table) -> list[types.Row]:
    """Return the servers with requests in their order, each followed by the servers behind it as a proxy."""
    rows: list[types.Row] = []
    max_confidence = quality.ceiling(list(checks))
    fronts = proxies.fronts(totals.servers, stretches)
    counts = [len(server.rows) for server in totals.servers]
    ranks = {share: arrays.nearest_ranks(counts, share) for share in (0.50, 0.99)}
    for position in proxies.in_order(len(totals.servers), fronts):
        server, front = totals.servers[position], fronts.get(position)
        items = totals.spent(server) if position < show.MIN_SERVERS_EXAMINED else []
        families = slow_requests.by_family(items, server.waited_for, len(server.rows)) if items else {}
        rows.append(
            {
                "server": server.name,
                "behind": None if front is None else totals.servers[front].name,
                "requests": len(server.rows),
                "slow": 0 if items and _unfelt(server, items) else len(server.slow),
                "p50_ms": float(server.latency[ranks[0.50][position]]),
                "p99_ms": float(server.latency[ranks[0.99][position]]),
                "total_ms": server.total_ms,
                "family": next(iter(families), None),
                "grade": findings.grade(items[0].cause, min(max_confidence, items[0].confidence)) if items else None,
            }
        )
    return rows


def _families(items: list[cause_totals.CauseTotal], server: Server) -> list[types.Family]:
    """Return the time of each family of causes, the most first, with its share of their sum."""
    spent = slow_requests.by_family(items, server.waited_for, len(server.rows))
    total = sum(sum(causes.values()) for causes in spent.values()) or 1.0
    return [
        {"family": name, "ms": sum(causes.values()), "share": sum(causes.values()) / total, "causes": causes}
        for name, causes in spent.items()
    ]


def _slow(
    server: Server, items: list[cause_totals.CauseTotal], tables: Mapping[str, pa.Table],
    slow_ms: float | None,
) -> types.Slow:  # fmt: skip
    """Count this server's slow requests; thresholds and round trips are medians over its requests."""
    stretches, count = tables["stretches"], len(server.rows)
    is_request = spill.row_mask(server.rows, stretches.num_rows)
    network_ms, limits, polls, streams = spill.Column("float64"), spill.Column("float64"), 0, 0
    for span, batch in arrays.sliced(stretches):
        is_in_part = is_request[span]
        network_ms.add(np.nan_to_num(arrays.numbers(batch, "network_ms").astype(float))[is_in_part])
        limits.add(slow_requests.limits_ms(batch, slow_ms)[is_in_part])
        polls += int(slow_requests.long_polls(batch)[is_in_part].sum())
        streams += int(slow_requests.event_streams(batch)[is_in_part].sum())
    is_unfelt = slow_ms is None and _unfelt(server, items)
    return {
        "how": "none" if is_unfelt else slow_requests.how_many(len(server.slow), count),
        "count": len(server.slow),
        "of": count,
        "limit_ms": float(spill.nth_smallest(limits.array(), count // 2)),
        "path_ms": float(spill.nth_smallest(network_ms.array(), count // 2)),
        "trip_ms": _trip_ms(server, tables["streams"]),
        "unread": server.unread,
        "polls": polls + server.polls,
        "streams": streams,
        "in_queue": transfers.in_queue(server, tables) if "transfers" in tables else 0,
        "worst": _worst(server, items, stretches) if len(server.slow) else None,
    }


def _is_of_server(streams: pa.Table, server: Server) -> arrays.Array:
    """Return a mask of the connections to this server."""
    mask = arrays.equals(streams, "server", server.address)
    mask &= arrays.numbers(streams, "server_port") == server.port
    return mask


def _trip_ms(server: Server, streams: pa.Table) -> float:
    """Return the median round trip of this server's handshakes; 0 without one."""
    trips = arrays.numbers(streams, "initial_rtt_ms").astype(float)[_is_of_server(streams, server)]
    trips = trips[~np.isnan(trips)]
    return float(np.median(trips)) if len(trips) else 0.0


def _unfelt(server: Server, items: list[cause_totals.CauseTotal]) -> bool:
    """Return whether its slow requests are too few and too short to be noticed."""
    if not len(server.slow):
        return False
    longest = float(server.latency[server.rows == server.slow[-1]][0])
    return slow_requests.are_unfelt(items, server.slow, len(server.rows), longest)


def _worst(server: Server, items: list[cause_totals.CauseTotal], stretches: pa.Table) -> types.Request:
    """Return the slowest request: its name, its frames, and the cause with the most time."""
    row_number = int(server.slow[-1])
    columns = ["exchange", "stream", "method", "target", "request_first_frame", "response_last_frame"]
    [row] = stretches.select(columns).slice(row_number, 1).to_pylist()
    causes = [(float(ms), item.cause) for item in items for ms in item.ms[item.rows == row_number]]
    cause_ms, cause = max(causes, default=(0.0, None))
    frames = [frame for frame in (row["request_first_frame"], row["response_last_frame"]) if frame is not None]
    return {
        "exchange": row["exchange"],
        "stream": row["stream"],
        "name": evidence.called(row["method"], row["target"]),
        "latency_ms": float(server.latency[server.rows == row_number][0]),
        "frames": frames,
        "cause": cause,
        "cause_ms": cause_ms,
    }


def _skipped(issues: pa.Table) -> list[types.Skipped]:
    """Return frames of a capture without TCP that were not understood, by reason, the most first; they may be TCP."""
    rows = [row for row in issues.select(["kind", "reason", "count"]).to_pylist() if row["kind"] == "skipped"]
    rows.sort(key=lambda row: -row["count"])
    return [{"reason": row["reason"], "frames": row["count"]} for row in rows]


def _unanswered(streams: pa.Table) -> dict[str, int]:
    """Count connections without an exchange, by how far they got."""
    completeness, server_packets = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets")
    has_data = completeness & Completeness.DATA != 0
    is_unanswered = (completeness & Completeness.SYN != 0) & (server_packets == 0) & ~has_data
    counts = {"unanswered": is_unanswered, "without_data": ~has_data & ~is_unanswered, "without_answer": has_data}
    return {name: int(mask.sum()) for name, mask in counts.items() if mask.any()}


def _open_ms(streams: pa.Table, stretches: pa.Table) -> float:
    """Return the longest time that a request without a complete response was open, in ms; 0 without one."""
    requests = np.flatnonzero(request_mask(stretches))
    if not len(requests):
        return 0.0
    stream_rows = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream")[requests])
    waited = arrays.numbers(streams, "end")[stream_rows] - arrays.numbers(stretches, "request_end")[requests]
    return max(float(waited.max()) / NS_PER_MS, 0.0)


def _slow_handshakes(streams: pa.Table) -> list[float] | None:
    """Return the shortest and longest handshake round trip in ms; None if none is as long as a slow request."""
    trips = arrays.numbers(streams, "initial_rtt_ms").astype(float)
    trips = trips[~np.isnan(trips)]
    if not len(trips) or trips.max() < LIMITS["slow_ms"]:
        return None
    return [float(trips.min()), float(trips.max())]


def _totals(items: list[cause_totals.CauseTotal], causes: pa.Table) -> list[types.Total]:
    """Time and exchanges per cause and owner, as in the table of causes, the most time first."""
    (cause, causes_of), (owner, owners) = arrays.codes(causes, "cause"), arrays.codes(causes, "owner")
    duration, number = arrays.numbers(causes, "duration_ms"), arrays.numbers(causes, "exchange")
    confidence, levels = arrays.levels(causes, "confidence")
    rows = spill.concatenated([item.causes for item in items])
    if len(rows) and int(number.max()) - int(number.min()) >= 2 * len(number):
        number = np.unique(number, return_inverse=True)[1]  # joined captures have numbers far apart
    first = int(number.min()) if len(rows) else 0
    hit = int(number.max()) + 1 - first if len(rows) else 0
    spent: dict[int, list[float]] = {}
    exchanges: dict[int, arrays.Array] = {}
    for span in spill.parts(len(rows)):
        part_rows = rows[span]
        key, ms = cause[part_rows].astype(np.int64) * len(owners) + owner[part_rows], duration[part_rows]
        is_proven = (levels >= PROVEN)[confidence[part_rows]]
        for code in arrays.distinct(key).tolist():
            has_code = key == code
            total = spent.setdefault(code, [0.0, 0.0])
            total[0] += float(ms[has_code].sum())
            total[1] += float(ms[has_code & is_proven].sum())
            exchanges.setdefault(code, np.zeros(hit, bool))[number[part_rows[has_code]] - first] = True
        spill.release_memory()
    totals: list[types.Total] = [
        {
            "cause": causes_of[code // len(owners)],
            "owner": owners[code % len(owners)],
            "total_ms": total,
            "exchanges": int(exchanges[code].sum()),
            "proven_ms": proven,
        }
        for code, (total, proven) in spent.items()
    ]
    return sorted(totals, key=lambda total: (-total["total_ms"], total["cause"], total["owner"]))


def _typical(
    first: LatencyFinding,
    item: cause_totals.CauseTotal,
    tables: Mapping[str, pa.Table],
    quoted: Callable[[int, list[int]], pa.Table],
) -> Typical:
    """Return the exchange in the middle of the first finding's time."""
    numbers = arrays.numbers(tables["stretches"], "exchange")
    row = int(spill.positions_of(numbers, np.array([first.typical_exchange], numbers.dtype))[0])
    pieces, longest = evidence.pieces(item, first.typical_exchange, tables["causes"])
    typical: Typical = {
        "exchange": first.typical_exchange,
        "stream": first.typical_stream,
        "latency_ms": tables["stretches"]["latency_ms"][row].as_py(),
        "frames": list(first.typical_frames),
        "ms": first.typical_ms,
        "pieces": pieces,
        "longest_ms": longest,
        "owner": item.owner,
        "confidence": first.confidence,
    }
    if first.cause != STALL or len(typical["frames"]) != 3:
        return typical
    events = quoted(typical["stream"], typical["frames"])
    rows = np.flatnonzero(np.isin(arrays.numbers(events, "frame"), typical["frames"]))
    times, lengths, from_client = (
        arrays.numbers(events, name)[rows].tolist() for name in ("time", "len", "from_client")
    )
    if len(times) == 3:
        typical["bytes"] = [lengths[0], lengths[2]]
        typical["sender"] = "client" if from_client[0] else "server"
        typical["ack_after_ms"] = (times[1] - times[0]) / NS_PER_MS
        typical["release_us"] = (times[2] - times[1]) / 1e3
    return typical


def _waits_ms(first: cause_totals.CauseTotal, items: Sequence[cause_totals.CauseTotal]) -> tuple[float, float]:
    """Return the wait of slow requests for the first cause's family: median and longest, in ms; 0 where none is slow.

    Requests without such a wait are left out, and so is the path's round trip unless it is the cause.
    """
    slow, family = np.sort(first.server.slow), slow_requests.family(first.cause)
    waited = np.zeros(len(slow))
    for item in items:
        if slow_requests.family(item.cause) == family and (item.cause != "network" or first.cause == "network"):
            is_slow = np.isin(item.rows, slow)
            np.add.at(waited, np.searchsorted(slow, item.rows[is_slow]), item.ms[is_slow])
        spill.release_memory()
    waited = np.sort(waited[waited > 0])
    return (arrays.percentile(waited, 0.5), float(waited[-1])) if len(waited) else (0.0, 0.0)


def _closes_late(item: cause_totals.CauseTotal, causes: pa.Table) -> bool:
    """Return whether most of its time passed between the server's last byte and its FIN."""
    rule, rules = arrays.codes(causes, "rule")
    if "late_close" not in rules:
        return False
    rows = item.causes[rule[item.causes] == rules.index("late_close")]
    late_ms = float(arrays.numbers(causes, "duration_ms")[rows].sum())
    return late_ms > item.total_ms / 2


def _unstalled(item: cause_totals.CauseTotal, tables: Mapping[str, pa.Table]) -> tuple[int, int]:
    """Of a stall: the number of exchanges that the peer's FIN released, and of first exchanges without a stall.

    A first exchange counts if a later one of its stream was stalled.
    """
    if item.cause != STALL:
        return 0, 0
    stretches, causes = tables["stretches"], tables["causes"]
    rule, rules = arrays.codes(causes, "rule")
    fin_code = arrays.code_of(rules, "nagle_fin_release")
    numbers = arrays.numbers(stretches, "exchange")[item.server.rows]
    released = arrays.distinct(arrays.numbers(causes, "exchange")[rule == fin_code])
    index, stream = arrays.numbers(stretches, "index"), arrays.numbers(stretches, "stream")
    stalled = spill.row_mask(item.rows, stretches.num_rows)
    stalled_streams = arrays.distinct(stream[stalled & (index > 0)])
    first_rows = item.server.rows[index[item.server.rows] == 0]
    first_rows = first_rows[~np.isin(first_rows, item.server.slow)]
    fast = first_rows[~stalled[first_rows] & np.isin(stream[first_rows], stalled_streams)]
    return int(np.isin(released, numbers).sum()), len(fast)


def _one_exchange(capture: Subject, number: int) -> OneExchange:
    """Compute the answer for one exchange. IndexError if there is no such exchange."""
    table = read_stretches(capture)
    is_number = pc.equal(table["exchange"], pa.scalar(number if 0 <= number < 2**63 else None, pa.uint64()))
    match = table.filter(is_number)
    if match.num_rows == 0:
        numbers = table["exchange"]
        if not len(numbers):
            raise NoSuchRowError(f"no exchange {number}: {capture.title} has none")
        raise NoSuchRowError(f"no exchange {number}: those of {capture.title} are {numbers[0]} to {numbers[-1]}")
    row = match.select(
        ["exchange", "stream", "index", "protocol", "method", "target", "status", "latency_ms", "client_latency_ms",
         "ttfb_ms", "complete", "cut_by", "request_first_frame", "response_last_frame", "top_cause"]
    ).to_pylist()[0]  # fmt: skip
    causes = of_stretches(capture.arrow("causes"))
    exchange_causes = causes.filter(pc.equal(causes["exchange"], pa.scalar(number, pa.uint64())))
    columns = ["cause", "parent", "owner", "duration_ms", "from_frame", "to_frame", "evidence", "rule", "confidence"]
    return OneExchange(head=_head(capture), **row, causes=exchange_causes.select(columns).to_pylist())
