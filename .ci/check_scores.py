"""Compare the results of all scorers with the floors in .ci/floors.json.

    check_scores.py FOLDER [--raise]

FOLDER has the files named in `READERS`, as their scorers write them (`.ci/run`, group scores). A floor has "at_least",
"at_most" or both. A missing figure violates its floor. `--raise` tightens floors to the figures reached, rounded to the
safe side; it never loosens one, and leaves floors with both sides alone. Exit code 1 if any figure is on the wrong side
of its floor.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path

FLOORS = Path(__file__).with_name("floors.json")
SUMMARY = re.compile(r"captures (\d+)  packets compared (\d+)  missing from your table (\d+)  not TCP for tshark (\d+)")
PAIRS = re.compile(r"pairs (\d+): kept (\d+) \(narrow (\d+)\), broken (\d+), no promise (\d+)")
COLUMN = re.compile(r"^(\w+) +([\d.]+|nan) +(\d+) +(\d+)\b", re.MULTILINE)


def of_lab(text: str, lab: str) -> dict[str, float]:
    """Return score_lab.py's JSON as flat figures: `lab.client.precision`, `lab.half_way.recall`, ..."""
    data = json.loads(text)
    named, total = data.pop("expected_cause_named")
    figures = {f"{lab}.expected_cause_named": named, f"{lab}.expected_cause_asked": total}
    figures[f"{lab}.blamed"] = sum(value.get("blamed", 0) for value in data.values() if isinstance(value, dict))
    for key, value in data.items():
        if isinstance(value, dict):
            point = key.removesuffix(".pcap").replace(" ", "_")
            figures |= {f"{lab}.{point}.{name}": number for name, number in value.items()}
        else:
            figures[f"{lab}.{key}"] = value
    return figures


def of_numbers(text: str, kind: str) -> dict[str, float]:
    """Return the numbers and the lengths of lists in a scorer's JSON: `real.precision`, `reports.right`, ..."""
    data = json.loads(text)
    data |= {key: len(value) for key, value in data.items() if isinstance(value, list)}
    return {f"{kind}.{key}": value for key, value in data.items() if isinstance(value, int | float)}


def of_protocols(text: str, kind: str) -> dict[str, float]:
    """Return the totals of score_protocols.py as shares: `protocols.recall`, `protocols.method`, ..."""
    got = json.loads(text)["protocols"]["all"]
    shares = {
        f"{kind}.{name}": got[f"{name}_right"] / max(1, got["found"])
        for name in ("protocol", "method", "target", "status")
    }
    return shares | {
        f"{kind}.recall": got["found"] / max(1, got["truth"]),
        f"{kind}.precision": got["found"] / max(1, got["found"] + got.get("extra", 0)),
        f"{kind}.push_as_request": got.get("push_as_request", 0),
        f"{kind}.latency": got["latency_right"] / max(1, got["timed"]),
    }


def of_gain(text: str, kind: str) -> dict[str, float]:
    """Return the last line of score_gain.py: `gain-real.kept` and `gain-real.narrow`, as shares of all pairs."""
    if not (match := PAIRS.search(text)):
        return {}
    pairs, kept, narrow = map(int, match.groups()[:3])
    return {f"{kind}.kept": kept / pairs, f"{kind}.narrow": narrow / pairs} if pairs else {}


def of_wireshark(text: str, _: str) -> dict[str, float]:
    """Return score_wireshark.py's table as flat figures: `wireshark.ack_rtt_ms` is the percentage that agrees."""
    figures: dict[str, float] = {}
    if summary := SUMMARY.search(text):
        names = ("captures", "packets_compared", "packets_missing", "packets_extra")
        figures = {f"wireshark.{name}": int(n) for name, n in zip(names, summary.groups(), strict=True)}
    for name, percent, _, count in COLUMN.findall(text):
        if int(count):
            figures[f"wireshark.{name}"] = float(percent)
    return figures


def holds(floor: dict[str, float], got: float | None) -> bool:
    """Whether a figure keeps its floor. NaN and a missing figure do not."""
    if got is None:
        return False
    return floor.get("at_least", -math.inf) <= got <= floor.get("at_most", math.inf)


def raised(floor: dict[str, float], got: float | None) -> dict[str, float]:
    """Return the floor tightened to `got`, or the old one if that is not tighter."""
    if got is None or math.isnan(got) or len(floor) > 1:
        return floor
    if "at_least" in floor:
        return {"at_least": max(floor["at_least"], math.floor(got * 1000) / 1000)}
    return {"at_most": min(floor["at_most"], math.ceil(got * 1000) / 1000)}


READERS = {
    "lab.json": of_lab,
    "lab3.json": of_lab,
    "lab4.json": of_lab,
    "real.json": of_numbers,
    "real3.json": of_numbers,
    "cut_real.json": of_numbers,
    "cut_real3.json": of_numbers,
    "calibration.json": of_numbers,
    "protocols.json": of_protocols,
    "answers.json": of_numbers,
    "answers2.json": of_numbers,
    "reports.json": of_numbers,
    "transfers.json": of_numbers,
    "join.json": of_numbers,
    "joined.json": of_numbers,
    "gain-real.txt": of_gain,
    "gain-lab.txt": of_gain,
    "gain-lab4.txt": of_gain,
    "gain-real3.txt": of_gain,
    "paths.json": of_numbers,
    "wireshark.txt": of_wireshark,
}


def figures_of(folder: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, read in READERS.items():
        path = folder / name
        if path.exists() and (text := path.read_text()):
            figures |= read(text, path.stem)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--raise", dest="lift", action="store_true")
    args = parser.parse_args()
    floors: dict[str, dict[str, float]] = json.loads(FLOORS.read_text())
    figures = figures_of(args.folder)
    violations = 0
    print(f"{'figure':38} {'floor':>14} {'got':>12}")
    for name, floor in floors.items():
        if name.startswith("core."):
            continue  # checked by check_instructions.py
        got = figures.get(name)
        good = holds(floor, got)
        violations += not good
        bound = " ".join(f"{'>=' if side == 'at_least' else '<='} {value:g}" for side, value in floor.items())
        shown = "missing" if got is None else f"{got:.4f}".rstrip("0").rstrip(".")
        print(f"{name:38} {bound:>14} {shown:>12}{'' if good else '   <- wrong side'}")
    if args.lift:
        new = {name: raised(floor, figures.get(name)) for name, floor in floors.items()}
        lines = (f"  {json.dumps(name)}: {json.dumps(floor)}" for name, floor in new.items())
        FLOORS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
