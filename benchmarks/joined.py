#!/usr/bin/env python3
"""Measure CPU and memory of joining two captures, compared with analysing each of them.

    joined.py [--packets N] [--scratch FOLDER]

Copies sample_pcaps/two-points until both captures have N packets (default: a million). Each copy has its own client
address, sequence numbers and time stamps, and overlaps in time with the copy before. Prints CPU seconds and peak memory
of `why` on each capture and of `why --join` on both, and the ratio. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import random
import struct
import sys
import tempfile
from pathlib import Path

from enlarge import HEADER_BYTES, RECORD, records

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample_pcaps" / "two-points"
APART_US = 400_000
"""Time between the starts of two copies. A copy lasts about four seconds."""
MS_PER_COPY = APART_US // 1000
CLIENTS = (bytes([10, 77, 1, 2]), bytes([10, 77, 2, 1]))
"""The client's address in its own capture, and after the router."""
ETHERNET_BYTES, ADDRESSES, TCP = 14, slice(26, 34), 34
TIMESTAMPS, NOP, END = 8, 1, 0
MAX_RATIO, MAX_MB = 1.5, 300


def moved(frame: bytearray, client: bytes, address: bytes, seqs: tuple[int, int], ms: int) -> None:
    """Give the frame this client's address, and shift its numbers and time stamps."""
    source, target = frame[26:30], frame[30:34]
    from_client = source == client
    frame[ADDRESSES] = address + target if from_client else source + address
    seq, ack = struct.unpack_from(">II", frame, TCP + 4)
    own_offset, peer_offset = seqs if from_client else seqs[::-1]
    struct.pack_into(">II", frame, TCP + 4, (seq + own_offset) % 2**32, (ack + peer_offset) % 2**32)
    offset, end = TCP + 20, TCP + (frame[TCP + 12] >> 4) * 4
    while offset < end and frame[offset] != END:
        if frame[offset] == TIMESTAMPS:
            tsval, tsecr = struct.unpack_from(">II", frame, offset + 2)
            struct.pack_into(">II", frame, offset + 2, (tsval + ms) % 2**32, (tsecr + ms) % 2**32 if tsecr else 0)
        offset += 1 if frame[offset] == NOP else max(frame[offset + 1], 2)


def enlarge(source: Path, target: Path, packets: int, client: bytes) -> None:
    """Write `packets` packets of the copies in order of time."""
    data = source.read_bytes()
    sample = records(data)
    copies = -(-packets // len(sample))
    shuffled = random.Random(1)
    seqs = [(shuffled.getrandbits(32), shuffled.getrandbits(32)) for _ in range(copies)]
    order = sorted(
        (time + copy * APART_US, copy, index) for copy in range(copies) for index, (time, _, _) in enumerate(sample)
    )
    with target.open("wb") as out:
        out.write(data[:HEADER_BYTES])
        for time, copy, index in order[:packets]:
            _, original, captured = sample[index]
            frame = bytearray(captured)
            address = bytes([10, 100 + (copy >> 16 & 63), copy >> 8 & 255, copy & 255])
            moved(frame, client, address, seqs[copy], copy * MS_PER_COPY)
            out.write(RECORD.pack(time // 1_000_000, time % 1_000_000, len(frame), original) + frame)


def measured(*arguments: str) -> tuple[float, float]:
    """Run latpcap and return its CPU seconds and peak memory in MB."""
    command = [str(Path(sys.executable).with_name("latpcap")), *arguments]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, 1, 0)])
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"latpcap {' '.join(arguments)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    """Print the table. Return 1 if a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--packets", type=int, default=1_000_000)
    options.add_argument("--scratch", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.scratch) as folder:
        pair = []
        for name, client in zip(("client", "server"), CLIENTS, strict=True):
            pair.append(Path(folder) / f"{name}.pcap")
            enlarge(SAMPLE / f"{name}.pcap", pair[-1], chosen.packets, client)
        alone = [measured("why", str(file)) for file in pair]
        both = measured("why", "--join", *map(str, pair))
    cpu = sum(used for used, _ in alone)
    for name, (used, mb) in zip(("why A", "why B", "why --join A B"), (*alone, both), strict=True):
        print(f"{name:15} {used:7.2f} s {mb:7.0f} MB")
    print(f"join / both     {both[0] / cpu:7.2f} x (goal {MAX_RATIO}), {both[1]:.0f} MB (goal {MAX_MB})")
    return int(both[0] > MAX_RATIO * cpu or both[1] > MAX_MB)


if __name__ == "__main__":
    sys.exit(main())
