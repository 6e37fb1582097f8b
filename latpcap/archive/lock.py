"""Who may write these results? One batch at a time; another one leaves with a sentence that names the first.

In a local folder the system holds the lock, and lets go of it when the process ends, however it ends. Elsewhere (object
stores, Windows) a batch leaves a file of its own and renews it; one that was not renewed for long is a dead batch's.

filelock and portalocker have the first half alone, which is a few lines here; neither names who holds a lock, nor
knows object stores.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from latpcap.archive.output import LOCK, PARTIAL, Output
from latpcap.errors import OutputError
from latpcap.format import phrase, printable
from latpcap.reading import places

LEASE_S = 120.0
"""A batch that did not renew its file for so long, by the store's own clock, is taken for dead."""
_RENEWED = 4
"""So many times in that span it is renewed."""
_TRIES = 4
"""Two that begin at the same moment both step back, and try again after unlike pauses."""
_PAUSE_S = 0.5


@contextmanager
def alone(output: Output) -> Iterator[None]:
    """No other batch writes here meanwhile; OutputError where one does."""
    with _flocked(output) if output.local and _can_lock() else _leased(output):
        output.sweep()
        yield


def _can_lock() -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    return hasattr(fcntl, "flock")


def _who() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _leave(output: Output, who: str) -> NoReturn:
    other = printable(who.strip()) or "somebody"
    what = f"another batch is writing here ({other}); wait for its end, or give another folder"
    raise OutputError(f"{places.bare(output.place)}: {what}")


@contextmanager
def _flocked(output: Output) -> Iterator[None]:
    import fcntl

    path = os.path.join(output.place, LOCK)
    while True:
        try:
            lock = open(path, "a+", encoding="utf-8")  # noqa: SIM115
        except OSError as problem:
            raise OutputError(f"{output.place}: cannot be written ({phrase(problem)})") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with lock:
                lock.seek(0)
                _leave(output, lock.read(200))
        except OSError as problem:
            lock.close()
            raise OutputError(f"{output.place}: cannot be locked ({phrase(problem)})") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                break
        lock.close()  # taken away by the batch before, which ended just now
    with lock:
        lock.truncate(0)
        lock.write(_who())
        lock.flush()
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(path)


@contextmanager
def _leased(output: Output) -> Iterator[None]:
    mine = f"{LOCK}-{uuid.uuid4().hex}"
    for left in reversed(range(_TRIES)):
        output.write(mine, _who().encode())
        other = _others(output, mine)
        if other is None:
            break
        output.remove(mine)
        if not left:
            _leave(output, other)
        time.sleep(_PAUSE_S * (1 + random.random()))
    over = threading.Event()
    renewal = threading.Thread(target=_renew, args=(output, mine, over), name="latpcap-lock", daemon=True)
    renewal.start()
    try:
        yield
    finally:
        over.set()
        renewal.join()
        with suppress(OutputError):
            output.remove(mine)


def _others(output: Output, mine: str) -> str | None:
    """Who else works here? Files of dead batches go."""
    found = output.states(PARTIAL)
    locks = {name: found[name] for name in found if name.startswith(f"{LOCK}-")}
    now = locks.pop(mine, 0) or max(found.values(), default=0)
    alive = None
    for name, renewed in locks.items():
        if now - renewed > LEASE_S * 1e9:
            output.remove(name)
            continue
        try:
            alive = output.read(name).decode("utf-8", "replace")[:200]
        except OutputError:  # it ended just now
            continue
    return alive


def _renew(output: Output, mine: str, over: threading.Event) -> None:
    while not over.wait(LEASE_S / _RENEWED):
        with suppress(OutputError):  # the work itself will say what is wrong with this place
            output.write(mine, _who().encode())
