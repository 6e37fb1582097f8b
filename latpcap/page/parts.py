"""The pieces of HTML of a report. Every text is escaped in this module, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from latpcap import words
from latpcap.format import printable

if TYPE_CHECKING:
    from latpcap.answers.text import Text

MAX_LETTERS = 160
"""Default upper bound on the letters of a text from a capture."""
_LONG = 30
"""Letters above which a cell stays wide on a phone."""


def safe(text: object, max_letters: int = MAX_LETTERS) -> str:
    """Escape a text from a capture, without letters that cannot be printed, and cut to `max_letters`."""
    letters = printable(str(text))
    return escape(letters if len(letters) <= max_letters else f"{letters[: max_letters - 1]}…")


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    number: bool = False
    """Whether its values are numbers."""
    decimals: int = 0
    whole: bool = False
    """Whether texts are never cut, as with a display filter that is copied."""
    extra: bool = False
    """Whether a phone leaves the column out."""

    @property
    def head(self) -> str:
        """Its heading."""
        return words.say(f"column_{self.name}")


def table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, name: str = "", stacks: bool = False) -> str:
    """Return a table that a click on a heading sorts; with `stacks` it is a list on a phone."""
    heads = "".join(f'<th scope="col"{_side(column)}>{safe(column.head)}</th>' for column in columns)
    body = []
    for row in rows:
        cells = "".join(_cell(column, value, stacks=stacks) for column, value in zip(columns, row, strict=True))
        body.append(f"<tr>{cells}</tr>")
    id_attribute = f' id="{escape(name)}"' if name else ""
    head = f"<thead><tr>{heads}</tr></thead>"
    look = "sorts stacks" if stacks else "sorts"
    return f'<div class="wide"><table class="{look}"{id_attribute}>{head}<tbody>{"".join(body)}</tbody></table></div>'


def _side(column: Column) -> str:
    return _class("n" if column.number else "", "x" if column.extra else "")


def _class(*names: str) -> str:
    class_names = " ".join(filter(None, names))
    return f' class="{class_names}"' if class_names else ""


def _cell(column: Column, value: Any, *, stacks: bool) -> str:
    missing = value is None or value != value
    head = f' data-head="{safe(column.head)}"' if stacks else ""
    extra = "x" if column.extra else ""
    if not column.number:
        text = "" if missing else safe(value, len(str(value)) if column.whole else MAX_LETTERS)
        return f"<td{_class('w' if len(text) > _LONG else '', extra)}{head}>{text}</td>"
    if missing:
        return f'<td{_class("n", extra)}{head} data-v="-1e308"></td>'
    cell_text = f"{value:,.{column.decimals}f}"
    zero = "z" if stacks and not float(cell_text.replace(",", "")) else ""  # the list on a phone leaves zeros out
    return f'<td{_class("n", extra, zero)}{head} data-v="{float(value)!r}">{cell_text}</td>'


def section(title: str, *bodies: str, name: str) -> str:
    """Return a section of the page with its heading."""
    return f'<section id="{escape(name)}"><h2>{safe(title)}</h2>{"".join(bodies)}</section>'


def note(text: str) -> str:
    """Return a line in small letters."""
    return f'<p class="note">{safe(text, 400)}</p>'


def keys(entries: Iterable[tuple[str, str, str, str]]) -> str:
    """Return a legend. Each entry is a colour, the class of its hatch, a name and words."""
    legend = "".join(
        f'<span><i class="{escape(look)}" style="background-color:{escape(colour)}"></i>'
        f"<b>{safe(name)}</b> {safe(meaning)}</span>"
        for colour, look, name, meaning in entries
    )
    return f'<div class="keys">{legend}</div>'


def answer(text: Text) -> str:
    """Return an answer: the headline, then a list of labels with their sentences, without hints at options."""
    listed = "".join(f"<dt>{safe(line.label)}</dt><dd>{safe(line.text, 2000)}</dd>" for line in text.lines)
    return f'<p class="verdict">{safe(text.headline, 2000)}</p><dl class="answer">{listed}</dl>'


def safe_lines(lines: Iterable[str]) -> str:
    """Return several lines, each escaped."""
    return "\n".join(safe(line, 2000) for line in lines)
