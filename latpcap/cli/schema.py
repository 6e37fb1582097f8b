"""The command `schema`: the JSON Schema of what latpcap writes as JSON."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def schema(name: Annotated[str, typer.Argument(help="why, findings or exchanges.")]) -> None:
    """Print the JSON Schema of what `why --json` and tables in .json files hold."""
    from latpcap import schemas  # late: takes as long to import as all other commands together

    if name not in schemas.NAMES:
        raise typer.BadParameter(f"expected {', '.join(schemas.NAMES)}, got {name!r}", param_hint="NAME")
    typer.echo(json.dumps(schemas.of(name), indent=2))
