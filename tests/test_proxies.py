"""Servers behind a proxy: found by whose host asks, and by requests inside requests; listed behind it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from conftest import ROOT

import latpcap as lp
from latpcap.user_waits import proxies
from latpcap.user_waits.servers import Server

NONE = np.zeros(0, np.int64)


def server(address: str, rows: list[int], *clients: str) -> Server:
    at = np.array(rows)
    return Server(address, 80, at, at * 1.0, 1.0, NONE, 0, at, 0, 0, 0, 0, list(clients))


def exchanges(*spans: tuple[int, int]) -> pa.Table:
    start, end = zip(*spans, strict=True)
    return pa.table({"start": pa.array(start, pa.int64()), "end": pa.array(end, pa.int64())})


FRONT = [(100 * n, 100 * n + 50) for n in range(10)]
ADDRESSES = [
    ("10.0.0.2", "10.0.0.2", True),
    ("10.0.0.2", "10.0.0.9", False),
    ("127.0.0.1", "10.0.0.9", True),  # a proxy that is asked on loopback has another address on the network
]


@pytest.mark.parametrize(("address", "client", "behind"), ADDRESSES)
def test_its_host_asks(address: str, client: str, behind: bool) -> None:
    front, back = server(address, list(range(10)), "10.0.0.1"), server("10.0.0.3", list(range(10, 20)), client)
    table = exchanges(*FRONT, *((start + 5, end - 5) for start, end in FRONT))
    assert proxies.fronts([front, back], table) == ({1: 0} if behind else {})


@pytest.mark.parametrize(("inside", "behind"), [(8, True), (7, False)])
def test_requests_lie_inside_requests(inside: int, behind: bool) -> None:
    front = server("10.0.0.2", list(range(10)), "10.0.0.1")
    back = server("10.0.0.3", list(range(10, 20)), "10.0.0.2")
    late = [
        (start + (5 if n < inside else 60), end - (5 if n < inside else -20)) for n, (start, end) in enumerate(FRONT)
    ]
    assert proxies.fronts([front, back], exchanges(*FRONT, *late)) == ({1: 0} if behind else {})


@pytest.mark.parametrize(
    ("behind", "order"),
    [
        ({}, [0, 1, 2, 3]),
        ({3: 0}, [0, 3, 1, 2]),
        ({0: 2}, [0, 1, 2, 3]),
        ({1: 2, 2: 3}, [0, 3, 2, 1]),
        ({1: 2, 2: 1}, [0, 3, 1, 2]),
    ],
)
def test_those_behind_follow_their_front(behind: dict[int, int], order: list[int]) -> None:
    assert proxies.in_order(4, behind) == order


def test_an_answer_names_the_server_behind() -> None:
    why = lp.read(ROOT / "tests/cases/decoy_proxy/capture.pcap.gz").why()
    assert [(row["server"], row["behind"]) for row in why.servers] == [
        ("127.0.0.1:6081", None),
        ("192.168.77.3:8001", "127.0.0.1:6081"),
    ]
    assert "  behind    192.168.77.3:8001: 15 of 16 requests slow" in str(why) and "further" not in str(why)
    top = lp.read(ROOT / "tests/cases/decoy_proxy/capture.pcap.gz").why(top=2)
    assert "  further   192.168.77.3:8001, behind 127.0.0.1:6081: " in str(top)
