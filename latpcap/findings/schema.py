"""What a finding says: a dataclass whose fields are the columns of the table of findings; knows no capture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import floor
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from latpcap.vocabulary import WORTH, worth
from latpcap.vocabulary import graded as grade_word

if TYPE_CHECKING:
    import pyarrow as pa

Kind: TypeAlias = Literal[
    "latency",
    "queue",
    "wait",
    "transfer",
    "silence",
    "push",
    "connection",
    "setup",
    "one_way",
    "change",
    "harmless",
    "rest",
]
Harmful: TypeAlias = Literal["never", "late", "path"]
"""What users had of it: `answer.py`."""
Grade: TypeAlias = Literal["proven", "probable", "suspected", "harmless", "unknown"]
State: TypeAlias = Literal["on", "off", "mixed", "unknown"]
"""Of a socket option: what the packets tell of it."""

COLUMNS: dict[str, tuple[str, str]] = {
    "finding": ("uint32", "its number, from 0, the most important first"),
    "kind": (
        "string",
        "latency (took time of exchanges), queue (what a server's time waited for), wait (what users waited for that "
        "is no answered request), transfer (what held back a download or an upload), silence (not answered, or "
        "answering no more), push (waited in its sender's kernel, unasked), connection (happened to connections), "
        "setup (before a request), one_way (suspected from one direction), change (an option was set on the way), "
        "harmless (nobody waited), rest (servers beyond the first thousand, in one row)",
    ),
    "server": ("string", "the server's address"),
    "server_port": ("uint16", "the server's port"),
    "cause": ("string", "a word of the causes table, or nagle + delayed_ack, or what happened to connections"),
    "owner": ("string", "who owns it: client, server, network, capture, backend (behind it); of a stall: the sender"),
    "held_by": ("string", "of a stall: the side that held its ACKs back; else null"),
    "clients": ("uint32", "how many client addresses this server had"),
    "client": ("string", "the client address that it took the most time of"),
    "client_share": ("double", "that client's share of the finding's time"),
    "exchanges": ("uint64", "exchanges hit; of kind push the messages that waited"),
    "of_exchanges": (
        "uint64",
        "of so many that were judged (complete ones, or those that began where none is); of kind push all pushes",
    ),
    "streams": ("uint64", "streams hit"),
    "of_streams": ("uint64", "of so many; null for latency"),
    "total_ms": ("double", "time of all exchanges hit"),
    "share": ("double", "of all latency of this server"),
    "of_p50_ms": ("double", "of the median latency: its share of the exchanges around it, in ms"),
    "of_p50_share": ("double", "that share"),
    "of_p90_ms": ("double", "the same of the 90th percentile"),
    "of_p90_share": ("double", ""),
    "of_p99_ms": ("double", "the same of the 99th percentile"),
    "of_p99_share": ("double", ""),
    "median_ms": ("double", "per exchange hit"),
    "p10_ms": ("double", ""),
    "p90_ms": ("double", ""),
    "max_ms": ("double", ""),
    "grade": ("string", "proven, probable, suspected, harmless or unknown"),
    "confidence": ("double", "0 to 1; proven from 0.9 on"),
    "proven": ("uint64", "exchanges hit whose own verdict is proven"),
    "limited_by": ("strings", "checks of the capture's quality that lowered the confidence"),
    "rival": ("string", "the strongest other explanation"),
    "rival_lost": ("string", "why it lost, or that it did not"),
    "worst_exchange": ("uint64", "the exchange that it took the most time of"),
    "worst_stream": ("uint32", ""),
    "worst_ms": ("double", ""),
    "worst_frames": ("frames", "up to three frames that show it"),
    "typical_exchange": (
        "uint64",
        "the exchange in the middle of its time: half of it lies in exchanges no longer than this",
    ),
    "typical_stream": ("uint32", ""),
    "typical_ms": ("double", ""),
    "typical_frames": ("frames", ""),
    "filter": ("string", "a display filter for Wireshark that shows the typical frames"),
    "sender": ("string", "whose bytes waited: the options below are this side's, the ACKs its peer's"),
    "nodelay": ("string", "the sender's TCP_NODELAY: on, off, mixed (its connections differ) or unknown"),
    "nodelay_seen_on": ("uint64", "small segments sent over unacknowledged small ones"),
    "nodelay_seen_off": ("uint64", "small segments that left with the ACK that they had waited for"),
    "nodelay_opportunities": ("uint64", "moments in which on and off would have differed"),
    "nodelay_streams_on": ("uint64", "connections that show it on; 0 where they do not tell"),
    "nodelay_streams_off": ("uint64", "connections that show it off; 0 where they do not tell"),
    "delayed_ack": ("string", "does the peer delay its ACKs: on, off (TCP_QUICKACK) or unknown"),
    "delayed_ack_seen_on": ("uint64", "ACKs held"),
    "delayed_ack_seen_off": ("uint64", "ACKs at once, past the quick ACKs of a connection's start"),
    "delayed_ack_opportunities": ("uint64", ""),
    "cork": ("string", "the sender's TCP_CORK (MSG_MORE, tcp_nopush): on, off or unknown"),
    "cork_seen_on": ("uint64", "tails that left with the cork's timer"),
    "cork_seen_off": ("uint64", "small parts of one message that left apart"),
    "cork_opportunities": ("uint64", ""),
    "hold_min_ms": ("double", "the shortest of the peer's held ACKs, beyond the path"),
    "hold_median_ms": ("double", ""),
    "hold_max_ms": ("double", ""),
    "timer_ms": ("double", "the peer's delayed-ACK timer, fitted; null where its holds fit none"),
    "tick_ms": ("double", "the grid on which the holds end; null where there is none"),
    "tick_p": ("double", "the chance that such a grid is luck (Rayleigh test)"),
    "os_hint": ("string", "whose timer that is, where that is known"),
    "fix": ("string", "what mends it; null where nothing does"),
    "fix_side": ("string", "who has to: client or server"),
    "fix_cost": ("string", "what that costs"),
    "gain_p50_low_ms": ("double", "the median latency without it, at best"),
    "gain_p50_high_ms": (
        "double",
        "and at worst: what is proven of it gone; not below now where `gain_open` sentence why",
    ),
    "gain_p99_low_ms": ("double", "the 99th percentile without it, at best"),
    "gain_rate_low": ("double", "requests per second against now; null unless clients ask again at once"),
    "gain_rate_high": ("double", ""),
    "gain_limit": ("string", "what is the limit then: server, path and programs, or unknown"),
    "gain_open": ("string", "why nothing may be won; null where something is, at worst"),
    "rate_per_s": ("double", "of a flood: connections a second"),
    "text": ("string", "the finding in a sentence, where it is not about latency"),
    "harm": (
        "string",
        "what users had of it: never (they did not get what they wanted), late (they waited beyond the path), path "
        "(they waited for round trips that fewer would spare); null where it cannot be the headline",
    ),
    "sentence": ("string", "the id of its sentence in the catalogue of words; null where it has none"),
}
"""Each column's type and meaning."""


UNGRADED = cast(Grade, "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One row of the table of findings; `COLUMNS` has the meanings. None where a column says nothing of this kind."""

    finding: int = 0
    kind: Kind
    server: str
    server_port: int
    cause: str
    owner: str
    held_by: str | None = None
    clients: int | None = None
    client: str | None = None
    client_share: float | None = None
    exchanges: int | None = None
    of_exchanges: int | None = None
    streams: int | None = None
    of_streams: int | None = None
    total_ms: float | None = None
    share: float | None = None
    of_p50_ms: float | None = None
    of_p50_share: float | None = None
    of_p90_ms: float | None = None
    of_p90_share: float | None = None
    of_p99_ms: float | None = None
    of_p99_share: float | None = None
    median_ms: float | None = None
    p10_ms: float | None = None
    p90_ms: float | None = None
    max_ms: float | None = None
    grade: Grade = UNGRADED
    confidence: float = -1.0
    """Where its own case says no more, what its sentence is worth (`vocabulary.WORTH`); and so its grade."""
    proven: int | None = None
    limited_by: tuple[str, ...] = ()
    rival: str | None = None
    rival_lost: str | None = None
    worst_exchange: int | None = None
    worst_stream: int | None = None
    worst_ms: float | None = None
    worst_frames: tuple[int, ...] = ()
    typical_exchange: int | None = None
    typical_stream: int | None = None
    typical_ms: float | None = None
    typical_frames: tuple[int, ...] = ()
    filter: str | None = None
    sender: str | None = None
    nodelay: State | None = None
    nodelay_seen_on: int | None = None
    nodelay_seen_off: int | None = None
    nodelay_opportunities: int | None = None
    nodelay_streams_on: int | None = None
    nodelay_streams_off: int | None = None
    delayed_ack: State | None = None
    delayed_ack_seen_on: int | None = None
    delayed_ack_seen_off: int | None = None
    delayed_ack_opportunities: int | None = None
    cork: State | None = None
    cork_seen_on: int | None = None
    cork_seen_off: int | None = None
    cork_opportunities: int | None = None
    hold_min_ms: float | None = None
    hold_median_ms: float | None = None
    hold_max_ms: float | None = None
    timer_ms: float | None = None
    tick_ms: float | None = None
    tick_p: float | None = None
    os_hint: str | None = None
    fix: str | None = None
    fix_side: str | None = None
    fix_cost: str | None = None
    gain_p50_low_ms: float | None = None
    gain_p50_high_ms: float | None = None
    gain_p99_low_ms: float | None = None
    gain_rate_low: float | None = None
    gain_rate_high: float | None = None
    gain_limit: str | None = None
    gain_open: str | None = None
    rate_per_s: float | None = None
    text: str | None = None
    harm: Harmful | None = None
    sentence: str | None = None
    values: Mapping[str, Any] | None = None
    """What the sentence names; no column."""

    def __post_init__(self) -> None:
        """Fills in how sure it is, and the word for that."""
        if self.confidence < 0:
            named = self.sentence if self.sentence in WORTH else self.cause
            object.__setattr__(self, "confidence", worth(named))
        if not self.grade:
            object.__setattr__(self, "grade", grade(self.cause, self.confidence))

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, in the order of the columns (for JSON and Arrow)."""
        values = ((name, getattr(self, name)) for name in COLUMNS)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyFinding(Finding):
    """A finding that took time of exchanges: these columns are known of each."""

    clients: int
    exchanges: int
    of_exchanges: int
    streams: int
    total_ms: float
    share: float
    of_p50_ms: float
    of_p50_share: float
    of_p90_ms: float
    of_p90_share: float
    of_p99_ms: float
    of_p99_share: float
    median_ms: float
    p10_ms: float
    p90_ms: float
    max_ms: float
    proven: int
    rival: str
    rival_lost: str
    worst_exchange: int
    worst_stream: int
    worst_ms: float
    typical_exchange: int
    typical_stream: int
    typical_ms: float
    filter: str
    sender: str
    nodelay: State
    nodelay_seen_on: int
    nodelay_seen_off: int
    nodelay_opportunities: int
    nodelay_streams_on: int
    nodelay_streams_off: int
    delayed_ack: State
    delayed_ack_seen_on: int
    delayed_ack_seen_off: int
    delayed_ack_opportunities: int
    cork: State
    cork_seen_on: int
    cork_seen_off: int
    cork_opportunities: int


BRIEF = (
    "finding", "server", "server_port", "cause", "owner", "grade", "confidence", "exchanges", "of_exchanges", "share",
    "of_p50_ms", "of_p99_ms", "median_ms", "gain_p50_low_ms", "gain_p50_high_ms", "filter", "text",
)  # fmt: skip
"""The columns that fit a terminal."""


@cache
def schema() -> pa.Schema:
    """Which columns does the table of findings have? The meaning of each is its field's metadata."""
    import pyarrow as pa

    kinds = {
        "string": pa.string(),
        "double": pa.float64(),
        "uint16": pa.uint16(),
        "uint32": pa.uint32(),
        "uint64": pa.uint64(),
        "frames": pa.list_(pa.uint64()),
        "strings": pa.list_(pa.string()),
    }
    return pa.schema(
        [
            pa.field(name, kinds[kind], metadata={"meaning": sentence} if sentence else None)
            for name, (kind, sentence) in COLUMNS.items()
        ]
    )


def graded(confidence: float) -> str:
    """A grade with what it was measured to be worth: "proven (0.99)". Never rounded up to the next grade's."""
    sure = round(confidence, 6)
    return f"{grade_word(confidence)} ({floor(round(100 * sure, 4)) / 100:.2f})"


def grade(cause: str, confidence: float) -> Grade:
    """Which word stands for this confidence? "proven", "probable", "suspected", or "unknown"."""
    return "unknown" if cause in ("unknown", "capture_gap") else cast(Grade, grade_word(confidence))
