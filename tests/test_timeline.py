"""Does the timeline show each exchange in its place, and each event that matters?"""

from __future__ import annotations

from pathlib import Path

import golden
import numpy as np
import pytest
from commands import run
from makepcap import Talk, pcap

import latpcap as lp
from latpcap.plot.cause_patterns import HATCHES, mark
from latpcap.plot.timeline import Dots, Timeline
from latpcap.vocabulary import CAUSES, FAMILIES

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CASES = Path(__file__).with_name("cases")


@pytest.fixture(scope="module")
def slow() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-latency.pcap")


def test_a_dot_is_an_exchange(slow: lp.Capture) -> None:
    picture = slow.timeline().plot()
    exchanges = slow.exchanges[slow.exchanges["protocol"] != "tcp"]
    for name, rows in exchanges.groupby(exchanges["top_cause"].astype(str)):
        lines = [line for line in picture.ax_.lines if line.get_gid() == f"cause-{name}"]
        seconds = (rows["start"].astype("int64") - slow.first_ns) / 1e9
        there = set(zip(seconds.round(6), rows["latency_ms"].round(3), strict=True))
        drawn = [place for line in lines for place in zip(*line.get_data(), strict=True)]
        assert drawn and all((round(x, 6), round(y, 3)) in there for x, y in drawn)
        wide, high = np.ptp(np.concatenate([d.seconds for d in picture.dots])), max(slow.exchanges["latency_ms"])
        for x, y in there:  # none is further from a dot than a dot is wide
            assert min(max(abs(x - a) / wide * 159, abs(y - b) / high * 59) for a, b in drawn) <= 1.001
        assert {line.get_color() for line in lines} == {CAUSES[str(name)].colour}


def test_time_0_is_frame_1_also_where_a_later_frame_is_earlier() -> None:
    talk = Talk(server_leg=0.01, client_leg=1.0)
    talk.open()
    talk.client(10.0, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    talk.server(30.0, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    cap = lp.read(pcap([talk.tape[1], talk.tape[0], *talk.tape[2:]]))
    assert cap.zero_ns == talk.tape[1].time_ns and cap.first_ns == talk.tape[0].time_ns < cap.zero_ns
    later = {round((segment.time_ns - cap.zero_ns) / 1e9, 9) for segment in talk.tape if segment.payload}
    assert cap.timeline().start_ns == cap.throughput().start_ns == cap.zero_ns
    assert round(float(cap.timeline().dots[0].seconds[0]), 9) in later
    assert round(float(cap.stream(0).time_sequence().data.segments.seconds[0]), 9) in later


def test_lanes_are_wiresharks_facts(slow: lp.Capture) -> None:
    assert {name: len(x) for name, x in slow.timeline().lanes.items()} == {
        "RST": int(slow.events["flags"].astype(str).str.contains("RST").sum()),
        "SYN": 41,
    }
    window = lp.read(CASES / "zero_window" / "capture.pcap")
    lanes = window.timeline().lanes
    assert len(lanes["zero_window"]) == int(window.events["zero_window"].sum()) > 0
    lost = lp.read(CASES / "fast_retransmit_at_sender" / "capture.pcap")
    events = lost.events
    kinds = events[["retransmission", "fast_retransmission", "spurious_retransmission"]].any(axis=1)
    assert len(lost.timeline().lanes["retransmission"]) == int(kinds.sum()) > 0


def test_exchanges_without_latency_have_a_lane() -> None:
    good = lp.read(SAMPLES / "nginx-good.pcap")
    picture = good.timeline()
    assert len(picture.lanes["incomplete"]) == 19 and picture.total == 949


def test_a_hundred_thousand_are_thinned_and_said_so() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0, 60, 200_000), rng.gamma(2, 3, 200_000)
    picture = Timeline([Dots("network", x, y), Dots("rto", x[:10] + 1, y[:10] + 200)], {}, title="many").plot()
    drawn: dict[str, int] = {}
    for line in picture.ax_.lines:
        drawn[line.get_gid()] = drawn.get(line.get_gid(), 0) + len(line.get_xdata())
    assert drawn["cause-network"] < 20_000 and drawn["cause-rto"] == 10
    legend = Timeline.keys(picture)
    assert any(key.name == "larger" and "10, 100" in key.words for key in legend)
    assert list(drawn) == ["cause-network", "cause-rto"], "the rare ones on top"
    assert all(line.get_rasterized() for line in picture.ax_.lines)


def test_every_place_that_has_an_exchange_has_a_dot() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0, 60, 50_000), rng.gamma(2, 3, 50_000)
    lines = Timeline([Dots("network", x, y)], {}, scale="linear").plot().ax_.lines
    drawn = [place for line in lines for place in zip(*line.get_data(), strict=True)]
    places = {(round(a * 159 / np.ptp(x)), round(b * 59 / y.max())) for a, b in drawn}
    for a, b in list(zip(x, y, strict=True))[:500]:
        column, row = round(a * 159 / np.ptp(x)), round(b * 59 / y.max())
        assert any((column + i, row + j) in places for i in (-1, 0, 1) for j in (-1, 0, 1))


def test_a_dot_is_as_large_as_it_has_exchanges() -> None:
    x = np.repeat([0.0, 1.0, 2.0, 3.0], [1, 9, 10, 100])
    lines = Timeline([Dots("network", x, np.full(120, 5.0))], {}, scale="linear").plot().ax_.lines
    sizes = {place: line.get_markersize() for line in lines for place in line.get_xdata()}
    assert sizes[0.0] == sizes[1.0] < sizes[2.0] < sizes[3.0]
    few = Timeline([Dots("network", x[:10], np.full(10, 5.0))], {}).keys()
    assert "larger" not in [key.name for key in few]


def test_the_clock_of_the_day(slow: lp.Capture) -> None:
    picture = slow.timeline()
    assert picture.subtitle.endswith("; 0 s is 2026-11-21 06:07:31.591 UTC")
    below = picture.plot().figure_.axes[-1]
    assert below.xaxis.get_major_formatter()(0.4, 0) == "0.4\n06:07:31.991"
    assert below.get_xlabel() == "time in the capture [s], and of the day (UTC)"


def test_families_have_marks_of_their_own() -> None:
    marks = {CAUSES[name].family: mark(name) for name in CAUSES}
    assert len(set(marks.values())) == len(FAMILIES) == len(set(HATCHES.values())) == len(HATCHES)
    assert set(marks) == set(FAMILIES)


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        Timeline([], {})
    with pytest.raises(ValueError, match="no scale 'x'"):
        Timeline([], {}, scale="x")
    assert lp.read(SAMPLES / "probes.pcap").timeline().plot().figure_ is not None


def test_pictures_are_as_they_were(slow: lp.Capture) -> None:
    golden.check("timeline", slow.timeline()._render(".png", 100))


@pytest.mark.parametrize("name", ["probes.pcap", "nginx-good.pcap", "clips/gap43-nodelay.pcap"])
def test_texts_do_not_collide(name: str) -> None:
    golden.assert_legible(lp.read(SAMPLES / name).timeline().plot().figure_)


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "t.png"
    assert run("plot", "timeline", SAMPLES / "clips" / "think40.pcap", "--stream", 0, "-o", out) == (0, "", "")
    assert out.read_bytes().startswith(b"\x89PNG")
    code, _, err = run("plot", "timeline", SAMPLES / "clips" / "think40.pcap", "-o", tmp_path / "no" / "t.png")
    assert code == 2 and "No such file or directory" in err and err.count("\n") == 1
