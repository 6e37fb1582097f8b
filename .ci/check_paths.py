"""Score verdicts on paths of varying delay, and captures taken far from the server. Figures for .ci/floors.json.

    check_paths.py CAPTURES TOOLS [--sets lab4,real3] [--json FILE] [--show]

CAPTURES holds lab4 and the other sets, TOOLS the scorer score_lab.py, which reads both ends of a scenario.
  varying   precision and recall of proven stalls on the links of lab4 whose delay varies (Wi-Fi, cellular, aggregation,
            route changes, token buckets, a bulk transfer that fills the queue), at all points of capture
  too_much  exchanges of lab4 for which proven `server_think` exceeds the program's log by more than 5 ms, at either end
  afar      scenarios in which the client's capture gives `server_think` and `queueing` the right time. The truth comes
            from comparing the captures of both ends, packet by packet. Program: the time in the server's capture, plus
            at most the extra delay of the requests. Queue: the extra delay of the responses, plus at most that of the
            requests. The tolerance is 10 % and 0.5 ms per response. Only scenarios count in which the server's time
            stamps show the delay of 95 % of the responses within 1.2 ms, and in which queue or program took 1 ms
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
STAMP_ERROR_MS = 1.2
"""Upper bound on the error of a delay that time stamps in ms give."""
MIN_EXCHANGES = 5
"""Exchanges from which a path is judged."""


def scorer(tools):
    """Import score_lab.py."""
    spec = importlib.util.spec_from_file_location("score_lab", tools / "score_lab.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has_varying_delay(truth):
    link = truth.get("link") or {}
    command = " ".join(link.get("cmd") or [])
    return bool(link.get("bulk")) or any(word in command for word in VARYING)


def varying(tools, folders, scratch):
    """Count the exchanges (hit, missed, false) on links of varying delay."""
    totals = Counter()
    for folder in folders:
        truth = json.loads((folder / "truth.json").read_text())
        labels = labels_of(folder)
        if not has_varying_delay(truth) or not labels:
            continue
        between = scratch / "between.pcap"
        made = tools.point_between(truth) and tools.half_way(folder, between)
        for path in [folder / point for point in POINTS] + [between] * bool(made):
            visible = [label for label in labels if path.name in (label.get("captures") or [path.name])]
            port = "lport_server" if path.name == "server.pcap" else "lport"
            totals += tools.score(path, visible, port)[0]
    return totals


def labels_of(folder):
    listed = folder / "labels.jsonl"
    return [json.loads(line) for line in listed.read_text().splitlines()] if listed.exists() else []


def exchanges(capture):
    """Return the exchanges of each connection in order, without set-ups, by the client's port."""
    table = capture.arrow("exchanges")
    starts = table["start"].cast("int64").to_pylist()
    by_port = defaultdict(list)
    for start, row in sorted(zip(starts, table.to_pylist(), strict=True), key=lambda item: item[0]):
        if row["protocol"] != "tcp" or row["method"] == "one_way":
            by_port[row["client_port"]].append(row | {"start": start})
    return by_port


def too_much(folders):
    """Yield capture and number of each exchange whose proven `server_think` is too long."""
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
            for port, judged in exchanges(capture).items():
                wanted = sorted(labels[port], key=lambda label: label["t_start"])
                if len(judged) != len(wanted):
                    continue
                for exchange, label in zip(judged, wanted, strict=True):
                    is_scored = not label.get("excluded") and abs(label.get("unexplained_ms") or 0) <= 5
                    if is_scored and proven[exchange["exchange"]] > (label.get("server_ms") or 0) + 5:
                        yield f"{folder.name}/{path.name}", exchange["exchange"]


def passed(tools, path):
    """Return for each TCP packet by frame number: its identity with a count of repeats, and its time in ns."""
    packets, repeats = {}, Counter()
    for number, (time, frame, _) in enumerate(tools.frames(path), 1):
        if key := tools.identity(frame):
            repeats[key] += 1
            packets[number] = (key, repeats[key]), time
    return packets


def afar(tools, folder):
    """Return mean times per response in ms, by the client's capture and in truth. None if stamps are too coarse."""
    near, far = (latpcap.read(folder / point) for point in POINTS)
    at_client = passed(tools, folder / "client.pcap")
    at_server = dict(passed(tools, folder / "server.pcap").values())
    delays_ms, stamps, best = ({}, {}), {}, {}
    for event in near.arrow("events").to_pylist():
        number, is_response = event["frame"], not event["from_client"]
        if number not in at_client:
            continue
        identity, time = at_client[number]
        if identity in at_server:
            delays_ms[is_response][number] = abs(at_server[identity] - time) / 1e6
        if is_response and event["tsval"] is not None and not event["retransmission"]:
            stamps[number] = time / 1e6 - event["tsval"], event["stream"]
            best[event["stream"]] = min(best.get(event["stream"], stamps[number][0]), stamps[number][0])
    if not all(delays_ms):
        return None
    min_delay = [min(way.values()) for way in delays_ms]
    sums, stamped, at_far_end = Counter(), 0, exchanges(far)
    for port, at_near_end in exchanges(near).items():
        if len(at_near_end) != len(at_far_end[port]):
            continue
        for client, server in zip(at_near_end, at_far_end[port], strict=True):
            request, answer = client["request_last_frame"], client["response_first_frame"]
            is_complete = client["complete"] and server["complete"]
            if not is_complete or request not in delays_ms[0] or answer not in delays_ms[1] or answer not in stamps:
                continue
            there, back = delays_ms[0][request] - min_delay[0], delays_ms[1][answer] - min_delay[1]
            offset, stream = stamps[answer]
            stamped += abs(offset - best[stream] - back) <= STAMP_ERROR_MS
            sums.update(answers=1, think=client["server_think_ms"], queue=client["queueing_ms"])
            sums.update(true=server["server_think_ms"], there=there, back=back)
    answers = sums["answers"]
    if answers < MIN_EXCHANGES or stamped < 0.95 * answers:
        return None
    return {name: total / answers for name, total in sums.items()}


def is_within(value, low, high):
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
        totals = varying(tools, folders, Path(scratch))
    wrong = list(too_much(folders))
    checked, right = Counter(), Counter()
    for name in args.sets.split(","):
        for folder in sorted(path.parent for path in (args.captures / name).glob("*/truth.json")):
            if not all((folder / point).exists() for point in POINTS):
                continue
            times = afar(tools, folder)
            if times is None or max(times["true"], times["back"]) < 1:
                continue
            program = is_within(times["think"], times["true"], times["true"] + times["there"])
            queue = is_within(times["queue"], times["back"], times["back"] + times["there"])
            for kind in ["all"] + ["queues"] * (times["back"] >= 1):
                checked[kind] += 1
                right[kind] += program and queue
            if args.show and not (program and queue):
                print(f"{name}/{folder.name:24}", " ".join(f"{key} {value:.2f}" for key, value in times.items()))
    if args.show:
        print(*(f"too much: {name}, exchange {exchange}" for name, exchange in wrong), sep="\n")
    figures = {
        "varying_precision": totals["hit"] / max(1, totals["hit"] + totals["false"]),
        "varying_recall": totals["hit"] / max(1, totals["hit"] + totals["missed"]),
        "too_much": len(wrong),
        "afar_asked": checked["all"],
        "afar_right": right["all"],
        "afar_queues_asked": checked["queues"],
        "afar_queues_right": right["queues"],
    }
    print(*(f"{name} {value:.4g}" for name, value in figures.items()), sep="\n")
    if args.json:
        args.json.write_text(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
