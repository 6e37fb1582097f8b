"""What tshark says of a capture in the words of `events` and `streams`, and where latpcap says something else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import latpcap as lp


def tshark_version() -> str:
    if shutil.which("tshark") is None:
        return ""
    return subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]


# later versions changed rules, layers and words: the parity is with 4.0
needs_tshark = pytest.mark.skipif(not tshark_version().startswith("4.0."), reason="tshark 4.0 is not installed")

FLAGS = [
    "retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "lost_segment",
    "ack_lost_segment", "duplicate_ack", "keep_alive", "keep_alive_ack", "window_update", "window_full", "zero_window",
    "zero_window_probe", "zero_window_probe_ack", "reused_ports",
]  # fmt: skip
NUMBERS = {
    "frame": "frame.number", "stream": "tcp.stream", "sport": "tcp.srcport", "dport": "tcp.dstport", "seq": "tcp.seq",
    "ack": "tcp.ack", "len": "tcp.len", "window": "tcp.window_size", "mss": "tcp.options.mss_val",
    "wscale": "tcp.options.wscale.shift", "tsval": "tcp.options.timestamp.tsval",
    "tsecr": "tcp.options.timestamp.tsecr",
    "acks_frame": "tcp.analysis.acks_frame", "bytes_in_flight": "tcp.analysis.bytes_in_flight",
    "push_bytes_sent": "tcp.analysis.push_bytes_sent",
}  # fmt: skip
TIMES = {"time_delta_ms": "tcp.time_delta", "ack_rtt_ms": "tcp.analysis.ack_rtt"}
MARKS = {**{name: f"tcp.analysis.{name}" for name in FLAGS}, "dsack": "tcp.options.sack.dsack"}
OTHERS = {"flags": "tcp.flags", "left": "tcp.options.sack_le", "right": "tcp.options.sack_re",
          "initial_rtt": "tcp.analysis.initial_rtt", "completeness": "tcp.completeness"}  # fmt: skip
ADDRESSES = {"src4": "ip.src", "dst4": "ip.dst", "src6": "ipv6.src", "dst6": "ipv6.dst"}
LABELS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"]
# a header quoted inside an ICMP error is numbered, but no segment of the connection
SEGMENTS = "tcp && !icmp && !icmpv6"


def tshark(path: Path, wanted: list[str], *more: str) -> tuple[list[list[str]], str]:
    """Fields of each segment, and the flow graph's text: one run, as a start of tshark takes most of it."""
    command = ["tshark", "-n", "-r", str(path), "-Y", SEGMENTS, *more, "-z", "flow,tcp,network", "-t", "r"]
    command += ["-T", "fields", *(word for field in wanted for word in ("-e", field))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    text = done.stdout
    begin = found.start() if (found := re.search(r"^(Conv\.)?\| ?Time", text, re.MULTILINE)) else len(text)
    return [line.split("\t") for line in text[:begin].splitlines()], text[begin:]


def nanoseconds(text: str) -> int | None:
    if not text:
        return None
    seconds, _, rest = text.partition(".")
    whole = abs(int(seconds)) * 10**9 + int(rest.ljust(9, "0"))
    return -whole if text.startswith("-") else whole


def of_tshark(path: Path) -> tuple[list[dict[str, Any]], str]:
    """Every segment's facts, in one pass as the packets come. Where an option comes twice the last one counts.
    And the flow graph's text.
    """
    fields = NUMBERS | TIMES | MARKS | OTHERS | ADDRESSES
    rows = []
    lines, flow = tshark(path, list(fields.values()))
    for line in lines:
        text = dict(zip(fields, line, strict=True))
        row: dict[str, Any] = {name: int(text[name].split(",")[-1]) if text[name] else None for name in NUMBERS}
        row |= {name: nanoseconds(text[name]) for name in [*TIMES, "initial_rtt"]}
        row |= {name: bool(text[name]) for name in MARKS}
        row["completeness"] = int(text["completeness"])
        row["flags"] = label(int(text["flags"], 16))
        left, right = ([int(edge) for edge in text[side].split(",") if edge] for side in ("left", "right"))
        row["sack"] = list(zip(left, right, strict=True)) or None
        row["src"], row["dst"] = text["src4"] or text["src6"], text["dst4"] or text["dst6"]
        rows.append(row)
    return rows, flow


def label(flags: int) -> str:
    return ", ".join(name for bit, name in enumerate(LABELS) if flags & 1 << bit) or "<None>"


def of_latpcap(capture: lp.Capture) -> list[dict[str, Any]]:
    names = [*NUMBERS, *TIMES, *MARKS, "flags", "sack", "src", "dst"]
    rows: list[dict[str, Any]] = capture.arrow("events").select(names).to_pylist()
    for row in rows:
        # ours are unwrapped to 64 bits, tshark's are not
        row["seq"], row["ack"] = row["seq"] % 2**32, row["ack"] % 2**32
        for name in TIMES:
            row[name] = None if row[name] is None else round(row[name] * 1e6)
        if row["sack"] is not None:
            row["sack"] = [(block["left"] % 2**32, block["right"] % 2**32) for block in row["sack"]]
    return rows


def completeness_of_tshark(path: Path) -> dict[int, int]:
    """By stream: the second of two passes has counted all but a single segment, so such a stream is left out.

    Without FTP: a data connection that its dissector expects begins with the expectation, and loses its SYN.
    """
    found: dict[int, list[int]] = {}
    for number, complete in tshark(path, ["tcp.stream", "tcp.completeness"], "-2", "--disable-protocol", "ftp")[0]:
        found.setdefault(int(number), []).append(int(complete))
    return {number: values[-1] for number, values in found.items() if len(values) > 1}


def differences(path: Path, with_text: bool = False) -> list[str]:
    """Where the two disagree: one line a segment, a stream or the flow graph's text, ours first."""
    capture = lp.read(path)
    ours, (theirs, flow) = of_latpcap(capture), of_tshark(path)
    frames = [{row["frame"] for row in rows} for rows in (ours, theirs)]
    if frames[0] != frames[1]:
        return [f"{len(ours)} and {len(theirs)} segments; frames on one side only: {sorted(frames[0] ^ frames[1])[:9]}"]
    wrong = []
    for own, other in zip(ours, theirs, strict=True):
        parts = [f"{name} {own[name]!r} {other[name]!r}" for name in own if own[name] != other[name]]
        if parts:
            wrong.append(f"frame {own['frame']}: {'; '.join(parts)}")
    rtts = {r["stream"]: r["initial_rtt"] for r in theirs if r["initial_rtt"]}
    complete = {row["stream"]: row["completeness"] for row in theirs}  # at the last segment of each
    streams = capture.arrow("streams").to_pylist()
    if any(complete.get(row["stream"]) != row["completeness"] for row in streams):
        complete = completeness_of_tshark(path)
    for row in streams:
        number, rtt = row["stream"], row["initial_rtt_ms"]
        own = row["completeness"], None if rtt is None else round(rtt * 1e6)
        # tshark shows the initial RTT only beside another fact of the same segment
        other = complete.get(number, own[0]), rtts.get(number, own[1])
        if own != other:
            wrong.append(f"stream {number}: {own} {other}")
    if with_text and (text := capture.flow_graph().text()) != flow:
        wrong.append(f"flow graph: {text!r} {flow!r}")
    return wrong
