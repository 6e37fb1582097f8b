"""The captures of tests/cases that scripts write: SCRIPTS has each by its folder's name.

Reads nothing; gives bytes. What a capture must give stands in the folder's expected.json, worked out from the
script's own numbers (who sent what when, and the path's legs), never from latpcap.
"""

from __future__ import annotations

from case_scripts import (
    clocks,
    derived,
    keys,
    messages,
    names,
    one_way,
    pauses,
    proxies,
    quality,
    queues,
    repairs,
    setups,
    silence,
    stalls,
    timers,
    transfers,
    web,
)
from case_scripts.registry import SCRIPTS, Script

FILES = (
    clocks,
    derived,
    keys,
    messages,
    names,
    one_way,
    pauses,
    proxies,
    quality,
    queues,
    repairs,
    setups,
    silence,
    stalls,
    timers,
    transfers,
    web,
)

__all__ = ["FILES", "SCRIPTS", "Script"]
