"""What was waited for in front of a request, and what only looks like it: a capture of each, and its headline."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from random import Random

import dpkt
import pyarrow as pa
import pytest
from commands import answered, complains
from makepcap import EPOCH_NS, Ends, Segment, mss, timestamps

import latpcap as lp
from latpcap import words
from latpcap.user_waits import slow_requests, waits
from latpcap.user_waits.waits import KINDS
from latpcap.views import answer_view

SERVER, OTHER = ("10.0.0.2", 80), ("10.0.0.3", 80)
V6 = "2001:db8::1", "2001:db8::2"
CASES, SAMPLES = Path(__file__).parent / "cases", Path(__file__).parents[1] / "sample_pcaps"


class Tape:
    """Frames with their instants in ms."""

    def __init__(self) -> None:
        self.frames: list[tuple[float, bytes]] = []
        self.port = 40_000

    def tcp(
        self, ms: float, flags: str, ends: Ends, seq: int, ack: int = 0, payload: bytes = b"", *,
        back: bool = False, stamp: int | None = None,
    ) -> None:  # fmt: skip
        options = (mss(),) if "S" in flags else ()
        options += (timestamps(stamp, 1),) if stamp is not None else ()
        self.frames.append((ms, Segment(not back, flags, seq, ack, payload, options=options, ends=ends).frame()))

    def dns(self, ms: float, name: str, kind: int, number: int, sport: int, server: str, answer: str | None = None,
            back: bool = False, rcode: int = 0) -> None:  # fmt: skip
        query = dpkt.dns.DNS(id=number, op=0x8180 if back else 0x0100, qd=[dpkt.dns.DNS.Q(name=name, type=kind)])
        if back:
            query.rcode = rcode
        if answer is not None:
            query.an = [dpkt.dns.DNS.RR(name=name, type=1, ip=socket.inet_aton(answer), ttl=60)]
        ports = (53, sport) if back else (sport, 53)
        udp = dpkt.udp.UDP(sport=ports[0], dport=ports[1], data=bytes(query))
        udp.ulen = len(udp)
        ends = ("10.0.0.1", server) if not back else (server, "10.0.0.1")
        source, target = (ip_address(end).packed for end in ends)
        packet = dpkt.ip.IP(src=source, dst=target, p=17, ttl=64, data=udp)
        packet.len = len(packet)
        frame = dpkt.ethernet.Ethernet(src=b"\2\0\0\0\0\1", dst=b"\2\0\0\0\0\2", type=0x800, data=bytes(packet))
        self.frames.append((ms, bytes(frame)))

    def lookup(self, ms: float, name: str, server: str = "10.0.0.9", answer: str | None = "10.0.0.2", took: float = 1.0,
               rcode: int = 0, mute: bool = False) -> None:  # fmt: skip
        """A question for A, and its answer."""
        self.port += 1
        self.dns(ms, name, 1, self.port, self.port, server)
        if not mute:
            self.dns(ms + took, name, 1, self.port, self.port, server, answer, True, rcode)

    def talk(self, ms: float, server: tuple[str, int] = SERVER, client: str = "10.0.0.1", rtt: float = 1.0, *,
             syns: tuple[float, ...] = (0.0,), flags: tuple[str, ...] = (), stamp: int | None = None,
             greeting: float | None = None, requests: int = 1, think: float = 0.1, apart: float = 0.05,
             challenged: bool = False, leg: float = 0.02) -> float:  # fmt: skip
        """A connection whose last SYN is answered, with requests one after the other; when it ended."""
        self.port += 1
        ends = Ends((client, self.port), server)
        for at, syn in enumerate(syns):
            self.tcp(
                ms + syn, flags[at] if flags else "S", ends, 1000, stamp=None if stamp is None else stamp + int(syn)
            )
            if challenged and syn != syns[-1]:
                self.tcp(ms + syn + rtt, "A", ends, 77_000, 900_000, back=True)
                self.tcp(ms + syn + rtt + 0.01, "R", ends, 900_000)
        now = ms + syns[-1] + rtt
        self.tcp(now, "SA", ends, 5000, 1001, back=True, stamp=None if stamp is None else 1)
        self.tcp(now + leg, "A", ends, 1001, 5001)
        mine, theirs = 1001, 5001
        if greeting is not None:
            now += greeting
            self.tcp(now, "PA", ends, theirs, mine, b"220 here\r\n", back=True)
            self.tcp(now + 0.02, "A", ends, mine, theirs + 10)
            theirs += 10
        for number in range(requests):
            now += apart
            ask = b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number
            if greeting is not None:
                ask = b"NOOP\r\n"
            self.tcp(now, "PA", ends, mine, theirs, ask)
            mine += len(ask)
            now += rtt + think
            reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" if greeting is None else b"250 ok\r\n"
            self.tcp(now, "PA", ends, theirs, mine, reply, back=True)
            theirs += len(reply)
            self.tcp(now + leg, "A", ends, mine, theirs)
        now += leg
        self.tcp(now + 1, "FA", ends, mine, theirs)
        self.tcp(now + 1 + rtt, "FA", ends, theirs, mine + 1, back=True)
        self.tcp(now + 1 + rtt + leg, "A", ends, mine + 1, theirs + 1)
        return now + 2 + rtt

    def mute(self, ms: float, server: tuple[str, int] = SERVER, client: str = "10.0.0.1",
             syns: tuple[float, ...] = (0.0, 1000.0, 3000.0), stamp: int | None = None) -> None:  # fmt: skip
        """A connection whose SYNs nobody answers."""
        self.port += 1
        for syn in syns:
            ends = Ends((client, self.port), server)
            self.tcp(ms + syn, "S", ends, 1000, stamp=None if stamp is None else stamp + int(syn))

    def refused(self, ms: float, server: tuple[str, int], client: str, syns: tuple[float, ...]) -> None:
        """A connection whose SYNs are answered with RST."""
        self.port += 1
        for syn in syns:
            ends = Ends((client, self.port), server)
            self.tcp(ms + syn, "S", ends, 1000)
            self.tcp(ms + syn + 0.3, "RA", ends, 0, 1001, back=True)

    def bytes(self) -> bytes:
        """A pcap file of all frames in order of time."""
        out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
        for ms, frame in sorted(self.frames, key=lambda row: row[0]):
            seconds, nanos = divmod(EPOCH_NS + round(ms * 1e6), 1_000_000_000)
            out += struct.pack("<IIII", seconds, nanos, len(frame), len(frame)) + frame
        return out


def dead_server(tape: Tape) -> None:
    for at in (0.0, 6000.0):
        tape.lookup(at, "a.example", "10.0.0.8", mute=True)
        tape.lookup(at + 3000, "a.example")
        tape.talk(at + 3001.5)


def lossy_server(tape: Tape) -> None:
    """The same, but the first server answers another lookup: it is alive."""
    dead_server(tape)
    tape.lookup(20_000, "b.example", "10.0.0.8")


def lost_pair(tape: Tape) -> None:
    for at in (0.0, 9000.0):
        tape.port += 1
        for kind, number in ((1, 5), (28, 6)):
            tape.dns(at, "a.example", kind, number, tape.port, "10.0.0.9")
        tape.dns(at + 1, "a.example", 1, 5, tape.port, "10.0.0.9", "10.0.0.2", True)
        tape.dns(at + 5000, "a.example", 1, 5, tape.port, "10.0.0.9")
        tape.dns(at + 5001, "a.example", 1, 5, tape.port, "10.0.0.9", "10.0.0.2", True)
        tape.dns(at + 5002, "a.example", 28, 6, tape.port, "10.0.0.9")
        tape.dns(at + 5003, "a.example", 28, 6, tape.port, "10.0.0.9", None, True)
        tape.talk(at + 5004)


def kept_from_client(tape: Tape, numbers: tuple[int, ...] = (5, 6, 7, 8), again: float = 5000.0) -> None:
    """At the name server: its answers leave at once, and both questions come again with their numbers."""
    for turn, at in enumerate((0.0, 9000.0)):
        tape.port += 1
        for later in (0.0, again):
            for kind, number in ((1, numbers[2 * turn]), (28, numbers[2 * turn + 1])):
                now = at + later + kind / 10
                tape.dns(now, "a.example", kind, number, tape.port, "10.0.0.9")
                address = "10.0.0.2" if kind == 1 else None
                tape.dns(now + 0.5, "a.example", kind, number, tape.port, "10.0.0.9", address, True)
        tape.talk(at + again + 10)


def searched(tape: Tape) -> None:
    for at in (0.0, 500.0):
        for step, suffix in enumerate((".x.local", ".y.local", ".z.local")):
            tape.lookup(at + 41 * step, f"a.example{suffix}", answer=None, took=40.0, rcode=3)
        tape.lookup(at + 123, "a.example", took=40.0)
        tape.talk(at + 164)


def slow_server(tape: Tape) -> None:
    tape.lookup(0.0, "a.example", took=900.0)
    tape.talk(901.0)


def failing(tape: Tape) -> None:
    tape.lookup(0.0, "a.example", answer=None, took=1200.0, rcode=2)
    tape.talk(1300.0)


def no_server(tape: Tape) -> None:
    for at in (0.0, 5000.0, 10_000.0):
        tape.lookup(at, "a.example", mute=True)


def quick_names(tape: Tape) -> None:
    """Lookups that cost nothing, and a name that does not exist at all."""
    tape.lookup(0.0, "a.example")
    tape.talk(1.5)
    tape.lookup(100.0, "none.example", answer=None, rcode=3)


def black_hole(tape: Tape) -> None:
    for at in (0.0, 4000.0):
        tape.mute(at, (V6[1], 80), V6[0], (0.0, 1000.0))
        tape.talk(at + 2000)


def other_sites(tape: Tape) -> None:
    """An address that does not answer, and connections to others by and by: nobody says that they are the same."""
    tape.mute(0.0, ("10.0.7.7", 80))
    for at, last in ((2500.0, 3), (6000.0, 4), (9000.0, 5)):
        tape.talk(at, (f"10.0.0.{last}", 80))


def dead_address(tape: Tape) -> None:
    for at in (0.0, 8000.0):
        tape.mute(at, ("10.0.7.7", 80))
        tape.talk(at + 4000)


def refused_family(tape: Tape) -> None:
    for at in (0.0, 4000.0):
        tape.refused(at, ("::1", 80), "::1", (0.0, 500.0, 1000.0))
        tape.talk(at + 1500, ("127.0.0.1", 80), "127.0.0.1", rtt=0.05)


def refused_address(tape: Tape) -> None:
    for at in (0.0, 4000.0):
        tape.refused(at, OTHER, "10.0.0.1", (0.0, 500.0, 1000.0))
        tape.talk(at + 1500)


def refused_at_once(tape: Tape) -> None:
    """The next address is tried at once: nobody waited."""
    for at in (0.0, 4000.0):
        tape.refused(at, ("::1", 80), "::1", (0.0,))
        tape.talk(at + 0.5, ("127.0.0.1", 80), "127.0.0.1", rtt=0.05)


def old_stamps(tape: Tape) -> None:
    for number in range(5):
        tape.talk(number * 1000.0, stamp=900_000 + number * 1000, rtt=20.0)
        tape.mute(number * 1000.0 + 500, stamp=100_000 + number * 1000)


def any_stamps(tape: Tape) -> None:
    """Stamps that begin anywhere (Linux since 4.10), and SYNs that were lost: some of the older ones are answered."""
    for number in range(5):
        tape.talk(number * 1000.0, stamp=900_000 + number * 1000, rtt=20.0)
        tape.talk(number * 1000.0 + 200, stamp=500_000 + number * 1000, rtt=20.0)
        tape.mute(number * 1000.0 + 500, stamp=100_000 + number * 1000)


def challenged(tape: Tape) -> None:
    for at in (0.0, 3000.0, 6000.0):
        tape.talk(at, syns=(0.0, 1010.0), challenged=True)


def lost_syn(tape: Tape) -> None:
    tape.talk(0.0, syns=(0.0, 1010.0))
    tape.talk(3000.0)


def ecn_dropped(tape: Tape) -> None:
    for at in (0.0, 3000.0, 6000.0):
        tape.talk(at, syns=(0.0, 1010.0), flags=("SEC", "S"))


def ecn_lost(tape: Tape) -> None:
    """The same, but one SYN with ECN is answered."""
    ecn_dropped(tape)
    tape.talk(9000.0, flags=("SEC",))


def full_queue(tape: Tape) -> None:
    """At the server: a round trip of 20 us from SYN to SYN-ACK."""
    for at in (0.0, 100.0, 200.0, 300.0):
        tape.talk(at, rtt=0.02, apart=20.0, leg=5.0)
    for at in (50.0, 5000.0):
        tape.talk(at, syns=(0.0, 1010.0), rtt=0.02, apart=20.0, leg=5.0)


def translated(tape: Tape) -> None:
    for at in (0.0, 2000.0, 4000.0):
        tape.port += 1
        ends, other = Ends(("10.0.0.1", tape.port), SERVER), Ends(("10.0.0.1", tape.port), ("10.0.5.5", 8080))
        for syn in (0.0, 1000.0):
            tape.tcp(at + syn, "S", ends, 1000)
            tape.tcp(at + syn + 1, "SA", other, 5000, 1001, back=True)
            tape.tcp(at + syn + 1.1, "R", other, 1001)


def moved(tape: Tape) -> None:
    tape.talk(0.0)
    tape.port += 1
    ends, other = Ends(("10.0.0.1", tape.port), SERVER), Ends(("10.0.0.1", tape.port), ("10.0.5.5", 8080))
    tape.tcp(100.0, "S", ends, 1000)
    tape.tcp(101.0, "SA", ends, 5000, 1001, back=True)
    tape.tcp(101.1, "A", ends, 1001, 5001)
    tape.tcp(101.2, "PA", ends, 1001, 5001, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"
    tape.tcp(103.0, "A", ends, 5001, 1028, head + bytes(1000), back=True)
    tape.tcp(103.1, "A", ends, 1028, 6001 + len(head))
    for at in (104.0, 310.0, 720.0, 1500.0):
        tape.tcp(at, "A", other, 6001 + len(head), 1028, bytes(1000), back=True)
        tape.tcp(at + 0.1, "R", other, 1028)


def late_greeting(tape: Tape) -> None:
    for at in (0.0, 4000.0):
        tape.talk(at, ("10.0.0.2", 25), greeting=3000.0)


def prompt_greeting(tape: Tape) -> None:
    for at in (0.0, 4000.0):
        tape.talk(at, ("10.0.0.2", 25), greeting=2.0)


def lines(tape: Tape, at: float, *greeting: float, pause: float = 0.1) -> None:
    """A mail server that sends a line of its greeting at each of these instants, and a client that speaks then."""
    tape.port += 1
    ends, line = Ends(("10.0.0.1", tape.port), ("10.0.0.2", 25)), b"220-here\r\n"
    tape.tcp(at, "S", ends, 1000)
    tape.tcp(at + 1, "SA", ends, 5000, 1001, back=True)
    tape.tcp(at + 1.1, "A", ends, 1001, 5001)
    theirs = 5001
    for ms in greeting:
        tape.tcp(at + ms, "PA", ends, theirs, 1001, line if ms != greeting[-1] else b"220 here\r\n", back=True)
        theirs += len(line)
    now = at + greeting[-1] + pause
    tape.tcp(now, "PA", ends, 1001, theirs, b"EHLO a\r\n")
    tape.tcp(now + 1.1, "PA", ends, theirs, 1009, b"250 ok\r\n", back=True)
    tape.tcp(now + 1.2, "A", ends, 1009, theirs + 8)


def second_line(tape: Tape) -> None:
    for at in (0.0, 9000.0):
        lines(tape, at, 2.0, 4300.0)


def slow_speaker(tape: Tape) -> None:
    """Both lines come at once, and the client takes its time."""
    for at in (0.0, 9000.0):
        lines(tape, at, 2.0, 3.0, pause=4300.0)


def name_before_greeting(tape: Tape, took: float | None = None) -> None:
    """The server asks for its client's name, and greets when it has no answer, or long after it has one."""
    for number, at in enumerate((0.0, 9000.0)):
        for back in (False, True)[: 1 if took is None else 2]:
            ms = at + 3.0 + (took or 0) * back
            tape.dns(ms, "1.0.0.10.in-addr.arpa", 12, number, 40_900, "10.0.0.9", back=back)
            tape.frames[-1] = ms, asked_by_server(tape.frames[-1][1])
        tape.talk(at, ("10.0.0.2", 25), greeting=3000.0)


def quick_name(tape: Tape) -> None:
    name_before_greeting(tape, took=5.0)


TRIED = (0.0, 1000.0, 3000.0, 7000.0)
"""SYNs until a program gives up after 10 s."""


def active(tape: Tape) -> None:
    """FTP's server connects for the data, to where nobody answers, and says so."""
    tape.talk(0.0, ("10.0.0.2", 21), greeting=2.0, think=10_000.0)
    tape.mute(10.0, ("10.0.0.1", 50_007), "10.0.0.2", TRIED)


def ident(tape: Tape) -> None:
    tape.talk(0.0, ("10.0.0.2", 25), greeting=10_000.0)
    tape.mute(5.0, ("10.0.0.1", 113), "10.0.0.2", TRIED)


def ident_beside(tape: Tape) -> None:
    """Nobody waits for it: the greeting is there long before."""
    tape.talk(0.0, ("10.0.0.2", 25), greeting=2000.0)
    tape.mute(5.0, ("10.0.0.1", 113), "10.0.0.2", TRIED)


def onward(tape: Tape) -> None:
    """A proxy that tries a dead address, then another, while a second client's request is quick."""
    tape.lookup(0.0, "b.example", answer="10.0.7.7")
    tape.talk(1.0, think=10_000.0)
    tape.mute(5.0, ("10.0.7.7", 443), "10.0.0.2", TRIED)
    tape.talk(400.0, OTHER, "10.0.0.2")
    tape.talk(500.0, client="10.0.0.40", requests=8)


def onward_beside(tape: Tape) -> None:
    """It answers while it still tries: something else of that host wants the dead one."""
    tape.talk(1.0, think=5000.0)
    tape.mute(5.0, ("10.0.7.7", 443), "10.0.0.2", TRIED)


def onward_of_loopback(tape: Tape, tried: int = 3) -> None:
    """A proxy whose clients are on its own host, and that gives a dead server up before its second SYN is due."""
    for number, at in enumerate((1.0, 2000.0, 4000.0)):
        tape.talk(at, ("127.0.0.1", 8000), "127.0.0.1", rtt=0.1, think=723.0)
        if number < tried:
            tape.mute(at + 1.0, ("10.0.7.7", 443), "10.0.0.2", (0.0,))
        tape.talk(at + 702.0, OTHER, "10.0.0.2", rtt=20.0)


def agent_beside(tape: Tape) -> None:
    """An agent on that host tries a dead one all the time, whatever the requests do."""
    for number in range(9):
        tape.mute(50.0 + 750.0 * number, ("10.0.7.7", 443), "10.0.0.2", (0.0,))
    for at in (1.0, 800.0, 1550.0, 3000.0):
        tape.talk(at, ("127.0.0.1", 8000), "127.0.0.1", rtt=0.1, think=613.0)
    tape.talk(9000.0, OTHER, "10.0.0.2", rtt=20.0)


def one_lost_syn_of_loopback(tape: Tape) -> None:
    """A single SYN without an answer, while each request takes as long."""
    onward_of_loopback(tape, tried=1)


def referred(tape: Tape, busy: bool = False) -> None:
    """A client that goes on from an answer to a dead host, and to the first again when it gives up."""
    tape.talk(0.0, rtt=20.0)
    tape.mute(60.0, ("10.0.7.7", 80), syns=TRIED)
    if busy:
        for at in (2000.0, 4000.0, 6500.0):
            tape.talk(at, rtt=20.0)
    tape.talk(10_060.0, rtt=20.0)


def busy_beside(tape: Tape) -> None:
    referred(tape, busy=True)


def connected_each(tape: Tape, pause: float = 0.0, rtt: float = 130.0) -> None:
    """Captured at the server: the next SYN comes a round trip after the answer."""
    now = 0.0
    for _ in range(7):
        tape.port += 1
        ends, ask = Ends(("10.0.0.1", tape.port), SERVER), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        tape.tcp(now, "S", ends, 1000)
        tape.tcp(now + 0.02, "SA", ends, 5000, 1001, back=True)
        tape.tcp(now + rtt, "A", ends, 1001, 5001)
        tape.tcp(now + rtt + 0.1, "PA", ends, 1001, 5001, ask)
        tape.tcp(now + rtt + 1.1, "PFA", ends, 5001, 1001 + len(ask), reply, back=True)
        now += 2 * rtt + 1.2 + pause
        tape.tcp(now - 0.05, "FA", ends, 1001 + len(ask), 5002 + len(reply))


def connected_with_pauses(tape: Tape) -> None:
    connected_each(tape, pause=700.0)


def expecting(tape: Tape, pauses: tuple[float, ...] = (1001.0, 1004.0, 1002.0, 1001.5)) -> None:
    """Uploads whose body comes so long after their headers."""
    now = 0.0
    for pause in pauses:
        tape.port += 1
        ends, head = (
            Ends(("10.0.0.1", tape.port), SERVER),
            b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n",
        )
        tape.tcp(now, "S", ends, 1000)
        tape.tcp(now + 20, "SA", ends, 5000, 1001, back=True)
        tape.tcp(now + 20.02, "A", ends, 1001, 5001)
        tape.tcp(now + 20.1, "PA", ends, 1001, 5001, head)
        tape.tcp(now + 40.2, "A", ends, 5001, 1001 + len(head), back=True)
        tape.tcp(now + 20.1 + pause, "PA", ends, 1001 + len(head), 5001, bytes(900))
        done = 1901 + len(head)
        tape.tcp(now + 41.0 + pause, "PA", ends, 5001, done, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", back=True)
        tape.tcp(now + 41.1 + pause, "A", ends, done, 5039)
        now += 600 + pause


def read_from_disk(tape: Tape) -> None:
    """Bodies that come as they are ready."""
    expecting(tape, (700.0, 1004.0, 1400.0, 990.0))


def sql(tape: Tape, port: int, scripts: list[tuple[float, float, str]], client: str = "10.0.0.1",
        server: tuple[str, int] = ("10.0.0.2", 5432)) -> None:  # fmt: skip
    """PostgreSQL's simple queries on one connection: when, how long, which."""
    ends, mine, theirs = Ends((client, port), server), 1001, 5001
    first = scripts[0][0] - 1
    tape.tcp(first, "S", ends, 1000)
    tape.tcp(first + 0.1, "SA", ends, 5000, 1001, back=True)
    tape.tcp(first + 0.2, "A", ends, 1001, 5001)
    start = b"user\0a\0database\0a\0\0"
    hello = struct.pack(">II", len(start) + 8, 196608) + start
    tape.tcp(first + 0.3, "PA", ends, mine, theirs, hello)
    mine += len(hello)
    ready = b"R" + struct.pack(">II", 8, 0) + b"Z" + struct.pack(">I", 5) + b"I"
    tape.tcp(first + 0.5, "PA", ends, theirs, mine, ready, back=True)
    theirs += len(ready)
    for at, took, text in scripts:
        body = text.encode() + b"\0"
        ask = b"Q" + struct.pack(">I", len(body) + 4) + body
        tape.tcp(at, "PA", ends, mine, theirs, ask)
        mine += len(ask)
        tag = text.split()[0].encode() + b"\0"
        reply = b"C" + struct.pack(">I", len(tag) + 4) + tag + b"Z" + struct.pack(">I", 5) + b"I"
        tape.tcp(at + took, "PA", ends, theirs, mine, reply, back=True)
        theirs += len(reply)
        tape.tcp(at + took + 0.02, "A", ends, mine, theirs)


ROW, QUICK = "UPDATE t SET a=1 WHERE id=7", [(20.0 * n + 5, 0.3, f"SELECT a FROM t WHERE id={n}") for n in range(40)]


def locked(tape: Tape, commit: float = 4000.0) -> None:
    """A row that another transaction has changed, and reads that need no lock."""
    sql(tape, 40_001, [(100.0, 0.2, "BEGIN"), (110.0, 0.3, ROW), (commit, 0.4, "COMMIT")], "10.0.0.3")
    sql(tape, 40_002, [(500.0, 3500.7, ROW)])
    sql(tape, 40_003, QUICK, "10.0.0.4")


def locked_without_begin(tape: Tape, ends: str = "COMMIT") -> None:
    """The same without autocommit, by a driver that sends no BEGIN: a transaction follows the one before."""
    tape_of_holder = [(100.0, 0.2, ROW), (300.0, 0.4, "COMMIT"), (310.0, 0.2, ROW), (4000.0, 0.4, ends)]
    sql(tape, 40_001, tape_of_holder, "10.0.0.3")
    sql(tape, 40_002, [(500.0, 3500.7, ROW)])
    sql(tape, 40_003, QUICK, "10.0.0.4")


def locked_by_nobody(tape: Tape) -> None:
    """The other connection commits before, and its last statement is a read: it holds no lock."""
    locked_without_begin(tape, ends="SELECT 1")


def slow_beside_transaction(tape: Tape) -> None:
    """The statement takes its time; the transaction ended before."""
    locked(tape, commit=2500.0)


def pooled(tape: Tape) -> None:
    """A pooler that passes a query on when the transaction that has its connection is over."""
    locked(tape)
    sql(tape, 50_001, [(4000.5, 0.1, ROW)], "10.0.0.2", ("10.0.0.9", 5433))


def blocked(tape: Tape, apart: float = 0.0) -> None:
    """Quick requests that come while a long one of another client is worked on."""
    tape.talk(0.0, requests=20)
    for number, at in enumerate((1000.0, 6000.0)):
        tape.talk(at, client="10.0.0.30", think=2500.0)
        tape.talk(at + 400 + 200 * number, client="10.0.0.31", think=2101.0 - 200 * number + apart)


def queued_in_proxy(tape: Tape) -> None:
    """A proxy that sends one request at a time to the server behind it, which takes 40 or 75 ms."""
    passed_on = 3.0
    for number in range(16):
        at, works = max(0.0, passed_on - 250 - number * 37 % 50), 75.0 if number % 3 else 40.0
        tape.talk(at, client=f"10.0.0.{40 + number}", think=passed_on + works + 1 - at)
        tape.talk(passed_on, ("10.0.0.9", 8080), "10.0.0.2", rtt=0.1, think=works)
        passed_on += works + 3


def working_in_proxy(tape: Tape) -> None:
    """A proxy that works 300 ms on each request and then passes it on, whether another one is answered or not."""
    for number in range(8):
        at = 90.0 * number + number * 37 % 50
        tape.talk(at, client=f"10.0.0.{40 + number}", think=361.0)
        tape.talk(at + 302, ("10.0.0.9", 8080), "10.0.0.2", rtt=0.1, think=55.0)


def busy_proxy(tape: Tape) -> None:
    """The same with so many requests that another one is nearly always answered just before."""
    random, at = Random(1), 0.0
    for number in range(60):
        at, works = at + random.expovariate(1 / 20), random.uniform(250, 350)
        tape.talk(at, client=f"10.0.1.{number}", think=works + 56)
        tape.talk(at + works, ("10.0.0.9", 8080), "10.0.0.2", rtt=0.1, think=55 * random.uniform(0.9, 1.1))


def beside_long_work(tape: Tape) -> None:
    blocked(tape, apart=-700.0)


def one_client_in_turn(tape: Tape) -> None:
    """One request after the other, of which the last takes long: nobody waits for somebody else."""
    now = 0.0
    for think in (60.0,) * 6 + (7000.0,):
        now = tape.talk(now, think=think) + 5


def udp(tape: Tape, ms: float, source: tuple[str, int], target: tuple[str, int], data: bytes) -> None:
    body = dpkt.udp.UDP(sport=source[1], dport=target[1], data=data)
    body.ulen = len(body)
    packet = dpkt.ip.IP(src=socket.inet_aton(source[0]), dst=socket.inet_aton(target[0]), p=17, ttl=64, data=body)
    packet.len = len(packet)
    frame = dpkt.ethernet.Ethernet(src=b"\2\0\0\0\0\1", dst=b"\2\0\0\0\0\2", type=0x800, data=bytes(packet))
    tape.frames.append((ms, bytes(frame)))


def ntp(tape: Tape, ms: float, server: str, took: float | None = None) -> None:
    stamp = struct.pack(">Q", int(ms * 1000) + 1)
    tape.port += 1
    udp(tape, ms, ("10.0.0.1", tape.port), (server, 123), b"\x23" + bytes(39) + stamp)
    if took is not None:
        answer = b"\x24" + bytes(23) + stamp + bytes(16)
        udp(tape, ms + took, (server, 123), ("10.0.0.1", tape.port), answer)


def dead_clock(tape: Tape, busy: bool = False) -> None:
    """A time server that does not answer, then another, then a page."""
    for at in (0.0, 2500.0, 5000.0):
        ntp(tape, at, "10.0.0.8")
    ntp(tape, 7500.0, "10.0.0.9", 4.0)
    tape.talk(7510.0)
    if busy:
        tape.talk(1500.0)
        tape.talk(4500.0)


def clock_beside(tape: Tape) -> None:
    dead_clock(tape, busy=True)


def slow_agent(tape: Tape, took: float = 1800.0, answered: bool = True) -> None:
    """SNMP; an answer to another port is another request's."""
    for number, at in enumerate((0.0, 4000.0)):
        udp(tape, at, ("10.0.0.1", 50_000), ("10.0.0.8", 161), b"\x30\x05")
        udp(tape, at + took, ("10.0.0.8", 161), ("10.0.0.1", 50_000 + (not answered) * (number + 1)), b"\x30\x05")
    tape.talk(6000.0)


def refused_login(tape: Tape, later: int = 3) -> None:
    """RADIUS: a log-in is rejected, and another one for the same client."""
    for number, code in enumerate((3, later)):
        at = 400.0 * number
        udp(tape, at, ("10.0.0.1", 50_000), ("10.0.0.8", 1812), bytes((1, number, 0, 20)) + bytes(16))
        udp(tape, at + 90, ("10.0.0.8", 1812), ("10.0.0.1", 50_000), bytes((code, number, 0, 20)) + bytes(16))
    tape.talk(6000.0)


def accepted_then(tape: Tape) -> None:
    refused_login(tape, later=2)


def quick_agent(tape: Tape) -> None:
    slow_agent(tape, 30.0)


def dhcp(tape: Tape, took: float, checks: int = 0) -> None:
    """DISCOVER, and an offer of 10.0.0.50 that its server looks for first."""

    def message(op: int) -> bytes:
        head = bytes((op, 1, 6, 0)) + b"abcd" + bytes(8) + socket.inet_aton("10.0.0.50") + bytes(8)
        return head + b"\2\0\0\0\0\7" + bytes(202) + b"\x63\x82\x53\x63\xff"

    udp(tape, 0.0, ("0.0.0.0", 68), ("255.255.255.255", 67), message(1))
    for number in range(checks):
        arp(tape, 1.0 + number * took / checks, "10.0.0.2", "10.0.0.50")
    udp(tape, took, ("10.0.0.2", 67), ("10.0.0.50", 68), message(2))
    tape.talk(took + 5.0, client="10.0.0.50")


def checked_address(tape: Tape) -> None:
    dhcp(tape, 3100.0, 3)


def late_offer(tape: Tape) -> None:
    dhcp(tape, 2100.0)


def no_offer(tape: Tape, answered: bool = False) -> None:
    """A client asks for an address four times; a neighbour is busy all the while."""

    def message(op: int, number: int) -> bytes:
        head = bytes((op, 1, 6, 0)) + b"abc%d" % number + bytes(8) + socket.inet_aton("10.0.0.50") + bytes(8)
        return head + b"\2\0\0\0\0\7" + bytes(202) + b"\x63\x82\x53\x63\xff"

    for at in (0.0, 4000.0, 11000.0, 25000.0):
        udp(tape, at, ("0.0.0.0", 68), ("255.255.255.255", 67), message(1, 0))
        tape.talk(at + 100.0, client="10.0.0.30")
    if answered:
        udp(tape, 25010.0, ("0.0.0.0", 68), ("255.255.255.255", 67), message(1, 1))
        udp(tape, 25014.0, ("10.0.0.2", 67), ("10.0.0.50", 68), message(2, 1))


def late_switch(tape: Tape) -> None:
    """Somebody else got an address: the first client may have gone."""
    no_offer(tape, answered=True)


def expired(tape: Tape, bursts: tuple[float, ...] = (1000.0, 9000.0), each: float = 900.0) -> None:
    """Eight workers find that an entry has expired, and all do its work; quick requests else."""
    tape.talk(0.0, requests=20)
    for burst in bursts:
        for number in range(8):
            tape.talk(burst + 31 * number, think=each + 17 * (number * 5 % 8))


def asked_all_the_time(tape: Tape) -> None:
    """Eight workers that request the same thing again at once: a load, and no burst."""
    expired(tape, tuple(1000.0 + 1300.0 * turn for turn in range(6)), each=1000.0)


def one_by_one(tape: Tape) -> None:
    tape.talk(0.0, rtt=20.0, requests=40)


def with_pauses(tape: Tape) -> None:
    """As many, but a program, or a person, takes its time between them."""
    tape.talk(0.0, rtt=20.0, requests=40, apart=300.0)


def arp(tape: Tape, ms: float, asker: str, target: str, back: bool = False) -> None:
    ends = [ip_address(end).packed for end in ((target, asker) if back else (asker, target))]
    body = struct.pack(">HHBBH", 1, 0x800, 6, 4, 2 if back else 1) + b"\2\0\0\0\0\1" + ends[0] + bytes(6) + ends[1]
    tape.frames.append((ms, b"\xff" * 6 + b"\2\0\0\0\0\1" + b"\x08\x06" + body))


def redirected(tape: Tape, steps: int = 3, pause: float = 0.2) -> None:
    """Each step on a connection of its own, to the next address of the chain."""
    now = 0.0
    for step in range(steps + 1):
        tape.port += 1
        ends = Ends(("10.0.0.1", tape.port), SERVER)
        tape.tcp(now, "S", ends, 1000)
        tape.tcp(now + 40, "SA", ends, 5000, 1001, back=True)
        tape.tcp(now + 40.1, "A", ends, 1001, 5001)
        ask = b"GET /step%d HTTP/1.1\r\nHost: a\r\n\r\n" % step
        tape.tcp(now + 40.2, "PA", ends, 1001, 5001, ask)
        last = step == steps
        head = b"HTTP/1.1 200 OK" if last else b"HTTP/1.1 302 Found\r\nLocation: /step%d" % (step + 1)
        tape.tcp(now + 80.4, "A", ends, 5001, 1001 + len(ask), back=True)
        tape.tcp(now + 80.5, "PA", ends, 5001, 1001 + len(ask), head + b"\r\nContent-Length: 0\r\n\r\n", back=True)
        now += 80.5 + pause


def redirected_once(tape: Tape) -> None:
    redirected(tape, steps=1)
    tape.talk(1000.0, rtt=40.0)


def refused_until(tape: Tape) -> None:
    """Nothing listens yet: the client tries again after 1, 2 and 4 s."""
    for at in (0.0, 1000.0, 3000.0):
        tape.refused(at, SERVER, "10.0.0.1", (0.0,))
    tape.talk(7000.0)


def checked(tape: Tape) -> None:
    """A check each second finds nothing, then a server: nobody waited for it."""
    for at in (0.0, 1000.0, 2000.0):
        tape.refused(at, SERVER, "10.0.0.1", (0.0,))
    for at in (3000.0, 4000.0, 5000.0):
        tape.talk(at)


def answered_later(
    tape: Tape, statuses: tuple[int, ...] = (503, 503, 200), pause: float = 2000.0, took: tuple[float, ...] = (),
    query: str = "",
) -> None:  # fmt: skip
    """Requests for one thing on a kept connection, one after the other, each of which took 1 ms, or so long."""
    tape.port += 1
    ends = Ends(("10.0.0.1", tape.port), SERVER)
    tape.tcp(0, "S", ends, 1000)
    tape.tcp(1, "SA", ends, 5000, 1001, back=True)
    tape.tcp(1.1, "A", ends, 1001, 5001)
    now, mine, theirs = 2.0, 1001, 5001
    for number, (status, ms) in enumerate(zip(statuses, took or (1.0,) * len(statuses), strict=True)):
        ask = f"GET /export{query.format(number)} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        tape.tcp(now, "PA", ends, mine, theirs, ask)
        mine += len(ask)
        reply = b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status
        tape.tcp(now + 0.9, "A", ends, theirs, mine, back=True)
        tape.tcp(now + ms, "PA", ends, theirs, mine, reply, back=True)
        theirs += len(reply)
        tape.tcp(now + ms + 0.1, "A", ends, mine, theirs)
        now += ms + pause


@pytest.mark.parametrize(("code", "later"), [(450, True), (421, True), (503, False), (550, False)])
def test_mail_is_tried_again_behind_a_4yz_answer_alone(code: int, later: bool) -> None:
    """503 is "bad sequence of commands" there (RFC 5321), and no request to come back."""
    tape = Tape()
    for at, reply in ((0.0, code), (9_000.0, code), (18_000.0, 250)):
        tape.port += 1
        ends = Ends(("10.0.0.1", tape.port), ("10.0.0.2", 25))
        tape.tcp(at, "S", ends, 1000)
        tape.tcp(at + 1, "SA", ends, 5000, 1001, back=True)
        tape.tcp(at + 1.1, "A", ends, 1001, 5001)
        now, mine, theirs = at + 2.0, 1001, 5001
        lines = (b"", b"220 here ESMTP"), (b"EHLO a", b"250 here"), (b"MAIL FROM:<a@a.example>", b"250 ok")
        for ask, answer in (*lines, (b"RCPT TO:<b@b.example>", b"%d it is so" % reply), (b"QUIT", b"221 bye")):
            if ask:
                tape.tcp(now, "PA", ends, mine, theirs, ask + b"\r\n")
                mine += len(ask) + 2
            tape.tcp(now + 0.5, "PA", ends, theirs, mine, answer + b"\r\n", back=True)
            theirs += len(answer) + 2
            now += 1.0
    found = lp.read(tape.bytes()).why().findings
    assert any(one.sentence == "later_until" for one in found) is later
    assert not later or next(one for one in found if one.sentence == "later_until").max_ms == pytest.approx(18_000.0)


def polled(tape: Tape) -> None:
    """The same at the same pace, whatever the answer: a check that repeats anyway."""
    answered_later(tape, (503, 200, 200, 200))


def looked_back(tape: Tape, name: str = "1.0.0.10.in-addr.arpa", took: float | None = None, work: float = 5.0) -> None:
    """A server looks up a name while it works on a request."""
    name_took = 4000.0 if took is None else took
    tape.dns(10.0, name, 12, 40_900, 40_900, "10.0.0.9")
    tape.frames[-1] = 10.0, asked_by_server(tape.frames[-1][1])
    if took is not None:
        tape.dns(10.0 + took, name, 12, 40_900, 40_900, "10.0.0.9", None, True)
        tape.frames[-1] = 10.0 + took, asked_by_server(tape.frames[-1][1])
    tape.talk(1.0, think=8.0 + name_took + work, apart=0.5)


def asked_by_server(frame: bytes) -> bytes:
    """A frame between 10.0.0.1 and a name server, with the server's address for the former."""
    packet = dpkt.ethernet.Ethernet(frame)
    mine, server = socket.inet_aton("10.0.0.1"), socket.inet_aton(SERVER[0])
    packet.data.src = server if packet.data.src == mine else packet.data.src
    packet.data.dst = server if packet.data.dst == mine else packet.data.dst
    packet.data.sum = packet.data.data.sum = 0
    return bytes(packet)


def reverse_never(tape: Tape) -> None:
    looked_back(tape)


def reverse_beside(tape: Tape) -> None:
    """The client's name comes at once, and the work goes on; another address's name never comes."""
    looked_back(tape, took=300.0, work=4000.0)
    tape.dns(20.0, "7.0.0.10.in-addr.arpa", 12, 40_901, 40_901, "10.0.0.9")
    tape.frames[-1] = 20.0, asked_by_server(tape.frames[-1][1])


def frozen(tape: Tape) -> None:
    """Requests that come one by one while nothing is answered, then all at once."""
    tape.talk(0.0, requests=4)
    for number, at in enumerate((1000.0, 1200.0, 1500.0, 1900.0)):
        tape.talk(at, client=f"10.0.0.{20 + number}", think=4000.0 - at + number)


def held_by_one(tape: Tape) -> None:
    """Those of `frozen`, while others are answered."""
    frozen(tape)
    for at in (2000.0, 2300.0, 3100.0):
        tape.talk(at, client="10.0.0.40")


def long_work(tape: Tape) -> None:
    """Each takes as long as the others, however it began."""
    tape.talk(0.0, requests=4)
    for number, at in enumerate((1000.0, 1200.0, 1500.0, 1900.0)):
        tape.talk(at, client=f"10.0.0.{20 + number}", think=2000.0 + 3 * number)


def passive(tape: Tape, there: tuple[str, int] = ("10.9.9.9", 50_007), answered: bool = False) -> None:
    """FTP's PASV, and a connection for the data."""
    tape.port += 1
    ends = Ends(("10.0.0.1", tape.port), ("10.0.0.2", 21))
    tape.tcp(0, "S", ends, 1000)
    tape.tcp(1, "SA", ends, 5000, 1001, back=True)
    tape.tcp(1.1, "A", ends, 1001, 5001)
    now, mine, theirs = 2.0, 1001, 5001
    lines = ((b"", b"220 ready\r\n"), (b"USER a\r\n", b"331 password\r\n"), (b"PASS b\r\n", b"230 in\r\n"),
             (b"PASV\r\n", b"227 Entering Passive Mode (10,9,9,9,195,87)\r\n"))  # fmt: skip
    for ask, reply in lines:
        if ask:
            tape.tcp(now, "PA", ends, mine, theirs, ask)
            mine += len(ask)
        tape.tcp(now + 0.9, "PA", ends, theirs, mine, reply, back=True)
        theirs += len(reply)
        tape.tcp(now + 1.0, "A", ends, mine, theirs)
        now += 2.0
    if answered:
        tape.talk(now, there)
    else:
        tape.mute(now, there, syns=(0.0, 1000.0, 3000.0, 7000.0))


def passive_port(tape: Tape) -> None:
    passive(tape, ("10.0.0.2", 50_007))


def passive_answered(tape: Tape) -> None:
    passive(tape, ("10.0.0.2", 50_007), answered=True)


def late_neighbour(tape: Tape) -> None:
    for at in (0.0, 1020.0, 2040.0):
        arp(tape, at, "10.0.0.1", "10.0.0.2")
    arp(tape, 2041.0, "10.0.0.1", "10.0.0.2", back=True)
    tape.talk(2041.1)


def prompt_neighbour(tape: Tape) -> None:
    """One that answers, one that never does and that nobody needs, and one that says who it is."""
    arp(tape, 0.0, "10.0.0.1", "10.0.0.2")
    arp(tape, 0.4, "10.0.0.1", "10.0.0.2", back=True)
    for at in (100.0, 1120.0, 2140.0):
        arp(tape, at, "10.0.0.1", "10.0.0.77")
    arp(tape, 50.0, "10.0.0.5", "10.0.0.5")
    tape.talk(0.5)


def tunnelled(tape: Tape, wrong: bool) -> None:
    """SYNs in VXLAN, with the outer checksum right or wrong, of which the last one is answered outside."""
    inner = Tape()
    inner.talk(0.0, syns=(0.0, 1000.0, 3000.0))
    for ms, frame in inner.frames:
        body = b"\x08\0\0\0\0\0\x2a\0" + frame
        udp = dpkt.udp.UDP(sport=5000, dport=4789, data=body)
        udp.ulen = len(udp)
        packet = dpkt.ip.IP(src=b"\x0a\1\0\1", dst=b"\x0a\1\0\2", p=17, ttl=64, data=udp)
        packet.len = len(packet)
        raw = bytearray(bytes(packet))
        if wrong:
            raw[26] ^= 0x55
        outer = dpkt.ethernet.Ethernet(src=b"\2\0\0\0\0\1", dst=b"\2\0\0\0\0\2", type=0x800, data=bytes(raw))
        tape.frames.append((ms, bytes(outer)))


def broken_tunnel(tape: Tape) -> None:
    tunnelled(tape, True)


def sound_tunnel(tape: Tape) -> None:
    tunnelled(tape, False)


WAITS: dict[str, Callable[[Tape], None]] = {
    "dns_dead": dead_server, "dns_lost": lossy_server, "dns_lost_pair": lost_pair, "dns_search": searched,
    "dns_slow": slow_server, "dns_failed": failing, "dns_never": no_server, "family_dead": black_hole,
    "address_dead": dead_address, "family_refused": refused_family, "address_refused": refused_address,
    "syn_old_stamp": old_stamps, "syn_challenged": challenged, "syn_ecn": ecn_dropped, "syn_queue_full": full_queue,
    "syn_other_address": translated, "data_other_address": moved, "greeting_late": late_greeting, "in_turn": one_by_one,
    "arp_late": late_neighbour, "tunnel_checksum": broken_tunnel, "redirects": redirected,
    "refused_until": refused_until, "later_until": answered_later, "dns_reverse": reverse_never,
    "frozen": frozen, "behind_one": held_by_one, "ftp_address": passive, "ftp_port": passive_port,
    "greeting_partial": second_line, "greeting_reverse": name_before_greeting, "ftp_active": active,
    "callback_dead": ident, "onward_dead": onward, "connect_dead": referred,
    "datagram_dead": dead_clock, "datagram_late": slow_agent, "dhcp_checked": checked_address,
    "datagram_failed": refused_login,
    "dhcp_never": no_offer, "connects_in_turn": connected_each, "expect_continue": expecting,
    "transaction_lock": locked, "transaction_pool": pooled, "behind_other": blocked, "stampede": expired,
    "proxy_queue": queued_in_proxy,
}  # fmt: skip
DECOYS = {
    "dns_dead": lossy_server, "dns_search": quick_names, "dns_slow": quick_names, "address_dead": other_sites,
    "family_refused": refused_at_once, "syn_old_stamp": any_stamps, "syn_challenged": lost_syn, "syn_ecn": ecn_lost,
    "syn_queue_full": lost_syn, "greeting_late": prompt_greeting, "in_turn": with_pauses,
    "arp_late": prompt_neighbour, "tunnel_checksum": sound_tunnel, "redirects": redirected_once,
    "refused_until": checked, "later_until": polled, "dns_reverse": reverse_beside,
    "frozen": long_work, "behind_one": frozen, "ftp_address": passive_port, "ftp_port": passive_answered,
    "greeting_partial": slow_speaker, "greeting_reverse": quick_name, "ftp_active": passive_port,
    "callback_dead": ident_beside, "onward_dead": onward_beside, "connect_dead": busy_beside,
    "pool_of_one": one_client_in_turn, "datagram_dead": clock_beside, "datagram_late": quick_agent,
    "datagram_failed": accepted_then,
    "dhcp_checked": late_offer, "dhcp_never": late_switch,
    "connects_in_turn": connected_with_pauses, "expect_continue": read_from_disk,
    "transaction_lock": slow_beside_transaction, "transaction_pool": locked, "behind_other": beside_long_work,
    "stampede": asked_all_the_time, "proxy_queue": working_in_proxy,
}  # fmt: skip


def read(script: Callable[[Tape], None]) -> lp.Capture:
    tape = Tape()
    script(tape)
    return lp.read(tape.bytes())


@pytest.mark.parametrize("sentence", WAITS)
def test_it_is_the_headline(sentence: str) -> None:
    why = read(WAITS[sentence]).why()
    first = why.findings[0]
    assert first.sentence == sentence, why.headline
    assert why.headline[1:] == f"{words.say(sentence, **(first.values or {}))}."[1:]
    assert why.fix == words.fix(sentence, **(first.values or {}))
    assert why.to_dict()["findings"][0]["owner"] == first.owner
    assert (first.total_ms or 0) >= 80


@pytest.mark.parametrize("sentence", DECOYS)
def test_what_only_looks_like_it_is_not(sentence: str) -> None:
    why = read(DECOYS[sentence]).why()
    assert sentence not in {finding.sentence for finding in why.findings}, why.headline


FORMS = [
    ("transaction_lock", locked_without_begin, locked_by_nobody),
    ("onward_dead", onward_of_loopback, one_lost_syn_of_loopback),
    ("onward_dead", onward_of_loopback, agent_beside),
    ("proxy_queue", queued_in_proxy, busy_proxy),
]


@pytest.mark.parametrize(("sentence", "script", "decoy"), FORMS, ids=lambda value: getattr(value, "__name__", value))
def test_other_forms_and_what_only_looks_like_them(
    sentence: str, script: Callable[[Tape], None], decoy: Callable[[Tape], None]
) -> None:
    assert read(script).why().findings[0].sentence == sentence
    assert sentence not in {finding.sentence for finding in read(decoy).why().findings}


def test_a_lock_that_passed_through_others_is_its_first_holders() -> None:
    tape = Tape()
    sql(tape, 40_001, [(100.0, 0.2, "START TRANSACTION"), (110.0, 0.3, ROW), (4000.0, 0.4, "COMMIT")], "10.0.0.3")
    second = [(400.0, 0.2, "START TRANSACTION"), (500.0, 3500.7, ROW), (4001.0, 0.3, "COMMIT")]
    sql(tape, 40_002, second, "10.0.0.5")
    sql(tape, 40_003, [(600.0, 3401.6, ROW)])
    sql(tape, 40_004, QUICK, "10.0.0.4")
    [found] = [f for f in lp.read(tape.bytes()).why().findings if f.sentence == "transaction_lock"]
    assert (found.client, found.exchanges) == ("10.0.0.3", 2)


@pytest.mark.parametrize("sentence", WAITS)
def test_an_answer_alone_says_the_same(sentence: str, tmp_path: Path) -> None:
    """`latpcap why FILE` keeps less of a capture, and says no less."""
    tape = Tape()
    WAITS[sentence](tape)
    file = tmp_path / "a.pcap"
    file.write_bytes(tape.bytes())
    assert str(answer_view.read(file).why()) == str(lp.read(file).why())


@pytest.mark.parametrize("sentence", WAITS)
def test_every_nanosecond_of_an_action_is_in_one_part(sentence: str) -> None:
    cap = read(WAITS[sentence])
    made = waits.find_actions({name: cap.arrow(name) for name in waits.READS})
    assert made
    for action in made:
        assert sum(action.parts().values()) == max(w.end for w in action.waits) - min(w.start for w in action.waits)
    assert cap.waits["waited_ms"].min() >= 0
    assert len(cap.waits) == sum(len(action.waits) for action in made)
    assert sorted(set(cap.waits["action"])) == list(cap.actions["action"])


def test_an_action_is_what_a_client_did_to_get_one_thing() -> None:
    tape = Tape()
    lost_pair(tape)
    first = lp.read(tape.bytes()).actions.iloc[0]
    assert first["lookup_ms"] == pytest.approx(5003.0)
    assert first["connect_ms"] == pytest.approx(1.0)
    assert first["request_ms"] == pytest.approx(1.1)
    assert first["other_ms"] == pytest.approx(first["total_ms"] - 5003.0 - 1.0 - 1.1)
    assert first["ended"] == "answered" and first["server"] == "10.0.0.2"


def test_addresses_tried_one_after_the_other_are_one_action() -> None:
    tape = Tape()
    black_hole(tape)
    cap = lp.read(tape.bytes())
    assert list(cap.actions["connect_ms"].round()) == [2001.0, 2001.0]
    assert list(cap.waits["ended"][:2]) == ["given_up", "answered"]


@pytest.mark.parametrize("query", ["", "?since={}"])
@pytest.mark.parametrize(
    ("statuses", "took", "slow"),
    [
        ((204, 200, 204), (6001.0, 3200.0, 6004.0), 0),  # a timer ends the empty ones: a long poll
        ((204, 200, 204), (6001.0, 3200.0, 4700.0), 3),  # a program that works
        ((200, 200, 200), (6001.0, 3200.0, 6004.0), 3),  # answers with something to report
    ],
)
def test_a_poll_is_known_by_its_empty_answers(
    statuses: tuple[int, ...], took: tuple[float, ...], slow: int, query: str
) -> None:  # fmt: skip
    tape = Tape()
    answered_later(tape, statuses, 5.0, took, query)
    [server] = lp.read(tape.bytes()).why().to_dict()["servers"][:1]
    assert server["slow"] == slow


def test_an_answer_without_content_to_no_path_is_no_poll() -> None:
    """Found by .ci/hostile.py: no request of the capture has a target."""
    none = pa.nulls(1, pa.string()).dictionary_encode()
    exchanges = pa.table({"kind": none, "method": none, "target": none, "status": [204], "latency_ms": [9000.0]})
    assert not slow_requests.long_polls(exchanges).any()


def test_a_name_that_came_late_was_waited_for_too() -> None:
    why = read(lambda tape: looked_back(tape, took=4000.0)).why()
    assert why.findings[0].sentence == "dns_reverse" and words.say("reverse_late") in why.headline


def test_requests_behind_the_first_are_actions_of_their_own() -> None:
    tape = Tape()
    tape.talk(0.0, requests=3)
    cap = lp.read(tape.bytes())
    assert list(cap.actions["waits"]) == [2, 1, 1]
    assert set(cap.waits["kind"]) == {"connect", "request"}


def test_a_loop_over_rows_is_one_however_the_path_wavers() -> None:
    tape = Tape()
    tape.talk(0.0, rtt=20.0, requests=60, think=1.5, apart=2.0)
    for number, wait in ((15, 30.0), (40, 25.0)):  # once the path takes longer, once the client
        late = [frame for frame in sorted(tape.frames, key=lambda row: row[0])][3 + 3 * number][0]
        tape.frames = [(ms + wait * (ms >= late), frame) for ms, frame in tape.frames]
    [found] = [f for f in lp.read(tape.bytes()).why().findings if f.sentence == "in_turn"]
    assert (found.values or {})["run"] == 60


def test_a_query_into_a_firewall_that_forgot_needs_no_reader() -> None:
    """Nobody reads these bytes; idle, then repeats without an ACK while a new connection works."""
    tape = Tape()
    ends = Ends(("10.0.0.1", 50_001), ("10.0.0.2", 7777))
    tape.tcp(0.0, "S", ends, 1000)
    tape.tcp(1.0, "SA", ends, 5000, 1001, back=True)
    tape.tcp(1.1, "A", ends, 1001, 5001)
    tape.tcp(2.0, "PA", ends, 1001, 5001, b"\x81" * 40)
    tape.tcp(3.0, "PA", ends, 5001, 1041, b"\x82" * 60, back=True)
    tape.tcp(3.1, "A", ends, 1041, 5061)
    for at in (12_000.0, 12_300.0, 12_900.0, 14_100.0, 16_500.0, 21_300.0, 30_900.0):
        tape.tcp(at, "PA", ends, 1041, 5061, b"\x81" * 40)
    ends = Ends(("10.0.0.1", 50_002), ("10.0.0.2", 7777))
    tape.tcp(23_000.0, "S", ends, 1000)
    tape.tcp(23_001.0, "SA", ends, 5000, 1001, back=True)
    tape.tcp(23_001.1, "A", ends, 1001, 5001)
    tape.tcp(23_002.0, "PA", ends, 1001, 5001, b"\x81" * 40)
    tape.tcp(23_003.0, "PA", ends, 5001, 1041, b"\x82" * 60, back=True)
    why = lp.read(tape.bytes()).why()
    assert why.findings[0].sentence == "idle_drop", why.headline
    assert why.findings[0].max_ms == pytest.approx(11_000.0)


@pytest.mark.parametrize("script", [dead_clock, slow_agent, checked_address, no_offer])
def test_requests_over_udp_are_waits_and_actions(script: Callable[[Tape], None]) -> None:
    cap = read(script)
    found = cap.findings.query("kind == 'wait'").iloc[0]
    mine = cap.waits[(cap.waits["table"] == "lookups") & (cap.waits["cause"] == found["cause"])]
    assert mine["waited_ms"].sum() == pytest.approx(found["total_ms"])
    assert set(mine["owner"]) == {found["owner"]} and set(mine["grade"]) == {found["grade"]}
    parts = cap.actions[[*(f"{kind}_ms" for kind in KINDS), "other_ms"]].sum(axis=1)
    assert (parts * 1e6).round().tolist() == (cap.actions["total_ms"] * 1e6).round().tolist()


def test_the_next_server_is_of_the_same_action() -> None:
    cap = read(dead_clock)
    first = cap.actions.iloc[0]
    assert (first["waits"], first["server"], first["ended"]) == (2, "10.0.0.9", "answered")
    assert first["request_ms"] == pytest.approx(7504.0)
    assert cap.waits["ended"].iloc[0] == "given_up"


def test_an_answer_to_another_request_is_none() -> None:
    tape = Tape()
    slow_agent(tape, answered=False)
    assert "datagram_late" not in {f.sentence for f in lp.read(tape.bytes()).why().findings}


def test_a_connection_that_ended_before_the_next_try_was_for_something_else() -> None:
    tape = Tape()
    tape.dns(0.0, "a.example", 1, 7, 40_900, "10.0.0.9")
    tape.dns(1.0, "a.example", 1, 7, 40_900, "10.0.0.9", "10.0.7.7", True)
    tape.lookup(2.0, "a.example")
    tape.mute(5.0, ("10.0.7.7", 80), syns=TRIED)
    tape.talk(600.0)
    tape.talk(9000.0)
    [found] = [f for f in lp.read(tape.bytes()).why().findings if f.sentence == "address_dead"]
    assert found.max_ms == pytest.approx(8995.0)


def test_no_capture_has_no_actions() -> None:
    cap = lp.read(Tape().bytes())
    assert not len(cap.actions) and not len(cap.waits)


@pytest.mark.parametrize(("stamp", "rejected"), [(7000, True), (9999, False)])
def test_a_syn_seen_before_and_behind_a_nat_is_one(stamp: int, rejected: bool) -> None:
    """The client rejects the answer of an address that it did not ask; an own connection from that port is another."""
    tape = Tape()
    ends, behind = Ends(("10.0.0.1", 40_001), SERVER), Ends(("10.0.0.1", 40_001), ("10.0.5.5", 80))
    tape.tcp(0.0, "S", ends, 1000, stamp=7000)
    tape.tcp(0.2, "S", behind, 1000, stamp=stamp)
    tape.tcp(0.4, "SA", behind, 5000, 1001, back=True, stamp=1)
    tape.tcp(0.5, "R", behind, 1001)
    why = lp.read(tape.bytes()).why()
    assert ("syn_other_address" in {f.sentence for f in why.findings}) == rejected
    assert ("10.0.5.5:80, and never came about" in why.headline) == rejected


def test_a_late_set_up_without_data_is_no_idling() -> None:
    tape = Tape()
    ends = Ends(("10.0.0.1", 40_001), SERVER)
    for at in (0.0, 1000.0, 3000.0):
        tape.tcp(at, "S", ends, 1000)
    tape.tcp(3000.4, "SA", ends, 5000, 1001, back=True)
    tape.tcp(3000.5, "A", ends, 1001, 5001)
    why = lp.read(tape.bytes()).why()
    assert why.headline.startswith("10.0.0.2:80: 1 connection took 3,000 ms longer to be set up: a SYN or SYN-ACK")
    assert "accept queue" in (why.fix or "") and why.to_dict()["capture_kind"] != "idle"


def test_a_handshake_alone_says_how_far_the_server_is() -> None:
    tape = Tape()
    ends = Ends(("10.0.0.1", 40_001), SERVER)
    tape.tcp(0.0, "S", ends, 1000)
    tape.tcp(280.0, "SA", ends, 5000, 1001, back=True)
    tape.tcp(280.1, "A", ends, 1001, 5001)
    tape.tcp(281.0, "FA", ends, 1001, 5001)
    headline = lp.read(tape.bytes()).why().headline
    assert "the path's round trip was 280 ms in their handshakes" in headline
    assert headline.endswith("1 closed by the client's FIN.")


def test_a_push_belongs_to_no_action_and_a_transfer_to_its_requests() -> None:
    pushed = lp.read(CASES / "published_messages_held" / "capture.pcap").waits
    pushed = pushed[pushed["kind"] == "push"]
    assert len(pushed) and pushed["action"].isna().all() and "stall" in set(pushed["family"])
    cap = lp.read(CASES / "decoy_queue" / "capture.pcap.gz")
    moved = cap.waits[cap.waits["kind"] == "transfer"]
    assert len(moved) == len(cap.transfers) and list(moved["grade"]) == list(cap.transfers["grade"])
    own = cap.waits[(cap.waits["kind"] == "request") & cap.waits["action"].isin(moved["action"])]
    assert set(own["stream"]) >= set(moved["stream"])


def test_a_wait_has_the_grade_of_its_cause() -> None:
    cap = lp.read(SAMPLES / "nginx-latency.pcap")
    causes, waits_ = cap.causes, cap.waits
    stalls = waits_[waits_["family"] == "stall"]
    assert len(stalls) > 800 and set(waits_[waits_["kind"] == "connect"]["grade"]) == {"proven"}
    for row in stalls.head(5).itertuples():
        mine = causes[(causes["exchange"] == row.row) & (causes["cause"] == row.cause)]
        assert row.grade == mine.sort_values("duration_ms")["grade"].iloc[-1]


def test_results_of_a_batch_have_the_account_of_each_capture(tmp_path: Path) -> None:
    files = [SAMPLES / "nginx-latency.pcap", SAMPLES / "probes.pcap"]
    lp.batch(files, tmp_path / "results", quiet=True)
    results = lp.open_results(tmp_path / "results")
    for name in ("waits", "actions"):
        stored = results.to_arrow(name)
        alone = [lp.read(file).arrow(name).num_rows for file in files]
        counts = stored["capture"].value_counts().to_pylist()
        assert sorted(row["counts"] for row in counts) == sorted(alone)
    one = results.slice(file="nginx-latency.pcap").actions.drop(columns="capture")
    assert one["total_ms"].tolist() == lp.read(files[0]).actions["total_ms"].tolist()
    pytest.importorskip("duckdb")
    assert results.sql("select count(*) as n from actions")["n"].iloc[0] == len(results.actions)


@pytest.mark.parametrize("at_once", [True, False])
def test_turns_that_begin_as_the_answer_comes_may_be_second_halves(at_once: bool) -> None:
    """Where they begin later, a program has read the answer: then the path is all there is."""
    from spoken.answers import sealed_pairs

    why = lp.read(sealed_pairs(at_once)).why()
    assert ("Nagle's algorithm on the client" in why.headline) == at_once
    assert why.grade == "probable" or not at_once


@pytest.mark.parametrize("later", [True, False])
def test_syns_without_an_answer_weigh_their_first_timer(later: bool) -> None:
    """Most connections of a port got nothing: each waited a second at least, where the capture goes on for so long."""
    tape = Tape()
    tape.talk(0.0)
    for number in range(6):
        tape.tcp(20.0 + number, "S", Ends(("10.0.0.1", 41_000 + number), SERVER), 1000)
    tape.talk(9000.0 if later else 26.0, OTHER)
    [found] = [f for f in lp.read(tape.bytes()).why().findings if f.cause == "unanswered"]
    assert (found.total_ms or 0) >= 6000 if later else (found.total_ms or 0) < 60


LATE_NAMES = {
    "dns_dead": ("server", "dns"), "dns_lost": ("loss", "dns"), "dns_lost_pair": ("loss", "dns"),
    "dns_search": ("client", "client"), "dns_slow": ("server", "dns"), "dns_failed": ("server", "dns"),
    "dns_never": ("server", "dns"),
}  # fmt: skip


@pytest.mark.parametrize("reason", LATE_NAMES)
def test_a_lookup_has_the_cause_and_the_grade_of_its_finding(reason: str) -> None:
    capture = read(WAITS[reason])
    [found] = [row for row in capture.arrow("findings").to_pylist() if row["cause"] == reason]
    rows = [row for row in capture.arrow("waits").to_pylist() if row["cause"] == reason]
    assert len(rows) == found["exchanges"]
    assert {(row["kind"], row["family"], row["owner"], row["grade"]) for row in rows} == {
        ("lookup", *LATE_NAMES[reason], found["grade"])
    }


def test_an_answer_that_does_not_arrive_is_asked_for_again() -> None:
    """The table has two quick rows a question; its client waited from the first to the second."""
    capture = read(kept_from_client)
    [found] = [row for row in capture.arrow("findings").to_pylist() if row["cause"] == "dns_lost"]
    assert (found["exchanges"], found["owner"]) == (2, "dns")
    waited = [row["waited_ms"] for row in capture.arrow("waits").to_pylist() if row["cause"] == "dns_lost"]
    assert waited == pytest.approx([5003.2] * 2, abs=1)
    assert "it is not DNS" not in str(capture.why())


@pytest.mark.parametrize(
    "tape", [lambda t: kept_from_client(t, (5, 5, 5, 5)), lambda t: kept_from_client(t, again=20.0)],
    ids=["one number for all", "captured twice"],
)  # fmt: skip
def test_the_same_question_is_no_lost_answer(tape: Callable[[Tape], None]) -> None:
    assert "dns_lost" not in {row["cause"] for row in read(tape).arrow("findings").to_pylist()}


def test_a_quick_lookup_has_no_cause() -> None:
    rows = read(quick_names).arrow("waits").to_pylist()
    assert {(row["cause"], row["grade"]) for row in rows if row["kind"] == "lookup"} == {(None, None)}


def test_the_answer_as_json_has_the_actions_where_asked() -> None:
    case = str(Path(__file__).parent / "cases" / "client_in_transaction" / "capture.pcap")
    plain, whole = (json.loads(answered("why", case, "--json", *more)) for more in ((), ("--actions",)))
    assert "actions" not in plain and {**plain, "actions": whole["actions"]} == whole
    for row in whole["actions"]:
        parts = sum(row[f"{kind}_ms"] for kind in ("lookup", "connect", "tls", "greeting", "request", "other"))
        assert parts == pytest.approx(row["total_ms"], abs=1e-6)
    assert "is for --json" in complains(2, "why", case, "--actions")
