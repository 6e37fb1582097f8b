"""Are conversations of further protocols read as their users would? See recorded/kinds/README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import latpcap as lp

FOLDER = Path(__file__).resolve().parent / "recorded" / "kinds"


def read(name: str) -> lp.Capture:
    return lp.read(FOLDER / f"{name}.pcap.gz")


@pytest.mark.parametrize(
    ("name", "software"),
    [("mariadb", "10.11.19-MariaDB-0+deb12u1"), ("imap", "Dovecot (Debian) ready.")],
)
def test_greetings_name_the_server(name: str, software: str) -> None:
    assert read(name).arrow("streams")["server_software"].to_pylist() == [software]


def test_a_quit_is_no_request_without_an_answer() -> None:
    capture = read("mariadb")
    rows: list[dict[str, Any]] = capture.arrow("exchanges").to_pylist()
    assert [(r["complete"], r["cut_by"]) for r in rows] == [(True, None)] * 8 + [(False, "fin")]
    why = capture.why()
    assert (why.to_dict()["incomplete"], why.to_dict()["goodbyes"]) == (1, 1)
    assert "8 complete exchanges; 1 incomplete (last words before the client's FIN)\n" in str(why)
    assert read("imap").why().to_dict()["goodbyes"] == 0


def test_tls_that_is_asked_for_in_the_hellos_own_turn() -> None:
    capture = read("mariadb-tls")
    rows: list[dict[str, Any]] = capture.arrow("exchanges").to_pylist()
    assert [r["method"] for r in rows] == ["handshake"] + [None] * 9
    assert {r["protocol"] for r in rows} == {"tls"} and not rows[-1]["complete"]
    asked = rows[0]
    assert (asked["request_first_frame"], asked["request_last_frame"], asked["response_last_frame"]) == (6, 8, 11)
    assert asked["top_cause"] == "client_think" and asked["capture_gap_ms"] == 0


def test_a_body_that_waits_for_a_continue() -> None:
    capture = read("expect")
    [first, *_] = capture.arrow("findings").to_pylist()
    assert (first["cause"], first["exchanges"]) == ("client_think", 3)
    assert "wait for a 100 Continue" in first["fix"] and "curl -H 'Expect:'" in str(capture.why())
