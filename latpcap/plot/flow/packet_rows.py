"""The rows of a flow graph: which packets have one, what it shows, and the same as tshark's text.

Reads packets as plain values, or a table of events; gives rows in Wireshark's words (Statistics > Flow Graph), runs of
data in one row, the Time column's text and the text of `tshark -z flow,tcp,network`. Knows nothing of pages, fonts or
pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from latpcap import words
from latpcap.options import TimeFormat
from latpcap.plot.numbers import tenths

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

FORMATS: dict[TimeFormat, str] = {
    "relative": "seconds since the capture's first frame",
    "delta": "seconds since the frame before in the capture",
    "delta_displayed": "seconds since the row before",
    "date": "date and time of day, UTC",
    "epoch": "seconds since 1970",
}
"""What the Time column can hold: tshark's -t r, d, dd, ud and e."""

_SECOND = 1_000_000_000
TURN = 2**32  # numbers of TCP


def seconds(ns: int, digits: int) -> str:
    """How are nanoseconds written as seconds with so many decimals?"""
    whole, rest = divmod(abs(ns), _SECOND)
    decimals = f".{rest:09d}"[: digits + 1] if digits else ""
    return f"{'-' if ns < 0 else ''}{whole}{decimals}"


def epoch(ns: int, digits: int) -> str:
    """How does tshark write an instant? Whole seconds are rounded down, also before 1970: -0.75 s is -1.25."""
    whole, rest = divmod(ns, _SECOND)
    return f"{whole}{seconds(rest, digits)[1:]}"


@dataclass(frozen=True, slots=True)
class Clock:
    """Which time does a row show?

    `start_ns` is the capture's first frame, in ns since 1970; `digits` are the decimals of a second that the capture's
    clock tells; `before` gives, for "delta", the instant of the frame before a frame. Where that is not known, the time
    is empty.
    """

    start_ns: int
    digits: int = 6
    kind: TimeFormat = "relative"
    before: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in FORMATS:
            raise ValueError(f"time={self.kind!r} is not one of {', '.join(FORMATS)}")

    def text(self, frame: int, ns: int, row_before_ns: int | None) -> str:
        """What stands in the Time column? `row_before_ns` is the instant of the row above, None for the first."""
        if self.kind == "relative":
            return seconds(ns - self.start_ns, self.digits)
        if self.kind == "epoch":
            return epoch(ns, self.digits)
        if self.kind == "date":
            whole, rest = divmod(ns, _SECOND)
            day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole)
            return f"{day:%Y-%m-%d %H:%M:%S}{seconds(rest, self.digits)[1:]}"
        before = row_before_ns if self.kind == "delta_displayed" else self.before.get(frame)
        if before is None:
            first = self.kind == "delta_displayed" or frame == 1
            return seconds(0, self.digits) if first else ""
        return seconds(ns - before, self.digits)


Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FlowRow:
    """What does one packet's row show?

    `source` and `target` index the graph's nodes; `time` is the Time column's text, `at_ns` its instant in ns since
    1970, `since` how long after the row above it came; `said` is the request or the status that begins with it; `fact`
    is what Wireshark marks it with; `packets` is how many the row tells of; `cause` is the key of `CAUSES` that colours
    the arrow, or None; `tag`, beside the label, is what the packet has to do with a wait (`held ACK`, `freed`), or
    nothing.
    """

    frame: int
    time: str
    source: int
    target: int
    sport: int
    dport: int
    label: str
    comment: str
    stream: int
    cause: str | None = None
    tag: str = ""
    at_ns: int = 0
    message: str = ""
    fact: str = ""
    since: str = ""
    packets: int = 1


def label(flags: str | None, length: int | None) -> str:
    """What does Wireshark write above the arrow? The flags, or `<None>`, and ` - Len: N` if there is
    payload.
    """
    shown = flags or "<None>"
    return f"{shown} - Len: {length}" if length else shown


def comment(flags: str | None, seq: int | None, ack: int | None) -> str:
    """What does Wireshark write in the Comment column? `Seq = S Ack = A`, without `Ack` if the ACK flag is
    not set. Its numbers have 32 bits, also before the first byte; ours go on.
    """
    text = "" if seq is None else f"Seq = {seq % TURN}"
    return f"{text} Ack = {ack % TURN}".strip() if ack is not None and "ACK" in (flags or "").split(", ") else text


def rows_of(events: Sequence[Record], clock: Clock) -> tuple[tuple[str, ...], tuple[FlowRow, ...]]:
    """Which nodes and rows do these packets give? Nodes in order of appearance, as in Wireshark, but the
    client first.

    (So the picture does not turn round when it starts at a packet of the server.) A packet from an address to
    itself (loopback) would be an arrow from a line to itself: such an address is drawn as one node for the
    server (`address:port`) and one for its client (`address:port`, or `address (clients)` if there are
    several client ports). Packets are rows of `events`, or have a `label` and a `comment` of their own.
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
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    nodes: dict[str, int] = {}
    rows: list[FlowRow] = []
    before: int | None = None
    for event in events:
        loop = event["src"] == event["dst"] and event["sport"] != event["dport"]
        forward = event["from_client"] is not False
        source = title(event["src"], event["sport"], forward, loop)
        target = title(event["dst"], event["dport"], not forward, loop)
        for node in (source, target) if forward else (target, source):
            nodes.setdefault(node, len(nodes))
        text, remark = words_of(event)
        rows.append(
            FlowRow(
                frame=event["frame"],
                time=clock.text(event["frame"], event["time"], before),
                source=nodes[source],
                target=nodes[target],
                sport=event["sport"],
                dport=event["dport"],
                label=text,
                comment=remark,
                stream=event["stream"],
                at_ns=event["time"],
                since="" if before is None or "delta" in clock.kind else since(event["time"] - before),
            )
        )
        before = event["time"]
    return tuple(nodes), tuple(rows)


def since(ns: int) -> str:
    """How long after the row above did a packet come: +105 µs, +43.9 ms, +2.1 s?"""
    sign, ns = ("+", ns) if ns >= 0 else ("-", -ns)
    if ns < 999_500:
        return f"{sign}{ns / 1e3:.0f} µs" if ns >= 500 or ns == 0 else f"{sign}{ns} ns"
    return f"{sign}{ns / 1e6:.1f} ms" if ns < 999_950_000 else f"{sign}{ns / 1e9:,.1f} s"


def words_of(event: Record) -> tuple[str, str]:
    """What stands above a packet's arrow, and in its Comment column?"""
    if "label" in event:
        return event["label"], event["comment"]
    return label(event["flags"], event["len"]), comment(event["flags"], event["seq"], event["ack"])


LONG = 8
"""So many data segments make one row by default: fewer are read as fast one by one."""
ASKED = 3
"""So many with `collapse=True`: two rows are no longer than their summary."""

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
"""Wireshark's marks (tcp.analysis) that a picture names, the most telling first; columns of `events`."""


def fact(packet: Record) -> str:
    """What Wireshark marks this packet with, in words; empty for an ordinary one."""
    name = _marked(packet)
    return words.say(f"flow_{name}") if name else ""


def _marked(packet: Record) -> str:
    return next((name for name in FACTS if packet.get(name)), "")


def groups(
    packets: pa.Table | Sequence[Record],
    least: int,
    mark_ms: float,
    *,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Where does each row begin? Places of packets; a row goes on to where the next one begins.

    A run is `least` or more segments of data that follow each other on one stream in one direction, with the other
    side's plain ACKs between and behind them. What Wireshark marks, SYN, FIN and RST stand alone; a run ends before a
    gap of `mark_ms`, before the frames `before` and behind the frames `after`.
    """
    import numpy as np

    frame, stream, time, client, length, plain, acks = _columns(packets)
    data = plain & (length > 0)
    ack = plain & (length == 0) & acks
    member = (data | ack) & (stream >= 0)
    way = client ^ ack  # whose data goes on; an ACK belongs to what it acknowledges
    if len(frame) == 0:
        return np.zeros(0, np.int64)
    cut = np.ones(len(frame), bool)
    cut[1:] = ~member[1:] | ~member[:-1] | (stream[1:] != stream[:-1]) | (way[1:] != way[:-1])
    cut[1:] |= np.diff(time) >= mark_ms * 1e6
    cut |= np.isin(frame, before)
    cut[1:] |= np.isin(frame[:-1], after)
    cut |= _leading(cut, data)
    begins = np.flatnonzero(cut)
    segments = np.add.reduceat(data.astype(np.int64), begins)
    few = np.repeat(segments < least, np.diff(begins, append=len(frame)))
    return np.flatnonzero(cut | few)


def _leading(cut: NDArray[np.bool_], data: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What stands in front of a run's first data, and that data: ACKs there are rows of their own."""
    import numpy as np

    places, begins = np.arange(len(cut)), np.flatnonzero(cut)
    known = np.append(np.flatnonzero(data), len(cut))
    first = known[np.searchsorted(known, begins)]  # of a run without data: that of a later one
    found: NDArray[np.bool_] = places <= first[np.cumsum(cut) - 1]
    return found


def _columns(packets: pa.Table | Sequence[Record]) -> tuple[Any, ...]:
    """Frame, stream, time, whether from the client, length, whether nothing is remarkable, whether a plain ACK."""
    import numpy as np

    if isinstance(packets, Sequence):
        rows = [_row(packet) for packet in packets]
        kinds = (np.int64, np.int64, np.int64, bool, np.int64, bool, bool)
        return tuple(np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True))
    import pyarrow as pa
    import pyarrow.compute as pc

    def column(name: str, unknown: int) -> Any:
        if name not in packets.column_names:
            return np.full(packets.num_rows, unknown)
        values = packets[name]
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ns", tz=values.type.tz))
        return values.cast(pa.int64()).fill_null(unknown).to_numpy()

    flags = packets["flags"].cast(pa.string()).fill_null("")
    ends = pc.match_substring_regex(flags, "SYN|FIN|RST").to_numpy(zero_copy_only=False)
    marked = np.zeros(packets.num_rows, bool)
    for name in FACTS:
        marked |= column(name, 0) != 0
    plain_ack = pc.equal(flags, "ACK").to_numpy(zero_copy_only=False)
    client = column("from_client", 1) != 0
    frame, stream, time, length = (column(name, 0) for name in ("frame", "stream", "time", "len"))
    return frame, stream, time, client, length, ~(ends | marked), plain_ack


def _row(packet: Record) -> tuple[Any, ...]:
    flags = packet.get("flags") or ""
    ends = any(word in flags for word in ("SYN", "FIN", "RST"))
    return (
        packet["frame"],
        packet["stream"],
        packet["time"],
        packet["from_client"] is not False,
        packet.get("len") or 0,
        not (ends or _marked(packet)),
        flags == "ACK",
    )


def folded(packets: Sequence[Record], rows: Sequence[FlowRow]) -> FlowRow:
    """One row for a run: the first of its rows, with how many bytes went in which time."""
    lengths = [packet["len"] for packet in packets if packet["len"]]
    same = len(set(lengths[:-1])) == 1 and lengths[-1] == lengths[0]
    size = f"{len(lengths)} \N{MULTIPLICATION SIGN} {lengths[0]} B"
    if not same:
        size = words.say("flow_segments", n=len(lengths), bytes=sum(lengths))
    acks = len(packets) - len(lengths)
    ns = packets[-1]["time"] - packets[0]["time"]
    first, last = (next(p for p in way if p["len"]).get("seq") for way in (packets, packets[::-1]))
    comments = (
        [f"Seq = {first % TURN} \N{HORIZONTAL ELLIPSIS} {last % TURN}"]
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


CELL = 20  # characters of an address's column, its bar included
MOST_NODES = 40
_HEAD = CELL // 2 - 1  # characters of the time's cell and of a port's


@dataclass(frozen=True, slots=True)
class TextRow:
    """What does one packet's pair of lines say? `conversation` is the stream; labels are not cut yet."""

    conversation: int
    time: str
    source: str
    target: str
    sport: int
    dport: int
    label: str
    comment: str


def as_text(rows: Sequence[TextRow]) -> str:
    """Which text does tshark write for these packets? Ends with a line feed; empty without packets."""
    nodes = dict.fromkeys(address for row in rows for address in (row.source, row.target))
    several = any(row.conversation != rows[0].conversation for row in rows)
    return "".join(f"{line}\n" for line in lines(rows, list(nodes), several=several))


def lines(rows: Iterable[TextRow], addresses: Sequence[str], *, several: bool) -> Iterator[str]:
    """Which lines are that? Without line feeds, as the packets come.

    `addresses` in the order in which they appear, a packet's source before its target; `several`: there is more than
    one conversation.
    """
    if not addresses:
        return
    nodes = {address: number for number, address in enumerate(addresses)}
    columns = min(len(nodes), MOST_NODES)
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
        # an address without a column stands behind all columns, with one of them between
        source = nodes[row.source] if nodes[row.source] < columns else MOST_NODES + 1
        target = nodes[row.target] if nodes[row.target] < columns else MOST_NODES + 1
        left, right = (source, target) if source < target else (target, source)
        right = max(right, left + 1)
        length, begin = CELL * (right - left), CELL * left + _HEAD
        yield _over(head + cells, len(head) + begin, row.label[:length]) + row.comment
        dashes = "-" * (length - 2)
        arrow = f"{dashes}>" if source <= target else f"<{dashes}"
        ports = (row.sport, row.dport) if source <= target else (row.dport, row.sport)
        line = _over(blank + cells, len(blank) + begin, arrow)
        line = _over(line, len(blank) + CELL * left, f"({ports[0]})")
        yield _over(line, len(blank) + CELL * right + _HEAD + 1, f"({ports[1]})")


def _titles(nodes: Sequence[str], several: bool) -> Iterator[str]:
    """The two lines of addresses: even ones on the first, odd ones on the second."""
    yield ("Conv.| Time    |" if several else "|Time     |") + "".join(
        f" {node:<{2 * CELL - 2}}|" for node in nodes[::2]
    )
    line = (" " * 5 if several else "") + "|" + " " * _HEAD + "|" + " " * (CELL - 1)
    for node in nodes[1::2]:
        short = len(node) < CELL - 2
        line += f"| {node:<{CELL - 2}}|{'':{CELL - 1}}" if short else f"| {node:<{2 * CELL - 2}}"
    yield line


def _over(line: str, at: int, text: str) -> str:
    """The line with a text written over it; a text that does not fit is put between, or behind the end."""
    at = min(at, len(line))
    end = at + len(text)
    return line[:at] + text + line[end if end <= len(line) else at :]
