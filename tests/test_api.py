"""Does latpcap answer in Python as its docstrings say: sources, views, data frames, errors, `why`?"""

from __future__ import annotations

import bz2
import gzip
import io
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from makepcap import Talk, answer, get, pcap
from packers import PACKERS

import latpcap as lp
from latpcap import _core

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CLIPS = SAMPLES / "clips"
SMALL = CLIPS / "split-nagle.pcap"


@cache
def read(name: str) -> lp.Capture:
    return lp.read(SAMPLES / name)


# sources


def test_read_takes_paths_bytes_and_files() -> None:
    data = SMALL.read_bytes()
    with SMALL.open("rb") as file:
        captures = [lp.read(s) for s in (SMALL, str(SMALL), data, bytearray(data), memoryview(data), file)]
        assert not file.closed
    captures.append(lp.read(io.BytesIO(data)))
    assert [c.name for c in captures] == [*[str(SMALL)] * 2, *["<bytes>"] * 3, str(SMALL), "<stream>"]
    assert len({str(c.why()).partition(":")[2] for c in captures}) == 1


@pytest.mark.parametrize("source", [7, None, io.StringIO("text"), [7]], ids=["number", "none", "text file", "list"])
def test_read_refuses_other_things(source: Any) -> None:
    with pytest.raises(TypeError, match="expected a"):
        lp.read(source)


@pytest.mark.parametrize("kind", PACKERS)
def test_read_unpacks(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "capture.dat"  # told by content, not by name
    path.write_bytes(PACKERS[kind](SMALL.read_bytes()))
    for source in (path, path.read_bytes(), io.BytesIO(path.read_bytes())):
        assert lp.read(source).arrow("events").equals(lp.read(SMALL).arrow("events"))


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz"])
def test_archives_in_several_members(kind: str) -> None:
    data, pack = SMALL.read_bytes(), PACKERS[kind]
    assert lp.read(pack(data[:7000]) + pack(data[7000:])).frames == 164


@pytest.mark.parametrize("kind", PACKERS)
def test_an_archive_that_ends_early_gives_its_rows(kind: str) -> None:
    data = (SAMPLES / "nginx-good.pcap").read_bytes()
    packed = bz2.compress(data, 1) if kind == "bz2" else PACKERS[kind](data)  # bz2 gives 100 kB at once, or 900
    capture = lp.read(packed[: len(packed) // 2])
    assert 0 < capture.frames < 4000
    (row,) = [r for r in capture.arrow("issues").to_pylist() if r["layer"] == kind]
    assert row["kind"] == "damaged" and row["offset"] <= len(data) and row["file"] == "<bytes>"
    assert capture.damage


@pytest.mark.parametrize("kind", ["plain", *PACKERS])
def test_files_that_give_less_than_asked(kind: str) -> None:
    """A pipe or a socket may give one byte at first."""

    class Trickle(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1 if self.tell() < 8 else min(size or 0, 999))

    data = SMALL.read_bytes()
    assert lp.read(Trickle(PACKERS[kind](data) if kind != "plain" else data)).frames == 164


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "file is empty"),
        (b"# a text, no capture\n", "not a pcap or pcapng file"),
        (SMALL.read_bytes()[:20], "header is cut"),
        (gzip.compress(b"hello, hello, hello", mtime=0), "not a pcap or pcapng file"),
        (gzip.compress(b"", mtime=0)[:12], "ends before"),
    ],
)
def test_what_is_no_capture_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(lp.CaptureError, match=reason) as caught:
        lp.read(data)
    problem = caught.value
    assert problem.file == "<bytes>" and reason in problem.reason and isinstance(problem, lp.LatpcapError)
    assert str(problem).startswith("<bytes>: ") and problem.layer


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(lp.CaptureError, match="no such file"):
        lp.read(tmp_path / "none.pcap")
    with pytest.raises(lp.CaptureError, match="is a directory"):
        lp.read(tmp_path)


# views


def test_reprs_are_one_line() -> None:
    capture = read("nginx-latency.pcap")
    assert repr(capture) == "nginx-latency.pcap: 4,966 frames, 41 TCP streams, 960 exchanges, 1.00 s"
    assert repr(capture.stream(24)) == (
        "tcp.stream 24: 192.168.0.2:54902 to 192.168.0.30:8080, 124 segments, 24 exchanges"
    )
    one = Talk()
    one.client(0, flags="S")
    assert repr(lp.read(pcap(one.tape))) == "<bytes>: 1 frame, 1 TCP stream, 0 exchanges, 0.00 s"


def test_html_is_escaped(tmp_path: Path) -> None:
    talk = Talk()
    talk.open()
    talk.client(5, get("/<script>alert(1)</script>&x"))
    talk.server(6, b"".join(answer(5)))
    path = tmp_path / "<img src=x>&.pcap"
    path.write_bytes(pcap(talk.tape))
    capture = lp.read(path)
    for thing in (capture, capture.stream(0), capture.why(), capture.why(exchange=0)):
        text = thing._repr_html_()
        assert "<script>" not in text and "<img" not in text
    assert "&lt;script&gt;alert(1)" in capture.why(exchange=0)._repr_html_()
    assert "&lt;img src=x&gt;&amp;.pcap" in capture._repr_html_()


def test_a_stream_is_a_view_of_its_capture() -> None:
    capture = read("nginx-latency.pcap")
    stream = capture.stream(24)
    for name in ("events", "streams", "exchanges"):
        rows = [r for r in capture.arrow(name).to_pylist() if r["stream"] == 24]
        assert stream.arrow(name).to_pylist() == rows
    mine = {e["exchange"] for e in stream.arrow("exchanges").to_pylist()}
    assert len(mine) == 24
    assert set(stream.causes["exchange"]) == mine and len(stream.events) == 124
    assert str(stream.why()) == str(capture.why(stream=24))
    number = stream.arrow("exchanges")["exchange"][1].as_py()
    assert str(stream.why(exchange=1)) == str(capture.why(exchange=number))
    for name in ("evidence", "issues"):
        assert stream.arrow(name).equals(capture.arrow(name))


def test_what_is_not_there_is_named() -> None:
    capture = read("nginx-latency.pcap")
    for number in (41, -1, 10**12):
        with pytest.raises(IndexError, match=rf"no stream {number}: nginx-latency.pcap has 41 TCP streams"):
            capture.stream(number)
        with pytest.raises(IndexError, match="no stream"):
            capture.why(stream=number)
        with pytest.raises(lp.LatpcapError, match="no stream"):
            capture.stream(number)
    for number in (961, -1, 10**12):
        with pytest.raises(IndexError, match=rf"no exchange {number}: those of nginx-latency.pcap are 0 to 960"):
            capture.why(exchange=number)
    with pytest.raises(IndexError, match=r"no exchange 24: tcp.stream 24 has 24 exchanges, counted from 0"):
        capture.stream(24).why(exchange=24)
    for view in (capture, capture.stream(0)):
        with pytest.raises(KeyError, match="no table 'packets'; there are events, streams"):
            view.arrow("packets")


@pytest.mark.parametrize("number", [2**32, 2**64, -(2**64), 10**30])
def test_numbers_beyond_the_columns_are_not_there_either(number: int) -> None:
    capture = read("probes.pcap")
    with pytest.raises(IndexError, match="no stream"):
        capture.why(stream=number)
    with pytest.raises(IndexError, match="no exchange"):
        capture.why(exchange=number)


def test_data_frames_keep_types_and_nulls() -> None:
    for capture in (read("nginx-latency.pcap"), read("nginx-good.pcap"), read("probes.pcap"), lp.read(pcap([]))):
        for name in _core.TABLES:
            table, frame = capture.arrow(name), getattr(capture, name)
            assert list(frame.columns) == table.column_names and len(frame) == table.num_rows
            for field in table.schema:
                dtype, nulls = frame[field.name].dtype, table[field.name].null_count
                assert frame[field.name].isna().sum() == nulls, field.name
                if pa.types.is_integer(field.type):
                    assert str(dtype) == ("Int64" if field.nullable else "int64"), (name, field.name, dtype)
                if pa.types.is_timestamp(field.type):
                    assert str(dtype) == "datetime64[ns, UTC]", (name, field.name, dtype)
                if pa.types.is_boolean(field.type):
                    assert str(dtype) == ("boolean" if field.nullable else "bool")
    events = read("nginx-latency.pcap").events
    data = events[events["len"] > 0]
    assert data["mss"].isna().all() and not (data["mss"] == 0).any()
    good = read("nginx-good.pcap").exchanges
    assert good.loc[~good["complete"], "latency_ms"].isna().all() and good["status"].isna().sum() == 19


def test_an_exchange_of_a_stream_is_counted_there() -> None:
    capture = read("nginx-latency.pcap")
    assert str(capture.why(stream=24, exchange=2)) == str(capture.stream(24).why(exchange=2))
    assert capture.why(stream=24, exchange=2).to_dict()["stream"] == 24
    assert capture.why(stream=0, exchange=0).to_dict()["method"] == "connect"  # where there is no request
    path = read("more/path40.pcap")  # its set-ups have rows
    assert path.why(stream=0, exchange=0).to_dict()["protocol"] == "http"
    with pytest.raises(IndexError, match="has 20 exchanges, counted from 0"):
        path.why(stream=0, exchange=20)
