"""Anonymises packets: replaces addresses and names, masks payload.

Takes the records of TCP segments; returns them with the same times, lengths, sequence numbers, ports and TCP options.
Addresses that share a prefix share one afterwards (Crypto-PAn's property; Fan, Xu, Ammar and Moon 2004), with BLAKE2 as
the keyed function. `masks` masks the payload.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2s
from typing import NamedTuple, Protocol

from latpcap.reading.masks import masked
from latpcap.reading.reread import RAW_LINKS, Record

KEPT_BITS = {4: 3, 16: 8}
"""Leading bits that stay, by an address's bytes, so that no unicast address becomes a multicast one."""
LOOPBACK = {4: bytes([127]), 16: bytes(15) + b"\x01"}
"""The prefix of loopback addresses, by an address's bytes. They name no host, and keep their prefix; addresses that
would get it are mapped to the addresses that become free.
"""
TCP = 6
"""Number of TCP among the protocols above IP."""
_LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789"
_PLAIN_OPTIONS = {2: (4,), 3: (3,), 4: (2,), 5: (10, 18, 26, 34), 8: (10,)}
"""TCP options that stay, with their lengths: MSS, window scale, SACK, timestamps. They identify nobody."""
_MULTIPATH = 30
"""The option of Multipath TCP, of which the kind of message stays (RFC 8684, 3): half a byte."""
_PAD = 1
"""Padding, an option of IPv6's extension headers without meaning (RFC 8200, 4.2)."""


class Names:
    """The replacements under one key: equal names and addresses have equal ones."""

    def __init__(self, key: bytes):
        self._key = blake2s(key).digest()
        self.address = lru_cache(maxsize=None)(self._address)
        self.hardware = lru_cache(maxsize=None)(self._hardware)

    def word(self, name: bytes) -> bytes:
        """Return as many random letters and digits; names that are equal apart from case get equal ones."""
        digest, letters = b"", bytearray()
        for i in range(len(name)):
            if i % 32 == 0:
                digest = blake2s(name.lower() + bytes([i // 32 % 256]), key=self._key).digest()
            letters.append(_LETTERS[digest[i % 32] % len(_LETTERS)])
        return bytes(letters)

    def _address(self, address: bytes) -> bytes:
        home = LOOPBACK[len(address)]
        replacement = self._elsewhere(address)
        if address.startswith(home):
            return home + replacement[len(home) :]
        if replacement.startswith(home):
            return self._elsewhere(home.ljust(len(address), b"\0"))[: len(home)] + replacement[len(home) :]
        return replacement

    def _elsewhere(self, address: bytes) -> bytes:
        bits, length = int.from_bytes(address, "big"), len(address) * 8
        replacement = bits
        for bit in range(KEPT_BITS[len(address)], length):
            prefix = (bits >> (length - bit)).to_bytes(len(address), "big") + bytes([bit])
            replacement ^= (blake2s(prefix, key=self._key, digest_size=1).digest()[0] & 1) << (length - 1 - bit)
        return replacement.to_bytes(len(address), "big")

    def _hardware(self, address: bytes) -> bytes:
        if not any(address):
            return address
        replacement = blake2s(address, key=self._key, digest_size=len(address)).digest()
        return bytes([(replacement[0] & 0xFC) | 0x02 | (address[0] & 1)]) + replacement[1:]


class Layout(NamedTuple):
    """Offsets in a frame: hardware addresses (offset, length), IP header, TCP header, payload and its end."""

    hardware: tuple[tuple[int, int], ...]
    ip: int
    tcp: int
    payload: int
    end: int
    whole: bool
    padded: bool
    """Whether hardware addresses are in fields of 8 bytes."""


def layout(link: int | None, data: bytes) -> Layout | None:
    """Return the offsets of a plain TCP segment; None for others, tunnels, fragments, and frames cut in a header."""
    try:
        hardware, ip = _link(link, data)
        return None if ip is None else _internet(hardware, ip, data, link in (113, 276))
    except (IndexError, struct.error):
        return None


def _link(link: int | None, data: bytes) -> tuple[tuple[tuple[int, int], ...], int | None]:
    if link == 1:
        type_at, ethertype = 12, int.from_bytes(data[12:14], "big")
        while ethertype in (0x8100, 0x88A8, 0x9100):
            type_at += 4
            ethertype = int.from_bytes(data[type_at : type_at + 2], "big")
        return ((0, 6), (6, 6)), type_at + 2 if ethertype in (0x0800, 0x86DD) else None
    if link == 113:
        return ((6, min(data[5], 8)),), 16 if data[14:16] in (b"\x08\x00", b"\x86\xdd") else None
    if link == 276:
        return ((12, min(data[11], 8)),), 20 if data[0:2] in (b"\x08\x00", b"\x86\xdd") else None
    if link in (0, 108):
        return (), 4
    return (), 0 if link in RAW_LINKS else None


def _internet(hardware: tuple[tuple[int, int], ...], ip: int, data: bytes, padded: bool) -> Layout | None:
    """Return where a packet has its addresses and payload; None unless it is unfragmented TCP."""
    version = data[ip] >> 4
    if version == 4:
        header = (data[ip] & 15) * 4
        total, _, fragment = struct.unpack_from(">HHH", data, ip + 2)
        if header < 20 or data[ip + 9] != TCP or fragment & 0x3FFF:
            return None
        tcp, end = ip + header, ip + total if total else len(data)
    elif version == 6:
        (length,) = struct.unpack_from(">H", data, ip + 4)
        following, tcp = data[ip + 6], ip + 40
        while following in (0, 60):
            following, tcp = data[tcp], tcp + (data[tcp + 1] + 1) * 8
        if following != TCP:
            return None
        end = ip + 40 + length if length else len(data)
    else:
        return None
    captured = min(end, len(data))
    payload = tcp + (data[tcp + 12] >> 4) * 4
    if not tcp + 20 <= payload <= end or captured < tcp + 20:
        return None
    return Layout(hardware, ip, tcp, min(payload, captured), captured, end <= len(data), padded)


@dataclass
class _Direction:
    """Bytes of one end of a connection: pieces by their place, and masked."""

    first: int | None = None
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    runs: list[tuple[int, bytes]] = field(default_factory=list)

    def position(self, sequence: int) -> int:
        """Unwrapped, from the first segment; before it, negative."""
        if self.first is None:
            self.first = sequence
        return (sequence - self.first + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000

    def mask(self, protocol: str, from_client: bool, names: Names) -> None:
        """Put the pieces together and mask each run without a hole."""
        together: list[tuple[int, bytearray]] = []
        for offset, piece in sorted(self.pieces, key=lambda piece: piece[0]):
            if together and offset <= together[-1][0] + len(together[-1][1]):
                start, run = together[-1]
                run += piece[max(0, start + len(run) - offset) :]
            else:
                together.append((offset, bytearray(piece)))
        self.runs = [(offset, masked(protocol, bytes(run), from_client, names.word)) for offset, run in together]
        self.pieces = []

    def cut(self, offset: int, length: int) -> bytes:
        """Return the masked bytes of one segment."""
        before = bisect_right(self.runs, offset, key=lambda run: run[0]) - 1
        if before >= 0:
            start, run = self.runs[before]
            if offset + length <= start + len(run):
                return run[offset - start : offset - start + length]
        return bytes(length)


class Speakers(Protocol):
    """Looks up the sender of a frame."""

    def get(self, frame: int) -> tuple[int, bool] | None:
        """Return the stream of a frame, and whether the client sent it; None for a frame without a stream."""

    def protocol(self, stream: int) -> str:
        """Return the protocol of a stream."""


def anonymised(
    read: Iterable[Record], read_again: Iterable[Record], speakers: Speakers, key: bytes
) -> Iterator[Record]:
    """Yield the records anonymised; frames that are not a plain TCP segment are left out.

    `read` and `read_again` are the same records, read twice: payload is put together before it is masked, and held
    meanwhile. `speakers` knows who sent each frame.
    """
    names = Names(key)
    directions: dict[tuple[int, bool], _Direction] = {}
    for record in read:
        offsets = layout(record.link, record.data)
        if offsets is None or offsets.payload == offsets.end or (speaker := speakers.get(record.frame)) is None:
            continue
        direction = directions.setdefault(speaker, _Direction())
        position = direction.position(_sequence(record.data, offsets))
        direction.pieces.append((position, record.data[offsets.payload : offsets.end]))
    for (stream, from_client), direction in directions.items():
        direction.mask(speakers.protocol(stream), from_client, names)
    for record in read_again:
        offsets = layout(record.link, record.data)
        if offsets is not None and (speaker := speakers.get(record.frame)) is not None:
            payload = b""
            if offsets.payload < offsets.end:
                direction = directions[speaker]
                position = direction.position(_sequence(record.data, offsets))
                payload = direction.cut(position, offsets.end - offsets.payload)
            yield record._replace(data=_rewritten(record.data, offsets, payload, names))


def _sequence(data: bytes, offsets: Layout) -> int:
    """Return the number of the segment's first payload byte: a SYN takes one itself."""
    number: int = struct.unpack_from(">I", data, offsets.tcp + 4)[0]
    return (number + (data[offsets.tcp + 13] >> 1 & 1)) % 0x1_0000_0000


def _rewritten(data: bytes, offsets: Layout, payload: bytes, names: Names) -> bytes:
    """Return the frame with other addresses and payload. What follows the IP packet (padding) becomes zeros."""
    frame = bytearray(data[: offsets.payload] + payload + bytes(len(data) - offsets.end))
    for offset, length in offsets.hardware:
        frame[offset : offset + length] = names.hardware(bytes(data[offset : offset + length])) if length else b""
        if offsets.padded:
            frame[offset + length : offset + 8] = bytes(8 - length)
    version = data[offsets.ip] >> 4
    size, source = (4, offsets.ip + 12) if version == 4 else (16, offsets.ip + 8)
    for offset in (source, source + size):
        frame[offset : offset + size] = names.address(bytes(data[offset : offset + size]))
    if version == 4:
        # options become padding: a recorded route names hosts
        frame[offsets.ip + 20 : offsets.tcp] = bytes([1]) * (offsets.tcp - offsets.ip - 20)
        frame[offsets.ip + 10 : offsets.ip + 12] = bytes(2)
        frame[offsets.ip + 10 : offsets.ip + 12] = _checksum(frame[offsets.ip : offsets.tcp])
    else:
        frame[offsets.ip + 1 : offsets.ip + 4] = bytes([frame[offsets.ip + 1] & 0xF0, 0, 0])  # the flow label
        _mask_extensions(frame, offsets)
    if not frame[offsets.tcp + 13] & 0x20:
        frame[offsets.tcp + 18 : offsets.tcp + 20] = bytes(2)  # an urgent pointer that counts for nothing
    _mask_options(frame, offsets)
    frame[offsets.tcp + 16 : offsets.tcp + 18] = bytes(2)
    if offsets.whole:
        segment = frame[offsets.tcp : offsets.end]
        pseudo = frame[source : source + 2 * size] + struct.pack(">II", len(segment), TCP)
        frame[offsets.tcp + 16 : offsets.tcp + 18] = _checksum(pseudo + segment)
    return bytes(frame)


def _mask_options(frame: bytearray, offsets: Layout) -> None:
    """Zero what stands in other options (a cookie, a key's digest, multipath's addresses), and after the last."""
    offset = offsets.tcp + 20
    while offset < offsets.payload and frame[offset] != 0:
        if frame[offset] == 1:
            offset += 1
            continue
        option, length = frame[offset], frame[offset + 1] if offset + 1 < offsets.payload else 0
        if length < 2 or offset + length > offsets.payload:
            break
        if length not in _PLAIN_OPTIONS.get(option, ()):
            message = frame[offset + 2] & 0xF0 if option == _MULTIPATH and length > 2 else 0
            frame[offset + 2 : offset + length] = bytes([message]).ljust(length - 2, b"\0")[: length - 2]
        offset += length
    frame[offset : offsets.payload] = bytes(max(0, offsets.payload - offset))


def _mask_extensions(frame: bytearray, offsets: Layout) -> None:
    """Replace options of IPv6's extension headers (a home address, a jumbo length) by padding."""
    offset = offsets.ip + 40
    while offset < offsets.tcp:
        size = (frame[offset + 1] + 1) * 8
        frame[offset + 2 : offset + size] = bytes([_PAD, min(size - 4, 255)]) + bytes(size - 4)
        for extra in range(offset + 4 + 255, offset + size):
            frame[extra] = 0  # Pad1
        offset += size


def _checksum(data: bytes | bytearray) -> bytes:
    """RFC 1071."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)
