"""Are rotated files one capture, and files that only look like it left apart? Which files does an input mean?"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from archives import SAMPLES, SMALL, TABLES, captures, later, rotated, same, stored
from makepcap import Talk, answer, get, pcap, pcap_of, pcapng

import latpcap as lp
from latpcap.archive import inputs, series
from latpcap.archive.model import Part


def grouped(*names: str) -> list[list[str]]:
    """The tasks that these names make, as lists of names."""
    return [[p.name for p in t.parts] for t in series.tasks(Part(f"/d/{n}", 1, 1) for n in sorted(names))]


def together(*names: str) -> bool:
    return grouped(*names) == [[f"/d/{n}" for n in names]]


@pytest.mark.parametrize(
    "names",
    [
        ("dump.pcap", "dump.pcap1", "dump.pcap2", "dump.pcap10"),
        ("dump.pcap00", "dump.pcap01", "dump.pcap02"),
        ("dump.pcap0.gz", "dump.pcap1.gz"),
        ("dump-2026-11-21_10:00:00.pcap", "dump-2026-11-21_11:00:00.pcap", "dump-2026-11-22_00:00:00.pcap"),
        ("dump-20261121-100000.pcap.zst", "dump-20261121-110000.pcap.zst"),
        ("eth0.20261121T1000.pcap", "eth0.20261121T1100.pcap"),
        ("2026-11-21.pcap", "2026-11-22.pcap"),
        ("dump.1795255200.pcap", "dump.1795258800.pcap"),
        ("dump-2026-11-21_10.00.00.pcap", "dump-2026-11-21_10.00.00.pcap1", "dump-2026-11-21_11.00.00.pcap"),
        ("run_00001_20261121100000.pcapng", "run_00002_20261121100500.pcapng"),
        ("run_20261121100000_00001.pcapng", "run_20261121100500_00002.pcapng"),
        ("run_00009_20261121100000", "run_00010_20261121100500"),
    ],
    ids=lambda names: names[-1],
)
def test_names_of_rotated_files(names: tuple[str, ...]) -> None:
    assert together(*names)


@pytest.mark.parametrize(
    "names",
    [
        ("a.pcap", "b.pcap"),
        ("run1.pcap", "run2.pcap"),  # no tool numbers its files so; people do
        ("client.pcap", "server.pcap"),
        ("dump.pcap", "dump.pcap0"),  # two recordings: the first file has no number, or all have
        ("dump.pcap1", "other.pcap2"),
        ("dump.pcap1", "dump.pcapng2"),
        ("dump.pcap1", "dump.pcap2.gz"),
        ("sub/dump.pcap1", "dump.pcap2"),
        ("web-2026-11-21.pcap", "db-2026-11-22.pcap"),
        ("web-2026-11-21.pcap", "web-20261122.pcap"),
        ("web-2026-13-41.pcap", "web-2026-14-01.pcap"),
        ("10.0.0.1.pcap", "10.0.0.2.pcap"),
        ("a_00001_20261121100000.pcapng", "b_00002_20261121100500.pcapng"),
    ],
    ids=lambda names: names[-1],
)
def test_names_that_only_look_like_it(names: tuple[str, ...]) -> None:
    assert all(len(task) == 1 for task in grouped(*names))


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def stitched(tmp_path: Path, files: dict[str, bytes]) -> list[list[str]]:
    """The captures that these files become, as lists of names."""
    done = lp.batch(write(tmp_path / "in", files), tmp_path / "out", quiet=True)
    assert not done.failed
    return sorted([Path(str(f)).name for f in row["files"]] for row in captures(tmp_path / "out").values())  # type: ignore[attr-defined]


DATA = SMALL.read_bytes()
GOOD = (SAMPLES / "nginx-good.pcap").read_bytes()


def test_a_stream_that_crosses_a_rotation_is_one_stream(tmp_path: Path) -> None:
    parts = rotated(GOOD, 7)
    names = [f"dump-2026-11-21_10:00:0{n}.pcap" for n in range(7)]
    assert stitched(tmp_path, dict(zip(names, parts, strict=True))) == [names]
    whole = lp.read(SAMPLES / "nginx-good.pcap")
    (capture,) = captures(tmp_path / "out").values()
    for table in TABLES[:-1]:
        assert same(stored(tmp_path / "out", table, str(capture["capture"])), whole.arrow(table)), table


def test_pcapng_of_dumpcap(tmp_path: Path) -> None:
    talk = Talk()
    talk.open()
    for turn in range(10):
        talk.client(100.0 * turn + 10, get())
        for piece in answer(700):
            talk.server(100.0 * turn + 20, piece)
    half = len(talk.tape) // 2
    names = ["run_00001_20231114221320.pcapng", "run_00002_20231114221321.pcapng"]
    files = dict(zip(names, [pcapng(talk.tape[:half]), pcapng(talk.tape[half:])], strict=True))
    assert stitched(tmp_path, files) == [names]
    (capture,) = captures(tmp_path / "out").values()
    whole = lp.read(pcapng(talk.tape))
    assert same(stored(tmp_path / "out", "exchanges", str(capture["capture"])), whole.arrow("exchanges"))


def test_a_ring_is_turned_into_its_order(tmp_path: Path) -> None:
    parts = rotated(GOOD, 5)
    turned = {f"dump.pcap{(n + 2) % 5}": part for n, part in enumerate(parts)}
    assert stitched(tmp_path, turned) == [["dump.pcap2", "dump.pcap3", "dump.pcap4", "dump.pcap0", "dump.pcap1"]]


def two(first: bytes, second: bytes) -> dict[str, bytes]:
    return {"dump.pcap1": first, "dump.pcap2": second}


FIRST = GOOD + later(GOOD, 10)[24:]
"""Ten seconds long."""
SECOND = later(GOOD, 12)


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(SECOND[:20] + b"\x65\0\0\0" + SECOND[24:], id="another link type"),
        pytest.param(SECOND[:16] + b"\x60\0\0\0" + SECOND[20:], id="another snap length"),
        pytest.param(b"\x4d\x3c\xb2\xa1" + SECOND[4:], id="another clock"),
        pytest.param(later(SECOND, 3600), id="an hour of silence"),
        pytest.param(later(SECOND, -7), id="two recordings at a time"),
        pytest.param(later(SECOND, -3600), id="an hour earlier"),
    ],
)
def test_files_that_do_not_fit_stay_apart(second: bytes, tmp_path: Path) -> None:
    assert stitched(tmp_path, two(FIRST, second)) == [["dump.pcap1"], ["dump.pcap2"]]


def test_files_that_fit_are_one(tmp_path: Path) -> None:
    assert stitched(tmp_path, two(FIRST, SECOND)) == [["dump.pcap1", "dump.pcap2"]]
    assert stitched(tmp_path, two(FIRST, later(SECOND, 50))) == [["dump.pcap1", "dump.pcap2"]], "less than a minute"


def test_a_hole_in_the_numbers_cuts(tmp_path: Path) -> None:
    a, b, c = rotated(GOOD, 3)
    files = {"dump.pcap1": a, "dump.pcap2": b, "dump.pcap4": c}
    assert stitched(tmp_path, files) == [["dump.pcap1", "dump.pcap2"], ["dump.pcap4"]]


def test_an_unreadable_part_cuts_and_is_said(tmp_path: Path) -> None:
    a, _, c = rotated(GOOD, 3)
    write(tmp_path / "in", {"dump.pcap0": a, "dump.pcap1": b"no capture at all", "dump.pcap2": c})
    done = lp.batch(tmp_path / "in", tmp_path / "out", quiet=True)
    assert [Path(f.file).name for f in done.failed] == ["dump.pcap1"]
    assert sorted(captures(tmp_path / "out")) == ["dump.pcap0", "dump.pcap2"]
    assert len(lp.batch(tmp_path / "in", tmp_path / "out", quiet=True).skipped) == 3


def test_damage_in_a_part_is_placed_in_that_part(tmp_path: Path) -> None:
    a, b, c = rotated(GOOD, 3)
    assert stitched(tmp_path, {"dump.pcap0": a, "dump.pcap1": b[:-5], "dump.pcap2": c}) == [
        ["dump.pcap0", "dump.pcap1", "dump.pcap2"]
    ]
    (capture,) = captures(tmp_path / "out").values()
    assert capture["damaged"] and capture["frames"] == 3999
    issues = stored(tmp_path / "out", "issues", str(capture["capture"])).to_pylist()
    (damage,) = [i for i in issues if i["kind"] == "damaged"]
    assert Path(damage["file"]).name == "dump.pcap1" and len(b) - 2000 < damage["offset"] < len(b)


def test_a_series_that_grows_is_done_again_as_one(tmp_path: Path) -> None:
    parts = rotated(GOOD, 3)
    assert stitched(tmp_path, {"dump.pcap": parts[0]}) == [["dump.pcap"]]
    assert stitched(tmp_path, {"dump.pcap1": parts[1]}) == [["dump.pcap", "dump.pcap1"]]
    assert stitched(tmp_path, {"dump.pcap2": parts[2]}) == [["dump.pcap", "dump.pcap1", "dump.pcap2"]]
    apart = lp.batch(tmp_path / "in", tmp_path / "out", series=False, quiet=True)
    assert apart.skipped == [] and len(captures(tmp_path / "out")) == 3
    assert stitched(tmp_path, {}) == [["dump.pcap", "dump.pcap1", "dump.pcap2"]]
    assert len(list((tmp_path / "out" / "_tasks").iterdir())) == 1


def test_a_part_without_packets_is_no_hole(tmp_path: Path) -> None:
    a, b = rotated(GOOD, 2)
    files = {"dump.pcap1": a, "dump.pcap2": pcap_of([], snaplen=262_144), "dump.pcap3": b}
    same_header = {name: a[:24] + data[24:] for name, data in files.items()}
    assert stitched(tmp_path, same_header) == [["dump.pcap1", "dump.pcap2", "dump.pcap3"]]


# inputs


def meant(given: inputs.Inputs, **more: str) -> tuple[list[str], list[str]]:
    """Names of the files and the reasons of the failures."""
    found = inputs.find(given, **more)
    return [Path(n).name for n in found.parts], [f"{Path(f.file).name}: {f.reason}" for f in found.failures]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "a.pcap",
        "b.pcapng.gz",
        "c.cap",
        "d.pcap7",
        "readme.md",
        "sub/e.PCAP",
        "sub/deep/f.pcap.zst",
        ".g.pcap",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_inputs_are_files_folders_and_globs(folder: Path) -> None:
    everything = ["a.pcap", "b.pcapng.gz", "c.cap", "d.pcap7", "f.pcap.zst", "e.PCAP"]
    assert meant(folder) == (everything, [])
    assert meant([folder, folder / "a.pcap", str(folder / "sub")]) == (everything, [])
    assert meant(f"{folder}/*.pcap*") == (["a.pcap", "b.pcapng.gz", "d.pcap7"], [])
    assert meant(f"{folder}/**/*.pcap*") == (["a.pcap", "b.pcapng.gz", "d.pcap7", "f.pcap.zst"], [])
    assert meant(folder / "readme.md") == (["readme.md"], []), "what is named is taken"
    assert meant(folder, leave_out=str(folder / "sub")) == (["a.pcap", "b.pcapng.gz", "c.cap", "d.pcap7"], [])


def test_what_is_not_there_is_said(folder: Path) -> None:
    assert meant([folder / "none.pcap", f"{folder}/*.none"]) == (
        [],
        ["none.pcap: no such file", "*.none: nothing matches"],
    )
    os.mkfifo(folder / "pipe.pcap")
    assert meant(folder / "pipe.pcap") == ([], ["pipe.pcap: is no regular file"])
    assert "pipe.pcap" not in meant(folder)[0], "nobody waits for a pipe"
    (folder / "broken.pcap").symlink_to(folder / "none.pcap")
    assert meant(folder)[1] == ["broken.pcap: no such file"]


def test_a_folder_named_like_a_capture(folder: Path) -> None:
    (folder / "old.pcap").mkdir()
    assert meant(f"{folder}/*.pcap")[1] == ["old.pcap: is a directory, expected a capture file"]
    (folder / "old.pcap" / "in.pcap").touch()
    assert "in.pcap" in meant(folder)[0]
    assert meant(f"{folder}/**/*.pcap")[1] == [], "what is in it matches, too"


def test_a_manifest_names_inputs_line_by_line(folder: Path) -> None:
    (folder / "list.txt").write_text(f"# two\na.pcap\n\n{folder}/sub\nsub/none.pcap\n")
    assert meant(f"@{folder}/list.txt") == (["a.pcap", "f.pcap.zst", "e.PCAP"], ["none.pcap: no such file"])
    assert meant("@/nowhere/list.txt")[1] == ["list.txt: manifest cannot be read (no such file or directory)"]
    with pytest.raises(TypeError, match="expected paths, got int"):
        inputs.find([3])  # type: ignore[list-item]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.pcap")
    shutil.copy(SMALL, tmp_path / name)
    lp.batch(tmp_path, tmp_path / "out", quiet=True)
    assert [Path(str(n)).name for n in captures(tmp_path / "out")] == ["caf\\xe9.pcap"]
    assert lp.batch(tmp_path, tmp_path / "out", quiet=True).skipped == [str(tmp_path / name)]


def test_a_stitched_capture_of_makepcap_has_no_other_stream(tmp_path: Path) -> None:
    """The exchange whose request and answer lie in two files is whole."""
    talk = Talk()
    talk.open()
    asked = talk.client(10.0, get("/crosses"))
    for piece in answer(1000):
        talk.server(50.0, piece)
    stitched(tmp_path, two(pcap(talk.tape[:asked]), pcap(talk.tape[asked:])))
    (capture,) = captures(tmp_path / "out").values()
    (row,) = stored(tmp_path / "out", "exchanges", str(capture["capture"])).to_pylist()
    assert row["complete"] and row["target"] == "/crosses" and capture["streams"] == 1
