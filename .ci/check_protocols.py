"""Compare the numbers of requests and responses per TCP stream with tshark's, and print a table by protocol.

    check_protocols.py CAPTURES [--only REGEX] [--part N/M]

CAPTURES has the folders `protocols` (one folder per capture) and `public`. tshark reads each capture once, with the
protocol of each port given by `-d`; its fields and latpcap's `exchanges` are counted per TCP stream. A stream is
compared if latpcap or tshark finds one of the protocols in it. Differences that `KNOWN` does not explain are printed,
and make the exit code 1. `--part 2/4` takes the second of every four captures.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from oracles import ORACLES, Counts, resp
from parts import part_of

import latpcap as lp

Ours = tuple[int, int, int]
"""Requests, complete responses, all responses. tshark shows a response by its head or when complete, by protocol."""
ALSO = {"grpc": "http2"}
"""Protocols that tshark counts as another protocol."""
ALONE = {"http", "http2", "mysql", "postgresql"}
"""Protocols that tshark finds inside TLS without `-d`."""
SECRETS = re.compile(rb"CLIENT_(RANDOM|TRAFFIC_SECRET_0) ")
FIELDS = ["tcp.stream", "tcp.srcport", "ip.src", "ipv6.src"]
ALL_FIELDS = FIELDS + sorted({field for oracle in ORACLES.values() for field in oracle.fields})


LOST = "tshark gives an answer up behind lost or reordered segments, or takes it twice; latpcap does not"
KNOWN: list[tuple[str, str, str]] = [
    ("_gap$", ".", "frames are missing: tshark gives up, or takes a message up in its middle"),
    ("_mid$", "amqp", "confirms of what was published before the capture count for tshark"),
    ("_mid$", "http2", "answers to what was asked before the capture count for tshark"),
    ("_mid$", "websocket", "no upgrade in the capture: tshark knows no WebSocket then"),
    ("_mid$", "smb", "answers to what was asked before the capture count for tshark"),
    ("h2c_upgrade", "http", "the request that asks for the upgrade is answered in HTTP/2: one exchange there"),
    (
        "grpc_streams",
        "http2",
        "the client cancels at its deadline; the head of an answer that comes later is not paired",
    ),
    ("mysql_my_infile", "mysql", "tshark takes the content of LOCAL INFILE for a command"),
    ("mercury--(mysql|emix)", "mysql", "tshark takes the second part of an old log-in for a command"),
    ("smtp_smtplib", "smtp", "tshark knows no command FOO"),
    ("smtp-decrypted", "smtp", "tshark sees neither BDAT nor the QUIT behind it"),
    ("nDPI--pop3|ntlm_synthetic", "pop3", "the lines of a log-in are commands for tshark"),
    ("emix|missing_ldap_logs", "ldap", "what SASL seals is a request for latpcap, data for tshark, an unbind as well"),
    ("PacketExamples-(ldap|Ftp)", "ldap|ftp", "single packets of many connections"),
    ("fuzz-2006", "ftp", "damaged segments at FTP's port"),
    ("mixed-vlan-mpls", "http", "packets behind MPLS, which latpcap and tshark number differently"),
    (
        "dce-rpc-mapi|dssetup_DsRoleGetPrimary",
        "smb",
        "latpcap reads no SMB1 message of 35 bytes, which has only a header",
    ),
    ("ntlm_synthetic", "smb", "answers without the flag of an answer are requests for tshark"),
    ("smb3_multichannel", "smb", "the server's notice that a lease is broken is an answer for tshark"),
    ("nDPI--umas", "modbus", "function 90 alone is not recognised as Modbus"),
    ("dns-tcp-multirequest-buffer", "dns", "twenty queries in one segment are not recognised"),
    ("tcp-reassembly-synthetic", "http", "segments in another order, which tshark puts together only where told to"),
    ("erspan|gtp1_gn|PcapPlusPlus--example|pcapng-example|http-packets2|wireshark-retrans|http_espn", "http", LOST),
    ("windowsize_|dce-rpc-mapi|206_example_b|one-dropped-response|spicy-gap-recovery", "http", LOST),
    ("261-variant-10", "http", "two transfer encodings: tshark takes a chunk for the next request"),
    ("ts-gap-input", "dns", LOST),
]
"""Pattern of the capture's name, pattern of the protocol, and the reason for the difference."""


class Wanted(NamedTuple):
    """Arguments of tshark for a capture."""

    decode: list[str]
    follow: list[tuple[str, int, int]]
    """Layer, stream and client port of each stream whose bytes are needed."""
    keys: Path | None


def of_tshark(path: Path, wanted: Wanted) -> tuple[dict[int, list[dict[str, list[str]]]], list[tuple[bytes, bytes]]]:
    """Return tshark's fields of each segment by stream, and the bytes of client and server of the followed streams."""
    options = ["tshark", "-n", "-r", str(path)]
    for port in wanted.decode:
        options += ["-d", port]
    if wanted.keys:
        options += ["-o", f"tls.keylog_file:{wanted.keys}"]
    command = [*options, "-Y", "tcp.stream", "-T", "fields", "-E", "occurrence=a"]
    command += ["-E", "separator=\t", "-E", "aggregator=\x1f"]
    for field in ALL_FIELDS:
        command += ["-e", field]
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    streams = defaultdict(list)
    for line in ran.stdout.split("\n"):
        row = dict(zip(ALL_FIELDS, (v.split("\x1f") if v else [] for v in line.split("\t")), strict=False))
        if row.get("tcp.stream"):
            streams[int(row["tcp.stream"][-1])].append(row)
    followed = []
    for layer, stream, port in wanted.follow:
        command = [*options, "-q", "-z", f"follow,{layer},raw,{stream}"]
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
        first, second = b"", b""
        for line in ran.stdout.splitlines():
            if re.fullmatch(r"[0-9a-f]+", line):
                first += bytes.fromhex(line)
            elif re.fullmatch(r"\t[0-9a-f]+", line):
                second += bytes.fromhex(line.strip())
        begins = re.search(r"Node 0: .*:(\d+)$", ran.stdout, re.MULTILINE)
        client = begins is not None and int(begins[1]) == port
        followed.append((first, second) if client else (second, first))
    return streams, followed


def of_latpcap(cap: lp.Capture) -> dict[tuple[int, str], Ours]:
    """Count by stream and protocol. Log-ins are not requests. A WebSocket push counts as a message of the server."""
    counts: Counter[tuple[int, str, int]] = Counter()
    columns = ["stream", "protocol", "kind", "method", "request_first_frame", "response_first_frame", "complete"]
    for row in cap.arrow("exchanges").select(columns).to_pylist():
        protocol = ALSO.get(row["protocol"], row["protocol"])
        if protocol in ORACLES and (row["kind"] != "handshake" or protocol in {"mongodb", "redis"}):
            counts[row["stream"], protocol, 0] += row["request_first_frame"] is not None
            counts[row["stream"], protocol, 1] += bool(row["complete"])
            counts[row["stream"], protocol, 2] += row["response_first_frame"] is not None
    for row in cap.arrow("pushes").select(["stream", "protocol"]).to_pylist():
        if row["protocol"] in {"websocket", "mongodb"}:
            counts[row["stream"], row["protocol"], 1] += 1
            counts[row["stream"], row["protocol"], 2] += 1
    streams = {(stream, protocol) for stream, protocol, _ in counts}
    return {key: (counts[*key, 0], counts[*key, 1], counts[*key, 2]) for key in sorted(streams)}


def count(path: Path) -> list[tuple[str, int, Counts, Ours]]:
    """Return protocol, stream, counts of tshark and counts of latpcap for each compared stream of a capture."""
    keys = path.with_name("keys.log")
    keylog = keys if keys.exists() else None
    try:
        cap = lp.read(path, keylog=keylog)
    except lp.CaptureError:
        return []
    columns = ["stream", "client", "client_port", "server_port"]
    ends = {row["stream"]: row for row in cap.arrow("streams").select(columns).to_pylist()}
    sealed = bool(keylog) or SECRETS.search(path.read_bytes()) is not None
    ours = of_latpcap(cap)
    decode, follow = set(), []
    for stream, protocol in ours:
        layer = "tls" if sealed else "tcp"
        if protocol == "redis":
            follow.append((layer, stream, ends[stream]["client_port"]))
        upgraded = path.parent.name == "h2c_upgrade" or (stream, "http") in ours
        if (
            ORACLES[protocol].dissector
            and not (layer == "tls" and protocol in ALONE)
            and not (protocol == "http2" and upgraded)
        ):
            decode.add(f"{layer}.port=={ends[stream]['server_port']},{ORACLES[protocol].dissector}")
    theirs, followed = of_tshark(path, Wanted(sorted(decode), follow, keylog))
    counted_streams = []
    for stream, rows in sorted(theirs.items()):
        if (end := ends.get(stream)) is None:
            continue
        segments = []
        for row in rows:
            source = (row["ip.src"] or row["ipv6.src"])[-1:]
            client = (source, row["tcp.srcport"][-1:]) == ([str(end["client"])], [str(end["client_port"])])
            segments.append((client, row))
        for protocol, oracle in ORACLES.items():
            got = ours.get((stream, protocol), (0, 0, 0))
            if protocol == "dns" and (stream, "http2") in ours:
                continue  # DNS over HTTPS: latpcap counts its exchanges as HTTP
            counted = oracle.count(segments)
            if protocol == "redis" and got != (0, 0, 0):
                client_bytes, server_bytes = followed[[at for _, at, _ in follow].index(stream)]
                counted = resp(client_bytes, server_bytes)
            if counted != (0, 0) or got != (0, 0, 0):
                counted_streams.append((protocol, stream, counted, got))
    return counted_streams


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="all")
    args = parser.parse_args()
    paths = sorted(args.captures.glob("protocols/*/capture.pcap*"))
    paths += sorted(
        path
        for folder in ("tcp", "link")
        for path in (args.captures / "public" / folder).glob("*")
        if "derived--" not in path.name
    )
    paths = part_of([path for path in paths if re.search(args.only, str(path))], args.part)
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    differ: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        for path, counted_streams in zip(paths, pool.map(count, paths), strict=True):
            name = path.parent.name if path.stem == "capture" else path.name
            for protocol, stream, theirs, ours in counted_streams:
                agree = theirs[0] == ours[0] and ours[1] <= theirs[1] <= ours[2]
                explained = (known for known in KNOWN if re.search(known[0], name) and re.search(known[1], protocol))
                why = next((reason for _, _, reason in explained), None)
                totals = table[protocol]
                totals.update(streams=1, agree=agree, known=not agree and why is not None)
                totals.update(theirs=theirs[0], ours=ours[0], their_answers=theirs[1], answers=ours[2])
                if not agree and why is None:
                    differ.append(f"{name} stream {stream}, {protocol}: tshark {theirs}, latpcap {ours}")
    print(f"{'':12} streams  agree  known | requests: tshark  latpcap | answers: tshark  latpcap")
    shown = ("streams", "agree", "known", "theirs", "ours", "their_answers", "answers")
    for protocol, totals in [*sorted(table.items()), ("all", sum(table.values(), Counter[str]()))]:
        print("{:12} {:7} {:6} {:6} | {:16} {:8} | {:15} {:8}".format(protocol, *(totals[word] for word in shown)))
    print("\n".join([f"differs: {line}" for line in differ] or ["each as tshark counts it, or explained"]))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
