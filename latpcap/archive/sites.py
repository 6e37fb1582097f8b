"""Do private addresses mean one machine in all captures of an archive, or another one at each site?

Reads which captures there are and the servers of their streams; gives each capture its site. Where sites are apart,
their private addresses carry the site's name, as an address of one link carries its zone (RFC 4007):
"192.168.0.30%berlin". Public addresses are the same machine everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from latpcap import arrays
from latpcap.format import shortest

if TYPE_CHECKING:
    import pyarrow as pa

Sites: TypeAlias = Literal["auto", "one", "folder", "capture"]
ADDRESSES = ("client", "server", "src", "dst", "answer_from")
"""Columns of addresses, in all tables."""
ZONE = "%"
_DATE = re.compile(r"(19|20)\d\d([-_.]?\d\d){0,2}([-_T.]?\d\d){0,3}|\d{1,2}|[hH]?\d\d?h?", re.ASCII)
"""A folder's name that is a date or a time: captures of one place by day are one site."""
_KEPT = re.compile(r"[^\w.+-]+")


class Apart(NamedTuple):
    """What a site is, "folder" or "capture", and the name of each capture's."""

    by: str
    names: list[str]

    @property
    def distinct(self) -> list[str]:
        """The sites."""
        return sorted(set(self.names))


def checked(given: str) -> Sites:
    """One of the words; ValueError for another one."""
    if given not in get_args(Sites):
        raise ValueError(f"expected one of {', '.join(get_args(Sites))}, got {given!r}")
    return given  # type: ignore[return-value]


@lru_cache(maxsize=1 << 16)
def private(address: str) -> bool:
    """Can several machines have this address, each in its own network?"""
    found = ip_address(address)
    return not found.is_global and not found.is_multicast and not found.is_unspecified


def site_of(address: str) -> str | None:
    """Which site's is it? None for an address that is the same machine everywhere."""
    return address.partition(ZONE)[2] or None


def _folder(file: str) -> str:
    """The folder of a capture's file, without the parts that are dates."""
    folder, _, _ = file.replace("\\", "/").rpartition("/")
    return "/".join(part for part in folder.split("/") if not _DATE.fullmatch(part))


def _names(places: Sequence[str]) -> list[str]:
    """Short names of these, as they stand behind an address."""
    distinct = list(dict.fromkeys(places))
    short = dict(zip(distinct, shortest(distinct), strict=True))
    return [_KEPT.sub("_", short[place]).strip("_") or "here" for place in places]


def split(rows: Sequence[Mapping[str, Any]], streams: pa.Table, wanted: Sites = "auto") -> Apart | None:
    """The site of each capture; None where all are one.

    `auto`: a folder is a site where a private address serves in captures of several folders. In one folder a capture is
    one where a private server's own side of the handshake (window scale, SACK) differs between captures.
    """
    files = [row["files"][0] for row in rows]
    folders = [_folder(file) for file in files]
    if wanted == "one" or len(rows) < 2:
        return None
    if wanted == "capture":
        return Apart("capture", _names(files))
    if wanted == "folder":
        return Apart("folder", _names(folders))
    place = {row["capture"]: number for number, row in enumerate(rows)}
    seen: dict[tuple[str, int], set[str]] = {}
    marks: dict[tuple[str, int], dict[int, set[tuple[Any, ...]]]] = {}
    for capture, server, port, *mark in _servers(streams):
        number = place.get(capture)
        if number is not None and private(server):
            seen.setdefault((server, port), set()).add(folders[number])
            if mark[0] is not None:
                marks.setdefault((server, port), {}).setdefault(number, set()).add(tuple(mark))
    if any(len(where) > 1 for where in seen.values()):
        return Apart("folder", _names(folders))
    return Apart("capture", _names(files)) if any(_differ(of.values()) for of in marks.values()) else None


def _servers(streams: pa.Table) -> Iterable[tuple[Any, ...]]:
    """Each server of each capture, with what its handshakes have; every combination once."""
    columns = ("capture", "server", "server_port", "server_wscale", "server_sack")
    plain = streams.select(columns)
    for name in ("capture", "server"):
        plain = plain.set_column(plain.schema.get_field_index(name), name, plain[name].cast("string"))
    distinct = plain.group_by(list(columns)).aggregate([])
    return zip(*(distinct[name].to_pylist() for name in columns), strict=True)


def _differ(captures: Iterable[set[tuple[Any, ...]]]) -> bool:
    """Has a machine of one capture nothing in common with that of another?"""
    common: set[tuple[Any, ...]] = set()
    for marks in captures:
        if common and not common & marks:
            return True
        common = common & marks or marks
    return False


def zoned(table: pa.Table, which: arrays.Array, sites: Sequence[str]) -> pa.Table:
    """The table with the site behind each private address; `which` has the capture of each row."""
    import numpy as np

    words = list(dict.fromkeys(sites))
    site = np.array([words.index(one) for one in sites], np.int64)[which] if len(which) else np.zeros(0, np.int64)
    for name in ADDRESSES:
        if name not in table.column_names or not table.num_rows:
            continue
        code, addresses = arrays.codes(table, name)
        local = np.array([*map(private, addresses), False])[code]
        key = np.where(code < 0, -1, np.where(local, site + 1, 0) * len(addresses) + code)
        known, place = np.unique(key, return_inverse=True)
        names = [_named(int(one), addresses, words) for one in known.tolist()]
        field = table.schema.field(name)
        values = _words(names, place, field.type)
        table = table.set_column(table.schema.get_field_index(name), field, values)
    return table


def _named(key: int, addresses: Sequence[str], sites: Sequence[str]) -> str | None:
    if key < 0:
        return None
    site, code = divmod(key, len(addresses))
    return addresses[code] + (f"{ZONE}{sites[site - 1]}" if site else "")


def _words(names: Sequence[str | None], place: arrays.Array, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = arrays.words([name or "" for name in names]).take(arrays.integers(place, "int64"))
    values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    return pa.chunked_array([values.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else values])
