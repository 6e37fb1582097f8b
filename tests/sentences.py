"""Which sentences has an answer, and which captures make it print each?

    python tests/sentences.py            # every sentence, a capture that prints it, and the line: to be read for truth

Sentences are the templates of the catalogue (`latpcap/words/en.py`). It is recorded which of them a capture's answer
takes; printed it is where the template's words then stand in the answer, too. Runs in a process of its own
(`tests/test_sentences.py`).
"""

from __future__ import annotations

import json
import re
import string
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import latpcap as lp
from latpcap import words
from latpcap.answers.why import Why
from latpcap.words import en

ROOT = Path(__file__).resolve().parents[1]
DRAWN = ("page_", "column_", "flow_", "point_", "no_font")
"""How ids begin that stand on pages and pictures (`tests/test_catalogue.py` looks for those)."""
TESTS = ("waits", "hung", "transfers", "headlines", "findings", "queue", "pushes")
"""Test files that make captures of their own."""
now = ""


class Recorder(dict[str, str]):
    """A catalogue that remembers which of its templates were taken for which capture."""

    def __init__(self, sentences: dict[str, str]):
        super().__init__(sentences)
        self.taken: dict[str, set[str]] = {}

    def __getitem__(self, key: str) -> str:
        self.taken.setdefault(key, set()).add(now)
        return super().__getitem__(key)

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        return self[key] if key in self.keys() else default


def pattern(template: str) -> str:
    """What a line looks like that has this template's words."""
    found = ""
    for text, field, _, _ in string.Formatter().parse(template):
        found += re.escape(text) + ("" if field is None else ".*?")
    return found


def answers() -> Iterator[tuple[str, str]]:
    """Every capture's name, and all that its answers have."""
    global now
    import test_sites
    from spoken import BESIDE, JOINED, SPOKEN, all_said, ask, beside
    from test_beside import CAPTURE, LOG, TRACE
    from test_headlines import MADE

    def told(name: str, capture, **more) -> Iterator[tuple[str, str]]:  # type: ignore[no-untyped-def]
        texts = [all_said(capture.why(**asked, **more)) for asked in ({}, {"top": 9})]
        texts += [str(capture.why(exchange=number)) for number in capture.exchanges["exchange"][:3]]
        yield name, "\n".join(texts)

    for path in sorted((ROOT / "tests/cases").glob("*/capture.*")):
        now = path.parent.name
        yield from told(now, lp.read(path))
    for path in sorted((ROOT / "sample_pcaps").rglob("*.pcap*")):
        now = path.name
        yield from told(now, lp.read(path))
    for name, (make, _) in MADE.items():
        now = name
        yield from told(name, lp.read(make()))
    for name, spoken in SPOKEN.items():
        now = name
        yield name, all_said(ask(spoken))
    now = "beside"
    yield from told(now, lp.read(CAPTURE), strace=TRACE, access_log=LOG)
    for now in BESIDE:
        with TemporaryDirectory() as folder:
            yield now, all_said(beside(now, Path(folder)))
    for now, (join, _) in JOINED.items():
        yield now, str(join().why())
    for now, files in test_sites.SEVERAL.items():
        with TemporaryDirectory() as folder:
            yield now, str(lp.open_results(test_sites.written(Path(folder), files)).why())
    now = "tests"
    yield now, "\n".join(all_said(why) for why in of_tests())


def of_tests() -> list[Why]:
    """The answers that these tests make, of captures that they make."""
    made: list[Why] = []
    of = Why.of.__func__  # type: ignore[attr-defined]

    def keep(cls: type[Why], *args: Any, **asked: Any) -> Why:
        made.append(of(cls, *args, **asked))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(sys.stderr):
        for name in ("PYTEST_ADDOPTS", "LATPCAP_TESTS"):  # with -n they would run in processes that keep nothing
            patch.delenv(name, raising=False)
        patch.setattr(Why, "of", classmethod(keep))
        pytest.main(["-q", "-p", "no:cacheprovider", *(str(ROOT / "tests" / f"test_{name}.py") for name in TESTS)])
    return made


def printed() -> dict[str, tuple[str, str]]:
    """By id of a sentence, a capture that prints it, and the line."""
    sys.path.insert(0, str(Path(__file__).parent))
    words.CATALOGUES["en"] = recorder = Recorder(dict(words.CATALOGUES["en"]))
    corpus = dict(answers())
    found = {}
    for sentence, names in recorder.taken.items():
        wanted = re.compile(rf"^.*{pattern(dict.__getitem__(recorder, sentence))}.*$", re.MULTILINE | re.IGNORECASE)
        lines = ((name, wanted.search(corpus[name])) for name in sorted(names) if name in corpus)
        line = next(((name, hit[0].strip()) for name, hit in lines if hit), None)
        if line is not None:
            found[sentence] = line
    return found


def main() -> None:
    found = printed()
    if "--json" in sys.argv:
        json.dump({"printed": found, "all": [name for name in en.SENTENCES if not name.startswith(DRAWN)]}, sys.stdout)
        return
    for sentence, template in en.SENTENCES.items():
        name, line = found.get(sentence, ("no capture", ""))
        print(f"{sentence}: {template}\n    {name}: {line}")


if __name__ == "__main__":
    main()
