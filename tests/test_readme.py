"""Is the README true? What it shows is what comes out, and what it tells to type runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import latpcap as lp

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_answer_shown_is_the_answer_given() -> None:
    (shown,) = [text for language, text in BLOCKS if not language and "is slow because" in text]
    assert shown.strip() == str(lp.read(ROOT / "sample_pcaps" / "nginx-latency.pcap").why()).strip()


def test_the_python_lines_run(tmp_path: Path) -> None:
    """As they stand, one after the other, beside a folder with the samples."""
    (tmp_path / "sample_pcaps").symlink_to(ROOT / "sample_pcaps")
    (code,) = [text for language, text in BLOCKS if language == "python"]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = {path.name: path.stat().st_size for path in tmp_path.iterdir() if path.is_file()}
    assert set(written) == {"slow.pcapng", "flow.png", "flow.txt"} and min(written.values()) > 1000
