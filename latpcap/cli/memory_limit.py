"""Runs the command in a child process where memory is limited (`ulimit -v`): C libraries end the process then.

The parent prints in one line how the child ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import NoReturn

from latpcap.lazy import pa

_MAX_OUTPUT = 1 << 16
"""Upper bound on the bytes of the child's messages kept until it ends."""
_ORDERLY = b"\0ended"
"""The child's last output if it ended by itself; no message contains it."""
_M_ARENA_MAX = -8
"""Parameter of mallopt(3), from malloc.h of glibc: the number of arenas, 64 MB of address space each."""
_PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process gets when its parent ends."""


def limit_mb() -> int | None:
    """Return the memory that this process may have, in MB; None without a limit."""
    try:
        import resource
    except ImportError:
        return None
    limits = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    set_ones = [limit for limit in limits if limit != resource.RLIM_INFINITY]
    return min(set_ones) // 10**6 if set_ones else None


def sentence() -> str:
    """Return the message for a lack of memory, with the limit."""
    limit = limit_mb()
    return "out of memory" if limit is None else f"out of memory: {limit} MB are allowed (ulimit -v)"


def guarded(work: Callable[[], None]) -> None:
    """Run `work`, in a child if memory is limited; SystemExit with the child's code, or 2 if a library ended it."""
    if limit_mb() is None or not hasattr(os, "fork"):
        return work()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread takes about 30 MB of address space
    read, write = os.pipe()
    parent, child = os.getpid(), os.fork()
    if not child:
        _end_with(parent)
        os.close(read)
        _work(work, write)
    os.close(write)
    kept = [signal.signal(number, lambda got, _: _passed_on(child, got)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        messages = _read(read)
        status = os.waitpid(child, 0)[1]
    finally:
        signal.signal(signal.SIGTERM, kept[0])
        signal.signal(signal.SIGINT, kept[1])
    ended = os.waitstatus_to_exitcode(status)
    if messages.endswith(_ORDERLY):
        os.write(2, messages.removesuffix(_ORDERLY))
        sys.exit(ended)
    if -ended in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        sys.exit(128 - ended)
    os.write(2, f"latpcap: {sentence()}\n".encode())
    sys.exit(2)


def _end_with(parent: int) -> None:
    """Let the kernel end this process with its parent, even after SIGKILL."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(1)


def _work(work: Callable[[], None], write: int) -> NoReturn:
    """Run in the child: send messages to the parent, then `_ORDERLY`."""
    code: object = 1
    try:
        os.dup2(write, 2)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        warnings.filterwarnings("ignore", module="matplotlib")  # about parts that could not be loaded
        try:
            _prepare()
            work()
            code = 0
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(2, _ORDERLY)
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _prepare() -> None:
    """Start the threads of Arrow's pools early: if one cannot be started later, a scan or a filter never ends."""
    import ctypes
    import io

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    from pyarrow import csv

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    csv.read_csv(io.BytesIO(b"column\nvalue\n"))


def _read(end: int) -> bytes:
    """Return the child's output; of a long one the end."""
    messages = b""
    while part := os.read(end, _MAX_OUTPUT):
        messages = (messages + part)[-_MAX_OUTPUT:]
    os.close(end)
    return messages


def _passed_on(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
