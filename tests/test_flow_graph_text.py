"""Is the flow graph's text tshark's, byte for byte?

`tests/flow_text/NAME.txt` is what tshark 4.0 wrote of a capture that this file makes or that lies in the repository;
`LATPCAP_WRITE_TSHARK=1 python -m pytest` writes them anew. Where tshark is installed, `test_wireshark.py` compares
samples and cases, too.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from makepcap import Ends, Segment, Talk, pcap
from tsharkfacts import needs_tshark

import latpcap as lp
from latpcap.plot.flow.packet_rows import TextRow, as_text

ROOT = Path(__file__).resolve().parents[1]
STORED = Path(__file__).with_name("flow_text")
SAMPLES = ROOT / "sample_pcaps"
LETTERS = {"relative": "r", "delta": "d", "date": "ud", "epoch": "e"}


def talks(*pairs: tuple[str, str], apart_ms: float = 1.5) -> list[Segment]:
    """A handshake of each pair of addresses."""
    tape: list[Segment] = []
    for number, (client, server) in enumerate(pairs):
        Talk(ends=Ends((client, 40_000 + number), (server, 80)), tape=tape).open(number * apart_ms)
    return sorted(tape, key=lambda segment: segment.time_ns)


def flags() -> bytes:
    """Every flag, labels longer than an arrow, arrows over one and two columns, to an address itself, a late time."""
    tape: list[Segment] = []
    ends = [
        Ends(("10.0.0.1", 40_000), ("10.0.0.2", 80)),
        Ends(("10.0.0.1", 40_001), ("10.0.0.3", 8)),
        Ends(("2001:db8:1111:2222:3333:4444:5555:6666", 65_535), ("2001:db8:1111:2222:3333:4444:5555:7777", 443)),
        Ends(("127.0.0.1", 1), ("127.0.0.1", 2)),
        Ends(("10.0.0.3", 5), ("10.0.0.2", 6)),
    ]
    for number, pair in enumerate(ends):
        talk = Talk(ends=pair, tape=tape)
        talk.open(number * 1.5)
        talk.client(number * 1.5 + 100, b"x" * 1234, flags="FPUEA")
        talk.client(number + 999_990, b"x" * 1234, flags="U")
        talk.server(number + 99_999_990, flags="RA")
    return pcap(sorted(tape, key=lambda segment: segment.time_ns))


def crowd() -> bytes:
    """45 addresses, of which tshark gives 40 a column; arrows into, out of and between the others."""
    pairs = [("10.1.0.1", f"10.0.0.{n}") for n in range(45)]
    pairs += [(f"10.0.0.{n + 41}", f"10.0.0.{n + 1}") for n in range(3)] + [("10.0.0.43", "10.0.0.42")]
    tape = talks(*pairs)
    return pcap([s for s in tape if s.flags == "S" or s.ends.client[0] != "10.1.0.1"])


def titles() -> bytes:
    """Addresses of 7 to 39 characters on both lines of titles."""
    hosts = ["2001:db8::5", "2001:db8:1:2:3::1", "2001:db8:1:2:33::1", "2001:db8:1:2:333::1", "2001:db8:1:2222:333::1"]
    hosts += [f"2001:1db8:1111:2222:3333:4444:5555:6{n}66" for n in range(3)]
    return pcap(talks(*zip(hosts, [*hosts[1:], "2001:db8::7"], strict=True)))


def nanoseconds() -> bytes:
    return pcap(talks(("10.0.0.1", "10.0.0.2")), nanos=True)


def clock(resolution: int) -> Callable[[], bytes]:
    """A pcapng file whose clock ticks 10^-resolution s, or 2^-n with the top bit set."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size

    def make() -> bytes:
        per_second = 2 ** (resolution & 127) if resolution & 128 else 10**resolution
        out = [
            block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
            block(1, struct.pack("<HHIHHB3xHH", 1, 0, 0, 9, 1, resolution, 0, 0)),
        ]
        talk = Talk()
        talk.open(0.123456)
        talk.client(4_877.654321)
        for segment in talk.tape:
            ticks, frame = segment.time_ns * per_second // 1_000_000_000, segment.frame()
            head = struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
            out.append(block(6, head + frame))
        return b"".join(out)

    return make


def set_back() -> bytes:
    """A clock that was set back: later frames are earlier than the first, from which times count."""
    tape = talks(("10.0.0.1", "10.0.0.2"))
    return pcap([tape[2], tape[0], tape[1]])


MADE: dict[str, Callable[[], bytes]] = {
    "flags": flags,
    "crowd": crowd,
    "titles": titles,
    "nanoseconds": nanoseconds,
    "set_back": set_back,
} | {f"clock_{number}": clock(number) for number in (0, 2, 3, 5, 6, 8, 9, 128 + 4, 128 + 10, 128 + 20, 128 + 30)}


def tshark(path: Path, options: str = "", time: str = "relative") -> str:
    command = ["tshark", "-q", "-t", LETTERS[time], "-r", str(path), "-z", f"flow,tcp,network{options}"]
    done = subprocess.run(command, capture_output=True, check=True, env={"TZ": "UTC", "LC_ALL": "C.UTF-8"})
    return done.stdout.decode()


def stored(name: str, path: Path, options: str = "", time: str = "relative") -> str:
    expected = STORED / f"{name}.txt"
    if os.environ.get("LATPCAP_WRITE_TSHARK"):
        expected.write_text(tshark(path, options, time), encoding="utf-8", newline="\n")
    return expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MADE)
def test_made_captures_give_tsharks_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / "made.pcap"
    path.write_bytes(MADE[name]())
    out = tmp_path / "flow.txt"
    lp.read(path).flow_graph(max_rows=7).save(out)  # all packets, not the first page
    assert out.read_bytes().decode() == stored(name, path)


@pytest.mark.parametrize("time", ["delta", "date", "epoch"])
def test_time_formats_give_tsharks_text(time: str) -> None:
    path = SAMPLES / "probes.pcap"  # holds ARP and ICMP, too: the frame before is not always TCP
    assert lp.read(path).flow_graph(time=time).text() == stored(f"time_{time}", path, time=time)


def test_a_stream_of_the_sample_gives_tsharks_text() -> None:
    path = SAMPLES / "nginx-latency.pcap"
    text = lp.read(path).stream(24).flow_graph().text()
    assert text == stored("nginx_stream_24", path, ",tcp.stream==24")
    graph = lp.read(path).flow_graph(frames=(600, 640))
    assert graph.text() == stored("nginx_frames", path, ",frame.number>=600 && frame.number<=640")


@needs_tshark
def test_streams_of_the_sample_give_tsharks_text() -> None:
    path = SAMPLES / "nginx-latency.pcap"
    capture = lp.read(path)
    for number in (0, 7, 40):
        assert capture.stream(number).flow_graph().text() == tshark(path, f",tcp.stream=={number}")


@needs_tshark
def test_what_a_display_filter_leaves_gives_tsharks_text() -> None:
    path = SAMPLES / "nginx-latency.pcap"
    expression = "tcp.stream in {3, 24} && tcp.len > 0"
    graph = lp.read(path).flow_graph(filter=expression)
    assert graph.title == f"nginx-latency.pcap [{expression}]"
    assert graph.text() == tshark(path, f",{expression}")


@needs_tshark
@pytest.mark.parametrize("name", ["flags", "titles"])
def test_the_stored_texts_are_tsharks(tmp_path: Path, name: str) -> None:
    path = tmp_path / "made.pcap"
    path.write_bytes(MADE[name]())
    assert tshark(path) == (STORED / f"{name}.txt").read_text(encoding="utf-8")


def test_numbers_have_32_bits_as_wiresharks() -> None:
    talk = Talk()
    talk.open()
    talk.client(1, b"x" * 10, seq=-5, ack=2**32 + 7)  # below the first number, and once around
    graph = lp.read(pcap(talk.tape)).flow_graph()
    assert "Seq = 4294967291 Ack = 7\n" in graph.text()
    assert graph.rows[-1].comment == "Seq = 4294967291 Ack = 7"


def before_1970() -> bytes:
    """A quarter of a second, less a nanosecond, before 1970: ticks of 1 ns and an offset of one second."""
    options = struct.pack("<HHB3xHHqHH", 9, 1, 9, 14, 8, -1, 0, 0)
    held = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    held += block(1, struct.pack("<HHI", 1, 0, 65_535) + options)
    talk = Talk()
    talk.open()
    for number, one in enumerate(talk.tape):
        frame = one.frame()
        held += block(6, struct.pack("<IIIII", 0, 0, 250_000_001 + number, len(frame), len(frame)) + frame)
    return held


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def test_instants_before_1970_are_as_tshark_has_them(tmp_path: Path) -> None:
    path = tmp_path / "early.pcapng"
    path.write_bytes(before_1970())
    text = lp.read(path).flow_graph(time="epoch").text()
    assert [line[1:13] for line in text.splitlines()[2::2]] == ["-1.250000001", "-1.250000002", "-1.250000003"]
    if shutil.which("tshark"):
        assert text == tshark(path, time="epoch")


def row(**more: object) -> TextRow:
    plain = {"conversation": 0, "time": "0.0", "source": "a", "target": "b", "sport": 1, "dport": 2}
    return TextRow(**(plain | {"label": "ACK", "comment": ""} | more))  # type: ignore[arg-type]


def test_a_label_is_cut_to_its_arrow() -> None:
    (_, _, first, _) = as_text([row(label="0123456789" * 3)]).splitlines()
    assert first == "|0.0      |         01234567890123456789          |"
    wide = as_text([row(), row(target="c", label="0123456789" * 5)]).splitlines()[4]
    assert wide == "|0.0      |         0123456789012345678901234567890123456789          |"


def test_no_packets_no_text() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        lp.read(pcap([])).flow_graph()
