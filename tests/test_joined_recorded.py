"""Captures of real kernels, joined: three points in a row, and HAProxy seen from both its sides and from beside it.

Three clients of eight requests each, in namespaces of one host, so that the true offset of all clocks is 0. `chain`: at
the client, at a router's client side, at the server. `proxied`: at the client, on all devices of HAProxy's host, at the
server behind it, where one connection of the run before still closes.
"""

from __future__ import annotations

from pathlib import Path

import golden
import pytest

import latpcap as lp
from latpcap.joined.chain import Chain

KEPT = Path(__file__).parent / "recorded"
REQUESTS = 24


def kept(*names: str) -> list[Path]:
    return [KEPT / f"{name}.pcap.gz" for name in names]


def test_three_points() -> None:
    chain = lp.join(*kept("chain-a", "chain-b", "chain-c"))
    assert isinstance(chain, Chain)
    rows = chain.exchanges
    assert len(rows) == REQUESTS
    ways = ["a_b_out_ms", "b_c_out_ms", "far_ms", "b_c_back_ms", "a_b_back_ms"]
    assert (abs(rows[ways].sum(axis=1) - rows.latency_ms) < 2e-6).all()
    alone = lp.read(KEPT / "chain-c.pcap.gz").exchanges.set_index("exchange").latency_ms
    assert list(rows.far_ms) == pytest.approx(list(alone[rows.c_exchange]), abs=1e-3)
    for leg in chain.legs:
        packets = leg.packets
        assert set(packets.fate) == {"passed"}
        assert abs(leg.clock.offset_ns) / 1e6 <= packets.clock_error_ms.max()
    picture = chain.flow_graph(exchange="worst")
    golden.assert_legible(picture.plot().figure_)
    assert {one.leg for one in picture.arrows} == {0, 1}


def test_a_proxy_from_both_sides() -> None:
    pair = lp.join(*kept("proxied-client", "proxied-server"))
    rows = pair.exchanges
    assert pair.proxied
    assert len(rows) == REQUESTS
    assert abs(pair.clock.offset_ns) / 1e6 <= rows.clock_error_ms.max()
    assert (rows[["out_ms", "back_ms"]].min(axis=1) >= -rows.clock_error_ms - 0.002).all()


def test_a_proxy_from_beside_it() -> None:
    """Between its own request and answer lies what the server's capture has, to 0.1 ms."""
    rows = lp.join(*kept("proxied-proxy")).exchanges
    assert len(rows) == REQUESTS
    alone = lp.read(KEPT / "proxied-server.pcap.gz").exchanges.set_index("target").latency_ms
    assert list(rows.far_ms) == pytest.approx(list(alone[rows.target]), abs=0.1)
    assert (rows[["out_ms", "back_ms"]] > 0).all(axis=None)
