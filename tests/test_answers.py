"""Is `why` right, short, and made only of numbers that can be checked? Over the samples, the cases, odd captures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import dpkt
import pytest
import situations
from case_scripts import SCRIPTS
from makepcap import Ends, Talk, answer, get, pcap, pcap_of

import latpcap as lp
from latpcap.answers import headline as answers
from latpcap.answers import text
from latpcap.findings import fixes
from latpcap.vocabulary import CAUSES

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CLIPS = SAMPLES / "clips"


@cache
def read(name: str) -> lp.Capture:
    return lp.read(SAMPLES / name)


SHORTER = re.compile(r"in (\d+) shorter pieces")
TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
WORDS = re.compile(
    r"\bp50\b|\bp99\b|95 % of|a pause gives 0|under 0\.1 %|HTTP/1|"
    r"192\.168[\d.:]*|10\.0\.0[\d.:]*|\[?2001:db8::\d\]?(:80)?|\w+\.pcap"
)


def numbers(data: Any) -> Iterator[float]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from numbers(key)  # statuses
            yield from numbers(value)
    elif isinstance(data, list):
        yield float(len(data))
        for value in data:
            yield from numbers(value)
    elif isinstance(data, str):
        yield from (float(t.replace(",", "")) for t in TOKEN.findall(data))
    elif isinstance(data, (int, float)) and not isinstance(data, bool):
        yield float(data)


def assert_backed(why: Any) -> None:
    """At most 15 lines, and every number of the text is one of `to_dict()`: as it is, in percent or in us."""
    text, data = str(why), why.to_dict()
    assert len(text.splitlines()) <= 15
    assert json.loads(json.dumps(data)) == data
    known = list(numbers(data))
    times = [c.get("total_ms", c.get("duration_ms")) for c in data.get("causes", [])]
    total = data.get("total_ms") or sum(times) or 1.0
    known += [100 * t / total for t in times] + [sum(times)] + [0.0]
    if rest := SHORTER.search(text):
        known += [int(rest[1]), sum(sorted(times)[: int(rest[1])])]
    known += [100 * sum(c["total_ms"] for c in data.get("causes", []) if c.get("cause") == n) / total
              for n in CAUSES if data["kind"] == "overall"]  # fmt: skip
    known += [len(data.get("servers", [0])) - 1, sum(row["slow"] for row in data.get("servers", [])[1:])]
    known += [data["slow"]["of"] - 1] if "slow" in data else []
    known += [(s["sender_rtt_ms"] or 0) + (s["receiver_rtt_ms"] or 0) for s in data.get("senders", {}).values()]
    known += [scale * k for k in list(known) for scale in (100, 1000)]
    for token in TOKEN.findall(WORDS.sub("", text)):
        value, digits = float(token.replace(",", "")), len(token.partition(".")[2])
        assert any(abs(value - k) <= 0.5001 * 10**-digits for k in known), f"{token} in:\n{text}"


def every_capture() -> Iterator[lp.Capture]:
    yield from (lp.read(p) for p in [*sorted(SAMPLES.glob("*.pcap")), *sorted(CLIPS.glob("*.pcap"))])
    yield from (lp.read(script.capture()) for script in SCRIPTS.values())


def test_every_number_of_an_answer_is_in_its_dict() -> None:
    for capture in every_capture():
        assert_backed(capture.why())
        assert_backed(capture.stream(0).why())
        numbers = capture.arrow("exchanges")["exchange"].to_pylist()
        for number in {*numbers[:2], *numbers[-1:]}:
            assert_backed(capture.why(exchange=number))


def udp() -> bytes:
    packet = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\x0a\0\0\2", p=17, data=dpkt.udp.UDP(sport=53, dport=53, data=b"x"))
    return bytes(dpkt.ethernet.Ethernet(data=bytes(packet), type=0x800))


def flood() -> bytes:
    tape = []
    for port in range(500):
        Talk(ends=Ends(("10.0.0.1", 20_000 + port)), tape=tape).client(port / 10, flags="S")
    return pcap(tape)


def handshakes() -> bytes:
    talk = Talk()
    talk.open()
    refused = Talk(ends=Ends(("10.0.0.1", 41_000)), tape=talk.tape)
    refused.client(10, flags="S")
    refused.server(10.01, flags="RA")
    asked = Talk(ends=Ends(("10.0.0.1", 42_000)), tape=talk.tape)
    asked.open(20)
    asked.client(30, get())
    return pcap(talk.tape)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pcap([]), ["0 frames, 0 TCP streams", "The capture is empty: it has no frame."]),
        (pcap_of([(10**18, udp())]), ["1 frame, 0 TCP streams", "No TCP: its one frame is UDP"]),
        (flood(), ["500 TCP streams, 0 exchanges", "500 without an answer to the SYN"]),
        (handshakes(), ["3 TCP streams", "2 without any data", "1 with data but no complete answer"]),
    ],
    ids=["empty", "udp", "flood", "handshakes"],
)
def test_why_without_exchanges(data: bytes, says: list[str]) -> None:
    capture = lp.read(data)
    why = capture.why()
    assert why.to_dict()["verdict"] == "no_exchanges"
    assert all(words in str(why) for words in says), str(why)
    assert_backed(why)


def test_a_refused_connection_was_answered() -> None:
    """probes.pcap: hping3's three SYNs to the closed port 81 were answered by RST, so no SYN went unanswered."""
    assert "without an answer to the SYN" not in str(read("probes.pcap").why())


def test_a_target_cannot_write_on_the_terminal() -> None:
    """Escape sequences and line breaks of a hostile request do not reach the answer as they are."""
    for target in ("/\x1b[2J\x1b[31mred", "/\x07\x08\x08", "/a\rb", "/\u202ereversed", "/\x9b31m"):
        talk = Talk()
        talk.open()
        talk.client(5, f"GET {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        talk.server(6, b"".join(answer(5)))
        capture = lp.read(pcap(talk.tape))
        for number in capture.arrow("exchanges")["exchange"].to_pylist():
            text = str(capture.why(exchange=number))
            assert all(c.isprintable() or c == "\n" for c in text), repr(text)


# the verdicts


@pytest.mark.parametrize("path", sorted(CLIPS.glob("*.pcap")), ids=lambda p: p.stem)
def test_clips_are_judged_as_their_truth_says(path: Path) -> None:
    truth = json.loads((CLIPS / "truth.json").read_text(encoding="utf-8"))[path.name]
    capture = lp.read(path)
    causes = capture.arrow("causes").to_pylist()
    place = {e["exchange"]: (e["stream"], e["index"]) for e in capture.arrow("exchanges").to_pylist()}
    held = [c for c in causes if c["cause"] == "delayed_ack" and c["parent"] == "nagle" and c["confidence"] >= 0.9]
    wanted = {(int(stream), i) for stream, on_it in truth["stalled_exchanges"].items() for i in on_it}
    assert {place[c["exchange"]] for c in held} == wanted and len(wanted) == truth["stalls"]
    owners = {(c["cause"], c["owner"]) for c in causes}
    assert set(truth["expected_causes"].items()) <= owners
    spent = {c["cause"] for c in causes if c["duration_ms"] > 1}
    assert not spent & set(truth["must_not"])
    if not wanted:
        assert capture.why().to_dict()["verdict"] != "nagle + delayed_ack"
        assert not any(c["cause"] == "delayed_ack" for c in causes)


def test_the_answer_for_nginx_latency() -> None:
    why = read("nginx-latency.pcap").why()
    data, text = why.to_dict(), str(why)
    assert (data["verdict"], data["hit"], data["proven"], data["server"]) == (
        "nagle + delayed_ack", 880, 880, "192.168.0.30:8080"
    )  # fmt: skip
    assert {(c["cause"], c["owner"]) for c in data["causes"][:2]} == {("delayed_ack", "client"), ("nagle", "server")}
    assert re.search(r"^ +server +nagle:", text, re.M) and re.search(r"^ +client +delayed_ack:", text, re.M)
    assert "TCP_NODELAY on the server" in text and "proven" in text
    assert data["senders"]["client"]["verdict"] == "open"  # wrk's one write a request cannot show it


def test_the_answer_for_nginx_good_accuses_nobody() -> None:
    why = read("nginx-good.pcap").why()
    data = why.to_dict()
    assert not {"nagle", "delayed_ack"} & {c["cause"] for c in data["causes"] if c["total_ms"] > 1}
    assert data["verdict"] != "nagle + delayed_ack" and data["senders"]["server"]["verdict"] == "nodelay"
    assert "delayed_ack" not in str(why) and "TCP_NODELAY on" not in str(why)


def test_a_lone_stall_is_only_probable() -> None:
    why = lp.read(pcap(situations.stall(2)[0].tape)).why()
    assert why.to_dict()["proven"] == 0 and why.to_dict()["confidence"] < 0.9
    assert "1 of 2 requests is slow, probably because its answers wait" in str(why)
    assert "sure?     probable" in str(why)


def test_frames_of_one_piece_say_how_much_they_show() -> None:
    whole = {"pieces": 1, "longest_ms": 40.0, "ms": 40.0}
    assert text._time_shown(whole) == text._time_shown(whole | {"pieces": 3, "longest_ms": 39.0}) == "40.0 ms"
    parts = whole | {"pieces": 1200, "longest_ms": 1.5}
    assert text._time_shown(parts) == "1.50 ms, the longest of 1,200 pieces that make 40.0 ms"
    typical = read("nginx-good.pcap").why().to_dict()["typical"]
    assert typical["pieces"] >= 1 and 0 < typical["longest_ms"] <= typical["ms"]


def test_a_lone_freed_segment_is_no_percentage() -> None:
    """Its release is counted without the path, the frames beside it show both: the sentence says so."""
    text = str(lp.read(Path(__file__).with_name("cases") / "stall_alone" / "capture.pcap").why())
    assert ": the one freed segment left within 10 us of the ACK (the path taken off); rival: server_think, " in text
    assert "next segment 20 us after that" in text


def test_the_path_is_no_excuse_where_a_program_takes_a_share() -> None:
    """Most time is the path's, but not all: the first sentence names what takes a tenth and more beside it."""
    for think, sentence in (
        (
            26.0,
            ":80 is slow: most time probably goes to the server's program (57 %; 43 % to network): 26.0 ms at the "
            "median.",
        ),
        (6.0, ":80: 8 requests, p50 26.0, p99 26.0 ms; what takes the time is the path's round trip."),
    ):
        talk = Talk(client_leg=0.05, server_leg=20)
        talk.open()
        for at in range(50, 500, 60):
            talk.client(at, get())
            talk.server(at + 20 + think, b"".join(answer(200)))
            talk.client(at + 20.1 + think)
        assert sentence in str(lp.read(pcap(talk.tape)).why()).splitlines()[1]


def test_the_only_connection_is_no_fraction() -> None:
    talk = Talk()
    talk.client(0, flags="S")
    talk.server(1, flags="RA")
    told = lp.read(pcap(talk.tape)).findings["text"].item()
    assert told == "the only connection to 10.0.0.2:80 was refused with RST: nothing listens on that port"


def test_without_tcp_the_answer_says_what_there_is() -> None:
    can = bytearray(pcap_of([(0, b"abcdefgh")] * 3))
    can[20] = 227  # the link type
    assert str(lp.read(bytes(can)).why()).splitlines()[1:] == [
        "No TCP stream: nothing that latpcap could judge.",
        "  skipped   3 frames of 3: link type is not read (227)",
    ]
    whole = lp.read(SAMPLES / "probes.pcap")
    records = [(r.time_ns, r.data) for r in whole.records(range(1, 13))]  # two of ARP, ten of ping
    told = str(lp.read(pcap_of(records)).why()).splitlines()
    assert told[2:] == ["  probes    5 pings, in the table probes with their round trips"]
    assert len(str(whole.filter("tcp.port == 9").why()).splitlines()) == 2  # that a filter leaves nothing says nothing


def test_less_than_half_is_not_most() -> None:
    facts = lp.read(SAMPLES / "clips" / "think40.pcap").why().data.facts
    most = ": most time probably goes to the server's program: 40.1 ms at the median."
    assert most in answers.headline(facts, None, None).text
    facts.requests.families[0]["share"] = 0.49
    largest = ": the largest part of the time probably goes to the server's program"
    assert largest in answers.headline(facts, None, None).text


def test_below_proven_nobody_else_is_cleared() -> None:
    """The rival is the one that the rows leave; the meaning and the fix leave out that nothing else is slow."""
    cap = lp.read(SAMPLES / "clips" / "think40.pcap")
    told, row = str(cap.why()), cap.why().findings[0]
    [left] = set(cap.causes.loc[cap.causes["cause"] == "server_think", "rival"])
    assert row.grade == "probable" and left == "other_path" and row.rival.startswith("delayed_ack, an ACK held on a ")
    assert "nothing held it back" not in told and "not TCP's" not in told and "rival: " in told
    facts = cap.why().data.facts
    facts.common.findings[0] = replace(facts.common.findings[0], grade="proven")
    alone = "goes to the server's program, and nothing held it back: 40.1 ms at the median."
    assert alone in answers.headline(facts, None, None).text
    assert fixes.fix("server_think", "server", 40.0, None, proven=True).knob == CAUSES["server_think"].fix


def test_what_cases_are_to_say_in_words() -> None:
    """Sentences about situations whose rows tests/cases holds."""
    cases = Path(__file__).with_name("cases")
    for name, said in (
        (
            "client_pauses_between/capture.pcap",
            "40.0 ms passed from an answer to the next request, 6 times: no part of a latency",
        ),
        ("kind_mariadb_tls/capture.pcap.gz", "1 incomplete (last words before the client's FIN)\n"),
        ("mixed_some_server/capture.pcap", "server TCP_NODELAY mixed (off on 3 of 6 connections)"),
        ("decoy_more/capture.pcap.gz", "rival: nagle, a small segment held while"),
        ("decoy_queue/capture.pcap.gz", "fills the line and the queue before it: round trips take 120 ms meanwhile"),
    ):
        assert said in str(lp.read(cases / name).why()), name
