"""Builds spans for trace viewers: a tree of each action of a client, its waits, and the causes of each wait.

Reads the tables `actions`, `waits`, `exchanges` and `causes`. An action with a single wait becomes one span. Ids are
hashes of the rows, so that a capture always gives equal ids. A request with a trace id (W3C traceparent) belongs to
that trace.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from latpcap.format import endpoint
from latpcap.lazy import pa

if TYPE_CHECKING:
    from latpcap.tables import HasTables

_TRACE = re.compile(r"[0-9a-f]{32}")
_CAUSE_COLUMNS = {"request": "exchange", "connect": "connect", "push": "push"}
"""The column of `causes` with the row number of a wait, by kind of wait."""
_HTTP = ("http", "http2", "grpc")


@dataclass
class Span:
    """A named interval of a trace; `start` and `end` in ns since 1970."""

    name: str
    kind: str
    """"action", a kind of the table `waits`, or "cause"."""
    start: int
    end: int
    client: str
    server: str
    stream: int | None
    span_id: str
    trace_id: str
    parent_id: str | None = None
    error: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)


def build_spans(scope: HasTables) -> list[Span]:
    """Return all spans, each after its parent."""
    requests = {row["exchange"]: row for row in _rows(scope, "exchanges")}
    causes = _causes_of_waits(scope)
    waits: dict[int | None, list[dict[str, Any]]] = defaultdict(list)
    for row in _rows(scope, "waits"):
        waits[row["action"]].append(row)
    spans: list[Span] = []
    for action in _rows(scope, "actions"):
        waits_inside = waits.pop(action["action"], [])
        if len(waits_inside) == 1:
            spans += _wait_spans(waits_inside[0], None, requests, causes)
            continue
        key = f"action {action['action']} {action['client']} {action['start']}"
        stream = next((row["stream"] for row in waits_inside if row["stream"] is not None), None)
        root = Span(
            action["name"] or "action", "action", action["start"], action["end"], action["client"],
            _endpoint(action["server"], action["server_port"]), stream, _id(key, 8),
            _trace_id(waits_inside, requests) or _id(key, 16), error=action["ended"] not in ("answered", None),
            attributes={"latpcap.action": action["action"], "latpcap.ended": action["ended"]},
        )  # fmt: skip
        spans.append(root)
        for row in waits_inside:
            spans += _wait_spans(row, root, requests, causes)
    for row in (row for rows in waits.values() for row in rows):
        spans += _wait_spans(row, None, requests, causes)
    return spans


def _rows(scope: HasTables, name: Any) -> list[dict[str, Any]]:
    """Return the rows of a table, with instants in ns since 1970."""
    table = scope.arrow(name)
    for index, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(index, column.name, table[column.name].cast("int64"))
    return table.to_pylist()


def _causes_of_waits(scope: HasTables) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return the causes by column and row number of their wait."""
    causes: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in _rows(scope, "causes"):
        for column in _CAUSE_COLUMNS.values():
            if row[column] is not None:
                causes[column, row[column]].append(row)
    return causes


def _id(key: str, size: int) -> str:
    return hashlib.blake2b(key.encode(), digest_size=size).hexdigest()


def _endpoint(address: str | None, port: int | None) -> str:
    return endpoint(address, port) if address and port else address or ""


def _trace_id(waits: list[dict[str, Any]], requests: dict[int, dict[str, Any]]) -> str | None:
    """Return the trace id of the first request that has one."""
    for row in waits:
        request = requests.get(row["row"]) if row["table"] == "exchanges" else None
        if request is not None and _TRACE.fullmatch(request["trace_id"] or ""):
            return str(request["trace_id"])
    return None


def _wait_spans(
    row: dict[str, Any],
    parent: Span | None,
    requests: dict[int, dict[str, Any]],
    causes: dict[tuple[str, int], list[dict[str, Any]]],
) -> Iterator[Span]:
    """Yield the span of a wait, and below it one for each of its causes."""
    key = f"wait {row['wait']} {row['client']} {row['start']}"
    request = requests.get(row["row"]) if row["table"] == "exchanges" else None
    attributes = {
        "network.transport": None if row["stream"] is None else "tcp", "client.address": row["client"],
        "server.address": row["server"], "server.port": row["server_port"] or None, "latpcap.wait": row["kind"],
        "latpcap.ended": row["ended"], "latpcap.stream": row["stream"], "latpcap.cause": row["cause"],
        "latpcap.owner": row["owner"], "latpcap.grade": row["grade"],
    }  # fmt: skip
    name = f"{row['kind']} {row['name']}" if row["name"] and request is None else row["name"] or row["kind"]
    if request is not None:
        name, more = _request(request)
        attributes |= more
    root = Span(
        name, row["kind"], row["start"], row["end"], row["client"], _endpoint(row["server"], row["server_port"]),
        row["stream"], _id(key, 8), parent.trace_id if parent else _trace_id([row], requests) or _id(key, 16),
        parent.span_id if parent and row["kind"] != "transfer" else None,  # a transfer continues after its request
        error=row["ended"] not in ("answered", None) or bool(request and request["error"]), attributes=attributes,
    )  # fmt: skip
    yield root
    for number, cause in enumerate(
        causes.get((_CAUSE_COLUMNS.get(row["kind"] if row["table"] != "lookups" else "", ""), row["row"]), ())
    ):
        start, end = max(cause["start"], root.start), min(cause["end"], root.end)
        if start > end:  # causes of a connection setup may continue after its wait
            continue
        yield Span(
            cause["cause"], "cause", start, end, root.client, root.server, root.stream,
            _id(f"{key} cause {number}", 8), root.trace_id, root.span_id,
            attributes={
                "latpcap.cause": cause["cause"], "latpcap.owner": cause["owner"], "latpcap.grade": cause["grade"],
                "latpcap.rule": cause["rule"], "latpcap.frames": [*cause["evidence"]],
            },
        )  # fmt: skip


def _request(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of a request, by OpenTelemetry's semantic conventions where they exist."""
    path, mark, query = (row["target"] or "").partition("?")
    attributes: dict[str, Any] = {
        "client.port": row["client_port"], "network.protocol.name": row["protocol"],
        "latpcap.exchange": row["exchange"], "latpcap.first_frame": row["request_first_frame"],
        "latpcap.last_frame": row["response_last_frame"], "latpcap.request_id": row["request_id"],
    }  # fmt: skip
    if row["protocol"] in _HTTP:
        attributes |= {
            "network.protocol.name": "http", "http.request.method": row["method"], "url.path": path,
            "url.query": query if mark else None, "http.response.status_code": row["status"],
            "http.request.size": row["request_bytes"], "http.response.size": row["response_bytes"],
        }  # fmt: skip
        if row["host"]:
            attributes["server.address"] = re.sub(r":\d+$", "", row["host"])
    else:
        attributes |= {
            "latpcap.method": row["method"],
            "latpcap.target": row["target"],
            "latpcap.status": row["status"],
        }
    parts = [part for part in (row["method"], path) if part]
    return " ".join(parts) or row["protocol"], attributes
