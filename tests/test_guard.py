"""Does the command end in one line and an exit code that means something, whatever its surroundings are?"""

from __future__ import annotations

import importlib
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TextIO

import pytest
import typer
from archives import SMALL
from commands import START
from makepcap import Talk, answer, get, pcap

import latpcap as lp
from latpcap import files
from latpcap.cli import exit_codes, main
from latpcap.errors import NoSuchRowError
from latpcap.format import escaped

SHELL = f"exec {sys.executable} -c 'from latpcap.cli import main; main()' \"$@\""


CLICK = typer.BadParameter.__module__.rpartition(".")[0]
"""Typer's own copy of click, or click itself where it has none."""


def shell(redirect: str, *words: object, **env: str) -> tuple[int, bytes, bytes]:
    """The command with its standard files as a shell redirects them."""
    run = ["sh", "-c", f"{SHELL} {redirect}", "sh", *map(os.fsencode, map(str, words))]
    done = subprocess.run(run, capture_output=True, check=False, timeout=60, env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", [["why"], ["events", "--csv"], ["issues"]], ids=lambda words: words[0])
def test_a_full_disk_behind_standard_output(words: list[str]) -> None:
    code, _, err = shell(">/dev/full", words[0], SMALL, *words[1:])
    assert (code, err) == (2, b"latpcap: standard output cannot be written (no space left on device)\n")


def test_a_closed_standard_output() -> None:
    code, _, err = shell(">&-", "why", SMALL)
    assert (code, err) == (2, b"latpcap: standard output cannot be written (it is closed)\n")


def test_a_closed_standard_input() -> None:
    assert shell("<&-", "why", "-") == (3, b"", b"latpcap: <stdin>: standard input is closed\n")


def test_all_of_them_closed(tmp_path: Path) -> None:
    """What is opened later never becomes standard output: the file holds the table and nothing else."""
    code, out, err = shell("<&- >&- 2>&-", "exchanges", SMALL, "-o", tmp_path / "a.csv")
    assert (code, out, err) == (0, b"", b"")
    assert (tmp_path / "a.csv").read_bytes().startswith(b'"exchange",')


def test_a_reader_that_leaves() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*START, "events", str(SMALL)], stdout=write, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_of_few_letters(encoding: str, tmp_path: Path) -> None:
    name = tmp_path / "caf\N{SNOWMAN}.pcap"
    shutil.copy(SMALL, name)
    code, out, err = shell("", "why", name, PYTHONIOENCODING=encoding)
    assert code == 0 and err == b"" and b"caf" in out
    code, out, err = shell("", "why", f"{name}.none", PYTHONIOENCODING=encoding)
    assert code == 3 and err.count(b"\n") == 1 and rb"caf\u2603" in err


@pytest.mark.parametrize("name", [b"caf\xe9.pcap", b"red\x1bX.pcap", b"two\nlines.pcap"], ids=["bytes", "red", "lines"])
def test_names_that_would_write_on_the_terminal(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    shown = escaped(os.fsdecode(name)).encode()
    code, _, err = shell("", "why", path)
    assert code == 3 and err == b"latpcap: " + os.fsencode(tmp_path) + b"/" + shown + b": no such file\n"
    path.write_bytes(SMALL.read_bytes()[:-5])
    code, out, err = shell("", "why", path)
    assert code == 0 and out.startswith(shown + b": ") and shown in err and err.count(b"\n") == 1
    assert b"\x1b" not in out + err
    code, out, err = shell("", "batch", path, "-o", tmp_path / "out")
    assert code == 0 and shown in out and b"\x1b" not in out and err == b""
    assert shell("", "why", tmp_path / "out")[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_it_like_ctrl_c(number: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    late = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    late += "signal.signal(signal.SIGHUP, signal.SIG_DFL); print(1, flush=True);"  # as if these tests ran without nohup
    run = [sys.executable, "-c", f"{late} from latpcap.cli import main; main()", "compare", str(tmp_path / "pipe"), "x"]
    child = subprocess.Popen(run, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    with (tmp_path / "pipe").open("wb"):  # opened by both: it is being read
        child.send_signal(number)
        _, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (128 + number, b"latpcap: interrupted\n")


# in this process


def ended(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["latpcap", *map(str, words)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def raising(problem: BaseException) -> int:
    def work() -> int:
        raise problem

    try:
        exit_codes.run(work)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (ZeroDivisionError("x\ny"), 2, "latpcap: this is a bug of latpcap: ZeroDivisionError: x y"),
        (lp.CaptureError("a\nb", "no such file"), 3, "latpcap: a\\nb: no such file"),
        (lp.OutputError("out"), 2, "latpcap: out"),
        (NoSuchRowError("no stream 9"), 2, "latpcap: no stream 9"),
        (IndexError("list index"), 2, "latpcap: this is a bug of latpcap: IndexError: list index"),
        (MemoryError(), 2, "latpcap: out of memory"),
        (KeyboardInterrupt(), 130, "latpcap: interrupted"),
        (OSError(28, "No space left on device"), 2, "latpcap: standard output cannot be written (no space left"),
        (OSError(13, "Permission denied", "/x"), 2, "latpcap: /x: permission denied"),
        (SystemExit("sentence"), 2, "latpcap: sentence"),
        (SystemExit(1), 1, ""),
        (RecursionError("deep"), 2, "latpcap: this is a bug of latpcap: RecursionError: deep"),
    ],
)  # fmt: skip
def test_every_end_is_a_line(problem: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(problem) == code
    err = capsys.readouterr().err
    assert err.startswith(said) and err.count("\n") == (said != "")


def test_a_bug_shows_itself_when_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATPCAP_TRACEBACK", "1")
    assert raising(ZeroDivisionError("x")) == 2
    assert "Traceback" in capsys.readouterr().err


def test_signals_mean_what_they_meant_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    exit_codes.run(lambda: 0)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(OSError, match="full"), files.replacing(path) as beside:
        beside.write_text("half")
        raise OSError("full")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    link = tmp_path / "link"
    link.symlink_to(path)
    files.write(link, b"new")
    assert path.read_text() == "new" and link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    with files.replacing(os.devnull) as beside:
        assert beside == Path(os.devnull), "what is no file is written in place"


@pytest.mark.parametrize("words", [["slice"], ["exchanges"]], ids=lambda words: words[0])
def test_outputs_are_whole_or_the_old_ones(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / ("a.pcap" if words == ["slice"] else "a.csv")
    assert ended(monkeypatch, *words, SMALL, "-o", out) == 0
    before = out.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *of: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert ended(monkeypatch, *words, SMALL, "-o", out) == 2
    assert out.read_bytes() == before and list(tmp_path.iterdir()) == [out]


# standard output and signals, in this process


class Broken(io.StringIO):
    """A standard output whose flush fails."""

    def __init__(self, problem: OSError | ValueError):
        super().__init__()
        self.problem = problem

    def flush(self) -> None:
        raise self.problem


@pytest.fixture
def stdout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TextIO]:
    """A file that stands for the standard output which Python flushes at its end."""
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "__stdout__", file)
        yield file


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
        (OSError(28, "No space left on device"), 2, "standard output cannot be written (no space left on device)"),
        (ValueError("I/O operation on closed file"), 2, "standard output cannot be written (I/O operation on closed"),
    ],
)
def test_a_flush_that_fails(
    problem: OSError | ValueError, code: int, said: str, stdout: TextIO, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdout", Broken(problem))
    try:
        exit_codes.run(lambda: 0)
        ended = 0
    except SystemExit as end:
        ended = int(end.code or 0)
    err = capsys.readouterr().err
    assert ended == code and said in err and err.count("\n") == (said != "")
    stdout.write("what still waits")
    stdout.flush()
    assert (tmp_path / "out").read_text() == "", "it goes nowhere"


def test_the_works_own_sentence_comes_first(
    stdout: TextIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, "No space left on device")))
    assert raising(lp.OutputError("the first trouble")) == 2
    assert capsys.readouterr().err == "latpcap: the first trouble\n"


def test_a_reader_that_leaves_is_no_error_in_the_middle_either(
    stdout: TextIO, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert raising(BrokenPipeError(32, "Broken pipe")) == 0
    assert capsys.readouterr() == ("", "")
    stdout.write("rest")
    stdout.flush()
    assert (tmp_path / "out").read_text() == ""


def test_what_click_made_of_a_reader_that_left(
    stdout: TextIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It wraps standard output and ends with 1, which would mean that a rule failed."""
    utils = importlib.import_module(CLICK + ".utils")
    wrapper = vars(utils).get("_PacifyFlushWrapper") or utils.PacifyFlushWrapper
    monkeypatch.setattr(sys, "stdout", wrapper(io.StringIO()))
    assert raising(SystemExit(1)) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_breaks_the_work_off(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    if before is not signal.SIG_DFL:
        pytest.skip("somebody ignores this signal")
    reached = []

    def work() -> int:
        os.kill(os.getpid(), number)
        time.sleep(10)
        reached.append(True)
        return 0

    with pytest.raises(SystemExit) as end:
        exit_codes.run(work)
    assert end.value.code == 128 + number and not reached
    assert capsys.readouterr().err == "latpcap: interrupted\n"
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored() -> None:
    """As nohup wants it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        seen = []

        def work() -> None:
            os.kill(os.getpid(), signal.SIGHUP)
            seen.append(signal.getsignal(signal.SIGHUP))

        exit_codes.run(work)
        assert seen == [signal.SIG_IGN]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_have_no_signals() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(exit_codes.run, lambda: 0).result() is None


def test_streams_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's name for a closed standard file is None."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    said = []

    def work() -> int:
        said.append((sys.stdout.isatty(), sys.stdout.encoding))
        sys.stdout.flush()
        sys.stdout.write("lost")
        return 0

    with pytest.raises(SystemExit) as end:
        exit_codes.run(work)
    assert end.value.code == 2 and said == [(False, "utf-8")]
    sys.stderr.close()


def test_nobody_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Broken(OSError(28, "No space left on device")))
    assert raising(lp.OutputError("unheard")) == 2


def test_typers_own_ends(capsys: pytest.CaptureFixture[str]) -> None:
    errors = importlib.import_module(CLICK + ".exceptions")
    assert raising(typer.Abort()) == 2
    assert capsys.readouterr().err == "latpcap: interrupted\n"
    assert raising(errors.UsageError("No such option.")) == 2
    assert capsys.readouterr().err == "latpcap: No such option (see --help)\n"
    assert raising(errors.UsageError("Usage: latpcap\n\nThe help, in lines.")) == 2
    assert capsys.readouterr().err == "Usage: latpcap\n\nThe help, in lines.\n", (
        "no words at all: the help is the answer"
    )
    with pytest.raises(SystemExit) as end:
        exit_codes.run(lambda: 130)
    assert end.value.code == 130 and capsys.readouterr().err == "latpcap: interrupted\n"


# words of a capture in a spreadsheet


def test_cells_are_no_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    talk.open()
    for number, target in enumerate(("/plain", "=cmd()", "+1", "-1", "@x", "a=b", "=\x1b[31m")):
        talk.client(100.0 * number + 10, get(target))
        for piece in answer(50):
            talk.server(100.0 * number + 50, piece)
    (tmp_path / "a.pcap").write_bytes(pcap(talk.tape))
    targets = [t for t in lp.read(tmp_path / "a.pcap").exchanges["target"] if isinstance(t, str)]
    assert "=cmd()" in targets, "the tables say what was said"
    words = ["exchanges", tmp_path / "a.pcap", "--columns", "target,latency_ms", "-o", tmp_path / "a.csv"]
    assert ended(monkeypatch, *words) == 0
    cells = (tmp_path / "a.csv").read_text().split("\n")
    assert {'"\'=cmd()"', '"\'+1"', '"\'-1"', '"\'@x"', '"a=b"', '"/plain"'} <= {c.partition(",")[0] for c in cells}
    assert not any("\x1b" in cell for cell in cells)
    monkeypatch.setenv("LATPCAP_CSV", "raw")
    assert ended(monkeypatch, *words) == 0
    assert '"=cmd()"' in (tmp_path / "a.csv").read_text()


def test_scratch_is_private(tmp_path: Path) -> None:
    from latpcap.archive.output import Output

    for place in (Output(str(tmp_path)), Output("memory://x")):
        with place.scratch() as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_a_program_that_waits_in_c(number: int) -> None:
    """As for a store that does not answer: no Python runs meanwhile."""
    script = """
import ctypes, signal
from latpcap.cli import exit_codes
signal.signal(signal.SIGINT, signal.default_int_handler)
exit_codes._HANDLER_WAIT_S = 0.3
lock, mutex = ctypes.CDLL(None), (ctypes.c_long * 8)()
def stuck():
    print(1, flush=True)
    lock.pthread_mutex_lock(mutex)
    lock.pthread_mutex_lock(mutex)
exit_codes.run(stuck)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"1\n"
    time.sleep(0.2)
    child.send_signal(number)
    _, err = child.communicate(timeout=10)
    assert (child.returncode, err) == (128 + number, b"latpcap: interrupted\n")
