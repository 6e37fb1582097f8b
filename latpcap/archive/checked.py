"""Checksums for every block of a stored file, and a file system that compares them on reading.

Parquet's own page checksums leave out page headers and footers, where a flipped bit changes what a page means. Here
every byte given to a reader is in a block whose CRC-32 was compared. Only blocks that are read are compared, so that
reading one row group stays cheap.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs

from latpcap.errors import CaptureError
from latpcap.format import phrase
from latpcap.reading import locations

BLOCK_BYTES = 1 << 18
"""Bytes per checksum: large enough for short lists (8 characters per block), small enough to read few rows quickly."""
AGAIN = "remove it and run the same batch again"
"""The remedy for damage."""
LATER = "ask again when it can be"
"""The remedy for a location that cannot be reached: a permission, a network."""


def digests(file: Path) -> dict[str, Any]:
    """Return the size of a file, and the CRC-32 of each of its blocks."""
    with open(file, "rb", buffering=0) as source:
        checksums = []
        while block := source.read(BLOCK_BYTES):
            checksums.append(f"{zlib.crc32(block):08x}")
    return {"size": file.stat().st_size, "block": BLOCK_BYTES, "crc32": "".join(checksums)}


class DamagedError(CaptureError):
    """A stored file differs from what was written. `pack` names its pack."""

    def __init__(self, file: str, reason: str, pack: str, *, offset: int | None = None, way_out: str = AGAIN):
        self.pack = pack
        super().__init__(file, f"{reason}; {way_out}", offset=offset, layer="results")


class OutageError(CaptureError):
    """A store does not answer. Nothing is known of its files, so an answer without them would be incomplete."""

    def __init__(self, file: str, problem: Exception):
        super().__init__(file, f"cannot be read ({phrase(problem)}); {LATER}", layer="store")


class CheckedFile(io.RawIOBase):
    """A stored file that compares what is read with its checksums; DamagedError if it differs."""

    def __init__(self, file: Any, checksums: dict[str, Any], name: str, pack: str):
        self._file, self._checksums, self._name, self._pack = file, checksums, name, pack
        self._size, self._block = int(checksums["size"]), int(checksums["block"])
        self._at = 0
        self._last_chunk: tuple[int, bytes] = (-1, b"")
        """Number and bytes of the last block, for consecutive small reads."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset, as files do."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def size(self) -> int:
        """Return the length in bytes."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes, after comparing their blocks."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        begin, self._at = self._at, max(end, self._at)
        if begin >= end:
            return b""
        first, last = begin // self._block, (end - 1) // self._block
        if first == last and self._last_chunk[0] == first:
            content = self._last_chunk[1]
        else:
            content = self._checked(first, last)
            if first == last:
                self._last_chunk = (first, content)
        return content[begin - first * self._block : end - first * self._block]

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; return their number."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _checked(self, first: int, last: int) -> bytes:
        begin, end = first * self._block, min((last + 1) * self._block, self._size)
        try:
            self._file.seek(begin)
            data = bytes(self._file.read(end - begin))
        except Exception as problem:  # file systems of fsspec raise exceptions of any type
            if locations.is_url(self._name):
                raise OutageError(self._name, problem) from None
            raise DamagedError(
                self._name, f"cannot be read ({phrase(problem)})", self._pack, offset=begin, way_out=LATER
            ) from None
        view = memoryview(data)
        for number in range(first, last + 1):
            at = (number - first) * self._block
            block = view[at : at + self._block]
            wanted = self._checksums["crc32"][8 * number : 8 * number + 8]
            if f"{zlib.crc32(block):08x}" != wanted:
                raise DamagedError(self._name, "damaged: its checksum does not fit", self._pack, offset=begin + at)
        return data

    def close(self) -> None:
        """Close the underlying file."""
        if not self.closed:
            self._file.close()
        super().close()


class Checking(fs.FileSystemHandler):  # type: ignore[misc]
    """A pyarrow file system that opens the files of another one as checked files.

    `checksums` has the checksums of each path, its name in messages and its pack.
    """

    def __init__(self, inner: Any, checksums: dict[str, tuple[dict[str, Any], str, str]]):
        self.inner, self.checksums = inner, checksums

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checking) and (self.inner, self.checksums) == (other.inner, other.checksums)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def get_type_name(self) -> str:
        """Return the type name for pyarrow."""
        return "latpcap-checked"

    def normalize_path(self, path: str) -> str:
        """Return the path unchanged."""
        return path

    def get_file_info(self, paths: list[str]) -> list[Any]:
        """Return what the underlying file system returns."""
        return list(self.inner.get_file_info(paths))

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file that is checked as it is read; DamagedError where it cannot be opened."""
        digest, name, pack = self.checksums[path]
        try:
            file = self.inner.open_input_file(path)
        except OSError as problem:
            if locations.is_url(name) and not isinstance(problem, FileNotFoundError):
                raise OutageError(name, problem) from None
            way_out = AGAIN if isinstance(problem, FileNotFoundError) else LATER
            raise DamagedError(name, f"cannot be read ({phrase(problem)})", pack, way_out=way_out) from None
        return pa.PythonFile(CheckedFile(file, digest, name, pack), mode="r")

    open_input_stream = open_input_file

    def _refuse(self, *_: object, **__: object) -> Any:
        raise NotImplementedError("results are only read")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refuse
    delete_root_dir_contents = delete_file = move = copy_file = _refuse
    open_output_stream = open_append_stream = _refuse
