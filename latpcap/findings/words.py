"""How is an answer said in words? The numbers of `Why.to_dict()` in, at most 15 lines of text out.

Nothing is computed here that is not in the numbers: whoever reads the JSON can check every line.
"""

from __future__ import annotations

from latpcap.findings import presentation as show
from latpcap.findings.answer import OneExchange, Overall, Typical
from latpcap.findings.schema import Finding
from latpcap.findings.sockets import Pool
from latpcap.format import count, escaped, ms, percent, printable, us
from latpcap.vocabulary import CAUSES, PROVEN, STALL, SUSPECTED


def overall(d: Overall) -> str:
    """What is the answer for a capture or a stream?"""
    first = [_first_line(d)]
    lines = {"no_exchanges": _no_exchanges, "no_time": _no_time, STALL: _stall}.get(d["verdict"], _other)(d)
    said = [c.says for c in d["quality"] if c.most < 1 or c.check in _SAID]
    lines += [(1, f"  capture   {says}") for says in said[:2] if says not in lines[0][1]]
    lines += [(1, f"  damaged   {sentence}") for sentence in d["damage"][:2]]
    return "\n".join(first + _kept(lines))


_SAID = ("one_direction", "capture_gap", "doubles", "unseen_frames", "clock_ahead")
"""Limits of the capture that are said even where they change no confidence."""


def _kept(lines: list[tuple[int, str]]) -> list[str]:
    """The lines in their order; where they are too many, those of the highest number are left out, the last first."""
    room = show.MOST_LINES - 1
    order = sorted(range(len(lines)), key=lambda i: (lines[i][0], i))
    return [lines[i][1] for i in sorted(order[:room])]


def _first_line(d: Overall) -> str:
    streams, exchanges = count(d["streams"], "TCP stream"), count(d["exchanges"], "exchange")
    where: dict[tuple[str, ...], str] = {
        ("at_client",): ", captured at the client",
        ("at_server",): ", captured at the server",
    }
    file = escaped(d["file"])
    name = file if d["filter"] is None else f"{file} [{printable(d['filter'])}]"
    line = f"{name}: {count(d['frames'], 'frame')}, {streams}, {exchanges} in {d['seconds']:,.2f} s"
    return line + where.get(tuple(d["positions"]), "")


def _no_exchanges(d: Overall) -> list[tuple[int, str]]:
    if not d["streams"]:
        told = [(0, "No TCP stream: nothing that latpcap could judge.")]
        for row in d["skipped"][:3]:
            told.append((1, f"  skipped   {count(row['frames'], 'frame')} of {d['frames']:,}: {row['reason']}"))
        if d["pings"]:
            told.append((2, f"  probes    {count(d['pings'], 'ping')}, in the table probes with their round trips"))
        return told
    silent = d["silent"]
    words = {
        "unanswered": "without an answer to the SYN",
        "without_data": "opened or refused without any data",
        "without_answer": "with data but no complete answer",
    }
    parts = [f"{silent[k]:,} {words[k]}" for k in words if silent.get(k)]
    scope = "" if d["scope"] is None else f" on tcp.stream {d['scope']}"
    told = [
        (0, f"No complete request and answer{scope}, so nothing was slow or fast; connections: {'; '.join(parts)}.")
    ]
    floods = [e for e in d["events"] if e.cause == "syn_flood"]
    told = [(0, f"{_end(e)}: {e.says}.") for e in floods] + told
    mute = [e for e in d["events"] if e.kind == "silence"]
    told = [(0, f"{e.says}.") for e in mute[:2]] + told
    rest = [e for e in d["events"] if e.kind in ("connection", "one_way", "setup") and e not in floods]
    return told + [(2, f"  {_grade(e.confidence).split()[0]:9} {e.says}") for e in rest[:4]]


def _no_time(d: Overall) -> list[tuple[int, str]]:
    return [(0, f"{d['server']}: its answers took no time that the capture's clock shows."), (0, _latency(d))]


def _end(row: Finding) -> str:
    address, port = row.server, row.server_port
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _latency(d: Overall) -> str:
    kind = "exchange" if d["cut"] else "complete exchange"
    parts = [f"p50 {ms(d['p50_ms'])}, p99 {ms(d['p99_ms'])} ms of {count(d['complete'], kind)}"]
    if d["cut"]:
        some = "" if d["cut"] == d["complete"] else f"{d['cut']:,} of them "
        parts.append(f"{some}not answered to the end: what was seen of them")
    if d["incomplete"]:
        parts.append(f"{d['incomplete']:,} incomplete{_goodbyes(d)}")
    if d["servers"] > 1:
        parts.append(f"{d['servers'] - 1:,} further server{'s' if d['servers'] > 2 else ''} took less time")
    return "  latency   " + "; ".join(parts)


def _goodbyes(d: Overall) -> str:
    """What of the incomplete ones needed no answer?"""
    if not d["goodbyes"]:
        return ""
    some = "" if d["goodbyes"] == d["incomplete"] else f"{d['goodbyes']:,} of them "
    return f" ({some}last words before the client's FIN)"


def _share(d: Overall) -> str:
    p50, p99 = d["share"]["p50"], d["share"]["p99"]
    return (
        f"  share     {ms(p50['ms'])} of {ms(p50['of_ms'])} ms at p50 ({percent(p50['share'])}), "
        f"{ms(p99['ms'])} of {ms(p99['of_ms'])} ms at p99 ({percent(p99['share'])}); "
        f"{d['hit']:,} of {count(d['complete'], 'exchange')}"
    )


def _stall(d: Overall) -> list[tuple[int, str]]:
    t = d["typical"]
    found = d["findings"][0]
    sender, receiver = d["owners"]["nagle"], d["owners"]["delayed_ack"]
    pool = d["senders"][sender]
    what = {"server": "its answers wait", "client": "its clients' requests wait"}[sender]
    who = {"client": "the clients hold", "server": "it holds"}[receiver]
    likely = _is(found)
    headline = f"{d['server']} {likely} slow because {what} for acknowledgements that {who} back."
    if _rare(d):
        few = f"{d['hit']:,} of {count(d['complete'], 'exchange')}"
        likely = {"proven": "wait", "probable": "probably wait"}.get(found.grade, "may wait")
        headline = f"{d['server']}: {few} {likely} for acknowledgements that {who} back, and take most of all time."
    lines = [
        (0, headline),
        (0, _latency(d)),
        (0, _share(d)),
    ]
    legs = (pool.sender_rtt_ms or 0.0) + (pool.receiver_rtt_ms or 0.0)
    path = f"; {ms(legs)} ms of each wait are the path's" if legs > show.PATH_OF_WAIT * t["ms"] else ""
    if "bytes" in t:
        first, second = t["bytes"]
        words = f"a small segment ({second:,} bytes) waits until the one before it ({first:,} bytes) is acknowledged"
        lines.append((0, f"  {sender:9} nagle: {words}{path}"))
    if pool.hold_median_ms is not None:
        low, high = f"{pool.hold_min_ms:.1f}", f"{pool.hold_max_ms:.1f}"
        span = f"held {low} ms" if low == high else f"held {low}-{high} ms, median {pool.hold_median_ms:.1f}"
        lines.append((0, f"  {receiver:9} delayed_ack: {span}{_timer(found)}"))
    if "bytes" in t:
        a, b, c = t["frames"]
        lines.append(
            (0, f"  see       frames {a} > {b} > {c} (tcp.stream eq {t['stream']}): segment, its ACK "
                f"{t['ack_after_ms']:.1f} ms later, next segment {us(t['release_us'])} after that")
        )  # fmt: skip
    lines += _not(d, skip=("nagle", "delayed_ack", *(("network",) if path else ())))
    lines.append((1, _options(d, sender, receiver)))
    lines.append((0, f"  fix       {d['fix']}"))
    lines += _gain(d)
    lines.append((0, _sure_stall(d, pool)))
    lines += _next(d)
    lines += _unknown(d, sender)
    return lines + _also(d)


def _timer(found: Finding) -> str:
    """What the receiver's timer is, as far as its holds tell."""
    if found.timer_ms is None:
        return f"; they end on a {found.tick_ms:.4g} ms tick: a kernel timer" if found.tick_ms else ""
    tick = f" on a {found.tick_ms:.4g} ms tick" if found.tick_ms else ""
    whose = f" ({found.os_hint.partition(' (')[0]})" if found.os_hint else ""
    return f"; a {found.timer_ms:.0f} ms timer{tick}{whose}"


def _other(d: Overall) -> list[tuple[int, str]]:
    name = d["verdict"]
    found = d["findings"][0]
    t = d["typical"]
    lines = [(0, _headline(d)), (0, _latency(d)), (0, _share(d))]
    for row in d["findings"][:3]:
        spent = f"{ms(row.total_ms)} ms in {count(row.exchanges, 'exchange')}"
        lines.append((1, f"  {row.owner:9} {row.cause}: {spent} ({percent(row.share)} of all time)"))
    if t["frames"]:
        chain = " > ".join(str(f) for f in t["frames"])
        lines.append((0, f"  see       frames {chain} (tcp.stream eq {t['stream']}): {_shown(t)} of {name}"))
    lines += _slowest(d)
    lines += _not(d, skip=tuple(row.cause for row in d["findings"][:3]))
    late = _asked_late(d)
    fix = late.fix if late else d["fix"]
    idle = name in ("server_think", "client_think") and d["p99_ms"] < show.FAST_MS  # nothing to mend
    if fix and found.grade != "unknown" and not idle:
        lines.append((0, f"  fix       {fix}"))
    lines += _gain(d)
    rival = f"; rival: {found.rival} ({found.rival_lost})" if found.rival else ""
    sure = "no" if found.grade == "unknown" else _grade(d["confidence"])
    if late:
        sure, rival = _grade(late.confidence), ""
    lines.append((0, f"  sure?     {sure}{rival}"))
    lines += _unknown(d, None)
    return lines + _also(d)


def _shown(t: Typical) -> str:
    """How much time do these frames show? They are those of the longest piece."""
    if t["pieces"] == 1 or t["longest_ms"] > show.SAME * t["ms"]:
        return f"{ms(t['ms'])} ms"
    return f"{ms(t['longest_ms'])} ms, the longest of {t['pieces']:,} pieces that make {ms(t['ms'])} ms"


def _headline(d: Overall) -> str:
    """The answer in one sentence, no stronger than its confidence."""
    name = d["verdict"]
    found = d["findings"][0]
    if late := _asked_late(d):
        return f"{d['server']}: {late.says}."
    if found.grade == "unknown":
        forbids = [c.says for c in d["quality"] if c.check in found.limited_by and c.forbids]
        why = forbids[0] if forbids else CAUSES[name].meaning
        return f"{d['server']}: this capture cannot say where the time went: {why}."
    part = "most time" if found.share >= show.MOST_TIME else "the largest part of the time"
    if name == "network":
        behind = d["findings"][1] if len(d["findings"]) > 1 else None
        if behind is not None and behind.share >= show.HOLDS_UP:
            rest = f"{percent(behind.share)} go to {behind.cause} ({behind.owner})"
            return f"{d['server']}: {part} {_is(found)} the path's round trip ({percent(found.share)}); {rest}."
        if found.grade != "proven":
            return f"{d['server']}: most time {_is(found)} the path's round trip."
        return f"{d['server']}: most time is the path's round trip; no program and no setting holds its answers up."
    if _rare(d):
        hit = f"{d['hit']:,} of {count(d['complete'], 'exchange')}"
        return f"{d['server']}: {hit} took most of all time, {_because(found)} of {name}: {_meaning(found)}."
    goes = {"proven": "goes", "probable": "probably goes"}.get(found.grade, "may go")
    most = f"{part} {goes}"
    if d["p99_ms"] < show.FAST_MS:
        return f"{d['server']} answers fast; {most} to {name}: {_meaning(found)}."
    return f"{d['server']}: {most} to {name}: {_meaning(found)}."


def _is(found: Finding) -> str:
    return {"proven": "is", "probable": "is probably"}.get(found.grade, "may be")


def _because(found: Finding) -> str:
    return {"proven": "because", "probable": "probably because"}.get(found.grade, "perhaps because")


def _meaning(found: Finding) -> str:
    """What the cause means; that nothing else held it back is said only where that is proven."""
    meaning = CAUSES[found.cause].meaning
    return meaning if found.grade == "proven" else meaning.removesuffix(", and nothing held it back")


def _rare(d: Overall) -> bool:
    """Does most time lie in a few exchanges, and none of it in the usual ones?"""
    return bool(d["share"]["p50"]["share"] < show.RARE_OF_P50 and d["hit"] < show.RARE_OF_EXCHANGES * d["complete"])


def _setup(d: Overall) -> Finding | None:
    """What took the most time before the first requests of this server; None where nothing did."""
    rows = [e for e in d["events"] if e.kind == "setup" and _end(e) == d["server"]]
    return max(rows, key=lambda e: e.total_ms or 0.0, default=None)


def _asked_late(d: Overall) -> Finding | None:
    """What took more time before the first requests than all answers took? None where nothing did."""
    before = _setup(d)
    return before if before is not None and (before.total_ms or 0.0) > d["total_ms"] else None


def _slowest(d: Overall) -> list[tuple[int, str]]:
    """What the slowest exchanges wait for, where that is something else than what takes most time in all."""
    first = d["findings"][0]
    worst = max(d["findings"], key=lambda r: r.of_p99_share)
    if worst is first or worst.of_p99_share < max(show.SLOWEST_OF_P99, show.SLOWEST_TIMES * first.of_p99_share):
        return []
    chain = " > ".join(str(f) for f in worst.worst_frames)
    return [
        (0, f"  slowest   at p99 it is {worst.cause} ({worst.owner}): {ms(worst.of_p99_ms)} ms "
            f"({percent(worst.of_p99_share)}), frames {chain} (tcp.stream eq {worst.worst_stream})")
    ]  # fmt: skip


def _gain(d: Overall) -> list[tuple[int, str]]:
    """What the fix would be worth, as a range, and what the limit is then."""
    row = d["findings"][0]
    low, high, limit = row.gain_p50_low_ms, row.gain_p50_high_ms, row.gain_limit
    if not d["fix"] or low is None or row.fix_side is None:
        return []
    if _rare(d):
        at_best = row.gain_p99_low_ms
        if at_best is None or at_best > show.SAME * d["p99_ms"]:
            return []
        return [(0, f"  gain      p99 at best {ms(at_best)} ms instead of {ms(d['p99_ms'])}")]
    if low > show.SAME * d["p50_ms"]:
        return []
    bound = "at best " if high is None else ""
    span = ms(low) if high is None or ms(low) == ms(high) else f"{ms(low)}-{ms(high)}"
    text = f"  gain      p50 {bound}{span} ms instead of {ms(d['p50_ms'])}"
    if limit == "server":
        text += f", {_times(row)} the requests/s; then the server's capacity is the limit"
    elif row.gain_open or limit == "unknown":
        text += f"; {row.gain_open or show.UNSEEN}"
    return [(0, text)]


def _times(row: Finding) -> str:
    low, high = row.gain_rate_low, row.gain_rate_high
    return f"{low:.1f} times" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f}-{high:.1f} times"


def _next(d: Overall) -> list[tuple[int, str]]:
    """The findings behind the first, in a line."""
    rows = [r for r in d["findings"][1:4] if r.share >= show.NEXT_SHARE]
    parts = [f"{r.cause} ({r.owner}, {percent(r.share)} of all time)" for r in rows]
    return [(1, f"  next      {', '.join(parts)}")] if parts else []


def _also(d: Overall) -> list[tuple[int, str]]:
    """What is there and does not matter, or matters elsewhere."""
    parts = []
    if d["first_fast"]:
        parts.append(f"{count(d['first_fast'], 'first exchange')} of streams fast (quick ACKs at the start)")
    if d["fin_released"]:
        parts.append(f"{count(d['fin_released'], 'wait')} ended by the peer's FIN, not by its timer")
    harmless = [e for e in d["events"] if e.kind == "harmless"]
    if harmless:
        held = sum(e.delayed_ack_seen_on or 0 for e in harmless)
        sure = not d["findings"] or d["findings"][0].grade == "proven"
        parts.append(f"{count(held, 'held ACK')} that nobody waited for" + (": harmless" if sure else ""))
    said = {
        "unanswered": "never answered",
        "unreachable": "unreachable",
        "traceroute": "answered by routers",
        "refused": "refused",
        "reset": "closed by RST",
        "half_open": "not completed",
    }
    for cause, words in said.items():
        number = sum(e.streams or 0 for e in d["events"] if e.cause == cause)
        if number:
            parts.append(f"{count(number, 'connection')} {words}")
    if d["pauses"]["count"]:
        times = "once" if d["pauses"]["count"] == 1 else f"{d['pauses']['count']:,} times"
        parts.append(
            f"clients paused {ms(d['pauses']['median_ms'])} ms between requests, {times}: no part of a latency"
        )
    idle = [e for e in d["events"] if e.kind == "setup" and (e.max_ms or 0.0) > d["p50_ms"] and _end(e) == d["server"]]
    before = [(0, f"  before    {e.says} (tcp.stream eq {e.worst_stream})") for e in idle[:1]]
    before = [] if _asked_late(d) else before
    floods = [(1, f"  suspected {_end(e)}: {e.says}") for e in d["events"] if e.kind == "one_way"][:1]
    floods += [(0, f"  flood     {_end(e)}: {e.says}") for e in d["events"] if e.cause == "syn_flood"]
    floods += [(0, f"  silent    {e.says}") for e in d["events"] if e.kind == "silence"][:2]
    return floods + before + ([(1, "  also      " + "; ".join(parts))] if parts else [])


def _not(d: Overall, skip: tuple[str, ...]) -> list[tuple[int, str]]:
    """What was looked at and is not the reason, with its share."""
    total = d["total_ms"] or 1.0
    spent = {c["cause"]: 0.0 for c in d["causes"]}
    for c in d["causes"]:
        spent[c["cause"]] += c["total_ms"]
    parts = []
    for name, words in (
        ("network", "the path"),
        ("server_think", "server think"),
        ("client_think", "client think"),
    ):
        if name not in skip and spent.get(name, 0.0) / total < show.NOT_SHARE:
            parts.append(f"{words} ({percent(spent.get(name, 0.0) / total)})")
    lost = d["retransmissions"]
    if not lost and not any(spent.get(name) for name in _REPAIRS):
        parts.append("losses (no retransmission)")
    seen = f"{count(lost, 'retransmission')} seen" if lost and "doubles" not in {c.check for c in d["quality"]} else ""
    said = "; ".join(part for part in (", ".join(parts), seen) if part)
    return [(1, "  not       " + said)] if said else []


_REPAIRS = ("fast_retransmit", "tlp", "rto", "syn_rto")


def _options(d: Overall, sender: str, receiver: str) -> str:
    """The sender's TCP_NODELAY and the receiver's delayed ACK, with what was counted for and against."""
    row = d["findings"][0]
    off, on = row.nodelay_seen_off, row.nodelay_seen_on
    counts = {"off": f"{off:,} for, {on:,} against", "on": f"{on:,} for, {off:,} against"}
    if row.nodelay == "mixed":
        of = row.nodelay_streams_on + row.nodelay_streams_off
        counts["mixed"] = f"off on {row.nodelay_streams_off:,} of {of:,} connections"
    seen = counts.get(row.nodelay, f"{off:,} seen off, {on:,} on")
    text = f"  options   {sender} TCP_NODELAY {row.nodelay} ({seen}); {receiver} delayed ACK {row.delayed_ack}"
    pool = d["senders"][receiver]
    back = {"nagle": "off", "nodelay": "on"}.get(pool.verdict, "unknown")
    why = " (it never had to choose)" if back == "unknown" and not pool.opportunities else ""
    return f"{text}, TCP_NODELAY {back}{why}"


def _sure_stall(d: Overall, pool: Pool) -> str:
    text = f"  sure?     {_grade(d['confidence'])}"
    if pool.release_p95_ms is not None:
        within = us(pool.release_p95_ms * 1000)
        which = f"95 % of {pool.held:,} freed segments" if pool.held > 1 else "the one freed segment"
        path = (
            " (the path taken off)" if (pool.sender_rtt_ms or 0.0) > show.PATH_OF_RELEASE * pool.release_p95_ms else ""
        )
        text += f": {which} left within {within} of the ACK{path}"
    if pool.slope is not None:
        text += f"; gaps follow the ACKs (slope {pool.slope:.2f}, a pause gives 0)"
    found = d["findings"][0]
    if found.grade != "proven":
        text += f"; rival: {found.rival} ({found.rival_lost})"
    return text


def _grade(confidence: float) -> str:
    word = "proven" if confidence >= PROVEN else "probable" if confidence > SUSPECTED else "suspected"
    return f"{word} ({confidence:.2f})"


def _unknown(d: Overall, sender: str | None) -> list[tuple[int, str]]:
    spent = sum(c["total_ms"] for c in d["causes"] if c["cause"] in ("unknown", "capture_gap"))
    share = spent / d["total_ms"] if d["total_ms"] else 0.0
    parts = [f"{percent(share)} of the time has no named cause"] if share >= show.NOTHING else []
    if sender:
        parts.append(f"how long the {sender}'s program took between its two writes: the wait hides it")
    return [(2, "  unknown   " + "; ".join(parts))] if parts else []


def of_exchange(d: OneExchange) -> str:
    """What is the answer for one exchange? Its pieces in order of time, small ones put together."""
    name = " ".join(str(p) for p in (d["method"], _short(d["target"]), d["status"]) if p is not None)
    place = f"tcp.stream eq {d['stream']}, number {d['index']} on it"
    head = f"exchange {d['exchange']} ({place}){': ' + name if name else ''}"
    if not d["complete"]:
        head += f"; not complete (cut by {d['cut_by'] or 'an unknown end'})"
    total = sum(c["duration_ms"] for c in d["causes"])
    lines = [
        head,
        f"  {ms(total)} ms from frame {d['request_first_frame']} to {d['response_last_frame'] or 'the end'}",
    ]
    room = show.MOST_LINES - len(lines) - 1
    shown = sorted(range(len(d["causes"])), key=lambda i: -d["causes"][i]["duration_ms"])[:room]
    for i in sorted(shown):
        c = d["causes"][i]
        inside = f" inside {c['parent']}" if c["parent"] else ""
        chain = " > ".join(str(f) for f in c["evidence"])
        lines.append(
            f"  {ms(c['duration_ms']):>9} ms  {c['cause'] + inside:27} {c['owner']:8} frames {chain}  "
            f"({c['rule']}, {_grade(c['confidence'])})"
        )
    if len(shown) < len(d["causes"]):
        rest = [c["duration_ms"] for i, c in enumerate(d["causes"]) if i not in shown]
        lines.append(f"  {ms(sum(rest)):>9} ms  in {len(rest)} shorter pieces")
    return "\n".join(lines)


def _short(target: str | None) -> str | None:
    """A request's target as it may stand on a terminal: cut, and without what would write there by itself."""
    if target is None:
        return None
    safe = printable(target)
    return safe if len(safe) <= 60 else safe[:59] + "…"
