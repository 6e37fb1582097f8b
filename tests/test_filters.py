"""Does a display filter choose what Wireshark's would, and is a mistake shown where it is?"""

from __future__ import annotations

import hashlib
import re
import shutil
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from makepcap import EPOCH_NS, Ends, Talk, answer, get, pcap
from randomtalk import crowd

import latpcap as lp
from latpcap import _core
from latpcap.reading.filters import grammar
from latpcap.reading.filters.conversations import Conversations
from latpcap.reading.filters.dissect import values
from latpcap.reading.filters.fields import FIELDS
from latpcap.reading.filters.tls import Tls

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"
STALLS = SAMPLES / "nginx-latency.pcap"

COUNTS = {
    "tcp.port != 8080": 0,
    "tcp.port !== 8080": 4966,
    "tcp.port ~= 8080": 4966,
    "tcp.port === 8080": 0,
    "all tcp.port == 8080": 0,
    "any tcp.port != 8080": 4966,
    "tcp.port not in {8080}": 0,
    "tcp.dstport not in {8080}": 2002,
    "tcp.stream in {24, 25} and tcp.len > 0": 144,
    "tcp.stream in {1..3}": 372,
    "tcp.len in {1 .. 5,612}": 960,
    "tcp.len==612&&tcp.stream==24": 24,
    "tcp.stream==24&&!(tcp.len==0)": 72,
    "tcp.len > 0 and not tcp.len > 5 or frame.number == 1": 1,
    "tcp.stream == 1 or tcp.stream == 2 and tcp.len == 612": 148,
    "!(tcp.len == 0) and tcp.len eq 0x264": 960,
    "tcp.flags & 0x02": 82,
    "tcp.flags & 0x12 == 0x12": 41,
    "tcp.flags.syn == True": 82,
    "tcp.flags.syn": 4966,
    "ip.addr == 192.168.0.0/16 and ip.src in {192.168.0.1..192.168.0.40}": 4966,
    "ip.src > 192.168.0.1 and not ip.src != 192.168.0.30": 2002,
    "ipv6 or ipv6.addr == ::1/128": 0,
    "tcp.time_delta > 0.04": 880,
    "tcp.time_delta in {0.04..0.05}": 880,
    "tcp.time_relative == 0": 41,
    'frame.time >= "2026-11-21 06:07:32Z"': 2720,
    'frame.time >= "Nov 21, 2026 06:07:32 UTC"': 2720,
    'frame.time > "2026-11-21T06:07:32+00:00"': 2720,
    "frame.time_epoch > 1795241251.6": 4520,
    "frame.time_relative > 0.5": 2320,
    "frame.time_delta > 0.04": 22,
    "frame.len > 300 && frame.cap_len > 300": 1920,
    "tcp.analysis.flags": 0,
    "!tcp.analysis.flags": 4966,
    "tcp.analysis.ack_rtt > 0.04": 880,
    "tcp.analysis.acks_frame == 414": 1,
    "tcp.options.mss_val==1460": 82,
    "tcp.options.timestamp.tsval > 0": 4926,
    "http.request.method == GET": 960,
    'http.request.method matches "^g" and http.request.uri contains "/"': 960,
    'http.request.method in {"POST", "HEAD"}': 0,
    "http.response.code == 200 and http.time > 0.04": 880,
    "http.request_in == 241": 1,
    "http": 1920,
    'http.host == "192.168.0.30:8080"': 960,
    'http.host contains "nowhere"': 0,
    'frame contains "GET / HTTP/1.1"': 960,
    "frame contains 47:45:54:20": 960,
    'frame matches "server: *NGINX"': 960,
    "frame": 4966,
    "udp or dns": 0,
    "not udp": 4966,
    "ip.ttl == 64": 4966,
    "not tcp": 0,
    "tcp.srcport == tcp.dstport": 0,
    "ip.src != ip.dst": 4966,
}
"""Segments of nginx-latency.pcap; tshark 4.0.17 counts the same."""


@pytest.fixture(scope="module")
def stalls() -> lp.Capture:
    return lp.read(STALLS)


def frames(cap: lp.Capture, expression: str) -> list[int]:
    return cap.filter(expression).arrow("events")["frame"].to_pylist()


@pytest.mark.parametrize("expression", COUNTS)
def test_segments_that_pass(stalls: lp.Capture, expression: str) -> None:
    assert len(frames(stalls, expression)) == COUNTS[expression]


VARIED = [
    *(e for e in COUNTS if "frame.time " not in e),
    "tcp.seq > 3000 and tcp.ack <= 0x100",
    "tcp.nxtseq in {1..200}",
    "tcp.window_size < 1000",
    "tcp.options.sack or tcp.options.sack.count == 1",
    "tcp.options.sack_le > 1 and tcp.options.sack_re < 4000",
    "tcp.options.wscale.shift == 7 or tcp.options.mss",
    *(f"tcp.analysis.{mark}" for mark in (
        "retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "lost_segment",
        "ack_lost_segment", "duplicate_ack", "keep_alive", "keep_alive_ack", "window_update", "zero_window",
        "reused_ports")),
    "tcp.analysis.bytes_in_flight > 3000 or tcp.analysis.push_bytes_sent == 900",
    "tcp.flags.reset == 1 || tcp.flags.fin == 1",
    "tcp.stream == tcp.len",
    "tcp.srcport < tcp.dstport",
    "tcp.srcport != tcp.dstport",
    'frame matches "connection: *(close|keep)"',
    'frame contains "\\r\\n\\r\\n" and not udp',
    "tcp.seq_raw > 0x80000000 or tcp.ack_raw == 0",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", ["random", "probes.pcap", "clips/split-nagle.pcap"])
def test_tshark_chooses_the_same(tmp_path: Path, name: str) -> None:
    """One run for all expressions, by a Lua tap each; HTTP only where nothing is lost, as tshark then loses answers."""
    path = SAMPLES / name
    if name == "random":
        path = tmp_path / "random.pcap"
        path.write_bytes(pcap(crowd(3, 40, ports=30)))
    script = tmp_path / "taps.lua"
    expressions = [e for e in VARIED if name != "random" or "http" not in e]
    lines = [f"[==[{e}]==]" for e in expressions]
    script.write_text(
        "for i, expression in ipairs({" + ", ".join(lines) + "}) do\n"
        '  local tap, frames = Listener.new("frame", expression), {}\n'
        "  function tap.packet(packet) frames[#frames + 1] = packet.number end\n"
        '  function tap.draw() print("filter " .. i .. " " .. table.concat(frames, " ")) end\nend\n'
    )
    words = ["tshark", "-n", "-q", "-r", str(path), "-X", f"lua_script:{script}"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    if "filter " not in said:
        pytest.skip("this tshark runs no Lua")
    theirs = {int(row[1]): [int(n) for n in row[2:]] for row in map(str.split, said.splitlines()) if row[0] == "filter"}
    cap = lp.read(path)
    known = set(cap.arrow("events")["frame"].to_pylist())
    for number, expression in enumerate(expressions, 1):
        assert frames(cap, expression) == [f for f in theirs.get(number, []) if f in known], expression


# what is left


def test_a_filtered_capture_keeps_numbers_and_whole_exchanges(stalls: lp.Capture) -> None:
    part = stalls.filter("http.response.code == 200 and http.time < 0.001 and tcp.stream in {24, 25, 99}")
    assert repr(part).startswith("nginx-latency.pcap [http.response.code == 200 and http.time < 0.001 and")
    assert repr(part).endswith("2 of 4,966 frames, 2 TCP streams, 2 exchanges, 1.00 s")
    assert part.streams["stream"].tolist() == [24, 25]
    whole = stalls.exchanges[stalls.exchanges["stream"].isin([24, 25]) & (stalls.exchanges["index"] == 0)]
    assert part.exchanges["exchange"].tolist() == whole["exchange"].tolist()
    assert part.exchanges["latency_ms"].tolist() == whole["latency_ms"].tolist()
    assert set(part.causes["exchange"]) == set(whole["exchange"])
    assert part.evidence.equals(stalls.evidence)
    assert part.stream(24).events["frame"].tolist() == part.events["frame"].tolist()[:1]
    with pytest.raises(IndexError, match=r"no stream 26: nginx-latency.pcap \[.*\] has 2 TCP streams"):
        part.stream(26)
    assert part.packet(1).data.data.sport == stalls.packet(1).data.data.sport
    assert stalls.display_filter is None and len(stalls.events) == 4966


def test_filters_add_up_and_views_work_on_what_is_left(stalls: lp.Capture, tmp_path: Path) -> None:
    part = stalls.filter("tcp.stream == 24").filter("tcp.len > 0")
    both = stalls.filter("tcp.stream == 24 and tcp.len > 0")
    assert part.events.equals(both.events) and part.exchanges.equals(both.exchanges)
    assert part.display_filter == "(tcp.stream == 24) and (tcp.len > 0)"
    assert (
        part.filter("http.time > 0.04").events["frame"].tolist()
        == both.filter("http.time > 0.04").events["frame"].tolist()
    )
    text = str(part.why())
    assert text.startswith("nginx-latency.pcap [(tcp.stream == 24) and (tcp.len > 0)]: 4,966 frames, 1 TCP stream, ")
    assert "see       frames" in text  # evidence is looked up in the whole capture
    assert part.to_pcap(tmp_path / "part.pcapng") == 72
    again = lp.read(tmp_path / "part.pcapng").events
    assert (again["len"] > 0).all() and len(again) == 72
    assert part.stream(24).flow_graph() is not None


LOOKUPS = {
    "udp": 1,
    "dns": 1,
    "not tcp": 1,
    "tcp": 0,
    "not dns": 0,
    "tcp.port == 53": 0,
    "udp.port == 53": 1,
    "udp.dstport == 53 and frame.number == 1": 1,
    "udp.dstport == 53 and frame.number == 3": 0,
    "dns.flags.response == 1 and frame.number == 3": 1,
    "dns.flags.response == 1 and frame.number == 1": 0,
    'dns.qry.name == "web.lab"': 1,
    "dns.flags.rcode == 3": 0,
    "dns.time > 5 and dns.time < 5.1": 1,
    "frame.time_relative > 5": 1,
    'frame contains "lab"': 1,
    "tcp.options.sack or tcp.analysis.flags or tcp.completeness > 0 or tcp.time_relative >= 0 or ip.ttl > 0": 0,
}
"""Lookups of the case dns_slow, whose question is frame 1 and whose answer is frame 3."""


@pytest.mark.parametrize("expression", LOOKUPS)
def test_lookups_that_pass(expression: str) -> None:
    cap = lp.read(next((ROOT / "tests" / "cases" / "dns_slow").glob("capture.*")))
    left = cap.filter(expression)
    assert len(left.lookups) == LOOKUPS[expression]
    assert left.arrow("lookups").schema == cap.arrow("lookups").schema
    assert str(left.why())


def test_nothing_left_is_an_answer(stalls: lp.Capture) -> None:
    none = stalls.filter("tcp.len == 1")
    assert [len(none.arrow(t)) for t in ("events", "streams", "exchanges", "causes")] == [0, 0, 0, 0]
    assert "0 of 4,966 frames" in repr(none)
    assert str(none.why())
    assert lp.read(pcap([])).filter("http.time > 1 and frame.len > 1 and tcp.options.sack_le > 1").events.empty


def test_a_pipelined_neighbour_is_not_taken_along() -> None:
    talk = Talk()
    talk.open()
    talk.client(10, get("/a"))
    talk.client(11, get("/b"))
    talk.server(20, b"".join(answer(10)))
    talk.server(40, b"".join(answer(20, "404 Not Found")))
    cap = lp.read(pcap(talk.tape))
    assert cap.filter("http").exchanges["target"].tolist() == ["/a", "/b"]
    assert cap.filter("http.response.code == 200").exchanges["target"].tolist() == ["/a"]
    assert cap.filter("http.response.code == 404").exchanges["target"].tolist() == ["/b"]
    assert cap.filter('http.request.uri == "/b"').exchanges["target"].tolist() == ["/b"]
    assert cap.filter("http.request").exchanges["target"].tolist() == ["/a", "/b"]


def test_a_repeated_request_is_shown_where_it_was_complete_first() -> None:
    talk = Talk()
    talk.open()
    first = talk.client(10, get("/again"))
    talk.client(300, get("/again"), seq=1)
    talk.server(310, b"".join(answer(5)))
    cap = lp.read(pcap(talk.tape))
    assert frames(cap, "http.request") == [first]
    assert frames(cap, f"http.request_in == {first}") == [6]


def test_a_frame_that_completes_several_messages_has_all_their_values() -> None:
    talk = Talk()
    talk.open()
    asked = talk.client(10, get("/a") + get("/b"))
    done = talk.server(20, b"".join(answer(10)) + b"".join(answer(20, "404 Not Found")))
    cap = lp.read(pcap(talk.tape))
    assert frames(cap, 'http.request.uri == "/b"') == frames(cap, 'http.request.uri == "/a"') == [asked]
    assert frames(cap, "http.response.code == 404") == frames(cap, "http.response.code == 200") == [done]
    assert frames(cap, "http.response.code != 404") == []
    assert frames(cap, "any http.response.code != 404") == [done]
    assert frames(cap, "all http.response.code in {200, 404}") == [done]


def test_bodies_and_the_frames_of_a_message() -> None:
    """tshark 4.0.17 -2 has these fields in the same frames."""
    talk = Talk()
    talk.open()
    asked = [talk.client(10, b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n"), talk.client(11, b"a=b&c=")]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    done = [talk.server(20, head), talk.server(21, b"6\r\n<html>\r\n"), talk.server(22, b"0\r\n\r\n")]
    cap = lp.read(pcap(talk.tape))
    for expression, found in {
        'http.file_data == "<html>"': done[2:],
        'http.file_data contains "c="': asked[1:],
        "http.chunk_size == 6 and http.chunk_size == 0": done[2:],
        'http.chunk_data[0:2] == "<h"': done[2:],
        f"tcp.reassembled_in == {done[2]}": done[:2],
        f"tcp.segment == {done[1]} and tcp.segment.count == 3": done[2:],
        "tcp.segments": [asked[1], done[2]],
        f"tcp.reassembled.length == {len(head) + 16}": done[2:],
        "tcp.segment_data": asked + done,
        'frame.protocols matches "tcp:http:data-text-lines$"': done[2:],
        'frame.protocols matches "tcp$" and tcp.len > 0': [asked[0], *done[:2]],
    }.items():
        assert frames(cap, expression) == found, expression


def test_a_slice_of_a_protocol_is_of_its_header() -> None:
    """As in Wireshark, where a slice beyond the end fails; `contains` searches what follows, too."""
    lookups = lp.read(next((ROOT / "tests" / "cases" / "dns_slow").glob("capture.*")))
    assert lookups.filter("udp[6:2] and ip[19:1]").others
    assert not lookups.filter("udp[8:2] or udp[6:4] or ip[20:1] or eth[14:1]").others
    assert lookups.filter('udp contains "lab"').others


def test_ipv6_and_numbers_modulo_two_to_the_32() -> None:
    talk = Talk(ends=Ends(("2001:db8::1", 40_000), ("2001:db8:1::2", 80)), isn=(2**32 - 5, 5000))
    talk.open()
    talk.client(10, get())
    early = talk.client(12, b"x", seq=-3)
    cap = lp.read(pcap(talk.tape))
    assert len(frames(cap, "ipv6.addr == 2001:db8::/32")) == 5
    assert len(frames(cap, "ipv6.src == 2001:db8::1")) == 4
    assert frames(cap, "ipv6.addr == 2001:DB8:0:0::3 or ip.addr == 10.0.0.0/8") == []
    assert frames(cap, "tcp.seq > 4000000000") == [early]


def test_times_are_local_where_no_zone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    try:
        talk = Talk()
        talk.open()
        cap = lp.read(pcap(talk.tape))
        assert EPOCH_NS == 1_700_000_000_000_000_000
        assert frames(cap, 'frame.time == "2023-11-14 17:13:20"') == [1]
        assert frames(cap, 'frame.time == "2023-11-14T22:13:20Z"') == [1]
        assert frames(cap, 'frame.time == "Nov 14, 2023 23:13:20.000010+0100"') == [2]
    finally:
        monkeypatch.undo()
        time.tzset()


# mistakes

MISTAKES = {
    "tcp.prot == 80": (0, 8, "'tcp.prot' is no field that latpcap filters by", ["tcp.port"]),
    'http.request.url contains "x"': (0, 16, "is no field", ["http.request.uri"]),
    "TCP": (0, 3, "is no field", ["tcp"]),
    "tcp.len >": (9, 1, "the filter ends here, expected a value", []),
    "": (0, 1, "the filter ends here, expected a field", []),
    "(tcp.len > 1": (12, 1, "the filter ends here, expected ')'", []),
    "tcp.len == 5 tcp.len": (13, 7, "'tcp.len' was not expected here, expected 'and', 'or' or the end", []),
    "tcp.len gt 5 AND tcp.len lt 10": (13, 3, "it is written 'and'", []),
    "tcp.len = 5": (8, 1, "equality is written '=='", []),
    "tcp.stream in {24 25}": (18, 2, "the values of a set have commas between them", []),
    "tcp.len in {}": (12, 1, "'}' was not expected here, expected a value", []),
    "tcp.len in {1..}": (15, 1, "expected a value", []),
    "tcp and\t\t)": (9, 1, "')' was not expected here, expected a field, 'not' or '('", []),
    "tcp.port contains 80": (0, 8, "tcp.port is no text, and 'contains' is for text", []),
    'tcp.len > "5"': (10, 3, "write it without quotes", []),
    "tcp.len == 2.0": (11, 3, "'2.0' is no number", []),
    "tcp.len > -1": (10, 2, "tcp.len has no negative values", []),
    "tcp.port == 70000": (12, 5, "70000 is too big for tcp.port, whose greatest value is 65535", []),
    "tcp.flags.syn == maybe": (17, 5, "is a boolean", []),
    "tcp.analysis.retransmission == 1": (0, 27, "has no value: write it alone", []),
    "ip.addr == 192.168.0.30:8080": (11, 17, "is no IPv4 address", []),
    "ip.addr == ::1": (11, 3, "ipv6.addr has those", []),
    "ip.src > 10.0.0.0/8": (9, 10, "a prefix has no order", []),
    "tcp.time_delta > 40ms": (17, 4, "tcp.time_delta is a time in seconds, as in 0.04", []),
    "frame.time > yesterday": (13, 9, "frame.time takes a date and time", []),
    'http.request.uri matches "("': (25, 3, "is no regular expression", []),
    'frame matches "(?=GET)"': (14, 9, "look-around, including look-ahead and look-behind, is not supported", []),
    r'frame matches r"(G)\1"': (14, 7, "backreferences are not supported", []),
    'frame matches "G++E"': (14, 6, "possessive repetitions (a++) are not supported", []),
    'frame matches "((a{999}){999}){999}"': (14, 22, "it repeats too much", []),
    r'http.request.uri matches "\."': (26, 1, "is no escape", []),
    "http.request.method == tcp.len": (23, 7, "are not of one kind", []),
    "http.request.method == tcp.foo": (23, 7, "a string stands in quotes", []),
    "ip.src & 1": (9, 1, "'1' is no IPv4 address", []),
}


@pytest.mark.parametrize("expression", MISTAKES)
def test_a_mistake_is_shown_at_its_place(stalls: lp.Capture, expression: str) -> None:
    offset, length, reason, near = MISTAKES[expression]
    with pytest.raises(lp.FilterError) as caught:
        stalls.filter(expression)
    problem = caught.value
    assert (problem.offset, problem.length, problem.expression) == (offset, length, expression)
    assert reason in problem.reason
    assert set(near) <= set(problem.near)
    first, shown, mark = str(problem).split("\n")
    assert first.startswith("filter: ") and shown == "    " + expression.replace("\t", " ")
    assert mark == "    " + " " * offset + "^" + "~" * (length - 1)


@pytest.mark.parametrize(
    "expression", ["(" * 20_000, "!" * 20_000 + "tcp", "tcp and " * 3000 + "tcp", "\0\x1b[2J", "\U0001f600"]
)
def test_odd_filters_end_in_an_answer_or_a_filter_error(stalls: lp.Capture, expression: str) -> None:
    try:
        assert len(stalls.filter(expression).events) == 4966
    except lp.FilterError as problem:
        assert "\x1b" not in str(problem)


def test_the_page_lists_every_field() -> None:
    page = (ROOT / "docs" / "filters.md").read_text(encoding="utf-8")
    listed = re.findall(r"`([a-z_0-9.-]+)`", page.partition("## The fields")[2].partition("## Where it differs")[0])
    assert sorted(set(listed)) == sorted(FIELDS)


def test_threads_may_filter_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyparsing's first run is for one thread alone: two at once made it forget how many arguments an action takes."""
    inside, most = [], []

    class Slow:
        def parse_string(self, expression: str, *, parse_all: bool) -> list[str]:
            inside.append(expression)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()
            return [expression]

    monkeypatch.setattr(grammar, "_grammar", Slow)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(grammar.parse, "abcd")) == list("abcd")
    assert max(most) == 1


def test_frames_of_every_protocol_pass(tmp_path: Path) -> None:
    """Rows are TCP's, numbers and slices of other frames are there."""
    probes = lp.read(ROOT / "sample_pcaps" / "probes.pcap")
    assert probes.others == []
    arp = probes.filter("arp")
    assert (arp.others, len(arp.events)) == ([1, 2, 76, 77], 0)
    assert arp.to_pcap(tmp_path / "arp.pcap") == 4
    assert lp.read(tmp_path / "arp.pcap").frames == 4
    both = probes.filter("eth.type == 0x0806 or tcp.flags.syn == 1")
    assert both.to_pcap(tmp_path / "both.pcap") == 4 + len(both.events)
    pings = probes.filter("icmp.type == 8").others
    assert pings == probes.probes.query("kind == 'icmp_echo'")["sent_frame"].tolist()
    assert probes.filter("frame[12:2] == 08:06 and arp.opcode == 1").others == [1, 76]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tcp[13] & 2", "tcp.flags.syn == 1"),
        ("tcp[13] == 18", "tcp.flags == 0x018"),
        ("tcp[0:2] == 1f:90", "tcp.srcport == 8080"),
        ('tcp.payload[0:4] == "GET "', "http.request"),
        ('tcp.payload contains "GET /"', "tcp.payload contains 47:45:54:20:2f"),
        ("tcp.payload", "tcp.len > 0"),
        ("tcp.hdr_len == 40", "tcp.flags.syn == 1"),
        ("tcp.option_kind == 3", "tcp.options.wscale"),
        ("tcp.options.sack_perm and tcp.options.wscale.multiplier == 1024", "tcp.options.wscale.shift == 10"),
        ("ip.proto == 6 and ip.version == 4 and eth.type == 0x0800", "tcp"),
        ("ip[9] == 06", "tcp"),
        ('http.request.full_uri contains "http://"', "http.request"),
        ('http.response.phrase == "OK"', "http.response.code == 200"),
        ('http.server contains "nginx"', "http.response"),
        ("tcp.window_size_scalefactor == 1024", "tcp.flags.syn == 0"),
        ("tcp.window_size_scalefactor == -1", "tcp.len < 0"),
        ('lower(http.request.method) == "get"', "http.request"),
        ("len(http.request.method) == 3", "http.request"),
        ("count(tcp.port) == 2", "tcp"),
        ('string(tcp.dstport) matches "^8080$"', "tcp.dstport == 8080"),
        ("max(tcp.port) < 1024", "all tcp.port < 1024"),
        ("len(eth.src) == 6", "eth"),
        ("${private_ipv4:ip.src}", "ip.src in {10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16}"),
        ("$private_ipv4(ip.dst)", "ip.dst in {10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16}"),
        ("http.request_number == 1", "http.request and not http.prev_request_in"),
        ('http.response.code.desc == "OK"', "http.response.code == 200"),
        ("tcp.analysis.duplicate_ack_num", "tcp.analysis.duplicate_ack_frame"),
        ("eth.src == eth.dst", "frame.len < 0"),
        ("arp.src.hw_mac == eth.src", "arp"),
        ('http contains "GET /"', "http.request"),
        ('http[0:4] == "HTTP" and len(http) > 200', "http.response"),
        ("ip.proto == TCP and eth.type == IPv4", "tcp"),
        ('tcp.flags.syn == Set or tcp.flags.syn == "Not set"', "tcp"),
        ("eth.src contains 02:42", "eth.src[0:2] == 02:42"),
        ("ip.version == 6", "ipv6"),
    ],
)
def test_two_ways_to_choose_the_same_segments(stalls: lp.Capture, one: str, other: str) -> None:
    """A field of the frames' bytes against one of `events`."""
    frames = stalls.filter(other).events["frame"].tolist()
    assert stalls.filter(one).events["frame"].tolist() == frames


def test_echoes_find_their_replies() -> None:
    probes = lp.read(ROOT / "sample_pcaps" / "probes.pcap")
    table = probes.probes.query("kind == 'icmp_echo'")
    answered = table[table["answer"] == "echo_reply"]
    assert probes.filter("icmp.resp_in").others == answered["sent_frame"].tolist()
    assert probes.filter("icmp.resp_to").others == sorted(answered["answer_frame"].astype(int).tolist())
    longest = answered["rtt_ms"].max()
    assert len(probes.filter(f"icmp.resptime >= {longest:.6f}").others) == 1
    assert (
        probes.filter("icmp.type == 8 and icmp.no_resp").others
        == table[table["answer_frame"].isna()]["sent_frame"].tolist()
    )


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("lower(tcp.port) == 80", "lower is not for tcp.port, which is a number"),
        ("${nothing:ip.src}", "'nothing' is no macro that Wireshark brings"),
        ("len(http.host", "the filter ends here"),
    ],
)
def test_mistakes_in_functions_and_macros(stalls: lp.Capture, expression: str, reason: str) -> None:
    with pytest.raises(lp.FilterError, match=re.escape(reason)):
        stalls.filter(expression)


def test_tls_is_read_record_by_record() -> None:
    """A ClientHello, and a record that two segments carry; a repeat says nothing."""
    name = b"web.example"
    sni = struct.pack(">HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    hello = b"\x03\x03" + bytes(33) + b"\0\x02\x13\x01\x01\0" + struct.pack(">H", len(sni)) + sni
    message = b"\x01" + len(hello).to_bytes(3, "big") + hello
    record = b"\x16\x03\x01" + struct.pack(">H", len(message)) + message
    data = b"\x17\x03\x03\0\x0a" + bytes(10)
    seen: list[dict[str, list[object]]] = []
    tls = Tls()
    for seq, payload in (
        (0, record[:20]),
        (20, record[20:] + data[:6]),
        (20, record[20:]),
        (len(record) + 6, data[6:]),
    ):
        seen.append({})
        tls.segment(("a", "b"), seq, False, payload, seen[-1])
    assert seen[0] == seen[2] == {}
    assert seen[1]["tls.handshake.extensions_server_name"] == ["web.example"]
    assert seen[1]["tls.handshake.ciphersuite"] == [0x1301]
    assert seen[3]["tls.record.content_type"] == [23]


@pytest.mark.parametrize(
    ("link", "head"),
    [
        (1, bytes(12) + b"\x08\0"),
        (1, bytes(12) + b"\x81\0\0\x0a\x08\0"),
        (1, bytes(12) + b"\0\x3c\xaa\xaa\x03\0\0\0\x08\0"),
        (9, b"\xff\x03\0\x21"),
        (9, b"\x0f\0\x08\0"),
        (104, b"\x0f\0\x08\0"),
        (101, b""),
        (0, b"\x02\0\0\0"),
        (113, bytes(14) + b"\x08\0"),
        (276, b"\x08\0" + bytes(18)),
    ],
)
def test_fields_are_found_behind_every_link_header(link: int, head: bytes) -> None:
    """A UDP datagram, whole and cut anywhere."""
    packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 30, 7, 0, 64, 17, 0, b"\x0a\0\0\x01", b"\x0a\0\0\x02")
    data = head + packet + struct.pack(">HHHH", 4000, 9, 10, 0) + b"hi"
    found = values(data, link)
    assert (found["ip.src"], found["udp.dstport"], found["udp.payload"]) == (["10.0.0.1"], [9], [b"hi"])
    for length in range(len(data)):
        assert "udp.payload" not in values(data[:length], link) or length > len(data) - 2


def test_what_no_filter_reads_is_named() -> None:
    cap = lp.read(ROOT / "sample_pcaps" / "probes.pcap")
    with pytest.raises(lp.FilterError, match="latpcap has no dissector of smb2, tshark -Y may"):
        cap.filter("smb2.cmd == 5")
    with pytest.raises(lp.FilterError, match="cannot be sliced"):
        cap.filter("tcp.port[0] == 1")
    with pytest.raises(lp.FilterError, match="is no slice"):
        cap.filter("tcp[a] == 1")


def test_no_expression_backtracks() -> None:
    """Each takes Python's engine longer than anybody lives."""
    talk = Talk()
    talk.open(0.0)
    talk.client(10.0, get("/" + "a" * 1200))
    capture = lp.read(pcap(talk.tape))
    for expression in ("(a+)+z", "(a|aa)+z", "(a|a)*z", "(.*a){20}z", "^GET /(([a-z])+.)+[A-Z]([a-z])+z$"):
        begin = time.process_time()
        for field in ("frame", "http.request.uri", "tcp.payload"):
            assert len(capture.filter(f'{field} matches "{expression}"').events) == 0
        assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "expression", ["^/a", "A.c$", "[^b]c", r"\d{2,}", "(ab|cd)+", r"\bx", "a?b*c+", "^$", r"\.", "é"]
)
def test_what_both_engines_know_means_as_much(expression: str) -> None:
    texts = ["/abc", "abc", "a\nc", "1234", "cdab", "x y", "", ".", "caf\u00e9", "ABC", "-x"]
    ours, peer = _core.Pattern(expression), re.compile(expression, re.IGNORECASE | re.ASCII)
    assert [ours.search(text.encode()) for text in texts] == [peer.search(text) is not None for text in texts]


EVERYDAY = (Path(__file__).parents[1] / ".ci" / "everyday_filters.txt").read_text().splitlines()


@pytest.mark.parametrize(
    "name", ["sample_pcaps/probes.pcap", "tests/cases/dns_slow/capture.pcap", "tests/cases/stall_ipv6/capture.pcap"]
)
def test_everyday_filters_choose_some_of_the_frames(name: str) -> None:
    """What CI measures against tshark on many captures has an answer on any: never more than there is."""
    capture = lp.read(Path(__file__).parents[1] / name)
    frames = set(capture.arrow("events")["frame"].to_pylist())
    chosen = [set(capture.filter(one).arrow("events")["frame"].to_pylist()) for one in EVERYDAY if one]
    assert all(some <= frames for some in chosen)
    assert any(some == frames for some in chosen) and any(not some for some in chosen)


@pytest.mark.parametrize(
    "expression", ["x" * 100_000, "tcp and " * 2_000 + ")", "(" * 50_000, "frame.number == " + "9" * 50_000]
)
def test_an_error_shows_some_of_a_long_filter(expression: str) -> None:
    with pytest.raises(lp.FilterError) as caught:
        lp.read(Path(__file__).parents[1] / "sample_pcaps" / "clips" / "think40.pcap").filter(expression)
    text = str(caught.value)
    assert text.count("\n") == 2 and len(text) < 2_000
    line, mark = text.split("\n")[1:]
    assert len(mark.rstrip("~")) <= len(line) + 1


def in_ipv6(following: int, data: bytes) -> bytes:
    """An Ethernet frame of IPv6 from an address that holds its Ethernet address."""
    source = ip_address("fe80::20c:29ff:fe01:203").packed
    head = struct.pack(">IHBB", 6 << 28, len(data), following, 255) + source + ip_address("ff02::1").packed
    return b"\x02" * 12 + b"\x86\xdd" + head + data


def seen_in(frame: bytes, before: Conversations | None = None) -> dict[str, list[Any]]:
    return values(frame, 1, None, before)


def test_fields_of_neighbours_and_of_extension_headers() -> None:
    prefix = bytes([3, 4, 64, 0xC0]) + struct.pack(">III", 600, 300, 0) + ip_address("2001:db8::").packed
    advert = bytes([134, 0, 0, 0]) + struct.pack(">BBHII", 64, 0x88, 1800, 0, 0) + b"\x01\x01" + b"\x02" * 6 + prefix
    found = seen_in(in_ipv6(0, bytes([58, 0]) + bytes(6) + advert))
    assert found["ipv6.hopopts"] == [1] and found["ipv6.src_slaac_mac"] == [bytes.fromhex("000c29010203")]
    assert found["icmpv6.nd.ra.flag.m"] == [1] and found["icmpv6.nd.ra.flag.prf"] == [1]
    assert found["icmpv6.opt.type"] == [1, 3] and found["icmpv6.opt.prefix"] == ["2001:db8::"]
    assert found["icmpv6.checksum.status"] == [0]
    found = seen_in(in_ipv6(44, struct.pack(">BBHI", 17, 0, 8 << 3 | 1, 77) + bytes(8)))
    assert found["ipv6.fraghdr.offset"] == [8] and found["ipv6.fraghdr.more"] == [1] and "udp" not in found


def test_fields_of_icmp_arp_and_what_stands_behind_a_packet() -> None:
    echo = bytearray(bytes([8, 0, 0, 0]) + struct.pack(">HH", 0x1234, 1) + b"abcd")
    echo[2:4] = struct.pack(">H", 0xFFFF - sum(struct.unpack(">6H", bytes(echo))) % 0xFFFF)
    packet = (
        b"\x45\0" + struct.pack(">H", 20 + len(echo)) + bytes(4) + b"\x40\x01\0\0" + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    )
    frame = b"\0\x0c\x29" + bytes(9) + b"\x08\0" + packet + bytes(echo)
    found = seen_in(frame + bytes(60 - len(frame)) + b"\x01\x02")
    assert found["icmp.checksum.status"] == [1] and found["icmp.ident_le"] == [0x3412]
    assert found["eth.padding"] == [bytes(60 - len(frame))] and found["eth.trailer"] == [b"\x01\x02"]
    assert found["eth.dst.oui"] == [0x000C29]
    assert seen_in(frame[:-1] + b"e")["icmp.checksum.status"] == [0] and "eth.padding" not in seen_in(frame)
    assert seen_in(frame[:-1])["icmp.checksum.status"] == [2]
    arp = bytes(12) + b"\x08\x06" + struct.pack(">HHBBH", 1, 0x800, 6, 4, 1) + b"\x02" * 6
    assert seen_in(arp + bytes(10) + bytes([10, 0, 0, 9]))["arp.isprobe"] == [1]
    assert seen_in(arp + bytes([10, 0, 0, 9]) + bytes(6) + bytes([10, 0, 0, 9]))["arp.isannouncement"] == [1]


def test_fields_of_edns_and_times_of_conversations() -> None:
    question = struct.pack(">HHHHHH", 7, 0x0140, 1, 0, 0, 1) + b"\x03www\x03svc\0\0\x01\0\x01"
    question += b"\0" + struct.pack(">HHIH", 41, 1232, 0x01008000, 0)
    udp = struct.pack(">HHHH", 5000, 53, 8 + len(question), 0) + question
    before = Conversations()
    found = [seen_in(in_ipv6(17, udp), before)]
    before.time_ns = 3_000_000_000
    found.append(seen_in(in_ipv6(17, udp), before))
    assert found[0]["dns.count.labels"] == [2] and found[0]["dns.flags.z"] == [1]
    assert found[0]["dns.rr.udp_payload_size"] == [1232] and found[0]["dns.resp.ext_rcode"] == [1]
    assert found[0]["dns.resp.z.do"] == [1]
    assert [one["udp.time_delta"] for one in found] == [[0], [3_000_000_000]]


def test_fields_of_handshakes() -> None:
    def extension(number: int, data: bytes) -> bytes:
        return struct.pack(">HH", number, len(data)) + data

    extensions = extension(10, b"\0\x04\0\x1d\x0a\x0a") + extension(11, b"\x01\0") + extension(13, b"\0\x02\x04\x03")
    extensions += extension(51, b"\0\x08\0\x1d\0\x04abcd") + extension(0xFF01, b"\0")
    hello = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x04\x0a\x0a\xc0\x2f" + b"\x01\0"
    hello += struct.pack(">H", len(extensions)) + extensions

    def record(kind: int, body: bytes) -> bytes:
        message = bytes([kind]) + len(body).to_bytes(3, "big") + body
        return struct.pack(">BHH", 22, 0x0303, len(message)) + message

    tls, out = Tls(), {}
    chosen = b"\x03\x03" + bytes(32) + b"\0" + b"\xc0\x2f\0"
    key = b"\x03\0\x17\x04abcd\x04\x03\0\x02xy"
    server = record(2, chosen) + record(11, b"\0\0\x07\0\0\x04cert") + record(12, key)
    tls.segment(("a", "b"), 1, False, record(1, hello), out)
    assert out["tls.handshake.ja3_full"] == ["771,49199,10-11-13-51-65281,29,0"]
    assert out["tls.handshake.ja3"] == [hashlib.md5(b"771,49199,10-11-13-51-65281,29,0").hexdigest()]
    assert out["tls.handshake.extensions_key_share_group"] == [29] and out["tls.handshake.comp_method"] == [0]
    out.clear()
    tls.segment(("b", "a"), 1, False, server, out)
    assert out["tls.handshake.certificate"] == [b"cert"] and out["tls.handshake.server_named_curve"] == [0x17]
    assert out["tls.handshake.sig_hash_alg"] == [0x0403] and out["tls.handshake.ja3s_full"] == ["771,49199,"]
    out.clear()
    tls.segment(("b", "a"), 1 + len(server), False, record(4, struct.pack(">IH", 300, 2) + b"tk"), out)
    tls.segment(("a", "b"), 1 + len(record(1, hello)), False, record(16, b"\x04abcd"), out)
    assert out["tls.handshake.session_ticket"] == [b"tk"] and out["tls.handshake.client_point"] == [b"abcd"]


ARITHMETIC = {
    "ip.len - ip.hdr_len - tcp.hdr_len != tcp.len": 0,
    "tcp.len * 2 > 1000": 960,
    "{ip.len - 40} * 2 > 100": 2880,
    "tcp.len - 100 < 0": 3046,
    "tcp.len / 2 == 306 and tcp.len % 2 == 0": 960,
    "tcp.len / 0 == 1 or tcp.len % 0 == 1": 0,
    "-tcp.len < 0": 2880,
    "tcp.len == 2 * {300 + 6}": 960,
    "tcp.len > 2 * 300 + 11": 960,
    "tcp.len -1 == 611": 960,
    "tcp.len - 612": 4006,
    "tcp.flags & 0x10 + 2 == 0x12": 41,
    "tcp.flags & tcp.hdr_len": 40,
    "tcp.time_delta + 0.01 > 0.05": 880,
    "max(tcp.srcport, 8000) == 8080": 2002,
    "max(tcp.len + 1, 613) == 613": 4966,
    "min(tcp.srcport, tcp.dstport) == 8080": 4966,
    "abs(tcp.len - 700) == 88": 960,
    "len(tcp.payload) + 1 == 613": 960,
    "any tcp.port + 1 == 8081": 4966,
    "all tcp.port + 1 == 8081": 0,
    "tcp.port - tcp.port == 0": 4966,
    "ip.src[3] == 1e": 2002,
    "ip.src[0:2] == c0:a8": 4966,
    "ip.src & 255.255.255.0 == 192.168.0.0": 4966,
    "ip.src & 0.0.0.255 == 0.0.0.30": 2002,
}
"""Segments of nginx-latency.pcap, as tshark 4.0.17 counts them."""


@pytest.mark.parametrize("expression", ARITHMETIC)
def test_arithmetic_and_bytes_of_addresses(stalls: lp.Capture, expression: str) -> None:
    assert len(frames(stalls, expression)) == ARITHMETIC[expression]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_computes_the_same() -> None:
    """Those that say most, as each takes a run of tshark."""
    for expression in ("tcp.flags & 0x10 + 2 == 0x12", "tcp.len - 100 < 0", "max(tcp.len + 1, 613) == 613"):
        words = ["tshark", "-n", "-r", str(STALLS), "-Y", expression]
        shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
        assert len(shown.splitlines()) == ARITHMETIC[expression], expression


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("port 80", "read instead: tcp.port == 80"),
        ("udp src port 53", "read instead: udp.srcport == 53"),
        ("tcp and dst host 10.0.0.1", "read instead: ip.dst == 10.0.0.1"),
        ("host ::1", "read instead: ipv6.addr == ::1"),
        ("net 10.0.0.0/8", "read instead: ip.addr == 10.0.0.0/8"),
        ("100 < tcp.len", "read instead: tcp.len > 100"),
        ("(tcp.len + 1) * 2 > 5", "grouped in braces"),
        ("http.host == 'abc'", "a string stands in double quotes"),
        ("tcp.len-1 == 5", "spaces around its sign: tcp.len - 1"),
        ("mysql", "by its port: tcp.port == 3306"),
        ("tcp.time_delta * 1000 > 5", "times are added and subtracted"),
        ("tcp.flags.syn + 1 == 2", "tcp.flags.syn is a boolean"),
        ("tcp.port[0] == 1", "take its bits, as in tcp.port & 0xff"),
        ("1 + 1 == 2", "the field on the left"),
        ("tcp.len + 1 contains 5", "'contains' is for text"),
        ("tcp.len +", "the filter ends here, expected a field or a number"),
    ],
)
def test_a_refused_filter_names_what_is_read_instead(stalls: lp.Capture, expression: str, instead: str) -> None:
    with pytest.raises(lp.FilterError, match=re.escape(instead)) as caught:
        stalls.filter(expression)
    assert "\n" not in caught.value.reason


def test_names_of_values_and_passwords() -> None:
    probes = lp.read(SAMPLES / "probes.pcap")
    assert probes.filter("arp.opcode == request").others == probes.filter("arp.opcode == 1").others != []
    with pytest.raises(lp.FilterError, match=re.escape("arp.opcode is one (or request, reply)")):
        probes.filter("arp.opcode == ask")
    packet = b"\x60" + bytes(5) + b"\x3b\x40" + bytes(32)
    assert values(packet, 101)["ip.version"] == [6]
    talk = Talk()
    talk.open()
    for value in ("Basic dTpw", "Basic ?"):
        talk.client(10.0, get("/one", "GET", "Host: web", f"Authorization: {value}"))
        for part in answer(10):
            talk.server(20.0, part)
    capture = lp.read(pcap(talk.tape))
    assert len(capture.filter('http.authbasic == "u:p"').events) == 1 == len(capture.filter("http.authbasic").events)


def test_services_and_options_of_dns() -> None:
    name = b"\4_sip\4_tcp\7example\3com\0"
    target = struct.pack(">HHH", 1, 2, 5060) + b"\4host\0"
    record = b"\xc0\x0c" + struct.pack(">HHIH", 33, 1, 60, len(target)) + target
    options = struct.pack(">HH", 10, 8) + b"abcdefgh" + struct.pack(">HH", 65001, 0)
    option = b"\0" + struct.pack(">HHIH", 41, 1232, 0, len(options)) + options
    dns = struct.pack(">HHHHHH", 7, 0x8180, 1, 1, 0, 1) + name + struct.pack(">HH", 33, 1) + record + option
    udp = struct.pack(">HHHH", 53, 4000, 8 + len(dns), 0) + dns
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    found = values(ip + udp, 101)
    assert [found[f"dns.srv.{word}"] for word in ("service", "proto", "name")] == [["_sip"], ["_tcp"], ["example.com"]]
    assert (found["dns.opt.code"], found["dns.opt.len"]) == ([10, 65001], [8, 0])
    assert found["dns.opt.data"] == [b"abcdefgh"] and found["dns.srv.target"] == ["host"]


def test_addresses_that_two_hosts_claim() -> None:
    def arp(opcode: int, sender: int, source: int, owner: int, target: int) -> bytes:
        def mac(number: int) -> bytes:
            return bytes([2, 0, 0, 0, 0, number]) if number else bytes(6)

        head = b"\xff" * 6 + mac(sender) + b"\x08\x06" + struct.pack(">HHBBH", 1, 0x800, 6, 4, opcode)
        return head + mac(sender) + bytes([10, 0, 0, source]) + mac(owner) + bytes([10, 0, 0, target])

    before = Conversations()
    seen: list[list[int]] = []
    for packet in (
        arp(1, 1, 1, 0, 2),
        arp(2, 2, 2, 1, 1),
        arp(2, 3, 2, 1, 1),  # another host answers for 10.0.0.2
        arp(2, 2, 2, 1, 1),
        arp(1, 9, 1, 7, 2),  # another asks as 10.0.0.1; whom it asks is a guess
        arp(2, 1, 3, 9, 3),  # gratuitous: sender and target are one
        arp(3, 8, 1, 8, 1),  # RARP claims nothing
    ):
        before.frame += 1
        seen.append(values(packet, 1, conversations=before).get("arp.duplicate-address-frame", []))
    assert seen == [[], [], [2], [], [4], [], []]


def test_arp_of_arcnet_and_rarp() -> None:
    body = struct.pack(">HHBBH", 7, 0x800, 1, 4, 1) + b"\x50\x0a\x00\x00\x01\x00\x0a\x00\x00\x02"
    for link, head in ((7, b"\xbe\x00\xd5\x00\0\1"), (129, b"\xbe\x00\xea\x08\xd5\x00\0\1")):
        found = values(head + body, link)
        assert found["arp.opcode"] == [1] and found["layers"] == ["arcnet", "arp"]
        assert found["arp.dst.proto_ipv4"] == ["10.0.0.2"] and "arp.dst.hw_mac" not in found
    rarp = bytes(12) + b"\x80\x35" + struct.pack(">HHBBH", 1, 0x800, 6, 4, 3) + bytes(20)
    assert values(rarp, 1)["arp.opcode"] == [3]


def test_who_closed_first_and_which_answer_is_of_which_request() -> None:
    talk = Talk()
    talk.open()
    talk.client(10.0, get("/one", "GET", "Host: web", "Cookie: a=1; b=2"))
    for part in answer(10):
        talk.server(20.0, part)
    server_fin, client_fin = talk.server(30.0, flags="FA"), talk.client(31.0, flags="FA")
    capture = lp.read(pcap(talk.tape))

    def frames(expression: str) -> list[int]:
        found: list[int] = capture.filter(expression).events["frame"].tolist()
        return found

    assert frames("tcp.connection.fin_active") == [server_fin]
    assert frames("tcp.connection.fin_passive") == [client_fin]
    assert frames('http.response_for.uri == "http://web/one"') == frames("http.response")
    assert frames("http.chat") == frames("http.request or http.response")
    assert frames('http.cookie_pair == "b=2"') == frames("http.request")
    assert frames("tcp.analysis and tcp.len > 0")


@pytest.mark.parametrize("version", [0x0303, 0x0304])
def test_only_tls_13_goes_on_readable_behind_change_cipher_spec(version: int) -> None:
    """A HelloRetryRequest of TLS 1.3 is followed by a second ClientHello; in TLS 1.2 what follows is encrypted."""

    def record(kind: int, body: bytes) -> bytes:
        return struct.pack(">BHH", kind, 0x0303, len(body)) + body

    def hello(kind: int, rest: bytes) -> bytes:
        body = b"\x03\x03" + bytes(32) + b"\0" + rest
        return record(22, bytes([kind]) + len(body).to_bytes(3, "big") + body)

    change = record(20, b"\1")
    chosen = b"\x13\x01\0" + struct.pack(">HHHH", 6, 43, 2, version)
    tls, out = Tls(), {}
    tls.segment(("server", "client"), 1, False, hello(2, chosen) + change, {})
    tls.segment(("client", "server"), 1, False, change + hello(1, b"\0\x02\x13\x01\x01\0"), out)
    assert out.get("tls.handshake.type") == ([1] if version == 0x0304 else None)
    assert out["tls.handshake"] == [1]
