"""Which function writes which folder's capture: the decorators of the other files here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

AT_CLIENT: dict[str, Any] = {"legs": (20.0, 0.01)}
AT_SERVER: dict[str, Any] = {"legs": (0.01, 20.0)}
BETWEEN: dict[str, Any] = {"legs": (8.0, 12.0)}
"""The path from the capture to the server and to the client, in ms there and back."""

Write = Callable[..., bytes]


@dataclass(frozen=True)
class Script:
    """Writes one folder's capture."""

    name: str
    write: Write
    how: dict[str, Any]
    file: str = "capture.pcap"

    def capture(self) -> bytes:
        return self.write(**self.how)

    @property
    def about(self) -> tuple[str, str]:
        """What the case is, and what it must not be mistaken for: the function's docstring in two."""
        said, _, confused = (inspect.getdoc(self.write) or "").partition("\n\nNot to be mistaken for: ")
        values = ", ".join(f"{name} {value}" for name, value in self.how.items())
        return f"{said}\n\nVariant: {values}." if values else said, confused


SCRIPTS: dict[str, Script] = {}


def case(write: Write) -> Write:
    """One folder with the function's name."""
    SCRIPTS[write.__name__] = Script(write.__name__, write, {})
    return write


def variants(file: str = "capture.pcap", **each: dict[str, Any]) -> Callable[[Write], Write]:
    """A folder for each: the function's name and the variant's, written with these arguments."""

    def add(write: Write) -> Write:
        for variant, how in each.items():
            name = f"{write.__name__}_{variant}"
            SCRIPTS[name] = Script(name, write, how, file)
        return write

    return add
