"""Adapts the file systems of fsspec (memory, sftp, github, ...) to pyarrow.

All their exceptions become OSError, and so does a store that does not respond, since fsspec requires no timeout.
Listings are never cached. A file without a modification time gets one that is computed from its version, so that a
replaced file of equal size is noticed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs as fs

from latpcap.reading.timeouts import within

SILENT_S = 60.0
"""Time to wait for each response of a store."""

_TIME_KEYS = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
_VERSION_KEYS = ("ETag", "etag", "md5", "checksum", "sha")
"""Keys under which file systems return a file's modification time, and its version."""
_T = TypeVar("_T")


def opened(url: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URL, and the path in it. Raises OSError if there is none."""
    import fsspec

    with _as_oserror():
        inner, path = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(Handler(inner)), path


@contextmanager
def _as_oserror() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as problem:  # third-party file systems may raise anything
        reason = " ".join(str(problem).split())
        raise OSError(f"{type(problem).__name__}: {reason}" if reason else type(problem).__name__) from problem


def _within_time(call: Callable[[], _T]) -> _T:
    return within(call, SILENT_S, f"the store sent nothing for {SILENT_S:.0f} s")


class _TimedFile:
    """A file that is open for reading; each read has to finish within SILENT_S."""

    def __init__(self, file: Any):
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes; all for -1."""
        return _within_time(lambda: bytes(self._file.read(size)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Handler(fs.FSSpecHandler):  # type: ignore[misc]
    """Makes one of fsspec's file systems behave like pyarrow's own."""

    @staticmethod
    def _create_file_info(path: str, info: dict[str, Any]) -> fs.FileInfo:
        kind = {"file": fs.FileType.File, "directory": fs.FileType.Directory}.get(info["type"], fs.FileType.Unknown)
        size = info.get("size") if kind == fs.FileType.File else None
        return fs.FileInfo(path, kind, mtime_ns=changed_ns(info), size=size)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        """Return kind, size and modification time of each path."""
        with _as_oserror():
            self.fs.invalidate_cache()
            return list(_within_time(lambda: super(Handler, self).get_file_info(paths)))

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Return kind, size and modification time of everything in a folder."""
        with _as_oserror():
            self.fs.invalidate_cache()
            return list(_within_time(lambda: super(Handler, self).get_file_info_selector(selector)))

    def open_input_stream(self, path: str) -> Any:
        """Open a file for reading."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        """Open a file for reading at any position."""
        with _as_oserror():
            if not _within_time(lambda: self.fs.isfile(path)):
                raise FileNotFoundError(path)
            return pa.PythonFile(_TimedFile(_within_time(lambda: self.fs.open(path, mode="rb"))), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        """Create a file, and its folder if there is none."""
        with _as_oserror():
            self.fs.makedirs(self.fs._parent(path), exist_ok=True)
            return super().open_output_stream(path, metadata)

    def delete_file(self, path: str) -> None:
        """Delete a file."""
        with _as_oserror():
            _within_time(lambda: super(Handler, self).delete_file(path))


def changed_ns(info: dict[str, Any]) -> int | None:
    """Return a file's modification time in ns since 1970, or a hash of its version; None if neither is known."""
    for name in _TIME_KEYS:
        match info.get(name):
            case dt.datetime() as when:
                return int((when if when.tzinfo else when.replace(tzinfo=dt.UTC)).timestamp() * 1e6) * 1000
            case bool() | None:
                continue
            case int() | float() as seconds:
                return int(seconds * 1e6) * 1000
            case str() as text:
                try:
                    return int(dt.datetime.fromisoformat(text).timestamp() * 1e6) * 1000
                except ValueError:
                    return _hashed(text)
    version = next((str(info[name]) for name in _VERSION_KEYS if info.get(name)), None)
    return None if version is None else _hashed(version)


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
