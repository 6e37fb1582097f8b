"""The speed goals 1-9, 11-13, 16 and 17 of latpcap, and whether they are met.

`benchmarks/run` reports the measurements. Goals 8 (memory of rows) and 9 (Parquet) are measured here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BASE_MB = 64
OPEN_STREAM_KB = 4
OTHER_STREAM_KB = 0.5
"""Memory of an open stream with data, and of a stream that is closed or without data."""

EVENTS = """
import json, resource, sys
import pyarrow as pa
from latpcap import _core
analysis, kept, rows, bits = _core.Analysis(), [], 0, 0
def take():
    global rows, bits
    for table in _core.TABLES:
        part = analysis.take(table)
        if table == "events":
            rows += len(part)
            if not bits:
                schema = pa.table(part).schema
                word = lambda kind: 32 if pa.types.is_dictionary(kind) or pa.types.is_string(kind) else kind.bit_width
                bits = sum(8 * 4 if pa.types.is_list(f.type) else word(f.type) + f.nullable for f in schema)
            if sys.argv[2] == "kept":
                kept.append(part)
with open(sys.argv[1], "rb", buffering=0) as file:
    while block := file.read(1 << 17):
        analysis.push(block)
        take()
analysis.finish()
take()
print(json.dumps([rows, bits / 8, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""
"""Prints the number of rows, bytes of a row by its types, and the peak in KB; takes a capture, "kept" or "taken"."""

PARQUET = """
import json, os, sys, time
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet
from latpcap import _core
from latpcap.archive.packfile import TableFile
analysis = _core.Analysis()
with open(sys.argv[1], "rb", buffering=0) as file:
    while block := file.read(1 << 17):
        analysis.push(block)
analysis.finish()
tables = [pa.table(analysis.take("events"))]
best = 1e9
for _ in range(3):
    file = TableFile(Path(sys.argv[2]))
    since = time.process_time()
    for table in tables:
        file.add(table)
    file.close({})
    best = min(best, time.process_time() - since)
print(json.dumps([file.rows, best, os.stat(sys.argv[2]).st_size]))
"""
"""Prints the number of rows, CPU seconds of writing them, and the size of the file; takes a capture, a Parquet file."""


@dataclass(frozen=True)
class Goal:
    """One goal and its measurement."""

    number: int
    what: str
    got: float
    must: float
    unit: str
    more_is_better: bool

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.got >= self.must if self.more_is_better else self.got <= self.must


class Goals:
    """The goals that were measured. Goals whose tools are not installed are left out."""

    def __init__(self) -> None:
        self._found: list[Goal] = []

    def at_most(self, number: int, what: str, got: float, must: float, unit: str = "x") -> None:
        """Add a goal with an upper bound."""
        self._found.append(Goal(number, what, got, must, unit, more_is_better=False))

    def at_least(self, number: int, what: str, got: float, must: float, unit: str = "x") -> None:
        """Add a goal with a lower bound."""
        self._found.append(Goal(number, what, got, must, unit, more_is_better=True))

    def show(self) -> None:
        """Print the goals in the order of their numbers."""
        print(f"\n{'goal':>4}  {'':62}{'measured':>12}{'must':>12}")
        for goal in sorted(self._found, key=lambda goal: goal.number):
            sign = ">=" if goal.more_is_better else "<="
            got, must = (f"{value:,.0f}" if value >= 100 else f"{value:.2f}" for value in (goal.got, goal.must))
            bound, met = sign + must + goal.unit, "met" if goal.met else "NOT MET"
            print(f"{goal.number:4}  {goal.what:62}{got + goal.unit:>12}{bound:>12}  {met}")


def _run(code: str, *args: str) -> list[float]:
    line = [sys.executable, "-c", code, *args]
    return json.loads(subprocess.run(line, cwd="/", capture_output=True, check=True).stdout)


def kept_rows(goals: Goals, capture: Path) -> None:
    """Goal 8: memory of all rows of `events`, compared with the size of their types."""
    rows, width, kept = _run(EVENTS, str(capture), "kept")
    *_, taken = _run(EVENTS, str(capture), "taken")
    row_bytes = (kept - taken) * 1024 / rows
    goals.at_most(8, f"events kept in memory / rows x {width:.0f} bytes", row_bytes / width, 1.3)


def parquet(goals: Goals, capture: Path, scratch: Path) -> None:
    """Goal 9: `events` as latpcap writes them to Parquet."""
    rows, seconds, size = _run(PARQUET, str(capture), str(scratch / "events.parquet"))
    goals.at_most(9, "events as Parquet, CPU of a row", seconds / rows * 1e6, 1.0, " us")
    goals.at_most(9, "events as Parquet, size of a row", size / rows, 35, " B")


def memory(goals: Goals, what: str, streams: tuple[int, int], peak_mb: float) -> None:
    """Goal 7: peak memory of the core while batches are taken. `streams`: open ones with data, and all others."""
    still_open, others = streams
    must = BASE_MB + (still_open * OPEN_STREAM_KB + others * OTHER_STREAM_KB) / 1024
    goals.at_most(7, f"peak memory, {what}, {sum(streams):,} streams", peak_mb, must, " MB")
