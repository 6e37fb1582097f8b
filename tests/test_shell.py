"""Does the command have the habits of a good one? Defaults, formats, streams, Ctrl-C, completion, manual page."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from commands import PICTURE, START, UNREADABLE, USAGE, answered, complains, program, run
from test_cli import SAMPLES, SMALL, STALL

import latpcap as lp
from latpcap import bars
from latpcap.cli import export, live, main, tables, text
from latpcap.cli.app import app

BIG = SAMPLES / "nginx-latency.pcap"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, *words: object) -> str:
    """What the command shows on a terminal of this width."""
    out = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["latpcap", *map(str, words)])
    main()
    return out.getvalue()


# which command


def test_a_file_alone_is_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(STALL) == answered("why", STALL)
    assert answered("--stream", 1, STALL) == answered("why", STALL, "--stream", 1)
    assert "none.pcap: no such file" in complains(UNREADABLE, tmp_path / "none.pcap")
    shutil.copy(STALL, tmp_path / "capture")  # a name without a suffix, and one of a command
    shutil.copy(STALL, tmp_path / "streams")
    monkeypatch.chdir(tmp_path)
    assert answered("capture").startswith("capture: ")
    complains(USAGE, "streams")


def test_short_options() -> None:
    assert answered("-V") == answered("--version")
    assert answered("-h") == answered("--help")
    assert answered("exchanges", "-h") == answered("exchanges", "--help")


def test_the_worst_exchange() -> None:
    cap = lp.read(STALL)
    worst = int(cap.exchanges.query("complete").nlargest(1, "latency_ms").exchange.iloc[0])
    assert answered("why", STALL, "--exchange", "worst") == f"{cap.why(exchange=worst)}\n"
    assert (
        str(cap.stream(1).why(exchange="first")).splitlines()[1:] == str(cap.stream(1).why(exchange=0)).splitlines()[1:]
    )
    assert "neither a number nor one of worst, typical, first" in complains(USAGE, "why", STALL, "--exchange", "best")


def test_a_stretch_of_time() -> None:
    """Of every command that reads captures; `read(start=, end=)` says the same."""
    span = ("--start", "0.2", "--end", "2026-11-21T06:07:32Z")
    part = lp.read(BIG, start=0.2, end="2026-11-21T06:07:32Z")
    assert 0 < len(part.exchanges) < len(lp.read(BIG).exchanges)
    assert answered("why", BIG, *span) == answered(BIG, *span) == f"{part.why()}\n"
    assert len(answered("exchanges", BIG, *span, "--csv").splitlines()) == 1 + len(part.exchanges)
    assert answered("latency", BIG, *span) == f"{part.latency()}\n"
    assert answered("flow", BIG, *span) == part.flow_graph().text()
    piped = program("streams", "-", *span, "--csv", stdin=BIG.read_bytes())
    assert piped == (0, answered("streams", BIG, *span, "--csv"), "")
    for name in ("why", "events", "flow", "follow", "har", "slice", "latency", "report"):
        assert all(word in answered(name, "--help") for word in ("--start", "--end")), name
    assert "--start: 'noon': is not an instant such as" in complains(USAGE, "why", BIG, "--start", "noon")
    assert "--end: -1.0: a number is seconds since" in complains(USAGE, "events", BIG, "--end", "-1")
    assert "about whole captures" in complains(USAGE, "why", BIG, STALL, "--together", "--end", "1")


def test_several_captures_are_a_line_each(tmp_path: Path) -> None:
    out = answered("why", SMALL, STALL)
    assert [line.split()[0] for line in out.splitlines()] == [SMALL.name, STALL.name]
    assert "because" in out.splitlines()[1]
    assert [one["file"] for one in json.loads(answered("why", SMALL, STALL, "--json"))] == [SMALL.name, STALL.name]
    (tmp_path / "text.pcap").write_text("once upon a time\n")
    code, out, err = run("why", tmp_path / "text.pcap", STALL)
    assert (code, len(out.splitlines())) == (UNREADABLE, 1) and "not a pcap" in err
    assert "numbered within a capture" in complains(USAGE, "why", SMALL, STALL, "--stream", 1)
    assert "whole captures" in complains(USAGE, "why", SMALL, STALL, "--together", "-Y", "tcp")


def test_one_answer_over_several_captures(tmp_path: Path) -> None:
    both = [lp.read(path) for path in (SMALL, STALL)]
    told = json.loads(answered("why", SMALL, STALL, "--together", "--json"))
    assert told["frames"] == sum(cap.frames for cap in both)
    assert answered("why", SMALL, STALL, "--together").startswith("all (2 captures)")
    bad = tmp_path / "text.pcap"
    bad.write_text("once upon a time\n")
    code, out, err = run("why", bad, STALL, "--together")
    assert code == 0 and out and "text.pcap" in err
    assert run("why", bad, bad.rename(tmp_path / "b.pcap"), "--together")[0] == UNREADABLE


# tables


def test_standard_output_in_every_form() -> None:
    want = lp.read(SMALL).arrow("exchanges")
    rows = json.loads(answered("exchanges", SMALL, "--json"))
    assert [row["exchange"] for row in rows] == want["exchange"].to_pylist()
    assert [json.loads(line) for line in answered("exchanges", SMALL, "--jsonl").splitlines()] == rows
    lines = list(csv.DictReader(io.StringIO(answered("exchanges", SMALL, "--csv", "-o", "-"))))
    assert [int(line["exchange"]) for line in lines] == want["exchange"].to_pylist()
    assert json.loads(answered("causes", STALL, "--top", 0, "--json")) == []
    assert answered("causes", SMALL, "--top", 0, "--jsonl") == ""
    assert len(json.loads(answered("findings", STALL, "--json"))[0]) > 40  # all columns, not those of a terminal
    assert json.loads(answered("latency", STALL, "--json"))[0]["count"] == 30
    assert "takes one of them" in complains(USAGE, "streams", SMALL, "--json", "--csv")


def test_jsonl_file(tmp_path: Path) -> None:
    answered("streams", SMALL, "-o", tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == answered("streams", SMALL, "--jsonl")


def test_a_terminal_gets_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = on_terminal(monkeypatch, 80, "exchanges", BIG).splitlines()
    assert max(map(len, out[:41])) <= 80 and len(out) == 43
    assert out[0].split()[:3] == ["exchange", "stream", "method"] and "\x1b" not in "".join(out)
    assert re.fullmatch(r"… \d+ more rows; --top N, --csv or -o FILE gives others", out[41])
    assert "no room for" in out[42]
    wide = on_terminal(monkeypatch, 80, "exchanges", SMALL, "--columns", "all", "--top", 1).splitlines()
    assert wide[0].split() == lp.read(SMALL).arrow("exchanges").column_names


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = on_terminal(monkeypatch, 1000, "why", STALL)  # no line is wrapped
    plain = PICTURE.sub("", re.sub(r"\x1b\[\d+m", "", shown))
    assert "\x1b[1m" in shown and plain == f"{lp.read(STALL).why()}\n"
    assert on_terminal(monkeypatch, 100, "streams", STALL).startswith("\x1b[1mstream")


def test_columns_of_a_terminal_exist() -> None:
    cap = lp.read(SMALL)
    for name, columns in text.BRIEF.items():
        assert set(columns.split()) <= set(cap.arrow(name).column_names), name  # type: ignore[arg-type]
    assert export.brief(pa.table({"new": [1]}), "a table of tomorrow").column_names == ["new"]


def test_longer_values_further_on_keep_the_columns() -> None:
    some = [pa.table({"a": ["x"] * 3, "n": [1, 2, 3]}), pa.table({"a": ["longer", None], "n": [10_000, None]})]
    assert list(text.Layout().lines(some)) == ["a  n", "x  1", "x  2", "x  3", "longer  10000", ""]
    assert list(text.Layout().lines([])) == ["no rows"]
    long = list(text.Layout().lines([pa.table({"a": ["y" * 99]})]))
    assert long[1] == "y" * 59 + "…"


@pytest.mark.parametrize("name", ["events", "exchanges"])
def test_streamed_rows_are_those_of_the_table(name: str) -> None:
    rows = [json.loads(line) for line in answered(name, BIG, "--jsonl").splitlines()]
    want = export.rows(lp.read(BIG).arrow(name))  # type: ignore[arg-type]
    assert rows == json.loads(json.dumps(want))


def test_rows_come_while_the_capture_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows are there before the end was read."""
    read: list[int] = []

    class Endless(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            read.append(size or 0)
            return super().read(size)

    data = BIG.read_bytes()
    source = Endless(data + data[24:] * 4)
    first = next(tables._streamed(source, "events", None))
    assert first.num_rows and sum(read) < len(source.getvalue()) / 2


# flow


def test_flow_without_a_file_is_tsharks_text() -> None:
    want = lp.read(STALL).stream(0).flow_graph().text()
    assert answered("flow", STALL, "--stream", 0) == want == answered("flow", STALL, "--stream", 0, "-o", "-")
    assert "give -o" in complains(USAGE, "flow", STALL, "--stream", 0, "--beside-stream", 1)


# Ctrl-C


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
def test_ctrl_c_on_a_live_pipe_answers() -> None:
    data = BIG.read_bytes()[:200_000]
    with subprocess.Popen(
        [*START, "why", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(data)  # more than a pipe holds: it has begun to read when this is done
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        assert process.wait(30) == 0
    assert out.startswith("<stdin>: ") and "reading ends here" in err and "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes there")
def test_what_still_arrives_behind_ctrl_c_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    before = signal.getsignal(signal.SIGINT)
    ours = os.open(fifo, os.O_RDWR)  # so that neither end waits for the other
    found = live.pipe(str(fifo))
    assert found is not None and live.pipe(str(BIG)) is None
    os.write(ours, b"one")
    assert found.read(100) == b"one"
    signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before  # a second one ends
    os.write(ours, b"two")
    assert found.read(100) == b"two"
    began = time.monotonic()
    assert found.read(100) == b"" and time.monotonic() - began < 5
    os.close(ours)
    assert "reading ends here" in capsys.readouterr().err


# completion, manual page, bars


def test_completion() -> None:
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = program_with(f"complete_{shell}", "latpcap excha")
        assert code == 0 and "exchanges" in out, shell


def program_with(instruction: str, typed: str) -> tuple[int, str, str]:
    env = {**os.environ, "_LATPCAP_COMPLETE": instruction, "COMP_WORDS": typed, "COMP_CWORD": "1"}
    env |= {"_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    start = "import sys; sys.argv[0] = 'latpcap'; from latpcap.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def test_the_manual_page_names_everything() -> None:
    import typer.main

    page = answered("man")
    assert page.startswith(".TH LATPCAP 1")
    for name, command in typer.main.get_group(app).commands.items():
        for inner in getattr(command, "commands", {None: command}).values():
            assert name in page
            for param in inner.params:
                assert all(word.replace("-", "\\-") in page for word in param.opts if word.startswith("--")), param.opts
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True, text=True, check=False)
        assert "latpcap" in done.stdout and not done.stderr


def test_a_bar_is_shown_after_a_second(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with bars.bar("reading x", 100, shown=True) as bar:
        bar.add(50)
    assert capsys.readouterr().err == ""  # it was quick
    monkeypatch.setattr(bars, "AFTER_S", 0.0)
    with bars.bar("reading x", 100, shown=True) as bar:
        bar.add(60)
        bar.add(60)
    assert "reading x" in capsys.readouterr().err
    monkeypatch.setattr(bars, "is_watched", lambda: True)
    lp.read(BIG, progress=True)
    assert "nginx-latency.pcap" in capsys.readouterr().err
    lp.read(BIG)
    assert capsys.readouterr().err == ""


def test_nobody_watches_a_pipe() -> None:
    code, _, err = program("why", BIG)
    assert (code, err) == (0, "") and bars.is_watched() is False


def test_an_option_means_one_thing_in_every_command() -> None:
    """One declaration each, in `cli/options.py`."""
    import typer.main

    of_one = {"--stream", "--filter", "--keylog", "--exchange", "--dpi", "--mark-ms", "--names", "--start", "--end"}
    found: dict[str, set[str]] = {}
    group = typer.main.get_group(app)
    plots = group.commands["plot"].commands  # type: ignore[attr-defined]
    for command in [*group.commands.values(), *plots.values()]:
        for option in command.params:
            if (word := option.opts[-1]) in of_one and not option.required:
                found.setdefault(word, set()).add(option.help)  # type: ignore[attr-defined]
    assert found.keys() == of_one
    assert {word: meanings for word, meanings in found.items() if len(meanings) > 1} == {}
