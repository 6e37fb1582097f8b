"""Is the README short, and are its promises kept? test_docs.py runs what it shows; here is what it says in prose."""

from __future__ import annotations

import re
from pathlib import Path

import pages
import pytest
from pages import ROOT

import latpcap as lp

README = (ROOT / "README.md").read_text(encoding="utf-8")
SAMPLES = ROOT / "sample_pcaps"


def test_two_commands_set_it_up() -> None:
    """One installs it and runs its main job on a sample, one installs and tests; both are on the first screen."""
    first_screen = "\n".join(README.splitlines()[:32])
    shell = [block.text.strip() for block in pages.blocks(first_screen) if block.language == "sh"]
    assert shell == ["pip install . && latpcap why sample_pcaps/nginx-latency.pcap", "pip install '.[test]' && pytest"]
    assert len(README.splitlines()) <= 80


def test_what_it_draws_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample_pcaps").symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    (code,) = [block for block in pages.blocks(README) if block.language == "python"]
    pages.run(code, {})
    written = {path.name: path.stat().st_size for path in tmp_path.iterdir() if path.is_file()}
    assert set(written) == {"slow.pcapng", "flow.png"} and min(written.values()) > 1000


def test_the_two_answers_differ_as_the_table_says() -> None:
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in README.splitlines() if line.startswith("| ")]
    told = {row[0]: row[1:] for row in rows if len(row) == 3}
    for column, name in enumerate(("nginx-latency.pcap", "more/lost-tail.pcap")):
        assert told["capture"][column] == f"`sample_pcaps/{name}`"
        capture = lp.read(SAMPLES / name)
        p50, p99 = (capture.latency(percentiles=[50, 99]).table.iloc[0][f"p{rank}_ms"] for rank in (50, 99))
        assert told["latency"][column] == f"p50 {p50:.1f} ms, p99 {p99:.{1 if p99 < 100 else 0}f} ms"
        finding = capture.findings.iloc[0]
        assert finding.owner in told["owner"][column] and finding.grade == "proven"
        assert all(f"`{cause}`" in told["owner"][column] for cause in finding.cause.split(" + "))
