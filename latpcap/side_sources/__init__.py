"""Sources recorded beside a capture: a trace of system calls, a server's log, and processes that the capture names.

Each returns `SideSource`s: sentences and numbers that an answer shows beside its verdict. They do not change grades.
"""

from __future__ import annotations

from pathlib import Path

from latpcap.side_sources import access_log as log
from latpcap.side_sources import strace as calls
from latpcap.side_sources.source import SideSource
from latpcap.tables import HasTables


def read_sources(capture: HasTables, *, strace: str | Path | None, access_log: str | Path | None) -> list[SideSource]:
    """Compare the given sources with this capture; LatpcapError where one cannot be read."""
    results = []
    if strace is not None:
        results.append(calls.compare(capture, strace))
    if access_log is not None:
        results.append(log.compare(capture, access_log))
    return results


__all__ = ["SideSource", "read_sources"]
