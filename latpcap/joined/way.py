"""What was changed between the two points: addresses, ports, hops, options and numbers. Reads pairs of packets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from latpcap.joined.pairing import Pairing
from latpcap.joined.point import OPTIONS_CUT, SACK_PERMITTED, SYN, TIMESTAMPS, Point


@dataclass
class Way:
    """What lies between the points, as far as packets show it."""

    hops: dict[str, list[int]] = field(default_factory=dict)
    """By direction ("a_to_b", "b_to_a"), how much lower the time to live is at the far point."""
    changes: list[str] = field(default_factory=list)
    """What is rewritten, a phrase each."""

    def sentence(self) -> str:
        """The middlebox in one line."""
        counts = {tuple(found) for found in self.hops.values() if found}
        if not counts:
            hops = "hops unknown"
        else:
            numbers = sorted({number for found in counts for number in found})
            shown = " or ".join(map(str, numbers))
            hops = "no router" if numbers == [0] else f"{shown} {'router' if numbers == [1] else 'routers'}"
        return f"{hops}; {', '.join(self.changes) or 'nothing rewritten'}"


def of(a: Point, b: Point, found: Pairing) -> Way:
    """Compare the packets that both points have, but for merged and cut ones."""
    import numpy as np

    whole = ~found.part
    ra, rb = found.a[whole], found.b[whole]
    way = Way()
    lower = a.packets["ttl"][ra].astype(np.int16) - b.packets["ttl"][rb]
    for name, up, sign in (("a_to_b", True, 1), ("b_to_a", False, -1)):
        mine = found.up_a[ra] == up
        counts = np.bincount(np.maximum(sign * lower[mine], 0))
        way.hops[name] = np.flatnonzero((counts * COMMON >= mine.sum()) & (counts > 0)).tolist()
    way.changes += _ends(a, b, found)
    syn = np.flatnonzero((a.packets["flags"][ra] & SYN) != 0)
    ra, rb = ra[syn], rb[syn]
    complete = ((a.packets["bits"][ra] | b.packets["bits"][rb]) & OPTIONS_CUT) == 0
    opened_a, opened_b = a.packets.of(ra[complete]), b.packets.of(rb[complete])
    changed = Counter((int(x), int(y)) for x, y in zip(opened_a["mss"], opened_b["mss"], strict=True) if x != y)
    way.changes += [f"MSS {x or 'none'} becomes {y or 'none'}" for (x, y), _ in changed.most_common(1)]
    if len(opened_a):
        scales = Counter(
            (int(x), int(y)) for x, y in zip(opened_a["wscale"], opened_b["wscale"], strict=True) if x != y
        )
        way.changes += [f"window scale {_none(x)} becomes {_none(y)}" for (x, y), _ in scales.most_common(1)]
        for bit, name in ((TIMESTAMPS, "time stamps"), (SACK_PERMITTED, "SACK")):
            lost = ((opened_a["bits"] ^ opened_b["bits"]) & bit) != 0
            if lost.any():
                way.changes.append(f"option {name} stripped")
    if found.streams.shift.any():
        way.changes.append("sequence numbers rewritten")
    if not found.kept.ip_id:
        way.changes.append("IP identification rewritten")
    if not found.kept.stamps:
        way.changes.append("time stamps rewritten")
    if found.part.any():
        way.changes.append("segments merged or cut (offload)")
    return way


COMMON = 20
"""A number of hops counts from one packet in so many on."""


def _none(scale: int) -> str:
    return "none" if scale == 255 else str(scale)


def _ends(a: Point, b: Point, found: Pairing) -> list[str]:
    """Addresses and ports that differ, of each end."""
    names = ("client", "client_port", "server", "server_port")
    rows: list[dict[int, tuple[Any, ...]]] = []
    for point in (a, b):
        columns = point.table("streams").select(["stream", *names]).to_pydict()
        rows.append(dict(zip(columns["stream"], zip(*(columns[n] for n in names), strict=True), strict=True)))
    changes: dict[str, Counter[tuple[Any, Any]]] = {}
    for one, other in zip(found.streams.a.tolist(), found.streams.b.tolist(), strict=True):
        for name, x, y in zip(names, rows[0][one], rows[1][other], strict=True):
            if x != y:
                changes.setdefault(name, Counter())[x, y] += 1
    phrases = []
    for name, pairs in changes.items():
        (x, y), _ = pairs.most_common(1)[0]
        word = name.replace("_", " ")
        phrases.append(f"{word} {x} becomes {y}" if len(pairs) == 1 else f"{word}s rewritten")
    return phrases
