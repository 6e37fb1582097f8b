"""Parts of a long list of captures: CI tries another part after each commit."""

from pathlib import Path


def part_of(paths: list[Path], part: str) -> list[Path]:
    """Return all paths for `all`; for `2/4`, the second of every four."""
    if part == "all":
        return paths
    number, _, parts = part.partition("/")
    return paths[int(number) - 1 :: int(parts)]
