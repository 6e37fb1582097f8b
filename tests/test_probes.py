"""Does `probes` say what ping, hping3 and traceroute said? Their own output beside the capture, and crafted ICMP."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import dpkt
import pytest
from rawip import file, icmp, packet

import latpcap as lp

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"
CAPTURE = lp.read(SAMPLES / "probes.pcap")
ROWS = CAPTURE.arrow("probes").to_pylist()


def said(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def test_pings_are_those_that_ping_counted() -> None:
    pings = [r for r in ROWS if r["kind"] == "icmp_echo"]
    lines = re.findall(r"from (\S+): icmp_seq=(\d+) ttl=(\d+) time=([\d.]+) ms", said("ping.txt"))
    assert len(lines) == 5
    assert [(r["answer_from"], r["seq"], r["ttl"], r["answer"]) for r in pings] == [
        (address, int(seq), int(ttl), "echo_reply") for address, seq, ttl, _ in lines
    ]
    for row, (*_, ms) in zip(pings, lines, strict=True):
        # ping's clock has the way to the wire and back in it, some 0.03 ms, and is rounded
        assert 0 < row["rtt_ms"] <= float(ms) + 0.0005
        assert row["rtt_ms"] == (row["answered"] - row["sent"]).value / 1e6
        assert row["stream"] is row["sport"] is row["dport"] is None


def test_syn_probes_are_those_of_the_tools() -> None:
    syns = [r for r in ROWS if r["kind"] == "tcp_syn"]
    closed, rest = [r for r in syns if r["dport"] == 81], [r for r in syns if r["dport"] == 80]
    for rows, name, word in ((closed, "hping3-81.txt", "rst"), (rest[:3], "hping3.txt", "syn_ack")):
        printed = [float(ms) for ms in re.findall(r"rtt=([\d.]+) ms", said(name))]
        assert [r["answer"] for r in rows] == [word] * len(printed)
        assert all(0 < r["rtt_ms"] <= ms + 0.05 for r, ms in zip(rows, printed, strict=True))
    traced = rest[3:]
    assert len(traced) == 16 and {r["answer"] for r in traced} == {"syn_ack"}
    assert {r["answer_from"] for r in traced} == set(re.findall(r"^ 1  (\S+)", said("traceroute.txt"), re.M))
    assert [r["sent_frame"] for r in syns[-16:]] == list(range(28, 75, 3))
    assert [r["answer_frame"] for r in syns[-16:]] == list(range(29, 76, 3))
    assert [r["probe"] for r in ROWS] == list(range(5 + 3 + 3 + 16))
    assert all(r["repeats"] == 0 and r["id"] is None for r in syns)
    assert [r["ttl"] for r in syns] == [64] * 6 + [1 + n // 3 for n in range(16)]  # three a hop


def test_a_stream_has_its_own_and_data_makes_it_none() -> None:
    assert CAPTURE.stream(4).probes["sport"].tolist() == [2941]
    latency = lp.read(SAMPLES / "nginx-latency.pcap")
    dataless = [r["stream"] for r in latency.arrow("streams").to_pylist() if not r["client_payload_bytes"]]
    assert set(latency.arrow("probes")["stream"].to_pylist()) <= set(dataless)


def test_routers_answer_traceroutes() -> None:
    echo = [packet(1, 9, 1, icmp(8, struct.pack(">HH", 7, n)), ttl=n) for n in (1, 2, 3)]
    syn = packet(1, 9, 6, bytes(dpkt.tcp.TCP(sport=4000, dport=80, seq=77, flags=dpkt.tcp.TH_SYN)))
    nothing = bytes(4)
    found = lp.read(
        file(
            *echo,
            syn,
            packet(2, 1, 1, icmp(11, nothing, echo[0][:28])),
            packet(3, 1, 1, icmp(3, nothing, echo[1][:28])),
            packet(4, 1, 1, icmp(11, nothing, syn[:28])),
            syn,
        )
    )
    rows = [
        (r["kind"], r["ttl"], r["answer"], r["answer_from"], r["answer_frame"], r["rtt_ms"], r["repeats"])
        for r in found.arrow("probes").to_pylist()
    ]
    assert rows == [
        ("icmp_echo", 1, "time_exceeded", "10.0.0.2", 5, pytest.approx(4.0), 0),
        ("icmp_echo", 2, "unreachable", "10.0.0.3", 6, pytest.approx(4.0), 0),
        ("icmp_echo", 3, None, None, None, None, 0),
        ("tcp_syn", 1, "time_exceeded", "10.0.0.4", 7, pytest.approx(3.0), 1),
    ]


def test_every_column_is_described() -> None:
    part = (ROOT / "docs" / "events-and-streams.md").read_text(encoding="utf-8").split("## `probes`")[1]
    described = {name for line in part.splitlines() for name in re.findall(r"`(\w+)`", line.split(" | ")[0])}
    assert set(CAPTURE.arrow("probes").column_names) <= described
