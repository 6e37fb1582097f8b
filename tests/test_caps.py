"""Does docs/caps.md name each cap where it stands, with the number that it has there, but for a header's bytes?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = [ROOT / "core/src", ROOT / "core/src/messages", ROOT / "latpcap"]
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 10**9, "ms": 10**6}
CONSTANT = re.compile(r"^ *(?:pub(?:\(\w+\))? )?(?:const )?([A-Z_]+(?:, [A-Z_]+)*)(?:: \w+)? = ([^;\n#\"]+)", re.M)
TABLE = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in (ROOT / "docs/caps.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]


def constants(file: str) -> dict[str, int]:
    """The whole numbers that a file gives names to."""
    found: dict[str, int] = {}
    text = next(room / file for room in ROOMS if (room / file).exists()).read_text(encoding="utf-8")
    for names, value in CONSTANT.findall(text):
        try:
            values = eval(f"({value.strip().rstrip(',')},)", {}, found)
        except (NameError, SyntaxError):
            continue
        named = zip(names.split(", "), values, strict=False)
        found |= {name: number for name, number in named if isinstance(number, int | float)}
    return found


def numbers(text: str) -> set[int]:
    """As the table writes them: 16 MiB, 4,096 bytes, 2^32, 60 s."""
    found = re.findall(r"\b(\d+(?:,\d{3})*)(?:\^(\d+))?(?: (\w+))?", text)
    return {int(n.replace(",", "")) ** int(power or 1) * UNITS.get(unit, 1) for n, power, unit in found}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} {row[2]}".replace("`", ""))
def test_a_cap_stands_where_the_table_says(row: list[str]) -> None:
    names, told, files, _ = row
    stands: dict[str, set[int]] = {}
    for file in re.findall(r"`([^`]+)`", files):
        for name, value in constants(file).items():
            stands.setdefault(name, set()).add(value)
    for name in re.findall(r"`(\w+)`", names):
        near = [
            (one, other) for one in stands.get(name, ()) for other in numbers(told) if abs(one - other) * 1000 <= one
        ]
        assert near, f"{name} is {stands.get(name)} in {files}"
