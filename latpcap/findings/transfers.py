"""How fast was a transfer, and what held it back? Rows of `transfers` in, findings of kind "transfer" out.

The limit and its grade are the core's. Here transfers of one server, direction and limit are put together, and the
largest speaks for them. What cannot be told from where the capture was taken names its rivals and has no fix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.findings.schema import Finding, Grade
from latpcap.format import printable

if TYPE_CHECKING:
    import pyarrow as pa

LONG_MS, SHORT_MS, ROUND_TRIPS = 150.0, 50.0, 2.0
"""Transfers that took less in all are worth no line, nor a short one, nor one of few round trips."""
LIKELY: dict[str, float] = {"proven": 0.95, "probable": 0.8, "suspected": 0.5}
"""What each grade was right in, in the recordings whose limit is known, and less where they are few."""
FASTER = 1.5
"""A line that carries so many times as much is worth naming."""
UNLIMITED_MBIT = 2_000.0
"""Segments that follow each other faster than any line of an Internet path say nothing of one."""


def found(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """The transfers that took their time, by server, direction and limit; the longest first."""
    rows = [row for row in tables["transfers"].to_pylist() if _matters(row)]
    pauses = [row for row in rows if row["limited_by"] == "sender_program" and row["direction"] == "to_client"]
    between = _between_answers(pauses, tables["exchanges"]) if pauses else set()
    rows = [row for row in rows if (row["stream"], row["direction"]) not in between]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["server"], row["server_port"], row["direction"], row["limited_by"]].append(row)
    made = [_finding(group, len(rows)) for group in groups.values() if sum(r["duration_ms"] for r in group) >= LONG_MS]
    return sorted(made, key=lambda one: -(one.total_ms or 0.0))


def _between_answers(rows: list[dict[str, Any]], exchanges: pa.Table) -> set[tuple[int, str]]:
    """Which of these had their pauses between answers more than in them? Those are waits of requests, or of nobody."""
    import numpy as np

    stream, begun = arrays.numbers(exchanges, "stream"), arrays.filled(exchanges, "response_start", 0)
    mine = np.isin(stream, [row["stream"] for row in rows]) & (begun > 0)
    streams, at = np.unique(stream[mine], return_inverse=True)
    took_ms = (arrays.filled(exchanges, "end", 0)[mine] - begun[mine]) / 1e6
    answers = zip(np.bincount(at), np.bincount(at, weights=took_ms), strict=True)
    of = dict(zip(streams.tolist(), answers, strict=True))
    return {
        (row["stream"], row["direction"])
        for row, (count, in_ms) in ((row, of.get(row["stream"], (0, 0.0))) for row in rows)
        if count > 1 and 2 * in_ms < row["duration_ms"]
    }


def _matters(row: dict[str, Any]) -> bool:
    trips = row["rtt_idle_ms"] or 0.0
    known = row["limited_by"] != "none" and row["grade"] != "unknown"
    return known and row["rate_mbit"] is not None and row["duration_ms"] >= max(SHORT_MS, ROUND_TRIPS * trips)


def _finding(rows: list[dict[str, Any]], of: int) -> Finding:
    row = max(rows, key=lambda one: one["duration_ms"])
    sentence = _sentence(row)
    grade: Grade = row["grade"]
    waits = sorted(one["duration_ms"] + (one["rtt_idle_ms"] or 0.0) for one in rows)
    to_client = row["direction"] == "to_client"
    sender, receiver = ("server", "client") if to_client else ("client", "server")
    owner = row["owner"] if sentence != "transfer_far" else sender
    values = {
        "n": len(rows),
        "what": words.say("a_download" if to_client else "an_upload"),
        "size": _bytes(row["bytes"]),
        "rate": _rate(row["rate_mbit"]),
        "took_ms": row["duration_ms"],
        "end": f"{printable(row['server'])}:{row['server_port']}",
        "sender": sender,
        "receiver": receiver,
        "window": _bytes(row["window_bytes"] or 0),
        "needed": _bytes(_needed(row)),
        "would": _would(row),
        "rtt_ms": row["rtt_idle_ms"] or 0.0,
        "loaded_ms": row["rtt_load_ms"] or 0.0,
        "lost": row["retransmissions"],
        "rival": words.say(f"transfer_or_{row['rival']}") if sentence == "transfer_line_or" else "",
    }
    return Finding(
        kind="transfer", server=row["server"], server_port=row["server_port"], cause=row["limited_by"],
        owner=owner or "network", clients=len({one["client"] for one in rows}), client=row["client"],
        streams=len({one["stream"] for one in rows}), of_streams=of, total_ms=sum(waits), max_ms=waits[-1],
        median_ms=waits[len(waits) // 2], grade=grade, confidence=LIKELY[grade], harm="late",
        rival=row["rival"], worst_stream=row["stream"], worst_ms=waits[-1], sender=sender,
        filter=f"tcp.stream eq {row['stream']}", sentence=sentence, values=values,
    )  # fmt: skip


_FAR = ("sender_program", "sender_buffer", "pacing")


def _sentence(row: dict[str, Any]) -> str:
    """Which sentence of the catalogue?"""
    limit = row["limited_by"]
    if limit == "receiver_window":
        return "transfer_unscaled" if row["window_scaling"] is False else "transfer_window"
    if limit in _FAR and not row["at_sender"]:
        return "transfer_far"
    if limit == "congestion":
        return {"reordering": "transfer_reordered", "ecn": "transfer_marked"}.get(row["cut_by"], "transfer_lost")
    if limit == "line" and row["grade"] == "suspected":
        return "transfer_line_or"
    if limit == "line" and (row["queue_ms"] or 0.0) > (row["rtt_idle_ms"] or 0.0):
        return "transfer_bloat"
    if limit == "sender_program" and row["rival"]:
        return "transfer_far"
    return f"transfer_{limit.replace('receiver_program', 'reader').replace('sender_', '').replace('_window', '')}"


def _needed(row: dict[str, Any]) -> int:
    """A window that would not be the limit: twice this one where the line's rate does not show."""
    burst, window = row["burst_mbit"] or 0.0, row["window_bytes"] or 0
    needed = row["window_needed_bytes"] or 0
    return max(2 * window, needed) if burst < UNLIMITED_MBIT else 4 * window


def _would(row: dict[str, Any]) -> str:
    """What the line would carry with such a window; nothing where it does not show."""
    burst = row["burst_mbit"] or 0.0
    if not FASTER * row["rate_mbit"] < burst < UNLIMITED_MBIT:
        return ""
    return words.say("transfer_would", needed=_bytes(_needed(row)), burst=_rate(burst))


def _bytes(value: float) -> str:
    unit, by = ("GB", 1e9) if value >= 1e9 else ("MB", 1e6) if value >= 1e6 else ("kB", 1e3)
    return f"{value / by:,.3g} {unit}"


def _rate(mbit: float) -> str:
    return f"{mbit:,.3g} Mbit/s" if mbit >= 1 else f"{1000 * mbit:,.3g} kbit/s"
