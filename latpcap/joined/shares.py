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
from latpcap.joined.capture_point import CODES, GRADES, REPAIRS, WAITS, Columns, Point
from latpcap.joined.exchanges import Matched
from latpcap.joined.match import mixed
from latpcap.joined.packet_fates import LOST, Fates
from latpcap.joined.pairing import Pairing
from latpcap.tables import NS_PER_MS
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

PLACES = CLIENT, BETWEEN, SERVER, UNKNOWN = "client", "between", "server", "unknown"
AT_CLIENT, AT_BETWEEN, AT_SERVER, AT_UNKNOWN = range(len(PLACES))
NOT_SURE, SUSPECTED, _, PROVEN = range(len(GRADES))
OUT, BACK, HELD, PATH, LOST_BETWEEN, PASSED_BOTH, OF_B, NO_CAUSE = range(8)
BECAUSE = (
    "from A to B",
    "from B to A",
    "A had the data and sent its acknowledgement later",
    "there and back of an acknowledgement that B waited for",
    "lost between the points",
    "what was sent again had passed",
    "B's capture names it",
    "B's capture names nothing",
)
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
    """Index into `PLACES`."""
    cause: Array
    """Index into `CAUSES`."""
    length: Array
    """Duration in ns."""
    grade: Array
    """Index into `GRADES`."""
    because: Array
    """Index into `BECAUSE`."""
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
    """Parts of these exchanges; a single number applies to all of them."""
    import numpy as np

    kinds = (np.int64, np.int64, np.int8, np.int16, np.int64, np.int8, np.int8, bool)
    values = (exchange, position, place, cause, length, grade, because, by_clocks)
    return Parts(
        *(np.broadcast_to(np.asarray(v, kind), np.shape(exchange)) for v, kind in zip(values, kinds, strict=True))
    )


def _joined(found: list[Parts]) -> Parts:
    import numpy as np

    return Parts(*(np.concatenate([getattr(one, field.name) for one in found]) for field in fields(Parts)))


def _chosen(parts: Parts, rows: Array) -> Parts:
    return Parts(*(getattr(parts, field.name)[rows] for field in fields(Parts)))


def cut_exchanges(
    a: Point, b: Point, found: Pairing | None, fates: tuple[Fates, Fates] | None, matched: Matched
) -> Iterator[Parts]:
    """Yield the parts of the matched exchanges, of `AT_ONCE` exchanges at a time."""
    import numpy as np

    losses = None if found is None or fates is None else _Losses(a, found, fates)
    twins = None if found is None else (_twins(found, len(b.packets), True), _twins(found, len(a.packets), False))
    order, edges = _of_exchanges(b, matched)
    for at in range(0, len(matched.a), AT_ONCE) or (0,):
        some = matched.sliced(at, at + AT_ONCE)
        ends = edges[at : at + len(some.a) + 1]
        rows = _Rows(b, some, order[ends[0] : ends[-1]], ends - ends[0])
        parts = _cut(a, b, found, fates, losses, twins, some, rows)
        parts.exchange = parts.exchange + np.int64(at)
        yield parts
        spill.release_memory()
        spill.trim_heap()


def _cut(
    a: Point,
    b: Point,
    found: Pairing | None,
    fates: tuple[Fates, Fates] | None,
    losses: _Losses | None,
    twins: tuple[Array, Array] | None,
    matched: Matched,
    rows: _Rows,
) -> Parts:
    import numpy as np

    left, arrived, answered, back = matched.instants()
    front, behind = matched.front, matched.back
    far = answered - arrived
    every = np.arange(len(left))
    again, late = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
    if found is not None and twins is not None:
        to_a, to_b = twins
        sent = to_a[behind.last_row[matched.b]]  # what arrived may be a later copy of what was sent first
        again = np.where(sent >= 0, np.maximum(a.packets["time"][sent] - left, 0), 0)
        came = to_b[front.end_row[matched.a]]
        late = np.where(came >= 0, np.maximum(found.time_b[came] - answered, 0), 0)
        waits = _waits(a, b, found, to_a, rows)
    else:
        waits = _no_waits(rows)
    way = CODES["unknown" if found is None else "network"]  # a proxy's own time is in it
    pair = None if found is None else found.sides.pair_a[front.first_row[matched.a]]
    parts = [
        _repeat(losses, pair, True, left, again, SENT_AGAIN, rows.repairs()),
        _parts(every, ON_THE_WAY, AT_BETWEEN, way, arrived - left - again, PROVEN, OUT, True),
        _far(b, found, fates, losses, rows, waits, far, matched),
        _repeat(losses, pair, False, answered, late, LAST + 1, np.full(len(left), CODES["rto"])),
        _parts(every, LAST + 2, AT_BETWEEN, way, back - answered - late, PROVEN, BACK, True),
    ]
    whole = _joined(parts)
    kept = np.flatnonzero(whole.length != 0)
    return _chosen(whole, kept[np.lexsort((whole.position[kept], whole.exchange[kept]))])


def _twins(found: Pairing, count: int, of_b: bool) -> Array:
    """Return the row in the other capture of each packet of this one; -1 for a packet without a pair, and for parts."""
    import numpy as np

    whole = ~found.part
    here, there = (found.b[whole], found.a[whole]) if of_b else (found.a[whole], found.b[whole])
    twins = np.full(count, -1, np.int32)
    twins[here] = there
    return twins


def _of_exchanges(b: Point, matched: Matched) -> tuple[Array, Array]:
    """Return the rows of B's causes in the order of the matched exchanges, and the offsets at which those of each
    begin.
    """
    import numpy as np

    numbers = b.causes.rows["exchange"]
    mine = arrays.numbers(b.table("exchanges"), "exchange")[matched.back.place[matched.b]].astype(np.int64)
    row = np.full(max(int(numbers.max(initial=0)), int(mine.max(initial=0))) + 2, len(mine), np.int32)  # -1: the last
    row[mine] = np.arange(len(mine), dtype=np.int32)
    of = spill.from_pieces("i4", (row[numbers[span]] for span in spill.parts(len(numbers))))
    order = spill.argsort(of)
    edges = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(mine) + 1))])
    return order, edges[: len(mine) + 1]


class _Rows:
    """B's causes of some matched exchanges, in order. `exchange` is the number of the exchange among them."""

    def __init__(self, b: Point, matched: Matched, places: Array, edges: Array):
        """`places` are rows of B's causes; those of exchange n are `places[edges[n] : edges[n + 1]]`."""
        import numpy as np

        rows = b.causes.rows.of(places)
        self.exchange = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        start = rows["start"]
        order = np.lexsort((start, self.exchange))
        rows = b.causes.rows.of(places[order])
        # The parts begin with the request's last byte: waits inside the request are left out.
        behind, first = matched.back, matched.b[self.exchange]
        self.start = np.clip(start[order], behind.start[first], behind.end[first])
        self.end = np.clip(rows["end"], self.start, behind.end[first])
        self.cause, self.grade, self.by_client = rows["cause"], rows["grade"], rows["by_client"]
        is_wait = np.isin(self.cause, [CODES[name] for name in WAITS])
        self.is_repair = np.isin(self.cause, [CODES[name] for name in REPAIRS])
        self._evidence(b, places[order], np.flatnonzero(is_wait | self.is_repair))
        alike = is_wait[1:] & is_wait[:-1] & (self.exchange[1:] == self.exchange[:-1]) & (self.key[1:] == self.key[:-1])
        self.first = np.concatenate([[True], ~alike])[: len(order)]
        self.step = np.cumsum(self.first) - 1
        self.is_wait = is_wait

    def _evidence(self, b: Point, places: Array, wanted: Array) -> None:
        """Set the packets that prove each wait and repair: `shown` are rows of B's packets, `of` the causes' rows.

        `key` is equal for consecutive causes that divide one step: they have equal frames and evidence.
        """
        import numpy as np

        rows = b.causes.rows.of(places[wanted])
        sizes = rows["size"].astype(np.int64)
        of = np.repeat(np.arange(len(wanted)), sizes)
        frames = b.causes.frames[np.arange(len(of)) + np.repeat(rows["begin"] - np.cumsum(sizes) + sizes, sizes)]
        ends = [rows[name] for name in ("from_frame", "to_frame")]
        sums = np.zeros(len(wanted), np.uint64)
        np.add.at(sums, of, mixed(frames))
        self.key = np.zeros(len(places), np.uint64)
        self.key[wanted] = mixed(*ends, sums)
        every = np.concatenate([of, np.arange(len(wanted)), np.arange(len(wanted))])
        shown = b.rows_of(np.concatenate([frames, *ends]))
        seen = np.flatnonzero(shown >= 0)
        pairs = np.sort((every[seen] << 32) | shown[seen])
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]
        self.of, self.shown = wanted[pairs >> 32], pairs & 0xFFFFFFFF

    def repairs(self) -> Array:
        """Return the first repair of each exchange among B's causes; a retransmission timeout if there is none."""
        import numpy as np

        found = np.full(int(self.exchange.max(initial=-1)) + 1, CODES["rto"])
        rows = np.flatnonzero(self.is_repair)[::-1]
        found[self.exchange[rows]] = self.cause[rows]
        return found


@dataclass
class _Waits:
    """The steps in which B waited for a packet of A that A's capture has."""

    measured: Array
    """Of each row of `_Rows`, whether it belongs to such a step."""
    parts: list[Parts]


def _no_waits(rows: _Rows) -> _Waits:
    import numpy as np

    return _Waits(np.zeros(len(rows.cause), bool), [])


def _waits(a: Point, b: Point, found: Pairing, to_a: Array, rows: _Rows) -> _Waits:
    """Divide B's waits for an acknowledgement into the time A held it, its way there and back, and the rest.

    The first data packet among the evidence is the one that A acknowledged; the last packet from A is the ACK.
    """
    import numpy as np

    if not rows.is_wait.any():
        return _no_waits(rows)
    begin = np.flatnonzero(rows.first)
    last = np.append(begin[1:], len(rows.first)) - 1
    steps = len(begin)
    waiting = rows.is_wait[rows.of] & rows.first[rows.of]  # all rows of a step have the same evidence
    step, shown = rows.step[rows.of[waiting]], rows.shown[waiting]
    up = found.up_b[shown]
    data, ack = np.full(steps, len(b.packets)), np.full(steps, -1)
    np.minimum.at(data, step[~up], shown[~up])
    np.maximum.at(ack, step[up], shown[up])
    known = np.flatnonzero((np.bincount(step, minlength=steps) >= 3) & (data < len(b.packets)) & (ack >= 0))
    known = known[(to_a[data[known]] >= 0) & (to_a[ack[known]] >= 0)]
    at_a, left_a = to_a[data[known]], to_a[ack[known]]
    hold = a.packets["time"][left_a] - a.packets["time"][at_a]
    start, length = rows.start[begin[known]], rows.end[last[known]] - rows.start[begin[known]]
    came = b.packets["time"][ack[known]] - start
    possible = (hold >= 0) & (hold <= came) & (came <= length)
    known, hold, came, length = known[possible], hold[possible], came[possible], length[possible]
    delayed = np.zeros(steps, bool)
    delayed[rows.step[rows.cause == CODES["delayed_ack"]]] = True
    grade = np.zeros(steps, np.int64)
    np.maximum.at(grade, rows.step, rows.grade)
    grade = grade[known]
    timer = delayed[known] | (hold > came - hold) | (hold >= limits.HELD_NS)
    name = np.where(timer, CODES["delayed_ack"], CODES["network"])
    exchange, position = rows.exchange[begin[known]], 3 * begin[known]
    sure = np.where(grade >= SUSPECTED, PROVEN, NOT_SURE)
    of_b = rows.cause[last[known]]
    measured = np.zeros(steps, bool)
    measured[known] = True
    return _Waits(
        measured[rows.step],
        [
            _parts(exchange, position, AT_CLIENT, name, hold, sure, HELD),
            _parts(exchange, position + 1, AT_BETWEEN, CODES["network"], came - hold, PROVEN, PATH),
            _parts(exchange, position + 2, AT_SERVER, of_b, length - came, grade, OF_B),
        ],
    )


def _far(
    b: Point,
    found: Pairing | None,
    fates: tuple[Fates, Fates] | None,
    losses: _Losses | None,
    rows: _Rows,
    waits: _Waits,
    far: Array,
    matched: Matched,
) -> Parts:
    """Return the parts between the request's arrival at B and the response's departure, by B's capture."""
    import numpy as np

    parts = _joined([*waits.parts, _named(b, found, fates, losses, rows, ~waits.measured, matched)])
    order = np.lexsort((parts.position, parts.exchange))
    parts = _chosen(parts, order)
    count = np.bincount(parts.exchange, minlength=len(far))
    sums = np.zeros(len(far), np.int64)
    np.add.at(sums, parts.exchange, parts.length)
    rest = far - sums
    near = (count > 0) & (abs(rest) <= limits.MAX_SKEW * far + limits.STAMP_NS)  # only the clocks' rates differ
    largest = np.lexsort((parts.length, parts.because != HELD, parts.exchange))
    largest = largest[np.append(parts.exchange[largest][1:] != parts.exchange[largest][:-1], True)[: len(largest)]]
    moved = largest[near[parts.exchange[largest]]]
    parts.length[moved] += rest[parts.exchange[moved]]
    # B's clock was set, or the response continued after its last cause: the parts are not known
    wrong = ~near & (rest < 0)
    parts = _chosen(parts, np.flatnonzero(~wrong[parts.exchange]))
    open_ = np.flatnonzero(~near)
    length = np.where(wrong, far, rest)[open_]
    return _joined([parts, _parts(open_, LAST, AT_UNKNOWN, CODES["unknown"], length, NOT_SURE, NO_CAUSE)])


def _named(
    b: Point,
    found: Pairing | None,
    fates: tuple[Fates, Fates] | None,
    losses: _Losses | None,
    rows: _Rows,
    wanted: Array,
    matched: Matched,
) -> Parts:
    """Return the causes of B's capture at the place of their owner."""
    import numpy as np

    mine = np.flatnonzero(wanted)
    cause, grade = rows.cause[mine], rows.grade[mine].copy()
    nothing = np.isin(cause, [CODES["unknown"], CODES["capture_gap"]])
    line = np.isin(cause, [CODES["queueing"], CODES["bandwidth"]])
    # "network" in B's capture is the path beyond B
    place = np.where(nothing, AT_UNKNOWN, np.where(line, AT_BETWEEN,
                     np.where(rows.by_client[mine], AT_CLIENT, AT_SERVER)))  # fmt: skip
    because = np.where(nothing, NO_CAUSE, OF_B)
    grade[nothing] = NOT_SURE
    repaired = rows.is_repair[mine]
    place[repaired] = AT_BETWEEN
    if found is not None and fates is not None and losses is not None:
        lost = _repaired(b, found, fates, losses, rows, mine[repaired], matched)
        place[repaired] = np.where(lost, AT_BETWEEN, AT_UNKNOWN)
        grade[repaired] = np.where(lost, PROVEN, NOT_SURE)
        because[repaired] = np.where(lost, LOST_BETWEEN, PASSED_BOTH)
    return _parts(rows.exchange[mine], 3 * mine, place, cause, rows.end[mine] - rows.start[mine], grade, because)


def _repaired(
    b: Point,
    found: Pairing,
    fates: tuple[Fates, Fates],
    losses: _Losses,
    rows: _Rows,
    repairs: Array,
    matched: Matched,
) -> Array:
    """Return whether each of B's repairs was due to a loss between the points; if not, neither point shows the loss."""
    import numpy as np

    behind = matched.back
    pair = found.sides.pair_b[behind.first_row[matched.b[rows.exchange[repairs]]]]
    first, last = np.searchsorted(rows.of, repairs), np.searchsorted(rows.of, repairs, "right")
    lost = np.zeros(len(repairs), bool)
    for place, (begin, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        shown = rows.shown[begin:end]
        if len(shown):
            when = found.time_b[shown]
            lost[place] = (fates[1].fate[shown] == LOST).any() or any(
                losses.between(int(pair[place]), up, int(when.min()), int(when.max())) for up in (True, False)
            )
    return lost


def _repeat(
    losses: _Losses | None, pair: Array | None, up: bool, start: Array, length: Array, position: int, cause: Array
) -> Parts:
    """Return the time from the first transmission of a packet to the copy that arrived.

    Proven if a packet of its connection was lost in this time, else suspected.
    """
    import numpy as np

    mine = np.flatnonzero(length > 0)
    lost = np.zeros(len(mine), bool)
    if losses is not None and pair is not None:
        for place, one in enumerate(mine.tolist()):
            lost[place] = losses.between(int(pair[one]), up, int(start[one]), int(start[one] + length[one]))
    causes = np.array([cause[one] if one < len(cause) else CODES["rto"] for one in mine.tolist()], np.int64)
    grade, because = np.where(lost, PROVEN, SUSPECTED), np.where(lost, LOST_BETWEEN, NO_CAUSE)
    return _parts(mine, position, AT_BETWEEN, causes, length[mine], grade, because)


class _Losses:
    """The packets lost between the points: connection, direction, and instant of sending on A's clock."""

    def __init__(self, a: Point, found: Pairing, fates: tuple[Fates, Fates]):
        import numpy as np

        rows_a = np.flatnonzero((fates[0].fate == LOST) & (found.sides.pair_a >= 0))
        rows_b = np.flatnonzero((fates[1].fate == LOST) & (found.sides.pair_b >= 0))
        pairs = np.concatenate([found.sides.pair_a[rows_a], found.sides.pair_b[rows_b]])
        group = pairs.astype(np.int64) * 2 + np.concatenate([found.up_a[rows_a], found.up_b[rows_b]])
        times = np.concatenate([a.packets["time"][rows_a], found.time_b[rows_b]])
        order = np.lexsort((times, group))
        self._group, self._times = group[order], times[order]

    def between(self, pair: int, up: bool, begin: int, end: int) -> bool:
        """Return whether a packet of this connection and direction, sent in this time, was lost."""
        import numpy as np

        first, last = np.searchsorted(self._group, [2 * pair + up, 2 * pair + up + 1])
        mine = self._times[first:last]
        return bool(np.searchsorted(mine, begin) < np.searchsorted(mine, end, "right"))


def table(parts: Iterator[Parts], exchanges: pa.Table) -> pa.Table:
    """Return the parts as a table with the numbers of A's and B's exchanges."""
    import numpy as np
    import pyarrow as pa

    error = np.append(arrays.numbers(exchanges, "clock_error_ms"), np.nan)
    numbers = {name: arrays.numbers(exchanges, name) for name in ("a_exchange", "b_exchange")}
    words = {"place": PLACES, "cause": tuple(CAUSES), "grade": GRADES, "because": BECAUSE}
    kinds = {**dict.fromkeys(numbers, "i8"), "place": "i1", "cause": "i2", "duration_ms": "f8", "clock_error_ms": "f8",
             "grade": "i1", "because": "i1"}  # fmt: skip
    rows = Columns(kinds)
    for some in parts:
        rows.add({
            **{name: values[some.exchange] for name, values in numbers.items()},
            **{name: getattr(some, name) for name in words},
            "duration_ms": some.length / NS_PER_MS,
            "clock_error_ms": np.where(some.by_clocks, error[some.exchange], 0.0),
        })  # fmt: skip
    rows.end()
    columns: dict[str, pa.Array] = {}
    for name in kinds:
        values = rows[name]
        if name in words:
            columns[name] = pa.DictionaryArray.from_arrays(arrays.column(values), pa.array(words[name]))
        else:
            columns[name] = arrays.column(values, None if name != "clock_error_ms" else ~np.isnan(values))
    return pa.table(columns)
