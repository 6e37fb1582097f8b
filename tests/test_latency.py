"""Are counts and percentiles right, is nothing left out in silence, and does the picture show them?"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import golden
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import run

import latpcap as lp
from latpcap.arrays import percentile
from latpcap.plot.latency import LatencyPlot, Series
from latpcap.views.latency import Latency

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CASES = Path(__file__).with_name("cases")


@pytest.fixture(scope="module")
def slow() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-latency.pcap")


@pytest.fixture(scope="module")
def fast() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-good.pcap")


def made(values: list[float | None], **columns: list[Any]) -> pd.DataFrame:
    """Samples as `Latency` takes them, one second apart."""
    start = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(range(len(values)), unit="s")
    ends = [s + pd.Timedelta(milliseconds=v or 0) for s, v in zip(start, values, strict=True)]
    frame = pd.DataFrame({"start": start, "end": ends, "latency_ms": pd.array(values, dtype="float64")})
    return frame.assign(response_bytes=1000, top_cause="network", **columns)


@pytest.mark.parametrize(
    ("n", "percent", "place"),
    [(1, 50, 1), (2, 50, 1), (3, 50, 2), (5, 50, 3), (100, 99, 99), (101, 99, 100), (10, 0, 1), (7, 100, 7)],
)
def test_a_percentile_is_the_nearest_rank(n: int, percent: float, place: int) -> None:
    assert percentile(list(range(1, n + 1)), percent / 100) == place
    share = [x for x in range(1, n + 1) if 100 * x >= percent * n]
    assert share[0] == place or percent == 0


def test_why_and_latency_say_the_same(slow: lp.Capture) -> None:
    alone = lp.read(CASES / "stall_alone" / "capture.pcap")
    for cap in (slow, alone, lp.read(SAMPLES / "clips" / "split-nagle.pcap")):
        told, row = cap.why().to_dict(), cap.latency().table.iloc[0]
        assert (told["p50_ms"], told["p99_ms"]) == (row["p50_ms"], row["p99_ms"])


def test_numbers_are_those_of_the_statistics_module(slow: lp.Capture) -> None:
    values = sorted(slow.exchanges["latency_ms"].dropna())
    row = slow.latency(percentiles=[50, 99.9]).table.iloc[0]
    mean, stdev = statistics.mean(values), statistics.stdev(values)
    assert row["count"] == 960 and row["left_out"] == 0
    assert row["mean_ms"] == pytest.approx(mean) and row["stdev_ms"] == pytest.approx(stdev)
    assert row["within_stdev_percent"] == pytest.approx(100 * sum(abs(v - mean) <= stdev for v in values) / 960)
    assert (row["max_ms"], row["p50_ms"], row["p99.9_ms"]) == (values[-1], values[479], values[959])
    done = slow.exchanges[slow.exchanges["complete"]]
    span = (done["end"].max() - done["start"].min()).total_seconds()
    assert row["requests_per_s"] == pytest.approx(960 / span)
    assert row["transfer_bytes_per_s"] == pytest.approx(done["response_bytes"].sum() / span)


def test_close_to_what_wrk_said_of_the_same_run(slow: lp.Capture) -> None:
    # nginx-latency.wrk.txt: Avg 41.98, 50 % 43.90, 99 % 44.21 ms, at the client; it does not count the 40 that it cut
    row = slow.latency().table.iloc[0]
    assert row["p50_ms"] == pytest.approx(43.90, abs=0.3)
    assert row["p99_ms"] == pytest.approx(44.21, abs=0.4)
    assert row["mean_ms"] == pytest.approx(41.98, abs=0.6)


WORDS = ("server", "client", "stream", "uri", "method", "status", "protocol", "top_cause", "host", "error", "capture",
         "folder", "response_bytes")  # fmt: skip


@pytest.mark.parametrize("by", [*WORDS, ["server", "status"], ["folder", "method"]])
def test_groups_hold_every_exchange_once(slow: lp.Capture, by: Any) -> None:
    table = slow.latency(by).table
    names = [by] if isinstance(by, str) else by
    assert list(table)[: len(names)] == names
    assert not table[names].duplicated().any()
    assert (table["count"] + table["left_out"]).sum() == (slow.exchanges["protocol"] != "tcp").sum()
    spent = table["count"] * table["mean_ms"]
    assert spent.sum() == pytest.approx(slow.exchanges["latency_ms"].sum())
    assert (spent.diff().dropna() <= 1e-6).all(), "the group with the most time comes first"


@pytest.mark.parametrize("stretch", ["100ms", "1s", "minute", "2h", "day"])
def test_stretches_of_time_hold_every_exchange_in_order(slow: lp.Capture, stretch: str) -> None:
    whole, table = slow.latency(), slow.latency(stretch).table
    begins = table[stretch].astype("int64")
    assert begins.is_monotonic_increasing and begins.is_unique
    assert table["count"].sum() == whole.table["count"].sum()
    within = slow.exchanges["start"].dt.floor(stretch.replace("minute", "min").replace("day", "D"))
    assert set(table[stretch]) == set(within)
    # a stretch's rate is that of its own time: all of them, weighted, give the whole
    seconds = table["count"] / table["requests_per_s"]
    assert seconds.sum() == pytest.approx(whole.seconds)


def test_rates_are_by_the_time_that_captures_cover() -> None:
    """Two captures a year apart, of 2 s each: no rate by the year between them; overlapping ones count once."""
    second, year = 10**9, 365 * 86_400 * 10**9
    rows = [(0, 0), (0, second), (1, year), (1, year + second)]
    table = pa.table(
        {
            "exchange": pa.array([(capture << 40) + i for i, (capture, _) in enumerate(rows)], pa.uint64()),
            "start": pa.array([at for _, at in rows], pa.timestamp("ns", "UTC")),
            "end": pa.array([at + second for _, at in rows], pa.timestamp("ns", "UTC")),
            "latency_ms": [1000.0] * 4,
            "response_bytes": pa.array([10] * 4, pa.uint64()),
            "top_cause": pa.array(["server_think"] * 4).dictionary_encode(),
        }
    )
    files = ["a/x.pcap", "b/x.pcap"]
    whole = Latency.from_tables(table, files=files)
    assert whole.seconds == 4 and whole.table["requests_per_s"].item() == 1
    each = Latency.from_tables(table, by="capture", files=files).table
    assert each[["capture", "count", "requests_per_s"]].to_dict("list") == {
        "capture": ["a/x.pcap", "b/x.pcap"], "count": [2, 2], "requests_per_s": [1, 1]
    }  # fmt: skip
    assert set(Latency.from_tables(table, by="folder", files=files).table["folder"]) == {"a", "b"}
    both = Latency.from_tables(table, by=["folder", "day"], files=files).table
    assert both["count"].tolist() == [2, 2] and both["requests_per_s"].tolist() == [1, 1]


@pytest.mark.parametrize("word", ["latency_ms", "start", "0s", "10 parsecs", "1e3s", "no\nsuch"])
def test_what_is_no_group_is_refused(slow: lp.Capture, word: str) -> None:
    with pytest.raises(ValueError, match=r"cannot group by .*; known are server, ") as refused:
        slow.latency(by=word)
    assert "\n" not in str(refused.value)


def test_groups_have_the_words_of_the_tables(slow: lp.Capture) -> None:
    assert slow.latency("server").table["server"].tolist() == ["192.168.0.30:8080"]
    assert slow.latency("client").table["client"].tolist() == ["192.168.0.2"]
    assert slow.latency("uri").table["uri"].tolist() == ["/"]
    stream = slow.exchanges[(slow.exchanges["stream"] == 24) & slow.exchanges["complete"]]
    row = slow.latency("stream").table.set_index("stream").loc[24]
    assert (row["count"], row["max_ms"]) == (len(stream), stream["latency_ms"].max())
    assert slow.stream(24).latency().table.iloc[0]["max_ms"] == row["max_ms"]


def test_what_has_no_latency_is_counted(fast: lp.Capture) -> None:
    whole = fast.latency()
    assert whole.table.iloc[0][["count", "left_out"]].tolist() == [949, 19]
    assert "latency of 949 of 968 exchanges" in str(whole)
    assert "19 exchanges left out: not complete" in str(fast.latency("server"))
    tops = fast.latency("top_cause").table
    assert tops["top_cause"].isna().sum() == 1 and tops.loc[tops["top_cause"].isna(), "count"].tolist() == [0]
    assert tops.loc[tops["top_cause"].isna(), ["mean_ms", "p50_ms", "max_ms"]].isna().all(axis=None)


def test_one_exchange_has_no_deviation() -> None:
    row = Latency(made([5.0, None])).table.iloc[0]
    assert (row["count"], row["left_out"], row["max_ms"], row["p99_ms"]) == (1, 1, 5.0, 5.0)
    assert pd.isna(row["stdev_ms"]) and pd.isna(row["within_stdev_percent"])


def test_nothing_at_all(tmp_path: Path) -> None:
    empty = Latency(made([None, None]), title="x.pcap")
    assert "no exchange has one" in str(empty) and empty.seconds == 0
    with pytest.raises(ValueError, match="nothing to draw"):
        empty.plot()
    probes = lp.read(SAMPLES / "probes.pcap").latency("server")
    assert len(probes.table) == 0 and "p50_ms" not in str(probes)


def test_text_has_wrks_shape_and_units(slow: lp.Capture) -> None:
    lines = str(slow.latency()).splitlines()
    assert lines[0] == "nginx-latency.pcap: latency of 960 of 960 exchanges, as the capture saw it"
    assert lines[1].split() == ["Avg", "Stdev", "Max", "+/-", "Stdev"]
    assert [line.split()[0] for line in lines[4:8]] == ["50%", "75%", "90%", "99%"]
    text = str(Latency(made([0.84, 0.2]), title="us"))
    assert "840.00us" in text and "520.00us" in text
    assert "0.85s" in str(Latency(made([851.0]), title="s")) and "849.00ms" in str(Latency(made([849.0]), title="s"))


def test_hostile_groups_cannot_write_on_a_terminal_or_a_page() -> None:
    bad = "/\x1b[2J<img src=x onerror=alert(1)>"
    answer = Latency(made([1.0, 2.0], uri=[bad, "/"]), by=["uri"], title="<b>$x^2$</b>.pcap")
    assert "\x1b" not in str(answer)
    page = answer._repr_html_()
    assert "<img" not in page and "<b>$" not in page and "&lt;img src=x onerror=alert(1)&gt;" in page
    drawn = answer.plot().plot()
    written = [text for text in drawn.figure_.findobj(type(drawn.ax_.title)) if "$" in text.get_text()]
    assert written and not any(text.get_parse_math() for text in written)


def test_wrong_words_are_refused(slow: lp.Capture) -> None:
    with pytest.raises(ValueError, match=r"cannot group by 'hosts'; known are server, client"):
        slow.latency("hosts")
    with pytest.raises(ValueError, match="latency_ms and client_latency_ms"):
        slow.latency(which="ttfb_ms")
    with pytest.raises(ValueError, match="percentile 101"):
        slow.latency(percentiles=[101])
    with pytest.raises(ValueError, match="2 labels for 1"):
        slow.latency().plot(labels=("a", "b"))
    with pytest.raises(ValueError, match="no scale"):
        slow.latency().plot(scale="logarithmic")


# --- the picture ---


def test_the_histogram_holds_every_exchange(slow: lp.Capture, fast: lp.Capture) -> None:
    both = fast.latency().plot(slow.latency())
    assert [int(counts.sum()) for counts in both.counts] == [949, 960]
    alone = slow.latency().plot()
    assert not alone.log and alone.counts[0].max() >= 400 and 42 < alone.edges[alone.counts[0].argmax()] < 44


def test_the_curve_is_the_data(fast: lp.Capture) -> None:
    picture = fast.latency().plot(panel="ecdf").plot()
    line = picture.ax_.lines[0]
    values = np.sort(fast.exchanges["latency_ms"].dropna())
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    for at in (0.01, 0.2, 0.3, 0.4):
        drawn = y[np.searchsorted(x, at, side="right") - 1]
        assert drawn == pytest.approx(100 * (values <= at).mean(), abs=0.05)


def test_a_hundred_thousand_are_drawn_as_few() -> None:
    values = np.sort(np.random.default_rng(1).gamma(2, 20, 100_000))
    picture = LatencyPlot([Series("many", values, ("network",) * len(values))], title="many").plot()
    assert len(picture.ax_.lines[0].get_xdata()) <= 4_010
    golden.assert_legible(picture.figure_)


def test_pictures_are_as_they_were(slow: lp.Capture, fast: lp.Capture) -> None:
    golden.check("latency", slow.latency().plot()._render(".png", 100))
    golden.check(
        "latency-two", fast.latency().plot(slow.latency(), labels=("nodelay on", "nodelay off"))._render(".png", 100)
    )


@pytest.mark.parametrize("by", [None, "stream", "uri"])
def test_texts_do_not_collide(slow: lp.Capture, by: str | None) -> None:
    golden.assert_legible(slow.latency(by).plot().plot().figure_)


def test_given_axes_get_one_panel(slow: lp.Capture) -> None:
    from matplotlib.figure import Figure

    ax = Figure(figsize=(6, 4)).subplots()
    picture = slow.latency().plot(ax=ax)
    assert picture.ax_ is ax and ax.get_title(loc="left") == "Latency of nginx-latency.pcap" and ax.get_ylabel()


def test_the_same_bytes_every_time(slow: lp.Capture, tmp_path: Path) -> None:
    for suffix in (".png", ".svg", ".pdf"):
        one, two = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
        slow.latency().plot().save(one)
        slow.latency().plot().save(two)
        assert one.read_bytes() == two.read_bytes()


# --- the command ---


def test_command(tmp_path: Path) -> None:
    good, bad = SAMPLES / "nginx-good.pcap", SAMPLES / "nginx-latency.pcap"
    code, out, err = run("latency", bad)
    assert (code, err) == (0, "") and "Latency Distribution" in out
    code, out, err = run("latency", bad, "--by", "server", "--by", "status", "--percentiles", "50,99.9")
    assert (code, err) == (0, "") and "192.168.0.30:8080" in out and "99.9%" in out
    assert run("latency", bad, "--by", "client", "-o", tmp_path / "l.csv")[0] == 0
    assert (tmp_path / "l.csv").read_text().splitlines()[1].startswith('"192.168.0.2",960,0,41.5')
    code, out, err = run("latency", bad, "-Y", "tcp.stream == 24")
    assert (code, err) == (0, "") and out.startswith("nginx-latency.pcap [tcp.stream == 24]: latency of 24 of 24")
    assert run("plot", "latency", good, bad, "-o", tmp_path / "l.png") == (0, "", "")
    assert (tmp_path / "l.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("latency", SAMPLES / "probes.pcap", "--by", "hosts"), "cannot group by 'hosts'"),
        (("latency", SAMPLES / "probes.pcap", "--percentiles", "x"), "expected numbers, as in 50,99.9"),
        (("plot", "latency", SAMPLES / "probes.pcap", "-o", "x.png"), "no exchange has a latency"),
        (("plot", "latency", SAMPLES / "nginx-good.pcap", "-o", "x.gif"), "suffix '.gif'"),
        (("plot", "latency", SAMPLES / "nginx-good.pcap", "--scale", "lin", "-o", "x.png"), "no scale 'lin'"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[Any, ...], sentence: str) -> None:
    code, out, err = run(*words)
    assert code == 2 and out == "" and sentence in err and err.count("\n") == 1


def test_captures_of_one_name_are_told_apart(slow: lp.Capture, tmp_path: Path) -> None:
    one, other = slow.latency(), slow.filter("tcp.stream < 9").latency()
    other.title = one.title
    named, numbered = one.plot(other, labels=["before", "after"]), one.plot(other)
    assert named.title == f"Latency of {one.title} (before) and {one.title} (after)"
    assert [s.name for s in named.series] == ["before", "after"]
    assert [s.name for s in numbered.series] == [f"{one.title} (1)", f"{one.title} (2)"]
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "web.pcap").write_bytes((SAMPLES / "clips" / "think40.pcap").read_bytes())
    files = [tmp_path / day / "web.pcap" for day in ("monday", "tuesday")]
    assert run("plot", "latency", *files, "-o", tmp_path / "x.svg") == (0, "", "")


def test_what_is_left_out_says_why_in_good_grammar(fast: lp.Capture) -> None:
    one = lp.read(CASES / "stall_alone" / "capture.pcap").filter("frame.number == 4")
    assert "latency of 1 of 1 exchange, " in str(one.latency()) and "  1 answer in " in str(one.latency())
    assert fast.latency().plot().note == "19 exchanges without a latency: not complete in the capture."
