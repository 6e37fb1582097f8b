"""The picture for a ticket: an answer's lines above the flow graph of its evidence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

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
