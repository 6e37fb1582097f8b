"""Column names of published schemas: OpenTelemetry's semantic conventions, the Elastic Common Schema, Zeek's logs.

Takes a table; returns one with columns that those tools know, in their units: seconds in Zeek, nanoseconds in ECS.
Columns without a name there get the prefix `latpcap.`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from latpcap.lazy import pa, pc

Names: TypeAlias = Literal["otel", "ecs", "zeek"]
SCHEMAS: tuple[Names, ...] = get_args(Names)
_HTTP = ("http", "http2", "grpc")
_Column: TypeAlias = "tuple[str, str, Callable[[Any, Any], Any]]"
"""A new name, the column that it is made of, and a function of the table and that column."""


def _same(_: Any, column: Any) -> Any:
    return column


def _seconds_since_1970(_: Any, column: Any) -> Any:
    return pc.divide(pc.cast(column.cast("int64"), "float64", safe=False), 1e9)


def _ns(_: Any, column: Any) -> Any:
    return pc.round(pc.multiply(column, 1e6)).cast("int64")


def _seconds(_: Any, column: Any) -> Any:
    return pc.divide(column, 1e3)


def _lasted(factor: float) -> Callable[[Any, Any], Any]:
    """Return the time from `start` to `end`, in ns divided by the factor."""

    def made(table: Any, end: Any) -> Any:
        took = pc.subtract(end.cast("int64"), table["start"].cast("int64"))
        return took if factor == 1 else pc.divide(took.cast("float64"), factor)

    return made


def _word(word: str) -> Callable[[Any, Any], Any]:
    def made(table: Any, _: Any) -> Any:
        return pa.array([word] * table.num_rows, pa.string())

    return made


def _of_http(table: Any, column: Any) -> Any:
    """Return the values of HTTP requests, null for others."""
    plain = column.cast("string") if pa.types.is_dictionary(column.type) else column
    protocols = table["protocol"].cast("string")
    return pc.if_else(pc.is_in(protocols, pa.array(_HTTP)), plain, pa.scalar(None, plain.type))


def _path(table: Any, column: Any) -> Any:
    return pc.replace_substring_regex(_of_http(table, column), r"\?.*$", "")


def _query(table: Any, column: Any) -> Any:
    targets = _of_http(table, column)
    cut = pc.replace_substring_regex(targets, r"^[^?]*\??", "")
    return pc.if_else(pc.match_substring(targets, "?"), cut, pa.scalar(None, "string"))


def _ip_type(_: Any, column: Any) -> Any:
    return pc.if_else(pc.match_substring(column.cast("string"), ":"), "ipv6", "ipv4")


def _sum(other: str) -> Callable[[Any, Any], Any]:
    def made(table: Any, column: Any) -> Any:
        return pc.add(column, table[other])

    return made


def _plus_one(_: Any, column: Any) -> Any:
    return pc.add(column, 1)


_OTEL_ENDS: list[_Column] = [
    ("client.address", "client", _same), ("client.port", "client_port", _same), ("server.address", "server", _same),
    ("server.port", "server_port", _same), ("network.peer.address", "server", _same),
    ("network.peer.port", "server_port", _same), ("network.type", "client", _ip_type),
]  # fmt: skip
_ECS_ENDS: list[_Column] = [
    ("@timestamp", "start", _same), ("event.start", "start", _same), ("event.end", "end", _same),
    ("source.ip", "client", _same), ("source.port", "client_port", _same), ("client.ip", "client", _same),
    ("client.port", "client_port", _same), ("destination.ip", "server", _same),
    ("destination.port", "server_port", _same), ("server.ip", "server", _same), ("server.port", "server_port", _same),
    ("network.type", "client", _ip_type),
]  # fmt: skip
_ZEEK_ENDS: list[_Column] = [
    ("ts", "start", _seconds_since_1970), ("id.orig_h", "client", _same), ("id.orig_p", "client_port", _same),
    ("id.resp_h", "server", _same), ("id.resp_p", "server_port", _same),
]  # fmt: skip
_TCP: list[_Column] = [("network.transport", "start", _word("tcp"))]
TABLES: dict[Names, dict[str, list[_Column]]] = {
    "otel": {
        "streams": [*_OTEL_ENDS, *_TCP, ("network.protocol.name", "protocol", _same)],
        "exchanges": [
            *_OTEL_ENDS, *_TCP, ("network.protocol.name", "protocol", _same), ("trace_id", "trace_id", _same),
            ("http.request.method", "method", _of_http), ("url.path", "target", _path), ("url.query", "target", _query),
            ("http.response.status_code", "status", _of_http), ("http.request.size", "request_bytes", _of_http),
            ("http.response.size", "response_bytes", _of_http),
        ],
        "lookups": [*_OTEL_ENDS, ("dns.question.name", "target", _same), ("dns.answers", "addresses", _same)],
    },
    "ecs": {
        "streams": [
            *_ECS_ENDS, *_TCP, ("event.duration", "end", _lasted(1)), ("network.protocol", "protocol", _same),
            ("network.community_id", "community_id", _same), ("source.bytes", "client_bytes", _same),
            ("source.packets", "client_packets", _same), ("destination.bytes", "server_bytes", _same),
            ("destination.packets", "server_packets", _same), ("network.bytes", "client_bytes", _sum("server_bytes")),
            ("network.packets", "client_packets", _sum("server_packets")),
            ("tls.client.server_name", "server_name", _same),
        ],
        "exchanges": [
            *_ECS_ENDS, *_TCP, ("event.duration", "latency_ms", _ns), ("network.protocol", "protocol", _same),
            ("trace.id", "trace_id", _same), ("http.request.id", "request_id", _same),
            ("http.request.method", "method", _of_http), ("url.original", "target", _of_http),
            ("url.path", "target", _path), ("url.query", "target", _query), ("url.domain", "host", _of_http),
            ("http.response.status_code", "status", _of_http), ("http.request.bytes", "request_bytes", _of_http),
            ("http.response.bytes", "response_bytes", _of_http),
        ],
        "lookups": [
            *_ECS_ENDS, ("event.duration", "latency_ms", _ns), ("network.protocol", "start", _word("dns")),
            ("dns.id", "id", _same), ("dns.question.name", "target", _same), ("dns.question.type", "method", _same),
            ("dns.response_code", "status_text", _same), ("dns.resolved_ip", "addresses", _same),
        ],
    },
    "zeek": {
        "streams": [
            *_ZEEK_ENDS, ("proto", "start", _word("tcp")), ("service", "protocol", _same),
            ("duration", "end", _lasted(1e9)), ("orig_bytes", "client_payload_bytes", _same),
            ("resp_bytes", "server_payload_bytes", _same), ("orig_pkts", "client_packets", _same),
            ("resp_pkts", "server_packets", _same), ("community_id", "community_id", _same),
        ],
        "exchanges": [
            *_ZEEK_ENDS, ("trans_depth", "index", _plus_one), ("method", "method", _same), ("host", "host", _same),
            ("uri", "target", _same), ("status_code", "status", _same), ("status_msg", "status_text", _same),
        ],
        "lookups": [
            *_ZEEK_ENDS, ("trans_id", "id", _same), ("rtt", "latency_ms", _seconds), ("query", "target", _same),
            ("qtype_name", "method", _same), ("rcode", "status", _same), ("rcode_name", "status_text", _same),
            ("answers", "addresses", _same),
        ],
    },
}  # fmt: skip


def renamed(table: pa.Table, name: str, schema: Names) -> pa.Table:
    """Return a table with the column names of a schema; ValueError if there is no such schema or it lacks the table."""
    if schema not in TABLES:
        raise ValueError(f"names={schema!r} is not one of {', '.join(SCHEMAS)}")
    if name not in TABLES[schema]:
        raise ValueError(f"{name} has no names of {schema}; these have: {', '.join(TABLES[schema])}")
    names = TABLES[schema][name]
    renamed_columns = {
        new: compute(table, table[column]) for new, column, compute in names if column in table.column_names
    }
    used = {column for _, column, compute in names if compute is _same}
    others = {f"latpcap.{column}": table[column] for column in table.column_names if column not in used}
    return pa.table({**renamed_columns, **others})
