"""How is it said that messages waited which nobody had asked for? Findings of the kind push in, lines out."""

from __future__ import annotations

from latpcap.findings import headline
from latpcap.findings.answer import Overall
from latpcap.findings.schema import Finding, graded
from latpcap.format import ms

MOST = 2
"""So many of them have lines of their own."""


def lead(found: Finding) -> list[tuple[int, str]]:
    """What stands behind the headline, which has said it."""
    waited = f"a segment, its ACK, and what waited {ms(found.typical_ms or 0.0)} ms for that"
    lines = [(0, f"  see       {_frames(found)}: {waited}")]
    if found.nodelay != "unknown":
        options = f"{found.sender} TCP_NODELAY {found.nodelay}; {found.held_by} delayed ACK {found.delayed_ack}"
        lines.append((1, f"  options   {options}"))
    lines.append((0, f"  fix       {found.fix}"))
    lines.append((0, f"  gain      {_gain(found)}"))
    lines.append((0, f"  sure?     {graded(found.confidence)}"))
    return lines


def beside(d: Overall) -> list[tuple[int, str]]:
    """Those that the headline does not speak of."""
    rows = [e for e in d["events"] if e.kind == "push" and not headline.says(d, e)]
    return [(0, f"  pushes    {e.says}, {graded(e.confidence)}: {_frames(e)}; {e.fix}") for e in rows[:MOST]]


def _frames(found: Finding) -> str:
    chain = " > ".join(map(str, dict.fromkeys(found.typical_frames)))
    return f"frames {chain} (tcp.stream eq {found.typical_stream})"


def _gain(found: Finding) -> str:
    """How much sooner each leaves: as long as it waited, of eight in ten; where that is only probable, at best."""
    low, high = ms(found.p10_ms or 0.0), ms(found.p90_ms or 0.0)
    if found.grade != "proven":
        return f"each leaves at best {high} ms sooner"
    return f"each leaves {low if low == high else f'{low}-{high}'} ms sooner"
