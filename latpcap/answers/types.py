"""Types of the numbers of an answer. The fields have the names and the order of the keys of `Why.to_dict()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NotRequired, TypeAlias, TypedDict

from latpcap import words
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


class Typical(TypedDict):
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
    bytes: NotRequired[list[int]]
    sender: NotRequired[str]
    ack_after_ms: NotRequired[float]
    release_us: NotRequired[float]


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


@dataclass(frozen=True, kw_only=True)
class Head:
    """The entries about the subject of an answer."""

    file: str
    filter: str | None
    frames: int
    streams: int
    exchanges: int
    seconds: float
    damage: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class CommonFacts:
    """Facts about a capture, a stream or an archive, with or without requests."""

    head: Head
    scope: int | None
    quality: list[Check]
    positions: list[str]
    lost: int
    findings: list[LatencyFinding]
    other_findings: list[Finding]
    """The findings that are not of kind "latency"; key `events`."""
    capture_kind: str
    capture_sentence: str
    dns: Lookups | None

    def of_kind(self, *kinds: str) -> list[Finding]:
        """Return the other findings of these kinds."""
        return [finding for finding in self.other_findings if finding.kind in kinds]

    def of_cause(self, cause: str) -> list[Finding]:
        """Return the other findings of this cause."""
        return [finding for finding in self.other_findings if finding.cause == cause]


@dataclass(frozen=True, kw_only=True)
class NoRequests:
    """Facts about connections without a complete exchange."""

    common: CommonFacts
    verdict: str = "no_exchanges"
    silent: dict[str, int]
    shook: list[float] | None
    ends: dict[str, int]
    open_ms: float
    skipped: list[Skipped]
    pings: int


@dataclass(frozen=True, kw_only=True)
class WithRequests:
    """Facts about the requests of the headline's server. Where a cause took time they are `Judged`."""

    common: CommonFacts
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
    verdict: str
    """The cause of most of their time; "no_time" without one."""

    @property
    def requests(self) -> WithRequests:
        """Itself, as `Judged.requests`."""
        return self


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Facts about requests, and about the cause of most of their time, whose are `confidence` and `fix`."""

    requests: WithRequests
    hit: int
    proven: int | None
    share: Share
    confidence: float
    fix: str | None
    owners: dict[str, str]
    typical: Typical
    waits_ms: float
    longest_ms: float
    fin_released: int
    first_fast: int
    closes_late: bool
    backend: Behind | None
    senders: Mapping[str, Pool]
    pushed: int
    halves: int

    @property
    def common(self) -> CommonFacts:
        """The facts that do not depend on requests."""
        return self.requests.common


RequestFacts: TypeAlias = WithRequests | Judged
"""Facts about requests: `requests` and `common` of each."""
Facts: TypeAlias = NoRequests | RequestFacts
"""What a headline is chosen from."""
_KEYS = {"other_findings": "events"}
"""Fields whose key in `to_dict` has another name."""


def _flat(facts: Facts | CommonFacts | Head | OneExchange) -> dict[str, Any]:
    """Return the fields by their keys, those of the facts inside included; the order is that of the fields."""
    plain: dict[str, Any] = {}
    for name, value in vars(facts).items():
        is_inside = isinstance(value, Head | CommonFacts | WithRequests)
        plain |= _flat(value) if is_inside else {_KEYS.get(name, name): value}
    return plain


@dataclass(frozen=True)
class Headline:
    """The first sentence of an answer, and what it has the sentences of."""

    clause: str
    """The sentence without its full stop."""
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    text: str = field(init=False)

    def __post_init__(self) -> None:
        """Write the sentence in the current language."""
        object.__setattr__(self, "text", words.say("sentence", text=self.clause))

    def has_sentence(self, finding: Finding) -> bool:
        """Return whether it has this finding's sentence, or that of another finding with an equal one."""
        return bool(finding.text) and finding.text in {row.text for row in self.findings}


@dataclass(frozen=True)
class Overall:
    """The answer for a capture, a stream or an archive: facts, and the headline that was chosen from them."""

    facts: Facts
    lead: Finding | None
    """The finding whose sentence is the headline; None if the headline is about the causes of requests."""
    push: Finding | None
    """Without such a finding: the held pushes that may be the headline."""
    headline: Headline
    verdict: str
    confidence: float | None
    fix: str | None
    beside: Sequence[dict[str, Any]] = ()

    @property
    def push_in_headline(self) -> Finding | None:
        """The held pushes, if the headline has their sentence."""
        return self.push if self.push is not None and self.headline.has_sentence(self.push) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values; what applies only to judged requests has no key without them."""
        facts = self.facts
        common = facts.common
        plain = _flat(facts) | {
            "quality": [check.to_dict() for check in common.quality],
            "findings": [finding.to_dict() for finding in (*filter(None, [self.lead]), *common.findings)],
            "events": [finding.to_dict() for finding in common.other_findings],
            "verdict": self.verdict,
        }
        if isinstance(facts, Judged):
            plain["senders"] = {side: asdict(pool) for side, pool in facts.senders.items()}
            if facts.backend is None:
                del plain["backend"]
        plain |= {"lead": self.lead and self.lead.to_dict(), "headline": self.headline.text}
        if self.confidence is not None:
            plain |= {"confidence": self.confidence, "fix": self.fix}
        return plain | ({"beside": self.beside} if self.beside else {})


@dataclass(frozen=True, kw_only=True)
class OneExchange:
    """The answer for one exchange."""

    head: Head
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

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return _flat(self)
