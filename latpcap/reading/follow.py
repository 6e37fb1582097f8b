"""Reassembles the payload of one stream as Wireshark's "Follow TCP Stream" does, with the frame of each piece.

Reads the capture a second time. Each byte is returned once, as it was first captured, with a hole where the other end
acknowledged bytes that are not in the capture. Where the keys of its TLS are known, plain text replaces the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from latpcap.errors import NoSuchRowError
from latpcap.format import endpoint
from latpcap.lazy import pc

if TYPE_CHECKING:
    from latpcap import _core
    from latpcap.options import TableName
    from latpcap.reading.rereadable import Recorded

MODES = ("text", "hex", "raw")
_TSHARK = {"text": "ascii", "hex": "hex", "raw": "raw"}
_ACK, _SYN = 0x10, 0x02
"""Flags of TCP."""
_RULE = "=" * 67
_PRINTED = bytes(b if 32 <= b < 127 or b in b"\r\n" else ord(".") for b in range(256))
_SHOWN = bytes(b if 32 <= b < 127 else ord(".") for b in range(256))


class Chunk(NamedTuple):
    """The bytes that a frame added to the stream.

    `node` is 0 for the sender of the stream's first segment, 1 for its peer; `at` counts that node's bytes from 0,
    holes included. `data` are the new bytes; `lost` how many more there were: cut off by the snap length, or, with no
    data, missing in the capture (`frame` is then the frame that acknowledged them).
    """

    frame: int
    node: int
    at: int
    data: bytes
    lost: int = 0

    @property
    def missing(self) -> bool:
        """Whether this is a hole in the capture."""
        return not self.data and self.lost > 0


class Segment(NamedTuple):
    """A segment from the core; numbers are relative and unwrapped, `length` is by the IP header."""

    frame: int
    from_first: bool
    seq: int
    ack: int
    flags: int
    length: int
    payload: bytes


@dataclass
class _Side:
    """One direction: the next byte, and early segments by sequence number and by arrival (heaps)."""

    next: int | None = None
    first: int = 0
    early: list[tuple[int, int, Segment]] = field(default_factory=list)
    ready: list[tuple[int, Segment]] = field(default_factory=list)
    arrivals: int = 0

    def wait(self, segment: Segment) -> None:
        """Keep a segment that came early."""
        self.arrivals += 1
        heappush(self.early, (segment.seq, self.arrivals, segment))


def chunks(segments: Iterable[Segment]) -> Iterator[Chunk]:
    """Yield the pieces of new bytes in the order in which the receivers read them."""
    sides = (_Side(), _Side())
    for segment in segments:
        node = 0 if segment.from_first else 1
        if segment.flags & _ACK:
            yield from _acknowledged(sides[1 - node], 1 - node, segment)
        yield from _arrived(sides[node], node, segment)


def _acknowledged(side: _Side, node: int, by: Segment) -> Iterator[Chunk]:
    """Report a hole for bytes that the peer acknowledged but the capture lacks, and go on after it."""
    while side.next is not None and side.early:
        lowest = side.early[0][0]
        if lowest >= by.ack:
            return
        yield Chunk(by.frame, node, side.next - side.first, b"", lowest - side.next)
        side.next = lowest
        yield from _in_turn(side, node)


def _arrived(side: _Side, node: int, segment: Segment) -> Iterator[Chunk]:
    begin = segment.seq + (1 if segment.flags & _SYN else 0)
    if side.next is None:
        side.next = side.first = begin
    if begin > side.next:
        if segment.payload:
            side.wait(segment._replace(seq=begin))
        return
    yield from _new_part(side, node, segment._replace(seq=begin), segment.length)
    yield from _in_turn(side, node)


def _new_part(side: _Side, node: int, segment: Segment, length: int) -> Iterator[Chunk]:
    """Yield the new bytes of a segment; none for a retransmission whose new bytes were not captured."""
    next_seq = side.next or 0
    end = segment.seq + length
    data = segment.payload[next_seq - segment.seq : length]
    if end <= next_seq or (segment.seq < next_seq and not data):
        return
    side.next = end
    if data:
        yield Chunk(segment.frame, node, next_seq - side.first, data, end - next_seq - len(data))


def _in_turn(side: _Side, node: int) -> Iterator[Chunk]:
    """Yield the early segments that are next, in order of arrival."""
    while side.next is not None:
        while side.early and side.early[0][0] <= side.next:
            _, arrival, segment = heappop(side.early)
            heappush(side.ready, (arrival, segment))
        if not side.ready:
            return
        _, segment = heappop(side.ready)
        yield from _new_part(side, node, segment, len(segment.payload))


class Follow:
    """The payload of a stream. `chunks` are in the order of the bytes; text, hex and raw are as tshark prints them.

    `nodes` are the two ends, "address:port", the sender of the first segment first.
    """

    def __init__(self, stream: int, nodes: tuple[str, str], chunks: list[Chunk]):
        self.stream = stream
        self.nodes = nodes
        self.chunks = chunks

    def payload(self, node: int) -> bytes:
        """Return the bytes of one node in order, without holes and without bytes cut by the snap length.

        `node` is 0 or 1, as in `nodes`; IndexError for another.
        """
        if node not in (0, 1):
            raise NoSuchRowError(f"no node {node}: 0 is {self.nodes[0]}, 1 is {self.nodes[1]}")
        return b"".join(chunk.data for chunk in self.chunks if chunk.node == node)

    @property
    def lost(self) -> int:
        """Number of bytes that are missing, in holes or beyond the snap length."""
        return sum(chunk.lost for chunk in self.chunks)

    def text(self, *, frames: bool = False) -> str:
        """Return the whole payload as text, other bytes as dots, as `tshark -q -z follow,tcp,ascii,N` prints it.

        With `frames` a line before each piece has the frame that brought it, and its place in the sender's bytes.
        """
        return self._shown("text", frames, _as_text)

    def hex(self, *, frames: bool = False) -> str:
        """Return a hex dump with the offsets of each side, as `follow,tcp,hex,N` prints it."""
        return self._shown("hex", frames, _as_hex)

    def raw(self, *, frames: bool = False) -> str:
        """Return hex digits for another program, a line per piece, as `follow,tcp,raw,N` prints them."""
        return self._shown("raw", frames, lambda chunk, at: f"{_tab(chunk)}{_shown_bytes(chunk).hex()}\n")

    def _shown(self, mode: str, frames: bool, show: Callable[[Chunk, int], str]) -> str:
        lines = [
            f"\n{_RULE}\nFollow: tcp,{_TSHARK[mode]}\nFilter: tcp.stream eq {self.stream}\n",
            f"Node 0: {self.nodes[0]}\nNode 1: {self.nodes[1]}\n",
        ]
        at = [0, 0]
        for chunk in self.chunks:
            if frames:
                lines.append(_head(chunk))
            if not (frames and chunk.missing):
                lines.append(show(chunk, at[chunk.node]))
            at[chunk.node] += len(_shown_bytes(chunk))
        return "".join([*lines, f"{_RULE}\n"])

    def __str__(self) -> str:
        return self.text(frames=True)

    def __repr__(self) -> str:
        volumes = ", ".join(f"{name} sent {len(self.payload(node)):,} bytes" for node, name in enumerate(self.nodes))
        lost = f"; {self.lost:,} bytes are not in the capture" if self.lost else ""
        return f"tcp.stream {self.stream}: {volumes} in {len(self.chunks):,} pieces{lost}"

    def _repr_html_(self) -> str:
        from latpcap.tables import card

        return card(repr(self), str(self))


def _tab(chunk: Chunk) -> str:
    return "\t" if chunk.node else ""


def _head(chunk: Chunk) -> str:
    if chunk.missing:
        return f"# node {chunk.node}: {chunk.lost:,} bytes missing before frame {chunk.frame:,} acknowledged them\n"
    cut = f", {chunk.lost:,} more cut off" if chunk.lost else ""
    last = chunk.at + len(chunk.data) - 1
    return f"# frame {chunk.frame:,}, node {chunk.node}, bytes {chunk.at:,}-{last:,}{cut}\n"


def _shown_bytes(chunk: Chunk) -> bytes:
    """Return the bytes of a chunk; of a hole Wireshark's text, which ends with a zero byte there."""
    return f"[{chunk.lost} bytes missing in capture file]\0".encode() if chunk.missing else chunk.data


def _as_text(chunk: Chunk, at: int) -> str:
    data = _shown_bytes(chunk)
    return f"{_tab(chunk)}{len(data)}\n{data.translate(_PRINTED).decode('ascii')}\n"


def _as_hex(chunk: Chunk, offset: int) -> str:
    data = _shown_bytes(chunk)
    lines = []
    for begin in range(0, len(data), 16):
        row = data[begin : begin + 16]
        digits = [f"{byte:02x}" for byte in row]
        letters = row.translate(_SHOWN).decode("ascii")
        left, right = " ".join(digits[:8]), " ".join(digits[8:])
        shown = f"{letters[:8]} {letters[8:]}" if len(letters) >= 8 else letters
        lines.append(f"{_tab(chunk)}{offset + begin:08X}  {left:<23}  {right:<23}  {shown}".removesuffix(" ") + "\n")
    return "".join(lines)


def follow(capture: Recorded, stream: int) -> Follow:
    """Return the payload of a stream. Reads the whole capture again; CaptureError if it cannot be read twice."""

    def first(table: TableName) -> dict[str, Any] | None:
        rows = capture.unfiltered.arrow(table)
        return next(iter(rows.filter(pc.equal(rows["stream"], stream)).slice(0, 1).to_pylist()), None)

    if event := first("events"):
        nodes = (endpoint(event["src"], event["sport"]), endpoint(event["dst"], event["dport"]))
    else:  # the TCP header of its only packet is damaged
        row = first("streams") or {}
        nodes = (endpoint(row["client"], row["client_port"]), endpoint(row["server"], row["server_port"]))
    segments = capture.segments(stream)
    pieces = list(chunks(Segment(*fields) for fields in segments))
    return Follow(stream, nodes, _plain(pieces, segments.decryption()))


def _plain(pieces: list[Chunk], decryption: _core.Decryption | None) -> list[Chunk]:
    """Return the chunks with TLS decrypted; as they are where none of it opens."""
    if decryption is None:
        return pieces
    at = [0, 0]
    plain = []
    for chunk in pieces:
        for frame, from_first, data, lost in decryption.feed(chunk.frame, chunk.node == 0, chunk.data, chunk.lost):
            node = 0 if from_first else 1
            plain.append(Chunk(frame, node, at[node], data, lost))
            at[node] += len(data) + lost
    return plain if decryption.opened else pieces
