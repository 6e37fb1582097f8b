"""Score with each limit halved and doubled, and write the changes into the table of docs/thresholds.md.

    sensitivity.py CAPTURES TOOLS [--only NAME,...] [--factors 0.5,2] [--sets lab4,real3] [--most N]
                   [--known FILE] [--write docs/thresholds.md]

Needs a core that was built with the feature `scaled-limits`, which multiplies limits at run time. CAPTURES holds lab,
lab3, lab4, real and real3; TOOLS the scorers score_lab.py and score_real.py, and cut_middle.py, which makes cut_real
and cut_real3. For each limit only the captures that read it are analysed again, and scored again only if a row of
`causes` changed. With --most, a change of more than N captures is counted and not scored. Each result is added to the
file --known at once, so that a run can be continued. Factors of 0.01 and 100 show whether a limit affects these
figures at all. Some limits affect only gains, grades by rule (calibration.py) or the decoys of tests/cases, which are
not run.
"""

import argparse
import hashlib
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

from latpcap import _core

ROOT = Path(__file__).resolve().parents[1]
LABS = ("lab", "lab3", "lab4")
REAL = ("real", "real3", "cut_real", "cut_real3")
HEAD = """# Thresholds

Written by `.ci/sensitivity.py`; the numbers are changed in `core/src/limits.rs`.

Every number that a verdict rests on (`core/src/limits.rs`), with its source and what the labelled
recordings say when it is halved and doubled: precision and recall of proven stalls (`lab`, `lab3`, `lab4`, all points
of capture together), precision, named recall and false blame of what the kernel held (`real`, `real3`, and the same
begun in the middle, `cut_`), in thousandths. `0` where all stay as they are, empty where it was not run.

Numbers of standards and kernels (the least retransmission timeout, TCP_DELACK_MIN), and what follows from them or from
these, stand in front of them in that file.

| limit | value | source | what it says | half | double |
| --- | --- | --- | --- | --- | --- |
"""


def scorer(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CAUSES = ("start", "end", "cause", "parent", "owner", "confidence", "to_frame")


def digest(path):
    """Return a hash of everything that the scorers read of a capture, and the indices of the limits that were read."""
    _core.limits_read()
    analysis = _core.Analysis()
    analysis.push(path.read_bytes())
    analysis.finish()
    state = hashlib.blake2b(digest_size=12)
    for name, columns in (("exchanges", ("start", "end")), ("causes", CAUSES)):
        table = pa.table(analysis.take(name))
        for chunk in table.select(columns).to_batches():
            for column in chunk.columns:
                for buffer in column.buffers():
                    state.update(b"-" if buffer is None else buffer)
                if pa.types.is_dictionary(column.type):
                    state.update("".join(map(str, column.dictionary.to_pylist())).encode())
    return state.hexdigest(), set(_core.limits_read())


def find_recordings(captures, tools, lab, scratch, sets):
    """Yield set, path and truth of each capture."""
    for name in filter(sets.__contains__, LABS):
        for truth_path in sorted((captures / name).glob("*/labels.jsonl")):
            labels, folder = [json.loads(line) for line in truth_path.read_text().splitlines()], truth_path.parent
            for point in ("client.pcap", "server.pcap", "half way"):
                path = folder / point
                if lab.uncounted(folder.name, point) or not labels:
                    continue
                if point == "half way":
                    path = scratch / f"{name}-{folder.name}.pcap"
                    if not path.exists() and not ((folder / "server.pcap").exists() and lab.half_way(folder, path)):
                        continue
                if path.exists():
                    yield name, path, (labels,)
    for name in filter(sets.__contains__, REAL):
        root = captures / name
        if name.startswith("cut_"):
            root = scratch / name
            if not root.exists():
                uncut = captures / name.removeprefix("cut_")
                subprocess.run([sys.executable, tools / "cut_middle.py", uncut, root], check=True, capture_output=True)
        for truth_path in sorted(root.glob("*/truth.json")):
            sides = json.loads(truth_path.read_text()).get("kernel_holds_in_strace_run_frame_ms") or {}
            for side, facts_of_side in sides.items():
                if (
                    side in ("client", "server")
                    and isinstance(facts_of_side, dict)
                    and facts_of_side.get("segments_matched")
                ):
                    path = truth_path.parent / (facts_of_side.get("capture") or f"strace-{side}.pcap")
                    if path.exists():
                        yield name, path, (facts_of_side.get("held_over_1ms") or [], side)


class Recording:
    """A capture and its score with the limits unchanged."""

    def __init__(self, kind, path, truth, lab, real):
        self.kind, self.path, self.truth = kind, path, truth
        self.score = real.one if kind in REAL else lambda path, labels: lab.score(Path(path), labels)[0]
        self.digest, self.read = digest(path)
        self.counts = self.scored()

    def scored(self):
        return Counter(self.score(str(self.path), *self.truth))

    def changed(self):
        return digest(self.path)[0] != self.digest


def scores(sums):
    """Return the figures of the table."""
    shares = {}
    for name, counts in sums.items():
        if name in LABS:
            shares[f"{name} precision"] = counts["hit"] / ((counts["hit"] + counts["false"]) or 1)
            shares[f"{name} recall"] = counts["hit"] / ((counts["hit"] + counts["missed"]) or 1)
        else:
            shares[f"{name} precision"] = counts["confirmed_ms"] / (counts["proven_ms"] or 1)
            shares[f"{name} named"] = counts["held_named_ms"] / (counts["held_ms"] or 1)
            shares[f"{name} blame"] = counts["held_blamed_ms"] / (counts["held_ms"] or 1)
    return shares


def with_factor(all_recordings, limit_index, factor, max_recordings):
    """Return the sums of each set with one limit scaled, and the number of captures that change."""
    sums = {}
    for recording in all_recordings:
        sums.setdefault(recording.kind, Counter()).update(recording.counts)
    _core.scale_limit(limit_index, factor)
    changed = 0
    for recording in all_recordings:
        if limit_index in recording.read and recording.changed():
            changed += 1
            if max_recordings and changed > max_recordings:
                break
            sums[recording.kind].subtract(recording.counts)
            sums[recording.kind].update(recording.scored())
    _core.scale_limit(limit_index, 1.0)
    return sums, changed


def changes_of(base, now):
    """Return the changes in thousandths as text; "0" for none."""
    parts = []
    for name, value in now.items():
        change = round(1000 * (value - base[name]), 1)
        if change:
            parts.append(f"{name} {change:+g}")
    return ", ".join(parts) or "0"


def table(limits, results):
    lines = []
    for name, value, unit, source, says in limits:
        number = f"{value:,.10g}" if unit != "ns" else f"{value / 1e6:,.10g} ms"
        half, double = (results.get(f"{name}={factor}", "") for factor in ("0.5", "2"))
        lines.append(
            f"| `{name}` | {number}{'' if unit == 'ns' else ' ' + unit} | {source} | {says} | {half} | {double} |\n"
        )
    return HEAD + "".join(lines)


def results_on_page(page):
    """Return the results on the page by limit and factor."""
    results = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            name, *_, half, double = (cell.strip(" |`") for cell in line.split(" | "))
            results |= {f"{name}={factor}": result for factor, result in (("0.5", half), ("2", double)) if result}
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("tools", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--factors", default="0.5,2")
    parser.add_argument("--sets", default=",".join(LABS + REAL))
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--known", type=Path, default=Path("sensitivity.json"))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--scratch", type=Path, default=Path("sensitivity-scratch"))
    args = parser.parse_args()
    if not hasattr(_core, "scale_limit"):
        raise SystemExit("this core was built without scaled-limits")
    args.scratch.mkdir(exist_ok=True)
    lab, real = scorer(args.tools / "score_lab.py"), scorer(args.tools / "score_real.py")
    described = find_recordings(args.captures, args.tools, lab, args.scratch, args.sets.split(","))
    all_recordings = [Recording(*fields, lab, real) for fields in described]
    limits = _core.thresholds()
    only = set(filter(None, args.only.split(",")))
    results = json.loads(args.known.read_text()) if args.known.exists() else {}
    base = scores(with_factor(all_recordings, 0, 1.0, 1)[0])
    print("as it is:", ", ".join(f"{name} {value:.4f}" for name, value in base.items()), flush=True)
    for limit_index, (name, *_) in enumerate(limits):
        for factor in args.factors.split(","):
            key = f"{name}={factor}"
            if key in results or (only and name not in only):
                continue
            sums, changed = with_factor(all_recordings, limit_index, float(factor), args.most)
            over = args.most and changed > args.most
            results[key] = "rows of many captures" if over else changes_of(base, scores(sums))
            print(f"{key:28} {changed:4} {results[key]}", flush=True)
            args.known.write_text(json.dumps(results, indent=1))
    if args.write:
        args.write.write_text(table(limits, results))


if __name__ == "__main__":
    main()
