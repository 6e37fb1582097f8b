"""Which lines has an answer? The numbers of `Why.to_dict()` in, at most 15 lines of text out.

Nothing is computed here that is not in the numbers: whoever reads the JSON can check every line. The sentences stand in
the catalogue (`latpcap/words`).
"""

from __future__ import annotations

import shlex

from latpcap import presentation as show
from latpcap import words
from latpcap.answers import headline, traffic
from latpcap.answers.types import OneExchange, Overall, Row, Typical
from latpcap.findings import lookups
from latpcap.findings.schema import Finding, graded
from latpcap.findings.socket_options import Pool
from latpcap.format import escaped, ms, printable, requested
from latpcap.user_waits.cause_totals import endpoint
from latpcap.vocabulary import PROGRAMS, SIDES, STALL, cause_names
from latpcap.words import joined, line, say

Lines = list[tuple[int, str]]
"""Lines, each with its number: where they are too many, those with the highest are left out."""


def overall(d: Overall) -> str:
    """The answer for a capture or a stream."""
    lines: Lines = [(0, d["headline"]), *(_no_exchanges(d) if "server" not in d else _judged(d))]
    if d["dns"] is not None:
        late = any(found.owner == "dns" for found in d["events"])
        lines.append((1 if lookups.matters(d["dns"]) else 2, line("dns", lookups.line(d["dns"], late))))
    limits = [c.text for c in d["quality"] if c.most < 1 or c.check in _WORTH_A_LINE]
    lines += [(0, line("capture", sentence)) for sentence in limits[:2] if sentence not in d["headline"]]
    lines += [(1, line("damaged", sentence)) for sentence in d["damage"][:2]]
    added = [
        line(label, sentence)
        for label, source in (("process", "processes"), ("strace", "strace"), ("log", "access_log"))
        for one in d.get("beside", [])
        if one["source"] == source
        for sentence in one["text"]
    ]
    return "\n".join([_first_line(d), *_kept(lines), *added])


def _judged(d: Overall) -> Lines:
    """The lines of an answer about requests, by what takes most of their time."""
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
    """What stands behind a headline that is a finding's own: its frames, its fix, and how sure it is."""
    lines: Lines = []
    if found.worst_frames:
        where = "see" if found.worst_stream is None else "see_stream"
        lines.append((0, line("see", say(where, frames=_chain(found.worst_frames), stream=found.worst_stream))))
    if found.fix:
        lines.append((0, line("fix", found.fix)))
    return [*lines, (0, _sure(graded(found.confidence), found))]


def _chain(frames: tuple[int, ...] | list[int]) -> str:
    return " > ".join(map(str, dict.fromkeys(frames)))


def _sure(grade: str, found: Finding | None) -> str:
    """How sure it is, and which rival is left."""
    if found is None or not found.rival:
        return line("sure?", grade)
    return line("sure?", say("sure_rival", grade=grade, rival=found.rival, lost=found.rival_lost))


_WORTH_A_LINE = ("one_direction", "capture_gap", "doubles", "unseen_frames", "clock_ahead", "merged")
"""Limits of the capture that have a line even where they change no confidence."""


def _kept(lines: Lines) -> list[str]:
    """The lines in their order; where they are too many, those of the highest number are left out, the last first."""
    room = show.MAX_LINES - 1
    order = sorted(range(len(lines)), key=lambda i: (lines[i][0], i))
    return [lines[i][1] for i in sorted(order[:room])]


def _first_line(d: Overall) -> str:
    """What the capture is; it may last for days where captures were joined."""
    days, where = d["seconds"] / 86_400, d["positions"]
    return say(
        "first_line" if d["filter"] is None else "first_line_filtered",
        file=escaped(d["file"]), filter=printable(d["filter"] or ""), frames=d["frames"], streams=d["streams"],
        exchanges=d["exchanges"],
        span=say("span", seconds=d["seconds"]) if days < 2 else say("span_days", days=days),
        place=say(f"captured_{where[0]}") if where in (["at_client"], ["at_server"]) else "",
    )  # fmt: skip


def _no_exchanges(d: Overall) -> Lines:
    lines = _lead(d["lead"]) if d["lead"] is not None else []
    if not d["streams"]:
        for row in d["skipped"][:3]:
            lines.append((1, line("skipped", say("skipped", n=row["frames"], of=d["frames"], reason=row["reason"]))))
        if d["pings"]:
            lines.append((2, line("probes", say("pings_in_probes", n=d["pings"]))))
        return lines
    plain = headline.nothing_judged(d)
    if plain != d["headline"]:
        lines.append((0, line("requests", words.inside(plain))))
    mute = [e for e in d["events"] if e.kind == "silence"]
    lines += [(0, line("silent", e.text or "")) for e in mute[:2] if not headline.has_sentence(d, e)]
    floods = [e for e in d["events"] if e.cause == "syn_flood"]
    lines += [(0, line("flood", _at(e))) for e in floods if e.text and e.text not in d["headline"]]
    lead = headline.pushed(d)
    lines += _push(lead) if lead is not None and headline.has_sentence(d, lead) else _pushes(d)
    rest = [e for e in d["events"] if e.kind in ("connection", "one_way", "setup") and e not in floods]
    rest = [
        e
        for e in rest
        if not headline.has_sentence(d, e) and not (d["capture_kind"] == "scan" and e.kind == "connection")
    ]
    return lines + [(2, line(graded(e.confidence).split()[0], e.text or "")) for e in rest[:4]]


def _end(row: Finding) -> str:
    return endpoint(row.server, row.server_port)


def _at(row: Finding) -> str:
    """A finding's sentence behind its server's name."""
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
    """The servers besides the first: as many as `servers` wants; or those behind it, the slow ones, the worst first,
    and how many others there are.
    """
    rows = d["servers"][1:]
    if d["shown"]:
        return [(0, line("further", _server(row))) for row in rows[: d["shown"] - 1]]
    legs = [row for row in rows if row["behind"] == d["server"]][: show.MAX_LEGS]
    lines: Lines = [(0, line("behind", _server({**row, "behind": None}))) for row in legs]
    slow = [row for row in rows if row["slow"] and row not in legs][: show.MAX_SLOW_SERVERS - 1]
    lines += [(1, line("slow", _server(row))) for row in slow]
    rest = [row for row in rows if row not in legs and row not in slow]
    if rest:
        late, top = sum(row["slow"] for row in rest), min(len(d["servers"]), 10)
        further = say("further_slow" if late else "further_quick", n=len(rest), slow=late, top=top)
        lines.append((1, line("further", further)))
    return lines


def _server(row: Row) -> str:
    """A server of the list in a line."""
    return say(
        "server_line",
        server=row["server"], n=row["slow"], of=row["requests"], p50_ms=row["p50_ms"], p99_ms=row["p99_ms"],
        behind=say("server_behind", server=row["behind"]) if row["behind"] else "",
        family=say("server_family", family=row["family"], grade=row["grade"]) if row["family"] else "",
    )  # fmt: skip


def _families(d: Overall) -> Lines:
    """What takes the time of the slow requests, family by family, and of which causes each is made."""
    lines: Lines = []
    time = ("slow_time" if headline.waited_for(d) else "all_time") + ("_waited" if d["slow"]["streams"] else "")
    for place, row in enumerate(d["families"][: show.MAX_FAMILIES]):
        if place and row["share"] < show.MIN_NEXT_SHARE:
            continue
        causes = [
            f"{name} {ms(spent)}"
            for name, spent in row["causes"].items()
            if spent >= show.MIN_UNNAMED_SHARE * row["ms"]
        ]
        text = say(time, part_share=row["share"], causes=", ".join(causes))
        lost = say("segments_lost", n=d["lost"]) if row["family"] == "loss" and d["lost"] else ""
        lines.append((1, line(row["family"], joined([text, lost]))))
    return lines


def _listed(d: Overall) -> list[str]:
    """The causes whose families have a line of their own."""
    rows = d["families"][: show.MAX_FAMILIES]
    return [cause for row in rows if row is rows[0] or row["share"] >= show.MIN_NEXT_SHARE for cause in row["causes"]]


def _queue(d: Overall) -> Lines:
    """Whom the requests waited for at the server."""
    return [(1, line("queue", e.text or "")) for e in d["events"] if e.kind == "queue" and _end(e) == d["server"]]


def _share(d: Overall) -> str:
    p50, p99 = d["share"]["p50"], d["share"]["p99"]
    kind = "turns" if traffic.turns(d["traffic"]) else "requests"
    return line("share", say(
        "share_of", p50_ms=p50["ms"], of_p50_ms=p50["of_ms"], p50_share=p50["share"], p99_ms=p99["ms"],
        of_p99_ms=p99["of_ms"], p99_share=p99["share"], n=d["hit"], many=say(kind, n=d["complete"]),
    ))  # fmt: skip


def _stall(d: Overall) -> Lines:
    t, found = d["typical"], d["findings"][0]
    sender, receiver = d["owners"]["nagle"], d["owners"]["delayed_ack"]
    pool = d["senders"][sender]
    lines = [*_opening(d), (0, _latency(d)), (0, _share(d))]
    round_trips = (pool.sender_rtt_ms or 0.0) + (pool.receiver_rtt_ms or 0.0)
    path = say("path_of_wait", path_ms=round_trips) if round_trips > show.MIN_PATH_OF_WAIT * t["ms"] else ""
    if "bytes" in t:
        first, second = t["bytes"]
        lines.append((0, line(sender, joined([say("nagle_waits", first=first, second=second), path]))))
    if pool.hold_min_ms is not None and pool.hold_max_ms is not None and pool.hold_median_ms is not None:
        low, high = f"{pool.hold_min_ms:.1f}", f"{pool.hold_max_ms:.1f}"
        held = say("held" if low == high else "held_range", low=low, high=high, median=pool.hold_median_ms)
        lines.append((0, line(receiver, joined([held, _timer(found)]))))
    if "bytes" in t:
        seen = say("see_stall", frames=" > ".join(map(str, t["frames"])), stream=t["stream"],
                   ack=t["ack_after_ms"], release_us=t["release_us"])  # fmt: skip
        lines.append((0, line("see", seen)))
    lines += _not(d, skip=("nagle", "delayed_ack", *(("network",) if path else ())))
    lines.append((1, _options(d, sender, receiver)))
    if d["fix"]:
        lines.append((0, line("fix", d["fix"])))
    return [
        *lines, *_gain(d), (0, _sure_stall(d, pool)), *_next(d), *_unknown(d, sender), *_servers(d), *_also(d),
    ]  # fmt: skip


def _timer(found: Finding) -> str:
    """What the receiver's timer is, as far as its holds say."""
    if found.timer_ms is None:
        if not found.tick_ms:
            return ""
        return say("timer_tick", tick=found.tick_ms)
    tick = say("on_tick", tick=found.tick_ms) if found.tick_ms else ""
    whose = say("timer_of", system=found.os_hint.partition(" (")[0]) if found.os_hint else ""
    return say("timer_fitted", timer=found.timer_ms, tick=tick, whose=whose)


def _other(d: Overall) -> Lines:
    found, t, late = d["findings"][0], d["typical"], headline.late_request(d)
    known = found.grade != "unknown" or found.cause in ("unknown", "capture_gap")
    lines = [*_opening(d), (0, _latency(d)), *(_families(d) if known else []), *_queue(d)]
    if t["frames"] and known:
        place = "see_behind" if "backend" in d else "see_cause"
        server = d["backend"]["server"] if "backend" in d else ""
        seen = say(place, frames=_chain(t["frames"]), stream=t["stream"], server=server, cause=found.cause,
                   time=_shown(t))  # fmt: skip
        lines.append((0, line("see", seen)))
    lines += _slowest(d)
    lines += _not(d, skip=(*(row.cause for row in d["findings"][:3]), *_listed(d)))
    if d["fix"]:
        lines.append((0, line("fix", d["fix"])))
    lines += _gain(d)
    grade = say("grade_unknown") if found.grade == "unknown" else graded(d["confidence"])
    lines.append((0, _sure(grade, found) if late is None else _sure(graded(late.confidence), None)))
    return [*lines, *_unknown(d, None), *_servers(d), *_also(d)]


def _opening(d: Overall) -> Lines:
    """What was requested; and the requests' own sentence behind a headline that is about something else."""
    lines: Lines = [(1, line("traffic", traffic.line(d["traffic"])))]
    plain, lead = headline.of_requests(d), d["lead"]
    here = lead is not None and lead.kind == "transfer" and _end(lead) == d["server"]
    measured = headline.queued(d) is not None  # then `plain` has what the queue cost
    if lead is not None and lead.sentence == "transfer_bloat" and d["slow"]["in_queue"] and not measured:
        count, of, during = d["slow"]["count"], d["slow"]["of"], d["slow"]["in_queue"]
        plain = words.sentence(say("slow_in_queue", server=d["server"], n=count, of=of, during=during))
    elsewhere = lead is not None and lead.sentence in headline.ELSEWHERE
    if here or elsewhere or plain == d["headline"]:  # what limits a transfer is what its request waited for
        return lines
    return [(0, line("requests", words.inside(plain))), *lines]


def _shown(t: Typical) -> str:
    """How much time do these frames show? They are those of the longest piece."""
    if t["pieces"] == 1 or t["longest_ms"] > show.SAME_SHARE * t["ms"]:
        return say("all_pieces", all_ms=t["ms"])
    return say("longest_piece", longest_ms=t["longest_ms"], n=t["pieces"], all_ms=t["ms"])


def _slowest(d: Overall) -> Lines:
    """The slowest request by its name, with its frames."""
    worst = d["slow"]["worst"]
    if worst is None:
        return []
    known = worst["cause"] and d["findings"][0].grade != "unknown"
    return [(0, line("slowest", say(
        "slowest",
        name=worst["name"], took_ms=worst["latency_ms"], stream=worst["stream"],
        frames=" > ".join(map(str, worst["frames"])),
        why=say("slowest_cause", part_ms=worst["cause_ms"], cause=worst["cause"]) if known else "",
    )))]  # fmt: skip


def _gain(d: Overall) -> Lines:
    """What the fix would be worth, as a range, and what the limit is then."""
    row, now = d["findings"][0], d["p50_ms"]
    low, high, limit = row.gain_p50_low_ms, row.gain_p50_high_ms, row.gain_limit
    if not d["fix"] or low is None or row.fix_side is None:
        return []
    if d["share"]["p50"]["share"] < show.MIN_P50_SHARE:  # the usual ones have none of it to lose
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
    """The findings behind the first, in a line."""
    rows = [r for r in d["findings"][1:4] if r.share >= show.MIN_NEXT_SHARE]
    if not rows:
        return []
    parts = [
        say("next_there" if _there(d, r) else "next", cause=r.cause, owner=r.owner, part_share=r.share) for r in rows
    ]
    return [(1, line("next", say("and_more").join(parts)))]


def _there(d: Overall, row: Finding) -> bool:
    """A stall of the other side as well: the same option mends it there."""
    return row.cause == STALL and d["verdict"] == STALL and row.owner == SIDES.get(d["owners"]["nagle"])


_ENDS = ("unanswered", "unreachable", "traceroute", "refused", "reset", "half_open")


def _also(d: Overall) -> Lines:
    """What is there and does not matter, or matters elsewhere."""
    events = d["events"]
    late = headline.late_request(d)
    idle = [e for e in events if e.kind == "setup" and (e.max_ms or 0.0) > d["p50_ms"] and _end(e) == d["server"]]
    mute = [e for e in events if e.kind == "silence" and not headline.has_sentence(d, e)]
    waits = [e for e in events if e.kind == "wait" and e is not d["lead"] and e is not headline.queued(d)]
    waits.sort(key=headline.harm_of, reverse=True)
    moved = [e for e in events if e.kind == "transfer" and e is not d["lead"]]
    also = joined(_remarks(d))
    return [
        *_pushes(d),
        *[(1, line("suspected", _at(e))) for e in events if e.kind == "one_way"][:1],
        *((0, line("flood", _at(e))) for e in events if e.cause == "syn_flood"),
        *((0, line("silent", e.text or "")) for e in mute[:2]),
        *((0, line("waited", e.text or "")) for e in waits[:2]),
        *((1, line("transfer", e.text or "")) for e in moved[:2]),
        *((0, line("before", say("on_stream", text=e.text, stream=e.worst_stream))) for e in idle[:1] if late is None),
        *([(1, line("also", also))] if also else []),
    ]


def _remarks(d: Overall) -> list[str]:
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
    for cause in _ENDS:
        rows = [e for e in events if e.cause == cause]
        number = sum(e.streams or 0 for e in rows)
        if number:
            parts.append(say(f"also_{cause}", n=number, whose=headline.servers_of(d, rows)))
    held_up = {cause for family in d["families"] for cause in family["causes"]}
    held_up |= {e.cause for e in events if e.kind == "wait"}
    parts += [e.text for e in events if e.cause == "zero_window" and e.text and "zero_window" not in held_up][:1]
    parts += [e.text for e in events if e.cause == "ecn" and e.text][:1]
    if d["pauses"]["count"]:
        # elsewhere the path may have held up what follows
        seen = "paused" if d["positions"] == ["at_client"] else "passed_between"
        parts.append(say(seen, pause_ms=d["pauses"]["median_ms"], n=d["pauses"]["count"]))
    return parts


def _not(d: Overall, skip: tuple[str, ...]) -> Lines:
    """What was looked at and is not the reason, with its share."""
    total = d["total_ms"] or 1.0
    spent: dict[str, float] = {}
    for c in d["causes"]:
        spent[c["cause"]] = spent.get(c["cause"], 0.0) + c["total_ms"]
    parts = []
    for name in ("network", *PROGRAMS):
        share = spent.get(name, 0.0) / total
        if name not in skip and share < show.MAX_EXCLUDED_SHARE:
            parts.append(say(f"not_{name}", part_share=share))
    repair = sum(spent.get(name, 0.0) for name in cause_names(trait="repair"))
    if not d["lost"] and not repair:
        parts.append(say("not_losses"))
    lines: Lines = [(1, line("not", say("and_more").join(parts)))] if parts else []
    named = any(f["family"] == "loss" and f["share"] >= show.MIN_NEXT_SHARE for f in d["families"])
    if d["lost"] and not named and "doubles" not in {c.check for c in d["quality"]}:
        how = "lost_repaired" if repair else "lost_unnoticed"
        lines.append((1, line("lost", say(how, n=d["lost"], repair_share=repair / total))))
    return lines


def _options(d: Overall, sender: str, receiver: str) -> str:
    """The sender's TCP_NODELAY and the receiver's delayed ACK, with what was counted for and against."""
    row, pool = d["findings"][0], d["senders"][receiver]
    back = {"nagle": "off", "nodelay": "on"}.get(pool.verdict, "unknown")
    return line("options", say(
        "options_no_choice" if back == "unknown" and not pool.opportunities else "options",
        sender=sender, receiver=receiver, nodelay=row.nodelay, delayed_ack=row.delayed_ack, back=back,
        seen=say(
            f"seen_{row.nodelay}", on=row.nodelay_seen_on, off=row.nodelay_seen_off, n=row.nodelay_streams_off,
            of=row.nodelay_streams_on + row.nodelay_streams_off,
        ),
    ))  # fmt: skip


def _sure_stall(d: Overall, pool: Pool) -> str:
    parts, left, found = [graded(d["confidence"])], pool.release_p95_ms, d["findings"][0]
    if left is not None:
        which = say("freed_one") if pool.held == 1 else say("freed_most", n=pool.held)
        if pool.tight_ms is not None and left > pool.tight_ms and pool.tight:
            left, which = pool.tight_ms, say("freed_tight", n=pool.tight, of=pool.held)
        far = (pool.sender_rtt_ms or 0.0) > show.MIN_PATH_OF_RELEASE * left
        parts = [say("freed_far" if far else "freed", grade=parts[0], which=which, left_us=left * 1000)]
    if pool.slope is not None and abs(pool.slope - 1) < show.MAX_SLOPE_ERROR:
        parts.append(say("gaps_follow", slope=pool.slope))
    if found.grade != "proven":
        parts.append(say("rival", rival=found.rival, lost=found.rival_lost))
    return line("sure?", joined(parts))


def _unknown(d: Overall, sender: str | None) -> Lines:
    spent = sum(c["total_ms"] for c in d["causes"] if c["cause"] in ("unknown", "capture_gap"))
    share = spent / d["total_ms"] if d["total_ms"] else 0.0
    listed = sender is None and any(name in _listed(d) for name in ("unknown", "capture_gap"))
    parts = [say("no_named_cause", part_share=share)] if share >= show.MIN_UNNAMED_SHARE and not listed else []
    if sender:
        parts.append(say("hidden_program", sender=sender))
    return [(2, line("unknown", joined(parts)))] if parts else []


def _push(found: Finding) -> Lines:
    """What stands behind a headline about unsolicited messages that waited."""
    lines: Lines = [(0, line("see", say("see_push", seen=_frames(found), waited_ms=found.typical_ms or 0.0)))]
    if found.nodelay != "unknown":
        options = say("push_options", sender=found.sender, holder=found.held_by, nodelay=found.nodelay,
                      delayed_ack=found.delayed_ack)  # fmt: skip
        lines.append((1, line("options", options)))
    # as long as each waited, of eight in ten; where that is only probable, at best
    low, high = found.p10_ms or 0.0, found.p90_ms or 0.0
    sooner = say("sooner", sooner_ms=(low, high)) if found.grade == "proven" else say("sooner_at_best", best_ms=high)
    return [
        *lines, (0, line("fix", found.fix or "")), (0, line("gain", sooner)),
        (0, line("sure?", graded(found.confidence))),
    ]  # fmt: skip


def _pushes(d: Overall) -> Lines:
    """Unsolicited messages that waited, of which the headline does not speak."""
    rows = [e for e in d["events"] if e.kind == "push" and not headline.has_sentence(d, e)]
    return [
        (0, line("pushes", say("push_line", text=e.text, grade=graded(e.confidence), seen=_frames(e), fix=e.fix)))
        for e in rows[: show.MAX_PUSHES]
    ]


def _frames(found: Finding) -> str:
    return say("see_stream", frames=_chain(found.typical_frames), stream=found.typical_stream)


def one_exchange(d: OneExchange) -> str:
    """The answer for one exchange: its pieces in order of time, small ones put together."""
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
    room = show.MAX_LINES - len(lines) - 1
    shown = sorted(range(len(d["causes"])), key=lambda i: -d["causes"][i]["duration_ms"])[:room]
    for i in sorted(shown):
        c = d["causes"][i]
        cause = say("cause_inside", cause=c["cause"], parent=c["parent"]) if c["parent"] else c["cause"]
        frames = say("piece_frames", frames=" > ".join(map(str, c["evidence"])), rule=c["rule"],
                     grade=graded(c["confidence"]))  # fmt: skip
        lines.append(f"  {ms(c['duration_ms']):>9} ms  {cause:27} {c['owner']:8} {frames}")
    if len(shown) < len(d["causes"]):
        rest = [c["duration_ms"] for i, c in enumerate(d["causes"]) if i not in shown]
        lines.append(f"  {ms(sum(rest)):>9} ms  {say('shorter_pieces', n=len(rest))}")
    return "\n".join(lines)


def _short(target: str) -> str:
    """A request's target as it may stand on a terminal: cut, and without what would write there by itself."""
    safe = printable(target)
    return safe if len(safe) <= show.MAX_NAME_LETTERS else safe[: show.MAX_NAME_LETTERS - 1] + "…"


_EACH = 3
"""Findings in a paragraph, the worst first."""
_OURS = ("server", "client")
"""Owners who are an end of the connection: each server has a paragraph of its own."""


def paragraphs(d: Overall, first_line: str) -> list[str]:
    """A paragraph for each owner of this answer, the one of the headline first; what nobody waited for has none."""
    lead = d["lead"] or headline.pushed(d)
    if lead is None and d["findings"]:
        lead = headline.late_request(d) or (d["findings"][0] if d["slow"]["count"] else None)
    first = [] if lead is None else [lead]
    parts = d["findings"] if lead is None or lead.kind == "latency" else []  # else they are parts of what leads
    rows = [*first, *(row for row in [*parts, *d["events"]] if row is not lead)]
    teams: dict[tuple[str, str], list[Finding]] = {}
    for row in rows:
        if row is lead or _waited(row, d):
            end = endpoint(row.server, row.server_port) if row.owner in _OURS and row.server else ""
            teams.setdefault((row.owner, end), []).append(row)
    found = ["\n".join(_paragraph(d, owner, end, of, lead, first_line)) for (owner, end), of in teams.items()]
    return found or [first_line]


def _waited(row: Finding, d: Overall) -> bool:
    """Did somebody wait for it, longer than what is called slow, and is it known for what?"""
    if row.grade in ("harmless", "unknown") or row.owner in ("capture", "unknown"):
        return False
    if row.kind != "latency":
        return row.harm is not None
    return bool((row.share or 0.0) >= show.MIN_NEXT_SHARE and (row.max_ms or 0.0) >= d["slow"]["limit_ms"])


def _paragraph(
    d: Overall, owner: str, end: str, rows: list[Finding], lead: Finding | None, first_line: str
) -> list[str]:
    lines = [say("for_owner_of" if end else "for_owner", owner=owner, end=end)]
    for row in rows[:_EACH]:
        what = first_line if row is lead else (words.sentence(row.text) if row.text else _took(row))
        frames = row.worst_frames or row.typical_frames
        lines.append(line("what", what))
        lines.append(line("proof", words.joined([graded(row.confidence), _evidence(frames), row.rival_lost or ""])))
        if check := _check(d["file"], row, frames):
            lines.append(line("check", check))
        if row.fix:
            lines.append(line("fix", row.fix))
    return lines


def _took(row: Finding) -> str:
    """What a finding about requests took of them."""
    return say(
        "owner_took", cause=row.cause, all_ms=row.total_ms or 0.0, n=row.exchanges or 0, of=row.of_exchanges or 0,
        median_ms=row.median_ms or 0.0, max_ms=row.max_ms or 0.0,
    )  # fmt: skip


def _evidence(frames: tuple[int, ...]) -> str:
    return say("see", frames=" > ".join(map(str, dict.fromkeys(frames)))) if frames else ""


def _check(file: str, row: Finding, frames: tuple[int, ...]) -> str:
    """A command that shows it, to be pasted where the capture lies."""
    name = shlex.quote(file)
    if row.typical_exchange is not None:
        return say("check_flow", file=name, exchange=row.typical_exchange)
    chosen = row.filter or (f"frame.number in {{{', '.join(map(str, dict.fromkeys(frames)))}}}" if frames else "")
    return say("check_frames", file=name, filter=shlex.quote(chosen)) if chosen else ""
