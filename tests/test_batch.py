"""Does an archive become the tables of its captures, each once, whatever else lies there and whatever goes wrong?"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import archives
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from archives import CLIPS, PACKERS, SMALL, TABLES, as_nobody, captures, rotated, same, stored, tree

import latpcap as lp
from latpcap.archive import layout, output, packs, run, worker
from latpcap.archive.model import Options, Part, Task, identity
from latpcap.archive.tablefile import ROW_GROUP

START = [sys.executable, "-c", "from latpcap.cli import main; main()"]
SLOW = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from latpcap.archive import packs, worker
packs.MOST_TASKS = 2
quick = worker.analyse
worker.analyse = lambda *of: (time.sleep(0.15), quick(*of))[1]
from latpcap.cli import main
main()
"""
"""The same with a pause before each capture: time to break it off before it is done."""
KILLED = """
import os, signal, sys
from latpcap.archive import output, packs
packs.MOST_TASKS = 3
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


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, as the tests' own is the user's alone.

    What is imported late is imported now: nobody else may be able to read it.
    """
    folder = Path(tempfile.mkdtemp(prefix="latpcap-"))
    folder.chmod(0o777)
    lp.batch(SMALL, folder / "warm", jobs=2, quiet=True)
    shutil.rmtree(folder / "warm")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def archive(folder: Path) -> dict[str, Path]:
    """Everything that an archive may hold; gives the readable captures, each with a file of the same tables."""
    folder.mkdir(exist_ok=True)
    data = SMALL.read_bytes()
    expected: dict[str, Path] = {}
    for clip in sorted(CLIPS.glob("*.pcap")):
        shutil.copy(clip, folder)
        expected[clip.name] = clip
    packed = folder / "packed"
    packed.mkdir()
    for suffix, pack in PACKERS.items():
        name = f"copy.pcap.{suffix}"
        (packed / name).write_bytes(pack(data))
        expected[name] = SMALL
    parts = folder / "rotated"
    parts.mkdir()
    for number, part in enumerate(rotated(data, 4)):
        (parts / f"dump.pcap{number or ''}").write_bytes(part)
    expected["dump.pcap"] = SMALL
    odd = folder / "odd.pcap"  # a folder, whatever its name says
    odd.mkdir()
    (odd / "inside.pcap").write_bytes(data)
    expected["inside.pcap"] = SMALL
    cut = folder / "cut.pcap"
    cut.write_bytes(data[:-7])
    expected["cut.pcap"] = cut
    half = folder / "half.pcap.gz"
    packed_data = PACKERS["gz"](data)
    half.write_bytes(packed_data[: len(packed_data) // 2])
    expected["half.pcap.gz"] = half
    (folder / "empty.pcap").touch()
    (folder / "text.pcap").write_text("no capture, whatever its name says")
    (folder / "notes.txt").write_text("passed over")
    secret = folder / "secret.pcap"
    secret.write_bytes(data)
    secret.chmod(0)
    return expected


def test_an_archive_gives_exactly_its_tables_and_failures(open_folder: Path) -> None:
    source, results = open_folder / "archive", open_folder / "results"
    expected = archive(source)
    with as_nobody():
        done = lp.batch(source, results, jobs=2, quiet=True)
    assert {(Path(f.file).name, f.reason, f.offset) for f in done.failed} == {
        ("empty.pcap", "file is empty", 0),
        ("text.pcap", 'not a pcap or pcapng file (it looks like text: "no capture, what")', 0),
        ("secret.pcap", "cannot be opened (permission denied)", None),
    }
    assert [Path(name).name for name in done.damaged] == ["cut.pcap", "half.pcap.gz"]
    assert done.skipped == [] and done.changed == [] and done.summary["passed_over"] == 1
    found = captures(results)
    assert sorted(found) == sorted(expected)
    for name, like in expected.items():
        whole = lp.read(like)
        for table in TABLES:
            got, wanted = stored(results, table, str(found[name]["capture"])), whole.arrow(table)
            if table == "issues":  # they name the file, which lies elsewhere
                got, wanted = got.drop_columns(["file"]), wanted.drop_columns(["file"])
            assert same(got, wanted), f"{table} of {name}"
        assert found[name]["frames"] == whole.frames and found[name]["damaged"] == bool(whole.damage)
    assert done.summary["frames"] == sum(row["frames"] for row in found.values())
    assert found["dump.pcap"]["rotation"] == "tcpdump -C" and len(found["dump.pcap"]["files"]) == 4


def test_files_tell_where_their_rows_come_from(tmp_path: Path) -> None:
    import hashlib
    import json

    lp.batch(SMALL, tmp_path / "out", quiet=True)
    (capture,) = captures(tmp_path / "out").values()
    for table in (*TABLES, "captures"):
        told = pq.read_metadata(tmp_path / "out" / layout.file_of(table, str(capture["capture"]))).metadata
        (source,) = json.loads(told[b"latpcap.inputs"])
        data = SMALL.read_bytes()
        assert source == {"file": str(SMALL), "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        assert told[b"latpcap.version"].decode() == lp.__version__
        assert told[b"latpcap.schema"] and json.loads(told[b"latpcap.options"]) == {"events": True}
    assert capture["sha256"] == [source["sha256"]]


def test_events_are_left_out_when_asked(tmp_path: Path) -> None:
    lp.batch(SMALL, tmp_path, quiet=True)
    assert (tmp_path / "events").exists()
    done = lp.batch(SMALL, tmp_path, events=False, quiet=True)
    assert done.skipped == [], "another set of tables: the capture is done again"
    assert not any((tmp_path / "events").rglob("*.parquet"))
    assert captures(tmp_path)[SMALL.name]["events"] is None
    assert stored(tmp_path, "exchanges", identity(str(SMALL))).num_rows == len(lp.read(SMALL).exchanges)


def test_row_groups_are_found_by_time(tmp_path: Path) -> None:
    """A long table has row groups of one size that follow each other in time, however the rows came."""
    from latpcap.archive.tablefile import TableFile

    events = lp.read(SMALL).arrow("events")
    rows = ds.dataset([events] * (1 + 2 * ROW_GROUP // events.num_rows)).to_table()
    for pieces, name in ((977, "a"), (50_000, "b")):
        file = TableFile(tmp_path / name)
        for at in range(0, rows.num_rows, pieces):
            file.add(rows[at : at + pieces])
        file.close({"who": "test"})
        told = pq.read_metadata(tmp_path / name)
        sizes = [told.row_group(i).num_rows for i in range(told.num_row_groups)]
        assert sizes == [ROW_GROUP, ROW_GROUP, rows.num_rows - 2 * ROW_GROUP]
        column = told.row_group(0).column(told.schema.names.index("time"))
        assert column.statistics.has_min_max and column.compression == "ZSTD"
        assert "DELTA_BINARY_PACKED" in column.encodings
        assert pq.read_table(tmp_path / name).equals(rows.unify_dictionaries().combine_chunks()) or same(
            pq.read_table(tmp_path / name), rows
        )


# resuming


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


def alike(one: Path, other: Path) -> bool:
    """The same rows of each capture, in whatever packs."""
    names = captures(one).keys()
    found = [str(row["capture"]) for row in captures(one).values()]
    return names == captures(other).keys() and all(
        same(stored(one, table, capture), stored(other, table, capture)) for table in TABLES for capture in found
    )


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
    from latpcap.archive import clear

    source, results = tmp_path / "archive", tmp_path / "results"
    source.mkdir()
    for name in ("a", "b", "c"):
        shutil.copy(SMALL, source / f"{name}.pcap")
    lp.batch(source, results, quiet=True)
    shutil.copy(CLIPS / "think40.pcap", source / "b.pcap")
    with monkeypatch.context() as patch:
        patch.setattr(clear, "_remove", lambda *of: None)
        patch.setattr(worker, "analyse", lambda *of: (_ for _ in ()).throw(lp.OutputError("full")))
        with pytest.raises(lp.OutputError, match=r"^full; 2 captures done and kept, 1 left: run the same again"):
            lp.batch(source, results, jobs=1, quiet=True)
    assert len(lp.open_results(results).captures) == 2
    lp.batch(source, results, quiet=True)
    lp.batch(source, tmp_path / "fresh", quiet=True)
    assert alike(results, tmp_path / "fresh") and len(captures(results)) == 3


def test_many_small_packs_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from latpcap.archive import clear

    monkeypatch.setattr(clear, "MOST_SMALL", 3)
    for number in range(5):
        shutil.copy(SMALL, tmp_path / f"{number}.pcap")
        lp.batch(tmp_path / f"{number}.pcap", tmp_path / "results", quiet=True)
    assert len(list((tmp_path / "results" / "_tasks").iterdir())) == 2
    again = lp.batch([tmp_path / f"{number}.pcap" for number in range(5)], tmp_path / "results", quiet=True)
    assert len(again.skipped) == 5
    lp.batch([tmp_path / f"{number}.pcap" for number in range(5)], tmp_path / "fresh", quiet=True)
    assert alike(tmp_path / "results", tmp_path / "fresh")


def test_short_captures_share_packs_and_long_ones_do_not() -> None:
    def task(name: str, size: int) -> Task:
        return Task(name, (Part(f"/{name}", size, 0),))

    small = [task(f"{number:04}", 1000) for number in range(1000)]
    mixed = packs.of([*small, task("0500-long", 1 << 30), task("zipped.gz", packs.MOST_BYTES // 4)])
    assert [p.name for p in mixed[:1]] == ["0500-long"] and sum(len(p.tasks) for p in mixed) == 1002
    assert "zipped.gz" in [p.name for p in mixed], "what is compressed counts more"
    assert all(len(p.tasks) <= packs.MOST_TASKS for p in mixed) and len(mixed) <= 6
    assert packs.of(small[::-1]) == packs.of(small)


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
    monkeypatch.setattr(packs, "MOST_TASKS", 3)
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


# trouble with the output and with the input


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    """The kernel's own limit on the length of a file stands for a disk that is full."""
    run = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    run += "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\nfrom latpcap.cli import main\nmain()"
    words = ["batch", str(archives.SAMPLES / "nginx-good.pcap"), "-o", str(tmp_path / "results"), "--quiet"]
    done = subprocess.run([sys.executable, "-c", run, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "events of " in done.stderr and "cannot be written (" in done.stderr and "file too large" in done.stderr
    assert "0 captures done and kept, 1 left" in done.stderr
    assert not list((tmp_path / "results").rglob("*.parquet"))


def test_a_folder_that_may_not_be_written(open_folder: Path) -> None:
    (open_folder / "results").mkdir(mode=0o555)
    with as_nobody(), pytest.raises(lp.OutputError, match=r"results: cannot be written \(permission denied\)$"):
        lp.batch(SMALL, open_folder / "results", quiet=True)
    file = open_folder / "file"
    file.touch()
    with pytest.raises(lp.OutputError, match="file: cannot be written"):
        lp.batch(SMALL, file, quiet=True)


def analysed(path: Path, results: Path, size: int, mtime_ns: int) -> worker.Outcome:
    task = Task(identity(str(path)), (Part(str(path), size, mtime_ns),))
    (outcome,) = worker.analyse(packs.pack([task]), Options(str(results), version=lp.__version__, schema="1"))
    return outcome


def test_what_was_done_is_kept_when_a_pack_is_broken_off(tmp_path: Path) -> None:
    class Impatient(worker._Nobody):
        size = 0

        def read(self, file_bytes: int) -> None:
            self.size += file_bytes
            self.stopped = self.size >= 3 * SMALL.stat().st_size

    tasks = [Task(f"{n}", (Part(str(SMALL), SMALL.stat().st_size, SMALL.stat().st_mtime_ns),)) for n in range(5)]
    done = worker.analyse(packs.pack(tasks), Options(str(tmp_path)), Impatient())
    assert [outcome.task for outcome in done] == ["0", "1"], "the third was not read to its end"
    assert len(captures(tmp_path)) == 1


def test_a_breakdown_costs_one_capture_of_its_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = worker._Capture._row

    def broken(self: worker._Capture, issues: object) -> dict[str, object]:
        if "think40" in self._id:
            raise ZeroDivisionError("a bug")
        return row(self, issues)  # type: ignore[arg-type]

    monkeypatch.setattr(worker._Capture, "_row", broken)
    done = lp.batch(CLIPS, tmp_path, quiet=True)
    assert [(Path(f.file).name, f.reason) for f in done.failed] == [
        ("think40.pcap", "the worker broke down (ZeroDivisionError: a bug)")
    ]
    assert len(captures(tmp_path)) == len(list(CLIPS.glob("*.pcap"))) - 1
    assert stored(tmp_path, "events", identity(str(CLIPS / "think40.pcap"))).num_rows == 0


@pytest.mark.parametrize("change", ["grown", "cut"])
def test_a_file_that_changes_is_marked_and_done_again(change: str, tmp_path: Path) -> None:
    path, results = tmp_path / "live.pcap", tmp_path / "results"
    path.write_bytes(SMALL.read_bytes())
    planned = path.stat()
    size = planned.st_size + (-100 if change == "grown" else 100)  # what it was when the work was planned
    outcome = analysed(path, results, size, planned.st_mtime_ns)
    assert outcome.changed == [str(path)]
    issues = stored(results, "issues", identity(str(path))).to_pylist()
    assert [i["reason"] for i in issues if i["layer"] == "file"] == [
        f"changed while it was read: {size:,} bytes were expected, {planned.st_size:,} read"
    ]
    assert lp.batch(path, results, quiet=True).skipped == []
    assert lp.batch(path, results, quiet=True).skipped == [str(path)]


def test_a_file_that_vanishes(tmp_path: Path) -> None:
    path = tmp_path / "gone.pcap"
    outcome = analysed(path, tmp_path / "results", 1000, 0)
    assert [str(f) for f in outcome.failures] == [f"{path}: no such file"]
    assert not outcome.failures[0].lasting


def test_an_error_of_the_disk_half_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is kept and marked; the next run tries again."""
    data = (archives.SAMPLES / "nginx-good.pcap").read_bytes()
    path = tmp_path / "a.pcap"
    path.write_bytes(data)

    class Bad:
        def __init__(self, place: str):
            self.file = Path(place).open("rb", buffering=0)  # noqa: SIM115

        def read(self, size: int) -> bytes:
            if self.file.tell() > len(data) // 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return self.file.read(size)

        def __enter__(self) -> Bad:
            return self

        def __exit__(self, *of: object) -> None:
            self.file.close()

    with monkeypatch.context() as patch:
        patch.setattr("latpcap.reading.places.open_bytes", Bad)
        outcome = analysed(path, tmp_path / "results", len(data), path.stat().st_mtime_ns)
    row = captures(tmp_path / "results")["a.pcap"]
    assert row["damaged"] and 0 < row["frames"] < 4000
    assert outcome.changed == [str(path)]
    issues = stored(tmp_path / "results", "issues", str(row["capture"])).to_pylist()
    assert "cannot be read (input/output error)" in [i["reason"] for i in issues]
    assert lp.batch(path, tmp_path / "results", quiet=True).skipped == []


# the command


def command(*words: object) -> tuple[int, str, str]:
    done = subprocess.run([*START, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_the_command_says_what_was_done_and_what_failed(tmp_path: Path) -> None:
    source = tmp_path / "archive"
    source.mkdir()
    shutil.copy(SMALL, source / "good.pcap")
    (source / "empty.pcap").touch()
    code, out, err = command("batch", source, "-o", tmp_path / "results")
    assert code == 3 and err == ""
    lines = out.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'results'}: 1 capture, ")
    assert f"  failed: {source / 'empty.pcap'}: byte 0: file is empty" in lines
    code, out, err = command("batch", source, "-o", tmp_path / "results", "--quiet")
    assert (code, out, err) == (3, "", f"latpcap: {source / 'empty.pcap'}: byte 0: file is empty\n")
    code, out, err = command("batch", source / "good.pcap", "-o", tmp_path / "results")
    assert code == 0 and "done before: 1 file" in out


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    code, _, err = command("batch", SMALL, "-o", tmp_path, "--scheduler", "nonsense")
    assert code == 2 and err.count("\n") == 1, err
    assert command("batch", SMALL)[0] == 2
    code, _, err = command("batch", tmp_path / "nothing*.pcap", "-o", tmp_path / "out", "--quiet")
    assert (code, err) == (3, f"latpcap: {tmp_path / 'nothing*.pcap'}: nothing matches\n")


def test_progress_is_a_plain_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    from latpcap.archive.progress import Progress

    progress = Progress(3, 4_000_000, line_every_s=0.0)
    progress.seen(1000)
    progress.read(1_000_000)
    progress.finished(1)
    progress.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("latpcap: 0/3 captures, 1 of 4 MB, ") and " packets/s" in lines[0]
    assert lines[-1].startswith("latpcap: 1/3 captures, ") and ", 1 failed" in lines[-1] and lines[-1].endswith(" left")
    quiet = Progress(3, 4_000_000, quiet=True, line_every_s=0.0)
    quiet.read(1)
    assert capsys.readouterr().err == ""


# broken off in this process


def test_an_interrupted_run_counts_what_it_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs that are under way are finished, or end at their next block; the count names what was kept."""
    monkeypatch.setattr(packs, "MOST_TASKS", 2)
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


def test_results_that_cannot_be_written_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise lp.OutputError("out: cannot be written (no space left on device)")

    monkeypatch.setattr(worker.PackFiles, "put", full)
    with pytest.raises(lp.OutputError, match=r"no space left on device\); 0 captures done and kept, 1 left"):
        lp.batch(SMALL, tmp_path, quiet=True)


def test_a_worker_that_breaks_down_is_a_failure_of_its_captures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise MemoryError("too large")

    monkeypatch.setattr(worker, "analyse", broken)
    done = lp.batch([SMALL, CLIPS / "think40.pcap"], tmp_path, quiet=True)
    assert {f.reason for f in done.failed} == {"the worker broke down (MemoryError: too large)"}
    assert len(done.failed) == 2 and done.summary["captures"] == 0


class Here:
    """A client that does at once what a cluster does elsewhere; test_batch_cluster.py has a real one."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.cancelled: list[object] = []

    def submit(self, work: Any, *of: object, key: str, retries: int) -> object:
        self.keys.append(key)
        result = work(*of)
        return SimpleNamespace(key=key, result=lambda: result, release=lambda: None)

    def cancel(self, futures: list[object]) -> None:
        self.cancelled = futures


def test_another_client_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(as_completed=iter))
    monkeypatch.setattr(packs, "MOST_TASKS", 3)
    lp.batch(CLIPS, tmp_path / "here", quiet=True)
    client = Here()
    there = lp.batch(CLIPS, tmp_path / "there", client=client, quiet=True)
    assert tree(tmp_path / "here") == tree(tmp_path / "there")
    assert len(client.keys) == len(set(client.keys)) == len(client.cancelled) > 1
    assert there.summary["captures"] == len(list(CLIPS.glob("*.pcap")))

    class Ending(Here):
        def submit(self, work: Any, *of: object, key: str, retries: int) -> object:
            def result() -> None:
                raise KeyboardInterrupt

            return SimpleNamespace(key=key, result=result, release=lambda: None)

    with pytest.raises(lp.Interrupted, match="interrupted; 0 captures done and kept"):
        lp.batch(CLIPS, tmp_path / "again", client=Ending(), quiet=True)
