"""Is what `to_har` gives an HTTP Archive (HAR 1.2), and are its times those of the tables?"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from commands import run
from conftest import ROOT

import latpcap as lp
from latpcap.errors import OutputError

CASES = ROOT / "tests" / "cases"
SAMPLE = ROOT / "sample_pcaps" / "nginx-latency.pcap"
# what the specification wants of each object: name, type, and whether it may be left out
TEXT, WHOLE, NUMBER = str, int, (int, float)
ENTRY = {"startedDateTime": TEXT, "time": NUMBER, "request": dict, "response": dict, "cache": dict, "timings": dict}
REQUEST = {"method": TEXT, "url": TEXT, "httpVersion": TEXT, "cookies": list, "headers": list, "queryString": list}
RESPONSE = {"status": WHOLE, "statusText": TEXT, "httpVersion": TEXT, "cookies": list, "headers": list}
RESPONSE |= {"content": dict, "redirectURL": TEXT}
SIZES = {"headersSize": WHOLE, "bodySize": WHOLE}
TIMINGS = ("blocked", "dns", "connect", "ssl", "send", "wait", "receive")


def has(what: dict[str, Any], fields: dict[str, Any]) -> None:
    for name, kind in fields.items():
        assert isinstance(what[name], kind) and not isinstance(what[name], bool), (name, what[name])


def sound(log: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries, where the archive is what HAR 1.2 says."""
    assert json.loads(json.dumps(log, allow_nan=False)) == log
    inner = log["log"]
    has(inner, {"version": TEXT, "creator": dict, "entries": list})
    has(inner["creator"], {"name": TEXT, "version": TEXT})
    assert inner["version"] == "1.2"
    begins = []
    for entry in inner["entries"]:
        has(entry, ENTRY)
        has(entry["request"], REQUEST | SIZES)
        has(entry["response"], RESPONSE | SIZES)
        has(entry["response"]["content"], {"size": WHOLE, "mimeType": TEXT})
        for pair in (*entry["request"]["headers"], *entry["request"]["queryString"]):
            has(pair, {"name": TEXT, "value": TEXT})
        times = entry["timings"]
        assert tuple(times) == TIMINGS and all(ms >= 0 or ms == -1 for ms in times.values()), times
        known = [ms for name, ms in times.items() if ms >= 0 and name != "ssl"]
        assert entry["time"] == pytest.approx(sum(known), abs=1e-6)
        assert times["ssl"] <= max(times["connect"], -1)
        begun = datetime.fromisoformat(entry["startedDateTime"])
        assert begun.tzinfo is not None
        begins.append(begun)
    assert begins == sorted(begins)
    return list(inner["entries"])


def test_requests_have_the_times_of_their_rows() -> None:
    capture = lp.read(SAMPLE)
    entries = sound(capture.to_har())
    rows = {row["exchange"]: row for row in capture.arrow("exchanges").to_pylist()}
    assert len(entries) == len(rows) == 960
    for entry in entries:
        row, times = rows[entry["_exchange"]], entry["timings"]
        assert entry["request"]["url"] == f"http://{row['host']}{row['target']}"
        if row["complete"]:
            spent = times["send"] + times["wait"] + times["receive"]
            assert spent == pytest.approx(row["latency_ms"], abs=1e-6) and entry["response"]["status"] == row["status"]
        else:
            assert times["send"] == times["wait"] == times["receive"] == -1


def test_what_came_before_the_first_request_is_the_first_entrys() -> None:
    capture = lp.read(CASES / "dns_slow" / "capture.pcap")
    first, second = sound(capture.to_har())
    assert first["timings"]["dns"] == pytest.approx(5012) and second["timings"]["dns"] == -1
    assert first["timings"]["connect"] == pytest.approx(2.05) and first["timings"]["ssl"] == -1
    begun = datetime.fromisoformat(first["startedDateTime"]).timestamp() * 1e9
    assert abs(begun - capture.first_ns) < 0.3e6  # it connects 0.2 ms after the answer


@pytest.mark.parametrize(("name", "url"), [("tls13_keys", "https://tls.example"), ("http2_streams", "http://lab/")])
def test_decrypted_and_multiplexed_requests(name: str, url: str) -> None:
    folder = CASES / name
    keys = next(iter(folder.glob("*keys*.log")), None) or next(iter(folder.glob("*.log")), None)
    entries = sound(lp.read(next(folder.glob("capture.*")), keylog=keys).to_har())
    assert entries and all(entry["request"]["url"].startswith(url) for entry in entries)
    assert any(entry["timings"]["ssl"] > 0 for entry in entries) == (name == "tls13_keys")


def test_the_command_writes_it_whole_or_not_at_all(tmp_path: Path) -> None:
    to = tmp_path / "x.har"
    to.write_text("old")
    with pytest.raises(OutputError):
        lp.read(SAMPLE).to_har(tmp_path / "none" / "x.har")
    assert run("har", SAMPLE, "--stream", 24, "-o", to)[0] == 0
    assert len(sound(json.loads(to.read_text()))) == 24 and list(tmp_path.iterdir()) == [to]
    assert json.loads(run("har", SAMPLE, "--stream", 24, "-o", "-")[1]) == json.loads(to.read_text())
