"""Does a capture read the same from wherever it comes, and cut into files as whole?"""

from __future__ import annotations

import bz2
import ctypes
import gc
import gzip
import io
import lzma
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from makepcap import EPOCH_NS, Talk, answer, get, pcap, pcapng
from packers import PACKERS

import latpcap as lp
from latpcap.reading import locations, unpack

SAMPLE = Path(__file__).resolve().parents[1] / "sample_pcaps" / "nginx-latency.pcap"
ALIKE = ("events", "streams", "exchanges", "causes", "evidence", "probes")


def cut(data: bytes, pieces: int) -> list[bytes]:
    """A little-endian pcap cut into files of as many records each, with a file header each."""
    at, starts = 24, []
    while at < len(data):
        starts.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    size = -(-len(starts) // pieces)
    edges = [*starts[::size], len(data)]
    return [data[:24] + data[a:b] for a, b in pairwise(edges)]


def same(one: lp.Capture, other: lp.Capture) -> None:
    for name in ALIKE:
        assert one.arrow(name).equals(other.arrow(name)), name


def talk(ms: float = 0.0, port: int = 40_000) -> list[Any]:
    t = Talk()
    t.ends = type(t.ends)(client=("10.0.0.1", port))
    t.open(ms)
    t.client(ms + 10, get())
    head, body = answer(1000)
    t.server(ms + 12, head + body)
    t.client(ms + 13)
    return t.tape


@pytest.fixture
def ring(tmp_path: Path) -> list[Path]:
    paths = []
    for n, part in enumerate(cut(SAMPLE.read_bytes(), 10)):
        paths.append(tmp_path / f"ring_{n:02}.pcap")
        paths[-1].write_bytes(part)
    assert len(paths) == 10
    return paths


def test_ten_rotated_files_are_the_whole(ring: list[Path]) -> None:
    whole = lp.read(SAMPLE)
    parts = lp.read(ring[::-1])
    same(parts, whole)
    assert parts.files == [str(path) for path in ring]  # in time order, however they were given
    assert (parts.frames, parts.seconds) == (whole.frames, whole.seconds)
    assert parts.issues.empty
    assert parts.name == f"{ring[0]} and 9 more"


def test_as_glob_and_as_file_objects(ring: list[Path], tmp_path: Path) -> None:
    whole = lp.read(SAMPLE)
    same(lp.read(str(tmp_path / "ring_0*.pcap")), whole)
    same(lp.read(tmp_path / "**" / "ring_??.pcap"), whole)
    mixed: list[Any] = [ring[0].open("rb"), io.BytesIO(ring[1].read_bytes()), ring[2].read_bytes(), *ring[3:]]
    same(lp.read(reversed(mixed)), whole)  # an iterator, too
    mixed[0].close()
    for n, path in enumerate(ring):
        path.write_bytes([gzip.compress, bz2.compress, lzma.compress][n % 3](path.read_bytes()))
    same(lp.read(ring), whole)


def test_frames_can_be_fetched_from_every_file(ring: list[Path]) -> None:
    whole, parts = lp.read(SAMPLE), lp.read(ring)
    for frame in (1, 497, 498, whole.frames):
        assert parts.record(frame) == whole.record(frame)
    assert [r.frame for r in parts.records()] == list(range(1, whole.frames + 1))


def test_each_file_has_its_own_format() -> None:
    """Byte order, resolution, container, link type."""
    tapes = [talk(ms, 40_000 + n) for n, ms in enumerate((0.0, 100.0, 200.0, 300.0))]
    whole = lp.read(pcap([s for tape in tapes for s in tape], nanos=True))
    parts = [pcap(tapes[0], big=True), pcapng(tapes[1]), pcap(tapes[2], nanos=True), pcapng(tapes[3], big=True)]
    same(lp.read([parts[2], parts[0], parts[3], parts[1]]), whole)


def test_a_damaged_member_does_not_lose_the_others(ring: list[Path], tmp_path: Path) -> None:
    whole = lp.read(SAMPLE)
    ring[2].write_bytes(ring[2].read_bytes()[:-10])  # the last record is cut
    ring[4].write_bytes(b"this was never a capture file at all")
    ring[6].write_bytes(gzip.compress(ring[6].read_bytes())[:-4000])
    ring[8].write_bytes(b"")
    missing = tmp_path / "ring_99.pcap"
    cap = lp.read([*ring, missing])
    rows = {Path(r["file"]).name: r for r in cap.arrow("issues").to_pylist() if r["kind"] in ("damaged", "refused")}
    assert sorted(rows) == ["ring_02.pcap", "ring_04.pcap", "ring_06.pcap", "ring_08.pcap", "ring_99.pcap"]
    assert rows["ring_02.pcap"]["reason"].startswith("record data is cut")
    assert rows["ring_02.pcap"]["offset"] < ring[2].stat().st_size  # counted in its file
    assert (rows["ring_04.pcap"]["kind"], rows["ring_04.pcap"]["offset"]) == ("refused", 0)
    assert rows["ring_06.pcap"]["layer"] in ("gzip", "pcap")
    assert rows["ring_99.pcap"]["reason"] == "no such file"
    assert whole.frames - 3 * 497 - 1 <= cap.frames < whole.frames


def test_none_of_them_can_be_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"nothing of the kind, but long enough")
    with pytest.raises(lp.CaptureError, match=r"bad\.pcap: byte 0: not a pcap"):
        lp.read([bad, bad])
    with pytest.raises(lp.CaptureError, match=r"none\.pcap: no such file"):
        lp.read([tmp_path / "none.pcap", tmp_path / "neither.pcap"])
    with pytest.raises(lp.CaptureError, match="no file matches"):
        lp.read(tmp_path / "*.none")
    with pytest.raises(lp.CaptureError, match="is empty"):
        lp.read([])


def test_a_name_with_a_star_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "odd[1]*.pcap"
    path.write_bytes(pcap(talk()))
    assert lp.read(path).frames == 6


def test_urls(ring: list[Path], tmp_path: Path) -> None:
    whole = lp.read(SAMPLE)
    same(lp.read(f"file://{SAMPLE}"), whole)
    same(lp.read(f"file://{tmp_path}/ring_*.pcap"), whole)
    assert lp.read(f"file://{SAMPLE}").record(7) == whole.record(7)
    for url, reason in [
        (f"file://{tmp_path}/none.pcap", "no such file"),
        (f"file://{tmp_path}/none_*.pcap", "no file matches"),
        ("nosuchscheme://host/x.pcap", "cannot be opened"),
    ]:
        with pytest.raises(lp.CaptureError, match=reason):
            lp.read(url)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_an_archive_of_files_is_named(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The decoy: a capture of somebody who sends a tar file holds the same bytes."""
    (tmp_path / "a.pcap").write_bytes(pcap(talk()))
    for kind in ("zip", "tar"):
        made = Path(shutil.make_archive(str(tmp_path / "made"), kind, tmp_path, "a.pcap"))
        with pytest.raises(lp.CaptureError, match=f"is a {kind} archive, expected a capture file: unpack it"):
            lp.read(pack(made.read_bytes()))
    sent = Talk()
    sent.open()
    sent.client(10.0, (tmp_path / "made.tar").read_bytes()[:1400])
    assert lp.read(pack(pcap(sent.tape))).frames == 4


def test_names_that_a_shell_would_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.pcap").write_bytes(pcap(talk()))
    assert lp.read("~/a.pcap").frames == lp.read("~/*.pcap").frames == 6
    with pytest.raises(lp.CaptureError, match="is no name of a file"):
        lp.read("")


class Failing(io.BytesIO):
    """A file object of somebody else's that breaks half way, in its own words."""

    def __init__(self, data: bytes, problem: Exception):
        super().__init__(data)
        self.problem = problem

    def read(self, size: int | None = -1) -> bytes:
        if data := super().read(size):
            return data
        raise self.problem


@pytest.mark.parametrize("problem", [RuntimeError("The server left"), EOFError(), OSError(5, "Input/output error")])
def test_a_file_object_that_breaks_keeps_its_rows(problem: Exception) -> None:
    cap = lp.read(Failing(pcap(talk())[:-5], problem))
    assert cap.frames == 5
    said = [row["reason"] for row in cap.arrow("issues").to_pylist() if row["layer"] == "file"]
    words = {RuntimeError: "the server left", EOFError: "EOFError", OSError: "input/output error"}[type(problem)]
    assert said == [f"cannot be read ({words})"]
    with pytest.raises(lp.CaptureError, match=r"cannot be read \("):
        lp.read(Failing(b"", problem))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bz2", "xz"])
def test_zeros_that_pad_a_compressed_file(pack: Callable[[bytes], bytes]) -> None:
    data = pcap(talk())
    padded = pack(data[:300]) + pack(data[300:]) + bytes(20_000)
    assert lp.read(padded).frames == 6
    assert lp.read(padded).issues.empty


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz", "zstd"])
def test_bombs_end(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of no bytes, unfolding for ever: the rows up to the cap, and why there are no more."""
    monkeypatch.setattr("latpcap.reading.unpack._ALWAYS_UNPACKED_BYTES", 1 << 20)
    monkeypatch.setattr("latpcap.reading.unpack._MAX_RATIO", 100)
    bomb = pcap([]) + bytes(50 << 20)
    packed = {
        "gzip": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    }[codec](bomb)
    cap = lp.read(packed)
    reasons = cap.issues.reason.tolist()
    assert any("1,000" in r or "100 times its size (a decompression bomb?)" in r for r in reasons), reasons
    assert 0 < cap.frames < 1 << 20
    assert EPOCH_NS > (cap.last_ns or 0) >= 0


class Heap(ctypes.Structure):
    """What glibc says of its heap."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ["arena", "free_chunks", "fast_chunks", "maps", "mapped", "_", "fast_free", "in_use", "free", "top"]
    ]


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="no heap that tells what is in use"
)
@pytest.mark.parametrize("codec", sorted(PACKERS))
def test_files_that_end_too_early_leave_no_memory_behind(codec: str) -> None:
    packed = PACKERS[codec](pcap(talk()))[:-10]
    heap = ctypes.CDLL(None).mallinfo2
    heap.restype = Heap

    def held(times: int) -> int:
        for _ in range(times):
            with pytest.raises(lp.CaptureError):
                list(unpack.unpacked(iter([packed]), "cut"))
        gc.collect()
        told = heap()
        return int(told.in_use + told.mapped)

    before = held(20)
    assert held(200) < before + (1 << 20)


def test_damage_is_not_unpacked_to_its_end() -> None:
    """What follows a place from which nothing can be read is not read."""

    class Counted(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            out = super().read(size)
            self.taken += len(out)
            return out

    damaged = pcap(talk()) + b"\xff" * 40 + bytes(4 << 20)
    file = Counted(damaged)
    cap = lp.read(file)
    assert (cap.frames, cap.damage != []) == (6, True)
    assert file.taken < 1 << 20


def test_a_file_system_that_says_nothing_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: str) -> None:
        raise OSError

    monkeypatch.setattr("latpcap.reading.locations._filesystem", refuse)
    with pytest.raises(OSError, match=r"no file system for nowhere:// \(OSError; "):
        locations.resolve("nowhere://a/b.pcap")
