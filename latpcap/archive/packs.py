"""Divides tasks into packs, which share files in the results: thousands of short captures would be too many files.

Depends on names and sizes only, so the same tasks make the same packs on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from latpcap.archive.model import Pack, Task
from latpcap.reading.unpack import SUFFIXES

MAX_BYTES = 16 << 20
"""Upper bound on the bytes of a pack of several tasks; about a second of work, which a killed run may lose."""
MAX_TASKS = 512
"""Upper bound on the tasks of a pack."""
_UNPACKED_RATIO = 8
"""Estimated ratio of uncompressed to compressed size."""
_PACKED = re.compile(rf"\.(?:{'|'.join(SUFFIXES)})$", re.IGNORECASE)


def make_packs(tasks: Iterable[Task]) -> list[Pack]:
    """Return the packs of these tasks, the largest first, so that it does not run alone at the end."""
    packs: list[Pack] = []
    members: list[Task] = []
    total_bytes = 0
    for task in sorted(tasks, key=lambda task: task.name):
        size = _bytes(task)
        if members and (total_bytes + size > MAX_BYTES or len(members) == MAX_TASKS):
            packs.append(pack(members))
            members, total_bytes = [], 0
        members.append(task)
        total_bytes += size
    if members:
        packs.append(pack(members))
    return sorted(packs, key=lambda pack: -pack.size)


def _bytes(task: Task) -> int:
    return sum(part.size * (_UNPACKED_RATIO if _PACKED.search(part.name) else 1) for part in task.parts)


def pack(tasks: Sequence[Task]) -> Pack:
    """Return one pack of these tasks."""
    return Pack(name([task.name for task in tasks]), tuple(tasks))


def name(tasks: Sequence[str], *, replaces: Sequence[str] = ()) -> str:
    """Return the name of a pack of these tasks; a single task gives the pack its own name."""
    if len(tasks) == 1 and not replaces:
        return tasks[0]
    return "pack-" + hashlib.sha256("\n".join([*tasks, *replaces]).encode()).hexdigest()[:16]
