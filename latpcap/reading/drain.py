"""Takes finished rows out of the core while a capture is read, in portions.

A portion has the rows of every table since the one before. A row of `causes` is in the portion of the row that its link
names (LINKS), whatever the size of portions, so that portions can be processed one by one.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TypeAlias, cast

from latpcap import _core
from latpcap.bars import bar
from latpcap.lazy import pa
from latpcap.options import TableName
from latpcap.reading.feed import Feed

TABLES: tuple[TableName, ...] = cast("tuple[TableName, ...]", tuple(_core.TABLES))
TAKE_BYTES = 16 << 20
"""Upper bound on the bytes of the capture between two portions."""
TAKE_ROWS = 1 << 18
"""Approximate rows per portion: a segment of pipelined requests makes hundreds of rows, one of a download few."""
Portion: TypeAlias = "dict[TableName, _core.Table]"


def taken(analysis: _core.Analysis, skip_tables: Container[TableName] = ()) -> Portion:
    """Return all finished rows; each is returned once. Tables in `skip_tables` stay in the core."""
    return {name: analysis.take(name) for name in TABLES if name not in skip_tables}


def table(rows: _core.Table) -> pa.Table:
    """Return the rows as a pyarrow table."""
    return pa.RecordBatchReader.from_stream(rows).read_all()  # pa.table() would import pandas on the way


def portions(
    feed: Feed,
    *,
    take_bytes: int | None = None,
    skip_tables: Container[TableName] = ("issues",),
    progress: bool = False,
) -> Iterator[Portion]:
    """Read the whole source and yield its rows in portions; the last portion is the end's.

    `take_bytes` lowers TAKE_BYTES; tables in `skip_tables` are left in the core. Errors as in `Feed.run`.
    """
    ceiling = min(TAKE_BYTES, take_bytes or TAKE_BYTES)
    waiting, enough = 0, max(ceiling // 8, 1)
    with bar(f"reading {feed.name}", feed.size, shown=None if progress else False) as shown:
        for size in feed.run(by_parts=True):
            shown.add(size)
            waiting += size
            if waiting >= enough or not size:
                portion = taken(feed.analysis, skip_tables)
                if waiting:
                    rows = sum(len(rows_of_table) for rows_of_table in portion.values())
                    enough = max(min(ceiling, waiting * TAKE_ROWS // max(rows, 1)), 1)
                yield portion
                portion.clear()  # the caller may still hold it; two portions would take twice the memory
                waiting = 0
    yield taken(feed.analysis, skip_tables)
