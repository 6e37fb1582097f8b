"""Matches the exchanges of two captures, and returns their instants on A's clock.

In a connection that both captures have, a request is recognised by the sequence number of its first byte. Through a
proxy it is recognised by its content and by nesting: the back request runs inside the front request. The clock is the
offset at which most requests nest; if another offset nests nearly as many, nothing is matched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill
from latpcap.joined import clock, limits
from latpcap.joined.capture_point import Point
from latpcap.joined.match import hash_of, unique_pairs
from latpcap.joined.pairing import Pairing
from latpcap.lazy import np, pa

if TYPE_CHECKING:
    from latpcap.arrays import Array


@dataclass
class Requests:
    """The answered exchanges of one capture."""

    row: Array
    """Row in the table of exchanges."""
    stream: Array
    start: Array
    """Instant of the request's last byte, in ns of the capture's clock."""
    end: Array
    """Instant of the response's last byte."""
    first_row: Array
    """Row of `packets` of the request's first segment."""
    last_row: Array
    """Row of the request's last segment."""
    end_row: Array
    """Row of the response's last segment."""


def requests(point: Point) -> Requests:
    """Return the exchanges whose response is complete and whose segments are known.

    Instants are taken from the packets: those of the table never go backwards, as a clock that is set back does.
    """
    table = point.table("exchanges")
    names = ("request_first_frame", "request_last_frame", "response_last_frame")
    packet_rows_of = [point.rows_of(arrays.filled(table, name, 0)) for name in names]
    is_known = np.logical_and.reduce([packet_rows >= 0 for packet_rows in packet_rows_of])
    is_known &= ~np.isnan(arrays.numbers(table, "latency_ms"))
    table_row = np.flatnonzero(is_known).astype(np.int32)
    first, last, end = (packet_rows[table_row].astype(np.int32) for packet_rows in packet_rows_of)
    stream = arrays.numbers(table, "stream")[table_row].astype(np.int32)
    time = point.packets["time"]
    return Requests(table_row, stream, time[last], time[end], first, last, end)


@dataclass
class Matched:
    """The pairs of exchanges of both captures, and B's clock."""

    front: Requests
    """Of A."""
    back: Requests
    """Of B."""
    a: Array
    """Of each pair the row in `front`."""
    b: Array
    """Of each pair the row in `back`."""
    clock: clock.Clock

    def sliced(self, begin: int, end: int) -> Matched:
        """Return the pairs from `begin` to before `end`."""
        return Matched(self.front, self.back, self.a[begin:end], self.b[begin:end], self.clock)

    def instants(self) -> tuple[Array, Array, Array, Array]:
        """Return the request's last byte at A and at B, and the response's last byte at B and at A: ns on A's clock."""
        front, back = self.front, self.back
        arrived_ns = back.start[self.b] + self.clock.shift(back.last_row[self.b], back.start[self.b])
        answered_ns = back.end[self.b] + self.clock.shift(back.end_row[self.b], back.end[self.b])
        return front.start[self.a], arrived_ns, answered_ns, front.end[self.a]

    def error_ns(self) -> Array:
        """Return the error bound of both of B's instants, in ns."""
        back = self.back
        first = self.clock.error_ns(back.last_row[self.b], back.start[self.b])
        return np.maximum(first, self.clock.error_ns(back.end_row[self.b], back.end[self.b]))


def within(a: Point, b: Point, pairing: Pairing) -> Matched:
    """Match the exchanges of connections that both captures have."""
    front, back = requests(a), requests(b)
    pair_a, pair_b = (pairing.sides.pair_a[front.first_row], pairing.sides.pair_b[back.first_row])
    key_a = _ranked(pair_a, a.packets["seq"][front.first_row])
    key_b = _ranked(pair_b, pairing.sides.seq_b[back.first_row])
    index_a, index_b = unique_pairs(key_a, key_b)
    is_forward = (pair_a[index_a] >= 0) & pairing.up_a[front.first_row[index_a]]  # the client is on A's side
    index_a, index_b = index_a[is_forward], index_b[is_forward]
    more_a, more_b = _match_by_content(
        a, b, front, back, pair_a, pair_b, index_a, index_b, pairing.up_a[front.first_row]
    )
    index_a, index_b = np.concatenate([index_a, more_a]), np.concatenate([index_b, more_b])
    order = np.argsort(index_a, kind="stable")
    matched = Matched(front, back, index_a[order], index_b[order], pairing.clock)
    sent_ns, arrived_ns, answered_ns, returned_ns = matched.instants()
    error_ns = matched.error_ns()
    # If B lacks the last frame of a message, a later copy seems to be its last. Such a pair would have B send a
    # packet after A received it, and is dropped.
    possible_rows = np.flatnonzero((arrived_ns - sent_ns >= -error_ns) & (returned_ns - answered_ns >= -error_ns))
    spill.release_memory()
    rows_a, rows_b = matched.a[possible_rows].astype(np.int32), matched.b[possible_rows].astype(np.int32)
    return Matched(front, back, rows_a, rows_b, pairing.clock)


def _ranked(pair: Array, seq: Array) -> Array:
    """Return a key of each request: its connection, the sequence number of its first byte, and its rank among the
    requests that begin at that number.
    """
    key = (pair.astype(np.int64) << 32) | seq
    order = np.argsort(key, kind="stable")
    first = np.searchsorted(key[order], key[order])
    rank = np.empty(len(key), np.int64)
    rank[order] = np.arange(len(key)) - first
    return hash_of(key, rank)


def _match_by_content(
    a: Point,
    b: Point,
    front: Requests,
    back: Requests,
    pair_a: Array,
    pair_b: Array,
    matched_a: Array,
    matched_b: Array,
    up: Array,
) -> tuple[Array, Array]:
    """Match the rest, in order, by connection and content: merged segments give a request another first byte."""
    free_a, free_b = (pair_a >= 0) & up, pair_b >= 0
    free_a[matched_a], free_b[matched_b] = False, False
    free_rows_a, free_rows_b = np.flatnonzero(free_a), np.flatnonzero(free_b)
    if not len(free_rows_a) or not len(free_rows_b):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    names_a, names_b = contents(a, front), contents(b, back)
    waiting: dict[tuple[int, Any], list[int]] = {}
    for index in free_rows_b[::-1].tolist():
        waiting.setdefault((int(pair_b[index]), names_b[index]), []).append(index)
    matches = []
    for index in free_rows_a.tolist():
        candidates = waiting.get((int(pair_a[index]), names_a[index]))
        if candidates:
            matches.append((index, candidates.pop()))
    columns = np.array(matches, np.int64).reshape(-1, 2).T
    return columns[0], columns[1]


def contents(point: Point, answered: Requests) -> list[Any]:
    """Return the content of each request: method, target and status, or sizes and a hash of its first bytes."""
    table = point.table("exchanges")
    columns = [_words(table, name) for name in ("protocol", "method", "target")]
    status = arrays.filled(table, "status", -1).tolist()
    sizes = [arrays.filled(table, name, -1).tolist() for name in ("request_bytes", "response_bytes")]
    hashes = point.packets["hash"]
    keys: list[Any] = []
    for table_row, row in zip(answered.row.tolist(), answered.first_row.tolist(), strict=True):
        protocol, method, target = (column[table_row] for column in columns)
        if method is not None or target is not None:
            keys.append((protocol, method, target, status[table_row]))
        else:
            keys.append((protocol, sizes[0][table_row], sizes[1][table_row], int(hashes[row])))
    return keys


def _words(table: pa.Table, name: str) -> list[str | None]:
    return table[name].cast(pa.string()).to_pylist()


def through_proxy(a: Point, b: Point) -> Matched | None:
    """Match front requests of A with back requests of B by content and nesting; None if the match is not certain."""
    front, back = requests(a), requests(b)
    names_a, names_b = contents(a, front), contents(b, back)
    if _same_ends(a, b) or min(len(front.row), len(back.row)) < limits.MIN_PROXY_REQUESTS:
        return None
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names_a))}
    key_a = np.array([numbers[name] for name in names_a], np.int64)
    key_b = np.array([numbers.get(name, -1) for name in names_b], np.int64)
    best, rival = _offsets(front, back, key_a, key_b)
    if best is None:
        return None
    shift = np.full(len(back.start), best)
    index_a, index_b = _nested(front, back, key_a, key_b, shift, 0)
    overlap = _count_in_both(front, back, shift)
    if len(index_a) < max(limits.MIN_PROXY_REQUESTS, limits.PROXY_SHARE * overlap):
        return None
    if rival is not None:
        rival_pairs, _ = _nested(front, back, key_a, key_b, np.full(len(back.start), rival), 0)
        if len(rival_pairs) > limits.PROXY_RIVAL * len(index_a):
            return None
    for _ in range(2):
        shift = _fit_clock(a, b, front, back, index_a, index_b).shift(back.last_row, back.start)
        index_a, index_b = _nested(front, back, key_a, key_b, shift, int(limits.STAMP_NS))
    order = np.argsort(index_a, kind="stable")
    return Matched(front, back, index_a[order], index_b[order], _fit_clock(a, b, front, back, index_a, index_b))


def beside_proxy(point: Point) -> Matched | None:
    """Match front requests with the back requests inside them, in one capture; None if the match is not certain.

    A back request has the content of its front request, and its client is the proxy: the host that the front request
    was sent to, or, if the proxy has another address there, a single host that sends no requests to the front.
    """
    answered = requests(point)
    names = contents(point, answered)
    columns = point.table("streams").select(["stream", "client", "server", "server_port"]).to_pydict()
    ends = {stream: (client, (server, port)) for stream, client, server, port in zip(*columns.values(), strict=True)}
    servers = [ends[stream][1] for stream in answered.stream.tolist()]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    best: Matched | None = None
    for front in dict.fromkeys(servers):
        for back in dict.fromkeys(servers):
            to_front = np.array([server == front for server in servers])
            to_back = np.array([server == back for server in servers])
            fronts, backs = (
                {ends[stream][0] for stream in answered.stream[rows].tolist()} for rows in (to_front, to_back)
            )
            is_relayed = backs == {front[0]} or (len(backs) == 1 and not backs & fronts)
            fewer = min(to_front.sum(), to_back.sum())
            if front == back or not is_relayed or fewer < limits.MIN_PROXY_REQUESTS:
                continue
            keys = np.array([numbers[name] for name in names], np.int64)
            key_a, key_b = np.where(to_front, keys, -1), np.where(to_back, keys, -2)
            index_a, index_b = _nested(answered, answered, key_a, key_b, np.zeros(len(keys), np.int64), 0)
            if len(index_a) < max(limits.MIN_PROXY_REQUESTS, limits.PROXY_SHARE * fewer):
                continue
            if best is None or len(index_a) > len(best.a):
                order = np.argsort(index_a, kind="stable")
                best = Matched(
                    answered, answered, index_a[order], index_b[order], clock.identity(point.first_ns, point.last_ns)
                )
    return best


def _same_ends(a: Point, b: Point) -> bool:
    """Return whether the clients of both captures send requests to the same servers; then there is no proxy between
    them.
    """
    names = ("stream", "client", "server", "server_port")

    def ends(point: Point) -> set[tuple[Any, ...]]:
        columns = point.table("streams").select(names).to_pydict()
        asking = set(point.table("exchanges")["stream"].to_pylist())
        rows = zip(*(columns[name] for name in names), strict=True)
        return {row[1:] for row in rows if row[0] in asking}

    return bool(ends(a) & ends(b))


def _offsets(front: Requests, back: Requests, key_a: Array, key_b: Array) -> tuple[int | None, int | None]:
    """Return the offset at which most back requests are inside a front request of their content, and the next best
    offset.

    Each pair of requests of one content allows a range of offsets; the best offset is in most of these ranges. The next
    best is further from it than twice the longest request. None where there is no such offset.
    """
    few_a, few_b = (np.argsort(requests.start, kind="stable")[: limits.PROXY_TRIES] for requests in (front, back))
    front_row, back_row = np.nonzero(key_a[few_a][:, None] == key_b[few_b][None, :])
    front_row, back_row = few_a[front_row], few_b[back_row]
    low, high = front.start[front_row] - back.start[back_row], front.end[front_row] - back.end[back_row]
    is_possible = low <= high
    low, high = low[is_possible], high[is_possible]
    if not len(low):
        return None, None
    edges = np.concatenate([low, high])
    turns = np.concatenate([np.ones(len(low), np.int64), -np.ones(len(high), np.int64)])
    order = np.lexsort((-turns, edges))
    edges, depth = edges[order], np.cumsum(turns[order])
    top = int(depth.argmax())
    best = int((edges[top] + edges[min(top + 1, len(edges) - 1)]) // 2)
    apart = int(np.max(front.end[front_row] - front.start[front_row]))
    far = np.flatnonzero(abs(edges - best) > 2 * apart)
    if not len(far):
        return best, None
    second = int(far[depth[far].argmax()])
    return best, int((edges[second] + edges[min(second + 1, len(edges) - 1)]) // 2)


def _count_in_both(front: Requests, back: Requests, shift: Array) -> int:
    """Return the number of requests in the time that both captures cover, of the capture with fewer of them."""
    begin = max(front.start.min(), (back.start + shift).min())
    end = min(front.end.max(), (back.end + shift).max())
    is_inside_a = (front.start >= begin) & (front.end <= end)
    is_inside_b = (back.start + shift >= begin) & (back.end + shift <= end)
    return int(min(is_inside_a.sum(), is_inside_b.sum()))


def _nested(
    front: Requests, back: Requests, key_a: Array, key_b: Array, shift: Array, slack: int
) -> tuple[Array, Array]:
    """Give each front request a back request inside it.

    Preferred are back requests of the connection that serves most of the front connection's requests, then those that
    leave the least time outside.
    """
    start_b, end_b = back.start + shift, back.end + shift
    order_b = np.lexsort((start_b, key_b))
    candidates: list[tuple[int, int, int]] = []
    for front_row in range(len(key_a)):
        first, last = np.searchsorted(key_b[order_b], [key_a[front_row], key_a[front_row] + 1])
        same_content = order_b[first:last]
        begin = np.searchsorted(start_b[same_content], front.start[front_row] - slack)
        for back_row in same_content[begin:].tolist():
            if start_b[back_row] > front.end[front_row] + slack:
                break
            if end_b[back_row] <= front.end[front_row] + slack:
                outside_ns = int(front.end[front_row] - front.start[front_row] - end_b[back_row] + start_b[back_row])
                candidates.append((outside_ns, front_row, back_row))
    pairs: dict[tuple[int, int], int] = {}
    for _, front_row, back_row in candidates:
        ends = int(front.stream[front_row]), int(back.stream[back_row])
        pairs[ends] = pairs.get(ends, 0) + 1
    most_votes: dict[int, int] = {}
    for (stream, _), votes in pairs.items():
        most_votes[stream] = max(most_votes.get(stream, 0), votes)

    def rank(candidate: tuple[int, int, int]) -> tuple[int, int, int]:
        ends = int(front.stream[candidate[1]]), int(back.stream[candidate[2]])
        return most_votes[ends[0]] - pairs[ends], candidate[0], candidate[1]

    used_a: set[int] = set()
    used_b: set[int] = set()
    chosen = []
    for _, front_row, back_row in sorted(candidates, key=rank):
        if front_row not in used_a and back_row not in used_b:
            used_a.add(front_row)
            used_b.add(back_row)
            chosen.append((front_row, back_row))
    columns = np.array(chosen, np.int64).reshape(-1, 2).T
    return columns[0], columns[1]


def _fit_clock(a: Point, b: Point, front: Requests, back: Requests, index_a: Array, index_b: Array) -> clock.Clock:
    """Fit B's clock so that every back request begins after its front request and ends before it."""
    rows = np.concatenate([back.last_row[index_b], back.end_row[index_b]])
    b_time = np.concatenate([back.start[index_b], back.end[index_b]])
    a_time = np.concatenate([front.start[index_a], front.end[index_a]])
    up = np.concatenate([np.ones(len(index_b), bool), np.zeros(len(index_b), bool)])
    tolerance = limits.STAMP_NS + a.resolution_ns + b.resolution_ns
    return clock.fit(rows, b_time, a_time, up, tolerance)
