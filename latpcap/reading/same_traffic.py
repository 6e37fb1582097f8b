"""Detect files that show the same packets, by comparing the beginning of each.

The same traffic captured at two points is not a ring of files: read as one capture, every packet would count twice.
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
"""Bytes of each file that are compared."""
MAX_FILES = 64
"""Upper bound on the files that are compared, the first ones."""
SHARE = 0.5
"""Minimum share of the smaller file's packets that both must contain. The files of a ring share none."""
MIN_SHARED = 8
"""Minimum number of shared packets: a few keep-alives of an idle connection may be equal by chance."""
_ROW, _NUMBERS, _FLAGS = 64, slice(28, 48), slice(52, 54)
"""A row of `_core.Analysis.packets`, its sequence and acknowledgement number, length and time stamps, and its flags."""


def warnings(origins: Sequence[Origin]) -> list[str]:
    """Return a sentence for each pair of local files that begin with the same packets."""
    local = [
        origin
        for origin in origins
        if isinstance(origin.source, (str, os.PathLike)) and os.path.isfile(origin.source)  # a pipe can be read once
    ][:MAX_FILES]
    if len(local) < 2:
        return []
    files = [(escaped(origin.name), _packets(origin)) for origin in local]
    messages = []
    for (one, packets), (other, other_packets) in combinations(files, 2):
        shared, fewer = len(packets & other_packets), min(len(packets), len(other_packets))
        if shared >= MIN_SHARED and shared >= SHARE * fewer:
            messages.append(
                f"{one} and {other} show the same packets ({shared:,} of the first {fewer:,}), which count twice: "
                f"latpcap why --join {one} {other} puts them on one clock"
            )
    return messages


def _packets(origin: Origin) -> set[bytes]:
    """Return the first packets of a file as bytes that are equal at every capture point."""
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
    return {rows[start : start + _ROW][_NUMBERS] + rows[start : start + _ROW][_FLAGS] for start in starts}
