"""In which frame would Wireshark show this HTTP or DNS message? In the one that completes it, repeats not counted.

Reads `exchanges` and `events`. The first and last frame of a message in `exchanges` are those that carried it, and the
last may repeat bytes that were seen before; there the bytes are counted again, segment by segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

REPEATS = ("retransmission", "out_of_order", "lost_segment")


def completed(exchanges: pa.Table, events: pa.Table, protocol: str) -> pa.Table:
    """A protocol's exchanges with two columns more, the frames that complete the messages: `request_in`, `response_in`.

    Null where a message is not complete, has no method or status, or its last frame is not among the events.
    """
    import pyarrow.compute as pc

    table = exchanges.filter(pc.equal(exchanges["protocol"].cast("string"), protocol))
    is_request = pc.is_valid(table["method"])
    table = table.append_column("request_in", _frames(table, events, "request", True, is_request))
    answered = pc.and_(pc.is_valid(table["status"]), table["complete"])
    return table.append_column("response_in", _frames(table, events, "response", False, answered)).combine_chunks()


def _frames(table: pa.Table, events: pa.Table, message: str, from_client: bool, whole: Any) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    last = pc.if_else(whole, table[f"{message}_last_frame"], pa.scalar(None, pa.uint64()))
    marked = pc.or_(events[REPEATS[0]], pc.or_(events[REPEATS[1]], events[REPEATS[2]]))
    marked = pc.and_(marked, pc.equal(events["from_client"], from_client))
    streams = pc.unique(events["stream"].filter(marked))
    suspect = pc.and_(pc.is_in(table["stream"], value_set=streams), pc.is_valid(last)).fill_null(False)
    if not pc.any(suspect).as_py():
        return last
    wanted = pc.and_(pc.is_in(events["stream"], value_set=streams), pc.equal(events["from_client"], from_client))
    wanted = pc.and_(wanted, pc.greater(events["len"], 0))
    found = _segments(events.filter(wanted))
    firsts = table[f"{message}_first_frame"].to_pylist()
    frames = last.to_pylist()
    for row, stream in enumerate(table["stream"].to_pylist()):
        if suspect[row].as_py() and firsts[row] is not None:
            frames[row] = _complete(found.get(stream, []), firsts[row], frames[row])
    return pa.chunked_array([pa.array(frames, pa.uint64())])


def _segments(events: pa.Table) -> dict[int, list[tuple[int, int, int]]]:
    """By stream: frame, first byte and the byte behind the last, in file order."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    columns = (events[name].to_pylist() for name in ("stream", "frame", "seq", "len"))
    for stream, frame, seq, length in zip(*columns, strict=True):
        found.setdefault(stream, []).append((frame, seq, seq + length))
    return found


def _complete(segments: list[tuple[int, int, int]], first: int, last: int) -> int:
    """The frame after which no byte between the message's first and its last is missing any more."""
    import bisect

    begin = bisect.bisect_left(segments, (first, -(2**63), 0))
    mine = segments[begin : bisect.bisect_right(segments, (last, 2**63, 0))]
    if not mine:
        return last
    start, end = min(s[1] for s in mine), max(s[2] for s in mine)
    behind = start  # every byte before it is there
    waiting: list[tuple[int, int]] = []
    for frame, left, right in mine:
        if right <= behind:
            continue
        waiting.append((left, right))
        waiting.sort()
        while waiting and waiting[0][0] <= behind:
            behind = max(behind, waiting.pop(0)[1])
        if behind >= end:
            return frame
    return last
