"""Computes the bars of a waterfall and their pieces. Draws nothing.

Reads the `exchanges` and `causes` tables. A bar is one exchange, or the mean of several neighbours if there are too
many. The height of a bar is its number of exchanges, so that an area is a sum of milliseconds of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from latpcap import arrays
from latpcap.format import ms, printable, requested
from latpcap.lazy import np, pa, pc
from latpcap.options import Align, Sort
from latpcap.plot.cause_patterns import unproven
from latpcap.plot.numbers import spent
from latpcap.tables import Needed, TableSlice
from latpcap.vocabulary import CAUSES, PROVEN, grade_of

MAX_MEAN_BARS = 80
"""Upper bound on the bars without names, each 6 pixels high; with more exchanges each bar is a mean."""
MAX_GROUPS = 12
"""Upper bound on the groups; the last ones are put together as "others"."""
SORTS = ("latency_ms", "start", "exchange")
ALIGNS: tuple[Align, ...] = get_args(Align)
NAMES = tuple(CAUSES)
_LABELS = ["stream", "index", "method", "target", "status", "latency_ms", "cut_by"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from `top` to `bottom`, in exchanges from above; `name` is written at its left, `words` at its end."""

    top: float
    bottom: float
    name: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive bars, from the index `first` to `last`, under a line with the group's name."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of the bars as columns: index of the bar, index of the cause in the vocabulary, whether the cause is
    proven, and begin and width on the time axis (ms, or s on the clock).
    """

    bar: Any
    cause: Any
    proven: Any
    left: Any
    width: Any
    grades: frozenset[str]
    """The grades of all causes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A finished waterfall: bars, groups and pieces."""

    bars: tuple[Bar, ...]
    groups: tuple[Group, ...]
    pieces: Pieces
    each: int
    """Exchanges per bar."""
    named: bool
    """Whether each exchange has a bar with its name."""
    shown: int
    """Number of exchanges shown."""
    total: int
    totals: dict[str, float]
    """ms by cause."""
    unproven: str
    """What the legend calls the pieces that are not proven; empty if all are."""
    shown_ms: float
    total_ms: float


def plan(
    exchanges: pa.Table,
    causes: pa.Table,
    names: Sequence[str] | None,
    *,
    sort: Sort,
    align: Align,
    top: int | None,
    max_rows: int,
    start_ns: int,
    stream_name: Callable[[int], str] = str,
) -> Plan:
    """Compute the bars. `names` holds the group of each exchange, or is None; `stream_name` names a stream. Options as
    those of `Waterfall`.
    """
    n = exchanges.num_rows
    needed((), sort)
    order = _order(exchanges, sort)
    total_ms = float(causes["duration_ms"].to_numpy().sum())
    limit = top
    if align == "clock":
        limit = min(n, max_rows, top or n)
    order = order[:limit]
    group_of, group_names = _grouped(names, order)
    order = order[np.argsort(group_of[order], kind="stable")]
    named = len(order) <= max_rows
    per_bar = 1 if named else -(-len(order) // MAX_MEAN_BARS)
    rows_of_groups = [(name, order[group_of[order] == number]) for number, name in enumerate(group_names)]
    bars, groups, bar_of = _stacked(exchanges, rows_of_groups, per_bar, stream_name if named else None)
    pieces = _pieces(exchanges, causes, bar_of, bars, per_bar, align, start_ns)
    code = np.asarray(pieces.cause)
    high = np.array([bar.bottom - bar.top for bar in bars])
    area = np.asarray(pieces.width) * high[pieces.bar] * (1000.0 if align == "clock" else 1.0)
    totals = {name: float(area[code == i].sum()) for i, name in enumerate(NAMES) if (code == i).any()}
    headed = tuple(
        Group(f"{group.name}: {_count(bars, group)}, {_time(pieces, area, group)}", group.first, group.last)
        for group in groups
    )
    return Plan(
        bars=tuple(bars),
        groups=headed if names is not None else (),
        pieces=pieces,
        each=per_bar,
        named=named,
        shown=len(order),
        total=n,
        totals=totals,
        unproven=unproven(pieces.grades),
        shown_ms=float(area.sum()),
        total_ms=total_ms,
    )


def _stacked(
    exchanges: pa.Table, rows_of_groups: list[tuple[str, Any]], per_bar: int, stream_name: Callable[[int], str] | None
) -> tuple[list[Bar], list[Group], Any]:
    """Return the bars from above, with names if there is a `stream_name`; their groups; each exchange's bar or -1."""
    bar_of = np.full(exchanges.num_rows, -1)
    bars: list[Bar] = []
    groups: list[Group] = []
    below = 0
    for name, group_rows in rows_of_groups:
        first = len(bars)
        for begin in range(0, len(group_rows), per_bar):
            rows = group_rows[begin : begin + per_bar]
            bar_of[rows] = len(bars)
            bars.append(_bar(exchanges, rows, below, stream_name) if stream_name else Bar(below, below + len(rows)))
            below += len(rows)
        groups.append(Group(name, first, len(bars) - 1))
    return bars, groups, bar_of


def needed(columns: Sequence[str], sort: Sort) -> Needed:
    """Return the columns that `plan` reads, with these of `exchanges` for groups. ValueError for an unknown `sort`."""
    key = f"{sort}_ms" if sort in CAUSES else sort
    if key == sort and sort not in SORTS:
        raise ValueError(f"cannot sort by {sort!r}; known are {', '.join((*SORTS, *CAUSES))}")
    return {
        "exchanges": TableSlice((*_LABELS, "start", key, *columns)),
        "causes": TableSlice(("cause", "confidence", "duration_ms"), _of_exchanges),
    }


def _of_exchanges(causes: pa.Table) -> pa.ChunkedArray:
    return pc.is_valid(causes["exchange"])


def _order(exchanges: pa.Table, sort: Sort) -> Any:
    """Return the rows in the order of their bars from above: the longest first, or by time."""
    if sort in CAUSES:
        keys = -exchanges[f"{sort}_ms"].to_numpy()
    elif sort == "latency_ms":
        keys = -np.nan_to_num(exchanges["latency_ms"].to_numpy(), nan=-1.0)
    else:
        keys = exchanges[sort].cast("int64").to_numpy()
    return np.lexsort((exchanges["exchange"].to_numpy(), keys))


def _grouped(names: Sequence[str] | None, order: Any) -> tuple[Any, list[str]]:
    """Return the number of each exchange's group, and the groups' names in order of appearance; the last ones are
    joined.
    """
    if names is None:
        return np.zeros(int(order.max()) + 1 if len(order) else 0, dtype=int), [""]
    distinct = list(dict.fromkeys(names[i] for i in order))
    shown = distinct if len(distinct) <= MAX_GROUPS else distinct[: MAX_GROUPS - 1]
    number = {name: i for i, name in enumerate(shown)}
    if len(shown) < len(distinct):
        shown = [*shown, f"{len(distinct) - len(shown)} others"]
    return np.array([number.get(name, len(shown) - 1) for name in names]), shown


def _bar(exchanges: pa.Table, rows: Any, below: int, stream_name: Callable[[int], str]) -> Bar:
    row = exchanges.slice(int(rows[0]), 1).select(_LABELS).to_pylist()[0]
    request = printable(requested(row["method"], row["target"]))
    name = f"{stream_name(row['stream'])} #{row['index']}  {request}".rstrip()
    outcome = f"{ms(row['latency_ms'])} ms" if row["latency_ms"] is not None else f"cut by {row['cut_by']}"
    if row["status"] is not None and row["status"] >= 400:
        outcome += f", status {row['status']}"
    return Bar(below, below + 1, name, outcome)


def _pieces(
    exchanges: pa.Table, causes: pa.Table, bar_of: Any, bars: Sequence[Bar], per_bar: int, align: Align, start_ns: int
) -> Pieces:
    """Return the pieces of all bars; ValueError for causes of unknown exchanges."""
    numbers = exchanges["exchange"].to_numpy()
    exchange_row = np.searchsorted(numbers, causes["exchange"].to_numpy())
    if (
        len(numbers)
        and not (numbers[np.minimum(exchange_row, len(numbers) - 1)] == causes["exchange"].to_numpy()).all()
    ):
        raise ValueError("the causes table has exchanges that the exchanges table has not")
    bar = bar_of[exchange_row] if len(numbers) else np.empty(0, dtype=int)
    keep = bar >= 0
    bar, exchange_row = bar[keep], exchange_row[keep]
    index = {name: i for i, name in enumerate(NAMES)}
    column = causes["cause"].combine_chunks()
    names = column.dictionary.to_pylist() if hasattr(column, "dictionary") else None
    if names is None:
        code = np.array([index[name] for name in column.to_pylist()], dtype=int)[keep]
    else:
        code = np.array([index[name] for name in names], dtype=int)[column.indices.to_numpy()][keep]
    confidence = causes["confidence"].to_numpy()[keep]
    proven, grades = confidence >= PROVEN, frozenset(map(grade_of, np.unique(confidence).tolist()))
    start = arrays.nanoseconds(causes["start"])[keep]
    begin = arrays.nanoseconds(exchanges["start"])[exchange_row]
    width = causes["duration_ms"].to_numpy()[keep]
    if align == "clock":
        return Pieces(bar, code, proven, (start - start_ns) / 1e9, width / 1e3, grades)
    left_ms = (start - begin) / 1e6
    if per_bar == 1:
        return Pieces(bar, code, proven, left_ms, width, grades)
    bar, cause, proven, left_ms, width = _mean(bar, code, proven, left_ms + width / 2, width, bars)
    return Pieces(bar, cause, proven, left_ms, width, grades)


def _mean(bar: Any, code: Any, proven: Any, middle: Any, width: Any, bars: Sequence[Bar]) -> tuple[Any, ...]:
    """Return the columns of `Pieces` for bars of several exchanges: the mean time of each cause, in the order of their
    mean instants.
    """
    kinds = 2 * len(NAMES)
    cause_and_grade = 2 * code + proven
    key = bar * kinds + cause_and_grade
    shape = len(bars) * kinds
    sums = np.bincount(key, weights=width, minlength=shape)
    middles = np.bincount(key, weights=width * middle, minlength=shape)
    filled = np.flatnonzero(sums > 0)
    row, kind_of = filled // kinds, filled % kinds
    middle_of = middles[filled] / sums[filled]
    order = np.lexsort((middle_of, row))
    filled, row, kind_of = filled[order], row[order], kind_of[order]
    high = np.array([b.bottom - b.top for b in bars])
    widths = sums[filled] / high[row]
    ends = np.cumsum(widths)
    base = np.zeros(len(bars))
    firsts = np.flatnonzero(np.diff(row, prepend=-1))
    base[row[firsts]] = ends[firsts] - widths[firsts]
    return row, kind_of // 2, (kind_of % 2).astype(bool), ends - widths - base[row], widths


def _count(bars: Sequence[Bar], group: Group) -> str:
    number = int(bars[group.last].bottom - bars[group.first].top)
    return f"{number:,} exchange{'' if number == 1 else 's'}"


def _time(pieces: Pieces, area: Any, group: Group) -> str:
    is_in_group = (pieces.bar >= group.first) & (pieces.bar <= group.last)
    return spent(float(area[is_in_group].sum()))
