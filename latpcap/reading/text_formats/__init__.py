"""Converts text that tcpdump, tshark or Wireshark printed to a capture of packet headers.

Text with packets becomes a pcapng with one record per printed packet; all other input passes through unchanged.
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
"""Bytes at the start of the input from which its format is recognised; of these, _HEAD_LINES lines at most."""
_HEAD_LINES = 60
_MAX_LINE_BYTES = 1 << 16
"""Upper bound on an incomplete line kept between two blocks; the rest of it is dropped."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PREFIX = re.compile(
    r"^(?:(?:> ?)+|\[[^\]\s]{1,120}\] |[^\n]{0,120}?\btcpdump(?:\[\d+\])?: |<(?:pre|code)[^>]{0,60}>|"
    r"[\w.-]{1,60} +\| |\d{1,7}[:-](?=\d\d:\d\d:\d\d[.,]\d))+"
)
_MARKUP = re.compile(r"^(?!\s*<(?!pre|code))[^\n]*&[gl]t;")
"""A line copied from the source of a web page; lines of XML exports do not match."""
_TCPDUMP3 = re.compile(
    r"^([\d:.-]+(?: [\d:.]+)? )(?=\d{1,3}(?:\.\d{1,3}){3}\.[\w-]+ > \d[^:\n]*: (?:[SFPRWE.]+ |udp |\d+[+*%]*))"
)
"""A packet printed by tcpdump before 3.9, without the word `IP`."""
_FIRST_BYTES = tuple(bytes([code]) for code in (0x09, 0x0A, 0x0D, *range(0x20, 0x7F), 0xEF, 0xFF, 0xFE))


def captured(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield a pcapng if the blocks are text that shows packets; else the blocks as they are.

    Raises CaptureError if the text shows packets, but none of them with two readable addresses.
    """
    head = next(blocks, b"")
    if head[:2] in _UTF16:  # PowerShell's redirection
        blocks = _utf8_of_utf16(chain([head], blocks))
        head = b""
    while len(head) < _HEAD_BYTES and (next_block := next(blocks, b"")):
        head += next_block
        if not _is_text(head):
            break
    all_blocks = chain([head] if head else [], blocks)
    if not _is_text(head):
        yield from all_blocks
        return
    printed = _reader_of(head)
    if printed is None and _has_no_times(head):
        raise CaptureError(name, "is tcpdump's text without times, so delays are unknown: print it with -tt")
    if printed is None:
        yield from all_blocks
        return
    early_blocks: list[bytes] = []  # output before the first packet with two addresses
    for block in wire.capture(printed.frames(_lines(all_blocks))):
        early_blocks.append(block)
        if printed.read:
            yield from early_blocks
            early_blocks.clear()
    if not printed.read:
        reason = "shows packets, but no two ends of any: print it with `tcpdump -n -tt`, or save the capture itself"
        raise CaptureError(name, reason)


def _reader_of(head: bytes) -> tcpdump.Printed | columns.Columns | fields.Exported | None:
    """Return the reader for a text that begins with `head`; None if it shows no packets."""
    text = _text(head)
    kind = fields.looks_like(text)
    if kind is not None:
        return fields.Exported(kind)
    lines = [_without_prefix(line) for line in text.splitlines()[:_HEAD_LINES]]
    if any(map(tcpdump.begins_packet, lines)):
        return tcpdump.Printed()
    return columns.reader(lines)


def _has_no_times(head: bytes) -> bool:
    """Return whether `tcpdump -t` printed this."""
    return len(re.findall(r"(?m)^IP6? \S+ > \S+: (?:Flags \[|ICMP|UDP)", _text(head))) > 0


def _without_prefix(line: str) -> str:
    """Strip what mails, logs, web pages and tools put before a line: `> `, `[pod/name] `, `tcpdump[1]: `, `12:`."""
    line = _PREFIX.sub("", html.unescape(line) if _MARKUP.match(line) else line)
    return _TCPDUMP3.sub(r"\1IP ", line)


def _utf8_of_utf16(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Convert UTF-16 with a byte order mark to UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in blocks:
        yield decoder.decode(block).encode()


def _is_text(head: bytes) -> bool:
    return b"\0" not in head[:_HEAD_BYTES] and head[:1] in _FIRST_BYTES


def _text(block: bytes) -> str:
    return block.decode("utf-8", "replace").lstrip("\ufeff")


def _lines(blocks: Iterator[bytes]) -> Iterator[str]:
    unfinished = b""
    for block in blocks:
        *lines, unfinished = (unfinished + block).split(b"\n")
        yield from (_without_prefix(_text(line)) for line in lines)
        unfinished = unfinished[:_MAX_LINE_BYTES]
    if unfinished:
        yield _without_prefix(_text(unfinished))
