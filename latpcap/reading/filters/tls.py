"""Fields of TLS records, frame by frame.

TCP payload in the order of the capture in, values by Wireshark's names out: a record's fields belong to the frame that
completes it. Nothing is decrypted; behind lost or reordered segments a direction begins anew.
"""

from __future__ import annotations

import contextlib
import struct
from typing import Any

_MAX_RECORD = 16_384 + 2_048
_MAX_SIDES = 1 << 16
_MAX_MESSAGE = 1 << 18
_CHANGE, _ALERT, _HANDSHAKE, _DATA, _HEARTBEAT = 20, 21, 22, 23, 24
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_TLS13 = 0x0304


class _Side:
    def __init__(self) -> None:
        self.next: int | None = None
        self.held = b""
        self.messages = b""
        self.encrypted = False
        self.start: int | None = None


class Tls:
    """The TLS of every connection of a capture."""

    def __init__(self) -> None:
        self.sides: dict[tuple[Any, ...], _Side] = {}
        self.modern: set[frozenset[Any]] = set()

    def segment(self, ends: tuple[Any, Any], seq: int, syn: bool, payload: bytes, out: dict[str, list[Any]]) -> None:
        """Add to `out` what the records say that this segment completes."""
        if len(self.sides) > _MAX_SIDES:
            self.sides.clear()
        if syn and ((known := self.sides.get(ends)) is None or known.start != seq):  # not a repeated SYN
            self.sides[ends] = _Side()
            self.sides[ends].start = seq
            self.modern.discard(frozenset(ends))
        if not payload:
            return
        side = self.sides.setdefault(ends, _Side())
        if side.next is not None:
            ahead = (seq - side.next) & 0xFFFFFFFF
            if ahead >= 1 << 31:
                repeated = (side.next - seq) & 0xFFFFFFFF
                if repeated >= len(payload):
                    return  # all of it was here
                payload, seq = payload[repeated:], side.next
            elif ahead:
                side.held, side.messages = b"", b""
        side.next = (seq + len(payload)) & 0xFFFFFFFF
        data = side.held + payload
        side.held = b""
        while len(data) >= 5:
            kind, version, length = struct.unpack_from(">BHH", data)
            if not (_CHANGE <= kind <= _HEARTBEAT and version >> 8 == 3 and length <= _MAX_RECORD):
                return
            if len(data) < 5 + length:
                break
            self._record(side, frozenset(ends), kind, version, data[5 : 5 + length], out)
            data = data[5 + length :]
        if data and _CHANGE <= data[0] <= _HEARTBEAT:
            side.held = data

    def _record(
        self, side: _Side, ends: frozenset[Any], kind: int, version: int, body: bytes, out: dict[str, list[Any]]
    ) -> None:
        def add(name: str, value: Any) -> None:
            out.setdefault(name, []).append(value)

        add("tls", body)
        add("tls.record", 1)
        opaque = kind == _DATA and ends in self.modern
        add("tls.record.opaque_type" if opaque else "tls.record.content_type", kind)
        add("tls.record.version", version)
        add("tls.record.length", len(body))
        if kind == _DATA:
            add("tls.app_data", body)
        elif kind == _CHANGE:
            add("tls.change_cipher_spec", 1)
            side.encrypted = True
        elif kind == _ALERT:
            add("tls.alert_message", 1)
            if len(body) == 2 and not side.encrypted:
                add("tls.alert_message.level", body[0])
                add("tls.alert_message.desc", body[1])
        elif kind == _HANDSHAKE:
            if side.encrypted:
                add("tls.handshake", 1)
                return
            data = side.messages + body
            while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[1:4], "big"):
                size = int.from_bytes(data[1:4], "big")
                add("tls.handshake", 1)
                add("tls.handshake.type", data[0])
                add("tls.handshake.length", size)
                with contextlib.suppress(IndexError, struct.error):
                    if data[0] in (_CLIENT_HELLO, _SERVER_HELLO):
                        self._hello(ends, data[0], data[4 : 4 + size], add)
                data = data[4 + size :]
            side.messages = data if len(data) < _MAX_MESSAGE else b""

    def _hello(self, ends: frozenset[Any], kind: int, body: bytes, add: Any) -> None:
        add("tls.handshake.version", struct.unpack_from(">H", body)[0])
        add("tls.handshake.random", body[2:34])
        place = 34
        add("tls.handshake.session_id_length", body[place])
        if body[place]:
            add("tls.handshake.session_id", body[place + 1 : place + 1 + body[place]])
        place += 1 + body[place]
        if kind == _CLIENT_HELLO:
            size = struct.unpack_from(">H", body, place)[0]
            for at in range(place + 2, place + 2 + size, 2):
                add("tls.handshake.ciphersuite", struct.unpack_from(">H", body, at)[0])
            place += 2 + size
            place += 1 + body[place]
        else:
            add("tls.handshake.ciphersuite", struct.unpack_from(">H", body, place)[0])
            place += 3
        if place + 2 > len(body):
            return
        end = place + 2 + struct.unpack_from(">H", body, place)[0]
        place += 2
        while place + 4 <= min(end, len(body)):
            number, size = struct.unpack_from(">HH", body, place)
            held = body[place + 4 : place + 4 + size]
            add("tls.handshake.extension.type", number)
            if number == 0 and kind == _CLIENT_HELLO and len(held) > 5:
                name = held[5 : 5 + struct.unpack_from(">H", held, 3)[0]]
                add("tls.handshake.extensions_server_name", name.decode("utf-8", "replace"))
            elif number == 16 and len(held) > 2:
                at = 2
                while at < len(held):
                    name = held[at + 1 : at + 1 + held[at]]
                    add("tls.handshake.extensions_alpn_str", name.decode("utf-8", "replace"))
                    at += 1 + held[at]
            elif number == 43:
                versions = held[1:] if kind == _CLIENT_HELLO else held
                for at in range(0, len(versions) - 1, 2):
                    add("tls.handshake.extensions.supported_version", struct.unpack_from(">H", versions, at)[0])
                if kind == _SERVER_HELLO and held == _TLS13.to_bytes(2, "big"):
                    self.modern.add(ends)
            place += 4 + size
