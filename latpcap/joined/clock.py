"""Estimates B's clock against A's: offset, rate, steps and error bound, from the least delays of both directions.

Reads the instants at which packets left one point and arrived at the other. No packet arrives before it was sent, so
each packet bounds y, A's time minus B's: a packet from A to B ("up") from below, one from B to A from above. Between
two steps y is a line over B's time x. It runs above the upper hull of the packets up and below the lower hull of the
others. The estimate is the line in the middle at the slope where the hulls are furthest apart; it is exact if the least
delay is equal in both directions. The error bound is the range of all lines between the hulls. Packets cannot tell
more: an asymmetric path looks like an offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from latpcap import spill
from latpcap.joined import limits
from latpcap.lazy import np

if TYPE_CHECKING:
    from latpcap.arrays import Array

KNOTS = 257
"""Instants at which the error bound of a section is computed; between them it is interpolated."""
MAX_HALVINGS = 6
"""Upper bound on how often a section is halved because no line fits."""
HULL_POINTS = 256
"""Number of points up to which a hull is computed without dropping points first."""
PRUNED = 0.9
"""Share of points kept by a pass from which no further pass is made."""
RATE_BLOCKS = 8
"""Number of blocks of a section whose floors are compared."""


@dataclass
class Section:
    """A range of B's packets, in file order, in which A's time minus B's is a line."""

    first: int
    """Index of its first packet in B's file; it ends where the next section begins."""
    start: float
    """B's clock at its first packet, in ns since the first packet of the fit."""
    middle: float
    """B's clock at the middle of the section."""
    slope: float
    """Change of A's time minus B's per ns of B's."""
    value: float
    """A's time minus B's at `middle`, less `Clock.origin`."""
    knots: Array
    """B's clock at the instants of `low` and `high`."""
    low: Array
    """Lower bound of A's time minus B's at each knot."""
    high: Array
    """Upper bound at each knot."""
    gap_ns: float
    """Least round trip between the points: the distance of the bounds of both directions."""
    step_ns: float = 0.0
    """Difference, at the section's start, from the line of the section before; 0 where no step was found."""

    def value_at(self, x: Any) -> Any:
        """Return A's time minus B's, less `Clock.origin`, at these times of B's clock."""
        return self.value + self.slope * (x - self.middle)


@dataclass
class Clock:
    """A's clock as a function of B's, section by section."""

    zero: int
    """B's time, in ns since 1970, from which the sections count."""
    origin: int
    """A's time minus B's, in ns, to which the sections' values are added."""
    sections: list[Section]

    def shift(self, rows: Array, time: Array) -> Array:
        """Return A's time minus B's in whole ns, for packets at these indices of B's file and these times of B."""
        shifts = np.full(len(time), self.origin, np.int64)
        x = (time - self.zero).astype(np.float64)
        for section, is_inside in self._sections(rows):
            shifts[is_inside] += np.rint(section.value_at(x[is_inside])).astype(np.int64)
        return shifts

    def to_a(self, time: Array) -> Array:
        """Return A's time for each packet of B's file."""

        def times_of_a(span: slice) -> Array:
            return time[span] + self.shift(np.arange(span.start, span.stop), time[span])

        return spill.from_pieces("i8", map(times_of_a, spill.parts(len(time))))

    def error_ns(self, rows: Array, time: Array) -> Array:
        """Return the error bound of `shift` in ns; infinite where only one direction was seen."""
        errors = np.full(len(time), np.inf)
        x = (time - self.zero).astype(np.float64)
        for section, is_inside in self._sections(rows):
            y = section.value_at(x[is_inside])
            low = np.interp(x[is_inside], section.knots, section.low)
            high = np.interp(x[is_inside], section.knots, section.high)
            beyond = np.maximum(section.knots[0] - x[is_inside], x[is_inside] - section.knots[-1])
            errors[is_inside] = np.maximum(np.maximum(high - y, y - low), 0) + np.maximum(beyond, 0) * limits.MAX_SKEW
        return errors

    def _sections(self, rows: Array) -> list[tuple[Section, Array]]:
        firsts = np.array([section.first for section in self.sections])
        section_of = np.maximum(np.searchsorted(firsts, rows, "right") - 1, 0)
        return [(section, section_of == k) for k, section in enumerate(self.sections)]

    @property
    def offset_ns(self) -> float:
        """B's time minus A's at the first packet that both have."""
        first = self.sections[0]
        return -(self.origin + float(first.value_at(first.start)))

    @property
    def ppm(self) -> float:
        """How much faster B's clock is than A's, in parts per million, in the longest section."""
        longest = max(self.sections, key=lambda section: section.knots[-1] - section.knots[0])
        return -longest.slope * 1e6

    @property
    def seconds(self) -> float:
        """Duration of the longest section in s."""
        return float(max(section.knots[-1] - section.knots[0] for section in self.sections)) / 1e9

    @property
    def steps(self) -> list[tuple[int, float]]:
        """The steps of B's clock: index in B's file, and ns by which the clock was set forward."""
        return [(section.first, -section.step_ns) for section in self.sections[1:] if section.step_ns]


def identity(first_ns: int, last_ns: int) -> Clock:
    """Return the clock of a capture against itself."""
    span = float(max(last_ns - first_ns, 0))
    section = Section(0, 0.0, 0.0, 0.0, 0.0, np.array([0.0, span]), np.zeros(2), np.zeros(2), np.inf)
    return Clock(first_ns, 0, [section])


def fit(rows: Array, b_time: Array, a_time: Array, up: Array, tolerance: float) -> Clock:
    """Fit B's clock to A's. `rows` is each packet's index in B's file; `up` is true for a packet from A to B.

    `tolerance` is the error of the time stamps in ns. At least one packet is needed.
    """
    if not spill.is_sorted(rows):
        order = np.argsort(rows, kind="stable")
        rows, up, a_time, b_time = rows[order], up[order], a_time[order], b_time[order]
    zero = int(b_time[0])
    difference = a_time - b_time
    origin = int(np.median(difference))
    x = (b_time - zero).astype(np.float64)
    y = (difference - origin).astype(np.float64)
    del difference, a_time, b_time
    slope = _coarse_slope(x, y, up)
    edges = [0, *_find_steps(x, y - slope * x, up), len(x)]
    parts: list[tuple[int, int, bool]] = []
    for start, end in pairwise(edges):
        pieces = _split(x, y, up, start, end, tolerance)
        parts += [(begin, stop, begin == start and start > 0) for begin, stop in pieces]
    sections: list[Section] = []
    for start, end, stepped in parts:
        section = _section(x[start:end], y[start:end], up[start:end], tolerance, slope)
        section.first = int(rows[start]) if start else 0
        if sections and stepped:
            previous = sections[-1]
            section.step_ns = section.value_at(section.start) - previous.value_at(section.start)
        sections.append(section)
    return Clock(zero, origin, sections)


class _Floors:
    """The least delay of each window of `STEP_WINDOW` packets of one direction, as a value of y, for both directions.

    Such a floor is the greatest y of the packets from A to B, and the least y of those from B to A.
    """

    def __init__(self, y: Array, up: Array):
        self._sent = np.cumsum(up, dtype=np.int32)
        self._up = up
        self._floors = [self._rolling(y[rows], greatest) for rows, greatest in ((up, True), (~up, False))]

    @staticmethod
    def _rolling(values: Array, greatest: bool) -> Array:
        """Return the floor of the window that begins at each value."""
        count = max(len(values) - limits.STEP_WINDOW + 1, 0)
        floor = values[:count].copy()
        for later in range(1, limits.STEP_WINDOW if count else 0):
            (np.maximum if greatest else np.minimum)(floor, values[later : later + count], out=floor)
        return floor

    def at(self, rows: Array) -> tuple[Array, Array, Array, Array]:
        """Return four floors per row: from A to B in the window before it and in the one from it on, then from B to A.

        NaN where a window is not complete.
        """
        sent = self._sent[rows] - self._up[rows]
        floors = []
        for floor, before in zip(self._floors, (sent, rows - sent), strict=True):
            for first in (before - limits.STEP_WINDOW, before):
                is_complete = (first >= 0) & (first < len(floor))
                values = np.full(len(rows), np.nan)
                values[is_complete] = floor[first[is_complete]]
                floors.append(values)
        return floors[0], floors[1], floors[2], floors[3]


def _coarse_slope(x: Array, y: Array, up: Array) -> float:
    """Return a rough rate: the median slope of the middle of both floors, which no single step or burst of delays
    moves.
    """
    if min(up.sum(), (~up).sum()) < 4 * limits.STEP_WINDOW:
        return 0.0
    floors = _Floors(y, up)
    points = np.arange(0, len(x), limits.STEP_WINDOW)
    low, low_after, high, high_after = floors.at(points)
    is_known = ~np.isnan(low + high + low_after + high_after)
    if is_known.sum() < 4:
        return 0.0
    floor, when = ((low + high) / 2)[is_known], x[points[is_known]]
    distance = max(1, len(floor) // 8)  # few pairs at this distance have a step between them
    span = when[distance:] - when[:-distance]
    slopes = (floor[distance:] - floor[:-distance])[span > 0] / span[span > 0]
    slope = float(np.median(slopes)) if len(slopes) else 0.0
    return slope if abs(slope) <= limits.MAX_SKEW else 0.0


def _find_steps(x: Array, y: Array, up: Array) -> list[int]:
    """Return the indices at which the floors of both directions move by one amount, and stay there.

    A queue that fills or a new route moves the floor of one direction, or of both in opposite senses of y.
    """
    if min(up.sum(), (~up).sum()) < 2 * limits.STEP_WINDOW:
        return []
    floors = _Floors(y, up)
    moves, is_alike = np.zeros(len(y)), np.zeros(len(y), bool)
    for span in spill.parts(len(y)):
        low_before, low_after, high_before, high_after = floors.at(np.arange(span.start, span.stop))
        low, high = low_after - low_before, high_after - high_before
        moved = np.where(np.sign(low) == np.sign(high), np.minimum(abs(low), abs(high)), 0.0)
        moves[span] = np.where(np.isnan(moved), 0.0, moved)
        is_alike[span] = abs(low - high) <= limits.STEP_ALIKE * np.maximum(abs(low), abs(high))
    noise = float(np.median(moves[moves > 0])) if (moves > 0).any() else 0.0
    min_step = max(limits.MIN_STEP_NS, limits.STEP_NOISE * noise)
    candidates = np.flatnonzero((moves >= min_step) & is_alike)
    cuts: list[int] = []
    while len(candidates):
        best = int(candidates[moves[candidates].argmax()])
        sent, later_sent, back, later_back = (float(values[0]) for values in floors.at(np.array([best])))
        amount = (later_sent - sent + later_back - back) / 2
        cut = _index_of_step(y, up, best, amount, (sent, back))
        edges = sorted([0, *cuts, len(y)])
        start = max(edge for edge in edges if edge <= cut)
        end = min([edge for edge in edges if edge > cut], default=len(y))
        start, end = max(start, cut - limits.LASTING_PACKETS), min(end, cut + limits.LASTING_PACKETS)
        if _is_lasting(y, up, start, cut, end, amount):
            cuts.append(cut)
        is_near = abs(candidates - best) <= 4 * limits.STEP_WINDOW
        candidates = candidates[~is_near]
    return sorted(cuts)


def _index_of_step(y: Array, up: Array, around: int, amount: float, floors: tuple[float, float]) -> int:
    """Return the index of the first packet after a step: where the packets near `around` fit the floors before and
    after it best. A packet beyond its floor, which would have a negative delay, costs ten times its distance.
    """
    start, end = max(0, around - 4 * limits.STEP_WINDOW), min(len(y), around + 4 * limits.STEP_WINDOW)
    values, sent = y[start:end], up[start:end]

    def cost(moved: float) -> Array:
        slack = np.where(sent, floors[0] + moved - values, values - floors[1] - moved)
        return np.where(slack >= 0, slack, -10.0 * slack)

    cost_before, cost_after = (np.concatenate([[0], np.cumsum(cost(moved))]) for moved in (0.0, amount))
    return start + int((cost_before + cost_after[-1] - cost_after).argmin())


def _is_lasting(y: Array, up: Array, start: int, cut: int, end: int, amount: float) -> bool:
    """Return whether the floors of all packets before and after the step differ by `amount`, in both directions."""
    moves = []
    for direction, greatest in ((up, True), (~up, False)):
        before, after = y[start:cut][direction[start:cut]], y[cut:end][direction[cut:end]]
        if min(len(before), len(after)) < limits.STEP_WINDOW:
            return False
        moves.append(float(after.max() - before.max()) if greatest else float(after.min() - before.min()))
    return all(abs(moved - amount) <= limits.STEP_ALIKE * abs(amount) for moved in moves)


def _split(x: Array, y: Array, up: Array, start: int, end: int, tolerance: float) -> list[tuple[int, int]]:
    """Split a range of packets into sections in which the clock is a line: by time, and where no line fits."""
    span = x[end - 1] - x[start]
    pieces = int(span // limits.SECTION_NS) + 1
    if pieces > 1:
        edges = [
            start,
            *(start + np.searchsorted(x[start:end], x[start] + span * k / pieces) for k in range(1, pieces)),
        ]
        edges = [*edges, end]
        starts = [start]
        for edge in edges[1:-1]:
            ups, downs = up[starts[-1] : edge].sum(), (~up[starts[-1] : edge]).sum()
            ups_after, downs_after = up[edge:end].sum(), (~up[edge:end]).sum()
            if min(ups, downs, ups_after, downs_after) >= limits.MIN_SECTION_PACKETS:
                starts.append(int(edge))
        parts = list(zip(starts, [*starts[1:], end], strict=True))
        return [piece for part in parts for piece in _halve_until_fit(x, y, up, *part, tolerance, 0)]
    return _halve_until_fit(x, y, up, start, end, tolerance, 0)


def _halve_until_fit(
    x: Array, y: Array, up: Array, start: int, end: int, tolerance: float, depth: int
) -> list[tuple[int, int]]:
    span = slice(start, end)
    has_few = min(up[span].sum(), (~up[span]).sum()) < 2 * limits.MIN_SECTION_PACKETS
    if has_few or depth >= MAX_HALVINGS:
        return [(start, end)]
    low, high = hulls(x[span], y[span], up[span])
    centre = float(x[span].mean())
    _, margin = widest(low, high, centre)
    if margin >= -2 * tolerance:
        return [(start, end)]
    middle = (start + end) // 2
    halves = ((start, middle), (middle, end))
    return [piece for begin, stop in halves for piece in _halve_until_fit(x, y, up, begin, stop, tolerance, depth + 1)]


def hulls(x: Array, y: Array, up: Array) -> tuple[Array, Array]:
    """Return the corners (n x 2) of the upper hull of the packets from A to B, and of the lower hull of the others."""
    return _hull(x[up], y[up], 1.0), _hull(x[~up], y[~up], -1.0)


def _hull(x: Array, y: Array, sign: float) -> Array:
    """Return the corners of the upper (`sign` 1) or lower (-1) convex hull of these points, x ascending."""
    if not len(x):
        return np.zeros((0, 2))
    order = np.lexsort((-sign * y, x))
    x, y = x[order], sign * y[order]
    is_first = np.ones(len(x), bool)
    is_first[1:] = x[1:] != x[:-1]
    x, y = x[is_first], y[is_first]
    while len(x) > HULL_POINTS:  # drop points that are under a chord, and so under the hull
        is_above = _above_chords(x, y)
        if is_above.sum() > len(x) * PRUNED:
            break
        x, y = x[is_above], y[is_above]
    corners: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (point[0] - x0) > (point[1] - y0) * (x1 - x0):
                break
            corners.pop()
        corners.append(point)
    return np.array(corners) * (1.0, sign)


def _above_chords(x: Array, y: Array) -> Array:
    """Return whether each point is on or above the line through the highest points of the blocks around it."""
    size = len(x) // 64 + 1
    starts = np.arange(0, len(x), size)
    tops = np.unique([0, *(int(begin + y[begin : begin + size].argmax()) for begin in starts), len(x) - 1])
    return y >= np.interp(x, x[tops], y[tops])


def widest(low: Array, high: Array, centre: float) -> tuple[float, float]:
    """Return the slope at which the gap between both hulls is widest, and that gap in ns."""
    if not len(low) or not len(high):
        return 0.0, np.inf
    slopes = np.clip(_edges(low, high), -limits.MAX_SKEW, limits.MAX_SKEW)
    slopes = np.unique([-limits.MAX_SKEW, *slopes, limits.MAX_SKEW])
    margins = _margins(low, high, centre, slopes)
    best = margins.max()
    level = slopes[margins >= best - 1e-6 * max(abs(best), 1.0)]
    return float((level[0] + level[-1]) / 2), float(best)


def _margins(low: Array, high: Array, centre: float, slopes: Array) -> Array:
    """Return the gap in ns between both hulls for each slope; negative where no line of that slope fits."""
    tops = [(high[:, 1] - slope * (high[:, 0] - centre)).min() for slope in slopes.tolist()]
    bottoms = [(low[:, 1] - slope * (low[:, 0] - centre)).max() for slope in slopes.tolist()]
    return np.subtract(tops, bottoms)


def _edges(*corners: Array) -> Array:
    """Return the slopes of all edges of these hulls; as a function of the slope, the gap is linear between them."""
    slopes = [np.diff(hull[:, 1]) / np.diff(hull[:, 0]) for hull in corners if len(hull) > 1]
    return np.concatenate(slopes) if slopes else np.zeros(0)


def _section(x: Array, y: Array, up: Array, tolerance: float, coarse: float) -> Section:
    """Fit a line to these packets, and the range of the other lines that are possible."""
    low, high = hulls(x, y, up)
    middle = float((x[0] + x[-1]) / 2)
    knots = np.linspace(x[0], x[-1], KNOTS if x[-1] > x[0] else 1)
    if not len(low) or not len(high):  # one direction only: there is no bound on the other side
        only = low if len(low) else high
        flat = only[:, 1] - coarse * (only[:, 0] - middle)
        edge = float(np.max(flat) if len(low) else np.min(flat))
        ends = np.full(len(knots), -np.inf), np.full(len(knots), np.inf)
        return Section(0, float(x[0]), middle, coarse, edge, knots, *ends, np.inf)
    slope, gap = widest(low, high, middle)
    has_few = min(len(x[up]), len(x[~up])) < limits.MIN_SECTION_PACKETS
    if has_few:
        slope = coarse
    elif abs(slope) < limits.SKEW_SIGMAS * _slope_error(x, y, up, slope):
        slope = 0.0
    top = float((high[:, 1] - slope * (high[:, 0] - middle)).min())
    bottom = float((low[:, 1] - slope * (low[:, 0] - middle)).max())
    value = (top + bottom) / 2
    slopes = np.unique([-limits.MAX_SKEW, *np.clip(_edges(low, high), -limits.MAX_SKEW, limits.MAX_SKEW), slope,
                        limits.MAX_SKEW])  # fmt: skip
    slopes = _with_zeros(slopes, low, high, middle, tolerance)
    lows, highs = [], []
    for possible in slopes.tolist():
        under = (low[:, 1] - possible * (low[:, 0] - middle)).max() - tolerance
        over = (high[:, 1] - possible * (high[:, 0] - middle)).min() + tolerance
        if under <= over + 1e-3:
            lows.append(under + possible * (knots - middle))
            highs.append(over + possible * (knots - middle))
    if lows:
        lower, upper = np.min(lows, 0), np.max(highs, 0)
    else:  # no line fits: the error is at least the overlap of both bounds
        overlap = abs(gap) + tolerance
        line = value + slope * (knots - middle)
        lower, upper = line - overlap, line + overlap
    return Section(0, float(x[0]), middle, slope, value, knots, lower, upper, max(gap, 0.0))


def _slope_error(x: Array, y: Array, up: Array, slope: float) -> float:
    """Return the standard error of a rate, from the movement of the middle of both floors between blocks of the
    section.
    """
    edges = np.linspace(x[0], x[-1], RATE_BLOCKS + 1)
    flat = y - slope * (x - x[0])
    block = np.clip(np.searchsorted(edges, x, "right") - 1, 0, RATE_BLOCKS - 1)
    middles, instants = [], []
    for number in range(RATE_BLOCKS):
        in_block = block == number
        sent, back = flat[in_block & up], flat[in_block & ~up]
        if min(len(sent), len(back)) >= limits.MIN_BLOCK_PACKETS:
            middles.append((sent.max() + back.min()) / 2)
            instants.append((edges[number] + edges[number + 1]) / 2)
    if len(middles) < RATE_BLOCKS // 2:
        return 0.0
    when = np.array(instants) - np.mean(instants)
    return float(np.std(middles) / np.sqrt((when**2).sum()))


def _with_zeros(slopes: Array, low: Array, high: Array, middle: float, tolerance: float) -> Array:
    """These slopes, and the least and the greatest slope at which a line still fits between both hulls."""
    margins = _margins(low, high, middle, slopes) + 2 * tolerance
    signs = np.flatnonzero((margins[1:] < 0) != (margins[:-1] < 0))
    zeros = [
        slopes[k] + (slopes[k + 1] - slopes[k]) * margins[k] / (margins[k] - margins[k + 1]) for k in signs.tolist()
    ]
    return np.unique([*slopes, *zeros])
