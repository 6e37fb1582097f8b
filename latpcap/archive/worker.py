"""Analyses a pack of captures and writes its files, in a thread, in another process or on a cluster.

Reads each file once, in blocks; of rotated files the first packets twice. Rows are written to Parquet as they come, so
that memory does not grow with the capture. Each table's file appears complete or not at all; the manifest is written
last.
"""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from latpcap import _core
from latpcap.archive import layout, packfile, packs, rotation
from latpcap.archive.model import Failure, Marker, Options, Outcome, Pack, Part, Task, identity
from latpcap.archive.output import Output
from latpcap.archive.packfile import PackFiles
from latpcap.errors import CaptureError, LatpcapError, OutputError, is_out_of_memory, show_bug
from latpcap.format import escaped, phrase
from latpcap.lazy import pa
from latpcap.reading import keylog as keys
from latpcap.reading import links, locations, sources
from latpcap.reading.drain import TABLES, Portion, taken

if TYPE_CHECKING:
    from latpcap.options import TableName

_HAND_ON_BYTES = 1 << 20
"""Bytes of a capture after which finished rows are taken out of the core."""
_MAX_WAITING = 2
"""Upper bound on the portions of rows that wait for the Parquet writer, which runs beside the core."""
_AT_END: tuple[TableName, ...] = ("evidence", "issues")
"""Tables that are complete only when a capture has ended."""


class Stopped(LatpcapError):  # noqa: N818
    """The work was stopped on request."""


class Watch(Protocol):
    """Receives the progress of the work, and may stop it."""

    @property
    def stopped(self) -> bool:
        """Whether to stop the work."""

    def read(self, file_bytes: int) -> None:
        """Count bytes read from a file."""

    def seen(self, packets: int) -> None:
        """Count packets analysed."""


class _NoWatch:
    stopped = False

    def read(self, file_bytes: int) -> None:
        pass

    def seen(self, packets: int) -> None:
        pass


class _Metered:
    """A file whose bytes are counted and hashed as they are read."""

    def __init__(self, file: BinaryIO, name: str, watch: Watch):
        self.name = name
        self.size = 0
        self._file, self._watch = file, watch
        self._hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        if self._watch.stopped:
            raise Stopped(f"{self.name}: broken off")
        block = self._file.read(size)
        self._hash.update(block)
        self.size += len(block)
        self._watch.read(len(block))
        return block

    def drain(self) -> str:
        """Return the hash of the whole file, also where its content was given up before its end."""
        while self.read(sources.BLOCK_BYTES):
            pass
        return self._hash.hexdigest()


def analyse(pack: Pack, options: Options, watch: Watch | None = None) -> list[Outcome]:
    """Analyse the files of a pack, and write its tables and manifest.

    Failures of the files are in the outcomes. OutputError where the results cannot be written. If `watch` stops the
    work, the outcomes are those of the tasks before; Stopped if there are none.
    """
    watch = watch or _NoWatch()
    broken: dict[str, str] = {}
    while True:
        try:
            return _attempt(pack, options, watch, broken)
        except _BreakdownError as problem:  # a bug of latpcap: it fails its own task only
            broken[problem.task] = problem.reason


class _BreakdownError(Exception):
    def __init__(self, task: str, problem: Exception):
        self.task = task
        self.reason = reason_of_breakdown(problem)
        super().__init__(self.reason)


def reason_of_breakdown(problem: Exception) -> str:
    """Return the reason of the failures that a bug of latpcap causes; LATPCAP_TRACEBACK=1 shows its traceback, too."""
    show_bug(problem)
    return f"the worker broke down ({type(problem).__name__}: {phrase(problem)})"


def _attempt(pack: Pack, options: Options, watch: Watch, broken: dict[str, str]) -> list[Outcome]:
    """Return the outcomes of a pack's tasks; those in `broken` fail for the reason given there."""
    markers: list[Marker] = []
    output = Output(options.output)
    with PackFiles(output) as files, ThreadPoolExecutor(1, thread_name_prefix="parquet") as writer:
        for task in pack.tasks:
            work = _Work(task, options, files, writer, watch)
            if task.name in broken:
                failures = [Failure(escaped(part.name), broken[task.name]) for part in task.parts]
                markers.append(work.marker(Outcome(task.name, failures=failures)))
                continue
            try:
                outcome = work.analyse()
            except Stopped:
                if not markers or work.has_rows:
                    raise  # the pack's files have rows of an incomplete capture
                break
            except LatpcapError:
                raise
            except Exception as problem:
                if is_out_of_memory(problem):
                    raise OutputError("out of memory") from problem
                raise _BreakdownError(task.name, problem) from problem
            markers.append(work.marker(outcome))
        files.put(packs.name([marker.outcome.task for marker in markers]), markers, packfile.file_metadata(options))
    return [marker.outcome for marker in markers]


class _Work:
    """A task whose rows go into a pack's files."""

    def __init__(self, task: Task, options: Options, files: PackFiles, writer: ThreadPoolExecutor, watch: Watch):
        self.task, self.options, self.files, self.writer, self.watch = task, options, files, writer, watch
        self.has_rows = False
        """Whether the pack's files have rows of this task."""

    def marker(self, outcome: Outcome) -> Marker:
        """Return the task's entry in the manifest."""
        parts = tuple(part.name for part in self.task.parts)
        return Marker("", self.task.fingerprint(self.options), parts, outcome)

    def analyse(self) -> Outcome:
        """Analyse all its files."""
        outcome = Outcome(self.task.name)
        for run in _split_into_runs(self.task, outcome):
            while run:
                run = run[_Capture(run, self).write(outcome) :]
        return outcome


def _split_into_runs(task: Task, outcome: Outcome) -> list[list[rotation.Head]]:
    if len(task.parts) == 1:
        return [[rotation.Head(task.parts[0], b"", None)]]
    heads: list[rotation.Head | None] = []
    for part in task.parts:
        head = rotation.peek(part)
        if isinstance(head, Failure):
            outcome.failures.append(head)
        heads.append(None if isinstance(head, Failure) else head)
    return rotation.runs(heads, task.rotation)


class _Capture:
    """A capture that is analysed and written: a file, or consecutive files of one capture."""

    def __init__(self, heads: list[rotation.Head], work: _Work):
        self._heads, self._work = heads, work
        self._task, self._options, self._watch = work.task, work.options, work.watch
        self._id = identity(heads[0].part.name)
        self._engine = _core.Analysis(links.read, keys.text(self._options.keylog))
        self._stored = dict.fromkeys((name for name in TABLES if self._options.events or name != "events"), 0)
        """Rows stored, per table."""
        self._parts: list[Part] = []
        self._sizes: list[int] = []
        self._hashes: list[str] = []
        self._pushed = self._handed_on = self._reported = 0
        self._rows: list[dict[str, Any]] = []
        """Issues from outside the core."""
        self._waiting: deque[Future[None]] = deque()

    def write(self, outcome: Outcome) -> int:
        """Analyse as many of the files as belong together, write their rows, and return the number of these files."""
        try:
            used, failure = self._read(outcome)
            if failure is None:
                failure = self._finish(outcome)
        finally:
            for future in self._waiting:  # the capture was stopped; nothing may write to its files after this
                future.cancel()
            wait(self._waiting)
        if failure is not None:
            outcome.failures.append(failure)
        return used

    def _read(self, outcome: Outcome) -> tuple[int, Failure | None]:
        longest = 0
        for number, head in enumerate(self._heads):
            last = self._engine.last_ns
            if number and not rotation.is_next(last, longest, head, self._task.rotation):
                return number, None
            failure = self._file(head.part, outcome)
            if failure is not None and number == 0:
                return 1, failure
            if failure is not None:  # its packets are missing, so the next file begins another capture
                outcome.failures.append(failure)
                return number + 1, None
            if head.first_ns is not None and self._engine.last_ns is not None:
                longest = max(longest, self._engine.last_ns - head.first_ns)
        return len(self._heads), None

    def _file(self, part: Part, outcome: Outcome) -> Failure | None:
        """Push one file into the core. Returns a Failure if no byte of it could be read."""
        begin = self._pushed
        try:
            file = locations.open_bytes(part.location)
        except OSError as problem:
            return Failure(escaped(part.name), rotation.unopened(problem))
        self._engine.next_file(escaped(part.name))
        with file:
            metered = _Metered(file, part.name, self._watch)
            try:
                for block in sources.blocks(cast(BinaryIO, metered)):
                    self._engine.push(block)
                    self._pushed += len(block)
                    if self._pushed - self._handed_on >= _HAND_ON_BYTES:
                        self._hand_on()
            except CaptureError as problem:
                if self._pushed == begin:
                    return Failure(escaped(part.name), problem.reason, problem.offset, lasting=problem.layer != "file")
                offset = self._pushed - begin if problem.offset is None else problem.offset
                self._issue(part, "damaged", offset, problem.layer, problem.reason)
                if problem.layer == "file":  # not due to its content: the next run tries again
                    outcome.changed.append(escaped(part.name))
            try:
                digest = metered.drain()
            except OSError:
                digest = ""  # an issue has the end of the file
        self._parts.append(part)
        self._sizes.append(metered.size)
        self._hashes.append(digest)
        self._compare(part, metered.size, outcome)
        return None

    def _compare(self, part: Part, size: int, outcome: Outcome) -> None:
        """Record if the file differs from its state when the batch was planned. (Some servers give no size then.)"""
        if escaped(part.name) in outcome.changed:
            return  # an issue has it
        try:
            entry = locations.look(part.location)
        except OSError:
            entry = locations.Entry(part.location, "missing")
        is_same = (entry.kind, entry.size, entry.mtime_ns) == ("file", part.size, part.mtime_ns)
        if is_same and part.size in (size, 0):
            return
        reason = f"changed while it was read: {part.size:,} bytes were expected, {size:,} read"
        if entry.kind != "file":
            reason = f"vanished while it was read: {size:,} of {part.size:,} bytes were there"
        self._issue(part, "distrusted", 0, "file", reason)
        outcome.changed.append(escaped(part.name))

    def _issue(self, part: Part, kind: str, offset: int, layer: str, reason: str) -> None:
        issue = {"file": escaped(part.name), "kind": kind, "offset": offset, "layer": layer}
        self._rows.append({**issue, "reason": reason, "count": 1})

    def _hand_on(self) -> None:
        """Take the finished rows out of the core; they are written while it goes on."""
        rows = taken(self._engine, skip_tables=_AT_END)
        self._handed_on = self._pushed
        self._watch.seen(self._engine.frames - self._reported)
        self._reported = self._engine.frames
        while len(self._waiting) >= _MAX_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._work.writer.submit(self._add, rows))

    def _add(self, rows: Portion) -> None:
        for name, rows_of_table in rows.items():
            if name in self._stored and len(rows_of_table):
                self._store(name, pa.table(rows_of_table))

    def _store(self, name: TableName, table: pa.Table) -> None:
        self._work.has_rows |= table.num_rows > 0
        self._stored[name] += table.num_rows
        self._work.files.add(name, packfile.of_capture(table, self._id), escaped(self._heads[0].part.name))

    def _finish(self, outcome: Outcome) -> Failure | None:
        """Write the last rows and the capture's record; return a Failure if the core refused the file."""
        is_unfinished = self._engine.finish_some()
        first = self._heads[0].part
        if self._engine.refused is not None:
            _, offset, reason = self._engine.refused
            return Failure(escaped(first.name), reason, offset, lasting=first.name not in outcome.changed)
        while is_unfinished:  # in parts: the rows of very many open streams do not fit into memory at once
            is_unfinished = self._engine.finish_some()
            if is_unfinished:
                self._hand_on()
        while self._waiting:
            self._waiting.popleft().result()
        self._watch.seen(self._engine.frames - self._reported)
        rows = taken(self._engine)
        issues = self._issues(pa.table(rows["issues"]))
        for name in self._stored:
            self._store(name, issues if name == "issues" else pa.table(rows[name]))
        row = self._row(issues)
        self._work.files.rows.append(row)
        outcome.captures.append(layout.record(self._id, row))
        return None

    def _issues(self, table: pa.Table) -> pa.Table:
        """Return the core's issues and those from outside the core."""
        schema = layout.issues_schema(table.schema)
        if not self._rows:
            return table.cast(schema)
        return pa.Table.from_pylist([*table.to_pylist(), *self._rows], schema=schema)

    def _row(self, issues: pa.Table) -> dict[str, Any]:
        """Return this capture's row of `captures`."""
        engine = self._engine
        kinds = issues["kind"].to_pylist()
        return {
            "capture": self._id,
            "files": [escaped(part.name) for part in self._parts],
            "sizes": self._sizes,
            "sha256": self._hashes,
            "rotation": self._task.rotation if len(self._parts) > 1 else None,
            "format": engine.format,
            "frames": engine.frames,
            "first": engine.first_ns,
            "last": engine.last_ns,
            **{name: rows for name, rows in self._stored.items() if name != "issues"},
            "issues": issues.num_rows,
            "damaged": "damaged" in kinds,
            "latpcap": self._options.version,
            "schema": self._options.schema,
        }
