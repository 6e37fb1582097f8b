"""Findings about DNS, ARP, NDP and other UDP services, and the answer's sentence about DNS.

Reads rows of "lookups": name servers that are slow or do not answer, lost answers, needless search-list names, reverse
lookups by servers. `summary` and `line` state whether DNS took time even where nothing was late.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, TypedDict

from latpcap import arrays, spill
from latpcap.findings.schema import Finding
from latpcap.format import endpoint, printable
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits import lookups as resolver
from latpcap.user_waits import services
from latpcap.user_waits.lookups import (
    AGAIN_MS,
    LATE_MS,
    NEIGHBOUR,
    SERVICES,
    Question,
    Resolution,
    address_in,
    owner_of,
    questions,
    resolutions,
)
from latpcap.words import joined, say

MAX_WORK_SHARE = 0.25
"""Largest share of the server's own work in a wait for a reverse lookup; above it, the wait is mostly that work."""


def _frames(question: Question) -> tuple[int, ...]:
    """Return the frames of a question and its answer."""
    return tuple(frame for frame in (question.frame, question.answer) if frame is not None)


def of_lookups(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Return late name lookups by reason and name server, reverse lookups of servers, and late ARP and NDP."""
    rows, all_questions = resolutions(tables["lookups"]), questions(tables["lookups"])
    reverse = _reverse_findings([question for question in all_questions if question.kind == "PTR"], tables)
    neighbour_questions = [question for question in all_questions if question.kind in NEIGHBOUR]
    if not rows:
        return reverse + _neighbour_findings(neighbour_questions)
    groups: dict[tuple[str, str], list[_NameWait]] = defaultdict(list)
    for position, (sentence, waited_ms, question) in resolver.late(rows).items():
        groups[sentence, question.server].append(_NameWait(waited_ms, rows[position], question))
    late_findings = [_lookup_finding(sentence, cases, len(rows)) for (sentence, _), cases in groups.items()]
    return late_findings + reverse + _neighbour_findings(neighbour_questions)


class _Wait(NamedTuple):
    """A wait for the answer to a question."""

    waited_ms: float
    question: Question


class _ReverseWait(NamedTuple):
    """A client's wait while its server looked up the client's name."""

    waited_ms: float
    question: Question
    stream: int


class _NameWait(NamedTuple):
    """A wait for a name, and the question that shows its reason."""

    waited_ms: float
    resolution: Resolution
    question: Question


def _reverse_findings(questions: list[Question], tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find servers that looked up the name of a client's address (PTR) while that client waited for a response.

    A wait lasts from the first PTR question after the request to the start of the response. It is dropped if more than
    `MAX_WORK_SHARE` of it passed after the name had arrived: that is the server's own work.
    """
    streams, stretches = tables["streams"], tables["stretches"]
    (server, servers), (client, clients) = (arrays.codes(streams, name) for name in ("server", "client"))
    server_codes, client_codes = ({name: code for code, name in enumerate(names)} for names in (servers, clients))
    pairs: dict[int, list[Question]] = defaultdict(list)
    for question in questions:
        server_code, client_code = server_codes.get(question.client), client_codes.get(address_in(question.name) or "")
        if server_code is not None and client_code is not None:
            pairs[server_code << 32 | client_code].append(question)
    if not pairs or not stretches.num_rows:
        return []
    last_answers = {
        pair: np.maximum.accumulate([question.end or 0 for question in group]) for pair, group in pairs.items()
    }
    key = server.astype(np.int64) << 32 | client
    stream_rows = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream"))
    request_end = arrays.numbers(stretches, "request_end")
    response_start = arrays.filled(stretches, "response_start", 0)
    ports, stream_numbers = arrays.numbers(streams, "server_port"), arrays.numbers(stretches, "stream")
    groups: dict[tuple[str, int, str], list[_ReverseWait]] = defaultdict(list)
    for row in np.flatnonzero(np.isin(key, list(pairs))[stream_rows] & (response_start > 0)).tolist():
        pair, answered = int(key[stream_rows[row]]), int(response_start[row])
        between = (int(request_end[row]), answered)
        first, last = (bisect_left(pairs[pair], time, key=lambda question: question.start) for time in between)
        if first == last:
            continue
        question, named_at = pairs[pair][first], int(last_answers[pair][last - 1])
        waited_ms = (answered - question.start) / NS_PER_MS
        work_ms = (answered - named_at) / NS_PER_MS if named_at > question.start else 0.0
        if waited_ms - work_ms >= LATE_MS and work_ms <= MAX_WORK_SHARE * waited_ms:
            wait = _ReverseWait(waited_ms, question, int(stream_numbers[row]))
            groups[question.client, int(ports[stream_rows[row]]), question.server].append(wait)
    return [_reverse_finding(server, server_port, waits) for (server, server_port, _), waits in groups.items()]


def _reverse_finding(host: str, port: int, waits: list[_ReverseWait]) -> Finding:
    """Return the finding of one server port and one name server."""
    waits.sort(key=lambda wait: wait.waited_ms)
    worst_ms, question, stream = waits[-1]
    values = {
        "n": len(waits), "span_ms": (waits[0].waited_ms, worst_ms), "server": endpoint(host, port),
        "name": printable(question.name), "other": endpoint(question.server, question.server_port),
        "came": say("reverse_never" if question.end is None else "reverse_late"),
    }  # fmt: skip
    return Finding.wait(
        (host, port), "dns_reverse", "dns", "late", [wait.waited_ms for wait in waits], values,
        clients=len({wait.question.name for wait in waits}), exchanges=len(waits), worst_stream=stream,
        worst_frames=_frames(question),
    )  # fmt: skip


def _neighbour_findings(questions: list[Question]) -> list[Finding]:
    """Find hosts on the link that answered only a repeated ARP or NDP request: packets to them wait meanwhile.

    Hosts that never answer are left out: they may not exist, and nothing may wait for them.
    """
    groups: dict[tuple[str, str], list[_Wait]] = defaultdict(list)
    for question in questions:
        waited_ms = 0.0 if question.end is None else (question.end - question.start) / NS_PER_MS
        if waited_ms >= AGAIN_MS:
            groups[question.client, question.server].append(_Wait(waited_ms, question))
    return [_neighbour_finding(sorted(waits, key=lambda wait: wait.waited_ms)) for waits in groups.values()]


def _neighbour_finding(waits: list[_Wait]) -> Finding:
    """Return the finding of one requesting and one requested host; the waits ascend."""
    worst_ms, question = waits[-1]
    values = {
        "n": len(waits), "span_ms": (waits[0].waited_ms, worst_ms), "address": question.name,
        "client": question.client, "requests": question.repeats + 1, "what": question.kind,
    }  # fmt: skip
    return Finding.wait(
        (question.server, 0), "arp_late", "network", "late", [wait.waited_ms for wait in waits], values, clients=1,
        client=question.client, exchanges=len(waits), of_exchanges=len(waits), worst_frames=_frames(question),
    )  # fmt: skip


def of_services(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Return UDP services that answered late, never or with errors, by reason, service and server."""
    groups: dict[tuple[str, str, str], list[services.ServiceWait]] = defaultdict(list)
    rows = questions(tables["lookups"])
    for wait in services.late(rows, tables["streams"]).values():
        groups[wait.reason, wait.question.kind, wait.question.server].append(wait)
    late_findings = [_service_finding(sorted(waits, key=lambda wait: wait.waited_ms)) for waits in groups.values()]
    return late_findings + [_failure_finding(failure) for failure in services.failed(rows)]


def _failure_finding(failure: services.Failure) -> Finding:
    """Return the finding of one server that answers a service with one error."""
    first, *_ = questions = failure.questions
    durations_ms = [((question.end or question.start) - question.start) / NS_PER_MS for question in questions]
    frames = _frames(first)
    values = {
        "protocol": first.kind, "server": endpoint(first.server, first.server_port), "n": len(questions),
        "of": failure.of, "status": printable(first.status or ""), "frame": first.frame,
    }  # fmt: skip
    return Finding.wait(
        (first.server, first.server_port), "datagram_failed", "server",
        "never" if first.kind in services.ADMIT else "late", sorted(durations_ms), values,
        clients=len({question.client for question in questions}), client=first.client, exchanges=len(questions),
        of_exchanges=failure.of, worst_frames=frames, filter=f"frame.number in {{{', '.join(map(str, frames))}}}",
    )  # fmt: skip


def _service_finding(waits: list[services.ServiceWait]) -> Finding:
    """Return the finding of one reason, service and server; `waits` ascend."""
    worst = waits[-1]
    question, other, reason = worst.question, worst.then, worst.reason
    values = {
        "protocol": question.kind, "n": len(waits), "span_ms": (waits[0].waited_ms, worst.waited_ms),
        "client": question.client, "server": endpoint(question.server, question.server_port),
        "repeats": question.repeats + 1, "address": question.name,
        "checks": worst.checks,
        "then": say("datagram_then", other=endpoint(other.server, other.server_port)) if other and other.end else "",
    }  # fmt: skip
    frames = _frames(question)
    return Finding.wait(
        (question.server, question.server_port), reason, services.owner_of(reason),
        "never" if reason == "dhcp_never" else "late", [wait.waited_ms for wait in waits], values,
        clients=len({wait.question.client for wait in waits}), client=question.client, worst_frames=frames,
        filter=f"frame.number in {{{', '.join(map(str, frames))}}}",
    )  # fmt: skip


def _lookup_finding(sentence: str, waits: list[_NameWait], resolution_count: int) -> Finding:
    """Return the finding of one reason and name server."""
    waits.sort(key=lambda wait: wait.waited_ms)
    worst_ms, row, question = waits[-1]
    failed_names = [tried.name.lower() for tried in row.questions if tried.status == "NXDOMAIN"]
    needless = {name for name in failed_names if name != row.name.lower()}
    other_answers = [other for other in row.questions if other.end is not None and other.server != question.server]
    other_ms = [((other.end or 0) - other.start) / NS_PER_MS for other in other_answers]
    values = {
        "n": len(waits), "span_ms": (waits[0].waited_ms, worst_ms),
        "server": endpoint(question.server, question.server_port), "name": printable(row.name),
        "tried": printable(question.name), "kind": question.kind,
        "needless": len(needless), "questions": len(failed_names),
        "status": question.status or "", "other": other_answers[0].server if other_answers else "",
        "other_ms": other_ms[0] if other_ms else 0.0,
    }  # fmt: skip
    return Finding.wait(
        (question.server, question.server_port), sentence, owner_of(sentence),
        "never" if sentence == "dns_never" else "late", [wait.waited_ms for wait in waits], values,
        clients=len({wait.resolution.client for wait in waits}), client=row.client, exchanges=len(waits),
        of_exchanges=resolution_count, worst_frames=_frames(question),
    )  # fmt: skip


class Lookups(TypedDict):
    """The lookups of a capture, and the connects that waited for one; `connect_...` is of the longest such wait.

    Times are None without an answer, and without such a connect.
    """

    lookups: int
    unanswered: int
    failed: int
    median_ms: float | None
    max_ms: float | None
    max_name: str | None
    max_frame: int | None
    connects: int
    connect_ms: float | None
    connect_name: str | None
    connect_frame: int | None


def summary(tables: Mapping[str, pa.Table]) -> Lookups | None:
    """Count the lookups and find the longest one, and the connect that waited longest for its name; None without
    lookups.
    """
    table, connects = _names(tables["lookups"]), tables["connects"]
    if not table.num_rows:
        return None
    latency_ms = arrays.numbers(table, "latency_ms")
    answered = np.flatnonzero(~np.isnan(latency_ms))
    slowest = int(answered[np.argmax(latency_ms[answered])]) if len(answered) else None
    dns_ms = arrays.numbers(connects, "dns_ms") if connects.num_rows else np.zeros(0)
    waiting = np.flatnonzero(~np.isnan(dns_ms))
    longest = int(waiting[np.argmax(dns_ms[waiting])]) if len(waiting) else None
    return {
        "lookups": table.num_rows,
        "unanswered": table.num_rows - len(answered),
        "failed": sum(word == "SERVFAIL" for word in table["status_text"].to_pylist()),
        "median_ms": arrays.percentile(np.sort(latency_ms[answered]), 0.5) if len(answered) else None,
        "max_ms": None if slowest is None else float(latency_ms[slowest]),
        "max_name": None if slowest is None else table["target"][slowest].as_py(),
        "max_frame": None if slowest is None else table["request_frame"][slowest].as_py(),
        "connects": len(waiting),
        "connect_ms": None if longest is None else float(dns_ms[longest]),
        "connect_name": None if longest is None else connects["dns_name"][longest].as_py(),
        "connect_frame": None if longest is None else connects["first_frame"][longest].as_py(),
    }


def _names(table: pa.Table) -> pa.Table:
    """Return the rows of "lookups" that look up names: without ARP, NDP and other UDP services."""
    is_other = arrays.equals(table, "method", *NEIGHBOUR, *SERVICES)
    return table.take(arrays.column((~is_other).nonzero()[0])) if is_other.any() else table


def matters(dns: Lookups) -> bool:
    """Return whether a connect waited for its name, a lookup took long, or none was answered."""
    waits = [dns["connect_ms"] or 0.0, dns["max_ms"] or 0.0]
    return max(waits) >= LIMITS["setup_ms"] or dns["unanswered"] == dns["lookups"]


def line(dns: Lookups, has_late: bool) -> str:
    """Return the sentence that says whether DNS took time; `has_late`: whether a finding names a wait for a name."""
    limit, lookups, unanswered = LIMITS["setup_ms"], dns["lookups"], dns["unanswered"]
    unanswered_part = say("dns_unanswered", n=unanswered, of=lookups) if unanswered else ""
    if dns["connect_ms"] is not None and dns["connect_ms"] >= limit:
        name, frame = printable(dns["connect_name"] or ""), f"{dns['connect_frame']}"
        return joined([say("dns_before_connect", took_ms=dns["connect_ms"], name=name, frame=frame), unanswered_part])
    if dns["max_ms"] is not None and dns["max_ms"] >= limit:
        name, frame = printable(dns["max_name"] or ""), f"{dns['max_frame']}"
        return joined([say("dns_took", took_ms=dns["max_ms"], name=name, frame=frame), unanswered_part])
    if dns["max_ms"] is None:
        return say("dns_only_unanswered" if lookups == 1 else "dns_none_answered", n=lookups)
    took_phrase = say(
        "dns_quick" if lookups - unanswered > 1 else "dns_one_quick",
        n=lookups - unanswered, median_ms=dns["median_ms"] or 0.0, most_ms=dns["max_ms"],
    )  # fmt: skip
    is_harmless = not unanswered_part and not has_late and dns["max_ms"] < LIMITS["slow_ms"]
    return say("dns_is_not_it", took=took_phrase) if is_harmless else joined([took_phrase, unanswered_part])
