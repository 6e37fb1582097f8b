"""Types of the numbers of an answer; the keys are those of `Why.to_dict()`.

Findings and checks are dataclasses here. Most keys of `Overall` exist only where requests were judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from latpcap.answers.traffic import Traffic
from latpcap.findings.lookups import Lookups
from latpcap.findings.openings import Pauses
from latpcap.findings.quality import Check
from latpcap.findings.schema import Finding, Grade, LatencyFinding
from latpcap.findings.socket_options import Pool
from latpcap.user_waits.slow_requests import How


class Part(TypedDict):
    """The main cause's part of a percentile of the latencies."""

    ms: float
    of_ms: float
    share: float


class Share(TypedDict):
    """The main cause's share of all time, and its part of three percentiles."""

    p50: Part
    p90: Part
    p99: Part
    all: float


class Typical(TypedDict, total=False):
    """The exchange in the middle of the main finding's time, its `ms` of the cause in `pieces` intervals.

    The last four keys exist only for a stall whose three frames are known.
    """

    exchange: int
    stream: int
    latency_ms: float
    frames: list[int]
    ms: float
    pieces: int
    longest_ms: float
    owner: str
    confidence: float
    bytes: list[int]
    sender: str
    ack_after_ms: float
    release_us: float


class Total(TypedDict):
    """The time of one cause and owner in the table of causes."""

    cause: str
    owner: str
    total_ms: float
    exchanges: int
    proven_ms: float


class Skipped(TypedDict):
    """Frames of a capture without TCP that were not understood."""

    reason: str
    frames: int


class Request(TypedDict):
    """A slow request: its name, its first and last frame, and the cause with the most of its time."""

    exchange: int
    stream: int
    name: str
    latency_ms: float
    frames: list[int]
    cause: str | None
    cause_ms: float


class Slow(TypedDict):
    """The slow requests of the headline's server.

    `limit_ms`, `path_ms` and `trip_ms` are medians: the threshold, the path's part of a latency, and the handshake's
    round trip. `unread` counts slow turns of protocols without a reader, `in_queue` slow requests during a transfer
    that filled a queue.
    """

    how: How
    count: int
    of: int
    limit_ms: float
    path_ms: float
    trip_ms: float
    unread: int
    polls: int
    streams: int
    in_queue: int
    worst: Request | None


class Family(TypedDict):
    """The time of one family of causes in the slow requests, or in all requests where none is slow; by cause in
    `causes`.
    """

    family: str
    ms: float
    share: float
    causes: dict[str, float]


class Row(TypedDict):
    """One server in the list of servers, which is in the order of `CauseTotals.servers`; `behind`: its proxy."""

    server: str
    behind: str | None
    requests: int
    slow: int
    p50_ms: float
    p99_ms: float
    total_ms: float
    family: str | None
    grade: Grade | None


class Behind(TypedDict):
    """The server that the headline's server waited for, and what the requests to it wait for."""

    server: str
    text: str


class Head(TypedDict):
    """The entries about the subject of an answer."""

    file: str
    filter: str | None
    frames: int
    streams: int
    exchanges: int
    seconds: float
    damage: Sequence[str]


class Overall(Head, total=False):
    """The answer for a capture, a stream or an archive."""

    kind: Literal["overall"]
    scope: int | None
    quality: list[Check]
    positions: list[str]
    lost: int
    findings: list[LatencyFinding]
    events: list[Finding]
    verdict: str
    silent: dict[str, int]
    open_ms: float
    ends: dict[str, int]
    shook: list[float] | None
    pushed: int
    halves: int
    skipped: list[Skipped]
    pings: int
    dns: Lookups | None
    capture_kind: str
    capture_sentence: str
    headline: str
    lead: Finding | None
    server: str
    servers: list[Row]
    shown: int
    traffic: Traffic
    slow: Slow
    families: list[Family]
    pauses: Pauses
    cut: int
    incomplete: int
    complete: int
    goodbyes: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    total_ms: float
    causes: list[Total]
    hit: int
    proven: int | None
    share: Share
    confidence: float
    fix: str | None
    owners: dict[str, str]
    backend: Behind
    typical: Typical
    waits_ms: float
    longest_ms: float
    closes_late: bool
    fin_released: int
    first_fast: int
    senders: Mapping[str, Pool]
    beside: list[dict[str, Any]]


class OneExchange(Head):
    """The answer for one exchange."""

    kind: Literal["exchange"]
    exchange: int
    stream: int
    index: int
    protocol: str
    method: str | None
    target: str | None
    status: int | None
    latency_ms: float | None
    client_latency_ms: float | None
    ttfb_ms: float | None
    complete: bool
    cut_by: str | None
    request_first_frame: int
    response_last_frame: int | None
    top_cause: str | None
    causes: list[dict[str, Any]]
