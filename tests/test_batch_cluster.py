"""Do a real Dask cluster and a real S3 server give what this machine gives? Skipped where they are not installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as fs
import pytest
from archives import CLIPS, PACKERS, SAMPLES, SMALL, rotated, same, tree
from commands import START

import latpcap as lp
from latpcap.archive import lock, output

distributed = pytest.importorskip("distributed", reason="needs the extra dask")


def archive(folder: Path) -> Path:
    """Captures, a rotated one, and files that cannot be read."""
    folder.mkdir()
    for clip in sorted(CLIPS.glob("*.pcap")):
        shutil.copy(clip, folder)
    (folder / "packed.pcap.zst").write_bytes(PACKERS["zst"](SMALL.read_bytes()))
    for number, part in enumerate(rotated((SAMPLES / "nginx-good.pcap").read_bytes(), 3)):
        (folder / f"dump.pcap{number}").write_bytes(part)
    (folder / "empty.pcap").touch()
    return folder


# Dask


@pytest.fixture(scope="module")
def client() -> Iterator[object]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_cluster_gives_the_same(client: object, tmp_path: Path) -> None:
    source = archive(tmp_path / "in")
    here = lp.batch(source, tmp_path / "here", quiet=True)
    there = lp.batch(source, tmp_path / "there", client=client, quiet=True)
    assert tree(tmp_path / "here") == tree(tmp_path / "there")
    assert there.summary == here.summary and there.failed == here.failed
    again = lp.batch(source, tmp_path / "there", client=client, quiet=True)
    assert len(again.skipped) == there.summary["files"] + len(there.failed)
    assert (
        str(lp.open_results(tmp_path / "there").why()).splitlines()[1:]
        == (str(lp.open_results(tmp_path / "here").why()).splitlines()[1:])
    )


def test_a_worker_that_dies_costs_nothing(client, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The nanny starts another worker, and the task is tried again."""
    source = tmp_path / "in"
    source.mkdir()
    for number in range(30):
        shutil.copy(SAMPLES / "nginx-good.pcap", source / f"{number}.pcap")
    before = set(client.run(os.getpid).values())
    run = [sys.executable, "-c", "from latpcap.cli import main; main()", "batch", str(source), "-o"]
    run += [str(tmp_path / "there"), "--scheduler", client.scheduler.address, "--quiet"]
    child = subprocess.Popen(run)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("there/_tasks/*.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(min(before), signal.SIGKILL)
    assert child.wait(timeout=120) == 0
    lp.batch(source, tmp_path / "here", quiet=True)
    left = {name: data for name, data in tree(tmp_path / "there").items() if not name.startswith("_partial/")}
    assert left == tree(tmp_path / "here")


def test_a_scheduler_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        words = [*START, "batch", str(SMALL), "-o", "nowhere", "--scheduler", address]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith(f"latpcap: {address}: no Dask scheduler")


# S3


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket on a server of our own, with the options that find it."""
    pytest.importorskip("moto", reason="needs a local S3 server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("s3") / "log").open("w")
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/"):
                break
            time.sleep(0.1)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
                patch.setenv(name, value)
            options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
            where, _ = fs.FileSystem.from_uri(f"s3://archive?{options}")
            where.create_dir("archive")
            yield f"s3://archive/{{}}?{options}"
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()


def upload(folder: Path, url: str) -> None:
    where, path = fs.FileSystem.from_uri(url)
    for file in folder.iterdir():
        with where.open_output_stream(f"{path}/{file.name}", compression=None) as sink:
            sink.write(file.read_bytes())


def test_s3_to_s3(bucket: str, tmp_path: Path) -> None:
    source = archive(tmp_path / "in")
    upload(source, bucket.format("in"))
    here = lp.batch(source, tmp_path / "here", quiet=True)
    there = lp.batch(bucket.format("in"), bucket.format("out"), quiet=True)
    assert [f.reason for f in there.failed] == [f.reason for f in here.failed] == ["file is empty"]
    assert {k: v for k, v in there.summary.items() if k != "passed_over"} == {
        k: v for k, v in here.summary.items() if k != "passed_over"
    }
    stored, local = lp.open_results(bucket.format("out")), lp.open_results(tmp_path / "here")
    for table in ("events", "streams", "exchanges", "causes", "evidence", "probes"):
        for name in ("split-nagle.pcap", "dump.pcap0"):
            mine = getattr(stored.slice(file=name), table).to_arrow()
            assert same(mine, getattr(local.slice(file=name), table).to_arrow()), (table, name)
    assert str(stored.why()).splitlines()[1:] == str(local.why()).splitlines()[1:]
    names = stored.captures.to_pandas().files.map(lambda files: files[0])
    assert all(name.startswith("s3://archive/in/") and "?" not in name for name in names)
    again = lp.batch(bucket.format("in"), bucket.format("out"), quiet=True)
    assert len(again.skipped) == there.summary["files"] + 1 and again.summary["frames"] == there.summary["frames"]


def test_globs_and_changes_on_s3(bucket: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(SMALL, folder / "a.pcap")
    shutil.copy(SMALL, folder / "b.pcap")
    (folder / "notes.txt").write_text("no capture")
    upload(folder, bucket.format("glob/deep"))
    for pattern in ("glob/**/*.pcap", "glob/deep/[ab].pcap", "glob"):
        done = lp.batch(bucket.format(pattern).replace("?[", "["), tmp_path / "out", quiet=True)
        assert done.summary["captures"] == 2 and not done.failed, pattern
    assert len(done.skipped) == 2
    time.sleep(1.1)  # the server's clock has seconds
    upload(folder, bucket.format("glob/deep"))
    assert lp.batch(bucket.format("glob"), tmp_path / "out", quiet=True).skipped == []
    missing = lp.batch(bucket.format("glob/none.pcap"), tmp_path / "out", quiet=True)
    assert [str(f) for f in missing.failed] == ["s3://archive/glob/none.pcap: no such file"]


def test_one_capture_is_read_from_s3(bucket: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(SMALL, folder / "a.pcap")
    (folder / "b.pcap.zst").write_bytes(PACKERS["zst"](SMALL.read_bytes()))
    parts = rotated((SAMPLES / "nginx-good.pcap").read_bytes(), 3)
    for number, part in enumerate(parts):
        (folder / f"dump.pcap{number}").write_bytes(part)
    upload(folder, bucket.format("read"))
    here = lp.read(SMALL)
    for name in ("a.pcap", "b.pcap.zst"):
        there = lp.read(bucket.format(f"read/{name}"))
        assert all(same(there.arrow(table), here.arrow(table)) for table in ("events", "exchanges", "causes"))
        assert there.title == name and str(there.why()).splitlines()[1:] == str(here.why()).splitlines()[1:]
    assert there.record(2).data == here.record(2).data
    whole, ring = lp.read(SAMPLES / "nginx-good.pcap"), lp.read(bucket.format("read/dump.pcap*"))
    assert len(ring.files) == 3 and same(ring.arrow("events"), whole.arrow("events"))
    with pytest.raises(lp.CaptureError, match="no such file"):
        lp.read(bucket.format("read/none.pcap"))


def test_a_cluster_on_s3(client: object, bucket: str, tmp_path: Path) -> None:
    source = archive(tmp_path / "in")
    upload(source, bucket.format("cluster"))
    done = lp.batch(bucket.format("cluster"), bucket.format("cluster-out"), client=client, quiet=True)
    here = lp.batch(source, tmp_path / "here", quiet=True)
    assert done.summary["exchanges"] == here.summary["exchanges"] and len(done.failed) == 1


def test_a_bucket_that_is_not_there(bucket: str) -> None:
    with pytest.raises(lp.OutputError, match=r"s3://other/out.*cannot be written"):
        lp.batch(SMALL, bucket.replace("archive/", "other/").format("out").replace("&allow_bucket_creation=true", ""))


def test_of_several_batches_at_once_on_s3_one_works(bucket: str, tmp_path: Path) -> None:
    source, url = archive(tmp_path / "in"), bucket.format("busy")
    place = output.Output(url)
    place.prepare()
    busy = "archive/busy.*: another batch is writing here"
    with lock.alone(place), pytest.raises(lp.OutputError, match=busy):
        lp.batch(source, url, quiet=True)
    working, done = threading.Lock(), []

    def work() -> None:
        try:
            with lock.alone(output.Output(url)):
                done.append(working.acquire(blocking=False))
                time.sleep(0.2)
                working.release()
        except lp.OutputError:
            done.append(None)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 3 and False not in done, "never two at once"
    assert lp.batch(source, url, quiet=True).summary["files"] > 0
    assert place.states("_partial") == {}
