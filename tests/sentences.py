"""Which sentences can an answer print, and which captures make it print each?

    python tests/sentences.py            # every sentence, a capture that prints it, and the line: to be read for truth

Sentences are the string literals of `latpcap/findings` and `latpcap/beside` that have words. The modules are compiled
with each literal wrapped, so that it is known which of them a capture has evaluated; said it is where the words then
stand in the answer, too. Runs in a process of its own (`tests/test_sentences.py`).
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType

ROOT = Path(__file__).resolve().parents[1]
SPEAK = ("latpcap/findings", "latpcap/beside")
SILENT = ("schema.py", "answer.py")
"""Types, with what is said of columns."""
NOT_SAID = ("<unfinished ...>",)
"""What a trace says."""
WORD = re.compile(r"[A-Za-z]{3,}")
EVALUATED: dict[int, set[str]] = {}
now = ""


@dataclass
class Sentence:
    """A literal with words: where it stands, its text with holes for values, and the captures that print it."""

    place: str
    text: str
    pattern: str
    runs: bool
    """Is it inside a function? Otherwise it is evaluated by the import alone."""
    said: dict[str, str] = field(default_factory=dict)


SENTENCES: list[Sentence] = []


def holes(text: str) -> list[str | None]:
    """A text of `str.format`: its pieces, with None for each value."""
    pieces: list[str | None] = []
    for number, part in enumerate(re.split(r"\{[a-z]*\}", text)):
        pieces += [None, part] if number else [part]
    return pieces


class Speaker(ast.NodeTransformer):
    """Wraps the literals of one module that have words."""

    def __init__(self, file: str):
        self.file, self.depth = file, 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.depth += 1
        node.body = [self.visit(part) for part in node.body]
        self.depth -= 1
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """A docstring is no sentence of an answer."""
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Nor is a regular expression."""
        return (
            node if isinstance(node.func, ast.Attribute) and node.func.attr == "compile" else self.generic_visit(node)
        )

    def visit(self, node: ast.AST) -> ast.AST:
        """Messages of exceptions and what is compared are none either."""
        return node if isinstance(node, (ast.Raise, ast.Assert, ast.Compare)) else super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        pieces: list[str | None] = []
        for part in node.values:
            pieces += holes(str(part.value)) if isinstance(part, ast.Constant) else [None]
        return self._said(node, pieces)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, str) or " " not in node.value.strip() or node.value in NOT_SAID:
            return node
        return self._said(node, holes(node.value))

    def _said(self, node: ast.expr, pieces: list[str | None]) -> ast.expr:
        if not any(WORD.search(piece) and " " in piece for piece in pieces if piece):
            return node
        pattern = "".join(".*?" if piece is None else re.escape(piece) for piece in pieces)
        text = "".join("…" if piece is None else piece for piece in pieces)
        SENTENCES.append(Sentence(f"{self.file}:{node.lineno}", text, pattern, self.depth > 0))
        if not self.depth:
            return node
        number = ast.Constant(len(SENTENCES) - 1)
        call = ast.Call(ast.Name("_evaluated", ast.Load()), [number, node], [])
        return ast.copy_location(call, node)


def _evaluated(number: int, text: str) -> str:
    if now:
        EVALUATED.setdefault(number, set()).add(now)
    return text


@cache
def package() -> Path:
    """Where latpcap lies: installed, or beside the tests where the core was built into it."""
    found = importlib.machinery.PathFinder.find_spec("latpcap")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module with its sentences wrapped."""

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_text(), self.path)
        tree = Speaker(str(Path(self.path).relative_to(package().parent))).visit(tree)
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        module.__dict__["_evaluated"] = _evaluated
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that speak."""

    def find_spec(self, fullname, path, target=None):  # type: ignore[no-untyped-def]
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        file = Path(spec.origin)
        folder = str(file.parent.relative_to(package().parent)) if file.is_relative_to(package()) else ""
        if folder not in SPEAK or file.name in SILENT:
            return None
        spec.loader = Loader(fullname, spec.origin)
        return spec


def answers() -> Iterator[tuple[str, str]]:
    """Every capture's name, and all that is said of it."""
    global now
    from spoken import BESIDE, SPOKEN, all_said, ask, beside
    from test_beside import CAPTURE, LOG, TRACE
    from test_headlines import MADE

    import latpcap as lp

    def told(name: str, capture, **more) -> Iterator[tuple[str, str]]:  # type: ignore[no-untyped-def]
        texts = []
        for asked in ({}, {"top": 9}):
            why = capture.why(**asked, **more)
            texts.append(all_said(why))
        texts += [str(capture.why(exchange=number)) for number in capture.exchanges["exchange"][:3]]
        yield name, "\n".join(texts)

    for path in sorted((ROOT / "tests/cases").glob("*/capture.*")):
        now = path.parent.name
        yield from told(now, lp.read(path))
    for path in sorted((ROOT / "sample_pcaps").rglob("*.pcap*")):
        now = path.name
        yield from told(now, lp.read(path))
    for name, (make, _) in MADE.items():
        now = name
        yield from told(name, lp.read(make()))
    for name, spoken in SPOKEN.items():
        now = name
        yield name, all_said(ask(spoken))
    now = "beside"
    yield from told(now, lp.read(CAPTURE), strace=TRACE, access_log=LOG)
    for now in BESIDE:
        with TemporaryDirectory() as folder:
            yield now, all_said(beside(now, Path(folder)))


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    sys.meta_path.insert(0, Finder())
    corpus = list(answers())
    for number, sentence in enumerate(SENTENCES):
        for name, text in corpus:
            if sentence.runs and name not in EVALUATED.get(number, ()):
                continue
            found = re.search(rf"^.*{sentence.pattern}.*$", text, re.MULTILINE | re.IGNORECASE)
            if found:
                sentence.said[name] = found[0]
    if "--json" in sys.argv:
        json.dump([asdict(sentence) for sentence in SENTENCES], sys.stdout)
        return
    for sentence in SENTENCES:
        name, line = next(iter(sentence.said.items()), ("no capture", ""))
        print(f"{sentence.place}: {sentence.text}\n    {name}: {line.strip()}")


if __name__ == "__main__":
    main()
