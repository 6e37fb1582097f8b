"""Do several batches into one place end well: one works, the others leave with a sentence, a dead one is passed?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from archives import SMALL, tree
from commands import START

import latpcap as lp
from latpcap.archive import lock, output

BUSY = rf"another batch is writing here \(process {os.getpid()} on [^)]+\); wait for its end, or give another folder"
HELD = """
import sys, time
from latpcap.archive import worker
quick = worker.analyse
def held(*of):
    print("working", flush=True)
    sys.stdin.read()
    return quick(*of)
worker.analyse = held
from latpcap.cli import main
main()
"""
"""A batch that works until its standard input ends."""


def archive(folder: Path) -> Path:
    folder.mkdir()
    for number in range(6):
        shutil.copy(SMALL, folder / f"{number}.pcap")
    return folder


def test_a_second_batch_leaves(tmp_path: Path) -> None:
    place = output.Output(str(tmp_path))
    place.prepare()
    with lock.alone(place), pytest.raises(lp.OutputError, match=BUSY):
        lp.batch(SMALL, tmp_path, quiet=True)
    assert not lp.batch(SMALL, tmp_path, quiet=True).failed
    assert not list((tmp_path / "_partial").iterdir())


def test_three_at_once_and_the_first_is_killed(tmp_path: Path) -> None:
    source, results = archive(tmp_path / "in"), tmp_path / "out"
    words = ["batch", str(source), "-o", str(results), "--quiet"]
    first = subprocess.Popen([sys.executable, "-c", HELD, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdout is not None and first.stdout.readline() == b"working\n"
    others = [subprocess.run([*START, *words], capture_output=True, text=True, check=False) for _ in range(2)]
    for other in others:
        assert (other.returncode, other.stdout) == (2, "")
        assert f"another batch is writing here (process {first.pid} on " in other.stderr
        assert other.stderr.count("\n") == 1
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert list((results / "_partial").iterdir()), "it left its lock and its scratch"
    after = subprocess.run([*START, *words], capture_output=True, text=True, check=False)
    assert (after.returncode, after.stderr) == (0, "")
    lp.batch(source, tmp_path / "fresh", quiet=True)
    assert tree(results) == tree(tmp_path / "fresh"), "and nothing partial is left"


def test_scratch_of_those_that_run_stays(tmp_path: Path) -> None:
    place = output.Output(str(tmp_path))
    with place.scratch() as mine:
        host = mine.name.partition("+")[0]
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        dead = mine.with_name(f"{host}+{ended.pid}+x")
        young, old = mine.with_name("elsewhere+1+x"), mine.with_name("elsewhere+2+x")
        for folder in (dead, young, old):
            folder.mkdir()
        os.utime(old, (0, 0))
        place.sweep()
        assert (mine.exists(), dead.exists(), young.exists(), old.exists()) == (True, False, True, False)


# where no system holds locks


@pytest.fixture(params=["folder", "memory"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A local folder as on Windows, and a store of fsspec's."""
    monkeypatch.setattr(lock, "_can_lock", lambda: False)
    monkeypatch.setattr(lock, "_PAUSE_S", 0.01)
    if request.param == "folder":
        return str(tmp_path / "out")
    pytest.importorskip("fsspec")
    return f"memory://{tmp_path.name}"


def test_a_file_is_a_lock(elsewhere: str) -> None:
    place = output.Output(elsewhere)
    place.prepare()
    with lock.alone(place), pytest.raises(lp.OutputError, match=BUSY):
        lp.batch(SMALL, elsewhere, quiet=True)
    assert not lp.batch(SMALL, elsewhere, quiet=True).failed
    assert place.states("_partial") == {}


def test_a_dead_batch_is_passed(elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = output.Output(elsewhere)
    place.prepare()
    place.write("_partial/lock-dead", b"process 1 on another")
    with pytest.raises(lp.OutputError, match="process 1 on another"):
        lp.batch(SMALL, elsewhere, quiet=True)
    monkeypatch.setattr(lock, "LEASE_S", 0.05)
    time.sleep(0.1)
    assert not lp.batch(SMALL, elsewhere, quiet=True).failed
    assert place.states("_partial") == {}


def test_a_long_batch_renews_its_file(elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "LEASE_S", 2.0)
    place = output.Output(elsewhere)
    place.prepare()
    with lock.alone(place):
        [(name, begun)] = place.states("_partial").items()
        deadline = time.monotonic() + 20
        while place.states("_partial").get(name, begun) == begun and time.monotonic() < deadline:
            time.sleep(0.02)
        assert place.states("_partial")[name] > begun
        with pytest.raises(lp.OutputError, match=BUSY), lock.alone(output.Output(elsewhere)):
            pass


def test_of_many_at_the_same_moment_never_two_work(elsewhere: str) -> None:
    place, together, most, done = output.Output(elsewhere), [0], [0], []
    place.prepare()
    begin, guard = threading.Barrier(4), threading.Lock()

    def work() -> None:
        begin.wait()
        try:
            with lock.alone(place):
                with guard:
                    together[0] += 1
                    most[0] = max(most[0], together[0])
                time.sleep(0.05)
                with guard:
                    together[0] -= 1
                done.append("worked")
        except lp.OutputError:
            done.append("left")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4 and most[0] <= 1
