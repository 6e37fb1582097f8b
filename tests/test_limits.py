"""Do the limits that no verdict's own test holds stand where they are said to? Each one a step on both sides."""

from __future__ import annotations

import struct

import pytest
from makepcap import EPOCH_NS, Talk, answer, get, mss, pcap, pcap_of
from rawip import icmp, packet

import latpcap as lp

LIMITS = {
    "AT_ENDPOINT_NS": 1_000_000,
    "ECHO_COPY_NS": 1_000_000_000,
    "LARGE_RATIO": 4,
    "LONG_PAUSE_NS": 200_000_000,
    "TWO_TICKS_NS": 20_000_000,
    "RHYTHM": 4,
    "ROW_PART": 10,
    "SAME_PLACE_NS": 70_000,
    "SEALED_SILENCE_NS": 3_000_000_000,
    "SILENCE_NS": 300_000_000,
    "SWAPPED_NS": 1_000_000,
    "SYN_TIMER_NS": 100_000_000,
}
"""Written out, and not asked of the core: a limit that moves has to move here, too."""
NS = 1e-6
UNKNOWN = b"\x01of no protocol"


def ms(name: str) -> float:
    return LIMITS[name] / 1e6


def read(talk: Talk) -> lp.Capture:
    return lp.read(pcap(sorted(talk.tape, key=lambda s: s.time_ns), nanos=True))


def record(length: int) -> bytes:
    """A record of TLS with application data."""
    return b"\x17\x03\x03" + length.to_bytes(2) + bytes(7 * i % 256 for i in range(length))


def first_turn(quiet: float, *, before: float = 0.0, data: bytes = UNKNOWN) -> float:
    """How long the last turn took whose answer is silent for so long, from the ACK of what was said so far."""
    talk = Talk(client_leg=0.5, server_leg=0.5)
    talk.open()
    at = 5.0
    if before:  # a turn that took so long
        talk.client(at, data)
        talk.server(at + before, data)
        talk.client(at + before + 0.1)
        at += before + 10.0
    talk.client(at, data)
    talk.server(at + 1.0, data)
    talk.client(at + 1.1)
    talk.server(at + 1.1 + quiet, data)
    talk.client(at + 1.2 + quiet)
    talk.client(at + quiet + 50.0, data)
    talk.server(at + quiet + 51.0, data)
    talk.client(at + quiet + 51.1)
    rows = read(talk).exchanges
    return float(rows[rows["complete"]]["latency_ms"].iloc[-1])


def test_a_silence_ends_the_turn_of_an_unknown_protocol() -> None:
    quiet = ms("SILENCE_NS")
    assert first_turn(quiet - NS) == pytest.approx(quiet + 1.1)
    assert first_turn(quiet) == pytest.approx(1.0)


def test_a_silence_in_the_rhythm_of_the_connection_does_not() -> None:
    took = ms("SILENCE_NS")  # so that the rhythm is longer than the shortest silence
    quiet = took * LIMITS["RHYTHM"]
    assert first_turn(quiet - NS, before=took) == pytest.approx(quiet + 1.1)
    assert first_turn(quiet, before=took) == pytest.approx(1.0)


def test_a_silence_inside_tls_has_to_be_longer() -> None:
    quiet = ms("SEALED_SILENCE_NS")
    assert first_turn(quiet - NS, data=record(100)) == pytest.approx(quiet + 1.1)
    assert first_turn(quiet, data=record(100)) == pytest.approx(1.0)


def asking(*pauses: float, took: float = 1.0) -> lp.Capture:
    """Requests that each take so long, with pauses of the client between them; its round trip takes 0.5 ms."""
    talk = Talk(client_leg=0.5, server_leg=0.01)
    talk.open()
    at = 1.0
    for pause in (0.0, *pauses):
        at += pause
        talk.client(at, get())
        talk.server(at + took, b"".join(answer(5)))
        talk.client(at + took + 0.5)
        at += took
    return read(talk)


def test_a_client_pauses_from_two_ticks_on() -> None:
    pause = ms("TWO_TICKS_NS") + 0.5
    assert len(asking(pause - NS, pause - NS).gaps) == 0
    assert asking(pause, pause).gaps["duration_ms"].tolist() == pytest.approx([pause] * 2)


def test_a_lone_pause_is_told_where_no_host_is_busy_for_as_long() -> None:
    pause = ms("LONG_PAUSE_NS")
    assert len(asking(pause - NS).gaps) == 0
    assert len(asking(pause).gaps) == 1


def test_what_takes_a_tenth_of_a_connection_has_a_row() -> None:
    def connects(answered: float) -> int:
        talk = Talk()
        talk.open()
        talk.client(10.0, get())
        talk.server(10.0 + answered, b"".join(answer(5)))
        return len(read(talk).connects)

    requests = LIMITS["ROW_PART"] - 1
    assert (connects(10.0 * requests), connects(10.0 * requests + NS)) == (1, 0)
    pause = ms("LONG_PAUSE_NS")
    gaps = [len(asking(pause + 0.5, took=pause * requests + more).gaps) for more in (0.0, NS)]
    assert gaps == [1, 0]


def test_a_syn_that_comes_again_soon_is_a_copy() -> None:
    def repeats(late: float) -> int:
        talk = Talk(client_leg=0.1, server_leg=0.1)
        talk.client(0.0, flags="S", options=[mss()])
        talk.client(late, flags="S", seq=0, options=[mss()])
        talk.server(late + 0.1, flags="SA", options=[mss()])
        talk.client(late + 0.2)
        talk.client(late + 0.3, get())
        talk.server(late + 1.0, b"".join(answer(5)))
        causes = read(talk).causes
        return int((causes["cause"] == "syn_rto").sum())

    again = ms("SYN_TIMER_NS")
    assert (repeats(again - NS), repeats(again)) == (0, 1)


def position(client: float, server: float) -> str | None:
    talk = Talk(client_leg=client, server_leg=server)
    talk.open()
    word = read(talk).arrow("streams")["position"].to_pylist()[0]
    return None if word is None else str(word)


def test_where_the_capture_was_taken_is_told_by_the_round_trips() -> None:
    near, same, farther = ms("AT_ENDPOINT_NS"), ms("SAME_PLACE_NS"), LIMITS["LARGE_RATIO"]
    assert (position(near - NS, 50.0), position(near, 50.0)) == ("at_client", "between")
    assert (position(50.0, near - NS), position(50.0, near)) == ("at_server", "between")
    assert (position(0.5, 0.5 * farther + NS), position(0.5, 0.5 * farther)) == ("at_client", "between")
    assert (position(same - NS, same - NS), position(same - NS, same)) == (None, "between")


def test_frames_that_are_swapped_by_little_are_no_clock_that_was_set() -> None:
    def code(back: float) -> list[str | None]:
        talk = Talk()
        talk.open(10.0)
        talk.client(20.0, get())
        talk.server(20.0 - back, b"".join(answer(5)))
        return list(lp.read(pcap(talk.tape, nanos=True)).arrow("issues")["code"].to_pylist())

    most = ms("SWAPPED_NS")
    assert (code(most - NS), code(most)) == ([None], ["clock_back"])


def test_a_ping_that_comes_again_soon_is_a_copy() -> None:
    def probes(late_ns: int) -> int:
        ping = bytes(12) + b"\x08\x00" + packet(1, 9, 1, icmp(8, struct.pack(">HH", 7, 1)))
        return len(lp.read(pcap_of([(EPOCH_NS, ping), (EPOCH_NS + late_ns, ping)], nanos=True)).probes)

    late = int(LIMITS["ECHO_COPY_NS"])
    assert (probes(late - 1), probes(late)) == (1, 2)
