"""Do the tables say what the packets say? dpkt decodes the samples too (and tshark, in test_wireshark)."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import dpkt
import pytest
from makepcap import Ends, Segment, Talk, address, answer, get, mss, pcap, pcapng, timestamps, wscale

import latpcap as lp
from latpcap import _core, spill

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"
CLIPS = sorted((SAMPLES / "clips").glob("*.pcap"))
ALL = [*sorted(SAMPLES.glob("*.pcap")), *CLIPS]
SCHEMA = ROOT / "tests" / "cases" / "schema.txt"
LABELS = {1: "FIN", 2: "SYN", 4: "RST", 8: "PSH", 16: "ACK", 32: "URG", 64: "ECE", 128: "CWR"}


@cache
def read(path: Path) -> lp.Capture:
    return lp.read(path)


def columns(table: Any, names: list[str]) -> list[tuple[Any, ...]]:
    data = [table[name].to_pylist() for name in names]
    return list(zip(*data, strict=True))


# dpkt


def decoded(path: Path) -> Iterator[dict[str, Any]]:
    """Every TCP segment of a pcap, as dpkt sees it."""
    with path.open("rb") as file:
        for number, (seconds, raw) in enumerate(dpkt.pcap.Reader(file), 1):
            ip = dpkt.ethernet.Ethernet(raw).data
            if not isinstance(ip, (dpkt.ip.IP, dpkt.ip6.IP6)) or not isinstance(ip.data, dpkt.tcp.TCP):
                continue
            tcp = ip.data
            options = dict(dpkt.tcp.parse_opts(tcp.opts))
            stamps = options.get(dpkt.tcp.TCP_OPT_TIMESTAMP)
            scale = options.get(dpkt.tcp.TCP_OPT_WSCALE)
            size = options.get(dpkt.tcp.TCP_OPT_MSS)
            yield {
                "frame": number,
                "time": round(seconds * 1_000_000) * 1000,
                "src": address(ip.src),
                "dst": address(ip.dst),
                "sport": tcp.sport,
                "dport": tcp.dport,
                "flags": tcp.flags,
                "len": ip.len - 4 * ip.hl - 4 * tcp.off,
                "window": tcp.win,
                "mss": int.from_bytes(size, "big") if size else None,
                "wscale": scale[0] if scale else None,
                "tsval": int.from_bytes(stamps[:4], "big") if stamps else None,
                "tsecr": int.from_bytes(stamps[4:], "big") if stamps else None,
            }


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_events_agree_with_dpkt(path: Path) -> None:
    import pyarrow as pa

    other = list(decoded(path))
    events = read(path).arrow("events")
    events = events.set_column(1, "time", events["time"].cast(pa.int64()))
    scales: dict[tuple[int, bool], int | None] = {}
    rows = columns(events, ["stream", "from_client", "window"])
    for segment, (stream, from_client, window) in zip(other, rows, strict=True):
        if segment["flags"] & 2:
            scales[stream, from_client] = segment["wscale"]
            assert window == segment["window"]  # a SYN's window is never scaled
        else:
            known = scales.get((stream, True)), scales.get((stream, False))
            shift = 0 if None in known else scales[stream, from_client]
            assert window == segment["window"] << shift, segment
        segment["flags"] = ", ".join(label for bit, label in LABELS.items() if segment["flags"] & bit)
    names = ["frame", "time", "src", "dst", "sport", "dport", "flags", "len", "mss", "wscale", "tsval", "tsecr"]
    assert columns(events, names) == [tuple(segment[name] for name in names) for segment in other]


FORMATS = {
    "pcap": pcap,
    "pcap big endian": lambda tape: pcap(tape, big=True),
    "pcap ns": lambda tape: pcap(tape, nanos=True),
    "pcap ns big endian": lambda tape: pcap(tape, nanos=True, big=True),
    "pcapng": pcapng,
    "pcapng big endian": lambda tape: pcapng(tape, big=True),
    "pcapng us": lambda tape: pcapng(tape, nanos=False),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_segments_as_written(name: str) -> None:
    tape = [
        Segment(True, "S", 2**32 - 2, 0, options=(mss(1400), wscale(9), timestamps(7, 0))),
        Segment(False, "SA", 2**32 - 1, 2**32 - 1, options=(mss(1300), wscale(3), timestamps(9, 7))),
        Segment(True, "A", 2**32 - 1, 0, window=100, time_ns=Segment.time_ns + 1000),
        Segment(True, "PAUEC", 2**32 - 1, 0, b"x" * 11, window=100, time_ns=Segment.time_ns + 2_000_000),
        Segment(False, "FA", 0, 10, b"y", window=0xFFFF, time_ns=Segment.time_ns + 3_000_000),
    ]
    events = lp.read(FORMATS[name](tape)).arrow("events")
    assert columns(events, ["seq", "ack", "len", "window", "mss", "wscale", "tsval", "tsecr"]) == [
        (0, 0, 0, 64_240, 1400, 9, 7, 0),
        (0, 1, 0, 64_240, 1300, 3, 9, 7),
        (1, 1, 0, 100 << 9, None, None, None, None),
        (1, 1, 11, 100 << 9, None, None, None, None),
        (1, 12, 1, 0xFFFF << 3, None, None, None, None),
    ]
    labels = ["SYN", "SYN, ACK", "ACK", "PSH, ACK, URG, ECE, CWR", "FIN, ACK"]
    assert [set(text.split(", ")) for text in events["flags"].to_pylist()] == [set(t.split(", ")) for t in labels]
    assert events["time"].cast("int64").to_pylist() == [s.time_ns for s in tape]


# the schema


def schema_text() -> str:
    """One line a column: table, name, arrow type, "null" where it may be."""
    capture = lp.read(SAMPLES / "clips" / "quickack.pcap")
    lines = [f"latpcap.schema {_core.SCHEMA_VERSION}"]
    for table in _core.TABLES:
        for field in capture.arrow(table).schema:
            lines.append(f"{table}.{field.name}: {field.type}{' or null' if field.nullable else ''}")
    return "\n".join(lines) + "\n"


def test_schema_is_the_pinned_one() -> None:
    """A change is a new schema version. To write the file anew:

    cd tests && python -c "import test_tables as t; t.SCHEMA.write_text(t.schema_text())"
    """
    assert schema_text() == SCHEMA.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [SAMPLES / "probes.pcap", SAMPLES / "nginx-good.pcap"], ids=lambda p: p.name)
def test_schema_is_the_same_for_every_capture(path: Path) -> None:
    for table in _core.TABLES:
        assert read(path).arrow(table).schema == read(CLIPS[0]).arrow(table).schema
    empty = lp.read(pcap([]))
    assert all(
        empty.arrow(t).schema == read(path).arrow(t).schema and not empty.arrow(t).num_rows for t in _core.TABLES
    )


def test_columns_without_null_have_none() -> None:
    for path in ALL:
        for table in _core.TABLES:
            data = read(path).arrow(table)
            wrong = [f.name for f in data.schema if not f.nullable and data[f.name].null_count]
            assert not wrong, (path.name, table)


# what sample_pcaps/README.md says


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nginx-latency.pcap", (4966, 41, 960, 960)),
        ("nginx-good.pcap", (4000, 41, 968, 949)),
        ("probes.pcap", (77, 22, 0, 0)),
    ],
)
def test_counts_of_the_samples(name: str, counts: tuple[int, int, int, int]) -> None:
    capture = read(SAMPLES / name)
    complete = sum(capture.arrow("exchanges")["complete"].to_pylist())
    got = capture.frames, capture.arrow("streams").num_rows, capture.arrow("exchanges").num_rows, complete
    assert got == counts


def test_counts_of_the_clips() -> None:
    frames = dict(zip([p.stem for p in CLIPS], [158, 164, 164, 136, 104], strict=True))
    truth = json.loads((SAMPLES / "clips" / "truth.json").read_text(encoding="utf-8"))
    for path in CLIPS:
        capture = read(path)
        got = capture.frames, capture.arrow("streams").num_rows, capture.arrow("exchanges").num_rows
        assert got == (frames[path.stem], truth[path.name]["streams"], truth[path.name]["exchanges"]), path.name


@pytest.mark.parametrize(
    ("index", "request_frame", "head", "ack", "body", "acked_ms", "total_ms"),
    [
        (0, 241, 316, 317, 318, 0.001, 0.202),
        (1, 413, 414, 479, 480, 42.568, 42.575),
        (2, 583, 623, 693, 694, 43.634, 43.895),
        (3, 790, 830, 879, 880, 43.226, 43.520),
        (23, 4790, 4830, 4895, 4896, 34.096, 34.340),
    ],
)
def test_stream_24_by_hand(
    index: int, request_frame: int, head: int, ack: int, body: int, acked_ms: float, total_ms: float
) -> None:
    stream = read(SAMPLES / "nginx-latency.pcap").stream(24)
    row = stream.arrow("exchanges").to_pylist()[index]
    frames = row["request_first_frame"], row["response_first_frame"], row["response_last_frame"]
    assert (row["index"], frames) == (index, (request_frame, head, body))
    assert row["latency_ms"] == pytest.approx(total_ms, abs=1e-9)
    events = {e["frame"]: e for e in stream.arrow("events").to_pylist()}
    assert (events[head]["len"], events[ack]["len"], events[body]["len"]) == (238, 0, 612)
    assert events[ack]["acks_frame"] == head
    assert events[ack]["ack_rtt_ms"] == pytest.approx(acked_ms, abs=1e-9)
    assert (events[body]["released_by"], events[body]["release_frame"]) == ("nagle_ack", ack)
    assert ("FIN" in events[ack]["flags"]) == (index == 23)


def test_silences_of_nginx_latency() -> None:
    """880 exchanges with 42.4 to 43.9 ms between head and body; 40 fast; 40 freed by the FIN after about 34 ms."""
    exchanges = read(SAMPLES / "nginx-latency.pcap").exchanges
    spread = exchanges["response_spread_ms"]
    assert (len(spread[spread.between(42.3, 43.95)]), (spread < 1).sum()) == (880, 40)
    assert spread[(spread >= 1) & (spread < 42.3)].between(30, 40).sum() == 40


def test_quoted_and_other_frames_are_counted() -> None:
    """probes.pcap: ARP and ICMP are frames without an event; numbers are those of all frames."""
    capture = read(SAMPLES / "probes.pcap")
    frames = capture.arrow("events")["frame"].to_pylist()
    assert len(frames) < capture.frames == 77 and frames[0] == 13 and frames == sorted(frames)


def test_streams_count_what_events_hold() -> None:
    talk = Talk()
    talk.open()
    talk.client(5, get())
    for path in [None, *ALL]:
        capture = lp.read(pcap(talk.tape)) if path is None else read(path)
        events = capture.arrow("events").to_pylist()
        for row in capture.arrow("streams").to_pylist():
            for side in ("client", "server"):
                mine = [e for e in events if e["stream"] == row["stream"] and e["from_client"] == (side == "client")]
                assert row[f"{side}_packets"] == len(mine)
                assert row[f"{side}_payload_bytes"] == sum(e["len"] for e in mine)


CAPTURES = [*ALL, *sorted((ROOT / "tests" / "cases").glob("*/capture.*"))]


def test_exchanges_have_the_ends_of_their_streams() -> None:
    """Also where several connections had the same ports one after the other, and where ports alone tell who asked; the
    other way round where the accepting side requests.
    """
    ends = ["client", "client_port", "server", "server_port"]
    seen, turned = 0, 0
    for path in CAPTURES:
        capture = read(path) if path in ALL else lp.read(path)
        of = {stream: tuple(rest) for stream, *rest in columns(capture.arrow("streams"), ["stream", *ends])}
        for stream, asks, *rest in columns(capture.arrow("exchanges"), ["stream", "server_asks", *ends]):
            own = (*rest[2:], *rest[:2]) if asks else tuple(rest)
            assert of[stream] == own, (path.parent.name, path.name, stream)
            seen, turned = seen + 1, turned + asks
    assert seen > 5_000 and turned >= 6


def test_exchanges_of_many_servers_keep_theirs_in_every_batch() -> None:
    """More rows than a batch has, whose words are its own; each pair of ports has four connections in turn."""
    tape: list[Segment] = []
    asked = []
    for n in range(6_000):
        k = n % 1_500
        ends = Ends((f"10.1.{k % 50}.{k % 7 + 1}", 5_000 + k), (f"10.2.0.{k % 90 + 1}", 80 + k % 3))
        talk = Talk(ends=ends, tape=tape, isn=(1_000 + 70_000 * n, 5_000 + 90_000 * n))
        talk.open(10 * n)
        talk.client(10 * n + 2, get())
        talk.server(10 * n + 3, b"".join(answer(0)))
        asked.append((*ends.client, *ends.server))
    rows = lp.read(pcap(tape)).arrow("exchanges")
    assert columns(rows, ["client", "client_port", "server", "server_port"]) == asked


class Meanwhile(dict[str, Any]):
    """Tables that are made so far; another thread makes one between the look for it and the making of it."""

    capture: lp.Capture
    asked = False

    def __contains__(self, name: object) -> bool:
        found = super().__contains__(name)
        if not self.asked:
            self.asked = True
            other = threading.Thread(target=self.capture.arrow, args=(name,))
            other.start()
            other.join()
        return found


@pytest.mark.parametrize("name", lp.Capture.tables())
def test_two_threads_may_ask_for_a_table_at_once(name: Any) -> None:
    capture = lp.read(SAMPLES / "nginx-good.pcap")
    made = Meanwhile()
    made.capture, capture._arrow = capture, made
    assert capture.arrow(name) is made[name] and made.asked
    assert capture.arrow(name).equals(read(SAMPLES / "nginx-good.pcap").arrow(name))


def test_what_a_table_was_made_of_is_let_go_before_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    capture, held = lp.read(SAMPLES / "nginx-good.pcap"), []
    raw = capture._raw["exchanges"]
    monkeypatch.setattr(spill, "BLOCK", 1)
    monkeypatch.setattr(spill, "trim_heap", lambda: held.append(sys.getrefcount(raw)))
    capture.arrow("exchanges")
    assert held == [sys.getrefcount(raw)]
