"""Does a comparison name what moved, and nothing else? Against captures, and against numbers whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from archives import CLIPS, SAMPLES
from commands import run

import latpcap as lp
from latpcap.archive.comparison import ENOUGH, Change, Comparison, Sample
from latpcap.vocabulary import CAUSES

SLOW, FAST = SAMPLES / "nginx-latency.pcap", SAMPLES / "nginx-good.pcap"
THINK = list(CAUSES).index("server_think")
NETWORK = list(CAUSES).index("network")


def sample(
    rng: np.random.Generator, *, streams: int = 40, each: int = 25, think: float = 5.0, alike: float = 3.0
) -> Sample:
    """Streams whose exchanges resemble each other: each has a level of its own, `alike` times the rest's spread."""
    n = streams * each
    stream = np.repeat(np.arange(streams), each)
    level = rng.normal(0, alike, streams)[stream]
    spent = np.zeros((n, len(CAUSES)))
    spent[:, THINK] = np.exp((level + rng.normal(0, 1, n)) / 10) * think
    spent[:, NETWORK] = rng.normal(1, 0.05, n).clip(0.1)
    return Sample("made", spent.sum(1), spent, np.zeros(n, np.int64), stream, np.tile(np.arange(each), streams))


def test_the_fix_of_nagle_shows() -> None:
    found = lp.compare(SLOW, FAST)
    assert found.moved[:2] == ["delayed_ack", "nagle"] and found.unit == "stream"
    causes, metrics = found.causes.set_index("cause"), found.metrics.set_index("metric")
    assert causes.change.sum() == pytest.approx(metrics.change["mean_ms"], rel=0.01), "they add up"
    before, after = lp.read(SLOW).exchanges, lp.read(FAST).exchanges
    for side, frame in (("before", before), ("after", after)):
        whole = frame[frame.complete]
        assert metrics[side]["mean_ms"] == pytest.approx(whole.latency_ms.mean())
        assert causes[side]["delayed_ack"] == pytest.approx(whole.delayed_ack_ms.mean())
        ordered = np.sort(whole.latency_ms)
        assert metrics[side]["p99_ms"] == ordered[int(np.ceil(0.99 * len(ordered))) - 1]
    assert (metrics.low < metrics.change).all() and (metrics.change < metrics.high).all()
    text = str(found)
    assert "moved  delayed_ack" in text and "before    nginx-latency.pcap: 960 complete exchanges, 40 streams" in text
    assert json.loads(json.dumps(found.to_dict()))["causes"][0]["name"] == "delayed_ack"


def test_nothing_moved_against_itself() -> None:
    found = lp.compare(SLOW, lp.read(SLOW))
    assert found.moved == [] and (found.metrics.change == 0).all() and not found.causes.moved.any()
    assert "no cause by more than noise" in str(found)


def test_streams_that_differ_are_noise() -> None:
    """Two draws of one world: a change is named in no more than about one comparison of twenty, though exchanges
    resemble each other so much that taking them for independent would name one nearly every time."""
    rng = np.random.default_rng(20261121)
    rounds = 300
    named = {"cause": 0, "mean_ms": 0, "p50_ms": 0, "p90_ms": 0}
    naive = 0
    for _ in range(rounds):
        before, after = sample(rng), sample(rng)
        found = Comparison(before, after)
        named["cause"] += bool(found.moved)
        metrics = found.metrics.set_index("metric").moved
        for name in ("mean_ms", "p50_ms", "p90_ms"):
            named[name] += bool(metrics[name])
        wide = sum(s.latency.var(ddof=1) / len(s.latency) for s in (before, after)) ** 0.5
        naive += bool(abs(after.latency.mean() - before.latency.mean()) > 1.96 * wide)
    assert all(count <= 0.085 * rounds for count in named.values()), named
    assert naive > 0.4 * rounds, "the test's world is as hard as it says"


def test_a_change_is_found_and_bounded() -> None:
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(100):
        found = Comparison(sample(rng), sample(rng, think=7.5))
        assert found.moved[0] == "server_think"
        change = found.causes.set_index("cause").loc["server_think"]
        truth = 2.5 * np.exp((9 + 1) / 200)  # the mean of the lognormal that `sample` draws
        inside += bool(change.low <= truth <= change.high)
    assert inside >= 90


def test_units_are_the_largest_that_are_enough() -> None:
    rng = np.random.default_rng(1)
    many = sample(rng, streams=ENOUGH * 2)
    parts = Sample(many.name, many.latency, many.spent, many.stream % ENOUGH, many.stream, many.index)
    assert Comparison(parts, parts).unit == "capture"
    assert Comparison(many, parts).unit == "stream"
    few = sample(rng, streams=2, each=200)
    found = Comparison(few, many)
    assert found.unit == "run of exchanges" and found.metrics.moved.notna().any()
    assert f"{len(few.latency):,} complete exchanges, " in str(found) and str(found).count(" runs of exchanges\n") == 2


def test_too_few_exchanges_are_no_news() -> None:
    rng = np.random.default_rng(1)
    few = sample(rng, streams=3, each=4)
    found = Comparison(few, sample(rng, think=50.0))
    assert found.metrics.moved.isna().all() and found.causes.low.isna().all() and found.moved == []
    assert "noise is not known" in str(found)
    assert "too few exchanges" in str(found.failing("mean_ms>+1"))


def test_a_percentile_beyond_the_samples_has_no_bound() -> None:
    rng = np.random.default_rng(3)
    found = Comparison(sample(rng, streams=20, each=2), sample(rng, streams=20, each=2))
    metrics = found.metrics.set_index("metric")
    assert metrics.high.isna()["p99_ms"] and metrics.high.notna()["p50_ms"]


@pytest.mark.parametrize(
    ("rule", "fails"),
    [
        ("p99_ms>20", True),
        ("p99_ms > 50", False),
        ("delayed_ack_ms>+10", True),
        ("delayed_ack_ms>+10%", True),
        ("p50_ms>+43", True),
        ("p50_ms>+44", False),
        ("rto_ms>0", False),
        ("network_ms>+0", False),
    ],
)
def test_rules(rule: str, fails: bool) -> None:
    assert bool(lp.compare(FAST, SLOW).failing(rule)) is fails


@pytest.mark.parametrize("rule", ["p98_ms>1", "p99_ms<1", "p99_ms>1%", "p99_ms", "p99>1"])
def test_rules_that_say_nothing(rule: str) -> None:
    with pytest.raises(ValueError, match="expected a rule"):
        lp.compare(FAST, FAST).failing(rule)


def test_archives_and_captures_compare(tmp_path: Path) -> None:
    lp.batch([FAST, CLIPS / "think40.pcap"], tmp_path / "before", quiet=True)
    lp.batch(SLOW, tmp_path / "after", quiet=True)
    found = lp.compare(tmp_path / "before", tmp_path / "after")
    assert found.moved[0] == "delayed_ack"
    same = lp.compare(SLOW, tmp_path / "after")
    assert (same.metrics.change == 0).all() and same.moved == []
    one = lp.compare(lp.open_results(tmp_path / "before").slice(file="nginx-good*"), FAST)
    assert (one.causes.change.abs() < 1e-12).all()  # sums of the same numbers, added in another order


def test_a_side_without_exchanges() -> None:
    with pytest.raises(lp.LatpcapError, match=r"probes\.pcap: no complete exchange"):
        lp.compare(SLOW, SAMPLES / "probes.pcap")


def test_a_change_says_whether_it_is_one() -> None:
    assert Change("a", 1.0, 2.0).moved is None
    assert Change("a", 1.0, 2.0, 0.5, 1.5).moved is True and Change("a", 1.0, 2.0, -0.5, 2.5).moved is False


def test_the_command(tmp_path: Path) -> None:
    code, out, err = run("compare", SLOW, FAST)
    assert (code, err) == (0, "") and out == f"{lp.compare(SLOW, FAST)}\n"
    assert json.loads(run("compare", SLOW, FAST, "--json")[1])["unit"] == "stream"
    code, out, err = run("compare", FAST, SLOW, "--fail-on", "p99_ms>20", "--fail-on", "mean_ms>+5%")
    assert code == 1 and out and err.count("\n") == 2 and "p99_ms is 43.932, more than 20" in err
    assert run("compare", SLOW, FAST, "--fail-on", "p99_ms>20")[0] == 0
    code, _, err = run("compare", SLOW, FAST, "--fail-on", "p99>20")
    assert code == 2 and err.count("\n") == 1
    code, _, err = run("compare", SLOW, tmp_path / "none.pcap")
    assert code == 3 and "no such file" in err
