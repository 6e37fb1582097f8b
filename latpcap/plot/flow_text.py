"""How does tshark write a flow graph as text?

Reads rows as plain values; gives the text of `tshark -q -z flow,tcp,network`, byte for byte; knows nothing of tables.
Its quirks are kept, so that two texts can be compared with diff: a label is cut to the length of its arrow, and from
the 41st address on there is no column. The pictures have neither limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

CELL = 20  # characters of an address's column, its bar included
MOST_NODES = 40
_HEAD = CELL // 2 - 1  # characters of the time's cell and of a port's


@dataclass(frozen=True, slots=True)
class TextRow:
    """What does one packet's pair of lines say? `conversation` is the stream; labels are not cut yet."""

    conversation: int
    time: str
    source: str
    target: str
    sport: int
    dport: int
    label: str
    comment: str


def as_text(rows: Sequence[TextRow]) -> str:
    """Which text does tshark write for these packets? Ends with a line feed; empty without packets."""
    nodes = dict.fromkeys(address for row in rows for address in (row.source, row.target))
    several = any(row.conversation != rows[0].conversation for row in rows)
    return "".join(f"{line}\n" for line in lines(rows, list(nodes), several=several))


def lines(rows: Iterable[TextRow], addresses: Sequence[str], *, several: bool) -> Iterator[str]:
    """Which lines are that? Without line feeds, as the packets come.

    `addresses` in the order in which they appear, a packet's source before its target; `several`: there is more than
    one conversation.
    """
    if not addresses:
        return
    nodes = {address: number for number, address in enumerate(addresses)}
    columns = min(len(nodes), MOST_NODES)
    yield from _titles(addresses[:columns], several)
    blank = (" " * 5 if several else "") + "|" + " " * _HEAD + "|"
    cells = (" " * (CELL - 1) + "|") * columns
    last: int | None = None
    for row in rows:
        if last is not None and row.conversation != last:
            yield "-" * (len(blank) + len(cells) + 1)
        last = row.conversation
        head = f"{row.conversation:<5}" if several else ""
        head += f"|{row.time:<{_HEAD}}|"
        # an address without a column stands behind all columns, with one of them between
        source = nodes[row.source] if nodes[row.source] < columns else MOST_NODES + 1
        target = nodes[row.target] if nodes[row.target] < columns else MOST_NODES + 1
        left, right = (source, target) if source < target else (target, source)
        right = max(right, left + 1)
        length, begin = CELL * (right - left), CELL * left + _HEAD
        yield _over(head + cells, len(head) + begin, row.label[:length]) + row.comment
        dashes = "-" * (length - 2)
        arrow = f"{dashes}>" if source <= target else f"<{dashes}"
        ports = (row.sport, row.dport) if source <= target else (row.dport, row.sport)
        line = _over(blank + cells, len(blank) + begin, arrow)
        line = _over(line, len(blank) + CELL * left, f"({ports[0]})")
        yield _over(line, len(blank) + CELL * right + _HEAD + 1, f"({ports[1]})")


def _titles(nodes: Sequence[str], several: bool) -> Iterator[str]:
    """The two lines of addresses: even ones on the first, odd ones on the second."""
    yield ("Conv.| Time    |" if several else "|Time     |") + "".join(
        f" {node:<{2 * CELL - 2}}|" for node in nodes[::2]
    )
    line = (" " * 5 if several else "") + "|" + " " * _HEAD + "|" + " " * (CELL - 1)
    for node in nodes[1::2]:
        short = len(node) < CELL - 2
        line += f"| {node:<{CELL - 2}}|{'':{CELL - 1}}" if short else f"| {node:<{2 * CELL - 2}}"
    yield line


def _over(line: str, at: int, text: str) -> str:
    """The line with a text written over it; a text that does not fit is put between, or behind the end."""
    at = min(at, len(line))
    end = at + len(text)
    return line[:at] + text + line[end if end <= len(line) else at :]
