"""How is a sentence of the catalogue written out? Its id and named values in, words out; decides nothing.

A catalogue maps each id to a template. In a template `{name}` is a value. What it looks like depends on its name:

- `…_ms` is a time: "5,036 ms"; a pair is a range: "1,002-7,134 ms". `{name:s}` writes seconds from one second on.
- `{name:one|many}` picks a word by a count: "{n} {n:connection|connections}".
- integers get separators, text stands as it is.

The fix of a finding stands under its id and ".fix".
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from latpcap.format import ms
from latpcap.words import en

CATALOGUES: dict[str, Mapping[str, str]] = {"en": en.SENTENCES}
"""By language; each has the same ids."""


class _Writer(string.Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        value = kwargs[field_name]
        return (_Time(value) if field_name.endswith("_ms") else value), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if "|" in format_spec:
            one, many = format_spec.split("|")
            return one if value == 1 else many
        if isinstance(value, _Time):
            return value.text(seconds=format_spec == "s")
        return f"{value:,}" if isinstance(value, int) else str(value)


class _Time:
    """Milliseconds, or a range of them."""

    def __init__(self, value: float | tuple[float, float]):
        self.low, self.high = value if isinstance(value, tuple) else (value, value)

    def text(self, *, seconds: bool) -> str:
        """With its unit; in seconds only where all of it is long."""
        unit, by = ("s", 1000.0) if seconds and self.low >= 999.5 else ("ms", 1.0)
        low, high = (ms(value) if by == 1 else f"{value / by:,.2f}" for value in (self.low, self.high))
        return f"{low} {unit}" if low == high else f"{low}-{high} {unit}"


_WRITER = _Writer()


def say(sentence: str, values: Mapping[str, Any], lang: str = "en") -> str:
    """The sentence of this id with these values. KeyError where the catalogue or a value lacks it."""
    return _WRITER.vformat(CATALOGUES[lang][sentence], (), values)


def fix(sentence: str, values: Mapping[str, Any], lang: str = "en") -> str | None:
    """What mends it, from the same catalogue; None where nothing does."""
    key = f"{sentence}.fix"
    return say(key, values, lang) if key in CATALOGUES[lang] else None
