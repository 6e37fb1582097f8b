"""`AnswerView`: a capture read for its answer only: no events, and few columns of the other tables.

`latpcap why FILE` reads captures so. The few segments that an answer quotes are read again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from latpcap import _core, arrays, spill
from latpcap.answers.why import Question, Why
from latpcap.findings import FinderTables
from latpcap.lazy import np, pa
from latpcap.reading import links, slices, sources
from latpcap.reading.drain import Portion, portions, taken
from latpcap.reading.drain import table as as_table
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog
from latpcap.tables import LINKS
from latpcap.user_waits.segments import COLUMNS as EVENTS
from latpcap.user_waits.segments import Segments
from latpcap.views import recording
from latpcap.views.answer_columns import Causes, Exchanges, Folded, Streams, requests

if TYPE_CHECKING:
    from latpcap.options import TableName


_ENDS = ("client", "client_port", "server", "server_port")
_AT_END: tuple[TableName, ...] = ("evidence", "transfers", "lookups", "probes", "issues")
"""Small tables, which are kept whole."""
_AFTER_LOOKUP = ("connect", "first_frame", "dns_ms", "dns_name")
"""Columns kept of connects that waited for a DNS lookup; stretches have the columns that all connects need."""


def read(source: sources.Source, *, keylog: Keylog | None = None, progress: bool = False) -> AnswerView:
    """Read a capture as `latpcap.read` does, keeping what its answer needs; other tables are read again on use."""
    feed = Feed(source, keylog)
    rows = _Rows()
    for portion in portions(feed, skip_tables=_AT_END, progress=progress):
        rows.add(portion)
    view = AnswerView(feed, rows, keylog)
    del rows
    spill.trim_heap()
    return view


class _Rows:
    """The columns kept of the growing tables."""

    def __init__(self) -> None:
        self.segments, self.folded, self.streams = Segments(tuple), Folded(), Streams()
        self.after_lookup: list[pa.Table] = []
        self.counts: dict[TableName, int] = dict.fromkeys(("connects", "gaps"), 0)

    def add(self, portion: Portion) -> None:
        """Add the rows of one portion."""
        self.folded.add("exchanges", _whole(portion["exchanges"]))
        for name in self.counts:
            portion_rows = _whole(portion[name])
            self.folded.add(name, portion_rows)
            self.counts[name] += portion_rows.num_rows
            if name == "connects" and portion_rows["dns_ms"].null_count < portion_rows.num_rows:
                self.after_lookup.append(portion_rows.select(_AFTER_LOOKUP).filter(portion_rows["dns_ms"].is_valid()))
        self.folded.add("pushes", _whole(portion["pushes"]))
        causes = _whole(portion["causes"], (*LINKS, *Causes.COLUMNS))
        events = _whole(portion["events"], EVENTS)
        self.folded.add("causes", causes)
        self.segments.add(events)
        streams = _whole(portion["streams"], Streams.COLUMNS)
        if streams.num_rows:
            self.streams.add(streams)
        spill.release_memory()


def _whole(rows: _core.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Return some columns (None: all), each as one chunk: work per chunk does not depend on its rows."""
    table = as_table(rows)
    return (table if columns is None else table.select(columns)).combine_chunks()


class AnswerView(recording.Recording):
    """The tables that a capture's answer needs. `events` and `causes` are empty, `exchanges` has only its numbers.
    `streams`, `connects` and `gaps` are read again when they are used.
    """

    def __init__(self, feed: Feed, rows: _Rows, keylog: Keylog | None):
        super().__init__(feed.name, feed.analysis, feed.broken, origins=feed.origins, keylog=keylog)
        del feed.analysis  # frees the state of all streams
        spill.trim_heap()
        rows.segments.again = lambda: self._reread("events")
        self._counts = {"streams": rows.streams.count, **rows.counts}
        few: dict[str, Exchanges | Causes | Streams]
        few = {"stretches": rows.folded.exchanges, "causes": rows.folded.causes, "streams": rows.streams}
        tables = {name: columns.table() for name, columns in few.items() if columns.count}
        if rows.counts["connects"]:
            tables["connects"] = (
                pa.concat_tables(rows.after_lookup).sort_by("connect") if rows.after_lookup else pa.table({})
            )
        self.kept = FinderTables(self.arrow, rows.segments, tables, rows.folded.causes.evidence, rows.folded.pushed)
        """The tables that findings read, with few columns: stretches and their causes, streams and connects."""
        if "stretches" in tables:
            self._arrow["exchanges"] = requests(tables["stretches"])

    def arrow(self, name: TableName) -> pa.Table:
        """Return a table, as `Recording.arrow`."""
        if self._counts.get(name) and name not in self._arrow:
            self._raw[name] = pa.concat_tables(self._reread(name))
        return super().arrow(name)

    def rows(self, name: TableName) -> int:
        """Return the number of rows, as `Recording.rows`."""
        return self._counts[name] if name in self._counts else super().rows(name)

    def why(self, *, slow_ms: float | None = None, server: str | None = None, top: int | None = None) -> Why:
        """Answer as `Capture.why`."""
        from latpcap.side_sources import processes

        answer = Why.of(self, self, question=Question(slow_ms, server, top, self._quoted))
        return answer.with_beside(processes.name_processes(self, lambda: pa.concat_tables(self._reread("events"))))

    def _quoted(self, _stream: int, frames: Sequence[int]) -> pa.Table:
        """Return the few events that an answer quotes, analysed from these packets alone; no rows where the result
        depends on other packets.
        """
        packets = list(self.records(frames))
        if len({(packet.link, packet.interface) for packet in packets}) != 1:
            return self.arrow("events")
        file, first_ns = io.BytesIO(), min(packet.time_ns for packet in packets)
        write = slices.pcap(file, nanos=True, link=packets[0].link)
        for packet in packets:
            write(packet._replace(time_ns=packet.time_ns - first_ns))
        analysis = _core.Analysis(links.read)
        analysis.push(file.getvalue())
        analysis.finish()
        rows = taken(analysis)
        events, swapped = _whole(rows["events"]), self._has_swapped_sides(_whole(rows["streams"]))
        if swapped is None or events.num_rows != len(frames):
            return self.arrow("events")
        columns = {
            "frame": np.array(sorted(frames), np.uint64),
            "from_client": arrays.numbers(events, "from_client") != swapped,
        }
        for name, values in columns.items():
            events = events.set_column(events.schema.get_field_index(name), name, arrays.column(values))
        return events

    def _has_swapped_sides(self, streams: pa.Table) -> bool | None:
        """Return whether the client of this one stream is the server in the capture. None where it is neither."""
        if streams.num_rows != 1:
            return None
        (ends,) = arrays.looked_up(streams, "stream", arrays.numbers(streams, "stream"), _ENDS)
        kept = self.kept["streams"]
        for client, server, swapped in ((0, 2, False), (2, 0, True)):
            wanted = ends[client], ends[client + 1], ends[server], ends[server + 1]
            same_ports = (arrays.numbers(kept, _ENDS[1]) == wanted[1]) & (arrays.numbers(kept, _ENDS[3]) == wanted[3])
            packet_ends = ((arrays.taken(kept, name, same_ports.nonzero()[0]).to_pylist()) for name in _ENDS)
            if wanted in zip(*packet_ends, strict=True):
                return swapped
        return None

    def _reread(self, name: TableName) -> Iterator[pa.Table]:
        """Yield the rows of a table, read again. Errors that the first reading had are not reported again."""
        feed = Feed((), self._keylog, reread=self._origins, was_broken=bool(self._broken))
        for portion in portions(feed):
            yield _whole(portion[name])
