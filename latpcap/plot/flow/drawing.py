"""The lines, texts and colours of a flow graph.

Reads rows and marks with the places that layout.py gave them (in em, y downwards). `Pen` knows what is drawn;
`Ink` collects its strokes into one matplotlib artist: on pixels letters are filled outlines, each taken from the font
once, because matplotlib lays out and rasters every text anew, which is most of the time a page takes. SVG and PDF get
texts as matplotlib draws them, so a PDF can be searched.
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
COLOURS = (WHITE, BLACK, GREY, RED, MESSAGE_COLOUR, *PASTELS, *(cause.colour for cause in CAUSES.values()))
"""All colours there are."""
BAR, BAR_ROOM = 2.6, 7.0  # em: the most height of the scale's bar, and the room for it and its words


def colour_of(cause: str | None) -> str:
    """The colour of a cause; grey for none."""
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
        """One line with its baseline at y; `behind` is a background colour that hides lifelines under the
        letters.
        """
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
        """A filled rectangle; `edge` is the colour of a thin border."""
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
        """A straight line, `width` em thick."""
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
        """A horizontal line from x0 to x1 with a filled triangular head."""
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
    """Draws heads, backgrounds, lifelines, rows and marks."""
    for number, line in enumerate(page.title):
        pen.text(MARGIN, MARGIN + LINE * 1.1 * number + 1.1, line, size=1.1, bold=True)
    for x, y, line in page.nodes:
        pen.text(x, y, line, ha="center")
    pen.text(page.time_x, page.head_y, words.say("flow_time"))
    if page.comments:
        pen.text(page.comment_x, page.head_y, words.say("flow_comment"))

    pastels = stream_colours(rows)
    y = page.body[0]
    for row, arrow_y in zip(rows, page.row_y, strict=True):  # a wait's line has the colour of the stream that waits
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
    if row.source == row.target:  # an endpoint that talks to itself
        step = 0.5 * (page.x[1] - page.x[0] if len(page.x) > 1 else 15.0)
        x0 = x1 - step if 0 < row.source == len(page.x) - 1 else x1 + step
    left, right = (sport, dport) if x0 < x1 else (dport, sport)
    pen.text(page.time_x, y + 0.3, row.time)
    if row.since:
        pen.text(page.since_x, y + 0.3, row.since, size=TINY, colour=GREY)
    if page.comments:
        pen.text(page.comment_x, y + 0.3, row.comment, size=SMALL)
    # lifelines of others, and their bands, run under the texts
    behind = background if len(page.x) > 2 else None
    tag, label = tag_width(row), width_of(row.label)
    middle = layout.middle(page, x0, x1, label + tag)
    pen.text(middle - tag / 2, y - 0.45, row.label, ha="center", behind=behind)
    at = middle + (label - tag) / 2 + 0.8
    colour = BLACK if row.cause is None else colour_of(row.cause)
    for text, tint, bold in ((row.message, MESSAGE_COLOUR, False), (row.fact, RED, True), (row.tag, colour, True)):
        if text:
            pen.text(at, y - 0.45, text, size=SMALL, colour=tint, bold=bold, behind=behind)
            at += width_of(text, SMALL, bold=bold) + 0.8
    width = 0.08 if row.cause is None else 0.17
    pen.arrow(x0, x1, y, colour, width, f"frame-{row.frame}")
    if row.packets > 1:  # a second head: more than one went
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
        x, side = layout.beside(page, band)
        base = y + LINE * (slot.lines - 1) * number
        pen.text(x, base, band.words, ha="left" if side > 0 else "right", behind=background)
    if page.comments:
        pen.text(page.comment_x, slot.y + 0.36, frames_text(wait, rows), size=SMALL, colour=GREY)


def _draw_brace(pen: Pen, brace: Brace, page: Layout, background: str) -> None:
    """A bracket with its words above its first row; an end that is on another page has no hook. The words hide a
    lifeline under them, but not a band: it would seem to end there.
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
    """Two slanted strokes over everything that runs down a gap which is drawn shorter than it was."""
    y = gap.top + (gap.bottom - gap.top) * 0.8
    for x in page.x:
        for shift in (-0.25, 0.25):
            ends = (y + shift + 0.3, y + shift - 0.3)
            pen.line((x - 0.7, x + 0.7), ends, colour=WHITE, width=0.3, zorder=6)
            pen.line((x - 0.7, x + 0.7), ends, colour=BLACK, width=0.1, zorder=7, gid="break")
    pen.text(page.time_x, y + 0.3, words.say("flow_cut", time=f"{gap.ns / 1e6:,.1f} ms"), size=SMALL, colour=GREY)


def stream_colours(rows: Sequence[FlowRow]) -> dict[int, str]:
    """Each stream's background, the same on every page."""
    streams = dict.fromkeys(row.stream for row in rows)
    return {stream: PASTELS[stream % len(PASTELS)] if stream >= 0 else WHITE for stream in streams}


@dataclass(frozen=True, slots=True)
class FootLine:
    """A piece of a line under the graph, `x` em from the left: an optional coloured square, a bold name, and
    words.
    """

    words: str
    name: str = ""
    colour: str | None = None
    tint: str = BLACK
    size: float = SMALL
    x: float = 0.0

    @property
    def width(self) -> float:
        """How wide it is, in em."""
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
    """What stands under the graph: what is not shown, what is shown, and what the colours mean."""
    room = width - 2 * MARGIN - (BAR_ROOM if em_per_ns else 0)
    if em_per_ns:
        least = ROW / em_per_ns / 1e6
        status += words.say("flow_to_scale", time=f"{f'{least:.2g}' if least < 99.5 else ms(least)} ms")
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
    """The streams' backgrounds, as many on a line as fit."""
    lines: list[FootLine] = []
    x = 0.0
    for stream, colour in pastels.items():
        entry = FootLine(words=f"tcp.stream {stream}" if stream >= 0 else words.say("flow_not_tcp"), colour=colour)
        x = x if x + entry.width <= room else 0.0
        lines.append(replace(entry, x=x))
        x += entry.width + 1.5
    return lines


def footer_height(lines: Sequence[FootLine]) -> float:
    """How high is the footer, in em?"""
    return 0.5 + max(BAR, sum(line.size * 1.55 for line in lines if line.x == 0)) + MARGIN


def draw_footer(
    pen: Pen, top: float, lines: Sequence[FootLine], width: float = 0.0, em_per_ns: float | None = None
) -> None:
    """Draws the lines under the graph, and the bar of the scale at their right."""
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


POINTS = 8 * 72 / WIDTH  # size of the letters on our own figure: it is 8 inches wide
_UNITS = 100  # of a glyph's outline to an em

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
    """A pen that collects `words` and `strokes`; `dry` puts them on the axes as one artist."""

    def __init__(self, ax: Axes, scale: float, shift: Point = (0.0, 0.0)) -> None:
        super().__init__(ax, scale)
        self.words: list[Word] = []
        self.strokes: list[Stroke] = []
        self.shift = shift

    @classmethod
    def on(cls, ax: Axes | None, width: float, height: float) -> Ink:
        """A pen for a picture of so many em, scaled to fit into the axes given, or on a figure of its own."""
        if ax is None:
            scale = POINTS
            ax = paper.new_figure(width * scale / 72, height * scale / 72).add_axes((0, 0, 1, 1))
        else:
            figure = root(ax)
            box = ax.get_position()
            inches = figure.get_size_inches()
            scale = min(box.width * inches[0] * 72 / width, box.height * inches[1] * 72 / height)
        ax.set_axis_off()
        ax.set_aspect("equal", adjustable="box", anchor="N")
        ax.set_xlim(0, width)
        ax.set_ylim(height, 0)
        return cls(ax, scale)

    def moved(self, dx: float, dy: float) -> Ink:
        """A pen that draws the same ink so many em further to the right and below."""
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
        """One line of text, as `Pen.text`."""
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
        """A filled rectangle, as `Pen.box`."""
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
        """A straight line, as `Pen.line`."""
        ends = ((xs[0], ys[0]), (xs[1], ys[1]))
        self._stroke(ends, colour, width, zorder=zorder, dashed=dashed, alpha=alpha, gid=gid)

    def arrow(self, x0: float, x1: float, y: float, colour: str, width: float, gid: str) -> None:
        """A horizontal line with a head, as `Pen.arrow`."""
        back = x1 - 0.75 if x1 > x0 else x1 + 0.75
        half = 0.3 if width < 0.12 else 0.36
        # over the paper that hides lifelines under words
        self.line((x0, back), (y, y), colour=colour, width=width, zorder=5.5, gid=gid)
        self._stroke(((x1, y), (back, y - half), (back, y + half), (x1, y)), None, 0, zorder=5.5, fill=colour)

    def _stroke(self, path: Sequence[Point], colour: str | None, width: float, **more: Any) -> None:
        dx, dy = self.shift
        self.strokes.append(Stroke(tuple((x + dx, y + dy) for x, y in path), colour, width * self.scale, **more))

    def flush(self) -> None:
        """Puts everything drawn so far on the axes; `ax.artists[-1].ink` is this pen then."""
        self.ax.add_artist(_artist(self))


def root(ax: Axes) -> Figure:
    """The figure that axes belong to. ValueError if there is none."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes given belong to no figure")
    return figure


def _artist(ink: Ink) -> Any:
    from matplotlib.artist import Artist

    class Sheet(Artist):
        """All of a flow graph."""

        def __init__(self) -> None:
            super().__init__()
            self.ink = ink
            self.set_zorder(3)
            self.set_in_layout(False)

        def draw(self, renderer: Any) -> None:
            if self.get_visible() and self.axes is not None:
                _draw(ink, renderer, self.axes.transData)

    return Sheet()


def _draw(ink: Ink, renderer: Any, place: Any) -> None:
    from matplotlib.backends.backend_agg import RendererAgg

    pixels = isinstance(renderer, RendererAgg)
    everything: list[Word | Stroke] = [*ink.strokes, *ink.words]
    everything.sort(key=lambda one: one.zorder)
    for one in everything:
        if isinstance(one, Stroke):
            _draw_stroke(renderer, one, place)
        else:
            _draw_word(renderer, one, place, pixels)


def _draw_stroke(renderer: Any, one: Stroke, place: Any) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path

    gc = renderer.new_gc()
    gc.set_alpha(one.alpha)
    gc.set_linewidth(one.width if one.colour else 0)
    gc.set_foreground(to_rgba(one.colour or one.fill or BLACK))
    gc.set_capstyle("butt")
    gc.set_joinstyle("miter")
    if one.dashed:
        gc.set_dashes(0, (4 * one.width, 3 * one.width))
    if one.gid:
        renderer.open_group("flow", gid=one.gid)
    renderer.draw_path(gc, Path(one.path), place, None if one.fill is None else to_rgba(one.fill))
    if one.gid:
        renderer.close_group("flow")
    gc.restore()


def _draw_word(renderer: Any, word: Word, place: Any, pixels: bool) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    x0, y0, x1, y1 = extent(renderer, word, place)
    gc = renderer.new_gc()
    gc.set_linewidth(0)
    if word.behind is not None:
        pad = renderer.points_to_pixels(0.12 * word.points)
        low, high = y0 - pad, y1 + pad
        corners = [(x0 - pad, low), (x1 + pad, low), (x1 + pad, high), (x0 - pad, high), (x0 - pad, low)]
        renderer.draw_path(gc, Path(corners), Affine2D(), to_rgba(word.behind))
    base = place.transform((word.x, word.y))[1]
    gc.set_foreground(to_rgba(word.colour))
    if pixels:
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


def extent(renderer: Any, word: Word, place: Any) -> tuple[float, float, float, float]:
    """Which pixels does a text take, from its first letter's left to its last one's right, and from the deepest to
    the highest letter?
    """
    em = renderer.points_to_pixels(word.points) / _UNITS
    vertices, codes, advance = outline(word.text, word.face)
    x, base = place.transform((word.x, word.y))
    left = x - advance * em * {"left": 0.0, "center": 0.5, "right": 1.0}[word.ha]
    low, high = (0.0, 0.0) if codes is None else (float(vertices[:, 1].min()), float(vertices[:, 1].max()))
    return left, base + low * em, left + advance * em, base + high * em


@lru_cache(maxsize=1024)
def outline(text: str, file: str) -> tuple[Any, Any, float]:
    """The letters of a text in this font as vertices and codes of a path (None without any), and its width; 100 units
    to an em."""
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
