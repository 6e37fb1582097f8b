"""Which numbers stand in these columns? Arrow tables in, numpy arrays out; knows nothing of what they mean."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from latpcap import spill

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array = np.ndarray[Any, Any]

_T = TypeVar("_T")
KEPT_ROWS = 1 << 20
"""Of tables with more rows nothing is kept: a column of so many takes 8 MB, which lie in a file (`spill`)."""
_KEPT: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}
"""By a table's id: what was made of it, as long as it lives."""


def kept(table: pa.Table, key: tuple[Any, ...], make: Callable[[], _T]) -> _T:
    """What `make` makes of a table, made once for each key: findings read the same columns for every server.

    Not for long tables, whose columns are made anew so that memory stays bounded.
    """
    if table.num_rows > KEPT_ROWS:
        return make()
    place = id(table)
    held = _KEPT.get(place)
    if held is None or held[0]() is not table:
        held = _KEPT[place] = weakref.ref(table, lambda gone: _forget(place, gone)), {}
    if key not in held[1]:
        held[1][key] = make()
    found: _T = held[1][key]
    return found


def _forget(place: int, gone: weakref.ref[Any]) -> None:
    if place in _KEPT and _KEPT[place][0] is gone:
        del _KEPT[place]


def _fixed(array: Array) -> Array:
    """An array that nobody can change: several hold it."""
    array.flags.writeable = False
    return array


def numbers(table: pa.Table, column: str) -> Array:
    """The column as it is, instants as integers in ns; with nulls as float64, where they are NaN. Read-only."""
    return kept(table, ("numbers", column), lambda: _fixed(_joined(_chunks(table[column]), None)))


def sliced(table: pa.Table) -> Iterator[tuple[slice, pa.Table]]:
    """The rows of a table, a part at a time, each with its place."""
    for span in spill.parts(table.num_rows):
        yield span, table.slice(span.start, span.stop - span.start)


def filled(table: pa.Table, column: str, null: int) -> Array:
    """A column of whole numbers as it is, to the last digit, with this one for null. Read-only."""
    return kept(table, ("filled", column, null), lambda: _fixed(_joined(_chunks(table[column]), null)))


def codes(table: pa.Table, column: str) -> tuple[Array, list[str]]:
    """A column of words as indices into the list of its words; null is -1. Read-only."""
    import pyarrow as pa

    def made() -> tuple[Array, list[str]]:
        values = table[column]
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        chunks = (values.unify_dictionaries() if values.num_chunks > 1 else values).chunks
        return _fixed(_joined([c.indices for c in chunks], -1)), chunks[0].dictionary.to_pylist() if chunks else []

    return kept(table, ("codes", column), made)


def nanoseconds(column: pa.ChunkedArray) -> Array:
    """Convert a column of instants to ns since 1970, whatever its unit is."""
    import pyarrow as pa

    ns: Array = column.cast(pa.timestamp("ns", tz=column.type.tz)).cast(pa.int64()).to_numpy()
    return ns


def code_of(words: Sequence[str], word: str) -> int:
    """Find the code of a word in the list that `codes` gave; of one that is not there a code that no row has."""
    return words.index(word) if word in words else -2  # -1 is null


def equals(table: pa.Table, column: str, *wanted: str) -> Array:
    """Mark the rows of a column of words that have one of these. Null is none of them."""
    import numpy as np

    code, words = codes(table, column)
    found = np.zeros(len(code), bool)
    for word in wanted:
        if word in words:
            found |= code == words.index(word)
    return found


def taken(table: pa.Table, column: str, rows: Array) -> pa.ChunkedArray:
    """The column's values in these rows. Made of the bytes of `rows`: Arrow's own way from numpy imports pandas."""
    import numpy as np
    import pyarrow as pa

    places = pa.py_buffer(np.ascontiguousarray(rows, np.int64))
    return table[column].take(pa.Array.from_buffers(pa.int64(), len(rows), [None, places]))


def looked_up(table: pa.Table, key: str, wanted: Array, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """These columns of the rows that have the wanted keys, all of which are there and distinct, as Python's values."""
    rows = spill.places(numbers(table, key), wanted)
    return list(zip(*(taken(table, name, rows).to_pylist() for name in names), strict=True))


def words(texts: Sequence[str]) -> pa.Array:
    """These texts as an Arrow array. (Arrow's own way from lists imports pandas.)"""
    import numpy as np
    import pyarrow as pa

    packed = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, packed)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(packed), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(packed))])


def integers(values: Sequence[int] | Array, kind: str) -> pa.Array:
    """These numbers as an Arrow array of a type by numpy's name, as in "uint64"."""
    import numpy as np
    import pyarrow as pa

    held = np.asarray(values, kind)
    return pa.Array.from_buffers(pa.type_for_alias(kind), len(held), [None, pa.py_buffer(held)])


def column(values: Array, known: Array | None = None) -> pa.Array:
    """These values as an Arrow array, null where they are not known: truths, or `bits` of them. (Arrow's own way may
    import pandas.)
    """
    import numpy as np
    import pyarrow as pa

    if known is not None and known.dtype == bool:
        known = bits([known])
    valid = None if known is None else pa.py_buffer(known)
    if values.dtype == bool:
        held = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [valid, pa.py_buffer(held)])
    kind = pa.type_for_alias(str(values.dtype))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])


def bits(truths: Iterable[Array]) -> Array | None:
    """Truths as bits, part by part, each but the last a multiple of eight; None where all are true."""
    import numpy as np

    every, found = True, []
    for part in truths:
        every = every and bool(part.all())
        found.append(np.packbits(part, bitorder="little"))
    return None if every else np.concatenate(found)


def dictionary(codes: Array, known: Array | None, values: Sequence[str] | Sequence[float]) -> pa.Array:
    """Places in a list of words, or of numbers, as an Arrow array; null where they are not known."""
    import numpy as np
    import pyarrow as pa

    if values and not isinstance(values[0], str):
        return pa.DictionaryArray.from_arrays(column(codes, known), column(np.array(values)))
    return pa.DictionaryArray.from_arrays(column(codes, known), words(cast("Sequence[str]", values)))


def lists(table: pa.Table, name: str) -> Iterator[tuple[Array, Array]]:
    """A column of lists of numbers: how many each row has, and the numbers one after the other; piece by piece."""
    import numpy as np

    for chunk in table[name].chunks:
        ends = np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1 + chunk.offset)[chunk.offset :]
        yield np.diff(ends), _numpy(chunk.values, None)[ends[0] : ends[-1]]


def _chunks(column: pa.ChunkedArray[Any]) -> list[pa.Array]:
    """One at least: a column of no rows has a type, too."""
    import pyarrow as pa

    return column.chunks or [pa.nulls(0, column.type)]


def _joined(chunks: list[pa.Array], null: int | None) -> Array:
    import numpy as np

    parts = [_numpy(chunk, null) for chunk in chunks]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _numpy(chunk: pa.Array, null: int | None) -> Array:
    """One Arrow array's values. Arrow's own way to numpy imports pandas, which `why` can do without."""
    import numpy as np
    import pyarrow as pa

    if isinstance(chunk, pa.DictionaryArray):
        return _numpy(chunk.dictionary, null)[_numpy(chunk.indices, -1)]
    validity, data = chunk.buffers()
    count, offset, kind = len(chunk), chunk.offset, str(chunk.type)
    if count > spill.BLOCK:
        spill.release_memory()  # whoever asks for the next column is through with the last
    kind = "int64" if kind.startswith(("timestamp", "duration")) else "float64" if kind == "double" else kind
    if not count:
        return np.zeros(0, kind)
    if count > spill.BLOCK and (kind == "bool" or chunk.null_count):  # what is made anew is long, too
        pieces = (_numpy(chunk.slice(s.start, s.stop - s.start), null) for s in spill.parts(count))
        fill = np.nan if null is None else null
        return spill.from_pieces(np.where([], np.zeros(0, kind), fill).dtype if chunk.null_count else kind, pieces)
    values = _bits(data, offset, count) if kind == "bool" else np.frombuffer(data, kind, count + offset)[offset:]
    if not chunk.null_count:
        return values
    known = _bits(validity, offset, count)
    return np.where(known, values, np.nan if null is None else null)


def _bits(buffer: pa.Buffer, offset: int, count: int) -> Array:
    import numpy as np

    packed = np.frombuffer(buffer, np.uint8, (offset + count + 7) // 8)
    return np.unpackbits(packed, count=offset + count, bitorder="little")[offset:].view(bool)


def levels(table: pa.Table, column: str) -> tuple[Array, Array]:
    """A column of few different numbers as places in the list of them. Nulls are not looked for."""
    import numpy as np
    import pyarrow as pa

    values = table[column]
    if pa.types.is_dictionary(values.type):
        chunks = values.unify_dictionaries().chunks
        known = _numpy(chunks[0].dictionary, None) if chunks else np.zeros(0)
        return _joined([c.indices for c in chunks], None), known
    plain = numbers(table, column)
    known = distinct(plain)
    return spill.places(known, plain), known


def sums(keys: Array, values: Array) -> tuple[Array, Array]:
    """The distinct keys in rising order, and the sum of the values of each."""
    import numpy as np

    if not len(keys):
        return keys, values
    if not spill.is_sorted(keys):
        order = spill.argsort_nearly_sorted(keys)
        keys, values = spill.take(keys, order), spill.take(values, order)
    found, total, begin = spill.Column(keys.dtype), spill.Column(values.dtype), 0
    while begin < len(keys):
        end = min(begin + spill.BLOCK, len(keys))
        end = begin + int(
            np.searchsorted(keys[begin:], keys[end - 1], side="right")
        )  # the last key's rows are together
        mine = keys[begin:end]
        starts = np.flatnonzero(np.r_[True, mine[1:] != mine[:-1]])
        found.add(mine[starts])
        total.add(np.add.reduceat(values[begin:end], starts))
        begin = end
        spill.release_memory()
    return found.array(), total.array()


def grouped(keys: Array) -> tuple[Array, Array, Array]:
    """The distinct keys in rising order: the first place of each, which of them each row has, how many rows have it."""
    import numpy as np

    known = distinct(keys)
    first, many = np.full(len(known), len(keys)), np.zeros(len(known), np.int64)
    which = spill.Column("int32")
    for span in spill.parts(len(keys)):
        mine = np.searchsorted(known, keys[span])
        which.add(mine)
        here, at, count = np.unique(mine, return_index=True, return_counts=True)
        first[here] = np.minimum(first[here], at + span.start)
        many[here] += count
    spill.release_memory()
    return first, which.array(), many


def distinct(values: Array) -> Array:
    """The distinct values in rising order. (numpy's own way hashes them, which takes ten times as long.)"""
    import numpy as np

    if len(values) < 2:
        return values
    found = [_distinct(values[span]) for span in spill.parts(len(values))]
    return _distinct(np.concatenate(found)) if len(found) > 1 else found[0]


def _distinct(values: Array) -> Array:
    import numpy as np

    ordered = values if bool((values[1:] >= values[:-1]).all()) else np.sort(values)
    found: Array = ordered[np.r_[True, ordered[1:] != ordered[:-1]]]
    return found


def percentile(ordered: Any, share: float) -> float:
    """Give the nearest rank: the least value with at least this share (0 to 1) of all at or below it.

    No value is interpolated. wrk takes the next one where the share is met exactly. `ordered` rises and is not empty.
    """
    return float(ordered[nearest_ranks([len(ordered)], share)[0]])


def nearest_ranks(counts: list[int], share: float) -> list[int]:
    """The places that `percentile` takes of so many values each."""
    return [max(math.ceil(round(count * share, 9)) - 1, 0) for count in counts]
