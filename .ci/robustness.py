"""Test verdicts against decoys, jitter and missing frames: run the whole grid and compare with floors.

    robustness.py [LABDIR] [-v]

Runs the simulator's stalls and decoys at seven round trips and three points of capture: undisturbed, with jitter, with
frames missing from the capture, and with different socket options on one server. With LABDIR (labelled captures)
also those captures without some of their frames. Exit code 1 if a figure is below its floor.
"""

import argparse
import json
import random
import struct
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from robustness import RTTS, decoys, judged_file, mixtures, precision, recall, runs, stalls  # noqa: E402
from simulator import Truth  # noqa: E402

FLOORS = {
    "quiet": (1.0, 0.96),
    "bursts 12 ms": (0.99, 0.96),
    "bursts 24 ms": (0.99, 0.96),
    "mixed sockets": (1.0, 0.88),
    "mixed, 12 ms": (0.99, 0.87),
    "1 % missing": (0.99, 0.90),
    "4 % missing": (0.99, 0.74),
    "10 % missing": (0.99, 0.65),
    "lab, 4 % missing": (0.99, 0.86),
    "lab, 10 % missing": (0.99, 0.71),
}
"""Minimum precision and recall."""
LEFT_OUT = ("s8_c2s_only", "s8_s2c_only", "s8_midstream")
"""Captures of one direction, and one with exchanges from before the capture."""
Task = tuple[Any, ...]
"""A function that counts a situation, and its arguments."""
ARTEFACT_MS = 15.0
"""Exchanges with more unexplained time are not scored: a busy host delayed them."""


def simulated(name: str, burst: float, missing: float, verbose: bool) -> Counter[str]:
    """Count stalls and decoys together: a rule that accuses no decoy must still find the stalls."""
    totals: Counter[str] = Counter()
    kinds = [*stalls(), *decoys()]
    for label, counts in runs(kinds[::2] if missing else kinds, RTTS[1::2] if missing else RTTS, burst, 1, missing):
        totals += counts
        if verbose and (counts["false"] or (counts["missed"] and not missing)):
            print(f"   {name}: {label}: {dict(counts)}")
    return totals


def mixed(burst: float) -> Counter[str]:
    """Count situations with TCP_NODELAY on only some sockets of a server."""
    totals: Counter[str] = Counter()
    for _, counts in runs(mixtures(), RTTS[::2], burst, 1):
        totals += counts
    return totals


def thinned(path: Path, share: float, to: Path) -> None:
    """Write a pcap without a share of its frames. The first 20 stay, since they hold the handshakes."""
    data, rng, offset, count = path.read_bytes(), random.Random(path.parent.name), 24, 0
    order = "<" if data[0] in (0xD4, 0x4D) else ">"
    kept = [data[:24]]
    while offset + 16 <= len(data):
        size = 16 + struct.unpack_from(order + "I", data, offset + 8)[0]
        count += 1
        if count <= 20 or rng.random() >= share:
            kept.append(data[offset : offset + size])
        offset += size
    to.write_bytes(b"".join(kept))


def lab(folder: Path, share: float, verbose: bool) -> Counter[str]:
    """Count labelled captures without some of their frames. An exchange has the last label before its first byte."""
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for labels in sorted(folder.glob("*/labels.jsonl")):
            if labels.parent.name in LEFT_OUT:
                continue
            truth, unsure = {}, set()
            for number, line in enumerate(labels.read_text().splitlines()):
                label = json.loads(line)
                key, began = (label["lport"], number), label["t_start"] - 1_000_000
                truth[key] = Truth(asked_ns=began, stalled=bool(label["nagle_delack"]))
                if abs(label.get("unexplained_ms") or 0) > ARTEFACT_MS:
                    unsure.add(key)
            for point in ("client.pcap", "server.pcap"):
                if not (labels.parent / point).exists():
                    continue
                thin = Path(scratch) / "thin.pcap"
                thinned(labels.parent / point, share, thin)
                outcome = judged_file(thin, truth, unsure)
                totals += outcome
                if verbose and outcome["false"]:
                    print(f"   {labels.parent.name}/{point}: {dict(outcome)}")
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labdir", nargs="?", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    tasks: dict[str, Task] = {"quiet": (simulated, "quiet", 0.0, 0.0, args.verbose)}
    for burst in (12, 24):
        tasks[f"bursts {burst} ms"] = (simulated, f"bursts {burst} ms", burst, 0.0, args.verbose)
    tasks |= {"mixed sockets": (mixed, 0.0), "mixed, 12 ms": (mixed, 12.0)}
    for percent in (1, 4, 10):
        tasks[f"{percent} % missing"] = (simulated, f"{percent} % missing", 0.0, percent / 100, args.verbose)
    if args.labdir:
        for percent in (4, 10):
            tasks[f"lab, {percent} % missing"] = (lab, args.labdir, percent / 100, args.verbose)
    with ProcessPoolExecutor() as pool:
        running = {name: pool.submit(*task) for name, task in tasks.items()}
        totals = {name: future.result() for name, future in running.items()}
    low = 0
    print(f"{'situation':18} {'precision':>18} {'recall':>18}   counts")
    for name, counts in totals.items():
        floors, got = FLOORS[name], (precision(counts), recall(counts))
        bad = any(value < floor for floor, value in zip(floors, got, strict=True))
        low += bad
        shown = " ".join(f"{value:8.4f} (>= {floor:.2f})" for floor, value in zip(floors, got, strict=True))
        print(f"{name:18} {shown}   {dict(counts)}{'   <- too low' if bad else ''}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
