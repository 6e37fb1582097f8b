"""Decide which requests are slow, and add up the time of the slow ones by family of causes.

A request is slow if it took longer than a threshold beyond the path's own round trip, since nobody can mend the speed
of light. Turns of a protocol without a reader may not be answers, so that they count half when servers are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from latpcap import arrays, spill
from latpcap import presentation as show
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.vocabulary import CAUSES, FAMILIES, PROTOCOLS

if TYPE_CHECKING:
    from latpcap.arrays import Array

How: TypeAlias = Literal["none", "typical", "tail", "outlier"]
"""How many requests are slow: none, half or more ("typical"), some ("tail"), or very few ("outlier")."""
UNREAD = "turns"
"""The protocol name of a stream without a reader; a turn is all that one side sends until the other one sends."""
NO_CONTENT = 204
"""The status of an answer without a body: RFC 9110 15.3.5."""
SAME_TIMER = 1.02
"""Largest ratio of two waits that one timer ended; the time of work varies more."""
UNREPEATED = {"path", "line", "windows", "server", "client"}
"""Families whose short waits need not occur again."""
POLL = "long_poll"
STREAM = "event_stream"


class Piece(Protocol):
    """The time of one cause in the exchanges that it hit (`CauseTotal`)."""

    cause: str
    rows: Array
    ms: Array


def limits_ms(exchanges: pa.Table, slow_ms: float | None) -> Array:
    """Return for each exchange the ms beyond the path's round trip from which it is slow.

    That is `slow_ms`, or the protocol's default.
    """
    code, words = arrays.codes(exchanges, "protocol")
    limits: Array = np.array([limit_ms(word, slow_ms) for word in (*words, None)])[code]
    if slow_ms is None:  # log-ins have a higher limit, except for time of held ACKs
        held_ms = sum(np.nan_to_num(arrays.numbers(exchanges, f"{cause}_ms")) for cause in ("nagle", "delayed_ack"))
        limits = np.where(held_ms > LIMITS["slow_ms"], np.minimum(limits, LIMITS["slow_ms"]), limits)
    return limits


def limit_ms(protocol: str | None, slow_ms: float | None) -> float:
    """Return the ms from which a request of this protocol is slow: `slow_ms`, or the protocol's default."""
    if slow_ms is not None:
        return slow_ms
    traits = PROTOCOLS.get(protocol or "", frozenset())
    if "cache" in traits:
        return LIMITS["slow_cache_ms"]
    if "person" in traits:
        return LIMITS["slow_login_ms"]
    return LIMITS["slow_database_ms"] if "database" in traits else LIMITS["slow_ms"]


def is_unread(exchanges: pa.Table) -> Array:
    """Return the exchanges that are not known to be requests; TLS handshakes are, if the server's work took most."""
    turns: Array = arrays.codes(exchanges, "kind")[0] < 0
    is_handshake = arrays.equals(exchanges, "protocol", "tls") & arrays.equals(exchanges, "method", "handshake")
    if not is_handshake.any():
        return turns
    work_ms, took_ms = (arrays.numbers(exchanges, name) for name in ("server_think_ms", "latency_ms"))
    return turns & ~(is_handshake & (2 * work_ms > took_ms))


def long_polls(exchanges: pa.Table) -> Array:
    """Return the long polls, which are meant to wait.

    Readers mark them in most protocols. In HTTP, GETs of one path are polls if several are answered with 204 after the
    same long time: the server's timer ended them.
    """
    return arrays.kept(exchanges, ("long_polls",), lambda: _long_polls(exchanges))


def _long_polls(exchanges: pa.Table) -> Array:
    is_marked = arrays.equals(exchanges, "kind", POLL)
    status = arrays.numbers(exchanges, "status")
    if not (status == NO_CONTENT).any():
        return is_marked
    target, words = arrays.codes(exchanges, "target")
    if not words:
        return is_marked
    is_get, took_ms = arrays.equals(exchanges, "method", "GET"), arrays.numbers(exchanges, "latency_ms")
    without_queries = [word.partition("?")[0] for word in words]  # such as ?since=7
    _, paths = np.unique(without_queries, return_inverse=True)
    path = np.where(target >= 0, paths[target], -1)
    empty_rows = np.flatnonzero(is_get & (status == NO_CONTENT) & (took_ms >= LIMITS["poll_ms"]))
    empty_rows = empty_rows[np.lexsort((took_ms[empty_rows], path[empty_rows]))]
    empty_path, empty_took_ms = path[empty_rows], took_ms[empty_rows]
    is_again = (empty_path[1:] == empty_path[:-1]) & (empty_took_ms[1:] <= SAME_TIMER * empty_took_ms[:-1])
    return is_marked | (is_get & np.isin(path, empty_path[1:][is_again]))


def event_streams(exchanges: pa.Table) -> Array:
    """Return the exchanges whose answer is an event stream, whose pieces are sent when there is something to report."""
    return arrays.kept(exchanges, ("streams",), lambda: arrays.equals(exchanges, "kind", STREAM))


def waits_for_streams(exchanges: pa.Table, time: Array, slow_ms: float | None) -> tuple[Array, Array]:
    """Return for event streams of `time` ms the wait for the first piece, and the mean delay of each later one.

    The first wait is all of `time` without an answer. It is 0 if it is about as long as the pauses between the pieces:
    then the server waited for the first event.
    """
    answer_start, start = (arrays.filled(exchanges, column, 0) for column in ("response_start", "start"))
    first_ms: Array = np.where(answer_start > 0, np.minimum((answer_start - start) / NS_PER_MS, time), time)
    piece_counts, gap_ms = (arrays.filled(exchanges, column, 0) for column in ("pieces", "longest_gap_ms"))
    network_ms = np.nan_to_num(arrays.numbers(exchanges, "network_ms").astype(float))
    is_long = first_ms - network_ms > limits_ms(exchanges, slow_ms)
    is_ticking = (piece_counts > 2) & (answer_start > 0) & is_long & (first_ms <= show.MAX_FIRST_EVENT_RATIO * gap_ms)
    held_ms = np.maximum(time - first_ms - arrays.numbers(exchanges, "server_think_ms"), 0.0)
    return np.where(is_ticking, 0.0, first_ms), held_ms / np.maximum(piece_counts, 1)


def is_slow(exchanges: pa.Table, time: Array, slow_ms: float | None) -> Array:
    """Return the exchanges whose `time` in ms exceeds their limit beyond the path's round trip.

    Long polls are never slow. For event streams the wait for the first piece and the delay per later piece count, not
    the time in which the server had nothing to report.
    """
    own_ms = time - np.nan_to_num(arrays.numbers(exchanges, "network_ms").astype(float))
    is_event_stream = event_streams(exchanges)
    if is_event_stream.any():
        first_ms, later_ms = waits_for_streams(exchanges, time, slow_ms)
        own_ms = np.where(is_event_stream, np.maximum(first_ms - (time - own_ms), later_ms), own_ms)
    return (own_ms > limits_ms(exchanges, slow_ms)) & ~long_polls(exchanges)


def how_many(slow_count: int, count: int) -> How:
    """Classify the number of slow requests among all."""
    if not slow_count:
        return "none"
    if slow_count >= show.TYPICAL_SHARE * count and not slow_count == 1 < count:
        return "typical"
    return "outlier" if slow_count <= max(1, show.OUTLIER_SHARE * count) else "tail"


def are_unfelt(items: Iterable[Piece], slow_rows: Array, count: int, longest_ms: float) -> bool:
    """Return whether slow requests are too short for a person to notice: a few of them, or any number slow by the path.

    Stalls and losses always count as noticeable, because they occur again.
    """
    items = list(items)
    may_be_unfelt = how_many(len(slow_rows), count) in ("tail", "outlier") or items[0].cause == "network"
    if not may_be_unfelt or longest_ms >= show.MIN_FELT_MS:
        return False
    spent = {item.cause: float(item.ms[np.isin(item.rows, slow_rows)].sum()) for item in items}
    mendable = {cause: ms for cause, ms in spent.items() if cause not in ("network", "bandwidth") and ms > 0}
    return sum(mendable.values()) < show.MIN_FELT_SUM_MS and {family(cause) for cause in mendable} <= UNREPEATED


def has_few(slow_rows: Array, count: int) -> bool:
    """Return whether most requests are fast over the same path, so that its round trip makes none of the others
    slow.
    """
    return how_many(len(slow_rows), count) in ("tail", "outlier")


def family(cause: str) -> str:
    """Return the family of a cause; the stall has one, too."""
    entry = CAUSES.get(cause)
    return entry.family if entry else "stall"


def without_path_ms(causes: Mapping[str, float]) -> float:
    """Return the sum of these causes' times without the path's round trip."""
    return sum(spent for cause, spent in causes.items() if cause != "network")


def by_family(items: Iterable[Piece], slow_rows: Array, count: int) -> dict[str, dict[str, float]]:
    """Return the time in ms by family and cause of the slow exchanges, or of all if none of these `count` is slow.

    The family with the most time is first. Losses are first if they took about as much, since they are observed and
    other causes are inferred. If only a few are slow, the path's round trip is not a reason and does not count.
    """
    spent: dict[str, dict[str, float]] = {}
    for item in items:
        ms = item.ms[np.isin(item.rows, slow_rows)] if len(slow_rows) else item.ms
        if len(ms):
            causes = spent.setdefault(family(item.cause), {})
            causes[item.cause] = causes.get(item.cause, 0.0) + float(ms.sum())
        spill.release_memory()
    families = list(FAMILIES)
    sums = {name: sum(causes.values()) for name, causes in spent.items()}
    took_ms = {name: without_path_ms(causes) for name, causes in spent.items()} if len(slow_rows) else sums
    if has_few(slow_rows, count):
        sums = took_ms
    order = sorted(spent, key=lambda name: (-sums[name], -sum(spent[name].values()), families.index(name)))
    if "loss" in spent and took_ms["loss"] >= show.MIN_LOSS_RATIO * max(took_ms.values()):
        order = ["loss", *(name for name in order if name != "loss")]
    return {name: dict(sorted(spent[name].items(), key=lambda cause: (-cause[1], cause[0]))) for name in order}
