"""`Search`, what the finders of one capture share: the tables, and findings that several of them read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from latpcap import presentation as show
from latpcap.findings import (
    buffering_proxies,
    connections,
    expect_continue,
    openings,
    proxy_queues,
    quality,
    sessions,
    shared_locks,
    transactions,
    transfers,
    worker_pools,
)
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding
from latpcap.findings.tables import by_server
from latpcap.format import endpoint
from latpcap.user_waits.cause_totals import CauseTotals
from latpcap.user_waits.servers import Server

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SERVERS = 1_000
"""Upper bound on the servers with latency findings of their own: each costs a pass over all streams and causes."""


@dataclass
class Search:
    """The input of the finders, and what several of them read."""

    tables: Mapping[str, pa.Table]
    pushed: Pushed | None
    checks: Sequence[quality.Check]
    totals: CauseTotals
    max_servers: int | None
    """Upper bound on the servers with latency findings; None for `MAX_SERVERS` and a row that counts the rest."""

    @property
    def main_servers(self) -> list[Server]:
        """The servers with latency findings of their own."""
        return self.totals.servers[: MAX_SERVERS if self.max_servers is None else self.max_servers]

    @cached_property
    def evidence(self) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """The rows of "evidence" by server."""
        return by_server(self.tables["evidence"])

    @cached_property
    def connections(self) -> list[Finding]:
        """What happened to connections: floods of SYNs, refusals, resets."""
        return connections.of(self.tables["streams"], self.tables.get("probes"))

    @cached_property
    def waits_at_servers(self) -> list[Finding]:
        """Waits at a server that are not work: locks, pools of workers, proxies, transactions."""
        findings: list[Finding] = []
        count = MAX_SERVERS if self.max_servers is None else max(self.max_servers, show.MIN_SERVERS_EXAMINED)
        for server in self.totals.servers[:count]:
            findings += self._waits_at(server)
        # a server that a stampede comes from waits for the server that it goes to
        clients = {wait.client for wait in findings if wait.sentence == "stampede"}
        return [wait for wait in findings if wait.sentence != "stampede" or wait.server not in clients]

    def _waits_at(self, server: Server) -> list[Finding]:
        tables, spent = self.tables, self.totals.spent(server)
        candidates = (
            sessions.blocked(server, tables, self.pushed) if self.pushed is not None else None,
            worker_pools.find_pool(server, tables)
            or proxy_queues.find(server, tables)
            or worker_pools.find_rate_limit(server, tables),
            shared_locks.find_stampede(server, tables)
            or shared_locks.find_answered_together(server, spent, tables)
            or shared_locks.find_behind_other(server, spent, tables),
            buffering_proxies.find(server, tables),
            expect_continue.find(server, spent, tables),
        )
        waits = [wait for wait in candidates if wait is not None]
        if not any(wait.cause in ("transaction_lock", "transaction_pool") for wait in waits):
            waits += transactions.find(server, tables)  # else the request that waited for one is the finding
        return waits

    @cached_property
    def openings(self) -> tuple[list[Finding], set[int]]:
        """Waits before the first request of a connection, and the streams that they explain."""
        busy = {endpoint(wait.server, wait.server_port) for wait in self.waits_at_servers if wait.cause == "pool"}
        return openings.find(self.tables, busy)

    @cached_property
    def queue_costs(self) -> list[Finding]:
        """What transfers that filled a line's queue cost the requests beside them."""
        return transfers.costs(self.tables) if "transfers" in self.tables else []
