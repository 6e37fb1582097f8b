"""A capture's bytes, compressed as archives hold them."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable

import pyarrow as pa


def by_arrow(codec: str) -> Callable[[bytes], bytes]:
    return lambda data: pa.compress(data, codec=codec, asbytes=True)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": by_arrow("zstd"),
    "lz4": by_arrow("lz4"),
}
"""By the layer's name in `issues`."""

SUFFIXES = {"gzip": "gz", "zstd": "zst"}
"""Of file names, where they are not the layer's name."""
