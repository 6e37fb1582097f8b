"""What passed between two points or more, as a flow graph with the points as lifelines on one clock.

Reads finished arrows and parts; slanted arrows are in true scale, lost packets end in a cross. Knows nothing of
captures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

from latpcap.format import ms
from latpcap.plot.display import WIDTH, Display, Key, Panel, words
from latpcap.vocabulary import CAUSES
from latpcap.words import current, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE, SMALL = 1.35, 0.8
"""Height of a label's line and size of its letters, in em."""
TWO, MORE, PARTS = (17.5, 27.5), (15.8, 30.4), 46.0
"""Places across the page, in em: the first and the last lifeline of two points and of more, and the bar of parts."""
MOST_POINTS = 6
"""Lifelines that leave room for an arrow between them."""
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
    """A packet between two neighbours: ms since the picture's zero at each, by the estimate where one lacks it."""

    up: bool
    """From A to B."""
    a_ms: float
    b_ms: float
    a_frame: int | None
    b_frame: int | None
    fate: str
    text: str
    """Flags and length."""
    leg: int = 0
    """Number of the point that `a_ms` and `a_frame` are of; `b` is the next."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the exchange: where its time was, with its cause and grade."""

    begin_ms: float
    end_ms: float
    place: str
    cause: str
    grade: str


class PointsGraph(Display):
    """What passed between the points, and where was the time?

    Time runs downwards in true scale on A's clock: an arrow's slant is its delay. A cross ends what was lost, dots
    draw what one capture lacks. The bar to the right is the exchange, cut into whose time it was.

    Attributes: `arrows`, `spans`; after `plot`: `ax_` and `figure_`. `lines()` are the same as text.
    """

    def __init__(
        self,
        names: Sequence[str],
        arrows: Sequence[Arrow],
        spans: Sequence[Span] = (),
        *,
        title: str = "",
        subtitle: str = "",
        note: str = "",
    ):
        if not arrows:
            raise ValueError("no packet to draw")
        if len(names) > MOST_POINTS:
            raise ValueError(f"{len(names)} points: at most {MOST_POINTS} have room")
        self.names, self.spans = tuple(names), tuple(spans)
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
        named = (f"{name} ({letter})" for name, letter in zip(self.names, ascii_uppercase, strict=False))
        yield f"{'   '.join(named)}: ms on A's clock"
        for one in self.arrows:
            a = f"{one.a_ms:12.3f} {one.a_frame:>7}" if one.a_frame is not None else f"{'':12} {'-':>7}"
            b = f"{one.b_frame:>7} {one.b_ms:12.3f}" if one.b_frame is not None else f"{'-':>7} {'':12}"
            both = one.a_frame is not None and one.b_frame is not None
            delay = f"  {abs(one.b_ms - one.a_ms):8.3f} ms" if both else f"  {one.fate}"
            points = "" if len(self.names) == 2 else f"{ascii_uppercase[one.leg]}-{ascii_uppercase[one.leg + 1]} "
            yield f"{points}{a}  {one.text:^24.24} {'->' if one.up else '<-'} {b}{delay}"
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

        at = self._places()
        for number, (x, name) in enumerate(zip(at, self.names, strict=True)):
            ax.plot([x, x], [head - 0.5, height], color=MERIDIAN, linewidth=1.0, zorder=1)
            line = 0.4 + 1.2 * (number % 2) if len(at) > 2 else 1.0  # names of neighbours may be wider than their gap
            words(ax, x, line, f"{ascii_uppercase[number]}: {name}", ha="center", bold=True)
        for one in self.arrows:
            self._arrow(ax, one, (at[one.leg], y(one.a_ms)), (at[one.leg + 1], y(one.b_ms)))
        self._labels(ax, True, at[0], y, height)
        self._labels(ax, False, at[-1], y, height)
        for number, x in enumerate(at[1:-1], 1):
            self._frames(ax, number, x, y, height)
        self._parts(ax, y)

    def _places(self) -> list[float]:
        """Where the lifelines stand."""
        first, last = TWO if len(self.names) == 2 else MORE
        gap = (last - first) / (len(self.names) - 1)
        return [first + gap * number for number in range(len(self.names))]

    def _arrow(self, ax: Axes, one: Arrow, a: tuple[float, float], b: tuple[float, float]) -> None:
        colour, dashes = LOOK[one.fate]
        begin, end = (a, b) if one.up else (b, a)
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

    def _frames(self, ax: Axes, number: int, x: float, y: Callable[[float], float], height: float) -> None:
        """Frames at a point between others, each once."""
        seen = {one.a_frame: one.a_ms for one in self.arrows if one.leg == number}
        seen |= {one.b_frame: one.b_ms for one in self.arrows if one.leg == number - 1}
        mine = sorted((when, frame) for frame, when in seen.items() if frame is not None)
        for (when, frame), place in zip(mine, _apart([y(when) for when, _ in mine], height - 0.4), strict=True):
            ax.plot([x, x + 0.3], [y(when), place], color="#B0B0B0", linewidth=0.5, zorder=0.5)
            label = words(ax, x + 0.4, place, str(frame), va="center", size=SMALL)
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})

    def _labels(self, ax: Axes, at_a: bool, edge: float, y: Callable[[float], float], height: float) -> None:
        """Frame, instant and, at its sender, what the packet is, at the first or the last point; moved apart where
        they would lie on each other."""
        x, align = (edge - 0.7, "right") if at_a else (edge + 0.7, "left")
        leg = 0 if at_a else len(self.names) - 2
        mine = [one for one in self.arrows if one.leg == leg]
        mine = [one for one in mine if (one.a_frame if at_a else one.b_frame) is not None]
        mine.sort(key=lambda one: one.a_ms if at_a else one.b_ms)
        wanted = [y(one.a_ms if at_a else one.b_ms) for one in mine]
        two = len(self.names) == 2  # more lifelines leave less room
        for one, place, true in zip(mine, _apart(wanted, height - 0.4), wanted, strict=True):
            frame, when = (one.a_frame, one.a_ms) if at_a else (one.b_frame, one.b_ms)
            text = say("point_frame" if two else "point_number", time=f"{when:,.2f} ms", frame=str(frame))
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
                # a way of several has its points' letters
                where = span.place if "-" in span.place else say(f"point_at_{span.place}")
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
