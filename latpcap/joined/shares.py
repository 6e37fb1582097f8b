"""Divides each exchange between the client's side, the path between the points, and the server's side.

Reads matched exchanges, pairs of packets, and the causes of B's capture. The parts of an exchange follow each other and
add up to its latency, to the nanosecond. Where B waited for an ACK from A, A's capture shows how long A held it,
measured by A's clock alone and so without the clocks' error. Where a packet was retransmitted, its fate shows whether
it was lost between the points. Time that neither capture explains is unknown.

The code works on columns: a row of `_Rows` is a row of B's table of causes, a row of `Parts` is a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from latpcap import arrays, spill
from latpcap.joined import limits
from latpcap.joined.capture_point import CODES, REPAIRS, WAITS, Columns, Point
from latpcap.joined.codes import Code, Grade
from latpcap.joined.exchanges import Matched
from latpcap.joined.match import hash_of
from latpcap.joined.packet_fates import Fate, Fates
from latpcap.joined.pairing import Pairing
from latpcap.lazy import np, pa
from latpcap.tables import NS_PER_MS
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    from latpcap.arrays import Array


class Place(Code):
    """Where the time of a part went."""

    CLIENT = "client"
    BETWEEN = "between"
    SERVER = "server"
    UNKNOWN = "unknown"


class PartReason(Code):
    """By what the place and cause of a part are known."""

    OUT = "from A to B"
    BACK = "from B to A"
    HELD = "A had the data and sent its acknowledgement later"
    PATH = "there and back of an acknowledgement that B waited for"
    LOST_BETWEEN = "lost between the points"
    PASSED_BOTH = "what was sent again had passed"
    OF_B = "B's capture names it"
    NO_CAUSE = "B's capture names nothing"


SENT_AGAIN, ON_THE_WAY = -2, -1
"""Positions of the parts before B's causes, whose own positions are three times their row."""
LAST = 1 << 60
"""Position of the unknown rest after B's causes; the parts on the way back follow it."""
AT_ONCE = 1 << 13
"""Exchanges divided at once, which bounds the memory of intermediate columns."""


@dataclass
class Parts:
    """Columns of parts, a row per part."""

    exchange: Array
    """Row of the table of exchanges."""
    position: Array
    """Order within the exchange."""
    place: Array
    """Number of `Place`."""
    cause: Array
    """Index into `CAUSES`."""
    length: Array
    """Duration in ns."""
    grade: Array
    """Number of `Grade`."""
    because: Array
    """Number of `PartReason`."""
    by_clocks: Array
    """Whether both clocks measured it, so that the clocks' error applies."""


def _parts(
    exchange: Array,
    position: Array | int,
    place: Array | int,
    cause: Array | int,
    length: Array,
    grade: Array | int,
    because: Array | int,
    by_clocks: bool = False,
) -> Parts:
    """Return parts of these exchanges; a single number applies to all of them."""
    dtypes = (np.int64, np.int64, np.int8, np.int16, np.int64, np.int8, np.int8, bool)
    values = (exchange, position, place, cause, length, grade, because, by_clocks)
    return Parts(
        *(np.broadcast_to(np.asarray(v, dtype), np.shape(exchange)) for v, dtype in zip(values, dtypes, strict=True))
    )


def _joined(several: list[Parts]) -> Parts:
    return Parts(*(np.concatenate([getattr(parts, field.name) for parts in several]) for field in fields(Parts)))


def _chosen(parts: Parts, rows: Array) -> Parts:
    return Parts(*(getattr(parts, field.name)[rows] for field in fields(Parts)))


def cut_exchanges(
    a: Point, b: Point, pairing: Pairing | None, fates: tuple[Fates, Fates] | None, matched: Matched
) -> Iterator[Parts]:
    """Yield the parts of the matched exchanges, of `AT_ONCE` exchanges at a time."""
    packets = None if pairing is None or fates is None else _Packets(a, b, pairing, fates)
    order, edges = _of_exchanges(b, matched)
    for begin in range(0, len(matched.a), AT_ONCE) or (0,):
        matched_part = matched.sliced(begin, begin + AT_ONCE)
        ends = edges[begin : begin + len(matched_part.a) + 1]
        rows = _Rows(b, matched_part, order[ends[0] : ends[-1]], ends - ends[0])
        parts = _cut(a, b, packets, matched_part, rows)
        parts.exchange = parts.exchange + np.int64(begin)
        yield parts
        spill.release_memory()
        spill.trim_heap()


def _cut(a: Point, b: Point, packets: _Packets | None, matched: Matched, rows: _Rows) -> Parts:
    """Return the parts of each matched exchange, without empty ones, in the order of time."""
    sent_ns, arrived_ns, answered_ns, returned_ns = matched.instants()
    far_ns = answered_ns - arrived_ns
    all_rows = np.arange(len(sent_ns))
    repeat_out_ns, repeat_back_ns = np.zeros(len(sent_ns), np.int64), np.zeros(len(sent_ns), np.int64)
    if packets is not None:
        twin_at_a = packets.to_a[
            matched.back.last_row[matched.b]
        ]  # what arrived may be a later copy of what was sent first
        repeat_out_ns = np.where(twin_at_a >= 0, np.maximum(a.packets["time"][twin_at_a] - sent_ns, 0), 0)
        twin_at_b = packets.to_b[matched.front.end_row[matched.a]]
        repeat_back_ns = np.where(twin_at_b >= 0, np.maximum(packets.pairing.time_b[twin_at_b] - answered_ns, 0), 0)
    waits = _no_waits(rows) if packets is None else _waits(a, b, packets, rows)
    out_ns, back_ns = arrived_ns - sent_ns - repeat_out_ns, returned_ns - answered_ns - repeat_back_ns
    way = CODES["unknown" if packets is None else "network"]  # a proxy's own time is in it
    parts = [
        _repeat(packets, matched, True, sent_ns, repeat_out_ns, SENT_AGAIN, rows.repairs()),
        _parts(all_rows, ON_THE_WAY, Place.BETWEEN, way, out_ns, Grade.PROVEN, PartReason.OUT, True),
        _far(packets, rows, waits, far_ns, matched),
        _repeat(packets, matched, False, answered_ns, repeat_back_ns, LAST + 1, np.full(len(sent_ns), CODES["rto"])),
        _parts(all_rows, LAST + 2, Place.BETWEEN, way, back_ns, Grade.PROVEN, PartReason.BACK, True),
    ]
    joined = _joined(parts)
    filled = np.flatnonzero(joined.length != 0)
    return _chosen(joined, filled[np.lexsort((joined.position[filled], joined.exchange[filled]))])


class _Packets:
    """The pairs of packets of both captures, and the packets lost between the points."""

    def __init__(self, a: Point, b: Point, pairing: Pairing, fates: tuple[Fates, Fates]):
        self.pairing, self.fate_b = pairing, fates[1].fate
        rows_a, rows_b = pairing.a[~pairing.part], pairing.b[~pairing.part]
        self.to_a, self.to_b = np.full(len(b.packets), -1, np.int32), np.full(len(a.packets), -1, np.int32)
        """Row in the other capture of each packet of B, and of A; -1 for a packet without a pair, and for parts."""
        self.to_a[rows_b], self.to_b[rows_a] = rows_a, rows_b
        lost_a = np.flatnonzero((fates[0].fate == Fate.LOST) & (pairing.sides.pair_a >= 0))
        lost_b = np.flatnonzero((fates[1].fate == Fate.LOST) & (pairing.sides.pair_b >= 0))
        pairs = np.concatenate([pairing.sides.pair_a[lost_a], pairing.sides.pair_b[lost_b]])
        group = pairs.astype(np.int64) * 2 + np.concatenate([pairing.up_a[lost_a], pairing.up_b[lost_b]])
        times = np.concatenate([a.packets["time"][lost_a], pairing.time_b[lost_b]])
        order = np.lexsort((times, group))
        self._lost_group, self._lost_ns = group[order], times[order]

    def has_loss(self, pair: int, up: bool, begin_ns: int, end_ns: int) -> bool:
        """Return whether a packet of this connection and direction, sent in this time of A's clock, was lost."""
        first, last = np.searchsorted(self._lost_group, [2 * pair + up, 2 * pair + up + 1])
        times = self._lost_ns[first:last]
        return bool(np.searchsorted(times, begin_ns) < np.searchsorted(times, end_ns, "right"))


def _of_exchanges(b: Point, matched: Matched) -> tuple[Array, Array]:
    """Return the rows of B's causes in the order of the matched exchanges, and the offsets at which those of each
    begin.
    """
    numbers = b.causes.rows["exchange"]
    matched_numbers = arrays.numbers(b.table("exchanges"), "exchange")[matched.back.row[matched.b]].astype(np.int64)
    count = max(int(numbers.max(initial=0)), int(matched_numbers.max(initial=0))) + 2
    row = np.full(count, len(matched_numbers), np.int32)  # -1: the last
    row[matched_numbers] = np.arange(len(matched_numbers), dtype=np.int32)
    exchange_of = spill.from_pieces("i4", (row[numbers[span]] for span in spill.parts(len(numbers))))
    order = spill.argsort(exchange_of)
    edges = np.concatenate([[0], np.cumsum(np.bincount(exchange_of, minlength=len(matched_numbers) + 1))])
    return order, edges[: len(matched_numbers) + 1]


class _Rows:
    """B's causes of some matched exchanges, in order. `exchange` is the number of the exchange among them."""

    def __init__(self, b: Point, matched: Matched, cause_rows: Array, edges: Array):
        """`cause_rows` are rows of B's causes; those of exchange n are `cause_rows[edges[n] : edges[n + 1]]`."""
        rows = b.causes.rows.of(cause_rows)
        self.exchange = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        start = rows["start"]
        order = np.lexsort((start, self.exchange))
        rows = b.causes.rows.of(cause_rows[order])
        # The parts begin with the request's last byte: waits inside the request are left out.
        behind, first = matched.back, matched.b[self.exchange]
        self.start = np.clip(start[order], behind.start[first], behind.end[first])
        self.end = np.clip(rows["end"], self.start, behind.end[first])
        self.cause, self.grade, self.by_client = rows["cause"], rows["grade"], rows["by_client"]
        is_wait = np.isin(self.cause, [CODES[name] for name in WAITS])
        self.is_repair = np.isin(self.cause, [CODES[name] for name in REPAIRS])
        self._evidence(b, cause_rows[order], np.flatnonzero(is_wait | self.is_repair))
        is_same_step = (
            is_wait[1:] & is_wait[:-1] & (self.exchange[1:] == self.exchange[:-1]) & (self.key[1:] == self.key[:-1])
        )
        self.first = np.concatenate([[True], ~is_same_step])[: len(order)]
        self.step = np.cumsum(self.first) - 1
        self.is_wait = is_wait

    def _evidence(self, b: Point, cause_rows: Array, wanted: Array) -> None:
        """Set the packets that prove each wait and repair: `shown` are rows of B's packets, `of` the causes' rows.

        `key` is equal for consecutive causes that divide one step: they have equal frames and evidence.
        """
        rows = b.causes.rows.of(cause_rows[wanted])
        sizes = rows["size"].astype(np.int64)
        cause_of = np.repeat(np.arange(len(wanted)), sizes)
        frames = b.causes.frames[np.arange(len(cause_of)) + np.repeat(rows["begin"] - np.cumsum(sizes) + sizes, sizes)]
        ends = [rows[name] for name in ("from_frame", "to_frame")]
        evidence_sums = np.zeros(len(wanted), np.uint64)
        np.add.at(evidence_sums, cause_of, hash_of(frames))
        self.key = np.zeros(len(cause_rows), np.uint64)
        self.key[wanted] = hash_of(*ends, evidence_sums)
        causes = np.concatenate([cause_of, np.arange(len(wanted)), np.arange(len(wanted))])
        shown = b.rows_of(np.concatenate([frames, *ends]))
        with_row = np.flatnonzero(shown >= 0)
        pairs = np.sort((causes[with_row] << 32) | shown[with_row])
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]
        self.of, self.shown = wanted[pairs >> 32], pairs & 0xFFFFFFFF

    def repairs(self) -> Array:
        """Return the first repair of each exchange among B's causes; a retransmission timeout if there is none."""
        repairs = np.full(int(self.exchange.max(initial=-1)) + 1, CODES["rto"])
        rows = np.flatnonzero(self.is_repair)[::-1]
        repairs[self.exchange[rows]] = self.cause[rows]
        return repairs


@dataclass
class _Waits:
    """The steps in which B waited for a packet of A that A's capture has."""

    measured: Array
    """Of each row of `_Rows`, whether it belongs to such a step."""
    parts: list[Parts]


def _no_waits(rows: _Rows) -> _Waits:
    return _Waits(np.zeros(len(rows.cause), bool), [])


def _waits(a: Point, b: Point, packets: _Packets, rows: _Rows) -> _Waits:
    """Divide B's waits for an acknowledgement into the time A held it, its way there and back, and the rest.

    The first data packet among the evidence is the one that A acknowledged; the last packet from A is the ACK.
    """
    if not rows.is_wait.any():
        return _no_waits(rows)
    begin = np.flatnonzero(rows.first)
    last = np.append(begin[1:], len(rows.first)) - 1
    steps = len(begin)
    waiting = rows.is_wait[rows.of] & rows.first[rows.of]  # all rows of a step have the same evidence
    step, shown = rows.step[rows.of[waiting]], rows.shown[waiting]
    up, to_a = packets.pairing.up_b[shown], packets.to_a
    first_data, last_ack = np.full(steps, len(b.packets)), np.full(steps, -1)
    np.minimum.at(first_data, step[~up], shown[~up])
    np.maximum.at(last_ack, step[up], shown[up])
    has_both = (first_data < len(b.packets)) & (last_ack >= 0)
    known_steps = np.flatnonzero((np.bincount(step, minlength=steps) >= 3) & has_both)
    known_steps = known_steps[(to_a[first_data[known_steps]] >= 0) & (to_a[last_ack[known_steps]] >= 0)]
    data_at_a, ack_at_a = to_a[first_data[known_steps]], to_a[last_ack[known_steps]]
    hold_ns = a.packets["time"][ack_at_a] - a.packets["time"][data_at_a]
    start_ns, length_ns = rows.start[begin[known_steps]], rows.end[last[known_steps]] - rows.start[begin[known_steps]]
    came_ns = b.packets["time"][last_ack[known_steps]] - start_ns
    is_possible = (hold_ns >= 0) & (hold_ns <= came_ns) & (came_ns <= length_ns)
    known_steps, hold_ns, came_ns = known_steps[is_possible], hold_ns[is_possible], came_ns[is_possible]
    length_ns, way_ns = length_ns[is_possible], came_ns - hold_ns
    has_delayed_ack = np.zeros(steps, bool)
    has_delayed_ack[rows.step[rows.cause == CODES["delayed_ack"]]] = True
    grade = np.zeros(steps, np.int64)
    np.maximum.at(grade, rows.step, rows.grade)
    grade = grade[known_steps]
    is_delayed = has_delayed_ack[known_steps] | (hold_ns > way_ns) | (hold_ns >= limits.HELD_NS)
    hold_cause = np.where(is_delayed, CODES["delayed_ack"], CODES["network"])
    exchange, position = rows.exchange[begin[known_steps]], 3 * begin[known_steps]
    hold_grade = np.where(grade >= Grade.SUSPECTED, Grade.PROVEN, Grade.UNKNOWN)
    cause_of_b = rows.cause[last[known_steps]]
    measured = np.zeros(steps, bool)
    measured[known_steps] = True
    return _Waits(
        measured[rows.step],
        [
            _parts(exchange, position, Place.CLIENT, hold_cause, hold_ns, hold_grade, PartReason.HELD),
            _parts(exchange, position + 1, Place.BETWEEN, CODES["network"], way_ns, Grade.PROVEN, PartReason.PATH),
            _parts(exchange, position + 2, Place.SERVER, cause_of_b, length_ns - came_ns, grade, PartReason.OF_B),
        ],
    )


def _far(packets: _Packets | None, rows: _Rows, waits: _Waits, far_ns: Array, matched: Matched) -> Parts:
    """Return the parts between the request's arrival at B and the response's departure, by B's capture."""
    parts = _joined([*waits.parts, _named(packets, rows, ~waits.measured, matched)])
    order = np.lexsort((parts.position, parts.exchange))
    parts = _chosen(parts, order)
    count = np.bincount(parts.exchange, minlength=len(far_ns))
    sums_ns = np.zeros(len(far_ns), np.int64)
    np.add.at(sums_ns, parts.exchange, parts.length)
    rest_ns = far_ns - sums_ns
    # only the clocks' rates differ
    is_near = (count > 0) & (abs(rest_ns) <= limits.MAX_SKEW * far_ns + limits.STAMP_NS)
    largest = np.lexsort((parts.length, parts.because != PartReason.HELD, parts.exchange))
    largest = largest[np.append(parts.exchange[largest][1:] != parts.exchange[largest][:-1], True)[: len(largest)]]
    moved = largest[is_near[parts.exchange[largest]]]
    parts.length[moved] += rest_ns[parts.exchange[moved]]
    # B's clock was set, or the response continued after its last cause: the parts are not known
    is_wrong = ~is_near & (rest_ns < 0)
    parts = _chosen(parts, np.flatnonzero(~is_wrong[parts.exchange]))
    unexplained = np.flatnonzero(~is_near)
    length = np.where(is_wrong, far_ns, rest_ns)[unexplained]
    rest_parts = _parts(unexplained, LAST, Place.UNKNOWN, CODES["unknown"], length, Grade.UNKNOWN, PartReason.NO_CAUSE)
    return _joined([parts, rest_parts])


def _named(packets: _Packets | None, rows: _Rows, is_wanted: Array, matched: Matched) -> Parts:
    """Return the causes of B's capture at the place of their owner."""
    cause_rows = np.flatnonzero(is_wanted)
    cause, grade = rows.cause[cause_rows], rows.grade[cause_rows].copy()
    is_unknown = np.isin(cause, [CODES["unknown"], CODES["capture_gap"]])
    is_line = np.isin(cause, [CODES["queueing"], CODES["bandwidth"]])
    # "network" in B's capture is the path beyond B
    location = np.where(is_unknown, Place.UNKNOWN, np.where(is_line, Place.BETWEEN,
                     np.where(rows.by_client[cause_rows], Place.CLIENT, Place.SERVER)))  # fmt: skip
    because = np.where(is_unknown, PartReason.NO_CAUSE, PartReason.OF_B)
    grade[is_unknown] = Grade.UNKNOWN
    is_repair = rows.is_repair[cause_rows]
    location[is_repair] = Place.BETWEEN
    if packets is not None:
        is_lost = _repaired(packets, rows, cause_rows[is_repair], matched)
        location[is_repair] = np.where(is_lost, Place.BETWEEN, Place.UNKNOWN)
        grade[is_repair] = np.where(is_lost, Grade.PROVEN, Grade.UNKNOWN)
        because[is_repair] = np.where(is_lost, PartReason.LOST_BETWEEN, PartReason.PASSED_BOTH)
    length = rows.end[cause_rows] - rows.start[cause_rows]
    return _parts(rows.exchange[cause_rows], 3 * cause_rows, location, cause, length, grade, because)


def _repaired(packets: _Packets, rows: _Rows, repairs: Array, matched: Matched) -> Array:
    """Return whether each of B's repairs was due to a loss between the points; if not, neither point shows the loss."""
    pair = packets.pairing.sides.pair_b[matched.back.first_row[matched.b[rows.exchange[repairs]]]]
    first, last = np.searchsorted(rows.of, repairs), np.searchsorted(rows.of, repairs, "right")
    is_lost = np.zeros(len(repairs), bool)
    for index, (begin, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        shown = rows.shown[begin:end]
        if len(shown):
            times = packets.pairing.time_b[shown]
            is_lost[index] = (packets.fate_b[shown] == Fate.LOST).any() or any(
                packets.has_loss(int(pair[index]), up, int(times.min()), int(times.max())) for up in (True, False)
            )
    return is_lost


def _repeat(
    packets: _Packets | None, matched: Matched, up: bool, start: Array, length: Array, position: int, cause: Array
) -> Parts:
    """Return the time from the first transmission of a packet to the copy that arrived.

    Proven if a packet of its connection was lost in this time, else suspected.
    """
    repeated = np.flatnonzero(length > 0)
    is_lost = np.zeros(len(repeated), bool)
    if packets is not None:
        pair = packets.pairing.sides.pair_a[matched.front.first_row[matched.a[repeated]]]
        for index, row in enumerate(repeated.tolist()):
            is_lost[index] = packets.has_loss(int(pair[index]), up, int(start[row]), int(start[row] + length[row]))
    causes = np.array([cause[row] if row < len(cause) else CODES["rto"] for row in repeated.tolist()], np.int64)
    grade = np.where(is_lost, Grade.PROVEN, Grade.SUSPECTED)
    because = np.where(is_lost, PartReason.LOST_BETWEEN, PartReason.NO_CAUSE)
    return _parts(repeated, position, Place.BETWEEN, causes, length[repeated], grade, because)


def table(parts: Iterator[Parts], exchanges: pa.Table) -> pa.Table:
    """Return the parts as a table with the numbers of A's and B's exchanges."""
    error = np.append(arrays.numbers(exchanges, "clock_error_ms"), np.nan)
    numbers = {name: arrays.numbers(exchanges, name) for name in ("a_exchange", "b_exchange")}
    word_columns = {
        "place": Place.words(),
        "cause": tuple(CAUSES),
        "grade": Grade.words(),
        "because": PartReason.words(),
    }
    kinds = {**dict.fromkeys(numbers, "i8"), "place": "i1", "cause": "i2", "duration_ms": "f8", "clock_error_ms": "f8",
             "grade": "i1", "because": "i1"}  # fmt: skip
    rows = Columns(kinds)
    for part in parts:
        rows.add({
            **{name: values[part.exchange] for name, values in numbers.items()},
            **{name: getattr(part, name) for name in word_columns},
            "duration_ms": part.length / NS_PER_MS,
            "clock_error_ms": np.where(part.by_clocks, error[part.exchange], 0.0),
        })  # fmt: skip
    rows.end()
    columns: dict[str, pa.Array] = {}
    for name in kinds:
        values = rows[name]
        if name in word_columns:
            columns[name] = pa.DictionaryArray.from_arrays(arrays.column(values), pa.array(word_columns[name]))
        else:
            columns[name] = arrays.column(values, None if name != "clock_error_ms" else ~np.isnan(values))
    return pa.table(columns)
