"""The phases that curl -w would have printed for the first request of each connection.

Times are seconds from the connection's SYN. curl counts from its start, so its times include the name look-up.
"""

from __future__ import annotations

from typing import Any

from latpcap import arrays
from latpcap.format import count, endpoint, printable
from latpcap.lazy import np, pa, pc
from latpcap.reports.report_text import Report, Subject, ns_of
from latpcap.tables import Needed, TableSlice

HTTP = ("http", "http2", "tls")
MAX_CONNECTIONS = 20
"""Upper bound on the connections printed; `Report.numbers` has all."""
_COLUMNS = [
    "stream", "protocol", "method", "target", "status", "start", "response_start", "end", "complete", "response_bytes",
]  # fmt: skip


def needed() -> Needed:
    """Return the columns that `report` reads: of `events` only segments with SYN."""
    return {
        "exchanges": TableSlice(_COLUMNS),
        "streams": TableSlice(("server", "server_port", "start")),
        "events": TableSlice(("stream", "time", "from_client", "flags"), _syns),
    }


def _syns(events: Any) -> Any:
    return pc.match_substring(events["flags"].cast(pa.string()), "SYN")


def report(capture: Subject, server: str | None) -> Report:
    """Return curl's phases of the first request of each HTTP connection. ValueError without any."""
    exchanges, streams = capture.arrow("exchanges"), capture.arrow("streams")
    first = _first(exchanges)
    secured = _handshakes(exchanges)
    opened = _opened(capture)
    lines: list[str] = []
    numbers: list[dict[str, Any]] = []
    for row in streams.select(["stream", "server", "server_port", "start"]).to_pylist():
        name = endpoint(row["server"], row["server_port"]) if row["server"] else "?"
        request = first.get(row["stream"])
        if request is None or server not in (None, row["server"], name):
            continue
        opening = opened.get(row["stream"])
        numbers.append(_phases(request, name, opening, secured.get(row["stream"])))
    if not numbers:
        raise ValueError("no request by HTTP in this capture: curl asks those")
    for phases in numbers[:MAX_CONNECTIONS]:
        lines += [*([""] if lines else []), *_lines(phases)]
    unknown = [
        "time_namelookup: the look-up came before the connection",
        "time_pretransfer: when the request passed the capture",
    ]
    if len(numbers) > MAX_CONNECTIONS:
        unknown.append(
            f"{count(len(numbers) - MAX_CONNECTIONS, 'further connection')}: --server limits, --json has all"
        )
    if any(phases["time_connect"] is None for phases in numbers):
        unknown.append("where the handshake is not in the capture, times count from the request")
    unknown.append("times are those of the point of capture: beside the server they lack the path")
    return Report("curl", lines, unknown, {"requests": numbers})


def _first(exchanges: Any) -> dict[int, dict[str, Any]]:
    """Return each stream's first complete HTTP request; for TLS without keys the first exchange of records."""
    is_request = arrays.equals(exchanges, "protocol", *HTTP) & ~arrays.equals(exchanges, "method", "handshake")
    rows = np.flatnonzero(is_request & arrays.numbers(exchanges, "complete"))
    _, first = np.unique(arrays.numbers(exchanges, "stream")[rows], return_index=True)
    rows = rows[first]
    columns = [arrays.taken(exchanges, name, rows).to_pylist() for name in _COLUMNS]
    requests = (dict(zip(_COLUMNS, values, strict=True)) for values in zip(*columns, strict=True))
    return {row["stream"]: row for row in requests}


def _handshakes(exchanges: Any) -> dict[int, int]:
    """Return the end of each stream's TLS handshake, in ns."""
    rows = np.flatnonzero(arrays.equals(exchanges, "method", "handshake"))
    stream, end = arrays.numbers(exchanges, "stream")[rows], arrays.numbers(exchanges, "end")[rows]
    return dict(zip(stream.tolist(), end.tolist(), strict=True))


def _opened(capture: Subject) -> dict[int, tuple[int, int]]:
    """Return the instants of each stream's SYN and SYN, ACK, in ns."""
    events = capture.arrow("events")
    flags, words = arrays.codes(events, "flags")
    rows = np.flatnonzero(np.isin(flags, [code for code, word in enumerate(words) if "SYN" in word]))
    started: dict[int, int] = {}
    opened: dict[int, tuple[int, int]] = {}
    columns = (arrays.numbers(events, column)[rows].tolist() for column in ("stream", "time", "from_client"))
    for stream, time, from_client in zip(*columns, strict=True):
        if from_client:
            started.setdefault(stream, time)
        elif stream in started:
            opened.setdefault(stream, (started[stream], time))
    return opened


def _phases(row: dict[str, Any], server: str, opening: tuple[int, int] | None, tls: int | None) -> dict[str, Any]:
    start, answered, end = (ns_of(row[column]) for column in ("start", "response_start", "end"))
    begin = start if opening is None else opening[0]

    def seconds(at: int | None) -> float | None:
        return None if at is None else (at - begin) / 1e9

    return {
        "server": server,
        "stream": row["stream"],
        "request": " ".join(printable(word) for word in (row["method"], row["target"]) if word) or row["protocol"],
        "http_code": row["status"],
        "time_connect": None if opening is None else seconds(opening[1]),
        "time_appconnect": seconds(tls),
        "time_pretransfer": seconds(start),
        "time_starttransfer": seconds(answered),
        "time_total": seconds(end),
        "size_download": row["response_bytes"],
    }


def _lines(phases: dict[str, Any]) -> list[str]:
    names = ("time_connect", "time_appconnect", "time_pretransfer", "time_starttransfer", "time_total")
    lines = [f"{phases['request']} at {phases['server']} (tcp.stream eq {phases['stream']})"]
    for name in names:
        value = phases[name]
        if value is None and name == "time_appconnect":
            value = 0.0  # as curl prints it without TLS
        lines.append(f"{name:>20}:  {'?' if value is None else f'{value:.6f}s'}")
    code = "000" if phases["http_code"] is None else f"{phases['http_code']:03}"
    return [*lines, f"{'http_code':>20}:  {code}", f"{'size_download':>20}:  {phases['size_download']}"]
