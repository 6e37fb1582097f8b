"""Converts the times that a text shows to ns since 1970.

Times of day without a date, and times relative to the capture's start, count from 1 January 1970.
"""

from __future__ import annotations

import calendar
import re
import time
from dataclasses import dataclass
from itertools import pairwise

_S_PER_DAY = 86_400
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_NUMBER = re.compile(r"^(\d{1,10})(?:[.,](\d{1,9}))?$")
_MOMENT = re.compile(
    r"^(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[ T]"
    r"|(?P<name>[A-Z][a-z]{2}) +(?P<date>\d{1,2}), (?P<long>\d{4}) )?"
    r"(?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:[.,](?P<part>\d{1,9}))?"
)


@dataclass
class Clock:
    """Converts the times of one text, in their order."""

    days: int = 0
    """Midnights that the times of day without a date have passed."""
    last_s: int = -1
    """The previous time of day, in s."""

    def ns(self, stamp: str) -> int | None:
        """Convert seconds, a time of day, or a date and time to ns; return None for other text."""
        if number := _NUMBER.match(stamp):
            return int(number[1]) * 1_000_000_000 + int((number[2] or "").ljust(9, "0"))
        moment = _MOMENT.match(stamp)
        if not moment:
            return None
        second = int(moment["hours"]) * 3600 + int(moment["minutes"]) * 60 + int(moment["seconds"])
        nanos = int((moment["part"] or "").ljust(9, "0"))
        date = _date(moment)
        if date is None:
            if second < self.last_s - _S_PER_DAY // 2:  # past midnight
                self.days += 1
            self.last_s = second
            date = self.days * _S_PER_DAY
        return (date + second) * 1_000_000_000 + nanos


def are_deltas(times: list[int]) -> bool:
    """Return whether times are differences to the previous packet: more than a fifth of them decrease."""
    falls = sum(later < earlier for earlier, later in pairwise(times))
    return len(times) > 2 and falls * 5 > len(times) - 1


def _date(moment: re.Match[str]) -> int | None:
    """Return the start of the day in s since 1970; None without a date, 0 for an impossible one."""
    if moment["year"]:
        text = f"{moment['year']}-{moment['month']}-{moment['day']}"
    elif moment["name"]:
        text = f"{moment['long']}-{_MONTHS.get(moment['name'].lower(), 1)}-{moment['date']}"
    else:
        return None
    try:
        return calendar.timegm(time.strptime(text, "%Y-%m-%d"))
    except ValueError:
        return 0
