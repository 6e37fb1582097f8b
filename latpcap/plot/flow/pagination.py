"""Splits the packets of a flow graph into pages.

Reads the tables of one or a few streams, or other packets as plain values. Computes the rows, waits and brackets of one
page at a time, so that a capture of a million packets costs no more than the pages drawn, and the text of all packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from latpcap.errors import NoSuchRowError
from latpcap.lazy import np, pa, pc
from latpcap.options import FlowOptions
from latpcap.plot.flow import packet_rows, wait_marks
from latpcap.plot.flow.packet_rows import Clock, FlowRow, Record
from latpcap.plot.flow.wait_marks import FlowBracket, FlowMark, brackets, label_messages

if TYPE_CHECKING:
    from numpy.typing import NDArray

EVENTS = (
    "frame",
    "time",
    "stream",
    "from_client",
    "src",
    "sport",
    "dst",
    "dport",
    "seq",
    "ack",
    "len",
    "flags",
    "release_frame",
    *packet_rows.FACTS,
)
_OPTIONAL = ("from_client", "release_frame", *packet_rows.FACTS)
_CAUSES = ("start", "end", "cause", "parent", "owner", "from_frame", "to_frame", "confidence", "grade")
_EXCHANGES = (
    "exchange",
    "stream",
    "protocol",
    "start",
    "end",
    "method",
    "target",
    "status",
    "request_first_frame",
    "request_last_frame",
    "response_first_frame",
    "response_last_frame",
    "latency_ms",
    "cut_by",
)
SCREEN_ROWS, PRINT_ROWS = 60, 36
"""Rows of a page on a screen, and of one that fits on a sheet of paper."""
_SLICE = 65_536
"""Packets converted to plain values at once while text is written; bounds memory."""


@dataclass(frozen=True, slots=True)
class Page:
    """The content of one page: arguments of `FlowGraph`. `number` counts from 0."""

    number: int
    nodes: tuple[str, ...]
    rows: tuple[FlowRow, ...]
    marks: tuple[FlowMark, ...]
    brackets: tuple[FlowBracket, ...]


class FlowPages:
    """The pages of a flow graph.

    A page begins with the last row of the page before it, as a wait may follow that row. `packets` is a table of
    events, or a sequence of packets that have a `label` and a `comment`. `total` is the number of packets they were
    selected from, of which `beyond` follow the last of `packets`. `text_packets` replace `packets` in the text.
    """

    def __init__(
        self,
        packets: pa.Table | Sequence[Record],
        causes: pa.Table | None = None,
        exchanges: pa.Table | None = None,
        *,
        text_packets: Sequence[Record] | None = None,
        clock: Clock,
        options: FlowOptions,
        total: int,
        beyond: int = 0,
    ) -> None:
        """Divide packets into pages; ValueError for options out of range."""
        max_rows, mark_ms = options.max_rows, options.mark_ms
        if max_rows is not None and max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}, but at least 1 packet has to be shown")
        if not mark_ms > 0:
            raise ValueError(f"mark_ms is {mark_ms}, but must be more than 0 ms")
        self.options = options
        self._packets = packets
        self._text_packets = text_packets
        self._causes = causes
        self._exchanges = exchanges
        self.clock = clock
        self.total = total
        self.beyond = beyond
        self.max_rows = SCREEN_ROWS if max_rows is None else max_rows
        self._printed = self if max_rows is not None else None
        self._begins: NDArray[np.int64] | None = None
        if options.collapse is not False and len(packets):
            self._begins = self._run_begins(packet_rows.SHORT_RUN if options.collapse else packet_rows.LONG_RUN)

    def _run_begins(self, min_segments: int) -> NDArray[np.int64]:
        """Return the indices of the packets that begin a row. No marked wait and no exchange begins or ends inside a
        run.
        """
        self._records(0, 0)  # KeyError for a missing column
        before, after = [], []
        if self._exchanges is not None:
            before += [self._exchanges[name] for name in ("request_first_frame", "response_first_frame")]
            after += [self._exchanges[name] for name in ("request_last_frame", "response_last_frame")]
        if self._causes is not None:
            durations = pc.subtract(nanoseconds(self._causes["end"]), nanoseconds(self._causes["start"]))
            marked = self._causes.filter(pc.greater_equal(durations, int(self.options.mark_ms * 1e6)))
            before.append(marked["to_frame"])
            after.append(marked["from_frame"])
        return packet_rows.run_begins(
            self._packets, min_segments, self.options.mark_ms, before=_numbers(before), after=_numbers(after)
        )

    @property
    def printed(self) -> FlowPages:
        """These packets with pages for paper, unless `max_rows` was given."""
        if self._printed is None:
            self._printed = copy(self)
            self._printed.max_rows = PRINT_ROWS
        return self._printed

    def __len__(self) -> int:
        """Number of rows; a run of segments is one row."""
        return len(self._packets) if self._begins is None else len(self._begins)

    @property
    def step(self) -> int:
        """Number of rows that each page adds to those before it."""
        return max(1, self.max_rows - 1)

    @property
    def pages(self) -> int:
        """Number of pages."""
        return 1 + max(0, -(-(len(self) - self.max_rows) // self.step))

    def first_and_last(self, number: int) -> tuple[int, int]:
        """Return the first and the last row of a page, counted from 0."""
        begin = self.step * number
        return begin, min(begin + self.max_rows, len(self)) - 1

    def places(self, number: int) -> tuple[int, int]:
        """Return the indices of the first and the last packet of a page."""
        first, last = self.first_and_last(number)
        if self._begins is None:
            return first, last
        end = int(self._begins[last + 1]) if last + 1 < len(self._begins) else len(self._packets)
        return int(self._begins[first]), end - 1

    def frames(self, number: int) -> tuple[int, int]:
        """Return the first and the last frame of a page."""
        first, last = self.places(number)
        (low,), (high,) = self._records(first, 1), self._records(last, 1)
        return low["frame"], high["frame"]

    def longest_wait(self) -> tuple[float, str, int, int] | None:
        """Return the longest wait among all packets: its ms, cause, first and last frame. None if no wait is marked."""
        if self._causes is None or not len(self):
            return None
        (low,), (high,) = self._records(0, 1), self._records(len(self._packets) - 1, 1)
        last_frame = (1 << 63) if self.beyond else high["frame"]
        first, last = pa.scalar(low["frame"], pa.uint64()), pa.scalar(last_frame, pa.uint64())
        inside = pc.and_(
            pc.greater_equal(self._causes["from_frame"], first), pc.less_equal(self._causes["to_frame"], last)
        )
        causes = self._causes.filter(inside)
        durations = pc.subtract(nanoseconds(causes["end"]), nanoseconds(causes["start"]))
        longest_ns = pc.max(durations).as_py()
        if longest_ns is None or longest_ns < self.options.mark_ms * 1e6:
            return None
        (row,) = records(causes.slice(pc.index(durations, longest_ns).as_py(), 1), ("cause", "from_frame", "to_frame"))
        return longest_ns / 1e6, row["cause"], row["from_frame"], row["to_frame"]

    def page(self, number: int) -> Page:
        """Return the content of a page, counted from 0. IndexError for a page that does not exist."""
        if not 0 <= number < self.pages:
            raise NoSuchRowError(f"no page {number + 1}: there are {self.pages}")
        first, last = self.places(number)
        shown = self._records(first, last - first + 1)
        nodes, rows = packet_rows.rows_of(shown, self.clock)
        rows = tuple(replace(row, fact=packet_rows.fact(packet)) for row, packet in zip(rows, shown, strict=True))
        if number and self.clock.kind == "delta_displayed":
            rows = (self._after_page_before(first, rows[0]), *rows[1:])
        causes = [] if self._causes is None else records(_causes_during(self._causes, shown), _CAUSES, ("grade",))
        rows, marks = wait_marks.mark(shown, rows, causes, self.options.mark_ms)
        spans: tuple[FlowBracket, ...] = ()
        if self._exchanges is not None:
            exchanges = records(_exchanges_of(self._exchanges, shown), _EXCHANGES, ("response_first_frame",))
            spans, rows = brackets(rows, exchanges), label_messages(rows, exchanges)
        if self._begins is not None:
            rows, marks, spans = self._fold_runs(number, shown, rows, marks, spans)
        return Page(number, nodes, rows, marks, spans)

    def _fold_runs(
        self,
        number: int,
        shown: Sequence[Record],
        rows: tuple[FlowRow, ...],
        marks: tuple[FlowMark, ...],
        spans: tuple[FlowBracket, ...],
    ) -> tuple[tuple[FlowRow, ...], tuple[FlowMark, ...], tuple[FlowBracket, ...]]:
        """Fold each run of packets into one row, and move marks and brackets to the folded rows."""
        assert self._begins is not None
        low, high = self.first_and_last(number)
        begins = [int(begin - self._begins[low]) for begin in self._begins[low : high + 1]]
        if len(begins) == len(rows):
            return rows, marks, spans
        row_of: list[int] = []  # by packet
        folded = []
        for row, (begin, end) in enumerate(pairwise([*begins, len(rows)])):
            row_of += [row] * (end - begin)
            is_single = end == begin + 1
            folded.append(rows[begin] if is_single else packet_rows.folded(shown[begin:end], rows[begin:end]))
        moved = [
            replace(mark, upper=row_of[mark.upper] if mark.upper >= 0 else -1, lower=row_of[mark.lower])
            for mark in marks
            if mark.upper < 0 or row_of[mark.upper] != row_of[mark.lower]
        ]
        braces = [replace(span, upper=row_of[span.upper], lower=row_of[span.lower]) for span in spans]
        return tuple(folded), tuple(moved), tuple(braces)

    def _after_page_before(self, first: int, row: FlowRow) -> FlowRow:
        """Return the first row of a page, its time counted from the last packet that only the page before has."""
        before_ns = self._records(first - 1, 1)[0]["time"] if first else None
        return replace(row, time=self.clock.text(row.frame, row.at_ns, before_ns))

    def text(self) -> Iterator[str]:
        """Return the lines of `tshark -q -z flow,tcp,network` for all packets, without line feeds."""
        addresses: dict[str, None] = {}
        streams: set[int] = set()
        for packet in self._text_source():
            addresses.setdefault(packet["src"])
            addresses.setdefault(packet["dst"])
            streams.add(_conversation(packet))
        return packet_rows.lines(self._text_rows(), list(addresses), several=len(streams) > 1)

    def _text_rows(self) -> Iterator[packet_rows.TextRow]:
        before_ns: int | None = None
        for packet in self._text_source():
            label, comment = packet_rows.label_and_comment(packet)
            yield packet_rows.TextRow(
                conversation=_conversation(packet),
                time=self.clock.text(packet["frame"], packet["time"], before_ns),
                source=packet["src"],
                target=packet["dst"],
                sport=packet["sport"],
                dport=packet["dport"],
                label=label,
                comment=comment,
            )
            before_ns = packet["time"]

    def _text_source(self) -> Iterator[Record]:
        if self._text_packets is not None:
            yield from self._text_packets
            return
        for begin in range(0, len(self._packets), _SLICE):
            yield from self._records(begin, _SLICE)

    def _records(self, begin: int, count: int) -> Sequence[Record]:
        if isinstance(self._packets, Sequence):
            return self._packets[begin : begin + count]
        return packets_of(self._packets.slice(begin, count))


def _numbers(columns: Sequence[pa.ChunkedArray[Any]]) -> NDArray[np.int64]:
    """Return all frame numbers in these columns."""
    parts = [column.drop_null().cast(pa.int64()).to_numpy() for column in columns]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def packets_of(events: pa.Table) -> list[dict[str, Any]]:
    """Return rows of the events table as packets."""
    return records(events, EVENTS, _OPTIONAL)


def _conversation(packet: Record) -> int:
    """Return the number of the packet's conversation in tshark's text, which separates streams in TCP flows only."""
    return 0 if "label" in packet else packet["stream"]


def _causes_during(causes: pa.Table, shown: Sequence[Record]) -> pa.Table:
    """Return the causes that overlap the time of the packets shown."""
    low, high = min(event["time"] for event in shown), max(event["time"] for event in shown)
    before = pc.less_equal(nanoseconds(causes["start"]), pa.scalar(high))
    after = pc.greater_equal(nanoseconds(causes["end"]), pa.scalar(low))
    return causes.filter(pc.and_(before, after))


def _exchanges_of(exchanges: pa.Table, shown: Sequence[Record]) -> pa.Table:
    """Return the exchanges whose frames overlap those of the packets shown."""
    low, high = min(event["frame"] for event in shown), max(event["frame"] for event in shown)
    last = pc.coalesce(exchanges["response_last_frame"], exchanges["request_last_frame"])
    return exchanges.filter(pc.and_(pc.less_equal(exchanges["request_first_frame"], high), pc.greater_equal(last, low)))


def nanoseconds(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return a column of instants as integers, in ns since 1970."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", tz=column.type.tz)).cast(pa.int64())
    return column


def records(table: pa.Table, names: Sequence[str], optional: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the table's rows as dicts of plain values, instants in ns; a missing `optional` column is all None."""
    missing = [name for name in names if name not in table.column_names and name not in optional]
    if missing:
        raise KeyError(f"column {missing[0]!r} is missing; the table has {', '.join(table.column_names)}")
    columns = {
        name: nanoseconds(table[name]).to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in names
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
