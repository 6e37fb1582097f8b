"""The columns that an answer over a whole capture needs, and none besides: rows as they come in, tables out.

Narrow types, words as small numbers, and no memory for what is 0: a capture of millions of exchanges answers in a
fraction of what its tables take. The tables that come out are read by the same code as the whole ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latpcap import arrays, longarrays
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
            room = max(self._count, _FIRST, 3 * len(self._held) // 2)
            if kind == self._held.dtype:
                self._held = longarrays.grown(self._held, room)
            else:
                held, self._held = self._held, longarrays.zeros(room, kind)
                longarrays.copy(held[:begin], self._held)
        self._held[begin : self._count] = values

    def values(self, order: Array | None) -> Array:
        """Those of all rows, in this order; forgets them."""
        import numpy as np

        held, self._held = self._held, np.zeros(0, self._held.dtype)
        if len(held) >= self._count and order is None:
            return held[: self._count]
        if not len(held):
            return longarrays.nothing(self._count, held.dtype)
        if len(held) < self._count:
            held, short = longarrays.zeros(self._count, held.dtype), held
            longarrays.copy(short, held)
        return held[: self._count] if order is None else longarrays.taken(held[: self._count], order)

    def arrow(self, order: Array | None) -> pa.Array:
        """Those of all rows as an Arrow array; NaN is null."""
        values = self.values(order)
        return arrays.column(values, (values == values) if values.dtype.kind == "f" else None)


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
        if known.any():
            np.subtract(codes, known, out=codes, casting="unsafe")
        kind = "int8" if len(self.known) <= np.iinfo("int8").max else "int32"
        narrow = codes.view(kind) if codes.itemsize == np.dtype(kind).itemsize else codes.astype(kind)
        return arrays.dictionary(narrow, known, list(self.known))


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
        import numpy as np

        number, order = _ordered(self._number.values(None))
        columns = {"exchange": arrays.column(number)}
        columns |= {name: of.arrow(order) for name, of in self._numbers.items() if name not in self.NULLABLE}
        for name in self.NULLABLE:
            values = self._numbers[name].values(order)
            known = values > 0
            np.subtract(values, known, out=values, casting="unsafe")
            columns[name] = arrays.column(values, known)
        columns |= {name: of.arrow(order) for name, of in self._words.items()}
        columns["complete"] = arrays.column(self._complete.values(order))
        answered = self._answered.values(order)
        columns["response_start"] = arrays.column(self._response_start.values(order), answered)
        columns["response_first_frame"] = arrays.column(answered.view("uint8"), answered)
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
        number, order = _ordered(self._number.values(None))
        columns = {"exchange": arrays.column(number), "duration_ms": self._duration.arrow(order)}
        columns |= {name: of.arrow(order) for name, of in self._words.items()}
        columns["confidence"] = self._confidence.arrow(order)
        columns["evidence"] = self._evidence(order)
        return _table(columns)

    def _evidence(self, order: Array | None) -> pa.Array:
        """The frames of each row. They stay in their order: a row says where its own begin, and how many they are."""
        import numpy as np
        import pyarrow as pa

        lengths, frames = self._lengths.values(None), self._frames.arrow(None)
        begins = longarrays.zeros(len(lengths), "int64")
        total = 0
        for span in longarrays.parts(len(lengths)):
            ends = total + np.cumsum(lengths[span], dtype="int64")
            begins[span] = ends - lengths[span]
            total = int(ends[-1])
        if order is not None:
            begins, lengths = longarrays.taken(begins, order), longarrays.taken(lengths, order)
        many = longarrays.zeros(len(lengths), "int64")
        longarrays.copy(lengths, many)
        return pa.LargeListViewArray.from_arrays(arrays.column(begins), arrays.column(many), frames)


def _ordered(numbers: Array) -> tuple[Array, Array | None]:
    """Rising, and the order that makes them so; None where they rise already."""
    if longarrays.rise(numbers):
        return numbers, None
    order = longarrays.order(numbers)
    return longarrays.taken(numbers, order), order


def _table(columns: dict[str, pa.Array]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_arrays(list(columns.values()), list(columns))
