"""Does every sample, cut and corrupted at random, give its rows up to the damage or one line that says why not?"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st
from makepcap import Talk, answer, get, pcap_of, pcapng
from packers import PACKERS
from test_links import TAPE, WRAPPINGS

import latpcap as lp
from latpcap.tables import of_stretches, read_stretches

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
PATHS = [path for path in sorted(SAMPLES.rglob("*.pcap")) if path.stat().st_size < 1 << 20]
ARCHIVES = {"plain": bytes, **PACKERS}
few = settings(deadline=None, max_examples=20, database=None)
more = settings(few, max_examples=120)
EDIT = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))
EDITS = st.lists(EDIT, min_size=1, max_size=8)


@cache
def sample(path: Path) -> bytes:
    """The first 64 KiB of a sample: a cut is damage enough."""
    with open(path, "rb") as f:
        return f.read(1 << 16)


def corrupted(data: bytes, edits: list[tuple[float, int]], *, sparing: int = 0) -> bytes:
    out = bytearray(data)
    for share, value in edits:
        at = sparing + int(share * (len(out) - sparing))
        out[at] = value
    return bytes(out)


def sound(data: Any) -> lp.Capture | None:
    """What must hold of whatever can be read; None where one line said why nothing can."""
    try:
        cap = lp.read(data)
    except lp.CaptureError as refused:
        assert refused.reason and "\n" not in str(refused)
        return None
    events, streams = cap.arrow("events"), cap.arrow("streams").to_pylist()
    assert events.num_rows <= cap.frames
    assert events.num_rows >= sum(s["client_packets"] + s["server_packets"] for s in streams)
    frames = events["frame"].to_pylist()
    assert frames == sorted(frames) and (not frames or 1 <= frames[0] <= frames[-1] <= cap.frames)
    spent: dict[int, int] = {}
    for row in of_stretches(cap.arrow("causes")).select(["exchange", "start", "end"]).cast(NUMBERS).to_pylist():
        spent[row["exchange"]] = spent.get(row["exchange"], 0) + row["end"] - row["start"]
    for row in read_stretches(cap).select(["exchange", "start", "end"]).cast(NUMBERS).to_pylist():
        if row["exchange"] in spent:
            assert spent[row["exchange"]] == row["end"] - row["start"]
    for row in cap.arrow("issues").to_pylist():
        assert row["reason"] and row["count"] >= 1 and (row["frame"] or 1) <= cap.frames + 1
    assert "\x00" not in str(cap.why()) and cap.damage is not None
    return cap


NUMBERS = pa.schema([("exchange", pa.uint32()), ("start", pa.int64()), ("end", pa.int64())])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@few
@given(share=st.floats(0, 1))
def test_cut(path: Path, share: float) -> None:
    data = sample(path)
    part = data[: int(share * len(data))]
    cap, whole = sound(part), sound(data)
    assert (cap is None) == (len(part) < 24)
    assert whole is not None
    if cap is not None:
        assert cap.frames <= whole.frames
        assert cap.arrow("events")["seq"].to_pylist() == whole.arrow("events")["seq"].to_pylist()[: len(cap.events)]


@more
@given(st.sampled_from(PATHS), EDITS, st.integers(0, 40))
def test_corrupted(path: Path, edits: list[tuple[float, int]], sparing: int) -> None:
    sound(corrupted(sample(path), edits, sparing=sparing))


@more
@given(st.sampled_from(sorted(WRAPPINGS)), EDITS, st.integers(0, 400))
def test_corrupted_under_rare_link_types(name: str, edits: list[tuple[float, int]], snaplen: int) -> None:
    link, wrap = WRAPPINGS[name]
    frames = ((s.time_ns, wrap(s.frame()[14:])) for s in TAPE)
    data = pcap_of(frames, snaplen=snaplen or 65_535)
    sound(corrupted(data[:20] + struct.pack("<I", link) + data[24:], edits, sparing=24))


@few
@given(st.sampled_from(sorted(ARCHIVES)), st.sampled_from(PATHS[:4]), EDITS, st.floats(0, 1))
def test_corrupted_and_cut_while_packed(kind: str, path: Path, edits: list[tuple[float, int]], share: float) -> None:
    packed = ARCHIVES[kind](sample(path))
    sound(corrupted(packed, edits))
    sound(packed[: int(share * len(packed))])


@few
@given(st.lists(st.tuples(st.sampled_from(PATHS[:6]), EDITS), min_size=2, max_size=4))
def test_corrupted_members(members: list[tuple[Path, list[tuple[float, int]]]]) -> None:
    sound([corrupted(sample(path), edits) for path, edits in members])


@pytest.mark.parametrize("late", [2**62, 2**63 - 1, 2**62 - 1])
def test_instants_that_lie_too_far_apart_do_not_wrap(late: int) -> None:
    """Years beyond 2116 are not trusted: differences of two instants would not fit into 64 bits."""
    talk = Talk()
    talk.open()
    for number in range(10):
        talk.client(10.0 * number + 1, get())
        for piece in answer(200):
            talk.server(10.0 * number + 5, piece)
    begun, middle = talk.tape[0].time_ns, len(talk.tape) // 2
    tape = [replace(s, time_ns=late if n >= middle else s.time_ns - begun) for n, s in enumerate(talk.tape)]
    capture = lp.read(pcapng(tape))
    said = [row["reason"] for row in capture.arrow("issues").to_pylist()]
    assert ("time stamp is out of range" in said) == (late > 2**62 - 1)
    exchanges, causes = capture.arrow("exchanges").to_pylist(), capture.arrow("causes").to_pylist()
    assert len(exchanges) == 10
    for row in exchanges:
        spent = sum(c["duration_ms"] for c in causes if c["exchange"] == row["exchange"])
        assert row["latency_ms"] >= 0 and spent == pytest.approx(row["latency_ms"])
    told = capture.why().to_dict()
    assert 0 <= told["p50_ms"] <= told["p99_ms"] and capture.seconds >= 0


def test_instants_before_1970_are_printed_as_tshark_prints_them(tmp_path: Path) -> None:
    """By an if_tsoffset of -9 s: the parts of a second stand behind the seconds, whatever their sign."""

    def block(kind: int, body: bytes) -> bytes:
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size

    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack("<HHIHHq", 1, 0, 0, 14, 8, -9) + bytes(4))
    talk = Talk()
    talk.open()
    for number, segment in enumerate(talk.tape):
        frame = segment.frame()
        head = struct.pack("<IIIII", 0, 0, 1 + 10 * number, len(frame), len(frame))
        data += block(6, head + frame + bytes(-len(frame) % 4))
    (tmp_path / "a.pcapng").write_bytes(data)
    code, text, _ = run("flow", tmp_path / "a.pcapng", "--time", "epoch")
    assert code == 0 and [line[1:10] for line in text.splitlines()[2::2]] == ["-9.000001", "-9.000011", "-9.000021"]
