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
        return max(q.end if q.end is not None else q.start for q in self.questions)

    @property
    def waited_ms(self) -> float:
        """Time from `start` to `end`."""
        return (self.end - self.start) / NS_PER_MS

    @property
    def name(self) -> str:
        """The name whose answer had an address, else the shortest one."""
        found = [q.name for q in self.questions if q.addresses]
        return found[0] if found else min((q.name for q in self.questions), key=len)


def questions(lookups: pa.Table) -> list[Question]:
    """Return the rows of "lookups" in order of time."""
    if not lookups.num_rows:
        return []
    columns = ("lookup", "client", "client_port", "server", "server_port", "id", "method", "target",
               "status_text", "error", "addresses", "repeats", "request_frame", "response_frame")  # fmt: skip
    read = {name: lookups[name].to_pylist() for name in columns}
    start, last = (arrays.numbers(lookups, name).tolist() for name in ("start", "last_sent"))
    latency = lookups["latency_ms"].to_pylist()
    end = arrays.filled(lookups, "end", 0).tolist()
    rows = [
        Question(
            read["lookup"][at], read["client"][at], read["client_port"][at], read["server"][at],
            read["server_port"][at], read["id"][at], read["method"][at], read["target"][at], read["status_text"][at],
            bool(read["error"][at]), tuple(read["addresses"][at] or ()), start[at], last[at],
            None if latency[at] is None else end[at],
            read["repeats"][at], read["request_frame"][at], read["response_frame"][at],
        )
        for at in range(lookups.num_rows)
    ]  # fmt: skip
    return sorted(rows, key=lambda q: (q.start, q.number))


def resolutions(lookups: pa.Table) -> list[Resolution]:
    """Return the resolutions in order of time, in linear time."""
    done: list[Resolution] = []
    open_by: dict[tuple[str, str], Resolution] = {}
    numbers: dict[str, set[int | None]] = {}
    for question in questions(lookups):
        if question.kind not in ADDRESS:
            continue
        key = question.client, _label(question.name)
        now = open_by.get(key)
        used = numbers.setdefault(question.client, set())
        used.add(question.id)
        # a client that uses one id for all questions gives no sign of a repeat by it
        again = now is not None and len(used) > 1 and _again(now, question) is not None
        if now is None or not (again or _goes_on(now, question)):
            now = open_by[key] = Resolution()
            done.append(now)
        now.questions.append(question)
        now.last = max(now.last, question.end or 0)
    return done


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


def _goes_on(now: Resolution, question: Question) -> bool:
    """Return whether this question continues the resolution."""
    before, recent = now.questions[-1], now.questions[-MAX_RECENT:]
    mine = [q for q in recent if q.name.lower() == before.name.lower()]
    answered = {q.kind for q in mine if q.end is not None and q.end <= question.start}
    same = question.name.lower() == before.name.lower()
    if {q.kind for q in mine} - answered:  # unanswered: a question of the other type, or a repeat
        return (same or _searched(before, question)) and question.start - before.start <= GIVEN_UP_NS
    if question.start - now.last > GAP_NS:
        return False
    if not any(q.addresses for q in mine) and before.failed and (same or _searched(before, question)):
        return True
    return same and question.kind not in answered


def _again(now: Resolution, question: Question) -> Question | None:
    """Return the answered question of the resolution that this one repeats, if any."""
    recent = now.questions[-MAX_RECENT:]
    return next((q for q in recent if question.repeats_answered(q)), None)


def _searched(one: Question, other: Question) -> bool:
    """Return whether one search list may have made both names: "host" and "host.a.org", or "host.a.org" and
    "host.b.org".
    """
    short, long = sorted((one.name.lower(), other.name.lower()), key=len)
    return long.startswith(f"{short}.") or (short != long and _label(short) == _label(long) and "." in short)


def late(rows: list[Resolution]) -> dict[int, tuple[str, float, Question]]:
    """Return by position the reason of each late resolution, its ms of the wait, and the question that shows it."""
    alive = {q.server for row in rows for q in row.questions if q.end is not None}
    found = ((place, _late(row, alive)) for place, row in enumerate(rows))
    return {place: case for place, case in found if case is not None}


def owner_of(reason: str) -> str:
    """Return the owner of a reason; the search list is the client's."""
    return "client" if reason == "dns_search" else "dns"


def _late(row: Resolution, alive: set[str]) -> tuple[str, float, Question] | None:
    """Return reason, ms and question of a late resolution (see `late`); None if it was not late."""
    mute = [q for q in row.questions if q.end is None]
    first = mute[0] if mute else row.questions[0]
    if not row.answered:
        again = len(row.questions) > 1 or first.repeats
        return ("dns_never", row.waited_ms, first) if again and row.waited_ms >= AGAIN_MS else None
    good = [q for q in row.questions if q.end is not None]
    if mute:
        later = [q for q in good if q.start > first.start and q.kind == first.kind]
        waited = (
            (min(q.start for q in later) - first.start) / NS_PER_MS if later else (row.end - first.start) / NS_PER_MS
        )
        if waited < AGAIN_MS:
            return None
        if first.server not in alive:
            return "dns_dead", waited, first
        return ("dns_lost_pair" if _pair(row, first) else "dns_lost"), waited, first
    slow = max(good, key=lambda q: q.end - q.start if q.end is not None else 0)
    took = ((slow.end or 0) - slow.start) / NS_PER_MS
    if slow.repeats and took >= AGAIN_MS:
        return ("dns_lost_pair" if _pair(row, slow) else "dns_lost"), took, slow
    for question in row.questions:
        before = _again(row, question)
        if before is not None:
            return "dns_lost", (question.start - before.start) / NS_PER_MS, before
    needless = [q for q in good if q.status == "NXDOMAIN" and q.name.lower() != row.name.lower()]
    if needless and any(q.addresses for q in good):
        since = min(q.start for q in row.questions if q.name.lower() == row.name.lower() and q.addresses)
        waited = (since - row.start) / NS_PER_MS
        if 2 * waited > row.waited_ms:
            return "dns_search", waited, needless[0]
    if took >= LATE_MS:
        return ("dns_failed" if slow.status in FAILED and slow.status != "NXDOMAIN" else "dns_slow"), took, slow
    return None


def _pair(row: Resolution, lost: Question) -> bool:
    """Return whether the question for the other address family, from the same socket, was answered at once."""
    others = [q for q in row.questions if q.port == lost.port and q.kind != lost.kind and q.end is not None]
    return any(q.end is not None and (q.end - q.start) / NS_PER_MS < AGAIN_MS for q in others)
