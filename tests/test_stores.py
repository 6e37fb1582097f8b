"""Do fsspec's file systems, here the one in memory, behave like folders for captures and for results?"""

from __future__ import annotations

import datetime as dt
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from archives import CLIPS, SMALL, same

import latpcap as lp
from latpcap.cli import main

fsspec = pytest.importorskip("fsspec")
from latpcap.reading import fsspec_files, locations  # noqa: E402 - needs fsspec

NAMES = ("gap43-nodelay.pcap", "quickack.pcap", "think40.pcap")


@pytest.fixture
def store() -> Iterator[Any]:
    """A store in memory with captures."""
    memory = fsspec.filesystem("memory")
    for name in NAMES:
        memory.pipe(f"/archive/in/{name}", (CLIPS / name).read_bytes())
    yield memory
    memory.rm("/archive", recursive=True)


def test_captures_are_read(store: Any) -> None:
    assert (
        lp.read("memory://archive/in/think40.pcap")
        .arrow("events")
        .equals(lp.read(CLIPS / "think40.pcap").arrow("events"))
    )
    assert sorted(lp.read("memory://archive/in/[qt]*.pcap").files) == [
        "memory://archive/in/quickack.pcap",
        "memory://archive/in/think40.pcap",
    ]
    for url, why in (("in/none.pcap", "no such file"), ("in/none*", "no file matches"), ("none/*.pcap", "no file")):
        with pytest.raises(lp.CaptureError, match=why):
            lp.read(f"memory://archive/{url}")


def test_results_lie_there_like_in_a_folder(store: Any, tmp_path: Path) -> None:
    there = lp.batch("memory://archive/in", "memory://archive/out", quiet=True)
    here = lp.batch([CLIPS / name for name in NAMES], tmp_path / "out", quiet=True)
    assert there.summary == here.summary and there.failed == []
    stored, local = lp.open_results("memory://archive/out"), lp.open_results(tmp_path / "out")
    for table in ("events", "streams", "exchanges", "causes", "evidence"):
        for name in NAMES:
            mine = getattr(stored.slice(file=name), table).to_arrow()
            assert same(mine, getattr(local.slice(file=name), table).to_arrow()), (table, name)
    assert str(stored.why()).splitlines()[1:] == str(local.why()).splitlines()[1:]
    assert lp.compare("memory://archive/out", str(tmp_path / "out")).to_dict()["before"]["exchanges"] > 0
    assert not store.find("/archive/out/_partial")


def test_a_second_run_does_what_is_missing(store: Any) -> None:
    lp.batch("memory://archive/in", "memory://archive/out", quiet=True)
    assert len(lp.batch("memory://archive/in", "memory://archive/out", quiet=True).skipped) == 3
    store.rm(next(name for name in store.find("/archive/out/causes")))
    assert lp.batch("memory://archive/in", "memory://archive/out", quiet=True).skipped == []
    assert lp.open_results("memory://archive/out").failed == []


def test_one_capture_is_replaced(store: Any) -> None:
    """By another of the same size: its time of change tells."""
    lp.batch("memory://archive/in", "memory://archive/out", quiet=True)
    data = bytearray(store.cat("/archive/in/quickack.pcap"))
    data[24] ^= 1
    store.pipe("/archive/in/quickack.pcap", bytes(data))
    again = lp.batch("memory://archive/in", "memory://archive/out", quiet=True)
    assert sorted(again.skipped) == [f"memory://archive/in/{name}" for name in (NAMES[0], NAMES[2])]
    assert again.summary["captures"] == lp.open_results("memory://archive/out").captures.count() == 3


def test_the_command_reads_them(
    store: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ("batch memory://archive/in -o memory://archive/out --quiet", "why memory://archive/out"):
        monkeypatch.setattr("sys.argv", ["latpcap", *words.split()])
        main()
    assert capsys.readouterr().out.splitlines()[-1] != "" and not capsys.readouterr().err


def test_whatever_a_file_system_raises_is_one_sentence(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(store)
    lp.batch("memory://archive/in", "memory://archive/out", quiet=True)

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("Token\nexpired")

    with monkeypatch.context() as patch:
        patch.setattr(kind, "_open", refuse)
        with pytest.raises(lp.CaptureError, match=r"cannot be opened \(RuntimeError: Token expired\)"):
            lp.read("memory://archive/in/quickack.pcap")
        with pytest.raises(lp.OutputError, match=r"cannot be written \(RuntimeError: Token expired\)"):
            lp.batch("memory://archive/in", "memory://archive/more", quiet=True)
        with pytest.raises(lp.CaptureError, match="Token expired"):
            lp.open_results("memory://archive/out").exchanges.to_arrow()
    monkeypatch.setattr(kind, "info", refuse)
    failed = lp.batch("memory://archive/in", tmp_path, quiet=True).failed
    assert [f.reason for f in failed] == ["cannot be listed (RuntimeError: Token expired)"]


def test_a_store_that_breaks_while_results_are_read(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error, and no advice to remove what may be whole."""
    lp.batch("memory://archive/in", "memory://archive/out", quiet=True)
    results = lp.open_results("memory://archive/out")
    results.captures.to_arrow()

    def refuse(*_: object) -> None:
        raise RuntimeError("The network is gone")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFile.read", refuse)
    with pytest.raises(lp.CaptureError, match=r"cannot be read \(the network is gone\); ask again when it can be"):
        results.exchanges.to_arrow()
    with pytest.raises(lp.CaptureError, match=r"memory://archive/out/.* \(the network is gone\)"):
        lp.open_results("memory://archive/out").why()


def test_an_outage_of_one_file_is_no_smaller_answer(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lp.batch("memory://archive/in", "memory://archive/out", quiet=True)
    results = lp.open_results("memory://archive/out")
    opened = type(store)._open

    def refuse(self: Any, path: str, *words: Any, **options: Any) -> Any:
        if "causes" in path:
            raise ConnectionResetError(104, "Connection reset by peer")
        return opened(self, path, *words, **options)

    monkeypatch.setattr(type(store), "_open", refuse)
    with pytest.raises(lp.CaptureError, match="connection reset by peer"):
        results.why()
    assert results.failed == [] or all("reset" not in failure.reason for failure in results.failed)


def test_a_silent_store_of_s3s_kind_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "_ANSWER_S", 0.2)
    monkeypatch.setattr(locations, "_ATTEMPTS", 1)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = f"scheme=http&region=us-east-1&endpoint_override=127.0.0.1%3A{silent.getsockname()[1]}"
        begin = time.monotonic()
        with pytest.raises(lp.CaptureError, match=r"s3://bucket/a.pcap: cannot be opened \(.*NETWORK_CONNECTION"):
            lp.read(f"s3://bucket/a.pcap?{options}")
        assert time.monotonic() - begin < 20  # the store's own patience is minutes


def test_a_store_that_needs_what_is_not_installed() -> None:
    with pytest.raises(lp.CaptureError, match=r"no file system for nosuch:// \("):
        lp.read("nosuch://host/a.pcap")


WHEN = dt.datetime(2026, 11, 21, 6, 7, 32, tzinfo=dt.UTC)
NS = int(WHEN.timestamp()) * 10**9


@pytest.mark.parametrize(
    "info",
    [
        {"mtime": NS / 1e9},
        {"LastModified": WHEN},
        {"created": WHEN.replace(tzinfo=None)},
        {"updated": "2026-11-21T06:07:32Z"},
    ],
)
def test_every_way_to_say_when_a_file_changed(info: dict[str, Any]) -> None:
    assert fsspec_files.changed_ns(info) == NS


def test_a_version_stands_for_a_time() -> None:
    one, other = fsspec_files.changed_ns({"ETag": "a"}), fsspec_files.changed_ns({"ETag": "b", "mtime": None})
    assert one != other and one == fsspec_files.changed_ns({"ETag": "a"}) and one is not None and 0 <= one < 2**63
    assert fsspec_files.changed_ns({}) is None and fsspec_files.changed_ns({"updated": "soon"}) not in (None, one)


def test_a_folder_by_file_url_is_that_folder(tmp_path: Path) -> None:
    lp.batch(SMALL, f"file://{tmp_path}/out", quiet=True)
    assert lp.open_results(tmp_path / "out").captures.count() == 1
    assert [e.kind for e in locations.listing(f"file://{tmp_path}/out/_tasks")] == ["file"]


def test_a_store_that_says_nothing_is_given_up(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lp.batch("memory://archive/in", "memory://archive/out", quiet=True)
    results = lp.open_results("memory://archive/out")
    monkeypatch.setattr(fsspec_files, "SILENT_S", 0.2)
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFile.read", lambda *_: threading.Event().wait(20))
    begin = time.monotonic()
    with pytest.raises(lp.CaptureError, match="the store sent nothing for 0 s"):
        results.why()
    with pytest.raises(lp.CaptureError, match="the store sent nothing for 0 s"):
        lp.read("memory://archive/in/quickack.pcap")
    monkeypatch.setattr(type(store), "info", lambda *_, **__: threading.Event().wait(20))
    with pytest.raises(lp.CaptureError, match="the store sent nothing for 0 s"):
        lp.read("memory://archive/in/quickack.pcap")
    assert time.monotonic() - begin < 10
