"""How is a file written so that it is there whole or not at all? Beside its place first, then renamed.

A command's outputs never take the place of its inputs, by whatever name or link. Outputs that are symbolic links keep
their link: the file that they point to is replaced.
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
"""Device and number of each file that a command has read; None outside commands, where files may be read and written
in turn.
"""


_outputs: list[str] = []
"""What the command has written, by the names that it was given."""


@contextlib.contextmanager
def kept_inputs() -> Iterator[list[str]]:
    """For as long as a command works: a file that was read (`was_read`) is not replaced. Gives the names of the files
    that it writes.
    """
    global _inputs, _outputs
    before, _inputs, _outputs = (_inputs, _outputs), set(), []
    try:
        yield _outputs
    finally:
        _inputs, _outputs = before


def was_read(path: str | os.PathLike[str]) -> None:
    """Notes an input; what is no regular file cannot be destroyed."""
    if _inputs is not None:
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(path)
            if stat.S_ISREG(found.st_mode):
                _inputs.add((found.st_dev, found.st_ino))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives the path to write to. A failure leaves the old file as it was; OSError where the place cannot be written.

    What is no regular file (a pipe, /dev/stdout), or lies in a folder that takes no new files, is written in place.
    """
    target = Path(os.path.realpath(path))
    try:
        before: os.stat_result | None = os.stat(target)
    except OSError:
        before = None
    if before is not None and _inputs is not None and (before.st_dev, before.st_ino) in _inputs:
        raise FileExistsError(errno.EEXIST, "is a file that was read, and would be lost: give another name")
    regular = before is None or stat.S_ISREG(before.st_mode)
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    if not regular or not os.access(target.parent, os.W_OK) or (before and not os.access(target, os.W_OK)):
        yield Path(path)
        return
    try:
        yield beside
        if before is not None:
            os.chmod(beside, stat.S_IMODE(before.st_mode))
        os.replace(beside, target)
        _outputs.append(os.fspath(path))
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file, whole or not at all."""
    with replacing(path) as beside:
        beside.write_bytes(data)
