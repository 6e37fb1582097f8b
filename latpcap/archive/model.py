"""Plain values of a batch, which are passed between processes: files, tasks, packs, outcomes, manifests."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from latpcap.format import escaped
from latpcap.reading import locations


@dataclass(frozen=True)
class Part:
    """A file, with its size and time of change when the batch was planned."""

    location: str
    size: int
    mtime_ns: int

    @property
    def name(self) -> str:
        """The location without credentials, for messages."""
        return locations.bare(self.location)


@dataclass(frozen=True)
class Options:
    """Options for every capture of a run. Those that change tables are part of each task's fingerprint."""

    output: str
    events: bool = True
    version: str = ""
    schema: str = ""
    keylog: str | None = None
    keys: str | None = None
    """A fingerprint of the key log; none of its content."""

    def to_dict(self) -> dict[str, Any]:
        """Return the options that the metadata of every file has."""
        return {"events": self.events} | ({} if self.keylog is None else {"keylog": True})


@dataclass(frozen=True)
class Task:
    """What is analysed together: a file, or files that look like one rotated capture."""

    name: str
    parts: tuple[Part, ...]
    rotation: str | None = None

    def fingerprint(self, options: Options) -> str:
        """Return a hash that changes with the input, the options or the version."""
        state = [[part.name, part.size, part.mtime_ns] for part in self.parts]
        keys = {} if options.keys is None else {"keys": options.keys}
        state_json = json.dumps([state, options.to_dict() | keys, options.version, options.schema, self.rotation])
        return hashlib.sha256(state_json.encode()).hexdigest()[:16]

    @property
    def size(self) -> int:
        """The size of all files in bytes, as stored (compressed)."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True)
class Pack:
    """Tasks that share files in the results. A long capture is a pack of its own."""

    name: str
    tasks: tuple[Task, ...]

    @property
    def size(self) -> int:
        """The size of all tasks in bytes."""
        return sum(task.size for task in self.tasks)

    def fingerprint(self, options: Options) -> str:
        """Return a hash that changes with that of any task."""
        return hashlib.sha256("".join(task.fingerprint(options) for task in self.tasks).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Failure:
    """A file that is not in the results, and why. `offset` is the byte where reading stopped, or None.

    `lasting`: the reason is the file's content, so it is not tried again until it changes.
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
    """The result of a task: the records of its captures, failures, and files that changed while they were read."""

    task: str
    captures: list[dict[str, Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Marker:
    """A task's entry in a manifest. `pack` has its captures, `fingerprint` identifies its input and options."""

    pack: str
    fingerprint: str
    parts: tuple[str, ...]
    outcome: Outcome

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
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
        """Parse what `to_dict` returned; ValueError, KeyError or TypeError for anything else."""
        failures = [Failure(**f) for f in record["failures"]]
        outcome = Outcome(record["task"], record["captures"], failures, record["changed"])
        return cls(pack, record["fingerprint"], tuple(record["parts"]), outcome)


@dataclass(frozen=True)
class Manifest:
    """The content of a pack: size and checksums of each of its files, its tasks, and the packs that it replaces."""

    pack: str
    schema: str
    files: dict[str, dict[str, Any]]
    markers: tuple[Marker, ...]
    replaces: tuple[str, ...] = ()

    @property
    def captures(self) -> list[str]:
        """The captures of the pack, in the order of their rows."""
        return [capture["capture"] for marker in self.markers for capture in marker.outcome.captures]

    def to_bytes(self, layout: int) -> bytes:
        """Return the manifest as JSON, with a checksum."""
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
        """Parse what `to_bytes` returned; ValueError, with the reason, for anything else."""
        try:
            content = json.loads(data)
            if "manifest" not in content and "fingerprint" in content:
                raise OldLayoutError
            body = content["manifest"]
            if content["sha256"] != _digest(body):
                raise ValueError("damaged: its checksum does not fit")
            if body["layout"] != layout:
                raise OldLayoutError
            markers = tuple(Marker.of(body["pack"], task) for task in body["tasks"])
            return cls(body["pack"], body["schema"], body["files"], markers, tuple(body["replaces"]))
        except OldLayoutError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            reason = str(problem) if str(problem).startswith("damaged: ") else "damaged: no manifest of latpcap batch"
            raise ValueError(reason) from None


class OldLayoutError(ValueError):
    """The results have the layout of another version."""


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def identity(name: str) -> str:
    """Return the name of a file's capture in the results: a word that is safe as a folder's name, and twelve digits of
    a hash of its whole location. Readable, reproducible and unique.
    """
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(name))[:60].strip("._-") or "capture"
    return f"{stem}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
