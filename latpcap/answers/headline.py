"""The headline of an answer: chooses the most harmful finding and writes its sentence.

Findings rank by harm: first actions that never succeeded, unless they are rare, then the time that all actions waited.
Time of the path's round trips has a lower weight, because no fix shortens the distance.

The sentence says what happened, how many requests are slow, and what takes their time, worded by grade. The fields that
a finding needs to lead: docs/extending.md, "Add a finding".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from latpcap import presentation as show
from latpcap import words
from latpcap.answers import traffic
from latpcap.answers.types import Behind, Facts, Headline, Judged, NoRequests, Overall, RequestFacts, WithRequests
from latpcap.findings.quality import Check
from latpcap.findings.schema import Finding, Grade, LatencyFinding
from latpcap.format import endpoint
from latpcap.user_waits.slow_requests import family, without_path_ms
from latpcap.vocabulary import PROGRAMS, SIDES, STALL, cause_names

ELSEWHERE = (
    "dns_reverse", "onward_dead", "callback_dead", "ftp_active", "transaction_lock", "transaction_pool", "behind_other",
    "syn_queue_full", "expect_continue", "path_mtu_in_vain", "path_mtu_answer", "broker_blocked", "client_onward",
    "behind_session", "pool_before", "proxy_queue",
)  # fmt: skip
"""Waits for something other than work on the request; the sentence about the requests would blame the program."""
WITHIN_REQUESTS = (
    *ELSEWHERE, "frozen", "behind_one", "stampede", "pool_of_one", "pool_of_some", "at_a_rate", "buffered",
    "buffered_events",
)  # fmt: skip
"""Waits that are part of the latency of requests, so that the requests' time includes theirs."""
_DOMINANT_KINDS = ("scan", "traceroute", "one_direction")
"""Kinds of captures that are the headline whatever else happened."""
UNPROVEN = ("network", *PROGRAMS)
"""Causes that may be a person's pause where no reader knows the protocol."""
SILENCES = ("closed_on_request", "silent_peer", "unanswered_request")
"""Silences of unknown cause."""
UNANSWERED = {
    "unanswered": "silent_unanswered",
    "without_data": "silent_without_data",
    "without_answer": "silent_without_answer",
}
"""Sentences on connections without an exchange, by how far these got (keys of `silent`)."""
ENDED = {
    "client_fin": "ended_client_fin",
    "client_rst": "ended_client_rst",
    "server_fin": "ended_server_fin",
    "server_rst": "ended_server_rst",
}
"""Sentences on connections that were closed (keys of `ends`)."""
STALLED = {"client": "stall_client", "server": "stall_server"}
STALLED_IN_BOTH = {"client": "stall_client_and_server", "server": "stall_server_and_client"}
"""Sentences on a stall by its sender, in one direction and in both."""
PART_OF_TIME = {
    (True, False): "part_most",
    (False, False): "part_largest",
    (True, True): "part_most_beyond",
    (False, True): "part_largest_beyond",
}
PART_OF_THEIR_TIME = {
    (True, False): "their_most",
    (False, False): "their_largest",
    (True, True): "their_most_beyond",
    (False, True): "their_largest_beyond",
}
"""Words for the first family's part of all time, and of the slow requests' time: whether it is most of it, and whether
the path's round trip, which takes more, is left out."""


class Harm(NamedTuple):
    """Rank of a finding: whether actions never succeeded, then the weighted ms of waiting. The greater one leads."""

    never: bool
    waited_ms: float


def server_of(finding: Finding) -> str:
    """Return the server of a finding as "address:port"."""
    return endpoint(finding.server, finding.server_port)


def harm_of(finding: Finding) -> Harm:
    """Return the harm of a finding."""
    affected = finding.exchanges if finding.of_exchanges else finding.streams
    total = finding.of_exchanges or finding.of_streams
    is_frequent = not total or (affected or 0) >= show.MIN_FAILED_SHARE * total
    weight = show.PATH_WEIGHT if finding.harm == "path" else 1.0
    return Harm(finding.harm == "never" and is_frequent, weight * (finding.total_ms or 0.0))


def worst(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding with the most harm, of equal ones the first; None if no finding may lead."""
    rows = [finding for finding in findings if finding.harm is not None]
    return max(rows, key=harm_of, default=None)


def leading(facts: Facts) -> Finding | None:
    """Return the finding whose sentence leads; None without one.

    It did more harm than everything else, or is most of what the requests waited for; without judged requests it is the
    longest set-up.
    """
    lead = worst(row for row in facts.common.other_findings if row.kind != "silence" or is_frequent(facts, row))
    if facts.common.capture_kind in _DOMINANT_KINDS or facts.common.of_cause("syn_flood"):
        return None
    if lead is None and isinstance(facts, NoRequests):
        setups = facts.common.of_kind("setup")
        return max(setups, key=lambda finding: finding.total_ms or 0.0, default=None)
    if lead is None:
        return None
    harm_of_others = _harm_of_others(facts)
    if (lead.kind == "transfer" or lead.sentence in WITHIN_REQUESTS) and not harm_of_others.never:
        # the requests' time includes that of this finding, which leads if it is most of it
        return lead if 2 * harm_of(lead).waited_ms > harm_of_others.waited_ms else None
    return lead if harm_of(lead) > harm_of_others else None


def _harm_of_others(facts: Facts) -> Harm:
    """Return the harm of slow requests, late setups and held pushes, which have sentences of their own.

    Slow turns count half where most are of a protocol without a reader.
    """
    if isinstance(facts, NoRequests):
        return Harm(False, 0.0)
    requests = facts.requests
    waited = sum(without_path_ms(row["causes"]) for row in requests.families) if requests.slow["count"] else 0.0
    late_setup = late_request(requests)
    harm = Harm(False, waited if waited_for(requests) else waited / 2)
    if late_setup is not None:
        harm = max(harm, Harm(False, late_setup.total_ms or 0.0))
    push = pushed(facts)
    return harm if push is None else max(harm, Harm(False, push.total_ms or 0.0))


def _other_sentence(facts: Facts, push: Finding | None) -> Finding | None:
    """Return the finding whose sentence is the headline if none leads; None if the kind or requests have it."""
    if isinstance(facts, NoRequests):
        return next(iter(facts.common.of_cause("syn_flood")), push)
    return None if facts.common.capture_sentence else push


def is_frequent(facts: Facts, silence: Finding) -> bool:
    """Return whether a silence may lead: not if few requests met a closing connection, or a response took longer."""
    min_count = show.MIN_CAUSE_SHARE * (silence.of_exchanges or 0)
    if silence.cause == "closed_on_request" and (silence.exchanges or 0) < min_count:
        return False
    slowest = None if isinstance(facts, NoRequests) else facts.requests.slow["worst"]
    return silence.cause not in SILENCES or slowest is None or (silence.max_ms or 0.0) > slowest["latency_ms"]


def pushed(facts: Facts) -> Finding | None:
    """Held pushes that may be the headline: not rare, and no request was slow or all requests took less time."""
    for push in facts.common.other_findings:
        if push.kind != "push" or (push.exchanges or 0) < show.MIN_CAUSE_SHARE * (push.of_exchanges or 0):
            continue
        if isinstance(facts, NoRequests):
            return push
        requests = facts.requests
        longer_than_requests, none_slow = (push.total_ms or 0.0) > requests.total_ms, not requests.slow["count"]
        at_server = server_of(push) == requests.server
        if (longer_than_requests or none_slow) if at_server else (longer_than_requests and none_slow):
            return push
    return None


def waited_for(requests: WithRequests) -> bool:
    """Return whether requests are slow, and most of these are of a protocol with a reader."""
    return bool(requests.slow["count"]) and 2 * requests.slow["unread"] <= requests.slow["count"]


def late_request(requests: WithRequests) -> Finding | None:
    """Return the setup that took more time before the first requests than all responses took; None without one."""
    setups = [finding for finding in requests.common.of_kind("setup") if server_of(finding) == requests.server]
    longest = max(setups, key=lambda finding: finding.total_ms or 0.0, default=None)
    return longest if longest is not None and (longest.total_ms or 0.0) > requests.total_ms else None


def headline(facts: Facts, lead: Finding | None, push: Finding | None) -> Headline:
    """Write the headline: of the leading finding, else of the capture's kind, else of its requests."""
    finding = lead or _other_sentence(facts, push)
    if finding is not None:
        is_of_server = finding.cause == "syn_flood" or finding.kind == "setup"
        return _headline_of(finding, at_server=is_of_server)
    if facts.common.capture_sentence:
        ends = _ends(facts) if facts.common.capture_kind == "one_direction" and isinstance(facts, NoRequests) else ""
        # a kind of failed connections has the sentence of the first finding of that cause
        findings = [finding for finding in facts.common.of_cause(facts.common.capture_kind) if finding.text][:1]
        return Headline(words.capitalised(words.joined([facts.common.capture_sentence, ends])), tuple(findings))
    return nothing_judged(facts) if isinstance(facts, NoRequests) else of_requests(facts)


def _headline_of(finding: Finding, *, at_server: bool = False) -> Headline:
    """Return the headline with this finding's sentence, `at_server` with the server's name before it."""
    text = finding.text or ""
    clause = words.say("of_server", server=server_of(finding), text=text) if at_server else text
    return Headline(words.capitalised(clause), (finding,))


def nothing_judged(facts: NoRequests) -> Headline:
    """Describe a capture without a complete exchange, by how far its connections got."""
    if not facts.common.head.frames and facts.common.head.filter is None:
        return Headline(words.say("capture_empty"))
    if not facts.common.head.streams:
        return Headline(words.say("capture_no_tcp"))
    waited = words.say("silent_longest", longest_ms=facts.open_ms) if facts.open_ms >= show.NEAR_MS else ""
    counts = {sentence: facts.silent.get(far, 0) for far, sentence in UNANSWERED.items()}
    silent = [words.say(sentence, n=count, waited=waited) for sentence, count in counts.items() if count]
    trip = words.say("shook", trip_ms=(facts.shook[0], facts.shook[-1])) if facts.shook is not None else ""
    parts = words.joined([*silent, trip, _ends(facts)])
    sentence = "none_answered" if facts.common.scope is None else "none_answered_on"
    return Headline(words.say(sentence, parts=parts, stream=facts.common.scope))


def _ends(facts: NoRequests) -> str:
    """Describe how connections without an exchange ended."""
    return words.joined(words.say(ENDED[word], n=n) for word, n in facts.ends.items())


def of_requests(facts: RequestFacts) -> Headline:
    """Describe the requests of the headline's server: how many are slow, and why."""
    if not isinstance(facts, Judged):
        return Headline(words.say("no_time", server=facts.server))
    if late_setup := late_request(facts.requests):
        return _headline_of(late_setup, at_server=True)
    if traffic.is_login_only(facts.requests.traffic):
        return _describe_login(facts)
    answers = traffic.sentence(facts.requests.traffic, facts.requests.server)
    if answers is None:
        return _describe_times(facts, words.say("at_server", server=facts.requests.server))
    times = _describe_times(facts, "")
    return replace(times, clause=words.joined([answers, words.inside(times.clause)]))


def queued(requests: WithRequests) -> Finding | None:
    """Return the queue of this server's requests, where no other cause of them is proven; else None."""
    common = requests.common
    if common.findings and common.findings[0].grade != "proven":
        queues = (finding for finding in common.other_findings if finding.sentence == "queue_cost")
        return next((finding for finding in queues if server_of(finding) == requests.server), None)
    return None


def _describe_times(facts: Judged, at: str) -> Headline:
    """Describe how long the requests took, and why. `at`: the server's name, where a sentence begins with it."""
    queue = queued(facts.requests)
    if queue is not None:
        return _headline_of(queue)
    if facts.common.findings[0].grade == "unknown":
        why, checks = _why_unknown(facts)
        return Headline(words.say("cannot_say", at=at, why=why), checks=checks)
    return Headline(_describe_quick(facts) if facts.requests.slow["how"] == "none" else _describe_slow(facts, at))


def _describe_slow(facts: Judged, at: str) -> str:
    """Describe the slow requests and the cause of their time."""
    slow, first = facts.requests.slow, facts.common.findings[0]
    if facts.backend is not None:
        return _describe_backend(facts, facts.backend, at)
    if first.cause == STALL:
        return _describe_stall(facts, first, at)
    if not waited_for(facts.requests) and first.cause in UNPROVEN:
        return _describe_unread(facts, at)
    has_both = _has_both_repairs(facts) and not _was_at_host(first)
    special = "late_close" if facts.closes_late else "cause_both_repairs" if has_both else None
    cause = phrase(first) if special is None else words.say(special)
    values = {
        "at": at, "server": facts.requests.server, "sure": _grade_words(first.grade), "cause": cause, "hit": facts.hit,
        "n": slow["count"], "of": slow["of"], "second": _second_cause(facts), "each": _each_wait(facts),
    }  # fmt: skip
    if slow["how"] == "typical":
        some_only = words.say("few_of_slow", n=facts.hit, of=slow["count"]) if _is_in_few_slow(facts) else ""
        sentence = "slow_server" if first.owner == "server" else "slow_at_server"
        return words.say(sentence, part=_part_text(facts.requests, PART_OF_TIME), few=some_only, **values)
    worst = slow["worst"]
    if slow["count"] == 1 and worst is not None:
        return words.say(
            "slow_one", name=worst["name"], took_ms=worst["latency_ms"], others=slow["of"] - 1, **values
        )  # fmt: skip
    if _is_in_few_slow(facts):
        return words.say("slow_few_mixed", part=_part_text(facts.requests, PART_OF_THEIR_TIME), **values)
    return words.say("slow_few", **values)


def _each_wait(facts: Judged) -> str:
    """Return the wait of a slow request for the named cause; "" where no single time is typical."""
    if not facts.waits_ms:
        return ""
    is_outlier = facts.longest_ms >= show.LONGEST_TO_MEDIAN * facts.waits_ms
    longest = words.say("waits_most", most_ms=facts.longest_ms) if is_outlier else ""
    return words.say("waits_each", wait_ms=facts.waits_ms, most=longest)


def _grade_words(grade: Grade) -> str:
    return words.say(f"sure_{grade}")


def _why_unknown(facts: Judged) -> tuple[str, tuple[Check, ...]]:
    """Why the capture cannot show where the time went, with the check that says so, if any."""
    first = facts.common.findings[0]
    checks = [check for check in facts.common.quality if check.check in first.limited_by and check.forbids][:1]
    return checks[0].text if checks else words.say(f"meaning_{first.cause}"), tuple(checks)


def slow_limit(requests: WithRequests) -> str:
    """Return the threshold above which a request is slow."""
    limit, path_ms = requests.slow["limit_ms"], requests.slow["path_ms"]
    return words.say("over_beyond" if path_ms >= show.MIN_PATH_OF_SLOW * limit else "over", limit=limit)


def _describe_login(facts: Judged) -> Headline:
    """Describe a session of which only the login is readable: later pauses are a person's, not a server's."""
    requests, first = facts.requests, facts.common.findings[0]
    slow, worst, protocol = requests.slow, requests.slow["worst"], requests.traffic["protocol"]
    values = {"server": requests.server, "protocol": protocol, "n": slow["count"], "of": slow["of"]}
    if worst is None:
        return Headline(words.say("log_in_quick", p50_ms=facts.requests.p50_ms, **values))
    if first.grade == "unknown":
        reason, checks = _why_unknown(facts)
        why = words.say("log_in_unknown", why=reason)
    else:
        checks = ()
        sure, second = _grade_words(first.grade), _second_cause(facts)
        why = words.say("log_in_because", sure=sure, cause=phrase(first), second=second)
    clause = words.say("log_in_slow", over=slow_limit(facts.requests), most_ms=worst["latency_ms"], why=why, **values)
    return Headline(clause, checks=checks)


def _has_both_repairs(facts: Judged) -> bool:
    """Return whether probes (TLP) and timeouts (RTO) each take a notable part of the time of losses."""
    loss = facts.requests.families[0]
    by_timer = cause_names(trait="by_probe_or_timer")
    times_ms = [loss["causes"].get(cause, 0.0) for cause in by_timer]
    return facts.common.findings[0].cause in by_timer and min(times_ms) >= show.MIN_CAUSE_SHARE * loss["ms"]


def _is_in_few_slow(facts: Judged) -> bool:
    """Return whether the cause is in a few of the slow requests only."""
    return facts.hit < show.TYPICAL_SHARE * facts.requests.slow["count"]


def _part_text(requests: WithRequests, sentences: Mapping[tuple[bool, bool], str]) -> str:
    """Return words for the first family's share of the time, from `PART_OF_TIME` or `PART_OF_THEIR_TIME`."""
    return words.say(sentences[_takes_most_time(requests), _is_below_path(requests)])


def _takes_most_time(requests: WithRequests) -> bool:
    """Return whether the first family takes most of the time, or of the time beyond the path's round trip."""
    all_beyond = sum(without_path_ms(row["causes"]) for row in requests.families) or 1.0
    first = requests.families[0]
    share = without_path_ms(first["causes"]) / all_beyond if _is_below_path(requests) else first["share"]
    return share >= show.MOST_TIME_SHARE


def _is_below_path(requests: WithRequests) -> bool:
    """Return whether the path's round trip takes more time than the first family."""
    path = next((row["causes"].get("network", 0.0) for row in requests.families if row["family"] == "path"), 0.0)
    return path > requests.families[0]["ms"]


def _second_cause(facts: Judged) -> str:
    """Return the main cause of a second family with a notable share."""
    for row in facts.requests.families[1:]:
        if row["share"] >= show.MIN_CAUSE_SHARE and row["family"] != "unknown":
            cause = max(row["causes"], key=row["causes"].__getitem__)
            return words.say("second_cause", first_share=_named_share(facts), share=row["share"], cause=cause)
    return ""


def _named_share(facts: Judged) -> float:
    """Return the named cause's share of the families' time; the whole family's where the whole family is named."""
    cause, family_entry = facts.common.findings[0].cause, facts.requests.families[0]
    if cause not in family_entry["causes"] or _has_both_repairs(facts):
        return family_entry["share"]
    return family_entry["share"] * family_entry["causes"][cause] / (sum(family_entry["causes"].values()) or 1.0)


def _count_text(requests: WithRequests, number: int) -> str:
    return words.say("turns" if traffic.has_unknown_protocol(requests.traffic) else "requests", n=number)


def _describe_quick(facts: Judged) -> str:
    """Describe a server without slow requests: the times, and the path where it takes most of them."""
    requests, slow, first = facts.requests, facts.requests.slow, facts.common.findings[0]
    if slow["of"] == 1:
        sentence = "one_turn_took" if traffic.has_unknown_protocol(requests.traffic) else "one_request_took"
        if slow["streams"]:
            sentence = "one_stream_took" if requests.p50_ms else "one_stream_ticked"
        took = words.say(sentence, p50_ms=requests.p50_ms)
    else:
        polls = words.say("with_polls", n=slow["polls"]) if slow["polls"] else ""
        worst = slow["worst"]
        n, over = slow["count"], slow_limit(requests)
        outliers = words.say("few_took", n=n, over=over, most_ms=worst["latency_ms"]) if worst else ""
        streams = words.say("with_streams", n=slow["streams"]) if slow["streams"] else ""
        took = words.say(
            "many_took", many=_count_text(requests, slow["of"]), p50_ms=requests.p50_ms, p99_ms=requests.p99_ms,
            polls=polls, streams=streams, few=outliers,
        )  # fmt: skip
    pushed = words.say("with_pushes", n=facts.pushed) if facts.pushed else ""
    if facts.common.positions == ["at_server"] and slow["trip_ms"] > slow["limit_ms"]:
        took += words.say("trip_to_clients", trip_ms=slow["trip_ms"])
    is_path = first.cause == "network"
    is_long_path = is_path and slow["path_ms"] > slow["limit_ms"]
    sentence = "long_path" if is_long_path else "nothing_slow_path" if is_path else "nothing_slow"
    return words.say(
        "long_path_halves" if facts.halves else sentence, server=requests.server, many=words.joined([took, pushed]),
        n=facts.halves, sure=_grade_words(first.grade), path_ms=slow["path_ms"],
    )  # fmt: skip


def _describe_stall(facts: Judged, finding: LatencyFinding, at: str) -> str:
    """Describe requests held by Nagle's algorithm and held ACKs, in one direction or both."""
    sender, slow = facts.owners["nagle"], facts.requests.slow
    receiver = SIDES[sender]
    stalls = [stall for stall in facts.common.findings[1:] if stall.cause == STALL and stall.owner == receiver]
    reverse = [stall for stall in stalls if stall.share >= show.MIN_CAUSE_SHARE]
    why = words.say(STALLED[sender])
    if reverse:
        sure = _grade_words(reverse[0].grade) if finding.grade == "proven" else ""
        why = words.say(STALLED_IN_BOTH[sender], why=why, sure=sure)
    return words.say(
        "stall_slow" if slow["how"] == "typical" else "stall_few",
        at=at, server=facts.requests.server, n=slow["count"], many=_count_text(facts.requests, slow["of"]),
        sure=_grade_words(finding.grade), why=why, each=_each_wait(facts),
    )  # fmt: skip


def _describe_backend(facts: Judged, behind: Behind, at: str) -> str:
    """Describe a server that waits for a server behind it, with the reason at that one."""
    slow, grade = facts.requests.slow, facts.common.findings[0].grade
    return words.say(
        "behind_slow" if slow["how"] == "typical" else "behind_few",
        at=at, server=facts.requests.server, n=slow["count"], of=slow["of"], sure=_grade_words(grade),
        behind=behind["server"], why=behind["text"], each=_each_wait(facts),
    )  # fmt: skip


def _describe_unread(facts: Judged, at: str) -> str:
    """Describe late turns of a protocol without a reader, which nobody may have waited for."""
    requests, first = facts.requests, facts.common.findings[0]
    slow, observed, is_most = requests.slow, requests.traffic, _takes_most_time(requests)
    values = {"at": at, "protocol": observed["protocol"], "n": slow["count"], "over": slow_limit(requests)}
    if traffic.is_typed_by_person(observed) or traffic.is_tunnel(observed):
        kind = "session" if traffic.is_typed_by_person(observed) else "tunnel"
        return words.say(kind, many=words.say("turns", n=slow["of"]), **values)
    turns = words.say("sealed_many", n=slow["count"], of=slow["of"]) if slow["of"] > 1 else words.say("sealed_one")
    reader = "reader_tls" if observed["protocol"] == "tls" else "reader_blind"
    if traffic.has_unknown_protocol(observed):
        reader = "reader_none"
    return words.say(
        "sealed", many=turns, reader=words.say(reader), part=words.say("part_most" if is_most else "part_largest"),
        sure=_grade_words(first.grade), cause=phrase(first), second="" if is_most else _second_cause(facts),
        each=_each_wait(facts), **values,
    )  # fmt: skip


def phrase(finding: Finding) -> str:
    """Return words for what takes the time; that nothing else held the program up only where that is proven."""
    if _was_at_host(finding):
        return words.say("cause_host_drops", owner=finding.owner)
    cause = words.say(f"cause_{finding.cause}", owner=finding.owner, holder=SIDES.get(finding.owner, "receiver"))
    is_alone = finding.grade == "proven" and finding.cause.endswith("_think")
    return words.say("cause_alone", cause=cause) if is_alone else cause


def _was_at_host(finding: Finding) -> bool:
    """Return whether the bytes that were sent again had been captured at their receiver's host."""
    return finding.cause in cause_names(trait="by_probe_or_timer") and finding.owner in ("client", "server")


def contradicted(answer: Overall) -> str | None:
    """Return the sentence by which a trace of the server's program contradicts the headline; else None."""
    facts = answer.facts
    if not isinstance(facts, Judged) or facts.common.capture_sentence or answer.lead or answer.push:
        return None
    first = facts.common.findings[0]
    word = "program" if first.cause.endswith("_think") else "stall" if family(first.cause) == "stall" else None
    for source in answer.beside:
        is_of_server = [endpoint(*server) for server in source.get("servers", ())] == [facts.requests.server]
        if word in source.get("contradicts", ()) and is_of_server and first.owner in source["side"]:
            return words.say("trace_program" if word == "program" else "trace_stall")
    return None


def servers_of(requests: WithRequests, rows: Sequence[Finding]) -> str:
    """Return words for the servers of these findings; empty if all are of the headline's server."""
    main = max(rows, key=lambda finding: finding.streams or 0)
    if len(rows) == 1:
        return "" if server_of(main) == requests.server else words.say("of_one_server", server=server_of(main))
    is_main = 2 * (main.streams or 0) > sum(finding.streams or 0 for finding in rows)
    return words.say("of_most_server", server=server_of(main)) if is_main else words.say("of_servers", n=len(rows))
