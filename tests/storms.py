"""Captures of many packets that cost a reader much for each, if it looks through what it remembers. No packet is like
the traffic of a kernel: copies, tiny segments, holes, numbers far apart, many streams, hosts, requests and names.

    name, packets = next(iter(STORMS.items()))
    capture = pcap(packets(20_000, random.Random(7)))
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

Packets = Iterator[tuple[int, bytes]]
EPOCH_NS = 1_700_000_000_000_000_000
STEP_NS = 10_000
SYN, ACK, PSH, FIN, RST = 2, 16, 8, 1, 4
CLIENT, SERVER = 0x0A000001, 0x0A000002


def pcap(packets: Packets, snap: int = 200) -> bytes:
    """A file with nanoseconds; longer frames are cut."""
    out = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
    for time_ns, frame in packets:
        kept = frame[:snap]
        out += struct.pack("<IIII", *divmod(time_ns, 10**9), len(kept), len(frame)) + kept
    return bytes(out)


def ip(source: int, target: int, protocol: int, body: bytes, *, number: int = 0, part: int = 0) -> bytes:
    head = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(body), number, part, 64, protocol, 0, source, target)
    return b"\x02\0\0\0\0\2\x02\0\0\0\0\1\x08\0" + head + body


def tcp(
    source: tuple[int, int],
    target: tuple[int, int],
    seq: int,
    ack: int = 0,
    body: bytes = b"",
    flags: int = ACK,
    options: bytes = b"",
    window: int = 60_000,
) -> bytes:
    size = (5 + len(options) // 4) << 4
    head = struct.pack(">HHIIBBHHH", source[1], target[1], seq % 2**32, ack % 2**32, size, flags, window, 0, 0)
    return ip(source[0], target[0], 6, head + options + body)


def udp(source: tuple[int, int], target: tuple[int, int], body: bytes) -> bytes:
    return ip(source[0], target[0], 17, struct.pack(">HHHH", source[1], target[1], 8 + len(body), 0) + body)


def at(frames: Iterator[bytes]) -> Packets:
    return ((EPOCH_NS + STEP_NS * number, frame) for number, frame in enumerate(frames))


C, S = (CLIENT, 40_000), (SERVER, 80)


def handshake(c: tuple[int, int] = C, s: tuple[int, int] = S) -> Iterator[bytes]:
    yield tcp(c, s, 999, 0, b"", SYN, b"\2\4\5\xb4\4\2\3\7")
    yield tcp(s, c, 4999, 1000, b"", SYN | ACK, b"\2\4\5\xb4\4\2\3\7")
    yield tcp(c, s, 1000, 5000)


Frames = Callable[[int, random.Random], Iterator[bytes]]
STORMS: dict[str, Frames] = {}


def storm(frames: Frames) -> Frames:
    STORMS[frames.__name__] = frames
    return frames


def plain(count: int, rng: random.Random) -> Iterator[bytes]:
    """What the others are measured by: requests, answers and ACKs of HTTP on one connection."""
    yield from handshake()
    asked, answered = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
    c, s = 1000, 5000
    for _ in range(count // 3):
        yield tcp(C, S, c, s, asked, ACK | PSH)
        c += len(asked)
        yield tcp(S, C, s, c, answered, ACK | PSH)
        s += len(answered)
        yield tcp(C, S, c, s)


# one connection whose segments nobody acknowledges


@storm
def copies(count: int, rng: random.Random) -> Iterator[bytes]:
    """One segment again and again."""
    yield from handshake()
    frame = tcp(C, S, 1000, 5000, b"x" * 100)
    for _ in range(count):
        yield frame


@storm
def rising(count: int, rng: random.Random) -> Iterator[bytes]:
    yield from handshake()
    for number in range(count):
        yield tcp(C, S, 1000 + number, 5000, b"x")


@storm
def rising_then_copies(count: int, rng: random.Random) -> Iterator[bytes]:
    """Many that rise, fewer than are remembered, then repeats."""
    yield from handshake()
    for number in range(9000):
        yield tcp(C, S, 1000 + number, 5000, b"x")
    for number in range(count - 9000):
        yield tcp(C, S, 1000 + number * 7 % 8000, 5000, b"x")


@storm
def falling(count: int, rng: random.Random) -> Iterator[bytes]:
    yield from handshake()
    for number in range(count):
        yield tcp(C, S, 1000 + 2 * (count - number), 5000, b"x")


@storm
def shuffled(count: int, rng: random.Random) -> Iterator[bytes]:
    yield from handshake()
    for _ in range(count):
        yield tcp(C, S, 1000 + rng.randrange(count), 5000, b"x" * rng.choice((1, 5, 90)))


@storm
def anywhere(count: int, rng: random.Random) -> Iterator[bytes]:
    """Numbers without an order."""
    yield from handshake()
    for _ in range(count):
        yield tcp(C, S, rng.randrange(2**32), rng.randrange(2**32), b"x")


@storm
def longer_and_longer(count: int, rng: random.Random) -> Iterator[bytes]:
    """From one byte on, each longer; whole turns of 1,400."""
    yield from handshake()
    for number in range(count):
        yield tcp(C, S, 1000 + number // 1400, 5000, b"x" * (1 + number % 1400))


@storm
def over_tiny_ones(count: int, rng: random.Random) -> Iterator[bytes]:
    """Tiny segments with holes between them, then long ones over all of them, repeated."""
    yield from handshake()
    for number in range(count // 2):
        yield tcp(C, S, 1002 + 2 * (number % 20_000), 5000, b"x")
    frame = tcp(C, S, 1001, 5000, b"x" * 40_000)
    for _ in range(count // 2):
        yield frame


@storm
def acknowledged_by_bytes(count: int, rng: random.Random) -> Iterator[bytes]:
    """Many copies of long segments, then an ACK for each byte of them."""
    yield from handshake()
    frames = [tcp(C, S, 1000, 5000, b"x" * size) for size in range(30_000, 40_000, 7)]
    for number in range(count // 2):
        yield frames[number % len(frames)]
    for number in range(count // 2):
        yield tcp(S, C, 5000, 1001 + number)


@storm
def selective_acks(count: int, rng: random.Random) -> Iterator[bytes]:
    """Every second segment is missing, and each duplicate ACK names four others."""
    yield from handshake()
    for number in range(count // 2):
        yield tcp(C, S, 1100 + 200 * number, 5000, b"x" * 100)
        blocks = [1100 + 200 * rng.randrange(number + 1) for _ in range(4)]
        options = b"\1\1\5\x22" + b"".join(struct.pack(">II", left, left + 100) for left in blocks)
        yield tcp(S, C, 5000, 1000, b"", ACK, options)


@storm
def selective_acks_of_nothing(count: int, rng: random.Random) -> Iterator[bytes]:
    yield from handshake()
    yield tcp(C, S, 1000, 5000, b"x" * 100)
    for _ in range(count):
        blocks = [rng.randrange(2**32) for _ in range(8)]
        yield tcp(S, C, 5000, 1000, b"", ACK, b"\1\1\5\x22" + struct.pack(">8I", *blocks))


@storm
def repeats_of_repeats(count: int, rng: random.Random) -> Iterator[bytes]:
    """Holes, duplicate ACKs and repairs in turn."""
    yield from handshake()
    for number in range(count // 4):
        yield tcp(C, S, 1200 + 200 * number, 5000, b"x" * 100)
        yield tcp(S, C, 5000, 1000, b"", ACK, b"\1\1\5\x0a" + struct.pack(">II", 1200, 1300 + 200 * number))
        yield tcp(C, S, 1100 + 200 * rng.randrange(number + 1), 5000, b"x" * 100)
        yield tcp(S, C, 5000, 1000)


@storm
def without_handshake(count: int, rng: random.Random) -> Iterator[bytes]:
    """SYNs with other numbers between data of one pair of ports."""
    for _ in range(count // 2):
        yield tcp(C, S, rng.randrange(2**32), 0, b"", SYN)
        yield tcp(C, S, rng.randrange(2**32), 5000, b"x")


@storm
def zero_windows(count: int, rng: random.Random) -> Iterator[bytes]:
    yield from handshake()
    for number in range(count // 2):
        yield tcp(S, C, 5000, 1000 + number, b"", ACK, b"", 0)
        yield tcp(C, S, 1000 + number, 5000, b"x")


# requests


@storm
def pipelined(count: int, rng: random.Random) -> Iterator[bytes]:
    """Requests that nobody answers, then all answers."""
    yield from handshake()
    asked, answered = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    half = count // 2
    for number in range(half):
        yield tcp(C, S, 1000 + number * len(asked), 5000, asked, ACK | PSH)
    for number in range(half):
        yield tcp(S, C, 5000 + number * len(answered), 1000 + half * len(asked), answered, ACK | PSH)


@storm
def unanswered_redis(count: int, rng: random.Random) -> Iterator[bytes]:
    yield from handshake((CLIENT, 40_000), (SERVER, 6379))
    asked = b"*1\r\n$4\r\nPING\r\n"
    for number in range(count):
        yield tcp(C, (SERVER, 6379), 1000 + number * len(asked), 5000, asked, ACK | PSH)


@storm
def streams_of_http2(count: int, rng: random.Random) -> Iterator[bytes]:
    yield from handshake()
    body = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    yield tcp(C, S, 1000, 5000, body)
    seq = 1000 + len(body)
    for number in range(count):
        asked = b"".join(
            bytes([0, 0, 3, 1, 5]) + struct.pack(">I", 2 * one + 1) + b"\x82\x84\x86"
            for one in range(8 * number, 8 * number + 8)
        )
        yield tcp(C, S, seq, 5000, asked, ACK | PSH)
        seq += len(asked)


@storm
def names_without_answers(count: int, rng: random.Random) -> Iterator[bytes]:
    """Questions of DNS, each for another name."""
    for number in range(count):
        name = b"n%07d" % number
        body = struct.pack(">HHHHHH", number % 65_536, 0x100, 1, 0, 0, 0) + b"\x08" + name + b"\0\0\1\0\1"
        yield udp((CLIENT, 1024 + number % 60_000), (SERVER, 53), body)


@storm
def names_and_connects(count: int, rng: random.Random) -> Iterator[bytes]:
    """A name, its eight addresses and a connection to one of them."""
    for number in range(count // 3):
        question = b"\x08n%07d\0\0\1\0\1" % number
        head = struct.pack(">HHHHHH", number % 65_536, 0x100, 1, 0, 0, 0)
        yield udp((CLIENT, 1024 + number % 60_000), (SERVER, 53), head + question)
        head = struct.pack(">HHHHHH", number % 65_536, 0x8180, 1, 8, 0, 0)
        hosts = [0x0B000000 + (8 * number + which) % 2**20 for which in range(8)]
        answers = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + struct.pack(">I", host) for host in hosts)
        yield udp((SERVER, 53), (CLIENT, 1024 + number % 60_000), head + question + answers)
        yield tcp((CLIENT, 1024 + number % 60_000), (hosts[0], 80), 1, 0, b"", SYN)


@storm
def echo_requests(count: int, rng: random.Random) -> Iterator[bytes]:
    for number in range(count):
        yield ip(CLIENT, SERVER + number % 5000, 1, struct.pack(">BBHHH", 8, 0, 0, number // 65_536, number % 65_536))


@storm
def errors_of_icmp(count: int, rng: random.Random) -> Iterator[bytes]:
    """Answers to packets that nobody sent."""
    for number in range(count):
        quoted = tcp((CLIENT, 1024 + number % 60_000), (SERVER + number % 7, 80), number)[14:][:28]
        yield ip(SERVER, CLIENT, 1, struct.pack(">BBHI", 3, 1, 0, 0) + quoted)


@storm
def neighbours(count: int, rng: random.Random) -> Iterator[bytes]:
    """ARP requests for one host after another."""
    for number in range(count):
        body = struct.pack(">HHBBH6sI6sI", 1, 0x800, 6, 4, 1, b"\2\0\0\0\0\1", CLIENT, bytes(6), SERVER + number)
        yield b"\xff" * 6 + b"\x02\0\0\0\0\1\x08\x06" + body


@storm
def fragments(count: int, rng: random.Random) -> Iterator[bytes]:
    """Pieces of packets that are never whole, each of another packet or far back in one."""
    for number in range(count):
        part = 0x2000 | (2 * rng.randrange(1000))
        yield ip(CLIENT, SERVER, 17, bytes(8), number=number % 300, part=part)


# streams, servers, hosts


@storm
def many_streams(count: int, rng: random.Random) -> Iterator[bytes]:
    """SYNs, each of another pair of addresses."""
    for number in range(count):
        yield tcp((CLIENT + number // 60_000, 1024 + number % 60_000), S, number, 0, b"", SYN)


@storm
def acks_alone(count: int, rng: random.Random) -> Iterator[bytes]:
    for number in range(count):
        yield tcp((CLIENT + number, 1024), (SERVER + number * 3, 80), 7, 9)


@storm
def refused(count: int, rng: random.Random) -> Iterator[bytes]:
    for number in range(count // 2):
        c, s = (CLIENT, 1024 + number % 60_000), (SERVER + number, 80)
        yield tcp(c, s, number, 0, b"", SYN)
        yield tcp(s, c, 0, number + 1, b"", RST | ACK)


@storm
def many_servers(count: int, rng: random.Random) -> Iterator[bytes]:
    """A request of each of many servers, with names of their own."""
    for number in range(count // 5):
        c, s = (CLIENT, 1024 + number % 60_000), (SERVER + number, 80)
        yield from handshake(c, s)
        yield tcp(c, s, 1000, 5000, b"GET /%d HTTP/1.1\r\nHost: h%d\r\n\r\n" % (number, number), ACK | PSH)
        yield tcp(s, c, 5000, 1400, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ACK | PSH)


@storm
def many_clients(count: int, rng: random.Random) -> Iterator[bytes]:
    """Requests of many hosts that wait at once for one server."""
    hosts = count // 5
    for number in range(hosts):
        c = (CLIENT + 7 + number, 1024 + number % 60_000)
        yield from handshake(c)
        yield tcp(c, S, 1000, 5000, b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number, ACK | PSH)
    for number in range(hosts):
        c = (CLIENT + 7 + number, 1024 + number % 60_000)
        yield tcp(S, c, 5000, 1300, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ACK | PSH)


@storm
def passed_on(count: int, rng: random.Random) -> Iterator[bytes]:
    """A proxy whose requests to a back end all lie in one another."""
    hosts = count // 10
    for number in range(hosts):
        for c, s in (((CLIENT + 7 + number, 2000), S), ((SERVER, 1024 + number % 60_000), (SERVER + 1, 8080))):
            yield from handshake(c, s)
            yield tcp(c, s, 1000, 5000, b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number, ACK | PSH)
    for number in range(hosts):
        for c, s in (((SERVER, 1024 + number % 60_000), (SERVER + 1, 8080)), ((CLIENT + 7 + number, 2000), S)):
            yield tcp(s, c, 5000, 1300, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ACK | PSH)


@storm
def ports_used_again(count: int, rng: random.Random) -> Iterator[bytes]:
    for number in range(count // 4):
        yield tcp(C, S, 77 * number, 0, b"", SYN)
        yield tcp(S, C, 55 * number, 77 * number + 1, b"", SYN | ACK)
        yield tcp(C, S, 77 * number + 1, 55 * number + 1, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        yield tcp(C, S, 77 * number + 90, 55 * number + 1, b"", RST)


@storm
def answers_in_pieces(count: int, rng: random.Random) -> Iterator[bytes]:
    """Thousands of requests, and behind them their answers in tiny segments: each wait has thousands of steps."""
    yield from handshake()
    asked, answered = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    half = min(count // 5, 4000)
    for number in range(half):
        yield tcp(C, S, 1000 + number * len(asked), 5000, asked, ACK | PSH)
    stream = answered * half
    for place in range(0, (count - half) * 5, 5):
        yield tcp(S, C, 5000 + place, 1000 + half * len(asked), stream[place : place + 5], ACK | PSH)


@storm
def answered_backwards(count: int, rng: random.Random) -> Iterator[bytes]:
    """Requests of LDAP that are answered from the newest to the oldest."""
    s, half = (SERVER, 389), min(count // 2, 4000)
    for turn in range(count // (2 * half)):
        c = (CLIENT, 40_000 + turn)
        yield from handshake(c, s)
        for number in range(half):
            body = b"\x30\x0a\2\2" + struct.pack(">H", number + 1) + b"\x4a\4abcd"
            yield tcp(c, s, 1000 + number * len(body), 5000, body, ACK | PSH)
        for number in range(half):
            body = b"\x30\x0d\2\2" + struct.pack(">H", half - number) + b"\x6b\7\x0a\1\0\4\0\4\0"
            yield tcp(s, c, 5000 + number * len(body), 1000 + half * 12, body, ACK | PSH)


@storm
def keys_that_fall(count: int, rng: random.Random) -> Iterator[bytes]:
    """Thousands of requests of LDAP whose numbers rise, then others whose numbers fall."""
    s = (SERVER, 389)
    yield from handshake(C, s)
    for number in range(count):
        key = number if number < 4000 else 30_000 - number
        body = b"\x30\x0a\2\2" + struct.pack(">H", key % 32_000 + 1) + b"\x4a\4abcd"
        yield tcp(C, s, 1000 + number * len(body), 5000, body, ACK | PSH)


@storm
def answers_sent_again(count: int, rng: random.Random) -> Iterator[bytes]:
    """Thousands of answers that nobody acknowledges, and repeats of the newest."""
    yield from handshake()
    asked, answered = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    third = min(count // 3, 4000)
    for number in range(third):
        yield tcp(C, S, 1000 + number * len(asked), 5000, asked, ACK | PSH)
        yield tcp(S, C, 5000 + number * len(answered), 1000 + (number + 1) * len(asked), answered, ACK | PSH)
    for number in range(count - 2 * third):
        place = 5000 + (third - 1 - number % 50) * len(answered)
        yield tcp(S, C, place, 1000 + third * len(asked), answered, ACK | PSH)
