"""The command `join`: two captures of the same traffic as tables on one clock. `why --join` gives the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from latpcap.cli import export
from latpcap.cli.export import AsCsv, AsJson, AsJsonl, Out
from latpcap.cli.options import KeylogOption

if TYPE_CHECKING:
    from latpcap.joined import Joined

Client = Annotated[str, typer.Argument(metavar="CLIENT", help="The capture at the client's side: A.")]
Server = Annotated[str, typer.Argument(metavar="SERVER", help="The capture at the server's side: B.")]


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
        client: Client,
        server: Server,
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
        export.give(joined(client, server, keylog).arrow(table), output, form, fit=True)
