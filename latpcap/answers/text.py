"""The text of an answer: reads an `Overall` or `OneExchange`, returns at most 15 lines, then those of traces and logs.

Every number in the text is in `Why.to_dict()`, so that each line can be checked. The sentences are in `latpcap/words`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from latpcap import presentation as show
from latpcap import words
from latpcap.answers import headline, traffic
from latpcap.answers.types import (
    Facts,
    Judged,
    NoRequests,
    OneExchange,
    Overall,
    RequestFacts,
    Row,
    Typical,
    WithRequests,
)
from latpcap.findings import lookups, socket_options
from latpcap.findings.schema import Finding, grade_and_confidence
from latpcap.findings.socket_options import Pool
from latpcap.format import escaped, ms, printable, requested
from latpcap.vocabulary import SIDES, STALL, cause_names, grade_of
from latpcap.words import joined, say


class Keep(IntEnum):
    """Which lines of an answer are kept if there are too many: those with the lowest number first."""

    ALWAYS = 0
    IF_ROOM = 1
    LAST = 2


class Line(NamedTuple):
    """A line below the headline of an answer."""

    label: str
    """The word before its sentence, not translated; "" for a line without one."""
    text: str
    hint: str = ""
    """The option of the command line that shows more; a page leaves it out."""
    keep: Keep = Keep.ALWAYS

    def __str__(self) -> str:
        sentence = f"{self.text}{self.hint}"
        return words.line(self.label, sentence) if self.label else f"  {sentence}"


@dataclass(frozen=True)
class Text:
    """An answer in words; `title` names what it is about. One exchange has no headline."""

    title: str
    headline: str
    lines: Sequence[Line]

    @property
    def below_title(self) -> str:
        """The headline and the lines below it."""
        return "\n".join([*filter(None, [self.headline]), *map(str, self.lines)])

    def mapped(self, change: Callable[[str], str]) -> Text:
        """Return the text with this change in title, headline and sentences."""
        lines = [line._replace(text=change(line.text)) for line in self.lines]
        return Text(change(self.title), change(self.headline), lines)

    def with_line(self, label: str, text: str) -> Text:
        """Return the text with one more line at its end."""
        return replace(self, lines=[*self.lines, Line(label, text)])

    def __str__(self) -> str:
        return f"{self.title}\n{self.below_title}"


_ALWAYS_REMARKED = ("one_direction", "capture_gap", "doubles", "unseen_frames", "clock_ahead", "merged")
"""Checks with a line even where they limit no confidence."""
_CAPTURED = {"at_client": "captured_at_client", "at_server": "captured_at_server"}
"""Sentences on where a capture was taken."""
_FAILED_CONNECTIONS = {
    "unanswered": "also_unanswered",
    "unreachable": "also_unreachable",
    "traceroute": "also_traceroute",
    "refused": "also_refused",
    "reset": "also_reset",
    "half_open": "also_half_open",
}
"""Sentences on connections that failed, by cause."""
_EXCLUDED = {"network": "not_network", "server_think": "not_server_think", "client_think": "not_client_think"}
"""Words for causes that took no notable time."""
_NODELAY_SEEN = {"on": "seen_on", "off": "seen_off", "mixed": "seen_mixed", "unknown": "seen_unknown"}
"""Words for the observations of TCP_NODELAY, by its state."""
_FAMILY_TIME = {
    (True, False): "slow_time",
    (True, True): "slow_time_waited",
    (False, False): "all_time",
    (False, True): "all_time_waited",
}
"""Words for a family's time: whether it is that of the slow requests, and whether streams of events are left out."""
MAX_PARAGRAPH_FINDINGS = 3
"""Upper bound on the findings in an owner's paragraph."""
_ENDPOINTS = ("server", "client")
"""Owners that are an end of the connection; they have one paragraph per server."""


def overall(answer: Overall) -> Text:
    """Write the answer for a capture or a stream."""
    facts, common = answer.facts, answer.facts.common
    body = _no_exchange_lines(answer, facts) if isinstance(facts, NoRequests) else _request_lines(answer, facts)
    lines = [*body]
    if common.dns is not None:
        has_dns_wait = any(finding.owner == "dns" for finding in common.other_findings)
        keep = Keep.IF_ROOM if lookups.matters(common.dns) else Keep.LAST
        lines.append(Line("dns", lookups.line(common.dns, has_dns_wait), keep=keep))
    checks = [check for check in common.quality if check.most < 1 or check.check in _ALWAYS_REMARKED]
    lines += [Line("capture", check.text) for check in checks[:2] if check not in answer.headline.checks]
    lines += [Line("damaged", sentence, keep=Keep.IF_ROOM) for sentence in common.head.damage[:2]]
    from_side_sources = [
        Line(label, sentence)
        for label, source in (("process", "processes"), ("strace", "strace"), ("log", "access_log"))
        for source_row in answer.beside
        if source_row["source"] == source
        for sentence in source_row["text"]
    ]
    return Text(_first_line(facts), answer.headline.text, [*_selected(lines), *from_side_sources])


def _request_lines(answer: Overall, facts: RequestFacts) -> list[Line]:
    """Return the lines of an answer with requests, by what is the headline."""
    requests, lead, push = facts.requests, answer.lead, answer.push_in_headline
    latency = _latency_line(requests)
    if lead is not None or push is not None:
        below = _lead_lines(lead) if lead is not None else _push_lines(push) if push is not None else []
        opening, other = _opening_lines(answer, facts), [*_server_lines(requests), *_also_lines(answer, facts)]
        return [*opening, latency, *below, *other]
    if not isinstance(facts, Judged):
        return [Line("traffic", traffic.line(requests.traffic), keep=Keep.IF_ROOM), latency, *_other_push_lines(answer)]
    is_stall = answer.verdict == STALL and facts.backend is None
    return _stall_lines(answer, facts) if is_stall else _other_lines(answer, facts)


def _lead_lines(finding: Finding) -> list[Line]:
    """Return the lines below a headline that is a finding's sentence: its frames, fix and grade."""
    lines: list[Line] = []
    if finding.worst_frames:
        sentence = "see" if finding.worst_stream is None else "see_stream"
        lines.append(Line("see", say(sentence, frames=_chain(finding.worst_frames), stream=finding.worst_stream)))
    if finding.fix:
        lines.append(Line("fix", finding.fix))
    return [*lines, _grade_line(grade_and_confidence(finding.confidence), finding)]


def _chain(frames: tuple[int, ...] | list[int]) -> str:
    return " > ".join(map(str, dict.fromkeys(frames)))


def _grade_line(grade: str, finding: Finding | None) -> Line:
    """Return the line with the grade, and with the rival explanation that is left."""
    if finding is None or not finding.rival:
        return Line("sure?", grade)
    return Line("sure?", say("sure_rival", grade=grade, rival=finding.rival, lost=finding.rival_lost))


def _selected(lines: list[Line]) -> list[Line]:
    """Return the lines that fit, in their order; lines of the highest number are left out first, from the end."""
    room = show.MAX_LINES - 2  # title and headline
    order = sorted(range(len(lines)), key=lambda i: (lines[i].keep, i))
    return [lines[i] for i in sorted(order[:room])]


def _first_line(facts: Facts) -> str:
    """Return the line with the capture's name, size and place. Joined captures may last for days."""
    head, positions = facts.common.head, facts.common.positions
    days = head.seconds / 86_400
    return say(
        "first_line" if head.filter is None else "first_line_filtered",
        file=escaped(head.file), filter=printable(head.filter or ""), frames=head.frames, streams=head.streams,
        exchanges=head.exchanges,
        span=say("span", seconds=head.seconds) if days < 2 else say("span_days", days=days),
        place=say(_CAPTURED[positions[0]]) if positions in (["at_client"], ["at_server"]) else "",
    )  # fmt: skip


def _no_exchange_lines(answer: Overall, facts: NoRequests) -> list[Line]:
    """Return the lines of an answer without a judged request."""
    lines = _lead_lines(answer.lead) if answer.lead is not None else []
    head = facts.common.head
    if not head.streams:
        for row in facts.skipped[:3]:
            skipped = say("skipped", n=row["frames"], of=head.frames, reason=row["reason"])
            lines.append(Line("skipped", skipped, keep=Keep.IF_ROOM))
        if facts.pings:
            lines.append(Line("probes", say("pings_in_probes", n=facts.pings), keep=Keep.LAST))
        return lines
    sentence, has_sentence = headline.nothing_judged(facts), answer.headline.has_sentence
    if sentence.text != answer.headline.text:
        lines.append(Line("requests", words.inside(sentence.text)))
    silences = facts.common.of_kind("silence")[:2]
    lines += _sentence_lines("silent", (silence for silence in silences if not has_sentence(silence)))
    floods = facts.common.of_cause("syn_flood")
    lines += [Line("flood", _with_server(row)) for row in floods if row.text and not has_sentence(row)]
    push = answer.push_in_headline
    lines += _push_lines(push) if push is not None else _other_push_lines(answer)
    kinds = ("one_way", "setup") if facts.common.capture_kind == "scan" else ("connection", "one_way", "setup")
    others = [row for row in facts.common.of_kind(*kinds) if row not in floods and not has_sentence(row)]
    return lines + [Line(grade_of(row.confidence), row.text or "", keep=Keep.LAST) for row in others[:4]]


def _sentence_lines(label: str, rows: Iterable[Finding], keep: Keep = Keep.ALWAYS) -> list[Line]:
    """Return a line with each finding's sentence."""
    return [Line(label, row.text or "", keep=keep) for row in rows]


def _with_server(row: Finding) -> str:
    """Return a finding's sentence with its server's name in front."""
    return say("of_server", server=headline.server_of(row), text=row.text)


def _latency_line(requests: WithRequests) -> Line:
    kind = "requests" if requests.cut else "answered_requests"
    if traffic.has_unknown_protocol(requests.traffic):
        kind = "turns"
    took = "took_many" if requests.complete > 1 else "took_one"
    parts = [
        say(took, p50_ms=requests.p50_ms, p99_ms=requests.p99_ms, many=say(kind, n=requests.complete)),
        say("slow_over", n=requests.slow["count"], over=headline.slow_limit(requests)),
    ]
    if requests.cut:
        parts.append(say("cut_all" if requests.cut == requests.complete else "cut_some", n=requests.cut))
    if requests.incomplete:
        all_or_some = "incomplete_goodbyes" if requests.goodbyes == requests.incomplete else "incomplete_some_goodbyes"
        sentence = all_or_some if requests.goodbyes else "incomplete"
        parts.append(say(sentence, n=requests.incomplete, last=requests.goodbyes))
    return Line("latency", joined(parts))


def _server_lines(requests: WithRequests) -> list[Line]:
    """Return the lines about further servers.

    The number that `servers` asked for; or by default those behind the first one, then slow ones, then a count of the
    others.
    """
    rows = requests.servers[1:]
    if requests.shown:
        return [Line("further", _server_text(row)) for row in rows[: requests.shown - 1]]
    behind = [row for row in rows if row["behind"] == requests.server][: show.MAX_LEGS]
    lines: list[Line] = [Line("behind", _server_text({**row, "behind": None})) for row in behind]
    slow = [row for row in rows if row["slow"] and row not in behind][: show.MAX_SLOW_SERVERS - 1]
    lines += [Line("slow", _server_text(row), keep=Keep.IF_ROOM) for row in slow]
    others = [row for row in rows if row not in behind and row not in slow]
    if others:
        slow_count = sum(row["slow"] for row in others)
        further = say("further_slow" if slow_count else "further_quick", n=len(others), slow=slow_count)
        hint = say("further_hint", top=min(len(requests.servers), 10))
        lines.append(Line("further", further, hint, keep=Keep.IF_ROOM))
    return lines


def _server_text(row: Row) -> str:
    """Return the line of one server in the list."""
    return say(
        "server_line",
        server=row["server"], n=row["slow"], of=row["requests"], p50_ms=row["p50_ms"], p99_ms=row["p99_ms"],
        behind=say("server_behind", server=row["behind"]) if row["behind"] else "",
        family=say("server_family", family=row["family"], grade=row["grade"]) if row["family"] else "",
    )  # fmt: skip


def _family_lines(requests: WithRequests) -> list[Line]:
    """Return one line per family of causes: its share of the slow requests' time, and its causes."""
    lines: list[Line] = []
    sentence = _FAMILY_TIME[headline.waited_for(requests), bool(requests.slow["streams"])]
    for rank, row in enumerate(requests.families[: show.MAX_FAMILIES]):
        if rank and row["share"] < show.MIN_NEXT_SHARE:
            continue
        causes = [
            f"{name} {ms(spent)}"
            for name, spent in row["causes"].items()
            if spent >= show.MIN_UNNAMED_SHARE * row["ms"]
        ]
        text = say(sentence, part_share=row["share"], causes=", ".join(causes))
        lost = say("segments_lost", n=requests.common.lost) if row["family"] == "loss" and requests.common.lost else ""
        lines.append(Line(row["family"], joined([text, lost]), keep=Keep.IF_ROOM))
    return lines


def _listed_causes(requests: WithRequests) -> list[str]:
    """Return the causes in families that have a line."""
    rows = requests.families[: show.MAX_FAMILIES]
    return [cause for row in rows if row is rows[0] or row["share"] >= show.MIN_NEXT_SHARE for cause in row["causes"]]


def _share_line(facts: Judged) -> Line:
    p50, p99 = facts.share["p50"], facts.share["p99"]
    kind = "turns" if traffic.has_unknown_protocol(facts.requests.traffic) else "requests"
    return Line("share", say(
        "share_of", p50_ms=p50["ms"], of_p50_ms=p50["of_ms"], p50_share=p50["share"], p99_ms=p99["ms"],
        of_p99_ms=p99["of_ms"], p99_share=p99["share"], n=facts.hit, many=say(kind, n=facts.requests.complete),
    ))  # fmt: skip


def _stall_lines(answer: Overall, facts: Judged) -> list[Line]:
    """Return the lines of an answer about Nagle's algorithm and held ACKs."""
    typical, finding = facts.typical, facts.common.findings[0]
    sender, receiver = facts.owners["nagle"], facts.owners["delayed_ack"]
    pool = facts.senders[sender]
    lines = [*_opening_lines(answer, facts), _latency_line(facts.requests), _share_line(facts)]
    round_trips = (pool.sender_rtt_ms or 0.0) + (pool.receiver_rtt_ms or 0.0)
    path = say("path_of_wait", path_ms=round_trips) if round_trips > show.MIN_PATH_OF_WAIT * typical["ms"] else ""
    if "bytes" in typical:
        first, second = typical["bytes"]
        lines.append(Line(sender, joined([say("nagle_waits", first=first, second=second), path])))
    if pool.hold_min_ms is not None and pool.hold_max_ms is not None and pool.hold_median_ms is not None:
        low, high = f"{pool.hold_min_ms:.1f}", f"{pool.hold_max_ms:.1f}"
        hold_text = say("held" if low == high else "held_range", low=low, high=high, median=pool.hold_median_ms)
        lines.append(Line(receiver, joined([hold_text, _timer_text(finding)])))
    if "bytes" in typical:
        frames_text = say("see_stall", frames=" > ".join(map(str, typical["frames"])), stream=typical["stream"],
                          ack=typical["ack_after_ms"], release_us=typical["release_us"])  # fmt: skip
        lines.append(Line("see", frames_text))
    lines += _excluded_lines(facts.requests, skip=("nagle", "delayed_ack", *(("network",) if path else ())))
    lines.append(_options_line(facts, sender, receiver))
    return [
        *lines, *_fix_lines(answer.fix, facts), _stall_grade_line(facts, pool), *_next_lines(facts),
        *_unknown_lines(facts.requests, sender), *_server_lines(facts.requests), *_also_lines(answer, facts),
    ]  # fmt: skip


def _timer_text(finding: Finding) -> str:
    """Return words for the receiver's delayed-ACK timer, as far as its holds show it."""
    if finding.timer_ms is None:
        return say("timer_tick", tick=finding.tick_ms) if finding.tick_ms else ""
    tick = say("on_tick", tick=finding.tick_ms) if finding.tick_ms else ""
    system = ""
    if finding.os_hint:
        system = say("timer_of", system=socket_options.system_with(finding.timer_ms, finding.tick_ms))
    return say("timer_fitted", timer=finding.timer_ms, tick=tick, whose=system)


def _other_lines(answer: Overall, facts: Judged) -> list[Line]:
    """Return the lines of an answer about another cause."""
    requests, finding, typical = facts.requests, facts.common.findings[0], facts.typical
    late_setup = headline.late_request(requests)
    is_known = finding.grade != "unknown" or finding.cause in ("unknown", "capture_gap")
    families = _family_lines(requests) if is_known else []
    queues = [finding for finding in facts.common.of_kind("queue") if headline.server_of(finding) == requests.server]
    lines = [*_opening_lines(answer, facts), _latency_line(requests), *families]
    lines += _sentence_lines("queue", queues, Keep.IF_ROOM)
    if typical["frames"] and is_known:
        sentence = "see_behind" if facts.backend else "see_cause"
        server = facts.backend["server"] if facts.backend else ""
        frames_text = say(sentence, frames=_chain(typical["frames"]), stream=typical["stream"], server=server,
                          cause=finding.cause, time=_time_shown(typical))  # fmt: skip
        lines.append(Line("see", frames_text))
    lines += _slowest_lines(facts)
    named_causes = (*(row.cause for row in facts.common.findings[:3]), *_listed_causes(requests))
    lines += _excluded_lines(requests, skip=named_causes)
    lines += _fix_lines(answer.fix, facts)
    grade = grade_and_confidence(facts.confidence if late_setup is None else late_setup.confidence)
    if late_setup is None and finding.grade == "unknown":
        grade = say("grade_unknown")
    lines.append(_grade_line(grade, finding if late_setup is None else None))
    return [*lines, *_unknown_lines(facts.requests, None), *_server_lines(facts.requests), *_also_lines(answer, facts)]


def _opening_lines(answer: Overall, facts: RequestFacts) -> list[Line]:
    """Return the line about the traffic, after the sentence about the requests if the headline has another subject."""
    lines: list[Line] = [Line("traffic", traffic.line(facts.requests.traffic), keep=Keep.IF_ROOM)]
    sentence, lead = headline.of_requests(facts).text, answer.lead
    at_server = lead is not None and lead.kind == "transfer" and headline.server_of(lead) == facts.requests.server
    has_queue = headline.queued(facts.requests) is not None  # then `sentence` says what the queue cost
    if lead is not None and lead.sentence == "transfer_bloat" and facts.requests.slow["in_queue"] and not has_queue:
        count, total, during = facts.requests.slow["count"], facts.requests.slow["of"], facts.requests.slow["in_queue"]
        sentence = words.sentence(say("slow_in_queue", server=facts.requests.server, n=count, of=total, during=during))
    is_elsewhere = lead is not None and lead.sentence in headline.ELSEWHERE
    # a transfer's limit is what its request waited for
    if at_server or is_elsewhere or sentence == answer.headline.text:
        return lines
    return [Line("requests", words.inside(sentence)), *lines]


def _time_shown(typical: Typical) -> str:
    """Return words for the time that the frames show: all of the cause's time in the exchange, or its longest piece."""
    if typical["pieces"] == 1 or typical["longest_ms"] > show.SAME_SHARE * typical["ms"]:
        return say("all_pieces", all_ms=typical["ms"])
    return say("longest_piece", longest_ms=typical["longest_ms"], n=typical["pieces"], all_ms=typical["ms"])


def _slowest_lines(facts: Judged) -> list[Line]:
    """Return the line about the slowest request, with its frames."""
    worst = facts.requests.slow["worst"]
    if worst is None:
        return []
    has_cause = worst["cause"] and facts.common.findings[0].grade != "unknown"
    return [Line("slowest", say(
        "slowest",
        name=worst["name"], took_ms=worst["latency_ms"], stream=worst["stream"],
        frames=" > ".join(map(str, worst["frames"])),
        why=say("slowest_cause", part_ms=worst["cause_ms"], cause=worst["cause"]) if has_cause else "",
    ))]  # fmt: skip


def _fix_lines(fix: str | None, facts: Judged) -> list[Line]:
    """Return the lines about the fix, and about what it gains: a range, and what limits the rate then."""
    row, now_ms = facts.common.findings[0], facts.requests.p50_ms
    low_ms, high_ms, limit = row.gain_p50_low_ms, row.gain_p50_high_ms, row.gain_limit
    if not fix:
        return []
    lines: list[Line] = [Line("fix", fix)]
    if low_ms is None or row.fix_side is None:
        return lines
    if facts.share["p50"]["share"] < show.MIN_P50_SHARE:  # the median request does not have the cause
        at_best = row.gain_p99_low_ms
        if at_best is None or at_best > show.SAME_SHARE * facts.requests.p99_ms:
            return lines
        return [*lines, Line("gain", say("gain_p99", best_ms=at_best, now_ms=facts.requests.p99_ms))]
    if low_ms > show.SAME_SHARE * now_ms:
        return lines
    text = say("gain_best", best_ms=low_ms, now_ms=now_ms)
    if high_ms is not None and not row.gain_open:
        text = say("gain", then_ms=(low_ms, high_ms), now_ms=now_ms)
    if limit == "server":
        slow, quick = f"{row.gain_rate_low:.1f}", f"{row.gain_rate_high:.1f}"
        text = say("gain_rate", gain=text, times=slow if slow == quick else f"{slow}-{quick}")
    elif row.gain_open or limit == "unknown":
        text = joined([text, row.gain_open or say("gain_unseen")])
    return [*lines, Line("gain", text)]


def _next_lines(facts: Judged) -> list[Line]:
    """Return the line with the findings after a stall. A stall of the other direction needs the option there, too."""
    rows = [row for row in facts.common.findings[1:4] if row.share >= show.MIN_NEXT_SHARE]
    if not rows:
        return []
    reverse = (STALL, SIDES[facts.owners["nagle"]])
    parts = []
    for row in rows:
        sentence = "next_there" if (row.cause, row.owner) == reverse else "next"
        parts.append(say(sentence, cause=row.cause, owner=row.owner, part_share=row.share))
    return [Line("next", say("and_more").join(parts), keep=Keep.IF_ROOM)]


def _also_lines(answer: Overall, facts: RequestFacts) -> list[Line]:
    """Return the lines about what happened besides: pushes, silences, waits, transfers and remarks."""
    requests, common = facts.requests, facts.common
    setups = [row for row in common.of_kind("setup") if headline.server_of(row) == requests.server]
    before = [row for row in setups if (row.max_ms or 0.0) > requests.p50_ms]
    if headline.late_request(requests) is not None:
        before = []
    silences = [row for row in common.of_kind("silence") if not answer.headline.has_sentence(row)]
    queue = headline.queued(requests)
    waits = [row for row in common.of_kind("wait") if row is not answer.lead and row is not queue]
    waits.sort(key=headline.harm_of, reverse=True)
    transfers = [row for row in common.of_kind("transfer") if row is not answer.lead]
    remarks = joined(_remarks(answer, facts))
    return [
        *_other_push_lines(answer),
        *(Line("suspected", _with_server(row), keep=Keep.IF_ROOM) for row in common.of_kind("one_way")[:1]),
        *(Line("flood", _with_server(row)) for row in common.of_cause("syn_flood")),
        *_sentence_lines("silent", silences[:2]),
        *_sentence_lines("waited", waits[:2]),
        *_sentence_lines("transfer", transfers[:2], Keep.IF_ROOM),
        *(Line("before", say("on_stream", text=row.text, stream=row.worst_stream)) for row in before[:1]),
        *([Line("also", remarks, keep=Keep.IF_ROOM)] if remarks else []),
    ]


def _remarks(answer: Overall, facts: RequestFacts) -> list[str]:
    """Short remarks about harmless events, failed connections and pauses."""
    parts = []
    if isinstance(facts, Judged) and facts.first_fast:
        parts.append(say("first_fast", n=facts.first_fast))
    if isinstance(facts, Judged) and facts.fin_released:
        parts.append(say("fin_released", n=facts.fin_released))
    parts += [row.text for row in facts.common.of_kind("change") if row.text][:1]
    harmless = facts.common.of_kind("harmless")
    if harmless:
        first = answer.lead or next(iter(facts.common.findings), None)
        proven = first is None or first.grade == "proven"
        held_acks = sum(row.delayed_ack_seen_on or 0 for row in harmless)
        parts.append(say("held_harmless" if proven else "held_for_nobody", n=held_acks))
    for cause, sentence in _FAILED_CONNECTIONS.items():
        rows = facts.common.of_cause(cause)
        number = sum(row.streams or 0 for row in rows)
        if number:
            parts.append(say(sentence, n=number, whose=headline.servers_of(facts.requests, rows)))
    held_up = {cause for family in facts.requests.families for cause in family["causes"]}
    held_up |= {row.cause for row in facts.common.of_kind("wait")}
    if "zero_window" not in held_up:
        parts += [row.text for row in facts.common.of_cause("zero_window") if row.text][:1]
    parts += [row.text for row in facts.common.of_cause("ecn") if row.text][:1]
    if facts.requests.pauses["count"]:
        # captured elsewhere, the pause may also be the path's
        sentence = "paused" if facts.common.positions == ["at_client"] else "passed_between"
        parts.append(say(sentence, pause_ms=facts.requests.pauses["median_ms"], n=facts.requests.pauses["count"]))
    return parts


def _excluded_lines(requests: WithRequests, skip: tuple[str, ...]) -> list[Line]:
    """Return the lines about causes that were examined and excluded, with their share, and about losses."""
    total = requests.total_ms or 1.0
    spent_ms: dict[str, float] = {}
    for row in requests.causes:
        spent_ms[row["cause"]] = spent_ms.get(row["cause"], 0.0) + row["total_ms"]
    parts = []
    for name, sentence in _EXCLUDED.items():
        share = spent_ms.get(name, 0.0) / total
        if name not in skip and share < show.MAX_EXCLUDED_SHARE:
            parts.append(say(sentence, part_share=share))
    repair = sum(spent_ms.get(name, 0.0) for name in cause_names(trait="repair"))
    if not requests.common.lost and not repair:
        parts.append(say("not_losses"))
    lines: list[Line] = [Line("not", say("and_more").join(parts), keep=Keep.IF_ROOM)] if parts else []
    is_named = any(row["family"] == "loss" and row["share"] >= show.MIN_NEXT_SHARE for row in requests.families)
    has_other_line = not repair and any(row.cause == "syn_rto" for row in requests.common.of_kind("setup"))
    is_doubled = "doubles" in {check.check for check in requests.common.quality}
    # lost SYNs have a line of their own: what waited for their repair came before the requests
    if requests.common.lost and not is_named and not is_doubled and not has_other_line:
        sentence = "lost_repaired" if repair else "lost_unnoticed"
        lost = say(sentence, n=requests.common.lost, repair_share=repair / total)
        lines.append(Line("lost", lost, keep=Keep.IF_ROOM))
    return lines


def _options_line(facts: Judged, sender: str, receiver: str) -> Line:
    """Return the line about the sender's TCP_NODELAY and the receiver's delayed ACKs, with what shows them."""
    row, pool = facts.common.findings[0], facts.senders[receiver]
    receiver_nodelay = {"nagle": "off", "nodelay": "on"}.get(pool.verdict, "unknown")
    return Line("options", say(
        "options_no_choice" if receiver_nodelay == "unknown" and not pool.opportunities else "options",
        sender=sender, receiver=receiver, nodelay=row.nodelay, delayed_ack=row.delayed_ack, back=receiver_nodelay,
        seen=say(
            _NODELAY_SEEN[row.nodelay or "unknown"], on=row.nodelay_seen_on, off=row.nodelay_seen_off,
            n=row.nodelay_streams_off, of=row.nodelay_streams_on + row.nodelay_streams_off,
        ),
    ), keep=Keep.IF_ROOM)  # fmt: skip


def _stall_grade_line(facts: Judged, pool: Pool) -> Line:
    """Return the line with the grade of a stall: how soon ACKs released segments, and whether gaps follow the ACKs."""
    parts, release_ms, finding = [grade_and_confidence(facts.confidence)], pool.release_p95_ms, facts.common.findings[0]
    if release_ms is not None:
        freed = say("freed_one") if pool.held == 1 else say("freed_most", n=pool.held)
        if pool.tight_ms is not None and release_ms > pool.tight_ms and pool.tight:
            release_ms, freed = pool.tight_ms, say("freed_tight", n=pool.tight, of=pool.held)
        is_distant = (pool.sender_rtt_ms or 0.0) > show.MIN_PATH_OF_RELEASE * release_ms
        parts = [say("freed_far" if is_distant else "freed", grade=parts[0], which=freed, left_us=release_ms * 1000)]
    if pool.slope is not None and abs(pool.slope - 1) < show.MAX_SLOPE_ERROR:
        parts.append(say("gaps_follow", slope=pool.slope))
    if finding.grade != "proven":
        parts.append(say("rival", rival=finding.rival, lost=finding.rival_lost))
    return Line("sure?", joined(parts))


def _unknown_lines(requests: WithRequests, sender: str | None) -> list[Line]:
    """Return the line about time without a named cause."""
    unknown_ms = sum(row["total_ms"] for row in requests.causes if row["cause"] in ("unknown", "capture_gap"))
    share = unknown_ms / requests.total_ms if requests.total_ms else 0.0
    is_listed = sender is None and any(name in _listed_causes(requests) for name in ("unknown", "capture_gap"))
    parts = [say("no_named_cause", part_share=share)] if share >= show.MIN_UNNAMED_SHARE and not is_listed else []
    if sender:
        parts.append(say("hidden_program", sender=sender))
    return [Line("unknown", joined(parts), keep=Keep.LAST)] if parts else []


def _push_lines(finding: Finding) -> list[Line]:
    """Return the lines below a headline about pushes that were held."""
    lines: list[Line] = [Line("see", say("see_push", seen=_frames(finding), waited_ms=finding.typical_ms or 0.0))]
    if finding.nodelay != "unknown":
        options = say("push_options", sender=finding.sender, holder=finding.held_by, nodelay=finding.nodelay,
                      delayed_ack=finding.delayed_ack)  # fmt: skip
        lines.append(Line("options", options, keep=Keep.IF_ROOM))
    # the gain is the wait itself, from the 10th to the 90th percentile; at best, if it is only probable
    low, high = finding.p10_ms or 0.0, finding.p90_ms or 0.0
    sooner = say("sooner", sooner_ms=(low, high)) if finding.grade == "proven" else say("sooner_at_best", best_ms=high)
    return [
        *lines, Line("fix", finding.fix or ""), Line("gain", sooner),
        Line("sure?", grade_and_confidence(finding.confidence)),
    ]  # fmt: skip


def _other_push_lines(answer: Overall) -> list[Line]:
    """Return the lines about held pushes that are not the headline."""
    pushes = [row for row in answer.facts.common.of_kind("push") if not answer.headline.has_sentence(row)]
    sentences = [
        say("push_line", text=push.text, grade=grade_and_confidence(push.confidence), seen=_frames(push), fix=push.fix)
        for push in pushes[: show.MAX_PUSHES]
    ]
    return [Line("pushes", sentence) for sentence in sentences]


def _frames(finding: Finding) -> str:
    return say("see_stream", frames=_chain(finding.typical_frames), stream=finding.typical_stream)


def one_exchange(exchange: OneExchange) -> Text:
    """Write the answer for one exchange: its pieces in order of time; the shortest ones are summed up."""
    target = exchange.target
    name = f"{requested(exchange.method, None if target is None else _short(target))} {exchange.status or ''}".strip()
    head = say("exchange", exchange=f"{exchange.exchange}", stream=exchange.stream, index=f"{exchange.index}")
    if name:
        head = say("of_server", server=head, text=name)
    if not exchange.complete:
        head = joined([head, say("not_complete", cut_by=exchange.cut_by)])
    total = sum(row["duration_ms"] for row in exchange.causes)
    last = exchange.response_last_frame
    end = say("exchange_end") if last is None else f"{last}"
    lines = [Line("", say("exchange_took", took_ms=total, first=f"{exchange.request_first_frame}", last=end))]
    max_pieces = show.MAX_LINES - 3  # title, all time, and the shorter pieces
    shown_rows = sorted(range(len(exchange.causes)), key=lambda i: -exchange.causes[i]["duration_ms"])[:max_pieces]
    for i in sorted(shown_rows):
        row = exchange.causes[i]
        cause = say("cause_inside", cause=row["cause"], parent=row["parent"]) if row["parent"] else row["cause"]
        frames = say("piece_frames", frames=" > ".join(map(str, row["evidence"])), rule=row["rule"],
                     grade=grade_and_confidence(row["confidence"]))  # fmt: skip
        lines.append(Line("", f"{ms(row['duration_ms']):>9} ms  {cause:27} {row['owner']:8} {frames}"))
    if len(shown_rows) < len(exchange.causes):
        shorter_ms = [row["duration_ms"] for i, row in enumerate(exchange.causes) if i not in shown_rows]
        lines.append(Line("", f"{ms(sum(shorter_ms)):>9} ms  {say('shorter_pieces', n=len(shorter_ms))}"))
    return Text(head, "", lines)


def _short(target: str) -> str:
    """Return a request's target for a terminal: cut, and without control characters."""
    safe = printable(target)
    return safe if len(safe) <= show.MAX_NAME_LETTERS else safe[: show.MAX_NAME_LETTERS - 1] + "…"


Located: TypeAlias = Callable[[str, Finding], tuple[str, Finding]]
"""Returns the file of a finding's evidence, and the finding with its numbers in that file, from an answer's file."""


def paragraphs(answer: Overall, located: Located) -> list[str]:
    """Write one paragraph for each owner, the headline's first; owners without a wait have none."""
    facts, lead = answer.facts, answer.lead or answer.push
    if lead is None and isinstance(facts, Judged):
        lead = headline.late_request(facts.requests) or (
            facts.common.findings[0] if facts.requests.slow["count"] else None
        )
    first = [] if lead is None else [lead]
    # if another kind of finding leads, the causes of requests are parts of it
    parts = facts.common.findings if lead is None or lead.kind == "latency" else []
    rows = [*first, *(row for row in [*parts, *facts.common.other_findings] if row is not lead)]
    by_owner: dict[tuple[str, str], list[Finding]] = {}
    for row in rows:
        if row is lead or _is_reported(row, facts):
            end = headline.server_of(row) if row.owner in _ENDPOINTS and row.server else ""
            by_owner.setdefault((row.owner, end), []).append(row)
    texts = ["\n".join(_paragraph(answer, *owner, findings, lead, located)) for owner, findings in by_owner.items()]
    return texts or [answer.headline.text]


def _is_reported(row: Finding, facts: Facts) -> bool:
    """Return whether users waited for it longer than the threshold, and its cause is known."""
    if row.grade in ("harmless", "unknown") or row.owner in ("capture", "unknown"):
        return False
    if row.kind != "latency" or isinstance(facts, NoRequests):
        return row.harm is not None
    return bool((row.share or 0.0) >= show.MIN_NEXT_SHARE and (row.max_ms or 0.0) >= facts.requests.slow["limit_ms"])


def _paragraph(
    answer: Overall, owner: str, end: str, rows: list[Finding], lead: Finding | None, located: Located
) -> list[str]:
    """Return the lines of one owner's paragraph."""
    lines = [say("for_owner_of" if end else "for_owner", owner=owner, end=end)]
    for row in rows[:MAX_PARAGRAPH_FINDINGS]:
        sentence = answer.headline.text if row is lead else (words.sentence(row.text) if row.text else _time_text(row))
        frames = row.worst_frames or row.typical_frames
        lines.append(words.line("what", sentence))
        grade, evidence = grade_and_confidence(row.confidence), say("see", frames=_chain(frames)) if frames else ""
        lines.append(words.line("proof", joined([grade, evidence, row.rival_lost or ""])))
        if check := _check_command(*located(answer.facts.common.head.file, row), frames):
            lines.append(words.line("check", check))
        if row.fix:
            lines.append(words.line("fix", row.fix))
    return lines


def _time_text(row: Finding) -> str:
    """Return words for the time that a cause took of the requests."""
    return say(
        "owner_took", cause=row.cause, all_ms=row.total_ms or 0.0, n=row.exchanges or 0, of=row.of_exchanges or 0,
        median_ms=row.median_ms or 0.0, max_ms=row.max_ms or 0.0,
    )  # fmt: skip


def _check_command(file: str, row: Finding, frames: tuple[int, ...]) -> str:
    """Return a shell command that shows the evidence, for the folder of the capture."""
    name = shlex.quote(file)
    if row.typical_exchange is not None:
        return say("check_flow", file=name, exchange=row.typical_exchange)
    frame_filter = row.filter or (f"frame.number in {{{', '.join(map(str, dict.fromkeys(frames)))}}}" if frames else "")
    return say("check_frames", file=name, filter=shlex.quote(frame_filter)) if frame_filter else ""
