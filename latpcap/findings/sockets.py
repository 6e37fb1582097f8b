"""How are the sockets set? The pooled evidence in; options with their counts, the receiver's timer, a rival out.

An option is told only where on and off would have behaved differently, and the counts of both are given: a program
that writes each message at once never shows whether Nagle would have held anything back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from latpcap.findings.schema import State
from latpcap.limits import LIMITS

TIMERS = {
    10: "Windows Server (its template for short paths)",
    40: "Linux, or FreeBSD since 2020",
    50: "Solaris, or Windows (its template for long paths)",
    100: "macOS, or FreeBSD before 2020",
    200: "Windows",
    250: "lwIP",
}
"""Delayed-ACK timers in ms and who is known to use them (facts: Linux TCP_DELACK_MIN, FreeBSD r360010, cc938206)."""
LINUX_HZ = (250, 300)
SHORTER = "Linux (tcp_delack_max: a route with rto_min)"
HELD_UP = ("nagle", "mixed")
"""Verdicts of the table of evidence that say: Nagle's algorithm acts, on all of its connections or on some."""


@dataclass(frozen=True)
class Option:
    """One socket option: `state` is "on", "off", "mixed" (its connections differ) or "unknown"; counts of both."""

    state: State
    seen_on: int
    seen_off: int
    opportunities: int
    streams_on: int = 0
    """Connections that show it on, and off; 0 and 0 where that is not told."""
    streams_off: int = 0


@dataclass(frozen=True)
class Timer:
    """The receiver's delayed-ACK timer: nulls where its holds do not tell."""

    hold_min_ms: float | None = None
    hold_median_ms: float | None = None
    hold_max_ms: float | None = None
    timer_ms: float | None = None
    tick_ms: float | None = None
    tick_p: float | None = None
    os_hint: str | None = None


@dataclass(frozen=True)
class Pool:
    """What was counted of one sender, over all its clients: the rows of the table of evidence as one.

    Times are those of the client with the most held ACKs; None where nothing was measured.
    """

    verdict: str = "open"
    clients: int = 0
    opportunities: int = 0
    held: int = 0
    tight: int = 0
    refuted: int = 0
    streams: int = 0
    nagle_streams: int = 0
    nodelay_streams: int = 0
    slope: float | None = None
    tight_ms: float | None = None
    sender_rtt_ms: float | None = None
    receiver_rtt_ms: float | None = None
    hold_min_ms: float | None = None
    hold_median_ms: float | None = None
    hold_max_ms: float | None = None
    release_median_ms: float | None = None
    release_p95_ms: float | None = None
    tick_ms: float | None = None
    tick_p: float | None = None

    @property
    def acts(self) -> bool:
        """Does Nagle's algorithm act there, on all connections or on some?"""
        return self.verdict in HELD_UP


def pool(evidence: list[dict[str, Any]], sender: str) -> Pool:
    """The rows of one server with this sender as one."""
    rows = [r for r in evidence if r["sender"] == sender]
    if not rows:
        return Pool()
    most = max(rows, key=lambda r: (r["held"], r["opportunities"]))
    merged = {f.name: most[f.name] for f in fields(Pool) if f.name in most}
    for column in ("opportunities", "held", "tight", "refuted", "streams", "nagle_streams", "nodelay_streams"):
        merged[column] = sum(r[column] for r in rows)
    for column, pick in (("hold_min_ms", min), ("hold_max_ms", max)):
        values = [r[column] for r in rows if r[column] is not None]
        merged[column] = pick(values) if values else None
    return Pool(**merged | {"clients": len(rows)})


def nodelay(rows: list[dict[str, Any]], sender: str) -> Option:
    """Is TCP_NODELAY set on this sender's sockets?"""
    mine = [r for r in rows if r["sender"] == sender]
    off = sum(r["tight"] if r["verdict"] == "open" else r["held"] for r in mine if r["verdict"] in (*HELD_UP, "open"))
    on = sum(r["refuted"] for r in mine)
    chances = sum(r["opportunities"] for r in mine)
    verdicts = {r["verdict"] for r in mine}
    streams_on, streams_off = (sum(r[f"{v}_streams"] for r in mine) for v in ("nodelay", "nagle"))
    if ("mixed" in verdicts and streams_on) or (verdicts >= {"nagle", "nodelay"} and on >= LIMITS["option_few"]):
        return Option("mixed", on, off, chances, streams_on, streams_off)
    if "mixed" in verdicts:  # the others' programs pause, which says nothing of the option
        return Option("off", on, off, chances, streams_on, streams_off)
    if "nagle" in verdicts and "nodelay" not in verdicts:
        return Option("off", on, off, chances, streams_on, streams_off)
    if on >= LIMITS["option_few"] and "nagle" not in verdicts and on > LIMITS["option_against_share"] * off:
        return Option("on", on, off, chances, streams_on, streams_off)
    return Option("unknown", on, off, chances)


def delayed_ack(rows: list[dict[str, Any]], sender: str) -> Option:
    """Does the peer of this sender delay its ACKs? Only lone small segments tell that it does not."""
    mine = [r for r in rows if r["sender"] == sender]
    held = sum(r["held"] for r in mine)
    prompt = sum(r["prompt"] for r in mine)
    if held >= LIMITS["option_few"]:
        return Option("on", held, prompt, held + prompt)
    if prompt >= LIMITS["option_enough"] and not held:
        return Option("off", held, prompt, prompt)
    return Option("unknown", held, prompt, held + prompt)


def cork(rows: list[dict[str, Any]], sender: str, corked: int) -> Option:
    """Does this sender cork? Small parts of one message that left apart were not corked."""
    apart = sum(r["opportunities"] for r in rows if r["sender"] == sender)
    if corked >= LIMITS["option_few"] and not apart:
        return Option("on", corked, apart, corked + apart)
    if apart >= LIMITS["option_few"] and not corked:
        return Option("off", corked, apart, apart)
    return Option("unknown", corked, apart, corked + apart)


def timer(pool: Pool) -> Timer:
    """Which timer ended the receiver's holds, on which tick, and whose habit is that?

    The value is fitted only to holds that agree with one known timer: none ends before it, and half of them end
    within two ticks of it.
    """
    shortest, median, longest = pool.hold_min_ms, pool.hold_median_ms, pool.hold_max_ms
    if shortest is None or median is None or pool.held < LIMITS["option_few"]:
        return Timer(shortest, median, longest)
    tick, luck = pool.tick_ms, pool.tick_p
    if luck is None or luck > LIMITS["tick_luck"]:
        tick = None
    if median < LIMITS["shortest_delack_ms"] and tick is not None and round(1000 / tick) in LINUX_HZ:
        return Timer(shortest, median, longest, None, tick, luck, SHORTER)
    slack = max(2 * (tick or 0.0), LIMITS["timer_slack_ms"])
    fits = [t for t in TIMERS if shortest >= t - LIMITS["timer_early_ms"] and median <= t + slack]
    value = float(max(fits)) if fits else None
    near = value is not None and median <= value + (2 * tick if tick else LIMITS["timer_clear_ms"])
    return Timer(shortest, median, longest, value, tick, luck, _os(value, tick) if near else None)


def _os(value: float | None, tick: float | None) -> str | None:
    """An honest word about the receiver's system: only where its timer says something."""
    if value is None:
        return None
    if value == 40 and tick is not None and round(1000 / tick) in LINUX_HZ:
        return f"Linux (40 ms on a {tick:.3g} ms tick: CONFIG_HZ={1000 / tick:.0f})"
    return TIMERS[int(value)]
