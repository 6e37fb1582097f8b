"""A pipe that a person may end: the first Ctrl-C ends the capture there, and what has arrived is the answer.

A second Ctrl-C ends the program. What the other end of the pipe still hands over when it hears of the first one is
read too: tcpdump empties its buffer then.
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

_LOOK_S = 0.2
"""So often a silent pipe is left to see whether somebody pressed Ctrl-C."""
_QUIET_S = 0.3
"""After Ctrl-C: so long a silence is the end."""
_MOST_S = 2.0
"""After Ctrl-C: so long is read at most, whatever still comes."""


class Live:
    """A pipe as a binary file object; its end is where it ends, or where Ctrl-C was pressed."""

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
        """What has arrived, at most so much; waits for the first byte. Empty at the end."""
        while True:
            began = self._pressed
            if began is not None and time.monotonic() - began > _MOST_S:
                return b""
            ready, _, _ = select.select([self._file], [], [], _LOOK_S if began is None else _QUIET_S)
            if ready and (block := os.read(self._file.fileno(), size)):
                return block
            if ready or began is not None:
                self.close()
                return b""

    def close(self) -> None:
        """Ctrl-C means again what it meant before."""
        signal.signal(signal.SIGINT, self._before)


def is_pipe(file: str) -> bool:
    """Is this a named pipe?"""
    try:
        return stat.S_ISFIFO(os.stat(file).st_mode)
    except (OSError, ValueError):
        return False


def pipe(file: str) -> Live | None:
    """The pipe that this word names ("-", or a named pipe), where it is one and Ctrl-C arrives; else None."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return None  # select is for sockets there, and only the main thread hears signals
    try:
        if file == "-":
            found: BinaryIO = sys.stdin.buffer
            mode = os.fstat(found.fileno()).st_mode
        else:
            mode = os.stat(file).st_mode
            if not stat.S_ISFIFO(mode):
                return None
            found = open(file, "rb", buffering=0)  # noqa: SIM115 - it lives as long as the program
    except (OSError, ValueError, AttributeError):
        return None
    return Live(found, "<stdin>" if file == "-" else file) if stat.S_ISFIFO(mode) else None
