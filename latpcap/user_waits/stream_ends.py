"""How connections ended, from the packets of a few streams.

Per side: what was acknowledged, what was repeated without an answer, which side closed, and after which silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.segments import PROBES, PROBES_MS, Segments

if TYPE_CHECKING:
    from latpcap.arrays import Array

MAX_STREAMS = 256
"""Upper bound on the streams examined packet by packet, those that waited the longest."""


@dataclass(frozen=True)
class Resent:
    """Bytes that one side retransmitted, and what the receiver answered meanwhile. Times are in ns."""

    by_client: bool
    seq: int
    length: int
    first: int
    last: int
    frame: int
    copies: int
    until: int | None
    """When the receiver acknowledged them; None if it never did."""
    sizes_passed: tuple[int, ...]
    """Payload bytes of the later segments that the receiver acknowledged with SACK (RFC 2018)."""
    passed_before: int
    """The largest segment of this side that was acknowledged before, in bytes."""
    cut_to: int
    """The largest copy that was smaller and was acknowledged, in bytes; 0 without one."""
    later_packets: int
    """Number of the receiver's packets after the first copy."""


class Course:
    """One stream's packets in order. A place is a packet's position in it; `client` as a parameter selects the side."""

    def __init__(self, rows: Mapping[str, Array], flags: list[str], sacks: Mapping[int, list[tuple[int, int]]]):
        self.time, self.frame, self.client = rows["time"], rows["frame"], rows["from_client"].astype(bool)
        self.seq, self.len = rows["seq"], rows["len"]
        self.ack, self.window, self._mss = rows["ack"], rows["window"], rows["mss"]
        self._flags, self._sacks = flags, sacks

    def having(self, flag: str) -> Array:
        """Return the places of packets with this flag."""
        import numpy as np

        return np.flatnonzero(np.array([flag in words for words in self._flags], bool))

    @cached_property
    def fins(self) -> Array:
        """The places of FINs."""
        return self.having("FIN")

    @cached_property
    def resets(self) -> Array:
        """The places of RSTs."""
        return self.having("RST")

    def reset_by(self, client: bool) -> bool:
        """Return whether this side sent an RST."""
        return bool((self.client[self.resets] == client).any())

    @property
    def end(self) -> int:
        """The instant of the last packet."""
        return int(self.time[-1])

    def goes_on_after_reset(self, client: bool) -> int | None:
        """Return the place of this side's RST if the side kept acknowledging data after it; else None."""
        import numpy as np

        mine = np.flatnonzero(self.client == client)
        resets = np.intersect1d(self.resets, mine)
        if not len(resets):
            return None
        first = int(resets[0])
        later = np.setdiff1d(mine[(mine > first) & (self.len[mine] == 0)], np.union1d(self.resets, self.having("SYN")))
        return first if len(later) and (self.ack[later] > 0).all() and not len(self.fins) else None

    def at(self, frame: int) -> int:
        """Return the place of this frame, or of the stream's next one if the frame is of another stream."""
        import numpy as np

        return min(int(np.searchsorted(self.frame, frame)), len(self.frame) - 1)

    def closes(self, client: bool, after: int = -1) -> int | None:
        """Return the place of this side's first FIN or RST after a place."""
        import numpy as np

        both = np.sort(np.concatenate([self.fins, self.resets]))
        mine = both[(self.client[both] == client) & (both > after)]
        return int(mine[0]) if len(mine) else None

    def probes(self) -> tuple[bool, int, int] | None:
        """Find unanswered keep-alive probes at the end of the stream; None without them.

        Returns whether the client sent them, their number, and the place of the first.
        """
        import numpy as np

        last = bool(self.client[-1])
        other = np.flatnonzero(self.client != last)
        if not len(other) or (other[-1] in self.fins) or (other[-1] in self.resets):
            return None
        mine = np.arange(int(other[-1]) + 1, len(self.time))
        probes = mine[(self.len[mine] <= 1) & ~np.isin(mine, self.resets) & ~np.isin(mine, self.fins)]
        far = probes[np.diff(self.time[probes], prepend=self.time[other[-1]]) >= PROBES_MS * NS_PER_MS]
        quiet = len(far) >= PROBES and (self.len[mine] <= 1).all() and len(np.unique(self.ack[mine])) == 1
        return (last, len(far), int(far[0])) if quiet and not self.unacked(last) else None

    def silence_before(self, place: int) -> int:
        """Return for how many ns the stream was idle before this packet. Keep-alive probes count as idle."""
        import numpy as np

        before = np.flatnonzero((self.len[:place] > 1) | (self.len[:place] == 0) & self._moves[:place])
        return int(self.time[place] - self.time[before[-1]]) if len(before) else 0

    @cached_property
    def _moves(self) -> Array:
        """Whether each packet is more than a repeat of the previous acknowledgement or a probe."""
        import numpy as np

        moves = np.ones(len(self.ack), bool)
        for side in (True, False):
            mine = np.flatnonzero(self.client == side)
            same = (self.ack[mine][1:] == self.ack[mine][:-1]) & (self.len[mine][1:] <= 1)
            moves[mine[1:][same]] = False
        return moves

    def most_acked(self, client: bool) -> int:
        """Return the highest acknowledgement of this side's bytes."""
        other = self.ack[self.client != client]
        return int(other.max()) if len(other) else 0

    def unacked(self, client: bool) -> int:
        """Return the number of this side's bytes that were never acknowledged."""
        mine = (self.client == client) & (self.len > 0)
        return max(0, int((self.seq + self.len)[mine].max()) - self.most_acked(client)) if mine.any() else 0

    def most_allowed(self, client: bool) -> int:
        """Return the smaller maximum segment size of the two SYNs; 0 without a captured SYN."""
        named = self._mss[self._mss > 0]
        return int(named.min()) if len(named) else 0

    def unseen(self, client: bool) -> int:
        """Return the bytes before this side's FIN that were sent but not captured."""
        import numpy as np

        mine = np.flatnonzero(self.client == client)
        fins = np.intersect1d(self.fins, mine)
        data = mine[(self.len[mine] > 0) | (self.seq[mine] == 0)]
        if not len(fins) or not len(data):
            return 0
        seen = int((self.seq + np.maximum(self.len, 1))[data].max())
        last = int(fins[0])
        return max(0, int(self.seq[last] + self.len[last]) - seen)

    def full(self, client: bool) -> int:
        """Return the size of the largest segment that this side sent."""
        mine = self.len[self.client == client]
        return int(mine.max()) if len(mine) else 0

    def only_large(self, client: bool) -> bool:
        """Return whether this side sent several packets, all large enough for a path to refuse, and none was
        acknowledged.
        """
        mine = (self.client == client) & (self.len > 0)
        if mine.sum() < LIMITS["hung_copies"] or not self.most_allowed(client):
            return False
        large = self.len[mine] >= max(LIMITS["mtu_least_bytes"], self.most_allowed(client) / 2)
        return bool(large.all()) and self.most_acked(client) <= int(self.seq[mine].min())

    def as_long_as_one_before(self, place: int) -> bool:
        """Return whether the server's answer that ends at `place` has as many bytes as an earlier one on this
        stream.
        """
        import numpy as np

        data = np.flatnonzero((self.len > 0) & (np.arange(len(self.len)) <= place))
        turns = np.flatnonzero(np.diff(self.client[data], prepend=True) & ~self.client[data])
        if len(turns) < 2:
            return False
        begins, ends = self.seq[data[turns]], (self.seq + self.len)[data[np.r_[turns[1:], len(data)] - 1]]
        last = data[np.r_[turns[1:], len(data)] - 1]
        ends = np.where(self.client[last], self.ack[last], ends)  # a client's last packet before an answer requests it
        sizes = (ends - begins).tolist()
        return sizes[-1] in sizes[:-1]

    def held(self, client: bool) -> Resent | None:
        """Return the bytes of this side that were repeated for the longest time; None without repeats."""
        import numpy as np

        mine = np.flatnonzero((self.client == client) & (self.len > 0))
        acks = np.flatnonzero(self.client != client)
        if not len(mine) or not len(acks):
            return None
        order = mine[np.argsort(self.seq[mine], kind="stable")]
        starts = np.flatnonzero(np.diff(self.seq[order])) + 1
        acked = np.maximum.accumulate(self.ack[acks])
        best: tuple[int, Array] | None = None
        for copies in np.split(order, starts):
            if len(copies) < 2:
                continue
            first = copies[0]
            passed = max(np.searchsorted(acked, self.seq[first], "right"), np.searchsorted(acks, first, "right"))
            within = copies if passed == len(acks) else copies[copies < acks[passed]]
            whole = within[self.len[within] >= self.len[first]]
            span = int(self.time[whole[-1]] - self.time[first])
            if best is None or (len(whole) > 1 and span > best[0]):
                best = span, copies
        return None if best is None else self._held(client, int(self.seq[best[1][0]]), best[1], mine, acks)

    def _held(self, client: bool, seq: int, copies: Array, mine: Array, acks: Array) -> Resent:
        first = int(copies[0])
        length = int(self.len[first])
        later = acks[acks > first]
        passed = later[self.ack[later] > seq]
        until = int(passed[0]) if len(passed) else None
        within = copies if until is None else copies[copies < until]
        whole = within[self.len[within] >= length]
        smaller = [int(self.len[c]) for c in within if self.len[c] < length]
        behind = mine[(mine >= first) & (self.seq[mine] > seq)]
        stop = len(self.time) if until is None else until
        blocks = [b for p in later[later < stop].tolist() for b in self._sacks.get(p, ())]
        sizes = {
            int(self.len[p])
            for p in behind.tolist()
            if any(left <= self.seq[p] and self.seq[p] + self.len[p] <= right for left, right in blocks)
        }
        before = mine[(mine < first) & (self.seq[mine] + self.len[mine] <= seq)]
        return Resent(
            by_client=client, seq=seq, length=length, first=int(self.time[first]), last=int(self.time[whole[-1]]),
            frame=int(self.frame[first]), copies=len(whole),
            until=None if until is None else int(self.time[until]), sizes_passed=tuple(sorted(sizes)),
            passed_before=int(self.len[before].max()) if len(before) else 0,
            cut_to=max(smaller, default=0) if until is not None else 0, later_packets=len(later),
        )  # fmt: skip

    def closed_windows(self, client: bool) -> list[tuple[float, int, bool]]:
        """Find times of `stuck_ms` or more in which this side's window was closed while the peer probed it.

        Returns for each its length in ms, its first frame, and whether the window opened again.
        """
        import numpy as np

        mine = np.setdiff1d(np.flatnonzero(self.client == client), self.resets)
        shut = np.concatenate([[False], self.window[mine] == 0, [False]])
        first, opens = (np.flatnonzero(np.diff(shut.astype(np.int8)) == step) for step in (1, -1))
        found = []
        for begin, after in zip(first.tolist(), opens.tolist(), strict=True):
            place, opened = int(mine[begin]), after < len(mine)
            until = int(mine[after]) if opened else len(self.time) - 1
            probes = (self.client[place:until] != client) & (self.len[place:until] <= 1)
            span = int(self.time[until] - self.time[place]) / NS_PER_MS
            if span >= LIMITS["stuck_ms"] and probes.any():
                found.append((span, int(self.frame[place]), opened))
        return found

    def hole(self, client: bool) -> tuple[int, int, int] | None:
        """Find bytes of this side that never arrived, although later ones did and the receiver kept acknowledging.

        Returns the place of the packet after the hole, the hole's bytes, and the largest segment that arrived; None
        without a hole that stays open.
        """
        import numpy as np

        most = self.most_acked(client)
        mine = np.flatnonzero((self.client == client) & (self.len > 0))
        beyond = mine[self.seq[mine] > most]
        if not len(beyond) or not most or (self.seq[mine] == most).any():
            return None
        first = int(beyond[np.argmin(self.seq[beyond])])
        asks = np.flatnonzero((self.client != client) & (self.ack == most))
        asks = asks[asks > int(beyond.min())]
        if not len(asks):
            return None
        return int(beyond.min()), int(self.seq[first]) - most, int(self.len[mine].max())


def courses(segments: Segments, streams: Array) -> dict[int, Course]:
    """Return the packets of these streams, by stream number."""
    import numpy as np

    if not len(streams):
        return {}
    events = segments.of_streams(streams[:MAX_STREAMS])
    columns = {
        name: arrays.filled(events, name, 0).astype(np.int64)
        for name in ("frame", "time", "stream", "from_client", "seq", "ack", "len", "window", "mss")
    }
    code, words = arrays.codes(events, "flags")
    blocks = events["sack"].to_pylist()
    found = {}
    for number in np.unique(columns["stream"]).tolist():
        rows = np.flatnonzero(columns["stream"] == number)
        mine = {name: values[rows] for name, values in columns.items()}
        flags = [words[c] if c >= 0 else "" for c in code[rows].tolist()]
        sacks = {
            place: [(b["left"], b["right"]) for b in blocks[row]]
            for place, row in enumerate(rows.tolist())
            if blocks[row]
        }
        found[number] = Course(mine, flags, sacks)
    return found
