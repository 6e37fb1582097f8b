"""How is an answer said in words? The numbers of `Why.to_dict()` in, at most 15 lines of text out.

Nothing is computed here that is not in the numbers: whoever reads the JSON can check every line.
"""

from __future__ import annotations

from latpcap.findings import harm, headline, names, push_words, traffic
from latpcap.findings import presentation as show
from latpcap.findings.answer import Overall, Row, Typical
from latpcap.findings.schema import Finding, graded
from latpcap.findings.sockets import SHORTER, Pool
from latpcap.findings.totals import SIDES, endpoint
from latpcap.format import count, escaped, ms, percent, printable, us
from latpcap.vocabulary import STALL


def overall(d: Overall) -> str:
    """What is the answer for a capture or a stream?"""
    first = [_first_line(d)]
    lines = _no_exchanges(d) if "server" not in d else _judged(d)
    lines = [(0, d["headline"]), *lines]
    if d["dns"] is not None:
        lines.append((1 if names.matters(d["dns"]) else 2, f"  dns       {names.line(d['dns'])}"))
    said = [c.says for c in d["quality"] if c.most < 1 or c.check in _SAID]
    lines += [(0, f"  capture   {says}") for says in said[:2] if says not in d["headline"]]
    lines += [(1, f"  damaged   {sentence}") for sentence in d["damage"][:2]]
    added = [
        f"  {label:9} {says}"
        for label, source in (("strace", "strace"), ("log", "access_log"))
        for one in d.get("beside", [])
        if one["source"] == source
        for says in one["says"]
    ]
    return "\n".join(first + _kept(lines) + added)


def _judged(d: Overall) -> list[tuple[int, str]]:
    """The lines of an answer about requests, by what takes most of their time."""
    if d["lead"] is not None:
        return [*_opening(d), (0, _latency(d)), *_lead(d["lead"]), *_servers(d), *_also(d)]
    lead = headline.pushed(d)
    if lead is not None and headline.says(d, lead):
        return [*_opening(d), (0, _latency(d)), *push_words.lead(lead), *_servers(d), *_also(d)]
    if not d["findings"]:
        return _no_time(d)
    stalled = d["findings"][0].cause == STALL and d["verdict"] == STALL and "backend" not in d
    return _stall(d) if stalled else _other(d)


def _lead(found: Finding) -> list[tuple[int, str]]:
    """What stands behind a headline that is a finding's own: its frames, its fix, and how sure it is."""
    lines = []
    if found.worst_frames:
        chain = " > ".join(map(str, dict.fromkeys(found.worst_frames)))
        where = "" if found.worst_stream is None else f" (tcp.stream eq {found.worst_stream})"
        lines.append((0, f"  see       frames {chain}{where}"))
    if found.fix:
        lines.append((0, f"  fix       {found.fix}"))
    rival = f"; rival: {found.rival} ({found.rival_lost})" if found.rival else ""
    lines.append((0, f"  sure?     {graded(found.confidence)}{rival}"))
    return lines


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
    line = f"{name}: {count(d['frames'], 'frame')}, {streams}, {exchanges}, {_span(d['seconds'])}"
    return line + where.get(tuple(d["positions"]), "")


def _span(seconds: float) -> str:
    """How long it lasts; days are mostly of captures that were joined."""
    days = seconds / 86_400
    return f"{seconds:,.2f} s of traffic" if days < 2 else f"{days:,.1f} days from the first frame to the last"


def _no_exchanges(d: Overall) -> list[tuple[int, str]]:
    told: list[tuple[int, str]] = _lead(d["lead"]) if d["lead"] is not None else []
    if not d["streams"]:
        for row in d["skipped"][:3]:
            told.append((1, f"  skipped   {count(row['frames'], 'frame')} of {d['frames']:,}: {row['reason']}"))
        if d["pings"]:
            told.append((2, f"  probes    {count(d['pings'], 'ping')}, in the table probes with their round trips"))
        return told
    plain = headline.nothing_judged(d)
    if plain != d["headline"]:
        told.append((0, f"  requests  {plain[0].lower()}{plain[1:]}"))
    mute = [e for e in d["events"] if e.kind == "silence"]
    told += [(0, f"  silent    {e.says}") for e in mute[:2] if not headline.says(d, e)]
    floods = [e for e in d["events"] if e.cause == "syn_flood"]
    told += [(0, f"  flood     {_end(e)}: {e.says}") for e in floods if e.says and e.says not in d["headline"]]
    lead = headline.pushed(d)
    told += push_words.lead(lead) if lead is not None and headline.says(d, lead) else push_words.beside(d)
    rest = [e for e in d["events"] if e.kind in ("connection", "one_way", "setup") and e not in floods]
    rest = [e for e in rest if not headline.says(d, e) and not (d["scene"] == "scan" and e.kind == "connection")]
    told += [(2, f"  {graded(e.confidence).split()[0]:9} {e.says}") for e in rest[:4]]
    return told


def _no_time(d: Overall) -> list[tuple[int, str]]:
    return [(1, traffic.line(d["traffic"])), (0, _latency(d)), *push_words.beside(d)]


def _end(row: Finding) -> str:
    return endpoint(row.server, row.server_port)


def _latency(d: Overall) -> str:
    kind = "turn" if traffic.turns(d["traffic"]) else "request" if d["cut"] else "answered request"
    took = f"p50 {ms(d['p50_ms'])}, p99 {ms(d['p99_ms'])} ms" if d["complete"] > 1 else f"{ms(d['p50_ms'])} ms"
    parts = [f"{took} of {count(d['complete'], kind)}"]
    slow = d["slow"]
    parts.append(f"{slow['count']:,} slow ({headline.over(d)})")
    if d["cut"]:
        some = "" if d["cut"] == d["complete"] else f"{d['cut']:,} of them "
        parts.append(f"{some}not answered to the end: what was seen of {'it' if d['cut'] == 1 else 'them'}")
    if d["incomplete"]:
        parts.append(f"{d['incomplete']:,} incomplete{_goodbyes(d)}")
    return "  latency   " + "; ".join(parts)


def _servers(d: Overall) -> list[tuple[int, str]]:
    """The servers besides the first: those behind it, and as many as were asked for, or how many there are and what is
    slow there.
    """
    rows = d["servers"][1:]
    if d["shown"]:
        return [(0, f"  further   {_server(row)}") for row in rows[: d["shown"] - 1]]
    legs = [row for row in rows if row["behind"] == d["server"]]
    told = [(0, f"  behind    {_server({**row, 'behind': None})}") for row in legs[: show.MOST_LEGS]]
    rest = [row for row in rows if row not in legs[: show.MOST_LEGS]]
    if rest:
        slow = sum(row["slow"] for row in rest)
        where = f": {count(slow, 'slow request')} there" if slow else ": nothing is slow there"
        top = f" (--top {min(len(d['servers']), 10)} lists them)"
        told.append((1, f"  further   {count(len(rest), 'server')}{where}{top}"))
    return told


def _server(row: Row) -> str:
    """A server of the list in a line."""
    sure = f", {row['family']} ({row['grade']})" if row["family"] else ""
    behind = f", behind {row['behind']}" if row["behind"] else ""
    return (
        f"{row['server']}{behind}: {row['slow']:,} of {count(row['requests'], 'request')} slow, "
        f"p50 {ms(row['p50_ms'])}, p99 {ms(row['p99_ms'])} ms{sure}"
    )


def _families(d: Overall) -> list[tuple[int, str]]:
    """What takes the time of the slow requests, family by family, and of which causes each is made."""
    told: list[tuple[int, str]] = []
    for place, row in enumerate(d["families"][: show.MOST_FAMILIES]):
        if place and row["share"] < show.NEXT_SHARE:
            continue
        causes = [f"{name} {ms(spent)}" for name, spent in row["causes"].items() if spent >= show.NOTHING * row["ms"]]
        whose = "the slow requests' time" if headline.waited_for(d) else "the time"
        if d["slow"]["streams"]:
            whose += " that was waited for"
        lost = f"; {count(d['lost'], 'segment')} lost" if row["family"] == "loss" and d["lost"] else ""
        told.append((1, f"  {row['family']:9} {percent(row['share'])} of {whose}: {', '.join(causes)} ms{lost}"))
    return told


def _listed(d: Overall) -> list[str]:
    """The causes whose families have a line of their own."""
    rows = d["families"][: show.MOST_FAMILIES]
    return [cause for row in rows if row is rows[0] or row["share"] >= show.NEXT_SHARE for cause in row["causes"]]


def _queue(d: Overall) -> list[tuple[int, str]]:
    """Whom the requests waited for at the server."""
    rows = [e for e in d["events"] if e.kind == "queue" and _end(e) == d["server"]]
    return [(1, f"  queue     {e.says}") for e in rows]


def _goodbyes(d: Overall) -> str:
    """What of the incomplete ones needed no answer?"""
    if not d["goodbyes"]:
        return ""
    some = "" if d["goodbyes"] == d["incomplete"] else f"{d['goodbyes']:,} of them "
    return f" ({some}last words before the client's FIN)"


def _share(d: Overall) -> str:
    p50, p99 = d["share"]["p50"], d["share"]["p99"]
    kind = "turn" if traffic.turns(d["traffic"]) else "request"
    return (
        f"  share     {ms(p50['ms'])} of {ms(p50['of_ms'])} ms at p50 ({percent(p50['share'])}), "
        f"{ms(p99['ms'])} of {ms(p99['of_ms'])} ms at p99 ({percent(p99['share'])}); "
        f"{d['hit']:,} of {count(d['complete'], kind)}"
    )


def _stall(d: Overall) -> list[tuple[int, str]]:
    t = d["typical"]
    found = d["findings"][0]
    sender, receiver = d["owners"]["nagle"], d["owners"]["delayed_ack"]
    pool = d["senders"][sender]
    lines = [*_opening(d), (0, _latency(d)), (0, _share(d))]
    round_trips = (pool.sender_rtt_ms or 0.0) + (pool.receiver_rtt_ms or 0.0)
    path = f"; {ms(round_trips)} ms of each wait are the path's" if round_trips > show.PATH_OF_WAIT * t["ms"] else ""
    if "bytes" in t:
        first, second = t["bytes"]
        one, other = count(second, "byte"), count(first, "byte")
        words = f"a small segment ({one}) waits until the one before it ({other}) is acknowledged"
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
    if d["fix"]:
        lines.append((0, f"  fix       {d['fix']}"))
    lines += _gain(d)
    lines.append((0, _sure_stall(d, pool)))
    lines += _next(d)
    lines += _unknown(d, sender)
    return lines + _servers(d) + _also(d)


def _timer(found: Finding) -> str:
    """What the receiver's timer is, as far as its holds tell."""
    if found.timer_ms is None:
        shorter = ", shorter than Linux's own: a route with rto_min" if found.os_hint == SHORTER else ""
        return f"; they end on a {found.tick_ms:.4g} ms tick: a kernel timer{shorter}" if found.tick_ms else ""
    tick = f" on a {found.tick_ms:.4g} ms tick" if found.tick_ms else ""
    whose = f" ({found.os_hint.partition(' (')[0]})" if found.os_hint else ""
    return f"; a {found.timer_ms:.0f} ms timer{tick}{whose}"


def _other(d: Overall) -> list[tuple[int, str]]:
    found = d["findings"][0]
    name = found.cause
    t = d["typical"]
    told = found.grade != "unknown" or name in ("unknown", "capture_gap")
    lines = [*_opening(d), (0, _latency(d)), *(_families(d) if told else []), *_queue(d)]
    if t["frames"] and told:
        chain = " > ".join(str(f) for f in dict.fromkeys(t["frames"]))
        place = f"to {d['backend']['server']}" if "backend" in d else f"tcp.stream eq {t['stream']}"
        lines.append((0, f"  see       frames {chain} ({place}): {_shown(t)} of {name}"))
    lines += _slowest(d)
    lines += _not(d, skip=(*(row.cause for row in d["findings"][:3]), *_listed(d)))
    late = headline.asked_late(d)
    if d["fix"]:
        lines.append((0, f"  fix       {d['fix']}"))
    lines += _gain(d)
    rival = f"; rival: {found.rival} ({found.rival_lost})" if found.rival else ""
    sure = "no" if found.grade == "unknown" else graded(d["confidence"])
    if late:
        sure, rival = graded(late.confidence), ""
    lines.append((0, f"  sure?     {sure}{rival}"))
    lines += _unknown(d, None)
    return lines + _servers(d) + _also(d)


def _opening(d: Overall) -> list[tuple[int, str]]:
    """What was asked; and what of the requests is said behind a headline that is about something else."""
    lines = [(1, traffic.line(d["traffic"]))]
    plain, lead = headline.of_requests(d), d["lead"]
    here = lead is not None and lead.kind == "transfer" and endpoint(lead.server, lead.server_port) == d["server"]
    if here or plain == d["headline"]:  # what limits a transfer is what its request waited for
        return lines
    return [(0, f"  requests  {plain[0].lower()}{plain[1:]}"), *lines]


def _shown(t: Typical) -> str:
    """How much time do these frames show? They are those of the longest piece."""
    if t["pieces"] == 1 or t["longest_ms"] > show.SAME * t["ms"]:
        return f"{ms(t['ms'])} ms"
    return f"{ms(t['longest_ms'])} ms, the longest of {t['pieces']:,} pieces that make {ms(t['ms'])} ms"


def _slowest(d: Overall) -> list[tuple[int, str]]:
    """The slowest request by its name, with its frames."""
    worst = d["slow"]["worst"]
    if worst is None:
        return []
    told = worst["cause"] and d["findings"][0].grade != "unknown"
    why = f", {ms(worst['cause_ms'])} ms of it {worst['cause']}" if told else ""
    chain = " > ".join(str(f) for f in worst["frames"])
    of = "of the slow ones " if worst["latency_ms"] < show.SAME * d["p99_ms"] else ""
    return [
        (0, f"  slowest   {of}{worst['name']} took {ms(worst['latency_ms'])} ms{why}: frames {chain} "
            f"(tcp.stream eq {worst['stream']})")
    ]  # fmt: skip


def _gain(d: Overall) -> list[tuple[int, str]]:
    """What the fix would be worth, as a range, and what the limit is then."""
    row = d["findings"][0]
    low, high, limit = row.gain_p50_low_ms, row.gain_p50_high_ms, row.gain_limit
    if not d["fix"] or low is None or row.fix_side is None:
        return []
    if d["share"]["p50"]["share"] < show.RARE_OF_P50:  # the usual ones have none of it to lose
        at_best = row.gain_p99_low_ms
        if at_best is None or at_best > show.SAME * d["p99_ms"]:
            return []
        return [(0, f"  gain      p99 at best {ms(at_best)} ms instead of {ms(d['p99_ms'])}")]
    if low > show.SAME * d["p50_ms"]:
        return []
    if high is None or row.gain_open:
        span = f"at best {ms(low)}"
    else:
        span = ms(low) if ms(low) == ms(high) else f"{ms(low)}-{ms(high)}"
    text = f"  gain      p50 {span} ms instead of {ms(d['p50_ms'])}"
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
    parts = [f"{r.cause} ({r.owner}, {percent(r.share)} of all time{_there(d, r)})" for r in rows]
    return [(1, f"  next      {', '.join(parts)}")] if parts else []


def _there(d: Overall, row: Finding) -> str:
    """A stall of the other side as well: what mends it there."""
    other = row.cause == STALL and d["verdict"] == STALL and row.owner == SIDES.get(d["owners"]["nagle"])
    return "; TCP_NODELAY there, too, mends it" if other else ""


def _also(d: Overall) -> list[tuple[int, str]]:
    """What is there and does not matter, or matters elsewhere."""
    parts = []
    if d.get("first_fast"):
        parts.append(f"the first exchange of {count(d['first_fast'], 'stream')} was fast (quick ACKs at the start)")
    if d.get("fin_released"):
        parts.append(f"{count(d['fin_released'], 'wait')} ended by the peer's FIN, not by its timer")
    parts += [e.says for e in d["events"] if e.kind == "change" and e.says][:1]
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
        rows = [e for e in d["events"] if e.cause == cause]
        number = sum(e.streams or 0 for e in rows)
        if number:
            parts.append(f"{count(number, 'connection')} {words}{headline.whose(d, rows)}")
    if d["pauses"]["count"]:
        times = "once" if d["pauses"]["count"] == 1 else f"{d['pauses']['count']:,} times"
        long = ms(d["pauses"]["median_ms"])
        # elsewhere the path may have held up what follows
        seen = f"clients paused {long} ms between requests"
        seen = seen if d["positions"] == ["at_client"] else f"{long} ms passed from an answer to the next request"
        parts.append(f"{seen}, {times}: no part of a latency")
    idle = [e for e in d["events"] if e.kind == "setup" and (e.max_ms or 0.0) > d["p50_ms"] and _end(e) == d["server"]]
    before = [(0, f"  before    {e.says} (tcp.stream eq {e.worst_stream})") for e in idle[:1]]
    before = [] if headline.asked_late(d) else before
    floods = [(1, f"  suspected {_end(e)}: {e.says}") for e in d["events"] if e.kind == "one_way"][:1]
    floods += [(0, f"  flood     {_end(e)}: {e.says}") for e in d["events"] if e.cause == "syn_flood"]
    mute = [e for e in d["events"] if e.kind == "silence" and not headline.says(d, e)]
    floods += [(0, f"  silent    {e.says}") for e in mute[:2]]
    waits = sorted((e for e in d["events"] if e.kind == "wait" and e is not d["lead"]), key=harm.of, reverse=True)
    floods += [(0, f"  waited    {e.says}") for e in waits[:2]]
    moved = [e for e in d["events"] if e.kind == "transfer" and e is not d["lead"]]
    floods += [(1, f"  transfer  {e.says}") for e in moved[:2]]
    return push_words.beside(d) + floods + before + ([(1, "  also      " + "; ".join(parts))] if parts else [])


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
    repair = sum(spent.get(name, 0.0) for name in _REPAIRS)
    if not d["lost"] and not repair:
        parts.append("losses (none)")
    said = [(1, "  not       " + ", ".join(parts))] if parts else []
    named = any(f["family"] == "loss" and f["share"] >= show.NEXT_SHARE for f in d["families"])
    if d["lost"] and not named and "doubles" not in {c.check for c in d["quality"]}:
        took = (
            f", repaired in {percent(repair / total)} of the time" if repair else "; no request waited for their repair"
        )
        said.append((1, f"  lost      {count(d['lost'], 'segment')}{took}"))
    return said


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
    text = f"  sure?     {graded(d['confidence'])}"
    limit = pool.release_p95_ms
    if limit is not None:
        which = f"95 % of {pool.held:,} freed segments" if pool.held > 1 else "the one freed segment"
        if pool.tight_ms is not None and limit > pool.tight_ms and pool.tight:
            limit, which = pool.tight_ms, f"{pool.tight:,} of {pool.held:,} freed segments"
        path = " (the path taken off)" if (pool.sender_rtt_ms or 0.0) > show.PATH_OF_RELEASE * limit else ""
        text += f": {which} left within {us(limit * 1000)} of the ACK{path}"
    if pool.slope is not None and abs(pool.slope - 1) < show.SLOPE_NEAR:
        text += f"; gaps follow the ACKs (slope {pool.slope:.2f}, a pause gives 0)"
    found = d["findings"][0]
    if found.grade != "proven":
        text += f"; rival: {found.rival} ({found.rival_lost})"
    return text


def _unknown(d: Overall, sender: str | None) -> list[tuple[int, str]]:
    spent = sum(c["total_ms"] for c in d["causes"] if c["cause"] in ("unknown", "capture_gap"))
    share = spent / d["total_ms"] if d["total_ms"] else 0.0
    listed = sender is None and any(name in _listed(d) for name in ("unknown", "capture_gap"))
    parts = [f"{percent(share)} of the time has no named cause"] if share >= show.NOTHING and not listed else []
    if sender:
        parts.append(f"how long the {sender}'s program took between its two writes: the wait hides it")
    return [(2, "  unknown   " + "; ".join(parts))] if parts else []
