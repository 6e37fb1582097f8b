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
from latpcap.vocabulary import cause_names

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
WAITS = cause_names(trait="ends_with_ack")
"""Causes by which a sender waited for a packet of the other side's."""
REPAIRS = cause_names("loss")
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


def _copied(rows: pa.RecordBatchReader, columns: tuple[str, ...]) -> list[pa.RecordBatch]:
    """These columns, copied: one that is selected keeps all columns of the engine's batch in memory."""
    import pyarrow as pa

    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, _only(rows.schema, columns)) as writer:
        for batch in rows:
            writer.write_batch(_judged(batch.select(columns)))
    return list(pa.ipc.open_stream(out.getvalue()))


def _judged(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of causes without the evidence of those that the other capture cannot prove or refute."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "evidence" not in batch.schema.names:
        return batch
    evidence = batch["evidence"]
    wanted = pc.is_in(batch["cause"].cast(pa.string()), value_set=pa.array((*WAITS, *REPAIRS)))
    kept = pc.if_else(wanted, evidence, pa.scalar(None, evidence.type))
    return batch.set_column(batch.schema.get_field_index("evidence"), batch.schema.field("evidence"), kept)


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
        feed.analysis.watch_packets()
        wanted = {name: columns for name, columns in NEEDED.items() if causes or name != "causes"}
        packets = bytearray()
        batches: dict[TableName, list[pa.RecordBatch]] = {name: [] for name in wanted}

        def taken() -> None:
            """What is not needed is not held until the end: the tables have five times the columns that are kept."""
            packets.extend(feed.analysis.packets())
            for name in _core.TABLES:
                rows = feed.analysis.take(name)
                if name in wanted:
                    batches[name] += _copied(pa.RecordBatchReader.from_stream(rows), wanted[name])

        with bar(f"reading {feed.name}", feed.size, shown=None if progress else False) as shown:
            waiting = 0
            for size in feed.run(by_parts=True):
                shown.add(size)
                waiting += size
                if waiting >= TAKE_BYTES:
                    waiting = 0
                    taken()
        taken()
        self.source, self.keylog = source, keylog
        self.name, self.broken = feed.name, feed.broken
        self.first_ns, self.last_ns = (feed.analysis.first_ns or 0, feed.analysis.last_ns or 0)
        self.resolution_ns = 10.0 ** (9 - feed.analysis.digits)
        self.packets = np.frombuffer(packets, layout())
        self._tables: dict[str, pa.Table] = {}
        for name, columns in wanted.items():
            schema = _only(pa.RecordBatchReader.from_stream(feed.analysis.take(name)).schema, columns)
            table = pa.Table.from_batches(batches.pop(name), schema).unify_dictionaries()
            order = {"exchanges": "exchange", "streams": "stream"}.get(name)
            self._tables[name] = table if order is None else table.sort_by(order)
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


__all__ = [
    "ACK",
    "FIN",
    "HASHED",
    "OPTIONS_CUT",
    "REPAIRS",
    "RST",
    "SACK_PERMITTED",
    "SYN",
    "TIMESTAMPS",
    "WAITS",
    "Point",
]
