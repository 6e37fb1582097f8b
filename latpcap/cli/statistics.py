"""The commands `conversations`, `endpoints`, `hierarchy`, `expert` and `processes`: tables of a second reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from latpcap.cli import export, opening
from latpcap.cli.export import Form
from latpcap.cli.options import File, FilterOption, over_time
from latpcap.cli.tables import Rows, arranged, chosen

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.views.capture import Capture


LayerOption = Annotated[
    str | None, typer.Option("--layer", help="Only this layer: eth, ip, ipv6, tcp or udp (default: all).")
]

_BRIEF = {
    "conversations": "layer a a_port b b_port packets bytes packets_a_to_b bytes_a_to_b packets_b_to_a bytes_b_to_a "
    "start_s duration_s bits_per_s_a_to_b bits_per_s_b_to_a stream",
    "endpoints": "layer address port packets bytes packets_sent bytes_sent packets_received bytes_received start_s "
    "duration_s",
    "hierarchy": "path frames bytes frames_share bytes_share end_frames",
    "processes": "stream side address port pid process command container pod frames first_frame",
    "expert": "severity group protocol summary count first_frame filter",
}
"""The columns that text shows where nobody chose."""


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""

    def by_layer(name: str, question: str) -> None:
        def command(
            file: File, *, layer: LayerOption = None, display_filter: FilterOption = None, rows: Rows, form: Form
        ) -> None:
            from latpcap.statistics.conversations import LAYERS, conversations, endpoints

            if layer is not None and layer not in LAYERS:
                raise typer.BadParameter(f"expected {', '.join(LAYERS)}, got {layer!r}", param_hint="--layer")
            compute = conversations if name == "conversations" else endpoints
            _give(compute(opening.read(file, display_filter, reread=True), layer), name, rows, form)

        app.command(name=name, help=question)(over_time(command))

    def of_all(name: str, question: str) -> None:
        def command(file: File, *, display_filter: FilterOption = None, rows: Rows, form: Form) -> None:
            _give(_of_all(name, opening.read(file, display_filter, reread=True)), name, rows, form)

        app.command(name=name, help=question)(over_time(command))

    by_layer("conversations", "Who exchanged how much with whom, and for how long? Largest first.")
    by_layer("endpoints", "How much did each end send and receive? Largest first.")
    of_all("hierarchy", "Which protocols carry what share of the frames? The protocol hierarchy.")
    of_all("processes", "Which processes, containers and pods talked, where the capture names them?")
    of_all("expert", "What would Wireshark remark on? Expert information with counts and frames.")


def _of_all(name: str, capture: Capture) -> pa.Table:
    """Compute the table of this name over all layers."""
    from latpcap.reading import processes
    from latpcap.statistics import expert, hierarchy

    tables = {"hierarchy": hierarchy.hierarchy, "processes": processes.table, "expert": expert.expert}
    return tables[name](capture)


def _give(table: pa.Table, name: str, rows: Rows, form: Form) -> None:
    table = chosen(arranged(table, name, rows), name, rows.columns)
    if rows.columns is None and form.name == "text" and form.output is None:
        table = table.select(_BRIEF[name].split())
    export.give(table, form.output, form.name, fit=rows.columns is None)
