"""Did requests wait for their turn at the server, for each other, or for a proxy that collects answers? Requests of one
server in, findings out.

Slow work takes as long however many others are there. In a queue, or where requests share a processor, the server's
time grows with the requests ahead of this one, by as much for each as answers leave apart. A pool of workers: requests
that come together are answered so far apart as one takes, as a line before that many counters. A proxy that buffers:
the server behind it answered in pieces, the proxy passed all of them on at the end.

How many round trips did the work take, and which of them would fewer spare? Requests and TLS handshakes in; findings
out: requests one after the other, a new TLS connection for each request, certificates beyond the initial window.

Nothing here is slow by itself: it is the path's round trip, so many times. What is parallel, or waits for its program,
is no such work.

Then what clients tried again after a while, because a server would not take it: connections that were refused until one
was accepted, requests that were answered "later" (429, 503; 4yz in mail and FTP) until one was not. Each refusal and
each of these answers takes no time. The pause until the next try is what a user waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from latpcap import arrays, spill, words
from latpcap.findings import traffic
from latpcap.findings.schema import Finding, Harmful
from latpcap.findings.silence import on_stream
from latpcap.findings.traffic import REDIRECTS, called
from latpcap.limits import LIMITS
from latpcap.tables import MS, SETUP
from latpcap.user_waits import slow_requests
from latpcap.user_waits.cause_totals import CauseTotal, Server, endpoint

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

MOST = 1 << 18
"""So many requests are looked at, the first of the capture: they tell, and memory is bounded."""


class Queue(TypedDict):
    """What a server's requests waited for: others ahead of them. Medians over the requests."""

    ahead: float
    each_us: float
    wait_ms: float
    think_ms: float
    alone_ms: float
    fewest: float
    requests: int
    exchange: int
    stream: int
    frame: int


def of(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Queue | None:
    """The queue before this server's program; None where there is none, or too few requests to tell.

    `ahead`: requests that had come and were not answered when one came; `each_us`: so far apart answers leave while
    it waits; `wait_ms`: what the ones ahead took of `think_ms`; `alone_ms`: what a request takes with `fewest` ahead.
    `exchange`, `stream`, `frame`: the one that had the most ahead.
    """
    import numpy as np

    exchanges = tables["exchanges"]
    complete = arrays.numbers(exchanges, "complete").astype(bool)
    rows = server.rows
    if len(rows) > MOST:  # the first ones: those behind them change nothing of who was ahead
        came, mine = arrays.numbers(exchanges, "request_end"), spill.marked(rows, exchanges.num_rows)
        spans = list(spill.parts(len(came)))
        last = spill.nth(spill.made(came.dtype, (came[span][mine[span]] for span in spans)), MOST)
        complete &= np.concatenate([came[span] <= last for span in spans])
    rows = spill.chosen(rows, complete & ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
    if len(rows) < LIMITS["queue_requests"]:
        return None
    came, left = (arrays.numbers(exchanges, c)[rows].astype(np.int64) for c in ("request_end", "response_start"))
    think = _think(items, rows)
    ahead, passed = _ahead(came, left)
    steps = _steps(ahead, think)
    if len(steps) < LIMITS["queue_steps"]:
        return None
    crowd, took = (np.array(part) for part in zip(*steps, strict=True))
    waits = passed > 0
    if not waits.any():
        return None
    each = float(np.median((left - came)[waits] / MS / passed[waits]))
    slope = float((took[-1] - took[0]) / (crowd[-1] - crowd[0]))
    rises = bool((took[1:] >= LIMITS["queue_least_rise"] * took[:-1]).all())
    if not rises or took[-1] < LIMITS["queue_grows"] * took[0]:
        return None
    if not LIMITS["queue_least_slope"] <= slope / each <= LIMITS["queue_most_slope"]:
        return None
    middle, alone = float(np.median(think)), float(took[0])
    latency = arrays.percentile(server.latency, 1 / 2)
    if middle - alone < LIMITS["queue_least_share"] * latency:
        return None
    most = int(np.argmax(ahead))
    [row] = exchanges.select(["exchange", "stream", "request_first_frame"]).slice(int(rows[most]), 1).to_pylist()
    return {
        "ahead": float(np.median(ahead)),
        "each_us": each * 1e3,
        "wait_ms": max(middle - alone, 0.0),
        "think_ms": middle,
        "alone_ms": alone,
        "fewest": float(crowd[0]),
        "requests": len(rows),
        "exchange": row["exchange"],
        "stream": row["stream"],
        "frame": row["request_first_frame"],
    }


def _think(items: Sequence[CauseTotal], rows: Array) -> Array:
    """How long the server's program worked on each of these, in ms."""
    import numpy as np

    think = np.zeros(len(rows))
    for item in items:
        if (item.cause, item.owner) == ("server_think", "server") and len(item.rows):
            hit = np.minimum(np.searchsorted(item.rows, rows), len(item.rows) - 1)
            think += np.where(item.rows[hit] == rows, item.ms[hit], 0.0)
    return think


def _ahead(came: Array, left: Array) -> tuple[Array, Array]:
    """How many had come and were not answered when each came, and how many answers left while it waited."""
    import numpy as np

    arrived, gone = np.sort(came), np.sort(left)
    ahead: Array = np.searchsorted(arrived, came, side="left") - np.searchsorted(gone, came, side="right")
    passed: Array = np.searchsorted(gone, left, side="right") - np.searchsorted(gone, came, side="right")
    return np.maximum(ahead, 0), passed


def _steps(ahead: Array, think: Array) -> list[tuple[float, float]]:
    """By how many were ahead (none, 1 to 2, 3 to 6 ...): how many, and the server's time, at the median."""
    import numpy as np

    power = np.floor(np.log2(ahead + 1)).astype(np.int64)
    found = []
    for step in np.unique(power):
        which = power == step
        if which.sum() >= LIMITS["queue_in_step"]:
            found.append((float(np.median(ahead[which])), float(np.median(think[which]))))
    return found


def finding(queue: Queue, server: Server) -> Finding:
    """The queue as a row of findings, inside the server's time."""
    return Finding(
        kind="queue", server=server.address, server_port=server.port, cause="server_think", owner="server",
        clients=len(server.clients), exchanges=queue["requests"], of_exchanges=len(server.rows),
        median_ms=queue["wait_ms"],
        worst_exchange=queue["exchange"], worst_stream=queue["stream"], worst_frames=(queue["frame"],),
        filter=f"tcp.stream eq {queue['stream']} and frame.number in {{{queue['frame']}}}",
        rival=words.say("rival_sharing"), rival_lost=words.say("rival_sharing_lost"), text=sentence(queue),
    )  # fmt: skip


def sentence(queue: Queue) -> str:
    """The queue in a sentence."""
    fewest = round(queue["fewest"])
    values = {name: queue[name] for name in ("each_us", "wait_ms", "think_ms", "alone_ms")}
    return words.say("queue" if fewest else "queue_empty", n=round(queue["ahead"]), fewest=fewest, **values)


TOGETHER, ENDS, STARTS, CHANCE = 3, 0.01, 5.0, 0.1
"""Requests that waited for one thing: at least so many, answered within this share of their wait, who came so many
times as far apart; and so few others as are answered in such a span are expected among them."""
MOSTLY = 0.9
"""Nearly all of a wait."""


class _Together(NamedTuple):
    """Requests that waited for one thing: their rows, the one that came first, how far apart their answers left, and
    how long the server answered nobody, in ns; 0 where others were answered meanwhile.
    """

    rows: Array
    first: int
    ends: int
    quiet: int


def together(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did requests come one by one, wait, and get their answers all at once? The longest such wait; None without one.

    Something that they all need was taken: the whole program, if nobody was answered meanwhile, else a lock, which the
    first of them may hold. Work of their own would end as far apart as it began.
    """
    import numpy as np

    exchanges = tables["exchanges"]
    late = spill.chosen(server.slow, ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
    if not TOGETHER <= len(late) <= LIMITS["pool_most"]:
        return None
    took = arrays.numbers(exchanges, "latency_ms")
    came, left = arrays.filled(exchanges, "request_end", 0), arrays.filled(exchanges, "response_start", 0)
    late = late[(left[late] > 0) & (_think(items, late) >= MOSTLY * took[late])]
    late = late[np.argsort(left[late], kind="stable")]
    if len(late) < TOGETHER:
        return None
    waited, step = left[late] - came[late], np.diff(left[late])
    near = step <= ENDS * np.minimum(waited[1:], waited[:-1])
    groups = np.split(late, np.flatnonzero(~near) + 1)
    all_left, stream = np.sort(left[server.rows]), arrays.numbers(exchanges, "stream")
    span = int(all_left[-1] - came[server.rows].min())
    found = []
    for rows in groups:
        ends, starts = int(np.ptp(left[rows])), int(np.ptp(came[rows]))
        if len(rows) < TOGETHER or len(set(stream[rows].tolist())) < TOGETHER or starts <= STARTS * ends:
            continue
        if (len(late) - 1) * 2 * ends > CHANCE * span:
            continue  # so many are slow that some end together by accident
        first, begun, end = int(rows[came[rows].argmin()]), int(came[rows].min()), int(left[rows].min())
        before = int(np.searchsorted(all_left, end, side="left"))
        quiet = end - max(begun, int(all_left[before - 1]) if before else begun)  # since the last answer to anybody
        found.append(_Together(rows, first, ends, quiet if quiet >= MOSTLY * (end - begun) else 0))
    if not found:
        return None
    worst = max(found, key=lambda one: float(took[one.first]))
    rows, first, ends, frozen = worst.rows, worst.first, worst.ends, bool(worst.quiet)
    found = [one for one in found if bool(one.quiet) == frozen]
    # who holds a lock works; in a program that stands still everybody waits
    total = sum(float(took[one.rows].sum()) - (0.0 if frozen else float(took[one.first])) for one in found)
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    [row] = exchanges.select(names).slice(first, 1).to_pylist()
    values = {
        "server": server.name, "n": len(rows) - (not frozen), "streams": len(set(stream[rows].tolist())),
        "span_ms": worst.quiet / MS if frozen else float(took[first]), "ends_ms": ends / MS,
        "name": called(row["method"], row["target"]), "frame": row["request_first_frame"], "times": len(found),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="frozen" if frozen else "behind_one",
        owner="server", clients=len(server.clients), exchanges=sum(len(one.rows) for one in found),
        of_exchanges=len(server.rows), total_ms=total, max_ms=float(took[first]),  worst_exchange=row["exchange"],
        worst_stream=row["stream"],
        worst_ms=float(took[first]), worst_frames=(row["request_first_frame"],), filter=on_stream(row["stream"]),
        harm="late", sentence="frozen" if frozen else "behind_one", values=values,
    )  # fmt: skip


ENDS_WORK = ("COMMIT", "ROLLBACK", "END")
BEHIND_MS, PROMPT = 1.0, 2.0
"""Who waited for another's end is answered within this behind it, or within so many usual latencies."""


def behind(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did requests wait until another connection's work was done? None where it does not show.

    A transaction that began before and whose end freed them: its locks, or its connection behind a pool.
    Else another request that was there before, where that happened more than once.
    """
    import numpy as np

    exchanges = tables["exchanges"]
    took = arrays.numbers(exchanges, "latency_ms")
    late = spill.chosen(server.slow, ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
    if not 0 < len(late) <= LIMITS["pool_most"] or len(server.rows) > MOST:
        return None
    late = late[(_think(items, late) >= MOSTLY * took[late]) & (took[late] >= LIMITS["setup_ms"])]
    came, left = arrays.filled(exchanges, "request_end", 0), arrays.filled(exchanges, "response_start", 0)
    stream, rows = arrays.numbers(exchanges, "stream"), server.rows[left[server.rows] > 0]
    if not len(late) or not len(rows):
        return None
    span = int(left[rows].max() - came[rows].min())
    near = max(BEHIND_MS, PROMPT * arrays.percentile(server.latency, 1 / 2)) * MS
    method, methods = arrays.codes(exchanges, "method")
    ends = rows[np.isin(method[rows], [methods.index(word) for word in ENDS_WORK if word in methods])]
    begins = rows[method[rows] == methods.index("BEGIN")] if "BEGIN" in methods else rows[:0]
    hits = []
    for row in late.tolist():
        for end in ends[(left[ends] - left[row] <= BEHIND_MS * MS) & (left[row] - left[ends] <= near)].tolist():
            opened = begins[(stream[begins] == stream[end]) & (came[begins] < came[end])]
            if stream[end] != stream[row] and len(opened) and came[opened].max() < came[row] < came[end]:
                hits.append((row, end, int(opened[came[opened].argmax()])))
                break
    transaction = bool(hits)
    if transaction and len(ends) * near > CHANCE * span:
        return None  # so many end that one ends then by accident
    if not hits:
        for row in late.tolist():
            ahead = late[(came[late] < came[row]) & (stream[late] != stream[row])]
            ahead = ahead[(left[ahead] <= left[row]) & (left[row] - left[ahead] <= near)]
            if len(ahead):
                hits.append((row, int(ahead[left[ahead].argmax()]), -1))
        if len(hits) < AGAIN or len(hits) * len(late) * near > CHANCE * span:
            return None
    return _behind(server, hits, transaction, tables)


AGAIN = 2
"""What ends just behind another once may do so by accident."""


def _behind(
    server: Server, hits: Sequence[tuple[int, int, int]], transaction: bool, tables: Mapping[str, pa.Table]
) -> Finding:
    exchanges, streams = tables["exchanges"], tables["streams"]
    took = arrays.numbers(exchanges, "latency_ms")
    row, end, begin = max(hits, key=lambda hit: float(took[hit[0]]))
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    one, other = (exchanges.select(names).slice(at, 1).to_pylist()[0] for at in (row, end))
    [ends] = arrays.looked_up(streams, "stream", arrays.numbers(exchanges, "stream")[[end]], ("client", "client_port"))
    word = "behind_other"
    if transaction:
        word = "transaction_pool" if _passed_on(server, row, end, tables) else "transaction_lock"
    first = begin if transaction else end
    frame = int(arrays.numbers(exchanges, "request_first_frame")[first])
    waits = sorted(float(took[hit[0]]) for hit in hits)
    left = arrays.filled(exchanges, "response_start", 0)
    values = {
        "server": server.name, "n": len(hits), "span_ms": (waits[0], waits[-1]),
        "name": called(one["method"], one["target"]), "frame": one["request_first_frame"],
        "client": endpoint(*ends), "other": called(other["method"], other["target"]), "other_frame": frame,
        "after_ms": max(int(left[row]) - int(left[end]), 0) / MS,
    }  # fmt: skip
    held = {hit[1] for hit in hits} if not transaction else set()
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause=word,
        owner="client" if transaction else "server", client=ends[0], exchanges=len(hits),
        of_exchanges=len(server.rows), total_ms=sum(waits) + sum(float(took[at]) for at in held), max_ms=waits[-1],
         worst_exchange=one["exchange"],
        worst_stream=one["stream"], worst_ms=waits[-1],
        worst_frames=tuple(dict.fromkeys((frame, one["request_first_frame"]))),
        filter=on_stream(one["stream"]), harm="late", sentence=word, values=values,
    )  # fmt: skip


def _passed_on(server: Server, row: int, end: int, tables: Mapping[str, pa.Table]) -> bool:
    """Did this server send the request on to another one, and only when that transaction was over?"""
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    clients, names = arrays.codes(streams, "client")
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    (method, _), (target, _) = (arrays.codes(exchanges, name) for name in ("method", "target"))
    same = (method == method[row]) & (target == target[row]) & (clients[place] == arrays.code_of(names, server.address))
    came, left = arrays.filled(exchanges, "request_end", 0), arrays.filled(exchanges, "response_start", 0)
    within = (came > came[row]) & (came < left[row]) & (came >= came[end])
    return bool(np.any(same & within))


BURST, ALIKE_WORK = 4, 2.0
"""So many requests for one thing at once, none of which takes so many times as long as another, do the same work."""


def stampede(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did one client request the same thing many times at once, and nobody between? None where it does not show.

    So it is when an entry of a cache expires under load. Clients that request again at once make no such pauses.
    """
    import numpy as np

    exchanges = tables["exchanges"]
    late = spill.chosen(server.slow, ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
    if not BURST <= len(late) <= LIMITS["pool_most"] or len(server.clients) > 1:
        return None
    (method, _), (target, targets) = (arrays.codes(exchanges, name) for name in ("method", "target"))
    stream, took = arrays.numbers(exchanges, "stream"), arrays.numbers(exchanges, "latency_ms")
    start, end = (arrays.filled(exchanges, name, 0) for name in ("start", "end"))
    key = method.astype(np.int64) * (len(targets) + 1) + target
    found = []
    for name in np.unique(key[late]).tolist():
        rows = server.asked[key[server.asked] == name]
        rows = rows[np.argsort(start[rows], kind="stable")]
        ends = np.maximum.accumulate(end[rows])
        bursts = np.split(rows, np.flatnonzero(start[rows][1:] >= ends[:-1]) + 1)
        many = [burst for burst in bursts if len(burst) >= BURST]
        if 2 * sum(map(len, many)) < len(rows):
            continue
        for burst in many:
            lasted = took[burst]
            begun = int(np.ptp(start[burst])) / MS
            apart = len(set(stream[burst].tolist())) == len(burst) and begun <= lasted.min()
            apart &= STARTS * np.ptp(end[burst]) >= np.ptp(start[burst])  # else they waited for one thing
            if apart and lasted.max() <= ALIKE_WORK * lasted.min() and lasted.min() >= LIMITS["stuck_ms"] / 2:
                found.append(burst)
        gaps = [(start[b[0]] - end[a].max()) / MS for a, b in pairwise(found) if key[a[0]] == key[b[0]]]
        if any(gap < took[found[-1]].min() / 2 for gap in gaps):
            return None  # they go on all the time
    if not found:
        return None
    rows = np.concatenate(found)
    worst = int(rows[took[rows].argmax()])
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    [row] = exchanges.select(names).slice(worst, 1).to_pylist()
    first = int(max(found, key=len)[0])
    frame = int(arrays.numbers(exchanges, "request_first_frame")[first])
    values = {
        "server": server.name, "client": server.clients[0], "n": max(map(len, found)), "times": len(found),
        "span_ms": (float(took[rows].min()), float(took[rows].max())), "name": called(row["method"], row["target"]),
        "frame": frame,
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="stampede", owner="client",
        clients=1, client=server.clients[0], exchanges=len(rows),
        of_exchanges=len(server.rows),
        total_ms=float(took[rows].sum()), max_ms=float(took[worst]), worst_exchange=row["exchange"],
        worst_stream=row["stream"],
        worst_ms=float(took[worst]), worst_frames=(frame,), filter=on_stream(row["stream"]), harm="late",
        sentence="stampede", values=values,
    )  # fmt: skip


LOCAL = ("127.", "::1")
"""Addresses of the host itself: a proxy asks servers there by them."""


def pool(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """So many workers, and a line before them; None where the times do not fit one.

    The answers are compared with those of a line: in the order in which requests came, each takes as long as the
    quickest, and as many are at work as answers leave in that time.
    """
    import numpy as np

    exchanges = tables["exchanges"]
    rows = server.rows
    if not LIMITS["pool_least"] <= len(rows) < LIMITS["queue_requests"]:
        return None  # `queue` answers for more requests
    came, left = (arrays.filled(exchanges, c, 0)[rows] for c in ("request_end", "response_start"))
    known = left > 0
    order = np.argsort(came[known], kind="stable")
    came, left, rows = came[known][order], left[known][order], rows[known][order]
    if len(rows) < LIMITS["pool_least"]:
        return None
    took = (left - came) / MS
    each = float(took.min())
    if each < LIMITS["pool_least_ms"] or took.max() < LIMITS["pool_grows"] * each:
        return None
    span = float(left.max() - left.min()) / MS
    workers = max(1, round((len(rows) - 1) * each / span)) if span else len(rows)
    if workers * LIMITS["pool_grows"] > len(rows):
        return None
    off = np.abs(_line(came, each, workers) - left) / MS
    near = off <= LIMITS["pool_near_share"] * np.maximum(each, took)
    worst = int(took.argmax())
    if float(np.mean(near)) < LIMITS["pool_fits_share"] or not near[worst]:
        return None
    stream, line = arrays.numbers(exchanges, "stream")[rows], _line(came, each, workers)
    waited = line - came > LIMITS["pool_grows"] / 2 * each * MS  # others were ahead, and it waited for one of them
    if waited.sum() < TOGETHER or len(set(stream[waited].tolist())) < TOGETHER:
        return None  # a protocol that answers in turn, or a client that asks so
    [row] = exchanges.select(["exchange", "stream", "request_first_frame"]).slice(int(rows[worst]), 1).to_pylist()
    word = "pool_of_one" if workers == 1 else "pool_of_some"
    values = {"server": server.name, "workers": workers, "n": len(rows), "each_ms": each, "most_ms": float(took.max())}
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="pool",
        owner="server",
        clients=len(server.clients), exchanges=len(rows), of_exchanges=len(server.rows),
        total_ms=float((took - each).sum()), max_ms=float(took.max()), worst_exchange=row["exchange"],
        worst_stream=row["stream"],
        worst_ms=float(took.max()), worst_frames=(row["request_first_frame"],),
        filter=on_stream(row["stream"]), harm="late", sentence=word, values=values,
    )  # fmt: skip


def _line(came: Array, each_ms: float, workers: int) -> Array:
    """When each request would be answered, if so many workers took them in their order, and each took so long."""
    import numpy as np

    free, each = [0] * workers, round(each_ms * MS)
    done = np.zeros(len(came), np.int64)
    for place, at in enumerate(came.tolist()):
        worker = free.index(min(free))
        free[worker] = max(at, free[worker]) + each
        done[place] = free[worker]
    return done


LUMPS = 2.0
"""Events with a pause so many times longer than any between them when they came were held until there were several."""


def buffered(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did this server hold back what another had answered in pieces? None where no such answer lies inside one of its.

    The other server has to be asked by this one's host: from its address, or on the host itself.
    """
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    events = slow_requests.streams(exchanges)
    late = np.union1d(server.slow, server.rows[events[server.rows]]).tolist()
    if not late or len(late) > LIMITS["pool_most"]:
        return None
    start, end = (arrays.numbers(exchanges, c) for c in ("start", "end"))
    begun = arrays.filled(exchanges, "response_start", 0)
    code, protocols = arrays.codes(exchanges, "protocol")
    wanted = code != arrays.code_of(protocols, SETUP)
    least = LIMITS["stuck_ms"] * MS
    inner = np.flatnonzero(wanted & (begun > 0) & (end - begun >= least))
    client, clients = arrays.codes(streams, "client")
    here = [code for code, name in enumerate(clients) if name == server.address or name.startswith(LOCAL)]
    stream = arrays.numbers(exchanges, "stream")
    asked = client[spill.places(arrays.numbers(streams, "stream"), stream[inner])]
    inner = inner[np.isin(asked, here) & ~np.isin(inner, server.rows)]
    gap = arrays.filled(exchanges, "longest_gap_ms", 0)
    hits = []
    for row in late if len(inner) else ():
        inside = (start[row] <= start[inner]) & (end[inner] <= end[row])
        whole = begun[row] >= end[inner] - least
        some = events[row] & (gap[inner] > 0) & (gap[row] >= LUMPS * gap[inner])
        kept = inside & (begun[row] - begun[inner] >= least) & (whole | some)
        if kept.any():
            hits.append((row, int(inner[int(np.argmax(kept))])))
    if not hits or len(hits) * 2 < len(late):
        return None
    row, place = max(hits, key=lambda hit: int(begun[hit[0]] - begun[hit[1]]))
    [(address, port)] = arrays.looked_up(streams, "stream", stream[[place]], ("server", "server_port"))
    behind = endpoint(address, port)
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    [one] = exchanges.select(names).slice(row, 1).to_pylist()
    held = int(begun[row] - begun[place]) / MS
    values = {
        "server": server.name, "behind": behind, "n": len(hits), "name": called(one["method"], one["target"]),
        "frame": one["request_first_frame"], "held_ms": held, "first_ms": int(begun[place] - start[row]) / MS,
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="buffered", owner="server",
        clients=len(server.clients), exchanges=len(hits), of_exchanges=len(server.rows),
        total_ms=sum(int(begun[front] - begun[back]) for front, back in hits) / MS, max_ms=held,
        worst_exchange=one["exchange"], worst_stream=one["stream"], worst_ms=held,
        worst_frames=(one["request_first_frame"],), filter=on_stream(one["stream"]), harm="late",
        sentence="buffered_events" if events[place] else "buffered", values=values,
    )  # fmt: skip


LEAST_TRIP_MS = 5.0
"""On a shorter path no number of round trips is felt before some hundreds."""
LEAST_MS = 200.0
"""So long all of them together are worth a line: a person sees it (Nielsen, 0.1 to 1 s)."""
MOST_PATH = 0.75
"""Of a request that only waits for the path at least this share is the path's."""
AT_ONCE = 0.25
"""The next one follows within this share of the round trip: the program waited for nothing else."""
SOON = 3.0
"""So many round trips at most one of a run pauses, whose pauses altogether are few."""
RUN = 16
"""So many requests one after the other are a loop over rows, not a page's few steps."""
CONNECTS = 3
"""So many connections with one request each are a habit."""
REDIRECTED, FOLLOWED_MS = 2, 50.0
"""So many redirects in a row are more than one to HTTPS; programs follow them at once."""
WINDOW = 0.5
"""A server's flight that waits for an ACK waits for a round trip: at least this share of one."""
ALIKE = 0.75
"""So many of a run are one request with other values: a loop over rows."""
IN_TURN = 5
"""So many connections one after the other for one request each are no accident."""
SPREAD = 0.1
"""A timer's waits are within this of each other."""


def trips(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Work that took more round trips than it has to, by server."""
    import numpy as np

    streams, rows = tables["streams"], tables["exchanges"]
    if not rows.num_rows:
        return []
    protocol, words = arrays.codes(rows, "protocol")
    method, methods = arrays.codes(rows, "method")
    wanted = protocol != arrays.code_of(words, SETUP)
    wanted &= arrays.numbers(rows, "complete").astype(bool)
    hello = wanted & (method == arrays.code_of(methods, "handshake"))
    hello &= protocol == arrays.code_of(words, "tls")
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(rows, "stream"))
    took, path = (np.nan_to_num(arrays.numbers(rows, f"{name}_ms").astype(float)) for name in ("latency", "network"))
    of = _Of(streams, place)
    found_ = _certificates(of, rows, hello, took, path)
    found_ += _each(of, rows, hello, wanted & ~hello, took)
    found_ += _redirects(of, rows, wanted & ~hello, took)
    found_ += _connects_in_turn(of, rows, wanted, hello, took)
    return found_ + _in_turn(of, rows, wanted & ~hello, took, path)


class _Of:
    """Whose request is which row?"""

    def __init__(self, streams: pa.Table, place: Array):
        self.place = place
        self.number = arrays.numbers(streams, "stream")
        self.server, self.servers = arrays.codes(streams, "server")
        self.port = arrays.numbers(streams, "server_port")
        self.client, self.clients = arrays.codes(streams, "client")
        self.start = arrays.numbers(streams, "start")
        self.rtt = arrays.numbers(streams, "initial_rtt_ms").astype(float)

    def groups(self, places: Array) -> dict[tuple[str, int], Array]:
        """Positions in `places` (of streams) by server."""
        import numpy as np

        key = self.server[places].astype(np.int64) << 16 | self.port[places].astype(np.int64)
        order = np.argsort(key, kind="stable")
        edges = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if len(key) else order
        parts = np.split(order, edges[1:]) if len(key) else []
        return {(self.servers[int(self.server[places[p[0]]])], int(self.port[places[p[0]]])): p for p in parts}


def _certificates(of: _Of, rows: pa.Table, hello: Array, took: Array, path: Array) -> list[Finding]:
    """TLS handshakes in which the server's certificates waited for its congestion window."""
    import numpy as np

    if not hello.any():
        return []
    waited = np.nan_to_num(arrays.numbers(rows, "cwnd_ms").astype(float))
    at = np.flatnonzero(hello & (waited > 0))
    made_ = []
    for server, mine in of.groups(of.place[at]).items():
        here = at[mine]
        rtt = np.nan_to_num(of.rtt[of.place[here]])
        here = here[(waited[here] >= WINDOW * rtt) & (rtt >= LEAST_TRIP_MS)]
        if len(here):
            many = int((hello & np.isin(of.place, _streams(of, server))).sum())
            made_.append(_row("tls_certificates", "server", "late", server, of, rows, here, waited[here], many, took))
    return made_


def _streams(of: _Of, server: tuple[str, int]) -> Array:
    import numpy as np

    found_: Array = np.flatnonzero((of.server == of.servers.index(server[0])) & (of.port == server[1]))
    return found_


def _each(of: _Of, rows: pa.Table, hello: Array, wanted: Array, took: Array) -> list[Finding]:
    """Servers of which each request, or nearly, got a TLS connection of its own."""
    import numpy as np

    if not hello.any():
        return []
    requests = np.bincount(of.place[wanted], minlength=len(of.number))
    at = np.flatnonzero(hello)
    made_ = []
    for server, mine in of.groups(of.place[at]).items():
        here = at[mine]
        rtt = np.nan_to_num(of.rtt[of.place[here]])
        each = requests[of.place[here]]
        alone = here[(each == 1) & (rtt >= LEAST_TRIP_MS)]
        if len(alone) < CONNECTS or 2 * len(alone) < len(here):
            continue
        spent = took[alone] + np.nan_to_num(of.rtt[of.place[alone]])
        if spent.sum() >= LEAST_MS:
            made_.append(_row("tls_each", "client", "path", server, of, rows, alone, spent, len(here), took))
    return made_


def _in_turn(of: _Of, rows: pa.Table, wanted: Array, took: Array, path: Array) -> list[Finding]:
    """Requests one after the other on a connection, each of which waited for the path and hardly for anything else."""
    import numpy as np

    at = np.flatnonzero(wanted)
    if len(at) < RUN:
        return []
    at = at[np.lexsort((arrays.numbers(rows, "start")[at], of.place[at]))]
    start, end = arrays.numbers(rows, "start")[at], arrays.numbers(rows, "end")[at]
    felt, gap = path[at] >= LEAST_TRIP_MS, (start[1:] - end[:-1]) / 1e6
    follows = felt[1:] & felt[:-1] & (of.place[at][1:] == of.place[at][:-1])
    follows &= (gap >= 0) & (gap <= SOON * path[at][1:])
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    summed = [np.r_[0.0, np.cumsum(ms[at])] for ms in (path, took)]
    mine, all_ = (ms[ends + 1] - ms[begins] for ms in summed)
    # one that takes long makes no other loop of it
    passed = (end[ends] - start[begins]) / 1e6 - all_  # between them
    long = (ends - begins + 1 >= RUN) & (mine >= MOST_PATH * all_) & (passed <= AT_ONCE * mine)
    runs = list(zip(begins[long].tolist(), ends[long].tolist(), strict=True))
    made_ = []
    places = of.place[at[np.array([begin for begin, _ in runs], np.int64)]]
    for server, mine in of.groups(places).items():
        here = np.concatenate([at[runs[run][0] : runs[run][1] + 1] for run in mine.tolist()])
        longest = max((runs[run] for run in mine.tolist()), key=lambda run: run[1] - run[0])
        span = (end[longest[1]] - start[longest[0]]) / 1e6
        if took[here].sum() >= LEAST_MS:
            extra: dict[str, float | str] = {
                "run": longest[1] - longest[0] + 1, "whole_ms": span, "trip_ms": float(np.median(path[here])),
                "alike": _alike(rows, at[longest[0] : longest[1] + 1]),
            }  # fmt: skip
            many = int((wanted & np.isin(of.place, _streams(of, server))).sum())
            row = _row("in_turn", "client", "path", server, of, rows, here, took[here], many, took, extra)
            made_.append(row)
    return made_


def _alike(rows: pa.Table, here: Array) -> str:
    """What most of these requests are, in words; "" where they are of many kinds."""
    import numpy as np

    (method, methods), (target, targets) = (arrays.codes(rows, name) for name in ("method", "target"))
    kinds, often = np.unique(np.stack([method[here], target[here]]), axis=1, return_counts=True)
    most = int(often.argmax())
    if often[most] < ALIKE * len(here):
        return ""
    verb, name = (words_[int(code)] if code >= 0 else None for code, words_ in zip(
        kinds[:, most], (methods, targets), strict=True))  # fmt: skip
    return words.say("in_turn_alike", n=int(often[most]), name=traffic.called(verb, name))


def _connects_in_turn(of: _Of, rows: pa.Table, wanted: Array, hello: Array, took: Array) -> list[Finding]:
    """A client that fetches one thing after the other, each over a connection of its own, on a long path."""
    import numpy as np

    if not wanted.any():
        return []
    last, first = np.zeros(len(of.number), np.int64), np.full(len(of.number), -1, np.int64)
    at = np.flatnonzero(wanted)
    np.maximum.at(last, of.place[at], arrays.numbers(rows, "end")[at])
    first[of.place[at][::-1]] = at[::-1]
    once = (np.bincount(of.place[at], minlength=len(last)) == 1) & (of.rtt >= LEAST_TRIP_MS)
    once &= np.bincount(of.place[hello], minlength=len(last)) == 0  # `_each` has those
    which = np.flatnonzero(once)
    key = (of.client[which].astype(np.int64) << 40) | (of.server[which].astype(np.int64) << 16) | of.port[which]
    which = which[np.lexsort((of.start[which], key))]
    key = np.sort(key)
    # the next SYN comes a round trip after the answer left at the server, at once at the client
    gap = (of.start[which[1:]] - last[which[:-1]]) / 1e6
    follows = (key[1:] == key[:-1]) & (gap >= -AT_ONCE) & (gap <= (1 + AT_ONCE) * of.rtt[which[1:]])
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    runs = [(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True) if b - a + 1 >= IN_TURN]
    made_ = []
    for begin, end in runs:
        streams = which[begin : end + 1]
        here = first[streams]
        trip = float(np.median(of.rtt[streams]))
        whole = float(last[streams[-1]] - of.start[streams[0]]) / 1e6
        if whole < LEAST_MS or 2 * len(streams) * trip < MOST_PATH * whole:
            continue
        server = of.servers[int(of.server[streams[0]])], int(of.port[streams[0]])
        own = float(took[here].sum())
        spent = np.r_[np.diff(of.start[streams]), last[streams[-1]] - of.start[streams[-1]]] / 1e6
        extra: dict[str, float | str] = {
            "whole_ms": whole, "trip_ms": trip, "client": of.clients[int(of.client[streams[0]])],
            "own_ms": own / len(streams),
        }  # fmt: skip
        many = int((wanted & np.isin(of.place, _streams(of, server))).sum())
        made_.append(_row("connects_in_turn", "client", "path", server, of, rows, here, spent, many, took, extra))
    return made_


def expects(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Uploads whose client paused in each as long as one does that expects a 100 Continue; None where there are none.

    They pause as long as each other; a program that has its data late pauses as it comes.
    """
    import numpy as np

    rows = tables["exchanges"]
    uploads = arrays.equals(rows, "method", "POST", "PUT", "PATCH") & arrays.equals(rows, "protocol", "http")
    every = server.rows[uploads[server.rows]]
    thought = next((item for item in items if item.cause == "client_think"), None)
    if thought is None or len(every) < CONNECTS:
        return None
    mine = uploads[thought.rows]
    here, waited = thought.rows[mine], thought.ms[mine]
    timed = (waited > LIMITS["continue_least_ms"]) & (waited < LIMITS["continue_most_ms"])
    here, waited = here[timed], waited[timed]
    if len(here) < CONNECTS or 2 * len(here) < len(every) or np.ptp(waited) > SPREAD * waited.min():
        return None
    began, whole = (arrays.filled(rows, name, 0)[here] for name in ("response_start", "request_end"))
    if (began < whole).any():
        return None  # a 100 Continue came before the body
    streams = tables["streams"]
    of = _Of(streams, spill.places(arrays.numbers(streams, "stream"), arrays.numbers(rows, "stream")))
    ends = server.address, server.port
    return _row("expect_continue", "client", "late", ends, of, rows, here, waited, len(every), waited)


def _redirects(of: _Of, rows: pa.Table, wanted: Array, took: Array) -> list[Finding]:
    """Redirects that a client follows at once, several in a row, each with its request and maybe its connection."""
    import numpy as np

    away = wanted & np.isin(arrays.numbers(rows, "status").astype(float), REDIRECTS)
    if away.sum() < REDIRECTED:
        return []
    at = np.flatnonzero(wanted)
    start, end = arrays.numbers(rows, "start"), arrays.numbers(rows, "end")
    opens = arrays.numbers(rows, "index") == 0
    begin = np.where(opens, np.minimum(of.start[of.place], start), start)
    at = at[np.lexsort((begin[at], of.client[of.place[at]]))]
    # each to the one that its client begins next, on any connection
    pause = (begin[at[1:]] - end[at[:-1]]) / 1e6
    follows = away[at[:-1]] & (of.client[of.place[at[1:]]] == of.client[of.place[at[:-1]]])
    follows &= (pause >= 0) & (pause <= FOLLOWED_MS) & (np.nan_to_num(of.rtt[of.place[at[:-1]]]) >= LEAST_TRIP_MS)
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    runs = [(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True) if b - a >= REDIRECTED]
    made_ = []
    firsts = of.place[at[np.array([a for a, _ in runs], np.int64)]]
    for server, mine in of.groups(firsts).items():
        chains = [runs[run] for run in mine.tolist()]
        here = np.concatenate([at[a:b] for a, b in chains])
        spent = np.concatenate([begin[at[a + 1 : b + 1]] - begin[at[a:b]] for a, b in chains]) / 1e6
        a, b = max(chains, key=lambda chain: begin[at[chain[1]]] - begin[at[chain[0]]])
        if spent.sum() < LEAST_MS:
            continue
        [named] = rows.select(["method", "target"]).slice(int(at[a]), 1).to_pylist()
        extra = {
            "run": b - a, "whole_ms": float(begin[at[b]] - begin[at[a]]) / 1e6, "connects": int(opens[at[a:b]].sum()),
            "name": traffic.called(named["method"], named["target"]),
        }  # fmt: skip
        made_.append(_row("redirects", "server", "path", server, of, rows, here, spent, len(here), took, extra))
    return made_


def _row(
    sentence: str, owner: str, harm: Harmful, server: tuple[str, int], of: _Of, rows: pa.Table, here: Array,
    waited: Array, many: int, took: Array, extra: Mapping[str, float | str] | None = None,
) -> Finding:  # fmt: skip
    worst = int(waited.argmax())
    row, ordered = int(here[worst]), sorted(waited.tolist())
    frame = int(arrays.numbers(rows, "request_first_frame")[row])
    spare = float(waited.sum()) * (1 - 1 / len(here) if harm == "path" else 1)  # one of them has to be
    values = {
        "n": len(here), "of": many, "server": endpoint(*server), "span_ms": (ordered[0], ordered[-1]),
        "sum_ms": float(waited.sum()), "trip_ms": float(of.rtt[of.place[row]]), **(extra or {}),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server[0], server_port=server[1], cause=sentence, owner=owner, exchanges=len(here),
        of_exchanges=many, total_ms=spare, median_ms=ordered[len(ordered) // 2], max_ms=ordered[-1],
        harm=harm,
        worst_stream=int(of.number[of.place[row]]), worst_exchange=int(arrays.numbers(rows, "exchange")[row]),
        worst_ms=ordered[-1], worst_frames=(frame,), sentence=sentence, values=values,
    )  # fmt: skip


SYN_ACK = 2
"""Bit of Wireshark's completeness."""
LATER = (429, 503)
"""Too many requests, service unavailable: "come back later" (RFC 6585 4, RFC 9110 15.6.4)."""
TRANSIENT = range(400, 500)
"""Of mail and FTP: not now (RFC 5321 4.2.1, RFC 959 4.2.1); a server that delays unknown senders answers so, too."""
RHYTHM = 0.25
"""What goes on at the same pace, within this share of it, after it was accepted is a check that repeats anyway."""


class Try(NamedTuple):
    """One try: a connection or a request. `row` is its position in its table."""

    start: int
    end: int
    row: int
    refused: bool


class Run(NamedTuple):
    """Tries that failed one after the other, and the one that did not."""

    failed: list[Try]
    success: Try

    @property
    def waited_ms(self) -> float:
        """From the first try to the one that was accepted."""
        return (self.success.start - self.failed[0].start) / 1e6


def runs(tries: list[Try]) -> list[Run]:
    """The runs of one client's tries of one thing, less those of a check that repeats at the same pace anyway."""
    tries.sort()
    found: list[Run] = []
    failed: list[Try] = []
    for at, one in enumerate(tries):
        if one.refused:
            failed.append(one)
        elif failed:
            pause = one.start - failed[-1].start
            then = tries[at + 1].start - one.start if at + 1 < len(tries) else None
            same_pace = then is not None and abs(then - pause) <= RHYTHM * pause
            if not same_pace and one.start - failed[0].start >= LIMITS["setup_ms"] * 1e6:
                found.append(Run(failed, one))
            failed = []
    return found


def tried_again(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Connections and requests that were tried again until they were accepted, by server."""
    return [*_refused(tables["streams"]), *_later(tables["streams"], tables["exchanges"])]


def _refused(streams: pa.Table) -> Iterable[Finding]:
    """Connections that a RST answered, until the same client's next one was accepted."""
    import numpy as np

    accepted = arrays.numbers(streams, "completeness") & SYN_ACK != 0
    closed, words = arrays.codes(streams, "closed_by")
    refused = ~accepted & (closed == arrays.code_of(words, "server_rst"))
    if not refused.any() or not accepted.any():
        return
    (client, _), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port, start = arrays.numbers(streams, "server_port"), arrays.numbers(streams, "start")
    end = arrays.numbers(streams, "end")
    pairs = server.astype(np.int64) << 32 | client.astype(np.int64)
    mine = np.flatnonzero(np.isin(pairs, pairs[refused]) & (refused | accepted))
    tries: dict[tuple[int, int, int], list[Try]] = defaultdict(list)
    for at in mine.tolist():
        key = int(server[at]), int(port[at]), int(client[at])
        tries[key].append(Try(int(start[at]), int(end[at]), at, bool(refused[at])))
    by_server: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for (host, number, _), some in tries.items():
        by_server[host, number] += runs(some)
    for (host, number), these in by_server.items():
        if these:
            of = int(((server == host) & (port == number)).sum())
            clients = len(np.unique(client[[run.success.row for run in these]]))
            frames = [int(f) for f in arrays.numbers(streams, "first_frame")[_ends(these)]]
            stream = int(arrays.numbers(streams, "stream")[_longest(these).failed[0].row])
            ends = servers[host], number
            yield _retry("refused_until", ends, these, {"of": of}, clients, frames, stream, streams=of)


def _later(streams: pa.Table, exchanges: pa.Table) -> Iterable[Finding]:
    """Requests answered 429 or 503, or 4yz in mail and FTP, until the same client's next one for the same was not."""
    import numpy as np

    if not exchanges.num_rows:
        return
    status = np.nan_to_num(arrays.numbers(exchanges, "status").astype(float))
    protocol, words = arrays.codes(exchanges, "protocol")
    requests = protocol != arrays.code_of(words, SETUP)
    transient = arrays.equals(exchanges, "protocol", "smtp", "ftp")
    later = np.where(transient, np.isin(status, TRANSIENT), np.isin(status, LATER)) & requests
    if not later.any():
        return
    (method, _), (target, _) = arrays.codes(exchanges, "method"), arrays.codes(exchanges, "target")
    rows = np.flatnonzero(np.isin(target, target[later]) & (status > 0))
    every = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    place = every[rows]
    (client, _), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port")
    start, end = arrays.numbers(exchanges, "start"), arrays.numbers(exchanges, "end")
    tries: dict[tuple[int, ...], list[Try]] = defaultdict(list)
    for at, where in zip(rows.tolist(), place.tolist(), strict=True):
        key = int(server[where]), int(port[where]), int(client[where]), int(method[at]), int(target[at])
        tries[key].append(Try(int(start[at]), int(end[at]), at, bool(later[at])))
    by_server: dict[tuple[int, int], list[tuple[int, Run]]] = defaultdict(list)
    for (host, number, who, *_), some in tries.items():
        by_server[host, number] += [(who, run) for run in runs(some)]
    for (host, number), pairs in by_server.items():
        if not pairs:
            continue
        these = [run for _, run in pairs]
        first = _longest(these).failed[0].row
        [named] = exchanges.select(["method", "target", "stream"]).slice(first, 1).to_pylist()
        here = (server == host) & (port == number)
        of = int(here[every[requests]].sum())
        values: dict[str, int | str] = {
            "status": int(status[first]),
            "name": traffic.called(named["method"], named["target"]),
            "of": of,
        }
        frames = [int(f) for f in arrays.numbers(exchanges, "request_first_frame")[_ends(these)]]
        clients = len({who for who, _ in pairs})
        ends = servers[host], number
        yield _retry("later_until", ends, these, values, clients, frames, named["stream"], exchanges=of)


def _longest(these: list[Run]) -> Run:
    return max(these, key=lambda run: run.waited_ms)


def _ends(these: list[Run]) -> list[int]:
    """Rows of the first try of the longest wait, and of the one that was accepted."""
    run = _longest(these)
    return [run.failed[0].row, run.success.row]


def _retry(
    sentence: str, server: tuple[str, int], these: list[Run], extra: Mapping[str, int | str], clients: int,
    frames: list[int], stream: int, streams: int = 0, exchanges: int = 0,
) -> Finding:  # fmt: skip
    waited = sorted(run.waited_ms for run in these)
    tries = sum(len(run.failed) for run in these)
    values = {"server": endpoint(*server), "n": tries, "span_ms": (waited[0], waited[-1]), "frame": frames[0], **extra}
    return Finding(
        kind="wait", server=server[0], server_port=server[1], cause=sentence, owner="server",
        clients=clients,
        exchanges=tries if exchanges else None, of_exchanges=exchanges or None,
        streams=tries if streams else None, of_streams=streams or None,
        total_ms=sum(waited), median_ms=waited[len(waited) // 2], max_ms=waited[-1], harm="late",
        worst_stream=stream, worst_ms=waited[-1], worst_frames=tuple(frames),
        sentence=sentence, values=values,
    )  # fmt: skip
