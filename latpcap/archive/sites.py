"""Decides whether a private address means the same machine in all captures of an archive, or another one at each site.

Takes the captures and the servers of their streams; returns the site of each capture. Where sites are kept apart,
private addresses carry the site's name, as link-local addresses carry a zone (RFC 4007): "192.168.0.30%berlin". Public
addresses are the same machine everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from latpcap import arrays
from latpcap.format import shortest
from latpcap.lazy import np, pa, pc

Sites: TypeAlias = Literal["auto", "one", "folder", "capture"]
ADDRESSES = ("client", "server", "src", "dst", "answer_from")
"""The columns of addresses, in all tables."""
ZONE = "%"
_DATE = re.compile(r"(19|20)\d\d([-_.]?\d\d){0,2}([-_T.]?\d\d){0,3}|\d{1,2}|[hH]?\d\d?h?", re.ASCII)
"""Folder names that are a date or a time: captures of one place by day are one site."""
_KEPT = re.compile(r"[^\w.+-]+")


class Apart(NamedTuple):
    """What a site is ("folder" or "capture"), and the site's name for each capture."""

    by: str
    names: list[str]

    @property
    def distinct(self) -> list[str]:
        """The names of the sites."""
        return sorted(set(self.names))


def checked(given: str) -> Sites:
    """Return the word as a `Sites`; ValueError for another word."""
    if given not in get_args(Sites):
        raise ValueError(f"expected one of {', '.join(get_args(Sites))}, got {given!r}")
    return given  # type: ignore[return-value]


@lru_cache(maxsize=1 << 16)
def is_private(address: str) -> bool:
    """Return whether several machines can have this address, each in its own network."""
    ip = ip_address(address)
    return not ip.is_global and not ip.is_multicast and not ip.is_unspecified


def site_of(address: str) -> str | None:
    """Return the site of an address; None for an address that is the same machine everywhere."""
    return address.partition(ZONE)[2] or None


def _folder(file: str) -> str:
    """Return the folder of a capture's file, without parts that are dates."""
    folder, _, _ = file.replace("\\", "/").rpartition("/")
    return "/".join(part for part in folder.split("/") if not _DATE.fullmatch(part))


def _names(paths: Sequence[str]) -> list[str]:
    """Short names of these places, for use after addresses."""
    distinct = list(dict.fromkeys(paths))
    short = dict(zip(distinct, shortest(distinct), strict=True))
    return [_KEPT.sub("_", short[path]).strip("_") or "here" for path in paths]


def split(rows: Sequence[Mapping[str, Any]], streams: pa.Table, division: Sites = "auto") -> Apart | None:
    """Return the site of each capture; None where all captures are of one network.

    "auto": folders are sites if a private server is in captures of several folders. Within one folder, each capture is
    a site if a private server's handshakes (window scale, SACK) differ between captures.
    """
    files = [row["files"][0] for row in rows]
    folders = [_folder(file) for file in files]
    if division == "one" or len(rows) < 2:
        return None
    if division == "capture":
        return Apart("capture", _names(files))
    if division == "folder":
        return Apart("folder", _names(folders))
    number_of = {row["capture"]: number for number, row in enumerate(rows)}
    folders_of: dict[tuple[str, int], set[str]] = {}
    handshakes_of: dict[tuple[str, int], dict[int, set[tuple[Any, ...]]]] = {}
    for capture, server, port, *handshake in _servers(streams):
        number = number_of.get(capture)
        if number is not None and is_private(server):
            folders_of.setdefault((server, port), set()).add(folders[number])
            if handshake[0] is not None:
                handshakes_of.setdefault((server, port), {}).setdefault(number, set()).add(tuple(handshake))
    if any(len(server_folders) > 1 for server_folders in folders_of.values()):
        return Apart("folder", _names(folders))
    differ = any(_differ(by_capture.values()) for by_capture in handshakes_of.values())
    return Apart("capture", _names(files)) if differ else None


def _servers(streams: pa.Table) -> Iterable[tuple[Any, ...]]:
    """Return each server of each capture with the options of its handshakes; every combination once."""
    columns = ("capture", "server", "server_port", "server_wscale", "server_sack")
    plain = streams.select(columns)
    for name in ("capture", "server"):
        plain = plain.set_column(plain.schema.get_field_index(name), name, plain[name].cast("string"))
    distinct = plain.group_by(list(columns)).aggregate([])
    return zip(*(distinct[name].to_pylist() for name in columns), strict=True)


def _differ(captures: Iterable[set[tuple[Any, ...]]]) -> bool:
    """Return whether the handshakes of one capture have nothing in common with those of another."""
    common: set[tuple[Any, ...]] = set()
    for marks in captures:
        if common and not common & marks:
            return True
        common = common & marks or marks
    return False


def zoned(table: pa.Table, which: arrays.Array, sites: Sequence[str]) -> pa.Table:
    """Return the table with the site after each private address; `which` has the capture of each row."""
    distinct_sites = list(dict.fromkeys(sites))
    code_of_capture = np.array([distinct_sites.index(site) for site in sites], np.int64)
    site = code_of_capture[which] if len(which) else np.zeros(0, np.int64)
    for name in ADDRESSES:
        if name not in table.column_names or not table.num_rows:
            continue
        code, addresses = arrays.codes(table, name)
        local = np.array([*map(is_private, addresses), False])[code]
        key = np.where(code < 0, -1, np.where(local, site + 1, 0) * len(addresses) + code)
        unique_keys, name_rows = np.unique(key, return_inverse=True)
        names = [_named(int(key), addresses, distinct_sites) for key in unique_keys.tolist()]
        field = table.schema.field(name)
        values = _address_column(names, name_rows, field.type)
        table = table.set_column(table.schema.get_field_index(name), field, values)
    return table


def _named(key: int, addresses: Sequence[str], sites: Sequence[str]) -> str | None:
    if key < 0:
        return None
    site, code = divmod(key, len(addresses))
    return addresses[code] + (f"{ZONE}{sites[site - 1]}" if site else "")


def _address_column(names: Sequence[str | None], rows: arrays.Array, arrow_type: pa.DataType) -> pa.ChunkedArray:
    values = arrays.strings([name or "" for name in names]).take(arrays.integers(rows, "int64"))
    values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    return pa.chunked_array(
        [values.dictionary_encode().cast(arrow_type) if pa.types.is_dictionary(arrow_type) else values]
    )
