"""Are recordings that were made to mislead judged by what their programs did? See recorded/decoys/README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import latpcap as lp
from latpcap.vocabulary import PROVEN

FOLDER = Path(__file__).resolve().parent / "recorded" / "decoys"


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lp.read(FOLDER / f"{name}.pcap.gz").arrow("causes").to_pylist()
    return found


def proven_stalls(found: list[dict[str, Any]]) -> set[int]:
    held = [r for r in found if r["cause"] == "delayed_ack" and r["confidence"] >= PROVEN]
    return {r["exchange"] for r in held}


def test_a_program_on_the_receivers_tick() -> None:
    assert not proven_stalls(rows("tick"))


def test_pauses_that_outlast_the_wait() -> None:
    found = rows("pauses")
    stalls = proven_stalls(found)
    program = {r["exchange"] for r in found if r["rule"] == "look_alike" and r["duration_ms"] > 46}
    assert len(stalls) >= 15 and len(program) >= 5
    assert not stalls & program


def test_options_that_the_snap_length_cut() -> None:
    found = rows("cut-options")
    assert len(proven_stalls(found)) == 48
    assert not [r for r in found if r["cause"] == "receive_window"]


def test_probes_with_new_data() -> None:
    found = rows("probes")
    assert len(proven_stalls(found)) >= 20
    assert sum(r["cause"] == "tlp" for r in found) >= 5
    assert not [
        r for r in found if r["cause"] == "client_think" and r["duration_ms"] > 100 and r["confidence"] >= PROVEN
    ]


def test_a_full_accept_queue() -> None:
    capture = lp.read(FOLDER / "accept-queue.pcap.gz")
    lost = [r for r in capture.arrow("causes").to_pylist() if r["cause"] in ("rto", "tlp")]
    assert lost and {r["owner"] for r in lost} == {"server"}
    worst = next(f for f in capture.arrow("findings").to_pylist() if f["cause"] == "rto")
    assert "accept queue" in worst["fix"]


@pytest.mark.parametrize(("name", "stalls"), [("proxy", 15), ("proxy-lan", 14)])
def test_a_proxy_before_a_server_that_stalls(name: str, stalls: int) -> None:
    capture = lp.read(FOLDER / f"{name}.pcap.gz")
    ports = {s["stream"]: s["server_port"] for s in capture.arrow("streams").to_pylist()}
    leg = {e["exchange"]: ports[e["stream"]] for e in capture.arrow("exchanges").to_pylist()}
    found = capture.arrow("causes").to_pylist()
    assert [leg[exchange] for exchange in proven_stalls(found)] == [8001] * stalls
    assert not [r for r in found if r["cause"] == "delayed_ack" and leg[r["exchange"]] != 8001]


def test_full_segments_that_are_shorter_than_the_options_say() -> None:
    capture = lp.read(FOLDER / "path-mtu.pcap.gz")
    found = capture.arrow("causes").to_pylist()
    assert len(proven_stalls(found)) == 36
    (evidence,) = capture.arrow("evidence").to_pylist()
    assert evidence["verdict"] == "nagle" and evidence["refuted"] == 0
    thought = [r["duration_ms"] for r in found if r["cause"] == "server_think" and r["confidence"] >= PROVEN]
    assert sum(thought) < 15  # the program answers at once; the line takes 85 ms


def test_a_queue_that_stands_on_the_path() -> None:
    found = [r for r in rows("queue") if r["cause"] == "server_think" and r["duration_ms"] > 3]
    assert len(found) >= 40
    assert not [r for r in found if r["confidence"] >= PROVEN]


def test_nodelay_that_is_set_after_the_log_in() -> None:
    found = rows("login")
    waited = [r for r in found if r["to_frame"] in (20, 73, 128) and r["duration_ms"] > 35]
    assert len(waited) == 3 and all(r["confidence"] < PROVEN for r in waited)
    assert any(r["rule"] == "write_gap" and r["confidence"] >= PROVEN for r in found)


def test_options_that_change_within_a_connection() -> None:
    for name, least in (("toggled", 35), ("corked-late", 195)):
        found = [r for r in rows(name) if r["cause"] == "server_think" and r["duration_ms"] > least]
        assert len(found) >= 18, name
        assert not [r for r in found if r["confidence"] >= PROVEN], name
        assert not proven_stalls(rows(name))


def test_a_last_write_with_more_to_come() -> None:
    held = [r for r in rows("more") if r["duration_ms"] > 35]
    assert {(r["cause"], r["rule"], r["owner"]) for r in held} == {("cork", "cork_ack", "server")}
    assert len(held) == 19 and all(r["confidence"] < PROVEN for r in held)


def test_the_rival_that_was_not_ruled_out() -> None:
    for name, rival in (("toggled", "Nagle on the server"), ("more", "Nagle's algorithm"), ("queue", "pacing")):
        sure = next(line for line in str(lp.read(FOLDER / f"{name}.pcap.gz").why()).splitlines() if "sure?" in line)
        assert f"rival: {rival}" in sure


@pytest.mark.parametrize("name", ["paced", "paced-answers"])
def test_a_pacing_kernel_is_no_program(name: str) -> None:
    found = rows(name)
    held = [r for r in found if r["duration_ms"] > 6]
    assert len(held) >= 13 and not [r for r in held if r["confidence"] >= PROVEN]


def test_a_file_that_passes_on_another_connection() -> None:
    held = [r for r in rows("ftp") if r["rule"] == "app" and r["duration_ms"] > 6]
    assert len(held) == 2 and all(r["confidence"] < PROVEN for r in held)


def test_messages_that_pass_in_parts_on_several_connections() -> None:
    capture = lp.read(FOLDER / "multipath.pcap.gz")
    assert not [r for r in capture.arrow("causes").to_pylist() if r["confidence"] >= PROVEN]
    said = [i for i in capture.arrow("issues").to_pylist() if "multipath" in i["reason"]]
    assert [i["count"] for i in said] == [4]
