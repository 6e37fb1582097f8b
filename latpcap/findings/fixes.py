"""What mends a cause: the setting, the side that has it, its cost, and the gain predicted as a range.

At most the cause's own time is won, and only if clients do not send their next request sooner because of it. A fixed
number of connections that request again at once (a closed loop, as load generators make) loads the server more until
something else is the limit. The interactive response time law N = X (R + Z) gives the rate X then, for N clients with
pause Z and response time R. The capacity is measured while requests queue at the server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.presentation import SAME_SHARE
from latpcap.tables import NS_PER_MS
from latpcap.vocabulary import PROGRAMS, PROVEN, SIDES, STALL, STALLS, cause_names

if TYPE_CHECKING:
    from latpcap.arrays import Array
    from latpcap.user_waits.cause_totals import CauseTotal

KNOBS = {
    "nginx": "nginx", "openresty": "openresty", "tengine": "tengine", "basehttp": "http.server",
    "simplehttp": "http.server", "wsgiserver": "wsgiref", "werkzeug": "werkzeug", "webrick": "webrick",
    "libwww-perl": "libwww-perl", "akka-http": "akka-http", "pekko-http": "pekko-http",
}  # fmt: skip
"""Servers whose configuration decides on Nagle's algorithm, by the beginning of their name in lower case. The value is
the end of the id of the sentence about their TCP_NODELAY setting."""
SETS_IT = (
    "apache-coyote", "apache", "jetty", "kestrel", "gunicorn", "uvicorn", "hypercorn", "lighttpd", "caddy",
)  # fmt: skip
"""Servers that set TCP_NODELAY on every connection (Apache httpd: core_pre_connection; gunicorn: on the listening
socket; uvicorn, Hypercorn: asyncio; Caddy: Go's net package; Tomcat, Jetty, Kestrel: by default). If their answers wait
for Nagle all the same, another program sends them, or a setting turned it off."""
SERVERS = ("http", "mqtt")
"""Protocols with a sentence about the settings of usual servers, for servers without a name."""
CLIENTS = ("http", "memcached", "mqtt", "redis")
"""Protocols with a sentence about the settings of usual clients."""
NAMES_SETTINGS = (STALL, "nagle")
"""The causes whose fix names the settings of the server's software."""
COSTS = (*STALLS, "cork", "receive_window", "cwnd", "queueing")
"""Causes whose fix has a cost (sentence `cost_…`)."""
RULED_OUT = cause_names("stall", "path")
"""Rivals of a program's time with a sentence about the test that rules them out."""
CONTINUE_MS = (350.0, 1_000.0, 2_000.0, 3_000.0)
"""How long clients wait for "100 Continue" (RFC 9110 10.1.1): .NET, curl and Go, Apache's HttpClient 4 and 5."""
MIN_CONTINUE_RATIO = 0.97
"""Shortest measured wait, as a share of such a timer."""
MAX_CONTINUE_RATIO = 1.1
"""Longest measured wait, as a share of such a timer."""
NOT_SERVER = "path and programs"
"""The limit if it is not the server's capacity."""
WARMER_SHARE, WARMER_MS = 0.5, 1.0
"""Upper bounds on the program's time that a lone client's fix may save, as a share and in ms.

Waits leave both hosts idle, so that caches and CPU clocks go down. Recordings before and after the fix had 0.3 to 1.0
of the program's time left. A program that is cold at first may also become as quick as its quickest tenth."""
TURN = "turn"
"""The rule (column `rule` of "causes") of a program's time before its answer began."""
NO_CONTROL = "follows_acks"
"""Grounds (column `because`) of waits that ACKs provably ended, but whose length no control group shows."""
AT_WORK = "within_control"
"""Ground of a program's time beside a stall: no longer than the program needs without one."""
LATE = "late_after_ack"
"""Ground of a program's time beside a stall: what it sent left later than the ACK."""


@dataclass(frozen=True)
class Fix:
    """A setting to change (`knob`, a sentence; None if nothing mends the cause), the side that has it, and its cost."""

    knob: str | None
    side: str | None
    cost: str | None


def waits_for_continue(waited_ms: float) -> bool:
    """Return whether a client's wait fits a timer for "100 Continue"."""
    return any(MIN_CONTINUE_RATIO * timer < waited_ms < MAX_CONTINUE_RATIO * timer for timer in CONTINUE_MS)


def fix(
    cause: str,
    owner: str,
    typical_ms: float,
    software: str | None,
    *,
    proven: bool,
    protocol: str | None = None,
    rival: str | None = None,
    lost: int = 0,
) -> Fix:
    """Return what mends a cause of this owner.

    `software`: the server's own name, if known; without it `protocol` decides which programs are named. `lost`:
    segments lost on the connections that it hit. If the cause is not `proven`, the fix explains how its `rival`
    (a cause) is ruled out, rather than who is not to blame.
    """
    if cause in NAMES_SETTINGS:
        knob = words.say("nodelay", owner=owner, known=_settings(owner, software, protocol))
    elif cause in cause_names(trait="by_probe_or_timer") and owner in ("client", "server"):
        knob = words.say("host_drops", owner=owner)  # retransmissions of bytes that had arrived
    else:
        cause_fix = words.fix_of(cause)
        if cause_fix is None:
            return Fix(None, None, None)
        knob = cause_fix
        if cause in PROGRAMS and not proven:  # only a proven fix names who is not to blame
            how = words.say(f"ruled_out_{rival}", owner=owner) if rival in RULED_OUT else ""
            knob = words.say(f"profile_{cause}_if", how=how)
        if cause == "cwnd" and lost:
            knob = words.say("cut_by_losses", n=lost, fix=knob)
        if cause == "server_think" and typical_ms > LIMITS["long_poll_ms"]:
            knob = words.say("or_long_poll", fix=knob)
        if cause == "client_think" and waits_for_continue(typical_ms):
            knob = words.say("or_expected", fix=knob)
    cost = words.say(f"cost_{cause}") if cause in COSTS else None
    return Fix(knob, owner if owner in ("client", "server") else None, cost)


def of_pushes(owner: str, software: str | None, protocol: str | None) -> Fix:
    """Return what mends pushes of servers, or messages of clients, that Nagle's algorithm holds."""
    knob = words.say("nodelay_push", owner=owner, known=_settings(owner, software, protocol))
    return Fix(knob, owner, words.say(f"cost_{STALL}"))


def _settings(owner: str, software: str | None, protocol: str | None) -> str:
    """Return the settings of TCP_NODELAY of this server, or of usual programs of the protocol; "" if none is known."""
    if owner == "server" and software:
        name = software.lower()
        for start, program in KNOBS.items():
            if name.startswith(start):
                return words.say(f"knob_{program}")
        return next((words.say(f"sets_{start}") for start in SETS_IT if name.startswith(start)), "")
    side = "client" if owner == "client" else "server"
    return words.say(f"knobs_{side}_{protocol}") if protocol in (CLIENTS if side == "client" else SERVERS) else ""


@dataclass(frozen=True)
class Gain:
    """The predicted latency without the cause; its median lies between `low_ms` and `high_ms`."""

    low_ms: float
    high_ms: float
    p99_low_ms: float
    limit: str
    """What is the limit then: "server" (its capacity), "path and programs", or "unknown"."""
    factor_low: float | None = None
    """Requests per second divided by the present rate, at worst; None unless clients form a closed loop."""
    factor_high: float | None = None
    open: str | None = None
    """Why nothing may be won; None if something is won even at worst."""

    def columns(self) -> dict[str, Any]:
        """Return the columns of a finding."""
        return {
            "gain_p50_low_ms": self.low_ms, "gain_p50_high_ms": self.high_ms, "gain_p99_low_ms": self.p99_low_ms,
            "gain_rate_low": self.factor_low, "gain_rate_high": self.factor_high, "gain_limit": self.limit,
            "gain_open": self.open,
        }  # fmt: skip


def gain(item: CauseTotal, items: list[CauseTotal], stretches: pa.Table, causes: pa.Table) -> Gain | None:
    """Predict the median latency without this cause; None for a program's time, or with too few exchanges.

    `items`: all causes of this server. The waits that one sender's TCP_NODELAY removes are removed together.
    """
    server = item.server
    if server.cut or len(server.rows) < LIMITS["gain_exchanges"] or item.cause in PROGRAMS:
        return None
    predict = _of_stall if item.cause in STALLS else _of_other
    best_ms, worst_ms, warm, hidden_ms = predict(item, items, stretches, causes)
    high, now = _percentile(worst_ms, 0.5), _percentile(server.latency, 0.5)
    middle, p99 = _percentile(best_ms, 0.5), _percentile(best_ms, 0.99)
    loop = _Loop.of(item, stretches)
    # the rest includes a queue of requests that one tick of the clients' timers released together
    low = _percentile(best_ms, 0.1) if loop is not None and loop.clients > 1 else middle
    if loop is not None and loop.clients == 1:
        low = _percentile(warm, 0.5)
    doubt = words.say("gain_not_proven") if middle < SAME_SHARE * now <= high else None
    if loop is None or not loop.closed:
        return Gain(low, high, p99, NOT_SERVER, open=doubt)
    most_rate, sure_rate = (1000 * loop.clients / (float(ms.mean()) + loop.pause_ms) for ms in (best_ms, worst_ms))
    if loop.clients == 1:
        # a client with one request at a time never queues
        return Gain(low, high, p99, NOT_SERVER, max(1.0, sure_rate / loop.rate), most_rate / loop.rate, doubt)
    apart_ms, in_turn = _turns(item.server.rows, stretches)
    if apart_ms and not in_turn:
        # threads that serve one connection repeatedly leave the others waiting, so that it has the median
        low = min(low, apart_ms)
    # what now waits at the clients' hosts before their next request may then wait for the server
    high += loop.late_ms
    if loop.capacity is None:
        # at most every client waits for all others, for the server's time of one request each
        high = max(high, min(now, LIMITS["saturated_most"] * (loop.clients * apart_ms - loop.pause_ms)))
        if item.cause not in STALLS or doubt:
            # the server has served them at the present rate: on average they will not wait longer (the law above)
            high = max(high, now, LIMITS["saturated_most"] * float(server.latency.mean()))
            doubt = doubt or (words.say("gain_unseen") if middle < SAME_SHARE * now else None)
        return Gain(low, high, p99, "unknown", 1.0, most_rate / loop.rate, doubt)
    slow, fast = (min(most_rate, rate) for rate in loop.capacity)
    if slow >= most_rate:
        return Gain(low, high, p99, NOT_SERVER, slow / loop.rate, fast / loop.rate, doubt)
    # the capacity bounds the range from above, but never makes it narrower than the measured one
    quick_ms, slow_ms = (1000 * loop.clients / rate - loop.pause_ms for rate in (fast, slow))
    min_low = min(middle, max(low, LIMITS["saturated_least"] * quick_ms)) if in_turn else low
    # the capacity is measured at the answers' first bytes: the program's time after them is added
    high = max(high if doubt else middle, LIMITS["saturated_most"] * slow_ms + hidden_ms)
    slow = min(slow, 1000 * loop.clients / (high + loop.pause_ms)) if hidden_ms else slow
    limit = NOT_SERVER if hidden_ms else "server"
    return Gain(min_low, high, max(p99, min_low), limit, slow / loop.rate, fast / loop.rate, doubt)


def _percentile(values: Array, share: float) -> float:
    """Return the percentile by nearest rank of at least one value, in any order."""
    return float(spill.nth_smallest(values, max(0, math.ceil(share * len(values)) - 1)))


_Left = tuple["Array", "Array", "Array", float]
"""Latency of each exchange without the cause: at best, at worst, and at best with faster programs. Last, the program's
time in ms that the wait hides."""


def _of_other(item: CauseTotal, items: list[CauseTotal], stretches: pa.Table, causes: pa.Table) -> _Left:
    """Predict for a cause that is not a stall: at best without all of its time, at worst without the proven part."""
    is_proven = _is_proven(causes)
    exchange_of = _ExchangeOfCause(stretches, causes)
    best_ms = _less(item, stretches, exchange_of.sums([item.causes]))
    worst_ms = _less(item, stretches, exchange_of.sums([spill.selected(item.causes, is_proven)]))
    return best_ms, worst_ms, best_ms, 0.0


def _less(item: CauseTotal, stretches: pa.Table, ms: Array) -> Array:
    """Return the latencies of the server's exchanges reduced by `ms` (per row of exchanges)."""
    latency, rows = arrays.numbers(stretches, "latency_ms"), item.server.rows
    spans = spill.parts(len(rows))
    return spill.from_pieces("float64", (np.maximum(latency[rows[span]] - ms[rows[span]], 0.0) for span in spans))


def _is_proven(causes: pa.Table) -> Array:
    """Return which rows of "causes" are proven."""
    confidence, levels = arrays.levels(causes, "confidence")
    return (levels >= PROVEN)[confidence]


def _of_stall(item: CauseTotal, items: list[CauseTotal], stretches: pa.Table, causes: pa.Table) -> _Left:
    """Predict for a stall or one of its parts.

    - At best every such wait is removed, and the program's time after it that is only inferred.
    - At worst only the proven part is removed, and the program takes twice its inferred time, which the wait hides.
    - If packets queue on the path, the part of a wait beyond the shortest may be that queue and remains.
    """
    sender = item.owner if item.cause != "delayed_ack" else SIDES.get(item.owner, item.owner)
    kinds = {(STALL, sender), ("nagle", sender), ("delayed_ack", SIDES.get(sender, sender))}
    stalls = spill.concatenated([item.causes for item in items if (item.cause, item.owner) in kinds])
    programs = [item.causes for item in items if item.cause in PROGRAMS]
    uncertain = spill.concatenated([item.causes for item in items if item.cause == f"{sender}_think"])
    is_proven = _is_proven(causes)
    work_rows, late_rows = (
        spill.selected(uncertain, ~is_proven & arrays.equals(causes, "because", word)) for word in (AT_WORK, LATE)
    )
    exchange_of = _ExchangeOfCause(stretches, causes)
    is_sure_work = np.zeros(causes.num_rows, bool)
    for row_lists, is_sure in ((programs, True), ((work_rows, late_rows), False)):
        for rows in row_lists:
            for span in spill.parts(len(rows)):
                is_sure_work[rows[span]] = is_sure
    best_ms, work_ms = exchange_of.sums([stalls, work_rows, late_rows]), exchange_of.sums_of(is_sure_work)
    turn_ms = exchange_of.sums_of(is_sure_work & arrays.equals(causes, "rule", TURN))
    # without a control group only the end of a wait is proven, not its length
    least_ms = exchange_of.sums([spill.selected(stalls, is_proven & ~arrays.equals(causes, "because", NO_CONTROL))])
    work_beside_ms = exchange_of.sums([work_rows])
    latency, rows = arrays.numbers(stretches, "latency_ms"), item.server.rows
    quickest = _percentile(spill.take(turn_ms, rows), 0.1)
    queued_ms = exchange_of.sums([item.causes for item in items if item.cause == "queueing"])
    queue_ms, least_of_rows = _percentile(spill.take(queued_ms, rows), 0.9), spill.take(least_ms, rows)
    shortest = _shortest(least_of_rows)
    left_ms, warm_ms, worst_ms = (spill.zeros(len(rows), "float64") for _ in range(3))
    for span in spill.parts(len(rows)):
        exchange_rows = rows[span]
        took_ms = latency[exchange_rows]
        left_ms[span] = np.maximum(took_ms - best_ms[exchange_rows], 0.0)
        warmer = np.minimum(WARMER_SHARE * work_ms[exchange_rows], WARMER_MS)
        warm_ms[span] = np.maximum(left_ms[span] - np.maximum(warmer, turn_ms[exchange_rows] - quickest), 0.0)
        # each without its part beyond the shortest, reduced by the queue at most
        gone_ms = _beyond_queue(least_ms[exchange_rows], shortest, queue_ms)
        worst_ms[span] = np.maximum(np.minimum(took_ms, took_ms - gone_ms + work_beside_ms[exchange_rows]), 0.0)
    spill.release_memory()
    return left_ms, worst_ms, warm_ms, 2 * _percentile(spill.take(work_beside_ms, rows), 0.5)


def _shortest(waits: Array) -> float:
    """Return the 10th percentile of the waits above 0, their shortest without outliers; 0 without waits."""
    positive = waits[waits > 0]
    return _percentile(positive, 0.1) if len(positive) else 0.0


def _beyond_queue(waits: Array, shortest: float, queue_ms: float) -> Array:
    """Return the waits without their part beyond the shortest, as far as a queue may have made it."""
    beyond: Array = waits - np.clip(waits - shortest, 0.0, queue_ms)
    return beyond


class _ExchangeOfCause:
    """The position of the exchange of each row of "causes"."""

    def __init__(self, stretches: pa.Table, causes: pa.Table):
        self._size, self._ms = stretches.num_rows, arrays.numbers(causes, "duration_ms")
        self._exchange_row = spill.positions_of(
            arrays.numbers(stretches, "exchange"), arrays.numbers(causes, "exchange")
        )

    def sums(self, row_lists: Sequence[Array]) -> Array:
        """Return the time of these rows of "causes" in each exchange, in ms."""
        sums = spill.zeros(self._size, "float64")
        for rows in row_lists:
            for span in spill.parts(len(rows)):
                cause_rows = rows[span]
                np.add.at(sums, self._exchange_row[cause_rows], self._ms[cause_rows])
        spill.release_memory()
        return sums

    def sums_of(self, mask: Array) -> Array:
        """Return the time of the marked rows of "causes" in each exchange, in ms."""
        sums = spill.zeros(self._size, "float64")
        for span in spill.parts(len(mask)):
            is_marked = mask[span]
            np.add.at(sums, self._exchange_row[span][is_marked], self._ms[span][is_marked])
        spill.release_memory()
        return sums


@dataclass(frozen=True)
class _Loop:
    """The load of a server: how many clients request again after which pause."""

    clients: int
    """Largest number of streams in use at once."""
    pause_ms: float
    """Mean pause between an answer and the next request."""
    late_ms: float
    """Mean pause beyond the shortest one."""
    rate: float
    """Requests per second."""
    closed: bool
    """Whether clients request again at once."""
    capacity: tuple[float, float] | None
    """Range of the answers per second while requests queue; None if too few queue."""

    @classmethod
    def of(cls, item: CauseTotal, stretches: pa.Table) -> _Loop | None:
        """Return how the clients of a server asked; None for too few requests."""
        is_of_server = spill.row_mask(item.server.rows, stretches.num_rows)
        spans = spill.parts(len(is_of_server))
        row_parts = [(np.flatnonzero(is_of_server[span]) + span.start).astype("uint32") for span in spans]
        rows = spill.concatenated(row_parts)
        stream, start, end = (spill.take(arrays.numbers(stretches, name), rows) for name in ("stream", "start", "end"))
        seconds = (end.max() - start.min()) / 1e9
        answers, pauses = spill.zeros(len(rows), "float64"), _pauses(stream, start, end)
        if len(pauses) < LIMITS["gain_exchanges"] or seconds <= 0:
            return None
        for span in spill.parts(len(rows)):
            answers[span] = (end[span] - start[span]) / NS_PER_MS
        # pipelined or multiplexed streams request before they are answered, so that they are not a closed loop
        early_share = sum(int((pauses[span] < 0).sum()) for span in spill.parts(len(pauses))) / len(pauses)
        longest = LIMITS["loop_pause_share"] * _median(answers)
        closed = early_share < LIMITS["loop_early_share"] and _median(pauses) < longest
        np.maximum(pauses, 0.0, out=pauses)
        return cls(
            clients=_max_concurrent(stream, start, end),
            pause_ms=float(pauses.mean()),
            late_ms=float(pauses.mean() - pauses.min()),
            rate=len(rows) / seconds,
            closed=closed,
            capacity=_capacity(rows, stretches),
        )


def _max_concurrent(stream: Array, start: Array, end: Array) -> int:
    """Return the largest number of streams in use at once."""
    numbers, size = arrays.distinct(stream), int(stream.max()) + 1
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
    for span in spill.parts(len(stream)):
        np.minimum.at(first, stream[span], start[span].astype(np.int64))
        np.maximum.at(last, stream[span], end[span].astype(np.int64))
    spill.release_memory()
    starts, ends = np.sort(first[numbers]), np.sort(last[numbers])
    # a stream that begins at the end of another one is not concurrent
    return int((np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")).max())


def _pauses(stream: Array, start: Array, end: Array) -> Array:
    """Return the times in ms from each exchange's end to the next one's start, by stream and time."""
    order = spill.argsort_nearly_sorted(start)
    order = spill.take(order, spill.argsort(spill.take(stream, order)))
    stream, start, end = (spill.take(column, order) for column in (stream, start, end))
    pauses, count = spill.zeros(len(stream), "float64"), 0
    for span in spill.parts(len(stream) - 1):
        next_span = slice(span.start + 1, span.stop + 1)
        is_same_stream = stream[next_span] == stream[span]
        pauses_of_span = ((start[next_span] - end[span]) / NS_PER_MS)[is_same_stream]
        pauses[count : count + len(pauses_of_span)] = pauses_of_span
        count += len(pauses_of_span)
    spill.release_memory()
    return pauses[:count]


def _median(values: Array) -> float:
    """Return the median of at least one value, as numpy's; also for arrays kept in a file."""
    middle = len(values) // 2
    upper = float(spill.nth_smallest(values, middle))
    return upper if len(values) % 2 else (float(spill.nth_smallest(values, middle - 1)) + upper) / 2


def _capacity(rows: Array, stretches: pa.Table) -> tuple[float, float] | None:
    """Return the answers per second while requests queue, measured in two ways; the lower one first.

    Over all that time, and between answers that leave other requests waiting. Requests on their way to the server and
    answers on their way to the capture do not wait.
    """
    requested, answered = _instants(rows, stretches)
    requested.sort()
    answered.sort()
    min_waiting = LIMITS["busy_requests"]
    busy_ns = busy_answers = between = leaving = 0
    # requests come before answers of the same instant
    for starts_here, other, answers in ((answered, requested, True), (requested, answered, False)):
        for span in spill.parts(len(starts_here)):
            times = starts_here[span]
            passed = np.searchsorted(other, times, side="right" if answers else "left")
            positions = np.arange(span.start, span.stop)
            waiting = passed - positions if answers else positions - passed
            is_busy = waiting >= min_waiting
            before_here, before_other = starts_here[np.maximum(positions - 1, 0)], other[np.maximum(passed - 1, 0)]
            previous = np.where(passed == 0, before_here, np.maximum(before_here, before_other))
            previous = np.where(positions == 0, before_other, previous)
            busy_ns += int((times - previous)[is_busy].sum())
            if answers:
                busy_answers += int(is_busy.sum())
                gap = starts_here[np.minimum(positions + 1, len(starts_here) - 1)] - times
                is_left = (waiting - 1 >= min_waiting) & (positions + 1 < len(starts_here))
                between, leaving = between + int(gap[is_left].sum()), leaving + int(is_left.sum())
    first, last = min(requested[0], answered[0]), max(requested[-1], answered[-1])
    if busy_answers < LIMITS["busy_answers"] or busy_ns <= LIMITS["busy_share"] * (last - first):
        return None
    rates = [1e9 * busy_answers / busy_ns]
    if leaving >= LIMITS["busy_answers"] and between > 0:
        rates.append(1e9 / (between / leaving))
    return min(rates), max(rates)


def _turns(rows: Array, stretches: pa.Table) -> tuple[float, bool]:
    """Return the mean time in ms between answers that leave others waiting, and whether requests are answered in order.

    The time is 0.0 if too few answers leave others waiting.
    """
    requested, answered = _instants(rows, stretches)
    order = spill.argsort_nearly_sorted(requested)
    requested, answered = spill.take(requested, order), spill.take(answered, order)
    together = overtaken = between = leaving = 0
    for span in spill.parts(len(requested) - 1):
        next_span = slice(span.start + 1, span.stop + 1)
        is_together = requested[next_span] < answered[span]
        together += int(is_together.sum())
        overtaken += int((is_together & (answered[next_span] < answered[span])).sum())
    answered.sort()
    for span in spill.parts(len(answered) - 1):
        next_span = slice(span.start + 1, span.stop + 1)
        ahead = np.searchsorted(requested, answered[span], side="right")
        is_left = ahead - np.arange(span.start, span.stop) - 1 >= 1
        between += int((answered[next_span] - answered[span])[is_left].sum())
        leaving += int(is_left.sum())
    spill.release_memory()
    is_enough = leaving >= LIMITS["gain_exchanges"]
    return between / leaving / NS_PER_MS if is_enough else 0.0, overtaken <= LIMITS["overtaken_share"] * together


def _instants(rows: Array, stretches: pa.Table) -> tuple[Array, Array]:
    """Return when each request reached the server, and when its answer began, in ns."""
    requested = spill.take(arrays.numbers(stretches, "request_end"), rows).astype(np.int64, copy=False)
    answered = spill.take(arrays.filled(stretches, "response_start", 0), rows).astype(np.int64, copy=False)
    _arrive(requested, answered, rows, stretches)
    return requested, answered


def _arrive(requested: Array, answered: Array, rows: Array, stretches: pa.Table) -> None:
    """Delay each request in place by the path's round trip, at most until its answer."""
    path_ms = spill.take(arrays.numbers(stretches, "network_ms"), rows)
    for span in spill.parts(len(path_ms)):
        np.nan_to_num(path_ms[span], copy=False)
    usual_ms = _percentile(path_ms, 0.5)
    for span in spill.parts(len(requested)):
        delay_ms = np.minimum(path_ms[span], usual_ms) * NS_PER_MS
        requested[span] += np.clip(delay_ms.astype(np.int64), 0, np.maximum(answered[span] - requested[span], 0))
    spill.release_memory()


def unknown_backend() -> str:
    """Return a name for the backend when several servers of the capture may be it."""
    return words.say("behind_unknown")


def of_backend(name: str, knob: str | None, owner: str) -> str | None:
    """Return the fix with the name of the backend that has the setting, or towards which the proxy has it."""
    if not knob:
        return None
    fix = f"{knob[:1].upper()}{knob[1:]}"
    return words.say("fix_towards" if owner == "client" else "fix_at", server=name, fix=fix)


def backend_clause(cause: str, item: CauseTotal | None, phrase: str) -> str:
    """Return a clause about what requests to the backend wait for."""
    if cause != STALL or item is None:
        return words.say("behind_cause", cause=phrase)
    return words.say(f"behind_stall_{item.owner}")
