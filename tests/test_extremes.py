"""Files longer than one portion, and numbers longer than any that counts something. By what users call alone."""

from __future__ import annotations

import random
import runpy
import sys
from pathlib import Path

import pytest
from commands import run

import latpcap as lp
from latpcap.views.capture import read_stream

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"


def test_a_stream_of_a_long_file_has_all_its_causes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """Pictures of one stream or exchange are drawn of these rows; the file is read in portions of some MiB."""
    path = tmp_path / "long.pcap"
    enlarge = ROOT / "benchmarks" / "enlarge.py"
    monkeypatch.setattr(sys, "argv", [str(enlarge), str(SAMPLES / "nginx-good.pcap"), str(path), "20000"])
    runpy.run_path(str(enlarge), run_name="__main__")
    assert path.stat().st_size > 5 << 20
    whole = lp.read(path)
    for stream in (2, len(whole.streams) - 1, *rng.sample(range(len(whole.streams)), 4)):
        alone, mine = read_stream(path, stream), whole.stream(stream)
        for table in ("exchanges", "causes"):
            assert alone.arrow(table).to_pylist() == mine.arrow(table).to_pylist(), (table, stream)  # type: ignore[arg-type]


def test_numbers_without_end_are_no_bug() -> None:
    file = str(SAMPLES / "clips" / "think40.pcap")
    for words in (["flow", file, "--exchange", "9" * 5000], ["flow", file, "--exchange", "9" * 30],
                  ["why", file, "--exchange", "9" * 30], ["events", file, "--stream", "9" * 5000]):  # fmt: skip
        code, _, err = run(*words)
        assert code == 2 and "bug" not in err and err.count("\n") == 1 and len(err) < 12_000, (words[:3], err[:200])


def test_a_filter_that_is_wrong_is_quoted_in_one_line() -> None:
    """Its mistake may be a string of several lines."""
    with pytest.raises(lp.FilterError) as refused:
        lp.read(SAMPLES / "clips" / "think40.pcap").filter('tcp.len > "1\n\u20282\r\x1b[31m"')
    assert len(str(refused.value).split("\n")) == 3 and "\n" not in refused.value.reason
    assert str(refused.value).replace("\n", "").isprintable()
