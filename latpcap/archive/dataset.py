"""`Stored`: the complete captures in a folder of results, and their tables as data sets.

All bytes are compared with their checksums when they are read. A pack that cannot be read is left out and listed in
`failed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import Any

from latpcap import _core, arrays
from latpcap.archive import checked, layout, plan
from latpcap.archive.model import Failure, Manifest
from latpcap.archive.output import Output
from latpcap.errors import CaptureError, OutputError
from latpcap.lazy import ds, fs, pa, pc, pq
from latpcap.reading import locations
from latpcap.tables import fields

_AGAIN = "run the same batch again"


class Stored:
    """The results at a location. Packs without a manifest are incomplete and ignored."""

    def __init__(self, location: str):
        """Find the packs at a location. CaptureError where there are no results that this version reads."""
        output = Output(location)
        where = locations.bare(output.location)
        try:
            stored_files = plan.find_stored(output)
        except OutputError as problem:
            raise CaptureError(where, str(problem).removeprefix(f"{where}: ")) from None
        if stored_files.old:
            raise CaptureError(where, "holds results of another version of latpcap; run batch into another folder")
        if not stored_files.whole and not stored_files.broken and not stored_files.damaged:
            raise CaptureError(where, "holds no results of latpcap batch")
        self._take(output, stored_files.whole)
        for name, reason in stored_files.damaged.items():
            self._lost.append(self._failure(layout.manifest_of(name), f"{reason}; {checked.AGAIN}"))
        for name, (_, reason) in stored_files.broken.items():
            self._lost.append(self._failure(layout.manifest_of(name), f"{reason}; {_AGAIN}"))
        for manifest in list(self._packs.values()):
            if manifest.schema != _core.SCHEMA_VERSION:
                reason = f"has tables of version {manifest.schema}, this latpcap reads {_core.SCHEMA_VERSION}"
                where = locations.bare(locations.join(self.location, layout.manifest_of(manifest.pack)))
                self._lose(manifest.pack, where, f"{reason}; {_AGAIN}")
        if self._lost and not self._packs:
            first, others = self._lost[0], len(self._lost) - 1
            raise CaptureError(first.file, first.reason + (f" ({others:,} more like it)" if others else ""))

    @classmethod
    def of(cls, output: Output, packs: dict[str, Manifest]) -> Stored:
        """Return the results limited to these packs."""
        self = cls.__new__(cls)
        self._take(output, packs)
        return self

    def _take(self, output: Output, packs: dict[str, Manifest]) -> None:
        self._output = output
        self.location = output.location
        self.name = PurePath(locations.bare(self.location).rstrip("/")).name or self.location
        self._packs = dict(packs)
        self._lost: list[Failure] = []

    @property
    def whole(self) -> tuple[Output, dict[str, Manifest]]:
        """The location of the results, and the packs that can be read."""
        return self._output, self._packs

    def _failure(self, relative: str, reason: str) -> Failure:
        return Failure(locations.bare(locations.join(self.location, relative)), reason)

    def lose(self, problem: checked.DamagedError) -> None:
        """Leave out the pack that an error names, and list it in `failed`."""
        where = problem.file if problem.offset is None else f"{problem.file}: byte {problem.offset:,}"
        self._lose(problem.pack, where, problem.reason)

    def _lose(self, pack: str, where: str, reason: str) -> None:
        self._packs.pop(pack, None)
        self.__dict__.pop("_pack_of", None)
        self.__dict__.pop("_files", None)
        if "captures" in self.__dict__:
            self.captures = [row for row in self.captures if row["capture"] in self._pack_of]
        self._lost.append(Failure(where, reason))

    @cached_property
    def _pack_of(self) -> dict[str, str]:
        """The pack of each capture."""
        return {capture: name for name, manifest in self._packs.items() for capture in manifest.captures}

    @cached_property
    def captures(self) -> list[dict[str, Any]]:
        """The rows of `captures`, in the order of their first packets, then of their files; instants in ns since 1970.

        Not in the order of their names here: these have a hash of the file's whole location.
        """
        while True:
            try:
                table = self.read("captures", list(self._pack_of))
                for name in ("first", "last"):  # timestamps with ns would need pandas
                    table = table.set_column(table.schema.get_field_index(name), name, table[name].cast("int64"))
                rows = table.to_pylist()
            except checked.DamagedError as problem:
                self.lose(problem)
                continue
            return sorted(rows, key=lambda row: (row["first"] is None, row["first"] or 0, row["files"]))

    def check(self) -> None:
        """Read every file, and leave out the packs that are damaged."""
        for manifest in list(self._packs.values()):
            for name in manifest.files:
                try:
                    with self._files.open_input_file(self._path(name)) as file:
                        while file.read(16 * checked.BLOCK_BYTES):
                            pass
                except checked.DamagedError as problem:
                    self.lose(problem)
                    break

    @property
    def failed(self) -> list[Failure]:
        """Failures in the manifests, and files of the results that cannot be read."""
        markers = [marker for manifest in self._packs.values() for marker in manifest.markers]
        failures = [failure for marker in markers for failure in marker.outcome.failures]
        return sorted([*failures, *self._lost], key=lambda f: f.file)

    @cached_property
    def _root(self) -> tuple[Any, str]:
        if locations.is_url(self.location):
            return locations.resolve(self.location)
        return fs.LocalFileSystem(), self.location

    def _path(self, relative: str) -> str:
        return f"{self._root[1].rstrip('/')}/{relative}"

    @cached_property
    def _files(self) -> Any:
        """The file system of the results, which checks files as they are read."""
        checksums = {
            self._path(name): (digest, locations.bare(locations.join(self.location, name)), manifest.pack)
            for manifest in self._packs.values()
            for name, digest in manifest.files.items()
        }
        return fs.PyFileSystem(checked.Checking(self._root[0], checksums))

    def read(self, table: str, captures: Iterable[str]) -> pa.Table:
        """Return a table's rows of these captures, read at once. (A data set would import pandas.)"""
        return pa.concat_tables([self.empty(table), *self.pieces(table, captures)])

    def pieces(self, table: str, captures: Iterable[str], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows pack by pack, with these columns (None: all) and `capture`."""
        schema, capture_names = self.schema(table), list(captures)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in ("capture", *columns)])
        paths, pack_names = self._where(table, capture_names)
        has_all_captures = len(capture_names) == sum(len(self._packs[pack].captures) for pack in pack_names)
        for path in paths:
            with self._files.open_input_file(path) as file:
                rows = pq.ParquetFile(file).read(schema.names).cast(schema)
            yield rows if has_all_captures else _rows_of_captures(rows, capture_names)

    def events(self, capture: str, frames: Sequence[int]) -> pa.Table:
        """Return events of these frames of a capture, in order; none where events were not stored."""
        schema = self.schema("events")
        pieces = [self.empty("events")]
        for path in self._where("events", [capture])[0]:
            with self._files.open_input_file(path) as opened:
                file = pq.ParquetFile(opened)
                column = file.schema_arrow.names.index("frame")
                for number in range(file.num_row_groups):
                    bounds = file.metadata.row_group(number).column(column).statistics
                    if bounds is None or any(bounds.min <= frame <= bounds.max for frame in frames):
                        rows = _rows_of_captures(file.read_row_group(number).cast(schema), [capture])
                        frame_set = arrays.integers(frames, str(rows["frame"].type))
                        pieces.append(rows.filter(pc.is_in(rows["frame"], value_set=frame_set)))
        return pa.concat_tables(pieces).unify_dictionaries().sort_by("frame")

    def _where(self, table: str, capture_names: list[str]) -> tuple[list[str], dict[str, None]]:
        """Return the files with rows of these captures, and the packs that have the captures."""
        pack_names = dict.fromkeys(self._pack_of[capture] for capture in capture_names if capture in self._pack_of)
        names = [layout.file_of(table, pack) for pack in pack_names]
        stored = [name for name, pack in zip(names, pack_names, strict=True) if name in self._packs[pack].files]
        return [self._path(name) for name in stored], pack_names

    def dataset(self, table: str, captures: Iterable[str]) -> ds.Dataset:
        """Return a table's rows of these captures as a data set."""
        schema, parquet, capture_names = self.schema(table), ds.ParquetFileFormat(), list(captures)
        paths, pack_names = self._where(table, capture_names)
        if not paths:
            return ds.dataset(self.empty(table))
        pieces = [parquet.make_fragment(path, self._files) for path in paths]
        rows = ds.FileSystemDataset(pieces, schema, parquet, self._files)
        if len(capture_names) == sum(len(self._packs[pack].captures) for pack in pack_names):
            return rows
        return rows.filter(ds.field("capture").isin(pa.array(capture_names, pa.string())))

    @classmethod
    def empty(cls, table: str) -> pa.Table:
        """Return a table without rows. (`Schema.empty_table` imports pandas.)"""
        return pa.Table.from_batches([], cls.schema(table))

    @staticmethod
    def schema(table: str) -> pa.Schema:
        """Return the columns of a table, as this version of latpcap writes it."""
        if table == "captures":
            return layout.with_capture(layout.captures_schema())
        schema = fields(table)
        return layout.with_capture(layout.issues_schema(schema) if table == "issues" else schema)


def _rows_of_captures(table: pa.Table, captures: list[str]) -> pa.Table:
    """Return the rows of these captures."""
    names = arrays.strings(captures)
    masks = [pc.take(pc.is_in(chunk.dictionary, value_set=names), chunk.indices) for chunk in table["capture"].chunks]
    return table.filter(pa.chunked_array(masks, pa.bool_()))
