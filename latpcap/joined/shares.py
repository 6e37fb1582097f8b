"""Whose was each part of an exchange: the client's side, what lies between, or the server's side?

Reads matched exchanges, pairs of packets, and the causes that B's capture names. Each exchange is cut into parts that
follow each other and add up to its latency, to the nanosecond. Where B waited for a packet of A's, A's capture says how
long A held it: by A's clock alone, so without the clocks' error. Where a packet was sent again, its fate says whether
it was lost between the points. What neither point shows is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latpcap.joined import limits
from latpcap.joined.exchanges import Matched
from latpcap.joined.fates import LOST, Fates
from latpcap.joined.pairing import Pairing
from latpcap.joined.point import Point

if TYPE_CHECKING:
    import pyarrow as pa

CLIENT, BETWEEN, SERVER, UNKNOWN = "client", "between", "server", "unknown"
PLACES = (CLIENT, BETWEEN, SERVER, UNKNOWN)
REPAIRS = ("fast_retransmit", "tlp", "rto", "syn_rto", "reordering")
WAITS = ("nagle", "delayed_ack", "cwnd", "receive_window", "zero_window")
"""Causes of B's by which it waited for a packet of A's."""
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


@dataclass
class Part:
    """A part of an exchange: its place, cause, length in ns, grade, reason, and whether clocks bound its length."""

    exchange: int
    """Row of the table of exchanges."""
    place: str
    cause: str
    length: int
    grade: str
    because: int
    by_clocks: bool = False


def of(a: Point, b: Point, found: Pairing | None, fates: tuple[Fates, Fates] | None, matched: Matched) -> list[Part]:
    """Cut each matched exchange."""
    import numpy as np

    to_a, to_b = np.full(len(b.packets), -1), np.full(len(a.packets), -1)
    if found is not None:
        whole = ~found.part
        to_a[found.b[whole]], to_b[found.a[whole]] = found.a[whole], found.b[whole]
    cut = _Cut(a, b, found, fates, matched, to_a, to_b)
    instants = zip(*(column.tolist() for column in matched.instants()), strict=True)
    rows = _causes(b)
    numbers = b.table("exchanges")["exchange"].to_pylist()
    parts: list[Part] = []
    for place, (one, other, times) in enumerate(zip(matched.a.tolist(), matched.b.tolist(), instants, strict=True)):
        causes = rows.get(numbers[int(matched.back.place[other])], [])
        parts += cut.exchange(place, one, other, times, causes)
    return parts


def _causes(point: Point) -> dict[int, list[dict[str, Any]]]:
    """The rows of `causes` of each exchange, in order of time."""
    import pyarrow as pa

    table = point.table("causes")
    names = ["exchange", "start", "end", "cause", "owner", "from_frame", "to_frame", "evidence", "grade"]
    table = table.select(names).filter(table["exchange"].is_valid())
    stamps = {name: table[name].cast(pa.int64()) for name in ("start", "end")}
    for name, values in stamps.items():
        table = table.set_column(table.column_names.index(name), name, values)
    found: dict[int, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["exchange"], []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row["start"])
    return found


@dataclass
class _Cut:
    a: Point
    b: Point
    found: Pairing | None
    fates: tuple[Fates, Fates] | None
    matched: Matched
    to_a: Any
    to_b: Any

    def exchange(
        self, place: int, one: int, other: int, times: tuple[int, int, int, int], causes: list[dict[str, Any]]
    ) -> list[Part]:
        left, arrived, answered, back = times
        front, behind = self.matched.front, self.matched.back
        parts = []
        sent = int(self.to_a[behind.last_row[other]])
        again = int(self.a.packets["time"][sent]) - left if sent >= 0 else 0
        if again > 0:  # what arrived was a later copy of what was sent first
            parts.append(Part(place, BETWEEN, self._repair(causes), again, *self._lost(True, left, left + again, one)))
        way = "unknown" if self.found is None else "network"  # a proxy's own time is in it
        parts.append(Part(place, BETWEEN, way, arrived - left - max(again, 0), "proven", OUT, True))
        parts += self._far(place, other, answered - arrived, causes)
        came = int(self.to_b[front.end_row[one]])
        late = 0
        if came >= 0 and self.found is not None:
            late = int(self.found.time_b[came]) - answered
        if late > 0:
            parts.append(Part(place, BETWEEN, "rto", late, *self._lost(False, answered, answered + late, one)))
        parts.append(Part(place, BETWEEN, way, back - answered - max(late, 0), "proven", BACK, True))
        return [part for part in parts if part.length]

    def _repair(self, causes: list[dict[str, Any]]) -> str:
        return next((row["cause"] for row in causes if row["cause"] in REPAIRS), "rto")

    def _lost(self, up: bool, begin: int, end: int, one: int) -> tuple[str, int]:
        """Was a packet of this connection and direction, sent in this time, lost between the points?"""
        return ("proven", LOST_BETWEEN) if self._any_lost(up, begin, end, one) else ("suspected", NO_CAUSE)

    def _any_lost(self, up: bool, begin: int, end: int, one: int) -> bool:
        import numpy as np

        if self.found is None or self.fates is None:
            return False
        pair = int(self.found.sides.pair_a[self.matched.front.first_row[one]])
        key = pair * 2 + up
        groups, times = self._lost_times()
        first, last = np.searchsorted(groups, [key, key + 1])
        mine = times[first:last]
        return bool(((mine >= begin) & (mine <= end)).any())

    def _lost_times(self) -> tuple[Any, Any]:
        """Connection and direction of each lost packet, and when it was sent on A's clock; in order."""
        import numpy as np

        if "_losses" not in self.__dict__:
            assert self.found is not None and self.fates is not None
            rows_a = np.flatnonzero((self.fates[0].fate == LOST) & (self.found.sides.pair_a >= 0))
            rows_b = np.flatnonzero((self.fates[1].fate == LOST) & (self.found.sides.pair_b >= 0))
            pairs = np.concatenate([self.found.sides.pair_a[rows_a], self.found.sides.pair_b[rows_b]])
            up = np.concatenate([self.found.up_a[rows_a], self.found.up_b[rows_b]])
            times = np.concatenate([self.a.packets["time"][rows_a], self.found.time_b[rows_b]])
            order = np.lexsort((times, pairs.astype(np.int64) * 2 + up))
            self.__dict__["_losses"] = ((pairs.astype(np.int64) * 2 + up)[order], times[order])
        found: tuple[Any, Any] = self.__dict__["_losses"]
        return found

    def _far(self, place: int, other: int, length: int, causes: list[dict[str, Any]]) -> list[Part]:
        """What B's capture says of the time between the request's arrival and the answer's leaving."""
        parts: list[Part] = []
        at, last = 0, len(causes)
        while at < last:
            row = causes[at]
            step = [row]
            while at + len(step) < last and _same_step(row, causes[at + len(step)]):
                step.append(causes[at + len(step)])
            at += len(step)
            parts += self._waited(place, step) if row["cause"] in WAITS else self._named(place, other, step)
        rest = length - sum(part.length for part in parts)
        if parts and abs(rest) <= limits.SKEW_MOST * length + limits.STAMP_NS:  # B's clock runs at another rate
            max(parts, key=lambda part: (part.because != HELD, part.length)).length += rest
            return parts
        if rest < 0:  # B's clock was set, or the answer went on after its last row: nothing can be said of parts
            return [Part(place, UNKNOWN, "unknown", length, "unknown", NO_CAUSE)]
        parts.append(Part(place, UNKNOWN, "unknown", rest, "unknown", NO_CAUSE))
        return parts

    def _waited(self, place: int, step: list[dict[str, Any]]) -> list[Part]:
        """B waited for an acknowledgement: how long A held it, and how long it was on the way."""
        import numpy as np

        length = step[-1]["end"] - step[0]["start"]
        held = next((row for row in step if row["cause"] == "delayed_ack"), step[0])
        evidence = sorted({*(held["evidence"] or []), held["from_frame"], held["to_frame"]})
        rows = self.b.rows_of(np.array(evidence, np.uint64))
        rows = rows[rows >= 0]
        if self.found is None or len(rows) < 3:
            return self._named(place, -1, step)
        up = self.found.up_b[rows]
        sent, acks = rows[~up], rows[up]
        if not len(sent) or not len(acks):
            return self._named(place, -1, step)
        data, ack = int(sent[0]), int(acks[-1])
        at_a, left_a = int(self.to_a[data]), int(self.to_a[ack])
        if at_a < 0 or left_a < 0:
            return self._named(place, -1, step)
        hold = int(self.a.packets["time"][left_a] - self.a.packets["time"][at_a])
        came = int(self.b.packets["time"][ack]) - step[0]["start"]
        if not 0 <= hold <= came <= length:
            return self._named(place, -1, step)
        grade = max((row["grade"] for row in step), key=_sure)
        name = "delayed_ack" if held["cause"] == "delayed_ack" or hold > came - hold else "network"
        return [
            Part(place, CLIENT, name, hold, "proven" if _sure(grade) else grade, HELD),
            Part(place, BETWEEN, "network", came - hold, "proven", PATH),
            Part(place, SERVER, step[-1]["cause"], length - came, grade, OF_B),
        ]

    def _named(self, place: int, other: int, step: list[dict[str, Any]]) -> list[Part]:
        """The causes as B's capture has them, at the place of their owner."""
        parts = []
        for row in step:
            length, cause, grade = row["end"] - row["start"], row["cause"], row["grade"]
            if cause in REPAIRS:
                parts.append(Part(place, *self._sent_again(other, row, length)))
            elif cause in ("queueing", "bandwidth"):
                parts.append(Part(place, BETWEEN, cause, length, grade, OF_B))
            elif cause in ("unknown", "capture_gap"):
                parts.append(Part(place, UNKNOWN, cause, length, "unknown", NO_CAUSE))
            else:  # "network" of B's is what lies behind it
                side = CLIENT if row["owner"] == "client" else SERVER
                parts.append(Part(place, side, cause, length, grade, OF_B))
        return parts

    def _sent_again(self, other: int, row: dict[str, Any], length: int) -> tuple[str, str, int, str, int]:
        """A repair of B's: because of a loss between the points, or of one that neither shows."""
        if self.found is None or self.fates is None or other < 0:
            return BETWEEN, row["cause"], length, row["grade"], OF_B
        import numpy as np

        frames = np.array(sorted({*(row["evidence"] or []), row["from_frame"], row["to_frame"]}), np.uint64)
        rows = self.b.rows_of(frames)
        rows = rows[rows >= 0]
        pair = int(self.found.sides.pair_b[self.matched.back.first_row[other]])
        lost = (self.fates[1].fate[rows] == LOST).any()
        if not lost and len(rows):
            begin, end = (int(self.found.time_b[rows].min()), int(self.found.time_b[rows].max()))
            groups, times = self._lost_times()
            mine = (groups // 2 == pair) & (times >= begin) & (times <= end)
            lost = mine.any()
        if lost:
            return BETWEEN, row["cause"], length, "proven", LOST_BETWEEN
        return UNKNOWN, row["cause"], length, "unknown", PASSED_BOTH


def _same_step(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return other["cause"] in WAITS and all(one[name] == other[name] for name in ("from_frame", "to_frame", "evidence"))


SURENESS = ("unknown", "suspected", "probable", "proven")


def _sure(grade: str) -> int:
    """How sure a grade is; what is only suspected accuses nobody."""
    return SURENESS.index(grade) if grade in SURENESS else 0


def table(parts: list[Part], exchanges: pa.Table) -> pa.Table:
    """The parts as a table, by the numbers of A's and B's exchanges."""
    import pyarrow as pa

    places = [part.exchange for part in parts]
    errors = exchanges["clock_error_ms"].to_pylist()
    took = exchanges.select(["a_exchange", "b_exchange"]).take(pa.array(places, pa.int64()))
    return pa.table(
        {
            "a_exchange": took["a_exchange"],
            "b_exchange": took["b_exchange"],
            "place": pa.array([part.place for part in parts]).dictionary_encode(),
            "cause": pa.array([part.cause for part in parts]).dictionary_encode(),
            "duration_ms": pa.array([part.length / 1e6 for part in parts], pa.float64()),
            "clock_error_ms": pa.array([errors[part.exchange] if part.by_clocks else 0.0 for part in parts],
                                       pa.float64()),
            "grade": pa.array([part.grade for part in parts]).dictionary_encode(),
            "because": pa.array([BECAUSE[part.because] for part in parts]).dictionary_encode(),
        }
    )  # fmt: skip
