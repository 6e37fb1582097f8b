"""What passed between two points, as a flow graph with the points as lifelines on one clock.

Reads finished arrows and parts; slanted arrows are in true scale, lost packets end in a cross. Knows nothing of
captures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap.format import ms
from latpcap.plot.display import WIDTH, Display, Key, Panel, words
from latpcap.vocabulary import CAUSES
from latpcap.words import current, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE, SMALL = 1.35, 0.8
"""Height of a label's line and size of its letters, in em."""
AT_A, AT_B, PARTS = 17.5, 27.5, 46.0
"""Places across the page, in em: both lifelines and the bar of parts."""
LOOK = {
    "passed": ("#1F1F1F", "-"),
    "lost": ("#D0021B", "-"),
    "doubled": ("#882255", "-"),
    "made": ("#D55E00", "-"),
    "unseen": ("#1F1F1F", ":"),
    "outside": ("#8A8A8A", ":"),
    "unknown": ("#8A8A8A", "--"),
}
MARKED = ("lost", "doubled", "made", "unseen", "outside", "unknown")
"""The fates that the legend explains."""
STOPS = {"lost": 0.62, "unknown": 0.62}
"""How far a packet that is not seen to arrive is drawn; one that came into being between begins half way."""
LEAST = 22.0
"""Height of the picture in em; each packet adds a line, as all labels may stand close together."""
MERIDIAN = "#444444"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A packet: ms since the picture's zero at each point, by the estimate where that point lacks it."""

    up: bool
    """From A to B."""
    a_ms: float
    b_ms: float
    a_frame: int | None
    b_frame: int | None
    fate: str
    text: str
    """Flags and length."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the exchange: where its time was, with its cause and grade."""

    begin_ms: float
    end_ms: float
    place: str
    cause: str
    grade: str


class PointsGraph(Display):
    """What passed between two points, and where was the time?

    Time runs downwards in true scale on A's clock: an arrow's slant is its delay. A cross ends what was lost, dots
    draw what one capture lacks. The bar to the right is the exchange, cut into whose time it was.

    Attributes: `arrows`, `spans`; after `plot`: `ax_` and `figure_`. `lines()` are the same as text.
    """

    def __init__(
        self,
        names: tuple[str, str],
        arrows: Sequence[Arrow],
        spans: Sequence[Span] = (),
        *,
        title: str = "",
        subtitle: str = "",
        note: str = "",
    ):
        if not arrows:
            raise ValueError("no packet to draw")
        self.names, self.spans = names, tuple(spans)
        self.arrows = tuple(sorted(arrows, key=lambda one: min(one.a_ms, one.b_ms)))
        self.title, self.subtitle, self.note = title, subtitle, note
        self.lang = current()

    def panels(self) -> Sequence[Panel]:
        """One panel, as wide as the page."""
        return [Panel("points", LEAST + LINE * len(self.arrows), left=0.0, right=0.0, below=0.8)]

    def keys(self) -> Sequence[Key]:
        """The fates that are there, and whose the parts are."""
        fates = [name for name in LOOK if name in MARKED and any(one.fate == name for one in self.arrows)]
        shapes = {"-": "line", "--": "dash", ":": "dash"}
        found = [Key(LOOK[name][0], name, say(f"point_{name}"), shapes[LOOK[name][1]]) for name in fates]
        causes = {span.cause for span in self.spans}
        return [*found, *(Key(CAUSES[name].colour, name) for name in CAUSES if name in causes)]

    def lines(self) -> Iterator[str]:
        """The packets as text: ms at each point, frames, delay and fate."""
        yield f"{self.names[0]} (A)   {self.names[1]} (B): ms on A's clock"
        for one in self.arrows:
            a = f"{one.a_ms:12.3f} {one.a_frame:>7}" if one.a_frame is not None else f"{'':12} {'-':>7}"
            b = f"{one.b_frame:>7} {one.b_ms:12.3f}" if one.b_frame is not None else f"{'-':>7} {'':12}"
            both = one.a_frame is not None and one.b_frame is not None
            delay = f"  {abs(one.b_ms - one.a_ms):8.3f} ms" if both else f"  {one.fate}"
            yield f"{a}  {one.text:^24.24} {'->' if one.up else '<-'} {b}{delay}"
        for span in self.spans:
            where = f"{span.begin_ms:12.3f} to {span.end_ms:.3f}"
            yield f"{where}: {ms(span.end_ms - span.begin_ms)} ms {span.place}, {span.cause} ({span.grade})"

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        (ax,) = axes.values()
        ax.set_axis_off()
        ends = [value for one in self.arrows for value in (one.a_ms, one.b_ms)]
        ends += [value for span in self.spans for value in (span.begin_ms, span.end_ms)]
        first, last = min(ends), max(ends)
        room = (last - first) * 0.02 or 0.5
        height = self.panels()[0].height
        head = 2.4  # em above the first packet, for the points' names
        ax.set_xlim(0, WIDTH)
        ax.set_ylim(height, 0)
        scale = (height - head - 0.5) / (last - first + 2 * room)

        def y(value: float) -> float:
            return head + (value - first + room) * scale

        for x, name, word in ((AT_A, self.names[0], "A"), (AT_B, self.names[1], "B")):
            ax.plot([x, x], [head - 0.5, height], color=MERIDIAN, linewidth=1.0, zorder=1)
            words(ax, x, 1.0, f"{word}: {name}", ha="center", bold=True)
        for one in self.arrows:
            self._arrow(ax, one, y(one.a_ms), y(one.b_ms))
        for at, x, align in ((True, AT_A - 0.7, "right"), (False, AT_B + 0.7, "left")):
            self._labels(ax, at, x, align, y, height)
        self._parts(ax, y)

    def _arrow(self, ax: Axes, one: Arrow, at_a: float, at_b: float) -> None:
        colour, dashes = LOOK[one.fate]
        begin, end = ((AT_A, at_a), (AT_B, at_b)) if one.up else ((AT_B, at_b), (AT_A, at_a))
        share = STOPS.get(one.fate, 1.0)
        if one.fate == "made":
            begin = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
        stop = (begin[0] + (end[0] - begin[0]) * share, begin[1] + (end[1] - begin[1]) * share)
        style = {"arrowstyle": "-|>" if share == 1.0 else "-", "color": colour, "linestyle": dashes, "linewidth": 1.0}
        ax.annotate("", stop, begin, arrowprops={**style, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7})
        if one.fate == "lost":
            ax.plot(*stop, "x", color=colour, markersize=6, markeredgewidth=1.6, gid="lost")
        elif one.fate == "unknown":
            words(ax, stop[0], stop[1], "?", ha="center", va="center", color=colour, bold=True)

    def _labels(self, ax: Axes, at_a: bool, x: float, align: str, y: Callable[[float], float], height: float) -> None:
        """Frame, instant and, at its sender, what the packet is; moved apart where they would lie on each other."""
        mine = [one for one in self.arrows if (one.a_frame if at_a else one.b_frame) is not None]
        mine.sort(key=lambda one: one.a_ms if at_a else one.b_ms)
        wanted = [y(one.a_ms if at_a else one.b_ms) for one in mine]
        edge = AT_A if at_a else AT_B
        for one, place, true in zip(mine, _apart(wanted, height - 0.4), wanted, strict=True):
            frame, when = (one.a_frame, one.a_ms) if at_a else (one.b_frame, one.b_ms)
            text = say("point_frame", time=f"{when:,.2f} ms", frame=str(frame))
            if one.up == at_a:
                text = f"{one.text}   {text}" if at_a else f"{text}   {one.text}"
            colour = LOOK[one.fate][0]
            ax.plot([edge, x], [true, place], color="#B0B0B0", linewidth=0.5, zorder=0.5)
            words(ax, x + (-0.2 if at_a else 0.2), place, text, ha=align, va="center", size=SMALL, color=colour)

    def _parts(self, ax: Axes, y: Callable[[float], float]) -> None:
        from matplotlib.patches import Rectangle

        shown = [span for span in self.spans if span.end_ms > span.begin_ms]
        wanted = [y((span.begin_ms + span.end_ms) / 2) for span in shown]
        total = sum(span.end_ms - span.begin_ms for span in shown)
        for span, place in zip(shown, _apart(wanted, float("inf")), strict=True):
            top, bottom = y(span.begin_ms), y(span.end_ms)
            ax.add_patch(Rectangle((PARTS, top), 0.8, bottom - top, facecolor=CAUSES[span.cause].colour, linewidth=0))
            if span.end_ms - span.begin_ms >= total / 200:
                where = say(f"point_at_{span.place}")
                words(ax, PARTS + 1.2, place, f"{ms(span.end_ms - span.begin_ms)} {where}", va="center", size=SMALL)


def _apart(wanted: Sequence[float], bottom: float) -> list[float]:
    """Places at least a line apart, in order, none below the bottom: downwards, then back up where there is no room."""
    places: list[float] = []
    for value in wanted:
        places.append(max(value, places[-1] + LINE if places else value))
    limit = bottom
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], limit)
        limit = places[number] - LINE
    return places
