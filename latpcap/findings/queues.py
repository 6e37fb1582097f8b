"""Did requests wait for their turn at the server, for each other, or for a proxy that collects answers? Requests of one
server in, findings out.

Slow work takes as long however many others are there. In a queue, or where requests share a processor, the server's
time grows with the requests ahead of this one, by as much for each as answers leave apart. A pool of workers: requests
that come together are answered so far apart as one takes, as a line before that many counters. A proxy that buffers:
the server behind it answered in pieces, the proxy passed all of them on at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from latpcap import arrays, spill, words
from latpcap.account import slow
from latpcap.account.totals import Server, Spent, endpoint
from latpcap.findings.hung import on_stream
from latpcap.findings.schema import Finding
from latpcap.findings.traffic import called
from latpcap.limits import LIMITS
from latpcap.tables import MS, SETUP

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


def of(server: Server, items: Sequence[Spent], tables: Mapping[str, pa.Table]) -> Queue | None:
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
    rows = spill.chosen(rows, complete & ~slow.polls(exchanges) & ~slow.streams(exchanges))
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


def _think(items: Sequence[Spent], rows: Array) -> Array:
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
        median_ms=queue["wait_ms"], grade="probable", confidence=LIMITS["queue_confidence"],
        worst_exchange=queue["exchange"], worst_stream=queue["stream"], worst_frames=(queue["frame"],),
        filter=f"tcp.stream eq {queue['stream']} and frame.number in {{{queue['frame']}}}",
        rival=words.say("rival_sharing"), rival_lost=words.say("rival_sharing_lost"), says=says(queue),
    )  # fmt: skip


def says(queue: Queue) -> str:
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


def together(server: Server, items: Sequence[Spent], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did requests come one by one, wait, and get their answers all at once? The longest such wait; None without one.

    Something that they all need was taken: the whole program, if nobody was answered meanwhile, else a lock, which the
    first of them may hold. Work of their own would end as far apart as it began.
    """
    import numpy as np

    exchanges = tables["exchanges"]
    late = spill.chosen(server.slow, ~slow.polls(exchanges) & ~slow.streams(exchanges))
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
        of_exchanges=len(server.rows), total_ms=total, max_ms=float(took[first]), grade="probable",
        confidence=LIMITS["hung_probable_confidence"], worst_exchange=row["exchange"], worst_stream=row["stream"],
        worst_ms=float(took[first]), worst_frames=(row["request_first_frame"],), filter=on_stream(row["stream"]),
        harm="late", sentence="frozen" if frozen else "behind_one", values=values,
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
    if not LIMITS["pool_least"] <= len(rows) <= LIMITS["queue_requests"]:
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
        kind="wait", server=server.address, server_port=server.port, cause="pool", owner="server",
        clients=len(server.clients), exchanges=len(rows), of_exchanges=len(server.rows),
        total_ms=float(server.latency.sum()), max_ms=float(took.max()), grade="probable",
        confidence=LIMITS["hung_probable_confidence"], worst_exchange=row["exchange"], worst_stream=row["stream"],
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


def buffered(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did this server hold back what another had answered in pieces? None where no such answer lies inside one of its.

    The other server has to be asked by this one's host: from its address, or on the host itself.
    """
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    late = [int(row) for row in server.slow]
    if not late or len(late) > LIMITS["pool_most"]:
        return None
    start, end = (arrays.numbers(exchanges, c) for c in ("start", "end"))
    begun = arrays.filled(exchanges, "response_start", 0)
    code, protocols = arrays.codes(exchanges, "protocol")
    asked = code != arrays.code_of(protocols, SETUP)
    least = LIMITS["stuck_ms"] * MS
    inner = np.flatnonzero(asked & (begun > 0) & (end - begun >= least))
    inner = inner[~np.isin(inner, server.rows)]
    ends = arrays.looked_up(
        streams, "stream", arrays.numbers(exchanges, "stream")[inner], ("client", "server", "server_port")
    )
    hits = []
    for row in late:
        for place, (client, behind, port) in zip(inner.tolist(), ends, strict=True):
            here = client == server.address or client.startswith(LOCAL)
            inside = start[row] <= start[place] and end[place] <= end[row]
            kept = begun[row] - begun[place] >= least and begun[row] >= end[place] - least
            if here and inside and kept:
                hits.append((row, place, endpoint(behind, port)))
                break
    if len(hits) * 2 < len(late):
        return None
    row, place, behind = max(hits, key=lambda hit: int(begun[hit[0]] - begun[hit[1]]))
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    [one] = exchanges.select(names).slice(row, 1).to_pylist()
    held = int(begun[row] - begun[place]) / MS
    values = {
        "server": server.name, "behind": behind, "n": len(hits), "name": called(one["method"], one["target"]),
        "frame": one["request_first_frame"], "held_ms": held, "first_ms": int(begun[place] - start[row]) / MS,
    }  # fmt: skip
    events = bool(slow.streams(exchanges)[place])
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="buffered", owner="server",
        clients=len(server.clients), exchanges=len(hits), of_exchanges=len(server.rows),
        total_ms=float(server.latency.sum()), max_ms=held, grade="proven" if events else "probable",
        confidence=LIMITS["hung_proven_confidence" if events else "hung_probable_confidence"],
        worst_exchange=one["exchange"], worst_stream=one["stream"], worst_ms=held,
        worst_frames=(one["request_first_frame"],), filter=on_stream(one["stream"]), harm="late",
        sentence="buffered_events" if events else "buffered", values=values,
    )  # fmt: skip
