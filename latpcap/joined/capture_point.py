"""One capture of a join: the columns by which its packets, requests and connections are found in another capture.

Reads a source once, as `latpcap.read` does, and keeps only the columns that are compared. Packets and causes are kept
in unnamed files (`spill`), so that memory does not grow with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill
from latpcap.bars import bar
from latpcap.joined.codes import Grade
from latpcap.lazy import np, pa
from latpcap.options import TableName
from latpcap.reading import drain, sources
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog
from latpcap.vocabulary import CAUSES, cause_names

if TYPE_CHECKING:
    from latpcap.arrays import Array

TAKE_BYTES = 4 << 20
"""Bytes read between two transfers of rows out of the engine."""
NEEDED: dict[TableName, tuple[str, ...]] = {
    "exchanges": ("exchange", "stream", "protocol", "method", "target", "status", "request_first_frame",
                  "request_last_frame", "response_last_frame", "request_bytes", "response_bytes", "latency_ms"),
    "streams": ("stream", "client", "client_port", "server", "server_port"),
}  # fmt: skip
"""Columns of the tables that are kept."""
CODES = {name: code for code, name in enumerate(CAUSES)}
"""Numbers of causes in the column `cause` of `Causes.rows`."""
WAITS = cause_names(trait="ends_with_ack")
"""Causes by which a sender waited for a packet of the other end."""
REPAIRS = cause_names("loss")
"""Causes of retransmissions."""
SYN, FIN, RST, ACK = 2, 1, 4, 16
FROM_LOW, FROM_CLIENT, TIMESTAMPS, SACK_PERMITTED, OPTIONS_CUT, HASHED = (1, 2, 4, 8, 16, 32)
"""Flags of the column `bits`: the sender is the stream's lower endpoint, the sender is the client, two TCP options that
the segment has, the snap length cut its options, and `hash` is known.
"""
UNUSED = ("window", "tos", "spare0", "spare1")


def layout() -> Any:
    """Return the type of one row of `_core.Analysis.packets`."""
    eight_bytes = [("time", "<i8"), ("frame", "<u8"), ("hash", "<u8")]
    four_bytes = [(name, "<u4") for name in ("stream", "seq", "ack", "len", "tsval", "tsecr", "ip_id")]
    two_bytes = [(name, "<u2") for name in ("flags", "window", "mss")]
    one_byte = [(name, "u1") for name in ("wscale", "ttl", "tos", "bits", "spare0", "spare1")]
    return np.dtype([*eight_bytes, *four_bytes, *two_bytes, *one_byte])


class Columns:
    """Rows of numbers by column, in the order in which they were added; long columns are in a file (`spill`)."""

    def __init__(self, dtypes: dict[str, Any]):
        self._filling = {name: spill.Column(dtype) for name, dtype in dtypes.items()}
        self._columns: dict[str, Array] = {}

    def add(self, rows: Any) -> None:
        """Append rows: a structured array, or columns by name."""
        for name, column in self._filling.items():
            column.add(rows[name])

    def end(self) -> None:
        """Make the columns readable; no row may be added afterwards."""
        self._columns = {name: column.array() for name, column in self._filling.items()}
        spill.release_memory()

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def row(self, row: int) -> dict[str, int]:
        """Return all columns of one row."""
        return {name: int(column[row]) for name, column in self._columns.items()}

    def of(self, rows: Array | slice) -> Rows:
        """Return a view of these rows, which copies a column when it is read."""
        return Rows(self, rows)


class Rows:
    """Some rows of `Columns`."""

    def __init__(self, of: Columns, rows: Array | slice):
        self._of, self._rows = of, rows

    def __getitem__(self, name: str) -> Array:
        return self._of[name][self._rows]

    def __len__(self) -> int:
        return len(self["flags"])


class Causes:
    """The causes of a capture: `rows` has a row of numbers per cause, `frames` the frames of evidence of all causes.

    The evidence of a row is `frames[begin : begin + size]`. Only waits and repairs keep theirs, as the other capture
    can prove or refute them.
    """

    def __init__(self) -> None:
        self.rows = Columns({"exchange": "i8", "start": "i8", "end": "i8", "from_frame": "u8", "to_frame": "u8",
                             "begin": "i8", "size": "u4", "cause": "i2", "grade": "i1", "by_client": "?"})  # fmt: skip
        self.frames: Array
        self._frames = spill.Column("u8")

    def add(self, table: pa.Table) -> None:
        """Append rows of the table of causes."""
        cause = coded(table, "cause", tuple(CAUSES))
        sizes = np.zeros(table.num_rows, np.uint32)
        wanted = np.flatnonzero(np.isin(cause, [CODES[name] for name in (*WAITS, *REPAIRS)]))
        begin = self._frames.count
        if len(wanted):
            evidence = arrays.lists(pa.table({"evidence": arrays.taken(table, "evidence", wanted)}), "evidence")
            size, frames = zip(*evidence, strict=True)
            sizes[wanted] = np.concatenate(size)
            self._frames.add(np.concatenate(frames))
        self.rows.add({
            "exchange": arrays.filled(table, "exchange", -1),
            **{name: arrays.numbers(table, name) for name in ("start", "end")},
            **{name: arrays.filled(table, name, 0) for name in ("from_frame", "to_frame")},
            "begin": begin + np.cumsum(sizes, dtype=np.int64) - sizes,
            "size": sizes,
            "cause": cause,
            "grade": coded(table, "grade", Grade.words()),
            "by_client": coded(table, "owner", ("client",)) == 0,
        })  # fmt: skip

    def end(self) -> None:
        """Make rows and evidence readable; no cause may be added afterwards."""
        self.rows.end()
        self.frames = self._frames.array()


def coded(table: pa.Table, column: str, names: tuple[str, ...]) -> Array:
    """Return a column of words as indices into `names`; -1 for other words."""
    codes, words = arrays.codes(table, column)
    index_of = np.array([*(names.index(word) if word in names else -1 for word in words), -1])
    return index_of[codes]


def _copy_columns(rows: pa.RecordBatchReader, columns: tuple[str, ...]) -> list[pa.RecordBatch]:
    """Copy these columns into memory or a file of `spill`."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, _schema_of(rows.schema, columns)) as writer:
        for batch in rows:
            writer.write_batch(batch.select(columns))
    content = spill.from_pieces("u1", [np.frombuffer(buffer.getvalue(), np.uint8)])
    return list(pa.ipc.open_stream(pa.py_buffer(content)))


def _schema_of(schema: pa.Schema, columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in columns])


class Point:
    """A capture of a join.

    `packets` has a row per TCP segment in file order; `client` has for each whether the stream's client sent it.
    `table` returns `exchanges` and `streams`; `causes` is filled where wanted. `first_ns` and `last_ns` are the
    instants of the first and the last frame.
    """

    def __init__(
        self, source: sources.Source, *, keylog: Keylog | None = None, causes: bool = True, progress: bool = False
    ):
        """Read the source to its end. CaptureError if it cannot be read."""
        feed = Feed(source, keylog)
        feed.analysis.watch_packets()
        kinds = layout()
        self.packets = Columns({name: kinds[name] for name in kinds.names if name not in UNUSED})
        self.causes = Causes()
        batches: dict[TableName, list[pa.RecordBatch]] = {name: [] for name in NEEDED}

        def take_rows() -> None:
            """Move the finished rows out of the engine, whose tables have five times the columns that are kept."""
            self.packets.add(np.frombuffer(feed.analysis.packets(), kinds))
            for name, rows in drain.taken(feed.analysis).items():
                if name in NEEDED:
                    batches[name] += _copy_columns(pa.RecordBatchReader.from_stream(rows), NEEDED[name])
                elif name == "causes" and causes:
                    self.causes.add(drain.table(rows))
            spill.release_memory()

        with bar(f"reading {feed.name}", feed.size, shown=None if progress else False) as shown:
            waiting = 0
            for size in feed.run(by_parts=True):
                shown.add(size)
                waiting += size
                if waiting >= TAKE_BYTES:
                    waiting = 0
                    take_rows()
        take_rows()
        self.source, self.keylog = source, keylog
        self.name, self.broken = feed.name, feed.broken
        self.first_ns, self.last_ns = (feed.analysis.first_ns or 0, feed.analysis.last_ns or 0)
        self.resolution_ns = 10.0 ** (9 - feed.analysis.digits)
        self.packets.end()
        self.causes.end()
        self._tables: dict[str, pa.Table] = {}
        for name, columns in NEEDED.items():
            schema = _schema_of(pa.RecordBatchReader.from_stream(feed.analysis.take(name)).schema, columns)
            table = pa.Table.from_batches(batches.pop(name), schema).unify_dictionaries()
            rises = spill.is_sorted(arrays.numbers(table, columns[0]))
            self._tables[name] = table if rises else table.sort_by(columns[0])
        self.client = self._from_client()

    def table(self, name: str) -> pa.Table:
        """Return `exchanges` or `streams`, sorted by number."""
        return self._tables[name]

    def _from_client(self) -> Array:
        """Return whether the client sent each packet. Roles may change while a stream is young: the last packet
        decides.
        """
        rows, bits = self.packets["stream"], self.packets["bits"]
        low_is_client = np.zeros(int(rows.max()) + 1 if len(rows) else 0, bool)
        low_is_client[rows] = ((bits & FROM_LOW) != 0) == ((bits & FROM_CLIENT) != 0)  # the last packet wins
        return ((bits & FROM_LOW) != 0) == low_is_client[rows]

    def rows_of(self, frames: Array) -> Array:
        """Return the row of `packets` of each frame; -1 for a frame without one."""
        all_frames = self.packets["frame"]
        if not len(all_frames):
            return np.full(len(frames), -1)
        rows = np.minimum(np.searchsorted(all_frames, frames), len(all_frames) - 1)
        return np.where(all_frames[rows] == frames, rows, -1)


__all__ = [
    "ACK",
    "CODES",
    "FIN",
    "HASHED",
    "OPTIONS_CUT",
    "REPAIRS",
    "RST",
    "SACK_PERMITTED",
    "SYN",
    "TIMESTAMPS",
    "WAITS",
    "Columns",
    "Point",
    "Rows",
]
