"""Finds the process of each frame, where the capture names it.

Reads the ids of process and thread of a pcapng packet (option 8), Wireshark's block of process information (a custom
block of its enterprise number, entry 3), Apple's block and options for the same, Apple's PKTAP header, and ptcpdump's
comments, which name containers and pods, too. Nothing is guessed: a frame without any of these has no process.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from latpcap.lazy import pa
from latpcap.reading import pcapng_blocks

if TYPE_CHECKING:
    from latpcap.reading.reread import Record
    from latpcap.reading.rereadable import Recorded

_WIRESHARK, _PROCESS_ENTRY = 32622, 3
"""Enterprise number of Wireshark, and its type of an entry about a process."""
_CUSTOM_BLOCKS = (0xBAD, 0x40000BAD)
"""Types of custom blocks, which begin with an enterprise number."""
_APPLE_BLOCK = 0x80000001
"""Type of the block with which macOS describes a process."""
_COMMENT, _FLAGS, _PROCESS_THREAD, _APPLE, _APPLE_EFFECTIVE = 1, 2, 8, 0x8001, 0x8003
"""Options of a packet."""
_NAME, _PATH, _COMMAND_LINE, _USER = 2, 3, 4, 7
"""Options of Wireshark's block; Apple's block has only the name."""
_PKTAP = (258, 149)
"""LINKTYPE_ numbers of PKTAP, whose frames name the process."""
_MAX_PROCESSES = 1 << 16
"""Upper bound on the processes of a section."""
_MAX_TEXT = 1024
"""Upper bound on the letters of a name or command line."""
_PTCPDUMP = {
    "PID": "pid", "Cmd": "path", "Command": "path", "Args": "command", "UserId": "user",
    "ContainerName": "container", "PodName": "pod", "PodNamespace": "namespace",
}  # fmt: skip
SIDES = ("client", "server")
_HEAD_BYTES = 1 << 20
"""Bytes at the beginning of a file that are searched for processes."""
COLUMNS = [f"{side}_{what}" for side in SIDES for what in ("process", "pid", "container", "pod")]
"""Columns that `streams` has on request."""
_ENDS = ("stream", "client", "client_port", "server", "server_port")


@dataclass(frozen=True)
class Process:
    """A process; fields that are not known are empty or 0."""

    pid: int = 0
    name: str = ""
    command: str = ""
    user: str = ""
    container: str = ""
    pod: str = ""
    namespace: str = ""


@dataclass(frozen=True)
class Seen:
    """The process of a frame, and whether it sent the frame (None: not known)."""

    frame: int
    process: Process
    sent: bool | None


def of_blocks(files: Iterable[Iterable[bytes]]) -> Iterator[Seen]:
    """Yield the processes that pcapng files name, in the order of frames."""
    frame = 0
    for file in files:
        by_id: dict[int, Process] = {}
        apple: list[Process] = []
        for block_type, big, body in pcapng_blocks.blocks(file):
            order = ">" if big else "<"
            if block_type in pcapng_blocks.FRAMES:
                frame += 1
            if block_type == pcapng_blocks.SECTION:
                by_id, apple = {}, []
            elif block_type in _CUSTOM_BLOCKS and len(by_id) < _MAX_PROCESSES:
                if (process := _of_wireshark(body, order)) is not None:
                    by_id[process.pid] = process
            elif block_type == _APPLE_BLOCK and len(body) >= 4 and len(apple) < _MAX_PROCESSES:
                options = dict(_options(body[4:], order))
                apple.append(Process(struct.unpack_from(f"{order}I", body)[0], _text(options.get(_NAME, b""))))
            elif block_type == pcapng_blocks.PACKET and len(body) >= 20:
                (captured,) = struct.unpack_from(f"{order}I", body, 12)
                owner = _of_packet(list(_options(body[20 + captured + -captured % 4 :], order)), order, by_id, apple)
                if owner is not None:
                    yield replace(owner, frame=frame)


def _options(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + 4 <= len(data):
        code, length = struct.unpack_from(f"{order}HH", data, offset)
        value = data[offset + 4 : offset + 4 + length]
        if not code or len(value) < length:
            return
        yield code, value
        offset += 4 + length + -length % 4


def _of_wireshark(body: bytes, order: str) -> Process | None:
    """Return the process in a custom block; its entry is little-endian in any section."""
    if len(body) < 16 or struct.unpack_from(f"{order}I", body)[0] != _WIRESHARK:
        return None
    entry, size, pid = struct.unpack_from("<III", body, 4)
    if entry != _PROCESS_ENTRY:
        return None
    options = {code: _text(value) for code, value in _options(body[16 : 12 + size], "<")}
    path = options.get(_PATH, "")
    name = options.get(_NAME) or path.rpartition("/")[2]
    return Process(pid, name, options.get(_COMMAND_LINE, path), options.get(_USER, ""))


def _of_packet(
    options: list[tuple[int, bytes]], order: str, by_id: dict[int, Process], apple: list[Process]
) -> Seen | None:
    """Return the process that a packet's options name, and whether it sent; None without one."""
    process: Process | None = None
    sent: bool | None = None
    effective = False
    for code, value in options:
        if code == _FLAGS and len(value) == 4:
            sent = {1: False, 2: True}.get(struct.unpack(f"{order}I", value)[0] & 3)
        elif code == _PROCESS_THREAD and len(value) == 8:
            (pid,) = struct.unpack_from(f"{order}I", value)
            if pid:
                process = by_id.get(pid, Process(pid))
        elif code in (_APPLE, _APPLE_EFFECTIVE) and len(value) == 4 and not effective:
            (index,) = struct.unpack(f"{order}I", value)
            if index < len(apple):
                process, effective = apple[index], code == _APPLE_EFFECTIVE
        elif code == _COMMENT and (from_comment := _of_comment(_text(value, lines=True))) is not None:
            process = from_comment
    return None if process is None else Seen(0, process, sent)


def _of_comment(text: str) -> Process | None:
    """Return the process in a comment of ptcpdump, which has lines `Key: value`."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.strip().partition(":")
        if colon and key in _PTCPDUMP:
            fields[_PTCPDUMP[key]] = value.strip().removesuffix("...")
    pid, path = fields.pop("pid", ""), fields.pop("path", "")
    if not (pid.isdecimal() and len(pid) <= 10 and path):
        return None
    return Process(int(pid), path.rpartition("/")[2], **fields)


def of_records(records: Iterable[Record]) -> Iterator[Seen]:
    """Yield the processes in PKTAP headers: the effective one, on whose behalf another one works, if it is named."""
    for record in records:
        if record.link not in _PKTAP or len(record.data) < 108:
            continue
        (flags,) = struct.unpack_from("<I", record.data, 36)
        sent = {1: False, 2: True}.get(flags & 3)
        for offset in (84, 52):
            (pid,) = struct.unpack_from("<i", record.data, offset)
            name = _text(record.data[offset + 4 : offset + 24].partition(b"\0")[0])
            if pid > 0 and name:
                yield Seen(record.frame, Process(pid, name), sent)
                break


def _text(value: bytes, *, lines: bool = False) -> str:
    """Printable text; the arguments of a command line are separated by zero bytes."""
    text = value.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    kept = "".join(letter if letter.isprintable() or (lines and letter == "\n") else "\ufffd" for letter in text)
    return kept if lines else kept[:_MAX_TEXT]


def has_named_processes(capture: Recorded) -> bool:
    """Return whether the capture's first frames name a process; reads only what can be read again quickly."""
    if any("://" in name for name in capture.files):
        return False
    for blocks in capture.blocks_again():
        head = next(iter(blocks), b"")[:_HEAD_BYTES]
        if next(of_blocks([[head]]), None) is not None:
            return True
        break
    return next(of_records(capture.records(range(1, 17))), None) is not None if capture.frames else False


def seen(capture: Recorded) -> Iterator[Seen]:
    """Yield the processes of all frames that name one; reads the capture again."""
    yield from of_blocks(capture.blocks_again())
    yield from of_records(capture.records())


def table(capture: Recorded, events: pa.Table | None = None) -> pa.Table:
    """Return the processes of TCP connections, one row per process and side; see `Capture.processes`."""
    unfiltered = capture.unfiltered
    events = capture.arrow("events") if events is None else events
    seen_of = {seen_frame.frame: seen_frame for seen_frame in seen(unfiltered)}
    rows: dict[tuple[int, str | None, Process], list[int]] = {}
    if seen_of:
        names = ("frame", "stream", "from_client", "src", "dst")
        segments = [row for row in zip(*(events[name].to_pylist() for name in names), strict=True) if row[0] in seen_of]
        host = _local({frozenset((src, dst)) for frame, _, _, src, dst in segments if seen_of[frame].sent is None})
        for frame, stream, from_client, src, _ in segments:
            seen_frame = seen_of[frame]
            sent = seen_frame.sent if seen_frame.sent is not None or host is None else src == host
            side = None if sent is None else SIDES[from_client != sent]
            rows.setdefault((stream, side, seen_frame.process), []).append(frame)
    streams = {row["stream"]: row for row in unfiltered.arrow("streams").select([*_ENDS]).to_pylist()} if rows else {}
    records = [
        {
            "stream": stream, "side": side, "address": side and streams[stream][side],
            "port": side and streams[stream][f"{side}_port"], "pid": process.pid, "process": process.name or None,
            "command": process.command or None, "user": process.user or None, "container": process.container or None,
            "pod": process.pod or None, "namespace": process.namespace or None,
            "frames": len(frames), "first_frame": frames[0],
        }
        for (stream, side, process), frames in sorted(rows.items(), key=lambda item: (item[0][0], item[1][0]))
    ]  # fmt: skip
    word, number = pa.string(), pa.uint64()
    schema = pa.schema(
        [
            ("stream", pa.uint32()), ("side", word), ("address", word), ("port", pa.uint16()), ("pid", pa.uint32()),
            ("process", word), ("command", word), ("user", word), ("container", word), ("pod", word),
            ("namespace", word), ("frames", number), ("first_frame", number),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(records, schema=schema)


def of_streams(streams: pa.Table, processes: pa.Table) -> pa.Table:
    """Return the streams with COLUMNS: of the process with the most frames on each side."""
    best: dict[tuple[int, str], dict[str, Any]] = {}
    for row in sorted(processes.to_pylist(), key=lambda row: -row["frames"]):
        best.setdefault((row["stream"], row["side"]), row)
    for column in COLUMNS:
        side, fact = column.split("_")
        values = [best.get((stream, side), {}).get(fact) for stream in streams["stream"].to_pylist()]
        streams = streams.append_column(column, pa.array(values, pa.uint32() if fact == "pid" else pa.string()))
    return streams


def _local(pairs: set[frozenset[str]]) -> str | None:
    """Return the address that all these pairs share, which is the recording host's; None where there is none."""
    common = frozenset.intersection(*pairs) if pairs else frozenset()
    return next(iter(common)) if len(common) == 1 else None


def by_stream(processes: pa.Table, fact: str) -> dict[int, str]:
    """Return the "process", "container" or "pod" of each stream's ends, the client's first."""
    names_of: dict[int, list[str]] = {}
    rows = processes.to_pylist()
    for row in sorted(rows, key=lambda row: (row["stream"], row["side"] or "z", -row["frames"])):
        names = names_of.setdefault(row["stream"], [])
        name = row[fact] or (f"pid {row['pid']}" if fact == "process" else None)
        if name is not None and name not in names:
            names.append(name)
    return {stream: " → ".join(names) for stream, names in names_of.items() if names}
