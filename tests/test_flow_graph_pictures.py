"""Do whole flow graphs of real captures look as they did when somebody looked at them, and say what they should?"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden
import pytest
from flowtables import assert_legible, ink_of
from makepcap import Ends, Segment, Talk, answer, get, pcap

import latpcap as lp
from latpcap.plot.flow.drawing import ROW, footer
from latpcap.plot.flow.layout import MAX_GAP, Step, nice, scale_of, stack
from latpcap.plot.numbers import tenths

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"


@pytest.fixture(scope="module")
def bad() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-latency.pcap")


@pytest.fixture(scope="module")
def good() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-good.pcap")


def long_pause() -> lp.Capture:
    """Exchanges of 20 ms, then one that takes 2 s: not to be drawn to scale."""
    tape: list[Segment] = []
    talk = Talk(tape=tape, server_leg=0.05, client_leg=0.05)
    talk.open()
    at = 10.0
    for number in range(5):
        talk.client(at, get(f"/{number}"))
        talk.server(at + 0.05)
        at += 2_000 if number == 3 else 20
        talk.server(at, b"".join(answer(300)))
        talk.client(at + 0.05)
        at += 1
    return lp.read(pcap(tape))


PICTURES: dict[str, Callable[[lp.Capture, lp.Capture], Any]] = {
    "flow_worst": lambda bad, good: bad.flow_graph(exchange="worst"),
    "flow_stream": lambda bad, good: bad.stream(24).flow_graph(max_rows=22),
    "flow_to_scale": lambda bad, good: bad.stream(24).flow_graph(exchange=2, to_scale=True),
    "flow_broken_gap": lambda bad, good: long_pause().flow_graph(to_scale=True),
    "flow_date": lambda bad, good: good.stream(3).flow_graph(exchange="first", time="date"),
    "flow_all": lambda bad, good: lp.read(SAMPLES / "probes.pcap").flow_graph(flows="all", max_rows=21),
    "flow_icmp": lambda bad, good: lp.read(SAMPLES / "probes.pcap").flow_graph(flows="icmp"),
    "flow_before_after": lambda bad, good: bad.flow_graph(exchange="typical").beside(
        good.flow_graph(exchange="typical"), names=("before", "after")
    ),
    "flow_interleaved": lambda bad, good: lp.read(SAMPLES / "clips" / "split-nagle.pcap").flow_graph(max_rows=28),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_looks_as_it_did_and_is_legible(bad: lp.Capture, good: lp.Capture, name: str) -> None:
    picture = PICTURES[name](bad, good)
    golden.check(name, picture._render(".png", 100))
    assert_legible(picture.plot())


def test_many_hosts_stand_close_and_stay_legible() -> None:
    tape: list[Segment] = []
    for number in range(8):
        ends = Ends(client=(f"10.0.{number}.{10 + number}", 40_000 + number), server=("192.168.100.200", 8443))
        talk = Talk(tape=tape, ends=ends, server_leg=0.2, client_leg=0.1)
        talk.open()
        talk.client(10 + number, get(f"/api/items/{number}"))
        talk.server(30 + number, b"".join(answer(300)))
    graph = lp.read(pcap(sorted(tape, key=lambda segment: segment.time_ns))).flow_graph()
    assert len(graph.nodes) == 9 and graph.marks
    graph.plot()
    assert graph.figure_.get_size_inches()[0] < 16, "a column as wide as the longest words made 40 inches"
    assert_legible(graph)


def words(picture: Any) -> list[str]:
    return [word.text for word in ink_of(picture.plot().ax_).words]


def test_held_ack_and_freed_segment_are_named(bad: lp.Capture) -> None:
    graph = bad.flow_graph(exchange="worst")
    assert [row.tag for row in graph.rows] == ["", "", "held ACK", "freed", ""]
    assert [row.label for row in graph.rows][2:4] == ["ACK", "PSH, ACK - Len: 612"]
    assert {"held ACK", "freed"} <= set(words(graph))


def test_nothing_is_freed_by_an_answer() -> None:
    graph = lp.read(SAMPLES / "clips" / "think40.pcap").flow_graph()
    assert {mark.cause for mark in graph.marks} == {"server_think"}
    assert not any(row.tag for row in graph.rows)


def test_the_answer_to_what_was_freed_is_not_freed() -> None:
    graph = lp.read(SAMPLES / "more" / "path40-nagle.pcap").stream(0).flow_graph(exchange=10)
    assert [(row.frame, row.tag) for row in graph.rows if row.tag] == [(114, "freed")]


# --- which packets ---


def test_picks(bad: lp.Capture) -> None:
    table = bad.exchanges[bad.exchanges.complete].sort_values(["latency_ms", "exchange"], ascending=[True, False])
    first = table.sort_values(["start", "exchange"]).iloc[0]
    wanted = {"worst": table.iloc[-1], "typical": table.iloc[(len(table) - 1) // 2], "first": first}
    for which, row in wanted.items():
        graph = bad.flow_graph(exchange=which)
        assert graph.rows[0].frame == row.request_first_frame
        assert {r.stream for r in graph.rows} == {row.stream}
        (bracket,) = graph.brackets
        assert bracket.text.startswith(f"exchange {row.exchange}: GET / 200, {tenths(row.latency_ms)} ms")
        assert graph.rows[bracket.lower].frame == row.response_last_frame
        assert len(graph.rows) - bracket.lower <= 2  # and the ACK
        assert f"tcp.stream eq {row.stream}, {which} exchange" in graph.title


def test_an_exchange_has_the_causes_of_its_own_stream_only(bad: lp.Capture) -> None:
    graph = bad.flow_graph(exchange="worst")
    assert len(graph.marks) == 1 and graph.marks[0].cause == "delayed_ack"


def test_numbers_count_on_the_capture_or_on_the_stream(bad: lp.Capture) -> None:
    row = bad.stream(24).exchanges.iloc[2]
    assert bad.stream(24).flow_graph(exchange=2).rows == bad.flow_graph(exchange=int(row.exchange)).rows


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"exchange": "best"}, ValueError, "'best' is neither a number nor one of worst, typical, first"),
        ({"exchange": 99_999}, IndexError, "no exchange 99999: there are 96., counted from 0"),
        ({"exchange": 1, "frames": (1, 2)}, ValueError, "give exchange or frames, not both"),
        ({"time": "local"}, ValueError, "'local' is not one of relative, delta, "),
        ({"flows": "udp"}, ValueError, "'udp' is not one of tcp, icmp, all"),
        ({"flows": "icmp"}, ValueError, "no ICMP packet in nginx-latency.pcap"),
        ({"flows": "all", "filter": "tcp"}, ValueError, "takes no display filter"),
        ({"filter": "tcp.wrong == 1"}, lp.LatpcapError, "tcp.wrong"),
        ({"flows": "all", "exchange": 1}, ValueError, "is for a capture, not for a stream or an exchange"),
    ],
)
def test_wrong_options_are_told(bad: lp.Capture, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        bad.flow_graph(**options)


def test_a_filter_limits_the_packets_and_the_pick(bad: lp.Capture) -> None:
    graph = bad.flow_graph(filter="tcp.stream == 24 && tcp.len > 0", exchange="worst")
    assert {row.stream for row in graph.rows} == {24}
    assert all("Len" in row.label for row in graph.rows)
    row = bad.stream(24).exchanges.sort_values("latency_ms").iloc[-1]
    assert graph.rows[0].frame == row.request_first_frame


def test_a_pdf_has_pages_for_paper(bad: lp.Capture, tmp_path: Path) -> None:
    stream = bad.stream(24)
    assert [stream.flow_graph().pages, stream.flow_graph()._for_print().pages] == [3, 4]
    assert stream.flow_graph(max_rows=124)._for_print().pages == 1


def test_mark_ms_decides_which_waits_are_marked(bad: lp.Capture) -> None:
    assert not bad.flow_graph(exchange="worst", mark_ms=50).marks
    assert "waits of at least 50 ms" in bad.flow_graph(exchange="worst", mark_ms=50).status


def test_no_complete_exchange_to_pick() -> None:
    talk = Talk()
    talk.open()
    talk.client(5, get())
    with pytest.raises(IndexError, match="no worst exchange: there is no complete one"):
        lp.read(pcap(talk.tape)).flow_graph(exchange="worst")


# --- other frames ---


def test_echo_packets_say_when_they_were_asked() -> None:
    graph = lp.read(SAMPLES / "probes.pcap").flow_graph(flows="icmp")
    assert {row.label for row in graph.rows} == {"Echo (ping) request", "Echo (ping) reply"}
    assert graph.rows[1].comment == "ICMP: id=0x2a37, seq=1/256, ttl=64 (request in 3, 0.056 ms)"
    assert not graph.marks  # the pause between two pings is nobody's


def test_all_flows_hold_every_frame() -> None:
    probes = lp.read(SAMPLES / "probes.pcap")
    graph = probes.flow_graph(flows="all", max_rows=probes.frames)
    assert [row.frame for row in graph.rows] == list(range(1, probes.frames + 1))
    assert graph.rows[0].label == "Who has 192.168.0.30?"
    assert graph.nodes[:2] == ("02:00:00:00:00:02", "Broadcast")


def test_all_flows_name_http_messages(bad: lp.Capture) -> None:
    graph = bad.flow_graph(flows="all", frames=(200, 480), max_rows=281)
    labels = {row.label for row in graph.rows}
    assert {"GET / - Len: 43", "200 - Len: 238", "PSH, ACK - Len: 612"} <= labels


def test_frames_that_cannot_be_read_are_rows_too() -> None:
    from makepcap import EPOCH_NS, pcap_of

    frames = [b"\x02" * 14, b"", b"\x02" * 12 + b"\x08\x00" + b"\x45\x00", b"\x02" * 12 + b"\x08\x06" + b"\x00" * 28]
    talk = Talk()
    talk.open()
    tape = [(EPOCH_NS, frame) for frame in frames] + [(s.time_ns, s.frame()) for s in talk.tape]
    graph = lp.read(pcap_of(tape)).flow_graph(flows="all")
    assert len(graph.rows) == 7
    graph.text()
    assert_legible(graph.plot())


# --- pages ---


def test_pages_hold_every_packet_and_begin_with_the_last_of_the_one_before(bad: lp.Capture) -> None:
    graph = bad.stream(24).flow_graph(max_rows=50)
    pages = [graph.page(number) for number in range(1, graph.pages + 1)]
    frames = [[row.frame for row in page.rows] for page in pages]
    assert [len(page) for page in frames] == [50, 50, 26]
    assert all(after[0] == before[-1] for before, after in itertools.pairwise(frames))
    assert sorted({frame for page in frames for frame in page}) == bad.stream(24).events.frame.tolist()
    whole = bad.stream(24).flow_graph(max_rows=1000)
    waits = {(page.rows[m.upper].frame, page.rows[m.lower].frame, m.text) for page in pages for m in page.marks}
    assert waits == {(whole.rows[m.upper].frame, whole.rows[m.lower].frame, m.text) for m in whole.marks}
    with pytest.raises(IndexError, match="no page 4: there are 3"):
        graph.page(4)


def test_pages_are_files_or_one_pdf(bad: lp.Capture, tmp_path: Path) -> None:
    graph = bad.stream(24).flow_graph(max_rows=50)
    graph.save(tmp_path / "flow.png", pages=True)
    assert [path.name for path in graph.paths_] == ["flow-1.png", "flow-2.png", "flow-3.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in graph.paths_)
    graph.save(tmp_path / "a.pdf")
    graph.save(tmp_path / "b.pdf")
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert pdf == (tmp_path / "b.pdf").read_bytes()
    assert pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page\n") == 3
    graph.save(tmp_path / "first.png")
    assert graph.paths_ == [tmp_path / "first.png"] and "74 of 124 rows are not shown" in graph.note
    assert not graph.page(3).note.startswith("0 of")


def test_too_many_pages_are_cut_and_the_last_one_says_so(monkeypatch: pytest.MonkeyPatch, bad: lp.Capture) -> None:
    monkeypatch.setattr("latpcap.plot.flow.graph.MAX_PAGES", 2)
    pages = list(bad.stream(24).flow_graph(max_rows=50)._all_pages())
    assert [bool(page.note) for page in pages] == [False, True]
    assert "25 of 124 rows are on no page: the next ones are frames " in pages[1].note


def test_a_wait_that_began_on_the_page_before_is_shown(bad: lp.Capture) -> None:
    """Two streams in turns: the row above the wait is not the one that began it."""
    tape: list[Segment] = []
    slow = Talk(tape=tape, ends=Ends(("10.0.0.1", 1), ("10.0.0.2", 80)))
    slow.open()
    slow.client(10, get())
    quick = Talk(tape=tape, ends=Ends(("10.0.0.1", 2), ("10.0.0.2", 80)))
    quick.open(20)
    quick.client(22)
    slow.server(60, b"".join(answer(9)))
    slow.client(61)
    graph = lp.read(pcap(tape)).flow_graph(max_rows=6)
    (mark,) = [m for m in graph.page(2).marks if m.upper < 0]
    assert (mark.cause, mark.from_frame, graph.page(2).rows[mark.lower].frame) == ("server_think", 4, 9)
    assert "frames 4 \N{RIGHTWARDS ARROW} 9" in words(graph.page(2))
    assert_legible(graph.page(2).plot())


# --- time to scale ---


def test_gaps_are_to_scale_and_rows_never_too_close() -> None:
    times = [0, 1_000, 10_000_000, 30_000_000]
    (places,), breaks = stack([[Step(at, 1.75) for at in times]], 0.5e-6)
    assert places == pytest.approx([1.75, 3.5, 3.5 + 0.5 * 9.999, 3.5 + 0.5 * 29.999])
    assert not breaks


def test_a_very_long_gap_is_broken() -> None:
    (places,), (gap,) = stack([[Step(0, 1.75), Step(10**9, 1.75), Step(10**9 + 10**7, 1.75)]], 1e-6)
    assert (gap.ns, gap.bottom - gap.top) == (10**9, MAX_GAP)
    assert places[2] - places[1] == pytest.approx(10)


def test_sides_share_one_time_scale() -> None:
    left = [Step(0, 2), Step(40_000_000, 2), Step(40_001_000, 2)]
    right = [Step(0, 3), Step(20_000_000, 2), Step(40_000_000, 2)]
    (a, b), _ = stack([left, right], 0.25e-6)
    assert a[1] == b[2]  # the same time is the same height
    assert b[1] - max(a[0], b[0]) == pytest.approx(5)


def test_a_clock_that_was_set_back_keeps_the_order() -> None:
    (places,), _ = stack([[Step(50_000_000, 2), Step(10_000_000, 2), Step(60_000_000, 2)]], 1e-6)
    assert places == pytest.approx([2, 4, 14])


def test_the_scale_is_set_by_the_usual_waits() -> None:
    usual = [n * 40_000_000 for n in range(8)]
    assert scale_of([usual], 1e6) == scale_of([[*usual, usual[-1] + 10**10]], 1e6)
    assert scale_of([[0, 10, 30]], 1e6) > 0
    assert scale_of([[5, 5]], 1e6) == 0


@pytest.mark.parametrize(("em_per_ns", "said"), [(1.2e-6, "2.1"), (1e-8, "250"), (1e-9, "2,500")])
def test_the_least_row_is_said_in_plain_numbers(em_per_ns: float, said: str) -> None:
    lines = footer("", "2 items", [], [], 60.0, em_per_ns * ROW / 2.5)
    assert f"lower than {said} ms" in " ".join(line.words for line in lines)


def test_nice_numbers() -> None:
    assert [nice(x) for x in (0.034, 0.99, 1.0, 4.9, 5.0, 12, 25, 70)] == [0.02, 0.5, 1, 2, 5, 10, 20, 50]


def test_a_broken_gap_says_its_length() -> None:
    texts = words(long_pause().flow_graph(to_scale=True))
    assert any((text.endswith(" ms, cut") and text.startswith("2,0")) or text.startswith("1,9") for text in texts)


def test_beside_counts_both_from_zero(bad: lp.Capture, good: lp.Capture, tmp_path: Path) -> None:
    pair = bad.flow_graph(exchange="worst").beside(good.flow_graph(exchange="worst"), names=("before", "after"))
    assert words(pair).count("0.000000") == 2
    pair.save(tmp_path / "a.svg").save(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with pytest.raises(ValueError, match=r"saved as one of \.png, \.svg, \.pdf"):
        pair.save(tmp_path / "a.txt")


def test_a_set_up_has_a_bracket_up_to_the_request() -> None:
    talk = Talk(server_leg=300)
    talk.open()
    talk.client(310, get())
    talk.server(620, b"".join(answer(9)))
    graph = lp.read(pcap(talk.tape)).flow_graph()
    setup, request = sorted(graph.brackets, key=lambda bracket: bracket.upper)
    assert setup.text.endswith(": connection set-up, 310.0 ms") and (setup.upper, setup.lower) == (0, 2)
    assert (request.upper, request.lower) == (3, 4)


def test_names_from_the_wire_stay_harmless() -> None:
    talk = Talk()
    talk.open()
    talk.client(5, get("/" + "<b>$x^{" * 40))
    talk.server(6, b"".join(answer(9)))
    graph = lp.read(pcap(talk.tape)).flow_graph()
    (text,) = [bracket.text for bracket in graph.brackets if "GET" in bracket.text]
    assert len(text) < 90 and text.endswith("ms")
    assert_legible(graph.plot())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_letters_that_the_font_lacks_are_marked_and_stop_nothing(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "Grüße 日本 \N{HANGUL SYLLABLE GA}.pcap"
    path.write_bytes((SAMPLES / "clips" / "split-nagle.pcap").read_bytes())
    cap = lp.read(path)
    graph = cap.flow_graph(exchange="worst")
    assert "Grüße �� �.pcap, tcp.stream eq 1, worst exchange" in [w.text for w in ink_of(graph.plot().ax_).words]
    for picture in (
        graph,
        cap.waterfall(by="uri"),
        cap.timeline(),
        cap.latency().plot(),
        cap.stream(0).time_sequence(),
    ):
        picture.save(tmp_path / f"日本{suffix}")


def test_times_below_a_tenth_of_a_millisecond_are_not_nought(bad: lp.Capture) -> None:
    setup = bad.flow_graph(max_rows=6).brackets[0]
    assert setup.text == "exchange 960: connection set-up, 0.03 ms"
    marks = bad.stream(24).flow_graph(exchange=0, mark_ms=0.01).marks
    assert [mark.text for mark in marks] == ["0.20 ms server_think (server)"]


def test_a_page_without_the_longest_wait_says_where_it_is(bad: lp.Capture) -> None:
    first = bad.flow_graph(max_rows=10)
    assert first.note.endswith(" The longest wait, 43.9 ms of delayed_ack, is in frames 968-1126.")
    there = bad.flow_graph(frames=(968, 1126), max_rows=200)
    assert max(mark.ms for mark in there.marks) == pytest.approx(43.9, abs=0.1) and "longest" not in there.note
    assert "longest" not in bad.stream(24).flow_graph(max_rows=22).note
