"""`Search`, the state that the finders of one capture share: their tables, and the findings so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from latpcap.findings import connections, openings, quality, transfers
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding
from latpcap.findings.tables import by_server
from latpcap.user_waits import cause_totals

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Search:
    """The input of the finders, and the findings so far."""

    tables: Mapping[str, pa.Table]
    pushed: Pushed | None
    checks: Sequence[quality.Check]
    ledger: cause_totals.CauseTotals
    servers: int | None
    """Upper bound on the servers with latency findings; None for `MAX_SERVERS` and a row that counts the rest."""
    found: list[Finding] = field(default_factory=list)

    @cached_property
    def evidence(self) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """The rows of "evidence" by server."""
        return by_server(self.tables["evidence"])

    @cached_property
    def connections(self) -> list[Finding]:
        """What happened to connections: floods of SYNs, refusals, resets."""
        return connections.of(self.tables["streams"], self.tables.get("probes"))

    @cached_property
    def openings(self) -> tuple[list[Finding], set[int]]:
        """Waits before the first request of a connection, and the streams that they explain."""
        busy = {cause_totals.endpoint(f.server, f.server_port) for f in self.found if f.cause == "pool"}
        return openings.find(self.tables, busy)

    @cached_property
    def queue_costs(self) -> list[Finding]:
        """What transfers that filled a line's queue cost the requests beside them."""
        return transfers.costs(self.tables) if "transfers" in self.tables else []
