"""Who never got an answer, and who stopped giving any? Streams, exchanges and events in; findings out.

A request without an answer has no latency, so it is in no percentile: it is the slowest of all. A peer that fell silent
makes its other side repeat what nobody takes: those repeats repair nothing, and no path has to have lost anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays, spill, words
from latpcap.account import course
from latpcap.account.segments import segments
from latpcap.account.slow import polls
from latpcap.account.slow import streams as streaming
from latpcap.account.totals import endpoint, server_keys
from latpcap.findings import hung
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding
from latpcap.findings.traffic import called
from latpcap.limits import LIMITS
from latpcap.tables import CAPTURE_BITS, MS, SETUP
from latpcap.vocabulary import protocol_names

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

REPEATS = 2
"""So many repeats without any answer show that a peer has gone; one may be the last packet of a capture."""
MOST_MS = 3_600_000.0
"""A capture that goes on for longer than this behind a connection may be several, joined."""
SAYS_MORE = 64
"""A record of TLS with so many bytes says more than that its sender closes (RFC 8446 6.1), or HTTP/2's good-bye."""
TALK, ANSWERS = "websocket", 3
"""In this both sides may speak when they like: that messages ask for answers is seen by so many that got one."""
ENDS = ("server", "server_port", "client")


@dataclass(frozen=True)
class _Case(hung.Case):
    cause: str = ""
    """What it is where its packets say no more; of a peer that fell silent its side."""
    repeats: int = 0


def found(tables: Mapping[str, pa.Table], pushed: Pushed | None = None) -> list[Finding]:
    """Requests that were never answered, and peers that fell silent; by server, the longest wait first.

    `pushed`: on which streams servers speak unasked.
    """
    asked, asked_of = _unanswered(tables, pushed)
    gone = _gone(tables)
    explained, done, known, answered, left = _explained(tables, [*asked, *gone], asked_of)
    known |= {case.exchange for case in asked if case.stream in answered}
    groups: dict[tuple[str, str, int], list[_Case]] = defaultdict(list)
    for case in asked:
        if case.cause and case.exchange not in known:
            groups[case.cause, case.server, case.port].append(case)
    found = [_row(cause, "server", at, mine, asked_of[at]) for cause, at, mine in _keyed(groups)]
    groups.clear()
    for case in gone:
        if case.stream not in done and case.stream not in left:
            groups[case.cause, case.server, case.port].append(case)
    found += [_row("silent_peer", side, at, mine, 0) for side, at, mine in _keyed(groups)]
    return sorted(explained + found, key=lambda f: -(f.max_ms or 0.0))


def _explained(
    tables: Mapping[str, pa.Table], cases: Sequence[_Case], asked_of: Mapping[tuple[str, int], int]
) -> tuple[list[Finding], set[int], set[int | None], set[int], set[int]]:
    """What the packets of these streams, and of those that stand still, explain: findings, streams and exchanges. And
    streams on which the server said more than the capture has; and those whose silent side had reset them before.
    """
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    if events is None:
        return [], set(), set(), set(), set()
    numbers = arrays.numbers(streams, "stream")
    waiting = {case.stream for case in cases}
    standing = [n for n in np.union1d(events.stuck(), events.probed()).tolist() if n not in waiting]
    ends = arrays.looked_up(streams, "stream", np.array(standing, numbers.dtype), ENDS)
    more = [
        hung.Case(number, client, server, port, 0, 0.0, "")
        for number, (server, port, client) in zip(standing, ends, strict=True)
    ]
    every = sorted([*cases, *more], key=lambda case: -case.waited_ms)
    courses = course.of(events, np.array(list(dict.fromkeys(case.stream for case in every)), numbers.dtype))
    named = ("client_icmp_too_big", "client_icmp_next_mtu", "server_icmp_too_big", "server_icmp_next_mtu", "position")
    wanted = np.array(list(courses), numbers.dtype)
    facts = dict(zip(courses, arrays.looked_up(streams, "stream", wanted, named), strict=True))
    told = {n: ((f[0] or 0) + (f[2] or 0), f[3] or f[1] or 0) for n, f in facts.items()}
    streams_done: set[int] = set()
    exchanges_done: set[int | None] = set()
    found: list[Finding] = []
    idled = hung.survived(tables["exchanges"], streams) if tables["exchanges"].num_rows else {}
    later = _next_answered(streams)
    rules: list[Callable[[list[hung.Case]], list[tuple[hung.Case, Finding]]]] = [
        lambda left: hung.path_mtu(left, courses, told),
        lambda left: hung.after_idling(left, courses, idled, later, asked_of),
        lambda left: hung.dead(left, courses),
        lambda left: hung.half_way(left, courses, lambda n: facts[n][4] == "at_server", asked_of),
    ]
    for rule in rules:
        left = [case for case in every if case.stream not in streams_done]
        rows, numbered, exchanges = hung.told(rule(left))
        found += rows
        streams_done |= numbered
        exchanges_done |= exchanges
    answered = {number for number, one in courses.items() if one.unseen(client=False) > 0}
    reset = {
        case.stream
        for case in cases
        if case.stream in courses and courses[case.stream].reset_by(client=case.cause == "client")
    }
    return found, streams_done, exchanges_done - {None}, answered, reset


def _next_answered(streams: pa.Table) -> Callable[[hung.Case, int], int | None]:
    """When did the next connection to the same server that was answered begin, behind this instant?"""
    import numpy as np

    start, answers = arrays.numbers(streams, "start"), arrays.numbers(streams, "server_packets")
    (server, servers), port = arrays.codes(streams, "server"), arrays.numbers(streams, "server_port")

    def next_at(case: hung.Case, instant: int) -> int | None:
        here = (server == servers.index(case.server)) & (port == case.port)
        rows = np.flatnonzero(here & (start > instant) & (answers > 0))
        return int(start[rows].min()) if len(rows) else None

    return next_at


def _keyed(groups: Mapping[tuple[str, str, int], list[_Case]]) -> Iterator[tuple[str, tuple[str, int], list[_Case]]]:
    for (word, server, port), mine in groups.items():
        yield word, (server, port), mine


def _unanswered(
    tables: Mapping[str, pa.Table], pushed: Pushed | None
) -> tuple[list[_Case], dict[tuple[str, int], int]]:
    """Requests that had a second and more, and got nothing, until their stream ended, or the capture; those whose
    connection the server closed instead; and, without a cause, those whose answer began and did not end. And how many
    requests each server got.
    """
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    if not exchanges.num_rows:
        return [], {}
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    answers, end = arrays.numbers(streams, "server_packets") > 0, arrays.numbers(streams, "end")
    closed = arrays.codes(streams, "closed_by")[0] >= 0
    shut = arrays.equals(streams, "closed_by", "server_fin", "server_rst")
    lost = _unread_answers(streams, exchanges, place)
    last = _last(end, exchanges, place)
    talks = _answered_talks(streams.num_rows, exchanges, place)
    found, long, hung_up, begun, counts = [], [], [], [], np.zeros(streams.num_rows, np.uint32)
    for span, rows in arrays.sliced(exchanges):
        asked = ~arrays.equals(rows, "protocol", SETUP)
        np.add.at(counts, place[span][asked], 1)
        silent = np.isnan(arrays.numbers(rows, "response_first_frame").astype(float))
        incomplete = ~arrays.numbers(rows, "complete").astype(bool)
        asked_at, mine = arrays.numbers(rows, "request_end"), place[span]
        left = (last[mine] - asked_at) / MS
        still = arrays.equals(rows, "cut_by", "capture_end") & ~closed[mine] & (left < MOST_MS)
        waited = np.where(still, left, (end[mine] - asked_at) / MS)
        which = asked & ~polls(rows)  # a poll that is meant to wait may wait
        which &= answers[mine] & incomplete
        nameless = arrays.codes(rows, "method")[0] < 0
        half = which & ~nameless & ~silent & (end[mine] - asked_at >= LIMITS["stuck_ms"] * MS) & ~streaming(rows)
        half &= ~arrays.equals(rows, "protocol", TALK)
        which &= ~arrays.equals(rows, "protocol", TALK) | (talks[mine] >= ANSWERS)
        which &= ~lost[mine] & silent & ~arrays.equals(rows, "cut_by", "gap")
        never = (waited >= LIMITS["stuck_ms"]) & ~nameless
        met = shut[mine] & arrays.equals(rows, "cut_by", "fin", "rst") & ~never
        sealed = nameless & arrays.equals(rows, "protocol", "tls")
        sealed &= arrays.numbers(rows, "request_bytes") >= SAYS_MORE
        instead = met & (arrays.equals(rows, "protocol", *protocol_names("all_answered")) | sealed)
        # what else met an RST: a connection that had idled may be the reason
        idled = met & ~instead & arrays.equals(rows, "cut_by", "rst")
        which &= never | instead | idled
        which |= half
        if pushed is not None:  # there nobody says whether a message asks for anything, or what is an answer to it
            which &= ~(arrays.equals(rows, "protocol", TALK) & (pushed.of_streams(arrays.numbers(rows, "stream")) > 0))
        found.append(np.flatnonzero(which) + span.start)
        long.append(waited[which])
        hung_up.append(np.where(idled, 2, instead)[which])
        begun.append(half[which])
    rows, waited, instead, halves = (np.concatenate(parts) for parts in (found, long, hung_up, begun))
    columns = ("exchange", "stream", "request_first_frame", "method", "target")
    seen = zip(*(arrays.taken(exchanges, c, rows).to_pylist() for c in columns), strict=True)
    ends = arrays.looked_up(streams, "stream", arrays.numbers(exchanges, "stream")[rows], ENDS)
    each = zip(seen, ends, waited.tolist(), instead.tolist(), halves.tolist(), strict=True)
    cases = [
        _Case(
            stream, client, server, port, frame, wait, called(method, target) or words.say("nameless"), number,
            half=half, cause="" if half or closes > 1 else "closed_on_request" if closes else "unanswered_request",
        )
        for (number, stream, frame, method, target), (server, port, client), wait, closes, half in each
    ]  # fmt: skip
    return cases, _requests(streams, counts) if cases else {}


def _answered_talks(count: int, exchanges: pa.Table, place: Array) -> Array:
    """How many messages of each stream were answered, where both sides may speak when they like?"""
    import numpy as np

    found = np.zeros(count, np.uint32)
    for span, rows in arrays.sliced(exchanges):
        which = arrays.equals(rows, "protocol", TALK) & arrays.numbers(rows, "complete").astype(bool)
        np.add.at(found, place[span][which], 1)
    return found


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


def _unread_answers(streams: pa.Table, exchanges: pa.Table, place: Array) -> Array:
    """On which streams did the server say something of which nothing could be read, where it speaks only when asked?"""
    import numpy as np

    spoken, heard = np.zeros(streams.num_rows, bool), np.zeros(streams.num_rows, bool)
    for span, rows in arrays.sliced(exchanges):
        asked = arrays.equals(rows, "protocol", *protocol_names("client_first"))
        spoken[place[span][asked]] = True
        first = arrays.numbers(rows, "response_first_frame").astype(float)
        heard[place[span][asked & ~np.isnan(first)]] = True
    said: Array = spoken & ~heard & (arrays.numbers(streams, "server_payload_bytes") > 0)
    return said


def _requests(streams: pa.Table, counts: Array) -> dict[tuple[str, int], int]:
    """How many requests did each server get? `counts` has those of each stream."""
    first, which, _ = arrays.grouped(server_keys(streams))
    asked = spill.weighed(which, counts, len(first)).astype(int).tolist()
    servers, ports = (arrays.taken(streams, name, first).to_pylist() for name in ("server", "server_port"))
    return dict(zip(zip(servers, ports, strict=True), asked, strict=True))


def _gone(tables: Mapping[str, pa.Table]) -> list[_Case]:
    """Peers that said nothing any more while the other side repeated what it had sent, for a second and more."""
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    many = [arrays.numbers(streams, f"{side}_retransmissions") >= REPEATS for side in ("client", "server")]
    both = (arrays.numbers(streams, "client_packets") > 0) & (arrays.numbers(streams, "server_packets") > 0)
    wanted = arrays.numbers(streams, "stream")[(many[0] | many[1]) & both]
    if events is None or not len(wanted):
        return []
    found = []
    gone = [
        (number, is_client, frame, (until - since) / MS, repeats)
        for number, is_client, frame, since, repeats, until in events.gone(wanted)
        if repeats >= REPEATS and (until - since) / MS >= LIMITS["stuck_ms"]
    ]
    ends = arrays.looked_up(streams, "stream", np.array([number for number, *_ in gone], wanted.dtype), ENDS)
    for (number, is_client, frame, waited, repeats), (server, port, client) in zip(gone, ends, strict=True):
        side = "client" if is_client else "server"
        found.append(_Case(number, client, server, port, frame, waited, "", repeats=repeats, cause=side))
    return found


def _row(cause: str, owner: str, key: tuple[str, int], cases: list[_Case], of: int) -> Finding:
    cases.sort(key=lambda c: c.waited_ms)
    worst = cases[-1]
    if cause == "silent_peer":
        sentence = f"silent_peer_{owner}"
    elif cause == "closed_on_request":
        sentence = "closed_instead" + ("_some" if len(cases) > 1 else "_one" if of > 1 else "")
    else:
        sentence = "never_answered_some" if len(cases) > 1 else "never_answered"
    values = {
        "server": endpoint(*key), "name": worst.name, "frame": worst.frame, "n": len(cases), "of": of,
        "repeats": worst.repeats, "wait_ms": worst.waited_ms,
        "wait": words.say("wait" if worst.waited_ms < MOST_MS else "wait_hour", wait_ms=worst.waited_ms),
    }  # fmt: skip
    late = cause == "closed_on_request" and worst.waited_ms >= LIMITS["setup_ms"]
    values["after"] = words.say("closed_after", wait_ms=worst.waited_ms) if late else ""
    if cause == "silent_peer" and len(cases) > 1:
        values["text"], sentence = words.say(sentence, **values), "silent_peers"
    clients, sure = {c.client for c in cases}, cause == "closed_on_request"
    return Finding(
        kind="silence", server=key[0], server_port=key[1], cause=cause, owner=owner, clients=len(clients),
        client=worst.client, exchanges=len(cases) if of else None, of_exchanges=of or None,
        streams=len({c.stream for c in cases}), total_ms=sum(c.waited_ms for c in cases), max_ms=worst.waited_ms,
        grade="proven" if sure else "probable", confidence=LIMITS[f"{'reset' if sure else 'unanswered'}_confidence"],
        worst_exchange=worst.exchange,
        worst_stream=worst.stream, worst_ms=worst.waited_ms, worst_frames=(worst.frame,),
        filter=f"tcp.stream eq {worst.stream}", sentence=sentence, values=values,
    )  # fmt: skip
