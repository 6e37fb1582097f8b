"""Find requests without a complete answer, peers that fell silent, and streams that stand still."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.findings.evidence import called
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import CAPTURE_BITS, NS_PER_MS, request_mask
from latpcap.user_waits.segments import Segments, segments
from latpcap.user_waits.servers import server_keys
from latpcap.user_waits.slow_requests import event_streams, long_polls
from latpcap.vocabulary import SIDES, protocol_names

if TYPE_CHECKING:
    from latpcap.arrays import Array

MIN_REPEATS = 2
"""Fewest repeats without an answer that show a silent peer; a single one may be the last packet of a capture."""
MAX_WAIT_MS = 3_600_000.0
"""Upper bound on a wait until the end of the capture; a longer capture may be several files, joined."""
MIN_TLS_REQUEST = 64
"""Fewest bytes of an encrypted request; less may be close_notify (RFC 8446 6.1) or HTTP/2's GOAWAY."""
TWO_WAY = "websocket"
"""A protocol in which either side may send at any time."""
MIN_TWO_WAY_ANSWERS = 3
"""Fewest answered messages that show requests in such a protocol."""
ENDS = ("server", "server_port", "client")
"""Columns of "streams" that name the ends of a stream."""


@dataclass(frozen=True)
class UnansweredWait:
    """A request that was not answered, or a stream that stands still."""

    stream: int
    client: str
    server: str
    port: int
    frame: int
    waited_ms: float
    name: str
    """The request as a sentence names it; "" without a request."""
    exchange: int | None = None
    is_partial: bool = False
    """Whether the answer had begun."""
    is_missing: bool = False
    """Whether bytes of the answer are missing in the capture, perhaps only there."""
    cause: str = ""
    """The cause if the packets show no better one; for a silent peer "client" or "server", its side."""
    repeats: int = 0
    """Repeats that the silent peer did not answer."""

    @property
    def key(self) -> tuple[str, int]:
        """The server's address and port."""
        return self.server, self.port


def silence_finding(
    worst: UnansweredWait, waits: Sequence[UnansweredWait], cause: str, owner: str, sentence: str,
    values: Mapping[str, Any], **columns: Any,
) -> Finding:  # fmt: skip
    """Return a finding of kind "silence", shown by `worst`; `columns` are further ones, or replace the defaults."""
    defaults = {
        "kind": "silence", "server": worst.server, "server_port": worst.port, "cause": cause, "owner": owner,
        "clients": len({wait.client for wait in waits}), "client": worst.client,
        "streams": len({wait.stream for wait in waits}), "total_ms": sum(wait.waited_ms for wait in waits),
        "max_ms": worst.waited_ms, "worst_exchange": worst.exchange, "worst_stream": worst.stream,
        "worst_ms": worst.waited_ms, "worst_frames": (worst.frame,), "filter": wireshark_filter(worst.stream),
        "harm": "never", "sentence": sentence, "values": values,
    }  # fmt: skip
    return Finding(**{**defaults, **columns})


class _StreamFacts:
    """What decides whether a request was left without an answer, for each row of "streams"."""

    def __init__(self, streams: pa.Table, stretches: pa.Table, stream_rows: Array):
        """Read the facts of all streams; `stream_rows` has the row of each exchange's stream."""
        self.has_answer = arrays.numbers(streams, "server_packets") > 0
        self.end = arrays.numbers(streams, "end")
        self.is_closed = arrays.codes(streams, "closed_by")[0] >= 0
        self.is_closed_by_server = arrays.equals(streams, "closed_by", "server_fin", "server_rst")
        self.two_way_answers = np.zeros(streams.num_rows, np.uint32)
        is_requested, is_answered = np.zeros((2, streams.num_rows), bool)
        captures = np.full(streams.num_rows, -1, np.int64)
        for span, batch in arrays.sliced(stretches):
            rows = stream_rows[span]
            is_two_way = arrays.equals(batch, "protocol", TWO_WAY) & arrays.numbers(batch, "complete").astype(bool)
            np.add.at(self.two_way_answers, rows[is_two_way], 1)
            is_request = arrays.equals(batch, "protocol", *protocol_names("client_first"))
            is_requested[rows[is_request]] = True
            has_begun = ~np.isnan(arrays.numbers(batch, "response_first_frame").astype(float))
            is_answered[rows[is_request & has_begun]] = True
            captures[rows] = arrays.numbers(batch, "exchange").astype(np.int64) >> CAPTURE_BITS
        # unreadable data of the server, in protocols in which it only answers
        has_payload = arrays.numbers(streams, "server_payload_bytes") > 0
        self.has_unread_answers = is_requested & ~is_answered & has_payload
        self.capture_end = _capture_ends(self.end, captures)


class _Kind(IntEnum):
    """How a request stayed without a complete answer."""

    NEVER, CLOSED, RESET, HALF, MISSING = range(5)


def unanswered_requests(
    tables: Mapping[str, pa.Table], pushed: Pushed | None
) -> tuple[list[UnansweredWait], dict[tuple[str, int], int]]:
    """Find the requests without a complete answer, and count the requests of each server.

    - "unanswered_request": no answer for 1 s (`stuck_ms`) or more, until the stream or the capture ended.
    - "closed_on_request": the server closed the connection instead of answering.
    - no cause: the answer began and did not end, bytes of it are missing, or an RST met a request; `hung_streams` may
      explain these.
    """
    streams, stretches = tables["streams"], tables["stretches"]
    if not stretches.num_rows:
        return [], {}
    stream_rows = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream"))
    facts = _StreamFacts(streams, stretches, stream_rows)
    row_parts, wait_parts, kind_parts, counts = [], [], [], np.zeros(streams.num_rows, np.uint32)
    for span, batch in arrays.sliced(stretches):
        is_request = request_mask(batch)
        np.add.at(counts, stream_rows[span][is_request], 1)
        waited_ms = _waited_ms(batch, facts, stream_rows[span])
        kinds = _kinds(batch, facts, stream_rows[span], waited_ms)
        kinds[~is_request | long_polls(batch)] = -1  # long polls are meant to wait
        if pushed is not None:  # with pushes, requests and answers cannot be distinguished
            has_pushes = pushed.of_streams(arrays.numbers(batch, "stream")) > 0
            kinds[arrays.equals(batch, "protocol", TWO_WAY) & has_pushes] = -1
        matches = np.flatnonzero(kinds >= 0)
        row_parts.append(matches + span.start)
        wait_parts.append(waited_ms[matches])
        kind_parts.append(kinds[matches])
    rows, waited_ms, kinds = (np.concatenate(parts) for parts in (row_parts, wait_parts, kind_parts))
    columns = ("exchange", "stream", "request_first_frame", "method", "target")
    requests = zip(*(arrays.taken(stretches, name, rows).to_pylist() for name in columns), strict=True)
    ends = arrays.looked_up(streams, "stream", arrays.numbers(stretches, "stream")[rows], ENDS)
    causes = {_Kind.NEVER: "unanswered_request", _Kind.CLOSED: "closed_on_request"}
    waits = [
        UnansweredWait(
            stream, client, server, port, frame, wait,
            called(method, target) if method or target else words.say("nameless"), number,
            is_partial=kind == _Kind.HALF, is_missing=kind == _Kind.MISSING, cause=causes.get(kind, ""),
        )
        for (number, stream, frame, method, target), (server, port, client), wait, kind in zip(
            requests, ends, waited_ms.tolist(), kinds.tolist(), strict=True)
    ]  # fmt: skip
    return waits, _requests(streams, counts) if waits else {}


def _waited_ms(stretches: pa.Table, facts: _StreamFacts, stream_rows: Array) -> Array:
    """Return the time from each request to the end of its stream, or of the capture if the stream was still open."""
    requested = arrays.numbers(stretches, "request_end")
    to_capture_end = (facts.capture_end[stream_rows] - requested) / NS_PER_MS
    is_open = arrays.equals(stretches, "cut_by", "capture_end") & ~facts.is_closed[stream_rows]
    to_stream_end = (facts.end[stream_rows] - requested) / NS_PER_MS
    return np.where(is_open & (to_capture_end < MAX_WAIT_MS), to_capture_end, to_stream_end)


def _kinds(stretches: pa.Table, facts: _StreamFacts, stream_rows: Array, waited_ms: Array) -> Array:
    """Return the `_Kind` of each exchange, and -1 for those that were answered or cannot be judged."""
    is_open = facts.has_answer[stream_rows] & ~arrays.numbers(stretches, "complete").astype(bool)
    is_silent = np.isnan(arrays.numbers(stretches, "response_first_frame").astype(float))
    is_nameless = arrays.codes(stretches, "method")[0] < 0
    is_two_way = arrays.equals(stretches, "protocol", TWO_WAY)
    is_long = (waited_ms >= LIMITS["stuck_ms"]) & ~is_nameless
    is_half = is_open & ~is_silent & is_long & ~event_streams(stretches) & ~is_two_way
    may_expect = ~is_two_way | (facts.two_way_answers[stream_rows] >= MIN_TWO_WAY_ANSWERS)
    is_missing = arrays.equals(stretches, "cut_by", "gap")
    is_readable = ~facts.has_unread_answers[stream_rows] & ~is_missing
    is_unanswered = is_open & is_silent & may_expect & is_readable
    is_met = facts.is_closed_by_server[stream_rows] & arrays.equals(stretches, "cut_by", "fin", "rst")
    is_encrypted = is_nameless & arrays.equals(stretches, "protocol", "tls")
    is_encrypted &= arrays.numbers(stretches, "request_bytes") >= MIN_TLS_REQUEST
    needs_answer = arrays.equals(stretches, "protocol", *protocol_names("all_answered")) | is_encrypted
    is_reset = arrays.equals(stretches, "cut_by", "rst")
    masks = (is_long, is_met & needs_answer, is_met & is_reset)
    return np.select(
        [is_half, *(is_unanswered & mask for mask in masks), is_open & is_silent & is_long & is_missing],
        [_Kind.HALF, _Kind.NEVER, _Kind.CLOSED, _Kind.RESET, _Kind.MISSING], -1,
    )  # fmt: skip


def _capture_ends(end: Array, captures: Array) -> Array:
    """Return the end of each stream's capture; an archive of several captures has several ends."""
    if captures.max() <= 0:
        return np.full(len(end), end.max())
    has_capture = captures >= 0
    ends = np.zeros(int(captures.max()) + 1, end.dtype)
    np.maximum.at(ends, captures[has_capture], end[has_capture])
    return ends[captures]


def _requests(streams: pa.Table, counts: Array) -> dict[tuple[str, int], int]:
    """Return the number of requests of each server; `counts` has those of each stream."""
    first, server_of, _ = arrays.grouped(server_keys(streams))
    per_server = spill.sum_weights(server_of, counts, len(first)).astype(int).tolist()
    servers, ports = (arrays.taken(streams, name, first).to_pylist() for name in ("server", "server_port"))
    return dict(zip(zip(servers, ports, strict=True), per_server, strict=True))


def silent_peers(tables: Mapping[str, pa.Table]) -> Iterator[UnansweredWait]:
    """Find peers that sent nothing while the other side repeated its data for 1 s (`stuck_ms`) or more."""
    streams, events = tables["streams"], segments(tables)
    repeats = [arrays.numbers(streams, f"{side}_retransmissions") >= MIN_REPEATS for side in SIDES]
    packets = [arrays.numbers(streams, f"{side}_packets") > 0 for side in SIDES]
    stream_numbers = arrays.numbers(streams, "stream")[(repeats[0] | repeats[1]) & packets[0] & packets[1]]
    if events is None or not len(stream_numbers):
        return
    silent = [
        (number, is_client, frame, (until - since) / NS_PER_MS, count)
        for number, is_client, frame, since, count, until in events.gone(stream_numbers)
        if count >= MIN_REPEATS and (until - since) / NS_PER_MS >= LIMITS["stuck_ms"]
    ]
    ends = arrays.looked_up(streams, "stream", np.array([number for number, *_ in silent], stream_numbers.dtype), ENDS)
    for (number, is_client, frame, waited_ms, count), (server, port, client) in zip(silent, ends, strict=True):
        side = "client" if is_client else "server"
        yield UnansweredWait(number, client, server, port, frame, waited_ms, "", repeats=count, cause=side)


def standing_still(tables: Mapping[str, pa.Table], events: Segments, waiting: set[int]) -> list[UnansweredWait]:
    """Return streams that stand still, other than those that wait (`waiting`)."""
    streams = tables["streams"]
    still = np.union1d(np.union1d(events.stuck(), events.probed()), _with_holes(tables))
    numbers = [number for number in still.tolist() if number not in waiting]
    stream_numbers = np.array(numbers, arrays.numbers(streams, "stream").dtype)
    ends = arrays.looked_up(streams, "stream", stream_numbers, ENDS)
    return [
        UnansweredWait(number, client, server, port, 0, 0.0, "")
        for number, (server, port, client) in zip(numbers, ends, strict=True)
    ]


def _with_holes(tables: Mapping[str, pa.Table]) -> Array:
    """Return streams whose answer waited long for packets missing in the capture; the receiver may lack them too."""
    causes = tables["causes"]
    gaps = arrays.equals(causes, "cause", "capture_gap") & (arrays.numbers(causes, "duration_ms") >= LIMITS["stuck_ms"])
    numbers = np.unique(arrays.numbers(causes, "exchange")[gaps])
    matches = arrays.looked_up(tables["stretches"], "exchange", numbers, ("stream",)) if len(numbers) else []
    return np.array(sorted({stream for (stream,) in matches}), np.int64)
