"""Lost segments and what repairs them; repeats that nobody needed; windows that are shut."""

from __future__ import annotations

from makepcap import Talk, answer, get, pcap, sack

from case_scripts.registry import case

HTTP = b"".join(answer(200))


def big_answer(segments: int, last: int) -> list[bytes]:
    size = (segments - 1) * 1460 + last
    head = answer(size - len(answer(size)[0]))[0]
    whole = head + b"x" * (size - len(head))
    return [whole[i : i + 1460] for i in range(0, size, 1460)]


def ask(talk: Talk, ms: float, took: float) -> float:
    """A request and its answer of one segment each; gives when the answer was acknowledged."""
    talk.client(ms, get())
    talk.server(ms + talk.server_leg + took, HTTP)
    done = ms + talk.server_leg + took + talk.client_leg
    talk.client(done)
    return done


def twice(talk: Talk, start: int, end: int) -> tuple[int, bytes]:
    """A DSACK for bytes of the server."""
    return sack((talk.isn[1] + start, talk.isn[1] + end))


@case
def fast_retransmit_at_sender() -> bytes:
    """An answer of six segments in one burst, captured at the server; the second is lost behind the capture
    (20 ms to the client). Three duplicate ACKs with SACK come, and it is sent again. The client can use the answer
    only then: the exchange ends with the repeat.

    Not to be mistaken for: a timeout, or a line that is narrow; the burst itself takes 0.05 ms.
    """
    talk = Talk(client_leg=20.0)
    talk.open()
    talk.client(30, get())
    for i, part in enumerate(big_answer(6, 500)):
        talk.server(30.21 + i / 100, part)
    talk.client(50.21, ack=1461)

    def duplicate(ms: float, end: int) -> None:
        talk.client(ms, ack=1461, options=[sack((talk.isn[1] + 2921, talk.isn[1] + end))])

    for i, end in enumerate((4381, 5841, 7301)):
        duplicate(50.23 + i / 100, end)
    talk.server(50.255, big_answer(6, 500)[1], seq=1461)
    duplicate(50.26, 7801)
    talk.client(70.255)
    return pcap(talk.tape)


@case
def tail_probe_and_timeout_at_sender() -> bytes:
    """A one-segment answer is lost, captured at the server (20 ms to the client): after 241 ms (2 RTT + 200 ms, on
    the tick) the tail loss probe repeats it, is lost too, and 230 ms later the retransmission timer repeats it.

    Not to be mistaken for: one timeout of 471 ms.
    """
    talk = Talk(client_leg=20.0)
    talk.open()
    talk.client(30, get())
    talk.server(30.21, HTTP)
    talk.server(271.21, HTTP, seq=1)
    talk.server(501.21, HTTP, seq=1)
    talk.client(521.21)
    return pcap(talk.tape)


@case
def held_ack_after_timeout_at_sender() -> bytes:
    """The first segment of an answer is lost, and so is its probe, captured at the server (20 ms to the client). The
    timeout leaves a congestion window of one segment: the next one has to wait for the ACK of the repeat, which the
    client holds for 40 ms. The second answer's first segment is acknowledged as late, but its window is large: what
    leaves then was not held, it is the program's.

    Not to be mistaken for: Nagle's algorithm; the segments that wait are full ones.
    """
    talk = Talk(client_leg=20.0)
    talk.open()
    parts = big_answer(3, 200)
    talk.client(30, get())
    talk.server(30.21, parts[0])
    talk.server(271.21, parts[0], seq=1)
    talk.server(501.21, parts[0], seq=1)
    talk.client(561.21)
    talk.server(561.22, parts[1])
    talk.server(561.23, parts[2])
    talk.client(581.24)
    talk.client(700, get())
    talk.server(700.21, parts[0])
    talk.client(760.21)
    talk.server(760.22, parts[1])
    talk.server(760.23, parts[2])
    talk.client(780.24)
    return pcap(talk.tape)


@case
def zero_window() -> bytes:
    """The client's program does not read: its window of three segments fills up, 0 is advertised, a probe after
    210 ms finds it closed still, and after 300 ms it opens. The server's fourth segment waited for the client.

    Not to be mistaken for: a lost segment that is repeated; the probe carries no new byte.
    """
    talk = Talk(client_leg=10.0, client_window=4380, scale=0)
    talk.open()
    talk.client(30, get())
    parts = big_answer(5, 300)
    for i, part in enumerate(parts[:3]):
        talk.server(30.21 + i / 100, part)
    talk.client(40.23, window=0)
    talk.server(250.23, seq=4380)
    talk.client(260.23, window=0)
    talk.client(340.21, window=4380)
    talk.server(340.22, parts[3])
    talk.server(340.23, parts[4])
    talk.client(350.23)
    return pcap(talk.tape)


@case
def probe_for_a_late_answer() -> bytes:
    """At the server: the path held the answer for 400 ms, the tail loss probe overtook it after 241 ms, and a DSACK
    for the answer says that both came.

    Not to be mistaken for: a loss; the 241 ms are the path's queue.
    """
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    talk.client(30, get())
    talk.server(30.2, HTTP)
    talk.server(271.2, HTTP, seq=1)
    talk.client(291.2)
    talk.client(450.2, options=[twice(talk, 1, 1 + len(HTTP))])
    return pcap(talk.tape)


@case
def probe_for_a_lost_ack() -> bytes:
    """At the server: the probe's own acknowledgement says at once that the bytes came twice: the client had them long
    ago, and only its ACK was lost. The exchange ends with the first answer, after 0.2 ms.

    Not to be mistaken for: an exchange of 241 ms.
    """
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    talk.client(30, get())
    talk.server(30.2, HTTP)
    talk.server(271.2, HTTP, seq=1)
    talk.client(291.2, options=[twice(talk, 1, 1 + len(HTTP))])
    return pcap(talk.tape)


@case
def needless_repeat_of_a_request() -> bytes:
    """At the client, 20 ms from the server: the program took 400 ms for the second request and the request's ACK was
    lost. The request is repeated after 241 ms, and a DSACK says that it had come.

    Not to be mistaken for: a lost request; the wait is the server's.
    """
    talk = Talk(server_leg=20.0, client_leg=0.05)
    talk.open()
    ask(talk, 30, 1.0)
    talk.client(60, get())
    talk.client(301, get(), seq=1 + len(get()))
    told = sack((talk.isn[0] + 1 + len(get()), talk.isn[0] + 1 + 2 * len(get())))
    talk.server(321, options=[told])
    talk.server(480, HTTP)
    talk.client(480.05)
    return pcap(talk.tape)


@case
def request_lost_before_the_capture() -> bytes:
    """At the server: an empty packet of the client has a number beyond the second request, which comes only 600 ms
    later. The wait counts from when its absence showed.

    Not to be mistaken for: a client that asked late.
    """
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    done = ask(talk, 30, 1.0)
    start, request = 1 + len(get()), get()
    talk.c.ip_id += 1  # the request itself
    talk.c.sent += len(request)
    talk.client(done + 20)
    came = done + 620
    talk.client(came, request, seq=start)
    talk.server(came + 1, HTTP)
    talk.client(came + 21)
    return pcap(talk.tape)


@case
def answer_lost_before_the_capture() -> bytes:
    """At the client: the head of the second answer is lost before the capture, and Nagle's algorithm holds the body
    until the server's tail loss probe sends it, 240 ms later; the head comes behind it. The server had acknowledged the
    request at once. The third answer comes as late, and nothing is missing before it.

    Not to be mistaken for: a server that works for 240 ms, as it does before the third answer.
    """
    talk = Talk(server_leg=16.0, client_leg=0.01)
    talk.open()
    head, body = answer(200)
    done = ask(talk, 30, 1.0)
    talk.client(done, get())
    talk.server(done + 16.1)
    start = talk.s.sent
    late = done + 257
    talk.server(late, body, seq=start + len(head))
    talk.client(late + 0.05, ack=start, options=[twice(talk, start + len(head), start + len(HTTP))])
    talk.server(late + 16.2, head, seq=start)
    talk.client(late + 16.25)
    talk.client(late + 20, get())
    talk.server(late + 36.1)
    talk.server(late + 277, HTTP)
    talk.client(late + 277.05)
    return pcap(talk.tape)


@case
def more_holes_than_remembered() -> bytes:
    """80 segments of a server with a hole of 100 bytes before each but the first: more than the 64 that are
    remembered of a stream. The other 15 are counted in an issue.

    Not to be mistaken for: a damaged file; every record is whole.
    """
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    talk.client(30, get())
    for i in range(80):
        talk.server(31 + i, b"x" * 100, seq=1 + 200 * i)
    return pcap(talk.tape)
