"""Masks payload: the length and the division into messages stay, the content does not.

Takes the reassembled bytes of one direction; returns as many. HTTP and TLS keep their framing, and lists say which
other values and lengths stay. All of other protocols is masked: their messages are read as turns.

HTTP/2, WebSocket and DNS keep kinds, lengths and numbers. A header block of HTTP/2 becomes another valid one of the
same length: GET of / for requests, 200 for responses, and fields without content for the rest.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Container
from functools import partial

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 9
PRIORITY, WINDOW_UPDATE = 2, 8
_PLAIN = {PRIORITY: 5, RST_STREAM: 4, WINDOW_UPDATE: 4}
"""Frames that consist of protocol numbers, with their length in bytes."""
_FLAGS = {DATA: 0x9, HEADERS: 0x2D, SETTINGS: 0x1, PUSH_PROMISE: 0xC, PING: 0x1, CONTINUATION: 0x4}
"""Flags defined for each kind of frame (RFC 9113, 6); other kinds have none."""
_SETTINGS = {1, 2, 3, 4, 5, 6, 8, 9}
"""Settings that are registered (RFC 9113, 8441, 9218)."""
_ERRORS = 0xD
"""The highest error code."""
_PADDED, _PRIORITY = 0x8, 0x20
OPENING = 8
_OPCODES = {0, 1, 2, 8, 9, 10}
_MAX_FRAME = 1 << 20
_GET, _OK = (b"\x82", b"\x84", b"\x86"), (b"\x88",)
"""Of HPACK's static table (RFC 7541, A): method GET, path /, scheme http; status 200."""
_FILLER = b"\x90"
"""accept-encoding of the static table: one byte without content."""
_GRPC, _GRPC_AGAIN = b"\x5f\x10application/grpc", b"\xbe"
"""content-type as a literal that is added to the dynamic table; then the index of its newest entry."""


def opaque(data: bytes) -> bytes:
    """As many bytes without content."""
    return b"x" * len(data)


def http2(data: bytes, *, from_client: bool, grpc: bool) -> bytes:
    """Mask one direction of HTTP/2; with `grpc` the lengths of gRPC's messages stay, too."""
    found = bytearray(PREFACE if from_client and data.startswith(PREFACE) else b"")
    begun: set[int] = set()
    messages: dict[int, int] = {}
    fields = _Fields(grpc)
    while len(found) + 9 <= len(data):
        at = len(found)
        length, kind, flags = int.from_bytes(data[at : at + 3], "big"), data[at + 3], data[at + 4]
        stream = int.from_bytes(data[at + 5 : at + 9], "big") & 0x7FFF_FFFF
        unknown = kind > CONTINUATION or flags & ~_FLAGS.get(kind, 0) or data[at + 5] & 0x80
        if length > _MAX_FRAME or unknown or length != _PLAIN.get(kind, length):
            break  # no frame header: the capture begins inside a frame
        payload = data[at + 9 : at + 9 + length]
        found += data[at : at + 9]
        if kind == WINDOW_UPDATE:
            found += payload
        elif kind == RST_STREAM:
            found += _error(payload)
        elif kind == SETTINGS:
            for place in range(0, len(payload), 6):
                one = payload[place : place + 6]
                found += one if len(one) == 6 and int.from_bytes(one[:2], "big") in _SETTINGS else bytes(len(one))
        elif kind == GOAWAY:
            found += payload[:4] + _error(payload[4:8]) + bytes(len(payload[8:]))
        elif kind in (PING, PRIORITY):
            found += bytes(len(payload))
        else:
            head = (1 if flags & _PADDED and kind != CONTINUATION else 0) + (
                5 if kind == HEADERS and flags & _PRIORITY else 4 if kind == PUSH_PROMISE else 0
            )
            padding = payload[0] if flags & _PADDED and kind != CONTINUATION and payload else 0
            body = payload[head : max(head, length - padding)]
            found += (payload[:1] if padding else b"").ljust(min(head, len(payload)), b"\0")
            if kind == DATA:
                found += _messages(body, stream, messages) if grpc else opaque(body)
            else:
                first = kind != CONTINUATION and (stream not in begun or kind == PUSH_PROMISE)
                lead = () if not first else _GET if from_client or kind == PUSH_PROMISE else _OK
                found += fields.block(len(body), lead)
                if kind == HEADERS:
                    begun.add(stream)
            found += bytes(max(0, len(payload) - head - len(body)))
    return bytes(found[: len(data)]) + opaque(data[len(found) :])


def _error(code: bytes) -> bytes:
    """A known error code, else 0."""
    return code if int.from_bytes(code, "big") <= _ERRORS else bytes(len(code))


class _Fields:
    """Makes the header blocks of one direction, each of a given length."""

    def __init__(self, grpc: bool):
        self._grpc = grpc
        self._sent_grpc = False

    def block(self, length: int, lead: tuple[bytes, ...]) -> bytes:
        """A block of `length` bytes with those of the fields in `lead` that fit."""
        found = b""
        for field in (*lead, *self._type(bool(lead))):
            if len(found) + len(field) <= length:
                found += field
                self._sent_grpc = self._sent_grpc or field is _GRPC
        while len(found) < length:
            found += _literal(length - len(found)) or _FILLER
        return found

    def _type(self, first: bool) -> tuple[bytes, ...]:
        if not (self._grpc and first):
            return ()
        return (_GRPC_AGAIN,) if self._sent_grpc else (_GRPC,)


def _literal(total: int) -> bytes:
    """A literal field of `total` bytes with name and lengths (RFC 7541, 6.2.2); empty where there is none."""
    for digits in range(1, 5):
        value = total - 3 - digits
        if value >= 0 and len(size := _number(value)) == digits:
            return b"\x00\x01x" + size + opaque(bytes(value))
    return b""


def _number(value: int) -> bytes:
    """An integer with a 7-bit prefix (RFC 7541, 5.1)."""
    if value < 127:
        return bytes([value])
    found, value = bytearray([127]), value - 127
    while value >= 128:
        found.append(value % 128 | 128)
        value //= 128
    return bytes([*found, value])


def _messages(body: bytes, stream: int, left: dict[int, int]) -> bytes:
    """gRPC's messages in the data of one stream; each follows a byte and its length, which stay."""
    found = bytearray()
    while len(found) < len(body):
        inside = min(left.get(stream, 0), len(body) - len(found))
        if inside:
            found += bytes(inside)
            left[stream] -= inside
            continue
        head = body[len(found) : len(found) + 5]
        if len(head) < 5 or head[0] > 1:
            found += opaque(body[len(found) :])
            break
        found += head
        left[stream] = struct.unpack(">I", head[1:])[0]
    return bytes(found)


def websocket(data: bytes, word: Callable[[bytes], bytes]) -> bytes:
    """Mask frames of WebSocket (RFC 6455, 5.2): their headers stay, except for masking keys.

    Pushed messages are recognised by their first bytes: equal beginnings stay equal.
    """
    found = bytearray()
    while len(found) + 2 <= len(data):
        at = len(found)
        length, masked = data[at + 1] & 0x7F, data[at + 1] & 0x80
        extra = 2 if length == 126 else 8 if length == 127 else 0
        if extra:
            length = int.from_bytes(data[at + 2 : at + 2 + extra], "big")
        if data[at] & 0x30 or data[at] & 0xF not in _OPCODES or length >= 1 << 32:
            break  # bits that no extension in use sets
        found += data[at : at + 2 + extra]
        key = data[len(found) : len(found) + 4] if masked else bytes(4)
        found += bytes(4 if masked else 0)
        payload = data[len(found) : len(found) + length]
        opening = bytes(byte ^ key[place % 4] for place, byte in enumerate(payload[:OPENING])) if len(key) == 4 else b""
        found += word(opening) + opaque(payload[len(opening) :])
    return bytes(found[: len(data)]) + opaque(data[len(found) :])


def dns(data: bytes, word: Callable[[bytes], bytes]) -> bytes:
    """Mask DNS over TCP (RFC 1035, 4.1): headers and the type of the question stay; names are replaced."""
    found = bytearray()
    while len(found) + 14 <= len(data):
        at = len(found)
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if data[at + 4] & 0x78 or data[at + 6] or data[at + 7] > 1 or data[at + 8] or data[at + 10] or data[at + 12]:
            break  # no header: a plain query has no other counts
        found += data[at : at + 14]
        while len(found) < min(end, len(data)) and 0 < data[len(found)] < 64:
            label = data[len(found) + 1 : len(found) + 1 + data[len(found)]]
            found += data[len(found) : len(found) + 1] + word(label)
        if data[len(found) : len(found) + 2] == b"\0\0" and data[len(found) + 3 : len(found) + 5] == b"\0\1":
            found += data[len(found) : len(found) + 5]  # the name's end, a type, the Internet
        found += bytes(max(0, min(end, len(data)) - len(found)))
    return bytes(found[: len(data)]) + bytes(max(0, len(data) - len(found)))


Word = Callable[[bytes], bytes]
"""Replaces a name by another of its length; equal names by equal ones."""

_REQUEST = re.compile(rb"([A-Z][A-Z-]{1,19}) ([^ \r\n]{1,8000}) (HTTP/1\.[01])\r?\n")
_STATUS = re.compile(rb"(HTTP/1\.[01] [1-5]\d\d)( [^\r\n]*)?\r?\n")
_LINE = re.compile(rb"([^\r\n]*)(\r?\n)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})([^\r\n]*)(\r?\n)")
_URL_PART = re.compile(rb"[^/?&=.:;,#\[\]]+")
"""A part of a target or a host, between delimiters of RFC 3986."""
_METHODS = (
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"PROPFIND", b"PROPPATCH",
    b"MKCOL", b"COPY", b"MOVE", b"LOCK", b"UNLOCK", b"REPORT", b"SEARCH",
)  # fmt: skip
"""Request methods (RFC 9110, 4918, 3253, 5323). Another word before a target may be the end of a body."""
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
"""Header fields that keep known words: they determine where messages end, or name the server's software."""
_VERSION = re.compile(rb"\d{1,3}(?:\.\d{1,3}){0,3}")
_DIGITS = 15
"""Upper bound on the digits of a body's length: a petabyte."""
_KNOWN = (
    b"accept", b"accept-encoding", b"accept-language", b"accept-ranges", b"age", b"authorization", b"cache-control",
    b"content-encoding", b"content-type", b"cookie", b"date", b"etag", b"host", b"if-modified-since", b"if-none-match",
    b"keep-alive", b"last-modified", b"location", b"origin", b"range", b"referer", b"set-cookie", b"user-agent",
    b"vary", b"via",
)  # fmt: skip
"""Header fields whose names identify nobody."""
_STREAMED = re.compile(
    rb"[ \t]*(?:text/event-stream|application/(?:x-ndjson|ndjson|jsonl|x-jsonlines))\b", re.IGNORECASE
)
_SHOWN = re.compile(rb"(?<![\r\n])[^\r\n]+|[^\r\n:][^\r\n]*")
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random value that marks a HelloRetryRequest (RFC 8446, 4.1.3)."""
_RECORD = re.compile(rb"[\x14-\x18]\x03[\x00-\x04][\x00-\x48]")
"""Kind, version and length of a record (RFC 8446, 5.1; TLS 1.2 allows 2,048 bytes more)."""
_SNI, _ALPN, _VERSIONS = 0, 16, 43
_ALPNS = {b"h2", b"h2c", b"http/1.1", b"http/1.0", b"http/0.9", b"h3", b"spdy/3.1", b"ftp", b"imap", b"pop3", b"dot",
          b"mqtt", b"postgresql", b"acme-tls/1", b"stun.turn", b"xmpp-client", b"xmpp-server", b"irc"}  # fmt: skip
"""Registered protocols; other values may be private names."""
_EXTENSIONS = {*range(64), 17513, 17613, 65037, 65281}
"""Numbers of registered or common extensions."""
_UNKNOWN = b"\x0a\x0a"
"""A GREASE value (RFC 8701), in place of unknown extensions, suites and versions."""


def masked(protocol: str, data: bytes, from_client: bool, word: Word) -> bytes:
    """Mask the bytes of one direction; `protocol` is that of the table `streams`."""
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
    """Mask messages of HTTP/1; `upgraded` masks the bytes after a change of protocol."""
    first = _REQUEST if from_client else _STATUS
    found = bytearray()
    at = 0
    while at < len(data):
        match = first.match(data, at)
        if match is None and upgraded and not found:
            return upgraded(data)
        if match is None:  # inside a body whose head was not captured: go on at the next head
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
    """A masked message head, and the length of its body.

    `body` is the length, None if it is chunked; `mask` masks the body's content.
    """

    def __init__(self, data: bytes, start: re.Match[bytes], from_client: bool, word: Word):
        self.mask: Mask = opaque
        self._word = word
        if from_client:
            target = start.group(2)
            target = target if target == b"*" else _URL_PART.sub(lambda name: word(name.group()), target)
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
            return name + colon + value[: len(value) - len(text)] + _URL_PART.sub(lambda p: self._word(p.group()), text)
        if known == b"content-type" and (kind := _STREAMED.match(value)):
            self.mask = _lines
            return name + colon + kind.group() + opaque(value[kind.end() :])
        return (name if known in _KNOWN else opaque(name)) + colon + _spaced(value)


_MARKED = re.compile(rb"[^ \t,;/()]+")


def _plain(word: bytes, known: Container[bytes], numbered: bool) -> bytes:
    """The word if it is known, or a version number where one may be; else as many bytes."""
    return word if word.lower() in known or (numbered and _VERSION.fullmatch(word)) else opaque(word)


def _lines(body: bytes) -> bytes:
    """Mask a body of events or records; line ends stay, and colons that begin comments."""
    return _SHOWN.sub(lambda part: opaque(part.group()), body)


def _spaced(value: bytes) -> bytes:
    """A header's value, masked except for leading spaces."""
    text = value.lstrip(b" \t")
    return value[: len(value) - len(text)] + opaque(text)


def _chunked(data: bytes, at: int, mask: Mask) -> bytes:
    """Mask a chunked body: sizes stay; extensions, data and trailers do not."""
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
        if not _RECORD.match(data, at):  # plain text before STARTTLS, or a record without its header
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
    """Mask handshake messages: kinds and lengths stay, and the fields of hellos that choose the protocol.

    The first `left` bytes belong to a message of the record before; returns the same for the next record.
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
    """Mask a hello (RFC 8446, 4.1.2): lengths and known values stay."""
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
    """A registered cipher suite, else GREASE."""
    known = suite[:1] in (b"\0", b"\xc0") or suite[:1] in (b"\x13", b"\xcc")
    return suite if known else _UNKNOWN[: len(suite)]


def _extension(kind: int, value: bytes, client: bool, word: Word) -> bytes:
    """Mask an extension's content: the server's name is replaced; known protocols and versions stay."""
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
