"""Compares a server's access log with the requests of a capture.

Reads nginx's and Apache's combined format with the time of a request: nginx's `$request_time` (seconds with a decimal
point, or `rt=`, `request_time=`), Apache's `%D` (integer microseconds at the end). A line belongs to an exchange with
the same method, target and status that ended within a second of it. If any client address of the log is in the capture,
the client must be the same, too.
"""

from __future__ import annotations

import datetime
import re
from collections import defaultdict, deque
from pathlib import Path
from typing import NamedTuple

from latpcap import arrays
from latpcap.errors import LatpcapError
from latpcap.lazy import np
from latpcap.side_sources.source import CONFIRMS, CONTRADICTS, SideSource, lines_of
from latpcap.tables import HasTables
from latpcap.words import say

_LINE = re.compile(
    r'^(?P<client>\S+) \S+ .*?\[(?P<time>[^]]{20,32})\] "(?P<method>[A-Z]+) (?P<target>\S+)[^"]*" (?P<status>\d{3}) '
    r"(?P<rest>.*)$"
)
_NAMED_SECONDS = re.compile(r"\b(?:rt|request_time)[=:]\"?(\d{1,9}\.\d{1,9})")
_SECONDS = re.compile(r"(?:^|[\s\"])(\d{1,9}\.\d{1,9})(?=$|[\s\"])")
_MICROS = re.compile(r"(?:^|\s)(\d{1,15})\s*$")
_MAX_APART_S = 1.0
"""Upper bound on the time between a log line and its exchange: logs have whole seconds, of the end of the request
(nginx) or of its start (Apache).
"""


class _Entry(NamedTuple):
    """A line of the log; `key` is method, target and status, `second` its time since 1970."""

    client: str
    key: tuple[str, str, int]
    second: float
    took_ms: float


def compare(capture: HasTables, path: str | Path) -> SideSource:
    """Compare how long the server's log and the capture say that requests took.

    LatpcapError where the file cannot be read, or no line of it has a request and the time that it took.
    """
    entries = [entry for line in lines_of(path) if (entry := _entry(line))]
    if not entries:
        raise LatpcapError(
            f"{path}: has no line of the combined format with the time that the request took (nginx: add $request_time)"
        )
    exchanges = capture.arrow("exchanges")
    rows = exchanges.select(["stream", "method", "target", "status", "latency_ms"]).to_pylist()
    for row, start, end in zip(
        rows, *(arrays.filled(exchanges, name, 0).tolist() for name in ("start", "end")), strict=True
    ):
        row["start"], row["end"] = start / 1e9, end / 1e9
    streams = capture.arrow("streams").select(["stream", "client"]).to_pydict()
    clients = dict(zip(streams["stream"], streams["client"], strict=True))
    rows = [row for row in rows if row["latency_ms"] is not None and row["method"] and row["status"] is not None]
    stream_clients = set(clients.values())
    by_client = any(entry.client in stream_clients for entry in entries)
    waiting: dict[tuple[str, tuple[str, str, int]], deque[_Entry]] = defaultdict(deque)
    for entry in sorted(entries, key=lambda entry: entry.second):
        waiting[entry.client if by_client else "", entry.key].append(entry)
    pairs: list[tuple[float, float]] = []
    for row in sorted(rows, key=lambda row: row["end"]):
        lines = waiting.get(
            (clients[row["stream"]] if by_client else "", (row["method"], row["target"], row["status"]))
        )
        while lines and lines[0].second + 1 < row["start"] - _MAX_APART_S:
            lines.popleft()  # before this request, and so before all requests that end later
        if lines and lines[0].second <= row["end"] + _MAX_APART_S:
            pairs.append((row["latency_ms"], lines.popleft().took_ms))
    return _compared(pairs, len(rows), len(entries))


def _compared(pairs: list[tuple[float, float]], requests: int, entries: int) -> SideSource:
    numbers: dict[str, float] = {"matched": len(pairs), "requests": requests, "lines": entries}
    if not pairs:
        return SideSource("access_log", (say("log_none", n=entries),), numbers)
    seen, took = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    middle = arrays.percentile(np.sort(seen), 0.5)
    logged = arrays.percentile(np.sort(took), 0.5)
    spent, inside = float(seen.sum()), float(np.minimum(seen, took).sum())
    share = inside / spent if spent else 0.0
    numbers |= {"p50_ms": middle, "p50_logged_ms": logged, "total_ms": spent, "logged_ms": inside}
    first = say("log_found", n=len(pairs), of=requests, logged_ms=logged, seen_ms=middle)
    where = "inside" if share >= CONFIRMS else "outside" if share <= CONTRADICTS else "both"
    second = say(f"log_{where}", share=1 - share if where == "outside" else share)
    return SideSource("access_log", (first, second), numbers)


def _entry(line: str) -> _Entry | None:
    match = _LINE.match(line)
    took_ms = match and _took_ms(match["rest"])
    if not match or took_ms is None:
        return None
    try:
        when = datetime.datetime.strptime(match["time"], "%d/%b/%Y:%H:%M:%S %z").timestamp()
    except (ValueError, OverflowError):
        return None
    return _Entry(match["client"], (match["method"], match["target"], int(match["status"])), when, took_ms)


def _took_ms(rest: str) -> float | None:
    if match := _NAMED_SECONDS.search(rest):
        return float(match[1]) * 1e3
    if seconds := _SECONDS.search(rest):
        return float(seconds[1]) * 1e3
    behind = rest.rpartition('"')[2] if '"' in rest else rest.partition(" ")[2]
    micros = _MICROS.search(behind)
    return int(micros[1]) / 1e3 if micros else None
