"""Write the `events` of many captures as one Parquet file for the Wireshark scorer.

events_for_scoring.py SETDIR OUT.parquet
"""

import csv
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import latpcap as lp

LABELS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE")


def bits(label: str) -> int:
    return sum(1 << LABELS.index(part) for part in label.split(", ") if part in LABELS)


def modulo(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return sequence numbers modulo 2^32, as Wireshark shows them."""
    return pc.bit_wise_and(column, pa.scalar(0xFFFFFFFF, pa.int64()))


def table(path: Path, name: str) -> pa.Table:
    events = lp.read(path).arrow("events")
    flags = events["flags"].unify_dictionaries().cast(pa.string()).to_pylist()
    bits_of = {label: bits(label) for label in set(flags)}
    keep = [
        column
        for column in events.column_names
        if column not in ("src", "dst", "sack", "flags", "seq", "ack", "released_by")
    ]
    out = events.select(keep)
    out = out.append_column("flags", pa.array([bits_of[label] for label in flags], pa.int32()))
    out = out.append_column("rel_seq", modulo(events["seq"])).append_column("rel_ack", modulo(events["ack"]))
    return out.add_column(0, "file", pa.array([name] * out.num_rows, pa.string()))


def main() -> int:
    folder, target = Path(sys.argv[1]), sys.argv[2]
    tables, refused = [], []
    with open(folder / "manifest.csv", newline="") as manifest:
        for row in csv.DictReader(manifest):
            try:
                name = row["file"]
                path = next(
                    path
                    for path in (folder / name, folder.parent / name, folder / name.partition("/")[2])
                    if path.exists()
                )
                tables.append(table(path, name))
            except lp.CaptureError as problem:
                refused.append(str(problem))
    print(f"{len(tables)} captures read, {len(refused)} refused")
    for line in refused:
        print("  " + line.replace(str(folder), "…"))
    pq.write_table(pa.concat_tables(table.replace_schema_metadata(None) for table in tables if table.num_rows), target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
