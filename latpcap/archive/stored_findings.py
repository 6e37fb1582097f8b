"""Stores the findings over all captures of an archive when it is written, so that readers need not compute them.

There is a file under `_answers/` for each language and division into sites. Its name has a hash of the checksums of all
packs and of the version, so findings of other captures are never used. Its first bytes are the SHA-256 of the rest. A
file that cannot be read or does not fit is ignored.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from latpcap import _core, words
from latpcap.errors import LatpcapError
from latpcap.lazy import pa, pq

if TYPE_CHECKING:
    from latpcap.archive.model import Manifest
    from latpcap.archive.output import Output
    from latpcap.archive.sites import Sites

FOLDER = "_answers"
MIN_CAPTURES = 100
"""Number of captures from which findings are stored: those of fewer captures take a second to compute."""
MAX_EXCHANGES = 1 << 21
"""Number of exchanges up to which a batch computes findings: those of more take minutes."""
_DIGEST = hashlib.sha256().digest_size


@cache
def _version() -> str:
    return version("latpcap")


def _name(packs: Mapping[str, Manifest], apart: Sites) -> str:
    state = [(name, packs[name].files) for name in sorted(packs)]
    state_json = json.dumps([state, _version(), _core.SCHEMA_VERSION, apart, words.current()], sort_keys=True)
    return f"{FOLDER}/findings-{hashlib.sha256(state_json.encode()).hexdigest()[:24]}.parquet.sha256"


def find(output: Output, packs: Mapping[str, Manifest], apart: Sites) -> pa.Table | None:
    """Return the stored findings of these packs; None where there are none that fit."""
    try:
        content = output.read(_name(packs, apart))
    except LatpcapError:
        return None
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
        return None
    return pq.read_table(io.BytesIO(content[_DIGEST:]))


def store(output: Output, packs: Mapping[str, Manifest], apart: Sites, table: pa.Table) -> None:
    """Store these findings, and remove those of other packs. OutputError where that fails."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    name = _name(packs, apart)
    output.write(name, hashlib.sha256(sink.getvalue()).digest() + sink.getvalue())
    for other in output.files(FOLDER):
        if other != name and other.startswith(f"{FOLDER}/"):
            with suppress(LatpcapError):
                output.remove(other)
