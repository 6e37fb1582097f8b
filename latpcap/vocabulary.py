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

STALL = "nagle + delayed_ack"
"""Nagle's wait together with the delayed ACKs inside it: one finding with two owners."""
BACKEND = "backend"
"""The owner of time that another server took, which this one had called meanwhile."""

_WORDS = _core.vocabulary()

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
    of `FAMILIES`. `fix` is None where no setting of either side would help. `colour` is "#rrggbb".
    """

    name: str
    meaning: str
    owner: str
    family: str
    fix: str | None
    colour: str


CAUSES: dict[str, Cause] = {
    name: Cause(name, meaning, owner, family, fix, colour)
    for name, meaning, owner, family, fix, colour in _WORDS["causes"]
}
"""Every cause by its name, in the order of the `causes` table."""

RIVALS: dict[str, str] = {name: cause.meaning for name, cause in CAUSES.items()} | dict(_WORDS["hypotheses"])
"""What may explain a row as well: the values of the column `rival`, each with its meaning. Causes, and hypotheses that
are no causes of their own."""

SERIES = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#A6761D", "#332288", "#2A8C82", "#4D4D4D")
"""Colours for things that are no causes (captures, groups, a sender's segments), in the order to take them: each
has a contrast of at least 3:1 on white, and neighbours differ in lightness or in blue and yellow, so that nobody needs
to tell red from green."""
