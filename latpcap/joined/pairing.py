"""Pairs the packets of two captures: which row of A is which row of B, which are copies, which parts of segments.

First come the packets whose key each capture has exactly once; the clock is fitted to them. Then packets with equal
keys are paired in order, and segments that offload merged or split are paired by their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from latpcap import spill
from latpcap.joined import clock, limits, match
from latpcap.joined.capture_point import FIN, OPTIONS_CUT, SYN, Point
from latpcap.lazy import np

if TYPE_CHECKING:
    from latpcap.arrays import Array

MAX_EQUAL_PAIRS = 4096
"""Number of possible pairs of equal packets up to which the best pairing is computed; it bounds time and memory."""


@dataclass
class Pairing:
    """The pairs of packets, and what else is known of both captures."""

    a: Array
    """Of each pair the row of A's packets."""
    b: Array
    part: Array
    """Of each pair, whether it is a part of a segment that was merged or split."""
    copies_a: Array
    """Rows of A's further copies of a packet that was sent once."""
    copies_b: Array
    up_a: Array
    """Of each packet of A, whether it travels from A to B."""
    up_b: Array
    clock: clock.Clock
    time_b: Array
    """Of each packet of B, its time on A's clock in ns."""
    sides: match.Sides
    kept: match.Kept
    streams: match.Streams
    typical: dict[bool, tuple[float, float, float]]
    """Least, median and greatest delay of each direction (true: A to B), in ns."""


def pair(a: Point, b: Point, pairs: match.Streams) -> Pairing | None:
    """Pair the packets of these connections; None if no packet is in both captures."""
    # 1. packets whose key is unique in both captures
    sides = match.to_sides(a, b, pairs)
    kept = match.kept_fields(a, b, sides)
    sure_a, sure_b = _sure_pairs(a, b, sides, kept, pairs)
    rows_a, rows_b = _rows_without(sides.pair_a >= 0, sure_a), _rows_without(sides.pair_b >= 0, sure_b)
    keys_a, keys_b = match.packet_keys(a, b, sides, rows_a, rows_b, kept)
    index_a, index_b = match.unique_pairs(keys_a, keys_b)
    paired_a, paired_b = np.concatenate([sure_a, rows_a[index_a]]), np.concatenate([sure_b, rows_b[index_b]])
    rest_a, rest_b = _rows_without(sides.pair_a >= 0, paired_a), _rows_without(sides.pair_b >= 0, paired_b)
    cut_a, cut_b = _pair_without_stamps(a, b, sides, rest_a, rest_b, kept)
    paired_a, paired_b = np.concatenate([paired_a, cut_a]), np.concatenate([paired_b, cut_b])
    if not len(paired_a):
        return None
    order = np.argsort(paired_b)
    paired_a, paired_b = paired_a[order], paired_b[order]
    del sure_a, sure_b, order
    # 2. directions, clock and delays
    is_turned = _is_turned(a, b, sides, paired_a, paired_b, len(pairs.a))
    spill.release_memory()
    up_a, up_b = _is_up(a, sides.pair_a, is_turned), _is_up(b, sides.pair_b, is_turned)
    tolerance = limits.STAMP_NS + a.resolution_ns + b.resolution_ns
    spill.release_memory()
    fitted_clock = clock.fit(
        paired_b, b.packets["time"][paired_b], a.packets["time"][paired_a], up_a[paired_a], tolerance
    )
    time_b = fitted_clock.to_a(b.packets["time"])
    typical = _delays(a.packets["time"][paired_a], time_b[paired_b], up_a[paired_a])
    # 3. packets with equal keys
    is_left_a, is_left_b = (
        ~spill.row_mask(paired_a, len(a.packets))[rows_a],
        ~spill.row_mask(paired_b, len(b.packets))[rows_b],
    )
    equal_a, equal_b, copies_a, copies_b = _pair_equal_keys(
        rows_a, rows_b, keys_a, keys_b, a.packets["time"], time_b, up_a, typical, (is_left_a, is_left_b)
    )
    paired_a, paired_b = np.concatenate([paired_a, equal_a]), np.concatenate([paired_b, equal_b])
    # 4. segments that were merged or split
    rest_a, rest_b = (
        _rows_without(sides.pair_a >= 0, paired_a, copies_a),
        _rows_without(sides.pair_b >= 0, paired_b, copies_b),
    )
    part_a, part_b = _pair_parts(a, b, sides, rest_a, rest_b, time_b, up_a, kept, typical)
    is_part = np.concatenate([np.zeros(len(paired_a), bool), np.ones(len(part_a), bool)])
    paired_a, paired_b = np.concatenate([paired_a, part_a]), np.concatenate([paired_b, part_b])
    return Pairing(
        paired_a, paired_b, is_part, copies_a, copies_b, up_a, up_b, fitted_clock, time_b, sides, kept, pairs, typical
    )


def _sure_pairs(a: Point, b: Point, sides: match.Sides, kept: match.Kept, pairs: match.Streams) -> tuple[Array, Array]:
    """Return the packets that `pairs` found to be the same, of one connection and sender; takes them out of it."""
    sure_a, sure_b = pairs.same_a, pairs.same_b
    pairs.same_a = pairs.same_b = sure_a[:0]
    is_unique = (sides.pair_a[sure_a] >= 0) & (sides.pair_a[sure_a] == sides.pair_b[sure_b])
    is_unique &= a.client[sure_a] == b.client[sure_b]
    if kept.ip_id:
        is_unique &= a.packets["ip_id"][sure_a] == b.packets["ip_id"][sure_b]
    return sure_a[is_unique], sure_b[is_unique]


def _pair_without_stamps(
    a: Point, b: Point, sides: match.Sides, rows_a: Array, rows_b: Array, kept: match.Kept
) -> tuple[Array, Array]:
    """Pair packets whose time stamps a snap length cut off by their other fields. SYNs have the longest options."""
    cut_a, cut_b = ((point.packets["bits"][rows] & OPTIONS_CUT) != 0 for point, rows in ((a, rows_a), (b, rows_b)))
    if not kept.stamps or not (cut_a.any() or cut_b.any()):
        return rows_a[:0], rows_b[:0]
    index_a, index_b = match.unique_pairs(*match.packet_keys(a, b, sides, rows_a, rows_b, replace(kept, stamps=False)))
    cut = np.flatnonzero(cut_a[index_a] | cut_b[index_b])
    return rows_a[index_a[cut]], rows_b[index_b[cut]]


def _rows_without(wanted: Array, *excluded: Array) -> Array:
    """Return the rows where `wanted` is true, without the excluded rows."""
    is_left = wanted.copy()
    for rows in excluded:
        is_left[rows] = False
    return np.flatnonzero(is_left).astype(np.int32)


def _is_turned(a: Point, b: Point, sides: match.Sides, paired_a: Array, paired_b: Array, pair_count: int) -> Array:
    """Return for each pair of connections whether B is on the client's side of A.

    A's time minus B's grows by the round trip from a packet that A saw first to the next one of the other direction.
    Each such change of direction is a vote; a connection without votes goes with the others.
    """
    order = np.argsort(sides.pair_a[paired_a], kind="stable")  # by rows of B already
    votes, has_votes = np.zeros(pair_count), np.zeros(pair_count, bool)
    for span in spill.parts(len(order)):
        rows = order[max(span.start - 1, 0) : span.stop]
        pair, client = sides.pair_a[paired_a[rows]], a.client[paired_a[rows]]
        difference = a.packets["time"][paired_a[rows]] - b.packets["time"][paired_b[rows]]
        changes = np.flatnonzero((pair[1:] == pair[:-1]) & (client[1:] != client[:-1]))
        signs = np.sign(np.diff(difference)[changes]) * np.where(client[changes], 1, -1)
        votes += np.bincount(pair[changes], signs, pair_count)
        has_votes[pair[changes[signs != 0]]] = True
    is_turned: Array = votes < 0
    if votes.sum() < 0:
        is_turned[~has_votes] = True
    return is_turned


def _is_up(point: Point, pair: Array, is_turned: Array) -> Array:
    """Return whether each packet travels from A to B. Connections that one capture lacks go with the majority."""
    is_mostly_turned = bool(is_turned.mean() > 1 / 2) if len(is_turned) else False
    flip = np.where(pair >= 0, is_turned[np.maximum(pair, 0)], is_mostly_turned)
    return point.client != flip


def _delays(a_time: Array, b_time: Array, up: Array) -> dict[bool, tuple[float, float, float]]:
    """Return the least, median and greatest delay of each direction."""
    delays = {}
    for direction in (True, False):
        rows = up == direction
        delay = (b_time[rows] - a_time[rows]) * (1 if direction else -1)
        delays[direction] = (
            (float(delay.min()), float(np.median(delay)), float(delay.max())) if len(delay) else (0.0, 0.0, 0.0)
        )
    return delays


def _pair_equal_keys(
    rows_a: Array,
    rows_b: Array,
    keys_a: Array,
    keys_b: Array,
    time_a: Array,
    time_b: Array,
    up_a: Array,
    typical: dict[bool, tuple[float, float, float]],
    is_left: tuple[Array, Array],
) -> tuple[Array, Array, Array, Array]:
    """Pair packets whose key occurs more than once, in order. Returns the pairs, and the copies of A and of B.

    A copy is a packet that the receiver's capture has more often than the sender's.
    """
    if not is_left[0].any() and not is_left[1].any():
        nothing = np.zeros(0, np.int32)
        return nothing, nothing, nothing, nothing
    shared_keys = np.intersect1d(keys_a[is_left[0]], keys_b[is_left[1]])
    index_a, index_b = (
        np.flatnonzero(is_left_there & np.isin(keys, shared_keys))
        for is_left_there, keys in ((is_left[0], keys_a), (is_left[1], keys_b))
    )
    groups_a, groups_b = _groups(rows_a, keys_a, index_a, shared_keys), _groups(rows_b, keys_b, index_b, shared_keys)
    paired_a: list[int] = []
    paired_b: list[int] = []
    copies_a: list[int] = []
    copies_b: list[int] = []
    for group_a, group_b in zip(groups_a, groups_b, strict=True):
        up = bool(up_a[group_a[0]])
        min_ns, median_ns, max_ns = typical[up]
        slack = max(median_ns - min_ns, min_ns / 2, limits.MIN_STEP_NS)
        sign = 1 if up else -1
        delays = sign * (time_b[group_b][None, :] - time_a[group_a][:, None])
        pairs = _in_order(delays, min_ns - slack, max_ns + slack)
        used_a = [group_a[position_a] for position_a, _ in pairs]
        used_b = [group_b[position_b] for _, position_b in pairs]
        paired_a += used_a
        paired_b += used_b
        if used_a and up and len(group_b) > len(group_a):
            copies_b += np.setdiff1d(group_b, used_b, assume_unique=True).tolist()
        if used_a and not up and len(group_a) > len(group_b):
            copies_a += np.setdiff1d(group_a, used_a, assume_unique=True).tolist()
    return tuple(np.array(rows, np.int32) for rows in (paired_a, paired_b, copies_a, copies_b))  # type: ignore[return-value]


def _groups(rows: Array, keys: Array, index: Array, shared_keys: Array) -> Iterator[list[int]]:
    """Yield for each of the shared keys the rows with it, in order; `index` are the positions of these rows."""
    order = index[np.argsort(keys[index], kind="stable")]
    first = np.searchsorted(keys[order], shared_keys)
    last = np.searchsorted(keys[order], shared_keys, "right")
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        yield rows[order[begin:end]].tolist()


def _in_order(delays: Array, low: float, high: float) -> list[tuple[int, int]]:
    """Pair rows with columns so that no two pairs cross: as many as possible, with the least sum of delays.

    Only their order tells equal packets apart. Above `MAX_EQUAL_PAIRS` each row takes the first free column that fits.
    Else `counts` and `delay` hold the best number of pairs, and their sum of delays, from a row and column on.
    """
    rows, columns = delays.shape
    fits = (delays >= low) & (delays <= high)
    if rows * columns > MAX_EQUAL_PAIRS:
        pairs, free = [], 0
        for row in range(rows):
            fitting = np.flatnonzero(fits[row, free:])
            if len(fitting):
                pairs.append((row, free + int(fitting[0])))
                free += int(fitting[0]) + 1
        return pairs
    counts = np.zeros((rows + 1, columns + 1), np.int64)
    delay = np.zeros((rows + 1, columns + 1))
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            without_row = counts[row + 1, column], -delay[row + 1, column]
            best = max(without_row, (counts[row, column + 1], -delay[row, column + 1]))
            if fits[row, column]:
                with_pair = counts[row + 1, column + 1] + 1, -delay[row + 1, column + 1] - delays[row, column]
                best = max(best, with_pair)
            counts[row, column], delay[row, column] = best[0], -best[1]
    pairs, row, column = [], 0, 0
    while row < rows and column < columns:
        best_from_here = counts[row, column], delay[row, column]
        if best_from_here == (counts[row + 1, column], delay[row + 1, column]):
            row += 1
        elif best_from_here == (counts[row, column + 1], delay[row, column + 1]):
            column += 1
        else:
            pairs.append((row, column))
            row, column = row + 1, column + 1
    return pairs


def _pair_parts(
    a: Point,
    b: Point,
    sides: match.Sides,
    unpaired_a: Array,
    unpaired_b: Array,
    time_b: Array,
    up_a: Array,
    kept: match.Kept,
    typical: dict[bool, tuple[float, float, float]],
) -> tuple[Array, Array]:
    """Pair data segments that were merged or split: they share bytes and time stamp, but not both bounds."""

    def sized(point: Point, rows: Array, seq: Array) -> tuple[Array, Array, Array]:
        rows = rows[point.packets["len"][rows] > 0]
        begin = seq[rows].astype(np.int64)
        return rows, begin, begin + point.packets["len"][rows]

    rows_a, begin_a, end_a = sized(a, unpaired_a, a.packets["seq"])
    rows_b, begin_b, end_b = sized(b, unpaired_b, sides.seq_b)
    group_a = sides.pair_a[rows_a].astype(np.int64) * 2 + a.client[rows_a]
    group_b = sides.pair_b[rows_b].astype(np.int64) * 2 + b.client[rows_b]
    paired_a: list[int] = []
    paired_b: list[int] = []
    for group in np.intersect1d(group_a, group_b).tolist():
        index_of_a, index_of_b = np.flatnonzero(group_a == group), np.flatnonzero(group_b == group)
        order = index_of_b[np.argsort(begin_b[index_of_b], kind="stable")]
        starts = begin_b[order]
        longest = int((end_b[order] - begin_b[order]).max())
        for index_a in index_of_a.tolist():
            row_a, up = int(rows_a[index_a]), bool(up_a[rows_a[index_a]])
            min_ns, median_ns, max_ns = typical[up]
            lowest = np.searchsorted(starts, begin_a[index_a] - longest, "right")
            for index_b in order[lowest : np.searchsorted(starts, end_a[index_a])].tolist():
                row_b = int(rows_b[index_b])
                if end_b[index_b] <= begin_a[index_a]:
                    continue
                same_bounds = begin_a[index_a] == begin_b[index_b] and end_a[index_a] == end_b[index_b]
                same_stamp = a.packets["tsval"][row_a] == b.packets["tsval"][row_b]
                delay = (int(time_b[row_b]) - int(a.packets["time"][row_a])) * (1 if up else -1)
                slack = max(median_ns - min_ns, min_ns / 2, limits.MIN_STEP_NS)
                if (
                    not same_bounds
                    and (same_stamp or not kept.stamps)
                    and min_ns - slack <= delay <= max_ns + slack + median_ns
                ):
                    paired_a.append(row_a)
                    paired_b.append(row_b)
    return np.array(paired_a, np.int32), np.array(paired_b, np.int32)


def counted(point: Point, rows: Array) -> Array:
    """Return the sequence numbers that each packet consumes: its data, and one each for SYN and FIN."""
    flags = point.packets["flags"][rows]
    return point.packets["len"][rows].astype("int64") + ((flags & SYN) != 0) + ((flags & FIN) != 0)
