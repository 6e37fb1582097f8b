"""Do joined captures say what the programs of the lab logged? Who held an acknowledgement, at the end that held it.

    check_joined.py LAB... [--show N] [--json OUT]

LAB: a folder of scenarios with client.pcap, server.pcap and labels.jsonl. An exchange of a joined pair has a verdict
where a proven part says that the client's side held an ACK for 15 ms or more; its label, by the client's port and
the last start before it, says whether one was. A joined exchange begins with its request's last byte: waits inside a
request (the client's own Nagle) are counted apart.
  precision  of the verdicts, those whose label agrees
  recall     of labelled waits of the server for an ACK of the client's in matched exchanges, those with a verdict
`--json` writes both; their floors stand in floors.json (check_scores.py).
"""

import argparse
import bisect
import json
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa

import latpcap

HELD_MS, ARTEFACT_MS, CLOCK_NS = 15.0, 15.0, 1_000_000


def exchanges(pair):
    """Of each client's port, the joined exchanges: start, and how long the client's side provably held an ACK."""
    held = Counter()
    for row in pair.arrow("parts").to_pylist():
        if (row["place"], row["cause"], row["grade"]) == ("client", "delayed_ack", "proven"):
            held[row["a_exchange"]] = max(held[row["a_exchange"]], row["duration_ms"])
    streams = pair.points[0].table("streams").to_pydict()
    port = dict(zip(streams["stream"], streams["client_port"], strict=True))
    table = pair.arrow("exchanges")
    starts = table["start"].cast(pa.int64()).to_pylist()
    found = defaultdict(list)
    for row, start in zip(table.to_pylist(), starts, strict=True):
        found[port[row["a_stream"]]].append((start, held[row["a_exchange"]] >= HELD_MS, row["a_exchange"]))
    return found


def checked(folder):
    """Tallies of one scenario, and what disagrees; None where the pair cannot be joined."""
    labels = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines() if line.strip()]
    try:
        pair = latpcap.join(folder / "client.pcap", folder / "server.pcap")
    except latpcap.LatpcapError:
        return None
    if pair.proxied:
        return None
    have, tally, wrong = exchanges(pair), Counter(), []
    mine = defaultdict(list)
    starts = {port: sorted(label["t_start"] for label in labels if label["lport"] == port) for port in have}
    for port, rows in have.items():
        for start, held, number in rows:
            place = bisect.bisect_right(starts[port], start + CLOCK_NS) - 1
            if place >= 0:
                mine[port, starts[port][place]].append((held, number))
    for label in labels:
        if abs(label.get("unexplained_ms") or 0) > ARTEFACT_MS or label.get("excluded"):
            continue
        rows = mine[label["lport"], label["t_start"]]
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
        found = checked(folder)
        if found is None:
            refused.append(folder.name)
            continue
        total += found[0]
        if found[1] and chosen.show:
            print(folder.name, dict(found[0]), *found[1][: chosen.show])
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
