"""When were exchanges slow, and what happened on the wire then?

Reads the `exchanges` and `events` tables; gives a picture with a dot per exchange and, below it, a lane for each
kind of event that matters. Knows nothing of captures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, get_args

from latpcap.arrays import rank
from latpcap.format import count
from latpcap.options import Scale
from latpcap.plot.display import EM, RASTER, Display, Key, Panel, label
from latpcap.plot.text import ms
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

_REPEATED = ("retransmission", "fast_retransmission", "spurious_retransmission")
_LANES = {
    "retransmission": "#882255",
    "lost_segment": "#4D4D4D",
    "zero_window": "#14104A",
    "window_full": "#332288",
    "RST": "#D55E00",
    "SYN": "#117733",
    "incomplete": "#7A7A7A",
}
_CELLS = (1600, 900)  # dots in the same cell of this grid are one: the picture has 800 pixels, or 1,600 in print
_LANE, _FEW = 1.7, 20_000
_NONE = "#7A7A7A"


@dataclass(frozen=True, slots=True)
class Dots:
    """The exchanges of one top cause: seconds in the capture and latency in ms."""

    cause: str | None
    seconds: Any
    latency_ms: Any


class Timeline(Display):
    """When were exchanges slow, and what happened on the wire then?

    A dot is an exchange: its start on the time axis, its latency above, the colour of its top cause. The lanes below
    are segments with that fact: `retransmission` (of any kind), `lost_segment` (not captured), `zero_window`,
    `window_full`, `RST`, `SYN`; and `incomplete`, exchanges without a latency. An empty lane is not drawn.

    Attributes: `dots` and `lanes` (name to seconds); after `plot`: `ax_` and `figure_`.
    """

    def __init__(self, dots: Sequence[Dots], lanes: Mapping[str, Any], *, title: str = "", scale: Scale = "auto"):
        import numpy as np

        if scale not in get_args(Scale):
            raise ValueError(f"no scale {scale!r}; known are auto, log, linear")
        self.dots = tuple(sorted((d for d in dots if len(d.seconds)), key=lambda d: -len(d.seconds)))
        self.lanes = {name: lanes[name] for name in _LANES if len(lanes.get(name, ()))}
        if not self.dots and not self.lanes:
            raise ValueError("no exchange and no event that matters: there is nothing to draw")
        self.title = f"Timeline of {title}" if title else "Timeline"
        values = np.sort(np.concatenate([d.latency_ms for d in self.dots])) if self.dots else np.array([])
        self._values = values
        self.total = len(values)
        positive = values[values > 0]
        spread = float(positive[-1] / positive[len(positive) // 20]) if len(positive) else 1.0
        self.log = len(positive) > 0 and (scale == "log" or (scale == "auto" and spread > 100))
        self._floor = float(positive[0]) if len(positive) else 1e-3
        times = [d.seconds for d in self.dots] + list(self.lanes.values())
        every = np.concatenate([np.asarray(t, float) for t in times])
        self._span = (float(every.min()), float(every.max()))
        if self.total:
            p50, p99 = rank(values, 50), rank(values, 99)
            self.subtitle = f"{count(self.total, 'exchange')}: p50 {ms(p50)}, p99 {ms(p99)}, max {ms(values[-1])} ms"
        else:
            self.subtitle = "no exchange with a latency"
        missing = [name for name in ("retransmission", "zero_window", "RST") if name not in self.lanes]
        if missing:
            *more, last = missing
            self.subtitle += f"; no {', no '.join(more)} and no {last}" if more else f"; no {last}"
        if self.total > _FEW:
            self.note = f"Exchanges that would fall on the same of {_CELLS[0]} x {_CELLS[1]} places are one dot."

    @classmethod
    def from_tables(
        cls, exchanges: pa.Table, events: pa.Table, *, title: str = "", start_ns: int = 0, scale: Scale = "auto"
    ) -> Self:
        """How do these tables become a timeline? `start_ns` is the instant of 0 s. Raises ValueError if there is
        neither an exchange nor an event to show.
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        seconds = (_ns(exchanges["start"]) - start_ns) / 1e9
        latency = exchanges["latency_ms"].to_numpy()
        tops = np.array([c or "" for c in exchanges["top_cause"].cast(pa.string()).to_pylist()], dtype=object)
        whole = ~np.isnan(latency)
        dots = []
        for name in [*CAUSES, ""]:
            mine = whole & (tops == name)
            dots.append(Dots(name or None, seconds[mine], latency[mine]))
        at = (_ns(events["time"]) - start_ns) / 1e9
        flags = events["flags"].cast(pa.string())
        repeated = pc.or_(pc.or_(events[_REPEATED[0]], events[_REPEATED[1]]), events[_REPEATED[2]])
        marks = {name: events[name] for name in ("lost_segment", "zero_window", "window_full")}
        marks |= {"retransmission": repeated, "RST": pc.match_substring(flags, "RST")}
        marks["SYN"] = pc.and_(pc.match_substring(flags, "SYN"), pc.invert(pc.match_substring(flags, "ACK")))
        lanes = {name: at[column.to_numpy()] for name, column in marks.items()}
        lanes["incomplete"] = seconds[~whole]
        return cls(dots, lanes, title=title, scale=scale)

    def panels(self) -> Sequence[Panel]:
        """The dots, and the lanes below."""
        lanes = [Panel("events", _LANE * len(self.lanes), left=10.5, right=3, shares_x=True)] if self.lanes else []
        return [Panel("latency", 24.0, left=10.5, right=3), *lanes] if self.dots else lanes

    def keys(self) -> Sequence[Key]:
        """The top causes that are there, with their exchanges."""
        number = {d.cause: len(d.seconds) for d in self.dots}
        found = [Key(CAUSES[n].colour, n, f"top cause of {number[n]:,}", "dot") for n in CAUSES if number.get(n)]
        return [*found, Key(_NONE, "no top cause", f"{number[None]:,}", "dot")] if number.get(None) else found

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        first, last = self._span
        room = (last - first) * 0.01 or 0.5
        for name, ax in axes.items():
            (self._exchanges if name == "latency" else self._events)(ax)
            ax.set_xlim(first - room, last + room)
        label(list(axes.values())[-1], x="time in the capture [s]")

    def _exchanges(self, ax: Axes) -> None:
        import numpy as np

        low, high = self._floor, float(self._values[-1])
        size = 4.0 if self.total < 2_000 else 2.5
        for d in self.dots:
            y = np.maximum(d.latency_ms, low) if self.log else d.latency_ms
            x, y = _thinned(np.asarray(d.seconds, float), y, self._span, (low, high), self.log, self.total)
            ax.plot(
                x,
                y,
                linestyle="none",
                marker="o",
                markersize=size,
                markeredgewidth=0,
                color=CAUSES[d.cause].colour if d.cause else _NONE,
                rasterized=self.total > RASTER,
                gid=f"cause-{d.cause}",
            )
        if self.log:
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(lambda value, _place: f"{value:g}")
            ax.set_ylim(low / 1.5, high * 1.5)
        else:
            ax.set_ylim(0, high * 1.06 or 1.0)
        label(ax, y="latency [ms]")

    def _events(self, ax: Axes) -> None:
        import numpy as np

        for number, (name, seconds) in enumerate(self.lanes.items()):
            first, last = self._span
            cells = np.unique(((np.asarray(seconds) - first) / ((last - first) or 1) * _CELLS[0]).round())
            x = first + cells / _CELLS[0] * (last - first)
            ax.vlines(x, number + 0.14, number + 0.86, color=_LANES[name], linewidth=1.0, gid=f"event-{name}")
        ax.set_ylim(len(self.lanes), 0)
        ax.grid(False, axis="y")
        ax.set_yticks(np.arange(len(self.lanes)) + 0.5, [f"{n} {len(s):,}" for n, s in self.lanes.items()])
        ax.tick_params(axis="y", length=0, labelsize=EM * 0.8)


def _thinned(x: Any, y: Any, wide: Any, high: Any, log: bool, total: int) -> tuple[Any, Any]:
    """One dot for all that fall on the same place of a grid that is finer than the picture; all where they are few."""
    import numpy as np

    if total <= _FEW:
        return x, y
    scale = np.log if log else np.asarray
    low, top = float(scale(high[0] if log else 0.0)), float(scale(high[1]))
    column = ((x - wide[0]) / ((wide[1] - wide[0]) or 1) * (_CELLS[0] - 1)).astype(np.int64)
    row = ((scale(y) - low) / ((top - low) or 1) * (_CELLS[1] - 1)).astype(np.int64)
    _, kept = np.unique(column * _CELLS[1] + row, return_index=True)
    return x[kept], y[kept]


def _ns(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.timestamp("ns", tz=column.type.tz)).cast(pa.int64()).to_numpy()
