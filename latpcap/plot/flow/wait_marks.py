"""What a flow graph marks beside its rows: waits with their owners, and the exchanges that rows belong to.

Reads rows of `causes` and `exchanges` and a page's rows, as plain values; gives marks, brackets, and the colours and
tags of the rows that end a wait. Knows nothing of fonts, pixels or matplotlib.
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
from latpcap.vocabulary import CAUSES, PROVEN, cause_names

FREEING = cause_names(trait="ends_with_ack")
"""The causes whose end lets a segment go that was ready; after others the next segment is only the next."""

HELD, FREED = "flow_held", "flow_freed"
"""The tags of the packet that ended a wait for an acknowledgement, and of the segment that it let go, as ids."""


@dataclass(frozen=True, slots=True)
class FlowMark:
    """Which wait stands between two rows, and whose is it?

    `upper` and `lower` are row numbers from 0: the packets that bound the wait. `ms` is the part of the wait
    that `cause` explains, in milliseconds; `of_ms` is the whole gap where only its largest part is named,
    else None. `cause` is None where the causes table has no row for the gap. `client` and `server` index the
    nodes of the stream. `upper` is -1 where the wait begins before the first row; `from_frame` is the frame then.
    """

    upper: int
    lower: int
    ms: float
    client: int
    server: int
    cause: str | None = None
    owner: str | None = None
    parent: str | None = None
    probable: bool = False
    of_ms: float | None = None
    from_frame: int | None = None

    @property
    def text(self) -> str:
        """What is written beside the wait, e.g. `43.0 ms delayed_ack (client)`."""
        length = f"{tenths(self.ms)} ms"
        if self.of_ms is not None:
            length = words.say("flow_part", part=tenths(self.ms), whole=tenths(self.of_ms))
        if self.cause is None:
            return length
        owner = f" ({self.owner})" if self.owner and self.owner != self.cause else ""
        return words.say("flow_wait_probable" if self.probable else "flow_wait", time=length, cause=self.cause + owner)

    @property
    def waiter(self) -> str | None:
        """Who waits for the owner: `client`, `server`, or None if nobody is named by `parent`."""
        if self.parent is None:
            return None
        return {"client": "server", "server": "client"}.get(self.owner or "")

    @property
    def waiter_text(self) -> str:
        """What is written at the waiting side, e.g. `server waits: nagle`; empty if nobody is named."""
        return words.say("flow_waits", side=self.waiter, cause=self.parent) if self.waiter else ""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One row of the causes table, in the picture's terms: instants in ns."""

    start: int
    end: int
    cause: str
    owner: str | None
    parent: str | None
    probable: bool
    from_frame: int | None
    to_frame: int | None


def mark(
    events: Sequence[Record], rows: Sequence[FlowRow], causes: Sequence[Record], mark_ms: float
) -> tuple[tuple[FlowRow, ...], tuple[FlowMark, ...]]:
    """Where did the packets wait for at least `mark_ms`, and why? Gives the rows, coloured, and the marks in
    the order of their lower row.

    `events` and `rows` run in parallel. A wait lies between the packets that enclose its instants; frames
    decide only between packets of the same instant. A row of `causes` belongs to the stream of one of its
    frames, or to the only stream there is.
    """
    stream_of = {event["frame"]: event["stream"] for event in events}
    numbers: dict[int, list[int]] = {}
    for number, event in enumerate(events):
        if event["stream"] >= 0:  # a pause between two pings is nobody's wait
            numbers.setdefault(event["stream"], []).append(number)
    pieces: dict[int, list[_Piece]] = {stream: [] for stream in numbers}
    for cause in causes:
        stream = stream_of.get(cause["to_frame"], stream_of.get(cause["from_frame"]))
        if stream is None and len(numbers) == 1:
            stream = next(iter(numbers))
        if stream in pieces and cause["end"] > cause["start"]:
            pieces[stream].append(_piece(cause))

    coloured = list(rows)
    longest: dict[int, float] = {}  # of the waits that colour a row
    found: list[FlowMark] = []
    for stream, of_stream in numbers.items():
        first = rows[of_stream[0]]
        forward = events[of_stream[0]]["from_client"] is not False
        client, server = (first.source, first.target) if forward else (first.target, first.source)
        ends = FlowMark(upper=0, lower=0, ms=0, client=client, server=server)
        waits = _Waits([events[i]["time"] for i in of_stream], [events[i]["frame"] for i in of_stream], pieces[stream])
        for at_upper, at_lower, wait in waits.marks(mark_ms, ends):
            upper, lower = of_stream[at_upper] if at_upper >= 0 else -1, of_stream[at_lower]
            if upper < 0 and lower == 0:  # there is no room above the first row; the page before ends with it
                continue
            found.append(replace(wait, upper=upper, lower=lower))
            if wait.cause is None:
                continue
            goes = events[lower].get("len") and _is_of(events[lower], _held_up(wait))
            waited = FREED if wait.cause in FREEING and goes else ""
            ended = [(lower, wait.cause, HELD if wait.cause == "delayed_ack" else waited)]
            freed = _freed(events, of_stream, lower, wait, pieces[stream]) if wait.cause in FREEING else []
            for number, name, tag in ended + [(number, wait.parent or wait.cause, FREED) for number in freed]:
                if wait.ms > longest.get(number, 0):
                    longest[number] = wait.ms
                    coloured[number] = replace(coloured[number], cause=name, tag=words.say(tag) if tag else "")
    found.sort(key=lambda wait: wait.lower)  # stable: waits of one gap stay in the order of time
    return tuple(coloured), tuple(found)


def _piece(cause: Record) -> _Piece:
    if cause["cause"] not in CAUSES:
        raise ValueError(f"cause {cause['cause']!r} is not one of {', '.join(CAUSES)}")
    confidence = cause["confidence"]
    return _Piece(
        start=cause["start"],
        end=cause["end"],
        cause=cause["cause"],
        owner=cause["owner"],
        parent=cause["parent"],
        probable=confidence is not None and confidence < PROVEN,
        from_frame=cause["from_frame"],
        to_frame=cause["to_frame"],
    )


def _held_up(wait: FlowMark) -> str | None:
    """Whose segments could not go: those of `client` or `server`? The receiver owns a held ACK and a full window."""
    if wait.cause in ("nagle", "cwnd"):
        return wait.owner
    return {"client": "server", "server": "client"}.get(wait.owner or "")


def _is_of(event: Record, side: str | None) -> bool:
    """Is this packet from that side, as far as both are known?"""
    if side is None or event["from_client"] is None:
        return True
    return bool(event["from_client"] == (side == "client"))


def _freed(
    events: Sequence[Record], of_stream: list[int], lower: int, wait: FlowMark, pieces: list[_Piece]
) -> list[int]:
    """The rows of the segments that the end of a wait let go: by the event's own word, else by the parent's
    piece that follows. Never those of the other side: they answer what went.
    """
    frame, instant, side = (events[lower][name] for name in ("frame", "time", "from_client"))
    freed = [i for i in of_stream if i > lower and events[i]["release_frame"] == frame]
    freed = [i for i in freed if side is None or events[i]["from_client"] != side]
    freed = [i for i in freed if _is_of(events[i], _held_up(wait))]
    if not freed and wait.parent:
        follow = {p.to_frame for p in pieces if p.cause == wait.parent and p.start == instant}
        freed = [i for i in of_stream if i > lower and events[i]["frame"] in follow]
    return freed


class _Waits:
    """The packets of one stream (instants in ns, and frames) against the pieces of its causes."""

    def __init__(self, times: list[int], frames: list[int], pieces: list[_Piece]) -> None:
        self.times = times
        self.at = {frame: number for number, frame in enumerate(frames)}
        unique: dict[tuple[Any, ...], _Piece] = {}  # exchanges sent back to back can share one wait
        for piece in pieces:
            unique.setdefault((piece.cause, piece.parent, piece.owner, piece.start, piece.end), piece)
        self.pieces = sorted(unique.values(), key=lambda piece: (piece.start, piece.end))

    def bounds(self, piece: _Piece) -> tuple[int, int] | None:
        """The packets around a piece, as numbers within the stream: -1 if it begins before the first and ends at one,
        None if it ends after the last.
        """
        upper = self.at.get(piece.from_frame if piece.from_frame is not None else -1, -1)
        if upper < 0 or self.times[upper] != piece.start:
            upper = bisect_right(self.times, piece.start) - 1
        lower = self.at.get(piece.to_frame if piece.to_frame is not None else -1, -1)
        if lower < 0 or self.times[lower] != piece.end:
            lower = bisect_left(self.times, piece.end)
        if not upper < lower < len(self.times) or (upper < 0 and self.times[lower] != piece.end):
            return None
        return upper, lower

    def marks(self, mark_ms: float, ends: FlowMark) -> list[tuple[int, int, FlowMark]]:
        """The waits of at least `mark_ms` in order of time, each with the numbers of its packets."""
        least = mark_ms * 1e6
        found: list[tuple[int, int, int, FlowMark]] = []
        for piece in self.pieces:
            bounds = self.bounds(piece)
            if bounds and piece.end - piece.start >= least:
                found.append((piece.start, *bounds, _mark(ends, piece, piece.end - piece.start)))
        marked = [(upper, lower) for _, upper, lower, _ in found]
        for number in range(1, len(self.times)):
            before, after = self.times[number - 1], self.times[number]
            if after - before < least:
                continue
            inside = [p for p in self.pieces if p.start < after and p.end > before]
            bare = _uncovered(before, after, inside)
            if inside and bare < least:
                if not any(upper < number <= lower for upper, lower in marked):
                    part, piece = max(
                        ((min(p.end, after) - max(p.start, before), p) for p in inside),
                        key=lambda pair: pair[0],
                    )
                    found.append((before, number - 1, number, _mark(ends, piece, part, after - before)))
            else:
                found.append((_first_bare(before, inside), number - 1, number, replace(ends, ms=bare / 1e6)))
        found.sort(key=lambda one: one[:3])
        return [(upper, lower, wait) for _, upper, lower, wait in found]


def _mark(ends: FlowMark, piece: _Piece, ns: int, of_ns: int | None = None) -> FlowMark:
    return replace(
        ends,
        ms=ns / 1e6,
        cause=piece.cause,
        owner=piece.owner,
        parent=piece.parent,
        probable=piece.probable,
        from_frame=piece.from_frame,
        of_ms=of_ns / 1e6 if of_ns is not None and ns < 0.95 * of_ns else None,
    )


def _first_bare(start: int, pieces: list[_Piece]) -> int:
    """From when on is a gap that begins at `start` not explained by the pieces, sorted by their start?"""
    for piece in pieces:
        if piece.start > start:
            break
        start = max(start, piece.end)
    return start


def _uncovered(start: int, end: int, pieces: list[_Piece]) -> int:
    """How many ns of start..end do no pieces explain? `pieces` are sorted by their start."""
    bare, reached = 0, start
    for piece in pieces:
        bare += max(0, min(piece.start, end) - reached)
        reached = max(reached, min(piece.end, end))
    return bare + max(0, end - reached)


_LONGEST_TARGET = 40  # characters; a target comes from the wire and may be of any length
_ON_ARROW = 24  # of these on an arrow
_BESIDE = ("connect", "pause", "push", "held", "one_way")
"""What stands in `exchanges` beside requests, in its column `method`."""


@dataclass(frozen=True, slots=True)
class FlowBracket:
    """From which row to which does an exchange go?

    `upper` and `lower` are row numbers from 0, `text` names the exchange and its latency. `begun` and
    `continued`: it began on an earlier page, it goes on on a later one.
    """

    upper: int
    lower: int
    stream: int
    text: str
    begun: bool = False
    continued: bool = False


def brackets(rows: Sequence[FlowRow], exchanges: Sequence[Record]) -> tuple[FlowBracket, ...]:
    """Which brackets does a page have, in the order of their first rows?"""
    of_stream: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        of_stream.setdefault(row.stream, []).append(number)
    begins = {exchange["request_first_frame"] for exchange in exchanges if not _is_setup(exchange)}
    found = []
    for exchange in exchanges:
        first = exchange["request_first_frame"]
        last = exchange["response_last_frame"] or exchange["request_last_frame"]
        inside = [n for n in of_stream.get(exchange["stream"], ()) if first <= rows[n].frame <= last]
        if _is_setup(exchange):  # it ends with the client's first byte, which belongs to the request
            inside = [n for n in inside if rows[n].frame not in begins]
        if inside:
            found.append(
                FlowBracket(
                    upper=inside[0],
                    lower=inside[-1],
                    stream=exchange["stream"],
                    text=text_of(exchange),
                    begun=rows[inside[0]].frame != first,
                    continued=rows[inside[-1]].frame != last and inside[-1] == of_stream[exchange["stream"]][-1],
                )
            )
    return tuple(sorted(found, key=lambda one: (one.upper, one.lower)))


def label_messages(rows: Sequence[FlowRow], exchanges: Sequence[Record]) -> tuple[FlowRow, ...]:
    """The rows, with the request that begins with a packet, and the status of the answer that does."""
    found_at: dict[tuple[int, int], list[str]] = {}
    for exchange in exchanges:
        if _is_setup(exchange):
            continue
        request = [word for word in (exchange["method"], _target(exchange, _ON_ARROW)) if word]
        texts = {"request_first_frame": " ".join(request), "response_first_frame": str(exchange["status"] or "")}
        for name, text in texts.items():
            if text and exchange[name] is not None:
                found_at.setdefault((exchange["stream"], exchange[name]), []).append(text)
    found = []
    for row in rows:
        here = found_at.get((row.stream, row.frame), [])
        if len(here) > 1:  # pipelined requests in one segment
            here[0] = words.say("flow_and_more", first=here[0], n=len(here) - 1)
        found.append(replace(row, message=here[0]) if here else row)
    return tuple(found)


def _target(exchange: Record, longest: int) -> str:
    raw = exchange["target"] or ""
    target = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in raw)
    return target if len(target) <= longest else target[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def text_of(exchange: Record) -> str:
    """How is an exchange named in a picture, e.g. `exchange 879: GET / 200, 43.9 ms`?"""
    if _is_setup(exchange):
        method = exchange["method"]
        parts = [words.say(f"flow_of_{method}" if method in _BESIDE else "flow_of_other"),
                 f"{tenths((exchange['end'] - exchange['start']) / 1e6)} ms"]  # fmt: skip
        return words.say("flow_exchange", exchange=exchange["exchange"], about=words.say("comma").join(parts))
    what = f"{requested(exchange['method'], _target(exchange, _LONGEST_TARGET))} {exchange['status'] or ''}".strip()
    latency = exchange["latency_ms"]
    took = f"{tenths(latency)} ms" if latency is not None else words.say("flow_cut_by", by=exchange["cut_by"] or "cut")
    about = words.say("comma").join(word for word in (what, took) if word)
    return words.say("flow_exchange", exchange=exchange["exchange"], about=about)


def _is_setup(exchange: Record) -> bool:
    """A connection's set-up, a push, a client's pause, or what one direction lets us suspect: no request."""
    return bool(exchange["protocol"] == "tcp")
