"""Is what limits a transfer named, from either end, and not what only looks like it?"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from makepcap import Talk, pcap
from spoken.transfers import clicks_beside_it
from transfer_simulator import Transfer

import latpcap as lp
from latpcap.findings import transfers

FAR = {"sender_program", "sender_buffer", "pacing", "http2_window"}
"""What cannot be told apart away from the sender."""


def row(made: Transfer, end: str) -> dict[str, Any]:
    rows = lp.read(made.captures()[end]).arrow("transfers").to_pylist()
    (found,) = rows
    return found


CASES: dict[str, tuple[Transfer, str]] = {
    "window": (Transfer(window=65_536), "receiver_window"),
    "window, far": (Transfer(window=131_072, rtt=110), "receiver_window"),
    "no scaling": (Transfer(scaled=False, rtt=45), "receiver_window"),
    "window of an upload": (Transfer(window=65_536, download=False), "receiver_window"),
    "slow reader": (Transfer(window=131_072, reader=9), "receiver_program"),
    "slow writer": (Transfer(writes=(64_000, 50.0)), "sender_program"),
    "slow writer, small": (Transfer(writes=(8_000, 12.0), bytes=800_000), "sender_program"),
    "line": (Transfer(line=10, ceiling=200), "line"),
    "line, upload": (Transfer(line=5, ceiling=120, download=False, rtt=20), "line"),
    "losses": (Transfer(lost=tuple(range(90, 1300, 60))), "congestion"),
    "start": (Transfer(bytes=60_000, rtt=90), "start"),
    "paced": (Transfer(pace=5, bytes=1_500_000), "pacing"),
    "buffer": (Transfer(buffer=40_000, bytes=1_500_000), "sender_buffer"),
}


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("case", CASES)
def test_the_limit_is_named_at_both_ends(case: str, end: str) -> None:
    made, limit = CASES[case]
    found = row(made, end)
    if end == "receiver" and limit in FAR:
        assert found["limited_by"] in FAR and found["grade"] == "suspected" and found["rival"]
    else:
        assert found["limited_by"] == limit, found
    assert found["at_sender"] == (end == "sender")
    assert found["bytes"] == made.bytes
    assert found["direction"] == ("to_client" if made.download else "to_server")
    assert found["rtt_idle_ms"] == pytest.approx(made.rtt, abs=1.1)


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_a_line_has_its_rate_and_its_queue(end: str) -> None:
    found = row(Transfer(line=10, ceiling=200, rtt=40), end)
    assert found["rate_mbit"] == pytest.approx(10, rel=0.05)
    assert found["burst_mbit"] == pytest.approx(10, rel=0.15)
    # 200 segments in flight take 232 ms at this rate
    assert found["rtt_load_ms"] == pytest.approx(232, rel=0.1)
    assert found["queue_ms"] == pytest.approx(192, rel=0.15)
    assert found["owner"] == "network"


@pytest.mark.parametrize("way", [0.01, 12.0])
def test_a_closed_window_is_closed_at_any_scale(way: float) -> None:
    """Begun in the middle: the windows' scale is not known, and that they are 0 is. At the receiver, at the sender."""
    talk = Talk(server_leg=12.0 - way, client_leg=way)
    for burst in range(60):
        at = 160.0 * burst + way
        for number in range(8):
            talk.server(at + 0.01 * number, bytes(1448))
        talk.client(at + 12.1, window=0)
        talk.client(at + 147.0, window=91)  # the program has read
    (found,) = lp.read(pcap(talk.tape)).arrow("transfers").to_pylist()
    assert (found["limited_by"], found["owner"]) == ("receiver_program", "client") and found["window_bytes"] is None


def test_a_window_says_its_size_and_its_scale() -> None:
    without = row(Transfer(scaled=False, rtt=45), "receiver")
    assert (without["window_bytes"], without["window_scaling"], without["wscale"]) == (65_535, False, None)
    assert (without["owner"], without["grade"]) == ("client", "proven")
    found = row(Transfer(window=65_536), "receiver")
    assert (found["window_bytes"], found["window_scaling"], found["wscale"]) == (65_536, True, 7)


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_reordering_is_no_line_and_no_loss(end: str) -> None:
    found = row(Transfer(late=tuple(range(40, 1300, 14)), bytes=3_000_000), end)
    assert found["limited_by"] in ("congestion", "none")
    assert found["grade"] in ("suspected", "unknown")
    assert found["cut_by"] in (None, "reordering")


@pytest.mark.parametrize("opening_rtt", [30, 82, 200])
def test_a_retransmission_is_known_by_its_identification(opening_rtt: float) -> None:
    """A packet that others overtook keeps its identification, and a retransmission gets a new one.

    By time alone the two look alike where the round trip of the handshake was longer than later ones.
    """
    lost = Transfer(lost=tuple(range(20, 1000, 37)), rtt=30, opening_rtt=opening_rtt, counted=True)
    found = row(lost, "receiver")
    assert (found["limited_by"], found["cut_by"]) == ("congestion", "losses")
    late = Transfer(late=tuple(range(40, 1300, 14)), bytes=3_000_000, opening_rtt=opening_rtt, counted=True)
    assert row(late, "receiver")["cut_by"] in (None, "reordering")


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize(
    "made",
    [Transfer(window=65_536, stamped=False), Transfer(line=10, ceiling=200, stamped=False)],
    ids=["window", "line"],
)
def test_without_time_stamps_nobody_else_is_accused(made: Transfer, end: str) -> None:
    found = row(made, end)
    right = "line" if made.line else "receiver_window"
    assert found["limited_by"] == right or found["grade"] in ("suspected", "unknown"), found


def test_a_window_that_is_full_behind_a_queue_is_the_lines() -> None:
    """More of a window would make the queue longer, and nothing faster."""
    found = row(Transfer(line=10, window=200_000, rtt=30), "receiver")
    assert found["limited_by"] == "line" and 0.3 < found["window_share"] < 0.5


def test_messages_are_no_transfer() -> None:
    captures = Transfer(bytes=25_000).captures()
    assert lp.read(captures["sender"]).arrow("transfers").num_rows == 0


@pytest.mark.parametrize("way", ["to_client", "to_server"])
@pytest.mark.parametrize(("took", "between"), [((100, 200, 100), True), ((100, 900, 100), False), ((400,), False)])
def test_pauses_between_messages_are_no_transfers(took: tuple[int, ...], between: bool, way: str) -> None:
    """Of 2,000 ms the messages are less than half, or more; one alone has its pauses inside. Ms."""
    numbers = range(len(took))
    begun = [(1 + 1_000 * n) * 1_000_000 for n in numbers] + [1]
    ended = [(1 + 1_000 * n + ms) * 1_000_000 for n, ms in zip(numbers, took, strict=True)] + [2_000_000_000]
    asks, answers = ([begun, begun], [begun, ended]) if way == "to_client" else ([begun, ended], [ended, ended])
    exchanges = pa.table(
        {
            "stream": [7] * len(took) + [8], "start": asks[0], "request_end": asks[1], "response_start": answers[0],
            "end": answers[1],
        }
    )  # fmt: skip
    row = {"stream": 7, "direction": way, "duration_ms": 2_000.0}
    assert transfers._between_messages([row], exchanges) == ({(7, way)} if between else set())


def test_requests_that_wait_in_a_transfers_queue_are_called_so() -> None:
    """Quick ones meanwhile, and slow ones without it, are not."""
    slow, quick = (lp.read(clicks_beside_it(slow=slow)).why() for slow in (True, False))
    assert (slow.to_dict()["slow"]["in_queue"], quick.to_dict()["slow"]["in_queue"]) == (8, 0)
    assert "8 of them while that transfer filled the queue" in str(slow)
    assert "filled the queue, where" not in str(quick)
