"""Does the comparison of pictures see what a person would see, and nothing else?"""

from __future__ import annotations

import io
from pathlib import Path

import golden
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def page(label: str = "delayed_ack", colour: str = "#0072B2", shift: float = 0.0, grey: str = "#000000") -> bytes:
    figure = Figure(figsize=(8, 5), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    axes.barh([1 + shift, 2 + shift], [3, 4], color=[colour, "#D55E00"])
    axes.text(3.2, 1 + shift, label, color=grey)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()


def test_a_pixel_more_or_less_is_the_same_picture() -> None:
    assert golden.distance(page(), page()) == 0
    assert golden.distance(page(), page(shift=0.002)) <= golden.SHARE
    assert golden.distance(page(), page(grey="#141414")) <= golden.SHARE


@pytest.mark.parametrize("other", [page(label="nagle"), page(label=""), page(colour="#117733"), page(shift=0.1)])
def test_another_word_colour_or_place_is_another_picture(other: bytes) -> None:
    assert golden.distance(page(), other) > golden.SHARE


def test_check_keeps_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LATPCAP_WRITE_GOLDEN", raising=False)
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    with pytest.raises(AssertionError, match="LATPCAP_WRITE_GOLDEN=1"):
        golden.check("bars", page())
    (tmp_path / "bars.png").write_bytes(page())
    golden.check("bars", page())
    with pytest.raises(AssertionError, match=r"% of the pixels are others than in bars\.png"):
        golden.check("bars", page(label="rto"))
    assert (tmp_path / "bars.new.png").read_bytes() == page(label="rto")
    golden.check("bars", page())
    assert not (tmp_path / "bars.new.png").exists()


def test_texts_that_collide_or_leave_are_seen() -> None:
    figure = Figure(figsize=(4, 3))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
    one, two = axes.text(0.2, 0.5, "one word"), axes.text(0.2, 0.8, "another")
    golden.assert_legible(figure)
    two.set_position((0.22, 0.51))
    with pytest.raises(AssertionError, match="lies on"):
        golden.assert_legible(figure)
    two.set_position((0.2, 0.8))
    one.set_position((0.98, 0.5))
    with pytest.raises(AssertionError, match="leaves the picture"):
        golden.assert_legible(figure)
