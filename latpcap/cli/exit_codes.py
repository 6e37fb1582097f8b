"""How does the command end? Whatever happens ends in one line on standard error and an exit code that means something.

0 analysed; 1 a rule of `compare --fail-on` fails, and nothing else; 2 wrong usage, an output that cannot be written, or
a bug of ours (LATPCAP_TRACEBACK=1 shows where); 3 a capture could not be read; 128 and the signal's number after a
signal that ends programs. A reader that leaves (`| head`) is no error.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from latpcap import files
from latpcap.cli import memory_limit
from latpcap.cli.options import EXIT_UNREADABLE
from latpcap.errors import CaptureError, LatpcapError, is_out_of_memory
from latpcap.format import escaped, phrase

EXIT_USAGE = 2
_TOO_LONG = "integer string conversion"
"""Python's message for numbers of thousands of digits."""
_ENDING = ("SIGTERM", "SIGHUP")
"""Signals that end the work as Ctrl-C does."""
_NAMED = 3
"""Files that are named at the end, of those that were written."""
_DEAF_S = 5.0
"""Python's handlers run between two of its own steps. A call into C that takes longer ends with the program."""


def run(work: Callable[[], int | None]) -> None:
    """Does the work; SystemExit where the exit code is not 0. `work` raises what it likes."""
    memory_limit.guarded(lambda: _run(work))


def _run(work: Callable[[], int | None]) -> None:
    before = _Signals()
    _occupied()
    _escape_unprintable()
    try:
        with files.protected_inputs() as written:
            code, sentence = _ending(work)
    finally:
        before.restored()
    gone = type(sys.stdout).__name__.lstrip("_") == "PacifyFlushWrapper"  # click's, which makes an exit code 1 of it
    if gone:
        code, sentence = 0, None
    try:
        if sys.stdout is not None and not gone:
            sys.stdout.flush()
    except BrokenPipeError:
        _silenced()
    except (OSError, ValueError) as problem:
        code, sentence = EXIT_USAGE, sentence or _unwritten(problem)
        _silenced()
    if gone:
        _silenced()
    if before.caught is not None:
        code = 128 + before.caught
    if written and not code:
        more = f" and {len(written) - _NAMED:,} more" if len(written) > _NAMED else ""
        _say(f"wrote {', '.join(written[:_NAMED])}{more}", "")
    if sentence is not None:
        _say(sentence)
    if code:
        sys.exit(code)


def _ending(work: Callable[[], int | None]) -> tuple[int, str | None]:
    """The exit code, and the message."""
    try:
        code = work()  # of a typer that turns Ctrl-C into one
        return (code, "interrupted") if code else (0, None)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0, None
        return EXIT_USAGE, str(end.code)
    except CaptureError as problem:
        return EXIT_UNREADABLE, str(problem)
    except (LatpcapError, IndexError) as problem:
        return EXIT_USAGE, str(problem)
    except BrokenPipeError:
        _silenced()
        return 0, None
    except KeyboardInterrupt:
        return 130, "interrupted"
    except MemoryError:
        return EXIT_USAGE, memory_limit.sentence()
    except BaseException as problem:
        return EXIT_USAGE, _of_others(problem)


def _of_others(problem: BaseException) -> str | None:
    if type(problem).__name__ == "Abort":
        return "interrupted"
    if hasattr(problem, "format_message"):  # the parser's own errors carry their sentence
        text = str(problem.format_message())
        if "\n" in text:  # no command at all: the help is the answer
            sys.stderr.write(f"{text}\n")
            return None
        return f"{text.removesuffix('.')} (see --help)"
    if is_out_of_memory(problem):
        return memory_limit.sentence()
    if isinstance(problem, OSError) and problem.filename is None:
        return _unwritten(problem)
    if isinstance(problem, OSError):
        return f"{problem.filename}: {phrase(problem)}"
    if isinstance(problem, OverflowError) or (isinstance(problem, ValueError) and _TOO_LONG in str(problem)):
        return "a number is too large (see --help)"
    if os.environ.get("LATPCAP_TRACEBACK"):
        traceback.print_exception(problem)
    places = [f for f in traceback.extract_tb(problem.__traceback__) if "latpcap" in f.filename]
    where = f", {os.path.basename(places[-1].filename)} line {places[-1].lineno}" if places else ""
    what = " ".join(str(problem).split())[:200]
    if memory_limit.limit_mb() is not None:  # others' code makes many things of a lack of it
        return f"{memory_limit.sentence()}, which may not suffice ({type(problem).__name__}: {what}{where})"
    return f"this is a bug of latpcap: {type(problem).__name__}: {what}{where} (LATPCAP_TRACEBACK=1 shows more)"


def _unwritten(problem: OSError | ValueError) -> str:
    return f"standard output cannot be written ({phrase(problem)})"


def _say(sentence: str, name: str = "latpcap: ") -> None:
    """One line on standard error, whatever it holds; a line that nobody can read is no matter."""
    lines = "\n".join(escaped(line) for line in f"{name}{sentence}".split("\n"))
    try:
        print(lines, file=sys.stderr, flush=True)  # noqa: T201
    except (OSError, ValueError, AttributeError):
        return


class _Signals:
    """SIGTERM and SIGHUP are Ctrl-C while the command works; what was ignored (nohup) stays ignored."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self._before: dict[int, Any] = {}
        self._handled = threading.Event()
        self._ends: tuple[int, int] | None = None
        if threading.current_thread() is threading.main_thread():
            for name in _ENDING:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                    self._before[number] = signal.signal(number, self._on_signal)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupted)
            if os.name == "posix" and self._before:
                self._watch()

    def _on_signal(self, number: int, frame: object) -> None:
        self.caught = number
        self._interrupted(number, frame)

    def _interrupted(self, number: int, frame: object) -> None:
        self._handled.set()
        raise KeyboardInterrupt

    def _watch(self) -> None:
        """Ends the program where the main thread waits in C (for a store that is silent) and handles no signal."""
        read, write = self._ends = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=self._forgotten)

        def watched() -> None:
            while number := int.from_bytes(os.read(read, 1), "big"):
                if signal.getsignal(number) in (self._on_signal, self._interrupted) and not self._handled.wait(_DEAF_S):
                    _say("interrupted")
                    os._exit(128 + number)
            os.close(read)

        threading.Thread(target=watched, daemon=True).start()

    def _forgotten(self) -> None:
        """A child of a fork has its parent's pipe, and no thread that reads it."""
        if self._ends is not None:
            signal.set_wakeup_fd(-1)

    def restored(self) -> None:
        """What they meant before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._ends is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._ends[1])
            self._ends = None


def _occupied() -> None:
    """No file that is opened later may become the standard input, output or error that somebody closed."""
    while True:
        try:
            number = os.open(os.devnull, os.O_RDWR)
        except OSError:
            return
        if number > 2:
            os.close(number)
            return


class _Closed:
    """A standard output that somebody closed: it is an error to write to it."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        """No."""
        return False


def _escape_unprintable() -> None:
    """What the terminal's letters cannot say is written as an escape."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the program
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _silenced() -> None:
    """What still waits to be written goes nowhere; else Python would complain about it at its end."""
    stream: TextIO | None = sys.__stdout__
    try:
        number = 1 if stream is None else stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    except (OSError, ValueError):
        return
