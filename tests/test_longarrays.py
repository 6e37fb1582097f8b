"""Long columns in a file: the same values, whatever their length, and in memory where there is no file."""

from __future__ import annotations

import errno
import gc
import os
from typing import Any

import numpy as np
import pytest

from latpcap import longarrays


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are long early, so that a test need not be."""
    monkeypatch.setattr(longarrays, "LEAST_BYTES", 64)
    monkeypatch.setattr(longarrays, "PART", 16)


def in_file(values: Any) -> bool:
    """Does it lie over one of the mapped files?"""
    while isinstance(values, np.ndarray):
        if values.base is None:
            return False
        values = values.base
    return isinstance(values, memoryview) or values in longarrays._maps


def test_a_long_column_lies_in_a_file_and_keeps_its_values() -> None:
    values = np.arange(1000, dtype=np.int64)
    kept = longarrays.kept(values)
    assert in_file(kept) and not in_file(longarrays.kept(values[:4]))
    longarrays.rest()
    assert kept.tolist() == values.tolist()
    kept[3] = 7
    longarrays.rest()
    assert kept[3] == 7


def test_its_file_goes_with_it() -> None:
    gc.collect()
    before, held = len(longarrays._maps), longarrays.zeros(1000, "int64")
    assert len(longarrays._maps) == before + 1
    del held
    gc.collect()
    assert len(longarrays._maps) == before


def test_without_room_on_the_disk_it_lies_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    held = longarrays.zeros(1000, "int64")
    assert not in_file(held) and not held.any() and len(held) == 1000


def test_rising_is_seen_across_parts() -> None:
    values = np.arange(100)
    assert longarrays.rise(values) and longarrays.rise(values[:0]) and longarrays.rise(values // 3)
    for at in (1, 15, 16, 17, 99):
        wrong = values.copy()
        wrong[at] = -1
        assert not longarrays.rise(wrong), at


@pytest.mark.parametrize("spread", [0, 3, 40, 500])
@pytest.mark.parametrize("count", [0, 1, 16, 17, 1000])
def test_order_is_that_of_a_stable_sort(count: int, spread: int) -> None:
    """Keys that rise nearly, and such as do not at all: then all are sorted at once."""
    keys = np.arange(count) // 2 + np.random.default_rng(count).integers(0, spread + 1, count)
    order = longarrays.order(keys)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert longarrays.taken(keys, order).tolist() == sorted(keys.tolist())
