"""The servers of one capture: reads its streams and exchanges, returns a `Server` with the exchanges that are judged.

Complete exchanges are judged, and incomplete ones that users waited for. The sums over these are in `cause_totals.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from latpcap import arrays, spill
from latpcap import presentation as show
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import request_mask
from latpcap.user_waits import slow_requests as slowness
from latpcap.vocabulary import CAUSES, SIDES, cause_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latpcap.arrays import Array

_SITE = re.compile(r"%[\w.+-]+(?=[\]:]|$)")
TCP_WAITS = cause_names("stall", "windows", "loss")
"""Causes in which TCP, and no program, kept an exchange waiting."""


@dataclass
class Server:
    """The exchanges of one server, the fast ones first."""

    address: str
    port: int
    rows: Array
    """Positions in the table of exchanges, by latency."""
    latency: Array
    total_ms: float
    """Sum of all its latencies."""
    slow: Array
    """The slow ones of `rows`, by latency."""
    unread: int
    """Number of the slow ones that are turns of a protocol without a reader."""
    all_requests: Array
    """Positions of all its requests, including those that are not judged."""
    cut: int
    """Number of judged requests that are incomplete: their latencies are what was captured of them."""
    incomplete: int
    """Number of incomplete requests that are not judged."""
    goodbyes: int
    """Number of those that are a client's last message before it closed: a quit, an unbind, a terminate."""
    polls: int
    """Number of long polls, which are not judged if the server has other requests."""
    clients: list[str]

    @property
    def waited_for(self) -> Array:
        """The slow rows that decide on the main cause; none if most are turns of a protocol without a reader."""
        return self.slow if 2 * self.unread <= len(self.slow) else self.slow[:0]

    @property
    def name(self) -> str:
        """Address and port, as `endpoint` writes them."""
        return endpoint(self.address, self.port)


def without_site(address: str) -> str:
    """Return an address, or address and port, without the site that an archive appends to a private address."""
    return _SITE.sub("", address)


def servers_of(streams: pa.Table, stretches: pa.Table) -> list[Server]:
    """Return the servers that received requests, the one whose slow requests did the most harm first."""
    return judged_servers(server_of_exchange(streams, stretches), streams, stretches, None)[0]


def find_servers(name: str, among: Sequence[Server], called: Callable[[Server], list[str]]) -> list[Server]:
    """Return the servers of this address, address and port, or `called` name. ValueError without one."""
    matches = [server for server in among if name in (server.name, server.address)]
    matches = matches or [
        server for server in among if name in (without_site(server.name), without_site(server.address))
    ]
    matches = matches or [server for server in among if name.lower() in map(str.lower, called(server))]
    if not matches:
        names = ", ".join(server.name for server in among[:5])
        raise ValueError(f"no server {name} received requests; there are: {names or 'none'}")
    return matches


def judged_servers(
    server_numbers: Array, streams: pa.Table, stretches: pa.Table, slow_ms: float | None
) -> tuple[list[Server], Array, Array]:
    """Return the servers, the one whose slow requests did the most harm first.

    Also returns for each exchange whether it is judged, and the index of its server among `server_numbers`.
    """
    facts = _ExchangeFacts(streams, stretches, slow_ms)
    first, server_of, _ = arrays.grouped(server_numbers)
    numbers = server_numbers[first]
    judgement = _Judgement(facts, server_of, len(numbers))
    by_time = spill.selected(spill.argsort(facts.time_ms), judgement.judged)
    order, bounds = spill.grouped(spill.take(server_of, by_time), len(numbers))
    rows = spill.take(by_time, order)
    slow_rows = spill.selected(rows, facts.is_slow)
    slow_bounds = np.r_[0, np.cumsum(judgement.count(judgement.is_slow))]
    spans = spill.parts(len(server_of))
    server_of_request = (np.where(facts.is_request[span], server_of[span], -1) for span in spans)
    requests, request_bounds = spill.grouped(spill.from_pieces("int32", server_of_request), len(numbers))
    latency = spill.take(facts.time_ms, rows)
    total_ms = _sums(latency, bounds)
    slow_ms_sums = _sums(spill.take(facts.time_ms, slow_rows), slow_bounds)
    masks = {
        "unread": judgement.is_unread, "cut": judgement.is_cut, "incomplete": judgement.is_incomplete,
        "goodbyes": judgement.is_goodbye, "polls": judgement.is_poll,
    }  # fmt: skip
    counts = {name: judgement.count(mask).tolist() for name, mask in masks.items()}
    ends, clients = _ends(numbers, streams), _clients(rows, server_of, numbers, streams, facts.stream_row)
    row_slices, slow_slices, request_slices = map(_slices, (bounds, slow_bounds, request_bounds))
    ranked = []
    for i in np.flatnonzero(np.diff(bounds)).tolist():
        server = Server(
            *ends[i], rows=rows[row_slices[i]], latency=latency[row_slices[i]], total_ms=total_ms[i],
            slow=slow_rows[slow_slices[i]], all_requests=requests[request_slices[i]], clients=clients[i],
            **{name: values[i] for name, values in counts.items()},
        )  # fmt: skip
        harm = (len(server.slow) - show.UNREAD_WEIGHT * server.unread) * slow_ms_sums[i]
        ranked.append((-harm, -server.total_ms, server.name, server))
    ranked.sort(key=lambda entry: entry[:3])
    return [server for *_, server in ranked], judgement.judged, server_of


def _sums(values: Array, bounds: Array) -> list[float]:
    """Return the sum of the values from each bound to the next."""
    sums = np.zeros(len(bounds) - 1)
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        sums[filled] = np.add.reduceat(values, bounds[filled])
    spill.release_memory()
    return sums.tolist()


def _slices(bounds: Array) -> list[slice]:
    return [slice(*edges) for edges in pairwise(bounds.tolist())]


def _ends(numbers: Array, streams: pa.Table) -> list[tuple[str, int]]:
    """Return address and port of each server, by its number from `server_of_exchange`."""
    sides = {side: (*arrays.codes(streams, side), arrays.numbers(streams, f"{side}_port")) for side in SIDES}
    ends = []
    for number in numbers.tolist():
        codes, addresses, ports = sides["server" if number < streams.num_rows else "client"]
        row = number % streams.num_rows
        ends.append((addresses[int(codes[row])], int(ports[row])))
    return ends


def _clients(rows: Array, server_of: Array, numbers: Array, streams: pa.Table, stream_row: Array) -> list[list[str]]:
    """Return the client addresses of each server, sorted; `rows` must be grouped by server."""
    sides = {side: arrays.codes(streams, side) for side in SIDES}
    width = max((len(addresses) for _, addresses in sides.values()), default=0)
    pair_parts = []
    for span in spill.parts(len(rows)):
        stream_rows, servers = stream_row[rows[span]], server_of[rows[span]].astype(np.int64)
        is_usual = numbers[servers] < streams.num_rows
        codes = np.where(is_usual, sides["client"][0][stream_rows], sides["server"][0][stream_rows])
        pair_parts.append(arrays.distinct(servers * width + codes))
    pairs = arrays.distinct(np.concatenate(pair_parts)) if pair_parts else np.zeros(0, np.int64)
    clients: list[list[str]] = [[] for _ in range(len(numbers))]
    is_usual = (numbers < streams.num_rows).tolist()
    for server, code in zip((pairs // max(width, 1)).tolist(), (pairs % max(width, 1)).tolist(), strict=True):
        clients[server].append(sides["client" if is_usual[server] else "server"][1][code])
    for addresses in clients:
        addresses.sort()
    return clients


class _Judgement:
    """Which exchanges are judged; methods mark them in a span of rows.

    Complete exchanges are judged. A server without a complete answer is judged by the answers that began. Exchanges
    that never ended are judged if TCP kept them waiting longer than all complete ones. There may be as many servers as
    exchanges, so that arrays over all servers are used instead of a loop.
    """

    def __init__(self, facts: _ExchangeFacts, server_of: Array, servers: int):
        self.facts, self.server_of, self.servers = facts, server_of, servers
        self._has_polls_only = self.count(lambda span: self._is_answered(span) & ~facts.is_poll[span]) == 0
        self._has_none = self.count(self._is_complete) == 0
        stuck_ms, complete_ms = self.sum(self._is_stuck, facts.stuck_ms), self.sum(self._is_complete, facts.time_ms)
        self._is_held = self._has_none | ~(stuck_ms <= complete_ms)
        spans = spill.parts(len(server_of))
        self.judged = spill.from_pieces("bool", (self._is_complete(span) | self.is_cut(span) for span in spans))

    def count(self, mask: Callable[[slice], Array]) -> Array:
        """Return for each server the number of the marked exchanges."""
        return self.sum(mask, None).astype(int)

    def sum(self, mask: Callable[[slice], Array], weights: Array | None) -> Array:
        """Return for each server the sum of the weights of the marked exchanges."""
        sums = np.zeros(self.servers)
        for span in spill.parts(len(self.server_of)):
            rows = np.flatnonzero(mask(span)) + span.start
            sums += np.bincount(self.server_of[rows], None if weights is None else weights[rows], self.servers)
        return sums

    def _is_answered(self, span: slice) -> Array:
        return self.facts.is_request[span] & self.facts.is_complete[span]

    def _is_complete(self, span: slice) -> Array:
        is_no_poll = ~self.facts.is_poll[span] | self._has_polls_only[self.server_of[span]]
        return self._is_answered(span) & is_no_poll

    def _is_stuck(self, span: slice) -> Array:
        return self._is_open(span) & (self.facts.stuck_ms[span] > LIMITS["stuck_ms"])

    def _is_open(self, span: slice) -> Array:
        return self.facts.is_request[span] & ~self.facts.is_complete[span]

    def is_cut(self, span: slice) -> Array:
        """Mark incomplete exchanges that are judged by what was captured of them."""
        servers = self.server_of[span]
        is_begun = self._is_open(span) & self.facts.has_begun[span]
        return (self._is_stuck(span) & self._is_held[servers]) | (is_begun & self._has_none[servers])

    def is_poll(self, span: slice) -> Array:
        """Mark long polls of servers that have other requests."""
        has_others = ~self._has_polls_only[self.server_of[span]]
        return self._is_answered(span) & self.facts.is_poll[span] & has_others

    def is_incomplete(self, span: slice) -> Array:
        """Mark incomplete requests that are not judged."""
        return self.facts.is_request[span] & ~self.judged[span] & ~self.is_poll(span)

    def is_goodbye(self, span: slice) -> Array:
        """Mark those that are a client's last message before it closed."""
        return self.is_incomplete(span) & self.facts.is_goodbye[span]

    def is_slow(self, span: slice) -> Array:
        """Mark judged exchanges that were slow."""
        return self.judged[span] & self.facts.is_slow[span]

    def is_unread(self, span: slice) -> Array:
        """Mark slow ones that are turns of a protocol without a reader."""
        return self.is_slow(span) & self.facts.is_unread[span]


class _ExchangeFacts:
    """Properties of each exchange that decide whether it is judged and whether it was slow."""

    is_complete: Array
    has_begun: Array
    is_request: Array
    is_slow: Array
    is_unread: Array
    is_goodbye: Array
    is_poll: Array
    time_ms: Array
    stuck_ms: Array

    def __init__(self, streams: pa.Table, stretches: pa.Table, slow_ms: float | None):
        self.stream_row = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream"))
        columns = {name: spill.Column("float64" if name.endswith("_ms") else "bool") for name in self.__annotations__}
        for span, rows in arrays.sliced(stretches):
            for name, values in self._of(streams, rows, self.stream_row[span], slow_ms).items():
                columns[name].add(values)
        for name, column in columns.items():
            setattr(self, name, column.array())
        spill.release_memory()

    @staticmethod
    def _of(streams: pa.Table, stretches: pa.Table, stream_row: Array, slow_ms: float | None) -> dict[str, Array]:
        """Return the attributes of some exchanges by name; `stream_row` has the rows of their streams."""
        is_complete = arrays.numbers(stretches, "complete").astype(bool)
        has_begun = ~np.isnan(arrays.numbers(stretches, "response_first_frame").astype(float))
        cause_ms = {cause: arrays.numbers(stretches, f"{cause}_ms") for cause in CAUSES}
        captured_ms = sum(cause_ms.values(), np.zeros(stretches.num_rows))
        time_ms = np.where(is_complete, arrays.numbers(stretches, "latency_ms"), captured_ms)
        is_event_stream = slowness.event_streams(stretches)
        first_event_ms, _ = slowness.waits_for_streams(stretches, time_ms, slow_ms)
        return {
            "is_complete": is_complete,
            "has_begun": has_begun,
            # a complete exchange without an answer is a subscription whose protocol has none
            "is_request": request_mask(stretches) & ~(is_complete & ~has_begun),
            "is_slow": slowness.is_slow(stretches, time_ms, slow_ms),
            "is_unread": slowness.is_unread(stretches),
            "is_poll": slowness.long_polls(stretches),
            "is_goodbye": ~is_complete & ~has_begun & _is_goodbye(streams, stretches, stream_row),
            # users wait for the first event of a stream; later ones are sent when there is something to report
            "time_ms": np.where(is_event_stream, first_event_ms, time_ms),
            "stuck_ms": sum((cause_ms[cause] for cause in TCP_WAITS), np.zeros(stretches.num_rows)),
        }


def _is_goodbye(streams: pa.Table, stretches: pa.Table, stream_row: Array) -> Array:
    """Return the exchanges without a method after which the client closed at once."""
    ended = arrays.numbers(streams, "end")[stream_row] - arrays.numbers(stretches, "request_end")
    nameless = arrays.codes(stretches, "method")[0] < 0
    fins: Array = arrays.equals(stretches, "cut_by", "fin")
    fins = fins & arrays.equals(streams, "closed_by", "client_fin")[stream_row]
    return nameless & fins & (ended < LIMITS["goodbye_ns"])


def server_of_exchange(streams: pa.Table, stretches: pa.Table) -> Array:
    """Return a number for the server of each exchange: the first row of `streams` with the same server.

    If the accepting side sends the requests, the server is the stream's client. Its number is the first row with that
    client, plus the number of streams.
    """
    if not stretches.num_rows:
        return np.zeros(0, np.int64)
    first, server_of, _ = arrays.grouped(server_keys(streams))
    rows = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream"))
    asks = arrays.numbers(stretches, "server_asks").astype(bool)
    spans = spill.parts(len(rows))
    if not asks.any():
        return spill.from_pieces("int32", (first[server_of[rows[span]]] for span in spans))
    first_of_client, client_of, _ = arrays.grouped(arrays.codes(streams, "client")[0])
    client = streams.num_rows + first_of_client[client_of]
    return spill.from_pieces(
        "int32", (np.where(asks[span], client[rows[span]], first[server_of[rows[span]]]) for span in spans)
    )


def server_keys(streams: pa.Table) -> Array:
    """Return a number for the server of each stream, made of its address and port."""
    server, _ = arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port")
    spans = spill.parts(streams.num_rows)
    return spill.from_pieces("int64", (server[span].astype(np.int64) << 16 | port[span] for span in spans))
