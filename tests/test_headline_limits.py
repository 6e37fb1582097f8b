"""The choice of a headline's words on both sides of the shares that decide it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from latpcap import presentation as show
from latpcap.answers import headline as answer


@pytest.mark.parametrize(
    ("share", "most"),
    [(1.0, True), (show.MOST_TIME_SHARE, True), (math.nextafter(show.MOST_TIME_SHARE, 0), False), (0.0, False)],
)
def test_most_of_the_time(monkeypatch: pytest.MonkeyPatch, share: float, most: bool) -> None:
    monkeypatch.setattr(answer, "_is_below_path", lambda _: False)
    data: Any = SimpleNamespace(families=[{"share": share, "causes": {}}, {"share": 1.0, "causes": {}}])
    assert answer._part_text(data, answer.PART_OF_TIME) == ("most time" if most else "the largest part of the time")
    assert (
        answer._part_text(data, answer.PART_OF_THEIR_TIME) == f"{'most' if most else 'the largest part'} of their time"
    )


def test_a_cause_of_few_slow_requests_is_called_so() -> None:
    typical = math.ceil(100 * show.TYPICAL_SHARE)
    for hit, few in ((typical, False), (typical - 1, True), (100, False)):
        data: Any = SimpleNamespace(requests=SimpleNamespace(slow={"count": 100}), hit=hit)
        assert answer._is_in_few_slow(data) == few
