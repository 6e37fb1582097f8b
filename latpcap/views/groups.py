"""Groups of exchanges: the words of `by` in reports, in pictures and on the command line.

Takes rows of `exchanges`; returns a column of keys, or the name of each exchange's group.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from latpcap.format import printable, shortest
from latpcap.lazy import pa, pc
from latpcap.options import Group
from latpcap.tables import CAPTURE_BITS

OTHER_NAMES = {"uri": "target"}
"""Words of `by` for columns with another name."""

PLACES = ("capture", "folder")
"""Words of `by` for the place of a capture."""

PROCESSES = ("process", "container", "pod")
"""Words of `by` for processes, where the capture names them; `View` adds these columns to exchanges."""

_UNITS = {"ms": "millisecond", "s": "second", "min": "minute", "h": "hour", "d": "day"}
_SPAN = re.compile(rf"([1-9]\d{{0,8}}) ?({'|'.join(_UNITS)})|({'|'.join(_UNITS.values())})")


@cache
def _columns() -> tuple[str, ...]:
    """Return columns of `exchanges` that can group: words, integers and booleans, but not durations and instants."""
    from latpcap.tables import fields

    return tuple(f.name for f in fields("exchanges") if not (pa.types.is_floating(f.type) or _is_instant(f.type)))


def _is_instant(data_type: Any) -> bool:
    return bool(pa.types.is_timestamp(data_type))


def span(word: str) -> tuple[int, str] | None:
    """Return the number and pyarrow's unit of a time span such as "10s", "5min" or "hour"; None for other words."""
    match = _SPAN.fullmatch(word)
    if match is None:
        return None
    return (1, match[3]) if match[3] else (int(match[1]), _UNITS[match[2]])


def chosen(by: Group | Sequence[Group] | None) -> tuple[Group, ...]:
    """Return the words of `by` as a tuple; ValueError for a word that names no column, place or time span."""
    names: tuple[Group, ...] = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in (*PLACES, *PROCESSES, *OTHER_NAMES, *_columns()) and span(name) is None:
            words = ("server", "client", "uri", "host", "method", "status", "protocol", "stream", "top_cause", *PLACES)
            raise ValueError(
                f"cannot group by {printable(name)!r}; known are {', '.join(words)}, any other column of exchanges "
                "that is no duration, and spans of time (10s, 5min, hour, day)"
            )
    return names


def of_processes(by: Group | Sequence[Group] | None) -> list[str]:
    """Return the words of `by` that name processes."""
    return [name for name in chosen(by) if name in PROCESSES]


def needed(by: Sequence[Group]) -> list[str]:
    """Return the columns of `exchanges` that these groups are made of."""
    return list(dict.fromkeys(column for name in by for column in _made_of(name)))


def _made_of(name: Group) -> tuple[str, ...]:
    if name in PLACES:
        return ("exchange",)
    if span(name) is not None:
        return ("start",)
    return ("server", "server_port") if name == "server" else (OTHER_NAMES.get(name, name),)


def column(exchanges: pa.Table, by: Group, files: Sequence[str] = ("",)) -> Any:
    """Return the key of each exchange; a server includes its port, a client does not. `files` are the captures by
    number.
    """
    if by in PLACES:
        names = shortest(files if by == "capture" else [os.path.dirname(f.replace("\\", "/")) or "." for f in files])
        return pa.array(names).take(captures(exchanges))
    if stretch := span(by):
        return pc.floor_temporal(exchanges["start"], multiple=stretch[0], unit=stretch[1])
    values = exchanges[_made_of(by)[0]]
    if pa.types.is_dictionary(values.type):
        values = values.cast(pa.string())
    if by == "server":
        port = exchanges["server_port"].cast(pa.string())
        bracketed = pc.binary_join_element_wise("[", values, "]", "")
        host = pc.if_else(pc.match_substring(values, ":"), bracketed, values)
        values = pc.binary_join_element_wise(host, port, ":")
    return values


def captures(exchanges: pa.Table) -> Any:
    """Return the number of each exchange's capture, in results of several captures; else 0."""
    return pc.shift_right(exchanges["exchange"], CAPTURE_BITS)


def names(exchanges: pa.Table, by: Group | Sequence[Group] | None, files: Sequence[str] = ("",)) -> list[str] | None:
    """Return the name of each exchange's group; None where nothing is grouped."""
    words = chosen(by)
    if not words:
        return None
    columns = [column(exchanges, word, files) for word in words]
    values_by_column = [v.to_pandas().tolist() if _is_instant(v.type) else v.to_pylist() for v in columns]
    return [named(words, key) for key in zip(*values_by_column, strict=True)]


def named(by: Sequence[str], key: Sequence[Any]) -> str:
    """Return a group's printable name; numbers are preceded by the group's word."""
    return " ".join(_word(name, value) for name, value in zip(by, key, strict=True))


def _word(group: str, value: Any) -> str:
    if value is None or value != value:
        return f"{group} none"
    if isinstance(value, (bool, int)):
        return f"{group} {value}"
    return printable(str(value).removesuffix("+00:00"))
