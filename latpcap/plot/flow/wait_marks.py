"""The waits between the rows of a flow graph, with their owners, and the brackets of its exchanges.

Reads rows of `causes` and `exchanges` and the rows of a page, as plain values. Returns marks, brackets, and the rows
with the colours and tags of those that end a wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from latpcap import words
from latpcap.format import requested
from latpcap.plot.flow.packet_rows import FlowRow, Record
from latpcap.plot.numbers import tenths
from latpcap.vocabulary import CAUSES, SIDES, cause_names, grade_of

RELEASING = cause_names(trait="ends_with_ack")
"""Causes whose end releases a segment that was ready to be sent; after other causes the next segment is new data."""

HELD, FREED = "flow_held", "flow_freed"
"""Tags, as ids of words: the ACK that ended a wait for an acknowledgement, and the segment that it released."""
_MAX_TARGET, _MAX_TARGET_ON_ARROW = 40, 24
"""Characters of a request's target in a bracket's text and on an arrow; on the wire it may have any length."""
_WAITS = {
    "proven": "flow_wait",
    "probable": "flow_wait_probable",
    "suspected": "flow_wait_suspected",
    "unknown": "flow_wait_unknown",
}
"""Ids of words by the grade of the cause."""
_WHOLE_GAP_SHARE = 0.95
"""Share of a gap from which its cause is shown as the cause of the whole gap."""
_NO_REQUEST = ("connect", "pause", "push", "held", "one_way")
"""Values of the column `method` for rows of `exchanges` that are not requests."""


@dataclass(frozen=True, slots=True)
class FlowMark:
    """A wait between two rows, with its owner."""

    upper: int
    """Row of the packet before the wait, from 0; -1 where the wait begins before the first row of the page."""
    lower: int
    """Row of the packet that ends the wait."""
    ms: float
    """Time that `cause` explains."""
    client: int
    """Index of the client among the nodes."""
    server: int
    cause: str | None = None
    """None where the causes table has no row for the gap."""
    owner: str | None = None
    parent: str | None = None
    """The cause by which the other end waited for the owner, e.g. `nagle` for a delayed ACK; None if there is none."""
    grade: str = "proven"
    of_ms: float | None = None
    """Length of the whole gap where `cause` is only its largest part, else None."""
    from_frame: int | None = None
    """The frame that begins the wait, which may be on an earlier page."""

    @property
    def text(self) -> str:
        """The words of the wait, e.g. `43.0 ms delayed_ack (client)`."""
        length = f"{tenths(self.ms)} ms"
        if self.of_ms is not None:
            length = words.say("flow_part", part=tenths(self.ms), whole=tenths(self.of_ms))
        if self.cause is None:
            return length
        owner = f" ({self.owner})" if self.owner and self.owner != self.cause else ""
        return words.say(_WAITS[self.grade], time=length, cause=self.cause + owner)

    @property
    def waiter(self) -> str | None:
        """The end that waits for the owner, `client` or `server`; None without a `parent`."""
        if self.parent is None:
            return None
        return SIDES.get(self.owner or "")

    @property
    def waiter_text(self) -> str:
        """The words at the waiting end, e.g. `server waits: nagle`; empty without a `waiter`."""
        return words.say("flow_waits", side=self.waiter, cause=self.parent) if self.waiter else ""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One row of the causes table; instants in ns."""

    start: int
    end: int
    cause: str
    owner: str | None
    parent: str | None
    grade: str
    from_frame: int | None
    to_frame: int | None


def mark(
    events: Sequence[Record], rows: Sequence[FlowRow], causes: Sequence[Record], mark_ms: float
) -> tuple[tuple[FlowRow, ...], tuple[FlowMark, ...]]:
    """Find the waits of at least `mark_ms`. Returns the rows, coloured, and the marks in the order of their lower row.

    `events` and `rows` run in parallel. A wait is placed between the packets around its instants; its frame numbers
    decide only between packets of one instant. A row of `causes` belongs to the stream of one of its frames, or to
    the only stream on the page.
    """
    stream_of = {event["frame"]: event["stream"] for event in events}
    numbers: dict[int, list[int]] = {}
    for number, event in enumerate(events):
        if event["stream"] >= 0:  # gaps between packets that are not TCP are not waits
            numbers.setdefault(event["stream"], []).append(number)
    pieces: dict[int, list[_Piece]] = {stream: [] for stream in numbers}
    for cause in causes:
        stream = stream_of.get(cause["to_frame"], stream_of.get(cause["from_frame"]))
        if stream is None and len(numbers) == 1:
            stream = next(iter(numbers))
        if stream in pieces and cause["end"] > cause["start"]:
            pieces[stream].append(_piece(cause))

    coloured = list(rows)
    longest: dict[int, float] = {}  # by row, ms of the wait that colours it
    marks: list[FlowMark] = []
    for stream, of_stream in numbers.items():
        first = rows[of_stream[0]]
        forward = events[of_stream[0]]["from_client"] is not False
        client, server = (first.source, first.target) if forward else (first.target, first.source)
        template = FlowMark(upper=0, lower=0, ms=0, client=client, server=server)
        waits = _Waits([events[i]["time"] for i in of_stream], [events[i]["frame"] for i in of_stream], pieces[stream])
        for at_upper, at_lower, wait in waits.marks(mark_ms, template):
            upper, lower = of_stream[at_upper] if at_upper >= 0 else -1, of_stream[at_lower]
            if upper < 0 and lower == 0:  # the page before, which ends with this row, has the mark
                continue
            marks.append(replace(wait, upper=upper, lower=lower))
            if wait.cause is None:
                continue
            is_released_data = events[lower].get("len") and _is_from(events[lower], _blocked_side(wait))
            released_tag = FREED if wait.cause in RELEASING and is_released_data else ""
            ended = [(lower, wait.cause, HELD if wait.cause == "delayed_ack" else released_tag)]
            freed = _released_rows(events, of_stream, lower, wait, pieces[stream]) if wait.cause in RELEASING else []
            for number, name, tag in ended + [(number, wait.parent or wait.cause, FREED) for number in freed]:
                if wait.ms > longest.get(number, 0):
                    longest[number] = wait.ms
                    coloured[number] = replace(coloured[number], cause=name, tag=words.say(tag) if tag else "")
    marks.sort(key=lambda wait: wait.lower)  # stable: waits of one gap stay in the order of time
    return tuple(coloured), tuple(marks)


def _piece(cause: Record) -> _Piece:
    if cause["cause"] not in CAUSES:
        raise ValueError(f"cause {cause['cause']!r} is not one of {', '.join(CAUSES)}")
    confidence: float | None = cause["confidence"]
    grade: str | None = cause["grade"]
    if grade is None:
        grade = "proven" if confidence is None else grade_of(confidence)
    return _Piece(
        start=cause["start"],
        end=cause["end"],
        cause=cause["cause"],
        owner=cause["owner"],
        parent=cause["parent"],
        grade=grade,
        from_frame=cause["from_frame"],
        to_frame=cause["to_frame"],
    )


def _blocked_side(wait: FlowMark) -> str | None:
    """Return the end whose segments had to wait: the owner of a `nagle` or `cwnd` wait, else the other end of the
    owner, who as the receiver held an ACK or had a full window. None if no end owns the wait.
    """
    if wait.cause in ("nagle", "cwnd"):
        return wait.owner
    return SIDES.get(wait.owner or "")


def _is_from(event: Record, side: str | None) -> bool:
    """Return whether that side sent this packet; true if either is not known."""
    if side is None or event["from_client"] is None:
        return True
    return bool(event["from_client"] == (side == "client"))


def _released_rows(
    events: Sequence[Record], of_stream: list[int], lower: int, wait: FlowMark, pieces: list[_Piece]
) -> list[int]:
    """Return the rows of the segments that the end of a wait released: by `release_frame`, else by the `parent` cause
    that follows. Segments of the side that sent the ACK are none of them.
    """
    frame, instant, side = (events[lower][name] for name in ("frame", "time", "from_client"))
    freed = [i for i in of_stream if i > lower and events[i]["release_frame"] == frame]
    freed = [i for i in freed if side is None or events[i]["from_client"] != side]
    freed = [i for i in freed if _is_from(events[i], _blocked_side(wait))]
    if not freed and wait.parent:
        follow = {piece.to_frame for piece in pieces if piece.cause == wait.parent and piece.start == instant}
        freed = [i for i in of_stream if i > lower and events[i]["frame"] in follow]
    return freed


class _Waits:
    """The packets of one stream (instants in ns, and frames), and the causes of its waits."""

    def __init__(self, times: list[int], frames: list[int], pieces: list[_Piece]) -> None:
        self.times = times
        self.number_of = {frame: number for number, frame in enumerate(frames)}
        unique: dict[tuple[Any, ...], _Piece] = {}  # pipelined exchanges can have one wait in common
        for piece in pieces:
            unique.setdefault((piece.cause, piece.parent, piece.owner, piece.start, piece.end), piece)
        self.pieces = sorted(unique.values(), key=lambda piece: (piece.start, piece.end))

    def bounds(self, piece: _Piece) -> tuple[int, int] | None:
        """Return the packets around a piece, as numbers within the stream.

        The first is -1 if the piece begins before the first packet and ends at the instant of a packet. None if the
        piece ends after the last packet.
        """
        upper = self.number_of.get(piece.from_frame if piece.from_frame is not None else -1, -1)
        if upper < 0 or self.times[upper] != piece.start:
            upper = bisect_right(self.times, piece.start) - 1
        lower = self.number_of.get(piece.to_frame if piece.to_frame is not None else -1, -1)
        if lower < 0 or self.times[lower] != piece.end:
            lower = bisect_left(self.times, piece.end)
        if not upper < lower < len(self.times) or (upper < 0 and self.times[lower] != piece.end):
            return None
        return upper, lower

    def marks(self, mark_ms: float, template: FlowMark) -> list[tuple[int, int, FlowMark]]:
        """Return the waits of at least `mark_ms` in order of time, each with the numbers of its packets.

        First the causes that are long enough; then the gaps between packets that no cause explains, or that several
        short causes explain together: of these the longest is named.
        """
        min_ns = mark_ms * 1e6
        marks: list[tuple[int, int, int, FlowMark]] = []
        for piece in self.pieces:
            bounds = self.bounds(piece)
            if bounds and piece.end - piece.start >= min_ns:
                marks.append((piece.start, *bounds, _mark(template, piece, piece.end - piece.start)))
        marked = [(upper, lower) for _, upper, lower, _ in marks]
        for number in range(1, len(self.times)):
            before, after = self.times[number - 1], self.times[number]
            if after - before < min_ns:
                continue
            inside = [piece for piece in self.pieces if piece.start < after and piece.end > before]
            unexplained = _unexplained_ns(before, after, inside)
            if inside and unexplained < min_ns:
                if not any(upper < number <= lower for upper, lower in marked):
                    part, piece = max(
                        ((min(piece.end, after) - max(piece.start, before), piece) for piece in inside),
                        key=lambda pair: pair[0],
                    )
                    marks.append((before, number - 1, number, _mark(template, piece, part, after - before)))
            else:
                wait = replace(template, ms=unexplained / 1e6)
                marks.append((_first_unexplained(before, inside), number - 1, number, wait))
        marks.sort(key=lambda wait: wait[:3])
        return [(upper, lower, wait) for _, upper, lower, wait in marks]


def _mark(template: FlowMark, piece: _Piece, ns: int, of_ns: int | None = None) -> FlowMark:
    return replace(
        template,
        ms=ns / 1e6,
        cause=piece.cause,
        owner=piece.owner,
        parent=piece.parent,
        grade=piece.grade,
        from_frame=piece.from_frame,
        of_ms=of_ns / 1e6 if of_ns is not None and ns < _WHOLE_GAP_SHARE * of_ns else None,
    )


def _first_unexplained(start: int, pieces: list[_Piece]) -> int:
    """Return the first instant of a gap from `start` on that no piece covers. `pieces` are sorted by their start."""
    for piece in pieces:
        if piece.start > start:
            break
        start = max(start, piece.end)
    return start


def _unexplained_ns(start: int, end: int, pieces: list[_Piece]) -> int:
    """Return the ns from start to end that no piece covers. `pieces` are sorted by their start."""
    unexplained, reached = 0, start
    for piece in pieces:
        unexplained += max(0, min(piece.start, end) - reached)
        reached = max(reached, min(piece.end, end))
    return unexplained + max(0, end - reached)


@dataclass(frozen=True, slots=True)
class FlowBracket:
    """The bracket that joins the rows of an exchange."""

    upper: int
    """First row, from 0."""
    lower: int
    stream: int
    text: str
    """Names the exchange and its latency."""
    begun: bool = False
    """Whether the exchange began on an earlier page."""
    continued: bool = False
    """Whether the exchange goes on on a later page."""


def brackets(rows: Sequence[FlowRow], exchanges: Sequence[Record]) -> tuple[FlowBracket, ...]:
    """Return the brackets of a page in the order of their first rows."""
    of_stream: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        of_stream.setdefault(row.stream, []).append(number)
    begins = {exchange["request_first_frame"] for exchange in exchanges if not _is_no_request(exchange)}
    joined = []
    for exchange in exchanges:
        first = exchange["request_first_frame"]
        last = exchange["response_last_frame"] or exchange["request_last_frame"]
        inside = [row for row in of_stream.get(exchange["stream"], ()) if first <= rows[row].frame <= last]
        if _is_no_request(exchange):  # it ends with the client's first byte, which belongs to the request
            inside = [row for row in inside if rows[row].frame not in begins]
        if inside:
            joined.append(
                FlowBracket(
                    upper=inside[0],
                    lower=inside[-1],
                    stream=exchange["stream"],
                    text=text_of(exchange),
                    begun=rows[inside[0]].frame != first,
                    continued=rows[inside[-1]].frame != last and inside[-1] == of_stream[exchange["stream"]][-1],
                )
            )
    return tuple(sorted(joined, key=lambda bracket: (bracket.upper, bracket.lower)))


def label_messages(rows: Sequence[FlowRow], exchanges: Sequence[Record]) -> tuple[FlowRow, ...]:
    """Return the rows, with the request or the status that begins with each as its `message`."""
    texts_at: dict[tuple[int, int], list[str]] = {}
    for exchange in exchanges:
        if _is_no_request(exchange):
            continue
        request = [word for word in (exchange["method"], _target(exchange, _MAX_TARGET_ON_ARROW)) if word]
        texts = {"request_first_frame": " ".join(request), "response_first_frame": str(exchange["status"] or "")}
        for name, text in texts.items():
            if text and exchange[name] is not None:
                texts_at.setdefault((exchange["stream"], exchange[name]), []).append(text)
    labelled = []
    for row in rows:
        texts_here = texts_at.get((row.stream, row.frame), [])
        if len(texts_here) > 1:  # pipelined requests in one segment
            texts_here[0] = words.say("flow_and_more", first=texts_here[0], n=len(texts_here) - 1)
        labelled.append(replace(row, message=texts_here[0]) if texts_here else row)
    return tuple(labelled)


def _target(exchange: Record, max_length: int) -> str:
    raw = exchange["target"] or ""
    target = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in raw)
    return target if len(target) <= max_length else target[: max_length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def text_of(exchange: Record) -> str:
    """Return the name of an exchange in a picture, e.g. `exchange 879: GET / 200, 43.9 ms`."""
    if _is_no_request(exchange):
        method = exchange["method"]
        parts = [words.say(f"flow_of_{method}" if method in _NO_REQUEST else "flow_of_other"),
                 f"{tenths((exchange['end'] - exchange['start']) / 1e6)} ms"]  # fmt: skip
        return words.say("flow_exchange", exchange=exchange["exchange"], about=words.say("comma").join(parts))
    request = f"{requested(exchange['method'], _target(exchange, _MAX_TARGET))} {exchange['status'] or ''}".strip()
    latency = exchange["latency_ms"]
    time = f"{tenths(latency)} ms" if latency is not None else words.say("flow_cut_by", by=exchange["cut_by"] or "cut")
    about = words.say("comma").join(word for word in (request, time) if word)
    return words.say("flow_exchange", exchange=exchange["exchange"], about=about)


def _is_no_request(exchange: Record) -> bool:
    """Return whether this row of `exchanges` is not a request: a connection's set-up, a push, a client's pause, or a
    wait that is only suspected because one direction was captured.
    """
    return bool(exchange["protocol"] == "tcp")
