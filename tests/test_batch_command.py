"""What do `latpcap batch` and `compare` say on the terminal, and with which exit code?"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from archives import CLIPS, SMALL
from commands import run

import latpcap as lp
from latpcap.archive import public
from latpcap.archive.model import Failure
from latpcap.archive.report import Batch
from latpcap.errors import Interrupted


def test_what_was_done(tmp_path: Path) -> None:
    source, results = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    shutil.copy(SMALL, source / "whole.pcap")
    (source / "cut.pcap").write_bytes(SMALL.read_bytes()[:3000])
    (source / "notes.txt").touch()
    words = ["batch", source, "-o", results, "--jobs", 1, "--no-events", "--no-series"]
    code, out, err = run(*words)
    first, *lines = out.splitlines()
    assert code == 0 and "Traceback" not in err and first.startswith(f"{results}: 2 captures, ")
    assert lines == [
        "  passed over: 1 file whose names are no capture's",
        f"  damaged: {source / 'cut.pcap'}; its rows up to the damage are kept, issues says where",
    ]
    code, out, _ = run(*words)
    assert code == 0 and "  done before: 2 files\n" in out
    code, out, _ = run("why", results)
    assert code == 0 and out.startswith("out (2 captures): ")
    code, _, err = run("why", results, "--stream", 0)
    assert code == 2 and "numbered within a capture" in err.replace("\n", " ").replace("│", "")


@pytest.mark.parametrize("quiet", [True, False])
def test_what_failed(quiet: bool, tmp_path: Path) -> None:
    words = ["batch", SMALL, tmp_path / "none.pcap", "-o", tmp_path / "out", *(["--quiet"] if quiet else [])]
    code, out, err = run(*words)
    failure = f"{tmp_path / 'none.pcap'}: no such file"
    assert code == 3
    assert (err, out) == (f"latpcap: {failure}\n", "") if quiet else f"  failed: {failure}\n" in out


def test_a_scheduler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run("batch", SMALL, "-o", tmp_path, "--scheduler", "tcp://127.0.0.1:1")
    assert code == 2 and err == "latpcap: --scheduler needs Dask: pip install 'latpcap[dask]'\n"


def test_an_interrupted_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> Batch:
        raise Interrupted("interrupted; 1 capture done and kept")

    monkeypatch.setattr(public, "batch", interrupted)
    code, _, err = run("batch", SMALL, "-o", tmp_path)
    assert (code, err) == (130, "latpcap: interrupted; 1 capture done and kept\n")


def test_many_failures_are_counted(tmp_path: Path) -> None:
    done: Batch = lp.batch(SMALL, tmp_path, quiet=True)
    done.failed += [Failure(f"{number}.pcap", "no such file") for number in range(25)]
    done.changed.append("growing.pcap")
    lines = str(done).splitlines()
    assert lines[-1] == "  failed: 5 more" and sum("  failed: " in line for line in lines) == 21
    assert "  changed while it was read: growing.pcap; run again" in lines
    assert done._repr_html_().count("growing.pcap") == 1


def test_compare_fails_on_a_rule() -> None:
    words = ["compare", CLIPS / "split-nodelay.pcap", SMALL]
    code, out, err = run(*words)
    assert (code, err) == (0, "") and "p99" in out
    code, out, err = run(*words, "--json", "--fail-on", "p99_ms>20", "--fail-on", "p99_ms>9999")
    assert code == 1 and err.startswith("latpcap: ") and err.count("\n") == 1 and isinstance(json.loads(out), dict)
    code, _, err = run(*words, "--fail-on", "nonsense")
    assert code == 2 and "--fail-on" in err


def test_the_command_says_what_was_done_and_what_failed(tmp_path: Path) -> None:
    source = tmp_path / "archive"
    source.mkdir()
    shutil.copy(SMALL, source / "good.pcap")
    (source / "empty.pcap").touch()
    code, out, err = run("batch", source, "-o", tmp_path / "results")
    assert code == 3 and err == ""
    lines = out.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'results'}: 1 capture, ")
    assert f"  failed: {source / 'empty.pcap'}: byte 0: file is empty" in lines
    code, out, err = run("batch", source, "-o", tmp_path / "results", "--quiet")
    assert (code, out, err) == (3, "", f"latpcap: {source / 'empty.pcap'}: byte 0: file is empty\n")
    code, out, err = run("batch", source / "good.pcap", "-o", tmp_path / "results")
    assert code == 0 and "done before: 1 file" in out


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    code, _, err = run("batch", SMALL, "-o", tmp_path, "--scheduler", "nonsense")
    assert code == 2 and err.count("\n") == 1, err
    assert run("batch", SMALL)[0] == 2
    code, _, err = run("batch", tmp_path / "nothing*.pcap", "-o", tmp_path / "out", "--quiet")
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


def test_a_bar_goes_on_to_what_is_done_behind_the_captures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from latpcap.archive.progress import Progress

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress(3, 4_000_000)
    progress.read(1_000_000)
    progress.finished(1, tasks=2, unseen_bytes=2_000_000)
    progress.doing("findings of all")
    progress.close()
    shown = capsys.readouterr().err
    assert "0/3 captures" in shown and "findings of all: 100%" in shown and "2/3 captures" in shown
