"""Writes the files of a pack: row groups as rows come, so that no table is held in memory; the manifest last.

Parquet with zstd. Dictionaries are used for words and for numbers with few distinct values, differences
(DELTA_BINARY_PACKED) for instants and frame numbers, which ascend. Measured on 283,258 rows of `events`
(benchmarks/README.md): a dictionary for mostly distinct values triples the time and doubles the space; differences of
`seq` and `ack` do not pay, since streams alternate. An OutputError names the table that cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from latpcap import _core
from latpcap.archive import checked, layout
from latpcap.archive.model import Manifest, Marker, Options
from latpcap.archive.output import Output
from latpcap.errors import OutputError
from latpcap.format import phrase
from latpcap.lazy import pa, pq
from latpcap.reading import locations

ROW_GROUP = 1 << 16
"""Rows per row group: large enough to compress well, small enough to skip most of a file for one time or stream."""
_DICTIONARY_COLUMNS = (
    "stream",
    "sport",
    "dport",
    "client_port",
    "server_port",
    "len",
    "window",
    "bytes_in_flight",
    "push_bytes_sent",
    "mss",
    "wscale",
    "status",
    "index",
    "capture",
)
_ASCENDING = ("frame", "time", "acks_frame", "release_frame", "exchange", "connect", "push", "gap", "start", "end",
           "from_frame", "to_frame",
           "request_first_frame", "request_last_frame", "request_end", "response_first_frame", "response_last_frame",
           "response_start", "first_frame", "last_frame")  # fmt: skip


_MAX_PIECES = 64
"""Upper bound on the batches that wait for a row group; many tiny ones take more memory than their rows."""


def _joined(pieces: list[pa.Table]) -> pa.Table:
    """Return one table with one dictionary per column: the writer stops using dictionaries when one changes."""
    return pa.concat_tables(pieces).unify_dictionaries()


class TableFile:
    """A Parquet file of one table that grows by row groups."""

    def __init__(self, path: Path):
        self.path = path
        self.rows = 0
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        """Append rows, in batches of any size; row groups do not depend on the batches."""
        self._open(table.schema)
        self.rows += table.num_rows
        self._waiting_rows += table.num_rows
        if table.num_rows:
            self._waiting.append(table)
        if len(self._waiting) >= _MAX_PIECES and self._waiting_rows < ROW_GROUP:
            self._waiting = [_joined(self._waiting).combine_chunks()]
        if self._waiting_rows >= ROW_GROUP:
            self._flush(self._waiting_rows // ROW_GROUP * ROW_GROUP)

    def _open(self, schema: pa.Schema) -> None:
        if self._writer is not None:
            return
        text_columns = [f.name for f in schema if pa.types.is_dictionary(f.type) or pa.types.is_string(f.type)]
        ascending = {f.name: "DELTA_BINARY_PACKED" for f in schema if f.name in _ASCENDING}
        self._writer = pq.ParquetWriter(
            str(self.path),
            schema,
            version="2.6",
            compression="zstd",
            compression_level=1,
            use_dictionary=[*text_columns, *(name for name in schema.names if name in _DICTIONARY_COLUMNS)],
            column_encoding=ascending,
            write_page_checksum=True,
        )

    def _flush(self, rows: int) -> None:
        joined = _joined(self._waiting)
        self._writer.write_table(joined[:rows], row_group_size=ROW_GROUP)
        self._waiting_rows = joined.num_rows - rows
        self._waiting = [joined[rows:]] if self._waiting_rows else []

    def close(self, metadata: dict[str, str]) -> None:
        """Write the remaining rows and the end of the file, with `metadata` as its key-value metadata."""
        if self._waiting:
            self._flush(self._waiting_rows)
        if self._writer is not None:
            self._writer.add_key_value_metadata(metadata)
            self._writer.close()
            self._writer = None

    def drop(self) -> None:
        """Close an unwanted file; errors of writing are ignored."""
        self._waiting = []
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):
                writer.close()


class PackFiles:
    """The files of one pack, in a scratch folder until they are complete."""

    def __init__(self, output: Output, names: Sequence[str] = layout.TABLES):
        self.rows: list[dict[str, Any]] = []
        """The rows of `captures`."""
        self._output, self._names = output, names
        self._files: dict[str, TableFile] = {}
        self._stack = ExitStack()

    def __enter__(self) -> PackFiles:
        self._folder = self._stack.enter_context(self._output.scratch())
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.drop()
        self._stack.close()

    def add(self, name: str, table: pa.Table, capture: str) -> None:
        """Append rows of a table; errors name the table and the capture."""
        with self._writing(f"{name} of {capture}"):
            if name not in self._files:
                self._files[name] = TableFile(self._folder / f"{name}.parquet")
            self._files[name].add(table)

    def put(self, pack: str, markers: Sequence[Marker], options: dict[str, str], replaces: Sequence[str] = ()) -> None:
        """Move all files to their places, and write the manifest."""
        if self.rows:
            table = pa.Table.from_pylist(self.rows, schema=layout.with_capture(layout.captures_schema()))
            self.add("captures", table, pack)
        metadata = self._metadata(options)
        digests: dict[str, Any] = {}
        for name, file in self._files.items():
            with self._writing(f"{name} of {pack}"):
                file.close(metadata)
                digests[layout.file_of(name, pack)] = checked.digests(file.path)
        for name, file in self._files.items():
            self._output.put(file.path, layout.file_of(name, pack))
        manifest = Manifest(pack, _core.SCHEMA_VERSION, digests, tuple(markers), tuple(replaces))
        self._output.write(layout.manifest_of(pack), manifest.to_bytes(layout.LAYOUT))

    def _metadata(self, options: dict[str, str]) -> dict[str, str]:
        """Return the origin of the rows, for every file, so that it can be read alone."""
        inputs = [
            dict(zip(("file", "size", "sha256"), file_values, strict=True))
            for row in self.rows
            for file_values in zip(*(row[column] for column in ("files", "sizes", "sha256")), strict=True)
        ]
        return {
            **options,
            "latpcap.captures": json.dumps([row["capture"] for row in self.rows]),
            "latpcap.inputs": json.dumps(inputs),
            "latpcap.damaged": json.dumps([row["capture"] for row in self.rows if row["damaged"]]),
        }

    def _writing(self, file: str) -> _Writing:
        return _Writing(f"{locations.bare(self._output.location)}: {file}")


def file_metadata(options: Options) -> dict[str, str]:
    """Return how rows were made, for the metadata of files."""
    return {
        "latpcap.schema": options.schema,
        "latpcap.version": options.version,
        "latpcap.options": json.dumps(options.to_dict()),
    }


class _Writing:
    """Turns an OSError while a table is written into an OutputError."""

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, OSError):
            raise OutputError(f"{self._what} cannot be written ({phrase(problem)})") from None


def of_capture(table: pa.Table, capture: str) -> pa.Table:
    """Return the rows with a column that names their capture."""
    rows = table.num_rows
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
    names = pa.DictionaryArray.from_arrays(indices, pa.array([capture], pa.string()))
    return table.append_column(layout.with_capture(pa.schema([])).field(0), names)
