"""The tables of a capture: names, keys and order, and their forms as data frames, SQL relations and HTML.

pandas and pyarrow are imported when they are first needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from latpcap import _core, arrays, html
from latpcap.lazy import np, pa, pc, pd
from latpcap.options import TableName

if TYPE_CHECKING:
    import polars as pl

    from latpcap.arrays import Array


class HasTables(Protocol):
    """Anything with the tables of a capture, of a part of a capture, or of many captures."""

    def arrow(self, name: TableName) -> pa.Table:
        """Return the rows of this table; KeyError for a wrong name."""


class TableSlice(NamedTuple):
    """The part of a table that a report or a picture reads.

    `columns`: None for all. `rows` takes a batch of the table with all columns and returns a mask; None for all rows.
    `of_selected`, of `causes` only: keep the rows of the exchanges, connects, pushes and gaps that are kept.
    """

    columns: Sequence[str] | None
    rows: Callable[[pa.Table], pa.ChunkedArray] | None = None
    of_selected: bool = False


Needed: TypeAlias = Mapping[TableName, TableSlice]
"""The tables that are read of a capture, and which part of each; tables without an entry are not read."""


@cache
def fields(name: str) -> pa.Schema:
    """Return the schema of one of the core's tables, taken from a capture without packets."""
    engine = _core.Analysis()
    engine.finish()
    return pa.RecordBatchReader.from_stream(engine.take(name)).schema


def card(title: str, text: str, tables: dict[str, pa.Table] | None = None) -> str:
    """Return an HTML card: a title, an answer, and folded tables. Texts from the capture are escaped."""
    folded = []
    for name, table in (tables or {}).items():
        folded.append(html.more(name, html.table(to_pandas(table), rows=10, sortable=True)))
    return html.card(title, html.text(text), *folded)


LINKS: dict[str, TableName] = {"exchange": "exchanges", "connect": "connects", "push": "pushes", "gap": "gaps"}
"""Each row of `causes` has one of these columns: the number of a row in that table. No two tables share a number."""

ORDER: dict[TableName, tuple[str, ...]] = {
    "exchanges": ("exchange",),
    "streams": ("stream",),
    "connects": ("connect",),
    "pushes": ("push",),
    "gaps": ("gap",),
    "transfers": ("stream", "start"),
    "lookups": ("lookup",),
    "causes": ("exchange", "start"),
}
"""The columns by which the rows of a table are sorted. `causes` is sorted so only where all rows are of exchanges;
`in_order` sorts the others.
"""

CAPTURE_BITS = 40
"""Bits of an exchange's number within its capture, in results of several captures; the capture's number is above."""

NS_PER_MS = 1e6
"""Tables hold instants in ns and durations in ms."""
REPEATED = ("retransmission", "fast_retransmission", "spurious_retransmission")
"""Columns of `events` that mark a retransmission."""
SETUP = "tcp"
"""The `protocol` of a stretch that is not a request (a set-up, a client's pause, a suspected stall)."""


def read_stretches(scope: HasTables) -> pa.Table:
    """Return the stretches: the rows of `exchanges`, `connects` and `gaps`, in the columns of `exchanges`, by number.

    `exchange` is the number of each row. Rows of `connects` and `gaps` have `protocol` "tcp" and `method` "connect",
    "pause", "held" or "one_way"; they are never `complete`, and columns without a value for them are null.
    """
    exchanges = scope.arrow("exchanges")
    tables = [exchanges]
    for name in ("connects", "gaps"):
        others = scope.arrow(name)
        if others.num_rows:
            tables.append(as_exchanges(others, name, exchanges.schema))
    if len(tables) == 1:
        return exchanges
    return pa.concat_tables(tables).unify_dictionaries().sort_by("exchange")


def request_mask(stretches: pa.Table) -> Array:
    """Mark the stretches that are requests."""
    return ~arrays.equals(stretches, "protocol", SETUP)


def as_exchanges(table: pa.Table, name: str, schema: pa.Schema) -> pa.Table:
    """Return the rows of `connects`, `pushes` or `gaps` in the columns of `exchanges`."""
    rows = table.num_rows
    first, last = table["first_frame"], table["last_frame"]
    none, zero = pa.nulls(rows, last.type), pc.subtract(first, first)
    values = {column: table[column] for column in table.column_names if column not in ("protocol", "kind")}
    values |= {"protocol": arrays.strings([SETUP] * rows), "complete": pc.is_null(first)}
    values |= {"server_asks": pc.and_(pc.is_null(first), pc.is_valid(first))}
    values |= {"request_end": table["end"], "request_bytes": zero, "request_first_frame": first}
    if name == "connects":
        answered = pc.is_valid(table["answer_frame"])
        values |= {"exchange": table["connect"], "method": arrays.strings(["connect"] * rows), "index": zero}
        values |= {"request_last_frame": pc.if_else(answered, first, last)}
        values |= {
            "response_first_frame": table["answer_frame"],
            "response_last_frame": pc.if_else(answered, last, none),
        }
    elif name == "gaps":
        values |= {"exchange": table["gap"], "method": table["kind"], "request_last_frame": last}
    else:
        values |= {"exchange": table["push"], "index": zero, "request_last_frame": first}
        values |= {"response_first_frame": first, "response_last_frame": last}
    columns = [values[field.name] if field.name in values else pa.nulls(rows) for field in schema]
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def with_pushes(stretches: pa.Table, pushes: pa.Table) -> pa.Table:
    """Return the stretches and those rows of `pushes` that took time, with the `method` "push"."""
    timed = pushes.filter(pc.greater(pushes["duration_ms"], 0))
    if not timed.num_rows:
        return stretches
    timed = timed.set_column(
        timed.schema.get_field_index("method"), "method", arrays.strings(["push"] * timed.num_rows)
    )
    tables = [stretches, as_exchanges(timed, "pushes", stretches.schema)]
    return pa.concat_tables(tables).unify_dictionaries().sort_by("exchange")


def of_stretches(causes: pa.Table, pushes: bool = False) -> pa.Table:
    """Return the causes of all stretches, and with `pushes` of those, with each row's number in `exchange`."""
    if not causes["exchange"].null_count:
        return causes
    if not pushes and causes["push"].null_count < causes.num_rows:
        causes = causes.filter(pc.is_null(causes["push"]))
    number = pc.coalesce(causes["exchange"], causes["connect"], causes["gap"], causes["push"])
    return causes.set_column(causes.schema.get_field_index("exchange"), "exchange", number)


def of_rows(causes: pa.Table, numbers: Mapping[str, Any]) -> pa.Table:
    """Return the causes of some rows: `numbers` has the values of `exchange`, `connect`, `push` and `gap`."""
    masks = [pc.is_in(causes[link], value_set=rows.combine_chunks()) for link, rows in numbers.items() if len(rows)]
    if not masks:
        return causes.slice(0, 0)
    is_wanted = masks[0]
    for mask in masks[1:]:
        is_wanted = pc.or_(is_wanted, mask)
    return causes.filter(is_wanted)


def in_order(causes: pa.Table) -> pa.Table:
    """Return the causes grouped by exchange, connect, push and gap, each in order of time."""
    links = [link for link in LINKS if link == "exchange" or causes[link].null_count < causes.num_rows]
    return causes.sort_by([(key, "ascending") for key in (*links, "start")])


def signed(table: pa.Table) -> pa.Table:
    """Return the rows with every integer as int64: a difference of two unsigned columns would wrap around or raise."""
    for index, field in enumerate(table.schema):
        if pa.types.is_integer(field.type) and field.type != pa.int64():
            column = table[field.name].cast(pa.int64(), safe=False)  # frames and bytes are far below 2**63
            table = table.set_column(index, field.with_type(pa.int64()), column)
    return table


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a DataFrame of numpy's and pandas' own types.

    Integers become int64, nullable ones Int64; booleans bool or boolean; words category; instants datetime64[ns, UTC];
    lists Python lists, or None where they are null.
    """
    columns: dict[str, Any] = {}
    table = signed(table)
    nullable_types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    for field in table.schema:
        column = table[field.name]
        if pa.types.is_dictionary(field.type):
            column = column.unify_dictionaries()
        if field.nullable and field.type in nullable_types:
            # a nullable type: numpy would make floats of integers with nulls
            columns[field.name] = column.to_pandas(types_mapper=nullable_types.get)
        elif pa.types.is_list(field.type):
            columns[field.name] = _lists(column)
        else:
            columns[field.name] = column.to_pandas()
    return pd.DataFrame(columns)


def _lists(column: pa.ChunkedArray) -> Any:
    """Return an object array of Python lists; arrays as values would make `==` ambiguous."""
    lists = np.empty(len(column), object)
    if not len(column):
        return lists  # pyarrow 17 crashes on a column without chunks
    rows = pc.indices_nonzero(pc.is_valid(column)).to_pylist()
    for row, values in zip(rows, column.drop_null().to_pylist(), strict=True):
        lists[row] = values
    return lists


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Return a polars DataFrame, integers as Int64. ImportError where polars is not installed."""
    try:
        import polars
    except ImportError:
        raise ImportError("polars is not installed: pip install polars") from None
    return cast("pl.DataFrame", polars.from_arrow(signed(table)))


def sql(query: str, tables: Mapping[str, Callable[[], pa.Table]]) -> pd.DataFrame:
    """Run a query through duckdb, over tables with these names; only tables that the query names are made.

    ImportError where duckdb is not installed; duckdb's own error for an invalid query.
    """
    try:
        import duckdb
    except ImportError:
        raise ImportError("duckdb is not installed: pip install duckdb") from None
    named = set(re.findall(r"\w+", query.lower()))
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'; set python_enable_replacements = false")
        for name, make in tables.items():
            if name in named:
                connection.register(name, signed(make()))
        relation = connection.sql(query)
        if relation is None:  # a statement without rows
            return to_pandas(pa.table({}))
        return to_pandas(relation.to_arrow_table())


class Completeness:
    """Bits of Wireshark's `tcp.completeness`."""

    SYN, SYN_ACK, ACK, DATA, FIN, RST = 1, 2, 4, 8, 16, 32
