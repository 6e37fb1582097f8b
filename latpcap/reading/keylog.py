"""The text of a TLS key log (SSLKEYLOGFILE's format), for the engine.

The text goes from the file to the engine and is kept nowhere: captures remember the file's name, and results not even
that. The environment variable is not read: pass `keylog=os.environ["SSLKEYLOGFILE"]`.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from latpcap import files
from latpcap.errors import CaptureError
from latpcap.format import phrase

Keylog: TypeAlias = str | os.PathLike[str]

MAX_BYTES = 64 << 20
"""The engine reads no more (`MAX_TEXT_BYTES` in core/src/decrypt/keylog.rs)."""


def text(keylog: Keylog | None) -> bytes | None:
    """Read a key log; None for no key log. CaptureError where there is no such file."""
    if keylog is None:
        return None
    name = os.fspath(keylog)
    files.note_input(name)
    try:
        with open(name, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        reason = "no such key log" if isinstance(problem, FileNotFoundError) else f"key log: {phrase(problem)}"
        raise CaptureError(name, reason, layer="keylog") from None


def state(keylog: Keylog | None) -> str | None:
    """Tell one key log from another without its content: twelve digits of a hash."""
    import hashlib

    read = text(keylog)
    return None if read is None else hashlib.sha256(read).hexdigest()[:12]
