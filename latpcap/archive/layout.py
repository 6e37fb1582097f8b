"""The layout of results: names of folders and files, and the schemas that are not the core's.

events/PACK.parquet       one file per table and pack; as well for streams, exchanges, causes and so on; the column
                          `capture` names the capture of a row
captures/PACK.parquet     one row per capture: files, sizes, sha256, frames, first and last instant
_tasks/PACK.json          the pack's manifest, written last: its tasks with their input and failures, and the
                          checksums of its files. A pack without a manifest is incomplete and is ignored.
"""

from __future__ import annotations

from typing import Any

from latpcap import _core
from latpcap.lazy import pa

TASKS = "_tasks"
TABLES = (*_core.TABLES, "captures")
LAYOUT = 2
"""The version of the layout: results with another one are refused."""


def file_of(table: str, pack: str) -> str:
    """Return the file of a table and pack."""
    return f"{table}/{pack}.parquet"


def manifest_of(pack: str) -> str:
    """Return the manifest file of a pack."""
    return f"{TASKS}/{pack}.json"


def pack_of(relative: str) -> str:
    """Return the pack that a file belongs to."""
    return relative.rpartition("/")[2].rpartition(".")[0]


def with_capture(schema: pa.Schema) -> pa.Schema:
    """Return a table's stored columns: its own, and the name of the row's capture."""
    return schema.append(pa.field("capture", pa.dictionary(pa.int32(), pa.string()), False))


def captures_schema() -> pa.Schema:
    """Return the schema of `captures`: input files and counts."""
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
    """Return the schema of issues, with plain text for words, since issues of other layers have further words."""
    fields = [f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in engine]
    return pa.schema(fields, metadata=engine.metadata)


def record(capture: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a capture's record in the manifest."""
    columns = ("files", "frames", "streams", "exchanges", "damaged")
    return {"capture": capture, "bytes": sum(row["sizes"]), **{column: row[column] for column in columns}}
