"""Archives made for tests: the samples, copied, packed, rotated and broken; and their results read without latpcap."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import packers
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from packers import SUFFIXES

import latpcap as lp
from latpcap.tables import LINKS

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CLIPS = SAMPLES / "clips"
SMALL = CLIPS / "split-nagle.pcap"
TABLES = ("events", "streams", "exchanges", "causes", "evidence", "probes", "issues")
FILE_HEADER, RECORD_HEADER = 24, 16
NOBODY = 65534
PACKERS = {SUFFIXES.get(kind, kind): pack for kind, pack in packers.PACKERS.items()}
"""By the suffix of file names."""


def record_ends(data: bytes) -> list[int]:
    """Where the records of a little-endian pcap end; first of all its file header."""
    ends = [FILE_HEADER]
    while ends[-1] + RECORD_HEADER <= len(data):
        (held,) = struct.unpack_from("<I", data, ends[-1] + 8)
        ends.append(ends[-1] + RECORD_HEADER + held)
    return ends


def rotated(data: bytes, pieces: int) -> list[bytes]:
    """The same packets as a tool writes them that begins a new file now and then."""
    ends = record_ends(data)
    cuts = [ends[round(i * (len(ends) - 1) / pieces)] for i in range(pieces + 1)]
    return [data[:FILE_HEADER] + data[a:b] for a, b in pairwise(cuts)]


def later(data: bytes, seconds: int) -> bytes:
    """The same pcap, recorded so many seconds later."""
    out = bytearray(data)
    for at in record_ends(data)[:-1]:
        (begun,) = struct.unpack_from("<I", out, at)
        struct.pack_into("<I", out, at, begun + seconds)
    return bytes(out)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to everything: permissions mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(NOBODY)
    except PermissionError:
        pytest.skip("root that may not become anybody else")
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that nobody may enter, too. What is imported late is imported now: they may not be able to read it."""
    folder = Path(tempfile.mkdtemp(prefix="latpcap-"))
    folder.chmod(0o777)
    lp.batch(SMALL, folder / "warm", jobs=2, quiet=True)
    shutil.rmtree(folder / "warm")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, partition columns and metadata, in an order that tells nothing."""
    if "capture" in table.column_names:
        table = table.drop_columns(["capture"])
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table[field.name].cast(pa.string()))
    if "duration_ms" in table.column_names:
        links = [link for link in LINKS if link in table.column_names]
        table = table.sort_by([(key, "ascending") for key in (*links, "start")])
    elif "exchange" in table.column_names:
        table = table.sort_by("exchange")
    elif "reason" in table.column_names:
        table = table.sort_by([("kind", "ascending"), ("reason", "ascending")])
    return table.replace_schema_metadata(None).combine_chunks()


def same(one: pa.Table, other: pa.Table) -> bool:
    """The same rows, whatever the dictionaries and nullability flags are."""
    one, other = plain(one), plain(other)
    return one.column_names == other.column_names and one.to_pylist() == other.to_pylist()


def stored(results: Path, table: str, capture: str) -> pa.Table:
    """What a tool that knows nothing of latpcap finds of this capture."""
    found = ds.dataset(results / table, partitioning="hive")
    return found.to_table(filter=ds.field("capture") == capture)


def captures(results: Path) -> dict[str, dict[str, object]]:
    """The rows of `captures` by the name of the first file."""
    rows = ds.dataset(results / "captures", partitioning="hive").to_table().to_pylist()
    return {Path(row["files"][0]).name: row for row in rows}


def tree(results: Path) -> dict[str, bytes]:
    """Every file of the results with its bytes."""
    return {p.relative_to(results).as_posix(): p.read_bytes() for p in sorted(results.rglob("*")) if p.is_file()}


def alike(one: Path, other: Path) -> bool:
    """The same rows of each capture, in whatever packs."""
    names = captures(one).keys()
    found = [str(row["capture"]) for row in captures(one).values()]
    return names == captures(other).keys() and all(
        same(stored(one, table, capture), stored(other, table, capture)) for table in TABLES for capture in found
    )
