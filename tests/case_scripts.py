"""The situations of tests/cases as scripts: a capture each, and what it has to give.

The expected values come from the script's own numbers (who sent what when, and the path's legs), never from latpcap.
Rows of `causes` are [cause, parent, owner, duration_ms, from_frame, to_frame]; neighbours that say the same are one
row. `from_frame` is the frame at which the wait begins, `to_frame` the one that ends it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import situations
from makepcap import Ends, Talk, answer, get, pcap, sack

Row = list[Any]
HTTP = b"".join(answer(200))


@dataclass(frozen=True)
class Case:
    """What one folder holds."""

    capture: bytes
    exchanges: list[dict[str, Any]]
    proven: bool | None = None
    """Whether the delayed ACKs are proven (confidence 0.9 or more); None without any."""


def row(cause: str, owner: str, ms: float, first: int, last: int, parent: str | None = None) -> Row:
    return [cause, parent, owner, round(ms, 6), first, last]


def exchange(*rows: Row, index: int = 0, stream: int = 0, status: int | None = 200, **more: Any) -> dict[str, Any]:
    """A complete exchange whose time is that of its rows; the top cause is the one with the most time."""
    spent: dict[str, float] = defaultdict(float)
    for cause, _, _, ms, _, _ in rows:
        spent[cause] += ms
    return {
        "stream": stream,
        "index": index,
        "status": status,
        "complete": True,
        "cut_by": None,
        "latency_ms": round(sum(spent.values()), 6),
        "top_cause": max(spent, key=lambda c: spent[c], default=None),
        "causes": list(rows),
    } | more


def turn(talk: Talk, ms: float, first: int, last: int, until: int | None = None, side: str = "server") -> list[Row]:
    """From a message to its answer: the path to the side and back, then its program.

    `until`: the frame to which the program's time goes on behind the answer's first segment.
    """
    leg = talk.server_leg if side == "server" else talk.client_leg
    rest = row(f"{side}_think", side, ms - leg, first, last if until is None else until)
    return [row("network", "network", leg, first, last), rest]


def stalls(talk: Talk, found: list[situations.Exchange]) -> list[dict[str, Any]]:
    exchanges = []
    for i, e in enumerate(found):
        rows = turn(talk, e.headed - e.asked, e.request, e.head)
        if e.hold is None:
            rows.append(row("nagle", "server", e.bodied - e.headed, e.head, e.body))
        else:
            rest = e.bodied - e.headed - talk.client_leg - e.hold
            rows.append(row("nagle", "server", talk.client_leg, e.head, e.body))
            rows.append(row("delayed_ack", "client", e.hold, e.head, e.body, "nagle"))
            rows.append(row("nagle", "server", rest, e.head, e.body))
        exchanges.append(exchange(*rows, index=i))
    return exchanges


def stall_at_server() -> Case:
    """The server's Nagle and the client's delayed ACK, seen at the server (leg 0.01 ms; 1 ms to the client).
    The first answer of the connection meets a quick ACK. The 1 ms before the hold is the head's way to the client
    and the ACK's way back: still Nagle's, but nobody's hold.
    """
    talk, found = situations.stall(10)
    return Case(pcap(talk.tape), stalls(talk, found), proven=True)


def stall_at_client() -> Case:
    """The same stall seen at the client over a path of 20 ms, with TCP timestamps: the body comes 20 ms after its
    ACK, and yet because of it. The hold is the same 40 to 44 ms.
    """
    talk, found = situations.stall(10, client_leg=0.01, server_leg=20.0, stamped=True)
    return Case(pcap(talk.tape), stalls(talk, found), proven=True)


def stall_ipv6() -> Case:
    """The stall over IPv6 (no IP identification, other header length)."""
    talk, found = situations.stall(9, ends=Ends(("2001:db8::1", 40_000), ("2001:db8::2", 80)))
    return Case(pcap(talk.tape, nanos=True), stalls(talk, found), proven=True)


def stall_alone() -> Case:
    """One stall only: a program that pauses just once for 42 ms looks the same, so the verdict is probable."""
    talk, found = situations.stall(2)
    return Case(pcap(talk.tape), stalls(talk, found), proven=False)


def pause_decoy() -> Case:
    """TCP_NODELAY, and the server's program pauses 42 ms between head and body: the client's delayed ACK falls
    sometimes before and sometimes after the body. No Nagle, no delayed ACK that anybody waits for.
    """
    talk, found = situations.pause(12)
    rows = [turn(talk, e.bodied - e.asked, e.request, e.head, e.body) for e in found]
    return Case(pcap(talk.tape), [exchange(*r, index=i) for i, r in enumerate(rows)])


def think() -> Case:
    """The server works 60 ms. Its kernel acknowledges the request after 40 to 44 ms with a pure ACK: nobody waits
    for that one.
    """
    talk, found = situations.think(6)
    rows = [turn(talk, e.bodied - e.asked, e.request, e.body) for e in found]
    return Case(pcap(talk.tape), [exchange(*r, index=i) for i, r in enumerate(rows)])


def big_answer(segments: int, last: int) -> list[bytes]:
    size = (segments - 1) * 1460 + last
    head = answer(size - len(answer(size)[0]))[0]
    whole = head + b"x" * (size - len(head))
    return [whole[i : i + 1460] for i in range(0, size, 1460)]


def fast_retransmit_at_sender() -> Case:
    """An answer of six segments in one burst, captured at the server; the second is lost behind the capture
    (20 ms to the client). Three duplicate ACKs with SACK come, and it is sent again. The client can use the answer
    only then: the exchange ends with the repeat.
    """
    talk = Talk(client_leg=20.0)
    talk.open()
    asked = talk.client(30, get())
    frames = [talk.server(30.21 + i / 100, part) for i, part in enumerate(big_answer(6, 500))]
    talk.client(50.21, ack=1461)

    def duplicate(ms: float, end: int) -> None:
        talk.client(ms, ack=1461, options=[sack((talk.isn[1] + 2921, talk.isn[1] + end))])

    for i, end in enumerate((4381, 5841, 7301)):
        duplicate(50.23 + i / 100, end)
    again = talk.server(50.255, big_answer(6, 500)[1], seq=1461)
    duplicate(50.26, 7801)
    talk.client(70.255)
    rows = turn(talk, 0.21, asked, frames[0])
    rows.append(row("bandwidth", "network", 0.05, frames[0], frames[-1]))
    rows.append(row("fast_retransmit", "network", 50.255 - 30.26, frames[-1], again))
    return Case(pcap(talk.tape), [exchange(*rows)])


def tail_probe_and_timeout_at_sender() -> Case:
    """A one-segment answer is lost, captured at the server (20 ms to the client): after 241 ms (2 RTT + 200 ms, on
    the tick) the tail loss probe repeats it, is lost too, and 230 ms later the retransmission timer repeats it.
    """
    talk = Talk(client_leg=20.0)
    talk.open()
    asked = talk.client(30, get())
    first = talk.server(30.21, HTTP)
    probe = talk.server(271.21, HTTP, seq=1)
    again = talk.server(501.21, HTTP, seq=1)
    talk.client(521.21)
    rows = turn(talk, 0.21, asked, first)
    rows.append(row("tlp", "network", 241, first, probe))
    rows.append(row("rto", "network", 230, probe, again))
    return Case(pcap(talk.tape), [exchange(*rows)])


def held_ack_after_timeout_at_sender() -> Case:
    """The first segment of an answer is lost, and so is its probe, captured at the server (20 ms to the client). The
    timeout leaves a congestion window of one segment: the next one has to wait for the ACK of the repeat, which the
    client holds for 40 ms. The second answer's first segment is acknowledged as late, but its window is large: what
    leaves then was not held, it is the program's.
    """
    talk = Talk(client_leg=20.0)
    talk.open()
    parts = big_answer(3, 200)
    asked = talk.client(30, get())
    first = talk.server(30.21, parts[0])
    probe = talk.server(271.21, parts[0], seq=1)
    again = talk.server(501.21, parts[0], seq=1)
    talk.client(561.21)
    freed = talk.server(561.22, parts[1])
    last = talk.server(561.23, parts[2])
    talk.client(581.24)
    rows = [
        *turn(talk, 0.21, asked, first),
        row("tlp", "network", 241, first, probe),
        row("rto", "network", 230, probe, again),
        row("cwnd", "server", 20, again, freed),
        row("delayed_ack", "client", 40, again, freed, "cwnd"),
        row("cwnd", "server", 0.01, again, freed),
        row("bandwidth", "network", 0.01, freed, last),
    ]
    asked = talk.client(700, get())
    first = talk.server(700.21, parts[0])
    talk.client(760.21)
    freed = talk.server(760.22, parts[1])
    last = talk.server(760.23, parts[2])
    talk.client(780.24)
    network, think = turn(talk, 60.22, asked, first, freed)
    later = [network, think, row("bandwidth", "network", 0.01, freed, last)]
    return Case(pcap(talk.tape), [exchange(*rows), exchange(*later, index=1)], proven=False)


def zero_window() -> Case:
    """The client's program does not read: its window of three segments fills up, 0 is advertised, a probe after
    210 ms finds it closed still, and after 300 ms it opens. The server's fourth segment waited for the client.
    """
    talk = Talk(client_leg=10.0, client_window=4380, scale=0)
    talk.open()
    asked = talk.client(30, get())
    parts = big_answer(5, 300)
    frames = [talk.server(30.21 + i / 100, part) for i, part in enumerate(parts[:3])]
    talk.client(40.23, window=0)
    talk.server(250.23, seq=4380)
    talk.client(260.23, window=0)
    talk.client(340.21, window=4380)
    freed = talk.server(340.22, parts[3])
    last = talk.server(340.23, parts[4])
    talk.client(350.23)
    rows = [
        *turn(talk, 0.21, asked, frames[0]),
        row("bandwidth", "network", 0.02, frames[0], frames[2]),
        row("zero_window", "client", 340.22 - 30.23, frames[2], freed),
        row("bandwidth", "network", 0.01, freed, last),
    ]
    return Case(pcap(talk.tape), [exchange(*rows)])


def pipelining_at_server() -> Case:
    """Two requests in a row, answered after 30 and 50 ms, captured at the server: the second waits behind the first
    all the time at the server.
    """
    talk = Talk(server_leg=0.01, client_leg=0.5)
    talk.open()
    one = talk.client(30, get("/1"))
    two = talk.client(30.02, get("/2"))
    first = talk.server(60, HTTP)
    talk.client(60.5)
    second = talk.server(80, HTTP)
    talk.client(80.5)
    rows = [turn(talk, 30, one, first), turn(talk, 49.98, two, first, second)]
    return Case(pcap(talk.tape), [exchange(*r, index=i) for i, r in enumerate(rows)])


def pipelining_at_client() -> Case:
    """Two requests 5 ms apart over a path of 20 ms, captured at the client; the server needs 0.2 and 0.4 ms. Each
    answer is late for its own request's way, not for the other's: nearly all of it is the path.
    """
    talk = Talk(server_leg=20.0, client_leg=0.01)
    talk.open()
    one = talk.client(30, get("/1"))
    two = talk.client(35, get("/2"))
    first = talk.server(50.2, HTTP, ack=1 + len(get("/1")))  # the second had not come yet when it left
    talk.client(50.21)
    second = talk.server(55.4, HTTP)
    talk.client(55.41)
    # the program's part of the second wait begins behind the first answer, which lies within it
    rows = [
        turn(talk, 20.2, one, first),
        [*turn(talk, 20.4, two, second)[:1], row("server_think", "server", 0.4, first, second)],
    ]
    return Case(pcap(talk.tape), [exchange(*r, index=i) for i, r in enumerate(rows)])


def chunked() -> Case:
    """A chunked answer whose chunks are produced 5 ms apart; the last chunk is a segment of its own. The client
    acknowledges each within 1 ms, and the next leaves 4 ms after that: the program, not the ACK.
    """
    talk = Talk()
    talk.open()
    asked = talk.client(30, get())
    first = talk.server(35, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;name=value\r\nhello\r\n")
    talk.client(36)
    talk.server(40, b"6\r\n world\r\n")
    talk.client(41)
    last = talk.server(45, b"0\r\nTrailer: yes\r\n\r\n")
    talk.client(46)
    return Case(pcap(talk.tape), [exchange(*turn(talk, 15, asked, first, last))])


def bodiless() -> Case:
    """HEAD, 204 and 304: no body, whatever Content-Length says. The fourth exchange shows that nobody lost count."""
    talk = Talk()
    talk.open()
    heads = [
        (get("/", "HEAD"), answer(1000)[0], 200),
        (get("/none", "DELETE"), b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (get("/same"), answer(500, "304 Not Modified")[0], 304),
        (get("/whole"), HTTP, 200),
    ]
    exchanges = []
    for i, (request, reply, status) in enumerate(heads):
        asked = talk.client(30 + 10 * i, request)
        told = talk.server(32 + 10 * i, reply)
        talk.client(33 + 10 * i)
        exchanges.append(exchange(*turn(talk, 2, asked, told), index=i, status=status))
    return Case(pcap(talk.tape), exchanges)


def continue_at_client() -> Case:
    """Expect: 100-continue over a path of 20 ms, captured at the client: the head's way to the server and back
    passes before the body may leave, and once more before the answer. One exchange, status 200.
    """
    talk = Talk(server_leg=20.0, client_leg=0.01)
    talk.open()
    head = talk.client(30, get("/", "POST", "Content-Length: 5", "Expect: 100-continue"))
    allowed = talk.server(50.2, b"HTTP/1.1 100 Continue\r\n\r\n")
    body = talk.client(50.31, b"hello")
    done = talk.server(80.31, HTTP)
    talk.client(80.32)
    rows = turn(talk, 20.2, head, allowed)
    rows += turn(talk, 0.11, allowed, body, side="client")
    rows += turn(talk, 30, body, done)
    return Case(pcap(talk.tape), [exchange(*rows)])


def closed_without_answer() -> Case:
    """Two connections whose request is never answered: the first is closed by the server's FIN, the second by its
    RST. There is no latency and no cause, only how it was cut.
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
    none = {"status": None, "complete": False, "latency_ms": None}
    return Case(pcap(talk.tape), [exchange(stream=i, cut_by=by, **none) for i, by in enumerate(("fin", "rst"))])


def snap_length() -> Case:
    """Every frame cut to 96 bytes: the heads are whole, the bodies are not; lengths come from the IP header."""
    talk = Talk()
    talk.open()
    reply, exchanges = b"".join(answer(1000)), []
    for i in range(3):
        asked = talk.client(30 + 10 * i, get())
        told = talk.server(32 + 10 * i, reply)
        talk.client(33 + 10 * i)
        exchanges.append(exchange(*turn(talk, 2, asked, told), index=i))
    return Case(pcap(talk.tape, snaplen=96), exchanges)


def reused_ports() -> Case:
    """The same client port twice, with another initial sequence number: two streams, as in Wireshark."""
    talk = Talk()
    again = Talk(tape=talk.tape, isn=(900_000, 700_000))
    exchanges = []
    for i, t in enumerate((talk, again)):
        t.open(100 * i)
        asked = t.client(100 * i + 30, get())
        told = t.server(100 * i + 33, HTTP)
        t.client(100 * i + 34, flags="FA")
        t.server(100 * i + 34.01, flags="FA")
        t.client(100 * i + 35.01)
        exchanges.append(exchange(*turn(t, 3, asked, told), stream=i))
    return Case(pcap(talk.tape), exchanges)


SCRIPTS: list[Callable[[], Case]] = [
    stall_at_server, stall_at_client, stall_ipv6, stall_alone, pause_decoy, think, fast_retransmit_at_sender,
    tail_probe_and_timeout_at_sender, held_ack_after_timeout_at_sender, zero_window, pipelining_at_server,
    pipelining_at_client, chunked, bodiless, continue_at_client, closed_without_answer, snap_length, reused_ports,
]  # fmt: skip
