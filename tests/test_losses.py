"""How many segments were lost, counted by hand for each place of a capture and each side."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from makepcap import Talk, answer, get, pcap, sack

import latpcap as lp
from latpcap.findings import quality
from latpcap.limits import LIMITS

COUNTS = ("retransmissions", "out_of_order", "spurious_retransmissions", "dsacks", "packets")


def table(position: str | None, *, waited_ms: float = 0.0, **told: int | None) -> tuple[pa.Table, pa.Table]:
    """One stream with these counts, and its one exchange."""
    row: dict[str, Any] = {f"{side}_{name}": 0 for side in ("client", "server") for name in COUNTS}
    row |= {"stream": 7, "client_unseen_frames": None, "server_unseen_frames": None} | told
    columns = {name: pa.array([value], pa.uint64()) for name, value in row.items()}
    columns["position"] = pa.array([position], pa.string()).dictionary_encode()
    spent = {f"{cause}_ms": pa.array([waited_ms]) for cause in quality.LOSS}
    return pa.table(columns), pa.table({"stream": pa.array([7], pa.uint64()), **spent})


@pytest.mark.parametrize("side", ["client", "server"])
def test_what_comes_late_was_lost_only_where_its_sender_is(side: str) -> None:
    peer = quality.SIDES[side]
    told = {f"{side}_retransmissions": 2, f"{side}_out_of_order": 3, f"{peer}_dsacks": 1}
    assert quality.lost(*table(f"at_{side}", **told)) == 2 + 3 - 1
    for position in (f"at_{peer}", "between", None):
        assert quality.lost(*table(position, **told)) == 2 - 1, position
    needless = {f"{side}_retransmissions": 2, f"{peer}_dsacks": 3}
    assert quality.lost(*table(f"at_{side}", **needless)) == 0


@pytest.mark.parametrize("side", ["client", "server"])
def test_numbers_that_all_came_by_were_not_lost(side: str) -> None:
    peer = quality.SIDES[side]
    told = {f"{side}_retransmissions": 5, f"{side}_packets": 100}
    assert quality.lost(*table(f"at_{peer}", **told, **{f"{side}_unseen_frames": 0})) == 0
    for position, unseen in ((f"at_{peer}", None), (f"at_{side}", 0), ("between", 0), (None, 0)):
        assert quality.lost(*table(position, **told, **{f"{side}_unseen_frames": unseen})) == 5, position


def test_numbers_that_never_came_by_were_lost_where_something_waited_for_them() -> None:
    most = LIMITS["unseen_most_share"]
    unseen = 3
    least = round(unseen / most) - unseen
    told = {"client_unseen_frames": unseen, "client_retransmissions": 1}
    assert quality.lost(*table("between", waited_ms=1.0, client_packets=least, **told)) == unseen
    assert quality.lost(*table("between", waited_ms=1.0, client_packets=least - 1, **told)) == 1
    assert quality.lost(*table("between", waited_ms=0.0, client_packets=least, **told)) == 1


@pytest.mark.parametrize("needless", [True, False])
def test_an_answer_that_came_the_first_time_ended_then(needless: bool) -> None:
    """The client held its ACK longer than the server's timer: a DSACK behind it says that the repeat was not needed."""
    talk = Talk(server_leg=0.01, client_leg=0.1)
    talk.open()
    talk.client(20.0, get("/a"))
    said = b"".join(answer(40))
    talk.server(21.7, said)
    talk.server(238.0, said, seq=1)
    end = 1 + len(said)
    talk.client(238.12)
    if needless:
        talk.client(238.2, options=[sack((5001, 5000 + end))])
    cap = lp.read(pcap(talk.tape))
    [latency] = cap.exchanges["latency_ms"]
    assert latency == pytest.approx(1.7 if needless else 218.0, abs=0.01)
    [frame] = cap.exchanges["response_last_frame"]
    assert frame == (5 if needless else 6)


@pytest.mark.parametrize("early", [True, False])
def test_who_answers_a_fin_says_nothing_of_the_path(early: bool) -> None:
    """A box on the way may close for the server; the handshake has shown how far it is."""
    talk = Talk(server_leg=12.5, client_leg=0.01)
    talk.open()
    talk.client(30.0, get("/a"))
    talk.server(80.0, b"".join(answer(40)))
    talk.client(80.1, flags="FA")
    talk.server(80.15 if early else 92.6, flags="FA")
    talk.client(93.0)
    cap = lp.read(pcap(talk.tape))
    [network] = cap.exchanges["network_ms"]
    assert network == pytest.approx(12.5, abs=0.1)
