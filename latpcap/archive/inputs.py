"""Finds the captures of a batch: folders, globs, lists, manifests and URLs in, files with their size and time out.

Only names are examined, never the files. What is named but missing, no file, or cannot be listed becomes a Failure.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator

from latpcap.archive.model import Failure, Part
from latpcap.format import phrase
from latpcap.reading import locations
from latpcap.reading.locations import Entry
from latpcap.reading.unpack import SUFFIXES

Inputs = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""What `latpcap.batch` takes: a file, folder, glob, URL or "@manifest", or several of them."""

_PACKED = rf"(?:\.(?:{'|'.join(SUFFIXES)}))?"
CAPTURE_NAME = re.compile(rf".*\.(?:pcap|pcapng|cap|dmp|ntar)(?:ng)?\d*{_PACKED}$", re.IGNORECASE | re.DOTALL)
"""Names of files in a folder that are taken for captures. A file that is named itself is always taken."""
_WILD = re.compile(r"[*?\[]")


class FoundFiles:
    """Files found by name, failures, and the number of other files that were passed over."""

    def __init__(self) -> None:
        self.parts: dict[str, Part] = {}
        self.failures: list[Failure] = []
        self.passed_over = 0

    def take(self, entry: Entry, *, named: bool) -> None:
        """Add the file at a location; `named` if the user named this very file."""
        name = locations.bare(entry.location)
        if entry.kind == "file":
            if named or CAPTURE_NAME.match(name):
                self.parts[name] = Part(entry.location, entry.size, entry.mtime_ns)
            else:
                self.passed_over += 1
        elif named or entry.kind == "missing":
            self.fail(name, {"missing": "no such file", "other": "is no regular file"}[entry.kind])
        else:
            self.passed_over += 1

    def fail(self, name: str, reason: str) -> None:
        """Record what cannot be read, and why."""
        self.failures.append(Failure(name, reason))


def find(inputs: Inputs, *, leave_out: str | None = None) -> FoundFiles:
    """Find the files that these inputs mean. `leave_out` is a folder that is not searched: that of the results.

    In folders and below URLs, files are taken whose name looks like a capture's (`.pcap`, `.pcapng`, `.cap`,
    `.pcap3`, and compressed). A file that is named, alone or by a glob or a manifest, is always taken.
    """
    files = FoundFiles()
    for argument in [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs:
        if not isinstance(argument, (str, os.PathLike)):
            raise TypeError(f"expected paths, got {type(argument).__name__}")
        for location in _locations(os.fspath(argument), files):
            try:
                _search(location, files, leave_out)
            except OSError as problem:
                files.fail(locations.bare(location), f"cannot be listed ({phrase(problem)})")
    files.parts = dict(sorted(files.parts.items()))
    return files


def _locations(argument: str, files: FoundFiles) -> Iterator[str]:
    """Yield the locations that an input means: itself, or the lines of a manifest, relative to its folder."""
    if not argument.startswith("@") or os.path.lexists(argument):
        yield argument
        return
    manifest = argument[1:]
    try:
        with locations.open_bytes(manifest) as file:
            lines = file.read().decode("utf-8", "surrogateescape").splitlines()
    except OSError as problem:
        files.fail(locations.bare(manifest), f"manifest cannot be read ({phrase(problem)})")
        return
    for line in map(str.strip, lines):
        if line and not line.startswith("#"):
            is_location = locations.is_url(line) or locations.is_url(manifest)
            yield line if is_location else os.path.join(os.path.dirname(manifest), line)


def _search(location: str, files: FoundFiles, leave_out: str | None) -> None:
    if locations.is_url(location):
        _search_url(location, files, leave_out)
        return
    location = os.path.abspath(os.path.expanduser(location))
    if _WILD.search(location) and not os.path.lexists(location):
        _search_glob(location, files, leave_out)
        return
    entry = locations.look(location)
    if entry.kind == "folder":
        _walk(location, files, leave_out)
    else:
        files.take(entry, named=True)


def _search_glob(pattern: str, files: FoundFiles, leave_out: str | None) -> None:
    """Add what a glob pattern matches, `**` at any depth. A folder is an error unless something in it matches, too."""
    names = sorted(glob.glob(pattern, recursive=True, include_hidden=False))
    names = [name for name in names if not _inside(name, leave_out)]
    if not names:
        files.fail(pattern, "nothing matches")
    for name in names:
        entry = locations.look(name)
        if entry.kind != "folder":
            files.take(entry, named=True)
        elif not any(_inside(other, name) and other != name for other in names) and CAPTURE_NAME.match(name):
            files.fail(name, "is a directory, expected a capture file")


def _inside(name: str, folder: str | None) -> bool:
    return folder is not None and (name == folder or name.startswith(folder.rstrip(os.sep) + os.sep))


def _walk(top: str, files: FoundFiles, leave_out: str | None) -> None:
    def unlisted(problem: OSError) -> None:
        files.fail(str(problem.filename), f"cannot be listed ({phrase(problem)})")

    for folder, folders, names in os.walk(top, onerror=unlisted):
        visible_folders = [name for name in folders if not name.startswith(".")]
        folders[:] = sorted(name for name in visible_folders if not _inside(os.path.join(folder, name), leave_out))
        for name in sorted(names):
            if name.startswith("."):
                continue
            if CAPTURE_NAME.match(name):
                files.take(locations.look(os.path.join(folder, name)), named=False)
            else:
                files.passed_over += 1


def _search_url(url: str, files: FoundFiles, leave_out: str | None) -> None:
    name = locations.bare(url)
    if not locations.is_pattern(url):
        entry = locations.look(url)
        if entry.kind == "file" or locations.is_web(url):
            files.take(entry, named=True)
            return
        entries = [entry for entry in locations.listing(url) if not _inside(locations.bare(entry.location), leave_out)]
        if not entries:
            files.fail(name, "no such file")
        for entry in entries:
            files.take(entry, named=False)
        return
    entries = locations.matching(url)
    if not entries:
        files.fail(name, "nothing matches")
    for entry in entries:
        files.take(entry, named=True)
