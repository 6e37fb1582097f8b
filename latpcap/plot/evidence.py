"""`EvidencePlot`, the measurements behind the findings on one server.

Reads `events`, `streams` and `evidence`. Draws one panel per subject: round trips over time, the kernel's reaction to
an ACK, the program's pauses between small segments, and held ACKs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, get_args

from latpcap import arrays
from latpcap.format import count, endpoint
from latpcap.lazy import np, pa
from latpcap.options import EvidencePanel
from latpcap.plot.display import RASTER, Display, Key, Panel, label
from latpcap.tables import Needed, TableSlice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latpcap.arrays import Array

PATH, BOUND, RELEASE, FREE, HELD, HOLD = "#0072B2", "#B8860B", "#117733", "#56B4E9", "#D0021B", "#882255"
BINS = 48
"""Bins of a histogram."""
MIN_MS, MAX_MS = 1e-3, 1e4
"""Bounds of the logarithmic axes; shorter and longer times are drawn at the bound."""
_MEASURED = ("ack_rtt_ms", "ack_hold_ms", "release_frame", "waited_ms")


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one server's connections."""

    seconds: Array
    """Instant in the capture of each ACK without data, of either host."""
    round_ms: Array
    """The round trip that each of these ACKs ended."""
    by_server: Array
    """Whether the server sent it."""
    release_ms: Array
    """From an ACK to the small segment that it released, less the best round trip to the sender."""
    free_ms: Array
    """From a small segment to the next one of its sender where the ACK was not held."""
    held_ms: Array
    """From a small segment to the next one of its sender where the ACK was held."""
    hold_ms: Array
    """Delay of each of the receiver's ACKs beyond the path's round trip."""
    best_ms: tuple[float | None, float | None]
    """Best round trips to the sender and to its receiver; None without `evidence`, as the two fields below."""
    tight_ms: float | None
    """Longest time after an ACK at which a segment still counts as released by it."""
    hold_least_ms: float | None
    """Shortest delay of an ACK that counts as held."""


class EvidencePlot(Display):
    """The measurements behind the findings on one server.

    The panels from above: round trips that a kernel ended with an ACK without data, over time; time from an ACK to the
    segment that it released; time between two small segments of a sender, with and without a held ACK between them;
    delays of ACKs.

    Attributes: `measured`; after `plot`: `ax_` and `figure_`.
    """

    def __init__(
        self,
        measured: Measured,
        *,
        title: str = "",
        sender: str = "server",
        panels: Sequence[EvidencePanel] = get_args(EvidencePanel),
    ):
        known = get_args(EvidencePanel)
        unknown = ", ".join(repr(name) for name in panels if name not in known)
        if unknown or not panels:
            raise ValueError(f"no panel {unknown or 'is chosen'}; known are {', '.join(known)}")
        if not len(measured.seconds) + len(measured.release_ms):
            raise ValueError("no acknowledgement and no wait for one: there is nothing to draw")
        self.measured, self.sender, self.chosen = measured, sender, tuple(panels)
        self.title = f"Evidence on {title}" if title else "Evidence"
        held, free = len(measured.held_ms), len(measured.free_ms)
        self.subtitle = f"{count(held, 'wait')} of the {sender} for a held ACK, {free:,} where none was held"
        self.note = "Milliseconds stand on logarithmic axes; what is shorter than 1 us is drawn at 1 us."

    @classmethod
    def from_tables(
        cls,
        events: pa.Table,
        streams: pa.Table,
        evidence: pa.Table,
        *,
        server: str | None = None,
        panels: Sequence[EvidencePanel] = get_args(EvidencePanel),
        start_ns: int = 0,
    ) -> Self:
        """Draw one server of these tables: `server` is an address or address:port, or the one with the most evidence.

        ValueError for a server or panel that does not exist, or a server without measurements. `start_ns` is the
        instant of 0 s.
        """
        name, server_streams = _choose_server(streams, evidence, server)
        of_server = [row for row in evidence.to_pylist() if endpoint(row["server"], row["server_port"]) == name]
        proof = max(of_server, key=lambda row: row["opportunities"] or 0, default=None)
        sender = str(proof["sender"]) if proof else "server"
        rows = np.flatnonzero(np.isin(arrays.numbers(events, "stream"), server_streams))
        read_events = events.take(arrays.integers(rows, "int64"))
        time, up = (
            arrays.numbers(read_events, "time").astype(np.int64),
            arrays.numbers(read_events, "from_client").astype(bool),
        )
        size = arrays.numbers(read_events, "len").astype(np.int64)
        number = {column: arrays.numbers(read_events, column).astype(float) for column in _MEASURED}
        is_bare_ack = (size == 0) & ~np.isnan(number["ack_rtt_ms"])
        by_sender = up if sender == "client" else ~up
        freed = np.flatnonzero(arrays.equals(read_events, "released_by", "nagle_ack") & by_sender)
        frames, hold = arrays.numbers(read_events, "frame").astype(np.int64), number["ack_hold_ms"]
        ack = np.searchsorted(frames, number["release_frame"][freed])
        ack = np.minimum(ack, len(frames) - 1)
        release = (time[freed] - time[ack]) / 1e6
        best = _number(proof, "sender_rtt_ms"), _number(proof, "receiver_rtt_ms")
        min_ms = _number(proof, "hold_min_ms")
        was_held = np.zeros(len(freed), bool) if min_ms is None else hold[ack] >= min_ms * 0.999
        was_free = ~was_held if min_ms is None else hold[ack] < min_ms / 2  # delays between the two count as neither
        wait = number["waited_ms"][freed]
        is_held_ack = is_bare_ack & ~by_sender & ~np.isnan(hold)
        measured = Measured(
            (time[is_bare_ack] - start_ns) / 1e9, number["ack_rtt_ms"][is_bare_ack], ~up[is_bare_ack],
            np.maximum(release - (best[0] or 0.0), 0.0), wait[was_free], wait[was_held], hold[is_held_ack],
            best, _number(proof, "tight_ms"), min_ms,
        )  # fmt: skip
        return cls(measured, title=name, sender=sender, panels=panels)

    def panels(self) -> Sequence[Panel]:
        """Return the chosen panels."""
        return [Panel(name, 11.0, left=7.5, right=2.0, below=4.4) for name in self.chosen]

    def keys(self) -> Sequence[Key]:
        """Return the legend of dots, bars and lines."""
        measured = self.measured
        held = Key(HELD, "held", f"{len(measured.held_ms):,} waits, and the ACKs")
        bound = Key(BOUND, "bound", "of what a kernel takes at best, or at most", "dash")
        keys_of = {
            "path": [Key(PATH, "round trip", "that a kernel ended by itself", "dot"), held, bound],
            "kernel": [Key(RELEASE, "release", "from the ACK to what it freed, less the path"), bound],
            "program": [Key(FREE, "not held", f"{len(measured.free_ms):,} waits: the control group"), held],
            "holds": [Key(HOLD, "ACKs", "by how late they came"), bound],
        }
        keys: list[Key] = []
        for name in self.chosen:
            keys += [key for key in keys_of[name] if key not in keys]
        return keys

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        draw = {"path": self._path, "kernel": self._kernel, "program": self._program, "holds": self._holds}
        for name, ax in axes.items():
            draw[name](ax)

    def _path(self, ax: Axes) -> None:
        """Draw the round trips over time, those of held ACKs apart, and the lower bounds."""
        measured = self.measured
        was_held = (
            np.zeros(len(measured.seconds), bool)
            if measured.hold_least_ms is None
            else measured.round_ms >= measured.hold_least_ms
        )
        for by_server, marker in ((True, "."), (False, "+")):
            for rows, colour in ((~was_held, PATH), (was_held, HELD)):
                of_side = rows & (measured.by_server == by_server)
                name = f"path-{'server' if by_server else 'client'}"
                raster = len(measured.seconds) > RASTER
                shown = measured.seconds[of_side], _drawn(measured.round_ms[of_side])
                ax.plot(*shown, marker, color=colour, markersize=4, rasterized=raster, gid=name)
        for best in measured.best_ms:
            if best is not None:
                ax.axhline(max(best, MIN_MS), color=BOUND, linestyle="--", linewidth=1.4, gid="bound")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(_plain)
        label(ax, x="time in the capture [s]; dots to the server, crosses to the client", y="round trip [ms]")

    def _kernel(self, ax: Axes) -> None:
        self._bars(ax, {"release": (self.measured.release_ms, RELEASE)}, self.measured.tight_ms)
        label(ax, x="from an ACK to the segment behind it, less the path [ms]", y="segments")

    def _program(self, ax: Axes) -> None:
        measured = self.measured
        self._bars(ax, {"not-held": (measured.free_ms, FREE), "held": (measured.held_ms, HELD)}, None)
        label(ax, x=f"between two small segments of the {self.sender} [ms]", y="waits")

    def _holds(self, ax: Axes) -> None:
        self._bars(ax, {"hold": (self.measured.hold_ms, HOLD)}, self.measured.hold_least_ms)
        label(ax, x="how much later than the path needs ACKs came [ms]", y="ACKs")

    def _bars(self, ax: Axes, groups: Mapping[str, tuple[Array, str]], line: float | None) -> None:
        """Draw stacked histograms over one logarithmic axis, and a dashed line at a bound."""
        drawn_ms = _drawn(np.concatenate([values for values, _ in groups.values()]))
        axis_ms = [*drawn_ms.tolist(), *([line] if line else [])] or [1.0]
        low, high = np.log10(max(min(axis_ms), MIN_MS)), np.log10(max(axis_ms))
        edges = np.logspace(low - 0.05, max(high, low + 0.5) + 0.05, BINS + 1)
        below = np.zeros(BINS)
        for name, (values, colour) in groups.items():
            bars = np.histogram(_drawn(values), edges)[0]
            ax.stairs(below + bars, edges, baseline=below, fill=True, color=colour, linewidth=0, gid=f"bars-{name}")
            below = below + bars
        if line:
            ax.axvline(max(line, MIN_MS), color=BOUND, linestyle="--", linewidth=1.4, gid="bound")
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(_plain)
        ax.minorticks_off()
        ax.set_xlim(edges[0], edges[-1])
        ax.set_ylim(0, max(float(below.max()) * 1.08, 1.0))


def needed() -> Needed:
    """Return the columns that `EvidencePlot.from_tables` reads."""
    return {
        "events": TableSlice(("frame", "time", "stream", "from_client", "len", "released_by", *_MEASURED)),
        "streams": TableSlice(("stream", "server", "server_port")),
        "evidence": TableSlice(("server", "server_port", "sender", "opportunities", "sender_rtt_ms", "receiver_rtt_ms",
                          "tight_ms", "hold_min_ms")),
    }  # fmt: skip


def _names(endpoint_name: str) -> tuple[str, ...]:
    """Return what a user may call this server: address and port, the address, an IPv6 address without brackets."""
    address = endpoint_name.rsplit(":", 1)[0]
    return endpoint_name, address, address.strip("[]")


def _choose_server(streams: pa.Table, evidence: pa.Table, server: str | None) -> tuple[str, Array]:
    """Return the server as address:port, and its streams."""
    ends: dict[str, Any] = streams.select(["stream", "server", "server_port"]).to_pydict()
    names = [endpoint(*end) for end in zip(ends["server"], ends["server_port"], strict=True)]
    weight: dict[str, int] = dict.fromkeys(names, 0)
    for row in evidence.select(["server", "server_port", "opportunities"]).to_pylist():
        name = endpoint(row["server"], row["server_port"])
        weight[name] = weight.get(name, 0) + (row["opportunities"] or 0)
    matching = [name for name in weight if server is None or server in _names(name)]
    if not matching:
        raise ValueError(f"no server {server!r}" if server else "no connection: there is nothing to draw")
    chosen = max(matching, key=lambda name: (weight[name], names.count(name)))
    return chosen, np.array([number for number, name in zip(ends["stream"], names, strict=True) if name == chosen])


def _number(row: Mapping[str, Any] | None, column: str) -> float | None:
    value = row[column] if row else None
    return None if value is None else float(value)


def _plain(value: float, _: float) -> str:
    return f"{value:g}"


def _drawn(values: Array) -> Array:
    """Return the values, limited to the range of the logarithmic axes."""
    return np.clip(values, MIN_MS, MAX_MS)
