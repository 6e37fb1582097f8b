"""The command `join`: captures of the same traffic as tables on one clock. `why --join` gives the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from latpcap import spill
from latpcap.cli import export
from latpcap.cli.export import Form
from latpcap.cli.options import KeylogOption, grouped

if TYPE_CHECKING:
    from latpcap.joined import Joined
    from latpcap.joined.chain import Chain

Client = Annotated[str, typer.Argument(metavar="CLIENT", help="The capture at the client's side: A.")]
Server = Annotated[str, typer.Argument(metavar="SERVER", help="The capture at the server's side: B.")]


More = Annotated[list[str] | None, typer.Argument(metavar="[MORE]...", help="Captures further on, in order: C, D ...")]


def joined(client: str, server: str, keylog: str | None) -> Joined:
    """Two captures on one clock; damage is reported as a warning."""
    spill.configure_malloc()
    from latpcap.joined import join

    return _warned(join(client, server, keylog=keylog, progress=True))


def every(files: list[str], keylog: str | None) -> Joined | Chain:
    """Return one capture with both legs of a proxy, two captures, or more in a row, on one clock."""
    from latpcap.joined import join

    spill.configure_malloc()
    if len(files) == 1:
        return _warned(join(files[0], keylog=keylog, progress=True))
    return _warned(join(files[0], files[1], *files[2:], keylog=keylog, progress=True))


Result = TypeVar("Result", "Joined", "Chain", "Joined | Chain")


def _warned(result: Result) -> Result:
    for problem in result.broken:
        typer.echo(f"latpcap: warning: {problem}", err=True)
    return result


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    @grouped
    def join(
        client: Client,
        server: Annotated[
            str | None, typer.Argument(help="At the server's side: B. Without: A has a proxy's both legs.")
        ] = None,
        more: More = None,
        table: Annotated[
            str, typer.Option("--table", help="packets, exchanges, or parts: whose each part of an exchange was.")
        ] = "exchanges",
        *,
        keylog: KeylogOption = None,
        form: Form,
    ) -> None:
        """What became of each packet between two points, and on which side was each exchange how long?"""
        from latpcap.joined import TABLES

        if table not in TABLES:
            raise typer.BadParameter(f"{table!r} is no table; there are {', '.join(TABLES)}", param_hint="--table")
        if table != "exchanges" and (more or (server is None and table == "packets")):
            raise typer.BadParameter("only exchanges are over all of these", param_hint="--table")
        name = form.name
        files = [client, *([server] if server else []), *(more or [])]
        export.give(every(files, keylog).arrow(table), form.output, name, fit=True)
