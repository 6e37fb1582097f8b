"""Parses the instants that users give as `start=` and `end=`."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import NamedTuple, TypeAlias

Instant: TypeAlias = str | dt.datetime | float
"""ISO 8601 text or a datetime (UTC if it has no time zone), or seconds since the capture's first frame."""

_FRACTION = re.compile(r"(?<=:\d\d)\.(\d{1,9})")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Given(NamedTuple):
    """An instant in ns: since 1970, or if `relative` since the capture's first frame."""

    ns: int
    relative: bool

    def since_1970(self, zero_ns: int) -> int:
        """Return the instant in ns since 1970, of a capture whose first frame is at `zero_ns`."""
        return zero_ns + self.ns if self.relative else self.ns


def given(value: Instant | None, name: str) -> Given | None:
    """Parse an instant. Raises a ValueError that names the option (`name`) for other values."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        if isinstance(value, bool) or not math.isfinite(value) or not 0 <= value < 2**33:
            raise ValueError(f"{name}={value!r}: a number is seconds since the capture's first frame, from 0 on")
        return Given(round(value * 1e9), True)
    if isinstance(value, str):
        fraction = _FRACTION.search(value)
        try:
            instant = dt.datetime.fromisoformat(_FRACTION.sub("", value.strip()))
        except ValueError:
            expected = 'an instant such as "2026-11-21T06:07:31.5Z"'
            raise ValueError(f"{name}={value!r}: is not {expected}, nor a number of seconds") from None
        return Given(_whole(instant) + int(fraction[1].ljust(9, "0") if fraction else 0), False)
    exact = getattr(value, "value", None)  # pandas.Timestamp has ns
    return Given(exact if isinstance(exact, int) else _whole(value) + value.microsecond * 1000, False)


def _whole(instant: dt.datetime) -> int:
    """Return the whole seconds of an instant, in ns since 1970."""
    zoned = instant.replace(microsecond=0, tzinfo=instant.tzinfo or dt.UTC)
    return (zoned - _EPOCH) // dt.timedelta(seconds=1) * 1_000_000_000


def text(ns: int) -> str:
    """Format an instant for a display filter: `2026-11-21T06:07:31.5Z`."""
    seconds, fraction_ns = divmod(ns, 1_000_000_000)
    moment = _EPOCH + dt.timedelta(seconds=seconds)
    fraction = f".{fraction_ns:09}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"
