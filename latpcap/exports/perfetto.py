"""Spans as Chrome trace events (JSON), for ui.perfetto.dev, chrome://tracing and speedscope.

A server is a process, a stream a thread. Complete events ("ph": "X") of a thread must nest, so a span that overlaps
another one of its thread is put on a further thread of the same stream.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latpcap.exports.spans import Span

_US = 1000
"""Nanoseconds per microsecond."""


def text(spans: list[Span], zero: int, title: str) -> str:
    """Return the content of the file; times are in us since `zero`, the first span's start, in ns since 1970."""
    servers: dict[str, int] = {}
    lanes: dict[tuple[int, str], list[_Lane]] = {}
    events: list[dict[str, Any]] = []
    threads = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        pid = servers.get(span.server)
        if pid is None:
            pid = servers[span.server] = len(servers) + 1
            events.append(_named("process_name", pid, 0, span.server or "no server"))
        group = f"stream {span.stream}" if span.stream is not None else span.client
        lanes_of_group = lanes.setdefault((pid, group), [])
        lane = next((lane for lane in lanes_of_group if lane.put(span)), None)
        if lane is None:
            threads += 1
            lane = _Lane(threads)
            lane.put(span)
            lanes_of_group.append(lane)
            thread_name = group if len(lanes_of_group) == 1 else f"{group} ({len(lanes_of_group)})"
            events.append(_named("thread_name", pid, threads, thread_name))
        events.append(
            {
                "name": span.name, "cat": span.kind, "ph": "X", "ts": (span.start - zero) / _US,
                "dur": (span.end - span.start) / _US, "pid": pid, "tid": lane.number,
                "args": {key: value for key, value in span.attributes.items() if value is not None},
            }
        )  # fmt: skip
    other = {"title": title, "zero_unix_ns": str(zero)}
    return json.dumps({"displayTimeUnit": "ns", "otherData": other, "traceEvents": events})


class _Lane:
    """A thread, and the spans that are open in it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._open: list[int] = []

    def put(self, span: Span) -> bool:
        """Put the span on this thread if it begins after the open spans or nests in them; return whether it does."""
        while self._open and self._open[-1] <= span.start:
            self._open.pop()
        if self._open and self._open[-1] < span.end:
            return False
        self._open.append(span.end)
        return True


def _named(metadata: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": metadata, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
