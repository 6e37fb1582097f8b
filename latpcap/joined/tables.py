"""Builds the Arrow tables `packets` and `exchanges` of two joined captures from the matched rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill
from latpcap.joined.capture_point import Point
from latpcap.joined.clock import Clock
from latpcap.joined.exchanges import Matched
from latpcap.joined.packet_fates import Fate, Fates, Reason
from latpcap.joined.pairing import Pairing
from latpcap.lazy import np, pa
from latpcap.tables import NS_PER_MS

if TYPE_CHECKING:
    from latpcap.arrays import Array

DIRECTIONS = ("a_to_b", "b_to_a")


def tally(
    a: Point, b: Point, pairing: Pairing | None, fates: tuple[Fates, Fates] | None, clock: Clock
) -> dict[str, Any]:
    """Count the rows of `packets` by direction and fate without building the table, and find the clock's largest error
    bound.
    """
    largest_ns = -1.0
    for span in spill.parts(len(b.packets)):
        error = clock.error_ns(np.arange(span.start, span.stop), b.packets["time"][span])
        largest_ns = max(largest_ns, float(error[np.isfinite(error)].max(initial=-1)))
    counts: dict[str, Any] = {name: _frames(point) for name, point in (("a", a), ("b", b))}
    counts["both"] = 0 if pairing is None else len(pairing.a)
    counts["clock_error_ms"] = largest_ns / NS_PER_MS if largest_ns >= 0 else None
    rows: dict[str, list[tuple[Array, Array]]] = {"both": [], "a": [], "b": []}  # by captures: directions and fates
    if pairing is None or fates is None:
        for name, point in (("a", a), ("b", b)):
            rows[name].append((point.client, np.full(len(point.packets), Fate.UNKNOWN)))
    else:
        rows["both"].append((pairing.up_a[pairing.a], fates[0].fate[pairing.a]))
        for name, point, paired, up, side_fates in (
            ("a", a, pairing.a, pairing.up_a, fates[0]),
            ("b", b, pairing.b, pairing.up_b, fates[1]),
        ):
            is_single = np.ones(len(point.packets), bool)
            is_single[paired] = False
            rows[name].append((up[is_single], side_fates.fate[is_single]))
    rows_of_all = [row for pairs in rows.values() for row in pairs]
    for direction, upward in zip(DIRECTIONS, (True, False), strict=True):
        fates_of = np.concatenate([fate[up == upward] for up, fate in rows_of_all])
        sums = np.bincount(fates_of, minlength=len(Fate))
        tallies = {name: int(count) for name, count in zip(Fate.words(), sums, strict=True) if count}
        counts[direction] = {"sent": int(sums[Fate.PASSED] + sums[Fate.LOST]), **tallies}
    for lacks, name in (("a_lacks", "b"), ("b_lacks", "a")):
        counts[lacks] = sum(int((fate == Fate.UNSEEN).sum()) for _, fate in rows[name])
    return counts


def _frames(point: Point) -> int:
    """Return the number of frames of the packets. A frame with several packets, as in a tunnel, has consecutive
    rows.
    """
    frames = point.packets["frame"]
    return len(frames) and 1 + int(np.count_nonzero(frames[1:] != frames[:-1]))


def packets(a: Point, b: Point, pairing: Pairing | None, fates: tuple[Fates, Fates] | None, clock: Clock) -> pa.Table:
    """Return a row for each pair of packets, and for each packet that only one capture has, in order of time."""
    rows_b = np.arange(len(b.packets))
    time_b = clock.to_a(b.packets["time"])
    error = clock.error_ns(rows_b, b.packets["time"])
    if pairing is None or fates is None:
        both_a = both_b = np.zeros(0, np.int64)
        is_part = np.zeros(0, bool)
        up_a, up_b = a.client, b.client
        fate_a, fate_b = np.full(len(a.packets), Fate.UNKNOWN), np.full(len(b.packets), Fate.UNKNOWN)
        because_a, because_b = np.full(len(a.packets), Reason.NO_WAY), np.full(len(b.packets), Reason.NO_WAY)
    else:
        both_a, both_b, is_part = pairing.a, pairing.b, pairing.part
        up_a, up_b = pairing.up_a, pairing.up_b
        (fate_a, because_a), (fate_b, because_b) = ((fates_of.fate, fates_of.because) for fates_of in fates)
    is_paired_a, is_paired_b = np.zeros(len(a.packets), bool), np.zeros(len(b.packets), bool)
    is_paired_a[both_a], is_paired_b[both_b] = True, True
    alone_a, alone_b = np.flatnonzero(~is_paired_a), np.flatnonzero(~is_paired_b)
    row_a = np.concatenate([both_a, alone_a, np.full(len(alone_b), -1)]).astype(np.int64)
    row_b = np.concatenate([both_b, np.full(len(alone_a), -1), alone_b]).astype(np.int64)
    at_a, at_b = row_a >= 0, row_b >= 0
    time_ns = np.where(at_a, a.packets["time"][row_a] if len(a.packets) else 0, time_b[row_b] if len(time_b) else 0)
    order = np.lexsort((row_b, row_a, time_ns))
    row_a, row_b, at_a, at_b = row_a[order], row_b[order], at_a[order], at_b[order]
    is_part = np.concatenate([is_part, np.zeros(len(alone_a) + len(alone_b), bool)])[order]
    up = np.where(at_a, up_a[row_a], up_b[row_b])
    delay = (time_b[row_b] - a.packets["time"][row_a]) / NS_PER_MS * np.where(up, 1, -1)
    bound = error[row_b] / NS_PER_MS
    stamp = pa.timestamp("ns", "UTC")
    return pa.table(
        {
            "a_frame": _column(a.packets["frame"][row_a].astype(np.int64), at_a, pa.int64()),
            "b_frame": _column(b.packets["frame"][row_b].astype(np.int64), at_b, pa.int64()),
            "a_stream": _column(a.packets["stream"][row_a].astype(np.int64), at_a, pa.int64()),
            "b_stream": _column(b.packets["stream"][row_b].astype(np.int64), at_b, pa.int64()),
            "a_time": _column(a.packets["time"][row_a], at_a, pa.int64()).cast(stamp),
            "b_time": _column(time_b[row_b], at_b, pa.int64()).cast(stamp),
            "direction": _word_column(np.where(up, 0, 1), DIRECTIONS),
            "delay_ms": _column(delay, at_a & at_b, pa.float64()),
            "clock_error_ms": _column(bound, at_b & np.isfinite(bound), pa.float64()),
            "fate": _word_column(np.where(at_a, fate_a[row_a], fate_b[row_b]), Fate.words()),
            "because": _word_column(np.where(at_a, because_a[row_a], because_b[row_b]), Reason.words()),
            "part": pa.array(is_part),
        }
    )


def _column(values: Array, is_known: Array, arrow_type: pa.DataType) -> pa.Array:
    return pa.array(values, arrow_type, mask=~is_known)


def _word_column(codes: Array, names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names))


def exchanges(a: Point, b: Point, matched: Matched) -> pa.Table:
    """Return a row for each exchange that is complete in both captures."""
    sent_ns, arrived_ns, answered_ns, returned_ns = matched.instants()
    error_ms = matched.error_ns() / NS_PER_MS
    table_a, table_b = a.table("exchanges"), b.table("exchanges")
    rows_a, rows_b = matched.front.row[matched.a], matched.back.row[matched.b]
    numbers = {
        f"{name}_{column}": _kept(arrays.numbers(table, column)[rows].astype(np.int64))
        for column in ("exchange", "stream")
        for name, table, rows in (("a", table_a, rows_a), ("b", table_b, rows_b))
    }
    columns = {
        **numbers,
        **{name: arrays.taken(table_a, name, rows_a) for name in ("protocol", "method", "target", "status")},
        "start": _kept(sent_ns).view(pa.timestamp("ns", "UTC")),
        "latency_ms": _kept((returned_ns - sent_ns) / NS_PER_MS),
        "out_ms": _kept((arrived_ns - sent_ns) / NS_PER_MS),
        "far_ms": _kept((answered_ns - arrived_ns) / NS_PER_MS),
        "back_ms": _kept((returned_ns - answered_ns) / NS_PER_MS),
        "clock_error_ms": arrays.column(spill.long_lived_copy(error_ms), np.isfinite(error_ms)),
    }
    return pa.table(columns)


def _kept(values: Array) -> pa.Array:
    """These numbers as an Arrow array, in memory or in a file of `spill`."""
    return arrays.column(spill.long_lived_copy(values))
