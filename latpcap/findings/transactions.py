"""Find database transactions whose client paused between the statements while it held locks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from latpcap import arrays
from latpcap.findings.evidence import wait_finding
from latpcap.findings.schema import Finding
from latpcap.findings.shared_locks import BEGINS_WORK
from latpcap.lazy import np, pa
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.servers import Server

if TYPE_CHECKING:
    from latpcap.arrays import Array

TABLE = re.compile(r"\b(?:update|into|from|join|table)\s+[\"`\[]?([\w.]+)", re.IGNORECASE)
"""The tables that a statement names."""
LOCKING = ("UPDATE", "INSERT", "DELETE", "REPLACE", "MERGE", "ALTER", "DROP", "TRUNCATE", "LOCK")
"""Statements whose locks last until the transaction ends; a SELECT locks with "for update" or "for share"."""
FOR_UPDATE = re.compile(r"\bfor\s+(?:update|share)\b", re.IGNORECASE)
DONE = ("COMMIT", "ROLLBACK")
"""Methods that end one."""
MAX_STATEMENTS = 50_000
"""Upper bound on the statements of a server; with more of them its transactions are not examined, to bound time."""
MIN_IDLE_SHARE = 0.75
"""The client is the cause if it was idle for this share of the transaction, and for `MIN_IDLE_MS`."""
MIN_IDLE_MS = 1000.0
"""Shortest idle time of a client that is the cause."""


class _Transaction(NamedTuple):
    """One transaction. Times are in ns; `first` and `last` are the rows of its first and last statement."""

    stream: int
    first: int
    last: int
    begun: int
    ended: int
    idle: int
    """How long the client sent nothing while it held locks."""
    has_locks: bool
    explicit: bool
    """Whether a BEGIN or START opened it, rather than the statement after the last COMMIT."""

    @property
    def is_idle_with_locks(self) -> bool:
        """Whether it held locks for long while its client sent nothing."""
        min_ns = max(MIN_IDLE_SHARE * (self.ended - self.begun), MIN_IDLE_MS * NS_PER_MS)
        return self.has_locks and self.idle >= min_ns


def _locks_table(method: str, target: str) -> bool:
    is_locking = method in LOCKING or (method == "SELECT" and FOR_UPDATE.search(target) is not None)
    return is_locking and TABLE.search(target) is not None


def _transactions(
    rows: Sequence[int], columns: Mapping[str, Sequence[Any]], start: Array, end: Array
) -> Iterator[_Transaction]:
    """Yield the transactions of these statements, which must be sorted by stream and start."""
    stream, first, idle, answered, has_locks, explicit = -1, -1, 0, 0, False, False
    for row in rows:
        method, target = columns["method"][row] or "", columns["target"][row] or ""
        if columns["stream"][row] != stream or method in BEGINS_WORK:
            stream, first, idle, answered = columns["stream"][row], row, 0, 0
            has_locks, explicit = False, method in BEGINS_WORK
        elif first < 0:
            first, answered = row, 0
        if answered and has_locks:  # without a lock nobody waits for this client
            idle += max(int(start[row]) - answered, 0)
        answered = int(end[row])
        if method in DONE:
            yield _Transaction(stream, first, row, int(start[first]), answered, idle, has_locks, explicit)
            first, idle, answered, has_locks, explicit = -1, 0, 0, False, False
        else:
            has_locks |= _locks_table(method, target)


def find(server: Server, tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find transactions whose time was mostly the client's, while it held locks."""
    stretches = tables["stretches"]
    method, methods = arrays.codes(stretches, "method")
    ends = [methods.index(word) for word in DONE if word in methods]
    if not ends or len(server.rows) > MAX_STATEMENTS or not np.isin(method[server.rows], ends).any():
        return []
    stream, start = (arrays.numbers(stretches, name) for name in ("stream", "start"))
    order = server.rows[np.lexsort((start[server.rows], stream[server.rows]))]
    names = ["method", "target", "stream", "exchange", "request_first_frame"]
    columns = {name: arrays.taken(stretches, name, order).to_pylist() for name in names}
    end = arrays.filled(stretches, "end", 0)
    all_transactions = list(_transactions(range(len(order)), columns, start[order], end[order]))
    idle = [item for item in all_transactions if item.explicit and item.is_idle_with_locks]
    if not idle:
        return []
    worst = max(idle, key=lambda item: item.idle)
    [(client,)] = arrays.looked_up(tables["streams"], "stream", np.array([worst.stream], np.int64), ("client",))
    frames = tuple(columns["request_first_frame"][row] for row in (worst.first, worst.last))
    idle_ms = worst.idle / NS_PER_MS
    values = {
        "server": server.name, "client": client, "n": len(idle), "span_ms": idle_ms,
        "took_ms": (worst.ended - worst.begun) / NS_PER_MS, "frame": frames[0], "commit_frame": frames[1],
    }  # fmt: skip
    return [wait_finding(
        server, {name: columns[name][worst.last] for name in names}, idle_ms, "client_in_transaction", values,
        owner="client", client=client, clients=len(server.clients), streams=len({item.stream for item in idle}),
        exchanges=len(idle), of_exchanges=len(all_transactions), total_ms=sum(item.idle for item in idle) / NS_PER_MS,
        worst_frames=frames,
    )]  # fmt: skip
