"""Waits for UDP services other than name servers: late answers, errors, and dead servers, from rows of "lookups".

A server that never answers counts only if its client did nothing else meanwhile, since daemons that request in the
background keep nobody waiting. A client without an address waits for DHCP in any case.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.lookups import NEIGHBOUR, SERVICES, Question

if TYPE_CHECKING:
    import pyarrow as pa

LATE_MS = 500.0
"""Shortest wait worth a row; answers of these protocols normally take a round trip."""
NEXT_NS = 1_000_000_000
"""Longest time after a client's last time-out until it reacts to the missing answer."""
DHCP = "DHCP"
"""The kind of DHCP's requests for an address."""
MIN_DISCOVERS = 3
"""Fewest unanswered requests for an address that are not an accident of the capture's end."""
ADMIT = (DHCP, "DHCPv6", "RADIUS")
"""Services without whose consent a client has no network."""


class ServiceWait(NamedTuple):
    """A request that was answered late, or never; instants in ns."""

    reason: str
    question: Question
    until: int
    checks: int = 0
    """How often the DHCP server probed the address that it then offered."""
    then: Question | None = None
    """The request to another server that the client sent instead."""

    @property
    def waited_ms(self) -> float:
        """Time from the first request to its answer, or to the client's next action."""
        return (self.until - self.question.start) / NS_PER_MS


def late(questions: Sequence[Question], streams: pa.Table) -> dict[int, ServiceWait]:
    """Return the late or unanswered requests by number; `questions`: all of "lookups"."""
    service_requests = [question for question in questions if question.kind in SERVICES]
    if not service_requests:
        return {}
    acts_by_client = _acts(
        questions, streams, {question.client for question in service_requests if question.end is None}
    )
    neighbour_requests = [question for question in questions if question.kind in NEIGHBOUR and question.end is None]
    has_offer = any(question.kind == DHCP and question.end is not None for question in service_requests)
    late_waits = {}
    for question in service_requests:
        if question.end is not None:
            checks = sum(
                request.repeats + 1 for request in neighbour_requests
                if (request.client, request.name) == (question.server, question.name)
                and question.start < request.start < question.end
            )  # fmt: skip
            wait: ServiceWait | None = ServiceWait(
                "dhcp_checked" if checks else "datagram_late", question, question.end, checks
            )
        elif question.kind == DHCP:
            is_late_alone = not has_offer and question.repeats + 1 >= MIN_DISCOVERS
            wait = ServiceWait("dhcp_never", question, question.last) if is_late_alone else None
        else:
            wait = _dead(question, service_requests, acts_by_client[question.client])
        if wait is not None and wait.waited_ms >= LATE_MS:
            late_waits[question.number] = wait
    return late_waits


class Failure(NamedTuple):
    """Requests that one server answered with the same error."""

    questions: list[Question]
    of: int
    """Number of all answers of this server for this service."""


def failed(questions: Sequence[Question]) -> list[Failure]:
    """Find errors that are at least half of a server's answers, to clients that later got no good answer.

    A single error among many answers is normal (the end of an SNMP walk, a file that a boot loader tries first).
    """
    answered = [
        question for question in questions if question.kind in SERVICES and question.end is not None and question.status
    ]
    answers = Counter((question.kind, question.server) for question in answered)
    newest_good = {(question.kind, question.client): question.start for question in answered if not question.error}
    groups: dict[tuple[str, str, str | None], list[Question]] = defaultdict(list)
    for question in answered:
        if question.error and newest_good.get((question.kind, question.client), question.start) <= question.start:
            groups[question.kind, question.server, question.status].append(question)
    failures = [Failure(group, answers[kind, server]) for (kind, server, _), group in groups.items()]
    return [failure for failure in failures if 2 * len(failure.questions) >= failure.of]


def _acts(questions: Sequence[Question], streams: pa.Table, clients: set[str]) -> dict[str, list[tuple[int, int]]]:
    """Return start and end of the connections and name lookups of each of these clients."""
    acts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for question in questions:
        if question.client in clients and question.kind not in (*SERVICES, *NEIGHBOUR):
            acts[question.client].append((question.start, question.last))
    code, names = arrays.codes(streams, "client")
    start, end = (arrays.numbers(streams, name) for name in ("start", "end"))
    for code_of_name, name in enumerate(names):
        if name in clients:
            is_of_client = code == code_of_name
            acts[name] += zip(start[is_of_client].tolist(), end[is_of_client].tolist(), strict=True)
    return acts


def _dead(
    question: Question, service_requests: Sequence[Question], acts: Sequence[tuple[int, int]]
) -> ServiceWait | None:
    """Return the wait for an unanswered request, until the client sent to another server, or anything else."""
    if not question.repeats:
        return None
    first, last = question.start, question.last
    until = 2 * last - first + NEXT_NS
    key = question.client, question.kind
    same_service = [
        request for request in service_requests if (request.client, request.kind) == key and request is not question
    ]
    next_request = next((request for request in same_service if last < request.start <= until), None)
    did_else = any(start <= last and first < end for start, end in acts)
    if did_else or any(first < request.start <= last for request in same_service):
        return None  # the client did something else meanwhile
    starts = [start for start, _ in acts if last < start <= until]
    if next_request is not None:
        starts.append(next_request.start)
    return ServiceWait("datagram_dead", question, min(starts), then=next_request) if starts else None


def owner_of(reason: str) -> str:
    """Return the owner of a wait; a server that never answers may be behind a firewall ("network")."""
    return "network" if reason in ("datagram_dead", "dhcp_never") else "server"
