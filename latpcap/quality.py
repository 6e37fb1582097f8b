"""Can this capture carry a verdict? Tables of one capture in, a list of what limits the answer out.

Judged before anything is accused: packets that the capture lacks, a direction that it does not hold, a clock that
went back. Each check says how far verdicts may still go; most say nothing, and then there is no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays
from latpcap.vocabulary import SUSPECTED

if TYPE_CHECKING:
    import pyarrow as pa

SYN_ONLY = 1
SYN_SEEN = 1 | 2  # bits of Wireshark's completeness: SYN, SYN-ACK
MOSTLY = 0.5
SOME_GAPS = 0.1
SOME_DOUBLES = 0.05
DOUBLE_NS = 20_000_000
"""No timer repeats a segment this soon, and a repeat has a new time stamp."""
CLOCK_BACK = 0.001  # of the frames
SET_BACK = "time stamps go back"
"""What the core says of steps of 1 ms and more; smaller ones are frames that two processors handed over, no clock."""


@dataclass(frozen=True)
class Check:
    """One limit of the capture: `most` is the confidence that no verdict may exceed because of it (1.0: a remark)."""

    check: str
    count: int
    of: int
    most: float
    says: str

    @property
    def forbids(self) -> bool:
        """Does it leave no verdict at all?"""
        return self.most <= SUSPECTED

    def to_dict(self) -> dict[str, Any]:
        """The check as plain values (for JSON)."""
        return asdict(self)


def judge(tables: Mapping[str, pa.Table]) -> list[Check]:
    """What limits the answers from this capture? The worst first; empty where nothing does.

    `tables` holds "streams", "exchanges" and "issues" of one capture or one stream; with "events" it is also
    seen whether packets were captured twice.
    """
    found = [
        *_directions(tables["streams"]),
        *_doubles(tables),
        *_gaps(tables["exchanges"]),
        *_clock(tables["issues"], tables["streams"]),
        *_starts(tables["streams"]),
        *_reading(tables["issues"]),
    ]
    return sorted(found, key=lambda c: c.most)


def ceiling(checks: list[Check]) -> float:
    """How confident may a verdict from this capture be at most?"""
    return min((c.most for c in checks), default=1.0)


def one_way(streams: pa.Table) -> arrays.Array:
    """Which streams show only one of their two directions, with more in it than unanswered SYNs?"""
    columns = ("client_packets", "server_packets", "client_payload_bytes", "server_payload_bytes", "completeness")
    client, server, asked, answered, code = (arrays.numbers(streams, c) for c in columns)
    alone: arrays.Array = ((client > 0) != (server > 0)) & (
        (asked > 0) | (answered > 0) | (code | SYN_ONLY != SYN_ONLY)
    )
    return alone


def _directions(streams: pa.Table) -> list[Check]:
    alone = int(one_way(streams).sum())
    if not alone:
        return []
    of = streams.num_rows
    client, server = (arrays.numbers(streams, f"{side}_packets") for side in ("client", "server"))
    has = int(((client > 0) & (server > 0)).sum())
    says = f"only one direction was captured of {alone:,} of {of:,} streams: there nothing is more than suspected"
    return [Check("one_direction", alone, of, SUSPECTED if alone > has else 1.0, says)]


def _doubles(tables: Mapping[str, pa.Table]) -> list[Check]:
    """Data segments that were captured twice: at two interfaces, or by a mirror port that sends both ways."""
    import numpy as np

    streams = tables["streams"]
    sides = ("client", "server")
    again, packets = (
        sum(int(arrays.numbers(streams, f"{side}_{what}").sum()) for side in sides)
        for what in ("retransmissions", "packets")
    )
    if "events" not in tables or again < SOME_DOUBLES * packets:
        return []
    events = tables["events"]
    rows = np.flatnonzero(arrays.numbers(events, "len") > 0)
    columns = ("stream", "from_client", "seq", "ack", "len", "tsval", "time")
    time, *same = (np.nan_to_num(arrays.numbers(events, c)[rows].astype(float), nan=-1.0) for c in columns[::-1])
    time = arrays.numbers(events, "time")[rows]
    order = np.lexsort((time, *same))
    alike = np.all([c[order][1:] == c[order][:-1] for c in same], axis=0)
    count = int((alike & (np.diff(time[order]) < DOUBLE_NS)).sum())
    of = len(rows) - count
    if not count or count < SOME_DOUBLES * of:
        return []
    seen = f"{count:,} of {of:,} data segments are in the capture twice"
    if count <= MOSTLY * of:
        return [Check("doubles", count, of, 1.0, f"{seen}: doubled on the path, or by a mirror port")]
    says = f"{seen}, seen at two points at once: capture at one, or take the doubles out first (editcap -d)"
    return [Check("doubles", count, of, SUSPECTED, says)]


def _gaps(exchanges: pa.Table) -> list[Check]:
    of = exchanges.num_rows
    if not of:
        return []
    lost, cut = exchanges["capture_gap_ms"].to_pylist(), exchanges["cut_by"].to_pylist()
    count = sum(1 for ms, by in zip(lost, cut, strict=True) if ms or by == "gap")
    if not count:
        return []
    share = count / of
    most = 0.88 if share > MOSTLY else 0.95 if share > SOME_GAPS else 1.0
    says = (
        f"packets are missing from the capture in {count:,} of {of:,} exchanges: these are not judged by what is left"
    )
    return [Check("capture_gap", count, of, most, says)]


def _clock(issues: pa.Table, streams: pa.Table) -> list[Check]:
    rows = zip(issues["reason"].to_pylist(), issues["count"].to_pylist(), strict=True)
    count = sum(number for reason, number in rows if SET_BACK in reason)
    if not count:
        return []
    of = sum(int(arrays.numbers(streams, c).sum()) for c in ("client_packets", "server_packets"))
    most = 0.88 if count > CLOCK_BACK * of else 1.0
    return [Check("clock", count, of, most, f"{SET_BACK} {count:,} times: short times are not to be trusted")]


def _starts(streams: pa.Table) -> list[Check]:
    bits = arrays.numbers(streams, "completeness")
    count = int((bits & SYN_SEEN == 0).sum())
    if not count:
        return []
    says = f"{count:,} of {len(bits):,} streams began before the capture: their MSS and window scale are guessed"
    return [Check("mid_stream", count, len(bits), 1.0, says)]


def _reading(issues: pa.Table) -> list[Check]:
    """Frames that were damaged, cut or not understood."""
    found = []
    for row in issues.select(["kind", "layer", "reason", "count"]).to_pylist():
        if SET_BACK in row["reason"]:
            continue
        says = f"{row['layer']}: {row['reason']}"
        found.append(Check(str(row["kind"]), row["count"], row["count"], 1.0, says))
    return found
