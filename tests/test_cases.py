"""Does every situation of tests/cases give the rows that its expected.json names? tests/cases/README.md says how.

Each capture is read as it is, in blocks of odd sizes (the same tables), and cut off at three places (no exception,
and the rows that a shorter file can have).
"""

from __future__ import annotations

import gzip
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import make_cases
import pytest
from case_scripts import SCRIPTS
from expectations import NAMES, Expectation, ExpectationError, Tables, failures, load

import latpcap as lp

CASES = make_cases.CASES
FOLDERS = sorted(path for path in CASES.iterdir() if path.is_dir())
TABLES = ("events", "streams", "exchanges", "causes", "evidence", "probes", "issues", "findings")
ODD = (1, 3, 7, 13, 61, 251, 1021, 4093)
PLACES = (0.21, 0.55, 0.93)
README = ("Origin: ", "Not to be mistaken for: ")
every_case = pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)


def capture_of(folder: Path) -> Path:
    [path] = folder.glob("capture.*")
    return path


@cache
def read(folder: Path) -> lp.Capture:
    return lp.read(capture_of(folder))


def data_of(folder: Path) -> bytes:
    path = capture_of(folder)
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


class Sips(io.RawIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes):
        self.data, self.at, self.turn = data, 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), ODD[self.turn % len(ODD)], len(self.data) - self.at)
        buffer[:size] = self.data[self.at : self.at + size]
        self.at, self.turn = self.at + size, self.turn + 1
        return size


def rows(capture: lp.Capture, table: str) -> list[dict[str, Any]]:
    """Rows without the name of the file, which differs by how it is read."""
    found: list[dict[str, Any]] = capture.arrow(table).to_pylist()
    return [{k: v for k, v in row.items() if k != "file"} for row in found]


@every_case
def test_case(folder: Path) -> None:
    wrong = failures(folder / "expected.json", Tables(read(folder)))
    assert not wrong, "\n".join([f"{folder.name}: {len(wrong)} entries of expected.json do not hold", *wrong])


@every_case
def test_causes_fill_their_time(folder: Path) -> None:
    """Whatever a case is about: its causes divide each latency without a gap, and no block of it was refused."""
    capture = read(folder)
    tables = Tables(capture)
    spent: dict[tuple[str, int], float] = {}
    for row in tables.rows("causes"):
        assert 0 <= row["confidence"] <= 1 and row["duration_ms"] >= 0, row
        [whose] = [(link, row[link]) for link in ("exchange", "connect", "push", "gap") if row[link] is not None]
        spent[whose] = spent.get(whose, 0.0) + row["duration_ms"]
    for row in tables.rows("exchanges"):
        if row["complete"] and row["response_first_frame"] is not None:  # (or nobody answers it)
            assert spent.get(("exchange", row["exchange"]), 0.0) == pytest.approx(row["latency_ms"], abs=1e-5), row
    for link in ("connect", "push", "gap"):
        for row in tables.rows({"push": "pushes"}.get(link, link + "s")):
            assert spent.get((link, row[link]), 0.0) == pytest.approx(row["duration_ms"], abs=1e-5), row
    about = {e.entry.get("table") for e in load(folder / "expected.json")}
    broken = [i for i in tables.rows("issues") if i["kind"] in ("refused", "damaged")]
    assert "issues" in about or not broken, broken


@every_case
def test_in_odd_blocks(folder: Path) -> None:
    whole, sips = read(folder), lp.read(Sips(data_of(folder)))
    for table in TABLES:
        assert rows(sips, table) == rows(whole, table), table


@every_case
def test_cut_off(folder: Path) -> None:
    data, whole = data_of(folder), rows(read(folder), "events")
    for share in PLACES:
        capture = lp.read(data[: max(64, int(share * len(data)))])
        for table in TABLES[:-1]:  # the findings are made for the answer
            capture.arrow(table)
        frames = capture.arrow("events")["frame"].to_pylist()
        assert frames == [event["frame"] for event in whole][: len(frames)]
        assert len(frames) >= len(whole) // 2 or share < PLACES[-1]
        assert capture.why().to_dict()["frames"] >= len(frames)


@every_case
def test_folder(folder: Path) -> None:
    """A capture, expected.json and a README that says where it comes from and what it is not; nothing else."""
    assert {p.name for p in folder.iterdir()} == {capture_of(folder).name, "expected.json", "README.md"}
    assert re.fullmatch(r"[a-z0-9_]+", folder.name) and capture_of(folder).stat().st_size < 100_000
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {folder.name}\n\n") and max(map(len, text.splitlines())) <= 120
    for line in README:
        assert f"\n{line}" in text, f"{folder.name}/README.md has no line that begins with {line!r}"


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_script_writes_the_folder(name: str) -> None:
    folder, script = CASES / name, SCRIPTS[name]
    assert capture_of(folder).name == script.file
    assert data_of(folder) == script.capture(), f"python tests/make_cases.py {name}"
    assert (folder / "README.md").read_text(encoding="utf-8") == make_cases.readme(script)


# the language


def tables() -> Tables:
    return Tables(read(CASES / "stall_alone"))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"tabel": "causes"}, "unknown key 'tabel'; near: table"),
        ({"table": "cause"}, "unknown table 'cause'; near: causes"),
        ({"table": "causes", "match": {"ownr": 1}}, "unknown column of causes: 'ownr'; near: owner"),
        ({"table": "causes", "match": {"exchange.ix": 1}}, "unknown column of exchanges: 'ix'; near: index"),
        ({"table": "causes", "match": {"exchang.index": 1}}, "unknown link 'exchang'; near: exchange"),
        ({"table": "causes", "match": {"owner": {"mni": 1}}}, "unknown key in owner: 'mni'; near: min"),
        ({"table": "causes", "match": {"owner": {"min": "1"}}}, "min of owner is no number"),
        ({"table": "causes", "match": {"owner": {}}}, "owner is empty; there are: min, max, not, has"),
        ({"table": "causes", "none": True, "count": 1}, "'none' is true, and stands without"),
        ({"table": "causes", "none": False}, "'none' is true"),
        ({"why": "verdict"}, "'why' and 'is' stand together"),
        ({"why": "verdict", "is": 1, "table": "causes"}, "'why' and 'is' stand together"),
        ({"why": "verdit", "is": 1}, "unknown path 'verdit': 'verdit'; near: verdict"),
        ({"why": "findings.first", "is": 1}, "'first' is no number"),
        ({"note": "nothing"}, "neither 'table' nor 'why'"),
        ("causes", "'causes' is no object"),
    ],
)
def test_what_is_no_expectation(entry: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "expected.json"
    path.write_text(json.dumps([{"table": "streams"}, entry]), encoding="utf-8")
    with pytest.raises(ExpectationError) as problem:
        failures(path, tables())
    assert f"{path}: entry 2: " in str(problem.value) and said in str(problem.value)


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_no_list_of_expectations(text: str, tmp_path: Path) -> None:
    (tmp_path / "expected.json").write_text(text, encoding="utf-8")
    with pytest.raises(ExpectationError, match=r"expected\.json"):
        load(tmp_path / "expected.json")


STALL = {"cause": "delayed_ack", "parent": "nagle"}


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ({"table": "causes", "match": STALL}, ""),
        ({"table": "causes", "match": STALL, "count": 2}, "1 rows match, the first of them [{'cause': 'delayed_ack'"),
        ({"table": "causes", "match": STALL, "count": {"max": 1}}, ""),
        ({"table": "causes", "match": STALL | {"proven": False}}, ""),
        ({"table": "causes", "match": STALL | {"proven": True}}, "0 rows match of 8; the nearest have [{'proven': Fal"),
        ({"table": "causes", "match": STALL, "none": True}, "1 rows match"),
        ({"table": "causes", "match": STALL | {"exchange.index": 1, "stream.server_port": 80}}, ""),
        (
            {"table": "causes", "match": STALL | {"owner": ["server", "network"]}},
            "nearest have [{'owner': 'client'",
        ),
        ({"table": "causes", "match": STALL | {"owner": {"not": ["server", "network"]}}}, ""),
        ({"table": "causes", "match": {"parent": None}, "distinct": "exchange", "count": 2}, ""),
        ({"table": "causes", "match": STALL, "sum": {"duration_ms": {"min": 40, "max": 44}}}, ""),
        (
            {"table": "causes", "match": STALL, "sum": {"duration_ms": {"max": 39}}},
            "sum of duration_ms over 1 rows",
        ),
        ({"table": "causes", "match": {"cause": "cork"}, "sum": {"duration_ms": 0}}, ""),
        ({"table": "issues", "match": {"reason": {"has": "time stamps"}}}, "the table is empty"),
        ({"why": "server", "is": {"has": "10.0.0.2"}}, ""),
        ({"why": "findings.0.grade", "is": "proven"}, "why().to_dict() has 'probable'"),
        ({"why": "findings.99.grade", "is": None}, ""),
    ],
)
def test_what_holds(entry: Any, wrong: str) -> None:
    said = Expectation(entry).failure(tables())
    assert wrong in said and bool(wrong) == bool(said)


def test_every_table_can_be_named() -> None:
    assert set(TABLES) <= set(NAMES)
    assert all(isinstance(tables().rows(name), list) for name in NAMES)
