"""Can everybody tell the causes apart that stand side by side? By colour alone, and families by their hatching."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from pathlib import Path

import pytest

import latpcap as lp
from latpcap.vocabulary import CAUSES

CASES = Path(__file__).resolve().parent / "cases"
LEAST = 12.0
"""CIEDE2000: from about 2 on people see a difference beside each other, at 12 also across a legend."""
ANYWHERE = {"network", "server_think", "client_think", "bandwidth", "capture_gap", "unknown"}
"""What may come before or behind every other cause."""
# Machado, Oliveira, Fernandes 2009: how protanopes, deuteranopes and tritanopes see linear RGB
BLIND = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
PLAIN = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
EYES = {"all colours": PLAIN, "protan": BLIND["protan"], "deutan": BLIND["deutan"]}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def times(matrix: list[list[float]], vector: list[float]) -> list[float]:
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def lab(colour: str, eyes: list[list[float]]) -> tuple[float, float, float]:
    """CIE L*a*b* of a colour as these eyes see it, under D65."""
    seen = [min(max(part, 0.0), 1.0) for part in times(eyes, linear(colour))]
    parts = [value / white for value, white in zip(times(TO_XYZ, seen), (0.95047, 1.0, 1.08883), strict=True)]
    x, y, z = (v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """CIEDE2000 (ISO/CIE 11664-6)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    chroma = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    shift = 1.5 - 0.5 * math.sqrt(chroma**7 / (chroma**7 + 25**7))
    c1, c2 = math.hypot(a1 * shift, b1), math.hypot(a2 * shift, b2)
    h1, h2 = (math.degrees(math.atan2(b, a * shift)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    weight = 1 - 0.17 * cos(hue - 30) + 0.24 * cos(2 * hue) + 0.32 * cos(3 * hue + 6) - 0.2 * cos(4 * hue - 63)
    lightness = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    colourful = (c2 - c1) / (1 + 0.045 * chroma)
    hues = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    blue = 30 * math.exp(-(((hue - 275) / 25) ** 2))
    turned = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(2 * blue))
    return math.sqrt(lightness**2 + colourful**2 + hues**2 + turned * colourful * hues)


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def test_the_difference_is_the_standards() -> None:
    """Pairs 1, 7, 17 and 24 of the test data of Sharma, Wu and Dalal (2005)."""
    for one, other, want in (
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (50.0, 3.2592, 0.335), 1.0),
    ):
        assert apart(one, other) == pytest.approx(want, abs=2e-4)


@pytest.fixture(scope="module")
def neighbours() -> set[tuple[str, str]]:
    """Causes that follow each other in an exchange of any case."""
    found = set()
    for path in sorted(CASES.glob("*/capture.*")):
        try:
            table = lp.read(path).arrow("causes")
        except lp.CaptureError:
            continue
        rows = list(zip(table["exchange"].to_pylist(), table["cause"].to_pylist(), strict=True))
        found |= {(a, b) for (of, a), (next_of, b) in pairwise(rows) if of == next_of and a != b}
    return found


@pytest.mark.parametrize("eyes", EYES)
def test_causes_side_by_side_are_told_apart_by_everybody(neighbours: set[tuple[str, str]], eyes: str) -> None:
    assert len(neighbours) > 20
    near = []
    for one, other in combinations(CAUSES, 2):
        beside = {(one, other), (other, one)} & neighbours or {one, other} & ANYWHERE
        if beside or CAUSES[one].family == CAUSES[other].family:
            far = apart(lab(CAUSES[one].colour, EYES[eyes]), lab(CAUSES[other].colour, EYES[eyes]))
            if far < LEAST:
                near.append((one, other, round(far, 1)))
    assert not near


@pytest.mark.parametrize("name", CAUSES)
def test_colours_print_on_white(name: str) -> None:
    red, green, blue = linear(CAUSES[name].colour)
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 3  # WCAG 2.1, 1.4.11


@pytest.mark.parametrize("kind", BLIND)
def test_nagle_and_delayed_ack_are_told_apart_by_everybody(kind: str) -> None:
    one, other = linear(CAUSES["nagle"].colour), linear(CAUSES["delayed_ack"].colour)
    seen = [[sum(m * c for m, c in zip(row, colour, strict=True)) for row in BLIND[kind]] for colour in (one, other)]
    assert sum((a - b) ** 2 for a, b in zip(*seen, strict=True)) ** 0.5 > 0.3
