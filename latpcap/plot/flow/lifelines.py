"""`PointsGraph`, the packets between two or more capture points as a flow graph with the points as lifelines.

Reads finished arrows and parts, with all instants on one clock. Time is to scale, so that the slant of an arrow is the
packet's delay; a cross ends a lost packet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

from latpcap.format import ms
from latpcap.plot.display import Display, Key, Panel, draw_text
from latpcap.plot.text import WIDTH
from latpcap.vocabulary import CAUSES
from latpcap.words import current, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE, SMALL = 1.35, 0.8
"""Height of a label's line and size of its letters, in em."""
ENDS_OF_TWO, ENDS_OF_MORE, PARTS_X = (17.5, 27.5), (15.8, 30.4), 46.0
"""x of the first and last lifeline of two points, and of more, and x of the bar of parts, in em."""
MAX_POINTS = 6
"""Upper bound on the lifelines; more leave no room for an arrow between them."""
STYLES = {
    "passed": ("#1F1F1F", "-"),
    "lost": ("#D0021B", "-"),
    "doubled": ("#882255", "-"),
    "made": ("#D55E00", "-"),
    "unseen": ("#1F1F1F", ":"),
    "outside": ("#8A8A8A", ":"),
    "unknown": ("#8A8A8A", "--"),
}
"""Colour and line of an arrow by the packet's fate; the legend explains all but "passed"."""
STOPS = {"lost": 0.62, "unknown": 0.62}
"""Share of the way that is drawn for a packet that is not seen to arrive."""
MIN_HEIGHT = 22.0
"""Height of the picture in em, to which each packet adds a line: all labels may be close together."""
LIFELINE_COLOUR = "#444444"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A packet between two neighbouring points, A and B."""

    up: bool
    """Whether it travels from A to B."""
    a_ms: float
    """Instant at A, in ms since the picture's zero; an estimate where A has no such packet."""
    b_ms: float
    a_frame: int | None
    """None where A has no such packet."""
    b_frame: int | None
    fate: str
    text: str
    """Flags and length."""
    leg: int = 0
    """Number of the point A; B is the next point."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the exchange's time, with the place where it was spent, its cause and grade."""

    begin_ms: float
    end_ms: float
    place: str
    cause: str
    grade: str


class PointsGraph(Display):
    """The packets between capture points, and where the time of an exchange was spent.

    Time runs downwards to scale on A's clock: an arrow's slant is the packet's delay. A cross ends a lost packet; a
    dotted arrow is a packet that one capture lacks. The bar to the right is the exchange, divided by place and cause.

    Attributes: `arrows`, `spans`; after `plot`: `ax_` and `figure_`. `lines()` returns the content as text.
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
        if len(names) > MAX_POINTS:
            raise ValueError(f"{len(names)} points: at most {MAX_POINTS} have room")
        self.names, self.spans = tuple(names), tuple(spans)
        self.arrows = tuple(sorted(arrows, key=lambda arrow: min(arrow.a_ms, arrow.b_ms)))
        self.title, self.subtitle, self.note = title, subtitle, note
        self.lang = current()

    def panels(self) -> Sequence[Panel]:
        """Return the only panel, as wide as the page."""
        return [Panel("points", MIN_HEIGHT + LINE * len(self.arrows), left=0.0, right=0.0, below=0.8)]

    def keys(self) -> Sequence[Key]:
        """Return the legend: fates of the packets shown, and causes of the parts."""
        fates = [name for name in STYLES if name != "passed" and any(arrow.fate == name for arrow in self.arrows)]
        shapes = {"-": "line", "--": "dash", ":": "dash"}
        keys = [Key(STYLES[name][0], name, say(f"point_{name}"), shapes[STYLES[name][1]]) for name in fates]
        causes = {span.cause for span in self.spans}
        return [*keys, *(Key(CAUSES[name].colour, name) for name in CAUSES if name in causes)]

    def lines(self) -> Iterator[str]:
        """Yield the packets as text: ms at each point, frames, delay and fate; then the parts."""
        named = (f"{name} ({letter})" for name, letter in zip(self.names, ascii_uppercase, strict=False))
        yield f"{'   '.join(named)}: ms on A's clock"
        for arrow in self.arrows:
            a = f"{arrow.a_ms:12.3f} {arrow.a_frame:>7}" if arrow.a_frame is not None else f"{'':12} {'-':>7}"
            b = f"{arrow.b_frame:>7} {arrow.b_ms:12.3f}" if arrow.b_frame is not None else f"{'-':>7} {'':12}"
            is_paired = arrow.a_frame is not None and arrow.b_frame is not None
            delay = f"  {abs(arrow.b_ms - arrow.a_ms):8.3f} ms" if is_paired else f"  {arrow.fate}"
            points = "" if len(self.names) == 2 else f"{ascii_uppercase[arrow.leg]}-{ascii_uppercase[arrow.leg + 1]} "
            yield f"{points}{a}  {arrow.text:^24.24} {'->' if arrow.up else '<-'} {b}{delay}"
        for span in self.spans:
            times = f"{span.begin_ms:12.3f} to {span.end_ms:.3f}"
            yield f"{times}: {ms(span.end_ms - span.begin_ms)} ms {span.place}, {span.cause} ({span.grade})"

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        """Draw the points, the packets between them, and the parts of the exchange."""
        (ax,) = axes.values()
        ax.set_axis_off()
        ends = [value for arrow in self.arrows for value in (arrow.a_ms, arrow.b_ms)]
        ends += [value for span in self.spans for value in (span.begin_ms, span.end_ms)]
        first, last = min(ends), max(ends)
        room = (last - first) * 0.02 or 0.5
        height = self.panels()[0].height
        head = 2.4  # em above the first packet, for the names of the points
        ax.set_xlim(0, WIDTH)
        ax.set_ylim(height, 0)
        scale = (height - head - 0.5) / (last - first + 2 * room)

        def y(value: float) -> float:
            return head + (value - first + room) * scale

        xs = self._lifeline_xs()
        for number, (x, name) in enumerate(zip(xs, self.names, strict=True)):
            ax.plot([x, x], [head - 0.5, height], color=LIFELINE_COLOUR, linewidth=1.0, zorder=1)
            line = 0.4 + 1.2 * (number % 2) if len(xs) > 2 else 1.0  # a name may be wider than the gap to the next
            draw_text(ax, x, line, f"{ascii_uppercase[number]}: {name}", ha="center", bold=True)
        for arrow in self.arrows:
            self._draw_arrow(ax, arrow, (xs[arrow.leg], y(arrow.a_ms)), (xs[arrow.leg + 1], y(arrow.b_ms)))
        self._draw_labels(ax, True, xs[0], y, height)
        self._draw_labels(ax, False, xs[-1], y, height)
        for number, x in enumerate(xs[1:-1], 1):
            self._draw_frames(ax, number, x, y, height)
        self._draw_parts(ax, y)

    def _lifeline_xs(self) -> list[float]:
        """x of each lifeline, in em."""
        first, last = ENDS_OF_TWO if len(self.names) == 2 else ENDS_OF_MORE
        gap = (last - first) / (len(self.names) - 1)
        return [first + gap * number for number in range(len(self.names))]

    def _draw_arrow(self, ax: Axes, arrow: Arrow, a: tuple[float, float], b: tuple[float, float]) -> None:
        colour, dashes = STYLES[arrow.fate]
        begin, end = (a, b) if arrow.up else (b, a)
        length_share = STOPS.get(arrow.fate, 1.0)
        if arrow.fate == "made":  # by something between the points: the arrow begins half way
            begin = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
        stop = (begin[0] + (end[0] - begin[0]) * length_share, begin[1] + (end[1] - begin[1]) * length_share)
        style = {
            "arrowstyle": "-|>" if length_share == 1.0 else "-",
            "color": colour,
            "linestyle": dashes,
            "linewidth": 1.0,
        }
        ax.annotate("", stop, begin, arrowprops={**style, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7})
        if arrow.fate == "lost":
            ax.plot(*stop, "x", color=colour, markersize=6, markeredgewidth=1.6, gid="lost")
        elif arrow.fate == "unknown":
            draw_text(ax, stop[0], stop[1], "?", ha="center", va="center", color=colour, bold=True)

    def _draw_frames(self, ax: Axes, number: int, x: float, y: Callable[[float], float], height: float) -> None:
        """Draw the frame numbers at a point between two others, each frame once."""
        ms_of = {arrow.a_frame: arrow.a_ms for arrow in self.arrows if arrow.leg == number}
        ms_of |= {arrow.b_frame: arrow.b_ms for arrow in self.arrows if arrow.leg == number - 1}
        frames = sorted((when, frame) for frame, when in ms_of.items() if frame is not None)
        for (when, frame), label_y in zip(frames, _apart([y(when) for when, _ in frames], height - 0.4), strict=True):
            ax.plot([x, x + 0.3], [y(when), label_y], color="#B0B0B0", linewidth=0.5, zorder=0.5)
            label = draw_text(ax, x + 0.4, label_y, str(frame), va="center", size=SMALL)
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})

    def _draw_labels(self, ax: Axes, at_a: bool, edge: float, y: Callable[[float], float], height: float) -> None:
        """Draw the labels at the first or the last point: frame, instant and, at the packet's sender, its flags and
        length. Labels that would overlap are moved apart.
        """
        x, align = (edge - 0.7, "right") if at_a else (edge + 0.7, "left")
        leg = 0 if at_a else len(self.names) - 2
        arrows_of_leg = [arrow for arrow in self.arrows if arrow.leg == leg]
        arrows_of_leg = [arrow for arrow in arrows_of_leg if (arrow.a_frame if at_a else arrow.b_frame) is not None]
        arrows_of_leg.sort(key=lambda arrow: arrow.a_ms if at_a else arrow.b_ms)
        arrow_heights = [y(arrow.a_ms if at_a else arrow.b_ms) for arrow in arrows_of_leg]
        has_two_points = len(self.names) == 2  # more lifelines leave less room
        label_heights = _apart(arrow_heights, height - 0.4)
        for arrow, label_y, arrow_y in zip(arrows_of_leg, label_heights, arrow_heights, strict=True):
            frame, time_ms = (arrow.a_frame, arrow.a_ms) if at_a else (arrow.b_frame, arrow.b_ms)
            text = say("point_frame" if has_two_points else "point_number", time=f"{time_ms:,.2f} ms", frame=str(frame))
            if arrow.up == at_a:
                text = f"{arrow.text}   {text}" if at_a else f"{text}   {arrow.text}"
            colour = STYLES[arrow.fate][0]
            ax.plot([edge, x], [arrow_y, label_y], color="#B0B0B0", linewidth=0.5, zorder=0.5)
            draw_text(ax, x + (-0.2 if at_a else 0.2), label_y, text, ha=align, va="center", size=SMALL, color=colour)

    def _draw_parts(self, ax: Axes, y: Callable[[float], float]) -> None:
        """Draw the bar of the exchange's parts; a part under 0.5 % of the time has no words."""
        from matplotlib.patches import Rectangle

        shown = [span for span in self.spans if span.end_ms > span.begin_ms]
        middles = [y((span.begin_ms + span.end_ms) / 2) for span in shown]
        total = sum(span.end_ms - span.begin_ms for span in shown)
        for span, label_y in zip(shown, _apart(middles, float("inf")), strict=True):
            top, bottom = y(span.begin_ms), y(span.end_ms)
            ax.add_patch(Rectangle((PARTS_X, top), 0.8, bottom - top, facecolor=CAUSES[span.cause].colour, linewidth=0))
            if span.end_ms - span.begin_ms >= total / 200:
                # between two of several points the place is their letters, "A-B"
                location = span.place if "-" in span.place else say(f"point_at_{span.place}")
                draw_text(
                    ax, PARTS_X + 1.2, label_y, f"{ms(span.end_ms - span.begin_ms)} {location}", va="center", size=SMALL
                )


def _apart(heights: Sequence[float], bottom: float) -> list[float]:
    """Return the positions moved to be at least a line apart, in order: downwards first, then up from `bottom`."""
    positions: list[float] = []
    for value in heights:
        positions.append(max(value, positions[-1] + LINE if positions else value))
    limit = bottom
    for number in range(len(positions) - 1, -1, -1):
        positions[number] = min(positions[number], limit)
        limit = positions[number] - LINE
    return positions
