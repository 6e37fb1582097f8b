"""`Ticket`, one picture for a ticket: the lines of an answer above the flow graph of its evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from latpcap import files
from latpcap.plot import figure as paper
from latpcap.plot.flow import drawing
from latpcap.plot.text import wrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from latpcap.answers.text import Text
    from latpcap.plot.flow.graph import FlowGraph

_POINTS = 9.0
"""Size of the font."""
_LINE_INCHES = _POINTS * 1.45 / 72
_MARGIN_INCHES = 0.25
_COLUMN_INCHES = 0.85
"""Distance of a line's sentence from the margin; its label is in the column before it."""


@dataclass(frozen=True)
class _Line:
    text: str
    label: str = ""
    inches: float = 0.0
    """Distance of the text from the margin."""
    bold: bool = False


class Ticket:
    """An answer and the flow graph of its evidence on one page; `save` writes it."""

    figure_: Figure

    def __init__(self, answer: Text, graph: FlowGraph) -> None:
        self.answer = answer
        self.graph = graph

    def plot(self) -> Self:
        """Draw the page on a new figure, `figure_`: the graph in its size, the words in its width."""
        width, height = self.graph.plot().figure_.get_size_inches()
        lines = _wrapped(self.answer, width - 2 * _MARGIN_INCHES)
        head = 2 * _MARGIN_INCHES + len(lines) * _LINE_INCHES
        with paper.house_style():
            page = paper.new_figure(width, head + height)
            self.graph.plot(page.add_axes((0, 0, 1, height / (head + height))))
            for number, line in enumerate(lines):
                top = 1 - (_MARGIN_INCHES + number * _LINE_INCHES) / (head + height)
                style: dict[str, Any] = {"va": "top", "parse_math": False, "color": "#1a1a1a"}
                style["fontproperties"] = paper.font(_POINTS, bold=line.bold)
                page.text((_MARGIN_INCHES + line.inches) / width, top, line.text, **style)
                page.text(_MARGIN_INCHES / width, top, line.label, **style | {"color": "#666666"})
        self.figure_ = page
        return self

    def save(self, path: str | Path, *, dpi: float = paper.DPI) -> Self:
        """Write PNG, SVG or PDF, by the path's suffix; the same input gives the same bytes.

        Raises ValueError for other suffixes, or if a PNG would be too high; OSError if the file cannot be written.
        """
        suffix = paper.suffix_of(path)
        files.write(Path(path), paper.render(self.plot().figure_, suffix, dpi, colours=drawing.COLOURS))
        return self


def _wrapped(answer: Text, inches: float) -> list[_Line]:
    """Return the answer's lines in this width, the headline in bold; the sentences of labelled lines are a column."""
    unwrapped = [_Line(answer.title)]
    if answer.headline:
        unwrapped.append(_Line(answer.headline, bold=True))
    for line in answer.lines:
        unwrapped.append(_Line(f"{line.text}{line.hint}", line.label, _COLUMN_INCHES if line.label else 0.0))
    wrapped: list[_Line] = []
    for entry in unwrapped:
        label = paper.drawable(entry.label)
        for text in wrap(paper.drawable(entry.text), (inches - entry.inches) * 72 / _POINTS, bold=entry.bold):
            wrapped.append(replace(entry, text=text, label=label))
            label = ""
    return wrapped
