"""Which group does each exchange belong to?

Reads the `exchanges` and `streams` tables; gives a column or a name per exchange. The words of `by` in reports,
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
"""What `by` may name, and the column of the tables that it is."""


def chosen(by: Group | Sequence[Group] | None) -> tuple[Group, ...]:
    """The words of `by` as a tuple; ValueError for a word that is no key of `GROUPS`."""
    names: tuple[Group, ...] = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in GROUPS:
            raise ValueError(f"cannot group by {name!r}; known are {', '.join(GROUPS)}")
    return names


def column(exchanges: pa.Table, streams: pa.Table, by: Group) -> Any:
    """Each exchange's value: of its own table, or of its stream's; a server has its port, a client has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    name = GROUPS[by]
    if name in exchanges.column_names:
        found = exchanges[name]
        return found.cast(pa.string()) if pa.types.is_dictionary(found.type) else found
    at = pc.index_in(exchanges["stream"], value_set=streams["stream"].combine_chunks())
    values = streams[name].cast(pa.string()).combine_chunks()
    if name == "server":
        port = streams["server_port"].cast(pa.string()).combine_chunks()
        bracketed = pc.binary_join_element_wise("[", values, "]", "")
        host = pc.if_else(pc.match_substring(values, ":"), bracketed, values)
        values = pc.binary_join_element_wise(host, port, ":")
    return values.take(at.combine_chunks())


def names(exchanges: pa.Table, streams: pa.Table, by: Group | Sequence[Group] | None) -> list[str] | None:
    """Each exchange's group in words; None where nothing is grouped."""
    words = chosen(by)
    if not words:
        return None
    columns = [column(exchanges, streams, word).to_pylist() for word in words]
    return [named(words, key) for key in zip(*columns, strict=True)]


def named(by: Sequence[str], key: Sequence[Any]) -> str:
    """A group's name, safe for a terminal, that says what it is: a bare number does not."""
    return " ".join(_word(name, value) for name, value in zip(by, key, strict=True))


def _word(group: str, value: Any) -> str:
    if value is None or value != value:
        return f"{group} none"
    return f"{group} {value}" if isinstance(value, int) else printable(str(value))
