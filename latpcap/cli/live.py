"""Reads pipes so that the first Ctrl-C ends the capture, and the answer is about what has arrived.

A second Ctrl-C ends the program. After the first one reading goes on briefly, since tcpdump flushes its buffer when it
is interrupted.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
import time
from typing import Any, BinaryIO

import typer

_POLL_S = 0.2
"""Longest wait for data before Ctrl-C is checked."""
_QUIET_S = 0.3
"""Silence after Ctrl-C that ends reading."""
_MAX_AFTER_S = 2.0
"""Upper bound on the time of reading after Ctrl-C."""


class Live:
    """A pipe as a binary file object, which ends at its end or after Ctrl-C."""

    def __init__(self, file: BinaryIO, name: str):
        self.name = name
        self._file = file
        self._pressed: float | None = None
        self._before: Any = signal.signal(signal.SIGINT, self._press)

    def _press(self, number: int, frame: object) -> None:
        self._pressed = time.monotonic()
        self.close()
        typer.echo("latpcap: reading ends here, this is about what has arrived; Ctrl-C again ends", err=True)

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; waits for the first byte. Empty at the end."""
        while True:
            began = self._pressed
            if began is not None and time.monotonic() - began > _MAX_AFTER_S:
                return b""
            ready, _, _ = select.select([self._file], [], [], _POLL_S if began is None else _QUIET_S)
            if ready and (block := os.read(self._file.fileno(), size)):
                return block
            if ready or began is not None:
                self.close()
                return b""

    def close(self) -> None:
        """Restore the handler of Ctrl-C."""
        signal.signal(signal.SIGINT, self._before)


def is_pipe(file: str) -> bool:
    """Return whether a path is a named pipe."""
    try:
        return stat.S_ISFIFO(os.stat(file).st_mode)
    except (OSError, ValueError):
        return False


def pipe(file: str) -> Live | None:
    """Return the pipe that a word names ("-", or a named pipe), if it is one and Ctrl-C can be handled; else None."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return None  # select is for sockets on Windows, and only the main thread handles signals
    try:
        if file == "-":
            stream: BinaryIO = sys.stdin.buffer
            mode = os.fstat(stream.fileno()).st_mode
        else:
            mode = os.stat(file).st_mode
            if not stat.S_ISFIFO(mode):
                return None
            stream = open(file, "rb", buffering=0)  # noqa: SIM115 - open until the program ends
    except (OSError, ValueError, AttributeError):
        return None
    return Live(stream, "<stdin>" if file == "-" else file) if stat.S_ISFIFO(mode) else None
