"""Are Network Monitor's files read as tshark reads them? Every version, written here; skipped without tshark."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from test_links import PLAIN, TAPE
from tsharkfacts import needs_tshark
from wrappings import ETHERNET, SNAP, WIFI

import latpcap as lp

START = (2023, 11, 2, 14, 22, 13, 20, 5)
SINCE_1601 = 116_444_736_000_000_000
VERSIONS = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)]
MEDIA = {
    "raw IP": (9, b""),
    "token ring": (2, b"\x10\x40" + ETHERNET[:12] + SNAP),
    "FDDI": (3, b"\x50" + ETHERNET[:12] + SNAP),
    "radio": (6, b"\2\x20\0" + bytes(29) + WIFI),
    "converted": (0xE000 + 113, b"\0\0\0\1\0\6" + bytes(8) + b"\x08\0"),
    "message": (0xE080, WIFI),
}
NOTES = [(0xFFE0, b"event"), (0xFFFB, b"adapters"), (0xFFFC, b""), (0xFFFD, b"networks"), (0xFFFE, b""), (0xFFFF, b"f")]


def netmon(version: tuple[int, int], frames: list[tuple[int, int, bytes]], media: int = 1) -> bytes:
    """A file of frames with their media and times in ns."""
    out, table = bytearray(128), []
    for ns, medium, data in frames:
        table.append(len(out))
        since = (ns - TAPE[0].time_ns) // 1000
        sizes = (len(data) + 9, len(data))
        out += struct.pack("<IHH", since // 1000, *sizes) if version[0] == 1 else struct.pack("<QII", since, *sizes)
        trailer = struct.pack("<HIQB", medium, 0xFFFFFFFF, ns // 100 + SINCE_1601, 0)
        out += data + trailer[: {(2, 1): 2, (2, 2): 6, (2, 3): 15}.get(version, 0)]
    place = (len(out), 4 * len(table))
    magic = b"RTSS" if version[0] == 1 else b"GMBU"
    out[:32] = magic + bytes(version[::-1]) + struct.pack("<H8HII", media, *START, *place)
    return bytes(out) + struct.pack(f"<{len(table)}I", *table)


def same_as_tshark(path: Path, data: bytes, without: int = 0) -> lp.Capture:
    path.write_bytes(data)
    names = ["frame.number", "frame.time_epoch", "frame.len", "tcp.srcport", "tcp.seq", "tcp.len", "tcp.stream"]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *(x for n in names for x in ("-e", n))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"TZ": "UTC", "PATH": "/usr/bin:/bin"}
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    theirs = [[int(text.replace(".", "")) for text in line] for line in lines if line[-1]]
    for line in theirs:
        line[2] -= without  # the radio's header, which is no part of the record here
    cap = lp.read(path)
    sizes = {record.frame: record.original_len for record in cap.records()}
    events = cap.arrow("events")
    rows = events.set_column(1, "time", events["time"].cast("int64")).to_pylist()
    fields = ("frame", "time", "sport", "seq", "len", "stream")
    ours = [[row[n] for n in fields[:2]] + [sizes[row["frame"]]] + [row[n] for n in fields[2:]] for row in rows]
    assert ours == theirs
    assert cap.frames == len(lines)
    return cap


@needs_tshark
@pytest.mark.parametrize("version", VERSIONS)
def test_versions(version: tuple[int, int], tmp_path: Path) -> None:
    cap = same_as_tshark(tmp_path / "a.cap", netmon(version, [(s.time_ns, 1, s.frame()) for s in TAPE]))
    assert cap.format == "netmon" and cap.issues.empty
    assert cap.exchanges.response_bytes.tolist() == PLAIN.exchanges.response_bytes.tolist()


@needs_tshark
@pytest.mark.parametrize("name", MEDIA)
def test_media(name: str, tmp_path: Path) -> None:
    medium, head = MEDIA[name]
    frames = [(s.time_ns, medium, head + s.frame()[14:]) for s in TAPE]
    without = 32 if name == "radio" else 0
    for version in ((1, 1), (2, 1), (2, 3)):
        if version[0] == 2 or medium < 12:
            cap = same_as_tshark(tmp_path / "a.cap", netmon(version, frames, medium % 12), without)
            assert len(cap.events) == len(TAPE)


@needs_tshark
def test_notes_are_frames_as_in_wireshark(tmp_path: Path) -> None:
    notes = [(TAPE[0].time_ns, medium, data) for medium, data in NOTES]
    frames = [(s.time_ns, 1, s.frame()) for s in TAPE]
    for version in ((2, 1), (2, 2), (2, 3)):
        cap = same_as_tshark(tmp_path / "a.cap", netmon(version, notes[:3] + frames + notes[3:]))
        assert cap.frames == len(TAPE) + 3


def test_a_file_without_its_end_gives_its_frames() -> None:
    data = netmon((2, 1), [(s.time_ns, 1, s.frame()) for s in TAPE])
    cap = lp.read(data[: -4 * len(TAPE)])
    assert cap.arrow("events")["seq"].equals(PLAIN.arrow("events")["seq"])
    assert cap.issues.reason.tolist() == ["frame table is cut: needed 28 bytes, had 0"]
