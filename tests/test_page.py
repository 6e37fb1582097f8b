"""The page to mail: does it hold what the tables hold, fetch nothing, and let no capture bring markup or script?"""

from __future__ import annotations

import base64
import hashlib
import html as entities
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from makepcap import Talk, answer, get, pcap
from transfer_simulator import Transfer

import latpcap as lp
from latpcap import page, words
from latpcap.answers.text import Line, Text
from latpcap.format import requested
from latpcap.page import parts, pictures, report

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample_pcaps" / "nginx-latency.pcap"
GOOD = ROOT / "sample_pcaps" / "nginx-good.pcap"
EVIL = [
    "</script><script>document.title='owned'</script>",
    "<img/src=x/onerror=document.title='owned'>",
    "\"onmouseover=document.title='owned'//",
    "'><svg/onload=document.title='owned'>",
    "${document.title='owned'}{{7*7}}",
    "javascript:document.title='owned'",
    "</style></title></table><iframe/src=//evil.example>",
    "]]><!--",
]
SECTIONS = {"answer", "actions", "servers", "findings", "timeline", "waterfall", "exchanges", "flow"}


class Parsed(HTMLParser):
    """The tags, their attributes and the scripts of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._in = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in = tag
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        (self.scripts if self._in == "script" else self.text).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in = ""


def checked(text: str) -> Parsed:
    """Nothing is fetched, no handler stands in it, one script runs: ours."""
    found = Parsed(text)
    assert found.scripts == [report._asset("page.js")]
    policy = next(value for tag, name, value in found.attributes if tag == "meta" and name == "content")
    allowed = base64.b64encode(hashlib.sha256(found.scripts[0].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'") and f"script-src 'sha256-{allowed}'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]
    assert not set(found.tags) & {"iframe", "object", "embed", "link", "img", "base", "form", "foreignobject", "a:href"}
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name, value)
        if name in ("href", "src", "xlink:href", "action"):
            assert value.startswith("#"), (tag, name, value)
        if name == "style":
            assert "http" not in value and "import" not in value
    assert "@import" not in text and "url(http" not in text
    return found


@pytest.fixture(scope="module")
def sample() -> str:
    return page.of_capture(lp.read(SAMPLE))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    talk = Talk()
    talk.open()
    for number, bad in enumerate(EVIL):
        talk.client(5 + 60 * number, get("/" + bad.replace(" ", "%20")))
        talk.server(8 + 45 * number + 15 * number, b"".join(answer(5, "200 OK", f"Server: {bad}")))
    path = tmp_path_factory.mktemp("evil") / "<img src=x onerror=alert(1)>.pcap"
    path.write_bytes(pcap(talk.tape))
    capture = lp.read(path)
    assert len(capture.exchanges) >= len(EVIL)
    return page.of_capture(capture)


def test_a_page_holds_the_answer_and_the_tables(sample: str) -> None:
    found = checked(sample)
    assert {value for tag, name, value in found.attributes if tag == "section" and name == "id"} == SECTIONS
    words = entities.unescape(" ".join(found.text))
    capture = lp.read(SAMPLE)
    for line in str(capture.why()).splitlines()[1:4]:
        assert line.split(maxsplit=1)[1].strip() in words or line.strip() in words
    slowest = capture.exchanges.latency_ms.max()
    assert f"{slowest:,.3f}" in words and "192.168.0.30:8080" in words
    assert sample.count('id="exchanges-table"') == 1
    rows = re.search(r'id="exchanges-table".*?</table>', sample, re.DOTALL)
    assert rows is not None and rows[0].count("<tr>") - 1 == report.MAX_ROWS
    assert "The 500 slowest of 960 requests." in words and "06:07:31" in words
    assert "PSH, ACK - Len: 612" in words, "flow graphs have their words as text"


def test_no_name_of_a_capture_becomes_markup(hostile: str) -> None:
    found = checked(hostile)
    words = " ".join(found.text) + " ".join(value for _, name, value in found.attributes if name == "data-tip")
    assert "onerror=document.title" in words, "the names are there, as text"
    assert "<title>&lt;img src=x" in hostile


def test_pages_of_results_and_comparisons(tmp_path: Path) -> None:
    lp.batch([str(SAMPLE)], tmp_path / "results", quiet=True)
    stored = lp.open_results(tmp_path / "results")
    stored.to_html(tmp_path / "results.html")
    found = checked((tmp_path / "results.html").read_text(encoding="utf-8"))
    sections = {value for tag, name, value in found.attributes if tag == "section" and name == "id"}
    assert sections == SECTIONS - {"flow", "actions"}
    lp.compare(SAMPLE, GOOD).to_html(tmp_path / "change.html")
    text = (tmp_path / "change.html").read_text(encoding="utf-8")
    checked(text)
    assert all(f'<section id="{name}">' in text for name in ("changed", "latency", "causes", "before", "after"))


@pytest.mark.parametrize("capture", [b"", "probes.pcap"], ids=["no packet", "no request"])
def test_pages_of_little(capture: bytes | str) -> None:
    source = pcap([]) if isinstance(capture, bytes) else ROOT / "sample_pcaps" / capture
    found = checked(page.of_capture(lp.read(source)))
    assert ("section", "id", "answer") in found.attributes


def test_only_html_is_written(tmp_path: Path) -> None:
    with pytest.raises(lp.OutputError, match=r"a report is \.html"):
        lp.read(SAMPLE).to_html(tmp_path / "report.pdf")
    with pytest.raises(lp.OutputError, match="No such file"):
        lp.read(SAMPLE).to_html(tmp_path / "nowhere" / "report.html")


def test_thousands_of_dots_stay_a_small_picture() -> None:
    numbers = np.arange(200_000)
    dots = pictures.Dots(numbers * 1_000_000, 1.0 + numbers % 97, np.full(200_000, -1), [])
    drawn = pictures.timeline(dots, [f"request {n}" for n in dots.named()])
    assert len(drawn) < 800_000 and drawn.count("<circle") == pictures.NAMED_DOTS
    one = pictures.timeline(pictures.Dots(dots.ns[:1], dots.latency_ms[:1], dots.code[:1], []), ["request 0"])
    assert one.count("h0") == 1


@pytest.mark.parametrize("seconds", [1e-5, 0.02, 1, 59, 3_600, 86_400, 40 * 86_400])
def test_the_clock_has_round_instants(seconds: float) -> None:
    first = 1_795_241_251_591_014_123
    ticks = pictures.clock(first, first + int(seconds * 1e9))
    assert len(ticks) <= 8 and all(first <= ns <= first + seconds * 1e9 for ns in ticks)
    assert seconds < 0.01 or len(ticks) >= 2


def test_numbers_sort_and_words_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(words.CATALOGUES, "en", {"column_b": "<b>", "column_n": "n"})
    made = parts.table([parts.Column("b"), parts.Column("n", True, 1)], [["a & b", 1234.56], [None, float("nan")]])
    assert "&lt;b&gt;" in made and "a &amp; b" in made and "1,234.6" in made and 'data-v="-1e308"' in made


# in a browser

DRIVER = """
const said = {buttons: document.querySelectorAll("th button").length, wide: document.documentElement.scrollWidth,
  inner: window.innerWidth, title: document.title};
const table = document.getElementById("exchanges-table");
const column = Array.from(table.tHead.rows[0].cells).findIndex((c) => c.textContent === "latency ms");
const first = () => Number(table.tBodies[0].rows[0].cells[column].dataset.v);
const button = table.tHead.rows[0].cells[column].querySelector("button");
button.click(); said.down = first(); button.click(); said.up = first();
const box = document.querySelector("input[type=search]");
box.value = "no such words"; box.dispatchEvent(new Event("input"));
said.left = Array.from(table.tBodies[0].rows).filter((r) => !r.hidden).length;
const svg = document.querySelector("svg.zooms"), before = svg.getAttribute("viewBox");
document.querySelector(".zoom button").click(); said.zoomed = svg.getAttribute("viewBox") !== before;
const mark = document.querySelector("[data-tip]");
mark.dispatchEvent(new PointerEvent("pointermove", {bubbles: true}));
said.tip = document.querySelector(".tip").textContent === mark.dataset.tip;
document.title = JSON.stringify(said);
"""


def browsed(path: Path, width: int) -> str:
    """The page's title after its scripts ran."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine")
    run = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
           f"--user-data-dir={path.parent / f'profile-{width}'}", "--dump-dom", path.as_uri()]  # fmt: skip
    try:
        done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("chromium does not answer on this machine")
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    if title is None:
        pytest.skip(f"chromium does not start on this machine: {done.stderr[-200:]}")
    return entities.unescape(title[1])


@pytest.mark.parametrize("width", [500, 1280])
def test_it_works_in_a_browser(sample: str, tmp_path: Path, width: int) -> None:
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", sample)  # else the driver would not run
    path = tmp_path / "driven.html"
    path.write_text(bare.replace("</body>", f"<script>{DRIVER}</script></body>"), encoding="utf-8")
    said = json.loads(browsed(path, width))
    assert said["buttons"] > 10 and said["title"].startswith("nginx-latency.pcap")
    assert said["wide"] <= said["inner"], "the page is no wider than the screen"
    assert said["down"] > said["up"] and said["left"] == 0 and said["zoomed"] and said["tip"]


def test_nothing_of_a_capture_runs_in_a_browser(hostile: str, tmp_path: Path) -> None:
    for policy in (True, False):  # it holds without the browser's help, too
        text = hostile if policy else re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", hostile)
        path = tmp_path / "hostile.html"
        path.write_text(text, encoding="utf-8")
        assert "owned" not in browsed(path, 800)


def test_the_policy_stops_other_scripts(sample: str, tmp_path: Path) -> None:
    path = tmp_path / "changed.html"
    path.write_text(sample.replace("</body>", "<script>document.title='owned'</script></body>"), encoding="utf-8")
    assert browsed(path, 800).startswith("nginx-latency.pcap")


def test_a_chart_has_room_for_its_numbers() -> None:
    """Long latencies at the left, a tick of the clock at the right end; fives and doubles where tens are few."""
    nothing = np.array([-1, -1])
    dots = pictures.Dots(np.array([0, 10 * 10**9]), np.array([90.0, 25_300.0]), nothing, [])
    drawn = pictures.timeline(dots, ["", ""])
    assert "10,000 ms" in drawn and "5,000 ms" in drawn and "1e" not in drawn
    for x, anchor, text in re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="(\w+)">([^<]+)', drawn):
        wide = 8.0 * len(text)
        left = float(x) - (wide if anchor == "end" else wide / 2)
        assert left >= 0 and (anchor == "end" or left + wide <= pictures.WIDE), text


def test_ipv6_servers_are_written_as_in_the_answer_and_sql_says_its_verb_once() -> None:
    row = {"server": "2001:db8::1", "server_port": 80, "cause": "network", "owner": "network", "grade": "proven",
           "exchanges": 8, "total_ms": 1.0, "of_p50_ms": 1.0, "of_p99_ms": 1.0, "fix": None, "text": None,
           "filter": "tcp"}  # fmt: skip
    subject: Any = SimpleNamespace(findings=pd.DataFrame([row]))
    told = report._findings(subject)[0]
    assert "[2001:db8::1]:80" in told and 'data-head="server"' in told
    assert requested("SELECT", "SELECT ?") == "SELECT ?" and requested("select", "SELECT ?") == "SELECT ?"
    assert requested("GET", "/GET") == "GET /GET" and requested("GET", None) == "GET"
    assert requested("SET", "SETTINGS") != "SETTINGS"


def test_one_request_has_no_chart_over_the_clock_and_no_option_of_the_terminal_stands_on_the_page() -> None:
    talk = Talk()
    talk.open()
    talk.client(10, get())
    talk.server(20, b"".join(answer(5)))
    one = page.of_capture(lp.read(pcap(talk.tape)))
    assert 'id="timeline"' not in one and 'id="waterfall"' in one and "longest of" not in one
    further = Line("further", "2 servers: nothing is slow there", " (--top 3 lists them)")
    assert "--top" not in parts.answer(Text("a.pcap", "Nothing is slow.", [further]))


def test_transfers_have_their_rates_over_the_clock() -> None:
    moved = page.of_capture(lp.read(Transfer(bytes=400_000).captures()["receiver"]))
    assert 'id="rates"' in moved and "Throughput of" in moved
    assert 'id="rates"' not in page.of_capture(lp.read(SAMPLE))
