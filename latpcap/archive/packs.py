"""Which captures share their files in the results? Short ones do, so that thousands of them are not ten thousands of
files; a long capture has files of its own.

Looks at names and sizes only. The same tasks make the same packs on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from latpcap.archive.model import Pack, Task
from latpcap.reading.unpack import SUFFIXES

MOST_BYTES = 16 << 20
"""A pack is closed before it reads more than this; about a second of work, which is what a killed run may lose."""
MOST_TASKS = 512
_UNFOLDS = 8
"""A compressed capture is counted so many times."""
_PACKED = re.compile(rf"\.(?:{'|'.join(SUFFIXES)})$", re.IGNORECASE)


def make_packs(tasks: Iterable[Task]) -> list[Pack]:
    """The packs of these tasks, the longest first, so that no worker is left alone with it."""
    found: list[Pack] = []
    mine: list[Task] = []
    held = 0
    for task in sorted(tasks, key=lambda t: t.name):
        size = _bytes(task)
        if mine and (held + size > MOST_BYTES or len(mine) == MOST_TASKS):
            found.append(pack(mine))
            mine, held = [], 0
        mine.append(task)
        held += size
    if mine:
        found.append(pack(mine))
    return sorted(found, key=lambda p: -p.size)


def _bytes(task: Task) -> int:
    return sum(part.size * (_UNFOLDS if _PACKED.search(part.name) else 1) for part in task.parts)


def pack(tasks: Sequence[Task]) -> Pack:
    """These tasks as one pack."""
    return Pack(name([task.name for task in tasks]), tuple(tasks))


def name(tasks: Sequence[str], *, replaces: Sequence[str] = ()) -> str:
    """What is a pack of these tasks called? A task that is alone gives it its own name."""
    if len(tasks) == 1 and not replaces:
        return tasks[0]
    return "pack-" + hashlib.sha256("\n".join([*tasks, *replaces]).encode()).hexdigest()[:16]
