"""Find requests that waited for one thing: a program that stood still, a lock, another connection's work, or one
expired cache entry that many requests need at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays, spill
from latpcap.findings import queues
from latpcap.findings.evidence import called, request, slow_answers, wait_finding
from latpcap.findings.schema import Finding
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.cause_totals import CauseTotal
from latpcap.user_waits.servers import Server

if TYPE_CHECKING:
    from latpcap.arrays import Array

MIN_GROUP = 3
"""Fewest requests, on as many streams, that are answered together."""
END_SHARE = 0.01
"""They are answered within this share of their wait."""
MIN_SPREAD = 5.0
"""Their arrivals are at least this many times as far apart as their answers."""
MAX_CHANCE = 0.1
"""Upper bound on the number of such coincidences expected by chance."""
MOST_OF_WAIT = 0.9
"""Share of a wait that counts as nearly all of it."""
BEGINS_WORK = ("BEGIN", "START")
"""Methods that open a transaction."""
ENDS_WORK = ("COMMIT", "ROLLBACK", "END")
"""Methods that end one."""
BEHIND_MS = 1.0
"""A request that waited for another's end is answered within this time after it, or within `BEHIND_WORK`."""
BEHIND_WORK = 2.0
"""That time in multiples of the median time that the server's program takes; the path's time is not its part."""
MIN_HITS = 2
"""Fewest requests answered just after another one; one may be a coincidence."""
MAX_QUICK_SHARE = 0.1
"""An equal request of another client did not wait for a session lock if it took at most this share of the wait."""
MIN_QUICK = 2
"""Fewest such requests that show a session lock."""
MIN_BURST = 4
"""Fewest simultaneous requests for one thing."""
MAX_WORK_RATIO = 2.0
"""They do the same work: the longest takes at most this many times as long as the shortest."""


class _Group(NamedTuple):
    """Requests that were answered together. Times are in ns."""

    rows: Array
    first: int
    """The row of the request that arrived first."""
    ends: int
    """How far apart their answers were sent."""
    quiet: int
    """How long the server answered nobody; 0 if others were answered meanwhile."""


def find_answered_together(
    server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]
) -> Finding | None:
    """Find requests that arrived one by one and were answered all at once; the longest such wait, None without one.

    They waited for one thing: for the whole program if nobody was answered meanwhile ("frozen"), else for a lock,
    which the first of them may hold ("behind_one"). Independent work would end as far apart as it began.
    """
    stretches = tables["stretches"]
    late_rows = slow_answers(server, stretches)
    if not MIN_GROUP <= len(late_rows) <= LIMITS["pool_most"]:
        return None
    took_ms = arrays.numbers(stretches, "latency_ms")
    arrived, answered = arrays.filled(stretches, "request_end", 0), arrays.filled(stretches, "response_start", 0)
    is_program = queues.think_ms(items, late_rows) >= MOST_OF_WAIT * took_ms[late_rows]
    late_rows = late_rows[is_program & (answered[late_rows] > 0)]
    late_rows = late_rows[np.argsort(answered[late_rows], kind="stable")]
    if len(late_rows) < MIN_GROUP:
        return None
    stream = arrays.numbers(stretches, "stream")
    candidates = list(_groups_answered_together(server, late_rows, arrived, answered, stream))
    if not candidates:
        return None
    worst = max(candidates, key=lambda group: float(took_ms[group.first]))
    rows, first, is_frozen = worst.rows, worst.first, bool(worst.quiet)
    candidates = [group for group in candidates if bool(group.quiet) == is_frozen]
    # the holder of a lock works and does not wait; in a program that stands still all of them wait
    total = sum(
        float(took_ms[group.rows].sum()) - (0.0 if is_frozen else float(took_ms[group.first])) for group in candidates
    )
    row = request(stretches, first)
    values = {
        "server": server.name, "n": len(rows) - (not is_frozen), "streams": len(set(stream[rows].tolist())),
        "span_ms": worst.quiet / NS_PER_MS if is_frozen else float(took_ms[first]), "ends_ms": worst.ends / NS_PER_MS,
        "name": called(row["method"], row["target"]), "frame": row["request_first_frame"], "times": len(candidates),
    }  # fmt: skip
    return wait_finding(
        server, row, float(took_ms[first]), "frozen" if is_frozen else "behind_one", values, total_ms=total,
        clients=len(server.clients), exchanges=sum(len(group.rows) for group in candidates),
    )  # fmt: skip


def _groups_answered_together(
    server: Server, late_rows: Array, arrived: Array, answered: Array, stream: Array
) -> Iterator[_Group]:
    """Yield the groups among these rows, which must be in the order of their answers."""
    waited_ns, steps = answered[late_rows] - arrived[late_rows], np.diff(answered[late_rows])
    is_near = steps <= END_SHARE * np.minimum(waited_ns[1:], waited_ns[:-1])
    all_answered = np.sort(answered[server.rows])
    span = int(all_answered[-1] - arrived[server.rows].min())
    for rows in np.split(late_rows, np.flatnonzero(~is_near) + 1):
        ends, starts = int(np.ptp(answered[rows])), int(np.ptp(arrived[rows]))
        if len(rows) < MIN_GROUP or len(set(stream[rows].tolist())) < MIN_GROUP or starts <= MIN_SPREAD * ends:
            continue
        if (len(late_rows) - 1) * 2 * ends > MAX_CHANCE * span:
            continue
        first, end = int(rows[arrived[rows].argmin()]), int(answered[rows].min())
        begin = int(arrived[first])
        before = int(np.searchsorted(all_answered, end, side="left"))
        # since the server's last answer
        quiet = end - max(begin, int(all_answered[before - 1]) if before else begin)
        yield _Group(rows, first, ends, quiet if quiet >= MOST_OF_WAIT * (end - begin) else 0)


class _Blocked(NamedTuple):
    """A request that waited for the work of another connection, as rows of `exchanges`."""

    row: int
    end: int
    """The request whose end freed it."""
    begin: int
    """The BEGIN of that transaction; -1 without one."""


def find_behind_other(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find requests that waited until the work of another connection was done; None without them.

    That work is a transaction that began before the request and whose end freed it: its locks, or its connection of
    a pool. Without transactions it is an earlier request, if that happened more than once.
    """
    stretches = tables["stretches"]
    took_ms = arrays.numbers(stretches, "latency_ms")
    late_rows = slow_answers(server, stretches)
    if not 0 < len(late_rows) <= LIMITS["pool_most"] or len(server.rows) > queues.MAX_REQUESTS:
        return None
    is_program = queues.think_ms(items, late_rows) >= MOST_OF_WAIT * took_ms[late_rows]
    late_rows = late_rows[is_program & (took_ms[late_rows] >= LIMITS["setup_ms"])]
    arrived, answered = arrays.filled(stretches, "request_end", 0), arrays.filled(stretches, "response_start", 0)
    stream, rows = arrays.numbers(stretches, "stream"), server.rows[answered[server.rows] > 0]
    if not len(late_rows) or not len(rows):
        return None
    span = int(answered[rows].max() - arrived[rows].min())
    work_ms = arrays.percentile(np.sort(queues.think_ms(items, server.rows)), 1 / 2)
    near_ns = max(BEHIND_MS, BEHIND_WORK * work_ms) * NS_PER_MS
    method, methods = arrays.codes(stretches, "method")
    ends = rows[np.isin(method[rows], [methods.index(word) for word in ENDS_WORK if word in methods])]
    is_begin = np.isin(method, [methods.index(word) for word in BEGINS_WORK if word in methods])
    begins = _begins(rows, ends, is_begin, stream, arrived)
    hits = []
    for row in late_rows.tolist():
        gap = answered[row] - answered[ends]
        for end in ends[(-gap <= BEHIND_MS * NS_PER_MS) & (gap <= near_ns)].tolist():
            begin = begins.get(end, -1)
            if stream[end] != stream[row] and begin >= 0 and arrived[begin] < arrived[row] < arrived[end]:
                hits.append(_Blocked(row, end, begin))
                break
    if hits and len(ends) * near_ns > MAX_CHANCE * span:
        return None
    if hits:
        return _behind_other(server, [_first_holder(hit, hits, stream, arrived, answered) for hit in hits], tables)
    for row in late_rows.tolist():
        ahead = late_rows[(arrived[late_rows] < arrived[row]) & (stream[late_rows] != stream[row])]
        ahead = ahead[(answered[ahead] <= answered[row]) & (answered[row] - answered[ahead] <= near_ns)]
        if len(ahead):
            hits.append(_Blocked(row, int(ahead[answered[ahead].argmax()]), -1))
    if len(hits) * len(late_rows) * near_ns > MAX_CHANCE * span:
        return None
    session = [hit for hit in hits if _is_same_session(server, hit.row, hit.end, tables)]
    if session:
        return _behind_other(server, session, tables, "behind_session")
    return _behind_other(server, hits, tables) if len(hits) >= MIN_HITS else None


def _begins(rows: Array, ends: Array, is_begin: Array, stream: Array, arrived: Array) -> dict[int, int]:
    """Return the first request of each transaction, by the request that ends it.

    That is its BEGIN; without autocommit, where none is sent, the first request after the end of the transaction
    before. A transaction whose end is its only request is left out.
    """
    order = rows[np.lexsort((arrived[rows], stream[rows]))]
    is_end = np.isin(order, ends)
    is_first = is_begin[order] | np.r_[True, (stream[order][1:] != stream[order][:-1]) | is_end[:-1]]
    first_rows = order[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
    return {int(end): int(first) for end, first in zip(order[is_end], first_rows[is_end], strict=True) if end != first}


def _first_holder(
    blocked: _Blocked, hits: Sequence[_Blocked], stream: Array, arrived: Array, answered: Array
) -> _Blocked:
    """Return the wait with the transaction that held the lock, if the last holder waited for it most of the time, too.

    A lock goes from one waiting transaction to the next; those hold it only for a moment.
    """
    holder = blocked
    for _ in hits:
        before = [
            hit
            for hit in hits
            if stream[hit.row] == stream[holder.end]
            and arrived[holder.begin] < arrived[hit.row] < arrived[holder.end]
            and 2 * (answered[hit.row] - arrived[blocked.row]) >= answered[blocked.row] - arrived[blocked.row]
            and stream[hit.end] != stream[blocked.row]
        ]
        if not before:
            break
        holder = before[-1]
    return blocked._replace(end=holder.end, begin=holder.begin)


def _is_same_session(server: Server, row: int, end: int, tables: Mapping[str, pa.Table]) -> bool:
    """Return whether one client sent both requests on two streams, and others were answered at once meanwhile.

    A web session's lock does so: it serializes the requests of one user.
    """
    stretches, streams = tables["stretches"], tables["streams"]
    stream, took_ms = (arrays.numbers(stretches, name) for name in ("stream", "latency_ms"))
    client = arrays.codes(streams, "client")[0]
    clients = client[spill.positions_of(arrays.numbers(streams, "stream"), stream[server.rows])]
    two_clients = client[spill.positions_of(arrays.numbers(streams, "stream"), stream[[row, end]])]
    (method, _), (target, _) = (arrays.codes(stretches, name) for name in ("method", "target"))
    arrived, answered = (arrays.filled(stretches, name, 0) for name in ("request_end", "response_start"))
    rows = server.rows[clients != two_clients[0]]
    alike = rows[(method[rows] == method[row]) & (target[rows] == target[row])]
    alike = alike[took_ms[alike] <= MAX_QUICK_SHARE * took_ms[row]]
    meanwhile = int(np.sum((arrived[alike] > arrived[row]) & (answered[alike] < answered[row])))
    return bool(two_clients[0] == two_clients[1]) and meanwhile >= MIN_QUICK


def _behind_other(
    server: Server, hits: Sequence[_Blocked], tables: Mapping[str, pa.Table], sentence: str = "behind_other"
) -> Finding:
    """Return the finding about these waits."""
    stretches = tables["stretches"]
    took_ms = arrays.numbers(stretches, "latency_ms")
    row, end, begin = max(hits, key=lambda hit: float(took_ms[hit.row]))
    worst, other = request(stretches, row), request(stretches, end)
    in_transaction = begin >= 0
    if in_transaction:
        sentence = "transaction_pool" if _is_passed_on_after(server, row, end, tables) else "transaction_lock"
    [client_end] = arrays.looked_up(
        tables["streams"], "stream", arrays.numbers(stretches, "stream")[[end]], ("client", "client_port")
    )
    frame = int(arrays.numbers(stretches, "request_first_frame")[begin if in_transaction else end])
    waits = sorted(float(took_ms[hit.row]) for hit in hits)
    answered = arrays.filled(stretches, "response_start", 0)
    values = {
        "server": server.name, "n": len(hits), "span_ms": (waits[0], waits[-1]),
        "name": called(worst["method"], worst["target"]), "frame": worst["request_first_frame"],
        "client": endpoint(*client_end), "other": called(other["method"], other["target"]), "other_frame": frame,
        "after_ms": max(int(answered[row]) - int(answered[end]), 0) / NS_PER_MS,
    }  # fmt: skip
    holders = [] if in_transaction else list({hit.end for hit in hits})
    return wait_finding(
        server, worst, waits[-1], sentence, values, owner="client" if in_transaction else "server",
        client=client_end[0], exchanges=len(hits), total_ms=sum(waits) + sum(took_ms[holders].tolist()),
        worst_frames=tuple(dict.fromkeys((frame, worst["request_first_frame"]))),
    )  # fmt: skip


def _is_passed_on_after(server: Server, row: int, end: int, tables: Mapping[str, pa.Table]) -> bool:
    """Return whether this server, a connection pool, sent the request on only when that transaction was over."""
    stretches, streams = tables["stretches"], tables["streams"]
    clients, names = arrays.codes(streams, "client")
    stream_row = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream"))
    (method, _), (target, _) = (arrays.codes(stretches, name) for name in ("method", "target"))
    is_same = (method == method[row]) & (target == target[row])
    is_same &= clients[stream_row] == arrays.code_of(names, server.address)
    arrived, answered = arrays.filled(stretches, "request_end", 0), arrays.filled(stretches, "response_start", 0)
    is_within = (arrived > arrived[row]) & (arrived < answered[row]) & (arrived >= arrived[end])
    return bool(np.any(is_same & is_within))


def find_stampede(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find bursts of one client's requests for one thing, with pauses between the bursts; None without them.

    This happens when a cache entry expires under load. A client that repeats requests all the time makes no pauses.
    """
    stretches = tables["stretches"]
    late_rows = slow_answers(server, stretches)
    if not MIN_BURST <= len(late_rows) <= LIMITS["pool_most"] or len(server.clients) > 1:
        return None
    (method, _), (target, targets) = (arrays.codes(stretches, name) for name in ("method", "target"))
    stream, took_ms = arrays.numbers(stretches, "stream"), arrays.numbers(stretches, "latency_ms")
    start, end = (arrays.filled(stretches, name, 0) for name in ("start", "end"))
    key = method.astype(np.int64) * (len(targets) + 1) + target
    stampedes: list[Array] = []
    for name in np.unique(key[late_rows]).tolist():
        rows = server.all_requests[key[server.all_requests] == name]
        rows = rows[np.argsort(start[rows], kind="stable")]
        ends = np.maximum.accumulate(end[rows])
        bursts = np.split(rows, np.flatnonzero(start[rows][1:] >= ends[:-1]) + 1)
        large = [burst for burst in bursts if len(burst) >= MIN_BURST]
        if 2 * sum(map(len, large)) < len(rows):
            continue
        for burst in large:
            shortest, longest = took_ms[burst].min(), took_ms[burst].max()
            is_burst = len(set(stream[burst].tolist())) == len(burst)
            is_burst &= int(np.ptp(start[burst])) / NS_PER_MS <= shortest
            is_burst &= MIN_SPREAD * np.ptp(end[burst]) >= np.ptp(start[burst])  # else they waited for one thing
            if is_burst and longest <= MAX_WORK_RATIO * shortest and shortest >= LIMITS["stuck_ms"] / 2:
                stampedes.append(burst)
        pauses = [(start[b[0]] - end[a].max()) / NS_PER_MS for a, b in pairwise(stampedes) if key[a[0]] == key[b[0]]]
        if any(pause < took_ms[stampedes[-1]].min() / 2 for pause in pauses):
            return None
    if not stampedes:
        return None
    rows = np.concatenate(stampedes)
    row = request(stretches, int(rows[took_ms[rows].argmax()]))
    largest = max(stampedes, key=len)
    frame = int(arrays.numbers(stretches, "request_first_frame")[int(largest[0])])
    shortest_ms, longest_ms = float(took_ms[rows].min()), float(took_ms[rows].max())
    values = {
        "server": server.name, "client": server.clients[0], "n": len(largest), "times": len(stampedes),
        "span_ms": (shortest_ms, longest_ms), "name": called(row["method"], row["target"]), "frame": frame,
    }  # fmt: skip
    return wait_finding(
        server, row, longest_ms, "stampede", values, owner="client", clients=1, client=server.clients[0],
        exchanges=len(rows), total_ms=float(took_ms[rows].sum()), worst_frames=(frame,),
    )  # fmt: skip
