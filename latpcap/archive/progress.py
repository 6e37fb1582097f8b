"""Progress of a batch: a bar if somebody watches (terminal or notebook), else a line every 15 s, or nothing.

Counts files, packets, bytes and failures; several workers report at once.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from latpcap import bars

LINE_EVERY_S = 15.0
"""Interval of the lines of progress where there is no terminal."""
_BAR_EVERY_S = 0.25
"""Interval at which the bar of a terminal is drawn again."""


class Progress:
    """The progress of all workers; as their `Watch` it counts what they read, and can stop them."""

    def __init__(self, tasks: int, size: int, *, quiet: bool = False, line_every_s: float = LINE_EVERY_S):
        self.stopped = False
        self.packets = 0
        self._tasks, self._size = tasks, size
        self._finished = self._failures = self._bytes = 0
        self._lock = threading.Lock()
        self._began = self._last = time.monotonic()
        self._every = line_every_s
        self._quiet = quiet or not tasks
        self._bar: Any = None
        if not self._quiet and bars.is_watched():
            from tqdm.auto import tqdm

            self._bar = tqdm(total=size, unit="B", unit_scale=True, desc=f"0/{tasks:,} captures", smoothing=0.1)
            self._every = _BAR_EVERY_S

    def read(self, file_bytes: int) -> None:
        """Count bytes read from capture files."""
        with self._lock:
            self._bytes += file_bytes
            self._show()

    def seen(self, packets: int) -> None:
        """Count packets analysed."""
        with self._lock:
            self.packets += packets

    def finished(self, failures: int, *, tasks: int = 1, unseen_bytes: int = 0, packets: int = 0) -> None:
        """Count finished tasks and failures. `unseen_bytes` were read by workers that do not report while reading."""
        with self._lock:
            self._finished += tasks
            self._failures += failures
            self._bytes += unseen_bytes
            self.packets += packets
            self._show()

    def doing(self, what: str) -> None:
        """Show what is done after all captures are read, on the same bar."""
        if self._bar is not None:
            with self._lock:
                self._bar.update(self._size - self._bar.n)
                self._bar.set_description_str(what)

    def stop(self) -> None:
        """Ask the workers to stop."""
        self.stopped = True

    def _show(self) -> None:
        now = time.monotonic()
        if self._quiet or now - self._last < self._every:
            return
        self._last = now
        if self._bar is None:
            print(f"latpcap: {self}", file=sys.stderr, flush=True)  # noqa: T201
        else:
            self._bar.set_description_str(f"{self._finished:,}/{self._tasks:,} captures", refresh=False)
            self._bar.set_postfix_str(self._rates(now), refresh=False)
            self._bar.update(min(self._bytes, self._size) - self._bar.n)

    def _rates(self, now: float) -> str:
        seconds = max(now - self._began, 1e-3)
        text = f"{self.packets / seconds:,.0f} packets/s"
        return f"{text}, {self._failures:,} failed" if self._failures else text

    def __str__(self) -> str:
        now = time.monotonic()
        seconds = max(now - self._began, 1e-3)
        rate = self._bytes / seconds
        time_left = f", {_clock((self._size - self._bytes) / rate)} left" if 0 < self._bytes < self._size else ""
        return (
            f"{self._finished:,}/{self._tasks:,} captures, {self._bytes / 1e6:,.0f} of {self._size / 1e6:,.0f} MB, "
            f"{rate / 1e6:,.0f} MB/s, {self._rates(now)}{time_left}"
        )

    def close(self) -> None:
        """Show the final counts, and end the bar."""
        if self._bar is not None:
            with self._lock:
                self._last = 0.0
                self._show()
            self._bar.close()


def _clock(seconds: float) -> str:
    minutes, seconds_left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"
