"""`Report`, the lines of a tool with the values that are not known, and the number formats of wrk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from latpcap.tables import HasTables

if TYPE_CHECKING:
    from latpcap.reading.reread import Record


class Subject(HasTables, Protocol):
    """A capture: its tables, and its bytes for a second reading."""

    frames: int
    """Number of frames."""

    def records(self, frames: Iterable[int] | None = None) -> Iterator[Record]:
        """Yield the bytes of these frames; CaptureError where they cannot be read again."""


@dataclass(frozen=True)
class Report:
    """A tool's output for a capture: `lines` in its format, `unknown` values as notes, `numbers` as plain values.

    `str()` has the lines, and the notes after "#".
    """

    tool: str
    lines: Sequence[str]
    unknown: Sequence[str] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([*self.lines, *(f"# {line}" for line in self.unknown)])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values for JSON, with the notes."""
        return {"tool": self.tool, **self.numbers, "unknown": list(self.unknown)}


def scaled(value: float, units: Sequence[str], scale: float) -> str:
    """Write a number as wrk does: two decimals, and the next unit from 85 % of it on."""
    unit = units[0]
    for bigger in units[1:]:
        if value < scale * 0.85:
            break
        value, unit = value / scale, bigger
    return f"{value:.2f}{unit}"


def time_us(value: float) -> str:
    """Write a time as wrk does: 849.00us, 43.10ms, 2.01s."""
    if value >= 1_000_000:
        return scaled(value / 1_000_000, ("s", "m", "h"), 60)
    return scaled(value, ("us", "ms"), 1000)


def metric(value: float) -> str:
    """Write a count as wrk does: 155.45, 1.15k."""
    return scaled(value, ("", "k", "M", "G"), 1000)


def binary(value: float) -> str:
    """Write a size as wrk does, without its "B": 3.74M."""
    return scaled(value, ("", "K", "M", "G", "T"), 1024)


def padded(text: str, width: int) -> str:
    """Right-align the digits of a number as wrk's columns do; a unit of up to two letters follows them."""
    hang = 2 - sum(1 for letter in text[-2:] if letter.isalpha())
    return text.rjust(width - hang) + " " * hang


def ns_of(instant: Any) -> int:
    """Convert an instant as Arrow gives it to ns since 1970."""
    return int(getattr(instant, "value", 0)) or int(instant.timestamp() * 1_000_000) * 1000
