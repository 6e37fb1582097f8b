"""A capture read for its page alone: for its answer, its requests, what users waited for, and what is drawn of it.

Gives `latpcap.page` what a `Capture` would, in a fraction of its memory: no two of these are there at once.
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
from latpcap.views import flows, latency, partial_report

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from latpcap.answers.why import Why
    from latpcap.options import Group, Pick, TableName, ThroughputGroup
    from latpcap.plot.flow.graph import FlowGraph
    from latpcap.plot.throughput import Throughput
    from latpcap.plot.waterfall import Waterfall
    from latpcap.views.capture import Capture
    from latpcap.views.partial_answer import AnswerView
    from latpcap.views.partial_report import Projection
    from latpcap.views.recording import Recording


_EVENTS = ["stream", "time", "frame", "tsval", "from_client", "seq", "len", "flags"]
"""What the account reads of them: how connections begin."""


_PASSES = 5
"""The answer, the requests, the actions, the rates and the packets that are drawn."""


class PageSource:
    """A page's tables of a capture. `read` opens it for what is needed of it, once a need."""

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
        """The answer."""
        return self._answer

    def arrow(self, name: TableName) -> pa.Table:
        """The columns of its requests that a page reads; what its users waited for."""
        if name == "actions":
            return self._read({of: TableSlice(_EVENTS if of == "events" else None) for of in waits.READS}).arrow(name)
        return self._requests.arrow(name)

    def waterfall(self, *, top: int | None = None) -> Waterfall:
        """Where the time of its longest exchanges went."""
        return self._requests.waterfall(top=top)

    def latency(self, by: Group | None = None) -> latency.Latency:
        """How long its requests took."""
        return self._requests.latency(by=by)

    def throughput(self, *, by: ThroughputGroup = "direction") -> Throughput:
        """As `Capture.throughput`."""
        return self._read(throughput.needed()).throughput(by=by)

    def around(self, streams: Sequence[int]) -> Drawn:
        """What draws exchanges of these streams."""
        return Drawn(self._read(partial_report.of_streams(streams)))


class Drawn:
    """Some streams of a capture, to be drawn."""

    def __init__(self, capture: Recording):
        self._capture = capture

    def flow_graph(self, *, exchange: int | Pick | None = None, max_rows: int | None = None) -> FlowGraph:
        """As `Capture.flow_graph`."""
        return flows.graph(self._capture, self._capture, FlowOptions(max_rows=max_rows), exchange=exchange)


def _needed() -> Needed:
    """What servers, timeline, waterfall and the list of exchanges read."""
    bars = waterfall_rows.needed((), "latency_ms")
    columns = [*EXCHANGES, *latency.needed("server", "latency_ms"), *(bars["exchanges"].columns or ())]
    return {**bars, "exchanges": TableSlice(list(dict.fromkeys(columns))), "transfers": TableSlice(("stream",))}
