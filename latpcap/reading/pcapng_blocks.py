"""Reads from a pcapng file what a copy has to keep besides the packets: comments, other options, and unknown blocks.

Reads the blocks again (draft-ietf-opsawg-pcapng) and counts frames as the core does. Everything is returned in
little-endian byte order. Of a big-endian section only text and the numbers that the draft defines can be converted;
unknown blocks are dropped. TLS keys, statistics of the whole file and blocks marked as not to be copied are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _NAMES, _STATISTICS, PACKET = 0x0A0D0D0A, 1, 2, 3, 4, 5, 6
"""Types of blocks."""
_SECRETS, _COPYABLE, _UNCOPYABLE = 10, 0xBAD, 0x40000BAD
"""Types of blocks: secrets, and custom blocks that may and that must not be copied."""
FRAMES = {_OLD_PACKET, _SIMPLE_PACKET, PACKET, 9, _COPYABLE, _UNCOPYABLE, 0x204, 0x208, 0x216, 0x217, 0x221, 0x222}
"""Types of blocks that count as frames, as in `core/src/capture/pcapng/packet.rs`."""
_NOT_COPIED = {_STATISTICS, _SECRETS, _UNCOPYABLE, 9}
_NUMBERS = {PACKET: {2, 4, 5, 6}, _INTERFACE: {8, 10, 16, 17}}
"""Options, by block type, that hold one number, whose bytes are reversed for little-endian."""
_OF_WRITER = {_INTERFACE: {9, 14}, SECTION: {4}}
"""Options, by block type, that the writer of the copy sets itself: resolution and offset of times, the program."""
_CUSTOM = range(2988, 19_374)
"""Codes of custom options, which begin with a Private Enterprise Number of four bytes."""
_MAX_BYTES = 16 << 20
"""Upper bound on the options and blocks kept in memory; later ones are dropped."""
_MAX_BLOCK_BYTES = 16 << 20
"""Upper bound on one block; a larger one is taken for damage."""


@dataclass
class Foreign:
    """Encoded options, without the end-of-options mark, and whole blocks of one capture."""

    section: bytes = b""
    """Options of all sections."""
    interfaces: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """Options by section, from 0 on, and number of the interface in it."""
    packets: dict[int, bytes] = field(default_factory=dict)
    """Options by frame number."""
    begins: list[int] = field(default_factory=list)
    """Number of frames before each section."""
    blocks: list[bytes] = field(default_factory=list)
    frames: int = 0

    def section_of(self, frame: int) -> int:
        """Return the number of the section with this frame."""
        return max(sum(begin < frame for begin in self.begins) - 1, 0)


def read_extras(files: Iterable[Iterable[bytes]], wanted: Container[int] | None = None) -> Foreign:
    """Read the options and blocks to copy. Damage ends the reading of its file.

    `wanted` limits the packets' options to these frames.
    """
    extras, room = Foreign(), _MAX_BYTES
    for file in files:
        interfaces = -1
        for block_type, big, body in blocks(file):
            if interfaces < 0 and block_type != SECTION:  # not pcapng, so later frame numbers are unknown
                return Foreign()
            if block_type == SECTION:
                extras.begins.append(extras.frames)
                interfaces = 0
                new = _options(body[16:], block_type, big)
                if new not in extras.section:
                    extras.section += new
            elif block_type == _INTERFACE:
                extras.interfaces[len(extras.begins) - 1, interfaces] = _options(body[8:], block_type, big)
                interfaces += 1
            if block_type in FRAMES:
                extras.frames += 1
            if room <= 0:
                continue
            if block_type == PACKET and (wanted is None or extras.frames in wanted) and len(body) >= 20:
                (captured,) = struct.unpack_from(">I" if big else "<I", body, 12)
                options = _options(body[20 + captured + -captured % 4 :], block_type, big)
                if options:
                    extras.packets[extras.frames] = options
                    room -= len(options)
            elif block_type not in FRAMES - {_COPYABLE} | _NOT_COPIED | {SECTION, _INTERFACE} and not big:
                extras.blocks.append(packed_block(block_type, body))
                room -= len(body)
    return extras


def blocks(file: Iterable[bytes]) -> Iterator[tuple[int, bool, bytes]]:
    """Yield type, is-big-endian and body of each block, up to the first damaged one."""
    buffer, big, order = bytearray(), False, "<II"
    for piece in file:
        buffer += piece
        offset = 0
        while len(buffer) - offset >= 12:
            if buffer[offset : offset + 4] == b"\x0a\x0d\x0d\x0a":
                big = buffer[offset + 8 : offset + 12] == b"\x1a\x2b\x3c\x4d"
                order = ">II" if big else "<II"
            block_type, total = struct.unpack_from(order, buffer, offset)
            total += -total % 4
            if not 12 <= total <= _MAX_BLOCK_BYTES:
                return
            if len(buffer) - offset < total:
                break
            yield block_type, big, bytes(buffer[offset + 8 : offset + total - 4])
            offset += total
        del buffer[:offset]


def packed_block(block_type: int, body: bytes) -> bytes:
    """Encode a block; its body has to be padded to four bytes."""
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", block_type) + length + body + length


def packed_option(code: int, value: bytes) -> bytes:
    """Encode an option, padded to four bytes."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _options(data: bytes, block_type: int, big: bool) -> bytes:
    """Return the options of a block of this type that are to be copied, in little-endian byte order."""
    values, offset, order = [], 0, ">HH" if big else "<HH"
    while offset + 4 <= len(data):
        code, length = struct.unpack_from(order, data, offset)
        value = data[offset + 4 : offset + 4 + length]
        offset += 4 + length + -length % 4
        if not code or len(value) < length:
            break
        if code in _OF_WRITER.get(block_type, ()):
            continue
        if big and code in _NUMBERS.get(block_type, ()):
            value = value[::-1]
        elif big and code in _CUSTOM:
            value = value[3::-1] + value[4:]
        values.append(packed_option(code, value))
    return b"".join(values)
