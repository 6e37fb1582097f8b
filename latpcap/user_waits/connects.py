"""How connections began: collects SYNs, their answers, RSTs and first bytes from rows of "events".

Returns an `Opened` for each stream with a captured SYN. Why a SYN was not answered is left to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.lazy import np
from latpcap.tables import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latpcap.arrays import Array

SYN, ACK, RST, ECN, DATA, CLIENT, MORE = 1, 2, 4, 8, 16, 32, 64
MAX_PACKETS = 1 << 19
"""Upper bound on the packets kept; how later connections began is not known."""
GREETING_BYTES = 512
"""Upper bound on the bytes of a greeting; later bytes of a server answer something."""
REPLY_SHARE = 0.25
"""A client that waited for a greeting's last line replies within this share of that wait."""
NAMES = ("stream", "time", "frame", "tsval", "bits")


@dataclass(frozen=True, slots=True)
class Opened:
    """How one stream began. Instants are in ns, and None if there is no such packet.

    - `syns`: the client's SYNs; `frames`, `stamps` (TSval, -1 without one) and `ecn` (whether offered) of each.
    - `answered`: the first SYN-ACK; `refused`, `gave_up`: an RST of the server or the client before it.
    - `spoke`: the first data byte; `server_first`: whether the server sent it.
    - `line`: the server's last segment before `client_spoke`, the client's first data byte.
    """

    stream: int
    syns: tuple[int, ...]
    frames: tuple[int, ...]
    stamps: tuple[int, ...]
    ecn: tuple[bool, ...]
    answered: int | None
    answer_frame: int | None
    refused: int | None
    gave_up: int | None
    spoke: int | None
    server_first: bool
    line: int | None = None
    client_spoke: int | None = None

    @property
    def has_no_reply(self) -> bool:
        """Whether repeated SYNs met neither a SYN-ACK nor a server's RST."""
        return self.answered is None and self.refused is None and len(self.syns) > 1

    @property
    def settled(self) -> int:
        """The first SYN-ACK; without one, the last SYN."""
        return self.syns[-1] if self.answered is None else self.answered

    def ms_until(self, instant: int) -> float:
        """Return the time from the first SYN to an instant."""
        return (instant - self.syns[0]) / NS_PER_MS

    @property
    def greeted(self) -> int | None:
        """When the greeting was complete; None if the server does not send first.

        That is the last line if the client replies at once to it, else the first line.
        """
        if not self.server_first or self.spoke is None or self.line is None or self.client_spoke is None:
            return self.spoke if self.server_first else None
        return self.line if self.client_spoke - self.line <= REPLY_SHARE * (self.line - self.spoke) else self.spoke


class Opens:
    """Collects the packets with which connections begin; `add` takes events in frame order."""

    def __init__(self) -> None:
        self._parts: list[tuple[Array, ...]] = []
        self.count = 0

    def add(self, columns: Mapping[str, Array], flags: Array, words: Sequence[str]) -> None:
        """Keep the relevant packets of these events. `flags` are codes of `words`."""
        if self.count >= MAX_PACKETS or not len(flags):
            return
        bits_of_word = np.array([_bits(word) for word in words] or [0], np.uint8)
        bits = bits_of_word[flags]
        # sequence numbers are relative: the SYN has 0, and the first byte 1
        is_first_byte = (columns["seq"] == 1) & (columns["len"] > 0)
        is_more = (columns["seq"] > 1) & (columns["seq"] <= GREETING_BYTES) & (columns["len"] > 0)
        is_more &= ~columns["from_client"].astype(bool)
        rows = np.flatnonzero((bits & (SYN | RST) != 0) | is_first_byte | is_more)
        if not len(rows):
            return
        kept_bits = bits[rows] | (is_first_byte[rows] * np.uint8(DATA)) | (is_more[rows] * np.uint8(MORE))
        kept_bits |= columns["from_client"][rows].astype(np.uint8) * np.uint8(CLIENT)
        stamps = columns["tsval"][rows].astype(float)
        self._parts.append((
            columns["stream"][rows].astype(np.int64), columns["time"][rows].astype(np.int64),
            columns["frame"][rows].astype(np.int64), np.where(np.isnan(stamps), -1, stamps).astype(np.int64), kept_bits,
        ))  # fmt: skip
        self.count += len(rows)

    def by_stream(self) -> dict[str, Array]:
        """Return all rows as the columns NAMES, sorted by stream and frame."""
        if not self._parts:
            return {name: np.zeros(0, np.int64) for name in NAMES}
        columns = [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]
        order = np.lexsort((columns[2], columns[0]))
        return {name: column[order] for name, column in zip(NAMES, columns, strict=True)}


def _bits(word: str) -> int:
    flags = {flag.strip() for flag in word.split(",")}
    bits = (SYN if "SYN" in flags else 0) | (ACK if "ACK" in flags else 0) | (RST if "RST" in flags else 0)
    return bits | (ECN if {"ECE", "CWR"} <= flags else 0)


def opened_streams(rows: dict[str, Array], wanted_streams: Array | None = None) -> list[Opened]:
    """Return how each stream began whose first packet is a client's SYN; `wanted_streams` limits them."""
    stream = rows["stream"]
    if not len(stream):
        return []
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1]])
    ends = np.r_[edges[1:], len(stream)]
    is_wanted = rows["bits"][edges] & (SYN | ACK | CLIENT) == (SYN | CLIENT)
    if wanted_streams is not None:
        is_wanted &= np.isin(stream[edges], wanted_streams)
    spans = zip(edges[is_wanted].tolist(), ends[is_wanted].tolist(), strict=True)
    return [_opened(rows, first, end) for first, end in spans]


def _opened(rows: dict[str, Array], first: int, end: int) -> Opened:
    """Return how the stream of the rows from `first` to `end` began. An instant may be 0."""
    syns: list[int] = []
    answered = answer_frame = refused = gave_up = first_data = last_line = client_spoke = None
    server_first = False
    bits, times = rows["bits"][first:end].tolist(), rows["time"][first:end].tolist()
    for i, (packet_bits, time) in enumerate(zip(bits, times, strict=True)):
        is_by_client = bool(packet_bits & CLIENT)
        if packet_bits & SYN and not packet_bits & ACK and is_by_client and answered is None:
            syns.append(i)
        elif packet_bits & SYN and packet_bits & ACK and not is_by_client and answered is None:
            answered, answer_frame = time, int(rows["frame"][first + i])
        elif packet_bits & RST and answered is None:
            if is_by_client:
                gave_up = time if gave_up is None else gave_up
            else:
                refused = time if refused is None else refused
        elif packet_bits & (DATA | MORE):
            if packet_bits & DATA and first_data is None:
                first_data, server_first = time, not is_by_client
            if client_spoke is None and is_by_client:
                client_spoke = time
            elif client_spoke is None:
                last_line = time
    frame, stamp = rows["frame"], rows["tsval"]
    return Opened(
        int(rows["stream"][first]), tuple(times[i] for i in syns), tuple(int(frame[first + i]) for i in syns),
        tuple(int(stamp[first + i]) for i in syns), tuple(bool(bits[i] & ECN) for i in syns),
        answered, answer_frame, refused, gave_up, first_data, server_first,
        last_line, client_spoke,
    )  # fmt: skip


def late_streams(rows: dict[str, Array], ms: float) -> Array:
    """Return the streams with repeated SYNs, without exactly one SYN-ACK, or with a first byte after `ms` or more.

    Of the first bytes of both sides the later one counts.
    """
    stream, time, bits = rows["stream"], rows["time"], rows["bits"]
    if not len(stream):
        return stream
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1]])
    is_syn = (bits & (SYN | ACK | CLIENT) == (SYN | CLIENT)).astype(np.int64)
    is_answer = (bits & (SYN | ACK) == (SYN | ACK)).astype(np.int64)
    syn_counts, answer_counts = np.add.reduceat(is_syn, edges), np.add.reduceat(is_answer, edges)
    first_times = np.repeat(time[edges], np.diff(np.r_[edges, len(stream)]))
    is_late_byte = (bits & DATA != 0) & (time - first_times >= ms * NS_PER_MS)
    is_slow = np.logical_or.reduceat(is_late_byte, edges)
    late_numbers: Array = stream[edges][(syn_counts > 0) & ((syn_counts > 1) | (answer_counts != 1) | is_slow)]
    return arrays.distinct(late_numbers)
