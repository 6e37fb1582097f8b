"""What do a trace of system calls or a server's log, taken beside the capture, add to its answer?

Each source gives a `SideSource`: sentences and their numbers. They stand as that source's, next to the verdict; the
grades of the answer stay what the capture alone is worth.
"""

from __future__ import annotations

from pathlib import Path

from latpcap.side_sources import access_log as log
from latpcap.side_sources import strace as calls
from latpcap.side_sources.source import SideSource
from latpcap.tables import HasTables


def read_sources(capture: HasTables, *, strace: str | Path | None, access_log: str | Path | None) -> list[SideSource]:
    """What the given sources say of this capture; LatpcapError where one cannot be read."""
    results = []
    if strace is not None:
        results.append(calls.compare(capture, strace))
    if access_log is not None:
        results.append(log.compare(capture, access_log))
    return results


__all__ = ["SideSource", "read_sources"]
