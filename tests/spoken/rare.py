"""What few captures show: a TLS connection per request, an answer that ends with a late FIN, a loop of redirects."""

from __future__ import annotations

import struct

import dpkt
from makepcap import EPOCH_NS, Ends, Segment, Talk, answer, get, pcap, pcap_of
from rawip import icmp, packet

from spoken.answers import pings_to
from spoken.registry import in_time, says, talked


def record(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + b"\x03\x03" + struct.pack(">H", len(body)) + body


def handshake(kind: int, body: bytes) -> bytes:
    return record(22, bytes([kind]) + len(body).to_bytes(3, "big") + body)


CLIENT_HELLO = handshake(1, b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\xc0\x2f" + b"\x01\0" + b"\0\0")
SERVER_HELLO = handshake(2, b"\x03\x03" + bytes(32) + b"\0" + b"\xc0\x2f" + b"\0" + b"\0\0")
SERVER_NAME = struct.pack(">HHHBH", 0, 12, 10, 0, 7) + b"a.b.com"
FINISHED = record(20, b"\x01") + record(22, bytes(40))


def tls(tape: list[Segment], number: int, requests: int, certificates: int = 2800, path: float = 40.0) -> None:
    """A TLS 1.2 connection: handshake, so many requests, the end. What is beyond ten segments waits for the ACK."""
    talk = Talk(
        ends=Ends(("10.0.0.1", 40_000 + number), ("10.0.0.2", 443)), server_leg=path, client_leg=0.01, tape=tape
    )
    at = 2000.0 * number
    talk.open(at)
    at += path + 0.1
    talk.client(at, CLIENT_HELLO)
    at += path + 0.5
    flight = SERVER_HELLO + handshake(11, bytes(certificates)) + handshake(14, b"")
    while flight:
        burst, flight = flight[:14_600], flight[14_600:]
        for begin in range(0, len(burst), 1460):
            talk.server(at + begin / 1e6, burst[begin : begin + 1460])
        talk.client(at + 0.1)
        at += path + 0.2 if flight else 0.2
    talk.client(at, handshake(16, bytes(66)) + FINISHED)
    at += path + 0.3
    talk.server(at, FINISHED)
    for _ in range(requests):
        talk.client(at + 1.0, record(23, bytes(200)))
        at += path + 3.0
        talk.server(at, record(23, bytes(600)))
        talk.client(at + 0.1)
    talk.client(at + 1.0, flags="FA")
    talk.server(at + 1.0 + path, flags="FA")
    talk.client(at + 1.1 + path)


@says("Each of 12 requests to 10.0.0.2:443 opened a new TLS connection: the handshakes took ", "resume TLS sessions.")
def a_tls_connection_for_each_request() -> bytes:
    tape: list[Segment] = []
    for number in range(12):
        tls(tape, number, 1)
    return in_time(tape)


@says("the server's certificates are more than its initial congestion window lets out at once.", "A shorter chain (")
def certificates_beyond_the_window() -> bytes:
    tape: list[Segment] = []
    for number in range(6):
        tls(tape, number, 3, certificates=20_000)
    return in_time(tape)


@says(
    "program, which closes the connection late: these answers end only with its FIN", "  fix       Send Content-Length "
)
def answers_that_end_with_a_late_fin() -> bytes:
    tape: list[Segment] = []
    for number in range(6):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number), ("10.0.0.2", 80)), tape=tape)
        at = 6000.0 * number
        talk.open(at)
        talk.client(at + 5.0, b"GET /status HTTP/1.0\r\n\r\n")
        talk.server(at + 6.0, b"HTTP/1.0 200 OK\r\n\r\nall is well")
        talk.client(at + 6.1)
        talk.server(at + 4006.0, flags="FA")
        talk.client(at + 4007.1, flags="FA")
        talk.server(at + 4008.0)
    return in_time(tape)


@says("are 302: a redirect loop, or a client that does not follow (/ was asked 12 times)")
def redirects_in_a_circle() -> bytes:
    talk = Talk(client_leg=0.01)
    talk.open()
    for number in range(12):
        talk.client(10.0 + 5 * number, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        talk.server(11.0 + 5 * number, b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
        talk.client(11.1 + 5 * number)
    return pcap(talk.tape)


@says("closed the connection instead of answering GET /")
def one_request_that_gets_a_close() -> bytes:
    talk = Talk()
    talk.open()
    talk.client(10.0, get())
    talk.server(12.0, flags="FA")
    talk.client(13.0, flags="FA")
    talk.server(13.1)
    return pcap(talk.tape)


@says("answered by ICMP unreachable")
def one_ping_that_is_unreachable() -> bytes:
    first = packet(1, 9, 1, icmp(8, struct.pack(">HH", 7, 0)), ttl=64)
    return pings_to(1, packet(3, 1, 1, icmp(3, bytes(4), first[:28])))


@says("No TCP: 1 ping, answered; round trip ")
def one_ping_that_is_answered() -> bytes:
    return pings_to(1, packet(9, 1, 1, icmp(0, struct.pack(">HH", 7, 0))))


@says("slow requests there (--top ")
def more_slow_servers_than_are_shown() -> bytes:
    tape: list[Segment] = []
    for host in range(8):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + host), (f"10.0.1.{host}", 80)), client_leg=0.01, tape=tape)
        talk.open(host)
        for number in range(4):
            talk.client(10.0 + host + 2000.0 * number, get())
            talk.server(810.0 + host + 2000.0 * number, b"".join(answer(50)))
            talk.client(810.1 + host + 2000.0 * number)
    return in_time(tape)


def beside(talk: Talk, packets: list[bytes], every_ms: float) -> bytes:
    """The connection, and IP packets from 100 ms on."""
    frames = [
        (EPOCH_NS + int((100 + n * every_ms) * 1e6), bytes(12) + b"\x08\0" + raw) for n, raw in enumerate(packets)
    ]
    return pcap(talk.tape) + pcap_of(frames)[24:]


@says("Mostly no TCP: of 306 frames 300 are UDP; nothing is slow at 10.0.0.2:80: its one request took 1.01 ms.")
def requests_among_datagrams() -> bytes:
    datagram = packet(1, 9, 17, bytes(dpkt.udp.UDP(sport=5000, dport=6000, data=bytes(100))))
    return beside(talked(80, [1.0]), [datagram] * 300, 1.0)


def stops_half_way(ends: bool) -> bytes:
    """An answer of which a third comes; nine seconds later the server closes, or the capture goes on elsewhere."""
    tape: list[Segment] = []
    talk = Talk(tape=tape)
    talk.open()
    talk.client(10.0, get())
    talk.server(11.0, b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + b"x" * 1000)
    talk.client(12.1)
    if ends:
        talk.server(9012.0, flags="FA")
        talk.client(9013.0, flags="FA")
    other = Talk(ends=Ends(("10.0.0.1", 41_000), ("10.0.0.3", 80)), tape=tape)
    other.open(9100.0)
    other.client(9110.0, get())
    other.server(9111.0, b"".join(answer(50)))
    return in_time(tape)


@says("nothing more came for 9,001 ms, until it closed the connection")
def an_answer_that_is_ended_half_way() -> bytes:
    return stops_half_way(True)


@says("until the capture's end")
def an_answer_that_stops_half_way() -> bytes:
    return stops_half_way(False)


@says("1 connection unreachable")
def a_syn_that_is_unreachable_beside_slow_requests() -> bytes:
    syn = packet(1, 9, 6, bytes(dpkt.tcp.TCP(sport=4000, dport=81, seq=7, flags=dpkt.tcp.TH_SYN)), ttl=64)
    return beside(talked(80, [900.0] * 3), [syn, packet(3, 1, 1, icmp(3, bytes(4), syn[:28]))], 4000.0)


@says("10.0.0.2:443 is slow: most time goes to the server's program", "a handshake with a.b.com took 2,002 ms")
def handshakes_that_take_long() -> bytes:
    talk = Talk(client_leg=0.01, ends=Ends(server=("10.0.0.2", 443)))
    talk.open()
    hello = handshake(1, b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\xc0\x2f" + b"\x01\0" + b"\0\x10" + SERVER_NAME)
    talk.client(10.0, hello)
    talk.server(2010.0, SERVER_HELLO + handshake(11, bytes(800)) + handshake(14, b""))
    talk.client(2011.0, handshake(16, bytes(66)) + FINISHED)
    talk.server(2012.0, FINISHED)
    return pcap(talk.tape)


@says(
    "Nothing is slow at 10.0.0.2:80: 3 requests, p50 1.02, p99 1.02 ms, and 80.0 ms more at its clients: the way there"
)
def clients_that_are_far_away() -> bytes:
    talk = Talk(client_leg=80.0, server_leg=0.01)
    talk.open()
    for number in range(3):
        at = 200.0 + 500.0 * number
        talk.client(at, get())
        talk.server(at + 1.02, b"".join(answer(50)))
        talk.client(at + 81.0)
    return pcap(talk.tape)


@says(
    "10.0.0.2:443 says nothing after frame ",
    "  fix       Capture at the server, too: where the repeats do not arrive there, a fire",
)
def a_hello_of_which_a_part_never_arrives() -> bytes:
    talk = Talk(client_leg=0.01, server_leg=30.0, ends=Ends(server=("10.0.0.2", 443)))
    talk.open()
    hello = handshake(1, b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\xc0\x2f" + b"\x01\0" + b"\x06\0" + bytes(1536))
    talk.client(40.0, hello[:1448])
    talk.client(40.1, hello[1448:])
    talk.server(70.1, ack=1449)
    for again in (300.0, 800.0, 1800.0, 3800.0):
        talk.client(again, hello[1448:], seq=1449)
    return pcap(talk.tape)
