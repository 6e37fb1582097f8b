"""Every sentence that an answer can print is printed of a capture here, and what is said of a made one is true."""

from __future__ import annotations

import ast
import json
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from spoken import BESIDE, JOINED, SPOKEN, all_said, ask, beside

from latpcap import words


@pytest.mark.parametrize("name", SPOKEN)
def test_what_is_said_of_it(name: str) -> None:
    spoken = SPOKEN[name]
    said = all_said(ask(spoken))
    for line in spoken.lines:
        assert line in said, said


@pytest.mark.parametrize("name", BESIDE)
def test_what_is_said_beside_it(name: str, tmp_path: Path) -> None:
    said = str(beside(name, tmp_path))
    assert BESIDE[name][2] in said, said


@pytest.mark.parametrize("name", JOINED)
def test_what_is_printed_of_joined_captures(name: str) -> None:
    join, lines = JOINED[name]
    text = str(join().why())
    for line in lines:
        assert line in text, text


UNPRINTED = {
    "buffered", "buffered.fix", "transfer_or_receiver_window",
    "clients",
    "servers_left",
    "sure_unknown", "part_largest_beyond", "their_largest", "their_most_beyond", "their_largest_beyond",
    "stall_server_and_client", "first_line_filtered",
    "of_first_frames",
    "pause_none_before_elsewhere", "acks", "unasked", "push_message", "push_messages", "side_client and server",
    "fix_before_first", "pause_left_before", "seen_on", "join_client",
    "join_client_part", "join_fate_made",
}  # fmt: skip
"""Parts of sentences that no capture of these prints yet."""


def test_every_sentence_has_a_capture_that_prints_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-P", Path(__file__).with_name("sentences.py"), "--json"], capture_output=True, check=True
    )
    found = json.loads(ran.stdout)
    assert len(found["all"]) > 500
    assert set(found["all"]) - set(found["printed"]) <= UNPRINTED


PACKAGE = Path(__file__).resolve().parents[1] / "latpcap"
SENTENCE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}|[a-z]{3,} $|^ [a-z]{3,}")
"""Two words, or one that another stands beside."""
ALLOWED = re.compile(
    r"tcp\.stream eq |(^| and )frame\.number (in \{|== )|"  # display filters
    r'^[">]*<|^">|^latpcap compare$|'  # HTML, a command
    r"^(OPC UA|unknown protocol| by its port|path and programs| alert | and |in all)$|"  # what columns hold, a label
    r"CONFIG_HZ=|^(Windows|Linux|Solaris|macOS)\b|^(set on and off|never set)$| kbit/s$|^<unfinished"
)
"""What is no sentence: display filters of Wireshark, values of columns, what a trace of system calls has."""
SPEAKING = [
    *sorted((PACKAGE / "findings").glob("*.py")), *sorted((PACKAGE / "side_sources").glob("*.py")),
    *(PACKAGE / f"{name}.py" for name in ("joined/answer", "joined/rewrites", "page/report", "page/pictures")),
]  # fmt: skip


def literals(tree: ast.Module) -> Iterator[ast.Constant]:
    """Strings of a module that are no docstring, no message of an exception and no regular expression."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        compiled = isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        if (
            isinstance(node, ast.Raise)
            or compiled
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        ):
            left_out |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node


@pytest.mark.parametrize("path", [p for p in SPEAKING if p.name != "schema.py"], ids=lambda path: path.stem)
def test_no_sentence_stands_in_code(path: Path) -> None:
    """(schema.py has the meanings of columns.)"""
    found = [f"{node.lineno}: {node.value!r}" for node in literals(ast.parse(path.read_text()))
             if SENTENCE.search(node.value) and not ALLOWED.search(node.value)]  # fmt: skip
    assert found == []


@pytest.mark.parametrize("path", SPEAKING, ids=lambda path: path.stem)
def test_a_sentence_is_there_and_gets_the_values_that_it_names(path: Path) -> None:
    catalogue = words.CATALOGUES["en"]
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("say", "words.say"):
            continue
        first = node.args[0]
        ids = [part.value for part in (first.body, first.orelse)] if isinstance(first, ast.IfExp) and all(
            isinstance(part, ast.Constant) for part in (first.body, first.orelse)
        ) else [first.value] if isinstance(first, ast.Constant) else []  # fmt: skip
        given = {keyword.arg for keyword in node.keywords}
        for sentence in ids:
            assert sentence in catalogue, f"{path.name}:{node.lineno}: {sentence}"
            named = {field for _, field, _, _ in string.Formatter().parse(catalogue[sentence]) if field}
            assert None in given or named <= given, f"{path.name}:{node.lineno}: {sentence} lacks {named - given}"
