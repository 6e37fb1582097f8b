"""Who says nothing: requests without an answer, peers that are gone, and messages that nobody waited for."""

from __future__ import annotations

from makepcap import Ends, Talk, answer, get, mss, pcap

from case_scripts.registry import case


@case
def silence_never_answered() -> bytes:
    """The kernel acknowledges a request, and its program says nothing until the client gives up after 30 s.

    Not to be mistaken for: a capture in which nothing is slow.
    """
    talk = Talk()
    talk.open()
    talk.client(5.0, get("/report"))
    talk.server(5.01)
    talk.client(30_005.0, flags="FA")
    return pcap(talk.tape)


@case
def silence_client_gone() -> bytes:
    """The answer comes whole, and its client is gone: the server repeats the end for 25 s, and resets.

    Not to be mistaken for: a loss, repaired by the retransmission timer.
    """
    talk = Talk(server_leg=0.01, client_leg=20.0)
    talk.open()
    talk.client(30.0, get())
    talk.server(31.0, b"".join(answer(300)))
    for at in (231.0, 631.0, 1431.0, 3031.0, 6231.0, 12_631.0, 25_431.0):
        talk.server(at, b"x" * 300, seq=talk.s.sent - 300)
    talk.server(26_000.0, flags="RA")
    return pcap(talk.tape)


@case
def silence_server_gone() -> bytes:
    """A second request is never acknowledged: its repeats meet nobody.

    Not to be mistaken for: a path that drops packets, and a repair that took 12 s.
    """
    talk = Talk(server_leg=20.0, client_leg=0.01)
    talk.open()
    talk.client(30.0, get("/first"))
    talk.server(51.0, b"".join(answer(300)))
    talk.client(51.1)
    talk.client(60.0, get("/second"))
    start = talk.c.sent - len(get("/second"))
    for at in (300.0, 780.0, 1740.0, 3660.0, 7500.0, 12_000.0):
        talk.client(at, get("/second"), seq=start)
    return pcap(talk.tape)


@case
def silence_between_people() -> bytes:
    """Bytes of no known protocol go to and fro, and every second time the server's side speaks only after seconds.

    Not to be mistaken for: a server that is proven to take so long. It may be a person who types, or a push.
    """
    talk = Talk(server_leg=10.0, client_leg=0.01)
    talk.open()
    at = 100.0
    for pause in (4000.0, 7000.0, 2500.0, 5200.0, 3100.0, 6100.0):
        talk.client(at, b"\x01\x07\x02\x09 said")
        talk.server(at + 10.0)
        talk.server(at + pause, b"\x02\x05\x07\x11 other")
        talk.client(at + pause + 0.02)
        at += pause + 300.0
    return pcap(talk.tape)


@case
def silence_of_kernels() -> bytes:
    """Every packet carries data, from the first on, so that no kernel has answered by itself; the least answer
    takes 15 ms.

    Not to be mistaken for: a path that is proven to take 15 ms. It may be the server's program.
    """
    talk = Talk(server_leg=0.5, client_leg=0.01)
    talk.c.sent = talk.s.sent = 1
    for number, took in enumerate((15.0, 15.2, 16.0, 15.1)):
        talk.client(100.0 * number, get())
        talk.server(100.0 * number + took, b"".join(answer(40)))
    return pcap(talk.tape)


@case
def silence_cut_off() -> bytes:
    """One request and its answer, and a SYN to another port as the last packet of the capture.

    Not to be mistaken for: a host that does not answer.
    """
    talk = Talk()
    talk.open()
    talk.client(5.0, get())
    talk.server(5.5, b"".join(answer(20)))
    other = Talk(ends=Ends(server=("10.0.0.3", 80)), tape=talk.tape)
    other.client(9.0, flags="S", options=[mss()])
    return pcap(talk.tape)


def _begun_in_the_middle(requests: int) -> bytes:
    """So many requests of a connection that began before the capture, each answered by its program after 400 ms."""
    talk = Talk()
    talk.open()
    for number in range(requests):
        talk.client(10.0 + 990.0 * number, get("/a"))
        talk.server(410.0 + 990.0 * number, b"".join(answer(50)))
    return pcap(talk.tape[3:])


@case
def one_answer_alone() -> bytes:
    """The only round trip that was ever seen to the server is its program's one answer: it says nothing of the path.

    Not to be mistaken for: a path that takes 400 ms, probably.
    """
    return _begun_in_the_middle(1)


@case
def one_answer_alone_decoy_two() -> bytes:
    """Two answers of a program took 400 ms each, and no kernel answered: what both have is probably the path's.

    Not to be mistaken for: one answer, which is no measure of anything.
    """
    return _begun_in_the_middle(2)
