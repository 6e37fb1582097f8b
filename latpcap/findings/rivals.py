"""What else could explain it, and why did that lose? A finding and the evidence in, one rival in words out."""

from __future__ import annotations

from collections.abc import Mapping

from latpcap.findings.sockets import Pool
from latpcap.findings.totals import SIDES, Spent
from latpcap.format import ms
from latpcap.limits import LIMITS
from latpcap.vocabulary import BECAUSES, PROVEN, RIVALS, STALL

CLEARED = ("nodelay", "pause")
"""Verdicts on a sender that leave nothing to Nagle's algorithm."""
QUEUE = ("a queue on the path", "not ruled out: it may have held the larger part, by kernels' answers or time stamps")
"""What a program's time that is not proven may be instead."""
MORE = ("Nagle's algorithm on the sender", "a kernel pushes the end of what was written, and this was not pushed")
"""What a cork may be instead whose segment left with an ACK, sooner than by the timer."""
OTHERS = {
    "cwnd": ("the receiver's window, pacing or a small send buffer", "not ruled out by these packets"),
    "bandwidth": ("pacing by the sender", "not ruled out by these packets"),
    "cork": ("the program pauses for about 200 ms", "not ruled out by these packets"),
    "fast_retransmit": ("packets overtaken on the path", "duplicate or selective ACKs made the sender repeat them"),
    "tlp": ("the program paused", "bytes went out a second time, which no program does"),
    "rto": ("the program paused", "bytes went out a second time, which no program does"),
    "syn_rto": ("a slow accept", "the SYN went out a second time, and kernels answer SYNs by themselves"),
    "reordering": ("a loss repaired within a round trip", "the overtaken packets came by themselves"),
    "receive_window": ("the sender's congestion window", "what waited would not have fitted the announced window"),
    "zero_window": ("the sender's congestion window", "what waited would not have fitted the announced window"),
    "queueing": ("the programs are slow", "the receiver's own clock says that the packets were on the path"),
}
"""The strongest rival of each cause that needs no counts, and why it lost."""
_NUMBERS = "not ruled out: no second copy was seen, only numbers (IPv4 identifications) of frames that never came by"
BY_RULE = {
    "ip_id_gap": ("the program paused", _NUMBERS),
    "copy_not_seen": ("the program paused", _NUMBERS),
    "hole_filled": ("the program paused", "bytes that were missing came later, which no program does"),
}
"""The same of repairs whose first copy is not in the capture, by the rule that spoke."""


def rival(
    item: Spent,
    pools: Mapping[str, Pool],
    handshake_ms: float | None,
    rule: str | None = None,
    left: tuple[str, str] | None = None,
) -> tuple[str, str]:
    """The strongest other explanation, and why it lost (or that it did not); `rule` spoke for most of the time.

    `left`: the rival that the finding's own rows leave, and what is missing to exclude it.
    """
    if left is not None and item.confidence < PROVEN and not (item.owner in pools and mixed(pools[item.owner])):
        name, missing = left
        return f"{name}, {RIVALS.get(name, name)}", f"not ruled out: {BECAUSES.get(missing, missing)}"
    if item.cause == STALL:
        return f"the {item.owner}'s program pauses between its writes", _against_pause(pools[item.owner])
    if item.cause in ("nagle", "delayed_ack"):
        return f"the {item.owner}'s program paused", "the freed segments followed the ACKs within the path's time"
    if item.cause in ("server_think", "client_think"):
        pool = pools[item.owner]
        cleared = not pool.held or pool.verdict in CLEARED
        if item.confidence < PROVEN and cleared and not mixed(pool):
            return QUEUE
        return _against_stall(pool, item.owner)
    if item.cause == "cork" and item.total_ms < LIMITS["cork_ms"] * len(item.rows):
        return MORE
    if item.cause == "network":
        return "the programs are slow", _against_programs(handshake_ms)
    if rule in BY_RULE:
        return BY_RULE[rule]
    if item.cause in OTHERS:
        return OTHERS[item.cause]
    return "any other cause", "the packets that would tell are not in the capture"


def _against_pause(pool: Pool) -> str:
    parts = []
    if pool.verdict == "mixed":
        parts.append(f"on {pool.nagle_streams:,} of {pool.streams:,} connections")
    if pool.slope is not None:
        parts.append(f"the gaps follow the ACKs (slope {pool.slope:.2f}; a pause would give 0)")
    parts.append(f"{pool.tight:,} of {pool.held:,} segments left within {pool.tight_ms or 0:.3g} ms of theirs")
    before = f"{pool.refuted:,}" if pool.refuted else "none"
    parts.append(f"{before} left before" + (", on other connections" if pool.verdict == "mixed" else ""))
    if not pool.acts:
        few = "too few to rule it out" if pool.held < LIMITS["option_enough"] else "not ruled out"
        return f"{few}: " + "; ".join(parts)
    return "; ".join(parts)


def _against_stall(pool: Pool, owner: str) -> tuple[str, str]:
    name = f"Nagle on the {owner}, delayed ACK on the {SIDES[owner]}"
    if mixed(pool):
        on, off = _left_over(pool), f"{pool.tight:,} with their ACK"
        return (
            name,
            f"not ruled out: {on}, but {off}: TCP_NODELAY may not be set on all sockets",
        )
    if pool.verdict == "nodelay" or (pool.refuted and not pool.acts):
        return name, f"{_left_over(pool)}: Nagle does not act there"
    if pool.verdict == "pause":
        return name, f"the gaps do not follow the ACKs that they end near (slope {pool.slope or 0:.2f})"
    if pool.acts:
        return name, "it is there too, as a finding of its own; this time is outside of it"
    if pool.held:
        return name, f"not ruled out: {pool.held:,} of its gaps ended with a held ACK"
    return name, "no small segment waited behind an unacknowledged one here"


def _left_over(pool: Pool) -> str:
    if pool.refuted == 1:
        return "1 small segment left over an unacknowledged one"
    return f"{pool.refuted:,} small segments left over unacknowledged ones"


def mixed(pool: Pool) -> bool:
    """Is Nagle's algorithm cleared although much speaks for it, as where only some of its sockets have TCP_NODELAY?

    Pauses that end near ACKs by chance do not follow them; where the holds vary too little to tell, those are fewer.
    """
    least = max(LIMITS["option_few"], LIMITS["mixed_tight_share"] * pool.held)
    if pool.verdict != "nodelay" or pool.tight < least:
        return False
    slope, times = pool.slope, LIMITS["mixed_tight_times"]
    return bool(slope > LIMITS["slope_follows"] if slope is not None else pool.tight >= times * pool.refuted)


def _against_programs(handshake_ms: float | None) -> str:
    if handshake_ms is None:
        return "the shortest answers of the kernels alone take as long"
    return f"the kernels' handshake, where no program is asked, took {ms(handshake_ms)} ms"
