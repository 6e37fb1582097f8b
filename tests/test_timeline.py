"""Does the timeline show each exchange in its place, and each event that matters?"""

from __future__ import annotations

from pathlib import Path

import golden
import numpy as np
import pytest
from test_cli import run

import latpcap as lp
from latpcap.plot.timeline import Dots, Timeline
from latpcap.vocabulary import CAUSES

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CASES = Path(__file__).with_name("cases")


@pytest.fixture(scope="module")
def slow() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-latency.pcap")


def test_a_dot_is_an_exchange(slow: lp.Capture) -> None:
    picture = slow.timeline().plot()
    lines = {line.get_gid(): line for line in picture.ax_.lines}
    exchanges = slow.exchanges[slow.exchanges["protocol"] != "tcp"]
    for name, rows in exchanges.groupby(exchanges["top_cause"].astype(str)):
        line = lines[f"cause-{name}"]
        seconds = (rows["start"].astype("int64") - slow.first_ns) / 1e9
        drawn = sorted(zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True))
        assert np.allclose(drawn, sorted(zip(seconds, rows["latency_ms"], strict=True)))
        assert line.get_color() == CAUSES[str(name)].colour


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
    drawn = {line.get_gid(): len(line.get_xdata()) for line in picture.ax_.lines}
    assert drawn["cause-network"] < 200_000 and drawn["cause-rto"] == 10
    assert "are one dot" in picture.note
    assert [line.get_gid() for line in picture.ax_.lines] == ["cause-network", "cause-rto"], "the rare ones on top"
    assert all(line.get_rasterized() for line in picture.ax_.lines)


def test_every_place_that_has_an_exchange_has_a_dot() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0, 60, 50_000), rng.gamma(2, 3, 50_000)
    line = Timeline([Dots("network", x, y)], {}, scale="linear").plot().ax_.lines[0]
    places = {(round(a * 1599 / np.ptp(x)), round(b * 899 / y.max())) for a, b in zip(*line.get_data(), strict=True)}
    for a, b in list(zip(x, y, strict=True))[:500]:
        column, row = round(a * 1599 / np.ptp(x)), round(b * 899 / y.max())
        assert any((column + i, row + j) in places for i in (-1, 0, 1) for j in (-1, 0, 1))


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        Timeline([], {})
    with pytest.raises(ValueError, match="no scale 'x'"):
        Timeline([], {}, scale="x")
    assert lp.read(SAMPLES / "probes.pcap").timeline().plot().figure_ is not None


def test_pictures_are_as_they_were(slow: lp.Capture) -> None:
    golden.check("timeline", slow.timeline()._repr_png_())


@pytest.mark.parametrize("name", ["probes.pcap", "nginx-good.pcap", "clips/gap43-nodelay.pcap"])
def test_texts_do_not_collide(name: str) -> None:
    golden.assert_legible(lp.read(SAMPLES / name).timeline().plot().figure_)


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "t.png"
    assert run("plot", "timeline", SAMPLES / "clips" / "think40.pcap", "--stream", 0, "-o", out) == (0, "", "")
    assert out.read_bytes().startswith(b"\x89PNG")
    code, _, err = run("plot", "timeline", SAMPLES / "clips" / "think40.pcap", "-o", tmp_path / "no" / "t.png")
    assert code == 2 and "No such file or directory" in err and err.count("\n") == 1
