"""How do results lie there? Names of folders and files, and the schemas that are not the engine's.

events/PACK.parquet       one file a table and pack (a long capture, or many short ones); so for streams, exchanges,
                          causes, evidence, probes and issues; column `capture` has the row's capture
captures/PACK.parquet     a row a capture: files, sizes, sha256, frames, first and last instant
_tasks/PACK.json          the pack's manifest, written last: its tasks, with which input, what failed, and the
                          checksums of its files. A pack without one is not whole, and is not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap import _core

if TYPE_CHECKING:
    import pyarrow as pa

TASKS = "_tasks"
TABLES = (*_core.TABLES, "captures")
LAYOUT = 2
"""Rises when files lie elsewhere or mean something else: results of another layout are refused."""


def file_of(table: str, pack: str) -> str:
    """Which file holds this table of this pack?"""
    return f"{table}/{pack}.parquet"


def manifest_of(pack: str) -> str:
    """The file that marks this pack as whole."""
    return f"{TASKS}/{pack}.json"


def pack_of(relative: str) -> str:
    """To which pack does this file belong?"""
    return relative.rpartition("/")[2].rpartition(".")[0]


def with_capture(schema: pa.Schema) -> pa.Schema:
    """A table's columns as they are stored: with the one that names the row's capture."""
    import pyarrow as pa

    return schema.append(pa.field("capture", pa.dictionary(pa.int32(), pa.string()), False))


def captures_schema() -> pa.Schema:
    """The table of all captures: what went in, what came out."""
    import pyarrow as pa

    instant = pa.timestamp("ns", "UTC")
    return pa.schema(
        [
            pa.field("files", pa.list_(pa.field("item", pa.string(), False)), False),
            pa.field("sizes", pa.list_(pa.field("item", pa.int64(), False)), False),
            pa.field("sha256", pa.list_(pa.field("item", pa.string(), False)), False),
            pa.field("rotation", pa.string()),
            pa.field("format", pa.string(), False),
            pa.field("frames", pa.int64(), False),
            pa.field("first", instant),
            pa.field("last", instant),
            *(pa.field(name, pa.int64(), name == "events") for name in _core.TABLES),
            pa.field("damaged", pa.bool_(), False),
            pa.field("latpcap", pa.string(), False),
            pa.field("schema", pa.string(), False),
        ]
    )


def issues_schema(engine: pa.Schema) -> pa.Schema:
    """The engine's issues; words as plain text, as other layers have words of their own."""
    import pyarrow as pa

    fields = [f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in engine]
    return pa.schema(fields, metadata=engine.metadata)


def record(capture: str, row: dict[str, Any]) -> dict[str, Any]:
    """A capture's record in the manifest."""
    columns = ("files", "frames", "streams", "exchanges", "damaged")
    return {"capture": capture, "bytes": sum(row["sizes"]), **{c: row[c] for c in columns}}
