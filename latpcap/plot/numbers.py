"""Writes numbers in forms that only pictures use; the common forms of times and shares are in `latpcap.format`."""

from __future__ import annotations

from datetime import UTC, datetime

from latpcap.format import ms


def tenths(value: float) -> str:
    """Write milliseconds to a tenth, and less than 1 ms as `format.ms` does: 0.026 does not become 0.0."""
    return f"{value:,.1f}" if value >= 1 or value == 0 else ms(value)


def spent(total_ms: float) -> str:
    """Write a sum of time, in s from one second on."""
    return f"{total_ms / 1000:,.1f} s" if total_ms >= 1000 else f"{ms(total_ms)} ms"


def size(count_bytes: float) -> str:
    """Write bytes with a unit: 612 B, 1.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count_bytes < 1000:
            return f"{count_bytes:,.0f} {unit}" if count_bytes >= 10 or unit == "B" else f"{count_bytes:.1f} {unit}"
        count_bytes /= 1000
    return f"{count_bytes:,.1f} TB"


def moment(ns: int, seconds: float = 0.0) -> str:
    """Write an instant: the date and time, or the time of day for an axis of `seconds`, with decimals if under 10 s."""
    whole_seconds, fraction_ns = divmod(ns, 1_000_000_000)
    moment = datetime.fromtimestamp(whole_seconds, UTC)
    if not seconds:
        return f"{moment:%Y-%m-%d %H:%M:%S}.{fraction_ns // 1_000_000:03}"
    return f"{moment:%H:%M:%S}" + (f".{fraction_ns // 1_000_000:03}" if seconds < 10 else "")
