"""Is what findings/ and archive/ compute held by a test? Mutants of Python files, each in a process of its own.

    mutants_python.py [--minutes 20] [--seed 1] [FILE ...]     in random order; without files those of FOLDERS
    mutants_python.py --lines latpcap/findings/fixes.py:140-180   of these lines alone

A first run of TESTS says which test runs which line (coverage). A mutant turns a comparison, an `and`, a sign or a
condition, or changes a number by one; it is caught when one of the tests that run its line fails under it, or does not
end. A fork has all imports but latpcap's Python already, so a mutant costs little more than its tests. Survivors are
printed with their line; exit code 1 where fewer than FLOOR are caught. Needs pytest and coverage.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("latpcap/findings", "latpcap/archive")
TESTS = (
    "findings headlines headline_limits losses quality silence one_way queue brief api proxies beside comparison "
    "results damaged_results inputs batch_series stores schemas"
)
FLOOR = 0.4
"""A sample of 14 with six of the test files caught 6: raise it with what a whole night reaches."""
MOST_TESTS = 40
"""The quickest ones; what they let pass is counted as a survivor."""
TIMES, AT_LEAST_S = 10.0, 20.0
"""A mutant may take so much longer than its tests took."""
IMPORTED = (
    "pandas",
    "pyarrow.parquet",
    "pyarrow.dataset",
    "matplotlib.figure",
    "typer",
    "hypothesis",
    "pytest",
    "fsspec",
)
BOUNDARY = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
MORE = {ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What can this node be turned into?"""
    match node:
        case ast.Compare(ops=[op], left=left, comparators=others) if type(op) in BOUNDARY | MORE:
            other = (BOUNDARY | MORE)[type(op)]
            yield f"{type(op).__name__} to {other.__name__}", ast.Compare(left, [other()], others)
        case ast.BoolOp(op=op, values=values):
            other = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"{type(op).__name__} to {other.__name__}", ast.BoolOp(other(), values)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield "not left out", inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS and not _text(left) and not _text(right):
            other = SIGNS[type(op)]
            yield f"{type(op).__name__} to {other.__name__}", ast.BinOp(left, other(), right)
        case ast.Constant(value=bool() as value):
            yield f"{value} to {not value}", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield f"{value} to {value + 1}", ast.Constant(value + 1)
        case ast.IfExp(test=test, body=body, orelse=other):
            yield "branches exchanged", ast.IfExp(test, other, body)
        case ast.If(test=test, body=body, orelse=other):
            yield "condition turned", ast.If(ast.UnaryOp(ast.Not(), test), body, other)


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def mutants(path: Path) -> Iterator[tuple[Path, int, int, int, str]]:
    """Every mutant of a file: the number of its node, of its change, its line, and what is done."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hints = {id(inner) for node in ast.walk(tree) for hint in _hints(node) for inner in ast.walk(hint)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in hints:
            for way, (what, _) in enumerate(changes(node)):
                yield path, number, way, node.lineno, what


def mutated(path: Path, number: int, way: int) -> ast.Module:
    """The tree of this mutant."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    old = list(ast.walk(tree))[number]
    _put(tree, old, ast.copy_location(list(changes(old))[way][1], old))
    return ast.fix_missing_locations(tree)


def _hints(node: ast.AST) -> list[ast.AST]:
    """Annotations are never run; what only type checkers see neither."""
    found = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        found.append(node)
    return [hint for hint in found if hint is not None]


def _put(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(one is old for one in value):
                value[:] = [new if one is old else one for one in value]


def covered(scratch: Path) -> tuple[dict[str, dict[int, set[str]]], dict[str, float]]:
    """Which tests run each line, by file; and how long each test takes."""
    files = [f"tests/test_{name}.py" for name in TESTS.split()]
    rc, data = scratch / "rc", scratch / "coverage.json"
    sources = "".join(f"\n    {folder}" for folder in FOLDERS)
    rc.write_text(f"[run]\nsource ={sources}\ndynamic_context = test_function\ndata_file = {scratch}/data\n")
    run = [sys.executable, "-m", "coverage", "run", f"--rcfile={rc}", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    log = scratch / "log"
    if not data.exists():
        timed = [*run, "--durations=0", "--durations-min=0", *files]
        done = subprocess.run(timed, cwd=ROOT, text=True, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"the tests fail without any change:\n{done.stdout[-3000:]}")
        log.write_text(done.stdout, encoding="utf-8")
        tell = [sys.executable, "-m", "coverage", "json", f"--rcfile={rc}", "--show-contexts", "-q", "-o", str(data)]
        subprocess.run(tell, cwd=ROOT, check=True)
    found = json.loads(data.read_text(encoding="utf-8"))["files"]
    lines = {
        name: {int(line): {_node(test) for test in tests if test} for line, tests in file["contexts"].items()}
        for name, file in found.items()
    }
    return lines, taken(log.read_text(encoding="utf-8"))


def _node(context: str) -> str:
    """test_x.test_name, as coverage says it, as a node of pytest's."""
    module, _, name = context.partition(".")
    return f"tests/{module}.py::{name}"


def taken(log: str) -> dict[str, float]:
    """Seconds of each test function, all its parameters together."""
    found: Counter[str] = Counter()
    for line in log.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in ("call", "setup") and words[0].endswith("s"):
            found[words[2].partition("[")[0]] += float(words[0][:-1])
    return dict(found)


class Loader(SourceFileLoader):
    """Reads one file as its mutant."""

    mutated: tuple[str, ast.Module] | None = None

    def get_code(self, fullname: str) -> object:
        path = self.get_filename(fullname)
        if Loader.mutated is not None and os.path.samefile(path, Loader.mutated[0]):
            return compile(Loader.mutated[1], path, "exec")
        return super().get_code(fullname)


def fails(path: Path, tree: ast.Module, tests: list[str], most_s: float) -> bool:
    """Does one of these tests fail under this mutant, or not end?"""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setsid()
            signal.alarm(int(most_s))
            Loader.mutated = (str(path), tree)
            hook = importlib.machinery.FileFinder.path_hook(
                (Loader, [".py"]), (importlib.machinery.ExtensionFileLoader, [".abi3.so"])
            )
            sys.path_hooks.insert(0, hook)
            sys.path_importer_cache.clear()
            import pytest

            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] != 0


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("files", nargs="*")
    args.add_argument("--minutes", type=float, default=20.0)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--lines", help="FILE:FIRST-LAST")
    args.add_argument("--scratch", help="keep the first run's coverage in this folder, and take it from there")
    asked = args.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    with tempfile.TemporaryDirectory() as scratch:
        if asked.scratch:
            Path(asked.scratch).mkdir(parents=True, exist_ok=True)
        lines, seconds = covered(Path(asked.scratch or scratch))
    for name in IMPORTED:
        importlib.import_module(name)
    name, _, span = (asked.lines or "").partition(":")
    first, _, last = span.partition("-")
    wanted = [name] if name else asked.files or [str(p) for f in FOLDERS for p in sorted(Path(f).glob("*.py"))]
    todo = [mutant for file in wanted for mutant in mutants(Path(file))]
    todo = [m for m in todo if not name or int(first) <= m[3] <= int(last or first)]
    random.Random(asked.seed).shuffle(todo)
    end, told = time.monotonic() + 60 * asked.minutes, Counter[str]()
    for path, number, way, line, what in todo:
        if time.monotonic() > end:
            break
        tests = sorted(lines.get(str(path), {}).get(line, ()), key=lambda test: seconds.get(test, 0))[:MOST_TESTS]
        most = max(AT_LEAST_S, TIMES * sum(seconds.get(test, 0) for test in tests))
        came = (
            "not run" if not tests else "caught" if fails(path, mutated(path, number, way), tests, most) else "survived"
        )
        told[came] += 1
        if came != "caught":
            print(f"{came}: {path}:{line}: {what}", flush=True)
    asked_all = told["caught"] + told["survived"]
    print(f"{told['caught']:,} of {asked_all:,} mutants caught; {told['not run']:,} on lines that TESTS do not run")
    return int(told["caught"] < FLOOR * asked_all)


if __name__ == "__main__":
    sys.exit(main())
