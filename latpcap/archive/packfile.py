"""How do the rows of a pack become its files? Tables grow side by side; the manifest is written last.

A file of a table that cannot be written is an OutputError that names it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from latpcap import _core
from latpcap.archive import checked, layout
from latpcap.archive.model import Manifest, Marker, Options
from latpcap.archive.output import Output
from latpcap.archive.tablefile import TableFile
from latpcap.errors import OutputError
from latpcap.format import phrase
from latpcap.reading import places

if TYPE_CHECKING:
    import pyarrow as pa


class PackFiles:
    """The files of one pack, in a scratch folder until they are whole."""

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

    def add(self, name: str, table: pa.Table, of: str) -> None:
        """The next rows of a table, with their captures; `of` is what an error names beside the table."""
        with self._writing(f"{name} of {of}"):
            if name not in self._files:
                self._files[name] = TableFile(self._folder / f"{name}.parquet")
            self._files[name].add(table)

    def put(self, pack: str, markers: Sequence[Marker], options: dict[str, str], replaces: Sequence[str] = ()) -> None:
        """Gives all files their places, and writes the manifest that vouches for them."""
        import pyarrow as pa

        if self.rows:
            table = pa.Table.from_pylist(self.rows, schema=layout.with_capture(layout.captures_schema()))
            self.add("captures", table, pack)
        metadata = self._metadata(options)
        told: dict[str, Any] = {}
        for name, file in self._files.items():
            with self._writing(f"{name} of {pack}"):
                file.close(metadata)
                told[layout.file_of(name, pack)] = checked.digests(file.path)
        for name, file in self._files.items():
            self._output.put(file.path, layout.file_of(name, pack))
        manifest = Manifest(pack, _core.SCHEMA_VERSION, told, tuple(markers), tuple(replaces))
        self._output.write(layout.manifest_of(pack), manifest.to_bytes(layout.LAYOUT))

    def _metadata(self, options: dict[str, str]) -> dict[str, str]:
        """Where do these rows come from? In every file, so that it can be read alone."""
        inputs = [
            dict(zip(("file", "size", "sha256"), of, strict=True))
            for row in self.rows
            for of in zip(*(row[c] for c in ("files", "sizes", "sha256")), strict=True)
        ]
        return {
            **options,
            "latpcap.captures": json.dumps([row["capture"] for row in self.rows]),
            "latpcap.inputs": json.dumps(inputs),
            "latpcap.damaged": json.dumps([row["capture"] for row in self.rows if row["damaged"]]),
        }

    def _writing(self, what: str) -> _Writing:
        return _Writing(f"{places.bare(self._output.place)}: {what}")


def told(options: Options) -> dict[str, str]:
    """How were these rows made? For the files' metadata."""
    return {
        "latpcap.schema": options.schema,
        "latpcap.version": options.version,
        "latpcap.options": json.dumps(options.told()),
    }


class _Writing:
    """Turns a system error while a table is written into one sentence."""

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, OSError):
            raise OutputError(f"{self._what} cannot be written ({phrase(problem)})") from None


def of_capture(table: pa.Table, capture: str) -> pa.Table:
    """The rows with a column that says whose they are."""
    import pyarrow as pa

    rows = table.num_rows
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
    words = pa.DictionaryArray.from_arrays(indices, pa.array([capture], pa.string()))
    return table.append_column(layout.with_capture(pa.schema([])).field(0), words)
