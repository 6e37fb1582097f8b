"""What is in this capture?

`read` feeds a capture's bytes to the engine; `Capture` and `Stream` are views over the tables that come out.
pandas and pyarrow are imported when a table is first asked for, not before.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latpcap import _core, sources
from latpcap.errors import CaptureError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from latpcap.diagnosis import Why
    from latpcap.plot.flow import FlowGraph

TABLES = tuple(_core.TABLES)


def read(source: sources.Source) -> Capture:
    """What is in this capture, and why was each request slow?

    `source` is a path, "-" for standard input, bytes, or a binary file object; pcap or pcapng, plain or
    compressed with gzip, zstd, lz4, bz2 or xz. The whole capture is analysed; its tables are held in memory.

    Raises CaptureError when nothing can be read: no such file, no capture, a header that is cut. A capture
    that is damaged further on gives its rows up to the damage; `Capture.issues` says where and why.
    """
    name = sources.name_of(source)
    analysis = _core.Analysis()
    broken: CaptureError | None = None
    try:
        for block in sources.blocks(source):
            analysis.push(block)
    except CaptureError as problem:
        if analysis.frames == 0:
            raise
        broken = problem
    analysis.finish()
    if analysis.refused is not None:
        offset, reason = analysis.refused
        raise CaptureError(name, reason, offset=offset, layer="file")
    return Capture(name, analysis, broken)


class _Tables:
    """The tables as data frames and as Arrow tables; what Capture and Stream share."""

    def arrow(self, name: str) -> pa.Table:
        """Which rows does this table hold? A pyarrow.Table, without a copy.

        `name` is one of "events", "streams", "exchanges", "causes", "evidence", "issues"; KeyError otherwise.
        """
        raise NotImplementedError

    def _frame(self, name: str) -> pd.DataFrame:
        cache: dict[str, pd.DataFrame] = self.__dict__.setdefault("_frames", {})
        if name not in cache:
            cache[name] = _to_pandas(self.arrow(name))
        return cache[name]

    @property
    def events(self) -> pd.DataFrame:
        """What did each TCP segment say and do? One row a segment, in frame order, with Wireshark's facts.

        Relative numbers `seq` and `ack`, durations in ms; null where Wireshark shows nothing.
        """
        return self._frame("events")

    @property
    def streams(self) -> pd.DataFrame:
        """Which TCP connections are there? One row a stream, numbered as Wireshark's tcp.stream."""
        return self._frame("streams")

    @property
    def exchanges(self) -> pd.DataFrame:
        """How long did each request take? One row a request and its answer, with its time in ms by cause.

        `latency_ms` is null where the answer is not complete; `cut_by` says why then.
        """
        return self._frame("exchanges")

    @property
    def causes(self) -> pd.DataFrame:
        """Where did each exchange's time go? Rows that follow each other without gap, to the nanosecond.

        `confidence` from 0.9 on is proven, below it probable. `evidence` lists frames to look up.
        """
        return self._frame("causes")

    @property
    def evidence(self) -> pd.DataFrame:
        """Does Nagle act here, or not? One row a sender and peer, with what was counted for and against."""
        return self._frame("evidence")

    @property
    def issues(self) -> pd.DataFrame:
        """What could not be read or trusted? One row a reason, with its first place and its count."""
        return self._frame("issues")


class Capture(_Tables):
    """What does this capture tell?

    Made by `latpcap.read`. `name` is the file's name as given, `frames` counts every record of the file,
    `format` is "pcap", "pcap (ns)", "pcap (modified)" or "pcapng"; `first_ns` and `last_ns` bound it in ns since
    1970 (None for a capture without packets).
    """

    def __init__(self, name: str, analysis: _core.Analysis, broken: CaptureError | None = None):
        self.name = name
        self.frames = analysis.frames
        self.format = analysis.format
        self.first_ns = analysis.first_ns
        self.last_ns = analysis.last_ns
        self._raw = {table: analysis.take(table) for table in TABLES}
        self._broken = broken
        self._arrow: dict[str, pa.Table] = {}

    def arrow(self, name: str) -> pa.Table:
        """Which rows does this table hold? A pyarrow.Table, without a copy; KeyError for a wrong name."""
        if name not in self._arrow:
            if name not in self._raw:
                raise KeyError(f"no table {name!r}; there are {', '.join(TABLES)}")
            import pyarrow as pa

            table = pa.table(self._raw[name])
            if name == "exchanges":
                table = table.sort_by("exchange")
            elif name == "causes":
                table = table.sort_by([("exchange", "ascending"), ("start", "ascending")])
            elif name == "issues":
                table = self._issues(table)
            self._arrow[name] = table
        return self._arrow[name]

    def _issues(self, table: pa.Table) -> pa.Table:
        """The engine's issues with the file's name, and what went wrong before its bytes reached it."""
        import pyarrow as pa

        if self._broken is not None:
            row = {"kind": "damaged", "offset": self._broken.offset, "layer": self._broken.layer}
            row |= {"reason": self._broken.reason, "count": 1}
            plain = pa.schema([pa.field("kind", pa.string()), *list(table.schema)[1:]])
            plain = pa.schema([f.with_type(pa.string()) if f.name == "layer" else f for f in plain])
            table = pa.concat_tables([table.cast(plain), pa.Table.from_pylist([row], schema=plain)])
        return table.add_column(0, "file", pa.array([self.name] * table.num_rows, pa.string()))

    def stream(self, number: int) -> Stream:
        """What happened on this stream? `number` is Wireshark's tcp.stream; IndexError where there is none."""
        if not 0 <= number < len(self._raw["streams"]):
            have = len(self._raw["streams"])
            raise IndexError(f"no stream {number}: {Path(self.name).name} has {have:,} TCP streams")
        return Stream(self, number)

    def why(self, *, stream: int | None = None, exchange: int | None = None) -> Why:
        """Why were the requests slow, who waited for whom, and which frames show it?

        Prints as at most 15 lines; `to_dict()` has every number of the text. `stream` limits the answer to
        one tcp.stream, `exchange` to one row of `exchanges`; IndexError where there is none.
        """
        from latpcap.diagnosis import Why

        if exchange is not None:
            return Why.of_exchange(self, exchange)
        if stream is not None:
            return Why.of(self, self.stream(stream))
        return Why.of(self, self)

    @property
    def seconds(self) -> float:
        """How long does the capture last? Seconds from its first to its last frame; 0.0 without frames."""
        if self.first_ns is None or self.last_ns is None:
            return 0.0
        return (self.last_ns - self.first_ns) / 1e9

    @property
    def damage(self) -> list[str]:
        """What cost rows? One sentence for each place where the capture is damaged; empty where it is whole."""
        if not len(self._raw["issues"]) and self._broken is None:
            return []
        rows = self.arrow("issues").to_pylist()
        return [_sentence(r) for r in rows if r["kind"] == "damaged"]

    def __repr__(self) -> str:
        streams, exchanges = len(self._raw["streams"]), len(self._raw["exchanges"])
        return (
            f"{Path(self.name).name}: {_count(self.frames, 'frame')}, {_count(streams, 'TCP stream')}, "
            f"{_count(exchanges, 'exchange')}, {self.seconds:.2f} s"
        )

    def _repr_html_(self) -> str:
        return _card(repr(self), str(self.why()))


class Stream(_Tables):
    """What happened on this TCP stream? A view of its capture, limited to one tcp.stream."""

    def __init__(self, capture: Capture, number: int):
        self.capture = capture
        self.number = number
        self._arrow: dict[str, pa.Table] = {}

    def arrow(self, name: str) -> pa.Table:
        """Which rows of this table belong to this stream? A pyarrow.Table; KeyError for a wrong name.

        `evidence` and `issues` are about endpoints and files: they are the whole capture's.
        """
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
        rows = self.arrow("exchanges").select(["exchange", "index"]).to_pylist()
        number = next((r["exchange"] for r in rows if r["index"] == exchange), None)
        if number is None:
            have = _count(len(rows), "exchange")
            raise IndexError(f"no exchange {exchange}: tcp.stream {self.number} has {have}, counted from 0")
        return self.capture.why(exchange=number)

    def flow_graph(self, *, frames: tuple[int, int] | None = None, max_rows: int = 60) -> FlowGraph:
        """Who sent what to whom, and where did the time go? Wireshark's flow graph, with the causes.

        `frames` limits it to a range of frame numbers (both included), `max_rows` its length; what is left
        out is said in the picture. Draws itself in a notebook; `.save("flow.png")` writes PNG, SVG or PDF.
        """
        from latpcap.plot.flow import FlowGraph

        title = f"{Path(self.capture.name).name}, tcp.stream eq {self.number}"
        return FlowGraph.from_tables(
            self.arrow("events"),
            self.arrow("causes"),
            title=title,
            start_ns=self.capture.first_ns or 0,
            frames=frames,
            max_rows=max_rows,
        )

    def __repr__(self) -> str:
        row = self.arrow("streams").to_pylist()[0]
        packets = row["client_packets"] + row["server_packets"]
        ends = f"{row['client']}:{row['client_port']} to {row['server']}:{row['server_port']}"
        return f"tcp.stream {self.number}: {ends}, {_count(packets, 'segment')}, {_count(row['exchanges'], 'exchange')}"

    def _repr_html_(self) -> str:
        return _card(repr(self), str(self.why()))


def _card(title: str, text: str) -> str:
    """A small HTML card; whatever came from the capture is escaped."""
    return (
        '<div style="border:1px solid #c8c8c8;border-radius:4px;padding:8px 12px;background:#fff;color:#222;'
        'max-width:72em"><b>' + html.escape(title) + '</b><pre style="margin:6px 0 0;background:#fff;'
        'color:#222;white-space:pre-wrap">' + html.escape(text) + "</pre></div>"
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _sentence(issue: dict[str, Any]) -> str:
    place = [issue["file"]]
    if issue["offset"] is not None:
        place.append(f"byte {issue['offset']:,}")
    if issue["frame"] is not None:
        place.append(f"frame {issue['frame']:,}")
    return f"{', '.join(place)}: {issue['layer']}: {issue['reason']}"


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    """A plain DataFrame; integers and lists with nulls stay Arrow-backed, so that null is not a float."""
    import pandas as pd
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for field in table.schema:
        column = table[field.name]
        lossy = field.nullable and pa.types.is_integer(field.type)
        if lossy or pa.types.is_list(field.type):
            columns[field.name] = pd.Series(column, dtype=pd.ArrowDtype(field.type))
        elif pa.types.is_dictionary(field.type):
            columns[field.name] = column.unify_dictionaries().to_pandas()
        else:
            columns[field.name] = column.to_pandas()
    return pd.DataFrame(columns)
