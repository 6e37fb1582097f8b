"""Takes finished rows out of the engine while a capture is read: the only place that does, whoever wants them.

Gives portions, each with every table's rows since the one before. A row of `causes` comes in the portion of the row
that its link names (LINKS), however large the portions are: what is made of portions, one after the other, is what
is made of the whole. Knows nothing of what is kept of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, TypeAlias, cast

from latpcap import _core
from latpcap.bars import bar
from latpcap.options import TableName
from latpcap.reading.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

TABLES: tuple[TableName, ...] = cast("tuple[TableName, ...]", tuple(_core.TABLES))
TAKE_BYTES = 16 << 20
"""Bytes of the capture until the next portion, at most."""
TAKE_ROWS = 1 << 18
"""Rows of a portion, about: a segment of pipelined requests has hundreds of rows, one of a download less than one."""
Portion: TypeAlias = "dict[TableName, _core.Table]"


def taken(analysis: _core.Analysis, skip_tables: Container[TableName] = ()) -> Portion:
    """All rows that are finished; they are given once. Those of `skip_tables` stay in the engine."""
    return {name: analysis.take(name) for name in TABLES if name not in skip_tables}


def table(rows: _core.Table) -> pa.Table:
    """These rows as a pyarrow table."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(rows).read_all()  # pa.table() would import pandas on the way


def portions(
    feed: Feed,
    *,
    take_bytes: int | None = None,
    skip_tables: Container[TableName] = ("issues",),
    progress: bool = False,
) -> Iterator[Portion]:
    """Reads all that `feed` has, and gives its rows portion by portion; the last is behind the end.

    `take_bytes` is for less than TAKE_BYTES; `skip_tables` are taken when all is read. Errors as in `Feed.run`.
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
                    rows = sum(len(of) for of in portion.values())
                    enough = max(min(ceiling, waiting * TAKE_ROWS // max(rows, 1)), 1)
                yield portion
                portion.clear()  # who took it may still hold it: else two portions were there at once
                waiting = 0
    yield taken(feed.analysis, skip_tables)
