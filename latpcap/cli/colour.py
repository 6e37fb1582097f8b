"""Which words of an answer are coloured? Labels and headlines, on a terminal, unless NO_COLOR is set (no-color.org)."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap

import typer

_LABEL = re.compile(r"^(  )(\S+)( *)", re.MULTILINE)
INDENT, LEAST_WIDTH = 12, 40
"""Where the words of a labelled line begin, and the narrowest terminal that lines are fitted to."""
_STYLES = {"fix": "green", "gain": "green", "unknown": "yellow"}


def wanted() -> bool:
    """Is standard output a terminal that shows colours, and does its user want them?"""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def answer(text: str) -> str:
    """An answer of `why` with its headline in bold and its labels coloured, where colours are wanted."""
    title, headline, rest = (wrapped(part) for part in [*text.split("\n", 2), "", ""][:3])
    if not wanted():
        return "\n".join(part for part in (title, headline, rest) if part)

    def label(found: re.Match[str]) -> str:
        word = found[2]
        return f"{found[1]}{typer.style(word, fg=_STYLES.get(word, 'cyan'))}{found[3]}"

    lines = [typer.style(title, dim=True), typer.style(headline, bold=True), _LABEL.sub(label, rest)]
    return "\n".join(lines if rest else lines[:2])


def wrapped(text: str, width: int | None = None) -> str:
    """An answer whose lines fit the terminal, continued below their words; as it is where there is no terminal."""
    if width is None:
        if not sys.stdout.isatty():
            return text
        width = shutil.get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        behind = " " * INDENT if _LABEL.match(line) else ""
        fits = max(width, LEAST_WIDTH)
        lines += textwrap.wrap(line, fits, subsequent_indent=behind, break_on_hyphens=False, break_long_words=False,
                               drop_whitespace=True, replace_whitespace=False) or [line]  # fmt: skip
    return "\n".join(lines)


def head(line: str) -> str:
    """The heads of a table's columns in bold, where colours are wanted."""
    return typer.style(line, bold=True) if wanted() else line
