"""How do families of causes differ without colours: on paper in black and white, by those who see few colours?

Words in, hatches and marks out; knows nothing of what is drawn.
"""

from __future__ import annotations

from latpcap.vocabulary import CAUSES

HATCHES = {
    "path": "",
    "line": "|||",
    "server": "...",
    "client": "oo",
    "stall": "\\\\\\",
    "windows": "---",
    "loss": "xxx",
    "unknown": "++",
}
"""matplotlib's hatch of each family. "///" is kept for what is probable."""

MARKS = {
    "path": "dot",
    "line": "square",
    "server": "diamond",
    "client": "pentagon",
    "stall": "up",
    "windows": "down",
    "loss": "cross",
    "unknown": "plus",
}
"""The mark of each family among dots; shapes of `display.Key`."""


def hatch(cause: str) -> str:
    """The hatch of a cause's family."""
    return HATCHES[CAUSES[cause].family]


def mark(cause: str | None) -> str:
    """The mark of a cause's family; a dot for none."""
    return MARKS[CAUSES[cause].family] if cause else "dot"
