"""How do results lie there? Names of folders and files, and the schemas that are not the engine's.

events/capture=ID/part-0.parquet        one folder a table and capture (Hive partitions); so for streams, exchanges,
                                        causes, evidence, probes and issues
captures/capture=ID/part-0.parquet      one row: files, sizes, sha256, frames, first and last instant; written last
_tasks/TASK.json                        says that a task is done, with which input, and what failed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap import _core

if TYPE_CHECKING:
    import pyarrow as pa

TASKS = "_tasks"
TABLES = (*_core.TABLES, "captures")


def file_of(table: str, capture: str) -> str:
    """Which file holds this table of this capture?"""
    return f"{table}/capture={capture}/part-0.parquet"


def of_capture(capture: str) -> list[str]:
    """All files of a capture; the one of `captures`, which vouches for the others, is first."""
    return [file_of(name, capture) for name in ("captures", *_core.TABLES)]


def marker(task: str) -> str:
    """Which file says that this task is done?"""
    return f"{TASKS}/{task}.json"


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


def told(capture: str, row: dict[str, Any]) -> dict[str, Any]:
    """What a task's marker says of a capture."""
    columns = ("files", "frames", "streams", "exchanges", "damaged")
    return {"capture": capture, "bytes": sum(row["sizes"]), **{c: row[c] for c in columns}}
