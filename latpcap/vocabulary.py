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
