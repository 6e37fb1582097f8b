"""`Recording`: a capture's tables, and methods that read its bytes again.

The core's batches are taken over as they are and become pyarrow tables on first use. A filter makes a part of a
capture, which has fewer rows with unchanged numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from latpcap import _core, spill
from latpcap.errors import CaptureError, NoSuchRowError
from latpcap.format import count, escaped
from latpcap.lazy import pa, pd
from latpcap.reading import sources, timestamps
from latpcap.reading.drain import TABLES, taken
from latpcap.tables import ORDER, in_order, to_pandas
from latpcap.views.view import View

if TYPE_CHECKING:
    from latpcap.options import TableName
    from latpcap.reading.keylog import Keylog
    from latpcap.reading.pcapng_blocks import Foreign
    from latpcap.reading.reread import Record, Segments
    from latpcap.reading.timestamps import Given

_CACHES = ("_frames", "_found", "_heads", "_kept", "_named")
"""Attributes that are computed from the tables: neither pickled nor shared with a filtered part."""


class Recording(View):
    """The tables of a capture, and access to its bytes."""

    _raw: dict[str, _core.Table | pa.Table]
    _whole: Self | None

    def __init__(
        self,
        name: str,
        analysis: _core.Analysis,
        broken: Sequence[CaptureError] = (),
        *,
        origins: Sequence[sources.Origin] = (),
        keylog: Keylog | None = None,
        end: Given | None = None,
    ):
        self.name = name
        self.files = [origin.name for origin in origins]
        self._origins = origins
        self._keylog = keylog
        self._end = end
        self.frames = analysis.frames
        self.format = analysis.format
        self.digits = analysis.digits
        self.zero_ns = analysis.zero_ns
        self.first_ns = analysis.first_ns
        self.last_ns = analysis.last_ns
        self._raw = {name: rows for name, rows in taken(analysis).items()}
        self._broken = broken
        self._arrow: dict[str, pa.Table] = {}
        self.display_filter: str | None = None
        if end is not None and self.zero_ns is not None:
            self.display_filter = f'frame.time < "{timestamps.text(end.since_1970(self.zero_ns))}"'
        self._whole = None

    @staticmethod
    def tables() -> tuple[TableName, ...]:
        """Return the names of a capture's tables, without `findings`, which are computed from them."""
        return TABLES

    def arrow(self, name: TableName) -> pa.Table:
        """Return a table as a pyarrow.Table, without a copy; KeyError for a wrong name."""
        if name == "findings":
            return self._findings()
        if name in ("waits", "actions") and name not in self._arrow:
            from latpcap.user_waits import waits

            read: dict[str, pa.Table] = {name: self.arrow(name) for name in waits.READS}
            made = waits.find_actions(read)
            self._arrow["waits"], self._arrow["actions"] = waits.tables(made, waits.beside(read, made))
        if name == "groups" and name not in self._arrow:
            from latpcap.user_waits import groups

            rows: dict[str, pa.Table] = {name: self.arrow(name) for name in groups.READS}
            self._arrow["groups"] = groups.table(groups.find_groups(rows), rows)
        if name not in self._arrow:
            raw = self._raw.get(name)
            if raw is None:
                if name in self._arrow:  # another thread has just made it
                    return self._arrow[name]
                raise KeyError(f"no table {name!r}; there are {', '.join(TABLES)}, findings, waits, actions, groups")
            # as pa.table(), which would import pandas
            table = pa.RecordBatchReader.from_stream(raw).read_all()
            if name == "streams":
                table = numbered(table)
            elif name == "causes":
                table = in_order(table)
            elif name == "issues":
                table = self._issues(table)
            elif name in ORDER:
                table = table if name == "exchanges" else table.unify_dictionaries()
                table = table.sort_by([(column, "ascending") for column in ORDER[name]])
            self._arrow[name] = table
            if name not in ("streams", "issues"):
                self._raw.pop(name, None)  # frees the unsorted rows
                del raw
                if table.num_rows >= spill.BLOCK:
                    spill.trim_heap()
        return self._arrow[name]

    def rows(self, name: TableName) -> int:
        """Return the number of rows of a table, without making it."""
        raw = self._raw.get(name)  # another thread may be making it
        return self.arrow(name).num_rows if raw is None or name in self._arrow else len(raw)

    def pieces(self, name: TableName) -> Iterator[pa.Table]:
        """Yield the rows of a table in parts, in the core's order, or sorted if the table was made already."""
        raw, table = self._raw.get(name), self._arrow.get(name)
        if raw is None or table is not None:
            table = self.arrow(name)
            yield from (table.slice(part.start, part.stop - part.start) for part in spill.parts(table.num_rows))
        else:
            yield from (pa.Table.from_batches([batch]) for batch in pa.RecordBatchReader.from_stream(raw))

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the tables, and the paths of the files, from which bytes can be read again."""
        state = {name: value for name, value in self.__dict__.items() if name not in _CACHES}
        tables = {name: self.arrow(name) for name in TABLES}
        reopenable = [origin for origin in self._origins if isinstance(origin.source, (str, os.PathLike))]
        origins = reopenable if len(reopenable) == len(self._origins) else []
        return state | {"_raw": tables, "_arrow": dict(tables), "_origins": origins}

    @property
    def title(self) -> str:
        """The file's name, and the display filter in brackets."""
        name = escaped(Path(self.name).name)
        return name if self.display_filter is None else f"{name} [{self.display_filter}]"

    @property
    def _files(self) -> Sequence[str]:
        return [self.name]

    @property
    def _start_ns(self) -> int:
        return self.zero_ns or 0

    def _issues(self, table: pa.Table) -> pa.Table:
        """Return the core's issues, and errors of reading that occurred before the core."""
        if not self._broken:
            return table
        text_schema = pa.schema([f.with_type(pa.string()) if f.name in ("kind", "layer") else f for f in table.schema])
        rows = [
            {
                "file": escaped(problem.file),
                "kind": "damaged",
                "offset": problem.offset,
                "layer": problem.layer,
                "reason": problem.reason,
                "count": 1,
            }
            for problem in self._broken
        ]
        return pa.concat_tables([table.cast(text_schema), pa.Table.from_pylist(rows, schema=text_schema)])

    @property
    def unfiltered(self) -> Self:
        """The capture that `filter` was first called on; itself if it is not filtered."""
        return self if self._whole is None else self._whole

    def _known_origins(self) -> Sequence[sources.Origin]:
        """Return the sources of the bytes; CaptureError where they are not known."""
        if not self._origins:
            raise CaptureError(self.name, "its bytes are not known any more")
        return self._origins

    def records(self, frames: Iterable[int] | None = None) -> Iterator[Record]:
        """Return frames with their bytes, TCP or not (default: all), in file order; reads the capture again.

        CaptureError where the source cannot be read twice (standard input, a pipe) or was replaced.
        """
        from latpcap.reading.reread import records

        read_again = records(self._known_origins(), frames, broken=bool(self._broken))
        return islice(read_again, self.frames)  # the file may have grown

    def foreign(self, frames: Container[int] | None = None) -> Foreign:
        """Return what a pcapng file holds besides packets, of these frames or of all; reads the capture again."""
        from latpcap.reading import pcapng_blocks

        return pcapng_blocks.read_extras(self.blocks_again(), frames)

    def blocks_again(self) -> list[Iterator[bytes]]:
        """Yield the bytes of each pcapng file, read again; none for other formats. A known damage ends its file."""

        def blocks(origin: sources.Origin) -> Iterator[bytes]:
            try:
                yield from origin.blocks()
            except CaptureError:
                if not self._broken:
                    raise

        return [blocks(origin) for origin in self._origins] if self.format == "pcapng" else []

    def processes(self) -> pd.DataFrame:
        """Return one row per TCP connection, side and process, where the capture names processes.

        `stream`, `side` ("client", "server", null where only the host is known), `address, port`, `pid`, `process`,
        `command`, `user`, `container`, `pod`, `namespace`, `frames`, `first_frame`. From pcapng's ids of processes,
        Wireshark's and Apple's process blocks, PKTAP, and ptcpdump's comments; no rows without any of these.
        CaptureError where the source cannot be read twice.
        """
        return to_pandas(self._processes())

    def _processes(self) -> pa.Table:
        if "_named" not in self.__dict__:
            from latpcap.reading import processes

            self.__dict__["_named"] = processes.table(self)
        return self.__dict__["_named"]

    def heads(self) -> Iterator[bytes]:
        """Return each frame's time and lengths, by reading the capture again; see `reread.heads`."""
        from latpcap.reading.reread import heads

        return heads(self._known_origins(), broken=bool(self._broken))

    def segments(self, stream: int) -> Segments:
        """Analyse the capture again for the payload of this stream's segments, in file order; for `Stream.follow`."""
        from latpcap.reading.reread import Segments

        return Segments(self._known_origins(), stream, broken=bool(self._broken), keylog=self._keylog, end=self._end)

    def headers_again(self) -> Iterator[bytes]:
        """Analyse the capture again for the header fields that `events` lacks; see `reread.headers`."""
        from latpcap.reading.reread import headers

        return headers(self._known_origins(), broken=bool(self._broken), end=self._end)

    @property
    def headers(self) -> pd.DataFrame:
        """One row per row of `events` with the header fields that it lacks; reads the capture again.

        `frame, ttl` (IPv6: the hop limit), `dscp, ecn, ip_id, seq_raw, ack_raw`: as they stand in the innermost IP
        header and in TCP's; `frame_len`, the whole frame's length on the wire. Null: the header is damaged; of `ip_id`:
        IPv6. CaptureError where the source cannot be read twice.
        """
        return to_pandas(self._headers())

    def _headers(self) -> pa.Table:
        if "_heads" not in self.__dict__:
            from latpcap.reading.rereadable import headers

            self.__dict__["_heads"] = headers(self, self.arrow("events"))
        return self.__dict__["_heads"]

    def _by_name(self) -> dict[str, Callable[[], pa.Table]]:
        return {**super()._by_name(), "headers": self._headers}

    def payloads(self, *, stream: int | None = None, exchange: int | None = None) -> pd.DataFrame:
        """Return the payload of segments: one row per segment with payload, in file order; reads the capture again.

        `frame, from_client, seq, len` as in `events`, and `payload`: bytes, shorter than `len` where the capture cut
        them. Of one `stream`, or of one row of `exchanges` (from its request's first frame to its answer's last).
        Retransmissions have rows, too; `Stream.follow` returns each byte once, and plain text inside TLS. TypeError
        without either; IndexError where there is none; CaptureError where the source cannot be read twice.
        """
        from latpcap.reading.rereadable import payloads

        return to_pandas(payloads(self, stream, exchange))

    def record(self, frame: int) -> Record:
        """Return a frame with its bytes. `frame` is Wireshark's frame.number; IndexError where there is none."""
        if 1 <= frame <= self.frames:
            for record in self.records([frame]):
                return record
        raise NoSuchRowError(
            f"no frame {frame}: {Path(self.name).name} has {count(self.frames, 'frame')}, counted from 1"
        )

    def packet(self, frame: int) -> Any:
        """Return a frame as a dpkt object (Ethernet, SLL, IP ... by link type); frames count from 1.

        IndexError where there is no such frame; CaptureError where dpkt cannot read it or the bytes are gone.
        """
        from latpcap.reading.reread import packet

        return packet(self.record(frame), self.name)

    def to_pcap(self, path: str | os.PathLike[str], *, anonymise: bool | str | bytes = False) -> int:
        """Write these packets to a .pcap or .pcapng file, by suffix; return their number.

        Times, lengths and link types are the original ones; in .pcapng each packet's comment has its frame number and
        the wait that it shows. OutputError where the file cannot be written or cannot hold them, CaptureError as for
        `records`. A part of a capture has only the last IP fragment of a segment; the whole capture has them all.

        `anonymise=True` replaces addresses (common prefixes stay common) and names, and masks payload; HTTP/1 and TLS
        keep what bounds their messages. Times, lengths, ports, sequence numbers and the server's software stay. Frames
        other than plain TCP segments (tunnels, fragments ...) are left out. A key instead of True (text or bytes, to be
        kept secret) gives the same replacements in every file.
        """
        from latpcap.reading.slices import write_slice

        about = f"{'copy' if self._whole is None else 'part'} of {self.title}; comments have its frame numbers"
        return write_slice(self, None if self._whole is None else self, path, about, anonymise=anonymise)

    def filter(self, expression: str) -> Self:
        """Return the part of this capture that passes a Wireshark display filter.

        `events`: the segments that pass; `streams`: those with such a segment, unchanged; `exchanges` and `causes`:
        those that such a segment is a part of, complete. `others`: the frames of other protocols that pass, which
        `to_pcap` writes, too. Frame, stream and exchange numbers stay. FilterError shows the place of a mistake. The
        fields are in docs/filters.md.
        """
        from latpcap.reading.filters.limit import tables

        limited = object.__new__(type(self))  # copy.copy would use __getstate__, which may lose the bytes
        limited.__dict__.update(self.__dict__)
        for cache in _CACHES:
            limited.__dict__.pop(cache, None)
        tables_left = {name: self.arrow(name) for name in TABLES} | tables(self, expression)
        limited._arrow, limited._raw = tables_left, dict(tables_left)
        limited._whole = self.unfiltered
        before = self.display_filter
        limited.display_filter = expression if before is None else f"({before}) and ({expression})"
        return limited

    @property
    def others(self) -> list[int]:
        """The frames that pass the display filter and are no TCP segments; [] without a filter. Reads again.

        CaptureError where the source cannot be read twice.
        """
        if self.display_filter is None:
            return []
        from latpcap.reading.filters.evaluate import frames

        passed = frames(self.unfiltered, self.display_filter).to_pylist()
        segments = set(self.unfiltered.arrow("events")["frame"].to_pylist())
        return [frame for frame in passed if frame not in segments]

    @property
    def seconds(self) -> float:
        """Seconds from the capture's first to its last frame; 0.0 without frames."""
        if self.first_ns is None or self.last_ns is None:
            return 0.0
        return (self.last_ns - self.first_ns) / 1e9

    @property
    def damage(self) -> list[str]:
        """A sentence for each place where the capture is damaged; empty where it is whole."""
        if not len(self._raw["issues"]) and not self._broken:
            return []
        rows = self.arrow("issues").to_pylist()
        return [_sentence(row) for row in rows if row["kind"] == "damaged"]


def numbered(streams: pa.Table) -> pa.Table:
    """Sort streams by number, if the batches overlap: streams of reused ports are completed earlier."""
    batches = [chunk for chunk in streams["stream"].chunks if len(chunk)]
    ends = [chunk[:1].to_pylist() + chunk[-1:].to_pylist() for chunk in batches]
    if all(before[1] < after[0] for before, after in pairwise(ends)):
        return streams
    return streams.unify_dictionaries().sort_by("stream")


def _sentence(issue: dict[str, Any]) -> str:
    location = [escaped(issue["file"])]
    if issue["offset"] is not None:
        location.append(f"byte {issue['offset']:,}")
    if issue["frame"] is not None:
        location.append(f"frame {issue['frame']:,}")
    return f"{', '.join(location)}: {issue['layer']}: {issue['reason']}"
