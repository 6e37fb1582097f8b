"""Does the judge say of every case, and of cases whose times lie on limits (`edges.py`), what it said before?

The texts are no truth: they show what a change of a rule or a limit changes. `LATPCAP_WRITE_GOLDEN=1 python -m pytest
tests/test_edges.py` writes them anew; read the difference as you would read that of a picture.
"""

from __future__ import annotations

import os
from itertools import pairwise

import edges
import pytest

import latpcap as lp

CASES = sorted(path.name for path in edges.FOLDER.iterdir() if path.is_dir())


def test_every_case_has_a_text() -> None:
    if os.environ.get("LATPCAP_WRITE_GOLDEN"):
        wanted = {(name, seed) for name, seed in edges.texts() if name in CASES} | {(name, 0) for name in CASES}
        edges.write({key: edges.said(lp.read(edges.capture_of(*key))) for key in wanted})
        edges.texts.cache_clear()
    assert {name for name, seed in edges.texts() if not seed} == set(CASES), "LATPCAP_WRITE_GOLDEN=1 writes what misses"


@pytest.mark.parametrize(("name", "seed"), list(edges.texts()))
def test_verdicts_are_as_they_were(name: str, seed: int) -> None:
    said = edges.said(lp.read(edges.capture_of(name, seed)))
    assert said == edges.texts()[name, seed], "LATPCAP_WRITE_GOLDEN=1 writes what it says now"


def test_times_lie_on_limits() -> None:
    """As many as with which a mutant of a comparison can be told: one packet in twenty of these captures."""
    on = packets = 0
    for name, seed in edges.texts():
        if seed:
            [path] = (edges.FOLDER / name).glob("capture.*")
            before = edges.packets(path)
            after = edges.times(edges.packets(path), seed, name)
            packets += len(before)
            on += sum(b - a in edges.EDGES_NS for a, b in pairwise(after))
    assert on >= packets / 20
