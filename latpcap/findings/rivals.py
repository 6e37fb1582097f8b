"""What else could explain it, and why did that lose? A finding and the evidence in, one rival in words out."""

from __future__ import annotations

from collections.abc import Mapping

from latpcap.findings.sockets import Pool
from latpcap.findings.totals import SIDES, Spent
from latpcap.limits import LIMITS
from latpcap.vocabulary import BACKEND, BECAUSES, PROVEN, RIVALS, STALL
from latpcap.words import joined, say

OTHERS = {
    "fast_retransmit": "overtaken", "tlp": "repeated", "rto": "repeated", "receive_window": "cwnd",
    "zero_window": "cwnd",
}  # fmt: skip
"""The strongest rival of each cause that is proven without counts."""
TOGETHER = {("other_path", "timer_length"): "other_path_timer"}
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
            return _pair(TOGETHER[left])
        rest = say("rival_left", name=name, meaning=RIVALS.get(name, name))
        return rest, say("not_ruled_out", why=BECAUSES.get(missing, missing))
    if item.owner == BACKEND:
        return _pair("by_itself")
    if item.cause == STALL:
        return say("rival_pauses", sender=item.owner), _against_pause(pools[item.owner])
    if item.cause in ("server_think", "client_think"):
        if float(item.ordered[0]) > LIMITS["held_most_ms"]:
            return _pair("too_long")
        stall = say("rival_stall", owner=item.owner, holder=SIDES[item.owner])
        return stall, _against_stall(pools[item.owner])
    if item.cause == "network":
        kernels = "rival_programs_lost" if handshake_ms is not None else "rival_programs_kernels"
        return say("rival_programs"), say(kernels, took_ms=handshake_ms or 0.0)
    return _pair(OTHERS.get(item.cause, "any"))


def _pair(name: str) -> tuple[str, str]:
    return say(f"rival_{name}"), say(f"rival_{name}_lost")


def _against_pause(pool: Pool) -> str:
    parts = []
    if pool.verdict == "mixed":
        parts.append(say("pause_on_some", n=pool.nagle_streams, of=pool.streams))
    if pool.slope is not None and pool.slope > LIMITS["slope_follows"]:
        parts.append(say("pause_follows", slope=pool.slope))
    parts.append(say("pause_left", n=pool.tight, of=pool.held, within=pool.tight_ms or 0.0))
    before = "pause_left_before" if pool.refuted else "pause_none_before"
    parts.append(say(f"{before}_elsewhere" if pool.verdict == "mixed" else before, n=pool.refuted))
    return joined(parts) if pool.acts else say("not_ruled_out", why=joined(parts))


def _against_stall(pool: Pool) -> str:
    left = say("left_over", n=pool.refuted)
    if mixed(pool):
        return say("stall_on_some", left=left, n=pool.tight)
    if pool.verdict == "nodelay" or (pool.refuted and not pool.acts):
        return say("stall_no_nagle", left=left)
    if pool.verdict == "pause" and pool.slope is not None and pool.slope <= LIMITS["slope_follows"]:
        return say("stall_no_slope", slope=pool.slope)
    if pool.verdict == "pause":
        return say("stall_late" if pool.tight else "stall_all_late", n=pool.tight, of=pool.held)
    if pool.acts:
        return say("stall_too")
    if pool.held:  # rows that they leave in doubt have their own rival
        return say("stall_without", n=pool.held)
    return say("stall_none")


def mixed(pool: Pool) -> bool:
    """Is Nagle's algorithm cleared although much speaks for it, as where only some of its sockets have TCP_NODELAY?

    Pauses that end near ACKs by chance do not follow them; where the holds vary too little to tell, those are fewer.
    """
    least = max(LIMITS["option_few"], LIMITS["mixed_tight_share"] * pool.held)
    if pool.verdict != "nodelay" or pool.tight < least:
        return False
    slope, times = pool.slope, LIMITS["mixed_tight_times"]
    return bool(slope > LIMITS["slope_follows"] if slope is not None else pool.tight >= times * pool.refuted)
