"""Finds files that are one rotated capture, by their names:

    tcpdump -C       dump.pcap, dump.pcap1, dump.pcap2 …; with -W all numbered: dump.pcap00, dump.pcap01 …
    tcpdump -G       dump-2026-11-21_10:00:00.pcap: an instant in the name, written in any way; with -C a number after
    dumpcap -b       dump_00001_20261121100000.pcapng, or with the two the other way round

all of them compressed or not. Files belong together only within a folder and with the same name around number and
instant. The worker compares headers and instants of the files, and cuts a series where they do not fit (`rotation`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from latpcap.archive.model import Part, Task, identity
from latpcap.reading.unpack import SUFFIXES

_PACKED = rf"(?P<packed>(?:\.(?:{'|'.join(SUFFIXES)}))?)$"
_SUFFIX = r"\.(?:pcap|pcapng|cap|dmp|ntar)(?:ng)?"
_DUMPCAP = re.compile(
    rf"^(?P<before>.*)_(?:(?P<number>\d{{5,}})_\d{{14}}|\d{{14}}_(?P<late>\d{{5,}}))(?P<after>{_SUFFIX}|){_PACKED}",
    re.IGNORECASE | re.DOTALL,
)
_DAY = r"(?:19|20)\d\d(?P<s1>[-_.]?)(?:0[1-9]|1[0-2])(?P=s1)(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3])(?P<s2>[-_.:]?)[0-5]\d(?:(?P=s2)(?:[0-5]\d|60))?"
_TIMED = re.compile(
    rf"^(?P<before>.*?)(?<!\d)(?P<instant>{_DAY}(?:[-_.T ]?{_CLOCK})?|1\d{{9}})(?!\d)"
    rf"(?P<after>[^0-9]*)(?P<number>\d*){_PACKED}",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERED = re.compile(rf"^(?P<before>.*{_SUFFIX})(?P<number>\d*){_PACKED}", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class SeriesPosition:
    """The position of a file in a series: `key` identifies the series, `order` sorts within it."""

    key: tuple[str, ...]
    order: tuple[str, int]


def position_in_series(name: str) -> SeriesPosition | None:
    """Return the position of a file in a rotated capture, by its name; None for a name without such a number."""
    folder, slash, base = name.rpartition("/")
    above = folder + slash
    if match := _DUMPCAP.match(base):
        number = match["number"] or match["late"]
        return SeriesPosition(("dumpcap", above, match["before"], match["after"], match["packed"]), ("", int(number)))
    if (match := _TIMED.match(base)) and re.search(_SUFFIX, match["after"], re.IGNORECASE):
        shape = re.sub(r"\d", "0", match["instant"])
        digits = re.sub(r"\D", "", match["instant"])
        key = ("tcpdump -G", above, match["before"], shape, match["after"], match["packed"])
        return SeriesPosition(key, (digits, int(match["number"] or 0)))
    if match := _NUMBERED.match(base):
        return SeriesPosition(("tcpdump -C", above, match["before"], match["packed"]), ("", int(match["number"] or 0)))
    return None


def tasks(parts: Iterable[Part], *, stitch: bool = True) -> list[Task]:
    """Return the tasks of these files: one for each series, in the order of names, and one for each other file.

    If a number occurs twice (`dump.pcap` beside `dump.pcap0`), there are two recordings, and each file is a task.
    """
    found_tasks: list[Task] = []
    series: dict[tuple[str, ...], list[tuple[tuple[str, int], Part]]] = defaultdict(list)
    for part in parts:
        position = position_in_series(part.name) if stitch else None
        if position is None:
            found_tasks.append(Task(identity(part.name), (part,)))
        else:
            series[position.key].append((position.order, part))
    for key, members in series.items():
        members.sort(key=lambda member: (member[0], member[1].name))
        orders = {order for order, _ in members}
        if len(members) == 1 or len(orders) < len(members):
            found_tasks += [Task(identity(part.name), (part,)) for _, part in members]
        else:
            joined = tuple(part for _, part in members)
            found_tasks.append(Task(_series_name(key), joined, key[0]))
    return sorted(found_tasks, key=lambda task: task.parts[0].name)


def _series_name(key: tuple[str, ...]) -> str:
    return "series-" + identity("".join(key[1:]))


def number_of(name: str) -> int | None:
    """Return the number of a file in its series; None for a series that is ordered by instants."""
    position = position_in_series(name)
    return None if position is None or position.key[0] == "tcpdump -G" else position.order[1]
