"""`DelayPlot`, the delays of packets between two points over time, and the packets that were lost.

Reads the table `packets` of two joined captures. Draws a panel for each direction with the clock's error bound, and
lanes of the packets that did not pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from latpcap import arrays
from latpcap.format import count, ms
from latpcap.lazy import np, pa
from latpcap.plot.display import RASTER, Display, Key, Panel, label
from latpcap.plot.text import EM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latpcap.arrays import Array

WORDS = {"a_to_b": "A to B", "b_to_a": "B to A"}
COLOURS = {"a_to_b": "#0072B2", "b_to_a": "#117733"}
BOUND = "#B8860B"
LANES = {"lost": "#D0021B", "doubled": "#882255", "made": "#D55E00", "unseen": "#6E6E6E", "unknown": "#A0A0A0"}
"""Colours of the fates that have a lane; packets from outside the other capture's time ("outside") have none."""
MAX_BINS = 200
"""Upper bound on the bins of time whose least delay is drawn."""
MIN_PACKETS_PER_BIN = 20
"""Fewest packets per bin on average; fewer packets give fewer bins."""
LANE = 1.7
"""Height of a lane in em."""
NO_BOUND = "Only one direction was seen: how much of a delay is the clocks' difference is not known."


@dataclass(frozen=True, slots=True)
class Delays:
    """The packets of one direction that both points have."""

    seconds: Array
    """Instant at which each was sent, since the first packet."""
    delay_ms: Array
    error_ms: Array
    """The clock's error bound; NaN where only one direction was seen, which gives no bound."""


class DelayPlot(Display):
    """The delays of packets between two points over time, and the packets that were lost.

    A dot is a packet: when it was sent, and its delay on A's clock. The band is the least delay at the time, plus and
    minus the clock's error bound: all dots of both directions may be off by the bound, with opposite signs. The lanes
    are packets that did not pass.

    Attributes: `delays` (by "a_to_b" and "b_to_a"), `lanes` (fate and direction to seconds); after `plot`: `ax_` and
    `figure_`.
    """

    def __init__(
        self, delays: Mapping[str, Delays], lanes: Mapping[tuple[str, str], Array], *, title: str = "", note: str = ""
    ):
        self.delays = {name: delays[name] for name in WORDS if name in delays and len(delays[name].seconds)}
        keys = [(fate, direction) for fate in LANES for direction in WORDS]
        self.lanes = {key: lanes[key] for key in keys if len(lanes.get(key, ()))}
        if not self.delays:
            raise ValueError("no packet is at both points: there is no delay to draw")
        self.title = f"Delays between {title}" if title else "Delays"
        self.note = note
        parts = [
            f"{WORDS[name]}: least {ms(direction.delay_ms.min())}, median {ms(_median(direction.delay_ms))} ms"
            for name, direction in self.delays.items()
        ]
        self.subtitle = "; ".join(parts)

    @classmethod
    def from_table(cls, packets: pa.Table, *, title: str = "") -> Self:
        """Draw the table `packets` of two joined captures. ValueError where no packet is at both points."""
        instants = [arrays.filled(packets, name, -1).astype(np.int64) for name in ("a_time", "b_time")]
        goes_up = arrays.equals(packets, "direction", "a_to_b")
        sent = np.where(goes_up, instants[0], instants[1])
        sent = np.where(sent < 0, np.maximum(*instants), sent)  # the sender's capture lacks the packet
        seconds = (sent - (sent.min() if len(sent) else 0)) / 1e9
        delay, error = (arrays.numbers(packets, name).astype(float) for name in ("delay_ms", "clock_error_ms"))
        is_paired = ~np.isnan(delay)
        delays, lanes = {}, {}
        for name, in_direction in (("a_to_b", goes_up), ("b_to_a", ~goes_up)):
            is_shown = is_paired & in_direction
            delays[name] = Delays(seconds[is_shown], delay[is_shown], error[is_shown])
            for fate in LANES:
                lanes[fate, name] = seconds[in_direction & arrays.equals(packets, "fate", fate)]
        min_error_ms, max_error_ms = np.nanmin(error, initial=np.inf), np.nanmax(error, initial=0.0)
        note = f"Both directions may be off by up to {ms(max_error_ms)} ms, one up and the other down."
        return cls(delays, lanes, title=title, note=note if np.isfinite(min_error_ms) else NO_BOUND)

    def panels(self) -> Sequence[Panel]:
        """Return a panel for each direction, and the lanes."""
        margins: dict[str, Any] = {"left": 10.5, "right": 2.0}
        panels = [Panel(name, 13.0, shares_x=number > 0, **margins) for number, name in enumerate(self.delays)]
        return [*panels, Panel("fates", LANE * len(self.lanes), shares_x=True, **margins)] if self.lanes else panels

    def keys(self) -> Sequence[Key]:
        """Return the legend of dots and band."""
        keys = [Key(COLOURS[name], WORDS[name], count(len(direction.seconds), "packet"), "dot")
                for name, direction in self.delays.items()]  # fmt: skip
        if any(len(_floors(direction)[0]) for direction in self.delays.values()):
            keys.append(Key(BOUND, "bound", "of the clock, around the least delay"))
        return keys

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        all_seconds = [direction.seconds for direction in self.delays.values()] + list(self.lanes.values())
        first = min(float(seconds.min()) for seconds in all_seconds)
        last = max(float(seconds.max()) for seconds in all_seconds)
        margin = (last - first) * 0.012 or 1e-3
        for name, ax in axes.items():
            if name == "fates":
                self._fates(ax)
            else:
                self._direction(ax, name)
            ax.set_xlim(first - margin, last + margin)
        label(list(axes.values())[-1], x="time since the first packet [s]")

    def _direction(self, ax: Axes, name: str) -> None:
        direction = self.delays[name]
        edges, floor, error = _floors(direction)
        if len(edges):
            ax.fill_between(edges, floor - error, floor + error, step="post", color=BOUND, alpha=0.28, linewidth=0)
        ax.plot(
            direction.seconds,
            direction.delay_ms,
            ".",
            color=COLOURS[name],
            markersize=4,
            rasterized=len(direction.seconds) > RASTER,
            gid=f"delay-{name}",
        )
        label(ax, y=f"{WORDS[name]} [ms]")

    def _fates(self, ax: Axes) -> None:
        for number, ((fate, _), seconds) in enumerate(self.lanes.items()):
            ax.vlines(seconds, number + 0.14, number + 0.86, color=LANES[fate], linewidth=1.2, gid=f"fate-{fate}")
        ax.set_ylim(len(self.lanes), 0)
        ax.grid(False, axis="y")
        names = [f"{fate} {WORDS[name]} {len(seconds):,}" for (fate, name), seconds in self.lanes.items()]
        ax.set_yticks(np.arange(len(names)) + 0.5, names)
        ax.tick_params(axis="y", length=0, labelsize=EM * 0.8)


def _median(values: Array) -> float:
    return float(np.median(values))


def _floors(delays: Delays) -> tuple[Array, Array, Array]:
    """Return the edges of bins, and the least delay and the largest error bound in each, of packets with a bound."""
    has_bound = ~np.isnan(delays.error_ms)
    seconds, delay, error = delays.seconds[has_bound], delays.delay_ms[has_bound], delays.error_ms[has_bound]
    if not len(seconds):
        return seconds, delay, error
    first, bins = seconds.min(), min(max(len(seconds) // MIN_PACKETS_PER_BIN, 1), MAX_BINS)
    width = (seconds.max() - first) / bins or 1e-3
    bin_of = np.minimum(((seconds - first) / width).astype(int), bins - 1)
    floor, bound = np.full(bins, np.inf), np.zeros(bins)
    np.minimum.at(floor, bin_of, delay)
    np.maximum.at(bound, bin_of, error)
    filled = np.flatnonzero(np.isfinite(floor))
    edges = np.append(first + filled * width, first + (filled[-1] + 1) * width)
    return edges, np.append(floor[filled], floor[filled[-1]]), np.append(bound[filled], bound[filled[-1]])
