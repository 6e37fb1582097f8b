"""Draws the lines, texts and colours of a flow graph at the places that layout.py computed (in em, y downwards).

`Pen` draws each stroke as a matplotlib artist. `Ink` collects all strokes into one artist, which is faster: in a PNG
its letters are filled outlines, each taken from the font once, while matplotlib lays out and rasters every text anew.
SVG and PDF get their texts as matplotlib draws them, so that they can be searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from latpcap import words
from latpcap.format import ms
from latpcap.plot import figure as paper
from latpcap.plot.figure import drawable, face, font
from latpcap.plot.flow import layout
from latpcap.plot.flow.layout import (
    BAND,
    INSET,
    LANE,
    LINE,
    MARGIN,
    PORT,
    ROW,
    SMALL,
    TINY,
    UNDER,
    WIDTH,
    Brace,
    Break,
    Layout,
    Slot,
    frames_text,
    nice,
    tag_width,
    upper_frame,
    width_of,
    wrap,
)
from latpcap.plot.flow.packet_rows import FlowRow
from latpcap.plot.flow.wait_marks import FlowMark
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MESSAGE_COLOUR = "#1F4E8C"  # a request, a status
GREY, BLACK, RED, WHITE = "#6E6E6E", "#000000", "#B00020", "#FFFFFF"
PASTELS = (
    "#EAF1FB",
    "#FDF3DF",
    "#E9F6EA",
    "#F7EAF4",
    "#F3F0E6",
    "#E5F5F6",
    "#FBE9E7",
    "#EEEBFA",
    "#F4F7DC",
    "#EFEFEF",
)
"""Backgrounds of streams."""
COLOURS = (WHITE, BLACK, GREY, RED, MESSAGE_COLOUR, *PASTELS, *(cause.colour for cause in CAUSES.values()))
"""All colours of a flow graph; they stay exact in the palette of a PNG."""
BAR, BAR_ROOM = 2.6, 7.0
"""Greatest height of the scale's bar, and width of the bar and its words, in em."""
POINTS = 8 * 72 / WIDTH
"""Points per em on a new figure, which is 8 inches wide unless its texts need more."""
_UNITS = 100
"""Units of a glyph's outline per em."""


def colour_of(cause: str | None) -> str:
    """Return the colour of a cause; grey for none."""
    return GREY if cause is None else CAUSES[cause].colour


class Pen:
    """Draws on axes whose unit is 1 em; `scale` is points per em."""

    def __init__(self, ax: Axes, scale: float) -> None:
        self.ax, self.scale = ax, scale

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 1.0,
        ha: Literal["left", "center", "right"] = "left",
        colour: str = BLACK,
        bold: bool = False,
        behind: str | None = None,
    ) -> None:
        """Draw a line of text with its baseline at y; `behind` is a background colour that hides lifelines under it."""
        box = None if behind is None else {"facecolor": behind, "edgecolor": "none", "pad": 0.12 * self.scale}
        self.ax.text(
            x,
            y,
            drawable(text),
            ha=ha,
            va="baseline",
            color=colour,
            fontproperties=font(size * self.scale, bold=bold),
            bbox=box,
            parse_math=False,
            clip_on=False,
            zorder=5,
        )

    def box(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        colour: str,
        zorder: float = 1,
        gid: str = "",
        edge: str = "none",
    ) -> None:
        """Draw a filled rectangle; `edge` is the colour of a thin border."""
        from matplotlib.patches import Rectangle

        thin = 0 if edge == "none" else 0.04 * self.scale
        self.ax.add_patch(
            Rectangle(
                (x0, y0),
                x1 - x0,
                y1 - y0,
                facecolor=colour,
                edgecolor=edge,
                linewidth=thin,
                zorder=zorder,
                gid=gid or None,
            )
        )

    def line(
        self,
        xs: tuple[float, float],
        ys: tuple[float, float],
        *,
        colour: str = BLACK,
        width: float = 0.08,
        dashed: bool = False,
        alpha: float = 1.0,
        zorder: float = 3,
        gid: str = "",
    ) -> None:
        """Draw a straight line, `width` em thick."""
        from matplotlib.lines import Line2D

        self.ax.add_line(
            Line2D(
                xs,
                ys,
                color=colour,
                linewidth=width * self.scale,
                linestyle=(0, (4, 3)) if dashed else "-",
                alpha=alpha,
                zorder=zorder,
                solid_capstyle="butt",
                gid=gid or None,
            )
        )

    def arrow(self, x0: float, x1: float, y: float, colour: str, width: float, gid: str) -> None:
        """Draw a horizontal line from x0 to x1 with a filled triangular head."""
        from matplotlib.patches import Polygon

        back = x1 - 0.75 if x1 > x0 else x1 + 0.75
        half = 0.3 if width < 0.12 else 0.36
        self.line((x0, back), (y, y), colour=colour, width=width, zorder=4, gid=gid)
        self.ax.add_patch(
            Polygon(
                [(x1, y), (back, y - half), (back, y + half)],
                closed=True,
                facecolor=colour,
                edgecolor="none",
                zorder=4,
            )
        )


def draw_body(pen: Pen, page: Layout, rows: Sequence[FlowRow]) -> None:
    """Draw heads, backgrounds, lifelines, rows and marks."""
    for number, line in enumerate(page.title):
        pen.text(MARGIN, MARGIN + LINE * 1.1 * number + 1.1, line, size=1.1, bold=True)
    for x, y, line in page.nodes:
        pen.text(x, y, line, ha="center")
    pen.text(page.time_x, page.head_y, words.say("flow_time"))
    if page.comments:
        pen.text(page.comment_x, page.head_y, words.say("flow_comment"))

    pastels = stream_colours(rows)
    y = page.body[0]
    for row, arrow_y in zip(rows, page.row_y, strict=True):  # a wait has the background of the row that ends it
        bottom = arrow_y + UNDER
        pen.box(0, y, page.width, bottom, pastels[row.stream])
        y = bottom
    for x, top in zip(page.x, page.lifeline_tops, strict=True):
        pen.line((x, x), (top + 0.1, page.body[1]), colour=BLACK, alpha=0.5, dashed=True, zorder=2)
    for row, y in zip(rows, page.row_y, strict=True):
        _draw_row(pen, page, row, y, pastels[row.stream])
    for slot in page.slots:
        _draw_slot(pen, page, slot, pastels[rows[slot.mark.lower].stream], rows)
    for brace in page.braces:
        _draw_brace(pen, brace, page, pastels[brace.bracket.stream])
    for gap in page.breaks:
        _draw_break(pen, page, gap)


def _draw_row(pen: Pen, page: Layout, row: FlowRow, y: float, background: str) -> None:
    x0, x1 = page.x[row.source], page.x[row.target]
    sport, dport = row.sport, row.dport
    if row.source == row.target:  # an address that sends to itself
        step = 0.5 * (page.x[1] - page.x[0] if len(page.x) > 1 else 15.0)
        x0 = x1 - step if 0 < row.source == len(page.x) - 1 else x1 + step
    left, right = (sport, dport) if x0 < x1 else (dport, sport)
    pen.text(page.time_x, y + 0.3, row.time)
    if row.since:
        pen.text(page.since_x, y + 0.3, row.since, size=TINY, colour=GREY)
    if page.comments:
        pen.text(page.comment_x, y + 0.3, row.comment, size=SMALL)
    # the lifelines of other hosts, and their bands, run under the texts
    behind = background if len(page.x) > 2 else None
    tag, label = tag_width(row), width_of(row.label)
    centre = layout.words_centre(page, x0, x1, label + tag)
    pen.text(centre - tag / 2, y - 0.45, row.label, ha="center", behind=behind)
    text_x = centre + (label - tag) / 2 + 0.8
    colour = BLACK if row.cause is None else colour_of(row.cause)
    for text, tint, bold in ((row.message, MESSAGE_COLOUR, False), (row.fact, RED, True), (row.tag, colour, True)):
        if text:
            pen.text(text_x, y - 0.45, text, size=SMALL, colour=tint, bold=bold, behind=behind)
            text_x += width_of(text, SMALL, bold=bold) + 0.8
    width = 0.08 if row.cause is None else 0.17
    pen.arrow(x0, x1, y, colour, width, f"frame-{row.frame}")
    if row.packets > 1:  # a second arrowhead marks several packets
        pen.arrow(x0, x1 - 0.9 if x1 > x0 else x1 + 0.9, y, colour, width, "")
    if row.sport and row.dport:
        pen.text(min(x0, x1) - 0.5, y + 0.28, str(left), size=PORT, ha="right", behind=behind)
        pen.text(max(x0, x1) + 0.5, y + 0.28, str(right), size=PORT, behind=behind)


def _draw_slot(pen: Pen, page: Layout, slot: Slot, background: str, rows: Sequence[FlowRow]) -> None:
    wait = slot.mark
    gid = f"wait-{upper_frame(wait, rows)}-{rows[wait.lower].frame}"
    y = slot.y - LINE * (slot.lines - 1) / 2 + 0.36
    if not slot.bands:
        left, right = sorted((page.x[wait.client], page.x[wait.server]))
        half = (width_of(wait.text) + BAND + 0.45) / 2
        x = (left + right) / 2 - half if left != right else left + INSET
        pen.text(x + BAND + 0.45, y, wait.text, colour=BLACK if wait.cause else GREY, behind=background)
        pen.box(x, slot.y - 0.75, x + BAND, slot.y + 0.75, colour_of(wait.cause), 3, gid)
    for number, band in enumerate(slot.bands):
        x = band.x + band.inward * LANE * band.lane - BAND / 2
        pen.box(
            x,
            band.top,
            x + BAND,
            band.bottom,
            colour_of(band.cause),
            3,
            gid if number == 0 else f"{gid}-waiter",
        )
        x, side = layout.band_words(page, band)
        base = y + LINE * (slot.lines - 1) * number
        pen.text(x, base, band.words, ha="left" if side > 0 else "right", behind=background)
    if page.comments:
        pen.text(page.comment_x, slot.y + 0.36, frames_text(wait, rows), size=SMALL, colour=GREY)


def _draw_brace(pen: Pen, brace: Brace, page: Layout, background: str) -> None:
    """Draw a bracket with its words above its first row. An end on another page has no hook. The words hide a
    lifeline under them, but not a band, which would seem to end at the words.
    """
    bracket = brace.bracket
    pen.line((brace.x, brace.x), (brace.top, brace.bottom), colour=GREY, width=0.12, gid=f"exchange-{bracket.upper}")
    for y, hook in ((brace.top, not bracket.begun), (brace.bottom, not bracket.continued)):
        if hook:
            pen.line((brace.x - 0.06, brace.x + 0.4), (y, y), colour=GREY, width=0.12)
    text = words.say("flow_continued", text=bracket.text) if bracket.begun else bracket.text
    bands = (band for slot in page.slots for band in slot.bands)
    crossed = any(band.top < brace.text_y < band.bottom + 1 for band in bands)
    tint, behind = (BLACK, None) if crossed else (GREY, background)
    pen.text(page.time_x, brace.text_y, text, size=SMALL, colour=tint, behind=behind)


def _draw_break(pen: Pen, page: Layout, gap: Break) -> None:
    """Draw two slanted strokes over each lifeline in a gap that is not to scale, and its true duration."""
    y = gap.top + (gap.bottom - gap.top) * 0.8
    for x in page.x:
        for shift in (-0.25, 0.25):
            ends = (y + shift + 0.3, y + shift - 0.3)
            pen.line((x - 0.7, x + 0.7), ends, colour=WHITE, width=0.3, zorder=6)
            pen.line((x - 0.7, x + 0.7), ends, colour=BLACK, width=0.1, zorder=7, gid="break")
    pen.text(page.time_x, y + 0.3, words.say("flow_cut", time=f"{gap.ns / 1e6:,.1f} ms"), size=SMALL, colour=GREY)


def stream_colours(rows: Sequence[FlowRow]) -> dict[int, str]:
    """Return the background of each stream, equal on every page."""
    streams = dict.fromkeys(row.stream for row in rows)
    return {stream: PASTELS[stream % len(PASTELS)] if stream >= 0 else WHITE for stream in streams}


@dataclass(frozen=True, slots=True)
class FootLine:
    """A piece of a line of the footer, `x` em from the left: a coloured square, a bold name, and words."""

    words: str
    name: str = ""
    colour: str | None = None
    tint: str = BLACK
    size: float = SMALL
    x: float = 0.0

    @property
    def width(self) -> float:
        """Width in em."""
        name = width_of(self.name, self.size, bold=True) + 0.8 if self.name else 0.0
        return (1.4 if self.colour else 0.0) + name + width_of(self.words, self.size)


def footer(
    note: str,
    status: str,
    rows: Sequence[FlowRow],
    marks: Sequence[FlowMark],
    width: float,
    em_per_ns: float | None = None,
) -> list[FootLine]:
    """Return the lines under the graph: rows that are not shown, counts, and the meaning of the colours."""
    room = width - 2 * MARGIN - (BAR_ROOM if em_per_ns else 0)
    if em_per_ns:
        row_ms = ROW / em_per_ns / 1e6
        status += words.say("flow_to_scale", time=f"{f'{row_ms:.2g}' if row_ms < 99.5 else ms(row_ms)} ms")
    lines = [FootLine(words=line, tint=RED, size=0.95) for line in wrap(note, room, 0.95)] if note else []
    lines += [FootLine(words=line, tint=GREY) for line in wrap(status, room, SMALL)]
    pastels = stream_colours(rows)
    if len(pastels) > 1:
        lines += _stream_lines(pastels, room)
    used = {name for mark in marks for name in (mark.cause, mark.waiter and mark.parent)} | {row.cause for row in rows}
    for cause in CAUSES.values():
        if cause.name in used:
            indent = 1.4 + width_of(cause.name, SMALL, bold=True) + 0.8
            first, *more = wrap(words.say(f"meaning_{cause.name}"), room - indent, SMALL)
            lines.append(FootLine(name=cause.name, words=first, colour=cause.colour))
            lines += [FootLine(words=line) for line in more]
    if any(mark.cause is None for mark in marks):
        lines.append(FootLine(name=words.say("flow_no_cause"), words=words.say("flow_no_cause_mean"), colour=GREY))
    return lines


def _stream_lines(pastels: dict[int, str], room: float) -> list[FootLine]:
    """Return the legend of the streams' backgrounds, as many to a line as fit."""
    lines: list[FootLine] = []
    x = 0.0
    for stream, colour in pastels.items():
        entry = FootLine(words=f"tcp.stream {stream}" if stream >= 0 else words.say("flow_not_tcp"), colour=colour)
        x = x if x + entry.width <= room else 0.0
        lines.append(replace(entry, x=x))
        x += entry.width + 1.5
    return lines


def footer_height(lines: Sequence[FootLine]) -> float:
    """Height of the footer in em."""
    return 0.5 + max(BAR, sum(line.size * 1.55 for line in lines if line.x == 0)) + MARGIN


def draw_footer(
    pen: Pen, top: float, lines: Sequence[FootLine], width: float = 0.0, em_per_ns: float | None = None
) -> None:
    """Draw the lines of the footer, and the bar of the scale at their right."""
    if em_per_ns:
        bar_ms = nice(BAR / em_per_ns / 1e6)
        x, begin, end = width - MARGIN - 0.3, top + 0.7, top + 0.7 + bar_ms * 1e6 * em_per_ns
        pen.line((x, x), (begin, end), width=0.14, gid="scale")
        for y in (begin, end):
            pen.line((x - 0.3, x + 0.3), (y, y), width=0.14)
        pen.text(x - 0.7, (begin + end) / 2 + 0.3, f"{bar_ms:,.10g} ms", size=SMALL, ha="right")
    y = top + 0.5
    for line in lines:
        y += line.size * 1.55 if line.x == 0 else 0
        x, base = MARGIN + line.x, y - 0.35 * line.size
        if line.colour:
            pen.box(x, base - 0.62, x + 0.8, base + 0.1, line.colour, edge=GREY)
            x += 1.4
        if line.name:
            pen.text(x, base, line.name, size=line.size, bold=True)
            x += width_of(line.name, line.size, bold=True) + 0.8
        if line.words:
            pen.text(x, base, line.words, size=line.size, colour=line.tint)


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Word:
    """A line of text: `x`, `y` of its baseline in em, `points` high."""

    x: float
    y: float
    text: str
    points: float
    ha: Literal["left", "center", "right"]
    colour: str
    bold: bool
    behind: str | None
    face: str
    zorder: float = 5


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line, or a filled shape where `fill` is a colour; `width` in points."""

    path: tuple[Point, ...]
    colour: str | None
    width: float
    zorder: float
    fill: str | None = None
    dashed: bool = False
    alpha: float = 1.0
    gid: str = ""


class Ink(Pen):
    """A pen that collects `words` and `strokes`; `flush` puts them on the axes as one artist."""

    def __init__(self, ax: Axes, scale: float, shift: Point = (0.0, 0.0)) -> None:
        super().__init__(ax, scale)
        self.words: list[Word] = []
        self.strokes: list[Stroke] = []
        self.shift = shift

    @classmethod
    def on(cls, ax: Axes | None, width: float, height: float) -> Ink:
        """Return a pen for a picture of `width` x `height` em, scaled to fit into these axes or on a new figure."""
        if ax is None:
            scale = POINTS
            ax = paper.new_figure(width * scale / 72, height * scale / 72).add_axes((0, 0, 1, 1))
        else:
            figure = figure_of(ax)
            box = ax.get_position()
            inches = figure.get_size_inches()
            scale = min(box.width * inches[0] * 72 / width, box.height * inches[1] * 72 / height)
        ax.set_axis_off()
        ax.set_aspect("equal", adjustable="box", anchor="N")
        ax.set_xlim(0, width)
        ax.set_ylim(height, 0)
        return cls(ax, scale)

    def moved(self, dx: float, dy: float) -> Ink:
        """Return a pen for the same picture, whose strokes are moved right and down by these em."""
        other = Ink(self.ax, self.scale, (self.shift[0] + dx, self.shift[1] + dy))
        other.words, other.strokes = self.words, self.strokes
        return other

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 1.0,
        ha: Literal["left", "center", "right"] = "left",
        colour: str = BLACK,
        bold: bool = False,
        behind: str | None = None,
    ) -> None:
        """Add a line of text, as `Pen.text`."""
        dx, dy = self.shift
        points, letters = size * self.scale, drawable(text)
        self.words.append(Word(x + dx, y + dy, letters, points, ha, colour, bold, behind, face(bold=bold)))

    def box(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        colour: str,
        zorder: float = 1,
        gid: str = "",
        edge: str = "none",
    ) -> None:
        """Add a filled rectangle, as `Pen.box`."""
        corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
        bordered = edge != "none"
        self._stroke(corners, edge if bordered else None, 0.04 if bordered else 0, zorder=zorder, fill=colour, gid=gid)

    def line(
        self,
        xs: tuple[float, float],
        ys: tuple[float, float],
        *,
        colour: str = BLACK,
        width: float = 0.08,
        dashed: bool = False,
        alpha: float = 1.0,
        zorder: float = 3,
        gid: str = "",
    ) -> None:
        """Add a straight line, as `Pen.line`."""
        ends = ((xs[0], ys[0]), (xs[1], ys[1]))
        self._stroke(ends, colour, width, zorder=zorder, dashed=dashed, alpha=alpha, gid=gid)

    def arrow(self, x0: float, x1: float, y: float, colour: str, width: float, gid: str) -> None:
        """Add a horizontal line with a head, as `Pen.arrow`."""
        back = x1 - 0.75 if x1 > x0 else x1 + 0.75
        half = 0.3 if width < 0.12 else 0.36
        # above the backgrounds of words, which hide lifelines
        self.line((x0, back), (y, y), colour=colour, width=width, zorder=5.5, gid=gid)
        self._stroke(((x1, y), (back, y - half), (back, y + half), (x1, y)), None, 0, zorder=5.5, fill=colour)

    def _stroke(self, path: Sequence[Point], colour: str | None, width: float, **more: Any) -> None:
        dx, dy = self.shift
        self.strokes.append(Stroke(tuple((x + dx, y + dy) for x, y in path), colour, width * self.scale, **more))

    def flush(self) -> None:
        """Put everything drawn so far on the axes as one artist, whose attribute `ink` is this pen."""
        self.ax.add_artist(_artist(self))


def figure_of(ax: Axes) -> Figure:
    """Return the figure that the axes belong to. ValueError if they belong to none."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes given belong to no figure")
    return figure


def _artist(ink: Ink) -> Any:
    from matplotlib.artist import Artist

    class Sheet(Artist):
        """The artist that draws all of a flow graph."""

        def __init__(self) -> None:
            super().__init__()
            self.ink = ink
            self.set_zorder(3)
            self.set_in_layout(False)

        def draw(self, renderer: Any) -> None:
            if self.get_visible() and self.axes is not None:
                _draw(ink, renderer, self.axes.transData)

    return Sheet()


def _draw(ink: Ink, renderer: Any, transform: Any) -> None:
    from matplotlib.backends.backend_agg import RendererAgg

    as_outlines = isinstance(renderer, RendererAgg)
    everything: list[Word | Stroke] = [*ink.strokes, *ink.words]
    everything.sort(key=lambda item: item.zorder)
    for item in everything:
        if isinstance(item, Stroke):
            _draw_stroke(renderer, item, transform)
        else:
            _draw_word(renderer, item, transform, as_outlines)


def _draw_stroke(renderer: Any, stroke: Stroke, transform: Any) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path

    gc = renderer.new_gc()
    gc.set_alpha(stroke.alpha)
    gc.set_linewidth(stroke.width if stroke.colour else 0)
    gc.set_foreground(to_rgba(stroke.colour or stroke.fill or BLACK))
    gc.set_capstyle("butt")
    gc.set_joinstyle("miter")
    if stroke.dashed:
        gc.set_dashes(0, (4 * stroke.width, 3 * stroke.width))
    if stroke.gid:
        renderer.open_group("flow", gid=stroke.gid)
    renderer.draw_path(gc, Path(stroke.path), transform, None if stroke.fill is None else to_rgba(stroke.fill))
    if stroke.gid:
        renderer.close_group("flow")
    gc.restore()


def _draw_word(renderer: Any, word: Word, transform: Any, as_outlines: bool) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    x0, y0, x1, y1 = extent(renderer, word, transform)
    gc = renderer.new_gc()
    gc.set_linewidth(0)
    if word.behind is not None:
        pad = renderer.points_to_pixels(0.12 * word.points)
        low, high = y0 - pad, y1 + pad
        corners = [(x0 - pad, low), (x1 + pad, low), (x1 + pad, high), (x0 - pad, high), (x0 - pad, low)]
        renderer.draw_path(gc, Path(corners), Affine2D(), to_rgba(word.behind))
    base = transform.transform((word.x, word.y))[1]
    gc.set_foreground(to_rgba(word.colour))
    if as_outlines:
        vertices, codes, _ = outline(word.text, word.face)
        if codes is not None:
            em = renderer.points_to_pixels(word.points) / _UNITS
            path = Path(vertices, codes)
            path.should_simplify = False
            gc.set_snap(False)
            # a baseline between two pixels would blur every letter
            renderer.draw_path(gc, path, Affine2D().scale(em).translate(x0, round(base)), to_rgba(word.colour))
    else:
        height = renderer.get_canvas_width_height()[1]
        y = height - base if renderer.flipy() else base
        drawn = font(word.points, bold=word.bold, file=word.face)
        renderer.draw_text(gc, x0, y, word.text, drawn, 0, ismath=False)
    gc.restore()


def extent(renderer: Any, word: Word, transform: Any) -> tuple[float, float, float, float]:
    """Return the bounding box of a text in pixels: left, bottom, right, top of its letters."""
    em = renderer.points_to_pixels(word.points) / _UNITS
    vertices, codes, advance = outline(word.text, word.face)
    x, base = transform.transform((word.x, word.y))
    left = x - advance * em * {"left": 0.0, "center": 0.5, "right": 1.0}[word.ha]
    low, high = (0.0, 0.0) if codes is None else (float(vertices[:, 1].min()), float(vertices[:, 1].max()))
    return left, base + low * em, left + advance * em, base + high * em


@lru_cache(maxsize=1024)
def outline(text: str, file: str) -> tuple[Any, Any, float]:
    """Return a text as vertices and codes of a path (None for a text of blanks), and its width; 100 units per em."""
    import numpy as np

    pieces, codes, x = [], [], 0.0
    for letter in text:
        vertices, code, advance = _glyph(letter, file)
        if len(vertices):
            pieces.append(vertices + np.array((x, 0.0)))
            codes.append(code)
        x += advance
    if not pieces:
        return None, None, x
    return np.concatenate(pieces), np.concatenate(codes), x


@lru_cache(maxsize=2048)
def _glyph(letter: str, file: str) -> tuple[Any, Any, float]:
    from matplotlib import ft2font

    drawn = _face(file)
    flags: Any = getattr(ft2font, "LoadFlags", ft2font)  # an enumeration since matplotlib 3.10
    glyph = drawn.load_char(ord(letter), getattr(flags, "NO_HINTING", None) or flags.LOAD_NO_HINTING)
    vertices, codes = drawn.get_path()
    return vertices, codes, glyph.linearHoriAdvance / 65_536


@lru_cache(maxsize=4)
def _face(file: str) -> Any:
    from matplotlib.ft2font import FT2Font

    drawn = FT2Font(file)
    drawn.set_size(_UNITS, 72)
    return drawn
