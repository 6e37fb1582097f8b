"""What else could explain it, and why did that lose? A finding and the evidence in, one rival in words out."""

from __future__ import annotations

from collections.abc import Mapping

from latpcap.findings.sockets import Pool
from latpcap.findings.totals import SIDES, Spent
from latpcap.format import ms
from latpcap.limits import LIMITS
from latpcap.vocabulary import BACKEND, BECAUSES, PROVEN, RIVALS, STALL

REPEATED = ("the program paused", "bytes went out a second time, which no program does")
WINDOW = ("the sender's congestion window", "what waited would not have fitted the announced window")
BY_ITSELF = (
    "the server's host asks by itself while it is asked",
    "those requests lie inside these, from just behind the request to just before the answer, whenever that is",
)
"""What else may put one server's request inside another's, and why that lost."""
TOO_LONG = ("a connection on which the host waited meanwhile", "it is not in this capture")
"""Of a wait that no kernel holds so long."""
OTHERS = {
    "fast_retransmit": ("packets overtaken on the path", "duplicate or selective ACKs made the sender repeat them"),
    "tlp": REPEATED,
    "rto": REPEATED,
    "receive_window": WINDOW,
    "zero_window": WINDOW,
}
"""The strongest rival of each cause that is proven without counts, and why it lost."""
TOGETHER = {
    ("other_path", "timer_length"): (
        "delayed_ack, an ACK held on a connection of that host to another one, which is not in this capture",
        "not ruled out: the wait is as long as such a timer",
    ),
}
"""Rivals that what is missing to exclude them makes plainer."""


def rival(
    item: Spent, pools: Mapping[str, Pool], handshake_ms: float | None, left: tuple[str, str] | None = None
) -> tuple[str, str]:
    """The strongest other explanation, and why it lost (or that it did not).

    `left`: the rival that the finding's own rows leave, and what is missing to exclude it.
    """
    if left is not None and item.confidence < PROVEN and not (item.owner in pools and mixed(pools[item.owner])):
        name, missing = left
        if left in TOGETHER:
            return TOGETHER[left]
        return f"{name}, {RIVALS.get(name, name)}", f"not ruled out: {BECAUSES.get(missing, missing)}"
    if item.owner == BACKEND:
        return BY_ITSELF
    if item.cause == STALL:
        return f"the {item.owner}'s program pauses between its writes", _against_pause(pools[item.owner])
    if item.cause in ("server_think", "client_think"):
        if float(item.ordered[0]) > LIMITS["held_most_ms"]:
            return TOO_LONG
        return _against_stall(pools[item.owner], item.owner)
    if item.cause == "network":
        return "the programs are slow", _against_programs(handshake_ms)
    if item.cause in OTHERS:
        return OTHERS[item.cause]
    return "any other cause", "the packets that would tell are not in the capture"


def _against_pause(pool: Pool) -> str:
    parts = []
    if pool.verdict == "mixed":
        parts.append(f"on {pool.nagle_streams:,} of {pool.streams:,} connections")
    if pool.slope is not None and pool.slope > LIMITS["slope_follows"]:
        parts.append(f"the gaps follow the ACKs (slope {pool.slope:.2f}; a pause would give 0)")
    parts.append(f"{pool.tight:,} of {pool.held:,} segments left within {pool.tight_ms or 0:.3g} ms of theirs")
    before = f"{pool.refuted:,}" if pool.refuted else "none"
    parts.append(f"{before} left before" + (", on other connections" if pool.verdict == "mixed" else ""))
    if not pool.acts:
        return "not ruled out: " + "; ".join(parts)
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
    if pool.verdict == "pause" and pool.slope is not None and pool.slope <= LIMITS["slope_follows"]:
        return name, f"the gaps do not follow the ACKs that they end near (slope {pool.slope:.2f})"
    if pool.verdict == "pause":
        left = f"{pool.tight:,} of {pool.held:,} gaps with a held ACK" if pool.tight else f"none of {pool.held:,} gaps"
        return name, f"{left} ended as soon after {'it' if pool.tight else 'a held ACK'} as a kernel sends"
    if pool.acts:
        return name, "it is there too, as a finding of its own; this time is outside of it"
    if pool.held:  # rows that they leave in doubt have said so
        return name, f"{pool.held:,} of its gaps ended with a held ACK: what stands here is proven without them"
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
