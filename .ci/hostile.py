"""Does latpcap's public interface end in an answer or in a LatpcapError, whatever it is given? Runs tests/hostile.py.

hostile.py SECONDS [filters|results|flips|captures ...]   each target for its share of the time; exit code 1 if
                                                    one fails
hostile.py 0 TARGET SEED                            that one round again, with its whole traceback
"""

import random
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import hostile


def run(target: str, seconds: float, first: int) -> int:
    """How many rounds went wrong?"""
    wrong, rounds, end = 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            hostile.one(target, first + rounds)
        except Exception:
            wrong += 1
            print(f"{target}, seed {first + rounds}:\n{traceback.format_exc(limit=-4)}", flush=True)
        rounds += 1
    print(f"{target}: {rounds:,} rounds, {rounds / max(seconds, 1):.0f} a second, {wrong} wrong", flush=True)
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
