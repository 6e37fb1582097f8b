"""Captures for sentences that no case prints: what was made to happen, and the lines that are true of it."""

from __future__ import annotations

from spoken import answers, backends, connections, limits, others, processes, rare, sessions, stalls, transfers, waits
from spoken.beside import BESIDE, beside
from spoken.joined import JOINED
from spoken.registry import SPOKEN, Spoken, all_said, ask

FILES = (answers, backends, connections, limits, others, processes, rare, sessions, stalls, transfers, waits)

__all__ = ["BESIDE", "FILES", "JOINED", "SPOKEN", "Spoken", "all_said", "ask", "beside"]
