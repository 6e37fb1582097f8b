"""Accumulates the columns that an answer over a whole capture needs: takes rows batch by batch, returns tables.

Numbers have narrow types, words are indices, and zeros take no memory: a capture of millions of exchanges takes a
fraction of its full tables. The resulting tables are read by the same code as full ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from latpcap import arrays, spill
from latpcap.lazy import np, pa
from latpcap.tables import LINKS, as_exchanges, of_stretches, request_mask
from latpcap.user_waits.slow_requests import event_streams
from latpcap.vocabulary import CAUSES, cause_names

if TYPE_CHECKING:
    from latpcap.arrays import Array
    from latpcap.findings import FinderTables
    from latpcap.options import TableName
    from latpcap.views.recording import Recording

ALWAYS = ("network", *cause_names(trait="of_data"), "capture_gap")
"""Causes whose time is kept for complete exchanges, too. For the other causes it is kept for incomplete exchanges
only: that of complete ones is summed from `causes`.
"""


class Numbers:
    """A growing column of numbers; zeros take no memory. `dtype` None: the narrowest unsigned type that fits."""

    def __init__(self, dtype: str | None):
        self._narrows, self._column = dtype is None, spill.Column(dtype or "uint8")

    def add(self, values: Array) -> None:
        """Append values."""
        if not values.any():
            self._column.skip(len(values))
            return
        if self._narrows:
            dtype = np.result_type(self._column.dtype, np.min_scalar_type(int(values.max())))
            if dtype != self._column.dtype:
                self._column.widen(dtype)
        self._column.add(values)

    def skip(self, count: int) -> None:
        """Append zeros."""
        self._column.skip(count)

    def values(self, order: Array | None) -> Array:
        """Return all values in this order (None: as appended), read-only, and empty the column."""
        is_zero, values = self._column.is_zero, self._column.array()
        return values if order is None or is_zero else spill.take(values, order)

    def arrow(self, order: Array | None) -> pa.Array:
        """Return all values as an Arrow array, NaN as null, and empty the column."""
        values = self.values(order)
        is_known = (values[span] == values[span] for span in spill.parts(len(values)))
        return arrays.column(values, arrays.bits(is_known) if values.dtype.kind == "f" else None)

    def lowered(self, order: Array | None) -> tuple[Array, Array | None]:
        """Return values that were stored plus one, with 0 for null, and bits of the known ones."""
        is_zero, values = self._column.is_zero, self.values(order)
        if is_zero:
            return values, spill.shared_zeros((len(values) + 7) // 8, "uint8")
        is_known = arrays.bits(values[span] > 0 for span in spill.parts(len(values)))
        lower = (values[span] - (values[span] > 0) for span in spill.parts(len(values)))
        return spill.from_pieces(values.dtype, lower), is_known


class Words:
    """A growing column of words, or of numbers with few distinct values, as indices into their list; null is -1."""

    def __init__(self) -> None:
        self._codes = Numbers(None)
        self._index_by_word: dict[str, int] = {}

    def add(self, codes: Array, words: list[str]) -> None:
        """Append rows, as `arrays.codes` returns them."""
        indices = [self._index_by_word.setdefault(word, len(self._index_by_word)) for word in words]
        stored = np.array([0, *(index + 1 for index in indices)], np.min_scalar_type(len(self._index_by_word)))
        self._codes.add(stored[codes + 1])  # 0: null

    def arrow(self, order: Array | None) -> pa.Array:
        """Return all rows as a dictionary array, and empty the column."""
        codes, is_known = self._codes.lowered(order)
        dtype = np.dtype("int8" if len(self._index_by_word) <= np.iinfo("int8").max else "int32")
        narrowed = codes.view(dtype) if codes.itemsize == dtype.itemsize else codes.astype(dtype)
        return arrays.dictionary(narrowed, is_known, list(self._index_by_word))


class Exchanges:
    """Accumulates the table `exchanges`."""

    WORDS = ("protocol", "kind", "method", "target", "status_text", "cut_by")
    NUMBERS = ("stream", "index", "request_first_frame")
    TIMES = ("start", "end", "request_end")
    INCOMPLETE = ("request_last_frame", "pieces", "request_bytes")
    """Columns kept for incomplete exchanges and streamed responses only, as most causes."""
    STREAMED = ("longest_gap_ms",)
    """Columns kept as INCOMPLETE, with 0 for null."""
    NULLABLE = ("status", "error", "response_last_frame")
    """Columns stored increased by one, with 0 for null."""
    COLUMNS = ("exchange", "complete", "server_asks", "response_first_frame", "response_start", "latency_ms", *WORDS,
               *NUMBERS, *TIMES, *INCOMPLETE, *STREAMED, *NULLABLE, *(f"{name}_ms" for name in CAUSES))  # fmt: skip

    def __init__(self) -> None:
        self.count = 0
        self._number = Numbers(None)
        self._words = {name: Words() for name in self.WORDS}
        self._numbers = {name: Numbers(None) for name in (*self.NUMBERS, *self.INCOMPLETE, *self.NULLABLE)}
        self._numbers |= {name: Numbers("int64") for name in self.TIMES}
        self._numbers |= {name: Numbers("float64") for name in ("latency_ms", *self.STREAMED)}
        self._response_start = Numbers("int64")
        self._numbers |= {f"{name}_ms": Numbers("float64") for name in CAUSES}
        self._answered, self._complete, self._server_asks = Numbers("bool"), Numbers("bool"), Numbers("bool")

    def add(self, rows: pa.Table) -> None:
        """Append rows."""
        self.count += rows.num_rows
        complete = arrays.numbers(rows, "complete")
        self._complete.add(complete)
        self._server_asks.add(arrays.numbers(rows, "server_asks").astype(bool))
        answered = ~np.isnan(arrays.numbers(rows, "response_first_frame").astype(float))
        self._answered.add(answered)
        self._response_start.add(np.where(answered, arrays.filled(rows, "response_start", 0), 0))
        self._number.add(arrays.numbers(rows, "exchange"))
        for name in (*self.NUMBERS, *self.TIMES, "latency_ms"):
            self._numbers[name].add(arrays.numbers(rows, name))
        for name in self.NULLABLE:
            values = arrays.numbers(rows, name).astype(float)
            self._numbers[name].add(np.where(np.isnan(values), 0, values + 1).astype(np.int64))
        for name in ALWAYS:
            self._numbers[f"{name}_ms"].add(arrays.numbers(rows, f"{name}_ms"))
        plain = complete & ~event_streams(rows)
        is_plain = bool(plain.all())
        for name in (*self.INCOMPLETE, *self.STREAMED, *(f"{name}_ms" for name in CAUSES if name not in ALWAYS)):
            if is_plain:
                self._numbers[name].skip(rows.num_rows)
            else:
                self._numbers[name].add(np.where(plain, 0, arrays.filled(rows, name, 0)))
        for name in self.WORDS:
            self._words[name].add(*arrays.codes(rows, name))

    def table(self) -> pa.Table:
        """Return all rows, by number, and empty this object."""
        number, order = _ordered(self._number.values(None))
        columns = {"exchange": arrays.column(number)}
        columns |= {name: numbers.arrow(order) for name, numbers in self._numbers.items() if name not in self.NULLABLE}
        for name in self.NULLABLE:
            columns[name] = arrays.column(*self._numbers[name].lowered(order))
        columns |= {name: words.arrow(order) for name, words in self._words.items()}
        columns["complete"] = arrays.column(self._complete.values(order))
        columns["server_asks"] = arrays.column(self._server_asks.values(order))
        answered = self._answered.values(order)
        columns["response_start"] = arrays.column(self._response_start.values(order), answered)
        columns["response_first_frame"] = arrays.column(answered.view("uint8"), answered)
        return _table(columns)


class Causes:
    """Accumulates the table `causes`."""

    WORDS = ("cause", "parent", "owner", "rule", "because", "rival")
    COLUMNS = ("duration_ms", *WORDS, "confidence", "evidence")

    def __init__(self) -> None:
        self.count = 0
        self._number, self._duration = Numbers(None), Numbers("float64")
        self._words = {name: Words() for name in self.WORDS}
        self._confidence = Words()
        self._lengths, self._frames = Numbers(None), Numbers(None)

    def add(self, rows: pa.Table) -> None:
        """Append rows."""
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
        """Return all rows, by exchange (the order within an exchange is kept), and empty this object except
        `evidence`.
        """
        number, order = _ordered(self._number.values(None))
        columns = {"exchange": arrays.column(number), "duration_ms": self._duration.arrow(order)}
        columns |= {name: words.arrow(order) for name, words in self._words.items()}
        columns["confidence"] = self._confidence.arrow(order)
        self._evidence = order, self._lengths.values(None), self._frames.values(None)
        return _table(columns)

    def evidence(self, row: int) -> list[int]:
        """Return the evidence frames of a row of the table. Kept unsorted: a column of lists would take most of the
        memory.
        """
        order, lengths, frames = self._evidence
        row = row if order is None else int(order[row])
        begin = sum(int(lengths[:row][span].sum()) for span in spill.parts(row))
        return frames[begin : begin + int(lengths[row])].tolist()


class Streams:
    """Accumulates the table `streams`."""

    WORDS = ("client", "server", "protocol", "position", "closed_by", "server_software", "server_name")
    SIDES: ClassVar = {
        "packets": "uint64", "payload_bytes": "uint64", "retransmissions": "uint64", "out_of_order": "uint64",
        "sacks": "uint64", "dsacks": "uint64", "unseen_frames": "uint64", "icmp_too_big": "uint32",
        "spurious_retransmissions": "uint64",
        "icmp_next_mtu": "uint32",
    }  # fmt: skip
    NUMBERS: ClassVar = {
        "stream": "uint32", "client_port": "uint16", "server_port": "uint16", "start": "int64", "end": "int64",
        "first_frame": "uint64", "last_frame": "uint64", "completeness": "uint8", "initial_rtt_ms": "float64",
        "client_rtt_ms": "float64", "server_rtt_ms": "float64",
        **{f"{side}_{what}": kind for what, kind in SIDES.items() for side in ("client", "server")},
    }  # fmt: skip
    """Columns with their types; wide enough for sums."""
    NULLABLE = (
        "client_unseen_frames", "server_unseen_frames", "client_icmp_next_mtu", "server_icmp_next_mtu",
    )  # fmt: skip
    """Columns stored increased by one, with 0 for null."""
    COLUMNS = (*NUMBERS, *WORDS)

    def __init__(self) -> None:
        self.count = 0
        self._numbers = {name: Numbers(kind) for name, kind in self.NUMBERS.items()}
        self._words = {name: Words() for name in self.WORDS}

    def add(self, rows: pa.Table) -> None:
        """Append rows."""
        self.count += rows.num_rows
        for name, numbers in self._numbers.items():
            values = arrays.numbers(rows, name)
            if name in self.NULLABLE:
                values = values.astype(float)
                values = np.where(np.isnan(values), 0, values + 1)
            numbers.add(values)
        for name, words in self._words.items():
            words.add(*arrays.codes(rows, name))

    def table(self) -> pa.Table:
        """Return all rows, by number, and empty this object."""
        number, order = _ordered(self._numbers.pop("stream").values(None))
        columns = {"stream": arrays.column(number)}
        for name, numbers in self._numbers.items():
            columns[name] = arrays.column(*numbers.lowered(order)) if name in self.NULLABLE else numbers.arrow(order)
        for name, words in self._words.items():
            columns[name] = words.arrow(order) if order is None else _as_named(words.arrow(order))
        return _table(columns)


class Folded:
    """Accumulates the columns that findings read; the first rows added are of `exchanges`, for their schema."""

    def __init__(self) -> None:
        from latpcap.findings.pushes import Pushed

        self.exchanges, self.causes, self.pushed = Exchanges(), Causes(), Pushed()
        self._schema: pa.Schema | None = None

    def add(self, name: TableName, rows: pa.Table) -> None:
        """Append rows of `exchanges`, `connects`, `gaps`, `pushes` or `causes`."""
        if name in ("gaps", "pushes", "causes"):
            self.pushed.add(name, rows)
        if name == "exchanges":
            self._schema = rows.schema
            self.exchanges.add(rows)
        elif name == "causes":
            self.causes.add(of_stretches(rows.select([*LINKS, *Causes.COLUMNS])))
        elif name != "pushes" and rows.num_rows and self._schema is not None:
            self.exchanges.add(as_exchanges(rows, name, self._schema))


def compact_tables(capture: Recording) -> FinderTables:
    """Return the columns that findings read, from the tables of a capture that is already analysed."""
    from latpcap.findings import FinderTables

    folded = Folded()
    names: tuple[TableName, ...] = ("exchanges", "connects", "gaps", "pushes", "causes")
    for name in names:
        for rows in capture.pieces(name):
            folded.add(name, rows)
            spill.release_memory()
    kept = (("stretches", folded.exchanges), ("causes", folded.causes))
    tables = {name: rows.table() for name, rows in kept if rows.count}
    compact = FinderTables(
        capture.arrow, None, tables, folded.causes.evidence if folded.causes.count else None, folded.pushed
    )
    spill.trim_heap()
    return compact


def requests(stretches: pa.Table) -> pa.Table:
    """Return the numbers of the requests among the stretches."""
    numbers = arrays.numbers(stretches, "exchange")
    rows_by_mask = spill.positions_by_key(request_mask(stretches).astype("int8"))
    numbers = spill.take(numbers, rows_by_mask[1]) if 1 in rows_by_mask else numbers[:0].astype("uint64")
    return pa.Table.from_arrays([arrays.column(numbers)], ["exchange"])


def _ordered(numbers: Array) -> tuple[Array, Array | None]:
    """Return the numbers sorted, and the order that sorts them; None where they are sorted already."""
    if spill.is_sorted(numbers):
        return numbers, None
    order = spill.argsort_nearly_sorted(numbers)
    return spill.take(numbers, order), order


def _as_named(words: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column of words with its list in the order in which the rows use the words: findings prefer the first of
    equal words.
    """
    first = words.indices.unique().drop_null()
    places = np.zeros(max(len(words.dictionary), 1), str(words.indices.type))
    place_numbers = arrays.numbers(pa.table([first], ["place"]), "place")
    places[place_numbers] = np.arange(len(first))
    codes = np.frombuffer(words.indices.buffers()[1], places.dtype, len(words))
    moved_codes = spill.from_pieces(codes.dtype, (places[codes[span]] for span in spill.parts(len(codes))))
    buffers = [words.indices.buffers()[0], pa.py_buffer(moved_codes)]
    indices = pa.Array.from_buffers(words.indices.type, len(words), buffers)
    return pa.DictionaryArray.from_arrays(indices, words.dictionary.take(first))


def _table(columns: dict[str, pa.Array]) -> pa.Table:
    return pa.Table.from_arrays(list(columns.values()), list(columns))
