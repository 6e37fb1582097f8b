"""A few rounds of hostile.py's targets, always the same ones; `make nightly` runs them for long."""

from __future__ import annotations

import random

import hostile
import pytest


@pytest.mark.parametrize("seed", range(8))
def test_filters(seed: int) -> None:
    for number in range(40):
        hostile.one("filters", 1000 * seed + number)


@pytest.mark.parametrize("seed", range(24))
def test_captures(seed: int) -> None:
    hostile.one("captures", seed)


@pytest.mark.parametrize("target", ["packed", "pasted", "beside", "keys", "urls"])
def test_texts_and_packed_files(target: str) -> None:
    for seed in range(8):
        hostile.one(target, seed)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("target", ["commands", "agents"])
def test_outputs(target: str, seed: int) -> None:
    hostile.one(target, seed)


def test_what_is_changed_differs_and_is_the_same_again() -> None:
    data = hostile.captures()[0]
    first = [hostile.changed(data, random.Random(seed)) for seed in range(40)]
    assert first == [hostile.changed(data, random.Random(seed)) for seed in range(40)]
    assert len(set(first)) > 35 and min(map(len, first)) < len(data) < max(map(len, first))
