"""`LatencyPlot`, the distribution of latencies: the ECDF with its percentiles, and a histogram by top cause.

Reads sorted latencies and the top cause of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from latpcap.arrays import percentile
from latpcap.lazy import np
from latpcap.options import LatencyPanel, Scale
from latpcap.plot.display import Display, Key, Panel, draw_text, label
from latpcap.vocabulary import CAUSES, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS: tuple[LatencyPanel, ...] = get_args(LatencyPanel)
SCALES: tuple[Scale, ...] = get_args(Scale)
_MAX_POINTS = 4_000
"""Upper bound on the points of a curve: a step of 1/4,000 is less than a pixel."""
_BINS = 90
"""Bins of the histogram."""
_SPREAD = 20.0
"""Ratio of the 90th to the 10th percentile above which "auto" chooses a logarithmic axis."""
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_NONE = "#7A7A7A"


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: its name, its latencies in ms in ascending order, and the top cause of each (None without one)."""

    name: str
    values: Any
    causes: tuple[str | None, ...] = ()


class LatencyPlot(Display):
    """The ECDF and the histogram of latencies.

    Made by `Latency.plot`. `series` are overlaid; dots mark the percentiles. The histogram of a single series is
    divided by the exchanges' top causes; that of several shows shares of each series. Attributes as given; `edges` and
    `counts` (per series) of the histogram.
    """

    def __init__(
        self,
        series: Sequence[Series],
        *,
        percentiles: Sequence[float] = (50.0, 75.0, 90.0, 99.0),
        title: str = "",
        axis: str = "latency",
        note: str = "",
        scale: Scale = "auto",
        panel: LatencyPanel | None = None,
    ):
        """Choose axis and bins for the series; ValueError where none has a latency."""
        if scale not in SCALES:
            raise ValueError(f"no scale {scale!r}; known are {', '.join(SCALES)}")
        if panel is not None and panel not in PANELS:
            raise ValueError(f"no panel {panel!r}; known are {' and '.join(PANELS)}")
        self.series = tuple(curve for curve in series if len(curve.values))
        if not self.series:
            raise ValueError("no exchange has a latency: there is nothing to draw")
        self.percentiles = tuple(percentiles)
        self.title, self.axis, self.panel = title, axis, panel
        all_values = np.sort(np.concatenate([np.asarray(curve.values, float) for curve in self.series]))
        low, high = float(all_values[0]), float(all_values[-1])
        spread = all_values[int(0.9 * (len(all_values) - 1))] / max(all_values[int(0.1 * (len(all_values) - 1))], 1e-6)
        self.log = scale == "log" or (scale == "auto" and bool(spread > _SPREAD))
        floor = float(all_values[all_values > 0][0]) if (all_values > 0).any() else 1e-6
        self._floor = floor
        if self.log:
            self.edges = np.geomspace(floor * 0.9, max(high, floor) * 1.1, _BINS + 1)
        else:
            low = 0.0 if low < 0.3 * high else low
            room = max((high - low) * 0.02, 1e-6)
            self.edges = np.linspace(max(0.0, low - room), high + room, _BINS + 1)
        self.counts = [np.histogram(self._shown(curve.values), self.edges)[0] for curve in self.series]
        zero = int((all_values <= 0).sum()) if self.log else 0
        self.note = note + (f" {zero} of 0 ms stand at the left edge." if zero else "")
        self.subtitle = "; ".join(self._line(curve) for curve in self.series) if len(self.series) == 1 else ""

    def _shown(self, values: Any) -> Any:
        """Return the values as the axis can show them: on a logarithmic axis at least the least positive value."""
        return np.maximum(np.asarray(values, float), self._floor) if self.log else np.asarray(values, float)

    def _line(self, curve: Series) -> str:
        from latpcap.format import count, ms

        ranks = ", ".join(f"p{rank:g} {ms(percentile(curve.values, rank / 100))}" for rank in self.percentiles)
        return f"{count(len(curve.values), 'exchange')}: {ranks}, max {ms(float(curve.values[-1]))} ms"

    def panels(self) -> Sequence[Panel]:
        """Return the ECDF above the histogram, or the chosen panel."""
        heights = {"ecdf": 19.0, "histogram": 13.0}
        names = PANELS if self.panel is None else (self.panel,)
        return [Panel(name, heights[name]) for name in names]

    def keys(self) -> Sequence[Key]:
        """Return the series; for a single one, the causes of its histogram."""
        if len(self.series) > 1:
            return [
                Key(_colour(i), curve.name, self._line(curve), "line" if _dash(i) == "-" else "dash")
                for i, curve in enumerate(self.series)
            ]
        if self.panel == "ecdf":
            return []
        tops = Counter(self.series[0].causes)
        total = len(self.series[0].values)
        keys = [
            Key(CAUSES[n].colour, n, f"top cause of {tops[n]:,} ({100 * tops[n] / total:.3g} %)")
            for n in CAUSES
            if tops[n]
        ]
        return [*keys, Key(_NONE, "no top cause", f"{tops[None]:,}")] if tops[None] else keys

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        for name, ax in axes.items():
            (self._ecdf if name == "ecdf" else self._histogram)(ax)
            if self.log:
                ax.set_xscale("log")
                ax.xaxis.set_major_formatter(_plain_ms)
            ax.set_xlim(self.edges[0], self.edges[-1])
            if name == list(axes)[-1]:
                label(ax, x=f"{self.axis} [ms]")

    def _ecdf(self, ax: Axes) -> None:
        for number, curve in enumerate(self.series):
            values, colour = self._shown(curve.values), _colour(number)
            n = len(values)
            rows = np.unique(np.linspace(0, n - 1, min(n, _MAX_POINTS)).round().astype(int))
            x = np.concatenate([[self.edges[0]], values[rows], [self.edges[-1]]])
            y = np.concatenate([[0], (rows + 1) / n, [1]]) * 100
            ax.plot(x, y, drawstyle="steps-post", color=colour, linewidth=1.6, linestyle=_dash(number))
            marks = [float(self._shown([percentile(curve.values, rank / 100)])[0]) for rank in self.percentiles]
            ax.plot(marks, self.percentiles, "o", color=colour, markersize=4.5, markeredgecolor="white")
            if len(self.series) == 1:
                self._label_percentiles(ax, curve, marks)
        ax.set_ylim(0, 103)
        label(ax, y="exchanges up to here [%]")

    def _label_percentiles(self, ax: Axes, curve: Series, values_ms: Sequence[float]) -> None:
        """Write the percentiles' values next to their dots, on the side with more room; one that would overlap the
        value before it is left out.
        """
        from latpcap.format import ms

        low, high = self.edges[0], self.edges[-1]
        last = -100.0
        for percent, value_ms in sorted(zip(self.percentiles, values_ms, strict=True)):
            if percent - last < 6.5:
                continue
            last = percent
            across = _across(value_ms, low, high, self.log)
            side = "right" if across > 0.5 else "left"
            shift = (-7, 0) if side == "right" else (7, 0)
            text = f"p{percent:g} {ms(percentile(curve.values, percent / 100))} ms"
            note = ax.annotate(text, (value_ms, percent), shift, textcoords="offset points", ha=side, va="center")
            _letters(note)

    def _histogram(self, ax: Axes) -> None:
        """Draw the number of exchanges by latency, coloured by cause where there is one series."""
        shown = self.counts
        if len(self.series) > 1:  # captures of different lengths: each bar is a share of its own series
            shown = [100 * counts / counts.sum() for counts in self.counts]
            for number, counts in enumerate(shown):
                colour = _colour(number)
                ax.stairs(counts, self.edges, color=colour, linewidth=1.3, linestyle=_dash(number))
                ax.stairs(counts, self.edges, fill=True, color=colour, alpha=0.15)
        else:
            curve = self.series[0]
            values, tops = self._shown(curve.values), np.array([cause or "" for cause in curve.causes], dtype=object)
            below = np.zeros(len(self.edges) - 1)
            for name in [*CAUSES, ""]:
                if not (tops == name).any():
                    continue
                counts = np.histogram(values[tops == name], self.edges)[0]
                colour = CAUSES[name].colour if name else _NONE
                ax.stairs(below + counts, self.edges, baseline=below, fill=True, color=colour)
                below = below + counts
            if not curve.causes:
                ax.stairs(self.counts[0], self.edges, fill=True, color=_colour(0))
        ax.set_ylim(0, max(float(counts.max()) for counts in shown) * 1.18)
        label(ax, y="exchanges" if shown is self.counts else "exchanges [% of each]")
        if len(self.series) == 1:
            self._label_peak(ax)

    def _label_peak(self, ax: Axes) -> None:
        """Write the count and the range of the highest bar."""
        from latpcap.format import count, ms

        counts = self.counts[0]
        peak = int(counts.argmax())
        low, high = self.edges[peak], self.edges[peak + 1]
        values = self._shown(self.series[0].values)
        inside = values[(values >= low) & (values <= high)]
        middle = (low * high) ** 0.5 if self.log else (low + high) / 2
        across = _across(middle, self.edges[0], self.edges[-1], self.log)
        side = "right" if across > 0.7 else "left" if across < 0.3 else "center"
        text = f"{count(int(counts[peak]), 'exchange')} from {ms(float(inside[0]))} to {ms(float(inside[-1]))} ms"
        draw_text(ax, middle, counts[peak] * 1.03, text, ha=side, va="bottom")


def _across(value: float, low: float, high: float, log: bool) -> float:
    """Return the place as a share of the axis, from 0 to 1."""
    import math

    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _letters(note: Any) -> None:
    from latpcap.plot.figure import font

    note.set_fontproperties(font(7.65))
    note.set_parse_math(False)


def _colour(number: int) -> str:
    return SERIES[number % len(SERIES)]


def _dash(number: int) -> Any:
    return _DASHES[number % len(_DASHES)]


def _plain_ms(value: float, _place: float = 0) -> str:
    """Return a number of ms on a logarithmic axis, without powers of ten."""
    return f"{value:g}" if value < 1e5 else f"{value:.0e}"
