"""Find the frame in which Wireshark shows an HTTP or DNS message: the one that completes it.

Reads `exchanges` and `events`. The last frame of a message in `exchanges` may only repeat bytes that were seen before.
For streams with such repeats the bytes of each message are counted again, segment by segment.
"""

from __future__ import annotations

import bisect
import functools
from typing import Any

from latpcap.lazy import pa, pc

_REPEATS = ("retransmission", "out_of_order", "lost_segment")


def completed(exchanges: pa.Table, events: pa.Table, protocol: str) -> pa.Table:
    """Return a protocol's exchanges with the frames that complete their messages: `request_in` and `response_in`.

    Null where a message is incomplete, or has no method or status.
    """
    table = exchanges.filter(pc.equal(exchanges["protocol"].cast("string"), protocol))
    is_request = pc.is_valid(table["method"])
    table = table.append_column("request_in", _frames(table, events, "request", True, is_request))
    answered = pc.and_(pc.is_valid(table["status"]), table["complete"])
    return table.append_column("response_in", _frames(table, events, "response", False, answered)).combine_chunks()


def _frames(table: pa.Table, events: pa.Table, message: str, from_client: bool, is_whole: Any) -> pa.ChunkedArray:
    last = pc.if_else(is_whole, table[f"{message}_last_frame"], pa.scalar(None, pa.uint64()))
    marked = functools.reduce(pc.or_, (events[name] for name in _REPEATS))
    marked = pc.and_(marked, pc.equal(events["from_client"], from_client))
    streams = pc.unique(events["stream"].filter(marked))
    suspect = pc.and_(pc.is_in(table["stream"], value_set=streams), pc.is_valid(last)).fill_null(False)
    if not pc.any(suspect).as_py():
        return last
    wanted = pc.and_(pc.is_in(events["stream"], value_set=streams), pc.equal(events["from_client"], from_client))
    wanted = pc.and_(wanted, pc.greater(events["len"], 0))
    segments_of = _segments(events.filter(wanted))
    firsts = table[f"{message}_first_frame"].to_pylist()
    frames = last.to_pylist()
    for row, stream in enumerate(table["stream"].to_pylist()):
        if suspect[row].as_py() and firsts[row] is not None:
            frames[row] = _complete(segments_of.get(stream, []), firsts[row], frames[row])
    return pa.chunked_array([pa.array(frames, pa.uint64())])


def _segments(events: pa.Table) -> dict[int, list[tuple[int, int, int]]]:
    """Return frame, first sequence number and the one after the last byte of each segment, by stream, in file order."""
    segments_of: dict[int, list[tuple[int, int, int]]] = {}
    columns = (events[name].to_pylist() for name in ("stream", "frame", "seq", "len"))
    for stream, frame, seq, length in zip(*columns, strict=True):
        segments_of.setdefault(stream, []).append((frame, seq, seq + length))
    return segments_of


def _complete(segments: list[tuple[int, int, int]], first: int, last: int) -> int:
    """Return the frame with which all bytes of a message have arrived.

    `first` and `last` are the message's first and last frame. Example: of segments 0-100, 200-300, 100-200 and
    200-300 again, the third completes the message.
    """
    begin = bisect.bisect_left(segments, (first, -(2**63), 0))
    parts = segments[begin : bisect.bisect_right(segments, (last, 2**63, 0))]
    if not parts:
        return last
    received, end = min(part[1] for part in parts), max(part[2] for part in parts)
    waiting: list[tuple[int, int]] = []  # segments after a hole
    for frame, left, right in parts:
        if right <= received:
            continue
        waiting.append((left, right))
        waiting.sort()
        while waiting and waiting[0][0] <= received:
            received = max(received, waiting.pop(0)[1])
        if received >= end:
            return frame
    return last
