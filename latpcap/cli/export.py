"""How does a table leave? As text for a terminal, or as a Parquet, CSV or JSON file by suffix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latpcap.errors import OutputError
from latpcap.format import printable

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".csv", ".json")
TERMINAL_ROWS = 40


def write(table: pa.Table, path: Path) -> None:
    """Where does this table go? Writes it; the suffix names the format.

    OutputError for another suffix, or where the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise OutputError(f"{path}: unknown suffix {suffix!r}; known are {', '.join(SUFFIXES)}")
    try:
        with open(path, "wb") as file:
            if suffix == ".parquet":
                import pyarrow.parquet as pq

                pq.write_table(table, file, compression="zstd")
            elif suffix == ".csv":
                import pyarrow.csv as pc

                pc.write_csv(_flat(table), file)
            else:
                file.write(_json(table))
    except OSError as problem:
        raise OutputError(f"{path}: {problem.strerror or problem}") from None


def as_text(table: pa.Table) -> str:
    """What does this table look like in a terminal? All rows; on a terminal the first 40, and a line says so."""
    import pandas as pd

    from latpcap.format import count
    from latpcap.tables import to_pandas

    cut = sys.stdout.isatty() and table.num_rows > TERMINAL_ROWS
    frame = to_pandas(table[:TERMINAL_ROWS] if cut else table)
    if frame.empty:
        return "no rows"
    # words of the capture's own, which must not write on the terminal themselves
    for name in ("method", "target", "server_software"):
        if name in frame:
            frame[name] = frame[name].astype(object).map(printable, na_action="ignore")
    with pd.option_context("display.max_colwidth", 60):
        text = frame.to_string(index=False, na_rep="", float_format="{:.3f}".format)
    if cut:
        left = count(table.num_rows - TERMINAL_ROWS, "more row")
        text += f"\n… {left}; --top N or -o FILE gives others, --columns A,B fewer columns"
    return text


def _flat(table: pa.Table) -> pa.Table:
    """CSV has no lists: they become text, `1;2;3` or `left-right;left-right`."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts = [None if v is None else ";".join(_item(x) for x in v) for v in table[field.name].to_pylist()]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table[field.name].cast(pa.string()))
    return table


def _item(value: object) -> str:
    return f"{value['left']}-{value['right']}" if isinstance(value, dict) else str(value)


def _json(table: pa.Table) -> bytes:
    import json

    return (json.dumps(rows(table), indent=0) + "\n").encode()


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """A table's rows as JSON has them: instants as text with all nine digits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            texts = pc.strftime(table[field.name], format="%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(i, field.name, texts)
    found: list[dict[str, Any]] = table.to_pylist()
    return found
