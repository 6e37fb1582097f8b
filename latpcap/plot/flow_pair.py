"""How do two streams, or two captures, differ?

Reads two flow graphs; gives one picture with both side by side on one time scale, each counting from its first row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from latpcap import files
from latpcap.plot import figure as paper
from latpcap.plot import flow_draw, flow_layout, flow_scale
from latpcap.plot.flow_artist import Ink, root
from latpcap.plot.flow_clock import seconds
from latpcap.plot.flow_rows import FlowRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from latpcap.plot.flow_brackets import FlowBracket
    from latpcap.plot.flow_waits import FlowMark

_SIDE, _GUTTER = 38.0, 1.5  # em: the least width of a side, and the space between the two
_SCALE_NS = 1e6  # gaps of at least 1 ms decide on the scale, if there are any


class Graph(Protocol):
    """What of a `FlowGraph` stands on one side."""

    title: str
    note: str
    nodes: tuple[str, ...]
    rows: tuple[FlowRow, ...]
    marks: tuple[FlowMark, ...]
    brackets: tuple[FlowBracket, ...]


class FlowPair:
    """What happened here, and what there, at the same time after the beginning?

    Made by `FlowGraph.beside`. `left` and `right` are the graphs (what is on their first pages); `names` stand before
    their titles. The space between rows is time, the same on both sides; below one row's height it is not to scale.

    Attributes: as given; after `plot`: `ax_`, the axes, and `figure_`, their figure.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, left: Graph, right: Graph, *, names: tuple[str, str] = ("", "")) -> None:
        self.left, self.right = left, right
        self.names = names

    def plot(self, ax: Axes | None = None) -> Self:
        """How do I draw it, on axes of mine or on a figure of its own? Only draws; returns the pair itself."""
        sides = (self.left, self.right)
        rows = [_counted(side) for side in sides]
        pages = [
            flow_layout.columns(
                ": ".join(word for word in (name, side.title) if word),
                side.nodes,
                shown,
                side.marks,
                side.brackets,
                least=_SIDE,
                comments=False,
            )
            for side, name, shown in zip(sides, self.names, rows, strict=True)
        ]
        body = max(page.body[0] for page in pages)
        for page in pages:
            flow_layout.lower(page, body - page.body[0])
        em_per_ns = flow_scale.scale_of([[row.at_ns for row in shown] for shown in rows], _SCALE_NS)
        steps = [flow_layout.steps(page, shown) for page, shown in zip(pages, rows, strict=True)]
        places, breaks = flow_scale.stack(steps, em_per_ns)
        for page, place in zip(pages, places, strict=True):
            flow_layout.put(page, place, breaks, em_per_ns)
        width = pages[0].width + _GUTTER + pages[1].width
        bottom = max(page.height for page in pages)
        foot = flow_draw.footer(
            " ".join(side.note for side in sides if side.note),
            "equal heights are equal times since each side's first row",
            [],
            [*sides[0].marks, *sides[1].marks],
            width,
            em_per_ns,
        )
        with paper.house_style():
            pen = Ink.on(ax, width, bottom + flow_draw.footer_height(foot))
            flow_draw.draw_body(pen, pages[0], rows[0])
            flow_draw.draw_body(pen.moved(pages[0].width + _GUTTER, 0), pages[1], rows[1])
            flow_draw.draw_footer(pen, bottom, foot, width, em_per_ns)
            pen.dry()
        self.ax_, self.figure_ = pen.ax, root(pen.ax)
        return self

    def save(self, path: str | Path, *, dpi: float = paper.DPI) -> Self:
        """How do I put it into a ticket? Writes PNG, SVG or PDF, by the path's suffix; the same input gives the same
        bytes. ValueError for other suffixes; OSError if the file cannot be written.
        """
        files.write(path, self._render(paper.suffix_of(path), dpi))
        return self

    def _render(self, suffix: str, dpi: float) -> bytes:
        fresh = FlowPair(self.left, self.right, names=self.names).plot()
        return paper.render(fresh.figure_, suffix, dpi, colours=flow_draw.COLOURS)

    def _repr_png_(self) -> bytes:
        return self._render(".png", paper.DPI)

    def __repr__(self) -> str:
        return f"FlowPair({self.left!r}, {self.right!r})"


def _counted(side: Graph) -> list[FlowRow]:
    """The rows with their times counted from the first of them, with as many decimals as they had."""
    zero = side.rows[0].at_ns
    digits = max(len(row.time.rpartition(".")[2]) if "." in row.time else 0 for row in side.rows)
    return [replace(row, at_ns=row.at_ns - zero, time=seconds(row.at_ns - zero, digits)) for row in side.rows]
