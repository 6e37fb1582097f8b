"""The pieces of HTML that a report is made of. Texts in, markup out: every text is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from latpcap import words
from latpcap.format import printable

MOST_LETTERS = 160
_LONG = 30  # letters from which on a cell is kept wide on a phone


def safe(text: object, most: int = MOST_LETTERS) -> str:
    """A text of the capture's own: letters that show themselves, not too many, escaped."""
    shown = printable(str(text))
    return escape(shown if len(shown) <= most else f"{shown[: most - 1]}…")


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, whether its values are numbers, with so many decimals, whether texts are shown to
    the last letter (who copies a filter needs all of it), and whether a phone leaves it out.
    """

    name: str
    number: bool = False
    decimals: int = 0
    whole: bool = False
    extra: bool = False

    @property
    def head(self) -> str:
        """What stands above it."""
        return words.say(f"column_{self.name}")


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Any]],
    *,
    name: str = "",
    ids: Sequence[str] = (),
    stacks: bool = False,
) -> str:
    """A table that sorts by a click on a head; `ids` name its rows; one that `stacks` is a list on a phone."""
    heads = "".join(f'<th scope="col"{_side(c)}>{safe(c.head)}</th>' for c in columns)
    body = []
    for place, row in enumerate(rows):
        mark = f' id="{escape(ids[place])}"' if ids else ""
        cells = "".join(_cell(c, value, stacks=stacks) for c, value in zip(columns, row, strict=True))
        body.append(f"<tr{mark}>{cells}</tr>")
    named = f' id="{escape(name)}"' if name else ""
    head = f"<thead><tr>{heads}</tr></thead>"
    look = "sorts stacks" if stacks else "sorts"
    return f'<div class="wide"><table class="{look}"{named}>{head}<tbody>{"".join(body)}</tbody></table></div>'


def _side(column: Column) -> str:
    return _class("n" if column.number else "", "x" if column.extra else "")


def _class(*names: str) -> str:
    given = " ".join(filter(None, names))
    return f' class="{given}"' if given else ""


def _cell(column: Column, value: Any, *, stacks: bool) -> str:
    missing = value is None or value != value
    head = f' data-head="{safe(column.head)}"' if stacks else ""
    extra = "x" if column.extra else ""
    if not column.number:
        text = "" if missing else safe(value, len(str(value)) if column.whole else MOST_LETTERS)
        return f"<td{_class('w' if len(text) > _LONG else '', extra)}{head}>{text}</td>"
    if missing:
        return f'<td{_class("n", extra)}{head} data-v="-1e308"></td>'
    shown = f"{value:,.{column.decimals}f}"
    zero = "z" if stacks and not float(shown.replace(",", "")) else ""  # a list leaves it out
    return f'<td{_class("n", extra, zero)}{head} data-v="{float(value)!r}">{shown}</td>'


def section(title: str, *bodies: str, name: str) -> str:
    """A part of the page under a head of its own."""
    return f'<section id="{escape(name)}"><h2>{safe(title)}</h2>{"".join(bodies)}</section>'


def note(text: str) -> str:
    """A line in small letters."""
    return f'<p class="note">{safe(text, 400)}</p>'


def keys(entries: Iterable[tuple[str, str, str, str]]) -> str:
    """What colours mean: colour, class of the hatch, name and words of each."""
    found = "".join(
        f'<span><i class="{escape(look)}" style="background-color:{escape(colour)}"></i>'
        f"<b>{safe(name)}</b> {safe(meaning)}</span>"
        for colour, look, name, meaning in entries
    )
    return f'<div class="keys">{found}</div>'


def answer(text: str) -> str:
    """An answer's lines: its headline, and a word with its sentence for each of the others."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return ""
    pairs: list[tuple[str, str]] = []
    rest: list[str] = []
    for line in lines[1:]:
        word, _, text = line.strip().partition(" ")
        if line.startswith("  ") and not line.startswith("   ") and text:
            pairs.append((word, text.strip()))
        elif line.startswith("   ") and pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}")
        else:
            rest.append(line)
    listed = "".join(f"<dt>{safe(word)}</dt><dd>{safe(text, 2000)}</dd>" for word, text in pairs)
    after = f"<pre>{safe_lines(rest)}</pre>" if rest else ""
    return f'<p class="verdict">{safe(lines[0], 2000)}</p><dl class="answer">{listed}</dl>{after}'


def safe_lines(lines: Iterable[str]) -> str:
    """Several lines, each of them safe."""
    return "\n".join(safe(line, 2000) for line in lines)
