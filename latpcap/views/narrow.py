"""A capture read for a report over its exchanges: of all its tables the columns that the report needs.

Nothing else of the growing tables is kept, so that the latencies of a long capture take a fraction of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from latpcap import longarrays
from latpcap.bars import bar
from latpcap.reading import sources
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog
from latpcap.views import recording

if TYPE_CHECKING:
    import pyarrow as pa

TAKE_BYTES = 1 << 20
"""Rows are taken out of the engine after so many bytes: most of them are dropped."""


def read(
    source: sources.Source, columns: Iterable[str], *, keylog: Keylog | None = None, progress: bool = False
) -> Narrow:
    """Reads a capture as `latpcap.read` does; its `exchanges` have these columns, and its other tables no rows but for
    `issues`.
    """
    feed = Feed(source, keylog)
    rows = _Rows(columns)
    with bar(f"reading {feed.name}", feed.size, shown=None if progress else False) as shown:
        waiting = 0
        for size in feed.run(by_parts=True):
            shown.add(size)
            waiting += size
            if waiting >= TAKE_BYTES or not size:
                rows.take(feed)
                waiting = 0
    rows.take(feed)
    found = Narrow(feed, rows, keylog)
    longarrays.give_back()
    return found


class _Rows:
    """The columns of `exchanges` that are kept."""

    def __init__(self, columns: Iterable[str]):
        self._columns = list(dict.fromkeys(["exchange", *columns]))
        self._parts: list[pa.Table] = []

    def take(self, feed: Feed) -> None:
        """The rows that are finished."""
        import pyarrow as pa

        for name in recording.TABLES:
            if name == "exchanges":
                part = pa.RecordBatchReader.from_stream(feed.analysis.take(name)).read_all()
                if part.num_rows or not self._parts:
                    self._parts.append(part.select(self._columns))
            elif name != "issues":
                feed.analysis.take(name)

    def table(self) -> pa.Table:
        """All rows, by their numbers."""
        import pyarrow as pa

        found = pa.concat_tables(self._parts).unify_dictionaries()
        self._parts.clear()
        return found.sort_by("exchange")


class Narrow(recording.Recording):
    """Some columns of a capture's exchanges."""

    def __init__(self, feed: Feed, rows: _Rows, keylog: Keylog | None):
        super().__init__(feed.name, feed.analysis, feed.broken, origins=feed.origins, keylog=keylog)
        del feed.analysis  # it holds what was remembered of all streams
        self._arrow["exchanges"] = rows.table()
