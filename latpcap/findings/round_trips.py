"""Find round trips that could be saved: sequential requests, a TLS connection per request, large certificates.

Reads requests and TLS handshakes. Each step takes a normal round trip, and only their number is large. Requests that
run in parallel, or wait for their program, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from latpcap import arrays, spill, words
from latpcap.findings.evidence import called, request
from latpcap.findings.schema import Finding, Harmful
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.tables import NS_PER_MS, request_mask

if TYPE_CHECKING:
    from latpcap.arrays import Array

REDIRECTS = (301, 302, 303, 307, 308)
"""Status codes with which a server sends a client elsewhere."""
MIN_TRIP_MS = 5.0
"""Shortest round trip examined; on a shorter path a user notices only hundreds of round trips."""
MIN_SUM_MS = 200.0
"""Shortest sum worth a row: users notice a delay from 0.1 to 1 s on (Nielsen)."""
MIN_PATH_SHARE = 0.75
"""Smallest share of the path in the time of requests that wait only for the path."""
MAX_GAP_SHARE = 0.25
"""Longest gap before the next request, as a share of the round trip, if the program waited for nothing else."""
MAX_GAP_TRIPS = 3.0
"""Longest single gap in a run of sequential requests, in round trips; `MAX_GAP_SHARE` bounds their sum."""
MIN_RUN = 16
"""Fewest sequential requests that are a loop over rows, not the few steps of a page."""
MIN_CONNECTS = 3
"""Fewest connections with a single request that show a habit."""
MIN_REDIRECTS = 2
"""Fewest redirects in a row, since one to HTTPS is normal."""
MAX_REDIRECT_GAP_MS = 50.0
"""Longest gap before a program follows a redirect."""
MIN_WINDOW_WAIT = 0.5
"""Shortest wait of a server's handshake flight for an ACK, as a share of the round trip."""
MIN_ALIKE_SHARE = 0.75
"""Smallest share of a run that repeats one request with other values."""
MIN_IN_TURN = 5
"""Fewest connections (or messages) in sequence that are not an accident."""


def find(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """Find requests and handshakes that took more round trips than necessary, by server."""
    stretches = tables["stretches"]
    if not stretches.num_rows:
        return
    requests = Requests(tables["streams"], stretches)
    is_complete = request_mask(stretches) & arrays.numbers(stretches, "complete").astype(bool)
    is_handshake = is_complete & arrays.equals(stretches, "method", "handshake")
    is_handshake &= arrays.equals(stretches, "protocol", "tls")
    is_request = is_complete & ~is_handshake
    yield from _certificates(requests, is_handshake)
    yield from _connection_each(requests, is_handshake, is_request)
    yield from _redirects(requests, is_request)
    yield from _connects_in_turn(requests, is_complete, is_handshake)
    yield from _in_turn(requests, is_request)


class Requests:
    """The stretches, and columns of "streams"; `stream_row` is the row of each stretch's stream."""

    def __init__(self, streams: pa.Table, stretches: pa.Table):
        self.stretches = stretches
        self.number = arrays.numbers(streams, "stream")
        self.stream_row = spill.positions_of(self.number, arrays.numbers(stretches, "stream"))
        self.server, self.servers = arrays.codes(streams, "server")
        self.port = arrays.numbers(streams, "server_port")
        self.client, self.clients = arrays.codes(streams, "client")
        self.start = arrays.numbers(streams, "start")
        self.rtt = arrays.numbers(streams, "initial_rtt_ms").astype(float)

    def ms(self, name: str) -> Array:
        """Return a column of the stretches in ms, with 0 for null."""
        return np.nan_to_num(arrays.numbers(self.stretches, f"{name}_ms").astype(float))

    def rtt_ms(self, rows: Array) -> Array:
        """Return the round trips of the streams of these stretches, with 0 for null."""
        return np.nan_to_num(self.rtt[self.stream_row[rows]])

    def groups(self, stream_rows: Array) -> dict[tuple[str, int], Array]:
        """Group positions in `stream_rows` by server."""
        key = self.server[stream_rows].astype(np.int64) << 16 | self.port[stream_rows].astype(np.int64)
        order = np.argsort(key, kind="stable")
        edges = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if len(key) else order
        groups = np.split(order, edges[1:]) if len(key) else []
        return {self.server_of(stream_rows[positions[0]]): positions for positions in groups}

    def server_of(self, stream_row: int) -> tuple[str, int]:
        """Return the address and port of a stream's server."""
        return self.servers[int(self.server[stream_row])], int(self.port[stream_row])

    def count(self, mask: Array, server: tuple[str, int]) -> int:
        """Return the number of marked stretches of a server."""
        is_of_server = (self.server == self.servers.index(server[0])) & (self.port == server[1])
        return int((mask & is_of_server[self.stream_row]).sum())


def find_runs(follows: Array) -> list[tuple[int, int]]:
    """Return the first and the last index of each run of items, of which `follows` marks all but the last."""
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _certificates(requests: Requests, is_handshake: Array) -> Iterator[Finding]:
    """Find TLS handshakes in which the server's certificates waited for its congestion window."""
    if not is_handshake.any():
        return
    waited_ms = requests.ms("cwnd")
    waiting_rows = np.flatnonzero(is_handshake & (waited_ms > 0))
    for server, positions in requests.groups(requests.stream_row[waiting_rows]).items():
        rows = waiting_rows[positions]
        rtt_ms = requests.rtt_ms(rows)
        rows = rows[(waited_ms[rows] >= MIN_WINDOW_WAIT * rtt_ms) & (rtt_ms >= MIN_TRIP_MS)]
        if len(rows):
            total = requests.count(is_handshake, server)
            yield trips_finding("tls_certificates", "server", "late", server, requests, rows, waited_ms[rows], total)


def _connection_each(requests: Requests, is_handshake: Array, is_request: Array) -> Iterator[Finding]:
    """Find servers where most TLS connections carry a single request."""
    if not is_handshake.any():
        return
    counts = np.bincount(requests.stream_row[is_request], minlength=len(requests.number))
    handshake_rows = np.flatnonzero(is_handshake)
    took_ms = requests.ms("latency")
    for server, positions in requests.groups(requests.stream_row[handshake_rows]).items():
        rows = handshake_rows[positions]
        single_rows = rows[(counts[requests.stream_row[rows]] == 1) & (requests.rtt_ms(rows) >= MIN_TRIP_MS)]
        if len(single_rows) < MIN_CONNECTS or 2 * len(single_rows) < len(rows):
            continue
        spent_ms = took_ms[single_rows] + requests.rtt_ms(single_rows)
        if spent_ms.sum() >= MIN_SUM_MS:
            yield trips_finding("tls_each", "client", "path", server, requests, single_rows, spent_ms, len(rows))


def _in_turn(requests: Requests, is_request: Array) -> Iterator[Finding]:
    """Find runs of sequential requests on a connection that waited almost only for the path."""
    rows = np.flatnonzero(is_request)
    if len(rows) < MIN_RUN:
        return
    stretches = requests.stretches
    rows = rows[np.lexsort((arrays.numbers(stretches, "start")[rows], requests.stream_row[rows]))]
    start, end = arrays.numbers(stretches, "start")[rows], arrays.numbers(stretches, "end")[rows]
    # in a capture at the server the round trip lies between an answer and the next request
    path_ms = requests.ms("network")[rows]
    beyond_ms = np.where(path_ms < MIN_TRIP_MS, requests.rtt_ms(rows), 0.0)
    path_ms, took_ms = path_ms + beyond_ms, requests.ms("latency")[rows] + beyond_ms
    is_far, gap_ms = path_ms >= MIN_TRIP_MS, (start[1:] - end[:-1]) / NS_PER_MS - beyond_ms[:-1]
    follows = is_far[1:] & is_far[:-1] & (requests.stream_row[rows][1:] == requests.stream_row[rows][:-1])
    follows &= (gap_ms >= -MAX_GAP_SHARE * beyond_ms[:-1]) & (gap_ms <= MAX_GAP_TRIPS * path_ms[1:])
    firsts, lasts = np.array(find_runs(follows), np.int64).reshape(-1, 2).T
    # sums over each run, so that a single slow request does not split it
    path_sums, took_sums, beyond_sums = (
        sums[lasts + 1] - sums[firsts] for sums in (np.r_[0.0, np.cumsum(ms)] for ms in (path_ms, took_ms, beyond_ms))
    )
    between = (end[lasts] - start[firsts]) / NS_PER_MS - (took_sums - beyond_sums) - (beyond_sums - beyond_ms[lasts])
    is_long = (lasts - firsts + 1 >= MIN_RUN) & (path_sums >= MIN_PATH_SHARE * took_sums)
    is_long &= between <= MAX_GAP_SHARE * path_sums
    runs = list(zip(firsts[is_long].tolist(), lasts[is_long].tolist(), strict=True))
    for server, indexes in requests.groups(requests.stream_row[rows[firsts[is_long]]]).items():
        runs_of_server = [runs[index] for index in indexes.tolist()]
        in_runs = np.concatenate([np.arange(first, last + 1) for first, last in runs_of_server])
        first, last = max(runs_of_server, key=lambda run: run[1] - run[0])
        if took_ms[in_runs].sum() >= MIN_SUM_MS:
            values: dict[str, float | str] = {
                "run": last - first + 1, "whole_ms": (end[last] - start[first]) / NS_PER_MS,
                "path_ms": float(path_ms[first : last + 1].sum()), "trip_ms": float(np.median(path_ms[in_runs])),
                "alike": _alike(stretches, rows[first : last + 1]),
            }  # fmt: skip
            total = requests.count(is_request, server)
            yield trips_finding(
                "in_turn", "client", "path", server, requests, rows[in_runs], took_ms[in_runs], total, values
            )


def _alike(stretches: pa.Table, rows: Array) -> str:
    """Return a phrase about the request that most of these are; "" if they are of many kinds."""
    (method, methods), (target, targets) = (arrays.codes(stretches, name) for name in ("method", "target"))
    kinds, counts = np.unique(np.stack([method[rows], target[rows]]), axis=1, return_counts=True)
    largest = int(counts.argmax())
    if counts[largest] < MIN_ALIKE_SHARE * len(rows):
        return ""
    verb, name = (names[int(code)] if code >= 0 else None for code, names in zip(
        kinds[:, largest], (methods, targets), strict=True))  # fmt: skip
    return words.say("in_turn_alike", n=int(counts[largest]), name=called(verb, name))


def _connects_in_turn(requests: Requests, is_complete: Array, is_handshake: Array) -> Iterator[Finding]:
    """Find clients that send sequential requests, each over a new connection, on a long path."""
    if not is_complete.any():
        return
    count, took_ms = len(requests.number), requests.ms("latency")
    end, first_row = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    rows = np.flatnonzero(is_complete)
    np.maximum.at(end, requests.stream_row[rows], arrays.numbers(requests.stretches, "end")[rows])
    first_row[requests.stream_row[rows][::-1]] = rows[::-1]
    is_single = (np.bincount(requests.stream_row[rows], minlength=count) == 1) & (requests.rtt >= MIN_TRIP_MS)
    is_single &= np.bincount(requests.stream_row[is_handshake], minlength=count) == 0  # `_connection_each` has those
    singles = np.flatnonzero(is_single)
    key = requests.client[singles].astype(np.int64) << 40 | requests.server[singles].astype(np.int64) << 16
    key |= requests.port[singles].astype(np.int64)
    singles = singles[np.lexsort((requests.start[singles], key))]
    key = np.sort(key)
    # the next SYN follows at once in a capture at the client, and after a round trip at the server
    gap_ms = (requests.start[singles[1:]] - end[singles[:-1]]) / NS_PER_MS
    follows = (gap_ms >= 0) & (gap_ms <= (1 + MAX_GAP_SHARE) * requests.rtt[singles[1:]])
    runs = find_runs(follows & (key[1:] == key[:-1]))
    for first, last in (run for run in runs if run[1] - run[0] + 1 >= MIN_IN_TURN):
        streams = singles[first : last + 1]
        trip_ms = float(np.median(requests.rtt[streams]))
        whole_ms = float(end[streams[-1]] - requests.start[streams[0]]) / NS_PER_MS
        if whole_ms < MIN_SUM_MS or 2 * len(streams) * trip_ms < MIN_PATH_SHARE * whole_ms:
            continue
        server, rows_of_run = requests.server_of(streams[0]), first_row[streams]
        spent_ms = np.r_[np.diff(requests.start[streams]), end[streams[-1]] - requests.start[streams[-1]]] / NS_PER_MS
        values: dict[str, float | str] = {
            "whole_ms": whole_ms, "trip_ms": trip_ms, "client": requests.clients[int(requests.client[streams[0]])],
            "own_ms": float(took_ms[rows_of_run].sum()) / len(streams),
        }  # fmt: skip
        total = requests.count(is_complete, server)
        yield trips_finding(
            "connects_in_turn", "client", "path", server, requests, rows_of_run, spent_ms, total, values
        )


def shortest_trips_ms(streams: pa.Table) -> Array:
    """Return the shortest known round trip of each stream; NaN without one."""
    first = arrays.numbers(streams, "initial_rtt_ms").astype(float)
    legs = [arrays.numbers(streams, f"{side}_rtt_ms").astype(float) for side in ("client", "server")]
    return np.fmin(first, np.where(np.isnan(first), np.nan, np.nan_to_num(legs[0]) + np.nan_to_num(legs[1])))


def _redirects(requests: Requests, is_request: Array) -> Iterator[Finding]:
    """Find several redirects in a row that the client followed at once, each with a request and maybe a connection."""
    stretches = requests.stretches
    is_redirect = is_request & np.isin(arrays.numbers(stretches, "status").astype(float), REDIRECTS)
    if is_redirect.sum() < MIN_REDIRECTS:
        return
    rows = np.flatnonzero(is_request)
    start, end = arrays.numbers(stretches, "start"), arrays.numbers(stretches, "end")
    is_first = arrays.numbers(stretches, "index") == 0
    begin = np.where(is_first, np.minimum(requests.start[requests.stream_row], start), start)
    client = requests.client[requests.stream_row]
    rows = rows[np.lexsort((begin[rows], client[rows]))]
    # compare each with the client's next request, on any connection
    pause_ms = (begin[rows[1:]] - end[rows[:-1]]) / NS_PER_MS
    follows = is_redirect[rows[:-1]] & (client[rows[1:]] == client[rows[:-1]])
    follows &= (pause_ms >= 0) & (pause_ms <= MAX_REDIRECT_GAP_MS) & (requests.rtt_ms(rows[:-1]) >= MIN_TRIP_MS)
    chains = [(first, last) for first, last in find_runs(follows) if last - first >= MIN_REDIRECTS]
    firsts = requests.stream_row[rows[np.array([first for first, _ in chains], np.int64)]]
    for server, indexes in requests.groups(firsts).items():
        chains_of_server = [chains[index] for index in indexes.tolist()]
        redirects = np.concatenate([rows[first:last] for first, last in chains_of_server])
        spent = np.concatenate([np.diff(begin[rows[first : last + 1]]) for first, last in chains_of_server])
        spent_ms = spent / NS_PER_MS
        first, last = max(chains_of_server, key=lambda chain: begin[rows[chain[1]]] - begin[rows[chain[0]]])
        if spent_ms.sum() < MIN_SUM_MS:
            continue
        redirect = request(stretches, int(rows[first]))
        values = {
            "run": last - first, "whole_ms": float(begin[rows[last]] - begin[rows[first]]) / NS_PER_MS,
            "connects": int(is_first[rows[first:last]].sum()), "name": called(redirect["method"], redirect["target"]),
        }  # fmt: skip
        yield trips_finding(
            "redirects", "server", "path", server, requests, redirects, spent_ms, len(redirects), values
        )


def trips_finding(
    sentence: str, owner: str, harm: Harmful, server: tuple[str, int], requests: Requests, rows: Array,
    waited_ms: Array, total: int, more_values: Mapping[str, float | str] | None = None,
) -> Finding:  # fmt: skip
    """Return the finding of requests whose round trips fewer would spare."""
    longest = int(waited_ms.argmax())
    worst, ordered = int(rows[longest]), sorted(waited_ms.tolist())
    stream_row = requests.stream_row[worst]
    frame = int(arrays.numbers(requests.stretches, "request_first_frame")[worst])
    spare = float(waited_ms.sum()) * (1 - 1 / len(rows) if harm == "path" else 1)  # one of them is necessary
    values = {
        "n": len(rows), "of": total, "server": endpoint(*server), "span_ms": (ordered[0], ordered[-1]),
        "sum_ms": float(waited_ms.sum()), "trip_ms": float(requests.rtt[stream_row]), **(more_values or {}),
    }  # fmt: skip
    return Finding.wait(
        server, sentence, owner, harm, ordered, values, exchanges=len(rows), of_exchanges=total, total_ms=spare,
        worst_stream=int(requests.number[stream_row]), worst_frames=(frame,),
        worst_exchange=int(arrays.numbers(requests.stretches, "exchange")[worst]),
    )  # fmt: skip
