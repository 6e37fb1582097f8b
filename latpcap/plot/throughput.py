"""`Throughput`, payload over time as stacked areas, by direction, server or stream. Reads `events` and `streams`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, get_args

from latpcap import arrays
from latpcap.format import endpoint
from latpcap.lazy import np, pa, pc
from latpcap.options import ThroughputGroup
from latpcap.plot.display import Display, Key, Panel, clock_axis, label
from latpcap.plot.numbers import moment, size
from latpcap.tables import Needed, TableSlice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latpcap.arrays import Array

BINS = 160
"""Upper bound on the steps of time; a step is 1, 2 or 5 times a power of ten of seconds."""
MAX_LINES = 7
"""Groups with a colour of their own; the other groups are summed."""
COLOURS = ("#0072B2", "#E69F00", "#117733", "#CC79A7", "#56B4E9", "#882255", "#B8860B")
"""Colours of the groups, distinct also for colour-blind readers (Okabe-Ito, Tol)."""
REST = "#9A9A9A"
DIRECTIONS = ("to the client", "to the server")


class Throughput(Display):
    """Payload in Mbit/s over time, stacked by group; retransmitted payload counts too.

    Attributes: `edges` (of the steps, in s of the capture), `rates` (group to Mbit/s in each step, the largest group
    first); after `plot`: `ax_` and `figure_`.
    """

    def __init__(self, edges: Array, rates: Mapping[str, Array], *, title: str = "", start_ns: int | None = None):
        if not rates:
            raise ValueError("no segment with payload: there is nothing to draw")
        self.edges, self.rates, self.start_ns = edges, dict(rates), start_ns
        self.title = f"Throughput of {title}" if title else "Throughput"
        step = float(edges[1] - edges[0])
        total: Array = np.sum(list(self.rates.values()), 0)
        moved = float(total.sum()) * step * 1e6 / 8
        self.subtitle = (
            f"{size(moved)} of payload; {_rate(float(total.sum()) * step / float(edges[-1] - edges[0]))} in the mean, "
            f"{_rate(float(total.max()))} at most in {step:g} s"
        )
        if start_ns is not None:
            self.subtitle += f"; 0 s is {moment(start_ns)} UTC"

    @classmethod
    def from_tables(
        cls,
        events: pa.Table,
        streams: pa.Table,
        *,
        by: ThroughputGroup = "direction",
        title: str = "",
        start_ns: int = 0,
    ) -> Self:
        """Compute the rates. ValueError for an unknown group, or without payload. `start_ns` is the instant of 0 s."""
        if by not in get_args(ThroughputGroup):
            raise ValueError(f"no group {by!r}; known are {', '.join(get_args(ThroughputGroup))}")
        length = arrays.numbers(events, "len").astype(np.float64)
        data = np.flatnonzero(length > 0)
        if not len(data):
            return cls(np.zeros(2), {}, title=title)
        seconds = (arrays.numbers(events, "time")[data] - start_ns) / 1e9
        group, names = _groups(events, streams, by, data)
        sizes = np.bincount(group, length[data], len(names))
        largest = np.argsort(-sizes, kind="stable")
        largest = largest[sizes[largest] > 0]
        edges = _edges(float(seconds.min()), float(seconds.max()))
        bins = len(edges) - 1
        bin_of = np.minimum(((seconds - edges[0]) / (edges[1] - edges[0])).astype(np.int64), bins - 1)
        rank = np.full(len(names), MAX_LINES)
        rank[largest[:MAX_LINES]] = np.arange(len(largest[:MAX_LINES]))
        sums = np.bincount(rank[group] * bins + bin_of, length[data], (MAX_LINES + 1) * bins).reshape(
            MAX_LINES + 1, bins
        )
        rates = sums * 8 / 1e6 / (edges[1] - edges[0])
        rate_of = {names[code]: rates[number] for number, code in enumerate(largest[:MAX_LINES].tolist())}
        if len(largest) > MAX_LINES:
            rate_of[f"{len(largest) - MAX_LINES:,} others"] = rates[MAX_LINES]
        return cls(edges, rate_of, title=title, start_ns=start_ns or None)

    def panels(self) -> Sequence[Panel]:
        """Return the only panel."""
        return [Panel("rate", 20.0, right=4.0, below=3.6 if self.start_ns is None else 5.0)]

    def keys(self) -> Sequence[Key]:
        """Return the groups, with the payload of each."""
        step = float(self.edges[1] - self.edges[0]) / 8 * 1e6
        return [
            Key(colour, name, size(float(rate.sum()) * step))
            for (name, rate), colour in zip(self.rates.items(), self._colours(), strict=True)
        ]

    def _colours(self) -> list[str]:
        return [COLOURS[number] if number < MAX_LINES else REST for number in range(len(self.rates))]

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        (ax,) = axes.values()
        below = np.zeros(len(self.edges) - 1)
        for (name, rate), colour in zip(self.rates.items(), self._colours(), strict=True):
            ax.stairs(
                below + rate, self.edges, baseline=below, fill=True, color=colour, linewidth=0, gid=f"rate-{name}"
            )
            below = below + rate
        ax.set_xlim(float(self.edges[0]), float(self.edges[-1]))
        ax.set_ylim(0, float(below.max()) * 1.06)
        label(ax, y="payload [Mbit/s]")
        clock_axis(ax, self.start_ns, float(self.edges[-1] - self.edges[0]))


def needed() -> Needed:
    """Return the columns that `Throughput.from_tables` reads: of `events` only segments with payload."""
    return {
        "events": TableSlice(("time", "stream", "from_client", "len"), lambda events: pc.greater(events["len"], 0)),
        "streams": TableSlice(("stream", "client", "client_port", "server", "server_port")),
    }


def _groups(events: pa.Table, streams: pa.Table, by: str, data: Array) -> tuple[Array, list[str]]:
    """Return the group of each of these segments as an index into the names, and the names."""
    up = arrays.numbers(events, "from_client")[data].astype(bool)
    if by == "direction":
        return up.astype(np.int64), list(DIRECTIONS)
    stream = arrays.numbers(events, "stream")[data].astype(np.int64)
    ends: dict[str, Any] = streams.select(["stream", "client", "client_port", "server", "server_port"]).to_pydict()
    servers = [endpoint(*end) for end in zip(ends["server"], ends["server_port"], strict=True)]
    if by == "server":
        names = list(dict.fromkeys(servers))
        codes = {name: code for code, name in enumerate(names)}
        groups = [codes[name] for name in servers]
    else:
        names = [f"{number} to {server}" for number, server in zip(ends["stream"], servers, strict=True)]
        groups = list(range(len(names)))
    group_of = np.zeros(max([*ends["stream"], int(stream.max())]) + 1, np.int64)
    group_of[ends["stream"]] = groups
    return group_of[stream], names


def _edges(first: float, last: float) -> Array:
    """Return the edges of steps of a round length, from a round instant on."""
    min_step = (last - first) / BINS or 1e-3
    unit = 10.0 ** np.floor(np.log10(min_step))
    step = float(unit * next(times for times in (1, 2, 5, 10) if times * unit >= min_step * 0.999))
    begin = np.floor(first / step + 1e-9)
    count = int(np.floor(last / step + 1e-9) - begin) + 1
    return (begin + np.arange(count + 1)) * step


def _rate(mbit: float) -> str:
    """Write a rate with its unit: 12 kbit/s, 9.4 Mbit/s, 1.2 Gbit/s."""
    unit, value = ("Gbit/s", mbit / 1e3) if mbit >= 1e3 else ("Mbit/s", mbit) if mbit >= 1 else ("kbit/s", mbit * 1e3)
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
