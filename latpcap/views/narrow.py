"""A capture read for one report or picture: of all its tables the columns and rows that this needs.

Nothing else of the growing tables is kept, so that what is made of a long capture takes a fraction of its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from latpcap import arrays, longarrays
from latpcap.bars import bar
from latpcap.reading import sources
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog
from latpcap.tables import LINKS, Kept, Needed, in_order
from latpcap.views import recording

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array
    from latpcap.options import TableName

TAKE_BYTES = 4 << 20
"""Rows are taken out of the engine after so many bytes: most of them are dropped."""
COPY_ROWS = 1 << 14
"""So many rows are copied together. A column of the engine's keeps all its batch in memory until then."""
_ORDER: dict[TableName, tuple[str, ...]] = {
    "exchanges": ("exchange",),
    "streams": ("stream",),
    "connects": ("connect",),
    "pushes": ("push",),
    "gaps": ("gap",),
    "lookups": ("lookup",),
    "causes": ("exchange", "start"),
}
"""Columns that the order of rows rests on; they are kept, too. Some columns of `causes`: of exchanges' rows alone."""


def of_stream(number: int) -> Needed:
    """All rows of one stream, and `streams`."""
    return of_streams([number])


def of_streams(numbers: Sequence[int]) -> Needed:
    """All rows of these streams, and `streams`. The engine gives causes together with the rows that they are of."""
    found: dict[str, Array] = {}

    def chosen(link: str | None) -> Kept:
        def marked(rows: pa.Table) -> pa.ChunkedArray:
            import numpy as np

            mine = np.isin(arrays.numbers(rows, "stream"), numbers)
            if link is not None:
                found[link] = arrays.numbers(rows, link)[mine]
            return arrays.column(mine)

        return Kept(None, marked)

    def of_them(causes: pa.Table) -> pa.ChunkedArray:
        import numpy as np

        mine = np.zeros(causes.num_rows, bool)
        for link, numbers in found.items():
            mine |= np.isin(arrays.filled(causes, link, -1), numbers)
        found.clear()
        return arrays.column(mine)

    tables = {name: chosen(link) for link, name in LINKS.items()}
    return {"streams": Kept(None), "events": chosen(None), **tables, "causes": Kept(None, of_them)}


def read(source: sources.Source, needed: Needed, *, keylog: Keylog | None = None, progress: bool = False) -> Narrow:
    """Reads a capture as `latpcap.read` does, and keeps what is needed of these tables; `issues` as a whole."""
    feed = Feed(source, keylog)
    kept: dict[TableName, _Rows] = {name: _Rows(name, of) for name, of in needed.items() if name != "issues"}
    with bar(f"reading {feed.name}", feed.size, shown=None if progress else False) as shown:
        waiting = 0
        for size in feed.run(by_parts=True):
            shown.add(size)
            waiting += size
            if waiting >= TAKE_BYTES or not size:
                _take(feed, kept)
                waiting = 0
    _take(feed, kept)
    found = Narrow(feed, kept, keylog)
    longarrays.give_back()
    return found


def _take(feed: Feed, kept: dict[TableName, _Rows]) -> None:
    """The rows that are finished."""
    import pyarrow as pa

    for name in recording.TABLES:
        if name in kept:
            kept[name].add(pa.RecordBatchReader.from_stream(feed.analysis.take(name)).read_all())
        elif name != "issues":
            feed.analysis.take(name)


class _Rows:
    """What is kept of a table."""

    def __init__(self, name: TableName, kept: Kept):
        self._name = name
        self._order = _ORDER.get(name, ())
        self._columns = None if kept.columns is None else list(dict.fromkeys([*self._order, *kept.columns]))
        self._chosen = kept.rows
        self._parts: list[pa.Table] = []
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """The next rows."""
        if self._chosen is not None and rows.num_rows:
            rows = rows.filter(self._chosen(rows))
        if rows.num_rows or not (self._parts or self._waiting):
            self._waiting.append(rows if self._columns is None else rows.select(self._columns))
        if sum(len(part) for part in self._waiting) >= COPY_ROWS:
            self._copy()

    def _copy(self) -> None:
        import pyarrow as pa

        self._parts.append(pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks())
        self._waiting.clear()

    def table(self) -> pa.Table:
        """All rows in their order; forgets them."""
        import pyarrow as pa

        if self._waiting:
            self._copy()
        found = pa.concat_tables(self._parts).unify_dictionaries()
        self._parts.clear()
        if self._name == "causes" and self._columns is None:
            return in_order(found)
        return found.sort_by([(key, "ascending") for key in self._order]) if self._order else found


class Narrow(recording.Recording):
    """Some columns of some tables of a capture. KeyError for any other."""

    def __init__(self, feed: Feed, kept: dict[TableName, _Rows], keylog: Keylog | None):
        super().__init__(feed.name, feed.analysis, feed.broken, origins=feed.origins, keylog=keylog)
        del feed.analysis  # it holds what was remembered of all streams
        self._raw = {"issues": self._raw["issues"]}
        for name, rows in kept.items():
            self._arrow[name] = rows.table()
