"""Captures whose times lie on limits: the cases of tests/cases with other times, and what latpcap says of them.

A comparison is only tried where both sides are about equal, and no recording has that by itself. So some packets of a
case are moved: they come just as long after one of the packets before them as a limit is, or a nanosecond sooner or
later, with or without the handshake's round trips. What the verdict *should* be is not known here, and is no question:
the texts show what a change of a rule changes.
"""

from __future__ import annotations

import gzip
import io
import random
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import dpkt
from makepcap import pcap_of

import latpcap as lp

US, MS = 1_000, 1_000_000
# the limits of limits.rs as they were written when these texts were made: the captures stay the same
EDGES_NS = (
    60 * US, 100 * US, 200 * US, 300 * US, 500 * US, 750 * US, MS, 2 * MS, 3 * MS, 4 * MS, 5 * MS, 10 * MS, 15 * MS,
    20 * MS, 25 * MS, 35 * MS, 38 * MS, 40 * MS, 52 * MS, 90 * MS, 190 * MS, 200 * MS, 213 * MS, 215 * MS, 255 * MS,
    500 * MS, 520 * MS, 1000 * MS, 2000 * MS, 10_000 * MS,
)  # fmt: skip
NEAR = 2.5
"""A gap becomes a limit of up to so many times its length, and down to as small a part of it."""


@cache
def packets(path: Path) -> list[tuple[int, bytes]]:
    """The packets of a capture, times in nanoseconds but rounded to microseconds; none where this is no Ethernet."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    reader = dpkt.pcap.UniversalReader(io.BytesIO(data))
    return [(round(at * 10**6) * US, frame) for at, frame in reader] if reader.datalink() == 1 else []


def times(kept: list[tuple[int, bytes]], seed: int, name: str) -> list[int]:
    """Other times; the same for the same seed and name."""
    rng = random.Random(f"{name} {seed}")
    often, first = rng.choice((0.05, 0.2, 0.5)), rng.choice((0, 4, 4))
    own = rng.sample(EDGES_NS, 4)
    new: list[int] = []
    for number, (at, _) in enumerate(kept):
        gap = at - kept[number - 1][0] if number else 0
        time = new[-1] + max(gap, 0) if number else at
        if number and number >= first and rng.random() < often:
            # as the handshake had them, or any other first packets
            ways = [b - a for a, b in pairwise(new[:3])]
            ways += [sum(ways), 2 * sum(ways), 0, 0, 0]
            since = new[-min(rng.choice((1, 1, 1, 2, 2, 3, 4)), number)]
            took = max(time - since, 1)
            near = [edge for edge in EDGES_NS if took / NEAR <= edge <= took * NEAR] if rng.random() < 0.6 else own
            if near:
                time = max(since + rng.choice(near) + rng.choice(ways) + rng.choice((0, 0, 0, -1, 1)), new[-1])
        new.append(time)
    return new


def said(capture: lp.Capture) -> list[str]:
    """What the judge says of a capture, in a few lines: its causes summed up, and its senders."""
    sums: dict[tuple[Any, ...], float] = Counter()
    counts: Counter[tuple[Any, ...]] = Counter()
    words = ("parent", "cause", "owner", "rule", "grade", "because", "rival")
    for row in capture.arrow("causes").select([*words, "duration_ms"]).to_pylist():
        key = tuple(row[word] for word in words)
        sums[key] += row["duration_ms"]
        counts[key] += 1
    lines = []
    for key in sorted(counts, key=str):
        parent, cause, owner, rule, grade, because, rival = key
        lines.append(
            f"{parent + ' > ' if parent else ''}{cause} of {owner}, {rule}, {grade} by {because}"
            f"{' or ' + rival if rival else ''}: {counts[key]} of {sums[key]:.6f} ms"
        )
    for row in capture.arrow("evidence").to_pylist():
        told = [f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items() if v is not None]
        lines.append("sender: " + ", ".join(told[1:]))
    return lines


FOLDER = Path(__file__).with_name("cases")
TEXTS = Path(__file__).with_name("golden") / "verdicts.txt"


def capture_of(name: str, seed: int) -> bytes:
    """A case as it was recorded (seed 0), or with other times."""
    [path] = (FOLDER / name).glob("capture.*")
    if seed:
        kept = packets(path)
        return pcap_of(zip(times(kept, seed, name), (frame for _, frame in kept), strict=True), nanos=True)
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@cache
def texts() -> dict[tuple[str, int], list[str]]:
    """The golden texts, by case and seed."""
    found: dict[tuple[str, int], list[str]] = {}
    for line in TEXTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            name, _, seed = line[2:].partition(", moved ")
            now = found[name, int(seed or 0)] = []
        elif line:
            now.append(line)
    return found


def write(told: dict[tuple[str, int], list[str]]) -> None:
    """The golden texts anew."""
    parts = []
    for (name, seed), lines in sorted(told.items()):
        parts.append("\n".join([f"# {name}{f', moved {seed}' if seed else ''}", *lines, ""]))
    TEXTS.write_text("\n".join(parts), encoding="utf-8")
