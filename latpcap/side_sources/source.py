"""`SideSource`, the result of a file recorded beside the capture, and how such files are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latpcap import files
from latpcap.errors import LatpcapError
from latpcap.format import phrase

MAX_BYTES = 1 << 30
"""Upper bound on the size of a trace or log, which is held in memory."""
CONFIRMS = 0.8
"""Smallest share of a time that a source has, too, with which it confirms the capture."""
CONTRADICTS = 0.2
"""Largest such share with which it contradicts the capture."""


@dataclass(frozen=True)
class SideSource:
    """Findings of one source: `source` (strace, access_log), `text` (sentences), `numbers` behind them, times in ms."""

    source: str
    text: tuple[str, ...]
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"source": self.source, "text": list(self.text), **self.numbers}


def lines_of(path: str | Path) -> list[str]:
    """Return the lines of a text file; LatpcapError where it cannot be read, or is longer than 1 GiB."""
    files.note_input(path)
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise LatpcapError(f"{path}: is longer than {MAX_BYTES:,} bytes: cut out the time of the capture")
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError) as problem:
        raise LatpcapError(f"{path}: cannot be read ({phrase(problem)})") from None
