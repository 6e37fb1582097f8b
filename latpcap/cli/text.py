"""Prints a table as text columns, row by row as they come.

The first rows determine the widths; a longer value further on widens its column from there. Neither pandas nor the
whole table is needed, so that `latpcap events big.pcap | head` prints at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from latpcap.format import printable
from latpcap.lazy import pa, pc

MAX_CELL = 60
"""Upper bound on the characters of a value; longer values end with "…"."""
ROWS = 1024
"""Rows that are laid out together."""
_GAP = "  "

BRIEF = {
    "events": "frame time stream src sport dst dport flags seq ack len time_delta_ms released_by waited_ms",
    "streams": "stream client client_port server server_port protocol exchanges initial_rtt_ms client_payload_bytes "
    "server_payload_bytes client_retransmissions server_retransmissions closed_by closed_how",
    "exchanges": "exchange stream method target status latency_ms top_cause protocol start request_first_frame "
    "response_last_frame",
    "connects": "connect stream duration_ms dns_ms handshake_ms tls_ms tls_version tls_round_trips tls_resumed "
    "tls_server_name tls_alpn greeting_ms cut_by top_cause first_frame start",
    "pushes": "push stream protocol method target bytes duration_ms top_cause first_frame last_frame start",
    "gaps": "gap stream index kind duration_ms top_cause first_frame last_frame start",
    "causes": "exchange cause owner duration_ms grade from_frame to_frame because rival start",
    "transfers": "stream direction client server bytes duration_ms rate_mbit limited_by owner grade rival rtt_idle_ms "
    "rtt_load_ms queue_ms window_bytes window_needed_bytes retransmissions",
    "evidence": "server server_port client sender verdict opportunities held refuted slope hold_median_ms",
    "lookups": "client server method target status_text latency_ms repeats addresses request_frame start",
    "probes": "kind src dst dport answer answer_from rtt_ms repeats sent",
    "issues": "kind frame layer reason count",
}
"""The columns shown on a terminal, as far as it is wide enough; --columns and files have the others."""


class Layout:
    """The columns of a table and their widths. Rows may come in several tables with the same columns."""

    def __init__(self, room: int | None = None):
        self.left_out: list[str] = []
        """Columns that do not fit into `room` characters, taken from the right."""
        self._room = room
        self._widths: list[int] = []
        self._names: list[str] = []

    def lines(self, tables: Iterable[pa.Table]) -> Iterator[str]:
        """Yield the header and the rows; "no rows" if there are none."""
        for table in tables:
            for start in range(0, table.num_rows, ROWS):
                yield from self._some(table.slice(start, ROWS))
        if not self._names:
            yield "no rows"

    def _some(self, table: pa.Table) -> Iterator[str]:
        names = self._names or table.column_names
        cells = [_words(table[name], dates=self._room is None) for name in names]
        right = [_is_number(table.schema.field(name).type) for name in names]
        wide = [max(map(len, column)) for column in cells]
        if not self._names:
            self._fit(names, [max(len(name), width) for name, width in zip(names, wide, strict=True)])
            yield self._line(self._names, right)
        self._widths = [max(pair) for pair in zip(self._widths, wide, strict=False)]
        for row in zip(*cells[: len(self._names)], strict=True):
            yield self._line(row, right)

    def _fit(self, names: list[str], widths: list[int]) -> None:
        used, fitting = -len(_GAP), 0
        for width in widths:
            used += len(_GAP) + width
            if self._room is not None and used > self._room and fitting:
                break
            fitting += 1
        self._names, self._widths, self.left_out = names[:fitting], widths[:fitting], names[fitting:]

    def _line(self, cells: Iterable[str], right: list[bool]) -> str:
        padded = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, self._widths, right, strict=False)
        )
        return _GAP.join(padded).rstrip()


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def _words(column: pa.ChunkedArray, *, dates: bool) -> list[str]:
    """Return the values as text, null as nothing. Instants have no date where room is limited."""
    data_type = column.type
    if pa.types.is_timestamp(data_type):
        texts = pc.strftime(column, format="%Y-%m-%d %H:%M:%S" if dates else "%H:%M:%S").to_pylist()
        if all(text is None or text.endswith("000") for text in texts):  # most clocks have microseconds
            texts = [text and text[:-3] for text in texts]
        return [text or "" for text in texts]
    write: Callable[[Any], str] = str
    if pa.types.is_floating(data_type):
        write = "{:.3f}".format
    elif pa.types.is_boolean(data_type):
        write = ["no", "yes"].__getitem__
    elif pa.types.is_list(data_type):
        write = _several
    elif not pa.types.is_integer(data_type):
        write = _text
    return ["" if value is None else write(value) for value in column.to_pylist()]


def _several(values: list[Any]) -> str:
    return _text(",".join(item(value) for value in values))


def item(value: object) -> str:
    """Return a value of a list as text; a SACK block is `left-right`."""
    return f"{value['left']}-{value['right']}" if isinstance(value, dict) else str(value)


def _text(value: object) -> str:
    """Text from the capture, made harmless for the terminal and cut."""
    text = printable(str(value))
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"
