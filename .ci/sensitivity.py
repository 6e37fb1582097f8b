"""What does each limit decide? Scores with each limit halved and doubled, as the table of docs/thresholds.md.

    sensitivity.py CAPTURES TOOLS [--only NAME,...] [--known FILE] [--write docs/thresholds.md]

Needs a core that was built with the feature `limits-from-env`: it multiplies a limit by what the environment
names (LATPCAP_LIMITS="NAME=0.5"). CAPTURES holds lab, lab3 and real; TOOLS the scorers score_lab.py and
score_real.py. A capture whose causes stay as they are is not scored again. Results are added to the file
--known as they come, so that a run can be continued. Where no score moves for half and double, and the source
is "chosen", nothing speaks for the limit.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# Thresholds

Written by `.ci/sensitivity.py`; the numbers are changed in `core/src/limits.rs`.

Every number that a verdict rests on (`core/src/limits.rs`), with its source and what the labelled
recordings say when it is halved and doubled: precision and recall of proven stalls (`lab`, `lab3`, all points of
capture together), precision, named recall and false blame of what the kernel held (`real`), in thousandths. `0`
where all stay as they are, empty where it was not run.

| limit | value | source | what it says | half | double |
| --- | --- | --- | --- | --- | --- |
"""


def scorer(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(capture):
    """Whatever the scorers read of verdicts."""
    causes = capture.arrow("causes").select(["start", "end", "cause", "parent", "owner", "confidence", "to_frame"])
    state = hashlib.blake2b(digest_size=12)
    for column in causes.combine_chunks().columns:
        for chunk in column.chunks:
            plain = chunk.dictionary_decode() if hasattr(chunk, "dictionary_decode") else chunk
            for buffer in plain.buffers():
                state.update(b"-" if buffer is None else buffer)
    return state.hexdigest()


def recordings(captures, lab, scratch):
    """Name, path and how to score it, of each capture."""
    for name in ("lab", "lab3"):
        for told in sorted((captures / name).glob("*/labels.jsonl")):
            labels, folder = [json.loads(line) for line in told.read_text().splitlines()], told.parent
            for point in ("client.pcap", "server.pcap", "half way"):
                path = folder / point
                if lab.uncounted(folder.name, point) or not labels:
                    continue
                if point == "half way":
                    path = scratch / f"{name}-{folder.name}.pcap"
                    if not path.exists() and not ((folder / "server.pcap").exists() and lab.half_way(folder, path)):
                        continue
                if path.exists():
                    yield name, path, labels
    for told in sorted((captures / "real").glob("*/truth.json")):
        for side, held in (json.loads(told.read_text()).get("kernel_holds_in_strace_run_frame_ms") or {}).items():
            if side in ("client", "server") and isinstance(held, dict) and held.get("segments_matched"):
                path = told.parent / (held.get("capture") or f"strace-{side}.pcap")
                if path.exists():
                    yield "real", path, (held.get("held_over_1ms") or [], side)


def figures(captures, tools, scratch, before):
    """Counts of each capture: what is in `before` with the same digest is taken from there."""
    import latpcap

    lab, real = scorer(tools / "score_lab.py"), scorer(tools / "score_real.py")
    found = {}
    for kind, path, truth in recordings(captures, lab, scratch):
        key = f"{kind}:{path}"
        mine = digest(latpcap.read(path))
        if (old := before.get(key)) and old["digest"] == mine:
            found[key] = old
            continue
        counts = real.one(str(path), *truth) if kind == "real" else lab.score(path, truth)[0]
        found[key] = {"digest": mine, "kind": kind, "counts": dict(counts)}
    return found


def scores(found):
    """The figures that stand in the table."""
    sums = {"lab": Counter(), "lab3": Counter(), "real": Counter()}
    for one in found.values():
        sums[one["kind"]].update(one["counts"])
    told = {}
    for name in ("lab", "lab3"):
        c = sums[name]
        told[f"{name} precision"] = c["hit"] / ((c["hit"] + c["false"]) or 1)
        told[f"{name} recall"] = c["hit"] / ((c["hit"] + c["missed"]) or 1)
    c = sums["real"]
    told["real precision"] = c["confirmed_ms"] / (c["proven_ms"] or 1)
    told["real named"] = c["held_named_ms"] / (c["held_ms"] or 1)
    told["real blame"] = c["held_blamed_ms"] / (c["held_ms"] or 1)
    return told


def once(args, factors, before):
    """The figures of a process of its own, as limits are read once."""
    environment = os.environ | {"LATPCAP_LIMITS": factors}
    call = [sys.executable, __file__, str(args.captures), str(args.tools), "--figures", "--scratch", str(args.scratch)]
    done = subprocess.run(call, env=environment, input=json.dumps(before), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def with_factors(factors):
    """The limits of a process of its own with these factors."""
    call = [sys.executable, "-c", "from latpcap import _core; print(_core.thresholds())"]
    return subprocess.run(call, env=os.environ | {"LATPCAP_LIMITS": factors}, capture_output=True, check=True).stdout


def moved(base, told):
    """What changed, in thousandths."""
    parts = []
    for name, value in told.items():
        change = round(1000 * (value - base[name]), 1)
        if change:
            parts.append(f"{name} {change:+g}")
    return ", ".join(parts) or "0"


def table(limits, known):
    lines = []
    for name, value, unit, source, says in limits:
        number = f"{value:,.10g}" if unit != "ns" else f"{value / 1e6:,.10g} ms"
        half, double = (known.get(f"{name}={factor}", "") for factor in ("0.5", "2"))
        lines.append(
            f"| `{name}` | {number}{'' if unit == 'ns' else ' ' + unit} | {source} | {says} | {half} | {double} |\n"
        )
    return HEAD + "".join(lines)


def known_of(page):
    """What the page says already of each limit and factor."""
    known = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            name, *_, half, double = (cell.strip(" |`") for cell in line.split(" | "))
            known |= {f"{name}={factor}": told for factor, told in (("0.5", half), ("2", double)) if told}
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("tools", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--known", type=Path, default=Path("sensitivity.json"))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--scratch", type=Path, default=Path("sensitivity-half-way"))
    parser.add_argument("--figures", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.scratch.mkdir(exist_ok=True)
    if args.figures:
        json.dump(figures(args.captures, args.tools, args.scratch, json.load(sys.stdin)), sys.stdout)
        return
    from latpcap import _core

    limits = _core.thresholds()
    if with_factors("ENOUGH=2") == with_factors(""):
        raise SystemExit("this core was built without limits-from-env")
    only = set(filter(None, args.only.split(",")))
    known = json.loads(args.known.read_text()) if args.known.exists() else {}
    before = once(args, "", {})
    base = scores(before)
    print("as it is:", ", ".join(f"{name} {value:.4f}" for name, value in base.items()), flush=True)
    for name, *_ in limits:
        for factor in ("0.5", "2"):
            key = f"{name}={factor}"
            if key in known or (only and name not in only):
                continue
            known[key] = moved(base, scores(once(args, key, before)))
            print(f"{key:28} {known[key]}", flush=True)
            args.known.write_text(json.dumps(known, indent=1))
    if args.write:
        args.write.write_text(table(limits, known))


if __name__ == "__main__":
    main()
