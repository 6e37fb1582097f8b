"""Decompresses captures: gzip, bz2, xz (standard library), zstd and lz4 (pyarrow), recognised by their first bytes.

Takes and returns blocks of bytes; other formats pass unchanged.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Protocol, cast

from latpcap.errors import CaptureError
from latpcap.format import phrase
from latpcap.lazy import pa

SUFFIXES = ("gz", "zst", "zstd", "lz4", "bz2", "xz")
"""Suffixes of compressed files, without the dot."""
_BITE_BYTES = 1 << 14
"""Compressed bytes given to a library at once."""
_PART_BYTES = 1 << 17
"""Upper bound on the bytes that a library unpacks at once."""
_MAX_MAGIC_BYTES = 6
"""Length of the longest of the first bytes by which a format is recognised."""
_MAX_MEMORY_BYTES = 1 << 28
"""Upper bound on the memory of xz, which the file itself chooses."""
_ALWAYS_UNPACKED_BYTES = 1 << 30
"""Bytes that are unpacked whatever their ratio to the compressed size."""
_MAX_RATIO = 1000
"""Ratio of unpacked to compressed size above which a longer file is refused as a decompression bomb."""
_ZIP = b"PK\x03\x04"
_TAR_HEADER_BYTES = 512
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}


def unpacked(raw: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the blocks, decompressed if they are compressed.

    CaptureError where the compressed data is damaged, ends early, or is a decompression bomb (it unpacks to more than
    1 GiB and more than 1,000 times its size), after the blocks up to there.
    """
    head = next(raw, b"")
    while 0 < len(head) < _MAX_MAGIC_BYTES and (block := next(raw, b"")):
        head += block  # a pipe may give a byte at a time
    compression = next((word for magic, word in _MAGIC.items() if head.startswith(magic)), None)
    raw = chain([head] if head else [], raw)
    if compression is None:
        yield from raw
        return
    counted = _Counted(raw)
    parts = _by_library(counted, compression) if compression in _STANDARD else _by_arrow(counted, compression)
    given = 0
    try:
        for part in parts:
            given += len(part)
            yield part
            if given > _ALWAYS_UNPACKED_BYTES and given > _MAX_RATIO * counted.bytes:
                reason = (
                    f"{compression} data unpacks to more than {_MAX_RATIO:,} times its size (a decompression bomb?)"
                )
                raise CaptureError(name, reason, offset=given, layer=compression)
    except EOFError:
        raise CaptureError(
            name, f"{compression} data ends before its end mark", offset=given, layer=compression
        ) from None
    except (OSError, zlib.error, lzma.LZMAError) as problem:
        reason = f"{compression} data is damaged ({phrase(problem)})"
        raise CaptureError(name, reason, offset=given, layer=compression) from None


def refuse_archives(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the blocks. CaptureError for a zip or tar archive, which may hold several captures."""
    head = next(blocks, b"")
    archive = "zip" if head.startswith(_ZIP) else "tar" if _is_tar(head) else None
    if archive is not None:
        reason = f"is a {archive} archive, expected a capture file: unpack it, and give the capture inside"
        raise CaptureError(name, reason, offset=0, layer=archive)
    yield from chain([head] if head else [], blocks)


def _is_tar(head: bytes) -> bool:
    """Return whether the first header has the checksum of a tar archive, which no capture has by chance."""
    if len(head) < _TAR_HEADER_BYTES:
        return False
    digits = head[148:156].strip(b" \0")
    checksum = sum(head[:148]) + 8 * ord(" ") + sum(head[156:_TAR_HEADER_BYTES])
    return bool(digits) and not digits.strip(b"01234567") and int(digits, 8) == checksum


class _Counted:
    """Blocks, and how many bytes of them were taken."""

    def __init__(self, raw: Iterator[bytes]):
        self._raw = raw
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        block = next(self._raw)
        self.bytes += len(block)
        return block


class _Unpacker(Protocol):
    """What bz2 and lzma have in common; zlib is made to look like them."""

    eof: bool
    unused_data: bytes
    needs_input: bool

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    """zlib's decompressor with bz2's interface."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


_STANDARD: dict[str, Callable[[], _Unpacker]] = {
    "gzip": lambda: cast(_Unpacker, _Gzip()),
    "bz2": lambda: cast(_Unpacker, bz2.BZ2Decompressor()),
    "xz": lambda: cast(_Unpacker, lzma.LZMADecompressor(memlimit=_MAX_MEMORY_BYTES)),
}


def _by_library(raw: Iterator[bytes], compression: str) -> Iterator[bytes]:
    """Yield what a module of the standard library unpacks.

    Several members in a row are one stream; zeros that pad it out are passed over, as gzip and xz do.
    """
    unpacker, begun = _STANDARD[compression](), True
    for block in raw:
        for bite in (block[begin : begin + _BITE_BYTES] for begin in range(0, len(block), _BITE_BYTES)):
            while bite:
                if not begun:
                    bite = bite.lstrip(b"\0")
                    if not bite:
                        break
                    unpacker, begun = _STANDARD[compression](), True
                unpacked_bytes = unpacker.decompress(bite, _PART_BYTES)
                yield from [unpacked_bytes] if unpacked_bytes else []
                while not unpacker.eof and not unpacker.needs_input:
                    unpacked_bytes = unpacker.decompress(b"", _PART_BYTES)
                    yield from [unpacked_bytes] if unpacked_bytes else []
                begun = not unpacker.eof
                bite = unpacker.unused_data if unpacker.eof else b""
    if begun:
        raise EOFError


def _by_arrow(raw: Iterator[bytes], compression: str) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(_Joined(raw), mode="r"), compression)
    # A read that fails returns none of its bytes, so reads are short; and `read` never frees its room then.
    while len(block := stream.read_buffer(_BITE_BYTES)):
        yield block.to_pybytes()


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
