"""Tables of a capture: their names, who has them, and how they look as data frames and as HTML.

Knows nothing of captures; pandas and pyarrow are imported when they are first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from latpcap import arrays, html

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from latpcap.options import TableName


class HasTables(Protocol):
    """Whoever has the tables of a capture, or of a part of one, or of many."""

    def arrow(self, name: TableName) -> pa.Table:
        """The rows of this table; KeyError for a wrong name."""


def card(title: str, text: str, tables: dict[str, pa.Table] | None = None) -> str:
    """A small HTML card: a title, an answer, and tables that are folded away; what came from the capture is escaped."""
    folded = []
    for name, table in (tables or {}).items():
        folded.append(html.more(name, html.table(to_pandas(table), rows=10, sortable=True)))
    return html.card(title, html.text(text), *folded)


SETUP = "tcp"
"""The `protocol` of a row of `exchanges` that is no request: a set-up, a client's pause, a suspicion."""


def requests(exchanges: pa.Table) -> pa.Table:
    """Which of these exchanges are requests? The table without set-ups, pauses and suspicions."""
    import pyarrow.compute as pc

    # a pattern, because a pyarrow scalar brings pandas along
    return exchanges.filter(pc.invert(pc.match_like(exchanges["protocol"].cast("string"), SETUP)))


def how_many(exchanges: pa.Table) -> int:
    """How many of these exchanges are requests?"""
    code, words = arrays.codes(exchanges, "protocol")
    return int((code != (words.index(SETUP) if SETUP in words else -2)).sum())


def of_requests(causes: pa.Table, exchanges: pa.Table) -> pa.Table:
    """Which of these causes belong to these exchanges? The table without the rows of others."""
    import pyarrow.compute as pc

    return causes.filter(pc.is_in(causes["exchange"], value_set=exchanges["exchange"].combine_chunks()))


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A plain DataFrame; integers, booleans and lists with nulls stay Arrow-backed, so that null is not a float."""
    import pandas as pd
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for field in table.schema:
        column = table[field.name]
        lossy = field.nullable and (pa.types.is_integer(field.type) or pa.types.is_boolean(field.type))
        if lossy or pa.types.is_list(field.type):
            columns[field.name] = pd.Series(column, dtype=pd.ArrowDtype(field.type))
        elif pa.types.is_dictionary(field.type):
            columns[field.name] = column.unify_dictionaries().to_pandas()
        else:
            columns[field.name] = column.to_pandas()
    return pd.DataFrame(columns)
