"""Tables of a capture: their names, who has them, and how they look as data frames and as HTML.

Knows nothing of captures; pandas and pyarrow are imported when they are first needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from latpcap import arrays, html

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
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


def signed(table: pa.Table) -> pa.Table:
    """The same rows with every integer as int64: a difference of two unsigned columns would wrap around or raise."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_integer(field.type) and field.type != pa.int64():
            column = table[field.name].cast(pa.int64(), safe=False)  # frames and bytes: none comes near 2**63
            table = table.set_column(place, field.with_type(pa.int64()), column)
    return table


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A plain DataFrame of numpy's and pandas' own types.

    Integers are int64, and Int64 where they may be null; truths bool or boolean; words a category; instants
    datetime64[ns, UTC]; lists are Python's, None where they are null.
    """
    import pandas as pd
    import pyarrow as pa

    columns: dict[str, Any] = {}
    table = signed(table)
    own = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    for field in table.schema:
        column = table[field.name]
        if pa.types.is_dictionary(field.type):
            column = column.unify_dictionaries()
        if field.nullable and field.type in own:
            # pandas keeps null apart from the numbers here; else integers with nulls would be floats
            columns[field.name] = column.to_pandas(types_mapper=own.get)
        elif pa.types.is_list(field.type):
            columns[field.name] = _lists(column)
        else:
            columns[field.name] = column.to_pandas()
    return pd.DataFrame(columns)


def _lists(column: pa.ChunkedArray) -> Any:
    """A list a row, as Python has it: an array would make `==` ambiguous."""
    import numpy as np
    import pyarrow.compute as pc

    found = np.empty(len(column), object)
    rows = pc.indices_nonzero(pc.is_valid(column)).to_pylist()
    for row, values in zip(rows, column.drop_null().to_pylist(), strict=True):
        found[row] = values
    return found


def to_polars(table: pa.Table) -> pl.DataFrame:
    """A polars DataFrame, integers as Int64. ImportError where polars is not installed."""
    try:
        import polars
    except ImportError:
        raise ImportError("polars is not installed: pip install polars") from None
    return cast("pl.DataFrame", polars.from_arrow(signed(table)))


def sql(query: str, tables: Mapping[str, Callable[[], pa.Table]]) -> pd.DataFrame:
    """The answer of a query to tables by these names, through duckdb; only those that it names are made.

    ImportError where duckdb is not installed; duckdb's own error for a query that makes no sense.
    """
    try:
        import duckdb
    except ImportError:
        raise ImportError("duckdb is not installed: pip install duckdb") from None
    import pyarrow as pa

    named = set(re.findall(r"\w+", query.lower()))
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'; set python_enable_replacements = false")
        for name, make in tables.items():
            if name in named:
                connection.register(name, signed(make()))
        found = connection.sql(query)
        if found is None:  # a statement without rows
            return to_pandas(pa.table({}))
        return to_pandas(found.to_arrow_table())
