"""Instants of the times that a text shows.

Words in, nanoseconds since 1970 out. A time of day without a date belongs to the first of January 1970, times that
count from a capture's start do too.
"""

from __future__ import annotations

import calendar
import re
import time
from dataclasses import dataclass
from itertools import pairwise

_DAY_S = 86_400
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_NUMBER = re.compile(r"^(\d{1,10})(?:[.,](\d{1,9}))?$")
_MOMENT = re.compile(
    r"^(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[ T]"
    r"|(?P<name>[A-Z][a-z]{2}) +(?P<date>\d{1,2}), (?P<long>\d{4}) )?"
    r"(?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:[.,](?P<part>\d{1,9}))?"
)


@dataclass
class Clock:
    """The times of one text, in its order."""

    days: int = 0
    last_s: int = -1

    def ns(self, stamp: str) -> int | None:
        """Seconds, a time of day, or a date and time, in nanoseconds; None for anything else."""
        if found := _NUMBER.match(stamp):
            return int(found[1]) * 1_000_000_000 + int((found[2] or "").ljust(9, "0"))
        moment = _MOMENT.match(stamp)
        if not moment:
            return None
        second = int(moment["hours"]) * 3600 + int(moment["minutes"]) * 60 + int(moment["seconds"])
        nanos = int((moment["part"] or "").ljust(9, "0"))
        date = _date(moment)
        if date is None:
            if second < self.last_s - _DAY_S // 2:  # past midnight
                self.days += 1
            self.last_s = second
            date = self.days * _DAY_S
        return (date + second) * 1_000_000_000 + nanos


def count_from_before(times: list[int]) -> bool:
    """Whether these times count from the packet before, not from a common start: they fall again and again."""
    falls = sum(later < earlier for earlier, later in pairwise(times))
    return len(times) > 2 and falls * 5 > len(times) - 1


def _date(moment: re.Match[str]) -> int | None:
    """The seconds at which the day began; None where no day is shown."""
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
