"""What a capture for a sentence is: how it is made, and the lines that are true of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from makepcap import Ends, Segment, Talk, answer, get, pcap

import latpcap as lp

ASK = ((0.0, get()),)


@dataclass(frozen=True)
class Spoken:
    """How a capture is made, the lines that its answer has, and what the answer is asked with."""

    make: Callable[[], bytes]
    lines: tuple[str, ...]
    asked: dict[str, Any] = field(default_factory=dict)


SPOKEN: dict[str, Spoken] = {}


def says(*lines: str, **asked: Any) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    """The answer about what this function makes has these lines, or parts of lines."""

    def keep(make: Callable[[], bytes]) -> Callable[[], bytes]:
        SPOKEN[make.__name__] = Spoken(make, lines, asked)
        return make

    return keep


def strings(data: object) -> Iterator[str]:
    """All strings of plain data."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from strings(value)
    elif isinstance(data, (list, tuple)):
        for value in data:
            yield from strings(value)


def ask(spoken: Spoken) -> lp.Why:
    """The answer about what was made; `stream`: about one of its streams."""
    asked = dict(spoken.asked)
    capture = lp.read(spoken.make())
    return capture.stream(asked.pop("stream")).why(**asked) if "stream" in asked else capture.why(**asked)


def all_said(why: lp.Why) -> str:
    """An answer's text, and what stands in its numbers alone."""
    return "\n".join([str(why), *strings(why.to_dict()), *why.for_owner()])


def in_time(tape: list[Segment]) -> bytes:
    return pcap(sorted(tape, key=lambda segment: segment.time_ns))


def on_its_own(tape: list[Segment], port: int = 50_000, at: float = 0.0, host: str = "10.0.0.2") -> Talk:
    """Three quick requests on a connection of its own, beside what happens to others."""
    talk = Talk(ends=Ends(("10.0.0.1", port), (host, 80)), tape=tape)
    talk.open(at)
    for number in range(3):
        talk.client(at + 10.0 + number, get())
        talk.server(at + 10.3 + number, b"".join(answer(50)))
        talk.client(at + 10.4 + number)
    return talk


def talked(port: int, waits: list[float], server_leg: float = 0.01, asks: tuple[bytes, ...] = (get(),)) -> Talk:
    """A connection to this port, and requests that are each answered after so many ms."""
    talk = Talk(ends=Ends(server=("10.0.0.2", port)), server_leg=server_leg, client_leg=0.01)
    talk.open()
    at = 10.0 + server_leg
    for number, wait in enumerate(waits):
        talk.client(at, asks[number % len(asks)])
        talk.server(at + server_leg + wait, b"".join(answer(50)))
        talk.client(at + server_leg + wait + 0.02)
        at += server_leg + wait + 100.0
    return talk
