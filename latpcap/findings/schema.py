"""One finding: a dataclass whose fields are the columns of the table of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import floor
from typing import Annotated, Any, Literal, TypeAlias, cast, get_type_hints

from latpcap.lazy import pa
from latpcap.vocabulary import WORTH, grade_of, worth

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
"""The harm to users (column `harm`), by which `answers/headline.py` selects the headline."""
Grade: TypeAlias = Literal["proven", "probable", "suspected", "harmless", "unknown"]
State: TypeAlias = Literal["on", "off", "mixed", "unknown"]
"""State of a socket option, inferred from packets."""
UNGRADED = cast(Grade, "")
"""Default of `Finding.grade`, replaced by the grade of its confidence."""
BRIEF = (
    "finding", "server", "server_port", "cause", "owner", "grade", "confidence", "exchanges", "of_exchanges", "share",
    "of_p50_ms", "of_p99_ms", "median_ms", "gain_p50_low_ms", "gain_p50_high_ms", "filter", "text",
)  # fmt: skip
"""The columns that fit a terminal."""


def wireshark_filter(stream: int, *frames: int) -> str:
    """Return the display filter of a stream, or of these frames of it."""
    chosen = f" and frame.number in {{{', '.join(map(str, frames))}}}" if frames else ""
    return f"tcp.stream eq {stream}{chosen}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One row of the table of findings. Each column has its Python type, its type in the table, and its meaning.

    None if a column does not apply to this kind.
    """

    finding: Annotated[int, "uint32", "its number, from 0"] = 0
    kind: Annotated[
        Kind, "string",
        "latency (took time of exchanges), queue (what a server's time waited for), wait (what users waited "
        "for that is no answered request), transfer (what held back a download or an upload), silence (not "
        "answered, or answering no more), push (an unsolicited message waited in its sender's kernel), connection "
        "(happened to connections), setup (before a request), one_way (suspected from one direction), change (an "
        "option was set on the way), harmless (nobody waited), rest (servers beyond the first thousand, in one row)",
    ]  # fmt: skip
    server: Annotated[str, "string", "the server's address"]
    server_port: Annotated[int, "uint16", "the server's port"]
    cause: Annotated[
        str, "string",
        "a word of the causes table, or nagle + delayed_ack, or what happened to connections",
    ]  # fmt: skip
    owner: Annotated[
        str, "string",
        "who owns it: client, server, network, capture, backend (behind it); of a stall: the sender",
    ]  # fmt: skip
    held_by: Annotated[str | None, "string", "of a stall: the side that held its ACKs back; else null"] = None
    clients: Annotated[int | None, "uint32", "how many client addresses this server had"] = None
    client: Annotated[str | None, "string", "the client address that it took the most time of"] = None
    client_share: Annotated[float | None, "double", "that client's share of the finding's time"] = None
    exchanges: Annotated[int | None, "uint64", "exchanges hit; of kind push the messages that waited"] = None
    of_exchanges: Annotated[
        int | None, "uint64",
        "of so many that were judged (complete ones, or those that began where none is); of kind push all "
        "pushes",
    ] = None  # fmt: skip
    streams: Annotated[int | None, "uint64", "streams hit"] = None
    of_streams: Annotated[int | None, "uint64", "of so many; null for latency"] = None
    total_ms: Annotated[float | None, "double", "time of all exchanges hit"] = None
    share: Annotated[float | None, "double", "of all latency of this server"] = None
    of_p50_ms: Annotated[
        float | None, "double",
        "of the median latency: its share of the exchanges around it, in ms",
    ] = None  # fmt: skip
    of_p50_share: Annotated[float | None, "double", "that share"] = None
    of_p90_ms: Annotated[float | None, "double", "the same of the 90th percentile"] = None
    of_p90_share: Annotated[float | None, "double"] = None
    of_p99_ms: Annotated[float | None, "double", "the same of the 99th percentile"] = None
    of_p99_share: Annotated[float | None, "double"] = None
    median_ms: Annotated[float | None, "double", "per exchange hit"] = None
    p10_ms: Annotated[float | None, "double"] = None
    p90_ms: Annotated[float | None, "double"] = None
    max_ms: Annotated[float | None, "double"] = None
    grade: Annotated[Grade, "string", "proven, probable, suspected, harmless or unknown"] = UNGRADED
    confidence: Annotated[float, "double", "0 to 1; proven from 0.9 on"] = -1.0
    proven: Annotated[int | None, "uint64", "exchanges hit whose own verdict is proven"] = None
    limited_by: Annotated[
        tuple[str, ...], "strings",
        "checks of the capture's quality that lowered the confidence",
    ] = ()  # fmt: skip
    rival: Annotated[str | None, "string", "the strongest other explanation"] = None
    rival_lost: Annotated[str | None, "string", "why it lost, or that it did not"] = None
    worst_exchange: Annotated[int | None, "uint64", "the exchange that it took the most time of"] = None
    worst_stream: Annotated[int | None, "uint32"] = None
    worst_ms: Annotated[float | None, "double"] = None
    worst_frames: Annotated[tuple[int, ...], "frames", "up to three frames that show it"] = ()
    typical_exchange: Annotated[
        int | None, "uint64",
        "the exchange in the middle of its time: half of it lies in exchanges no longer than this",
    ] = None  # fmt: skip
    typical_stream: Annotated[int | None, "uint32"] = None
    typical_ms: Annotated[float | None, "double"] = None
    typical_frames: Annotated[tuple[int, ...], "frames"] = ()
    filter: Annotated[str | None, "string", "a display filter for Wireshark that shows the typical frames"] = None
    sender: Annotated[
        str | None, "string",
        "whose bytes waited: the options below are this side's, the ACKs its peer's",
    ] = None  # fmt: skip
    nodelay: Annotated[
        State | None, "string",
        "the sender's TCP_NODELAY: on, off, mixed (its connections differ) or unknown",
    ] = None  # fmt: skip
    nodelay_seen_on: Annotated[int | None, "uint64", "small segments sent over unacknowledged small ones"] = None
    nodelay_seen_off: Annotated[
        int | None, "uint64",
        "small segments that left with the ACK that they had waited for",
    ] = None  # fmt: skip
    nodelay_opportunities: Annotated[int | None, "uint64", "moments in which on and off would have differed"] = None
    nodelay_streams_on: Annotated[int | None, "uint64", "connections that show it on; 0 where they do not tell"] = None
    nodelay_streams_off: Annotated[
        int | None, "uint64",
        "connections that show it off; 0 where they do not tell",
    ] = None  # fmt: skip
    delayed_ack: Annotated[
        State | None, "string",
        "does the peer delay its ACKs: on, off (TCP_QUICKACK) or unknown",
    ] = None  # fmt: skip
    delayed_ack_seen_on: Annotated[int | None, "uint64", "ACKs held"] = None
    delayed_ack_seen_off: Annotated[
        int | None, "uint64",
        "ACKs at once, past the quick ACKs of a connection's start",
    ] = None  # fmt: skip
    delayed_ack_opportunities: Annotated[int | None, "uint64"] = None
    cork: Annotated[State | None, "string", "the sender's TCP_CORK (MSG_MORE, tcp_nopush): on, off or unknown"] = None
    cork_seen_on: Annotated[int | None, "uint64", "tails that left with the cork's timer"] = None
    cork_seen_off: Annotated[int | None, "uint64", "small parts of one message that left apart"] = None
    cork_opportunities: Annotated[int | None, "uint64"] = None
    hold_min_ms: Annotated[float | None, "double", "the shortest of the peer's held ACKs, beyond the path"] = None
    hold_median_ms: Annotated[float | None, "double"] = None
    hold_max_ms: Annotated[float | None, "double"] = None
    timer_ms: Annotated[
        float | None, "double",
        "the peer's delayed-ACK timer, fitted; null where its holds fit none",
    ] = None  # fmt: skip
    tick_ms: Annotated[float | None, "double", "the grid on which the holds end; null where there is none"] = None
    tick_p: Annotated[float | None, "double", "the chance that such a grid is luck (Rayleigh test)"] = None
    os_hint: Annotated[str | None, "string", "whose timer that is, where that is known"] = None
    fix: Annotated[str | None, "string", "what mends it; null where nothing does"] = None
    fix_side: Annotated[str | None, "string", "who has to: client or server"] = None
    fix_cost: Annotated[str | None, "string", "what that costs"] = None
    gain_p50_low_ms: Annotated[float | None, "double", "the median latency without it, at best"] = None
    gain_p50_high_ms: Annotated[
        float | None, "double",
        "and at worst: only the proven ones gone; not below now where `gain_open` has a reason",
    ] = None  # fmt: skip
    gain_p99_low_ms: Annotated[float | None, "double", "the 99th percentile without it, at best"] = None
    gain_rate_low: Annotated[
        float | None, "double",
        "requests per second against now; null unless clients ask again at once",
    ] = None  # fmt: skip
    gain_rate_high: Annotated[float | None, "double"] = None
    gain_limit: Annotated[str | None, "string", "what is the limit then: server, path and programs, or unknown"] = None
    gain_open: Annotated[str | None, "string", "why nothing may be won; null where something is, at worst"] = None
    rate_per_s: Annotated[float | None, "double", "connections per second of a flood"] = None
    text: Annotated[str | None, "string", "the finding in a sentence, where it is not about latency"] = None
    harm: Annotated[
        Harmful | None, "string",
        "what users had of it: never (they did not get what they wanted), late (they waited beyond the path), "
        "path (they waited for round trips that fewer would spare); null where it cannot be the headline",
    ] = None  # fmt: skip
    sentence: Annotated[
        str | None, "string",
        "the id of its sentence in the catalogue of words; null where it has none",
    ] = None  # fmt: skip
    values: Mapping[str, Any] | None = None
    """The values of the sentence's template; no column."""

    @classmethod
    def wait(
        cls, server: tuple[str, int], sentence: str, owner: str, harm: Harmful | None, waits_ms: Sequence[float],
        values: Mapping[str, Any], **columns: Any,
    ) -> Finding:  # fmt: skip
        """Return a finding of kind "wait": what users waited for, each for one of the times `waits_ms`.

        `columns` are further ones: whom it hit (`clients`, `streams` or `exchanges`) and what shows it (`worst_stream`,
        `worst_frames`). They replace the defaults: the cause is named as the sentence, and times are of `waits_ms`.
        """
        longest_ms = max(waits_ms)
        defaults = {
            "kind": "wait", "server": server[0], "server_port": server[1], "cause": sentence, "owner": owner,
            "total_ms": sum(waits_ms), "median_ms": sorted(waits_ms)[len(waits_ms) // 2], "max_ms": longest_ms,
            "worst_ms": longest_ms, "harm": harm, "sentence": sentence, "values": values,
        }  # fmt: skip
        return cls(**{**defaults, **columns})

    def __post_init__(self) -> None:
        """Set confidence and grade unless they were given."""
        if self.confidence < 0:
            word = self.sentence if self.sentence in WORTH else self.cause
            object.__setattr__(self, "confidence", worth(word))
        if not self.grade:
            object.__setattr__(self, "grade", grade(self.cause, self.confidence))

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values, in the order of the columns, for JSON and Arrow."""
        values = ((name, getattr(self, name)) for name in COLUMNS)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


COLUMNS: dict[str, tuple[str, str]] = {
    name: (hint.__metadata__[0], "".join(hint.__metadata__[1:]))
    for name, hint in get_type_hints(Finding, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
"""The type in the table, and the meaning, of each column."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyFinding(Finding):
    """A finding about the time of requests. It has all columns of kind "latency"; answers compute with these."""

    exchanges: int
    share: float
    of_p50_ms: float
    of_p50_share: float
    of_p90_ms: float
    of_p90_share: float
    of_p99_ms: float
    of_p99_share: float
    typical_exchange: int
    typical_stream: int
    typical_ms: float
    nodelay_streams_on: int
    nodelay_streams_off: int


@cache
def schema() -> pa.Schema:
    """Return the schema of the table of findings; each field's metadata has its meaning."""
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


def grade_and_confidence(confidence: float) -> str:
    """Return the grade with its confidence, rounded down: "proven (0.99)"."""
    rounded = round(confidence, 6)
    return f"{grade_of(confidence)} ({floor(round(100 * rounded, 4)) / 100:.2f})"


def grade(cause: str, confidence: float) -> Grade:
    """Return the grade of a confidence: "proven", "probable" or "suspected"; "unknown" for unknown causes."""
    return "unknown" if cause in ("unknown", "capture_gap") else cast(Grade, grade_of(confidence))
