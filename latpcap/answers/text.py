"""The text of an answer: reads the numbers of `Why.to_dict()`, returns at most 15 lines.

Every number in the text is in the JSON, so that each line can be checked. The sentences are in `latpcap/words`.
"""

from __future__ import annotations

import shlex

from latpcap import presentation as show
from latpcap import words
from latpcap.answers import headline, traffic
from latpcap.answers.types import OneExchange, Overall, Row, Typical
from latpcap.findings import lookups
from latpcap.findings.schema import Finding, grade_and_confidence
from latpcap.findings.socket_options import Pool
from latpcap.format import escaped, ms, printable, requested
from latpcap.user_waits.cause_totals import endpoint
from latpcap.vocabulary import PROGRAMS, SIDES, STALL, cause_names
from latpcap.words import joined, line, say

Lines = list[tuple[int, str]]
"""Lines with their priority; if there are too many, those with the highest number are left out."""


def overall(d: Overall) -> str:
    """Write the answer for a capture or a stream."""
    lines: Lines = [(0, d["headline"]), *(_no_exchanges(d) if "server" not in d else _judged(d))]
    if d["dns"] is not None:
        has_dns_wait = any(found.owner == "dns" for found in d["events"])
        lines.append((1 if lookups.matters(d["dns"]) else 2, line("dns", lookups.line(d["dns"], has_dns_wait))))
    remarks = [c.text for c in d["quality"] if c.most < 1 or c.check in _ALWAYS_REMARKED]
    lines += [(0, line("capture", sentence)) for sentence in remarks[:2] if sentence not in d["headline"]]
    lines += [(1, line("damaged", sentence)) for sentence in d["damage"][:2]]
    from_side_sources = [
        line(label, sentence)
        for label, source in (("process", "processes"), ("strace", "strace"), ("log", "access_log"))
        for one in d.get("beside", [])
        if one["source"] == source
        for sentence in one["text"]
    ]
    return "\n".join([_first_line(d), *_selected(lines), *from_side_sources])


def _judged(d: Overall) -> Lines:
    """The lines of an answer with requests, by what is the headline."""
    if d["lead"] is not None:
        return [*_opening(d), (0, _latency(d)), *_lead(d["lead"]), *_servers(d), *_also(d)]
    lead = headline.pushed(d)
    if lead is not None and headline.has_sentence(d, lead):
        return [*_opening(d), (0, _latency(d)), *_push(lead), *_servers(d), *_also(d)]
    if not d["findings"]:
        return [(1, line("traffic", traffic.line(d["traffic"]))), (0, _latency(d)), *_pushes(d)]
    stalled = d["findings"][0].cause == STALL and d["verdict"] == STALL and "backend" not in d
    return _stall(d) if stalled else _other(d)


def _lead(found: Finding) -> Lines:
    """The lines below a headline that is a finding's sentence: its frames, fix and grade."""
    lines: Lines = []
    if found.worst_frames:
        sentence = "see" if found.worst_stream is None else "see_stream"
        lines.append((0, line("see", say(sentence, frames=_chain(found.worst_frames), stream=found.worst_stream))))
    if found.fix:
        lines.append((0, line("fix", found.fix)))
    return [*lines, (0, _sure(grade_and_confidence(found.confidence), found))]


def _chain(frames: tuple[int, ...] | list[int]) -> str:
    return " > ".join(map(str, dict.fromkeys(frames)))


def _sure(grade: str, found: Finding | None) -> str:
    """The line with the grade, and with the rival explanation that is left."""
    if found is None or not found.rival:
        return line("sure?", grade)
    return line("sure?", say("sure_rival", grade=grade, rival=found.rival, lost=found.rival_lost))


_ALWAYS_REMARKED = ("one_direction", "capture_gap", "doubles", "unseen_frames", "clock_ahead", "merged")
"""Checks with a line even where they limit no confidence."""


def _selected(lines: Lines) -> list[str]:
    """The lines that fit, in their order; lines of the highest number are left out first, from the end."""
    room = show.MAX_LINES - 1
    order = sorted(range(len(lines)), key=lambda i: (lines[i][0], i))
    return [lines[i][1] for i in sorted(order[:room])]


def _first_line(d: Overall) -> str:
    """The line with the capture's name, size and place. Joined captures may last for days."""
    days, positions = d["seconds"] / 86_400, d["positions"]
    return say(
        "first_line" if d["filter"] is None else "first_line_filtered",
        file=escaped(d["file"]), filter=printable(d["filter"] or ""), frames=d["frames"], streams=d["streams"],
        exchanges=d["exchanges"],
        span=say("span", seconds=d["seconds"]) if days < 2 else say("span_days", days=days),
        place=say(f"captured_{positions[0]}") if positions in (["at_client"], ["at_server"]) else "",
    )  # fmt: skip


def _no_exchanges(d: Overall) -> Lines:
    """The lines of an answer without a judged request."""
    lines = _lead(d["lead"]) if d["lead"] is not None else []
    if not d["streams"]:
        for row in d["skipped"][:3]:
            lines.append((1, line("skipped", say("skipped", n=row["frames"], of=d["frames"], reason=row["reason"]))))
        if d["pings"]:
            lines.append((2, line("probes", say("pings_in_probes", n=d["pings"]))))
        return lines
    sentence = headline.nothing_judged(d)
    if sentence != d["headline"]:
        lines.append((0, line("requests", words.inside(sentence))))
    silences = [e for e in d["events"] if e.kind == "silence"]
    lines += [(0, line("silent", e.text or "")) for e in silences[:2] if not headline.has_sentence(d, e)]
    floods = [e for e in d["events"] if e.cause == "syn_flood"]
    lines += [(0, line("flood", _at(e))) for e in floods if e.text and e.text not in d["headline"]]
    lead = headline.pushed(d)
    lines += _push(lead) if lead is not None and headline.has_sentence(d, lead) else _pushes(d)
    kinds = ("one_way", "setup") if d["capture_kind"] == "scan" else ("connection", "one_way", "setup")
    rest = [e for e in d["events"] if e.kind in kinds and e not in floods and not headline.has_sentence(d, e)]
    return lines + [(2, line(grade_and_confidence(e.confidence).split()[0], e.text or "")) for e in rest[:4]]


def _end(row: Finding) -> str:
    return endpoint(row.server, row.server_port)


def _at(row: Finding) -> str:
    """A finding's sentence with its server's name in front."""
    return say("of_server", server=_end(row), text=row.text)


def _latency(d: Overall) -> str:
    kind = "turns" if traffic.turns(d["traffic"]) else "requests" if d["cut"] else "answered_requests"
    took = "took_many" if d["complete"] > 1 else "took_one"
    parts = [
        say(took, p50_ms=d["p50_ms"], p99_ms=d["p99_ms"], many=say(kind, n=d["complete"])),
        say("slow_over", n=d["slow"]["count"], over=headline.slow_limit(d)),
    ]
    if d["cut"]:
        parts.append(say("cut_all" if d["cut"] == d["complete"] else "cut_some", n=d["cut"]))
    if d["incomplete"]:
        last = "" if not d["goodbyes"] else "_goodbyes" if d["goodbyes"] == d["incomplete"] else "_some_goodbyes"
        parts.append(say(f"incomplete{last}", n=d["incomplete"], last=d["goodbyes"]))
    return line("latency", joined(parts))


def _servers(d: Overall) -> Lines:
    """The lines about further servers.

    The number that `servers` asked for; or by default those behind the first one, then slow ones, then a count of the
    others.
    """
    rows = d["servers"][1:]
    if d["shown"]:
        return [(0, line("further", _server(row))) for row in rows[: d["shown"] - 1]]
    behind = [row for row in rows if row["behind"] == d["server"]][: show.MAX_LEGS]
    lines: Lines = [(0, line("behind", _server({**row, "behind": None}))) for row in behind]
    slow = [row for row in rows if row["slow"] and row not in behind][: show.MAX_SLOW_SERVERS - 1]
    lines += [(1, line("slow", _server(row))) for row in slow]
    others = [row for row in rows if row not in behind and row not in slow]
    if others:
        slow_count, top = sum(row["slow"] for row in others), min(len(d["servers"]), 10)
        further = say("further_slow" if slow_count else "further_quick", n=len(others), slow=slow_count, top=top)
        lines.append((1, line("further", further)))
    return lines


def _server(row: Row) -> str:
    """The line of one server in the list."""
    return say(
        "server_line",
        server=row["server"], n=row["slow"], of=row["requests"], p50_ms=row["p50_ms"], p99_ms=row["p99_ms"],
        behind=say("server_behind", server=row["behind"]) if row["behind"] else "",
        family=say("server_family", family=row["family"], grade=row["grade"]) if row["family"] else "",
    )  # fmt: skip


def _families(d: Overall) -> Lines:
    """One line per family of causes: its share of the slow requests' time, and its causes."""
    lines: Lines = []
    sentence = ("slow_time" if headline.waited_for(d) else "all_time") + ("_waited" if d["slow"]["streams"] else "")
    for place, row in enumerate(d["families"][: show.MAX_FAMILIES]):
        if place and row["share"] < show.MIN_NEXT_SHARE:
            continue
        causes = [
            f"{name} {ms(spent)}"
            for name, spent in row["causes"].items()
            if spent >= show.MIN_UNNAMED_SHARE * row["ms"]
        ]
        text = say(sentence, part_share=row["share"], causes=", ".join(causes))
        lost = say("segments_lost", n=d["lost"]) if row["family"] == "loss" and d["lost"] else ""
        lines.append((1, line(row["family"], joined([text, lost]))))
    return lines


def _listed(d: Overall) -> list[str]:
    """The causes in families that have a line."""
    rows = d["families"][: show.MAX_FAMILIES]
    return [cause for row in rows if row is rows[0] or row["share"] >= show.MIN_NEXT_SHARE for cause in row["causes"]]


def _queue(d: Overall) -> Lines:
    """The line about requests that queued at the server."""
    return [(1, line("queue", e.text or "")) for e in d["events"] if e.kind == "queue" and _end(e) == d["server"]]


def _share(d: Overall) -> str:
    p50, p99 = d["share"]["p50"], d["share"]["p99"]
    kind = "turns" if traffic.turns(d["traffic"]) else "requests"
    return line("share", say(
        "share_of", p50_ms=p50["ms"], of_p50_ms=p50["of_ms"], p50_share=p50["share"], p99_ms=p99["ms"],
        of_p99_ms=p99["of_ms"], p99_share=p99["share"], n=d["hit"], many=say(kind, n=d["complete"]),
    ))  # fmt: skip


def _stall(d: Overall) -> Lines:
    """The lines of an answer about Nagle's algorithm and held ACKs."""
    typical, found = d["typical"], d["findings"][0]
    sender, receiver = d["owners"]["nagle"], d["owners"]["delayed_ack"]
    pool = d["senders"][sender]
    lines = [*_opening(d), (0, _latency(d)), (0, _share(d))]
    round_trips = (pool.sender_rtt_ms or 0.0) + (pool.receiver_rtt_ms or 0.0)
    path = say("path_of_wait", path_ms=round_trips) if round_trips > show.MIN_PATH_OF_WAIT * typical["ms"] else ""
    if "bytes" in typical:
        first, second = typical["bytes"]
        lines.append((0, line(sender, joined([say("nagle_waits", first=first, second=second), path]))))
    if pool.hold_min_ms is not None and pool.hold_max_ms is not None and pool.hold_median_ms is not None:
        low, high = f"{pool.hold_min_ms:.1f}", f"{pool.hold_max_ms:.1f}"
        held = say("held" if low == high else "held_range", low=low, high=high, median=pool.hold_median_ms)
        lines.append((0, line(receiver, joined([held, _timer(found)]))))
    if "bytes" in typical:
        seen = say("see_stall", frames=" > ".join(map(str, typical["frames"])), stream=typical["stream"],
                   ack=typical["ack_after_ms"], release_us=typical["release_us"])  # fmt: skip
        lines.append((0, line("see", seen)))
    lines += _not(d, skip=("nagle", "delayed_ack", *(("network",) if path else ())))
    lines.append((1, _options(d, sender, receiver)))
    if d["fix"]:
        lines.append((0, line("fix", d["fix"])))
    return [
        *lines, *_gain(d), (0, _sure_stall(d, pool)), *_next(d), *_unknown(d, sender), *_servers(d), *_also(d),
    ]  # fmt: skip


def _timer(found: Finding) -> str:
    """Words for the receiver's delayed-ACK timer, as far as its holds show it."""
    if found.timer_ms is None:
        return say("timer_tick", tick=found.tick_ms) if found.tick_ms else ""
    tick = say("on_tick", tick=found.tick_ms) if found.tick_ms else ""
    whose = say("timer_of", system=found.os_hint.partition(" (")[0]) if found.os_hint else ""
    return say("timer_fitted", timer=found.timer_ms, tick=tick, whose=whose)


def _other(d: Overall) -> Lines:
    """The lines of an answer about another cause."""
    found, typical, late = d["findings"][0], d["typical"], headline.late_request(d)
    is_known = found.grade != "unknown" or found.cause in ("unknown", "capture_gap")
    lines = [*_opening(d), (0, _latency(d)), *(_families(d) if is_known else []), *_queue(d)]
    if typical["frames"] and is_known:
        sentence = "see_behind" if "backend" in d else "see_cause"
        server = d["backend"]["server"] if "backend" in d else ""
        seen = say(sentence, frames=_chain(typical["frames"]), stream=typical["stream"], server=server,
                   cause=found.cause, time=_shown(typical))  # fmt: skip
        lines.append((0, line("see", seen)))
    lines += _slowest(d)
    lines += _not(d, skip=(*(row.cause for row in d["findings"][:3]), *_listed(d)))
    if d["fix"]:
        lines.append((0, line("fix", d["fix"])))
    lines += _gain(d)
    grade = say("grade_unknown") if found.grade == "unknown" else grade_and_confidence(d["confidence"])
    lines.append((0, _sure(grade, found) if late is None else _sure(grade_and_confidence(late.confidence), None)))
    return [*lines, *_unknown(d, None), *_servers(d), *_also(d)]


def _opening(d: Overall) -> Lines:
    """The line about the traffic, after the sentence about the requests if the headline is about something else."""
    lines: Lines = [(1, line("traffic", traffic.line(d["traffic"])))]
    sentence, lead = headline.of_requests(d), d["lead"]
    at_server = lead is not None and lead.kind == "transfer" and _end(lead) == d["server"]
    has_queue = headline.queued(d) is not None  # then `sentence` says what the queue cost
    if lead is not None and lead.sentence == "transfer_bloat" and d["slow"]["in_queue"] and not has_queue:
        count, of, during = d["slow"]["count"], d["slow"]["of"], d["slow"]["in_queue"]
        sentence = words.sentence(say("slow_in_queue", server=d["server"], n=count, of=of, during=during))
    is_elsewhere = lead is not None and lead.sentence in headline.ELSEWHERE
    if at_server or is_elsewhere or sentence == d["headline"]:  # a transfer's limit is what its request waited for
        return lines
    return [(0, line("requests", words.inside(sentence))), *lines]


def _shown(t: Typical) -> str:
    """Words for the time that the frames show: all of the cause's time in this exchange, or its longest piece."""
    if t["pieces"] == 1 or t["longest_ms"] > show.SAME_SHARE * t["ms"]:
        return say("all_pieces", all_ms=t["ms"])
    return say("longest_piece", longest_ms=t["longest_ms"], n=t["pieces"], all_ms=t["ms"])


def _slowest(d: Overall) -> Lines:
    """The line about the slowest request, with its frames."""
    worst = d["slow"]["worst"]
    if worst is None:
        return []
    has_cause = worst["cause"] and d["findings"][0].grade != "unknown"
    return [(0, line("slowest", say(
        "slowest",
        name=worst["name"], took_ms=worst["latency_ms"], stream=worst["stream"],
        frames=" > ".join(map(str, worst["frames"])),
        why=say("slowest_cause", part_ms=worst["cause_ms"], cause=worst["cause"]) if has_cause else "",
    )))]  # fmt: skip


def _gain(d: Overall) -> Lines:
    """The line about what the fix gains, as a range, and what limits the rate then."""
    row, now = d["findings"][0], d["p50_ms"]
    low, high, limit = row.gain_p50_low_ms, row.gain_p50_high_ms, row.gain_limit
    if not d["fix"] or low is None or row.fix_side is None:
        return []
    if d["share"]["p50"]["share"] < show.MIN_P50_SHARE:  # the median request does not have the cause
        at_best = row.gain_p99_low_ms
        if at_best is None or at_best > show.SAME_SHARE * d["p99_ms"]:
            return []
        return [(0, line("gain", say("gain_p99", best_ms=at_best, now_ms=d["p99_ms"])))]
    if low > show.SAME_SHARE * now:
        return []
    text = say("gain_best", best_ms=low, now_ms=now)
    if high is not None and not row.gain_open:
        text = say("gain", then_ms=(low, high), now_ms=now)
    if limit == "server":
        slow, quick = f"{row.gain_rate_low:.1f}", f"{row.gain_rate_high:.1f}"
        text = say("gain_rate", gain=text, times=slow if slow == quick else f"{slow}-{quick}")
    elif row.gain_open or limit == "unknown":
        text = joined([text, row.gain_open or say("gain_unseen")])
    return [(0, line("gain", text))]


def _next(d: Overall) -> Lines:
    """The line with the findings after the first."""
    rows = [r for r in d["findings"][1:4] if r.share >= show.MIN_NEXT_SHARE]
    if not rows:
        return []
    parts = [
        say("next_there" if _is_reverse_stall(d, r) else "next", cause=r.cause, owner=r.owner, part_share=r.share)
        for r in rows
    ]
    return [(1, line("next", say("and_more").join(parts)))]


def _is_reverse_stall(d: Overall, row: Finding) -> bool:
    """Whether this is the stall of the other direction: the same option fixes it there."""
    return row.cause == STALL and d["verdict"] == STALL and row.owner == SIDES.get(d["owners"]["nagle"])


_FAILED_CONNECTIONS = ("unanswered", "unreachable", "traceroute", "refused", "reset", "half_open")


def _also(d: Overall) -> Lines:
    """The lines about what happened besides: pushes, silences, waits, transfers and remarks."""
    events = d["events"]
    setups = [] if headline.late_request(d) is not None else [e for e in events if e.kind == "setup"]
    before = [e for e in setups if (e.max_ms or 0.0) > d["p50_ms"] and _end(e) == d["server"]]
    silences = [e for e in events if e.kind == "silence" and not headline.has_sentence(d, e)]
    waits = [e for e in events if e.kind == "wait" and e is not d["lead"] and e is not headline.queued(d)]
    waits.sort(key=headline.harm_of, reverse=True)
    transfers = [e for e in events if e.kind == "transfer" and e is not d["lead"]]
    remarks = joined(_remarks(d))
    return [
        *_pushes(d),
        *[(1, line("suspected", _at(e))) for e in events if e.kind == "one_way"][:1],
        *((0, line("flood", _at(e))) for e in events if e.cause == "syn_flood"),
        *((0, line("silent", e.text or "")) for e in silences[:2]),
        *((0, line("waited", e.text or "")) for e in waits[:2]),
        *((1, line("transfer", e.text or "")) for e in transfers[:2]),
        *((0, line("before", say("on_stream", text=e.text, stream=e.worst_stream))) for e in before[:1]),
        *([(1, line("also", remarks))] if remarks else []),
    ]


def _remarks(d: Overall) -> list[str]:
    """Short remarks about harmless events, failed connections and pauses."""
    parts, events = [], d["events"]
    if d.get("first_fast"):
        parts.append(say("first_fast", n=d["first_fast"]))
    if d.get("fin_released"):
        parts.append(say("fin_released", n=d["fin_released"]))
    parts += [e.text for e in events if e.kind == "change" and e.text][:1]
    harmless = [e for e in events if e.kind == "harmless"]
    if harmless:
        first = d["lead"] or next(iter(d["findings"]), None)
        proven = first is None or first.grade == "proven"
        held = sum(e.delayed_ack_seen_on or 0 for e in harmless)
        parts.append(say("held_harmless" if proven else "held_for_nobody", n=held))
    for cause in _FAILED_CONNECTIONS:
        rows = [e for e in events if e.cause == cause]
        number = sum(e.streams or 0 for e in rows)
        if number:
            parts.append(say(f"also_{cause}", n=number, whose=headline.servers_of(d, rows)))
    held_up = {cause for family in d["families"] for cause in family["causes"]}
    held_up |= {e.cause for e in events if e.kind == "wait"}
    parts += [e.text for e in events if e.cause == "zero_window" and e.text and "zero_window" not in held_up][:1]
    parts += [e.text for e in events if e.cause == "ecn" and e.text][:1]
    if d["pauses"]["count"]:
        # captured elsewhere, the pause may also be the path's
        seen = "paused" if d["positions"] == ["at_client"] else "passed_between"
        parts.append(say(seen, pause_ms=d["pauses"]["median_ms"], n=d["pauses"]["count"]))
    return parts


def _not(d: Overall, skip: tuple[str, ...]) -> Lines:
    """The lines about causes that were examined and excluded, with their share, and about losses."""
    total = d["total_ms"] or 1.0
    spent_ms: dict[str, float] = {}
    for c in d["causes"]:
        spent_ms[c["cause"]] = spent_ms.get(c["cause"], 0.0) + c["total_ms"]
    parts = []
    for name in ("network", *PROGRAMS):
        share = spent_ms.get(name, 0.0) / total
        if name not in skip and share < show.MAX_EXCLUDED_SHARE:
            parts.append(say(f"not_{name}", part_share=share))
    repair = sum(spent_ms.get(name, 0.0) for name in cause_names(trait="repair"))
    if not d["lost"] and not repair:
        parts.append(say("not_losses"))
    lines: Lines = [(1, line("not", say("and_more").join(parts)))] if parts else []
    is_named = any(f["family"] == "loss" and f["share"] >= show.MIN_NEXT_SHARE for f in d["families"])
    if d["lost"] and not is_named and "doubles" not in {c.check for c in d["quality"]}:
        sentence = "lost_repaired" if repair else "lost_unnoticed"
        lines.append((1, line("lost", say(sentence, n=d["lost"], repair_share=repair / total))))
    return lines


def _options(d: Overall, sender: str, receiver: str) -> str:
    """The line about the sender's TCP_NODELAY and the receiver's delayed ACKs, with the observations for both."""
    row, pool = d["findings"][0], d["senders"][receiver]
    receiver_nodelay = {"nagle": "off", "nodelay": "on"}.get(pool.verdict, "unknown")
    return line("options", say(
        "options_no_choice" if receiver_nodelay == "unknown" and not pool.opportunities else "options",
        sender=sender, receiver=receiver, nodelay=row.nodelay, delayed_ack=row.delayed_ack, back=receiver_nodelay,
        seen=say(
            f"seen_{row.nodelay}", on=row.nodelay_seen_on, off=row.nodelay_seen_off, n=row.nodelay_streams_off,
            of=row.nodelay_streams_on + row.nodelay_streams_off,
        ),
    ))  # fmt: skip


def _sure_stall(d: Overall, pool: Pool) -> str:
    """The line with the grade of a stall: how soon ACKs released segments, and whether gaps follow the ACKs."""
    parts, release_ms, found = [grade_and_confidence(d["confidence"])], pool.release_p95_ms, d["findings"][0]
    if release_ms is not None:
        which = say("freed_one") if pool.held == 1 else say("freed_most", n=pool.held)
        if pool.tight_ms is not None and release_ms > pool.tight_ms and pool.tight:
            release_ms, which = pool.tight_ms, say("freed_tight", n=pool.tight, of=pool.held)
        is_distant = (pool.sender_rtt_ms or 0.0) > show.MIN_PATH_OF_RELEASE * release_ms
        parts = [say("freed_far" if is_distant else "freed", grade=parts[0], which=which, left_us=release_ms * 1000)]
    if pool.slope is not None and abs(pool.slope - 1) < show.MAX_SLOPE_ERROR:
        parts.append(say("gaps_follow", slope=pool.slope))
    if found.grade != "proven":
        parts.append(say("rival", rival=found.rival, lost=found.rival_lost))
    return line("sure?", joined(parts))


def _unknown(d: Overall, sender: str | None) -> Lines:
    """The line about time without a named cause."""
    unknown_ms = sum(c["total_ms"] for c in d["causes"] if c["cause"] in ("unknown", "capture_gap"))
    share = unknown_ms / d["total_ms"] if d["total_ms"] else 0.0
    is_listed = sender is None and any(name in _listed(d) for name in ("unknown", "capture_gap"))
    parts = [say("no_named_cause", part_share=share)] if share >= show.MIN_UNNAMED_SHARE and not is_listed else []
    if sender:
        parts.append(say("hidden_program", sender=sender))
    return [(2, line("unknown", joined(parts)))] if parts else []


def _push(found: Finding) -> Lines:
    """The lines below a headline about pushes that were held."""
    lines: Lines = [(0, line("see", say("see_push", seen=_frames(found), waited_ms=found.typical_ms or 0.0)))]
    if found.nodelay != "unknown":
        options = say("push_options", sender=found.sender, holder=found.held_by, nodelay=found.nodelay,
                      delayed_ack=found.delayed_ack)  # fmt: skip
        lines.append((1, line("options", options)))
    # the gain is the wait itself, from the 10th to the 90th percentile; at best, if it is only probable
    low, high = found.p10_ms or 0.0, found.p90_ms or 0.0
    sooner = say("sooner", sooner_ms=(low, high)) if found.grade == "proven" else say("sooner_at_best", best_ms=high)
    return [
        *lines, (0, line("fix", found.fix or "")), (0, line("gain", sooner)),
        (0, line("sure?", grade_and_confidence(found.confidence))),
    ]  # fmt: skip


def _pushes(d: Overall) -> Lines:
    """The lines about held pushes that are not the headline."""
    rows = [e for e in d["events"] if e.kind == "push" and not headline.has_sentence(d, e)]
    return [
        (
            0,
            line(
                "pushes",
                say("push_line", text=e.text, grade=grade_and_confidence(e.confidence), seen=_frames(e), fix=e.fix),
            ),
        )
        for e in rows[: show.MAX_PUSHES]
    ]


def _frames(found: Finding) -> str:
    return say("see_stream", frames=_chain(found.typical_frames), stream=found.typical_stream)


def one_exchange(d: OneExchange) -> str:
    """Write the answer for one exchange: its pieces in order of time; the shortest ones are summed up."""
    target = d["target"]
    name = f"{requested(d['method'], None if target is None else _short(target))} {d['status'] or ''}".strip()
    head = say("exchange", exchange=f"{d['exchange']}", stream=d["stream"], index=f"{d['index']}")
    if name:
        head = say("of_server", server=head, text=name)
    if not d["complete"]:
        head = joined([head, say("not_complete", cut_by=d["cut_by"])])
    total = sum(c["duration_ms"] for c in d["causes"])
    last = d["response_last_frame"]
    end = say("exchange_end") if last is None else f"{last}"
    lines = [head, "  " + say("exchange_took", took_ms=total, first=f"{d['request_first_frame']}", last=end)]
    max_pieces = show.MAX_LINES - len(lines) - 1
    shown = sorted(range(len(d["causes"])), key=lambda i: -d["causes"][i]["duration_ms"])[:max_pieces]
    for i in sorted(shown):
        c = d["causes"][i]
        cause = say("cause_inside", cause=c["cause"], parent=c["parent"]) if c["parent"] else c["cause"]
        frames = say("piece_frames", frames=" > ".join(map(str, c["evidence"])), rule=c["rule"],
                     grade=grade_and_confidence(c["confidence"]))  # fmt: skip
        lines.append(f"  {ms(c['duration_ms']):>9} ms  {cause:27} {c['owner']:8} {frames}")
    if len(shown) < len(d["causes"]):
        rest = [c["duration_ms"] for i, c in enumerate(d["causes"]) if i not in shown]
        lines.append(f"  {ms(sum(rest)):>9} ms  {say('shorter_pieces', n=len(rest))}")
    return "\n".join(lines)


def _short(target: str) -> str:
    """A request's target for a terminal: cut, and without control characters."""
    safe = printable(target)
    return safe if len(safe) <= show.MAX_NAME_LETTERS else safe[: show.MAX_NAME_LETTERS - 1] + "…"


MAX_PARAGRAPH_FINDINGS = 3
"""Upper bound on the findings in an owner's paragraph."""
_ENDPOINTS = ("server", "client")
"""Owners that are an end of the connection; they have one paragraph per server."""


def paragraphs(d: Overall, first_line: str) -> list[str]:
    """Write one paragraph for each owner, the headline's first; owners without a wait have none."""
    lead = d["lead"] or headline.pushed(d)
    if lead is None and d["findings"]:
        lead = headline.late_request(d) or (d["findings"][0] if d["slow"]["count"] else None)
    first = [] if lead is None else [lead]
    # if another kind of finding leads, the causes of requests are parts of it
    parts = d["findings"] if lead is None or lead.kind == "latency" else []
    rows = [*first, *(row for row in [*parts, *d["events"]] if row is not lead)]
    by_owner: dict[tuple[str, str], list[Finding]] = {}
    for row in rows:
        if row is lead or _is_reported(row, d):
            end = endpoint(row.server, row.server_port) if row.owner in _ENDPOINTS and row.server else ""
            by_owner.setdefault((row.owner, end), []).append(row)
    found = ["\n".join(_paragraph(d, owner, end, of, lead, first_line)) for (owner, end), of in by_owner.items()]
    return found or [first_line]


def _is_reported(row: Finding, d: Overall) -> bool:
    """Whether users waited for it longer than the threshold, and its cause is known."""
    if row.grade in ("harmless", "unknown") or row.owner in ("capture", "unknown"):
        return False
    if row.kind != "latency":
        return row.harm is not None
    return bool((row.share or 0.0) >= show.MIN_NEXT_SHARE and (row.max_ms or 0.0) >= d["slow"]["limit_ms"])


def _paragraph(
    d: Overall, owner: str, end: str, rows: list[Finding], lead: Finding | None, first_line: str
) -> list[str]:
    """The lines of one owner's paragraph."""
    lines = [say("for_owner_of" if end else "for_owner", owner=owner, end=end)]
    for row in rows[:MAX_PARAGRAPH_FINDINGS]:
        what = first_line if row is lead else (words.sentence(row.text) if row.text else _took(row))
        frames = row.worst_frames or row.typical_frames
        lines.append(line("what", what))
        lines.append(
            line("proof", words.joined([grade_and_confidence(row.confidence), _evidence(frames), row.rival_lost or ""]))
        )
        if check := _check(d["file"], row, frames):
            lines.append(line("check", check))
        if row.fix:
            lines.append(line("fix", row.fix))
    return lines


def _took(row: Finding) -> str:
    """Words for the time that a cause took of the requests."""
    return say(
        "owner_took", cause=row.cause, all_ms=row.total_ms or 0.0, n=row.exchanges or 0, of=row.of_exchanges or 0,
        median_ms=row.median_ms or 0.0, max_ms=row.max_ms or 0.0,
    )  # fmt: skip


def _evidence(frames: tuple[int, ...]) -> str:
    return say("see", frames=" > ".join(map(str, dict.fromkeys(frames)))) if frames else ""


def _check(file: str, row: Finding, frames: tuple[int, ...]) -> str:
    """A shell command that shows the evidence, for the folder of the capture."""
    name = shlex.quote(file)
    if row.typical_exchange is not None:
        return say("check_flow", file=name, exchange=row.typical_exchange)
    frame_filter = row.filter or (f"frame.number in {{{', '.join(map(str, dict.fromkeys(frames)))}}}" if frames else "")
    return say("check_frames", file=name, filter=shlex.quote(frame_filter)) if frame_filter else ""
