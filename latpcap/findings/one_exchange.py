"""What is the answer for one exchange, in words? Reads what making.py made of it."""

from __future__ import annotations

from latpcap.findings import presentation as show
from latpcap.findings.answer import OneExchange
from latpcap.findings.schema import graded
from latpcap.format import asked, ms, printable


def said(d: OneExchange) -> str:
    """What is the answer for one exchange? Its pieces in order of time, small ones put together."""
    name = f"{asked(d['method'], _short(d['target']))} {d['status'] or ''}".strip()
    place = f"tcp.stream eq {d['stream']}, number {d['index']} on it"
    head = f"exchange {d['exchange']} ({place}){': ' + name if name else ''}"
    if not d["complete"]:
        head += f"; not complete (cut by {d['cut_by']})"
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
            f"({c['rule']}, {graded(c['confidence'])})"
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
