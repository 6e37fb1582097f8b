"""How far apart do rows stand if the space between them is time?

Reads instants and the least heights that rows need; gives places in em; knows nothing of what is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

ORDINARY, LONGEST = 10.0, 24.0  # em: the height of a long, but not unusual gap; one that would be higher is broken


@dataclass(frozen=True, slots=True)
class Step:
    """One row: its instant in ns, and the least distance in em to the row above it."""

    at_ns: int
    least: float


@dataclass(frozen=True, slots=True)
class Break:
    """A gap that is drawn shorter than it was: between which heights, and how long it was in ns."""

    top: float
    bottom: float
    ns: int


def scale_of(sides: Sequence[Sequence[int]], mark_ns: float) -> float:
    """How many em is a ns? Of the gaps of at least `mark_ns`, three quarters are not higher than `ORDINARY` em; without
    such a gap the longest one gets as much. `sides` hold instants in order; 0.0 if all are the same.
    """
    gaps = [after - before for times in sides for before, after in pairwise(times)]
    waits = sorted(gap for gap in gaps if gap >= mark_ns)
    typical = waits[-(-3 * len(waits) // 4) - 1] if waits else max(gaps, default=0)
    return ORDINARY / typical if typical > 0 else 0.0


def stack(sides: Sequence[Sequence[Step]], em_per_ns: float | None) -> tuple[list[list[float]], list[Break]]:
    """Where do the rows of one graph, or of several beside each other, stand? Counted from 0, downwards.

    Rows of a side never stand closer than they need. Without a scale that is where they stand. With one (then the
    instants of all sides count from the same zero) they stand at least `em_per_ns` apart for each ns, and what has the
    same instant on two sides has the same height; a gap of more than `LONGEST` em is broken there.
    """
    places: list[list[float]] = [[] for _ in sides]
    if em_per_ns is None:
        for place, side in zip(places, sides, strict=True):
            y = 0.0
            for step in side:
                y += step.least
                place.append(y)
        return places, []
    breaks: list[Break] = []
    order: list[tuple[int, int, int]] = []
    for number, side in enumerate(sides):
        # a clock that was set back makes a row that is earlier than the one above it: it stands below all the same
        instants = accumulate((step.at_ns for step in side), max)
        order += [(at, number, place) for place, at in enumerate(instants)]
    order.sort()
    reached, now = 0.0, order[0][0] if order else 0
    for at, number, _ in order:
        place, side = places[number], sides[number]
        step = side[len(place)]
        wanted = em_per_ns * (at - now)
        own = (place[-1] if place else 0.0) + step.least
        y = max(own, reached + min(wanted, LONGEST))
        if wanted > LONGEST and y - reached < wanted:
            breaks.append(Break(reached, y, at - now))
        place.append(y)
        reached, now = max(reached, y), at
    return places, breaks


def nice(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20 ... (or 0.5, 0.2 ...) that is not above the value."""
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return next((power * step for step in (5, 2) if power * step <= value), power)
