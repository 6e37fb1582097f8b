"""May all crates of latpcap be handed on, and do they all come from the registry of the lock file?

    check_licences.py

Reads what `cargo metadata` says of the crates for this platform. A crate passes where one choice of its SPDX expression
is made of ALLOWED alone. Exit code 1, and a line each, for those that do not, and for crates from elsewhere (git).
Known holes are another matter: the database of cargo-deny and cargo-audit lies in a git repository, not in a registry.
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
"""Licences that ask for no more than their text."""
WORDS = re.compile(r"\(|\)|[\w.+-]+")


def passes(expression: str) -> bool:
    """Is one choice of this SPDX expression allowed? A slash is an old word for OR."""
    words = WORDS.findall(expression.replace("/", " OR "))
    place = 0

    def any_of() -> bool:
        nonlocal place
        found = [all_of()]
        while place < len(words) and words[place] == "OR":
            place += 1
            found.append(all_of())
        return any(found)

    def all_of() -> bool:
        nonlocal place
        found = [one()]
        while place < len(words) and words[place] == "AND":
            place += 1
            found.append(one())
        return all(found)

    def one() -> bool:
        nonlocal place
        if place >= len(words):
            return False
        word, place = words[place], place + 1
        if word == "(":
            found, place = any_of(), place + 1
            return found
        if words[place : place + 1] == ["WITH"]:
            word, place = " ".join([word, *words[place : place + 2]]), place + 2
        return word in ALLOWED

    return any_of() and place >= len(words)


def main() -> int:
    host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))
    assert host is not None
    ask = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(CORE), "--all-features"]
    crates = json.loads(subprocess.check_output([*ask, "--filter-platform", host[1]], text=True))
    used = {node["id"] for node in crates["resolve"]["nodes"]}
    found = [crate for crate in crates["packages"] if crate["id"] in used]
    wrong = [f"{c['name']} {c['version']}: {c['license']}" for c in found if not passes(c["license"] or "")]
    sources = Counter(c["source"] for c in found if c["source"])
    wrong += [f"{c['name']} {c['version']}: from {c['source']}" for c in found if (c["source"] or "").startswith("git")]
    wrong += [] if len(sources) == 1 else [f"{n} crates from {source}" for source, n in sources.items()]
    print("\n".join([*wrong, f"{len(found)} crates, {len({c['license'] for c in found})} licences"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
