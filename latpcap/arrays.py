"""Columns of Arrow tables as numpy arrays and back, with grouping and percentiles of such arrays."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from latpcap import spill
from latpcap.lazy import np, pa

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_T = TypeVar("_T")
KEPT_ROWS = 1 << 20
"""Upper bound on the rows of a table whose columns are cached; a longer column takes 8 MB, in a file (`spill`)."""
_KEPT: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}
"""The cache of each table, by its `id`; removed with the table."""


def kept(table: pa.Table, key: tuple[Any, ...], make: Callable[[], _T]) -> _T:
    """Return `make()`, computed once per table and key: findings read the same columns for every server.

    Columns of long tables are not cached, so that memory stays bounded.
    """
    if table.num_rows > KEPT_ROWS:
        return make()
    table_id = id(table)
    entry = _KEPT.get(table_id)
    if entry is None or entry[0]() is not table:
        entry = _KEPT[table_id] = weakref.ref(table, lambda gone: _forget(table_id, gone)), {}
    if key not in entry[1]:
        entry[1][key] = make()
    return entry[1][key]


def _forget(table_id: int, gone: weakref.ref[Any]) -> None:
    if table_id in _KEPT and _KEPT[table_id][0] is gone:
        del _KEPT[table_id]


def _fixed(array: Array) -> Array:
    """Return the array made read-only, because several callers share it."""
    array.flags.writeable = False
    return array


def numbers(table: pa.Table, column: str) -> Array:
    """Return a column as it is, instants as integers in ns. Columns with nulls become float64 with NaN. Read-only."""
    return kept(table, ("numbers", column), lambda: _fixed(_joined(_chunks(table[column]), None)))


def sliced(table: pa.Table) -> Iterator[tuple[slice, pa.Table]]:
    """Yield the rows of a table in parts, each with its position."""
    for span in spill.parts(table.num_rows):
        yield span, table.slice(span.start, span.stop - span.start)


def filled(table: pa.Table, column: str, null: int) -> Array:
    """Return a column of integers without loss of precision, with `null` in place of nulls. Read-only."""
    return kept(table, ("filled", column, null), lambda: _fixed(_joined(_chunks(table[column]), null)))


def codes(table: pa.Table, column: str) -> tuple[Array, list[str]]:
    """Return a column of words as indices into the list of its distinct words; null is -1. Read-only."""

    def made() -> tuple[Array, list[str]]:
        values = table[column]
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        chunks = (values.unify_dictionaries() if values.num_chunks > 1 else values).chunks
        words = chunks[0].dictionary.to_pylist() if chunks else []
        return _fixed(_joined([chunk.indices for chunk in chunks], -1)), words

    return kept(table, ("codes", column), made)


def nanoseconds(column: pa.ChunkedArray) -> Array:
    """Return a column of instants in ns since 1970, whatever its unit."""
    return column.cast(pa.timestamp("ns", tz=column.type.tz)).cast(pa.int64()).to_numpy()


def code_of(words: Sequence[str], word: str) -> int:
    """Return the index of a word in the list that `codes` returned; -2, which no row has, for other words."""
    return words.index(word) if word in words else -2  # -1 is null


def equals(table: pa.Table, column: str, *wanted: str) -> Array:
    """Return a mask of the rows whose word is one of `wanted`; false for null."""
    code, words = codes(table, column)
    mask = np.zeros(len(code), bool)
    for word in wanted:
        if word in words:
            mask |= code == words.index(word)
    return mask


def taken(table: pa.Table, column: str, rows: Array) -> pa.ChunkedArray:
    """Return the values of a column in these rows. Built from a buffer: pyarrow's conversion imports pandas."""
    packed_rows = pa.py_buffer(np.ascontiguousarray(rows, np.int64))
    return table[column].take(pa.Array.from_buffers(pa.int64(), len(rows), [None, packed_rows]))


def looked_up(table: pa.Table, key: str, wanted: Array, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return some columns of the rows with these keys, as Python values. The keys are distinct and all present."""
    rows = spill.positions_of(numbers(table, key), wanted)
    return list(zip(*(taken(table, name, rows).to_pylist() for name in names), strict=True))


def strings(texts: Sequence[str]) -> pa.Array:
    """Return texts as an Arrow array, built from buffers: pyarrow's conversion from lists imports pandas."""
    packed = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, packed)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(packed), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(packed))])


def integers(values: Sequence[int] | Array, dtype: str) -> pa.Array:
    """Return numbers as an Arrow array of a type that has numpy's name, such as "uint64"."""
    array = np.asarray(values, dtype)
    return pa.Array.from_buffers(pa.type_for_alias(dtype), len(array), [None, pa.py_buffer(array)])


def column(values: Array, is_valid: Array | None = None) -> pa.Array:
    """Return values as an Arrow array, null where `is_valid` (booleans, or bits as `bits` returns) is false. Built from
    buffers: pyarrow's conversion may import pandas.
    """
    if is_valid is not None and is_valid.dtype == bool:
        is_valid = bits([is_valid])
    valid = None if is_valid is None else pa.py_buffer(is_valid)
    if values.dtype == bool:
        packed = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [valid, pa.py_buffer(packed)])
    arrow_type = pa.type_for_alias(str(values.dtype))
    return pa.Array.from_buffers(arrow_type, len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])


def bits(truths: Iterable[Array]) -> Array | None:
    """Return booleans packed as bits; each part but the last has a multiple of eight. None where all are true."""
    is_all_true, packed = True, []
    for part in truths:
        is_all_true = is_all_true and bool(part.all())
        packed.append(np.packbits(part, bitorder="little"))
    return None if is_all_true else np.concatenate(packed)


def dictionary(codes: Array, is_valid: Array | None, values: Sequence[str] | Sequence[float]) -> pa.Array:
    """Return an Arrow dictionary array of indices into `values`; null where `is_valid` is false."""
    if values and not isinstance(values[0], str):
        return pa.DictionaryArray.from_arrays(column(codes, is_valid), column(np.array(values)))
    return pa.DictionaryArray.from_arrays(column(codes, is_valid), strings(cast("Sequence[str]", values)))


def lists(table: pa.Table, name: str) -> Iterator[tuple[Array, Array]]:
    """Yield the lengths of the lists of a column, and their numbers concatenated, for each chunk."""
    for chunk in table[name].chunks:
        ends = np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1 + chunk.offset)[chunk.offset :]
        yield np.diff(ends), _numpy(chunk.values, None)[ends[0] : ends[-1]]


def _chunks(column: pa.ChunkedArray[Any]) -> list[pa.Array]:
    """Return the chunks of a column; one empty chunk for a column without rows, for its type."""
    return column.chunks or [pa.nulls(0, column.type)]


def _joined(chunks: list[pa.Array], null: int | None) -> Array:
    parts = [_numpy(chunk, null) for chunk in chunks]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _numpy(chunk: pa.Array, null: int | None) -> Array:
    """Return the values of one Arrow array, read from its buffers: pyarrow's conversion imports pandas."""
    if isinstance(chunk, pa.DictionaryArray):
        return _numpy(chunk.dictionary, null)[_numpy(chunk.indices, -1)]
    validity, data = chunk.buffers()
    count, offset, dtype = len(chunk), chunk.offset, str(chunk.type)
    if count > spill.BLOCK:
        spill.release_memory()  # the column read before is no longer in use
    dtype = "int64" if dtype.startswith(("timestamp", "duration")) else "float64" if dtype == "double" else dtype
    if not count:
        return np.zeros(0, dtype)
    if count > spill.BLOCK and (dtype == "bool" or chunk.null_count):  # the converted column is long, too: in parts
        pieces = (_numpy(chunk.slice(span.start, span.stop - span.start), null) for span in spill.parts(count))
        fill = np.nan if null is None else null
        return spill.from_pieces(np.where([], np.zeros(0, dtype), fill).dtype if chunk.null_count else dtype, pieces)
    values = _bits(data, offset, count) if dtype == "bool" else np.frombuffer(data, dtype, count + offset)[offset:]
    if not chunk.null_count:
        return values
    is_valid = _bits(validity, offset, count)
    return np.where(is_valid, values, np.nan if null is None else null)


def _bits(buffer: pa.Buffer, offset: int, count: int) -> Array:
    packed = np.frombuffer(buffer, np.uint8, (offset + count + 7) // 8)
    return np.unpackbits(packed, count=offset + count, bitorder="little")[offset:].view(bool)


def levels(table: pa.Table, column: str) -> tuple[Array, Array]:
    """Return a column of few distinct numbers as indices into their list. The column has no nulls."""
    values = table[column]
    if pa.types.is_dictionary(values.type):
        chunks = values.unify_dictionaries().chunks
        distinct_values = _numpy(chunks[0].dictionary, None) if chunks else np.zeros(0)
        return _joined([chunk.indices for chunk in chunks], None), distinct_values
    plain = numbers(table, column)
    distinct_values = distinct(plain)
    return spill.positions_of(distinct_values, plain), distinct_values


def sums(keys: Array, values: Array) -> tuple[Array, Array]:
    """Return the distinct keys, ascending, and the sum of the values of each."""
    if not len(keys):
        return keys, values
    if not spill.is_sorted(keys):
        order = spill.argsort_nearly_sorted(keys)
        keys, values = spill.take(keys, order), spill.take(values, order)
    distinct_keys, total, begin = spill.Column(keys.dtype), spill.Column(values.dtype), 0
    while begin < len(keys):
        end = min(begin + spill.BLOCK, len(keys))
        # move the end to after the last row of the last key
        end = begin + int(np.searchsorted(keys[begin:], keys[end - 1], side="right"))
        part = keys[begin:end]
        starts = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
        distinct_keys.add(part[starts])
        total.add(np.add.reduceat(values[begin:end], starts))
        begin = end
        spill.release_memory()
    return distinct_keys.array(), total.array()


def grouped(keys: Array) -> tuple[Array, Array, Array]:
    """Group equal keys, in ascending order: the first row of each key, the group of each row, the rows per group."""
    distinct_keys = distinct(keys)
    first, counts = np.full(len(distinct_keys), len(keys)), np.zeros(len(distinct_keys), np.int64)
    group_of = spill.Column("int32")
    for span in spill.parts(len(keys)):
        groups = np.searchsorted(distinct_keys, keys[span])
        group_of.add(groups)
        group, first_rows, count = np.unique(groups, return_index=True, return_counts=True)
        first[group] = np.minimum(first[group], first_rows + span.start)
        counts[group] += count
    spill.release_memory()
    return first, group_of.array(), counts


def distinct(values: Array) -> Array:
    """Return the distinct values, ascending. Sorts: `numpy.unique` hashes integers, which takes ten times as long."""
    if len(values) < 2:
        return values
    parts = [_distinct(values[span]) for span in spill.parts(len(values))]
    return _distinct(np.concatenate(parts)) if len(parts) > 1 else parts[0]


def _distinct(values: Array) -> Array:
    ordered = values if bool((values[1:] >= values[:-1]).all()) else np.sort(values)
    return ordered[np.r_[True, ordered[1:] != ordered[:-1]]]


def percentile(ordered: Any, share: float) -> float:
    """Return the nearest-rank percentile: the least value with at least this share (0 to 1) of all at or below it.

    No value is interpolated. wrk takes the next value where the share is met exactly. `ordered` ascends, not empty.
    """
    return float(ordered[nearest_ranks([len(ordered)], share)[0]])


def nearest_ranks(counts: list[int], share: float) -> list[int]:
    """Return the positions that `percentile` takes of ascending columns with these lengths."""
    return [max(math.ceil(round(count * share, 9)) - 1, 0) for count in counts]
