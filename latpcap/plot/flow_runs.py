"""Which packets of a flow graph are told in one row, and what is said of those that stand alone?

Reads packets as plain values or as a table of events; gives runs of data that nothing happened in ("11 x 1448 B,
12 ms"), and Wireshark's marks in words. Knows nothing of pages, fonts or pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latpcap.format import count
from latpcap.plot.flow_rows import FlowRow, Record
from latpcap.plot.text import tenths

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

LONG = 8
"""So many data segments are told in one row where nobody asked: fewer are read as fast one by one."""
ASKED = 3
"""So many where runs were asked for: two rows are no longer than what is said of them."""

FACTS = {
    "zero_window_probe": "zero-window probe",
    "zero_window": "zero window",
    "window_full": "window full",
    "fast_retransmission": "fast retransmission",
    "spurious_retransmission": "needless retransmission",
    "retransmission": "retransmission",
    "out_of_order": "out of order",
    "lost_segment": "hole before it",
    "ack_lost_segment": "ACK of unseen data",
    "duplicate_ack": "duplicate ACK",
    "keep_alive": "keep-alive",
    "reused_ports": "ports used again",
}
"""Wireshark's marks (tcp.analysis) that a picture names, the most telling first; columns of `events`."""


def fact(packet: Record) -> str:
    """What Wireshark marks this packet with, in words; empty for an ordinary one."""
    return next((words for name, words in FACTS.items() if packet.get(name)), "")


def groups(
    packets: pa.Table | Sequence[Record],
    least: int,
    mark_ms: float,
    *,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Where does each row begin? Places of packets; a row goes on to where the next one begins.

    A run is `least` or more segments of data that follow each other on one stream in one direction, with the other
    side's plain ACKs between and behind them. What Wireshark marks, SYN, FIN and RST stand alone; a run ends before a
    gap of `mark_ms`, before the frames `before` and behind the frames `after`.
    """
    import numpy as np

    frame, stream, time, client, length, plain, acks = _columns(packets)
    data = plain & (length > 0)
    ack = plain & (length == 0) & acks
    member = (data | ack) & (stream >= 0)
    way = client ^ ack  # whose data goes on; an ACK belongs to what it acknowledges
    if len(frame) == 0:
        return np.zeros(0, np.int64)
    cut = np.ones(len(frame), bool)
    cut[1:] = ~member[1:] | ~member[:-1] | (stream[1:] != stream[:-1]) | (way[1:] != way[:-1])
    cut[1:] |= np.diff(time) >= mark_ms * 1e6
    cut |= np.isin(frame, before)
    cut[1:] |= np.isin(frame[:-1], after)
    cut |= _leading(cut, data)
    begins = np.flatnonzero(cut)
    segments = np.add.reduceat(data.astype(np.int64), begins)
    few = np.repeat(segments < least, np.diff(begins, append=len(frame)))
    return np.flatnonzero(cut | few)


def _leading(cut: NDArray[np.bool_], data: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What stands in front of a run's first data, and that data: ACKs there are rows of their own."""
    import numpy as np

    places, begins = np.arange(len(cut)), np.flatnonzero(cut)
    known = np.append(np.flatnonzero(data), len(cut))
    first = known[np.searchsorted(known, begins)]  # of a run without data: that of a later one
    found: NDArray[np.bool_] = places <= first[np.cumsum(cut) - 1]
    return found


def _columns(packets: pa.Table | Sequence[Record]) -> tuple[Any, ...]:
    """Frame, stream, time, whether from the client, length, whether nothing is remarkable, whether a plain ACK."""
    import numpy as np

    if isinstance(packets, Sequence):
        rows = [_row(packet) for packet in packets]
        kinds = (np.int64, np.int64, np.int64, bool, np.int64, bool, bool)
        return tuple(np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True))
    import pyarrow as pa
    import pyarrow.compute as pc

    def column(name: str, unknown: int) -> Any:
        if name not in packets.column_names:
            return np.full(packets.num_rows, unknown)
        values = packets[name]
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ns", tz=values.type.tz))
        return values.cast(pa.int64()).fill_null(unknown).to_numpy()

    flags = packets["flags"].cast(pa.string()).fill_null("")
    ends = pc.match_substring_regex(flags, "SYN|FIN|RST").to_numpy(zero_copy_only=False)
    marked = np.zeros(packets.num_rows, bool)
    for name in FACTS:
        marked |= column(name, 0) != 0
    plain_ack = pc.equal(flags, "ACK").to_numpy(zero_copy_only=False)
    client = column("from_client", 1) != 0
    frame, stream, time, length = (column(name, 0) for name in ("frame", "stream", "time", "len"))
    return frame, stream, time, client, length, ~(ends | marked), plain_ack


def _row(packet: Record) -> tuple[Any, ...]:
    flags = packet.get("flags") or ""
    ends = any(word in flags for word in ("SYN", "FIN", "RST"))
    return (
        packet["frame"],
        packet["stream"],
        packet["time"],
        packet["from_client"] is not False,
        packet.get("len") or 0,
        not (ends or fact(packet)),
        flags == "ACK",
    )


def folded(packets: Sequence[Record], rows: Sequence[FlowRow]) -> FlowRow:
    """One row for a run: the first of its rows, with how many bytes went in which time."""
    lengths = [packet["len"] for packet in packets if packet["len"]]
    same = len(set(lengths[:-1])) == 1 and lengths[-1] == lengths[0]
    size = f"{len(lengths)} \N{MULTIPLICATION SIGN} {lengths[0]} B"
    if not same:
        size = f"{len(lengths)} segments, {sum(lengths):,} B"
    acks = len(packets) - len(lengths)
    ns = packets[-1]["time"] - packets[0]["time"]
    first, last = (next(p for p in way if p["len"]).get("seq") for way in (packets, packets[::-1]))
    told = [f"Seq = {first} \N{HORIZONTAL ELLIPSIS} {last}"] if first is not None and last is not None else []
    told += [count(acks, "ACK")] if acks else []
    return replace(
        rows[0],
        label=f"{size}, {tenths(ns / 1e6)} ms",
        comment=", ".join(told),
        packets=len(packets),
        said=next((row.said for row in rows if row.said), ""),
    )
