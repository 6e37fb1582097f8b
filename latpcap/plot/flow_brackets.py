"""Which rows belong to which exchange?

Reads rows of the `exchanges` table and a page's rows, as plain values; gives brackets; knows nothing of places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from latpcap.format import asked
from latpcap.plot.flow_rows import FlowRow, Record
from latpcap.plot.text import tenths

_LONGEST_TARGET = 40  # characters; a target comes from the wire and may be of any length
_SAID = 24  # of these on an arrow
_BESIDE = {
    "connect": "connection set-up",
    "pause": "the client's pause",
    "push": "sent unasked",
    "held": "held by the client's kernel",
    "one_way": "a stall is suspected",
}


@dataclass(frozen=True, slots=True)
class FlowBracket:
    """From which row to which does an exchange go?

    `upper` and `lower` are row numbers from 0, `text` says which exchange it is and how long it took. `begun` and
    `continued`: it began on an earlier page, it goes on on a later one.
    """

    upper: int
    lower: int
    stream: int
    text: str
    begun: bool = False
    continued: bool = False


def brackets(rows: Sequence[FlowRow], exchanges: Sequence[Record]) -> tuple[FlowBracket, ...]:
    """Which brackets does a page have, in the order of their first rows?"""
    of_stream: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        of_stream.setdefault(row.stream, []).append(number)
    begins = {exchange["request_first_frame"] for exchange in exchanges if not _is_setup(exchange)}
    found = []
    for exchange in exchanges:
        first = exchange["request_first_frame"]
        last = exchange["response_last_frame"] or exchange["request_last_frame"]
        inside = [n for n in of_stream.get(exchange["stream"], ()) if first <= rows[n].frame <= last]
        if _is_setup(exchange):  # it ends with the client's first byte, which belongs to the request
            inside = [n for n in inside if rows[n].frame not in begins]
        if inside:
            found.append(
                FlowBracket(
                    upper=inside[0],
                    lower=inside[-1],
                    stream=exchange["stream"],
                    text=text_of(exchange),
                    begun=rows[inside[0]].frame != first,
                    continued=rows[inside[-1]].frame != last and inside[-1] == of_stream[exchange["stream"]][-1],
                )
            )
    return tuple(sorted(found, key=lambda one: (one.upper, one.lower)))


def spoken(rows: Sequence[FlowRow], exchanges: Sequence[Record]) -> tuple[FlowRow, ...]:
    """The rows, with the request that begins with a packet, and the status of the answer that does."""
    said: dict[tuple[int, int], list[str]] = {}
    for exchange in exchanges:
        if _is_setup(exchange):
            continue
        asked = [word for word in (exchange["method"], _target(exchange, _SAID)) if word]
        told = {"request_first_frame": " ".join(asked), "response_first_frame": str(exchange["status"] or "")}
        for name, words in told.items():
            if words and exchange[name] is not None:
                said.setdefault((exchange["stream"], exchange[name]), []).append(words)
    found = []
    for row in rows:
        here = said.get((row.stream, row.frame), [])
        more = f" and {len(here) - 1} more" if len(here) > 1 else ""  # of pipelined requests in one segment
        found.append(replace(row, said=f"{here[0]}{more}") if here else row)
    return tuple(found)


def _target(exchange: Record, longest: int) -> str:
    raw = exchange["target"] or ""
    target = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in raw)
    return target if len(target) <= longest else target[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def text_of(exchange: Record) -> str:
    """How is an exchange named in a picture, e.g. `exchange 879: GET / 200, 43.9 ms`?"""
    if _is_setup(exchange):
        what = _BESIDE.get(exchange["method"], "beside the requests")
        return f"exchange {exchange['exchange']}: {what}, {tenths((exchange['end'] - exchange['start']) / 1e6)} ms"
    what = f"{asked(exchange['method'], _target(exchange, _LONGEST_TARGET))} {exchange['status'] or ''}".strip()
    latency = exchange["latency_ms"]
    took = f"{tenths(latency)} ms" if latency is not None else f"not complete ({exchange['cut_by'] or 'cut'})"
    return f"exchange {exchange['exchange']}: " + ", ".join(word for word in (what, took) if word)


def _is_setup(exchange: Record) -> bool:
    """A connection's set-up, a push, a client's pause, or what one direction lets us suspect: no request."""
    return bool(exchange["protocol"] == "tcp")
