"""`Waterfall`, a horizontal bar per exchange that is divided into its causes.

Reads the `exchanges` and `causes` tables; waterfall_rows.py computes the bars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from latpcap.format import count, percent
from latpcap.lazy import np, pa
from latpcap.options import Align, Sort
from latpcap.plot.cause_patterns import hatch
from latpcap.plot.display import HATCH, Display, Key, Panel, draw_text, label
from latpcap.plot.figure import drawable, font
from latpcap.plot.numbers import spent
from latpcap.plot.text import EM
from latpcap.plot.waterfall_rows import ALIGNS, NAMES, Plan, plan
from latpcap.vocabulary import CAUSES, PROVEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _HEAD, _BODY = 1.25, 1.6, 40.0
"""Height in em of a named bar, of a group's line, and of all bars without names."""
_NAME, _CAPTURE = 22, 16
"""Letters of an exchange's name, and further letters where the name includes its capture."""

PROBABLE = "//////"
"""Hatch of causes that are not proven; the hatches of families are thinner."""


class Waterfall(Display):
    """The time of each exchange by cause.

    Each bar is an exchange, from its first request byte to its last response byte, divided into its `causes` in order
    of time. Each family of causes has a hatch; white dashes mark causes that are not proven.
    If there are more exchanges than `max_rows`, a bar is the mean of several neighbours in the order of `sort`, and the
    picture names their number. The area of a colour is the time of that cause; the legend has its sum, which equals
    that of the tables.

    Attributes: `plan`, with bars, groups and pieces; after `plot`: `ax_` and `figure_`.
    """

    def __init__(
        self,
        numbers: Plan,
        *,
        title: str = "",
        align: Align = "start",
        sort: Sort = "latency_ms",
        captures: bool = False,
    ):
        """Store the bars and write the subtitle and note; ValueError without a bar."""
        if not numbers.bars:
            raise ValueError("no exchange: there is nothing to draw")
        self.plan, self.align, self.sort = numbers, align, sort
        self._letters = _NAME + (_CAPTURE if captures else 0)
        self.title = f"Waterfall of {title}" if title else "Waterfall"
        order = {"latency_ms": "the longest first", "start": "in order of time", "exchange": "in order of time"}
        bars = count(numbers.shown, "exchange")
        if numbers.each > 1:
            bars += f", each bar the mean of {numbers.each} neighbours"
        self.subtitle = f"{bars}, {order.get(sort, f'the most {sort} first')}; an area is time spent"
        if numbers.named:
            self.subtitle += "; bars are named " + ("capture " if captures else "") + "tcp.stream #index"
        if numbers.shown < numbers.total:
            left_out = numbers.total - numbers.shown
            share = percent((numbers.total_ms - numbers.shown_ms) / numbers.total_ms if numbers.total_ms else 0.0)
            self.note = f"{left_out:,} of {count(numbers.total, 'exchange')} are not shown: {share} of the time."

    @classmethod
    def from_tables(
        cls,
        exchanges: pa.Table,
        causes: pa.Table,
        *,
        title: str = "",
        groups: Sequence[str] | None = None,
        sort: Sort = "latency_ms",
        align: Align = "start",
        top: int | None = None,
        max_rows: int = 60,
        start_ns: int = 0,
        place: Callable[[int], str] | None = None,
    ) -> Self:
        """Compute the bars. `groups` holds the name of each exchange's group; `start_ns` is the instant of 0 s;
        `place` names a stream of several captures, by its file and its number there. Other options as those of
        `Capture.waterfall`. ValueError for an impossible option, or without an exchange.
        """
        if align not in ALIGNS:
            raise ValueError(f"no alignment {align!r}; known are {' and '.join(ALIGNS)}")
        if max_rows < 1 or (top is not None and top < 1):
            raise ValueError("at least 1 exchange has to be shown")
        if exchanges.num_rows == 0:
            raise ValueError("no exchange: there is nothing to draw")
        numbers = plan(
            exchanges,
            causes,
            groups,
            sort=sort,
            align=align,
            top=top,
            max_rows=max_rows,
            start_ns=start_ns,
            stream_name=place or str,
        )
        return cls(numbers, title=title, align=align, sort=sort, captures=place is not None)

    def panels(self) -> Sequence[Panel]:
        """Return one panel, as high as its bars need."""
        singly = self.plan.named
        bars = len(self.plan.bars) * _ROW if singly else _BODY
        left = 15.5 + (self._letters - _NAME) * 0.6 if singly else 6.5
        return [Panel("waterfall", max(4.0, bars + _HEAD * len(self.plan.groups)), left=left, right=6)]

    def keys(self) -> Sequence[Key]:
        """Return the causes that are there, with their time."""
        shown_ms = self.plan.shown_ms
        keys = [
            Key(
                CAUSES[name].colour,
                name,
                f"{spent(total)} ({percent(total / shown_ms if shown_ms else 0.0)})",
                hatch=hatch(name),
            )
            for name, total in self.plan.totals.items()
        ]
        if grade := self.plan.unproven:
            explanation = f"{grade}: confidence below {PROVEN:g}"
            keys.append(Key("#9A9A9A", "white dashes", explanation, alone=f"white dashes: {grade}", hatch=PROBABLE))
        return keys

    def _draw(self, axes: Mapping[str, Axes]) -> None:
        """Draw the pieces of all bars, the names of bars, and the heads of groups."""
        from matplotlib.collections import PolyCollection

        ax = axes["waterfall"]
        tops, bottoms, heads, deep = self._places(self.panels()[0].height)
        pieces = self.plan.pieces
        singly = self.plan.named
        gap = (bottoms - tops) * (0.12 if singly else 0.0)
        y0, y1 = (tops + gap)[pieces.bar], (bottoms - gap)[pieces.bar]
        x0, x1 = np.asarray(pieces.left), np.asarray(pieces.left) + np.asarray(pieces.width)
        for number, name in enumerate(NAMES):
            for proven in (True, False):
                rows = (np.asarray(pieces.cause) == number) & (np.asarray(pieces.proven) == proven)
                if not rows.any():
                    continue
                corners: Any = np.stack(
                    [np.stack([x[rows], y[rows]], axis=1) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))], axis=1
                )
                ax.add_collection(
                    PolyCollection(
                        corners,
                        facecolor=CAUSES[name].colour,
                        edgecolor=HATCH if proven else "white",
                        linewidth=0,
                        hatch=hatch(name) if proven else PROBABLE,
                        antialiased=singly,
                        gid=f"cause-{name}",
                    ),
                    autolim=False,
                )
        if not singly:  # white lines between the bars, which would be one block otherwise
            across, edges = np.tile([0.0, 1.0, np.nan], len(bottoms)), np.repeat(bottoms, 3)
            ax.plot(across, edges, transform=ax.get_yaxis_transform(), color="white", linewidth=0.9, gid="between")
        last = float(x1.max()) if len(x1) else 1.0
        first = float(x0.min()) if self.align == "clock" and len(x0) else 0.0
        last = last if last > first else first + 1.0
        ax.set_xlim(first, last + (last - first) * 0.005)
        ax.set_ylim(deep, 0)
        ax.grid(False, axis="y")
        label(ax, x="time in the capture [s]" if self.align == "clock" else "time since the first request byte [ms]")
        self._names(ax, tops, bottoms, x1, first)
        for y, group in heads:
            draw_text(ax, first, y, f" {group}", va="center", bold=True, clip_on=False)

    def _places(self, height: float) -> tuple[Any, Any, list[tuple[float, str]], float]:
        """Return the tops and bottoms of bars, the groups' lines, and the total height, in units of one exchange."""
        bars, groups = self.plan.bars, self.plan.groups
        tops = np.array([bar.top for bar in bars], float)
        bottoms = np.array([bar.bottom for bar in bars], float)
        body = height - _HEAD * len(groups)
        line = _HEAD * float(bottoms[-1]) / body
        heads = []
        for group in groups:
            heads.append((float(tops[group.first]) + line / 2, group.name))
            tops[group.first :] += line
            bottoms[group.first :] += line
        return tops, bottoms, heads, float(bottoms[-1])

    def _names(self, ax: Axes, tops: Any, bottoms: Any, ends: Any, first: float) -> None:
        """Write each exchange's name at the left of its bar and its latency after the bar's end; without names, only
        the number of exchanges on the y axis.
        """
        if not self.plan.named:
            if self.plan.groups:
                ax.set_yticks([])
            else:
                ax.yaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
            label(ax, y="exchanges")
            return
        label(ax, y=None)
        middles = (tops + bottoms) / 2
        ax.set_yticks([])
        right = np.full(len(self.plan.bars), 0.0)
        np.maximum.at(right, self.plan.pieces.bar, ends)
        for bar, y, x in zip(self.plan.bars, middles, right, strict=True):
            _beside(ax, bar.words, (x, y), 3, size=0.8)
            _beside(ax, _short(bar.name, self._letters), (first, y), -4, size=0.85)


def _short(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"


def _beside(ax: Axes, text: str, point: tuple[float, float], shift: float, *, size: float) -> None:
    """Write a text next to a place of the data: to its right by `shift` points, or to its left if negative."""
    side: Any = "left" if shift > 0 else "right"
    note = ax.annotate(drawable(text), point, (shift, 0), textcoords="offset points", ha=side, va="center")
    note.set_fontproperties(font(EM * size))
    note.set_parse_math(False)
    note.set_annotation_clip(False)
