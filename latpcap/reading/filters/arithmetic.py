"""Arithmetic of the filter language: evaluates an expression for each frame.

As in Wireshark, every combination of the operands' values counts: `tcp.port + 1` has two values. Integers do not
overflow, division truncates towards zero, and a division by zero has no value.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from latpcap.reading.filters.grammar import Computed, Field, Operand, Word

Values = dict[int, list[Any]]
TIMES = {"+", "-", "negative", "max", "min", "abs"}
"""Operators that are defined for times, too."""


def _divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b),
    "&": operator.and_,
}
_CHOICES: dict[str, Callable[[list[Any]], Any]] = {"max": max, "min": min}


def fields(node: Operand | None) -> Iterator[Field]:
    """Yield the fields of an expression, from left to right."""
    if isinstance(node, Field):
        yield node
    elif isinstance(node, Computed):
        for part in node.parts:
            yield from fields(part)


def operators(node: Operand | None) -> Iterator[str]:
    """Yield the operators of an expression."""
    if isinstance(node, Computed):
        yield node.operator
        for part in node.parts:
            yield from operators(part)


def values(node: Operand, read: Callable[[Field], Values], literal: Callable[[Word], int]) -> Values | list[Any]:
    """Return the values by frame of an expression with fields, or the list of values of a constant expression."""
    if isinstance(node, Field):
        return read(node)
    if not isinstance(node, Computed):
        return [literal(node)]
    parts = [values(part, read, literal) for part in node.parts]
    by_frame = [part for part in parts if isinstance(part, dict)]
    if not by_frame:
        return _combined(node.operator, [part for part in parts if isinstance(part, list)])
    frames = functools.reduce(operator.and_, (part.keys() for part in by_frame))
    return {
        frame: _combined(node.operator, [part[frame] if isinstance(part, dict) else part for part in parts])
        for frame in frames
    }


def _combined(sign: str, parts: list[list[Any]]) -> list[Any]:
    if sign in _CHOICES:
        return [_CHOICES[sign]([value for part in parts for value in part])]
    if sign == "negative":
        return [-value for value in parts[0]]
    if sign == "abs":
        return [abs(value) for value in parts[0]]
    undefined = sign in "/%"
    return [_BINARY[sign](a, b) for a, b in itertools.product(*parts) if b or not undefined]
