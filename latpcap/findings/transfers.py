"""Find what limited downloads and uploads, and what their standing queues cost the requests beside them.

Limits and grades are those of "transfers". Transfers of one server, direction and limit share a finding, written about
the longest one. If the place of the capture leaves a limit open, the finding names the rival and has no fix.

A queue before a line delays all packets of its direction. A capture at the client shows it in the latency of requests,
one at the server in the time until the client acknowledges a download's segments. Requests between the same hosts and
port before and after the transfer are the control. The queue explains their difference up to its own length; the rest
is a slow program. Queues of other hosts, and of uploads captured at the server, are not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.findings.evidence import request
from latpcap.findings.schema import Finding, Grade, wireshark_filter
from latpcap.format import endpoint, printable
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.presentation import MIN_FELT_SUM_MS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.segments import segments
from latpcap.user_waits.servers import Server
from latpcap.vocabulary import GUESSED, LIKELY, SEEN

if TYPE_CHECKING:
    from latpcap.arrays import Array

MIN_REQUESTS = 3
"""Fewest requests during the transfer, and outside it, that are compared."""
MIN_COST_SHARE = 0.3
"""Smallest delay of requests, as a share of the queue's length, that is a cost."""
MIN_MATCH_SHARE = 0.5
"""Smallest delay of requests, as a share of the queue's length, that the queue alone explains."""
MAX_MATCH_SHARE = 1.3
"""Largest delay of requests, as a share of the queue's length, that the queue alone explains."""
MIN_QUEUE_MS = 5.0
"""Shortest queue, and shortest delay by one, that counts as a cost."""
MIN_SUM_MS = 150.0
"""Shortest sum of transfers with one limit that is worth a row."""
MIN_TRANSFER_MS = 50.0
"""Shortest transfer that is worth a row."""
MIN_TRIPS = 2.0
"""Shortest transfer that is worth a row, in round trips."""
CONFIDENCES = {"proven": SEEN, "probable": LIKELY, "suspected": GUESSED}
"""Confidence of each grade, measured on recordings with a known limit, and lowered where they are few."""
MIN_LINE_RATIO = 1.5
"""Smallest ratio of a line's rate to the transfer's for which the sentence names it."""
UNLIMITED_MBIT = 2_000.0
"""Rate above that of any Internet line; segments at this rate do not show the line."""
MIN_IN_QUEUE = 3
"""Fewest slow requests during transfers to another server that show waits in their queue."""
MAX_OUTSIDE_SHARE = 0.1
"""Largest share of slow requests outside those transfers."""
_SENTENCE_OF_LIMIT = {
    "receiver_program": "transfer_reader",
    "sender_program": "transfer_program",
    "sender_buffer": "transfer_buffer",
    "start": "transfer_start",
    "line": "transfer_line",
    "pacing": "transfer_pacing",
    "http2_window": "transfer_http2",
}
"""Id of the sentence for each limit, where nothing more is known; the other two have several."""
_FAR = ("sender_program", "sender_buffer", "pacing")
"""Limits inside the sender, which only a capture near it tells apart."""
MIN_LOSSES = 5
"""Fewest losses that show the path's loss rate."""
MATHIS = 1.22
"""The constant C of the rate MSS / RTT * C / sqrt(p) that a loss rate p allows if the sender halves its window for each
loss (Mathis et al. 1997)."""


def costs(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find requests delayed by the queue of a transfer, by transfer and server, the largest cost first."""
    transfers = tables["transfers"]
    spans = zip(*(arrays.numbers(transfers, name).tolist() for name in ("start", "end")), strict=True)
    findings: list[Finding] = []
    for row, span in zip(transfers.to_pylist(), spans, strict=True):
        if row["limited_by"] == "line" and row["grade"] != "suspected" and (row["queue_ms"] or 0.0) >= MIN_QUEUE_MS:
            findings += _costs_of(row, span, tables)
    return sorted(findings, key=lambda finding: -(finding.total_ms or 0.0))


def excused(findings: Iterable[Finding], queue_costs: Sequence[Finding]) -> Iterator[Finding]:
    """Return the findings; programs whose requests waited in a transfer's queue become only suspected."""
    cost_by_server = {(cost.server, cost.server_port): cost for cost in queue_costs if cost.grade == "probable"}
    for finding in findings:
        cost = cost_by_server.get((finding.server, finding.server_port or 0))
        is_program = finding.cause == "server_think" and finding.of_p50_share is not None
        is_doubtful = cost is not None and 2 * (cost.exchanges or 0) >= (finding.exchanges or 0)
        if is_program and is_doubtful and finding.grade == "probable":
            rival, lost = words.say("rival_queue_beside"), words.say("transfer_rival_left")
            finding = replace(finding, grade="suspected", confidence=GUESSED, rival=rival, rival_lost=lost)
        yield finding


def _costs_of(transfer: Mapping[str, Any], span: tuple[int, int], tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Return the costs of a transfer that lasted from the first to the second instant of `span`."""
    at_client = (transfer["direction"] == "to_server") == transfer["at_sender"]
    if not at_client and transfer["direction"] == "to_server":
        return []
    stretches, streams = tables["stretches"], tables["streams"]
    is_same_pair = arrays.equals(streams, "client", transfer["client"])
    is_same_pair &= arrays.equals(streams, "server", transfer["server"])
    is_same_pair &= arrays.numbers(streams, "stream") != transfer["stream"]
    numbers, ports = (arrays.numbers(streams, name)[is_same_pair] for name in ("stream", "server_port"))
    is_complete = arrays.numbers(stretches, "complete").astype(bool)
    costs_by_port = []
    for port in arrays.distinct(ports).tolist():
        rows = np.flatnonzero(is_complete & np.isin(arrays.numbers(stretches, "stream"), numbers[ports == port]))
        costs_by_port.append(_cost_at(port, rows, transfer, span, tables, at_client))
    return [cost for cost in costs_by_port if cost is not None]


def _cost_at(
    port: int, rows: Array, transfer: Mapping[str, Any], span: tuple[int, int], tables: Mapping[str, pa.Table],
    at_client: bool,
) -> Finding | None:  # fmt: skip
    """Return the cost to the requests in these rows, to one port of the server; None if there is none."""
    stretches, (start, end) = tables["stretches"], span
    requested, ended = (arrays.filled(stretches, name, 0)[rows] for name in ("request_end", "end"))
    if at_client:
        took_ms = arrays.numbers(stretches, "latency_ms")[rows]
    else:
        took_ms = _acknowledged(tables, arrays.numbers(stretches, "stream")[rows], ended)
    is_timed = ~np.isnan(took_ms)
    is_during = is_timed & (requested >= start) & (ended <= end)
    is_outside = is_timed & ((ended < start) | (requested > end))
    if min(is_during.sum(), is_outside.sum()) < MIN_REQUESTS:
        return None
    idle_ms, loaded_ms = float(np.median(took_ms[is_outside])), float(np.median(took_ms[is_during]))
    added_ms, queue_ms = loaded_ms - idle_ms, float(transfer["queue_ms"])
    if added_ms < max(MIN_COST_SHARE * queue_ms, MIN_QUEUE_MS):
        return None
    cost_ms = min(added_ms, queue_ms)
    is_measured = not at_client or 2 * np.median(arrays.numbers(stretches, "queueing_ms")[rows][is_during]) >= cost_ms
    is_sure = bool(is_measured) or MIN_MATCH_SHARE * queue_ms <= added_ms <= MAX_MATCH_SHARE * queue_ms
    delays_ms = np.minimum(np.maximum(took_ms[is_during] - idle_ms, 0.0), queue_ms)
    worst = request(stretches, int(rows[is_during][np.argmax(took_ms[is_during])]))
    is_download, count = transfer["direction"] == "to_client", int(is_during.sum())
    values = {
        "server": endpoint(transfer["server"], port), "n": count, "idle_ms": idle_ms, "loaded_ms": loaded_ms,
        "cost_ms": cost_ms, "all_ms": float(delays_ms.sum()),
        "what": words.say("a_download" if is_download else "an_upload"),
        "end": endpoint(transfer["server"], transfer["server_port"]), "sender": "server" if is_download else "client",
        "window": size(transfer["window_needed_bytes"] or 0),
    }  # fmt: skip
    sentence = "queue_cost_or" if not is_sure else "queue_cost" if at_client else "queue_cost_server"
    return Finding.wait(
        (transfer["server"], port), sentence, "network", "late" if is_sure else None, delays_ms.tolist(), values,
        cause="queueing", client=transfer["client"], clients=1, exchanges=count, of_exchanges=len(rows),
        total_ms=float(delays_ms.sum()), median_ms=cost_ms, worst_ms=None,
        confidence=LIKELY if is_sure else GUESSED, worst_exchange=worst["exchange"], worst_stream=worst["stream"],
        worst_frames=(worst["request_first_frame"],),
        filter=f"{wireshark_filter(transfer['stream'])} or {wireshark_filter(worst['stream'])}",
    )  # fmt: skip


def _acknowledged(tables: Mapping[str, pa.Table], streams: Array, ended: Array) -> Array:
    """Return the ms until the client acknowledged the end of each answer; NaN if not captured."""
    took_ms, segments_of = np.full(len(ended), np.nan), segments(tables)
    if segments_of is None:
        return took_ms
    events = segments_of.of_streams(arrays.distinct(streams))
    names = ("stream", "time", "seq", "ack", "len")
    stream, time, seq, ack, length = (arrays.filled(events, name, 0).astype(np.int64) for name in names)
    client = arrays.numbers(events, "from_client").astype(bool)
    for stream_number in arrays.distinct(streams).tolist():
        answers = np.flatnonzero(streams == stream_number)
        is_back, is_data = (stream == stream_number) & client, (stream == stream_number) & ~client & (length > 0)
        if not is_back.any() or not is_data.any():
            continue
        last = np.maximum(np.searchsorted(time[is_data], ended[answers], side="right") - 1, 0)
        first_ack = np.searchsorted(np.maximum.accumulate(ack[is_back]), (seq + length)[is_data][last])
        acked_at = np.append(time[is_back], -1)[first_ack]
        took_ms[answers] = np.where(acked_at >= ended[answers], (acked_at - ended[answers]) / NS_PER_MS, np.nan)
    return took_ms


def find(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find the long transfers with a known limit, by server, direction and limit; the longest first."""
    rows = [row for row in tables["transfers"].to_pylist() if _matters(row)]
    pauses = [row for row in rows if row["limited_by"] == "sender_program"]
    between = _between_messages(pauses, tables["stretches"]) if pauses else set()
    rows = [row for row in rows if (row["stream"], row["direction"]) not in between]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["server"], row["server_port"], row["direction"], row["limited_by"]].append(row)
    findings = [
        _finding(group, len(rows))
        for group in groups.values()
        if sum(row["duration_ms"] for row in group) >= MIN_SUM_MS
    ]
    return sorted(findings, key=lambda finding: -(finding.total_ms or 0.0))


def in_queue(server: Server, tables: Mapping[str, pa.Table]) -> int:
    """Count this server's slow requests while a transfer to another server filled the line's queue.

    Returns 0 if requests are slow without such a transfer, too.
    """
    this_server = server.address, server.port
    transfers = tables["transfers"]
    times = zip(*(arrays.numbers(transfers, name).tolist() for name in ("start", "end")), strict=True)
    full_spans = [
        span for row, span in zip(transfers.to_pylist(), times, strict=True)
        if row["limited_by"] == "line" and (row["queue_ms"] or 0.0) >= LIMITS["slow_ms"]
        and (row["server"], row["server_port"]) != this_server
    ]  # fmt: skip
    if not full_spans or len(server.slow) < MIN_IN_QUEUE:
        return 0
    start, end = (arrays.filled(tables["stretches"], name, 0) for name in ("start", "end"))
    is_meanwhile = np.zeros(len(start), bool)
    for queue_start, queue_end in full_spans:
        is_meanwhile |= (start < queue_end) & (end > queue_start)
    inside, quick_count = int(is_meanwhile[server.slow].sum()), int((~is_meanwhile[server.rows]).sum())
    outside = len(server.slow) - inside
    is_shown = inside >= MIN_IN_QUEUE and quick_count >= MIN_IN_QUEUE and outside <= MAX_OUTSIDE_SHARE * quick_count
    return inside if is_shown and 2 * inside >= int(is_meanwhile[server.rows].sum()) else 0


def _between_messages(rows: list[dict[str, Any]], stretches: pa.Table) -> set[tuple[int, str]]:
    """Return stream and direction of the transfers that paused mostly between messages, not inside them.

    Those pauses are waits of requests, or of nobody.
    """
    stream, answer_start = arrays.numbers(stretches, "stream"), arrays.filled(stretches, "response_start", 0)
    is_of_rows = np.isin(stream, [row["stream"] for row in rows]) & (answer_start > 0)
    streams, index = np.unique(stream[is_of_rows], return_inverse=True)
    instants = {name: arrays.filled(stretches, name, 0)[is_of_rows] for name in ("start", "request_end", "end")}
    counts = dict(zip(streams.tolist(), np.bincount(index).tolist(), strict=True))
    limited = set()
    for direction, spent in (
        ("to_client", instants["end"] - answer_start[is_of_rows]),
        ("to_server", instants["request_end"] - instants["start"]),
    ):  # fmt: skip
        in_ms = dict(zip(streams.tolist(), np.bincount(index, weights=spent / NS_PER_MS).tolist(), strict=True))
        for row in rows:
            has_several = row["direction"] == direction and counts.get(row["stream"], 0) > 1
            if has_several and 2 * in_ms[row["stream"]] < row["duration_ms"]:
                limited.add((row["stream"], direction))
    return limited


def _matters(row: dict[str, Any]) -> bool:
    rtt_ms = row["rtt_idle_ms"] or 0.0
    is_known = row["limited_by"] != "none" and row["grade"] != "unknown"
    return is_known and row["rate_mbit"] is not None and row["duration_ms"] >= max(MIN_TRANSFER_MS, MIN_TRIPS * rtt_ms)


def _finding(rows: list[dict[str, Any]], count: int) -> Finding:
    """Return the finding of transfers with the same limit; the longest is its worst case."""
    row = max(rows, key=lambda transfer: transfer["duration_ms"])
    sentence = _sentence(row)
    grade: Grade = row["grade"]
    waits = sorted(transfer["duration_ms"] + (transfer["rtt_idle_ms"] or 0.0) for transfer in rows)
    to_client = row["direction"] == "to_client"
    sender, receiver = ("server", "client") if to_client else ("client", "server")
    owner = {"transfer_far": sender, "transfer_level": receiver, "transfer_lost": "network"}.get(sentence, row["owner"])
    values = {
        "n": len(rows),
        "what": words.say("a_download" if to_client else "an_upload"),
        "size": size(row["bytes"]),
        "rate": _rate(row["rate_mbit"]),
        "took_ms": row["duration_ms"],
        "end": endpoint(printable(row["server"]), row["server_port"]),
        "sender": sender,
        "receiver": receiver,
        "window": size(_window(row)),
        "needed": size(_needed(row)),
        "scope": words.say(f"transfer_of_{row['http2_window_of'] or 'stream'}"),
        "would": _would(row),
        "rtt_ms": row["rtt_idle_ms"] or 0.0,
        "loaded_ms": row["rtt_load_ms"] or 0.0,
        "lost": row["retransmissions"],
        "flight": size(row["rate_mbit"] * 125 * (row["rtt_load_ms"] or row["rtt_idle_ms"] or 0.0)),
        "rival": words.say(f"transfer_or_{row['rival']}") if sentence == "transfer_line_or" else "",
    }
    is_felt = waits[-1] >= MIN_FELT_SUM_MS or row["limited_by"] != "start"  # every download has slow start
    rival = row["rival"] and words.say(f"transfer_or_{row['rival']}")
    rival_lost = row["rival"] and words.say("transfer_rival_left")
    return Finding(
        kind="transfer", server=row["server"], server_port=row["server_port"], cause=row["limited_by"],
        owner=owner or "network", clients=len({transfer["client"] for transfer in rows}), client=row["client"],
        streams=len({transfer["stream"] for transfer in rows}), of_streams=count, total_ms=sum(waits), max_ms=waits[-1],
        median_ms=waits[len(waits) // 2], confidence=CONFIDENCES[grade], harm="late" if is_felt else None, rival=rival,
        rival_lost=rival_lost,
        worst_stream=row["stream"], worst_ms=waits[-1], sender=sender,
        filter=wireshark_filter(row['stream']), sentence=sentence, values=values,
    )  # fmt: skip


def _is_slowed_by_losses(row: dict[str, Any]) -> bool:
    """Return whether losses explain the rate, so that the sender's pauses come from its congestion window."""
    rtt, lost = row["rtt_load_ms"] or row["rtt_idle_ms"] or 0.0, row["retransmissions"]
    if lost < MIN_LOSSES or not rtt:
        return False
    mbit = 8 * row["bytes"] / row["segments"] / rtt / 1000
    return bool(row["rate_mbit"] <= mbit * MATHIS / sqrt(lost / row["segments"]))


def _sentence(row: dict[str, Any]) -> str:
    """Return the id of the sentence for this transfer."""
    limit = row["limited_by"]
    if limit == "receiver_window":
        return "transfer_unscaled" if row["window_scaling"] is False else "transfer_window"
    if limit in _FAR and row["grade"] == "suspected" and _is_slowed_by_losses(row):
        return "transfer_lost"
    if limit == "sender_buffer" and row["window_scaling"] is None and not row["at_sender"]:
        return "transfer_level"
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
    return _SENTENCE_OF_LIMIT[limit]


def _window(row: dict[str, Any]) -> int:
    """Return the bytes of the window that was full: HTTP/2's or TCP's."""
    http2: int | None = row["http2_window_bytes"] if row["limited_by"] == "http2_window" else None
    return http2 or row["window_bytes"] or 0


def _needed(row: dict[str, Any]) -> int:
    """Return a window in bytes that would not limit; a multiple of the present one if the line's rate is not known."""
    burst, window = row["burst_mbit"] or 0.0, _window(row)
    needed = row["window_needed_bytes"] or 0
    return max(2 * window, needed) if burst < UNLIMITED_MBIT else 4 * window


def _would(row: dict[str, Any]) -> str:
    """Return a phrase about the line's rate with such a window; "" if it is not known."""
    burst = row["burst_mbit"] or 0.0
    if not MIN_LINE_RATIO * row["rate_mbit"] < burst < UNLIMITED_MBIT:
        return ""
    return words.say("transfer_would", needed=size(_needed(row)), burst=_rate(burst))


def size(value: float) -> str:
    """Return bytes with a unit: 65536 -> "65.5 kB"."""
    unit, by = ("GB", 1e9) if value >= 1e9 else ("MB", 1e6) if value >= 1e6 else ("kB", 1e3)
    return f"{value / by:,.3g} {unit}"


def _rate(mbit: float) -> str:
    return f"{mbit:,.3g} Mbit/s" if mbit >= 1 else f"{1000 * mbit:,.3g} kbit/s"
