"""The tables that finders read, joined from those of a capture, a stream or an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

from latpcap.findings.pushes import Pushed
from latpcap.lazy import pa, pc
from latpcap.options import TableName
from latpcap.tables import of_stretches, read_stretches
from latpcap.user_waits.segments import HasSegments, Segments


class FinderTables(HasSegments):
    """The tables of a `Capture` or `Stream`, each made when first used.

    "stretches" has the rows of `exchanges`, `connects` and `gaps` under one numbering (`tables.read_stretches`), and
    "causes" the causes of all of them. `made` are tables that exist already. `evidence` returns the frames of a row of
    "causes", for archives whose causes lack them.
    """

    NAMES = ("streams", "stretches", "causes", "evidence", "issues", "events", "probes", "lookups", "connects",
             "transfers")  # fmt: skip

    def __init__(
        self,
        arrow: Callable[[TableName], pa.Table],
        segments: Segments | None = None,
        made: Mapping[str, pa.Table] | None = None,
        evidence: Callable[[int], list[int]] | None = None,
        pushed: Pushed | None = None,
    ):
        self._arrow = arrow
        self._made: dict[str, pa.Table] = dict(made or {})
        self._evidence = evidence
        if segments is not None:
            self.segments = segments
        if pushed is not None:
            self.pushed = pushed

    @cached_property
    def segments(self) -> Segments:  # type: ignore[override]
        """The columns of "events" that finders read, unless they were collected before."""
        return Segments.of(self["events"])

    @cached_property
    def pushed(self) -> Pushed:
        """The columns of "pushes" that finders read, unless they were collected before."""
        return Pushed.of(*(self._arrow(name) for name in ("pushes", "gaps", "causes")))

    def frames(self, cause: int) -> list[int]:
        """Return the frames that this row of "causes" names."""
        return super().frames(cause) if self._evidence is None else self._evidence(cause)

    def arrow(self, name: TableName) -> pa.Table:
        """Return this table as it was given."""
        return self._arrow(name)

    def __getitem__(self, name: str) -> pa.Table:
        if name == "stretches" and name not in self._made:
            self._made[name] = read_stretches(self)
        if name == "causes" and name not in self._made:
            self._made[name] = of_stretches(self._arrow("causes"))
        return self._made[name] if name in self._made else self._arrow(cast(TableName, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)

    def __len__(self) -> int:
        return len(self.NAMES)


def read_from(scope: Any) -> FinderTables:
    """Return the tables of a capture, a part of one, or an archive: those it kept for findings, else lazy ones."""
    return getattr(scope, "kept", None) or FinderTables(scope.arrow)


def pushes_of(tables: Mapping[str, pa.Table]) -> Pushed | None:
    """Return what finders read of pushes; None if the tables of pushes or gaps are missing."""
    if isinstance(tables, FinderTables):
        return tables.pushed
    if "pushes" not in tables or "gaps" not in tables:
        return None
    return Pushed.of(tables["pushes"], tables["gaps"], tables["causes"])


def with_stretches(tables: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    """Return the tables as `FinderTables` joins them; without "connects" and "gaps" also without their causes."""
    if isinstance(tables, FinderTables):
        return tables
    with_exchanges = {**tables, "stretches": tables["exchanges"]}
    if not tables["causes"]["exchange"].null_count:
        return with_exchanges
    if "connects" in tables and "gaps" in tables:
        lazy = FinderTables(lambda name: tables[name])
        return {**tables, "stretches": lazy["stretches"], "causes": lazy["causes"]}
    return {**with_exchanges, "causes": tables["causes"].filter(pc.is_valid(tables["causes"]["exchange"]))}


def by_server(evidence: pa.Table) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return the rows of "evidence" by the server's address and port."""
    rows_by_server: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in evidence.to_pylist():
        rows_by_server.setdefault((row["server"], row["server_port"]), []).append(row)
    return rows_by_server
