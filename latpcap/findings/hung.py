"""What ended a wait that was never answered? Cases of silence and the packets of their streams in; findings out:
answers that stop half way, packets too large for the path, idle connections that were dropped or closed too soon.

Each is a rule over `Course`, and a case that fits none stays what it was: unanswered, or silent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.account.course import Course, Held
from latpcap.account.totals import endpoint
from latpcap.findings.schema import Finding, Grade
from latpcap.limits import LIMITS
from latpcap.tables import MS, SETUP

if TYPE_CHECKING:
    import pyarrow as pa

OPTIONS = 40
"""TCP's options take so many bytes of a segment at most."""
TIMERS_S = (5, 10, 15, 60, 65, 75, 120, 240, 300, 350, 600, 900, 1800, 3600, 7200, 28800, 432000)
"""Idle time-outs that people run into; the catalogue says whose each is by default."""


@dataclass(frozen=True)
class Case:
    """A wait that was not answered, or a stream that stands still."""

    stream: int
    client: str
    server: str
    port: int
    frame: int
    waited_ms: float
    name: str
    exchange: int | None = None
    half: bool = False
    """The answer had begun."""

    @property
    def key(self) -> tuple[str, int]:
        """The server."""
        return self.server, self.port


def path_mtu(
    cases: Sequence[Case], courses: Mapping[int, Course], told: Mapping[int, tuple[int, int]]
) -> list[tuple[Case, Finding]]:
    """Cases whose packets are too large for the path, by server and direction."""
    groups: dict[tuple[str, int, bool, str], list[tuple[Case, dict[str, Any], Grade]]] = defaultdict(list)
    for case in cases:
        course = courses.get(case.stream)
        if course is None:
            continue
        for client in (False, True):
            found = _too_large(case, course, client, told.get(case.stream))
            if found is not None:
                word, values, grade = found
                groups[case.server, case.port, client, word].append((case, values, grade))
                break
    findings = []
    for (server, port, by_client, word), several in groups.items():
        case, values, grade = max(several, key=lambda one: one[1]["span_ms"])
        one_client = len({c.client for c, *_ in several}) == 1
        there = (case.client if one_client else words.say("clients"), endpoint(server, port))
        sender, receiver = there if by_client else there[::-1]
        values = {**values, "sender": sender, "receiver": receiver, "n": len(several)}
        mine = [c for c, *_ in several]
        made = _finding("path_mtu", word, values, mine, "network", grade, values["span_ms"])
        findings += [(c, made) for c, *_ in several]
    return findings


def _too_large(
    case: Case, course: Course, client: bool, told: tuple[int, int] | None
) -> tuple[str, dict[str, Any], Grade] | None:
    held = course.held(client)
    if held is None or held.copies < LIMITS["hung_copies"] or held.length < LIMITS["mtu_least_bytes"]:
        return _never_came(course, client)
    icmp = told is not None and told[0] > 0
    if held.passed_before >= held.length or any(size >= held.length for size in held.sizes_passed):
        return None  # a packet of this size passed: this one was lost
    end = held.until if held.until is not None else _given_up(course, held)
    waited = (end - held.first) / MS
    if waited < LIMITS["stuck_ms"]:
        return None
    values = {"length": held.length, "repeats": held.copies - 1, "span_ms": waited, "cut": held.cut_to,
              "frame": held.frame}  # fmt: skip
    if icmp and told is not None:
        values |= {"told": told[0], "mtu": told[1], "mss": told[1] - 40}
        return ("path_mtu_icmp_heeded" if held.cut_to else "path_mtu_icmp"), values, "proven"
    if held.cut_to and held.cut_to < held.length:
        return "path_mtu_cut", values, "proven" if held.copies >= LIMITS["mtu_copies"] else "probable"
    if held.until is not None:
        return None  # it came through as it was
    alive = _heard_late(course, held)
    if held.sizes_passed:
        return "path_mtu", values, "proven" if alive and held.copies >= LIMITS["mtu_copies"] else "probable"
    if held.passed_before and alive and held.copies >= LIMITS["mtu_copies"]:
        return "path_mtu_perhaps", values, "suspected"
    return None


def _given_up(course: Course, held: Held) -> int:
    """When somebody stopped waiting: the other side closed, or the last packet."""
    place = course.closes(not held.by_client, course.at(held.frame))
    return int(course.time[place]) if place is not None else max(held.last, course.end)


def _heard_late(course: Course, held: Held) -> bool:
    """Did the other side say anything after the second repeat? Then it is there, and so is the way back."""
    other = course.client != held.by_client
    copies = course.time[(course.client == held.by_client) & (course.seq == held.seq) & (course.len > 0)]
    return bool((course.time[other] > copies[2]).any()) if len(copies) > 2 else False


def _never_came(course: Course, client: bool) -> tuple[str, dict[str, Any], Grade] | None:
    """At the receiver: a hole of full size that stays, behind which only smaller packets come."""
    found = course.hole(client)
    most = course.most_allowed(client)
    if found is None or not most:
        return None
    place, length, came = found
    closing = course.closes(not client, place)
    end = int(course.time[closing]) if closing is not None else course.end
    waited = (end - int(course.time[place])) / MS
    small = came < most - OPTIONS and length >= max(most - OPTIONS, LIMITS["mtu_least_bytes"])
    if not small or waited < LIMITS["stuck_ms"]:
        return None
    values = {"length": length, "span_ms": waited, "cut": 0, "repeats": 0, "frame": int(course.frame[place])}
    return "path_mtu_in_vain", values, "probable"


def after_idling(
    cases: Sequence[Case], courses: Mapping[int, Course], survived: Mapping[tuple[str, int], float],
    next_at: Callable[[Case, int], int | None], asked_of: Mapping[tuple[str, int], int],
) -> list[tuple[Case, Finding]]:  # fmt: skip
    """Cases whose connection had been idle, and was closed, reset or dropped for that; by server.

    `survived`: the longest idle time in ms after which a server still answered. `next_at`: when did the next
    connection to the same server begin, behind this instant, that was answered?
    """
    groups: dict[tuple[str, int, str], list[tuple[Case, dict[str, Any]]]] = defaultdict(list)
    for case in cases:
        course = courses.get(case.stream)
        found = None if course is None else _ended_idle(case, course, next_at)
        if found is not None and found[1]["idle_ms"] > survived.get(case.key, 0.0):
            groups[case.server, case.port, found[0]].append((case, found[1]))
    findings = []
    for (server, port, word), several in groups.items():
        idle = [values["idle_ms"] for _, values in several]
        worst, values = max(several, key=lambda one: one[0].waited_ms)
        longest = survived.get((server, port), 0.0)
        several_ms = max(idle) >= (1 + LIMITS["timer_near_share"]) * min(idle)
        values = {
            **values, "server": endpoint(server, port), "n": len(several), "name": worst.name, "frame": worst.frame,
            "idle_ms": (min(idle), max(idle)) if several_ms else min(idle),
            "timer": _timer(min(idle), exact=word == "keepalive_race"),
            "least": words.say("timer_least", longest_ms=longest) if longest else "",
        }  # fmt: skip
        owner = "server" if word == "keepalive_race" else "network"
        grade: Grade = "proven" if word == "keepalive_race" else "probable"
        made = _finding(
            word, word, values, [c for c, _ in several], owner, grade,
            max(found.get("span_ms", case.waited_ms) for case, found in several),
            of=asked_of.get((server, port)),
        )  # fmt: skip
        findings += [(c, made) for c, _ in several]
    return findings


def _ended_idle(
    case: Case, course: Course, next_at: Callable[[Case, int], int | None]
) -> tuple[str, dict[str, Any]] | None:
    import numpy as np

    place = course.at(case.frame)
    idle = course.silence_before(place) / MS
    asked = int(course.seq[place])
    shut = course.closes(client=False)
    if shut is not None and shut in course.fins and course.ack[shut] <= asked:
        before = np.flatnonzero((np.arange(len(course.time)) < min(shut, place)) & (course.len > 1))
        if not len(before):
            return None
        idle = int(course.time[shut] - course.time[before[-1]]) / MS  # until it closed; the request came across that
        return ("keepalive_race", {"idle_ms": idle}) if idle >= LIMITS["idle_least_ms"] else None
    if idle < LIMITS["idle_least_ms"]:
        return None
    if shut is not None and shut in course.resets and shut > place:
        heard = np.flatnonzero(~course.client & (np.arange(len(course.time)) > place))
        if len(heard) and heard[0] == shut:
            return "idle_reset", {"idle_ms": idle}
    held = course.held(True)
    dead = held is not None and held.until is None and held.copies >= LIMITS["hung_copies"] and held.frame == case.frame
    if held is None or not dead or held.heard:
        return None
    anew = next_at(case, held.first)
    if anew is None:
        return None  # nothing shows that the server was there
    waited = (max(held.last, course.end, anew) - held.first) / MS
    return "idle_drop", {"idle_ms": idle, "repeats": held.copies - 1, "span_ms": waited}


def dead(cases: Sequence[Case], courses: Mapping[int, Course]) -> list[tuple[Case, Finding]]:
    """Connections whose other side answers no keep-alive probe any more; by server and side."""
    groups: dict[tuple[str, int, bool], list[tuple[Case, dict[str, Any]]]] = defaultdict(list)
    for case in cases:
        course = courses.get(case.stream)
        found = None if course is None else course.probes()
        if course is not None and found is not None:
            client, probes, first = found
            values: dict[str, Any] = {
                "repeats": probes, "span_ms": (course.end - int(course.time[first])) / MS,
                "idle_ms": course.silence_before(first) / MS, "frame": int(course.frame[first]),
                "until": words.say("probed_reset" if course.reset_by(client) else "probed_on"),
            }  # fmt: skip
            groups[case.server, case.port, client].append((case, values))
    findings = []
    for (server, port, client), several in groups.items():
        _, values = max(several, key=lambda one: one[1]["span_ms"])
        name, peer = endpoint(server, port), words.say("client_of", server=endpoint(server, port))
        who = {"asker": peer, "asked": name} if client else {"asker": name, "asked": peer}
        cases_ = [case for case, _ in several]
        made = _finding("peer_gone", "peer_gone", {**values, **who, "n": len(several)}, cases_, "network", "probable",
                        values["span_ms"])  # fmt: skip
        findings += [(case, made) for case in cases_]
    return findings


def _timer(idle_ms: float, *, exact: bool) -> str:
    """Whose known time-out that is; nothing where it is nobody's."""
    idle, near = idle_ms / 1000, LIMITS["timer_near_share"]
    least = 1 - near if exact else 1.0  # the close itself was seen, or only that it had come before
    fits = [seconds for seconds in TIMERS_S if seconds * least <= idle <= seconds * (1 + near)]
    return words.say("timer_like", whose=words.say(f"timer_{fits[-1]}")) if fits else ""


def half_way(
    cases: Sequence[Case], courses: Mapping[int, Course], at_server: Callable[[int], bool],
    answered: Mapping[tuple[str, int], int],
) -> list[tuple[Case, Finding]]:  # fmt: skip
    """Answers that began and stopped; by server. `answered`: how many answers each server began."""
    groups: dict[tuple[str, int], list[tuple[Case, dict[str, Any]]]] = defaultdict(list)
    for case in cases:
        course = courses.get(case.stream)
        found = None if course is None or not case.half else _stopped(case, course)
        if found is not None:
            groups[case.key].append((case, found))
    findings = []
    for key, several in groups.items():
        worst, values = max(several, key=lambda one: one[1]["span_ms"])
        of = answered.get(key, len(several))
        values = {**values, "server": endpoint(*key), "name": worst.name, "frame": worst.frame, "n": len(several),
                  "of": of}  # fmt: skip
        word = "stalled_answer" if of == 1 else "stalled_answers"
        proven = at_server(worst.stream)
        made = _finding(
            "stalled_answer", word, values, [c for c, _ in several], "server", "proven" if proven else "probable",
            values["waited_ms"], of=of,
        )  # fmt: skip
        findings += [(c, made) for c, _ in several]
    return findings


_UNTIL = {None: "until_end", True: "until_client", False: "until_server"}
"""Who ended the wait, by whether that is the client."""


def _stopped(case: Case, course: Course) -> dict[str, Any] | None:
    import numpy as np

    place = course.at(case.frame)
    mine = np.flatnonzero(~course.client & (course.len > 0) & (np.arange(len(course.time)) > place))
    if not len(mine) or course.unacked(client=False):
        return None
    last = int(mine[-1])
    shut = [at for at in (course.closes(client=side, after=last) for side in (True, False)) if at is not None]
    end = int(course.time[min(shut)]) if shut else course.end
    gap = (end - int(course.time[last])) / MS
    gaps = np.diff(course.time[mine]) / MS
    if gap < LIMITS["stuck_ms"] or (len(gaps) and gaps.max() > gap / 2):
        return None  # it comes in pieces, with times between
    windows = course.window[course.client]
    if len(windows) and windows[-1] == 0:
        return None  # the client takes nothing more
    whose = None if not shut else bool(course.client[min(shut)])
    begun = int(course.seq[mine].min())
    return {
        "bytes": int((course.seq + course.len)[mine].max()) - begun,
        "span_ms": gap,
        "waited_ms": (end - int(course.time[place])) / MS,
        "until": words.say(_UNTIL[whose]),
    }


def _finding(
    cause: str, word: str, values: dict[str, Any], cases: Sequence[Case], owner: str, grade: Grade, waited_ms: float,
    *, of: int | None = None,
) -> Finding:  # fmt: skip
    worst = max(cases, key=lambda c: c.waited_ms)
    asked = [c for c in cases if c.exchange is not None]
    return Finding(
        kind="silence", server=worst.server, server_port=worst.port, cause=cause, owner=owner,
        clients=len({c.client for c in cases}), client=worst.client, exchanges=len(asked) or None,
        of_exchanges=of if asked else None, streams=len({c.stream for c in cases}),
        total_ms=max(waited_ms, sum(c.waited_ms for c in cases)), max_ms=waited_ms, grade=grade,
        confidence=LIMITS[f"hung_{grade}_confidence"], worst_exchange=worst.exchange, worst_stream=worst.stream,
        worst_ms=waited_ms, worst_frames=(values.get("frame", worst.frame),),
        filter=on_stream(worst.stream),
        harm="never", sentence=word, values=values,
    )  # fmt: skip


def survived(exchanges: pa.Table, streams: pa.Table) -> dict[tuple[str, int], float]:
    """After which idle time, in ms, was a request on the same connection still answered? The longest, by server."""
    import numpy as np

    stream, start, end = (arrays.numbers(exchanges, name) for name in ("stream", "start", "end"))
    complete = arrays.numbers(exchanges, "complete").astype(bool)
    code, protocols = arrays.codes(exchanges, "protocol")
    asked = np.flatnonzero(code != arrays.code_of(protocols, SETUP))
    order = asked[np.lexsort((start[asked], stream[asked]))]
    stream, start, end, complete = stream[order], start[order], end[order], complete[order]
    follows = (stream[1:] == stream[:-1]) & complete[1:] & complete[:-1]
    idle = np.where(follows, (start[1:] - end[:-1]) / MS, 0.0)
    rows = np.flatnonzero(idle >= LIMITS["idle_least_ms"])
    found: dict[tuple[str, int], float] = {}
    ends = arrays.looked_up(streams, "stream", stream[1:][rows], ("server", "server_port"))
    for key, waited in zip(ends, idle[rows].tolist(), strict=True):
        found[key[0], key[1]] = max(found.get((key[0], key[1]), 0.0), waited)
    return found


def on_stream(number: int) -> str:
    """A display filter for Wireshark."""
    return f"tcp.stream eq {number}"


def told(found: Iterable[tuple[Case, Finding]]) -> tuple[list[Finding], set[int], set[int | None]]:
    """The findings, each once; the streams and the exchanges that they explain."""
    several = list(found)
    once = list({id(finding): finding for _, finding in several}.values())
    return once, {case.stream for case, _ in several}, {case.exchange for case, _ in several}
