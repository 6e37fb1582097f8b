"""Sentences that readers were misled by, and that no answer may print again: on every case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

import latpcap as lp

CASES = sorted(p for p in (ROOT / "tests/cases").glob("*/capture.*"))
SURE = ("nothing held it back", "not TCP's", "nobody waited for: harmless")
"""Said only where the headline's cause is proven."""
NEVER = (
    r"took less time",  # of other servers: tells nothing
    r"retransmissions? seen",  # Wireshark's flags are no count of losses
    r"\bexchanges? in [\d.,]+ s\b",  # reads like a running time
    r"\b1 times\b",
    r"of 1 of 1\b",
    r"\de[+-]\d\d",
    r"packets, or their ends, are missing from the capture in ([\d,]+) of ([\d,]+) exchanges",
)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_no_answer_misleads(path: Path) -> None:
    capture = lp.read(path)
    why = capture.why()
    text = str(why)
    claimed = "\n".join(line for line in text.split("\n") if not line.startswith("  sure?"))  # a rival is no claim
    if why.grade not in ("proven", None):
        assert not [words for words in SURE if words in claimed], text
    for pattern in NEVER[:-1]:
        assert not re.search(pattern, text), text
    found = re.search(NEVER[-1], text)
    if found:  # the scope of a count is what the first line names
        assert int(found[2].replace(",", "")) == len(capture.exchanges), text
    data = why.to_dict()
    first = next(iter(data["findings"]), None)
    families = data.get("families", [])
    loss = next((f for f in families if f["family"] == "loss"), None)
    if first is not None and loss is not None and loss["share"] > 0.5:
        assert "Profile the" not in (why.fix or ""), text
