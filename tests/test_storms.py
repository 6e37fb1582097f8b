"""Does a packet cost no more than a few others' work, whatever came before it? One test for each shape of storms.py."""

from __future__ import annotations

import os
import random
import time
from functools import cache
from pathlib import Path

import pytest
import storms

import latpcap as lp

PACKETS = 12_000
"""More than any list of one connection holds."""
MOST_READ, MOST_WHY, MOST_SLICED = 80, 120, 8
"""So many times the work of a packet of plain requests; what looks through thousands costs some hundred times."""


SEED = os.environ["LATPCAP_SEED"]
"""Another one in every run; a failure prints it."""


def seconds(frames: storms.Frames) -> tuple[float, float]:
    """CPU for each packet: to read it, and to answer `why`."""
    data = storms.pcap(storms.at(frames(PACKETS, random.Random(SEED))))
    begin = time.process_time()
    capture = lp.read(data)
    read = time.process_time()
    str(capture.why())
    return (read - begin) / capture.frames, (time.process_time() - read) / capture.frames


@cache
def plain() -> tuple[float, float]:
    seconds(storms.plain)  # modules are loaded, caches filled
    return seconds(storms.plain)


@pytest.mark.parametrize("name", storms.STORMS)
def test_a_packet_costs_as_much_as_others(name: str) -> None:
    for attempt in range(3):  # a machine may be busy once
        read, why = seconds(storms.STORMS[name])
        if read < MOST_READ * plain()[0] and why < MOST_WHY * plain()[1]:
            return
        plain.cache_clear()
        assert attempt < 2, (f"{read * 1e6:.1f} us to read, {why * 1e6:.1f} to answer", plain())


@pytest.mark.parametrize("name", ["selective_acks", "shuffled", "many_streams", "copies"])
def test_a_packet_of_a_slice_costs_as_much_as_others(name: str, tmp_path: Path) -> None:
    """Payload is put together before it is masked: thousands of holes are no more work."""

    def of(frames: storms.Frames) -> float:
        capture = lp.read(storms.pcap(storms.at(frames(PACKETS, random.Random(SEED)))))
        begin = time.process_time()
        capture.to_pcap(tmp_path / "a.pcap", anonymise=True)
        return (time.process_time() - begin) / capture.frames

    assert of(storms.STORMS[name]) < MOST_SLICED * of(storms.plain) or of(storms.STORMS[name]) < MOST_SLICED * of(
        storms.plain
    )
