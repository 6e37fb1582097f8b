"""Where do captures lie? Local paths and object stores behind one face.

A place is a local path or a URL that pyarrow.fs (or fsspec) knows: `s3://bucket/key?region=…`, `gs://`, `abfss://`,
`hdfs://`, `file://`. Gives what lies there and its bytes; knows nothing of captures.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, cast

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_ROOTED = ("hdfs", "viewfs", "file")
"""Schemes whose host is no part of the path."""
_READ_AHEAD_BYTES = 8 << 20
"""One request of an object store: its latency is paid once per so many bytes."""


def is_url(place: str) -> bool:
    """Is this a URL rather than a local path?"""
    return _URL.match(place) is not None


@lru_cache(maxsize=64)
def _filesystem(scheme: str, authority: str, query: str) -> Any:
    import pyarrow.fs as fs

    try:
        return fs.FileSystem.from_uri(f"{scheme}://{authority}" + (f"?{query}" if query else ""))[0]
    except (ValueError, NotImplementedError, OSError) as problem:
        reason = str(problem).splitlines()[0]
    try:
        import fsspec

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme)))
    except (ImportError, ValueError):
        raise OSError(errno.EPROTONOSUPPORT, f"no file system for {scheme}:// ({reason})") from None


def resolve(url: str) -> tuple[Any, str]:
    """Which pyarrow file system is this URL on, and what is its path there? OSError where none knows it."""
    scheme, _, rest = url.partition("://")
    path, _, query = rest.partition("?")
    authority, slash, below = path.partition("/")
    filesystem = _filesystem(scheme, authority, query)
    return filesystem, (slash + below if scheme in _ROOTED else path).rstrip("/")


def beside(url: str, path: str) -> str:
    """Which URL has this path, on the file system of `url`?"""
    scheme, _, rest = url.partition("://")
    before, mark, query = rest.partition("?")
    if scheme in _ROOTED:
        path = before.partition("/")[0] + path
    return f"{scheme}://{path}{mark}{query}"


def join(place: str, relative: str) -> str:
    """Which place is this, below another one?"""
    if not is_url(place):
        return os.path.join(place, relative)
    before, mark, query = place.partition("?")
    return f"{before.rstrip('/')}/{relative}{mark}{query}"


def bare(place: str) -> str:
    """What is this place called in tables and messages? A URL without its options, which may hold a key."""
    return place.partition("?")[0] if is_url(place) else place


@dataclass(frozen=True)
class Entry:
    """What lies at this place? `kind` is "file", "folder", "other" (a pipe, a device) or "missing"."""

    place: str
    kind: str
    size: int = 0
    mtime_ns: int = 0


def look(place: str) -> Entry:
    """What lies here? OSError where it cannot be told."""
    if is_url(place):
        filesystem, path = resolve(place)
        return _entry(filesystem.get_file_info(path), place)
    try:
        found = os.stat(place)
    except (FileNotFoundError, NotADirectoryError):
        return Entry(place, "missing")
    kind = "file" if stat.S_ISREG(found.st_mode) else "folder" if stat.S_ISDIR(found.st_mode) else "other"
    return Entry(place, kind, found.st_size, found.st_mtime_ns)


def _entry(info: Any, place: str) -> Entry:
    import pyarrow.fs as fs

    kinds = {fs.FileType.File: "file", fs.FileType.Directory: "folder", fs.FileType.NotFound: "missing"}
    return Entry(place, kinds.get(info.type, "other"), info.size or 0, info.mtime_ns or 0)


def listing(url: str) -> list[Entry]:
    """Which files lie below this URL, at any depth? Sorted; empty where nothing is there. Raises OSError."""
    import pyarrow.fs as fs

    filesystem, path = resolve(url)
    found = filesystem.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return sorted((_entry(i, beside(url, i.path)) for i in found if i.is_file), key=lambda e: e.place)


def open_bytes(place: str) -> BinaryIO:
    """The bytes of a local file or an object, to be read once from the front. Raises OSError."""
    if not is_url(place):
        return open(place, "rb", buffering=0)
    filesystem, path = resolve(place)
    return cast(BinaryIO, filesystem.open_input_stream(path, compression=None, buffer_size=_READ_AHEAD_BYTES))


def words(problem: BaseException) -> str:
    """What does this system error say, in one lower-case phrase?"""
    text = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    if isinstance(problem, OSError) and problem.errno and "Detail: [errno" in text:  # pyarrow's way to say it
        text = os.strerror(problem.errno)
    text = " ".join(text.split()) or type(problem).__name__
    return text[:1].lower() + text[1:]
