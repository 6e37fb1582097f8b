"""The rows of a flow graph, in Wireshark's words (Statistics > Flow Graph), and the text that tshark prints of them.

Reads packets as plain values, or a table of events. Returns a `FlowRow` per packet or per run of data segments, the
text of the Time column, and the lines of `tshark -z flow,tcp,network`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from latpcap import words
from latpcap.format import endpoint
from latpcap.lazy import np, pa, pc
from latpcap.options import TimeFormat
from latpcap.plot.numbers import tenths

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMATS: dict[TimeFormat, str] = {
    "relative": "seconds since the capture's first frame",
    "delta": "seconds since the frame before in the capture",
    "delta_displayed": "seconds since the row before",
    "date": "date and time of day, UTC",
    "epoch": "seconds since 1970",
}
"""Formats of the Time column: tshark's -t r, d, dd, ud and e."""

_NS_PER_S = 1_000_000_000
SEQ_MODULUS = 2**32
"""Sequence numbers of TCP wrap to 0 at this value."""
LONG_RUN = 8
"""Data segments from which a run is one row by default; shorter runs are as quick to read row by row."""
SHORT_RUN = 3
"""Data segments from which a run is one row with `collapse=True`."""
FACTS = (
    "zero_window_probe",
    "zero_window",
    "window_full",
    "fast_retransmission",
    "spurious_retransmission",
    "retransmission",
    "out_of_order",
    "lost_segment",
    "ack_lost_segment",
    "duplicate_ack",
    "keep_alive",
    "reused_ports",
)
"""Wireshark's marks (tcp.analysis) that a picture names, columns of `events`; of several marks the first is shown."""
CELL = 20
"""Characters of an address's column in tshark's text, with its bar."""
MAX_COLUMNS = 40
"""Addresses that get a column in tshark's text."""
_HEAD = CELL // 2 - 1
"""Characters of the cell of the time, and of a port."""


def seconds(ns: int, digits: int) -> str:
    """Write nanoseconds as seconds with this number of decimals."""
    whole_seconds, fraction_ns = divmod(abs(ns), _NS_PER_S)
    decimals = f".{fraction_ns:09d}"[: digits + 1] if digits else ""
    return f"{'-' if ns < 0 else ''}{whole_seconds}{decimals}"


def epoch(ns: int, digits: int) -> str:
    """Write an instant as tshark does: whole seconds are rounded down, so that -0.75 s before 1970 becomes -1.25."""
    whole_seconds, fraction_ns = divmod(ns, _NS_PER_S)
    return f"{whole_seconds}{seconds(fraction_ns, digits)[1:]}"


@dataclass(frozen=True, slots=True)
class Clock:
    """Writes the Time column in one of the `FORMATS`."""

    start_ns: int
    """Instant of the capture's first frame, in ns since 1970."""
    digits: int = 6
    """Decimals of a second that the capture's clock has."""
    kind: TimeFormat = "relative"
    before: Mapping[int, int] = field(default_factory=dict)
    """For "delta": by frame number, the instant of the frame before it. A frame without one has an empty time."""

    def __post_init__(self) -> None:
        if self.kind not in FORMATS:
            raise ValueError(f"time={self.kind!r} is not one of {', '.join(FORMATS)}")

    def text(self, frame: int, ns: int, row_before_ns: int | None) -> str:
        """Return the text of the Time column; `row_before_ns` is the instant of the row above, None for the first."""
        if self.kind == "relative":
            return seconds(ns - self.start_ns, self.digits)
        if self.kind == "epoch":
            return epoch(ns, self.digits)
        if self.kind == "date":
            whole_seconds, fraction_ns = divmod(ns, _NS_PER_S)
            day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole_seconds)
            return f"{day:%Y-%m-%d %H:%M:%S}{seconds(fraction_ns, self.digits)[1:]}"
        before = row_before_ns if self.kind == "delta_displayed" else self.before.get(frame)
        if before is None:
            first = self.kind == "delta_displayed" or frame == 1
            return seconds(0, self.digits) if first else ""
        return seconds(ns - before, self.digits)


Record = Mapping[str, Any]
"""A packet, or a row of another table, as plain values by column."""


@dataclass(frozen=True, slots=True)
class FlowRow:
    """The row of a packet, or of a run of packets."""

    frame: int
    time: str
    """Text of the Time column."""
    source: int
    """Index of the sender among the graph's nodes."""
    target: int
    sport: int
    dport: int
    label: str
    comment: str
    stream: int
    cause: str | None = None
    """Key of `CAUSES` that colours the arrow; None: black."""
    tag: str = ""
    """The packet's part in a wait (`held ACK`, `freed`), written after the label; empty if it has none."""
    at_ns: int = 0
    """Instant in ns since 1970."""
    message: str = ""
    """The request or status that begins with this packet."""
    fact: str = ""
    """Wireshark's mark in words, e.g. `retransmission`; empty for an ordinary packet."""
    since: str = ""
    """Time after the row above."""
    packets: int = 1


def label(flags: str | None, length: int | None) -> str:
    """Return Wireshark's text above the arrow: the flags, or `<None>`, and ` - Len: N` if there is payload."""
    shown = flags or "<None>"
    return f"{shown} - Len: {length}" if length else shown


def comment(flags: str | None, seq: int | None, ack: int | None) -> str:
    """Return Wireshark's text in the Comment column: `Seq = S Ack = A`, without `Ack` if the ACK flag is not set.

    Wireshark's relative numbers wrap at 32 bits; those of the events table do not.
    """
    text = "" if seq is None else f"Seq = {seq % SEQ_MODULUS}"
    if ack is None or "ACK" not in (flags or "").split(", "):
        return text
    return f"{text} Ack = {ack % SEQ_MODULUS}".strip()


def rows_of(events: Sequence[Record], clock: Clock) -> tuple[tuple[str, ...], tuple[FlowRow, ...]]:
    """Return the titles of the nodes, and a row per packet.

    Nodes are in order of appearance, as in Wireshark, but the client comes first; so an excerpt that starts at a packet
    of the server has its nodes in the same order. A packet from an address to itself (loopback) would be an arrow from
    a lifeline to itself. Such an address has two nodes: the server (`address:port`) and its client (`address:port`, or
    `address (clients)` if there are several client ports). Packets are rows of `events`, or have a `label` and a
    `comment` of their own.
    """
    client_ports: dict[str, set[int]] = {}
    for event in events:
        if event["src"] == event["dst"]:
            ports = client_ports.setdefault(event["src"], set())
            ports.add(event["sport"] if event["from_client"] is not False else event["dport"])

    def title(address: str, port: int, client: bool, loop: bool) -> str:
        if not loop:
            return address
        if client and len(client_ports[address]) > 1:
            return words.say("flow_clients", address=address)
        return endpoint(address, port)

    nodes: dict[str, int] = {}
    rows: list[FlowRow] = []
    before_ns: int | None = None
    for event in events:
        loop = event["src"] == event["dst"] and event["sport"] != event["dport"]
        forward = event["from_client"] is not False
        source = title(event["src"], event["sport"], forward, loop)
        target = title(event["dst"], event["dport"], not forward, loop)
        for node in (source, target) if forward else (target, source):
            nodes.setdefault(node, len(nodes))
        text, remark = label_and_comment(event)
        rows.append(
            FlowRow(
                frame=event["frame"],
                time=clock.text(event["frame"], event["time"], before_ns),
                source=nodes[source],
                target=nodes[target],
                sport=event["sport"],
                dport=event["dport"],
                label=text,
                comment=remark,
                stream=event["stream"],
                at_ns=event["time"],
                since="" if before_ns is None or "delta" in clock.kind else since(event["time"] - before_ns),
            )
        )
        before_ns = event["time"]
    return tuple(nodes), tuple(rows)


def since(ns: int) -> str:
    """Write the time after the row above: +105 µs, +43.9 ms, +2.1 s."""
    sign, ns = ("+", ns) if ns >= 0 else ("-", -ns)
    if ns < 999_500:
        return f"{sign}{ns / 1e3:.0f} µs" if ns >= 500 or ns == 0 else f"{sign}{ns} ns"
    return f"{sign}{ns / 1e6:.1f} ms" if ns < 999_950_000 else f"{sign}{ns / 1e9:,.1f} s"


def label_and_comment(event: Record) -> tuple[str, str]:
    """Return the text above a packet's arrow, and that of its Comment column."""
    if "label" in event:
        return event["label"], event["comment"]
    return label(event["flags"], event["len"]), comment(event["flags"], event["seq"], event["ack"])


def fact(packet: Record) -> str:
    """Return Wireshark's mark of this packet in words; empty for an ordinary packet."""
    name = _mark_of(packet)
    return words.say(f"flow_{name}") if name else ""


def _mark_of(packet: Record) -> str:
    return next((name for name in FACTS if packet.get(name)), "")


def run_begins(
    packets: pa.Table | Sequence[Record],
    min_segments: int,
    mark_ms: float,
    *,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the indices of the packets that begin a row; a row extends to the next of them.

    A run is `min_segments` or more data segments in a row of one stream and direction, with the other side's plain
    ACKs between and after them. SYN, FIN, RST and packets with a mark of Wireshark's have a row each. A run ends
    before a gap of `mark_ms`, before the frames `before` and after the frames `after`.
    """
    frame, stream, time, client, length, plain, acks = _columns(packets)
    data = plain & (length > 0)
    ack = plain & (length == 0) & acks
    member = (data | ack) & (stream >= 0)
    from_client = client ^ ack  # direction of the data; an ACK belongs to the data that it acknowledges
    if len(frame) == 0:
        return np.zeros(0, np.int64)
    cut = np.ones(len(frame), bool)
    cut[1:] = ~member[1:] | ~member[:-1] | (stream[1:] != stream[:-1]) | (from_client[1:] != from_client[:-1])
    cut[1:] |= np.diff(time) >= mark_ms * 1e6
    cut |= np.isin(frame, before)
    cut[1:] |= np.isin(frame[:-1], after)
    cut |= _up_to_first_data(cut, data)
    begins = np.flatnonzero(cut)
    segments = np.add.reduceat(data.astype(np.int64), begins)
    is_short = np.repeat(segments < min_segments, np.diff(begins, append=len(frame)))
    return np.flatnonzero(cut | is_short)


def _up_to_first_data(cut: NDArray[np.bool_], data: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the packets of each run up to its first data segment; ACKs before that segment get rows of their own."""
    rows, begins = np.arange(len(cut)), np.flatnonzero(cut)
    data_places = np.append(np.flatnonzero(data), len(cut))
    first = data_places[np.searchsorted(data_places, begins)]  # for a run without data: the data of a later run
    return rows <= first[np.cumsum(cut) - 1]


def _columns(packets: pa.Table | Sequence[Record]) -> tuple[Any, ...]:
    """Return frame, stream, time, from the client, length, without mark and SYN, FIN or RST, flags are only ACK."""
    if isinstance(packets, Sequence):
        rows = [_column_values(packet) for packet in packets]
        kinds = (np.int64, np.int64, np.int64, bool, np.int64, bool, bool)
        return tuple(np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True))

    def column(name: str, missing: int) -> Any:
        if name not in packets.column_names:
            return np.full(packets.num_rows, missing)
        values = packets[name]
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ns", tz=values.type.tz))
        return values.cast(pa.int64()).fill_null(missing).to_numpy()

    flags = packets["flags"].cast(pa.string()).fill_null("")
    ends = pc.match_substring_regex(flags, "SYN|FIN|RST").to_numpy(zero_copy_only=False)
    marked = np.zeros(packets.num_rows, bool)
    for name in FACTS:
        marked |= column(name, 0) != 0
    plain_ack = pc.equal(flags, "ACK").to_numpy(zero_copy_only=False)
    client = column("from_client", 1) != 0
    frame, stream, time, length = (column(name, 0) for name in ("frame", "stream", "time", "len"))
    return frame, stream, time, client, length, ~(ends | marked), plain_ack


def _column_values(packet: Record) -> tuple[Any, ...]:
    """Return the values of `_columns` for one packet."""
    flags = packet.get("flags") or ""
    ends = any(word in flags for word in ("SYN", "FIN", "RST"))
    return (
        packet["frame"],
        packet["stream"],
        packet["time"],
        packet["from_client"] is not False,
        packet.get("len") or 0,
        not (ends or _mark_of(packet)),
        flags == "ACK",
    )


def folded(packets: Sequence[Record], rows: Sequence[FlowRow]) -> FlowRow:
    """Return one row for a run: the first of its rows, labelled with the bytes and the duration of the run.

    For example `11 × 1448 B, 12.0 ms`; segments of several lengths are summed.
    """
    lengths = [packet["len"] for packet in packets if packet["len"]]
    if len(set(lengths)) == 1:
        size = f"{len(lengths)} \N{MULTIPLICATION SIGN} {lengths[0]} B"
    else:
        size = words.say("flow_segments", n=len(lengths), bytes=sum(lengths))
    acks = len(packets) - len(lengths)
    ns = packets[-1]["time"] - packets[0]["time"]
    first, last = (next(packet for packet in way if packet["len"]).get("seq") for way in (packets, packets[::-1]))
    comments = (
        [f"Seq = {first % SEQ_MODULUS} \N{HORIZONTAL ELLIPSIS} {last % SEQ_MODULUS}"]
        if first is not None and last is not None
        else []
    )
    comments += [words.say("flow_acks", n=acks)] if acks else []
    return replace(
        rows[0],
        label=f"{size}, {tenths(ns / 1e6)} ms",
        comment=", ".join(comments),
        packets=len(packets),
        message=next((row.message for row in rows if row.message), ""),
    )


@dataclass(frozen=True, slots=True)
class TextRow:
    """The content of a packet's two lines in tshark's text. `conversation` is the stream; the label is not cut yet."""

    conversation: int
    time: str
    source: str
    target: str
    sport: int
    dport: int
    label: str
    comment: str


def as_text(rows: Sequence[TextRow]) -> str:
    """Return tshark's text of these packets, with a line feed at its end; empty without packets."""
    nodes = dict.fromkeys(address for row in rows for address in (row.source, row.target))
    several = any(row.conversation != rows[0].conversation for row in rows)
    return "".join(f"{line}\n" for line in lines(rows, list(nodes), several=several))


def lines(rows: Iterable[TextRow], addresses: Sequence[str], *, several: bool) -> Iterator[str]:
    """Yield the lines of tshark's text, without line feeds.

    `addresses` are in the order of appearance, a packet's source before its target. `several`: there is more than one
    conversation.
    """
    if not addresses:
        return
    nodes = {address: number for number, address in enumerate(addresses)}
    columns = min(len(nodes), MAX_COLUMNS)
    yield from _titles(addresses[:columns], several)
    blank = (" " * 5 if several else "") + "|" + " " * _HEAD + "|"
    cells = (" " * (CELL - 1) + "|") * columns
    last: int | None = None
    for row in rows:
        if last is not None and row.conversation != last:
            yield "-" * (len(blank) + len(cells) + 1)
        last = row.conversation
        head = f"{row.conversation:<5}" if several else ""
        head += f"|{row.time:<{_HEAD}}|"
        # an address without a column is drawn one column beyond the last
        source = nodes[row.source] if nodes[row.source] < columns else MAX_COLUMNS + 1
        target = nodes[row.target] if nodes[row.target] < columns else MAX_COLUMNS + 1
        left, right = (source, target) if source < target else (target, source)
        right = max(right, left + 1)
        length, begin = CELL * (right - left), CELL * left + _HEAD
        yield _overwrite(head + cells, len(head) + begin, row.label[:length]) + row.comment
        dashes = "-" * (length - 2)
        arrow = f"{dashes}>" if source <= target else f"<{dashes}"
        ports = (row.sport, row.dport) if source <= target else (row.dport, row.sport)
        line = _overwrite(blank + cells, len(blank) + begin, arrow)
        line = _overwrite(line, len(blank) + CELL * left, f"({ports[0]})")
        yield _overwrite(line, len(blank) + CELL * right + _HEAD + 1, f"({ports[1]})")


def _titles(nodes: Sequence[str], several: bool) -> Iterator[str]:
    """Yield the two lines of addresses: the first, third, ... on the upper line, the others on the lower."""
    yield ("Conv.| Time    |" if several else "|Time     |") + "".join(
        f" {node:<{2 * CELL - 2}}|" for node in nodes[::2]
    )
    line = (" " * 5 if several else "") + "|" + " " * _HEAD + "|" + " " * (CELL - 1)
    for node in nodes[1::2]:
        short = len(node) < CELL - 2
        line += f"| {node:<{CELL - 2}}|{'':{CELL - 1}}" if short else f"| {node:<{2 * CELL - 2}}"
    yield line


def _overwrite(line: str, column: int, text: str) -> str:
    """Return the line with a text written over it; a text that would pass the line's end is inserted."""
    column = min(column, len(line))
    end = column + len(text)
    return line[:column] + text + line[end if end <= len(line) else column :]
