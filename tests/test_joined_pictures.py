"""Pictures of two joined captures: delays with their bound, and the points as lifelines on one clock."""

from __future__ import annotations

from pathlib import Path

import golden
import numpy as np
import pytest
from commands import answered, complains
from test_joined import joined
from twopoints import Wire, talk

import latpcap as lp
from latpcap.plot.flow.lifelines import Arrow, PointsGraph, _apart

PAIR = [Path(__file__).parents[1] / "sample_pcaps" / "two-points" / f"{name}.pcap" for name in ("client", "server")]


@pytest.fixture(scope="module")
def pair() -> lp.Joined:
    return lp.join(*PAIR)


def test_a_dot_is_a_packet_that_both_have(pair: lp.Joined) -> None:
    picture = pair.delays().plot()
    rows = pair.packets
    for name, up in (("a_to_b", True), ("b_to_a", False)):
        mine = rows[(rows.direction == name) & rows.delay_ms.notna()]
        zero = rows[["a_time", "b_time"]].min(axis=1).min()
        left = ((mine.a_time if up else mine.b_time) - zero).dt.total_seconds()
        (line,) = [line for ax in picture.figure_.axes for line in ax.lines if line.get_gid() == f"delay-{name}"]
        assert np.allclose(np.sort(line.get_xdata()), np.sort(left), atol=1e-6)
        assert sorted(line.get_ydata()) == sorted(mine.delay_ms)
    assert {key: len(s) for key, s in picture.lanes.items()} == {("lost", "a_to_b"): 1, ("lost", "b_to_a"): 1}


def test_delays_picture(pair: lp.Joined) -> None:
    picture = pair.delays()
    golden.assert_legible(picture.plot().figure_)
    golden.check("delays", picture._repr_png_())


@pytest.mark.parametrize("which", ["typical", "worst"])
def test_points_picture(pair: lp.Joined, which: str) -> None:
    picture = pair.flow_graph(exchange=which)
    golden.assert_legible(picture.plot().figure_)
    golden.check(f"points_{which}", picture._repr_png_())


def test_an_arrow_is_as_long_as_the_packet_was_on_the_way(pair: lp.Joined) -> None:
    rows = pair.packets.set_index("a_frame")
    picture = pair.flow_graph(frames=(40, 60))
    assert [one.a_frame for one in picture.arrows] == list(range(40, 61))
    for one in picture.arrows:
        assert one.a_frame is not None
        assert (one.b_ms - one.a_ms) * (1 if one.up else -1) == pytest.approx(rows.delay_ms[one.a_frame], abs=1e-5)


def test_parts_end_where_the_exchange_ends(pair: lp.Joined) -> None:
    worst = pair.exchanges.latency_ms.max()
    picture = pair.flow_graph(exchange="worst")
    assert picture.spans[0].begin_ms == 0 and picture.spans[-1].end_ms == pytest.approx(worst)
    assert any(one.fate == "lost" for one in picture.arrows)
    assert sum(line.get_gid() == "lost" for line in picture.plot().ax_.lines) == 1


def test_what_one_capture_lacks_is_dotted_by_the_median_delay() -> None:
    wire = Wire(seed=9)
    talk(wire)
    missing = 40
    at_b = wire.frames(True)
    number = at_b[missing][1]
    wire.at_b = [seen for seen in wire.at_b if seen[1] != number]
    found = joined(wire)
    rows = found.packets
    unseen = rows[(rows.fate == "unseen") & rows.b_frame.isna()]
    assert len(unseen) == 1
    frame = int(unseen.a_frame.iloc[0])
    (one,) = found.flow_graph(frames=(frame, frame)).arrows
    assert one.b_frame is None and abs(one.b_ms - one.a_ms) == pytest.approx(4, abs=0.2)


def test_labels_are_moved_apart() -> None:
    assert _apart([1, 1, 1.1, 9], 30) == pytest.approx([1, 2.35, 3.7, 9])
    assert _apart([8, 9, 9.5], 10) == pytest.approx([7.3, 8.65, 10])


def test_many_packets_stay_legible() -> None:
    arrows = [Arrow(k % 2 == 0, k * 0.1, k * 0.1 + 4, k + 1, k + 1, "passed", "ACK") for k in range(80)]
    golden.assert_legible(PointsGraph(("a", "b"), arrows).plot().figure_)
    with pytest.raises(ValueError, match="no packet to draw"):
        PointsGraph(("a", "b"), [])


def test_what_is_not_there_is_one_sentence(pair: lp.Joined) -> None:
    for options, words in (
        ({"exchange": 99_999}, "exchange 99999 of A is not whole"),
        ({"exchange": "last"}, "no exchange 'last'"),
        ({"frames": (9_000, 9_001)}, "no packet of those"),
        ({"exchange": "worst", "stream": 77}, "no exchange is whole"),
    ):
        with pytest.raises(ValueError, match=words):
            pair.flow_graph(**options)  # type: ignore[arg-type]


def test_commands(tmp_path: Path) -> None:
    files = [str(file) for file in PAIR]
    assert "lost" in answered("flow", "--join", *files, "--exchange", "worst")
    for command in (("flow", "--join"), ("plot", "delay", "--join"), ("plot", "delay")):
        answered(*command, *files, "-o", str(tmp_path / "picture.png"))
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
        (tmp_path / "picture.png").unlink()
    assert "takes two captures or more" in complains(2, "flow", "--join", files[0])
    assert "takes two captures or more" in complains(2, "flow", *files)
    assert "takes no filter" in complains(2, "flow", "--join", *files, "-Y", "tcp")
