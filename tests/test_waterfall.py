"""Is every millisecond of the tables in the waterfall, once, and in its cause's colour?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden
import numpy as np
import pyarrow as pa
import pytest
from commands import run

import latpcap as lp
from latpcap.plot import Waterfall
from latpcap.plot.cause_patterns import HATCHES
from latpcap.plot.waterfall import PROBABLE
from latpcap.plot.waterfall_rows import NAMES
from latpcap.vocabulary import CAUSES

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CASES = Path(__file__).with_name("cases")


@pytest.fixture(scope="module")
def slow() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-latency.pcap")


def areas(picture: Waterfall) -> dict[str, float]:
    """The area of each colour as it is drawn, in exchanges times the unit of the time axis."""
    picture.plot()
    found: dict[str, float] = {}
    for collection in picture.ax_.collections:
        corners = np.array([path.vertices[:4] for path in collection.get_paths()])
        wide, high = np.ptp(corners[:, :, 0], axis=1), np.ptp(corners[:, :, 1], axis=1)
        name = collection.get_gid().removeprefix("cause-")
        found[name] = found.get(name, 0.0) + float((wide * high).sum())
    return found


def spent_of_requests(cap: lp.Capture) -> float:
    asked = cap.exchanges[cap.exchanges["protocol"] != "tcp"]["exchange"]
    return float(cap.causes[cap.causes["exchange"].isin(asked)]["duration_ms"].sum())


@pytest.mark.parametrize("sort", ["latency_ms", "start", "delayed_ack"])
@pytest.mark.parametrize("by", [None, "stream", ["server", "status"]])
def test_the_area_is_the_time_of_the_causes(slow: lp.Capture, by: Any, sort: str) -> None:
    drawn = areas(slow.waterfall(by=by, sort=sort))
    causes = slow.causes[slow.causes["exchange"].isin(slow.exchanges[slow.exchanges["protocol"] != "tcp"]["exchange"])]
    spent = causes.groupby(causes["cause"].astype(str))["duration_ms"].sum()
    spent = spent[spent > 0]
    assert sorted(drawn) == sorted(spent.index)
    for name, total in spent.items():
        assert drawn[name] == pytest.approx(total, rel=1e-6), name


@pytest.mark.parametrize("case", ["zero_window", "fast_retransmit_at_sender", "chunked", "continue_at_client", "think"])
@pytest.mark.parametrize("align", ["start", "clock"])
def test_bars_of_single_exchanges_are_the_partition(case: str, align: str) -> None:
    cap = lp.read(CASES / case / "capture.pcap")
    picture = cap.waterfall(align=align)
    assert picture.plan.named and sum(picture.plan.totals.values()) == pytest.approx(spent_of_requests(cap))
    pieces = picture.plan.pieces
    unit = 1000 if align == "clock" else 1
    for bar in range(len(picture.plan.bars)):
        mine = pieces.bar == bar
        ends = (pieces.left + pieces.width)[mine] * unit
        assert np.allclose(pieces.left[mine][1:] * unit, ends[:-1], atol=1e-6), "pieces follow each other without gap"
    if align == "start":
        assert np.isclose(min(pieces.left), 0)
    else:
        first = (cap.exchanges[cap.exchanges["protocol"] != "tcp"]["start"].min().value - cap.first_ns) / 1e9
        assert min(pieces.left) == pytest.approx(first, abs=1e-9)


def test_a_bar_is_as_high_as_the_exchanges_it_stands_for(slow: lp.Capture) -> None:
    plan = slow.waterfall().plan
    assert plan.each == 12 and len(plan.bars) == 80 and not plan.named
    assert sum(bar.bottom - bar.top for bar in plan.bars) == 960
    few = slow.waterfall(top=70).plan
    assert few.each == 1 and not few.named and few.shown == 70


def test_what_is_left_out_is_said(slow: lp.Capture) -> None:
    picture = slow.waterfall(top=10)
    assert picture.note == "950 of 960 exchanges are not shown: 99 % of the time."
    longest = slow.exchanges.nlargest(10, "latency_ms")
    assert picture.plan.shown_ms == pytest.approx(longest["latency_ms"].sum())
    assert slow.waterfall(align="clock").plan.shown == 60


def test_bars_are_sorted_and_named(slow: lp.Capture) -> None:
    names = [bar.name for bar in slow.stream(24).waterfall(sort="start").plan.bars]
    assert names == [f"24 #{i}  GET /" for i in range(24)]
    words = [bar.words for bar in slow.stream(24).waterfall().plan.bars]
    values = [float(word.removesuffix(" ms")) for word in words]
    assert values == sorted(values, reverse=True)
    groups = slow.waterfall(by="server").plan.groups
    assert [group.name for group in groups] == ["192.168.0.30:8080: 960 exchanges, 39.9 s"]
    assert len(slow.waterfall(by="stream").plan.groups) == 12
    assert slow.waterfall(by="stream").plan.groups[-1].name.startswith("29 others: ")


def test_families_have_a_hatch_of_their_own() -> None:
    picture = lp.read(SAMPLES / "nginx-latency.pcap").waterfall().plot()
    drawn = {c.get_gid(): c.get_hatch() for c in picture.ax_.collections if c.get_hatch() != PROBABLE}
    assert drawn["cause-delayed_ack"] == HATCHES["stall"] != drawn["cause-server_think"] == HATCHES["server"]
    assert {key.name: key.hatch for key in Waterfall.keys(picture)}["nagle"] == HATCHES["stall"]
    assert PROBABLE not in HATCHES.values()


def test_what_is_only_probable_is_hatched() -> None:
    cap = lp.read(CASES / "stall_alone" / "capture.pcap")
    assert (cap.causes["confidence"] < 0.9).any()
    picture = cap.waterfall().plot()
    hatched = {c.get_gid() for c in picture.ax_.collections if c.get_hatch() == PROBABLE}
    weak = cap.causes[cap.causes["confidence"] < 0.9]
    assert hatched == {f"cause-{name}" for name in weak["cause"].astype(str).unique()}
    assert "white dashes" in [key.name for key in Waterfall.keys(picture)]


def test_what_is_only_suspected_is_not_called_probable() -> None:
    picture = Waterfall.from_tables(*many(3))
    dashes = {key.name: key for key in Waterfall.keys(picture)}["white dashes"]
    assert (dashes.words, dashes.alone) == ("not proven: confidence below 0.9", "white dashes: not proven")


def test_an_answer_that_was_cut_has_its_bar() -> None:
    cap = lp.read(CASES / "closed_without_answer" / "capture.pcap")
    words = [bar.words for bar in cap.waterfall().plan.bars]
    assert any(word.startswith("cut by") for word in words)


def many(n: int) -> tuple[pa.Table, pa.Table]:
    """Exchanges and causes as the tables have them: each of three causes of random lengths."""
    rng = np.random.default_rng(7)
    parts = rng.gamma(1.5, 2e6, (n, 3)).astype("int64")
    start = 1_700_000_000_000_000_000 + np.arange(n) * 1_000_000
    edges = start[:, None] + np.concatenate([np.zeros((n, 1), "int64"), parts.cumsum(axis=1)], axis=1)
    stamp = pa.timestamp("ns", tz="UTC")
    spent = {f"{name}_ms": pa.array(np.zeros(n)) for name in NAMES}
    exchanges = pa.table(
        {
            "exchange": pa.array(np.arange(n), pa.uint64()), "stream": pa.array(np.zeros(n), pa.uint32()),
            "index": pa.array(np.arange(n), pa.uint32()), "method": pa.array(["GET"] * n),
            "target": pa.array(["/"] * n), "status": pa.array([200] * n, pa.uint16()),
            "start": pa.array(edges[:, 0], stamp),
            "latency_ms": pa.array(parts.sum(axis=1) / 1e6), "cut_by": pa.nulls(n, pa.string()), **spent,
        }
    )  # fmt: skip
    causes = pa.table(
        {
            "exchange": pa.array(np.repeat(np.arange(n), 3), pa.uint64()),
            "start": pa.array(edges[:, :3].ravel(), stamp),
            "cause": pa.array(["server_think", "delayed_ack", "network"] * n).dictionary_encode(),
            "duration_ms": pa.array(parts.ravel() / 1e6), "confidence": pa.array(np.tile([0.9, 0.99, 0.5], n)),
        }
    )  # fmt: skip
    return exchanges, causes


def test_a_hundred_thousand_exchanges_are_few_shapes_and_the_same_time() -> None:
    exchanges, causes = many(100_000)
    picture = Waterfall.from_tables(exchanges, causes, title="many")
    assert picture.plan.each == 1250 and len(picture.plan.bars) == 80
    assert "each bar the mean of 1250 neighbours" in picture.subtitle
    total = float(np.asarray(causes["duration_ms"]).sum())
    assert sum(areas(picture).values()) == pytest.approx(total, rel=1e-6)
    assert sum(len(c.get_paths()) for c in picture.ax_.collections) == 240


def test_hostile_targets_are_shown_as_they_are() -> None:
    picture = Waterfall.from_tables(*hostile(), title="$HOME.pcap").plot()
    texts = [t for t in picture.figure_.findobj(type(picture.ax_.title)) if "$" in t.get_text()]
    assert texts and not any(t.get_parse_math() for t in texts)
    assert "\x1b" not in "".join(t.get_text() for t in texts)


def hostile() -> tuple[pa.Table, pa.Table]:
    exchanges, causes = many(3)
    place = exchanges.schema.get_field_index("target")
    return exchanges.set_column(place, "target", pa.array(["/$x^2$\x1b[31m", "/" + "y" * 3000, None])), causes


def test_texts_do_not_collide(slow: lp.Capture) -> None:
    stream, hard = slow.stream(24).waterfall(align="clock"), Waterfall.from_tables(*hostile(), title="x" * 200)
    for picture in (slow.waterfall(), slow.waterfall(by="stream"), stream, slow.waterfall(by="stream", top=50), hard):
        golden.assert_legible(picture.plot().figure_)


def test_pictures_are_as_they_were(slow: lp.Capture) -> None:
    golden.check("waterfall", slow.waterfall()._render(".png", 100))
    golden.check("waterfall-stream", slow.stream(24).waterfall(sort="start")._render(".png", 100))
    golden.check(
        "waterfall-probable",
        lp.read(CASES / "fast_retransmit_at_sender" / "capture.pcap").waterfall()._render(".png", 100),
    )


def test_given_axes_count_whole_exchanges_and_say_what_is_hatched() -> None:
    from matplotlib.figure import Figure

    ax = Figure(figsize=(5, 2.5)).add_subplot()
    lp.read(SAMPLES / "more" / "path40-nagle.pcap").stream(0).waterfall(sort="start", max_rows=1).plot(ax)
    assert all(float(tick).is_integer() for tick in ax.get_yticks())
    assert "white dashes: probable" in [words.get_text() for words in ax.get_legend().get_texts()]


def test_given_axes_are_drawn_on(slow: lp.Capture) -> None:
    from matplotlib.figure import Figure

    ax = Figure(figsize=(6, 4)).subplots()
    picture = slow.waterfall().plot(ax)
    assert picture.ax_ is ax and len(ax.collections) == 4 and ax.get_legend() is not None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sort": "length"}, "cannot sort by 'length'; known are latency_ms, start, exchange, network"),
        ({"align": "left"}, "no alignment 'left'"),
        ({"by": "nobody"}, "cannot group by 'nobody'"),
        ({"top": 0}, "at least 1 exchange"),
    ],
)
def test_wrong_words_are_refused(slow: lp.Capture, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        slow.waterfall(**options)


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="no exchange: there is nothing to draw"):
        lp.read(SAMPLES / "probes.pcap").waterfall()


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "w.svg"
    words = (
        "plot",
        "waterfall",
        SAMPLES / "clips" / "think40.pcap",
        "--sort",
        "start",
        "--by",
        "uri",
        "--top",
        5,
        "-o",
        out,
    )
    assert run(*words) == (0, "", "")
    drawn = out.read_text()
    assert (
        all(f"cause-{name}" in drawn for name in ("server_think",)) and CAUSES["server_think"].colour.lower() in drawn
    )
    one = out.read_bytes()
    assert run(*words) == (0, "", "") and out.read_bytes() == one
    code, text, err = run("plot", "waterfall", SAMPLES / "probes.pcap", "-o", out)
    assert (code, text) == (2, "") and err.endswith("w.svg: no exchange: there is nothing to draw\n")
