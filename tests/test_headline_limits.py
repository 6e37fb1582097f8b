"""The words of a headline on both sides of the shares that choose them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from latpcap.findings import headline
from latpcap.findings import presentation as show


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (1.0, "most"),
        (show.MOST_TIME, "most"),
        (math.nextafter(show.MOST_TIME, 0), "the largest part"),
        (0.0, "the largest part"),
    ],
)
def test_most_of_the_time(monkeypatch: pytest.MonkeyPatch, share: float, says: str) -> None:
    monkeypatch.setattr(headline, "_beyond", lambda _: "")
    said: Any = {"families": [{"share": share, "causes": {}}, {"share": 1.0, "causes": {}}]}
    assert headline._part(said) == says


def test_a_cause_of_few_slow_requests_says_of_how_many() -> None:
    typical = math.ceil(100 * show.TYPICAL)
    for hit, says in ((typical, ""), (typical - 1, f", in {typical - 1} of 100 slow requests"), (100, "")):
        said: Any = {"slow": {"count": 100}, "hit": hit}
        assert headline._few(said) == says
