"""`Selection`: the part of an archive that a slice limits answers to: a time, servers, files."""

from __future__ import annotations

import fnmatch
import ipaddress
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from latpcap.lazy import ds, pa, pc, pd
from latpcap.tables import LINKS

if TYPE_CHECKING:
    from latpcap.archive.dataset import Stored

_BEGIN = {"events": "time", "streams": "start", "exchanges": "start", "connects": "start",
          "pushes": "start", "gaps": "start", "causes": "start", "transfers": "start",
          "lookups": "start", "probes": "sent"}  # fmt: skip
"""The column with the time of a row."""


@dataclass(frozen=True)
class Selection:
    """A part of the results; without limits, all of them. Instants in UTC, `until` excluded."""

    since: Any = None
    until: Any = None
    servers: tuple[tuple[str, int | None], ...] = ()
    files: tuple[str, ...] = ()

    def narrowed(self, time: Any, server: str | None, file: str | None) -> Selection:
        """Return this selection with further limits."""
        scope = self
        if time is not None:
            since, until = (None if instant is None else _instant(instant) for instant in time)
            since = max((instant for instant in (self.since, since) if instant is not None), default=None)
            until = min((instant for instant in (self.until, until) if instant is not None), default=None)
            scope = replace(scope, since=since, until=until)
        if server is not None:
            scope = replace(scope, servers=(*self.servers, endpoint(server)))
        if file is not None:
            scope = replace(scope, files=(*self.files, file))
        return scope

    def has_row(self, row: dict[str, Any]) -> bool:
        """Return whether a capture may have rows of it, by its files and its first and last instant."""
        if self.since is not None and (row["last"] is None or row["last"] < _ns(self.since)):
            return False
        if self.until is not None and (row["first"] is None or row["first"] >= _ns(self.until)):
            return False
        return all(any(_matches(name, pattern) for name in row["files"]) for pattern in self.files)

    @property
    def is_limited(self) -> bool:
        """Whether it leaves out rows of captures, besides whole captures."""
        return bool(self.since is not None or self.until is not None or self.servers)

    def expression(self, table: str, columns: list[str], stored: Stored, rows: list[dict[str, Any]]) -> Any:
        """Return the rows of a table that belong to it, as a data set expression, or None for all."""
        conditions = []
        if table in _BEGIN:
            begin = ds.field(_BEGIN[table])
            conditions += [begin >= _scalar(self.since)] if self.since is not None else []
            conditions += [begin < _scalar(self.until)] if self.until is not None else []
        for address, port in self.servers:
            if "server" in columns:
                is_server = ds.field("server") == address
                conditions.append(is_server if port is None else is_server & (ds.field("server_port") == port))
            elif table != "issues" and table != "captures":
                conditions.append(_of_server(table, address, port, stored, rows))
        return reduce(lambda left, right: left & right, conditions) if conditions else None

    def __str__(self) -> str:
        parts = [f"from {self.since}"] if self.since is not None else []
        parts += [f"until {self.until}"] if self.until is not None else []
        parts += [
            address if port is None else f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            for address, port in self.servers
        ]
        parts += list(self.files)
        return f" ({', '.join(parts)})" if parts else ""


def _of_server(table: str, address: str, port: int | None, stored: Stored, rows: list[dict[str, Any]]) -> Any:
    """Return rows of this server's streams, capture by capture; causes by the rows that they belong to."""
    is_server = ds.field("server") == address
    is_server = is_server if port is None else is_server & (ds.field("server_port") == port)
    captures = [row["capture"] for row in rows]
    keys = stored.dataset("streams", captures).to_table(filter=is_server, columns=["capture", "stream"])
    if table == "causes":
        conditions = [_of_keys(stored, linked_table, link, captures, keys) for link, linked_table in LINKS.items()]
        return reduce(lambda left, right: left | right, conditions)
    return _among(keys, "stream")


def _of_keys(stored: Stored, table: str, link: str, captures: list[str], streams: Any) -> Any:
    """Return causes of the rows of another table that belong to these streams."""
    rows = stored.dataset(table, captures).to_table(columns=["capture", "stream", link])
    return _among(rows.join(streams, ["capture", "stream"], join_type="inner"), link)


def _among(keys: Any, name: str) -> Any:
    conditions = []
    for capture in pc.unique(keys["capture"]).to_pylist():
        numbers = keys.filter(pc.equal(keys["capture"], capture))[name].combine_chunks()
        conditions.append((ds.field("capture") == capture) & ds.field(name).isin(numbers))
    return reduce(lambda left, right: left | right, conditions) if conditions else ds.scalar(False)


def endpoint(text: str) -> tuple[str, int | None]:
    """Return the address and port of "10.0.0.1", "10.0.0.1:80", "fe80::1" or "[fe80::1]:80"; ValueError for anything
    else.
    """
    try:
        return str(ipaddress.ip_address(text.strip("[]"))), None
    except ValueError:
        pass
    address, _, port = text.rpartition(":")
    try:
        number = int(port)
        if not 0 <= number < 65536:
            raise ValueError
        return str(ipaddress.ip_address(address.strip("[]"))), number
    except ValueError:
        raise ValueError(f"expected a server as address or address:port, got {text!r}") from None


def _instant(given: Any) -> pd.Timestamp:
    try:
        instant = pd.Timestamp(given)
    except (ValueError, TypeError):
        raise ValueError(f"expected an instant, as in 2026-11-21T10:00:00, got {given!r}") from None
    return instant.tz_localize("UTC") if instant.tzinfo is None else instant.tz_convert("UTC")


def _scalar(instant: pd.Timestamp) -> Any:
    return pa.scalar(_ns(instant), pa.timestamp("ns", "UTC"))


def _ns(instant: pd.Timestamp) -> int:
    return int(instant.value if instant.unit == "ns" else instant.as_unit("ns").value)


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(PurePath(name).name, pattern)
