"""Does `latpcap flow` draw what was asked for, and say in a line what it cannot?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import USAGE, answered, complains, run

import latpcap as lp

ROOT = Path(__file__).resolve().parents[1]
BAD, GOOD = (ROOT / "sample_pcaps" / f"nginx-{name}.pcap" for name in ("latency", "good"))
PROBES = ROOT / "sample_pcaps" / "probes.pcap"


@pytest.mark.parametrize(
    "options",
    [
        ("--exchange", "worst"),
        ("--stream", 24, "--exchange", "2", "--to-scale"),
        ("--stream", 24, "--frames", "414-693", "--time", "date"),
        ("--exchange", "typical", "--beside", GOOD),
        ("--stream", 24, "--beside-stream", 25, "--max-rows", 9),
    ],
)
def test_a_picture_is_written(tmp_path: Path, options: tuple[object, ...]) -> None:
    out = tmp_path / "flow.png"
    assert answered("flow", BAD, "-o", out, *options) == ""
    assert out.read_bytes().startswith(b"\x89PNG")


def test_the_readmes_commands_draw(tmp_path: Path) -> None:
    """One of them stands below the picture that it draws."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"`(latpcap flow sample_pcaps/[^`]+ -o flow.png)`", text)
    assert commands and commands[0] in "".join(text.splitlines()[:18])
    for number, command in enumerate(commands):
        out = tmp_path / f"{number}.png"
        words = [out if word == "flow.png" else word for word in command.split()[1:]]
        answered(*(ROOT / str(w) if str(w).startswith("sample_pcaps/") else w for w in words))
        assert out.read_bytes().startswith(b"\x89PNG")


def test_text_and_flow_types(tmp_path: Path) -> None:
    out = tmp_path / "flow.txt"
    answered("flow", PROBES, "-o", out, "--flows", "icmp")
    text = out.read_text(encoding="utf-8")
    assert text.startswith("|Time     | 192.168.0.2 ")
    assert "|0.000071 |         Echo (ping) reply             |ICMP: Echo (ping) reply    id=0x2a37, seq=1/256" in text
    answered("flow", PROBES, "-o", tmp_path / "all.svg", "--flows", "all")
    assert (tmp_path / "all.svg").read_bytes().startswith(b"<?xml")


def test_pages_are_numbered(tmp_path: Path) -> None:
    answered("flow", BAD, "--stream", 24, "-o", tmp_path / "f.png", "--pages", "--max-rows", 70, "--dpi", 50)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f-1.png", "f-2.png"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--exchange", "best"), "'best' is neither a number nor one of worst, typical, first"),
        (("--exchange", "99999"), "no exchange 99999"),
        (("--exchange", "1", "--frames", "1-2"), "give exchange or frames, not both"),
        (("--time", "noon"), "'noon' is not one of relative"),
        (("--flows", "udp"), "'udp' is not one of tcp, icmp, all"),
        (("--flows", "all", "--stream", "1"), "is for a capture, not for a stream"),
        (("--frames", "5000-6000"), "hold no packet"),
        (("--stream", "999"), "no stream 999"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    assert words in complains(USAGE, "flow", BAD, "-o", tmp_path / "x.png", *options)
    assert not list(tmp_path.iterdir())


def test_of_a_long_capture_the_first_packets_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture needs no more, says so, and its first page stays as it is; text has all."""
    from latpcap.views import flows

    clip = ROOT / "sample_pcaps" / "clips" / "think40.pcap"
    whole, first, text = tmp_path / "whole.svg", tmp_path / "first.svg", tmp_path / "a.txt"
    assert run("flow", clip, "-o", whole)[0] == 0
    count = lp.read(clip).arrow("events").num_rows
    monkeypatch.setattr(flows, "MAX_DRAWN", count - 7)
    assert run("flow", clip, "-o", first)[0] == 0 and run("flow", clip, "-o", text)[0] == 0
    assert f"of {count} item(s)" in whole.read_text(encoding="utf-8")
    drawn = first.read_text(encoding="utf-8")
    words = " ".join(re.sub(r"<[^>]*>", " ", drawn).split())
    assert f"of {count} item(s)" in words and "7 more packets are behind them" in words
    assert "behind them" not in whole.read_text(encoding="utf-8")
    assert text.read_text(encoding="utf-8") == lp.read(clip).flow_graph().text()
