"""Find which server of the capture is a proxy of another one.

A proxy's host is the client of its backend, and the requests to the backend lie inside the requests to the proxy. The
proxy's causes name what its own requests to the backend waited for (owner "backend"); the fix is reported at the
backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address

from latpcap import arrays
from latpcap import presentation as show
from latpcap.lazy import np, pa
from latpcap.user_waits.cause_totals import CauseTotal, CauseTotals
from latpcap.user_waits.servers import Server, without_site
from latpcap.vocabulary import BACKEND


def fronts(servers: Sequence[Server], stretches: pa.Table) -> dict[int, int]:
    """Map the position of each backend in the list to that of its proxy."""
    front_by_back: dict[int, int] = {}
    examined = list(enumerate(servers[: show.MIN_SERVERS_EXAMINED]))
    for back, back_server in examined:
        for front, front_server in examined:
            may_be_proxy = front != back and _may_be_proxy(front_server, back_server)
            if may_be_proxy and _is_nested(front_server, back_server, stretches):
                front_by_back[back] = front
                break
    return front_by_back


def in_order(count: int, front_by_back: dict[int, int]) -> list[int]:
    """Return the positions of `count` servers, each followed by its backends; the first server stays the first."""
    order: dict[int, None] = {}
    backs_of_front: dict[int, list[int]] = {}
    for back, front in front_by_back.items():
        backs_of_front.setdefault(front, []).append(back)

    def put(position: int) -> None:
        if position not in order:
            order[position] = None
            for back in backs_of_front.get(position, ()):
                put(back)

    for position in range(count):
        proxy = front_by_back.get(position)
        if position == 0 or proxy is None or proxy in order:
            put(position)
    for position in range(count):
        put(position)
    return list(order)


def _may_be_proxy(front: Server, back: Server) -> bool:
    """Return whether the front's host is the backend's only client; over loopback that client has another address."""
    local = _is_loopback(front.address) != _is_loopback(back.address)
    return back.clients == [front.address] or (local and len(back.clients) == 1)


@lru_cache(maxsize=show.MIN_SERVERS_EXAMINED)
def _is_loopback(address: str) -> bool:
    return ip_address(without_site(address)).is_loopback


def _is_nested(front: Server, back: Server, stretches: pa.Table) -> bool:
    """Return whether nearly all requests of the backend lie inside requests of the proxy, and more than by chance."""
    start, end = arrays.numbers(stretches, "start"), arrays.numbers(stretches, "end")
    starts = start[front.rows]
    order = np.argsort(starts, kind="stable")
    ends = np.maximum.accumulate(end[front.rows][order])
    last = np.searchsorted(starts[order], start[back.rows], side="right") - 1
    is_inside = (last >= 0) & (ends[np.maximum(last, 0)] >= end[back.rows])
    if is_inside.sum() < show.MIN_NESTED_SHARE * len(back.rows):
        return False
    # the share expected inside by chance, for a host that sends unrelated requests while it serves others
    took_ns = (end[back.rows] - start[back.rows])[is_inside]
    around_ns = ends[last[is_inside]] - starts[order][last[is_inside]]
    chance = float(np.mean(1 - np.minimum(took_ns / np.maximum(around_ns, 1), 1)))
    deviation = np.sqrt(chance * (1 - chance) / len(back.rows))
    return bool(is_inside.mean() > chance + show.MIN_NESTED_DEVIATIONS * deviation)


def source(server: Server, cause: str, totals: CauseTotals, stretches: pa.Table) -> CauseTotal | None:
    """Return the time of this cause at the backend with the most of it.

    A backend that is itself a proxy is replaced by its backend with the most, and so on. None if no server of the
    capture is a backend of this one.
    """
    front_by_back = fronts(totals.servers, stretches)
    position, visited = totals.servers.index(server), set[int]()
    while position not in visited:
        visited.add(position)
        backs = [totals.servers[back] for back, front in front_by_back.items() if front == position]
        items = [item for back in backs for item in totals.spent(back) if item.cause == cause]
        largest = max(items, key=lambda item: item.total_ms, default=None)
        if largest is None or largest.owner != BACKEND:
            return largest
        position = totals.servers.index(largest.server)
    return None
