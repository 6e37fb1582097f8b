"""Why were these requests slow? Tables in, one answer in plain words and numbers out.

`Why` holds what making.py made of the findings of a capture or a stream; its `to_dict()` has every number of its text.
The words of the text are in words.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from latpcap.findings import headline, making
from latpcap.findings.answer import OneExchange, Overall, Row
from latpcap.findings.making import EVERYTHING, Asked, Subject
from latpcap.findings.schema import Finding, Grade
from latpcap.tables import HasTables

if TYPE_CHECKING:
    from latpcap.beside import Beside

WHY_VERSION = 2
"""Of `Why.to_dict()`. It rises when a key goes, or changes its name or meaning; `latpcap schema why` tells the form."""


class Why:
    """Why was it slow, who waited for whom, how sure is that, and what would mend it?

    `str(why)` is the answer in at most 15 lines; `to_dict()` has every number of it, durations in ms.
    """

    def __init__(self, data: Overall | OneExchange):
        self.data = data
        """What `to_dict` gives, with findings, senders and checks as dataclasses."""

    @classmethod
    def of(
        cls,
        capture: Subject,
        scope: HasTables,
        *,
        stream: int | None = None,
        asked: Asked = EVERYTHING,
    ) -> Why:
        """Why were the exchanges of this capture slow? `scope` is the capture or, with its number, a stream of it."""
        return cls(making.overall(capture, scope, stream, asked))

    @classmethod
    def of_exchange(cls, capture: Subject, number: int) -> Why:
        """Why was this one exchange slow? IndexError where there is no such exchange."""
        return cls(making.of_one(capture, number))

    def with_beside(self, told: Sequence[Beside]) -> Why:
        """The same answer with what a trace or a log adds; itself where there is none. Where a trace of the headline's
        server contradicts it, the headline says so, and there is no fix.
        """
        if not told or self.data["kind"] != "overall":
            return self
        data: Overall = {**self.data, "beside": [one.to_dict() for one in told]}
        if otherwise := headline.contradicted(data):
            data["headline"], data["fix"] = f"{data['headline'][:-1]}; {otherwise}.", None
        return Why(data)

    def to_dict(self) -> dict[str, Any]:
        """Which numbers stand behind the answer? Plain dicts, lists, strings and numbers (for JSON)."""
        plain: dict[str, Any] = {"schema": WHY_VERSION, **self.data}
        for name in ("findings", "events", "quality"):
            if name in plain:
                plain[name] = [row.to_dict() for row in plain[name]]
        if self._lead is not None:
            plain["findings"].insert(0, self._lead.to_dict())
        if plain.get("lead") is not None:
            plain["lead"] = plain["lead"].to_dict()
        if "senders" in plain:
            plain["senders"] = {side: asdict(pool) for side, pool in plain["senders"].items()}
        return plain

    @property
    def _lead(self) -> Finding | None:
        """The finding whose sentence the headline is; None where it speaks of the requests' causes."""
        return self.data["lead"] if self.data["kind"] == "overall" else None

    @property
    def findings(self) -> list[Finding]:
        """The headline's own first; what took time of the requests, the most first; then what happened besides."""
        if self.data["kind"] != "overall":
            return []
        first = [] if self._lead is None else [self._lead]
        return [*first, *self.data["findings"], *(e for e in self.data["events"] if e is not self._lead)]

    @property
    def verdict(self) -> str | None:
        """Which cause is the headline? Of one exchange its top cause, None where it has none."""
        return self.data["verdict"] if self.data["kind"] == "overall" else self.data["top_cause"]

    @property
    def server(self) -> str | None:
        """Whose requests does the headline speak of? "address:port"; None for one exchange, or without requests."""
        return self.data.get("server") if self.data["kind"] == "overall" else None

    @property
    def confidence(self) -> float | None:
        """How sure is the headline? 0.9 and more is proven, above 0.5 probable; None where nothing was judged."""
        return self.data.get("confidence") if self.data["kind"] == "overall" else None

    @property
    def headline(self) -> str:
        """The answer in one sentence; of one exchange, what took the most of it."""
        if self.data["kind"] == "overall":
            return self.data["headline"]
        return str(self).split("\n", 1)[0]

    @property
    def fix(self) -> str | None:
        """What mends what the headline says; None where nothing is slow, or nothing mends it."""
        return self.data.get("fix") if self.data["kind"] == "overall" else None

    @property
    def grade(self) -> Grade | None:
        """How sure the headline's cause is: proven, probable, suspected, unknown; None without a judged request."""
        if self.data["kind"] != "overall":
            return None
        first = self._lead or headline.pushed(self.data) or next(iter(self.data["findings"]), None)
        return first.grade if first is not None else None

    @property
    def servers(self) -> list[Row]:
        """The servers that were asked, the one with the most slow requests first; empty for one exchange."""
        return list(self.data.get("servers", [])) if self.data["kind"] == "overall" else []

    def __str__(self) -> str:
        from latpcap.findings import one_exchange, words

        return one_exchange.said(self.data) if self.data["kind"] == "exchange" else words.overall(self.data)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from latpcap import html

        title, _, rest = str(self).partition("\n")
        return html.card(title, html.text(rest))
