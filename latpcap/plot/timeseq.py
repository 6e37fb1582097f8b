"""`TimeSequence`, tcptrace's time-sequence graph of one direction of a stream, with the stalls marked.

Below it are panels of bytes in flight, round trips and throughput. The numbers are computed in timeseq_data.py from the
`events` and `causes` of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, get_args

from latpcap.format import ms
from latpcap.options import SequencePanel, Side
from latpcap.plot import timeseq_data
from latpcap.plot.cause_patterns import unproven
from latpcap.plot.display import Display, Key, Panel, draw_text, label
from latpcap.plot.numbers import size
from latpcap.plot.text import WIDTH, width_of
from latpcap.plot.timeseq_data import Limit, Numbers, Spans
from latpcap.vocabulary import CAUSES, PROVEN, SIDES

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

PANELS: tuple[SequencePanel, ...] = get_args(SequencePanel)
_LEFT, _RIGHT = 8.0, 2.0
"""Room beside the panels, in em."""
_DATA, _REPEAT, _LATE, _SACK = "#1F1F1F", "#D0021B", "#8C6D5E", "#AA4499"
_ACK, _WINDOW, _ZERO = "#117733", "#B8860B", "#14104A"
LIMITS = {
    "receiver_window": CAUSES["receive_window"].colour,
    "receiver_program": CAUSES["zero_window"].colour,
    "sender_program": CAUSES["server_think"].colour,
    "sender_buffer": "#8C564B",
    "congestion": CAUSES["cwnd"].colour,
    "start": "#B5BD61",
    "line": CAUSES["bandwidth"].colour,
    "pacing": "#17A2A2",
    "http2_window": "#E377C2",
    "none": "#9A9A9A",
}
"""The colour of each limit of a transfer; a limit that is also a cause has the cause's colour."""
LIMIT_WORDS = "limits the transfer"
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6}
_MAX_CAPPED = 300
"""Upper bound on the marks that have caps at their ends."""


class TimeSequence(Display):
    """tcptrace's time-sequence graph of one direction of a stream, with the causes of its stalls.

    Each segment is a vertical mark from its first to its last sequence number. The line below is the cumulative ACK,
    the line above it the end of the receiver's window. Retransmissions, SACK blocks and duplicate ACKs have colours of
    their own, and each wait of at least `mark_ms` has that of its cause. The panels below share the time axis: bytes in
    flight and the window, round trips (from a segment to its ACK at the point of capture), throughput. A bar along the
    lower edge is a transfer, in the colour of its limit.

    Attributes: `data`, the numbers; after `plot`: `ax_` (the sequence panel) and `figure_`.
    """

    def __init__(
        self, data: Numbers, *, title: str = "", panels: Sequence[SequencePanel] = PANELS, mark_ms: float = 5.0
    ):
        """Store the numbers and write the subtitle and notes; ValueError for an unknown panel or none."""
        for name in panels:
            if name not in PANELS:
                raise ValueError(f"no panel {name!r}; known are {', '.join(PANELS)}")
        if not panels:
            raise ValueError("no panel: there is nothing to draw")
        self.data = data
        self.names = tuple(name for name in PANELS if name in panels)
        self.title = f"Time-sequence of {title}" if title else "Time-sequence"
        self.mark_ms = mark_ms
        receiver = SIDES[data.sender]
        number = len(data.repeats)
        repeats = f", {number:,} sent again" if number else ", none sent again"
        self.subtitle = (
            f"from the {data.sender} to the {receiver}: {size(data.payload)} in {data.total:,} new segments{repeats}"
        )
        notes = []
        if data.window is None and "sequence" in self.names:
            notes.append(f"No window line: the {receiver}'s SYN is not in the capture, and with it its window scale.")
        if data.drawn < data.total:
            notes.append(
                f"{data.total:,} segments are {data.drawn:,} marks: neighbours in time and sequence are joined."
            )
        self.note = " ".join(notes)

    @classmethod
    def from_tables(
        cls,
        events: pa.Table,
        causes: pa.Table | None = None,
        *,
        title: str = "",
        sender: Side | None = None,
        frames: tuple[int, int] | None = None,
        panels: Sequence[SequencePanel] = PANELS,
        mark_ms: float = 5.0,
        start_ns: int = 0,
        transfers: pa.Table | None = None,
    ) -> Self:
        """Compute the graph from the tables of one stream. `start_ns` is the instant of 0 s; other options as those of
        `Stream.time_sequence`. ValueError for an impossible option, or if there is no data to show.
        """
        if not mark_ms > 0:
            raise ValueError(f"mark_ms is {mark_ms}, but must be more than 0 ms")
        data = timeseq_data.read(
            events, causes, sender=sender, frames=frames, start_ns=start_ns, mark_ms=mark_ms, transfers=transfers
        )
        return cls(data, title=title, panels=panels, mark_ms=mark_ms)

    def panels(self) -> Sequence[Panel]:
        """Return the chosen panels; that of the sequence numbers is the highest."""
        heights = {"sequence": 30.0, "flight": 9.0, "rtt": 9.0, "throughput": 9.0}
        return [Panel(name, heights[name], left=_LEFT, right=_RIGHT, shares_x=True) for name in self.names]

    def keys(self) -> Sequence[Key]:
        """Return the marks that occur, the limits of transfers, and the causes of the stalls."""
        keys: list[Key] = []
        if "sequence" in self.names:
            keys.append(Key(_DATA, "segment", "first to last byte", "line"))
            for marks, key in (
                (self.data.repeats, Key(_REPEAT, "retransmission", shape="line")),
                (self.data.late, Key(_LATE, "out_of_order", shape="line")),
                (self.data.sacks, Key(_SACK, "SACK", shape="line")),
            ):
                keys += [key] if len(marks) else []
            keys.append(Key(_ACK, "acknowledged", shape="line"))
            if self.data.window is not None:
                where = _window_note(self._top(), self.data.window.values)
                keys.append(Key(_WINDOW, "window", where, "dash"))
            keys += [Key(_ACK, "duplicate_ack", shape="cross")] if len(self.data.duplicates.seconds) else []
            if len(self.data.zero_windows.seconds):
                keys.append(Key(_ZERO, "zero_window", "announced", "square"))
        elif "flight" in self.names and self.data.room is not None:
            keys.append(Key(_WINDOW, "window", "how much may be in flight", "dash"))
        limits = {limit.limited_by for limit in self.data.limits}
        keys += [Key(LIMITS[name], name, LIMIT_WORDS) for name in LIMITS if name in limits]
        spent: dict[str, float] = {}
        for stall in self.data.stalls:
            spent[stall.cause] = spent.get(stall.cause, 0.0) + stall.ms
        for name in CAUSES:
            if name in spent:
                number = sum(stall.cause == name for stall in self.data.stalls)
                counted = f"{number} of {self.mark_ms:g} ms or more: {ms(spent[name])} ms"
                keys.append(Key(CAUSES[name].colour, name, counted))
        if grade := unproven(stall.grade for stall in self.data.stalls):
            text, alone = f"{grade}: confidence below {PROVEN:g}", f"dashed bar: {grade}"
            keys.append(Key("#6E6E6E", "dashed bar", text, "dash", alone))
        return keys

    def _range(self) -> tuple[float, float]:
        """Return the least and the greatest sequence number of the data."""
        data = self.data
        drawn = [spans for spans in (data.segments, data.repeats, data.late) if len(spans)]
        return min(float(series.low.min()) for series in drawn), max(float(series.high.max()) for series in drawn)

    def _top(self) -> float:
        """Return the upper end of the sequence panel. A window far above the data is left out, as it would flatten
        them.
        """
        low, high = self._range()
        room = max(1.0, (high - low) * 0.04)
        edge = float(max(self.data.window.values, default=0)) if self.data.window is not None else 0.0
        return max(edge + room, high + 3 * room) if edge <= high + 1.5 * (high - low) else high + 3 * room

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        first, last = self.data.span
        room = (last - first) * 0.012 or 1e-3
        for name, ax in axes.items():
            ax.set_xlim(first - room, last + room)
            {"sequence": self._sequence, "flight": self._flight, "rtt": self._rtt, "throughput": self._rate}[name](ax)
            for stall in self.data.stalls:
                ax.axvspan(
                    stall.begin, stall.end, color=CAUSES[stall.cause].colour, alpha=0.13, linewidth=0, zorder=0.5
                )
        self._limits(next(iter(axes.values())))
        if "sequence" in axes:
            self._labels(axes["sequence"])
        label(list(axes.values())[-1], x="time in the capture [s]")

    def _sequence(self, ax: Axes) -> None:
        data = self.data
        if data.window is not None:
            # above the ACK line, with which it coincides where the window is 0
            _steps(ax, data.window, _WINDOW, 1.2, "window", dashes=(0, (5, 2)))
        _steps(ax, data.ack, _ACK, 1.3, "ack")
        _marks(ax, data.sacks, _SACK, 2.0, "sack", 2, alpha=0.4)  # below retransmissions, which may be inside
        _marks(ax, data.segments, _DATA, 1.3, "segments", 3)
        _marks(ax, data.late, _LATE, 1.8, "out_of_order", 4)
        _marks(ax, data.repeats, "white", 4.4, "around", 3.9)
        _marks(ax, data.repeats, _REPEAT, 2.2, "retransmission", 4)
        for line, mark, colour in ((data.duplicates, "x", _ACK), (data.zero_windows, "s", _ZERO)):
            ax.plot(line.seconds, line.values, mark, color=colour, markersize=4, linestyle="none", zorder=5)
        low, high = self._range()
        ax.set_ylim(low - max(1.0, (high - low) * 0.04), self._top())
        ax.yaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
        label(ax, y="relative sequence number [byte]")

    def _labels(self, ax: Axes) -> None:
        """Draw the stalls' bars along the upper edge, and their lengths where there is room, the longest first."""
        first, last = ax.get_xlim()
        em = (last - first) / (WIDTH - _LEFT - _RIGHT)
        taken: list[tuple[float, float]] = []
        transform = ax.get_xaxis_transform()
        for stall in sorted(self.data.stalls, key=lambda stall: -stall.ms):
            colour, dashes = CAUSES[stall.cause].colour, "-" if stall.grade == "proven" else (0, (1, 0.6))
            ax.plot([stall.begin, stall.end], [0.992, 0.992], color=colour, linewidth=4, transform=transform,
                    solid_capstyle="butt", linestyle=dashes, zorder=6)  # fmt: skip
            begin, end = max(stall.begin, first), min(stall.end, last)
            for text in (f"{stall.cause} {ms(stall.ms)} ms", f"{ms(stall.ms)} ms"):
                half = width_of(text, 0.8) * em / 2 + 0.3 * em
                middle = min(max((begin + end) / 2, first + half), last - half)
                if half <= (end - begin) / 2 + 1.5 * em and all(
                    middle + half < a or middle - half > b for a, b in taken
                ):
                    draw_text(
                        ax,
                        middle,
                        0.975,
                        text,
                        transform=transform,
                        ha="center",
                        va="top",
                        size=0.8,
                        zorder=6,
                        bbox=_PAPER,
                    )
                    taken.append((middle - half, middle + half))
                    break

    def _limits(self, ax: Axes) -> None:
        """Draw each transfer's limit as a bar along the lower edge, with its rate where there is room."""
        first, last = ax.get_xlim()
        em = (last - first) / (WIDTH - _LEFT - _RIGHT)
        transform = ax.get_xaxis_transform()
        above = 0.8 / self.panels()[0].height
        for limit in self.data.limits:
            colour = LIMITS[limit.limited_by]
            ax.plot([limit.begin, limit.end], [0.008, 0.008], color=colour, linewidth=4, transform=transform,
                    solid_capstyle="butt", zorder=6, gid=f"limit-{limit.limited_by}")  # fmt: skip
            for text in (_limit_words(limit), limit.limited_by):
                if width_of(text, 0.8) * em <= limit.end - limit.begin:
                    middle = (limit.begin + limit.end) / 2
                    draw_text(ax, middle, above, text, transform=transform, ha="center", va="bottom",
                              size=0.8, zorder=6, bbox=_PAPER)  # fmt: skip
                    break

    def _flight(self, ax: Axes) -> None:
        ax.plot(self.data.flight.seconds, self.data.flight.values, ".", color=_DATA, markersize=3)
        top = float(max(self.data.flight.values, default=1)) * 1.1
        if self.data.room is not None:
            _steps(ax, self.data.room, _WINDOW, 1.2, "room", dashes=(0, (5, 2)))
            max_bytes = float(max(self.data.room.values, default=0)) * 1.1
            if max_bytes <= 2.5 * top:  # a much larger window would flatten the bytes
                top = max(top, max_bytes)
        ax.set_ylim(0, top or 1)
        ax.yaxis.set_major_formatter(lambda value, _place: size(value))
        label(ax, y="in flight")

    def _rtt(self, ax: Axes) -> None:
        ax.plot(self.data.rtt.seconds, self.data.rtt.values, ".", color=_ACK, markersize=3.5)
        top = float(max(self.data.rtt.values, default=1))
        ax.set_ylim(0, top * 1.1 or 1)
        label(ax, y="ACK RTT [ms]")

    def _rate(self, ax: Axes) -> None:
        edges, sent, acknowledged = self.data.bins
        ax.stairs(sent, edges, color=_DATA, linewidth=1.2)
        ax.stairs(acknowledged, edges, color=_ACK, linewidth=1.2, linestyle=(0, (3, 1.5)))
        ax.set_ylim(0, float(max(*sent, *acknowledged, 0)) * 1.1 or 1)
        label(ax, y="Mbit/s")


def _limit_words(limit: Limit) -> str:
    rate = "" if limit.rate_mbit is None else f" at {limit.rate_mbit:.3g} Mbit/s"
    return f"{limit.limited_by} ({limit.grade}){rate}"


def _window_note(top: float, values: Any) -> str:
    """Return the words for a window line that is above the upper edge; empty if all of it is visible."""
    if not len(values) or max(values) <= top:
        return ""
    return "above the picture" if min(values) > top else "partly above the picture"


def _steps(ax: Axes, line: Any, colour: str, width: float, gid: str, dashes: Any = "-") -> None:
    zorder = 1.5 if dashes == "-" else 1.6
    look: Any = {"color": colour, "linewidth": width, "linestyle": dashes, "zorder": zorder, "gid": gid}
    ax.plot(line.seconds, line.values, drawstyle="steps-post", **look)


def _marks(ax: Axes, spans: Spans, colour: str, width: float, gid: str, zorder: float, alpha: float = 1) -> None:
    """Draw vertical lines; if there are few, with caps, as a short segment would not be visible without them."""
    if not len(spans):
        return
    look: Any = {"color": colour, "zorder": zorder, "alpha": alpha}
    ax.vlines(spans.seconds, spans.low, spans.high, linewidth=width, gid=gid, **look)
    if len(spans) <= _MAX_CAPPED:
        for ends in (spans.low, spans.high):
            ax.plot(spans.seconds, ends, "_", markersize=4, markeredgewidth=width * 0.8, **look)
