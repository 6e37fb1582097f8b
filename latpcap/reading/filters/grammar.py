"""Grammar of display filters: parses the text into a tree of tests with pyparsing.

Covers Wireshark 4.0's language as far as docs/filters.md lists it. Whether a name is a field and a literal fits the
field is checked later, by `evaluate.py` and `values.py`. Errors name the `offset` of a node in the text.
"""

from __future__ import annotations

import functools
import re
import threading
from dataclasses import dataclass
from typing import TypeAlias, cast

import pyparsing as pp

from latpcap.errors import FilterError


@dataclass(frozen=True)
class Field:
    """A field on the left of a test, or alone: `all lower(http.host[0:3])`."""

    name: str
    offset: int
    mask: Word | None = None
    """The literal after `&`: `tcp.flags & 0x12`."""
    every: bool | None = None
    """True after the quantifier `all`, False after `any`, None without one."""
    slices: tuple[tuple[int | None, int | None], ...] = ()
    """Begin and end of each slice, as in Python."""
    functions: tuple[str, ...] = ()
    """Functions applied to the values, the innermost first."""


@dataclass(frozen=True)
class Word:
    """A literal without quotes (number, address, time), or the name of another field."""

    text: str
    offset: int


@dataclass(frozen=True)
class _Called:
    """A field's name, and the functions around it, the innermost first."""

    word: Word
    functions: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A string in quotes, its escapes resolved."""

    text: str
    offset: int


@dataclass(frozen=True)
class Range:
    """A range `low..high` in a set; it includes both ends."""

    low: Word | Text
    high: Word | Text
    offset: int


@dataclass(frozen=True)
class Exists:
    """A field alone: tests whether the packet has it."""

    field: Field


@dataclass(frozen=True)
class Test:
    """A comparison of a field with one value; `operator` is a value of OPERATORS or WORDS."""

    field: Field
    operator: str
    value: Word | Text
    offset: int


@dataclass(frozen=True)
class Among:
    """A test whether a field's value is in a set; `without` for `not in`."""

    field: Field
    items: tuple[Word | Text | Range, ...]
    without: bool


@dataclass(frozen=True)
class Computed:
    """Arithmetic, or a function of several values; parts are fields, numbers and nested expressions."""

    operator: str
    """A sign, "negative", "max", "min" or "abs"."""
    parts: tuple[Operand, ...]
    offset: int


Operand: TypeAlias = Field | Word | Computed
"""A side of a test with arithmetic, or a part of it."""


@dataclass(frozen=True)
class Relation:
    """A test with arithmetic on one side or both. Without an operator it passes if the value is not 0."""

    left: Operand
    operator: str | None
    right: Operand | None
    every: bool | None
    offset: int


@dataclass(frozen=True)
class Not:
    """A negated test."""

    inner: Node


@dataclass(frozen=True)
class Joined:
    """`and` or `or` (`word`) over two or more tests."""

    word: str
    parts: tuple[Node, ...]


Node: TypeAlias = Joined | Not | Relation | Exists | Among | Test
"""A filter, or a part of it that is true or false for a frame."""


OPERATORS = {
    "===": "all_eq", "!==": "any_ne", "==": "any_eq", "!=": "all_ne", "~=": "any_ne", "<=": "le", ">=": "ge",
    "<": "lt", ">": "gt", "~": "matches",
}  # fmt: skip
_NAMES = ("all_eq", "any_ne", "any_eq", "all_ne", "le", "ge", "lt", "gt", "contains", "matches")
WORDS = {"eq": "any_eq", "ne": "all_ne", **{name: name for name in _NAMES}}
"""Operators written as words; OPERATORS has those written as signs."""
FUNCTIONS = ("lower", "upper", "len", "count", "string", "max", "min", "abs")
MACROS = {
    "private_ipv4": "({0} == 192.168.0.0/16 or {0} == 172.16.0.0/12 or {0} == 10.0.0.0/8)",
    "private_ipv6": "(ipv6 and {0} == fc00::/7)",
    "private_ethernet": "({0}[0] & 0x0f == 2)",
}
"""Wireshark's built-in macros."""
_RESERVED = {*WORDS, "and", "or", "not", "in", "all", "any"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"', "'": "'"}
_PARSER_LOCK = threading.Lock()
"""Only one thread may parse: pyparsing finds the number of an action's arguments by trial, which is not thread-safe."""
_SLICE = re.compile(r"(?P<begin>-?\d{1,9})?(?:(?P<colon>:)(?P<length>\d{1,9})?|-(?P<last>-?\d{1,9}))?")
_MACRO = re.compile(r"\$\{(\w+)[:;]([^}]*)\}|\$(\w+)\(([^)]*)\)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_VALUE_BEFORE_FIELD = re.compile(r'("[^"]*"|[\w.:/]+)\s*(==|!=|<=|>=|<|>)\s*([a-z]\w*(?:\.\w+)+)')
_MIRRORED_SIGNS = str.maketrans("<>", "><")
_CAPTURE_FILTER = re.compile(r"\b(?:(tcp|udp)\s+)?(?:(src|dst)\s+)?(port|host|net)\s+([\w.:/]+)")
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


def parse(expression: str) -> Node:
    """Return the root of the filter's tree. Raises FilterError with the offset of a mistake."""
    try:
        with _PARSER_LOCK:
            return cast(Node, _grammar().parse_string(expression, parse_all=True)[0])
    except pp.ParseBaseException as problem:
        raise _mistake(expression, problem.loc, problem.msg) from None
    except RecursionError:
        raise FilterError(expression, 0, "is nested too deeply") from None


def expanded(expression: str) -> str:
    """Return the filter with its macros expanded: `${private_ipv4:ip.src}` or `$private_ipv4(ip.src)`."""
    if "$" not in _STRING.sub("", expression):
        return expression

    def expansion(match: re.Match[str]) -> str:
        name, arguments = match[1] or match[3], match[2] or match[4] or ""
        if name not in MACROS:
            reason = f"{name!r} is no macro that Wireshark brings"
            raise FilterError(expression, match.start(), reason, length=len(match[0]), near=list(MACROS))
        return MACROS[name].format(*(argument.strip() for argument in re.split("[;,]", arguments)))

    quoted = {match.span() for match in _STRING.finditer(expression)}

    def unless_quoted(match: re.Match[str]) -> str:
        return match[0] if any(begin < match.start() < end for begin, end in quoted) else expansion(match)

    return _MACRO.sub(unless_quoted, expression)


def _mistake(expression: str, offset: int, expected: str) -> FilterError:
    """Return an error with the unexpected word, the expected one, and a hint for common mistakes."""
    remaining = expression[offset:].lstrip()
    offset = len(expression) - len(remaining)
    if not expected.startswith("Expected "):
        return FilterError(expression, offset, expected)
    expected = expected[:1].lower() + expected[1:]
    expected = expected.replace("expected end of text", "expected 'and', 'or' or the end")
    if not remaining:
        return FilterError(expression, len(expression), f"the filter ends here, {expected}")
    match = re.match(r"[\w.:-]+|[^\w\s]+|.", remaining, re.DOTALL)
    word = match.group() if match else remaining
    hint = ""
    if word.lower() in _RESERVED and word.lower() != word:
        hint = f"; it is written {word.lower()!r}"
    elif word == "=":
        hint = "; equality is written '=='"
    elif "'}'" in expected or "','" in expected:
        hint = "; the values of a set have commas between them"
    elif word in ("^^", "xor"):
        hint = "; there is no exclusive or"
    elif word[0] == "'":
        hint = "; a string stands in double quotes"
    elif word in "*/%+-" and expression[:offset].rstrip().endswith(")"):
        hint = "; arithmetic is grouped in braces: { }"
    elif instead := _instead(expression, offset):
        hint = f"; read instead: {instead}"
    return FilterError(expression, offset, f"{word!r} was not expected here, {expected}{hint}", length=len(word))


def _instead(expression: str, offset: int) -> str | None:
    """Return the display filter for a capture filter, or for a comparison with the value first; None for other text.

    Examples: `tcp port 80` gives `tcp.port == 80`, and `80 == tcp.port` gives it, too.
    """
    if reversed_test := _VALUE_BEFORE_FIELD.match(expression, offset):
        value, sign, field = reversed_test.groups()
        return f"{field} {sign.translate(_MIRRORED_SIGNS)} {value}"
    for match in _CAPTURE_FILTER.finditer(expression):
        if match.start() <= offset <= match.end():
            protocol, direction, kind, value = match.groups()
            if kind == "port":
                side = f"{direction}port" if direction else "port"
                return f"{protocol or 'tcp'}.{side} == {value}"
            return f"{'ipv6' if ':' in value else 'ip'}.{direction or 'addr'} == {value}"
    return None


def _unescaped(text: str, start: int, body: str) -> str:
    """Return a string with its escapes resolved. Fails for an escape that Wireshark rejects.

    `start` is the offset of the opening quote in `text`.
    """

    def character(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code in _ESCAPES:
            return _ESCAPES[code]
        reason = f"'\\{code}' is no escape; write '\\\\{code}', or a raw string: r\"...\""
        raise pp.ParseFatalException(text, start + 1 + match.start(), reason)

    return _ESCAPE.sub(character, body)


@functools.cache
def _grammar() -> pp.ParserElement:
    """Return the parser of a whole filter: tests, and their combinations."""
    name, word, value = _names_and_literals()
    field = _call(name) | name
    signs = "|".join(re.escape(sign) for sign in OPERATORS)
    sign = pp.Regex(rf"(?:{signs})(?!=)").set_parse_action(lambda tokens: OPERATORS[tokens[0]])
    verb = pp.Regex(rf"(?:{'|'.join(WORDS)})(?![\w.])").set_parse_action(lambda tokens: WORDS[tokens[0]])
    operator = verb | sign
    quantifier = pp.Regex(r"(?:all|any)(?=\s+[A-Za-z_])(?!\s+(?:and|or|in)\b)")
    computed = _arithmetic(field)
    relation = pp.Optional(quantifier) + computed + pp.Optional(operator + computed)
    relation.set_parse_action(_relation)
    mask = pp.Suppress(pp.Regex(r"&(?!&)")) - word
    operand = (pp.Optional(quantifier) + field + pp.Optional(mask)).set_parse_action(_operand)
    test = operand + pp.Optional(_membership(value) | operator - value)
    test.set_parse_action(_test)

    either = pp.Forward().set_name("a test")
    inner = pp.Forward()
    bracket = pp.Suppress("(") - either - pp.Suppress(pp.Literal(")").set_name("')'"))
    negation = pp.Suppress(_keyword("not") | pp.Regex(r"!(?!=)")) - inner
    negation.set_parse_action(lambda tokens: Not(tokens[0]))
    inner <<= (negation | bracket | relation | test).set_name("a field, 'not' or '('")
    both = inner + pp.ZeroOrMore(pp.Suppress(_keyword("and") | "&&") - inner)
    both.set_parse_action(lambda tokens: Joined("and", tuple(tokens)) if len(tokens) > 1 else tokens[0])
    either <<= both + pp.ZeroOrMore(pp.Suppress(_keyword("or") | "||") - both)  # type: ignore[operator]
    either.set_parse_action(lambda tokens: Joined("or", tuple(tokens)) if len(tokens) > 1 else tokens[0])
    return pp.And([either]).parse_with_tabs()


def _keyword(text: str) -> pp.ParserElement:
    return pp.Regex(rf"{text}(?![\w.])")


def _names_and_literals() -> tuple[pp.ParserElement, pp.ParserElement, pp.ParserElement]:
    """Return the parsers of a field's name, of a literal without quotes, and of any literal."""
    plain = r"(?:(?!\.\.)[\w./:-])"
    name = pp.Regex(r"[A-Za-z_](?:(?!\.\.)[\w.-])*(?:\[[^\]]*\])?").set_name("a field").set_parse_action(_name)
    word = pp.Regex(rf"-?[\w:]{plain}*").set_name("a value")
    word.set_parse_action(lambda s, offset, tokens: Word(tokens[0], offset))
    quoted = pp.Regex(r'"((?:[^"\\]|\\.)*)"', re.DOTALL).set_name("a string")
    quoted.set_parse_action(lambda s, offset, tokens: Text(_unescaped(s, offset, tokens[0][1:-1]), offset))
    raw = pp.Regex(r'[rR]"((?:[^"\\]|\\.)*)"', re.DOTALL).set_name("a string")
    raw.set_parse_action(lambda s, offset, tokens: Text(tokens[0][2:-1], offset))
    character = pp.Regex(r"'(?:[^'\\]|\\(?:x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.))'").set_name("a character")
    character.set_parse_action(lambda s, offset, tokens: Word(str(ord(_unescaped(s, offset, tokens[0][1:-1]))), offset))
    return name, word, (raw | quoted | character | word).set_name("a value")


def _membership(value: pp.ParserElement) -> pp.ParserElement:
    """Return the parser of `in` or `not in` with a set of values and ranges."""
    among = (pp.Optional(_keyword("not")) + _keyword("in")).set_parse_action(
        lambda tokens: "not in" if len(tokens) > 1 else "in"
    )
    item = (value + pp.Optional(pp.Suppress("..") - value)).set_parse_action(_item)
    items = (
        pp.Suppress(pp.Literal("{").set_name("'{'"))
        - pp.DelimitedList(item)
        - pp.Suppress(pp.Literal("}").set_name("',' or '}'"))
    )
    return among - pp.Group(items)


def _call(name: pp.ParserElement) -> pp.ParserElement:
    """Return the parser of functions around a field's name."""
    call = pp.Forward()
    opening = pp.Regex(rf"(?:{'|'.join(FUNCTIONS)})(?=\s*\()")
    call <<= (
        opening + pp.Suppress("(") - (call | name) - pp.Suppress(pp.Literal(")").set_name("')'"))
    ).set_parse_action(
        lambda tokens: (
            _Called(tokens[1].word, (*tokens[1].functions, tokens[0]))
            if isinstance(tokens[1], _Called)
            else _Called(tokens[1], (tokens[0],))
        )
    )
    return call


def _arithmetic(field: pp.ParserElement) -> pp.ParserElement:
    """Return the parser of an expression, built from the tightest operator to the loosest."""
    computed = pp.Forward()
    number = pp.Regex(r"-?(?:0[xX][0-9A-Fa-f]+|\d+(?:\.\d+)?)(?![\w.:/-])").set_name("a number")
    number.set_parse_action(lambda s, offset, tokens: Word(tokens[0], offset))
    several = (
        pp.Regex(r"(?:max|min)(?=\s*\()") + pp.Suppress("(") + pp.DelimitedList(computed, min=2) + pp.Suppress(")")
    )
    several.set_parse_action(lambda s, offset, tokens: Computed(tokens[0], tuple(tokens[1:]), offset))
    absolute = pp.Regex(r"abs(?=\s*\()") + pp.Suppress("(") + computed + pp.Suppress(")")
    absolute.add_condition(lambda tokens: isinstance(tokens[1], Computed))
    absolute.add_parse_action(lambda s, offset, tokens: Computed("abs", (tokens[1],), offset))
    operand_name = "a field or a number"
    atom = pp.Forward().set_name(operand_name)
    negative = (pp.Suppress("-") + atom).set_parse_action(
        lambda s, offset, tokens: Computed("negative", (tokens[0],), offset)
    )
    plain_field = pp.And([field]).set_parse_action(_operand)
    braces = pp.Suppress("{") + computed + pp.Suppress("}")
    atom <<= (braces | number | negative | several | absolute | plain_field).set_name(operand_name)  # type: ignore[operator]
    product = (atom + pp.ZeroOrMore(pp.Regex(r"[*/%]") - atom)).set_parse_action(_folded)
    total = (product + pp.ZeroOrMore(pp.Regex(r"[+-]") - product)).set_parse_action(_folded)
    product.set_name(operand_name)
    total.set_name(operand_name)
    bits = (total + pp.ZeroOrMore(pp.Regex(r"&(?!&)") + total)).set_parse_action(_folded)
    computed <<= bits.set_name(operand_name)
    return computed


def _name(text: str, offset: int, tokens: pp.ParseResults) -> Word:
    if tokens[0] in _RESERVED:
        raise pp.ParseException(text, offset, "Expected a field")
    return Word(tokens[0], offset)


def _slices(text: str, offset: int, inside: str) -> tuple[tuple[int | None, int | None], ...]:
    """Convert Wireshark's slices `[i:length]`, `[i-j]`, `[i]`, `[:length]` and `[i:]` to begin and end."""
    out: list[tuple[int | None, int | None]] = []
    for part in inside.split(","):
        match = _SLICE.fullmatch(part.strip())
        if not match or part.strip() in ("", ":"):
            raise pp.ParseFatalException(
                text, offset, f"{part.strip()!r} is no slice: [start:length], [first-last] or [byte]"
            )
        begin = int(match["begin"] or 0)
        end: int | None
        if match["last"] is not None:
            end = int(match["last"]) + 1
        elif match["colon"] is None:
            end = begin + 1
        else:
            end = begin + int(match["length"]) if match["length"] else None
        out.append((begin, None if end == 0 and begin < 0 else end))
    return tuple(out)


def _item(text: str, offset: int, tokens: pp.ParseResults) -> Word | Text | Range:
    return Range(tokens[0], tokens[1], offset) if len(tokens) > 1 else tokens[0]


def _operand(text: str, offset: int, tokens: pp.ParseResults) -> Field:
    parts = list(tokens)
    every = {"all": True, "any": False}[parts.pop(0)] if isinstance(parts[0], str) else None
    called = parts[0] if isinstance(parts[0], _Called) else _Called(parts[0], ())
    word, _, inside = called.word.text.partition("[")
    slices = _slices(text, called.word.offset + len(word), inside[:-1]) if inside else ()
    mask = parts[1] if len(parts) > 1 else None
    return Field(word, called.word.offset, mask, every, slices, called.functions)


def _folded(text: str, offset: int, tokens: pp.ParseResults) -> Operand:
    """Combine operands with signs between them, from left to right."""
    left: Operand = tokens[0]
    for sign, right in zip(tokens[1::2], tokens[2::2], strict=True):
        left = Computed(sign, (left, right), offset)
    return left


def _relation(text: str, offset: int, tokens: pp.ParseResults) -> Relation:
    """Build a test with arithmetic. A field alone, or its bits compared with a number, is left to `_test`."""
    parts = list(tokens)
    every = {"all": True, "any": False}[parts.pop(0)] if isinstance(parts[0], str) else None
    left, operator, right = parts if len(parts) == 3 else (parts[0], None, None)
    is_masked = isinstance(left, Computed) and left.operator == "&" and [*map(type, left.parts)] == [Field, Word]
    if (is_masked or not isinstance(left, Computed)) and not isinstance(right, Computed):
        raise pp.ParseException(text, offset, "Expected a field")
    if operator in ("contains", "matches"):
        raise pp.ParseFatalException(text, offset, f"arithmetic has numbers, and {operator!r} is for text")
    return Relation(left, operator, right, every, offset)


def _test(text: str, offset: int, tokens: pp.ParseResults) -> Exists | Test | Among:
    if len(tokens) == 1:
        return Exists(tokens[0])
    field, operator, value = tokens
    if operator in ("in", "not in"):
        return Among(field, tuple(value), operator == "not in")
    return Test(field, operator, value, offset)
