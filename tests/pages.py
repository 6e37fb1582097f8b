"""What stands in a Markdown page: its blocks of code, and what they print when they are run as they stand.

` ```python ` and ` ```sh ` blocks are run: Python in one namespace a page, and of `sh` the lines that call `latpcap`.
A ` ```text ` block right behind one is what it prints; a line `...` there stands for any lines. ` ```py ` and
` ```console ` are only shown: they need something that a test does not have.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = ("python", "sh")

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass
class Block:
    """A fenced block: its language, its text, the heading that it stands under, and where its text begins and ends."""

    language: str
    text: str
    heading: str
    start: int
    end: int
    shown: Block | None = None
    """The `text` block right behind it, which is what it prints."""


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page in their order; those of output hang at the blocks that print them."""
    found: list[Block] = []
    last = None
    for match in _FENCE.finditer(page):
        indent, language, text = match.groups()
        text = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        above = re.findall(r"^#+ (.*)$", page[: match.start()], re.MULTILINE)
        block = Block(language, text, above[-1] if above else "", match.start(3), match.end(3))
        near = last is not None and not page[last.end : match.start()].strip("` \n")
        if language == "text" and near and last is not None and last.language in RUN:
            last.shown = block
        else:
            found.append(block)
        last = block
    return found


def commands(block: Block) -> list[list[str]]:
    """The calls of `latpcap` in a block of shell lines, as words; a line that ends with a backslash goes on."""
    lines = block.text.replace("\\\n", " ").splitlines()
    calls = [part.strip() for line in lines for part in line.split("&&")]
    return [shlex.split(call, comments=True)[1:] for call in calls if call.startswith("latpcap ")]


def run(block: Block, names: dict[str, Any], *, codes: tuple[int, ...] = (0,)) -> str:
    """What a block prints, run in the current folder; `codes` are the exit codes that its commands may have."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        if block.language == "python":
            exec(compile(block.text, block.heading, "exec"), names)
        else:
            for words in commands(block):
                code = _command(words)
                assert code in codes, f"latpcap {' '.join(words)} ended with {code}: {said.getvalue()}"
    return said.getvalue()


def _command(words: list[str]) -> int:
    from latpcap.cli import main

    with mock.patch.object(sys, "argv", ["latpcap", *words]):
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


def same(shown: str, said: str) -> bool:
    """Is this what was printed? A line `...` stands for any lines; spaces at the ends of lines do not count."""
    parts = [[line.rstrip() for line in part.strip("\n").splitlines()] for part in re.split(r"(?m)^\.\.\.$", shown)]
    left = [line.rstrip() for line in said.strip("\n").splitlines()]
    if len(parts) == 1:
        return parts[0] == left
    if left[: len(parts[0])] != parts[0] or (parts[-1] and left[-len(parts[-1]) :] != parts[-1]):
        return False
    text = "\n".join(left)
    place = 0
    for part in parts:
        place = text.find("\n".join(part), place)
        if place < 0:
            return False
    return True
