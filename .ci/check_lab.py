"""Do causes agree with what the lab's programs and its link logged? And are the public captures judged fairly?

    check_lab.py CAPTURES

Figures of the lab (CAPTURES/lab), each with a bound, and a verdict for each public capture that is named below
(CAPTURES/public). Exit code 1 if any is on the wrong side.
  repairs   at the sending end: the first repeat after each drop of link.jsonl, by its `released_by`, against what
            the drop calls for: fast retransmit where a SACK, a third duplicate ACK or an ACK just before asked for
            it, else a probe first and the timer after it
  think     `service_ms` less the server's leg, and the pause before a request (the next start less this end and the
            client's leg), of 4 ms and more, against the programs' logs
  latency   `client_latency_ms` of exchanges whose answers lost segments, against the clients' clocks
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import latpcap

POINTS = ("client.pcap", "server.pcap")
WORD = {"fast_retransmit": "fast", "tlp": "probe", "rto": "timer"}


def repairs(folder):
    """(agree, asked) of the drops of data in this folder."""
    log = folder / "link.jsonl"
    drops = [json.loads(line) for line in log.read_text().splitlines() if line.strip()] if log.exists() else []
    drops = [d for d in drops if d["act"] in ("drop", "qdrop") and d["kind"] == "data" and d["len"]]
    agree, asked = 0, []
    for side, point in (("c2s", "client.pcap"), ("s2c", "server.pcap")):
        mine = [d for d in drops if d["dir"] == side]
        if not mine or not (folder / point).exists():
            continue
        capture = latpcap.read(folder / point)
        table = capture.arrow("events")
        rows, times = table.to_pylist(), table["time"].cast("int64").to_pylist()
        for row, ns in zip(rows, times, strict=True):
            row["ns"] = ns
        for d in mine:
            port = int(d["src"].rpartition(":")[2])
            sent = [
                r
                for r in rows
                if r["sport"] == port and r["len"] and abs(r["ns"] - d["t"]) < 3e6 and r["len"] >= d["len"]
            ]
            sent = [r for r in sent if r["ns"] <= d["t"]]
            if port < 20_000:  # a server: which connection?
                sent = [r for r in sent if r["dport"] == int(d["dst"].rpartition(":")[2])]
            raw = [r for r in sent if r["len"] == d["len"]] or sent
            if not raw:
                continue
            lost = raw[-1]
            again = next(
                (
                    r
                    for r in rows
                    if r["stream"] == lost["stream"]
                    and r["from_client"] == lost["from_client"]
                    and r["frame"] > lost["frame"]
                    and r["len"]
                    and r["seq"] <= lost["seq"] < r["seq"] + r["len"]
                ),
                None,
            )
            if again is None:
                continue
            back = [
                r
                for r in rows
                if r["stream"] == lost["stream"]
                and r["from_client"] != lost["from_client"]
                and lost["frame"] < r["frame"] < again["frame"]
            ]
            told = any(b["right"] > lost["seq"] for r in back for b in (r["sack"] or []))
            called = (
                told or sum(r["duplicate_ack"] for r in back) >= 3 or any(again["ns"] - r["ns"] < 1e6 for r in back)
            )
            flow = [r for r in rows if r["stream"] == lost["stream"] and r["from_client"] == lost["from_client"]]
            first = not any(r["frame"] < lost["frame"] and r["seq"] == lost["seq"] and r["len"] for r in flow)
            want = "fast" if called else "probe" if first and d["try"] == 1 else "timer"
            got = WORD.get(again["released_by"])
            agree += got == want
            asked.append((folder.name, point, again["frame"], want, got))
    return agree, asked


def matched(folder, point):
    """Each labelled exchange with its row, the row before it on its stream, and the stream."""
    path, log = folder / point, folder / "labels.jsonl"
    if not path.exists() or not log.exists():
        return
    capture = latpcap.read(path)
    table = capture.arrow("exchanges")
    rows = table.to_pylist()
    for column in ("start", "end"):
        for row, ns in zip(rows, table[column].cast("int64").to_pylist(), strict=True):
            row[column] = ns
    streams = {s["stream"]: s for s in capture.arrow("streams").to_pylist()}
    by_port = defaultdict(list)
    for row in rows:
        if row["protocol"] != "tcp":
            by_port[streams[row["stream"]]["client_port"]].append(row)
    labels = defaultdict(list)
    for line in log.read_text().splitlines():
        label = json.loads(line)
        labels[label["lport"]].append(label)
    for port, wanted in labels.items():
        have = sorted(by_port[port], key=lambda e: (e["start"], e["exchange"]))
        wanted.sort(key=lambda one: one["t_start"])
        if len(have) == len(wanted):
            for k, (label, row) in enumerate(zip(wanted, have, strict=True)):
                if label["link_actions"] or abs(label.get("unexplained_ms") or 0) <= 15:
                    yield label, row, have[k - 1] if k else None, streams[row["stream"]]


def spread(values):
    values = sorted(values)
    return statistics.median(values), values[min(len(values) - 1, int(0.95 * len(values)))], len(values)


def public(root):
    """(name, what is wrong) of the public captures whose story is known."""
    causes_of = {}
    for path in root.rglob("*.pcap*"):
        wanted = (
            "latency1",
            "latency2",
            "latency3",
            "latency4",
            "206_example_c",
            "teams",
            "inconsistent_printer",
            "echo-connections",
            "rfc3030",
        )
        name = next((w for w in wanted if w in path.name), None)
        if name and "oracle" not in path.parts:
            causes_of[name] = latpcap.read(path)
    for name in ("206_example_c", "teams", "inconsistent_printer", "echo-connections"):
        if name in causes_of:
            rows = causes_of[name].arrow("causes").to_pylist()
            accused = [c["exchange"] for c in rows if c["cause"] == "delayed_ack" and c["confidence"] >= 0.9]
            yield name, f"accused in {len(accused)} exchanges" if accused else ""
    for name, capture in causes_of.items():
        if not name.startswith("latency"):
            continue
        spent = defaultdict(float)
        for c in capture.arrow("causes").to_pylist():
            spent[c["cause"]] += c["duration_ms"]
        yield name, ""
        print(f"  {name}: " + ", ".join(f"{c} {ms:.0f} ms" for c, ms in sorted(spent.items(), key=lambda i: -i[1])[:3]))
    if "rfc3030" in causes_of:
        rows = causes_of["rfc3030"].arrow("causes").to_pylist()
        held = [c for c in rows if c["cause"] == "delayed_ack" and c["parent"] == "nagle" and c["duration_ms"] >= 15]
        yield "rfc3030", "" if len(held) >= 24 else f"{len(held)} of 24 stalls"


def main():
    root = Path(sys.argv[1])
    folders = sorted(p for p in (root / "lab").iterdir() if (p / "truth.json").exists())
    bad = []

    def bound(name, value, limit, least=False):
        good = value >= limit if least else value <= limit
        print(f"{name:44} {value:10.4f} {'>=' if least else '<='} {limit:g}{'' if good else '   <- wrong side'}")
        if not good:
            bad.append(name)

    agree, asked = 0, []
    for folder in folders:
        if folder.name != "s4_duplicates":
            good, all_of = repairs(folder)
            agree, asked = agree + good, asked + all_of
    for name, point, frame, want, got in asked:
        if want != got:
            print(f"  {name}/{point} frame {frame}: {want} wanted, {got} found")
    bound(f"repairs that agree, of {len(asked)}", agree / max(1, len(asked)), 0.95, least=True)
    for point in POINTS:
        server, client, lossy = [], [], []
        for folder in folders:
            for label, row, before, stream in matched(folder, point):
                if "cork" in folder.name or folder.name in ("s8_c2s_only", "s8_s2c_only", "s8_midstream"):
                    continue
                lost = bool(label["link_actions"])
                dropped = lost and all(a["act"] == "drop" and a["dir"] == "s2c" for a in label["link_actions"])
                if dropped and row["client_latency_ms"] is not None and label["latency_ms"] is not None:
                    lossy.append(abs(row["client_latency_ms"] - label["latency_ms"]))
                if lost or label["nagle_delack"]:
                    continue
                true = None if label["t_req_read"] is None else (label["t_ans_first_write"] - label["t_req_read"]) / 1e6
                if (
                    true is not None
                    and true >= 4
                    and not label["server_pause_ms"] > true + 1
                    and row["ttfb_ms"] is not None
                ):
                    turn = row["service_ms"] - stream["server_rtt_ms"] if row["service_ms"] is not None else None
                    if turn is not None:
                        server.append(abs(turn - true))
                idle = label["idle_before_ms"]
                if idle is not None and idle >= 4 and before is not None and before["end"] < row["start"]:
                    client.append(abs((row["start"] - before["end"]) / 1e6 - stream["client_rtt_ms"] - idle))
        for name, values in (("server think", server), ("client pause", client)):
            if values:
                median, p95, n = spread(values)
                bound(f"{point}: {name} error p50 of {n}", median, 0.2)
                bound(f"{point}: {name} error p95 of {n}", p95, 0.4)
        if lossy:
            median, p95, n = spread(lossy)
            bound(f"{point}: latency with losses, error p50 of {n}", median, 0.5)
    for name, wrong in public(root / "public"):
        print(f"{name:44} {wrong or 'as it should be'}")
        if wrong:
            bad.append(name)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
