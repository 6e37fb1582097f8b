"""Messages inside messages: FastCGI, gRPC-Web, STOMP, and what a WebSocket carries."""

from __future__ import annotations

import json
import struct

from makepcap import Talk, pcap

from case_scripts.machines import frame
from case_scripts.registry import case


def record(kind: int, content: bytes = b"", number: int = 1) -> bytes:
    """A record of FastCGI, padded as servers pad it."""
    padding = -len(content) % 8
    return struct.pack(">BBHHBB", 1, kind, number, len(content), padding, 0) + content + bytes(padding)


def parameters(**named: str) -> bytes:
    def length(text: str) -> bytes:
        return struct.pack(">B", len(text)) if len(text) < 128 else struct.pack(">I", len(text) | 1 << 31)

    return b"".join(length(name) + length(value) + (name + value).encode() for name, value in named.items())


def cgi(method: str, target: str, number: int = 1, **more: str) -> bytes:
    named = parameters(
        REQUEST_METHOD=method, REQUEST_URI=target, SCRIPT_NAME="/index.php", HTTP_HOST="shop.lab", **more
    )
    begin = record(1, struct.pack(">HB", 1, 1) + bytes(5), number)
    return begin + record(4, named, number) + record(4, b"", number)


@case
def fastcgi_behind_nginx() -> bytes:
    """A web server asks PHP, 5 ms away: a page of 80 ms that names its trace, a post whose body comes later and that
    fails, and a script that is not there and writes about it.

    Not to be mistaken for: turns, of which the body would be a request of its own.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    traced = {"HTTP_TRACEPARENT": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "HTTP_COOKIE": "a" * 200}
    done = struct.pack(">IB", 0, 0) + bytes(3)
    talk.open()
    talk.client(10, cgi("GET", "/cart?id=7&token=abcdef", **traced) + record(5))
    talk.server(90, record(6, b"Content-Type: text/html\r\n\r\n<html>") + record(6) + record(3, done))
    talk.client(200, cgi("POST", "/order"))
    talk.client(220, record(5, b"amount=12") + record(5))
    talk.server(230, record(6, b"Status: 500 Internal Server Error\r\nContent-Type: text/plain\r\n\r\nno"))
    talk.server(231, record(6) + record(3, done))
    talk.client(300, cgi("GET", "/none") + record(5))
    talk.server(
        306, record(7, b"Primary script unknown") + record(6, b"Status: 404 Not Found\r\n\r\n") + record(3, done)
    )
    return pcap(talk.tape)


def message(body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(body)) + body


@case
def grpc_web_in_http1() -> bytes:
    """A browser calls a gateway of gRPC-Web, 5 ms away: a call that succeeds, one that fails in its trailers, a stream
    of three messages, one that has no body at all; then it fetches a page of HTTP.

    Not to be mistaken for: four answers of 200.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)

    def ask(at: float, method: str) -> None:
        body = message(b"\x08\x01")
        head = f"POST /shop.Cart/{method} HTTP/1.1\r\nHost: shop.lab\r\nContent-Type: application/grpc-web+proto\r\n"
        talk.client(at, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def head(*lines: str) -> bytes:
        fixed = ("HTTP/1.1 200 OK", "Content-Type: application/grpc-web+proto")
        return "\r\n".join((*fixed, *lines, "", "")).encode()

    def chunk(data: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(data), data)

    talk.open()
    ask(10, "Get")
    body = message(b"\x0a\x01x") + message(b"grpc-status: 0\r\n", 0x80)
    talk.server(26, head(f"Content-Length: {len(body)}") + body)
    ask(100, "Add")
    chunked = head("Transfer-Encoding: chunked")
    talk.server(130, chunked + chunk(message(b"grpc-status:5\r\ngrpc-message:no\r\n", 0x80)) + chunk(b""))
    ask(200, "Watch")
    talk.server(206, chunked + chunk(message(b"one")))
    talk.server(506, chunk(message(b"two")))
    talk.server(806, chunk(message(b"three")) + chunk(message(b"grpc-status: 0\r\n", 0x80)) + chunk(b""))
    ask(900, "Drop")
    talk.server(906, head("grpc-status: 7", "Content-Length: 0"))
    talk.client(950, b"GET / HTTP/1.1\r\nHost: shop.lab\r\n\r\n")
    talk.server(956, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi")
    return pcap(talk.tape)


def stomp(command: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [command, *(f"{name.replace('_', '-')}:{value}" for name, value in headers.items())]
    return "\n".join([*lines, "", ""]).encode() + body + b"\0"


@case
def stomp_receipts() -> bytes:
    """A client of STOMP, 5 ms from the broker: it connects, subscribes and sends with receipts, one of which takes
    50 ms, sends without one, and names a queue that is not there; messages come and heart-beats pass.

    Not to be mistaken for: answers of what asks for no receipt, or of the heart-beats.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, stomp("CONNECT", accept_version="1.2", host="lab"))
    talk.server(16, stomp("CONNECTED", version="1.2", server="RabbitMQ/3.13"))
    talk.client(20, stomp("SUBSCRIBE", id="0", destination="/queue/a", receipt="s-1"))
    talk.server(27, stomp("RECEIPT", receipt_id="s-1"))
    talk.client(100, stomp("SEND", b"\0ab", destination="/queue/a", receipt="s-2", content_length="3"))
    talk.server(110, stomp("MESSAGE", b"hello", destination="/queue/a", message_id="1", subscription="0"))
    talk.server(150, stomp("RECEIPT", receipt_id="s-2"))
    talk.client(200, stomp("SEND", b"and forget", destination="/queue/b"))
    talk.client(700, b"\n")
    talk.server(900, b"\n")
    talk.client(1000, stomp("SUBSCRIBE", id="1", destination="/queue/none", receipt="s-3"))
    talk.server(1006, stomp("ERROR", b"no queue", message="not found"))
    return pcap(talk.tape)


MASK = b"\x37\xfa\x21\x3d"


def upgraded(talk: Talk, protocol: str) -> None:
    talk.open()
    wanted = ("Host: lab", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Protocol: {protocol}")
    lines = ("GET /ws HTTP/1.1", *wanted, "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13")
    talk.client(10, "\r\n".join((*lines, "", "")).encode())
    talk.server(16, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")


@case
def stomp_in_websocket() -> bytes:
    """A browser speaks STOMP over a WebSocket, 5 ms from the broker: it connects, subscribes with a receipt of 40 ms,
    and is sent a message; heart-beats pass.

    Not to be mistaken for: messages of a WebSocket, of which each would answer the one before.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    upgraded(talk, "v12.stomp")
    talk.client(20, frame(0x81, stomp("CONNECT", accept_version="1.2", host="lab"), MASK))
    talk.server(27, frame(0x81, stomp("CONNECTED", version="1.2")))
    talk.client(100, frame(0x81, stomp("SUBSCRIBE", id="0", destination="/topic/a", receipt="r-1"), MASK))
    talk.server(140, frame(0x81, stomp("RECEIPT", receipt_id="r-1")))
    talk.client(500, frame(0x81, b"\n", MASK))
    talk.server(700, frame(0x81, b"\n"))
    talk.server(900, frame(0x81, stomp("MESSAGE", b"hi", destination="/topic/a", message_id="1", subscription="0")))
    return pcap(talk.tape)


@case
def json_rpc_in_websocket() -> bytes:
    """A client of JSON-RPC in a WebSocket, 5 ms from the server: two calls of which the second is answered first, one
    that fails, a notice that nobody answers; the server notifies, and asks the client for its root, which takes 30 ms.

    Not to be mistaken for: messages that are answered in order, or an answer of a notice.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)

    def call(at: float, **members: object) -> None:
        talk.client(at, frame(0x81, json.dumps({"jsonrpc": "2.0", **members}).encode(), MASK))

    def speak(at: float, **members: object) -> None:
        talk.server(at, frame(0x81, json.dumps({"jsonrpc": "2.0", **members}).encode()))

    upgraded(talk, "json-rpc")
    call(100, method="index", params=[1], id=1)
    call(110, method="ping", id=2)
    speak(116, id=2, result="pong")
    speak(130, method="progress", params={"id": 9})
    speak(180, id=1, result=[])
    call(300, method="exit")
    call(400, method="none", id=3)
    speak(406, id=3, error={"code": -32601, "message": "no such method"})
    speak(500, method="root", id=1)
    call(530, id=1, result="/")
    return pcap(talk.tape)
