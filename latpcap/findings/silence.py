"""Find requests without an answer and peers that fell silent, and the reason that their packets show.

Reasons are answers that stop half way, packets too large for the path, and idle connections that were dropped or
closed too soon. Each is a rule over the packets of a stream (`Course`); a case that fits none stays unanswered, or
silent. An unanswered request has no latency and is in no percentile, although it waits the longest. The repeats sent
to a silent peer are no sign of loss on the path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.findings.evidence import called
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding, Grade, wireshark_filter
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import CAPTURE_BITS, NS_PER_MS, SETUP
from latpcap.user_waits import stream_ends
from latpcap.user_waits.cause_totals import endpoint, server_keys
from latpcap.user_waits.segments import Segments, segments
from latpcap.user_waits.slow_requests import polls
from latpcap.user_waits.slow_requests import streams as streaming
from latpcap.user_waits.stream_ends import Course, Resent
from latpcap.vocabulary import GUESSED, PROBABLE, SHOWN, SIDES, protocol_names

if TYPE_CHECKING:
    from latpcap.arrays import Array

SURE: dict[Grade, float] = {"proven": SHOWN, "probable": PROBABLE, "suspected": GUESSED}
"""Confidence of a rule over the packets of a hanging connection, by its grade."""
MAX_OPTIONS = 40
"""Upper bound on the bytes of TCP options in a segment (RFC 9293 3.1)."""
TIMERS_S = (5, 10, 15, 60, 65, 75, 120, 240, 300, 350, 600, 900, 1800, 3600, 7200, 28800, 432000)
"""Common idle time-outs, in s; the sentences `timer_…` name the software that has each by default."""
_UNTIL = {None: "until_end", True: "until_client", False: "until_server"}
"""Sentence about the end of the wait: by nobody, by the client (True), or by the server."""
MIN_REPEATS = 2
"""Fewest repeats without an answer that show a silent peer; a single one may be the last packet of a capture."""
MAX_WAIT_MS = 3_600_000.0
"""Upper bound on a wait until the end of the capture; a longer capture may be several files, joined."""
MIN_TLS_REQUEST = 64
"""Fewest bytes of an encrypted request; less may be close_notify (RFC 8446 6.1) or HTTP/2's GOAWAY."""
TWO_WAY, MIN_TWO_WAY_ANSWERS = "websocket", 3
"""A protocol in which either side may send at any time, and the fewest answered messages that show requests in it."""
ENDS = ("server", "server_port", "client")


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
    cause: str = ""
    """The cause if the packets show no better one; for a silent peer "client" or "server", its side."""
    repeats: int = 0
    """Repeats that the silent peer did not answer."""

    @property
    def key(self) -> tuple[str, int]:
        """The server's address and port."""
        return self.server, self.port


@dataclass(frozen=True)
class Reason:
    """Why a case waited, by the packets of its stream: a sentence and the values that it needs."""

    case: UnansweredWait
    sentence: str
    values: dict[str, Any]
    grade: Grade
    by_client: bool = False
    """Whether the client sent what was repeated in vain."""


@dataclass(frozen=True)
class Rule:
    """One of the rules: the reason of a case, if it fits, and the finding of a server's reasons of one kind."""

    reason: Callable[[UnansweredWait, Course], Reason | None]
    finding: Callable[[list[Reason]], Finding]

    def apply(
        self, cases: Sequence[UnansweredWait], courses: Mapping[int, Course]
    ) -> list[tuple[Finding, list[UnansweredWait]]]:
        """Return the findings with the cases that each explains; one per server, sentence and direction."""
        groups: dict[tuple[str, int, bool, str], list[Reason]] = defaultdict(list)
        for case in cases:
            course = courses.get(case.stream)
            reason = None if course is None else self.reason(case, course)
            if reason is not None:
                groups[case.server, case.port, reason.by_client, reason.sentence].append(reason)
        return [(self.finding(group), [reason.case for reason in group]) for group in groups.values()]


def _path_mtu(reasons: list[Reason]) -> Finding:
    worst = max(reasons, key=lambda reason: reason.values["span_ms"])
    has_one_client = len({reason.case.client for reason in reasons}) == 1
    ends = (worst.case.client if has_one_client else words.say("clients"), endpoint(*worst.case.key))
    sender, receiver = ends if worst.by_client else ends[::-1]
    values = {**worst.values, "sender": sender, "receiver": receiver, "n": len(reasons)}
    return _finding("path_mtu", replace(worst, values=values), reasons, "network", values["span_ms"])


def _too_large(client: bool, case: UnansweredWait, course: Course, notices: tuple[int, int]) -> Reason | None:
    """Find packets of one side that are too large for the path.

    `notices`: the number of ICMP "too big" messages, and the MTU that they name (RFC 1191, RFC 8201).
    """
    held = course.held(client)
    if held is None or held.copies < LIMITS["hung_copies"] or held.length < LIMITS["mtu_least_bytes"]:
        return _never_came(client, case, course)
    if held.passed_before >= held.length or any(size >= held.length for size in held.sizes_passed):
        return None  # a packet of this size passed, so that this one was lost
    end = held.until if held.until is not None else _given_up(course, held)
    waited_ms = (end - held.first) / NS_PER_MS
    if waited_ms < LIMITS["stuck_ms"]:
        return None
    values = {"length": held.length, "repeats": held.copies - 1, "span_ms": waited_ms, "cut": held.cut_to,
              "frame": held.frame}  # fmt: skip
    count, mtu = notices
    if count:
        values |= {"notices": count, "mtu": mtu, "mss": mtu - _header_bytes(case.server)}
        return Reason(case, "path_mtu_icmp_heeded" if held.cut_to else "path_mtu_icmp", values, "proven", client)
    has_many_copies = held.copies >= LIMITS["mtu_copies"]
    if held.cut_to and held.cut_to < held.length:
        return Reason(case, "path_mtu_cut", values, "proven" if has_many_copies else "probable", client)
    if held.until is not None:
        return None  # it arrived uncut
    is_alive = _is_heard_late(course, held)
    if held.sizes_passed:
        return Reason(case, "path_mtu", values, "proven" if is_alive and has_many_copies else "probable", client)
    if held.passed_before and is_alive and has_many_copies:
        return Reason(case, "path_mtu_perhaps", values, "suspected", client)
    is_full = held.length >= course.most_allowed() - MAX_OPTIONS > 0
    if held.passed_before and not held.later_packets and is_full and has_many_copies:
        return Reason(case, "path_mtu_or_gone", values, "suspected", client)
    if not held.passed_before and course.only_large(client):
        return Reason(case, "path_mtu_all", values, "probable" if is_alive else "suspected", client)
    return None


def _header_bytes(address: str) -> int:
    """Return the bytes of the IP and TCP headers without options (RFC 9293 3.7.1, RFC 8200 8.3)."""
    return 60 if ":" in address else 40


def _given_up(course: Course, held: Resent) -> int:
    """Return the end of the wait: when the receiver closed, else the last packet."""
    closing = course.closes(not held.by_client, course.index_of(held.frame))
    return int(course.time[closing]) if closing is not None else max(held.last, course.end)


def _is_heard_late(course: Course, held: Resent) -> bool:
    """Return whether the receiver sent anything after the second repeat, so that it runs and the way back works."""
    other = course.client != held.by_client
    copies = course.time[(course.client == held.by_client) & (course.seq == held.seq) & (course.len > 0)]
    return bool((course.time[other] > copies[2]).any()) if len(copies) > 2 else False


def _never_came(client: bool, case: UnansweredWait, course: Course) -> Reason | None:
    """Find the same in a capture at the receiver: a hole of full size that stays, and only smaller packets after it."""
    hole = course.hole(client)
    segment_size = course.most_allowed()
    if hole is None or not segment_size:
        return None
    after_hole, length, largest = hole
    closing = course.closes(not client, after_hole)
    end = int(course.time[closing]) if closing is not None else course.end
    waited_ms = (end - int(course.time[after_hole])) / NS_PER_MS
    full_bytes = segment_size - MAX_OPTIONS
    is_cut = largest < full_bytes and length >= max(full_bytes, LIMITS["mtu_least_bytes"])
    if not is_cut or waited_ms < LIMITS["stuck_ms"]:
        return None
    values = {"length": length, "span_ms": waited_ms, "cut": 0, "repeats": 0, "frame": int(course.frame[after_hole])}
    return Reason(case, "path_mtu_in_vain", values, "probable", client)


def _after_idling(
    reasons: list[Reason], survived: Mapping[tuple[str, int], float], requests_of: Mapping[tuple[str, int], int]
) -> Finding:
    """Return the finding of connections that had been idle and were closed, reset or dropped for that.

    `survived`: by server, the longest idle time in ms after which it still answered.
    """
    idle_ms = [reason.values["idle_ms"] for reason in reasons]
    worst = max(reasons, key=lambda reason: reason.case.waited_ms)
    key, is_race = worst.case.key, worst.sentence == "keepalive_race"
    longest = survived.get(key, 0.0)
    several_ms = max(idle_ms) >= (1 + LIMITS["timer_near_share"]) * min(idle_ms)
    values = {
        **worst.values, "server": endpoint(*key), "n": len(reasons), "name": worst.case.name,
        "frame": worst.case.frame, "idle_ms": (min(idle_ms), max(idle_ms)) if several_ms else min(idle_ms),
        "timer": _timer(min(idle_ms), exact=is_race),
        "least": words.say("timer_least", longest_ms=longest) if longest else "",
    }  # fmt: skip
    waited_ms = max(reason.values.get("span_ms", reason.case.waited_ms) for reason in reasons)
    owner = "server" if is_race else "network"
    worst = replace(worst, values=values)
    return _finding(worst.sentence, worst, reasons, owner, waited_ms, of=requests_of.get(key))


def _ended_idle(
    case: UnansweredWait, course: Course, next_at: Callable[[UnansweredWait, int], tuple[int, bool] | None]
) -> Reason | None:
    """Find a connection that was closed, reset or dropped while idle, so that a request met no server.

    `next_at` returns when the next answered connection to the same server began after an instant, and whether this
    client opened it.
    """
    held = course.held(True)
    frame = case.frame if case.exchange is not None or held is None else held.frame
    request = course.index_of(frame)
    idle_ms = course.silence_before(request) / NS_PER_MS
    closing = course.closes(client=False)
    if closing is not None and closing in course.fins and course.ack[closing] <= int(course.seq[request]):
        is_before = np.arange(len(course.time)) < min(closing, request)
        data_before = np.flatnonzero(is_before & (course.len > 1))
        if not len(data_before):
            return None
        # idle until the server closed, while the request was on its way
        idle_ms = int(course.time[closing] - course.time[data_before[-1]]) / NS_PER_MS
        is_idle = idle_ms >= LIMITS["idle_least_ms"]
        return Reason(case, "keepalive_race", {"idle_ms": idle_ms}, "proven") if is_idle else None
    if idle_ms < LIMITS["idle_least_ms"]:
        return None
    if closing is not None and closing in course.resets and closing > request:
        from_server = np.flatnonzero(~course.client & (np.arange(len(course.time)) > request))
        if len(from_server) and from_server[0] == closing:
            return Reason(case, "idle_reset", {"idle_ms": idle_ms}, "probable")
    if held is None or held.until is not None or held.copies < LIMITS["hung_copies"]:
        return None
    if held.frame != frame or held.later_packets:
        return None
    next_connection = next_at(case, held.first)
    if next_connection is None:
        return None  # nothing shows that the server was running
    next_start, is_own = next_connection
    # the client's own new connection ends its wait
    until = next_start if is_own else max(held.last, course.end, next_start)
    values = {"idle_ms": idle_ms, "repeats": held.copies - 1, "span_ms": (until - held.first) / NS_PER_MS}
    return Reason(case, "idle_drop", values, "probable")


def _forgotten(case: UnansweredWait, course: Course, lives: Callable[[UnansweredWait, int], bool]) -> Reason | None:
    """Find data that the server repeated on an idle connection without effect while the client was running.

    `lives` returns whether the client sent on another connection after an instant.
    """
    held = course.held(False)
    if held is None or held.until is not None or held.copies < LIMITS["hung_copies"] or held.later_packets:
        return None
    idle_ms = course.silence_before(course.index_of(held.frame)) / NS_PER_MS
    if idle_ms < LIMITS["idle_least_ms"] or not lives(case, held.first):
        return None
    span_ms = (held.last - held.first) / NS_PER_MS
    values = {"idle_ms": idle_ms, "repeats": held.copies - 1, "span_ms": span_ms, "client": case.client}
    return Reason(case, "idle_drop_push", values, "probable")


def _unprobed(case: UnansweredWait, course: Course) -> Reason | None:
    """Find a connection whose peer no longer answers keep-alive probes."""
    probes = course.probes()
    if probes is None:
        return None
    client, count, first = probes
    values = {
        "repeats": count, "span_ms": (course.end - int(course.time[first])) / NS_PER_MS,
        "idle_ms": course.silence_before(first) / NS_PER_MS, "frame": int(course.frame[first]),
        "until": words.say("probed_reset" if course.reset_by(client) else "probed_on"),
    }  # fmt: skip
    return Reason(case, "peer_gone", values, "probable", client)


def _peer_gone(reasons: list[Reason]) -> Finding:
    worst = max(reasons, key=lambda reason: reason.values["span_ms"])
    server = endpoint(*worst.case.key)
    clients = words.say("client_of", server=server)
    sides = {"prober": clients, "silent": server} if worst.by_client else {"prober": server, "silent": clients}
    worst = replace(worst, values={**worst.values, **sides, "n": len(reasons)})
    return _finding("peer_gone", worst, reasons, "network", worst.values["span_ms"])


def _timer(idle_ms: float, *, exact: bool) -> str:
    """Return a phrase that names the software with this idle time-out; "" if none is known.

    `exact`: the close itself was captured, else it happened some time before `idle_ms` were over.
    """
    idle, near = idle_ms / 1000, LIMITS["timer_near_share"]
    least = 1 - near if exact else 1.0
    fits = [seconds for seconds in TIMERS_S if seconds * least <= idle <= seconds * (1 + near)]
    return words.say("timer_like", whose=words.say(f"timer_{fits[-1]}")) if fits else ""


def _half_way(
    reasons: list[Reason], requests_of: Mapping[tuple[str, int], int], at_server: Callable[[int], bool]
) -> Finding:
    worst = max(reasons, key=lambda reason: reason.values["span_ms"])
    of = requests_of.get(worst.case.key, len(reasons))
    values = {**worst.values, "server": endpoint(*worst.case.key), "name": worst.case.name, "frame": worst.case.frame,
              "n": len(reasons), "of": of}  # fmt: skip
    grade: Grade = "proven" if at_server(worst.case.stream) else "probable"
    sentence = "stalled_answer" if of == 1 else "stalled_answers"
    worst = Reason(worst.case, sentence, values, grade)
    return _finding("stalled_answer", worst, reasons, "server", values["waited_ms"], of=of)


def _stopped(case: UnansweredWait, course: Course) -> Reason | None:
    """Find an answer that began and stopped."""
    if not case.is_partial:
        return None
    request = course.index_of(case.frame)
    answer_packets = np.flatnonzero(~course.client & (course.len > 0) & (np.arange(len(course.time)) > request))
    if not len(answer_packets) or course.unacked(client=False):
        return None
    last = int(answer_packets[-1])
    if course.as_long_as_one_before(last):
        return None  # the answer is whole, although its header gave no length
    closings = [course.closes(client=side, after=last) for side in (True, False)]
    closing = min((index for index in closings if index is not None), default=None)
    waited_until = int(course.time[request]) + int(case.waited_ms * NS_PER_MS)  # the capture may go on after the stream
    end = int(course.time[closing]) if closing is not None else max(course.end, waited_until)
    gap_ms = (end - int(course.time[last])) / NS_PER_MS
    gaps = np.diff(course.time[answer_packets]) / NS_PER_MS
    if gap_ms < LIMITS["stuck_ms"] or (len(gaps) and gaps.max() > gap_ms / 2):
        return None  # the server sends in pieces with pauses
    windows = course.window[course.client]
    if len(windows) and windows[-1] == 0:
        return None  # the client's window is closed
    ended_by = None if closing is None else bool(course.client[closing])
    first_byte = int(course.seq[answer_packets].min())
    values = {
        "bytes": int((course.seq + course.len)[answer_packets].max()) - first_byte,
        "span_ms": gap_ms,
        "waited_ms": (end - int(course.time[request])) / NS_PER_MS,
        "until": words.say(_UNTIL[ended_by]),
    }
    return Reason(case, "stalled_answer", values, "probable")


def _finding(
    cause: str, reason: Reason, reasons: Sequence[Reason], owner: str, waited_ms: float, *, of: int | None = None
) -> Finding:
    """Return the finding of these reasons with the sentence, values and grade of one."""
    cases = [reason.case for reason in reasons]
    worst = max(cases, key=lambda c: c.waited_ms)
    with_request = [c for c in cases if c.exchange is not None]
    return Finding(
        kind="silence", server=worst.server, server_port=worst.port, cause=cause, owner=owner,
        clients=len({c.client for c in cases}), client=worst.client, exchanges=len(with_request) or None,
        of_exchanges=of if with_request else None, streams=len({c.stream for c in cases}),
        total_ms=max(waited_ms, sum(c.waited_ms for c in cases)), max_ms=waited_ms,
        confidence=SURE[reason.grade], worst_exchange=worst.exchange, worst_stream=worst.stream,
        worst_ms=waited_ms, worst_frames=(reason.values.get("frame", worst.frame),),
        filter=wireshark_filter(worst.stream),
        harm="never", sentence=reason.sentence, values=reason.values,
    )  # fmt: skip


def survived(exchanges: pa.Table, streams: pa.Table) -> dict[tuple[str, int], float]:
    """Return the longest idle time in ms after which a request on the same connection was still answered, by server."""
    stream, start, end = (arrays.numbers(exchanges, name) for name in ("stream", "start", "end"))
    complete = arrays.numbers(exchanges, "complete").astype(bool)
    requests = np.flatnonzero(~arrays.equals(exchanges, "protocol", SETUP))
    order = requests[np.lexsort((start[requests], stream[requests]))]
    stream, start, end, complete = stream[order], start[order], end[order], complete[order]
    follows = (stream[1:] == stream[:-1]) & complete[1:] & complete[:-1]
    idle_all_ms = np.where(follows, (start[1:] - end[:-1]) / NS_PER_MS, 0.0)
    rows = np.flatnonzero(idle_all_ms >= LIMITS["idle_least_ms"])
    longest: dict[tuple[str, int], float] = {}
    ends = arrays.looked_up(streams, "stream", stream[1:][rows], ("server", "server_port"))
    for key, idle_ms in zip(ends, idle_all_ms[rows].tolist(), strict=True):
        longest[key[0], key[1]] = max(longest.get((key[0], key[1]), 0.0), idle_ms)
    return longest


def find(tables: Mapping[str, pa.Table], pushed: Pushed | None = None) -> list[Finding]:
    """Find requests that were never answered, and peers that fell silent; by server, the longest wait first.

    `pushed`: the streams on which servers send without requests.
    """
    unanswered, requests_of = _unanswered(tables, pushed)
    silent = _silent_peers(tables)
    explained = _explained(tables, [*unanswered, *silent], requests_of)
    exchanges = explained.exchanges | {case.exchange for case in unanswered if case.stream in explained.unseen_answers}
    groups: dict[tuple[str, str, int], list[UnansweredWait]] = defaultdict(list)
    for i, peer in enumerate(silent):
        requests = [case for case in unanswered if case.stream == peer.stream and case.cause == "unanswered_request"]
        if requests and peer.cause == "server" and peer.stream not in explained.reset:
            # the server answers nothing at all
            first = max(requests, key=lambda case: case.waited_ms)
            silent[i] = replace(peer, name=first.name, waited_ms=first.waited_ms, exchange=first.exchange)
            exchanges |= {case.exchange for case in requests}
    for case in unanswered:
        if case.cause and case.exchange not in exchanges:
            groups[case.cause, case.server, case.port].append(case)
    findings = [
        _unexplained(cause, "server", cases, requests_of[server, port])
        for (cause, server, port), cases in groups.items()
    ]
    groups.clear()
    for peer in silent:
        if peer.stream not in explained.streams and peer.stream not in explained.reset:
            groups[peer.cause, peer.server, peer.port].append(peer)
    findings += [_unexplained("silent_peer", side, cases, 0) for (side, *_), cases in groups.items()]
    return sorted(explained.findings + findings, key=lambda f: -(f.max_ms or 0.0))


@dataclass
class _Explained:
    """What the rules found, and the streams and exchanges that need no other finding."""

    findings: list[Finding] = field(default_factory=list)
    streams: set[int] = field(default_factory=set)
    exchanges: set[int | None] = field(default_factory=set)
    unseen_answers: set[int] = field(default_factory=set)
    """Streams on which the server sent more than was captured."""
    reset: set[int] = field(default_factory=set)
    """Streams that the silent side had reset before."""


def _explained(
    tables: Mapping[str, pa.Table], cases: Sequence[UnansweredWait], requests_of: Mapping[tuple[str, int], int]
) -> _Explained:
    """Apply the rules to the packets of these streams, and of others that stand still."""
    streams, exchanges, events = tables["streams"], tables["exchanges"], segments(tables)
    if events is None:
        return _Explained()
    standing = _standing(tables, events, {case.stream for case in cases})
    all_cases = sorted([*cases, *standing], key=lambda case: -case.waited_ms)
    with_request = {case.stream for case in all_cases if case.exchange is not None}
    number_type = arrays.numbers(streams, "stream").dtype
    courses = stream_ends.courses(events, np.array(list(dict.fromkeys(c.stream for c in all_cases)), number_type))
    names = ("client_icmp_too_big", "client_icmp_next_mtu", "server_icmp_too_big", "server_icmp_next_mtu", "position")
    rows = arrays.looked_up(streams, "stream", np.array(list(courses), number_type), names)
    notices, positions = {}, {}
    for stream, (to_client, client_mtu, to_server, server_mtu, position) in zip(courses, rows, strict=True):
        notices[stream] = (to_client or 0) + (to_server or 0), server_mtu or client_mtu or 0
        positions[stream] = position
    idled = survived(exchanges, streams) if exchanges.num_rows else {}
    next_at, lives = _next_answered(streams), _lives(streams)
    explained = _Explained()

    def too_large(case: UnansweredWait, course: Course) -> Reason | None:
        sides = (_too_large(client, case, course, notices[case.stream]) for client in (False, True))
        return next((reason for reason in sides if reason is not None), None)

    def after_idling(case: UnansweredWait, course: Course) -> Reason | None:
        if case.exchange is None and case.stream in with_request:
            return None
        reason = _ended_idle(case, course, next_at) or _forgotten(case, course, lives)
        return reason if reason is not None and reason.values["idle_ms"] > idled.get(case.key, 0.0) else None

    rules = (
        Rule(too_large, _path_mtu),
        Rule(after_idling, lambda reasons: _after_idling(reasons, idled, requests_of)),
        Rule(_unprobed, _peer_gone),
        Rule(_stopped, lambda reasons: _half_way(reasons, requests_of, lambda n: positions[n] == "at_server")),
    )
    for rule in rules:
        left = [case for case in all_cases if case.stream not in explained.streams]
        for finding, cases_of_finding in rule.apply(left, courses):
            explained.findings.append(finding)
            explained.streams |= {case.stream for case in cases_of_finding}
            explained.exchanges |= {case.exchange for case in cases_of_finding} - {None}
    explained.unseen_answers = {stream for stream, course in courses.items() if course.unseen(client=False) > 0}
    explained.reset = {
        case.stream
        for case in cases
        if case.stream in courses and courses[case.stream].reset_by(client=case.cause == "client")
    }
    return explained


def _standing(tables: Mapping[str, pa.Table], events: Segments, waiting: set[int]) -> list[UnansweredWait]:
    """Return streams that stand still, other than those of cases (`waiting`)."""
    streams = tables["streams"]
    still = np.union1d(np.union1d(events.stuck(), events.probed()), _with_holes(tables))
    numbers = [number for number in still.tolist() if number not in waiting]
    wanted = np.array(numbers, arrays.numbers(streams, "stream").dtype)
    ends = arrays.looked_up(streams, "stream", wanted, ENDS)
    return [
        UnansweredWait(number, client, server, port, 0, 0.0, "")
        for number, (server, port, client) in zip(numbers, ends, strict=True)
    ]


def _with_holes(tables: Mapping[str, pa.Table]) -> Array:
    """Return streams whose answer waited long for packets missing in the capture; the receiver may lack them too."""
    causes = tables["causes"]
    gaps = arrays.equals(causes, "cause", "capture_gap") & (arrays.numbers(causes, "duration_ms") >= LIMITS["stuck_ms"])
    numbers = np.unique(arrays.numbers(causes, "exchange")[gaps])
    matches = arrays.looked_up(tables["exchanges"], "exchange", numbers, ("stream",)) if len(numbers) else []
    return np.array(sorted({stream for (stream,) in matches}), np.int64)


def _next_answered(streams: pa.Table) -> Callable[[UnansweredWait, int], tuple[int, bool] | None]:
    """Return a function that finds the next answered connection to a case's server after an instant.

    It returns the start of that connection and whether the case's client opened it; None without one.
    """
    start, answers = arrays.numbers(streams, "start"), arrays.numbers(streams, "server_packets")
    (server, servers), port = arrays.codes(streams, "server"), arrays.numbers(streams, "server_port")
    client, clients = arrays.codes(streams, "client")

    def next_at(case: UnansweredWait, instant: int) -> tuple[int, bool] | None:
        to_server = (server == servers.index(case.server)) & (port == case.port)
        rows = np.flatnonzero(to_server & (start > instant) & (answers > 0))
        if not len(rows):
            return None
        first = rows[start[rows].argmin()]
        return int(start[first]), clients[int(client[first])] == case.client

    return next_at


def _lives(streams: pa.Table) -> Callable[[UnansweredWait, int], bool]:
    """Return a function that decides whether a case's client sent on another connection after an instant."""
    number, end = arrays.numbers(streams, "stream"), arrays.numbers(streams, "end")
    (client, clients), sent = arrays.codes(streams, "client"), arrays.numbers(streams, "client_packets") > 0

    def lives(case: UnansweredWait, instant: int) -> bool:
        later_of_client = (client == clients.index(case.client)) & (number != case.stream) & sent
        return bool((end[later_of_client] > instant).any())

    return lives


class _StreamFacts:
    """What decides whether a request was left without an answer, for each row of "streams"."""

    def __init__(self, streams: pa.Table, exchanges: pa.Table, stream_rows: Array):
        self.has_answer = arrays.numbers(streams, "server_packets") > 0
        self.end = arrays.numbers(streams, "end")
        self.is_closed = arrays.codes(streams, "closed_by")[0] >= 0
        self.is_closed_by_server = arrays.equals(streams, "closed_by", "server_fin", "server_rst")
        self.two_way_answers = np.zeros(streams.num_rows, np.uint32)
        is_requested, is_answered = np.zeros((2, streams.num_rows), bool)
        captures = np.full(streams.num_rows, -1, np.int64)
        for span, part in arrays.sliced(exchanges):
            rows = stream_rows[span]
            is_two_way = arrays.equals(part, "protocol", TWO_WAY) & arrays.numbers(part, "complete").astype(bool)
            np.add.at(self.two_way_answers, rows[is_two_way], 1)
            is_request = arrays.equals(part, "protocol", *protocol_names("client_first"))
            is_requested[rows[is_request]] = True
            has_begun = ~np.isnan(arrays.numbers(part, "response_first_frame").astype(float))
            is_answered[rows[is_request & has_begun]] = True
            captures[rows] = arrays.numbers(part, "exchange").astype(np.int64) >> CAPTURE_BITS
        # unreadable data of the server, in protocols in which it only answers
        has_payload = arrays.numbers(streams, "server_payload_bytes") > 0
        self.has_unread_answers = is_requested & ~is_answered & has_payload
        self.capture_end = _capture_ends(self.end, captures)


class _Kind(IntEnum):
    """How a request stayed without a complete answer."""

    NEVER, CLOSED, RESET, HALF = range(4)


def _unanswered(
    tables: Mapping[str, pa.Table], pushed: Pushed | None
) -> tuple[list[UnansweredWait], dict[tuple[str, int], int]]:
    """Find the requests without a complete answer, and count the requests of each server.

    - "unanswered_request": no answer for 1 s (`stuck_ms`) or more, until the stream or the capture ended.
    - "closed_on_request": the server closed the connection instead of answering.
    - no cause: the answer began and did not end, or an RST met a request that `_ended_idle` may explain.
    """
    streams, exchanges = tables["streams"], tables["exchanges"]
    if not exchanges.num_rows:
        return [], {}
    stream_rows = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    facts = _StreamFacts(streams, exchanges, stream_rows)
    row_parts, wait_parts, kind_parts, counts = [], [], [], np.zeros(streams.num_rows, np.uint32)
    for span, part in arrays.sliced(exchanges):
        is_request = ~arrays.equals(part, "protocol", SETUP)
        np.add.at(counts, stream_rows[span][is_request], 1)
        waited_ms = _waited_ms(part, facts, stream_rows[span])
        kinds = _kinds(part, facts, stream_rows[span], waited_ms)
        kinds[~is_request | polls(part)] = -1  # long polls are meant to wait
        if pushed is not None:  # with pushes, requests and answers cannot be distinguished
            has_pushes = pushed.of_streams(arrays.numbers(part, "stream")) > 0
            kinds[arrays.equals(part, "protocol", TWO_WAY) & has_pushes] = -1
        matches = np.flatnonzero(kinds >= 0)
        row_parts.append(matches + span.start)
        wait_parts.append(waited_ms[matches])
        kind_parts.append(kinds[matches])
    rows, waited_ms, kinds = (np.concatenate(parts) for parts in (row_parts, wait_parts, kind_parts))
    columns = ("exchange", "stream", "request_first_frame", "method", "target")
    requests = zip(*(arrays.taken(exchanges, c, rows).to_pylist() for c in columns), strict=True)
    ends = arrays.looked_up(streams, "stream", arrays.numbers(exchanges, "stream")[rows], ENDS)
    causes = {_Kind.NEVER: "unanswered_request", _Kind.CLOSED: "closed_on_request"}
    cases = [
        UnansweredWait(
            stream, client, server, port, frame, wait,
            called(method, target) if method or target else words.say("nameless"), number,
            is_partial=kind == _Kind.HALF, cause=causes.get(kind, ""),
        )
        for (number, stream, frame, method, target), (server, port, client), wait, kind in zip(
            requests, ends, waited_ms.tolist(), kinds.tolist(), strict=True)
    ]  # fmt: skip
    return cases, _requests(streams, counts) if cases else {}


def _waited_ms(exchanges: pa.Table, facts: _StreamFacts, stream_rows: Array) -> Array:
    """Return the time from each request to the end of its stream, or of the capture if the stream was still open."""
    requested = arrays.numbers(exchanges, "request_end")
    to_capture_end = (facts.capture_end[stream_rows] - requested) / NS_PER_MS
    is_open = arrays.equals(exchanges, "cut_by", "capture_end") & ~facts.is_closed[stream_rows]
    to_stream_end = (facts.end[stream_rows] - requested) / NS_PER_MS
    return np.where(is_open & (to_capture_end < MAX_WAIT_MS), to_capture_end, to_stream_end)


def _kinds(exchanges: pa.Table, facts: _StreamFacts, stream_rows: Array, waited_ms: Array) -> Array:
    """Return the `_Kind` of each exchange, and -1 for those that were answered or cannot be judged."""
    is_open = facts.has_answer[stream_rows] & ~arrays.numbers(exchanges, "complete").astype(bool)
    is_silent = np.isnan(arrays.numbers(exchanges, "response_first_frame").astype(float))
    is_nameless = arrays.codes(exchanges, "method")[0] < 0
    is_two_way = arrays.equals(exchanges, "protocol", TWO_WAY)
    is_long = (waited_ms >= LIMITS["stuck_ms"]) & ~is_nameless
    is_half = is_open & ~is_silent & is_long & ~streaming(exchanges) & ~is_two_way
    may_expect = ~is_two_way | (facts.two_way_answers[stream_rows] >= MIN_TWO_WAY_ANSWERS)
    is_readable = ~facts.has_unread_answers[stream_rows] & ~arrays.equals(exchanges, "cut_by", "gap")
    is_unanswered = is_open & is_silent & may_expect & is_readable
    is_met = facts.is_closed_by_server[stream_rows] & arrays.equals(exchanges, "cut_by", "fin", "rst")
    is_encrypted = is_nameless & arrays.equals(exchanges, "protocol", "tls")
    is_encrypted &= arrays.numbers(exchanges, "request_bytes") >= MIN_TLS_REQUEST
    needs_answer = arrays.equals(exchanges, "protocol", *protocol_names("all_answered")) | is_encrypted
    is_reset = arrays.equals(exchanges, "cut_by", "rst")
    masks = (is_long, is_met & needs_answer, is_met & is_reset)
    return np.select(
        [is_half, *(is_unanswered & mask for mask in masks)], [_Kind.HALF, _Kind.NEVER, _Kind.CLOSED, _Kind.RESET], -1
    )


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


def _silent_peers(tables: Mapping[str, pa.Table]) -> list[UnansweredWait]:
    """Find peers that sent nothing while the other side repeated its data for 1 s (`stuck_ms`) or more."""
    streams, events = tables["streams"], segments(tables)
    repeats = [arrays.numbers(streams, f"{side}_retransmissions") >= MIN_REPEATS for side in SIDES]
    packets = [arrays.numbers(streams, f"{side}_packets") > 0 for side in SIDES]
    wanted = arrays.numbers(streams, "stream")[(repeats[0] | repeats[1]) & packets[0] & packets[1]]
    if events is None or not len(wanted):
        return []
    waits = []
    gone = [
        (number, is_client, frame, (until - since) / NS_PER_MS, count)
        for number, is_client, frame, since, count, until in events.gone(wanted)
        if count >= MIN_REPEATS and (until - since) / NS_PER_MS >= LIMITS["stuck_ms"]
    ]
    ends = arrays.looked_up(streams, "stream", np.array([number for number, *_ in gone], wanted.dtype), ENDS)
    for (number, is_client, frame, waited_ms, count), (server, port, client) in zip(gone, ends, strict=True):
        side = "client" if is_client else "server"
        waits.append(UnansweredWait(number, client, server, port, frame, waited_ms, "", repeats=count, cause=side))
    return waits


def _unexplained(cause: str, owner: str, cases: list[UnansweredWait], of: int) -> Finding:
    cases.sort(key=lambda c: c.waited_ms)
    worst = cases[-1]
    key = worst.key
    if cause == "silent_peer":
        sentence = f"silent_peer_{owner}"
    elif cause == "closed_on_request":
        sentence = "closed_instead" + ("_some" if len(cases) > 1 else "_one" if of > 1 else "")
    else:
        sentence = "never_answered_some" if len(cases) > 1 else "never_answered"
    values = {
        "server": endpoint(*key), "name": worst.name, "frame": worst.frame, "n": len(cases), "of": of,
        "repeats": worst.repeats, "wait_ms": worst.waited_ms,
        "request": words.say("silent_request", name=worst.name) if cause == "silent_peer" and worst.name else "",
        "wait": words.say("wait" if worst.waited_ms < MAX_WAIT_MS else "wait_hour", wait_ms=worst.waited_ms),
    }  # fmt: skip
    is_late = cause == "closed_on_request" and worst.waited_ms >= LIMITS["setup_ms"]
    values["after"] = words.say("closed_after", wait_ms=worst.waited_ms) if is_late else ""
    fix = words.fix(sentence, **values)
    if cause == "silent_peer" and len(cases) > 1:
        values["text"], sentence = words.say(sentence, **values), "silent_peers"
    clients = {c.client for c in cases}
    return Finding(
        kind="silence", server=key[0], server_port=key[1], cause=cause, owner=owner, clients=len(clients),
        client=worst.client, exchanges=len(cases) if of else None, of_exchanges=of or None,
        streams=len({c.stream for c in cases}), total_ms=sum(c.waited_ms for c in cases), max_ms=worst.waited_ms,
        worst_exchange=worst.exchange,
        worst_stream=worst.stream, worst_ms=worst.waited_ms, worst_frames=(worst.frame,),
        filter=wireshark_filter(worst.stream), harm="never", sentence=sentence, values=values, fix=fix,
    )  # fmt: skip
