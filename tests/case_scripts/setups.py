"""Connection set-ups: prompt, lost, refused, unanswered."""

from __future__ import annotations

from makepcap import SACK_PERMITTED, Talk, mss, pcap

from case_scripts.registry import case, variants
from case_scripts.repairs import ask

OFFERS = (mss(), SACK_PERMITTED)


@variants(at_client={"legs": (20.0, 0.05)}, at_server={"legs": (0.05, 20.0)}, between={"legs": (8.0, 12.05)})
def setup_of_one_round_trip(legs: tuple[float, float]) -> bytes:
    """A connection over a path of 20.05 ms whose client asks 0.25 ms after the handshake: the set-up lasts a round
    trip wherever it is captured. It is no request, and no part of the one exchange.

    Not to be mistaken for: an exchange without an answer.
    """
    talk = Talk(server_leg=legs[0], client_leg=legs[1])
    talk.open()
    ask(talk, 20.3, 1.0)
    return pcap(talk.tape)


@case
def setup_that_took_little() -> bytes:
    """A handshake of 1 ms before three requests of 11 ms each: not worth a row.

    Not to be mistaken for: a connection whose handshake is not in the capture.
    """
    talk = Talk(server_leg=1.0, client_leg=0.05)
    talk.open()
    done = 2.0
    for _ in range(3):
        done = ask(talk, done + 0.1, 10.0)
    return pcap(talk.tape)


@case
def syn_lost() -> bytes:
    """At the client: the first SYN is lost, the second comes after 1,010 ms. 20 requests of 1,000 ms each follow: the
    set-up is named although they take longer.

    Not to be mistaken for: a path of 1,030 ms.
    """
    talk = Talk(server_leg=20.0, client_leg=0.05)
    talk.client(0, flags="S", options=OFFERS)
    talk.client(1010, flags="S", options=OFFERS, seq=0)
    talk.server(1030, flags="SA", options=OFFERS)
    talk.client(1030.05)
    done = 1030.1
    for _ in range(20):
        done = ask(talk, done, 1000.0)
    return pcap(talk.tape)


@case
def syn_ack_lost_at_server() -> bytes:
    """At the server: the SYN-ACK is lost on its way, so that the client repeats its SYN after 1,010 ms.

    Not to be mistaken for: a server that answers late.
    """
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.client(0, flags="S", options=OFFERS)
    talk.server(0.05, flags="SA", options=OFFERS)
    talk.client(1010, flags="S", options=OFFERS, seq=0)
    talk.server(1010.05, flags="SA", options=OFFERS, seq=0)
    talk.client(1030.05)
    return pcap(talk.tape)


@case
def setup_refused() -> bytes:
    """A RST answers the SYN after 20 ms.

    Not to be mistaken for: a lost SYN.
    """
    talk = Talk(server_leg=20.0, client_leg=0.05)
    talk.client(0, flags="S", options=OFFERS)
    talk.server(20, flags="RA")
    return pcap(talk.tape)


@case
def setup_unanswered() -> bytes:
    """Three SYNs, after 0, 1 and 3 s, and no answer until the capture ends.

    Not to be mistaken for: a path of 3 s.
    """
    talk = Talk()
    for ms in (0, 1000, 3000):
        talk.client(ms, flags="S", options=OFFERS, seq=0)
    return pcap(talk.tape)
