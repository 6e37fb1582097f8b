"""What does B's clock show when A's shows this? Offset, rate and steps from the least delays of both directions.

Reads pairs of instants: when a packet left, and when it arrived. A packet that went from A to B shows that B's clock is
at most so far behind; one that came back shows that it is at least so far. Between two steps a clock is a line. Of all
lines that no packet forbids, the estimate is the one in the middle where both directions have the widest gap: the
right one if the least delay is the same in both. How far it can be off is what the other lines allow, and no more can
be known from packets: an asymmetric path looks like an offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from latpcap import spill
from latpcap.joined import limits

if TYPE_CHECKING:
    from latpcap.arrays import Array

KNOTS = 257
"""Instants at which the bound of a section is computed; between them it is a line, on the safe side."""


@dataclass
class Section:
    """A stretch of B's packets, by their place in the file, in which its clock is a line against A's."""

    first: int
    """Place of its first packet in B's file; it ends where the next begins."""
    start: float
    """B's clock there, in ns since the first packet of the fit."""
    middle: float
    slope: float
    """A's time minus B's per ns of B's."""
    value: float
    """A's time minus B's at `middle`."""
    knots: Array
    low: Array
    """The least that A's time minus B's can be at each knot."""
    high: Array
    gap_ns: float
    """Least round trip between the points: what both directions' envelopes are apart."""
    step_ns: float = 0.0
    """By how much the clock differs from what the section before it foretold."""


@dataclass
class Clock:
    """A's time for B's packets. `origin` is added to B's times less `zero`."""

    zero: int
    origin: int
    sections: list[Section]
    last: float

    def shift(self, place: Array, time: Array) -> Array:
        """A's time minus B's for packets at these places of B's file, with these times of B's, in whole ns."""
        import numpy as np

        out = np.full(len(time), self.origin, np.int64)
        x = (time - self.zero).astype(np.float64)
        for section, mine in self._sections(place):
            y = section.value + section.slope * (x[mine] - section.middle)
            out[mine] += np.rint(y).astype(np.int64)
        return out

    def of_a(self, time: Array) -> Array:
        """A's time for each packet of B's file."""
        import numpy as np

        spans = spill.parts(len(time))
        return spill.from_pieces("i8", (time[at] + self.shift(np.arange(at.start, at.stop), time[at]) for at in spans))

    def error_ns(self, place: Array, time: Array) -> Array:
        """How far off can it be there? Infinite where only one direction was seen."""
        import numpy as np

        out = np.full(len(time), np.inf)
        x = (time - self.zero).astype(np.float64)
        for section, mine in self._sections(place):
            y = section.value + section.slope * (x[mine] - section.middle)
            low = np.interp(x[mine], section.knots, section.low)
            high = np.interp(x[mine], section.knots, section.high)
            beyond = np.maximum(section.knots[0] - x[mine], x[mine] - section.knots[-1])
            out[mine] = np.maximum(np.maximum(high - y, y - low), 0) + np.maximum(beyond, 0) * limits.SKEW_MOST
        return out

    def _sections(self, place: Array) -> list[tuple[Section, Array]]:
        import numpy as np

        firsts = np.array([section.first for section in self.sections])
        which = np.maximum(np.searchsorted(firsts, place, "right") - 1, 0)
        return [(section, which == k) for k, section in enumerate(self.sections)]

    @property
    def offset_ns(self) -> float:
        """B's time minus A's at the first packet that both have."""
        first = self.sections[0]
        return -(self.origin + first.value + first.slope * (first.start - first.middle))

    @property
    def ppm(self) -> float:
        """By how much B's clock is faster than A's, in parts per million, by the longest section."""
        longest = max(self.sections, key=lambda section: section.knots[-1] - section.knots[0])
        return -longest.slope * 1e6

    @property
    def seconds(self) -> float:
        """How long the longest section is."""
        return float(max(s.knots[-1] - s.knots[0] for s in self.sections)) / 1e9

    @property
    def steps(self) -> list[tuple[int, float]]:
        """Where B's clock was set against A's: place in B's file, and by how many ns it went forward."""
        return [(s.first, -s.step_ns) for s in self.sections[1:] if s.step_ns]


def one(first_ns: int, last_ns: int) -> Clock:
    """The clock of one capture against itself."""
    import numpy as np

    span = float(max(last_ns - first_ns, 0))
    section = Section(0, 0.0, 0.0, 0.0, 0.0, np.array([0.0, span]), np.zeros(2), np.zeros(2), np.inf)
    return Clock(first_ns, 0, [section], span)


def fit(place: Array, b_time: Array, a_time: Array, up: Array, tolerance: float) -> Clock:
    """Fit B's clock to A's. `place` is each packet's place in B's file, `up`: it went from A to B.

    `tolerance` is how far stamps may be off by resolution, in ns. At least one packet.
    """
    import numpy as np

    if not spill.is_sorted(place):
        order = np.argsort(place, kind="stable")
        place, up, a_time, b_time = place[order], up[order], a_time[order], b_time[order]
    zero = int(b_time[0])
    difference = a_time - b_time
    origin = int(np.median(difference))
    x = (b_time - zero).astype(np.float64)
    y = (difference - origin).astype(np.float64)
    del difference, a_time, b_time
    slope = _coarse_slope(x, y, up)
    cuts = _steps(x, y - slope * x, up)
    edges = [0, *cuts, len(x)]
    parts: list[tuple[int, int, bool]] = []
    for start, end in pairwise(edges):
        parts += [(s, e, s == start and start > 0) for s, e in _cut(x, y, up, start, end, tolerance)]
    sections: list[Section] = []
    for start, end, stepped in parts:
        section = _section(x[start:end], y[start:end], up[start:end], tolerance, slope)
        section.first = int(place[start]) if start else 0
        if sections and stepped:
            before = sections[-1]
            section.step_ns = _at(section, section.start) - _at(before, section.start)
        sections.append(section)
    return Clock(zero, origin, sections, float(x[-1]))


def _at(section: Section, x: float) -> float:
    return section.value + section.slope * (x - section.middle)


class _Floors:
    """Rolling floors of both directions, the least delays of `STEP_WINDOW` packets each."""

    def __init__(self, y: Array, up: Array):
        import numpy as np

        self._sent = np.cumsum(up, dtype=np.int32)
        self._up = up
        self._floors = [self._rolled(y[mine], most) for mine, most in ((up, True), (~up, False))]

    @staticmethod
    def _rolled(values: Array, most: bool) -> Array:
        """The floor of the window that begins at each value."""
        import numpy as np

        count = max(len(values) - limits.STEP_WINDOW + 1, 0)
        floor = values[:count].copy()
        for later in range(1, limits.STEP_WINDOW if count else 0):
            (np.maximum if most else np.minimum)(floor, values[later : later + count], out=floor)
        return floor

    def at(self, rows: Array) -> tuple[Array, Array, Array, Array]:
        """Of A to B, then of B to A: before each of these packets (its own not counted), and from it on."""
        import numpy as np

        sent = self._sent[rows] - self._up[rows]
        found = []
        for floor, before in zip(self._floors, (sent, rows - sent), strict=True):
            for place in (before - limits.STEP_WINDOW, before):
                known = (place >= 0) & (place < len(floor))
                some = np.full(len(rows), np.nan)
                some[known] = floor[place[known]]
                found.append(some)
        return found[0], found[1], found[2], found[3]


def _coarse_slope(x: Array, y: Array, up: Array) -> float:
    """The rate, roughly: the median of what both floors do between windows, which a step or a burst does not move."""
    import numpy as np

    if min(up.sum(), (~up).sum()) < 4 * limits.STEP_WINDOW:
        return 0.0
    floors = _Floors(y, up)
    points = np.arange(0, len(x), limits.STEP_WINDOW)
    low, low_after, high, high_after = floors.at(points)
    known = ~np.isnan(low + high + low_after + high_after)
    if known.sum() < 4:
        return 0.0
    floor, when = ((low + high) / 2)[known], x[points[known]]
    far = max(1, len(floor) // 8)  # a step is between few of such pairs
    span = when[far:] - when[:-far]
    slopes = (floor[far:] - floor[:-far])[span > 0] / span[span > 0]
    slope = float(np.median(slopes)) if len(slopes) else 0.0
    return slope if abs(slope) <= limits.SKEW_MOST else 0.0


def _steps(x: Array, y: Array, up: Array) -> list[int]:
    """Places where both directions' floors move by the same amount, for good."""
    import numpy as np

    if min(up.sum(), (~up).sum()) < 2 * limits.STEP_WINDOW:
        return []
    floors = _Floors(y, up)
    both, alike = np.zeros(len(y)), np.zeros(len(y), bool)
    for span in spill.parts(len(y)):
        low_before, low_after, high_before, high_after = floors.at(np.arange(span.start, span.stop))
        low, high = low_after - low_before, high_after - high_before
        moved = np.where(np.sign(low) == np.sign(high), np.minimum(abs(low), abs(high)), 0.0)
        both[span] = np.where(np.isnan(moved), 0.0, moved)
        alike[span] = abs(low - high) <= limits.STEP_ALIKE * np.maximum(abs(low), abs(high))
    noise = float(np.median(both[both > 0])) if (both > 0).any() else 0.0
    least = max(limits.STEP_LEAST_NS, limits.STEP_NOISE * noise)
    candidates = np.flatnonzero((both >= least) & alike)
    cuts: list[int] = []
    while len(candidates):
        best = int(candidates[both[candidates].argmax()])
        sent, later_sent, back, later_back = (float(of[0]) for of in floors.at(np.array([best])))
        amount = (later_sent - sent + later_back - back) / 2
        cut = _placed(y, up, best, amount, (sent, back))
        edges = sorted([0, *cuts, len(y)])
        start = max(edge for edge in edges if edge <= cut)
        end = min([edge for edge in edges if edge > cut], default=len(y))
        start, end = max(start, cut - LASTING), min(end, cut + LASTING)
        if _lasts(y, up, start, cut, end, amount):
            cuts.append(cut)
        near = abs(candidates - best) <= 4 * limits.STEP_WINDOW
        candidates = candidates[~near]
    return sorted(cuts)


LASTING = 4096
"""A step lasts if both floors stay moved for so many packets, or to the end."""


def _placed(y: Array, up: Array, near: int, amount: float, floors: tuple[float, float]) -> int:
    """The packet at which the step was, by which of both floors each packet around it lies closer to."""
    import numpy as np

    start, end = (max(0, near - 4 * limits.STEP_WINDOW), min(len(y), near + 4 * limits.STEP_WINDOW))
    part, sent = y[start:end], up[start:end]

    def cost(moved: float) -> Array:
        slack = np.where(sent, floors[0] + moved - part, part - floors[1] - moved)
        return np.where(slack >= 0, slack, -10.0 * slack)

    before, after = (np.concatenate([[0], np.cumsum(cost(0.0))]), np.concatenate([[0], np.cumsum(cost(amount))]))
    return start + int((before + after[-1] - after).argmin())


def _lasts(y: Array, up: Array, start: int, cut: int, end: int, amount: float) -> bool:
    """Do the floors of all packets before and behind differ by the step, in both directions?"""
    found = []
    for direction, most in ((up, True), (~up, False)):
        before, after = (y[start:cut][direction[start:cut]], y[cut:end][direction[cut:end]])
        if min(len(before), len(after)) < limits.STEP_WINDOW:
            return False
        found.append(float(after.max() - before.max()) if most else float(after.min() - before.min()))
    return all(abs(moved - amount) <= limits.STEP_ALIKE * abs(amount) for moved in found)


def _cut(x: Array, y: Array, up: Array, start: int, end: int, tolerance: float) -> list[tuple[int, int]]:
    """Cut a stretch where its clock cannot be taken as a line: by time, and where no line fits."""
    import numpy as np

    span = x[end - 1] - x[start]
    pieces = int(span // limits.SECTION_NS) + 1
    if pieces > 1:
        edges = [
            start,
            *(start + np.searchsorted(x[start:end], x[start] + span * k / pieces) for k in range(1, pieces)),
        ]
        edges = [*edges, end]
        kept = [start]
        for edge in edges[1:-1]:
            ups, downs = up[kept[-1] : edge].sum(), (~up[kept[-1] : edge]).sum()
            rest_up, rest_down = up[edge:end].sum(), (~up[edge:end]).sum()
            if min(ups, downs, rest_up, rest_down) >= limits.SECTION_LEAST:
                kept.append(int(edge))
        parts = list(zip(kept, [*kept[1:], end], strict=True))
        return [piece for part in parts for piece in _fitting(x, y, up, *part, tolerance, 0)]
    return _fitting(x, y, up, start, end, tolerance, 0)


MOST_CUTS = 6
"""A stretch is halved so often where no line fits."""


def _fitting(
    x: Array, y: Array, up: Array, start: int, end: int, tolerance: float, depth: int
) -> list[tuple[int, int]]:
    part = slice(start, end)
    few = min(up[part].sum(), (~up[part]).sum()) < 2 * limits.SECTION_LEAST
    if few or depth >= MOST_CUTS:
        return [(start, end)]
    low, high = hulls(x[part], y[part], up[part])
    centre = float(x[part].mean())
    _, margin = widest(low, high, centre)
    if margin >= -2 * tolerance:
        return [(start, end)]
    middle = (start + end) // 2
    halves = ((start, middle), (middle, end))
    return [piece for s, e in halves for piece in _fitting(x, y, up, s, e, tolerance, depth + 1)]


def hulls(x: Array, y: Array, up: Array) -> tuple[Array, Array]:
    """The corners (n x 2) of the upper hull of what went up and of the lower hull of what came back."""
    return _hull(x[up], y[up], 1.0), _hull(x[~up], y[~up], -1.0)


def _hull(x: Array, y: Array, sign: float) -> Array:
    import numpy as np

    if not len(x):
        return np.zeros((0, 2))
    order = np.lexsort((-sign * y, x))
    x, y = x[order], sign * y[order]
    first = np.ones(len(x), bool)
    first[1:] = x[1:] != x[:-1]
    x, y = x[first], y[first]
    while len(x) > BLOCKS:  # all but the highest of a block, and its ends, is under the hull or near it
        kept = _above_chords(x, y)
        if kept.sum() > len(x) * PRUNED:
            break
        x, y = x[kept], y[kept]
    corners: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (point[0] - x0) > (point[1] - y0) * (x1 - x0):
                break
            corners.pop()
        corners.append(point)
    return np.array(corners) * (1.0, sign)


BLOCKS = 256
"""Points up to which a hull is made without a first choice."""
PRUNED = 0.9
"""A first choice that leaves more than this share of the points is the last one."""


def _above_chords(x: Array, y: Array) -> Array:
    """Which points lie on or above the line through the highest points of the blocks around them?"""
    import numpy as np

    size = len(x) // 64 + 1
    starts = np.arange(0, len(x), size)
    tops = np.unique([0, *(int(s + y[s : s + size].argmax()) for s in starts), len(x) - 1])
    above: Array = y >= np.interp(x, x[tops], y[tops])
    return above


def widest(low: Array, high: Array, centre: float) -> tuple[float, float]:
    """The slope at which the gap between both hulls is widest, and that gap in ns."""
    import numpy as np

    def margin(slope: float) -> float:
        return float(
            (high[:, 1] - slope * (high[:, 0] - centre)).min() - (low[:, 1] - slope * (low[:, 0] - centre)).max()
        )

    if not len(low) or not len(high):
        return 0.0, np.inf
    slopes = np.clip(_edges(low, high), -limits.SKEW_MOST, limits.SKEW_MOST)
    slopes = np.unique([-limits.SKEW_MOST, *slopes, limits.SKEW_MOST])
    margins = np.array([margin(slope) for slope in slopes.tolist()])
    best = margins.max()
    level = slopes[margins >= best - 1e-6 * max(abs(best), 1.0)]
    return float((level[0] + level[-1]) / 2), float(best)


def _edges(*corners: Array) -> Array:
    """The slopes of all edges of these hulls: where the gap's width bends."""
    import numpy as np

    found = [np.diff(c[:, 1]) / np.diff(c[:, 0]) for c in corners if len(c) > 1]
    return np.concatenate(found) if found else np.zeros(0)


def _section(x: Array, y: Array, up: Array, tolerance: float, coarse: float) -> Section:
    """Fit one line, and what else would do."""
    import numpy as np

    low, high = hulls(x, y, up)
    middle = float((x[0] + x[-1]) / 2)
    knots = np.linspace(x[0], x[-1], KNOTS if x[-1] > x[0] else 1)
    if not len(low) or not len(high):  # one direction: an end is open
        one = low if len(low) else high
        edge = float(np.max(one[:, 1] - coarse * (one[:, 0] - middle)) if len(low) else
                     np.min(one[:, 1] - coarse * (one[:, 0] - middle)))  # fmt: skip
        ends = np.full(len(knots), -np.inf), np.full(len(knots), np.inf)
        return Section(0, float(x[0]), middle, coarse, edge, knots, *ends, np.inf)
    slope, gap = widest(low, high, middle)
    few = min(len(x[up]), len(x[~up])) < limits.SECTION_LEAST
    if few:
        slope = coarse
    elif abs(slope) < limits.SKEW_SIGMAS * _slope_error(x, y, up, slope):
        slope = 0.0
    top = float((high[:, 1] - slope * (high[:, 0] - middle)).min())
    bottom = float((low[:, 1] - slope * (low[:, 0] - middle)).max())
    value = (top + bottom) / 2
    slopes = np.unique([-limits.SKEW_MOST, *np.clip(_edges(low, high), -limits.SKEW_MOST, limits.SKEW_MOST), slope,
                        limits.SKEW_MOST])  # fmt: skip
    slopes = _with_zeros(slopes, low, high, middle, tolerance)
    lows, highs = [], []
    for one in slopes.tolist():
        under = (low[:, 1] - one * (low[:, 0] - middle)).max() - tolerance
        over = (high[:, 1] - one * (high[:, 0] - middle)).min() + tolerance
        if under <= over + 1e-3:
            lows.append(under + one * (knots - middle))
            highs.append(over + one * (knots - middle))
    if lows:
        least, most = np.min(lows, 0), np.max(highs, 0)
    else:  # no line fits: what this one misses is the least error
        wrong = abs(gap) + tolerance
        line = value + slope * (knots - middle)
        least, most = line - wrong, line + wrong
    return Section(0, float(x[0]), middle, slope, value, knots, least, most, max(gap, 0.0))


def _slope_error(x: Array, y: Array, up: Array, slope: float) -> float:
    """The standard error of a rate, by how much the middle between both floors moves from block to block."""
    import numpy as np

    edges = np.linspace(x[0], x[-1], BLOCKS_OF_RATE + 1)
    flat = y - slope * (x - x[0])
    block = np.clip(np.searchsorted(edges, x, "right") - 1, 0, BLOCKS_OF_RATE - 1)
    middles, whens = [], []
    for number in range(BLOCKS_OF_RATE):
        mine = block == number
        sent, back = flat[mine & up], flat[mine & ~up]
        if min(len(sent), len(back)) >= BLOCK_LEAST:
            middles.append((sent.max() + back.min()) / 2)
            whens.append((edges[number] + edges[number + 1]) / 2)
    if len(middles) < BLOCKS_OF_RATE // 2:
        return 0.0
    when = np.array(whens) - np.mean(whens)
    return float(np.std(middles) / np.sqrt((when**2).sum()))


BLOCKS_OF_RATE = 8
"""Parts of a section whose floors are compared."""
BLOCK_LEAST = 3
"""Packets of each direction that such a part needs."""


def _with_zeros(slopes: Array, low: Array, high: Array, middle: float, tolerance: float) -> Array:
    """These slopes, and the least and the greatest that both hulls still allow."""
    import numpy as np

    margins = np.array(
        [
            (high[:, 1] - s * (high[:, 0] - middle)).min() - (low[:, 1] - s * (low[:, 0] - middle)).max()
            for s in slopes.tolist()
        ]
    )
    margins = margins + 2 * tolerance
    signs = np.flatnonzero((margins[1:] < 0) != (margins[:-1] < 0))
    zeros = [
        slopes[k] + (slopes[k + 1] - slopes[k]) * margins[k] / (margins[k] - margins[k + 1]) for k in signs.tolist()
    ]
    return np.unique([*slopes, *zeros])
