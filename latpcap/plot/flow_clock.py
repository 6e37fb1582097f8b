"""How is an instant written in the Time column?

Reads integer nanoseconds; gives text in Wireshark's formats (View > Time Display Format, tshark -t), exactly: no
float, cut and not rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from latpcap.options import TimeFormat

FORMATS: dict[TimeFormat, str] = {
    "relative": "seconds since the capture's first frame",
    "delta": "seconds since the frame before in the capture",
    "delta_displayed": "seconds since the row before",
    "date": "date and time of day, UTC",
    "epoch": "seconds since 1970",
}
"""What the Time column can hold: tshark's -t r, d, dd, ud and e."""

_SECOND = 1_000_000_000


def seconds(ns: int, digits: int) -> str:
    """How are nanoseconds written as seconds with so many decimals?"""
    whole, rest = divmod(abs(ns), _SECOND)
    decimals = f".{rest:09d}"[: digits + 1] if digits else ""
    return f"{'-' if ns < 0 else ''}{whole}{decimals}"


@dataclass(frozen=True, slots=True)
class Clock:
    """Which time does a row show?

    `start_ns` is the capture's first frame, in ns since 1970; `digits` are the decimals of a second that the capture's
    clock tells; `before` gives, for "delta", the instant of the frame before a frame. Where that is not known, the time
    is empty.
    """

    start_ns: int
    digits: int = 6
    kind: TimeFormat = "relative"
    before: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in FORMATS:
            raise ValueError(f"time={self.kind!r} is not one of {', '.join(FORMATS)}")

    def text(self, frame: int, ns: int, row_before_ns: int | None) -> str:
        """What stands in the Time column? `row_before_ns` is the instant of the row above, None for the first."""
        if self.kind == "relative":
            return seconds(ns - self.start_ns, self.digits)
        if self.kind == "epoch":
            return seconds(ns, self.digits)
        if self.kind == "date":
            whole, rest = divmod(ns, _SECOND)
            day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole)
            return f"{day:%Y-%m-%d %H:%M:%S}{seconds(rest, self.digits)[1:]}"
        before = row_before_ns if self.kind == "delta_displayed" else self.before.get(frame)
        if before is None:
            first = self.kind == "delta_displayed" or frame == 1
            return seconds(0, self.digits) if first else ""
        return seconds(ns - before, self.digits)
