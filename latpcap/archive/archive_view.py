"""`ArchiveView`: the stored tables of many captures as one, with streams and exchanges numbered in one series.

Findings, answers, latencies and pictures are computed from them as from a capture's tables. In results, numbers of
streams and exchanges are again those of their own capture, with its file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.answers.text import Text
from latpcap.answers.types import OneExchange, Overall
from latpcap.answers.why import EVERYTHING, Question, Why
from latpcap.archive import sites
from latpcap.archive.dataset import Stored
from latpcap.findings import FinderTables
from latpcap.findings.pushes import COLUMNS, Pushed
from latpcap.format import count, shortest
from latpcap.lazy import ds, pa, pc
from latpcap.options import Scale, TableName
from latpcap.tables import CAPTURE_BITS, LINKS, as_exchanges, in_order, of_rows, of_stretches
from latpcap.user_waits.servers import without_site
from latpcap.views.answer_columns import Causes, Exchanges, requests
from latpcap.views.latency import length, merged
from latpcap.views.view import View

if TYPE_CHECKING:
    from latpcap.archive.selection import Selection
    from latpcap.findings.schema import Finding
    from latpcap.plot.timeline import Timeline

_STREAM = re.compile(r"tcp\.stream eq (\d+)")
_MAX_CAPTURE_NS = 366 * 86_400 * 10**9
"""Upper bound on the duration of a capture: one with a first packet of 1970 spans decades."""
_MARKS = ("server", "server_port", "server_wscale", "server_sack")
"""Columns of streams that distinguish machines."""


class ArchiveView(View):
    """The tables of several captures as one. `events` is empty: it is never loaded as a whole."""

    damage: list[str]
    display_filter: str | None = None

    def __init__(
        self,
        stored: Stored,
        rows: list[dict[str, Any]],
        scope: Selection,
        dataset: Callable[[str], ds.Dataset],
        apart: sites.Sites = "auto",
    ):
        self._stored, self._rows, self._scope, self._dataset, self._apart = stored, rows, scope, dataset, apart
        self._tables: dict[str, pa.Table] = {}
        self.name = f"{stored.name} ({len(rows):,} captures{scope})" if len(rows) != 1 else rows[0]["files"][0]
        self.frames = sum(row["frames"] for row in rows)
        self.damage = [f"{row['files'][0]}: only a part of it could be read" for row in rows if row["damaged"]]

    @property
    def captures(self) -> Sequence[dict[str, Any]]:
        """The rows of `captures`."""
        return self._rows

    @property
    def unfiltered(self) -> ArchiveView:
        """Itself: results have no display filter."""
        return self

    @property
    def title(self) -> str:
        """The name of the results."""
        return self.name

    @property
    def _files(self) -> Sequence[str]:
        return [row["files"][0] for row in self._rows]

    @property
    def _start_ns(self) -> int:
        return min((row["first"] for row in self._rows if row["first"] is not None), default=0)

    @property
    def seconds(self) -> float:
        """The seconds that the captures cover together; gaps between them and overlaps are not counted."""
        spans = [(row["first"], row["last"]) for row in self._rows if row["first"] is not None]
        steady = [span for span in spans if span[1] - span[0] < _MAX_CAPTURE_NS]  # longer: the clock was set meanwhile
        return length(merged(steady or spans))

    def arrow(self, name: TableName) -> pa.Table:
        """Return a table, with streams and exchanges numbered in one series; KeyError for a wrong name."""
        if name == "findings":
            return self._findings()
        if name not in self._tables:
            self._tables[name] = self._load(name)
        return self._tables[name]

    def _load(self, name: str) -> pa.Table:
        """Return a table of the captures, or of the slice, in the order of its keys."""
        if name == "events":
            return self._stored.empty("events")
        limited = self._scope.is_limited
        if name == "streams" and limited:  # also streams that began earlier and have an exchange in the slice
            table = self._numbered(self._read_whole("streams"))
            has_exchange = pc.is_in(table["stream"], value_set=self.arrow("exchanges")["stream"].combine_chunks())
            begun = self._numbered(self._dataset("streams").to_table())["stream"]
            return table.filter(pc.or_(has_exchange, pc.is_in(table["stream"], value_set=begun.combine_chunks())))
        if name == "causes" and limited:
            table = self._numbered(self._read_whole("causes"))
            table = of_rows(table, {link: self.arrow(linked_table)[link] for link, linked_table in LINKS.items()})
        else:
            table = self._numbered(self._dataset(name).to_table() if limited else self._read_whole(name))
        key = {"exchanges": "exchange", "streams": "stream"}.get(name)
        table = table.unify_dictionaries()
        if key is not None and not spill.is_sorted(arrays.numbers(table, key)):
            table = table.sort_by(key)
        elif name == "causes":
            table = in_order(table)
        return table

    def _read_whole(self, name: str) -> pa.Table:
        return self._stored.read(name, [row["capture"] for row in self._rows])

    def pieces(self, name: TableName, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield some columns of a table, pack by pack in no order; a slice in one piece."""
        if self._scope.is_limited:
            yield self.arrow(name).select(columns).combine_chunks()
            return
        for piece in self._stored.pieces(name, [row["capture"] for row in self._rows], columns):
            yield self._numbered(piece).unify_dictionaries().combine_chunks()

    @cached_property
    def sites(self) -> sites.Apart | None:
        """The site of each capture, where sites have their own private addresses; None where there is one network."""
        captures = [row["capture"] for row in self._rows]
        kept = ("capture", *_MARKS)
        pieces = [piece.select(kept) for piece in self._stored.pieces("streams", captures, _MARKS)]
        return sites.split(self._rows, pa.concat_tables(pieces), self._apart) if pieces else None

    @cached_property
    def _begins(self) -> list[int]:
        """The number of each capture's first stream, in one series."""
        begins = [0]
        for row in self._rows:
            begins.append(begins[-1] + row["streams"])
        return begins

    def _numbered(self, table: pa.Table) -> pa.Table:
        """Return the table with numbers that are unique over all captures, without the column `capture`."""
        names = arrays.strings([row["capture"] for row in self._rows])
        capture_index = pa.chunked_array(
            [
                pc.take(pc.index_in(chunk.dictionary, value_set=names), chunk.indices)
                for chunk in table["capture"].chunks
            ],
            pa.int32(),
        )
        table = table.drop_columns(["capture"])
        if self.sites is not None:
            table = sites.zoned(table, capture_index.to_numpy(), self.sites.names)
        if "stream" in table.column_names:
            first_streams = pc.take(arrays.integers(self._begins, "uint32"), capture_index)
            table = _replaced(table, "stream", pc.add(table["stream"], first_streams))
        for link in (*LINKS, "lookup"):
            if link in table.column_names:
                first_keys = arrays.integers([i << CAPTURE_BITS for i in range(len(self._rows))], "uint64")
                table = _replaced(table, link, pc.add(table[link], pc.take(first_keys, capture_index)))
        return table

    @cached_property
    def _summed(self) -> Summed:
        return Summed(self)

    @property
    def kept(self) -> FinderTables:
        """The tables that findings read, with few columns: stretches and their causes."""
        return self._summed.kept

    def found(self) -> pa.Table:
        """Return the findings over all captures, with the files of their streams."""
        table = self.arrow("findings")
        rows = [self._local(row) for row in table.to_pylist()]
        schema = table.schema
        for name in ("worst_file", "typical_file", *(("site",) if self.sites is not None else ())):
            schema = schema.append(pa.field(name, pa.string()))
        return pa.Table.from_pylist(rows, schema=schema)

    @cached_property
    def _shortest(self) -> dict[str, str]:
        """The short name of each capture's first file; files often have the same name in several folders."""
        paths = [row["files"][0] for row in self._rows]
        return dict(zip(paths, shortest(paths), strict=True))

    def locate(self, stream: int) -> tuple[dict[str, Any], int]:
        """Return the capture of a stream, and the stream's number in it."""
        from bisect import bisect_right

        index = bisect_right(self._begins, stream) - 1
        return self._rows[index], stream - self._begins[index]

    def _local(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a finding, or a case of one, with the numbers of its own capture and the capture's file."""
        out = dict(row)
        if self.sites is not None and "server" in out:
            out["site"] = sites.site_of(out["server"])
            out |= {name: without_site(out[name]) for name in ("server", "client") if out.get(name)}
        for prefix in ("worst_", "typical_", ""):
            stream = out.get(f"{prefix}stream")
            if stream is not None:
                capture, out[f"{prefix}stream"] = self.locate(stream)
                out[f"{prefix}file"] = capture["files"][0]
            exchange = out.get(f"{prefix}exchange")
            if exchange is not None:
                out[f"{prefix}exchange"] = exchange & ((1 << CAPTURE_BITS) - 1)
        if isinstance(out.get("filter"), str):
            out["filter"] = _STREAM.sub(lambda m: f"tcp.stream eq {self.locate(int(m[1]))[1]}", out["filter"])
        return out

    def why(self, question: Question = EVERYTHING) -> ArchiveWhy:
        """Return the answer over all captures."""
        answer = Why.of(self._summed, self._summed, question=replace(question, quoted=self._quoted))
        text = answer.text.mapped(lambda part: _STREAM.sub(lambda m: self._named(int(m[1])), part))
        data = answer.to_dict()
        for name in ("findings", "events"):
            data[name] = [self._local(row) for row in data.get(name, [])]
        if "typical" in data:
            data["typical"] = self._local(data["typical"])
        if data.get("slow", {}).get("worst"):
            data["slow"] = {**data["slow"], "worst": self._local(data["slow"]["worst"])}
        data["captures"] = len(self._rows)
        if self.sites is not None:
            data["sites"] = self.sites.distinct
            several = "sites_folders" if self.sites.by == "folder" else "sites_captures"
            text = text.with_line("sites", words.say(several, n=len(data["sites"])))
        data["failed"] = [str(f) for f in self._stored.failed]
        if failed := data["failed"]:
            text = text.with_line(
                "failed", f"{count(len(failed), 'file')} not in the results; failed says which, and why"
            )
        return ArchiveWhy(answer.data, data, text, self)

    def located(self, finding: Finding) -> tuple[str, Finding]:
        """Return the file of a finding's evidence, and the finding with its numbers in that file."""
        named = _STREAM.fullmatch(finding.filter or "")
        streams = [int(named[1]) if named else None, finding.typical_stream, finding.worst_stream]
        stream = next((number for number in streams if number is not None), None)
        local = self._local({"typical_exchange": finding.typical_exchange, "filter": finding.filter})
        return self.name if stream is None else self.locate(stream)[0]["files"][0], replace(finding, **local)

    def _quoted(self, stream: int, frames: Sequence[int]) -> pa.Table:
        """Return the few stored events that an answer quotes, of one capture; none where events were not stored."""
        capture, _ = self.locate(stream)
        return self._stored.events(capture["capture"], frames)

    def timeline(self, *, scale: Scale = "auto") -> Timeline:
        """Draw as `Capture.timeline`; keep only the stored events that it draws."""
        from latpcap.plot.timeline import COLUMNS, MARKED, Timeline, is_marked

        exchanges = pa.concat_tables(list(self.pieces("exchanges", COLUMNS)) or [self.arrow("exchanges")])
        marked = [self._stored.empty("events").select(MARKED)]
        for batch in self._dataset("events").to_batches(columns=list(MARKED)):
            piece = pa.Table.from_batches([batch])
            marked.append(piece.filter(is_marked(piece)))
        events = pa.concat_tables(marked, promote_options="permissive")
        return Timeline.from_tables(exchanges, events, title=self.title, start_ns=self._start_ns, scale=scale)

    def _stream_name(self, stream: int) -> str:
        """Return the name of a stream in pictures: its capture, and its number there."""
        capture, number = self.locate(stream)
        return f"{self._shortest[capture['files'][0]]} {number}"

    def _named(self, stream: int) -> str:
        capture, number = self.locate(stream)
        file = self._shortest[capture["files"][0]]
        other_files = len(capture["files"]) - 1
        return f"{file}{f' and {other_files} more' if other_files else ''}, tcp.stream eq {number}"


class Summed:
    """Captures as one, for their answer only: few columns of `exchanges` and `causes`, all other tables.

    They are read pack by pack, and take a fraction of the memory of full tables.
    """

    display_filter: str | None = None

    def __init__(self, view: ArchiveView):
        self._view = view
        self.name, self.title, self.frames, self.seconds = view.name, view.title, view.frames, view.seconds
        self.damage = view.damage
        self.called = view.name if len(view.captures) != 1 else None
        """The name in an answer; None: the file's name. (A slice's pattern may look like a path.)"""
        exchanges, causes, pushed = _rows(view)
        tables = {name: rows.table() for name, rows in (("stretches", exchanges), ("causes", causes)) if rows.count}
        self._requests = requests(tables["stretches"]) if exchanges.count else None
        self.kept = FinderTables(view.arrow, made=tables, evidence=causes.evidence, pushed=pushed)
        """The tables that findings read, with few columns: stretches and their causes."""
        spill.trim_heap()

    @property
    def unfiltered(self) -> Summed:
        """Itself: results have no display filter."""
        return self

    def arrow(self, name: TableName) -> pa.Table:
        """Return a table; `exchanges` has only its numbers."""
        if name == "exchanges" and self._requests is not None:
            return self._requests
        return self._view.arrow(name)

    def rows(self, name: TableName) -> int:
        """Return the number of rows of a table."""
        return int(self.arrow(name).num_rows)


def _rows(view: ArchiveView) -> tuple[Exchanges, Causes, Pushed]:
    exchanges, causes, pushed = Exchanges(), Causes(), Pushed()
    schema = pa.schema([Stored.schema("exchanges").field(name) for name in Exchanges.COLUMNS])
    for table in view.pieces("exchanges", Exchanges.COLUMNS):
        exchanges.add(table)
    for name in ("connects", "gaps"):
        others = view.arrow(name)
        if name == "gaps":
            pushed.add(name, others)
        if others.num_rows:
            exchanges.add(as_exchanges(others, name, schema))
    for table in view.pieces("pushes", COLUMNS["pushes"]):
        pushed.add("pushes", table)
    for table in view.pieces("causes", (*LINKS, *Causes.COLUMNS)):
        pushed.add("causes", table)
        causes.add(of_stretches(table))
        spill.release_memory()
    return exchanges, causes, pushed


class ArchiveWhy(Why):
    """The answer over an archive. As `Why`; streams, exchanges and frames are those of the file beside them."""

    def __init__(self, data: Overall | OneExchange, plain: dict[str, Any], text: Text, view: ArchiveView):
        super().__init__(data)
        self._plain, self._text, self._view = plain, text, view

    @property
    def picture(self) -> dict[str, int]:
        """Empty: the captures' bytes are not read again."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers behind the answer, with the files of streams, exchanges and frames."""
        return self._plain

    def _located(self, file: str, finding: Finding) -> tuple[str, Finding]:
        """Return the file of a finding's evidence, and the finding with its numbers in that file."""
        return self._view.located(finding)

    @property
    def text(self) -> Text:
        """The answer in words, with the files of streams, exchanges and frames."""
        return self._text


def _replaced(table: pa.Table, name: str, values: Any) -> pa.Table:
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, values.cast(field.type))
