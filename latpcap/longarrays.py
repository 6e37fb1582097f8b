"""Long columns of numbers: in memory while they are short, then in a file that has no name.

What a capture of millions of requests needs for its answer is more than should lie in memory, and most of it is looked
at once. Such columns are arrays over a mapped file in the folder of temporary files: `rest` gives back the memory of
what was touched, and what is touched again is read again. Where no file can be had (no room, no such folder, no
`posix_fallocate`) they lie in memory like all others.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

LEAST_BYTES = 1 << 20
"""Columns below this stay in memory."""
PART = 1 << 16
"""Rows that are worked on at once, where a column is worked on part by part."""
_TOUCHED = 8
"""So many parts are touched before their memory is given back."""
_SORTED = 16
"""So many parts are sorted at once; more of them in as many pieces."""
_M_TRIM_THRESHOLD = -1
"""malloc.h of glibc and musl (which does nothing)."""
_maps: weakref.WeakKeyDictionary[mmap.mmap, IO[bytes]] = weakref.WeakKeyDictionary()
"""All mapped files."""


def zeros(count: int, kind: str | np.dtype[Any]) -> Array:
    """So many zeros of a numpy type, to be written to."""
    import numpy as np

    size = count * np.dtype(kind).itemsize
    held = _mapped(size) if size >= LEAST_BYTES else None
    return np.zeros(count, kind) if held is None else np.frombuffer(held, kind, count)


def nothing(count: int, kind: str | np.dtype[Any]) -> Array:
    """So many zeros that take no memory while nobody writes to them, which a heap that is used again does not give."""
    import numpy as np

    size = count * np.dtype(kind).itemsize
    if size < LEAST_BYTES or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(count, kind)
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), kind, count)


def trim() -> None:
    """From now on the C library gives back what was freed, and keeps 4 MiB of it. (glibc keeps up to 64 MiB.)"""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, 4 << 20)


def give_back() -> None:
    """What was freed goes back to the system now. (glibc keeps what lies below something in use.)"""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def copy(values: Array, out: Array) -> None:
    """Writes the values to the beginning of `out`, which is 0; where they are 0 nothing is written, as memory that
    nobody wrote to is none.
    """
    for span in parts(len(values)):
        piece = values[span]
        if piece.any():
            out[span] = piece


def taken(values: Array, order: Array) -> Array:
    """The values at these places."""
    found = zeros(len(order), values.dtype)
    for span in parts(len(order)):
        found[span] = values[order[span]]
    rest()
    return found


def rise(values: Array) -> bool:
    """Is none less than the one before it?"""
    spans = (values[at : at + PART + 1] for at in range(0, len(values), PART))
    return all(bool((span[1:] >= span[:-1]).all()) for span in spans)


def order(keys: Array) -> Array:
    """The places of the keys in rising order, equal ones as they come, in little memory.

    Those below one before them are sorted by themselves, and put between the others, which rise.
    """
    import numpy as np

    kind = "uint32" if len(keys) < np.iinfo("uint32").max else "int64"
    if not len(keys):
        return np.zeros(0, kind)
    fallen, tops = [], [keys[0]]
    for span in parts(len(keys)):
        mine = keys[span]
        fallen.append((np.flatnonzero(mine < _risen(mine, tops[-1])) + span.start).astype(kind))
        tops.append(max(tops[-1], mine.max()))
    late = joined(fallen)
    del fallen
    late = taken(late, ranked(taken(keys, late)))
    values = taken(keys, late)
    found, done, put = zeros(len(keys), kind), 0, 0
    for span, top, until in zip(parts(len(keys)), tops, np.searchsorted(values, tops[1:]).tolist(), strict=False):
        mine = keys[span]
        risen = _risen(mine, top)
        stay = mine >= risen
        before = np.r_[0, np.cumsum(stay)][np.searchsorted(risen, values[put:until], side="right")]
        places = np.insert((np.flatnonzero(stay) + span.start).astype(kind), before, late[put:until])
        found[done : done + len(places)] = places
        done, put = done + len(places), until
    rest()
    return found


def _risen(keys: Array, top: Any) -> Array:
    """Of each the highest up to it; `top` is that of those before."""
    import numpy as np

    found: Array = np.maximum(np.maximum.accumulate(keys), top)
    return found


def ranked(values: Array) -> Array:
    """The places of the values in rising order, equal ones as they come; for values in any order, in parts that a
    sample of them tells.
    """
    import numpy as np

    kind = "uint32" if len(values) < np.iinfo("uint32").max else "int64"
    if len(values) <= _SORTED * PART:
        return np.argsort(values, kind="stable").astype(kind)
    sample = np.sort(values[:: len(values) // PART])
    bounds = np.unique(sample[:: len(sample) // _SORTED])[1:].tolist()
    found, done = zeros(len(values), kind), 0
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        some = []
        for span in parts(len(values)):
            piece = values[span]
            inside = np.ones(len(piece), bool) if low is None else piece >= low
            if high is not None:
                inside &= piece < high
            some.append((np.flatnonzero(inside) + span.start).astype(kind))
        mine = np.concatenate(some)
        found[done : done + len(mine)] = mine[np.argsort(values[mine], kind="stable")]
        done += len(mine)
        rest()
    return found


def nth(values: Array, place: int) -> Any:
    """The value at this place of the rising order; the values stay as they are."""
    import numpy as np

    if len(values) <= _SORTED * PART:
        return np.partition(values, place)[place]
    sample = np.sort(values[:: len(values) // PART])
    bounds = np.unique(sample[:: len(sample) // _SORTED])

    def pieces(span: slice) -> Array:
        # below the first bound, equal to it, between it and the second, equal to that ...
        mine = values[span]
        found: Array = np.searchsorted(bounds, mine, side="left") + np.searchsorted(bounds, mine, side="right")
        return found

    many = np.zeros(2 * len(bounds) + 1, np.int64)
    for span in parts(len(values)):
        many += np.bincount(pieces(span), minlength=len(many))
    piece = int(np.searchsorted(np.cumsum(many), place, side="right"))
    if piece % 2:
        rest()
        return bounds[piece // 2]
    some = [values[span][pieces(span) == piece] for span in parts(len(values))]
    inside, before = np.concatenate(some), place - int(many[:piece].sum())
    rest()
    return np.partition(inside, before)[before]


def marked(rows: Array, count: int) -> Array:
    """A truth for each of so many places: is it one of the rows?"""
    import numpy as np

    found = np.zeros(count, bool)
    for span in parts(len(rows)):
        found[rows[span]] = True
    return found


def chosen(rows: Array, which: Array) -> Array:
    """Those of the rows that `which` marks: it has a truth for each place that a row may name."""
    found, done = zeros(sum(int(which[rows[span]].sum()) for span in parts(len(rows))), rows.dtype), 0
    for span in parts(len(rows)):
        mine = rows[span]
        mine = mine[which[mine]]
        found[done : done + len(mine)] = mine
        done += len(mine)
    rest()
    return found


def grown(values: Array, count: int) -> Array:
    """The same values with zeros behind, so many in all; forget the old array."""
    held = getattr(values.base, "obj", values.base)
    if isinstance(held, mmap.mmap) and held in _maps:
        longer = _mapped(count * values.itemsize, _maps[held])
        if longer is not None:
            import numpy as np

            return np.frombuffer(longer, values.dtype, count)
    found = zeros(count, values.dtype)
    copy(values, found)
    return found


def parts(count: int) -> Iterator[slice]:
    """So many rows, a part at a time; what the last parts touched is given back on the way."""
    for number, at in enumerate(range(0, count, PART)):
        if number and not number % _TOUCHED:
            rest()
        yield slice(at, min(at + PART, count))


def split(keys: Array) -> dict[int, Array]:
    """The places of each key that is not negative, rising."""
    import numpy as np

    kind = np.dtype("uint32" if len(keys) < np.iinfo("uint32").max else "int64")
    counts: dict[int, int] = {}
    for span in parts(len(keys)):
        for key, many in zip(*(a.tolist() for a in np.unique(keys[span], return_counts=True)), strict=True):
            counts[key] = counts.get(key, 0) + many
    found = {key: zeros(counts[key], kind) for key in sorted(counts) if key >= 0}
    done = dict.fromkeys(found, 0)
    for span in parts(len(keys)):
        mine = keys[span]
        order = np.argsort(mine, kind="stable")
        ordered = mine[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        for key, places in zip(ordered[starts].tolist(), np.split(order, starts[1:]), strict=True):
            if key >= 0:
                found[key][done[key] : done[key] + len(places)] = places + span.start
                done[key] += len(places)
    rest()
    return found


def places(keys: Array, wanted: Array) -> Array:
    """Where each wanted key stands among `keys`, which are distinct and have all of them."""
    import numpy as np

    if rise(keys):
        if len(keys) and keys.dtype.kind in "iu" and int(keys[-1]) - int(keys[0]) + 1 == len(keys):  # numbered through
            return wanted if not keys[0] else wanted - keys[0]
        sort = None
    else:
        sort = order(keys)
    found = zeros(len(wanted), "uint32" if len(keys) < np.iinfo("uint32").max else "int64")
    for span in parts(len(wanted)):
        at = np.searchsorted(keys, wanted[span], sorter=sort)
        found[span] = at if sort is None else sort[at]
    rest()
    return found


def joined(several: Sequence[Array]) -> Array:
    """One behind the other."""
    import numpy as np

    found = zeros(sum(map(len, several)), np.result_type(*several) if several else "uint32")
    done = 0
    for values in several:
        copy(values, found[done:])
        done += len(values)
    rest()
    return found


def weighed(codes: Array, weights: Array, count: int, rows: Array | None = None) -> Array:
    """The weights of each of so many codes added up; `rows` limits both to these places."""
    import numpy as np

    found = np.zeros(count)
    for span in parts(len(codes) if rows is None else len(rows)):
        mine = span if rows is None else rows[span]
        found += np.bincount(codes[mine], weights[mine], count)
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
    for held in list(_maps.keys()):
        held.madvise(mmap.MADV_DONTNEED)


def _mapped(size: int, file: IO[bytes] | None = None) -> mmap.mmap | None:
    """A file of so many zeros, or this one with zeros behind, mapped; it goes with the last array over it. Its room is
    taken at once: what is written to a mapped file on a full disk ends the program.
    """
    if not hasattr(os, "posix_fallocate") or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    try:
        file = file or tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (it is held in _maps)
        os.posix_fallocate(file.fileno(), 0, size)
        held = mmap.mmap(file.fileno(), size)
    except OSError:
        return None
    _maps[held] = file
    return held
