"""How does one capture become its part of the results? The same code in this process, in another one and on a cluster.

Reads a task's files once, block by block; rows go to Parquet as they come, so that memory does not grow with the
capture. Every table's file appears whole; the row in `captures` is written last and says that all of them are there.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from latpcap import _core
from latpcap.archive import layout, places, rotation
from latpcap.archive.model import Failure, Options, Outcome, Part, Task, identity, printable
from latpcap.archive.output import Output
from latpcap.archive.tablefile import TableFile
from latpcap.errors import CaptureError, LatpcapError, OutputError
from latpcap.reading import keylog as keys
from latpcap.reading import links, sources

if TYPE_CHECKING:
    import pyarrow as pa

_HAND_ON_BYTES = 1 << 20
"""Rows are taken out of the engine after so many bytes of the capture."""
_AHEAD = 2
"""So many portions of rows may wait for the Parquet writer, which works beside the engine."""
_GROWING = ("events", "streams", "exchanges", "causes", "probes")


class Stopped(LatpcapError):  # noqa: N818
    """Was the work broken off because somebody asked for it?"""


class Watch(Protocol):
    """Who is told how far the work is, and may end it?"""

    @property
    def stopped(self) -> bool:
        """Shall the work end here?"""

    def read(self, file_bytes: int) -> None:
        """So many bytes more of a file were read."""

    def seen(self, packets: int) -> None:
        """So many packets more were analysed."""


class _Nobody:
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
        """The hash of the whole file, also where its content was given up before its end."""
        while self.read(sources.BLOCK_BYTES):
            pass
        return self._hash.hexdigest()


def analyse(task: Task, options: Options, watch: Watch | None = None) -> Outcome:
    """What is in the files of this task? Writes their tables, and the marker that says that the task is done.

    What is wrong with the files is in the outcome. Raises OutputError where the results cannot be written, and Stopped.
    """
    watch = watch or _Nobody()
    output, outcome = Output(options.output), Outcome(task.name)
    for run in _runs(task, outcome):
        while run:
            run = run[_Capture(run, task, options, output, watch).write(outcome) :]
    output.write(layout.marker(task.name), outcome.to_json(task, task.fingerprint(options)))
    return outcome


def _runs(task: Task, outcome: Outcome) -> list[list[rotation.Head]]:
    if len(task.parts) == 1:
        return [[rotation.Head(task.parts[0], b"", None)]]
    heads: list[rotation.Head | None] = []
    for part in task.parts:
        found = rotation.peek(part)
        if isinstance(found, Failure):
            outcome.failures.append(found)
        heads.append(None if isinstance(found, Failure) else found)
    return rotation.runs(heads, task.rotation)


class _Capture:
    """One capture on its way into the results: a file, or files that follow each other."""

    def __init__(self, heads: list[rotation.Head], task: Task, options: Options, output: Output, watch: Watch):
        self._heads, self._task, self._options, self._output, self._watch = heads, task, options, output, watch
        self._id = identity(heads[0].part.name)
        self._engine = _core.Analysis(links.read, keys.text(options.keylog))
        self._names = [n for n in _core.TABLES if options.events or n != "events"]
        self._files: dict[str, TableFile] = {}
        self._parts: list[Part] = []
        self._sizes: list[int] = []
        self._hashes: list[str] = []
        self._pushed = self._handed_on = self._told = 0
        self._rows: list[dict[str, Any]] = []
        """Issues that the engine cannot know of."""
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="parquet")
        self._waiting: deque[Future[None]] = deque()
        self._requests = 0

    def write(self, outcome: Outcome) -> int:
        """Analyses as many files as belong together, writes what came of them, and gives their number."""
        with ExitStack() as stack:
            folder = stack.enter_context(self._output.scratch())
            for name in self._names:
                self._files[name] = TableFile(folder / f"{name}.parquet")
                stack.callback(self._files[name].drop)
            stack.callback(self._beside.shutdown, wait=True, cancel_futures=True)
            used, failure = self._read(outcome)
            if failure is None:
                failure = self._finish(folder, outcome)
            if failure is not None:
                outcome.failures.append(failure)
        return used

    def _read(self, outcome: Outcome) -> tuple[int, Failure | None]:
        longest = 0
        for number, head in enumerate(self._heads):
            last = self._engine.last_ns
            if number and not rotation.follows(last, longest, head, self._task.rotation):
                return number, None
            failure = self._file(head.part, outcome)
            if failure is not None and number == 0:
                return 1, failure
            if failure is not None:  # its packets are missing, so what comes after it is another capture
                outcome.failures.append(failure)
                return number + 1, None
            if head.first_ns is not None and self._engine.last_ns is not None:
                longest = max(longest, self._engine.last_ns - head.first_ns)
        return len(self._heads), None

    def _file(self, part: Part, outcome: Outcome) -> Failure | None:
        """Feeds one file to the engine. A Failure when not a byte of it could be read."""
        begin = self._pushed
        try:
            file = places.open_bytes(part.place)
        except OSError as problem:
            return Failure(printable(part.name), rotation.unopened(problem))
        self._engine.next_file(printable(part.name))
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
                    return Failure(
                        printable(part.name), problem.reason, problem.offset, lasting=problem.layer != "file"
                    )
                offset = self._pushed - begin if problem.offset is None else problem.offset
                self._issue(part, "damaged", offset, problem.layer, problem.reason)
                if problem.layer == "file":  # not its content: the next run tries again
                    outcome.changed.append(printable(part.name))
            try:
                digest = metered.drain()
            except OSError:
                digest = ""  # that it could not be read to its end has been said
        self._parts.append(part)
        self._sizes.append(metered.size)
        self._hashes.append(digest)
        self._compare(part, metered.size, outcome)
        return None

    def _compare(self, part: Part, size: int, outcome: Outcome) -> None:
        """Is the file still what it was when the work was planned?"""
        try:
            now = places.look(part.place)
        except OSError:
            now = places.Entry(part.place, "missing")
        if now.kind == "file" and (now.size, now.mtime_ns) == (part.size, part.mtime_ns) and size == part.size:
            return
        what = f"changed while it was read: {part.size:,} bytes were expected, {size:,} read"
        if now.kind != "file":
            what = f"vanished while it was read: {size:,} of {part.size:,} bytes were there"
        self._issue(part, "distrusted", 0, "file", what)
        if printable(part.name) not in outcome.changed:
            outcome.changed.append(printable(part.name))

    def _issue(self, part: Part, kind: str, offset: int, layer: str, reason: str) -> None:
        told = {"file": printable(part.name), "kind": kind, "offset": offset, "layer": layer}
        self._rows.append({**told, "reason": reason, "count": 1})

    def _hand_on(self) -> None:
        """Takes the finished rows out of the engine; they are written while it goes on."""
        rows = {name: self._engine.take(name) for name in _GROWING}
        self._handed_on = self._pushed
        self._watch.seen(self._engine.frames - self._told)
        self._told = self._engine.frames
        while len(self._waiting) >= _AHEAD:
            self._waiting.popleft().result()
        self._waiting.append(self._beside.submit(self._add, rows))

    def _add(self, rows: dict[str, _core.Table]) -> None:
        import pyarrow as pa

        for name, of in rows.items():
            if name in self._files and len(of):
                self._store(name, pa.table(of))

    def _store(self, name: str, table: pa.Table) -> None:
        import pyarrow.compute as pc

        with self._writing(name):
            self._files[name].add(table)
        if name == "streams":  # set-ups and pauses have rows of exchanges, and are none
            self._requests += pc.sum(table["exchanges"]).as_py() or 0

    def _writing(self, name: str) -> _Writing:
        return _Writing(f"{places.bare(self._output.place)}: {name} of {printable(self._heads[0].part.name)}")

    def _finish(self, folder: Path, outcome: Outcome) -> Failure | None:
        import pyarrow as pa

        more = self._engine.finish_some()
        first = self._heads[0].part
        if self._engine.refused is not None:
            _, offset, reason = self._engine.refused
            return Failure(printable(first.name), reason, offset, lasting=first.name not in outcome.changed)
        self._hand_on()
        while more:  # part by part: of very many streams not all rows are there at once
            more = self._engine.finish_some()
            self._hand_on()
        while self._waiting:
            self._waiting.popleft().result()
        issues = self._issues(pa.table(self._engine.take("issues")))
        for name in self._names:
            table = issues if name == "issues" else pa.table(self._engine.take(name))
            self._store(name, table)
        row = self._row(issues)
        metadata = self._metadata(row)
        for name, file in self._files.items():
            with self._writing(name):
                file.close(metadata)
        captures = TableFile(folder / "captures.parquet")
        with self._writing("captures"):
            captures.add(pa.Table.from_pylist([row], schema=layout.captures_schema()))
            captures.close(metadata)
        for relative in layout.of_capture(self._id):
            if relative.startswith("captures/") or (not self._options.events and relative.startswith("events/")):
                self._output.remove(relative)
        files = {**self._files, "captures": captures}
        stored = {name: file.path.stat().st_size for name, file in files.items()}
        for name, file in files.items():
            self._output.put(file.path, layout.file_of(name, self._id))
        outcome.captures.append({**layout.told(self._id, row), "stored": stored})
        return None

    def _issues(self, table: pa.Table) -> pa.Table:
        """The engine's issues, and what the engine cannot know."""
        import pyarrow as pa

        return pa.Table.from_pylist([*table.to_pylist(), *self._rows], schema=layout.issues_schema(table.schema))

    def _row(self, issues: pa.Table) -> dict[str, Any]:
        """This capture's row of `captures`."""
        engine = self._engine
        kinds = issues["kind"].to_pylist()
        return {
            "capture": self._id,
            "files": [printable(p.name) for p in self._parts],
            "sizes": self._sizes,
            "sha256": self._hashes,
            "rotation": self._task.rotation if len(self._parts) > 1 else None,
            "format": engine.format,
            "frames": engine.frames,
            "first": engine.first_ns,
            "last": engine.last_ns,
            **{name: self._files[name].rows for name in self._names if name != "issues"},
            "exchanges": self._requests,
            "issues": issues.num_rows,
            "damaged": "damaged" in kinds,
            "latpcap": self._options.version,
            "schema": self._options.schema,
        }

    def _metadata(self, row: dict[str, Any]) -> dict[str, str]:
        """Where do these rows come from? In every file, so that it can be read alone."""
        columns = ("files", "sizes", "sha256")
        inputs = [
            dict(zip(("file", "size", "sha256"), of, strict=True))
            for of in zip(*(row[c] for c in columns), strict=True)
        ]
        return {
            "latpcap.schema": self._options.schema,
            "latpcap.version": self._options.version,
            "latpcap.capture": self._id,
            "latpcap.inputs": json.dumps(inputs),
            "latpcap.options": json.dumps(self._options.told()),
            "latpcap.damaged": json.dumps(row["damaged"]),
        }


class _Writing:
    """Turns a system error while a table is written into one sentence."""

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, OSError):
            raise OutputError(f"{self._what} cannot be written ({places.words(problem)})") from None
