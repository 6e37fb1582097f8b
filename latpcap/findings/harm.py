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

from latpcap import presentation as show
from latpcap import words
from latpcap.account.slow import beyond
from latpcap.account.totals import endpoint
from latpcap.findings.answer import Overall
from latpcap.findings.schema import Finding

ACCIDENT = 0.1
"""What happened to fewer than this share of the actions is an accident: it leads where it cost the most time."""
PATH_WEIGHT = 0.25
"""What a second of the path's round trips counts beside a second that was waited for beyond them."""


ELSEWHERE = ("dns_reverse", "onward_dead", "callback_dead", "ftp_active")
"""Waits of a server's program for somebody else: it is not slow itself."""
INSIDE = (*ELSEWHERE, "frozen", "behind_one")
"""Waits that a server's program had while a request waited for it."""


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


def made(found: Finding) -> Finding:
    """The same finding with its sentence as the catalogue has it, and its fix where it has none of its own."""
    if found.sentence is None:
        return found
    values = found.values or {}
    return replace(
        found, says=words.say(found.sentence, **values), fix=found.fix or words.fix(found.sentence, **values)
    )


def leading(d: Overall) -> Finding | None:
    """The finding that did more harm than what is said of the requests without it; None where there is none."""
    lead = worst(d["events"])
    if d["scene"] in _WHOLE or any(e.cause == "syn_flood" for e in d["events"]):
        return None
    if lead is None and d["verdict"] == "no_exchanges":
        set_up = [e for e in d["events"] if e.kind == "setup"]
        return max(set_up, key=lambda e: e.total_ms or 0.0, default=None)
    if lead is None:
        return None
    of_rest = _of_rest(d)
    if (lead.kind == "transfer" or lead.sentence in INSIDE) and not of_rest.never:
        # the requests' time has this one's in it: it leads where it is most of that
        return lead if 2 * of(lead).waited_ms > of_rest.waited_ms else None
    return lead if of(lead) > of_rest else None


_WHOLE = ("scan", "traceroute", "one_direction")
"""What a capture is as a whole, whatever else happened in it."""


def _of_rest(d: Overall) -> Harm:
    """What harm does the answer speak of that no finding leads? Requests, what fell silent, and pushes."""
    if d["verdict"] == "no_exchanges":
        gone = [e for e in d["events"] if e.kind == "silence" and e.harm is None and counts(e)]
        return max([NONE, *(Harm(True, e.total_ms or 0.0) for e in gone)])
    slow, slowest = d["slow"], d["slow"]["worst"]
    waited = sum(beyond(f["causes"]) for f in d["families"]) if slow["count"] else 0.0
    late = asked_late(d)
    found = Harm(False, waited if waited_for(d) else waited / 2)
    if late is not None:
        found = max(found, Harm(False, late.total_ms or 0.0))
    for mute in d["events"]:
        longer = slowest is None or (mute.max_ms or 0.0) > slowest["latency_ms"]
        if mute.kind == "silence" and mute.harm is None and counts(mute) and longer:
            found = max(found, Harm(True, mute.total_ms or 0.0))
    push = pushed(d)
    return found if push is None else max(found, Harm(False, push.total_ms or 0.0))


def headline(d: Overall) -> Finding | None:
    """The finding that is the headline; None where the kind of the capture is, or what its requests waited for."""
    if d["lead"] is not None:
        return d["lead"]
    mute = next((e for e in d["events"] if e.kind == "silence" and counts(e)), None)
    if d["verdict"] == "no_exchanges":
        flood = next((e for e in d["events"] if e.cause == "syn_flood"), None)
        return flood or mute or pushed(d)
    if d["scene_says"]:
        return None
    slowest = d["slow"]["worst"]
    if mute is not None and (slowest is None or (mute.max_ms or 0.0) > slowest["latency_ms"]):
        return mute
    return pushed(d)


def counts(mute: Finding) -> bool:
    """Is it more than a request now and then that came just when its connection was closed?"""
    return mute.cause != "closed_on_request" or (mute.exchanges or 0) >= show.HOLDS_UP * (mute.of_exchanges or 0)


def pushed(d: Overall) -> Finding | None:
    """What waited that nobody had asked for, where that is the headline: not only now and then, and no request was
    slow, or all of them took less time.
    """
    if d.get("lead") is not None:
        return None
    for found in d["events"]:
        if found.kind != "push" or (found.exchanges or 0) < show.HOLDS_UP * (found.of_exchanges or 0):
            continue
        if "server" not in d:
            return found
        more, none_slow = (found.total_ms or 0.0) > d["total_ms"], not d["slow"]["count"]
        here = endpoint(found.server, found.server_port) == d["server"]
        if (more or none_slow) if here else (more and none_slow):
            return found
    return None


def waited_for(d: Overall) -> bool:
    """Are there slow requests, and not only turns of a protocol that no reader knows?"""
    return bool(d["slow"]["count"]) and 2 * d["slow"]["unread"] <= d["slow"]["count"]


def setup(d: Overall) -> Finding | None:
    """What took the most time before the first requests of this server; None where nothing did."""
    rows = [e for e in d["events"] if e.kind == "setup" and endpoint(e.server, e.server_port) == d["server"]]
    return max(rows, key=lambda e: e.total_ms or 0.0, default=None)


def asked_late(d: Overall) -> Finding | None:
    """What took more time before the first requests than all answers took? None where nothing did."""
    before = setup(d)
    return before if before is not None and (before.total_ms or 0.0) > d["total_ms"] else None
