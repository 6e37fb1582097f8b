"""Decides the fate of each packet that one capture lacks: lost, unseen, made between the points, outside, unknown.

Reads the pairs of packets, and the later packets of both ends. An acknowledgement before any other copy arrived proves
that the packet arrived, and so does the echo of its time stamp (RFC 7323). Later ACKs that leave its bytes out, or do
not echo its time stamp, prove that it did not. Without such a proof a packet counts as lost only if the other capture
is complete: none of the packets that must have passed its point is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from latpcap import spill
from latpcap.joined import limits
from latpcap.joined.capture_point import ACK, RST, TIMESTAMPS, Point
from latpcap.joined.codes import Code
from latpcap.joined.pairing import Pairing, counted
from latpcap.lazy import np

if TYPE_CHECKING:
    from latpcap.arrays import Array


class Fate(Code):
    """What became of a packet between the points."""

    PASSED = "passed"
    LOST = "lost"
    DOUBLED = "doubled"
    MADE = "made"
    UNSEEN = "unseen"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


class Reason(Code):
    """By what a fate is known."""

    SEEN = "seen at both"
    HOLE = "not acknowledged by what came later"
    ACKED = "acknowledged before another copy came"
    ECHOED = "its time stamp was echoed"
    NOT_ECHOED = "its time stamp was not echoed"
    COMPLETE = "the other capture lacks nothing else"
    INCOMPLETE = "the other capture lacks others too"
    RECEIVED = "seen at the receiver"
    TTL = "another time to live than its connection"
    WENT_ON = "its sender went on"
    ONCE = "its sender sent one"
    NOT_RUN = "the other capture has nothing of that time"
    NO_STREAM = "never came to this point"
    NO_WAY = "its way is not known"
    REFUSED = "refused by something between"


@dataclass
class Fates:
    """The fate of each packet of one capture and its reason, as numbers of `Fate` and `Reason`."""

    fate: Array
    because: Array


class _End:
    """One capture's packets of paired connections, indexed by connection, direction and time."""

    def __init__(self, point: Point, time: Array, seq: Array, ack: Array, pair: Array, up: Array):
        self.point, self.time, self.seq, self.ack, self.pair, self.up = (point, time, seq, ack, pair, up)
        self.rows: Array = np.zeros(0, np.int64)
        self.group = self.rows

    def index(self, pairs: Array) -> None:
        """Index the packets of the connections for which `pairs` is true."""
        rows = np.flatnonzero((self.pair >= 0) & pairs[self.pair]).astype(np.int32)
        group = self.pair[rows].astype(np.int64) * 2 + self.up[rows]
        order = np.lexsort((self.time[rows], group))
        self.rows, self.group = rows[order], group[order]

    def rows_of(self, pair: int, up: bool) -> Array:
        """Return the rows of one direction of an indexed connection, in order of time."""
        first, last = np.searchsorted(self.group, [pair * 2 + up, pair * 2 + up + 1])
        return self.rows[first:last]


@dataclass(frozen=True)
class _View:
    """What the packets of one capture (`here`) are judged by: the other capture, and what both have."""

    here: _End
    there: _End
    run: tuple[int, int]
    """First and last instant of the other capture."""
    at_a: bool
    """Whether `here` is A."""
    matched: Array
    """The rows of `here` that are in both captures."""
    fates: Fates
    """The fates of the packets of `here`; judging fills them in."""
    pairing: Pairing

    def judge(self, rows: Array | int, fate: Fate | Array, reason: Reason) -> None:
        """Set the fate of these rows."""
        self.fates.fate[rows], self.fates.because[rows] = fate, reason

    def judge_outside(self, rows: Array, *, sent: bool) -> Array:
        """Judge packets that passed the other point, after or before this one, while no capture was running there.

        Returns whether it was running, both at the earliest and at the latest instant, for each packet.
        """
        min_ns, median_ns, max_ns = self.pairing.typical[self.at_a == sent]
        slack_ns, sign = max(max_ns - median_ns, limits.MIN_STEP_NS), 1 if sent else -1
        min_shift_ns, max_shift_ns = sorted((sign * (min_ns - slack_ns), sign * (max_ns + slack_ns)))
        time = self.here.time[rows]
        was_running = (time + min_shift_ns > self.run[0]) & (time + max_shift_ns < self.run[1])
        self.judge(rows[~was_running], Fate.OUTSIDE, Reason.NOT_RUN)
        return was_running


def _distance(numbers: Array, origin: int) -> Array:
    """Return the signed distance of these 32-bit numbers from `origin`, modulo 2^32: positive if they are greater."""
    return ((numbers.astype(np.int64) - origin + (1 << 31)) % (1 << 32)) - (1 << 31)


def classify(a: Point, b: Point, pairing: Pairing) -> tuple[Fates, Fates]:
    """Return the fates of A's and of B's packets."""
    # 1. the packets of pairs
    run_b = np.array([b.first_ns, b.last_ns])
    run_b += pairing.clock.shift(np.array([0, max(len(b.packets) - 1, 0)]), run_b)
    ends = (
        _End(a, a.packets["time"], a.packets["seq"], a.packets["ack"], pairing.sides.pair_a, pairing.up_a),
        _End(b, pairing.time_b, pairing.sides.seq_b, pairing.sides.ack_b, pairing.sides.pair_b, pairing.up_b),
    )
    runs = ((a.first_ns, a.last_ns), (int(run_b[0]), int(run_b[1])))
    matched = (_once(pairing.a, len(a.packets)), _once(pairing.b, len(b.packets)))
    copies = (pairing.copies_a, pairing.copies_b)
    fates = tuple(_initial(end.point, rows, copied) for end, rows, copied in zip(ends, matched, copies, strict=True))
    is_open = np.zeros(len(pairing.streams.a) + 1, bool)
    for end, end_fates in zip(ends, fates, strict=True):
        is_open[end.pair[end_fates.fate == Fate.UNKNOWN]] = True
    for end in ends:
        end.index(is_open)
    views = (
        _View(ends[0], ends[1], runs[1], True, matched[0], fates[0], pairing),
        _View(ends[1], ends[0], runs[0], False, matched[1], fates[1], pairing),
    )
    # 2. packets that arrived at a point; 3. packets that left it, by the proofs of the other end
    for view in views:
        _judge_received(view)
    unproven = [_judge_sent(view) for view in views]
    # 4. packets without a proof, and connections of one capture, by whether the other capture is complete
    for view, rows, other_view in zip(views, unproven, reversed(views), strict=True):
        passed_count = int((other_view.here.up[other_view.matched] == other_view.at_a).sum())
        is_complete = not (view.fates.fate == Fate.UNSEEN).any() and passed_count >= limits.CONTROLS
        verdict = (Fate.LOST, Reason.COMPLETE) if is_complete else (Fate.UNKNOWN, Reason.INCOMPLETE)
        view.judge(rows, *verdict)
        _judge_unpaired(view, is_complete)
    spill.release_memory()
    return fates[0], fates[1]


def _once(rows: Array, count: int) -> Array:
    """Return the distinct rows, in order."""
    is_present = np.zeros(count, bool)
    is_present[rows] = True
    return np.flatnonzero(is_present).astype(np.int32)


def _initial(point: Point, matched: Array, copies: Array) -> Fates:
    """Return the fates before any proof: paired packets passed, copies are doubled, all others are unknown."""
    fate = np.full(len(point.packets), Fate.UNKNOWN, np.int8)
    because = np.full(len(point.packets), Reason.NO_WAY, np.int8)
    fate[matched], because[matched] = Fate.PASSED, Reason.SEEN
    fate[copies], because[copies] = Fate.DOUBLED, Reason.ONCE
    return Fates(fate, because)


def _judge_received(view: _View) -> None:
    """Judge packets that arrived at this point and are not in the sender's capture: unseen there, or made between.

    A packet whose time to live differs from that of its connection, or an RST after which the supposed sender went on
    sending, was made by something between the points.
    """
    here = view.here
    rows = np.flatnonzero((here.pair >= 0) & (view.fates.fate == Fate.UNKNOWN) & (here.up != view.at_a))
    if not len(rows):
        return
    was_running = view.judge_outside(rows, sent=False)
    is_open = np.zeros(len(view.pairing.streams.a) + 1, bool)
    is_open[here.pair[rows]] = True
    ttls_of = _times_to_live(here, spill.selected(view.matched, is_open[here.pair]))
    for row in rows[was_running].tolist():
        pair, ttl = int(here.pair[row]), int(here.point.packets["ttl"][row])
        usual_ttls = ttls_of.get((pair, bool(here.up[row])))
        if usual_ttls is not None and ttl not in usual_ttls:
            view.judge(row, Fate.MADE, Reason.TTL)
        elif here.point.packets["flags"][row] & RST and _went_on(view, row):
            view.judge(row, Fate.MADE, Reason.WENT_ON)
        else:
            view.judge(row, Fate.UNSEEN, Reason.RECEIVED)


def _times_to_live(here: _End, matched: Array) -> dict[tuple[int, bool], set[int]]:
    """Return the times to live of the paired packets, by connection and direction."""
    key = (here.pair[matched].astype(np.int64) * 2 + here.up[matched]) * 256 + here.point.packets["ttl"][matched]
    ttls: dict[tuple[int, bool], set[int]] = {}
    for value in np.unique(key).tolist():
        group, ttl = divmod(value, 256)
        ttls.setdefault((group // 2, bool(group % 2)), set()).add(ttl)
    return ttls


def _went_on(view: _View, row: int) -> bool:
    """Return whether the supposed sender of this RST sent anything but RSTs afterwards."""
    here, there = view.here, view.there
    sent = there.rows_of(int(here.pair[row]), bool(here.up[row]))
    later = sent[there.time[sent] > here.time[row]]
    return bool(((there.point.packets["flags"][later] & RST) == 0).any())


def _judge_sent(view: _View) -> Array:
    """Judge packets that left this point and are not in the receiver's capture. Returns the rows without a proof."""
    here = view.here
    rows = np.flatnonzero((here.pair >= 0) & (view.fates.fate == Fate.UNKNOWN) & (here.up == view.at_a))
    was_running = view.judge_outside(rows, sent=True)
    unproven = []
    sizes = counted(here.point, rows)
    for row, size in zip(rows[was_running].tolist(), sizes[was_running].tolist(), strict=True):
        verdict = _of_data(view, row, size) if size else _of_ack(view, row)
        if verdict is None:
            unproven.append(row)
        else:
            view.judge(row, *verdict)
    return np.array(unproven, np.int64)


def _of_data(view: _View, row: int, size: int) -> tuple[Fate, Reason] | None:
    """Return the fate and reason of a packet with data, by the receiver's acknowledgements at its own point; None if
    unproven.

    Unseen if its bytes were acknowledged before any other copy of them arrived. Lost if an ACK after its latest
    possible arrival, and before any other copy, acknowledges less.
    """
    here, there, up = view.here, view.there, view.at_a
    pair, begin = int(here.pair[row]), int(here.seq[row])
    min_ns, median_ns, max_ns = view.pairing.typical[up]
    arrived = there.rows_of(pair, up)
    before = _distance(there.seq[arrived], begin)
    covers_first = (before <= 0) & (before + counted(there.point, arrived) > 0)
    covers_last = (before < size) & (before + counted(there.point, arrived) >= size)
    arrivals = [there.time[arrived[covers]] for covers in (covers_first, covers_last)]
    other_copy_ns = max(int(times[0]) for times in arrivals) if all(len(times) for times in arrivals) else None
    replies = there.rows_of(pair, not up)
    replies = replies[(there.point.packets["flags"][replies] & ACK) != 0]
    acked_bytes = _distance(there.ack[replies], begin)
    acked = replies[acked_bytes >= size]
    if len(acked) and (other_copy_ns is None or there.time[acked[0]] < other_copy_ns):
        return Fate.UNSEEN, Reason.ACKED
    latest_ns = here.time[row] + max_ns + max(max_ns - median_ns, limits.MIN_STEP_NS)
    shows_hole = (acked_bytes >= 0) & (acked_bytes < size) & (there.time[replies] > latest_ns)
    if other_copy_ns is not None:
        shows_hole &= there.time[replies] < other_copy_ns
        if other_copy_ns < latest_ns and other_copy_ns < here.time[row] + min_ns:  # another copy had arrived before
            return None
    return (Fate.LOST, Reason.HOLE) if bool(np.any(shows_hole)) else None


def _of_ack(view: _View, row: int) -> tuple[Fate, Reason] | None:
    """Return the fate and reason of a packet without data, by the echo of its time stamp; None if unproven.

    A receiver echoes the newest time stamp of the segments that arrived in order (RFC 7323, section 4.3).
    """
    here, there, up = view.here, view.there, view.at_a
    packet = here.point.packets.row(row)
    if not packet["bits"] & TIMESTAMPS or packet["flags"] & RST or not view.pairing.kept.stamps:
        return None
    pair, stamp = int(here.pair[row]), int(packet["tsval"])
    min_ns, median_ns, max_ns = view.pairing.typical[up]
    arrived, replies = there.rows_of(pair, up), there.rows_of(pair, not up)
    replies = replies[(there.point.packets["bits"][replies] & TIMESTAMPS) != 0]
    latest_ns = here.time[row] + max_ns + max(max_ns - median_ns, limits.MIN_STEP_NS)
    before = replies[there.time[replies] <= here.time[row] + min_ns]
    newer = arrived[_distance(there.point.packets["tsval"][arrived], stamp) >= 0]
    until = there.time[newer[0]] if len(newer) else there.time[replies].max(initial=0) + 1
    # replies sent before any packet with this or a newer time stamp arrived: only the missing one can be echoed
    informative = replies[(there.time[replies] > here.time[row] + min_ns) & (there.time[replies] < until)]
    if (_distance(there.point.packets["tsecr"][informative], stamp) >= 0).any():
        return Fate.UNSEEN, Reason.ECHOED
    if not (there.time[informative] > latest_ns).any():
        return None
    in_order = len(before) and int(_distance(there.ack[before[-1:]], int(here.seq[row]))[0]) >= 0
    return (Fate.LOST, Reason.NOT_ECHOED) if in_order else None


def _judge_unpaired(view: _View, other_is_complete: bool) -> None:
    """Judge connections that only this capture has.

    A connection to the address and port of paired connections, without an answer or refused by RSTs, ended between the
    points. A connection with any other answer may have taken another path.
    """
    here = view.here
    rows = np.flatnonzero(here.pair < 0)
    if not len(rows):
        return
    stream_of = here.point.packets["stream"]
    names, same_path, ttls_of = _paired_servers(view)
    for number in np.unique(stream_of[rows]).tolist():
        stream_rows = rows[stream_of[rows] == number]
        sent = here.up[stream_rows] == view.at_a
        was_running = view.judge_outside(stream_rows, sent=True)
        flags = here.point.packets["flags"][stream_rows]
        usual_ttls = ttls_of.get(names[number][1])
        refused = stream_rows[~sent & ((flags & RST) != 0)]
        only_refused = bool(usual_ttls) and len(refused) == (~sent).sum() and len(refused) > 0
        if only_refused and not np.isin(here.point.packets["ttl"][refused], list(usual_ttls or ())).any():
            view.judge(refused, Fate.MADE, Reason.TTL)
            view.judge(stream_rows[sent], Fate.LOST, Reason.REFUSED)
            continue
        if names[number] not in same_path or not other_is_complete or bool(((flags[~sent] & RST) == 0).any()):
            continue
        view.judge(stream_rows[was_running], np.where(sent[was_running], Fate.LOST, Fate.MADE), Reason.NO_STREAM)


_Address: TypeAlias = tuple[str, str, int]
"""A stream's client address, server address and server port."""


def _paired_servers(view: _View) -> tuple[dict[int, _Address], set[_Address], dict[str, set[int]]]:
    """Return the addresses of each stream here, those with the same server at both points, and each server's TTLs."""
    here, fates = view.here, view.fates
    paired_a, paired_b = view.pairing.streams.a.tolist(), view.pairing.streams.b.tolist()
    paired_here, paired_there = (paired_a, paired_b) if view.at_a else (paired_b, paired_a)
    names, names_there = addresses(here.point), addresses(view.there.point)
    pairs = zip(paired_here, paired_there, strict=True)
    same_path = {names[stream] for stream, other in pairs if names[stream][1:] == names_there[other][1:]}
    received = np.flatnonzero((fates.fate == Fate.PASSED) & (here.up != view.at_a))
    ttls_of: dict[str, set[int]] = {}
    for pair in np.unique(here.pair[received]).tolist():
        ttls = here.point.packets["ttl"][received[here.pair[received] == pair]]
        ttls_of.setdefault(names[paired_here[pair]][1], set()).update(np.unique(ttls).tolist())
    return names, same_path, ttls_of


def addresses(point: Point) -> dict[int, _Address]:
    """Return the client's address and the server's address and port of each stream."""
    table = point.table("streams").select(["stream", "client", "server", "server_port"]).to_pydict()
    columns = zip(table["stream"], table["client"], table["server"], table["server_port"], strict=True)
    return {stream: (client, server, port) for stream, client, server, port in columns}
