"""File systems of fsspec (memory, sftp, github, ...) as pyarrow knows file systems.

What they raise is an OSError here, whatever it was there, and so is their silence: none of them need have a time-out
of its own. Their listings are never taken from a cache, and a file that
was replaced by another of its size has another time of change, also where only a version is known.
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
"""A store that has not answered by then is given up; each answer begins anew."""

_CHANGED = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
_VERSION = ("ETag", "etag", "md5", "checksum", "sha")
_T = TypeVar("_T")


def opened(url: str) -> tuple[fs.FileSystem, str]:
    """The file system of this URL, and the path there. OSError where there is none."""
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
    except Exception as problem:  # whatever a file system of somebody else's raises
        words = " ".join(str(problem).split())
        raise OSError(f"{type(problem).__name__}: {words}" if words else type(problem).__name__) from problem


def _within_time(call: Callable[[], _T]) -> _T:
    return within(call, SILENT_S, f"the store sent nothing for {SILENT_S:.0f} s")


class _Patient:
    """A file that is open for reading, whose store has so much time for each answer."""

    def __init__(self, file: Any):
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """As the file's own."""
        return _within_time(lambda: bytes(self._file.read(size)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Handler(fs.FSSpecHandler):  # type: ignore[misc]
    """One of fsspec's file systems, with the manners of pyarrow's own."""

    @staticmethod
    def _create_file_info(path: str, info: dict[str, Any]) -> fs.FileInfo:
        kind = {"file": fs.FileType.File, "directory": fs.FileType.Directory}.get(info["type"], fs.FileType.Unknown)
        size = info.get("size") if kind == fs.FileType.File else None
        return fs.FileInfo(path, kind, mtime_ns=changed_ns(info), size=size)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        """What lies at these paths?"""
        with _as_oserror():
            self.fs.invalidate_cache()
            return list(_within_time(lambda: super(Handler, self).get_file_info(paths)))

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """What lies below a folder?"""
        with _as_oserror():
            self.fs.invalidate_cache()
            return list(_within_time(lambda: super(Handler, self).get_file_info_selector(selector)))

    def open_input_stream(self, path: str) -> Any:
        """The bytes of a file."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        """The bytes of a file, at any place."""
        with _as_oserror():
            if not _within_time(lambda: self.fs.isfile(path)):
                raise FileNotFoundError(path)
            return pa.PythonFile(_Patient(_within_time(lambda: self.fs.open(path, mode="rb"))), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        """A new file, in a folder that may be new, too."""
        with _as_oserror():
            self.fs.makedirs(self.fs._parent(path), exist_ok=True)
            return super().open_output_stream(path, metadata)

    def delete_file(self, path: str) -> None:
        """Takes a file away."""
        with _as_oserror():
            _within_time(lambda: super(Handler, self).delete_file(path))


def changed_ns(info: dict[str, Any]) -> int | None:
    """When did this file change, in ns since 1970? A number made of its version where only that is known."""
    for name in _CHANGED:
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
                    return _number(text)
    version = next((str(info[name]) for name in _VERSION if info.get(name)), None)
    return None if version is None else _number(version)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
