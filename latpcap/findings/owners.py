"""What does each owner need to know? A paragraph for the team that runs what the time went to, to paste into a ticket.

Nothing is judged here: the rows are the answer's findings, the sentences the catalogue's.
"""

from __future__ import annotations

import shlex

from latpcap import presentation as show
from latpcap.account.totals import endpoint
from latpcap.findings import harm
from latpcap.findings.answer import Overall
from latpcap.findings.schema import Finding, graded
from latpcap.words import joined, line, say, sentence

_EACH = 3
"""Findings in a paragraph, the worst first."""
_OURS = ("server", "client")
"""Owners who are an end of the connection: each server has a paragraph of its own."""


def paragraphs(d: Overall, headline: str) -> list[str]:
    """A paragraph for each owner of this answer, the one of the headline first; what nobody waited for has none."""
    lead = d["lead"] or harm.pushed(d)
    if lead is None and d["findings"]:
        lead = harm.asked_late(d) or (d["findings"][0] if d["slow"]["count"] else None)
    first = [] if lead is None else [lead]
    parts = d["findings"] if lead is None or lead.kind == "latency" else []  # else they are parts of what leads
    rows = [*first, *(row for row in [*parts, *d["events"]] if row is not lead)]
    teams: dict[tuple[str, str], list[Finding]] = {}
    for row in rows:
        if row is lead or _waited(row, d):
            end = endpoint(row.server, row.server_port) if row.owner in _OURS and row.server else ""
            teams.setdefault((row.owner, end), []).append(row)
    found = ["\n".join(_paragraph(d, owner, end, of, lead, headline)) for (owner, end), of in teams.items()]
    return found or [headline]


def _waited(row: Finding, d: Overall) -> bool:
    """Did somebody wait for it, longer than what is called slow, and is it known for what?"""
    if row.grade in ("harmless", "unknown") or row.owner in ("capture", "unknown"):
        return False
    if row.kind != "latency":
        return row.harm is not None
    return bool((row.share or 0.0) >= show.NEXT_SHARE and (row.max_ms or 0.0) >= d["slow"]["limit_ms"])


def _paragraph(d: Overall, owner: str, end: str, rows: list[Finding], lead: Finding | None, headline: str) -> list[str]:
    lines = [say("for_owner_of" if end else "for_owner", owner=owner, end=end)]
    for row in rows[:_EACH]:
        what = headline if row is lead else sentence(row.says) if row.says else _took(row)
        frames = row.worst_frames or row.typical_frames
        lines.append(line("what", what))
        lines.append(line("proof", joined([graded(row.confidence), _frames(frames), row.rival_lost or ""])))
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


def _frames(frames: tuple[int, ...]) -> str:
    return say("see", frames=" > ".join(map(str, dict.fromkeys(frames)))) if frames else ""


def _check(file: str, row: Finding, frames: tuple[int, ...]) -> str:
    """A command that shows it, to be pasted where the capture lies."""
    name = shlex.quote(file)
    if row.typical_exchange is not None:
        return say("check_flow", file=name, exchange=row.typical_exchange)
    chosen = row.filter or (f"frame.number in {{{', '.join(map(str, dict.fromkeys(frames)))}}}" if frames else "")
    return say("check_frames", file=name, filter=shlex.quote(chosen)) if chosen else ""
