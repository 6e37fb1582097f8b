"""Runs the command so that it ends with one line on standard error and a meaningful exit code.

0 analysed; 1 a rule of `compare --fail-on` fails, and nothing else; 2 wrong usage, an output that cannot be written, or
a bug of latpcap (LATPCAP_TRACEBACK=1 shows where); 3 a capture could not be read; 128 and the signal's number after a
signal that ends programs. A closed pipe (`| head`) is no error.
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
from latpcap.errors import CaptureError, LatpcapError, is_out_of_memory, show_bug
from latpcap.format import escaped, phrase

EXIT_USAGE = 2
"""The exit code for wrong arguments and for what cannot be done or written."""
_TOO_LONG = "integer string conversion"
"""Python's message for numbers with thousands of digits."""
_ENDING_SIGNALS = ("SIGTERM", "SIGHUP")
"""Signals that are handled as Ctrl-C."""
_MAX_NAMED = 3
"""Upper bound on the written files that are named at the end."""
_HANDLER_WAIT_S = 5.0
"""Longest wait for Python's signal handler, which cannot run during a call into C; then the program is ended."""


def run(work: Callable[[], int | None]) -> None:
    """Run `work`, which may raise anything; SystemExit where the exit code is not 0."""
    memory_limit.guarded(lambda: _run(work))


def _run(work: Callable[[], int | None]) -> None:
    """Run `work` with its files protected; then flush the output, and report what was written and what failed."""
    before = _Signals()
    _open_standard_files()
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
        more = f" and {len(written) - _MAX_NAMED:,} more" if len(written) > _MAX_NAMED else ""
        _say(f"wrote {', '.join(written[:_MAX_NAMED])}{more}", "")
    if sentence is not None:
        _say(sentence)
    if code:
        sys.exit(code)


def _ending(work: Callable[[], int | None]) -> tuple[int, str | None]:
    """Run `work`; return the exit code and the message, if any."""
    try:
        code = work()  # typer returns a code for Ctrl-C
        return (code, "interrupted") if code else (0, None)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0, None
        return EXIT_USAGE, str(end.code)
    except CaptureError as problem:
        return EXIT_UNREADABLE, str(problem)
    except LatpcapError as problem:
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
    """Return the message about an exception that is not latpcap's own; None if it was printed already."""
    if type(problem).__name__ == "Abort":
        return "interrupted"
    if hasattr(problem, "format_message"):  # an error of the parser
        text = str(problem.format_message())
        if "\n" in text:  # without a command, the message is the help
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
    show_bug(problem)
    own_frames = [f for f in traceback.extract_tb(problem.__traceback__) if "latpcap" in f.filename]
    location = f", {os.path.basename(own_frames[-1].filename)} line {own_frames[-1].lineno}" if own_frames else ""
    message = " ".join(str(problem).split())[:200]
    if memory_limit.limit_mb() is not None:  # libraries raise many types of exceptions for a lack of memory
        return f"{memory_limit.sentence()}, which may not suffice ({type(problem).__name__}: {message}{location})"
    return f"this is a bug of latpcap: {type(problem).__name__}: {message}{location} (LATPCAP_TRACEBACK=1 shows more)"


def _unwritten(problem: OSError | ValueError) -> str:
    return f"standard output cannot be written ({phrase(problem)})"


def _say(sentence: str, name: str = "latpcap: ") -> None:
    """Print escaped lines on standard error; errors of writing are ignored."""
    lines = "\n".join(escaped(line) for line in f"{name}{sentence}".split("\n"))
    try:
        print(lines, file=sys.stderr, flush=True)  # noqa: T201
    except (OSError, ValueError, AttributeError):
        return


class _Signals:
    """Handles SIGTERM and SIGHUP as Ctrl-C while the command runs; ignored signals (nohup) stay ignored."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self._before: dict[int, Any] = {}
        self._handled = threading.Event()
        self._ends: tuple[int, int] | None = None
        if threading.current_thread() is threading.main_thread():
            for name in _ENDING_SIGNALS:
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
        """End the program where the main thread waits in C (for a silent store) and cannot handle a signal."""
        read, write = self._ends = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=self._forgotten)

        def end_if_ignored() -> None:
            while number := int.from_bytes(os.read(read, 1), "big"):
                is_ours = signal.getsignal(number) in (self._on_signal, self._interrupted)
                if is_ours and not self._handled.wait(_HANDLER_WAIT_S):
                    _say("interrupted")
                    os._exit(128 + number)
            os.close(read)

        threading.Thread(target=end_if_ignored, daemon=True).start()

    def _forgotten(self) -> None:
        """Reset the wakeup file in a forked child, which has the parent's pipe but not the thread that reads it."""
        if self._ends is not None:
            signal.set_wakeup_fd(-1)

    def restored(self) -> None:
        """Restore the handlers that were set before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._ends is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._ends[1])
            self._ends = None


def _open_standard_files() -> None:
    """Open /dev/null for closed standard files, so that no file opened later gets their numbers."""
    while True:
        try:
            number = os.open(os.devnull, os.O_RDWR)
        except OSError:
            return
        if number > 2:
            os.close(number)
            return


class _Closed:
    """Stands for a closed standard output: writing is an error."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Return False."""
        return False


def _escape_unprintable() -> None:
    """Write characters that the terminal's encoding lacks as escapes."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the program ends
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _silenced() -> None:
    """Discard what is still buffered: Python would report an error when it flushes at exit."""
    stream: TextIO | None = sys.__stdout__
    try:
        number = 1 if stream is None else stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    except (OSError, ValueError):
        return
