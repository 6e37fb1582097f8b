"""Measure the CPU seconds for drawing a flow graph of many rows, and the size of the files.

    benchmarks/flow_graph.py [CAPTURE] [--rows 1000] [--repeats 3]

Prints the fastest of the repeats. Reading the capture and importing matplotlib are not included: a small graph is drawn
first.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import latpcap as lp

SAMPLE = Path(__file__).resolve().parents[1] / "sample_pcaps" / "nginx-latency.pcap"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path, nargs="?", default=SAMPLE)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    capture = lp.read(args.capture)
    capture.flow_graph(max_rows=5)._repr_png_()
    rows = len(capture.flow_graph(max_rows=args.rows).rows)
    print(f"{args.capture.name}: {rows:,} rows")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".png", ".svg", ".pdf", ".txt"):
            path, best = Path(folder, f"flow{suffix}"), float("inf")
            for _ in range(args.repeats):
                since = time.process_time()
                capture.flow_graph(max_rows=args.rows).save(path, pages=False)
                best = min(best, time.process_time() - since)
            print(f"  {suffix[1:]:4} {best:6.2f} s {path.stat().st_size:12,} bytes")


if __name__ == "__main__":
    main()
