"""One capture as a point on the way: what recognises its packets elsewhere, its requests and connections.

Reads a source once, as `latpcap.read` does, and drops the table of events on the way. Knows nothing of other captures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap import _core
from latpcap.bars import bar
from latpcap.options import TableName
from latpcap.reading import sources
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

TAKE_BYTES = 4 << 20
"""Rows are taken out of the engine after so many bytes."""
NEEDED: dict[TableName, tuple[str, ...]] = {
    "exchanges": ("exchange", "stream", "protocol", "method", "target", "status", "request_first_frame",
                  "request_last_frame", "response_last_frame", "request_bytes", "response_bytes", "latency_ms"),
    "streams": ("stream", "client", "client_port", "server", "server_port"),
    "causes": ("exchange", "start", "end", "cause", "owner", "from_frame", "to_frame", "evidence", "grade"),
}  # fmt: skip
"""Columns of the tables that are read."""
DROPPED = tuple(name for name in _core.TABLES if name not in NEEDED)
SYN, FIN, RST, ACK = 2, 1, 4, 16
FROM_LOW, FROM_CLIENT, TIMESTAMPS, SACK_PERMITTED, OPTIONS_CUT, HASHED = (1, 2, 4, 8, 16, 32)


def layout() -> Any:
    """One row of `_core.Analysis.packets`."""
    import numpy as np

    wide = [("time", "<i8"), ("frame", "<u8"), ("hash", "<u8")]
    words = [(name, "<u4") for name in ("stream", "seq", "ack", "len", "tsval", "tsecr", "ip_id")]
    halves = [(name, "<u2") for name in ("flags", "window", "mss")]
    small = [(name, "u1") for name in ("wscale", "ttl", "tos", "bits", "spare0", "spare1")]
    return np.dtype([*wide, *words, *halves, *small])


def _only(schema: pa.Schema, columns: tuple[str, ...]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([schema.field(name) for name in columns])


class Point:
    """A capture: `packets` (a row a TCP segment, in file order), `client` (was it sent by the stream's client?),
    the tables `exchanges`, `streams` and, where they are wanted, `causes`, and when it ran."""

    def __init__(
        self, source: sources.Source, *, keylog: Keylog | None = None, causes: bool = True, progress: bool = False
    ):
        import numpy as np
        import pyarrow as pa

        feed = Feed(source, keylog)
        dropped = DROPPED if causes else (*DROPPED, "causes")
        feed.analysis.watch_packets()
        parts: list[bytes] = []
        with bar(f"reading {feed.name}", feed.size, shown=None if progress else False) as shown:
            waiting = 0
            for size in feed.run(by_parts=True):
                shown.add(size)
                waiting += size
                if waiting >= TAKE_BYTES:
                    waiting = 0
                    for name in dropped:
                        feed.analysis.take(name)
                    parts.append(feed.analysis.packets())
        parts.append(feed.analysis.packets())
        self.source, self.keylog = source, keylog
        self.name, self.broken = feed.name, feed.broken
        self.first_ns, self.last_ns = (feed.analysis.first_ns or 0, feed.analysis.last_ns or 0)
        self.resolution_ns = 10.0 ** (9 - feed.analysis.digits)
        self.packets = np.frombuffer(b"".join(parts), layout())
        parts.clear()
        self._tables: dict[str, pa.Table] = {}
        for name, columns in NEEDED.items():
            if name == "causes" and not causes:
                continue
            rows = pa.RecordBatchReader.from_stream(feed.analysis.take(name))
            table = pa.Table.from_batches([batch.select(columns) for batch in rows], _only(rows.schema, columns))
            order = {"exchanges": "exchange", "streams": "stream"}.get(name)
            self._tables[name] = table if order is None else table.unify_dictionaries().sort_by(order)
        self.client = self._from_client()

    def table(self, name: str) -> pa.Table:
        """One of `exchanges`, `streams` (each by its number) and `causes`."""
        return self._tables[name]

    def _from_client(self) -> Array:
        """Roles may change while a stream is young: those of its last packet count."""
        import numpy as np

        rows, bits = self.packets["stream"], self.packets["bits"]
        low_is_client = np.zeros(int(rows.max()) + 1 if len(rows) else 0, bool)
        low_is_client[rows] = ((bits & FROM_LOW) != 0) == ((bits & FROM_CLIENT) != 0)  # of each stream the last one
        from_client: Array = ((bits & FROM_LOW) != 0) == low_is_client[rows]
        return from_client

    def rows_of(self, frames: Array) -> Array:
        """The row of `packets` of each frame; -1 where it has none."""
        import numpy as np

        have = self.packets["frame"]
        if not len(have):
            return np.full(len(frames), -1)
        place = np.minimum(np.searchsorted(have, frames), len(have) - 1)
        return np.where(have[place] == frames, place, -1)


__all__ = ["ACK", "FIN", "HASHED", "OPTIONS_CUT", "RST", "SACK_PERMITTED", "SYN", "TIMESTAMPS", "Point"]
