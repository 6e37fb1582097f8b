"""Who ended or held up a session: each rule has a capture in `spoken.sessions`, and here what only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from spoken import SPOKEN
from spoken.sessions import (
    alarms,
    blocks,
    boarding,
    boards,
    devices,
    jobs,
    labels,
    menus,
    news,
    photo,
    publishers,
    publishes,
    questions,
    scan,
    tapped,
    uploads,
)

import latpcap as lp
from latpcap.findings import transfers
from latpcap.views import answer_view

LEADS = {
    "broker_blocked": "a_broker_that_is_low_on_memory",
    "client_id_twice": "two_devices_with_one_id",
    "session_idled": "sessions_that_idle_out",
    "messages_in_turn": "a_broker_that_sends_one_at_a_time",
    "consumer_in_turn": "a_consumer_that_is_slow",
    "at_a_rate": "answers_at_a_rate",
    "idle_drop_push": "a_push_on_a_connection_that_was_forgotten",
    "path_mtu_or_gone": "an_upload_whose_head_gets_through",
    "reset_between": "a_reset_that_nobody_meant",
    "path_mtu_all": "an_upload_of_which_nothing_gets_through",
    "took_nothing_server": "a_server_that_does_not_read",
    "took_nothing_client": "a_client_that_takes_nothing",
    "client_onward": "a_client_that_looks_elsewhere_first",
    "behind_session": "a_session_that_is_locked",
    "pool_before": "a_proxy_that_passes_on_in_turn",
    "blocks_in_turn": "an_upload_in_blocks",
    "transfer_level": "an_upload_with_a_fixed_amount_in_flight",
}
DECOYS: list[tuple[str, Callable[[], bytes]]] = [
    ("broker_blocked", lambda: publishers(None)),  # a publish that takes long
    ("broker_blocked", lambda: publishers((1100.0, 1300.0))),  # blocked while nobody waited
    ("client_id_twice", lambda: devices(("hall", "roof"))),  # two devices that lose their connections
    ("client_id_twice", lambda: devices(("hall", "hall"), ("10.0.0.7", "10.0.0.7"))),  # one that comes back itself
    ("session_idled", lambda: boards((45_000.0, 20_000.0, 31_000.0))),  # closed, by no timer
    ("session_idled", lambda: boards((45_000.0, 45_010.0, 45_020.0), upgrade=False)),  # a keep-alive that ran out
    ("session_idled", lambda: boards((20_340.0,))),  # closed once, and by no timer of whole seconds
    ("took_nothing_server", lambda: publishes(800.0)),  # not for long
    ("took_nothing_server", lambda: publishes(5000.0, probes=False)),  # nothing was left to send
    ("messages_in_turn", lambda: alarms(60.0)),  # at a rhythm of its own
    ("consumer_in_turn", lambda: jobs(400.0, 300.0)),  # the queue is empty between
    ("consumer_in_turn", lambda: jobs(400.0, 0.0, number=3)),  # few
    ("consumer_in_turn", questions),  # answers to what it publishes
    ("at_a_rate", lambda: boarding(40.0)),  # work, which takes now more and now less
    ("idle_drop_push", lambda: news(8000.0, there=False)),  # the client may be gone
    ("idle_drop_push", lambda: news(600.0, there=True)),  # it was not idle
    ("reset_between", lambda: tapped(False)),  # the client gave up
    ("path_mtu_or_gone", lambda: scan(900)),  # not full
    ("path_mtu_all", lambda: photo(300, alive=True)),  # small packets
    ("client_onward", lambda: uploads("10.0.0.4")),  # another host's SYNs
    ("behind_session", lambda: menus(others=3500.0)),  # everybody waits for it
    ("pool_before", lambda: labels(limit=False)),  # the server behind takes one at a time
    ("blocks_in_turn", lambda: blocks(apart=90.0)),  # a program that has its data late
]


@pytest.mark.parametrize("sentence", LEADS)
def test_it_is_the_headline(sentence: str) -> None:
    why = lp.read(SPOKEN[LEADS[sentence]].make()).why()
    assert why.findings[0].sentence == sentence, why.headline


@pytest.mark.parametrize("sentence", LEADS)
def test_an_answer_alone_says_the_same(sentence: str, tmp_path: Path) -> None:
    """`latpcap why FILE` keeps less of a capture, and says no less."""
    file = tmp_path / "a.pcap"
    file.write_bytes(SPOKEN[LEADS[sentence]].make())
    assert str(answer_view.read(file).why()) == str(lp.read(file).why())


@pytest.mark.parametrize(("sentence", "make"), DECOYS)
def test_what_only_looks_like_it_is_not(sentence: str, make: Callable[[], bytes]) -> None:
    why = lp.read(make()).why()
    assert sentence not in {finding.sentence for finding in why.findings}, why.headline


@pytest.mark.parametrize(("lost", "rate", "sentence"), [
    (11, 1.9, "transfer_lost"), (11, 4.0, "transfer_far"), (3, 0.5, "transfer_far"),
])  # fmt: skip
def test_losses_explain_pauses_where_they_allow_no_more(lost: int, rate: float, sentence: str) -> None:
    """A sender that halves its window for each of 11 losses of 1,278 segments carries 2.5 Mbit/s at 60 ms."""
    row = {
        "limited_by": "sender_program", "grade": "suspected", "at_sender": False, "window_scaling": None, "rival": None,
        "retransmissions": lost, "segments": 1278, "bytes": 1278 * 1448, "rate_mbit": rate, "rtt_load_ms": None,
        "rtt_idle_ms": 60.0,
    }  # fmt: skip
    assert transfers._sentence(row) == sentence
