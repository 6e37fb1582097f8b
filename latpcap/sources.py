"""Where do a capture's bytes come from?

Takes a path, a file object, bytes or "-" (standard input), plain or compressed with gzip, zstd, lz4, bz2 or
xz (told by content, not by name); gives a name and blocks of bytes; knows nothing of what is in them.
"""

from __future__ import annotations

import io
import lzma
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from latpcap.errors import CaptureError

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""What `latpcap.read` takes."""

BLOCK_BYTES = 1 << 18
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}


def name_of(source: Source) -> str:
    """What is this capture called in messages and tables?"""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "<bytes>"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return "<stdin>" if path == "-" else path
    return str(getattr(source, "name", "<stream>"))


def blocks(source: Source) -> Iterator[bytes]:
    """Which bytes does this capture hold, block by block?

    Compressed content is given decompressed. Raises CaptureError where the source cannot be opened or read, or
    where the compressed data is damaged: blocks up to the damage have been given by then.
    """
    name = name_of(source)
    file, ours = _open(source, name)
    try:
        head = _read(file, name, BLOCK_BYTES)
        kind = next((k for magic, k in _MAGIC.items() if head.startswith(magic)), None)
        if kind is None:
            while head:
                yield head
                head = _read(file, name, BLOCK_BYTES)
        else:
            yield from _unpacked(_Rejoined(head, file), kind, name)
    finally:
        if ours:
            file.close()


def _open(source: Source, name: str) -> tuple[BinaryIO, bool]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(bytes(source)), True
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise TypeError(f"expected a path, bytes or a binary file object, got {type(source).__name__}")
        return source, False
    if name == "<stdin>":
        return sys.stdin.buffer, False
    path = Path(source)
    try:
        if path.is_dir():
            raise CaptureError(name, "is a directory, expected a capture file")
        return open(path, "rb"), True
    except FileNotFoundError:
        raise CaptureError(name, "no such file") from None
    except (OSError, ValueError) as problem:
        raise CaptureError(name, f"cannot be opened ({_words(problem)})") from None


def _read(file: BinaryIO, name: str, size: int) -> bytes:
    try:
        block = file.read(size)
    except OSError as problem:
        raise CaptureError(name, f"cannot be read ({_words(problem)})") from None
    if not isinstance(block, (bytes, bytearray)):
        raise TypeError("expected a binary file object, got one that reads text")
    return bytes(block)


def _words(problem: Exception) -> str:
    text = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    return text[:1].lower() + text[1:]


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: BinaryIO):
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            size = len(self._head) if size < 0 else size
            part, self._head = self._head[:size], self._head[size:]
            return part
        return self._rest.read(size)


def _unpacked(file: _Rejoined, kind: str, name: str) -> Iterator[bytes]:
    given = 0
    try:
        if kind == "xz":
            stream: BinaryIO = lzma.open(file)  # type: ignore[assignment,arg-type]
        else:
            import pyarrow as pa

            stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), kind)
        while block := stream.read(BLOCK_BYTES):
            given += len(block)
            yield bytes(block)
    except (OSError, EOFError, lzma.LZMAError) as problem:
        reason = f"{kind} data is damaged ({_words(problem)})"
        raise CaptureError(name, reason, offset=given, layer=kind) from None
