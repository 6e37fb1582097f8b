#!/usr/bin/env python3
"""Run the installed tools on all labelled captures, and print the table of results.

    run.py [TOOL ...] [--labels LABELS.json] [--out FOLDER] [--write PAGE.md]

Tools: latpcap, transum (tshark), tcptrace, netverdict. Tools that are not installed are named and left out. FOLDER gets
each tool's answers as JSON for score.py. --write puts the table between the marks of a page, and keeps the rows of
tools that are not installed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import score

ROOT = Path(__file__).resolve().parents[2]
SLOW_S = 0.02
"""A request is slow if it takes this much longer than its path: latpcap's threshold, used for all tools."""
Answer = dict[str, Any]
UNKNOWN: Answer = {"cause": None, "sure": False}


def latpcap(capture: Path) -> Answer:
    """Return the cause of the headline, else the family with most of the time of the slow requests."""
    import latpcap as lp

    answer = lp.read(capture).why().to_dict()
    sure = (answer.get("confidence") or 0.0) >= 0.9
    lead = answer["lead"]
    word = lead["cause"] if lead is not None else answer["verdict"]
    if lead is not None and lead["kind"] == "transfer":
        return {"cause": {"receiver_window": "window", "congestion": "loss", "line": "line"}.get(word), "sure": sure}
    for phrase, cause in _WORDS.items():
        if phrase in word:
            return {"cause": cause, "sure": sure}
    if answer.get("capture_kind") in ("refused", "unanswered"):
        return {"cause": answer["capture_kind"], "sure": sure}
    slow, families = answer.get("slow"), answer.get("families")
    if slow is not None and slow["how"] == "none":
        return {"cause": "nobody", "sure": sure}
    if not families:
        return UNKNOWN
    cause = {"windows": "window"}.get(families[0]["family"], families[0]["family"])
    return {"cause": cause if cause in score.CAUSES else None, "sure": sure}


_WORDS = {
    "dns": "lookup", "refused": "refused", "unanswered": "unanswered", "syn_rto": "loss", "zero_window": "window",
    "receive_window": "window", "never": "unanswered",
}  # fmt: skip
"""Parts of latpcap's words for findings that are not about the time of requests, and their causes."""


def transum(capture: Path) -> Answer:
    """Return the largest of TRANSUM's three times, summed over the requests. It has no other causes.

    TRANSUM needs the ports of servers; the ports of clients are above this range.
    """
    fields = [word for name in ("art", "reqspread", "st", "rspspread") for word in ("-e", f"transum.{name}")]
    options = ["--enable-protocol", "transum", "-o", "transum.tsumenabled:TRUE", "-o", "transum.tcp_port_ranges:1-9999"]
    text = _run("tshark", "-r", str(capture), "-2", *options, "-Y", "transum.art", "-T", "fields", *fields)
    rows = [[float(word or 0) for word in line.split("\t")] for line in text.splitlines() if line.count("\t") == 3]
    if not rows:
        return UNKNOWN
    totals = [sum(row[at] for row in rows) for at in range(4)]
    if max(row[0] for row in rows) < SLOW_S:
        return {"cause": "nobody", "sure": True}
    return {"cause": ("client", "server", "line")[totals[1:].index(max(totals[1:]))], "sure": True}


def tcptrace(capture: Path) -> Answer:
    """Return a loss or a closed window. tcptrace has no causes in programs."""
    if capture.suffix == ".pcapng" or capture.name.endswith(".pcapng.gz"):
        return UNKNOWN
    text = _run("tcptrace", "-l", "-n", str(capture))
    counters = ("rexmt data pkts", "zero win adv")
    count = {counter: sum(map(int, re.findall(rf"{counter}: +(\d+)", text))) for counter in counters}
    if count["zero win adv"]:
        return {"cause": "window", "sure": True}
    return {"cause": "loss", "sure": True} if count["rexmt data pkts"] else UNKNOWN


def netverdict(capture: Path) -> Answer:
    """Return the verdict of the conversation whose rule has the highest priority."""
    with tempfile.TemporaryDirectory() as folder:
        path = capture
        if capture.suffix == ".gz":
            path = Path(folder) / capture.stem
            path.write_bytes(subprocess.run(["gzip", "-dc", str(capture)], capture_output=True, check=True).stdout)
        report = json.loads(_run("netverdict", "analyze", str(path), "--json", "--lang", "en") or "{}")
    matches = [
        match for section in ("flows", "dns") for flow in report.get(section, ()) for match in flow.get("matches", ())
    ]
    if not matches:
        return UNKNOWN
    best = max(matches, key=lambda match: match["priority"])
    for phrase, cause in _RULES.items():
        if phrase in best["rule"]:
            return {"cause": cause, "sure": best["confidence"] == "haute"}
    return UNKNOWN


_RULES = {
    "dns-clean": "nobody", "dns-": "lookup", "syn-no-answer": "unanswered", "rst-to-syn": "refused",
    "reject-icmp": "refused", "zero-window": "window", "slow-app": "server", "retrans": "loss", "perte": "loss",
    "rtt-degraded": "line", "clean": "nobody",
}  # fmt: skip
"""Parts of netverdict's rule names, and their causes."""

TOOLS: dict[str, tuple[str | None, Callable[[Path], Answer]]] = {
    "latpcap": (None, latpcap), "transum": ("tshark", transum), "tcptrace": ("tcptrace", tcptrace),
    "netverdict": ("netverdict", netverdict),
}  # fmt: skip


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except subprocess.TimeoutExpired:
        return ""


def main() -> None:
    """Run the tools and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", default=[*TOOLS])
    parser.add_argument("--labels", type=Path, default=score.HERE / "labels.json")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    labels: score.Labels = json.loads(given.labels.read_text(encoding="utf-8"))
    answers: dict[str, dict[str, Answer]] = {}
    for name in given.tools:
        program, ask = TOOLS[name]
        if program is not None and shutil.which(program) is None:
            print(f"{name} is not installed: left out")
            continue
        answers[name] = {label["capture"]: ask(ROOT / label["capture"]) for label in labels}
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / f"{name}.json").write_text(json.dumps(answers[name], indent=1), encoding="utf-8")
    table = score.table(labels, answers)
    print(table)
    if given.write is not None:
        text = given.write.read_text(encoding="utf-8")
        begin, end = "<!-- results -->\n", "\n<!-- end -->"
        before, after = text.partition(begin)[0], text.partition(end)[2]
        old_rows = text.partition(begin)[2].partition(end)[0].splitlines()
        kept = [row for name in TOOLS if name not in answers for row in old_rows if row.startswith(f"| {name} |")]
        table = "\n".join([table, *kept])
        given.write.write_text(f"{before}{begin}{table}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
