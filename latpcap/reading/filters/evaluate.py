"""Evaluates a display filter for all frames of a source at once, on Arrow columns; returns a mask.

Follows Wireshark 4.0: a test fails for a frame without the field. `!=` is true if all values of a field differ, every
other operator if one value passes, unless the quantifier `all` or `any` overrides it.
"""

from __future__ import annotations

import difflib
import functools
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latpcap.errors import FilterError
from latpcap.lazy import pa, pc
from latpcap.reading.filters import arithmetic, grammar
from latpcap.reading.filters.fields import FIELDS, Field
from latpcap.reading.filters.functions import FUNCTIONS, applied, packed, per_frame
from latpcap.reading.filters.source import Column, Datagrams, Frames, Keyed, Source, mapped, ports_of
from latpcap.reading.filters.values import KINDS as _KINDS
from latpcap.reading.filters.values import Meaning, address

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
_ARROW = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_WITHOUT_QUANTIFIER = {"any_eq": "eq", "all_eq": "eq", "any_ne": "ne", "all_ne": "ne"}
_TIMES = ("duration", "ms", "seconds", "instant")
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}

_Test = Callable[[Any], Any]
"""A test of a column's values; returns a mask."""


def mask(capture: Recorded, expression: str) -> pa.ChunkedArray:
    """Return a mask of the rows of `events` that pass, without nulls. Raises FilterError for a mistake."""
    return truths(Source(capture), expression)


def frames(capture: Recorded, expression: str) -> pa.Array:
    """Return the numbers of the frames that pass, of every protocol, in order."""
    return passing(Frames(capture), expression)


def datagrams(capture: Recorded, expression: str) -> pa.Array:
    """Return the numbers of the frames of `lookups` over UDP that pass."""
    return passing(Datagrams(capture), expression)


def passing(source: Source, expression: str) -> pa.Array:
    """Return the numbers of a source's frames that pass."""
    return source.events["frame"].filter(truths(source, expression)).combine_chunks()


def truths(source: Source, expression: str) -> pa.ChunkedArray:
    """Return a mask of the source's rows."""
    expression = grammar.expanded(expression)
    tree = grammar.parse(expression)
    return _Evaluation(source, expression, tree).truths(tree)


def fields_of(expression: str) -> set[str]:
    """Return the names in a filter that may be fields."""
    return _names(grammar.parse(grammar.expanded(expression)))


class _Evaluation:
    """The evaluation of one parsed filter. Its methods return masks with one row per row of the source's events."""

    def __init__(self, source: Source, expression: str, tree: Any):
        self.expression = expression
        source.wanted |= _names(tree)
        self.meaning = Meaning(expression)
        self.source = source

    def truths(self, node: Any) -> Any:
        if isinstance(node, grammar.Joined):
            return functools.reduce(pc.and_ if node.word == "and" else pc.or_, map(self.truths, node.parts))
        if isinstance(node, grammar.Not):
            return pc.invert(self.truths(node.inner))
        if isinstance(node, grammar.Relation):
            return self.relation(node)
        node = self.in_octets(node)
        field = self.field(node.field)
        of_bytes = FIELDS[node.field.name].kind == "protocol" and not node.field.functions
        if of_bytes and (node.field.slices or _searches(node)):
            field = replace(field, get=lambda source: source.shown(node.field.name))  # its bytes
        if isinstance(node, grammar.Exists):
            if node.field.mask is not None:
                bits = self.meaning.value(node.field.mask, field, node.field.name)
                if isinstance(bits, bytes):
                    return self.some(field, self.octets(node.field, lambda octets: any(_masked(octets, bits))))
                return self.some(field, lambda column: pc.not_equal(pc.bit_wise_and(column.cast("int64"), bits), 0))
            if node.field.name == "frame" and not node.field.slices:  # every frame has this field
                return pc.is_valid(self.source.events["frame"])
            return self.some(field, self.octets(node.field, lambda _: True) if node.field.slices else pc.is_valid)
        if field.kind == "protocol" and not node.field.slices and not _searches(node):
            reason = f"{node.field.name} is there or not: write it alone, or search it with 'contains' or 'matches'"
            raise FilterError(self.expression, node.field.at, reason, length=len(node.field.name))
        if field.kind == "label":
            reason = f"{node.field.name} is there or not and has no value: write it alone"
            raise FilterError(self.expression, node.field.at, reason, length=len(node.field.name))
        if isinstance(node, grammar.Among):
            tests = [self.item(item, field, node.field) for item in node.items]
            passes = self.some(field, lambda column: functools.reduce(pc.or_, (test(column) for test in tests)))
            if node.field.every:
                passes = self.every(field, lambda column: functools.reduce(pc.or_, (test(column) for test in tests)))
            return pc.invert(passes) if node.without else passes
        return self.test(node, field)

    def in_octets(self, node: Any) -> Any:
        """Convert the literals of a test with a masked address to bytes: `ip.src & 255.0.0.0 == 10.0.0.0`.

        Other tests are returned unchanged.
        """
        masked_field = node.field
        field = FIELDS.get(masked_field.name)
        if masked_field.mask is None or masked_field.functions or field is None or field.kind not in ("ipv4", "ipv6"):
            return node

        def octets(word: Any) -> Any:
            packed_address = self.meaning.value(word, field, masked_field.name).network_address.packed
            return grammar.Word(packed_address.hex(":"), word.at)

        node = replace(node, field=replace(masked_field, mask=octets(masked_field.mask)))
        return replace(node, value=octets(node.value)) if isinstance(node, grammar.Test) else node

    def field(self, node: grammar.Field) -> Field:
        """Look up a field and apply its slices and functions. Raises FilterError where they do not fit its kind."""
        field = FIELDS.get(node.name)
        if field is None:
            near = difflib.get_close_matches(node.name.lower(), FIELDS, 3, 0.6)
            near += [name for name in FIELDS if name.startswith(node.name + ".")][: 3 - len(near)]
            reason = f"{node.name!r} is no field that latpcap filters by"
            first = node.name.partition(".")[0]
            if first not in {name.partition(".")[0] for name in FIELDS}:
                ports = [f"{way}.port == {port}" for way, port in ports_of(first)]
                read = f"; by its port: {' or '.join(ports)}" if ports else ""
                reason += f": latpcap has no dissector of {first}, tshark -Y may{read}"
            elif node.name.partition("-")[0] in FIELDS:
                left, _, right = node.name.partition("-")
                reason += f"; a difference has spaces around its sign: {left} - {right}"
            raise FilterError(self.expression, node.at, reason, length=len(node.name), near=near)
        if field.kind in ("ipv4", "ipv6") and (node.slices or node.mask is not None):
            field = packed(field)
        if node.slices and field.kind not in ("bytes", "protocol", "ether", "text"):
            reason = f"{node.name} is {_KINDS.get(field.kind, 'no row of bytes')} and cannot be sliced"
            if field.kind == "int":
                reason += f": take its bits, as in {node.name} & 0xff"
            raise FilterError(self.expression, node.at, reason, length=len(node.name))
        if node.slices:
            field = replace(field, kind="text" if field.kind == "text" else "bytes")
        for name in node.functions:
            if node.slices or field.kind not in FUNCTIONS[name]:
                reason = f"{name} is not for {node.name}, which is {_KINDS.get(field.kind, 'there or not')}"
                raise FilterError(self.expression, node.at, reason, length=len(node.name))
            field = applied(name, field, node.name)
        if node.mask is not None and field.kind not in ("int", "bytes"):
            reason = f"'&' is for numbers, and {node.name} is none"
            raise FilterError(self.expression, node.at, reason, length=len(node.name))
        return field

    def relation(self, node: grammar.Relation) -> Any:
        """Evaluate a test with arithmetic, frame by frame."""
        named = [*arithmetic.fields(node.left), *arithmetic.fields(node.right)]
        signs = {*arithmetic.operators(node.left), *arithmetic.operators(node.right)}
        if next(arithmetic.fields(node.left), None) is None:
            reason = "a constant stands on the right, and the field on the left"
            raise FilterError(self.expression, node.at, reason)
        kinds = {field.name: self.field(field) for field in named}
        first = kinds[named[0].name]
        numbers = ("int", "signed")
        for field in named:
            kind = kinds[field.name].kind
            fits = kind in numbers or (kind in _TIMES and signs <= arithmetic.TIMES)
            if not fits or (kind != first.kind and not {kind, first.kind} <= {*numbers}):
                what = _KINDS.get(kind, "there or not")
                reason = f"{field.name} is {what}: no arithmetic with {', '.join(sorted(signs))} here; "
                reason += (
                    f"times are added and subtracted: {field.name} - 0.01 > 0.04"
                    if kind in _TIMES
                    else f"compare it alone: {field.name}"
                )
                raise FilterError(self.expression, field.at, reason, length=len(field.name))
        events = self.source.events["frame"]
        literal = replace(first, bits=64)

        def number(word: grammar.Word) -> Any:
            sign = -1 if word.text.startswith("-") else 1
            return sign * self.meaning.value(replace(word, text=word.text.removeprefix("-")), literal, named[0].name)

        def values_of(side: Any) -> Any:
            return arithmetic.values(side, lambda field: per_frame(self.field(field).get(self.source), events), number)

        left = values_of(node.left)
        if node.operator is None:
            fits_by = {frame: any(values) for frame, values in left.items()}
        else:
            right = values_of(node.right)
            compare = _COMPARE[_WITHOUT_QUANTIFIER.get(node.operator, node.operator)]
            every = node.operator in ("all_eq", "all_ne") if node.every is None else node.every
            fits_by = {}
            for frame, values in left.items():
                others = right.get(frame, []) if isinstance(right, dict) else right
                pairs = [compare(value, other) for value in values for other in others]
                fits_by[frame] = bool(pairs) and (all if every else any)(pairs)
        return pa.chunked_array([[fits_by.get(frame, False) for frame in events.to_pylist()]], "bool")

    def some(self, field: Field, truths: _Test) -> Any:
        """Return a mask of the rows that have a value that passes."""
        events = self.source.events
        masks = []
        for column in field.get(self.source):
            passed = truths(column.values).fill_null(False)
            if isinstance(column, Keyed):
                frames = column.frames.filter(passed)
                passed = pc.is_in(events["frame"], value_set=pa.array(frames.to_pylist(), events["frame"].type))
            masks.append(passed)
        return functools.reduce(pc.or_, masks)

    def every(self, field: Field, truths: _Test) -> Any:
        """Return a mask of the rows that have the field and whose values all pass."""
        return pc.and_not(self.some(field, pc.is_valid), self.some(field, lambda column: pc.invert(truths(column))))

    def test(self, node: grammar.Test, field: Field) -> Any:
        """Evaluate a comparison with a literal or with another field."""
        name = node.field.name
        if node.operator in ("contains", "matches"):
            of_ether = field.kind == "ether" and node.operator == "contains"
            if field.kind not in ("text", "bytes", "protocol") and not of_ether:
                reason = f"{name} is no text, and {node.operator!r} is for text"
                raise FilterError(self.expression, node.field.at, reason, length=len(name))
            truths = self.searching(node) if field.kind != "text" else self.containing(node)
            return self.every(field, truths) if node.field.every else self.some(field, truths)
        word = _WITHOUT_QUANTIFIER.get(node.operator, node.operator)
        every = node.operator in ("all_eq", "all_ne") if node.field.every is None else node.field.every
        if isinstance(node.value, grammar.Word) and node.value.text in FIELDS:
            return self.two_fields(node, field, word, every)
        truths = self.compared(node.value, field, node.field, word)
        return self.every(field, truths) if every else self.some(field, truths)

    def columns(self, field: Field) -> list[Column | Keyed]:
        """Return a field's values, as `Column` wherever each frame has at most one."""
        out: list[Column | Keyed] = []
        for column in field.get(self.source):
            if isinstance(column, Keyed) and len(pc.unique(column.frames)) == len(column.frames):
                rows = pc.index_in(self.source.events["frame"], value_set=column.frames.combine_chunks())
                column = Column(pc.take(column.values, rows))
            out.append(column)
        return out

    def compared(self, value: Any, field: Field, named: grammar.Field, word: str) -> _Test:
        """Return a test that compares a column with one literal."""
        is_word = isinstance(value, grammar.Word)
        if is_word and field.kind == "text" and re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", value.text):
            reason = f"{value.text!r} is no field that latpcap filters by; a string stands in quotes"
            raise self.meaning.error(value, reason)
        literal = self.meaning.value(value, field, named.name)
        compare = _COMPARE[word]
        if field.kind in ("ipv4", "ipv6"):
            if word in ("eq", "ne"):
                return lambda c: mapped(c, lambda w: w and compare(address(w) in literal, True), "bool")
            bound = literal.network_address
            if literal.prefixlen < literal.max_prefixlen:
                raise self.meaning.error(value, "a prefix has no order: compare it with '==' or '!='")
            return lambda c: mapped(c, lambda w: w and compare(address(w), bound), "bool")
        if field.kind == "text":
            return lambda c: mapped(c, _test_of_slices(named, lambda w: compare(w.encode(), literal.encode())), "bool")
        if isinstance(literal, bytes):
            octets = None if named.mask is None else self.meaning.value(named.mask, field, named.name)
            return self.octets(named, lambda row: compare(row if octets is None else _masked(row, octets), literal))
        arrow = getattr(pc, _ARROW[word])
        bits = None if named.mask is None else self.meaning.value(named.mask, field, named.name)

        def truths(column: Any) -> Any:
            if bits is not None:
                column = pc.bit_wise_and(column.cast("int64"), bits)
            return arrow(column, pa.scalar(literal, pa.int64()))

        return truths

    def containing(self, node: grammar.Test) -> _Test:
        """Return a search in texts."""
        if node.operator == "contains":
            part = node.value.text
            return lambda c: mapped(c, _test_of_slices(node.field, lambda w: part in w), "bool")
        pattern = self.meaning.pattern(node.value)
        return lambda c: mapped(c, _test_of_slices(node.field, lambda w: bool(pattern.search(w.encode()))), "bool")

    def searching(self, node: grammar.Test) -> _Test:
        """Return a search in bytes, for a string or for bytes written as `47:45:54`."""
        if node.operator == "contains":
            part = self.meaning.octets(node.value)
            is_match: Callable[[bytes], bool] = lambda octets: part in octets  # noqa: E731
        else:
            is_match = self.meaning.pattern(node.value).search
        return self.octets(node.field, is_match)

    def octets(self, named: grammar.Field, is_match: Callable[[bytes], bool]) -> _Test:
        """Return a test of the bytes that the field's slices select."""
        test = _test_of_slices(named, is_match)
        return lambda c: pa.chunked_array([[row is not None and test(row) for row in c.to_pylist()]], "bool")

    def item(self, item: Any, field: Field, named: grammar.Field) -> _Test:
        """Return a test for one member of a set: a value, or a range that includes both ends."""
        if not isinstance(item, grammar.Range):
            return self.compared(item, field, named, "eq")
        low = self.compared(item.low, field, named, "ge")
        high = self.compared(item.high, field, named, "le")
        return lambda column: pc.and_(low(column), high(column))

    def two_fields(self, node: grammar.Test, field: Field, word: str, every: bool) -> Any:
        """Compare two fields of each frame."""
        other = FIELDS[node.value.text]
        if other.kind != field.kind or field.kind == "label":
            raise self.meaning.error(node.value, f"{node.field.name} and {node.value.text} are not of one kind")
        left, right = self.columns(field), self.columns(other)
        if not all(any(column.values.null_count < len(column.values) for column in side) for side in (left, right)):
            return pa.chunked_array(
                [pa.repeat(False, self.source.events.num_rows)]
            )  # a column of nulls has no Arrow type to compare
        if field.kind in ("ipv4", "ipv6") and word not in ("eq", "ne"):
            raise self.meaning.error(node.value, "two addresses are compared with '==' or '!='")
        if not all(isinstance(column, Column) for column in (*left, *right)):
            return self.two_lists(left, right, word, every)
        arrow = getattr(pc, _ARROW[_NEGATED[word] if every else word])
        pairs = [arrow(a.values, b.values).fill_null(False) for a in left for b in right]
        passes = functools.reduce(pc.or_, pairs)
        if every:
            has_both = pc.and_(self.some(field, pc.is_valid), self.some(other, pc.is_valid))
            return pc.and_not(has_both, passes)  # `passes` has the negated comparison
        return passes

    def two_lists(self, left: list[Column | Keyed], right: list[Column | Keyed], word: str, every: bool) -> Any:
        """Compare two fields that a frame may have several times; some pair of values or (`every`) all pairs pass."""
        events = self.source.events["frame"]
        a, b = (per_frame(columns, events) for columns in (left, right))
        fits = {
            frame: (all if every else any)(_COMPARE[word](one, two) for one in a[frame] for two in b[frame])
            for frame in a.keys() & b.keys()
        }
        return pa.chunked_array([[fits.get(frame, False) for frame in events.to_pylist()]], "bool")


def _names(node: Any) -> set[str]:
    """Return every name in a tree that may be a field."""
    if isinstance(node, grammar.Joined):
        return set().union(*map(_names, node.parts))
    if isinstance(node, grammar.Not):
        return _names(node.inner)
    if isinstance(node, grammar.Relation):
        return {field.name for side in (node.left, node.right) for field in arithmetic.fields(side)}
    value = getattr(node, "value", None)
    return {node.field.name} | ({value.text} if isinstance(value, grammar.Word) else set())


def _searches(node: Any) -> bool:
    return isinstance(node, grammar.Test) and node.operator in ("contains", "matches")


_HEADERS: dict[str, Callable[[bytes], int]] = {
    "eth": lambda _: 14,
    "vlan": lambda _: 4,
    "ip": lambda content: (content[0] & 15) * 4,
    "ipv6": lambda _: 40,
    "udp": lambda _: 8,
}
"""Length of a protocol's header, by its bytes. A slice of these protocols is taken from the header alone."""


def _test_of_slices(named: grammar.Field, test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Apply a test to the part of a value that the field's slices select. A slice beyond the value's end fails."""
    if not named.slices:
        return test
    header = _HEADERS.get(named.name)

    def cut(content: Any) -> bool:
        content = content if header is None else content[: header(content)]
        bounds = [(low or 0, high) for low, high in named.slices]
        if any(low >= len(content) or -low > len(content) or (high or 0) > len(content) for low, high in bounds):
            return False
        return test(functools.reduce(operator.add, (content[low:high] for low, high in bounds)))

    return cut


def _masked(octets: bytes, bits: bytes) -> bytes:
    return bytes(octet & bit for octet, bit in zip(octets, bits, strict=False))
