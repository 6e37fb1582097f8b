"""Who never got an answer, and who stopped giving any? Streams, exchanges and events in; findings out.

A request without an answer has no latency, so it is in no percentile: it is the slowest of all. A peer that fell silent
makes its other side repeat what nobody takes: those repeats repair nothing, and no path has to have lost anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays, longarrays
from latpcap.findings.pushed import Pushed
from latpcap.findings.schema import Finding
from latpcap.findings.segments import segments
from latpcap.findings.slow import polls
from latpcap.findings.totals import SETUP, endpoint, server_keys
from latpcap.findings.traffic import called
from latpcap.format import ms
from latpcap.limits import LIMITS
from latpcap.tables import CAPTURE_BITS

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

REPEATS = 2
"""So many repeats without any answer show that a peer has gone; one may be the last packet of a capture."""
MOST_MS = 3_600_000.0
"""A capture that goes on for longer than this behind a connection may be several, joined."""
MS = 1e6
ASKED_FIRST = ("http", "tls")
"""In these the server says nothing before it is asked."""
ALL_ANSWERED = ("http", "http2", "grpc")
"""In these no request goes without an answer, not even the last one."""
TALK = "websocket"
"""In this both sides may speak when they like."""
ENDS = ("server", "server_port", "client")


@dataclass(frozen=True)
class _Case:
    stream: int
    client: str
    frame: int
    waited_ms: float
    words: str
    exchange: int | None = None
    number: int = 0


def found(tables: Mapping[str, pa.Table], pushed: Pushed | None = None) -> list[Finding]:
    """Requests that were never answered, and peers that fell silent; by server, the longest wait first.

    `pushed`: on which streams servers speak unasked.
    """
    return sorted(_unanswered(tables, pushed) + _gone(tables), key=lambda f: -(f.max_ms or 0.0))


def _unanswered(tables: Mapping[str, pa.Table], pushed: Pushed | None) -> list[Finding]:
    """Requests that had a second and more, and got nothing, until their stream ended, or the capture; and those whose
    connection the server closed instead.
    """
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    if not exchanges.num_rows:
        return []
    place = longarrays.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    answers, end = arrays.numbers(streams, "server_packets") > 0, arrays.numbers(streams, "end")
    closed = arrays.codes(streams, "closed_by")[0] >= 0
    shut = _is(streams, "closed_by", "server_fin", "server_rst")
    lost = _unread_answers(streams, exchanges, place)
    last = _last(end, exchanges, place)
    found, long, hung_up, counts = [], [], [], np.zeros(streams.num_rows, np.uint32)
    for span, rows in arrays.sliced(exchanges):
        asked = ~_is(rows, "protocol", SETUP)
        np.add.at(counts, place[span][asked], 1)
        silent = np.isnan(arrays.numbers(rows, "response_first_frame").astype(float))
        incomplete = ~arrays.numbers(rows, "complete").astype(bool)
        asked_at, mine = arrays.numbers(rows, "request_end"), place[span]
        left = (last[mine] - asked_at) / MS
        still = _is(rows, "cut_by", "capture_end") & ~closed[mine] & (left < MOST_MS)
        waited = np.where(still, left, (end[mine] - asked_at) / MS)
        which = asked & ~polls(rows) & ~_is(rows, "cut_by", "gap")  # a poll that is meant to wait may wait
        which &= answers[mine] & ~lost[mine] & silent & incomplete & (arrays.codes(rows, "method")[0] >= 0)
        never = waited >= LIMITS["stuck_ms"]
        instead = shut[mine] & _is(rows, "cut_by", "fin", "rst") & _is(rows, "protocol", *ALL_ANSWERED) & ~never
        which &= never | instead
        if pushed is not None:  # there nobody says whether a message asks for anything, or what is an answer to it
            which &= ~(_is(rows, "protocol", TALK) & (pushed.of_streams(arrays.numbers(rows, "stream")) > 0))
        found.append(np.flatnonzero(which) + span.start)
        long.append(waited[which])
        hung_up.append(instead[which])
    rows, waited, instead = (np.concatenate(parts) for parts in (found, long, hung_up))
    columns = ("exchange", "stream", "request_first_frame", "method", "target")
    seen = zip(*(arrays.taken(exchanges, c, rows).to_pylist() for c in columns), strict=True)
    groups: dict[tuple[str, tuple[str, int]], list[_Case]] = defaultdict(list)
    ends = arrays.looked_up(streams, "stream", arrays.numbers(exchanges, "stream")[rows], ENDS)
    cases = zip(seen, ends, waited.tolist(), instead.tolist(), strict=True)
    for (number, stream, frame, method, target), (server, port, client), wait, closes in cases:
        cause = "closed_on_request" if closes else "unanswered_request"
        groups[cause, (server, port)].append(_Case(stream, client, frame, wait, called(method, target), number))
    asked_of = _requests(streams, counts) if groups else {}
    return [_row(cause, "server", key, mine, asked_of[key]) for (cause, key), mine in groups.items()]


def _last(end: Array, exchanges: pa.Table, place: Array) -> Array:
    """When did the capture of each stream end? Each of several that answer as one has its own end."""
    import numpy as np

    which = np.full(len(end), -1, np.int64)
    for span, rows in arrays.sliced(exchanges):
        which[place[span]] = arrays.numbers(rows, "exchange").astype(np.int64) >> CAPTURE_BITS
    if which.max() <= 0:
        return np.full(len(end), end.max())
    known = which >= 0
    ends = np.zeros(int(which.max()) + 1, end.dtype)
    np.maximum.at(ends, which[known], end[known])
    found: Array = ends[which]
    return found


def _is(rows: pa.Table, column: str, *names: str) -> Array:
    """In which rows does this column say one of these words?"""
    import numpy as np

    code, words = arrays.codes(rows, column)
    found: Array = np.isin(code, [words.index(name) for name in names if name in words])
    return found


def _unread_answers(streams: pa.Table, exchanges: pa.Table, place: Array) -> Array:
    """On which streams did the server say something of which nothing could be read, where it speaks only when asked?"""
    import numpy as np

    spoken, heard = np.zeros(streams.num_rows, bool), np.zeros(streams.num_rows, bool)
    for span, rows in arrays.sliced(exchanges):
        asked = _is(rows, "protocol", *ASKED_FIRST)
        spoken[place[span][asked]] = True
        first = arrays.numbers(rows, "response_first_frame").astype(float)
        heard[place[span][asked & ~np.isnan(first)]] = True
    said: Array = spoken & ~heard & (arrays.numbers(streams, "server_payload_bytes") > 0)
    return said


def _requests(streams: pa.Table, counts: Array) -> dict[tuple[str, int], int]:
    """How many requests did each server get? `counts` has those of each stream."""
    first, which, _ = arrays.grouped(server_keys(streams))
    asked = longarrays.weighed(which, counts, len(first)).astype(int).tolist()
    servers, ports = (arrays.taken(streams, name, first).to_pylist() for name in ("server", "server_port"))
    return dict(zip(zip(servers, ports, strict=True), asked, strict=True))


def _gone(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Peers that said nothing any more while the other side repeated what it had sent, for a second and more."""
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    many = [arrays.numbers(streams, f"{side}_retransmissions") >= REPEATS for side in ("client", "server")]
    both = (arrays.numbers(streams, "client_packets") > 0) & (arrays.numbers(streams, "server_packets") > 0)
    wanted = arrays.numbers(streams, "stream")[(many[0] | many[1]) & both]
    if events is None or not len(wanted):
        return []
    groups: dict[tuple[str, str, int], list[_Case]] = defaultdict(list)
    gone = [
        (number, is_client, frame, (until - since) / MS, repeats)
        for number, is_client, frame, since, repeats, until in events.gone(wanted)
        if repeats >= REPEATS and (until - since) / MS >= LIMITS["stuck_ms"]
    ]
    ends = arrays.looked_up(streams, "stream", np.array([number for number, *_ in gone], wanted.dtype), ENDS)
    for (number, is_client, frame, waited, repeats), (server, port, client) in zip(gone, ends, strict=True):
        case = _Case(number, client, frame, waited, "", number=repeats)
        groups["client" if is_client else "server", server, port].append(case)
    return [_row("silent_peer", side, (server, port), cases, 0) for (side, server, port), cases in groups.items()]


def _row(cause: str, owner: str, key: tuple[str, int], cases: list[_Case], of: int) -> Finding:
    cases.sort(key=lambda c: c.waited_ms)
    worst = cases[-1]
    name = endpoint(*key)
    if cause == "silent_peer":
        says = _silent_words(owner, name, cases)
    else:
        what = f"{worst.words} (frame {worst.frame})"
        many = f"{len(cases):,} of {of:,} requests"
        passed = f"{ms(worst.waited_ms)} ms" if worst.waited_ms < MOST_MS else "more than an hour"
        says = f"{name} never answered {what}: {passed} passed without an answer"
        if len(cases) > 1:
            says = f"{name} never answered {many}; the longest wait is {passed}, for {what}"
        if cause == "closed_on_request":
            says = f"{name} closed the connection instead of answering "
            more = f", 1 of {of:,} requests" if of > 1 else ""
            says += f"{what}{more}" if len(cases) == 1 else f"{many}, one of them {what}"
    clients, sure = {c.client for c in cases}, cause == "closed_on_request"
    return Finding(
        kind="silence", server=key[0], server_port=key[1], cause=cause, owner=owner, clients=len(clients),
        client=worst.client, exchanges=len(cases) if of else None, of_exchanges=of or None,
        streams=len({c.stream for c in cases}), total_ms=sum(c.waited_ms for c in cases), max_ms=worst.waited_ms,
        grade="proven" if sure else "probable", confidence=LIMITS[f"{'reset' if sure else 'unanswered'}_confidence"],
        worst_exchange=worst.exchange,
        worst_stream=worst.stream, worst_ms=worst.waited_ms, worst_frames=(worst.frame,),
        filter=f"tcp.stream eq {worst.stream}", says=says,
    )  # fmt: skip


def _silent_words(owner: str, name: str, cases: list[_Case]) -> str:
    worst = cases[-1]
    who = f"{name} says" if owner == "server" else f"the client of {name} says"
    other = "client" if owner == "server" else "server"
    says = (
        f"{who} nothing after frame {worst.frame}: the {other} repeats its data {worst.number:,} times in "
        f"{ms(worst.waited_ms)} ms and gets no acknowledgement"
    )
    return says if len(cases) == 1 else f"{says}; the same on {len(cases):,} connections"
