"""Find the causes that took the time of one server's requests: a row per cause and owner, with what mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays
from latpcap.findings import evidence, fixes, quality, socket_options
from latpcap.findings.schema import Grade, LatencyFinding, grade
from latpcap.limits import LIMITS
from latpcap.presentation import MIN_P99_SHARE, MIN_SHARE
from latpcap.user_waits import cause_totals, proxies
from latpcap.user_waits.servers import Server
from latpcap.vocabulary import BACKEND, PROGRAMS, PROVEN, SIDES, STALL, STALLS

if TYPE_CHECKING:
    import pyarrow as pa


def find(
    server: Server, totals: cause_totals.CauseTotals, tables: Mapping[str, pa.Table],
    evidence_rows: list[dict[str, Any]], checks: Sequence[quality.Check],
) -> list[LatencyFinding]:  # fmt: skip
    """Return the causes worth a row, the one most important to the slow requests first.

    `evidence_rows` are the rows of "evidence" of this server.
    """
    items = totals.spent(server)
    pools = {side: socket_options.pool(evidence_rows, side) for side in ("server", "client")}
    total = float(server.latency.sum()) or 1.0
    handshake_ms = evidence.handshake_ms(server, tables)
    findings: list[LatencyFinding] = []
    for item in items:
        cohorts = {name: cause_totals.cohort(item, name) for name in cause_totals.COHORTS}
        is_small = item.total_ms / total < MIN_SHARE and cohorts["p99"][1] < MIN_P99_SHARE
        if is_small and item is not items[0]:  # the first is the cause of the slow requests, however few they are
            continue
        verdict = _verdict(item, pools, checks)
        rival_left = evidence.rival_left(item, tables["causes"])
        rival = evidence.rival(item, pools, handshake_ms, rival_left)
        client, share = evidence.hardest_client(item, tables)
        worst, typical = evidence.cases(item, tables)
        options = _options(item, items, [] if item.owner == BACKEND else evidence_rows)
        stalled = item.cause in STALLS
        timer = socket_options.timer(pools[options.sender]) if stalled else socket_options.Timer()
        fix, gain = _fix_and_gain(item, totals, tables, typical.ms, verdict.grade, rival.cause)
        ordered = item.ordered
        findings.append(LatencyFinding(
            kind="latency", server=server.address, server_port=server.port, cause=item.cause, owner=item.owner,
            held_by=item.held_by, clients=len(server.clients), client=client, client_share=share,
            exchanges=len(item.rows), of_exchanges=len(server.rows), streams=evidence.streams_hit(item, tables),
            total_ms=item.total_ms, share=item.total_ms / total,
            of_p50_ms=cohorts["p50"][0], of_p50_share=cohorts["p50"][1],
            of_p90_ms=cohorts["p90"][0], of_p90_share=cohorts["p90"][1],
            of_p99_ms=cohorts["p99"][0], of_p99_share=cohorts["p99"][1],
            median_ms=arrays.percentile(ordered, 0.5), p10_ms=arrays.percentile(ordered, 0.1),
            p90_ms=arrays.percentile(ordered, 0.9), max_ms=float(ordered[-1]),
            grade=verdict.grade, confidence=verdict.confidence,
            proven=item.proven if verdict.confidence >= PROVEN else 0,
            limited_by=verdict.limited_by, rival=rival.text, rival_lost=rival.lost,
            worst_exchange=worst.exchange, worst_stream=worst.stream, worst_ms=worst.ms, worst_frames=worst.frames,
            typical_exchange=typical.exchange, typical_stream=typical.stream, typical_ms=typical.ms,
            typical_frames=typical.frames, filter=typical.filter, sender=options.sender,
            **options.nodelay.columns("nodelay"), **options.delayed_ack.columns("delayed_ack"),
            **options.cork.columns("cork"), **asdict(timer),
            fix=fix.knob, fix_side=fix.side, fix_cost=fix.cost, **(gain.columns() if gain is not None else {}),
        ))  # fmt: skip
    return findings


@dataclass(frozen=True)
class _Verdict:
    """How sure a cause is, after what the capture's quality allows; `limited_by` names the checks that lowered it."""

    confidence: float
    grade: Grade
    limited_by: tuple[str, ...]


def _verdict(
    item: cause_totals.CauseTotal, pools: Mapping[str, socket_options.Pool], checks: Sequence[quality.Check]
) -> _Verdict:
    # A stall with consistent evidence holds in a capture with duplicate packets; other causes rest on round trips,
    # which are doubtful there. The core knows of the duplicates, so that the confidence may equal the check's limit.
    is_sure_stall = item.cause == STALL and item.owner in pools and pools[item.owner].acts
    doubled = [
        check for check in checks if check.check == "doubles" and check.most <= item.confidence and not is_sure_stall
    ]
    limits = [check for check in checks if check.most < item.confidence and check.check != "doubles"] + doubled
    confidence = min([item.confidence, *(check.most for check in limits)])
    if item.server.cut:
        confidence = min(confidence, LIMITS["cut_confidence"])
    if item.cause in PROGRAMS and item.owner in pools and socket_options.mixed(pools[item.owner]):
        confidence = min(confidence, LIMITS["mixed_confidence"])
    word = "unknown" if any(check.forbids for check in limits) else grade(item.cause, confidence)
    return _Verdict(confidence, word, tuple(check.check for check in limits))


@dataclass(frozen=True)
class _Options:
    sender: str
    nodelay: socket_options.Option
    delayed_ack: socket_options.Option
    cork: socket_options.Option


def _options(
    item: cause_totals.CauseTotal, items: list[cause_totals.CauseTotal], evidence_rows: list[dict[str, Any]]
) -> _Options:
    """Return the socket options of the side whose bytes waited, and whether its peer delays ACKs."""
    sender = item.owner if item.owner in SIDES else "server"
    if item.cause in ("delayed_ack", "receive_window", "zero_window"):
        sender = SIDES[sender]
    corked = sum(len(item.rows) for item in items if item.cause == "cork" and item.owner == sender)
    return _Options(
        sender,
        nodelay=socket_options.nodelay(evidence_rows, sender),
        delayed_ack=socket_options.delayed_ack(evidence_rows, sender),
        cork=socket_options.cork(evidence_rows, sender, corked),
    )


def _fix_and_gain(
    item: cause_totals.CauseTotal,
    totals: cause_totals.CauseTotals,
    tables: Mapping[str, pa.Table],
    typical_ms: float,
    grade: Grade,
    rival: str | None,
) -> tuple[fixes.Fix, fixes.Gain | None]:
    """Return what mends a cause and what that gains; for time of a backend, the fix at the backend."""
    source = proxies.source(item.server, item.cause, totals, tables["stretches"]) if item.owner == BACKEND else item
    source = source or item
    has_own_words = source.cause in fixes.NAMES_SETTINGS
    fix = fixes.fix(
        source.cause, source.owner, typical_ms, evidence.software_of(source.server, tables) if has_own_words else None,
        proven=grade == "proven", protocol=evidence.protocol_of(source, tables) if has_own_words else None,
        rival=rival, lost=quality.of_exchanges(item.rows, tables) if source.cause == "cwnd" else 0,
    )  # fmt: skip
    if item.owner == BACKEND:
        name = source.server.name if source is not item else fixes.unknown_backend()
        fix = fixes.Fix(fixes.of_backend(name, fix.knob, source.owner), BACKEND if fix.side else None, fix.cost)
    items = totals.spent(item.server)
    return fix, fixes.gain(item, items, tables["stretches"], tables["causes"]) if fix.knob else None
