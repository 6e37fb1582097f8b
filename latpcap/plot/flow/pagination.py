"""Which packets are on which page of a flow graph?

Reads the tables of one or a few streams, or other packets as plain values; gives the rows, waits and brackets of a
page at a time, and the text of all of them. So a capture of a million packets costs no more than the pages drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from latpcap.options import FlowOptions
from latpcap.plot.flow import packet_rows, wait_marks
from latpcap.plot.flow.packet_rows import Clock, FlowRow, Record
from latpcap.plot.flow.wait_marks import FlowBracket, FlowMark, brackets, label_messages

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
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
_CAUSES = ("start", "end", "cause", "parent", "owner", "from_frame", "to_frame", "confidence")
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
SCREEN_ROWS, PRINT_ROWS = 60, 36  # of a page: as long as one scrolls gladly; of a sheet of paper
_SLICE = 65_536  # packets that are plain values at once while text is written


@dataclass(frozen=True, slots=True)
class Page:
    """What is on one page? The arguments of `FlowGraph`; `number` counts from 0."""

    number: int
    nodes: tuple[str, ...]
    rows: tuple[FlowRow, ...]
    marks: tuple[FlowMark, ...]
    brackets: tuple[FlowBracket, ...]


class FlowPages:
    """The packets of a flow graph, `max_rows` to a page.

    A page begins with the last packet of the one before: a wait may follow it. `packets` is a table of events, or a
    sequence of packets that have a `label` and a `comment`; `total` is the number of packets that it was chosen from,
    of which so many come `beyond` it; `text_packets` are the packets that the text is written of (default: all).
    Without `max_rows` a page has `SCREEN_ROWS`.
    `collapse`: runs of segments are a row each (None: long ones only).
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
            self._begins = self._groups(packet_rows.ASKED if options.collapse else packet_rows.LONG)

    def _groups(self, least: int) -> NDArray[np.int64]:
        """Where rows begin: neither a wait that is marked nor an exchange may begin or end inside one."""
        import pyarrow.compute as pc

        self._records(0, 0)  # KeyError for a missing column
        before, after = [], []
        if self._exchanges is not None:
            before += [self._exchanges[name] for name in ("request_first_frame", "response_first_frame")]
            after += [self._exchanges[name] for name in ("request_last_frame", "response_last_frame")]
        if self._causes is not None:
            took = pc.subtract(nanoseconds(self._causes["end"]), nanoseconds(self._causes["start"]))
            marked = self._causes.filter(pc.greater_equal(took, int(self.options.mark_ms * 1e6)))
            before.append(marked["to_frame"])
            after.append(marked["from_frame"])
        return packet_rows.groups(
            self._packets, least, self.options.mark_ms, before=_numbers(before), after=_numbers(after)
        )

    @property
    def printed(self) -> FlowPages:
        """This book with pages for paper, unless their length was given."""
        if self._printed is None:
            self._printed = copy(self)
            self._printed.max_rows = PRINT_ROWS
        return self._printed

    def __len__(self) -> int:
        """How many rows are there? A run of segments is one."""
        return len(self._packets) if self._begins is None else len(self._begins)

    @property
    def step(self) -> int:
        """How many packets does each page add to those before?"""
        return max(1, self.max_rows - 1)

    @property
    def pages(self) -> int:
        """How many pages are there?"""
        return 1 + max(0, -(-(len(self) - self.max_rows) // self.step))

    def first_and_last(self, number: int) -> tuple[int, int]:
        """Which rows has a page? Both included."""
        begin = self.step * number
        return begin, min(begin + self.max_rows, len(self)) - 1

    def places(self, number: int) -> tuple[int, int]:
        """Which packets has a page? Both included."""
        first, last = self.first_and_last(number)
        if self._begins is None:
            return first, last
        behind = int(self._begins[last + 1]) if last + 1 < len(self._begins) else len(self._packets)
        return int(self._begins[first]), behind - 1

    def frames(self, number: int) -> tuple[int, int]:
        """Which frames are the first and the last of a page?"""
        first, last = self.places(number)
        (low,), (high,) = self._records(first, 1), self._records(last, 1)
        return low["frame"], high["frame"]

    def longest_wait(self) -> tuple[float, str, int, int] | None:
        """Where was the longest wait: its ms, cause, first and last frame? None where none is as long as the marked."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._causes is None or not len(self):
            return None
        (low,), (high,) = self._records(0, 1), self._records(len(self._packets) - 1, 1)
        last_frame = (1 << 63) if self.beyond else high["frame"]
        first, last = pa.scalar(low["frame"], pa.uint64()), pa.scalar(last_frame, pa.uint64())
        inside = pc.and_(
            pc.greater_equal(self._causes["from_frame"], first), pc.less_equal(self._causes["to_frame"], last)
        )
        causes = self._causes.filter(inside)
        took = pc.subtract(nanoseconds(causes["end"]), nanoseconds(causes["start"]))
        most = pc.max(took).as_py()
        if most is None or most < self.options.mark_ms * 1e6:
            return None
        (row,) = records(causes.slice(pc.index(took, most).as_py(), 1), _CAUSES)
        return most / 1e6, row["cause"], row["from_frame"], row["to_frame"]

    def page(self, number: int) -> Page:
        """What is on this page? IndexError if there is none."""
        if not 0 <= number < self.pages:
            raise IndexError(f"no page {number + 1}: there are {self.pages}")
        first, last = self.places(number)
        shown = self._records(first, last - first + 1)
        nodes, rows = packet_rows.rows_of(shown, self.clock)
        rows = tuple(replace(row, fact=packet_rows.fact(packet)) for row, packet in zip(rows, shown, strict=True))
        if number and self.clock.kind == "delta_displayed":
            rows = (self._after(first, rows[0], shown[0]), *rows[1:])
        reasons = [] if self._causes is None else records(_around(self._causes, shown), _CAUSES)
        rows, marks = wait_marks.mark(shown, rows, reasons, self.options.mark_ms)
        spans: tuple[FlowBracket, ...] = ()
        if self._exchanges is not None:
            near = records(_of_frames(self._exchanges, shown), _EXCHANGES, ("response_first_frame",))
            spans, rows = brackets(rows, near), label_messages(rows, near)
        if self._begins is not None:
            rows, marks, spans = self._folded(number, shown, rows, marks, spans)
        return Page(number, nodes, rows, marks, spans)

    def _folded(
        self,
        number: int,
        shown: Sequence[Record],
        rows: tuple[FlowRow, ...],
        marks: tuple[FlowMark, ...],
        spans: tuple[FlowBracket, ...],
    ) -> tuple[tuple[FlowRow, ...], tuple[FlowMark, ...], tuple[FlowBracket, ...]]:
        """This book with runs of packets as rows."""
        assert self._begins is not None
        low, high = self.first_and_last(number)
        begins = [int(place - self._begins[low]) for place in self._begins[low : high + 1]]
        if len(begins) == len(rows):
            return rows, marks, spans
        at: list[int] = []  # of each packet the row
        folded = []
        for row, (begin, end) in enumerate(pairwise([*begins, len(rows)])):
            at += [row] * (end - begin)
            alone = end == begin + 1
            folded.append(rows[begin] if alone else packet_rows.folded(shown[begin:end], rows[begin:end]))
        moved = [
            replace(mark, upper=at[mark.upper] if mark.upper >= 0 else -1, lower=at[mark.lower])
            for mark in marks
            if mark.upper < 0 or at[mark.upper] != at[mark.lower]
        ]
        braces = [replace(span, upper=at[span.upper], lower=at[span.lower]) for span in spans]
        return tuple(folded), tuple(moved), tuple(braces)

    def _after(self, first: int, row: FlowRow, packet: Record) -> FlowRow:
        before = self._records(first - 1, 1)[0]["time"] if first else None
        return replace(row, time=self.clock.text(row.frame, packet["time"], before))

    def text(self) -> Iterator[str]:
        """Which lines does `tshark -q -z flow,tcp,network` write for all packets? Without line feeds."""
        addresses: dict[str, None] = {}
        streams: set[int] = set()
        for packet in self._all():
            addresses.setdefault(packet["src"])
            addresses.setdefault(packet["dst"])
            streams.add(_conversation(packet))
        return packet_rows.lines(self._text_rows(), list(addresses), several=len(streams) > 1)

    def _text_rows(self) -> Iterator[packet_rows.TextRow]:
        before: int | None = None
        for packet in self._all():
            yield _text_row(packet, self.clock.text(packet["frame"], packet["time"], before))
            before = packet["time"]

    def _all(self) -> Iterator[Record]:
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
    """All frames that these columns name."""
    import numpy as np
    import pyarrow as pa

    known = [column.drop_null().cast(pa.int64()).to_numpy() for column in columns]
    return np.concatenate(known) if known else np.zeros(0, np.int64)


def packets_of(events: pa.Table) -> list[dict[str, Any]]:
    """Rows of the events table as packets."""
    return records(events, EVENTS, _OPTIONAL)


def _conversation(packet: Record) -> int:
    """tshark separates streams in TCP flows only."""
    return 0 if "label" in packet else packet["stream"]


def _text_row(packet: Record, time: str) -> packet_rows.TextRow:
    if "label" in packet:
        label, comment = packet["label"], packet["comment"]
    else:
        label = packet_rows.label(packet["flags"], packet["len"])
        comment = packet_rows.comment(packet["flags"], packet["seq"], packet["ack"])
    return packet_rows.TextRow(
        conversation=_conversation(packet),
        time=time,
        source=packet["src"],
        target=packet["dst"],
        sport=packet["sport"],
        dport=packet["dport"],
        label=label,
        comment=comment,
    )


def _around(causes: pa.Table, shown: Sequence[Record]) -> pa.Table:
    """The causes that touch the time shown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = min(event["time"] for event in shown), max(event["time"] for event in shown)
    before = pc.less_equal(nanoseconds(causes["start"]), pa.scalar(high))
    after = pc.greater_equal(nanoseconds(causes["end"]), pa.scalar(low))
    return causes.filter(pc.and_(before, after))


def _of_frames(exchanges: pa.Table, shown: Sequence[Record]) -> pa.Table:
    """The exchanges that may touch the frames shown."""
    import pyarrow.compute as pc

    low, high = min(event["frame"] for event in shown), max(event["frame"] for event in shown)
    last = pc.coalesce(exchanges["response_last_frame"], exchanges["request_last_frame"])
    return exchanges.filter(pc.and_(pc.less_equal(exchanges["request_first_frame"], high), pc.greater_equal(last, low)))


def nanoseconds(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """A column of instants as integers of ns since 1970."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", tz=column.type.tz)).cast(pa.int64())
    return column


def records(table: pa.Table, names: Sequence[str], optional: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The table's rows as dicts of plain values, instants as integers of ns; columns that may be missing are
    None.
    """
    missing = [name for name in names if name not in table.column_names and name not in optional]
    if missing:
        raise KeyError(f"column {missing[0]!r} is missing; the table has {', '.join(table.column_names)}")
    columns = {
        name: nanoseconds(table[name]).to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in names
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
