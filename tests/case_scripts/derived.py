"""Captures made of recorded ones."""

from __future__ import annotations

from pathlib import Path

from case_scripts.registry import variants

CASES = Path(__file__).resolve().parents[1] / "cases"


@variants(tls12={"recorded": "tls12", "port": 4430}, tls13={"recorded": "tls13", "port": 4431})
def one_port(recorded: str, port: int) -> bytes:
    """The connections of the recorded case with one server port: evidence for Nagle's algorithm on one, and against it
    on the others.

    Not to be mistaken for: two servers; each connection is judged by what it shows itself.
    """
    data = bytearray((CASES / recorded / "capture.pcap").read_bytes())
    at = 24
    while at < len(data):
        tcp = at + 16 + 14 + (data[at + 30] & 15) * 4
        for place in (tcp, tcp + 2):
            if data[at + 28 : at + 30] == b"\x08\x00" and data[place : place + 2] == (port + 10).to_bytes(2, "big"):
                data[place : place + 2] = port.to_bytes(2, "big")
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return bytes(data)
