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
from latpcap.reading import locations

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
        return [name for name in (layout.file_of(table, pack) for table in layout.TABLES) if name in self.sizes]

    @property
    def orphans(self) -> list[str]:
        """Files of packs that were never completed."""
        named_packs = {*self.whole, *self.broken, *self.damaged, *self.replaced}
        tables = [name for name in self.sizes if name.endswith(".parquet") and name.partition("/")[0] in layout.TABLES]
        return [name for name in tables if name.count("/") == 1 and layout.pack_of(name) not in named_packs]


def find_stored(output: Output) -> StoredFiles:
    """Read the manifests, and compare the sizes of the files that they name."""
    stored = StoredFiles(output.sizes())
    names = [name for name in stored.sizes if name.startswith(f"{layout.TASKS}/") and name.endswith(".json")]

    def read_manifest(name: str) -> tuple[str, Manifest | ValueError]:
        try:
            return name, Manifest.of(output.read(name), layout.LAYOUT)
        except ValueError as problem:
            return name, problem
        except OutputError as problem:
            where = locations.bare(locations.join(output.location, name))
            return name, ValueError(str(problem).removeprefix(f"{where}: "))

    with ThreadPoolExecutor(min(_READERS, len(names)) or 1) as pool:
        is_remote = len(names) > 1 and not output.local
        manifests = list((pool.map if is_remote else map)(read_manifest, names))
    for name, manifest in manifests:
        if isinstance(manifest, OldLayoutError):
            stored.old = True
        elif isinstance(manifest, ValueError):
            stored.damaged[layout.pack_of(name)] = str(manifest)
        elif manifest.pack != layout.pack_of(name):
            stored.damaged[layout.pack_of(name)] = "damaged: holds the manifest of another pack"
        elif (reason := _unreadable_because(manifest, stored.sizes)) is not None:
            stored.broken[manifest.pack] = (manifest, reason)
        else:
            stored.whole[manifest.pack] = manifest
    for manifest in list(stored.whole.values()):
        for name in manifest.replaces:
            replaced = stored.whole.pop(name, None) or stored.broken.pop(name, (None, ""))[0]
            if replaced is not None:
                stored.replaced[name] = replaced
    return stored


def _unreadable_because(manifest: Manifest, sizes: dict[str, int]) -> str | None:
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

    stored: StoredFiles
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
    stored = find_stored(output)
    if stored.old:
        raise OutputError(f"{locations.bare(output.location)}: {OLD}")
    plan, given_names, todo = Plan(stored), set(), []
    markers = {marker.outcome.task: marker for manifest, _ in stored.broken.values() for marker in manifest.markers}
    markers |= {marker.outcome.task: marker for manifest in stored.whole.values() for marker in manifest.markers}
    for task in tasks:
        marker = markers.pop(task.name, None)
        given_names |= {part.name for part in task.parts}
        if marker is not None and _is_up_to_date(marker, task.fingerprint(options), stored):
            plan.done.append(marker.outcome)
            plan.skipped += [part.name for part in task.parts]
            continue
        if marker is not None:
            plan.outdated.append(marker)
        todo.append(task)
    # tasks whose file now belongs to another series, or to none
    plan.outdated += [marker for marker in markers.values() if given_names & set(marker.parts)]
    plan.todo = packs.make_packs(todo)
    return plan


def _is_up_to_date(marker: Marker, fingerprint: str, stored: StoredFiles) -> bool:
    outcome = marker.outcome
    is_readable = marker.pack in stored.whole
    is_lasting = not outcome.changed and all(failure.lasting for failure in outcome.failures)
    return marker.fingerprint == fingerprint and is_readable and is_lasting


def failures(plan: Plan) -> list[Failure]:
    """Return the failures of earlier runs, which would occur again."""
    return [failure for outcome in plan.done for failure in outcome.failures]
