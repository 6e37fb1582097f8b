"""Do requests keep their own answers where the capture lacks packets? Each answer's length says to whom it belongs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from makepcap import pcap
from simulator import Host, Path, Script, record

import latpcap as lp

EXCHANGES, CONNECTIONS = 25, 2
NODELAY = Host(nodelay=True)


def script(pipelined: int, chunked: bool, parts: int) -> Script:
    """Request number i asks for /i and gets a body of 600 + i bytes."""

    def numbered(number: int, base: Script) -> Script:
        body = b"b" * (600 + number)
        framing = b"Content-Length: %d" % len(body)
        if chunked:
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:300], body[300:])) + b"0\r\n\r\n"
            framing = b"Transfer-Encoding: chunked"
        head = b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n"
        answer = ((0.0, head + body),) if parts == 1 else ((0.0, head), (0.05, body))
        request = ((0.0, b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number),)
        return replace(base, request=request, answer=answer, alter=None)

    once = ((0.0, b"x"),)
    return Script(once, once, EXCHANGES, client_think=(3, 9), pipelined=pipelined, alter=numbered)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("pipelined", [1, 3])
def test_lost_packets_shift_no_answers(pipelined: int, chunked: bool, parts: int) -> None:
    """4 % of the packets are not in the capture: what is called complete is, and most others are still judged."""
    complete = asked = 0
    for seed, way in enumerate((Path(1, 0.005), Path(0.005, 3), Path(2, 2))):
        whole = record(
            script(pipelined, chunked, parts), NODELAY, NODELAY, way, connections=CONNECTIONS, seed=seed
        ).tape
        rng = random.Random(seed)
        exchanges = lp.read(pcap([s for s in whole if rng.random() > 0.04])).arrow("exchanges").to_pylist()
        answers = [(e["target"], e["response_bytes"]) for e in exchanges if e["complete"] and e["status"]]
        expected = lp.read(pcap(whole)).arrow("exchanges").to_pylist()
        right = {e["target"]: e["response_bytes"] for e in expected if e["complete"]}
        assert len(right) == EXCHANGES
        assert [a for a in answers if a[0] in right and right[a[0]] != a[1]] == []
        complete, asked = complete + len(answers), asked + EXCHANGES * CONNECTIONS
    assert complete > 0.7 * asked
