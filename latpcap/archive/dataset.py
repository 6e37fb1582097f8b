"""What lies in a folder of results? The captures that are whole, and their tables as data sets."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from latpcap import _core
from latpcap.archive import layout, places
from latpcap.archive.model import Failure, Marker
from latpcap.archive.output import Output
from latpcap.errors import CaptureError, OutputError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class Stored:
    """The results at a place. A capture without its row in `captures` is not whole, and is not seen."""

    def __init__(self, place: str):
        self._output = Output(place)
        self.place = self._output.place
        self.name = PurePath(places.bare(self.place).rstrip("/")).name or self.place
        try:
            self._present = self._output.files("captures")
        except OutputError as problem:
            raise CaptureError(
                places.bare(self.place), str(problem).removeprefix(f"{places.bare(self.place)}: ")
            ) from None
        if not self._present and not self._output.files(layout.TASKS):
            raise CaptureError(places.bare(self.place), "holds no results of latpcap batch")

    @cached_property
    def captures(self) -> list[dict[str, Any]]:
        """The rows of `captures`, in the order of their first packets; instants as pandas has them."""
        names = [name.split("/")[1].partition("=")[2] for name in self._present]
        rows = self.dataset("captures", names).to_table().to_pylist() if names else []
        return sorted(rows, key=lambda r: (r["first"] is None, r["first"] or 0, r["capture"]))

    @cached_property
    def failed(self) -> list[Failure]:
        """What failed, as the markers of the tasks say."""
        found: list[Failure] = []
        for name in self._output.files(layout.TASKS):
            try:
                found += Marker.of(self._output.read(name)).outcome.failures
            except (ValueError, KeyError, TypeError):
                continue
        return sorted(found, key=lambda f: f.file)

    def dataset(self, table: str, captures: list[str]) -> ds.Dataset:
        """This table's files of these captures as a data set."""
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.fs as fs

        kind = ds.ParquetFileFormat()
        partitions = ds.partitioning(pa.schema([("capture", pa.string())]), flavor="hive")
        if places.is_url(self.place):
            filesystem, root = places.resolve(self.place)
        else:
            filesystem, root = fs.LocalFileSystem(), self.place
        paths = [f"{root.rstrip('/')}/{layout.file_of(table, capture)}" for capture in captures]
        if table == "events":
            held = {os.path.basename(os.path.dirname(name)).partition("=")[2] for name in self._output.files("events")}
            paths = [p for p, c in zip(paths, captures, strict=True) if c in held]
        schema = self.schema(table).append(pa.field("capture", pa.string()))
        if not paths:
            return ds.dataset(schema.empty_table())
        return ds.dataset(paths, schema, kind, filesystem, partitions, root)

    @staticmethod
    def schema(table: str) -> pa.Schema:
        """Which columns does this table have, without the partition's? As this version of latpcap writes it."""
        import pyarrow as pa

        if table == "captures":
            return layout.captures_schema()
        engine = _core.Analysis()
        engine.finish()
        schema = pa.table(engine.take(table)).schema
        return layout.issues_schema(schema) if table == "issues" else schema
