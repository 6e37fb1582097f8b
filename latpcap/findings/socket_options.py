"""Socket options of the hosts (TCP_NODELAY, delayed ACK, TCP_CORK) and the delayed-ACK timer, from the evidence table.

An option is known only where on and off differ in what they send, so both counts are given: a program that writes each
message at once never shows whether Nagle's algorithm is on.

Findings: options that changed during the capture, held ACKs that released nothing, and possible stalls where only one
direction was captured. In such a capture, a gap between two small segments during which the peer sent something (the
echoed timestamp moved) may be Nagle's wait for a held ACK, or a pause of the program. It is only suspected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from latpcap import arrays, words
from latpcap.findings.schema import Finding, State, wireshark_filter
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.user_waits.segments import segments
from latpcap.vocabulary import GUESSED, PROBABLE, SHOWN, SIDES, STALL

TIMERS = {40: "timer_user_40", 50: "timer_user_50", 100: "timer_user_100", 200: "timer_user_200", 250: "timer_user_250"}
"""Delayed-ACK timers of known systems in ms, and the names of these (Linux TCP_DELACK_MIN; FreeBSD r360010, cc938206).
"""
TEMPLATE_TIMER = 50
"""That of Windows in ms where its TCP template is the one for long paths."""
LINUX_HZ = (250, 300)
"""Values of CONFIG_HZ whose tick distinguishes Linux from other systems with a 40 ms timer."""
NAGLE_VERDICTS = ("nagle", "mixed")
"""Verdicts of the evidence table with Nagle's algorithm on: on all of a sender's connections, or on some."""


@dataclass(frozen=True)
class Option:
    """State of one socket option ("mixed": its connections differ), with the observations for on and for off."""

    state: State
    seen_on: int
    seen_off: int
    opportunities: int
    streams_on: int = 0
    """Connections that show it on (here) and off (below); both 0 where unknown."""
    streams_off: int = 0

    def columns(self, name: str) -> dict[str, Any]:
        """Return the columns of a finding about the option of this name."""
        counts = {"seen_on": self.seen_on, "seen_off": self.seen_off, "opportunities": self.opportunities}
        if name == "nodelay":
            counts |= {"streams_on": self.streams_on, "streams_off": self.streams_off}
        return {name: self.state, **{f"{name}_{count}": value for count, value in counts.items()}}


@dataclass(frozen=True)
class Timer:
    """The receiver's delayed-ACK timer, from how long it held ACKs; None where they do not show it.

    The fields are columns of a finding.
    """

    hold_min_ms: float | None = None
    hold_median_ms: float | None = None
    hold_max_ms: float | None = None
    timer_ms: float | None = None
    tick_ms: float | None = None
    tick_p: float | None = None
    os_hint: str | None = None


@dataclass(frozen=True)
class Pool:
    """The rows of the evidence table about one sender, merged: counts are summed over its clients.

    Times are of the client with the most held ACKs, None if unmeasured; the hold's bounds are over all clients.
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
        """Whether Nagle's algorithm is on, for all connections or some."""
        return self.verdict in NAGLE_VERDICTS


def pool(evidence: list[dict[str, Any]], sender: str) -> Pool:
    """Merge the rows of one server about this sender."""
    rows = [row for row in evidence if row["sender"] == sender]
    if not rows:
        return Pool()
    main = max(rows, key=lambda row: (row["held"], row["opportunities"]))
    merged = {field.name: main[field.name] for field in fields(Pool) if field.name in main}
    for column in ("opportunities", "held", "tight", "refuted", "streams", "nagle_streams", "nodelay_streams"):
        merged[column] = sum(row[column] for row in rows)
    for column, bound in (("hold_min_ms", min), ("hold_max_ms", max)):
        values = [row[column] for row in rows if row[column] is not None]
        merged[column] = bound(values) if values else None
    return Pool(**merged | {"clients": len(rows)})


def nodelay(rows: list[dict[str, Any]], sender: str) -> Option:
    """Return the state of TCP_NODELAY on this sender's sockets."""
    sender_rows = [row for row in rows if row["sender"] == sender]
    seen_off = sum(
        row["tight"] if row["verdict"] == "open" else row["held"]
        for row in sender_rows
        if row["verdict"] in (*NAGLE_VERDICTS, "open")
    )
    seen_on = sum(row["refuted"] for row in sender_rows)
    chances = sum(row["opportunities"] for row in sender_rows)
    verdicts = {row["verdict"] for row in sender_rows}
    streams_on, streams_off = (sum(row[f"{name}_streams"] for row in sender_rows) for name in ("nodelay", "nagle"))
    is_seen_on = seen_on >= LIMITS["option_few"]
    state: State = "unknown"
    if ("mixed" in verdicts and streams_on) or (verdicts >= {"nagle", "nodelay"} and is_seen_on):
        state = "mixed"
    # in "mixed" the other connections pause in their program, which does not show the option
    elif "mixed" in verdicts or ("nagle" in verdicts and "nodelay" not in verdicts):
        state = "off"
    elif is_seen_on and "nagle" not in verdicts and seen_on > LIMITS["option_against_times"] * seen_off:
        state = "on"
    if state == "unknown":
        streams_on = streams_off = 0
    return Option(state, seen_on, seen_off, chances, streams_on, streams_off)


def delayed_ack(rows: list[dict[str, Any]], sender: str) -> Option:
    """Return whether the peer of this sender delays its ACKs. Only lone small segments show that it does not."""
    sender_rows = [row for row in rows if row["sender"] == sender]
    held = sum(row["held"] for row in sender_rows)
    prompt = sum(row["prompt"] for row in sender_rows)
    if held >= LIMITS["option_few"]:
        return Option("on", held, prompt, held + prompt)
    if prompt >= LIMITS["option_enough"] and not held:
        return Option("off", held, prompt, prompt)
    return Option("unknown", held, prompt, held + prompt)


def cork(rows: list[dict[str, Any]], sender: str, corked: int) -> Option:
    """Return whether this sender uses TCP_CORK. Small parts of one message sent separately show that it does not."""
    separate = sum(row["opportunities"] for row in rows if row["sender"] == sender)
    if corked >= LIMITS["option_few"] and not separate:
        return Option("on", corked, separate, corked + separate)
    if separate >= LIMITS["option_few"] and not corked:
        return Option("off", corked, separate, separate)
    return Option("unknown", corked, separate, corked + separate)


def timer(pool: Pool) -> Timer:
    """Estimate the receiver's delayed-ACK timer, its tick, and the system that has it.

    A known timer fits if no hold is shorter and half of the holds end within two ticks of it. Holds of 40-44 ms on a 4
    ms tick, for example, are Linux with CONFIG_HZ=250.
    """
    shortest, median, longest = pool.hold_min_ms, pool.hold_median_ms, pool.hold_max_ms
    if shortest is None or median is None or pool.held < LIMITS["option_few"]:
        return Timer(shortest, median, longest)
    tick, tick_p = pool.tick_ms, pool.tick_p
    if tick_p is None or tick_p > LIMITS["tick_luck"]:
        tick = None
    tolerance = max(2 * (tick or 0.0), LIMITS["timer_slack_ms"])
    fitting = [
        timer for timer in TIMERS if shortest >= timer - LIMITS["timer_early_ms"] and median <= timer + tolerance
    ]
    value = float(max(fitting)) if fitting else None
    is_close = value is not None and median <= value + (2 * tick if tick else LIMITS["timer_clear_ms"])
    hint = _os_hint(value, tick) if value is not None and is_close else None
    return Timer(shortest, median, longest, value, tick, tick_p, hint)


def system_with(timer_ms: float, tick_ms: float | None) -> str:
    """Return the system that has this timer; `timer_ms` is one of `TIMERS`."""
    return "Linux" if _is_linux(timer_ms, tick_ms) else words.say(TIMERS[round(timer_ms)])


def _os_hint(timer_ms: float, tick_ms: float | None) -> str:
    """Return the system with this timer, and what makes it that one."""
    if tick_ms is not None and _is_linux(timer_ms, tick_ms):
        return f"Linux (40 ms on a {tick_ms:.3g} ms tick: CONFIG_HZ={1000 / tick_ms:.0f})"
    system = system_with(timer_ms, tick_ms)
    return words.say("timer_template", system=system) if timer_ms == TEMPLATE_TIMER else system


def _is_linux(timer_ms: float, tick_ms: float | None) -> bool:
    """Return whether other systems with a timer of 40 ms are excluded by the tick."""
    return timer_ms == 40 and tick_ms is not None and round(1000 / tick_ms) in LINUX_HZ


def of_options(evidence: pa.Table) -> Iterator[Finding]:
    """Find options that changed during the capture: by a deployment, a reload, or a login that ended."""
    for row in evidence.to_pylist():
        frame, side = row["changed_frame"], row["sender"]
        if frame is None:
            continue
        is_off = row["changed_to"] == "nagle"
        before, after = row["changed_before"], row["changed_after"]
        seen_off, seen_on = (after, before) if is_off else (before, after)
        confidence = SHOWN if row["changed_grade"] == "proven" else PROBABLE
        server = endpoint(row["server"], row["server_port"])
        yield Finding(
            kind="change", server=row["server"], server_port=row["server_port"], cause=STALL, owner=side,
            client=row["client"], confidence=confidence, sender=side,
            nodelay="off" if is_off else "on", nodelay_seen_off=seen_off, nodelay_seen_on=seen_on,
            worst_frames=(frame,), filter=f"frame.number == {frame}",
            sentence="option_off" if is_off else "option_on",
            values={"frame": frame, "side": side, "server": server, "before": before, "after": after},
        )  # fmt: skip


class _HeldAck(NamedTuple):
    """A held ACK that released no segment."""

    ms: float
    frame: int
    stream: int


def held_for_nobody(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """Find held ACKs that released no segment, by server and by the side that held them."""
    streams, events = tables["streams"], segments(tables)
    held = events.held() if events is not None else ()
    if not held or not len(held[0]):
        return
    ends = arrays.looked_up(streams, "stream", held[2], ("server", "server_port"))
    groups: dict[tuple[str, int, str], list[_HeldAck]] = {}
    for ms, frame, stream, by_client, (name, port) in zip(*(column.tolist() for column in held), ends, strict=True):
        groups.setdefault((name, port, "client" if by_client else "server"), []).append(_HeldAck(ms, frame, stream))
    for (server, port, side), holds in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        if len(holds) < LIMITS["held_few"]:
            continue
        ms = np.sort([hold.ms for hold in holds])
        typical = sorted(holds)[len(holds) // 2]
        values = {"side": side, "n": len(holds), "low": float(ms[0]), "high": float(ms[-1])}
        yield Finding(
            kind="harmless", server=server, server_port=port, cause="delayed_ack", owner=side,
            grade="harmless", confidence=SHOWN, sender=SIDES[side], delayed_ack="on",
            delayed_ack_seen_on=len(holds), exchanges=0, streams=len({hold.stream for hold in holds}),
            median_ms=arrays.percentile(ms, 0.5), p10_ms=arrays.percentile(ms, 0.1),
            p90_ms=arrays.percentile(ms, 0.9), max_ms=float(ms[-1]), typical_stream=typical.stream,
            typical_ms=typical.ms, typical_frames=(typical.frame,),
            filter=f"tcp.stream eq {typical.stream} and frame.number == {typical.frame}",
            sentence="held_back_harmless", values={"server": endpoint(server, port), **values},
        )  # fmt: skip


METHOD = "one_way"
"""The `method` of possible stalls among the exchanges, where only one direction was captured."""


def suspects(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find servers with possible stalls where only one direction was captured, with the captured side."""
    streams, stretches = tables["streams"], tables["stretches"]
    method, methods = arrays.codes(stretches, "method")
    rows = np.flatnonzero(method == methods.index(METHOD)) if METHOD in methods else np.zeros(0, np.int64)
    if not len(rows):
        return []
    columns = {
        column: arrays.numbers(stretches, column) for column in ("stream", "request_first_frame", "request_last_frame")
    }
    held, nagle = arrays.numbers(stretches, "delayed_ack_ms"), arrays.numbers(stretches, "nagle_ms")
    groups: dict[tuple[str, int, str, str], list[tuple[float, int, int, int]]] = defaultdict(list)
    ends = arrays.looked_up(streams, "stream", columns["stream"][rows], ("server", "server_port", "client_packets"))
    for row, (server, port, client_packets) in zip(rows.tolist(), ends, strict=True):
        stream, *frames = (
            int(columns[column][row]) for column in ("stream", "request_first_frame", "request_last_frame")
        )
        # the released segment shows as an ACK's round trip only if the receiver's side was captured
        captured = "acks" if nagle[row] else "data"
        seen_side = "client" if client_packets else "server"
        groups[server, port, seen_side, captured].append((float(held[row]), stream, frames[0], frames[1]))
    order = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [_suspect(*key, gaps) for key, gaps in order if len(gaps) >= LIMITS["one_way_gaps"]]


def _suspect(server: str, port: int, seen_side: str, how: str, gaps: list[tuple[float, int, int, int]]) -> Finding:
    """Return the finding of one server; `gaps`: ms, stream and the two frames; `how`: "data" or "acks" was captured."""
    gaps.sort()
    ms = np.array([gap[0] for gap in gaps])
    typical = gaps[len(gaps) // 2]
    sender = seen_side if how == "data" else SIDES[seen_side]
    values = {
        "side": seen_side, "n": len(gaps), "low": float(ms[0]), "high": float(ms[-1]), "sender": sender,
        "receiver": SIDES[sender], "other": SIDES[seen_side],
    }  # fmt: skip
    return Finding(
        kind="one_way", server=server, server_port=port, cause=STALL, owner=sender,
        held_by=SIDES[sender], streams=len({gap[1] for gap in gaps}), total_ms=float(ms.sum()),
        median_ms=arrays.percentile(ms, 0.5), p10_ms=arrays.percentile(ms, 0.1),
        p90_ms=arrays.percentile(ms, 0.9), max_ms=float(ms[-1]),
        confidence=GUESSED, limited_by=("one_direction",), sender=sender, nodelay="unknown",
        delayed_ack="unknown", rival=words.say("rival_pauses", sender=sender),
        rival_lost=words.say("rival_one_way_lost"), typical_stream=typical[1],
        typical_ms=typical[0], typical_frames=(typical[2], typical[3]),
        filter=wireshark_filter(typical[1], typical[2], typical[3]),
        sentence=f"one_way_{how}", values=values,
    )  # fmt: skip


def mixed(pool: Pool) -> bool:
    """Return whether Nagle's algorithm may be on for some sockets of a sender that was judged to have TCP_NODELAY.

    Pauses that end near ACKs by chance do not follow them. If the holds vary too little for a slope, the number of gaps
    that end at ACKs decides.
    """
    min_tight = max(LIMITS["option_few"], LIMITS["mixed_tight_share"] * pool.held)
    if pool.verdict != "nodelay" or pool.tight < min_tight:
        return False
    slope, ratio = pool.slope, LIMITS["mixed_tight_times"]
    return bool(slope > LIMITS["slope_follows"] if slope is not None else pool.tight >= ratio * pool.refuted)
