"""How did a connection come to its end? The packets of a few streams in; per side what was acknowledged, what was
repeated to nobody, who closed, and after which silence. Knows no request and no words.
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

MOST_STREAMS = 256
"""So many streams are looked at packet by packet: those that waited the longest."""


@dataclass(frozen=True)
class Resent:
    """Bytes that one side sent again and again, and what came back meanwhile. Times in ns, of the packets seen."""

    by_client: bool
    seq: int
    length: int
    first: int
    last: int
    frame: int
    copies: int
    until: int | None
    """When the other side acknowledged them at last; None: never."""
    sizes_passed: tuple[int, ...]
    """Payload of each segment behind them that the other side has selectively acknowledged."""
    passed_before: int
    """The largest segment of this side that had been acknowledged before."""
    cut_to: int
    """The largest copy that was smaller and at last acknowledged; 0: there was none."""
    later_packets: int
    """Packets of the other side behind the first copy."""


class Course:
    """One stream's packets, in order."""

    def __init__(self, rows: Mapping[str, Array], flags: list[str], sacks: Mapping[int, list[tuple[int, int]]]):
        self.time, self.frame, self.client = rows["time"], rows["frame"], rows["from_client"].astype(bool)
        self.seq, self.len = rows["seq"], rows["len"]
        self.ack, self.window, self._mss = rows["ack"], rows["window"], rows["mss"]
        self._flags, self._sacks = flags, sacks

    def having(self, flag: str) -> Array:
        """The places of packets with this flag."""
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
        """Did this side send an RST?"""
        return bool((self.client[self.resets] == client).any())

    @property
    def end(self) -> int:
        """The instant of the last packet."""
        return int(self.time[-1])

    def goes_on_after_reset(self, client: bool) -> int | None:
        """The place of this side's RST behind which it acknowledged as if it had sent none; else None."""
        import numpy as np

        mine = np.flatnonzero(self.client == client)
        resets = np.intersect1d(self.resets, mine)
        if not len(resets):
            return None
        first = int(resets[0])
        later = np.setdiff1d(mine[(mine > first) & (self.len[mine] == 0)], np.union1d(self.resets, self.having("SYN")))
        return first if len(later) and (self.ack[later] > 0).all() and not len(self.fins) else None

    def at(self, frame: int) -> int:
        """The place of this frame; of the next one where it is not of this stream."""
        import numpy as np

        return min(int(np.searchsorted(self.frame, frame)), len(self.frame) - 1)

    def closes(self, client: bool, after: int = -1) -> int | None:
        """The place of the first FIN or RST of this side behind this place."""
        import numpy as np

        both = np.sort(np.concatenate([self.fins, self.resets]))
        mine = both[(self.client[both] == client) & (both > after)]
        return int(mine[0]) if len(mine) else None

    def probes(self) -> tuple[bool, int, int] | None:
        """Keep-alive probes without an answer at the end of the stream: whether the client's, how many, and the place
        of the first; None where there are none.
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
        """For how many ns was nothing sent on this stream before this packet? Keep-alive probes count as nothing."""
        import numpy as np

        before = np.flatnonzero((self.len[:place] > 1) | (self.len[:place] == 0) & self._moves[:place])
        return int(self.time[place] - self.time[before[-1]]) if len(before) else 0

    @cached_property
    def _moves(self) -> Array:
        """Which packets say something new: not the same acknowledgement once more."""
        import numpy as np

        moves = np.ones(len(self.ack), bool)
        for side in (True, False):
            mine = np.flatnonzero(self.client == side)
            same = (self.ack[mine][1:] == self.ack[mine][:-1]) & (self.len[mine][1:] <= 1)
            moves[mine[1:][same]] = False
        return moves

    def most_acked(self, client: bool) -> int:
        """What is the highest acknowledgement of this side's bytes?"""
        other = self.ack[self.client != client]
        return int(other.max()) if len(other) else 0

    def unacked(self, client: bool) -> int:
        """How many bytes of this side were never acknowledged?"""
        mine = (self.client == client) & (self.len > 0)
        return max(0, int((self.seq + self.len)[mine].max()) - self.most_acked(client)) if mine.any() else 0

    def most_allowed(self, client: bool) -> int:
        """The least maximum segment size of the two SYNs, for this side's data; 0 where no SYN was seen."""
        named = self._mss[self._mss > 0]
        return int(named.min()) if len(named) else 0

    def unseen(self, client: bool) -> int:
        """How many bytes behind the last packet of this side with any does its FIN say that it has sent?"""
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
        """The largest segment that this side has sent."""
        mine = self.len[self.client == client]
        return int(mine.max()) if len(mine) else 0

    def only_large(self, client: bool) -> bool:
        """Did this side send nothing but packets that a narrow path may refuse, several, and get none acknowledged?"""
        mine = (self.client == client) & (self.len > 0)
        if mine.sum() < LIMITS["hung_copies"] or not self.most_allowed(client):
            return False
        large = self.len[mine] >= max(LIMITS["mtu_least_bytes"], self.most_allowed(client) / 2)
        return bool(large.all()) and self.most_acked(client) <= int(self.seq[mine].min())

    def as_long_as_one_before(self, place: int) -> bool:
        """Has the server's answer that ends here as many bytes as one before on this stream?"""
        import numpy as np

        data = np.flatnonzero((self.len > 0) & (np.arange(len(self.len)) <= place))
        turns = np.flatnonzero(np.diff(self.client[data], prepend=True) & ~self.client[data])
        if len(turns) < 2:
            return False
        begins, ends = self.seq[data[turns]], (self.seq + self.len)[data[np.r_[turns[1:], len(data)] - 1]]
        asks = self.client[
            data[np.r_[turns[1:], len(data)] - 1]
        ]  # what stands last before the next answer is a request
        ends = np.where(asks, self.ack[data[np.r_[turns[1:], len(data)] - 1]], ends)
        sizes = (ends - begins).tolist()
        return sizes[-1] in sizes[:-1]

    def held(self, client: bool) -> Resent | None:
        """The bytes of this side that were repeated the longest; None where none were."""
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
        """How long, in ms, was this side's window closed while the other one probed it, from which frame on, and did it
        open again? Those of `stuck_ms` and more.
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
        """What of this side's bytes never came to this end, though later ones did?

        Gives the place of the packet behind the hole, the hole's bytes, and the largest segment of this side that did
        come; None where there is no hole that stays open, or nobody asks for it.
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
    """The packets of these streams, by their numbers."""
    import numpy as np

    if not len(streams):
        return {}
    events = segments.of_streams(streams[:MOST_STREAMS])
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
