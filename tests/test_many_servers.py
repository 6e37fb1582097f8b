"""A capture of very many servers: work for each is little, and outputs are bounded and count what they leave out."""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from makepcap import Ends, Segment, Talk, answer, get, pcap

import latpcap as lp
from latpcap.findings import search
from latpcap.page import report as page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import connections


def capture(folder: Path, servers: int) -> lp.Capture:
    connections.write(folder / f"{servers}.pcap", connections.servers(servers))
    return lp.read(folder / f"{servers}.pcap")


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        (lambda c: c.why(), 150),
        (lambda c: c.findings, 150),
        (lambda c: c.latency(by="server"), 10),
        (page.of_capture, 500),
    ],
    ids=["why", "findings", "latency", "report"],
)
def test_a_server_more_is_little_work(
    ask: Callable[[lp.Capture], object], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`most` calls of functions for each; with thousands of them 200,000 servers took minutes."""
    monkeypatch.setattr(search, "MAX_SERVERS", 10)
    monkeypatch.setattr(page, "MAX_ROWS", 10)
    ask(capture(tmp_path, 20))  # imports
    calls = []
    for servers in (300, 800):
        taken, profile = capture(tmp_path, servers), cProfile.Profile()
        profile.runcall(ask, taken)
        calls.append(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
    assert (calls[1] - calls[0]) / 500 < most


def test_servers_without_rows_of_their_own_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_SERVERS", 3)
    tape: list[Segment] = []
    for number in range(5):
        talk = Talk(ends=Ends(("10.0.0.1", 40_000 + number), (f"10.0.1.{number}", 80)), tape=tape)
        talk.open(100.0 * number)
        talk.client(100.0 * number + 10, get())
        talk.server(100.0 * number + 10 + (80.0 if number > 2 else 1.0), b"".join(answer(50)))
    found = lp.read(pcap(tape)).findings
    assert set(found[found.kind == "latency"].server) == {"10.0.1.3", "10.0.1.4", "10.0.1.0"}  # the slow ones first
    [rest] = found[found.kind == "rest"].to_dict("records")
    assert (rest["exchanges"], rest["of_exchanges"], rest["grade"]) == (0, 2, "unknown")
    assert rest["text"] == (
        "2 further servers with 2 requests, 0 of them slow, have no rows of their own: the 3 with the most slow "
        "requests have"
    )


def test_a_page_names_the_first_servers_and_counts_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_ROWS", 10)
    text = page.of_capture(capture(tmp_path, 30))
    servers = text[text.index('<section id="servers">') :].split("</section>")[0]
    assert servers.count("<tr") == 11 and "and 20 more servers with less time" in servers
    found = text[text.index('<section id="findings">') :].split("</section>")[0]
    assert found.count("<tr") == 11 and "more findings" in found
