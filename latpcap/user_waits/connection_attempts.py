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
from latpcap.lazy import np, pa
from latpcap.tables import Completeness
from latpcap.user_waits.connects import Opened

if TYPE_CHECKING:
    from latpcap.arrays import Array

MAX_CANDIDATES = 64
"""Upper bound on the later connections examined for each failed one."""
FALLBACK_NS = 90_000_000
"""Shortest wait for an address before the next try: at least 100 ms in RFC 8305 5, less some tolerance."""
SYN_RTO_NS = 1_000_000_000
"""First retransmission timeout of a SYN (RFC 6298 2.1); the timeout doubles with each repeat."""
MIN_PAIRS = 2
"""Fewest pairs of the same two servers that are not an accident."""
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
        self.row_by_stream = {stream: row for row, stream in enumerate(self.number.tolist())}
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
            self._ends[stream] = self._ends_of(stream)
        return self._ends[stream]

    def _ends_of(self, stream: int) -> Ends:
        row = self.row_by_stream[stream]
        word = int(self.position[row])
        return Ends(
            self.clients[int(self.client_code[row])], int(self.client_port[row]),
            self.servers[int(self.server_code[row])], int(self.port[row]),
            self.words[word] if word >= 0 else None, int(self.end[row]),
        )  # fmt: skip

    def to(self, server: tuple[str, int], client: str | None = None) -> Array:
        """Return the numbers of the streams to this server, optionally only those of one client."""
        is_to_server = (self.server_code == self.servers.index(server[0])) & (self.port == server[1])
        if client is not None:
            is_to_server &= self.client_code == self.clients.index(client)
        return self.number[is_to_server]

    def recorded_hosts(self) -> set[str]:
        """Return the addresses of the host that a capture with loopback traffic was made on.

        Connections show by their round trips where they were captured; and the host is an end of each connection that
        is not over loopback.
        """
        recorded: set[str] = set()
        for hosts, codes, word in (
            (self.clients, self.client_code, "at_client"),
            (self.servers, self.server_code, "at_server"),
        ):
            is_here = self.position == arrays.code_of(self.words, word)
            recorded |= {hosts[int(code)] for code in np.unique(codes[is_here])}
        codes = np.unique(self.client_code.astype(np.int64) << 32 | self.server_code)
        pairs = [{self.clients[int(code >> 32)], self.servers[int(code & 0xFFFFFFFF)]} for code in codes]
        outside = [pair for pair in pairs if not any(map(is_loopback, pair))]
        return recorded | (set.intersection(*outside) if outside else set())

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


def fallbacks(openings: Sequence[tuple[Opened, Ends]], streams: Streams, names: Mapping[str, set[str]]) -> list[Pair]:
    """Find addresses that did not answer, or refused, before the client connected to another one on the same port.

    `names`: the names of each address (`names_of`).
    """
    failed = [(opened, ends) for opened, ends in openings if opened.answered is None]
    if not failed:
        return []
    answered_rows = np.flatnonzero((streams.code & Completeness.SYN_ACK != 0) & (streams.answers > 0))
    answered_rows = answered_rows[np.argsort(streams.start[answered_rows], kind="stable")]
    by_port: dict[int, tuple[list[int], list[int]]] = {}
    for port in {ends.server_port for _, ends in failed}:
        to_port = answered_rows[streams.port[answered_rows] == port]
        by_port[port] = streams.start[to_port].tolist(), to_port.tolist()
    alive = {(streams.servers[int(streams.server_code[row])], int(streams.port[row])) for row in answered_rows.tolist()}
    pairs: list[Pair] = []
    for opened, ends in failed:
        times, rows_of_port = by_port[ends.server_port]
        first = bisect_right(times, opened.syns[0])
        candidates = slice(first, first + MAX_CANDIDATES)
        last_try = max(opened.syns[-1], opened.refused or 0)
        syn_interval = opened.syns[-1] - opened.syns[-2] if len(opened.syns) > 1 else SYN_RTO_NS
        for begin, other_row in zip(times[candidates], rows_of_port[candidates], strict=True):
            if begin > last_try + 2 * syn_interval + SYN_RTO_NS:
                break
            other_stream = int(streams.number[other_row])
            other = streams.ends(other_stream)
            if begin < opened.syns[-1] and streams.end[other_row] < opened.syns[-1]:
                continue  # it ended while the client still tried the first address, so that it is unrelated
            if other.server == ends.server or (other.family == ends.family and other.client != ends.client):
                continue
            if begin - opened.syns[0] >= FALLBACK_NS:
                pairs.append(Pair(opened, ends, begin, other, other_stream))
            break
    pair_counts = Counter((pair.ends.to, pair.other.to) for pair in pairs)
    first_pairs: dict[int, Pair] = {}
    for pair in pairs:
        ends, other = pair.ends, pair.other
        is_same_thing = is_loopback(ends.server) and is_loopback(other.server)
        is_refused = pair.opened.refused is not None and other.family != ends.family
        is_same_thing |= is_refused and 0 <= pair.begin - max(pair.opened.syns[-1], pair.opened.refused or 0) <= NEXT_NS
        have_common_name = bool(names.get(ends.server, set()) & names.get(other.server, set()))
        if ends.to in alive or not (is_same_thing or have_common_name or pair_counts[ends.to, other.to] >= MIN_PAIRS):
            continue
        first_pair = first_pairs.get(pair.stream)
        if first_pair is None or pair.opened.syns[0] < first_pair.opened.syns[0]:
            first_pairs[pair.stream] = pair
    return list(first_pairs.values())


def names_of(lookups: pa.Table) -> dict[str, set[str]]:
    """Return for each address the names whose lookups it answered."""
    names: dict[str, set[str]] = {}
    for row in lookups.select(["target", "addresses"]).to_pylist():
        for address in row["addresses"] or ():
            names.setdefault(address, set()).add(row["target"])
    return names


def is_loopback(address: str) -> bool:
    """Return whether this is an address of the recorded host itself."""
    return address == "::1" or address.startswith("127.")
