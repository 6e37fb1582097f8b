"""Does the picture of evidence show each round trip and wait of the chosen server once, held apart from not held?"""

from __future__ import annotations

from pathlib import Path

import golden
import numpy as np
import pytest
from commands import complains, run

import latpcap as lp
from latpcap.plot.evidence import MIN_MS

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"


@pytest.fixture(scope="module")
def sample() -> lp.Capture:
    return lp.read(SAMPLES / "nginx-latency.pcap")


def test_waits_are_held_or_control(sample: lp.Capture) -> None:
    measured = sample.distributions().measured
    (pool,) = sample.arrow("evidence").to_pylist()
    assert len(measured.held_ms) == pool["held"] == 880
    assert measured.held_ms.min() >= pool["hold_min_ms"]
    # the last 40 ACKs end early with the connection: they are no hold of the timer, and no control
    assert len(measured.free_ms) == 40 and measured.free_ms.max() < 15
    assert len(measured.release_ms) == pool["opportunities"] == 960
    assert np.quantile(measured.release_ms, 0.95) == pytest.approx(pool["release_p95_ms"], abs=2e-3)


def test_round_trips_are_those_of_kernels(sample: lp.Capture) -> None:
    measured, events = sample.distributions().measured, sample.events
    alone = events[(events["len"] == 0) & events["ack_rtt_ms"].notna()]
    assert sorted(measured.round_ms) == sorted(alone["ack_rtt_ms"])
    assert measured.by_server.sum() == (~alone["from_client"]).sum()
    assert measured.best_ms == (0.0, 0.001) and measured.tight_ms == 0.1


def test_picture(sample: lp.Capture) -> None:
    picture = sample.distributions(server="192.168.0.30")
    golden.assert_legible(picture.plot().figure_)
    golden.check("evidence", picture._repr_png_())
    held = [line for line in picture.ax_.lines if line.get_color() == "#D0021B"]
    assert sum(len(line.get_xdata()) for line in held) == 880
    assert min(min(line.get_ydata()) for line in picture.ax_.lines if len(line.get_ydata())) >= MIN_MS


@pytest.mark.parametrize("panel", ["path", "kernel", "program"])
def test_one_panel(sample: lp.Capture, panel: str) -> None:
    picture = sample.distributions(panels=[panel])  # type: ignore[list-item]
    golden.assert_legible(picture.plot().figure_)
    golden.check(f"evidence-{panel}", picture._repr_png_())


def test_words(sample: lp.Capture) -> None:
    for panels in (["paths"], []):
        with pytest.raises(ValueError, match="known are path, kernel, program, holds"):
            sample.distributions(panels=panels)  # type: ignore[arg-type]


def test_command(tmp_path: Path) -> None:
    file, out = SAMPLES / "nginx-latency.pcap", tmp_path / "evidence.png"
    assert run("plot", "evidence", file, "--server", "192.168.0.30:8080", "-o", out)[0] == 0
    assert out.read_bytes() == lp.read(file).distributions()._render(".png", 200)
    assert "no server '192.0.2.1'" in complains(2, "plot", "evidence", file, "--server", "192.0.2.1", "-o", out)
