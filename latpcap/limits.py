"""The thresholds that findings use, by name. `core/src/limits.rs` defines each with its unit and source."""

from __future__ import annotations

from latpcap import _core

LIMITS: dict[str, float] = _core.limits()
