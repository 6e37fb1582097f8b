"""Transfers recorded here and now between two namespaces: are limit, rate and round trips the sending kernel's?

The whole matrix is `tests/recorders/transfers.py FOLDER`, then `--score`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recorders import transfers
from recorders.transfers import Plan

import latpcap as lp

PLANS = {
    "window": Plan("receiver_window", 20, 50, bytes=500_000, receive_bytes=40_000),
    "line": Plan("line", 20, 10, 3, 900_000),
    "upload": Plan("line", 10, 20, 4, 1_500_000, upload=True),
    "writer": Plan("sender_program", 10, 100, writer=(20_000, 25.0), bytes=500_000),
    "marked": Plan("congestion", 10, 20, 2, 600_000, mark_bytes=6_000, also=("line",)),
}


KEPT = Path(__file__).parent / "recorded"


@pytest.mark.parametrize(
    ("name", "end", "limit", "grades"),
    [
        ("slow_reader", "client", "receiver_program", {"probable", "proven"}),
        ("slow_reader", "server", "receiver_program", {"probable", "proven"}),
        ("reordered", "client", "receiver_window", {"probable", "suspected"}),
        ("reordered", "server", "receiver_window", {"probable", "suspected"}),
    ],
)
def test_the_edge_of_the_window(name: str, end: str, limit: str, grades: set[str]) -> None:
    """`slow_reader`: 60 kB each 60 ms into a buffer that the kernel sizes, which never closes. `reordered`: a buffer of
    150 kB, 3 segments in 100 late; ACKs jump behind each, and the edge stays, though the program reads."""
    (row,) = lp.read(KEPT / f"{name}-{end}.pcap.gz").arrow("transfers").to_pylist()
    assert row["limited_by"] == limit
    assert row["grade"] in grades
    assert row["rate_mbit"] == pytest.approx(7.92 if name == "slow_reader" else 21.2, rel=0.02)


@pytest.mark.parametrize(
    ("name", "end", "keys", "window", "of"),
    [
        ("stream", "client", None, 65_535, "stream"),
        ("stream", "server", None, 65_535, "stream"),
        ("connection", "client", None, 65_535, "connection"),
        ("connection", "server", None, 65_535, "connection"),
        ("sealed", "server", "http2_sealed.keys", 32_768, "stream"),
    ],
)
def test_windows_of_http2(name: str, end: str, keys: str | None, window: int, of: str) -> None:
    """nginx, and nghttp with one window of 64 kB and one of 4 MB (`recorders/http2.py`)."""
    capture = lp.read(KEPT / f"http2_{name}-{end}.pcap.gz", keylog=keys and str(KEPT / keys))
    (row,) = capture.arrow("transfers").to_pylist()
    assert (row["limited_by"], row["owner"]) == ("http2_window", "client")
    assert (row["http2_window_bytes"], row["http2_window_of"]) == (window, of)


def test_without_keys_http2_is_no_more_than_a_rival() -> None:
    (row,) = lp.read(KEPT / "http2_sealed-server.pcap.gz").arrow("transfers").to_pylist()
    assert (row["grade"], row["rival"], row["http2_window_bytes"]) == ("suspected", "http2_window", None)


def test_a_program_that_is_slow_beside_a_download_stays_the_reason() -> None:
    """The download is held back by its window (`beside_no_queue`), or a queue is the lesser part of the wait."""
    for name, kept in (("beside_no_queue", 0), ("beside_program", 1)):
        capture = lp.read(KEPT / f"{name}-client.pcap.gz")
        queues = [one for one in capture.arrow("findings").to_pylist() if one["cause"] == "queueing"]
        assert len([one for one in queues if one["kind"] == "wait" and one["grade"] == "suspected"]) == kept
        if not kept:
            assert "the server's program" in str(capture.why(server="10.78.0.2:8081"))


@pytest.fixture(scope="module")
def line() -> Path:
    if not os.environ.get("LATPCAP_RECORD"):
        pytest.skip("LATPCAP_RECORD=1 records here; a machine that is busy with other things makes other lines")
    if lacking := transfers.missing():
        pytest.skip(lacking)
    return transfers.built()


@pytest.mark.parametrize("name", PLANS)
def test_the_limit_is_the_one_that_was_made(line: Path, name: str, tmp_path: Path) -> None:
    try:
        truth = transfers.record(line, PLANS[name], tmp_path / name)
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        pytest.skip(f"no namespaces or devices here: {problem}")
    kernel: dict[str, Any] = truth["kernel"]
    for end in ("client", "server"):
        (row,) = lp.read(tmp_path / name / f"{end}.pcap").arrow("transfers").to_pylist()
        at_sender = truth["sender"] == end
        assert transfers.right(truth, row, at_sender), (end, row)
        assert transfers.near(row["rate_mbit"], truth["rate_mbit"], 0.1, 0), (end, row)  # short, on a busy machine
        if at_sender:
            assert transfers.near(row["rtt_idle_ms"], kernel["rtt_idle_ms"], 0.1, 1), row


def test_the_recorder_says_what_it_needs() -> None:
    ran = subprocess.run(
        [sys.executable, Path(transfers.__file__), "--help"], capture_output=True, text=True, check=True
    )
    assert "needs root" in ran.stdout.lower().replace("\n", " ")
