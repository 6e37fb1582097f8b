"""Draws lines, shapes and texts on axes whose unit is 1 em, x to the right, y downwards.

`Pen` draws each stroke as a matplotlib artist. `Ink` collects all strokes into one artist, which is faster: in a PNG
its letters are filled outlines, each taken from the font once, while matplotlib lays out and rasters every text anew.
SVG and PDF get their texts as matplotlib draws them, so that they can be searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from latpcap.lazy import np
from latpcap.plot import figure as paper
from latpcap.plot.figure import drawable, face, font
from latpcap.plot.text import EM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY, BLACK, RED, WHITE = "#6E6E6E", "#000000", "#B00020", "#FFFFFF"
_UNITS = 100
"""Units of a glyph's outline per em."""
_HEAD_LENGTH, _HEAD_HALF = 0.75, 0.3
"""Length of an arrow's head and half its height, in em."""
_THICK, _THICK_HEAD_HALF = 0.12, 0.36
"""Width in em from which an arrow is thick, and half the height of its head."""

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


class Pen:
    """Draws texts and lines on axes whose unit is 1 em; `scale` is points per em. `shift` moves all by these em."""

    def __init__(self, ax: Axes, scale: float, shift: Point = (0.0, 0.0)) -> None:
        self.ax, self.scale, self.shift = ax, scale, shift

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
        dx, dy = self.shift
        points, letters = size * self.scale, drawable(text)
        self._put_word(Word(x + dx, y + dy, letters, points, ha, colour, bold, behind, face(bold=bold)))

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
        ends = ((xs[0], ys[0]), (xs[1], ys[1]))
        self._stroke(ends, colour, width, zorder=zorder, dashed=dashed, alpha=alpha, gid=gid)

    def _stroke(self, path: Sequence[Point], colour: str | None, width: float, **more: Any) -> None:
        dx, dy = self.shift
        self._put_stroke(Stroke(tuple((x + dx, y + dy) for x, y in path), colour, width * self.scale, **more))

    def _put_word(self, word: Word) -> None:
        box = (
            None if word.behind is None else {"facecolor": word.behind, "edgecolor": "none", "pad": 0.12 * word.points}
        )
        self.ax.text(
            word.x,
            word.y,
            word.text,
            ha=word.ha,
            va="baseline",
            color=word.colour,
            fontproperties=font(word.points, bold=word.bold),
            bbox=box,
            parse_math=False,
            clip_on=False,
            zorder=word.zorder,
        )

    def _put_stroke(self, stroke: Stroke) -> None:
        from matplotlib.lines import Line2D

        xs, ys = zip(*stroke.path, strict=True)
        self.ax.add_line(
            Line2D(
                xs,
                ys,
                color=stroke.colour,
                linewidth=stroke.width,
                linestyle=(0, (4, 3)) if stroke.dashed else "-",
                alpha=stroke.alpha,
                zorder=stroke.zorder,
                solid_capstyle="butt",
                gid=stroke.gid or None,
            )
        )


class Ink(Pen):
    """A pen that collects `words` and `strokes`, shapes as well; `flush` puts them on the axes as one artist."""

    def __init__(self, ax: Axes, scale: float, shift: Point = (0.0, 0.0)) -> None:
        super().__init__(ax, scale, shift)
        self.words: list[Word] = []
        self.strokes: list[Stroke] = []

    @classmethod
    def on(cls, ax: Axes | None, width: float, height: float) -> Ink:
        """Return a pen for a picture of `width` x `height` em, scaled to fit into these axes or on a new figure."""
        if ax is None:
            scale = EM
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
        corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
        bordered = edge != "none"
        self._stroke(corners, edge if bordered else None, 0.04 if bordered else 0, zorder=zorder, fill=colour, gid=gid)

    def arrow(self, x0: float, x1: float, y: float, colour: str, width: float, gid: str) -> None:
        """Draw a horizontal line from x0 to x1 with a filled triangular head."""
        back = x1 - _HEAD_LENGTH if x1 > x0 else x1 + _HEAD_LENGTH
        half = _HEAD_HALF if width < _THICK else _THICK_HEAD_HALF
        # above the backgrounds of words, which hide lifelines
        self.line((x0, back), (y, y), colour=colour, width=width, zorder=5.5, gid=gid)
        self._stroke(((x1, y), (back, y - half), (back, y + half), (x1, y)), None, 0, zorder=5.5, fill=colour)

    def _put_word(self, word: Word) -> None:
        self.words.append(word)

    def _put_stroke(self, stroke: Stroke) -> None:
        self.strokes.append(stroke)

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
    """Draw a word, on its background if it has one, as text or as outlines of its letters."""
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
