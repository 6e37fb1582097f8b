"""Does the picture of throughput show each byte once, in its time and group? Do limits of transfers show in time?"""

from __future__ import annotations

import re
from pathlib import Path

import golden
import numpy as np
import pytest
from commands import complains, run
from transfer_simulator import Transfer

import latpcap as lp
from latpcap.plot.throughput import MAX_LINES, Throughput
from latpcap.plot.timeseq import LIMITS, TimeSequence

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"


@pytest.fixture(scope="module")
def sample() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-latency.pcap")


@pytest.mark.parametrize("by", ["direction", "server", "stream"])
def test_every_byte_is_in_its_step_and_group(sample: lp.Capture, by: str) -> None:
    picture = sample.throughput(by=by)  # type: ignore[arg-type]
    events = sample.events[sample.events["len"] > 0]
    step = picture.edges[1] - picture.edges[0]
    seconds = (events["time"].astype("int64") - sample.first_ns) / 1e9
    expected = np.histogram(seconds, picture.edges, weights=events["len"])[0]
    assert np.allclose(sum(picture.rates.values()) * step * 1e6 / 8, expected)
    assert expected.sum() == events["len"].sum()
    moved = {name: rate.sum() * step * 1e6 / 8 for name, rate in picture.rates.items()}
    if by == "direction":
        assert moved["to the server"] == pytest.approx(events["len"][events["from_client"]].sum())
    elif by == "stream":
        assert len(moved) == MAX_LINES + 1 and list(moved)[-1] == "33 others"
        name, size = next(iter(moved.items()))
        assert size == pytest.approx(events["len"][events["stream"] == int(name.split()[0])].sum())
    else:
        assert list(moved) == ["192.168.0.30:8080"]


def test_areas_stand_on_each_other(sample: lp.Capture) -> None:
    picture = sample.throughput().plot()
    first, second = (patch.get_data() for patch in picture.ax_.patches)
    assert np.array_equal(second.baseline, first.values)
    assert np.allclose(second.values - second.baseline, list(picture.rates.values())[1])


def test_picture(sample: lp.Capture) -> None:
    picture = sample.throughput(by="stream")
    golden.assert_legible(picture.plot().figure_)
    golden.check("throughput", picture._repr_png_())


def test_words(sample: lp.Capture) -> None:
    with pytest.raises(ValueError, match="no group 'uri'; known are direction, server, stream"):
        sample.throughput(by="uri")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no segment with payload"):
        Throughput(np.zeros(2), {})


def test_command(tmp_path: Path) -> None:
    file, out = SAMPLES / "nginx-latency.pcap", tmp_path / "rate.png"
    assert run("plot", "throughput", file, "--by", "stream", "-o", out)[0] == 0
    assert out.read_bytes() == lp.read(file).throughput(by="stream")._render(".png", 200)
    assert "no group" in complains(2, "plot", "throughput", file, "--by", "uri", "-o", out)


@pytest.mark.parametrize(
    ("made", "limit"),
    [(Transfer(line=10, ceiling=200, rtt=40), "line"), (Transfer(window=65_536, rtt=40), "receiver_window")],
)
def test_a_limit_is_a_band_as_long_as_its_transfer(made: Transfer, limit: str) -> None:
    capture = lp.read(made.captures()["sender"])
    picture = capture.stream(0).time_sequence()
    (row,) = capture.arrow("transfers").to_pylist()
    (band,) = picture.data.limits
    assert (band.limited_by, band.grade) == (limit, row["grade"])
    assert band.end - band.begin == pytest.approx((row["end"] - row["start"]).total_seconds(), abs=1e-5)
    (line,) = [one for one in picture.plot().ax_.lines if str(one.get_gid()).startswith("limit-")]
    assert line.get_color() == LIMITS[limit]
    assert any(f"{limit} ({row['grade']}) at" in text for text, _ in golden.texts(picture.figure_))
    assert any(key.name == limit for key in TimeSequence.keys(picture))


def test_bytes_in_flight_stand_under_the_window() -> None:
    capture = lp.read(Transfer(window=65_536, rtt=40).captures()["sender"])
    picture = capture.stream(0).time_sequence(panels=["flight", "rtt"])
    assert picture.data.room is not None
    assert max(picture.data.flight.values) <= max(picture.data.room.values) == 65_536
    golden.assert_legible(picture.plot().figure_)
    golden.check("flight_and_window", picture._repr_png_())


def test_each_limit_has_a_colour() -> None:
    vocabulary = (Path(__file__).parents[1] / "core" / "src" / "judge" / "vocabulary.rs").read_text(encoding="utf-8")
    (words,) = re.findall(r"Limiter:\n(.*?)\n}", vocabulary, re.DOTALL)
    assert list(LIMITS) == re.findall(r'^ +"(\w+)"', words, re.MULTILINE)
    assert len(set(LIMITS.values())) == len(LIMITS)
