"""Is trouble with a capture, a worker or the results one sentence, and costs no more than it must?"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import archives
import pytest
from archives import CLIPS, SMALL, as_nobody, captures, stored

import latpcap as lp
from latpcap.archive import packs, worker
from latpcap.archive.model import Options, Part, Task, identity


def analysed(path: Path, results: Path, size: int, mtime_ns: int) -> worker.Outcome:
    task = Task(identity(str(path)), (Part(str(path), size, mtime_ns),))
    (outcome,) = worker.analyse(packs.pack([task]), Options(str(results), version=lp.__version__, schema="1"))
    return outcome


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    """The kernel's own limit on the length of a file stands for a disk that is full."""
    run = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    run += "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\nfrom latpcap.cli import main\nmain()"
    words = ["batch", str(archives.SAMPLES / "nginx-good.pcap"), "-o", str(tmp_path / "results"), "--quiet"]
    done = subprocess.run([sys.executable, "-c", run, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert (
        " of nginx-good.pcap" in done.stderr
        and "cannot be written (" in done.stderr
        and "file too large" in done.stderr
    )
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


def test_results_that_cannot_be_written_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise lp.OutputError("out: cannot be written (no space left on device)")

    monkeypatch.setattr(worker.PackFiles, "put", full)
    with pytest.raises(lp.OutputError, match=r"no space left on device\); 0 captures done and kept, 1 left"):
        lp.batch(SMALL, tmp_path, quiet=True)


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


@pytest.mark.parametrize("broken_name", ["analyse", "_split_into_runs"])
def test_a_breakdown_shows_itself_when_asked(
    broken_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(worker, broken_name, broken)
    lp.batch(SMALL, tmp_path / "plain", quiet=True)
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("LATPCAP_TRACEBACK", "1")
    lp.batch(SMALL, tmp_path / "shown", quiet=True)
    assert capsys.readouterr().err.count("Traceback") == 1


def test_a_worker_that_breaks_down_is_a_failure_of_its_captures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(worker, "analyse", broken)
    done = lp.batch([SMALL, CLIPS / "think40.pcap"], tmp_path, quiet=True)
    assert {f.reason for f in done.failed} == {"the worker broke down (ZeroDivisionError: a bug)"}
    assert len(done.failed) == 2 and done.summary["captures"] == 0


@pytest.mark.parametrize("place", ["_row", "_read"])
def test_a_lack_of_memory_is_no_fault_of_a_capture(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(worker._Capture, place, lacking)
    with pytest.raises(lp.OutputError, match=r"^out of memory; 0 captures done and kept, 2 left"):
        lp.batch([SMALL, CLIPS / "think40.pcap"], tmp_path, quiet=True)
    monkeypatch.undo()
    assert lp.batch([SMALL, CLIPS / "think40.pcap"], tmp_path, quiet=True).summary["captures"] == 2


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
        patch.setattr("latpcap.reading.locations.open_bytes", Bad)
        outcome = analysed(path, tmp_path / "results", len(data), path.stat().st_mtime_ns)
    row = captures(tmp_path / "results")["a.pcap"]
    assert row["damaged"] and 0 < row["frames"] < 4000
    assert outcome.changed == [str(path)]
    issues = stored(tmp_path / "results", "issues", str(row["capture"])).to_pylist()
    assert "cannot be read (input/output error)" in [i["reason"] for i in issues]
    assert lp.batch(path, tmp_path / "results", quiet=True).skipped == []
