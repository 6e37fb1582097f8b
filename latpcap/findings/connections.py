"""What happened to connections rather than to requests? Streams in; floods, refusals and resets out.

These take no exchange's time, so they never rank above what does; a flood of SYNs is the exception, since it may
be why nobody is answered.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latpcap.findings.spent import endpoint

if TYPE_CHECKING:
    import pyarrow as pa

SYN, SYN_ACK, ACK, DATA, FIN, RST = 1, 2, 4, 8, 16, 32
"""Bits of Wireshark's completeness."""
FLOOD = 100
"""So many half-open connections to one server ..."""
FLOOD_RATE = 20.0
"""... at so many a second, not completed in nine cases of ten, are a flood."""
MANY_SOURCES = 10

COLUMNS = [
    "stream", "client", "client_port", "server", "server_port", "start", "first_frame", "completeness",
    "client_packets", "server_packets", "closed_by", "exchanges",
]  # fmt: skip


@dataclass(frozen=True)
class Event:
    """One kind of happening at one server: how many streams, of how many, and the first of them."""

    cause: str
    server: str
    port: int
    owner: str
    streams: int
    of: int
    clients: int
    client: str
    stream: int
    frame: int
    rate: float | None
    says: str
    confidence: float


def of(streams: pa.Table) -> list[Event]:
    """What did the connections suffer that no exchange shows? Floods first, then by count."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    columns = [c.to_pylist() for c in streams.select(COLUMNS).cast(_plain(streams)).columns]
    for values in zip(*columns, strict=True):
        row = dict(zip(COLUMNS, values, strict=True))
        groups[row["server"], row["server_port"]].append(row)
    found = [event for (server, port), rows in groups.items() for event in _server(server, port, rows)]
    return sorted(found, key=lambda e: (e.cause != "syn_flood", -e.streams, e.server, e.port, e.cause))


def _plain(streams: pa.Table) -> pa.Schema:
    """Times as integers: Python's datetimes would lose their last three digits."""
    import pyarrow as pa

    wanted = [streams.schema.field(c) for c in COLUMNS]
    return pa.schema([f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in wanted])


def _server(server: str, port: int, rows: list[dict[str, Any]]) -> list[Event]:
    half_open = [r for r in rows if _half_open(r)]
    found = []
    flood = _flood(server, port, rows, half_open)
    if flood:
        found.append(flood)
    else:
        silent = [r for r in half_open if not r["server_packets"]]
        open_ = [r for r in half_open if r["server_packets"]]
        says = "SYNs of {n} were never answered: a firewall drops them, or the host is not there"
        found += _event("unanswered", server, port, "server", silent, rows, says, 0.8)
        says = "{n} got a SYN-ACK and never completed the handshake: probes, or the SYN-ACK did not arrive"
        found += _event("half_open", server, port, "client", open_, rows, says, 0.6)
    refused = [r for r in rows if r["completeness"] & SYN and not r["completeness"] & SYN_ACK and _reset(r, "server")]
    says = "{n} were refused with RST: nothing listens on that port"
    found += _event("refused", server, port, "server", refused, rows, says, 0.95)
    for side in ("server", "client"):
        aborted = [r for r in rows if r["completeness"] & DATA and _reset(r, side)]
        says = f"{{n}} were closed by the {side}'s RST; load generators end so, and it takes nobody's time"
        found += _event("reset", server, port, side, aborted, rows, says, 0.9)
    return found


def _reset(row: dict[str, Any], side: str) -> bool:
    return bool(row["closed_by"] == f"{side}_rst")


def _half_open(row: dict[str, Any]) -> bool:
    """A SYN that was never followed by the rest of its handshake, nor refused."""
    code = row["completeness"]
    return bool(code & SYN) and not code & (ACK | DATA) and not _reset(row, "server")


def _flood(server: str, port: int, rows: list[dict[str, Any]], half_open: list[dict[str, Any]]) -> Event | None:
    if len(half_open) < FLOOD or len(half_open) < 0.9 * len(rows):
        return None
    starts = sorted(r["start"] for r in half_open)
    seconds = max((starts[-1] - starts[0]) / 1e9, 1e-3)
    rate = len(half_open) / seconds
    sources = {r["client"] for r in half_open}
    if rate < FLOOD_RATE:
        return None
    first = min(half_open, key=lambda r: r["first_frame"])
    many = len(sources) >= MANY_SOURCES
    answered = sum(1 for r in half_open if r["server_packets"])
    whence = f"{len(sources):,} addresses" if len(sources) > 1 else "1 address"
    says = (
        f"SYN flood: {len(half_open):,} of {len(rows):,} connections from {whence} were never completed "
        f"({rate:,.0f} a second; the server answered {answered:,})"
    )
    sure = 0.95 if many and rate >= 5 * FLOOD_RATE else 0.85
    return Event(
        "syn_flood", server, port, "client", len(half_open), len(rows), len(sources), first["client"], first["stream"],
        first["first_frame"], rate, says, sure,
    )  # fmt: skip


def _event(
    cause: str, server: str, port: int, owner: str, mine: list[dict[str, Any]], rows: list[dict[str, Any]],
    says: str, confidence: float,
) -> list[Event]:  # fmt: skip
    if not mine:
        return []
    first = min(mine, key=lambda r: r["first_frame"])
    clients = {r["client"] for r in mine}
    count = f"{len(mine):,} of {len(rows):,} connections to {endpoint(server, port)}"
    return [
        Event(
            cause, server, port, owner, len(mine), len(rows), len(clients), first["client"], first["stream"],
            first["first_frame"], None, says.format(n=count), confidence,
        )
    ]  # fmt: skip
