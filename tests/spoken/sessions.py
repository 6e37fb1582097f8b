"""Sessions that are ended or held up by somebody else than the request, and requests that wait in front of a server."""

from __future__ import annotations

import io
import struct
from typing import Any

import dpkt
from case_scripts.queues import amqp, amqp_content, mqtt, short, word
from makepcap import Ends, Segment, Talk, answer, get, pcap_of
from transfer_simulator import Transfer

from spoken.registry import in_time, says

PUBLISH = amqp(1, 60, 40, bytes(2), word("ex"), word("key"), b"\0") + amqp_content(1, b"job")


def publishers(blocked: tuple[float, float] | None) -> bytes:
    """A publisher with confirms, one of which takes four seconds; the broker blocks it from, and until, so many ms."""
    talk = Talk(server_leg=1.0, client_leg=0.01)
    talk.open()
    talk.client(10, b"AMQP\0\0\x09\x01")
    talk.server(12, amqp(0, 10, 10, b"\0\x09", bytes(4)))
    talk.client(13, amqp(0, 10, 11, bytes(12)))
    talk.server(15, amqp(0, 10, 30, bytes(8)))
    talk.client(16, amqp(0, 10, 31, bytes(8)) + amqp(0, 10, 40, word("/"), bytes(2)))
    talk.server(18, amqp(0, 10, 41, b"\0"))
    talk.client(20, amqp(1, 20, 10, b"\0"))
    talk.server(22, amqp(1, 20, 11, bytes(4)))
    talk.client(30, amqp(1, 85, 10, b"\0"))
    talk.server(32, amqp(1, 85, 11))
    sends = list(blocked or ())
    for number in range(6):
        at = 1000.0 + 500.0 * number + (4000.0 if number > 3 else 0.0)
        while sends and sends[0] < at:
            talk.server(sends.pop(0), amqp(0, 10, 61 - len(sends), *([word("low on memory")] if len(sends) else [])))
        talk.client(at, PUBLISH)
        done = at + (4000.0 if number == 3 else 2.0)
        while sends and sends[0] < done:
            talk.server(sends.pop(0), amqp(0, 10, 61 - len(sends), *([word("low on memory")] if len(sends) else [])))
        talk.server(done, amqp(1, 60, 80, (number + 1).to_bytes(8, "big"), b"\0"))
        talk.client(done + 0.1)
    return in_time(talk.tape)


@says(
    "10.0.0.2:80 blocked its publishers (connection.blocked, frame ", "1 request waited 4,000 ms until it took messages"
)
def a_broker_that_is_low_on_memory() -> bytes:
    return publishers((2505.0, 6490.0))


def devices(ids: tuple[str, str], hosts: tuple[str, str] = ("10.0.0.7", "10.0.0.8")) -> bytes:
    """Two devices log in to a broker in turn, and each log-in is followed by the end of the other's connection."""
    tape: list[Segment] = []
    old = None
    for number in range(8):
        talk = Talk(ends=Ends((hosts[number % 2], 40_000 + number), ("10.0.0.2", 1883)), tape=tape)
        at = 1500.0 * number
        talk.open(at)
        talk.client(at + 5.0, mqtt(0x10, short("MQTT"), bytes([4, 2, 0, 60]), short(ids[number % 2])))
        talk.server(at + 6.0, mqtt(0x20, b"\0\0"))
        if old is not None:
            old.server(at + 6.5, flags="FA")
            old.client(at + 7.6, flags="FA")
        talk.client(at + 500.0, mqtt(0x32, short("t"), b"\0\x02", b"21"))
        talk.server(at + 501.0, mqtt(0x40, b"\0\x02"))
        talk.client(at + 502.0)
        old = talk
    return in_time(tape)


@says("10.0.0.7 and 10.0.0.8 log in to 10.0.0.2:1883 with one client id, hall: each log-in ended the other's session")
def two_devices_with_one_id() -> bytes:
    return devices(("hall", "hall"))


def boards(idle_ms: tuple[float, ...], upgrade: bool = True) -> bytes:
    """A client's connections, one after the other: each is closed by the server after so long without a word."""
    tape: list[Segment] = []
    at = 0.0
    reply = answer(0, "101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade") if upgrade else answer(40)
    for number, idle in enumerate((*idle_ms, 0.0)):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), server_leg=8.0, client_leg=0.01, tape=tape)
        talk.open(at)
        lines = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13") if upgrade else ()
        talk.client(at + 10.0, get("/ws", "GET", *lines))
        talk.server(at + 20.0, b"".join(reply))
        talk.client(at + 20.1)
        talk.server(at + 500.0, b"\x81\x05hello" if upgrade else b"", flags="" if upgrade else "A")
        talk.client(at + 500.1)
        if idle:
            at += 500.0 + idle
            talk.server(at, flags="FA")
            talk.client(at + 0.1, flags="FA")
            talk.server(at + 8.2)
            at += 3000.0
    return in_time(tape)


@says("10.0.0.2:80 closes connections that are idle for 45.0", "3 of 10.0.0.1, which opened the next 3,000 ms later")
def sessions_that_idle_out() -> bytes:
    return boards((45_000.0, 45_010.0, 45_020.0))


@says("10.0.0.2:80 closes connections that are idle for 20.0", "1 of 10.0.0.1, which opened the next 3,000 ms later")
def one_session_that_idles_out() -> bytes:
    return boards((20_004.0,))


def publishes(closed_ms: float, probes: bool = True, by_client: bool = False) -> bytes:
    """Messages that nobody answers, one by one; in the middle the receiver's window is closed for so long."""
    talk = Talk(client_leg=0.01, ends=Ends(server=("10.0.0.2", 9000)))
    talk.open()
    sends, takes = (talk.server, talk.client) if by_client else (talk.client, talk.server)
    talk.client(5.0, b"log in")
    talk.server(6.0, b"welcome")
    at = 10.0
    for number in range(8):
        sends(at, bytes([number]) * 900)
        takes(at + 1.0, window=0 if number == 4 else 500)
        if number == 4:
            for again in range(1, 1 + int(closed_ms / 250.0) * probes):
                sends(at + 240.0 * again, seq=(talk.s if by_client else talk.c).sent - 1)
                takes(at + 240.0 * again + 1.0, window=0)
            at += closed_ms
            takes(at, window=500)
        at += 20.0
    return in_time(talk.tape)


@says(
    "10.0.0.2:9000 took no data for 4,999 ms: its receive window was closed (from frame ", "  fix       See what the p"
)
def a_server_that_does_not_read() -> bytes:
    return publishes(5000.0)


@says("10.0.0.1 took no data of 10.0.0.2:9000 for 4,999 ms: its receive window was closed (from frame ")
def a_client_that_takes_nothing() -> bytes:
    return publishes(5000.0, by_client=True)


def alarms(apart: float) -> bytes:
    """A broker's messages to a subscriber 90 ms away, which acknowledges each at once; the next comes so much later."""
    talk = Talk(client_leg=90.0, server_leg=0.01, ends=Ends(server=("10.0.0.2", 1883)))
    talk.open()
    talk.client(100.0, mqtt(0x10, short("MQTT"), bytes([4, 2, 0, 60]), short("pump")))
    talk.server(100.2, mqtt(0x20, b"\0\0"))
    talk.client(190.5, mqtt(0x82, b"\0\1", short("alarm/#"), b"\1"))
    talk.server(190.7, mqtt(0x90, b"\0\1\1"))
    for number in range(20):
        at = 400.0 + (90.3 + apart) * number
        talk.server(at, mqtt(0x32, short("alarm/7"), struct.pack(">H", number + 1), b"value"))
        talk.client(at + 90.2, mqtt(0x40, struct.pack(">H", number + 1)))
    return in_time(talk.tape)


@says(
    "10.0.0.2:1883 sends 10.0.0.1 its messages one at a time, the next only when 10.0.0.1 has acknowledged the one",
    "a round trip of 90.",
    ", 20 in a row in 1,925 ms",
    "  fix       Let several be on their way: mosquitto max_inflight_messages",
)
def a_broker_that_sends_one_at_a_time() -> bytes:
    return alarms(0.0)


@says(
    "The consumer 10.0.0.1 takes 400 ms for each message of 10.0.0.2:1883, which sends the next one as soon as it",
    ": 8 in a row took 2,8",
    "  fix       Make the program of 10.0.0.1 faster for each message",
)
def a_consumer_that_is_slow() -> bytes:
    return jobs(400.0, 0.0)


def questions() -> bytes:
    """A client's short messages, each of which the broker answers with one at once: nothing waits in a queue."""
    talk = Talk(client_leg=0.01, server_leg=0.3, ends=Ends(server=("10.0.0.2", 1883)))
    talk.open()
    talk.client(5.0, mqtt(0x10, short("MQTT"), bytes([4, 2, 0, 60]), short("asks")))
    talk.server(6.0, mqtt(0x20, b"\0\0"))
    talk.client(7.0, mqtt(0x82, b"\0\1", short("a/#"), b"\0"))
    talk.server(8.0, mqtt(0x90, b"\0\1\0"))
    for one in range(12):
        talk.client(100.0 + 400.0 * one, mqtt(0x30, short("q"), b"why"))
        talk.server(100.6 + 400.0 * one, mqtt(0x30, short("a/1"), b"because"))
    return in_time(talk.tape)


def jobs(works_ms: float, apart: float, number: int = 8) -> bytes:
    """A broker's messages to a worker near it, which acknowledges each when it is done; the next comes later."""
    talk = Talk(client_leg=0.01, server_leg=0.3, ends=Ends(server=("10.0.0.2", 1883)))
    talk.open()
    talk.client(5.0, mqtt(0x10, short("MQTT"), bytes([4, 2, 0, 60]), short("work")))
    talk.server(6.0, mqtt(0x20, b"\0\0"))
    talk.client(7.0, mqtt(0x82, b"\0\1", short("jobs/#"), b"\1"))
    talk.server(8.0, mqtt(0x90, b"\0\1\1"))
    at = 100.0
    for one in range(number):
        talk.server(at, mqtt(0x32, short("jobs/7"), struct.pack(">H", one + 1), b"value"))
        talk.client(at + works_ms - 0.5, mqtt(0x40, struct.pack(">H", one + 1)))
        at += works_ms + apart
    return in_time(talk.tape)


def news(idle_ms: float, there: bool) -> bytes:
    """What a server sends on a connection that was idle for so long never arrives; its client asks elsewhere or not."""
    tape: list[Segment] = []
    talk = Talk(ends=Ends(server=("10.0.0.2", 6000)), client_leg=20.0, server_leg=0.01, tape=tape)
    talk.open()
    talk.client(30.0, b"subscribe\n")
    talk.server(31.0, b"welcome\n")
    talk.client(51.1)
    begin = talk.s.sent
    for after in (0.0, 300.0, 900.0, 2100.0, 4500.0):
        talk.server(51.0 + idle_ms + after, b"it rains\n", seq=begin)
    other = Talk(ends=Ends(("10.0.0.1", 41_000), ("10.0.0.2", 8001)), client_leg=20.0, server_leg=0.01, tape=tape)
    other.open(100.0)
    for number in range(int(idle_ms / 1000.0) + 4 if there else 2):
        other.client(200.0 + 1000.0 * number, get("/health"))
        other.server(201.0 + 1000.0 * number, b"".join(answer(20)))
        other.client(221.0 + 1000.0 * number)
    return in_time(tape)


@says(
    "After 8.00 s idle what 10.0.0.2:6000 sends to 10.0.0.1 is repeated 4 times and never acknowledged for 4,500 ms, ",
    "while 10.0.0.1 is there on another connection: a firewall, NAT or balancer between has dropped the idle one",
    "  fix       Send something on idle connections sooner than that",
)
def a_push_on_a_connection_that_was_forgotten() -> bytes:
    return news(8000.0, True)


def tapped(goes_on: bool) -> bytes:
    """A download that an RST ends in the name of its client, which acknowledges on, or does not."""
    talk = Talk(client_leg=10.0, server_leg=0.01)
    talk.open()
    talk.client(20.0, get("/film"))
    talk.server(21.0, b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + bytes(1300))
    for number in range(6):
        talk.server(21.1 + 0.1 * number, bytes(1448))
    talk.client(31.2, ack=1400)
    talk.client(31.5, flags="R")
    if goes_on:
        for number in range(3):
            talk.client(31.8 + 0.2 * number, ack=2800 + 1448 * number)
            talk.server(31.81 + 0.2 * number, flags="R")
    return in_time(talk.tape)


@says(
    "An RST in the name of 10.0.0.1 ended 1 connection with 10.0.0.2:80 (frame 13), but 10.0.0.1 went on acknowledging",
    "  fix       Look at the NAT, firewall or balancer between",
)
def a_reset_that_nobody_meant() -> bytes:
    return tapped(True)


def scan(size: int) -> bytes:
    """An upload whose head is acknowledged, and of whose packets of this size none is; nothing more comes back."""
    talk = Talk(client_leg=0.01, server_leg=15.0, ends=Ends(server=("10.0.0.2", 8000)))
    talk.open()
    talk.client(20.0, b"PUT /scan HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n")
    talk.server(35.1)
    begin = talk.c.sent
    for number in range(10):
        talk.client(40.0 + 0.01 * number, bytes(size))
    for after in (300.0, 900.0, 2100.0, 4500.0):
        talk.client(40.0 + after, bytes(size), seq=begin)
    return in_time(talk.tape)


@says(
    "Packets with 1,448 bytes of data from 10.0.0.1 to 10.0.0.2:8000 were repeated 4 times in ",
    "while small ones had been: they are larger than the path's MTU, or 10.0.0.2:8000 is gone",
    "  fix       Ping with packets of that size",
)
def an_upload_whose_head_gets_through() -> bytes:
    return scan(1448)


def photo(size: int, alive: bool) -> bytes:
    """An upload in packets of this size, none of which is acknowledged; the server says again that it is there."""
    talk = Talk(client_leg=0.01, server_leg=15.0, ends=Ends(server=("10.0.0.2", 8000)))
    talk.open()
    for number in range(10):
        talk.client(20.0 + 0.01 * number, bytes(size))
    for after in (300.0, 900.0, 2100.0, 4500.0):
        talk.client(20.0 + after, bytes(size), seq=1)
        if alive:
            talk.server(50.0 + after, ack=1)
    return in_time(talk.tape)


@says(
    "Nothing that 10.0.0.1 sends to 10.0.0.2:8000 gets through: packets with 1,448 bytes of data, repeated 4 times in ",
    "though the small ones of the handshake passed: perhaps they are larger than the path's MTU",
    "  fix       Let ICMP ",
)
def an_upload_of_which_nothing_gets_through() -> bytes:
    return photo(1448, True)


def uploads(asks: str) -> bytes:
    """Uploads whose body comes five seconds behind their head, while SYNs of this host get no answer."""
    tape: list[Segment] = []
    for number in range(2):
        at = 20_000.0 * number
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape, client_leg=0.01)
        talk.open(at)
        talk.client(at + 5.0, get("/save", "POST", "Content-Length: 400"))
        dead = Talk(ends=Ends((asks, 41_000 + number), ("10.0.0.9", 80)), tape=tape)
        for after in (10.0, 1010.0, 3010.0):
            dead.client(at + after, flags="S", seq=0)
        talk.client(at + 5010.0, bytes(400))
        talk.server(at + 5011.0, b"".join(answer(40)))
        talk.client(at + 5011.1)
    return in_time(tape)


@says("10.0.0.9:80 does not answer 10.0.0.1: while 10.0.0.2:80 waited for 10.0.0.1, 2 connections of it to 10.0.0.9:80")
def a_client_that_looks_elsewhere_first() -> bytes:
    return uploads("10.0.0.1")


def menus(others: float) -> bytes:
    """A report of four seconds, the menu that its client opens meanwhile, and another's menus, which take so long."""
    tape: list[Segment] = []
    waits = [("10.0.0.1", 1000.0, "/report", 4000.0), ("10.0.0.1", 1500.0, "/menu", 3500.05)]
    waits += [("10.0.0.3", 400.0 + 300.0 * number, "/menu", others) for number in range(12)]
    for number, (client, at, target, took) in enumerate(waits):
        talk = Talk(ends=Ends((client, 40_000 + number)), tape=tape, client_leg=0.01)
        talk.open(at)
        talk.client(at + 1.0, get(target))
        talk.server(at + 1.0 + took, b"".join(answer(50)))
        talk.client(at + 1.1 + took)
    return in_time(tape)


@says(
    "10.0.0.2:80: 1 request waited 3,500 ms (GET /menu, frame ",
    "until another of the same client was done (GET /report",
)
def a_session_that_is_locked() -> bytes:
    return menus(others=2.0)


def labels(limit: bool) -> bytes:
    """Eight requests at once to a proxy: it passes them on one by one, or all, and the server takes one at a time."""
    tape: list[Segment] = []
    for number in range(8):
        at = 20.0 + number
        front = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape, client_leg=0.01)
        back = Talk(ends=Ends(("10.0.0.2", 41_000 + number), ("10.0.0.3", 8080)), tape=tape, client_leg=0.01)
        front.open(at)
        front.client(at + 1.0, get(f"/label/{number}"))
        done = 440.0 + 402.0 * number
        begun = done - 400.0 if limit else at + 2.0
        back.open(begun - 1.0)
        back.client(begun, get(f"/label/{number}"))
        back.server(done, b"".join(answer(50)))
        back.client(done + 0.1)
        front.server(done + 0.5, b"".join(answer(50)))
        front.client(done + 0.6)
    return in_time(tape)


@says("10.0.0.2:80 passes one request at a time on to 10.0.0.3:8080: 8 requests waited in it for their turn")
def a_proxy_that_passes_on_in_turn() -> bytes:
    return labels(limit=True)


def boarding(off_ms: float) -> bytes:
    """Four clients that ask again at once; one answer leaves each 300 ms, now so much sooner and now so much later."""
    tape: list[Segment] = []
    talks = [Talk(ends=Ends(("10.0.0.1", 40_000 + n)), tape=tape, client_leg=0.01) for n in range(4)]
    for number, talk in enumerate(talks):
        talk.open(number)
        talk.client(5.0 + number, get(f"/seat/{number}"))
    for number in range(24):
        at = 1200.0 + 300.0 * number + (off_ms if number % 2 else 0.0)
        talks[number % 4].server(at, b"".join(answer(50)))
        talks[number % 4].client(at + 0.1, get(f"/seat/{number}"))
    return in_time(tape)


@says(
    "10.0.0.2:80 lets out one answer each 300 ms, on whichever connection, while others wait: ",
    " for their turn, for a limit of their rate, or for one worker that takes as long each time",
    "  fix       Look for a limit of the request rate at 10.0.0.2:80",
)
def answers_at_a_rate() -> bytes:
    return boarding(0.0)


def blocks(apart: float) -> bytes:
    """An upload through SSH in blocks of three segments, each so many ms behind the answer to the one before."""
    talk = Talk(ends=Ends(server=("10.0.0.2", 22)), server_leg=30.0, client_leg=0.01)
    talk.open()
    talk.server(40.0, b"SSH-2.0-OpenSSH_9.6\r\n")
    talk.client(41.0, b"SSH-2.0-OpenSSH_9.6\r\n")
    talk.server(75.0, struct.pack(">IBB", 100, 6, 20) + bytes(98))
    talk.client(76.0, struct.pack(">IBB", 100, 6, 20) + bytes(98))
    talk.client(77.0, struct.pack(">IBB", 36, 6, 30) + bytes(34))
    new = struct.pack(">IBB", 12, 10, 21) + bytes(10)
    talk.server(110.0, struct.pack(">IBB", 100, 6, 31) + bytes(98) + new)
    talk.client(111.0, new)
    for number in range(4):  # log-in and a key: what follows is read no more
        talk.client(120.0 + 40.0 * number, b"\x9f" * 44)
        talk.server(151.0 + 40.0 * number, b"\x9f" * 44)
    at = 300.0
    for _ in range(24):
        for number in range(3):
            talk.client(at + 0.1 * number, b"\x9f" * 1448)
        talk.server(at + 30.5, b"\x9f" * 44)
        talk.client(at + 30.6)
        at += 30.6 + apart
    return in_time(talk.tape)


@says("10.0.0.1 sent 0.104 MB to 10.0.0.2:22 in 24 blocks of 4.34 kB, each only when the one before had been answered")
def an_upload_in_blocks() -> bytes:
    return blocks(apart=0.2)


def no_handshake(**what: Any) -> bytes:
    """An upload that is captured at its sender in the middle of the run."""
    capture = Transfer(download=False, bytes=4_000_000, rtt=80.0, **what).captures()["sender"]
    frames = [(float(at), bytes(frame)) for at, frame in dpkt.pcap.Reader(io.BytesIO(capture))][40:]
    return pcap_of([(round(at * 1e9), frame) for at, frame in frames])


@says(
    "never more than 80",
    "are in flight, and each ACK lets the next ones go",
    "the handshake, which has the window's scale,",
)
def an_upload_with_a_fixed_amount_in_flight() -> bytes:
    return no_handshake(buffer=80_000)
