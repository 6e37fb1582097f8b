"""Are verdicts and facts as good as they were? Compares the two scorers' results with .ci/floors.json.

    check_scores.py LAB.json WIRESHARK.txt [--raise]

LAB.json is what score_lab.py wrote with --json, WIRESHARK.txt what score_wireshark.py printed. A floor has
"at_least" or "at_most"; a figure that a scorer did not give is below every floor. `--raise` writes floors
that became reachable, rounded to the careful side, and never lowers one. Exit code 1 if any figure is on the
wrong side of its floor.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path

FLOORS = Path(__file__).with_name("floors.json")
SUMMARY = re.compile(r"captures (\d+)  packets compared (\d+)  missing from your table (\d+)  not TCP for tshark (\d+)")
COLUMN = re.compile(r"^(\w+) +([\d.]+|nan) +(\d+) +(\d+)\b", re.MULTILINE)


def of_lab(text: str) -> dict[str, float]:
    """score_lab.py's JSON as flat figures: `lab.client.precision`, `lab.half_way.recall`, ..."""
    data = json.loads(text)
    named, asked = data.pop("expected_cause_named")
    figures = {"lab.expected_cause_named": named, "lab.expected_cause_asked": asked}
    for key, value in data.items():
        if isinstance(value, dict):
            point = key.removesuffix(".pcap").replace(" ", "_")
            figures |= {f"lab.{point}.{name}": number for name, number in value.items()}
        else:
            figures[f"lab.{key}"] = value
    return figures


def of_wireshark(text: str) -> dict[str, float]:
    """score_wireshark.py's table as flat figures: `wireshark.ack_rtt_ms` is the share that agrees in %."""
    figures: dict[str, float] = {}
    if summary := SUMMARY.search(text):
        names = ("captures", "packets_compared", "packets_missing", "packets_extra")
        figures = {f"wireshark.{name}": int(n) for name, n in zip(names, summary.groups(), strict=True)}
    for name, percent, _, said in COLUMN.findall(text):
        if int(said):
            figures[f"wireshark.{name}"] = float(percent)
    return figures


def holds(floor: dict[str, float], got: float | None) -> bool:
    """NaN and a missing figure hold nothing."""
    if got is None:
        return False
    return got >= floor["at_least"] if "at_least" in floor else got <= floor["at_most"]


def raised(floor: dict[str, float], got: float | None) -> dict[str, float]:
    """The floor that `got` allows, or the old one where that is not better."""
    if got is None or math.isnan(got):
        return floor
    if "at_least" in floor:
        return {"at_least": max(floor["at_least"], math.floor(got * 1000) / 1000)}
    return {"at_most": min(floor["at_most"], math.ceil(got * 1000) / 1000)}


def figures_of(lab: Path, wireshark: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    for path, read in ((lab, of_lab), (wireshark, of_wireshark)):
        if path.exists():
            figures |= read(path.read_text())
    return figures


def main() -> int:
    as_it_stands = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_it_stands)
    parser.add_argument("lab", type=Path)
    parser.add_argument("wireshark", type=Path)
    parser.add_argument("--raise", dest="lift", action="store_true")
    args = parser.parse_args()
    floors: dict[str, dict[str, float]] = json.loads(FLOORS.read_text())
    figures = figures_of(args.lab, args.wireshark)
    below = 0
    print(f"{'figure':38} {'floor':>14} {'got':>12}")
    for name, floor in floors.items():
        if name.startswith("core."):
            continue  # check_instructions.py
        got = figures.get(name)
        good = holds(floor, got)
        below += not good
        bound = f"{'>=' if 'at_least' in floor else '<='} {next(iter(floor.values())):g}"
        shown = "missing" if got is None else f"{got:.4f}".rstrip("0").rstrip(".")
        print(f"{name:38} {bound:>14} {shown:>12}{'' if good else '   <- wrong side'}")
    if args.lift:
        new = {name: raised(floor, figures.get(name)) for name, floor in floors.items()}
        lines = (f"  {json.dumps(name)}: {json.dumps(floor)}" for name, floor in new.items())
        FLOORS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
