"""Make the seeds of the fuzz targets: the first packets of the samples and test cases, as files and as frames, and
short conversations.

Writes core/fuzz/corpus/{container,frame,analysis,messages,tls}/seed-*; existing files stay.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKETS = 24
FEW = 12
"""Packets of a seed of `analysis`, whose rounds take longer: a handshake and some messages."""
RECORDED, LONGEST = 120, 510
"""Frames of a case, and bytes of each segment, in a seed of `messages`."""
NETMON = 10
"""Number of captures that are also written in Network Monitor's formats."""


def _captures() -> Iterator[Path]:
    for folder in ("sample_pcaps", "tests/cases"):
        yield from sorted((ROOT / folder).rglob("*.pcap*"))


def _bytes(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _cut(data: bytes, packets: int = PACKETS) -> tuple[int, bytes, list[bytes]]:
    """Return link type, the capture cut after its first packets, and these packets. Only for little-endian pcap."""
    if data[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        return 1, data[:8192], []
    at, frames = 24, []
    while len(frames) < packets and at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16 : at + 16 + size])
        at += 16 + size
    return struct.unpack_from("<I", data, 20)[0] & 0xFFFF, data[:at], frames


def _main() -> None:
    for target in ("container", "frame", "analysis", "messages", "tls"):
        (HERE / "corpus" / target).mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(_captures()):
        data = _bytes(path)
        link, head, frames = _cut(data)
        (HERE / "corpus" / "container" / f"seed-{number}").write_bytes(b"\x40" + head)
        # its first byte says how the bytes are cut; every fourth value that they are
        (HERE / "corpus" / "analysis" / f"seed-{number}").write_bytes(bytes([number % 256]) + _cut(data, FEW)[1])
        for at, frame in enumerate(frames):
            seed = struct.pack(">HB", link, 255) + frame
            (HERE / "corpus" / "frame" / f"seed-{number}-{at}").write_bytes(seed)
        for minor in (0, 1, 2, 3) if frames and number < NETMON else ():
            for target in ("container", "analysis"):
                seed = b"\x40" + _netmon(minor, frames[:FEW])
                (HERE / "corpus" / target / f"netmon-{number}-{minor}").write_bytes(seed)
    for at, (link, frame) in enumerate(_tunnels()):
        (HERE / "corpus" / "frame" / f"tunnel-{at}").write_bytes(struct.pack(">HB", link, 255) + frame)
    for at, seed in enumerate(_connections()):
        (HERE / "corpus" / "tls" / f"seed-{at}").write_bytes(seed)
    for at, talk in enumerate(_conversations()):
        said = [(at % 2, said) for at, said in enumerate(talk)]
        (HERE / "corpus" / "messages" / f"seed-{at}").write_bytes(_script(said))
    for name, said in _recorded():
        (HERE / "corpus" / "messages" / name).write_bytes(_script(said))


def _script(talk: list[tuple[int, bytes]]) -> bytes:
    """Encode a conversation for the target `messages`, with the reader recognised by content."""
    pieces = ((side, said[at : at + 255]) for side, said in talk for at in range(0, max(1, len(said)), 255))
    return b"\0" + b"".join(bytes([side, len(said)]) + said for side, said in pieces)


def _recorded() -> Iterator[tuple[str, list[tuple[int, bytes]]]]:
    """Yield the first bytes of the first connections of each test case (Ethernet, IPv4), in the order sent."""
    for path in sorted((ROOT / "tests" / "cases").rglob("*.pcap*")):
        talks: dict[tuple[bytes, ...], list[tuple[int, bytes]]] = {}
        for frame in _cut(_bytes(path), RECORDED)[2]:
            segment = (
                frame[14 + (frame[14] & 15) * 4 :] if frame[12:14] == b"\x08\0" and frame[23:24] == b"\x06" else b""
            )
            if len(segment) < 20 or not (said := segment[(segment[12] >> 4) * 4 :]):
                continue
            ends = (frame[26:30] + segment[:2], frame[30:34] + segment[2:4])
            back = (ends[1], ends[0]) in talks
            talks.setdefault((ends[1], ends[0]) if back else ends, []).append((int(back), said[:LONGEST]))
        yield from ((f"{path.parent.name}-{at}", talk) for at, talk in enumerate(list(talks.values())[:2]))


def _conversations() -> Iterator[list[bytes]]:
    """Encode messages that alternate between client and server, beginning with the client."""

    def http2(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    preface, settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http2(4, 0, 0, b"")
    get = http2(1, 5, 1, b"\x82\x86\x84\x41\x03lab\x44\x02/a")
    answer = http2(1, 4, 1, b"\x88\x5f\x10application/grpc") + http2(0, 0, 1, b"\0\0\0\0\x01x")
    push = http2(5, 4, 1, b"\0\0\0\x02\x82\x84") + http2(1, 5, 2, b"\x88") + http2(3, 0, 1, b"\0\0\0\x08")
    yield [preface + settings + get, settings + answer + push, get, answer]
    upgrade = b"GET / HTTP/1.1\r\nUpgrade: %s\r\n\r\n"
    switch = b"HTTP/1.1 101 S\r\nUpgrade: %s\r\n\r\n"
    yield [upgrade % b"h2c", switch % b"h2c" + settings + answer, preface + settings]
    text, masked = b'\x81\x09{"id": 1}', b'\x81\x89\0\0\0\0{"id": 1}'
    yield [upgrade % b"websocket", switch % b"websocket" + text, masked + b"\x89\x80\0\0\0\0", text, masked]
    events = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    events += b"9\r\ndata: 1\n\n\r\n0\r\n\r\n"
    yield [b"GET / HTTP/1.1\r\n\r\n", events, b"GET / HTTP/1.1\r\n\r\n", events]
    query = b"\0\x17\0\x07%s\0\x01\0\0\0\0\0\0\x01a\x03lab\0\0\x01\0\x01"
    yield [query % b"\x01\0", query % b"\x81\x83"]
    commands = b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
    replies = b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n+message\r\n$1\r\na\r\n+x\r\n$1\r\nv\r\n"
    yield [commands, replies, b"PING\r\n*1\r\n$7\r\nMONITOR\r\n", b'+PONG\r\n+OK\r\n+1339518083.1 [0 a] "GET"\r\n']
    group = b"P\0\0\0\x0b\0SEL\0\0\0B\0\0\0\x06\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
    rows = b"1\0\0\0\x042\0\0\0\x04D\0\0\0\x06xxC\0\0\0\x08SEL\0Z\0\0\0\x05I"
    login = b"\0\0\0\x10\0\x03\0\0user\0a\0\0"
    yield [login, b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", group + b"Q\0\0\0\x08SEL\0", rows]
    greeting = b"\x10\0\0\0\x0a8.0.36\0\x07\0\0\0salt"
    able, done = b"\x25\0\0\x01\0\x02\0\0" + bytes(28) + b"root\0", b"\x07\0\0\x02\0\0\0\x02\0\0\0"
    result = b"\x01\0\0\x01\x01\x03\0\0\x02def\x05\0\0\x03\xfe\0\0\x02\0\x02\0\0\x04\x01a\x05\0\0\x05\xfe\0\0\x02\0"
    yield [
        b"",
        greeting,
        able,
        done,
        b"\x09\0\0\0\x03SELECT 1",
        result,
        b"\x05\0\0\0\x16SEL?",
        b"\x05\0\0\x01\0" + bytes(4),
    ]


def _connections() -> Iterator[bytes]:
    """Yield TLS connections of captures with embedded keys (Ethernet, IPv4): key log, then side, length and bytes."""
    for path in sorted((ROOT / "tests" / "cases").glob("*_keys/*.pcapng")):
        data, at, keys, talks = path.read_bytes(), 0, b"", dict[int, bytes]()
        while at < len(data):
            kind, size = struct.unpack_from("<II", data, at)
            body = data[at + 8 : at + size - 4]
            if kind == 10:
                keys = body[8 : 8 + struct.unpack_from("<I", body, 4)[0]]
            elif kind == 6:
                frame = body[20 : 20 + struct.unpack_from("<I", body, 12)[0]]
                packet = frame[14 : 14 + struct.unpack_from(">H", frame, 16)[0]]
                segment = packet[(packet[0] & 15) * 4 :]
                ports, said = struct.unpack_from(">HH", segment), segment[(segment[12] >> 4) * 4 :]
                if said:
                    head = struct.pack(">BH", int(ports[0] < ports[1]), len(said))
                    talks[max(ports)] = talks.get(max(ports), b"") + head + said
            at += size
        yield from (struct.pack(">H", len(keys)) + keys + talk for talk in talks.values())


def _netmon(minor: int, frames: list[bytes]) -> bytes:
    """Return the packets as a Network Monitor 2.x file; 1.1 instead of 2.0."""
    out, table = bytearray(128), []
    for number, frame in enumerate(frames):
        table.append(len(out))
        size = len(frame)
        out += struct.pack("<QII", number, size, size) if minor else struct.pack("<IHH", number, size, size)
        out += frame + struct.pack("<HIQB", 1, 0, 13 * 10**16, 0)[: (0, 2, 6, 15)[minor]]
    start = struct.pack("<H8HII", 1, 2023, 11, 2, 14, 22, 13, 20, 5, len(out), 4 * len(table))
    out[:32] = (b"GMBU" + bytes([minor, 2]) if minor else b"RTSS\1\1") + start
    return bytes(out) + struct.pack(f"<{len(table)}I", *table)


def _tunnels() -> Iterator[tuple[int, bytes]]:
    """Return one frame per tunnel and protocol, so that the fuzzer need not guess ports and numbers."""
    tcp = bytes.fromhex("01bb9c40000000050000000650180102000000006162630d")
    four = b"\x45\0" + struct.pack(">H", 20 + len(tcp)) + b"\x12\x34\0\0\x40\x06\0\0\x0a\0\0\1\x0a\0\0\2" + tcp
    six = b"\x60\0\0\0" + struct.pack(">H", len(tcp)) + b"\x06\x40" + bytes(32) + tcp
    ether = bytes(12) + b"\x08\0" + four
    for kind in (0x8847, 0x8864, 0x8100, 0x8909, 0x8926, 0x892F, 0xF1C1, 0x88E5, 0x880B, 0x6558, 0x8903, 0x88E7):
        for inner in (four, six, ether):
            yield 1, bytes(12) + struct.pack(">H", kind) + bytes(4) + inner
    for protocol in (4, 41, 47, 97, 108, 115, 137, 143, 44, 0, 43, 51, 60, 1, 58):
        for inner in (four, six, ether):
            body = bytes(8) + inner
            yield (
                228,
                b"\x45\0"
                + struct.pack(">H", 20 + len(body))
                + b"\0\1\x20\0\x40"
                + bytes([protocol])
                + bytes(10)
                + body,
            )
            yield 229, b"\x60\0\0\0" + struct.pack(">H", len(body)) + bytes([protocol, 64]) + bytes(32) + body
    for port in (1701, 2152, 3386, 3544, 4341, 4754, 4789, 4790, 5072, 5247, 6081, 6343, 6635, 37008):
        for first in (0, 1, 8, 0x30, 0x34, 0x40, 0x45, 0x60):
            body = struct.pack(">HHHH", port, port, 16 + len(four), 0) + bytes([first]) + b"\xff" + bytes(6) + four
            yield 228, b"\x45\0" + struct.pack(">H", 20 + len(body)) + bytes(5) + b"\x11" + bytes(10) + body
    for link in (0, 9, 50, 51, 104, 108, 109, 113, 166, 204, 276, 105, 127):
        yield link, bytes(16) + four


if __name__ == "__main__":
    _main()
