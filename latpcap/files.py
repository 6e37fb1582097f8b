"""How is a file written so that it is there whole or not at all? Beside its place first, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


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
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file, whole or not at all."""
    with replacing(path) as beside:
        beside.write_bytes(data)
