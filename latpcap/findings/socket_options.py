"""How are the sockets set? The table of evidence in; options with their counts, the receiver's timer, and findings out.

An option is known only where on and off would have behaved differently, and the counts of both are given: a program
that writes each message at once never shows whether Nagle would have held anything back.

Findings: options that changed on the way; held ACKs that nobody waited for; and, where one direction alone was
captured, gaps that may be stalls. There a gap between two small segments in which a packet of its peer came (its
echoed time stamp moved) may be Nagle's wait for a held ACK, or a pause of the program in which an ACK happened to come:
never more than suspected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.findings.schema import Finding, State, wireshark_filter
from latpcap.limits import LIMITS
from latpcap.user_waits.cause_totals import endpoint
from latpcap.user_waits.segments import segments
from latpcap.vocabulary import GUESSED, PROBABLE, SHOWN, SIDES, STALL

if TYPE_CHECKING:
    import pyarrow as pa


TIMERS = (40, 50, 100, 200, 250)
"""Delayed-ACK timers in ms whose users are known, as the catalogue names them (Linux TCP_DELACK_MIN, FreeBSD r360010,
cc938206)."""
LINUX_HZ = (250, 300)
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
    """Connections that show it on, and off; 0 and 0 where that is unknown."""
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
    if "mixed" in verdicts:  # the others' programs pause, which shows nothing of the option
        return Option("off", on, off, chances, streams_on, streams_off)
    if "nagle" in verdicts and "nodelay" not in verdicts:
        return Option("off", on, off, chances, streams_on, streams_off)
    if on >= LIMITS["option_few"] and "nagle" not in verdicts and on > LIMITS["option_against_times"] * off:
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
    slack = max(2 * (tick or 0.0), LIMITS["timer_slack_ms"])
    fits = [t for t in TIMERS if shortest >= t - LIMITS["timer_early_ms"] and median <= t + slack]
    value = float(max(fits)) if fits else None
    near = value is not None and median <= value + (2 * tick if tick else LIMITS["timer_clear_ms"])
    return Timer(shortest, median, longest, value, tick, luck, _os(value, tick) if near else None)


def _os(value: float | None, tick: float | None) -> str | None:
    """What the receiver's timer shows of its system; empty where it shows nothing."""
    if value is None:
        return None
    if value == 40 and tick is not None and round(1000 / tick) in LINUX_HZ:
        return f"Linux (40 ms on a {tick:.3g} ms tick: CONFIG_HZ={1000 / tick:.0f})"
    return words.say(f"timer_user_{value:.0f}")


def of_options(evidence: pa.Table) -> list[Finding]:
    """Options that were set or taken back while the capture ran: a deploy, a reload, a log-in that ended."""
    found = []
    for row in evidence.to_pylist():
        frame, side = row["changed_frame"], row["sender"]
        if frame is None:
            continue
        off = row["changed_to"] == "nagle"
        before, after = row["changed_before"], row["changed_after"]
        waited, left = (after, before) if off else (before, after)
        sure = SHOWN if row["changed_grade"] == "proven" else PROBABLE
        end = endpoint(row["server"], row["server_port"])
        found.append(
            Finding(
                kind="change", server=row["server"], server_port=row["server_port"], cause=STALL, owner=side,
                client=row["client"], confidence=sure, sender=side,
                nodelay="off" if off else "on", nodelay_seen_off=waited, nodelay_seen_on=left, worst_frames=(frame,),
                filter=f"frame.number == {frame}", sentence="option_off" if off else "option_on",
                values={"frame": frame, "side": side, "server": end, "before": before, "after": after},
            )
        )  # fmt: skip
    return found


def held_for_nobody(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Held ACKs that freed no segment, by server and by the side that held them."""
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    held = events.held() if events is not None else ()
    if not held or not len(held[0]):
        return []
    ends = arrays.looked_up(streams, "stream", held[2], ("server", "server_port"))
    groups: dict[tuple[str, int, str], list[tuple[float, int, int]]] = {}
    for ms, frame, stream, by_client, (name, port) in zip(*(c.tolist() for c in held), ends, strict=True):
        groups.setdefault((name, port, "client" if by_client else "server"), []).append((ms, frame, stream))
    found = []
    for (server, port, side), seen in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        if len(seen) < LIMITS["held_few"]:
            continue
        ms = np.sort([s[0] for s in seen])
        typical = sorted(seen)[len(seen) // 2]
        values = {"side": side, "n": len(seen), "low": float(ms[0]), "high": float(ms[-1])}
        found.append(
            Finding(
                kind="harmless", server=server, server_port=port, cause="delayed_ack", owner=side,
                grade="harmless", confidence=SHOWN, sender=SIDES[side], delayed_ack="on",
                delayed_ack_seen_on=len(seen), exchanges=0, streams=len({s[2] for s in seen}),
                median_ms=arrays.percentile(ms, 0.5), p10_ms=arrays.percentile(ms, 0.1),
                p90_ms=arrays.percentile(ms, 0.9), max_ms=float(ms[-1]), typical_stream=typical[2],
                typical_ms=typical[0], typical_frames=(typical[1],),
                filter=f"tcp.stream eq {typical[2]} and frame.number == {typical[1]}",
                sentence="held_back_harmless", values={"server": endpoint(server, port), **values},
            )
        )  # fmt: skip
    return found


METHOD = "one_way"
"""The `method` of their rows among the exchanges."""


def suspects(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Servers at which a stall is suspected from one direction alone, and the side whose packets were captured."""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    method, methods = arrays.codes(exchanges, "method")
    rows = np.flatnonzero(method == methods.index(METHOD)) if METHOD in methods else np.zeros(0, np.int64)
    if not len(rows):
        return []
    column = {c: arrays.numbers(exchanges, c) for c in ("stream", "request_first_frame", "request_last_frame")}
    held, nagle = arrays.numbers(exchanges, "delayed_ack_ms"), arrays.numbers(exchanges, "nagle_ms")
    groups: dict[tuple[str, int, str, str], list[tuple[float, int, int, int]]] = defaultdict(list)
    ends = arrays.looked_up(streams, "stream", column["stream"][rows], ("server", "server_port", "client_packets"))
    for row, (server, port, client_packets) in zip(rows.tolist(), ends, strict=True):
        number, *frames = (int(column[c][row]) for c in ("stream", "request_first_frame", "request_last_frame"))
        # what was freed is seen as an ACK's round trip only where the ACKs were captured
        how = "acks" if nagle[row] else "data"
        seen = "client" if client_packets else "server"
        groups[server, port, seen, how].append((float(held[row]), number, frames[0], frames[1]))
    order = sorted(groups.items(), key=lambda g: -len(g[1]))
    return [_row(*key, seen) for key, seen in order if len(seen) >= LIMITS["one_way_gaps"]]


def _row(
    server: str, port: int, seen_side: str, how: str, seen: list[tuple[float, int, int, int]]
) -> Finding:  # fmt: skip
    import numpy as np

    seen.sort()
    ms = np.array([s[0] for s in seen])
    typical = seen[len(seen) // 2]
    sender = seen_side if how == "data" else SIDES[seen_side]
    values = {
        "side": seen_side, "n": len(seen), "low": float(ms[0]), "high": float(ms[-1]), "sender": sender,
        "receiver": SIDES[sender], "other": SIDES[seen_side],
    }  # fmt: skip
    return Finding(
        kind="one_way", server=server, server_port=port, cause=STALL, owner=sender,
        held_by=SIDES[sender], streams=len({s[1] for s in seen}), total_ms=float(ms.sum()),
        median_ms=arrays.percentile(ms, 0.5), p10_ms=arrays.percentile(ms, 0.1),
        p90_ms=arrays.percentile(ms, 0.9), max_ms=float(ms[-1]),
        confidence=GUESSED, limited_by=("one_direction",), sender=sender,
        nodelay="unknown",
        delayed_ack="unknown", rival=words.say("rival_pauses", sender=sender),
        rival_lost=words.say("rival_one_way_lost"), typical_stream=typical[1],
        typical_ms=typical[0], typical_frames=(typical[2], typical[3]),
        filter=wireshark_filter(typical[1], typical[2], typical[3]),
        sentence=f"one_way_{how}", values=values,
    )  # fmt: skip


def mixed(pool: Pool) -> bool:
    """Is Nagle's algorithm cleared although much speaks for it, as where only some of its sockets have TCP_NODELAY?

    Pauses that end near ACKs by chance do not follow them; where the holds vary too little to tell, those are fewer.
    """
    least = max(LIMITS["option_few"], LIMITS["mixed_tight_share"] * pool.held)
    if pool.verdict != "nodelay" or pool.tight < least:
        return False
    slope, times = pool.slope, LIMITS["mixed_tight_times"]
    return bool(slope > LIMITS["slope_follows"] if slope is not None else pool.tight >= times * pool.refuted)
