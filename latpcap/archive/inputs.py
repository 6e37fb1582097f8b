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
from latpcap.reading import places
from latpcap.reading.places import Entry
from latpcap.reading.unpack import SUFFIXES

Inputs = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""What `latpcap.batch` takes: a file, folder, glob, URL or "@manifest", or several of them."""

_PACKED = rf"(?:\.(?:{'|'.join(SUFFIXES)}))?"
CAPTURE_NAME = re.compile(rf".*\.(?:pcap|pcapng|cap|dmp|ntar)(?:ng)?\d*{_PACKED}$", re.IGNORECASE | re.DOTALL)
"""Names of files in a folder that are taken for captures. A file that is named itself is always taken."""
_WILD = re.compile(r"[*?\[]")


class Found:
    """Files found by name, failures, and the number of other files that were passed over."""

    def __init__(self) -> None:
        self.parts: dict[str, Part] = {}
        self.failures: list[Failure] = []
        self.passed_over = 0

    def take(self, entry: Entry, *, named: bool) -> None:
        """Add the file at a place; `named` if the user named this very file."""
        name = places.bare(entry.place)
        if entry.kind == "file":
            if named or CAPTURE_NAME.match(name):
                self.parts[name] = Part(entry.place, entry.size, entry.mtime_ns)
            else:
                self.passed_over += 1
        elif named or entry.kind == "missing":
            self.fail(name, {"missing": "no such file", "other": "is no regular file"}[entry.kind])
        else:
            self.passed_over += 1

    def fail(self, name: str, reason: str) -> None:
        """Record what cannot be read, and why."""
        self.failures.append(Failure(name, reason))


def find(inputs: Inputs, *, leave_out: str | None = None) -> Found:
    """Find the files that these inputs mean. `leave_out` is a folder that is not searched: that of the results.

    In folders and below URLs, files are taken whose name looks like a capture's (`.pcap`, `.pcapng`, `.cap`,
    `.pcap3`, and compressed). A file that is named, alone or by a glob or a manifest, is always taken.
    """
    found = Found()
    for given in [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs:
        if not isinstance(given, (str, os.PathLike)):
            raise TypeError(f"expected paths, got {type(given).__name__}")
        for place in _places(os.fspath(given), found):
            try:
                _search(place, found, leave_out)
            except OSError as problem:
                found.fail(places.bare(place), f"cannot be listed ({phrase(problem)})")
    found.parts = dict(sorted(found.parts.items()))
    return found


def _places(given: str, found: Found) -> Iterator[str]:
    """Yield the places that an input means: itself, or the lines of a manifest, relative to its folder."""
    if not given.startswith("@") or os.path.lexists(given):
        yield given
        return
    manifest = given[1:]
    try:
        with places.open_bytes(manifest) as file:
            lines = file.read().decode("utf-8", "surrogateescape").splitlines()
    except OSError as problem:
        found.fail(places.bare(manifest), f"manifest cannot be read ({phrase(problem)})")
        return
    for line in map(str.strip, lines):
        if line and not line.startswith("#"):
            there = places.is_url(line) or places.is_url(manifest)
            yield line if there else os.path.join(os.path.dirname(manifest), line)


def _search(place: str, found: Found, leave_out: str | None) -> None:
    if places.is_url(place):
        _search_url(place, found, leave_out)
        return
    place = os.path.abspath(os.path.expanduser(place))
    if _WILD.search(place) and not os.path.lexists(place):
        _search_glob(place, found, leave_out)
        return
    entry = places.look(place)
    if entry.kind == "folder":
        _walk(place, found, leave_out)
    else:
        found.take(entry, named=True)


def _search_glob(pattern: str, found: Found, leave_out: str | None) -> None:
    """Add what a glob pattern matches, `**` at any depth. A folder is an error unless something in it matches, too."""
    names = sorted(glob.glob(pattern, recursive=True, include_hidden=False))
    names = [n for n in names if not _inside(n, leave_out)]
    if not names:
        found.fail(pattern, "nothing matches")
    for name in names:
        entry = places.look(name)
        if entry.kind != "folder":
            found.take(entry, named=True)
        elif not any(_inside(other, name) and other != name for other in names) and CAPTURE_NAME.match(name):
            found.fail(name, "is a directory, expected a capture file")


def _inside(name: str, folder: str | None) -> bool:
    return folder is not None and (name == folder or name.startswith(folder.rstrip(os.sep) + os.sep))


def _walk(top: str, found: Found, leave_out: str | None) -> None:
    def unlisted(problem: OSError) -> None:
        found.fail(str(problem.filename), f"cannot be listed ({phrase(problem)})")

    for folder, below, names in os.walk(top, onerror=unlisted):
        below[:] = sorted(d for d in below if not d.startswith(".") and not _inside(os.path.join(folder, d), leave_out))
        for name in sorted(names):
            if name.startswith("."):
                continue
            if CAPTURE_NAME.match(name):
                found.take(places.look(os.path.join(folder, name)), named=False)
            else:
                found.passed_over += 1


def _search_url(url: str, found: Found, leave_out: str | None) -> None:
    before = places.bare(url)
    if not places.is_pattern(url):
        entry = places.look(url)
        if entry.kind == "file" or places.is_web(url):
            found.take(entry, named=True)
            return
        entries = [e for e in places.listing(url) if not _inside(places.bare(e.place), leave_out)]
        if not entries:
            found.fail(before, "no such file")
        for entry in entries:
            found.take(entry, named=False)
        return
    entries = places.matching(url)
    if not entries:
        found.fail(before, "nothing matches")
    for entry in entries:
        found.take(entry, named=True)
