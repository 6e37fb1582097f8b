"""Are TLS's handshakes and requests those that the client's own clock saw? Recordings of OpenSSL at both ends."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

import latpcap as lp
from latpcap.vocabulary import STALL

FOLDER = Path(__file__).resolve().parent / "recorded" / "tls"
SPLIT = 3  # of record.py: head and body apart, and Nagle's algorithm on
every_version = pytest.mark.parametrize("name", ["tls12", "tls13"])


def seen(name: str) -> tuple[lp.Capture, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """The capture, and its exchanges beside what the client wrote down."""
    capture = lp.read(FOLDER / f"{name}.pcap")
    log = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rows = [e for e in capture.arrow("exchanges").to_pylist() if e["protocol"] == "tls"]
    rows.sort(key=lambda e: e["start"])
    assert len(rows) == len(log)
    return capture, list(zip(rows, log, strict=True))


@every_version
def test_messages_are_what_the_programs_said(name: str) -> None:
    """Handshakes are exchanges of their own; tickets, alerts and close-notify are none, and of no answer's bytes."""
    for exchange, told in seen(name)[1]:
        assert exchange["complete"], exchange
        assert (exchange["method"] == "handshake") == told.get("handshake", False)
        if told.get("handshake"):
            assert exchange["target"] == "tls.example"
        else:  # the head of about 40 bytes, and up to 29 bytes around each of two records
            assert told["bytes"] + 50 < exchange["response_bytes"] < told["bytes"] + 110


@every_version
def test_latencies_are_the_clients(name: str) -> None:
    """The rest is the client's own work: encryption, and being woken."""
    missed = [told["clock_ms"] - exchange["client_latency_ms"] for exchange, told in seen(name)[1]]
    assert min(missed) >= 0 and statistics.median(missed) < 0.5 and max(missed) < 5


@every_version
def test_causes_are_those_that_were_made(name: str) -> None:
    capture, rows = seen(name)
    for exchange, told in rows:
        if told.get("think_ms", 0) >= 8:
            assert exchange["top_cause"] == "server_think" and exchange["server_think_ms"] >= told["think_ms"]
        elif told.get("way") == SPLIT:
            assert exchange["top_cause"] == "delayed_ack" and exchange["delayed_ack_ms"] > 35
    first = next(r for r in capture.arrow("findings").to_pylist() if r["cause"] == STALL)
    assert (first["grade"], first["owner"], first["held_by"], first["exchanges"]) == ("proven", "server", "client", 12)
    assert [r["server_port"] % 100 for r in capture.arrow("findings").to_pylist() if r["cause"] == STALL] in (
        [40],
        [41],
    )


@every_version
def test_a_server_with_the_option_on_some_sockets_only_is_judged_by_connection(name: str) -> None:
    """The same connections with one server port: evidence for Nagle's algorithm on one, and against it on others."""
    data = bytearray((FOLDER / f"{name}.pcap").read_bytes())
    at, port = 24, {"tls12": 4430, "tls13": 4431}[name]
    while at < len(data):
        tcp = at + 16 + 14 + (data[at + 30] & 15) * 4
        for place in (tcp, tcp + 2):
            if data[at + 28 : at + 30] == b"\x08\x00" and data[place : place + 2] == (port + 10).to_bytes(2, "big"):
                data[place : place + 2] = port.to_bytes(2, "big")
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    first = lp.read(bytes(data)).arrow("findings").to_pylist()[0]
    assert first["server_port"] == port and first["share"] > 0.7
    assert (first["cause"], first["streams"], first["nodelay"], first["nodelay_streams_off"]) == (STALL, 1, "mixed", 1)
