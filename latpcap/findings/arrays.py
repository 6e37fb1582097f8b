"""Which numbers stand in these columns? Arrow tables in, numpy arrays out; knows nothing of what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array = np.ndarray[Any, Any]


def numbers(table: pa.Table, column: str) -> Array:
    """The column as float64 or as integers; nulls become NaN."""
    import pyarrow as pa

    values = table[column]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return values.to_numpy()  # type: ignore[no-any-return]


def codes(table: pa.Table, column: str) -> tuple[Array, list[str]]:
    """A column of words as indices into the list of its words; null is -1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table[column]
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    whole = values.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # pyarrow gives no single chunk for an empty column
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], values.type)
    return pc.fill_null(whole.indices, -1).to_numpy(zero_copy_only=False), whole.dictionary.to_pylist()


def sums(keys: Array, values: Array) -> tuple[Array, Array]:
    """The distinct keys in rising order, and the sum of the values of each."""
    import numpy as np

    if not len(keys):
        return keys, values
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    return sorted_keys[starts], np.add.reduceat(values[order], starts)


def percentile(ordered: Array, share: float) -> float:
    """Nearest rank, as wrk counts; `ordered` rises and is not empty."""
    import math

    return float(ordered[max(0, math.ceil(share * len(ordered)) - 1)])
