"""Which knob on which side mends it, at what cost, and what would it be worth? A finding's cause, side and time in; a
fix, and a predicted range with what limits it, out.

Taking the cause's time away is the most that can be won, and only for clients that do not ask sooner because of it.
A fixed number of connections that ask again at once (a closed loop, as load generators make) will load the server
more until something else is the limit: the interactive response time law N = X (R + Z) gives the rate then, and the
capacity is read off the moments in which requests queued at the server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays, spill, words
from latpcap.limits import LIMITS
from latpcap.presentation import SAME_SHARE
from latpcap.tables import NS_PER_MS
from latpcap.vocabulary import PROGRAMS, PROVEN, SIDES, STALL, STALLS, cause_names

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array
    from latpcap.user_waits.cause_totals import CauseTotal

KNOBS = {
    "nginx": "nginx", "openresty": "openresty", "tengine": "tengine", "basehttp": "http.server",
    "simplehttp": "http.server", "wsgiserver": "wsgiref", "werkzeug": "werkzeug", "webrick": "webrick",
    "libwww-perl": "libwww-perl", "akka-http": "akka-http", "pekko-http": "pekko-http",
}  # fmt: skip
"""Servers that leave Nagle's algorithm to their configuration, by the beginning of their name in lower case: the id of
the setting that sets TCP_NODELAY."""
SETS_IT = (
    "apache-coyote", "apache", "jetty", "kestrel", "gunicorn", "uvicorn", "hypercorn", "lighttpd", "caddy",
)  # fmt: skip
"""Servers that set TCP_NODELAY on every connection by themselves; of some a setting takes it away. (Apache httpd:
core_pre_connection. gunicorn: on the listening socket. uvicorn, Hypercorn: asyncio. Caddy: Go's net package. Tomcat,
Jetty, Kestrel: the default of that setting.) Where such a server's answers wait for Nagle all the same, somebody else
sends them, or it was taken away."""
SERVERS, CLIENTS = ("http", "mqtt"), ("http", "memcached", "mqtt", "redis")
"""Protocols of programs that give no name and whose settings are known."""
IN_ITS_WORDS = (STALL, "nagle")
"""The causes whose fix names the settings of the server's software."""

COSTS = (*STALLS, "cork", "receive_window", "cwnd", "queueing")
"""Causes whose fix costs something."""


@dataclass(frozen=True)
class Fix:
    """`knob` in words, the `side` that turns it, what it costs; `knob` is None where nothing mends it."""

    knob: str | None
    side: str | None
    cost: str | None


RULED_OUT = cause_names("stall", "path")
"""Rivals of a program's time that a test rules out."""


CONTINUE_MS = (350.0, 1_000.0, 2_000.0, 3_000.0)
"""So long clients wait for a 100 Continue (RFC 9110 10.1.1): .NET, curl and Go, Apache's HttpClient 4 and 5."""
CONTINUE_LESS, CONTINUE_MORE = 0.97, 1.1
"""Of that, what is measured."""


def waits_for_continue(waited_ms: float) -> bool:
    """Is this as long as a client waits for a 100 Continue?"""
    return any(CONTINUE_LESS * timer < waited_ms < CONTINUE_MORE * timer for timer in CONTINUE_MS)


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
    """What mends it? `owner` is the side whose setting it is; `software` is the server's own name, where it is known;
    `protocol` decides which programs it may be where no name is known; `lost`: segments, on the connections it hit.

    What is not `proven` clears nobody else: the fix does not say so then, but how its `rival` is ruled out.
    """
    if cause in IN_ITS_WORDS:
        knob = words.say("nodelay", owner=owner, known=_known(owner, software, protocol))
    elif cause in cause_names(trait="by_probe_or_timer") and owner in ("client", "server"):
        knob = words.say("host_drops", owner=owner)  # bytes sent again though their first copy had come
    else:
        known = words.fix_of(cause)
        if known is None:
            return Fix(None, None, None)
        knob = known
        if cause in PROGRAMS and not proven:  # the fix names who is not to blame, where that is proven
            first = knob.partition(words.say("between").strip())[0].rstrip(".。")
            knob = words.say("once_ruled_out", fix=first, how=_ruled_out(rival, owner))
        if cause == "cwnd" and lost:
            knob = words.say("cut_by_losses", n=lost, fix=knob)
        if cause == "server_think" and typical_ms > LIMITS["long_poll_ms"]:
            knob = words.say("or_long_poll", fix=knob)
        if cause == "client_think" and waits_for_continue(typical_ms):
            knob = words.say("or_expected", fix=knob)
    cost = words.say(f"cost_{cause}") if cause in COSTS else None
    return Fix(knob, owner if owner in ("client", "server") else None, cost)


def of_pushes(owner: str, software: str | None, protocol: str | None) -> Fix:
    """What mends pushes, or messages of clients, that Nagle's algorithm holds."""
    knob = words.say("nodelay_push", owner=owner, known=_known(owner, software, protocol))
    return Fix(knob, owner, words.say(f"cost_{STALL}"))


def _ruled_out(rival: str | None, owner: str) -> str:
    """How, in brackets; nothing where no plain way is known."""
    name = (rival or "").partition(",")[0].partition(" ")[0].lower()
    return words.say(f"ruled_out_{name}", owner=owner) if name in RULED_OUT else ""


def _known(owner: str, software: str | None, protocol: str | None) -> str:
    """The knob in the words of this server, or of the programs that it may be; nothing where that is of little use."""
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
    """The median latency without the cause lies between `low_ms` and `high_ms`.

    `open`: why that may be no less than it is now; None where something is won at worst. `factor_low` and
    `factor_high`: requests per second against now, only for closed loops. `limit` names what will be the limit then:
    "server" (its capacity), "path and programs", or "unknown".
    """

    low_ms: float
    high_ms: float
    p99_low_ms: float
    limit: str
    factor_low: float | None = None
    factor_high: float | None = None
    open: str | None = None


AS_IT_IS = "path and programs"
"""The limit where no server's capacity is."""
WARMER_SHARE, WARMER_MS = 0.5, 1.0
"""A lone client's wait leaves both hosts idle; without it their caches and clocks stay up, and programs take less.

At best this share of their time less, and so many ms: recordings before and after the fix had 0.3 to 1.0 of it left.
Or an answer is made as soon as the quickest tenth was: a program that is cold at first gets quicker."""
TURN = "turn"
"""The rule of the time that a program took before its answer began."""
NO_CONTROL = "follows_acks"
"""Why it is proven that the ACKs ended waits whose length no control group shows."""
AT_WORK, LATE = "within_control", "late_after_ack"
"""Why a program's time beside a stall is not proven to be the program's."""


def gain(item: CauseTotal, items: list[CauseTotal], exchanges: pa.Table, causes: pa.Table) -> Gain | None:
    """What would the median latency be without this cause? None where too few exchanges would tell, or for a program.

    `items`: all that took this server's time. The waits that one sender's TCP_NODELAY takes away go together.
    """

    server = item.server
    if server.cut or len(server.rows) < LIMITS["gain_exchanges"] or item.cause in PROGRAMS:
        return None
    left, worst, warm, hidden_ms = (_of_stall if item.cause in STALLS else _of_other)(item, items, exchanges, causes)
    high, now = _percentile(worst, 0.5), _percentile(server.latency, 0.5)
    middle, p99 = _percentile(left, 0.5), _percentile(left, 0.99)
    loop = _Loop.of(item, exchanges)
    # what is left holds the queue of requests that one tick of the clients' timers let go together
    low = _percentile(left, 0.1) if loop is not None and loop.clients > 1 else middle
    if loop is not None and loop.clients == 1:
        low = _percentile(warm, 0.5)
    doubt = words.say("gain_not_proven") if middle < SAME_SHARE * now <= high else None
    if loop is None or not loop.closed:
        return Gain(low, high, p99, AS_IT_IS, open=doubt)
    alone, surely = (1000 * loop.clients / (float(of.mean()) + loop.pause_ms) for of in (left, worst))
    if loop.clients == 1:
        # who asks one request at a time never queues
        return Gain(low, high, p99, AS_IT_IS, max(1.0, surely / loop.rate), alone / loop.rate, doubt)
    apart_ms, in_turn = _turns(item.server.rows, exchanges)
    if apart_ms and not in_turn:
        # threads that serve one connection again and again leave the others waiting: the median is theirs
        low = min(low, apart_ms)
    # what waits for the clients' hosts now, before they ask again, may wait for the server then
    high += loop.late_ms
    if loop.capacity is None:
        # at most all of them wait for one another, and each for what the server takes for one
        high = max(high, min(now, LIMITS["saturated_most"] * (loop.clients * apart_ms - loop.pause_ms)))
        if item.cause not in STALLS or doubt:
            # it has served them at the rate of now: on average they will not wait longer (the law above)
            high = max(high, now, LIMITS["saturated_most"] * float(server.latency.mean()))
            doubt = doubt or (words.say("gain_unseen") if middle < SAME_SHARE * now else None)
        return Gain(low, high, p99, "unknown", 1.0, alone / loop.rate, doubt)
    slow, fast = (min(alone, c) for c in loop.capacity)
    if slow >= alone:
        return Gain(low, high, p99, AS_IT_IS, slow / loop.rate, fast / loop.rate, doubt)
    # what the server can serve bounds the range from above; it makes no range narrower than what was measured
    quick, long = (1000 * loop.clients / rate - loop.pause_ms for rate in (fast, slow))
    least = min(middle, max(low, LIMITS["saturated_least"] * quick)) if in_turn else low
    # it is read at the answers' first bytes: what the program does behind them comes on top
    high = max(high if doubt else middle, LIMITS["saturated_most"] * long + hidden_ms)
    slow = min(slow, 1000 * loop.clients / (high + loop.pause_ms)) if hidden_ms else slow
    limit = AS_IT_IS if hidden_ms else "server"
    return Gain(least, high, max(p99, least), limit, slow / loop.rate, fast / loop.rate, doubt)


def _percentile(values: Array, share: float) -> float:
    """Nearest rank, of values in any order, at least one."""
    return float(spill.nth_smallest(values, max(0, math.ceil(share * len(values)) - 1)))


_Left = tuple["Array", "Array", "Array", float]
"""What is left of each exchange at best, at worst, and with faster programs; what the wait hides of a program."""


def _of_other(item: CauseTotal, items: list[CauseTotal], exchanges: pa.Table, causes: pa.Table) -> _Left:
    """What each exchange would take at best (without this), at worst (without what is proven of it), and at best."""
    sure = _sure(causes)
    where = _Places(exchanges, causes)
    left = _less(item, exchanges, where.sums([item.causes]))
    worst = _less(item, exchanges, where.sums([spill.selected(item.causes, sure)]))
    return left, worst, left, 0.0


def _less(item: CauseTotal, exchanges: pa.Table, ms: Array) -> Array:
    """What is left of the latencies of the server's exchanges when each takes so much less."""
    import numpy as np

    latency, rows = arrays.numbers(exchanges, "latency_ms"), item.server.rows
    spans = spill.parts(len(rows))
    return spill.from_pieces("float64", (np.maximum(latency[rows[s]] - ms[rows[s]], 0.0) for s in spans))


def _sure(causes: pa.Table) -> Array:
    """Which rows of causes are proven."""
    confidence, levels = arrays.levels(causes, "confidence")
    found: Array = (levels >= PROVEN)[confidence]
    return found


def _of_stall(item: CauseTotal, items: list[CauseTotal], exchanges: pa.Table, causes: pa.Table) -> _Left:
    """What each exchange would take at best, at worst, and at best where the programs get faster by it, too.

    At best every such wait goes, and what the program is only taken to have been at work for behind it. At worst only
    what is proven goes, and the program, which few exchanges show without a wait, takes as long again as it took there:
    where all may be its work, nothing goes. So the wait hides twice that of the program. And where packets queue on the
    path, what a wait takes beyond the shortest may be a queue before the hold, which the fixed answer meets as well.
    """
    import numpy as np

    sender = item.owner if item.cause != "delayed_ack" else SIDES.get(item.owner, item.owner)
    kinds = {(STALL, sender), ("nagle", sender), ("delayed_ack", SIDES.get(sender, sender))}
    stalls = spill.concatenated([i.causes for i in items if (i.cause, i.owner) in kinds])
    programs = [i.causes for i in items if i.cause in PROGRAMS]
    doubt = spill.concatenated([i.causes for i in items if i.cause == f"{sender}_think"])
    sure = _sure(causes)
    at_work, late = (spill.selected(doubt, ~sure & arrays.equals(causes, "because", word)) for word in (AT_WORK, LATE))
    where = _Places(exchanges, causes)
    sure_work = np.zeros(causes.num_rows, bool)
    for several, truth in ((programs, True), ((at_work, late), False)):
        for rows in several:
            for span in spill.parts(len(rows)):
                sure_work[rows[span]] = truth
    best, work = where.sums([stalls, at_work, late]), where.sums_of(sure_work)
    made = where.sums_of(sure_work & arrays.equals(causes, "rule", TURN))
    # where there is no control group only the end of a wait is proven, not its length
    least = where.sums([spill.selected(stalls, sure & ~arrays.equals(causes, "because", NO_CONTROL))])
    more = where.sums([at_work])
    latency, rows = arrays.numbers(exchanges, "latency_ms"), item.server.rows
    quickest = _percentile(spill.take(made, rows), 0.1)
    queued = where.sums([i.causes for i in items if i.cause == "queueing"])
    queue, gone = _percentile(spill.take(queued, rows), 0.9), spill.take(least, rows)
    shortest = _shortest(gone)
    left, warm, worst = (spill.zeros(len(rows), "float64") for _ in range(3))
    for span in spill.parts(len(rows)):
        mine = rows[span]
        took = latency[mine]
        left[span] = np.maximum(took - best[mine], 0.0)
        warmer = np.minimum(WARMER_SHARE * work[mine], WARMER_MS)
        warm[span] = np.maximum(left[span] - np.maximum(warmer, made[mine] - quickest), 0.0)
        goes = _beyond_queue(least[mine], shortest, queue)
        worst[span] = np.maximum(np.minimum(took, took - goes + more[mine]), 0.0)
    spill.release_memory()
    return left, worst, warm, 2 * _percentile(spill.take(more, rows), 0.5)


def _shortest(waits: Array) -> float:
    """The shortest of these waits, without strays; 0 where there is none."""
    waited = waits[waits > 0]
    return _percentile(waited, 0.1) if len(waited) else 0.0


def _beyond_queue(waits: Array, shortest: float, queue: float) -> Array:
    """The waits, each less what it is longer than the shortest, and by a queue at most."""
    import numpy as np

    left: Array = waits - np.clip(waits - shortest, 0.0, queue)
    return left


class _Places:
    """Which exchange, by its position in the table, each row of causes is of."""

    def __init__(self, exchanges: pa.Table, causes: pa.Table):
        self._size, self._ms = exchanges.num_rows, arrays.numbers(causes, "duration_ms")
        self._place = spill.places(arrays.numbers(exchanges, "exchange"), arrays.numbers(causes, "exchange"))

    def sums(self, several: Sequence[Array]) -> Array:
        """Of each exchange, how long these rows of causes took."""
        import numpy as np

        found = spill.zeros(self._size, "float64")
        for rows in several:
            for span in spill.parts(len(rows)):
                mine = rows[span]
                np.add.at(found, self._place[mine], self._ms[mine])
        spill.release_memory()
        return found

    def sums_of(self, which: Array) -> Array:
        """Of each exchange, how long the marked rows of causes took."""
        import numpy as np

        found = spill.zeros(self._size, "float64")
        for span in spill.parts(len(which)):
            mine = which[span]
            np.add.at(found, self._place[span][mine], self._ms[span][mine])
        spill.release_memory()
        return found


@dataclass(frozen=True)
class _Loop:
    clients: int
    pause_ms: float
    late_ms: float
    """How much longer the clients pause than the soonest of them."""
    rate: float
    closed: bool
    capacity: tuple[float, float] | None

    @classmethod
    def of(cls, item: CauseTotal, exchanges: pa.Table) -> _Loop | None:
        import numpy as np

        mine = spill.row_mask(item.server.rows, exchanges.num_rows)
        spans = spill.parts(len(mine))
        rows = spill.concatenated([(np.flatnonzero(mine[span]) + span.start).astype("uint32") for span in spans])
        stream, start, end = (spill.take(arrays.numbers(exchanges, c), rows) for c in ("stream", "start", "end"))
        seconds = (end.max() - start.min()) / 1e9
        answers, pauses = spill.zeros(len(rows), "float64"), _pauses(stream, start, end)
        if len(pauses) < LIMITS["gain_exchanges"] or seconds <= 0:
            return None
        for span in spill.parts(len(rows)):
            answers[span] = (end[span] - start[span]) / NS_PER_MS
        # pipelined or multiplexed streams ask before they are answered: no pause, and no closed loop of this kind
        asked_early = sum(int((pauses[span] < 0).sum()) for span in spill.parts(len(pauses))) / len(pauses)
        longest = LIMITS["loop_pause_share"] * _median(answers)
        closed = asked_early < LIMITS["loop_early_share"] and _median(pauses) < longest
        np.maximum(pauses, 0.0, out=pauses)
        return cls(
            clients=_at_once(stream, start, end),
            pause_ms=float(pauses.mean()),
            late_ms=float(pauses.mean() - pauses.min()),
            rate=len(rows) / seconds,
            closed=closed,
            capacity=_capacity(rows, exchanges),
        )


def _at_once(stream: Array, start: Array, end: Array) -> int:
    """So many of the streams are in use at once, at most."""
    import numpy as np

    numbers, size = arrays.distinct(stream), int(stream.max()) + 1
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
    for span in spill.parts(len(stream)):
        np.minimum.at(first, stream[span], start[span].astype(np.int64))
        np.maximum.at(last, stream[span], end[span].astype(np.int64))
    spill.release_memory()
    begun, ended = np.sort(first[numbers]), np.sort(last[numbers])
    # one that begins when another ends follows it
    return int((np.arange(1, len(begun) + 1) - np.searchsorted(ended, begun, side="right")).max())


def _pauses(stream: Array, start: Array, end: Array) -> Array:
    """The times in ms between an exchange's end and the next one's start, by stream and in order of time."""

    order = spill.argsort_nearly_sorted(start)
    order = spill.take(order, spill.argsort(spill.take(stream, order)))
    stream, start, end = (spill.take(column, order) for column in (stream, start, end))
    found, done = spill.zeros(len(stream), "float64"), 0
    for span in spill.parts(len(stream) - 1):
        behind = slice(span.start + 1, span.stop + 1)
        same = stream[behind] == stream[span]
        pauses = ((start[behind] - end[span]) / NS_PER_MS)[same]
        found[done : done + len(pauses)] = pauses
        done += len(pauses)
    spill.release_memory()
    return found[:done]


def _median(values: Array) -> float:
    """As numpy's, of at least one."""
    middle = len(values) // 2
    upper = float(spill.nth_smallest(values, middle))
    return upper if len(values) % 2 else (float(spill.nth_smallest(values, middle - 1)) + upper) / 2


def _capacity(rows: Array, exchanges: pa.Table) -> tuple[float, float] | None:
    """Answers per second while requests queue: over all that time, and between answers that leave others waiting.

    A request that is on its way to the server, and an answer on its way here, do not wait.
    """
    import numpy as np

    requested, answered = _instants(rows, exchanges)
    requested.sort()
    answered.sort()
    least = LIMITS["busy_requests"]
    busy_ns = done = between = leaving = 0
    # requests come before answers of the same instant
    for own, other, answers in ((answered, requested, True), (requested, answered, False)):
        for span in spill.parts(len(own)):
            times = own[span]
            ahead = np.searchsorted(other, times, side="right" if answers else "left")
            place = np.arange(span.start, span.stop)
            waiting = ahead - place if answers else place - ahead
            busy = waiting >= least
            before = np.maximum(own[np.maximum(place - 1, 0)], other[np.maximum(ahead - 1, 0)])
            before = np.where(place == 0, other[np.maximum(ahead - 1, 0)], np.where(ahead == 0, own[place - 1], before))
            busy_ns += int((times - before)[busy].sum())
            if answers:
                done += int(busy.sum())
                gap = own[np.minimum(place + 1, len(own) - 1)] - times
                left = (waiting - 1 >= least) & (place + 1 < len(own))
                between, leaving = between + int(gap[left].sum()), leaving + int(left.sum())
    first, last = min(requested[0], answered[0]), max(requested[-1], answered[-1])
    if done < LIMITS["busy_answers"] or busy_ns <= LIMITS["busy_share"] * (last - first):
        return None
    rates = [1e9 * done / busy_ns]
    if leaving >= LIMITS["busy_answers"] and between > 0:
        rates.append(1e9 / (between / leaving))
    return min(rates), max(rates)


def _turns(rows: Array, exchanges: pa.Table) -> tuple[float, bool]:
    """The mean time in ms between answers that leave others waiting, 0.0 where too few do; and whether requests that
    wait together are answered in turn.
    """
    import numpy as np

    requested, answered = _instants(rows, exchanges)
    order = spill.argsort_nearly_sorted(requested)
    requested, answered = spill.take(requested, order), spill.take(answered, order)
    together = overtaken = between = leaving = 0
    for span in spill.parts(len(requested) - 1):
        behind = slice(span.start + 1, span.stop + 1)
        both = requested[behind] < answered[span]
        together += int(both.sum())
        overtaken += int((both & (answered[behind] < answered[span])).sum())
    answered.sort()
    for span in spill.parts(len(answered) - 1):
        behind = slice(span.start + 1, span.stop + 1)
        ahead = np.searchsorted(requested, answered[span], side="right")
        left = ahead - np.arange(span.start, span.stop) - 1 >= 1
        between += int((answered[behind] - answered[span])[left].sum())
        leaving += int(left.sum())
    spill.release_memory()
    enough = leaving >= LIMITS["gain_exchanges"]
    return between / leaving / NS_PER_MS if enough else 0.0, overtaken <= LIMITS["overtaken_share"] * together


def _instants(rows: Array, exchanges: pa.Table) -> tuple[Array, Array]:
    """When each request reached the server, and when its answer began."""
    import numpy as np

    requested = spill.take(arrays.numbers(exchanges, "request_end"), rows).astype(np.int64, copy=False)
    answered = spill.take(arrays.filled(exchanges, "response_start", 0), rows).astype(np.int64, copy=False)
    _arrive(requested, answered, rows, exchanges)
    return requested, answered


def _arrive(requested: Array, answered: Array, rows: Array, exchanges: pa.Table) -> None:
    """Puts each request off by what the path takes, there and back; at most until it is answered."""
    import numpy as np

    path = spill.take(arrays.numbers(exchanges, "network_ms"), rows)
    for span in spill.parts(len(path)):
        np.nan_to_num(path[span], copy=False)
    usual = _percentile(path, 0.5)
    for span in spill.parts(len(requested)):
        late = np.minimum(path[span], usual) * NS_PER_MS
        requested[span] += np.clip(late.astype(np.int64), 0, np.maximum(answered[span] - requested[span], 0))
    spill.release_memory()


def unknown_backend() -> str:
    """The name of a server behind, where the capture has more than one that it may be."""
    return words.say("behind_unknown")


def of_backend(name: str, knob: str | None, owner: str) -> str | None:
    """The fix of a server behind, with its name, or of what is sent to there."""
    return (
        words.say("fix_towards" if owner == "client" else "fix_at", server=name, fix=_capital(knob)) if knob else None
    )


def _capital(text: str) -> str:
    """With a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def backend_clause(cause: str, found: CauseTotal | None, phrase: str) -> str:
    """What the requests to the server behind wait for, in a sentence about that server."""
    if cause != STALL or found is None:
        return words.say("behind_cause", cause=phrase)
    return words.say(f"behind_stall_{found.owner}")
