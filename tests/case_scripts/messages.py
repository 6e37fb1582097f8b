"""Where requests and answers begin and end: HTTP's framing, pipelines, cuts, and connections one after the other."""

from __future__ import annotations

from collections.abc import Callable

from makepcap import MSS, Ends, Segment, Talk, answer, get, pcap

from case_scripts.registry import case, variants

HTTP = b"".join(answer(200))
MANY = 300
"""More exchanges than are kept waiting for the path to be known."""


@case
def pipelining_at_server() -> bytes:
    """Two requests in a row, answered after 30 and 50 ms, captured at the server: the second waits behind the first
    all the time at the server.

    Not to be mistaken for: a second request that the path held.
    """
    talk = Talk(server_leg=0.01, client_leg=0.5)
    talk.open()
    talk.client(30, get("/1"))
    talk.client(30.02, get("/2"))
    talk.server(60, HTTP)
    talk.client(60.5)
    talk.server(80, HTTP)
    talk.client(80.5)
    return pcap(talk.tape)


@case
def pipelining_at_client() -> bytes:
    """Two requests 5 ms apart over a path of 20 ms, captured at the client; the server needs 0.2 and 0.4 ms. Each
    answer is late for its own request's way, not for the other's: nearly all of it is the path. The program's part of
    the second wait begins behind the first answer, which lies within it.

    Not to be mistaken for: a server that works the second request off for 5 ms more.
    """
    talk = Talk(server_leg=20.0, client_leg=0.01)
    talk.open()
    talk.client(30, get("/1"))
    talk.client(35, get("/2"))
    talk.server(50.2, HTTP, ack=1 + len(get("/1")))  # the second had not come yet when it left
    talk.client(50.21)
    talk.server(55.4, HTTP)
    talk.client(55.41)
    return pcap(talk.tape)


@case
def chunked() -> bytes:
    """A chunked answer whose chunks are produced 5 ms apart; the last chunk is a segment of its own. The client
    acknowledges each within 1 ms, and the next leaves 4 ms after that.

    Not to be mistaken for: segments that wait for the ACK before them; it is the program.
    """
    talk = Talk()
    talk.open()
    talk.client(30, get())
    talk.server(35, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;name=value\r\nhello\r\n")
    talk.client(36)
    talk.server(40, b"6\r\n world\r\n")
    talk.client(41)
    talk.server(45, b"0\r\nTrailer: yes\r\n\r\n")
    talk.client(46)
    return pcap(talk.tape)


@case
def bodiless() -> bytes:
    """HEAD, 204 and 304: no body, whatever Content-Length says. The fourth exchange shows that nobody lost count.

    Not to be mistaken for: answers whose bodies are missing from the capture.
    """
    talk = Talk()
    talk.open()
    heads = [
        (get("/", "HEAD"), answer(1000)[0]),
        (get("/none", "DELETE"), b"HTTP/1.1 204 No Content\r\n\r\n"),
        (get("/same"), answer(500, "304 Not Modified")[0]),
        (get("/whole"), HTTP),
    ]
    for i, (request, reply) in enumerate(heads):
        talk.client(30 + 10 * i, request)
        talk.server(32 + 10 * i, reply)
        talk.client(33 + 10 * i)
    return pcap(talk.tape)


@case
def continue_at_client() -> bytes:
    """Expect: 100-continue over a path of 20 ms, captured at the client: the head's way to the server and back
    passes before the body may leave, and once more before the answer. One exchange, status 200.

    Not to be mistaken for: two exchanges, or a server that thinks for 50 ms.
    """
    talk = Talk(server_leg=20.0, client_leg=0.01)
    talk.open()
    talk.client(30, get("/", "POST", "Content-Length: 5", "Expect: 100-continue"))
    talk.server(50.2, b"HTTP/1.1 100 Continue\r\n\r\n")
    talk.client(50.31, b"hello")
    talk.server(80.31, HTTP)
    talk.client(80.32)
    return pcap(talk.tape)


@case
def closed_without_answer() -> bytes:
    """Two connections whose request is never answered: the first is closed by the server's FIN, the second by its
    RST. There is no latency and no cause, only how it was cut.

    Not to be mistaken for: a capture that ends before the answer.
    """
    talk = Talk()
    talk.open()
    talk.client(30, get("/fin"))
    talk.server(35, flags="FA")
    talk.client(36, flags="FA")
    talk.server(36.01)
    reset = Talk(ends=Ends(("10.0.0.1", 40_001)), tape=talk.tape)
    reset.open(50)
    reset.client(60, get("/rst"))
    reset.server(65, flags="RA")
    return pcap(talk.tape)


def kept_alive(count: int, *, late: int, gives_up: bool = False) -> bytes:
    """So many connections with a request and its answer; on the `late` first ones the server closes then, and the next
    request meets its RST. Or the client `gives_up` there: it asks, and closes itself.
    """
    tape: list[Segment] = []
    for number in range(count):
        talk, at = Talk(ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape), 100.0 * number
        talk.open(at)
        talk.client(at + 10, get("/first"))
        talk.server(at + 12, b"".join(answer(300)))
        if number < late and gives_up:
            talk.client(at + 20, get("/next"))
            talk.client(at + 21, flags="FA")
            talk.server(at + 21.01)
        elif number < late:
            talk.server(at + 20, flags="FA")
            talk.client(at + 20.5, get("/next"))
            talk.server(at + 20.51, flags="RA")
    return pcap(tape)


@case
def closed_when_asked_again() -> bytes:
    """Eight connections that are kept; on three of them the server's time for that is over just when the client asks
    again: its FIN and the request pass each other, and the request gets a RST.

    Not to be mistaken for: three requests that are still waiting, or a server on which nothing went wrong.
    """
    return kept_alive(8, late=3)


@case
def closed_now_and_then() -> bytes:
    """The same on one connection of forty: told, and not the first thing to say.

    Not to be mistaken for: a server that closes on its clients.
    """
    return kept_alive(40, late=1)


@case
def client_gives_up() -> bytes:
    """Three of eight clients ask again and close their connection at once.

    Not to be mistaken for: a server that closed on them, though it never answered.
    """
    return kept_alive(8, late=3, gives_up=True)


@case
def snap_length() -> bytes:
    """Every frame cut to 96 bytes: the heads are whole, the bodies are not; lengths come from the IP header.

    Not to be mistaken for: answers that are incomplete.
    """
    talk = Talk()
    talk.open()
    reply = b"".join(answer(1000))
    for i in range(3):
        talk.client(30 + 10 * i, get())
        talk.server(32 + 10 * i, reply)
        talk.client(33 + 10 * i)
    return pcap(talk.tape, snaplen=96)


@case
def reused_ports() -> bytes:
    """The same client port twice, with another initial sequence number: two streams, as in Wireshark.

    Not to be mistaken for: one connection with a hole in its sequence numbers.
    """
    talk = Talk()
    again = Talk(tape=talk.tape, isn=(900_000, 700_000))
    for i, t in enumerate((talk, again)):
        t.open(100 * i)
        t.client(100 * i + 30, get())
        t.server(100 * i + 33, HTTP)
        t.client(100 * i + 34, flags="FA")
        t.server(100 * i + 34.01, flags="FA")
        t.client(100 * i + 35.01)
    return pcap(talk.tape)


@variants(near={"best_ms": 2.0}, far={"best_ms": 29.0})
def path_known_late(best_ms: float) -> bytes:
    """Begins in the middle of a connection: no handshake measures the path. 300 pipelined requests in a few packets
    are answered after 30 ms, so that there are few round trips; then one more, after the path's own time. The first
    ones are judged by the best time that comes later.

    Not to be mistaken for: a path of 30 ms, or a server that needs all of it.
    """
    talk = Talk(server_leg=best_ms, client_leg=0.01)
    reply, at = b"".join(answer(10)), 0.0
    for wanted, took in ((MANY, 30.0), (1, best_ms)):
        asked, said = get() * wanted, reply * wanted
        for i in range(0, len(asked), MSS):
            talk.client(at, asked[i : i + MSS])
        for i in range(0, len(said), MSS):
            at += took if not i else 0.001
            talk.server(at, said[i : i + MSS])
        talk.client(at + 0.01)
        at += 500
    return pcap(talk.tape, nanos=True)


@case
def turns_end_in_silence() -> bytes:
    """A protocol that no reader knows, captured at the server: a question is answered in 1 ms; 1.2 s later the server
    says something of its own accord, which the client acknowledges and leaves at that. Later the client does the same,
    and asks again 0.8 s after that. Both questions took 1 ms.

    Not to be mistaken for: an answer that took 1.2 s, and a question that was asked for 0.8 s.
    """
    talk = Talk(server_leg=0.01, client_leg=0.5)
    talk.open()
    talk.client(30, b"\x01\x07ask")
    talk.server(31, b"\x01\x07answer")
    talk.client(31.5)
    talk.server(1231, b"\x02\x00event")
    talk.client(1231.5)
    talk.client(2000, b"\x03\x00alive")
    talk.server(2000.1)
    talk.client(2800, b"\x01\x08ask")
    talk.server(2801, b"\x01\x08answer")
    talk.client(2801.5)
    talk.server(2802, flags="FA")
    return pcap(talk.tape)


@case
def turns_with_a_slow_rhythm() -> bytes:
    """A protocol that no reader knows, captured at the server: each of three answers comes 0.3 s after its question,
    and the last one's second half 0.9 s after the first half.

    Not to be mistaken for: a server that says something unasked: this one is slow, and so is its whole answer.
    """
    talk = Talk(server_leg=0.01, client_leg=0.5)
    talk.open()
    for start in (30, 400, 800):
        talk.client(start, b"\x01\x07ask")
        talk.server(start + 300, b"\x01\x07answer")
        talk.client(start + 300.5)
    talk.server(2000, b"\x01\x07rest")
    talk.client(2000.5)
    talk.server(2001, flags="FA")
    return pcap(talk.tape)


def crowd(takes: Callable[[int], float], rounds: int = 2, clients: int = 70) -> bytes:
    """Requests of many connections, 0.01 ms apart at the server; the n-th of a round is answered `takes(n)` ms after it
    has come.
    """
    tape: list[Segment] = []
    talks = [
        Talk(server_leg=0.01, client_leg=0.3, ends=Ends(("10.0.0.1", 40_000 + n)), tape=tape) for n in range(clients)
    ]
    for n, talk in enumerate(talks):
        talk.open(-100.0 + n)
    for number in range(rounds):
        at = 50.0 * number
        for n, talk in enumerate(talks):
            talk.client(at + 0.01 * n, get())
            talk.server(at + 0.01 * n + takes(n), HTTP)
    return pcap(sorted(tape, key=lambda segment: segment.time_ns))


@case
def queue_at_server() -> bytes:
    """70 clients ask at once, captured at the server: it works on one request after the other, 0.1 ms each.

    Not to be mistaken for: a request that takes 4 ms of work.
    """
    return crowd(lambda n: 0.1 * (n + 1) - 0.01 * n)


@case
def decoy_slow_in_parallel() -> bytes:
    """70 clients ask at once, captured at the server: each request takes 4 ms of work, all of them at the same time.

    Not to be mistaken for: a queue. Those ahead cost nobody any time.
    """
    return crowd(lambda n: 4.0 + 0.003 * (n * 7 % 5))
