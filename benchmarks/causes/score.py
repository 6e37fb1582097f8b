#!/usr/bin/env python3
"""Score the answers of tools to one question: why were the requests of this capture slow?

    score.py ANSWERS.json ... [--labels LABELS.json] [--show]      prints a row for each tool
    score.py --labels-of LAB                                       labels of a folder of lab recordings, as JSON

ANSWERS.json maps a capture's path to {"cause": WORD or null, "sure": true or false}; README.md lists the words. Null
and a missing capture are "unknown", which is neither right nor wrong.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CAUSES = {
    "stall", "server", "client", "loss", "line", "window", "path", "lookup", "refused", "unanswered", "event", "nobody",
}  # fmt: skip
FAMILIES = {
    "nagle": "stall", "delayed_ack": "stall", "cork": "stall", "server_think": "server", "client_think": "client",
    "rto": "loss", "tlp": "loss", "fast_retransmit": "loss", "syn_rto": "loss", "queueing": "line", "bandwidth": "line",
    "receive_window": "window", "zero_window": "window", "network": "path",
}  # fmt: skip
"""Causes in the truth of the labs, and the words of this benchmark."""
Labels = list[dict[str, Any]]


def score(labels: Labels, answers: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Count the answers that are right, wrong, wrong and sure, and unknown."""
    counts = {"right": 0, "wrong": 0, "wrong and sure": 0, "unknown": 0}
    for label in labels:
        kind = judged(label, answers.get(label["capture"]))
        counts["wrong" if kind == "wrong and sure" else kind] += 1
        counts["wrong and sure"] += kind == "wrong and sure"
    return counts


def judged(label: dict[str, Any], answer: dict[str, Any] | None) -> str:
    """Judge one answer. Raise ValueError for a word that is not in `CAUSES`."""
    cause = None if answer is None else answer["cause"]
    if cause is None or answer is None:
        return "unknown"
    if cause not in CAUSES:
        raise ValueError(f"{label['capture']}: {cause!r} is not one of {', '.join(sorted(CAUSES))}")
    if cause in label["causes"]:
        return "right"
    return "wrong and sure" if answer["sure"] else "wrong"


def table(labels: Labels, tools: dict[str, dict[str, Any]]) -> str:
    """Return the results as a Markdown table."""
    rows = ["| tool | right | wrong | of these sure | unknown |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, answers in tools.items():
        counts = score(labels, answers)
        rows.append(f"| {name} | " + " | ".join(str(number) for number in counts.values()) + " |")
    return "\n".join(rows)


def labels_of(lab: Path) -> Labels:
    """Return the labels of a folder of lab recordings, each with captures and a `truth.json`."""
    labels: Labels = []
    for file in sorted(lab.glob("*/truth.json")):
        causes = json.loads(file.read_text(encoding="utf-8")).get("expected_causes") or {}
        families = sorted({FAMILIES[cause] for cause in causes if cause in FAMILIES}) or ["nobody", "path"]
        captures = [path for path in sorted(file.parent.iterdir()) if ".pcap" in path.name]
        label = {"origin": "recorded", "causes": families, "about": file.parent.name}
        labels += [{"capture": str(path), **label} for path in captures]
    return labels


def main() -> None:
    """Print the table, or the labels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="*", type=Path)
    parser.add_argument("--labels", type=Path, default=HERE / "labels.json")
    parser.add_argument("--labels-of", type=Path)
    parser.add_argument("--show", action="store_true", help="each answer that is not right")
    given = parser.parse_args()
    if given.labels_of is not None:
        print(json.dumps(labels_of(given.labels_of), indent=1))
        return
    labels: Labels = json.loads(given.labels.read_text(encoding="utf-8"))
    tools = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in given.answers}
    print(table(labels, tools))
    for name, answers in tools.items() if given.show else ():
        for label in labels:
            if (kind := judged(label, answers.get(label["capture"]))) != "right":
                given_cause = answers.get(label["capture"], {}).get("cause")
                print(f"{name}: {kind}: {label['capture']}: {given_cause}, not {' or '.join(label['causes'])}")


if __name__ == "__main__":
    main()
