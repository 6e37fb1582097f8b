"""Does a bar show what it waits for, and no longer than it waits?"""

from __future__ import annotations

import pytest

from latpcap import bars


def test_a_note_stands_behind_the_count_until_more_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "_EVERY_S", 0.0)
    monkeypatch.setattr(bars, "AFTER_S", 0.0)
    with bars.bar("reading", 100, "frame", shown=True) as bar:
        bars.note("waiting for the server")
        assert "waiting for the server" in capsys.readouterr().err.split("\r")[-1]
        bar.add(50)
        last = capsys.readouterr().err.split("\r")[-1]
        assert "50/100" in last and "waiting" not in last


def test_where_nobody_watches_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    bars.note("no bar is there")
    with bars.bar("reading", 100, shown=False) as bar:
        bars.note("waiting")
        bar.add(50)
    assert capsys.readouterr().err == ""
