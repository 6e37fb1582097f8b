"""Writes tests/cases/<situation>/: capture.pcap, expected.json and README.md, from tests/case_scripts.py.

python tests/make_cases.py
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path

from case_scripts import SCRIPTS, Case

CASES = Path(__file__).with_name("cases")


def expected(case: Case) -> str:
    """JSON with a line per row of causes."""
    text = json.dumps({"proven": case.proven, "exchanges": []}).removesuffix("]}")
    parts = []
    for e in case.exchanges:
        rows = ",\n   ".join(json.dumps(r) for r in e["causes"])
        head = json.dumps({k: v for k, v in e.items() if k != "causes"}).removesuffix("}")
        parts.append(f'\n {head}, "causes": [{f"{chr(10)}   {rows}" if rows else ""}]}}')
    return text + ",".join(parts) + "\n]}\n"


def readme(script: Callable[[], Case]) -> str:
    made = f"Made by `{script.__name__}` in tests/case_scripts.py, which also works out expected.json;\n"
    made += "`python tests/make_cases.py` writes both."
    return f"# {script.__name__}\n\n{inspect.getdoc(script)}\n\n{made}\n"


def main() -> None:
    """Writes every folder."""
    for script in SCRIPTS:
        folder, case = CASES / script.__name__, script()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "capture.pcap").write_bytes(case.capture)
        (folder / "expected.json").write_text(expected(case), encoding="utf-8")
        (folder / "README.md").write_text(readme(script), encoding="utf-8")


if __name__ == "__main__":
    main()
