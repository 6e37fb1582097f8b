"""Words of the code that readers of other code would not search for: their counts only go down.

Write what a thing is or does in the field's term: request, answer, retransmission, cumulative ACK; "reports", "shows",
"sends". A comment that begins with "The same" refers to a line that may move: repeat the subject. One that begins with
"So many" lacks its noun: "Upper bound on requests per server".
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORDS = re.compile(
    r"\b(?:un)?(?:said|told|tells|heard|asked|says)\b"
    r"|(?:\"\"\"|//[/!]? |# )(?:The same|(?:(?:From|After|Of|For) s|S)o (?:many|much|long))\b"
)
CEILINGS = {
    "core/src/capture core/src/frame core/src/decrypt core/src/table core/src/engine core/src/stream core/src/facts": 0,
    "core/src/exchange core/src/messages core/src/judge core/src/observe core/src/evidence": 0,
    "latpcap/reading latpcap/archive latpcap/views latpcap/side_sources latpcap/cli": 2,
    "latpcap/findings latpcap/answers latpcap/user_waits latpcap/reports latpcap/words": 43,
    "latpcap/joined latpcap/plot latpcap/page": 3,
    "core/src/limits core/src/lookup core/src/probe latpcap/exports latpcap/statistics": 3,
}
"""Uses in the sources below these folders, their tests aside. Lower a count with the uses; never raise one."""


@pytest.mark.parametrize("folders", CEILINGS)
def test_private_words_only_become_fewer(folders: str) -> None:
    files = [path for folder in folders.split() for path in (ROOT / folder).rglob("*.*") if "tests" not in path.parts]
    sources = [path for path in files if path.suffix in (".py", ".rs") and path.name != "tests.rs"]
    assert sources
    uses = {path: len(WORDS.findall(path.read_text(encoding="utf-8"))) for path in sources}
    most = sorted(uses, key=uses.__getitem__)[-5:]
    assert sum(uses.values()) <= CEILINGS[folders], [str(path.relative_to(ROOT)) for path in most]


LONG_FILES = {"latpcap/words/en.py", "latpcap/words/zh.py"}
"""Longer than 800 lines: the two catalogues."""


def test_a_file_has_at_most_800_lines() -> None:
    sources = [*(ROOT / "latpcap").rglob("*.py"), *(ROOT / "core/src").rglob("*.rs")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {path for path, lines in lengths.items() if lines > 800} <= LONG_FILES
