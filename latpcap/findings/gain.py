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
from latpcap.limits import LIMITS

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array
    from latpcap.findings.totals import Spent


@dataclass(frozen=True)
class Gain:
    """The median latency without the cause lies between `low_ms` and `high_ms` (None: no upper bound can be given).

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


def gain(item: Spent, same: list[Spent], exchanges: pa.Table) -> Gain | None:
    """What would the median latency be without this cause? None where too few exchanges would tell, or for a program.

    `same`: what the same knob takes away besides.
    """
    import numpy as np

    server = item.server
    if server.cut or len(server.rows) < LIMITS["gain_exchanges"] or item.cause in ("server_think", "client_think"):
        return None
    latency = arrays.numbers(exchanges, "latency_ms").copy()
    for gone in (item, *same):
        latency[gone.rows] -= gone.ms
    left = np.maximum(latency[server.rows], 0.0)
    ordered = np.sort(left)
    middle, p99 = arrays.percentile(ordered, 0.5), arrays.percentile(ordered, 0.99)
    hidden = _hidden(item, same, exchanges)
    high = None if hidden is None else arrays.percentile(np.sort(left + hidden), 0.5)
    loop = _Loop.of(item, exchanges)
    # what is left holds the queue of requests that one tick of the clients' timers let go together
    low = arrays.percentile(ordered, 0.1) if loop is not None and loop.clients > 1 else middle
    if loop is None or not loop.closed:
        return Gain(low, high, p99, "path and programs", False)
    mean = float(left.mean())
    now = loop.rate
    alone = 1000 * loop.clients / (mean + loop.pause_ms)
    if loop.capacity is None:
        return Gain(low, None, p99, "unknown", True, 1.0, alone / now)
    slow, fast = (min(alone, c) for c in loop.capacity)
    if slow >= alone:
        return Gain(low, high, p99, "path and programs", True, slow / now, fast / now)
    least, most = (1000 * loop.clients / rate - loop.pause_ms for rate in (fast, slow))
    least, most = max(low, LIMITS["saturated_least"] * least), max(middle, LIMITS["saturated_most"] * most)
    return Gain(least, most, max(p99, least), "server", True, slow / now, fast / now)


def _hidden(item: Spent, same: list[Spent], exchanges: pa.Table) -> float | None:
    """How long the program takes between its two writes, which the wait hides: seen where nothing was held."""
    import numpy as np

    if item.held_by is None:
        return 0.0
    free = np.setdiff1d(item.server.rows, item.rows)
    if len(free) < 2:
        return None
    spread = "response_spread_ms" if item.owner == "server" else "request_spread_ms"
    between = arrays.numbers(exchanges, spread).copy()
    for waited in same:
        between[waited.rows] -= waited.ms
    return max(0.0, float(np.median(between[free])))


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
            clients=len(np.unique(stream)),
            pause_ms=float(np.clip(pauses, 0, None).mean()),
            rate=len(rows) / seconds,
            closed=closed,
            capacity=_capacity(rows, exchanges),
        )


def _capacity(rows: Array, exchanges: pa.Table) -> tuple[float, float] | None:
    """Answers per second while requests queue: over all that time, and between answers that leave others waiting."""
    import numpy as np

    asked = arrays.numbers(exchanges, "request_end")[rows].astype(np.int64)
    answered = arrays.numbers(exchanges, "response_start")[rows].astype(np.int64)
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
