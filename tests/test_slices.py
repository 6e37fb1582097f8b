"""Does a slice hold the same packets, to the nanosecond, and do latpcap, dpkt and tshark read it as the capture?"""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from pathlib import Path

import dpkt
import pyarrow as pa
import pytest
from makepcap import Ends, Talk, get, pcap, pcapng
from randomtalk import crowd

import latpcap as lp
from latpcap.reading import pcapng_blocks

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
STALLS = SAMPLES / "nginx-latency.pcap"
CASES = Path(__file__).parent / "cases"
FRAMES = {"frame", "acks_frame", "release_frame"}


def shown(events: pa.Table) -> dict[str, list[object]]:
    """The columns that a slice of whole streams must not change, frame numbers counted within it."""
    frames = {frame: n for n, frame in enumerate(events["frame"].to_pylist())}
    out = {}
    for name in events.column_names:
        values = events[name].to_pylist()
        if name in FRAMES:
            values = [None if v is None else frames[v] for v in values]
        out[name] = values
    streams: dict[object, int] = {}
    out["stream"] = [streams.setdefault(s, len(streams)) for s in out["stream"]]
    return out


@pytest.mark.parametrize("suffix", [".pcap", ".pcapng", ".pcap.gz"])
@pytest.mark.parametrize("stream", [0, 24, 40])
def test_a_slice_has_the_stream_s_events(tmp_path: Path, suffix: str, stream: int) -> None:
    cap = lp.read(STALLS)
    path = tmp_path / f"slice{suffix}"
    one = cap.stream(stream)
    assert one.to_pcap(path) == len(one.events)
    again = lp.read(path)
    assert shown(again.arrow("events")) == shown(one.arrow("events"))
    assert [r.data for r in again.records()] == [r.data for r in cap.records(one.events["frame"])]


@pytest.mark.parametrize("seed", range(4))
def test_every_stream_of_random_conversations(tmp_path: Path, seed: int) -> None:
    """Ends of their own for each connection: what latpcap says of holds is learnt per pair of addresses."""
    tape = []
    for segment in crowd(seed, 12):
        ends = Ends((f"10.0.{segment.ends.client[1] - 40_000}.1", segment.ends.client[1]), segment.ends.server)
        tape.append(type(segment)(**{**segment.__dict__, "ends": ends}))
    cap = lp.read(pcapng(tape) if seed % 2 else pcap(tape))
    for row in cap.arrow("streams").to_pylist():
        one = cap.stream(row["stream"])
        one.to_pcap(tmp_path / "s.pcapng")
        again = lp.read(tmp_path / "s.pcapng")
        mine, its = shown(again.arrow("events")), shown(one.arrow("events"))
        if its["reused_ports"] != mine["reused_ports"]:  # the stream that had the ports before is not in the slice
            its["reused_ports"] = mine["reused_ports"] = []
        assert mine == its


def test_times_to_the_nanosecond_lengths_and_comments(tmp_path: Path) -> None:
    talk = Talk()
    talk.open(0.000_123)
    talk.client(10.000_007, get())
    raw = pcapng(talk.tape)
    cap = lp.read(raw)
    cap.to_pcap(tmp_path / "s.pcapng")
    with open(tmp_path / "s.pcapng", "rb") as file:
        packets = list(dpkt.pcapng.Reader(file))
    assert [bytes(data) for _, data in packets] == [s.frame() for s in talk.tape]
    again = lp.read(tmp_path / "s.pcapng")
    assert [r.time_ns for r in again.records()] == [s.time_ns for s in talk.tape]
    assert [c.partition(":")[0] for c in comments(tmp_path / "s.pcapng")] == [f"frame {n}" for n in range(1, 5)]
    cap.stream(0).to_pcap(tmp_path / "s.pcap")
    assert lp.read(tmp_path / "s.pcap").format == "pcap (ns)"
    assert [r.time_ns for r in lp.read(tmp_path / "s.pcap").records()] == [s.time_ns for s in talk.tape]
    lp.read(STALLS).stream(3).to_pcap(tmp_path / "us.pcap")
    assert lp.read(tmp_path / "us.pcap").format == "pcap"
    lp.read(pcap(talk.tape, snaplen=60)).to_pcap(tmp_path / "cut.pcap")
    last = list(lp.read(tmp_path / "cut.pcap").records())[3]
    assert (len(last.data), last.original_len) == (60, len(talk.tape[3].frame()))


def comments(path: Path) -> list[str]:
    """The packets' comments by walking the blocks; dpkt's reader keeps them to itself."""
    raw, at, out = path.read_bytes(), 0, []
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        if kind == 6:
            block = dpkt.pcapng.EnhancedPacketBlockLE(raw[at : at + length])
            out.append(block.opts[0].text)
        at += length
    return out


def test_comments_say_what_the_packet_shows(tmp_path: Path) -> None:
    cap = lp.read(STALLS)
    one = cap.stream(24)
    one.to_pcap(tmp_path / "s.pcapng")
    found = dict(zip(one.events["frame"], comments(tmp_path / "s.pcapng"), strict=True))
    assert found[76] == "frame 76"
    assert found[480] == (
        "frame 480: 42.567 ms delayed_ack inside nagle before it (client, proven; evidence: frames 414, 479, 480)"
    )
    assert found[479] == "frame 479: evidence of 42.567 ms delayed_ack inside nagle before frame 480"


def test_a_comment_has_the_grade_of_its_wait(tmp_path: Path) -> None:
    capture = lp.read(CASES / "answer_lost_before_the_capture" / "capture.pcap")
    capture.to_pcap(tmp_path / "s.pcapng")
    written = [c for c in comments(tmp_path / "s.pcapng") if "241.000 ms server_think before it" in c]
    assert ["(server, suspected;" in c for c in written] == [True, False]
    assert "(server, proven;" in written[1]


def test_a_slice_of_rotated_files_keeps_every_digit_and_no_file_is_overwritten(tmp_path: Path) -> None:
    talk = Talk()
    talk.open(0.000_123)
    talk.client(10, get())
    (tmp_path / "1.pcap").write_bytes(pcap(talk.tape[:2], nanos=True))
    (tmp_path / "2.pcap").write_bytes(pcap(talk.tape[2:]))
    cap = lp.read([tmp_path / "1.pcap", tmp_path / "2.pcap"])
    times = [r.time_ns for r in cap.records()]
    assert times[0] == talk.tape[0].time_ns and len(times) == 4
    for name, part in (("all.pcap", cap), ("one.pcap", cap.stream(0)), ("one.pcapng", cap.stream(0))):
        assert part.to_pcap(tmp_path / name) == 4
        assert [r.time_ns for r in lp.read(tmp_path / name).records()] == times
    with pytest.raises(lp.OutputError, match="is the capture itself"):
        cap.to_pcap(tmp_path / "2.pcap")


def test_what_a_file_cannot_hold_is_said(tmp_path: Path) -> None:
    cap = lp.read(STALLS)
    path = tmp_path / "a.pcap"
    shutil.copy(STALLS, path)
    with pytest.raises(lp.OutputError, match=r"a\.pcap: is the capture itself"):
        lp.read(path).to_pcap(path)
    assert path.stat().st_size == STALLS.stat().st_size
    with pytest.raises(lp.OutputError, match=r"unknown suffix '\.txt'; known are \.pcap, \.pcapng"):
        cap.to_pcap(tmp_path / "a.txt")
    with pytest.raises(lp.OutputError, match="No such file or directory"):
        cap.to_pcap(tmp_path / "no" / "a.pcap")
    frame = get() * 5000
    long = lp.read(long_pcapng(frame))
    with pytest.raises(lp.OutputError, match=r"frame 1 has 270,000 bytes, beyond pcap: write \.pcapng"):
        long.to_pcap(tmp_path / "long.pcap")
    assert not (tmp_path / "long.pcap").exists()
    assert long.to_pcap(tmp_path / "long.pcapng") == 1
    assert next(lp.read(tmp_path / "long.pcapng").records()).data == long.record(1).data


def long_pcapng(frame: bytes) -> bytes:
    frame = frame[:270_000].ljust(270_000, b"x")
    body = struct.pack("<IIIII", 0, 0, 0, len(frame), len(frame)) + frame
    block = struct.pack("<II", 6, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    return pcapng([]) + block


def test_several_link_types_need_pcapng(tmp_path: Path) -> None:
    frame = Talk()
    frame.open()
    ip = frame.tape[0].frame()[14:]
    head = pcapng([])
    second = struct.pack("<IIHHII", 1, 20, 101, 0, 0, 20)
    blocks = b""
    for interface, data in ((0, frame.tape[0].frame()), (1, ip)):
        body = struct.pack("<IIIII", interface, 0, 7, len(data), len(data)) + data + b"\0" * (-len(data) % 4)
        blocks += struct.pack("<II", 6, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    cap = lp.read(head + second + blocks)
    assert [(r.link, r.interface) for r in cap.records()] == [(1, 0), (101, 1)]
    with pytest.raises(lp.OutputError, match=r"pcap holds one link type, these are 1 and 101: write \.pcapng"):
        cap.to_pcap(tmp_path / "a.pcap")
    cap.to_pcap(tmp_path / "a.pcapng")
    assert [(r.link, r.interface, r.data) for r in lp.read(tmp_path / "a.pcapng").records()] == [
        (r.link, r.interface, r.data) for r in cap.records()
    ]


def test_an_empty_capture_is_copied_as_one(tmp_path: Path) -> None:
    for name in ("a.pcap", "a.pcapng"):
        assert lp.read(pcap([])).to_pcap(tmp_path / name) == 0
        assert lp.read(tmp_path / name).frames == 0


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("suffix", [".pcap", ".pcapng", ".pcapng.gz"])
def test_tshark_opens_a_slice_without_a_complaint(tmp_path: Path, suffix: str) -> None:
    cap = lp.read(pcapng(crowd(7, 6)))
    path = tmp_path / f"s{suffix}"
    cap.stream(1).to_pcap(path)
    plain = path
    if suffix.endswith(".gz"):
        plain = tmp_path / "plain.pcapng"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
    words = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.comment"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    assert not said
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    events = cap.stream(1).arrow("events").select(["frame", "time"]).to_pylist()
    assert [row[0].replace(".", "") for row in rows] == [str(e["time"].value) for e in events]
    if "pcapng" in suffix:
        assert [row[1].split(":")[0] for row in rows] == [f"frame {e['frame']}" for e in events]
        assert comments(plain) == [row[1] for row in rows]


def annotated(order: str) -> bytes:
    """Two sections: words and options of others in every place that a pcapng file has for them."""

    def option(code: int, value: bytes) -> bytes:
        return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + size + body + size

    out = b""
    for section, (talk_at, name) in enumerate(((0.0, b"eth7"), (500.0, b"wlan9"))):
        head = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)
        out += block(0x0A0D0D0A, head + option(1, b"of section %d" % section) + option(2, b"a chip") + bytes(4))
        speed = option(8, struct.pack(order + "Q", 10**9))
        body = struct.pack(order + "HHI", 1, 0, 0) + option(2, name) + speed + option(9, b"\x06")
        out += block(1, body + bytes(4))
        out += block(10, struct.pack(order + "II", 0x544C534B, 6) + b"a key!")
        out += block(0x77, b"nobody knows this") + block(0x40000BAD, struct.pack(order + "I", 4711) + b"not to copy")
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + section), ("10.0.0.2", 80)))
        talk.open(talk_at)
        talk.client(talk_at + 10, get())
        for number, segment in enumerate(talk.tape):
            data, us = segment.frame(), segment.time_ns // 1000
            fields = struct.pack(order + "IIIII", 0, us >> 32, us & 0xFFFFFFFF, len(data), len(data))
            options = option(1, b"first of %d" % number) + option(1, b"second") + option(2, struct.pack(order + "I", 7))
            out += block(6, fields + data + bytes(-len(data) % 4) + options + bytes(4))
    return out


@pytest.mark.parametrize("order", ["<", ">"])
def test_words_and_options_of_others_stay(order: str, tmp_path: Path) -> None:
    (tmp_path / "in.pcapng").write_bytes(annotated(order))
    cap = lp.read(tmp_path / "in.pcapng")
    cap.stream(1).to_pcap(tmp_path / "out.pcapng")
    data = (tmp_path / "out.pcapng").read_bytes()
    again = lp.read(data)
    assert not again.damage and len(again.events) == 4
    for there in (b"of section 0", b"of section 1", b"a chip", b"wlan9", b"first of 3", b"second", b"frame 10"):
        assert there in data, there
    assert struct.pack("<HHQ", 8, 8, 10**9) in data and data.count(struct.pack("<HHI", 2, 4, 7)) == 4
    assert (b"nobody knows this" in data) == (order == "<")  # whose numbers could not be turned round
    for gone in (b"a key!", b"not to copy", b"eth7"):
        assert gone not in data, gone
    assert pcapng_blocks.read_extras([[data]]).frames == 4
    cap.to_pcap(tmp_path / "all.pcapng")
    whole = (tmp_path / "all.pcapng").read_bytes()
    assert b"eth7" in whole and b"wlan9" in whole and lp.read(whole).frames == 8
    cap.stream(1).to_pcap(tmp_path / "anonymous.pcapng", anonymise=True)
    for secret in (b"of section", b"a chip", b"wlan", b"second", b"nobody"):
        assert secret not in (tmp_path / "anonymous.pcapng").read_bytes()


@pytest.mark.parametrize("path", sorted(CASES.glob("*/capture.pcapng")), ids=lambda path: path.parent.name)
def test_frames_are_counted_as_the_core_does(path: Path) -> None:
    data = path.read_bytes()
    pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    assert (
        pcapng_blocks.read_extras([pieces]).frames == lp.read(data).frames == pcapng_blocks.read_extras([[data]]).frames
    )
