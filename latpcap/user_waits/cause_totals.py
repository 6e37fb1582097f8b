"""Add up the time of each cause: reads the tables of one capture, returns a `CauseTotal` per server, cause and owner.

All time of every exchange is given to some cause. Nagle's wait and the delayed ACKs inside it are added up as one cause
with two owners, the stall.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from latpcap import arrays, spill
from latpcap.lazy import np, pa
from latpcap.user_waits import slow_requests as slowness
from latpcap.user_waits.servers import Server, find_servers, judged_servers, server_of_exchange
from latpcap.vocabulary import BACKEND, PROVEN, SIDES, STALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from latpcap.arrays import Array

COHORTS = {"p50": (0.45, 0.55), "p90": (0.88, 0.92), "p99": (0.985, 0.995)}
"""The exchanges that represent a percentile: those whose rank by latency lies between these shares."""
IDLE_STREAM = "waits_for_event"
"""Grounds (column `because`) of a program's time between the pieces of an event stream: nobody waits for it."""
RANKS = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
"""The rank of each percentile, as a share of the exchanges."""


@dataclass
class CauseTotal:
    """The time of one cause in one server's exchanges; `rows` and `ms` have one entry per exchange that it hit."""

    server: Server
    cause: str
    owner: str
    held_by: str | None
    rows: Array
    ms: Array
    causes: Array
    """Positions in the table of causes."""
    confidence: float
    proven: int
    """Number of exchanges in which this cause is proven."""

    @cached_property
    def total_ms(self) -> float:
        """Sum of `ms`."""
        total = float(self.ms.sum())
        spill.release_memory()
        return total

    @cached_property
    def ordered(self) -> Array:
        """`ms`, rising."""
        ms = spill.from_pieces(self.ms.dtype, (self.ms[span] for span in spill.parts(len(self.ms))))
        ms.sort()
        spill.release_memory()
        return ms


class CauseTotals:
    """The time of one capture by server and cause.

    `servers` are sorted by the product of number and time of their slow requests, then by time. `slow_ms` is the
    threshold beyond the path's round trip from which a request is slow; None for the protocols' own.
    """

    def __init__(self, streams: pa.Table, stretches: pa.Table, causes: pa.Table, slow_ms: float | None = None):
        self._stretches, self.slow_ms = stretches, slow_ms
        numbers = server_of_exchange(streams, stretches)
        self.servers, judged, self._server_of = judged_servers(numbers, streams, stretches, slow_ms)
        self._row = spill.positions_of(arrays.numbers(stretches, "exchange"), arrays.numbers(causes, "exchange"))
        self._duration = arrays.numbers(causes, "duration_ms")
        self._confidence, self._levels = arrays.levels(causes, "confidence")
        self._label, self._words = _labels(causes)
        spans = spill.parts(len(judged))
        judged_server = spill.from_pieces(
            "int32", (np.where(judged[span], self._server_of[span], -1) for span in spans)
        )
        server_of_cause = spill.take(judged_server, self._row)
        is_event_stream = slowness.event_streams(stretches)
        if is_event_stream.any():
            is_idle = arrays.equals(causes, "because", IDLE_STREAM) & spill.take(is_event_stream, self._row)
            server_of_cause[is_idle] = -1
        self._causes, self._bounds = spill.grouped(server_of_cause, len(arrays.distinct(numbers)))
        self._spent: dict[str, list[CauseTotal]] = {}

    def put_first(self, name: str, called: Callable[[Server], list[str]]) -> None:
        """Move the server of this address, address and port, or `called` name to the front. ValueError without one."""
        first = find_servers(name, self.servers, called)
        self.servers = first + [server for server in self.servers if server not in first]

    def spent(self, server: Server) -> list[CauseTotal]:
        """Return the causes of this server's time, the most important first.

        They are sorted by family, that with the most time of the slow requests first, and then by time.
        """
        if server.name not in self._spent:
            self._spent[server.name] = self._split_up(server)
        return self._spent[server.name]

    def _split_up(self, server: Server) -> list[CauseTotal]:
        """Return the causes of this server's time, in the order of `spent`."""
        index = int(self._server_of[server.rows[0]])
        causes = self._causes[slice(*self._bounds[index : index + 2].tolist())]
        has_all = len(causes) == len(self._label)  # then positions in `causes` are rows
        labels = self._label if has_all else spill.take(self._label, causes)
        totals = (
            self._total(server, label, positions if has_all else spill.take(causes, positions))
            for label, positions in spill.positions_by_key(labels).items()
        )
        return _by_importance([total for total in totals if total is not None], server)

    def _total(self, server: Server, label: int, cause_rows: Array) -> CauseTotal | None:
        """Return the sum of rows with one label; None if they took no time."""
        row, duration = spill.take(self._row, cause_rows), spill.take(self._duration, cause_rows)
        rows, ms = arrays.sums(row, duration)
        if ms.sum() <= 0:
            return None
        cause, owner = self._words[label]
        level = spill.take(self._confidence, cause_rows)
        proven = (row[span][(self._levels >= PROVEN)[level[span]]] for span in spill.parts(len(row)))
        return CauseTotal(
            server=server,
            cause=cause,
            owner=owner,
            held_by=SIDES.get(owner) if cause == STALL else None,
            rows=rows,
            ms=ms,
            causes=cause_rows,
            confidence=_weighted_median(self._levels, level, duration),
            proven=len(arrays.distinct(spill.from_pieces(row.dtype, proven))),
        )


def _by_importance(totals: list[CauseTotal], server: Server) -> list[CauseTotal]:
    """Sort by family, that with the most time of the slow requests first, and then by time."""
    families = slowness.by_family(totals, server.waited_for, len(server.rows))
    rank = {name: i for i, name in enumerate(families)}
    has_few_slow = slowness.has_few(server.waited_for, len(server.rows))

    def key(total: CauseTotal) -> tuple[int, float, float, str, str]:
        family = slowness.family(total.cause)
        ms = 0.0 if has_few_slow and total.cause == "network" else families.get(family, {}).get(total.cause, 0.0)
        return rank.get(family, len(rank)), -ms, -total.total_ms, total.cause, total.owner

    return sorted(totals, key=key)


def _labels(causes: pa.Table) -> tuple[Array, dict[int, tuple[str, str]]]:
    """Return for each row of "causes" the number of its cause and owner, and the cause and owner of each number."""
    cause, cause_words = arrays.codes(causes, "cause")
    parent, parent_words = arrays.codes(causes, "parent")
    owner, owner_words = arrays.codes(causes, "owner")
    rule, _ = arrays.codes(causes, "rule")
    owner_words = [*owner_words, *(word for word in SIDES if word not in owner_words)]
    nagle, held = arrays.code_of(cause_words, "nagle"), arrays.code_of(cause_words, "delayed_ack")
    width = len(owner_words)
    in_nagle, backend = arrays.code_of(parent_words, "nagle"), arrays.code_of(owner_words, BACKEND)
    # Nagle's part of a stall has the same rule as the held ACK; other waits of Nagle have other rules
    spans = list(spill.parts(causes.num_rows))
    rules = set[int]()
    for span in spans:
        rules.update(arrays.distinct(rule[span][(cause[span] == held) & (parent[span] == in_nagle)]).tolist())
    # the owner of a stall is the side that can mend it: the sender, which is the peer of the held ACK's owner
    peer = np.array([owner_words.index(SIDES.get(word, word)) for word in owner_words], np.int16)
    column = spill.Column("int16")
    for span in spans:
        is_inside = (cause[span] == held) & (parent[span] == in_nagle)
        is_stall = is_inside | ((cause[span] == nagle) & np.isin(rule[span], list(rules)))
        is_stall |= (owner[span] == backend) & np.isin(cause[span], (nagle, held))
        mender = np.where(is_inside, peer[owner[span]], owner[span])
        column.add(np.where(is_stall, len(cause_words), cause[span]).astype(np.int16) * np.int16(width) + mender)
    names, label = [*cause_words, STALL], column.array()
    return label, {
        int(number): (names[number // width], owner_words[number % width]) for number in arrays.distinct(label)
    }


def _weighted_median(levels: Array, codes: Array, weights: Array) -> float:
    """Return the weighted median of a few levels; `codes` and `weights` have one entry per row."""
    spent = spill.sum_weights(codes, weights, len(levels))
    order = np.argsort(levels)
    total = np.cumsum(spent[order])
    return float(levels[order][np.searchsorted(total, total[-1] / 2)])


def cohort(item: CauseTotal, name: str) -> tuple[float, float]:
    """Return the part of a percentile of latency that this cause took: in ms, and as a share.

    The share is measured over the exchanges around the percentile (`COHORTS`).
    """
    server = item.server
    low, high = COHORTS[name]
    count = len(server.rows)
    start = min(int(low * count), count - 1)
    around = slice(start, max(start + 1, int(high * count)))
    near = spill.row_mask(server.rows[around], int(max(server.rows[around].max(), item.rows[-1])) + 1)
    spans = spill.parts(len(item.rows))
    taken_ms = float(np.concatenate([item.ms[span][near[item.rows[span]]] for span in spans]).sum())
    latency_ms = float(server.latency[around].sum())
    spill.release_memory()
    share = min(1.0, taken_ms / latency_ms) if latency_ms > 0 else 0.0
    return share * arrays.percentile(server.latency, RANKS[name]), share
