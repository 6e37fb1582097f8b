"""Does a secret that stands in any field of any protocol leave in an anonymised slice? Every run plants others."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path

import pytest
from makepcap import Ends, Segment, Talk, pcap_of

import latpcap as lp
from latpcap.reading.filters.fields import FIELDS
from latpcap.reading.filters.source import Source

LEAST = 4
"""So many bytes of a secret are a leak."""


class Planted:
    """Secrets of bytes that are no ASCII; `leaks` finds what is left of them."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self.all: list[bytes] = []

    def __call__(self, size: int | None = None) -> bytes:
        secret = bytes(self._rng.randrange(0x80, 0x100) for _ in range(size or self._rng.randrange(6, 13)))
        self.all.append(secret)
        return secret

    def leaks(self, data: bytes) -> list[bytes]:
        pieces = {s[at : at + LEAST] for s in self.all for at in range(len(s) - LEAST + 1)}
        return [piece for piece in pieces if piece in data]


def http(s: Planted) -> tuple[bytes, bytes]:
    fields = [b"Host", b"Connection", b"Upgrade", b"Expect", b"TE", b"Transfer-Encoding", b"Server", b"Content-Type",
              b"User-Agent", b"Cookie", b"Authorization", b"Content-Length", b"Keep-Alive", b"X-" + s()]  # fmt: skip
    asked = b"".join(name + b": " + s() + b" ,;" + s() + b"/" + s() + b"\r\n" for name in fields if name[0] != 84)
    request = b"GET /" + s() + b"?" + s() + b"=" + s() + b"#" + s() + b"%" + s() + b" HTTP/1.1\r\nHost: a." + s()
    request += b":" + s() + b"@" + s() + b"\r\n" + asked + b"Content-Length: 60\r\n\r\n"
    inner = b"\r\nPOST /" + s() + b" HTTP/1.1\r\nServer: " + s() + b"\r\nTE: " + s() + b"\r\n\r\n"
    answer = b"HTTP/1.1 200 " + s() + b"\r\nServer: nginx/1.22.1 (" + s() + b")\r\nX: " + s() + b"\r\n"
    chunks = (
        answer + b"Transfer-Encoding: chunked\r\n\r\n6;" + s() + b"\r\n" + s(6) + b"\r\n0\r\n" + s() + b": 1\r\n\r\n"
    )
    return request + inner.ljust(60, b"\xff") + s() + inner, chunks + s() + b"\r\n" + answer + b"\r\n" + s()


def tls(s: Planted) -> tuple[bytes, bytes]:
    def extension(kind: int, value: bytes) -> bytes:
        return struct.pack(">HH", kind, len(value)) + value

    def record(kind: int, value: bytes) -> bytes:
        return bytes([kind, 3, 3]) + struct.pack(">H", len(value)) + value

    name, alpn = b"www." + s() + b".example", s()
    sni = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name
    protocols = b"\x02h2" + bytes([len(alpn)]) + alpn
    extensions = [extension(0, sni), extension(16, struct.pack(">H", len(protocols)) + protocols), extension(43, s()),
                  extension(43, b"\4\3\4" + s(2)), extension(0x8A8A, s()), extension(13, s()), extension(0, s()),
                  extension(16, s()), extension(51, s()), s(3)]  # fmt: skip
    suites = b"\x13\x01" + s(8)
    hello = b"\3\3" + s(32) + b"\x08" + s(8) + struct.pack(">H", len(suites)) + suites + b"\1\0"
    body = b"".join(extensions)
    hello += struct.pack(">H", len(body)) + body
    shake = b"\1" + len(hello).to_bytes(3, "big") + hello
    other = b"\3\3" + s(32) + b"\x08" + s(8) + b"\x13\1\0" + struct.pack(">H", len(body)) + body
    answer = b"\2" + len(other).to_bytes(3, "big") + other
    tail = record(20, b"\1") + record(20, s()) + record(21, s(2) + s()) + record(23, s()) + record(22, s()) + s()
    return record(22, shake) + tail, record(22, answer) + record(22, b"\x0b\0\0\x0a" + s(10)) + tail


def http2(s: Planted) -> tuple[bytes, bytes]:
    def frame(kind: int, flags: int, stream: int, value: bytes) -> bytes:
        return len(value).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + value

    common = frame(4, 0, 0, struct.pack(">HI", 3, 100) + s(6) + struct.pack(">H", 0xF000) + s(4)) + frame(6, 0, 0, s(8))
    common += frame(7, 0, 0, struct.pack(">I", 1) + s(4) + s()) + frame(2, 0, 1, s(5)) + frame(3, 0, 9, s(4))
    head = frame(1, 4, 1, b"\x82\x84\x86\x41\x08" + s(8)) + frame(
        1, 0x2C, 3, b"\2" + s(5) + b"\x82\x84\x86" + s(7) + s(2)
    )
    data = (
        frame(0, 0, 1, s()) + frame(0, 9, 1, b"\x06" + s() + s(6)) + frame(9, 4, 3, s()) + frame(0x77, 0, 1, s()) + s()
    )
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    return preface + common + head + data, common + frame(1, 4, 1, b"\x88" + s()) + data


def websocket(s: Planted) -> tuple[bytes, bytes]:
    request = b"GET /" + s() + b" HTTP/1.1\r\nHost: " + s() + b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    answer = b"HTTP/1.1 101 " + s() + b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + s()
    frames = b"\x81\x08" + s(8) + b"\x82\x8c" + s(4) + s(12) + b"\xf1\x08" + s(8) + s()
    return request + b"Sec-WebSocket-Key: " + s() + b"\r\n\r\n" + frames, answer + b"\r\n\r\n" + frames


def dns(s: Planted) -> tuple[bytes, bytes]:
    label = s(8)
    query = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\x08" + label + b"\3com\0" + b"\0\1\0\1"
    answer = query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + query[12:] + b"\xc0\x0c\0\x10\0\1\0\0\0\0\0\x08" + s(8)
    return struct.pack(">H", len(query)) + query + s(), struct.pack(">H", len(answer)) + answer + s()


def commands(s: Planted) -> tuple[bytes, bytes]:
    redis = b"*2\r\n$4\r\nAUTH\r\n$8\r\n" + s(8) + b"\r\nAUTH " + s() + b"\r\n" + s()
    return redis, b"+OK " + s() + b"\r\n$8\r\n" + s(8) + b"\r\n"


def body(s: Planted) -> tuple[bytes, bytes]:
    """Bodies of every framing, with fields that a filter knows."""
    asked = b"POST /a?hunter HTTP/1.1\r\nHost: h\r\nCookie: hunter=2\r\nAuthorization: Basic hunter\r\n"
    asked += b"Content-Length: 60\r\n\r\n" + (b"hunter" + s(40)).ljust(60, b"\xff")
    packed = gzip.compress(b"hunter" + s(60))
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: hunter=2\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    return asked, head + b"%x\r\n" % len(packed) + packed + b"\r\n0\r\n\r\n"


PROTOCOLS = (http, tls, http2, websocket, dns, commands)


def exchanged(
    number: int, asked: bytes, answered: bytes, size: int, isn: tuple[int, int] = (1000, 5000)
) -> list[Segment]:
    """A connection of its own for these bytes of both sides, so many in a segment."""
    talk = Talk(isn=isn, ends=Ends((f"10.0.{number}.9", 40_000 + number), ("10.9.9.9", 80)))
    talk.open()
    for at in range(0, len(asked), size):
        talk.client(5.0 + at / 97, asked[at : at + size])
    for at in range(0, len(answered), size):
        talk.server(50.0 + at / 97, answered[at : at + size])
    return talk.tape


def test_no_planted_secret_leaves_any_protocol(tmp_path: Path, rng: random.Random) -> None:
    """Whole, and cut anywhere: what a capture begins with may stand in the middle of anything."""
    s, talks = Planted(rng), []
    for number in range(60):
        make = PROTOCOLS[number % len(PROTOCOLS)]
        asked, answered = make(s)
        if number >= 3 * len(PROTOCOLS):
            asked, answered = (data[rng.randrange(len(data)) :] for data in (asked, answered))
        talks += exchanged(number, asked, answered, 97, (rng.randrange(2**32), rng.randrange(2**32)))
    source, target = tmp_path / "a.pcap", tmp_path / "b.pcapng"
    talks.sort(key=lambda segment: segment.time_ns)
    source.write_bytes(pcap_of([(one.time_ns, one.frame()) for one in talks]))
    capture = lp.read(source)
    protocols = set(capture.arrow("streams")["protocol"].to_pylist())
    assert {"http", "tls", "http2", "websocket", "dns"} <= protocols
    assert s.leaks(source.read_bytes()), "they are there"
    assert capture.to_pcap(target, anonymise=True) == capture.frames
    assert s.leaks(target.read_bytes()) == []


SHOWN = {"http.file_data", "http.chunk_data", "tcp.segment_data", "tcp.payload", "http.cookie", "http.authorization",
         "http.request.line", "tls.handshake.extensions_server_name"}  # fmt: skip
"""Fields of filters that hold what was sent."""


def held(capture: lp.Capture) -> dict[str, bytes]:
    """What every field of bytes or text holds, of all frames: a filter can ask for it."""
    source = Source(capture)
    source.whole = True
    wanted = {name: field for name, field in FIELDS.items() if field.kind in ("bytes", "text", "protocol")}
    source.wanted = set(wanted)
    out = {}
    for name, field in wanted.items():
        values = [value for column in field.get(source) for value in column.values.to_pylist()]
        out[name] = b"\0".join(one if isinstance(one, bytes) else str(one).encode("utf-8", "replace") for one in values)
    return out


def test_no_field_of_a_filter_finds_a_secret_in_an_anonymised_slice(tmp_path: Path, rng: random.Random) -> None:
    """Bodies and messages put together again, too: a secret that two frames carry is whole there."""
    s, packets = Planted(rng), []
    for number, make in enumerate([*PROTOCOLS, body]):
        asked, answered = make(s)
        packets += exchanged(number, asked, answered, 31)
    source, target = tmp_path / "a.pcap", tmp_path / "b.pcapng"
    packets.sort(key=lambda segment: segment.time_ns)
    source.write_bytes(pcap_of([(one.time_ns, one.frame()) for one in packets]))
    capture = lp.read(source)
    before = held(capture)
    assert {name for name, data in before.items() if s.leaks(data) or b"\xef\xbf\xbd" in data} >= SHOWN
    assert capture.to_pcap(target, anonymise=True) == capture.frames
    after = held(lp.read(target))
    assert {name: data for name, data in after.items() if s.leaks(data) or b"hunter" in data} == {}
    assert b"hunter" in before["http.file_data"] and b"hunter" in before["http.cookie"]


@pytest.mark.parametrize("link", [1, 113, 276])
def test_no_planted_secret_leaves_a_header(link: int, tmp_path: Path, rng: random.Random) -> None:
    """Options of IP and TCP, whole, behind the last and with wrong lengths; extension headers; padding everywhere."""
    s, packets = Planted(rng), []
    options = [
        b"\1\1" + bytes([254, 14]) + s(12),
        bytes([34, 10]) + s(8) + b"\0" + s(5),
        b"\0" + s(11),
        bytes([8, 20]) + s(18),
        bytes([2, 12]) + s(10),
        bytes([5, 14]) + s(12),
        bytes([30, 12, 0x00]) + s(9),
        bytes([19, 18]) + s(16),
        bytes([254, 200]) + s(14),
        bytes([3, 1]) + s(10),
        b"\1\3\3\7" + bytes([77, 0]) + s(10),
    ]
    for number, option in enumerate(options):
        option = option.ljust((len(option) + 3) // 4 * 4, b"\1")
        offset = (20 + len(option)) // 4
        tcp = struct.pack(">HHIIBBHHH", 40_000 + number, 80, 7, 9, offset << 4, 0x18, 500, 0, 0) + option
        tcp = tcp[:18] + s(4)[:2] + tcp[20:] + b"GET / HTTP/1.1\r\n\r\n"
        for version in (4, 6):
            if version == 4:
                more = bytes([7, 11, 4]) + s(8) + b"\0"
                ip = struct.pack(">BBHHHBBH", 0x48, 0, 32 + len(tcp), number, 0, 64, 6, 0) + s(4) + s(4) + more + tcp
            else:
                home = bytes([60, 2, 201, 16]) + s(16) + bytes([1, 2, 0, 0])
                wide = bytes([6, 1, 99, 10]) + s(10) + b"\0\0"
                whole = home + wide + tcp
                ip = b"\x60" + s(4)[:3] + struct.pack(">HBB", len(whole), 0, 64) + s(16) + s(16) + whole
            kind = b"\x08\x00" if version == 4 else b"\x86\xdd"
            if link == 1:
                frame = s(6) + s(6) + kind + ip + s(10)
            elif link == 113:
                frame = struct.pack(">HHH", 0, 1, 6) + s(6) + s(4)[:2] + kind + ip
                frame = frame if number % 2 else struct.pack(">HHH", 0, 1, 0) + s(8) + kind + ip
            else:
                frame = kind + b"\0\0" + struct.pack(">IHBB", 1, 1, 0, 0) + s(8) + ip
            packets.append((1_700_000_000_000_000_000 + number * 10**7, frame))
    source, target = tmp_path / "a.pcap", tmp_path / "b.pcap"
    data = pcap_of(packets)
    source.write_bytes(data[:20] + struct.pack("<I", link) + data[24:])
    capture = lp.read(source)
    assert capture.to_pcap(target, anonymise=True) >= len(packets) - 4
    assert s.leaks(target.read_bytes()) == []
