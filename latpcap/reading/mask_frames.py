"""Frames of HTTP/2 and WebSocket and messages of DNS, masked: their kinds, lengths and numbers stay.

Reads what one end said, gives as many bytes. A header block of HTTP/2 becomes another of its length that every decoder
takes: GET of / for requests, 200 for answers, and a field without meaning for the rest. So methods, paths and status
codes are gone, and where messages begin and end is not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 9
PRIORITY, WINDOW_UPDATE = 2, 8
_PLAIN = {PRIORITY: 5, RST_STREAM: 4, WINDOW_UPDATE: 4}
"""Numbers of the protocol's own, and how many bytes they take."""
_FLAGS = {DATA: 0x9, HEADERS: 0x2D, SETTINGS: 0x1, PUSH_PROMISE: 0xC, PING: 0x1, CONTINUATION: 0x4}
"""Flags that these frames have (RFC 9113, 6); others have none."""
_SETTINGS = {1, 2, 3, 4, 5, 6, 8, 9}
"""Settings that are registered (RFC 9113, 8441, 9218)."""
_ERRORS = 0xD
"""The highest error code."""
_PADDED, _PRIORITY = 0x8, 0x20
OPENING = 8
_OPCODES = {0, 1, 2, 8, 9, 10}
_LONGEST = 1 << 20
_GET, _OK = (b"\x82", b"\x84", b"\x86"), (b"\x88",)
"""Of HPACK's static table (RFC 7541, A): method GET, path /, scheme http; status 200."""
_FILLER = b"\x90"
"""accept-encoding of the same table: one byte that says nothing."""
_GRPC, _GRPC_AGAIN = b"\x5f\x10application/grpc", b"\xbe"
"""content-type, put into the table; then the newest entry of it."""


def opaque(data: bytes) -> bytes:
    """As many bytes that say nothing."""
    return b"x" * len(data)


def http2(data: bytes, *, from_client: bool, grpc: bool) -> bytes:
    """What one end said in HTTP/2; with `grpc` the lengths of gRPC's messages stay, too."""
    found = bytearray(PREFACE if from_client and data.startswith(PREFACE) else b"")
    begun: set[int] = set()
    messages: dict[int, int] = {}
    fields = _Fields(grpc)
    while len(found) + 9 <= len(data):
        at = len(found)
        length, kind, flags = int.from_bytes(data[at : at + 3], "big"), data[at + 3], data[at + 4]
        stream = int.from_bytes(data[at + 5 : at + 9], "big") & 0x7FFF_FFFF
        unknown = kind > CONTINUATION or flags & ~_FLAGS.get(kind, 0) or data[at + 5] & 0x80
        if length > _LONGEST or unknown or length != _PLAIN.get(kind, length):
            break  # a capture that begins inside a frame: these are no heads
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
    """An error code that is known, else 0."""
    return code if int.from_bytes(code, "big") <= _ERRORS else bytes(len(code))


class _Fields:
    """Header blocks of one end, each of a given length."""

    def __init__(self, grpc: bool):
        self._grpc = grpc
        self._told = False

    def block(self, length: int, lead: tuple[bytes, ...]) -> bytes:
        """A block of this many bytes with as many of these fields as there is room for."""
        found = b""
        for field in (*lead, *self._type(bool(lead))):
            if len(found) + len(field) <= length:
                found += field
                self._told = self._told or field is _GRPC
        while len(found) < length:
            found += _literal(length - len(found)) or _FILLER
        return found

    def _type(self, first: bool) -> tuple[bytes, ...]:
        if not (self._grpc and first):
            return ()
        return (_GRPC_AGAIN,) if self._told else (_GRPC,)


def _literal(total: int) -> bytes:
    """A field that takes so many bytes with its name and lengths (RFC 7541, 6.2.2); empty where none does."""
    for digits in range(1, 5):
        value = total - 3 - digits
        if value >= 0 and len(size := _number(value)) == digits:
            return b"\x00\x01x" + size + opaque(bytes(value))
    return b""


def _number(value: int) -> bytes:
    """An integer behind one bit (RFC 7541, 5.1)."""
    if value < 127:
        return bytes([value])
    found, value = bytearray([127]), value - 127
    while value >= 128:
        found.append(value % 128 | 128)
        value //= 128
    return bytes([*found, value])


def _messages(body: bytes, stream: int, left: dict[int, int]) -> bytes:
    """gRPC's messages in the data of one stream: each has a byte and its length before it."""
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
    """Frames of WebSocket (RFC 6455, 5.2): their heads stay, but for the key that hides a client's payload.

    What a server sends unasked begins alike, and is known by that: equal beginnings stay equal.
    """
    found = bytearray()
    while len(found) + 2 <= len(data):
        at = len(found)
        length, masked = data[at + 1] & 0x7F, data[at + 1] & 0x80
        extra = 2 if length == 126 else 8 if length == 127 else 0
        if extra:
            length = int.from_bytes(data[at + 2 : at + 2 + extra], "big")
        if data[at] & 0x30 or data[at] & 0xF not in _OPCODES or length >= 1 << 32:
            break  # no extension that is in use sets these bits
        found += data[at : at + 2 + extra]
        key = data[len(found) : len(found) + 4] if masked else bytes(4)
        found += bytes(4 if masked else 0)
        payload = data[len(found) : len(found) + length]
        opening = bytes(byte ^ key[place % 4] for place, byte in enumerate(payload[:OPENING])) if len(key) == 4 else b""
        found += word(opening) + opaque(payload[len(opening) :])
    return bytes(found[: len(data)]) + opaque(data[len(found) :])


def dns(data: bytes, word: Callable[[bytes], bytes]) -> bytes:
    """Messages of DNS over TCP (RFC 1035, 4.1): their heads stay, and in the question the type; names are replaced."""
    found = bytearray()
    while len(found) + 14 <= len(data):
        at = len(found)
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if data[at + 4] & 0x78 or data[at + 6] or data[at + 7] > 1 or data[at + 8] or data[at + 10] or data[at + 12]:
            break  # no plain query has other counts: this is no head
        found += data[at : at + 14]
        while len(found) < min(end, len(data)) and 0 < data[len(found)] < 64:
            label = data[len(found) + 1 : len(found) + 1 + data[len(found)]]
            found += data[len(found) : len(found) + 1] + word(label)
        if data[len(found) : len(found) + 2] == b"\0\0" and data[len(found) + 3 : len(found) + 5] == b"\0\1":
            found += data[len(found) : len(found) + 5]  # the name's end, a type, the Internet
        found += bytes(max(0, min(end, len(data)) - len(found)))
    return bytes(found[: len(data)]) + bytes(max(0, len(data) - len(found)))
