"""Has each owner of a capture's time a paragraph, and nobody else?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commands import run
from spoken import SPOKEN, ask

import latpcap as lp

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_pcaps" / "nginx-latency.pcap"
CASES = sorted((ROOT / "tests" / "cases").glob("*/capture.pcap"))[::9]


def test_the_first_paragraph_is_the_headline() -> None:
    why = lp.read(SAMPLE).why()
    (only,) = why.for_owner()
    head, what, proof, _, fix = only.splitlines()
    assert head == "For whoever runs the server 192.168.0.30:8080"
    assert what.split(maxsplit=1) == ["what", why.headline] and fix.split(maxsplit=1) == ["fix", why.fix]
    assert proof.split(maxsplit=1)[1].startswith("proven (0.99); frames ")
    assert run("why", SAMPLE, "--for-owner")[1] == only + "\n"


def test_the_command_to_check_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (paragraph,) = lp.read(SAMPLE).why().for_owner()
    [command] = re.findall(r"^  check +(.*)$", paragraph, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    words = shlex.split(command)
    assert words[:2] == ["latpcap", "flow"]
    assert run(*words[1:])[0] == 0 and (tmp_path / "flow.png").stat().st_size > 10_000


def test_where_nothing_is_slow_nobody_is_called() -> None:
    why = lp.read(ROOT / "sample_pcaps" / "nginx-good.pcap").why()
    assert why.for_owner() == [why.headline] and "For whoever" not in why.headline


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.parent.name)
def test_paragraphs_are_made_of_the_findings(case: Path) -> None:
    why = lp.read(case).why()
    known = {finding.fix for finding in why.findings}
    for paragraph in why.for_owner():
        lines = paragraph.splitlines()
        for line in lines[1:]:
            label, text = line.split(maxsplit=1)
            assert label in ("what", "proof", "check", "fix")
            assert label != "fix" or text in known


def test_one_exchange_has_no_paragraphs() -> None:
    with pytest.raises(ValueError, match="one exchange"):
        lp.read(SAMPLE).why(exchange=3).for_owner()


@pytest.mark.parametrize("more", [("--json",), ("--exchange", "3"), (SAMPLE,)])
def test_the_command_refuses_what_has_none(more: tuple[str, ...]) -> None:
    code, out, err = run("why", SAMPLE, "--for-owner", *more)
    assert (code, out) == (2, "") and "is for the text of one capture's answer" in err


def test_every_spoken_answer_has_paragraphs() -> None:
    for spoken in SPOKEN.values():
        why = ask(spoken)
        assert all(why.for_owner())
        if (lead := why.to_dict().get("lead")) is not None:
            assert why.headline in why.for_owner()[0] and lead["owner"] in why.for_owner()[0].splitlines()[0]
