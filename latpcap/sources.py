"""Where do a capture's bytes come from?

Takes a path, a file object, bytes or "-" (standard input), plain or compressed with gzip, zstd, lz4, bz2 or
xz (told by content, not by name); gives a name and blocks of bytes; knows nothing of what is in them.
"""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from latpcap.errors import CaptureError

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""What `latpcap.read` takes."""

_HELD = (bytes, bytearray, memoryview)
BLOCK_BYTES = 1 << 17
_BITE_BYTES = 1 << 14
_LONGEST_MAGIC = 6
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}


def name_of(source: Source) -> str:
    """What is this capture called in messages and tables?"""
    if isinstance(source, _HELD):
        return "<bytes>"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return "<stdin>" if path == "-" else path
    return str(getattr(source, "name", "<stream>"))


class Origin:
    """Can this capture's bytes be read a second time?

    Made before the first reading, while it can still be seen where that begins.
    """

    def __init__(self, source: Source):
        self.source = source
        self.name = name_of(source)
        self._start: int | None = None
        self._file: os.stat_result | None = None
        if isinstance(source, (str, os.PathLike)) and self.name != "<stdin>":
            with contextlib.suppress(OSError, ValueError):
                self._file = os.stat(source)
        elif not isinstance(source, _HELD):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                self._start = cast(BinaryIO, source).tell()

    def blocks(self) -> Iterator[bytes]:
        """Which bytes does the capture hold? The same as the first time.

        CaptureError where they are gone: standard input and pipes are read once, a file was replaced or cut.
        """
        source = self.source
        if isinstance(source, (str, os.PathLike)):
            before = self._file
            if before is None or not stat.S_ISREG(before.st_mode):
                raise CaptureError(
                    self.name, "can be read only once, and the packets' bytes are wanted: save it to a file"
                )
            with contextlib.suppress(OSError):  # what cannot be opened is said below
                now = os.stat(source)
                if (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino) or now.st_size < before.st_size:
                    raise CaptureError(self.name, "was replaced since it was read")
        elif not isinstance(source, _HELD):
            try:
                if self._start is None:
                    raise io.UnsupportedOperation
                source.seek(self._start)
            except (OSError, ValueError):
                reason = (
                    "can be read only once (a pipe, or a file that was closed): give latpcap.read its path or its bytes"
                )
                raise CaptureError(self.name, reason) from None
        yield from blocks(source)


def blocks(source: Source) -> Iterator[bytes]:
    """Which bytes does this capture hold, block by block?

    Compressed content is given decompressed. Raises CaptureError where the source cannot be opened or read, or
    where the compressed data is damaged: what was unpacked up to the damage has been given by then.
    """
    name = name_of(source)
    file, ours = _open(source, name)
    try:
        head = _read(file, name, BLOCK_BYTES)
        while len(head) < _LONGEST_MAGIC and (more := _read(file, name, BLOCK_BYTES)):
            head += more  # a pipe may give a byte at a time
        kind = next((k for magic, k in _MAGIC.items() if head.startswith(magic)), None)
        raw = _raw(head, file, name)
        if kind is None:
            yield from raw
        elif kind in _STANDARD:
            yield from _unpacked(raw, kind, name)
        else:
            yield from _unpacked_by_arrow(raw, kind, name)
    finally:
        if ours:
            file.close()


def _raw(head: bytes, file: BinaryIO, name: str) -> Iterator[bytes]:
    while head:
        yield head
        head = _read(file, name, BLOCK_BYTES)


def _open(source: Source, name: str) -> tuple[BinaryIO, bool]:
    if isinstance(source, _HELD):
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
        return open(path, "rb", buffering=0), True
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


class _Unpacker(Protocol):
    """What zlib, bz2 and lzma have in common."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> _Unpacker:
    return cast(_Unpacker, zlib.decompressobj(16 + zlib.MAX_WBITS))


_STANDARD: dict[str, Callable[[], _Unpacker]] = {
    "gzip": _gzip,
    "bz2": lambda: cast(_Unpacker, bz2.BZ2Decompressor()),
    "xz": lambda: cast(_Unpacker, lzma.LZMADecompressor()),
}


def _unpacked(raw: Iterator[bytes], kind: str, name: str) -> Iterator[bytes]:
    """Several members in a row are one stream. Small bites bound what a bomb can unfold to at once."""
    given = 0
    unpacker = _STANDARD[kind]()
    try:
        for block in raw:
            for bite in (block[at : at + _BITE_BYTES] for at in range(0, len(block), _BITE_BYTES)):
                while bite:
                    if unpacker.eof:
                        unpacker = _STANDARD[kind]()
                    out = unpacker.decompress(bite)
                    given += len(out)
                    if out:
                        yield out
                    bite = unpacker.unused_data if unpacker.eof else b""
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as problem:
        raise CaptureError(name, f"{kind} data is damaged ({_words(problem)})", offset=given, layer=kind) from None
    if not unpacker.eof:
        raise CaptureError(name, f"{kind} data ends before its end mark", offset=given, layer=kind)


def _unpacked_by_arrow(raw: Iterator[bytes], kind: str, name: str) -> Iterator[bytes]:
    import pyarrow as pa

    given = 0
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(_Joined(raw), mode="r"), kind)
        # a read that fails gives nothing of what it had: short reads lose little
        while block := stream.read(_BITE_BYTES):
            given += len(block)
            yield bytes(block)
    except OSError as problem:
        raise CaptureError(name, f"{kind} data is damaged ({_words(problem)})", offset=given, layer=kind) from None


class _Joined(io.RawIOBase):
    """Blocks as a file object."""

    def __init__(self, raw: Iterator[bytes]):
        self._raw = raw
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or not self._rest:
            block = next(self._raw, b"")
            if not block:
                break
            self._rest += block
        size = len(self._rest) if size < 0 else size
        part, self._rest = self._rest[:size], self._rest[size:]
        return part
