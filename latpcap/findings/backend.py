"""Who is behind a server whose time another one took, and what mends that one? Servers and their time in, words out.

The rows of such a server name what its own requests to the other one waited for (owner "backend"); what to do about
that is said of the other one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latpcap.findings import legs
from latpcap.findings.totals import SIDES
from latpcap.vocabulary import BACKEND, STALL

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.findings.totals import Ledger, Server, Spent

ELSEWHERE = "another server"
"""Its name, where the capture has more than one that it may be."""


def source(server: Server, cause: str, ledger: Ledger, exchanges: pa.Table) -> Spent | None:
    """The time that this cause took of the server behind: the one that it took the most of, and not of its own backend.

    None where no server of the capture is known to stand behind this one.
    """
    behind = legs.fronts(ledger.servers, exchanges)
    place, seen = ledger.servers.index(server), set[int]()
    while place not in seen:
        seen.add(place)
        legs_of = [ledger.servers[back] for back, front in behind.items() if front == place]
        items = [item for leg in legs_of for item in ledger.spent(leg) if item.cause == cause]
        most = max(items, key=lambda item: item.total_ms, default=None)
        if most is None or most.owner != BACKEND:
            return most
        place = ledger.servers.index(most.server)
    return None


def mended(name: str, knob: str | None, owner: str) -> str | None:
    """The fix of a server behind, with its name, or of what is sent to there."""
    return f"{'Towards' if owner == 'client' else 'At'} {name}: {knob[:1].upper()}{knob[1:]}" if knob else None


def clause(cause: str, found: Spent | None, phrase: str) -> str:
    """What the requests to the server behind wait for, in a sentence about that server."""
    if cause != STALL or found is None:
        return f"most time there goes to {phrase}"
    whose = {"server": "answers from there wait", "client": "requests to there wait"}[found.owner]
    holder = {"server": "it holds", "client": "this one holds"}[SIDES[found.owner]]
    return f"{whose} for acknowledgements that {holder} back"
