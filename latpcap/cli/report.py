"""The command `report`: one page to mail, and what `compare -o` writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latpcap.cli.options import FilterOption, KeylogOption

if TYPE_CHECKING:
    from latpcap.views.capture import Capture

Page = Annotated[Path, typer.Option("-o", "--output", help="The page: one HTML file that fetches nothing.")]


def register(app: typer.Typer, read: Callable[..., Capture]) -> None:
    """Adds the command to the program; `read` opens a capture and warns of damage."""

    @app.command()
    def report(
        file: Annotated[
            str, typer.Argument(help="A capture, or the results of a batch; --sample takes the sample.", metavar="FILE")
        ],
        output: Page = Path("report.html"),
        display_filter: FilterOption = None,
        keylog: KeylogOption = None,
    ) -> None:
        """Write one page to mail: answer, servers, timeline, waterfall, exchanges and flow graphs, in one HTML file."""
        from latpcap.archive.public import open_results
        from latpcap.archive.results import is_results

        if file != "-" and is_results(file):
            if display_filter is not None:
                raise typer.BadParameter("is for a capture, not for the results of a batch", param_hint="--filter")
            open_results(file).to_html(output)
        else:
            read(file, display_filter, keylog=keylog, again=True).to_html(output)
