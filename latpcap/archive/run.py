"""Runs a batch: finds the captures, skips what is done, distributes the rest to workers, and counts the results.

Local workers are threads of this process: the core, the Parquet writer, hashing and decompression release the
interpreter lock. On a Dask cluster each pack is a task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from latpcap import _core
from latpcap.archive import inputs, layout, lock, packfile, packs, plan, series, stored_findings, worker
from latpcap.archive.checked import DamagedError
from latpcap.archive.dataset import Stored
from latpcap.archive.model import Failure, Manifest, Options, Outcome, Pack
from latpcap.archive.output import Output
from latpcap.archive.packfile import PackFiles
from latpcap.archive.progress import Progress
from latpcap.archive.report import Batch
from latpcap.errors import Interrupted, OutputError, is_out_of_memory
from latpcap.format import escaped
from latpcap.lazy import pa
from latpcap.reading import keylog as keys
from latpcap.reading import locations

if TYPE_CHECKING:
    from latpcap.archive.plan import Plan, StoredFiles

MAX_SMALL_PACKS = 24
"""Number of small packs above which they are joined. (Each run of an hourly batch adds one.)"""
SMALL_BYTES = 2 << 20
"""A pack with fewer bytes is small."""
_VERSION = version("latpcap")
_POLL_S = 0.2
"""Longest wait for a future, so that Ctrl-C is handled soon."""
_RETRIES = 2
"""How often Dask repeats a task whose worker is lost."""


def clear(plan: Plan, options: Options, output: Output) -> None:
    """Remove captures that are analysed again, packs that were replaced, and files of runs that did not finish.

    A pack that keeps other captures is rewritten under another name without the removed ones. Its manifest names the
    pack that it replaces, so that readers see each capture once at any moment. Many small packs are joined.
    """
    stored_files = plan.stored
    for name in stored_files.replaced:
        _remove(name, stored_files, output)
    for orphan in stored_files.orphans:
        output.remove(orphan)
    outdated_tasks: dict[str, set[str]] = {}
    for marker in plan.outdated:
        outdated_tasks.setdefault(marker.pack, set()).add(marker.outcome.task)
    for name, tasks in outdated_tasks.items():
        manifest = stored_files.whole.get(name) or stored_files.broken[name][0]
        if all(marker.outcome.task in tasks for marker in manifest.markers):
            _remove(name, stored_files, output)
        elif name in stored_files.whole:
            _rewrite([manifest], tasks, options, stored_files, output)
    small = [
        manifest
        for name, manifest in stored_files.whole.items()
        if name not in outdated_tasks and _bytes(manifest) < SMALL_BYTES
    ]
    if len(small) > MAX_SMALL_PACKS:
        for group in _groups(small):
            _rewrite(group, set(), options, stored_files, output)


def _bytes(manifest: Manifest) -> int:
    return sum(int(file["size"]) for file in manifest.files.values())


def _groups(small: list[Manifest]) -> list[list[Manifest]]:
    """Return the packs to join, in groups up to the size of a pack; groups of one pack are left out."""
    groups: list[list[Manifest]] = []
    group_bytes = group_tasks = 0
    for manifest in sorted(small, key=lambda manifest: manifest.pack):
        size, task_count = _bytes(manifest), len(manifest.markers)
        if not groups or group_bytes + size > packs.MAX_BYTES or group_tasks + task_count > packs.MAX_TASKS:
            groups.append([])
            group_bytes = group_tasks = 0
        groups[-1].append(manifest)
        group_bytes, group_tasks = group_bytes + size, group_tasks + task_count
    return [group for group in groups if len(group) > 1]


def _remove(name: str, stored_files: StoredFiles, output: Output) -> None:
    output.remove(layout.manifest_of(name))
    for file in stored_files.files_of(name):
        output.remove(file)


def _rewrite(
    manifests: list[Manifest], left_out: set[str], options: Options, stored_files: StoredFiles, output: Output
) -> None:
    """Write these packs as one, without the tasks in `left_out`. Damaged packs are left as they are."""
    markers = [marker for manifest in manifests for marker in manifest.markers if marker.outcome.task not in left_out]
    captures = [capture["capture"] for marker in markers for capture in marker.outcome.captures]
    stored = Stored.of(output, {manifest.pack: manifest for manifest in manifests})
    replaces = [manifest.pack for manifest in manifests]
    metadata = packfile.file_metadata(options)
    try:
        with PackFiles(output) as files:
            for name in _core.TABLES if captures else ():
                if any(layout.file_of(name, manifest.pack) in manifest.files for manifest in manifests):
                    files.add(name, stored.empty(name), name)
                    for batch in stored.dataset(name, captures).to_batches():
                        files.add(name, pa.Table.from_batches([batch]), name)
            kept_captures = set(captures)
            files.rows += [row for row in stored.captures if row["capture"] in kept_captures]
            files.put(
                packs.name([marker.outcome.task for marker in markers], replaces=replaces), markers, metadata, replaces
            )
    except DamagedError:
        return
    for name in replaces:
        _remove(name, stored_files, output)


def run(
    given: inputs.Inputs,
    output: str,
    *,
    jobs: int | None,
    client: Any,
    events: bool,
    stitch: bool,
    quiet: bool,
    keylog: str | None = None,
) -> Batch:
    """Run a batch; see `latpcap.batch`."""
    results = Output(output)
    results.prepare()
    options = Options(results.location, events, _VERSION, _core.SCHEMA_VERSION, keylog, keys.state(keylog))
    with lock.alone(results):
        files = inputs.find(given, leave_out=locations.bare(results.location))
        planned = plan.make(series.tasks(files.parts.values(), stitch=stitch), options, results)
        clear(planned, options, results)
        batch = Batch(results.location, planned, files)
        progress = Progress(planned.tasks, planned.size, quiet=quiet)
        work = (
            _Local(planned.todo, options, progress, jobs)
            if client is None
            else _Cluster(client, planned.todo, options, progress)
        )
        try:
            for outcomes in work.run():
                for outcome in outcomes:
                    batch.add(outcome)
            progress.doing("findings of all")
            _keep_findings(results)
        except (KeyboardInterrupt, OutputError) as problem:
            progress.stop()
            for outcomes in work.remaining():
                for outcome in outcomes:
                    batch.add(outcome)
            why = "interrupted" if isinstance(problem, KeyboardInterrupt) else str(problem)
            done_count, remaining = batch.finished + len(planned.done), planned.tasks - batch.finished
            sentence = f"{why}; {done_count:,} captures done and kept, {remaining:,} left: run the same again to go on"
            raise (Interrupted if isinstance(problem, KeyboardInterrupt) else OutputError)(sentence) from None
        finally:
            progress.stop()
            work.close()
            progress.close()
    return batch


def _keep_findings(output: Output) -> None:
    """Compute and store the findings over all captures of the results."""
    from latpcap.archive.results import Results

    readable_packs = plan.find_stored(output).whole
    if sum(len(manifest.captures) for manifest in readable_packs.values()) >= stored_findings.MIN_CAPTURES:
        Results(Stored.of(output, readable_packs)).keep_findings()


class _Local:
    """Runs packs on threads of this process."""

    def __init__(self, packs: list[Pack], options: Options, progress: Progress, jobs: int | None):
        # only Linux knows the processors that a process may use
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._workers = max(1, min(jobs or cores, len(packs)))
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="latpcap")
        self._packs, self._options, self._progress = packs, options, progress
        self._running: dict[Future[list[Outcome]], Pack] = {}

    def run(self) -> Iterator[list[Outcome]]:
        """Yield the outcomes of each pack, in the order of completion."""
        waiting = iter(self._packs)
        while True:
            while len(self._running) < self._workers and (pack := next(waiting, None)) is not None:
                self._running[self._pool.submit(worker.analyse, pack, self._options, self._progress)] = pack
            if not self._running:
                return
            done, _ = wait(self._running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            for future in done:
                outcomes = _outcomes(future, self._running.pop(future))
                self._progress.finished(sum(len(outcome.failures) for outcome in outcomes), tasks=len(outcomes))
                yield outcomes

    def remaining(self) -> Iterator[list[Outcome]]:
        """Yield the outcomes of the packs that were running when the work was interrupted."""
        for future in self._running:
            with suppress(worker.Stopped, OutputError):
                yield future.result()

    def close(self) -> None:
        """Wait for running packs."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _outcomes(future: Any, pack: Pack) -> list[Outcome]:
    """Return the outcomes of a pack; an exception of a worker becomes a failure of its tasks."""
    try:
        return future.result()
    except OutputError:
        raise
    except Exception as problem:
        if is_out_of_memory(problem):
            raise OutputError("out of memory") from problem
        reason = worker.reason_of_breakdown(problem)
        return [
            Outcome(task.name, failures=[Failure(escaped(part.name), reason) for part in task.parts])
            for task in pack.tasks
        ]


class _Cluster:
    """Runs packs on a Dask cluster, one task each."""

    def __init__(self, client: Any, packs: list[Pack], options: Options, progress: Progress):
        self._client, self._progress = client, progress
        self._packs: dict[Any, Pack] = {}
        self._futures = []
        for pack in packs:
            key = f"latpcap-{pack.name}-{pack.fingerprint(options)}"
            self._futures.append(client.submit(worker.analyse, pack, options, key=key, retries=_RETRIES))
            self._packs[key] = pack

    def run(self) -> Iterator[list[Outcome]]:
        """Yield the outcomes of each pack, in the order of completion."""
        from distributed import as_completed

        for future in as_completed(self._futures):
            pack = self._packs[future.key]
            outcomes = _outcomes(future, pack)
            packets = sum(capture["frames"] for outcome in outcomes for capture in outcome.captures)
            failures = sum(len(outcome.failures) for outcome in outcomes)
            self._progress.finished(failures, tasks=len(outcomes), unseen_bytes=pack.size, packets=packets)
            future.release()
            yield outcomes

    def remaining(self) -> Iterator[list[Outcome]]:
        """Nothing: tasks on the cluster go on until they are cancelled."""
        return iter(())

    def close(self) -> None:
        """Cancel what is not done."""
        self._client.cancel(self._futures)
