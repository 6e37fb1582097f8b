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
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
"""Types of HTTP/2 frames (RFC 9113, 6)."""
_PLAIN = {PRIORITY: 5, RST_STREAM: 4, WINDOW_UPDATE: 4}
"""Frames that consist of protocol numbers, with their length in bytes."""
_FLAGS = {DATA: 0x9, HEADERS: 0x2D, SETTINGS: 0x1, PUSH_PROMISE: 0xC, PING: 0x1, CONTINUATION: 0x4}
"""Flags defined for each kind of frame (RFC 9113, 6); other kinds have none."""
_SETTINGS = {1, 2, 3, 4, 5, 6, 8, 9}
"""Settings that are registered (RFC 9113, 8441, 9218)."""
_ERRORS = 0xD
"""The highest error code."""
_PADDED, _PRIORITY = 0x8, 0x20
"""Flags of a frame with padding and of one with a priority."""
OPENING_BYTES = 8
"""Bytes at the beginning of a WebSocket payload that are unmasked."""
_OPCODES = {0, 1, 2, 8, 9, 10}
_MAX_FRAME_BYTES = 1 << 20
"""Upper bound on a frame of HTTP/2; a longer one is taken for other data."""
_GET, _OK = (b"\x82", b"\x84", b"\x86"), (b"\x88",)
"""Of HPACK's static table (RFC 7541, A): method GET, path /, scheme http; status 200."""
_FILLER = b"\x90"
"""accept-encoding of the static table: one byte without content."""
_GRPC, _GRPC_AGAIN = b"\x5f\x10application/grpc", b"\xbe"
"""content-type as a literal that is added to the dynamic table; then the index of its newest entry."""
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
"""Extensions of a hello whose content is masked by its own rule."""
_ALPNS = {b"h2", b"h2c", b"http/1.1", b"http/1.0", b"http/0.9", b"h3", b"spdy/3.1", b"ftp", b"imap", b"pop3", b"dot",
          b"mqtt", b"postgresql", b"acme-tls/1", b"stun.turn", b"xmpp-client", b"xmpp-server", b"irc"}  # fmt: skip
"""Registered protocols; other values may be private names."""
_EXTENSIONS = {*range(64), 17513, 17613, 65037, 65281}
"""Numbers of registered or common extensions."""
_UNKNOWN = b"\x0a\x0a"
"""A GREASE value (RFC 8701), in place of unknown extensions, suites and versions."""
Mask = Callable[[bytes], bytes]
_MARKED = re.compile(rb"[^ \t,;/()]+")


def opaque(data: bytes) -> bytes:
    """Return as many bytes without content."""
    return b"x" * len(data)


def http2(data: bytes, *, from_client: bool, grpc: bool) -> bytes:
    """Mask one direction of HTTP/2; with `grpc` the lengths of gRPC's messages stay, too."""
    output = bytearray(PREFACE if from_client and data.startswith(PREFACE) else b"")
    begun_streams: set[int] = set()
    messages: dict[int, int] = {}
    fields = _Fields(grpc)
    while len(output) + 9 <= len(data):
        offset = len(output)
        length, frame_type, flags = int.from_bytes(data[offset : offset + 3], "big"), data[offset + 3], data[offset + 4]
        stream = int.from_bytes(data[offset + 5 : offset + 9], "big") & 0x7FFF_FFFF
        is_unknown = frame_type > CONTINUATION or flags & ~_FLAGS.get(frame_type, 0) or data[offset + 5] & 0x80
        if length > _MAX_FRAME_BYTES or is_unknown or length != _PLAIN.get(frame_type, length):
            break  # no frame header: the capture begins inside a frame
        payload = data[offset + 9 : offset + 9 + length]
        output += data[offset : offset + 9]
        if frame_type == WINDOW_UPDATE:
            output += payload
        elif frame_type == RST_STREAM:
            output += _error(payload)
        elif frame_type == SETTINGS:
            for begin in range(0, len(payload), 6):
                setting = payload[begin : begin + 6]
                is_registered = len(setting) == 6 and int.from_bytes(setting[:2], "big") in _SETTINGS
                output += setting if is_registered else bytes(len(setting))
        elif frame_type == GOAWAY:
            output += payload[:4] + _error(payload[4:8]) + bytes(len(payload[8:]))
        elif frame_type in (PING, PRIORITY):
            output += bytes(len(payload))
        else:
            prefix = (1 if flags & _PADDED and frame_type != CONTINUATION else 0) + (
                5 if frame_type == HEADERS and flags & _PRIORITY else 4 if frame_type == PUSH_PROMISE else 0
            )
            padding = payload[0] if flags & _PADDED and frame_type != CONTINUATION and payload else 0
            body = payload[prefix : max(prefix, length - padding)]
            output += (payload[:1] if padding else b"").ljust(min(prefix, len(payload)), b"\0")
            if frame_type == DATA:
                output += _messages(body, stream, messages) if grpc else opaque(body)
            else:
                is_first = frame_type != CONTINUATION and (stream not in begun_streams or frame_type == PUSH_PROMISE)
                leading_fields = () if not is_first else _GET if from_client or frame_type == PUSH_PROMISE else _OK
                output += fields.block(len(body), leading_fields)
                if frame_type == HEADERS:
                    begun_streams.add(stream)
            output += bytes(max(0, len(payload) - prefix - len(body)))
    return bytes(output[: len(data)]) + opaque(data[len(output) :])


def _error(code: bytes) -> bytes:
    """Return a known error code, else 0."""
    return code if int.from_bytes(code, "big") <= _ERRORS else bytes(len(code))


class _Fields:
    """Makes the header blocks of one direction, each of a given length."""

    def __init__(self, grpc: bool):
        self._grpc = grpc
        self._sent_grpc = False

    def block(self, length: int, leading_fields: tuple[bytes, ...]) -> bytes:
        """Return a block of `length` bytes with those of the fields in `leading_fields` that fit."""
        encoded = b""
        for field in (*leading_fields, *self._type(bool(leading_fields))):
            if len(encoded) + len(field) <= length:
                encoded += field
                self._sent_grpc = self._sent_grpc or field is _GRPC
        while len(encoded) < length:
            encoded += _literal(length - len(encoded)) or _FILLER
        return encoded

    def _type(self, is_first: bool) -> tuple[bytes, ...]:
        if not (self._grpc and is_first):
            return ()
        return (_GRPC_AGAIN,) if self._sent_grpc else (_GRPC,)


def _literal(total: int) -> bytes:
    """Return a literal field of `total` bytes with name and lengths (RFC 7541, 6.2.2); empty where there is none."""
    for digits in range(1, 5):
        value = total - 3 - digits
        if value >= 0 and len(size := _number(value)) == digits:
            return b"\x00\x01x" + size + opaque(bytes(value))
    return b""


def _number(value: int) -> bytes:
    """Return an integer with a 7-bit prefix (RFC 7541, 5.1)."""
    if value < 127:
        return bytes([value])
    encoded, value = bytearray([127]), value - 127
    while value >= 128:
        encoded.append(value % 128 | 128)
        value //= 128
    return bytes([*encoded, value])


def _messages(body: bytes, stream: int, bytes_left: dict[int, int]) -> bytes:
    """gRPC's messages in the data of one stream; each follows a byte and its length, which stay."""
    output = bytearray()
    while len(output) < len(body):
        message_bytes = min(bytes_left.get(stream, 0), len(body) - len(output))
        if message_bytes:
            output += bytes(message_bytes)
            bytes_left[stream] -= message_bytes
            continue
        head = body[len(output) : len(output) + 5]
        if len(head) < 5 or head[0] > 1:
            output += opaque(body[len(output) :])
            break
        output += head
        bytes_left[stream] = struct.unpack(">I", head[1:])[0]
    return bytes(output)


def websocket(data: bytes, word: Word) -> bytes:
    """Mask frames of WebSocket (RFC 6455, 5.2): their headers stay, except for masking keys.

    Pushed messages are recognised by their first bytes: equal beginnings stay equal.
    """
    output = bytearray()
    while len(output) + 2 <= len(data):
        offset = len(output)
        length, is_masked = data[offset + 1] & 0x7F, data[offset + 1] & 0x80
        extra = 2 if length == 126 else 8 if length == 127 else 0
        if extra:
            length = int.from_bytes(data[offset + 2 : offset + 2 + extra], "big")
        if data[offset] & 0x30 or data[offset] & 0xF not in _OPCODES or length >= 1 << 32:
            break  # bits that no extension in use sets
        output += data[offset : offset + 2 + extra]
        key = data[len(output) : len(output) + 4] if is_masked else bytes(4)
        output += bytes(4 if is_masked else 0)
        payload = data[len(output) : len(output) + length]
        opening = bytes(byte ^ key[i % 4] for i, byte in enumerate(payload[:OPENING_BYTES])) if len(key) == 4 else b""
        output += word(opening) + opaque(payload[len(opening) :])
    return bytes(output[: len(data)]) + opaque(data[len(output) :])


def dns(data: bytes, word: Word) -> bytes:
    """Mask DNS over TCP (RFC 1035, 4.1): headers and the type of the question stay; names are replaced."""
    output = bytearray()
    while len(output) + 14 <= len(data):
        offset = len(output)
        end = offset + 2 + int.from_bytes(data[offset : offset + 2], "big")
        header = data[offset : offset + 14]
        if header[4] & 0x78 or header[6] or header[7] > 1 or header[8] or header[10] or header[12]:
            break  # no header: a plain query has no other counts
        output += header
        while len(output) < min(end, len(data)) and 0 < data[len(output)] < 64:
            label = data[len(output) + 1 : len(output) + 1 + data[len(output)]]
            output += data[len(output) : len(output) + 1] + word(label)
        if data[len(output) : len(output) + 2] == b"\0\0" and data[len(output) + 3 : len(output) + 5] == b"\0\1":
            output += data[len(output) : len(output) + 5]  # the name's end, a type, the Internet
        output += bytes(max(0, min(end, len(data)) - len(output)))
    return bytes(output[: len(data)]) + bytes(max(0, len(data) - len(output)))


def masked(protocol: str, data: bytes, from_client: bool, word: Word) -> bytes:
    """Mask the bytes of one direction; `protocol` is that of the table `streams`."""
    if protocol == "tls":
        output = _tls(data, word)
    elif protocol == "websocket":
        output = _http(data, from_client, word, partial(websocket, word=word))
    elif protocol == "dns":
        output = dns(data, word)
    elif protocol in ("http2", "grpc"):
        frames = partial(http2, from_client=from_client, grpc=protocol == "grpc")
        first = _REQUEST if from_client else _STATUS
        output = _http(data, from_client, word, frames) if first.match(data) else frames(data)
    elif protocol == "http":
        output = _http(data, from_client, word, None)
    else:
        output = opaque(data)
    assert len(output) == len(data)
    return output


def _http(data: bytes, from_client: bool, word: Word, upgraded: Mask | None) -> bytes:
    """Mask messages of HTTP/1; `upgraded` masks the bytes after a change of protocol."""
    first = _REQUEST if from_client else _STATUS
    output = bytearray()
    offset = 0
    while offset < len(data):
        match = first.match(data, offset)
        if match is None and upgraded and not output:
            return upgraded(data)
        if match is None:  # inside a body whose head was not captured: go on at the next head
            next_head = first.search(data, offset + 1)
            end = next_head.start() if next_head else len(data)
            output += opaque(data[offset:end])
            offset = end
            continue
        head = _Head(data, match, from_client, word)
        output += head.masked
        offset += len(head.masked)
        if upgraded and head.upgrades:
            return bytes(output) + upgraded(data[offset:])
        if head.body is None:
            body = _chunked(data, offset, head.mask)
        elif first.match(data, offset):  # the answer to HEAD: a length, and no body
            body = b""
        else:
            body = head.mask(data[offset : offset + head.body])
        output += body
        offset += len(body)
    return bytes(output)


class _Head:
    """A masked message head, and the length of its body.

    `body` is the length, None if it is chunked; `mask` masks the body's content.
    """

    def __init__(self, data: bytes, start: re.Match[bytes], from_client: bool, word: Word):
        """Mask the first line and the fields of a head, and find how long its body is."""
        self.mask: Mask = opaque
        self._word = word
        if from_client:
            target = start.group(2)
            target = target if target == b"*" else _URL_PART.sub(lambda name: word(name.group()), target)
            verb = start.group(1) if start.group(1) in _METHODS else b"X" * len(start.group(1))
            output = bytearray(verb + b" " + target + b" " + start.group(3))
            is_bodiless = until_close = False
        else:
            output = bytearray(start.group(1))
            if start.group(2):
                output += b" " + opaque(start.group(2)[1:])
            is_bodiless = start.group(1)[-3:] in (b"204", b"304") or start.group(1)[-3:-2] == b"1"
            until_close = not is_bodiless
        output += data[start.start() + len(output) : start.end()]
        offset, self._length, self._chunked, self._upgrade = start.end(), -1, False, False
        while line := _LINE.match(data, offset):
            offset = line.end()
            output += self._field(line.group(1)) + line.group(2)
            if not line.group(1):
                break
        self.masked = bytes(output)
        self.upgrades = self._upgrade and (from_client or start.group(1)[-3:] == b"101")
        self.body: int | None = self._length
        if is_bodiless:
            self.body = 0
        elif self._chunked:
            self.body = None
        elif self._length < 0:
            self.body = len(data) if until_close else 0

    def _field(self, line: bytes) -> bytes:
        name, colon, value = line.partition(b":")
        field = name.strip().lower()
        if field == b"content-length" and value.strip().isdigit() and len(value.strip()) <= _DIGITS:
            self._length = int(value)
            return line
        if field in _PLAIN_WORDS:
            self._chunked = self._chunked or (field == b"transfer-encoding" and b"chunked" in value.lower())
            self._upgrade = self._upgrade or field == b"upgrade"
            plain_words = _PLAIN_WORDS[field]
            return name + colon + _MARKED.sub(lambda part: _plain(part.group(), plain_words, field == b"server"), value)
        if field == b"host" and colon:
            text = value.lstrip(b" \t")
            leading_spaces = value[: len(value) - len(text)]
            return name + colon + leading_spaces + _URL_PART.sub(lambda part: self._word(part.group()), text)
        if field == b"content-type" and (media_type := _STREAMED.match(value)):
            self.mask = _lines
            return name + colon + media_type.group() + opaque(value[media_type.end() :])
        return (name if field in _KNOWN else opaque(name)) + colon + _spaced(value)


def _plain(word: bytes, known_words: Container[bytes], may_be_version: bool) -> bytes:
    """Return the word if it is known, or a version number where one may be; else as many bytes."""
    return word if word.lower() in known_words or (may_be_version and _VERSION.fullmatch(word)) else opaque(word)


def _lines(body: bytes) -> bytes:
    """Mask a body of events or records; line ends stay, and colons that begin comments."""
    return _SHOWN.sub(lambda part: opaque(part.group()), body)


def _spaced(value: bytes) -> bytes:
    """Return a header's value, masked except for leading spaces."""
    text = value.lstrip(b" \t")
    return value[: len(value) - len(text)] + opaque(text)


def _chunked(data: bytes, offset: int, mask: Mask) -> bytes:
    """Mask a chunked body: sizes stay; extensions, data and trailers do not."""
    output = bytearray()
    start = offset
    while size := _CHUNK.match(data, offset):
        length = int(size.group(1), 16)
        output += size.group(1) + opaque(size.group(2)) + size.group(3)
        offset = size.end()
        if length == 0:
            while line := _LINE.match(data, offset):
                offset = line.end()
                name, colon, value = line.group(1).partition(b":")
                output += opaque(name) + colon + _spaced(value) + line.group(2)
                if not line.group(1):
                    return bytes(output)
            break
        output += mask(data[offset : offset + length])
        offset += length
        if end := re.compile(rb"\r?\n").match(data, offset):
            output += end.group()
            offset = end.end()
    assert len(output) == min(offset, len(data)) - start
    return bytes(output)


def _tls(data: bytes, word: Word) -> bytes:
    """Mask TLS records: heads, alerts and plain handshakes keep their form, the rest becomes zeros."""
    output = bytearray()
    offset, is_readable, message_left = 0, True, 0
    while offset + 5 <= len(data):
        if not _RECORD.match(data, offset):  # plain text before STARTTLS, or a record without its header
            next_record = _RECORD.search(data, offset + 1)
            end = next_record.start() if next_record else len(data)
            output += bytes(end - offset)
            offset = end
            continue
        record_type, length = data[offset], int.from_bytes(data[offset + 3 : offset + 5], "big")
        content = data[offset + 5 : offset + 5 + length]
        output += data[offset : offset + 5]
        if record_type == 20 or (record_type == 21 and length == 2):
            output += (
                content if content[:1] in (b"\1", b"\2") and record_type + len(content) <= 23 else bytes(len(content))
            )
        elif record_type == 22 and is_readable:
            masked_content, message_left = _handshake(content, message_left, word)
            output += masked_content
        else:
            output += bytes(len(content))
        is_readable = is_readable and record_type != 20
        offset += 5 + len(content)
    return bytes(output) + bytes(len(data) - len(output))


def _handshake(content: bytes, message_left: int, word: Word) -> tuple[bytes, int]:
    """Mask handshake messages: kinds and lengths stay, and the fields of hellos that choose the protocol.

    The first `message_left` bytes belong to a message of the record before; returns the same for the next record.
    """
    output = bytearray(min(message_left, len(content)))
    offset = len(output)
    message_left -= offset
    while offset + 4 <= len(content):
        message_type, length = content[offset], int.from_bytes(content[offset + 1 : offset + 4], "big")
        message = content[offset + 4 : offset + 4 + length]
        output += content[offset : offset + 4]
        output += _hello(message, message_type == 1, word) if message_type in (1, 2) else bytes(len(message))
        offset += 4 + len(message)
        message_left = length - len(message)
    return bytes(output) + bytes(len(content) - len(output)), message_left


def _hello(message: bytes, is_client: bool, word: Word) -> bytes:
    """Mask a hello (RFC 8446, 4.1.2): lengths and known values stay."""
    output = bytearray(len(message))

    def keep(offset: int, value: bytes) -> None:
        output[offset : offset + len(value)] = value[: max(0, len(message) - offset)]

    if message[:1] == b"\3":
        keep(0, message[:2] if message[1:2] <= b"\4" else b"\3\3")
    if message[2:34] == _RETRY:
        keep(2, _RETRY)
    offset = 34
    if offset >= len(message):
        return bytes(output)
    keep(offset, message[offset : offset + 1])
    offset += 1 + message[offset]
    if is_client:
        size = int.from_bytes(message[offset : offset + 2], "big")
        keep(offset, message[offset : offset + 2])
        for suite_at in range(offset + 2, offset + 2 + size - 1, 2):
            keep(suite_at, _suite(message[suite_at : suite_at + 2]))
        offset += 2 + size
        keep(offset, message[offset : offset + 1])
        offset += 1 + (message[offset] if offset < len(message) else 0)
    else:
        keep(offset, _suite(message[offset : offset + 2]))
        offset += 3
    keep(offset, message[offset : offset + 2])
    offset += 2
    while offset + 4 <= len(message):
        number, length = struct.unpack_from(">HH", message, offset)
        value = message[offset + 4 : offset + 4 + length]
        keep(offset, message[offset : offset + 2] if number in _EXTENSIONS else _UNKNOWN)
        keep(offset + 2, message[offset + 2 : offset + 4])
        keep(offset + 4, _extension(number, value, is_client, word))
        offset += 4 + length
    return bytes(output)


def _suite(suite: bytes) -> bytes:
    """Return a registered cipher suite, else GREASE."""
    is_registered = suite[:1] in (b"\0", b"\xc0") or suite[:1] in (b"\x13", b"\xcc")
    return suite if is_registered else _UNKNOWN[: len(suite)]


def _extension(number: int, value: bytes, is_client: bool, word: Word) -> bytes:
    """Mask an extension's content: the server's name is replaced; known protocols and versions stay."""
    if number == _SNI and len(value) > 5 and int.from_bytes(value[3:5], "big") == len(value) - 5:
        head = (len(value) - 2).to_bytes(2, "big") + b"\0" + value[3:5]
        return head + re.sub(rb"[^.]+", lambda part: word(part.group()), value[5:])
    if number == _ALPN and int.from_bytes(value[:2], "big") == len(value) - 2:
        protocols = bytearray(value[:2])
        while len(protocols) < len(value):
            name = value[len(protocols) + 1 : len(protocols) + 1 + value[len(protocols)]]
            protocols += bytes([len(name)]) + (name if name in _ALPNS else word(name))
        return bytes(protocols)
    if number == _VERSIONS:
        head = value[:1] if is_client else b""
        pairs = [value[offset : offset + 2] for offset in range(len(head), len(value), 2)]
        if not is_client or head == bytes([len(value) - 1]):
            versions = (pair if pair[:1] == b"\3" and pair[1:] <= b"\4" else _UNKNOWN[: len(pair)] for pair in pairs)
            return head + b"".join(versions)
    return bytes(len(value))
