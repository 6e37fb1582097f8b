"""Make a capture of very many connections, as load tests without keep-alive or SYN floods produce.

    connections.py short OUT.pcap CONNECTIONS     one request each, 12 packets with a snap length of 96
    connections.py reset OUT.pcap CONNECTIONS     as short, 10 packets each: the client ends them with a RST
    connections.py closed OUT.pcap CONNECTIONS    as short, each with its own pair of ends: all stay in memory
    connections.py servers OUT.pcap CONNECTIONS   as short, each with its own server and host name
    connections.py flood OUT.pcap CONNECTIONS     one unanswered SYN each, all from different addresses
    connections.py random OUT.pcap SEGMENTS       one direction of one connection, its segments in random order

Short connections come from 14,116 ports of one client, so ports are reused; six are open at any time. Checksums are 0,
since neither the core nor the tools it is compared with check them.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

SNAP_BYTES = 96
PORTS = 14_116
OPEN = 6
SERVER = bytes([192, 168, 0, 30])
CLIENT = bytes([192, 168, 0, 2])
REQUEST = b"GET / HTTP/1.1\r\nHost: 192.168.0.30\r\nConnection: close\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 612\r\nConnection: close\r\n\r\n"
SYN, FIN, RST, PSH, ACK = 2, 1, 4, 8, 16
ETHERNET = bytes.fromhex("020000000001020000000002") + b"\x08\x00"
FILE_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 2 * SNAP_BYTES, 1)
START_US = 1_700_000_000_000_000

Packet = tuple[int, bytes]
"""Original length and captured bytes."""


def packet(
    src: bytes,
    dst: bytes,
    ports: tuple[int, int],
    seq: int,
    ack: int,
    flags: int,
    payload: bytes,
    kept: int = SNAP_BYTES,
) -> Packet:
    """One TCP packet in Ethernet and IPv4, with the timestamps option."""
    tcp = struct.pack(">HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x80, flags, 502, 0, 0)
    tcp += b"\x01\x01\x08\x0a" + bytes(8) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + src + dst
    frame = ETHERNET + ip + tcp
    return len(frame), frame[:kept]


def connection(number: int, client: bytes = CLIENT, server: bytes = SERVER, request: bytes = REQUEST) -> list[Packet]:
    """Return the 12 packets of a connection: handshake, one request, its response in two packets, and the close."""
    port = 32_768 + number % PORTS
    client_seq, server_seq = number * 2_654_435_761 + 1, number * 40_503 + 7
    body = bytes(612)
    up = lambda *fields: packet(client, server, (port, 80), *fields)  # noqa: E731
    down = lambda *fields: packet(server, client, (80, port), *fields)  # noqa: E731
    after_request, after_answer = client_seq + len(request), server_seq + len(ANSWER) + len(body)
    return [
        up(client_seq - 1, 0, SYN, b""),
        down(server_seq - 1, client_seq, SYN | ACK, b""),
        up(client_seq, server_seq, ACK, b""),
        up(client_seq, server_seq, PSH | ACK, request, SNAP_BYTES if request is REQUEST else 2 * SNAP_BYTES),
        down(server_seq, after_request, ACK, b""),
        down(server_seq, after_request, PSH | ACK, ANSWER),
        up(after_request, server_seq + len(ANSWER), ACK, b""),
        down(server_seq + len(ANSWER), after_request, PSH | ACK, body),
        up(after_request, after_answer, ACK, b""),
        down(after_answer, after_request, FIN | ACK, b""),
        up(after_request, after_answer + 1, FIN | ACK, b""),
        down(after_answer + 1, after_request + 1, ACK, b""),
    ]


def short(connections: int) -> Iterator[Packet]:
    """Yield short connections, `OPEN` at a time, interleaved packet by packet."""
    for first in range(0, connections, OPEN):
        together = [connection(number) for number in range(first, min(first + OPEN, connections))]
        for turn in zip(*together, strict=True):
            yield from turn


def reset(connections: int) -> Iterator[Packet]:
    """Yield connections as `short` does, with a RST of the client instead of the close."""
    for first in range(0, connections, OPEN):
        together = [connection(number)[:9] for number in range(first, min(first + OPEN, connections))]
        for turn in zip(*together, strict=True):
            yield from turn
        for number in range(first, first + len(together)):
            after_request, after_answer = (
                number * 2_654_435_761 + 1 + len(REQUEST),
                number * 40_503 + 7 + len(ANSWER) + 612,
            )
            yield packet(CLIENT, SERVER, (32_768 + number % PORTS, 80), after_request, after_answer, RST, b"")


def closed(connections: int) -> Iterator[Packet]:
    """Yield short connections one after the other, with a new client address for every `PORTS` connections."""
    for number in range(connections):
        yield from connection(number, struct.pack(">I", 0x0A00_0000 + number // PORTS))


def servers(connections: int) -> Iterator[Packet]:
    """Yield connections without a close one after the other, each to another server with another host name."""
    for number in range(connections):
        address = struct.pack(">I", 0x0B00_0000 + number)
        yield from connection(
            number, CLIENT, address, b"GET /%d HTTP/1.1\r\nHost: h%d.example\r\n\r\n" % (number, number)
        )[:7]


def shuffled(segments: int) -> Iterator[Packet]:
    """Yield a handshake, and then unacknowledged segments of 100 bytes in random order."""
    first, peer = 1000, 5000
    ports = (40_000, 80)
    yield packet(CLIENT, SERVER, ports, first - 1, 0, SYN, b"")
    yield packet(SERVER, CLIENT, ports[::-1], peer - 1, first, SYN | ACK, b"")
    yield packet(CLIENT, SERVER, ports, first, peer, ACK, b"")
    indexes = list(range(segments))
    random.Random(7).shuffle(indexes)
    for index in indexes:
        yield packet(CLIENT, SERVER, ports, first + 100 * index, peer, PSH | ACK, bytes(100))


def flood(connections: int) -> Iterator[Packet]:
    """Yield SYNs from addresses that do not repeat."""
    for number in range(connections):
        source = struct.pack(">I", 0x0B00_0000 + number * 7_919 % 0xD000_0000)
        yield packet(source, SERVER, (1024 + number % 60_000, 80), number * 2_654_435_761, 0, SYN, b"")


def write(out: Path, packets: Iterator[Packet]) -> None:
    """Write the packets, ten microseconds apart."""
    with open(out, "wb", buffering=1 << 20) as file:
        file.write(FILE_HEADER)
        for number, (original, kept) in enumerate(packets):
            seconds, us = divmod(START_US + number * 10, 1_000_000)
            file.write(struct.pack("<IIII", seconds, us, len(kept), original) + kept)


if __name__ == "__main__":
    kinds = {"short": short, "reset": reset, "closed": closed, "servers": servers, "flood": flood, "random": shuffled}
    write(Path(sys.argv[2]), kinds[sys.argv[1]](int(sys.argv[3])))
