"""Files in local folders, on web servers and in object stores, with one interface.

A location is a local path, an address of a web server, or a URL that pyarrow.fs (else fsspec) supports:
`s3://bucket/key?region=…`, `gs://`, `abfss://`, `hdfs://`, `file://`.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Callable
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple, cast

from latpcap import files
from latpcap.format import phrase
from latpcap.lazy import fs

_WILD = re.compile(r"[*?\[]")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_ROOTED = ("hdfs", "viewfs", "file")
"""Schemes whose host is not part of the path."""
_READ_AHEAD_BYTES = 8 << 20
"""Bytes per request to an object store, to pay its latency less often."""
_ANSWER_S, _ATTEMPTS = 10.0, 3
"""Longest wait for a connection to an S3 store and for its next byte, and the number of attempts."""


def is_url(location: str) -> bool:
    """Return whether a location is a URL."""
    return _URL.match(location) is not None


def is_web(location: str) -> bool:
    """Return whether a location is on a web server."""
    return location.lower().startswith(("http://", "https://"))


@lru_cache(maxsize=64)
def _filesystem(scheme: str, authority: str, query: str) -> Any:
    filesystem = fs.FileSystem.from_uri(f"{scheme}://{authority}" + (f"?{query}" if query else ""))[0]
    if scheme != "s3":
        return filesystem
    _, (options,) = filesystem.__reduce__()  # URLs cannot set timeouts, and a silent store would be tried for minutes
    options |= {"connect_timeout": _ANSWER_S, "request_timeout": _ANSWER_S}
    return fs.S3FileSystem(**options, retry_strategy=fs.AwsStandardS3RetryStrategy(_ATTEMPTS))


def resolve(url: str) -> tuple[Any, str]:
    """Return the pyarrow file system of a URL, and the path in it. OSError where none supports it."""
    scheme, _, rest = url.partition("://")
    path, _, query = rest.partition("?")
    if is_web(url):
        raise OSError(errno.EPROTONOSUPPORT, "a web server's folders can neither be listed nor written")
    authority, slash, below = path.partition("/")
    try:
        filesystem = _filesystem(scheme, authority, query)
    except (ValueError, NotImplementedError, OSError) as problem:
        reason = (str(problem).splitlines() or [phrase(problem)])[0].partition("://")[0]
    else:
        return filesystem, (slash + below if scheme in _ROOTED else path).rstrip("/")
    try:
        from latpcap.reading import fsspec_files

        return fsspec_files.opened(f"{scheme}://{path}")
    except (ImportError, OSError) as other:
        more = "fsspec is not installed" if isinstance(other, ImportError) else phrase(other)
        raise OSError(errno.EPROTONOSUPPORT, f"no file system for {scheme}:// ({reason}; {more})") from None


def join(location: str, relative: str) -> str:
    """Return a location below another one."""
    if not is_url(location):
        return os.path.join(location, relative)
    before, mark, query = location.partition("?")
    return f"{before.rstrip('/')}/{relative}{mark}{query}"


def bare(location: str) -> str:
    """Return the name of a location in tables and messages: a URL without options and user, which may hold a key."""
    if not is_url(location):
        return location
    path = location.partition("?")[0] if is_web(location) else _pattern(location)[0]
    scheme, mark, rest_of_url = path.partition("://")
    host, slash, path = rest_of_url.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


class Entry(NamedTuple):
    """A location's state. `kind` is "file", "folder", "other" (a pipe, a device) or "missing"."""

    location: str
    kind: str
    size: int = 0
    mtime_ns: int = 0


def look(location: str) -> Entry:
    """Look up the state of a location; OSError where it is unknown."""
    if is_web(location):
        from latpcap.reading import web  # late, for its many imports

        try:
            size, version = web.look(location)
        except FileNotFoundError:
            return Entry(location, "missing")
        return Entry(location, "file", size or 0, version)
    if is_url(location):
        filesystem, path = resolve(location)
        return _entry(filesystem.get_file_info(path), location)
    try:
        status = os.stat(location)
    except (FileNotFoundError, NotADirectoryError):
        return Entry(location, "missing")
    kind = "file" if stat.S_ISREG(status.st_mode) else "folder" if stat.S_ISDIR(status.st_mode) else "other"
    return Entry(location, kind, status.st_size, status.st_mtime_ns)


def _entry(info: Any, location: str) -> Entry:
    kinds = {fs.FileType.File: "file", fs.FileType.Directory: "folder", fs.FileType.NotFound: "missing"}
    return Entry(location, kinds.get(info.type, "other"), info.size or 0, info.mtime_ns or 0)


def listing(url: str) -> list[Entry]:
    """Return all files below a URL, sorted; empty where there are none. Raises OSError."""
    filesystem, path = resolve(url)
    infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    below = [(i, i.path.strip("/").removeprefix(path.strip("/")).lstrip("/")) for i in infos if i.is_file]
    return sorted((_entry(info, join(url, name)) for info, name in below), key=lambda entry: entry.location)


def is_pattern(url: str) -> bool:
    """Return whether a URL has wildcards."""
    return not is_web(url) and _WILD.search(_pattern(url)[0]) is not None


def matching(url: str) -> list[Entry]:
    """Return the files that a URL with `*`, `?`, `[...]` or `**` names, by the rules of glob. Raises OSError."""
    pattern, query = _pattern(url)
    wild = _WILD.search(pattern)
    top = pattern[: wild.start() if wild else None].rpartition("/")[0]
    matches = _matcher(pattern)
    return [entry for entry in listing(top + query) if matches(_pattern(entry.location)[0])]


def _pattern(url: str) -> tuple[str, str]:
    """Return a URL and its options with their "?"; a "?" without a "=" after it is a wildcard."""
    path, mark, options = url.rpartition("?")
    return (path, mark + options) if mark and "=" in options else (url, "")


def _matcher(pattern: str) -> Callable[[str], object]:
    """Return a matcher with glob's rules for names without folders: `*` stays within a name, `**` does not."""
    patterns = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]*\])", pattern):
        if piece == "**/":
            patterns.append("(?:.*/)?")
        elif piece == "**":
            patterns.append(".*")
        elif piece == "*":
            patterns.append("[^/]*")
        elif piece == "?":
            patterns.append("[^/]")
        elif piece.startswith("[") and piece.endswith("]"):
            patterns.append(fnmatch.translate(piece).removeprefix("(?s:").rpartition(")")[0])
        else:
            patterns.append(re.escape(piece))
    return re.compile("".join(patterns) + r"\Z", re.DOTALL).match


def open_bytes(location: str) -> BinaryIO:
    """Open a local file, a download or an object for reading once from the start. Raises OSError."""
    if is_web(location):
        from latpcap.reading import web

        return cast(BinaryIO, web.Download(location))
    if not is_url(location):
        files.note_input(location)
        return open(location, "rb", buffering=0)
    filesystem, path = resolve(location)
    return cast(BinaryIO, filesystem.open_input_stream(path, compression=None, buffer_size=_READ_AHEAD_BYTES))
