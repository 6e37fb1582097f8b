"""`Output`: where a batch writes: files appear complete or not at all, in a local folder or an object store.

A file is written to a scratch folder first. Locally that folder is inside the output, and the finished file is renamed.
For an object store it is a temporary folder of this machine, and the finished file is uploaded in one piece.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from latpcap.errors import LatpcapError, OutputError
from latpcap.format import phrase
from latpcap.reading import locations

PARTIAL = "_partial"
"""The folder of incomplete files; readers of Parquet data sets ignore names that begin with an underscore."""
LOCK = "_partial/lock"
_STALE_S = 24 * 3600
"""Age from which a scratch folder of another machine is removed."""


class Output:
    """The location of results. All methods raise OutputError, with the location and the reason."""

    def __init__(self, location: str):
        self.location = location if locations.is_url(location) else os.path.abspath(location)
        self.local = not locations.is_url(self.location)

    @contextmanager
    def _errors(self, doing: str, relative: str = "") -> Iterator[None]:
        try:
            yield
        except LatpcapError:
            raise
        except Exception as problem:  # file systems of fsspec raise exceptions of any type
            if self.local and not isinstance(problem, OSError):
                raise
            where = locations.bare(locations.join(self.location, relative) if relative else self.location)
            raise OutputError(f"{where}: {doing} ({phrase(problem)})") from None

    def prepare(self) -> None:
        """Make the folder, and check that it can be written to."""
        with self._errors("cannot be written"):
            if self.local:
                os.makedirs(os.path.join(self.location, PARTIAL), exist_ok=True)
        probe = f"{PARTIAL}/probe-{uuid.uuid4().hex}"
        self.write(probe, b"latpcap")
        self.remove(probe)

    def sweep(self) -> None:
        """Remove unfinished files of dead runs on this machine, and of old runs on other machines."""
        if not self.local:
            return
        for entry in Path(self.location, PARTIAL).iterdir():
            if entry.name == Path(LOCK).name or entry.name.startswith(f"{Path(LOCK).name}-"):
                continue
            host, _, after_host = entry.name.partition("+")
            owner = after_host.partition("+")[0]
            with suppress(OSError):
                if host == socket.gethostname() and owner.isdecimal() and os.name == "posix":
                    is_abandoned = not _runs(int(owner))
                else:
                    is_abandoned = time.time() - entry.stat().st_mtime > _STALE_S
                if is_abandoned:
                    shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Provide a folder for incomplete files, and remove it at the end of the block."""
        name = f"{socket.gethostname()}+{os.getpid()}+{uuid.uuid4().hex[:12]}"
        with self._errors("cannot be written"):
            parent = Path(self.location, PARTIAL) if self.local else Path(tempfile.gettempdir())
            folder = parent / name
            folder.mkdir(mode=0o700, parents=self.local)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def put(self, file: Path, relative: str) -> None:
        """Move a finished file from a scratch folder to its place, replacing an existing file."""
        with self._errors("cannot be written", relative):
            if self.local:
                target = os.path.join(self.location, relative)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(file, target)
                return
            filesystem, path = locations.resolve(locations.join(self.location, relative))
            with open(file, "rb") as source, filesystem.open_output_stream(path, compression=None) as sink:
                shutil.copyfileobj(source, sink, 8 << 20)

    def write(self, relative: str, data: bytes) -> None:
        """Write a small file, whole or not at all."""
        with self.scratch() as folder:
            file = folder / "data"
            with self._errors("cannot be written", relative):
                file.write_bytes(data)
            self.put(file, relative)

    def read(self, relative: str) -> bytes:
        """Read a small file."""
        with (
            self._errors("cannot be read", relative),
            locations.open_bytes(locations.join(self.location, relative)) as file,
        ):
            return bytes(file.read())

    def remove(self, relative: str) -> None:
        """Remove a file, if it exists, and its folder if that is empty then."""
        with self._errors("cannot be removed", relative):
            if not self.local:
                filesystem, path = locations.resolve(locations.join(self.location, relative))
                with suppress(FileNotFoundError):
                    filesystem.delete_file(path)
                return
            target = Path(self.location, relative)
            target.unlink(missing_ok=True)
            if target.parent.name in ("", PARTIAL) or target.parent == Path(self.location):
                return
            try:
                target.parent.rmdir()
            except OSError as problem:
                if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    raise

    def states(self, folder: str) -> dict[str, int]:
        """Return when each file of a folder was written, in ns by the clock of the store."""
        with self._errors("cannot be listed", folder):
            if self.local:
                with os.scandir(os.path.join(self.location, folder)) as entries:
                    return {f"{folder}/{entry.name}": entry.stat().st_mtime_ns for entry in entries}
            listed = locations.listing(locations.join(self.location, folder))
        return {f"{folder}/{locations.bare(entry.location).rpartition('/')[2]}": entry.mtime_ns for entry in listed}

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the complete files below a folder: sorted names relative to the output, with their sizes in bytes."""
        with self._errors("cannot be listed", folder):
            if not self.local:
                root = locations.bare(self.location).rstrip("/") + "/"
                entries = locations.listing(locations.join(self.location, folder) if folder else self.location)
                size_of = {locations.bare(entry.location).removeprefix(root): entry.size for entry in entries}
            else:
                size_of = {}
                for parent, folders, names in os.walk(os.path.join(self.location, folder)):
                    folders[:] = [name for name in folders if name != PARTIAL]
                    paths = [os.path.join(parent, name) for name in names]
                    size_of |= {os.path.relpath(path, self.location): os.stat(path).st_size for path in paths}
        return dict(sorted(size_of.items()))

    def files(self, folder: str) -> list[str]:
        """Return the names of the complete files below a folder, as in `sizes`."""
        return list(self.sizes(folder))


def _runs(process: int) -> bool:
    """Return whether a process exists. (Not for Windows, where this would end it.)"""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
