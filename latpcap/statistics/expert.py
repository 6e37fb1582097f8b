"""Wireshark's expert information, from the facts of `events`, lookups, probes and issues.

Severities, groups and filters are those of Wireshark 4.0, so that each row can be checked there; the summaries are
latpcap's. Damage that latpcap found while reading (table `issues`) is included, without a filter where Wireshark has
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from latpcap.lazy import pa, pc
from latpcap.user_waits.lookups import NEIGHBOUR, SERVICES

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded

Severity: TypeAlias = Literal["error", "warning", "note", "chat"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note", "chat")
_MAX_FRAMES = 100
"""Upper bound on the frames that a row lists."""


class Item(NamedTuple):
    """A remark of Wireshark on a TCP segment: the column of `events` behind it, and how it is shown."""

    column: str
    severity: Severity
    group: str
    summary: str
    filter: str


def _analysis(column: str, severity: Severity, summary: str) -> Item:
    return Item(column, severity, "Sequence", summary, f"tcp.analysis.{column}")


_TCP = (
    _analysis("lost_segment", "warning", "a segment before this one is not in the capture"),
    _analysis("ack_lost_segment", "warning", "acknowledges a segment that is not in the capture"),
    _analysis("out_of_order", "warning", "segment out of order"),
    _analysis("window_full", "warning", "fills the receiver's window"),
    _analysis("zero_window", "warning", "the receiver's window is zero"),
    Item("dsack", "warning", "Sequence", "reports bytes received twice (D-SACK)", "tcp.options.sack.dsack"),
    _analysis("retransmission", "note", "retransmission"),
    _analysis("fast_retransmission", "note", "fast retransmission"),
    _analysis("spurious_retransmission", "note", "retransmission of acknowledged bytes"),
    _analysis("duplicate_ack", "note", "duplicate ACK"),
    _analysis("keep_alive", "note", "keep-alive probe"),
    _analysis("keep_alive_ack", "note", "answer to a keep-alive probe"),
    _analysis("zero_window_probe", "note", "probe of a zero window"),
    _analysis("zero_window_probe_ack", "note", "answer to a probe of a zero window"),
    _analysis("reused_ports", "note", "ports of an earlier connection are used again"),
    _analysis("window_update", "chat", "window update"),
)


_FLAGS = (
    Item("", "warning", "Sequence", "connection reset (RST)", "tcp.flags.reset eq 1"),
    Item("", "chat", "Sequence", "connection requested (SYN)", "tcp.flags eq 2"),
    Item("", "chat", "Sequence", "connection accepted (SYN+ACK)", "tcp.flags eq 0x12"),
    Item("", "chat", "Sequence", "end of one direction (FIN)", "tcp.flags.fin eq 1"),
    Item("", "note", "Protocol", "acknowledgement number without the flag ACK", "tcp.ack.nonzero"),
    Item("", "note", "Sequence", "closes the connection first", "tcp.connection.fin_active"),
    Item("", "note", "Sequence", "closes the connection second", "tcp.connection.fin_passive"),
)
"""Remarks on flags, in the order in which `_of_segments` finds them."""


@dataclass(frozen=True)
class _Row:
    severity: Severity
    group: str
    protocol: str
    summary: str
    filter: str | None
    frames: list[int]
    count: int


def expert(capture: Recorded) -> pa.Table:
    """Return each remark with its count and frames; see `Capture.expert`."""
    remarks = [*_of_segments(capture), *_of_messages(capture), *_of_issues(capture)]
    remarks.sort(key=lambda row: (SEVERITIES.index(row.severity), -row.count, row.protocol, row.summary))
    rows = [
        {
            "severity": row.severity, "group": row.group, "protocol": row.protocol, "summary": row.summary,
            "count": row.count, "first_frame": row.frames[0] if row.frames else None, "filter": row.filter,
            "frames": row.frames[:_MAX_FRAMES],
        }
        for row in remarks
    ]  # fmt: skip
    word, number = pa.string(), pa.uint64()
    schema = pa.schema(
        [
            ("severity", word), ("group", word), ("protocol", word), ("summary", word), ("count", number),
            ("first_frame", number), ("filter", word), ("frames", pa.list_(number)),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def _of_segments(capture: Recorded) -> Iterator[_Row]:
    events = capture.arrow("events")

    def row(mask: Any, item: Item) -> Iterator[_Row]:
        frames = events["frame"].filter(mask).to_pylist()
        if frames:
            yield _Row(item.severity, item.group, "TCP", item.summary, item.filter, frames, len(frames))

    for item in _TCP:
        yield from row(events[item.column], item)
    flags = _Flags(events)
    for item, mask in zip(
        _FLAGS,
        (
            flags.all("RST"),
            flags.all("SYN", without="ACK"),
            flags.all("SYN", "ACK"),
            flags.all("FIN"),
            flags.acks_nothing(),
            flags.fin(first=True),
            flags.fin(first=False),
        ),
        strict=True,
    ):
        yield from row(mask, item)


class _Flags:
    """Masks of events by their flags."""

    def __init__(self, events: pa.Table) -> None:
        self.events = events

    def _where(self, matches: Callable[[list[str]], bool]) -> Any:
        from latpcap.reading.filters.source import mapped

        return mapped(self.events["flags"], lambda label: matches(label.split(", ")), "bool")

    def all(self, *wanted: str, without: str = "") -> Any:
        return self._where(lambda flags: set(wanted) <= set(flags) and without not in flags)

    def acks_nothing(self) -> Any:
        return pc.and_(pc.not_equal(self.events["ack"], 0), self._where(lambda flags: "ACK" not in flags))

    def fin(self, *, first: bool) -> Any:
        """Return FINs of the side that closed first, or of the other one."""
        fins = self.all("FIN").to_pylist()
        closed: dict[int, bool] = {}
        streams, sides = self.events["stream"].to_pylist(), self.events["from_client"].to_pylist()
        rows = zip(fins, streams, sides, strict=True)
        mask = [fin and (closed.setdefault(stream, side) == side) == first for fin, stream, side in rows]
        return pa.array(mask, pa.bool_())


def _of_messages(capture: Recorded) -> Iterator[_Row]:
    """Yield requests and answers of HTTP/1, repeated questions to name servers, pings without a reply."""
    from latpcap.reading.filters.http import completed

    exchanges = completed(capture.arrow("exchanges"), capture.arrow("events"), "http")
    names = ("method", "status", "request_in", "response_in")
    messages: dict[str, list[int]] = {}
    for method, status, request_frame, response_frame in zip(
        *(exchanges[name].to_pylist() for name in names), strict=True
    ):
        if request_frame is not None and method is not None:
            messages.setdefault(f"request {method}", []).append(request_frame)
        if response_frame is not None and status is not None:
            messages.setdefault(f"answer {status}", []).append(response_frame)
    for summary, frames in messages.items():
        yield _Row("chat", "Sequence", "HTTP", summary, "http.chat", sorted(frames), len(frames))
    lookups = capture.arrow("lookups").select(["request_frame", "repeats", "method"]).to_pylist()
    repeated = [row for row in lookups if row["repeats"] and row["method"] not in (*NEIGHBOUR, *SERVICES)]
    if repeated:
        frames, count = [row["request_frame"] for row in repeated], sum(row["repeats"] for row in repeated)
        summary = "question sent again; frames of the first"
        yield _Row("warning", "Protocol", "DNS", summary, "dns.retransmit_request", frames, count)
    probes = capture.arrow("probes").select(["kind", "answer", "sent_frame"]).to_pylist()
    frames = [row["sent_frame"] for row in probes if row["kind"] == "icmp_echo" and row["answer"] is None]
    if frames:
        summary = "echo request without a reply"
        yield _Row("warning", "Sequence", "ICMP", summary, "icmp.resp_not_found", frames, len(frames))


_ISSUES: dict[str, Severity] = {"refused": "error", "damaged": "error", "skipped": "note", "distrusted": "warning"}


def _of_issues(capture: Recorded) -> Iterator[_Row]:
    """Yield what latpcap itself could not read or trust."""
    for row in capture.arrow("issues").to_pylist():
        frames = [row["frame"]] if row["frame"] is not None else []
        yield _Row(_ISSUES[row["kind"]], "Malformed", row["layer"], row["reason"], None, frames, row["count"])
