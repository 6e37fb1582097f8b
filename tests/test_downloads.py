"""Are the recordings of docs/slow-downloads.md what was made and measured, and drawn as the page has it?"""

from __future__ import annotations

import json
from typing import Any

import golden
import pytest
from downloads import CAPTURES, FOLDER, PANELS, TRUTH

import latpcap as lp

MADE: dict[str, Any] = json.loads(TRUTH.read_text())


@pytest.mark.parametrize("name", CAPTURES)
def test_capture_answer_and_picture(name: str) -> None:
    capture, truth = lp.read(FOLDER / f"{name}.pcap.gz"), MADE[name]
    row = max(capture.arrow("transfers").to_pylist(), key=lambda one: one["bytes"])
    assert row["limited_by"] == truth["limited_by"] and row["grade"] in ("probable", "proven")
    assert row["rate_mbit"] == pytest.approx(truth["rate_mbit"], rel=0.01)
    assert row["rtt_idle_ms"] == pytest.approx(truth["kernel"]["rtt_idle_ms"], rel=0.1)
    if row["limited_by"] == "line":
        assert row["queue_ms"] == pytest.approx(truth["kernel"]["queue_ms"], rel=0.1 if row["at_sender"] else 0.2)
    picture = capture.stream(row["stream"]).time_sequence(panels=PANELS[truth["end"]])
    golden.assert_legible(picture.plot().figure_)
    golden.check(f"download_{name}", picture._render(".png", 100))


def test_what_a_queue_cost_requests_beside_it() -> None:
    """The client's program measured 34 ms without the download and 81 ms with it."""
    truth = MADE["beside"]
    found = lp.read(FOLDER / "beside.pcap.gz").findings
    (cost,) = found[found.cause == "queueing"][found.kind == "wait"].to_dict("records")
    assert cost["median_ms"] == pytest.approx(truth["beside_load_ms"] - truth["beside_idle_ms"], rel=0.1)
    assert (cost["grade"], cost["owner"], cost["server_port"]) == ("probable", "network", 8081)
    assert truth["beside"] - 3 <= cost["exchanges"] <= truth["beside"]
