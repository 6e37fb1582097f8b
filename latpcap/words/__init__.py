"""How is a sentence of the catalogue written out? Its id and named values in, words out; decides nothing.

A catalogue maps each id to a template. In a template `{name}` is a value. What it looks like depends on its name:

- `…_ms` is a time: "5,036 ms"; a pair is a range: "1,002-7,134 ms". `{name:s}` writes seconds from one second on,
  `{name:n}` the number alone. `…_us` is a time in microseconds, `…_share` a share of 1: "96 %".
- `{name:one|many}` picks a word by a count: "{n} {n:connection|connections}".
- `client` and `server` as the value of `owner`, `sender`, `receiver`, `holder` or `side` are the catalogue's words.
- integers get separators, text stands as it is; other formats are Python's.

The fix of a finding stands under its id and ".fix".
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


def _of_core() -> dict[str, str]:
    """What the core says of causes, rivals and grounds, as templates."""
    causes = vocabulary.CAUSES.values()
    found = {f"fix_of_{cause.name}": cause.fix for cause in causes if cause.fix is not None}
    found |= {f"meaning_{name}": meaning for name, meaning in vocabulary.RIVALS.items()}
    found |= {f"because_{name}": meaning for name, meaning in vocabulary.BECAUSES.items()}
    return {name: text.replace("{", "{{").replace("}", "}}") for name, text in found.items()}


CATALOGUES: dict[str, Mapping[str, str]] = {"en": {**en.SENTENCES, **_of_core()}, "zh": zh.SENTENCES}
"""By language; each has the same ids."""
_LANGUAGE: ContextVar[str] = ContextVar("language", default="en")
TINY = 0.0005
"""A share below it has no number."""
SIDES = ("owner", "sender", "receiver", "holder", "side")
"""Values that are a side of a connection, or who else a time belongs to."""


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
    """Milliseconds, or a range of them; microseconds; a share."""

    def __init__(self, unit: str, value: float | tuple[float, float]):
        self.unit = unit
        self.low, self.high = value if isinstance(value, tuple) else (value, value)

    def text(self, form: str) -> str:
        """With its unit; `form` "s": in seconds where all of it is long, "n": without the unit."""
        if self.unit != "ms":
            return us(self.low) if self.unit == "us" else percent(self.low)
        seconds = form == "s" and self.low >= 999.5
        low, high = (f"{value / 1000:,.2f}" if seconds else ms(value) for value in (self.low, self.high))
        span = low if low == high else f"{low}-{high}"
        return span if form == "n" else f"{span} {'s' if seconds else 'ms'}"


@contextmanager
def language(name: str | None) -> Iterator[None]:
    """Inside, sentences are written in this language; None: as around. ValueError for one that has no catalogue."""
    if name is not None and name not in CATALOGUES:
        raise ValueError(f"no language {name!r}: there are {', '.join(CATALOGUES)}")
    token = _LANGUAGE.set(name or current())
    try:
        yield
    finally:
        _LANGUAGE.reset(token)


def current() -> str:
    """The language in which sentences are written here."""
    return _LANGUAGE.get()


def say(sentence: str, /, **values: Any) -> str:
    """The sentence of this id with these values. KeyError where the catalogue or a value lacks it."""
    sentences = CATALOGUES[_LANGUAGE.get()]
    return _Writer(sentences).vformat(sentences[sentence], (), values)


def fix(sentence: str, /, **values: Any) -> str | None:
    """What mends it, from the same catalogue; None where nothing does."""
    key = f"{sentence}.fix"
    return say(key, **values) if key in CATALOGUES["en"] else None


def fix_of(cause: str) -> str | None:
    """What mends a cause of the core; None where nothing does."""
    key = f"fix_of_{cause}"
    return say(key) if key in CATALOGUES["en"] else None


def joined(parts: Iterable[str]) -> str:
    """Parts of one line, one behind the other; empty ones are left out."""
    return say("between").join(part for part in parts if part)


def sentence(text: str) -> str:
    """A finding's words as a sentence of its own."""
    return say("sentence", text=f"{text[:1].upper()}{text[1:]}")


def inside(text: str) -> str:
    """A sentence behind other words: in lower case, unless it begins with an abbreviation."""
    first, second = text[:1], text[1:2]
    return f"{first.lower() if second.islower() else first}{text[1:]}"


def line(label: str, text: str) -> str:
    """A line of an answer with its label, which is the same in all languages."""
    return f"  {label:9} {text}"
