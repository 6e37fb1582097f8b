"""Compare the facts of recorded captures with tshark's, segment by segment, as tests/test_wireshark.py does.

lab_facts.py FOLDER [--all]

Compares every tenth capture below FOLDER and ten random others; with `--all`, all of them. Exit code 1 if anything
differs. Without tshark 4.0 nothing is compared.
"""

import random
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from tsharkfacts import differences


def main() -> int:
    command = shutil.which("tshark")
    version = subprocess.run([command, "--version"], capture_output=True, text=True).stdout if command else ""
    if " 4.0." not in version.partition("\n")[0]:
        print("tshark 4.0 is not installed: nothing compared")
        return 0
    captures = sorted(Path(sys.argv[1]).rglob("*.pcap*"))
    picked = captures
    if "--all" not in sys.argv[2:]:
        other_captures = [path for number, path in enumerate(captures) if number % 10]
        picked = [*captures[::10], *random.sample(other_captures, min(10, len(other_captures)))]
    wrong = 0
    for path in picked:
        lines = differences(path)
        wrong += bool(lines)
        for line in lines[:3]:
            print(f"{path.parent.name}/{path.name}: {line}")
    print(f"{len(picked)} captures of {len(captures)}, {wrong} with differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
