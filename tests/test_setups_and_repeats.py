"""Connection set-ups as exchanges; repeats that nobody needed; requests that were lost before the capture."""

from __future__ import annotations

from typing import Any

import pytest
from makepcap import SACK_PERMITTED, Talk, answer, get, mss, pcap, sack

import latpcap as lp

OFFERS = (mss(), SACK_PERMITTED)
HTTP = b"".join(answer(200))


def table(talk: Talk) -> list[dict[str, Any]]:
    """Exchanges, each with its causes as [cause, rule, ms]."""
    capture = lp.read(pcap(talk.tape))
    exchanges, causes = capture.arrow("exchanges").to_pylist(), capture.arrow("causes").to_pylist()
    for e in exchanges:
        mine = [c for c in causes if c["exchange"] == e["exchange"]]
        e["causes"] = [(c["cause"], c["rule"], round(c["duration_ms"], 3)) for c in mine]
    return exchanges


def setups(talk: Talk) -> list[dict[str, Any]]:
    return [e for e in table(talk) if e["protocol"] == "tcp"]


def ask(talk: Talk, ms: float, took: float) -> float:
    """A request and its answer of one segment each; gives when the answer was acknowledged."""
    talk.client(ms, get())
    talk.server(ms + talk.server_leg + took, HTTP)
    talk.client(ms + talk.server_leg + took + talk.client_leg)
    return ms + talk.server_leg + took + talk.client_leg


@pytest.mark.parametrize("legs", [(20.0, 0.05), (0.05, 20.0), (8.0, 12.05)], ids=["client", "server", "between"])
def test_a_setup_lasts_a_round_trip_wherever_it_is_captured(legs: tuple[float, float]) -> None:
    talk = Talk(server_leg=legs[0], client_leg=legs[1])
    talk.open()
    ask(talk, 20.3, 1.0)
    (e,) = setups(talk)
    assert (e["method"], e["complete"], e["cut_by"], e["latency_ms"]) == ("connect", False, None, None)
    assert (e["request_first_frame"], e["response_first_frame"], e["response_last_frame"]) == (1, 2, 4)
    assert sum(ms for cause, _, ms in e["causes"] if cause == "network") == pytest.approx(20.05)
    assert e["client_think_ms"] == pytest.approx(0.25)


def test_a_setup_that_took_little_has_no_row() -> None:
    talk = Talk(server_leg=1.0, client_leg=0.05)
    talk.open()
    done = 2.0
    for _ in range(3):
        done = ask(talk, done + 0.1, 10.0)
    assert setups(talk) == []


def test_a_lost_syn_is_named_though_requests_take_longer() -> None:
    talk = Talk(server_leg=20.0, client_leg=0.05)
    talk.client(0, flags="S", options=OFFERS)
    talk.client(1010, flags="S", options=OFFERS, seq=0)
    talk.server(1030, flags="SA", options=OFFERS)
    talk.client(1030.05)
    done = 1030.1
    for _ in range(20):
        done = ask(talk, done, 1000.0)
    (e,) = setups(talk)
    assert e["causes"][0] == ("syn_rto", "handshake_repeated", 1010.0)
    assert e["syn_rto_ms"] == 1010.0 and e["network_ms"] == pytest.approx(20.05)


def test_a_lost_syn_ack_is_named_at_the_server() -> None:
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.client(0, flags="S", options=OFFERS)
    talk.server(0.05, flags="SA", options=OFFERS)
    talk.client(1010, flags="S", options=OFFERS, seq=0)
    talk.server(1010.05, flags="SA", options=OFFERS, seq=0)
    talk.client(1030.05)
    (e,) = setups(talk)
    assert e["top_cause"] == "syn_rto" and e["syn_rto_ms"] == 1010.0
    assert e["network_ms"] == pytest.approx(20.05)


def test_refused_and_unanswered() -> None:
    refused = Talk(server_leg=20.0, client_leg=0.05)
    refused.client(0, flags="S", options=OFFERS)
    refused.server(20, flags="RA")
    (e,) = setups(refused)
    assert (e["cut_by"], e["causes"]) == ("rst", [("network", "leg", 20.0)])
    silent = Talk()
    for ms in (0, 1000, 3000):
        silent.client(ms, flags="S", options=OFFERS, seq=0)
    (e,) = setups(silent)
    assert (e["cut_by"], e["response_first_frame"]) == ("capture_end", None)
    assert e["causes"] == [("syn_rto", "handshake_repeated", 3000.0)]


def test_a_setup_is_no_request() -> None:
    talk = Talk(server_leg=20.0, client_leg=0.05)
    talk.open()
    ask(talk, 20.3, 1.0)
    capture = lp.read(pcap(talk.tape))
    assert "1 exchange," in repr(capture)
    assert capture.why().to_dict()["incomplete"] == 0
    assert capture.arrow("streams")["exchanges"].to_pylist() == [1]


def twice(talk: Talk, start: int, end: int) -> tuple[int, bytes]:
    """A DSACK for bytes of the server."""
    return sack((talk.isn[1] + start, talk.isn[1] + end))


def test_a_probe_for_an_answer_that_was_only_late_is_queueing() -> None:
    """At the server: the path held the answer for 400 ms, the probe overtook it, and a DSACK says that both came."""
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    talk.client(30, get())
    talk.server(30.2, HTTP)
    talk.server(271.2, HTTP, seq=1)
    talk.client(291.2)
    talk.client(450.2, options=[twice(talk, 1, 1 + len(HTTP))])
    (e,) = [e for e in table(talk) if e["protocol"] == "http"]
    assert e["causes"][-1] == ("queueing", "not_lost", 241.0)
    assert e["tlp_ms"] == 0


def test_a_probe_for_an_answer_whose_ack_was_lost_is_no_part_of_the_wait() -> None:
    """At the server: the first acknowledgement says at once that the bytes came twice. The client had them long ago."""
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    talk.client(30, get())
    first = talk.server(30.2, HTTP)
    talk.server(271.2, HTTP, seq=1)
    talk.client(291.2, options=[twice(talk, 1, 1 + len(HTTP))])
    (e,) = [e for e in table(talk) if e["protocol"] == "http"]
    assert (e["response_last_frame"], e["latency_ms"]) == (first, pytest.approx(0.2))


def test_a_request_that_came_and_was_repeated_waited_for_its_answer() -> None:
    """At the client: the program took 400 ms and the request's ACK was lost: the repeat was needless."""
    talk = Talk(server_leg=20.0, client_leg=0.05)
    talk.open()
    ask(talk, 30, 1.0)
    talk.client(60, get())
    talk.client(301, get(), seq=1 + len(get()))
    told = sack((talk.isn[0] + 1 + len(get()), talk.isn[0] + 1 + 2 * len(get())))
    talk.server(321, options=[told])
    talk.server(480, HTTP)
    talk.client(480.05)
    e = [e for e in table(talk) if e["protocol"] == "http"][1]
    assert e["latency_ms"] == pytest.approx(420.0)
    assert [(cause, ms) for cause, _, ms in e["causes"]] == [("network", 20.0), ("server_think", 400.0)]


def test_a_request_lost_before_the_capture_counts_from_when_its_absence_showed() -> None:
    """At the server: an empty packet of the client has a number beyond the request, which comes 600 ms later."""
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    done = ask(talk, 30, 1.0)
    start, request = 1 + len(get()), get()
    talk.c.ip_id += 1  # the request itself
    talk.c.sent += len(request)
    shown = talk.client(done + 20)
    came = done + 620
    talk.client(came, request, seq=start)
    talk.server(came + 1, HTTP)
    talk.client(came + 21)
    e = [e for e in table(talk) if e["protocol"] == "http"][1]
    assert e["request_first_frame"] == shown
    assert e["causes"][0] == ("rto", "hole_filled", 600.0)


def test_more_holes_than_can_be_remembered_are_an_issue() -> None:
    talk = Talk(server_leg=0.05, client_leg=20.0)
    talk.open()
    talk.client(30, get())
    for i in range(80):
        talk.server(31 + i, b"x" * 100, seq=1 + 200 * i)
    issues = lp.read(pcap(talk.tape)).arrow("issues").to_pylist()
    assert [i["count"] for i in issues if "too many holes" in i["reason"]] == [79 - 64]
