"""The picture for a ticket: an answer's lines above the flow graph of its evidence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from makepcap import Ends, Talk, answer, get, pcap
from typer.testing import CliRunner

import latpcap as lp
from latpcap.cli.app import app

CLIPS = Path(__file__).parents[1] / "sample_pcaps" / "clips"


def test_the_answer_stands_above_its_graph(tmp_path: Path) -> None:
    picture = tmp_path / "ticket.svg"
    ran = CliRunner().invoke(app, ["why", str(CLIPS / "split-nagle.pcap"), "--picture", str(picture)])
    assert ran.exit_code == 0, ran.output
    words = " ".join(re.findall(r">([^<>]+)</text>", picture.read_text(encoding="utf-8")))
    assert "is slow because its clients" in words  # the headline
    assert "\ufffd" not in words
    assert "exchange 29: POST /item/14 200, 44.0 ms" in words  # the graph of the typical request
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', picture.read_text(encoding="utf-8"))
    assert size and float(size[1]) < 620
    again = tmp_path / "again.svg"
    CliRunner().invoke(app, ["why", str(CLIPS / "split-nagle.pcap"), "--picture", str(again)])
    assert again.read_bytes() == picture.read_bytes()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["probes.pcap"], "nothing to draw"),
        (["clips/think40.pcap", "clips/quickack.pcap"], "one capture"),
    ],
)
def test_what_has_no_picture_is_refused(tmp_path: Path, words: list[str], reason: str) -> None:
    files = [str(CLIPS.parent / word) for word in words]
    ran = CliRunner().invoke(app, ["why", *files, "--picture", str(tmp_path / "x.png")])
    assert ran.exit_code != 0
    assert reason in ran.output + str(ran.exception)
    assert not (tmp_path / "x.png").exists()


def test_an_answer_names_the_command_that_draws_its_evidence() -> None:
    clip = str(CLIPS / "split-nagle.pcap")
    ran = CliRunner().invoke(app, ["why", clip])
    assert ran.output.endswith(f"\n  picture   latpcap flow {clip} --exchange 29 -o flow.png\n")
    assert lp.read(clip).why().picture == {"exchange": 29}
    ran = CliRunner().invoke(app, ["why", clip, "--exchange", "3"])
    assert ran.output.endswith("--exchange 3 -o flow.png\n")
    assert "picture" not in CliRunner().invoke(app, ["why", str(CLIPS.parent / "probes.pcap")]).output


@pytest.fixture(scope="module")
def two_servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One answers many requests late; the other one request later than any of them."""
    first, other = (Talk(ends=Ends(("10.0.0.1", port), (server, 80))) for port, server in
                    ((40_000, "10.0.0.2"), (40_001, "10.0.0.3")))  # fmt: skip
    for talk in (first, other):
        talk.open()
    for number in range(5):
        first.client(10.0 + 1000 * number, get(f"/{number}"))
        for part in answer(100):
            first.server(310.0 + 1000 * number + number, part)
    other.client(10.0, get("/long"))
    for part in answer(100):
        other.server(4010.0, part)
    file = tmp_path_factory.mktemp("two") / "two.pcap"
    file.write_bytes(pcap(sorted([*first.tape, *other.tape], key=lambda segment: segment.time_ns)))
    return file


def test_the_worst_exchange_is_one_of_the_server_that_the_answer_names(two_servers: Path) -> None:
    capture = lp.read(two_servers)
    assert capture.why().server == "10.0.0.2:80"
    drawn = {server: capture.flow_graph(exchange="worst", server=server) for server in (None, "10.0.0.3")}
    assert "tcp.stream eq 0, worst" in str(drawn[None]) and "tcp.stream eq 1, worst" in str(drawn["10.0.0.3"])
    assert capture.why(exchange="worst").to_dict()["target"] == "/4"
    for words, server in (([], "10.0.0.2"), (["--server", "10.0.0.3:80"], "10.0.0.3")):
        ran = CliRunner().invoke(app, ["flow", str(two_servers), "--exchange", "worst", *words])
        assert ran.exit_code == 0 and server in ran.output, ran.output
    ran = CliRunner().invoke(app, ["flow", str(two_servers), "--server", "10.0.0.3"])
    assert "10.0.0.3" in ran.output and "10.0.0.2" not in ran.output
    ran = CliRunner().invoke(app, ["flow", str(two_servers), "--server", "10.9.9.9"])
    assert ran.exit_code != 0 and "no server 10.9.9.9" in ran.output + str(ran.exception)


def test_a_report_begins_its_graphs_with_the_evidence(two_servers: Path, tmp_path: Path) -> None:
    lp.read(two_servers).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert captions[0].startswith("The answer&#x27;s evidence. Exchange")
    assert not any("evidence" in caption for caption in captions[1:])
    exchanges = page[page.index("exchanges-table") :]
    assert ">10.0.0.3:80</td>" in exchanges and ">10.0.0.2:80</td>" in exchanges


def test_tables_of_one_exchange(two_servers: Path) -> None:
    for words, numbers in ((["--exchange", "3"], {3}), (["--stream", "1", "--exchange", "0"], {1})):
        ran = CliRunner().invoke(app, ["causes", str(two_servers), *words, "--json"])
        assert ran.exit_code == 0, ran.output
        assert {row["exchange"] for row in json.loads(ran.output)} == numbers
    ran = CliRunner().invoke(app, ["exchanges", str(two_servers), "--exchange", "worst", "--json"])
    assert [row["target"] for row in json.loads(ran.output)] == ["/4"]
    ran = CliRunner().invoke(app, ["causes", str(two_servers), "--exchange", "99"])
    assert ran.exit_code != 0 and "no exchange 99" in ran.output + str(ran.exception)
    assert CliRunner().invoke(app, ["streams", str(two_servers), "--exchange", "3"]).exit_code != 0
