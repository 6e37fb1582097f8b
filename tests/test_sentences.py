"""Every sentence that an answer can print is printed of a capture here, and what is said of a made one is true."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from spoken import BESIDE, SPOKEN, all_said, ask, beside


@pytest.mark.parametrize("name", SPOKEN)
def test_what_is_said_of_it(name: str) -> None:
    spoken = SPOKEN[name]
    said = all_said(ask(spoken))
    for line in spoken.lines:
        assert line in said, said


@pytest.mark.parametrize("name", BESIDE)
def test_what_is_said_beside_it(name: str, tmp_path: Path) -> None:
    said = str(beside(name, tmp_path))
    assert BESIDE[name][2] in said, said


UNPRINTED = {
    "servers_left",
    "mostly_other", "late_close", "late_close.fix", "buffered", "buffered.fix", "transfer_marked",
    "transfer_http2", "transfer_http2.fix", "transfer_or_receiver_window", "clients", "until_end",
    "until_server", "timer_least", "timer_10", "timer_15", "timer_60", "timer_65", "timer_75", "timer_120",
    "timer_240", "timer_300", "timer_900", "timer_1800", "timer_3600", "timer_7200", "timer_28800",
    "timer_432000", "tls_certificates", "tls_certificates.fix", "tls_each", "tls_each.fix", "sure_unknown",
    "part_largest_beyond", "their_largest", "their_most_beyond", "their_largest_beyond",
    "stall_server_and_client", "first_line_filtered", "also_unreachable", "redirect_loop", "unnamed_with",
    "closed_instead", "of_first_frames", "ping_icmp", "ping_answered", "pause_none_before_elsewhere",
    "knob_openresty", "knob_tengine", "sets_gunicorn", "sets_uvicorn", "sets_hypercorn", "sets_lighttpd",
    "sets_caddy", "acks", "unasked", "push_message", "push_messages", "side_client and server",
}  # fmt: skip
"""Parts of sentences that no capture of these prints yet."""


def test_every_sentence_has_a_capture_that_prints_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-P", Path(__file__).with_name("sentences.py"), "--json"], capture_output=True, check=True
    )
    found = json.loads(ran.stdout)
    assert len(found["all"]) > 500
    assert set(found["all"]) - set(found["printed"]) == UNPRINTED
