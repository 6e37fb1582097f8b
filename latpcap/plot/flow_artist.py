"""How are a thousand rows drawn in a second or two?

Gives a pen for flow_draw.py whose strokes all become one matplotlib artist: no object per text and line, and on pixels
letters are filled outlines, each taken from the font once (matplotlib lays out and rasters every text anew, which is
most of the time it takes). SVG and PDF get texts as matplotlib draws them, so a PDF can be searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from latpcap.plot import figure as paper
from latpcap.plot.figure import drawable, font
from latpcap.plot.flow_draw import BLACK, Pen
from latpcap.plot.flow_layout import WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        self.words.append(Word(x + dx, y + dy, drawable(text), size * self.scale, ha, colour, bold, behind))

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

    def dry(self) -> None:
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
        vertices, codes, _ = outline(word.text, word.bold)
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
        renderer.draw_text(gc, x0, y, word.text, font(word.points, bold=word.bold), 0, ismath=False)
    gc.restore()


def extent(renderer: Any, word: Word, place: Any) -> tuple[float, float, float, float]:
    """Which pixels does a text take, from its first letter's left to its last one's right, and from the deepest to
    the highest letter?
    """
    em = renderer.points_to_pixels(word.points) / _UNITS
    vertices, codes, advance = outline(word.text, word.bold)
    x, base = place.transform((word.x, word.y))
    left = x - advance * em * {"left": 0.0, "center": 0.5, "right": 1.0}[word.ha]
    low, high = (0.0, 0.0) if codes is None else (float(vertices[:, 1].min()), float(vertices[:, 1].max()))
    return left, base + low * em, left + advance * em, base + high * em


@lru_cache(maxsize=8192)
def outline(text: str, bold: bool) -> tuple[Any, Any, float]:
    """A text's letters as vertices and codes of a path (None without any), and its width; 100 units to an em."""
    import numpy as np

    pieces, codes, x = [], [], 0.0
    for letter in text:
        vertices, code, advance = _glyph(letter, bold)
        if len(vertices):
            pieces.append(vertices + np.array((x, 0.0)))
            codes.append(code)
        x += advance
    if not pieces:
        return None, None, x
    return np.concatenate(pieces), np.concatenate(codes), x


@lru_cache(maxsize=2048)
def _glyph(letter: str, bold: bool) -> tuple[Any, Any, float]:
    from matplotlib import ft2font

    face = _face(bold)
    flags: Any = getattr(ft2font, "LoadFlags", ft2font)  # an enumeration since matplotlib 3.10
    glyph = face.load_char(ord(letter), getattr(flags, "NO_HINTING", None) or flags.LOAD_NO_HINTING)
    vertices, codes = face.get_path()
    return vertices, codes, glyph.linearHoriAdvance / 65_536


@lru_cache(maxsize=2)
def _face(bold: bool) -> Any:
    from matplotlib.ft2font import FT2Font

    face = FT2Font(str(font(_UNITS, bold=bold).get_file()))
    face.set_size(_UNITS, 72)
    return face
