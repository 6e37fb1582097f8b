"""Captures with limits of their own: doubled packets, jumping clocks, packets that never passed."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

from makepcap import Segment, get, pcap, pcapng
from simulator import MS, Host, Path, Script, record

from case_scripts.registry import case, variants

HEAD, BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n", b"b" * 600
ASK, NODELAY, MIDDLE = ((0.0, get()),), Host(nodelay=True), Path(2.0, 2.0)
GAP = Script(ASK, ((0.0, HEAD), (43.0, BODY)), exchanges=8)
Tape = list[Segment]


def gap(path: Path = MIDDLE) -> Tape:
    """TCP_NODELAY, and a program that pauses 43 ms between head and body."""
    return record(GAP, server=NODELAY, path=path).tape


def later(tape: Tape, ns: int) -> Tape:
    return [replace(s, time_ns=s.time_ns + ns) for s in tape]


@variants(after_5us={"ns": 5_000}, after_300us={"ns": 300_000})
def doubled_packets(ns: int) -> bytes:
    """A program that pauses 43 ms between head and body, with TCP_NODELAY; a mirror port copied every packet twice.

    Not to be mistaken for: retransmissions, or a stall; what is said of these times is suspected at most.
    """
    tape = gap()
    return pcap(sorted([*tape, *later(tape, ns)], key=lambda s: s.time_ns))


@variants(back={"ms": -500}, ahead={"ms": 10_000})
def clock_stepped(ms: int) -> bytes:
    """The same program; the capture's clock jumps once, half way.

    Not to be mistaken for: a server that took 10 s, or packets that came before their cause.
    """
    tape = gap()
    half = len(tape) // 2
    return pcap(tape[:half] + later(tape[half:], ms * MS))


@case
def silent_for_long() -> bytes:
    """A server that is silent for 900 ms between head and body, three times on each of three connections.

    Not to be mistaken for: a clock that jumped ahead.
    """
    script = Script(ASK, ((0.0, HEAD), (900.0, BODY)), exchanges=3)
    return pcap(record(script, server=NODELAY, path=MIDDLE).tape)


@case
def packets_never_passed() -> bytes:
    """Half way between the ends; some packets with data are not in the capture. The IPv4 identifications of the other
    packets say how many.

    Not to be mistaken for: losses on the path behind the capture, which are repeated.
    """
    rng = random.Random(3)
    tape = gap()
    inner = range(12, len(tape) - 12)
    lost = {at for at in inner if tape[at].payload and rng.random() < 0.25}
    return pcap([s for at, s in enumerate(tape) if at not in lost])


@variants(file="capture.pcapng", some={"dropped": 40, "os": 2}, none={"dropped": 0, "os": 0})
def interface_drops(dropped: int, os: int) -> bytes:
    """A server that thinks for 40 ms, in pcapng, with the interface's statistics at the end: what it and the operating
    system dropped (isb_ifdrop, isb_osdrop).

    Not to be mistaken for: losses on the path.
    """
    options = struct.pack("<HHQHHQHH", 5, 8, dropped, 7, 8, os, 0, 0)
    body = struct.pack("<III", 0, 0, 0) + options
    block = struct.pack("<II", 5, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    script = Script(ASK, ((0.0, HEAD + BODY),), exchanges=4, server_think=(39.0, 41.0))
    return pcapng(record(script, server=NODELAY, path=Path(1.0, 0.005)).tape) + block
