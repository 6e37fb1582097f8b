"""`Results`: what `batch` wrote, as tables over all captures, and the answers made of them.

Only the small table of captures is read at once; other tables are pyarrow data sets until rows are needed. Streams and
exchanges are numbered within their capture: (`capture`, `stream`) and (`capture`, `exchange`) are the keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from latpcap.archive import layout, stored_findings
from latpcap.archive.selection import Selection
from latpcap.archive.sites import ZONE, Sites, checked
from latpcap.format import count
from latpcap.lazy import ds, pa, pc, pd, pq
from latpcap.options import Group, Scale
from latpcap.reading import locations
from latpcap.tables import card, signed, sql, to_pandas, to_polars

if TYPE_CHECKING:
    import datetime as dt

    import polars as pl

    from latpcap.answers.why import Why
    from latpcap.archive.archive_view import ArchiveView
    from latpcap.archive.dataset import Stored
    from latpcap.archive.model import Failure
    from latpcap.plot.timeline import Timeline
    from latpcap.plot.waterfall import Waterfall
    from latpcap.views.latency import Latency

    Instant: TypeAlias = str | dt.datetime | pd.Timestamp
    Filter: TypeAlias = ds.Expression | list[Any] | None

TABLES = layout.TABLES
COMPUTED = ("waits", "actions", "groups")
"""Tables that are computed from the stored ones."""
READABLE = (
    "server", "server_port", "cause", "owner", "grade", "exchanges", "of_exchanges", "total_ms", "median_ms",
    "of_p50_ms", "of_p99_ms", "fix", "text", "filter", "typical_file",
)  # fmt: skip
"""The columns of `findings` that `Results.findings` shows."""
_T = TypeVar("_T")


def is_results(location: object) -> bool:
    """Return whether a path or URL has the results of a batch."""
    if not isinstance(location, (str, os.PathLike)):
        return False
    path = os.fspath(location)
    if not locations.is_url(path):
        return os.path.isdir(os.path.join(path, layout.TASKS))
    try:
        return locations.look(path).kind != "file" and bool(locations.listing(locations.join(path, layout.TASKS)))
    except OSError:
        return False


class ResultTable:
    """One table over all captures of the results; reads nothing until rows are taken."""

    def __init__(self, results: Results, name: str):
        self.name = name
        self._results = results

    @property
    def dataset(self) -> ds.Dataset:
        """The table as a pyarrow data set; the column `capture` is the partition."""
        return self._results.dataset(self.name)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.dataset.schema.names)

    def count(self, filter: Filter = None) -> int:
        """Return the number of rows; `filter` as in `to_arrow`."""
        return int(self.dataset.count_rows(filter=_expression(filter)))

    def to_arrow(self, filter: Filter = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return rows as a pyarrow.Table. Integers are int64, so that differences do not wrap.

        `filter` is a pyarrow.dataset expression (`ds.field("latency_ms") > 1000`) or a list in pandas' form
        (`[("latency_ms", ">", 1000)]`); row groups that cannot match are not read.
        """
        rows = self.dataset.to_table(filter=_expression(filter), columns=None if columns is None else list(columns))
        return signed(rows)

    def to_pandas(self, filter: Filter = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return rows as a data frame. Arguments as in `to_arrow`, column types as in `Capture`."""
        return to_pandas(self.to_arrow(filter, columns))

    def to_polars(self, filter: Filter = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return rows for polars. Arguments as in `to_arrow`; ImportError where polars is not installed."""
        return to_polars(self.to_arrow(filter, columns))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export all rows by Arrow's protocol."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_") or name.endswith("__")]

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        return f"{self.name} of {self._results}: {count(self.count(), 'row')} of {count(len(self.columns), 'column')}"


def _expression(given: Filter) -> Any:
    if isinstance(given, list):
        return pq.filters_to_expression(given)
    return given


class Results:
    """The results of a batch: tables and answers over all captures.

    `events`, `streams`, `exchanges`, `connects`, `pushes`, `gaps`, `causes`, `transfers`, `evidence`, `lookups`,
    `probes`, `issues` and `captures` are `ResultTable`s; `slice` limits all of them and the answers.
    `waits`, `actions` and `groups` are computed from them. `why`, `findings` and `latency` never read `events`.
    """

    events: ResultTable
    streams: ResultTable
    exchanges: ResultTable
    connects: ResultTable
    pushes: ResultTable
    gaps: ResultTable
    causes: ResultTable
    evidence: ResultTable
    transfers: ResultTable
    lookups: ResultTable
    probes: ResultTable
    issues: ResultTable
    captures: ResultTable

    def __init__(self, stored: Stored, scope: Selection | None = None, sites: Sites = "auto"):
        self._stored = stored
        self._scope = scope or Selection()
        self._apart = checked(sites)
        self._rows = [row for row in stored.captures if self._scope.has_row(row)]
        self._view: ArchiveView | None = None
        for name in TABLES:
            setattr(self, name, ResultTable(self, name))

    def slice(
        self,
        *,
        time: tuple[Instant | None, Instant | None] | None = None,
        server: str | None = None,
        file: str | None = None,
    ) -> Results:
        """Return the part of a time, a server or some files. Limits add up when slices are sliced.

        `time` is (from, to), to excluded: exchanges, streams and pieces that begin then, events of then; text without
        a zone is UTC. `server` is an address, or address:port. `file` is a name, or a pattern with `*`, of a
        capture's file, with or without its folder. ValueError for a time or a server that cannot be read.
        """
        return Results(self._stored, self._scope.narrowed(time, server, file), self._apart)

    def dataset(self, name: str) -> ds.Dataset:
        """Return a table as a pyarrow data set of all its files; KeyError for a wrong name."""
        if name not in TABLES:
            raise KeyError(f"no table {name!r}; there are {', '.join(TABLES)}")
        rows = self._stored.dataset(name, [row["capture"] for row in self._rows])
        limits = self._scope.expression(name, rows.schema.names, self._stored, self._rows)
        return rows if limits is None else rows.filter(limits)

    def to_arrow(self, name: str = "exchanges") -> pa.Table:
        """Return a table over all captures. Integers are int64; KeyError for a wrong name.

        "findings" has every column, as `Capture.findings`, and `worst_file` and `typical_file`: the captures of the
        streams and frames; `site`, where private addresses of several sites are counted apart.
        """
        if name == "findings":
            return signed(self._found())
        return self._computed(name) if name in COMPUTED else signed(self.dataset(name).to_table())

    def to_pandas(self, name: str = "exchanges") -> pd.DataFrame:
        """Return a table as a data frame, with all its columns; KeyError for a wrong name."""
        return to_pandas(self.to_arrow(name))

    def to_polars(self, name: str = "exchanges") -> pl.DataFrame:
        """Return a table for polars; ImportError where polars is not installed."""
        return to_polars(self.to_arrow(name))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the exchanges by Arrow's protocol."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def sql(self, query: str) -> pd.DataFrame:
        """Query all captures in SQL, as `Capture.sql`; tables that the query names are read whole."""
        return sql(query, {name: partial(self.to_arrow, name) for name in (*TABLES, *COMPUTED, "findings")})

    def __reduce__(self) -> tuple[Callable[..., Results], tuple[str, Selection, Sites]]:
        return _opened, (self._stored.location, self._scope, self._apart)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_") or name.endswith("__")]

    @property
    def failed(self) -> list[Failure]:
        """The files that are not in the results, and why: captures that the last run could not read, and files of the
        results that are damaged, missing or of another version."""
        return list(self._stored.failed)

    def _answered(self, compute: Callable[[ArchiveView], _T]) -> _T:
        """Compute something over all readable captures. Packs found damaged meanwhile are moved to `failed`."""
        from latpcap.archive.checked import DamagedError

        while True:
            try:
                return compute(self._together())
            except DamagedError as problem:
                self._stored.lose(problem)
                self._rows = [row for row in self._stored.captures if self._scope.has_row(row)]
                self._view = None

    @property
    def _is_storable(self) -> bool:
        """Whether findings are stored for these captures: all of many."""
        return self._scope == Selection() and len(self._rows) >= stored_findings.MIN_CAPTURES

    def _found(self) -> pa.Table:
        """Return the findings: those stored by the batch, or computed."""
        if self._is_storable:
            findings = stored_findings.find(*self._stored.whole, self._apart)
            if findings is not None:
                return findings
        return self._answered(lambda view: view.found())

    def keep_findings(self) -> bool:
        """Store the findings with the tables, for later readers; False for few captures, or for more exchanges than a
        batch should compute them from. OutputError where they cannot be written.
        """
        exchanges = sum(row["exchanges"] for row in self._rows)
        if not self._is_storable or exchanges > stored_findings.MAX_EXCHANGES:
            return False
        if stored_findings.find(*self._stored.whole, self._apart) is None:
            table = self._answered(lambda view: view.found())
            stored_findings.store(*self._stored.whole, self._apart, table)  # without packs found damaged meanwhile
        return True

    @property
    def findings(self) -> pd.DataFrame:
        """What is wrong in the archive, who owns it, how certain that is, and what would mend it: one row per server
        and cause.

        As `Capture.findings`, over all captures, in 15 columns: `server, server_port, cause, owner, grade, exchanges,
        of_exchanges, total_ms, median_ms, of_p50_ms, of_p99_ms, fix, text, filter, typical_file` (the capture that the
        filter is for). `to_pandas("findings")` has all columns. Where private addresses are apart by site, `server` has
        the site after the address, as `why` has it ("10.0.0.2%berlin"); there `server` and `site` are two columns.
        """
        table = self.to_arrow("findings")
        if "site" in table.column_names:
            zone = pc.fill_null(pc.binary_join_element_wise("", table["site"], ZONE), "")
            server = pc.binary_join_element_wise(table["server"], zone, "")
            table = table.set_column(table.schema.get_field_index("server"), "server", server)
        return to_pandas(table.select(READABLE))

    @property
    def waits(self) -> pd.DataFrame:
        """As `Capture.waits`, over all captures, with the column `capture`.

        Computed from the other tables on each use, one capture after the other; reads `events`.
        """
        return to_pandas(self._computed("waits"))

    @property
    def actions(self) -> pd.DataFrame:
        """As `Capture.actions`, over all captures, with the column `capture`: (`capture`, `action`) is the key.

        Computed as `waits` is.
        """
        return to_pandas(self._computed("actions"))

    @property
    def groups(self) -> pd.DataFrame:
        """As `Capture.groups`, over all captures, with the column `capture`."""
        return to_pandas(self._computed("groups"))

    def _computed(self, name: str) -> pa.Table:
        """Return one of the tables that are computed from the others."""
        from latpcap.user_waits import groups, waits

        def compute(tables: Mapping[str, pa.Table]) -> pa.Table:
            if name == "groups":
                return groups.table(groups.find_groups(tables), tables)
            actions = waits.find_actions(tables)
            return waits.tables(actions, waits.beside(tables, actions))[COMPUTED.index(name)]

        reads = groups.READS if name == "groups" else waits.READS
        empty: dict[str, pa.Table] = {read: self.dataset(read).schema.empty_table() for read in reads}
        parts = [compute(empty).append_column("capture", pa.array([], pa.string()))]
        for row in self._rows:
            is_of_capture = ds.field("capture") == row["capture"]
            tables: dict[str, pa.Table] = {
                read: self.dataset(read).to_table(filter=is_of_capture).unify_dictionaries() for read in reads
            }
            if name != "groups":
                tables["transfers"] = tables["transfers"].sort_by([("stream", "ascending"), ("start", "ascending")])
            table = compute(tables)
            parts.append(table.append_column("capture", pa.array([row["capture"]] * table.num_rows, pa.string())))
        return signed(pa.concat_tables(parts))

    def latency(self, by: Group | Sequence[Group] | None = None, **more: Any) -> Latency:
        """Summarise how long the requests took, as `Capture.latency`; also by "capture" and "folder".

        Streams and exchanges are numbered within their capture: group by both (`by=["capture", "stream"]`).
        """
        columns = (by,) if isinstance(by, str) else tuple(by or ())
        if {"stream", "exchange"} & set(columns) and "capture" not in columns and len(self._rows) > 1:
            raise ValueError('streams are numbered within their capture: group by ["capture", "stream"]')
        return self._answered(lambda view: view.latency(by, **more))

    def waterfall(self, **more: Any) -> Waterfall:
        """Draw where each exchange's time went, over all captures; arguments as in `Capture.waterfall`."""
        return self._answered(lambda view: view.waterfall(**more))

    def timeline(self, *, scale: Scale = "auto") -> Timeline:
        """Draw when requests were slow and what happened on the wire, over all captures, as `Capture.timeline`.

        It reads `events` where they were stored, and keeps what it draws.
        """
        return self._answered(lambda view: view.timeline(scale=scale))

    def why(self, *, slow_ms: float | None = None, server: str | None = None, top: int | None = None) -> Why:
        """Explain why requests were slow, over all captures, as `Capture.why`, with the files of streams and frames."""
        from latpcap.answers.why import Question

        return self._answered(lambda view: view.why(Question(slow_ms, server, top)))

    def to_html(self, path: str | os.PathLike[str], *, lang: str | None = None) -> None:
        """Write one HTML page, as `Capture.to_html`, without flow graphs, which need a capture."""
        from latpcap import page, words

        with words.language(lang):
            exchanges = self.dataset("exchanges").to_table(columns=page.EXCHANGES)
            page.write(path, page.of_results(self, exchanges))

    def _together(self) -> ArchiveView:
        if self._view is None:
            from latpcap.archive.archive_view import ArchiveView

            self._view = ArchiveView(self._stored, self._rows, self._scope, self.dataset, self._apart)
        return self._view

    @property
    def place(self) -> str:
        """The folder or URL of the results."""
        return str(self._stored.location)

    @property
    def title(self) -> str:
        """A short name: the folder, the number of captures and the limits."""
        return f"{self._stored.name}: {count(len(self._rows), 'capture')}{self._scope}"

    def __str__(self) -> str:
        return self.title

    def __repr__(self) -> str:
        totals = {name: sum(row[name] for row in self._rows) for name in ("frames", "streams", "exchanges")}
        damaged = sum(row["damaged"] for row in self._rows)
        text = f"{self}, {count(totals['frames'], 'frame')}, {count(totals['streams'], 'TCP stream')}, "
        text += count(totals["exchanges"], "exchange")
        if damaged:
            text += f"; {damaged:,} damaged"
        return text + (f"; {count(len(self.failed), 'file')} failed" if self.failed else "")

    def _repr_html_(self) -> str:
        return card(repr(self), str(self.why()))


def _opened(location: str, scope: Selection, sites: Sites) -> Results:
    from latpcap.archive.dataset import Stored

    return Results(Stored(location), scope, sites)


def open_results(place: str | os.PathLike[str], *, check: bool = False, sites: Sites = "auto") -> Results:
    """Return the results that `batch` wrote to this folder or URL; CaptureError where there are none."""
    from latpcap.archive.dataset import Stored

    results = Stored(os.fspath(place))
    if check:
        results.check()
    return Results(results, sites=sites)
