"""Run benchmarks/instructions and compare the instruction counts with their ceilings in .ci/floors.json.

    check_instructions.py [--lower]

The ceiling "at_most" of `core.instructions.CAPTURE` is the count of callgrind plus 1 %, since compilers differ.
`--lower` lowers ceilings to the counts reached, and never raises one. Exit code 1 if a count is above its ceiling.
"""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

FLOORS = Path(__file__).with_name("floors.json")
COUNT = Path(__file__).parents[1] / "benchmarks" / "instructions"
LINE = re.compile(r"^(\S+)\.pcap +\d+ packets +\d+ streams +(\d+) instructions", re.MULTILINE)
TOLERANCE = 1.01
"""Ratio of a new floor to the instructions that were counted."""


def main() -> int:
    result = subprocess.run([str(COUNT)], capture_output=True, text=True, check=False)
    print(result.stdout + result.stderr, end="")
    got = {f"core.instructions.{name}": int(count) for name, count in LINE.findall(result.stdout)}
    floors: dict[str, dict[str, float]] = json.loads(FLOORS.read_text())
    ceilings = {name: floor for name, floor in floors.items() if name.startswith("core.instructions.")}
    above = [name for name, floor in ceilings.items() if not got.get(name, math.inf) <= floor["at_most"]]
    for name in above:
        print(f"{name}: {got.get(name, 'missing')}, and at most {ceilings[name]['at_most']:g} are allowed")
    if "--lower" in sys.argv[1:]:
        for name, count in got.items():
            before = floors.get(name, {"at_most": math.inf})["at_most"]
            floors[name] = {"at_most": min(before, math.ceil(count * TOLERANCE))}
        lines = (f"  {json.dumps(name)}: {json.dumps(floor)}" for name, floor in floors.items())
        FLOORS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 1 if above or not ceilings else 0


if __name__ == "__main__":
    sys.exit(main())
