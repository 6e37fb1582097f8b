"""Which value is a percentile? Numbers in, one of them out; the one rule of reports and pictures."""

from __future__ import annotations

import math
from typing import Any


def rank(ordered: Any, percent: float) -> float:
    """Which value is this percentile? Nearest rank: the least one with at least `percent` % of all at or below it. No
    value is made up between two. (wrk takes the next one where the share is met exactly.) `ordered` rises and is not
    empty.
    """
    place = math.ceil(round(len(ordered) * percent / 100, 9)) - 1
    return float(ordered[min(max(place, 0), len(ordered) - 1)])
