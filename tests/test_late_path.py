"""What is judged before the path is known well: do exchanges wait for the best time that comes later?"""

from __future__ import annotations

import pytest
from makepcap import MSS, Talk, answer, get, pcap

import latpcap as lp

MANY = 300
"""More than the core keeps of exchanges that wait for the path alone."""


def talk_of(first_ms: float, best_ms: float) -> Talk:
    """Begins in the middle of a connection: no handshake measures the path. `MANY` pipelined requests in a few packets
    are answered after `first_ms`, so that there are few round trips; then one more, after `best_ms`.
    """
    talk = Talk(server_leg=best_ms, client_leg=0.01)
    reply, at = b"".join(answer(10)), 0.0
    for wanted, took in ((MANY, first_ms), (1, best_ms)):
        asked, said = get() * wanted, reply * wanted
        for i in range(0, len(asked), MSS):
            talk.client(at, asked[i : i + MSS])
        for i in range(0, len(said), MSS):
            at += took if not i else 0.001
            talk.server(at, said[i : i + MSS])
        talk.client(at + 0.01)
        at += 500
    return talk


@pytest.mark.parametrize("best", [2.0, 29.0])
def test_exchanges_wait_until_the_path_is_firm(best: float) -> None:
    capture = lp.read(pcap(talk_of(30.0, best).tape, nanos=True))
    rows = [e for e in capture.arrow("exchanges").to_pylist() if e["protocol"] == "http"]
    assert len(rows) == MANY + 1
    first = rows[0]
    assert first["network_ms"] == pytest.approx(best) and first["server_think_ms"] == pytest.approx(30.0 - best)
    assert first["top_cause"] == ("server_think" if best < 15 else "network")
    last = rows[-1]
    assert last["network_ms"] == pytest.approx(best) and not last["server_think_ms"]
