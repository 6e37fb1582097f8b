"""Measure how often each rule is right at each grade, in milliseconds of rows in `causes`.

    calibration.py CAPTURES [--show N] [--strict] [--json FILE] [--write core/src/judge/worth.rs]
                   [--page docs/verdicts.md]

Truth, by situation:
  CAPTURES/real, real3       strace logs show which segments the kernel held back, and for how long. A row of a kernel
                             cause (nagle, delayed_ack, cork, cwnd, a window, bandwidth) is right while a segment was
                             held, a row of a program's cause while none was, with a tolerance of 1 ms at either
                             end. A wait for an ACK elsewhere is right if the situation has a second server
  CAPTURES/lab, lab3, lab4   the programs' logs have per exchange the milliseconds of Nagle waits and of each program's
                             own time (for the server including waits for another server). Rows beyond that are
                             wrong, with a tolerance of 1 ms and 2 %. The server's log begins with its first read,
                             so its time is not checked in the first exchange of a connection
Rows without a label (the path, repairs, programs between two exchanges) are not counted.

Half of the situations set the shares, the other half check them; both are printed. --write puts the first half's
shares into the core's `worth`, each inside its grade's bounds (proven from 0.9 on, probable above 0.5); what has less
than 200 ms in three situations keeps its grade's default. --page writes the checking half's shares as the table of
docs/verdicts.md. Exit code 1 with --strict if, over both halves, a proven rule is right for less than 0.99 or a
probable one for less than 0.75 of its time, where there are 1,000 ms of it in three situations. --json writes the
checking half's share by grade, each such rule's over both halves, and how many are worth less than their grade.
"""

import argparse
import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import latpcap
from latpcap import vocabulary

KERNEL = {"nagle", "delayed_ack", "cork", "cwnd", "receive_window", "zero_window", "bandwidth"}
STALL = {"nagle", "delayed_ack"}
PROGRAM = {"server_think", "client_think"}
TOLERANCE_NS = 1_000_000
"""Each end of a hold is extended by this for the kernel's causes and shortened for the program's."""
MIN_ROW_MS = 1.0
"""Minimum duration of a row; shorter ones are noise of a busy host."""
GRADES = list(vocabulary.GRADES)
BOUNDS = {"proven": (0.9, 0.99), "probable": (0.51, 0.89), "suspected": (0.1, 0.5), "unknown": (0.0, 0.0)}
DEFAULT = {"proven": 0.9, "probable": 0.7, "suspected": 0.5, "unknown": 0.0}
MIN_SHARE = {"proven": 0.99, "probable": 0.75}
HEAD = """| rule | grade | labelled time | right | right in the half that set nothing |
| --- | --- | ---: | ---: | ---: |
"""
MIN_LABELLED_MS = 200
"""Labelled time from which a rule's share of right time is taken for its confidence."""
MIN_SITUATIONS = 3
"""Situations from which it is taken."""

Row = dict[str, Any]
Judged = Iterator[tuple[str, str, float, float]]
"""Rule, grade, right ms and wrong ms of rows."""
Figures = Counter[str]
"""Right and wrong ms, and how many rows each situation has."""
Halves = dict[Any, tuple[Figures, Figures]]
"""By rule and grade, or by grade: the half that fills `worth`, and the half that checks it."""


def rows(capture: latpcap.Capture, table: str) -> list[Row]:
    """Return the rows of a table, with times in nanoseconds."""
    read = capture.arrow(table)
    for name in ("time", "start", "end"):
        if name in read.schema.names:
            index = read.schema.get_field_index(name)
            read = read.set_column(index, name, read[name].cast("int64"))
    return read.to_pylist()


def held_ms(row: Row, holds: list[tuple[int, int]], tolerance: int) -> float:
    """Return the milliseconds of a row that overlap these (start, end) holds, each extended by `tolerance` ns."""
    shared, instant = 0, row["start"]
    for start, end in sorted(holds):
        start, end = max(start - tolerance, instant), min(end + tolerance, row["end"])
        if end > start:
            shared, instant = shared + end - start, end
    return shared / 1e6


def by_strace(path: Path, side: str, listed: list[tuple[str, float]], others: bool) -> Judged:
    """Yield rule, grade, right ms and wrong ms of each row that ends with a segment of this side."""
    capture = latpcap.read(path)
    of_side = (event for event in rows(capture, "events") if event["from_client"] == (side == "client"))
    sent = {event["frame"]: event for event in of_side if event["len"]}
    holds = defaultdict(list)
    for frame, ms in listed:
        if (event := sent.get(int(frame))) is not None:
            holds[event["stream"]].append((event["time"] - int(ms * 1e6), event["time"]))
    for row in rows(capture, "causes"):
        event = sent.get(row["to_frame"])
        if event is None or row["duration_ms"] < MIN_ROW_MS or row["cause"] not in KERNEL | PROGRAM:
            continue
        if row["rule"] == "elsewhere":  # the other connection is not in the capture
            ms = row["duration_ms"] if others else 0
            yield row["rule"], row["grade"], ms, row["duration_ms"] - ms
            continue
        ms = held_ms(row, holds[event["stream"]], TOLERANCE_NS if row["cause"] in KERNEL else -TOLERANCE_NS)
        ms = ms if row["cause"] in KERNEL else row["duration_ms"] - min(ms, row["duration_ms"])
        yield row["rule"], row["grade"], ms, row["duration_ms"] - ms


def kind_of(row: Row) -> str:
    """Return the label that a row is compared with. Waiting for another server counts as the server's own time."""
    if row["rule"] == "backend":
        return "server_think"
    return "stall" if row["cause"] in STALL else row["cause"]


def by_log(path: Path, labels: list[Row]) -> Judged:
    """Yield rule, grade, right ms and wrong ms of the rows of exchanges that the programs logged."""
    capture = latpcap.read(path)
    ports = {stream["stream"]: stream["client_port"] for stream in rows(capture, "streams")}
    exchanges = defaultdict(list)
    for exchange in rows(capture, "exchanges"):
        if exchange["complete"]:
            exchanges[ports[exchange["stream"]]].append(exchange)
    causes = defaultdict(list)
    for row in rows(capture, "causes"):
        if row["exchange"] is not None:
            causes[row["exchange"]].append(row)
    labels_by_port = defaultdict(list)
    for label in labels:
        labels_by_port[label["lport"]].append(label)
    for port, labels in labels_by_port.items():
        exchanges_of_port = sorted(exchanges[port], key=lambda exchange: exchange["start"])
        if len(exchanges_of_port) != len(labels):
            continue
        for n, (label, exchange) in enumerate(
            zip(sorted(labels, key=lambda label: label["t_start"]), exchanges_of_port, strict=True)
        ):
            if label.get("excluded") or abs(label.get("unexplained_ms") or 0) > 5 or label.get("latency_ms") is None:
                continue
            judged = [cause for cause in causes[exchange["exchange"]] if cause["duration_ms"] >= MIN_ROW_MS]
            true = {
                "stall": sum(wait["wait_ms"] for wait in label["nagle_waits"]),
                "server_think": label.get("server_ms") or 0,
                "client_think": label.get("client_pause_ms") or 0,
            }
            if n == 0:
                del true["server_think"]
            for kind, ms in true.items():
                left = ms * 1.02 + 1
                of_kind = [cause for cause in judged if kind_of(cause) == kind]
                for row in sorted(of_kind, key=lambda cause: GRADES.index(cause["grade"])):
                    right = min(left, row["duration_ms"])
                    left -= right
                    yield row["rule"], row["grade"], right, row["duration_ms"] - right


def situations(captures: Path) -> Iterator[tuple[str, Judged]]:
    """Yield the name of each situation and its rows, as `by_strace` or `by_log` does."""
    for truth in sorted([*captures.glob("real/*/truth.json"), *captures.glob("real3/*/truth.json")]):
        folder, facts = truth.parent, json.loads(truth.read_text())
        sides = facts.get("kernel_holds_in_strace_run_frame_ms") or {}
        others = isinstance(facts.get("server"), list) and len(facts["server"]) > 1
        for side, listed in sides.items():
            if side in ("client", "server") and isinstance(listed, dict) and listed.get("segments_matched"):
                path = folder / (listed.get("capture") or f"strace-{side}.pcap")
                if path.exists():
                    yield (
                        f"{folder.parent.name}/{folder.name}",
                        by_strace(path, side, listed.get("held_over_1ms") or [], others),
                    )
    for lab in ("lab", "lab3", "lab4"):
        for listed in sorted(captures.glob(f"{lab}/*/labels.jsonl")):
            labels = [json.loads(line) for line in listed.read_text().splitlines()]
            for point in ("client.pcap", "server.pcap"):
                if (listed.parent / point).exists():
                    yield f"{lab}/{listed.parent.name}", by_log(listed.parent / point, labels)


def share(figures: Figures) -> float | None:
    """Return the share that is right, or None without labelled time."""
    total_ms = figures["right"] + figures["wrong"]
    return figures["right"] / total_ms if total_ms else None


def line_of(rule: str, grade: str, fills: Figures, checks: Figures) -> str:
    """Return a line of the page's table."""
    seconds = (fills["right"] + fills["wrong"]) / 1000
    checked_share = share(checks)
    half = "" if checked_share is None else f"{checked_share:.3f}"
    return f"| {rule} | {grade} | {seconds:.1f} s | {share(fills) or 0:.3f} | {half} |\n"


def arms(worth: dict[str, dict[str, float]]) -> str:
    """Return the match arms of the core's `worth`: rules with equal shares in one arm, without those of the default."""
    alike = {}
    for rule in vocabulary.RULES:
        alike.setdefault(tuple(worth[rule][grade] for grade in GRADES), []).append(rule)
    alike.pop(tuple(DEFAULT[grade] for grade in GRADES), None)
    return "".join(
        "        " + " | ".join(f"Rule::{rule.title().replace('_', '')}" for rule in rules)
        + " => [" + ", ".join(f"{share:.2f}" for share in shares) + "],\n"
        for shares, rules in alike.items()
    )  # fmt: skip


def sums_of(captures: Path) -> tuple[Halves, Counter[tuple[str, str, str]]]:
    """Return right and wrong ms, and the ms that are wrong by rule, grade and situation."""
    halves: Halves = defaultdict(lambda: (Counter(), Counter()))
    cost: Counter[tuple[str, str, str]] = Counter()
    for name, judged_rows in situations(captures):
        half = zlib.crc32(name.encode()) & 1
        for rule, grade, right, wrong in judged_rows:
            halves[rule, grade][half].update({"right": right, "wrong": wrong, name: 1})
            cost[rule, grade, name] += wrong
    in_order = sorted(halves.items(), key=lambda item: (GRADES.index(item[0][1]), item[0][0]))
    return dict(in_order), cost


def is_enough(figures: Figures, min_ms: float) -> bool:
    """Whether so much time in enough situations is labelled; each situation is a key beside "right" and "wrong"."""
    return figures["right"] + figures["wrong"] >= min_ms and len(figures) - 2 >= MIN_SITUATIONS


def set_worth(worth: dict[str, dict[str, float]], halves: Halves) -> None:
    """Set the share of the first half, inside the grade's bounds, where enough is labelled."""
    for (rule, grade), (fills, _) in halves.items():
        measured = share(fills)
        if measured is not None and is_enough(fills, MIN_LABELLED_MS):
            low, high = BOUNDS[grade]
            worth[rule][grade] = min(max(measured, low), high)


def print_figures(halves: Halves) -> Halves:
    """Print both halves of each rule and grade, then of each grade, which are returned."""
    heads = "".join(f"{half:>12} right ms {'wrong':>9} {'share':>6}" for half in ("fills:", "checks:"))
    print(f"{'rule':24} {'grade':10}{heads}")
    sums: Halves = defaultdict(lambda: (Counter(), Counter()))
    for (rule, grade), both in halves.items():
        cells = ""
        for half, figures in enumerate(both):
            half_share = share(figures)
            shown = "-" if half_share is None else f"{half_share:.3f}"
            cells += f" {figures['right']:20.0f} {figures['wrong']:9.0f} {shown:>6}"
            sums[grade][half].update({key: figures[key] for key in ("right", "wrong")})
        print(f"{rule:24} {grade:10}{cells}")
    for grade, both in sums.items():
        cells = "".join(f" {half['right']:20.0f} {half['wrong']:9.0f} {share(half) or 0:6.3f}" for half in both)
        print(f"{'all':24} {grade:10}{cells}")
    return sums


def print_costliest(cost: Counter[tuple[str, str, str]], count: int) -> None:
    """Print the situations in which each rule and grade with a bound is wrong for longest."""
    printed: Counter[tuple[str, str]] = Counter()
    for (rule, grade, name), wrong in cost.most_common():
        printed[rule, grade] += 1
        if wrong >= 1 and printed[rule, grade] <= count and grade in MIN_SHARE:
            print(f"  {wrong:8.0f} ms {grade} and wrong by {rule}: {name}")


def write_worth(path: Path, worth: dict[str, dict[str, float]]) -> str:
    """Write the shares into the core's `worth`; return what is wrong with the file, or ""."""
    text, replaced = re.subn(
        r"(match rule \{\n).*?(?=        _ =>)", lambda match: match[1] + arms(worth), path.read_text(), flags=re.S
    )
    if replaced != 1:
        return f"{path}: no match over rules to write to"
    path.write_text(text)  # `cargo fmt` breaks its lines
    return ""


def main() -> int | str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--show", type=int, default=0, help="situations that cost most")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    halves, cost = sums_of(args.captures)
    worth = {rule: dict(DEFAULT) for rule in vocabulary.RULES}
    set_worth(worth, halves)
    by_grade = print_figures(halves)
    judged = {key: fills + checks for key, (fills, checks) in halves.items() if is_enough(fills + checks, 1000)}
    by_rule = {f"{rule}_{grade}": share(figures) for (rule, grade), figures in judged.items()}
    short = [f"{rule} {grade}" for (rule, grade), f in judged.items() if (share(f) or 0) < MIN_SHARE.get(grade, 0)]
    if args.json:
        figures = {grade: share(checks) for grade, (_, checks) in by_grade.items()}
        args.json.write_text(json.dumps(figures | by_rule | {"rules_below_their_grade": len(short)}))
    print_costliest(cost, args.show)
    if args.page:
        lines = [line_of(*key, figures, halves[key][1]) for key, figures in judged.items()]
        lines += [line_of("all", grade, fills + checks, checks) for grade, (fills, checks) in by_grade.items()]
        page = args.page.read_text(encoding="utf-8")
        before, after = page.split(HEAD)
        args.page.write_text(before + HEAD + "".join(lines) + "\n" + after.split("\n\n", 1)[1], encoding="utf-8")
    if args.write and (problem := write_worth(args.write, worth)):
        return problem
    if short:
        print("worth less than their grade says:", ", ".join(short))
    return 1 if short and args.strict else 0


if __name__ == "__main__":
    sys.exit(main())
