"""How far is it? A bar on standard error for what takes longer than a second; nothing before, and nothing where nobody
watches. A command that reads its file more than once has one bar for all passes.

Knows nothing of what is counted. tqdm is imported when the second has passed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AFTER_S = 1.0
"""A bar that comes and goes within a second helps nobody."""
_EVERY_S = 0.1
_open: list[Bar] = []


def watched() -> bool:
    """Does somebody see standard error: a terminal, or a notebook?"""
    if sys.stderr.isatty():
        return True
    shell = sys.modules.get("IPython")
    return shell is not None and "IPKernelApp" in getattr(shell.get_ipython(), "config", {})


class _Command:
    """What the passes of one command have done together."""

    def __init__(self) -> None:
        self.passes = self.opened = 0
        self.done = 0
        self.begun = time.monotonic()
        self.bar: Any = None


_command: _Command | None = None


@contextmanager
def command() -> Iterator[None]:
    """Inside, all bars are one, which goes when this ends."""
    global _command
    before, _command = _command, _Command()
    try:
        yield
    finally:
        if _command.bar is not None:
            _command.bar.close()
        _command = before


def expect(passes: int) -> None:
    """The command reads its file so many times."""
    if _command is not None:
        _command.passes = passes


class Bar:
    """So much is done; shown from the first second on, if anybody is to see it."""

    def __init__(self, title: str, total: int | None, unit: str, *, shown: bool):
        self.done = self._before = 0
        self._title, self._total, self._unit, self._shown = title, total, unit, shown
        self._next = time.monotonic() + AFTER_S
        self._bar: Any = None
        self._noted = False
        self._of = _command if total is not None and not _open else None
        if self._of is not None and total is not None:
            self._of.opened += 1
            self._before, self._bar, self._next = self._of.done, self._of.bar, self._of.begun + AFTER_S
            self._total = max(total * max(self._of.passes, self._of.opened), self._before + total)
            self._end = self._before + total
            if self._bar is not None:
                self._bar.total = self._total

    def add(self, more: int) -> None:
        """So much more is done."""
        self.done += more
        if self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY_S
            self._show()

    def note(self, words: str) -> None:
        """What it waits for, behind the count until more is done."""
        if self._shown:
            self._show()
            self._bar.set_postfix_str(words)
            self._noted = True

    def _show(self) -> None:
        if self._bar is None:
            from tqdm.auto import tqdm

            scaled = self._unit == "B"
            self._bar = tqdm(
                total=self._total, desc=self._title, unit=self._unit, unit_scale=scaled, leave=False, mininterval=0
            )
            if self._of is not None:
                self._of.bar = self._bar
        if self._noted:
            self._noted = False
            self._bar.set_postfix_str("", refresh=False)
        # a file may have grown since it was measured
        done = self._before + self.done
        self._bar.update((done if self._total is None else min(done, self._total)) - self._bar.n)

    def close(self) -> None:
        """Takes the bar away; one of a command stays for the next pass."""
        if self._of is not None:
            self._of.done = self._end
        elif self._bar is not None:
            self._bar.close()


@contextmanager
def bar(title: str, total: int | None, unit: str = "B", *, shown: bool | None = None) -> Iterator[Bar]:
    """A bar for as long as this takes. `total` is None where nobody knows; `shown`: None asks `watched`."""
    found = Bar(title, total, unit, shown=watched() if shown is None else shown)
    _open.append(found)
    try:
        yield found
    finally:
        _open.remove(found)
        found.close()


def note(words: str) -> None:
    """What is waited for, in the newest bar that is there."""
    if _open:
        _open[-1].note(words)
