"""Hatches and marks by which families of causes differ without colours, as on paper in black and white."""

from __future__ import annotations

from collections.abc import Iterable

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
"""matplotlib's hatch of each family. "///" is reserved for causes that are not proven."""

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


def unproven(grades: Iterable[str]) -> str:
    """Return what a legend calls the causes that are not proven: "probable" if all of them are, else "not proven".
    Empty if all are proven.
    """
    doubtful = set(grades) - {"proven"}
    if not doubtful:
        return ""
    return "probable" if doubtful == {"probable"} else "not proven"


def hatch(cause: str) -> str:
    """Return the hatch of a cause's family."""
    return HATCHES[CAUSES[cause].family]


def mark(cause: str | None) -> str:
    """Return the mark of a cause's family; a dot without a cause."""
    return MARKS[CAUSES[cause].family] if cause else "dot"
