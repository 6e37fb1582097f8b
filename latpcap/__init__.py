"""Explains from a packet capture why each request was slow, who waited for whom, and which frames show it.

    import latpcap as lp
    cap = lp.read("nginx-latency.pcap")
    cap.why()

`Capture` holds the tables (`events`, `streams`, `exchanges`, `causes` and those that `Capture.tables()` names) as
pandas data frames, and `arrow(name)` as pyarrow tables; `stream(n)` is what Wireshark shows for `tcp.stream eq n`.
`join` puts two captures of the same traffic on one clock.
`batch` analyses thousands of captures, `open_results` reads all results together, `compare` shows what changed.
"""

# ruff: noqa: E402 - a clone without a build must find the installed package before it imports from it

import sys as _sys
from collections.abc import Iterator as _Iterator
from importlib.machinery import EXTENSION_SUFFIXES as _SUFFIXES
from pathlib import Path as _Path


def _is_built(folder: _Path) -> bool:
    return any((folder / f"_core{suffix}").exists() for suffix in _SUFFIXES)


def _installed() -> _Iterator[_Path]:
    """Yield folders that may hold this package: those on `sys.path`, and the source of an editable install."""
    yield from (_Path(place, "latpcap") for place in _sys.path)
    for finder in _sys.meta_path:
        spec = finder.find_spec("latpcap", None)
        yield from map(_Path, (spec and spec.submodule_search_locations) or ())


if not _is_built(_Path(__file__).parent):
    # Python runs in a clone without a compiled core: use the package that was installed from it
    __path__[:] = [str(folder) for folder in _installed() if _is_built(folder)][:1]
    if not __path__:
        raise ImportError(f"latpcap is not built in {_Path(__file__).parent}: run pip install . there first")

from latpcap.archive.public import batch, compare, open_results
from latpcap.errors import CaptureError, FilterError, Interrupted, LatpcapError, OutputError
from latpcap.joined import Joined, join
from latpcap.views.capture import Capture, Stream, read

__all__ = [
    "Capture",
    "CaptureError",
    "FilterError",
    "Interrupted",
    "Joined",
    "LatpcapError",
    "OutputError",
    "Stream",
    "batch",
    "compare",
    "join",
    "open_results",
    "read",
]


def __getattr__(name: str) -> str:
    """Compute `__version__` on first use: reading the metadata takes longer than the rest of the import."""
    if name != "__version__":
        raise AttributeError(f"module 'latpcap' has no attribute {name!r}")
    from importlib.metadata import version

    found = globals()["__version__"] = version("latpcap")
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
