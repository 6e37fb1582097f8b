"""What is wrong, who owns it, how sure is that, and what would mend it? Tables of one capture in, one table out.

One row per server, cause and owner: the server whose slow requests did the most harm first, and of it the family of
causes that these spend the most time in; then what happened to connections; then delayed ACKs that nobody waited for.
Computed from the tables alone, so that stored ones give the same answer as a capture in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from latpcap import arrays, words
from latpcap import presentation as show
from latpcap.findings import (
    connections,
    evidence,
    fixes,
    lookups,
    openings,
    pushes,
    quality,
    queues,
    retries,
    round_trips,
    sessions,
    silence,
    socket_options,
    transfers,
)
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import BRIEF, COLUMNS, Finding, Grade, LatencyFinding, grade, schema
from latpcap.limits import LIMITS
from latpcap.options import TableName
from latpcap.presentation import MIN_P99_SHARE, MIN_SHARE
from latpcap.tables import of_stretches, stretches
from latpcap.user_waits import cause_totals, proxies
from latpcap.user_waits.segments import HasSegments, Segments
from latpcap.vocabulary import BACKEND, PROGRAMS, PROVEN, SIDES, STALL, STALLS

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SERVERS = 1_000
"""So many servers have latency findings of their own: each takes a look at all streams and causes."""


def table(tables: Mapping[str, pa.Table]) -> pa.Table:
    """What is wrong in this capture? One row a finding, the most important first; columns as in `schema()`.

    `tables` maps "streams", "exchanges", "causes", "evidence" and "issues" to the tables of one capture (or of one
    of its streams). Optional: "connects" and "gaps", for what came before requests; "pushes" with "gaps", for what
    waited without a request; "events", for delayed ACKs that nobody waited for and peers that fell silent; "probes",
    for what ICMP answered to SYNs. Raises KeyError where one of the five is missing.
    """
    import pyarrow as pa

    return pa.Table.from_pylist([finding.to_dict() for finding in rows(tables)], schema=schema())


class Lazy(HasSegments):
    """The tables of a `Capture` or `Stream`, each made at its first use.

    "exchanges" has the rows of `connects` and `gaps` too, and "causes" theirs, by one number: `tables.stretches`.
    `made` are tables that are so already; `evidence` gives the frames of a row of "causes" where that lacks them.
    """

    NAMES = ("streams", "exchanges", "causes", "evidence", "issues", "events", "probes", "lookups", "connects",
             "transfers")  # fmt: skip

    def __init__(
        self,
        arrow: Callable[[TableName], pa.Table],
        segments: Segments | None = None,
        made: Mapping[str, pa.Table] | None = None,
        evidence: Callable[[int], list[int]] | None = None,
        pushed: Pushed | None = None,
    ):
        self._arrow = arrow
        self._made: dict[str, pa.Table] = dict(made or {})
        self._evidence = evidence
        if segments is not None:
            self.segments = segments
        if pushed is not None:
            self.pushed = pushed

    @cached_property
    def segments(self) -> Segments:  # type: ignore[override]
        """What findings need of the events, where it was not collected before."""
        return Segments.of(self["events"])

    @cached_property
    def pushed(self) -> Pushed:
        """What findings need of pushes, where it was not collected before."""
        return Pushed.of(*(self._arrow(name) for name in ("pushes", "gaps", "causes")))

    def frames(self, cause: int) -> list[int]:
        """The frames that this row of "causes" names."""
        return super().frames(cause) if self._evidence is None else self._evidence(cause)

    def arrow(self, name: TableName) -> pa.Table:
        """The rows of this table as they are."""
        return self._arrow(name)

    def __getitem__(self, name: str) -> pa.Table:
        if name == "exchanges" and name not in self._made:
            self._made[name] = stretches(self)
        if name == "causes" and name not in self._made:
            self._made[name] = of_stretches(self._arrow("causes"))
        return self._made[name] if name in self._made else self._arrow(cast(TableName, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)

    def __len__(self) -> int:
        return len(self.NAMES)


def read_from(scope: Any) -> Lazy:
    """What do findings read of a capture, a part of one, or many? What it kept for them, or else its tables."""
    found: Lazy = getattr(scope, "kept", None) or Lazy(scope.arrow)
    return found


def rows(
    tables: Mapping[str, pa.Table],
    checks: Sequence[quality.Check] | None = None,
    ledger: cause_totals.CauseTotals | None = None,
    servers: int | None = None,
) -> list[Finding]:
    """The findings, the most important first.

    `checks` and `ledger` are made of the tables where they are not given; `servers` limits the latency findings to
    so many servers, those whose slow requests did the most harm. Without it that is `MOST_SERVERS`, and a
    row of kind "rest" counts the others.
    """
    pushed, tables = pushes_of(tables), _joined(tables)
    checks = quality.judge(tables) if checks is None else checks
    ledger = ledger or cause_totals.CauseTotals(tables["streams"], tables["exchanges"], tables["causes"])
    found: list[Finding] = []
    pooled = by_server(tables["evidence"])
    for server in ledger.servers[: MOST_SERVERS if servers is None else servers]:
        spent = ledger.spent(server)
        found += _of_server(server, ledger, tables, pooled.get((server.address, server.port), []), checks)
        waited = queues.of(server, spent, tables)
        if waited is not None:
            found.append(queues.finding(waited, server))
    for server in ledger.servers[: MOST_SERVERS if servers is None else max(servers, show.MIN_SERVERS_EXAMINED)]:
        spent = ledger.spent(server)
        together = queues.stampede(server, tables) or queues.together(server, spent, tables)
        together = together or queues.behind(server, spent, tables)
        expects = round_trips.expects(server, spent, tables)
        halted = sessions.blocked(server, tables, pushed) if pushed is not None else None
        waits = (
            halted,
            queues.pool(server, tables) or queues.at_a_rate(server, tables),
            together,
            queues.buffered(server, tables),
            expects,
        )
        found += [one for one in waits if one is not None]
        if not any(one is not None and one.cause in ("transaction_lock", "transaction_pool") for one in waits):
            found += queues.transactions(server, tables)  # else somebody waited, and that is the answer
    stormed = {f.client for f in found if f.sentence == "stampede"}
    found = [f for f in found if f.sentence != "stampede" or f.server not in stormed]  # it waits for the other one
    busy = {cause_totals.endpoint(f.server, f.server_port) for f in found if f.cause == "pool"}
    before, known = openings.found(tables, busy)
    found += before
    events = connections.of(tables["streams"], tables.get("probes"))
    if pushed is not None:
        found += pushes.found(pushed, tables["streams"], pooled, checks, ledger.slow_ms)
    floods = [e for e in events if e.cause == "syn_flood"]
    moved = {e.worst_stream for e in before if e.cause == "data_other_address"}
    mute = [e for e in silence.found(tables, pushed) if e.worst_stream not in moved]  # what these say is why
    found = floods + found + mute + [e for e in events if e not in floods]
    found += round_trips.trips(tables) + round_trips.blocks(tables) + round_trips.messages(tables, pushed)
    found += openings.before_asking(tables, known)
    if "lookups" in tables:
        found += lookups.of_lookups(tables) + lookups.of_services(tables)
    found += retries.found(tables) + sessions.found(tables)
    found += connections.alerts(tables) if tables["exchanges"].num_rows else []
    if "transfers" in tables:
        paused = {(e.server, e.server_port) for e in found if e.sentence == "expect_continue"}  # it was no slow start
        found += [e for e in transfers.found(tables) if (e.server, e.server_port) not in paused]
        queued = transfers.costs(tables)
        found = [*transfers.excused(found, queued), *queued]
    found += connections.passive(tables) + connections.noted(tables)
    found += socket_options.suspects(tables)
    found += socket_options.of_options(tables["evidence"])
    found += socket_options.held_for_nobody(tables)
    if servers is None and len(ledger.servers) > MOST_SERVERS:
        found.append(_rest(ledger.servers[MOST_SERVERS:]))
    return [replace(_with_text(finding), finding=number) for number, finding in enumerate(found)]


def _rest(servers: Sequence[cause_totals.Server]) -> Finding:
    """The servers that have no rows of their own, in one."""
    slow, requests = (sum(len(of) for of in some) for some in ([s.slow for s in servers], [s.rows for s in servers]))
    return Finding(
        kind="rest", server=servers[0].address, server_port=servers[0].port, cause="unknown", owner="unknown",
        exchanges=slow, of_exchanges=requests, grade="unknown", confidence=0.0, sentence="servers_left",
        values={"n": len(servers), "requests": requests, "slow": slow, "most": MOST_SERVERS},
    )  # fmt: skip


def pushes_of(tables: Mapping[str, pa.Table]) -> Pushed | None:
    if isinstance(tables, Lazy):
        return tables.pushed
    if "pushes" not in tables or "gaps" not in tables:
        return None
    return Pushed.of(tables["pushes"], tables["gaps"], tables["causes"])


def _joined(tables: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    """The tables as `Lazy` has them; without connects and gaps also without their causes."""
    if isinstance(tables, Lazy) or not tables["causes"]["exchange"].null_count:
        return tables
    if "connects" in tables and "gaps" in tables:
        lazy = Lazy(lambda name: tables[name])
        return {**tables, "exchanges": lazy["exchanges"], "causes": lazy["causes"]}
    import pyarrow.compute as pc

    return {**tables, "causes": tables["causes"].filter(pc.is_valid(tables["causes"]["exchange"]))}


def by_server(evidence: pa.Table) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The rows of the table of evidence by address and port of the server."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in evidence.to_pylist():
        found.setdefault((row["server"], row["server_port"]), []).append(row)
    return found


def _of_server(
    server: cause_totals.Server, ledger: cause_totals.CauseTotals, tables: Mapping[str, pa.Table],
    mine: list[dict[str, Any]], checks: Sequence[quality.Check],
) -> list[Finding]:  # fmt: skip
    items = ledger.spent(server)
    pools = {side: socket_options.pool(mine, side) for side in ("server", "client")}
    total = float(server.latency.sum()) or 1.0
    handshake_ms = evidence.handshake_ms(server, tables)
    found: list[Finding] = []
    for item in items:
        cohorts = {name: cause_totals.cohort(item, name) for name in cause_totals.COHORTS}
        small = item.total_ms / total < MIN_SHARE and cohorts["p99"][1] < MIN_P99_SHARE
        if small and item is not items[0]:  # the first is what the slow requests wait for, however few they are
            continue
        sure = _how_sure(item, pools, checks)
        left = evidence.rival_left(item, tables["causes"])
        rival, lost = evidence.rival(item, pools, handshake_ms, left)
        client, share = evidence.hardest_client(item, tables)
        worst, typical = evidence.cases(item, tables)
        options = _options(item, items, [] if item.owner == BACKEND else mine, tables)
        stalled = item.cause in STALLS
        timer = socket_options.timer(pools[options.sender]) if stalled else socket_options.Timer()
        mend, won = _mend(item, ledger, tables, typical.ms, sure.grade, rival)
        ordered = item.ordered
        found.append(
            LatencyFinding(
                kind="latency", server=server.address, server_port=server.port, cause=item.cause, owner=item.owner,
                held_by=item.held_by, clients=len(server.clients), client=client, client_share=share,
                exchanges=len(item.rows), of_exchanges=len(server.rows), streams=evidence.streams_hit(item, tables),
                total_ms=item.total_ms, share=item.total_ms / total,
                of_p50_ms=cohorts["p50"][0], of_p50_share=cohorts["p50"][1],
                of_p90_ms=cohorts["p90"][0], of_p90_share=cohorts["p90"][1],
                of_p99_ms=cohorts["p99"][0], of_p99_share=cohorts["p99"][1],
                median_ms=arrays.percentile(ordered, 0.5), p10_ms=arrays.percentile(ordered, 0.1),
                p90_ms=arrays.percentile(ordered, 0.9), max_ms=float(ordered[-1]),
                grade=sure.grade, confidence=sure.confidence, proven=item.proven if sure.confidence >= PROVEN else 0,
                limited_by=sure.limited_by, rival=rival, rival_lost=lost,
                worst_exchange=worst.exchange, worst_stream=worst.stream, worst_ms=worst.ms, worst_frames=worst.frames,
                typical_exchange=typical.exchange, typical_stream=typical.stream, typical_ms=typical.ms,
                typical_frames=typical.frames, filter=typical.filter, sender=options.sender,
                nodelay=options.nodelay.state, nodelay_seen_on=options.nodelay.seen_on,
                nodelay_seen_off=options.nodelay.seen_off, nodelay_opportunities=options.nodelay.opportunities,
                nodelay_streams_on=options.nodelay.streams_on, nodelay_streams_off=options.nodelay.streams_off,
                delayed_ack=options.delayed_ack.state, delayed_ack_seen_on=options.delayed_ack.seen_on,
                delayed_ack_seen_off=options.delayed_ack.seen_off,
                delayed_ack_opportunities=options.delayed_ack.opportunities,
                cork=options.cork.state, cork_seen_on=options.cork.seen_on, cork_seen_off=options.cork.seen_off,
                cork_opportunities=options.cork.opportunities,
                hold_min_ms=timer.hold_min_ms, hold_median_ms=timer.hold_median_ms, hold_max_ms=timer.hold_max_ms,
                timer_ms=timer.timer_ms, tick_ms=timer.tick_ms, tick_p=timer.tick_p, os_hint=timer.os_hint,
                fix=mend.knob, fix_side=mend.side, fix_cost=mend.cost,
                gain_p50_low_ms=won.low_ms if won else None, gain_p50_high_ms=won.high_ms if won else None,
                gain_p99_low_ms=won.p99_low_ms if won else None, gain_rate_low=won.factor_low if won else None,
                gain_rate_high=won.factor_high if won else None, gain_limit=won.limit if won else None,
                gain_open=won.open if won else None,
            )
        )  # fmt: skip
    return found


@dataclass(frozen=True)
class _Sure:
    confidence: float
    grade: Grade
    limited_by: tuple[str, ...]


def _how_sure(
    item: cause_totals.CauseTotal, pools: Mapping[str, socket_options.Pool], checks: Sequence[quality.Check]
) -> _Sure:
    # a stall whose evidence holds together in a doubled capture is one; all else rests on doubtful round trips there
    held = item.cause == STALL and item.owner in pools and pools[item.owner].acts
    # (the core knows of it, so that its rows have no more confidence either)
    doubled = [c for c in checks if c.check == "doubles" and c.most <= item.confidence and not held]
    limits = [c for c in checks if c.most < item.confidence and c.check != "doubles"] + doubled
    sure = min([item.confidence, *(c.most for c in limits)])
    if item.server.cut:
        sure = min(sure, LIMITS["cut_confidence"])
    if item.cause in PROGRAMS and item.owner in pools and socket_options.mixed(pools[item.owner]):
        sure = min(sure, LIMITS["mixed_confidence"])
    word = "unknown" if any(c.forbids for c in limits) else grade(item.cause, sure)
    return _Sure(sure, word, tuple(c.check for c in limits))


@dataclass(frozen=True)
class _Options:
    sender: str
    nodelay: socket_options.Option
    delayed_ack: socket_options.Option
    cork: socket_options.Option


def _options(
    item: cause_totals.CauseTotal,
    items: list[cause_totals.CauseTotal],
    mine: list[dict[str, Any]],
    tables: Mapping[str, pa.Table],
) -> _Options:
    """The options of the side whose bytes had to wait, and its peer's habit."""
    sender = item.owner if item.owner in SIDES else "server"
    if item.cause in ("delayed_ack", "receive_window", "zero_window"):
        sender = SIDES[sender]
    corked = sum(len(i.rows) for i in items if i.cause == "cork" and i.owner == sender)
    return _Options(
        sender,
        nodelay=socket_options.nodelay(mine, sender),
        delayed_ack=socket_options.delayed_ack(mine, sender),
        cork=socket_options.cork(mine, sender, corked),
    )


def _mend(
    item: cause_totals.CauseTotal,
    ledger: cause_totals.CauseTotals,
    tables: Mapping[str, pa.Table],
    typical_ms: float,
    sure: Grade,
    rival: str,
) -> tuple[fixes.Fix, fixes.Gain | None]:
    at = proxies.source(item.server, item.cause, ledger, tables["exchanges"]) if item.owner == BACKEND else item
    at = at or item
    software = evidence.software_of(at.server, tables) if at.cause in fixes.IN_ITS_WORDS else None
    spoken = evidence.protocol_of(at, tables) if at.cause in fixes.IN_ITS_WORDS else None
    lost = quality.of_exchanges(item.rows, tables) if at.cause == "cwnd" else 0
    mend = fixes.fix(
        at.cause, at.owner, typical_ms, software, proven=sure == "proven", protocol=spoken, rival=rival, lost=lost
    )
    if item.owner == BACKEND:
        name = at.server.name if at is not item else fixes.unknown_backend()
        mend = fixes.Fix(fixes.of_backend(name, mend.knob, at.owner), BACKEND if mend.side else None, mend.cost)
    items = ledger.spent(item.server)
    return mend, fixes.gain(item, items, tables["exchanges"], tables["causes"]) if mend.knob else None


__all__ = ["BRIEF", "COLUMNS", "Finding", "LatencyFinding", "Lazy", "grade", "rows", "schema", "table"]


def _with_text(finding: Finding) -> Finding:
    """The finding with its sentence as the catalogue has it, and its fix where it has none of its own."""
    if finding.sentence is None:
        return finding
    values = finding.values or {}
    return replace(
        finding, text=words.say(finding.sentence, **values), fix=finding.fix or words.fix(finding.sentence, **values)
    )
