"""What did requests wait for at their server that was not work on them? Requests of one server in, findings out.

- A queue: slow work takes as long however many others are there. In a queue, or where requests share a processor, the
  server's time grows with the requests ahead of this one, by as much for each as answers leave apart.
- A pool of workers: requests that come together are answered so far apart as one takes, as a line before that many
  counters.
- One thing that all of them need: a program that stands still, a lock, another connection's transaction; or many
  requests for one thing at once.
- A proxy that buffers: the server behind it answered in pieces, the proxy passed all of them on at the end.
- Transactions of a database whose client took its time between the statements, while it held locks.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from latpcap import arrays, spill, words
from latpcap import presentation as show
from latpcap.findings.evidence import called
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, SETUP
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
        came, mine = arrays.numbers(exchanges, "request_end"), spill.row_mask(rows, exchanges.num_rows)
        spans = list(spill.parts(len(came)))
        last = spill.nth_smallest(spill.from_pieces(came.dtype, (came[span][mine[span]] for span in spans)), MOST)
        complete &= np.concatenate([came[span] <= last for span in spans])
    rows = spill.selected(rows, complete & ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
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
    each = float(np.median((left - came)[waits] / NS_PER_MS / passed[waits]))
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
        filter=wireshark_filter(queue['stream'], queue['frame']),
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
    late = spill.selected(server.slow, ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
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
        "span_ms": worst.quiet / NS_PER_MS if frozen else float(took[first]), "ends_ms": ends / NS_PER_MS,
        "name": called(row["method"], row["target"]), "frame": row["request_first_frame"], "times": len(found),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="frozen" if frozen else "behind_one",
        owner="server", clients=len(server.clients), exchanges=sum(len(one.rows) for one in found),
        of_exchanges=len(server.rows), total_ms=total, max_ms=float(took[first]),  worst_exchange=row["exchange"],
        worst_stream=row["stream"],
        worst_ms=float(took[first]), worst_frames=(row["request_first_frame"],), filter=wireshark_filter(row["stream"]),
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
    late = spill.selected(server.slow, ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
    if not 0 < len(late) <= LIMITS["pool_most"] or len(server.rows) > MOST:
        return None
    late = late[(_think(items, late) >= MOSTLY * took[late]) & (took[late] >= LIMITS["setup_ms"])]
    came, left = arrays.filled(exchanges, "request_end", 0), arrays.filled(exchanges, "response_start", 0)
    stream, rows = arrays.numbers(exchanges, "stream"), server.rows[left[server.rows] > 0]
    if not len(late) or not len(rows):
        return None
    span = int(left[rows].max() - came[rows].min())
    near = max(BEHIND_MS, PROMPT * arrays.percentile(server.latency, 1 / 2)) * NS_PER_MS
    method, methods = arrays.codes(exchanges, "method")
    ends = rows[np.isin(method[rows], [methods.index(word) for word in ENDS_WORK if word in methods])]
    begins = rows[method[rows] == methods.index("BEGIN")] if "BEGIN" in methods else rows[:0]
    hits = []
    for row in late.tolist():
        for end in ends[(left[ends] - left[row] <= BEHIND_MS * NS_PER_MS) & (left[row] - left[ends] <= near)].tolist():
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
        if len(hits) * len(late) * near > CHANCE * span:
            return None
        session = [(row, end, -1) for row, end, _ in hits if _of_one_session(server, row, end, tables)]
        if session:
            return _behind(server, session, transaction, tables, "behind_session")
        if len(hits) < AGAIN:
            return None
    return _behind(server, hits, transaction, tables)


QUICK, OTHERS = 0.1, 2
"""So many requests of others for the same thing that took no more than this share of it, while one waited."""


def _of_one_session(server: Server, row: int, end: int, tables: Mapping[str, pa.Table]) -> bool:
    """Did one client send both, on two connections, while others got at once what it waited for?"""
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    stream, took = (
        arrays.numbers(exchanges, "stream"),
        arrays.numbers(exchanges, "latency_ms"),
    )
    client = arrays.codes(streams, "client")[0]
    whose = client[spill.places(arrays.numbers(streams, "stream"), stream[server.rows])]
    mine = client[spill.places(arrays.numbers(streams, "stream"), stream[[row, end]])]
    (method, _), (target, _) = (arrays.codes(exchanges, name) for name in ("method", "target"))
    came, left = (
        arrays.filled(exchanges, "request_end", 0),
        arrays.filled(exchanges, "response_start", 0),
    )
    rows = server.rows[whose != mine[0]]
    same = rows[(method[rows] == method[row]) & (target[rows] == target[row]) & (took[rows] <= QUICK * took[row])]
    meanwhile = int(np.sum((came[same] > came[row]) & (left[same] < left[row])))
    return bool(mine[0] == mine[1]) and meanwhile >= OTHERS


AGAIN = 2
"""What ends just behind another once may do so by accident."""


def _behind(
    server: Server,
    hits: Sequence[tuple[int, int, int]],
    transaction: bool,
    tables: Mapping[str, pa.Table],
    word: str = "behind_other",
) -> Finding:
    exchanges, streams = tables["exchanges"], tables["streams"]
    took = arrays.numbers(exchanges, "latency_ms")
    row, end, begin = max(hits, key=lambda hit: float(took[hit[0]]))
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    one, other = (exchanges.select(names).slice(at, 1).to_pylist()[0] for at in (row, end))
    [ends] = arrays.looked_up(
        streams,
        "stream",
        arrays.numbers(exchanges, "stream")[[end]],
        ("client", "client_port"),
    )
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
        "after_ms": max(int(left[row]) - int(left[end]), 0) / NS_PER_MS,
    }  # fmt: skip
    held = {hit[1] for hit in hits} if not transaction else set()
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause=word,
        owner="client" if transaction else "server", client=ends[0], exchanges=len(hits),
        of_exchanges=len(server.rows), total_ms=sum(waits) + sum(float(took[at]) for at in held), max_ms=waits[-1],
         worst_exchange=one["exchange"],
        worst_stream=one["stream"], worst_ms=waits[-1],
        worst_frames=tuple(dict.fromkeys((frame, one["request_first_frame"]))),
        filter=wireshark_filter(one["stream"]), harm="late", sentence=word, values=values,
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
    late = spill.selected(server.slow, ~slow_requests.polls(exchanges) & ~slow_requests.streams(exchanges))
    if not BURST <= len(late) <= LIMITS["pool_most"] or len(server.clients) > 1:
        return None
    (method, _), (target, targets) = (arrays.codes(exchanges, name) for name in ("method", "target"))
    stream, took = arrays.numbers(exchanges, "stream"), arrays.numbers(exchanges, "latency_ms")
    start, end = (arrays.filled(exchanges, name, 0) for name in ("start", "end"))
    key = method.astype(np.int64) * (len(targets) + 1) + target
    found = []
    for name in np.unique(key[late]).tolist():
        rows = server.all_requests[key[server.all_requests] == name]
        rows = rows[np.argsort(start[rows], kind="stable")]
        ends = np.maximum.accumulate(end[rows])
        bursts = np.split(rows, np.flatnonzero(start[rows][1:] >= ends[:-1]) + 1)
        many = [burst for burst in bursts if len(burst) >= BURST]
        if 2 * sum(map(len, many)) < len(rows):
            continue
        for burst in many:
            lasted = took[burst]
            begun = int(np.ptp(start[burst])) / NS_PER_MS
            apart = len(set(stream[burst].tolist())) == len(burst) and begun <= lasted.min()
            apart &= STARTS * np.ptp(end[burst]) >= np.ptp(start[burst])  # else they waited for one thing
            if apart and lasted.max() <= ALIKE_WORK * lasted.min() and lasted.min() >= LIMITS["stuck_ms"] / 2:
                found.append(burst)
        gaps = [(start[b[0]] - end[a].max()) / NS_PER_MS for a, b in pairwise(found) if key[a[0]] == key[b[0]]]
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
        worst_ms=float(took[worst]), worst_frames=(frame,), filter=wireshark_filter(row["stream"]), harm="late",
        sentence="stampede", values=values,
    )  # fmt: skip


AT_ONCE = 0.05
"""Requests that came within this share of the shortest answer came together."""
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
    came, left, rows = came[known], left[known], rows[known]
    if len(rows) < LIMITS["pool_least"]:
        return None
    order = np.argsort(came, kind="stable")
    # those that came together have no order but that of their answers
    apart = np.diff(came[order], prepend=came.min()) > AT_ONCE * (left - came).min()
    order = order[np.lexsort((left[order], np.cumsum(apart)))]
    came, left, rows = came[order], left[order], rows[order]
    took = (left - came) / NS_PER_MS
    each = float(took.min())
    if each < LIMITS["pool_least_ms"] or took.max() < LIMITS["pool_grows"] * each:
        return None
    span = float(left.max() - left.min()) / NS_PER_MS
    workers = max(1, round((len(rows) - 1) * each / span)) if span else len(rows)
    if workers * LIMITS["pool_grows"] > len(rows):
        return None
    line = _line(came, each, workers)
    off = np.abs(line - left) / NS_PER_MS
    near = off <= LIMITS["pool_near_share"] * np.maximum(each, took)
    worst = int(took.argmax())
    if float(np.mean(near)) < LIMITS["pool_fits_share"] or not near[worst]:
        return None
    stream = arrays.numbers(exchanges, "stream")[rows]
    # others were ahead, and it waited for one of them
    waited = line - came > LIMITS["pool_grows"] / 2 * each * NS_PER_MS
    if waited.sum() < TOGETHER or len(set(stream[waited].tolist())) < TOGETHER:
        return None  # a protocol that answers in turn, or a client that asks so
    [row] = exchanges.select(["exchange", "stream", "request_first_frame"]).slice(int(rows[worst]), 1).to_pylist()
    word = "pool_of_one" if workers == 1 else "pool_of_some"
    values = {
        "server": server.name,
        "workers": workers,
        "n": len(rows),
        "each_ms": each,
        "most_ms": float(took.max()),
    }
    if behind := _passed_in_turn(server, rows, each, tables):
        word, values["behind"] = "pool_before", behind
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="pool",
        owner="server",
        clients=len(server.clients), exchanges=len(rows), of_exchanges=len(server.rows),
        total_ms=float((took - each).sum()), max_ms=float(took.max()), worst_exchange=row["exchange"],
        worst_stream=row["stream"],
        worst_ms=float(took.max()), worst_frames=(row["request_first_frame"],),
        filter=wireshark_filter(row["stream"]), harm="late", sentence=word, values=values,
    )  # fmt: skip


ONE_EACH, STEADY_MS, STEADY_SHARE = 6, 4.0, 0.01
"""So many answers, one each so many ms, and so much more or less, are no work: that takes now more and now less."""


def at_a_rate(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """One answer each so many ms, on whichever connection, while others wait: a limit of their rate; else None."""
    import numpy as np

    exchanges, rows = tables["exchanges"], server.rows
    if not ONE_EACH < len(rows) < LIMITS["queue_requests"]:
        return None
    came, left = (arrays.filled(exchanges, c, 0)[rows] for c in ("request_end", "response_start"))
    order = np.argsort(left, kind="stable")
    came, left, rows = came[order], left[order], rows[order]
    waits = (left[:-1] > 0) & (came[1:] < left[:-1])  # when the one before left, this one had been waiting
    apart = np.diff(left)[waits] / NS_PER_MS
    if len(apart) < ONE_EACH:
        return None
    each = float(np.median(apart))
    steady = np.abs(apart - each) <= max(STEADY_MS, STEADY_SHARE * each)
    late = np.flatnonzero(waits)[steady] + 1
    took = (left - came)[late] / NS_PER_MS
    stream = arrays.numbers(exchanges, "stream")[rows[late]]
    few = len(late) < ONE_EACH or steady.mean() < LIMITS["pool_fits_share"] or len(set(stream.tolist())) < TOGETHER
    if few or each < LIMITS["slow_ms"] or np.median(took) < 2 * each:
        return None
    worst = int(took.argmax())
    [row] = exchanges.select(["exchange", "stream", "request_first_frame"]).slice(int(rows[late[worst]]), 1).to_pylist()
    values = {
        "server": server.name,
        "n": len(late),
        "each_ms": each,
        "span_ms": (float(np.median(took)), float(took.max())),
    }
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="at_a_rate", owner="server",
        clients=len(server.clients), exchanges=len(late), of_exchanges=len(server.rows), total_ms=float(took.sum()),
        median_ms=float(np.median(took)), max_ms=float(took.max()), worst_exchange=row["exchange"],
        worst_stream=row["stream"], worst_ms=float(took.max()), worst_frames=(row["request_first_frame"],),
        filter=wireshark_filter(row["stream"]), harm="late", sentence="at_a_rate", values=values,
    )  # fmt: skip


def _passed_in_turn(server: Server, rows: Array, each_ms: float, tables: Mapping[str, pa.Table]) -> str:
    """Which server does this one pass these requests on to, each when its turn has come, and it is the work there that
    takes `each_ms`? "" where it does so with fewer than most.
    """
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    (method, _), (target, _) = (arrays.codes(exchanges, name) for name in ("method", "target"))
    came, left = (
        arrays.filled(exchanges, "request_end", 0),
        arrays.filled(exchanges, "response_start", 0),
    )
    stream, took = (
        arrays.numbers(exchanges, "stream"),
        arrays.numbers(exchanges, "latency_ms"),
    )
    client, names = arrays.codes(streams, "client")
    here = [code for code, name in enumerate(names) if name == server.address or name.startswith(LOCAL)]
    inner = np.isin(client[spill.places(arrays.numbers(streams, "stream"), stream)], here) & (left > 0)
    inner[server.rows] = False
    passed = []
    for row in rows.tolist():
        same = inner & (method == method[row]) & (target == target[row]) & (came >= came[row]) & (left <= left[row])
        if (at := np.flatnonzero(same)).size:
            passed.append(int(at[left[at].argmax()]))
    if len(passed) < show.MIN_NESTED_SHARE * len(rows):
        return ""
    if abs(float(np.median(took[passed])) - each_ms) > LIMITS["pool_near_share"] * each_ms:
        return ""  # they wait there
    ends = arrays.looked_up(streams, "stream", stream[passed], ("server", "server_port"))
    return endpoint(*ends[0]) if len(set(ends)) == 1 else ""


def _line(came: Array, each_ms: float, workers: int) -> Array:
    """When each request would be answered, if so many workers took them in their order, and each took so long."""
    import numpy as np

    free, each = [0] * workers, round(each_ms * NS_PER_MS)
    done = np.zeros(len(came), np.int64)
    for place, at in enumerate(came.tolist()):
        done[place] = max(at, free[0]) + each
        heapq.heapreplace(free, int(done[place]))
    return done


LUMPS = 2.0
"""Events with a pause so many times longer than any between them when they came were held until there were several."""


def buffered(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did this server hold back what another had answered in pieces? None where no such answer lies inside one of its.

    The other server has to get its requests from this one's host: from its address, or on the host itself.
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
    least = LIMITS["stuck_ms"] * NS_PER_MS
    inner = np.flatnonzero(wanted & (begun > 0) & (end - begun >= least))
    client, clients = arrays.codes(streams, "client")
    here = [code for code, name in enumerate(clients) if name == server.address or name.startswith(LOCAL)]
    stream = arrays.numbers(exchanges, "stream")
    callers = client[spill.places(arrays.numbers(streams, "stream"), stream[inner])]
    inner = inner[np.isin(callers, here) & ~np.isin(inner, server.rows)]
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
    held = int(begun[row] - begun[place]) / NS_PER_MS
    values = {
        "server": server.name, "behind": behind, "n": len(hits), "name": called(one["method"], one["target"]),
        "frame": one["request_first_frame"], "held_ms": held, "first_ms": int(begun[place] - start[row]) / NS_PER_MS,
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="buffered", owner="server",
        clients=len(server.clients), exchanges=len(hits), of_exchanges=len(server.rows),
        total_ms=sum(int(begun[front] - begun[back]) for front, back in hits) / NS_PER_MS, max_ms=held,
        worst_exchange=one["exchange"], worst_stream=one["stream"], worst_ms=held,
        worst_frames=(one["request_first_frame"],), filter=wireshark_filter(one["stream"]), harm="late",
        sentence="buffered_events" if events[place] else "buffered", values=values,
    )  # fmt: skip


TABLE = re.compile(r"\b(?:update|into|from|join|table)\s+[\"`\[]?([\w.]+)", re.IGNORECASE)
"""The tables that a statement names."""
LOCKING = ("UPDATE", "INSERT", "DELETE", "REPLACE", "MERGE", "ALTER", "DROP", "TRUNCATE", "LOCK")
"""Statements that keep a lock until their transaction ends; a SELECT does so with "for update" or "for share"."""
FOR_UPDATE = re.compile(r"\bfor\s+(?:update|share)\b", re.IGNORECASE)
BEGINS, DONE = ("BEGIN", "START"), ("COMMIT", "ROLLBACK")
MOST_STATEMENTS = 50_000
"""Of a server that answered more of them transactions are not looked at."""
IDLE, IDLE_MS = 0.75, 1000.0
"""A transaction is its client's where that took this share of it, and so long: a person sees it."""


class _Transaction(NamedTuple):
    """One transaction: its stream, first and last row, when it began and ended, when each table was locked first, and
    how long its client sent nothing while it held these locks, in ns."""

    stream: int
    first: int
    last: int
    begun: int
    ending: int
    ended: int
    locked: dict[str, int]
    idle: int
    explicit: bool


def _locks(method: str, target: str) -> bool:
    return method in LOCKING or (method == "SELECT" and FOR_UPDATE.search(target) is not None)


def _transactions(
    rows: Sequence[int], columns: Mapping[str, Sequence[Any]], start: Array, end: Array
) -> Iterator[_Transaction]:
    """The transactions of these statements, which stand in the order of their streams and beginnings."""
    locked: dict[str, int] = {}
    stream, begin, idle, explicit, done = -1, -1, 0, False, 0
    for row in rows:
        method, target = columns["method"][row] or "", columns["target"][row] or ""
        if columns["stream"][row] != stream or method in BEGINS:
            stream, begin, locked, idle, explicit, done = columns["stream"][row], row, {}, 0, method in BEGINS, 0
        elif begin < 0:
            begin, done = row, 0
        idle += max(int(start[row]) - done, 0) if done and locked else 0  # before it nobody waits for this client
        done = int(end[row])
        if method in DONE:
            yield _Transaction(stream, begin, row, int(start[begin]), int(start[row]), done, locked, idle, explicit)
            begin, locked, idle, explicit, done = -1, {}, 0, False, 0
        elif _locks(method, target):
            for name in TABLE.findall(target):
                locked.setdefault(name.lower(), int(start[row]))


def transactions(server: Server, tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Transactions in which the client took the time while it held locks."""
    import numpy as np

    exchanges = tables["exchanges"]
    method, methods = arrays.codes(exchanges, "method")
    ends = [methods.index(word) for word in DONE if word in methods]
    if not ends or len(server.rows) > MOST_STATEMENTS or not np.isin(method[server.rows], ends).any():
        return []
    stream, start = (arrays.numbers(exchanges, name) for name in ("stream", "start"))
    order = server.rows[np.lexsort((start[server.rows], stream[server.rows]))]
    names = ["method", "target", "stream", "exchange", "request_first_frame"]
    columns = {name: arrays.taken(exchanges, name, order).to_pylist() for name in names}
    end = arrays.filled(exchanges, "end", 0)
    every = list(_transactions(range(len(order)), columns, start[order], end[order]))
    slept = [one for one in every if one.explicit and one.idle >= IDLE * (one.ended - one.begun)]
    slept = [one for one in slept if one.idle >= IDLE_MS * NS_PER_MS and one.locked]
    return [_client_took(server, slept, len(every), columns, tables)] if slept else []


def _client_took(
    server: Server, slept: list[_Transaction], of: int, columns: Mapping[str, Sequence[Any]],
    tables: Mapping[str, pa.Table],
) -> Finding:  # fmt: skip
    worst = max(slept, key=lambda one: one.idle)
    [client] = arrays.looked_up(tables["streams"], "stream", _streams_of([worst]), ("client",))
    frames = (columns["request_first_frame"][worst.first], columns["request_first_frame"][worst.last])
    values = {
        "server": server.name, "client": client[0], "n": len(slept), "span_ms": worst.idle / NS_PER_MS,
        "took_ms": (worst.ended - worst.begun) / NS_PER_MS, "frame": frames[0], "commit_frame": frames[1],
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="client_in_transaction", owner="client",
        client=client[0], clients=len(server.clients), streams=len({one.stream for one in slept}),
        exchanges=len(slept), of_exchanges=of, total_ms=sum(one.idle for one in slept) / NS_PER_MS,
        max_ms=worst.idle / NS_PER_MS,
        worst_exchange=columns["exchange"][worst.last],
        worst_stream=worst.stream, worst_ms=worst.idle / NS_PER_MS, worst_frames=frames,
        filter=wireshark_filter(worst.stream), harm="late", sentence="client_in_transaction", values=values,
    )  # fmt: skip


def _streams_of(some: Sequence[_Transaction]) -> Array:
    import numpy as np

    found: Array = np.array([one.stream for one in some], np.int64)
    return found
