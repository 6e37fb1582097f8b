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

from latpcap.format import escaped
from latpcap.reading import places


@dataclass(frozen=True)
class Part:
    """Which file is this, and in which state was it when the work was planned?"""

    place: str
    size: int
    mtime_ns: int

    @property
    def name(self) -> str:
        """The place in messages."""
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
    """Identifies this key log; none of its content."""

    def to_dict(self) -> dict[str, Any]:
        """What stands in the metadata of every file."""
        return {"events": self.events} | ({} if self.keylog is None else {"keylog": True})


@dataclass(frozen=True)
class Task:
    """What is analysed in one go? A file, or files that look like one rotated capture."""

    name: str
    parts: tuple[Part, ...]
    rotation: str | None = None

    def fingerprint(self, options: Options) -> str:
        """Fingerprint: unchanged as long as neither the input nor what is made of it has changed."""
        state = [[p.name, p.size, p.mtime_ns] for p in self.parts]
        keys = {} if options.keys is None else {"keys": options.keys}
        state_json = json.dumps([state, options.to_dict() | keys, options.version, options.schema, self.rotation])
        return hashlib.sha256(state_json.encode()).hexdigest()[:16]

    @property
    def size(self) -> int:
        """Bytes of all parts, as they lie there."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True)
class Pack:
    """Which tasks share their files in the results? A long capture has files of its own."""

    name: str
    tasks: tuple[Task, ...]

    @property
    def size(self) -> int:
        """Bytes of all its tasks."""
        return sum(task.size for task in self.tasks)

    def fingerprint(self, options: Options) -> str:
        """Fingerprint: unchanged as long as those of its tasks are."""
        return hashlib.sha256("".join(t.fingerprint(options) for t in self.tasks).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Failure:
    """Why is this file not in the results? `offset` is the byte where reading stopped, or None.

    `lasting`: the file's own content is the reason: as long as it does not change, it is not tried again.
    """

    file: str
    reason: str
    offset: int | None = None
    lasting: bool = False

    def __str__(self) -> str:
        where = self.file if self.offset is None else f"{self.file}: byte {self.offset:,}"
        return escaped(f"{where}: {self.reason}")


@dataclass
class Outcome:
    """What came of a task? `captures` are its captures with their counts."""

    task: str
    captures: list[dict[str, Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Marker:
    """What does a run say of a task? `pack` has its captures."""

    pack: str
    fingerprint: str
    parts: tuple[str, ...]
    outcome: Outcome

    def to_dict(self) -> dict[str, Any]:
        """As a manifest has it."""
        return {
            "task": self.outcome.task,
            "fingerprint": self.fingerprint,
            "parts": self.parts,
            "captures": self.outcome.captures,
            "failures": [asdict(f) for f in self.outcome.failures],
            "changed": self.outcome.changed,
        }

    @classmethod
    def of(cls, pack: str, record: dict[str, Any]) -> Marker:
        """Reads what `to_dict` gave; ValueError, KeyError or TypeError for anything else."""
        failures = [Failure(**f) for f in record["failures"]]
        outcome = Outcome(record["task"], record["captures"], failures, record["changed"])
        return cls(pack, record["fingerprint"], tuple(record["parts"]), outcome)


@dataclass(frozen=True)
class Manifest:
    """What does a pack hold? `files` has the size and checksums of each of its files, `replaces` names older packs."""

    pack: str
    schema: str
    files: dict[str, dict[str, Any]]
    markers: tuple[Marker, ...]
    replaces: tuple[str, ...] = ()

    @property
    def captures(self) -> list[str]:
        """The captures whose rows are in it, in their order there."""
        return [capture["capture"] for marker in self.markers for capture in marker.outcome.captures]

    def to_bytes(self, layout: int) -> bytes:
        """The manifest as JSON, with a checksum of itself."""
        body = {
            "layout": layout,
            "pack": self.pack,
            "schema": self.schema,
            "replaces": self.replaces,
            "files": self.files,
            "tasks": [marker.to_dict() for marker in self.markers],
        }
        return (json.dumps({"sha256": _digest(body), "manifest": body}) + "\n").encode()

    @classmethod
    def of(cls, data: bytes, layout: int) -> Manifest:
        """Reads what `to_bytes` wrote; ValueError, with the reason, for anything else."""
        try:
            content = json.loads(data)
            if "manifest" not in content and "fingerprint" in content:
                raise OldLayoutError
            body = content["manifest"]
            if content["sha256"] != _digest(body):
                raise ValueError("damaged: its checksum does not fit")
            if body["layout"] != layout:
                raise OldLayoutError
            markers = tuple(Marker.of(body["pack"], of) for of in body["tasks"])
            return cls(body["pack"], body["schema"], body["files"], markers, tuple(body["replaces"]))
        except OldLayoutError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            reason = str(problem) if str(problem).startswith("damaged: ") else "damaged: no manifest of latpcap batch"
            raise ValueError(reason) from None


class OldLayoutError(ValueError):
    """Are these results of a version that laid them out otherwise?"""


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def identity(name: str) -> str:
    """What is the capture of this file called in the results? Readable, the same every time, and unique.

    A word that is safe as a folder's name, and twelve digits of a hash of the whole place.
    """
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(name))[:60].strip("._-") or "capture"
    return f"{stem}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
