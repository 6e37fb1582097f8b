"""Are README and docs true? What they tell to type runs, and what they show is what comes out.

`LATPCAP_WRITE_DOCS=1 python -m pytest tests/test_docs.py` writes the outputs anew where they differ: read the change
before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pages
import pytest
from pages import PAGES, ROOT

from latpcap import _core, vocabulary
from latpcap.reading.drain import table as rows

EXIT_CODES = (0, 1)
"""A page may show a rule of `compare --fail-on` that does not hold."""

LIMIT = 120
MARKDOWN = [
    *ROOT.glob("*.md"),
    *ROOT.glob("benchmarks/*.md"),
    *ROOT.glob("sample_pcaps/*.md"),
    *ROOT.glob("docs/**/*.md"),
]
MARKDOWN = sorted(MARKDOWN)


def with_samples(folder: Path) -> None:
    for name in ("sample_pcaps", "tests"):
        (folder / name).symlink_to(ROOT / name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name == "cookbook.md":
        pytest.skip("test_cookbook.py runs it task by task")
    with_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    wrong = []
    for block in pages.blocks(text):
        if block.language not in pages.RUN:
            continue
        said = pages.run(block, names, codes=EXIT_CODES)
        if block.shown is not None and not pages.same(block.shown.text, said):
            wrong.append((block.shown, said))
    if wrong and os.environ.get("LATPCAP_WRITE_DOCS"):
        for shown, said in reversed(wrong):
            assert "\n...\n" not in f"\n{shown.text}", f"{page.name}: shorten this one by hand:\n{said}"
            text = text[: shown.start] + said.strip("\n") + "\n" + text[shown.end :]
        page.write_text(text, encoding="utf-8")
    elif wrong:
        shown, said = wrong[0]
        assert shown.text.strip("\n") == said.strip("\n"), f"{page.name} shows something else"
        pytest.fail(f"{page.name}: lines around ... differ")


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.stem)
def test_lines_can_be_read(page: Path) -> None:
    """At most 120 characters, but in tables, code and what is one long word (a link, a picture)."""
    text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    long = [
        line
        for line in text.splitlines()
        if len(line) > LIMIT and not line.startswith(("|", "    ", "![")) and " " in line.strip(" -*")[LIMIT - 20 :]
    ]
    assert not long, f"{page.name}: {long[0]}"


def test_every_protocol_is_listed() -> None:
    """On the page of limits, as far as readers are there."""
    source = (ROOT / "core" / "src" / "messages" / "readers.rs").read_text(encoding="utf-8")
    known = set(re.findall(r'^    \+? ?\w+(?:\(.*\))?, "(\w+)"', source, re.MULTILINE))
    page = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"`(\w+)`", page.partition("## Protocols")[2].partition("## Transport")[0].replace("lookups", "")
    )
    assert {*listed} - {"protocol"} == known and len(known) > 25


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_in_the_site() -> None:
    listed = set(re.findall(r"([\w/-]+\.md)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    here = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert here <= listed


def test_a_page_that_lies_is_noticed() -> None:
    """The check itself: outputs are compared, `...` stands for lines and for nothing else."""
    text = (
        "# A\n```python\nprint('a\\nb\\nc')\n```\n\n```text\na\n...\nc\n```\n\n```sh\nls | wc\nlatpcap why x # y\n```\n"
    )
    first, second = pages.blocks(text)
    assert first.shown is not None and second.shown is None and first.heading == "A"
    said = pages.run(first, {})
    assert pages.same(first.shown.text, said) and pages.same("a\nb\nc\n", said) and pages.same("...\nb\n...\n", said)
    assert (
        not pages.same("a\nc\n", said) and not pages.same("b\n...\nc\n", said) and not pages.same("a\n...\nb\n", said)
    )
    assert pages.commands(second) == [["why", "x"]]


def test_every_column_and_protocol_stands_in_the_docs() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    analysis = _core.Analysis()
    for table in _core.TABLES:
        of = [part for part in sections if f"`{table}`" in part.partition("\n")[0]]
        named = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`\n]+`", " ".join(of)))))
        for column in rows(analysis.take(table)).column_names:
            of_side = re.sub("^(client|server)_", "_", column)  # the docs have `…_packets` for both
            is_cause = column.removesuffix("_ms") in vocabulary.CAUSES  # `network_ms` … `unknown_ms`
            assert column in named or of_side in named or is_cause, f"docs: `{column}` of `{table}`"
    absent = [word for word in vocabulary.PROTOCOLS if f"`{word}`" not in text]
    assert not absent, f"docs/exchanges-and-causes.md, row `protocol`: {absent}"
