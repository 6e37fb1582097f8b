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
from typing import TYPE_CHECKING, Any, TypeAlias, cast

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

Mask: TypeAlias = "pa.ChunkedArray"
"""A column of booleans."""
_Test: TypeAlias = "Callable[[pa.ChunkedArray], Mask]"
"""A test of a column's values."""


def mask(capture: Recorded, expression: str) -> Mask:
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


def truths(source: Source, expression: str) -> Mask:
    """Return a mask of the source's rows."""
    expression = grammar.expanded(expression)
    tree = grammar.parse(expression)
    return _Evaluation(source, expression, tree).truths(tree)


def fields_of(expression: str) -> set[str]:
    """Return the names in a filter that may be fields."""
    return _names(grammar.parse(grammar.expanded(expression)))


class _Evaluation:
    """The evaluation of one parsed filter. Its methods return masks with one row per row of the source's events."""

    def __init__(self, source: Source, expression: str, tree: grammar.Node):
        self.expression = expression
        source.wanted |= _names(tree)
        self.meaning = Meaning(expression)
        self.source = source

    def truths(self, node: grammar.Node) -> Mask:
        """Return the mask of the frames for which a filter, or a part of it, is true."""
        match node:
            case grammar.Joined():
                return functools.reduce(pc.and_ if node.word == "and" else pc.or_, map(self.truths, node.parts))
            case grammar.Not():
                return pc.invert(self.truths(node.inner))
            case grammar.Relation():
                return self.relation(node)
            case grammar.Exists():
                return self.exists(replace(node, field=self.in_octets(node.field)))
            case grammar.Among():
                return self.among(replace(node, field=self.in_octets(node.field)))
            case grammar.Test():
                named = self.in_octets(node.field)
                value = node.value if named is node.field else self.octets_of(node.value, named)
                return self.test(replace(node, field=named, value=value))

    def exists(self, node: grammar.Exists) -> Mask:
        """Test whether the frames have a field, or any of the bits in its mask."""
        named = node.field
        field = self.field_or_bytes(named, of_bytes=bool(named.slices))
        if named.mask is not None:
            bits = self.meaning.value(named.mask, field, named.name)
            if isinstance(bits, bytes):
                return self.some(field, self.octets(named, lambda octets: any(_masked(octets, bits))))
            return self.some(field, lambda column: pc.not_equal(pc.bit_wise_and(column.cast("int64"), bits), 0))
        if named.name == "frame" and not named.slices:  # every frame has this field
            return pc.is_valid(self.source.events["frame"])
        return self.some(field, self.octets(named, lambda _: True) if named.slices else pc.is_valid)

    def among(self, node: grammar.Among) -> Mask:
        """Test whether a field's value is in a set."""
        field = self.field_or_bytes(node.field, of_bytes=bool(node.field.slices))
        self.require_value(node.field, field, searched=False)
        tests = [self.item(item, field, node.field) for item in node.items]
        is_member: _Test = lambda column: functools.reduce(pc.or_, (test(column) for test in tests))  # noqa: E731
        passes = self.every(field, is_member) if node.field.every else self.some(field, is_member)
        return pc.invert(passes) if node.without else passes

    def test(self, node: grammar.Test) -> Mask:
        """Test a comparison with a literal or with another field, or a search."""
        named, searched = node.field, node.operator in ("contains", "matches")
        field = self.field_or_bytes(named, of_bytes=bool(named.slices) or searched)
        self.require_value(named, field, searched=searched)
        if searched:
            return self.search(node, field)
        word = _WITHOUT_QUANTIFIER.get(node.operator, node.operator)
        every = node.operator in ("all_eq", "all_ne") if named.every is None else named.every
        if isinstance(node.value, grammar.Word) and node.value.text in FIELDS:
            return self.two_fields(node, field, word, every)
        truths = self.compared(node.value, field, named, word)
        return self.every(field, truths) if every else self.some(field, truths)

    def search(self, node: grammar.Test, field: Field) -> Mask:
        """Test whether texts or bytes contain a part, or match a pattern."""
        name = node.field.name
        of_ether = field.kind == "ether" and node.operator == "contains"
        if field.kind not in ("text", "bytes", "protocol") and not of_ether:
            reason = f"{name} is no text, and {node.operator!r} is for text"
            raise FilterError(self.expression, node.field.offset, reason, length=len(name))
        truths = self.byte_search(node) if field.kind != "text" else self.text_search(node)
        return self.every(field, truths) if node.field.every else self.some(field, truths)

    def field_or_bytes(self, named: grammar.Field, *, of_bytes: bool) -> Field:
        """Look up a field as `field` does; with `of_bytes` a protocol is read as its bytes."""
        field = self.field(named)
        if of_bytes and FIELDS[named.name].kind == "protocol" and not named.functions:
            return replace(field, get=lambda source: source.shown(named.name))
        return field

    def require_value(self, named: grammar.Field, field: Field, *, searched: bool) -> None:
        """Raise FilterError for a field that is there or not, and has no value to compare."""
        reason = None
        if field.kind == "protocol" and not named.slices and not searched:
            reason = f"{named.name} is there or not: write it alone, or search it with 'contains' or 'matches'"
        elif field.kind == "label":
            reason = f"{named.name} is there or not and has no value: write it alone"
        if reason is not None:
            raise FilterError(self.expression, named.offset, reason, length=len(named.name))

    def in_octets(self, named: grammar.Field) -> grammar.Field:
        """Return a field with its mask as bytes if it is a masked address: `ip.src & 255.0.0.0`."""
        field = FIELDS.get(named.name)
        if named.mask is None or named.functions or field is None or field.kind not in ("ipv4", "ipv6"):
            return named
        return replace(named, mask=self.octets_of(named.mask, named))

    def octets_of(self, literal: grammar.Word | grammar.Text, named: grammar.Field) -> grammar.Word:
        """Return the address that is compared with a masked address, as bytes."""
        packed_address = self.meaning.value(literal, FIELDS[named.name], named.name).network_address.packed
        return grammar.Word(packed_address.hex(":"), literal.offset)

    def field(self, node: grammar.Field) -> Field:
        """Look up a field and apply its slices and functions. Raises FilterError where they do not fit its kind."""
        field = FIELDS.get(node.name)
        if field is None:
            near = difflib.get_close_matches(node.name.lower(), FIELDS, 3, 0.6)
            near += [name for name in FIELDS if name.startswith(node.name + ".")][: 3 - len(near)]
            reason = f"{node.name!r} is no field that latpcap filters by"
            first = node.name.partition(".")[0]
            if first not in {name.partition(".")[0] for name in FIELDS}:
                ports = [f"{protocol}.port == {port}" for protocol, port in ports_of(first)]
                read = f"; by its port: {' or '.join(ports)}" if ports else ""
                reason += f": latpcap has no dissector of {first}, tshark -Y may{read}"
            elif node.name.partition("-")[0] in FIELDS:
                left, _, right = node.name.partition("-")
                reason += f"; a difference has spaces around its sign: {left} - {right}"
            raise FilterError(self.expression, node.offset, reason, length=len(node.name), near=near)
        if field.kind in ("ipv4", "ipv6") and (node.slices or node.mask is not None):
            field = packed(field)
        if node.slices and field.kind not in ("bytes", "protocol", "ether", "text"):
            reason = f"{node.name} is {_KINDS.get(field.kind, 'no row of bytes')} and cannot be sliced"
            if field.kind == "int":
                reason += f": take its bits, as in {node.name} & 0xff"
            raise FilterError(self.expression, node.offset, reason, length=len(node.name))
        if node.slices:
            field = replace(field, kind="text" if field.kind == "text" else "bytes")
        for name in node.functions:
            if node.slices or field.kind not in FUNCTIONS[name]:
                reason = f"{name} is not for {node.name}, which is {_KINDS.get(field.kind, 'there or not')}"
                raise FilterError(self.expression, node.offset, reason, length=len(node.name))
            field = applied(name, field, node.name)
        if node.mask is not None and field.kind not in ("int", "bytes"):
            reason = f"'&' is for numbers, and {node.name} is none"
            raise FilterError(self.expression, node.offset, reason, length=len(node.name))
        return field

    def relation(self, node: grammar.Relation) -> Mask:
        """Test a comparison with arithmetic, frame by frame."""
        literal_field, name = self.fields_of_one_kind(node)

        def number(word: grammar.Word) -> int:
            sign = -1 if word.text.startswith("-") else 1
            positive = replace(word, text=word.text.removeprefix("-"))
            return sign * int(self.meaning.value(positive, literal_field, name))

        def values_of(side: grammar.Operand) -> arithmetic.Values | list[Any]:
            events = self.source.events["frame"]
            return arithmetic.values(side, lambda field: per_frame(self.field(field).get(self.source), events), number)

        left = cast(arithmetic.Values, values_of(node.left))  # it has a field
        if node.operator is None or node.right is None:
            return self.mask_of({frame: any(values) for frame, values in left.items()})
        right = values_of(node.right)
        compare = _COMPARE[_WITHOUT_QUANTIFIER.get(node.operator, node.operator)]
        every = node.operator in ("all_eq", "all_ne") if node.every is None else node.every
        passes = {}
        for frame, values in left.items():
            others = right.get(frame, []) if isinstance(right, dict) else right
            pairs = [compare(value, other) for value in values for other in others]
            passes[frame] = bool(pairs) and (all if every else any)(pairs)
        return self.mask_of(passes)

    def fields_of_one_kind(self, node: grammar.Relation) -> tuple[Field, str]:
        """Return the field, with its name, whose kind the numbers of a relation have.

        Raises FilterError unless all its fields are numbers, or times that are added and subtracted.
        """
        named = [*arithmetic.fields(node.left), *arithmetic.fields(node.right)]
        signs = {*arithmetic.operators(node.left), *arithmetic.operators(node.right)}
        if next(arithmetic.fields(node.left), None) is None:
            reason = "a constant stands on the right, and the field on the left"
            raise FilterError(self.expression, node.offset, reason)
        kinds = {field.name: self.field(field) for field in named}
        first = kinds[named[0].name]
        numbers = {"int", "signed"}
        for field in named:
            kind = kinds[field.name].kind
            has_arithmetic = kind in numbers or (kind in _TIMES and signs <= arithmetic.TIMES)
            if has_arithmetic and (kind == first.kind or {kind, first.kind} <= numbers):
                continue
            meaning = _KINDS.get(kind, "there or not")
            reason = f"{field.name} is {meaning}: no arithmetic with {', '.join(sorted(signs))} here; "
            reason += (
                f"times are added and subtracted: {field.name} - 0.01 > 0.04"
                if kind in _TIMES
                else f"compare it alone: {field.name}"
            )
            raise FilterError(self.expression, field.offset, reason, length=len(field.name))
        return replace(first, bits=64), named[0].name

    def mask_of(self, passes: dict[int, bool]) -> Mask:
        """Return the mask of the frames that pass; a frame that is not in `passes` fails."""
        return pa.chunked_array(
            [[passes.get(frame, False) for frame in self.source.events["frame"].to_pylist()]], "bool"
        )

    def some(self, field: Field, truths: _Test) -> Mask:
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

    def every(self, field: Field, truths: _Test) -> Mask:
        """Return a mask of the rows that have the field and whose values all pass."""
        return pc.and_not(self.some(field, pc.is_valid), self.some(field, lambda column: pc.invert(truths(column))))

    def columns(self, field: Field) -> list[Column | Keyed]:
        """Return a field's values, as `Column` wherever each frame has at most one."""
        columns: list[Column | Keyed] = []
        for column in field.get(self.source):
            if isinstance(column, Keyed) and len(pc.unique(column.frames)) == len(column.frames):
                rows = pc.index_in(self.source.events["frame"], value_set=column.frames.combine_chunks())
                column = Column(pc.take(column.values, rows))
            columns.append(column)
        return columns

    def compared(self, value: grammar.Word | grammar.Text, field: Field, named: grammar.Field, word: str) -> _Test:
        """Return a test that compares a column with one literal."""
        is_word = isinstance(value, grammar.Word)
        if is_word and field.kind == "text" and re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", value.text):
            reason = f"{value.text!r} is no field that latpcap filters by; a string stands in quotes"
            raise self.meaning.error(value, reason)
        literal = self.meaning.value(value, field, named.name)
        compare = _COMPARE[word]
        if field.kind in ("ipv4", "ipv6"):
            if word in ("eq", "ne"):
                return _of_values(lambda text: text and compare(address(text) in literal, True))
            bound = literal.network_address
            if literal.prefixlen < literal.max_prefixlen:
                raise self.meaning.error(value, "a prefix has no order: compare it with '==' or '!='")
            return _of_values(lambda text: text and compare(address(text), bound))
        if field.kind == "text":
            return _of_values(_test_of_slices(named, lambda text: compare(text.encode(), literal.encode())))
        if isinstance(literal, bytes):
            octets = None if named.mask is None else self.meaning.value(named.mask, field, named.name)
            return self.octets(named, lambda row: compare(row if octets is None else _masked(row, octets), literal))
        arrow = getattr(pc, _ARROW[word])
        bits = None if named.mask is None else self.meaning.value(named.mask, field, named.name)

        def truths(column: pa.ChunkedArray) -> Mask:
            if bits is not None:
                column = pc.bit_wise_and(column.cast("int64"), bits)
            return arrow(column, pa.scalar(literal, pa.int64()))

        return truths

    def text_search(self, node: grammar.Test) -> _Test:
        """Return a search in texts."""
        if node.operator == "contains":
            wanted = node.value.text
            return _of_values(_test_of_slices(node.field, lambda text: wanted in text))
        pattern = self.meaning.pattern(node.value)
        return _of_values(_test_of_slices(node.field, lambda text: bool(pattern.search(text.encode()))))

    def byte_search(self, node: grammar.Test) -> _Test:
        """Return a search in bytes, for a string or for bytes written as `47:45:54`."""
        if node.operator == "contains":
            wanted = self.meaning.octets(node.value)
            is_match: Callable[[bytes], bool] = lambda octets: wanted in octets  # noqa: E731
        else:
            is_match = self.meaning.pattern(node.value).search
        return self.octets(node.field, is_match)

    def octets(self, named: grammar.Field, is_match: Callable[[bytes], bool]) -> _Test:
        """Return a test of the bytes that the field's slices select."""
        test = _test_of_slices(named, is_match)
        return lambda column: pa.chunked_array([[row is not None and test(row) for row in column.to_pylist()]], "bool")

    def item(self, item: grammar.Word | grammar.Text | grammar.Range, field: Field, named: grammar.Field) -> _Test:
        """Return a test for one member of a set: a value, or a range that includes both ends."""
        if not isinstance(item, grammar.Range):
            return self.compared(item, field, named, "eq")
        low = self.compared(item.low, field, named, "ge")
        high = self.compared(item.high, field, named, "le")
        return lambda column: pc.and_(low(column), high(column))

    def two_fields(self, node: grammar.Test, field: Field, word: str, every: bool) -> Mask:
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

    def two_lists(self, left: list[Column | Keyed], right: list[Column | Keyed], word: str, every: bool) -> Mask:
        """Compare two fields that a frame may have several times; some pair of values or (`every`) all pairs pass."""
        events = self.source.events["frame"]
        a, b = (per_frame(columns, events) for columns in (left, right))
        compare, quantified = _COMPARE[word], all if every else any
        return self.mask_of(
            {
                frame: quantified(
                    compare(left_value, right_value) for left_value in a[frame] for right_value in b[frame]
                )
                for frame in a.keys() & b.keys()
            }
        )


def _of_values(test: Callable[[str], Any]) -> _Test:
    """Return a test of columns that tests each value."""
    return lambda column: mapped(column, test, "bool")


def _names(node: grammar.Node) -> set[str]:
    """Return every name in a tree that may be a field."""
    match node:
        case grammar.Joined():
            return set().union(*map(_names, node.parts))
        case grammar.Not():
            return _names(node.inner)
        case grammar.Relation():
            return {field.name for side in (node.left, node.right) for field in arithmetic.fields(side)}
        case grammar.Test(field, _, grammar.Word(text)):
            return {field.name, text}
        case _:
            return {node.field.name}


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
