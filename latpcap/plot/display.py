"""`Display`, the base class of all pictures except the flow graph.

It draws a page with a title, the panels, a legend and notes; it saves the picture and shows it in notebooks.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from latpcap import files
from latpcap.plot import figure as paper
from latpcap.plot.figure import DPI
from latpcap.plot.numbers import moment
from latpcap.plot.pen import GREY, RED, Pen, figure_of
from latpcap.plot.text import EM, WIDTH, width_of, wrap
from latpcap.words import language

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EDGE, _SMALL, _GAP, _CLOSE = 0.9, 0.85, 3.6, 1.2
"""Margin, size of small letters, distance of two panels, and of two that share an x axis, in em."""
GRID = "#E3E3E3"
RASTER = 5_000
"""Upper bound on the marks that SVG and PDF draw one by one; more are an image (300 pixels per inch)."""

MARKERS = {
    "dot": "o",
    "cross": "x",
    "square": "s",
    "diamond": "D",
    "pentagon": "p",
    "up": "^",
    "down": "v",
    "plus": "P",
}
"""matplotlib's name of each shape of a mark."""

HATCH = (1.0, 1.0, 1.0, 0.6)
"""Colour of a family's hatch."""


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend."""

    colour: str
    name: str
    """In bold."""
    words: str = ""
    shape: str = "box"
    """One of "box" (with a `hatch`), "line", "dash" and the keys of `MARKERS`."""
    alone: str = ""
    """The name for a legend without room for the words; empty: `name`."""
    hatch: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes; lengths in em."""

    name: str
    height: float
    left: float = 6.5
    """Room for labels at the left."""
    right: float = 1.5
    shares_x: bool = False
    """Whether it has the x axis of the panels above it; then only the lowest panel has numbers below."""
    below: float = _GAP


class Display:
    """A picture of finished numbers: `plot` draws, `save` writes, a notebook shows.

    A subclass defines `panels`, `keys` and `_draw`, and may set `title`, `subtitle` and `note`.
    """

    title: str = ""
    subtitle: str = ""
    note: str = ""
    lang: str | None = None
    """The language of its words; None: the current one."""
    ax_: Axes
    figure_: Figure

    def panels(self) -> Sequence[Panel]:
        """Return the panels from above; on given axes only the first is drawn."""
        raise NotImplementedError

    def keys(self) -> Sequence[Key]:
        """Return the entries of the legend."""
        return ()

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        """Draw the panels that have axes."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on these axes or on a new figure.

        A new figure has all panels, the legend and the notes; given axes get the first panel, with title and legend
        inside. Returns the picture itself, with `ax_` and `figure_`.
        """
        with language(self.lang), paper.house_style():
            if ax is None:
                axes = self._page()
                self.ax_ = axes[self.panels()[0].name]
            else:
                axes = {self.panels()[0].name: ax}
                self.ax_ = ax
            for panel_axes in axes.values():
                plain(panel_axes)
            self._draw(axes)
            if ax is not None:
                self._on_given(ax)
        self.figure_ = figure_of(self.ax_)
        return self

    def save(self, path: str | Path, *, dpi: float = DPI) -> Self:
        """Write PNG, SVG or PDF, by the path's suffix; the same input gives the same bytes.

        The figure is always 8 inches wide: at the default `dpi`, pixels per inch, a PNG is 1,600 pixels wide. Raises
        ValueError for other suffixes, OSError if the file cannot be written.
        """
        files.write(path, self._render(paper.suffix_of(path), dpi))
        return self

    def _render(self, suffix: str, dpi: float) -> bytes:
        return paper.render(copy.copy(self).plot().figure_, suffix, dpi)

    def svg(self) -> str:
        """Return the picture as an SVG document whose words are text, to be put into a page."""
        return self._render(".svg", DPI).decode()

    def _repr_png_(self) -> bytes:
        return self._render(".png", DPI)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"

    def _page(self) -> dict[str, Axes]:
        """Make a new figure with head, legend and notes, and return the empty axes of its panels."""
        room = WIDTH - 2 * _EDGE
        titles = wrap(self.title, room, 1.1, bold=True) if self.title else []
        subtitles = wrap(self.subtitle, room, _SMALL) if self.subtitle else []
        notes = wrap(self.note, room, _SMALL) if self.note else []
        keys = _place_keys(self.keys(), room)
        lines = 1 + max((line for _, _, line in keys), default=-1)
        panels = self.panels()
        top = _EDGE + len(titles) * 1.65 + len(subtitles) * 1.3 + 0.9
        foot = lines * 1.35 + len(notes) * 1.3 + _EDGE
        gaps = [_CLOSE if panel.shares_x else _GAP for panel in panels[1:]] + [panels[-1].below]
        height = top + sum(panel.height for panel in panels) + sum(gaps) + foot
        figure = paper.new_figure(WIDTH * EM / 72, height * EM / 72)
        sheet = figure.add_axes((0, 0, 1, 1), label="page")
        sheet.set_axis_off()
        sheet.set_xlim(0, WIDTH)
        sheet.set_ylim(height, 0)
        pen = Pen(sheet, EM)
        y = _EDGE
        for line in titles:
            y += 1.65
            pen.text(_EDGE, y - 0.45, line, size=1.1, bold=True)
        for line in subtitles:
            y += 1.3
            pen.text(_EDGE, y - 0.35, line, size=_SMALL, colour="#404040")
        axes: dict[str, Axes] = {}
        y = top
        for number, panel in enumerate(panels):
            panel_width = WIDTH - panel.left - panel.right
            box = (panel.left / WIDTH, 1 - (y + panel.height) / height, panel_width / WIDTH, panel.height / height)
            first = next(iter(axes.values()), None) if panel.shares_x else None
            axes[panel.name] = figure.add_axes(box, sharex=first, label=panel.name)
            if number + 1 < len(panels) and panels[number + 1].shares_x:
                axes[panel.name].tick_params(labelbottom=False)
            y += panel.height + gaps[number]
        for key, x, number in keys:
            _draw_key(pen, key, _EDGE + x, y + 1.35 * (number + 1) - 0.4)
        y += lines * 1.35
        for line in notes:
            y += 1.3
            pen.text(_EDGE, y - 0.3, line, size=_SMALL, colour=RED)
        return axes

    def _on_given(self, ax: Axes) -> None:
        """Draw title and legend inside given axes."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        ax.set_title(paper.drawable(self.title), fontproperties=paper.font(EM), loc="left", parse_math=False)
        handles: list[Any] = []
        for key in self.keys():
            dot, name = MARKERS.get(key.shape), paper.drawable(key.alone or key.name)
            style: Any = "none" if dot else {"line": "-", "dash": "--"}.get(key.shape)
            if style is None:
                handles.append(Patch(facecolor=key.colour, edgecolor=HATCH, linewidth=0, hatch=key.hatch, label=name))
            else:
                handles.append(Line2D([], [], color=key.colour, linestyle=style, marker=dot, label=name))
        if handles:
            legend = ax.legend(handles=handles, prop=paper.font(EM * 0.8), framealpha=0.9)
            for text in legend.get_texts():
                text.set_parse_math(False)


def plain(ax: Axes) -> None:
    """Style the axes: a thin grid below the data, small letters, no box."""
    ax.set_axisbelow(True)
    ax.grid(True, color=GRID, linewidth=0.6)
    ax.tick_params(labelsize=EM * _SMALL, length=3, width=0.6, colors="#222222")
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_linewidth(0.6)
        spine.set_color("#666666")


def label(ax: Axes, *, x: str | None = None, y: str | None = None) -> None:
    """Set the names of the axes, in the page's letters."""
    if x is not None:
        ax.set_xlabel(x, fontproperties=paper.font(EM * 0.95), labelpad=3)
    if y is not None:
        ax.set_ylabel(y, fontproperties=paper.font(EM * 0.95), labelpad=5)


def clock_axis(ax: Axes, start_ns: int | None, span_s: float) -> None:
    """Label a time axis of `span_s` in the capture, and with the time of day if `start_ns`, at 0 s, is known."""
    if start_ns is None:
        label(ax, x="time in the capture [s]")
        return
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}\n{moment(start_ns + round(value * 1e9), span_s)}")
    ax.xaxis.get_major_locator().set_params(nbins=7)  # type: ignore[call-arg]
    label(ax, x="time in the capture [s], and of the day (UTC)")


def draw_text(ax: Axes, x: float, y: float, text: str, **options: Any) -> Any:
    """Draw a small text at a point of the data; "$" is not read as mathematics."""
    size = options.pop("size", _SMALL)
    bold = options.pop("bold", False)
    return ax.text(
        x, y, paper.drawable(text), fontproperties=paper.font(EM * size, bold=bold), parse_math=False, **options
    )


def _key_width(key: Key) -> float:
    name = width_of(key.name, _SMALL, bold=True)
    return 1.4 + name + (0.5 + width_of(key.words, _SMALL) if key.words else 0) + 1.6


def _place_keys(keys: Sequence[Key], room: float) -> list[tuple[Key, float, int]]:
    """Return each key with its x and its line."""
    placed, x, line = [], 0.0, 0
    for key in keys:
        width = _key_width(key)
        if x and x + width > room:
            x, line = 0.0, line + 1
        placed.append((key, x, line))
        x += width
    return placed


def _draw_key(pen: Pen, key: Key, x: float, y: float) -> None:
    from matplotlib.patches import Rectangle

    middle = y - 0.28
    if key.shape == "box":
        square = Rectangle((x, y - 0.66), 0.9, 0.8, facecolor=key.colour, edgecolor=HATCH, linewidth=0, hatch=key.hatch)
        pen.ax.add_patch(square)
    elif key.shape in MARKERS:
        pen.ax.plot([x + 0.4], [middle], marker=MARKERS[key.shape], markersize=4.5, color=key.colour, linestyle="none")
    else:
        pen.line((x, x + 0.95), (middle, middle), colour=key.colour, width=0.2, dashed=key.shape == "dash")
    pen.text(x + 1.3, y, key.name, size=_SMALL, bold=True)
    if key.words:
        pen.text(x + 1.8 + width_of(key.name, _SMALL, bold=True), y, key.words, size=_SMALL, colour=GREY)
