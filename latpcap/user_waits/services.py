"""Who waited for a service over UDP that is no name server? Rows of `lookups` in; late answers, errors and dead
servers out.

A server that never answers is one only where its client did nothing else meanwhile: daemons that ask in the background
keep nobody waiting. Only a client without an address waits for DHCP whatever else it does. It has no words.
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
"""An answer of one of these protocols takes a round trip; what takes so long is felt."""
NEXT_NS = 1_000_000_000
"""What a client does because no answer came, it does within this behind its last time-out."""
DHCP, OFFERS = "DHCP", 3
"""So many requests for an address that nobody answers are no accident of a capture's end."""


ADMIT = (DHCP, "DHCPv6", "RADIUS")
"""Who is refused by these has no network."""


class ServiceWait(NamedTuple):
    """A request that was answered late, or never; instants in ns."""

    reason: str
    question: Question
    until: int
    checks: int = 0
    """How often the server looked for the address that it then offered."""
    then: Question | None = None
    """The request to another server that came of it."""

    @property
    def waited_ms(self) -> float:
        """From the first request to its answer, or to what the client did instead."""
        return (self.until - self.question.start) / NS_PER_MS


def late(rows: Sequence[Question], streams: pa.Table) -> dict[int, ServiceWait]:
    """The requests that somebody waited for beyond the path, by their numbers; `rows`: all of `lookups`."""
    mine = [q for q in rows if q.kind in SERVICES]
    if not mine:
        return {}
    did = _did(rows, streams, {q.client for q in mine if q.end is None})
    sought = [q for q in rows if q.kind in NEIGHBOUR and q.end is None]
    offered = any(q.kind == DHCP and q.end is not None for q in mine)
    found = {}
    for question in mine:
        if question.end is not None:
            checks = sum(
                q.repeats + 1 for q in sought
                if (q.client, q.name) == (question.server, question.name) and question.start < q.start < question.end
            )  # fmt: skip
            case: ServiceWait | None = ServiceWait(
                "dhcp_checked" if checks else "datagram_late", question, question.end, checks
            )
        elif question.kind == DHCP:
            alone = not offered and question.repeats + 1 >= OFFERS
            case = ServiceWait("dhcp_never", question, question.last) if alone else None
        else:
            case = _dead(question, mine, did[question.client])
        if case is not None and case.waited_ms >= LATE_MS:
            found[question.number] = case
    return found


class Failure(NamedTuple):
    """Requests that one server refused in one way, or answered with what is of no use."""

    questions: list[Question]
    of: int
    """So many answers of this server for this service there are."""


def failed(rows: Sequence[Question]) -> list[Failure]:
    """Where errors are the answer: at least half of what a server answers, and nothing good came for that client later.

    One error among many answers is everyday (the end of a walk with SNMP, a file that a boot loader tries first).
    """
    mine = [q for q in rows if q.kind in SERVICES and q.end is not None and q.status]
    answers = Counter((q.kind, q.server) for q in mine)
    good = {(q.kind, q.client): q.start for q in mine if not q.error}
    groups: dict[tuple[str, str, str | None], list[Question]] = defaultdict(list)
    for q in mine:
        if q.error and good.get((q.kind, q.client), q.start) <= q.start:
            groups[q.kind, q.server, q.status].append(q)
    found = [Failure(those, answers[kind, server]) for (kind, server, _), those in groups.items()]
    return [failure for failure in found if 2 * len(failure.questions) >= failure.of]


def _did(rows: Sequence[Question], streams: pa.Table, clients: set[str]) -> dict[str, list[tuple[int, int]]]:
    """When each of these clients did anything else that the capture shows: connections and lookups."""
    did: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for q in rows:
        if q.client in clients and q.kind not in (*SERVICES, *NEIGHBOUR):
            did[q.client].append((q.start, q.last))
    code, names = arrays.codes(streams, "client")
    start, end = (arrays.numbers(streams, name) for name in ("start", "end"))
    for number, name in enumerate(names):
        if name in clients:
            which = code == number
            did[name] += zip(start[which].tolist(), end[which].tolist(), strict=True)
    return did


def _dead(question: Question, mine: Sequence[Question], did: Sequence[tuple[int, int]]) -> ServiceWait | None:
    """It waited until it sent something else: to another server of the protocol, or anything."""
    if not question.repeats:
        return None
    first, last = question.start, question.last
    until = 2 * last - first + NEXT_NS
    others = [q for q in mine if (q.client, q.kind) == (question.client, question.kind) and q is not question]
    then = next((q for q in others if last < q.start <= until), None)
    if any(begun <= last and first < ended for begun, ended in did) or any(first < q.start <= last for q in others):
        return None  # it did something else meanwhile
    begun = [at for at, _ in did if last < at <= until] + ([then.start] if then is not None else [])
    return ServiceWait("datagram_dead", question, min(begun), then=then) if begun else None


def owner_of(reason: str) -> str:
    """Whose it is: a server that never answers may be behind a firewall."""
    return "network" if reason in ("datagram_dead", "dhcp_never") else "server"
