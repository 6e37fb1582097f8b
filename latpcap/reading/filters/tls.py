"""Fields of TLS records (RFC 5246, RFC 8446), with Wireshark's names.

TCP segments are added in the order of the capture; a record's fields belong to the frame that completes it. Nothing is
decrypted. After lost or reordered segments the incomplete record of that direction is dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
from typing import Any

_MAX_RECORD_BYTES = 16_384 + 2_048
"""Largest encrypted record of TLS 1.2 (RFC 5246, section 6.2.3)."""
_MAX_DIRECTIONS = 1 << 16
"""Upper bound on the directions kept; a full table is cleared, so that memory stays bounded."""
_MAX_MESSAGE_BYTES = 1 << 18
"""Upper bound on the bytes kept of an incomplete handshake message."""
_CHANGE, _ALERT, _HANDSHAKE, _DATA, _HEARTBEAT = 20, 21, 22, 23, 24
"""Types of records (RFC 8446, 5.1; RFC 6520)."""
_CLIENT_HELLO, _SERVER_HELLO, _TICKET, _CERTIFICATE, _SERVER_KEY, _CLIENT_KEY = 1, 2, 4, 11, 12, 16
"""Types of handshake messages (RFC 8446, 4; RFC 5246, 7.4)."""
_GROUPS, _FORMATS, _NAMED_CURVE = 10, 11, 3
"""Extensions of a hello: groups and point formats; the type of a curve that is given by its number (RFC 8422)."""
_TLS12, _TLS13 = 0x0303, 0x0304
"""Numbers of versions."""


class _Direction:
    """State of one direction of a connection."""

    def __init__(self) -> None:
        self.start: int | None = None
        """Sequence number of the SYN; None if it was not captured."""
        self.next_seq: int | None = None
        """Expected sequence number of the next segment; None before the first one."""
        self.pending = b""
        """Bytes of an incomplete record."""
        self.frames: list[int] = []
        """Frames that carried `pending`."""
        self.messages = b""
        """Bytes of an incomplete handshake message, from earlier records."""
        self.encrypted = False
        """Whether a ChangeCipherSpec was seen."""


class Tls:
    """TLS state of every connection of a capture."""

    def __init__(self) -> None:
        self.frame = 0
        """Number of the current frame; set by the caller."""
        self.joined: list[tuple[list[int], int]] = []
        """Records that several frames carried: their frames, and the record's length in bytes."""
        self.directions: dict[tuple[Any, ...], _Direction] = {}
        """By (source, destination)."""
        self.tls13: set[frozenset[Any]] = set()
        """Connections whose server chose TLS 1.3."""
        self.named_curve: set[frozenset[Any]] = set()
        """Connections whose server sent an elliptic curve key (ECDHE)."""
        self.tls12: set[frozenset[Any]] = set()
        """Connections in TLS 1.2, whose ServerKeyExchange names the signature algorithm."""

    def segment(self, ends: tuple[Any, Any], seq: int, syn: bool, payload: bytes, out: dict[str, list[Any]]) -> None:
        """Add to `out` the fields of the records that this segment completes."""
        if len(self.directions) > _MAX_DIRECTIONS:
            self.directions.clear()
        if syn and ((earlier := self.directions.get(ends)) is None or earlier.start != seq):  # not a repeated SYN
            self.directions[ends] = _Direction()
            self.directions[ends].start = seq
            self.tls13.discard(frozenset(ends))
        if not payload:
            return
        # 1. Drop bytes that were seen before, and the incomplete record where bytes are missing.
        direction = self.directions.setdefault(ends, _Direction())
        if direction.next_seq is not None:
            ahead = (seq - direction.next_seq) & 0xFFFFFFFF
            if ahead >= 1 << 31:
                repeated = (direction.next_seq - seq) & 0xFFFFFFFF
                if repeated >= len(payload):
                    return
                payload, seq = payload[repeated:], direction.next_seq
            elif ahead:
                direction.pending, direction.messages = b"", b""
        direction.next_seq = (seq + len(payload)) & 0xFFFFFFFF
        # 2. Read the complete records, and keep the rest for the next segment.
        data = direction.pending + payload
        frames = [*direction.frames, self.frame] if direction.pending else [self.frame]
        direction.pending = b""
        while len(data) >= 5:
            record_type, version, length = struct.unpack_from(">BHH", data)
            if not (_CHANGE <= record_type <= _HEARTBEAT and version >> 8 == 3 and length <= _MAX_RECORD_BYTES):
                return
            if len(data) < 5 + length:
                break
            self._record(direction, frozenset(ends), record_type, version, data[5 : 5 + length], out)
            if len(frames) > 1:
                self.joined.append((frames, 5 + length))
            frames = [self.frame]
            data = data[5 + length :]
        if data and _CHANGE <= data[0] <= _HEARTBEAT:
            direction.pending, direction.frames = data, frames

    def _record(
        self,
        direction: _Direction,
        ends: frozenset[Any],
        record_type: int,
        version: int,
        body: bytes,
        out: dict[str, list[Any]],
    ) -> None:
        """Add the fields of one record, and of the handshake messages that it completes."""

        def add(name: str, value: Any) -> None:
            out.setdefault(name, []).append(value)

        add("tls", body)
        add("tls.record", 1)
        opaque = record_type == _DATA and ends in self.tls13
        add("tls.record.opaque_type" if opaque else "tls.record.content_type", record_type)
        add("tls.record.version", version)
        add("tls.record.length", len(body))
        if record_type == _DATA:
            add("tls.app_data", body)
        elif record_type == _CHANGE:
            add("tls.change_cipher_spec", 1)
            direction.encrypted = True
        elif record_type == _ALERT:
            add("tls.alert_message", 1)
            if len(body) == 2 and not direction.encrypted:
                add("tls.alert_message.level", body[0])
                add("tls.alert_message.desc", body[1])
        elif record_type == _HANDSHAKE:
            if direction.encrypted and ends not in self.tls13:  # TLS 1.3 hides encrypted ones in application data
                add("tls.handshake", 1)
                return
            data = direction.messages + body
            while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[1:4], "big"):
                size = int.from_bytes(data[1:4], "big")
                add("tls.handshake", 1)
                add("tls.handshake.type", data[0])
                add("tls.handshake.length", size)
                with contextlib.suppress(IndexError, struct.error):
                    if data[0] in (_CLIENT_HELLO, _SERVER_HELLO):
                        self._hello(ends, data[0], data[4 : 4 + size], add)
                    else:
                        self._other(ends, data[0], data[4 : 4 + size], add)
                data = data[4 + size :]
            direction.messages = data if len(data) < _MAX_MESSAGE_BYTES else b""

    def _hello(self, ends: frozenset[Any], message_type: int, body: bytes, add: Any) -> None:
        """Add the fields of a ClientHello or ServerHello, and its JA3 fingerprint."""
        version = struct.unpack_from(">H", body)[0]
        add("tls.handshake.version", version)
        if message_type == _SERVER_HELLO and version == _TLS12:
            self.tls12.add(ends)
        add("tls.handshake.random", body[2:34])
        # signed 32 bits, as in Wireshark
        add("tls.handshake.random_time", struct.unpack_from(">i", body, 2)[0] * 10**9)
        add("tls.handshake.random_bytes", body[6:34])
        offset = 34
        add("tls.handshake.session_id_length", body[offset])
        if body[offset]:
            add("tls.handshake.session_id", body[offset + 1 : offset + 1 + body[offset]])
        offset += 1 + body[offset]
        ciphers: list[int] = []
        if message_type == _CLIENT_HELLO:
            size = struct.unpack_from(">H", body, offset)[0]
            add("tls.handshake.cipher_suites_length", size)
            add("tls.handshake.ciphersuites", 1)
            ciphers = _words(body[offset + 2 : offset + 2 + size])
            offset += 2 + size
            methods = body[offset + 1 : offset + 1 + body[offset]]
            add("tls.handshake.comp_methods_length", body[offset])
            add("tls.handshake.comp_methods", 1)
            offset += 1 + body[offset]
        else:
            ciphers, methods = _words(body[offset : offset + 2]), body[offset + 2 : offset + 3]
            offset += 3
        for cipher in ciphers:
            add("tls.handshake.ciphersuite", cipher)
        for method in methods:
            add("tls.handshake.comp_method", method)
        numbers, lists = self._extensions(ends, message_type, body[offset:], add)
        parts = [version, ciphers, numbers, lists.get(_GROUPS, []), lists.get(_FORMATS, [])]
        fingerprint = _ja3(parts if message_type == _CLIENT_HELLO else parts[:3])
        word = "ja3" if message_type == _CLIENT_HELLO else "ja3s"
        add(f"tls.handshake.{word}_full", fingerprint)
        add(f"tls.handshake.{word}", hashlib.md5(fingerprint.encode(), usedforsecurity=False).hexdigest())

    def _extensions(
        self, ends: frozenset[Any], message_type: int, body: bytes, add: Any
    ) -> tuple[list[int], dict[int, list[int]]]:
        """Add the fields of a hello's extensions. Returns their numbers, and the lists of those in the fingerprint."""
        numbers: list[int] = []
        lists: dict[int, list[int]] = {}
        if len(body) >= 2:
            length = struct.unpack_from(">H", body)[0]
            add("tls.handshake.extensions_length", length)
            offset = 2
            while offset + 4 <= min(2 + length, len(body)):
                number, size = struct.unpack_from(">HH", body, offset)
                content = body[offset + 4 : offset + 4 + size]
                add("tls.handshake.extension.type", number)
                add("tls.handshake.extension.len", size)
                numbers.append(number)
                with contextlib.suppress(IndexError, struct.error):
                    self._extension(ends, message_type, number, content, add, lists)
                offset += 4 + size
        return numbers, lists

    def _extension(
        self,
        ends: frozenset[Any],
        message_type: int,
        number: int,
        content: bytes,
        add: Any,
        lists: dict[int, list[int]],
    ) -> None:
        """Add the fields of one extension; `lists` receives the numbers that the fingerprint needs."""
        is_client = message_type == _CLIENT_HELLO
        if number == 0 and is_client and len(content) > 5:
            size, letter, length = struct.unpack_from(">HBH", content)
            add("tls.handshake.extensions_server_name_list_len", size)
            add("tls.handshake.extensions_server_name_type", letter)
            add("tls.handshake.extensions_server_name_len", length)
            add("tls.handshake.extensions_server_name", content[5 : 5 + length].decode("utf-8", "replace"))
        elif number == _GROUPS:
            add("tls.handshake.extensions_supported_groups_length", struct.unpack_from(">H", content)[0])
            add("tls.handshake.extensions_supported_groups", 1)
            lists[number] = _words(content[2:])
            for group in lists[number]:
                add("tls.handshake.extensions_supported_group", group)
        elif number == _FORMATS:
            add("tls.handshake.extensions_ec_point_formats_length", content[0])
            add("tls.handshake.extensions_ec_point_formats", 1)
            lists[number] = list(content[1:])
            for form in lists[number]:
                add("tls.handshake.extensions_ec_point_format", form)
        elif number == 13:
            self._algorithms(content, add)
        elif number == 16 and len(content) > 2:
            add("tls.handshake.extensions_alpn_len", struct.unpack_from(">H", content)[0])
            add("tls.handshake.extensions_alpn_list", 1)
            offset = 2
            while offset < len(content):
                add("tls.handshake.extensions_alpn_str_len", content[offset])
                name = content[offset + 1 : offset + 1 + content[offset]]
                add("tls.handshake.extensions_alpn_str", name.decode("utf-8", "replace"))
                offset += 1 + content[offset]
        elif number == 43:
            if is_client:
                add("tls.handshake.extensions.supported_versions_len", content[0])
            for version in _words(content[1:] if is_client else content):
                add("tls.handshake.extensions.supported_version", version)
            if not is_client and content == _TLS13.to_bytes(2, "big"):
                self.tls13.add(ends)
        elif number == 51:
            self._shares(content, is_client, add)
        elif number == 0xFF01:
            add("tls.handshake.extensions_reneg_info_len", content[0])

    @staticmethod
    def _algorithms(content: bytes, add: Any) -> None:
        add("tls.handshake.sig_hash_alg_len", struct.unpack_from(">H", content)[0])
        add("tls.handshake.sig_hash_algs", 1)
        for pair in _words(content[2:]):
            Tls._algorithm(pair, add)

    @staticmethod
    def _algorithm(pair: int, add: Any) -> None:
        add("tls.handshake.sig_hash_alg", pair)
        add("tls.handshake.sig_hash_hash", pair >> 8)
        add("tls.handshake.sig_hash_sig", pair & 0xFF)

    @staticmethod
    def _shares(content: bytes, is_client: bool, add: Any) -> None:
        offset = 0
        if is_client:
            add("tls.handshake.extensions_key_share_client_length", struct.unpack_from(">H", content)[0])
            offset = 2
        while offset + 2 <= len(content):
            add("tls.handshake.extensions_key_share_group", struct.unpack_from(">H", content, offset)[0])
            if offset + 4 > len(content):
                return  # a HelloRetryRequest has a group without a key
            size = struct.unpack_from(">H", content, offset + 2)[0]
            add("tls.handshake.extensions_key_share_key_exchange_length", size)
            add("tls.handshake.extensions_key_share_key_exchange", content[offset + 4 : offset + 4 + size])
            offset += 4 + size

    def _other(self, ends: frozenset[Any], message_type: int, body: bytes, add: Any) -> None:
        """Add the fields of an unencrypted certificate, key exchange or session ticket."""
        if message_type == _CERTIFICATE:
            total = int.from_bytes(body[:3], "big")
            add("tls.handshake.certificates_length", total)
            add("tls.handshake.certificates", 1)
            offset = 3
            while offset + 3 <= min(3 + total, len(body)):
                size = int.from_bytes(body[offset : offset + 3], "big")
                add("tls.handshake.certificate_length", size)
                add("tls.handshake.certificate", body[offset + 3 : offset + 3 + size])
                offset += 3 + size
        elif message_type == _TICKET:
            lifetime, size = struct.unpack_from(">IH", body)
            add("tls.handshake.session_ticket_lifetime_hint", lifetime)
            add("tls.handshake.session_ticket_length", size)
            if size:
                add("tls.handshake.session_ticket", body[6 : 6 + size])
        elif message_type == _SERVER_KEY and body[0] == _NAMED_CURVE:
            self.named_curve.add(ends)
            add("tls.handshake.server_curve_type", body[0])
            add("tls.handshake.server_named_curve", struct.unpack_from(">H", body, 1)[0])
            add("tls.handshake.server_point_len", body[3])
            add("tls.handshake.server_point", body[4 : 4 + body[3]])
            if ends in self.tls12 and len(body) >= 6 + body[3]:
                self._algorithm(struct.unpack_from(">H", body, 4 + body[3])[0], add)
        elif message_type == _CLIENT_KEY and ends in self.named_curve:
            add("tls.handshake.client_point_len", body[0])
            add("tls.handshake.client_point", body[1 : 1 + body[0]])


def _words(data: bytes) -> list[int]:
    """Return the 16-bit numbers of a list."""
    return [first << 8 | second for first, second in zip(data[::2], data[1::2], strict=False)]


def _ja3(parts: list[Any]) -> str:
    """Return the text of a JA3 fingerprint: lists joined by dashes, without the GREASE values of RFC 8701."""
    texts = []
    for part in parts:
        numbers = part if isinstance(part, list) else [part]
        texts.append("-".join(str(n) for n in numbers if n & 0x0F0F != 0x0A0A or n >> 8 != n & 0xFF))
    return ",".join(texts)
