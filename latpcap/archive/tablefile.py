"""How does a table become a Parquet file? Row groups as rows come in, so that no table is ever held whole.

zstd; dictionaries only for words and for numbers of few values, differences (DELTA_BINARY_PACKED) for instants and
frame numbers, which rise. Measured on 283,258 rows of `events` (benchmarks/README.md): a dictionary on a column of
mostly different values costs three times its time and twice its space; differences of `seq` and `ack` do not pay, as
streams alternate.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP = 1 << 16
"""Rows that are read or passed over together: large enough to pack well, small enough to find a moment or a stream."""
_FEW = ("stream", "sport", "dport", "client_port", "server_port", "len", "window", "bytes_in_flight", "push_bytes_sent",
        "mss", "wscale", "status", "index", "capture")  # fmt: skip
_RISING = ("frame", "time", "acks_frame", "release_frame", "exchange", "connect", "push", "gap", "start", "end",
           "from_frame", "to_frame",
           "request_first_frame", "request_last_frame", "request_end", "response_first_frame", "response_last_frame",
           "response_start", "first_frame", "last_frame")  # fmt: skip


_PIECES = 64
"""So many pieces of rows wait at most: pieces of small captures are mostly room that nothing fills."""


def _joined(pieces: list[pa.Table]) -> pa.Table:
    """One dictionary for all: the writer gives up dictionaries when the next piece brings another one."""
    import pyarrow as pa

    return pa.concat_tables(pieces).unify_dictionaries()


class TableFile:
    """A Parquet file of one table that grows row group by row group."""

    def __init__(self, path: Path):
        self.path = path
        self.rows = 0
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        """The next rows, in pieces of any size. Row groups do not depend on how the rows were cut."""
        self._open(table.schema)
        self.rows += table.num_rows
        self._waiting_rows += table.num_rows
        if table.num_rows:
            self._waiting.append(table)
        if len(self._waiting) >= _PIECES and self._waiting_rows < ROW_GROUP:
            self._waiting = [_joined(self._waiting).combine_chunks()]
        if self._waiting_rows >= ROW_GROUP:
            self._flush(self._waiting_rows // ROW_GROUP * ROW_GROUP)

    def _open(self, schema: pa.Schema) -> None:
        if self._writer is not None:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        words = [f.name for f in schema if pa.types.is_dictionary(f.type) or pa.types.is_string(f.type)]
        rising = {f.name: "DELTA_BINARY_PACKED" for f in schema if f.name in _RISING}
        self._writer = pq.ParquetWriter(
            str(self.path),
            schema,
            version="2.6",
            compression="zstd",
            compression_level=1,
            use_dictionary=[*words, *(n for n in schema.names if n in _FEW)],
            column_encoding=rising,
            write_page_checksum=True,
        )

    def _flush(self, rows: int) -> None:
        whole = _joined(self._waiting)
        self._writer.write_table(whole[:rows], row_group_size=ROW_GROUP)
        self._waiting_rows = whole.num_rows - rows
        self._waiting = [whole[rows:]] if self._waiting_rows else []

    def close(self, metadata: dict[str, str]) -> None:
        """Writes what waits and the file's end. `metadata` goes into the file's key-value metadata."""
        if self._waiting:
            self._flush(self._waiting_rows)
        if self._writer is not None:
            self._writer.add_key_value_metadata(metadata)
            self._writer.close()
            self._writer = None

    def drop(self) -> None:
        """Lets go of a file that is not wanted any more; whatever cannot be written is no matter now."""
        self._waiting = []
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):
                writer.close()
