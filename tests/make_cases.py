"""Writes capture and README.md of tests/cases/<name>/ for the scripts of tests/case_scripts.

python tests/make_cases.py [NAME...]

expected.json is written by hand: tests/cases/README.md has its words.
"""

from __future__ import annotations

import sys
from pathlib import Path

from case_scripts import SCRIPTS, Script

CASES = Path(__file__).with_name("cases")


def readme(script: Script) -> str:
    said, confused = script.about
    origin = f"Origin: written by `{script.write.__name__}` in `tests/case_scripts/`."
    return f"# {script.name}\n\n{said}\n\n{origin}\n\nNot to be mistaken for: {confused}\n"


def main() -> None:
    """Writes the named folders, or all."""
    for name in sys.argv[1:] or SCRIPTS:
        folder, script = CASES / name, SCRIPTS[name]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / script.file).write_bytes(script.capture())
        (folder / "README.md").write_text(readme(script), encoding="utf-8")


if __name__ == "__main__":
    main()
