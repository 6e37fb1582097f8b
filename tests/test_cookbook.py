"""Does each task of docs/cookbook.md work as it stands, alone, behind the two lines that the page begins with?"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pages
import pytest
from pages import ROOT, Block

PAGE = ROOT / "docs" / "cookbook.md"
TEXT = PAGE.read_text(encoding="utf-8")
FIRST, *REST = [block for block in pages.blocks(TEXT) if block.language in pages.RUN]
TASKS = {heading: [b for b in REST if b.heading == heading] for heading in dict.fromkeys(b.heading for b in REST)}
NEEDS = {"polars": "polars", "to_polars": "polars", "duckdb": "duckdb", "sql": "duckdb", "mcp": "mcp"}
"""Words of a task, and the packages behind them that are no requirement of latpcap."""


def missing(blocks: list[Block]) -> set[str]:
    words = {word for block in blocks for word in re.findall(r"\w+", block.text)}
    return {NEEDS[word] for word in NEEDS.keys() & words if importlib.util.find_spec(NEEDS[word]) is None}


def test_it_has_its_tasks() -> None:
    headings = re.findall(r"^### (.*)$", TEXT, re.MULTILINE)
    assert [name for name in headings if name in TASKS] == list(TASKS)
    assert len(TASKS) >= 57 and len(headings) - len(TASKS) <= 3, "tasks that are only shown are the exception"


@pytest.mark.parametrize("task", TASKS)
def test_task(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line or a short idiom, which runs and gives what the page shows."""
    if lacking := missing(TASKS[task]):
        pytest.skip(f"needs {', '.join(sorted(lacking))}: pip install 'latpcap[archives]'")
    for name in ("sample_pcaps", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    pages.run(FIRST, names)
    for block in TASKS[task]:
        most = 12 if "Protocol" in task else 5  # an agent's program does that one, with a library of its own
        assert len(block.text.strip().splitlines()) <= most, "no short idiom"
        said = pages.run(block, names, codes=(0, 1))
        if block.shown is not None:
            assert pages.same(block.shown.text, said), said
