"""Which words of an answer are coloured? Labels and headlines, on a terminal, unless NO_COLOR is set (no-color.org)."""

from __future__ import annotations

import os
import re
import sys

import typer

_LABEL = re.compile(r"^(  )(\S+)( *)", re.MULTILINE)
_STYLES = {"fix": "green", "gain": "green", "unknown": "yellow"}


def wanted() -> bool:
    """Is standard output a terminal that shows colours, and does its user want them?"""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def answer(text: str) -> str:
    """An answer of `why` with its headline in bold and its labels coloured, where colours are wanted."""
    if not wanted():
        return text
    title, _, rest = text.partition("\n")
    headline, _, rest = rest.partition("\n")

    def label(found: re.Match[str]) -> str:
        word = found[2]
        return f"{found[1]}{typer.style(word, fg=_STYLES.get(word, 'cyan'))}{found[3]}"

    return "\n".join([typer.style(title, dim=True), typer.style(headline, bold=True), _LABEL.sub(label, rest)])


def head(line: str) -> str:
    """The heads of a table's columns in bold, where colours are wanted."""
    return typer.style(line, bold=True) if wanted() else line
