"""The requests of HTTP as an HTTP Archive (HAR 1.2), a format of browsers' developer tools.

Returns a plain dict. latpcap keeps neither headers nor bodies: sizes are those of whole messages.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from latpcap import files
from latpcap.errors import OutputError
from latpcap.tables import HasTables
from latpcap.user_waits.waits import KINDS

UNKNOWN = -1
"""HAR's value for an unknown size or time."""
VERSIONS = {"http": "HTTP/1.1", "http2": "HTTP/2", "grpc": "HTTP/2"}
"""Protocols whose exchanges become entries, with HAR's name of the version."""
PORTS = {"http": 80, "https": 443}
COLUMNS = (
    "exchange", "stream", "index", "protocol", "method", "target", "host", "status", "start", "end", "request_bytes",
    "response_bytes", "latency_ms", "request_spread_ms", "service_ms", "response_spread_ms", "top_cause", "cut_by",
    "request_first_frame",
)  # fmt: skip
STREAMS = ("stream", "server", "server_port", "start", "roles_by", "initial_rtt_ms")
TLS = {"version": "tls_version", "roundTrips": "tls_round_trips", "resumed": "tls_resumed",
       "serverName": "tls_server_name", "alpn": "tls_alpn"}  # fmt: skip
"""Keys of `_tls`, and the columns of `connects` that fill them."""
CONNECTS = ("stream", "start", "dns_ms", "handshake_ms", "tls_ms", *TLS.values())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def har_log(scope: HasTables) -> dict[str, Any]:
    """Return the requests of a capture or stream as a HAR 1.2 log, in the order of their starts."""
    exchanges = [row for row in _rows(scope, "exchanges", COLUMNS) if row["method"] or row["protocol"] == "tls"]
    streams = {row["stream"]: row for row in _rows(scope, "streams", STREAMS)}
    tls_ms = {row["stream"]: row["latency_ms"] for row in reversed(exchanges) if row["protocol"] == "tls"}
    connects = {row["stream"]: row for row in _rows(scope, "connects", CONNECTS)}
    first: dict[int, int] = defaultdict(lambda: 1 << 62)
    requests = [row for row in exchanges if row["protocol"] in VERSIONS]
    for row in requests:
        first[row["stream"]] = min(first[row["stream"]], row["index"])
    entries, actions = [], _actions(scope)
    for row in requests:
        opens = row["index"] == first[row["stream"]]
        stream = streams[row["stream"]]
        connect = connects.get(row["stream"]) or _connect(stream, tls_ms) if opens else None
        entry = _entry(row, stream, connect, is_tls=row["stream"] in tls_ms)
        action = actions.get(row["exchange"])
        entries.append(entry if action is None else {**entry, "_action": action})
    entries.sort(key=lambda entry: entry["startedDateTime"])
    creator = {"name": "latpcap", "version": metadata.version("latpcap")}
    return {"log": {"version": "1.2", "creator": creator, "pages": [], "entries": entries}}


def _connect(stream: dict[str, Any], tls_ms: dict[int, float | None]) -> dict[str, Any] | None:
    """Return the row of `connects` for a stream that has none there; None where no SYN was captured."""
    if stream["roles_by"] not in ("syn", "syn_ack") or stream["initial_rtt_ms"] is None:
        return None
    handshake = {"start": stream["start"], "handshake_ms": stream["initial_rtt_ms"]}
    return {**handshake, "tls_ms": tls_ms.get(stream["stream"]), "dns_ms": None}


def _actions(scope: HasTables) -> dict[int, dict[str, Any]]:
    """Return the action of each exchange, with its parts in ms as in the table `actions`."""
    parts = ("action", "total_ms", *(f"{kind}_ms" for kind in (*KINDS, "other")))
    rows = {row["action"]: row for row in scope.arrow("actions").select(list(parts)).to_pylist()}
    waits = scope.arrow("waits").select(["action", "kind", "table", "row"]).to_pylist()
    return {
        row["row"]: rows[row["action"]] for row in waits if row["kind"] == "request" and row["table"] == "exchanges"
    }


def write(log: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the log as JSON, whole or not at all; OutputError where the file cannot be written."""
    try:
        files.write(path, json.dumps(log, indent=1).encode())
    except OSError as problem:
        raise OutputError(f"{os.fspath(path)}: {problem.strerror or problem}") from None


def _rows(scope: HasTables, name: Any, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return some columns of a table as dicts, instants in ns since 1970."""
    table = scope.arrow(name).select(list(columns))
    for instant in {"start", "end"}.intersection(columns):
        table = table.set_column(table.column_names.index(instant), instant, table[instant].cast("int64"))
    return table.to_pylist()


def _entry(
    row: dict[str, Any], stream: dict[str, Any], connect: dict[str, Any] | None, *, is_tls: bool
) -> dict[str, Any]:  # fmt: skip
    """Return the entry of one request, with its connection's set-up if it is the first one there."""
    begin, times = _timings(row, connect)
    url = _url(row, stream, "https" if is_tls else "http")
    version = VERSIONS[row["protocol"]]
    headers = [{"name": "Host", "value": row["host"]}] if row["host"] else []
    query = parse_qsl(urlsplit(url).query, keep_blank_values=True) if "?" in url else []
    status = row["status"] if row["protocol"] != "grpc" else 200 if row["status"] is not None else None
    answer = row["response_bytes"]
    entry = {
        "startedDateTime": (_EPOCH + timedelta(microseconds=begin // 1000)).isoformat(timespec="microseconds"),
        "time": sum(ms for name, ms in times.items() if name != "ssl" and ms >= 0),
        "request": {
            "method": row["method"], "url": url, "httpVersion": version, "cookies": [], "headers": headers,
            "queryString": [{"name": name, "value": value} for name, value in query], "headersSize": UNKNOWN,
            "bodySize": UNKNOWN,
        },
        "response": {
            "status": status or 0, "statusText": "", "httpVersion": version, "cookies": [], "headers": [],
            "content": {"size": UNKNOWN if answer is None else answer, "mimeType": ""}, "redirectURL": "",
            "headersSize": UNKNOWN, "bodySize": UNKNOWN,
        },
        "cache": {},
        "timings": times,
        "serverIPAddress": stream["server"],
        "connection": str(row["stream"]),
        "_exchange": row["exchange"],
        "_frame": row["request_first_frame"],
    }  # fmt: skip
    tls = {key: connect[column] for key, column in TLS.items() if connect and connect.get(column) is not None}
    if tls:
        entry["_tls"] = tls
    notes = [f"most of it: {row['top_cause']}"] if row["top_cause"] else []
    notes += [f"not complete: {row['cut_by']}"] if row["cut_by"] else []
    if notes:
        entry["comment"] = "; ".join(notes)
    return entry


def _timings(row: dict[str, Any], connect: dict[str, Any] | None) -> tuple[int, dict[str, float]]:
    """Return the start of an entry and its parts. A connection's first request includes the time of its set-up."""
    parts = ("request_spread_ms", "service_ms", "response_spread_ms")
    durations: list[float] = [UNKNOWN if row[part] is None else row[part] for part in parts]
    send, wait, receive = durations
    times: dict[str, float] = dict.fromkeys(("blocked", "dns", "connect", "ssl"), UNKNOWN)
    begin = int(row["start"])
    if connect is not None and connect["handshake_ms"] is not None:
        tls, dns = connect["tls_ms"], connect["dns_ms"]
        times["connect"] = connect["handshake_ms"] + (tls or 0.0)
        times["ssl"] = UNKNOWN if tls is None else tls
        times["dns"] = UNKNOWN if dns is None else dns
        begin = connect["start"] - round((dns or 0.0) * 1e6)
        times["blocked"] = max(0.0, (row["start"] - begin) / 1e6 - (dns or 0.0) - times["connect"])
    return begin, {**times, "send": send, "wait": wait, "receive": receive}


def _url(row: dict[str, Any], stream: dict[str, Any], scheme: str) -> str:
    """Return the absolute URL. A target may be absolute, or name a host only (CONNECT)."""
    target = row["target"] or "/"
    if "://" in target.partition("?")[0] or row["method"] == "CONNECT":
        return str(target)
    address, port = stream["server"], stream["server_port"]
    host = row["host"] or (f"[{address}]" if ":" in address else address)
    if not row["host"] and port != PORTS[scheme]:
        host = f"{host}:{port}"
    return f"{scheme}://{host}{target if target.startswith('/') else f'/{target}'}"
