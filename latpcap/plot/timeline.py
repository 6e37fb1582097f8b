"""`Timeline`, the latency of exchanges over time, above lanes of the segments that matter.

Reads the `exchanges` and `events` tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, get_args

from latpcap import arrays
from latpcap.arrays import percentile
from latpcap.format import count, ms
from latpcap.lazy import np, pa, pc
from latpcap.options import Scale
from latpcap.plot.cause_patterns import mark
from latpcap.plot.display import MARKERS, RASTER, Display, Key, Panel, clock_axis, label
from latpcap.plot.numbers import moment
from latpcap.plot.text import EM
from latpcap.tables import REPEATED, Needed, TableSlice
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LANES = {
    "retransmission": "#882255",
    "lost_segment": "#4D4D4D",
    "zero_window": "#14104A",
    "window_full": "#332288",
    "RST": "#D55E00",
    "SYN": "#117733",
    "incomplete": "#7A7A7A",
}
"""Colours of the lanes."""
_FACTS = ("lost_segment", "zero_window", "window_full")
COLUMNS = ("start", "latency_ms", "top_cause")
"""Columns of `exchanges` that a timeline reads."""
MARKED = ("time", "flags", *REPEATED, *_FACTS)
"""Columns of `events` that a timeline reads."""
_LINES = 1600
"""Lines of a lane that can be told apart: the picture is 1,600 pixels wide."""
_CELLS = (160, 60)
"""Columns and rows of a grid of cells as large as a dot; all exchanges in a cell are one dot."""
_SIZES = ((1, 1.0), (10, 1.5), (100, 2.1), (1000, 2.8))
"""Least number of exchanges in a dot, and the factor of the dot's width from that number on."""
_LANE = 1.7
"""Height of a lane in em."""
_NONE = "#7A7A7A"


@dataclass(frozen=True, slots=True)
class Dots:
    """The exchanges of one top cause: seconds in the capture and latency in ms."""

    cause: str | None
    seconds: Any
    latency_ms: Any


class Timeline(Display):
    """The latency of exchanges over time, above lanes of the segments that matter.

    A dot is an exchange: x is its start, y its latency, the colour its top cause. The lanes below are segments:
    `retransmission` (of any kind), `lost_segment` (not captured), `zero_window`, `window_full`, `RST`, `SYN`; the lane
    `incomplete` is exchanges without a latency. An empty lane is not drawn.

    Attributes: `dots` and `lanes` (name to seconds); after `plot`: `ax_` and `figure_`.
    """

    def __init__(
        self,
        dots: Sequence[Dots],
        lanes: Mapping[str, Any],
        *,
        title: str = "",
        scale: Scale = "auto",
        start_ns: int | None = None,
    ):
        """Choose the axis for the dots; ValueError where there is nothing to draw."""
        if scale not in get_args(Scale):
            raise ValueError(f"no scale {scale!r}; known are auto, log, linear")
        filled = (group for group in dots if len(group.seconds))
        self.dots = tuple(sorted(filled, key=lambda group: -len(group.seconds)))
        self.lanes = {name: lanes[name] for name in _LANES if len(lanes.get(name, ()))}
        if not self.dots and not self.lanes:
            raise ValueError("no exchange and no event that matters: there is nothing to draw")
        self.title = f"Timeline of {title}" if title else "Timeline"
        values = np.sort(np.concatenate([group.latency_ms for group in self.dots])) if self.dots else np.array([])
        self._values = values
        self.total = len(values)
        positive = values[values > 0]
        spread = float(positive[-1] / positive[len(positive) // 20]) if len(positive) else 1.0
        self.log = len(positive) > 0 and (scale == "log" or (scale == "auto" and spread > 100))
        self._floor = float(positive[0]) if len(positive) else 1e-3
        times = [group.seconds for group in self.dots] + list(self.lanes.values())
        all_seconds = np.concatenate([np.asarray(seconds, float) for seconds in times])
        self._span = (float(all_seconds.min()), float(all_seconds.max()))
        if self.total:
            p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
            self.subtitle = f"{count(self.total, 'exchange')}: p50 {ms(p50)}, p99 {ms(p99)}, max {ms(values[-1])} ms"
        else:
            self.subtitle = "no exchange with a latency"
        missing = [name for name in ("retransmission", "zero_window", "RST") if name not in self.lanes]
        if missing:
            *others, last = missing
            self.subtitle += f"; no {', no '.join(others)} and no {last}" if others else f"; no {last}"
        self.start_ns = start_ns
        if start_ns is not None:
            self.subtitle += f"; 0 s is {moment(start_ns)} UTC"

    @classmethod
    def from_tables(
        cls, exchanges: pa.Table, events: pa.Table, *, title: str = "", start_ns: int = 0, scale: Scale = "auto"
    ) -> Self:
        """Compute the dots and lanes. `start_ns` is the instant of 0 s. ValueError without an exchange or event."""
        seconds = (arrays.nanoseconds(exchanges["start"]) - start_ns) / 1e9
        latency = exchanges["latency_ms"].to_numpy()
        tops = np.array([cause or "" for cause in exchanges["top_cause"].cast(pa.string()).to_pylist()], dtype=object)
        is_complete = ~np.isnan(latency)
        dots = []
        for name in [*CAUSES, ""]:
            rows = is_complete & (tops == name)
            dots.append(Dots(name or None, seconds[rows], latency[rows]))
        event_seconds = (arrays.nanoseconds(events["time"]) - start_ns) / 1e9
        lanes = {name: event_seconds[column.to_numpy()] for name, column in _marks(events).items()}
        lanes["incomplete"] = seconds[~is_complete]
        return cls(dots, lanes, title=title, scale=scale, start_ns=start_ns or None)

    def panels(self) -> Sequence[Panel]:
        """Return the panel of the dots, and that of the lanes."""
        below = 3.6 if self.start_ns is None else 5.0
        margins: dict[str, Any] = {"left": 11.5, "right": 3, "below": below}
        lanes = [Panel("events", _LANE * len(self.lanes), shares_x=True, **margins)] if self.lanes else []
        return [Panel("latency", 22.0, **margins), *lanes] if self.dots else lanes

    def keys(self) -> Sequence[Key]:
        """Return the top causes with the number of their exchanges, and the sizes of dots."""
        number = {group.cause: len(group.seconds) for group in self.dots}
        causes = [cause for cause in CAUSES if number.get(cause)]
        keys = [Key(CAUSES[cause].colour, cause, f"top cause of {number[cause]:,}", mark(cause)) for cause in causes]
        keys += [Key(_NONE, "no top cause", f"{number[None]:,}", "dot")] if number.get(None) else []
        sizes = [min_count for min_count, _ in _SIZES if 1 < min_count <= self._largest_dot()]
        if sizes:
            explanation = f"{', '.join(f'{min_count:,}' for min_count in sizes)} exchanges and more at one place"
            keys.append(Key("#404040", "larger", explanation, "dot"))
        return keys

    def _largest_dot(self) -> int:
        """Return the largest number of exchanges in a dot."""
        if not self.dots:
            return 0
        y_span = (self._floor, float(self._values[-1]))
        return max(
            int(_thinned(group.seconds, group.latency_ms, self._span, y_span, self.log)[2].max()) for group in self.dots
        )

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        first, last = self._span
        room = (last - first) * 0.01 or 0.5
        for name, ax in axes.items():
            (self._exchanges if name == "latency" else self._events)(ax)
            ax.set_xlim(first - room, last + room)
        below = list(axes.values())[-1]
        clock_axis(below, self.start_ns, last - first)

    def _exchanges(self, ax: Axes) -> None:
        """Draw a dot for each exchange, or one for all in a cell as large as a dot."""
        low, high = self._floor, float(self._values[-1])
        for dots in self.dots:
            y = np.maximum(dots.latency_ms, low) if self.log else dots.latency_ms
            x, y, exchanges_per_dot = _thinned(np.asarray(dots.seconds, float), y, self._span, (low, high), self.log)
            colour, shape = CAUSES[dots.cause].colour if dots.cause else _NONE, mark(dots.cause)
            for (min_count, times), (next_count, _) in pairwise([*_SIZES, (self.total + 1, 0.0)]):
                of_size = (exchanges_per_dot >= min_count) & (exchanges_per_dot < next_count)
                if of_size.any():
                    ax.plot(
                        x[of_size],
                        y[of_size],
                        linestyle="none",
                        marker=MARKERS[shape],
                        markersize=4.0 * times,
                        markeredgewidth=1.2 if shape == "cross" else 0.4,
                        markeredgecolor=colour if shape == "cross" else "white",
                        color=colour,
                        rasterized=self.total > RASTER,
                        gid=f"cause-{dots.cause}",
                    )
        if self.log:
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(lambda value, _place: f"{value:g}")
            ax.set_ylim(low / 1.5, high * 1.5)
        else:
            ax.set_ylim(0, high * 1.06 or 1.0)
        label(ax, y="latency [ms]")

    def _events(self, ax: Axes) -> None:
        for number, (name, seconds) in enumerate(self.lanes.items()):
            first, last = self._span
            lines = np.unique(((np.asarray(seconds) - first) / ((last - first) or 1) * _LINES).round())
            x = first + lines / _LINES * (last - first)
            ax.vlines(x, number + 0.14, number + 0.86, color=_LANES[name], linewidth=1.0, gid=f"event-{name}")
        ax.set_ylim(len(self.lanes), 0)
        ax.grid(False, axis="y")
        ax.set_yticks(
            np.arange(len(self.lanes)) + 0.5, [f"{name} {len(seconds):,}" for name, seconds in self.lanes.items()]
        )
        ax.tick_params(axis="y", length=0, labelsize=EM * 0.8)


def _marks(events: pa.Table) -> dict[str, pa.ChunkedArray]:
    """For each lane, whether each segment is in it."""
    flags = events["flags"].cast(pa.string())
    repeated = pc.or_(pc.or_(events[REPEATED[0]], events[REPEATED[1]]), events[REPEATED[2]])
    marks = {name: events[name] for name in _FACTS}
    marks |= {"retransmission": repeated, "RST": pc.match_substring(flags, "RST")}
    marks["SYN"] = pc.and_(pc.match_substring(flags, "SYN"), pc.invert(pc.match_substring(flags, "ACK")))
    return marks


def is_marked(events: pa.Table) -> pa.ChunkedArray:
    """Return for each segment whether it is in a lane."""
    return reduce(pc.or_, _marks(events).values())


def needed() -> Needed:
    """Return the columns that `Timeline.from_tables` reads: of `events` only segments that are in a lane."""
    return {"exchanges": TableSlice(COLUMNS), "events": TableSlice(MARKED, is_marked)}


def _thinned(x: Any, y: Any, x_span: Any, y_span: Any, log: bool) -> tuple[Any, Any, Any]:
    """Merge dots that would overlap: the place of the first dot of each cell, and the number of dots in it."""
    scale = np.log if log else np.asarray
    low, top = float(scale(y_span[0] if log else 0.0)), float(scale(y_span[1]))
    column = ((x - x_span[0]) / ((x_span[1] - x_span[0]) or 1) * (_CELLS[0] - 1)).round().astype(np.int64)
    height = scale(np.maximum(y, y_span[0]) if log else y)
    row = ((height - low) / ((top - low) or 1) * (_CELLS[1] - 1)).round().astype(np.int64)
    _, first_dots, exchanges_per_dot = np.unique(column * _CELLS[1] + row, return_index=True, return_counts=True)
    return x[first_dots], y[first_dots], exchanges_per_dot
