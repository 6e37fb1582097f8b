"""Write the sentences of answers: an id and named values in, text in the current language out.

A catalogue (`en.py`, `zh.py`) maps each id to a template. In a template `{name}` is a value, formatted by its name:

- `…_ms` is a time: "5,036 ms"; a pair is a range: "1,002-7,134 ms". `{name:s}` writes seconds from one second on,
  `{name:n}` the number alone. `…_us` is a time in microseconds, `…_share` a share of 1: "96 %".
- `{name:one|many}` picks a word by a count: "{n} {n:connection|connections}".
- `client` and `server` as values of `owner`, `sender`, `receiver`, `holder` or `side` are translated.
- integers get thousands separators, text is unchanged; other formats are Python's.

The id of a finding's fix is the finding's id and ".fix". A search for an id finds where it is used, but for the ids
that end in a word of a table: those of a cause (`cause_`, `meaning_`, `fix_of_`, `cost_`, `profile_`), a rival or its
ground (`rival_`, `because_`, `ruled_out_`), a grade (`sure_`), a column of a page (`column_`) and an owner (`side_`).
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from latpcap import vocabulary
from latpcap.format import ms, percent, us
from latpcap.words import en, zh


def _core_sentences() -> dict[str, str]:
    """Return the core's texts about causes, rivals and grounds as templates."""
    causes = vocabulary.CAUSES.values()
    sentences = {f"fix_of_{cause.name}": cause.fix for cause in causes if cause.fix is not None}
    sentences |= {f"meaning_{name}": meaning for name, meaning in vocabulary.RIVALS.items()}
    sentences |= {f"because_{name}": meaning for name, meaning in vocabulary.BECAUSES.items()}
    return {name: text.replace("{", "{{").replace("}", "}}") for name, text in sentences.items()}


CATALOGUES: dict[str, Mapping[str, str]] = {"en": {**en.SENTENCES, **_core_sentences()}, "zh": zh.SENTENCES}
"""The catalogues by language; all have equal ids."""
_LANGUAGE: ContextVar[str] = ContextVar("language", default="en")
TINY = 0.0005
"""Smallest share that is written as a number."""
SIDES = ("owner", "sender", "receiver", "holder", "side")
"""Names of values that are a side of a connection or another owner."""


class _Writer(string.Formatter):
    def __init__(self, sentences: Mapping[str, str]):
        self.sentences = sentences

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        value = kwargs[field_name]
        if field_name == "share" or field_name.endswith(("_ms", "_us", "_share")):
            return _Quantity(field_name.rpartition("_")[2], value), field_name
        return (self.sentences.get(f"side_{value}", value) if field_name in SIDES else value), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if "|" in format_spec:
            one, many = format_spec.split("|")
            return one if value == 1 else many
        if isinstance(value, _Quantity):
            if value.unit == "share" and 0 < value.low < TINY:
                return self.sentences["share_tiny"]
            return value.text(format_spec)
        return f"{value:,}" if isinstance(value, int) and not format_spec else format(value, format_spec)


class _Quantity:
    """A value with a unit: milliseconds, a range of them, microseconds, or a share."""

    def __init__(self, unit: str, value: float | tuple[float, float]):
        self.unit = unit
        self.low, self.high = value if isinstance(value, tuple) else (value, value)

    def text(self, form: str) -> str:
        """Return the value with its unit; `form` "s" writes seconds from 1 s on, "n" leaves the unit out."""
        if self.unit != "ms":
            return us(self.low) if self.unit == "us" else percent(self.low)
        seconds = form == "s" and self.low >= 999.5
        low, high = (f"{value / 1000:,.2f}" if seconds else ms(value) for value in (self.low, self.high))
        span = low if low == high else f"{low}-{high}"
        return span if form == "n" else f"{span} {'s' if seconds else 'ms'}"


@contextmanager
def language(name: str | None) -> Iterator[None]:
    """Write sentences in this language inside the context; None keeps the current one. ValueError if it is unknown."""
    if name is not None and name not in CATALOGUES:
        raise ValueError(f"no language {name!r}: there are {', '.join(CATALOGUES)}")
    token = _LANGUAGE.set(name or current())
    try:
        yield
    finally:
        _LANGUAGE.reset(token)


def current() -> str:
    """Return the current language."""
    return _LANGUAGE.get()


def say(sentence: str, /, **values: Any) -> str:
    """Return the sentence of this id with these values. KeyError for an unknown id or a missing value."""
    sentences = CATALOGUES[_LANGUAGE.get()]
    return _Writer(sentences).vformat(sentences[sentence], (), values)


def fix(sentence: str, /, **values: Any) -> str | None:
    """Return the fix of a sentence; None if it has none."""
    key = f"{sentence}.fix"
    return say(key, **values) if key in CATALOGUES["en"] else None


def fix_of(cause: str) -> str | None:
    """Return the fix of a cause; None if it has none."""
    key = f"fix_of_{cause}"
    return say(key) if key in CATALOGUES["en"] else None


def joined(parts: Iterable[str]) -> str:
    """Join the parts of a line; empty ones are left out."""
    return say("between").join(part for part in parts if part)


def sentence(text: str) -> str:
    """Return a finding's text as a full sentence."""
    return say("sentence", text=capitalised(text))


def capitalised(text: str) -> str:
    """Return a text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def inside(text: str) -> str:
    """Return a text for use inside a sentence: in lower case, unless it begins with an abbreviation."""
    first, second = text[:1], text[1:2]
    return f"{first.lower() if second.islower() else first}{text[1:]}"


def line(label: str, text: str) -> str:
    """Return a line of an answer; its label is not translated."""
    return f"  {label:9} {text}"
