"""Checks that the files of a series follow each other, by the beginning of each, and cuts a series where they do not.

The files were grouped by names (`series`). They are one capture only as long as

- their file headers are equal: pcap's 24 bytes (link type, snap length, clock, byte order), pcapng's section version
  and interfaces,
- their numbers are consecutive (a missing file has the missing packets),
- no file begins more than a second before the end of the one before (two recordings at the same time),
- no file begins later after that end than a minute and the length of the longest file: rotation loses no time, so a
  longer silence means two recordings. (dumpcap numbers the files of one run only: there any silence is accepted.)

A ring buffer (`-W`) begins in the middle: numbers whose times fall once are rotated until they ascend.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from latpcap import _core
from latpcap.archive.model import Failure, Part
from latpcap.archive.series import number_of
from latpcap.errors import CaptureError
from latpcap.format import phrase
from latpcap.reading import links, locations, sources

OVERLAP_NS = 1_000_000_000
"""Longest time by which a file may begin before the end of the one before."""
SILENCE_NS = 60_000_000_000
"""Longest silence between two files, unless a file is longer."""
_PCAP_HEADER_BYTES = 24
_SECTION, _INTERFACE, _PACKETS = 0x0A0D0D0A, 1, (2, 3, 6)
"""Types of pcapng blocks: section header, interface description, and those with packets."""


@dataclass(frozen=True)
class Head:
    """The beginning of a file: `header` is equal in all files of one capture, `first_ns` is None without packets."""

    part: Part
    header: bytes
    first_ns: int | None


def peek(part: Part) -> Head | Failure:
    """Read the beginning of a file; a Failure where it cannot be read."""
    analysis = _core.Analysis(links.read)
    beginning = b""
    try:
        with locations.open_bytes(part.location) as file:
            for block in sources.blocks(file):
                beginning = beginning or block
                analysis.push(block)
                if analysis.first_ns is not None or len(beginning) >= sources.BLOCK_BYTES:
                    break
    except OSError as problem:
        return Failure(part.name, unopened(problem))
    except CaptureError as problem:
        if analysis.first_ns is None:
            return Failure(part.name, problem.reason, problem.offset, lasting=problem.layer != "file")
    first_ns = analysis.first_ns
    if first_ns is None:
        analysis.finish()
        if analysis.refused is not None:
            _, offset, reason = analysis.refused
            return Failure(part.name, reason, offset, lasting=True)
    return Head(part, _shared_header(beginning), first_ns)


def unopened(problem: OSError) -> str:
    """Return why a file cannot be opened or read."""
    if isinstance(problem, FileNotFoundError):
        return "no such file"
    if isinstance(problem, IsADirectoryError):
        return "is a directory, expected a capture file"
    return f"cannot be opened ({phrase(problem)})"


def _shared_header(beginning: bytes) -> bytes:
    if beginning[:4] != b"\n\r\r\n":
        return beginning[:_PCAP_HEADER_BYTES]
    order = "<" if beginning[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    header_parts, offset = [beginning[8:16]], 0
    while offset + 8 <= len(beginning):
        block_type, length = struct.unpack_from(order + "II", beginning, offset)
        if block_type in _PACKETS or length < 12 or (block_type == _SECTION and offset):
            break
        if block_type == _INTERFACE:
            header_parts.append(beginning[offset : offset + length])
        offset += length
    return b"".join(header_parts)


def runs(heads: Iterable[Head | None], rotation: str | None) -> list[list[Head]]:
    """Split these files, in the order of their names, into runs that may be one capture. None is a file without a
    head."""
    candidates: list[list[Head]] = [[]]
    for head in heads:
        if head is None:
            candidates.append([])
        elif candidates[-1] and not _is_next(candidates[-1][-1], head, rotation):
            candidates.append([head])
        else:
            candidates[-1].append(head)
    return [ordered for run in candidates if run for ordered in _in_time(run)]


def _is_next(before: Head, head: Head, rotation: str | None) -> bool:
    if before.header != head.header:
        return False
    if rotation == "tcpdump -G":
        return True
    numbers = number_of(before.part.name), number_of(head.part.name)
    return None not in numbers and numbers[1] == (numbers[0] or 0) + 1


def _in_time(run: list[Head]) -> list[list[Head]]:
    """Return the run in order of time, a ring buffer's files rotated; each file alone where times do not ascend."""
    timed = [(head.first_ns, i) for i, head in enumerate(run) if head.first_ns is not None]
    falls = [after[1] for before, after in pairwise(timed) if after[0] < before[0]]
    if not falls:
        return [run]
    rotated = run[falls[0] :] + run[: falls[0]]
    times = [head.first_ns for head in rotated if head.first_ns is not None]
    return [rotated] if times == sorted(times) else [[head] for head in run]


def is_next(last_ns: int | None, longest_ns: int, head: Head, rotation: str | None) -> bool:
    """Return whether a file continues the files before it. `longest_ns` is the duration of the longest of them."""
    if last_ns is None or head.first_ns is None:
        return True
    silence = head.first_ns - last_ns
    return silence >= -OVERLAP_NS and (rotation == "dumpcap" or silence <= max(SILENCE_NS, longest_ns))
