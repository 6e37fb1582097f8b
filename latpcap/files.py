"""Writes files atomically: to a temporary name in the same folder, which is then renamed.

A command never replaces a file that it has read, by whatever name or link. An output that is a symbolic link stays a
link: the file that it points to is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

_inputs: set[tuple[int, int]] | None = None
"""Device and inode of each file that a command has read; None outside commands, where a file may be read and then
replaced.
"""
_outputs: list[str] = []
"""The files that the command has written, by the names that it was given."""


@contextlib.contextmanager
def protected_inputs() -> Iterator[list[str]]:
    """Protect the files that are read (`note_input`) from being replaced, for the duration of a command. Yields the
    list of the files that it writes.
    """
    global _inputs, _outputs
    before, _inputs, _outputs = (_inputs, _outputs), set(), []
    try:
        yield _outputs
    finally:
        _inputs, _outputs = before


def note_input(path: str | os.PathLike[str]) -> None:
    """Record an input file. Pipes and devices are not recorded: writing cannot destroy them."""
    if _inputs is not None:
        with contextlib.suppress(OSError, ValueError):
            status = os.stat(path)
            if stat.S_ISREG(status.st_mode):
                _inputs.add((status.st_dev, status.st_ino))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path to write to; a failure leaves the old file as it was. OSError if the place is not writable.

    Pipes and devices, and files in a folder that takes no new files, are written in place.
    """
    target = Path(os.path.realpath(path))
    try:
        old_state: os.stat_result | None = os.stat(target)
    except OSError:
        old_state = None
    if old_state is not None and _inputs is not None and (old_state.st_dev, old_state.st_ino) in _inputs:
        raise FileExistsError(errno.EEXIST, "is a file that was read, and would be lost: give another name")
    is_regular = old_state is None or stat.S_ISREG(old_state.st_mode)
    part_path = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    if not is_regular or not os.access(target.parent, os.W_OK) or (old_state and not os.access(target, os.W_OK)):
        yield Path(path)
        return
    try:
        yield part_path
        if old_state is not None:
            os.chmod(part_path, stat.S_IMODE(old_state.st_mode))
        os.replace(part_path, target)
        _outputs.append(os.fspath(path))
    except BaseException:
        with contextlib.suppress(OSError):
            part_path.unlink()
        raise


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as part_path:
        part_path.write_bytes(data)
