"""Does `streams` say how a connection went? Roles, round trips, windows, repeats and ends, from scripts of segments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from makepcap import EPOCH_NS, Ends, Segment, Talk, answer, get, pcap, sack

import latpcap as lp
from latpcap.vocabulary import CAUSES

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("events-and-streams.md", "exchanges-and-causes.md")
)


def row(talk: Talk) -> dict[str, Any]:
    rows: list[dict[str, Any]] = lp.read(pcap(talk.tape, nanos=True)).arrow("streams").to_pylist()
    assert len(rows) == 1
    return rows[0]


def opened(**more: Any) -> Talk:
    talk = Talk(server_leg=0.02, client_leg=1.0, **more)
    talk.open()
    return talk


# round trips


def stalled(times: int = 10) -> Talk:
    """Head, held ACK, body: the client acknowledges each head 42 ms late, and each body with its next request."""
    talk = opened()
    head, body = answer(612)
    for i in range(times):
        at = 10 + 50.0 * i
        talk.client(at, get())
        talk.server(at + 0.2, head)
        talk.client(at + 42.2)
        talk.server(at + 42.21, body)
    return talk


def test_held_acks_do_not_spoil_the_round_trips() -> None:
    stream = row(stalled())
    assert stream["client_rtt_ms"] == pytest.approx(1.0)
    assert (stream["client_rtt_samples"], stream["client_held_acks"]) == (1, 10)
    assert stream["client_rtt_mean_ms"] == stream["client_rtt_max_ms"] == pytest.approx(1.0)
    assert stream["client_rtt_stdev_ms"] is None
    # the server's only ACKs are its answers: they waited for the program, so the SYN/ACK alone is a sample
    assert (stream["server_rtt_samples"], stream["server_held_acks"]) == (1, 0)
    assert stream["server_rtt_mean_ms"] == pytest.approx(0.02)


def test_the_reference_capture_has_a_short_path() -> None:
    streams = lp.read(ROOT / "sample_pcaps" / "nginx-latency.pcap").streams
    assert (streams["client_rtt_mean_ms"].dropna() < 1).all() and (streams["server_rtt_mean_ms"].dropna() < 1).all()
    assert streams["client_held_acks"].sum() > 800


def test_a_queue_shows_where_the_receiver_may_not_wait() -> None:
    """Two full segments oblige: what their ACK takes is the path, however long; one small segment's is not told."""
    talk = opened()
    talk.server(10, b"x" * 1460)
    talk.server(10, b"x" * 1460)
    talk.client(90)
    talk.server(100, b"x" * 10)
    talk.client(180)
    stream = row(talk)
    assert (stream["client_rtt_samples"], stream["client_held_acks"]) == (2, 1)
    assert stream["client_rtt_max_ms"] == pytest.approx(80)


def test_repeats_give_no_round_trip() -> None:
    talk = opened()
    talk.server(10, b"x" * 100)
    talk.server(300, b"x" * 100, seq=1)
    talk.client(301)
    stream = row(talk)
    assert (stream["client_rtt_samples"], stream["client_held_acks"]) == (1, 0)
    assert stream["server_retransmissions"] == 1


def test_without_acks_there_is_nothing() -> None:
    talk = Talk()
    talk.client(0, flags="S")
    stream = row(talk)
    for side in ("client", "server"):
        assert stream[f"{side}_rtt_samples"] == stream[f"{side}_held_acks"] == 0
        assert stream[f"{side}_rtt_ms"] is stream[f"{side}_rtt_mean_ms"] is stream[f"{side}_rtt_max_ms"] is None
    assert stream["initial_rtt_ms"] is stream["server_sack"] is stream["client_window_min"] is None


# options and windows


def test_window_minimum_without_reset_and_scale() -> None:
    talk = opened(scale=3)
    talk.client(10, get(), window=100)
    talk.client(11, flags="RA", window=0)
    assert row(talk)["client_window_min"] == 800
    talk = Talk()
    talk.c.sent = talk.s.sent = 1
    talk.client(0, get(), window=100)
    assert row(talk)["client_window_min"] is None  # raw, and nobody knows the scale
    talk.client(1, window=0)
    assert row(talk)["client_window_min"] == 0


def test_options_of_the_handshake() -> None:
    stream = row(opened(scale=7))
    assert stream["client_sack"] is stream["server_sack"] is True
    assert (stream["client_mss"], stream["client_wscale"]) == (1460, 7)
    late = Talk()
    late.c.sent = late.s.sent = 1
    late.client(0, get())
    stream = row(late)
    assert stream["client_sack"] is stream["client_mss"] is stream["client_wscale"] is None


def test_sack_and_dsack_are_counted() -> None:
    talk = opened()
    isn = talk.s.isn
    for _ in range(3):
        talk.server(10, b"x" * 100)
    talk.client(11, ack=1, options=[sack((isn + 101, isn + 301))])
    talk.server(12, b"x" * 100, seq=1)
    talk.client(13)
    talk.server(14, b"x" * 100, seq=1)  # not needed
    talk.client(15, options=[sack((isn + 1, isn + 101))])
    capture = lp.read(pcap(talk.tape))
    stream = capture.arrow("streams").to_pylist()[0]
    assert (stream["client_sacks"], stream["client_dsacks"], stream["server_sacks"]) == (2, 1, 0)
    events = capture.arrow("events").to_pylist()
    assert [e["frame"] for e in events if e["dsack"]] == [11]
    assert events[10]["sack"] == [{"left": 1, "right": 101}]


# roles and ends


@pytest.mark.parametrize(
    ("tape", "roles_by", "client"),
    [
        ([(True, "S", b"")], "syn", 40_000),
        ([(False, "SA", b"")], "syn_ack", 40_000),
        ([(False, "PA", b"HTTP/1.1 200 OK\r\n\r\n")], "content", 40_000),
        ([(False, "A", b"")], "port", 40_000),
        ([(False, "A", b""), (True, "PA", b"\1\2\3")], "port", 40_000),
        ([(True, "PA", b"HTTP/1.1 200 OK\r\n\r\n")], "content", 80),
        ([(True, "A", b""), (True, "PA", b"HTTP/1.1 200 OK\r\n\r\n")], "content", 80),
    ],
)
def test_who_is_the_client(tape: list[tuple[bool, str, bytes]], roles_by: str, client: int) -> None:
    talk = Talk()
    talk.c.sent = talk.s.sent = 0 if tape[0][1].startswith("S") else 1
    for at, (from_client, flags, data) in enumerate(tape):
        (talk.client if from_client else talk.server)(at, data, flags)
    stream = row(talk)
    assert (stream["roles_by"], stream["client_port"]) == (roles_by, client)


def test_a_syn_that_comes_late_tells_the_roles() -> None:
    """Two packets changed places: the first one has only ports to go by, and they say it wrong."""
    ends = Ends(("10.0.0.1", 80), ("10.0.0.2", 40_000))
    tape = [
        Segment(True, "FA", 1001, 5001, b"", EPOCH_NS, ends=ends),
        Segment(True, "S", 1000, 0, b"", EPOCH_NS + 1000, ends=ends),
        Segment(False, "SA", 5000, 1001, b"", EPOCH_NS + 2000, ends=ends),
    ]
    stream = lp.read(pcap(tape)).arrow("streams").to_pylist()[0]
    assert (stream["roles_by"], stream["client_port"], stream["closed_by"]) == ("syn", 80, "client_fin")
    assert (stream["client_packets"], stream["server_packets"]) == (2, 1)


@pytest.mark.parametrize(
    ("ends", "how", "by"),
    [
        ("", None, None),
        ("cF", "half", "client_fin"),
        ("sF cF", "fin", "server_fin"),
        ("cR", "rst", "client_rst"),
        ("sF cR", "fin_rst", "server_fin"),
        ("sF cF sR", "fin_rst", "server_fin"),
        ("sR sR", "rst", "server_rst"),
    ],
)
def test_how_it_closed(ends: str, how: str | None, by: str | None) -> None:
    talk = opened()
    for at, (side, flag) in enumerate(ends.split(), 10):
        (talk.client if side == "c" else talk.server)(at, flags=flag + "A")
    stream = row(talk)
    assert (stream["closed_how"], stream["closed_by"]) == (how, by)


# the document


def documented(section: str) -> set[str]:
    text = DOCUMENT.split(f"\n## `{section}`")[1].split("\n## ")[0]
    names = {name for cell in re.findall(r"^\| (.*?) \|", text, re.M) for name in re.findall(r"`([^`]+)`", cell)}
    sides = {f"{side}{name[1:]}" for name in names if name.startswith("…") for side in ("client", "server")}
    return {name for name in names if not name.startswith("…")} | sides


def test_the_server_has_the_name_that_the_client_asked_for() -> None:
    """By TLS before any request, by the first request that names it, and by none."""
    secured = lp.read(ROOT / "tests" / "cases" / "tls13_keys" / "capture.pcapng").arrow("streams")
    assert set(secured["server_name"].to_pylist()) == {"tls.example"}
    talk = opened()
    for n, request in enumerate([b"GET / HTTP/1.0\r\n\r\n", get("/a"), get("/b").replace(b"Host: h", b"Host: other")]):
        talk.client(10 * n + 2, request)
        talk.server(10 * n + 3, b"".join(answer(0)))
        assert row(talk)["server_name"] == (None if n == 0 else "h")


@pytest.mark.parametrize("table", ["events", "streams", "probes", "causes", "evidence", "findings", "issues"])
def test_every_column_is_documented(table: str) -> None:
    assert documented(table) == set(lp.read(pcap([])).arrow(table).column_names)


def test_every_column_of_exchanges_is_documented() -> None:
    causes = {f"{name}_ms" for name in CAUSES}
    assert documented("exchanges") | causes == set(lp.read(pcap([])).arrow("exchanges").column_names)


@pytest.mark.parametrize("table", ["events", "streams", "exchanges", "causes", "evidence", "issues"])
def test_the_docstring_names_the_columns(table: str) -> None:
    said = getattr(lp.Capture, table).__doc__ or ""
    assert "docs/" in said and sum(f"{name}" in said for name in lp.read(pcap([])).arrow(table).column_names) > 7
