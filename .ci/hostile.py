"""Does latpcap's public interface end in an answer or in a LatpcapError, whatever it is given? Runs tests/hostile.py.

hostile.py SECONDS [TARGET ...]    each target for its share of the time; exit code 1 if one fails: an exception,
                                   a crash, a round of more than MOST_S, memory that grows
hostile.py 0 TARGET SEED           that one round again, with its whole traceback

LATPCAP_HOSTILE names a folder with more captures. Rounds run in a process of their own, which tells its seed first.
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

MOST_S = 60
"""No round takes a second on an idle machine."""
FIRST_S = 300
"""The first round of a process imports what its target needs."""
MOST_WRONG = 20
"""Then a target has said enough."""
MOST_GROWTH_MB = 200
"""Of all rounds of a process behind its first tenth, when caches are filled."""
STATE = struct.Struct("QQ")
"""In memory that both processes see: the seed that runs, and how many rounds went wrong."""


def held_mb() -> float:
    """The memory of this process, without garbage and without what the C library keeps of what was freed."""
    gc.collect()
    spill.trim_heap()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * mmap.PAGESIZE / 1e6


def rounds(target: str, begin: float, end: float, first: int, state: mmap.mmap) -> None:
    """The child: one round after another, until the time is over."""
    seed, wrong, early = first, STATE.unpack(state[: STATE.size])[1], None
    while time.monotonic() < end and wrong < MOST_WRONG:
        state[: STATE.size] = STATE.pack(seed, wrong)
        faulthandler.dump_traceback_later(MOST_S if seed > first else FIRST_S, exit=True)
        try:
            hostile.one(target, seed)
        except Exception:
            wrong += 1
            print(f"{target}, seed {seed}:\n{traceback.format_exc(limit=-4)}", flush=True)
        faulthandler.cancel_dump_traceback_later()
        seed += 1
        if early is None and time.monotonic() > begin + (end - begin) / 10:
            early = held_mb()
    if early is not None and held_mb() > early + MOST_GROWTH_MB:
        wrong += 1
        print(f"{target}: memory grew from {early:.0f} to {held_mb():.0f} MB from seed {first} to {seed}", flush=True)
    state[: STATE.size] = STATE.pack(seed, wrong)


def run(target: str, seconds: float, first: int) -> int:
    """How many rounds went wrong?"""
    state = mmap.mmap(-1, STATE.size)
    state[: STATE.size] = STATE.pack(first, 0)
    seed, begin = first, time.monotonic()
    while time.monotonic() < begin + seconds and STATE.unpack(state[: STATE.size])[1] < MOST_WRONG:
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
            how = f"signal {signal.Signals(status & 127).name}" if status & 127 else f"no end after {MOST_S} s"
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
