"""`PageSource`: a capture read for its page only: its answer, its requests, its actions, and the drawn packets.

Provides for `latpcap.page` what a `Capture` does, in a fraction of its memory: these parts are never held together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from latpcap import bars
from latpcap.options import FlowOptions
from latpcap.page import EXCHANGES
from latpcap.plot import throughput, waterfall_rows
from latpcap.tables import Needed, TableSlice
from latpcap.user_waits import waits
from latpcap.views import flows, latency, projection

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from latpcap.answers.why import Why
    from latpcap.options import Group, Pick, TableName, ThroughputGroup
    from latpcap.plot.flow.graph import FlowGraph
    from latpcap.plot.throughput import Throughput
    from latpcap.plot.waterfall import Waterfall
    from latpcap.views.answer_view import AnswerView
    from latpcap.views.capture import Capture
    from latpcap.views.projection import Projection
    from latpcap.views.recording import Recording


_EVENTS = ["stream", "time", "frame", "tsval", "from_client", "seq", "len", "flags"]
"""Columns of events that actions are made of: they show how connections begin."""


_PASSES = 5
"""Readings of the file: for the answer, the requests, the actions, the rates and the drawn packets."""


class PageSource:
    """The tables of a page. `read` opens the capture for one need; it is called once for each."""

    def __init__(self, answer_view: Callable[[], AnswerView | Capture], read: Callable[[Needed], Projection]):
        bars.expect(_PASSES)
        capture = answer_view()
        self.title = capture.title
        self.findings: pd.DataFrame = capture.findings
        self._answer = capture.why()
        del capture
        self._read = read
        self._requests = read(_needed())

    def why(self) -> Why:
        """Answer as `Capture.why`."""
        return self._answer

    def arrow(self, name: TableName) -> pa.Table:
        """Return the columns of requests that a page reads, and the table `actions`."""
        if name == "actions":
            parts = {read: TableSlice(_EVENTS if read == "events" else None) for read in waits.READS}
            return self._read(parts).arrow(name)
        return self._requests.arrow(name)

    def waterfall(self, *, top: int | None = None) -> Waterfall:
        """Draw as `Capture.waterfall`."""
        return self._requests.waterfall(top=top)

    def latency(self, by: Group | None = None) -> latency.Latency:
        """Summarise as `Capture.latency`."""
        return self._requests.latency(by=by)

    def throughput(self, *, by: ThroughputGroup = "direction") -> Throughput:
        """Draw as `Capture.throughput`."""
        return self._read(throughput.needed()).throughput(by=by)

    def around(self, streams: Sequence[int]) -> Drawn:
        """Return the streams of some exchanges that are drawn."""
        return Drawn(self._read(projection.of_streams(streams)))


class Drawn:
    """Some streams of a capture, for flow graphs."""

    def __init__(self, capture: Recording):
        self._capture = capture

    def flow_graph(self, *, exchange: int | Pick | None = None, max_rows: int | None = None) -> FlowGraph:
        """Draw as `Capture.flow_graph`."""
        return flows.graph(self._capture, self._capture, FlowOptions(max_rows=max_rows), exchange=exchange)


def _needed() -> Needed:
    """Return the tables and rows that servers, timeline, waterfall and the list of exchanges read."""
    bars = waterfall_rows.needed((), "latency_ms")
    columns = [*EXCHANGES, *latency.needed("server", "latency_ms"), *(bars["exchanges"].columns or ())]
    return {**bars, "exchanges": TableSlice(list(dict.fromkeys(columns))), "transfers": TableSlice(("stream",))}
