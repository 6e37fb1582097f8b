"""How numbers are written in pictures alone; times and shares are in `latpcap.format`."""

from __future__ import annotations

from datetime import UTC, datetime

from latpcap.format import ms


def tenths(value: float) -> str:
    """Milliseconds to a tenth, and what is shorter than one as `ms` writes it: 0.026 is not 0.0."""
    return f"{value:,.1f}" if value >= 1 or value == 0 else ms(value)


def spent(total_ms: float) -> str:
    """A sum of time, in s from one second on."""
    return f"{total_ms / 1000:,.1f} s" if total_ms >= 1000 else f"{ms(total_ms)} ms"


def size(count_bytes: float) -> str:
    """Bytes with the unit that keeps it short: 612 B, 1.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count_bytes < 1000:
            return f"{count_bytes:,.0f} {unit}" if count_bytes >= 10 or unit == "B" else f"{count_bytes:.1f} {unit}"
        count_bytes /= 1000
    return f"{count_bytes:,.1f} TB"


def moment(ns: int, seconds: float = 0.0) -> str:
    """Time of the day; date and time where no span is named, and decimals where the span is short."""
    whole, rest = divmod(ns, 1_000_000_000)
    moment = datetime.fromtimestamp(whole, UTC)
    if not seconds:
        return f"{moment:%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03}"
    return f"{moment:%H:%M:%S}" + (f".{rest // 1_000_000:03}" if seconds < 10 else "")
