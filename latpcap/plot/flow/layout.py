"""Computes the places of everything in a flow graph.

Reads nodes, rows and marks as plain values; returns a `Layout`; draws nothing. Lengths are in em (1 em = the size of
the letters), x to the right, y downwards, so that a picture keeps its shape at any size. Texts are measured before
anything is placed: columns grow until no text has to be cut or overlaps another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from latpcap import words
from latpcap.plot.flow.packet_rows import FlowRow
from latpcap.plot.flow.wait_marks import FlowBracket, FlowMark
from latpcap.plot.text import WIDTH, width_of, wrap

TYPICAL_GAP, MAX_GAP = 10.0, 24.0
"""Height in em of a gap at the third quartile, and of the highest gap; a higher one is drawn with a break."""
MARGIN, ROW, SLOT, LINE = 0.7, 1.75, 1.9, 1.45
"""Width in em of the page's margin; heights of a row, of a wait's line, and of a line of text."""
UNDER = 0.47
"""Distance in em from an arrow to the lower edge of its row."""
SMALL, PORT, TINY = 0.8, 0.8, 0.7
"""Sizes of letters in em."""
BAND, LANE, INSET, BRACE = 0.55, 0.8, 0.95, 0.75
"""Width in em of a band and of its lane, distance from a lifeline to its text, and width of a bracket's lane."""
MAX_LANES = 4
"""Upper bound on the lanes at one lifeline; further bands share the last lane."""
FEW_HOSTS = 4
"""Upper bound on the hosts for which the columns are as wide as the words of each row."""
MIN_COLUMN = 8.5
"""Minimum width in em of a column among more hosts."""


@dataclass(frozen=True, slots=True)
class Step:
    """The vertical needs of a row: its instant in ns, and the least distance in em to the row above it."""

    at_ns: int
    min_height: float


@dataclass(frozen=True, slots=True)
class Break:
    """A gap that is drawn shorter than its scale: from `top` to `bottom` in em, and its duration in ns."""

    top: float
    bottom: float
    ns: int


def scale_of(sides: Sequence[Sequence[int]], mark_ns: float) -> float:
    """Return the em per ns at which three quarters of the gaps of at least `mark_ns` are at most `TYPICAL_GAP` high.

    Without such a gap the longest gap is `TYPICAL_GAP` high. `sides` hold the instants of each graph's rows in order;
    0.0 if all instants are equal.
    """
    gaps = [after - before for times in sides for before, after in pairwise(times)]
    waits = sorted(gap for gap in gaps if gap >= mark_ns)
    typical = waits[-(-3 * len(waits) // 4) - 1] if waits else max(gaps, default=0)
    return TYPICAL_GAP / typical if typical > 0 else 0.0


def stack(sides: Sequence[Sequence[Step]], em_per_ns: float | None) -> tuple[list[list[float]], list[Break]]:
    """Return the heights of the rows of one graph, or of several side by side, in em from 0 downwards.

    Without a scale each row is its `min_height` below the row above it. With a scale the instants of all sides count
    from the same zero. Rows are then at least `em_per_ns` apart for each ns, equal instants of two sides get equal
    heights, and a gap of more than `MAX_GAP` em becomes a `Break`.
    """
    heights_of: list[list[float]] = [[] for _ in sides]
    if em_per_ns is None:
        for heights, side in zip(heights_of, sides, strict=True):
            y = 0.0
            for step in side:
                y += step.min_height
                heights.append(y)
        return heights_of, []
    breaks: list[Break] = []
    order: list[tuple[int, int, int]] = []
    for number, side in enumerate(sides):
        # a clock that was set back dates a row before the row above it; the rows keep their order
        instants = accumulate((step.at_ns for step in side), max)
        order += [(instant, number, index) for index, instant in enumerate(instants)]
    order.sort()
    lowest_y, instant_above = 0.0, order[0][0] if order else 0
    for instant, number, _ in order:
        heights, side = heights_of[number], sides[number]
        step = side[len(heights)]
        distance_em = em_per_ns * (instant - instant_above)
        step_top = (heights[-1] if heights else 0.0) + step.min_height
        y = max(step_top, lowest_y + min(distance_em, MAX_GAP))
        if distance_em > MAX_GAP and y - lowest_y < distance_em:
            breaks.append(Break(lowest_y, y, instant - instant_above))
        heights.append(y)
        lowest_y, instant_above = max(lowest_y, y), instant
    return heights_of, breaks


def nice(value: float) -> float:
    """Return the largest of ..., 0.2, 0.5, 1, 2, 5, 10, 20, ... that is not above the value."""
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return next((power * step for step in (5, 2) if power * step <= value), power)


@dataclass(slots=True)
class Band:
    """The coloured bar of a wait at a lifeline."""

    node: int
    x: float
    """Of the lifeline."""
    inward: int
    """Direction from the lifeline to the other end: +1 to the right, -1 to the left. Lanes count in this direction."""
    cause: str | None
    words: str
    top: float = 0.0
    bottom: float = 0.0
    lane: int = 0
    words_lane: int = 0
    """The outermost lane in use at the height of the words, which are written beyond it."""


@dataclass(slots=True)
class Slot:
    """The line of a wait between two rows."""

    mark: FlowMark
    lines: int
    """2 if the texts of owner and waiter do not fit side by side, else 1."""
    bands: list[Band]
    """Of the owner and the waiter; empty for a wait of the path or the capture, which is drawn in the middle."""
    y: float = 0.0
    """Middle of the line."""


@dataclass(slots=True)
class Brace:
    """The bracket of an exchange at the left: `x` of its line, `text_y` the baseline of its words."""

    bracket: FlowBracket
    x: float
    text_y: float = 0.0
    top: float = 0.0
    bottom: float = 0.0


@dataclass(slots=True)
class Layout:
    """The places of everything on a page, in em."""

    width: float = WIDTH
    height: float = 0.0
    """Without the footer."""
    x: list[float] = field(default_factory=list)
    """Of each lifeline."""
    time_x: float = MARGIN
    since_x: float = MARGIN
    """Of the small text beside the time: how long after the row above."""
    comment_x: float = 0.0
    comments: bool = True
    """Whether there is a Comment column."""
    title: list[str] = field(default_factory=list)
    """Lines of the title."""
    nodes: list[tuple[float, float, str]] = field(default_factory=list)
    """Centre, baseline and text of each line of the lifelines' titles."""
    lifeline_tops: list[float] = field(default_factory=list)
    head_y: float = 0.0
    """Baseline of the heads "Time" and "Comment"."""
    body: tuple[float, float] = (0.0, 0.0)
    """Top and bottom of the rows."""
    row_y: list[float] = field(default_factory=list)
    """Of each row's arrow."""
    slots: list[Slot] = field(default_factory=list)
    braces: list[Brace] = field(default_factory=list)
    em_per_ns: float | None = None
    """None where the space between rows is not to scale."""
    breaks: list[Break] = field(default_factory=list)


def arrange(
    title: str,
    nodes: Sequence[str],
    rows: Sequence[FlowRow],
    marks: Sequence[FlowMark],
    brackets: Sequence[FlowBracket] = (),
    *,
    scale_ns: float | None = None,
) -> Layout:
    """Place title, heads, rows, marks and brackets.

    With `scale_ns` the space between rows is to scale; gaps of at least this length decide on the scale.
    """
    page = columns(title, nodes, rows, marks, brackets)
    em_per_ns = None if scale_ns is None else scale_of([[row.at_ns for row in rows]], scale_ns)
    (heights,), breaks = stack([steps(page, rows)], em_per_ns)
    place_rows(page, heights, breaks, em_per_ns)
    return page


def columns(
    title: str,
    nodes: Sequence[str],
    rows: Sequence[FlowRow],
    marks: Sequence[FlowMark],
    brackets: Sequence[FlowBracket] = (),
    *,
    min_width: float = WIDTH,
    comments: bool = True,
) -> Layout:
    """Place everything from left to right, and the heads. `comments`: with a Comment column."""
    page = Layout(comments=comments)
    lanes = _bracket_lanes(brackets)
    page.time_x = MARGIN + BRACE * (1 + max(lanes, default=-1))
    page.braces = [Brace(bracket, MARGIN + BRACE * lane + 0.1) for bracket, lane in zip(brackets, lanes, strict=True)]
    gaps = max(1, len(nodes) - 1)

    # 1. the columns left and right of the lifelines
    time_width = max(width_of(text) for text in ["Time", *(row.time for row in rows)])
    page.since_x = page.time_x + time_width + 0.5
    waits_width = max(width_of(row.since, TINY) for row in rows)
    time_width += waits_width + 0.5 if waits_width else 0.0
    ports_width = max(width_of(str(port), PORT) for row in rows for port in (row.sport, row.dport))
    remarks = [row.comment for row in rows] + [frames_text(mark, rows) for mark in marks]
    comment_width = max(width_of("Comment"), *(width_of(text, SMALL) for text in remarks))
    left = page.time_x + time_width + 1.0 + ports_width + 0.5
    right = 0.5 + ports_width + (1.0 + comment_width if comments else 0.0) + MARGIN
    # 2. the distance between two lifelines
    spare = 2 * INSET + LANE * min(MAX_LANES, len({row.stream for row in rows}))  # beside the text of a wait
    column_width = max((min_width - left - right) / gaps, _column_width(len(nodes), rows, marks, spare))
    page.x = [left + column_width * number for number in range(len(nodes))]
    if len(nodes) == 1:
        right += column_width
    braces = (page.time_x + width_of(bracket.text, SMALL) + MARGIN for bracket in brackets)
    page.width = max(min_width, page.x[-1] + right, *braces)
    page.comment_x = page.x[-1] + (column_width if len(nodes) == 1 else 0) + 0.5 + ports_width + 1.0
    # 3. one or two lines for each wait
    for mark in marks:
        room = abs(page.x[mark.client] - page.x[mark.server])
        texts_width = width_of(mark.text) + width_of(mark.waiter_text) + 2 * spare
        page.slots.append(
            Slot(mark=mark, lines=2 if mark.waiter_text and texts_width > room else 1, bands=_bands_of(mark, page.x))
        )
    _place_heads(page, title, nodes)
    return page


def _column_width(hosts: int, rows: Sequence[FlowRow], marks: Sequence[FlowMark], spare: float) -> float:
    """Return the distance of two lifelines that the words of the rows, and of the waits between them, need."""
    gaps, has_many_hosts = max(1, hosts - 1), hosts > FEW_HOSTS
    column = MIN_COLUMN if has_many_hosts else 15.0
    for row in rows:
        span = max(1, abs(row.source - row.target)) if row.source != row.target else 0.5
        # among many hosts the words of a row may cover the lifelines next to its arrow
        column = max(column, (width_of(row.label) + tag_width(row) + 3.0) / (gaps if has_many_hosts else span))
    for mark in marks:
        span = max(1, abs(mark.client - mark.server))
        text_width = max(width_of(mark.text), width_of(mark.waiter_text)) + spare
        column = max(column, 2 * text_width / gaps if has_many_hosts else text_width / span)
    return column


def words_centre(page: Layout, x0: float, x1: float, width: float) -> float:
    """Return the centre of a row's words: over its arrow, but among many hosts inside the outermost lifelines."""
    half = width / 2 + 0.5
    centre = (x0 + x1) / 2
    return centre if len(page.x) <= FEW_HOSTS else max(page.x[0] + half, min(centre, page.x[-1] - half))


def band_words(page: Layout, band: Band) -> tuple[float, int]:
    """Return the x at which a band's words begin, and their direction: +1 to the right, -1 to the left.

    They run inwards; among many hosts only where they end before the outermost lifeline.
    """
    room = page.x[-1] - band.x if band.inward > 0 else band.x - page.x[0]
    side = band.inward if len(page.x) <= FEW_HOSTS or width_of(band.words) + INSET <= room else -band.inward
    return band.x + side * (INSET + (LANE * band.words_lane if side == band.inward else 0.0)), side


def lower_heads(page: Layout, by: float) -> None:
    """Move the heads down by `by` em, to the height of another graph's heads."""
    page.nodes = [(x, y + by, line) for x, y, line in page.nodes]
    page.lifeline_tops = [top + by for top in page.lifeline_tops]
    page.head_y += by
    page.body = (page.body[0] + by, page.body[1])


def steps(page: Layout, rows: Sequence[FlowRow]) -> list[Step]:
    """Return the height that each row needs, including the waits and the brackets' words above it."""
    heights = [ROW] * len(rows)
    for slot in page.slots:
        heights[slot.mark.lower] += _slot_height(slot)
    for brace in page.braces:
        heights[brace.bracket.upper] += LINE
    return [Step(row.at_ns, height) for row, height in zip(rows, heights, strict=True)]


def place_rows(page: Layout, heights: Sequence[float], breaks: Sequence[Break], em_per_ns: float | None) -> None:
    """Place everything from the top downwards, once the heights of the rows are known."""
    top = page.body[0]
    page.em_per_ns = em_per_ns
    page.row_y = [top + y - UNDER for y in heights]
    page.breaks = [replace(b, top=b.top + top - UNDER, bottom=b.bottom + top - UNDER) for b in breaks]
    for number, brace in enumerate(page.braces):
        below = sum(1 for later in page.braces[number:] if later.bracket.upper == brace.bracket.upper)
        brace.text_y = page.row_y[brace.bracket.upper] + UNDER - ROW - LINE * (below - 1) - 0.35
        brace.top = top if brace.bracket.begun else brace.text_y + 0.25
        brace.bottom = page.row_y[brace.bracket.lower] + (UNDER if brace.bracket.continued else UNDER - 0.06)
    waiting = list(page.slots)
    while waiting:
        lower = waiting[0].mark.lower
        gap_slots = [slot for slot in waiting if slot.mark.lower == lower]
        waiting = waiting[len(gap_slots) :]
        begin = page.row_y[lower - 1] + UNDER if lower else top
        braces = sum(1 for brace in page.braces if brace.bracket.upper == lower)
        room = page.row_y[lower] + UNDER - ROW - LINE * braces - begin
        y = begin + (room - sum(_slot_height(slot) for slot in gap_slots)) / 2
        for slot in gap_slots:
            slot.y = y + _slot_height(slot) / 2
            y += _slot_height(slot)
    page.body = (top, page.row_y[-1] + UNDER)
    page.height = page.body[1]
    _stretch_bands(page)


def _slot_height(slot: Slot) -> float:
    return SLOT + LINE * (slot.lines - 1)


def tag_width(row: FlowRow) -> float:
    """Width of the message, fact and tag after a row's label, with the space before each."""
    bold = sum(width_of(word, SMALL, bold=True) + 0.8 for word in (row.fact, row.tag) if word)
    return bold + (width_of(row.message, SMALL) + 0.8 if row.message else 0.0)


def _bracket_lanes(brackets: Sequence[FlowBracket]) -> list[int]:
    """Return the lane of each bracket: overlapping brackets get different lanes, as far as there are lanes."""
    lanes: list[int] = []
    for bracket in brackets:
        used = {
            lane
            for other, lane in zip(brackets, lanes, strict=False)
            if other.upper <= bracket.lower and bracket.upper <= other.lower
        }
        lanes.append(_free_lane(used))
    return lanes


def _free_lane(used: set[int]) -> int:
    """Return the first lane that is not used; the last one if all are."""
    return next((lane for lane in range(MAX_LANES) if lane not in used), MAX_LANES - 1)


def _bands_of(mark: FlowMark, x: Sequence[float]) -> list[Band]:
    """Return the bands of the owner and of the waiting side; none if neither client nor server owns the wait."""
    ends = {"client": mark.client, "server": mark.server}
    sides = [(mark.owner, mark.cause, mark.text)] + (
        [(mark.waiter, mark.parent, mark.waiter_text)] if mark.waiter else []
    )
    bands = []
    for side, cause, text in sides:
        if side not in ends:
            return []
        node, other = ends[side], ends["server" if side == "client" else "client"]
        to_the_right = side == "client" if other == node else other > node
        bands.append(Band(node=node, x=x[node], inward=1 if to_the_right else -1, cause=cause, words=text))
    return bands


def _stretch_bands(page: Layout) -> None:
    """Set top, bottom and lanes of each band: it runs from arrow to arrow, or shares that length with other waits
    between the same two packets. Bands that overlap at a lifeline get different lanes; texts are beyond them.
    """
    by_gap: dict[tuple[int, int], list[Slot]] = {}
    for slot in page.slots:
        by_gap.setdefault((slot.mark.upper, slot.mark.lower), []).append(slot)
    drawn: list[Band] = []
    for (upper, lower), slots in by_gap.items():
        top = page.row_y[upper] + 0.15 if upper >= 0 else page.body[0]
        for slot, after in zip(slots, [*slots[1:], None], strict=True):
            bottom = page.row_y[lower] - 0.15 if after is None else (slot.y + after.y) / 2
            for band in slot.bands:
                band.top, band.bottom = top, bottom
                band.lane = _free_lane(
                    {b.lane for b in drawn if _same_side(b, band) and b.top < bottom and top < b.bottom}
                )
                drawn.append(band)
            top = bottom + 0.12
    for slot in page.slots:
        for band in slot.bands:
            band.words_lane = max(
                b.lane for b in drawn if _same_side(b, band) and b.top < slot.y + 1.5 and slot.y - 1.5 < b.bottom
            )


def _same_side(band: Band, other: Band) -> bool:
    """Return whether both bands are on the same side of the same lifeline."""
    return (band.node, band.inward) == (other.node, other.inward)


def _place_heads(page: Layout, title: str, nodes: Sequence[str]) -> None:
    """Place the title, the node titles on two staggered rows (even ones higher, as in Wireshark), and the heads "Time"
    and "Comment" under them.
    """
    page.title = wrap(title, page.width - 2 * MARGIN, 1.1, bold=True) if title.strip() else []
    top = MARGIN + LINE * 1.1 * len(page.title) + (0.5 if page.title else 0)
    placed: list[list[tuple[float, list[str]]]] = [[], []]
    for number, node in enumerate(nodes):
        x = page.x[number]
        lo = max(MARGIN, x - (x - page.x[number - 2]) / 2 + 0.5 if number >= 2 else MARGIN)
        hi = x + (page.x[number + 2] - x) / 2 - 0.5 if number + 2 < len(nodes) else page.width - MARGIN
        # a wide title moves off the centre of its lifeline before it is broken into lines
        lines = [node] if width_of(node) <= hi - lo else _split_address(node, hi - lo)
        half = max(width_of(line) for line in lines) / 2
        placed[number % 2].append((max(lo + half, min(x, hi - half)), lines))
    y = top
    tops = [0.0, 0.0]
    for row, titles in enumerate(placed):
        depth = max((len(lines) for _, lines in titles), default=0)
        for x, lines in titles:
            for number, line in enumerate(lines):
                page.nodes.append((x, y + LINE * (depth - len(lines) + number) + 1.0, line))
        y += LINE * depth
        tops[row] = y
    page.lifeline_tops = [tops[number % 2] for number in range(len(nodes))]
    page.head_y = y + 1.0 if _heads_need_own_line(page, y - LINE + 1.0) else y - LINE + 1.0
    page.body = (page.head_y + 0.55, 0.0)


def _heads_need_own_line(page: Layout, baseline: float) -> bool:
    """Return whether "Time" or "Comment" would touch a title of the lower row."""
    inner, outer = page.time_x + width_of("Time") + 0.5, page.comment_x - 0.5
    same_line = [(x, width_of(line) / 2) for x, y, line in page.nodes if abs(y - baseline) < LINE]
    return any(x - half < inner or x + half > outer for x, half in same_line)


def _split_address(address: str, width: float) -> list[str]:
    """Return a long address in two lines, or more if `width` is small, broken after a colon or dot if it has one."""
    parts = max(2, -int(-width_of(address) // max(width, 6.0)))
    lines: list[str] = []
    remaining = address
    while len(remaining) > 1 and len(lines) < parts - 1:
        ideal = round(len(remaining) / (parts - len(lines)))
        breaks = [i + 1 for i, letter in enumerate(remaining[:-1]) if letter in ":. "] or [ideal]
        cut = min(breaks, key=lambda position: (abs(position - ideal), position))
        lines.append(remaining[:cut].rstrip())
        remaining = remaining[cut:]
    return [*lines, remaining]


def frames_text(mark: FlowMark, rows: Sequence[FlowRow]) -> str:
    """Return the text in the Comment column of a wait: the frames that bound it."""
    return words.say("flow_frames", first=str(upper_frame(mark, rows)), last=str(rows[mark.lower].frame))


def upper_frame(mark: FlowMark, rows: Sequence[FlowRow]) -> int | str:
    """Return the frame that begins a wait; it may be on an earlier page."""
    return rows[mark.upper].frame if mark.upper >= 0 else mark.from_frame or "\N{HORIZONTAL ELLIPSIS}"
