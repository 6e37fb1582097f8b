"""How is an answer said in words? The numbers of `Why.to_dict()` in, at most 15 lines of text out.

Nothing is computed here that is not in the numbers: whoever reads the JSON can check every line.
"""

from __future__ import annotations

from typing import Any

from latpcap.vocabulary import CAUSES, PROVEN

MOST_LINES = 15


def overall(d: dict[str, Any]) -> str:
    """What is the answer for a capture or a stream?"""
    lines = [_first_line(d)]
    if d["verdict"] == "no_exchanges":
        lines += _no_exchanges(d)
    else:
        lines += _stall(d) if d["verdict"] == "nagle + delayed_ack" else _other(d)
    lines += [f"  damaged   {sentence}" for sentence in d["damage"][:2]]
    return "\n".join(lines[:MOST_LINES])


def _first_line(d: dict[str, Any]) -> str:
    streams, exchanges = _count(d["streams"], "TCP stream"), _count(d["exchanges"], "exchange")
    where = {("at_client",): ", captured at the client", ("at_server",): ", captured at the server"}
    line = f"{d['file']}: {_count(d['frames'], 'frame')}, {streams}, {exchanges} in {d['seconds']:.2f} s"
    return line + where.get(tuple(d["positions"]), "")


def _no_exchanges(d: dict[str, Any]) -> list[str]:
    if not d["streams"]:
        return ["No TCP stream: nothing that latpcap could judge."]
    silent = d["silent"]
    words = {
        "unanswered": "SYN without an answer",
        "without_data": "opened or refused without any data",
        "without_answer": "data but no complete answer",
    }
    parts = [f"{silent[k]:,} {words[k]}" for k in words if silent.get(k)]
    scope = "" if d["scope"] is None else f" on tcp.stream {d['scope']}"
    return [f"No complete request and answer{scope}, so nothing was slow or fast: {'; '.join(parts)}."]


def _latency(d: dict[str, Any]) -> str:
    kind = "exchange" if d["cut"] else "complete exchange"
    parts = [f"p50 {_ms(d['p50_ms'])}, p99 {_ms(d['p99_ms'])} ms of {_count(d['complete'], kind)}"]
    if d["cut"]:
        parts.append("the capture ends before their answers do")
    elif d["incomplete"]:
        parts.append(f"{d['incomplete']:,} incomplete")
    if d["servers"] > 1:
        parts.append(f"{d['servers'] - 1:,} further server{'s' if d['servers'] > 2 else ''} took less time")
    return "  latency   " + "; ".join(parts)


def _share(d: dict[str, Any]) -> str:
    p50, p99 = d["share"]["p50"], d["share"]["p99"]
    return (
        f"{_ms(p50['ms'])} of {_ms(p50['of_ms'])} ms at p50 ({_percent(p50['share'])}), "
        f"{_ms(p99['ms'])} of {_ms(p99['of_ms'])} ms at p99 ({_percent(p99['share'])})"
    )


def _stall(d: dict[str, Any]) -> list[str]:
    t = d["typical"]
    sender = t.get("sender", "server")
    receiver = "client" if sender == "server" else "server"
    pool = d["senders"][sender]
    what = {"server": "its answers wait", "client": "its clients' requests wait"}[sender]
    who = {"client": "the clients hold", "server": "it holds"}[receiver]
    likely = "" if d["proven"] else "probably "
    lines = [
        f"{d['server']} is {likely}slow because {what} for acknowledgements that {who} back.",
        _latency(d),
        f"  share     {_share(d)}; {d['hit']:,} of {d['complete']:,} exchanges",
    ]
    if "bytes" in t:
        first, second = t["bytes"]
        lines.append(
            f"  {sender:9} nagle: a small segment ({second:,} bytes) waits until the one before it "
            f"({first:,} bytes) is acknowledged"
        )
    tick = f"; they end on a {pool['tick_ms']:.4g} ms tick: a kernel timer" if pool.get("tick_ms") else ""
    if pool.get("hold_median_ms") is not None:
        lines.append(
            f"  {receiver:9} delayed_ack: held {pool['hold_min_ms']:.1f}-{pool['hold_max_ms']:.1f} ms, "
            f"median {pool['hold_median_ms']:.1f}{tick}"
        )
    if "bytes" in t:
        a, b, c = t["frames"]
        lines.append(
            f"  see       frames {a} > {b} > {c} (tcp.stream eq {t['stream']}): segment, its ACK "
            f"{t['ack_after_ms']:.1f} ms later, next segment {_us(t['release_us'])} after that"
        )
    lines.append(_not(d, skip=("nagle", "delayed_ack")))
    lines.append(_options(d, sender, receiver))
    lines.append(f"  fix       {d['fix']}")
    lines.append(_sure(d, pool))
    lines.append(_unknown(d, sender))
    also = []
    if d["first_fast"]:
        also.append(f"{_count(d['first_fast'], 'first exchange')} of streams fast (quick ACKs at the start)")
    if d["fin_released"]:
        also.append(f"{_count(d['fin_released'], 'wait')} ended by the peer's FIN, not by its timer")
    if also:
        lines.append("  also      " + "; ".join(also))
    return lines


def _other(d: dict[str, Any]) -> list[str]:
    name = d["verdict"]
    cause = CAUSES[name]
    t = d["typical"]
    lines = [
        f"{d['server']}: most time goes to {name}: {cause.meaning}.",
        _latency(d),
        f"  share     {_share(d)}; {d['hit']:,} of {d['complete']:,} exchanges",
    ]
    lines += [
        f"  {c['owner']:9} {c['cause']}: {_ms(c['total_ms'])} ms in {_count(c['exchanges'], 'exchange')} "
        f"({_percent(c['total_ms'] / d['total_ms'] if d['total_ms'] else 0)} of all time)"
        for c in d["causes"][:4]
    ]
    if t["frames"]:
        chain = " > ".join(str(f) for f in t["frames"])
        lines.append(f"  see       frames {chain} (tcp.stream eq {t['stream']}): {_ms(t['ms'])} ms of {name}")
    lines.append(_not(d, skip=tuple(c["cause"] for c in d["causes"][:4])))
    if d["fix"]:
        lines.append(f"  fix       {d['fix']}")
    stalls = [s for s, p in d["senders"].items() if p["refuted"] and p["verdict"] in ("nodelay", "pause")]
    for side in stalls[:1]:
        pool = d["senders"][side]
        lines.append(
            f"  no stall  Nagle does not act on the {side}: {pool['refuted']:,} small segments left over "
            f"unacknowledged ones"
            if pool["verdict"] == "nodelay"
            else f"  no stall  the {side}'s pauses do not follow the ACKs they end near: its program paused"
        )
    lines.append(f"  sure?     {_grade(d['confidence'])}")
    lines.append(_unknown(d, None))
    return lines


def _not(d: dict[str, Any], skip: tuple[str, ...]) -> str:
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
        if name not in skip and spent.get(name, 0.0) / total < 0.2:
            parts.append(f"{words} ({_percent(spent.get(name, 0.0) / total)})")
    lost = d["retransmissions"]
    parts.append("losses (no retransmission)" if not lost else f"{_count(lost, 'retransmission')} seen")
    return "  not       " + ", ".join(parts)


def _options(d: dict[str, Any], sender: str, receiver: str) -> str:
    pool = d["senders"][sender]
    other = d["senders"][receiver]
    nodelay = {"nagle": "off", "nodelay": "on"}.get(pool["verdict"], "unknown")
    text = f"  options   {sender} TCP_NODELAY {nodelay} ({pool['held']:,} for, {pool['refuted']:,} against)"
    back = {"nagle": "off", "nodelay": "on"}.get(other["verdict"], "unknown")
    why = " (it never had to choose)" if back == "unknown" and not other["opportunities"] else ""
    return f"{text}; {receiver} TCP_NODELAY {back}{why}"


def _sure(d: dict[str, Any], pool: dict[str, Any]) -> str:
    text = f"  sure?     {_grade(d['confidence'])}"
    if pool.get("release_p95_ms") is not None:
        within = _us(pool["release_p95_ms"] * 1000)
        text += f": 95 % of {pool['held']:,} freed segments left within {within} of the ACK"
    if pool.get("slope") is not None:
        text += f"; gaps follow the ACKs (slope {pool['slope']:.2f}, a pause gives 0)"
    return text


def _grade(confidence: float) -> str:
    return f"{'proven' if confidence >= PROVEN else 'probable'} ({confidence:.2f})"


def _unknown(d: dict[str, Any], sender: str | None) -> str:
    spent = sum(c["total_ms"] for c in d["causes"] if c["cause"] in ("unknown", "capture_gap"))
    share = _percent(spent / d["total_ms"] if d["total_ms"] else 0.0)
    text = f"  unknown   {share} of the time has no named cause"
    if sender:
        text += f"; the {sender}'s own time between its two writes hides in the wait"
    return text


def of_exchange(d: dict[str, Any]) -> str:
    """What is the answer for one exchange? Its pieces in order of time, small ones put together."""
    name = " ".join(str(p) for p in (d["method"], _short(d["target"]), d["status"]) if p is not None)
    place = f"tcp.stream eq {d['stream']}, number {d['index']} on it"
    head = f"exchange {d['exchange']} ({place}){': ' + name if name else ''}"
    if not d["complete"]:
        head += f"; not complete (cut by {d['cut_by'] or 'an unknown end'})"
    total = sum(c["duration_ms"] for c in d["causes"])
    lines = [
        head,
        f"  {_ms(total)} ms from frame {d['request_first_frame']} to {d['response_last_frame'] or 'the end'}",
    ]
    room = MOST_LINES - len(lines) - 1
    shown = sorted(range(len(d["causes"])), key=lambda i: -d["causes"][i]["duration_ms"])[:room]
    for i in sorted(shown):
        c = d["causes"][i]
        inside = f" inside {c['parent']}" if c["parent"] else ""
        chain = " > ".join(str(f) for f in c["evidence"])
        lines.append(
            f"  {_ms(c['duration_ms']):>9} ms  {c['cause'] + inside:27} {c['owner']:8} frames {chain}  "
            f"({c['rule']}, {_grade(c['confidence'])})"
        )
    if len(shown) < len(d["causes"]):
        rest = [c["duration_ms"] for i, c in enumerate(d["causes"]) if i not in shown]
        lines.append(f"  {_ms(sum(rest)):>9} ms  in {len(rest)} shorter pieces")
    return "\n".join(lines)


def _short(target: str | None) -> str | None:
    """A request's target as it may stand on a terminal: cut, and without what would write there by itself."""
    if target is None:
        return None
    safe = printable(target)
    return safe if len(safe) <= 60 else safe[:59] + "…"


def printable(text: str) -> str:
    """What of this text may stand on a terminal? Control characters and the like become "�"."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _ms(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.3f}"


def _us(value: float) -> str:
    return f"{value:.0f} us" if value < 1000 else f"{value / 1000:.1f} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 or share == 0 else f"{100 * share:.1f} %"
