"""How connections began: collects SYNs, their answers, RSTs and first bytes from rows of "events".

Returns an `Opened` for each stream with a captured SYN. Why a SYN was not answered is left to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays
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
        import numpy as np

        if self.count >= MAX_PACKETS or not len(flags):
            return
        known = np.array([_bits(word) for word in words] or [0], np.uint8)
        bits = known[flags]
        # sequence numbers are relative: the SYN has 0, and the first byte 1
        first = (columns["seq"] == 1) & (columns["len"] > 0)
        more = (columns["seq"] > 1) & (columns["seq"] <= GREETING_BYTES) & (columns["len"] > 0)
        more &= ~columns["from_client"].astype(bool)
        rows = np.flatnonzero((bits & (SYN | RST) != 0) | first | more)
        if not len(rows):
            return
        mine = bits[rows] | (first[rows] * np.uint8(DATA)) | (more[rows] * np.uint8(MORE))
        mine |= columns["from_client"][rows].astype(np.uint8) * np.uint8(CLIENT)
        stamps = columns["tsval"][rows].astype(float)
        self._parts.append((
            columns["stream"][rows].astype(np.int64), columns["time"][rows].astype(np.int64),
            columns["frame"][rows].astype(np.int64), np.where(np.isnan(stamps), -1, stamps).astype(np.int64), mine,
        ))  # fmt: skip
        self.count += len(rows)

    def by_stream(self) -> dict[str, Array]:
        """Return all rows as the columns NAMES, sorted by stream and frame."""
        import numpy as np

        if not self._parts:
            return {name: np.zeros(0, np.int64) for name in NAMES}
        columns = [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]
        order = np.lexsort((columns[2], columns[0]))
        return {name: column[order] for name, column in zip(NAMES, columns, strict=True)}


def _bits(word: str) -> int:
    found = {part.strip() for part in word.split(",")}
    bits = (SYN if "SYN" in found else 0) | (ACK if "ACK" in found else 0) | (RST if "RST" in found else 0)
    return bits | (ECN if {"ECE", "CWR"} <= found else 0)


def begun(rows: dict[str, Array], only: Array | None = None) -> list[Opened]:
    """Return how each stream began whose first packet is a client's SYN; `only` limits them to these streams."""
    import numpy as np

    stream = rows["stream"]
    if not len(stream):
        return []
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1]])
    ends = np.r_[edges[1:], len(stream)]
    wanted = rows["bits"][edges] & (SYN | ACK | CLIENT) == (SYN | CLIENT)
    if only is not None:
        wanted &= np.isin(stream[edges], only)
    return [_one(rows, a, b) for a, b in zip(edges[wanted].tolist(), ends[wanted].tolist(), strict=True)]


def _one(rows: dict[str, Array], first: int, end: int) -> Opened:
    syns: list[int] = []
    answered = answer_frame = refused = gave_up = spoke = line = client_spoke = None
    server_first = False
    bits, times = rows["bits"][first:end].tolist(), rows["time"][first:end].tolist()
    for at, (bit, time) in enumerate(zip(bits, times, strict=True)):
        by_client = bool(bit & CLIENT)
        if bit & SYN and not bit & ACK and by_client and answered is None:
            syns.append(at)
        elif bit & SYN and bit & ACK and not by_client and answered is None:
            answered, answer_frame = time, int(rows["frame"][first + at])
        elif bit & RST and answered is None:
            refused, gave_up = (refused, gave_up or time) if by_client else (refused or time, gave_up)
        elif bit & (DATA | MORE):
            if bit & DATA and spoke is None:
                spoke, server_first = time, not by_client
            if by_client:
                client_spoke = client_spoke or time
            elif client_spoke is None:
                line = time
    frame, stamp = rows["frame"], rows["tsval"]
    return Opened(
        int(rows["stream"][first]), tuple(times[at] for at in syns), tuple(int(frame[first + at]) for at in syns),
        tuple(int(stamp[first + at]) for at in syns), tuple(bool(bits[at] & ECN) for at in syns),
        answered, answer_frame, refused, gave_up, spoke, server_first,
        line, client_spoke,
    )  # fmt: skip


def late(rows: dict[str, Array], ms: float) -> Array:
    """Return the streams with repeated SYNs, without exactly one SYN-ACK, or with a first byte after `ms` or more."""
    import numpy as np

    stream, time, bits = rows["stream"], rows["time"], rows["bits"]
    if not len(stream):
        return stream
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1]])
    syn = (bits & (SYN | ACK | CLIENT) == (SYN | CLIENT)).astype(np.int64)
    answer = (bits & (SYN | ACK) == (SYN | ACK)).astype(np.int64)
    many, answers = np.add.reduceat(syn, edges), np.add.reduceat(answer, edges)
    data = np.where(bits & DATA != 0, time, 0)
    spoke = np.maximum.reduceat(data, edges)
    slow = (spoke > 0) & (spoke - time[edges] >= ms * NS_PER_MS)
    which: Array = stream[edges][(many > 0) & ((many > 1) | (answers != 1) | slow)]
    return arrays.distinct(which)
