"""What is said first, and beside it: names, paths, log-ins, one slow request."""

from __future__ import annotations

import struct
from dataclasses import replace

from case_scripts.names import connection, datagram
from makepcap import Ends, Segment, Talk, answer, get, pcap, pcap_of, sack
from rawip import file, icmp, packet
from test_headlines import turns

from spoken.registry import SPOKEN, Spoken, in_time, on_its_own, says, talked


@says("the client asked 3,000-3,500 ms after the handshake on 2 connections: its program took that time, no")
def clients_that_ask_late() -> bytes:
    tape: list[Segment] = []
    for number in range(2):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape)
        talk.open(number)
        at = 3_001.01 + number + 500.0 * number
        talk.client(at, get())
        talk.server(at + 5_000, b"".join(answer(50)))
    return in_time(tape)


@says("10.0.0.2:80: the client asked 3,000 ms after the handshake on 1 connection: its program took that time, not the")
def a_client_that_asks_late() -> bytes:
    talk = Talk()
    talk.open()
    talk.client(3_001.01, get())
    talk.server(3_002.0, b"".join(answer(50)))
    return pcap(talk.tape)


@says("  traffic   3 requests, http, for www.example and 1 other name; 3 GET; answers 3 x 200")
def a_server_with_two_names() -> bytes:
    tape: list[Segment] = []
    for number, name in enumerate(["api.example:8080", "www.example", "www.example"]):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape)
        talk.open(100 * number)
        talk.client(100 * number + 2, get().replace(b"Host: h", b"Host: " + name.encode()))
        talk.server(100 * number + 3, b"".join(answer(50)))
    return in_time(tape)


@says("  traffic   1 request, http; 1 GET; answers 1 x 200")
def a_server_that_is_called_by_its_address() -> bytes:
    talk = Talk()
    talk.open()
    talk.client(2, get().replace(b"Host: h", b"Host: [::1]:80"))
    talk.server(3, b"".join(answer(50)))
    return pcap(talk.tape)


@says("No TCP: 2 pings, each answered; round trips 2.00 to 2.00 ms, 2.00 in the mean.")
def pings_that_are_answered() -> bytes:
    sent = [packet(1, 9, 1, icmp(8, struct.pack(">HH", 7, n)), ttl=64) for n in range(2)]
    return file(*sent, *(packet(9, 1, 1, icmp(0, struct.pack(">HH", 7, n))) for n in range(2)))


def pings_to(number: int, *answers: bytes) -> bytes:
    return file(*(packet(1, 9, 1, icmp(8, struct.pack(">HH", 7, n)), ttl=64) for n in range(number)), *answers)


@says("No TCP: 1 ping, without an answer.")
def a_ping_without_an_answer() -> bytes:
    return pings_to(1)


@says("No TCP: 3 pings, none answered.")
def pings_without_an_answer() -> bytes:
    return pings_to(3)


@says("No TCP: 3 pings, 1 answered by ICMP unreachable, 1 without an answer; round trip 3.00 ms.")
def pings_of_which_one_is_unreachable() -> bytes:
    first = packet(1, 9, 1, icmp(8, struct.pack(">HH", 7, 0)), ttl=64)
    gone = packet(3, 1, 1, icmp(3, bytes(4), first[:28]))
    return pings_to(3, gone, packet(9, 1, 1, icmp(0, struct.pack(">HH", 7, 1))))


@says("10.0.0.2:80: its one turn took over 20 ms, if it was waited for (what was asked cannot be read); ")
def an_answer_to_what_cannot_be_read() -> bytes:
    talk = Talk()
    talk.open()
    talk.client(10.0, b"\0")
    talk.server(10.1)
    talk.client(20.0, get())
    talk.server(20.1)
    talk.server(920.0, b"".join(answer(50)))
    talk.client(920.1)
    return pcap(talk.tape[3:])


@says("2 exchanges, 11.6 days from the first frame to the last")
def two_captures_that_were_joined() -> bytes:
    tape: list[Segment] = []
    for number in range(2):
        talk = Talk(ends=Ends(("10.0.0.1", 50_000 + number)), tape=tape)
        talk.open(number * 1e9)
        talk.client(number * 1e9 + 5.0, get())
        talk.server(number * 1e9 + 6.0, b"".join(answer(50)))
    return pcap(tape)


@says(
    "10.0.0.2:80: 4 of 12 requests are slow; most of their time goes to lost segments, repaired only by the ",
    ", in 1 of them: 500 ms at the median.",
)
def one_loss_among_slow_answers() -> bytes:
    talk = talked(80, [1.0] * 8 + [30.0] * 3)
    start = talk.s.sent
    talk.client(3_000.0, get())
    talk.server(3_001.0, b"".join(answer(50)))
    talk.server(3_501.0, b"".join(answer(50)), seq=start)
    talk.client(3_501.1)
    return pcap(talk.tape)


@says("  dns       the only lookup got no answer")
def a_lookup_without_an_answer() -> bytes:
    return pcap_of([datagram(0, "10.0.0.1", 1), *connection(900)], nanos=True)


@says("  dns       none of 2 lookups got an answer")
def lookups_without_an_answer() -> bytes:
    return pcap_of([datagram(0, "10.0.0.1", 1), datagram(1, "10.0.0.1", 2), *connection(900)], nanos=True)


@says("  dns       it is not DNS: 1 lookup took 3.00 ms")
def a_quick_lookup() -> bytes:
    names = [datagram(0, "10.0.0.1", 1), datagram(3, "10.0.0.1", 1, "10.0.0.2", asks=False)]
    return pcap_of([*names, *connection(3.2)], nanos=True)


def turns_of(port: int, name: str) -> None:
    """Words that no reader knows on a port that has a name of more than one word."""
    SPOKEN[name] = Spoken(lambda: turns(port, [1.0, 1.0]), (f"  traffic   2 turns, {name} by its port",))


for number, called in ((102, "ISO-TSAP (S7)"), (2404, "IEC 104"), (4840, "OPC UA"), (9100, "a printer")):
    turns_of(number, called)


@says("10.0.0.2:80: its answers took no time that the capture's clock shows.")
def answers_in_no_time() -> bytes:
    talk = Talk()
    talk.open()
    for at in (10.0, 20.0):
        talk.client(at, get())
        talk.server(at, b"".join(answer(50)))
    return pcap(talk.tape)


@says(
    "10.0.0.2:80: GET / took 400 ms, because of the server's program, and nothing held it back; the other one is not s"
)
def one_slow_of_two() -> bytes:
    return pcap(talked(80, [1.0, 400.0]).tape)


@says("What takes the time at 10.0.0.2:80 is the path's round trip, 60.0 ms of it: 9 requests, p50 60.0, p99 60.0 ms.")
def requests_over_a_long_path() -> bytes:
    return pcap(talked(80, [0.001] * 9, server_leg=60.0).tape)


@says(
    "Requests to 10.0.0.2:80 are slow: beyond the path's round trip most time goes to lost segments, repaired after "
    "duplicate ACKs (22 %; 64 % to network), in 1 of 3 slow requests: 61.0 ms at the median."
)
def a_loss_on_a_long_path() -> bytes:
    return lossy(21.0)


@says("  lost      1 segment, repaired in 1.9 % of the time")
def a_loss_beside_slow_work() -> bytes:
    return lossy(1500.0)


def lossy(work: float) -> bytes:
    """Captured at the client, 60 ms from the server. The second of six segments comes 61 ms late, the only hole; two
    more answers take the server's program so many ms."""
    talk = Talk(server_leg=60.0, client_leg=0.01)
    talk.open()
    talk.client(70.0, get())
    whole = b"".join(answer(8000))
    parts = [whole[at : at + 1460] for at in range(0, len(whole), 1460)]
    for number, part in enumerate(parts):
        if number != 1:
            talk.server(130.2 + number / 100, part, seq=1 + 1460 * number)
            end = 1 + min(len(whole), 1460 * (number + 1))
            holes = [sack((talk.isn[1] + 2921, talk.isn[1] + end))] if number else []
            talk.client(130.201 + number / 100, ack=1461, options=holes)
        else:
            talk.s.ip_id += 1
    talk.server(191.2, parts[1], seq=1461)
    talk.client(191.21)
    for at in (300.0, 500.0 + work):
        talk.client(at, get())
        talk.server(at + 60.0, ack=talk.c.sent)
        talk.server(at + 60.0 + work, b"".join(answer(50)))
        talk.client(at + 60.01 + work)
    return pcap(talk.tape)


@says("  further   1 server: nothing is slow there (--top 2 lists them)")
def two_quick_servers() -> bytes:
    tape: list[Segment] = []
    on_its_own(tape)
    on_its_own(tape, 50_001, 100.0, "10.0.0.3")
    return pcap(tape)


def log_in(answered: float) -> Talk:
    """An SSH log-in, up to the server's second answer at so many ms, and its new keys."""
    talk = Talk(ends=Ends(server=("10.0.0.2", 22)))
    talk.open()
    talk.server(5.0, b"SSH-2.0-OpenSSH_9.6\r\n")
    talk.client(6.0, b"SSH-2.0-OpenSSH_9.6\r\n")
    keys = struct.pack(">IBB", 100, 6, 20) + bytes(98)
    talk.client(6.1, keys)
    talk.server(6.5, keys)
    talk.client(7.0, struct.pack(">IBB", 36, 6, 30) + bytes(34))
    talk.server(answered, struct.pack(">IBB", 36, 6, 31) + bytes(34))
    talk.server(answered + 0.1, struct.pack(">IBB", 12, 10, 21) + bytes(10))
    talk.client(answered + 1.0, struct.pack(">IBB", 12, 10, 21) + bytes(10))
    return talk


@says(
    "10.0.0.2:22: an interactive session (ssh): 2 steps of its log-in took 0.50",
    " ms at p50, none is slow; what was typed then",
)
def a_quick_log_in() -> bytes:
    return pcap(log_in(7.9).tape)


@says("What takes the time at 10.0.0.2:80 is the path", "the shortest answers of the kernels alone take as long")
def a_long_path_from_the_middle() -> bytes:
    talk = Talk(server_leg=60.0, client_leg=0.01)
    talk.open()
    for number in range(12):
        at = 100.0 + 200.0 * number
        talk.client(at, get())
        talk.server(at + 60.0)
        talk.server(at + 60.3, b"".join(answer(50)))
        talk.client(at + 60.32)
    return pcap(talk.tape[3:])


@says("Requests to 10.0.0.2:80 are slow: most time probably goes to segments that others overtook")
def answers_that_are_overtaken() -> bytes:
    talk = Talk(server_leg=40.0, client_leg=0.01)
    talk.open()
    head, body = answer(4000)
    parts = [(head + body)[i : i + 1460] for i in range(0, len(head + body), 1460)]
    for number in range(10):
        at = 100.0 + 200.0 * number
        talk.client(at, get())
        start = talk.s.sent
        talk.server(at + 40.1, parts[0], seq=start)
        talk.server(at + 40.2, parts[2], seq=start + 2920)
        talk.client(at + 40.21, ack=start + 1460, options=[sack((5000 + start + 2920, 5000 + talk.s.sent))])
        talk.s.ip_id -= 2
        talk.server(at + 105.0, parts[1], seq=start + 1460)
        talk.s.ip_id += 1
        talk.client(at + 105.01)
    return pcap(talk.tape)


@says("; 2 incomplete (1 of them last words before the client's FIN)")
def last_words() -> bytes:
    tape: list[Segment] = []
    for number in range(2):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number), ("10.0.0.2", 7777)), tape=tape)
        at = 1000.0 * number
        talk.open(at)
        talk.client(at + 5.0, b"\x01\x02 ask")
        talk.server(at + 6.0, b"\x03\x04 told")
        talk.client(at + 7.0)
        talk.client(at + 30.0, b"\x07\x07 more")
        if not number:
            talk.client(at + 30.1, flags="FA")
            talk.server(at + 30.2, flags="FA")
    return pcap(tape)


@says(" of 2 steps of its log-in took over 500 ms, the slowest 900 ms; this capture cannot say why: of ")
def a_log_in_of_which_all_is_there_twice() -> bytes:
    tape = log_in(907.0).tape
    return in_time([*tape, *(replace(s, time_ns=s.time_ns + 10_000 * n) for s in tape for n in (1, 2))])


@says("because of acknowledgements that the client holds back, and the server waits for; what was typed then is not")
def a_slow_log_in() -> bytes:
    tape: list[Segment] = []
    keys = struct.pack(">IBB", 400, 6, 31) + bytes(398)
    for number in range(12):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number), ("10.0.0.2", 22)), tape=tape)
        at = 400.0 * number
        talk.open(at)
        talk.server(at + 5.0, b"SSH-2.0-OpenSSH_9.6\r\n")
        talk.client(at + 6.0, b"SSH-2.0-OpenSSH_9.6\r\n")
        talk.server(at + 6.5, struct.pack(">IBB", 100, 6, 20) + bytes(98))
        talk.client(at + 7.6, struct.pack(">IBB", 100, 6, 20) + bytes(98))
        talk.server(at + 7.7)
        talk.client(at + 9.0, struct.pack(">IBB", 36, 6, 30) + bytes(34))
        talk.server(at + 9.5, keys[:300])
        talk.client(at + 50.6 + number % 4)
        talk.server(at + 50.61 + number % 4, keys[300:])
        talk.client(at + 51.7 + number % 4, struct.pack(">IBB", 12, 10, 21) + bytes(10))
    return in_time(tape)


def _sealed(size: int) -> bytes:
    return b"\x17\x03\x03" + size.to_bytes(2, "big") + bytes(size)


def sealed_pairs(at_once: bool) -> bytes:
    """Sealed requests of two parts, the second of which leaves as the answer to the first comes, or later."""
    talk = Talk(server_leg=36.0, client_leg=0.01, ends=Ends(server=("10.0.0.2", 443)))
    talk.open()
    now = 40.0
    for _ in range(8):
        talk.client(now, _sealed(43))
        talk.server(now + 36.1, _sealed(42))
        second = now + (36.14 if at_once else 41.0)
        talk.client(second, _sealed(338))
        talk.server(second + 36.1, _sealed(239))
        talk.client(second + 36.11)
        now = second + 57.0
    return pcap(talk.tape)


@says(" of 11 turns took over 20 ms", "inside TLS, without keys", ": 150 ms at the median, 900 ms at most")
def sealed_requests_that_wait() -> bytes:
    talk = Talk(server_leg=0.01, client_leg=0.01, ends=Ends(server=("10.0.0.2", 443)))
    talk.open()
    for number in range(12):
        at = 10.0 + 2000.0 * number
        talk.client(at, _sealed(343))
        talk.server(at + (900.0 if number == 5 else 150.0 if number % 2 else 1.0), _sealed(842))
    return pcap(talk.tape)


@says(
    "7 of them began just as the answer before came: perhaps second parts of requests that Nagle's algorithm on the",
    "Nagle's algorithm on the client, which holds the second part of a request for a round trip",
    "7 turns began just as the answer to the one before came, and no reader sees what they are",
)
def turns_that_begin_as_the_answer_comes() -> bytes:
    return sealed_pairs(at_once=True)
