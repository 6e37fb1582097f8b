"""The closed vocabularies of the tables: causes, owners, families, grades, rules and protocols.

The words come from the core, with their meanings, in the order of the core's lists. This module adds the confidence
of findings by sentence, and colours for things that are not causes.
"""

from __future__ import annotations

from typing import NamedTuple

from latpcap import _core

PROVEN = 0.9
"""Confidence from which a verdict is proven. Below it a verdict is probable, down to `SUSPECTED` (excluded)."""

SUSPECTED = 0.5
"""Upper bound on a confidence from one direction alone; up to it a verdict is only suspected."""

HALVES = ("nagle", "delayed_ack")
STALL = " + ".join(HALVES)
"""The finding of Nagle's wait together with the delayed ACKs inside it; it has two owners."""
STALLS = (STALL, *HALVES)
"""That finding, and each half of it alone."""
BACKEND = "backend"
"""The owner of time that a server spent waiting for its own request to another server."""

_WORDS = _core.vocabulary()

SIDES = {"client": "server", "server": "client"}
"""Each side of a connection, with the opposite side."""

OWNERS: dict[str, str] = dict(_WORDS["owners"])
"""The values of the `owner` column of the `causes` table, each with its meaning."""

FAMILIES: dict[str, str] = dict(_WORDS["families"])
"""The groups of causes whose times are added up in an answer, each with its meaning."""

GRADES: dict[str, str] = dict(_WORDS["grades"])
"""The values of the `grade` column of the `causes` table, from certain to uncertain, each with its meaning."""

RULES: dict[str, str] = dict(_WORDS["rules"])
"""The tests that name causes: the values of the `rule` column, each with what it examines."""

BECAUSES: dict[str, str] = dict(_WORDS["becauses"])
"""The values of the `because` column: what excludes the rivals of a cause, or what is missing to prove it."""


class Cause(NamedTuple):
    """A cause of latency.

    `owner` is a key of `OWNERS`, or "sender" / "receiver" (of the bytes that had to wait) where only the stream shows
    which side that is; the `owner` column of the `causes` table then holds the side. `family` is a key of `FAMILIES`.
    `fix` is None where no setting of either side would help. `colour` is "#rrggbb". `traits` are those of `CauseTrait`
    in the core's vocabulary.
    """

    name: str
    meaning: str
    owner: str
    family: str
    fix: str | None
    colour: str
    traits: frozenset[str]


CAUSES: dict[str, Cause] = {
    name: Cause(name, meaning, owner, family, fix, colour, frozenset(traits))
    for name, meaning, owner, family, fix, colour, traits in _WORDS["causes"]
}
"""Every cause by name, in the order of the `causes` table."""

PROTOCOLS: dict[str, frozenset[str]] = {name: frozenset(traits) for name, traits in _WORDS["protocols"]}
"""Every value of a column `protocol`, with its traits: those of `ProtocolTrait` in the core's list of readers."""


SEEN, SHOWN, LIKELY, PROBABLE, GUESSED = 0.95, 0.9, 0.8, 0.7, 0.5
"""Confidence of a finding by its evidence. SEEN: a packet states it. SHOWN: several packets together show it, and
nothing else fits. LIKELY: the usual reason. PROBABLE: one of several reasons. GUESSED: a guess that names another
reason. Checked against the labelled captures (docs/verdicts.md).
"""
WORTH: dict[str, float] = {
    **dict.fromkeys((
        "arp_late", "broker_blocked", "client_id_twice", "datagram_failed", "datagram_late", "dhcp_checked",
        "dhcp_never", "dns_dead", "dns_failed", "dns_lost_pair", "dns_never", "dns_search", "ecn", "later_until",
        "refused", "refused_until", "tls_alert",
        "took_nothing_client", "took_nothing_server", "traceroute", "unreachable", "zero_window",
    ), SEEN),
    **dict.fromkeys((
        "buffered_events", "certificates", "client_think", "closed_on_request", "connects_in_turn", "expect_continue",
        "in_turn", "redirects", "reset", "syn_rto", "tls_certificates", "tls_each",
    ), SHOWN),
    **dict.fromkeys((
        "dns_lost", "dns_slow", "session_idled", "silent_peer", "syn_flood", "unanswered", "unanswered_request",
    ), LIKELY),
    "half_open": 0.6, "cork": 0.6,
}  # fmt: skip
"""Confidence by the id of a finding's sentence, or its cause; others are PROBABLE."""


def worth(name: str) -> float:
    """Return the confidence of a finding with this sentence or cause, unless its own evidence determines it."""
    return WORTH.get(name, PROBABLE)


def grade_of(confidence: float) -> str:
    """Return the grade of a confidence: "proven", "probable" or "suspected"."""
    sure = round(confidence, 6)  # removes the rounding error of 32-bit floats
    return "proven" if sure >= PROVEN else "probable" if sure > SUSPECTED else "suspected"


def cause_names(*families: str, trait: str | None = None) -> tuple[str, ...]:
    """Return the causes of these families (or of all) that have the trait, if any, in the order of `CAUSES`."""
    return tuple(
        name
        for name, cause in CAUSES.items()
        if (not families or cause.family in families) and (trait is None or trait in cause.traits)
    )


PROGRAMS = cause_names("server", "client")
"""The causes that are a program's own time."""


def protocol_names(trait: str) -> tuple[str, ...]:
    """Return the protocols that have this trait."""
    return tuple(name for name, traits in PROTOCOLS.items() if trait in traits)


RIVALS: dict[str, str] = {name: cause.meaning for name, cause in CAUSES.items()} | dict(_WORDS["hypotheses"])
"""The values of the `rival` column, each with its meaning: other explanations of a row. They are causes, and
hypotheses that are not causes.
"""

SERIES = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#A6761D", "#332288", "#2A8C82", "#4D4D4D")
"""Colours of things that are not causes (captures, groups, a sender's segments), in the order in which to use them.
Each has a contrast of at least 3:1 on white. Neighbours differ in lightness or in blue and yellow, for readers who
cannot tell red from green.
"""
