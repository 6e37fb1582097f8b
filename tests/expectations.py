"""The language of tests/cases/*/expected.json: which rows a capture has to give. tests/cases/README.md describes it.

Reads the JSON and a capture's tables; gives one sentence for every expectation that does not hold. It knows nothing
of the situations themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import latpcap as lp

KEYS = ("table", "match", "count", "none", "sum", "distinct", "why", "is", "note")
TESTS = ("min", "max", "not", "has")
LINKS = {"exchange": "exchanges", "connect": "connects", "push": "pushes", "gap": "gaps", "stream": "streams"}
"""A column that names a row of another table; `exchange.index` is that row's `index`."""
NAMES = ("exchanges", "connects", "pushes", "gaps", "causes", "evidence", "findings", "events", "streams")
NAMES += ("transfers", "lookups", "probes", "issues")
PROVEN = 0.9
SAME = 1e-6
"""Of a number: a thousandth of the nanosecond, where it is milliseconds."""

Row = dict[str, Any]


class ExpectationError(Exception):
    """expected.json itself is wrong: an unknown key, table or column, or a value of the wrong kind."""


def near(word: str, known: Iterable[str]) -> str:
    known = sorted(known)
    close = get_close_matches(word, known, 4, 0.4)
    return f"near: {', '.join(close)}" if close else f"there are: {', '.join(known)}"


def known(words: Iterable[str], allowed: Iterable[str], what: str) -> None:
    for word in words:
        if word not in allowed:
            raise ExpectationError(f"unknown {what} {word!r}; {near(word, allowed)}")


class Tables:
    """A capture's tables as rows."""

    def __init__(self, capture: lp.Capture):
        self.capture = capture
        self._rows: dict[str, list[Row]] = {}
        self._columns: dict[str, list[str]] = {}

    @cached_property
    def why(self) -> Row:
        told: Row = self.capture.why().to_dict()
        return told

    def rows(self, table: str) -> list[Row]:
        if table not in self._rows:
            self._load(table)
        return self._rows[table]

    def columns(self, table: str) -> list[str]:
        self.rows(table)
        return self._columns[table]

    def _load(self, table: str) -> None:
        if table not in NAMES:
            raise ExpectationError(f"unknown table {table!r}; {near(table, NAMES)}")
        found = self.capture.arrow(table)
        rows, columns = found.to_pylist(), list(found.column_names)
        if "confidence" in columns:
            columns.append("proven")
            for row in rows:
                row["proven"] = row["confidence"] is not None and row["confidence"] >= PROVEN
        self._rows[table], self._columns[table] = rows, columns

    @cached_property
    def _by_number(self) -> dict[str, dict[int, Row]]:
        return {link: {row[link]: row for row in self.rows(table)} for link, table in LINKS.items()}

    def linked(self, row: Row, link: str) -> Row | None:
        """The row of another table that this one names; its stream also by way of its exchange, connect, push, gap."""
        if row.get(link) is not None:
            return self._by_number[link].get(row[link])
        if link == "stream":
            for other in ("exchange", "connect", "push", "gap"):
                if row.get(other) is not None:
                    return self.linked(self._by_number[other][row[other]], "stream")
        return None

    def value(self, row: Row, name: str) -> Any:
        link, dot, rest = name.partition(".")
        if not dot:
            return row[name]
        other = self.linked(row, link)
        return None if other is None else other[rest]

    def check_column(self, table: str, name: str) -> None:
        link, dot, rest = name.partition(".")
        if not dot:
            known([name], self.columns(table), f"column of {table}:")
            return
        known([link], LINKS, "link")
        known([rest], self.columns(LINKS[link]), f"column of {LINKS[link]}:")


def same(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool) or wanted is None or value is None:
        return value is wanted
    if isinstance(wanted, (int, float)) and isinstance(value, (int, float)):
        return abs(value - wanted) <= SAME
    return bool(value == wanted)


def holds(value: Any, test: Any) -> bool:
    """Is this value what the test asks for: a value, one of several, or bounds."""
    if isinstance(test, list):
        return any(same(value, one) for one in test)
    if not isinstance(test, dict):
        return same(value, test)
    if "not" in test and holds(value, test["not"]):
        return False
    if "has" in test and test["has"] not in (value or ""):
        return False
    if "min" in test and (value is None or value < test["min"] - SAME):
        return False
    return not ("max" in test and (value is None or value > test["max"] + SAME))


def check_test(test: Any, where: str) -> None:
    if isinstance(test, dict):
        if not test:
            raise ExpectationError(f"{where} is empty; there are: {', '.join(TESTS)}")
        known(test, TESTS, f"key in {where}:")
        for bound in ("min", "max"):
            if not isinstance(test.get(bound, 0), (int, float)):
                raise ExpectationError(f"{bound} of {where} is no number")


def at(path: str, told: Any) -> Any:
    """The value at `findings.0.cause` of why().to_dict()."""
    for step in path.split("."):
        if isinstance(told, list):
            if not step.isdigit():
                raise ExpectationError(f"{path!r}: {step!r} is no number, and {len(told)} entries are there")
            told = told[int(step)] if int(step) < len(told) else None
        elif isinstance(told, dict):
            known([step], told, f"path {path!r}:")
            told = told[step]
    return told


class Expectation:
    """One entry of expected.json."""

    def __init__(self, entry: Any):
        if not isinstance(entry, dict):
            raise ExpectationError(f"{entry!r} is no object")
        known(entry, KEYS, "key")
        self.entry: Row = entry
        told, counted = {"why", "is"} & set(entry), set(KEYS[:6]) & set(entry)
        if told and (counted or len(told) < 2):
            raise ExpectationError("'why' and 'is' stand together, and without a table")
        if not told and "table" not in entry:
            raise ExpectationError("neither 'table' nor 'why' is there")
        if entry.get("none", True) is not True or ("none" in entry and {"count", "sum", "distinct"} & set(entry)):
            raise ExpectationError("'none' is true, and stands without 'count', 'sum' and 'distinct'")
        for name, test in {**entry.get("match", {}), **entry.get("sum", {})}.items():
            check_test(test, name)
        for key in ("count", "is"):
            check_test(entry.get(key), key)

    def failure(self, tables: Tables) -> str:
        """What is otherwise, or nothing."""
        if "why" in self.entry:
            value = at(self.entry["why"], tables.why)
            return "" if holds(value, self.entry["is"]) else f"why().to_dict() has {value!r}"
        table, match = self.entry["table"], self.entry.get("match", {})
        rows = tables.rows(table)
        for name in [*match, *self.entry.get("sum", {}), *filter(None, [self.entry.get("distinct")])]:
            tables.check_column(table, name)
        found = [row for row in rows if all(holds(tables.value(row, n), test) for n, test in match.items())]
        for name, test in self.entry.get("sum", {}).items():
            total = sum(tables.value(row, name) or 0 for row in found)
            if not holds(total, test):
                return f"the sum of {name} over {len(found)} rows is {total:.6f}"
        number, what = len(found), "rows match"
        if "distinct" in self.entry:
            name = self.entry["distinct"]
            number, what = len({tables.value(row, name) for row in found}), f"different values of {name}"
        wanted: Any = 0 if "none" in self.entry else self.entry.get("count", {"min": 0 if "sum" in self.entry else 1})
        if holds(number, wanted):
            return ""
        return f"{number} {what}{self._nearest(tables, rows, found)}"

    def _nearest(self, tables: Tables, rows: list[Row], found: list[Row]) -> str:
        """Rows that match too much, or those that miss the fewest columns: for the person who reads the failure."""
        match = self.entry.get("match", {})

        def missed(row: Row) -> Row:
            values = {n: tables.value(row, n) for n in match}
            return {n: v for n, v in values.items() if not holds(v, match[n])}

        if found:
            shown = [{n: tables.value(row, n) for n in match} for row in found[:3]]
            return f", the first of them {shown}"
        closest = sorted(map(missed, rows), key=len)[:3]
        return f" of {len(rows)}; the nearest have {closest}" if closest else ", the table is empty"


def load(path: Path) -> list[Expectation]:
    """The entries of an expected.json."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as problem:
        raise ExpectationError(f"{path}: {problem}") from None
    if not isinstance(entries, list) or not entries:
        raise ExpectationError(f"{path}: not a list with at least one entry")
    loaded = []
    for number, entry in enumerate(entries, 1):
        try:
            loaded.append(Expectation(entry))
        except ExpectationError as problem:
            raise ExpectationError(f"{path}: entry {number}: {problem}") from None
    return loaded


def failures(path: Path, tables: Tables) -> list[str]:
    """A sentence for every entry that does not hold."""
    out = []
    for number, expectation in enumerate(load(path), 1):
        try:
            said = expectation.failure(tables)
        except ExpectationError as problem:
            raise ExpectationError(f"{path}: entry {number}: {problem}") from None
        if said:
            out.append(f"entry {number}, {json.dumps(expectation.entry)}: {said}")
    return out
