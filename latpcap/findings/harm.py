"""Which finding is the headline? Findings of all kinds in, the one that did the most harm out. Decided here alone.

How to plug a finding in. Make a `Finding` with

- `harm`: "never" (somebody never got what they wanted), "late" (they got it, and waited beyond the path's round trips),
  or "path" (they waited for round trips that fewer would spare). None: it never is the headline.
- `total_ms`: what users waited for it, all together; `max_ms`: the longest of these waits.
- `exchanges` or `streams`, and `of_exchanges` or `of_streams`: how many actions it hit, of how many.
- `sentence` and `values`: the id of its sentence in `latpcap/words/en.py`, and what its template names. `says` and
  `fix` are written of them (`made` does so).
- `grade`, `confidence`, `owner`, `worst_frames`, `worst_stream` as in every finding.

and give it among the rows of `findings.rows`. Nothing else is to be done: the headline, `verdict`, `fix`, `see` and
`sure?` of an answer are those of the finding that leads.

The order: what was never got comes first where it is more than an accident, then what was waited for, by how long all
actions together waited. Time that the path's round trips took counts for less: it is what the distance asks for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from latpcap import words
from latpcap.findings.schema import Finding

ACCIDENT = 0.1
"""What happened to fewer than this share of the actions is an accident: it leads where it cost the most time."""
PATH_WEIGHT = 0.25
"""What a second of the path's round trips counts beside a second that was waited for beyond them."""


class Harm(NamedTuple):
    """How bad is it? Greater is worse."""

    never: bool
    waited_ms: float


NONE = Harm(False, 0.0)


def of(found: Finding) -> Harm:
    """The harm of a finding that may lead."""
    hit = found.exchanges if found.of_exchanges else found.streams
    of_all = found.of_exchanges or found.of_streams
    often = not of_all or (hit or 0) >= ACCIDENT * of_all
    weight = PATH_WEIGHT if found.harm == "path" else 1.0
    return Harm(found.harm == "never" and often, weight * (found.total_ms or 0.0))


def worst(findings: Iterable[Finding]) -> Finding | None:
    """Which of these did the most harm? None where none may lead; of equal ones the first."""
    rows = [found for found in findings if found.harm is not None]
    return max(rows, key=of, default=None)


def made(found: Finding, lang: str = "en") -> Finding:
    """The same finding with its sentence and its fix, as the catalogue has them."""
    if found.sentence is None:
        return found
    values = found.values or {}
    return replace(found, says=words.say(found.sentence, values, lang), fix=words.fix(found.sentence, values, lang))
