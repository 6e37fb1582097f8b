"""Are the captures of docs/slow-downloads.md what the simulator makes, answered and drawn as the page has it?"""

from __future__ import annotations

import gzip

import golden
import pytest
from downloads import CAPTURES, FOLDER, PANELS, made

import latpcap as lp


@pytest.mark.parametrize("name", CAPTURES)
def test_capture_answer_and_picture(name: str) -> None:
    file = FOLDER / f"{name}.pcap.gz"
    assert gzip.decompress(file.read_bytes()) == made(name)
    capture = lp.read(file)
    (row,) = capture.arrow("transfers").to_pylist()
    assert row["limited_by"] == CAPTURES[name][2] and row["grade"] in ("probable", "proven")
    picture = capture.stream(0).time_sequence(panels=PANELS[CAPTURES[name][1]])
    golden.assert_legible(picture.plot().figure_)
    golden.check(f"download_{name}", picture._render(".png", 100))
