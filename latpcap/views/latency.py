"""`Latency`: how long requests took, in groups: as a data frame, as text in the shape of wrk's report, as a picture.

Mean and deviation follow wrk's rules, percentiles are nearest ranks. wrk's correction for coordinated omission is not
applied: these are the exchanges of the capture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from latpcap.format import count
from latpcap.lazy import np, pa, pd
from latpcap.options import Group, LatencyPanel, Scale, Which
from latpcap.views import groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latpcap.arrays import Array
    from latpcap.plot.latency import LatencyPlot

WHICH: tuple[Which, ...] = get_args(Which)
"""The latency of an exchange: as measured at the capture, or on the client's own clock (an estimate)."""

PERCENTILES = (50.0, 75.0, 90.0, 99.0)
"""Percentiles of a report unless others are chosen."""
MAX_ROWS = 40
"""Upper bound on the groups that the text lists."""
_WHY = {
    "latency_ms": "not complete in the capture",
    "client_latency_ms": "not complete in the capture, or the path to the client not known",
}
_OTHERS = 8
"""Upper bound on the groups that a picture overlays."""
_Spans: TypeAlias = list[tuple[int, int]]
"""Time spans: first and last instant in ns since 1970."""


class Latency:
    """How long requests took, by group.

    Attributes: `table`, a data frame with a row per group (a single row without groups), sorted by total time, or by
    time for time spans; `by`, `which` and `percentiles` as given; `title`, what was measured; `seconds`, from the first
    request to the last answer; for several captures, the time that any of them covers.
    Columns of `table`:

    | column | unit | meaning |
    | --- | --- | --- |
    | the groups | | as named in `by`; `server` with its port, `client` without |
    | `count` | | exchanges that have this latency |
    | `left_out` | | exchanges that have none: not complete in the capture, or not known at the client |
    | `mean_ms`, `stdev_ms`, `max_ms` | ms | deviation of the sample (n - 1): null for one exchange |
    | `within_stdev_percent` | % | exchanges within one deviation of the mean |
    | `p50_ms`, ... | ms | nearest rank: always a value that occurs |
    | `requests_per_s` | 1/s | `count` by `seconds`, in groups of captures, folders or time by theirs; null for 0 s |
    | `transfer_bytes_per_s` | bytes/s | bytes of these answers by the same seconds |

    Durations of a group without any counted exchange are null.
    """

    def __init__(
        self,
        samples: pd.DataFrame,
        *,
        by: Sequence[Group] = (),
        which: Which = "latency_ms",
        percentiles: Sequence[float] = PERCENTILES,
        title: str = "",
    ):
        self.by = tuple(by)
        self.which = which
        self.percentiles = tuple(percentiles)
        self.title = title
        self._samples = samples
        self._covered = _covered(samples[samples[which].notna()], [name for name in by if name in groups.PLACES])
        self.seconds = length(merged([span for spans in self._covered.values() for span in spans]))
        self.table = self._table()

    @classmethod
    def from_tables(
        cls,
        exchanges: pa.Table,
        *,
        by: Group | Sequence[Group] | None = None,
        which: Which = "latency_ms",
        percentiles: Sequence[float] = PERCENTILES,
        title: str = "",
        files: Sequence[str] = ("",),
    ) -> Latency:
        """Summarise the exchanges. `by` is a word that `groups.chosen` knows, several, or None for one group; `files`
        are the captures. ValueError for another word, another `which`, or a percentile outside 0 to 100.
        """
        names = groups.chosen(by)
        needed(names, which)
        for percent in percentiles:
            if not 0 <= percent <= 100:
                raise ValueError(f"percentile {percent:g} is not between 0 and 100")
        return cls(
            _samples(exchanges, names, which, files), by=names, which=which, percentiles=percentiles, title=title
        )

    def rows(self) -> list[tuple[str, pd.DataFrame]]:
        """Return the name and exchanges of each group, in the order of `table`."""
        if not self.by:
            return [("all", self._samples)]
        # dict(groups) and list(groups) need the number of groups, which pandas 2 miscounts where a key is null
        groups_of = self._samples.groupby(list(self.by), dropna=False, observed=True, sort=True)
        rows_of = {key: rows for key, rows in groups_of}
        spent = {key: float(rows[self.which].sum()) for key, rows in rows_of.items()}
        order = list(rows_of) if self._in_time else sorted(rows_of, key=lambda key: -spent[key])
        return [(groups.named(self.by, key), rows_of[key]) for key in order]

    def _table(self) -> pd.DataFrame:
        """Return the rows of `table`, summed over all groups at once: there may be very many."""
        samples, which = self._samples, self.which
        keys = samples.groupby(list(self.by), dropna=False, observed=True, sort=True).ngroup() if self.by else 0
        group = np.zeros(len(samples), np.int64) + np.asarray(keys)
        first = np.unique(group, return_index=True)[1] if self.by else np.zeros(1, np.int64)
        group_count = len(first)
        value = samples[which].to_numpy(float)
        has_value = ~np.isnan(value)
        order = np.lexsort((value, group))
        order = order[has_value[order]]
        groups_of, ascending = group[order], value[order]
        count = np.bincount(groups_of, minlength=group_count)
        total = np.bincount(groups_of, ascending, group_count)
        sizes = pd.to_numeric(samples["response_bytes"]).fillna(0).to_numpy(float)
        columns: dict[str, Any] = {name: samples[name].iloc[first].tolist() for name in self.by}
        columns |= {"count": count, "left_out": np.bincount(group, minlength=group_count) - count}
        columns |= _summary(ascending, groups_of, count, self.percentiles)
        timed = self._seconds(columns)
        columns["requests_per_s"] = count / timed
        columns["transfer_bytes_per_s"] = np.bincount(groups_of, sizes[order], group_count) / timed
        table = pd.DataFrame(columns)
        if self._in_time:
            return table.sort_values(list(self.by), kind="stable", ignore_index=True)
        return table.iloc[np.argsort(-total, kind="stable")].reset_index(drop=True)

    @property
    def _in_time(self) -> bool:
        """Whether groups are time spans; they are then sorted by time."""
        return any(groups.span(name) for name in self.by)

    def _seconds(self, keys: dict[str, Any]) -> Any:
        """Return the seconds by which each group's numbers are divided: those of its captures, within its time span."""
        places = [name for name in self.by if name in groups.PLACES]
        stretch = next((name for name in self.by if groups.span(name)), None)
        if not places and stretch is None:
            return self.seconds or np.nan
        seconds = []
        for row in range(len(keys["count"])):
            spans = self._covered.get(tuple(keys[name][row] for name in places), [])
            if stretch is not None:
                spans = _within(spans, keys[stretch][row], stretch)
            seconds.append(length(spans) or np.nan)
        return np.array(seconds)

    def plot(
        self,
        *others: Latency,
        labels: Sequence[str] | None = None,
        scale: Scale = "auto",
        panel: LatencyPanel | None = None,
        ax: Axes | None = None,
    ) -> LatencyPlot:
        """Draw the distribution of latencies: shares (ECDF) with the percentiles marked, and counts (histogram), by
        top cause where there is one group.

        `others` are overlaid: other captures, or before and after. `labels` name them (default: their titles, or
        their groups); `scale` of the time axis is "log", "linear" or "auto" (log where the values differ much);
        `panel` is "ecdf" or "histogram" for one of the two; on given axes `ax` one panel is drawn.
        """
        from latpcap.plot.latency import LatencyPlot, Series

        latencies = (self, *others)
        if labels is not None and len(labels) != len(latencies):
            raise ValueError(f"{len(labels)} labels for {len(latencies)} latencies")
        titles = [latency.title for latency in latencies]
        if len(set(titles)) < len(titles):  # files with one name, in several folders
            names = labels or [f"{title} ({i})" for i, title in enumerate(titles, 1)]
            titles = [name if title in name else f"{title} ({name})" for title, name in zip(titles, names, strict=True)]
        series, left_out = [], 0
        for number, latency in enumerate(latencies):
            own_label = labels[number] if labels is not None else titles[number]
            own_groups = latency.rows()
            left_out += max(0, len(own_groups) - _OTHERS)
            for name, rows in own_groups[:_OTHERS]:
                label = own_label if not latency.by else name if len(latencies) == 1 else f"{own_label} {name}"
                values = rows[rows[latency.which].notna()].sort_values(latency.which)
                causes = values["top_cause"].astype(object).where(values["top_cause"].notna(), None)
                series.append(Series(label or f"{number + 1}", values[latency.which].to_numpy(), tuple(causes)))
        note = f"{count(left_out, 'group')} with less time not shown." if left_out else ""
        missing = sum(int(latency.table["left_out"].sum()) for latency in latencies)
        if missing:
            note = f"{note} {count(missing, 'exchange')} without a latency: {_WHY[self.which]}.".strip()
        title = f"Latency of {' and '.join(titles)}"
        picture = LatencyPlot(
            series,
            percentiles=self.percentiles,
            title=title + (f", by {', '.join(self.by)}" if self.by else ""),
            axis="latency at the client, estimated" if self.which == "client_latency_ms" else "latency",
            note=note,
            scale=scale,
            panel=panel,
        )
        return picture if ax is None else picture.plot(ax)

    def __str__(self) -> str:
        return _report(self) if not self.by else _grouped(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from latpcap import html

        body = html.table(self.table, sortable=True) if self.by else html.text(str(self).partition("\n")[2])
        return html.card(str(self).partition("\n")[0], body)


def needed(by: Group | Sequence[Group] | None, which: Which) -> list[str]:
    """Return the columns of `exchanges` that a report needs. ValueError for unknown words."""
    if which not in WHICH:
        raise ValueError(f"no latency {which!r}; known are {' and '.join(WHICH)}")
    return ["exchange", "start", "end", which, "response_bytes", "top_cause", *groups.needed(groups.chosen(by))]


def _samples(exchanges: pa.Table, by: Sequence[Group], which: Which, files: Sequence[str]) -> pd.DataFrame:
    """Return the exchanges with the keys of their groups, in columns with the names of `by`; words as categories."""
    columns = {name: exchanges[name] for name in needed((), which) if name != "exchange"}
    columns["of_capture"] = groups.captures(exchanges)
    columns |= {name: groups.column(exchanges, name, files) for name in by}
    table = pa.table(columns).unify_dictionaries()
    return table.to_pandas(integer_object_nulls=True)


def _covered(timed: pd.DataFrame, places: Sequence[str]) -> dict[tuple[Any, ...], _Spans]:
    """Return the time spans from the first request to the last answer of each capture, merged by place."""
    if not len(timed):
        return {}
    if "of_capture" not in timed:
        timed = timed.assign(of_capture=0)
    spans = timed.groupby(["of_capture", *places], observed=True, sort=False).agg({"start": "min", "end": "max"})
    spans_of: dict[tuple[Any, ...], _Spans] = {}
    for key, first, last in zip(spans.index, spans["start"], spans["end"], strict=True):
        place = key[1:] if places else ()
        spans_of.setdefault(place, []).append((first.value, last.value))
    return {place: merged(place_spans) for place, place_spans in spans_of.items()}


def merged(spans: _Spans) -> _Spans:
    """Return the union of time spans, sorted and without overlaps."""
    union: _Spans = []
    for first, last in sorted(spans):
        if union and first <= union[-1][1]:
            union[-1] = union[-1][0], max(last, union[-1][1])
        else:
            union.append((first, last))
    return union


def _within(spans: _Spans, begin: pd.Timestamp, stretch: str) -> _Spans:
    number, unit = groups.span(stretch) or (1, "second")
    low, high = begin.value, (begin + pd.Timedelta(f"{number} {unit}")).value
    return [(max(first, low), min(last, high)) for first, last in spans if first < high and last > low]


def length(spans: _Spans) -> float:
    """Return the total length of time spans in seconds."""
    return sum(last - first for first, last in spans) / 1e9


def _summary(rising: Array, group: Array, count: Array, percentiles: Sequence[float]) -> dict[str, Array]:
    """Return the statistics per group, of values sorted by group and then by value; NaN for empty groups."""
    group_count, end = len(count), np.cumsum(count)
    filled, has_several = count > 0, count > 1
    mean = np.divide(np.bincount(group, rising, group_count), count, where=filled, out=np.full(group_count, np.nan))
    squares = np.bincount(group, (rising - mean[group]) ** 2, group_count)
    stdev = np.sqrt(np.divide(squares, count - 1, where=has_several, out=np.full(group_count, np.nan)))
    within_stdev = np.bincount(group, np.abs(rising - mean[group]) <= stdev[group], group_count)
    statistics = {
        "mean_ms": mean,
        "stdev_ms": stdev,
        "max_ms": np.full(group_count, np.nan),
        "within_stdev_percent": np.where(has_several, 100 * within_stdev / np.maximum(count, 1), np.nan),
    }
    statistics["max_ms"][filled] = rising[end[filled] - 1]
    for percent in percentiles:
        rank_row = np.ceil(np.round(count * percent / 100, 9)).astype(np.int64) - 1
        rank_row = np.clip(rank_row, 0, np.maximum(count - 1, 0)) + end - count
        statistics[f"p{percent:g}_ms"] = values = np.full(group_count, np.nan)
        values[filled] = rising[rank_row[filled]]
    return statistics


def _report(latency: Latency) -> str:
    """Return one group, in the shape of wrk's report."""
    row = latency.table.iloc[0]
    timed_count, left_out = int(row["count"]), int(row["left_out"])
    where = "estimated at the client" if latency.which == "client_latency_ms" else "as the capture saw it"
    lines = [f"{latency.title}: latency of {timed_count:,} of {count(timed_count + left_out, 'exchange')}, {where}"]
    if not timed_count:
        return "\n".join([*lines, "  no exchange has one"])
    cells = [
        *(_time(row[column]) for column in ("mean_ms", "stdev_ms", "max_ms")),
        _percent(row["within_stdev_percent"]),
    ]
    lines.append(f"{'':11} " + " ".join(f"{head:>10}" for head in ("Avg", "Stdev", "Max", "+/- Stdev")))
    lines.append(f"  {'Latency':9} " + " ".join(f"{cell:>10}" for cell in cells))
    lines.append("  Latency Distribution")
    lines += [f"  {percent:>6g}% {_time(row[f'p{percent:g}_ms']):>10}" for percent in latency.percentiles]
    if latency.seconds:
        rate = row["transfer_bytes_per_s"]
        lines.append(f"  {count(timed_count, 'answer')} in {latency.seconds:.2f}s, {_size(rate * latency.seconds)}")
        lines += [f"Requests/sec: {row['requests_per_s']:>12.2f}", f"Transfer/sec: {_size(rate):>12}"]
    return "\n".join(lines)


def _grouped(latency: Latency) -> str:
    """Several groups as a table with wrk's headings."""
    heads = ["Count", "Avg", "Stdev", "Max", "+/- Stdev", *(f"{rank:g}%" for rank in latency.percentiles), "Requests/s"]
    rows = []
    for row in latency.table.head(MAX_ROWS).to_dict("records"):
        name = groups.named(latency.by, [row[by] for by in latency.by])
        times = [_time(row[column]) for column in ("mean_ms", "stdev_ms", "max_ms")]
        ranks = [_time(row[f"p{rank:g}_ms"]) for rank in latency.percentiles]
        rate = "" if row["requests_per_s"] != row["requests_per_s"] else f"{row['requests_per_s']:,.2f}"
        short = name if len(name) <= 60 else name[:59] + "…"
        rows.append([short, f"{row['count']:,}", *times, _percent(row["within_stdev_percent"]), *ranks, rate])
    heads = [" ".join(latency.by), *heads]
    widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in [heads, *rows]
    ]
    left_out = int(latency.table["left_out"].sum())
    if left_out:
        lines.append(f"{count(left_out, 'exchange')} left out: {_WHY[latency.which]}")
    if len(latency.table) > len(rows):
        lines.append(
            f"… {count(len(latency.table) - len(rows), 'more group')}{'' if latency._in_time else ' with less time'}"
        )
    return "\n".join([f"{latency.title}: {latency.which} by {', '.join(latency.by)}", *lines])


def _scaled(value: float, step: float, units: Sequence[str]) -> str:
    """Return a number in wrk's unit: wrk changes to the next unit from 85 % of it on."""
    unit = 0
    while unit + 1 < len(units) and value >= 0.85 * step:
        value, unit = value / step, unit + 1
    return f"{value:.2f}{units[unit]}"


def _time(ms: float | None) -> str:
    if ms is None or ms != ms:
        return ""
    return _scaled(ms, 1000, ("ms", "s")) if ms >= 0.85 else f"{ms * 1000:.2f}us"


def _size(amount: float) -> str:
    return _scaled(amount, 1024, ("B", "KB", "MB", "GB", "TB"))


def _percent(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.2f}%"
