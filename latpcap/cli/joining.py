"""The command `join`: two captures of the same traffic as tables on one clock. `why --join` gives the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from latpcap.cli import export
from latpcap.cli.export import AsCsv, AsJson, AsJsonl, Out
from latpcap.cli.options import KeylogOption

if TYPE_CHECKING:
    from latpcap.joined import Joined


def joined(client: str, server: str, keylog: str | None) -> Joined:
    """Both captures on one clock; files that are damaged give what they have, and a warning."""
    from latpcap.joined import join as of

    found = of(client, server, keylog=keylog, progress=True)
    for problem in found.broken:
        typer.echo(f"latpcap: warning: {problem}", err=True)
    return found


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""

    @app.command()
    def join(
        client: Annotated[str, typer.Argument(metavar="CLIENT", help="The capture at the client's side: A.")],
        server: Annotated[str, typer.Argument(metavar="SERVER", help="The capture at the server's side: B.")],
        table: Annotated[
            str, typer.Option("--table", help="packets, exchanges, or parts: whose each part of an exchange was.")
        ] = "exchanges",
        keylog: KeylogOption = None,
        output: Out = None,
        as_json: AsJson = False,
        as_jsonl: AsJsonl = False,
        as_csv: AsCsv = False,
    ) -> None:
        """What became of each packet between two points, and on which side was each exchange how long?"""
        from latpcap.joined import TABLES

        if table not in TABLES:
            raise typer.BadParameter(f"{table!r} is no table; there are {', '.join(TABLES)}", param_hint="--table")
        form = export.form(json=as_json, jsonl=as_jsonl, csv=as_csv)
        rows = joined(client, server, keylog).arrow(table)
        if output is not None and str(output) != "-":
            export.write(rows, output)
        else:
            export.show(iter([rows]), form, fit=True)
