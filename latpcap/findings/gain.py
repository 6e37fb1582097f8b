"""What would it be worth? Exchanges and one cause's time in, a predicted range out, and what limits it.

Taking the cause's time away is the most that can be won, and only for clients that do not ask sooner because of it.
A fixed number of connections that ask again at once (a closed loop, as load generators make) will load the server
more until something else is the limit: the interactive response time law N = X (R + Z) gives the rate then, and the
capacity is read off the moments in which requests queued at the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.findings.presentation import UNSEEN
from latpcap.findings.totals import SIDES
from latpcap.limits import LIMITS
from latpcap.vocabulary import PROVEN, STALL

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array
    from latpcap.findings.totals import Spent


@dataclass(frozen=True)
class Gain:
    """The median latency without the cause lies between `low_ms` and `high_ms` (None: `open` says why it has none).

    `factor_low` and `factor_high`: requests per second against now, only for closed loops. `limit` says what will
    be the limit then: "server" (its capacity), "path and programs", or "unknown".
    """

    low_ms: float
    high_ms: float | None
    p99_low_ms: float
    limit: str
    closed_loop: bool
    factor_low: float | None = None
    factor_high: float | None = None
    open: str | None = None


AS_IT_IS = "path and programs"
"""The limit where no server's capacity is."""
NOT_PROVEN = "no upper bound: that these waits are held is not proven"
STALLS = (STALL, "nagle", "delayed_ack")
WARMER_SHARE, WARMER_MS = 0.5, 1.0
"""A lone client's wait leaves both hosts idle; without it their caches and clocks stay up, and programs take less.

At best this share of their time less, and so many ms: recordings before and after the fix had 0.3 to 1.0 of it left."""
AT_WORK, LATE = "within_control", "late_after_ack"
"""Why a program's time beside a stall is not proven to be the program's."""


def gain(item: Spent, items: list[Spent], exchanges: pa.Table, causes: pa.Table) -> Gain | None:
    """What would the median latency be without this cause? None where too few exchanges would tell, or for a program.

    `items`: all that took this server's time. The waits that one sender's TCP_NODELAY takes away go together.
    """
    import numpy as np

    server = item.server
    if server.cut or len(server.rows) < LIMITS["gain_exchanges"] or item.cause in ("server_think", "client_think"):
        return None
    latency = arrays.numbers(exchanges, "latency_ms")
    high: float | None
    if item.cause in STALLS:
        left, high, work = _of_stall(item, items, exchanges, causes)
    else:
        gone = latency.copy()
        gone[item.rows] -= item.ms
        left = np.maximum(gone[server.rows], 0.0)
        high, work = arrays.percentile(np.sort(left), 0.5), np.zeros(len(left))
    unbound = None if high is not None else NOT_PROVEN
    ordered = np.sort(left)
    middle, p99 = arrays.percentile(ordered, 0.5), arrays.percentile(ordered, 0.99)
    loop = _Loop.of(item, exchanges)
    # what is left holds the queue of requests that one tick of the clients' timers let go together
    low = arrays.percentile(ordered, 0.1) if loop is not None and loop.clients > 1 else middle
    if loop is not None and loop.clients == 1:
        warm = left - np.minimum(WARMER_SHARE * work, WARMER_MS)
        low = arrays.percentile(np.sort(np.maximum(warm, 0.0)), 0.5)
    if loop is None or not loop.closed:
        return Gain(low, high, p99, AS_IT_IS, False, open=unbound)
    mean = float(left.mean())
    now = loop.rate
    alone = 1000 * loop.clients / (mean + loop.pause_ms)
    if loop.capacity is None:
        high = high if item.cause in STALLS else None
        unbound = unbound or (UNSEEN if high is None else None)
        return Gain(low, high, p99, "unknown", True, 1.0, alone / now, unbound)
    slow, fast = (min(alone, c) for c in loop.capacity)
    if slow >= alone:
        return Gain(low, high, p99, AS_IT_IS, True, slow / now, fast / now, unbound)
    # what the server can serve bounds the range from above; it makes no range narrower than what was measured
    quick, long = (1000 * loop.clients / rate - loop.pause_ms for rate in (fast, slow))
    least = min(middle, max(low, LIMITS["saturated_least"] * quick))
    if high is not None:
        high = max(middle, LIMITS["saturated_most"] * long)
    return Gain(least, high, max(p99, least), "server", True, slow / now, fast / now, unbound)


def _of_stall(
    item: Spent, items: list[Spent], exchanges: pa.Table, causes: pa.Table
) -> tuple[Array, float | None, Array]:
    """What each exchange would take at best, the median at worst (None: nothing bounds it), and the programs' part.

    At best every such wait goes, and what the program is only taken to have been at work for behind it. At worst only
    what is proven goes, and the program, which few exchanges show without a wait, takes as long again as it took there:
    where all may be its work, nothing goes.
    """
    import numpy as np

    sender = item.owner if item.cause != "delayed_ack" else SIDES.get(item.owner, item.owner)
    kinds = {(STALL, sender), ("nagle", sender), ("delayed_ack", SIDES.get(sender, sender))}
    stalls = np.concatenate([i.causes for i in items if (i.cause, i.owner) in kinds])
    ms, sure = arrays.numbers(causes, "duration_ms"), arrays.numbers(causes, "confidence") >= PROVEN
    programs = np.concatenate([stalls[:0], *(i.causes for i in items if i.cause in ("server_think", "client_think"))])
    doubt = np.concatenate([stalls[:0], *(i.causes for i in items if i.cause == f"{sender}_think")])
    doubt = doubt[~sure[doubt]]
    why, words = arrays.codes(causes, "because")
    at_work = doubt[why[doubt] == _code(words, AT_WORK)]
    late = doubt[why[doubt] == _code(words, LATE)]
    where = _Places(exchanges, causes)
    latency, rows = arrays.numbers(exchanges, "latency_ms"), item.server.rows
    best = latency - where.sums(np.concatenate([stalls, at_work, late]), ms)
    left = np.maximum(best[rows], 0.0)
    sure_work = np.zeros(causes.num_rows, bool)
    sure_work[programs] = True
    sure_work[at_work] = sure_work[late] = False
    work = where.sums(np.flatnonzero(sure_work), ms)[rows]
    proven = stalls[sure[stalls]]
    if not len(proven) and not (why[stalls] == _code(words, AT_WORK)).any():
        return left, None, work
    worst = np.minimum(latency, latency - where.sums(proven, ms) + where.sums(at_work, ms))
    return left, arrays.percentile(np.sort(np.maximum(worst[rows], 0.0)), 0.5), work


def _code(words: list[str], word: str) -> int:
    return words.index(word) if word in words else -2


class _Places:
    """Which exchange, by its position in the table, each row of causes is of."""

    def __init__(self, exchanges: pa.Table, causes: pa.Table):
        import numpy as np

        keys = arrays.numbers(exchanges, "exchange")
        order = np.argsort(keys, kind="stable")
        self._size = len(keys)
        self._place = order[np.searchsorted(keys, arrays.numbers(causes, "exchange"), sorter=order)]

    def sums(self, rows: Array, ms: Array) -> Array:
        """Of each exchange, how long these rows of causes took."""
        import numpy as np

        return np.bincount(self._place[rows], ms[rows], self._size)


@dataclass(frozen=True)
class _Loop:
    clients: int
    pause_ms: float
    rate: float
    closed: bool
    capacity: tuple[float, float] | None

    @classmethod
    def of(cls, item: Spent, exchanges: pa.Table) -> _Loop | None:
        import numpy as np

        rows = np.sort(item.server.rows)
        stream = arrays.numbers(exchanges, "stream")[rows]
        start, end = arrays.numbers(exchanges, "start")[rows], arrays.numbers(exchanges, "end")[rows]
        order = np.lexsort((start, stream))
        same = stream[order][1:] == stream[order][:-1]
        pauses = (start[order][1:] - end[order][:-1])[same] / 1e6
        seconds = (end.max() - start.min()) / 1e9
        if len(pauses) < LIMITS["gain_exchanges"] or seconds <= 0:
            return None
        answers = (end - start) / 1e6
        # pipelined or multiplexed streams ask before they are answered: no pause, and no closed loop of this kind
        asked_early = float((pauses < 0).mean())
        longest = LIMITS["loop_pause_share"] * float(np.median(answers))
        closed = asked_early < LIMITS["loop_early_share"] and float(np.median(pauses)) < longest
        return cls(
            clients=len(arrays.distinct(stream)),
            pause_ms=float(np.clip(pauses, 0, None).mean()),
            rate=len(rows) / seconds,
            closed=closed,
            capacity=_capacity(rows, exchanges),
        )


def _capacity(rows: Array, exchanges: pa.Table) -> tuple[float, float] | None:
    """Answers per second while requests queue: over all that time, and between answers that leave others waiting."""
    import numpy as np

    asked = arrays.numbers(exchanges, "request_end")[rows].astype(np.int64)
    answered = arrays.filled(exchanges, "response_start", 0)[rows].astype(np.int64)
    times = np.concatenate([asked, answered])
    steps = np.concatenate([np.ones(len(asked), np.int64), -np.ones(len(answered), np.int64)])
    order = np.lexsort((-steps, times))
    times, steps = times[order], steps[order]
    waiting = np.cumsum(steps)
    gaps = np.diff(times)
    busy = waiting[:-1] >= LIMITS["busy_requests"]
    busy_ns = int(gaps[busy].sum())
    done = int(((steps[1:] == -1) & busy).sum())
    if done < LIMITS["busy_answers"] or busy_ns <= LIMITS["busy_share"] * (times[-1] - times[0]):
        return None
    out = np.flatnonzero(steps == -1)
    between = np.diff(times[out])[waiting[out[:-1]] >= LIMITS["busy_requests"]]
    rates = [1e9 * done / busy_ns]
    if len(between) >= LIMITS["busy_answers"] and between.mean() > 0:
        rates.append(1e9 / float(between.mean()))
    return min(rates), max(rates)
