"""What is wrong, who owns it, how sure is that, and what would mend it? Tables of one capture in, one table out.

One row per server, cause and owner, the most time first; then what happened to connections; then delayed ACKs that
nobody waited for. Computed from the tables alone, so that stored ones give the same answer as a capture in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from latpcap import arrays
from latpcap.findings import (
    connections,
    evidence,
    fixes,
    gain,
    harmless,
    one_way,
    quality,
    rivals,
    setups,
    sockets,
    totals,
)
from latpcap.findings.schema import BRIEF, COLUMNS, LISTS, schema
from latpcap.options import TableName
from latpcap.vocabulary import PROVEN, STALL, SUSPECTED

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_SHARE = 0.005
LEAST_P99_SHARE = 0.05
"""Causes below both shares of a server's time are no finding."""


def table(tables: Mapping[str, pa.Table]) -> pa.Table:
    """What is wrong in this capture? One row a finding, the most important first; columns as in `schema()`.

    `tables` maps "streams", "exchanges", "causes", "evidence" and "issues" to the tables of one capture (or of one
    of its streams); "events" is optional and lets delayed ACKs be found that nobody waited for. Raises KeyError
    where one of the five is missing.
    """
    import pyarrow as pa

    return pa.Table.from_pylist(rows(tables), schema=schema())


class Lazy(Mapping[str, "pa.Table"]):
    """The tables of a `Capture` or `Stream`, each made when it is first asked for."""

    NAMES = ("streams", "exchanges", "causes", "evidence", "issues", "events")

    def __init__(self, arrow: Callable[[TableName], pa.Table]):
        self._arrow = arrow

    def __getitem__(self, name: str) -> pa.Table:
        return self._arrow(cast(TableName, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)

    def __len__(self) -> int:
        return len(self.NAMES)


def rows(
    tables: Mapping[str, pa.Table],
    checks: list[quality.Check] | None = None,
    ledger: totals.Ledger | None = None,
    servers: int | None = None,
) -> list[dict[str, Any]]:
    """The findings as dicts with the columns of `schema()`, the most important first.

    `checks` and `ledger` are made of the tables where they are not given; `servers` limits the latency findings to
    so many servers, those with the most time.
    """
    checks = quality.judge(tables) if checks is None else checks
    ledger = ledger or totals.Ledger(tables["streams"], tables["exchanges"], tables["causes"])
    found: list[dict[str, Any]] = []
    pooled = by_server(tables["evidence"])
    for server in ledger.servers[:servers]:
        found += _of_server(server, ledger.spent(server), tables, pooled.get((server.address, server.port), []), checks)
    events = connections.of(tables["streams"])
    floods = [e for e in events if e.cause == "syn_flood"]
    found = [_of_event(e) for e in floods] + found + [_of_event(e) for e in events if e not in floods]
    found += [_blank() | row for row in setups.before_asking(tables)]
    found += [_blank() | row for row in one_way.suspects(tables)]
    if "events" in tables:
        found += [_blank() | row for row in harmless.held_for_nobody(tables)]
    for number, row in enumerate(found):
        row["finding"] = number
    return found


def _blank() -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(schema().names)
    return row | {name: [] for name in LISTS}


def by_server(evidence: pa.Table) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The rows of the table of evidence by address and port of the server."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in evidence.to_pylist():
        found.setdefault((row["server"], row["server_port"]), []).append(row)
    return found


def _of_server(
    server: totals.Server, items: list[totals.Spent], tables: Mapping[str, pa.Table], mine: list[dict[str, Any]],
    checks: list[quality.Check],
) -> list[dict[str, Any]]:  # fmt: skip
    pools = {side: sockets.pool(mine, side) for side in ("server", "client")}
    total = float(server.latency.sum()) or 1.0
    stream = evidence.stream_of(server, tables)
    found = []
    for item in items:
        cohorts = {name: totals.cohort(item, name) for name in totals.COHORTS}
        if item.total_ms / total < LEAST_SHARE and cohorts["p99"][1] < LEAST_P99_SHARE:
            continue
        row = _blank() | _what(item, total, cohorts, tables)
        row |= _how_sure(item, pools, stream, checks, evidence.rule(item, tables["causes"]))
        row |= evidence.of(item, tables)
        row |= _sockets(item, items, mine, pools, tables)
        row |= _mend(item, items, tables, stream, row["typical_ms"])
        found.append(row)
    return found


def _what(
    item: totals.Spent, total: float, cohorts: dict[str, tuple[float, float]], tables: Mapping[str, pa.Table]
) -> dict[str, Any]:
    import numpy as np

    server, ordered = item.server, np.sort(item.ms)
    client, share = evidence.hardest_client(item, tables)
    row: dict[str, Any] = {
        "kind": "latency", "server": server.address, "server_port": server.port, "cause": item.cause,
        "owner": item.owner, "held_by": item.held_by, "clients": len(server.clients), "client": client,
        "client_share": share, "exchanges": len(item.rows), "of_exchanges": len(server.rows),
        "streams": evidence.streams_hit(item, tables), "total_ms": item.total_ms, "share": item.total_ms / total,
        "median_ms": arrays.percentile(ordered, 0.5), "p10_ms": arrays.percentile(ordered, 0.1),
        "p90_ms": arrays.percentile(ordered, 0.9), "max_ms": float(ordered[-1]),
    }  # fmt: skip
    for name, (ms, of) in cohorts.items():
        row |= {f"of_{name}_ms": ms, f"of_{name}_share": of}
    return row


def _how_sure(
    item: totals.Spent, pools: dict[str, dict[str, Any]], stream: dict[str, Any], checks: list[quality.Check],
    rule: str | None,
) -> dict[str, Any]:  # fmt: skip
    # a stall whose evidence holds together in a doubled capture is one; everything else rests on doubtful legs there
    held = item.cause == STALL and pools[item.owner]["verdict"] in sockets.HELD_UP
    # (the core knows of it, so that its rows have no more confidence either)
    doubled = [c for c in checks if c.check == "doubles" and c.most <= item.confidence and not held]
    limits = [c for c in checks if c.most < item.confidence and c.check != "doubles"] + doubled
    sure = min([item.confidence, *(c.most for c in limits)])
    if item.server.cut:
        sure = min(sure, 0.7)
    if item.cause in ("server_think", "client_think") and rivals.mixed(pools[item.owner]):
        sure = min(sure, 0.7)
    name, lost = rivals.rival(item, pools, stream, rule)
    word = "unknown" if any(c.forbids for c in limits) else grade(item.cause, sure)
    return {
        "confidence": sure, "grade": word, "proven": item.proven if sure >= PROVEN else 0,
        "limited_by": [c.check for c in limits], "rival": name, "rival_lost": lost,
    }  # fmt: skip


def grade(cause: str, confidence: float) -> str:
    """Which word stands for this confidence? "proven", "probable", "suspected", or "unknown"."""
    if cause in ("unknown", "capture_gap"):
        return "unknown"
    return "proven" if confidence >= PROVEN else "probable" if confidence > SUSPECTED else "suspected"


def _sockets(
    item: totals.Spent, items: list[totals.Spent], mine: list[dict[str, Any]], pools: dict[str, dict[str, Any]],
    tables: Mapping[str, pa.Table],
) -> dict[str, Any]:  # fmt: skip
    """The options of the side whose bytes had to wait, and its peer's timer."""
    sender = item.owner if item.owner in totals.SIDES else "server"
    if item.cause in ("delayed_ack", "receive_window", "zero_window"):
        sender = totals.SIDES[sender]
    row: dict[str, Any] = {"sender": sender}
    prompt = evidence.prompt_acks(items, sender, tables)
    corked = sum(len(i.rows) for i in items if i.cause == "cork" and i.owner == sender)
    options = {
        "nodelay": sockets.nodelay(mine, sender),
        "delayed_ack": sockets.delayed_ack(mine, sender, prompt),
        "cork": sockets.cork(mine, sender, corked),
    }
    for name, option in options.items():
        row |= {name: option.state, f"{name}_seen_on": option.seen_on, f"{name}_seen_off": option.seen_off,
                f"{name}_opportunities": option.opportunities}  # fmt: skip
    row |= {f"nodelay_streams_{way}": getattr(options["nodelay"], f"streams_{way}") for way in ("on", "off")}
    if item.cause not in (STALL, "nagle", "delayed_ack"):
        return row
    timer = sockets.timer(pools[sender])
    for name in ("hold_min_ms", "hold_median_ms", "hold_max_ms", "timer_ms", "tick_ms", "tick_p", "os_hint"):
        row[name] = getattr(timer, name)
    return row


def _mend(
    item: totals.Spent, items: list[totals.Spent], tables: Mapping[str, pa.Table], stream: dict[str, Any],
    typical_ms: float,
) -> dict[str, Any]:  # fmt: skip
    software = evidence.software_of(item.server, tables) if item.cause in fixes.IN_ITS_WORDS else None
    mend = fixes.fix(item.cause, item.owner, typical_ms, software)
    row: dict[str, Any] = {"fix": mend.knob, "fix_side": mend.side, "fix_cost": mend.cost}
    same = [i for i in items if i is not item and item.cause == STALL and (i.cause, i.owner) == ("nagle", item.owner)]
    won = gain.gain(item, same, tables["exchanges"]) if mend.knob else None
    if won is not None:
        row |= {
            "gain_p50_low_ms": won.low_ms, "gain_p50_high_ms": won.high_ms, "gain_p99_low_ms": won.p99_low_ms,
            "gain_rate_low": won.factor_low, "gain_rate_high": won.factor_high, "gain_limit": won.limit,
        }  # fmt: skip
    return row


def _of_event(event: connections.Event) -> dict[str, Any]:
    return _blank() | {
        "kind": "connection", "server": event.server, "server_port": event.port, "cause": event.cause,
        "owner": event.owner, "clients": event.clients, "client": event.client if event.clients == 1 else None,
        "streams": event.streams, "of_streams": event.of, "grade": grade(event.cause, event.confidence),
        "confidence": event.confidence, "says": event.says, "rate_per_s": event.rate,
        "worst_stream": event.stream, "worst_frames": [event.frame],
        "filter": f"tcp.stream eq {event.stream}",
    }  # fmt: skip


__all__ = ["BRIEF", "COLUMNS", "Lazy", "grade", "rows", "schema", "table"]
