"""A part of the time, what headers say besides, and the bytes of segments: are they what the file holds?"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import dpkt
import pandas as pd
import pytest
from makepcap import pcap

import latpcap as lp
from latpcap.reading import timestamps

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample_pcaps" / "nginx-latency.pcap"
SIX = ROOT / "tests" / "cases" / "stall_ipv6" / "capture.pcap"


def cut(path: Path, keep: int) -> bytes:
    """The first records of a pcap."""
    data, at = path.read_bytes(), 24
    for _ in range(keep):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return data[:at]


# a part of the time


@pytest.mark.parametrize("seconds", [0.0, 0.006, 0.3, 0.7, 99.0])
def test_at_its_end_the_file_might_end(seconds: float) -> None:
    whole = lp.read(SAMPLE)
    end = whole.zero_ns + round(seconds * 1e9)
    keep = int((whole.events.time.astype("int64") < end).sum())
    want = lp.read(cut(SAMPLE, keep))
    exact = pd.Timestamp(end, tz="UTC")
    for given in (
        seconds,
        exact,
        exact.isoformat(),
        exact.tz_localize(None).isoformat(),
        exact.tz_convert("Asia/Tokyo"),
    ):
        got = lp.read(SAMPLE, end=given)
        assert got.frames == want.frames == keep, given
        for name in ("events", "streams", "exchanges", "causes"):
            assert got.arrow(name).equals(want.arrow(name)), (name, given)
        assert got.last_ns == want.last_ns and got.zero_ns == whole.zero_ns
        assert "frame.time <" in got.title


def test_behind_the_end_nothing_is_read() -> None:
    class Counted:
        def __init__(self) -> None:
            self.file, self.read_bytes = SAMPLE.open("rb"), 0

        def read(self, size: int = -1) -> bytes:
            block = self.file.read(size)
            self.read_bytes += len(block)
            return block

    # 5,000 frames in one second do not reach a second beyond their end: the same ones, ten seconds apart
    data, late = SAMPLE.read_bytes(), []
    for number in range(5):
        for at in _records(data):
            head, rest = data[at : at + 4], data[at + 4 : at + 16 + int.from_bytes(data[at + 8 : at + 12], "little")]
            late.append((int.from_bytes(head, "little") + 10 * number).to_bytes(4, "little") + rest)
    long = data[:24] + b"".join(late)
    source = Counted()
    source.file = __import__("io").BytesIO(long)
    found = lp.read(source, end=5)  # type: ignore[arg-type]
    assert found.frames == 4966 and len(found.events) == 4966
    assert source.read_bytes < len(long) / 3


def _records(data: bytes) -> list[int]:
    found, at = [], 24
    while at < len(data):
        found.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return found


def test_a_start_keeps_the_numbers_of_the_whole() -> None:
    whole, part = lp.read(SAMPLE), lp.read(SAMPLE, start=0.5, end=0.7)
    events = whole.events
    since = (events.time - events.time.iloc[0]).dt.total_seconds()
    assert part.events.frame.tolist() == events.frame[(since >= 0.5) & (since < 0.7)].tolist()
    assert set(part.exchanges.exchange) <= set(whole.exchanges.exchange)
    assert part.record(int(part.events.frame.iloc[0])).frame == part.events.frame.iloc[0]
    number = int(part.events.stream.iloc[0])
    assert len(part.stream(number).follow().payload(0)) < len(whole.stream(number).follow().payload(0))
    assert lp.read(pcap([]), start=1, end=2).frames == 0


@pytest.mark.parametrize("wrong", ["yesterday", -1, float("nan"), True, "12:00"])
def test_what_is_no_instant(wrong: object) -> None:
    for option in ("start", "end"):
        with pytest.raises(ValueError, match=f"{option}="):
            lp.read(SAMPLE, **{option: wrong})  # type: ignore[arg-type]


def test_instants_are_exact_to_the_nanosecond() -> None:
    text = "2026-11-21T06:07:31.123456789Z"
    given = timestamps.given(text, "end")
    assert given is not None and given.ns % 10**9 == 123456789 and timestamps.text(given.ns) == text
    assert timestamps.given(pd.Timestamp(text), "end") == given
    zone = dt.timezone(dt.timedelta(hours=2))
    assert timestamps.given(dt.datetime(1970, 1, 1, 2, tzinfo=zone), "end") == (0, False)
    assert timestamps.text(0) == "1970-01-01T00:00:00Z"


# what headers say besides


@pytest.mark.parametrize("path", [SAMPLE, SIX], ids=lambda p: p.parent.name)
def test_headers_agree_with_dpkt(path: Path) -> None:
    cap = lp.read(path)
    got = cap.headers
    assert got.frame.tolist() == cap.events.frame.tolist()
    for row, record in zip(got.itertuples(), cap.records(got.frame.tolist()), strict=True):
        ip = dpkt.ethernet.Ethernet(record.data).data
        assert (row.seq_raw, row.ack_raw) == (ip.data.seq, ip.data.ack)
        if isinstance(ip, dpkt.ip6.IP6):
            assert (row.ttl, row.dscp, row.ecn) == (ip.hlim, ip.fc >> 2, ip.fc & 3) and row.ip_id is pd.NA
        else:
            assert (row.ttl, row.dscp, row.ecn, row.ip_id) == (ip.ttl, ip.tos >> 2, ip.tos & 3, ip.id)


def test_headers_tell_marked_packets() -> None:
    data = bytearray(SAMPLE.read_bytes())
    places = _records(bytes(data))
    for number, at in enumerate(places):
        data[at + 16 + 14 + 1] = 4 * 46 + 1 if number % 2 else 0  # expedited forwarding, ECT(1)
        data[at + 16 + 14 + 8] = 63 - number % 3
    cap = lp.read(bytes(data))
    assert cap.headers.dscp.tolist() == [46 if n % 2 else 0 for n in range(len(places))]
    assert cap.headers.ttl.tolist() == [63 - n % 3 for n in range(len(places))]
    assert cap.headers.ecn.sum() == len(places) // 2
    chosen = cap.filter("ip.dsfield.dscp == 46 and ip.ttl < 63")
    assert chosen.events.frame.tolist() == [n + 1 for n in range(len(places)) if n % 2 and n % 3]
    assert chosen.headers.frame.tolist() == chosen.events.frame.tolist() and (chosen.headers.dscp == 46).all()
    first = int(cap.headers.seq_raw.iloc[0])
    assert cap.filter(f"tcp.seq_raw == {first}").events.frame.tolist() == [1]
    assert len(cap.filter("ipv6.hlim > 0").events) == 0


# the bytes of segments


def test_payloads_are_those_of_the_frames() -> None:
    cap = lp.read(SAMPLE)
    got = cap.payloads(stream=24)
    events = cap.stream(24).events
    assert got.frame.tolist() == events.frame[events.len > 0].tolist()
    for row in got.itertuples():
        assert row.payload == bytes(cap.packet(row.frame).data.data.data) and len(row.payload) == row.len
    assert b"".join(got.payload[got.from_client]) == cap.stream(24).follow().payload(0)
    one = cap.payloads(exchange=160)
    row = cap.exchanges.set_index("exchange").loc[160]
    assert one.frame.min() == row.request_first_frame and one.frame.max() <= row.response_last_frame
    assert one.payload.iloc[0].startswith(b"GET ")


def test_payloads_of_what_is_not_there() -> None:
    cap = lp.read(SAMPLE)
    with pytest.raises(IndexError, match="no stream 99"):
        cap.payloads(stream=99)
    with pytest.raises(IndexError, match="no exchange 9999"):
        cap.payloads(exchange=9999)
    for wrong in ({}, {"stream": 1, "exchange": 1}):
        with pytest.raises(TypeError, match="takes stream= or exchange="):
            cap.payloads(**wrong)
