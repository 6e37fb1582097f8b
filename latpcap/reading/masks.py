"""What was said, masked: as long as before, cut into the same messages, and telling nothing.

Reads the bytes of one direction, put together; gives as many. HTTP and TLS keep what says where a message begins and
ends (`mask_frames.py` has HTTP/2, WebSocket, DNS). Of everything else all is masked: its messages are read as turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from latpcap.reading.mask_frames import dns, http2, opaque, websocket

Word = Callable[[bytes], bytes]
"""Replaces a name by another of its length, the same name always by the same."""

_REQUEST = re.compile(rb"([A-Z][A-Z-]{1,19}) ([^ \r\n]{1,8000}) (HTTP/1\.[01])\r?\n")
_STATUS = re.compile(rb"(HTTP/1\.[01] [1-5]\d\d)( [^\r\n]*)?\r?\n")
_LINE = re.compile(rb"([^\r\n]*)(\r?\n)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})([^\r\n]*)(\r?\n)")
_TOKEN = re.compile(rb"[A-Za-z0-9%_~-]+")
_METHODS = (
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"PROPFIND", b"PROPPATCH",
    b"MKCOL", b"COPY", b"MOVE", b"LOCK", b"UNLOCK", b"REPORT", b"SEARCH",
)  # fmt: skip
"""What is asked for (RFC 9110, 4918, 3253, 5323). Other words before a target may be the end of a body."""
_FRAMING = (b"connection", b"content-length", b"expect", b"server", b"te", b"transfer-encoding", b"upgrade")
"""Header fields that stay whole: where a message ends, how it goes on, and whose the server's software is."""
_KNOWN = (
    b"accept", b"accept-encoding", b"accept-language", b"accept-ranges", b"age", b"authorization", b"cache-control",
    b"content-encoding", b"content-type", b"cookie", b"date", b"etag", b"host", b"if-modified-since", b"if-none-match",
    b"keep-alive", b"last-modified", b"location", b"origin", b"range", b"referer", b"set-cookie", b"user-agent",
    b"vary", b"via",
)  # fmt: skip
"""Header fields whose names tell nobody anything."""
_STREAMED = re.compile(
    rb"[ \t]*(?:text/event-stream|application/(?:x-ndjson|ndjson|jsonl|x-jsonlines))\b", re.IGNORECASE
)
_SHOWN = re.compile(rb"(?<![\r\n])[^\r\n]+|[^\r\n:][^\r\n]*")
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a HelloRetryRequest (RFC 8446, 4.1.3): a constant, by which it is known."""
_RECORD = re.compile(rb"[\x14-\x18]\x03[\x00-\x04][\x00-\x48]")
"""A record's kind, version and length (RFC 8446, 5.1; TLS 1.2 allows 2,048 bytes more)."""
_PLAIN_EXTENSIONS = {16, 43}
"""ALPN and supported versions: which protocol follows."""


def masked(protocol: str, data: bytes, from_client: bool, word: Word) -> bytes:
    """The bytes of one direction without what they say; `protocol` is the one of the table `streams`."""
    if protocol == "tls":
        found = _tls(data, word)
    elif protocol == "websocket":
        found = _http(data, from_client, word, partial(websocket, word=word))
    elif protocol == "dns":
        found = dns(data, word)
    elif protocol in ("http2", "grpc"):
        frames = partial(http2, from_client=from_client, grpc=protocol == "grpc")
        first = _REQUEST if from_client else _STATUS
        found = _http(data, from_client, word, frames) if first.match(data) else frames(data)
    elif protocol == "http":
        found = _http(data, from_client, word, None)
    else:
        found = opaque(data)
    assert len(found) == len(data)
    return found


Mask = Callable[[bytes], bytes]


def _http(data: bytes, from_client: bool, word: Word, upgraded: Mask | None) -> bytes:
    """Messages of HTTP/1; `upgraded` masks what is spoken behind a request or an answer that changes the protocol."""
    first = _REQUEST if from_client else _STATUS
    found = bytearray()
    at = 0
    while at < len(data):
        match = first.match(data, at)
        if match is None and upgraded and not found:
            return upgraded(data)
        if match is None:  # inside a body whose head was not captured: the next head, or the end
            later = first.search(data, at + 1)
            until = later.start() if later else len(data)
            found += opaque(data[at:until])
            at = until
            continue
        head = _Head(data, match, from_client, word)
        found += head.masked
        at += len(head.masked)
        if upgraded and head.upgrades:
            return bytes(found) + upgraded(data[at:])
        if head.body is None:
            taken = _chunked(data, at, head.mask)
        elif first.match(data, at):  # the answer to HEAD: a length, and no body
            taken = b""
        else:
            taken = head.mask(data[at : at + head.body])
        found += taken
        at += len(taken)
    return bytes(found)


class _Head:
    """A message's head, masked, and what it says of the body.

    `body` is its length, None where it is chunked; `mask` is for what it consists of.
    """

    def __init__(self, data: bytes, start: re.Match[bytes], from_client: bool, word: Word):
        self.mask: Mask = opaque
        self._word = word
        if from_client:
            target = _TOKEN.sub(lambda name: word(name.group()), start.group(2))
            verb = start.group(1) if start.group(1) in _METHODS else b"X" * len(start.group(1))
            found = bytearray(verb + b" " + target + b" " + start.group(3))
            bare = until_close = False
        else:
            found = bytearray(start.group(1))
            if start.group(2):
                found += b" " + opaque(start.group(2)[1:])
            bare = start.group(1)[-3:] in (b"204", b"304") or start.group(1)[-3:-2] == b"1"
            until_close = not bare
        found += data[start.start() + len(found) : start.end()]
        at, self._length, self._chunked, self._upgrade = start.end(), -1, False, False
        while line := _LINE.match(data, at):
            at = line.end()
            found += self._field(line.group(1)) + line.group(2)
            if not line.group(1):
                break
        self.masked = bytes(found)
        self.upgrades = self._upgrade and (from_client or start.group(1)[-3:] == b"101")
        self.body: int | None = self._length
        if bare:
            self.body = 0
        elif self._chunked:
            self.body = None
        elif self._length < 0:
            self.body = len(data) if until_close else 0

    def _field(self, line: bytes) -> bytes:
        name, colon, value = line.partition(b":")
        known = name.strip().lower()
        if known in _FRAMING:
            if known == b"content-length" and value.strip().isdigit():
                self._length = int(value)
            elif known == b"transfer-encoding" and b"chunked" in value.lower():
                self._chunked = True
            self._upgrade = self._upgrade or known == b"upgrade"
            return line
        if known == b"host" and colon:
            return name + colon + _TOKEN.sub(lambda part: self._word(part.group()), value)
        if known == b"content-type" and (kind := _STREAMED.match(value)):
            self.mask = _lines
            return name + colon + kind.group() + opaque(value[kind.end() :])
        return (name if known in _KNOWN else opaque(name)) + colon + _spaced(value)


def _lines(body: bytes) -> bytes:
    """A body of events or records: its line ends stay, and the colons that begin comments."""
    return _SHOWN.sub(lambda part: opaque(part.group()), body)


def _spaced(value: bytes) -> bytes:
    """A header's value, masked behind its leading space."""
    text = value.lstrip(b" \t")
    return value[: len(value) - len(text)] + opaque(text)


def _chunked(data: bytes, at: int, mask: Mask) -> bytes:
    """A chunked body, masked: sizes stay, extensions, data and trailers do not."""
    found = bytearray()
    start = at
    while size := _CHUNK.match(data, at):
        length = int(size.group(1), 16)
        found += size.group(1) + opaque(size.group(2)) + size.group(3)
        at = size.end()
        if length == 0:
            while line := _LINE.match(data, at):
                at = line.end()
                name, colon, value = line.group(1).partition(b":")
                found += opaque(name) + colon + _spaced(value) + line.group(2)
                if not line.group(1):
                    return bytes(found)
            break
        found += mask(data[at : at + length])
        at += length
        if end := re.compile(rb"\r?\n").match(data, at):
            found += end.group()
            at = end.end()
    assert len(found) == min(at, len(data)) - start
    return bytes(found)


def _tls(data: bytes, word: Word) -> bytes:
    found = bytearray()
    at, plain, left = 0, True, 0
    while at + 5 <= len(data):
        if not _RECORD.match(data, at):  # what was said before STARTTLS, or a record whose head was not captured
            later = _RECORD.search(data, at + 1)
            until = later.start() if later else len(data)
            found += bytes(until - at)
            at = until
            continue
        kind, length = data[at], int.from_bytes(data[at + 3 : at + 5], "big")
        content = data[at + 5 : at + 5 + length]
        found += data[at : at + 5]
        if kind == 20 or (kind == 21 and length == 2):
            found += content
        elif kind == 22 and plain:
            masked_content, left = _handshake(content, left, word)
            found += masked_content
        else:
            found += bytes(len(content))
        plain = plain and kind != 20
        at += 5 + len(content)
    return bytes(found) + bytes(len(data) - len(found))


def _handshake(content: bytes, left: int, word: Word) -> tuple[bytes, int]:
    """Handshake messages: their kinds and lengths stay, and of the hellos what says which protocol follows.

    `left` bytes of the message before go on here; the second value is what the next record goes on with.
    """
    found = bytearray(min(left, len(content)))
    at = len(found)
    left -= at
    while at + 4 <= len(content):
        kind, length = content[at], int.from_bytes(content[at + 1 : at + 4], "big")
        message = content[at + 4 : at + 4 + length]
        found += content[at : at + 4]
        found += _hello(message, kind == 1, word) if kind in (1, 2) else bytes(len(message))
        at += 4 + len(message)
        left = length - len(message)
    return bytes(found) + bytes(len(content) - len(found)), left


def _hello(message: bytes, client: bool, word: Word) -> bytes:
    found = bytearray(message)
    if message[2:34] != _RETRY:
        found[2:34] = bytes(len(message[2:34]))
    at = 34
    if at >= len(message):
        return bytes(found)
    session = message[at]
    found[at + 1 : at + 1 + session] = bytes(len(message[at + 1 : at + 1 + session]))
    at += 1 + session
    if client:
        at += 2 + int.from_bytes(message[at : at + 2], "big")  # the cipher suites
        at += 1 + (message[at] if at < len(message) else 0)
    else:
        at += 3
    at += 2
    while at + 4 <= len(message):
        kind, length = int.from_bytes(message[at : at + 2], "big"), int.from_bytes(message[at + 2 : at + 4], "big")
        value = message[at + 4 : at + 4 + length]
        if kind == 0 and len(value) > 5:
            name = _TOKEN.sub(lambda part: word(part.group()), value[5:])
            found[at + 4 : at + 4 + len(value)] = value[:5] + name
        elif kind not in _PLAIN_EXTENSIONS:
            found[at + 4 : at + 4 + len(value)] = bytes(len(value))
        at += 4 + length
    return bytes(found)
