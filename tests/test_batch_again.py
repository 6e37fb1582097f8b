"""Does a second run do only what is left, changed or broken off, and give what one run gives?"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import archives
import pyarrow.parquet as pq
import pytest
from archives import CLIPS, SMALL, alike, as_nobody, captures, tree

import latpcap as lp
from latpcap.archive import layout, output, packs, run, worker
from latpcap.archive.model import Options, Part, Task, identity

SLOW = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from latpcap.archive import packs, worker
packs.MAX_TASKS = 2
quick = worker.analyse
worker.analyse = lambda *of: (time.sleep(0.15), quick(*of))[1]
from latpcap.cli import main
main()
"""
"""The same with a pause before each capture: time to break it off before it is done."""
KILLED = """
import os, signal, sys
from latpcap.archive import output, packs
packs.MAX_TASKS = 3
from latpcap.cli import main
left, put = [int(sys.argv.pop(1))], output.Output.put
def counted(*of):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    put(*of)
output.Output.put = counted
main()
"""
"""The same, killed before it gives one more file than so many its place."""


def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    source, results = tmp_path / "archive", tmp_path / "results"
    source.mkdir()
    shutil.copy(SMALL, source / "good.pcap")
    (source / "bad.pcap").write_bytes(b"nothing of the kind")
    first = lp.batch(source, results, quiet=True)
    before = {p: p.stat().st_mtime_ns for p in results.rglob("*.parquet")}
    second = lp.batch(source, results, quiet=True)
    assert [Path(p).name for p in second.skipped] == ["bad.pcap", "good.pcap"]
    assert {p: p.stat().st_mtime_ns for p in results.rglob("*.parquet")} == before
    assert second.failed == first.failed and len(second.failed) == 1, "what failed by its content is said again"
    told = second.summary
    assert told["skipped"] == 2 and {**told, "skipped": 0} == first.summary


def test_only_what_changed_is_done_again(tmp_path: Path) -> None:
    source, results = tmp_path / "archive", tmp_path / "results"
    source.mkdir()
    for name in ("a", "b", "c", "d"):
        shutil.copy(SMALL, source / f"{name}.pcap")
        lp.batch(source / f"{name}.pcap", results, quiet=True)
    shutil.copy(CLIPS / "think40.pcap", source / "b.pcap")
    (results / layout.file_of("streams", identity(str(source / "c.pcap")))).unlink()
    with (results / layout.file_of("causes", identity(str(source / "d.pcap")))).open("r+b") as cut:
        cut.truncate(1000)  # as a machine that lost its power leaves it
    again = lp.batch(source, results, quiet=True)
    assert [Path(p).name for p in again.skipped] == ["a.pcap"]
    lp.batch(source, tmp_path / "fresh", quiet=True)
    assert alike(results, tmp_path / "fresh")


def test_a_capture_of_a_pack_is_replaced(tmp_path: Path) -> None:
    """Its pack is written anew without it; whose files are not meant this time stays."""
    source, results = tmp_path / "archive", tmp_path / "results"
    source.mkdir()
    for name in ("a", "b", "c"):
        shutil.copy(SMALL, source / f"{name}.pcap")
    (source / "bad.pcap").write_text("no capture")
    lp.batch(source, results, quiet=True)
    assert len(list((results / "_tasks").iterdir())) == 1, "short captures share their files"
    shutil.copy(CLIPS / "think40.pcap", source / "b.pcap")
    assert lp.batch(source / "b.pcap", results, quiet=True).skipped == []
    assert len(list((results / "_tasks").iterdir())) == len(list((results / "events").iterdir())) == 2
    again = lp.batch(source, results, quiet=True)
    assert len(again.skipped) == 4 and [Path(f.file).name for f in again.failed] == ["bad.pcap"]
    lp.batch(source, tmp_path / "fresh", quiet=True)
    assert alike(results, tmp_path / "fresh")
    assert lp.open_results(results).why().to_dict()["exchanges"] == again.summary["exchanges"]


def test_what_a_pack_replaces_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken off between the new pack and the end of the old one, each capture is there once."""
    from latpcap.archive import run

    source, results = tmp_path / "archive", tmp_path / "results"
    source.mkdir()
    for name in ("a", "b", "c"):
        shutil.copy(SMALL, source / f"{name}.pcap")
    lp.batch(source, results, quiet=True)
    shutil.copy(CLIPS / "think40.pcap", source / "b.pcap")
    with monkeypatch.context() as patch:
        patch.setattr(run, "_remove", lambda *of: None)
        patch.setattr(worker, "analyse", lambda *of: (_ for _ in ()).throw(lp.OutputError("full")))
        with pytest.raises(lp.OutputError, match=r"^full; 2 captures done and kept, 1 left: run the same again"):
            lp.batch(source, results, jobs=1, quiet=True)
    assert len(lp.open_results(results).captures) == 2
    lp.batch(source, results, quiet=True)
    lp.batch(source, tmp_path / "fresh", quiet=True)
    assert alike(results, tmp_path / "fresh") and len(captures(results)) == 3


def test_many_small_packs_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from latpcap.archive import run

    monkeypatch.setattr(run, "MAX_SMALL_PACKS", 3)
    for number in range(5):
        shutil.copy(SMALL, tmp_path / f"{number}.pcap")
        lp.batch(tmp_path / f"{number}.pcap", tmp_path / "results", quiet=True)
    assert len(list((tmp_path / "results" / "_tasks").iterdir())) == 2
    again = lp.batch([tmp_path / f"{number}.pcap" for number in range(5)], tmp_path / "results", quiet=True)
    assert len(again.skipped) == 5
    lp.batch([tmp_path / f"{number}.pcap" for number in range(5)], tmp_path / "fresh", quiet=True)
    assert alike(tmp_path / "results", tmp_path / "fresh")


def test_what_could_not_be_read_is_tried_again(open_folder: Path) -> None:
    source, results = open_folder / "archive", open_folder / "results"
    source.mkdir()
    shutil.copy(SMALL, source / "a.pcap")
    (source / "a.pcap").chmod(0)
    with as_nobody():
        assert [f.reason for f in lp.batch(source, results, quiet=True).failed] == [
            "cannot be opened (permission denied)"
        ]
    (source / "a.pcap").chmod(0o644)
    with as_nobody():
        again = lp.batch(source, results, quiet=True)
    assert again.failed == [] and again.skipped == [] and len(captures(results)) == 1


def puts_of(source: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many files does a whole run give their place?"""
    calls: list[str] = []
    put = output.Output.put

    def counted(self: output.Output, file: Path, relative: str) -> None:
        calls.append(relative)
        put(self, file, relative)

    with monkeypatch.context() as patch:
        patch.setattr(output.Output, "put", counted)
        lp.batch(source, results, quiet=True)
    return len(calls)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_a_killed_run_goes_on_and_gives_the_same(share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed by itself just before this share of its files had their place: no race decides where."""
    source, results, fresh = tmp_path / "archive", tmp_path / "results", tmp_path / "fresh"
    source.mkdir()
    monkeypatch.setattr(packs, "MAX_TASKS", 3)
    for number in range(12):
        shutil.copy(SMALL, source / f"{number}.pcap")
    last = int(share * puts_of(source, fresh, monkeypatch))
    run = [sys.executable, "-c", KILLED, str(last), "batch", str(source), "-o", str(results), "--jobs", "2", "--quiet"]
    assert subprocess.run(run, check=False, timeout=60).returncode == -signal.SIGKILL
    for file in results.rglob("*.parquet"):
        if "_partial" not in file.parts:
            pq.read_metadata(file)  # raises for a file that is not whole
    before = {p.name: p.stat().st_mtime_ns for p in results.glob("_tasks/*.json")}
    assert len(before) < 4 and (share > 0 or not before) and (share < 0.5 or before)  # two work side by side
    again = lp.batch(source, results, quiet=True)
    assert len(again.skipped) == 3 * len(before) and not again.failed
    assert {n: (results / "_tasks" / n).stat().st_mtime_ns for n in before} == before
    assert tree(results) == tree(fresh), "and nothing partial is left"


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    source = tmp_path / "archive"
    source.mkdir()
    for number in range(60):
        shutil.copy(SMALL, source / f"{number}.pcap")
    run = [sys.executable, "-c", SLOW, "batch", str(source), "-o", str(tmp_path / "results"), "--quiet"]
    child = subprocess.Popen(run, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("results/_tasks/*.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert child.returncode == 130
    assert said.startswith("latpcap: interrupted; ") and said.endswith("run the same again to go on\n"), said
    assert said.count("\n") == 1
    assert not list((tmp_path / "results" / "_partial").iterdir())


def test_an_interrupted_run_counts_what_it_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs that are under way are finished, or end at their next block; the count names what was kept."""
    monkeypatch.setattr(packs, "MAX_TASKS", 2)
    source = tmp_path / "in"
    source.mkdir()
    for number in range(8):
        shutil.copy(SMALL, source / f"{number}.pcap")
    real, seen = run._outcomes, []

    def impatient(future: object, pack: object) -> list[worker.Outcome]:
        seen.append(pack)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return real(future, pack)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "_outcomes", impatient)
    with pytest.raises(lp.Interrupted, match=r"interrupted; \d captures done and kept, \d left: run the same again"):
        lp.batch(source, tmp_path / "out", jobs=2, quiet=True)
    monkeypatch.setattr(run, "_outcomes", real)
    kept = len(captures(tmp_path / "out"))
    assert 2 <= kept < 8
    again = lp.batch(source, tmp_path / "out", quiet=True)
    assert len(again.skipped) == kept and len(captures(tmp_path / "out")) == 8


def test_a_capture_is_broken_off_at_its_next_block(tmp_path: Path) -> None:
    class Impatient:
        stopped = False
        blocks = 0

        def read(self, file_bytes: int) -> None:
            self.blocks += 1
            self.stopped = self.blocks >= 3

        def seen(self, packets: int) -> None:
            pass

    path, watch = archives.SAMPLES / "nginx-good.pcap", Impatient()
    task = Task("t", (Part(str(path), path.stat().st_size, 0),))
    with pytest.raises(worker.Stopped):
        worker.analyse(packs.pack([task]), Options(str(tmp_path)), watch)
    assert watch.blocks == 3 and tree(tmp_path) == {}


def test_what_was_done_is_kept_when_a_pack_is_broken_off(tmp_path: Path) -> None:
    class Impatient(worker._NoWatch):
        size = 0

        def read(self, file_bytes: int) -> None:
            self.size += file_bytes
            self.stopped = self.size >= 3 * SMALL.stat().st_size

    tasks = [Task(f"{n}", (Part(str(SMALL), SMALL.stat().st_size, SMALL.stat().st_mtime_ns),)) for n in range(5)]
    done = worker.analyse(packs.pack(tasks), Options(str(tmp_path)), Impatient())
    assert [outcome.task for outcome in done] == ["0", "1"], "the third was not read to its end"
    assert len(captures(tmp_path)) == 1
