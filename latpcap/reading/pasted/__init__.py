"""Text that tcpdump, tshark or Wireshark printed, read back as a capture of headers.

Blocks of bytes in, blocks of bytes out. Text with packets becomes a pcapng with one record a printed packet; anything
else passes as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from latpcap.errors import CaptureError
from latpcap.reading.pasted import frames as wire
from latpcap.reading.pasted import tcpdump

_HEAD_BYTES = 1 << 14
_HEAD_LINES = 60
_LINE_BYTES = 1 << 16
_TCPDUMP = "tcpdump's text"
_STARTS = tuple(bytes([code]) for code in (0x09, 0x0A, 0x0D, *range(0x20, 0x7F), 0xEF, 0xFF, 0xFE))


def captured(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The capture in these blocks: text that shows packets as a pcapng of headers, anything else as it is.

    CaptureError where the text has packets, but none with addresses that can be read.
    """
    head = b""
    while len(head) < _HEAD_BYTES and (more := next(blocks, b"")):
        head += more
        if not _like_text(head):
            break
    whole = chain([head] if head else [], blocks)
    if not _like_text(head):
        yield from whole
        return
    lines = _text(head).splitlines()[:_HEAD_LINES]
    if any(map(tcpdump.packets_of, lines)):
        printed = tcpdump.Printed()
        held: list[bytes] = []
        for block in wire.capture(printed.frames(_lines(whole))):
            held.append(block)
            if printed.read:
                yield from held
                held.clear()
        if not printed.read:
            raise CaptureError(name, "is tcpdump's text without two ends in any packet: print it with `tcpdump -n -tt`")
    else:
        yield from whole


def _like_text(head: bytes) -> bool:
    return b"\0" not in head[:_HEAD_BYTES] and head[:1] in _STARTS


def _text(block: bytes) -> str:
    return block.decode("utf-8", "replace").lstrip("\ufeff")


def _lines(blocks: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from map(_text, whole)
        rest = rest[:_LINE_BYTES]
    if rest:
        yield _text(rest)
