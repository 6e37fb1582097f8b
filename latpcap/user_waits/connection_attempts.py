"""Pair each failed connection with the one that its client made instead, to another address.

A resolver returns several addresses, and clients try them one after the other or side by side. Two connections are
tries of one thing if their addresses have one name, if both are loopback, or if the pair occurs repeatedly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays
from latpcap.tables import Completeness
from latpcap.user_waits.connects import Opened

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

MAX_CANDIDATES = 64
"""Upper bound on the later connections examined for each failed one."""
FALLBACK_NS = 90_000_000
"""Shortest wait for an address before the next try: at least 100 ms in RFC 8305 5, less some tolerance."""
SYN_RTO_NS = 1_000_000_000
"""First retransmission timeout of a SYN (RFC 6298 2.1); the timeout doubles with each repeat."""
MIN_PAIRS = 2
"""Fewest pairs of the same two servers that are no accident."""
NEXT_NS = 50_000_000
"""Longest time after a refusal until the client tries its next address."""


class Ends(NamedTuple):
    """The two ends of a stream, the capture's position between them, and the stream's end in ns."""

    client: str
    client_port: int
    server: str
    server_port: int
    position: str | None
    end: int

    @property
    def to(self) -> tuple[str, int]:
        """The server's address and port."""
        return self.server, self.server_port

    @property
    def family(self) -> str:
        """IPv4 or IPv6."""
        return "IPv6" if ":" in self.server else "IPv4"


class Streams:
    """The streams as arrays, and how each began."""

    def __init__(self, streams: pa.Table, rows: dict[str, Array]):
        self.streams, self.rows = streams, rows
        self.number = arrays.numbers(streams, "stream")
        self.place = {number: place for place, number in enumerate(self.number.tolist())}
        self.start, self.end = arrays.numbers(streams, "start"), arrays.numbers(streams, "end")
        self.code = arrays.numbers(streams, "completeness")
        self.answers = arrays.numbers(streams, "server_packets")
        self.server_code, self.servers = arrays.codes(streams, "server")
        self.client_code, self.clients = arrays.codes(streams, "client")
        self.port, self.client_port = (arrays.numbers(streams, f"{side}_port") for side in ("server", "client"))
        self.position, self.words = arrays.codes(streams, "position")
        self._ends: dict[int, Ends] = {}

    def ends(self, stream: int) -> Ends:
        """Return the ends of a stream."""
        if stream not in self._ends:
            self._ends[stream] = self._found(stream)
        return self._ends[stream]

    def _found(self, stream: int) -> Ends:
        at = self.place[stream]
        word = int(self.position[at])
        return Ends(
            self.clients[int(self.client_code[at])], int(self.client_port[at]),
            self.servers[int(self.server_code[at])], int(self.port[at]),
            self.words[word] if word >= 0 else None, int(self.end[at]),
        )  # fmt: skip

    def to(self, server: tuple[str, int], client: str | None = None) -> Array:
        """Return the numbers of the streams to this server, optionally only those of one client."""
        mine = (self.server_code == self.servers.index(server[0])) & (self.port == server[1])
        if client is not None:
            mine &= self.client_code == self.clients.index(client)
        numbers: Array = self.number[mine]
        return numbers

    def count(self, server: tuple[str, int]) -> int:
        """Return the number of streams to this server."""
        return len(self.to(server))


class Pair(NamedTuple):
    """A failed connection, and the `other` one that its client made instead, on `stream` at `begin` (ns)."""

    opened: Opened
    ends: Ends
    begin: int
    other: Ends
    stream: int


def instead(opened: Sequence[tuple[Opened, Ends]], all_of: Streams, names: Mapping[str, set[str]]) -> list[Pair]:
    """Find addresses that did not answer, or refused, before the client connected to another one on the same port.

    `names`: the names of each address (`names_of`).
    """
    import numpy as np

    failed = [(one, ends) for one, ends in opened if one.answered is None]
    if not failed:
        return []
    good = np.flatnonzero((all_of.code & Completeness.SYN_ACK != 0) & (all_of.answers > 0))
    good = good[np.argsort(all_of.start[good], kind="stable")]
    by_port: dict[int, tuple[list[int], list[int]]] = {}
    for port in {ends.server_port for _, ends in failed}:
        mine = good[all_of.port[good] == port]
        by_port[port] = all_of.start[mine].tolist(), mine.tolist()
    alive = {(all_of.servers[int(all_of.server_code[at])], int(all_of.port[at])) for at in good.tolist()}
    pairs: list[Pair] = []
    for one, ends in failed:
        times, places = by_port[ends.server_port]
        at = bisect_right(times, one.syns[0])
        last = max(one.syns[-1], one.refused or 0)
        step = one.syns[-1] - one.syns[-2] if len(one.syns) > 1 else SYN_RTO_NS
        for begin, place in zip(times[at : at + MAX_CANDIDATES], places[at : at + MAX_CANDIDATES], strict=True):
            if begin > last + 2 * step + SYN_RTO_NS:
                break
            number = int(all_of.number[place])
            other = all_of.ends(number)
            if begin < one.syns[-1] and all_of.end[place] < one.syns[-1]:
                continue  # it ended while the client still tried the first address, so that it is unrelated
            if other.server == ends.server or (other.family == ends.family and other.client != ends.client):
                continue
            if begin - one.syns[0] >= FALLBACK_NS:
                pairs.append(Pair(one, ends, begin, other, number))
            break
    often = Counter((pair.ends.to, pair.other.to) for pair in pairs)
    firsts: dict[int, Pair] = {}
    for pair in pairs:
        ends, other = pair.ends, pair.other
        same = _loopback(ends.server) and _loopback(other.server)
        refused = pair.opened.refused is not None and other.family != ends.family
        same |= refused and 0 <= pair.begin - max(pair.opened.syns[-1], pair.opened.refused or 0) <= NEXT_NS
        named = bool(names.get(ends.server, set()) & names.get(other.server, set()))
        if ends.to in alive or not (same or named or often[ends.to, other.to] >= MIN_PAIRS):
            continue
        kept = firsts.get(pair.stream)
        if kept is None or pair.opened.syns[0] < kept.opened.syns[0]:
            firsts[pair.stream] = pair
    return list(firsts.values())


def names_of(lookups: pa.Table) -> dict[str, set[str]]:
    """Return for each address the names whose lookups it answered."""
    found: dict[str, set[str]] = {}
    for row in lookups.select(["target", "addresses"]).to_pylist():
        for address in row["addresses"] or ():
            found.setdefault(address, set()).add(row["target"])
    return found


def _loopback(address: str) -> bool:
    return address == "::1" or address.startswith("127.")
