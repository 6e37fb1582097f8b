"""A sentence about the processes that the capture names; no verdict depends on it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from latpcap import words
from latpcap.errors import CaptureError
from latpcap.reading import processes
from latpcap.reading.rereadable import Recorded
from latpcap.side_sources.source import SideSource

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_NAMED = 3
"""Upper bound on the processes named in the sentence."""


def name_processes(capture: Recorded, events: Any = None) -> list[SideSource]:
    """Return the sentence, if the capture names processes; `events` makes the table for a capture without it."""
    try:
        if not processes.has_named_processes(capture):
            return []
    except CaptureError:  # its bytes are gone
        return []
    return of_table(processes.table(capture, None if events is None else events()))


def of_table(table: pa.Table) -> list[SideSource]:
    """Return the sentence about the rows of `processes`."""
    counts: Counter[str] = Counter()
    for row in table.to_pylist():
        place = row["pod"] or row["container"]
        name = row["process"] or words.say("process_unnamed")
        where = words.say("process_in", name=name, pid=row["pid"], place=place) if place else ""
        named = where or words.say("process_pid", name=name, pid=row["pid"])
        end = row["address"] if row["side"] != "server" else f"{row['address']}:{row['port']}"
        counts[words.say("process_is", end=end, process=named) if row["side"] else named] += row["frames"]
    if not counts:
        return []
    most_frequent = [text for text, _ in counts.most_common(_MAX_NAMED)]
    left_out = len(counts) - len(most_frequent)
    more = words.say("process_more", n=left_out) if left_out else ""
    return [SideSource("processes", (words.joined([*most_frequent, more]),), {"count": len(counts)})]
