"""Bytes, time, rate, repeats and round trips of transfers, where tcptrace and tshark compute the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from transfer_simulator import Transfer

import latpcap as lp

MADE = {
    "window": Transfer(window=65_536, bytes=1_000_000),
    "losses": Transfer(lost=tuple(range(90, 1300, 60)), bytes=1_000_000),
    "line": Transfer(line=10, ceiling=200, bytes=1_000_000),
    "upload": Transfer(download=False, rtt=80, bytes=600_000),
    "writer": Transfer(writes=(64_000, 50.0), bytes=1_000_000),
}


def taken(name: str, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A capture at the sender, and its row of `transfers`."""
    path = tmp_path / f"{name}.pcap"
    path.write_bytes(MADE[name].captures()["sender"])
    (row,) = lp.read(path).arrow("transfers").to_pylist()
    return path, row


def seconds(row: dict[str, Any]) -> float:
    return float((row["end"] - row["start"]).value) / 1e9


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="needs tcptrace")
@pytest.mark.parametrize("name", MADE)
def test_tcptrace_counts_the_same(name: str, tmp_path: Path) -> None:
    path, row = taken(name, tmp_path)
    text = subprocess.run(["tcptrace", "-l", "-r", path], capture_output=True, text=True, check=True).stdout

    def figure(label: str) -> float:
        """The sender's: the left column is the client's."""
        found = re.findall(rf"{label}: +([\d.]+)", text)
        return float(found[1 if MADE[name].download else 0])

    assert row["bytes"] == figure("unique bytes sent")
    assert row["retransmissions"] == figure("rexmt data pkts")
    assert seconds(row) == pytest.approx(figure("data xmit time"), abs=0.0006)
    assert row["rtt_idle_ms"] == pytest.approx(figure("RTT min"), abs=0.06)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("name", MADE)
def test_tshark_counts_the_same(name: str, tmp_path: Path) -> None:
    path, row = taken(name, tmp_path)
    fields = (
        "frame.time_epoch",
        "tcp.srcport",
        "tcp.len",
        "tcp.seq",
        "tcp.analysis.initial_rtt",
        "tcp.analysis.ack_rtt",
    )
    command = ["tshark", "-r", str(path), "-T", "fields", *(word for field in fields for word in ("-e", field))]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    sender = str(row["server_port"] if MADE[name].download else row["client_port"])
    data = {int(one[3]): (float(one[0]), int(one[2])) for one in reversed(rows) if one[1] == sender and int(one[2])}
    assert row["bytes"] == sum(size for _, size in data.values())  # of each number the first
    times = [float(one[0]) for one in rows if one[1] == sender and int(one[2])]
    assert seconds(row) == pytest.approx(max(times) - min(times), abs=1e-5)
    assert row["rtt_idle_ms"] == pytest.approx(float(rows[-1][4]) * 1e3, abs=0.01)
    trips = [float(one[5]) for one in rows if one[1] != sender and one[5]]
    assert row["rtt_idle_ms"] == pytest.approx(min(trips) * 1e3, abs=0.06)
    assert row["rate_mbit"] == pytest.approx(row["bytes"] * 8e-3 / row["duration_ms"])
