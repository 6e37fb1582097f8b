"""What did a transfer's standing queue cost the requests beside it? Transfers, requests and segments in, findings out.

A queue before a line is every packet's of its direction. At the client a request's latency has it whichever way the
transfer goes; at the server's end of a download the time until its segments are acknowledged has it. Requests of the
same two hosts and the same server port before and behind the transfer are the control. What a request took beyond them
is the queue's as far as the queue is long: a program that is slow at that moment keeps the rest.

It refuses to know about queues of other hosts, and about uploads seen from the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.findings.pushes import size
from latpcap.findings.schema import Finding
from latpcap.findings.silence import on_stream
from latpcap.tables import MS
from latpcap.user_waits.cause_totals import endpoint
from latpcap.user_waits.segments import segments
from latpcap.vocabulary import GUESSED, LIKELY

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

FEW = 3
"""So many requests during the transfer, and as many outside it, are the least that says anything."""
FELT, MATCHES, MOST = 0.3, 0.5, 1.3
"""Shares of the queue: less than the first is no cost of it; between the others requests took longer by as much as the
queue is long."""
STOOD_MS = 5.0
"""A shorter queue costs nobody anything."""


def costs(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """What the queues of transfers cost requests beside them, by transfer and server, the dearest first."""
    moved = tables["transfers"]
    spans = zip(*(arrays.numbers(moved, name).tolist() for name in ("start", "end")), strict=True)
    made: list[Finding] = []
    for row, span in zip(moved.to_pylist(), spans, strict=True):
        if row["limited_by"] == "line" and row["grade"] != "suspected" and (row["queue_ms"] or 0.0) >= STOOD_MS:
            made += _of(row, span, tables)
    return sorted(made, key=lambda one: -(one.total_ms or 0.0))


def excused(found: Iterable[Finding], of: Sequence[Finding]) -> list[Finding]:
    """The findings, with less certainty about programs whose requests stood in a queue meanwhile."""
    queued = {(one.server, one.server_port): one for one in of if one.grade == "probable"}
    made = []
    for one in found:
        cost = queued.get((one.server, one.server_port or 0))
        program = one.cause == "server_think" and one.grade == "probable" and one.of_p50_share is not None
        if cost is not None and program and 2 * (cost.exchanges or 0) >= (one.exchanges or 0):
            lost = words.say("transfer_rival_left")
            one = replace(
                one, grade="suspected", confidence=GUESSED, rival=words.say("rival_queue_beside"), rival_lost=lost
            )
        made.append(one)
    return made


def _of(row: Mapping[str, Any], span: tuple[int, int], tables: Mapping[str, pa.Table]) -> list[Finding]:
    at_client = (row["direction"] == "to_server") == row["at_sender"]
    import numpy as np

    if not at_client and row["direction"] == "to_server":
        return []
    exchanges, streams = tables["exchanges"], tables["streams"]
    same = arrays.equals(streams, "client", row["client"]) & arrays.equals(streams, "server", row["server"])
    same &= arrays.numbers(streams, "stream") != row["stream"]
    numbers, ports = (arrays.numbers(streams, name)[same] for name in ("stream", "server_port"))
    complete = arrays.numbers(exchanges, "complete").astype(bool)
    made = []
    for port in arrays.distinct(ports).tolist():
        rows = np.flatnonzero(complete & np.isin(arrays.numbers(exchanges, "stream"), numbers[ports == port]))
        made.append(_at(row, span, tables, (port, rows), at_client))
    return [one for one in made if one is not None]


def _at(
    row: Mapping[str, Any],
    span: tuple[int, int],
    tables: Mapping[str, pa.Table],
    requests: tuple[int, Array],
    at_client: bool,
) -> Finding | None:
    """The cost to requests of one port of the server."""
    import numpy as np

    exchanges, (start, end), (port, rows) = tables["exchanges"], span, requests
    begun, over = (arrays.filled(exchanges, name, 0)[rows] for name in ("request_end", "end"))
    if at_client:
        took = arrays.numbers(exchanges, "latency_ms")[rows]
    else:
        took = _acknowledged(tables, arrays.numbers(exchanges, "stream")[rows], over)
    seen = ~np.isnan(took)
    inside, outside = seen & (begun >= start) & (over <= end), seen & ((over < start) | (begun > end))
    if min(inside.sum(), outside.sum()) < FEW:
        return None
    idle, loaded, queue = float(np.median(took[outside])), float(np.median(took[inside])), float(row["queue_ms"])
    more = loaded - idle
    if more < max(FELT * queue, STOOD_MS):
        return None
    measured = not at_client or 2 * np.median(arrays.numbers(exchanges, "queueing_ms")[rows][inside]) >= min(
        more, queue
    )
    sure = bool(measured) or MATCHES * queue <= more <= MOST * queue
    each = np.minimum(np.maximum(took[inside] - idle, 0.0), queue)
    slowest = int(rows[inside][np.argmax(took[inside])])
    [worst] = exchanges.select(["exchange", "stream", "request_first_frame"]).slice(slowest, 1).to_pylist()
    download, count = row["direction"] == "to_client", int(inside.sum())
    values = {
        "server": endpoint(row["server"], port), "n": count, "idle_ms": idle, "loaded_ms": loaded,
        "cost_ms": min(more, queue), "all_ms": float(each.sum()),
        "what": words.say("a_download" if download else "an_upload"),
        "end": endpoint(row["server"], row["server_port"]), "sender": "server" if download else "client",
        "window": size(row["window_needed_bytes"] or 0),
    }  # fmt: skip
    return Finding(
        kind="wait", server=row["server"], server_port=port, cause="queueing", owner="network",
        client=row["client"], clients=1, exchanges=count, of_exchanges=len(rows), total_ms=float(each.sum()),
        median_ms=min(more, queue), max_ms=float(each.max()), confidence=LIKELY if sure else GUESSED,
        worst_exchange=worst["exchange"], worst_stream=worst["stream"],
        worst_frames=(worst["request_first_frame"],),
        filter=f"{on_stream(row['stream'])} or {on_stream(worst['stream'])}",
        harm="late" if sure else None, values=values,
        sentence="queue_cost_or" if not sure else "queue_cost" if at_client else "queue_cost_server",
    )  # fmt: skip


def _acknowledged(tables: Mapping[str, pa.Table], streams: Array, over: Array) -> Array:
    """After how many ms did the client acknowledge the end of each answer? NaN where it was not seen."""
    import numpy as np

    took, segments_of = np.full(len(over), np.nan), segments(tables)
    if segments_of is None:
        return took
    events = segments_of.of_streams(arrays.distinct(streams))
    names = ("stream", "time", "seq", "ack", "len")
    stream, time, seq, ack, length = (arrays.filled(events, name, 0).astype(np.int64) for name in names)
    client = arrays.numbers(events, "from_client").astype(bool)
    for number in arrays.distinct(streams).tolist():
        of = np.flatnonzero(streams == number)
        back, data = (stream == number) & client, (stream == number) & ~client & (length > 0)
        if not back.any() or not data.any():
            continue
        last = np.maximum(np.searchsorted(time[data], over[of], side="right") - 1, 0)
        at = np.searchsorted(np.maximum.accumulate(ack[back]), (seq + length)[data][last])
        when = np.append(time[back], -1)[at]
        took[of] = np.where(when >= over[of], (when - over[of]) / MS, np.nan)
    return took
