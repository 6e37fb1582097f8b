"""Which server asks another one on behalf of its clients? Servers and their requests in, who stands behind whom out.

A proxy's host is the client of the server behind it, and what it requests there lies inside what was requested of it.
The rows of such a server name what its own requests to the other one waited for (owner "backend"); what to do about
that is reported of the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap import presentation as show
from latpcap.user_waits.cause_totals import CauseTotal, CauseTotals, Server, without_site
from latpcap.vocabulary import BACKEND

if TYPE_CHECKING:
    import pyarrow as pa


def fronts(servers: Sequence[Server], exchanges: pa.Table) -> dict[int, int]:
    """The places of servers whose requests came from another one of the list, and the place of that one."""
    found: dict[int, int] = {}
    few = list(enumerate(servers[: show.MIN_SERVERS_EXAMINED]))
    for back, server in few:
        for front, other in few:
            if front != back and _asks(other, server) and _inside(server, other, exchanges):
                found[back] = front
                break
    return found


def in_order(count: int, behind: dict[int, int]) -> list[int]:
    """The places of so many servers, each with those behind it after it; the first one stays the first."""
    order: dict[int, None] = {}
    backs: dict[int, list[int]] = {}
    for back, front in behind.items():
        backs.setdefault(front, []).append(back)

    def put(place: int) -> None:
        if place not in order:
            order[place] = None
            for back in backs.get(place, ()):
                put(back)

    for place in range(count):
        ahead = behind.get(place)
        if place == 0 or ahead is None or ahead in order:
            put(place)
    for place in range(count):
        put(place)
    return list(order)


def _asks(front: Server, back: Server) -> bool:
    """Can the front's host be the only client of the back? Requests on loopback have other addresses, too."""
    local = _loopback(front.address) != _loopback(back.address)
    return back.clients == [front.address] or (local and len(back.clients) == 1)


@lru_cache(maxsize=show.MIN_SERVERS_EXAMINED)
def _loopback(address: str) -> bool:
    return ip_address(without_site(address)).is_loopback


def _inside(back: Server, front: Server, exchanges: pa.Table) -> bool:
    """Do nearly all requests of the one lie inside requests of the other?"""
    import numpy as np

    start, end = arrays.numbers(exchanges, "start"), arrays.numbers(exchanges, "end")
    began = start[front.rows]
    order = np.argsort(began, kind="stable")
    ended = np.maximum.accumulate(end[front.rows][order])
    last = np.searchsorted(began[order], start[back.rows], side="right") - 1
    inside = (last >= 0) & (ended[np.maximum(last, 0)] >= end[back.rows])
    if inside.sum() < show.MIN_NESTED_SHARE * len(back.rows):
        return False
    # so many would lie inside by luck, where a host sends requests of its own while it serves one
    took = (end[back.rows] - start[back.rows])[inside]
    around = ended[last[inside]] - began[order][last[inside]]
    luck = float(np.mean(1 - np.minimum(took / np.maximum(around, 1), 1)))
    wavers = np.sqrt(luck * (1 - luck) / len(back.rows))
    return bool(inside.mean() > luck + show.MIN_NESTED_DEVIATIONS * wavers)


def source(server: Server, cause: str, ledger: CauseTotals, exchanges: pa.Table) -> CauseTotal | None:
    """The time that this cause took of the server behind: the one that it took the most of, and not of its own backend.

    None where no server of the capture is known to stand behind this one.
    """
    behind = fronts(ledger.servers, exchanges)
    place, seen = ledger.servers.index(server), set[int]()
    while place not in seen:
        seen.add(place)
        backs = [ledger.servers[back] for back, front in behind.items() if front == place]
        items = [item for leg in backs for item in ledger.spent(leg) if item.cause == cause]
        most = max(items, key=lambda item: item.total_ms, default=None)
        if most is None or most.owner != BACKEND:
            return most
        place = ledger.servers.index(most.server)
    return None
