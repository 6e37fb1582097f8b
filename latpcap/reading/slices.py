"""Writes chosen frames of a capture to a pcap or pcapng file.

Bytes, link types, original lengths and times of the records are kept; between two pcapng files also comments, options
and unknown blocks (`pcapng_blocks.py`). The files are encoded here, since dpkt's writers support neither original
lengths nor nanoseconds.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from latpcap import files
from latpcap.errors import OutputError
from latpcap.lazy import pa, pc
from latpcap.reading.pcapng_blocks import Foreign, packed_block, packed_option
from latpcap.reading.reread import Record

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded
    from latpcap.tables import HasTables

SUFFIXES = (".pcap", ".pcapng")
MAX_PCAP_RECORD_BYTES = 262_144
"""Upper bound on the bytes of a record; Wireshark takes a longer one for damage."""
_MIN_NOTED_MS = 1.0
"""Waits below this duration get no comment."""

_Write = Callable[[Record], None]
_END_OF_OPTIONS = bytes(4)


def write_slice(
    capture: Recorded,
    scope: HasTables | None,
    path: str | os.PathLike[str],
    about: str,
    *,
    anonymise: bool | str | bytes = False,
) -> int:
    """Write the frames of a scope's events, or every frame if `scope` is None; return how many were written.

    The suffix chooses `.pcap` or `.pcapng`, and `.gz` after it compression. `about` becomes a comment of a pcapng file.
    Each of its packets has a comment with its frame number in the capture, and with the wait that it ends or proves.
    `anonymise` replaces addresses and names, drops payload and `about`, and keeps only TCP segments. A key instead of
    True gives equal replacements in every file that is written with it.

    Raises OutputError for another suffix, for what pcap cannot hold (two link types, a record beyond 262,144 bytes, a
    time before 1970 or after 2106), and if the file cannot be written or is the capture itself.
    """
    target = Path(path)
    kind = "".join(target.suffixes[-2:]).lower().removesuffix(".gz")
    kind = next((suffix for suffix in SUFFIXES if kind.endswith(suffix)), kind)
    if kind not in SUFFIXES:
        raise OutputError(f"{target}: unknown suffix {kind!r}; known are {', '.join(SUFFIXES)}, and .gz behind them")
    if any(_same_file(target, name) for name in capture.files):
        raise OutputError(f"{target}: is the capture itself")
    if anonymise:
        scope = scope or capture
        about = "an anonymised part of a capture; comments have its frame numbers"
    frames = None if scope is None else scope.arrow("events")["frame"].to_pylist()
    if frames is not None and not anonymise and scope is capture:  # a filter may also leave frames of other protocols
        frames = sorted({*frames, *capture.others})
    sliced: Iterator[Record] = (record for record in capture.records(frames) if record.link is not None)
    if anonymise and scope is not None:
        from latpcap.reading.anonymise import anonymised

        sliced = anonymised(sliced, capture.records(frames), _Senders(scope), _key(anonymise))
    head = list(islice(sliced, 1))
    sliced = chain(head, sliced)
    if kind == ".pcap":
        if scope is None:  # of several files only the last file's format is known
            nanos = len(capture.files) > 1 or capture.format not in ("pcap", "pcap (modified)")
        else:
            nanos = _needs_nanoseconds(scope.arrow("events"))
        link = next((record.link for record in head), 1)
        return _write_file(target, lambda file: pcap(file, nanos, link), sliced)
    notes = _notes((capture if scope is None else scope).arrow("causes"))
    others = Foreign() if anonymise else capture.foreign(None if frames is None else set(frames))
    return _write_file(target, lambda file: _pcapng(file, about, notes, others), sliced)


def _key(given: bool | str | bytes) -> bytes:
    """Return the caller's key, or a random one."""
    if isinstance(given, bool):
        return os.urandom(32)
    return given.encode() if isinstance(given, str) else given


class _Senders:
    """Stream and sender of each frame of the events. Looking frames up in order is fast."""

    def __init__(self, scope: HasTables):
        events = scope.arrow("events")
        self._frames, self._streams = (events[name].to_numpy() for name in ("frame", "stream"))
        self._clients = events["from_client"].to_numpy()
        streams = scope.arrow("streams").select(["stream", "protocol"]).drop_null()
        self._protocols: dict[int, str] = dict(zip(*(column.to_pylist() for column in streams.columns), strict=True))
        # A connection with gRPC has the protocol "http2" in `streams`; only its exchanges have "grpc".
        calls = scope.arrow("exchanges").select(["stream", "protocol"]).to_pylist()
        self._protocols |= {row["stream"]: "grpc" for row in calls if row["protocol"] == "grpc"}
        self._next = 0

    def get(self, frame: int) -> tuple[int, bool] | None:
        """Return a frame's stream, and whether the client sent it; None for a frame that is not among the events."""
        row = self._next
        if row >= len(self._frames) or self._frames[row] != frame:
            row = int(self._frames.searchsorted(frame))
            if row >= len(self._frames) or self._frames[row] != frame:
                return None
        self._next = row + 1
        return int(self._streams[row]), bool(self._clients[row])

    def protocol(self, stream: int) -> str:
        """Return a stream's protocol; "" if unknown."""
        return self._protocols.get(stream, "")


def _same_file(path: Path, name: str) -> bool:
    try:
        return os.path.samefile(path, name)
    except (OSError, ValueError):
        return False


def _needs_nanoseconds(events: pa.Table) -> bool:
    """Return whether a time of the events has a resolution finer than microseconds."""
    times = events["time"].cast(pa.int64())
    micros = pc.multiply(pc.divide(times, 1000), 1000)
    return bool(pc.any(pc.not_equal(times, micros)).as_py())


def _write_file(path: Path, begin: Callable[[IO[bytes]], _Write], records: Iterable[Record]) -> int:
    """Write all records and return their number. The file is written completely or not at all."""
    count = 0
    try:
        with files.replacing(path) as temporary, open(temporary, "wb") as plain, _packed(plain, path) as file:
            write = begin(file)
            for record in records:
                write(record)
                count += 1
    except OutputError as problem:
        raise OutputError(f"{path}: {problem}") from None
    except OSError as problem:
        raise OutputError(f"{path}: {problem.strerror or problem}") from None
    return count


@contextlib.contextmanager
def _packed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix.lower() != ".gz":
        yield file
        return
    with gzip.GzipFile(path.name, "wb", fileobj=file) as packed:
        yield cast(IO[bytes], packed)


def pcap(file: IO[bytes], nanos: bool, link: int | None) -> _Write:
    """Write the head of a pcap file, in microseconds or nanoseconds; return a function that writes a record."""
    magic, unit = (0xA1B23C4D, 1) if nanos else (0xA1B2C3D4, 1000)
    file.write(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, MAX_PCAP_RECORD_BYTES, link or 0))

    def write(record: Record) -> None:
        if record.link != link:
            raise OutputError(f"pcap holds one link type, these are {link} and {record.link}: write .pcapng")
        if len(record.data) > MAX_PCAP_RECORD_BYTES:
            raise OutputError(f"frame {record.frame:,} has {len(record.data):,} bytes, beyond pcap: write .pcapng")
        seconds, fraction_ns = divmod(record.time_ns, 1_000_000_000)
        if not 0 <= seconds < 2**32:
            raise OutputError(f"frame {record.frame:,} has a time that pcap cannot hold: write .pcapng")
        file.write(
            struct.pack("<IIII", seconds, fraction_ns // unit, len(record.data), record.original_len) + record.data
        )

    return write


def _pcapng(file: IO[bytes], about: str, notes: Mapping[int, str], others: Foreign) -> _Write:
    """Write the head of a pcapng file; return a function that writes a record.

    Interfaces are those of the capture, times are in ns, and each packet has a comment. The capture's own options
    follow after those written here.
    """
    comment, program, resolution = 1, 4, 9
    head = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    options = packed_option(comment, about.encode()) + packed_option(program, b"latpcap") + others.section
    file.write(packed_block(0x0A0D0D0A, head + options + _END_OF_OPTIONS))
    for block in others.blocks:
        file.write(block)
    interfaces: dict[tuple[int | None, int, int], int] = {}

    def write(record: Record) -> None:
        section = others.section_of(record.frame)
        key = (record.link, section, record.interface)
        if key not in interfaces:
            interfaces[key] = len(interfaces)
            options = packed_option(resolution, b"\x09") + others.interfaces.get((section, record.interface), b"")
            file.write(packed_block(1, struct.pack("<HHI", record.link, 0, 0) + options + _END_OF_OPTIONS))
        if record.time_ns < 0:
            raise OutputError(f"frame {record.frame:,} has a time before 1970, which these files cannot hold")
        data = record.data + b"\0" * (-len(record.data) % 4)
        note = notes.get(record.frame)
        text = (f"frame {record.frame}: {note}" if note else f"frame {record.frame}").encode()
        options = packed_option(comment, text) + others.packets.get(record.frame, b"")
        lengths = len(record.data), record.original_len
        head = struct.pack("<IIIII", interfaces[key], record.time_ns >> 32, record.time_ns & 0xFFFFFFFF, *lengths)
        file.write(packed_block(6, head + data + options + _END_OF_OPTIONS))

    return write


def _notes(causes: pa.Table) -> dict[int, str]:
    """Return the comment of each frame that ends a wait or is evidence of one: the longest such wait."""
    long = causes.filter(pc.greater_equal(causes["duration_ms"], _MIN_NOTED_MS)).sort_by("duration_ms")
    ended: dict[int, str] = {}
    shown: dict[int, str] = {}
    for row in long.to_pylist():
        wait = f"{row['duration_ms']:.3f} ms {row['cause']}" + (f" inside {row['parent']}" if row["parent"] else "")
        evidence = ", ".join(str(frame) for frame in row["evidence"])
        ended[row["to_frame"]] = f"{wait} before it ({row['owner']}, {row['grade']}; evidence: frames {evidence})"
        for frame in row["evidence"]:
            if frame != row["to_frame"]:
                shown[frame] = f"evidence of {wait} before frame {row['to_frame']}"
    return {
        frame: "; ".join(filter(None, (ended.get(frame), shown.get(frame)))) for frame in ended.keys() | shown.keys()
    }
