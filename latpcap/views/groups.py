"""Which group does each exchange belong to?

Reads the `exchanges` table; gives a column or a name per exchange. The words of `by` in reports,
pictures and on the command line; knows nothing of what is done with the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from latpcap.format import printable
from latpcap.options import Group

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS: dict[Group, str] = {
    "server": "server",
    "client": "client",
    "stream": "stream",
    "uri": "target",
    "method": "method",
    "status": "status",
    "protocol": "protocol",
    "top_cause": "top_cause",
}
"""What `by` may name, and the column of `exchanges` that it is."""


def chosen(by: Group | Sequence[Group] | None) -> tuple[Group, ...]:
    """The words of `by` as a tuple; ValueError for a word that is no key of `GROUPS`."""
    names: tuple[Group, ...] = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in GROUPS:
            raise ValueError(f"cannot group by {name!r}; known are {', '.join(GROUPS)}")
    return names


def needed(by: Sequence[Group]) -> list[str]:
    """The columns of `exchanges` that these groups are made of."""
    return [column for name in by for column in (GROUPS[name], *(["server_port"] if name == "server" else []))]


def column(exchanges: pa.Table, by: Group) -> Any:
    """Each exchange's value; a server has its port, a client has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = exchanges[GROUPS[by]]
    if pa.types.is_dictionary(values.type):
        values = values.cast(pa.string())
    if by == "server":
        port = exchanges["server_port"].cast(pa.string())
        bracketed = pc.binary_join_element_wise("[", values, "]", "")
        host = pc.if_else(pc.match_substring(values, ":"), bracketed, values)
        values = pc.binary_join_element_wise(host, port, ":")
    return values


def names(exchanges: pa.Table, by: Group | Sequence[Group] | None) -> list[str] | None:
    """Each exchange's group in words; None where nothing is grouped."""
    words = chosen(by)
    if not words:
        return None
    columns = [column(exchanges, word).to_pylist() for word in words]
    return [named(words, key) for key in zip(*columns, strict=True)]


def named(by: Sequence[str], key: Sequence[Any]) -> str:
    """A group's name, safe for a terminal, with its kind: a bare number means nothing."""
    return " ".join(_word(name, value) for name, value in zip(by, key, strict=True))


def _word(group: str, value: Any) -> str:
    if value is None or value != value:
        return f"{group} none"
    return f"{group} {value}" if isinstance(value, int) else printable(str(value))
