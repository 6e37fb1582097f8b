"""Connections that are refused, flooded, tried by a scan, never answered, or left by a peer."""

from __future__ import annotations

import dpkt
from makepcap import Ends, Segment, Talk, answer, get, pcap
from rawip import file, icmp, packet

from spoken.registry import in_time, on_its_own, says, talked


def syn_answered(kind: int, ports: tuple[int, ...]) -> bytes:
    """A SYN from each of these ports, and a router's ICMP for each."""
    syns = [packet(1, 9, 6, bytes(dpkt.tcp.TCP(sport=p, dport=80, seq=7, flags=dpkt.tcp.TH_SYN))) for p in ports]
    return file(*syns, *(packet(3, 1, 1, icmp(kind, bytes(4), syn[:28])) for syn in syns))


@says("SYNs of 2 of 2 connections to 10.0.0.9:80 were answered by routers on the way (ICMP time exceeded): a tracer")
def syns_that_expire() -> bytes:
    return syn_answered(11, (4000, 4001))


@says("(ICMP time exceeded): a traceroute; 1 got no answer, 1 reached it.")
def a_traceroute_that_arrives() -> bytes:
    syns = [packet(1, 9, 6, bytes(dpkt.tcp.TCP(sport=p, dport=80, seq=7, flags=2))) for p in range(4000, 4004)]
    came = bytes(dpkt.tcp.TCP(sport=80, dport=4003, seq=9, ack=8, flags=18))
    return file(*syns, *(packet(3, 1, 1, icmp(11, bytes(4), syn[:28])) for syn in syns[:2]), packet(9, 1, 6, came))


def syns_beside(port: int) -> bytes:
    """Three quick requests to port 80, and two SYNs to this one that nobody answers."""
    tape: list[Segment] = []
    for number in range(2):
        Talk(ends=Ends(("10.0.0.1", 40_000 + number), ("10.0.0.2", port)), tape=tape).client(number, flags="S")
    talk = Talk(ends=Ends(("10.0.0.1", 50_000)), tape=tape)
    talk.open(10.0)
    return in_time(tape)


@says(
    "2 of 3 connections to 10.0.0.2:80 were never answered: the port answered others, so they were dropped on the way"
)
def syns_to_a_port_that_is_full() -> bytes:
    return syns_beside(80)


@says("2 of 2 connections to 10.0.0.2:81 were never answered: the host answered on other ports, so a firewall")
def syns_to_a_port_that_is_filtered() -> bytes:
    return syns_beside(81)


@says("SYNs of 2 of 2 connections to 10.0.0.9:80 were answered by ICMP unreachable: no route, no host or no such port")
def syns_that_are_unreachable() -> bytes:
    return syn_answered(3, (4000, 4001))


def half_open(number: int, tape: list[Segment], clients: int, server: str = "10.0.0.2", answered: bool = True) -> None:
    """SYNs, 200 a second, of so many addresses, whose handshakes are never completed."""
    for n in range(number):
        ends = Ends((f"10.1.0.{1 + n % clients}", 20_000 + n), (server, 80))
        talk = Talk(ends=ends, tape=tape)
        talk.client(n * 5.0, flags="S")
        if answered:
            talk.server(n * 5.0 + 0.01, flags="SA")


@says(
    "10.0.0.2:80: SYN flood: 120 of 120 connections from 50 addresses were never completed (202 a second; the server "
)
def a_flood_of_many() -> bytes:
    tape: list[Segment] = []
    half_open(120, tape, 50)
    return pcap(tape)


@says("SYN flood: 120 of 121 connections from 1 address were never completed (", "  flood     10.0.0.2:80: SYN flood")
def a_flood_beside_requests() -> bytes:
    tape: list[Segment] = []
    half_open(120, tape, 1)
    on_its_own(tape)
    return in_time(tape)


@says("  flood     10.0.0.3:80: SYN flood: 110 of 110 connections from 50 addresses were never completed")
def two_floods() -> bytes:
    tape: list[Segment] = []
    half_open(120, tape, 50)
    half_open(110, tape, 50, "10.0.0.3")
    return in_time(tape)


@says("  also      1 connection not completed")
def half_open_beside_requests() -> bytes:
    tape: list[Segment] = []
    half_open(1, tape, 1)
    on_its_own(tape)
    return in_time(tape)


@says("  also      1 connection answered by routers")
def a_traceroute_beside_requests() -> bytes:
    syn = packet(1, 9, 6, bytes(dpkt.tcp.TCP(sport=4000, dport=80, seq=7, flags=dpkt.tcp.TH_SYN)))
    tape: list[Segment] = []
    on_its_own(tape)
    return file(syn, packet(3, 1, 1, icmp(11, bytes(4), syn[:28])), *(segment.frame()[14:] for segment in tape))


def reset_by(client: bool) -> bytes:
    tape: list[Segment] = []
    for port in (50_000, 50_001):
        talk = on_its_own(tape, port, 100.0 * (port - 50_000))
        (talk.client if client else talk.server)(100.0 * (port - 50_000) + 20.0, flags="RA")
    return pcap(tape)


@says("2 of 2 connections to 10.0.0.2:80 were closed by the server's RST: it left bytes unread, or gave them up")
def resets_of_the_server() -> bytes:
    return reset_by(False)


@says("2 of 2 connections to 10.0.0.2:80 were closed by the client's RST: programs that do not wait for the end do so")
def resets_of_the_client() -> bytes:
    return reset_by(True)


@says("10.0.0.2:80 never answered 2 of 4 requests; the longest wait is 60,010 ms, for GET /a (frame 6).")
def requests_without_answers() -> bytes:
    tape: list[Segment] = []
    for number, target in enumerate(("/a", "/b")):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape)
        talk.open(number * 10.0)
        talk.client(number * 10.0 + 5, get("/quick"))
        talk.server(number * 10.0 + 6, b"".join(answer(50)))
        talk.client(number * 10.0 + 7, get(target))
        talk.server(number * 10.0 + 7.1)
        talk.client(number * 10.0 + 60_017 - 30_000 * number, flags="FA")
    return in_time(tape)


@says("10.0.0.2:80 never answered GET /late (frame 7): more than an hour passed without an answer.")
def a_request_without_an_answer_for_two_hours() -> bytes:
    talk = talked(80, [1.0])
    asked = talk.client(1_000.0, get("/late"))
    talk.server(1_000.1)
    assert asked == 7
    talk.client(7_201_000.0, flags="FA")
    return pcap(talk.tape)


@says(
    "10.0.0.2:80 says nothing after frame 5: the client repeats its data 5 times in 14,050 ms and gets no ack",
    "(it waits for GET /b); the same on 2 ",
)
def a_server_that_is_gone() -> bytes:
    tape: list[Segment] = []
    for number in range(2):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape)
        talk.open(number * 50.0)
        talk.client(number * 50.0 + 5, get("/a"))
        talk.server(number * 50.0 + 6, b"".join(answer(50)))
        at, start = number * 50.0 + 10, talk.c.sent
        for wait in (0.0, 500.0, 1500.0, 3500.0, 7000.0, 14_000.0):
            talk.client(at + wait, get("/b"), seq=start)
    return in_time(tape)


@says("on tcp.stream 0, so there is no latency to judge; connections: 1 without any data.", stream=0)
def one_stream_without_data() -> bytes:
    talk = Talk()
    talk.open()
    return pcap(talk.tape)


@says("A scan: 10.0.0.1 tried 1 port of 30 hosts: 0 refused, 30 without an answer, 0 answered.")
def a_scan_of_hosts() -> bytes:
    tape: list[Segment] = []
    for number in range(30):
        Talk(ends=Ends(("10.0.0.1", 40_000), (f"10.0.1.{number}", 22)), tape=tape).client(5.0 * number, flags="S")
    return pcap(tape)


@says("The only connection to 10.0.0.2:80 was refused with RST: nothing listens on that port; the same on 1 ")
def refused_by_two() -> bytes:
    tape: list[Segment] = []
    for host in ("10.0.0.2", "10.0.0.3"):
        talk = Talk(ends=Ends(server=(host, 80)), tape=tape)
        talk.client(1.0, flags="S")
        talk.server(2.0, flags="RA")
    return pcap(tape)


@says(
    "10.0.0.1 took no data of 10.0.0.2:80 for 1,000 ms: its receive window was closed (from frame 5 on, to the end), ",
    "because its program did not read.",
)
def a_client_that_does_not_read() -> bytes:
    talk = Talk()
    talk.open()
    talk.server(5.0, b"x" * 1000)
    talk.client(5.1, window=0)
    for again in (300.0, 1005.0):
        talk.server(again, b"x", seq=talk.s.sent)
        talk.s.sent -= 1
        talk.client(again + 0.1, window=0)
    return pcap(talk.tape)


@says("  silent    10.0.0.3:80 says nothing after frame ", " and gets no acknowledgement.")
def two_servers_that_are_gone() -> bytes:
    tape: list[Segment] = []
    for number, host in enumerate(("10.0.0.2", "10.0.0.3")):
        talk = Talk(ends=Ends(server=(host, 80)), tape=tape)
        talk.open(number * 50.0)
        for wait in (0.0, 500.0, 1500.0, 3500.0, 7000.0 * (2 - number)):
            talk.client(number * 50.0 + 10 + wait, b"\x01\x02 is there somebody", seq=1)
    return in_time(tape)


def refused_beside_requests(hosts: list[int]) -> bytes:
    """Three quick requests, and a refused connection to each of these hosts."""
    tape: list[Segment] = []
    on_its_own(tape)
    for number, host in enumerate(hosts):
        talk = Talk(ends=Ends(("10.0.0.1", 41_000 + number), (f"10.0.0.{host}", 81)), tape=tape)
        talk.client(50.0 + number, flags="S")
        talk.server(50.1 + number, flags="RA")
    return in_time(tape)


@says("  also      2 connections refused (10.0.0.3:81)")
def refused_by_another_server() -> bytes:
    return refused_beside_requests([3, 3])


@says("  also      4 connections refused (most of 10.0.0.3:81)")
def refused_mostly_by_one() -> bytes:
    return refused_beside_requests([3, 3, 3, 4])


@says("  also      4 connections refused (of 2 servers)")
def refused_by_two_alike() -> bytes:
    return refused_beside_requests([3, 3, 4, 4])


@says("closed the connection instead of answering a message (frame 4), 1 of 2 requests, after 490 ms")
def a_close_behind_a_sealed_request() -> bytes:
    record = b"\x17\x03\x03" + (256).to_bytes(2, "big") + bytes(256)
    talk = Talk(server_leg=8.0, client_leg=0.01, ends=Ends(server=("10.0.0.2", 443)))
    talk.client(0.0, record)
    talk.server(9.0, record)
    talk.client(9.1)
    talk.client(100.0, record)
    talk.server(108.1)
    talk.server(590.0, flags="FA")
    return pcap(talk.tape)


def marked(accepts: str, reports: str) -> bytes:
    """An upload whose ACKs have these flags; its SYN/ACK those."""
    talk = Talk()
    talk.client(0.0, flags="SEC")
    talk.server(0.01, flags=accepts)
    talk.client(1.0)
    for number in range(6):
        talk.client(10.0 + number, bytes(1000))
        talk.server(10.01 + number, flags=reports if number > 2 else "A")
    return pcap(talk.tape)


@says("10.0.0.2:80: the path marks packets instead of dropping them (ECN): 3 ACKs report it (ECE, first in frame 11)")
def acks_that_report_marks() -> bytes:
    return marked("SAE", "AE")


@says("10.0.0.2:80: the server had no room left for data 2 times (zero window, first in frame 5)")
def a_window_that_closes_twice() -> bytes:
    talk = Talk()
    talk.open()
    for number in range(2):
        at = 10.0 + 10.0 * number
        talk.client(at, bytes(1000))
        talk.server(at + 0.01, window=0)
        talk.server(at + 0.1)
    return pcap(talk.tape)
