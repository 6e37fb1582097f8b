"""Progress bars on standard error, for work that takes longer than a second and is watched by somebody.

The passes of a command that reads its file more than once share one bar. tqdm is imported only when a bar is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AFTER_S = 1.0
"""Time after which a bar is shown; shorter work would only make it flicker."""
_EVERY_S = 0.1
"""Shortest time between two updates of a shown bar."""
_open: list[Bar] = []


def is_watched() -> bool:
    """Return whether standard error is a terminal, or Python runs in a notebook."""
    if sys.stderr.isatty():
        return True
    shell = sys.modules.get("IPython")
    return shell is not None and "IPKernelApp" in getattr(shell.get_ipython(), "config", {})


class _Command:
    """Progress over all passes of one command; counts are in bytes or the unit of its bars."""

    def __init__(self) -> None:
        self.passes = self.opened = 0
        self.done = 0
        self.begun = time.monotonic()
        self.bar: Any = None


_command: _Command | None = None


@contextmanager
def command() -> Iterator[None]:
    """Show one bar for all bars inside, until the block ends."""
    global _command
    before, _command = _command, _Command()
    try:
        yield
    finally:
        if _command.bar is not None:
            _command.bar.close()
        _command = before


def expect(passes: int) -> None:
    """Announce how many times the command reads its file."""
    if _command is not None:
        _command.passes = passes


class Bar:
    """A counter that shows itself after `AFTER_S`, if `shown`."""

    def __init__(self, title: str, total: int | None, unit: str, *, shown: bool):
        self.done = self._before = 0
        self._title, self._total, self._unit, self._shown = title, total, unit, shown
        self._next = time.monotonic() + AFTER_S
        self._bar: Any = None
        self._noted = False
        self._command = _command if total is not None and not _open else None
        if self._command is not None and total is not None:
            self._command.opened += 1
            self._before, self._bar = self._command.done, self._command.bar
            self._next = self._command.begun + AFTER_S
            self._total = max(total * max(self._command.passes, self._command.opened), self._before + total)
            self._end = self._before + total
            if self._bar is not None:
                self._bar.total = self._total

    def add(self, more: int) -> None:
        """Count `more` units as done."""
        self.done += more
        if self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY_S
            self._show()

    def note(self, text: str) -> None:
        """Show a text after the count, until more is done."""
        if self._shown:
            self._show()
            self._bar.set_postfix_str(text)
            self._noted = True

    def _show(self) -> None:
        if self._bar is None:
            from tqdm.auto import tqdm

            scaled = self._unit == "B"
            self._bar = tqdm(
                total=self._total, desc=self._title, unit=self._unit, unit_scale=scaled, leave=False, mininterval=0
            )
            if self._command is not None:
                self._command.bar = self._bar
        if self._noted:
            self._noted = False
            self._bar.set_postfix_str("", refresh=False)
        # the count may exceed the total: a file may have grown since it was measured
        done = self._before + self.done
        self._bar.update((done if self._total is None else min(done, self._total)) - self._bar.n)

    def close(self) -> None:
        """Remove the bar; a command's bar stays for its next pass."""
        if self._command is not None:
            self._command.done = self._end
        elif self._bar is not None:
            self._bar.close()


@contextmanager
def bar(title: str, total: int | None, unit: str = "B", *, shown: bool | None = None) -> Iterator[Bar]:
    """A progress bar for the duration of the block. `total` None: not known; `shown` None: as `is_watched` says."""
    shown_bar = Bar(title, total, unit, shown=is_watched() if shown is None else shown)
    _open.append(shown_bar)
    try:
        yield shown_bar
    finally:
        _open.remove(shown_bar)
        shown_bar.close()


def note(text: str) -> None:
    """Show in the newest bar what the work waits for."""
    if _open:
        _open[-1].note(text)
