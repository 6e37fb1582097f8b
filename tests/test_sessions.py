"""Who ended or held up a session: each rule has a capture in `spoken.sessions`, and here what only looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from spoken import SPOKEN
from spoken.sessions import boards, devices, labels, menus, publishers, uploads

import latpcap as lp

LEADS = {
    "broker_blocked": "a_broker_that_is_low_on_memory",
    "client_id_twice": "two_devices_with_one_id",
    "session_idled": "sessions_that_idle_out",
    "client_onward": "a_client_that_looks_elsewhere_first",
    "behind_session": "a_session_that_is_locked",
    "pool_before": "a_proxy_that_passes_on_in_turn",
}
DECOYS: list[tuple[str, Callable[[], bytes]]] = [
    ("broker_blocked", lambda: publishers(None)),  # a publish that takes long
    ("broker_blocked", lambda: publishers((1100.0, 1300.0))),  # blocked while nobody waited
    ("client_id_twice", lambda: devices(("hall", "roof"))),  # two devices that lose their connections
    ("client_id_twice", lambda: devices(("hall", "hall"), ("10.0.0.7", "10.0.0.7"))),  # one that comes back itself
    ("session_idled", lambda: boards((45_000.0, 20_000.0, 31_000.0))),  # closed, by no timer
    ("session_idled", lambda: boards((45_000.0, 45_010.0, 45_020.0), upgrade=False)),  # a keep-alive that ran out
    ("client_onward", lambda: uploads("10.0.0.4")),  # another host's SYNs
    ("behind_session", lambda: menus(others=3500.0)),  # everybody waits for it
    ("pool_before", lambda: labels(limit=False)),  # the server behind takes one at a time
]


@pytest.mark.parametrize("sentence", LEADS)
def test_it_is_the_headline(sentence: str) -> None:
    why = lp.read(SPOKEN[LEADS[sentence]].make()).why()
    assert why.findings[0].sentence == sentence, why.headline


@pytest.mark.parametrize(("sentence", "make"), DECOYS)
def test_what_only_looks_like_it_is_not(sentence: str, make: Callable[[], bytes]) -> None:
    why = lp.read(make()).why()
    assert sentence not in {finding.sentence for finding in why.findings}, why.headline
