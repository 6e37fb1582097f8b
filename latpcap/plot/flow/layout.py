"""Where does everything in a flow graph stand?

Reads nodes, rows and marks as plain values; gives places; draws nothing and knows nothing of tables. Lengths
are in em (1 em = the size of the letters), x to the right, y downwards, so that a picture keeps its shape at
any size. Texts are measured before anything is placed: columns grow until no text has to be cut or lies on
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, pairwise

from latpcap import words
from latpcap.plot.figure import drawable, face, font
from latpcap.plot.flow.packet_rows import FlowRow
from latpcap.plot.flow.wait_marks import FlowBracket, FlowMark

ORDINARY, MAX_GAP = 10.0, 24.0  # em: the height of a long, but not unusual gap; one that would be higher is broken


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
    same instant on two sides has the same height; a gap of more than `MAX_GAP` em is broken there.
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
        y = max(own, reached + min(wanted, MAX_GAP))
        if wanted > MAX_GAP and y - reached < wanted:
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


WIDTH = 54.0  # 8 inches; wider only if the texts need it
MARGIN, ROW, SLOT, LINE = 0.7, 1.75, 1.9, 1.45
UNDER = 0.47  # from an arrow to the end of its row
SMALL, PORT, TINY = 0.8, 0.8, 0.7  # sizes of letters
BAND, LANE, LANES, INSET = 0.55, 0.8, 4, 0.95  # a band's width, a lane's, the most lanes, from lifeline to text
BRACE = 0.75  # a bracket's lane
FEW_HOSTS, NARROW = 4, 8.5  # so many hosts have columns as wide as their words; of more they are at least so wide


def width_of(text: str, size: float = 1.0, bold: bool = False) -> float:
    """How wide is a line of text of this size, in em? With 4 % to spare for the rounding of letters to
    pixels.
    """
    return _width(drawable(text), face(bold=bold)) * size * 1.04


@lru_cache(maxsize=4096)
def _width(text: str, file: str) -> float:
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, font(100, file=file), False)
    return float(width) / 100


def wrap(text: str, width: float, size: float = 1.0, bold: bool = False) -> list[str]:
    """The text in lines of at most `width` em, broken at blanks, or inside a word that is longer than a
    line.
    """
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if width_of(joined, size, bold) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        while len(word) > 1 and width_of(word, size, bold) > width:
            keep = max(1, int(len(word) * width / width_of(word, size, bold)) - 1)
            lines[-1], word = word[:keep], word[keep:]
            lines.append("")
        lines[-1] = word
    return lines


@dataclass(slots=True)
class Band:
    """The coloured bar of a wait at a lifeline: x of the lifeline, `inward` +1 if texts stand to its right,
    else -1; lanes count inwards.
    """

    node: int
    x: float
    inward: int
    cause: str | None
    words: str
    top: float = 0.0
    bottom: float = 0.0
    lane: int = 0
    words_lane: int = 0


@dataclass(slots=True)
class Slot:
    """One wait's own line between two rows: `y` is its middle; `lines` is 2 if owner's and waiter's text do
    not fit side by side.

    `bands` are the owner's and the waiter's; there are none if the path or the capture owns the wait: that
    stands in the middle.
    """

    mark: FlowMark
    lines: int
    bands: list[Band]
    y: float = 0.0


@dataclass(slots=True)
class Brace:
    """The bracket of an exchange in its lane at the left: `x` of its line, `text_y` the baseline of its words."""

    bracket: FlowBracket
    x: float
    text_y: float = 0.0
    top: float = 0.0
    bottom: float = 0.0


@dataclass(slots=True)
class Layout:
    """Where is what, in em? `em_per_ns` is None where the space between rows is not time."""

    width: float = WIDTH
    height: float = 0.0
    x: list[float] = field(default_factory=list)  # lifelines
    time_x: float = MARGIN
    since_x: float = MARGIN
    comment_x: float = 0.0
    comments: bool = True
    title: list[str] = field(default_factory=list)
    nodes: list[tuple[float, float, str]] = field(default_factory=list)  # a title's centre, baseline, line
    lifeline_tops: list[float] = field(default_factory=list)
    head_y: float = 0.0
    body: tuple[float, float] = (0.0, 0.0)
    row_y: list[float] = field(default_factory=list)  # the arrows
    slots: list[Slot] = field(default_factory=list)
    braces: list[Brace] = field(default_factory=list)
    em_per_ns: float | None = None
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
    """Places title, heads, rows, marks and brackets; `height` is then what they need, without the footer.

    `scale_ns`: the space between rows is time; gaps of at least so many ns decide on the scale.
    """
    page = columns(title, nodes, rows, marks, brackets)
    em_per_ns = None if scale_ns is None else scale_of([[row.at_ns for row in rows]], scale_ns)
    (places,), breaks = stack([steps(page, rows)], em_per_ns)
    put(page, places, breaks, em_per_ns)
    return page


def columns(
    title: str,
    nodes: Sequence[str],
    rows: Sequence[FlowRow],
    marks: Sequence[FlowMark],
    brackets: Sequence[FlowBracket] = (),
    *,
    least: float = WIDTH,
    comments: bool = True,
) -> Layout:
    """Places everything from left to right, and the heads; at least `least` em wide, with or without the Comment
    column.
    """
    page = Layout(comments=comments)
    lanes = _lanes(brackets)
    page.time_x = MARGIN + BRACE * (1 + max(lanes, default=-1))
    page.braces = [Brace(bracket, MARGIN + BRACE * lane + 0.1) for bracket, lane in zip(brackets, lanes, strict=True)]
    gaps = max(1, len(nodes) - 1)

    time = max(width_of(text) for text in ["Time", *(row.time for row in rows)])
    page.since_x = page.time_x + time + 0.5
    waits = max(width_of(row.since, TINY) for row in rows)
    time += waits + 0.5 if waits else 0.0
    ports = max(width_of(str(port), PORT) for row in rows for port in (row.sport, row.dport))
    remarks = [row.comment for row in rows] + [frames_text(mark, rows) for mark in marks]
    comment = max(width_of("Comment"), *(width_of(text, SMALL) for text in remarks))
    left = page.time_x + time + 1.0 + ports + 0.5
    right = 0.5 + ports + (1.0 + comment if comments else 0.0) + MARGIN
    many = len(nodes) > FEW_HOSTS
    column = max(NARROW if many else 15.0, (least - left - right) / gaps)
    for row in rows:
        span = max(1, abs(row.source - row.target)) if row.source != row.target else 0.5
        # among many hosts a row's words may stand over the lifelines beside its arrow
        column = max(column, (width_of(row.label) + tag_width(row) + 3.0) / (gaps if many else span))
    spare = 2 * INSET + LANE * min(LANES, len({row.stream for row in rows}))  # beside the text of a wait
    for mark in marks:
        span = max(1, abs(mark.client - mark.server))
        wide = max(width_of(mark.text), width_of(mark.waiter_text)) + spare
        column = max(column, 2 * wide / gaps if many else wide / span)
    page.x = [left + column * number for number in range(len(nodes))]
    if len(nodes) == 1:
        right += column
    braces = (page.time_x + width_of(bracket.text, SMALL) + MARGIN for bracket in brackets)
    page.width = max(least, page.x[-1] + right, *braces)
    page.comment_x = page.x[-1] + (column if len(nodes) == 1 else 0) + 0.5 + ports + 1.0
    for mark in marks:
        room = abs(page.x[mark.client] - page.x[mark.server])
        both = width_of(mark.text) + width_of(mark.waiter_text) + 2 * spare
        page.slots.append(
            Slot(mark=mark, lines=2 if mark.waiter_text and both > room else 1, bands=_bands_of(mark, page.x))
        )
    _heads(page, title, nodes)
    return page


def middle(page: Layout, x0: float, x1: float, width: float) -> float:
    """Where is the middle of a row's words? Over its arrow, but never beyond the outermost lifelines."""
    half = width / 2 + 0.5
    at = (x0 + x1) / 2
    return at if len(page.x) <= FEW_HOSTS else max(page.x[0] + half, min(at, page.x[-1] - half))


def beside(page: Layout, band: Band) -> tuple[float, int]:
    """Where do a band's words begin, and do they go on to its right (+1) or left (-1)? Inwards, where there is room
    before the outermost lifeline.
    """
    room = page.x[-1] - band.x if band.inward > 0 else band.x - page.x[0]
    side = band.inward if len(page.x) <= FEW_HOSTS or width_of(band.words) + INSET <= room else -band.inward
    return band.x + side * (INSET + (LANE * band.words_lane if side == band.inward else 0.0)), side


def lower(page: Layout, by: float) -> None:
    """Moves the heads down by so many em, so that another graph's heads are as high."""
    page.nodes = [(x, y + by, line) for x, y, line in page.nodes]
    page.lifeline_tops = [top + by for top in page.lifeline_tops]
    page.head_y += by
    page.body = (page.body[0] + by, page.body[1])


def steps(page: Layout, rows: Sequence[FlowRow]) -> list[Step]:
    """How much room does each row need, with the waits and the brackets' words above it?"""
    above = [ROW] * len(rows)
    for slot in page.slots:
        above[slot.mark.lower] += _slot_height(slot)
    for brace in page.braces:
        above[brace.bracket.upper] += LINE
    return [Step(row.at_ns, least) for row, least in zip(rows, above, strict=True)]


def put(page: Layout, places: Sequence[float], breaks: Sequence[Break], em_per_ns: float | None) -> None:
    """Places everything from the top downwards, once the rows' places are known."""
    top = page.body[0]
    page.em_per_ns = em_per_ns
    page.row_y = [top + place - UNDER for place in places]
    page.breaks = [replace(b, top=b.top + top - UNDER, bottom=b.bottom + top - UNDER) for b in breaks]
    for number, brace in enumerate(page.braces):
        below = sum(1 for later in page.braces[number:] if later.bracket.upper == brace.bracket.upper)
        brace.text_y = page.row_y[brace.bracket.upper] + UNDER - ROW - LINE * (below - 1) - 0.35
        brace.top = top if brace.bracket.begun else brace.text_y + 0.25
        brace.bottom = page.row_y[brace.bracket.lower] + (UNDER if brace.bracket.continued else UNDER - 0.06)
    waiting = list(page.slots)
    while waiting:
        lower = waiting[0].mark.lower
        here = [slot for slot in waiting if slot.mark.lower == lower]
        waiting = waiting[len(here) :]
        begin = page.row_y[lower - 1] + UNDER if lower else top
        braces = sum(1 for brace in page.braces if brace.bracket.upper == lower)
        room = page.row_y[lower] + UNDER - ROW - LINE * braces - begin
        y = begin + (room - sum(_slot_height(slot) for slot in here)) / 2
        for slot in here:
            slot.y = y + _slot_height(slot) / 2
            y += _slot_height(slot)
    page.body = (top, page.row_y[-1] + UNDER)
    page.height = page.body[1]
    _stretch(page)


def _slot_height(slot: Slot) -> float:
    return SLOT + LINE * (slot.lines - 1)


def tag_width(row: FlowRow) -> float:
    """How wide is what stands beside a row's label, with the space before each?"""
    bold = sum(width_of(word, SMALL, bold=True) + 0.8 for word in (row.fact, row.tag) if word)
    return message_width(row) + bold


def message_width(row: FlowRow) -> float:
    """Of that, the request or status."""
    return width_of(row.message, SMALL) + 0.8 if row.message else 0.0


def _lanes(brackets: Sequence[FlowBracket]) -> list[int]:
    """Brackets over the same rows stand in lanes of their own; at most 4, then they share the last."""
    lanes: list[int] = []
    for bracket in brackets:
        beside = {
            lane
            for other, lane in zip(brackets, lanes, strict=False)
            if other.upper <= bracket.lower and bracket.upper <= other.lower
        }
        lanes.append(min(lane for lane in range(LANES) if lane not in beside or lane == LANES - 1))
    return lanes


def _bands_of(mark: FlowMark, x: Sequence[float]) -> list[Band]:
    """The owner's band, and the one of the side that waits; none if neither client nor server owns the
    wait.
    """
    at = {"client": mark.client, "server": mark.server}
    sides = [(mark.owner, mark.cause, mark.text)] + (
        [(mark.waiter, mark.parent, mark.waiter_text)] if mark.waiter else []
    )
    bands = []
    for who, cause, text in sides:
        if who not in at:
            return []
        other = at["server" if who == "client" else "client"]
        client_first = who == "client" if other == at[who] else other > at[who]
        bands.append(Band(node=at[who], x=x[at[who]], inward=1 if client_first else -1, cause=cause, words=text))
    return bands


def _stretch(page: Layout) -> None:
    """From where to where does each band run? From arrow to arrow; waits between the same two packets share
    that length.

    Bands that run at the same height of one lifeline stand beside each other, in lanes (at most 4: then they
    share the last); their texts stand beyond the outermost of them.
    """
    same: dict[tuple[int, int], list[Slot]] = {}
    for slot in page.slots:
        same.setdefault((slot.mark.upper, slot.mark.lower), []).append(slot)
    drawn: list[Band] = []
    for (upper, lower), slots in same.items():
        top = page.row_y[upper] + 0.15 if upper >= 0 else page.body[0]
        for slot, after in zip(slots, [*slots[1:], None], strict=True):
            bottom = page.row_y[lower] - 0.15 if after is None else (slot.y + after.y) / 2
            for band in slot.bands:
                band.top, band.bottom = top, bottom
                beside = {
                    b.lane
                    for b in drawn
                    if (b.node, b.inward) == (band.node, band.inward) and b.top < bottom and top < b.bottom
                }
                band.lane = min(lane for lane in range(LANES) if lane not in beside or lane == LANES - 1)
                drawn.append(band)
            top = bottom + 0.12
    for slot in page.slots:
        for band in slot.bands:
            band.words_lane = max(
                b.lane
                for b in drawn
                if (b.node, b.inward) == (band.node, band.inward) and b.top < slot.y + 1.5 and slot.y - 1.5 < b.bottom
            )


def _heads(page: Layout, title: str, nodes: Sequence[str]) -> None:
    """Title, node titles on two staggered rows (even ones higher, as in Wireshark), and the two outer heads
    under them.
    """
    page.title = wrap(title, page.width - 2 * MARGIN, 1.1, bold=True) if title.strip() else []
    top = MARGIN + LINE * 1.1 * len(page.title) + (0.5 if page.title else 0)
    placed: list[list[tuple[float, list[str]]]] = [[], []]
    for number, node in enumerate(nodes):
        x = page.x[number]
        lo = max(MARGIN, x - (x - page.x[number - 2]) / 2 + 0.5 if number >= 2 else MARGIN)
        hi = x + (page.x[number + 2] - x) / 2 - 0.5 if number + 2 < len(nodes) else page.width - MARGIN
        # off its lifeline rather than in two lines; the lifeline still begins under it
        lines = [node] if width_of(node) <= hi - lo else _halve(node, hi - lo)
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
    """Would `Time` or `Comment` touch a title of the lower row?"""
    inner, outer = page.time_x + width_of("Time") + 0.5, page.comment_x - 0.5
    same_line = [(x, width_of(line) / 2) for x, y, line in page.nodes if abs(y - baseline) < LINE]
    return any(x - half < inner or x + half > outer for x, half in same_line)


def _halve(address: str, width: float) -> list[str]:
    """A long address in two lines (or more if `width` is small), broken after a colon or a dot where there is
    one.
    """
    parts = max(2, -int(-width_of(address) // max(width, 6.0)))
    lines: list[str] = []
    rest = address
    while len(rest) > 1 and len(lines) < parts - 1:
        ideal = round(len(rest) / (parts - len(lines)))
        breaks = [i + 1 for i, letter in enumerate(rest[:-1]) if letter in ":. "] or [ideal]
        cut = min(breaks, key=lambda place: (abs(place - ideal), place))
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:]
    return [*lines, rest]


def frames_text(mark: FlowMark, rows: Sequence[FlowRow]) -> str:
    """What stands in the Comment column beside a wait: the frames that bound it."""
    return words.say("flow_frames", first=str(upper_frame(mark, rows)), last=str(rows[mark.lower].frame))


def upper_frame(mark: FlowMark, rows: Sequence[FlowRow]) -> int | str:
    """The frame that a wait begins with; it may be on an earlier page."""
    return rows[mark.upper].frame if mark.upper >= 0 else mark.from_frame or "\N{HORIZONTAL ELLIPSIS}"
