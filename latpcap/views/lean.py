"""The columns that an answer over a whole capture needs, and none besides: rows as they come in, tables out.

Narrow types, words as small numbers, and no memory for what is 0: a capture of millions of exchanges answers in a
fraction of what its tables take. The tables that come out are read by the same code as the whole ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

ALWAYS = ("network", "fast_retransmit", "tlp", "rto", "capture_gap")
"""Causes whose time is asked of complete exchanges, too. Of the others it is asked of incomplete ones alone: the time
of complete ones is summed from `causes`."""


_FIRST = 1 << 16
"""Rows for which a column has room at first."""


class Numbers:
    """A column of numbers on its way; what is 0 takes no memory. `kind` None: as few bytes as do."""

    def __init__(self, kind: str | None):
        import numpy as np

        self._narrow, self._held = kind is None, np.zeros(0, kind or "uint8")
        self._count = 0

    def add(self, values: Array) -> None:
        """The values of the next rows."""
        import numpy as np

        begin, self._count = self._count, self._count + len(values)
        if not values.any():
            return
        kind = self._held.dtype
        if self._narrow:
            kind = np.result_type(kind, np.min_scalar_type(int(values.max())))
        if self._count > len(self._held) or kind != self._held.dtype:
            grown = np.zeros(max(self._count, _FIRST, 3 * len(self._held) // 2), kind)
            _copy(self._held[:begin], None, grown)
            self._held = grown
        self._held[begin : self._count] = values

    def values(self, order: Array | None) -> Array:
        """Those of all rows, in this order; forgets them."""
        import numpy as np

        held, self._held = self._held, np.zeros(0, self._held.dtype)
        if len(held) >= self._count and order is None:
            return held[: self._count]
        found: Array = np.zeros(self._count, held.dtype)
        if len(held):
            whole = held if len(held) >= self._count else np.concatenate([held, found[len(held) :]])
            _copy(whole[: self._count], order, found)
        return found

    def arrow(self, order: Array | None) -> pa.Array:
        """Those of all rows as an Arrow array; NaN is null."""
        values = self.values(order)
        return arrays.column(values, (values == values) if values.dtype.kind == "f" else None)


def _copy(values: Array, order: Array | None, out: Array) -> None:
    """Writes the values in this order; where they are 0 nothing is written, as pages that nobody wrote to are none."""
    for at in range(0, len(values), _FIRST):
        piece = values[at : at + _FIRST] if order is None else values[order[at : at + _FIRST]]
        if piece.any():
            out[at : at + len(piece)] = piece


class Words:
    """A column of words, or of a few numbers that come again and again, as places in their list; null is -1."""

    def __init__(self) -> None:
        self._codes = Numbers(None)
        self.known: dict[str, int] = {}

    def add(self, codes: Array, words: list[str]) -> None:
        """The next rows, as `arrays.codes` gives them."""
        import numpy as np

        places = [self.known.setdefault(word, len(self.known)) for word in words]
        self._codes.add(np.array([0, *(place + 1 for place in places)])[codes + 1])  # 0: null

    def arrow(self, order: Array | None) -> pa.Array:
        """All rows as a dictionary array."""
        import numpy as np

        codes = self._codes.values(order)
        known = codes > 0
        kind = "int8" if len(self.known) < 127 else "int32"
        return arrays.dictionary((np.maximum(codes, 1) - 1).astype(kind), known, list(self.known))


class Exchanges:
    """The table of exchanges."""

    WORDS = ("protocol", "kind", "method", "target", "status_text", "cut_by")
    NUMBERS = ("stream", "index", "request_first_frame")
    TIMES = ("start", "end", "request_end")
    INCOMPLETE = ("request_last_frame",)
    """Asked of incomplete exchanges alone."""
    NULLABLE = ("status", "error", "response_last_frame")
    """Kept one higher: 0 is null."""

    def __init__(self) -> None:
        self.count = 0
        self._number = Numbers(None)
        self._words = {name: Words() for name in self.WORDS}
        self._numbers = {name: Numbers(None) for name in (*self.NUMBERS, *self.INCOMPLETE, *self.NULLABLE)}
        self._numbers |= {name: Numbers("int64") for name in self.TIMES}
        self._numbers["latency_ms"] = Numbers("float64")
        self._response_start = Numbers("int64")
        self._numbers |= {f"{name}_ms": Numbers("float64") for name in CAUSES}
        self._answered, self._complete = Numbers("bool"), Numbers("bool")

    def add(self, rows: pa.Table) -> None:
        """The next rows."""
        import numpy as np

        self.count += rows.num_rows
        complete = arrays.numbers(rows, "complete")
        self._complete.add(complete)
        answered = ~np.isnan(arrays.numbers(rows, "response_first_frame").astype(float))
        self._answered.add(answered)
        self._response_start.add(np.where(answered, np.nan_to_num(arrays.numbers(rows, "response_start")), 0))
        self._number.add(arrays.numbers(rows, "exchange"))
        for name in (*self.NUMBERS, *self.TIMES, "latency_ms"):
            self._numbers[name].add(arrays.numbers(rows, name))
        for name in self.INCOMPLETE:
            self._numbers[name].add(np.where(complete, 0, arrays.numbers(rows, name)))
        for name in self.NULLABLE:
            values = arrays.numbers(rows, name).astype(float)
            self._numbers[name].add(np.where(np.isnan(values), 0, values + 1).astype(np.int64))
        for name in CAUSES:
            ms = arrays.numbers(rows, f"{name}_ms")
            self._numbers[f"{name}_ms"].add(ms if name in ALWAYS else np.where(complete, 0.0, ms))
        for name in self.WORDS:
            self._words[name].add(*arrays.codes(rows, name))

    def table(self) -> pa.Table:
        """All rows, by their numbers; forgets them."""
        number, order = _ordered(self._number.values(None))
        columns = {"exchange": arrays.column(number)}
        columns |= {name: of.arrow(order) for name, of in self._numbers.items() if name not in self.NULLABLE}
        for name in self.NULLABLE:
            values = self._numbers[name].values(order)
            columns[name] = arrays.column(values - (values > 0).astype(values.dtype), values > 0)
        columns |= {name: of.arrow(order) for name, of in self._words.items()}
        columns["complete"] = arrays.column(self._complete.values(order).astype(bool))
        answered = self._answered.values(order).astype(bool)
        columns["response_start"] = arrays.column(self._response_start.values(order).astype("int64"), answered)
        columns["response_first_frame"] = arrays.column(answered.astype("uint8"), answered)
        return _table(columns)


class Causes:
    """The table of causes."""

    WORDS = ("cause", "parent", "owner", "rule", "because", "rival")

    def __init__(self) -> None:
        self.count = 0
        self._number, self._duration = Numbers(None), Numbers("float64")
        self._words = {name: Words() for name in self.WORDS}
        self._confidence = Words()
        self._lengths, self._frames = Numbers(None), Numbers(None)

    def add(self, rows: pa.Table) -> None:
        """The next rows."""
        import numpy as np

        self.count += rows.num_rows
        self._number.add(arrays.numbers(rows, "exchange"))
        self._duration.add(arrays.numbers(rows, "duration_ms"))
        for name in self.WORDS:
            self._words[name].add(*arrays.codes(rows, name))
        confidence = arrays.numbers(rows, "confidence")
        levels = arrays.distinct(confidence)
        self._confidence.add(np.searchsorted(levels, confidence), levels.tolist())
        for lengths, frames in arrays.lists(rows, "evidence"):
            self._lengths.add(lengths)
            self._frames.add(frames)

    def table(self) -> pa.Table:
        """All rows, by exchange and in its order; forgets them. (An exchange's own rows come in their order.)"""
        import numpy as np
        import pyarrow as pa

        number, order = _ordered(self._number.values(None))
        columns = {"exchange": arrays.column(number), "duration_ms": self._duration.arrow(order)}
        columns |= {name: of.arrow(order) for name, of in self._words.items()}
        columns["confidence"] = self._confidence.arrow(order)
        ends = np.concatenate([[0], np.cumsum(self._lengths.values(None), dtype=np.int64)]).astype(np.int32)
        held = pa.ListArray.from_arrays(arrays.column(ends), self._frames.arrow(None))
        columns["evidence"] = held if order is None else held.take(arrays.column(order))
        return _table(columns)


def _ordered(numbers: Array) -> tuple[Array, Array | None]:
    """Rising, and the order that makes them so; None where they rise already."""
    import numpy as np

    if not len(numbers) or (numbers[1:] >= numbers[:-1]).all():
        return numbers, None
    order = np.argsort(numbers, kind="stable").astype(np.uint32 if len(numbers) < 2**32 else np.int64)
    return numbers[order], order


def _table(columns: dict[str, pa.Array]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_arrays(list(columns.values()), list(columns))
