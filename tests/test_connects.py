"""How did a connection begin? Of captures whose clock starts at 0 in coarse steps, so that 0 is an instant, too."""

from __future__ import annotations

import numpy as np
import pytest

from latpcap.user_waits.connects import Opened, Opens, late_streams, opened_streams

SECOND = 1_000_000_000
CLIENT, SERVER = True, False
WORDS = ("SYN", "SYN, ACK", "RST", "ACK")


def rows_of(*packets: tuple[int, bool, str, int]) -> dict[str, np.ndarray]:
    """The rows of one stream with these packets: time in seconds, sender, flags, length."""
    seconds, from_client, flags, length = zip(*packets, strict=True)
    columns = {
        "stream": np.zeros(len(packets), np.int64),
        "time": np.array(seconds, np.int64) * SECOND,
        "frame": np.arange(1, len(packets) + 1),
        "seq": np.array([0 if "SYN" in word else 1 for word in flags]),
        "len": np.array(length),
        "from_client": np.array(from_client),
        "tsval": np.full(len(packets), np.nan),
    }
    opens = Opens()
    opens.add(columns, np.array([WORDS.index(word) for word in flags]), WORDS)
    return opens.by_stream()


def opened_with(*packets: tuple[int, bool, str, int]) -> Opened:
    [opened] = opened_streams(rows_of((0, CLIENT, "SYN", 0), *packets))
    return opened


def test_a_reset_at_instant_0_is_the_first_one() -> None:
    opened = opened_with((0, CLIENT, "RST", 0), (0, SERVER, "RST", 0), (5, CLIENT, "RST", 0), (5, SERVER, "RST", 0))
    assert (opened.gave_up, opened.refused) == (0, 0)


def test_a_byte_at_instant_0_is_the_first_one() -> None:
    opened = opened_with((0, SERVER, "SYN, ACK", 0), (0, CLIENT, "ACK", 10), (5, CLIENT, "ACK", 10))
    assert (opened.settled, opened.spoke, opened.client_spoke) == (0, 0, 0)


@pytest.mark.parametrize(("seconds", "is_late"), [(0, False), (2, True)])
def test_a_stream_is_late_by_the_later_first_byte(seconds: int, is_late: bool) -> None:
    rows = rows_of(
        (0, CLIENT, "SYN", 0), (0, SERVER, "SYN, ACK", 0), (0, CLIENT, "ACK", 10), (seconds, SERVER, "ACK", 10)
    )
    assert late_streams(rows, 1000).tolist() == [0] * is_late
