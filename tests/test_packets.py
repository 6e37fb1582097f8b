"""Does a frame of the tables come back with its own bytes, from whatever the capture was read?"""

from __future__ import annotations

import gzip
import io
import os
import struct
from pathlib import Path

import dpkt
import pytest
from makepcap import EPOCH_NS, Ends, Talk, get, pcap, pcap_of, pcapng

import latpcap as lp

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"


def talk() -> Talk:
    it = Talk()
    it.open()
    it.client(10, get())
    it.server(11, b"answer")
    return it


def frames_of(tape: Talk) -> list[bytes]:
    return [segment.frame() for segment in tape.tape]


def test_a_packet_is_dpkts_view_of_that_frame() -> None:
    cap = lp.read(pcap(talk().tape))
    packet = cap.packet(4)
    assert isinstance(packet, dpkt.ethernet.Ethernet)
    assert packet.data.data.data == get()
    assert cap.packet(5).data.data.data == b"answer"


def test_every_event_agrees_with_the_packet_that_it_names() -> None:
    cap = lp.read(SAMPLES / "clips" / "split-nagle.pcap")
    events = cap.arrow("events").to_pylist()
    for event, record in zip(events, cap.records(e["frame"] for e in events), strict=True):
        tcp = (
            cap.packet(event["frame"]).data.data
            if event["frame"] < 9
            else dpkt.ethernet.Ethernet(record.data).data.data
        )
        assert (event["frame"], event["sport"], event["dport"]) == (record.frame, tcp.sport, tcp.dport)
        assert event["len"] == len(tcp.data)
        assert event["time"].value == record.time_ns


def test_records_have_the_file_s_own_times_and_lengths() -> None:
    tape = talk().tape
    for capture in (pcapng(tape), pcap(tape, nanos=True, big=True)):
        got = list(lp.read(capture).records())
        assert [(r.frame, r.time_ns, r.data) for r in got] == [(n, s.time_ns, s.frame()) for n, s in enumerate(tape, 1)]
    cut = list(lp.read(pcap(tape, snaplen=60)).records([4]))
    assert [(r.frame, len(r.data), r.original_len) for r in cut] == [(4, 60, len(tape[3].frame()))]


@pytest.mark.parametrize(
    ("link", "prefix", "kind"),
    [
        (113, struct.pack("!HHH8sH", 0, 1, 6, b"\0" * 8, 0x0800), dpkt.sll.SLL),
        (276, struct.pack("!HHIHBB8s", 0x0800, 0, 1, 1, 0, 6, b"\0" * 8), dpkt.sll2.SLL2),
        (101, b"", dpkt.ip.IP),
        (228, b"", dpkt.ip.IP),
        (0, struct.pack("<I", 2), dpkt.loopback.Loopback),
    ],
)
def test_the_outermost_layer_goes_by_the_link_type(link: int, prefix: bytes, kind: type) -> None:
    raw = bytearray(pcap_of([(EPOCH_NS, prefix + talk().tape[3].frame()[14:])]))
    raw[20:24] = struct.pack("<I", link)
    packet = lp.read(bytes(raw)).packet(1)
    assert type(packet) is kind
    while not isinstance(packet, dpkt.tcp.TCP):
        packet = packet.data
    assert packet.data == get()


def test_ipv6_without_a_link_layer() -> None:
    it = Talk(ends=Ends(("2001:db8::1", 40_000), ("2001:db8::2", 80)))
    it.open()
    raw = bytearray(pcap_of([(EPOCH_NS, it.tape[0].frame()[14:])]))
    raw[20:24] = struct.pack("<I", 101)
    assert isinstance(lp.read(bytes(raw)).packet(1), dpkt.ip6.IP6)


@pytest.mark.parametrize("frame", [0, -1, 6, 10**12])
def test_there_is_no_such_frame(frame: int) -> None:
    with pytest.raises(IndexError, match=f"no frame {frame}: <bytes> has 5 frames, counted from 1"):
        lp.read(pcap(talk().tape)).packet(frame)


def test_what_dpkt_cannot_read_is_said_and_the_bytes_are_there() -> None:
    raw = bytearray(pcap_of([(EPOCH_NS, b"\x01\x02\x03")]))
    cap = lp.read(bytes(raw))
    with pytest.raises(lp.CaptureError, match=r"frame 1: dpkt gives up on it \(.*\); record\(\) has its bytes"):
        cap.packet(1)
    raw[20:24] = struct.pack("<I", 147)
    cap = lp.read(bytes(raw))
    with pytest.raises(lp.CaptureError, match="frame 1: dpkt does not read link type 147"):
        cap.packet(1)
    assert cap.record(1).data == b"\x01\x02\x03"


def test_a_source_is_read_again_where_that_is_possible(tmp_path: Path) -> None:
    raw, want = pcap(talk().tape), frames_of(talk())
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress(raw))
    with open(path, "rb") as file:
        file_object = lp.read(file)
        assert [r.data for r in file_object.records()] == want
    behind = io.BytesIO(b"other things" + raw)
    behind.seek(12)
    for source in (raw, memoryview(raw), path, str(path), behind):
        cap = lp.read(source)
        assert [r.data for r in cap.records()] == want
        assert [r.data for r in cap.records([5, 2])] == [want[1], want[4]]
    with pytest.raises(lp.CaptureError, match="can be read only once"):
        list(file_object.records())


def test_a_pipe_is_gone_and_the_error_says_what_to_do(tmp_path: Path) -> None:
    inner, outer = os.pipe()
    with os.fdopen(inner, "rb") as pipe:
        os.write(outer, pcap(talk().tape))
        os.close(outer)
        cap = lp.read(pipe)
    with pytest.raises(lp.CaptureError, match=r"can be read only once .* give latpcap.read its path or its bytes"):
        cap.packet(1)


def test_a_file_that_was_replaced_is_not_taken_for_the_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(talk().tape))
    cap = lp.read(path)
    with open(path, "ab") as file:  # a capture that is still being written
        file.write(pcap(talk().tape)[24:])
    assert cap.record(5).data == talk().tape[4].frame()
    assert len(list(cap.records())) == 5
    with pytest.raises(IndexError):
        cap.record(6)
    other = tmp_path / "b.pcap"
    other.write_bytes(path.read_bytes() * 2)
    other.replace(path)
    with pytest.raises(lp.CaptureError, match="was replaced since it was read"):
        cap.record(1)
    path.unlink()
    with pytest.raises(lp.CaptureError, match="no such file"):
        cap.record(1)


def test_a_damaged_capture_gives_its_records_up_to_the_damage() -> None:
    raw, want = pcap(talk().tape), frames_of(talk())
    for capture in (raw[:-3], gzip.compress(raw[:-3])[:-4]):
        assert [r.data for r in lp.read(capture).records()] == want[:4]
