"""Reads a TLS key log (the format of SSLKEYLOGFILE) for the engine.

The text is passed to the engine and not kept: captures keep the file's name, results not even that. The environment
variable is not read; pass `keylog=os.environ["SSLKEYLOGFILE"]`.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from latpcap import files
from latpcap.errors import CaptureError
from latpcap.format import phrase

Keylog: TypeAlias = str | os.PathLike[str]

_MAX_BYTES = 64 << 20
"""Upper bound on the text that the engine reads (`MAX_TEXT_BYTES` in core/src/decrypt/keylog.rs)."""


def text(keylog: Keylog | None) -> bytes | None:
    """Return the text of a key log; None without a key log. Raises CaptureError if the file cannot be read."""
    if keylog is None:
        return None
    name = os.fspath(keylog)
    files.note_input(name)
    try:
        with open(name, "rb") as file:
            return file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        reason = "no such key log" if isinstance(problem, FileNotFoundError) else f"key log: {phrase(problem)}"
        raise CaptureError(name, reason, layer="keylog") from None


def state(keylog: Keylog | None) -> str | None:
    """Return twelve digits of a hash, which identify a key log without its content."""
    import hashlib

    read = text(keylog)
    return None if read is None else hashlib.sha256(read).hexdigest()[:12]
