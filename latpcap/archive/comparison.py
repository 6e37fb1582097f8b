"""Compares two captures or two archives: how latency and causes changed, and whether by more than noise.

Exchanges of one connection resemble each other, so they are not independent samples. The units that count as
independent are the largest of which both sides have at least `ENOUGH`: captures, else streams, else runs of consecutive
exchanges of a stream.

- Means, of latency and of each cause's time per exchange (these add up to the latency's): ratio estimates over units,
  with the variance that is robust to what happens inside a unit (Cochran, Sampling Techniques, 3rd ed., chapter 6).
- Percentiles: Woodruff's interval (JASA 47, 1952) with the same variance of the share below; of a difference: MOVER
  (Zou and Donner, Statistics in Medicine 27, 2008).
- More than noise: the interval of 95 % of the change excludes 0. For causes it is wider by their number (Bonferroni):
  where nothing changed, at most one comparison in twenty names a cause.

With fewer than `ENOUGH` units there is no interval, and noise is unknown. Other differences between the recordings
(load, hour, mix of requests) are changes as well: the comparison shows what moved, not why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from latpcap import arrays, page
from latpcap.archive.results import Results
from latpcap.errors import LatpcapError
from latpcap.format import count
from latpcap.lazy import np, pd
from latpcap.tables import Needed, TableSlice, card
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    from latpcap.page import Subject
    from latpcap.views.capture import Capture
    from latpcap.views.projection import Projection


ENOUGH = 20
"""Units per side below which noise is unknown."""
LEVEL = 0.95
"""Probability that all intervals of a comparison contain the true differences."""
PERCENTILES = {"p50_ms": 0.50, "p90_ms": 0.90, "p99_ms": 0.99}
_MIN_SHARE = 0.001
"""Causes below this share of both latencies are not compared."""
_COLUMNS = ("stream", "index", "latency_ms", *(f"{cause}_ms" for cause in CAUSES))


@dataclass(frozen=True)
class Change:
    """The change of one number in ms. `low` and `high` bound the change; None where there are too few units."""

    name: str
    before: float
    after: float
    low: float | None = None
    high: float | None = None

    @property
    def change(self) -> float:
        """After minus before, in ms."""
        return self.after - self.before

    @property
    def moved(self) -> bool | None:
        """Whether the change is more than noise; None for unknown."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


class ComparisonError(LatpcapError):
    """The two sides cannot be compared."""


@dataclass(frozen=True)
class Sample:
    """One side: latency and time of each cause (ms) per complete exchange, with its capture and stream."""

    name: str
    latency: np.ndarray[Any, Any]
    spent: np.ndarray[Any, Any]
    capture: np.ndarray[Any, Any]
    stream: np.ndarray[Any, Any]
    index: np.ndarray[Any, Any]


def needed() -> Needed:
    """Return the part of a capture that `sample_of` reads."""
    return {"exchanges": TableSlice((*_COLUMNS, "complete"), lambda rows: rows["complete"])}


def sample_of(source: Capture | Projection | Results) -> Sample:
    """Return the complete exchanges of a capture or of results."""
    columns = list(_COLUMNS)
    if isinstance(source, Results):
        table = source.exchanges.to_arrow([("complete", "==", True)], [*columns, "capture"])
        capture = table["capture"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    else:
        table = source.arrow("exchanges")
        table = table.filter(table["complete"])
        capture = np.zeros(table.num_rows, np.int64)
    name = source.title
    if not table.num_rows:
        raise ComparisonError(f"{name}: no complete exchange, so there is nothing to compare")
    numbers = {column: table[column].to_numpy() for column in columns}
    spent = np.stack([numbers[f"{cause}_ms"] for cause in CAUSES], axis=1)
    stream = capture.astype(np.int64) << 32 | numbers["stream"].astype(np.int64)
    return Sample(name, numbers["latency_ms"], spent, capture, stream, numbers["index"])


def _units(samples: Sequence[Sample]) -> tuple[str, list[np.ndarray[Any, Any]]]:
    """Return the kind of independent unit, and the unit of each exchange, for every sample."""
    for name in ("capture", "stream"):
        codes = [np.unique(getattr(sample, name), return_inverse=True)[1] for sample in samples]
        if all(unit_codes.max() + 1 >= ENOUGH for unit_codes in codes):
            return name, codes
    return "run of exchanges", [_runs(sample) for sample in samples]


def _runs(sample: Sample) -> np.ndarray[Any, Any]:
    """Divide streams into runs of consecutive exchanges: about as many as exchanges per run, but at least `ENOUGH`."""
    total = len(sample.latency)
    length = max(1, min(round(total**0.5), total // ENOUGH))
    order = np.lexsort((sample.index, sample.stream))
    stream = sample.stream[order]
    begins = np.r_[True, stream[1:] != stream[:-1]]
    first = np.maximum.accumulate(np.where(begins, np.arange(total), 0))
    cuts = begins | ((np.arange(total) - first) % length == 0)
    codes = np.empty(total, np.int64)
    codes[order] = np.cumsum(cuts) - 1
    return codes


def _error(values: np.ndarray[Any, Any], units: np.ndarray[Any, Any]) -> float | None:
    """Return the standard error of the mean, robust to correlation within units; None for too few units."""
    unit_count = int(units.max()) + 1
    if unit_count < ENOUGH:
        return None
    deviations = np.bincount(units, values - values.mean(), unit_count)
    return float(np.sqrt((deviations**2).sum() * unit_count / (unit_count - 1)) / len(values))


def _quantile(z: float, freedom: int) -> float:
    """Student's t from the normal quantile, by the first terms of its expansion (Abramowitz and Stegun 26.7.5)."""
    n = max(freedom, 1)
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)


class Comparison:
    """What changed from before to after. Made by `latpcap.compare`; prints as a few lines.

    `metrics` has a row for p50_ms, p90_ms, p99_ms and mean_ms, `causes` one for each cause's time per exchange; both
    with `before`, `after`, `change`, `low`, `high` (ms; the interval of the change) and `moved` (more than noise;
    null: unknown).
    """

    def __init__(self, before: Sample, after: Sample, *, of: Sequence[Callable[[], Subject]] = ()):
        self._sides = (before, after)
        self._subjects = tuple(of)
        self.unit, self._unit_of = _units(self._sides)
        self._counts = [int(units.max()) + 1 for units in self._unit_of]
        self._metrics = [*self._percentiles(), self._mean("mean_ms", [side.latency for side in self._sides], 1)]
        spent = [
            (cause, [side.spent[:, i] for side in self._sides])
            for i, cause in enumerate(CAUSES)
            if any(side.spent[:, i].sum() > _MIN_SHARE * side.latency.sum() for side in self._sides)
        ]
        changes = [self._mean(cause, values, len(spent)) for cause, values in spent]
        self._causes = sorted(changes, key=lambda change: -abs(change.change))

    def _quantiles(self, tests: int) -> list[float]:
        z = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2 / tests)
        return [_quantile(z, unit_count - 1) for unit_count in self._counts]

    def _mean(self, name: str, values: list[np.ndarray[Any, Any]], tests: int) -> Change:
        before, after = (float(v.mean()) for v in values)
        errors = [_error(side_values, units) for side_values, units in zip(values, self._unit_of, strict=True)]
        if None in errors:
            return Change(name, before, after)
        bounds = zip(errors, self._quantiles(tests), strict=True)
        half = sum((error * quantile) ** 2 for error, quantile in bounds if error is not None) ** 0.5
        return Change(name, before, after, after - before - half, after - before + half)

    def _percentiles(self) -> list[Change]:
        ordered = [np.sort(side.latency) for side in self._sides]
        changes = []
        for name, share in PERCENTILES.items():
            before, after = (arrays.percentile(latencies, share) for latencies in ordered)
            spans = [self._woodruff(side, ordered[side], share) for side in (0, 1)]
            if None in spans:
                changes.append(Change(name, before, after))
                continue
            (low0, high0), (low1, high1) = (span for span in spans if span is not None)
            change = after - before
            low = change - ((after - low1) ** 2 + (high0 - before) ** 2) ** 0.5
            high = change + ((high1 - after) ** 2 + (before - low0) ** 2) ** 0.5
            changes.append(Change(name, before, after, low, high))
        return changes

    def _woodruff(self, side: int, ordered: np.ndarray[Any, Any], share: float) -> tuple[float, float] | None:
        latency = self._sides[side].latency
        error = _error((latency <= arrays.percentile(ordered, share)).astype(float), self._unit_of[side])
        if error is None:
            return None
        error = max(error, (share * (1 - share) / len(latency)) ** 0.5)  # without values above, the error would be 0
        half = error * self._quantiles(1)[side]
        if share + half >= 1:  # the upper bound is beyond the largest value
            return None
        return arrays.percentile(ordered, share - half), arrays.percentile(ordered, share + half)

    @property
    def metrics(self) -> pd.DataFrame:
        """The change of the latency: a row for p50_ms, p90_ms, p99_ms and mean_ms."""
        return _frame(self._metrics, "metric")

    @property
    def causes(self) -> pd.DataFrame:
        """The change of each cause's mean ms per exchange, the largest first; they add up to that of mean_ms."""
        return _frame(self._causes, "cause")

    @property
    def moved(self) -> list[str]:
        """The causes that moved by more than noise, the largest change first."""
        return [change.name for change in self._causes if change.moved]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, durations in ms (for JSON)."""
        return {
            **{
                side: {"name": sample.name, "exchanges": len(sample.latency), "units": units}
                for side, sample, units in zip(("before", "after"), self._sides, self._counts, strict=True)
            },
            "unit": self.unit,
            "level": LEVEL,
            "metrics": [_plain(change) for change in self._metrics],
            "causes": [_plain(change) for change in self._causes],
        }

    def failing(self, rule: str) -> str | None:
        """Return the sentence about a rule that fails, or None.

        `p99_ms>20` fails if that is so afterwards; `p99_ms>+5` and `p99_ms>+10%` if it rose by more, and by more than
        noise. Names are those of `metrics`, and each cause's with `_ms` after it. ValueError for anything else.
        """
        match = re.fullmatch(r"\s*(\w+)\s*>\s*(\+?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", rule)
        changes = {c.name: c for c in self._metrics} | {f"{c}_ms": Change(c, 0.0, 0.0) for c in CAUSES}
        changes |= {f"{change.name}_ms": change for change in self._causes}
        if match is None or match[1] not in changes or (match[4] and not match[2]):
            raise ValueError(f"expected a rule as p99_ms>20, p99_ms>+5 or nagle_ms>+10%, got {rule!r}")
        change, limit = changes[match[1]], float(match[3])
        if not match[2]:
            return f"{match[1]} is {change.after:.3f}, more than {limit:g}" if change.after > limit else None
        limit = limit / 100 * change.before if match[4] else limit
        if change.change <= limit or change.moved is False:
            return None
        doubt = "" if change.moved else " (too few exchanges to tell it from noise)"
        return f"{match[1]} rose from {change.before:.3f} to {change.after:.3f}, by more than {limit:.3f}{doubt}"

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page: what changed, and both answers with their waterfalls.

        Captures that were given as paths are read once more. OutputError where it cannot be written, or for another
        suffix than .html; CaptureError where a capture is gone.
        """
        sides = [subject() for subject in self._subjects]
        page.write(path, page.of_comparison(str(self), self.to_dict(), sides))

    def __str__(self) -> str:
        lines = []
        for word, side, unit_count in zip(("before", "after"), self._sides, self._counts, strict=True):
            unit, _, of_exchanges = self.unit.partition(" ")  # "run of exchanges"
            units = f"{count(unit_count, unit)} {of_exchanges}".strip()
            lines.append(f"{word:9} {side.name}: {count(len(side.latency), 'complete exchange')}, {units}")
        width = max(len(change.name) for change in [*self._metrics, *self._causes])
        lines += [f"  {_line(change, width)}" for change in self._metrics]
        moved = [change for change in self._causes if change.moved]
        unmoved = [change for change in self._causes if change.moved is False]
        lines += [f"  {'moved' if i == 0 else '':7}{_line(change, width)}" for i, change in enumerate(moved[:6])]
        if not moved:
            is_unknown = any(change.moved is None for change in self._causes)
            unknown = f"fewer than {ENOUGH} units on a side: noise is not known"
            lines.append(f"  moved  {unknown if is_unknown else 'no cause by more than noise'}")
        if unmoved:
            lines.append(f"  noise  {', '.join(c.name for c in unmoved[:8])}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card(f"{self._sides[0].name} → {self._sides[1].name}", str(self))


def _line(change: Change, width: int) -> str:
    text = f"{change.name:{width}} {change.before:9.3f} to {change.after:9.3f} ms: {change.change:+.3f}"
    if change.low is None or change.high is None:
        return f"{text} (noise unknown)"
    return f"{text} ({change.low:+.3f} to {change.high:+.3f}){'' if change.moved else ', no more than noise'}"


def _plain(change: Change) -> dict[str, Any]:
    return {
        "name": change.name, "before": change.before, "after": change.after, "change": change.change,
        "low": change.low, "high": change.high, "moved": change.moved,
    }  # fmt: skip


def _frame(changes: list[Change], title: str) -> pd.DataFrame:
    frame = pd.DataFrame([_plain(change) for change in changes]).rename(columns={"name": title})
    return frame.astype({"low": "float64", "high": "float64", "moved": "boolean"})
