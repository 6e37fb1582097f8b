"""`join` reads captures of the same traffic; it returns a `Joined` of two, or a `Chain` of more."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, overload

from latpcap import spill
from latpcap.errors import LatpcapError
from latpcap.format import escaped
from latpcap.joined.joined import Joined
from latpcap.reading import sources
from latpcap.reading.keylog import Keylog

if TYPE_CHECKING:
    from latpcap.joined.capture_point import Point
    from latpcap.joined.chain import Chain


@overload
def join(
    client: sources.Source,
    server: sources.Source | None = None,
    *,
    keylog: Keylog | None = None,
    progress: bool = False,
) -> Joined: ...
@overload
def join(
    client: sources.Source,
    server: sources.Source,
    *more: sources.Source,
    keylog: Keylog | None = None,
    progress: bool = False,
) -> Joined | Chain: ...
def join(
    client: sources.Source,
    server: sources.Source | None = None,
    *more: sources.Source,
    keylog: Keylog | None = None,
    progress: bool = False,
) -> Joined | Chain:
    """Find where between two capture points the time went, on the clock of the first capture.

    `client` (A) and `server` (B) are sources as `read` takes them, in the order of the path from the client. Packets
    are matched although addresses, ports, numbers or options were rewritten, segments merged or split, frames are
    missing, or the captures began and ended at different times. Through a proxy, which forwards no packet, requests
    are matched by content and nesting. With `more`, captures further along the path, the result is a `Chain`. Without
    `server`, `client` is a capture made at a proxy: A is the requests to the proxy, B those that it sends on.

    LatpcapError where two neighbours have no traffic in common; CaptureError where one cannot be read.
    """
    from latpcap.joined.capture_point import Point
    from latpcap.joined.chain import MAX_POINTS, Chain

    if server is None:
        return _beside_proxy(Point(client, keylog=keylog, progress=progress))
    if len(more) + 2 > MAX_POINTS:
        raise LatpcapError(f"{len(more) + 2} captures: at most {MAX_POINTS} are joined")
    points: list[Point] = []
    for source in (client, server, *more):
        points.append(Point(source, keylog=keylog, causes=bool(points), progress=progress))
        spill.trim_heap()
    legs = [_pair(a, b) for a, b in pairwise(points)]
    return Chain(legs) if more else legs[0]


def _pair(a: Point, b: Point) -> Joined:
    """Join two neighbouring points."""
    from latpcap.joined import exchanges, limits, match, pairing

    pairs = match.find_streams(a, b)
    spill.release_memory()
    spill.trim_heap()
    paired = pairing.pair(a, b, pairs) if len(pairs.a) else None
    spill.release_memory()
    spill.trim_heap()
    if paired is not None and len(paired.a) >= limits.MIN_PAIRED:
        return Joined(a, b, paired, exchanges.within(a, b, paired))
    matched = exchanges.through_proxy(a, b)
    if matched is None:
        names = escaped(a.name), escaped(b.name)
        raise LatpcapError(
            f"{names[0]} and {names[1]} have no traffic in common: no connection has the same packets, and no requests "
            "of one lie inside those of the other"
        )
    return Joined(a, b, None, matched)


def _beside_proxy(point: Point) -> Joined:
    """Join both sides of a proxy that are in one capture."""
    from latpcap.joined import exchanges

    matched = exchanges.beside_proxy(point)
    if matched is None:
        raise LatpcapError(
            f"{escaped(point.name)} has no two legs of a proxy: no requests of one server lie inside those of another"
        )
    return Joined(point, point, None, matched)
