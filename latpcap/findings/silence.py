"""Find requests without an answer and peers that fell silent, and the reason that their packets show.

Reasons are answers that stop half way, packets too large for the path, and idle connections that were dropped or
closed too soon. Each is a rule over the packets of a stream (`Course`); a case that fits none stays unanswered, or
silent. An unanswered request has no latency and is in no percentile, although it waits the longest. The repeats sent
to a silent peer are no sign of loss on the path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.findings.evidence import called
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding, Grade, wireshark_filter
from latpcap.limits import LIMITS
from latpcap.tables import CAPTURE_BITS, NS_PER_MS, SETUP
from latpcap.user_waits import stream_ends
from latpcap.user_waits.cause_totals import endpoint, server_keys
from latpcap.user_waits.segments import segments
from latpcap.user_waits.slow_requests import polls
from latpcap.user_waits.slow_requests import streams as streaming
from latpcap.user_waits.stream_ends import Course, Resent
from latpcap.vocabulary import GUESSED, PROBABLE, SHOWN, protocol_names

if TYPE_CHECKING:
    import pyarrow as pa

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


def path_mtu(
    cases: Sequence[UnansweredWait], courses: Mapping[int, Course], notices: Mapping[int, tuple[int, int]]
) -> list[tuple[UnansweredWait, Finding]]:
    """Find cases whose packets are too large for the path; one finding per server, direction and kind.

    `notices`: by stream, the number of ICMP "too big" messages and the MTU that they name (RFC 1191, RFC 8201).
    """
    groups: dict[tuple[str, int, bool, str], list[tuple[UnansweredWait, dict[str, Any], Grade]]] = defaultdict(list)
    for case in cases:
        course = courses.get(case.stream)
        if course is None:
            continue
        for client in (False, True):
            refusal = _too_large(case, course, client, notices.get(case.stream))
            if refusal is not None:
                word, values, grade = refusal
                groups[case.server, case.port, client, word].append((case, values, grade))
                break
    findings = []
    for (server, port, by_client, word), grouped in groups.items():
        case, values, grade = max(grouped, key=lambda one: one[1]["span_ms"])
        one_client = len({c.client for c, *_ in grouped}) == 1
        there = (case.client if one_client else words.say("clients"), endpoint(server, port))
        sender, receiver = there if by_client else there[::-1]
        values = {**values, "sender": sender, "receiver": receiver, "n": len(grouped)}
        waits = [c for c, *_ in grouped]
        made = _finding("path_mtu", word, values, waits, "network", grade, values["span_ms"])
        findings += [(c, made) for c, *_ in grouped]
    return findings


def _too_large(
    case: UnansweredWait, course: Course, client: bool, notices: tuple[int, int] | None
) -> tuple[str, dict[str, Any], Grade] | None:
    held = course.held(client)
    if held is None or held.copies < LIMITS["hung_copies"] or held.length < LIMITS["mtu_least_bytes"]:
        return _never_came(course, client)
    icmp = notices is not None and notices[0] > 0
    if held.passed_before >= held.length or any(size >= held.length for size in held.sizes_passed):
        return None  # a packet of this size passed, so that this one was lost
    end = held.until if held.until is not None else _given_up(course, held)
    waited = (end - held.first) / NS_PER_MS
    if waited < LIMITS["stuck_ms"]:
        return None
    values = {"length": held.length, "repeats": held.copies - 1, "span_ms": waited, "cut": held.cut_to,
              "frame": held.frame}  # fmt: skip
    if icmp and notices is not None:
        values |= {"notices": notices[0], "mtu": notices[1], "mss": notices[1] - _header_bytes(case.server)}
        return ("path_mtu_icmp_heeded" if held.cut_to else "path_mtu_icmp"), values, "proven"
    if held.cut_to and held.cut_to < held.length:
        return "path_mtu_cut", values, "proven" if held.copies >= LIMITS["mtu_copies"] else "probable"
    if held.until is not None:
        return None  # it arrived uncut
    alive = _is_heard_late(course, held)
    if held.sizes_passed:
        return "path_mtu", values, "proven" if alive and held.copies >= LIMITS["mtu_copies"] else "probable"
    if held.passed_before and alive and held.copies >= LIMITS["mtu_copies"]:
        return "path_mtu_perhaps", values, "suspected"
    full = held.length >= course.most_allowed(client) - MAX_OPTIONS > 0
    if held.passed_before and not held.later_packets and full and held.copies >= LIMITS["mtu_copies"]:
        return "path_mtu_or_gone", values, "suspected"
    if not held.passed_before and course.only_large(client):
        return "path_mtu_all", values, "probable" if alive else "suspected"
    return None


def _header_bytes(address: str) -> int:
    """Return the bytes of the IP and TCP headers without options (RFC 9293 3.7.1, RFC 8200 8.3)."""
    return 60 if ":" in address else 40


def _given_up(course: Course, held: Resent) -> int:
    """Return the end of the wait: when the receiver closed, else the last packet."""
    place = course.closes(not held.by_client, course.at(held.frame))
    return int(course.time[place]) if place is not None else max(held.last, course.end)


def _is_heard_late(course: Course, held: Resent) -> bool:
    """Return whether the receiver sent anything after the second repeat, so that it runs and the way back works."""
    other = course.client != held.by_client
    copies = course.time[(course.client == held.by_client) & (course.seq == held.seq) & (course.len > 0)]
    return bool((course.time[other] > copies[2]).any()) if len(copies) > 2 else False


def _never_came(course: Course, client: bool) -> tuple[str, dict[str, Any], Grade] | None:
    """Find the same in a capture at the receiver: a hole of full size that stays, and only smaller packets after it."""
    hole = course.hole(client)
    most = course.most_allowed(client)
    if hole is None or not most:
        return None
    place, length, largest = hole
    closing = course.closes(not client, place)
    end = int(course.time[closing]) if closing is not None else course.end
    waited = (end - int(course.time[place])) / NS_PER_MS
    is_cut = largest < most - MAX_OPTIONS and length >= max(most - MAX_OPTIONS, LIMITS["mtu_least_bytes"])
    if not is_cut or waited < LIMITS["stuck_ms"]:
        return None
    values = {"length": length, "span_ms": waited, "cut": 0, "repeats": 0, "frame": int(course.frame[place])}
    return "path_mtu_in_vain", values, "probable"


def after_idling(
    cases: Sequence[UnansweredWait], courses: Mapping[int, Course], survived: Mapping[tuple[str, int], float],
    next_at: Callable[[UnansweredWait, int], tuple[int, bool] | None], requests_of: Mapping[tuple[str, int], int],
    lives: Callable[[UnansweredWait, int], bool],
) -> list[tuple[UnansweredWait, Finding]]:  # fmt: skip
    """Find cases whose connection had been idle and was closed, reset or dropped for that; by server.

    `survived`: by server, the longest idle time in ms after which it still answered. `next_at` returns when the next
    answered connection to the same server began after an instant, and whether this client opened it. `lives` returns
    whether the client sent on another connection after an instant.
    """
    groups: dict[tuple[str, int, str], list[tuple[UnansweredWait, dict[str, Any]]]] = defaultdict(list)
    with_request = {case.stream for case in cases if case.exchange is not None}
    for case in cases:
        course = None if case.exchange is None and case.stream in with_request else courses.get(case.stream)
        end = None if course is None else _ended_idle(case, course, next_at) or _forgotten(case, course, lives)
        if end is not None and end[1]["idle_ms"] > survived.get(case.key, 0.0):
            groups[case.server, case.port, end[0]].append((case, end[1]))
    findings = []
    for (server, port, word), grouped in groups.items():
        idle = [values["idle_ms"] for _, values in grouped]
        worst, values = max(grouped, key=lambda one: one[0].waited_ms)
        longest = survived.get((server, port), 0.0)
        several_ms = max(idle) >= (1 + LIMITS["timer_near_share"]) * min(idle)
        values = {
            **values, "server": endpoint(server, port), "n": len(grouped), "name": worst.name, "frame": worst.frame,
            "idle_ms": (min(idle), max(idle)) if several_ms else min(idle),
            "timer": _timer(min(idle), exact=word == "keepalive_race"),
            "least": words.say("timer_least", longest_ms=longest) if longest else "",
        }  # fmt: skip
        owner = "server" if word == "keepalive_race" else "network"
        grade: Grade = "proven" if word == "keepalive_race" else "probable"
        made = _finding(
            word, word, values, [c for c, _ in grouped], owner, grade,
            max(end.get("span_ms", case.waited_ms) for case, end in grouped),
            of=requests_of.get((server, port)),
        )  # fmt: skip
        findings += [(c, made) for c, _ in grouped]
    return findings


def _ended_idle(
    case: UnansweredWait, course: Course, next_at: Callable[[UnansweredWait, int], tuple[int, bool] | None]
) -> tuple[str, dict[str, Any]] | None:
    import numpy as np

    held = course.held(True)
    frame = case.frame if case.exchange is not None or held is None else held.frame
    place = course.at(frame)
    idle = course.silence_before(place) / NS_PER_MS
    sent = int(course.seq[place])
    shut = course.closes(client=False)
    if shut is not None and shut in course.fins and course.ack[shut] <= sent:
        before = np.flatnonzero((np.arange(len(course.time)) < min(shut, place)) & (course.len > 1))
        if not len(before):
            return None
        # idle until the server closed, while the request was on its way
        idle = int(course.time[shut] - course.time[before[-1]]) / NS_PER_MS
        return ("keepalive_race", {"idle_ms": idle}) if idle >= LIMITS["idle_least_ms"] else None
    if idle < LIMITS["idle_least_ms"]:
        return None
    if shut is not None and shut in course.resets and shut > place:
        from_server = np.flatnonzero(~course.client & (np.arange(len(course.time)) > place))
        if len(from_server) and from_server[0] == shut:
            return "idle_reset", {"idle_ms": idle}
    if held is None or held.until is not None or held.copies < LIMITS["hung_copies"]:
        return None
    if held.frame != frame or held.later_packets:
        return None
    next_connection = next_at(case, held.first)
    if next_connection is None:
        return None  # nothing shows that the server was running
    begun, is_own = next_connection
    until = begun if is_own else max(held.last, course.end, begun)  # the client's own new connection ends its wait
    return "idle_drop", {"idle_ms": idle, "repeats": held.copies - 1, "span_ms": (until - held.first) / NS_PER_MS}


def _forgotten(
    case: UnansweredWait, course: Course, lives: Callable[[UnansweredWait, int], bool]
) -> tuple[str, dict[str, Any]] | None:
    """Find data that the server repeated on an idle connection without effect while the client was running."""
    held = course.held(False)
    if held is None or held.until is not None or held.copies < LIMITS["hung_copies"] or held.later_packets:
        return None
    idle = course.silence_before(course.at(held.frame)) / NS_PER_MS
    if idle < LIMITS["idle_least_ms"] or not lives(case, held.first):
        return None
    values = {"idle_ms": idle, "repeats": held.copies - 1, "span_ms": (held.last - held.first) / NS_PER_MS}
    return "idle_drop_push", {**values, "client": case.client}


def dead(cases: Sequence[UnansweredWait], courses: Mapping[int, Course]) -> list[tuple[UnansweredWait, Finding]]:
    """Find connections whose peer no longer answers keep-alive probes; by server and side."""
    groups: dict[tuple[str, int, bool], list[tuple[UnansweredWait, dict[str, Any]]]] = defaultdict(list)
    for case in cases:
        course = courses.get(case.stream)
        probes_from = None if course is None else course.probes()
        if course is not None and probes_from is not None:
            client, probes, first = probes_from
            values: dict[str, Any] = {
                "repeats": probes, "span_ms": (course.end - int(course.time[first])) / NS_PER_MS,
                "idle_ms": course.silence_before(first) / NS_PER_MS, "frame": int(course.frame[first]),
                "until": words.say("probed_reset" if course.reset_by(client) else "probed_on"),
            }  # fmt: skip
            groups[case.server, case.port, client].append((case, values))
    findings = []
    for (server, port, client), grouped in groups.items():
        _, values = max(grouped, key=lambda one: one[1]["span_ms"])
        name, peer = endpoint(server, port), words.say("client_of", server=endpoint(server, port))
        sides = {"prober": peer, "silent": name} if client else {"prober": name, "silent": peer}
        values = {**values, **sides, "n": len(grouped)}
        waits = [case for case, _ in grouped]
        made = _finding("peer_gone", "peer_gone", values, waits, "network", "probable", values["span_ms"])
        findings += [(case, made) for case in waits]
    return findings


def _timer(idle_ms: float, *, exact: bool) -> str:
    """Return a phrase that names the software with this idle time-out; "" if none is known.

    `exact`: the close itself was captured, else it happened some time before `idle_ms` were over.
    """
    idle, near = idle_ms / 1000, LIMITS["timer_near_share"]
    least = 1 - near if exact else 1.0
    fits = [seconds for seconds in TIMERS_S if seconds * least <= idle <= seconds * (1 + near)]
    return words.say("timer_like", whose=words.say(f"timer_{fits[-1]}")) if fits else ""


def half_way(
    cases: Sequence[UnansweredWait], courses: Mapping[int, Course], at_server: Callable[[int], bool],
    answered: Mapping[tuple[str, int], int],
) -> list[tuple[UnansweredWait, Finding]]:  # fmt: skip
    """Find answers that began and stopped; by server. `answered`: how many answers each server began."""
    groups: dict[tuple[str, int], list[tuple[UnansweredWait, dict[str, Any]]]] = defaultdict(list)
    for case in cases:
        course = courses.get(case.stream)
        stop = None if course is None or not case.is_partial else _stopped(case, course)
        if stop is not None:
            groups[case.key].append((case, stop))
    findings = []
    for key, grouped in groups.items():
        worst, values = max(grouped, key=lambda one: one[1]["span_ms"])
        of = answered.get(key, len(grouped))
        values = {**values, "server": endpoint(*key), "name": worst.name, "frame": worst.frame, "n": len(grouped),
                  "of": of}  # fmt: skip
        word = "stalled_answer" if of == 1 else "stalled_answers"
        proven = at_server(worst.stream)
        made = _finding(
            "stalled_answer", word, values, [c for c, _ in grouped], "server", "proven" if proven else "probable",
            values["waited_ms"], of=of,
        )  # fmt: skip
        findings += [(c, made) for c, _ in grouped]
    return findings


def _stopped(case: UnansweredWait, course: Course) -> dict[str, Any] | None:
    import numpy as np

    place = course.at(case.frame)
    answer_packets = np.flatnonzero(~course.client & (course.len > 0) & (np.arange(len(course.time)) > place))
    if not len(answer_packets) or course.unacked(client=False):
        return None
    last = int(answer_packets[-1])
    if course.as_long_as_one_before(last):
        return None  # the answer is whole, although its header gave no length
    shut = [at for at in (course.closes(client=side, after=last) for side in (True, False)) if at is not None]
    waited_until = int(course.time[place]) + int(case.waited_ms * NS_PER_MS)  # the capture may go on after the stream
    end = int(course.time[min(shut)]) if shut else max(course.end, waited_until)
    gap = (end - int(course.time[last])) / NS_PER_MS
    gaps = np.diff(course.time[answer_packets]) / NS_PER_MS
    if gap < LIMITS["stuck_ms"] or (len(gaps) and gaps.max() > gap / 2):
        return None  # the server sends in pieces with pauses
    windows = course.window[course.client]
    if len(windows) and windows[-1] == 0:
        return None  # the client's window is closed
    ended_by = None if not shut else bool(course.client[min(shut)])
    begun = int(course.seq[answer_packets].min())
    return {
        "bytes": int((course.seq + course.len)[answer_packets].max()) - begun,
        "span_ms": gap,
        "waited_ms": (end - int(course.time[place])) / NS_PER_MS,
        "until": words.say(_UNTIL[ended_by]),
    }


def _finding(
    cause: str, word: str, values: dict[str, Any], cases: Sequence[UnansweredWait], owner: str, grade: Grade,
    waited_ms: float, *, of: int | None = None,
) -> Finding:  # fmt: skip
    worst = max(cases, key=lambda c: c.waited_ms)
    with_request = [c for c in cases if c.exchange is not None]
    return Finding(
        kind="silence", server=worst.server, server_port=worst.port, cause=cause, owner=owner,
        clients=len({c.client for c in cases}), client=worst.client, exchanges=len(with_request) or None,
        of_exchanges=of if with_request else None, streams=len({c.stream for c in cases}),
        total_ms=max(waited_ms, sum(c.waited_ms for c in cases)), max_ms=waited_ms,
        confidence=SURE[grade], worst_exchange=worst.exchange, worst_stream=worst.stream,
        worst_ms=waited_ms, worst_frames=(values.get("frame", worst.frame),),
        filter=wireshark_filter(worst.stream),
        harm="never", sentence=word, values=values,
    )  # fmt: skip


def survived(exchanges: pa.Table, streams: pa.Table) -> dict[tuple[str, int], float]:
    """Return the longest idle time in ms after which a request on the same connection was still answered, by server."""
    import numpy as np

    stream, start, end = (arrays.numbers(exchanges, name) for name in ("stream", "start", "end"))
    complete = arrays.numbers(exchanges, "complete").astype(bool)
    requests = np.flatnonzero(~arrays.equals(exchanges, "protocol", SETUP))
    order = requests[np.lexsort((start[requests], stream[requests]))]
    stream, start, end, complete = stream[order], start[order], end[order], complete[order]
    follows = (stream[1:] == stream[:-1]) & complete[1:] & complete[:-1]
    idle = np.where(follows, (start[1:] - end[:-1]) / NS_PER_MS, 0.0)
    rows = np.flatnonzero(idle >= LIMITS["idle_least_ms"])
    longest: dict[tuple[str, int], float] = {}
    ends = arrays.looked_up(streams, "stream", stream[1:][rows], ("server", "server_port"))
    for key, waited in zip(ends, idle[rows].tolist(), strict=True):
        longest[key[0], key[1]] = max(longest.get((key[0], key[1]), 0.0), waited)
    return longest


def _deduplicated(
    found_by_case: Iterable[tuple[UnansweredWait, Finding]],
) -> tuple[list[Finding], set[int], set[int | None]]:
    """Return the findings, each once, and the streams and the exchanges that they explain."""
    pairs = list(found_by_case)
    once = list({id(finding): finding for _, finding in pairs}.values())
    return once, {case.stream for case, _ in pairs}, {case.exchange for case, _ in pairs}


def find(tables: Mapping[str, pa.Table], pushed: Pushed | None = None) -> list[Finding]:
    """Find requests that were never answered, and peers that fell silent; by server, the longest wait first.

    `pushed`: the streams on which servers send without requests.
    """
    unanswered, requests_of = _unanswered(tables, pushed)
    gone = _silent_peers(tables)
    explained, done, known, answered, left = _explained(tables, [*unanswered, *gone], requests_of)
    known |= {case.exchange for case in unanswered if case.stream in answered}
    groups: dict[tuple[str, str, int], list[UnansweredWait]] = defaultdict(list)
    for place, case in enumerate(gone):
        of_stream = [one for one in unanswered if one.stream == case.stream and one.cause == "unanswered_request"]
        if of_stream and case.cause == "server" and case.stream not in left:  # the server answers nothing at all
            first = max(of_stream, key=lambda one: one.waited_ms)
            gone[place] = replace(case, name=first.name, waited_ms=first.waited_ms, exchange=first.exchange)
            known |= {one.exchange for one in of_stream}
    for case in unanswered:
        if case.cause and case.exchange not in known:
            groups[case.cause, case.server, case.port].append(case)
    findings = [_row(cause, "server", at, cases, requests_of[at]) for cause, at, cases in _keyed(groups)]
    groups.clear()
    for case in gone:
        if case.stream not in done and case.stream not in left:
            groups[case.cause, case.server, case.port].append(case)
    findings += [_row("silent_peer", side, at, cases, 0) for side, at, cases in _keyed(groups)]
    return sorted(explained + findings, key=lambda f: -(f.max_ms or 0.0))


def _explained(
    tables: Mapping[str, pa.Table], cases: Sequence[UnansweredWait], requests_of: Mapping[tuple[str, int], int]
) -> tuple[list[Finding], set[int], set[int | None], set[int], set[int]]:
    """Apply the rules to the packets of these streams, and of others that stand still.

    Returns the findings; the streams and the exchanges that they explain; the streams on which the server sent more
    than was captured; and the streams that the silent side had reset before.
    """
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    if events is None:
        return [], set(), set(), set(), set()
    numbers = arrays.numbers(streams, "stream")
    waiting = {case.stream for case in cases}
    still = np.union1d(np.union1d(events.stuck(), events.probed()), _with_holes(tables)).tolist()
    standing = [n for n in still if n not in waiting]
    ends = arrays.looked_up(streams, "stream", np.array(standing, numbers.dtype), ENDS)
    more = [
        UnansweredWait(number, client, server, port, 0, 0.0, "")
        for number, (server, port, client) in zip(standing, ends, strict=True)
    ]
    every = sorted([*cases, *more], key=lambda case: -case.waited_ms)
    courses = stream_ends.courses(events, np.array(list(dict.fromkeys(case.stream for case in every)), numbers.dtype))
    named = ("client_icmp_too_big", "client_icmp_next_mtu", "server_icmp_too_big", "server_icmp_next_mtu", "position")
    wanted = np.array(list(courses), numbers.dtype)
    facts = dict(zip(courses, arrays.looked_up(streams, "stream", wanted, named), strict=True))
    notices = {n: ((f[0] or 0) + (f[2] or 0), f[3] or f[1] or 0) for n, f in facts.items()}
    streams_done: set[int] = set()
    exchanges_done: set[int | None] = set()
    findings: list[Finding] = []
    idled = survived(tables["exchanges"], streams) if tables["exchanges"].num_rows else {}
    later = _next_answered(streams)
    rules: list[Callable[[list[UnansweredWait]], list[tuple[UnansweredWait, Finding]]]] = [
        lambda left: path_mtu(left, courses, notices),
        lambda left: after_idling(left, courses, idled, later, requests_of, _lives(streams)),
        lambda left: dead(left, courses),
        lambda left: half_way(left, courses, lambda n: facts[n][4] == "at_server", requests_of),
    ]
    for rule in rules:
        left = [case for case in every if case.stream not in streams_done]
        rows, numbered, exchanges = _deduplicated(rule(left))
        findings += rows
        streams_done |= numbered
        exchanges_done |= exchanges
    answered = {number for number, one in courses.items() if one.unseen(client=False) > 0}
    reset = {
        case.stream
        for case in cases
        if case.stream in courses and courses[case.stream].reset_by(client=case.cause == "client")
    }
    return findings, streams_done, exchanges_done - {None}, answered, reset


def _with_holes(tables: Mapping[str, pa.Table]) -> Array:
    """Return streams whose answer waited long for packets missing in the capture; the receiver may lack them too."""
    import numpy as np

    causes = tables["causes"]
    gaps = arrays.equals(causes, "cause", "capture_gap") & (arrays.numbers(causes, "duration_ms") >= LIMITS["stuck_ms"])
    numbers = np.unique(arrays.numbers(causes, "exchange")[gaps])
    matches = arrays.looked_up(tables["exchanges"], "exchange", numbers, ("stream",)) if len(numbers) else []
    return np.array(sorted({stream for (stream,) in matches}), np.int64)


def _next_answered(streams: pa.Table) -> Callable[[UnansweredWait, int], tuple[int, bool] | None]:
    """Return a function that finds the next answered connection to a case's server after an instant.

    It returns the start of that connection and whether the case's client opened it; None without one.
    """
    import numpy as np

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


def _keyed(
    groups: Mapping[tuple[str, str, int], list[UnansweredWait]],
) -> Iterator[tuple[str, tuple[str, int], list[UnansweredWait]]]:
    for (word, server, port), cases in groups.items():
        yield word, (server, port), cases


def _unanswered(
    tables: Mapping[str, pa.Table], pushed: Pushed | None
) -> tuple[list[UnansweredWait], dict[tuple[str, int], int]]:
    """Find the requests without a complete answer, and count the requests of each server.

    - "unanswered_request": no answer for 1 s (`stuck_ms`) or more, until the stream or the capture ended.
    - "closed_on_request": the server closed the connection instead of answering.
    - no cause: the answer began and did not end, or an RST met a request that `after_idling` may explain.
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
    two_way_answers = _answered_two_way(streams.num_rows, exchanges, place)
    unanswered, waits, closings, begun, counts = [], [], [], [], np.zeros(streams.num_rows, np.uint32)
    for span, rows in arrays.sliced(exchanges):
        is_request = ~arrays.equals(rows, "protocol", SETUP)
        np.add.at(counts, place[span][is_request], 1)
        silent = np.isnan(arrays.numbers(rows, "response_first_frame").astype(float))
        incomplete = ~arrays.numbers(rows, "complete").astype(bool)
        requested, stream_rows = arrays.numbers(rows, "request_end"), place[span]
        left = (last[stream_rows] - requested) / NS_PER_MS
        still = arrays.equals(rows, "cut_by", "capture_end") & ~closed[stream_rows] & (left < MAX_WAIT_MS)
        waited = np.where(still, left, (end[stream_rows] - requested) / NS_PER_MS)
        which = is_request & ~polls(rows)  # long polls are meant to wait
        which &= answers[stream_rows] & incomplete
        nameless = arrays.codes(rows, "method")[0] < 0
        half = which & ~nameless & ~silent & (waited >= LIMITS["stuck_ms"]) & ~streaming(rows)
        half &= ~arrays.equals(rows, "protocol", TWO_WAY)
        which &= ~arrays.equals(rows, "protocol", TWO_WAY) | (two_way_answers[stream_rows] >= MIN_TWO_WAY_ANSWERS)
        which &= ~lost[stream_rows] & silent & ~arrays.equals(rows, "cut_by", "gap")
        never = (waited >= LIMITS["stuck_ms"]) & ~nameless
        met = shut[stream_rows] & arrays.equals(rows, "cut_by", "fin", "rst") & ~never
        encrypted = nameless & arrays.equals(rows, "protocol", "tls")
        encrypted &= arrays.numbers(rows, "request_bytes") >= MIN_TLS_REQUEST
        closed_instead = met & (arrays.equals(rows, "protocol", *protocol_names("all_answered")) | encrypted)
        met_rst = met & ~closed_instead & arrays.equals(rows, "cut_by", "rst")
        which &= never | closed_instead | met_rst
        which |= half
        if pushed is not None:  # with pushes, requests and answers cannot be distinguished
            which &= ~(
                arrays.equals(rows, "protocol", TWO_WAY) & (pushed.of_streams(arrays.numbers(rows, "stream")) > 0)
            )
        unanswered.append(np.flatnonzero(which) + span.start)
        waits.append(waited[which])
        closings.append(np.where(met_rst, 2, closed_instead)[which])
        begun.append(half[which])
    rows, waited, closes, halves = (np.concatenate(parts) for parts in (unanswered, waits, closings, begun))
    columns = ("exchange", "stream", "request_first_frame", "method", "target")
    seen = zip(*(arrays.taken(exchanges, c, rows).to_pylist() for c in columns), strict=True)
    ends = arrays.looked_up(streams, "stream", arrays.numbers(exchanges, "stream")[rows], ENDS)
    each = zip(seen, ends, waited.tolist(), closes.tolist(), halves.tolist(), strict=True)
    cases = [
        UnansweredWait(
            stream, client, server, port, frame, wait,
            called(method, target) if method or target else words.say("nameless"), number,
            is_partial=half,
            cause="" if half or closing > 1 else "closed_on_request" if closing else "unanswered_request",
        )
        for (number, stream, frame, method, target), (server, port, client), wait, closing, half in each
    ]  # fmt: skip
    return cases, _requests(streams, counts) if cases else {}


def _answered_two_way(count: int, exchanges: pa.Table, place: Array) -> Array:
    """Count for each stream the answered messages of a protocol in which either side may send at any time."""
    import numpy as np

    counts = np.zeros(count, np.uint32)
    for span, rows in arrays.sliced(exchanges):
        which = arrays.equals(rows, "protocol", TWO_WAY) & arrays.numbers(rows, "complete").astype(bool)
        np.add.at(counts, place[span][which], 1)
    return counts


def _last(end: Array, exchanges: pa.Table, place: Array) -> Array:
    """Return the end of each stream's capture; an archive of several captures has several ends."""
    import numpy as np

    which = np.full(len(end), -1, np.int64)
    for span, rows in arrays.sliced(exchanges):
        which[place[span]] = arrays.numbers(rows, "exchange").astype(np.int64) >> CAPTURE_BITS
    if which.max() <= 0:
        return np.full(len(end), end.max())
    known = which >= 0
    ends = np.zeros(int(which.max()) + 1, end.dtype)
    np.maximum.at(ends, which[known], end[known])
    captures_end: Array = ends[which]
    return captures_end


def _unread_answers(streams: pa.Table, exchanges: pa.Table, place: Array) -> Array:
    """Return the streams with unreadable data of the server, in protocols in which it only answers."""
    import numpy as np

    requested, answered = np.zeros(streams.num_rows, bool), np.zeros(streams.num_rows, bool)
    for span, rows in arrays.sliced(exchanges):
        is_request = arrays.equals(rows, "protocol", *protocol_names("client_first"))
        requested[place[span][is_request]] = True
        first = arrays.numbers(rows, "response_first_frame").astype(float)
        answered[place[span][is_request & ~np.isnan(first)]] = True
    unread: Array = requested & ~answered & (arrays.numbers(streams, "server_payload_bytes") > 0)
    return unread


def _requests(streams: pa.Table, counts: Array) -> dict[tuple[str, int], int]:
    """Return the number of requests of each server; `counts` has those of each stream."""
    first, which, _ = arrays.grouped(server_keys(streams))
    per_server = spill.sum_weights(which, counts, len(first)).astype(int).tolist()
    servers, ports = (arrays.taken(streams, name, first).to_pylist() for name in ("server", "server_port"))
    return dict(zip(zip(servers, ports, strict=True), per_server, strict=True))


def _silent_peers(tables: Mapping[str, pa.Table]) -> list[UnansweredWait]:
    """Find peers that sent nothing while the other side repeated its data for 1 s (`stuck_ms`) or more."""
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    many = [arrays.numbers(streams, f"{side}_retransmissions") >= MIN_REPEATS for side in ("client", "server")]
    both = (arrays.numbers(streams, "client_packets") > 0) & (arrays.numbers(streams, "server_packets") > 0)
    wanted = arrays.numbers(streams, "stream")[(many[0] | many[1]) & both]
    if events is None or not len(wanted):
        return []
    waits = []
    gone = [
        (number, is_client, frame, (until - since) / NS_PER_MS, repeats)
        for number, is_client, frame, since, repeats, until in events.gone(wanted)
        if repeats >= MIN_REPEATS and (until - since) / NS_PER_MS >= LIMITS["stuck_ms"]
    ]
    ends = arrays.looked_up(streams, "stream", np.array([number for number, *_ in gone], wanted.dtype), ENDS)
    for (number, is_client, frame, waited, repeats), (server, port, client) in zip(gone, ends, strict=True):
        side = "client" if is_client else "server"
        waits.append(UnansweredWait(number, client, server, port, frame, waited, "", repeats=repeats, cause=side))
    return waits


def _row(cause: str, owner: str, key: tuple[str, int], cases: list[UnansweredWait], of: int) -> Finding:
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
        "request": words.say("silent_request", name=worst.name) if cause == "silent_peer" and worst.name else "",
        "wait": words.say("wait" if worst.waited_ms < MAX_WAIT_MS else "wait_hour", wait_ms=worst.waited_ms),
    }  # fmt: skip
    late = cause == "closed_on_request" and worst.waited_ms >= LIMITS["setup_ms"]
    values["after"] = words.say("closed_after", wait_ms=worst.waited_ms) if late else ""
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
