"""Long columns of numbers: in memory while they are short, then in an unlinked temporary file.

The answer to a capture of millions of requests needs more numbers than should stay in memory, and reads most of them
once. Such columns are written sequentially to a file in the folder of temporary files and read as arrays over the
mapped file. `release_memory` drops the resident pages; touching a page later reads it from the file. (Writing through
the mapping instead would take a page fault for each page.) Without such a file (no space, no folder, no
`posix_fallocate`) the columns stay in memory.

No library does this: `numpy.memmap` needs a named file and faults on each written page. Engines that sort on disk
(DuckDB, Polars) would add a dependency of 40 MB and more to `latpcap why`, and copy each column.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

from latpcap.lazy import np, pa

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

MIN_FILE_BYTES = 1 << 20
"""Columns smaller than this stay in memory."""
BLOCK = 1 << 16
"""Rows per part, where a column is processed in parts; a multiple of eight, so that packed bits align."""
RESIDENT_BYTES = 32 << 20
"""Upper bound on the resident bytes of mapped files before they are released."""
_PARTS_PER_RELEASE = 8
"""Parts processed between two measurements of resident memory."""
_MAX_PARTS_SORTED = 16
"""Upper bound on the parts sorted in one call; longer columns are first split into ranges of values."""
_ARRAYS_PER_RELEASE = 1024
"""Short arrays made between two measurements of resident memory."""
_short_arrays = 0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3), from malloc.h of glibc. musl accepts and ignores them."""
_maps: weakref.WeakKeyDictionary[mmap.mmap, IO[bytes]] = weakref.WeakKeyDictionary()
"""All mapped files."""
_before: list[int] = []
"""Resident bytes of other mapped files (programs, libraries) before the first column was mapped; empty until then."""
_zero: list[mmap.mmap] = []
"""The longest mapping of zeros made until now, which `shared_zeros` gives out read-only; empty or one item."""


class Column:
    """A column of numbers that is appended to, and finally taken as one array by `array`."""

    def __init__(self, dtype: str | np.dtype[Any]):
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.count = 0
        self._pieces: list[tuple[int, Array]] = []
        self._buffered_bytes = 0
        self._file: IO[bytes] | None = None
        self._fits = True

    @property
    def is_zero(self) -> bool:
        """Whether every value is zero."""
        return self._file is None and not self._pieces

    def skip(self, count: int) -> None:
        """Append `count` zeros, which take no memory."""
        self.count += count

    def add(self, values: Array) -> None:
        """Append values."""
        begin, self.count = self.count, self.count + len(values)
        if self._file is not None:
            self._put(begin, np.ascontiguousarray(values, self.dtype))
        else:
            self._pieces.append((begin, values.astype(self.dtype)))  # a copy: the caller's batch is freed
            self._buffered_bytes += self._pieces[-1][1].nbytes
            if self._buffered_bytes >= MIN_FILE_BYTES:
                self._to_file()

    def widen(self, dtype: np.dtype[Any]) -> None:
        """Change to a wider type, when a value does not fit into the present one."""
        values, self.dtype = self.array(), dtype
        for span in parts(len(values)):
            self.add(values[span])

    def array(self) -> Array:
        """Take all values and empty the column. The array is read-only where every value is zero."""
        if self.is_zero:
            count, self.count = self.count, 0
            return shared_zeros(count, self.dtype)
        if self._file is None and self.count * self.dtype.itemsize >= MIN_FILE_BYTES:
            self._to_file()
        file, pieces, count = self._file, self._pieces, self.count
        self._file, self._pieces, self._buffered_bytes, self.count = None, [], 0, 0
        if file is not None:
            with contextlib.suppress(OSError):
                file.truncate(count * self.dtype.itemsize)
                return np.frombuffer(_mapped(file, count * self.dtype.itemsize), self.dtype, count)
            pieces = [(0, np.frombuffer(_read(file), self.dtype))]
        if len(pieces) == 1 and len(pieces[0][1]) == count:
            return pieces[0][1]
        joined = np.zeros(count, self.dtype)
        for begin, values in pieces:
            joined[begin : begin + len(values)] = values
        return joined

    def _to_file(self) -> None:
        self._file = _opened() if self._fits else None
        if self._file is not None:
            pieces, self._pieces, self._buffered_bytes = self._pieces, [], 0
            for at, (begin, values) in enumerate(pieces):
                if self._file is None:  # the disk is full: `_put` has moved the column to memory
                    self._pieces += pieces[at:]
                    break
                self._put(begin, values)

    def _put(self, begin: int, values: Array) -> None:
        """Write values to the file; if the disk is full, move the whole column to memory."""
        assert self._file is not None
        offset, data_left = begin * self.dtype.itemsize, values.view("uint8").data
        try:
            while data_left:
                written = os.pwrite(self._file.fileno(), data_left, offset)
                offset, data_left = offset + written, data_left[written:]
        except OSError:
            size = begin * self.dtype.itemsize
            stored = _read(self._file)[:size].ljust(size, b"\0")
            self._file, self._fits = None, False
            self._pieces = [(0, np.frombuffer(bytearray(stored), self.dtype)), (begin, values.copy())]


def from_pieces(dtype: str | np.dtype[Any], pieces: Iterable[Array]) -> Array:
    """Return the pieces concatenated in one array."""
    column = Column(dtype)
    for piece in pieces:
        column.add(piece)
    array = column.array()
    release_memory()
    return array


def zeros(count: int, dtype: str | np.dtype[Any]) -> Array:
    """Return a writable array of zeros. Its file is allocated at once: writing to a mapped file on a full disk would
    end the process (SIGBUS).
    """
    size = count * np.dtype(dtype).itemsize
    file = _opened() if size >= MIN_FILE_BYTES else None
    if file is not None:
        with contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(_mapped(file, size), dtype, count)
    return np.zeros(count, dtype)


def extended(values: Array, count: int) -> Array:
    """Return a writable copy of the values, extended with zeros to `count`."""
    longer = zeros(count, values.dtype)
    for span in parts(len(values)):
        longer[span] = values[span]
    return longer


def shared_zeros(count: int, dtype: str | np.dtype[Any]) -> Array:
    """Return a read-only array of zeros that takes no memory: all such arrays share one mapping."""
    size = count * np.dtype(dtype).itemsize
    if size < MIN_FILE_BYTES or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(count, dtype)
    if not _zero or len(_zero[0]) < size:
        _zero[:] = [mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)]
    array: Array = np.frombuffer(_zero[0], dtype, count)
    array.flags.writeable = False
    return array


def configure_malloc() -> None:
    """Make the C library return freed memory to the system and keep at most 4 MiB; glibc keeps up to 64 MiB.

    Arrays below 4 MiB still come from the heap: mapping each anew would take a page fault per page. Arrow is set to
    use the same allocator.
    """
    import ctypes

    pa.set_memory_pool(pa.system_memory_pool())

    with contextlib.suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, 4 << 20)
        libc.mallopt(_M_MMAP_THRESHOLD, 4 << 20)


def trim_heap() -> None:
    """Return freed memory to the system now; glibc keeps free blocks that lie below a used one."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _is_short(count: int) -> bool:
    """Return whether rows fit in one part, and need no `Column`. In captures with many servers most arrays are this
    short, so memory is released after every `_ARRAYS_PER_RELEASE` of them.
    """
    global _short_arrays
    if count > BLOCK:
        return False
    _short_arrays += 1
    if not _short_arrays % _ARRAYS_PER_RELEASE:
        release_memory()
    return True


def take(values: Array, order: Array) -> Array:
    """Return the values at these positions, as numpy's `take`."""
    if _is_short(len(order)):
        return values[order]
    return from_pieces(values.dtype, (values[order[span]] for span in parts(len(order))))


def is_sorted(values: Array) -> bool:
    """Return whether no value is less than the one before it."""
    spans = (values[at : at + BLOCK + 1] for at in range(0, len(values), BLOCK))
    return all(bool((span[1:] >= span[:-1]).all()) for span in spans)


def argsort_nearly_sorted(keys: Array) -> Array:
    """Return positions of the keys in ascending order (stable), for keys most of which ascend already.

    Keys below an earlier maximum are sorted apart and merged between the others, which are in order: of 1 2 5 3 6
    only 3 is sorted.
    """
    dtype = "uint32" if len(keys) < np.iinfo("uint32").max else "int64"
    if not len(keys):
        return np.zeros(0, dtype)
    # 1. Find the keys below an earlier one, and the maximum before each part.
    fallen, tops = [], [keys[0]]
    for span in parts(len(keys)):
        chunk = keys[span]
        fallen.append((np.flatnonzero(chunk < _running_max(chunk, tops[-1])) + span.start).astype(dtype))
        tops.append(max(tops[-1], chunk.max()))
    fallen_rows = concatenated(fallen)
    del fallen
    # 2. Sort them.
    fallen_rows = take(fallen_rows, argsort(take(keys, fallen_rows)))
    late_keys = take(keys, fallen_rows)
    # 3. Insert them, part by part, between the keys that are in order.
    order, begin = Column(dtype), 0
    for span, top, end in zip(parts(len(keys)), tops, np.searchsorted(late_keys, tops[1:]).tolist(), strict=False):
        chunk = keys[span]
        maxima = _running_max(chunk, top)
        in_order = chunk >= maxima
        before = np.r_[0, np.cumsum(in_order)][np.searchsorted(maxima, late_keys[begin:end], side="right")]
        order.add(np.insert((np.flatnonzero(in_order) + span.start).astype(dtype), before, fallen_rows[begin:end]))
        begin = end
    release_memory()
    return order.array()


def _running_max(keys: Array, top: Any) -> Array:
    """Return the maximum of the keys up to each position; `top` is the maximum of the keys before these."""
    return np.maximum(np.maximum.accumulate(keys), top)


def argsort(values: Array) -> Array:
    """Return positions of the values in ascending order (stable), for values in any order.

    Long columns are split into ranges of values by a sample, and each range is sorted by itself.
    """
    dtype = "uint32" if len(values) < np.iinfo("uint32").max else "int64"
    if len(values) <= _MAX_PARTS_SORTED * BLOCK:
        return np.argsort(values, kind="stable").astype(dtype)
    sample = np.sort(values[:: len(values) // BLOCK])
    bounds = np.unique(sample[:: len(sample) // _MAX_PARTS_SORTED])[1:].tolist()
    order = Column(dtype)
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        rows_of_parts = []
        for span in parts(len(values)):
            piece = values[span]
            inside = np.ones(len(piece), bool) if low is None else piece >= low
            if high is not None:
                inside &= piece < high
            rows_of_parts.append((np.flatnonzero(inside) + span.start).astype(dtype))
        range_rows = np.concatenate(rows_of_parts)
        order.add(range_rows[np.argsort(values[range_rows], kind="stable")])
        release_memory()
    return order.array()


def nth_smallest(values: Array, rank: int) -> Any:
    """Return the value at position `rank` of the ascending order; the values are not moved."""
    if len(values) <= _MAX_PARTS_SORTED * BLOCK:
        return np.partition(values, rank)[rank]
    sample = np.sort(values[:: len(values) // BLOCK])
    bounds = np.unique(sample[:: len(sample) // _MAX_PARTS_SORTED])

    def pieces(span: slice) -> Array:
        # numbers of ranges: 0 below the first bound, 1 equal to it, 2 between it and the second, 3 equal to that ...
        chunk = values[span]
        return np.searchsorted(bounds, chunk, side="left") + np.searchsorted(bounds, chunk, side="right")

    counts = np.zeros(2 * len(bounds) + 1, np.int64)
    for span in parts(len(values)):
        counts += np.bincount(pieces(span), minlength=len(counts))
    piece = int(np.searchsorted(np.cumsum(counts), rank, side="right"))
    if piece % 2:
        release_memory()
        return bounds[piece // 2]
    parts_inside = [values[span][pieces(span) == piece] for span in parts(len(values))]
    inside, before = np.concatenate(parts_inside), rank - int(counts[:piece].sum())
    release_memory()
    return np.partition(inside, before)[before]


def row_mask(rows: Array, count: int) -> Array:
    """Return a mask of `count` rows that is true at `rows`."""
    mask = np.zeros(count, bool)
    for span in parts(len(rows)):
        mask[rows[span]] = True
    return mask


def selected(rows: Array, mask: Array) -> Array:
    """Return the rows that `mask` marks; the mask covers every row number."""
    if _is_short(len(rows)):
        return rows[mask[rows]]
    row_parts = (rows[span] for span in parts(len(rows)))
    return from_pieces(rows.dtype, (part[mask[part]] for part in row_parts))


def parts(count: int) -> Iterator[slice]:
    """Yield slices of `count` rows, `BLOCK` at a time; releases memory between them."""
    for number, at in enumerate(range(0, count, BLOCK)):
        if number and not number % _PARTS_PER_RELEASE:
            release_memory()
        yield slice(at, min(at + BLOCK, count))


def positions_by_key(keys: Array) -> dict[int, Array]:
    """Return the positions of each key, ascending; negative keys are left out."""
    order, ends = grouped(keys, int(max((keys[span].max() for span in parts(len(keys))), default=-1)) + 1)
    bounds = ends.tolist()
    return {key: order[begin:end] for key, (begin, end) in enumerate(pairwise(bounds)) if end > begin}


def grouped(keys: Array, count: int) -> tuple[Array, Array]:
    """Return positions of the keys, grouped by key and ascending within each, and the bounds of the groups.

    The positions of key k are `order[bounds[k] : bounds[k + 1]]`. Keys are below `count`; negative keys come first and
    have no bounds.
    """
    dtype = np.dtype("uint32" if len(keys) < np.iinfo("uint32").max else "int64")
    counts = np.zeros(count + 1, np.int64)
    for span in parts(len(keys)):
        counts += np.bincount(keys[span].astype(np.int64) + 1, minlength=count + 1)
    bounds = np.cumsum(counts)
    if len(keys) <= _MAX_PARTS_SORTED * BLOCK:
        return np.argsort(keys, kind="stable").astype(dtype), bounds
    positions, next_row = zeros(len(keys), dtype), np.r_[0, bounds[:-1]]
    for span in parts(len(keys)):
        keys_from_1 = keys[span].astype(np.int64) + 1
        order = np.argsort(keys_from_1, kind="stable")
        ordered = keys_from_1[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        length = np.diff(np.r_[starts, len(keys_from_1)])
        rows = np.repeat(next_row[ordered[starts]] - starts, length) + np.arange(len(keys_from_1))
        positions[rows] = order + span.start
        next_row[ordered[starts]] += length
    release_memory()
    return positions, bounds


def positions_of(keys: Array, wanted: Array) -> Array:
    """Return the position of each wanted key among `keys`, which are distinct and include all of them."""
    if is_sorted(keys):
        if len(keys) and keys.dtype.kind in "iu" and int(keys[-1]) - int(keys[0]) + 1 == len(keys):  # consecutive
            return wanted if not keys[0] else wanted - keys[0]
        sort = None
    else:
        sort = argsort_nearly_sorted(keys)
    positions = Column("uint32" if len(keys) < np.iinfo("uint32").max else "int64")
    for span in parts(len(wanted)):
        indices = np.searchsorted(keys, wanted[span], sorter=sort)
        positions.add(indices if sort is None else sort[indices])
    release_memory()
    return positions.array()


def concatenated(arrays: Sequence[Array]) -> Array:
    """Return arrays concatenated in one."""
    if len(arrays) == 1:
        return arrays[0]
    dtype = np.result_type(*arrays) if arrays else "uint32"
    return from_pieces(dtype, (values[span] for values in arrays for span in parts(len(values))))


def sum_weights(codes: Array, weights: Array, count: int, rows: Array | None = None) -> Array:
    """Return the sum of the weights per code below `count`; `rows` limits codes and weights to these positions."""
    sums = np.zeros(count)
    for span in parts(len(codes) if rows is None else len(rows)):
        positions = span if rows is None else rows[span]
        sums += np.bincount(codes[positions], weights[positions], count)
    release_memory()
    return sums


def count_codes(codes: Array, count: int, rows: Array) -> Array:
    """Return how many of these rows have each code below `count`; negative codes are not counted."""
    counts = np.zeros(count + 1, np.int64)
    for span in parts(len(rows)):
        counts += np.bincount(codes[rows[span]].astype(np.int64) + 1, minlength=count + 1)
    release_memory()
    return counts[1:]


def long_lived_copy(values: Array) -> Array:
    """Return the values, in a file where they are long: for arrays that are held until the answer is written."""
    if values.nbytes < MIN_FILE_BYTES:
        return values
    return from_pieces(values.dtype, (values[span] for span in parts(len(values))))


def release_memory() -> None:
    """Drop the resident pages of all mapped files, if they are more than `RESIDENT_BYTES`; their values stay."""
    # the mapped size is known without a system call; asking for the resident size takes 50 us
    if sum(map(len, _maps)) > RESIDENT_BYTES and _resident() - _before[0] > RESIDENT_BYTES:
        for mapped in list(_maps.keys()):
            mapped.madvise(mmap.MADV_DONTNEED)


def _resident() -> int:
    """Resident bytes of mapped files in this process; practically infinite where the system does not report them."""
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
    """Return a mapping of the file, which is closed with the last array over it."""
    if not _before:
        _before.append(min(_resident(), 1 << 40))
    mapped = mmap.mmap(file.fileno(), size)
    _maps[mapped] = file
    return mapped


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
