"""How did connections begin? Rows of `events` in, as they come: SYNs, their answers, RSTs, first bytes; an `Opened` for
each stream of which a SYN is there, out.

It knows when which packet passed, and neither why one was not answered nor what else a client tried.
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
"""So many packets are kept; how the connections after them began is not known."""
GREETING_BYTES = 512
"""A greeting is no longer: what a server sends behind it answers something."""
AT_ONCE = 0.25
"""A client that waited for the last line of a greeting speaks within this share of that wait."""
NAMES = ("stream", "time", "frame", "tsval", "bits")


@dataclass(frozen=True, slots=True)
class Opened:
    """How one stream began. Instants in ns, None where the packet is not there; frames beside them.

    `syns` are the client's; `stamps` their TSvals (-1: none), `ecn` whether they offer it. `answered` is the first
    SYN/ACK, `refused` a RST of the server before it, `gave_up` one of the client's before it. `spoke` is the
    first byte of all, and `server_first` whether the server sent it. `line` is the server's last segment before the
    client's first byte, `client_spoke`.
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
        """When the greeting of a server that speaks first was whole; None where it does not speak first.

        That is its last line where the client speaks right behind it, else its first.
        """
        if not self.server_first or self.spoke is None or self.line is None or self.client_spoke is None:
            return self.spoke if self.server_first else None
        return self.line if self.client_spoke - self.line <= AT_ONCE * (self.line - self.spoke) else self.spoke


class Opens:
    """The packets with which connections begin; `add` takes the next events, in frame order."""

    def __init__(self) -> None:
        self._parts: list[tuple[Array, ...]] = []
        self.count = 0

    def add(self, columns: Mapping[str, Array], flags: Array, words: Sequence[str]) -> None:
        """Takes what matters of them. `flags` are codes of `words`."""
        import numpy as np

        if self.count >= MAX_PACKETS or not len(flags):
            return
        known = np.array([_bits(word) for word in words] or [0], np.uint8)
        bits = known[flags]
        # relative numbers begin at 0 with the SYN: a stream's first byte has 1
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
        """All rows as columns NAMES, ordered by stream, then time."""
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
    """How each stream of these rows began whose first packet here is a client's SYN. `only`: of these streams."""
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
    """Of which streams can the beginning be distinguished: SYNs sent again, no SYN/ACK, or a first byte so late?"""
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
