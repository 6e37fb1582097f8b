"""The captures of docs/slow-downloads.md: one transfer each, held back by one thing, recorded between two namespaces.

`python tests/downloads.py [NAME ...]` records them again (needs what `recorders.transfers` needs) into
sample_pcaps/downloads: 96 bytes of each packet, compressed, and in truth.json what was made, and what the sending
kernel and the receiving program measured.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

from recorders import transfers
from recorders.transfers import Plan

from latpcap.options import SequencePanel

FOLDER = Path(__file__).resolve().parents[1] / "sample_pcaps" / "downloads"
TRUTH = FOLDER / "truth.json"
HEADERS = 96
CAPTURES: dict[str, tuple[Plan, str]] = {
    "no-scaling": (Plan("receiver_window", 45, 100, scaling=False, bytes=800_000), "client"),
    "slow-reader": (
        Plan("receiver_program", 30, 100, reader=(32_768, 28), receive_bytes=90_000, bytes=32_768 * 45),
        "client",
    ),
    "slow-program": (Plan("sender_program", 20, 100, writer=(32_000, 40), bytes=480_000), "server"),
    "losses": (Plan("congestion", 30, loss=1.2, cc="reno", bytes=1_400_000), "server"),
    "line": (Plan("line", 40, 8, 3, bytes=1_200_000), "server"),
    "far": (Plan("start", 180, bytes=150_000), "client"),
    "beside": (Plan("line", 30, 8, 5, bytes=1_600_000, beside=(60, 3, 3)), "client"),
}
"""What moves and what limits it, and at which end it is captured."""
PANELS: dict[str, list[SequencePanel]] = {"client": ["sequence"], "server": ["sequence", "flight", "rtt"]}
"""What is drawn of a capture: only the sender's has the bytes in flight and the round trip."""


def main(names: list[str]) -> None:
    line, truths = transfers.built(), json.loads(TRUTH.read_text()) if TRUTH.exists() else {}
    for name in names or list(CAPTURES):
        plan, end = CAPTURES[name]
        with tempfile.TemporaryDirectory() as place:
            truths[name] = {**transfers.record(line, plan, Path(place) / name, HEADERS), "end": end}
            packed = gzip.compress((Path(place) / name / f"{end}.pcap").read_bytes(), mtime=0)
        (FOLDER / f"{name}.pcap.gz").write_bytes(packed)
    TRUTH.write_text(json.dumps(truths, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
