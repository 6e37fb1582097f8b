"""Every sentence that an answer can print is printed of a capture here, and what is said of a made one is true."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from spoken import BESIDE, SPOKEN, all_said, ask, beside


@pytest.mark.parametrize("name", SPOKEN)
def test_what_is_said_of_it(name: str) -> None:
    spoken = SPOKEN[name]
    said = all_said(ask(spoken))
    for line in spoken.lines:
        assert line in said, said


@pytest.mark.parametrize("name", BESIDE)
def test_what_is_said_beside_it(name: str, tmp_path: Path) -> None:
    said = str(beside(name, tmp_path))
    assert BESIDE[name][2] in said, said


def test_every_sentence_is_said_of_some_capture() -> None:
    told = subprocess.run(
        [sys.executable, "-P", Path(__file__).with_name("sentences.py"), "--json"], capture_output=True, check=True
    )
    sentences = json.loads(told.stdout)
    assert len(sentences) > 300
    unsaid = {sentence["text"]: sentence["place"] for sentence in sentences if not sentence["said"]}
    assert not unsaid, f"no capture prints: {unsaid}"
