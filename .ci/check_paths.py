"""What do verdicts say of paths that vary, and from afar? Figures for .ci/floors.json.

    check_paths.py CAPTURES TOOLS [--sets lab4,real3] [--json FILE] [--show]

CAPTURES holds lab4 and the other sets, TOOLS the scorer score_lab.py, which reads both ends of a scenario.
  varying   precision and recall of proven stalls over the lines of lab4 that vary (Wi-Fi, cellular, aggregation,
            routes that change, token buckets, a transfer that fills the queue), at all points of capture
  too_much  exchanges of lab4 in which more than 5 ms beyond the program's log are proven the server's program's, at
            either end
  afar      scenarios in which the server's time stamps say within 1.2 ms how late 95 % of the answers were on their
            way back, and either that or the program took 1 ms an answer; in how many of them the client's capture
            gives `server_think` and `queueing` the right time. Both ends' captures say when each packet passed there.
            The program took what the server's capture says, and at most what the requests were late on their way
            besides; the queue took the way back, and at most both ways: 10 % and 0.5 ms an answer are granted
"""

import argparse
import importlib.util
import json
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import latpcap

VARYING = ("--wifi", "--cell", "--aggdir", "--shift", "--tbf")
POINTS = ("client.pcap", "server.pcap")
TOLD_MS, ENOUGH_EXCHANGES = 1.2, 5


def scorer(tools):
    spec = importlib.util.spec_from_file_location("score_lab", tools / "score_lab.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def varies(truth):
    link = truth.get("link") or {}
    command = " ".join(link.get("cmd") or [])
    return bool(link.get("bulk")) or any(word in command for word in VARYING)


def varying(tools, folders, scratch):
    """How many exchanges of lines that vary were hit, missed, false."""
    found = Counter()
    for folder in folders:
        truth = json.loads((folder / "truth.json").read_text())
        labels = labels_of(folder)
        if not varies(truth) or not labels:
            continue
        between = scratch / "between.pcap"
        made = tools.point_between(truth) and tools.half_way(folder, between)
        for path in [folder / point for point in POINTS] + [between] * bool(made):
            mine = [one for one in labels if path.name in (one.get("captures") or [path.name])]
            port = "lport_server" if path.name == "server.pcap" else "lport"
            found += tools.score(path, mine, port)[0]
    return found


def labels_of(folder):
    listed = folder / "labels.jsonl"
    return [json.loads(line) for line in listed.read_text().splitlines()] if listed.exists() else []


def exchanges(capture):
    """By the client's port, in order: the exchanges of each connection, without set-ups."""
    table = capture.arrow("exchanges")
    starts = table["start"].cast("int64").to_pylist()
    found = defaultdict(list)
    for start, row in sorted(zip(starts, table.to_pylist(), strict=True), key=lambda one: one[0]):
        if row["protocol"] != "tcp" or row["method"] == "one_way":
            found[row["client_port"]].append(row | {"start": start})
    return found


def too_much(folders):
    """(capture, exchange) in which too much is proven to be the program's."""
    for folder in folders:
        labels = defaultdict(list)
        for label in labels_of(folder):
            labels[label["lport"]].append(label)
        for path in (folder / point for point in POINTS if labels and (folder / point).exists()):
            capture = latpcap.read(path)
            proven = Counter()
            for row in capture.arrow("causes").to_pylist():
                if row["cause"] == "server_think" and row["grade"] == "proven":
                    proven[row["exchange"]] += row["duration_ms"]
            for port, have in exchanges(capture).items():
                wanted = sorted(labels[port], key=lambda one: one["t_start"])
                if len(have) != len(wanted):
                    continue
                for exchange, label in zip(have, wanted, strict=True):
                    clear = not label.get("excluded") and abs(label.get("unexplained_ms") or 0) <= 5
                    if clear and proven[exchange["exchange"]] > (label.get("server_ms") or 0) + 5:
                        yield f"{folder.name}/{path.name}", exchange["exchange"]


def passed(tools, path):
    """Each packet of TCP by its number: what it is (and the how many-th such), and when it passed."""
    found, seen = {}, Counter()
    for number, (time, frame, _) in enumerate(tools.frames(path), 1):
        if key := tools.identity(frame):
            seen[key] += 1
            found[number] = (key, seen[key]), time
    return found


def afar(tools, folder):
    """Per answer in ms, by the client's capture and in truth; None where stamps say too little."""
    near, far = (latpcap.read(folder / point) for point in POINTS)
    at_client = passed(tools, folder / "client.pcap")
    at_server = dict(passed(tools, folder / "server.pcap").values())
    late, stamps, best = ({}, {}), {}, {}
    for event in near.arrow("events").to_pylist():
        number, back = event["frame"], not event["from_client"]
        if number not in at_client:
            continue
        what, time = at_client[number]
        if what in at_server:
            late[back][number] = abs(at_server[what] - time) / 1e6
        if back and event["tsval"] is not None and not event["retransmission"]:
            stamps[number] = time / 1e6 - event["tsval"], event["stream"]
            best[event["stream"]] = min(best.get(event["stream"], stamps[number][0]), stamps[number][0])
    if not all(late):
        return None
    least = [min(way.values()) for way in late]
    sums, told, both = Counter(), 0, exchanges(far)
    for port, have in exchanges(near).items():
        if len(have) != len(both[port]):
            continue
        for mine, theirs in zip(have, both[port], strict=True):
            request, answer = mine["request_last_frame"], mine["response_first_frame"]
            whole = mine["complete"] and theirs["complete"]
            if not whole or request not in late[0] or answer not in late[1] or answer not in stamps:
                continue
            there, back = late[0][request] - least[0], late[1][answer] - least[1]
            offset, stream = stamps[answer]
            told += abs(offset - best[stream] - back) <= TOLD_MS
            sums.update(answers=1, think=mine["server_think_ms"], queue=mine["queueing_ms"])
            sums.update(true=theirs["server_think_ms"], there=there, back=back)
    answers = sums["answers"]
    if answers < ENOUGH_EXCHANGES or told < 0.95 * answers:
        return None
    return {name: total / answers for name, total in sums.items()}


def within(value, low, high):
    return 0.9 * low - 0.5 <= value <= 1.1 * high + 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("tools", type=Path)
    parser.add_argument("--sets", default="lab4,real3", help="for the figures from afar")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", action="store_true", help="name what is wrong")
    args = parser.parse_args()
    tools = scorer(args.tools)
    folders = sorted(path.parent for path in (args.captures / "lab4").glob("*/truth.json"))
    with tempfile.TemporaryDirectory() as scratch:
        found = varying(tools, folders, Path(scratch))
    wrong = list(too_much(folders))
    asked, right = Counter(), Counter()
    for name in args.sets.split(","):
        for folder in sorted(path.parent for path in (args.captures / name).glob("*/truth.json")):
            if not all((folder / point).exists() for point in POINTS):
                continue
            of = afar(tools, folder)
            if of is None or max(of["true"], of["back"]) < 1:
                continue
            program = within(of["think"], of["true"], of["true"] + of["there"])
            queue = within(of["queue"], of["back"], of["back"] + of["there"])
            for kind in ["all"] + ["queues"] * (of["back"] >= 1):
                asked[kind] += 1
                right[kind] += program and queue
            if args.show and not (program and queue):
                print(f"{name}/{folder.name:24}", " ".join(f"{key} {value:.2f}" for key, value in of.items()))
    if args.show:
        print(*(f"too much: {name}, exchange {exchange}" for name, exchange in wrong), sep="\n")
    figures = {
        "varying_precision": found["hit"] / max(1, found["hit"] + found["false"]),
        "varying_recall": found["hit"] / max(1, found["hit"] + found["missed"]),
        "too_much": len(wrong),
        "afar_asked": asked["all"],
        "afar_right": right["all"],
        "afar_queues_asked": asked["queues"],
        "afar_queues_right": right["queues"],
    }
    print(*(f"{name} {value:.4g}" for name, value in figures.items()), sep="\n")
    if args.json:
        args.json.write_text(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
