"""A trace and a log that nginx and strace wrote during the capture say what they add, and what they do not confirm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import USAGE, answered, complains

import latpcap as lp

BESIDE = Path(__file__).parent / "beside"
CAPTURE, TRACE, LOG = (BESIDE / name for name in ("nginx.pcap.gz", "nginx.strace", "access.log"))


def numbers(**sources: Path) -> dict[str, object]:
    [told] = lp.read(CAPTURE).why(**sources).to_dict()["beside"]
    return told


def test_the_trace_confirms_the_stall() -> None:
    told = numbers(strace=TRACE)
    assert told["matched"] == 5
    assert told["tcp_nodelay"] == {"never set": 5}
    assert told["stall_held_ms"] == pytest.approx(told["stall_ms"], rel=0.02)
    assert told["text"][0] == "server's sockets of 5 connections: TCP_NODELAY never set (5)"
    assert told["text"][1].endswith("the trace says the same")


def test_bytes_that_were_written_late_are_no_stall(tmp_path: Path) -> None:
    """The decoy: the same packets, of a program that wrote each of them when it left."""
    capture = lp.read(CAPTURE)
    began = {row.stream: (row.start, row.client, row.client_port) for row in capture.streams.itertuples()}
    calls = [
        (start, f'accept4(6, {{sin_port=htons({port}), sin_addr=inet_addr("{client}")}}, [16], 0) = {10 + stream}')
        for stream, (start, client, port) in began.items()
    ]
    sent = capture.events[~capture.events["from_client"] & (capture.events["len"] > 0)]
    calls += [(row.time, f'write({10 + row.stream}, ""..., {row.len}) = {row.len}') for row in sent.itertuples()]
    late = tmp_path / "late.strace"
    late.write_text("\n".join(f"{when:%H:%M:%S.%f} {call}" for when, call in sorted(calls)))
    told = numbers(strace=late)
    assert told["stall_held_ms"] < 0.01 * told["stall_ms"]
    assert "the program wrote them late, it is no stall" in told["text"][1]


def test_what_was_not_traced_is_not_judged(tmp_path: Path) -> None:
    """Bodies leave by sendfile: a trace without it confirms no stall by the head's write."""
    without = tmp_path / "without.strace"
    without.write_text("\n".join(line for line in TRACE.read_text().splitlines() if "sendfile" not in line))
    told = numbers(strace=without)
    assert told["matched"] == 5
    assert told["stall_ms"] < 1  # of 3,898
    assert told["untraced"] > 80


def test_processes_have_descriptors_of_their_own(tmp_path: Path) -> None:
    """Another worker, with other clients on the same numbers, changes nothing."""
    two = tmp_path / "two.strace"
    lines = TRACE.read_text().splitlines()
    other = [re.sub(r"^\d+", "1", line).replace("htons(4", "htons(2") for line in lines]
    two.write_text("\n".join(line for pair in zip(lines, other, strict=True) for line in pair))
    alone, told = numbers(strace=TRACE), numbers(strace=two)
    for name in ("matched", "tcp_nodelay", "stall_ms", "stall_held_ms", "program_ms", "untraced"):
        assert told[name] == alone[name], name
    assert told["connections"] == 2 * alone["connections"]


@pytest.mark.parametrize("zone", [0, 2, -7])
def test_a_trace_needs_no_zone(tmp_path: Path, zone: int) -> None:
    moved = tmp_path / "moved.strace"

    def shift(found: re.Match[str]) -> str:
        return f"{(int(found[1]) + zone) % 24:02}{found[2]}"

    moved.write_text(re.sub(r"(?m)(?<= )(\d\d)(:\d\d:\d\d\.\d{6} )", shift, TRACE.read_text()))
    assert numbers(strace=moved)["matched"] == 5


def test_options_that_the_trace_shows(tmp_path: Path) -> None:
    """Set on one connection behind accept, on and off on another; interrupted calls are put together."""
    traced = tmp_path / "options.strace"
    out, accepted = [], 0
    for line in TRACE.read_text().splitlines():
        out.append(line)
        found = re.match(r"(?:(\d+) +)?(\S+) accept4.* = (\d+)$", line)
        if found:
            accepted += 1
            head = f"{found[1] or 7} {found[2]}"
            if accepted == 2:
                out.append(f"{head} setsockopt({found[3]}, SOL_TCP, TCP_NODELAY, [1], 4 <unfinished ...>")
                out.append(f"{head} <... setsockopt resumed>) = 0")
            if accepted == 3:
                out += [f"{head} setsockopt({found[3]}, SOL_TCP, TCP_NODELAY, [{value}], 4) = 0" for value in (1, 0)]
    traced.write_text("\n".join(out))
    assert accepted == 5
    assert numbers(strace=traced)["tcp_nodelay"] == {"never set": 3, "on": 1, "set on and off": 1}


def test_the_log_counts_less_than_the_capture() -> None:
    told = numbers(access_log=LOG)
    assert (told["matched"], told["requests"]) == (96, 96)
    assert told["p50_logged_ms"] < 1 < told["p50_ms"]
    assert "after the server had written its answer" in told["text"][1]


@pytest.mark.parametrize(
    ("took", "share", "says"),
    [("rt=0.043", 0.9, "the program, or what it asks"), ("20000", 0.4, "the rest outside it")],
)
def test_the_log_counts_what_the_capture_shows(tmp_path: Path, took: str, share: float, says: str) -> None:
    """nginx's seconds by name, Apache's microseconds at the end of the line."""
    log = tmp_path / "access.log"
    log.write_text(re.sub(r"rt=[\d.]+", took, LOG.read_text()))
    told = numbers(access_log=log)
    assert told["logged_ms"] / told["total_ms"] > share
    assert says in told["text"][1]


def test_other_requests_are_not_matched(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(LOG.read_text().replace("GET / ", "GET /other "))
    told = numbers(access_log=log)
    assert told["matched"] == 0
    assert told["text"] == ["none of 96 lines is about a request of this capture (other clocks, other names?)"]


@pytest.mark.parametrize("option", ["--strace", "--access-log"])
def test_a_file_that_says_nothing_is_one_sentence(option: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(bytes(range(256)))
    for path in (empty, tmp_path / "missing", tmp_path):
        assert str(path) in complains(USAGE, "why", CAPTURE, option, path)


def test_the_command_prints_both_behind_the_answer() -> None:
    both = ["--strace", TRACE, "--access-log", LOG]
    printed = answered("why", CAPTURE, *both).splitlines()
    assert [line.split()[0] for line in printed[-5:]] == ["strace", "strace", "strace", "log", "log"]
    told = json.loads(answered("why", CAPTURE, *both, "--json"))
    assert [one["source"] for one in told["beside"]] == ["strace", "access_log"]
    complains(USAGE, "why", CAPTURE, "--stream", 0, *both)
