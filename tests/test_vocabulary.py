"""Does every row use the words of the closed lists, and say what they mean?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

import latpcap as lp
from latpcap import vocabulary

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"
BANDS = {"proven": (0.9, 1.0), "probable": (0.5, 0.9), "suspected": (0.0, 0.5), "unknown": (0.0, 0.0)}


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.pcap*")), ids=lambda path: path.name)
def test_rows_say_how_sure_they_are_in_words_of_the_lists(path: Path) -> None:
    rows = lp.read(path).arrow("causes")
    for column, words in [
        ("cause", vocabulary.CAUSES),
        ("parent", vocabulary.CAUSES),
        ("owner", vocabulary.OWNERS),
        ("rule", vocabulary.RULES),
        ("grade", vocabulary.GRADES),
        ("because", vocabulary.BECAUSES),
        ("rival", vocabulary.RIVALS),
    ]:
        assert set(pc.unique(rows[column].drop_null()).to_pylist()) <= set(words), column
    for row in rows.select(["cause", "grade", "confidence", "rival"]).to_pylist():
        low, high = BANDS[row["grade"]]
        assert low <= row["confidence"] <= high, row
        # a rival that is left is named, and nobody rivals what is proven
        assert (row["rival"] is None) == (row["grade"] in ("proven", "unknown")), row
        assert row["rival"] != row["cause"], row
        assert (row["cause"] == "unknown") == (row["grade"] == "unknown"), row


def test_every_cause_has_a_family_and_an_owner() -> None:
    for cause in vocabulary.CAUSES.values():
        assert cause.family in vocabulary.FAMILIES
        assert cause.owner in {*vocabulary.OWNERS, "sender", "receiver"}


def test_the_docs_have_the_words_and_limits_of_the_core() -> None:
    told = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "words.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr


def test_causes_have_a_name_an_owner_and_a_colour_of_their_own() -> None:
    assert all(name == cause.name for name, cause in vocabulary.CAUSES.items())
    assert {cause.owner for cause in vocabulary.CAUSES.values()} <= {*vocabulary.OWNERS, "sender", "receiver"}
    assert len({cause.colour for cause in vocabulary.CAUSES.values()}) == len(vocabulary.CAUSES)
