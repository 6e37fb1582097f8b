"""Is it DNS? The lookups of a capture and the connects that waited for them in; a few numbers and a sentence out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from latpcap import arrays
from latpcap.account.lookups import NEIGHBOUR
from latpcap.findings import presentation as show
from latpcap.format import printable
from latpcap.limits import LIMITS
from latpcap.words import joined, say

if TYPE_CHECKING:
    import pyarrow as pa


class Lookups(TypedDict):
    """How long names took to look up; None where nothing was answered, or nothing came of it."""

    lookups: int
    unanswered: int
    failed: int
    median_ms: float | None
    max_ms: float | None
    max_name: str | None
    max_frame: int | None
    connects: int
    connect_ms: float | None
    connect_name: str | None
    connect_frame: int | None


def of(tables: Mapping[str, pa.Table]) -> Lookups | None:
    """What the lookups cost, and what connects waited for them; None where there is no lookup."""
    import numpy as np

    table, connects = _names(tables["lookups"]), tables["connects"]
    if not table.num_rows:
        return None
    took = arrays.numbers(table, "latency_ms")
    done = np.flatnonzero(~np.isnan(took))
    worst = int(done[np.argmax(took[done])]) if len(done) else None
    waited = arrays.numbers(connects, "dns_ms") if connects.num_rows else np.zeros(0)
    led = np.flatnonzero(~np.isnan(waited))
    longest = int(led[np.argmax(waited[led])]) if len(led) else None
    return {
        "lookups": table.num_rows,
        "unanswered": table.num_rows - len(done),
        "failed": sum(word == "SERVFAIL" for word in table["status_text"].to_pylist()),
        "median_ms": arrays.percentile(np.sort(took[done]), 0.5) if len(done) else None,
        "max_ms": None if worst is None else float(took[worst]),
        "max_name": None if worst is None else table["target"][worst].as_py(),
        "max_frame": None if worst is None else table["request_frame"][worst].as_py(),
        "connects": len(led),
        "connect_ms": None if longest is None else float(waited[longest]),
        "connect_name": None if longest is None else connects["dns_name"][longest].as_py(),
        "connect_frame": None if longest is None else connects["first_frame"][longest].as_py(),
    }


def _names(table: pa.Table) -> pa.Table:
    """Without questions for a host on the link."""
    import numpy as np

    kinds, words = arrays.codes(table, "method")
    link = np.isin(kinds, [code for code, word in enumerate(words) if word in NEIGHBOUR])
    return table.take(arrays.column((~link).nonzero()[0])) if link.any() else table


def matters(dns: Lookups) -> bool:
    """Whether a connect waited for a name, or a name took long."""
    waits = [dns["connect_ms"] or 0.0, dns["max_ms"] or 0.0]
    return max(waits) >= LIMITS["setup_ms"] or dns["unanswered"] == dns["lookups"]


def line(dns: Lookups) -> str:
    """Is it DNS? A sentence that says so, or that it is not."""
    limit, lookups, unanswered = LIMITS["setup_ms"], dns["lookups"], dns["unanswered"]
    rest = say("dns_unanswered", n=unanswered, of=lookups) if unanswered else ""
    if dns["connect_ms"] is not None and dns["connect_ms"] >= limit:
        name, frame = printable(dns["connect_name"] or ""), f"{dns['connect_frame']}"
        return joined([say("dns_before_connect", took_ms=dns["connect_ms"], name=name, frame=frame), rest])
    if dns["max_ms"] is not None and dns["max_ms"] >= limit:
        name, frame = printable(dns["max_name"] or ""), f"{dns['max_frame']}"
        return joined([say("dns_took", took_ms=dns["max_ms"], name=name, frame=frame), rest])
    if dns["max_ms"] is None:
        return say("dns_only_unanswered" if lookups == 1 else "dns_none_answered", n=lookups)
    took = say(
        "dns_quick" if lookups - unanswered > 1 else "dns_one_quick",
        n=lookups - unanswered, median_ms=dns["median_ms"] or 0.0, most_ms=dns["max_ms"],
    )  # fmt: skip
    nothing = not rest and dns["max_ms"] < show.SLOW_OTHER_MS
    return say("dns_is_not_it", took=took) if nothing else joined([took, rest])
