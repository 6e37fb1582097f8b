"""Is every limit, comparison and branch of the judge held by a test? Mutants of judge/, observe/ and evidence/.

    mutants.py all [--minutes 60]          every mutant, in random order
    mutants.py changed [--minutes 10]      those on lines changed since the merge base with main (or HEAD~1)
    mutants.py list [TEXT]                 the mutants, or those whose name holds the text

One build holds all mutants (`.ci/mutate.py`) and the environment says which one runs; a limit is halved and doubled by
`limits-from-env`. A mutant is caught when a Rust test fails under it, or a case of tests/cases (rows, and
causes that fill their time), a text of tests/golden/verdicts.txt or one of the files `--pytest`, be it by a panic or a
loop. Only what reaches a place is run against its mutants. Survivors that `.ci/mutants.txt` lists ("name  # why nothing
can tell") are not counted.

Ends with 1 where `changed` has survivors, and where `all` catches less than the floor. Needs pytest, tree-sitter,
tree-sitter-rust and what latpcap needs; nothing of it is installed or changed: all is built under `--scratch`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from mutate import RUNTIME, Mutant, mutate

ROOT = Path(__file__).resolve().parents[1]
MUTATED = ("judge", "observe", "evidence")
UNMUTATED = ("judge/limits", "judge/vocabulary.rs", "judge/worth.rs")
RUST = ("causes", "observe", "senders", "found", "samples")
LIBRARY = "latpcap_core"
UNITS = tuple(f"{layer}::" for layer in (*MUTATED, "exchange", "stream"))
SHIPPED = re.compile(r"^(core|docs|latpcap|tests|sample_pcaps)/|^[^/]*$")
LIMIT = re.compile(r"^    ([A-Z][A-Z_0-9]*): \w+ = ", re.M)
FLOOR = 0.9
MEMORY = 3 << 30
TABLES = ("exchanges", "causes", "evidence", "streams", "issues", "probes")
OTHERS = ["tests/test_limits.py", "tests/test_one_way.py", "tests/test_pairs.py", "tests/test_probes.py"]
"""Test files for what everything else lets pass."""
PASSED = "-=~"
WHY = {"-": "no test gets here", "=": "no case shows it", "~": "tables differ, and no test asks"}


def write(path: Path, data: bytes) -> None:
    """Only where it differs: cargo builds what is newer."""
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def mutated(tree: Path, dropped: set[str]) -> list[Mutant]:
    """A copy of the tree with all mutants in it."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    mutants: list[Mutant] = []
    for name in filter(SHIPPED.match, files.split("\0")):
        if not (ROOT / name).is_file():
            continue
        data, inner = (ROOT / name).read_bytes(), name.removeprefix("core/src/")
        ours = inner.startswith(tuple(f"{layer}/" for layer in MUTATED)) and not inner.startswith(UNMUTATED)
        if ours and name.endswith(".rs") and "test" not in inner:
            text, more = mutate(data.decode(), inner, len(mutants), dropped)
            mutants, data = mutants + more, text.encode()
        if inner == "lib.rs":
            data += b"\n#[doc(hidden)]\npub mod mutants;\n"
        write(tree / name, data)
    write(tree / "core/src/mutants.rs", RUNTIME.replace("COUNT", str(len(mutants))).encode())
    limits = (ROOT / "core/src/judge/limits.rs").read_text()
    for found in LIMIT.finditer(limits):
        line = limits.count("\n", 0, found.start()) + 1
        for factor in ("0.5", "2"):
            mutants.append(Mutant(len(mutants), "judge/limits.rs", line, "limit", f"{found[1]}={factor}"))
    return mutants


def cargo(tree: Path, *call: str) -> list[dict]:
    """The messages of a build: what failed and what was made."""
    opt = {"OPT_LEVEL": "1", "DEBUG": "0", "DEBUG_ASSERTIONS": "false", "OVERFLOW_CHECKS": "false"}
    env = os.environ | {f"CARGO_PROFILE_{p}_{k}": v for p in ("DEV", "TEST") for k, v in opt.items()}
    env |= {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(tree / "target"))}
    command = ["cargo", *call, "--quiet", "--locked", "--message-format=json"]
    done = subprocess.run(command, cwd=tree / "core", env=env, stdout=subprocess.PIPE, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def built(tree: Path) -> tuple[list[Mutant], list[Path]]:
    """The mutants that compile, the module in its place, and the binaries of the Rust tests."""
    dropped: set[str] = set()
    features = ["--features", "limits-from-env"]
    while True:
        mutants = mutated(tree, dropped)
        bad = set()
        for message in cargo(tree, "check", "--lib", *features):
            said = message.get("message", {})
            for span in said["spans"] if said.get("level") == "error" else []:
                lines = (tree / "core" / span["file_name"]).read_text().splitlines()
                there = "\n".join(lines[span["line_start"] - 1 : span["line_end"]])
                bad |= {int(id) for id in re.findall(r"mutants::\w+\((\d+)", there)}
        if not bad:
            break
        dropped |= {mutants[id].name for id in bad}
    made = cargo(tree, "rustc", "--lib", "--crate-type", "cdylib", "--features", "python,limits-from-env")
    [module] = [
        f
        for m in made
        if m.get("target", {}).get("name") == LIBRARY
        for f in m.get("filenames", [])
        if f.endswith((".so", ".dylib"))
    ]
    shutil.copy(module, tree / "latpcap/_core.abi3.so")
    tests = [a for name in RUST for a in ("--test", name)]
    made = cargo(tree, "test", "--no-run", "--lib", *tests, *features)
    binaries = [Path(m["executable"]) for m in made if m.get("executable")]
    if len(binaries) != len(RUST) + 1:
        raise SystemExit("the mutated tree does not build")
    mutants = [m for m in mutants if m.name not in dropped]
    told = {"mutants": [asdict(m) for m in mutants], "binaries": [str(path) for path in binaries]}
    write(tree / "built.json", json.dumps(told).encode())
    return mutants, binaries


def as_built(tree: Path) -> tuple[list[Mutant], list[Path]]:
    """What was built before, with the Python tests as they are now."""
    told = json.loads((tree / "built.json").read_text())
    for path in (ROOT / "tests").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            write(tree / path.relative_to(ROOT), path.read_bytes())
    return [Mutant(**m) for m in told["mutants"]], [Path(path) for path in told["binaries"]]


def forked(work: Callable[[], bool], seconds: int) -> bool:
    """Whether `work` gives True in a process of its own, with limits of time and memory."""
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            signal.alarm(seconds)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            status = 0 if work() else 1
        os._exit(status)
    return os.waitpid(child, 0)[1] == 0


class Suite:
    """What can catch a mutant, and which mutants each part of it reaches."""

    def __init__(self, tree: Path, binaries: list[Path], more: list[str]):
        self.tree = tree
        sys.path[:0] = [str(tree), str(tree / "tests")]
        os.chdir(tree)
        import pytest
        import test_cases
        import test_edges

        self.cases, self.edges, self.pytest = test_cases, test_edges, pytest
        rust: list[tuple[object, ...]] = [(path,) for path in binaries if not path.name.startswith(LIBRARY)]
        for path in binaries:
            if path.name.startswith(LIBRARY):
                rust += [(path, *UNITS), (path, *(word for layer in UNITS for word in ("--skip", layer)))]
        self.parts = [*rust, *test_cases.FOLDERS, *test_edges.edges.texts(), *more]
        self.caught: Counter[object] = Counter()
        self.took: dict[object, float] = {}
        self.reached: dict[object, set[int]] = {}
        self.tables: dict[object, str] = {}
        # what a child tells before it ends in whatever way: the part that it is at, and whether any table differed
        self.told = mmap.mmap(-1, 8)
        # what a case imports is imported once; the core itself runs in children only, as it reads the environment once
        names = tree / "modules"
        self.passes(lambda: self.one(test_cases.FOLDERS[0]) and bool(names.write_text("\n".join(sys.modules))), {})
        for name in names.read_text().split():
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        for part in self.parts:
            hits, tables = tree / "hits", tree / "tables"
            hits.write_text("")

            def first(part: object = part, tables: Path = tables) -> bool:
                good = self.one(part)
                tables.write_text(self.digest(part) if isinstance(part, Path) and part.is_dir() else "")
                return good

            since = time.monotonic()
            if not self.passes(first, {"LATPCAP_MUTANT_HITS": str(hits)}):
                print(f"{part} fails without any mutant", file=sys.stderr)  # and so it tells nothing
                continue
            self.took[part] = time.monotonic() - since
            self.reached[part] = {int(number) for number in hits.read_text().split()}
            self.tables[part] = tables.read_text()

    def passes(self, work: Callable[[], bool], env: dict[str, str], seconds: int = 600) -> bool:
        def inside() -> bool:
            os.environ.update(env)
            return work()

        return forked(inside, seconds)

    def digest(self, folder: Path) -> str:
        """All that the core says of a capture."""
        state = hashlib.blake2b(digest_size=16)
        for table in TABLES:
            with contextlib.suppress(Exception):
                for column in self.cases.read(folder).arrow(table).combine_chunks().columns:
                    for chunk in column.chunks:
                        plain = chunk.dictionary_decode() if hasattr(chunk, "dictionary_decode") else chunk
                        for buffer in plain.buffers():
                            state.update(b"-" if buffer is None else buffer)
        return state.hexdigest()

    def one(self, part: object) -> bool:
        """Whether this part of the suite passes. A case whose tables are as they were is not compared again."""
        if isinstance(part, str):
            return not self.pytest.main(["-x", "-q", "-p", "no:cacheprovider", str(self.tree / part)])
        if isinstance(part, tuple) and isinstance(part[0], Path):
            return not subprocess.run([*part, "-q"], cwd=self.tree / "core", check=False).returncode
        if isinstance(part, tuple):
            self.edges.test_verdicts_are_as_they_were(*part)
            return True
        if part in self.tables and self.digest(part) == self.tables[part]:
            return True
        self.told[4] = 1
        self.cases.test_case(part)
        self.cases.test_causes_fill_their_time(part)
        return True

    def catches(self, mutant: Mutant) -> str:
        """What caught it, or one of WHY. The parts that catch most for their time go first."""
        limit = mutant.kind == "limit"
        env = {"LATPCAP_LIMITS": mutant.what} if limit else {"LATPCAP_MUTANT": str(mutant.id)}
        asked = [part for part, ids in self.reached.items() if limit or mutant.id in ids]
        asked.sort(key=lambda part: -(self.caught[part] + 0.1) / self.took[part])
        self.told[:] = bytes(8)

        def all_of_them() -> bool:
            for at, part in enumerate(asked):
                self.told[:4] = at.to_bytes(4)
                if not self.one(part):
                    return False
            return True

        if self.passes(all_of_them, env, int(60 + 10 * sum(self.took[part] for part in asked))):
            return "~" if self.told[4] else "=" if asked else "-"
        guilty = asked[int.from_bytes(self.told[:4])]
        self.caught[guilty] += 1
        if isinstance(guilty, tuple) and isinstance(guilty[0], Path):
            return " ".join([guilty[0].name, *map(str, guilty[1:])])
        return Path(str(guilty)).name if isinstance(guilty, (str, Path)) else f"{guilty[0]}, moved {guilty[1]}"


def changed() -> set[tuple[str, int]]:
    """File and line of what differs from the merge base with main, or on main itself from the commit before."""

    def git(*call: str) -> str:
        return subprocess.run(["git", *call], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    onto = os.environ.get("GITHUB_BASE_REF")
    base = git("merge-base", "HEAD", f"origin/{onto}" if onto else "main")
    if not base or base == git("rev-parse", "HEAD"):
        base = "HEAD~1"
    lines, file = set(), ""
    for line in git("diff", "-U0", base, "--", *(f"core/src/{layer}" for layer in MUTATED)).splitlines():
        if line.startswith("+++ "):
            file = line[4:].removeprefix("b/core/src/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            lines |= {(file, int(found[1]) + n) for n in range(int(found[2] or 1))}
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("all", "changed", "list"))
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--scratch", type=Path, default=ROOT / "core/target/mutants")
    parser.add_argument(
        "--known", type=Path, help="results of an earlier run; only its survivors and what is new are run"
    )
    parser.add_argument(
        "--pytest", nargs="*", default=OTHERS, help="more test files, for what everything else lets pass"
    )
    parser.add_argument("--as-built", action="store_true", help="Python tests of now, Rust of the build before")
    args = parser.parse_args()
    lines = changed() if args.mode == "changed" else set()
    if args.mode == "changed" and not lines:
        print("the judge is as it was")
        return
    tree = args.scratch.resolve() / "tree"
    mutants, binaries = as_built(tree) if args.as_built else built(tree)
    mutants = [m for m in mutants if args.text in m.name]
    if args.mode == "changed":
        mutants = [m for m in mutants if (m.file, m.line) in lines]
    if args.mode == "list":
        print("\n".join(f"{m.file}:{m.line} {m.kind} {m.name}" for m in mutants))
        return
    known = json.loads(args.known.read_text()) if args.known and args.known.exists() else {}
    accepted = Path(__file__).with_suffix(".txt")
    allowed = {line.split("  # ")[0] for line in accepted.read_text().splitlines()} if accepted.exists() else set()
    todo = [m for m in mutants if m.name not in allowed and not known.get(m.name, "").strip(PASSED)]
    random.shuffle(todo)
    suite = Suite(tree, binaries, args.pytest)
    print(f"{len(mutants)} mutants, {len(todo)} to run", flush=True)
    until = time.monotonic() + 60 * args.minutes
    results = args.scratch / "results.jsonl"
    results.write_text("")
    workers = []
    for job in range(args.jobs):
        if worker := os.fork():
            workers.append(worker)
            continue
        suite.told = mmap.mmap(-1, 8)
        for mutant in todo[job :: args.jobs]:
            if time.monotonic() > until:
                break
            said = {"name": mutant.name, "by": suite.catches(mutant)}
            with results.open("a") as file:
                file.write(json.dumps(said) + "\n")
        os._exit(0)
    for worker in workers:
        os.waitpid(worker, 0)
    known |= {said["name"]: said["by"] for said in map(json.loads, results.read_text().splitlines())}
    if args.known:
        args.known.write_text(json.dumps({m.name: known[m.name] for m in mutants if m.name in known}, indent=0))
    raise SystemExit(report(mutants, known, allowed, args.mode))


def report(mutants: list[Mutant], known: dict[str, str], allowed: set[str], mode: str) -> int:
    run = [m for m in mutants if m.name in known]
    missed = [m for m in run if not known[m.name].strip(PASSED) and m.name not in allowed]
    for m in sorted(missed, key=lambda m: (m.file, m.line)):
        print(f"core/src/{m.file}:{m.line}: {m.name} ({WHY[known[m.name]]})")
    kinds, lost = Counter(m.kind for m in run), Counter(m.kind for m in missed)
    for kind, count in sorted(kinds.items()):
        print(f"{kind:12} {count - lost[kind]:5} of {count:5} caught")
    share = 1 - len(missed) / max(len(run), 1)
    print(f"{len(run) - len(missed)} of {len(run)} caught ({share:.1%}); {len(mutants) - len(run)} not run")
    return int(bool(missed)) if mode == "changed" else int(share < FLOOR)


if __name__ == "__main__":
    main()
