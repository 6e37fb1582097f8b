"""What was said, masked: as long as before, cut into the same messages, and telling nothing.

Reads the bytes of one direction, put together; gives as many. HTTP and TLS keep what says where a message begins and
ends (`mask_frames.py` has HTTP/2, WebSocket, DNS). Lists say what stays, by values and lengths; whatever else stands
there is masked. Of other protocols all is masked: their messages are read as turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from functools import partial

from latpcap.reading.mask_frames import dns, http2, opaque, websocket

Word = Callable[[bytes], bytes]
"""Replaces a name by another of its length, the same name always by the same."""

_REQUEST = re.compile(rb"([A-Z][A-Z-]{1,19}) ([^ \r\n]{1,8000}) (HTTP/1\.[01])\r?\n")
_STATUS = re.compile(rb"(HTTP/1\.[01] [1-5]\d\d)( [^\r\n]*)?\r?\n")
_LINE = re.compile(rb"([^\r\n]*)(\r?\n)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})([^\r\n]*)(\r?\n)")
_PART = re.compile(rb"[^/?&=.:;,#\[\]]+")
"""A part of a target or a host: any bytes between marks of RFC 3986."""
_METHODS = (
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"PROPFIND", b"PROPPATCH",
    b"MKCOL", b"COPY", b"MOVE", b"LOCK", b"UNLOCK", b"REPORT", b"SEARCH",
)  # fmt: skip
"""What is asked for (RFC 9110, 4918, 3253, 5323). Other words before a target may be the end of a body."""
_PLAIN_WORDS = {
    b"connection": {b"close", b"keep-alive", b"upgrade", b"te", b"http2-settings"},
    b"expect": {b"100-continue"},
    b"te": {b"trailers", b"gzip", b"deflate"},
    b"transfer-encoding": {b"chunked", b"gzip", b"deflate", b"compress", b"identity"},
    b"upgrade": {b"websocket", b"h2c"},
    b"server": set(
        b"nginx openresty apache httpd caddy envoy istio-envoy haproxy varnish lighttpd cloudflare akamaighost gunicorn"
        b" uvicorn hypercorn daphne werkzeug python basehttp simplehttp tornadoserver aiohttp cherrypy waitress twisted"
        b" jetty tomcat apache-coyote undertow netty kestrel microsoft-iis microsoft-httpapi node express puma thin"
        b" unicorn webrick cowboy mochiweb go php openssl traefik squid minio gws ats mod_ssl mod_wsgi ubuntu debian"
        b" centos unix win32 win64 red hat linux".split()
    ),
}
"""Header fields of which known words stay: where a message ends, how it goes on, whose the server's software is."""
_VERSION = re.compile(rb"\d{1,3}(?:\.\d{1,3}){0,3}")
_DIGITS = 15
"""Of a body's length: a petabyte."""
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
_SNI, _ALPN, _VERSIONS = 0, 16, 43
_ALPNS = {b"h2", b"h2c", b"http/1.1", b"http/1.0", b"http/0.9", b"h3", b"spdy/3.1", b"ftp", b"imap", b"pop3", b"dot",
          b"mqtt", b"postgresql", b"acme-tls/1", b"stun.turn", b"xmpp-client", b"xmpp-server", b"irc"}  # fmt: skip
"""Protocols that are registered; whatever else stands there may be a name of the user's own."""
_EXTENSIONS = {*range(64), 17513, 17613, 65037, 65281}
"""Numbers of extensions that are registered or common."""
_UNKNOWN = b"\x0a\x0a"
"""GREASE (RFC 8701): what stands for an extension, a suite or a version that is not known."""


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
            target = start.group(2)
            target = target if target == b"*" else _PART.sub(lambda name: word(name.group()), target)
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
        if known == b"content-length" and value.strip().isdigit() and len(value.strip()) <= _DIGITS:
            self._length = int(value)
            return line
        if known in _PLAIN_WORDS:
            self._chunked = self._chunked or (known == b"transfer-encoding" and b"chunked" in value.lower())
            self._upgrade = self._upgrade or known == b"upgrade"
            plain = _PLAIN_WORDS[known]
            return name + colon + _MARKED.sub(lambda part: _plain(part.group(), plain, known == b"server"), value)
        if known == b"host" and colon:
            text = value.lstrip(b" \t")
            return name + colon + value[: len(value) - len(text)] + _PART.sub(lambda p: self._word(p.group()), text)
        if known == b"content-type" and (kind := _STREAMED.match(value)):
            self.mask = _lines
            return name + colon + kind.group() + opaque(value[kind.end() :])
        return (name if known in _KNOWN else opaque(name)) + colon + _spaced(value)


_MARKED = re.compile(rb"[^ \t,;/()]+")


def _plain(word: bytes, known: Container[bytes], numbered: bool) -> bytes:
    """A word where it is known, or a version's number where one may stand; else as many bytes."""
    return word if word.lower() in known or (numbered and _VERSION.fullmatch(word)) else opaque(word)


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
            found += content if content[:1] in (b"\1", b"\2") and kind + len(content) <= 23 else bytes(len(content))
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
    """A hello (RFC 8446, 4.1.2): its lengths stay, and of its values those that are known."""
    found = bytearray(len(message))

    def keep(at: int, value: bytes) -> None:
        found[at : at + len(value)] = value[: max(0, len(message) - at)]

    if message[:1] == b"\3":
        keep(0, message[:2] if message[1:2] <= b"\4" else b"\3\3")
    if message[2:34] == _RETRY:
        keep(2, _RETRY)
    at = 34
    if at >= len(message):
        return bytes(found)
    keep(at, message[at : at + 1])
    at += 1 + message[at]
    if client:
        size = int.from_bytes(message[at : at + 2], "big")
        keep(at, message[at : at + 2])
        for place in range(at + 2, at + 2 + size - 1, 2):
            keep(place, _suite(message[place : place + 2]))
        at += 2 + size
        keep(at, message[at : at + 1])
        at += 1 + (message[at] if at < len(message) else 0)
    else:
        keep(at, _suite(message[at : at + 2]))
        at += 3
    keep(at, message[at : at + 2])
    at += 2
    while at + 4 <= len(message):
        kind, length = int.from_bytes(message[at : at + 2], "big"), int.from_bytes(message[at + 2 : at + 4], "big")
        value = message[at + 4 : at + 4 + length]
        keep(at, message[at : at + 2] if kind in _EXTENSIONS else _UNKNOWN)
        keep(at + 2, message[at + 2 : at + 4])
        keep(at + 4, _extension(kind, value, client, word))
        at += 4 + length
    return bytes(found)


def _suite(suite: bytes) -> bytes:
    """A cipher suite of those that are registered, else GREASE."""
    known = suite[:1] in (b"\0", b"\xc0") or suite[:1] in (b"\x13", b"\xcc")
    return suite if known else _UNKNOWN[: len(suite)]


def _extension(kind: int, value: bytes, client: bool, word: Word) -> bytes:
    """What an extension holds: the name that is asked for is replaced, protocols and versions stay where known."""
    if kind == _SNI and len(value) > 5 and int.from_bytes(value[3:5], "big") == len(value) - 5:
        head = (len(value) - 2).to_bytes(2, "big") + b"\0" + value[3:5]
        return head + re.sub(rb"[^.]+", lambda part: word(part.group()), value[5:])
    if kind == _ALPN and int.from_bytes(value[:2], "big") == len(value) - 2:
        found = bytearray(value[:2])
        while len(found) < len(value):
            name = value[len(found) + 1 : len(found) + 1 + value[len(found)]]
            found += bytes([len(name)]) + (name if name in _ALPNS else word(name))
        return bytes(found)
    if kind == _VERSIONS:
        head = value[:1] if client else b""
        pairs = [value[at : at + 2] for at in range(len(head), len(value), 2)]
        if not client or head == bytes([len(value) - 1]):
            known = (pair if pair[:1] == b"\3" and pair[1:] <= b"\4" else _UNKNOWN[: len(pair)] for pair in pairs)
            return head + b"".join(known)
    return bytes(len(value))
