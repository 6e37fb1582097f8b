"""Does every situation of tests/cases give the exchanges and causes that its script was written to have?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import make_cases
import pytest

import latpcap as lp
from latpcap.tables import requests

FOLDERS = sorted(p for p in make_cases.CASES.iterdir() if (p / "capture.pcap").exists())
SCRIPTS = {script.__name__: script for script in make_cases.SCRIPTS}
every_case = pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)


def wanted(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return data


def merged(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Neighbours that give one name and owner are one row."""
    out: list[list[Any]] = []
    for r in rows:
        name = [r["cause"], r["parent"], r["owner"]]
        if out and out[-1][:3] == name:
            out[-1][3] += r["duration_ms"]
            out[-1][5] = r["to_frame"]
        else:
            out.append([*name, r["duration_ms"], r["from_frame"], r["to_frame"]])
    return [[*r[:3], round(r[3], 6), *r[4:]] for r in out]


def found(capture: lp.Capture) -> list[dict[str, Any]]:
    exchanges = requests(capture.arrow("exchanges")).to_pylist()
    causes = capture.arrow("causes").to_pylist()
    for e in exchanges:
        e["causes"] = merged([c for c in causes if c["exchange"] == e["exchange"]])
        e["latency_ms"] = None if e["latency_ms"] is None else round(e["latency_ms"], 6)
    return exchanges


def test_folders_are_those_of_the_scripts() -> None:
    assert sorted(SCRIPTS) == [folder.name for folder in FOLDERS]


@every_case
def test_folder_is_what_its_script_writes(folder: Path) -> None:
    script = SCRIPTS[folder.name]
    case = script()
    assert (folder / "capture.pcap").read_bytes() == case.capture
    assert (folder / "expected.json").read_text(encoding="utf-8") == make_cases.expected(case)
    assert (folder / "README.md").read_text(encoding="utf-8") == make_cases.readme(script)


@every_case
def test_exchanges(folder: Path) -> None:
    keys = ("stream", "index", "status", "complete", "cut_by", "latency_ms", "top_cause")
    got = found(lp.read(folder / "capture.pcap"))
    assert [{k: e[k] for k in keys} for e in got] == [{k: e[k] for k in keys} for e in wanted(folder)["exchanges"]]


@every_case
def test_causes_owners_and_durations(folder: Path) -> None:
    got = found(lp.read(folder / "capture.pcap"))
    assert [[r[:4] for r in e["causes"]] for e in got] == [
        [r[:4] for r in e["causes"]] for e in wanted(folder)["exchanges"]
    ]


@every_case
def test_frames_of_the_causes(folder: Path) -> None:
    """Each row's frames bound it: they stand at its exchange's wait, not before it."""
    got = found(lp.read(folder / "capture.pcap"))
    assert [[[r[0], *r[4:]] for r in e["causes"]] for e in got] == [
        [[r[0], *r[4:]] for r in e["causes"]] for e in wanted(folder)["exchanges"]
    ]


@every_case
def test_proven_or_probable(folder: Path) -> None:
    causes = lp.read(folder / "capture.pcap").arrow("causes").to_pylist()
    held = {c["confidence"] >= 0.9 for c in causes if c["cause"] == "delayed_ack"}
    proven = wanted(folder)["proven"]
    assert held == (set() if proven is None else {proven})
    assert all(0 <= c["confidence"] <= 1 for c in causes)


@every_case
def test_no_issue_is_left_over(folder: Path) -> None:
    issues = lp.read(folder / "capture.pcap").arrow("issues").to_pylist()
    assert [i for i in issues if i["kind"] in ("refused", "damaged")] == []
