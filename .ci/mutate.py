"""Every mutant of a Rust file in one file: each place asks which mutant runs, so that one build has all of them.

`mutate(text, path, first, dropped)` gives the text with each place wrapped, and what its mutants are. Reads Rust with
tree-sitter; knows nothing of builds and tests. Left as they are: tests, macros, constants and what has to be constant.
A mutant that does not compile is named in `dropped` the next time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))
COMPARED = {"<": "less", "<=": "most", ">": "more", ">=": "least"}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OTHER_SIGN = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
CONSTANT = {"const_item", "static_item", "array_type", "enum_variant", "macro_definition", "macro_invocation"}

# what each mutated crate gets as its module `mutants`
RUNTIME = """
// Both sides of a comparison have to be equal for its boundary to be reached at all.
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// Whether this mutant runs (LATPCAP_MUTANT); places that are reached are written to the file LATPCAP_MUTANT_HITS.
pub fn on(id: usize) -> bool {
    static STATE: OnceLock<(Option<usize>, Option<String>)> = OnceLock::new();
    let (active, hits) = STATE.get_or_init(|| {
        let named = |name| std::env::var(name).ok();
        (named("LATPCAP_MUTANT").and_then(|id| id.parse().ok()), named("LATPCAP_MUTANT_HITS"))
    });
    if let Some(file) = hits && let Some(seen) = SEEN.get(id) && !seen.swap(true, Relaxed) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
        let _ = file.and_then(|mut file| file.write_all(format!("{id}\\n").as_bytes()));
    }
    *active == Some(id)
}
"""
for sign, name in COMPARED.items():
    RUNTIME += f"""
pub fn {name}<T: PartialOrd + ?Sized>(id: usize, a: &T, b: &T) -> bool {{
    if a == b && on(id) {{ a {BOUNDARY[sign]} b }} else {{ a {sign} b }}
}}
"""


@dataclass
class Mutant:
    """One change at one place. Its name stays the same while the lines above it change."""

    id: int
    file: str
    line: int
    kind: str
    what: str
    function: str = ""
    number: int = 0

    @property
    def name(self) -> str:
        again = f" #{self.number}" if self.number else ""
        return f"{self.file} {self.function}: {self.what}{again}"


class Mutator:
    """One file. Nodes are rendered inside out: what is wrapped holds its own parts, wrapped."""

    def __init__(self, text: str, file: str, first: int, dropped: set[str]):
        self.data, self.file, self.first, self.dropped = text.encode(), file, first, dropped
        self.mutants: list[Mutant] = []
        self.names: dict[str, int] = {}

    def source(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode()

    def mutant(self, node: Node, kind: str, what: str) -> str:
        """The condition under which the mutant runs; empty where it was dropped."""
        owner, names = node.parent, []
        while owner is not None:
            if owner.type in ("function_item", "impl_item") and (
                name := owner.child_by_field_name("name") or owner.child_by_field_name("type")
            ):
                names.insert(0, self.source(name))
            owner = owner.parent
        what = re.sub(r"\s+", " ", what)
        mutant = Mutant(
            self.first + len(self.mutants), self.file, node.start_point[0] + 1, kind, what[:110], "::".join(names)
        )
        first = mutant.name
        mutant.number = self.names[first] = self.names.get(first, -1) + 1
        self.mutants.append(mutant)
        return "" if mutant.name in self.dropped else f"crate::mutants::on({mutant.id})"

    def render(self, node: Node) -> str:
        if node.type in CONSTANT or (node.type == "function_item" and self.is_constant(node)):
            return self.source(node)
        parts: dict[int, str] = {}
        text, at, test = "", node.start_byte, False
        for child in node.children:
            text += self.data[at : child.start_byte].decode()
            parts[child.id] = self.source(child) if test else self.render(child)
            if child.type not in ("attribute_item", "line_comment", "block_comment"):
                test = False
            elif re.search(r"#\[(cfg\(test|test|cfg\(not)", self.source(child)):
                test = True
            text += parts[child.id]
            at = child.end_byte
        text += self.data[at : node.end_byte].decode()
        wrap = getattr(self, node.type, None)
        return wrap(node, text, parts) if wrap else text

    def is_constant(self, node: Node) -> bool:
        return any(c.type == "function_modifiers" and "const" in self.source(c) for c in node.children)

    def is_condition(self, node: Node) -> bool:
        """Made true and made false already."""
        return node.parent is not None and node.parent.type in ("if_expression", "match_pattern")

    def binary_expression(self, node: Node, text: str, parts: dict[int, str]) -> str:
        left, sign, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
        assert left and sign and right
        op, a, b, said = sign.type, parts[left.id], parts[right.id], self.source(node)
        if op in BOUNDARY:
            boundary = self.mutant(node, "comparison", f"{said} -> {BOUNDARY[op]}")
            turned = "" if self.is_condition(node) else self.mutant(node, "comparison", f"{said} -> !")
            if boundary:
                number = boundary.removeprefix("crate::mutants::on(").removesuffix(")")
                text = f"crate::mutants::{COMPARED[op]}({number}, &({a}), &({b}))"
            return f"(({text}) ^ {turned})" if turned else f"({text})"
        if op in ("==", "!="):
            turned = "" if self.is_condition(node) else self.mutant(node, "comparison", f"{said} -> !")
            return f"(({text}) ^ {turned})" if turned else text
        if op in ("&&", "||"):
            other = self.mutant(node, "logic", f"{said} -> {'||' if op == '&&' else '&&'}")
            yes, no = (b, "x") if op == "&&" else ("x", b)
            return f"(match {a} {{ x => if x ^ {other} {{ {yes} }} else {{ {no} }} }})" if other else text
        if op in OTHER_SIGN:
            other = self.mutant(node, "arithmetic", f"{said} -> {OTHER_SIGN[op]}")
            return f"(if {other} {{ ({a}) {OTHER_SIGN[op]} ({b}) }} else {{ {text} }})" if other else text
        return text

    def compound_assignment_expr(self, node: Node, text: str, parts: dict[int, str]) -> str:
        left, sign, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
        assert left and sign and right
        if sign.type not in OTHER_SIGN:
            return text
        other = self.mutant(node, "arithmetic", f"{self.source(node)} -> {OTHER_SIGN[sign.type]}")
        changed = f"{parts[left.id]} {OTHER_SIGN[sign.type]} {parts[right.id]}"
        return f"if {other} {{ {changed} }} else {{ {text} }}" if other else text

    def unary_expression(self, node: Node, text: str, parts: dict[int, str]) -> str:
        if not self.source(node).startswith("!"):
            return text
        other = "" if self.is_condition(node) else self.mutant(node, "logic", f"{self.source(node)} without !")
        return f"(({text}) ^ {other})" if other else text

    def condition(self, node: Node, text: str, kinds: tuple[bool, ...] = (True, False)) -> str:
        """A condition that mutants make true or false. What binds names can only be made false."""
        binds = node.type in ("let_chain", "let_condition")
        for value in kinds:
            if value and binds:
                continue
            other = self.mutant(node, "branch", f"if {self.source(node)} -> {str(value).lower()}")
            if other and value:
                text = f"(({text}) || {other})"
            elif other:
                text = f"{text} && !{other}" if binds else f"(({text}) && !{other})"
        return text

    def if_expression(self, node: Node, text: str, parts: dict[int, str]) -> str:
        condition = node.child_by_field_name("condition")
        assert condition
        return self.join(node, parts | {condition.id: self.condition(condition, parts[condition.id])})

    def while_expression(self, node: Node, text: str, parts: dict[int, str]) -> str:
        condition = node.child_by_field_name("condition")
        assert condition
        return self.join(node, parts | {condition.id: self.condition(condition, parts[condition.id], (False,))})

    def match_block(self, node: Node, text: str, parts: dict[int, str]) -> str:
        """Arms before `_` can be left out."""
        arms = [c for c in node.children if c.type == "match_arm"]
        if arms and self.source(arms[-1]).startswith("_ =>"):
            for arm in arms[:-1]:
                pattern = arm.child_by_field_name("pattern")
                if pattern and not pattern.child_by_field_name("condition"):
                    other = self.mutant(arm, "branch", f"arm {self.source(pattern)} left out")
                    end = pattern.end_byte - arm.start_byte
                    # nothing before the arrow is wrapped
                    if other and self.source(arm).encode()[:end].decode() == parts[arm.id][: len(self.source(pattern))]:
                        cut = len(self.source(pattern))
                        parts[arm.id] = f"{parts[arm.id][:cut]} if !{other}{parts[arm.id][cut:]}"
        return self.join(node, parts)

    def match_pattern(self, node: Node, text: str, parts: dict[int, str]) -> str:
        condition = node.child_by_field_name("condition")
        if not condition:
            return text
        return self.join(node, parts | {condition.id: self.condition(condition, parts[condition.id])})

    def function_item(self, node: Node, text: str, parts: dict[int, str]) -> str:
        result, body = node.child_by_field_name("return_type"), node.child_by_field_name("body")
        said = self.source(result) if result else ""
        values = ("true", "false") if said == "bool" else ("None",) if said.startswith("Option<") else ()
        early = ""
        assert body
        for value in values:
            if other := self.mutant(body, "branch", f"gives {value}"):
                early += f" if {other} {{ return {value}; }}"
        return self.join(node, parts | {body.id: "{" + early + parts[body.id][1:]})

    def join(self, node: Node, parts: dict[int, str]) -> str:
        text, at = "", node.start_byte
        for child in node.children:
            text += self.data[at : child.start_byte].decode() + parts[child.id]
            at = child.end_byte
        return text + self.data[at : node.end_byte].decode()


def mutate(text: str, file: str, first: int, dropped: set[str]) -> tuple[str, list[Mutant]]:
    """The text with all mutants in it, and the mutants."""
    mutator = Mutator(text, file, first, dropped)
    tree = PARSER.parse(mutator.data)
    return mutator.render(tree.root_node), mutator.mutants
