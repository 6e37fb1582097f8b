"""Long columns of numbers: in memory while they are short, then in a file that has no name.

What a capture of millions of requests needs for its answer is more than should lie in memory, and most of it is looked
at once. Such columns are arrays over a mapped file in the folder of temporary files: `rest` gives back the memory of
what was touched, and what is touched again is read again. Where no file can be had (no room, no such folder, no
`posix_fallocate`) they lie in memory like all others.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

LEAST_BYTES = 1 << 20
"""Columns below this stay in memory."""
PART = 1 << 16
"""Rows that are worked on at once, where a column is worked on part by part."""
_LATE = 8
"""Of an order that is made part by part: where more parts than these wait for a place, all are sorted at once."""

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def zeros(count: int, kind: str | np.dtype[Any]) -> Array:
    """So many zeros of a numpy type, to be written to."""
    import numpy as np

    size = count * np.dtype(kind).itemsize
    held = _mapped(size) if size >= LEAST_BYTES else None
    return np.zeros(count, kind) if held is None else np.frombuffer(held, kind, count)


def copy(values: Array, out: Array) -> None:
    """Writes the values to the beginning of `out`, which is 0; where they are 0 nothing is written, as memory that
    nobody wrote to is none.
    """
    for at in range(0, len(values), PART):
        piece = values[at : at + PART]
        if piece.any():
            out[at : at + len(piece)] = piece


def taken(values: Array, order: Array) -> Array:
    """The values at these places."""
    found = zeros(len(order), values.dtype)
    for at in range(0, len(order), PART):
        found[at : at + PART] = values[order[at : at + PART]]
    rest()
    return found


def rise(values: Array) -> bool:
    """Is none less than the one before it?"""
    spans = (values[at : at + PART + 1] for at in range(0, len(values), PART))
    return all(bool((span[1:] >= span[:-1]).all()) for span in spans)


def order(keys: Array) -> Array:
    """The places of the keys in rising order, equal ones as they come. For keys that rise nearly, in little memory."""
    import numpy as np

    kind = "uint32" if len(keys) < np.iinfo("uint32").max else "int64"
    if not len(keys):
        return np.zeros(0, kind)
    least = [keys[at : at + PART].min() for at in range(0, len(keys), PART)]
    behind = [*np.minimum.accumulate(least[::-1])[::-1][1:].tolist(), None]
    found, done = zeros(len(keys), kind), 0
    late = np.zeros(0, kind)
    for at, floor in zip(range(0, len(keys), PART), behind, strict=True):
        places = np.concatenate([late, np.arange(at, min(at + PART, len(keys)), dtype=kind)])
        mine = keys[places]
        sort = np.argsort(mine, kind="stable")
        few = len(sort) if floor is None else int(np.searchsorted(mine, floor, side="right", sorter=sort))
        found[done : done + few] = places[sort[:few]]
        late, done = places[sort[few:]], done + few
        if len(late) > _LATE * PART:
            return kept(np.argsort(keys, kind="stable").astype(kind))
    rest()
    return found


def kept(values: Array) -> Array:
    """The same values where they may stay for long."""
    if values.nbytes < LEAST_BYTES:
        return values
    found = zeros(len(values), values.dtype)
    copy(values, found)
    rest()
    return found


def rest() -> None:
    """Gives back the memory of all that lies in files; nothing is lost."""
    for held in list(_maps):
        held.madvise(mmap.MADV_DONTNEED)


def _mapped(size: int) -> mmap.mmap | None:
    """A file of so many zeros, mapped, which goes with the last array over it. Its room is taken at once: what is
    written to a mapped file on a full disk ends the program.
    """
    if not hasattr(os, "posix_fallocate") or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    try:
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, size)
            held = mmap.mmap(file.fileno(), size)
    except OSError:
        return None
    _maps.add(held)
    return held
