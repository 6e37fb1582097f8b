"""What a pcapng file holds besides its packets: comments, options, and blocks of others, for those who write it anew.

Walks over the blocks again (draft-ietf-opsawg-pcapng) and counts frames as the core does. Gives everything as a
little-endian file has it: of a big-endian section only what can be turned round without knowing its meaning, and
numbers that the draft defines. Keys of TLS, statistics of the whole file, and what forbids to be copied stay behind.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _NAMES, _STATISTICS, PACKET = 0x0A0D0D0A, 1, 2, 3, 4, 5, 6
_SECRETS, _COPYABLE, _UNCOPYABLE = 10, 0xBAD, 0x40000BAD
FRAMES = {_OLD_PACKET, _SIMPLE_PACKET, PACKET, 9, _COPYABLE, _UNCOPYABLE, 0x204, 0x208, 0x216, 0x217, 0x221, 0x222}
"""Blocks that count as frames: `core/src/capture/pcapng/packet.rs`."""
_LEFT = {_STATISTICS, _SECRETS, _UNCOPYABLE, 9}
_NUMBERS = {PACKET: {2, 4, 5, 6}, _INTERFACE: {8, 10, 16, 17}}
"""Options that are one number each: their bytes are turned round."""
_OWN = {_INTERFACE: {9, 14}, SECTION: {4}}
"""Options that who writes the file decides: resolution and offset of times, the program."""
_CUSTOM = range(2988, 19_374)
"""Custom options begin with a number of four bytes."""
MAX_BYTES = 16 << 20
"""Further blocks and options are left out."""
_MAX_BLOCK = 16 << 20


@dataclass
class Foreign:
    """Options, packed and without their end, and whole blocks."""

    section: bytes = b""
    """Of all sections."""
    interfaces: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """By section, from 0 on, and number in it."""
    packets: dict[int, bytes] = field(default_factory=dict)
    """By frame."""
    begins: list[int] = field(default_factory=list)
    """Of each section the frames before it."""
    blocks: list[bytes] = field(default_factory=list)
    frames: int = 0

    def section_of(self, frame: int) -> int:
        """Which section has this frame?"""
        return max(sum(begin < frame for begin in self.begins) - 1, 0)


def read_extras(files: Iterable[Iterable[bytes]], wanted: Container[int] | None = None) -> Foreign:
    """What these files say; of packets, those that are wanted. What is damaged ends its file."""
    found, room = Foreign(), MAX_BYTES
    for file in files:
        interfaces = -1
        for kind, big, body in blocks(file):
            if interfaces < 0 and kind != SECTION:  # no pcapng: how many frames it has is not known here
                return Foreign()
            if kind == SECTION:
                found.begins.append(found.frames)
                interfaces = 0
                new = _options(body[16:], kind, big)
                if new not in found.section:
                    found.section += new
            elif kind == _INTERFACE:
                found.interfaces[len(found.begins) - 1, interfaces] = _options(body[8:], kind, big)
                interfaces += 1
            if kind in FRAMES:
                found.frames += 1
            if room <= 0:
                continue
            if kind == PACKET and (wanted is None or found.frames in wanted) and len(body) >= 20:
                (captured,) = struct.unpack_from(">I" if big else "<I", body, 12)
                options = _options(body[20 + captured + -captured % 4 :], kind, big)
                if options:
                    found.packets[found.frames] = options
                    room -= len(options)
            elif kind not in FRAMES - {_COPYABLE} | _LEFT | {SECTION, _INTERFACE} and not big:
                found.blocks.append(struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12))
                room -= len(body)
    return found


def blocks(file: Iterable[bytes]) -> Iterator[tuple[int, bool, bytes]]:
    """Type, byte order and body of each block, up to what is none."""
    held, big, order = bytearray(), False, "<II"
    for piece in file:
        held += piece
        at = 0
        while len(held) - at >= 12:
            if held[at : at + 4] == b"\x0a\x0d\x0d\x0a":
                big = held[at + 8 : at + 12] == b"\x1a\x2b\x3c\x4d"
                order = ">II" if big else "<II"
            kind, total = struct.unpack_from(order, held, at)
            total += -total % 4
            if not 12 <= total <= _MAX_BLOCK:
                return
            if len(held) - at < total:
                break
            yield kind, big, bytes(held[at + 8 : at + total - 4])
            at += total
        del held[:at]


def _options(data: bytes, kind: int, big: bool) -> bytes:
    out, at, order = [], 0, ">HH" if big else "<HH"
    while at + 4 <= len(data):
        code, length = struct.unpack_from(order, data, at)
        value = data[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4
        if not code or len(value) < length:
            break
        if code in _OWN.get(kind, ()):
            continue
        if big and code in _NUMBERS.get(kind, ()):
            value = value[::-1]
        elif big and code in _CUSTOM:
            value = value[3::-1] + value[4:]
        out.append(struct.pack("<HH", code, length) + value + bytes(-length % 4))
    return b"".join(out)
