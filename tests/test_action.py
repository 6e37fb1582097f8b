"""Does the GitHub Action that compares two captures say what it found, and fail where it has to?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ACTION = ROOT / ".github" / "actions" / "compare"
FAST, SLOW = ("sample_pcaps/nginx-good.pcap", "sample_pcaps/nginx-latency.pcap")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's shell is bash")


def ran(tmp_path: Path, before: str, after: str, rules: str) -> tuple[int, str, str, str]:
    """Exit code, log, outputs and summary of the action's script, as a runner calls it."""
    program = tmp_path / "bin" / "latpcap"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from latpcap.cli import main; main()' \"$@\"\n")
    program.chmod(0o755)
    output, summary = tmp_path / "output", tmp_path / "summary"
    env = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "BEFORE": before, "AFTER": after}
    env |= {"FAIL_ON": rules, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    done = subprocess.run(["bash", ACTION / "compare.sh"], cwd=ROOT, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout, output.read_text(), summary.read_text()


def test_a_slower_build_fails(tmp_path: Path) -> None:
    code, log, output, summary = ran(tmp_path, FAST, SLOW, "p99_ms>+10%\n  p50_ms>40  \n\n")
    assert code == 1 and output == "result=failed\n"
    assert log.count("latpcap: ") == 2 and "p99_ms" in log and "moved" in log
    assert summary.startswith("### latpcap compare: failed\n\n    before")


def test_a_faster_build_passes(tmp_path: Path) -> None:
    code, _, output, summary = ran(tmp_path, SLOW, FAST, "p99_ms>+10%")
    assert (code, output) == (0, "result=passed\n") and "passed" in summary


def test_without_rules_it_only_tells(tmp_path: Path) -> None:
    assert ran(tmp_path, FAST, SLOW, "")[0] == 0


def test_what_is_wrong_is_no_pass(tmp_path: Path) -> None:
    code, log, output, _ = ran(tmp_path, FAST, "none.pcap", "p99_ms>+10%")
    assert code == 3 and "no such file" in log and output == "result=failed\n"


def test_inputs_are_data(tmp_path: Path) -> None:
    """A file's name or a rule from somewhere else runs no command."""
    code, *_ = ran(tmp_path, FAST, "$(touch pwned)", "`touch pwned`")
    assert code in (2, 3) and not (ROOT / "pwned").exists()
    text = (ACTION / "action.yml").read_text(encoding="utf-8")
    for script in re.findall(r"run: (.*)", text):
        assert "${{" not in script


def test_the_script_has_what_the_action_gives_it() -> None:
    text = (ACTION / "action.yml").read_text(encoding="utf-8")
    script = (ACTION / "compare.sh").read_text(encoding="utf-8")
    for name in ("BEFORE", "AFTER", "FAIL_ON"):
        assert f"        {name}: ${{{{ inputs." in text and name in script
