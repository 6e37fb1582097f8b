"""Is what a notebook shows small, readable without scripts, and never the capture's own HTML?"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from makepcap import Talk, answer, get, pcap

import latpcap as lp
from latpcap import html

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
BAD = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J"
ALLOWED = {"div", "b", "pre", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


class Page(HTMLParser):
    """Every tag and attribute, and whether they close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def checked(text: str) -> Page:
    page = Page(text)
    assert set(page.tags) <= ALLOWED
    assert set(page.attributes) <= {"style", "title", "data-v", "onclick"}
    assert set(page.attributes.get("onclick", [])) <= {html._SORT}, "no handler but ours"
    assert "\x1b" not in text and "http" not in "".join(page.attributes.get("style", []))
    return page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> lp.Capture:
    talk = Talk()
    talk.open()
    talk.client(5, get("/" + BAD.replace(" ", "+").replace("\x1b", "")))
    talk.server(6, b"".join(answer(5)))
    path = tmp_path_factory.mktemp("x") / "<img src=x onerror=alert(1)>.pcap"
    path.write_bytes(pcap(talk.tape))
    return lp.read(path)


def test_nothing_of_a_capture_is_html(hostile: lp.Capture) -> None:
    by_uri = hostile.latency("uri")
    things = [hostile, hostile.stream(0), hostile.why(), hostile.why(exchange=0), hostile.latency(), by_uri]
    for thing in things:
        page = checked(thing._repr_html_())
        assert "img" not in page.tags and "script" not in page.tags
    assert "<script>alert(1)</script>" in "".join(checked(by_uri._repr_html_()).words)


def test_samples_have_small_cards() -> None:
    cap = lp.read(SAMPLES / "nginx-latency.pcap")
    for thing in (cap, cap.stream(24), cap.why(), cap.latency("stream"), lp.read(SAMPLES / "probes.pcap")):
        text = thing._repr_html_()
        checked(text)
        assert len(text) < 40_000
    page = checked(cap._repr_html_())
    assert page.words[0] == repr(cap)
    folded = [words for words in page.words if words.startswith(("960 ", "41 ", "3 "))]
    assert folded == ["3 findings", "960 exchanges, the longest", "41 streams"]
    assert page.tags.count("details") == 3


def test_ink_and_paper_are_ours_in_dark_notebooks_too() -> None:
    cap = lp.read(SAMPLES / "clips" / "think40.pcap")
    styles = checked(cap._repr_html_()).attributes["style"]
    page = Page(cap._repr_html_())
    ours = sum("color:#222" in style and "background:#fff" in style for style in styles)
    assert ours >= sum(page.tags.count(tag) for tag in ("div", "pre", "table", "tr", "details")) > 10


def test_a_table_says_what_it_leaves_out_and_keeps_null_empty() -> None:
    frame = pd.DataFrame({"name": [BAD, None, "x" * 500], "value": [1.5, None, 2000.0], "yes": [True, False, True]})
    page = checked(html.table(frame, rows=2, sortable=True))
    assert "… 1 more row" in page.words
    assert page.words[3:] == [
        "".join(c if c.isprintable() else "�" for c in BAD),
        "1.500",
        "yes",
        "no",
        "… 1 more row",
    ]
    assert page.attributes["data-v"] == ["1.5", "-1e308"]
    assert len("".join(checked(html.table(frame)).words)) < 300


def test_a_click_sorts_by_number_or_word() -> None:
    """The handler is one expression over its own table; the browser's part is tested by looking."""
    page = checked(html.table(pd.DataFrame({"a": [1]}), sortable=True))
    assert page.attributes["onclick"] == [html._SORT] and page.attributes["title"] == ["sort these rows"]
    assert "onclick" not in checked(html.table(pd.DataFrame({"a": [1]}))).attributes
