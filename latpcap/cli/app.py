"""The `latpcap` command: the same words as in Python, in the same order.

Exit codes: 0 analysed; 1 a rule of `compare --fail-on` fails; 2 wrong usage or an output that cannot be written; 3 a
capture could not be read.
Answers go to standard output; warnings and errors, one line each, to standard error.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latpcap.cli import archive, flow, mcp, packets, plots
from latpcap.cli.options import SAMPLE, File, FilterOption, KeylogOption, StreamOption
from latpcap.errors import CaptureError, LatpcapError
from latpcap.options import TableName
from latpcap.reading import sources

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.views.capture import Capture

EXIT_USAGE = 2
EXIT_UNREADABLE = 3

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Tells from a packet capture why each request was slow, who waited for whom, and which frames show it.",
)

SortOption = Annotated[str | None, typer.Option("--sort", help="Sort by this column, largest first.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", help="Only these columns, in this order, with commas between.")
]
TopOption = Annotated[int | None, typer.Option("--top", help="Only the first N rows.", min=0)]
OutOption = Annotated[Path | None, typer.Option("-o", "--output", help="Write to a file: .parquet, .csv or .json.")]


def main() -> None:
    """Runs the command and turns every known error into one line and an exit code."""
    words = [str(sources.SAMPLE) if word == SAMPLE else word for word in sys.argv[1:]]
    try:
        if code := app(words, standalone_mode=False):  # of a typer that turns Ctrl-C into one
            _stop("interrupted", code)
    except CaptureError as problem:
        _stop(str(problem), EXIT_UNREADABLE)
    except (LatpcapError, IndexError) as problem:
        _stop(str(problem), EXIT_USAGE)
    except BrokenPipeError:
        # the reader of our output went away (head, less): nothing to say, and nothing left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (KeyboardInterrupt, typer.Abort):
        _stop("interrupted", 130)
    except Exception as problem:
        # the parser's own errors carry their sentence; anything else is a bug and shows itself
        if not hasattr(problem, "format_message"):
            raise
        text = problem.format_message()
        if "\n" in text:  # no command at all: the help is the answer
            typer.echo(text, err=True)
            sys.exit(EXIT_USAGE)
        _stop(f"{text.removesuffix('.')} (see --help)", EXIT_USAGE)


def _stop(sentence: str, code: int) -> None:
    typer.echo(f"latpcap: {sentence}", err=True)
    sys.exit(code)


def _read(file: str, display_filter: str | None = None, *, keylog: str | None = None, again: bool = False) -> Capture:
    """Opens a capture and warns of damage; `again`: its bytes are wanted twice, so that standard input is kept."""
    from latpcap.archive.results import is_results
    from latpcap.views.capture import read

    if file != "-" and is_results(file):
        reads = "why, compare, latency, plot latency and plot waterfall read them, in Python latpcap.open_results"
        raise CaptureError(file, f"holds the results of a batch, expected a capture file; {reads}")
    if display_filter is not None:
        from latpcap.reading.filters.grammar import parse

        parse(display_filter)  # a slip of the pen is said before a long file is read
    again = again or display_filter is not None
    capture = read(_kept() if file == "-" and again else file, keylog=keylog)
    for sentence in capture.damage:
        typer.echo(f"latpcap: warning: {sentence}; rows up to there are given", err=True)
    return capture if display_filter is None else capture.filter(display_filter)


def _kept() -> io.BytesIO:
    """Standard input, to be read more than once, under the name that it has elsewhere."""
    held = io.BytesIO(sys.stdin.buffer.read())
    held.name = "<stdin>"
    return held


def _version(asked: bool) -> None:
    if asked:
        import latpcap

        typer.echo(f"latpcap {latpcap.__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def why(
    file: File,
    stream: StreamOption = None,
    exchange: Annotated[
        int | None,
        typer.Option("--exchange", help="Only this exchange; with --stream: its number there.", min=0),
    ] = None,
    display_filter: FilterOption = None,
    keylog: KeylogOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every number of the answer as JSON.")] = False,
) -> None:
    """Why were the requests slow, who waited for whom, and which frames show it? Also of the results of a batch."""
    if stored := archive.why(file, whole=stream is None and exchange is None and display_filter is None):
        typer.echo(json.dumps(stored.to_dict(), indent=2) if as_json else str(stored))
        return
    capture = _read(file, display_filter, keylog=keylog)
    answer = capture.why(stream=stream, exchange=exchange)
    typer.echo(json.dumps(answer.to_dict(), indent=2) if as_json else str(answer))


def _table_command(name: TableName, question: str) -> None:
    def command(
        file: File,
        stream: StreamOption = None,
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
        sort: SortOption = None,
        top: TopOption = None,
        columns: ColumnsOption = None,
        output: OutOption = None,
    ) -> None:
        from latpcap.cli import export

        capture = _read(file, display_filter, keylog=keylog)
        table = (capture if stream is None else capture.stream(stream)).arrow(name)
        table = _arranged(table, name, sort, top)
        if columns is not None:
            chosen = [word.strip() for word in columns.split(",")]
            table = table.select([_known(table, name, word, "--columns") for word in chosen])
        if output is not None:
            export.write(table, output)
        else:
            typer.echo(export.as_text(_brief(table) if name == "findings" and columns is None else table))

    app.command(name=name, help=question)(command)


def _brief(table: pa.Table) -> pa.Table:
    """The findings as a terminal shows them; files get every column."""
    from latpcap.findings import BRIEF

    return table.select(list(BRIEF))


_TABLES: dict[TableName, str] = {
    "streams": "Which TCP connections are there? One row a stream (Wireshark's tcp.stream).",
    "events": "What did each TCP segment say and do? One row a segment, with Wireshark's facts.",
    "exchanges": "How long did each request take? One row a request and its answer, with its time by cause.",
    "causes": "Where did each exchange's time go? Rows that follow each other without gap.",
    "findings": "What is wrong, who owns it, how sure is that, and what would mend it? One row a server and cause.",
    "evidence": "Does Nagle act here, or not? One row a sender and peer, with the counts for and against.",
    "probes": "Did the other end answer, and how fast? One row a ping, or a SYN of a connection without data.",
    "issues": "What could not be read or trusted? One row a reason.",
}

for _name, _question in _TABLES.items():
    _table_command(_name, _question)


app.command()(archive.batch)
app.command()(archive.compare)
flow.register(app, _read)
packets.register(app, _read)
plots.register(app, _read)
mcp.register(app)


def _arranged(table: pa.Table, name: str, sort: str | None, top: int | None) -> Any:
    if sort is not None:
        table = _sorted(table, _known(table, name, sort, "--sort"))
    return table if top is None else table[:top]


def _known(table: pa.Table, name: str, column: str, option: str) -> str:
    """The column, where the table has it."""
    if column not in table.column_names:
        import difflib

        near = difflib.get_close_matches(column, table.column_names, 3) or table.column_names[:8]
        raise typer.BadParameter(f"{name} has no column {column!r}; near: {', '.join(near)}", param_hint=option)
    return column


def _sorted(table: pa.Table, column: str) -> Any:
    """Largest first; words by the alphabet, backwards; nulls last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = table[column]
    if pa.types.is_list(keys.type):
        raise typer.BadParameter(f"{column!r} holds lists, which have no order", param_hint="--sort")
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(pa.string())
    return table.take(pc.sort_indices(pa.table({column: keys}), sort_keys=[(column, "descending")]))
