"""Do two files show the same packets? Reads the beginning of each; knows nothing of what lies behind it.

The same traffic captured at two points is no ring of files: read as one capture, every packet counts twice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations

from latpcap import _core
from latpcap.errors import CaptureError
from latpcap.format import escaped
from latpcap.reading import links
from latpcap.reading.sources import Origin

HEAD_BYTES = 1 << 20
"""So much of each file is compared."""
MOST_FILES = 64
"""Of more files only the first are."""
SHARE = 0.5
"""Files that share this part of the smaller one's packets show the same traffic. A ring of files shares none."""
LEAST = 8
"""Packets that they share at least: keep-alives of a quiet line may be alike."""
_ROW, _NUMBERS, _FLAGS = 64, slice(28, 48), slice(52, 54)
"""A row of `_core.Analysis.packets`, its sequence and acknowledgement number, length and time stamps, and its flags."""


def warnings(origins: Sequence[Origin]) -> list[str]:
    """Give a sentence for each two of these files that begin with the same packets; none for what is no local file."""
    local = [
        origin
        for origin in origins
        if isinstance(origin.source, (str, os.PathLike)) and os.path.isfile(origin.source)  # a pipe can be read once
    ][:MOST_FILES]
    if len(local) < 2:
        return []
    found = [(escaped(origin.name), _packets(origin)) for origin in local]
    messages = []
    for (one, mine), (other, theirs) in combinations(found, 2):
        shared, fewer = len(mine & theirs), min(len(mine), len(theirs))
        if shared >= LEAST and shared >= SHARE * fewer:
            messages.append(
                f"{one} and {other} show the same packets ({shared:,} of the first {fewer:,}), which count twice: "
                f"latpcap why --join {one} {other} puts them on one clock"
            )
    return messages


def _packets(origin: Origin) -> set[bytes]:
    """What recognises the first packets of a file anywhere."""
    analysis, read = _core.Analysis(links.read), 0
    analysis.watch_packets()
    analysis.next_file()
    try:
        for block in origin.blocks():
            analysis.push(block[: HEAD_BYTES - read])
            read += len(block)
            if read >= HEAD_BYTES:
                break
    except CaptureError:  # the reading itself raises it
        pass
    rows = analysis.packets()
    starts = range(0, len(rows), _ROW)
    return {rows[at : at + _ROW][_NUMBERS] + rows[at : at + _ROW][_FLAGS] for at in starts}
