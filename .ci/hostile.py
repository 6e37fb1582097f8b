"""Fuzz the public interface with tests/hostile.py: every call must end in an answer or in a LatpcapError.

hostile.py SECONDS [TARGET ...]    run each target for its share of the time; exit code 1 if one fails: an exception,
                                   a crash, a round longer than MAX_ROUND_S, or growing memory
hostile.py 0 TARGET SEED           repeat one round, with its whole traceback

LATPCAP_HOSTILE names a folder with more captures. Rounds run in a child process, which writes its seed to shared memory
before each round, so that the seed of a crash is known.
"""

import faulthandler
import gc
import mmap
import os
import random
import signal
import struct
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import hostile

from latpcap import spill

MAX_ROUND_S = 60
"""Time limit of a round. On an idle machine no round takes a second."""
MAX_FIRST_ROUND_S = 300
"""Time limit of the first round of a process, which imports the modules of its target."""
MAX_FAILURES = 20
"""Number of failures after which a target is stopped."""
MAX_GROWTH_MB = 200
"""Allowed growth of memory after the first tenth of the time, when caches are filled."""
STATE = struct.Struct("QQ")
"""The memory shared by both processes: the current seed, and the number of failures."""


def resident_mb() -> float:
    """Return the memory of this process, without garbage and without freed memory that the C library keeps."""
    gc.collect()
    spill.trim_heap()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * mmap.PAGESIZE / 1e6


def rounds(target: str, begin: float, end: float, first: int, state: mmap.mmap) -> None:
    """Run rounds in the child process until the time is over."""
    seed, wrong, early = first, STATE.unpack(state[: STATE.size])[1], None
    while time.monotonic() < end and wrong < MAX_FAILURES:
        state[: STATE.size] = STATE.pack(seed, wrong)
        faulthandler.dump_traceback_later(MAX_ROUND_S if seed > first else MAX_FIRST_ROUND_S, exit=True)
        try:
            hostile.one(target, seed)
        except Exception:
            wrong += 1
            print(f"{target}, seed {seed}:\n{traceback.format_exc(limit=-4)}", flush=True)
        faulthandler.cancel_dump_traceback_later()
        seed += 1
        if early is None and time.monotonic() > begin + (end - begin) / 10:
            early = resident_mb()
    if early is not None and resident_mb() > early + MAX_GROWTH_MB:
        wrong += 1
        print(
            f"{target}: memory grew from {early:.0f} to {resident_mb():.0f} MB from seed {first} to {seed}", flush=True
        )
    state[: STATE.size] = STATE.pack(seed, wrong)


def run(target: str, seconds: float, first: int) -> int:
    """Run a target in child processes and return the number of failures."""
    state = mmap.mmap(-1, STATE.size)
    state[: STATE.size] = STATE.pack(first, 0)
    seed, begin = first, time.monotonic()
    while time.monotonic() < begin + seconds and STATE.unpack(state[: STATE.size])[1] < MAX_FAILURES:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            code = 1
            try:
                rounds(target, begin, begin + seconds, seed, state)
                code = 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        seed, wrong = STATE.unpack(state[: STATE.size])
        if status:
            how = f"signal {signal.Signals(status & 127).name}" if status & 127 else f"no end after {MAX_ROUND_S} s"
            print(f"{target}, seed {seed}: {how}", flush=True)
            seed += 1
            state[: STATE.size] = STATE.pack(seed, wrong + 1)
    wrong = STATE.unpack(state[: STATE.size])[1]
    rate = (seed - first) / max(seconds, 1)
    print(f"{target}: {seed - first:,} rounds, {rate:.1f} a second, {wrong} wrong", flush=True)
    return wrong


def main() -> int:
    seconds, names = float(sys.argv[1]), sys.argv[2:]
    if not seconds:
        hostile.one(names[0], int(names[1]))
        return 0
    names = names or list(hostile.TARGETS)
    first = random.SystemRandom().randrange(10**9)
    return int(sum(run(name, seconds / len(names), first) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
