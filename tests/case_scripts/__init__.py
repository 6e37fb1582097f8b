"""The captures of tests/cases that scripts write: SCRIPTS has each by its folder's name.

Reads nothing; gives bytes. What a capture must give stands in the folder's expected.json, worked out from the
script's own numbers (who sent what when, and the path's legs), never from latpcap.
"""

from __future__ import annotations

import importlib
import pkgutil

from case_scripts.registry import SCRIPTS, Script

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"case_scripts.{_file.name}")

__all__ = ["SCRIPTS", "Script"]
