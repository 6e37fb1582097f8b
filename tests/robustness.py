"""Situations for the simulator, and how latpcap's verdicts about them compare with the truth.

Groups: stalls behind every path, receiver and program; decoys that pause for about as long as a timer; the same with
jitter; the same with frames missing from the capture. Used by the tests (a few of each) and by CI (all).
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from makepcap import Ends, Segment, answer, get, pcap
from simulator import ENDS, Host, Path, Recording, Script, Truth, record

import latpcap as lp

HEAD, BODY = answer(400)
POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300\r\n\r\n"
ASK = ((0.0, get()),)
SPLIT = ((0.0, HEAD), (0.0, BODY))
WHOLE = ((0.0, HEAD + BODY),)
UPLOAD = Script(((0.0, POST), (0.0, b"q" * 300)), WHOLE)
NODELAY = Host(nodelay=True)
RTTS = (0.2, 0.4, 2.0, 4.0, 17.0, 40.0, 120.0)
LABEL_MS = 15.0
"""A held ACK at least this long inside Nagle's wait is a stall (as for the labelled captures)."""


@dataclass(frozen=True)
class Situation:
    """A script between two hosts; the path is given when it is recorded."""

    name: str
    script: Script
    client: Host = field(default_factory=Host)
    server: Host = field(default_factory=Host)

    def record(self, path: Path, seed: int) -> Recording:
        return record(self.script, self.client, self.server, path, seed=seed)


def pause(length: float, **script: Any) -> Script:
    """Head, a pause of the program, body."""
    return Script(ASK, ((0.0, HEAD), (length, BODY)), **script)


@dataclass(frozen=True)
class Mixture:
    """Two kinds of sockets on one port of one server; three connections of each."""

    name: str
    parts: tuple[Situation, Situation]

    def record(self, path: Path, seed: int) -> Recording:
        tape, truth = [], {}
        for number, part in enumerate(self.parts):
            (address, port), server = ENDS.client, ENDS.server
            ends = Ends((address, port + 1000 * number), server)
            made = record(part.script, part.client, part.server, path, seed=seed, ends=ends)
            tape, truth = [*tape, *made.tape], truth | made.truth
        return Recording(sorted(tape, key=lambda s: s.time_ns), truth)


def stalls() -> list[Situation]:
    """Nagle waits for a held ACK in (nearly) every exchange."""
    both = Script(ASK, SPLIT)
    found = [Situation("server", both), Situation("client", UPLOAD), Situation("hidden pause", pause(30.0))]
    found += [Situation(f"tick {t:g}", both, client=Host(tick_ms=t)) for t in (1.0, 10 / 3, 10.0)]
    found += [Situation(f"timer {t:g}", both, client=Host(delack_ms=t, tick_ms=10.0)) for t in (50.0, 100.0, 200.0)]
    found.append(Situation("no timestamps", Script(ASK, SPLIT, stamped=False)))
    found.append(Situation("three writes", Script(ASK, ((0.0, HEAD), (0.0, BODY[:150]), (0.0, BODY[150:])))))
    found.append(Situation("three late writes", Script(ASK, ((0.0, HEAD), (10.0, BODY[:150]), (10.0, BODY[150:])))))
    found.append(Situation("loaded hosts", both, client=Host(busy_ms=3.0), server=Host(busy_ms=3.0)))
    found.append(Situation("classic nagle", both, server=Host(small_unacked=False)))
    return found


def decoys() -> list[Situation]:
    """Nobody waits for a held ACK, and everything looks as if somebody did."""
    lengths = (40.2, 41.0, 42.0, 43.0, 44.0, 46.0, 48.0)
    found = [Situation(f"pause {n:g}", pause(n), server=NODELAY) for n in lengths]
    for tick in (1.0, 10.0):
        for n in (40.2, 40.7, 41.2, 44.0, 49.0):
            found.append(Situation(f"pause {n:g} tick {tick:g}", pause(n), Host(tick_ms=tick), NODELAY))
    for timer in (100.0, 200.0):
        for more in (0.5, 3.0):
            host = Host(delack_ms=timer, tick_ms=10.0)
            found.append(Situation(f"pause {timer + more:g} timer {timer:g}", pause(timer + more), host, NODELAY))
    found += [Situation(f"pause {n:g} no timestamps", pause(n, stamped=False), server=NODELAY) for n in (41.0, 44.0)]
    found.append(Situation("nagle, later pause", pause(250.0)))
    found.append(Situation("client pause", Script(((0.0, POST), (43.0, b"q" * 300)), WHOLE), client=NODELAY))
    found.append(Situation("think", Script(ASK, WHOLE, server_think=(40.0, 48.0))))
    found.append(Situation("quick acks", Script(ASK, SPLIT), client=Host(quickack=True)))
    full = (HEAD + b"f" * 1460)[:1460]
    found.append(Situation("full segment, then pause", Script(ASK, ((0.0, full), (43.0, BODY)))))
    writes = ((0.0, HEAD), (21.0, BODY[:150]), (21.0, BODY[150:]))
    found.append(Situation("three paused writes", Script(ASK, writes), server=NODELAY))
    found.append(Situation("pipelined pauses", pause(43.0, pipelined=4), NODELAY, NODELAY))
    return found


def mixtures() -> list[Mixture]:
    """TCP_NODELAY on some sockets of a server only: where Nagle's algorithm acts is a stall, and nowhere else."""
    both = Script(ASK, SPLIT)
    held, free = Situation("held", both), Situation("free", both, server=NODELAY)
    paused = [Situation(f"pause {n:g}", pause(n), server=NODELAY) for n in (12.0, 40.2, 41.0, 43.0, 44.0, 46.0, 48.0)]
    found = [Mixture(f"{one.name} beside {other.name}", (one, other)) for one in (held, free) for other in paused]
    return [Mixture("held beside free", (held, free)), *found]


def points(rtt: float) -> dict[str, Path]:
    """The same path with its tap at the server, at the client, and half way."""
    return {"server": Path(rtt / 2, 0.005), "client": Path(0.005, rtt / 2), "half": Path(rtt / 4, rtt / 4)}


def holes(tape: list[Segment], share: float, seed: int) -> list[Segment]:
    """What a capture that drops this share of its frames still has."""
    rng = random.Random(seed)
    return [s for s in tape if rng.random() >= share]


def judged(tape: list[Segment], truth: dict[tuple[int, int], Truth]) -> Counter[str]:
    """How many stalls were proven rightly (hit), wrongly (false), not at all (missed), or only called probable."""
    return judged_file(pcap(tape, nanos=True), truth)


def judged_file(
    source: Any, truth: dict[tuple[int, int], Truth], unsure: Collection[tuple[int, int]] = ()
) -> Counter[str]:
    """The same of a capture's bytes or file; `truth` by client port and a number; the `unsure` ones are not counted."""
    capture = lp.read(source)
    port = {s["stream"]: s["client_port"] for s in _rows(capture, "streams", "stream", "client_port")}
    sure: dict[int, float] = defaultdict(float)
    for row in _rows(capture, "causes", "exchange", "cause", "parent", "duration_ms", "confidence"):
        if row["cause"] == "delayed_ack" and row["parent"] == "nagle" and row["duration_ms"] >= LABEL_MS:
            sure[row["exchange"]] = max(sure[row["exchange"]], row["confidence"])
    asked = defaultdict(list)
    for (at, number), one in truth.items():
        asked[at].append((one.asked_ns, number))
    out: Counter[str] = Counter()
    found = set()
    starts = capture.arrow("exchanges")["start"].cast("int64").to_pylist()
    for row, start in zip(_rows(capture, "exchanges", "exchange", "stream"), starts, strict=True):
        at = port[row["stream"]]
        before = [a for a in asked[at] if a[0] and a[0] <= start]
        confidence = sure[row["exchange"]]
        if not before or not confidence:
            continue
        key = at, max(before)[1]
        if key in unsure:
            continue
        right = truth[key].stalled
        if confidence >= 0.9:
            out["hit" if right else "false"] += 1
            found |= {key}
        else:
            out["probable" if right else "improbable"] += 1
    out["missed"] = sum(1 for key, one in truth.items() if one.stalled and key not in found and key not in unsure)
    return out


def _rows(capture: lp.Capture, table: str, *columns: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = capture.arrow(table).select(list(columns)).to_pylist()
    return rows


def runs(
    situations: Sequence[Situation | Mixture],
    rtts: tuple[float, ...],
    burst_ms: float,
    seeds: int,
    missing: float = 0.0,
) -> Iterator[tuple[str, Counter[str]]]:
    """Each situation at each round trip and point of capture: its name and what `judged` says."""
    for situation in situations:
        for rtt in rtts:
            for point, path in points(rtt).items():
                for seed in range(1, seeds + 1):
                    shaky = replace(path, burst_ms=burst_ms, jitter_ms=burst_ms / 20)
                    made = situation.record(shaky, seed=seed + int(rtt * 7))
                    tape = holes(made.tape, missing, seed) if missing else made.tape
                    yield f"{situation.name}, {rtt:g} ms, {point}, seed {seed}", judged(tape, made.truth)


def precision(total: Counter[str]) -> float:
    """Of what was proven, how much is right? 1.0 where nothing was."""
    said = total["hit"] + total["false"]
    return total["hit"] / said if said else 1.0


def recall(total: Counter[str]) -> float:
    """Of the stalls, how many were proven?"""
    there = total["hit"] + total["missed"]
    return total["hit"] / there if there else 1.0
