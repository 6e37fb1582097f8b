"""What does each cause of latency mean, who owns it, what mends it, and which colour is it?

Reads the core's closed lists of words; gives them to every table, filter, legend and report; knows nothing of captures,
tables or pictures. Names and their order are those of the `causes` table.
"""

from __future__ import annotations

from typing import NamedTuple

from latpcap import _core

PROVEN = 0.9
"""Confidence from which a verdict is called proven; below it, probable."""

SUSPECTED = 0.5
"""Confidence that one direction alone gives at most; up to it a verdict is only suspected."""

HALVES = ("nagle", "delayed_ack")
STALL = " + ".join(HALVES)
"""Nagle's wait together with the delayed ACKs inside it: one finding with two owners."""
STALLS = (STALL, *HALVES)
"""That finding, and each half of it alone."""
BACKEND = "backend"
"""The owner of time that another server took, which this one had called meanwhile."""

_WORDS = _core.vocabulary()

SIDES = {"client": "server", "server": "client"}
"""The sides of a connection, each with the other."""

OWNERS: dict[str, str] = dict(_WORDS["owners"])
"""Who can own a piece of latency: the values of the `owner` column of the `causes` table, each with its
meaning."""

FAMILIES: dict[str, str] = dict(_WORDS["families"])
"""What causes add up to in an answer, each with its meaning."""

GRADES: dict[str, str] = dict(_WORDS["grades"])
"""How sure a row of the `causes` table is: the values of its column `grade`, surest first, each with its meaning."""

RULES: dict[str, str] = dict(_WORDS["rules"])
"""The tests that name causes: the values of the column `rule`, each with what it looks at."""

BECAUSES: dict[str, str] = dict(_WORDS["becauses"])
"""What excludes the rivals of a row, or what is missing to prove it: the values of the column `because`."""


class Cause(NamedTuple):
    """What is this cause of latency?

    `owner` is a key of `OWNERS`, or "sender" / "receiver" (of the bytes that had to wait) where only the
    stream shows which side that is: the `owner` column of the `causes` table holds the answer. `family` is a key
    of `FAMILIES`. `fix` is None where no setting of either side would help. `colour` is "#rrggbb". `traits` are those
    of `CauseTrait` in the core's vocabulary.
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
"""Every cause by its name, in the order of the `causes` table."""

PROTOCOLS: dict[str, frozenset[str]] = {name: frozenset(traits) for name, traits in _WORDS["protocols"]}
"""Every value of a column `protocol`, with its traits: those of `ProtocolTrait` in the core's list of readers."""


SEEN, SHOWN, LIKELY, PROBABLE, GUESSED = 0.95, 0.9, 0.8, 0.7, 0.5
"""What a finding is worth by its evidence: a packet says it; several packets together do, and nothing else fits; it is
the usual reason; one of several; and a guess that names another. Held against the labelled captures (docs/verdicts.md).
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
"""By the sentence of a finding, or its cause. What is not here is one explanation of several."""


def worth(name: str) -> float:
    """How sure is a finding with this sentence, or this cause, where its own case says no more?"""
    return WORTH.get(name, PROBABLE)


def graded(confidence: float) -> str:
    """Which word stands for this confidence? "proven", "probable" or "suspected"."""
    sure = round(confidence, 6)  # without what 32 bits add to it or take from it
    return "proven" if sure >= PROVEN else "probable" if sure > SUSPECTED else "suspected"


def cause_names(*families: str, trait: str | None = None) -> tuple[str, ...]:
    """List the causes of these families, or of all; with `trait` only those that have it. In the order of `CAUSES`."""
    return tuple(
        name
        for name, cause in CAUSES.items()
        if (not families or cause.family in families) and (trait is None or trait in cause.traits)
    )


PROGRAMS = cause_names("server", "client")
"""The causes that are a program's time."""


def protocol_names(trait: str) -> tuple[str, ...]:
    """List the protocols that have this trait."""
    return tuple(name for name, traits in PROTOCOLS.items() if trait in traits)


RIVALS: dict[str, str] = {name: cause.meaning for name, cause in CAUSES.items()} | dict(_WORDS["hypotheses"])
"""What may explain a row as well: the values of the column `rival`, each with its meaning. Causes, and hypotheses that
are no causes of their own."""

SERIES = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#A6761D", "#332288", "#2A8C82", "#4D4D4D")
"""Colours for things that are no causes (captures, groups, a sender's segments), in the order to take them: each
has a contrast of at least 3:1 on white, and neighbours differ in lightness or in blue and yellow, so that nobody needs
to tell red from green."""
