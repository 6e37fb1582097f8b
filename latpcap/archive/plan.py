"""What is left to do? Holds what was found against what an earlier run says it has done.

A task is done when its marker names the same input (files, sizes, times of change), the same options and the same
version of latpcap, when all its files are there with their sizes, and when whatever failed failed by the file's own
content.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from latpcap.archive import layout
from latpcap.archive.model import Failure, Marker, Options, Outcome, Task
from latpcap.archive.output import Output

_READERS = 16


@dataclass
class Plan:
    """What is left to do, and what is done? `outdated` are the markers of results that do not hold any more."""

    todo: list[Task] = field(default_factory=list)
    done: list[Outcome] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    outdated: list[Marker] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes that have to be read."""
        return sum(task.size for task in self.todo)


def make(tasks: Iterable[Task], options: Options, output: Output) -> Plan:
    """What is left to do? Reads the markers in the output."""
    present = output.sizes()
    markers = {m.outcome.task: m for m in _markers(output, [n for n in present if n.startswith(f"{layout.TASKS}/")])}
    plan, named = Plan(), set()
    for task in tasks:
        marker = markers.pop(task.name, None)
        named |= {part.name for part in task.parts}
        if marker is not None and _holds(marker, task.fingerprint(options), present):
            plan.done.append(marker.outcome)
            plan.skipped += [part.name for part in task.parts]
            continue
        if marker is not None:
            plan.outdated.append(marker)
        plan.todo.append(task)
    # a file that belongs to another series now, or to none
    plan.outdated += [m for m in markers.values() if named & set(m.parts)]
    plan.todo.sort(key=lambda t: -t.size)  # the longest first, so that no worker is left alone with it
    return plan


def _markers(output: Output, names: list[str]) -> list[Marker]:
    def one(name: str) -> Marker | None:
        try:
            return Marker.of(output.read(name))
        except (ValueError, KeyError, TypeError):
            return None  # not ours, or of another time: the task is done again

    with ThreadPoolExecutor(_READERS) as pool:
        return [m for m in pool.map(one, names) if m is not None]


def _holds(marker: Marker, fingerprint: str, present: dict[str, int]) -> bool:
    told = marker.outcome
    whole = all(
        present.get(layout.file_of(table, capture["capture"])) == size
        for capture in told.captures
        for table, size in capture["stored"].items()
    )
    return marker.fingerprint == fingerprint and whole and not told.changed and all(f.lasting for f in told.failures)


def clear(plan: Plan, output: Output) -> None:
    """Takes away what does not hold any more: the marker first, then each capture, the file that vouches for it
    first."""
    kept = {capture["capture"] for outcome in plan.done for capture in outcome.captures}
    for marker in plan.outdated:
        output.remove(layout.marker(marker.outcome.task))
        for capture in marker.outcome.captures:
            if capture["capture"] not in kept:
                for file in layout.of_capture(capture["capture"]):
                    output.remove(file)


def failures(plan: Plan) -> list[Failure]:
    """What failed in an earlier run, and would fail again?"""
    return [failure for outcome in plan.done for failure in outcome.failures]
