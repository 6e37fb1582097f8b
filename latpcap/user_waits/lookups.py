"""Lookups of names: reads rows of "lookups", returns one `Resolution` for each name that a client wanted.

A resolver sends several questions for one name: for A and AAAA, repeats without an answer, to the next name server, and
with the suffixes of its search list. They are one resolution, from the first question to the last answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays
from latpcap.tables import NS_PER_MS

if TYPE_CHECKING:
    import pyarrow as pa

GAP_NS = 50_000_000
"""Longest time from an answer to the next question of one resolution; resolvers send it at once."""
GIVEN_UP_NS = 30_000_000_000
"""Longest time until a question is repeated: the maximum of `timeout` in resolv.conf(5)."""
MAX_RECENT = 16
"""Number of a resolution's last questions that are compared with the next one."""
FAILED = ("NXDOMAIN", "SERVFAIL", "REFUSED")
"""Statuses after which a resolver tries the next name of its search list, or the next server."""
NEIGHBOUR = ("ARP", "NDP")
"""Protocols that look up the host with an address on the link."""
SERVICES = ("DHCP", "DHCPv6", "Kerberos", "NTP", "RADIUS", "SIP", "SNMP", "STUN", "TFTP")
"""Protocols of the rows that are UDP requests but no lookups of names."""
ADDRESS = ("A", "AAAA", "HTTPS")
"""The question types that precede a connection."""
LATE_MS = 100.0
"""Shortest lookup worth a row: a name server answers most names within a round trip."""
AGAIN_MS = 300.0
"""Shortest time until a resolver repeats a question (systemd-resolved; glibc waits 5 s)."""


class Question(NamedTuple):
    """One row of "lookups"; instants in ns, `end` is None without an answer."""

    number: int
    client: str
    port: int
    server: str
    server_port: int
    id: int | None
    kind: str
    name: str
    status: str | None
    error: bool
    addresses: tuple[str, ...]
    start: int
    last: int
    """When it was sent last."""
    end: int | None
    repeats: int
    frame: int
    answer: int | None

    @property
    def failed(self) -> bool:
        """Whether its answer has no address."""
        return self.end is not None and not self.addresses

    def repeats_answered(self, before: Question) -> bool:
        """Return whether this repeats `before`, with its socket and id, although that was answered.

        The captured answer was then lost later on its way: a resolver that got it would not repeat the question, and
        a new question would have a new id.
        """
        if before.end is None or self.id is None or self.key != before.key:
            return False
        return AGAIN_MS * NS_PER_MS <= self.start - before.start <= GIVEN_UP_NS

    @property
    def key(self) -> tuple[object, ...]:
        """The values that a repeat shares with its first question."""
        return self.port, self.server, self.server_port, self.id, self.kind, self.name


@dataclass
class Resolution:
    """The questions that one client sent to get one name's addresses, in order of time."""

    questions: list[Question] = field(default_factory=list)
    last: int = 0

    @property
    def client(self) -> str:
        """The client."""
        return self.questions[0].client

    @property
    def start(self) -> int:
        """When it began, in ns."""
        return self.questions[0].start

    @property
    def answered(self) -> bool:
        """Whether any question was answered."""
        return any(question.end is not None for question in self.questions)

    @property
    def end(self) -> int:
        """The last answer, in ns; without answers the last question."""
        return max(question.end if question.end is not None else question.start for question in self.questions)

    @property
    def waited_ms(self) -> float:
        """Time from `start` to `end`."""
        return (self.end - self.start) / NS_PER_MS

    @property
    def name(self) -> str:
        """The name whose answer had an address, else the shortest one."""
        names = [question.name for question in self.questions if question.addresses]
        return names[0] if names else min((question.name for question in self.questions), key=len)


def questions(lookups: pa.Table) -> list[Question]:
    """Return the rows of "lookups" in order of time."""
    if not lookups.num_rows:
        return []
    names = ("lookup", "client", "client_port", "server", "server_port", "id", "method", "target",
               "status_text", "error", "addresses", "repeats", "request_frame", "response_frame")  # fmt: skip
    columns = {name: lookups[name].to_pylist() for name in names}
    start, last = (arrays.numbers(lookups, name).tolist() for name in ("start", "last_sent"))
    latency = lookups["latency_ms"].to_pylist()
    end = arrays.filled(lookups, "end", 0).tolist()
    rows = [
        Question(
            columns["lookup"][row], columns["client"][row], columns["client_port"][row], columns["server"][row],
            columns["server_port"][row], columns["id"][row], columns["method"][row], columns["target"][row],
            columns["status_text"][row], bool(columns["error"][row]), tuple(columns["addresses"][row] or ()),
            start[row], last[row], None if latency[row] is None else end[row],
            columns["repeats"][row], columns["request_frame"][row], columns["response_frame"][row],
        )
        for row in range(lookups.num_rows)
    ]  # fmt: skip
    return sorted(rows, key=lambda question: (question.start, question.number))


def resolutions(lookups: pa.Table) -> list[Resolution]:
    """Return the resolutions in order of time, in linear time."""
    all_resolutions: list[Resolution] = []
    open_resolutions: dict[tuple[str, str], Resolution] = {}
    numbers: dict[str, set[int | None]] = {}
    for question in questions(lookups):
        if question.kind not in ADDRESS:
            continue
        key = question.client, _label(question.name)
        resolution = open_resolutions.get(key)
        ids = numbers.setdefault(question.client, set())
        ids.add(question.id)
        # a client that uses one id for all questions gives no sign of a repeat by it
        is_repeat = resolution is not None and len(ids) > 1 and _repeated(resolution, question) is not None
        if resolution is None or not (is_repeat or _continues(resolution, question)):
            resolution = open_resolutions[key] = Resolution()
            all_resolutions.append(resolution)
        resolution.questions.append(question)
        resolution.last = max(resolution.last, question.end or 0)
    return all_resolutions


def address_in(name: str) -> str | None:
    """Return the address in a reverse lookup's name; None for other names.

    1.2.0.192.in-addr.arpa -> 192.0.2.1; 32 nibbles and ip6.arpa -> an IPv6 address (RFC 1035 3.5, RFC 3596 2.5).
    """
    labels = name.rstrip(".").lower().split(".")
    parts, end = labels[-3::-1], labels[-2:]
    try:
        if end == ["in-addr", "arpa"]:
            return str(ip_address(".".join(parts)))
        if end == ["ip6", "arpa"] and len(parts) == 32:
            return str(ip_address(int("".join(parts), 16)))
    except ValueError:
        pass
    return None


def _label(name: str) -> str:
    return name.partition(".")[0].lower()


def _continues(resolution: Resolution, question: Question) -> bool:
    """Return whether this question continues the resolution."""
    previous, recent = resolution.questions[-1], resolution.questions[-MAX_RECENT:]
    same_name = [earlier for earlier in recent if earlier.name.lower() == previous.name.lower()]
    answered = {earlier.kind for earlier in same_name if earlier.end is not None and earlier.end <= question.start}
    is_same_name = question.name.lower() == previous.name.lower()
    may_continue = is_same_name or _may_share_search_list(previous, question)
    if {earlier.kind for earlier in same_name} - answered:  # unanswered: a question of the other type, or a repeat
        return may_continue and question.start - previous.start <= GIVEN_UP_NS
    if question.start - resolution.last > GAP_NS:
        return False
    if may_continue and previous.failed and not any(earlier.addresses for earlier in same_name):
        return True
    return is_same_name and question.kind not in answered


def _repeated(resolution: Resolution, question: Question) -> Question | None:
    """Return the answered question of the resolution that this one repeats, if any."""
    recent = resolution.questions[-MAX_RECENT:]
    return next((earlier for earlier in recent if question.repeats_answered(earlier)), None)


def _may_share_search_list(first: Question, second: Question) -> bool:
    """Return whether one search list may have made both names: "host" and "host.a.org", or "host.a.org" and
    "host.b.org".
    """
    short, long = sorted((first.name.lower(), second.name.lower()), key=len)
    return long.startswith(f"{short}.") or (short != long and _label(short) == _label(long) and "." in short)


def late(resolutions: list[Resolution]) -> dict[int, tuple[str, float, Question]]:
    """Return by position the reason of each late resolution, its ms of the wait, and the question that shows it."""
    alive = {
        question.server for resolution in resolutions for question in resolution.questions if question.end is not None
    }
    reasons = ((index, _late(resolution, alive)) for index, resolution in enumerate(resolutions))
    return {index: late_lookup for index, late_lookup in reasons if late_lookup is not None}


def owner_of(reason: str) -> str:
    """Return the owner of a reason; the search list is the client's."""
    return "client" if reason == "dns_search" else "dns"


def _late(resolution: Resolution, alive: set[str]) -> tuple[str, float, Question] | None:
    """Return reason, ms and question of a late resolution (see `late`); None if it was not late."""
    unanswered = [question for question in resolution.questions if question.end is None]
    first = unanswered[0] if unanswered else resolution.questions[0]
    if not resolution.answered:
        is_repeated = len(resolution.questions) > 1 or first.repeats
        return ("dns_never", resolution.waited_ms, first) if is_repeated and resolution.waited_ms >= AGAIN_MS else None
    answered = [question for question in resolution.questions if question.end is not None]
    if unanswered:
        same_kind = [question.start for question in answered if question.kind == first.kind]
        later_starts = [start for start in same_kind if start > first.start]
        waited_ms = (min(later_starts, default=resolution.end) - first.start) / NS_PER_MS
        if waited_ms < AGAIN_MS:
            return None
        if first.server not in alive:
            return "dns_dead", waited_ms, first
        return ("dns_lost_pair" if _is_pair_half(resolution, first) else "dns_lost"), waited_ms, first
    slow = max(answered, key=lambda question: question.end - question.start if question.end is not None else 0)
    took_ms = ((slow.end or 0) - slow.start) / NS_PER_MS
    if slow.repeats and took_ms >= AGAIN_MS:
        return ("dns_lost_pair" if _is_pair_half(resolution, slow) else "dns_lost"), took_ms, slow
    for question in resolution.questions:
        repeated = _repeated(resolution, question)
        if repeated is not None:
            return "dns_lost", (question.start - repeated.start) / NS_PER_MS, repeated
    name = resolution.name.lower()
    needless = [question for question in answered if question.status == "NXDOMAIN" and question.name.lower() != name]
    with_address = [question for question in resolution.questions if question.addresses]
    if needless and any(question.end is not None for question in with_address):
        since = min(question.start for question in with_address if question.name.lower() == name)
        waited_ms = (since - resolution.start) / NS_PER_MS
        if 2 * waited_ms > resolution.waited_ms:
            return "dns_search", waited_ms, needless[0]
    if took_ms >= LATE_MS:
        return ("dns_failed" if slow.status in FAILED and slow.status != "NXDOMAIN" else "dns_slow"), took_ms, slow
    return None


def _is_pair_half(resolution: Resolution, lost: Question) -> bool:
    """Return whether the question for the other address family, from the same socket, was answered at once."""
    halves = [
        question
        for question in resolution.questions
        if question.port == lost.port and question.kind != lost.kind and question.end is not None
    ]
    return any(
        question.end is not None and (question.end - question.start) / NS_PER_MS < AGAIN_MS for question in halves
    )
