"""The six captures of docs/slow-downloads.md: one transfer each, held back by one thing, as the simulator makes it.

`python tests/downloads.py` writes them to sample_pcaps/downloads: the headers of each packet, compressed.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from makepcap import pcap_of
from transfer_simulator import Transfer

from latpcap.options import SequencePanel

FOLDER = Path(__file__).resolve().parents[1] / "sample_pcaps" / "downloads"
HEADERS = 96
CAPTURES: dict[str, tuple[Transfer, str, str]] = {
    "no-scaling": (Transfer(scaled=False, rtt=45, bytes=800_000), "receiver", "receiver_window"),
    "slow-reader": (Transfer(window=131_072, reader=9, bytes=800_000), "receiver", "receiver_program"),
    "slow-program": (Transfer(writes=(32_000, 40.0), rtt=20, bytes=500_000), "sender", "sender_program"),
    "losses": (Transfer(lost=tuple(range(60, 600, 45)), bytes=900_000), "sender", "congestion"),
    "line": (Transfer(line=8, ceiling=150, rtt=40, bytes=900_000), "sender", "line"),
    "far": (Transfer(rtt=180, bytes=150_000), "receiver", "start"),
}
"""What moves, at which end it is captured, and what limits it."""
PANELS: dict[str, list[SequencePanel]] = {"receiver": ["sequence"], "sender": ["sequence", "flight", "rtt"]}
"""What is drawn of a capture: only the sender's has the bytes in flight and the round trip."""


def made(name: str) -> bytes:
    """The capture, cut as tcpdump -s 96 does."""
    transfer, end, _ = CAPTURES[name]
    transfer.captures()
    return pcap_of(((one.time_ns, one.frame()) for one in transfer.tapes[end]), snaplen=HEADERS)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in CAPTURES:
        (FOLDER / f"{name}.pcap.gz").write_bytes(gzip.compress(made(name), mtime=0))
