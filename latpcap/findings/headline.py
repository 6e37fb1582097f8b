"""The answer in one sentence: what happened, how many are slow, and what takes their time; no stronger than its grade.

Numbers of `Why.to_dict()` in, words out; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from latpcap import words
from latpcap.findings import harm, traffic
from latpcap.findings import presentation as show
from latpcap.findings.answer import Overall
from latpcap.findings.schema import Finding, LatencyFinding
from latpcap.findings.slow import beyond, family
from latpcap.findings.totals import SIDES, endpoint
from latpcap.format import count, ms, percent
from latpcap.vocabulary import CAUSES, STALL

PHRASES = {
    "network": "the path's round trip",
    "queueing": "queues on the path",
    "bandwidth": "the line: bytes leave only as fast as it, or the pacing, lets them",
    "server_think": "the server's program",
    "client_think": "the client's program",
    "nagle": "Nagle's algorithm on the {owner}: a small segment waits for the ACK of the one before",
    "delayed_ack": "ACKs that the {owner} holds back",
    "cork": "a cork (TCP_CORK, MSG_MORE) on the {owner}",
    STALL: "acknowledgements that the {holder} holds back, and the {owner} waits for",
    "cwnd": "the {owner}'s congestion window",
    "receive_window": "the {owner}'s receive window",
    "zero_window": "a window of 0: the {owner}'s program does not read",
    "fast_retransmit": "lost segments, repaired after duplicate ACKs",
    "tlp": "lost segments, repaired by tail loss probes",
    "rto": "lost segments, repaired only by the retransmission timer",
    "reordering": "segments that others overtook",
}
"""What each cause takes the time of, in a sentence. (A SYN belongs to no request; what is unknown takes none.)"""
BY_BOTH = "lost segments, repaired by tail loss probes and by the retransmission timer"
"""Of losses for which the kernel tried both, or now one, now the other."""
PROGRAMS = ("server_think", "client_think", "network")
"""What may be a person's or nobody's time, where no reader knows the protocol."""
SURE = {"proven": "", "probable": "probably ", "suspected": "perhaps ", "harmless": "", "unknown": "perhaps "}


SILENT = {
    "unanswered": "without an answer to the SYN",
    "without_data": "without any data",
    "without_answer": "with data but no complete answer",
}
"""How far connections without a request and its answer got."""


def leading(d: Overall) -> Finding | None:
    """The finding that did more harm than what is said of the requests without it; None where there is none."""
    lead = harm.worst(d["events"])
    if lead is None or d["scene"] in _WHOLE or any(e.cause == "syn_flood" for e in d["events"]):
        return None
    of_rest = _of_rest(d)
    if lead.kind == "transfer" and not of_rest.never:
        # the requests' time has the transfer's in it: it leads where it is most of that
        return lead if 2 * harm.of(lead).waited_ms > of_rest.waited_ms else None
    return lead if harm.of(lead) > of_rest else None


_WHOLE = ("scan", "traceroute", "one_direction")
"""What a capture is as a whole, whatever else happened in it."""


def _of_rest(d: Overall) -> harm.Harm:
    """What harm does the answer speak of that no finding leads? Requests, what fell silent, and pushes."""
    if d["verdict"] == "no_exchanges":
        gone = [e for e in d["events"] if e.kind == "silence" and e.harm is None and _leads(e)]
        return max([harm.NONE, *(harm.Harm(True, e.total_ms or 0.0) for e in gone)])
    slow, worst = d["slow"], d["slow"]["worst"]
    waited = sum(beyond(f["causes"]) for f in d["families"]) if slow["count"] else 0.0
    late = asked_late(d)
    found = harm.Harm(False, waited if waited_for(d) else waited / 2)
    if late is not None:
        found = max(found, harm.Harm(False, late.total_ms or 0.0))
    for mute in d["events"]:
        longer = worst is None or (mute.max_ms or 0.0) > worst["latency_ms"]
        if mute.kind == "silence" and mute.harm is None and _leads(mute) and longer:
            found = max(found, harm.Harm(True, mute.total_ms or 0.0))
    push = pushed(d)
    return found if push is None else max(found, harm.Harm(False, push.total_ms or 0.0))


def of(d: Overall) -> str:
    """The headline: what never was answered before what was slow, a scan before what it came by."""
    if d["lead"] is not None:
        return _capital(d["lead"].says or "")
    mute = next((e for e in d["events"] if e.kind == "silence" and _leads(e)), None)
    if d["verdict"] == "no_exchanges":
        lead = pushed(d)
        floods = [f"{endpoint(e.server, e.server_port)}: {e.says}." for e in d["events"] if e.cause == "syn_flood"]
        if floods or mute is not None:
            return floods[0] if floods or mute is None else _capital(mute.says or "")
        if lead is not None:
            return _capital(lead.says or "")
        return _capital(d["scene_says"]) if d["scene_says"] else nothing_judged(d)
    if d["scene_says"]:
        return _capital(d["scene_says"])
    worst = d["slow"]["worst"]
    if mute is not None and (worst is None or (mute.max_ms or 0.0) > worst["latency_ms"]):
        return _capital(mute.says or "")
    lead = pushed(d)
    return of_requests(d) if lead is None else _capital(lead.says or "")


def _leads(mute: Finding) -> bool:
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


def beside(d: Overall, other: str) -> str:
    """The headline behind what most of the capture is, which is no TCP."""
    first, rest = d["headline"][:1], d["headline"][1:]
    word = first.lower() if rest[:1].islower() else first
    return words.say("mostly_other", {"other": other, "rest": f"{word}{rest}"})


def _capital(says: str) -> str:
    """A finding's words as a sentence."""
    return f"{says[:1].upper()}{says[1:]}."


def says(d: Overall, found: Finding) -> bool:
    """Has the headline said this finding already?"""
    told = found.says or ""
    return bool(told) and told[1:] in d["headline"]


def whose(d: Overall, rows: Sequence[Finding]) -> str:
    """Of which servers, where it is not the headline's alone."""
    most = max(rows, key=lambda e: e.streams or 0)
    name = endpoint(most.server, most.server_port)
    if len(rows) == 1:
        return "" if name == d["server"] else f" ({name})"
    mostly = 2 * (most.streams or 0) > sum(e.streams or 0 for e in rows)
    return f" (most of {name})" if mostly else f" (of {len(rows):,} servers)"


def nothing_judged(d: Overall) -> str:
    """What there is where no request was answered, by how far the connections got."""
    if not d["frames"] and d["filter"] is None:
        return "The capture is empty: it has no frame."
    if not d["streams"]:
        return "No TCP stream: nothing that latpcap could judge."
    parts = [f"{d['silent'][k]:,} {SILENT[k]}" for k in SILENT if d["silent"].get(k)]
    scope = "" if d["scope"] is None else f" on tcp.stream {d['scope']}"
    return f"No complete request and answer{scope}, so nothing was slow or fast; connections: {'; '.join(parts)}."


def of_requests(d: Overall) -> str:
    """What the requests of one server say: how many are slow, and why."""
    if d["verdict"] == "no_time" or not d["findings"]:
        return f"{d['server']}: its answers took no time that the capture's clock shows."
    late = asked_late(d)
    if late:
        return f"{d['server']}: {late.says}."
    if traffic.log_in(d["traffic"]):
        return _log_in(d)
    told = traffic.sentence(d["traffic"], d["server"])
    rest = _slow(d)
    if told:
        return f"{told}; {rest.removeprefix(d['server'] + ': ')}"
    return f"{rest[0].upper()}{rest[1:]}" if rest.startswith(("nothing ", "what ", "requests ")) else rest


def _slow(d: Overall) -> str:
    slow, name, first = d["slow"], d["server"], d["findings"][0]
    if first.grade == "unknown":
        return f"{name}: this capture cannot say where the time went: {_forbids(d)}."
    if slow["how"] == "none":
        return _nothing(d)
    if "backend" in d:
        return _backend(d, first)
    if first.cause == STALL:
        return _stall(d, first)
    if not waited_for(d) and first.cause in PROGRAMS:
        return _unread(d)
    who = words.say("late_close", {}) if d["closes_late"] else BY_BOTH if _by_both(d) else phrase(first)
    goes = SURE[first.grade]
    if slow["how"] == "typical":
        slowly = f"{name} is slow" if first.owner == "server" else f"requests to {name} are slow"
        most = "most time" if _part(d) == "most" else f"{_part(d)} of the time"
        return f"{slowly}: {_beyond(d)}{most} {goes}goes to {who}{_behind(d)}{_few(d)}."
    worst = slow["worst"]
    if slow["count"] == 1 and worst is not None:
        rest = f"the other {slow['of'] - 1:,} are not slow" if slow["of"] > 2 else "the other one is not slow"
        return f"{name}: {worst['name']} took {ms(worst['latency_ms'])} ms, {goes}because of {who}{_behind(d)}; {rest}."
    few = f"{name}: {slow['count']:,} of {count(slow['of'], 'request')} are slow"
    if _few(d):
        part = f"{_beyond(d)}{_part(d)} of their time"
        return f"{few}; {part} {goes}goes to {who}{_behind(d)}, in {d['hit']:,} of them."
    return f"{few}, {goes}because of {who}{_behind(d)}."


def _forbids(d: Overall) -> str:
    """Why can this capture not say where the time went?"""
    first = d["findings"][0]
    says = [c.says for c in d["quality"] if c.check in first.limited_by and c.forbids]
    return says[0] if says else CAUSES[first.cause].meaning


def over(d: Overall) -> str:
    """From when on is a request slow here? In words."""
    slow = d["slow"]
    beyond = " beyond the path's round trip" if slow["path_ms"] >= show.PATH_OF_SLOW * slow["limit_ms"] else ""
    return f"over {slow['limit_ms']:,.4g} ms{beyond}"


def _log_in(d: Overall) -> str:
    """Of a session of which the log-in alone can be read: what a person did then was nobody's latency."""
    slow, worst, first = d["slow"], d["slow"]["worst"], d["findings"][0]
    of = f"{count(slow['of'], 'step')} of its log-in"
    who = f"{d['server']}: an interactive session ({d['traffic']['protocol']})"
    typed = "what was typed then is not judged"
    if worst is None:
        return f"{who}: {of} took {ms(d['p50_ms'])} ms at p50, none is slow; {typed}."
    why = f", {SURE[first.grade]}because of {phrase(first)}{_behind(d)}"
    if first.grade == "unknown":
        why = f"; this capture cannot say why: {_forbids(d)}"
    slowest = f"the slowest {ms(worst['latency_ms'])} ms"
    return f"{who}: {slow['count']:,} of {of} took {over(d)}, {slowest}{why}; {typed}."


def _by_both(d: Overall) -> bool:
    """Do probes and the timer each take a part of the losses' time that is worth a word?"""
    loss = d["families"][0]
    timed = [loss["causes"].get(cause, 0.0) for cause in ("tlp", "rto")]
    return d["findings"][0].cause in ("tlp", "rto") and min(timed) >= show.HOLDS_UP * loss["ms"]


def _few(d: Overall) -> str:
    """Is it in a few of the slow requests only?"""
    slow = d["slow"]["count"]
    return f", in {d['hit']:,} of {count(slow, 'slow request')}" if d["hit"] < show.TYPICAL * slow else ""


def _part(d: Overall) -> str:
    all_beyond = sum(beyond(f["causes"]) for f in d["families"]) or 1.0
    first = d["families"][0]
    part = beyond(first["causes"]) / all_beyond if _beyond(d) else first["share"]
    return "most" if part >= show.MOST_TIME else "the largest part"


def _beyond(d: Overall) -> str:
    """Is more time the path's own round trip than what makes these requests slow?"""
    path = next((f["causes"].get("network", 0.0) for f in d["families"] if f["family"] == "path"), 0.0)
    return "beyond the path's round trip " if path > d["families"][0]["ms"] else ""


def _behind(d: Overall) -> str:
    """A second family that takes a share worth a word."""
    rows = [f for f in d["families"][1:] if f["share"] >= show.HOLDS_UP and f["family"] != "unknown"]
    if not rows:
        return ""
    named = max(rows[0]["causes"], key=lambda cause: rows[0]["causes"][cause])
    return f" ({percent(_share(d))}; {percent(rows[0]['share'])} to {named})"


def _share(d: Overall) -> float:
    """What the cause that is named takes of the families' time; the whole family, where all of it is meant."""
    first, family_ = d["findings"][0].cause, d["families"][0]
    if first not in family_["causes"] or _by_both(d):
        return family_["share"]
    return family_["share"] * family_["causes"][first] / (sum(family_["causes"].values()) or 1.0)


def _nothing(d: Overall) -> str:
    """Nothing is slow: the numbers, and the path where it is what takes the time."""
    slow, first = d["slow"], d["findings"][0]
    one = "turn" if traffic.turns(d["traffic"]) else "request"
    many = f"{count(slow['of'], one)}, p50 {ms(d['p50_ms'])}, p99 {ms(d['p99_ms'])} ms"
    if slow["polls"]:
        many += f", of which {slow['polls']:,} {'waits' if slow['polls'] == 1 else 'wait'} for an event on purpose"
    if slow["streams"]:
        many += f", of which {slow['streams']:,} {'streams' if slow['streams'] == 1 else 'stream'} events"
    if slow["of"] == 1:
        stream = ", a stream of events," if slow["streams"] else ""
        many = f"its one {one}{stream} took {ms(d['p50_ms'])} ms"
    if first.cause == "network":
        goes = SURE[first.grade]
        if slow["path_ms"] > slow["limit_ms"]:
            return (
                f"what takes the time at {d['server']} is {goes}the path's round trip, {ms(slow['path_ms'])} ms of it: "
                f"{many}."
            )
        return f"nothing is slow at {d['server']}: {many}; what takes the time is {goes}the path's round trip."
    return f"nothing is slow at {d['server']}: {many}."


def _stall(d: Overall, found: LatencyFinding) -> str:
    sender, slow = d["owners"]["nagle"], d["slow"]
    also = [f for f in d["findings"][1:] if f.cause == STALL and f.owner == SIDES[sender] and f.share >= show.HOLDS_UP]
    for_acks = f"wait for acknowledgements that {_HOLDS[SIDES[sender]]}"
    why = f"because {_WAITS[sender]} {for_acks}"
    if also:
        goes = SURE[also[0].grade] if found.grade == "proven" else ""
        why += f", and {goes}{_WAITS[also[0].owner]} for those that {_HOLDS[sender]}"
    if slow["how"] == "typical":
        return f"{d['server']} is {SURE[found.grade]}slow {why}."
    one = "turn" if traffic.turns(d["traffic"]) else "request"
    few = f"{slow['count']:,} of {count(slow['of'], one)} {'is' if slow['count'] == 1 else 'are'} slow"
    return f"{d['server']}: {few}, {SURE[found.grade]}{why}."


_WAITS = {"server": "its answers", "client": "its clients' requests"}
_HOLDS = {"client": "the clients hold back", "server": "it holds back"}


def _backend(d: Overall, found: LatencyFinding) -> str:
    """What a server waits for that asks another one meanwhile: that one's reason."""
    behind, slow = d["backend"], d["slow"]
    goes = SURE[found.grade]
    if slow["how"] == "typical":
        return f"{d['server']} is {goes}slow because {behind['server']} is, which it asks: {behind['says']}."
    few = f"{slow['count']:,} of {count(slow['of'], 'request')} are slow"
    return f"{d['server']}: {few}, {goes}because {behind['server']} is, which it asks: {behind['says']}."


def _unread(d: Overall) -> str:
    """What came late in a protocol that no reader knows: nobody may have waited for it."""
    slow, t, first = d["slow"], d["traffic"], d["findings"][0]
    few = f"{slow['count']:,} of {count(slow['of'], 'turn')}"
    if traffic.people(t):
        typed = "and a person may have been what they waited for"
        return f"{d['server']}: an interactive session ({t['protocol']}): {few} took {over(d)}, {typed}."
    if traffic.tunnel(t):
        inside = "but packets inside answer nobody in turn"
        return f"{d['server']}: a tunnel ({t['protocol']}): {few} took {over(d)}, {inside}."
    them = "it was" if slow["count"] == 1 else "they were"
    many = f"{slow['count']:,} of {slow['of']:,} turns" if slow["of"] > 1 else "its one turn"
    sealed = "inside TLS, without keys" if t["protocol"] == "tls" else "what was asked cannot be read"
    if traffic.turns(t):
        sealed = "no reader knows this protocol"
    most = "most time" if _part(d) == "most" else f"{_part(d)} of the time"
    return (
        f"{d['server']}: {many} took {over(d)}, if {them} waited for ({sealed}); {most} {SURE[first.grade]}goes to "
        f"{phrase(first)}{_behind(d) if _part(d) != 'most' else ''}."
    )


def waited_for(d: Overall) -> bool:
    """Are there slow requests, and not only turns of a protocol that no reader knows?"""
    return bool(d["slow"]["count"]) and 2 * d["slow"]["unread"] <= d["slow"]["count"]


def phrase(found: Finding) -> str:
    """What this finding takes the time of, in words; that nothing held a program back only where that is proven."""
    holder = {"client": "server", "server": "client"}.get(found.owner, "receiver")
    alone = ", and nothing held it back" if found.grade == "proven" and found.cause.endswith("_think") else ""
    return PHRASES[found.cause].format(owner=found.owner, holder=holder) + alone


OTHERWISE = {
    "stall": "but the trace contradicts: the program wrote the late bytes late",
    "program": "but the trace contradicts: the kernel held what the program had written",
}


def contradicted(d: Overall) -> str | None:
    """What a trace of the program at this server's sockets says against the headline; None where nothing."""
    first = next(iter(d["findings"]), None)
    if first is None or "server" not in d or d["scene_says"] or d["lead"] or pushed(d):
        return None
    word = "program" if first.cause.endswith("_think") else "stall" if family(first.cause) == "stall" else None
    for one in d["beside"]:
        alone = [endpoint(*server) for server in one.get("servers", ())] == [d["server"]]
        if word in one.get("contradicts", ()) and alone and first.owner in one["side"]:
            return OTHERWISE[str(word)]
    return None


def setup(d: Overall) -> Finding | None:
    """What took the most time before the first requests of this server; None where nothing did."""
    rows = [e for e in d["events"] if e.kind == "setup" and endpoint(e.server, e.server_port) == d["server"]]
    return max(rows, key=lambda e: e.total_ms or 0.0, default=None)


def asked_late(d: Overall) -> Finding | None:
    """What took more time before the first requests than all answers took? None where nothing did."""
    before = setup(d)
    return before if before is not None and (before.total_ms or 0.0) > d["total_ms"] else None
