"""Compare the text of flow graphs with tshark's, for each `oracle/flow/NAME.txt` of a set of captures.

    check_flow.py SETDIR

Prints the files that differ with their first differing line. Exit code 1 if one differs, or if there is none.
"""

import sys
from itertools import zip_longest
from pathlib import Path

import latpcap as lp


def difference(ours: str, theirs: str) -> str | None:
    """Describe the first line that differs. None if there is none."""
    pairs = zip_longest(ours.splitlines(keepends=True), theirs.splitlines(keepends=True))
    for number, (a, b) in enumerate(pairs, 1):
        if a != b:
            return f"line {number}: {a!r} instead of {b!r}"
    return None


def main() -> int:
    folder = Path(sys.argv[1])
    captures = {path.name: path for path in sorted(folder.rglob("*")) if path.is_file() and "oracle" not in path.parts}
    expected = sorted((folder / "oracle" / "flow").glob("*.txt"))
    wrong = 0
    for path in expected:
        problem = difference(lp.read(captures[path.stem]).flow_graph().text(), path.read_text(encoding="utf-8"))
        if problem:
            wrong += 1
            print(f"{path.stem}: {problem}")
    print(f"{len(expected) - wrong} of {len(expected)} flow graphs are tshark's")
    return 1 if wrong or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
