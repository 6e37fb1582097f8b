"""Find why a request or a stream hangs, by the packets of its stream (`Course`).

Each rule finds one reason: packets too large for the path, an idle connection that was dropped or closed too soon, a
peer that is gone, an answer that stops half way. A wait that fits none stays unexplained.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from latpcap import arrays, words
from latpcap.findings.schema import Finding, Grade
from latpcap.findings.unanswered import UnansweredWait, silence_finding, standing_still
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, request_mask
from latpcap.user_waits import stream_ends
from latpcap.user_waits.segments import segments
from latpcap.user_waits.stream_ends import Course, Resent
from latpcap.vocabulary import GUESSED, PROBABLE, SHOWN

SURE: dict[Grade, float] = {"proven": SHOWN, "probable": PROBABLE, "suspected": GUESSED}
"""Confidence of a rule over the packets of a hanging connection, by its grade."""
MAX_OPTIONS = 40
"""Upper bound on the bytes of TCP options in a segment (RFC 9293 3.1)."""
TIMERS_S = (5, 10, 15, 60, 65, 75, 120, 240, 300, 350, 600, 900, 1800, 3600, 7200, 28800, 432000)
"""Common idle time-outs, in s; the sentences `timer_…` name the software that has each by default."""
_UNTIL = {None: "until_end", True: "until_client", False: "until_server"}
"""Sentence about the end of the wait: by nobody, by the client (True), or by the server."""


@dataclass(frozen=True)
class Reason:
    """Why a wait lasted, by the packets of its stream: a sentence and the values that it needs."""

    wait: UnansweredWait
    sentence: str
    values: dict[str, Any]
    grade: Grade
    by_client: bool = False
    """Whether the client sent what was repeated in vain."""


@dataclass(frozen=True)
class Rule:
    """One of the rules: the reason of a wait, if it fits, and the finding of a server's reasons of one kind."""

    reason: Callable[[UnansweredWait, Course], Reason | None]
    finding: Callable[[list[Reason]], Finding]
    of_missing: bool = False
    """Whether it explains answers that are missing in the capture; for others these may be in any order or complete."""

    def apply(
        self, waits: Sequence[UnansweredWait], courses: Mapping[int, Course]
    ) -> list[tuple[Finding, list[UnansweredWait]]]:
        """Return the findings with the waits that each explains; one per server, sentence and direction."""
        groups: dict[tuple[str, int, bool, str], list[Reason]] = defaultdict(list)
        for wait in waits:
            course = courses.get(wait.stream)
            reason = None if course is None else self.reason(wait, course)
            if reason is not None:
                groups[wait.server, wait.port, reason.by_client, reason.sentence].append(reason)
        return [(self.finding(group), [reason.wait for reason in group]) for group in groups.values()]


def _path_mtu(reasons: list[Reason]) -> Finding:
    worst = max(reasons, key=lambda reason: reason.values["span_ms"])
    has_one_client = len({reason.wait.client for reason in reasons}) == 1
    ends = (worst.wait.client if has_one_client else words.say("clients"), endpoint(*worst.wait.key))
    sender, receiver = ends if worst.by_client else ends[::-1]
    values = {**worst.values, "sender": sender, "receiver": receiver, "n": len(reasons)}
    return _finding("path_mtu", replace(worst, values=values), reasons, "network", values["span_ms"])


def _too_large(client: bool, wait: UnansweredWait, course: Course, notices: tuple[int, int]) -> Reason | None:
    """Find packets of one side that are too large for the path.

    `notices`: the number of ICMP "too big" messages, and the MTU that they name (RFC 1191, RFC 8201).
    """
    resent = course.longest_resent(client)
    if resent is None or resent.copies < LIMITS["hung_copies"] or resent.length < LIMITS["mtu_least_bytes"]:
        return _never_came(client, wait, course)
    if resent.passed_before >= resent.length or any(size >= resent.length for size in resent.sizes_passed):
        return None  # a packet of this size passed, so that this one was lost
    end = resent.until if resent.until is not None else _given_up(course, resent)
    waited_ms = (end - resent.first) / NS_PER_MS
    if waited_ms < LIMITS["stuck_ms"]:
        return None
    values = {"length": resent.length, "repeats": resent.copies - 1, "span_ms": waited_ms, "cut": resent.cut_to,
              "frame": resent.frame}  # fmt: skip
    count, mtu = notices
    if count:
        values |= {"notices": count, "mtu": mtu, "mss": mtu - _header_bytes(wait.server)}
        return Reason(wait, "path_mtu_icmp_heeded" if resent.cut_to else "path_mtu_icmp", values, "proven", client)
    has_many_copies = resent.copies >= LIMITS["mtu_copies"]
    if resent.cut_to and resent.cut_to < resent.length:
        return Reason(wait, "path_mtu_cut", values, "proven" if has_many_copies else "probable", client)
    if resent.until is not None:
        return None  # it arrived uncut
    is_alive = _is_heard_late(course, resent)
    if resent.sizes_passed:
        return Reason(wait, "path_mtu", values, "proven" if is_alive and has_many_copies else "probable", client)
    if resent.passed_before and is_alive and has_many_copies:
        return Reason(wait, "path_mtu_perhaps", values, "suspected", client)
    is_full = resent.length >= course.most_allowed() - MAX_OPTIONS > 0
    if resent.passed_before and not resent.later_packets and is_full and has_many_copies:
        return Reason(wait, "path_mtu_or_gone", values, "suspected", client)
    if not resent.passed_before and course.only_large(client):
        return Reason(wait, "path_mtu_all", values, "probable" if is_alive else "suspected", client)
    return None


def _header_bytes(address: str) -> int:
    """Return the bytes of the IP and TCP headers without options (RFC 9293 3.7.1, RFC 8200 8.3)."""
    return 60 if ":" in address else 40


def _given_up(course: Course, resent: Resent) -> int:
    """Return the end of the wait: when the receiver closed, else the last packet."""
    closing = course.closes(not resent.by_client, course.index_of(resent.frame))
    return int(course.time[closing]) if closing is not None else max(resent.last, course.end)


def _is_heard_late(course: Course, resent: Resent) -> bool:
    """Return whether the receiver sent anything after the second repeat, so that it runs and the way back works."""
    other = course.client != resent.by_client
    copies = course.time[(course.client == resent.by_client) & (course.seq == resent.seq) & (course.len > 0)]
    return bool((course.time[other] > copies[2]).any()) if len(copies) > 2 else False


def _never_came(client: bool, wait: UnansweredWait, course: Course) -> Reason | None:
    """Find the same in a capture at the receiver: a hole of full size that stays, and only smaller packets after it."""
    hole = course.hole(client)
    segment_size = course.most_allowed()
    if not segment_size:
        return None
    if hole is None:
        return _all_missing(client, wait, course, segment_size)
    after_hole, length, largest = hole
    closing = course.closes(not client, after_hole)
    end = int(course.time[closing]) if closing is not None else course.end
    waited_ms = (end - int(course.time[after_hole])) / NS_PER_MS
    full_bytes = segment_size - MAX_OPTIONS
    is_cut = largest < full_bytes and length >= max(full_bytes, LIMITS["mtu_least_bytes"])
    if not is_cut or waited_ms < LIMITS["stuck_ms"]:
        return None
    values = {"length": length, "span_ms": waited_ms, "cut": 0, "repeats": 0, "frame": int(course.frame[after_hole])}
    return Reason(wait, "path_mtu_in_vain", values, "probable", client)


def _all_missing(client: bool, wait: UnansweredWait, course: Course, segment_size: int) -> Reason | None:
    """Find an answer of which nothing arrived, in a capture at the receiver.

    The sequence numbers of the sender's later packets count its bytes, and the receiver acknowledges none of them; so
    the capture did not miss them. Bytes of less than a full packet may have been lost by chance.
    """
    missing = course.never_arrived(client)
    if missing is None or client or wait.waited_ms < LIMITS["stuck_ms"]:
        return None
    index, count = missing
    if count < max(segment_size - MAX_OPTIONS, LIMITS["mtu_least_bytes"]):
        return None
    values = {"length": count, "span_ms": wait.waited_ms, "cut": 0, "repeats": 0, "frame": int(course.frame[index]),
              "name": wait.name, "request_frame": wait.frame}  # fmt: skip
    return Reason(wait, "path_mtu_answer", values, "probable", client)


def _after_idling(
    reasons: list[Reason], survived: Mapping[tuple[str, int], float], requests_of: Mapping[tuple[str, int], int]
) -> Finding:
    """Return the finding of connections that had been idle and were closed, reset or dropped for that.

    `survived`: by server, the longest idle time in ms after which it still answered.
    """
    idle_ms = [reason.values["idle_ms"] for reason in reasons]
    worst = max(reasons, key=lambda reason: reason.wait.waited_ms)
    key, is_race = worst.wait.key, worst.sentence == "keepalive_race"
    longest = survived.get(key, 0.0)
    several_ms = max(idle_ms) >= (1 + LIMITS["timer_near_share"]) * min(idle_ms)
    values = {
        **worst.values, "server": endpoint(*key), "n": len(reasons), "name": worst.wait.name,
        "frame": worst.wait.frame, "idle_ms": (min(idle_ms), max(idle_ms)) if several_ms else min(idle_ms),
        "timer": _timer(min(idle_ms), exact=is_race),
        "least": words.say("timer_least", longest_ms=longest) if longest else "",
    }  # fmt: skip
    waited_ms = max(reason.values.get("span_ms", reason.wait.waited_ms) for reason in reasons)
    owner = "server" if is_race else "network"
    worst = replace(worst, values=values)
    return _finding(worst.sentence, worst, reasons, owner, waited_ms, of=requests_of.get(key))


def _ended_idle(
    wait: UnansweredWait, course: Course, next_at: Callable[[UnansweredWait, int], tuple[int, bool] | None]
) -> Reason | None:
    """Find a connection that was closed, reset or dropped while idle, so that a request met no server.

    `next_at` returns when the next answered connection to the same server began after an instant, and whether this
    client opened it.
    """
    resent = course.longest_resent(True)
    frame = wait.frame if wait.exchange is not None or resent is None else resent.frame
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
        return Reason(wait, "keepalive_race", {"idle_ms": idle_ms}, "proven") if is_idle else None
    if idle_ms < LIMITS["idle_least_ms"]:
        return None
    if closing is not None and closing in course.resets and closing > request:
        from_server = np.flatnonzero(~course.client & (np.arange(len(course.time)) > request))
        if len(from_server) and from_server[0] == closing:
            return Reason(wait, "idle_reset", {"idle_ms": idle_ms}, "probable")
    if resent is None or resent.until is not None or resent.copies < LIMITS["hung_copies"]:
        return None
    if resent.frame != frame or resent.later_packets:
        return None
    next_connection = next_at(wait, resent.first)
    if next_connection is None:
        return None  # nothing shows that the server was running
    next_start, is_own = next_connection
    # the client's own new connection ends its wait
    until = next_start if is_own else max(resent.last, course.end, next_start)
    values = {"idle_ms": idle_ms, "repeats": resent.copies - 1, "span_ms": (until - resent.first) / NS_PER_MS}
    return Reason(wait, "idle_drop", values, "probable")


def _forgotten(wait: UnansweredWait, course: Course, lives: Callable[[UnansweredWait, int], bool]) -> Reason | None:
    """Find data that the server repeated on an idle connection without effect while the client was running.

    `lives` returns whether the client sent on another connection after an instant.
    """
    resent = course.longest_resent(False)
    if resent is None or resent.until is not None or resent.copies < LIMITS["hung_copies"] or resent.later_packets:
        return None
    idle_ms = course.silence_before(course.index_of(resent.frame)) / NS_PER_MS
    if idle_ms < LIMITS["idle_least_ms"] or not lives(wait, resent.first):
        return None
    span_ms = (resent.last - resent.first) / NS_PER_MS
    values = {"idle_ms": idle_ms, "repeats": resent.copies - 1, "span_ms": span_ms, "client": wait.client}
    return Reason(wait, "idle_drop_push", values, "probable")


def _unprobed(wait: UnansweredWait, course: Course) -> Reason | None:
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
    return Reason(wait, "peer_gone", values, "probable", client)


def _peer_gone(reasons: list[Reason]) -> Finding:
    worst = max(reasons, key=lambda reason: reason.values["span_ms"])
    server = endpoint(*worst.wait.key)
    clients = words.say("client_of", server=server)
    sides = {"prober": clients, "silent": server} if worst.by_client else {"prober": server, "silent": clients}
    worst = replace(worst, values={**worst.values, **sides, "n": len(reasons)})
    return _finding("peer_gone", worst, reasons, "network", worst.values["span_ms"])


def _timer(idle_ms: float, *, exact: bool) -> str:
    """Return a phrase that names the software with this idle time-out; "" if none is known.

    `exact`: the close itself was captured, else it happened some time before `idle_ms` were over.
    """
    idle, near = idle_ms / 1000, LIMITS["timer_near_share"]
    min_ratio = 1 - near if exact else 1.0
    fits = [seconds for seconds in TIMERS_S if seconds * min_ratio <= idle <= seconds * (1 + near)]
    return words.say("timer_like", whose=words.say(f"timer_{fits[-1]}")) if fits else ""


def _half_way(
    reasons: list[Reason], requests_of: Mapping[tuple[str, int], int], at_server: Callable[[int], bool]
) -> Finding:
    worst = max(reasons, key=lambda reason: reason.values["span_ms"])
    total = requests_of.get(worst.wait.key, len(reasons))
    values = {**worst.values, "server": endpoint(*worst.wait.key), "name": worst.wait.name, "frame": worst.wait.frame,
              "n": len(reasons), "of": total}  # fmt: skip
    grade: Grade = "proven" if at_server(worst.wait.stream) else "probable"
    sentence = "stalled_answer" if total == 1 else "stalled_answers"
    worst = Reason(worst.wait, sentence, values, grade)
    return _finding("stalled_answer", worst, reasons, "server", values["waited_ms"], of=total)


def _stopped(wait: UnansweredWait, course: Course) -> Reason | None:
    """Find an answer that began and stopped."""
    if not wait.is_partial:
        return None
    request = course.index_of(wait.frame)
    answer_packets = np.flatnonzero(~course.client & (course.len > 0) & (np.arange(len(course.time)) > request))
    if not len(answer_packets) or course.unacked(client=False):
        return None
    last = int(answer_packets[-1])
    if course.as_long_as_one_before(last):
        return None  # the answer is whole, although its header gave no length
    closings = [course.closes(client=side, after=last) for side in (True, False)]
    closing = min((index for index in closings if index is not None), default=None)
    waited_until = int(course.time[request]) + int(wait.waited_ms * NS_PER_MS)  # the capture may go on after the stream
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
    return Reason(wait, "stalled_answer", values, "probable")


def _finding(
    cause: str, reason: Reason, reasons: Sequence[Reason], owner: str, waited_ms: float, *, of: int | None = None
) -> Finding:
    """Return the finding of these reasons with the sentence, values and grade of one."""
    waits = [reason.wait for reason in reasons]
    worst = max(waits, key=lambda wait: wait.waited_ms)
    with_request = [wait for wait in waits if wait.exchange is not None]
    return silence_finding(
        worst, waits, cause, owner, reason.sentence, reason.values, exchanges=len(with_request) or None,
        of_exchanges=of if with_request else None, total_ms=max(waited_ms, sum(wait.waited_ms for wait in waits)),
        max_ms=waited_ms, worst_ms=waited_ms, worst_frames=(reason.values.get("frame", worst.frame),),
        confidence=SURE[reason.grade],
    )  # fmt: skip


def survived(stretches: pa.Table, streams: pa.Table) -> dict[tuple[str, int], float]:
    """Return the longest idle time in ms after which a request on the same connection was still answered, by server."""
    stream, start, end = (arrays.numbers(stretches, name) for name in ("stream", "start", "end"))
    complete = arrays.numbers(stretches, "complete").astype(bool)
    requests = np.flatnonzero(request_mask(stretches))
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


@dataclass
class Explained:
    """What the rules found, and the streams and exchanges that need no other finding."""

    findings: list[Finding] = field(default_factory=list)
    streams: set[int] = field(default_factory=set)
    exchanges: set[int | None] = field(default_factory=set)
    unseen_answers: set[int] = field(default_factory=set)
    """Streams on which the server sent more than was captured."""
    reset: set[int] = field(default_factory=set)
    """Streams that the silent side had reset before."""


def explained_by_packets(
    tables: Mapping[str, pa.Table], waits: Sequence[UnansweredWait], requests_of: Mapping[tuple[str, int], int]
) -> Explained:
    """Apply the rules to the packets of these streams, and of others that stand still."""
    streams, stretches, events = tables["streams"], tables["stretches"], segments(tables)
    if events is None:
        return Explained()
    standing = standing_still(tables, events, {wait.stream for wait in waits})
    all_waits = sorted([*waits, *standing], key=lambda wait: -wait.waited_ms)
    with_request = {wait.stream for wait in all_waits if wait.exchange is not None}
    number_type = arrays.numbers(streams, "stream").dtype
    courses = stream_ends.courses(events, np.array(list(dict.fromkeys(wait.stream for wait in all_waits)), number_type))
    names = ("client_icmp_too_big", "client_icmp_next_mtu", "server_icmp_too_big", "server_icmp_next_mtu", "position")
    rows = arrays.looked_up(streams, "stream", np.array(list(courses), number_type), names)
    notices, positions = {}, {}
    for stream, (to_client, client_mtu, to_server, server_mtu, position) in zip(courses, rows, strict=True):
        notices[stream] = (to_client or 0) + (to_server or 0), server_mtu or client_mtu or 0
        positions[stream] = position
    idled = survived(stretches, streams) if stretches.num_rows else {}
    next_at, lives = _next_answered(streams), _lives(streams)
    explained = Explained()

    def too_large(wait: UnansweredWait, course: Course) -> Reason | None:
        sides = (_too_large(client, wait, course, notices[wait.stream]) for client in (False, True))
        return next((reason for reason in sides if reason is not None), None)

    def after_idling(wait: UnansweredWait, course: Course) -> Reason | None:
        if wait.exchange is None and wait.stream in with_request:
            return None
        reason = _ended_idle(wait, course, next_at) or _forgotten(wait, course, lives)
        return reason if reason is not None and reason.values["idle_ms"] > idled.get(wait.key, 0.0) else None

    rules = (
        Rule(too_large, _path_mtu, of_missing=True),
        Rule(after_idling, lambda reasons: _after_idling(reasons, idled, requests_of)),
        Rule(_unprobed, _peer_gone),
        Rule(_stopped, lambda reasons: _half_way(reasons, requests_of, lambda n: positions[n] == "at_server")),
    )
    for rule in rules:
        waits_left = [
            wait
            for wait in all_waits
            if wait.stream not in explained.streams and (rule.of_missing or not wait.is_missing)
        ]
        for finding, waits_of_finding in rule.apply(waits_left, courses):
            explained.findings.append(finding)
            explained.streams |= {wait.stream for wait in waits_of_finding}
            explained.exchanges |= {wait.exchange for wait in waits_of_finding} - {None}
    explained.unseen_answers = {stream for stream, course in courses.items() if course.unseen(client=False) > 0}
    explained.reset = {
        wait.stream
        for wait in waits
        if wait.stream in courses and courses[wait.stream].reset_by(client=wait.cause == "client")
    }
    return explained


def _next_answered(streams: pa.Table) -> Callable[[UnansweredWait, int], tuple[int, bool] | None]:
    """Return a function that finds the next answered connection to the server of a wait after an instant.

    It returns the start of that connection and whether the same client opened it; None without one.
    """
    start, answers = arrays.numbers(streams, "start"), arrays.numbers(streams, "server_packets")
    (server, servers), port = arrays.codes(streams, "server"), arrays.numbers(streams, "server_port")
    client, clients = arrays.codes(streams, "client")

    def next_at(wait: UnansweredWait, instant: int) -> tuple[int, bool] | None:
        to_server = (server == servers.index(wait.server)) & (port == wait.port)
        rows = np.flatnonzero(to_server & (start > instant) & (answers > 0))
        if not len(rows):
            return None
        first = rows[start[rows].argmin()]
        return int(start[first]), clients[int(client[first])] == wait.client

    return next_at


def _lives(streams: pa.Table) -> Callable[[UnansweredWait, int], bool]:
    """Return a function that decides whether the client of a wait sent on another connection after an instant."""
    number, end = arrays.numbers(streams, "stream"), arrays.numbers(streams, "end")
    (client, clients), sent = arrays.codes(streams, "client"), arrays.numbers(streams, "client_packets") > 0

    def lives(wait: UnansweredWait, instant: int) -> bool:
        later_of_client = (client == clients.index(wait.client)) & (number != wait.stream) & sent
        return bool((end[later_of_client] > instant).any())

    return lives
