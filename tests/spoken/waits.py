"""Waits and transfers that do not lead: something else cost more."""

from __future__ import annotations

import io

import dpkt
from makepcap import EPOCH_NS
from test_waits import Tape, late_neighbour, lost_pair
from transfer_simulator import Transfer

from spoken.registry import says


def _names_and_neighbours() -> Tape:
    tape = Tape()
    lost_pair(tape)
    late_neighbour(tape)
    return tape


@says("  waited    ARP: 10.0.0.2 did not answer who has its address: 10.0.0.1 asked 3 times")
def a_late_neighbour_beside_lost_names() -> bytes:
    return _names_and_neighbours().bytes()


@says("  transfer  10.0.0.4:80: a download of 2 MB at 16.7 Mbit/s", "allows no more at 30.0 ms of round trip")
def a_small_window_beside_lost_names() -> bytes:
    tape = Tape()
    lost_pair(tape)
    for seconds, frame in dpkt.pcap.Reader(io.BytesIO(Transfer(window=65_536).captures()["receiver"])):
        since = (float(seconds) - EPOCH_NS / 1e9) * 1000
        tape.frames.append((since, bytes(frame).replace(b"\x0a\0\0\2", b"\x0a\0\0\4")))
    return tape.bytes()
