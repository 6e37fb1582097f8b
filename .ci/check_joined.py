"""Compare joined captures with the logs of the lab: did the client's side hold back an ACK?

    check_joined.py LAB... [--show N] [--json OUT]

LAB is a folder of scenarios with client.pcap, server.pcap and labels.jsonl. A joined exchange is accused if a proven
part says that the client's side held an ACK for 15 ms or more. Its label is found by the client's port and the last
start before it. A joined exchange begins with the last byte of its request, so waits inside a request (Nagle's
algorithm at the client) are counted apart.
  precision  share of the accused exchanges whose label agrees
  recall     share of the exchanges with a labelled wait for the client's ACK that are accused
`--json` writes both; their floors are in floors.json (check_scores.py).
"""

import argparse
import bisect
import json
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa

import latpcap

HELD_MS = 15.0
"""Time that an acknowledgement is held from which an exchange counts as held."""
ARTEFACT_MS = 15.0
"""Unexplained time of a label above which the label is left out."""
CLOCK_NS = 1_000_000
"""Upper bound on the time by which a label begins after its exchange."""


def exchanges(pair):
    """Return the joined exchanges by client port: start, whether the client's side provably held an ACK, and number."""
    held = Counter()
    for row in pair.arrow("parts").to_pylist():
        if (row["place"], row["cause"], row["grade"]) == ("client", "delayed_ack", "proven"):
            held[row["a_exchange"]] = max(held[row["a_exchange"]], row["duration_ms"])
    streams = pair.points[0].table("streams").to_pydict()
    port = dict(zip(streams["stream"], streams["client_port"], strict=True))
    table = pair.arrow("exchanges")
    starts = table["start"].cast(pa.int64()).to_pylist()
    by_port = defaultdict(list)
    for row, start in zip(table.to_pylist(), starts, strict=True):
        by_port[port[row["a_stream"]]].append((start, held[row["a_exchange"]] >= HELD_MS, row["a_exchange"]))
    return by_port


def check(folder):
    """Return the tally of one scenario and the exchanges that disagree. None if the pair cannot be joined."""
    labels = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines() if line.strip()]
    try:
        pair = latpcap.join(folder / "client.pcap", folder / "server.pcap")
    except latpcap.LatpcapError:
        return None
    if pair.proxied:
        return None
    by_port, tally, wrong = exchanges(pair), Counter(), []
    by_label = defaultdict(list)
    starts = {port: sorted(label["t_start"] for label in labels if label["lport"] == port) for port in by_port}
    for port, rows in by_port.items():
        for start, held, number in rows:
            index = bisect.bisect_right(starts[port], start + CLOCK_NS) - 1
            if index >= 0:
                by_label[port, starts[port][index]].append((held, number))
    for label in labels:
        if abs(label.get("unexplained_ms") or 0) > ARTEFACT_MS or label.get("excluded"):
            continue
        rows = by_label[label["lport"], label["t_start"]]
        if len(rows) != 1:
            tally["unmatched"] += 1
            continue
        ((held, number),) = rows
        waits = [wait for wait in label.get("nagle_waits", ()) if wait.get("ack_hold_ms", HELD_MS) >= HELD_MS]
        if label["nagle_delack"] and {wait["side"] for wait in waits} == {"client"}:
            tally["inside the request"] += 1
            continue
        kind = {(1, 1): "hit", (1, 0): "missed", (0, 1): "false", (0, 0): "clean"}
        outcome = kind[int(label["nagle_delack"]), int(held)]
        tally[outcome] += 1
        if outcome in ("missed", "false"):
            wrong.append((outcome, label["lport"], number))
    return tally, wrong


def main():
    """Print the figures of each lab and of all."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("labs", nargs="+", type=Path)
    options.add_argument("--show", type=int, default=0)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    total, refused = Counter(), []
    for folder in sorted(path.parent for lab in chosen.labs for path in lab.glob("*/labels.jsonl")):
        if not all((folder / f"{end}.pcap").exists() for end in ("client", "server")):
            continue
        results = check(folder)
        if results is None:
            refused.append(folder.name)
            continue
        total += results[0]
        if results[1] and chosen.show:
            print(folder.name, dict(results[0]), *results[1][: chosen.show])
    precision = total["hit"] / max(total["hit"] + total["false"], 1)
    recall = total["hit"] / max(total["hit"] + total["missed"], 1)
    print(
        f"joined: precision {precision:.4f}, recall {recall:.4f} {dict(total)}; "
        f"not joined: {len(refused)} {refused[:8]}"
    )
    if chosen.json:
        chosen.json.write_text(json.dumps({"precision": precision, "recall": recall, **total}))


if __name__ == "__main__":
    main()
