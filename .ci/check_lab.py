"""Compare causes with the logs of the lab's programs and link, and check the verdicts on known public captures.

    check_lab.py CAPTURES

Prints figures of the lab (CAPTURES/lab), each with a bound, and one line per public capture that is named below
(CAPTURES/public). Exit code 1 if any bound is violated.
  repairs   at the sending end: `released_by` of the first retransmission after each drop in link.jsonl. Expected is a
            fast retransmit after a SACK, a third duplicate ACK or an ACK within the last millisecond; otherwise a
            tail loss probe first and the retransmission timer after it
  think     `service_ms` minus the server's round trip, and the pause before a request (start of the request minus end
            of the exchange before and the client's round trip), of 4 ms and more, against the programs' logs
  latency   `client_latency_ms` of exchanges whose responses lost segments, against the clients' clocks
  stalls    recall as in score_lab.py, of the exchanges whose requests the capture holds
"""

import json
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import latpcap
from latpcap.vocabulary import STALL

POINTS = ("client.pcap", "server.pcap")
WORD = {"fast_retransmit": "fast", "tlp": "probe", "rto": "timer"}


def repairs(folder):
    """Return how many repairs of dropped data are as expected, and a list of all of them."""
    log = folder / "link.jsonl"
    drops = [json.loads(line) for line in log.read_text().splitlines() if line.strip()] if log.exists() else []
    drops = [d for d in drops if d["act"] in ("drop", "qdrop") and d["kind"] == "data" and d["len"]]
    agree, checked = 0, []
    for side, point in (("c2s", "client.pcap"), ("s2c", "server.pcap")):
        dropped = [d for d in drops if d["dir"] == side]
        if not dropped or not (folder / point).exists():
            continue
        capture = latpcap.read(folder / point)
        table = capture.arrow("events")
        rows, times = table.to_pylist(), table["time"].cast("int64").to_pylist()
        for row, ns in zip(rows, times, strict=True):
            row["ns"] = ns
        for d in dropped:
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
            repair = next(
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
            if repair is None:
                continue
            acks = [
                r
                for r in rows
                if r["stream"] == lost["stream"]
                and r["from_client"] != lost["from_client"]
                and lost["frame"] < r["frame"] < repair["frame"]
            ]
            has_sack = any(b["right"] > lost["seq"] for r in acks for b in (r["sack"] or []))
            is_signalled = (
                has_sack
                or sum(r["duplicate_ack"] for r in acks) >= 3
                or any(repair["ns"] - r["ns"] < 1e6 for r in acks)
            )
            flow = [r for r in rows if r["stream"] == lost["stream"] and r["from_client"] == lost["from_client"]]
            is_first_try = not any(r["frame"] < lost["frame"] and r["seq"] == lost["seq"] and r["len"] for r in flow)
            want = "fast" if is_signalled else "probe" if is_first_try and d["try"] == 1 else "timer"
            got = WORD.get(repair["released_by"])
            agree += got == want
            checked.append((folder.name, point, repair["frame"], want, got))
    return agree, checked


def matched(folder, point):
    """Yield each labelled exchange: label, row, the row before it on its stream, and the stream."""
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
        by_port[streams[row["stream"]]["client_port"]].append(row)
    labels = defaultdict(list)
    for line in log.read_text().splitlines():
        label = json.loads(line)
        labels[label["lport"]].append(label)
    for port, wanted in labels.items():
        found = sorted(by_port[port], key=lambda e: (e["start"], e["exchange"]))
        wanted.sort(key=lambda label: label["t_start"])
        if len(found) == len(wanted):
            for k, (label, row) in enumerate(zip(wanted, found, strict=True)):
                if label["link_actions"] or abs(label.get("unexplained_ms") or 0) <= 15:
                    yield label, row, found[k - 1] if k else None, streams[row["stream"]]


def spread(values):
    """Return median, 95th percentile and number of the values."""
    values = sorted(values)
    return statistics.median(values), values[min(len(values) - 1, int(0.95 * len(values)))], len(values)


def contained(root, folders):
    """Yield each point of capture, the counts (hit, missed, false) there, and how many stalls were left out.

    Left out are exchanges whose request came before the capture began (s8_midstream). score_lab.py counts them.
    """
    sys.path.insert(0, str(root.parent / "tools"))
    import score_lab as lab

    with tempfile.TemporaryDirectory() as scratch:
        for point in lab.POINTS:
            total, left_out = Counter(), 0
            for folder in folders:
                log = folder / "labels.jsonl"
                if not log.exists() or folder.name in lab.ONE_WAY:
                    continue
                path = Path(scratch) / "half-way.pcap" if point == "half way" else folder / point
                whole = all((folder / f"{end}.pcap").exists() for end in ("client", "server"))
                if point == "half way" and not (whole and lab.half_way(folder, path)):
                    continue
                if not path.exists():
                    continue
                labels = [json.loads(line) for line in log.read_text().splitlines()]
                began = next(lab.frames(path), (0, b""))[0]
                request_time = "t_start" if point == "client.pcap" else "t_req_read"
                early = [label for label in labels if (label[request_time] or label["t_start"]) < began]
                left_out += sum(label["nagle_delack"] for label in early)
                total += lab.score(path, [label for label in labels if label not in early])[0]
            yield point, total, left_out


def unseen(folders):
    """Return for how many connections the count of frames lost before the capture is exact, and how many were checked.

    The count comes from gaps in the IPv4 identifications, and is compared with link.jsonl. Checked are connections of
    recordings with drops that have a count or lost frames. Losses before the first or after the last number leave no
    gap.
    """
    exact = of = 0
    for folder in folders:
        log = folder / "link.jsonl"
        drops = [json.loads(line) for line in log.read_text().splitlines() if line.strip()] if log.exists() else []
        drops = [d for d in drops if d["act"] in ("drop", "qdrop")]
        for way, point, side in (("c2s", "server.pcap", "client"), ("s2c", "client.pcap", "server")):
            if not drops or not (folder / point).exists():
                continue
            for s in latpcap.read(folder / point).arrow("streams").to_pylist():
                end = "src" if way == "c2s" else "dst"
                lost = [d for d in drops if d["dir"] == way and d[end].endswith(f":{s['client_port']}")]
                got = s[f"{side}_unseen_frames"]
                if (lost or got is not None) and not any(d["kind"] == "syn" for d in lost):
                    of += 1
                    exact += got == len(lost)
    return exact, of


STORIES = {  # cause and owner of the finding with the most time
    "latency2": ("network", "network"),
    "latency3": ("client_think", "client"),
    "latency4": ("server_think", "server"),
}
DECOYS = ("206_example_c", "teams", "inconsistent_printer", "echo-connections")
NAGLE_TOO = "rfc3030"


def public(root):
    """Yield the name of each public capture with a known cause, and what is wrong with its verdict, or ""."""
    known = (*STORIES, *DECOYS, NAGLE_TOO)
    captures = {}
    for path in root.rglob("*.pcap*"):
        name = next((w for w in known if w in path.name), None)
        if name and "oracle" not in path.parts:
            captures[name] = latpcap.read(path)
    for name in known:
        yield name, wrong_of(name, captures[name]) if name in captures else "not there"


def wrong_of(name, capture):
    """Return what is wrong with the verdict on a public capture, or ""."""
    rows = capture.arrow("causes").to_pylist()
    findings = capture.arrow("findings").to_pylist()
    if name in STORIES:
        first = max((f for f in findings if f["kind"] in ("latency", "setup")), key=lambda f: f["total_ms"])
        found = first["cause"], first["owner"]
        return "" if found == STORIES[name] else f"{found} found"
    held = [c for c in rows if c["cause"] == "delayed_ack" and c["parent"] == "nagle"]
    if name in DECOYS:
        proven = sum(c["confidence"] >= 0.9 for c in held)
        named = [f for f in findings if f["cause"] == STALL and (f["grade"] == "proven" or not f["finding"])]
        return f"accused in {proven} exchanges, {len(named)} findings" if proven or named else ""
    stalls = [c for c in held if c["duration_ms"] >= 15 and c["confidence"] >= 0.9]
    named = [c for c in rows if c["cause"] == "client_think" and 48 <= c["duration_ms"] <= 54]
    pauses = sum(c["gap"] is not None and c["owner"] == "client" for c in named)
    return "" if len(stalls) >= 24 and pauses >= 24 else f"{len(stalls)} of 24 stalls, {pauses} of 24 pauses"


def main():
    root = Path(sys.argv[1])
    folders = sorted(p for p in (root / "lab").iterdir() if (p / "truth.json").exists())
    bad = []

    def bound(name, value, limit, least=False):
        """Print a figure with its bound: a minimum if `least`, else a maximum."""
        good = value >= limit if least else value <= limit
        print(f"{name:60} {value:10.4f} {'>=' if least else '<='} {limit:g}{'' if good else '   <- wrong side'}")
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
    exact, of = unseen(folders)
    bound(f"frames lost before the capture, exact, of {of}", exact / max(1, of), 0.9, least=True)
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
    for point, total, left_out in contained(root, folders):
        held = total["hit"] + total["missed"]
        what = f"{point}: stalls in the capture, recall of {held} (not in it: {left_out})"
        bound(what, total["hit"] / max(1, held), 0.98, least=True)
        bound(f"{point}: false stalls", total["false"], 0)
    for name, wrong in public(root / "public"):
        print(f"{name:60} {wrong or 'as it should be'}")
        if wrong:
            bad.append(name)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
