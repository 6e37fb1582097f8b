"""Text that tcpdump, tshark or Wireshark printed, read back as a capture of headers.

Blocks of bytes in, blocks of bytes out. Text with packets becomes a pcapng with one record a printed packet; anything
else passes as it is.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from itertools import chain

from latpcap.errors import CaptureError
from latpcap.reading.text_formats import columns, fields, tcpdump
from latpcap.reading.text_formats import frames as wire

_HEAD_BYTES = 1 << 14
_HEAD_LINES = 60
_LINE_BYTES = 1 << 16
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BEFORE = re.compile(
    r"^(?:(?:> ?)+|\[[^\]\s]{1,120}\] |[^\n]{0,120}?\btcpdump(?:\[\d+\])?: |<(?:pre|code)[^>]{0,60}>|"
    r"[\w.-]{1,60} +\| |\d{1,7}[:-](?=\d\d:\d\d:\d\d[.,]\d))+"
)
_MARKUP = re.compile(r"^(?!\s*<(?!pre|code))[^\n]*&[gl]t;")
"""A line out of a page's source, but none of XML."""
_OLD = re.compile(
    r"^([\d:.-]+(?: [\d:.]+)? )(?=\d{1,3}(?:\.\d{1,3}){3}\.[\w-]+ > \d[^:\n]*: (?:[SFPRWE.]+ |udp |\d+[+*%]*))"
)
"""A packet of tcpdump before 3.9, which named no family."""
_STARTS = tuple(bytes([code]) for code in (0x09, 0x0A, 0x0D, *range(0x20, 0x7F), 0xEF, 0xFF, 0xFE))


def captured(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The capture in these blocks: text that shows packets as a pcapng of headers, anything else as it is.

    CaptureError where the text has packets, but none with addresses that can be read.
    """
    head = next(blocks, b"")
    if head[:2] in _UTF16:  # PowerShell's redirection
        blocks = _narrow(chain([head], blocks))
        head = b""
    while len(head) < _HEAD_BYTES and (more := next(blocks, b"")):
        head += more
        if not _like_text(head):
            break
    whole = chain([head] if head else [], blocks)
    if not _like_text(head):
        yield from whole
        return
    printed = _reader(head)
    if printed is None and _timeless(head):
        raise CaptureError(name, "is tcpdump's text without times, so delays are unknown: print it with -tt")
    if printed is None:
        yield from whole
        return
    held: list[bytes] = []
    for block in wire.capture(printed.frames(_lines(whole))):
        held.append(block)
        if printed.read:
            yield from held
            held.clear()
    if not printed.read:
        reason = "shows packets, but no two ends of any: print it with `tcpdump -n -tt`, or save the capture itself"
        raise CaptureError(name, reason)


def _reader(head: bytes) -> tcpdump.Printed | columns.Columns | fields.Exported | None:
    """What reads a text that begins so."""
    text = _text(head)
    kind = fields.looks_like(text)
    if kind is not None:
        return fields.Exported(kind)
    lines = [_bare(line) for line in text.splitlines()[:_HEAD_LINES]]
    if any(map(tcpdump.packets_of, lines)):
        return tcpdump.Printed()
    return columns.reader(lines)


def _timeless(head: bytes) -> bool:
    """Whether `tcpdump -t` printed this."""
    return len(re.findall(r"(?m)^IP6? \S+ > \S+: (?:Flags \[|ICMP|UDP)", _text(head))) > 0


def _bare(line: str) -> str:
    """A line without what mails, logs, pages and tools put before it: `> `, `[pod/name] `, `tcpdump[1]: `, `12:`."""
    line = _BEFORE.sub("", html.unescape(line) if _MARKUP.match(line) else line)
    return _OLD.sub(r"\1IP ", line)


def _narrow(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """UTF-16 with its mark as UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in blocks:
        yield decoder.decode(block).encode()


def _like_text(head: bytes) -> bool:
    return b"\0" not in head[:_HEAD_BYTES] and head[:1] in _STARTS


def _text(block: bytes) -> str:
    return block.decode("utf-8", "replace").lstrip("\ufeff")


def _lines(blocks: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from (_bare(_text(line)) for line in whole)
        rest = rest[:_LINE_BYTES]
    if rest:
        yield _bare(_text(rest))
