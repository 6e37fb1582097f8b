"""What does not hold any more goes: captures that are done again, packs that were replaced, and what a dead run left.

A pack that keeps other captures is written anew without those that go, under another name; its manifest says what it
replaces, so that readers see each capture once at any moment. Many small packs are joined on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latpcap.archive import layout, packfile, packs
from latpcap.archive.checked import DamagedError
from latpcap.archive.dataset import Stored
from latpcap.archive.model import Manifest, Options
from latpcap.archive.output import Output
from latpcap.archive.packfile import PackFiles

if TYPE_CHECKING:
    from latpcap.archive.plan import Held, Plan

MOST_SMALL = 24
"""So many packs of few captures may lie there; then they are joined. (A run every hour leaves one each.)"""
SMALL_BYTES = 2 << 20


def clear(plan: Plan, options: Options, output: Output) -> None:
    """Takes away what does not hold any more."""
    held = plan.held
    for name in held.replaced:
        _remove(name, held, output)
    for orphan in held.orphans:
        output.remove(orphan)
    gone: dict[str, set[str]] = {}
    for marker in plan.outdated:
        gone.setdefault(marker.pack, set()).add(marker.outcome.task)
    for name, tasks in gone.items():
        manifest = held.whole.get(name) or held.broken[name][0]
        if all(marker.outcome.task in tasks for marker in manifest.markers):
            _remove(name, held, output)
        elif name in held.whole:
            _rewrite([manifest], tasks, options, held, output)
    small = [m for name, m in held.whole.items() if name not in gone and _size(m) < SMALL_BYTES]
    if len(small) > MOST_SMALL:
        for group in _groups(small):
            _rewrite(group, set(), options, held, output)


def _size(manifest: Manifest) -> int:
    return sum(int(told["size"]) for told in manifest.files.values())


def _groups(small: list[Manifest]) -> list[list[Manifest]]:
    """Packs that are joined, none too large."""
    found: list[list[Manifest]] = []
    held = tasks = 0
    for manifest in sorted(small, key=lambda m: m.pack):
        size, more = _size(manifest), len(manifest.markers)
        if not found or held + size > packs.MOST_BYTES or tasks + more > packs.MOST_TASKS:
            found.append([])
            held = tasks = 0
        found[-1].append(manifest)
        held, tasks = held + size, tasks + more
    return [group for group in found if len(group) > 1]


def _remove(name: str, held: Held, output: Output) -> None:
    output.remove(layout.manifest_of(name))
    for file in held.files_of(name):
        output.remove(file)


def _rewrite(manifests: list[Manifest], gone: set[str], options: Options, held: Held, output: Output) -> None:
    """These packs as one, without the tasks that go. Packs that are damaged stay as they are."""
    import pyarrow as pa

    markers = [m for manifest in manifests for m in manifest.markers if m.outcome.task not in gone]
    captures = [c["capture"] for m in markers for c in m.outcome.captures]
    stored = Stored.of(output, {m.pack: m for m in manifests})
    replaces = [manifest.pack for manifest in manifests]
    metadata = packfile.told(options)
    try:
        with PackFiles(output) as files:
            for name in layout.TABLES[:-1] if captures else ():
                if any(layout.file_of(name, m.pack) in m.files for m in manifests):
                    files.add(name, stored.empty(name), name)
                    for batch in stored.dataset(name, captures).to_batches():
                        files.add(name, pa.Table.from_batches([batch]), name)
            kept = set(captures)
            files.rows += [row for row in stored.captures if row["capture"] in kept]
            files.put(packs.name([m.outcome.task for m in markers], replaces=replaces), markers, metadata, replaces)
    except DamagedError:
        return
    for name in replaces:
        _remove(name, held, output)
