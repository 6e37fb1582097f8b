"""JSON Schemas of latpcap's JSON output: the answer (`why --json`), and rows of `findings` and `exchanges`.

A schema's version changes when a key is removed, renamed or redefined. New keys may be added without that, so readers
must ignore unknown keys. The schemas of rows are derived from the tables.
"""

from __future__ import annotations

from typing import Any

from latpcap import _core
from latpcap.answers.why import WHY_VERSION
from latpcap.findings.schema import COLUMNS, schema
from latpcap.lazy import pa
from latpcap.tables import fields

NAMES = ("why", "findings", "exchanges")

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of "why", "findings" or "exchanges"; KeyError for another name."""
    if name == "why":
        return _why()
    if name == "findings":
        return _table(name, schema(), {column: about for column, (_, about) in COLUMNS.items()})
    if name == "exchanges":
        return _table(name, fields(name), {})
    raise KeyError(f"no schema {name!r}; there are {', '.join(NAMES)}")


def _table(name: str, columns_of: pa.Schema, about: dict[str, str]) -> dict[str, Any]:
    columns = {field.name: _type(field.type, nullable=field.nullable) for field in columns_of}
    for column, description in about.items():
        if description:
            columns[column]["description"] = description
    return {
        "$schema": DIALECT,
        "$id": f"urn:latpcap:{name}:{_core.SCHEMA_VERSION}",
        "title": f"Rows of latpcap's table {name}",
        "type": "array",
        "items": {"type": "object", "properties": columns, "required": list(columns)},
    }


def _type(arrow_type: pa.DataType, *, nullable: bool) -> dict[str, Any]:
    if pa.types.is_list(arrow_type):
        return {"type": _or_null("array", nullable), "items": _type(arrow_type.value_type, nullable=False)}
    if pa.types.is_timestamp(arrow_type):
        pattern = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
        return {"type": _or_null("string", nullable), "pattern": pattern, "description": "an instant, UTC"}
    if pa.types.is_boolean(arrow_type):
        return {"type": _or_null("boolean", nullable)}
    if pa.types.is_integer(arrow_type):
        return {"type": _or_null("integer", nullable)}
    if pa.types.is_floating(arrow_type):
        return {"type": _or_null("number", nullable)}
    return {"type": _or_null("string", nullable)}


def _or_null(word: str, nullable: bool) -> str | list[str]:
    return [word, "null"] if nullable else word


_TEXT, _NUMBER, _COUNT = {"type": "string"}, {"type": ["number", "null"]}, {"type": "integer", "minimum": 0}
_CONFIDENCE = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_FINDING = {
    "type": "object",
    "description": "a row of the table findings: see the schema of that name",
    "properties": {"server": {"type": ["string", "null"]}, "cause": _TEXT, "confidence": _CONFIDENCE},
    "required": ["server", "server_port", "cause", "confidence", "streams", "filter"],
}
_PIECE = {
    "type": "object",
    "properties": {"cause": _TEXT, "owner": _TEXT, "duration_ms": _NUMBER, "confidence": _CONFIDENCE},
    "required": ["cause", "owner", "duration_ms", "from_frame", "to_frame", "evidence", "confidence"],
}
_CHECK = {"type": "object", "properties": {"check": _TEXT, "text": _TEXT}, "required": ["check", "most", "text"]}
_HEAD: dict[str, Any] = {
    "schema": {"const": WHY_VERSION, "description": "the version of this form"},
    "kind": {"enum": ["overall", "exchange"], "description": "of all requests, or of one"},
    "file": _TEXT,
    "filter": {"type": ["string", "null"], "description": "the display filter, if there was one"},
    "frames": _COUNT,
    "streams": _COUNT,
    "exchanges": _COUNT,
    "seconds": {"type": "number", "minimum": 0},
    "damage": {"type": "array", "items": _TEXT, "description": "where the file is damaged, in sentences"},
}
"""Properties of every answer."""
_SERVER = {
    "type": "object",
    "properties": {
        "server": _TEXT,
        "requests": _COUNT,
        "slow": _COUNT,
        "family": {"type": ["string", "null"]},
        "grade": {"type": ["string", "null"]},
    },
    "required": ["server", "requests", "slow", "p50_ms", "p99_ms", "total_ms", "family", "grade"],
}
_OVERALL = {
    "headline": {"type": "string", "description": "the answer in a sentence"},
    "capture_kind": {
        "type": "string",
        "description": "the kind of capture: requests, or scan, traceroute, refused, ...",
    },
    "fix": {"type": ["string", "null"], "description": "what mends it, in a sentence"},
    "lead": {"oneOf": [_FINDING, {"type": "null"}], "description": "the finding whose sentence the headline is"},
    "servers": {"type": "array", "items": _SERVER, "description": "the one whose slow requests do most harm first"},
    "slow": {
        "type": "object",
        "description": "of the headline's server: how many requests are slow, and from where on",
        "properties": {"how": {"enum": ["none", "typical", "tail", "outlier"]}, "count": _COUNT, "of": _COUNT},
        "required": ["how", "count", "of", "limit_ms", "path_ms", "worst"],
    },
    "families": {"type": "array", "description": "the slow requests' time, added up by family, the most first"},
    "traffic": {"type": "object", "description": "what that server was asked, and what it answered"},
    "lost": {**_COUNT, "description": "segments lost on the way"},
    "verdict": {"type": "string", "description": "the cause of the headline, scan, no_time or no_exchanges"},
    "server": {"type": "string", "description": "address:port of the headline; absent without exchanges"},
    "confidence": {**_CONFIDENCE, "description": "0.9 and more: proven; above 0.5: probable; else suspected"},
    "p50_ms": _NUMBER,
    "p90_ms": _NUMBER,
    "p99_ms": _NUMBER,
    "findings": {
        "type": "array",
        "items": _FINDING,
        "description": "the headline's own, what took time",
    },
    "events": {"type": "array", "items": _FINDING, "description": "what happened to connections"},
    "quality": {"type": "array", "items": _CHECK, "description": "what of the capture limits the answer"},
    "actions": {
        "type": "array",
        "description": "with --actions: the rows of the table actions, what one client did to get one thing",
        "items": {"type": "object", "required": ["action", "server", "name", "total_ms", "request_ms", "ended"]},
    },
    "beside": {"type": "array", "description": "what a trace or a log taken beside the capture says of it"},
}
"""Properties of the answer for all requests."""
_EXCHANGE = {
    "exchange": _COUNT,
    "stream": _COUNT,
    "latency_ms": _NUMBER,
    "complete": {"type": "boolean"},
    "top_cause": {"type": ["string", "null"]},
    "causes": {"type": "array", "items": _PIECE, "description": "its time in pieces, without gap or overlap"},
}
"""Properties of the answer for one exchange."""


def _why() -> dict[str, Any]:
    """Return the JSON schema of `Why.to_dict()`."""
    return {
        "$schema": DIALECT,
        "$id": f"urn:latpcap:why:{WHY_VERSION}",
        "title": "latpcap's answer: why were the requests slow",
        "type": "object",
        "properties": _HEAD,
        "required": ["schema", "kind", "seconds", "damage"],
        "oneOf": [
            {
                "properties": {"kind": {"const": "overall"}, **_OVERALL},
                "required": ["headline", "capture_kind", "verdict", "findings", "events", "quality"],
            },
            {"properties": {"kind": {"const": "exchange"}, **_EXCHANGE}, "required": list(_EXCHANGE)},
        ],
    }
