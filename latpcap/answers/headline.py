"""Which finding is the headline, and what is its sentence? Findings of all kinds in, the most harmful one out.

What was never got comes first where it is more than an accident, then what was waited for, by how long all actions
together waited. Time that the path's round trips took counts for less: it is what the distance asks for.

The sentence: what happened, how many are slow, and what takes their time; no stronger than its grade. What a finding
needs to lead: docs/extending.md, "Add a finding".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from latpcap import presentation as show
from latpcap import words
from latpcap.answers import traffic
from latpcap.answers.types import Overall
from latpcap.findings.schema import Finding, Grade, LatencyFinding
from latpcap.user_waits.cause_totals import endpoint
from latpcap.user_waits.slow_requests import beyond, family
from latpcap.vocabulary import PROGRAMS, SIDES, STALL, cause_names

ACCIDENT = 0.1
"""What happened to fewer than this share of the actions is an accident: it leads where it cost the most time."""
PATH_WEIGHT = 0.25
"""What a second of the path's round trips counts beside a second that was waited for beyond them."""


ELSEWHERE = (
    "dns_reverse", "onward_dead", "callback_dead", "ftp_active", "transaction_lock", "transaction_pool", "behind_other",
    "syn_queue_full", "expect_continue", "path_mtu_in_vain", "broker_blocked", "client_onward", "behind_session",
    "pool_before",
)  # fmt: skip
"""Waits for something else than the work on a request: the requests' own sentence would blame the program for them."""
INSIDE = (
    *ELSEWHERE, "frozen", "behind_one", "stampede", "pool_of_one", "pool_of_some", "at_a_rate", "buffered",
    "buffered_events",
)  # fmt: skip
"""Waits that a server's program had while a request waited for it."""


class Harm(NamedTuple):
    """How bad is it? Greater is worse."""

    never: bool
    waited_ms: float


NONE = Harm(False, 0.0)


def harm_of(found: Finding) -> Harm:
    """The harm of a finding that may lead."""
    hit = found.exchanges if found.of_exchanges else found.streams
    of_all = found.of_exchanges or found.of_streams
    often = not of_all or (hit or 0) >= ACCIDENT * of_all
    weight = PATH_WEIGHT if found.harm == "path" else 1.0
    return Harm(found.harm == "never" and often, weight * (found.total_ms or 0.0))


def worst(findings: Iterable[Finding]) -> Finding | None:
    """Which of these did the most harm? None where none may lead; of equal ones the first."""
    rows = [found for found in findings if found.harm is not None]
    return max(rows, key=harm_of, default=None)


def leading(d: Overall) -> Finding | None:
    """The finding that did more harm than the requests without it; None without one."""
    lead = worst(found for found in d["events"] if found.kind != "silence" or is_frequent(d, found))
    if d["capture_kind"] in _WHOLE or any(e.cause == "syn_flood" for e in d["events"]):
        return None
    if lead is None and d["verdict"] == "no_exchanges":
        set_up = [e for e in d["events"] if e.kind == "setup"]
        return max(set_up, key=lambda e: e.total_ms or 0.0, default=None)
    if lead is None:
        return None
    of_rest = _of_rest(d)
    if (lead.kind == "transfer" or lead.sentence in INSIDE) and not of_rest.never:
        # the requests' time has this one's in it: it leads where it is most of that
        return lead if 2 * harm_of(lead).waited_ms > of_rest.waited_ms else None
    return lead if harm_of(lead) > of_rest else None


_WHOLE = ("scan", "traceroute", "one_direction")
"""What a capture is as a whole, whatever else happened in it."""


def _of_rest(d: Overall) -> Harm:
    """What harm does the answer speak of that no finding leads? Requests, what fell silent, and pushes."""
    if d["verdict"] == "no_exchanges":
        return NONE
    slow = d["slow"]
    waited = sum(beyond(f["causes"]) for f in d["families"]) if slow["count"] else 0.0
    late = late_request(d)
    found = Harm(False, waited if waited_for(d) else waited / 2)
    if late is not None:
        found = max(found, Harm(False, late.total_ms or 0.0))
    push = pushed(d)
    return found if push is None else max(found, Harm(False, push.total_ms or 0.0))


def leading_sentence(d: Overall) -> Finding | None:
    """The finding that is the headline; None where the kind of the capture is, or what its requests waited for."""
    if d["lead"] is not None:
        return d["lead"]
    if d["verdict"] == "no_exchanges":
        return next((e for e in d["events"] if e.cause == "syn_flood"), None) or pushed(d)
    return None if d["capture_sentence"] else pushed(d)


def is_frequent(d: Overall, mute: Finding) -> bool:
    """Is it more than a request now and then that came just when its connection was closed, and longer than any
    that was answered?
    """
    if mute.cause == "closed_on_request" and (mute.exchanges or 0) < show.MIN_CAUSE_SHARE * (mute.of_exchanges or 0):
        return False
    slowest = None if d["verdict"] == "no_exchanges" else d["slow"]["worst"]
    return mute.cause not in SILENCES or slowest is None or (mute.max_ms or 0.0) > slowest["latency_ms"]


def pushed(d: Overall) -> Finding | None:
    """Unsolicited messages that waited, where that is the headline: not only now and then, and no request was
    slow, or all of them took less time.
    """
    if d.get("lead") is not None:
        return None
    for found in d["events"]:
        if found.kind != "push" or (found.exchanges or 0) < show.MIN_CAUSE_SHARE * (found.of_exchanges or 0):
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


def late_request(d: Overall) -> Finding | None:
    """What took more time before the first requests than all answers took? None where nothing did."""
    before = setup(d)
    return before if before is not None and (before.total_ms or 0.0) > d["total_ms"] else None


UNPROVEN = ("network", *PROGRAMS)
"""What may be a person's or nobody's time, where no reader knows the protocol."""
SILENCES = ("closed_on_request", "silent_peer", "unanswered_request")
"""Silences whose reason is unknown."""
SILENT = ("unanswered", "without_data", "without_answer")
"""How far connections without a request and its answer got."""


def headline(d: Overall) -> str:
    """The headline: that of the finding that leads, else the capture's kind, else what its requests waited for."""
    found = leading_sentence(d)
    if found is not None:
        sentence = found.text or ""
        nameless = found.cause == "syn_flood" or found.kind == "setup"
        return words.sentence(words.say("of_server", server=_server(found), text=sentence) if nameless else sentence)
    if d["capture_sentence"]:
        ends = _ends(d) if d["capture_kind"] == "one_direction" and d["verdict"] == "no_exchanges" else ""
        return words.sentence(words.joined([d["capture_sentence"], ends]))
    return nothing_judged(d) if d["verdict"] == "no_exchanges" else of_requests(d)


def prepend_main_traffic(d: Overall, other: str) -> str:
    """The headline behind what most of the capture is, which is no TCP."""
    return words.say("mostly_other", other=other, rest=words.inside(d["headline"]))


def has_sentence(d: Overall, found: Finding) -> bool:
    """Does the headline have this finding's sentence?"""
    text = found.text or ""
    return bool(text) and text[1:] in d["headline"]


def nothing_judged(d: Overall) -> str:
    """What there is where no request was answered, by how far the connections got."""
    if not d["frames"] and d["filter"] is None:
        return words.say("capture_empty")
    if not d["streams"]:
        return words.say("capture_no_tcp")
    waited = words.say("silent_longest", longest_ms=d["open_ms"]) if d["open_ms"] >= show.NEAR_MS else ""
    far = [words.say(f"silent_{far}", n=d["silent"][far], waited=waited) for far in SILENT if d["silent"].get(far)]
    trip = words.say("shook", trip_ms=(d["shook"][0], d["shook"][-1])) if d["shook"] is not None else ""
    parts = words.joined([*far, trip, _ends(d)])
    if d["scope"] is None:
        return words.say("none_answered", parts=parts)
    return words.say("none_answered_on", parts=parts, stream=d["scope"])


def _ends(d: Overall) -> str:
    """How connections without an exchange ended, in words."""
    return words.joined(words.say(f"ended_{word}", n=n) for word, n in d["ends"].items())


def of_requests(d: Overall) -> str:
    """What the requests of one server say: how many are slow, and why."""
    if d["verdict"] == "no_time" or not d["findings"]:
        return words.say("no_time", server=d["server"])
    late = late_request(d)
    if late:
        return words.sentence(words.say("of_server", server=d["server"], text=late.text))
    if traffic.log_in(d["traffic"]):
        return _log_in(d)
    answers = traffic.sentence(d["traffic"], d["server"])
    rest = _slow(d)
    if answers is None:
        return rest
    rest = rest.removeprefix(words.say("of_server", server=d["server"], text=""))
    return words.joined([answers, words.inside(rest)])


def queued(d: Overall) -> Finding | None:
    """The queue beside which this server's requests waited, where nothing else is proven of them."""
    known = not d["findings"] or d["findings"][0].grade == "proven"
    costs = (e for e in d["events"] if e.sentence == "queue_cost" and not known)
    return next((e for e in costs if endpoint(e.server, e.server_port or 0) == d["server"]), None)


def _slow(d: Overall) -> str:
    slow, name, first = d["slow"], d["server"], d["findings"][0]
    beside = queued(d)
    if beside is not None:
        return words.sentence(beside.text or "")
    if first.grade == "unknown":
        return words.say("cannot_say", server=name, why=_forbids(d))
    if slow["how"] == "none":
        return _nothing(d)
    if "backend" in d:
        return _backend(d, first)
    if first.cause == STALL:
        return _stall(d, first)
    if not waited_for(d) and first.cause in UNPROVEN:
        return _unread(d)
    who = words.say("late_close" if d["closes_late"] else "cause_both_repairs") if _named(d) else phrase(first)
    values = {
        "server": name, "sure": _sure(first.grade), "cause": who, "second": _second(d), "n": slow["count"],
        "of": slow["of"], "hit": d["hit"], "each": _each(d),
    }  # fmt: skip
    if slow["how"] == "typical":
        few = words.say("few_of_slow", n=d["hit"], of=slow["count"]) if _few(d) else ""
        at = "slow_server" if first.owner == "server" else "slow_at_server"
        return words.say(at, part=_part(d, "part"), few=few, **values)
    worst = slow["worst"]
    if slow["count"] == 1 and worst is not None:
        return words.say(
            "slow_one", name=worst["name"], took_ms=worst["latency_ms"], others=slow["of"] - 1, **values
        )  # fmt: skip
    if _few(d):
        return words.say("slow_few_mixed", part=_part(d, "their"), **values)
    return words.say("slow_few", **values)


def _each(d: Overall) -> str:
    """What a slow request waited for what is named; "" where no one time stands for them."""
    if not d["waits_ms"]:
        return ""
    far = d["longest_ms"] >= show.LONGEST_TO_MEDIAN * d["waits_ms"]
    most = words.say("waits_most", most_ms=d["longest_ms"]) if far else ""
    return words.say("waits_each", wait_ms=d["waits_ms"], most=most)


def _named(d: Overall) -> bool:
    """Do the requests wait for something that is no cause of the table?"""
    return d["closes_late"] or _by_both(d)


def _server(found: Finding) -> str:
    return endpoint(found.server, found.server_port)


def _sure(grade: Grade) -> str:
    return words.say(f"sure_{grade}")


def _forbids(d: Overall) -> str:
    """Why can this capture not say where the time went?"""
    first = d["findings"][0]
    sentence = [c.text for c in d["quality"] if c.check in first.limited_by and c.forbids]
    return sentence[0] if sentence else words.say(f"meaning_{first.cause}")


def slow_limit(d: Overall) -> str:
    """From when on is a request slow here?"""
    limit = d["slow"]["limit_ms"]
    return words.say("over_beyond" if d["slow"]["path_ms"] >= show.MIN_PATH_OF_SLOW * limit else "over", limit=limit)


def _log_in(d: Overall) -> str:
    """Of a session of which the log-in alone can be read: what a person did then was nobody's latency."""
    slow, worst, first = d["slow"], d["slow"]["worst"], d["findings"][0]
    values = {"server": d["server"], "protocol": d["traffic"]["protocol"], "n": slow["count"], "of": slow["of"]}
    if worst is None:
        return words.say("log_in_quick", p50_ms=d["p50_ms"], **values)
    if first.grade == "unknown":
        why = words.say("log_in_unknown", why=_forbids(d))
    else:
        why = words.say("log_in_because", sure=_sure(first.grade), cause=phrase(first), second=_second(d))
    return words.say("log_in_slow", over=slow_limit(d), most_ms=worst["latency_ms"], why=why, **values)


def _by_both(d: Overall) -> bool:
    """Do probes and the timer each take a part of the losses' time that is worth a word?"""
    loss = d["families"][0]
    by_timer = cause_names(trait="by_probe_or_timer")
    timed = [loss["causes"].get(cause, 0.0) for cause in by_timer]
    return d["findings"][0].cause in by_timer and min(timed) >= show.MIN_CAUSE_SHARE * loss["ms"]


def _few(d: Overall) -> bool:
    """Is it in a few of the slow requests only?"""
    return d["hit"] < show.TYPICAL_SHARE * d["slow"]["count"]


def _part(d: Overall, of: str) -> str:
    """How much of the time the first family takes: "part" of all, "their" of the slow requests'."""
    return words.say(f"{of}_{'most' if _most(d) else 'largest'}{'_beyond' if _beyond(d) else ''}")


def _most(d: Overall) -> bool:
    all_beyond = sum(beyond(f["causes"]) for f in d["families"]) or 1.0
    first = d["families"][0]
    return (beyond(first["causes"]) / all_beyond if _beyond(d) else first["share"]) >= show.MOST_TIME_SHARE


def _beyond(d: Overall) -> bool:
    """Is more time the path's own round trip than what makes these requests slow?"""
    path = next((f["causes"].get("network", 0.0) for f in d["families"] if f["family"] == "path"), 0.0)
    return path > d["families"][0]["ms"]


def _second(d: Overall) -> str:
    """A second family that takes a share worth a word."""
    rows = [f for f in d["families"][1:] if f["share"] >= show.MIN_CAUSE_SHARE and f["family"] != "unknown"]
    if not rows:
        return ""
    cause = max(rows[0]["causes"], key=lambda cause: rows[0]["causes"][cause])
    return words.say("second_cause", first_share=_share(d), share=rows[0]["share"], cause=cause)


def _share(d: Overall) -> float:
    """What the cause that is named takes of the families' time; the whole family, where all of it is meant."""
    first, family_ = d["findings"][0].cause, d["families"][0]
    if first not in family_["causes"] or _by_both(d):
        return family_["share"]
    return family_["share"] * family_["causes"][first] / (sum(family_["causes"].values()) or 1.0)


def _many(d: Overall, number: int) -> str:
    return words.say("turns" if traffic.turns(d["traffic"]) else "requests", n=number)


def _nothing(d: Overall) -> str:
    """Nothing is slow: the numbers, and the path where it is what takes the time."""
    slow, first = d["slow"], d["findings"][0]
    if slow["of"] == 1:
        one = "stream" if slow["streams"] else "turn" if traffic.turns(d["traffic"]) else "request"
        ticked = one == "stream" and d["p50_ms"] == 0
        many = words.say("one_stream_ticked" if ticked else f"one_{one}_took", p50_ms=d["p50_ms"])
    else:
        polls = words.say("with_polls", n=slow["polls"]) if slow["polls"] else ""
        worst = slow["worst"]
        few = words.say("few_took", n=slow["count"], over=slow_limit(d), most_ms=worst["latency_ms"]) if worst else ""
        streams = words.say("with_streams", n=slow["streams"]) if slow["streams"] else ""
        many = words.say(
            "many_took",
            many=_many(d, slow["of"]),
            p50_ms=d["p50_ms"],
            p99_ms=d["p99_ms"],
            polls=polls,
            streams=streams,
            few=few,
        )
    pushed = words.say("with_pushes", n=d["pushed"]) if d["pushed"] else ""
    if d["positions"] == ["at_server"] and slow["trip_ms"] > slow["limit_ms"]:
        many += words.say("trip_to_clients", trip_ms=slow["trip_ms"])
    path = first.cause == "network"
    long = path and slow["path_ms"] > slow["limit_ms"]
    return words.say(
        "long_path_halves" if d["halves"] else "long_path" if long else "nothing_slow_path" if path else "nothing_slow",
        server=d["server"], many=words.joined([many, pushed]), n=d["halves"], sure=_sure(first.grade),
        path_ms=slow["path_ms"],
    )  # fmt: skip


def _stall(d: Overall, found: LatencyFinding) -> str:
    sender, slow = d["owners"]["nagle"], d["slow"]
    other = SIDES[sender]
    also = [f for f in d["findings"][1:] if f.cause == STALL and f.owner == other and f.share >= show.MIN_CAUSE_SHARE]
    why = words.say(f"stall_{sender}")
    if also:
        sure = _sure(also[0].grade) if found.grade == "proven" else ""
        why = words.say(f"stall_{sender}_and_{other}", why=why, sure=sure)
    return words.say(
        "stall_slow" if slow["how"] == "typical" else "stall_few",
        server=d["server"], n=slow["count"], many=_many(d, slow["of"]), sure=_sure(found.grade), why=why,
        each=_each(d),
    )  # fmt: skip


def _backend(d: Overall, found: LatencyFinding) -> str:
    """What a server waits for that asks another one meanwhile: that one's reason."""
    behind, slow = d["backend"], d["slow"]
    return words.say(
        "behind_slow" if slow["how"] == "typical" else "behind_few",
        server=d["server"], n=slow["count"], of=slow["of"], sure=_sure(found.grade), behind=behind["server"],
        why=behind["text"], each=_each(d),
    )  # fmt: skip


def _unread(d: Overall) -> str:
    """What came late in a protocol that no reader knows: nobody may have waited for it."""
    slow, t, first = d["slow"], d["traffic"], d["findings"][0]
    values = {"server": d["server"], "protocol": t["protocol"], "n": slow["count"], "over": slow_limit(d)}
    if traffic.people(t) or traffic.tunnel(t):
        kind = "session" if traffic.people(t) else "tunnel"
        return words.say(kind, many=words.say("turns", n=slow["of"]), **values)
    many = words.say("sealed_many", n=slow["count"], of=slow["of"]) if slow["of"] > 1 else words.say("sealed_one")
    reader = "none" if traffic.turns(t) else "tls" if t["protocol"] == "tls" else "blind"
    part = words.say("part_most" if _most(d) else "part_largest")
    return words.say(
        "sealed", many=many, reader=words.say(f"reader_{reader}"), part=part, sure=_sure(first.grade),
        cause=phrase(first), second="" if _most(d) else _second(d), each=_each(d), **values,
    )  # fmt: skip


def phrase(found: Finding) -> str:
    """What this finding takes the time of; that nothing held a program back only where that is proven."""
    cause = words.say(f"cause_{found.cause}", owner=found.owner, holder=SIDES.get(found.owner, "receiver"))
    alone = found.grade == "proven" and found.cause.endswith("_think")
    return words.say("cause_alone", cause=cause) if alone else cause


def contradicted(d: Overall) -> str | None:
    """What contradicts the headline in a trace of the program at this server's sockets; None where nothing does."""
    first = next(iter(d["findings"]), None)
    if first is None or "server" not in d or d["capture_sentence"] or d["lead"] or pushed(d):
        return None
    word = "program" if first.cause.endswith("_think") else "stall" if family(first.cause) == "stall" else None
    for one in d["beside"]:
        alone = [endpoint(*server) for server in one.get("servers", ())] == [d["server"]]
        if word in one.get("contradicts", ()) and alone and first.owner in one["side"]:
            return words.say(f"trace_{word}")
    return None


def servers_of(d: Overall, rows: Sequence[Finding]) -> str:
    """Of which servers, where it is not the headline's alone."""
    most = max(rows, key=lambda e: e.streams or 0)
    if len(rows) == 1:
        return "" if _server(most) == d["server"] else words.say("of_one_server", server=_server(most))
    mostly = 2 * (most.streams or 0) > sum(e.streams or 0 for e in rows)
    return words.say("of_most_server", server=_server(most)) if mostly else words.say("of_servers", n=len(rows))
