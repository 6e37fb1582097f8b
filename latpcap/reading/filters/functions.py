"""Functions of the filter language, such as `len(http.host)`: wrap a field into a field of the function's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

from latpcap.lazy import pa
from latpcap.reading.filters.fields import Field
from latpcap.reading.filters.source import Column, Keyed, Source, keyed

_ALL = frozenset({
    "int", "signed", "bool", "duration", "ms", "instant", "seconds", "ipv4", "ipv6", "text", "bytes", "ether",
    "protocol", "label",
})  # fmt: skip
FUNCTIONS: dict[str, frozenset[str]] = {
    "lower": frozenset({"text"}),
    "upper": frozenset({"text"}),
    "len": frozenset({"text", "bytes", "protocol", "ether"}),
    "count": _ALL,
    "string": frozenset({"int", "signed", "bool", "ipv4", "ipv6", "ether"}),
    "max": frozenset({"int", "signed", "duration"}),
    "min": frozenset({"int", "signed", "duration"}),
    "abs": frozenset({"int", "signed", "duration"}),
}
"""Kinds of fields that each function accepts."""


def applied(function: str, field: Field, name: str) -> Field:
    """Return a field with the function's values; `name` is the field's name."""
    if function == "count":
        return Field("int", lambda source: [_per_frame(field, source, len)], "how many")
    if function in ("max", "min"):
        choose = {"max": max, "min": min}[function]
        return replace(field, get=lambda source: [_per_frame(field, source, choose)])
    value, kind = _VALUES[function]
    read = field.get
    if field.kind == "protocol":  # a function of a protocol takes its bytes
        read = lambda source: source.shown(name)  # noqa: E731
    get = lambda source: [_mapped(column, value) for column in read(source)]  # noqa: E731
    return replace(field, kind=kind or field.kind, get=get, bits=32)


def packed(field: Field) -> Field:
    """Return an address field as a field of the addresses' bytes, for slices and masks."""
    get = lambda source: [_mapped(column, lambda value: ip_address(value).packed) for column in field.get(source)]  # noqa: E731
    return replace(field, kind="bytes", get=get)


def _string(value: Any) -> str:
    return value.hex(":") if isinstance(value, bytes) else str(value)


_VALUES: dict[str, tuple[Callable[[Any], Any], str | None]] = {
    "lower": (str.lower, "text"),
    "upper": (str.upper, "text"),
    "len": (lambda value: len(value.encode() if isinstance(value, str) else value), "int"),
    "string": (_string, "text"),
    "abs": (abs, None),
}


def _mapped(column: Column | Keyed, function: Callable[[Any], Any]) -> Column | Keyed:
    values = [None if value is None else function(value) for value in column.values.to_pylist()]
    arrow_type = pa.int64() if all(value is None for value in values) else None  # nulls alone have no type
    mapped = pa.chunked_array([pa.array(values, arrow_type)])
    return Keyed(column.frames, mapped) if isinstance(column, Keyed) else Column(mapped)


def _per_frame(field: Field, source: Source, reduce: Callable[[list[Any]], Any]) -> Keyed:
    """Reduce the values of each frame that has the field to one value."""
    values_of = per_frame(field.get(source), source.events["frame"])
    return keyed(list(values_of), [reduce(values) for values in values_of.values()])


def per_frame(columns: list[Column | Keyed], events: pa.ChunkedArray) -> dict[int, list[Any]]:
    """Return the values of each frame that has the field."""
    values_of: dict[int, list[Any]] = {}
    for column in columns:
        frames = column.frames if isinstance(column, Keyed) else events
        for frame, value in zip(frames.to_pylist(), column.values.to_pylist(), strict=True):
            if value is not None:
                values_of.setdefault(frame, []).append(value)
    return values_of
