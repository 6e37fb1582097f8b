"""What happened on one TCP stream? A view of a capture's tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from latpcap.format import count
from latpcap.tables import SETUP, Tables, card

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.findings.why import Why
    from latpcap.plot.flow import FlowGraph
    from latpcap.plot.timeseq import TimeSequence
    from latpcap.reading.follow import Follow
    from latpcap.views.capture import Capture


class Stream(Tables):
    """What happened on this TCP stream? A view of its capture, limited to one tcp.stream."""

    def __init__(self, capture: Capture, number: int):
        self.capture = capture
        self.number = number
        self._arrow: dict[str, pa.Table] = {}

    @property
    def title(self) -> str:
        """What is this? The file's name and the display filter of the stream."""
        return f"{self.capture.title}, tcp.stream eq {self.number}"

    @property
    def _start_ns(self) -> int:
        return self.capture.first_ns or 0

    def arrow(self, name: str) -> pa.Table:
        """Which rows of this table belong to this stream? A pyarrow.Table; KeyError for a wrong name.

        `evidence` and `issues` are about endpoints and files: they are the whole capture's. `probes` are this
        stream's SYNs, if it never carried data.
        """
        if name == "findings":
            return self._findings()
        if name not in self._arrow:
            import pyarrow as pa
            import pyarrow.compute as pc

            table = self.capture.arrow(name)
            if name == "causes":
                wanted = self.arrow("exchanges")["exchange"]
                table = table.filter(pc.is_in(table["exchange"], value_set=wanted.combine_chunks()))
            elif "stream" in table.column_names:
                table = table.filter(pc.equal(table["stream"], pa.scalar(self.number, pa.uint32())))
            self._arrow[name] = table
        return self._arrow[name]

    def why(self, *, exchange: int | None = None) -> Why:
        """Why were this stream's requests slow? `exchange` counts from 0 on this stream (`index`)."""
        if exchange is None:
            return self.capture.why(stream=self.number)
        rows = self.arrow("exchanges").select(["exchange", "index", "protocol", "method"]).to_pylist()
        # a pause has its request's index, and a set-up that of the first one
        rows = [r for r in rows if r["protocol"] != SETUP] or [r for r in rows if r["method"] == "connect"]
        number = next((r["exchange"] for r in rows if r["index"] == exchange), None)
        if number is None:
            have = count(len(rows), "exchange")
            raise IndexError(f"no exchange {exchange}: tcp.stream {self.number} has {have}, counted from 0")
        return self.capture.why(exchange=number)

    def flow_graph(
        self,
        *,
        exchange: int | str | None = None,
        frames: tuple[int, int] | None = None,
        time: str = "relative",
        to_scale: bool = False,
        max_rows: int | None = None,
        mark_ms: float = 5.0,
    ) -> FlowGraph:
        """Who sent what to whom, and where did the time go? Wireshark's flow graph, with the causes.

        `exchange` shows one exchange: "worst", "typical", "first" or its number on this stream (`index`). `frames`
        limits the graph to a range of frame numbers (both included). `time` is "relative" (seconds since the capture's
        first frame), "delta" (since the frame before), "delta_displayed" (since the row before), "date" or "epoch".
        `to_scale` gives long gaps room as long as they took; waits of at least `mark_ms` are marked; `max_rows` packets
        are on a page (60; 36 of a PDF), and what is left out is said in the picture. Draws itself in a notebook;
        `.save("flow.png")` writes PNG, SVG, PDF, or tshark's text (.txt). ValueError for options that make no sense,
        IndexError where there is no such exchange.
        """
        from latpcap.views.flows import graph

        return graph(
            self, exchange=exchange, frames=frames, time=time, to_scale=to_scale, max_rows=max_rows, mark_ms=mark_ms
        )

    def follow(self) -> Follow:
        """What did the two ends say, and which frame brought which bytes? Wireshark's "Follow TCP Stream".

        `.text()`, `.hex()` and `.raw()` are what tshark prints, with `frames=True` the frames beside it; `.chunks` are
        the pieces, `.payload(0)` one end's bytes. Of the whole stream, whatever filter its capture has. Reads the
        capture again: CaptureError where that cannot be done.
        """
        from latpcap.reading.follow import follow

        return follow(self.capture, self.number)

    def to_pcap(self, path: str | os.PathLike[str]) -> int:
        """How does this stream reach a colleague? Writes its segments as `Capture.to_pcap` does; gives how many."""
        from latpcap.reading.slices import write_slice

        about = f"{self.title}; comments have its frame numbers"
        return write_slice(self.capture, self, path, about)

    def time_sequence(
        self,
        *,
        sender: str | None = None,
        frames: tuple[int, int] | None = None,
        panels: Sequence[str] = ("sequence", "flight", "rtt", "throughput"),
        mark_ms: float = 5.0,
    ) -> TimeSequence:
        """How did the bytes move, and where did they stand still? tcptrace's time-sequence graph, with the stalls.

        `sender` is "client" or "server" (default: who sends more bytes), `frames` a range of frame numbers, `panels`
        some of "sequence", "flight" (bytes in flight), "rtt" and "throughput"; waits of at least `mark_ms` are marked
        in the colour of their cause. ValueError for another word, or where that side sends no data.
        """
        from latpcap.plot.timeseq import TimeSequence

        return TimeSequence.from_tables(
            self.arrow("events"),
            self.arrow("causes"),
            title=self.title,
            sender=sender,
            frames=frames,
            panels=panels,
            mark_ms=mark_ms,
            start_ns=self._start_ns,
        )

    def __repr__(self) -> str:
        row = self.arrow("streams").to_pylist()[0]
        packets = row["client_packets"] + row["server_packets"]
        ends = f"{row['client']}:{row['client_port']} to {row['server']}:{row['server_port']}"
        return f"tcp.stream {self.number}: {ends}, {count(packets, 'segment')}, {count(row['exchanges'], 'exchange')}"

    def _repr_html_(self) -> str:
        return card(repr(self), str(self.why()), self._folded())
