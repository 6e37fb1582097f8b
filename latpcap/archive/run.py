"""How is an archive worked through? Finds the captures, leaves out what is done, hands the rest to workers, and counts.

Local workers are threads of this process: the engine, the Parquet writer, hashing and decompression all let go of the
interpreter. On a Dask cluster a task is a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache
from importlib.metadata import version
from typing import Any

from latpcap import _core
from latpcap.archive import inputs as finding
from latpcap.archive import places, plan, series, worker
from latpcap.archive.model import Failure, Options, Outcome, Task, printable
from latpcap.archive.output import Output
from latpcap.archive.progress import Progress
from latpcap.archive.report import Batch
from latpcap.errors import Interrupted, OutputError
from latpcap.reading import keylog as keys

_VERSION = version("latpcap")

_LOOK_EVERY_S = 0.2
_RETRIES = 2


def run(
    inputs: finding.Inputs,
    output: str,
    *,
    jobs: int | None,
    client: Any,
    events: bool,
    stitch: bool,
    quiet: bool,
    keylog: str | None = None,
) -> Batch:
    """Works through an archive; the public face is `latpcap.batch`."""
    place = Output(output)
    place.prepare()
    options = Options(place.place, events, _VERSION, _core.SCHEMA_VERSION, keylog, keys.state(keylog))
    found = finding.find(inputs, leave_out=places.bare(place.place))
    planned = plan.make(series.tasks(found.parts.values(), stitch=stitch), options, place)
    plan.clear(planned, place)
    batch = Batch(place.place, planned, found)
    progress = Progress(len(planned.todo), planned.size, quiet=quiet)
    try:
        work = (
            _local(planned.todo, options, progress, jobs)
            if client is None
            else _on(client, planned.todo, options, progress)
        )
        for outcome in work:
            batch.add(outcome)
    except (KeyboardInterrupt, OutputError) as problem:
        progress.stop()
        why = "interrupted" if isinstance(problem, KeyboardInterrupt) else str(problem)
        done, left = batch.finished + len(planned.done), len(planned.todo) - batch.finished
        sentence = f"{why}; {done:,} captures done and kept, {left:,} left: run the same again to go on"
        raise (Interrupted if isinstance(problem, KeyboardInterrupt) else OutputError)(sentence) from None
    finally:
        progress.stop()
        progress.close()
    return batch


@cache
def _version() -> str:
    return version("latpcap")


def _local(tasks: list[Task], options: Options, progress: Progress, jobs: int | None) -> Iterator[Outcome]:
    import os

    cores = len(os.sched_getaffinity(0))
    workers = max(1, min(jobs or cores, len(tasks)))
    pool = ThreadPoolExecutor(workers, thread_name_prefix="latpcap")
    waiting = iter(tasks)
    running: dict[Future[Outcome], Task] = {}
    try:
        while True:
            while len(running) < workers and (task := next(waiting, None)) is not None:
                running[pool.submit(worker.analyse, task, options, progress)] = task
            if not running:
                return
            done, _ = wait(running, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            for future in done:
                outcome = _outcome(future, running.pop(future))
                progress.finished(len(outcome.failures))
                yield outcome
    finally:
        progress.stop()
        pool.shutdown(wait=True, cancel_futures=True)


def _outcome(future: Any, task: Task) -> Outcome:
    """What came of a task; a worker's own breakdown is a failure of its task and of no other."""
    try:
        result: Outcome = future.result()
        return result
    except OutputError:
        raise
    except Exception as problem:
        reason = f"the worker broke down ({type(problem).__name__}: {places.words(problem)})"
        return Outcome(task.name, failures=[Failure(printable(p.name), reason) for p in task.parts])


def _on(client: Any, tasks: list[Task], options: Options, progress: Progress) -> Iterator[Outcome]:
    """The same on a Dask cluster: one task each, tried again where a worker is lost."""
    from distributed import as_completed

    names = {t.name: t for t in tasks}
    futures = [
        client.submit(
            worker.analyse, task, options, key=f"latpcap-{task.name}-{task.fingerprint(options)}", retries=_RETRIES
        )
        for task in tasks
    ]
    by_key = {f.key: names[t.name] for f, t in zip(futures, tasks, strict=True)}
    try:
        for future in as_completed(futures):
            task = by_key[future.key]
            outcome = _outcome(future, task)
            packets = sum(c["frames"] for c in outcome.captures)
            progress.finished(len(outcome.failures), unseen_bytes=task.size, packets=packets)
            future.release()
            yield outcome
    finally:
        client.cancel(futures)
