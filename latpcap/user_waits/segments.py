"""Collect from rows of "events" what findings need of single segments.

A large capture has too many events to hold in memory. `Segments.add` takes them in pieces and keeps the few that
matter; a whole table gives the same result in one piece.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays, spill
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.connects import Opens

if TYPE_CHECKING:
    from latpcap.arrays import Array

COLUMNS = (
    "frame", "time", "stream", "from_client", "seq", "ack", "len", "flags", "tsval", "retransmission", "zero_window",
    "ack_hold_ms", "release_frame", "time_delta_ms",
)  # fmt: skip
COURSE = ["frame", "time", "stream", "from_client", "seq", "ack", "len", "flags", "window", "mss", "sack"]
"""The columns from which `stream_ends` reads the end of a connection."""
PROBES = 3
"""Fewest packets without data that may be keep-alive probes."""
PROBES_MS = 500.0
"""Shortest time without packets on the stream before each of them."""
STUCK_REPEATS = 3
"""Fewest repeats of the same bytes that are more than a loss, since the timer expired several times."""
DATA = ("stream", "from_client", "seq", "ack", "len", "tsval", "time")
"""The columns that distinguish two copies of a data segment."""
_NEAR = ("time", "tsval", "stream", "from_client")
MAX_JUMPS = 16
"""Number of the longest silences tested for a jump of the clock."""
NEARBY = 2_000
"""Number of packets kept on each side of such a silence."""
_MAX_REPEATS = 1 << 18
"""Upper bound on the repeats kept; beyond it, those answered since are dropped."""


ECN = {"agreed": 1, "reports": 2}
"""A SYN/ACK that accepts ECN, and ACKs that report a mark (ECE): RFC 3168."""


def _ecn(flags: str) -> int:
    """Return the bit of `ECN` for these flags, or 0. With AE the flags are a counter (accurate ECN, RFC 9768)."""
    words = {flag.strip() for flag in flags.split(",")}
    if "AE" in words:
        return 0
    if "SYN" in words:
        return ECN["agreed"] if {"ACK", "ECE"} <= words and "CWR" not in words else 0
    return ECN["reports"] if "ECE" in words and "RST" not in words else 0


def _none() -> Array:
    return np.zeros(0, np.int64)


@dataclass
class Silence:
    """A long time without packets, with the packets `near` it; `index_before` is the last of them before it."""

    gap_ns: int
    position: int
    near: dict[str, Array]
    index_before: int

    @property
    def begin(self) -> int:
        """The time of the last packet before it, in ns."""
        return int(self.near["time"][self.index_before])

    @property
    def is_complete(self) -> bool:
        """Whether all packets needed after it were added."""
        return len(self.near["time"]) - self.index_before >= NEARBY


class Segments:
    """What findings need of a capture's events; `add` takes them in frame order."""

    def __init__(self, again: Callable[[], Iterable[pa.Table]]):
        self.again = again
        """Returns all events again, in pieces."""
        self.count = 0
        self._delayed_acks: list[tuple[Array, ...]] = []
        self._silences: list[Silence] = []
        self._recent: deque[dict[str, Array]] = deque()
        self._last: dict[str, Array] = {}
        self._repeats: list[tuple[Array, ...]] = []
        self._stuck: Array = _none()
        self._probed: list[Array] = []
        self._noted: dict[str, list[tuple[Array, Array, Array]]] = {}
        self.opens = Opens()
        """How connections began."""

    @classmethod
    def of(cls, events: pa.Table) -> Segments:
        """Collect from a whole table."""
        segments = cls(lambda: [events])
        for _, rows in arrays.sliced(events):
            segments.add(rows)
        return segments

    def data(self) -> dict[str, Array]:
        """Return the columns DATA of every segment with payload."""
        columns: dict[str, list[Array]] = {name: [] for name in DATA}
        for events in self.again():
            rows = np.flatnonzero(arrays.numbers(events, "len") > 0)
            for name in DATA:
                columns[name].append(arrays.numbers(events, name)[rows])
        return {name: np.concatenate(parts) if parts else np.zeros(0, np.int64) for name, parts in columns.items()}

    def of_streams(self, streams: Array) -> pa.Table:
        """Return the columns COURSE of all events of these streams."""
        tables = []
        for events in self.again():
            rows = np.flatnonzero(np.isin(arrays.numbers(events, "stream"), streams))
            tables.append(events.select(COURSE).take(arrays.column(rows)))
        return pa.concat_tables(tables)

    def stuck(self) -> Array:
        """Return the streams with STUCK_REPEATS or more repeats of the same bytes over `stuck_ms` or more."""
        parts = [self._stuck, *([self._stuck_now()] if self._repeats else [])]
        return np.unique(np.concatenate(parts))

    def probed(self) -> Array:
        """Return the streams on which one side may have sent PROBES or more keep-alive probes."""
        if not self._probed:
            return _none()
        key, often = np.unique(np.concatenate(self._probed), return_counts=True)
        return np.unique(key[often >= PROBES] >> 1)

    def _stuck_now(self) -> Array:
        key, time, _, _, seq = (np.concatenate(column) for column in zip(*self._repeats, strict=True))
        order = np.lexsort((time, seq, key))
        key, time, seq = key[order], time[order], seq[order]
        first = np.flatnonzero(np.r_[True, (key[1:] != key[:-1]) | (seq[1:] != seq[:-1])])
        last = np.r_[first[1:], len(key)] - 1
        is_stuck = (last - first + 1 >= STUCK_REPEATS) & (time[last] - time[first] >= LIMITS["stuck_ms"] * NS_PER_MS)
        return key[first[is_stuck]] >> 1

    def add(self, events: pa.Table) -> None:
        """Keep what matters of the next events."""
        if not events.num_rows:
            return
        columns = {name: arrays.numbers(events, name) for name in COLUMNS if name != "flags"}
        self.opens.add(columns, *arrays.codes(events, "flags"))
        self._take_delayed_acks(columns)
        self._take_silences(columns)
        self._take_repeats(columns)
        is_apart = np.nan_to_num(columns["time_delta_ms"].astype(float)) >= PROBES_MS
        rows = np.flatnonzero(is_apart & (columns["len"] <= 1))
        if len(rows):
            self._probed.append(columns["stream"][rows].astype(np.int64) * 2 + columns["from_client"][rows])
        self._note(columns, *arrays.codes(events, "flags"))
        self.count += events.num_rows

    def _note(self, columns: dict[str, Array], flags: Array, names: list[str]) -> None:
        """Count zero windows and ECN packets by stream and side."""
        ecn = np.array([_ecn(name) for name in names] or [0], np.uint8)[flags] if len(flags) else _none()
        marks = {"zero_window": columns["zero_window"].astype(bool)}
        marks |= {word: ecn & bit != 0 for word, bit in ECN.items()} if ecn.any() else {}
        for word, is_marked in marks.items():
            rows = np.flatnonzero(is_marked)
            if len(rows):
                key = columns["stream"][rows].astype(np.int64) * 2 + columns["from_client"][rows]
                keys, first, often = np.unique(key, return_index=True, return_counts=True)
                self._noted.setdefault(word, []).append((keys, columns["frame"][rows[first]], often))

    def noted(self, word: str) -> tuple[Array, Array, Array]:
        """Return keys (2 * stream, + 1 for the client), first frames and counts of "zero_window" or a word of ECN."""
        parts = self._noted.get(word)
        if not parts:
            return _none(), _none(), _none()
        key, frame, often = (np.concatenate(column) for column in zip(*parts, strict=True))
        keys, first, back = np.unique(key, return_index=True, return_inverse=True)
        return keys, frame[first], np.bincount(back.ravel(), often).astype(np.int64)

    def _take_delayed_acks(self, columns: dict[str, Array]) -> None:
        hold = columns["ack_hold_ms"]
        rows = np.flatnonzero((hold >= LIMITS["held_ms"]) & (hold <= LIMITS["held_most_ms"]) & (columns["len"] == 0))
        if len(rows):
            names = ("ack_hold_ms", "frame", "stream", "from_client")
            self._delayed_acks.append(tuple(columns[name][rows] for name in names))
        released = columns["release_frame"].astype(float)
        released = released[~np.isnan(released)].astype(np.uint64)
        # a held ACK precedes the segment that it released, so that the others remain
        if len(released) and self._delayed_acks:
            acks = [np.concatenate(column) for column in zip(*self._delayed_acks, strict=True)]
            for_nobody = ~np.isin(acks[1], released)
            self._delayed_acks = [tuple(column[for_nobody] for column in acks)]

    def held(self) -> tuple[Array, Array, Array, Array]:
        """Return the held ACKs that released no segment: hold in ms, frame, stream, and whether the client sent it."""
        if not self._delayed_acks:
            none = np.zeros(0, np.int64)
            return none.astype(float), none, none, none.astype(bool)
        ms, frame, stream, by_client = (np.concatenate(column) for column in zip(*self._delayed_acks, strict=True))
        return ms, frame, stream, by_client

    def _take_silences(self, columns: dict[str, Array]) -> None:
        for silence in self._silences:
            if not silence.is_complete:
                missing = NEARBY - (len(silence.near["time"]) - silence.index_before)
                silence.near = {
                    column: np.concatenate([silence.near[column], columns[column][:missing]]) for column in _NEAR
                }
        time = columns["time"]
        last_time = self._recent[-1]["time"][-1:] if self._recent else time[:0]
        gaps = np.diff(np.concatenate([last_time, time]))
        long_gaps = np.flatnonzero(gaps >= LIMITS["clock_ahead_ns"])
        long_gaps = long_gaps[np.argsort(-gaps[long_gaps], kind="stable")][:MAX_JUMPS]
        self._recent.append({column: columns[column] for column in _NEAR})
        if len(long_gaps):
            self._keep(gaps, long_gaps.tolist(), len(last_time))
        counts = [len(batch["time"]) for batch in self._recent]
        while len(counts) > 1 and sum(counts[1:]) > NEARBY:
            del counts[0]
            self._recent.popleft()

    def _keep(self, gaps: Array, long_gaps: list[int], offset: int) -> None:
        """Keep the longest silences so far, each with the packets near it."""
        silence_at = {silence.position: silence for silence in self._silences}
        gap_at = {silence.position: silence.gap_ns for silence in self._silences}
        gap_at |= {self.count - offset + index: int(gaps[index]) for index in long_gaps}
        longest = sorted(gap_at, key=lambda position: (-gap_at[position], position))[:MAX_JUMPS]
        recent = {column: np.concatenate([batch[column] for batch in self._recent]) for column in _NEAR}
        begin = self.count + len(self._recent[-1]["time"]) - len(recent["time"])
        for position in longest:
            if position not in silence_at:
                first = max(0, position - NEARBY, begin)
                near = {column: recent[column][first - begin : position + NEARBY - begin].copy() for column in _NEAR}
                silence_at[position] = Silence(gap_at[position], position, near, position - first)
        self._silences = [silence_at[position] for position in longest]

    def silences(self) -> list[Silence]:
        """Return the longest silences, in order of time."""
        return sorted(self._silences, key=lambda silence: silence.position)

    def _take_repeats(self, columns: dict[str, Array]) -> None:
        side = columns["from_client"].astype(np.int64)
        key = columns["stream"].astype(np.int64) * 2 + side
        size = int(key.max()) + 1
        for name in ("time", "frame"):
            values = self._last.get(name, np.zeros(0, np.int64))
            if len(values) < size:
                values = spill.extended(values, max(size, 2 * len(values)))
            values[key] = columns[name]  # of several the last one stays
            self._last[name] = values
        rows = np.flatnonzero(columns["retransmission"].astype(bool) & (columns["len"] > 0))
        if len(rows):
            frame, ack = columns["frame"][rows].astype(np.int64), columns["ack"][rows].astype(float)
            seq = columns["seq"][rows].astype(np.int64)
            self._repeats.append((key[rows], columns["time"][rows], frame, ack, seq))
        if sum(len(repeats[0]) for repeats in self._repeats) > _MAX_REPEATS:
            self._stuck = np.unique(np.concatenate([self._stuck, self._stuck_now()]))
            self._repeats = [self._unanswered()]

    def _unanswered(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return the repeats after the receiver's last packet, if it sent any."""
        key, time, frame, ack, seq = (np.concatenate(column) for column in zip(*self._repeats, strict=True))
        last = self._last["frame"]
        peer = key ^ 1
        newest = np.where(peer < len(last), last[np.minimum(peer, len(last) - 1)], 0)
        is_unanswered = (frame > newest) & (newest > 0)
        return key[is_unanswered], time[is_unanswered], frame[is_unanswered], ack[is_unanswered], seq[is_unanswered]

    def gone(self, streams: Array) -> list[tuple[int, bool, int, int, int, int]]:
        """Find sides of these streams that sent nothing more while the other side repeated its data.

        Returns stream, whether the silent side is the client, its last frame and the time of it, the number of repeats
        after it and the time of the last one; by stream, the client first.
        """
        if not self._repeats:
            return []
        key, time, _, ack, _ = self._unanswered()
        is_wanted = np.isin(key >> 1, streams)
        key, time, ack = key[is_wanted], time[is_wanted], ack[is_wanted]
        order = np.argsort(key, kind="stable")
        key, time, ack = key[order], time[order], ack[order]
        starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else key
        silent_sides = []
        for rows in np.split(np.arange(len(key)), starts[1:]) if len(key) else []:
            if len(np.unique(ack[rows])) > 1:
                continue  # its ACKs advance: the silent side sends, but was not captured
            silent = int(key[rows[0]]) ^ 1
            last_packet = int(self._last["frame"][silent]), int(self._last["time"][silent])
            silent_sides.append((silent >> 1, bool(silent & 1), *last_packet, len(rows), int(time[rows[-1]])))
        return sorted(silent_sides, key=lambda row: (row[0], not row[1]))


class HasSegments(Mapping[str, "pa.Table"]):
    """Tables with `Segments` that are made once, and with the frames of causes."""

    segments: Segments

    def frames(self, cause: int) -> list[int]:
        """Return the frames that this row of "causes" names."""
        return self["causes"]["evidence"][cause].as_py()


def segments(tables: Mapping[str, pa.Table]) -> Segments | None:
    """Return the segments of these tables; None without events."""
    if isinstance(tables, HasSegments):
        return tables.segments
    return Segments.of(tables["events"]) if "events" in tables else None
