"""The commands that print a table: `streams`, `events`, `exchanges` and so on.

Without filter and sorting, rows are printed while the capture is being read.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latpcap.cli import opening
from latpcap.cli.export import Form
from latpcap.cli.options import ExchangeOption, File, Scope, over_time
from latpcap.lazy import pa, pc
from latpcap.options import TableName
from latpcap.tables import TableSlice

if TYPE_CHECKING:
    from latpcap.views.capture import Capture

NamesOption = Annotated[
    str | None, typer.Option("--names", help="Column names of a published schema: otel, ecs or zeek (docs/exports.md).")
]


@dataclass(frozen=True)
class Rows:
    """Options that select and sort the rows and columns of a table."""

    sort: Annotated[str | None, typer.Option("--sort", help="Sort by this column, largest first.")] = None
    top: Annotated[int | None, typer.Option("--top", help="Only the first N rows.", min=0)] = None
    columns: Annotated[
        str | None, typer.Option("--columns", help="Only these columns, with commas between; all for every one.")
    ] = None


_TABLES: dict[TableName, str] = {
    "streams": "Which TCP connections are there? One row a stream (Wireshark's tcp.stream).",
    "events": "What did each TCP segment say and do? One row a segment, with Wireshark's facts.",
    "exchanges": "How long did each request take? One row a request and its answer, with its time by cause.",
    "connects": "What happened before the first request? One row a connection whose set-up mattered.",
    "pushes": "What did servers send without a request? One row a message, as far as the protocol shows.",
    "gaps": "When did nobody wait for an answer? One row a client's pause, or a suspicion of one direction.",
    "causes": "Where did each exchange's time go? Rows that follow each other without gap.",
    "findings": "What is wrong, who owns it, how sure is that, and what would mend it? One row a server and cause.",
    "transfers": "How fast was each transfer, and what held it back? One row a direction that moved 30 kB or more.",
    "evidence": "Does Nagle act here, or not? One row a sender and peer, with the counts for and against.",
    "lookups": "Is it DNS? One row a question to a name server, or a request to a service over UDP (NTP, DHCP ...).",
    "probes": "Did the other end answer, and how fast? One row a ping, or a SYN of a connection without data.",
    "actions": "What did a client do to get one thing, and which part took how long? One row an action.",
    "groups": "Which requests are one thing to the user? One row a pipeline, transaction or subscription.",
    "waits": "What did somebody wait for? One row a lookup, connect, TLS handshake, greeting, request, push, transfer.",
    "issues": "What could not be read or trusted? One row a reason.",
}
_COMPUTED = ("actions", "waits", "groups")
"""Tables that are made of several other tables."""
_OF_EXCHANGE = ("exchanges", "causes")
"""Tables whose rows belong to one exchange."""
_STREAMED = ("events", "exchanges")
"""Tables whose rows are finished while the capture is read."""
_TAKE_BYTES = 1 << 20
"""Bytes of a capture after which finished rows are printed."""
MAX_WAITING_ROWS = 8192
"""Upper bound on the finished rows that wait for an earlier one: a second or two of a busy server, some megabytes."""


def register(app: typer.Typer) -> None:
    """Add a command for each table to the program."""
    for name, question in _TABLES.items():
        _command(app, name, question)


def _command(app: typer.Typer, name: TableName, question: str) -> None:
    """Add the command of one table."""

    def command(
        file: File,
        scope: Scope,
        rows: Rows,
        *,
        exchange: ExchangeOption = None,
        names: NamesOption = None,
        form: Form,
    ) -> None:
        from latpcap.cli import export

        columns = rows.columns
        if form.output is not None and str(form.output) != "-":
            table = _arranged_rows(file, name, scope, rows, exchange)
            export.write(chosen(_renamed(table, name, names), name, columns), form.output)
            return
        all_at_once = form.name == "text" and _on_terminal()
        may_stream = name in _STREAMED and rows.sort is None and exchange is None and not all_at_once
        if may_stream and scope.is_whole and not _of_headers(name, columns):
            tables = _first(_streamed(opening.source(file), name, scope.keylog), rows.top)
        else:
            tables = iter([_arranged_rows(file, name, scope, rows, exchange)])
        tables = (_renamed(table, name, names) for table in tables)
        is_brief = names is None and columns is None and form.name == "text" and (all_at_once or name == "findings")
        shown_tables = (export.brief(table, name) if is_brief else chosen(table, name, columns) for table in tables)
        export.show(shown_tables, form.name, fit=columns is None)

    if name not in _OF_EXCHANGE:
        signature = inspect.signature(command, eval_str=True)
        parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "exchange"]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    app.command(name=name, help=question)(over_time(command))


def _arranged_rows(file: str, name: TableName, scope: Scope, rows: Rows, exchange: str | None) -> Any:
    """Read the wanted rows, and no more of a whole capture than they need."""
    capture: Any
    if not scope.is_whole or _of_headers(name, rows.columns) or name in _COMPUTED or exchange is not None:
        capture = opening.read(file, scope.display_filter, keylog=scope.keylog)
    elif name == "findings":
        capture = opening.open_answer_view(file, keylog=scope.keylog)
    else:
        capture = opening.open_projection(file, {name: TableSlice(None)}, keylog=scope.keylog)
    table = _rows(capture, scope.stream, name, rows.columns)
    return arranged(table if exchange is None else _of_one(table, capture, scope.stream, exchange), name, rows)


def _of_one(table: pa.Table, capture: Capture, stream: int | None, exchange: str) -> pa.Table:
    """Return the rows of one exchange."""
    from latpcap.cli.options import usage_errors
    from latpcap.tables import read_stretches
    from latpcap.views.flows import chosen as picked
    from latpcap.views.flows import pick

    which: Any = int(exchange) if exchange.isdecimal() else exchange
    with usage_errors():
        row = picked(capture, which) if stream is None else pick(read_stretches(capture.stream(stream)), which, "index")
    return table.filter(pc.equal(table["exchange"], row["exchange"]))


def _renamed(table: pa.Table, name: str, names: str | None) -> pa.Table:
    """Return the columns under the names of a published schema, if one is given."""
    if names is None:
        return table
    from latpcap.exports.names import renamed

    try:
        return renamed(table, name, names)  # type: ignore[arg-type]
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--names") from None


def _on_terminal() -> bool:
    import sys

    return sys.stdout.isatty()


def _rows(capture: Any, stream: int | None, name: TableName, columns: str | None) -> pa.Table:
    """Return the rows; columns that need a second reading are added only where they are named."""
    table = (capture if stream is None else capture.stream(stream)).arrow(name)
    if not (header_columns := _of_headers(name, columns)):
        return table
    if name == "streams":
        from latpcap.reading import processes

        return processes.of_streams(table, processes.table(capture))
    from latpcap.reading import rereadable

    headers = rereadable.headers(capture, table)
    for column in header_columns:
        table = table.append_column(headers.schema.field(column), headers[column])
    return table


def _of_headers(name: str, columns: str | None) -> list[str]:
    """Return the named columns that need a second reading of the capture."""
    if name not in ("events", "streams") or columns is None:
        return []
    from latpcap.reading import processes, rereadable

    available = rereadable.HEADERS if name == "events" else processes.COLUMNS
    return [column for column in available if column in [word.strip() for word in columns.split(",")]]


def _streamed(source: Any, name: TableName, keylog: str | None) -> Iterator[pa.Table]:
    """Yield the rows of a table in order as they are finished; then warnings."""
    from latpcap.cli.options import warn
    from latpcap.reading import drain
    from latpcap.reading.feed import Feed
    from latpcap.views.capture import Capture

    feed = Feed(source, keylog)
    turns = _Turns() if name == "exchanges" else None
    for portion in drain.portions(feed, take_bytes=_TAKE_BYTES, progress=True):
        rows = drain.table(portion[name])
        ready = rows if turns is None else turns.ready(rows)
        if ready.num_rows:
            yield ready
    yield rows[:0] if turns is None else turns.rest()
    warn(Capture(feed.name, feed.analysis, feed.broken, origins=feed.origins, keylog=keylog))


class _Turns:
    """Sorts exchanges, which are finished in any order, by number.

    If more than MAX_WAITING_ROWS wait for an unfinished one (such as the first of a long connection), they are printed,
    and the late one follows when it is finished. The result depends on the order of rows only, not on portions.
    """

    def __init__(self) -> None:
        self._waiting_rows: pa.Table | None = None
        self._waiting: list[tuple[int, int]] = []
        self._next = 0

    def ready(self, new: pa.Table) -> pa.Table:
        """Return the rows that can be printed, of the new ones and those that waited."""
        import heapq

        from latpcap import arrays

        begin = 0 if self._waiting_rows is None else self._waiting_rows.num_rows
        together = new if self._waiting_rows is None else pa.concat_tables([self._waiting_rows, new])
        turn: list[int] = []
        for position, number in enumerate(arrays.numbers(new, "exchange").tolist(), begin):
            heapq.heappush(self._waiting, (number, position))
            while self._waiting and (self._waiting[0][0] <= self._next or len(self._waiting) > MAX_WAITING_ROWS):
                number, position = heapq.heappop(self._waiting)
                self._next = max(self._next, number + 1)
                turn.append(position)
        self._waiting.sort()
        self._waiting_rows = together.take(pa.array([position for _, position in self._waiting], pa.int64()))
        self._waiting = [(number, position) for position, (number, _) in enumerate(self._waiting)]
        return together.take(pa.array(turn, pa.int64()))

    def rest(self) -> pa.Table:
        """Return the rows that are left at the end."""
        return self._waiting_rows


def _first(tables: Iterator[pa.Table], top: int | None) -> Iterator[pa.Table]:
    """Yield the first `top` rows; the rest is not read."""
    remaining = top
    for table in tables:
        yield table if remaining is None else table[:remaining]
        if remaining is not None:
            remaining -= min(remaining, table.num_rows)
            if not remaining:
                return


def arranged(table: pa.Table, name: str, rows: Rows) -> Any:
    """Return the rows sorted and limited as wanted."""
    if rows.sort is not None:
        table = _sorted(table, _known(table, name, rows.sort, "--sort"))
    return table if rows.top is None else table[: rows.top]


def chosen(table: pa.Table, name: str, columns: str | None) -> Any:
    """Return the wanted columns."""
    if columns is None or columns == "all":
        return table
    return table.select([_known(table, name, word.strip(), "--columns") for word in columns.split(",")])


def _known(table: pa.Table, name: str, column: str, option: str) -> str:
    """Return the column's name, checked; wrong usage where the table does not have it."""
    if column not in table.column_names:
        import difflib

        near = difflib.get_close_matches(column, table.column_names, 3) or table.column_names[:8]
        raise typer.BadParameter(f"{name} has no column {column!r}; near: {', '.join(near)}", param_hint=option)
    return column


def _sorted(table: pa.Table, column: str) -> Any:
    """Return the rows sorted by a column: largest first, words in reverse alphabetical order, nulls last."""
    keys = table[column]
    if pa.types.is_list(keys.type):
        raise typer.BadParameter(f"{column!r} holds lists, which have no order", param_hint="--sort")
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(pa.string())
    return table.take(pc.sort_indices(pa.table({column: keys}), sort_keys=[(column, "descending")]))
