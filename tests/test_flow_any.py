"""`flow --flows any` is the text of `tshark -z flow,any,network`, where latpcap knows the protocols."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from commands import answered

import latpcap as lp

ROOT = Path(__file__).resolve().parents[1]
SAMPLES, CASES = ROOT / "sample_pcaps", ROOT / "tests" / "cases"
CAPTURES = [
    SAMPLES / "probes.pcap", SAMPLES / "clips" / "split-nagle.pcap", SAMPLES / "more" / "lost-tail.pcap",
    *(next((CASES / name).glob("capture.*")) for name in (
        "dns_slow", "dns_quick", "zero_window", "stall_ipv6", "lost_segments_without_sacks", "reused_ports", "chunked",
        "silence_server_gone",
    )),
]  # fmt: skip


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.parent.name)
def test_it_is_tsharks(path: Path) -> None:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("needs tshark")
    words = [program, "-r", str(path), "-q", "-z", "flow,any,network"]
    assert (
        answered("flow", path, "--flows", "any")
        == subprocess.run(words, capture_output=True, text=True, check=True).stdout
    )


def test_without_tshark() -> None:
    text = lp.read(CASES / "dns_slow" / "capture.pcap").flow_graph(flows="any").text()
    assert "|DNS: Standard query response 0x0001 A web.lab A 10.0.0.2\n" in text
    assert "|TCP: 80 → 40000 [SYN, ACK] Seq=0 Ack=1 Win=64240 Len=0 MSS=1460 SACK_PERM WS=128\n" in text
    assert "|HTTP: GET / HTTP/1.1 \n" in text
    lost = lp.read(SAMPLES / "more" / "lost-tail.pcap").flow_graph(flows="any").text()
    assert "|TCP: HTTP/1.1 200 OK  [TCP segment of a reassembled PDU]\n" in lost and "|TCP: [TCP " in lost
