"""Does latpcap count the requests and answers that tshark counts? A table of each protocol, stream by stream.

    check_protocols.py CAPTURES [--only REGEX]

CAPTURES has the folders `protocols` (a folder a capture) and `public`. tshark reads each capture once, told which
protocol stands at which port (`-d`), and its fields are counted per TCP stream; so are latpcap's `exchanges`. A stream
counts where latpcap finds such a protocol in it, or tshark does. Those that differ are explained in `KNOWN`, or
printed: exit code 1 then.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import latpcap as lp

Fields = dict[str, list[str]]
Segments = list[tuple[bool, Fields]]
"""Of one stream, in order: whether the client sent it, and what tshark found in it."""
Counts = tuple[int, int]
"""Requests, answers."""
Ours = tuple[int, int, int]
"""Requests, whole answers, all that began: tshark may show an answer by its head, or only when it is whole."""


def either(asked: Callable[[Fields], int], said: Callable[[Fields], int]) -> Callable[[Segments], Counts]:
    """Both sides ask and answer."""
    return lambda segments: (sum(asked(fields) for _, fields in segments), sum(said(fields) for _, fields in segments))


def both(asked: Callable[[Fields], int], said: Callable[[Fields], int]) -> Callable[[Segments], Counts]:
    """The client asks, the server answers in order. What it says with nothing asked is no answer: a greeting, the
    answer to what was asked before the capture, one more line of an answer with several codes.
    """

    def count(segments: Segments) -> Counts:
        requests = answers = 0
        for client, fields in segments:
            if client:
                requests += asked(fields)
            else:
                answers = min(requests, answers + said(fields))
        return requests, answers

    return count


def apart(asked: Callable[[Fields], int], said: Callable[[Fields], int]) -> Callable[[Segments], Counts]:
    """Both sides speak for themselves."""
    return lambda segments: (
        sum(asked(fields) for client, fields in segments if client),
        sum(said(fields) for client, fields in segments if not client),
    )


def values(name: str, *wanted: str, but: tuple[str, ...] = ()) -> Callable[[Fields], int]:
    """How many values of a field there are: of these, or of all but those."""
    return lambda fields: sum(v in wanted if wanted else v not in but for v in fields[name])


def added(*counts: Callable[[Fields], int]) -> Callable[[Fields], int]:
    return lambda fields: sum(count(fields) for count in counts)


def final(name: str) -> Callable[[Fields], int]:
    """Status codes but the interim ones."""
    return lambda fields: sum(not v.startswith("1") or v == "101" for v in fields[name])


def http2(segments: Segments) -> Counts:
    """What is pushed has a request (the promise) and a status of its own."""
    pushed = sum(len(fields["http2.push_promise.promised_stream_id"]) for _, fields in segments)
    asked = sum(len(fields["http2.headers.method"]) for _, fields in segments)
    return asked - pushed, sum(final("http2.headers.status")(fields) for _, fields in segments) - pushed


PG_ENDS = {
    "Simple query": {"Ready for query"},
    "Execute": {"Command completion", "Portal suspended", "Empty query", "Error", "Ready for query"},
    "Sync": {"Ready for query", "Error"},
    "Flush": {"Row description", "No data", "Error"},
}


def postgresql(segments: Segments) -> Counts:
    """A simple query up to "ready", an Execute up to its end, a group up to Sync that only prepares; the same statement
    with many values (Bind and Execute, again and again) is one request.
    """
    asked = answered = 0
    waiting: list[str] = []
    prepares = False
    group: list[str] = []
    for client, fields in segments:
        for word in fields["pgsql.type"]:
            if client:
                prepares |= word in {"Parse", "Describe"}
                group.append(word)
                if group[-3:] == ["Execute", "Bind", "Execute"] and waiting:
                    waiting[-1] = "Simple query"
                elif word in {"Simple query", "Execute"} or (word in {"Sync", "Flush"} and prepares):
                    waiting.append(word)
                    asked += 1
                if word in {"Execute", "Sync", "Flush"}:
                    prepares = False
                if word in {"Sync", "Simple query"}:
                    group.clear()
            elif waiting and word in PG_ENDS[waiting[0]]:
                answered += 1
                waiting.pop(0)
    return asked, answered


def imap(segments: Segments) -> Counts:
    """By tags: tshark has a literal's lines and DONE for commands."""
    asked: set[str] = set()
    answered: set[str] = set()
    for client, fields in segments:
        if client:
            asked |= set(fields["imap.request_tag"])
        else:
            answered |= set(fields["imap.response_tag"]) & asked
    # a word at a line's beginning in a mail's text is no tag that the server knows
    return len(answered), len(answered)


RESP_PUSHES = {b"message", b"pmessage", b"smessage", b"invalidate"}
RESP_CHANNELS = re.compile(rb"[sp]?(un)?subscribe", re.IGNORECASE)


def resp_values(text: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Kind and words of each value on the outermost level."""
    at = 0
    open_counts: list[int] = []
    kind, words = b"", list[bytes]()
    while (end := text.find(b"\r\n", at)) >= 0:
        head, line = text[at : at + 1], text[at + 1 : end]
        at = end + 2
        if not open_counts:
            kind, words = head, []
        if head in b"*~>%" and line.isdigit() and int(line):
            open_counts.append(int(line) * (2 if head == b"%" else 1))
            continue
        if head in b"$=!" and line.isdigit():
            line, at = text[at : at + int(line)], at + int(line) + 2
        words.append(line)
        while open_counts:
            open_counts[-1] -= 1
            if open_counts[-1]:
                break
            open_counts.pop()
        if not open_counts:
            yield kind, words


def resp(asked: bytes, said: bytes) -> Counts:
    """One command, one reply; a subscription has one for each channel, and what is pushed is none."""
    commands = [words for _, words in resp_values(asked)]
    replies = list(resp_values(said))
    pushed = sum(
        (kind in b"*>" and words[0] in RESP_PUSHES)
        or (kind == b"+" and re.match(rb"\d{9,}\.\d+ \[", words[0]) is not None)
        for kind, words in replies
    )
    channels = [sum(bool(RESP_CHANNELS.fullmatch(w[0])) for w in said) for said in (commands, [w for _, w in replies])]
    return len(commands), min(len(commands), len(replies) - pushed - channels[1] + channels[0])


def mongodb(segments: Segments) -> Counts:
    """The client's "more to come" wants no answer; the server's is followed by one that nobody asked for."""
    asked = sum(
        values("mongo.response_to", "0x00000000")(fields) - values("mongo.msg.flags.moretocome", "1")(fields)
        for client, fields in segments
        if client
    )
    return asked, sum(len(fields["mongo.response_to"]) for client, fields in segments if not client)


def smtp(segments: Segments) -> Counts:
    """Commands, and the content behind each 354; 334 asks for more of a log-in."""
    asked = answered = 0
    for client, fields in segments:
        if client:
            asked += max(len(fields["smtp.req.command"]), len(fields["smtp.command_line"]))
            continue
        for code in fields["smtp.response.code"]:
            answered = min(asked, answered + (code != "334"))
            asked += code == "354"
    return asked, answered


MYSQL_SILENT = ("1", "24", "25")
"""Quit, send long data, close a statement."""
AMQP_ASKS = {("20", "10"), ("20", "40"), ("40", "10"), ("40", "20"), ("60", "10"), ("60", "20"), ("60", "30")} | {
    *(("50", m) for m in ("10", "20", "30", "40", "50")),
    *(("90", m) for m in ("10", "20", "30")),
    ("10", "50"),
    ("60", "70"),
    ("85", "10"),
}
AMQP_ANSWERS = {(c, str(int(m) + 1)) for c, m in AMQP_ASKS} | {("60", "72")}


AMQP_CONFIRMS = {("60", "80"), ("60", "120")}
AMQP_FIELDS = ("channel", "method.class", "method.method", "method.arguments.delivery_tag", "method.arguments.multiple")


def amqp(segments: Segments) -> Counts:
    """Methods and their "-ok", or the channel's end in its place; each publish that the server confirms, by its tag or
    with all before it.
    """
    asked = answered = 0
    last: Counter[str] = Counter()
    for client, fields in segments:
        channels, *kind, tags, many = (fields[f"amqp.{name}"] for name in AMQP_FIELDS)
        methods = list(zip(*kind, strict=False))
        if client:
            asked += sum(method in AMQP_ASKS for method in methods)
            continue
        answered += sum(method in AMQP_ANSWERS or method == ("20", "40") for method in methods)
        if not set(methods) <= AMQP_CONFIRMS:
            continue
        for channel, tag, multiple in zip(channels, map(int, tags), many, strict=False):
            confirmed = max(1, tag - last[channel]) if multiple == "1" else 1
            last[channel] = tag
            asked += confirmed
            answered += confirmed
    return asked, answered


AMQP_TAGGED = {("60", "60"), ("60", "71"), ("60", "80"), ("60", "90"), ("60", "120")}


class Oracle(NamedTuple):
    dissector: str
    """For `-d`; none where tshark finds it by itself."""
    fields: tuple[str, ...]
    count: Callable[[Segments], Counts]


def lines(dissector: str, asked: str, said: str, *interim: str) -> Oracle:
    """A protocol of command lines and answers with codes."""
    return Oracle(dissector, (asked, said), both(values(asked), values(said, but=interim)))


ORACLES: dict[str, Oracle] = {
    "http": Oracle(
        "http",
        ("http.request.method", "http.response.code"),
        either(values("http.request.method"), final("http.response.code")),
    ),
    "http2": Oracle(
        "http2", ("http2.headers.method", "http2.headers.status", "http2.push_promise.promised_stream_id"), http2
    ),
    "websocket": Oracle(
        "", ("websocket.opcode",), apart(values("websocket.opcode", "1", "2"), values("websocket.opcode", "1", "2"))
    ),
    "postgresql": Oracle("pgsql", ("pgsql.type",), postgresql),
    "mysql": Oracle(
        "mysql",
        ("mysql.command", "mysql.packet_number"),
        both(values("mysql.command", but=MYSQL_SILENT), values("mysql.packet_number", "1")),
    ),
    # its dissector begins anew in each segment: its streams are followed and read by `resp`
    "redis": Oracle("resp", ("resp.array.length",), lambda _: (0, 0)),
    "mongodb": Oracle(
        "mongo",
        ("mongo.response_to", "mongo.msg.flags.moretocome"),
        mongodb,
    ),
    "kafka": Oracle(
        "kafka", ("kafka.correlation_id",), both(values("kafka.correlation_id"), values("kafka.correlation_id"))
    ),
    "amqp": Oracle("amqp", tuple(f"amqp.{name}" for name in AMQP_FIELDS), amqp),
    "mqtt": Oracle(
        "mqtt",
        ("mqtt.msgtype", "mqtt.qos"),
        both(
            added(values("mqtt.msgtype", "1", "8", "10"), values("mqtt.qos", "1", "2")),
            values("mqtt.msgtype", "2", "4", "7", "9", "11"),
        ),
    ),
    "dns": Oracle(
        "dns", ("dns.flags.response",), either(values("dns.flags.response", "0"), values("dns.flags.response", "1"))
    ),
    "smtp": Oracle(
        "smtp",
        ("smtp.req.command", "smtp.command_line", "smtp.response.code"),
        smtp,
    ),
    "pop3": lines("pop", "pop.request.command", "pop.response.indicator", "+"),
    "imap": Oracle("imap", ("imap.request_tag", "imap.response_tag"), imap),
    "ftp": Oracle(
        "ftp",
        ("ftp.request.command", "ftp.response.code"),
        both(values("ftp.request.command"), final("ftp.response.code")),
    ),
    "ldap": Oracle(
        "ldap",
        ("ldap.protocolOp",),
        both(
            values("ldap.protocolOp", but=("2", "16")),
            values("ldap.protocolOp", "1", "5", "7", "9", "11", "13", "15", "24"),
        ),
    ),
    "smb": Oracle(
        "nbss",
        ("smb2.flags.response", "smb2.nt_status", "smb.flags.response"),
        either(
            added(values("smb2.flags.response", "0"), values("smb.flags.response", "0")),
            # "pending" is no answer yet
            lambda fields: (
                values("smb2.flags.response", "1")(fields)
                + values("smb.flags.response", "1")(fields)
                - values("smb2.nt_status", "0x00000103")(fields)
            ),
        ),
    ),
    "rpc": Oracle("rpc", ("rpc.msgtyp",), either(values("rpc.msgtyp", "0"), values("rpc.msgtyp", "1"))),
    "sip": Oracle(
        "sip",
        ("sip.Method", "sip.Status-Code"),
        either(values("sip.Method", but=("ACK",)), final("sip.Status-Code")),
    ),
    "rtsp": Oracle("rtsp", ("rtsp.method", "rtsp.status"), either(values("rtsp.method"), final("rtsp.status"))),
    "modbus": Oracle("mbtcp", ("modbus.func_code",), both(values("modbus.func_code"), values("modbus.func_code"))),
}
ALSO = {"grpc": "http2"}
"""Protocols that tshark counts as another one."""
ALONE = {"http", "http2", "mysql", "postgresql"}
"""Found by tshark inside TLS without being told."""
SECRETS = re.compile(rb"CLIENT_(RANDOM|TRAFFIC_SECRET_0) ")
FIELDS = ["tcp.stream", "tcp.srcport", "ip.src", "ipv6.src"]
ALL_FIELDS = FIELDS + sorted({field for oracle in ORACLES.values() for field in oracle.fields})


LOST = "tshark gives an answer up behind lost or reordered segments, or takes it twice; latpcap does not"
SMB1 = "SMB1 is not read, but for the way to SMB2"
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
    ("emix|dce-rpc-mapi|dssetup|ntlm_synthetic", "smb", SMB1),
    ("smb3_multichannel", "smb", "of the two answers of a compound latpcap sees one"),
    ("nDPI--umas", "modbus", "function 90 alone is not recognised as Modbus"),
    ("dns-tcp-multirequest-buffer", "dns", "twenty queries in one segment are not recognised"),
    ("tcp-reassembly-synthetic", "http", "segments in another order, which tshark puts together only where told to"),
    ("erspan|gtp1_gn|PcapPlusPlus--example|pcapng-example|http-packets2|wireshark-retrans|http_espn", "http", LOST),
    ("windowsize_|dce-rpc-mapi|206_example_b|one-dropped-response|spicy-gap-recovery", "http", LOST),
    ("261-variant-10", "http", "two transfer encodings: tshark takes a chunk for the next request"),
    ("ts-gap-input", "dns", LOST),
]
"""Part of the capture's name, the protocols, and why the two count differently."""


class Wanted(NamedTuple):
    """What tshark is told of a capture."""

    decode: list[str]
    follow: list[tuple[str, int, int]]
    """Layer, stream, the client's port."""
    keys: Path | None


def of_tshark(path: Path, wanted: Wanted) -> tuple[dict[int, list[dict[str, list[str]]]], list[tuple[bytes, bytes]]]:
    """Per stream what tshark found in each of its segments; what both sides said in the streams that are followed."""
    words = ["tshark", "-n", "-r", str(path)]
    for port in wanted.decode:
        words += ["-d", port]
    if wanted.keys:
        words += ["-o", f"tls.keylog_file:{wanted.keys}"]
    ask = [*words, "-Y", "tcp.stream", "-T", "fields", "-E", "occurrence=a"]
    ask += ["-E", "separator=\t", "-E", "aggregator=\x1f"]
    for field in ALL_FIELDS:
        ask += ["-e", field]
    ran = subprocess.run(ask, capture_output=True, text=True, errors="replace", timeout=120)
    streams = defaultdict(list)
    for line in ran.stdout.split("\n"):
        row = dict(zip(ALL_FIELDS, (v.split("\x1f") if v else [] for v in line.split("\t")), strict=False))
        if row.get("tcp.stream"):
            streams[int(row["tcp.stream"][-1])].append(row)
    said = []
    for layer, stream, port in wanted.follow:
        ask = [*words, "-q", "-z", f"follow,{layer},raw,{stream}"]
        ran = subprocess.run(ask, capture_output=True, text=True, errors="replace", timeout=120)
        first, second = b"", b""
        for line in ran.stdout.splitlines():
            if re.fullmatch(r"[0-9a-f]+", line):
                first += bytes.fromhex(line)
            elif re.fullmatch(r"\t[0-9a-f]+", line):
                second += bytes.fromhex(line.strip())
        begins = re.search(r"Node 0: .*:(\d+)$", ran.stdout, re.MULTILINE)
        client = begins is not None and int(begins[1]) == port
        said.append((first, second) if client else (second, first))
    return streams, said


def of_latpcap(cap: lp.Capture) -> dict[tuple[int, str], Ours]:
    """Per stream and protocol. Log-ins are no requests; what a server pushes over a WebSocket is a message of it."""
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
    """Of one capture: protocol, stream, counts of tshark, counts of latpcap."""
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
    theirs, said = of_tshark(path, Wanted(sorted(decode), follow, keylog))
    found = []
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
                continue  # DNS over HTTPS: its exchanges are HTTP's
            counted = oracle.count(segments)
            if protocol == "redis" and got != (0, 0, 0):
                one, other = said[[at for _, at, _ in follow].index(stream)]
                counted = resp(one, other)
            if counted != (0, 0) or got != (0, 0, 0):
                found.append((protocol, stream, counted, got))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    paths = sorted(args.captures.glob("protocols/*/capture.pcap*"))
    paths += sorted(
        p
        for folder in ("tcp", "link")
        for p in (args.captures / "public" / folder).glob("*")
        if "derived--" not in p.name
    )
    paths = [p for p in paths if re.search(args.only, str(p))]
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    differ: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        for path, found in zip(paths, pool.map(count, paths), strict=True):
            name = path.parent.name if path.stem == "capture" else path.name
            for protocol, stream, theirs, ours in found:
                agree = theirs[0] == ours[0] and ours[1] <= theirs[1] <= ours[2]
                why = next((w for n, p, w in KNOWN if re.search(n, name) and re.search(p, protocol)), None)
                line = table[protocol]
                line.update(streams=1, agree=agree, known=not agree and why is not None)
                line.update(theirs=theirs[0], ours=ours[0], their_answers=theirs[1], answers=ours[2])
                if not agree and why is None:
                    differ.append(f"{name} stream {stream}, {protocol}: tshark {theirs}, latpcap {ours}")
    print(f"{'':12} streams  agree  known | requests: tshark  latpcap | answers: tshark  latpcap")
    shown = ("streams", "agree", "known", "theirs", "ours", "their_answers", "answers")
    for protocol, line in [*sorted(table.items()), ("all", sum(table.values(), Counter[str]()))]:
        print("{:12} {:7} {:6} {:6} | {:16} {:8} | {:15} {:8}".format(protocol, *(line[word] for word in shown)))
    print("\n".join([f"differs: {line}" for line in differ] or ["each as tshark counts it, or explained"]))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
