"""tcpdump's printed lines are read like a capture of headers, with the numbers of the capture that they came from."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import latpcap as lp

PASTED = Path(__file__).parent / "pasted"
SAMPLE = Path(__file__).parents[1] / "sample_pcaps" / "nginx-latency.pcap"
PROBES = SAMPLE.with_name("probes.pcap")
LINE = "1700000000.000001 IP 192.0.2.1.4000 > 192.0.2.2.80: "


def test_numbers_count_from_the_conversations_start() -> None:
    """As tcpdump prints them by default; the lines are those of four of the sample's streams."""
    sample = lp.read(SAMPLE).arrow("events").to_pandas()
    captured = sample[sample["stream"].isin(range(4, 8))]
    printed = lp.read(PASTED / "seconds.txt").arrow("events").to_pandas()
    told = ["time", "seq", "ack", "len", "flags", "window", "tsval", "tsecr", "mss", "wscale", "retransmission"]
    for column in told:
        assert printed[column].astype(str).tolist() == captured[column].astype(str).tolist(), column


def test_v_prints_two_lines_and_s_true_numbers() -> None:
    printed, captured = lp.read(PASTED / "verbose.txt"), lp.read(SAMPLE)
    assert printed.headers.equals(captured.headers.head(60))
    for column in ("seq", "ack", "len", "acks_frame", "ack_rtt_ms"):
        mine, theirs = (one.events[column].head(60).astype(str).tolist() for one in (printed, captured))
        assert mine == theirs, column


def test_a_stall_is_found_in_pasted_lines() -> None:
    why = lp.read(PASTED / "seconds.txt").why()
    assert "wait for acknowledgements that the clients hold back" in why.headline
    assert why.grade == "proven"


def test_pings_and_probes_are_found_again() -> None:
    """A time of day without a date; echo requests are no TCP."""
    printed, captured = lp.read(PASTED / "clock.txt"), lp.read(PROBES)
    columns = ["kind", "seq", "sent_frame", "answer_frame", "rtt_ms"]
    assert printed.frames == captured.frames
    assert printed.probes[columns].equals(captured.probes[columns])


def test_text_with_names_is_refused_with_the_way_out() -> None:
    text = b"12:00:00.000001 IP client.example.4000 > web.example.http: Flags [S], seq 1, win 512, length 0\n"
    with pytest.raises(lp.CaptureError, match="tcpdump -n -tt"):
        lp.read(text)


def test_a_packet_that_is_not_told_keeps_its_number() -> None:
    """Frame n is the n-th packet, whatever is printed of it."""
    lines = [
        LINE + "Flags [S], seq 9, win 512, length 0",
        "1700000000.000002 ARP, Request who-has 192.0.2.2 tell 192.0.2.1, length 28",
        LINE + "Flags [R], seq 10, win 0, length 0",
    ]
    capture = lp.read("\n".join(lines).encode())
    assert capture.frames == 3
    assert list(capture.events["frame"]) == [1, 3]
    assert 2 in set(capture.issues["frame"])


def test_midnight_passes() -> None:
    text = (
        "23:59:59.900000 IP 192.0.2.1.4000 > 192.0.2.2.80: Flags [S], seq 9, win 512, length 0\n"
        "00:00:00.100000 IP 192.0.2.2.80 > 192.0.2.1.4000: Flags [R.], seq 0, ack 10, win 0, length 0\n"
    )
    assert lp.read(text.encode()).events["time_delta_ms"].iloc[1] == pytest.approx(200)


def test_sack_blocks_and_ipv6() -> None:
    """tcpdump counts the blocks of a SACK from the start of the conversation, too."""
    ends = "IP6 2001:db8::1.4000 > 2001:db8::2.80"
    back = "IP6 2001:db8::2.80 > 2001:db8::1.4000"
    text = (
        f"1.000001 {ends}: Flags [S], seq 1000, win 512, options [mss 1440,sackOK], length 0\n"
        f"1.000002 {back}: Flags [S.], seq 2000, ack 1001, win 512, options [mss 1440,sackOK], length 0\n"
        f"1.000003 {ends}: Flags [P.], seq 101:201, ack 1, win 512, length 100\n"
        f"1.000004 {back}: Flags [.], ack 1, win 512, options [nop,nop,sack 1 {{101:201}}], length 0\n"
    )
    events = lp.read(text.encode()).arrow("events").to_pylist()
    assert [row["seq"] for row in events] == [0, 0, 101, 1]
    assert events[3]["sack"] == [101, 201] or events[3]["sack"] == [{"left": 101, "right": 201}]


@given(st.lists(st.text(alphabet="0123456789.:>[]{}(), FSRP-seqackwinlengthTSvalecr", max_size=90), max_size=8))
def test_no_text_escapes_as_anything_but_a_capture_error(rests: list[str]) -> None:
    text = "\n".join(LINE + rest for rest in rests).encode() or b"1"
    with contextlib.suppress(lp.CaptureError):
        assert lp.read(text).frames <= len(rests)
