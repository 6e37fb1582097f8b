"""Plans a batch: compares the captures found with the manifests of earlier runs.

A task is done if a manifest names it with the same input (files, sizes, times of change), options and version of
latpcap, all files of its pack have their sizes, and all of its failures are due to the files' content.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from latpcap.archive import layout, packs
from latpcap.archive.model import Failure, Manifest, Marker, OldLayoutError, Options, Outcome, Pack, Task
from latpcap.archive.output import Output
from latpcap.errors import OutputError
from latpcap.reading import places

_READERS = 16
"""Threads that read manifests from an object store."""
OLD = "holds results of another version of latpcap, which laid them out otherwise; give another folder"


@dataclass
class StoredFiles:
    """The files of the results: complete packs, broken packs with the reason, and damaged manifests with the reason."""

    sizes: dict[str, int]
    whole: dict[str, Manifest] = field(default_factory=dict)
    broken: dict[str, tuple[Manifest, str]] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, Manifest] = field(default_factory=dict)
    old: bool = False

    def files_of(self, pack: str) -> list[str]:
        """Return the files of a pack's tables."""
        return [n for n in (layout.file_of(t, pack) for t in layout.TABLES) if n in self.sizes]

    @property
    def orphans(self) -> list[str]:
        """Files of packs that were never completed."""
        known = {*self.whole, *self.broken, *self.damaged, *self.replaced}
        tables = [n for n in self.sizes if n.endswith(".parquet") and n.partition("/")[0] in layout.TABLES]
        return [n for n in tables if n.count("/") == 1 and layout.pack_of(n) not in known]


def held(output: Output) -> StoredFiles:
    """Read the manifests, and compare the sizes of the files that they name."""
    found = StoredFiles(output.sizes())
    names = [n for n in found.sizes if n.startswith(f"{layout.TASKS}/") and n.endswith(".json")]

    def one(name: str) -> tuple[str, Manifest | ValueError]:
        try:
            return name, Manifest.of(output.read(name), layout.LAYOUT)
        except ValueError as problem:
            return name, problem
        except OutputError as problem:
            where = places.bare(places.join(output.place, name))
            return name, ValueError(str(problem).removeprefix(f"{where}: "))

    with ThreadPoolExecutor(min(_READERS, len(names)) or 1) as pool:
        read = list(pool.map(one, names)) if len(names) > 1 and not output.local else [one(n) for n in names]
    for name, manifest in read:
        if isinstance(manifest, OldLayoutError):
            found.old = True
        elif isinstance(manifest, ValueError):
            found.damaged[layout.pack_of(name)] = str(manifest)
        elif manifest.pack != layout.pack_of(name):
            found.damaged[layout.pack_of(name)] = "damaged: holds the manifest of another pack"
        elif (wrong := _wrong(manifest, found.sizes)) is not None:
            found.broken[manifest.pack] = (manifest, wrong)
        else:
            found.whole[manifest.pack] = manifest
    for manifest in list(found.whole.values()):
        for name in manifest.replaces:
            gone = found.whole.pop(name, None) or found.broken.pop(name, (None, ""))[0]
            if gone is not None:
                found.replaced[name] = gone
    return found


def _wrong(manifest: Manifest, sizes: dict[str, int]) -> str | None:
    """Return why a pack cannot be read, by the sizes of its files; None if it can."""
    for name, file in manifest.files.items():
        if name not in sizes:
            return f"{name} is missing"
        if sizes[name] != file["size"]:
            return f"{name} has {sizes[name]:,} bytes, {file['size']:,} were written"
    return None


@dataclass
class Plan:
    """The packs to analyse, and the tasks that are done. `outdated` are the tasks whose results no longer hold."""

    held: StoredFiles
    todo: list[Pack] = field(default_factory=list)
    done: list[Outcome] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    outdated: list[Marker] = field(default_factory=list)

    @property
    def tasks(self) -> int:
        """The number of tasks to do."""
        return sum(len(pack.tasks) for pack in self.todo)

    @property
    def size(self) -> int:
        """The number of bytes to read."""
        return sum(pack.size for pack in self.todo)


def make(tasks: Iterable[Task], options: Options, output: Output) -> Plan:
    """Make the plan. OutputError where there are results of another layout."""
    found = held(output)
    if found.old:
        raise OutputError(f"{places.bare(output.place)}: {OLD}")
    plan, named, todo = Plan(found), set(), []
    markers = {m.outcome.task: m for manifest, _ in found.broken.values() for m in manifest.markers}
    markers |= {m.outcome.task: m for manifest in found.whole.values() for m in manifest.markers}
    for task in tasks:
        marker = markers.pop(task.name, None)
        named |= {part.name for part in task.parts}
        if marker is not None and _holds(marker, task.fingerprint(options), found):
            plan.done.append(marker.outcome)
            plan.skipped += [part.name for part in task.parts]
            continue
        if marker is not None:
            plan.outdated.append(marker)
        todo.append(task)
    # tasks whose file now belongs to another series, or to none
    plan.outdated += [m for m in markers.values() if named & set(m.parts)]
    plan.todo = packs.make_packs(todo)
    return plan


def _holds(marker: Marker, fingerprint: str, found: StoredFiles) -> bool:
    outcome = marker.outcome
    whole = marker.pack in found.whole
    return (
        marker.fingerprint == fingerprint and whole and not outcome.changed and all(f.lasting for f in outcome.failures)
    )


def failures(plan: Plan) -> list[Failure]:
    """Return the failures of earlier runs, which would occur again."""
    return [failure for outcome in plan.done for failure in outcome.failures]
