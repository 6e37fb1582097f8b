"""Finds what was changed between two points: addresses, ports, hops, options and numbers. Reads pairs of packets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from latpcap import words
from latpcap.joined import limits
from latpcap.joined.capture_point import OPTIONS_CUT, SACK_PERMITTED, SYN, TIMESTAMPS, Point
from latpcap.joined.pairing import Pairing
from latpcap.lazy import np

NO_SCALE = 255
"""Value of the column `wscale` for a SYN without the option."""


@dataclass
class Way:
    """The routers and rewrites between the points, as far as packets show them."""

    hops: dict[str, list[int]] = field(default_factory=dict)
    """By direction ("a_to_b", "b_to_a"), the common decreases of the time to live on the path."""
    rewritten: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The rewrites, each as the id of a phrase and its values."""

    @property
    def changes(self) -> list[str]:
        """The rewrites, each as a phrase."""
        return [words.say(phrase, **values) for phrase, values in self.rewritten]

    def sentence(self) -> str:
        """Return routers and rewrites in one sentence."""
        numbers = sorted({number for common in self.hops.values() for number in common})
        if numbers in ([], [0]):  # there is no number if every pair is a part of a merged or split segment
            hops = words.say("way_no_router")
        else:
            alternatives = words.say("way_or").join(map(str, numbers))
            hops = words.say("way_routers", some=alternatives, n=1 if numbers == [1] else 2)
        return words.joined([hops, words.say("comma").join(self.changes) or words.say("way_nothing")])


def find_rewrites(a: Point, b: Point, pairing: Pairing) -> Way:
    """Compare the packets of each pair, except parts of merged or split segments."""
    is_whole = ~pairing.part
    rows_a, rows_b = pairing.a[is_whole], pairing.b[is_whole]
    way = Way()
    lower = a.packets["ttl"][rows_a].astype(np.int16) - b.packets["ttl"][rows_b]
    for name, up, sign in (("a_to_b", True, 1), ("b_to_a", False, -1)):
        in_direction = pairing.up_a[rows_a] == up
        counts = np.bincount(np.maximum(sign * lower[in_direction], 0))
        way.hops[name] = np.flatnonzero((counts * limits.HOPS_DIVISOR >= in_direction.sum()) & (counts > 0)).tolist()
    way.rewritten += _changed_addresses(a, b, pairing)
    syn = np.flatnonzero((a.packets["flags"][rows_a] & SYN) != 0)
    opened = rows_a[syn], rows_b[syn]
    complete = ((a.packets["bits"][opened[0]] | b.packets["bits"][opened[1]]) & OPTIONS_CUT) == 0
    opened_a, opened_b = a.packets.of(opened[0][complete]), b.packets.of(opened[1][complete])
    changed = Counter((int(x), int(y)) for x, y in zip(opened_a["mss"], opened_b["mss"], strict=True) if x != y)
    way.rewritten += [("way_mss", {"old": _none(x, 0), "new": _none(y, 0)}) for (x, y), _ in changed.most_common(1)]
    if len(opened_a):
        scales = Counter(
            (int(x), int(y)) for x, y in zip(opened_a["wscale"], opened_b["wscale"], strict=True) if x != y
        )
        way.rewritten += [
            ("way_scale", {"old": _none(x, NO_SCALE), "new": _none(y, NO_SCALE)}) for (x, y), _ in scales.most_common(1)
        ]
        for bit, name in ((TIMESTAMPS, "way_no_stamps"), (SACK_PERMITTED, "way_no_sack")):
            lost = ((opened_a["bits"] ^ opened_b["bits"]) & bit) != 0
            if lost.any():
                way.rewritten.append((name, {}))
    stamped = (a.packets["bits"][rows_a] & b.packets["bits"][rows_b] & TIMESTAMPS) != 0
    for name, is_changed in (
        ("way_numbers", pairing.streams.shift.any()),
        ("way_identification", not pairing.kept.ip_id),
        ("way_stamps", not pairing.kept.stamps and stamped.any()),
        ("way_offload", pairing.part.any()),
    ):
        if is_changed:
            way.rewritten.append((name, {}))
    return way


def _none(value: int, missing: int) -> str:
    return words.say("way_none") if value == missing else str(value)


def _changed_addresses(a: Point, b: Point, pairing: Pairing) -> list[tuple[str, dict[str, Any]]]:
    """Return the addresses and ports of each end that differ between the points, as phrases."""
    names = ("client", "client_port", "server", "server_port")
    rows: list[dict[int, tuple[Any, ...]]] = []
    for point in (a, b):
        columns = point.table("streams").select(["stream", *names]).to_pydict()
        rows.append(dict(zip(columns["stream"], zip(*(columns[name] for name in names), strict=True), strict=True)))
    changes: dict[str, Counter[tuple[Any, Any]]] = {}
    for stream_a, stream_b in zip(pairing.streams.a.tolist(), pairing.streams.b.tolist(), strict=True):
        for name, x, y in zip(names, rows[0][stream_a], rows[1][stream_b], strict=True):
            if x != y:
                changes.setdefault(name, Counter())[x, y] += 1
    phrases: list[tuple[str, dict[str, Any]]] = []
    for name, pairs in changes.items():
        (x, y), _ = pairs.most_common(1)[0]
        phrases.append((f"way_{name}", {"n": len(pairs), "old": str(x), "new": str(y)}))
    return phrases
