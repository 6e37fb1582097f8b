"""Long columns of numbers: in memory while they are short, then in a file that has no name.

What a capture of millions of requests needs for its answer is more than should lie in memory, and most of it is looked
at once. Such columns are written to a file in the folder of temporary files, from their beginning to their end, and
read as arrays over the mapped file: `release_memory` gives back the memory of what was touched, and what is touched
again is read again. (Writing to a mapped file instead takes a fault for each page.) Where no file can be had (no room,
no such folder, no `posix_fallocate`) they lie in memory like all others.

No library does this: `numpy.memmap` has a name in the folder and faults on each written page, and engines that sort on
disk (DuckDB, Polars) would be a dependency of 40 MB and more for `latpcap why`, and want their own copy of each column.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MIN_FILE_BYTES = 1 << 20
"""Columns below this stay in memory."""
BLOCK = 1 << 16
"""Rows that are worked on at once, where a column is worked on part by part; a multiple of eight."""
RESIDENT_BYTES = 32 << 20
"""So much of the files lies in memory before it is given back."""
_TOUCHED = 8
"""So many parts are touched before memory is measured."""
_SORTED = 16
"""So many parts are sorted at once; more of them in as many pieces."""
_REST_AFTER = 1024
"""So many short arrays are made before memory is given back."""
_calls = 0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""malloc.h of glibc and musl (which does nothing)."""
_maps: weakref.WeakKeyDictionary[mmap.mmap, IO[bytes]] = weakref.WeakKeyDictionary()
"""All mapped files."""
_before: list[int] = []
"""What lay in memory of other files, those of programs, before the first of ours was mapped."""
_zero: list[mmap.mmap] = []
"""Memory that nobody writes to, the longest so far."""


class Column:
    """A column that is written from its beginning to its end; `array` gives all of it."""

    def __init__(self, kind: str | np.dtype[Any]):
        import numpy as np

        self.kind: np.dtype[Any] = np.dtype(kind)
        self.count = 0
        self._pieces: list[tuple[int, Array]] = []
        self._held = 0
        self._file: IO[bytes] | None = None
        self._fits = True

    @property
    def zero(self) -> bool:
        """Is it 0 all along?"""
        return self._file is None and not self._pieces

    def skip(self, count: int) -> None:
        """So many zeros; they take no room."""
        self.count += count

    def add(self, values: Array) -> None:
        """The next values."""
        import numpy as np

        begin, self.count = self.count, self.count + len(values)
        if self._file is not None:
            self._put(begin, np.ascontiguousarray(values, self.kind))
        else:
            self._pieces.append((begin, values.astype(self.kind)))  # a copy: they may lie in a batch that goes
            self._held += self._pieces[-1][1].nbytes
            if self._held >= MIN_FILE_BYTES:
                self._to_file()

    def widen(self, kind: np.dtype[Any]) -> None:
        """From now on its values may be larger."""
        held, self.kind = self.array(), kind
        for span in parts(len(held)):
            self.add(held[span])

    def array(self) -> Array:
        """All of it; the column is empty then. Where zeros were skipped nobody may write to it."""
        import numpy as np

        if self.zero:
            count, self.count = self.count, 0
            return shared_zeros(count, self.kind)
        if self._file is None and self.count * self.kind.itemsize >= MIN_FILE_BYTES:
            self._to_file()
        file, pieces, count = self._file, self._pieces, self.count
        self._file, self._pieces, self._held, self.count = None, [], 0, 0
        if file is not None:
            with contextlib.suppress(OSError):
                file.truncate(count * self.kind.itemsize)
                return np.frombuffer(_mapped(file, count * self.kind.itemsize), self.kind, count)
            pieces = [(0, np.frombuffer(_read(file), self.kind))]
        if len(pieces) == 1 and len(pieces[0][1]) == count:
            return pieces[0][1]
        found = np.zeros(count, self.kind)
        for begin, values in pieces:
            found[begin : begin + len(values)] = values
        return found

    def _to_file(self) -> None:
        self._file = _opened() if self._fits else None
        if self._file is not None:
            pieces, self._pieces, self._held = self._pieces, [], 0
            for at, (begin, values) in enumerate(pieces):
                if self._file is None:  # no room
                    self._pieces += pieces[at:]
                    break
                self._put(begin, values)

    def _put(self, begin: int, values: Array) -> None:
        """Writes them to the file; where that has no room, all of it goes to memory."""
        assert self._file is not None
        at, left = begin * self.kind.itemsize, values.view("uint8").data
        try:
            while left:
                done = os.pwrite(self._file.fileno(), left, at)
                at, left = at + done, left[done:]
        except OSError:
            import numpy as np

            written, size = _read(self._file), begin * self.kind.itemsize
            written = written[:size].ljust(size, b"\0")
            self._file, self._fits = None, False
            self._pieces = [(0, np.frombuffer(bytearray(written), self.kind)), (begin, values.copy())]


def from_pieces(kind: str | np.dtype[Any], pieces: Iterable[Array]) -> Array:
    """These values, one piece behind the other."""
    column = Column(kind)
    for piece in pieces:
        column.add(piece)
    found = column.array()
    release_memory()
    return found


def zeros(count: int, kind: str | np.dtype[Any]) -> Array:
    """So many zeros of a numpy type, to be written to anywhere. The room in their file is taken at once: what is
    written to a mapped file on a full disk ends the program.
    """
    import numpy as np

    size = count * np.dtype(kind).itemsize
    file = _opened() if size >= MIN_FILE_BYTES else None
    if file is not None:
        with contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(_mapped(file, size), kind, count)
    return np.zeros(count, kind)


def extended(values: Array, count: int) -> Array:
    """The values and zeros behind them, so many in all, to be written to anywhere."""
    found = zeros(count, values.dtype)
    for span in parts(len(values)):
        found[span] = values[span]
    return found


def shared_zeros(count: int, kind: str | np.dtype[Any]) -> Array:
    """So many zeros that take no memory and that nobody may write to: all of them are the same."""
    import numpy as np

    size = count * np.dtype(kind).itemsize
    if size < MIN_FILE_BYTES or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(count, kind)
    if not _zero or len(_zero[0]) < size:
        _zero[:] = [mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)]
    found: Array = np.frombuffer(_zero[0], kind, count)
    found.flags.writeable = False
    return found


def configure_malloc() -> None:
    """From now on the C library gives back what was freed, and keeps 4 MiB of it. (glibc keeps up to 64 MiB.) What is
    below that comes out of it again: else each array of a part would be new pages, with a fault for each. Arrow's
    memory comes from there too.
    """
    import ctypes

    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())

    with contextlib.suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, 4 << 20)
        libc.mallopt(_M_MMAP_THRESHOLD, 4 << 20)


def trim_heap() -> None:
    """What was freed goes back to the system now. (glibc keeps what lies below something in use.)"""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _short(count: int) -> bool:
    """Is it one part, in memory? Then it takes no column: of a capture with many servers most arrays have few rows."""
    global _calls
    if count > BLOCK:
        return False
    _calls += 1
    if not _calls % _REST_AFTER:
        release_memory()
    return True


def take(values: Array, order: Array) -> Array:
    """The values at these places."""
    if _short(len(order)):
        found: Array = values[order]
        return found
    return from_pieces(values.dtype, (values[order[span]] for span in parts(len(order))))


def is_sorted(values: Array) -> bool:
    """Is none less than the one before it?"""
    spans = (values[at : at + BLOCK + 1] for at in range(0, len(values), BLOCK))
    return all(bool((span[1:] >= span[:-1]).all()) for span in spans)


def argsort_nearly_sorted(keys: Array) -> Array:
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
    late = concatenated(fallen)
    del fallen
    late = take(late, argsort(take(keys, late)))
    values = take(keys, late)
    found, put = Column(kind), 0
    for span, top, until in zip(parts(len(keys)), tops, np.searchsorted(values, tops[1:]).tolist(), strict=False):
        mine = keys[span]
        risen = _risen(mine, top)
        stay = mine >= risen
        before = np.r_[0, np.cumsum(stay)][np.searchsorted(risen, values[put:until], side="right")]
        found.add(np.insert((np.flatnonzero(stay) + span.start).astype(kind), before, late[put:until]))
        put = until
    release_memory()
    return found.array()


def _risen(keys: Array, top: Any) -> Array:
    """Of each the highest up to it; `top` is that of those before."""
    import numpy as np

    found: Array = np.maximum(np.maximum.accumulate(keys), top)
    return found


def argsort(values: Array) -> Array:
    """The places of the values in rising order, equal ones as they come; for values in any order, in parts that a
    sample of them.
    """
    import numpy as np

    kind = "uint32" if len(values) < np.iinfo("uint32").max else "int64"
    if len(values) <= _SORTED * BLOCK:
        return np.argsort(values, kind="stable").astype(kind)
    sample = np.sort(values[:: len(values) // BLOCK])
    bounds = np.unique(sample[:: len(sample) // _SORTED])[1:].tolist()
    found = Column(kind)
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        some = []
        for span in parts(len(values)):
            piece = values[span]
            inside = np.ones(len(piece), bool) if low is None else piece >= low
            if high is not None:
                inside &= piece < high
            some.append((np.flatnonzero(inside) + span.start).astype(kind))
        mine = np.concatenate(some)
        found.add(mine[np.argsort(values[mine], kind="stable")])
        release_memory()
    return found.array()


def nth_smallest(values: Array, place: int) -> Any:
    """The value at this place of the rising order; the values stay as they are."""
    import numpy as np

    if len(values) <= _SORTED * BLOCK:
        return np.partition(values, place)[place]
    sample = np.sort(values[:: len(values) // BLOCK])
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
        release_memory()
        return bounds[piece // 2]
    some = [values[span][pieces(span) == piece] for span in parts(len(values))]
    inside, before = np.concatenate(some), place - int(many[:piece].sum())
    release_memory()
    return np.partition(inside, before)[before]


def row_mask(rows: Array, count: int) -> Array:
    """A truth for each of so many places: is it one of the rows?"""
    import numpy as np

    found = np.zeros(count, bool)
    for span in parts(len(rows)):
        found[rows[span]] = True
    return found


def selected(rows: Array, which: Array) -> Array:
    """Those of the rows that `which` marks: it has a truth for each place that a row may name."""
    if _short(len(rows)):
        found: Array = rows[which[rows]]
        return found
    mine = (rows[span] for span in parts(len(rows)))
    return from_pieces(rows.dtype, (some[which[some]] for some in mine))


def parts(count: int) -> Iterator[slice]:
    """So many rows, a part at a time; what the last parts touched is given back on the way."""
    for number, at in enumerate(range(0, count, BLOCK)):
        if number and not number % _TOUCHED:
            release_memory()
        yield slice(at, min(at + BLOCK, count))


def places_by_key(keys: Array) -> dict[int, Array]:
    """The places of each key that is not negative, rising."""
    order, ends = grouped(keys, int(max((keys[span].max() for span in parts(len(keys))), default=-1)) + 1)
    bounds = ends.tolist()
    return {key: order[begin:end] for key, (begin, end) in enumerate(pairwise(bounds)) if end > begin}


def grouped(keys: Array, count: int) -> tuple[Array, Array]:
    """The places of keys below `count`, those of each key together and rising, and where those of each key begin and
    end: of key k they are `order[bounds[k] : bounds[k + 1]]`. Negative keys come before all, and have no bounds.
    """
    import numpy as np

    kind = np.dtype("uint32" if len(keys) < np.iinfo("uint32").max else "int64")
    many = np.zeros(count + 1, np.int64)
    for span in parts(len(keys)):
        many += np.bincount(keys[span].astype(np.int64) + 1, minlength=count + 1)
    bounds = np.cumsum(many)
    if len(keys) <= _SORTED * BLOCK:
        return np.argsort(keys, kind="stable").astype(kind), bounds
    found, put = zeros(len(keys), kind), np.r_[0, bounds[:-1]]
    for span in parts(len(keys)):
        mine = keys[span].astype(np.int64) + 1
        order = np.argsort(mine, kind="stable")
        ordered = mine[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        length = np.diff(np.r_[starts, len(mine)])
        found[np.repeat(put[ordered[starts]] - starts, length) + np.arange(len(mine))] = order + span.start
        put[ordered[starts]] += length
    release_memory()
    return found, bounds


def places(keys: Array, wanted: Array) -> Array:
    """Where each wanted key stands among `keys`, which are distinct and have all of them."""
    import numpy as np

    if is_sorted(keys):
        if len(keys) and keys.dtype.kind in "iu" and int(keys[-1]) - int(keys[0]) + 1 == len(keys):  # numbered through
            return wanted if not keys[0] else wanted - keys[0]
        sort = None
    else:
        sort = argsort_nearly_sorted(keys)
    found = Column("uint32" if len(keys) < np.iinfo("uint32").max else "int64")
    for span in parts(len(wanted)):
        at = np.searchsorted(keys, wanted[span], sorter=sort)
        found.add(at if sort is None else sort[at])
    release_memory()
    return found.array()


def concatenated(several: Sequence[Array]) -> Array:
    """One behind the other."""
    import numpy as np

    if len(several) == 1:
        return several[0]
    kind = np.result_type(*several) if several else "uint32"
    return from_pieces(kind, (values[span] for values in several for span in parts(len(values))))


def sum_weights(codes: Array, weights: Array, count: int, rows: Array | None = None) -> Array:
    """The weights of each of so many codes added up; `rows` limits both to these places."""
    import numpy as np

    found = np.zeros(count)
    for span in parts(len(codes) if rows is None else len(rows)):
        mine = span if rows is None else rows[span]
        found += np.bincount(codes[mine], weights[mine], count)
    release_memory()
    return found


def count_codes(codes: Array, count: int, rows: Array) -> Array:
    """How often each of so many codes is there in these rows; those below 0 are not counted."""
    import numpy as np

    found = np.zeros(count + 1, np.int64)
    for span in parts(len(rows)):
        found += np.bincount(codes[rows[span]].astype(np.int64) + 1, minlength=count + 1)
    release_memory()
    return found[1:]


def long_lived_copy(values: Array) -> Array:
    """A copy of the values that may stay for long."""
    if values.nbytes < MIN_FILE_BYTES:
        return values
    return from_pieces(values.dtype, (values[span] for span in parts(len(values))))


def release_memory() -> None:
    """Gives back the memory of all that lies in files, where it is much; nothing is lost."""
    # (how much is mapped is known without the system, which takes 50 us to say how much is resident)
    if sum(map(len, _maps)) > RESIDENT_BYTES and _resident() - _before[0] > RESIDENT_BYTES:
        for held in list(_maps.keys()):
            held.madvise(mmap.MADV_DONTNEED)


def _resident() -> int:
    """So many bytes of files lie in this process' memory; where that is unknown, as good as endless."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as statm:
            return int(statm.read().split()[2]) * mmap.PAGESIZE
    except (OSError, IndexError):
        return 1 << 62


def _opened() -> IO[bytes] | None:
    if not hasattr(os, "posix_fallocate") or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    try:
        import tempfile

        return tempfile.TemporaryFile(buffering=0)
    except OSError:
        return None


def _mapped(file: IO[bytes], size: int) -> mmap.mmap:
    """The file's bytes; it goes with the last array over them."""
    if not _before:
        _before.append(min(_resident(), 1 << 40))
    held = mmap.mmap(file.fileno(), size)
    _maps[held] = file
    return held


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
