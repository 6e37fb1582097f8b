"""Lets one batch at a time write to results; another batch ends with a message that names the first.

In a local folder the operating system holds the lock and releases it when the process ends. Elsewhere (object stores,
Windows) a batch writes a lock file and renews it; a lock file that was not renewed for `LEASE_S` is of a dead batch.

filelock and portalocker do only the first, which is a few lines here; they neither name the holder nor support object
stores.
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
from latpcap.reading import locations

LEASE_S = 120.0
"""Age of a lock file, by the store's clock, from which its batch counts as dead."""
_RENEWALS_PER_LEASE = 4
"""How often a lock file is renewed within `LEASE_S`."""
_MAX_TRIES = 4
"""Upper bound on attempts: two batches that begin at once both withdraw, and try again after random pauses."""
_PAUSE_S = 0.5
"""Shortest pause between two attempts."""


@contextmanager
def alone(output: Output) -> Iterator[None]:
    """Keep other batches from writing here, for the duration of the block; OutputError if one does."""
    with _flocked(output) if output.local and _can_lock() else _leased(output):
        output.sweep()
        yield


def _can_lock() -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    return hasattr(fcntl, "flock")


def _owner() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _refuse(output: Output, owner: str) -> NoReturn:
    holder = printable(owner.strip()) or "somebody"
    reason = f"another batch is writing here ({holder}); wait for its end, or give another folder"
    raise OutputError(f"{locations.bare(output.location)}: {reason}")


@contextmanager
def _flocked(output: Output) -> Iterator[None]:
    """Hold the lock file of a local folder; OutputError while another batch holds it."""
    import fcntl

    path = os.path.join(output.location, LOCK)
    while True:
        try:
            lock = open(path, "a+", encoding="utf-8")  # noqa: SIM115
        except OSError as problem:
            raise OutputError(f"{output.location}: cannot be written ({phrase(problem)})") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with lock:
                lock.seek(0)
                _refuse(output, lock.read(200))
        except OSError as problem:
            lock.close()
            raise OutputError(f"{output.location}: cannot be locked ({phrase(problem)})") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                break
        lock.close()  # the batch that held it has just ended and removed the file
    with lock:
        lock.truncate(0)
        lock.write(_owner())
        lock.flush()
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(path)


@contextmanager
def _leased(output: Output) -> Iterator[None]:
    """Hold a lease in a store without file locks, and renew it; OutputError while another batch has one."""
    own_file = f"{LOCK}-{uuid.uuid4().hex}"
    for tries_left in reversed(range(_MAX_TRIES)):
        output.write(own_file, _owner().encode())
        holder = _other_owner(output, own_file)
        if holder is None:
            break
        output.remove(own_file)
        if not tries_left:
            _refuse(output, holder)
        time.sleep(_PAUSE_S * (1 + random.random()))
    is_over = threading.Event()
    renewal = threading.Thread(target=_renew, args=(output, own_file, is_over), name="latpcap-lock", daemon=True)
    renewal.start()
    try:
        yield
    finally:
        is_over.set()
        renewal.join()
        with suppress(OutputError):
            output.remove(own_file)


def _other_owner(output: Output, own_file: str) -> str | None:
    """Return the owner of another live lock file, or None. Lock files of dead batches are removed."""
    written_ns = output.states(PARTIAL)
    locks = {name: written_ns[name] for name in written_ns if name.startswith(f"{LOCK}-")}
    now = locks.pop(own_file, 0) or max(written_ns.values(), default=0)
    alive = None
    for name, renewed in locks.items():
        if now - renewed > LEASE_S * 1e9:
            output.remove(name)
            continue
        try:
            alive = output.read(name).decode("utf-8", "replace")[:200]
        except OutputError:  # its batch has just ended
            continue
    return alive


def _renew(output: Output, own_file: str, over: threading.Event) -> None:
    while not over.wait(LEASE_S / _RENEWALS_PER_LEASE):
        with suppress(OutputError):  # the batch's own writes will report the error
            output.write(own_file, _owner().encode())
