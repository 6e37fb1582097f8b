"""A part of the time of a capture says nothing of damage that the whole does not have."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from archives import SAMPLES, later
from makepcap import pcap_of

import latpcap as lp

DATA = (SAMPLES / "nginx-latency.pcap").read_bytes()


def said(capture: lp.Capture) -> set[tuple[str, str, str]]:
    return {(row["kind"], row["layer"], row["reason"]) for row in capture.arrow("issues").to_pylist()}


def test_no_part_of_the_time_has_issues_of_its_own(tmp_path: Path, rng: random.Random) -> None:
    """Files are left in the middle of a record, and several follow each other."""
    paths = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    paths[0].write_bytes(DATA + later(DATA, 10)[24:])
    paths[1].write_bytes(later(DATA, 30))
    for source in (paths[0], paths):
        whole = said(lp.read(source))
        for _ in range(4):
            end = rng.uniform(0.0, 45.0)
            assert said(lp.read(source, end=end)) <= whole, end
            start = rng.uniform(0.0, 12.0)
            assert said(lp.read(source, start=start, end=start + rng.uniform(0.1, 9.0))) <= whole, start


def test_a_datagram_that_the_end_cuts_is_not_damaged(rng: random.Random) -> None:
    """Its last fragment comes after the end."""

    def fragment(offset: int, more: bool) -> bytes:
        payload = bytes(rng.randrange(256) for _ in range(64))
        flags = (0x2000 if more else 0) | offset // 8
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 84, 7, flags, 64, 6, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
        return bytes(12) + b"\x08\x00" + head + payload

    begin = 1_700_000_000_000_000_000
    frames = [(begin, fragment(0, True)), (begin + 2_000_000_000, fragment(64, False))]
    data = pcap_of(frames)
    whole = said(lp.read(data))
    assert said(lp.read(data, end=1.0)) <= whole
