"""What became of each packet that one capture has and the other lacks: lost, unseen, made between, outside, unknown.

Reads pairs, and what the ends sent about the packet: its acknowledgement before any other copy arrived proves that it
came; a hole that stays proves that it did not; so does the echo of its time stamp, or its absence. Without any of
these a packet counts as lost only where the other capture is complete by a control: no packet that it must have had
is missing in it. A capture that lacks some is not trusted with others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import spill
from latpcap.joined import limits
from latpcap.joined.capture_point import ACK, RST, TIMESTAMPS, Point
from latpcap.joined.pairing import Pairing, counted

if TYPE_CHECKING:
    from latpcap.arrays import Array

PASSED, LOST, DOUBLED, MADE, UNSEEN, OUTSIDE, UNKNOWN = range(7)
FATES = ("passed", "lost", "doubled", "made", "unseen", "outside", "unknown")
BECAUSE = (
    "seen at both",
    "not acknowledged by what came later",
    "acknowledged before another copy came",
    "its time stamp was echoed",
    "its time stamp was not echoed",
    "the other capture lacks nothing else",
    "the other capture lacks others too",
    "seen at the receiver",
    "another time to live than its connection",
    "its sender went on",
    "its sender sent one",
    "the other capture has nothing of that time",
    "never came to this point",
    "its way is not known",
    "refused by something between",
)
(SEEN, HOLE, ACKED, ECHOED, NOT_ECHOED, COMPLETE, INCOMPLETE, RECEIVED, TTL, WENT_ON, ONCE, NOT_RUN, NO_STREAM,
 NO_WAY, REFUSED) = range(len(BECAUSE))  # fmt: skip


@dataclass
class Fates:
    """Of each packet of one capture: its fate and why, as places in `FATES` and `BECAUSE`."""

    fate: Array
    because: Array


class _End:
    """One capture's packets of paired connections, by connection, direction and time, for look-ups."""

    def __init__(self, point: Point, time: Array, seq: Array, ack: Array, pair: Array, up: Array):
        import numpy as np

        self.point, self.time, self.seq, self.ack, self.pair, self.up = (point, time, seq, ack, pair, up)
        self.rows: Array = np.zeros(0, np.int64)
        self.group = self.rows

    def index(self, pairs: Array) -> None:
        """Make these connections ready for `of`: a truth for each."""
        import numpy as np

        rows = np.flatnonzero((self.pair >= 0) & pairs[self.pair]).astype(np.int32)
        group = self.pair[rows].astype(np.int64) * 2 + self.up[rows]
        order = np.lexsort((self.time[rows], group))
        self.rows, self.group = rows[order], group[order]

    def of(self, pair: int, up: bool) -> Array:
        """The rows of one direction of a connection, in order of time."""
        import numpy as np

        first, last = np.searchsorted(self.group, [pair * 2 + up, pair * 2 + up + 1])
        return self.rows[first:last]


def _past(numbers: Array, of: int) -> Array:
    """How far these 32-bit numbers lie behind `of`, signed."""
    import numpy as np

    return ((numbers.astype(np.int64) - of + (1 << 31)) % (1 << 32)) - (1 << 31)


def classify(a: Point, b: Point, found: Pairing) -> tuple[Fates, Fates]:
    """Give the fates of A's and of B's packets."""
    import numpy as np

    run_b = np.array([b.first_ns, b.last_ns])
    run_b += found.clock.shift(np.array([0, max(len(b.packets) - 1, 0)]), run_b)
    ends = (
        _End(a, a.packets["time"], a.packets["seq"], a.packets["ack"], found.sides.pair_a, found.up_a),
        _End(b, found.time_b, found.sides.seq_b, found.sides.ack_b, found.sides.pair_b, found.up_b),
    )
    runs = ((a.first_ns, a.last_ns), (int(run_b[0]), int(run_b[1])))
    matched = (_once(found.a, len(a.packets)), _once(found.b, len(b.packets)))
    copies = (found.copies_a, found.copies_b)
    fates = tuple(_begun(end.point, rows, more) for end, rows, more in zip(ends, matched, copies, strict=True))
    open_ = np.zeros(len(found.streams.a) + 1, bool)
    for end, one in zip(ends, fates, strict=True):
        open_[end.pair[one.fate == UNKNOWN]] = True
    for end in ends:
        end.index(open_)
    for here in (0, 1):
        _received(ends[here], ends[1 - here], runs[1 - here], here == 0, fates[here], found, matched[here])
    doubts: list[list[int]] = [[], []]
    for here in (0, 1):
        doubts[here] = _sent(ends[here], ends[1 - here], runs[1 - here], here == 0, fates[here], found)
    for here in (0, 1):
        other = ends[1 - here]
        lacking = int((fates[here].fate == UNSEEN).sum())  # what this capture has, and the other must have had
        seen = int((other.up[matched[1 - here]] == (here == 1)).sum())
        complete = lacking == 0 and seen >= limits.CONTROLS
        rows = np.array(doubts[here], np.int64)
        fates[here].fate[rows] = LOST if complete else UNKNOWN
        fates[here].because[rows] = COMPLETE if complete else INCOMPLETE
        _alone(ends[here], ends[1 - here], runs[1 - here], here == 0, fates[here], found, complete)
    spill.release_memory()
    return fates[0], fates[1]


def _once(rows: Array, count: int) -> Array:
    """Each of these rows once, in order."""
    import numpy as np

    there = np.zeros(count, bool)
    there[rows] = True
    return np.flatnonzero(there).astype(np.int32)


def _begun(point: Point, matched: Array, copies: Array) -> Fates:
    import numpy as np

    fate = np.full(len(point.packets), UNKNOWN, np.int8)
    because = np.full(len(point.packets), NO_WAY, np.int8)
    fate[matched], because[matched] = PASSED, SEEN
    fate[copies], because[copies] = DOUBLED, ONCE
    return Fates(fate, because)


def _ran(time: Array, run: tuple[int, int], delay: tuple[float, float, float], sign: int) -> Array:
    """Did the other capture run when this packet was there, at its earliest and at its latest?"""
    least, usual, most = delay
    slack = max(most - usual, limits.STEP_LEAST_NS)
    early, late = sorted((sign * (least - slack), sign * (most + slack)))
    return (time + early > run[0]) & (time + late < run[1])


def _received(
    here: _End, there: _End, run: tuple[int, int], at_a: bool, fates: Fates, found: Pairing, matched: Array
) -> None:
    """What arrived here and was not seen at its sender: unseen there, or made between."""
    import numpy as np

    mine = np.flatnonzero((here.pair >= 0) & (fates.fate == UNKNOWN) & (here.up != at_a))
    if not len(mine):
        return
    ran = _ran(here.time[mine], run, found.typical[not at_a], -1)
    fates.fate[mine[~ran]], fates.because[mine[~ran]] = OUTSIDE, NOT_RUN
    open_ = np.zeros(len(found.streams.a) + 1, bool)
    open_[here.pair[mine]] = True
    usual = _times_to_live(here, spill.selected(matched, open_[here.pair]))
    for row in mine[ran].tolist():
        pair, ttl = int(here.pair[row]), int(here.point.packets["ttl"][row])
        known = usual.get((pair, bool(here.up[row])))
        if known is not None and ttl not in known:
            fates.fate[row], fates.because[row] = MADE, TTL
        elif here.point.packets["flags"][row] & RST and _went_on(here, there, row, found):
            fates.fate[row], fates.because[row] = MADE, WENT_ON
        else:
            fates.fate[row], fates.because[row] = UNSEEN, RECEIVED


def _times_to_live(here: _End, matched: Array) -> dict[tuple[int, bool], set[int]]:
    """The times to live of each direction's packets that both captures have."""
    import numpy as np

    key = (here.pair[matched].astype(np.int64) * 2 + here.up[matched]) * 256 + here.point.packets["ttl"][matched]
    found: dict[tuple[int, bool], set[int]] = {}
    for value in np.unique(key).tolist():
        group, ttl = divmod(value, 256)
        found.setdefault((group // 2, bool(group % 2)), set()).add(ttl)
    return found


def _went_on(here: _End, there: _End, row: int, found: Pairing) -> bool:
    """Did the supposed sender of this RST send anything but RSTs afterwards?"""
    sent = there.of(int(here.pair[row]), bool(here.up[row]))
    later = sent[there.time[sent] > here.time[row]]
    return bool(((there.point.packets["flags"][later] & RST) == 0).any())


def _sent(here: _End, there: _End, run: tuple[int, int], at_a: bool, fates: Fates, found: Pairing) -> list[int]:
    """What left here and was not seen at its receiver. Gives the rows that the ends say nothing of."""
    import numpy as np

    mine = np.flatnonzero((here.pair >= 0) & (fates.fate == UNKNOWN) & (here.up == at_a))
    ran = _ran(here.time[mine], run, found.typical[at_a], 1)
    fates.fate[mine[~ran]], fates.because[mine[~ran]] = OUTSIDE, NOT_RUN
    doubts = []
    takes = counted(here.point, mine)
    for row, size in zip(mine[ran].tolist(), takes[ran].tolist(), strict=True):
        verdict = _of_data(here, there, row, size, at_a, found) if size else _of_ack(here, there, row, at_a, found)
        if verdict is None:
            doubts.append(row)
        else:
            fates.fate[row], fates.because[row] = verdict
    return doubts


def _of_data(here: _End, there: _End, row: int, size: int, up: bool, found: Pairing) -> tuple[int, int] | None:
    """By acknowledgements: what the receiver sent, at its own point."""
    import numpy as np

    pair, begin = int(here.pair[row]), int(here.seq[row])
    least, usual, most = found.typical[up]
    came = there.of(pair, up)
    before = _past(there.seq[came], begin)
    covers_first = (before <= 0) & (before + counted(there.point, came) > 0)
    covers_last = (before < size) & (before + counted(there.point, came) >= size)
    arrivals = [there.time[came[covers]] for covers in (covers_first, covers_last)]
    other = max(int(times[0]) for times in arrivals) if all(len(times) for times in arrivals) else None
    replies = there.of(pair, not up)
    replies = replies[(there.point.packets["flags"][replies] & ACK) != 0]
    behind = _past(there.ack[replies], begin)
    acked = replies[behind >= size]
    if len(acked) and (other is None or there.time[acked[0]] < other):
        return UNSEEN, ACKED
    late = here.time[row] + most + max(most - usual, limits.STEP_LEAST_NS)
    hole = (behind >= 0) & (behind < size) & (there.time[replies] > late)
    if other is not None:
        hole &= there.time[replies] < other
        if other < late and other < here.time[row] + least:  # another copy was there before
            return None
    return (LOST, HOLE) if bool(np.any(hole)) else None


def _of_ack(here: _End, there: _End, row: int, up: bool, found: Pairing) -> tuple[int, int] | None:
    """By the echo of its time stamp (RFC 7323 4.3): of what comes in order, the newest is echoed."""
    packet = here.point.packets.row(row)
    if not packet["bits"] & TIMESTAMPS or packet["flags"] & RST or not found.kept.stamps:
        return None
    pair, stamp = int(here.pair[row]), int(packet["tsval"])
    least, usual, most = found.typical[up]
    came, replies = there.of(pair, up), there.of(pair, not up)
    replies = replies[(there.point.packets["bits"][replies] & TIMESTAMPS) != 0]
    late = here.time[row] + most + max(most - usual, limits.STEP_LEAST_NS)
    before = replies[there.time[replies] <= here.time[row] + least]
    newer = came[_past(there.point.packets["tsval"][came], stamp) >= 0]
    until = there.time[newer[0]] if len(newer) else there.time[replies].max(initial=0) + 1
    # nothing newer came before
    alone = replies[(there.time[replies] > here.time[row] + least) & (there.time[replies] < until)]
    if (_past(there.point.packets["tsecr"][alone], stamp) >= 0).any():
        return UNSEEN, ECHOED
    if not (there.time[alone] > late).any():
        return None
    in_order = len(before) and int(_past(there.ack[before[-1:]], int(here.seq[row]))[0]) >= 0
    return (LOST, NOT_ECHOED) if in_order else None


def _alone(
    here: _End, there: _End, run: tuple[int, int], at_a: bool, fates: Fates, found: Pairing, complete: bool
) -> None:
    """Connections of this capture alone: on the way that others took, unanswered or refused, they ended between.

    Of a connection that was answered by more than an RST it is not known which way it took.
    """
    import numpy as np

    rows = np.flatnonzero(here.pair < 0)
    if not len(rows):
        return
    stream = here.point.packets["stream"]
    mine, other = (found.streams.a, found.streams.b) if at_a else (found.streams.b, found.streams.a)
    names = ways(here.point)
    others = ways(there.point)
    same_way = {names[int(s)][:3] for s, o in zip(mine, other, strict=True) if names[int(s)][1:] == others[int(o)][1:]}
    received = np.flatnonzero((fates.fate == PASSED) & (here.up != at_a))
    known: dict[str, set[int]] = {}
    for pair in np.unique(here.pair[received]).tolist():
        ttls = here.point.packets["ttl"][received[here.pair[received] == pair]]
        known.setdefault(names[int(mine[pair])][1], set()).update(np.unique(ttls).tolist())
    for one in np.unique(stream[rows]).tolist():
        of_it = rows[stream[rows] == one]
        sent = here.up[of_it] == at_a
        ran = _ran(here.time[of_it], run, found.typical[at_a], 1)
        answers = here.point.packets["flags"][of_it[~sent]]
        fates.fate[of_it[~ran]], fates.because[of_it[~ran]] = OUTSIDE, NOT_RUN
        usual = known.get(names[one][1])
        refused = of_it[~sent & ((here.point.packets["flags"][of_it] & RST) != 0)]
        only_refused = bool(usual) and len(refused) == (~sent).sum() and len(refused) > 0
        if only_refused and not np.isin(here.point.packets["ttl"][refused], list(usual or ())).any():
            fates.fate[refused], fates.because[refused] = MADE, TTL
            fates.fate[of_it[sent]], fates.because[of_it[sent]] = LOST, REFUSED
            continue
        if names[one][:3] not in same_way or not complete or bool(((answers & RST) == 0).any()):
            continue
        fates.fate[of_it[ran & sent]], fates.because[of_it[ran & sent]] = (LOST, NO_STREAM)
        fates.fate[of_it[ran & ~sent]], fates.because[of_it[ran & ~sent]] = (MADE, NO_STREAM)


def ways(point: Point) -> dict[int, tuple[str, str, int]]:
    """Client's address, server's address and port of each stream."""
    table = point.table("streams").select(["stream", "client", "server", "server_port"]).to_pydict()
    columns = zip(table["stream"], table["client"], table["server"], table["server_port"], strict=True)
    return {stream: (client, server, port) for stream, client, server, port in columns}
