"""Does a bar show what it waits for, and no longer than it waits?"""

from __future__ import annotations

import re

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


def test_a_command_has_one_bar_for_all_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "_EVERY_S", 0.0)
    monkeypatch.setattr(bars, "AFTER_S", 0.0)
    with bars.command():
        bars.expect(2)
        for _ in range(2):
            with bars.bar("reading", 100, "frame", shown=True) as bar:
                bar.add(50)
                bar.add(50)
    lines = [line for line in capsys.readouterr().err.split("\r") if "/" in line]
    assert [re.search(r"(\d+)/200", line)[1] for line in lines][-4:] == ["50", "100", "150", "200"]  # type: ignore[index]
    assert len({re.search(r"/(\d+)", line)[1] for line in lines}) == 1  # type: ignore[index]


def test_passes_that_nobody_expected_make_the_bar_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "_EVERY_S", 0.0)
    monkeypatch.setattr(bars, "AFTER_S", 0.0)
    with bars.command():
        for _ in range(2):
            with bars.bar("reading", 100, "frame", shown=True) as bar:
                bar.add(100)
    assert "200/200" in capsys.readouterr().err
