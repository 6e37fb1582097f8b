"""Print tables as text, CSV, JSON or a JSON object a line, or write them to a file of the format of its suffix."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from latpcap import files
from latpcap.cli import colour, text
from latpcap.errors import OutputError
from latpcap.format import count
from latpcap.lazy import pa, pc, pq

SUFFIXES = (".parquet", ".csv", ".json", ".jsonl")
TERMINAL_ROWS = 40
"""Upper bound on the rows that are printed to read; files have all."""

AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON array.")]
AsJsonl = Annotated[bool, typer.Option("--jsonl", help="Print a JSON object a line.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Out = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Write to a file: .parquet, .csv, .json or .jsonl; - is standard output."),
]


@dataclass(frozen=True)
class Form:
    """Options that choose where a table goes, and in which form."""

    output: Out = None
    as_json: AsJson = False
    as_jsonl: AsJsonl = False
    as_csv: AsCsv = False

    def __post_init__(self) -> None:
        if len(self._chosen()) > 1:
            raise typer.BadParameter("takes one of them", param_hint="--" + ", --".join(self._chosen()))

    @property
    def name(self) -> str:
        """One of "text", "json", "jsonl" and "csv"."""
        return next(iter(self._chosen()), "text")

    def _chosen(self) -> list[str]:
        forms = {"json": self.as_json, "jsonl": self.as_jsonl, "csv": self.as_csv}
        return [name for name, wanted in forms.items() if wanted]


def write(table: pa.Table, path: Path) -> None:
    """Write a table to a file; the suffix names the format.

    OutputError for another suffix, or where the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise OutputError(f"{path}: unknown suffix {suffix!r}; known are {', '.join(SUFFIXES)}")
    try:
        with files.replacing(path) as part_path, open(part_path, "wb") as file:
            if suffix == ".parquet":
                pq.write_table(table, file, compression="zstd")
            else:
                file.writelines(part.encode() for part in parts([table], suffix[1:]))
    except OSError as problem:
        raise OutputError(f"{path}: {problem.strerror or problem}") from None


def show(tables: Iterable[pa.Table], form: str, *, fit: bool = True) -> None:
    """Print a table that comes in parts. As text on a terminal: the first 40 rows, the columns that fit if `fit`."""
    if form == "text" and sys.stdout.isatty():
        _on_terminal(tables, fit=fit)
        return
    for part in parts(tables, form):
        typer.echo(part, nl=False)


def give(table: pa.Table, output: Path | None, form: str, *, fit: bool = True) -> None:
    """Write a table to a file, or print it where none is named."""
    if output is not None and str(output) != "-":
        write(table, output)
    else:
        show(iter([table]), form, fit=fit)


def _on_terminal(tables: Iterable[pa.Table], *, fit: bool) -> None:
    table = pa.concat_tables(tables)
    layout = text.Layout(shutil.get_terminal_size().columns if fit else None)
    for number, line in enumerate(layout.lines([table[:TERMINAL_ROWS]])):
        typer.echo(line if number else colour.head(line))
    notes = []
    if table.num_rows > TERMINAL_ROWS:
        left_out = count(table.num_rows - TERMINAL_ROWS, "more row")
        notes.append(f"{left_out}; --top N, --csv or -o FILE gives others")
    if layout.left_out:
        notes.append(f"no room for {', '.join(layout.left_out)}; --columns chooses")
    for note in notes:
        typer.echo(f"… {note}")


def brief(table: pa.Table, name: str) -> pa.Table:
    """Return the columns that a terminal shows of this table, where nobody chose."""
    from latpcap.findings import BRIEF

    names = BRIEF if name == "findings" else text.BRIEF.get(name, " ".join(table.column_names)).split()
    return table.select([column for column in names if column in table.column_names])


def parts(tables: Iterable[pa.Table], form: str) -> Iterator[str]:
    """Yield the text of a table as "text", "csv", "json" or "jsonl", as its rows come."""
    if form == "text":
        lines = text.Layout().lines(tables)
        while some := list(islice(lines, text.ROWS)):
            yield "\n".join([*some, ""])
        return
    first = True
    for table in tables:
        if form == "csv":
            yield _csv(table, head=first)
        elif form == "jsonl":
            yield "".join(f"{line}\n" for line in _objects(table))
        elif table.num_rows:
            yield ("[\n" if first else ",\n") + ",\n".join(_objects(table))
        else:
            continue
        first = False
    if form == "json":
        yield "[]\n" if first else "\n]\n"


def _csv(table: pa.Table, *, head: bool) -> str:
    import pyarrow.csv as pc

    sink = pa.BufferOutputStream()
    pc.write_csv(_flat(table), sink, pc.WriteOptions(include_header=head))
    return str(sink.getvalue().to_pybytes().decode())


def _flat(table: pa.Table) -> pa.Table:
    """CSV has no lists: they become text, `1;2;3` or `left-right;left-right`. Words are harmless to spreadsheets."""
    for i, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts = [None if v is None else ";".join(map(text.item, v)) for v in table[field.name].to_pylist()]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, _plain(table[field.name].cast(pa.string())))
        elif pa.types.is_string(field.type):
            table = table.set_column(i, field.name, _plain(table[field.name]))
    return table


def _plain(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return words of the capture's own so that a spreadsheet takes none for a formula (CWE-1236), and without what no
    terminal may show (control characters, C1 too, marks of direction, line separators).

    A cell that begins with = + - or @, also behind blanks, gets a ' in front; LATPCAP_CSV=raw leaves all as it is.
    """
    if os.environ.get("LATPCAP_CSV") == "raw":
        return texts
    texts = pc.replace_substring_regex(texts, pattern=r"[\p{C}\p{Zl}\p{Zp}]", replacement="\N{REPLACEMENT CHARACTER}")
    return pc.replace_substring_regex(texts, pattern=r"^(\s*[=+\-@])", replacement=r"'\1")


def _objects(table: pa.Table) -> Iterator[str]:
    import json

    return (json.dumps(row) for row in rows(table))


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return a table's rows as JSON has them: instants as text with all nine digits."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            texts = pc.strftime(table[field.name], format="%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(i, field.name, texts)
    return table.to_pylist()
