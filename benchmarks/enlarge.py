"""Make a long capture from copies of a short one. Each copy has its own client address and begins later.

    enlarge.py IN.pcap OUT.pcap PACKETS [--reset]

IN is a classic pcap of Ethernet and IPv4 whose server is 192.168.0.30, as in sample_pcaps. The copies are separate
connections, so the numbers of streams and exchanges grow with the packets. With --reset each connection ends with a RST
of both sides, so that no more are open at a time than in IN. Checksums are not updated.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

RECORD = struct.Struct("<IIII")
HEADER_BYTES = 24
MICROSECONDS = b"\xd4\xc3\xb2\xa1"
SERVER = bytes([192, 168, 0, 30])
TCP, RST = 6, 4
APART_US = 3_000_000
"""Time between the starts of two copies."""


def records(data: bytes) -> list[tuple[int, int, bytes]]:
    """Return microseconds since the epoch, original length and bytes of each packet."""
    if not data.startswith(MICROSECONDS):
        sys.exit("expected a little-endian pcap with microseconds")
    packets, offset = [], HEADER_BYTES
    while offset + RECORD.size <= len(data):
        seconds, us, captured, original = RECORD.unpack_from(data, offset)
        offset += RECORD.size
        packets.append((seconds * 1_000_000 + us, original, data[offset : offset + captured]))
        offset += captured
    return packets


def readdressed(frame: bytes, copy: int) -> bytes:
    """Return the frame with the client address of this copy."""
    if copy == 0 or frame[12:14] != b"\x08\x00":
        return frame
    client = bytes([10, copy >> 16 & 255, copy >> 8 & 255, copy & 255])
    source, target = (a if a == SERVER else client for a in (frame[26:30], frame[30:34]))
    return frame[:26] + source + target + frame[34:]


def resets(packets: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Return a RST after the last segment of each side of each connection."""
    last: dict[bytes, tuple[bytes, int]] = {}
    for _, original, frame in packets:
        if frame[12:14] == b"\x08\x00" and frame[23] == TCP:
            last[frame[26:38]] = (frame[:54], original)
    rst_packets = []
    for head, original in last.values():
        payload = original - 14 - 20 - (head[46] >> 4) * 4
        seq = int.from_bytes(head[38:42]) + payload
        ip, tcp = head[14:34], head[34:54]
        short = ip[:2] + (40).to_bytes(2) + ip[4:]
        ended = tcp[:4] + (seq % 2**32).to_bytes(4) + tcp[8:12] + bytes([5 << 4, RST]) + tcp[14:]
        rst_packets.append((packets[-1][0] + 1, 54, head[:14] + short + ended))
    return rst_packets


def enlarge(short: Path, long: Path, packets: int, *, reset: bool = False) -> None:
    """Write whole copies, with at least `packets` packets."""
    data = short.read_bytes()
    once = records(data)
    once += resets(once) if reset else []
    with open(long, "wb") as out:
        out.write(data[:HEADER_BYTES])
        for copy in range(-(-packets // len(once))):
            for time, original, frame in once:
                seconds, us = divmod(time + copy * APART_US, 1_000_000)
                out.write(RECORD.pack(seconds, us, len(frame), original) + readdressed(frame, copy))


if __name__ == "__main__":
    enlarge(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), reset="--reset" in sys.argv[4:])
