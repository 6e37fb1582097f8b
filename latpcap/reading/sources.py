"""Opens the sources of a capture and reads their bytes.

Takes a path, a glob, a URL, a file object, bytes, "-" (standard input), or a list of these; returns names and blocks of
uncompressed bytes. Looks at the content only to sort rotated files, to notice that a file changed, and to recognise
the text that tcpdump prints.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from latpcap import _core
from latpcap.errors import CaptureError, LatpcapError
from latpcap.format import phrase
from latpcap.reading import locations
from latpcap.reading.unpack import refuse_archives, unpacked

One = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""One file: a path or URL, "-", bytes, or a binary file object."""

Source = One | Iterable[One]
"""What `latpcap.read` takes: one file, a glob, or several files that are one capture."""

SAMPLE = Path(__file__).resolve().parents[1] / "samples" / "nginx-latency.pcap"
"""The installed sample: nginx with tcp_nodelay off, see sample_pcaps/README.md."""

_BYTES_TYPES = (bytes, bytearray, memoryview)
BLOCK_BYTES = 1 << 17
"""Bytes per block."""
_PEEK_BYTES = 1 << 22
"""Upper bound on the bytes read to find the first packet's time."""
_END_BYTES = 1 << 12
"""Bytes at the start and end of a file that identify its content."""


def name_of(source: One) -> str:
    """Return the name of a source in messages and tables; a URL without its options, which may hold a key."""
    if isinstance(source, _BYTES_TYPES):
        return "<bytes>"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return "<stdin>" if path == "-" else locations.bare(path) if _is_url(path) else path
    return str(getattr(source, "name", "<stream>"))


class Origin:
    """A file of a capture, which may be read a second time.

    Created before the first reading, when the position of a file object is known.
    """

    def __init__(self, source: One):
        self.source = source
        self.name = name_of(source)
        self._start: int | None = None
        self._file: os.stat_result | None = None
        self._ends: bytes | None = None
        self._peeked: Iterator[bytes] | None = None
        if _is_path(source):
            with contextlib.suppress(OSError, ValueError):
                self._file = os.stat(cast(str, source))
                self._ends = _ends(cast(str, source), self._file)
        elif not isinstance(source, _BYTES_TYPES):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                self._start = cast(BinaryIO, source).tell()

    def first_blocks(self) -> Iterator[bytes]:
        """Read the file for the first time; CaptureError as `blocks` of this module."""
        unread, self._peeked = self._peeked or blocks(self.source), None
        return unread

    def first_ns(self) -> int | None:
        """Return the time of the first packet in ns since 1970; None where the first bytes do not show it.

        Errors are reported when the file is read.
        """
        unread = blocks(self.source)
        can_reread = _is_path(self.source) or isinstance(self.source, _BYTES_TYPES)
        head: list[bytes] = []
        first, problem = None, None
        try:
            while first is None and sum(map(len, head)) < _PEEK_BYTES and (block := next(unread, b"")):
                head.append(block)
                first = _core.first_ns(b"".join(head))
        except CaptureError as caught:
            problem = caught
        if can_reread:
            cast(Any, unread).close()
        else:
            self._peeked = chain(head, _raising(problem), unread)
        return first

    def blocks(self) -> Iterator[bytes]:
        """Read the file again.

        CaptureError where that is not possible: standard input and pipes are read once, a file was replaced or cut.
        """
        source = self.source
        if isinstance(source, (str, os.PathLike)):
            before = self._file
            if before is None and _is_url(source):
                pass
            elif before is None or not stat.S_ISREG(before.st_mode):
                raise CaptureError(
                    self.name, "can be read only once, and the packets' bytes are wanted: save it to a file"
                )
            else:
                with contextlib.suppress(OSError):  # what cannot be opened raises below
                    now = os.stat(source)
                    if (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino) or now.st_size < before.st_size:
                        raise CaptureError(self.name, "was replaced since it was read")
                    touched = now.st_mtime_ns != before.st_mtime_ns
                    grown = now.st_size > before.st_size  # still being written: what was read must be unchanged
                    if (touched and not grown) or self._ends != _ends(source, before):
                        raise CaptureError(self.name, "was changed since it was read")
        elif not isinstance(source, _BYTES_TYPES):
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


def _ends(path: str | os.PathLike[str], size: os.stat_result) -> bytes | None:
    """Return a hash of the first and last block of the first `size` bytes of a regular file."""
    if not stat.S_ISREG(size.st_mode):
        return None
    with open(path, "rb", buffering=0) as file:
        first = file.read(min(_END_BYTES, size.st_size))
        file.seek(max(0, size.st_size - _END_BYTES))
        return hashlib.sha256(first + file.read(min(_END_BYTES, size.st_size))).digest()


def origins(source: Source) -> list[Origin]:
    """Return the files that a source names; several files are sorted by the times of their first packets.

    A path that exists is that file, even with wildcards in its name. CaptureError where a glob finds nothing.
    """
    if _is_one(source):
        expanded = _expanded(cast(One, source))
    else:
        expanded = list(chain.from_iterable(_expanded(file) for file in cast("Iterable[One]", source)))
        if not expanded:
            raise CaptureError("<list>", "is empty, expected at least one capture file")
    opened = [Origin(file) for file in expanded]
    return _in_time_order(opened) if len(opened) > 1 else opened


def blocks(source: One) -> Iterator[bytes]:
    """Read a file block by block, uncompressed.

    Raises CaptureError where the source cannot be opened or read, or where the compressed data is damaged, after the
    blocks up to the damage.
    """
    name = name_of(source)
    file, must_close = _open(source, name)
    try:
        yield from _captured(refuse_archives(unpacked(_raw(file, name), name), name), name)
    finally:
        if must_close:
            file.close()


def _captured(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Return the blocks of a capture; of a capture that tcpdump printed as text, converted."""
    head = next(blocks, b"")
    blocks = chain([head] if head else [], blocks)
    is_binary = not head or (b"\0" in head[:64] and head[:1] not in (b"\xff", b"\xfe"))  # UTF-16 has zeros, too
    if not is_binary:
        from latpcap.reading.text_formats import captured  # late: compiling its patterns takes long

        blocks = captured(blocks, name)
    return blocks


def _is_one(source: Source) -> bool:
    return (
        isinstance(source, (str, os.PathLike, *_BYTES_TYPES))
        or hasattr(source, "read")
        or not isinstance(source, Iterable)
    )


def _expanded(source: One) -> list[One]:
    """Return the files of a glob by name; for anything else, itself."""
    if not isinstance(source, (str, os.PathLike)):
        return [source]
    path = os.fspath(source)
    if not path:
        raise CaptureError("''", "is no name of a file")
    if path.startswith("~") and not os.path.lexists(path):
        source = path = os.path.expanduser(path)
    if _is_url(path):
        if not locations.is_pattern(path):
            return [source]
        try:
            expanded = [entry.location for entry in locations.matching(path)]
        except OSError as problem:
            raise CaptureError(name_of(path), f"cannot be listed ({phrase(problem)})") from None
    elif not any(mark in path for mark in "*?["):
        return [source]
    else:
        expanded = (
            [path]
            if os.path.lexists(path)
            else sorted(match for match in glob.glob(path, recursive=True) if os.path.isfile(match))
        )
    if not expanded:
        raise CaptureError(name_of(path), "no file matches")
    return cast("list[One]", expanded)


def _in_time_order(opened: list[Origin]) -> list[Origin]:
    """Sort by the time of the first packet; a file without one stays after the file before it."""
    placed: list[tuple[int, Origin]] = []
    last = -(1 << 63)
    for origin in opened:
        first = origin.first_ns()
        last = last if first is None else first
        placed.append((last, origin))
    return [origin for _, origin in sorted(placed, key=lambda placed_origin: placed_origin[0])]


def _raising(problem: CaptureError | None) -> Iterator[bytes]:
    if problem is not None:
        raise problem
    yield from ()


def _is_path(source: Source) -> bool:
    return isinstance(source, (str, os.PathLike)) and os.fspath(source) != "-"


def _is_url(source: str | os.PathLike[str]) -> bool:
    return locations.is_url(os.fspath(source)) and not os.path.lexists(source)


def _raw(file: BinaryIO, name: str) -> Iterator[bytes]:
    while block := _read(file, name, BLOCK_BYTES):
        yield block


def _open(source: One, name: str) -> tuple[BinaryIO, bool]:
    if isinstance(source, _BYTES_TYPES):
        return io.BytesIO(bytes(source)), True
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise TypeError(f"expected a path, bytes or a binary file object, got {type(source).__name__}")
        return source, False
    if name == "<stdin>":
        if sys.stdin is None:
            raise CaptureError(name, "standard input is closed")
        return sys.stdin.buffer, False
    try:
        if not _is_url(source) and Path(source).is_dir():
            raise CaptureError(name, "is a directory, expected a capture file; latpcap batch reads folders")
        return locations.open_bytes(os.fspath(source)), True
    except FileNotFoundError:
        raise CaptureError(name, "no such file") from None
    except (OSError, ValueError) as problem:
        raise CaptureError(name, f"cannot be opened ({phrase(problem)})") from None


def _read(file: BinaryIO, name: str, size: int) -> bytes:
    try:
        block = file.read(size)
    except LatpcapError:
        raise
    except Exception as problem:  # file objects may raise exceptions of any type
        raise CaptureError(name, f"cannot be read ({phrase(problem)})") from problem
    if not isinstance(block, (bytes, bytearray)):
        raise TypeError("expected a binary file object, got one that reads text")
    return bytes(block)
