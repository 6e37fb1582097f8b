"""Do these files really follow each other? Reads the beginning of each, and cuts a series where they do not fit.

Names have brought the files together (series.py). They are one capture only as long as

- their file headers are the same: pcap's 24 bytes (link type, snap length, clock, byte order), pcapng's section
version and
  interfaces,
- their numbers have no hole (a file that is missing took its packets with it),
- none begins more than a second before the one before it ended (two recordings side by side),
- and none begins later than a minute and the longest file so far: rotation loses no time, so a longer silence is taken
  for two recordings. (dumpcap numbers the files of one run, and no others: there any silence will do.)

A ring (`-W`) begins in the middle: numbers that rise, fall once and rise again are turned until they rise in time.
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
from latpcap.reading import links, places, sources

OVERLAP_NS = 1_000_000_000
SILENCE_NS = 60_000_000_000
_PCAP_HEADER = 24
_SECTION, _INTERFACE, _PACKETS = 0x0A0D0D0A, 1, (2, 3, 6)


@dataclass(frozen=True)
class Head:
    """How does this file begin? `header` is what all files of one capture share, `first_ns` None without packets."""

    part: Part
    header: bytes
    first_ns: int | None


def peek(part: Part) -> Head | Failure:
    """How does this file begin? A Failure where that is unknown."""
    analysis = _core.Analysis(links.read)
    begin = b""
    try:
        with places.open_bytes(part.place) as file:
            for block in sources.blocks(file):
                begin = begin or block
                analysis.push(block)
                if analysis.first_ns is not None or len(begin) >= sources.BLOCK_BYTES:
                    break
    except OSError as problem:
        return Failure(part.name, unopened(problem))
    except CaptureError as problem:
        if analysis.first_ns is None:
            return Failure(part.name, problem.reason, problem.offset, lasting=True)
    first = analysis.first_ns
    if first is None:
        analysis.finish()
        if analysis.refused is not None:
            _, offset, reason = analysis.refused
            return Failure(part.name, reason, offset, lasting=True)
    return Head(part, _shared(begin), first)


def unopened(problem: OSError) -> str:
    """Why can this file not be opened or read?"""
    if isinstance(problem, FileNotFoundError):
        return "no such file"
    if isinstance(problem, IsADirectoryError):
        return "is a directory, expected a capture file"
    return f"cannot be opened ({phrase(problem)})"


def _shared(begin: bytes) -> bytes:
    if begin[:4] != b"\n\r\r\n":
        return begin[:_PCAP_HEADER]
    order = "<" if begin[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    kept, at = [begin[8:16]], 0
    while at + 8 <= len(begin):
        kind, length = struct.unpack_from(order + "II", begin, at)
        if kind in _PACKETS or length < 12 or (kind == _SECTION and at):
            break
        if kind == _INTERFACE:
            kept.append(begin[at : at + length])
        at += length
    return b"".join(kept)


def runs(heads: Iterable[Head | None], rotation: str | None) -> list[list[Head]]:
    """Which of these files, in the order of their names, can be one capture each? None stands for a file without a
    head."""
    found: list[list[Head]] = [[]]
    for head in heads:
        if head is None:
            found.append([])
        elif found[-1] and not _alike(found[-1][-1], head, rotation):
            found.append([head])
        else:
            found[-1].append(head)
    return [part for run in found if run for part in _in_time(run)]


def _alike(before: Head, head: Head, rotation: str | None) -> bool:
    if before.header != head.header:
        return False
    if rotation == "tcpdump -G":
        return True
    numbers = number_of(before.part.name), number_of(head.part.name)
    return None not in numbers and numbers[1] == (numbers[0] or 0) + 1


def _in_time(run: list[Head]) -> list[list[Head]]:
    """The run, a ring's files turned into their order in time; each file alone where they have none."""
    known = [(h.first_ns, i) for i, h in enumerate(run) if h.first_ns is not None]
    falls = [after[1] for before, after in pairwise(known) if after[0] < before[0]]
    if not falls:
        return [run]
    turned = run[falls[0] :] + run[: falls[0]]
    times = [h.first_ns for h in turned if h.first_ns is not None]
    return [turned] if times == sorted(times) else [[head] for head in run]


def follows(last_ns: int | None, longest_ns: int, head: Head, rotation: str | None) -> bool:
    """Does this file go on where the ones before it ended? `longest_ns` is the longest of them."""
    if last_ns is None or head.first_ns is None:
        return True
    silence = head.first_ns - last_ns
    return silence >= -OVERLAP_NS and (rotation == "dumpcap" or silence <= max(SILENCE_NS, longest_ns))
