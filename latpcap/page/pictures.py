"""The waterfall and the timeline of a report as markup. Every text is escaped by parts.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from latpcap import words
from latpcap.format import ms
from latpcap.lazy import np
from latpcap.page.parts import keys, safe
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    from latpcap.arrays import Array
    from latpcap.plot.waterfall_rows import Plan

_NONE = "#7A7A7A"
_SHAPES = {
    "line": "m-3-3h6v6h-6z",
    "server": "m0-4l4 4l-4 4l-4-4z",
    "client": "m-3-3l3-1l3 1l0 5h-6z",
    "stall": "m0-4l4 7h-8z",
    "windows": "m0 4l4-7h-8z",
    "loss": "m-3-3l6 6m0-6l-6 6",
    "unknown": "m-4 0h8m-4-4v8",
}
"""Path of the mark of each family of causes, as in `plot.Timeline`; "h0" with round ends is a dot."""
WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 960.0, 300.0, 80.0, 44.0, 10.0, 30.0
"""Size and margins of the timeline in pixels."""
MAX_DOTS, NAMED_DOTS = 4000, 200
"""Number of dots up to which each request has one, and number of dots with a text at the pointer."""
_FEW_POWERS = 4
"""Powers of ten up to which an axis has labels at 2 and 5 times each power, too."""
_CELLS = (400, 120)
"""Columns and rows of a grid in which all dots of a cell are one, if there are many."""
_STEPS_S = (1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600,
          7200, 10800, 21600, 43200, 86400)  # fmt: skip
"""Round distances between the marks of a time axis, in s."""


def colour(cause: str | None) -> str:
    """Return a cause's colour; grey without a cause."""
    return CAUSES[cause].colour if cause in CAUSES else _NONE


def shape(cause: str | None) -> str:
    """Return the mark of a cause's family, as the continuation of an SVG path."""
    return _SHAPES.get(CAUSES[cause].family, "h0") if cause in CAUSES else "h0"


def _width(cause: str | None, *, is_crowded: bool) -> float:
    cause_shape = shape(cause)
    if cause_shape == "h0":
        return 3 if is_crowded else 5
    return 0 if cause_shape.endswith("z") else 2


def waterfall(plan: Plan) -> str:
    """Return a bar per exchange, divided into causes and hatched by family; white dashes mark unproven causes."""
    names = tuple(CAUSES)
    pieces = plan.pieces
    ends = [0.0] * len(plan.bars)
    cut: list[list[str]] = [[] for _ in plan.bars]
    right_edges = [float(left + width) for left, width in zip(pieces.left, pieces.width, strict=True)]
    longest = max(right_edges, default=1.0) or 1.0
    for bar, cause, proven, left, width in zip(
        pieces.bar, pieces.cause, pieces.proven, pieces.left, pieces.width, strict=True
    ):
        name = names[int(cause)]
        look = f"f-{CAUSES[name].family}" if proven else "probable"
        style = f"left:{left / longest * 100:.3f}%;width:{width / longest * 100:.3f}%"
        style += f";background-color:{CAUSES[name].colour}"
        tip = words.say("page_piece" if proven else "page_piece_unproven", cause=name, took_ms=float(width))
        cut[bar].append(f'<i class="{look}" style="{style}" data-tip="{safe(tip)}"></i>')
        ends[bar] = max(ends[bar], float(left + width))
    rows = [
        f'<div class="bar"><span data-tip="{safe(bar.name)}">{safe(bar.name)}</span>'
        f'<span class="track">{"".join(cut[index])}</span><span>{safe(bar.words)}</span></div>'
        for index, bar in enumerate(plan.bars)
    ]
    legend = [
        (colour(cause), f"f-{CAUSES[cause].family}", cause, f"{ms(total)} ms") for cause, total in plan.totals.items()
    ]
    if plan.unproven:
        legend.append(("#9a9a9a", "probable", words.say("page_dashes"), words.say("page_dashes_mean")))
    return keys(legend) + f'<div class="bars">{"".join(rows)}</div>'


@dataclass(frozen=True)
class Dots:
    """The requests with a latency."""

    ns: Array
    """Instant at which each began, since 1970."""
    latency_ms: Array
    code: Array
    """Index of each top cause in `causes`; -1 without one."""
    causes: list[str]

    def named(self) -> list[int]:
        """Return the indices of the slowest requests, which have a text at the pointer."""
        return np.argsort(-self.latency_ms, kind="stable")[:NAMED_DOTS].tolist()


def timeline(dots: Dots, tips: Sequence[str]) -> str:
    """Return an SVG picture with a dot per request: x is its start, y its latency, the colour its top cause.

    `tips` are the texts at the pointer for `dots.named()`.
    """
    import math

    values, ns = np.sort(dots.latency_ms), dots.ns.astype(np.int64)
    first_ns, last_ns = int(ns.min()), int(ns.max())
    low, high = max(float(values[len(values) // 50]), 1e-3), max(float(values[-1]), 2e-3)
    is_log = high / low > 100
    span_ns = max(last_ns - first_ns, 1)
    floor = math.log10(low) if is_log else 0.0
    top = math.log10(high) if is_log else high
    top += (top - floor) * 0.04 or 1.0

    def height(latency_ms: Any) -> Any:
        value = np.log10(np.maximum(latency_ms, low)) if is_log else latency_ms
        return TOP + (1 - (value - floor) / (top - floor)) * (HIGH - TOP)

    x, y = LEFT + (ns - first_ns) / span_ns * (WIDE - RIGHT - LEFT), height(dots.latency_ms)
    cell = (x / WIDE * _CELLS[0]).astype(int) * (_CELLS[1] + 1) + (y / HIGH * _CELLS[1]).astype(int)
    drawn, counts = [], {}
    is_crowded = len(values) > MAX_DOTS
    for code in range(-1, len(dots.causes)):
        of_cause = np.flatnonzero(dots.code == code)
        if not len(of_cause):
            continue
        cause = dots.causes[code] if code >= 0 else None
        counts[cause] = len(of_cause)
        if is_crowded:
            of_cause = of_cause[np.sort(np.unique(cell[of_cause], return_index=True)[1])]
        mark = shape(cause)
        path = "".join(f"M{dot_x:.1f} {dot_y:.1f}{mark}" for dot_x, dot_y in zip(x[of_cause], y[of_cause], strict=True))
        width = _width(cause, is_crowded=is_crowded)
        drawn.append(
            f'<path d="{path}" stroke="{colour(cause)}" fill="{colour(cause)}" stroke-width="{width}" '
            'stroke-linecap="round" opacity="0.75"/>'
        )
    for index, tip in zip(dots.named(), tips, strict=True):
        drawn.append(
            f'<circle cx="{x[index]:.1f}" cy="{y[index]:.1f}" r="6" fill="transparent" data-tip="{safe(tip)}"/>'
        )
    lines = [_row(value, float(height(value))) for value in _levels(low, high, log=is_log)]
    ticks = [_tick(ns, LEFT + (ns - first_ns) / span_ns * (WIDE - RIGHT - LEFT)) for ns in clock(first_ns, last_ns)]
    legend = [
        (colour(cause), "", cause or words.say("page_no_cause"), f"{counts[cause]:,}")
        for cause in sorted(counts, key=lambda cause: -counts[cause])
    ]
    text_style = 'font-family="system-ui,sans-serif" font-size="13" fill="#444"'
    return (
        keys(legend) + f'<div class="wide"><svg class="zooms" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE:g} '
        f'{HIGH + BOTTOM:g}" role="img" aria-label="{safe(words.say("page_over_time"))}" {text_style}>'
        + "".join([*lines, *ticks, *drawn])
        + "</svg></div>"
    )


def _levels(low: float, high: float, *, log: bool) -> list[float]:
    import math

    if log:
        powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        steps = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
        return [n * 10.0**power for power in powers for n in steps if low <= n * 10.0**power <= high]
    step = 10 ** math.floor(math.log10(high))
    step = next(candidate for candidate in (step / 5, step / 2, step, step * 2) if high / candidate <= 6)
    return [step * number for number in range(int(high / step) + 1)]


def _plain(value: float) -> str:
    """Write a round number: 0.002, 50, 25,000."""
    return f"{value:,.0f}" if value >= 1 and abs(value - round(value)) < 1e-9 else f"{value:.6g}"


def _row(value: float, y: float) -> str:
    return (
        f'<path d="M{LEFT:g} {y:.1f}H{WIDE - RIGHT:g}" stroke="#e3e3e8"/>'
        f'<text x="{LEFT - 6:g}" y="{y + 4:.1f}" text-anchor="end">{_plain(value)} ms</text>'
    )


def _tick(ns: int, x: float) -> str:
    text = _hour(ns)
    return (
        f'<path d="M{x:.1f} {TOP:g}V{HIGH:g}" stroke="#f0f0f3"/>'
        f'<text x="{x:.1f}" y="{HIGH + 20:g}" text-anchor="middle">{text}</text>'
    )


def clock(first_ns: int, last_ns: int, max_count: int = 7) -> list[int]:
    """Return at most `max_count` round instants between these two, in ns."""
    span_s = (last_ns - first_ns) / 1e9
    whole_days_s = _STEPS_S[-1] * (int(span_s / _STEPS_S[-1] / max_count) + 1)
    step_s = next((step for step in _STEPS_S if span_s / step <= max_count - 1), whole_days_s)
    step_ns = round(step_s * 1e9)
    return list(range(-(-first_ns // step_ns) * step_ns, last_ns + 1, step_ns))


def _hour(ns: int) -> str:
    """Write hh:mm:ss, with decimals if there are any."""
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    fraction = f"{ns % 1_000_000_000:09}"[:3].rstrip("0")
    return f"{moment:%H:%M:%S}" + (f".{fraction}" if fraction else "")


def instant(ns: int) -> str:
    """Write date and time in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ns // 1_000_000 % 1000:03}"
