"""The numbers that findings rest on, by name. The core's `limits.rs` has each once, with unit and source."""

from __future__ import annotations

from latpcap import _core

LIMITS: dict[str, float] = _core.limits()
