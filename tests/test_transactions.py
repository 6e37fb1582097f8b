"""Transactions of databases whose client took the time, with decoys."""

from __future__ import annotations

from pathlib import Path

import pytest

import latpcap as lp

CASES = Path(__file__).parent / "cases"


def causes(capture: bytes) -> set[str]:
    return {finding.cause for finding in lp.read(capture).why().findings}


@pytest.mark.parametrize(
    ("name", "old", "new", "count"),
    [
        ("client_in_transaction", b"BEGIN", b"SET b", 3),  # it thinks, but holds nothing
        ("client_in_transaction", b" for update", b"           ", 3),
    ],
)
def test_a_client_that_holds_no_lock_may_take_its_time(name: str, old: bytes, new: bytes, count: int) -> None:
    capture = (CASES / name / "capture.pcap").read_bytes()
    assert name in causes(capture)
    assert len(old) == len(new) and capture.count(old) >= count
    assert name not in causes(capture.replace(old, new))
