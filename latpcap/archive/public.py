"""The public functions about many captures. Their modules are imported when the functions are called."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from latpcap.archive.comparison import Comparison, Sample
    from latpcap.archive.inputs import Inputs
    from latpcap.archive.report import Batch
    from latpcap.archive.results import Results
    from latpcap.archive.sites import Sites
    from latpcap.page import Subject
    from latpcap.views.capture import Capture

    Side: TypeAlias = str | os.PathLike[str] | Capture | Results


def batch(
    inputs: Inputs,
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    client: Any = None,
    events: bool = True,
    series: bool = True,
    quiet: bool = False,
    keylog: str | os.PathLike[str] | None = None,
) -> Batch:
    """Analyse many captures and write their tables as a Parquet data set, which other tools can read, too.

    `inputs` is a folder, file, glob, URL (`s3://bucket/prefix`) or "@manifest" (a text file with one of them a line),
    or a list of these. `output` is a folder or a URL. `jobs` captures are analysed at a time (default: one per core);
    with `client`, a `dask.distributed.Client`, on its cluster. `events=False` leaves out the longest table. Files
    that look like one rotated capture are joined (`series=False`: never); a progress bar goes to standard error
    unless `quiet`. `keylog` is a file of TLS keys as in `read`; with a `client`, every worker opens it by this name.

    A run that was interrupted can be continued: only what is missing, has changed or could not be read is analysed
    again. A file that cannot be read is in `failed` of the answer; the others are analysed. Raises OutputError where
    results cannot be written, Interrupted (a KeyboardInterrupt) after Ctrl-C; both messages have what is done.
    """
    from latpcap.archive.run import run

    location = os.fspath(output)
    keys = None if keylog is None else os.path.abspath(keylog)
    return run(inputs, location, jobs=jobs, client=client, events=events, stitch=series, quiet=quiet, keylog=keys)


def open_results(place: str | os.PathLike[str], *, check: bool = False, sites: Sites = "auto") -> Results:
    """Open what `batch` wrote to a folder or URL; at first this reads only the list of captures.

    Raises CaptureError where there are no results. Whatever is read later is compared with its checksums: a damaged
    table raises CaptureError, and answers leave out its captures and name them. `check=True` reads every file at once
    and leaves out what is damaged; `Results.failed` names it.

    `sites`: a private address may be another machine at each site. "auto" counts folders apart whose captures share
    private servers (folders that are dates are one), and captures of one folder whose servers cannot be the same
    machine; "one" takes every address for one machine, "folder" and "capture" keep each of these apart. Where sites
    are apart, `why` has a line that names this, and addresses in it look like "192.168.0.30%berlin".
    """
    from latpcap.archive import results

    return results.open_results(place, check=check, sites=sites)


def compare(before: Side, after: Side, *, keylog: str | os.PathLike[str] | None = None) -> Comparison:
    """Compare two sides: how latency and the time of each cause changed, and whether by more than noise.

    Each side is a capture, a path of one (`keylog` as in `read`), results of a batch (or a slice of them), or their
    folder or URL. Only complete exchanges are compared; `latpcap/archive/comparison.py` begins with the rule for noise.
    CaptureError where a side cannot be read, ComparisonError (a LatpcapError) where one has no complete exchange.
    """
    from latpcap.archive.comparison import Comparison, sample_of

    samples, subjects = zip(*(_side(side, keylog, sample_of) for side in (before, after)), strict=True)
    return Comparison(*samples, of=subjects)


def _side(
    side: Side, keylog: str | os.PathLike[str] | None, sample_of: Callable[[Any], Sample]
) -> tuple[Sample, Callable[[], Subject]]:
    """Return the sample of a side, and a function that returns the whole of it for a page: a file is read again for
    that.
    """
    from latpcap.archive.comparison import needed
    from latpcap.archive.results import is_results, open_results
    from latpcap.views import capture, projection

    opened: Any = side
    if isinstance(side, (str, os.PathLike)):
        if is_results(side):
            opened = open_results(side)
        elif os.path.isfile(side):
            return sample_of(projection.read(side, needed(), keylog=keylog)), lambda: capture.read(side, keylog=keylog)
        else:
            opened = capture.read(side, keylog=keylog)
    return sample_of(opened), lambda: opened
