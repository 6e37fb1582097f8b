"""Which packets are told in one row of a flow graph, which stand alone, and with what words?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import answered
from makepcap import Ends, Segment, Talk, answer, get, pcap

import latpcap as lp
from latpcap.options import FlowOptions
from latpcap.plot import FlowGraph
from latpcap.plot.flow.packet_rows import FACTS, LONG_RUN, SHORT_RUN, since

CASES = Path(__file__).with_name("cases")
MSS = 1448


def transfer(segments: int, last: int = MSS, hold: int | None = None) -> lp.Capture:
    """An answer of so many segments 0.1 ms apart, every second acknowledged; 20 ms before number `hold`."""
    tape: list[Segment] = []
    talk = Talk(tape=tape, server_leg=0.01, client_leg=0.01)
    talk.open()
    talk.client(10, get("/big"))
    head, body = answer(segments * MSS - MSS + last)
    whole, at = head + body, 10.5
    cuts = [whole[: len(head) + 100], *(whole[i : i + MSS] for i in range(len(head) + 100, len(whole), MSS))]
    for number, part in enumerate(cuts):
        at += 20 if number == hold else 0.1
        talk.server(at, part)
        if number % 2:
            talk.client(at + 0.01)
    talk.client(at + 0.02)
    return lp.read(pcap(tape))


def told(graph: lp.plot.flow.graph.FlowGraph) -> list[tuple[str, int]]:  # type: ignore[name-defined]
    return [(row.label, row.packets) for row in graph.rows if row.packets > 1]


def test_a_long_run_is_one_row_and_every_packet_is_in_a_row() -> None:
    cap = transfer(12)
    graph = cap.flow_graph()
    ((label, packets),) = told(graph)
    run = next(row for row in graph.rows if row.packets > 1)
    assert re.fullmatch(r"13 segments, 17,418 B, 1\.2 ms", label), label
    assert sum(row.packets for row in graph.rows) == cap.frames > len(graph.rows)
    assert run.source == graph.rows[1].source and "ACKs" in run.comment and run.comment.startswith("Seq = ")
    assert f"{cap.frames} of {cap.frames} item(s)" in graph.status
    assert run.message == "200" and [row.message for row in graph.rows if row.message] == ["GET /big", "200"]
    assert packets == max(row.packets for row in graph.rows)


def test_how_long_a_run_has_to_be() -> None:
    def rows(data: int, collapse: bool | None) -> bool:
        events = transfer(20).arrow("events")
        data_rows = [n for n, size in enumerate(events["len"].to_pylist()) if size == MSS]
        part = events.take([*data_rows[:data]])
        graph = FlowGraph.from_tables(part, title="", options=FlowOptions(collapse=collapse))
        assert not told(graph) or graph.rows[0].label.startswith(f"{data} \N{MULTIPLICATION SIGN} 1448 B, ")
        return len(graph.rows) == 1

    assert [rows(n, None) for n in (LONG_RUN - 1, LONG_RUN)] == [False, True]
    assert [rows(n, True) for n in (SHORT_RUN - 1, SHORT_RUN)] == [False, True]
    assert not rows(15, False)


def test_a_marked_wait_and_a_message_end_a_run() -> None:
    whole, cut = transfer(24).flow_graph(), transfer(24, hold=12).flow_graph()
    assert len(told(whole)) == 1 and len(told(cut)) == 2
    assert any(mark.ms > 15 for mark in cut.marks)
    for mark in cut.marks:
        assert mark.upper < mark.lower
    assert len(told(transfer(24, hold=12).flow_graph(mark_ms=50))) == 1


def test_what_is_marked_stands_alone_and_says_so() -> None:
    loss = lp.read(CASES / "fast_retransmit_at_sender" / "capture.pcap").flow_graph(collapse=True)
    facts = [row.fact for row in loss.rows if row.fact]
    assert facts.count("duplicate ACK") == 4 and facts.count("fast retransmission") == 1
    assert all(row.packets == 1 for row in loss.rows if row.fact)
    window = lp.read(CASES / "zero_window" / "capture.pcap").flow_graph(collapse=True)
    assert "zero window" in [row.fact for row in window.rows]
    assert not set(FACTS) - set(lp.read().arrow("events").column_names)


def test_text_and_pages_have_every_packet() -> None:
    cap = transfer(40)
    assert cap.flow_graph(collapse=True).text() == cap.flow_graph(collapse=False).text()
    book = cap.flow_graph(max_rows=4)
    frames = [row.frame for page in book._all_pages() for row in page.rows]
    assert book.pages == 1 + -(-(len(cap.flow_graph(max_rows=999).rows) - 4) // 3)
    assert frames[0] == 1 and sorted(set(frames)) == [row.frame for row in cap.flow_graph(max_rows=999).rows]
    assert len(cap.flow_graph(collapse=False, max_rows=999).rows) == cap.frames


def test_acknowledgements_alone_are_no_run() -> None:
    """A capture of one direction: nothing says what they acknowledge."""
    tape: list[Segment] = []
    talk = Talk(tape=tape, ends=Ends())
    talk.open()
    for number in range(20):
        talk.client(5 + number / 10)
    assert not told(lp.read(pcap(tape)).flow_graph(collapse=True))


def test_the_command_has_both_words(tmp_path: Path) -> None:
    file = CASES / "fast_retransmit_at_sender" / "capture.pcap"
    pictures = []
    for word in ("--collapse", "--no-collapse"):
        answered("flow", file, word, "-o", tmp_path / "flow.svg")
        pictures.append((tmp_path / "flow.svg").read_text(encoding="utf-8"))
    assert ["6 segments, 7,800 B" in picture for picture in pictures] == [True, False]
    assert answered("flow", file, "--collapse") == answered("flow", file, "--no-collapse")


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "+0 µs"),
        (40, "+40 ns"),
        (999_000, "+999 µs"),
        (999_600, "+1.0 ms"),
        (43_857_000, "+43.9 ms"),
        (2_100_000_000, "+2.1 s"),
        (-5_000_000, "-5.0 ms"),
    ],
)
def test_time_since_the_row_above(ns: int, words: str) -> None:
    assert since(ns) == words
