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
        end = endpoint(row["server"], row["server_port"])
        found.append(
            Finding(
                kind="change", server=row["server"], server_port=row["server_port"], cause=STALL, owner=side,
                client=row["client"], grade=grade, confidence=LIMITS[f"change_{grade}_confidence"], sender=side,
                nodelay="off" if off else "on", nodelay_seen_off=waited, nodelay_seen_on=left, worst_frames=(frame,),
                filter=f"frame.number == {frame}", sentence="option_off" if off else "option_on",
                values={"frame": frame, "side": side, "server": end, "before": before, "after": after},
            )
        )  # fmt: skip
    return found
