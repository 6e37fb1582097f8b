"""Colours labels and headlines of answers on a terminal, unless NO_COLOR is set (no-color.org), and wraps lines."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap

import typer

_LABEL = re.compile(r"^(  )(\S+)( *)", re.MULTILINE)
INDENT, MIN_WIDTH = 12, 40
"""Column at which the text of a labelled line begins, and the narrowest width that lines are wrapped to."""
_STYLES = {"fix": "green", "gain": "green", "unknown": "yellow"}


def is_wanted() -> bool:
    """Return whether standard output is a terminal with colours, and NO_COLOR is not set."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def answer(text: str) -> str:
    """Return an answer of `why`; on a terminal with a bold headline and coloured labels."""
    title, headline, body = (wrapped(part) for part in [*text.split("\n", 2), "", ""][:3])
    if not is_wanted():
        return "\n".join(part for part in (title, headline, body) if part)

    def label(match: re.Match[str]) -> str:
        word = match[2]
        return f"{match[1]}{typer.style(word, fg=_STYLES.get(word, 'cyan'))}{match[3]}"

    lines = [typer.style(title, dim=True), typer.style(headline, bold=True), _LABEL.sub(label, body)]
    return "\n".join(lines if body else lines[:2])


def wrapped(text: str, width: int | None = None) -> str:
    """Return an answer wrapped to the terminal's width, with continued lines indented; unchanged without a terminal."""
    if width is None:
        if not sys.stdout.isatty():
            return text
        width = shutil.get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        indent = " " * INDENT if _LABEL.match(line) else ""
        line_width = max(width, MIN_WIDTH)
        wrapped_lines = textwrap.wrap(
            line, line_width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False,
            drop_whitespace=True, replace_whitespace=False,
        )  # fmt: skip
        lines += wrapped_lines or [line]
    return "\n".join(lines)


def head(line: str) -> str:
    """Return the header of a table, bold on a terminal."""
    return typer.style(line, bold=True) if is_wanted() else line
