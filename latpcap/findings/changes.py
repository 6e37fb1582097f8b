"""Which senders changed their TCP_NODELAY on the way? The table of evidence in, one row per change out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latpcap.findings.schema import Finding, Grade
from latpcap.findings.totals import endpoint
from latpcap.limits import LIMITS
from latpcap.vocabulary import STALL

if TYPE_CHECKING:
    import pyarrow as pa


def of_options(evidence: pa.Table) -> list[Finding]:
    """Options that were set or taken back while the capture ran: a deploy, a reload, a log-in that ended."""
    found = []
    for row in evidence.to_pylist():
        frame, side = row["changed_frame"], row["sender"]
        if frame is None:
            continue
        off = row["changed_to"] == "nagle"
        before, after = row["changed_before"], row["changed_after"]
        waited, left = (after, before) if off else (before, after)
        grade: Grade = "proven" if row["changed_grade"] == "proven" else "probable"
        now = "wait for ACKs (TCP_NODELAY off)" if off else "wait for no ACKs any more (TCP_NODELAY on)"
        end = endpoint(row["server"], row["server_port"])
        earlier, later = ("left at once", "waited") if off else ("waited", "left at once")
        says = (
            f"from frame {frame:,} on small segments of the {side} of {end} {now}: "
            f"before it {before:,} {earlier}, from it on {after:,} {later}"
        )
        found.append(
            Finding(
                kind="change", server=row["server"], server_port=row["server_port"], cause=STALL, owner=side,
                client=row["client"], grade=grade, confidence=LIMITS[f"change_{grade}_confidence"], sender=side,
                nodelay="off" if off else "on", nodelay_seen_off=waited, nodelay_seen_on=left, worst_frames=(frame,),
                filter=f"frame.number == {frame}", says=says,
            )
        )  # fmt: skip
    return found
