"""Spans as OTLP/JSON, in lines per server: the format of OpenTelemetry's file exporter.

opentelemetry.io/docs/specs/otel/protocol/file-exporter: one TracesData per line, ids in hex, 64-bit numbers as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latpcap.exports.spans import Span

_SPANS_PER_LINE = 1000
"""Upper bound on the spans of a line, since receivers limit the bytes of one."""
_INTERNAL, _CLIENT, _CONSUMER = 1, 3, 5
"""Numbers of OTLP's `SpanKind`."""
_KINDS = {"request": _CLIENT, "lookup": _CLIENT, "push": _CONSUMER}
_ERROR = 2
"""Number of OTLP's status code for an error."""


def lines(spans: list[Span], version: str) -> Iterator[str]:
    """Yield the lines of the file, without line ends."""
    by_server: dict[str, list[Span]] = {}
    for span in spans:
        by_server.setdefault(span.server, []).append(span)
    for server, spans_of_server in by_server.items():
        resource = {"attributes": _attributes({"service.name": server or "unknown"})}
        for begin in range(0, len(spans_of_server), _SPANS_PER_LINE):
            scope = {
                "scope": {"name": "latpcap", "version": version},
                "spans": [_span(span) for span in spans_of_server[begin : begin + _SPANS_PER_LINE]],
            }
            yield json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _span(span: Span) -> dict[str, Any]:
    row = {
        "traceId": span.trace_id, "spanId": span.span_id, "name": span.name,
        "kind": _KINDS.get(span.kind, _INTERNAL), "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end), "attributes": _attributes(span.attributes),
        "status": {"code": _ERROR} if span.error else {},
    }  # fmt: skip
    return row if span.parent_id is None else row | {"parentSpanId": span.parent_id}


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
