"""HTTP/2, gRPC, WebSocket and server-sent events: what is one request and its answer, and what is neither."""

from __future__ import annotations

import struct
from dataclasses import replace

from makepcap import Talk, get, pcap
from simulator import Path, Script, record

from case_scripts.registry import case

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
END_STREAM, END_HEADERS = 1, 4
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING = 0, 1, 3, 4, 5, 6
CANCEL = struct.pack(">I", 8)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(fields: dict[str, str]) -> bytes:
    """Fields as literals that leave the header table alone (RFC 7541 6.2.2)."""
    return b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )


def ask(stream: int, path: str, method: str = "GET", **more: str) -> bytes:
    fields = {":method": method, ":authority": "lab", ":path": path}
    fields |= {name.replace("_", "-"): value for name, value in more.items()}
    return frame(HEADERS, END_HEADERS | END_STREAM * (method == "GET"), stream, block(fields))


def head(stream: int, status: int, flags: int = 0, **more: str) -> bytes:
    fields = {":status": str(status)} | {name.replace("_", "-"): value for name, value in more.items()}
    return frame(HEADERS, END_HEADERS | flags, stream, block(fields))


def opened(leg: float) -> Talk:
    """At the client; both ends have said their settings."""
    talk = Talk(server_leg=leg, client_leg=0.01)
    talk.open()
    talk.client(leg + 1, PREFACE + frame(SETTINGS, 0, 0))
    talk.server(2 * leg + 1.1, frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0))
    talk.client(2 * leg + 1.2, frame(SETTINGS, 1, 0))
    return talk


@case
def http2_streams() -> bytes:
    """One connection of HTTP/2, 10 ms from the server. Two requests in one packet, the second answered first; a
    request that the client gives up after 30 ms; a push; pings.

    Not to be mistaken for: turns. Six requests and answers, a push and two pings pass while both sides seem to talk
    at once.
    """
    talk = opened(10.0)
    talk.client(100, ask(1, "/slow") + ask(3, "/quick"))
    talk.server(112, head(3, 200, END_STREAM))
    talk.client(113, frame(PING, 0, 0, b"12345678"))
    talk.server(123, frame(PING, 1, 0, b"12345678"))
    talk.server(150, head(1, 404) + frame(DATA, END_STREAM, 1, b"none"))
    talk.client(200, ask(5, "/given-up"))
    talk.client(230, frame(RST_STREAM, 0, 5, CANCEL))
    talk.client(300, ask(7, "/page"))
    promise = struct.pack(">I", 2) + block({":method": "GET", ":path": "/style.css"})
    talk.server(315, frame(PUSH_PROMISE, END_HEADERS, 7, promise) + head(7, 200))
    talk.server(316, head(2, 200) + frame(DATA, END_STREAM, 2, b"s" * 500))
    talk.server(320, frame(DATA, END_STREAM, 7, b"p" * 500))
    return pcap(talk.tape)


@case
def http2_from_the_middle() -> bytes:
    """The same connection, joined behind its first requests: what is in the static table is named, and a path that was
    inserted before the capture is not.

    Not to be mistaken for: a connection whose requests have no path.
    """
    talk = Talk(server_leg=10.0, client_leg=0.01)
    # GET and a path by its place in the table; the same, inserted anew; and from there again
    for at, stream, path in ((0, 31, b"\xbe"), (100, 33, b"\x44\x04/new"), (200, 35, b"\xbe")):
        talk.client(at, frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x82" + path))
        talk.server(at + 12, frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x88"))
    return pcap(talk.tape)


@case
def grpc_calls() -> bytes:
    """Three calls of gRPC, 5 ms from the server: one that succeeds, one that is refused with NOT_FOUND, and one that
    streams three messages, the first after 50 ms.

    Not to be mistaken for: three requests that ended with 200, which is what HTTP/2 says of all of them.
    """
    talk = opened(5.0)
    grpc = {"content_type": "application/grpc"}
    message = b"\0" + struct.pack(">I", 3) + b"abc"

    def call(at: float, stream: int, method: str) -> None:
        talk.client(at, ask(stream, method, "POST", **grpc) + frame(DATA, END_STREAM, stream, message))

    def end(stream: int, status: str) -> bytes:
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, block({"grpc-status": status}))

    call(100, 1, "/lab.Shop/Buy")
    talk.server(106, head(1, 200, **grpc) + frame(DATA, 0, 1, message) + end(1, "0"))
    call(200, 3, "/lab.Shop/Find")
    talk.server(206, head(3, 200, END_STREAM, **grpc, grpc_status="5"))
    call(300, 5, "/lab.Shop/Watch")
    talk.server(306, head(5, 200, **grpc))
    for at in (350, 360, 440):
        talk.server(at, frame(DATA, 0, 5, message))
    talk.server(450, end(5, "0"))
    return pcap(talk.tape)


def text(from_client: bool, payload: str) -> bytes:
    """A WebSocket message of up to 125 bytes; the client masks with zeros."""
    mask = bytes([0x80 | len(payload), 0, 0, 0, 0]) if from_client else bytes([len(payload)])
    return b"\x81" + mask + payload.encode()


@case
def websocket_ticks() -> bytes:
    """A WebSocket, 5 ms from the server: three questions with ids, the last two answered in the other order, while the
    server sends a tick every 20 ms.

    Not to be mistaken for: answers. A tick between question and answer answers nothing.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    upgrade = ("Upgrade: websocket", "Connection: Upgrade")
    talk.client(10, get("/feed", "GET", *upgrade))
    talk.server(16, "\r\n".join(["HTTP/1.1 101 Switching Protocols", *upgrade, "", ""]).encode())
    said = [(True, 100, '{"id": 1}'), (False, 130, '{"id": 1, "ok": true}')]
    said += [(True, 200, '{"id": 2}'), (True, 205, '{"id": 3}')]
    said += [(False, 215, '{"id": 3, "ok": true}'), (False, 265, '{"id": 2, "ok": true}')]
    said += [(False, at, f'{{"tick": {at}}}') for at in range(51, 300, 20)]
    for from_client, at, payload in sorted(said, key=lambda one: one[1]):
        (talk.client if from_client else talk.server)(at, text(from_client, payload))
    return pcap(talk.tape)


@case
def server_sent_events() -> bytes:
    """An answer of server-sent events, 5 ms from the server: the head at once, the first event after 80 ms, two more,
    a comment that keeps the connection, and after a gap of 200 ms the last.

    Not to be mistaken for: a fast answer, as its first byte is, or a slow one, as its last byte is.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, get("/events"))
    talk.server(16, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    lines = [
        (90, "data: 1\n\n"),
        (100, "data: 2\n\n"),
        (120, "data: 3\n\n"),
        (200, ": still here\n\n"),
        (320, "data: 4\n\n"),
    ]
    for at, line in lines:
        talk.server(at, f"{len(line):x}\r\n{line}\r\n".encode())
    talk.server(330, b"0\r\n\r\n")
    return pcap(talk.tape)


def events(count: int, in_parts: range) -> Script:
    """An answer of server-sent events, 90 ms apart, some of them written in two parts; then the same again."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    wrote = []
    for number in range(count):
        parts = (b"data: {", b'"tick": 1}\n\n') if number in in_parts else (b'data: {"tick": 1}\n\n',)
        wrote += [(0.0 if place else 90.0, b"%x\r\n%s\r\n" % (len(part), part)) for place, part in enumerate(parts)]
    return Script(((0.0, get("/events")),), ((0.0, head), *wrote, (90.0, b"0\r\n\r\n")), exchanges=2)


@case
def events_held() -> bytes:
    """Two streams of 20 events, 90 ms apart, 60 ms from the client and back. The server writes each event in two
    parts without TCP_NODELAY, and the second part of each waits for the first one's ACK.

    Not to be mistaken for: time in which the server has nothing to say, which takes as much of each stream.
    """
    return pcap(record(events(20, range(20)), path=Path(30.0, 0.01), connections=1).tape)


@case
def events_in_one_write() -> bytes:
    """The same streams, all but one event in one write: what is held up is 180 ms of each stream, 9 ms for an event.

    Not to be mistaken for: a slow server, or a program that pauses; the client asked to be told when there is news.
    """
    return pcap(record(events(20, range(9, 10)), path=Path(30.0, 0.01), connections=1).tape)


@case
def events_after_a_slow_start() -> bytes:
    """A stream of events whose head comes 300 ms after the request: the kernel has acknowledged it at once.

    Not to be mistaken for: a stream that is merely quiet between two events.
    """
    script = events(5, range(0))
    [(_, head), *rest] = script.answer
    return pcap(record(replace(script, answer=((300.0, head), *rest)), path=Path(5.0, 0.01)).tape)
