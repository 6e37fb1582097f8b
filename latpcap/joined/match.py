"""Finds the connections that both captures have, and keys by which their packets are compared. Needs no clock.

A packet is recognised by the fields that no router changes: sequence and acknowledgement number, flags, length, time
stamps, and the IP identification where the path keeps it. Connections whose numbers were rewritten are recognised by
time stamps and payload, then by identification and payload; their numbers are shifted before packets are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from latpcap import spill
from latpcap.joined import limits
from latpcap.joined.capture_point import ACK, FIN, HASHED, SYN, TIMESTAMPS, Columns, Point, Rows
from latpcap.lazy import np

if TYPE_CHECKING:
    from latpcap.arrays import Array

SORTED_AT_ONCE = 1 << 18
"""Keys sorted at once."""


class Level(IntEnum):
    """The fields of the keys, tried one level after the other.

    The last two have no sequence numbers: they are for connections whose numbers were rewritten.
    """

    NUMBERS_AND_STAMPS = 0
    NUMBERS = 1
    SEQUENCE = 2
    STAMPS = 3
    IDENTIFICATION = 4


@dataclass
class Streams:
    """The pairs of connections, a row per pair."""

    a: Array
    """Stream number in A."""
    b: Array
    shift: Array
    """Added to B's sequence numbers to get A's, for the client's and for the server's (pairs x 2)."""
    same_a: Array
    """Rows of A's packets whose numbers and time stamps occur in exactly one packet of each capture."""
    same_b: Array
    """The rows of B's packets with the numbers of `same_a`."""


def hash_of(*columns: Array) -> Array:
    """Return a 64-bit hash of these columns for each row."""
    key = np.full(len(columns[0]), 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        key ^= column.astype(np.uint64)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    return key


def unique_pairs(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the indices in `a` and `b` of the keys that each has exactly once, ordered by those in `b`.

    The keys are sorted in pieces, which bounds memory.
    """
    pieces = np.uint64(max(len(a), len(b)) // SORTED_AT_ONCE + 1)
    pairs = [
        _unique_of(a, b, *(np.flatnonzero(keys % pieces == piece) for keys in (a, b)))
        for piece in np.arange(pieces, dtype=np.uint64)
    ]
    rows_a, rows_b = (np.concatenate(rows).astype(np.int32) for rows in zip(*pairs, strict=True))
    order = np.argsort(rows_b, kind="stable")
    return rows_a[order], rows_b[order]


def _unique_of(a: Array, b: Array, rows_a: Array, rows_b: Array) -> tuple[Array, Array]:
    """Return those of these indices whose keys each side has exactly once."""
    index_a, index_b = _unique(a[rows_a], b[rows_b])
    return rows_a[index_a], rows_b[index_b]


def _unique(a: Array, b: Array) -> tuple[Array, Array]:
    def single_keys(keys: Array) -> tuple[Array, Array]:
        order = np.argsort(keys)
        ordered = keys[order]
        new = np.ones(len(keys) + 1, bool)
        new[1:-1] = ordered[1:] != ordered[:-1]
        is_alone = new[:-1] & new[1:]
        return ordered[is_alone], order[is_alone]

    (keys_a, rows_a), (keys_b, rows_b) = single_keys(a), single_keys(b)
    if not len(keys_a) or not len(keys_b):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    nearest = np.minimum(np.searchsorted(keys_b, keys_a), len(keys_b) - 1)
    is_same = keys_b[nearest] == keys_a
    return rows_a[is_same], rows_b[nearest[is_same]]


def _acked(packets: Columns | Rows) -> Array:
    return np.where(packets["flags"] & ACK, packets["ack"], 0)


def _stamps(packets: Columns | Rows) -> tuple[Array, Array]:
    return packets["tsval"], packets["tsecr"]


def _keys(point: Point, rows: Array, level: Level) -> tuple[Array, Array]:
    """Return the key of each of these packets at this level, and whether the packet has all fields of the key."""
    has_all_fields = np.zeros(len(rows), bool)
    keys = spill.Column("u8")
    for span in spill.parts(len(rows)):
        span_keys, has_all_fields[span] = _keyed(point.packets.of(rows[span]), level)
        keys.add(span_keys)
    return keys.array(), has_all_fields


def _keyed(packets: Rows, level: Level) -> tuple[Array, Array | bool]:
    sizes, marks = packets["len"], packets["flags"] & (SYN | FIN)
    has_hash = ((packets["bits"] & HASHED) != 0) & ((sizes > 0) | ((packets["flags"] & SYN) != 0))
    match level:
        case Level.NUMBERS_AND_STAMPS:
            return hash_of(packets["seq"], _acked(packets), packets["flags"], sizes, *_stamps(packets)), True
        case Level.NUMBERS:  # the path strips time stamps, or a snap length cuts them off
            return hash_of(packets["seq"], _acked(packets), packets["flags"], sizes), True
        case Level.SEQUENCE:
            return hash_of(packets["seq"], marks, sizes, packets["hash"]), has_hash
        case Level.STAMPS:
            has_stamps = (packets["bits"] & TIMESTAMPS) != 0
            return hash_of(*_stamps(packets), marks, sizes, packets["hash"]), has_hash & has_stamps
        case Level.IDENTIFICATION:
            has_id = (packets["ip_id"] > 0) & (packets["ip_id"] < 1 << 16)
            return hash_of(packets["ip_id"], marks, sizes, packets["hash"]), has_hash & has_id


def find_streams(a: Point, b: Point) -> Streams:
    """Find the connections that both captures have."""
    pairs: list[tuple[int, int]] = []
    shifts: list[tuple[int, int]] = []
    unique_rows = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for level in Level:
        rows_a, rows_b = (_rows_without(point, [pair[side] for pair in pairs]) for side, point in enumerate((a, b)))
        if not len(rows_a) or not len(rows_b):
            break
        (keys_a, has_key_a), (keys_b, has_key_b) = _keys(a, rows_a, level), _keys(b, rows_b, level)
        if not has_key_a.all() or not has_key_b.all():
            rows_a, rows_b, keys_a, keys_b = rows_a[has_key_a], rows_b[has_key_b], keys_a[has_key_a], keys_b[has_key_b]
        index_a, index_b = unique_pairs(keys_a, keys_b)
        matched_a, matched_b = rows_a[index_a], rows_b[index_b]
        if level == Level.NUMBERS_AND_STAMPS:
            unique_rows = matched_a, matched_b
        new_pairs = _pairs_by_votes(a, b, matched_a, matched_b, level)
        pairs += new_pairs
        if level < Level.STAMPS:
            shifts += [(0, 0)] * len(new_pairs)
            continue
        streams = (a.packets["stream"][matched_a].astype(np.int64) << 32) | b.packets["stream"][matched_b]
        order = np.argsort(streams, kind="stable")
        for stream_a, stream_b in new_pairs:
            pair = stream_a << 32 | stream_b
            first, last = np.searchsorted(streams, [pair, pair + 1], sorter=order)
            shifts.append(_commonest_shift(a, b, matched_a[order[first:last]], matched_b[order[first:last]]))
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    return Streams(columns[0], columns[1], np.array(shifts, np.int64).reshape(-1, 2), *unique_rows)


def _rows_without(point: Point, streams: list[int]) -> Array:
    """Return the rows of all streams but these."""
    is_wanted = np.ones(int(point.packets["stream"].max()) + 1 if len(point.packets) else 0, bool)
    is_wanted[streams] = False
    return np.flatnonzero(is_wanted[point.packets["stream"]]).astype(np.int32)


def _pairs_by_votes(a: Point, b: Point, rows_a: Array, rows_b: Array, level: Level) -> list[tuple[int, int]]:
    """Return pairs of streams, those with the most packets in common first; each stream is in one pair."""
    streams_a, streams_b = a.packets["stream"][rows_a].astype(np.int64), b.packets["stream"][rows_b].astype(np.int64)
    is_same_side = a.client[rows_a] == b.client[rows_b]
    pairs, votes = np.unique((streams_a[is_same_side] << 32) | streams_b[is_same_side], return_counts=True)
    order = np.argsort(-votes, kind="stable")
    paired_a: set[int] = set()
    paired_b: set[int] = set()
    chosen = []
    is_weak = level == Level.IDENTIFICATION
    sizes_a = np.bincount(a.packets["stream"], a.packets["len"] > 0) if is_weak else None
    sizes_b = np.bincount(b.packets["stream"], b.packets["len"] > 0) if is_weak else None
    for index in order.tolist():
        stream_a, stream_b, count = int(pairs[index] >> 32), int(pairs[index] & 0xFFFFFFFF), int(votes[index])
        if stream_a in paired_a or stream_b in paired_b:
            continue
        if level > Level.NUMBERS_AND_STAMPS and count < limits.VOTES:
            continue
        if sizes_a is not None and sizes_b is not None:
            smaller = min(sizes_a[stream_a], sizes_b[stream_b])
            if count < limits.WEAK_VOTES or count < limits.VOTE_SHARE * smaller:
                continue
        paired_a.add(stream_a)
        paired_b.add(stream_b)
        chosen.append((stream_a, stream_b))
    return chosen


def _commonest_shift(a: Point, b: Point, rows_a: Array, rows_b: Array) -> tuple[int, int]:
    """Return the commonest difference of A's sequence numbers from B's, of the client's packets and of the server's."""
    shifts = []
    for by_client in (True, False):
        is_of_side = a.client[rows_a] == by_client
        seq_a, seq_b = a.packets["seq"][rows_a[is_of_side]], b.packets["seq"][rows_b[is_of_side]]
        values, counts = np.unique((seq_a.astype(np.int64) - seq_b) % (1 << 32), return_counts=True)
        shifts.append(int(values[counts.argmax()]) if len(values) else 0)
    return shifts[0], shifts[1]


@dataclass
class Sides:
    """The packets of both captures in comparable form, a row per packet."""

    pair_a: Array
    """Row of `Streams`; -1 for a connection that only A has."""
    pair_b: Array
    seq_b: Array
    """B's sequence numbers, shifted to A's."""
    ack_b: Array


def to_sides(a: Point, b: Point, pairs: Streams) -> Sides:
    """Number both captures' packets by their pair of connections, and shift B's numbers to A's."""

    def pairs_of_packets(point: Point, streams: Array) -> Array:
        stream_count = int(point.packets["stream"].max()) + 1 if len(point.packets) else 0
        pair_of = np.full(stream_count, -1, np.int32)
        pair_of[streams] = np.arange(len(streams))
        return pair_of[point.packets["stream"]]

    pair_a, pair_b = pairs_of_packets(a, pairs.a), pairs_of_packets(b, pairs.b)
    seq, ack = b.packets["seq"], b.packets["ack"]
    if pairs.shift.any():
        side = np.where(b.client, 0, 1)
        shift = pairs.shift[np.maximum(pair_b, 0)] * (pair_b >= 0)[:, None]
        rows = np.arange(len(seq))
        seq = ((seq.astype(np.int64) + shift[rows, side]) % (1 << 32)).astype(np.uint32)
        ack = ((ack.astype(np.int64) + shift[rows, 1 - side]) % (1 << 32)).astype(np.uint32)
    return Sides(pair_a, pair_b, seq, np.where(b.packets["flags"] & ACK, ack, 0))


@dataclass
class Kept:
    """Which fields the path keeps; a field that it rewrites is left out of the keys."""

    ip_id: bool
    stamps: bool
    ack: bool


def packet_keys(a: Point, b: Point, sides: Sides, rows_a: Array, rows_b: Array, kept: Kept) -> tuple[Array, Array]:
    """Return a key for each of these packets; one packet has equal keys in both captures."""
    packets_a, packets_b = a.packets.of(rows_a), b.packets.of(rows_b)
    marks = 0x1FF if kept.ack else SYN | FIN
    fields_a = [sides.pair_a[rows_a], a.client[rows_a], packets_a["seq"], packets_a["flags"] & marks, packets_a["len"]]
    fields_b = [
        sides.pair_b[rows_b],
        b.client[rows_b],
        sides.seq_b[rows_b],
        packets_b["flags"] & marks,
        packets_b["len"],
    ]
    if kept.ack:
        fields_a, fields_b = [*fields_a, _acked(packets_a)], [*fields_b, sides.ack_b[rows_b]]
    if kept.stamps:
        fields_a, fields_b = [*fields_a, *_stamps(packets_a)], [*fields_b, *_stamps(packets_b)]
    if kept.ip_id:
        fields_a, fields_b = [*fields_a, packets_a["ip_id"]], [*fields_b, packets_b["ip_id"]]
    return hash_of(*fields_a), hash_of(*fields_b)


def kept_fields(a: Point, b: Point, sides: Sides) -> Kept:
    """Find out which of identification, time stamps and acknowledgement numbers are equal at both points."""
    sizes = np.cumsum(np.bincount(sides.pair_a[sides.pair_a >= 0]))
    last_pair = max(int(np.searchsorted(sizes, limits.SAMPLE)), 1)
    rows_a, rows_b = (np.flatnonzero((pair >= 0) & (pair <= last_pair)) for pair in (sides.pair_a, sides.pair_b))
    for keeps_ack in (True, False):
        keys_a, keys_b = packet_keys(a, b, sides, rows_a, rows_b, Kept(ip_id=False, stamps=False, ack=keeps_ack))
        index_a, index_b = unique_pairs(keys_a, keys_b)
        if len(index_a) * 2 >= min(len(rows_a), len(rows_b)) * limits.KEPT_SHARE:
            break
    packets_a, packets_b = a.packets.of(rows_a[index_a]), b.packets.of(rows_b[index_b])
    if not len(packets_a):
        return Kept(True, True, True)
    same_stamps = (packets_a["tsval"] == packets_b["tsval"]) & (packets_a["tsecr"] == packets_b["tsecr"])
    same_id = packets_a["ip_id"] == packets_b["ip_id"]
    keeps_id, keeps_stamps = (bool(is_same.mean() >= limits.KEPT_SHARE) for is_same in (same_id, same_stamps))
    return Kept(keeps_id, keeps_stamps, keeps_ack)
