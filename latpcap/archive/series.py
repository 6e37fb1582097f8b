"""Finds files that are one rotated capture, by their names:

    tcpdump -C       dump.pcap, dump.pcap1, dump.pcap2 …; with -W all numbered: dump.pcap00, dump.pcap01 …
    tcpdump -G       dump-2026-11-21_10:00:00.pcap: an instant in the name, written in any way; with -C a number behind
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
class Place:
    """The position of a file in a series: `key` identifies the series, `order` sorts within it."""

    key: tuple[str, ...]
    order: tuple[str, int]


def place_of(name: str) -> Place | None:
    """Return the position of a file in a rotated capture, by its name; None for a name without such a number."""
    folder, slash, base = name.rpartition("/")
    above = folder + slash
    if m := _DUMPCAP.match(base):
        number = m["number"] or m["late"]
        return Place(("dumpcap", above, m["before"], m["after"], m["packed"]), ("", int(number)))
    if (m := _TIMED.match(base)) and re.search(_SUFFIX, m["after"], re.IGNORECASE):
        shape = re.sub(r"\d", "0", m["instant"])
        digits = re.sub(r"\D", "", m["instant"])
        key = ("tcpdump -G", above, m["before"], shape, m["after"], m["packed"])
        return Place(key, (digits, int(m["number"] or 0)))
    if m := _NUMBERED.match(base):
        return Place(("tcpdump -C", above, m["before"], m["packed"]), ("", int(m["number"] or 0)))
    return None


def tasks(parts: Iterable[Part], *, stitch: bool = True) -> list[Task]:
    """Return the tasks of these files: one for each series, in the order of names, and one for each other file.

    If a number occurs twice (`dump.pcap` beside `dump.pcap0`), there are two recordings, and each file is a task.
    """
    alone: list[Task] = []
    series: dict[tuple[str, ...], list[tuple[tuple[str, int], Part]]] = defaultdict(list)
    for part in parts:
        place = place_of(part.name) if stitch else None
        if place is None:
            alone.append(Task(identity(part.name), (part,)))
        else:
            series[place.key].append((place.order, part))
    for key, members in series.items():
        members.sort(key=lambda m: (m[0], m[1].name))
        orders = {order for order, _ in members}
        if len(members) == 1 or len(orders) < len(members):
            alone += [Task(identity(part.name), (part,)) for _, part in members]
        else:
            joined = tuple(part for _, part in members)
            alone.append(Task(_series_name(key), joined, key[0]))
    return sorted(alone, key=lambda t: t.parts[0].name)


def _series_name(key: tuple[str, ...]) -> str:
    return "series-" + identity("".join(key[1:]))


def number_of(name: str) -> int | None:
    """Return the number of a file in its series; None for a series that is ordered by instants."""
    place = place_of(name)
    return None if place is None or place.key[0] == "tcpdump -G" else place.order[1]
