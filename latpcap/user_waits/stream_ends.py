"""How connections ended, from the packets of a few streams.

Per side: what was acknowledged, what was repeated without an answer, which side closed, and after which silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.lazy import np
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
    """One stream's packets in order. An index is a packet's position; `client` as a parameter selects the side."""

    def __init__(self, rows: Mapping[str, Array], flags: list[str], sacks: Mapping[int, list[tuple[int, int]]]):
        self.time, self.frame, self.client = rows["time"], rows["frame"], rows["from_client"].astype(bool)
        self.seq, self.len = rows["seq"], rows["len"]
        self.ack, self.window, self._mss = rows["ack"], rows["window"], rows["mss"]
        self._flags, self._sacks = flags, sacks

    def with_flag(self, flag: str) -> Array:
        """Return the indexes of packets with this flag."""
        return np.flatnonzero(np.array([flag in words for words in self._flags], bool))

    @cached_property
    def fins(self) -> Array:
        """The indexes of FINs."""
        return self.with_flag("FIN")

    @cached_property
    def resets(self) -> Array:
        """The indexes of RSTs."""
        return self.with_flag("RST")

    def reset_by(self, client: bool) -> bool:
        """Return whether this side sent an RST."""
        return bool((self.client[self.resets] == client).any())

    @property
    def end(self) -> int:
        """The instant of the last packet."""
        return int(self.time[-1])

    def goes_on_after_reset(self, client: bool) -> int | None:
        """Return the index of this side's RST if the side kept acknowledging data after it; else None."""
        side_packets = np.flatnonzero(self.client == client)
        resets = np.intersect1d(self.resets, side_packets)
        if not len(resets):
            return None
        first = int(resets[0])
        empty = side_packets[(side_packets > first) & (self.len[side_packets] == 0)]
        later_acks = np.setdiff1d(empty, np.union1d(self.resets, self.with_flag("SYN")))
        return first if len(later_acks) and (self.ack[later_acks] > 0).all() and not len(self.fins) else None

    def index_of(self, frame: int) -> int:
        """Return the index of this frame, or of the stream's next one if the frame is of another stream."""
        return min(int(np.searchsorted(self.frame, frame)), len(self.frame) - 1)

    def closes(self, client: bool, after: int = -1) -> int | None:
        """Return the index of this side's first FIN or RST after an index."""
        endings = np.sort(np.concatenate([self.fins, self.resets]))
        side_endings = endings[(self.client[endings] == client) & (endings > after)]
        return int(side_endings[0]) if len(side_endings) else None

    def probes(self) -> tuple[bool, int, int] | None:
        """Find unanswered keep-alive probes at the end of the stream; None without them.

        Returns whether the client sent them, their number, and the index of the first.
        """
        is_client = bool(self.client[-1])
        other_packets = np.flatnonzero(self.client != is_client)
        if not len(other_packets) or (other_packets[-1] in self.fins) or (other_packets[-1] in self.resets):
            return None
        last_packets = np.arange(int(other_packets[-1]) + 1, len(self.time))
        small = last_packets[self.len[last_packets] <= 1]
        probes = np.setdiff1d(small, np.concatenate([self.resets, self.fins]))
        spaced = probes[np.diff(self.time[probes], prepend=self.time[other_packets[-1]]) >= PROBES_MS * NS_PER_MS]
        is_quiet = len(small) == len(last_packets) and len(np.unique(self.ack[last_packets])) == 1
        if len(spaced) < PROBES or not is_quiet or self.unacked(is_client):
            return None
        return is_client, len(spaced), int(spaced[0])

    def silence_before(self, index: int) -> int:
        """Return for how many ns the stream was idle before this packet. Keep-alive probes count as idle."""
        active = np.flatnonzero((self.len[:index] > 1) | (self.len[:index] == 0) & self._moves[:index])
        return int(self.time[index] - self.time[active[-1]]) if len(active) else 0

    @cached_property
    def _moves(self) -> Array:
        """Whether each packet is more than a repeat of the previous acknowledgement or a probe."""
        moves = np.ones(len(self.ack), bool)
        for side in (True, False):
            side_packets = np.flatnonzero(self.client == side)
            is_repeat = (self.ack[side_packets][1:] == self.ack[side_packets][:-1]) & (self.len[side_packets][1:] <= 1)
            moves[side_packets[1:][is_repeat]] = False
        return moves

    def most_acked(self, client: bool) -> int:
        """Return the highest acknowledgement of this side's bytes."""
        acks = self.ack[self.client != client]
        return int(acks.max()) if len(acks) else 0

    def unacked(self, client: bool) -> int:
        """Return the number of this side's bytes that were never acknowledged."""
        is_data = (self.client == client) & (self.len > 0)
        return max(0, int((self.seq + self.len)[is_data].max()) - self.most_acked(client)) if is_data.any() else 0

    def most_allowed(self) -> int:
        """Return the smaller maximum segment size of the two SYNs; 0 without a captured SYN."""
        sizes = self._mss[self._mss > 0]
        return int(sizes.min()) if len(sizes) else 0

    def unseen(self, client: bool) -> int:
        """Return the bytes before this side's FIN that were sent but not captured."""
        side_packets = np.flatnonzero(self.client == client)
        fins = np.intersect1d(self.fins, side_packets)
        data = side_packets[(self.len[side_packets] > 0) | (self.seq[side_packets] == 0)]
        if not len(fins) or not len(data):
            return 0
        captured_end = int((self.seq + np.maximum(self.len, 1))[data].max())
        fin = int(fins[0])
        return max(0, int(self.seq[fin] + self.len[fin]) - captured_end)

    def never_arrived(self, client: bool) -> tuple[int, int] | None:
        """Find bytes of this side that its later packets count, and that neither arrived nor were acknowledged.

        Returns the index of the first packet that counts them, and their number; None without them.
        """
        side_packets = np.flatnonzero(self.client == client)
        side_packets = np.setdiff1d(side_packets, self.resets)
        has_sequence = side_packets[(self.len[side_packets] > 0) | np.isin(side_packets, self.fins)]
        arrived = int((self.seq + self.len)[has_sequence].max()) if len(has_sequence) else 1
        beyond = side_packets[self.seq[side_packets] > max(arrived + 1, self.most_acked(client))]  # 1: a FIN
        if not len(beyond):
            return None
        return int(beyond[0]), int(self.seq[beyond].max()) - max(arrived, 1)

    def only_large(self, client: bool) -> bool:
        """Return whether this side sent several packets, all large enough for a path to refuse, and none was
        acknowledged.
        """
        is_data = (self.client == client) & (self.len > 0)
        if is_data.sum() < LIMITS["hung_copies"] or not self.most_allowed():
            return False
        is_large = self.len[is_data] >= max(LIMITS["mtu_least_bytes"], self.most_allowed() / 2)
        return bool(is_large.all()) and self.most_acked(client) <= int(self.seq[is_data].min())

    def as_long_as_one_before(self, index: int) -> bool:
        """Return whether the server's answer that ends at `index` has as many bytes as an earlier one on this
        stream.
        """
        data = np.flatnonzero((self.len > 0) & (np.arange(len(self.len)) <= index))
        turns = np.flatnonzero(np.diff(self.client[data], prepend=True) & ~self.client[data])
        if len(turns) < 2:
            return False
        begins, ends = self.seq[data[turns]], (self.seq + self.len)[data[np.r_[turns[1:], len(data)] - 1]]
        last = data[np.r_[turns[1:], len(data)] - 1]
        ends = np.where(self.client[last], self.ack[last], ends)  # a client's last packet before an answer requests it
        sizes = (ends - begins).tolist()
        return sizes[-1] in sizes[:-1]

    def longest_resent(self, client: bool) -> Resent | None:
        """Return the bytes of this side that were repeated for the longest time; None without repeats."""
        data_packets = np.flatnonzero((self.client == client) & (self.len > 0))
        acks = np.flatnonzero(self.client != client)
        if not len(data_packets) or not len(acks):
            return None
        order = data_packets[np.argsort(self.seq[data_packets], kind="stable")]
        starts = np.flatnonzero(np.diff(self.seq[order])) + 1
        acked = np.maximum.accumulate(self.ack[acks])
        longest: tuple[int, Array] | None = None
        for copies in np.split(order, starts):
            if len(copies) < 2:
                continue
            first = copies[0]
            acking = max(np.searchsorted(acked, self.seq[first], "right"), np.searchsorted(acks, first, "right"))
            copies_before_ack = copies if acking == len(acks) else copies[copies < acks[acking]]
            whole_copies = copies_before_ack[self.len[copies_before_ack] >= self.len[first]]
            span_ns = int(self.time[whole_copies[-1]] - self.time[first])
            if longest is None or (len(whole_copies) > 1 and span_ns > longest[0]):
                longest = span_ns, copies
        return None if longest is None else self._resent(longest[1], data_packets, acks)

    def _resent(self, copies: Array, data_packets: Array, acks: Array) -> Resent:
        """Describe a segment by its copies: when it was sent and acknowledged, and what passed meanwhile."""
        first = int(copies[0])
        client, seq, length = bool(self.client[first]), int(self.seq[first]), int(self.len[first])
        later_acks = acks[acks > first]
        acking = later_acks[self.ack[later_acks] > seq]
        until = int(acking[0]) if len(acking) else None
        copies_before_ack = copies if until is None else copies[copies < until]
        whole_copies = copies_before_ack[self.len[copies_before_ack] >= length]
        smaller_sizes = [int(self.len[copy]) for copy in copies_before_ack if self.len[copy] < length]
        later_data = data_packets[(data_packets >= first) & (self.seq[data_packets] > seq)]
        end = len(self.time) if until is None else until
        blocks = [block for packet in later_acks[later_acks < end].tolist() for block in self._sacks.get(packet, ())]
        sizes = {
            int(self.len[packet])
            for packet in later_data.tolist()
            if any(start <= self.seq[packet] and self.seq[packet] + self.len[packet] <= stop for start, stop in blocks)
        }
        earlier_data = data_packets[(data_packets < first) & (self.seq[data_packets] + self.len[data_packets] <= seq)]
        return Resent(
            by_client=client, seq=seq, length=length, first=int(self.time[first]),
            last=int(self.time[whole_copies[-1]]), frame=int(self.frame[first]), copies=len(whole_copies),
            until=None if until is None else int(self.time[until]), sizes_passed=tuple(sorted(sizes)),
            passed_before=int(self.len[earlier_data].max()) if len(earlier_data) else 0,
            cut_to=max(smaller_sizes, default=0) if until is not None else 0, later_packets=len(later_acks),
        )  # fmt: skip

    def closed_windows(self, client: bool) -> list[tuple[float, int, bool]]:
        """Find times of `stuck_ms` or more in which this side's window was closed while the peer probed it.

        Returns for each its length in ms, its first frame, and whether the window opened again.
        """
        side_packets = np.setdiff1d(np.flatnonzero(self.client == client), self.resets)
        is_closed = np.concatenate([[False], self.window[side_packets] == 0, [False]])
        first, reopens = (np.flatnonzero(np.diff(is_closed.astype(np.int8)) == step) for step in (1, -1))
        closed_times = []
        for begin, after in zip(first.tolist(), reopens.tolist(), strict=True):
            index, has_opened = int(side_packets[begin]), after < len(side_packets)
            until = int(side_packets[after]) if has_opened else len(self.time) - 1
            probes = (self.client[index:until] != client) & (self.len[index:until] <= 1)
            span_ms = int(self.time[until] - self.time[index]) / NS_PER_MS
            if span_ms >= LIMITS["stuck_ms"] and probes.any():
                closed_times.append((span_ms, int(self.frame[index]), has_opened))
        return closed_times

    def hole(self, client: bool) -> tuple[int, int, int] | None:
        """Find bytes of this side that never arrived, although later ones did and the receiver kept acknowledging.

        Returns the index of the packet after the hole, the hole's bytes, and the largest segment that arrived; None
        without a hole that stays open.
        """
        acked = self.most_acked(client)
        data_packets = np.flatnonzero((self.client == client) & (self.len > 0))
        beyond = data_packets[self.seq[data_packets] > acked]
        if not len(beyond) or not acked or (self.seq[data_packets] == acked).any():
            return None
        first = int(beyond[np.argmin(self.seq[beyond])])
        repeated_acks = np.flatnonzero((self.client != client) & (self.ack == acked))
        repeated_acks = repeated_acks[repeated_acks > int(beyond.min())]
        if not len(repeated_acks):
            return None
        return int(beyond.min()), int(self.seq[first]) - acked, int(self.len[data_packets].max())


def courses(segments: Segments, streams: Array) -> dict[int, Course]:
    """Return the packets of these streams, by stream number."""
    if not len(streams):
        return {}
    events = segments.of_streams(streams[:MAX_STREAMS])
    columns = {
        name: arrays.filled(events, name, 0).astype(np.int64)
        for name in ("frame", "time", "stream", "from_client", "seq", "ack", "len", "window", "mss")
    }
    code, words = arrays.codes(events, "flags")
    blocks = events["sack"].to_pylist()
    courses_by_stream = {}
    for stream in np.unique(columns["stream"]).tolist():
        rows = np.flatnonzero(columns["stream"] == stream)
        columns_of_stream = {name: values[rows] for name, values in columns.items()}
        flags = [words[flag_code] if flag_code >= 0 else "" for flag_code in code[rows].tolist()]
        sacks = {
            index: [(block["left"], block["right"]) for block in blocks[row]]
            for index, row in enumerate(rows.tolist())
            if blocks[row]
        }
        courses_by_stream[stream] = Course(columns_of_stream, flags, sacks)
    return courses_by_stream
