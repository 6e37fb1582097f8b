"""What is passed around when many captures are analysed? Plain values that travel between processes.

Reads and writes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from latpcap.archive import places


@dataclass(frozen=True)
class Part:
    """Which file is this, and in which state was it when the work was planned?"""

    place: str
    size: int
    mtime_ns: int

    @property
    def name(self) -> str:
        """The place as it is told to people."""
        return places.bare(self.place)


@dataclass(frozen=True)
class Options:
    """How is every capture of a run treated? What changes the tables is part of each task's fingerprint."""

    output: str
    events: bool = True
    version: str = ""
    schema: str = ""
    keylog: str | None = None
    keys: str | None = None
    """What tells this key log from another one; none of its content."""

    def told(self) -> dict[str, Any]:
        """What stands in the metadata of every file."""
        return {"events": self.events} | ({} if self.keylog is None else {"keylog": True})


@dataclass(frozen=True)
class Task:
    """What is analysed in one go? A file, or files that look like one rotated capture."""

    name: str
    parts: tuple[Part, ...]
    rotation: str | None = None

    def fingerprint(self, options: Options) -> str:
        """The same as long as neither the input nor what is made of it has changed."""
        state = [[p.name, p.size, p.mtime_ns] for p in self.parts]
        keys = {} if options.keys is None else {"keys": options.keys}
        told = json.dumps([state, options.told() | keys, options.version, options.schema, self.rotation])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def size(self) -> int:
        """Bytes of all parts, as they lie there."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True)
class Failure:
    """Why is this file not in the results? `offset` is the byte where reading stopped, or None.

    `lasting` says that the file's own content is the reason: as long as it does not change, it is not tried again.
    """

    file: str
    reason: str
    offset: int | None = None
    lasting: bool = False

    def __str__(self) -> str:
        where = self.file if self.offset is None else f"{self.file}: byte {self.offset:,}"
        return f"{where}: {self.reason}"


@dataclass
class Outcome:
    """What came of a task? `captures` are its captures with their counts, and the sizes of their files."""

    task: str
    captures: list[dict[str, Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def to_json(self, task: Task, fingerprint: str) -> bytes:
        """The marker that says that the task is done."""
        told = {
            "task": self.task,
            "fingerprint": fingerprint,
            "parts": [p.name for p in task.parts],
            "captures": self.captures,
            "failures": [asdict(f) for f in self.failures],
            "changed": self.changed,
        }
        return (json.dumps(told, indent=1) + "\n").encode()


@dataclass(frozen=True)
class Marker:
    """What does an earlier run say of a task?"""

    fingerprint: str
    parts: tuple[str, ...]
    outcome: Outcome

    @classmethod
    def of(cls, data: bytes) -> Marker:
        """Reads what `Outcome.to_json` wrote; ValueError, KeyError or TypeError for anything else."""
        told = json.loads(data)
        failures = [Failure(**f) for f in told["failures"]]
        outcome = Outcome(told["task"], told["captures"], failures, told["changed"])
        return cls(told["fingerprint"], tuple(told["parts"]), outcome)


def printable(name: str) -> str:
    """A file's name as text for tables: bytes that are no UTF-8 are shown as \\xff."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def identity(name: str) -> str:
    """What is the capture of this file called in the results? Readable, the same every time, and unique.

    A word that is safe as a folder's name, and twelve digits of a hash of the whole place.
    """
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(name))[:60].strip("._-") or "capture"
    return f"{stem}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
