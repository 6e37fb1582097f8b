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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import latpcap
from latpcap.vocabulary import STALL

POINTS = ("client.pcap", "server.pcap")
UNMATCHED = ("s8_c2s_only", "s8_s2c_only", "s8_midstream")
"""Recordings of one direction, or from the middle on."""
WORD = {"fast_retransmit": "fast", "tlp": "probe", "rto": "timer"}

Row = dict[str, Any]
"""A row of a table, of labels.jsonl or of link.jsonl."""


class Repair(NamedTuple):
    """The first retransmission after a drop, and what released it."""

    folder: str
    point: str
    frame: int
    wanted: str
    got: str | None


def in_ns(table: pa.Table, *columns: str) -> list[Row]:
    """Return the rows of a table, with these times in ns."""
    for column in columns:
        table = table.set_column(table.column_names.index(column), column, table[column].cast("int64"))
    rows: list[Row] = table.to_pylist()
    return rows


def drops_of(folder: Path) -> list[Row]:
    """Return the frames that the lab's link dropped, from link.jsonl."""
    log = folder / "link.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [drop for drop in map(json.loads, filter(str.strip, lines)) if drop["act"] in ("drop", "qdrop")]


def repairs(folder: Path) -> tuple[int, list[Repair]]:
    """Return how many repairs of dropped data are as expected, and a list of all of them."""
    drops = [drop for drop in drops_of(folder) if drop["kind"] == "data" and drop["len"]]
    checked: list[Repair] = []
    for side, point in (("c2s", "client.pcap"), ("s2c", "server.pcap")):
        dropped = [drop for drop in drops if drop["dir"] == side]
        if not dropped or not (folder / point).exists():
            continue
        segments = in_ns(latpcap.read(folder / point).arrow("events"), "time")
        for drop in dropped:
            lost = lost_segment(segments, drop)
            repair = lost and repair_of(segments, lost)
            if lost and repair:
                wanted, got = expected(segments, lost, repair, drop), WORD.get(repair["released_by"])
                checked.append(Repair(folder.name, point, repair["frame"], wanted, got))
    return sum(repair.wanted == repair.got for repair in checked), checked


def lost_segment(segments: list[Row], drop: Row) -> Row | None:
    """Return the segment that the link dropped: the last one of its sender in the 3 ms before, of its length if any."""
    port = int(drop["src"].rpartition(":")[2])
    sent = [
        segment
        for segment in segments
        if segment["sport"] == port and segment["len"] >= drop["len"] and 0 <= drop["t"] - segment["time"] < 3e6
    ]
    if port < 20_000:  # a server: which connection?
        sent = [segment for segment in sent if segment["dport"] == int(drop["dst"].rpartition(":")[2])]
    same_length = [segment for segment in sent if segment["len"] == drop["len"]]
    return (same_length or sent or [None])[-1]


def is_from(segment: Row, like: Row) -> bool:
    """Whether a segment has the connection and the sender of another one."""
    return bool(segment["stream"] == like["stream"] and segment["from_client"] == like["from_client"])


def repair_of(segments: list[Row], lost: Row) -> Row | None:
    """Return the first later segment that has the first byte of the lost one."""
    later = (
        segment
        for segment in segments
        if is_from(segment, lost) and segment["frame"] > lost["frame"] and segment["len"]
    )
    return next((segment for segment in later if segment["seq"] <= lost["seq"] < segment["seq"] + segment["len"]), None)


def expected(segments: list[Row], lost: Row, repair: Row, drop: Row) -> str:
    """Return what should have released the repair: "fast", "probe" or "timer"."""
    acks = [
        segment
        for segment in segments
        if segment["stream"] == lost["stream"]
        and segment["from_client"] != lost["from_client"]
        and lost["frame"] < segment["frame"] < repair["frame"]
    ]
    has_sack = any(block["right"] > lost["seq"] for ack in acks for block in (ack["sack"] or []))
    is_acked_just_now = any(repair["time"] - ack["time"] < 1e6 for ack in acks)
    if has_sack or sum(ack["duplicate_ack"] for ack in acks) >= 3 or is_acked_just_now:
        return "fast"
    is_sent_before = any(
        is_from(segment, lost) and segment["frame"] < lost["frame"] and segment["seq"] == lost["seq"]
        for segment in segments
        if segment["len"]
    )
    return "probe" if not is_sent_before and drop["try"] == 1 else "timer"


def matched(folder: Path, point: str) -> Iterator[tuple[Row, Row, Row | None, Row]]:
    """Yield each labelled exchange: label, row, the row before it on its stream, and the stream."""
    path, log = folder / point, folder / "labels.jsonl"
    if not path.exists() or not log.exists():
        return
    capture = latpcap.read(path)
    streams = {stream["stream"]: stream for stream in capture.arrow("streams").to_pylist()}
    by_port = defaultdict(list)
    for row in in_ns(capture.arrow("exchanges"), "start", "end"):
        by_port[streams[row["stream"]]["client_port"]].append(row)
    labels = defaultdict(list)
    for line in log.read_text().splitlines():
        label = json.loads(line)
        labels[label["lport"]].append(label)
    for port, wanted in labels.items():
        rows = sorted(by_port[port], key=lambda row: (row["start"], row["exchange"]))
        wanted.sort(key=lambda label: label["t_start"])
        if len(rows) == len(wanted):
            for label, row, before in zip(wanted, rows, [None, *rows[:-1]], strict=True):
                if label["link_actions"] or abs(label.get("unexplained_ms") or 0) <= 15:
                    yield label, row, before, streams[row["stream"]]


def spread(values: Iterable[float]) -> tuple[float, float, int]:
    """Return median, 95th percentile and number of the values."""
    values = sorted(values)
    return statistics.median(values), values[min(len(values) - 1, int(0.95 * len(values)))], len(values)


def contained(root: Path, folders: list[Path]) -> Iterator[tuple[str, Counter[str], int]]:
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
                has_both_ends = all((folder / f"{end}.pcap").exists() for end in ("client", "server"))
                if point == "half way" and not (has_both_ends and lab.half_way(folder, path)):
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


def unseen(folders: list[Path]) -> tuple[int, int]:
    """Return for how many connections the count of frames lost before the capture is exact, and how many were checked.

    The count comes from gaps in the IPv4 identifications, and is compared with link.jsonl. Checked are connections of
    recordings with drops that have a count or lost frames. Losses before the first or after the last number leave no
    gap.
    """
    exact = checked = 0
    for folder in folders:
        drops = drops_of(folder)
        for way, point, side in (("c2s", "server.pcap", "client"), ("s2c", "client.pcap", "server")):
            if not drops or not (folder / point).exists():
                continue
            for stream in latpcap.read(folder / point).arrow("streams").to_pylist():
                end, port = "src" if way == "c2s" else "dst", f":{stream['client_port']}"
                lost = [drop for drop in drops if drop["dir"] == way and drop[end].endswith(port)]
                got = stream[f"{side}_unseen_frames"]
                if (lost or got is not None) and not any(drop["kind"] == "syn" for drop in lost):
                    checked += 1
                    exact += got == len(lost)
    return exact, checked


STORIES = {
    "latency2": ("network", "network"),
    "latency3": ("client_think", "client"),
    "latency4": ("server_think", "server"),
}
"""Cause and owner of the finding with the most time."""
DECOYS = ("206_example_c", "teams", "inconsistent_printer", "echo-connections")
NAGLE_TOO = "rfc3030"


def public(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each public capture with a known cause, and what is wrong with its verdict, or ""."""
    names = (*STORIES, *DECOYS, NAGLE_TOO)
    captures = {}
    for path in root.rglob("*.pcap*"):
        name = next((word for word in names if word in path.name), None)
        if name and "oracle" not in path.parts:
            captures[name] = latpcap.read(path)
    for name in names:
        yield name, wrong_of(name, captures[name]) if name in captures else "not there"


def wrong_of(name: str, capture: latpcap.Capture) -> str:
    """Return what is wrong with the verdict on a public capture, or ""."""
    rows = capture.arrow("causes").to_pylist()
    findings = capture.arrow("findings").to_pylist()
    if name in STORIES:
        delays = [finding for finding in findings if finding["kind"] in ("latency", "setup")]
        first = max(delays, key=lambda finding: finding["total_ms"])
        cause_and_owner = first["cause"], first["owner"]
        return "" if cause_and_owner == STORIES[name] else f"{cause_and_owner} found"
    held_acks = [cause for cause in rows if cause["cause"] == "delayed_ack" and cause["parent"] == "nagle"]
    if name in DECOYS:
        proven = sum(cause["confidence"] >= 0.9 for cause in held_acks)
        stalls = [finding for finding in findings if finding["cause"] == STALL]
        named = [stall for stall in stalls if stall["grade"] == "proven" or not stall["finding"]]
        return f"accused in {proven} exchanges, {len(named)} findings" if proven or named else ""
    stalls = [cause for cause in held_acks if cause["duration_ms"] >= 15 and cause["confidence"] >= 0.9]
    named = [cause for cause in rows if cause["cause"] == "client_think" and 48 <= cause["duration_ms"] <= 54]
    pauses = sum(cause["gap"] is not None and cause["owner"] == "client" for cause in named)
    return "" if len(stalls) >= 24 and pauses >= 24 else f"{len(stalls)} of 24 stalls, {pauses} of 24 pauses"


class Bounds:
    """Prints figures with their bounds, and remembers the names of those on the wrong side."""

    def __init__(self) -> None:
        self.violated: list[str] = []

    def check(self, name: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
        """Print a figure with its bound."""
        if at_least is not None:
            is_good, sign, limit = value >= at_least, ">=", at_least
        else:
            assert at_most is not None
            is_good, sign, limit = value <= at_most, "<=", at_most
        print(f"{name:60} {value:10.4f} {sign} {limit:g}{'' if is_good else '   <- wrong side'}")
        if not is_good:
            self.violated.append(name)

    def check_errors(self, name: str, errors_ms: list[float], *, p50: float, p95: float | None = None) -> None:
        """Print the median of some errors, and their 95th percentile if it has a bound."""
        if not errors_ms:
            return
        median, high, count = spread(errors_ms)
        self.check(f"{name} error p50 of {count}", median, at_most=p50)
        if p95 is not None:
            self.check(f"{name} error p95 of {count}", high, at_most=p95)


def check_repairs(folders: list[Path], bounds: Bounds) -> None:
    """Check what released retransmissions, and the count of frames that were lost before the capture."""
    agree, checked = 0, []
    for folder in folders:
        if folder.name != "s4_duplicates":
            n_agree, checked_there = repairs(folder)
            agree, checked = agree + n_agree, checked + checked_there
    for repair in checked:
        if repair.wanted != repair.got:
            print(f"  {repair.folder}/{repair.point} frame {repair.frame}: {repair.wanted} wanted, {repair.got} found")
    bounds.check(f"repairs that agree, of {len(checked)}", agree / max(1, len(checked)), at_least=0.95)
    exact, n_checked = unseen(folders)
    bounds.check(f"frames lost before the capture, exact, of {n_checked}", exact / max(1, n_checked), at_least=0.9)


def think_error_ms(label: Row, row: Row, stream: Row) -> float | None:
    """Return the error of the server's own time; None where it is short, was interrupted, or is not known."""
    if label["t_req_read"] is None or row["ttfb_ms"] is None or row["service_ms"] is None:
        return None
    true_ms = (label["t_ans_first_write"] - label["t_req_read"]) / 1e6
    if true_ms < 4 or label["server_pause_ms"] > true_ms + 1:
        return None
    return abs(row["service_ms"] - stream["server_rtt_ms"] - true_ms)


def pause_error_ms(label: Row, row: Row, before: Row | None, stream: Row) -> float | None:
    """Return the error of the client's pause before a request; None where it is short or not known."""
    true_ms = label["idle_before_ms"]
    if true_ms is None or true_ms < 4 or before is None or before["end"] >= row["start"]:
        return None
    return abs((row["start"] - before["end"]) / 1e6 - stream["client_rtt_ms"] - true_ms)


def loss_error_ms(label: Row, row: Row) -> float | None:
    """Return the error of the latency; None unless all that happened is that parts of the response were dropped."""
    is_dropped = all(action["act"] == "drop" and action["dir"] == "s2c" for action in label["link_actions"])
    if not is_dropped or row["client_latency_ms"] is None or label["latency_ms"] is None:
        return None
    return abs(row["client_latency_ms"] - label["latency_ms"])


def check_times(folders: list[Path], point: str, bounds: Bounds) -> None:
    """Check the programs' own times, and the latencies with losses, at a point of capture."""
    server, client, lossy = [], [], []
    for folder in folders:
        if "cork" in folder.name or folder.name in UNMATCHED:
            continue
        for label, row, before, stream in matched(folder, point):
            if label["link_actions"]:
                lossy.append(loss_error_ms(label, row))
            elif not label["nagle_delack"]:
                server.append(think_error_ms(label, row, stream))
                client.append(pause_error_ms(label, row, before, stream))
    for name, errors_ms in (("server think", server), ("client pause", client)):
        bounds.check_errors(f"{point}: {name}", [ms for ms in errors_ms if ms is not None], p50=0.2, p95=0.4)
    bounds.check_errors(f"{point}: latency with losses,", [ms for ms in lossy if ms is not None], p50=0.5)


def main() -> int:
    root = Path(sys.argv[1])
    folders = sorted(path for path in (root / "lab").iterdir() if (path / "truth.json").exists())
    bounds = Bounds()
    check_repairs(folders, bounds)
    for point in POINTS:
        check_times(folders, point, bounds)
    for point, total, left_out in contained(root, folders):
        stalls = total["hit"] + total["missed"]
        name = f"{point}: stalls in the capture, recall of {stalls} (not in it: {left_out})"
        bounds.check(name, total["hit"] / max(1, stalls), at_least=0.98)
        bounds.check(f"{point}: false stalls", total["false"], at_most=0)
    for name, wrong in public(root / "public"):
        print(f"{name:60} {wrong or 'as it should be'}")
        if wrong:
            bounds.violated.append(name)
    return 1 if bounds.violated else 0


if __name__ == "__main__":
    sys.exit(main())
