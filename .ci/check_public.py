"""Check that every capture of the public set is read to its end or refused in one line, and compare with tshark.

    check_public.py SETDIR

The number of frames must equal tshark's, each TCP segment of tshark must have a row (exceptions are named below), and
rewrapped copies (`derived--*`) must give the tables of their originals. Exit code 1 and a line for each violation.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

import latpcap as lp

GUESSED = "tcp/suricata-verify--bug-6875-01-fuzz.pcap"
"""Its second record is damaged: tshark guesses another variant of libpcap and sees no TCP in the first record."""
SAMPLED = ("tcp/PcapPlusPlus--ExamplesTest-pcap_examples-tcp-reassembly.pcap", 66)
"""TCP headers in an sFlow sample, which are not traffic of the captured link."""
HEADLESS = ("broken/nDPI--reasm_crash_anon.pcapng", 95)
"""A TCP header with a data offset of 0: tshark assigns it to a stream and reads no further."""
TABLES = ("events", "streams", "exchanges", "causes", "evidence")


def main() -> int:
    folder = Path(sys.argv[1])
    counted = {row["file"]: row["frames"] for row in pq.read_table(folder / "oracle" / "captures.parquet").to_pylist()}
    segments: defaultdict[str, set[int]] = defaultdict(set)
    for row in pq.read_table(folder / "oracle" / "tcp.parquet", columns=["file", "frame", "in_icmp"]).to_pylist():
        if not row["in_icmp"]:
            segments[row["file"].partition("/")[2]].add(row["frame"])
    wrong: list[str] = []
    refused = 0
    captures: dict[str, lp.Capture] = {}
    with open(folder / "manifest.csv", newline="") as manifest:
        names = [row["file"] for row in csv.DictReader(manifest)]
    for name in names:
        short = name.partition("/")[2]
        try:
            cap = captures[short] = lp.read(folder / short)
        except lp.CaptureError as problem:
            refused += 1
            if "\n" in str(problem) or problem.offset is None:
                wrong.append(f"{short}: refused without a place: {problem}")
            continue
        if counted[name] not in (0, cap.frames) and short != GUESSED:
            wrong.append(f"{short}: {cap.frames} frames, tshark counts {counted[name]}")
        missing = segments[short] - set(cap.arrow("events")["frame"].to_pylist())
        missing -= {frame for file, frame in (SAMPLED, HEADLESS) if file == short}
        if missing:
            wrong.append(f"{short}: {len(missing)} TCP segments missing, first frame {min(missing)}")
    wrapped = 0
    for short, cap in captures.items():
        inner = Path(short).name.removeprefix("derived--")
        originals = [file for file in captures if inner.startswith(Path(file).name) and "derived--" not in file]
        if inner == Path(short).name or not originals:
            continue
        wrapped += 1
        original_capture = captures[max(originals, key=len)]
        shorter = any(mark in inner for mark in (".cut.", ".trunc.", ".snap96."))
        for table in TABLES[:1] if shorter else TABLES:
            table_of_copy, table_of_original = cap.arrow(table), original_capture.arrow(table)
            first_rows = table_of_original.slice(0, table_of_copy.num_rows)
            # A shortened copy may have a shorter dictionary, so only its values are compared.
            if not (
                table_of_copy.to_pylist() == first_rows.to_pylist()
                if shorter
                else table_of_copy.equals(table_of_original)
            ):
                wrong.append(f"{short}: {table} are not those of {original_capture.name}")
    print(f"{len(names)} captures, {refused} refused, {wrapped} rewrapped copies")
    print("\n".join(wrong) if wrong else "each as it should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
