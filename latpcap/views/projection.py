"""`Projection`: a capture read for one report or picture, with only the columns and rows that it needs.

Of a long capture this takes a fraction of the memory of all tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from latpcap import arrays, spill
from latpcap.lazy import np, pa
from latpcap.reading import sources
from latpcap.reading.drain import portions, table
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog
from latpcap.tables import LINKS, ORDER, Needed, TableSlice, in_order, of_rows
from latpcap.views import recording

if TYPE_CHECKING:
    from latpcap.options import TableName

TAKE_BYTES = 4 << 20
"""Bytes of the capture after which rows are taken out of the core; most of them are dropped at once."""
COPY_ROWS = 1 << 14
"""Rows that are copied together. Until then, a selected column keeps its whole batch in memory."""


def of_stream(number: int) -> Needed:
    """Return the tables and rows to read for one stream: all of its rows, and all of `streams`."""
    return of_streams([number])


def of_streams(numbers: Sequence[int]) -> Needed:
    """Return the tables and rows to read for these streams: all of their rows, and all of `streams`."""

    def has_stream(rows: pa.Table) -> pa.ChunkedArray:
        return arrays.column(np.isin(arrays.numbers(rows, "stream"), numbers))

    selected = TableSlice(None, has_stream)
    tables = dict.fromkeys(LINKS.values(), selected)
    return {
        "streams": TableSlice(None),
        "events": selected,
        "transfers": selected,
        **tables,
        "causes": TableSlice(None, of_selected=True),
    }


def read(source: sources.Source, needed: Needed, *, keylog: Keylog | None = None, progress: bool = False) -> Projection:
    """Read a capture as `latpcap.read` does, keeping the needed part of these tables, and all of `issues`."""
    feed = Feed(source, keylog)
    kept: dict[TableName, _Rows] = {
        name: _Rows(name, kept_slice) for name, kept_slice in needed.items() if name != "issues"
    }
    for portion in portions(feed, take_bytes=TAKE_BYTES, progress=progress):
        numbers: dict[str, pa.ChunkedArray] = {}
        for name in [*LINKS.values(), *(name for name in kept if name not in LINKS.values())]:
            if name in kept:
                rows = kept[name].add(table(portion[name]), numbers)
                numbers |= {link: rows[link] for link, table_name in LINKS.items() if table_name == name}
    projection = Projection(feed, kept, keylog)
    spill.trim_heap()
    return projection


class _Rows:
    """The part of a table that is kept."""

    def __init__(self, name: TableName, kept: TableSlice):
        self._name = name
        self._order = ORDER.get(name, ())
        self._columns = None if kept.columns is None else list(dict.fromkeys([*self._order, *kept.columns]))
        self._chosen, self._of_kept = kept.rows, kept.of_selected
        self._parts: list[pa.Table] = []
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table, numbers: Mapping[str, pa.ChunkedArray]) -> pa.Table:
        """Add the next rows; return those that are kept, with all columns. `numbers` has the numbers of the rows that
        other tables keep of this portion, by their link.
        """
        if self._of_kept:
            rows = of_rows(rows, numbers)
        if self._chosen is not None and rows.num_rows:
            rows = rows.filter(self._chosen(rows))
        if rows.num_rows or not (self._parts or self._waiting):
            self._waiting.append(rows if self._columns is None else rows.select(self._columns))
        if sum(len(part) for part in self._waiting) >= COPY_ROWS:
            self._copy()
        return rows

    def _copy(self) -> None:
        self._parts.append(pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks())
        self._waiting.clear()

    def table(self) -> pa.Table:
        """Return all rows in order, and empty this object."""
        if self._waiting:
            self._copy()
        rows = pa.concat_tables(self._parts).unify_dictionaries()
        self._parts.clear()
        if self._name == "causes" and self._columns is None:
            return in_order(rows)
        return rows.sort_by([(key, "ascending") for key in self._order]) if self._order else rows


class Projection(recording.Recording):
    """Some columns of some tables of a capture; KeyError for other tables."""

    def __init__(self, feed: Feed, kept: dict[TableName, _Rows], keylog: Keylog | None):
        super().__init__(feed.name, feed.analysis, feed.broken, origins=feed.origins, keylog=keylog)
        del feed.analysis  # frees the state of all streams
        self._raw = {"issues": self._raw["issues"]}
        for name, rows in kept.items():
            self._arrow[name] = rows.table()
