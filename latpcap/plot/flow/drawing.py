"""Draws the lines, texts and colours of a flow graph at the places that layout.py computed (in em, y downwards)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from latpcap import words
from latpcap.format import ms
from latpcap.plot.flow import layout
from latpcap.plot.flow.layout import (
    BAND,
    INSET,
    LANE,
    LINE,
    MARGIN,
    PORT,
    ROW,
    SMALL,
    TINY,
    UNDER,
    Brace,
    Break,
    Layout,
    Slot,
    frames_text,
    nice,
    tag_width,
    upper_frame,
)
from latpcap.plot.flow.packet_rows import FlowRow
from latpcap.plot.flow.wait_marks import FlowMark
from latpcap.plot.pen import BLACK, GREY, RED, WHITE, Ink
from latpcap.plot.text import width_of, wrap
from latpcap.vocabulary import CAUSES

MESSAGE_COLOUR = "#1F4E8C"
"""Colour of a request, or of a status."""
PASTELS = ("#EAF1FB", "#FDF3DF", "#E9F6EA", "#F7EAF4", "#F3F0E6", "#E5F5F6", "#FBE9E7", "#EEEBFA", "#F4F7DC", "#EFEFEF")
"""Backgrounds of streams."""
COLOURS = (WHITE, BLACK, GREY, RED, MESSAGE_COLOUR, *PASTELS, *(cause.colour for cause in CAUSES.values()))
"""All colours of a flow graph; they stay exact in the palette of a PNG."""
BAR, BAR_ROOM = 2.6, 7.0
"""Greatest height of the scale's bar, and width of the bar and its words, in em."""


def colour_of(cause: str | None) -> str:
    """Return the colour of a cause; grey for none."""
    return GREY if cause is None else CAUSES[cause].colour


def draw_body(pen: Ink, page: Layout, rows: Sequence[FlowRow]) -> None:
    """Draw heads, backgrounds, lifelines, rows and marks."""
    for number, line in enumerate(page.title):
        pen.text(MARGIN, MARGIN + LINE * 1.1 * number + 1.1, line, size=1.1, bold=True)
    for x, y, line in page.nodes:
        pen.text(x, y, line, ha="center")
    pen.text(page.time_x, page.head_y, words.say("flow_time"))
    if page.comments:
        pen.text(page.comment_x, page.head_y, words.say("flow_comment"))

    pastels = stream_colours(rows)
    y = page.body[0]
    for row, arrow_y in zip(rows, page.row_y, strict=True):  # a wait has the background of the row that ends it
        bottom = arrow_y + UNDER
        pen.box(0, y, page.width, bottom, pastels[row.stream])
        y = bottom
    for x, top in zip(page.x, page.lifeline_tops, strict=True):
        pen.line((x, x), (top + 0.1, page.body[1]), colour=BLACK, alpha=0.5, dashed=True, zorder=2)
    for row, y in zip(rows, page.row_y, strict=True):
        _draw_row(pen, page, row, y, pastels[row.stream])
    for slot in page.slots:
        _draw_slot(pen, page, slot, pastels[rows[slot.mark.lower].stream], rows)
    for brace in page.braces:
        _draw_brace(pen, brace, page, pastels[brace.bracket.stream])
    for gap in page.breaks:
        _draw_break(pen, page, gap)


def _draw_row(pen: Ink, page: Layout, row: FlowRow, y: float, background: str) -> None:
    """Draw a packet: its time, comment, arrow, ports and label."""
    x0, x1 = page.x[row.source], page.x[row.target]
    sport, dport = row.sport, row.dport
    if row.source == row.target:  # an address that sends to itself
        step = 0.5 * (page.x[1] - page.x[0] if len(page.x) > 1 else 15.0)
        x0 = x1 - step if 0 < row.source == len(page.x) - 1 else x1 + step
    left, right = (sport, dport) if x0 < x1 else (dport, sport)
    pen.text(page.time_x, y + 0.3, row.time)
    if row.since:
        pen.text(page.since_x, y + 0.3, row.since, size=TINY, colour=GREY)
    if page.comments:
        pen.text(page.comment_x, y + 0.3, row.comment, size=SMALL)
    # the lifelines of other hosts, and their bands, run under the texts
    behind = background if len(page.x) > 2 else None
    tag, label = tag_width(row), width_of(row.label)
    centre = layout.words_centre(page, x0, x1, label + tag)
    pen.text(centre - tag / 2, y - 0.45, row.label, ha="center", behind=behind)
    text_x = centre + (label - tag) / 2 + 0.8
    colour = BLACK if row.cause is None else colour_of(row.cause)
    for text, tint, bold in ((row.message, MESSAGE_COLOUR, False), (row.fact, RED, True), (row.tag, colour, True)):
        if text:
            pen.text(text_x, y - 0.45, text, size=SMALL, colour=tint, bold=bold, behind=behind)
            text_x += width_of(text, SMALL, bold=bold) + 0.8
    width = 0.08 if row.cause is None else 0.17
    pen.arrow(x0, x1, y, colour, width, f"frame-{row.frame}")
    if row.packets > 1:  # a second arrowhead marks several packets
        pen.arrow(x0, x1 - 0.9 if x1 > x0 else x1 + 0.9, y, colour, width, "")
    if row.sport and row.dport:
        pen.text(min(x0, x1) - 0.5, y + 0.28, str(left), size=PORT, ha="right", behind=behind)
        pen.text(max(x0, x1) + 0.5, y + 0.28, str(right), size=PORT, behind=behind)


def _draw_slot(pen: Ink, page: Layout, slot: Slot, background: str, rows: Sequence[FlowRow]) -> None:
    """Draw a wait between two rows: its bands, or its text alone where it has none."""
    wait = slot.mark
    gid = f"wait-{upper_frame(wait, rows)}-{rows[wait.lower].frame}"
    y = slot.y - LINE * (slot.lines - 1) / 2 + 0.36
    if not slot.bands:
        left, right = sorted((page.x[wait.client], page.x[wait.server]))
        half = (width_of(wait.text) + BAND + 0.45) / 2
        x = (left + right) / 2 - half if left != right else left + INSET
        pen.text(x + BAND + 0.45, y, wait.text, colour=BLACK if wait.cause else GREY, behind=background)
        pen.box(x, slot.y - 0.75, x + BAND, slot.y + 0.75, colour_of(wait.cause), 3, gid)
    for number, band in enumerate(slot.bands):
        x = band.x + band.inward * LANE * band.lane - BAND / 2
        pen.box(x, band.top, x + BAND, band.bottom, colour_of(band.cause), 3, gid if number == 0 else f"{gid}-waiter")
        x, side = layout.band_words(page, band)
        base = y + LINE * (slot.lines - 1) * number
        pen.text(x, base, band.words, ha="left" if side > 0 else "right", behind=background)
    if page.comments:
        pen.text(page.comment_x, slot.y + 0.36, frames_text(wait, rows), size=SMALL, colour=GREY)


def _draw_brace(pen: Ink, brace: Brace, page: Layout, background: str) -> None:
    """Draw a bracket with its words above its first row. An end on another page has no hook. The words hide a
    lifeline under them, but not a band, which would seem to end at the words.
    """
    bracket = brace.bracket
    pen.line((brace.x, brace.x), (brace.top, brace.bottom), colour=GREY, width=0.12, gid=f"exchange-{bracket.upper}")
    for y, hook in ((brace.top, not bracket.begun), (brace.bottom, not bracket.continued)):
        if hook:
            pen.line((brace.x - 0.06, brace.x + 0.4), (y, y), colour=GREY, width=0.12)
    text = words.say("flow_continued", text=bracket.text) if bracket.begun else bracket.text
    bands = (band for slot in page.slots for band in slot.bands)
    crossed = any(band.top < brace.text_y < band.bottom + 1 for band in bands)
    tint, behind = (BLACK, None) if crossed else (GREY, background)
    pen.text(page.time_x, brace.text_y, text, size=SMALL, colour=tint, behind=behind)


def _draw_break(pen: Ink, page: Layout, gap: Break) -> None:
    """Draw two slanted strokes over each lifeline in a gap that is not to scale, and its true duration."""
    y = gap.top + (gap.bottom - gap.top) * 0.8
    for x in page.x:
        for shift in (-0.25, 0.25):
            ends = (y + shift + 0.3, y + shift - 0.3)
            pen.line((x - 0.7, x + 0.7), ends, colour=WHITE, width=0.3, zorder=6)
            pen.line((x - 0.7, x + 0.7), ends, colour=BLACK, width=0.1, zorder=7, gid="break")
    pen.text(page.time_x, y + 0.3, words.say("flow_cut", time=f"{gap.ns / 1e6:,.1f} ms"), size=SMALL, colour=GREY)


def stream_colours(rows: Sequence[FlowRow]) -> dict[int, str]:
    """Return the background of each stream, equal on every page."""
    streams = dict.fromkeys(row.stream for row in rows)
    return {stream: PASTELS[stream % len(PASTELS)] if stream >= 0 else WHITE for stream in streams}


@dataclass(frozen=True, slots=True)
class FootLine:
    """A piece of a line of the footer, `x` em from the left: a coloured square, a bold name, and words."""

    words: str
    name: str = ""
    colour: str | None = None
    tint: str = BLACK
    size: float = SMALL
    x: float = 0.0

    @property
    def width(self) -> float:
        """Width in em."""
        name = width_of(self.name, self.size, bold=True) + 0.8 if self.name else 0.0
        return (1.4 if self.colour else 0.0) + name + width_of(self.words, self.size)


def footer(
    note: str,
    status: str,
    rows: Sequence[FlowRow],
    marks: Sequence[FlowMark],
    width: float,
    em_per_ns: float | None = None,
) -> list[FootLine]:
    """Return the lines under the graph: rows that are not shown, counts, and the meaning of the colours."""
    room = width - 2 * MARGIN - (BAR_ROOM if em_per_ns else 0)
    if em_per_ns:
        row_ms = ROW / em_per_ns / 1e6
        status += words.say("flow_to_scale", time=f"{f'{row_ms:.2g}' if row_ms < 99.5 else ms(row_ms)} ms")
    lines = [FootLine(words=line, tint=RED, size=0.95) for line in wrap(note, room, 0.95)] if note else []
    lines += [FootLine(words=line, tint=GREY) for line in wrap(status, room, SMALL)]
    pastels = stream_colours(rows)
    if len(pastels) > 1:
        lines += _stream_lines(pastels, room)
    used = {name for mark in marks for name in (mark.cause, mark.waiter and mark.parent)} | {row.cause for row in rows}
    for cause in CAUSES.values():
        if cause.name in used:
            indent = 1.4 + width_of(cause.name, SMALL, bold=True) + 0.8
            first, *more = wrap(words.say(f"meaning_{cause.name}"), room - indent, SMALL)
            lines.append(FootLine(name=cause.name, words=first, colour=cause.colour))
            lines += [FootLine(words=line) for line in more]
    if any(mark.cause is None for mark in marks):
        lines.append(FootLine(name=words.say("flow_no_cause"), words=words.say("flow_no_cause_mean"), colour=GREY))
    return lines


def _stream_lines(pastels: dict[int, str], room: float) -> list[FootLine]:
    """Return the legend of the streams' backgrounds, as many to a line as fit."""
    lines: list[FootLine] = []
    x = 0.0
    for stream, colour in pastels.items():
        entry = FootLine(words=f"tcp.stream {stream}" if stream >= 0 else words.say("flow_not_tcp"), colour=colour)
        x = x if x + entry.width <= room else 0.0
        lines.append(replace(entry, x=x))
        x += entry.width + 1.5
    return lines


def footer_height(lines: Sequence[FootLine]) -> float:
    """Height of the footer in em."""
    return 0.5 + max(BAR, sum(line.size * 1.55 for line in lines if line.x == 0)) + MARGIN


def draw_footer(
    pen: Ink, top: float, lines: Sequence[FootLine], width: float = 0.0, em_per_ns: float | None = None
) -> None:
    """Draw the lines of the footer, and the bar of the scale at their right."""
    if em_per_ns:
        bar_ms = nice(BAR / em_per_ns / 1e6)
        x, begin, end = width - MARGIN - 0.3, top + 0.7, top + 0.7 + bar_ms * 1e6 * em_per_ns
        pen.line((x, x), (begin, end), width=0.14, gid="scale")
        for y in (begin, end):
            pen.line((x - 0.3, x + 0.3), (y, y), width=0.14)
        pen.text(x - 0.7, (begin + end) / 2 + 0.3, f"{bar_ms:,.10g} ms", size=SMALL, ha="right")
    y = top + 0.5
    for line in lines:
        y += line.size * 1.55 if line.x == 0 else 0
        x, base = MARGIN + line.x, y - 0.35 * line.size
        if line.colour:
            pen.box(x, base - 0.62, x + 0.8, base + 0.1, line.colour, edge=GREY)
            x += 1.4
        if line.name:
            pen.text(x, base, line.name, size=line.size, bold=True)
            x += width_of(line.name, line.size, bold=True) + 0.8
        if line.words:
            pen.text(x, base, line.words, size=line.size, colour=line.tint)
