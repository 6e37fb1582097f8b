"""Processes that the capture names."""

from __future__ import annotations

import struct

from test_processes import OUT, Option, pcapng, ptcpdump, wireshark

from spoken.registry import says


@says("  process   10.0.0.2:80 is nginx (pid 70000)")
def a_server_with_its_process() -> bytes:
    return wireshark("<")


@says("  process   worker (pid 12) in web-7f")
def a_process_in_a_pod() -> bytes:
    return ptcpdump()


@says("10.0.0.1 is a process (pid 11); 10.0.0.1 is a process (pid 12); 10.0.0.1 is a process (pid 13); 1 other")
def ids_of_processes_alone() -> bytes:
    pids = iter([11, 11, 11, 12, 12, 13, 13, 14, 15] * 9)

    def named(from_client: bool) -> list[Option]:
        pid = next(pids)
        return [(2, struct.pack("<I", OUT)), (8, struct.pack("<II", pid, 0))] if from_client else []

    return pcapng("<", named)
