"""Check the licences of all crates, and that all crates come from one registry.

    check_licences.py

Reads `cargo metadata` for this platform. A crate passes if one alternative of its SPDX expression consists of licences
in ALLOWED. Exit code 1 and a line for each crate that does not, and for crates from git. Known vulnerabilities are not
checked: the database of cargo-deny and cargo-audit is in a git repository, not in a registry.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

CORE = Path(__file__).resolve().parents[1] / "core" / "Cargo.toml"
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC",
    "MIT", "MIT-0", "Unicode-3.0", "Unicode-DFS-2016", "Unlicense", "Zlib",
}  # fmt: skip
"""Licences that only require their text to be passed on."""
LICENCE = re.compile(r"\b(?!AND\b|OR\b)[\w.+-]+(?: WITH [\w.+-]+)?")


def passes(expression: str) -> bool:
    """Whether one alternative of an SPDX expression is allowed. A slash is an old notation for OR.

    Evaluates it in Python: `(MIT OR GPL-3.0) AND ISC` becomes `(True or False) and True`.
    """
    python = LICENCE.sub(lambda found: str(found[0] in ALLOWED), expression.replace("/", " OR "))
    try:
        return bool(eval(python.replace("AND", "and").replace("OR", "or")))
    except SyntaxError:
        return False


def main() -> int:
    host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))
    assert host is not None
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(CORE), "--all-features"]
    crates = json.loads(subprocess.check_output([*command, "--filter-platform", host[1]], text=True))
    used = {node["id"] for node in crates["resolve"]["nodes"]}
    used_crates = [crate for crate in crates["packages"] if crate["id"] in used]
    wrong = []
    for crate in used_crates:
        if not passes(crate["license"] or ""):
            wrong.append(f"{crate['name']} {crate['version']}: {crate['license']}")
        if (crate["source"] or "").startswith("git"):
            wrong.append(f"{crate['name']} {crate['version']}: from {crate['source']}")
    sources = Counter(crate["source"] for crate in used_crates if crate["source"])
    wrong += [] if len(sources) == 1 else [f"{n} crates from {source}" for source, n in sources.items()]
    print("\n".join([*wrong, f"{len(used_crates)} crates, {len({c['license'] for c in used_crates})} licences"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
