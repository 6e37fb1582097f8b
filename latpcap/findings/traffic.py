"""What was asked, and what was answered? Requests of one server in; counts by protocol, method and status out.

Where one status is nearly all that a server answers, that is the answer before any time is: a redirect loop, pages that
are not there, logins that are refused.

What kind of capture is this, where no request says so? Streams, probes, findings and, without TCP, its first frames
in; a sentence out: a scan, a traceroute, a refusal, a dead window, one direction only, idle connections, no TCP.

What a port is for is only a port's word, and no frame inside a tunnel is looked at.

Last, transactions of a database whose client took its time between the statements, while it held locks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from latpcap import arrays, spill, words
from latpcap import presentation as show
from latpcap.errors import CaptureError
from latpcap.findings.connections import DATA, SYN, SYN_ACK
from latpcap.findings.quality import one_way
from latpcap.findings.schema import Finding
from latpcap.format import printable
from latpcap.reading.reread import packet
from latpcap.tables import MS
from latpcap.user_waits.cause_totals import Server, endpoint
from latpcap.user_waits.segments import segments
from latpcap.user_waits.slow_requests import UNREAD
from latpcap.vocabulary import PROTOCOLS
from latpcap.words import say

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array
    from latpcap.reading.reread import Record

REDIRECTS = (301, 302, 303, 307, 308)
LOGINS = (401, 407, 530, 535)
"""Codes by which HTTP, proxies, FTP and SMTP refuse who somebody claims to be."""
TCP_PORTS = {
    21: "FTP", 22: "SSH", 23: "telnet", 25: "SMTP", 53: "DNS", 80: "HTTP", 88: "Kerberos", 102: "ISO-TSAP (S7)",
    110: "POP3", 119: "NNTP", 135: "RPC", 139: "SMB", 143: "IMAP", 179: "BGP", 389: "LDAP", 443: "TLS", 445: "SMB",
    465: "SMTP", 502: "Modbus", 513: "rlogin", 514: "RSH", 515: "LPD", 548: "AFP", 554: "RTSP", 587: "SMTP", 631: "IPP",
    636: "LDAP", 873: "rsync", 993: "IMAP", 995: "POP3", 1080: "SOCKS", 1194: "OpenVPN", 1433: "TDS", 1521: "Oracle",
    1883: "MQTT", 2049: "NFS", 2404: "IEC 104", 3128: "HTTP", 3260: "iSCSI", 3268: "LDAP", 3306: "MySQL", 3389: "RDP",
    3868: "Diameter", 4840: "OPC UA", 5060: "SIP", 5222: "XMPP", 5269: "XMPP", 5432: "PostgreSQL", 5672: "AMQP",
    5900: "VNC", 6379: "Redis", 6633: "OpenFlow", 6653: "OpenFlow", 6667: "IRC", 8080: "HTTP", 9042: "Cassandra",
    9092: "Kafka", 9100: "a printer", 11211: "memcached", 20000: "DNP3", 27017: "MongoDB", 44818: "EtherNet/IP",
}  # fmt: skip
"""What a port is usually for (IANA's register). Only for words: no verdict knows a port."""
STATUSES = {
    "ldap": {
        "0": "success", "1": "operationsError", "2": "protocolError", "3": "timeLimitExceeded",
        "4": "sizeLimitExceeded", "5": "compareFalse", "6": "compareTrue", "10": "referral",
        "14": "saslBindInProgress", "16": "noSuchAttribute", "32": "noSuchObject", "34": "invalidDNSyntax",
        "48": "inappropriateAuthentication", "49": "invalidCredentials", "50": "insufficientAccessRights",
        "51": "busy", "52": "unavailable", "53": "unwillingToPerform", "65": "objectClassViolation",
        "68": "entryAlreadyExists",
    },
    "smb": {
        "0x00000000": "SUCCESS", "0x80000005": "BUFFER_OVERFLOW", "0x80000006": "NO_MORE_FILES",
        "0xc000000d": "INVALID_PARAMETER", "0xc000000f": "NO_SUCH_FILE", "0xc0000016": "MORE_PROCESSING_REQUIRED",
        "0xc0000022": "ACCESS_DENIED", "0xc0000034": "OBJECT_NAME_NOT_FOUND", "0xc0000035": "OBJECT_NAME_COLLISION",
        "0xc000003a": "OBJECT_PATH_NOT_FOUND", "0xc0000043": "SHARING_VIOLATION", "0xc000006d": "LOGON_FAILURE",
        "0xc00000ba": "FILE_IS_A_DIRECTORY", "0xc00000bb": "NOT_SUPPORTED", "0xc0000120": "CANCELLED",
        "0xc0000203": "USER_SESSION_DELETED",
    },
}  # fmt: skip
"""What numbers of a status are called (RFC 4511, MS-ERREF): only for words, the numbers stand in tables and JSON."""
BY_PORT, UNKNOWN = " by its port", "unknown protocol"
UNNAMED = ("handshake", "message", "content")
"""Requests that have no word of their own on the wire."""
UNREAD_TRAITS = {"rlogin": "person", "socks": "tunnel"}
"""What the core's list of readers would say of protocols that have no reader: those of `TCP_PORTS`."""


class Traffic(TypedDict):
    """What one server was asked, and what it answered; the most frequent first, and at most `MOST` of each."""

    protocol: str
    names: list[str]
    requests: int
    methods: dict[str, int]
    statuses: dict[str, int]
    answers: int
    errors: int
    asked_again: int
    target: str | None
    kind: str | None


def of(exchanges: pa.Table, rows: Array, port: int, software: str | None, names: list[str]) -> Traffic:
    """The traffic of the exchanges at these positions, which rise, at least one.

    `port` and `software` name what is not read; `names` are what clients call the server.
    """
    import numpy as np

    (spoken, protocols), (method, methods) = arrays.codes(exchanges, "protocol"), arrays.codes(exchanges, "method")
    often = spill.counted(spoken, len(protocols), rows)
    known = np.array([word != UNREAD for word in protocols])  # of as many the one that a reader knows
    most = protocols[int(np.lexsort((known, often))[-1])]
    target, targets = arrays.codes(exchanges, "target")
    counted_words, seen = Counter[str](), np.zeros(len(targets) + 1, np.int64)
    errors = away = refused = 0
    for span, part in arrays.sliced(exchanges):
        # of the rows' own type: else all of them would become that of the bounds
        begin, end = np.searchsorted(rows, np.array([span.start, span.stop], rows.dtype))
        mine = rows[begin:end] - rows.dtype.type(span.start)
        status = arrays.numbers(part, "status")[mine].astype(float)
        counted_words.update(_status_words(part, mine, status))
        errors += _errors(part, mine)
        redirects = np.isin(status, REDIRECTS)
        away, refused = away + int(redirects.sum()), refused + int(np.isin(status, LOGINS).sum())
        seen += np.bincount(target[span][mine][redirects].astype(np.int64) + 1, minlength=len(seen))
    asked = seen[1:]  # the first are requests without a target
    first = int(asked.argmax()) if asked.any() else -1
    again, which = (0, None) if first < 0 else (int(asked[first]), targets[first])
    found: Traffic = {
        "protocol": _called(most, port, software),
        "names": [printable(name) for name in names],
        "requests": len(rows),
        "methods": _counted(spill.counted(method, len(methods), rows), methods),
        "statuses": dict(counted_words.most_common(show.MOST_WORDS)),
        "answers": counted_words.total(),
        "errors": errors,
        "asked_again": again,
        "target": which,
        "kind": None,
    }
    found["kind"] = _kind(found, away, refused)
    if found["kind"] == "redirect_loop" and _gap_s(exchanges, rows, target == first) > show.LOOP_S:
        found["kind"] = None
    return found


def _gap_s(exchanges: pa.Table, rows: Array, wanted: Array) -> float:
    """How long after its answer was the same asked again, at the median? In seconds."""
    import numpy as np

    mine = rows[spill.taken(wanted, rows)]
    begun, done = (np.sort(arrays.taken(exchanges, c, mine).cast("int64").to_numpy()) for c in ("start", "end"))
    return float(np.median(begun[1:] - done[:-1])) / 1e9 if len(mine) > 1 else 0.0


def _status_words(exchanges: pa.Table, rows: Array, status: Array) -> Counter[str]:
    """How the answers ended: the protocol's word, else its number; each with its count, the first seen first."""
    import numpy as np

    text, texts = arrays.codes(exchanges, "status_text")
    text = text[rows]
    worded = [bool(word) for word in texts]
    is_worded = np.array([*worded, False])[text]
    code = np.where(is_worded | (status != status), -1.0, status)
    found: dict[str, int] = {}
    key = np.where(is_worded, -2.0 - text, code)  # words are below -1, -1 is none, codes are never negative
    ways, first, many = np.unique(key, return_index=True, return_counts=True)
    for at in np.argsort(first).tolist():
        way = int(ways[at])
        if way != -1:
            word = printable(texts[-2 - way] if way < 0 else f"{way}")
            found[word] = found.get(word, 0) + int(many[at])
    return Counter(found)


def _errors(exchanges: pa.Table, rows: Array) -> int:
    """How many answers were errors, as the protocol has it?"""
    import numpy as np

    cut, words_ = arrays.codes(exchanges, "cut_by")
    ended = cut[rows] != arrays.code_of(words_, "reset")  # a side that had enough of it
    return int((ended & (np.nan_to_num(arrays.numbers(exchanges, "error")[rows].astype(float)) == 1)).sum())


def _counted(seen: Array, words: list[str]) -> dict[str, int]:
    import numpy as np

    order = np.argsort(-seen, kind="stable")[: show.MOST_WORDS]
    return {printable(words[i]): int(seen[i]) for i in order.tolist() if seen[i]}


def _called(protocol: str, port: int, software: str | None) -> str:
    if protocol != UNREAD:
        return protocol
    if software and software.upper().startswith("SSH"):
        return "SSH"
    return f"{TCP_PORTS[port]}{BY_PORT}" if port in TCP_PORTS else UNKNOWN


def _kind(found: Traffic, away: int, refused: int) -> str | None:
    """Which kind of trouble do the answers show? None where most are fine, and where none says what it is."""
    if not found["answers"]:
        return None
    everyday = found["protocol"] in ("http", "http2")
    if found["errors"] and not everyday and found["errors"] >= show.MANY_ERRORS * found["answers"]:
        return "errors"
    if found["answers"] < show.LEAST_KIND:
        return None
    share = show.MOST_ANSWERS * found["answers"]
    if away >= share and found["asked_again"] >= show.LOOPED:
        return "redirect_loop"
    if refused >= share:
        return "logins_refused"
    return "errors" if found["errors"] >= share else None


def sentence(t: Traffic, server: str) -> str | None:
    """What kind of answers these are, where one kind is nearly all: the beginning of a headline."""
    if t["kind"] is None:
        return None
    status, many = next(iter(t["statuses"].items()))
    kind = t["kind"]
    if kind == "errors" and many < show.MOST_ANSWERS * t["answers"]:
        kind = "mixed_errors"
    elif kind == "errors" and t["answers"] == 1:
        kind = "one_error"
    target = printable(t["target"] or "")[: show.MOST_NAME]
    return words.say(
        f"{kind}_at" if kind == "redirect_loop" and target else kind,
        server=server, status=_status(t, status), statuses=_answers(t), n=many, of=t["answers"], target=target,
        again=t["asked_again"],
    )  # fmt: skip


def _status(t: Traffic, code: str) -> str:
    return STATUSES.get(t["protocol"], {}).get(code, code)


def _answers(t: Traffic) -> str:
    """How the answers ended, and how many so."""
    return words.say("and_more").join(f"{n:,} x {_status(t, code)}" for code, n in t["statuses"].items())


def called(method: str | None, target: str | None) -> str:
    """What a sentence calls a request: its method and target; SQL begins with its verb. "one turn" without any."""
    parts = [printable(word)[: show.MOST_NAME] for word in (method, target) if word]
    if method in UNNAMED:
        name = words.say(f"unnamed_{method}")
        return words.say("unnamed_with", name=name, target=parts[1]) if len(parts) > 1 else name
    if not parts:
        return words.say("one_turn")
    return " ".join(parts[1:] if len(parts) > 1 and parts[1].upper().startswith(parts[0].upper()) else parts)


def line(t: Traffic) -> str:
    """How much of what was asked, and what was answered, in a line."""
    many, others = words.say("turns" if turns(t) else "requests", n=t["requests"]), len(t["names"]) - 1
    of = "traffic" if others < 0 else "traffic_for" if not others else "traffic_for_some"
    methods = words.say("and_more").join(f"{n:,} {word}" for word, n in t["methods"].items())
    return words.joined([
        words.say(of, many=many, protocol=t["protocol"], name=t["names"][0] if t["names"] else "", n=others),
        methods,
        words.say("traffic_answers", statuses=_answers(t)) if t["statuses"] else "",
    ])  # fmt: skip


def turns(t: Traffic) -> bool:
    """Is the protocol one that no reader knows, so that a turn need be no request?"""
    return t["protocol"] == UNKNOWN or t["protocol"].endswith(BY_PORT)


def people(t: Traffic) -> bool:
    """Does a person type here?"""
    return _has(t, "person")


def log_in(t: Traffic) -> bool:
    """Is it the log-in of people, and all that can be read of what they do?"""
    return _has(t, "person") and list(t["methods"]) == ["handshake"]


def tunnel(t: Traffic) -> bool:
    """Do packets of others pass here, which answer nobody?"""
    return _has(t, "tunnel")


def _has(t: Traffic, trait: str) -> bool:
    name = t["protocol"].removesuffix(BY_PORT).lower()
    return trait in PROTOCOLS.get(name, ()) or UNREAD_TRAITS.get(name) == trait


RISING = 0.5
"""Echo requests of a traceroute: from this share on, routers answer them instead of their target."""


def kind_of(tables: Mapping[str, pa.Table], events: Sequence[Finding], *, alone: bool) -> tuple[str, str] | None:
    """Kind and sentence of this capture, where it is of a kind of its own; `alone`: no request was judged in it."""
    found = next(_scan(tables["streams"]), None)
    if found is not None or not alone:
        return found
    for search in (_icmp(tables), _happened(events), _quiet(tables, events)):
        found = next(search, None)
        if found is not None:
            return found
    return None


def _icmp(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, str]]:
    """Pings, and a traceroute by pings, where there is no TCP."""
    if tables["streams"].num_rows:
        return
    probes = tables["probes"]
    if not probes.num_rows:
        return
    answers, words = arrays.codes(probes, "answer")
    kinds, names = arrays.codes(probes, "kind")
    pings = kinds == arrays.code_of(names, "icmp_echo")
    if not pings.any():
        return
    hit = {word: int((pings & (answers == code)).sum()) for code, word in enumerate(words)}
    total = int(pings.sum())
    if hit.get("time_exceeded", 0) >= RISING * sum(hit.values()) > 0:
        [row] = probes.select(["dst"]).slice(int(pings.argmax()), 1).to_pylist()
        yield "traceroute", say("trace_by_icmp", target=row["dst"], n=hit["time_exceeded"], of=total)
        return
    yield "ping", _pings(arrays.numbers(probes, "rtt_ms").astype(float)[pings], answers[pings], words)


def _pings(rtt: Array, answers: Array, words: list[str]) -> str:
    """How many pings came back, how soon, and what came in place of an answer."""
    import numpy as np

    other = {word: int((answers == code).sum()) for code, word in enumerate(words) if word != "echo_reply"}
    came = np.sort(rtt[~np.isnan(rtt) & np.isin(answers, [c for c, word in enumerate(words) if word not in other])])
    lost = len(rtt) - len(came) - sum(other.values())
    one = "ping" if len(rtt) == 1 else "pings"
    parts = [say(f"{one}_icmp", n=n, word=word.replace("_", " ")) for word, n in other.items() if n]
    parts += [say(f"{one}_lost", n=lost)] if lost else []
    if lost == len(rtt) > 1:
        parts = [say("pings_none")]
    values = {
        "n": len(rtt),
        "came": say("and_more").join(parts) or say("ping_answered" if len(rtt) == 1 else "pings_all"),
    }
    if not len(came):
        return say("pings", **values)
    low, high, mean = float(came[0]), float(came[-1]), float(came.mean())
    if len(came) == 1:
        return say("pings_one_trip", trip_ms=low, **values)
    return say("pings_trips", low_ms=low, high_ms=high, mean_ms=mean, **values)


def _scan(streams: pa.Table) -> Iterator[tuple[str, str]]:
    """One client that tries many ports or hosts, and gets next to nothing: most connections of the capture, or many to
    the same few ports. (Peers dial each other too, but on a port of each.)
    """
    import numpy as np

    if streams.num_rows < show.SCANNED:
        return
    code, answers = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets")
    (client, clients), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port").astype(np.int64)
    closed, words = arrays.codes(streams, "closed_by")
    silent = (code & SYN != 0) & (code & DATA == 0)
    refused = silent & (closed == arrays.code_of(words, "server_rst")) & (code & SYN_ACK == 0)
    failed = refused | (silent & (answers == 0))
    if not silent.any():
        return
    mostly = silent.sum() >= show.SCAN_SHARE * streams.num_rows
    vain = silent if mostly else failed
    if not vain.any():
        return
    who = int(np.bincount(client[vain]).argmax())
    mine = vain & (client == who)
    ends = np.unique(server[mine].astype(np.int64) << 16 | port[mine])
    ports, hosts = np.unique(ends & 0xFFFF), np.unique(ends >> 16)
    few = len(ports) <= show.SCAN_PORTS or len(hosts) == 1
    if len(ends) < (show.SCANNED if mostly else show.SCANNED_BESIDE) or not (mostly or few):
        return
    mine = (client == who) & np.isin(port, ports) & np.isin(server, hosts)
    shut, nothing = int((mine & refused).sum()), int((mine & failed & ~refused).sum())
    host = f"{servers[int(hosts[0])]}" if len(hosts) == 1 else say("hosts", n=len(hosts))
    yield "scan", say(
        "scan", client=clients[who], n=len(ports), host=host, shut=shut, nothing=nothing,
        answered=int(mine.sum()) - shut - nothing,
    )  # fmt: skip


_FIRST = ("traceroute", "refused", "unreachable", "unanswered", "half_open")


def _happened(events: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """What happened to the connections, the rarest kind of thing first."""
    for cause in _FIRST:
        rows = [e for e in events if e.cause == cause and e.text]
        if rows:
            more = sum(e.streams or 0 for e in rows[1:])
            text = rows[0].text or ""
            yield cause, say("elsewhere_too", text=text, n=more) if more else text


WAITED = ("setup", "wait", "silence")
"""Kinds of findings that say what somebody waited for: then connections without data were no idle ones."""


def _quiet(tables: Mapping[str, pa.Table], happened: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Connections on which nothing was asked and answered: of what kind?"""
    streams = tables["streams"]
    if not streams.num_rows:
        return
    alone = one_way(streams)
    if alone.any() and alone.sum() >= streams.num_rows / 2:
        which = "its_one_connection" if streams.num_rows == 1 else "of_connections"
        some = say(which, n=int(alone.sum()), of=streams.num_rows)
        yield "one_direction", say("one_direction_capture", which=some)
    events = segments(tables)
    shut = events.shut() if events is not None else None
    for side in ("server", "client"):
        dead = _windows(shut, streams, side) if shut is not None else None
        if dead:
            name, frame, waited, probes = dead
            again = say("probes_again", n=probes) if probes else ""
            yield (
                "dead_window",
                say(f"dead_window_{side}", server=name, frame=frame, wait_ms=waited, again=again),
            )
    data = arrays.numbers(streams, "client_payload_bytes") + arrays.numbers(streams, "server_payload_bytes")
    if not data.any() and not any(e.kind in WAITED for e in happened):
        seconds = float(arrays.numbers(streams, "end").max() - arrays.numbers(streams, "start").min()) / 1e9
        if seconds >= show.IDLE_S:
            yield "idle", say("idle", n=streams.num_rows, seconds=seconds)


def _windows(events: pa.Table, streams: pa.Table, side: str) -> tuple[str, int, float, int] | None:
    """The window of 0 that lasts the longest on this side, to the end: whose, its first frame, ms, probes of it."""
    import numpy as np

    sent = arrays.numbers(events, "from_client").astype(bool) == (side == "client")
    shut, probe = (arrays.numbers(events, c).astype(bool) for c in ("zero_window", "zero_window_probe"))
    stream, time, frame = (arrays.numbers(events, c) for c in ("stream", "time", "frame"))
    flags, words = arrays.codes(events, "flags")
    living = sent & ~np.isin(flags, [code for code, word in enumerate(words) if "RST" in word])
    worst: tuple[float, int, int, int] | None = None
    for number in np.unique(stream[living & shut]).tolist():
        every = np.flatnonzero(stream == number)
        rows = every[living[every]]
        if not shut[rows[-1]]:
            continue
        opened = np.flatnonzero(~shut[rows])
        first = int(rows[int(opened[-1]) + 1 if len(opened) else 0])
        probes = int(probe[every[every > first]].sum())
        case = float(time[every[-1]] - time[first]) / MS, int(number), int(frame[first]), probes
        worst = case if worst is None else max(worst, case)
    if worst is None:
        return None
    waited, number, first_frame, probes = worst
    at = int(np.flatnonzero(arrays.numbers(streams, "stream") == number)[0])
    [row] = streams.select(["server", "server_port"]).slice(at, 1).to_pylist()
    return endpoint(row["server"], row["server_port"]), first_frame, waited, probes


IP_PROTOCOLS = {
    1: "ICMP", 2: "IGMP", 4: "IPIP", 17: "UDP", 33: "DCCP", 41: "6in4", 46: "RSVP", 47: "GRE", 50: "ESP",
    51: "AH", 58: "ICMPv6", 88: "EIGRP", 89: "OSPF", 103: "PIM", 112: "VRRP", 132: "SCTP",
}  # fmt: skip
"""What IP carries, by IANA's numbers."""
ETHERTYPES = {
    0x0806: "ARP", 0x8035: "RARP", 0x8137: "IPX", 0x8809: "LACP", 0x8863: "PPPoE", 0x888E: "EAPOL",
    0x88CC: "LLDP", 0x88E1: "HomePlug", 0x88F7: "PTP", 0x9000: "loopback",
}  # fmt: skip
UDP_PORTS = {
    53: "DNS", 67: "DHCP", 68: "DHCP", 69: "TFTP", 123: "NTP", 137: "NetBIOS", 138: "NetBIOS", 161: "SNMP",
    162: "SNMP", 443: "QUIC", 500: "IKE", 514: "syslog", 520: "RIP", 546: "DHCP", 547: "DHCP", 1194: "OpenVPN",
    1812: "RADIUS", 1900: "SSDP", 2055: "NetFlow", 2152: "GTP", 3478: "STUN", 4500: "IKE", 4739: "IPFIX",
    4789: "VXLAN", 5060: "SIP", 5353: "mDNS", 5355: "LLMNR", 6081: "Geneve", 51820: "WireGuard",
}  # fmt: skip
"""What a port is usually for (IANA's register). Only for words."""
UDP = 17
PPP, FRAMED = 9, b"\xff\x03"
TIME_EXCEEDED, UNREACHABLE = {(4, 11), (6, 3)}, {(4, 3), (6, 1)}
"""IP's version, and the type of the ICMP message."""


def without_tcp(records: Iterable[Record]) -> tuple[str, str] | None:
    """Kind and sentence; None where nothing of it is known, or the bytes cannot be read again."""
    if (counts := _counted_frames(records)) is None:
        return None
    total, seen, asked, errors = counts
    routed = Counter({where: n for (word, where), n in errors.items() if word == "time_exceeded"})
    if routed:
        [(where, answers)] = routed.most_common(1)
        came = errors["unreachable", where]
        return "traceroute", words.say(
            "trace_by_udp", target=ip_address(where), n=answers,
            of=words.say("of_datagrams", n=asked[where]) if asked[where] >= answers else "",
            came=words.say("came_unreachable", n=came) if came else "",
        )  # fmt: skip
    if not seen:
        return None
    gone = sum(n for (word, _), n in errors.items() if word == "unreachable")
    return "no_tcp", words.say("no_tcp_unreachable" if gone else "no_tcp", kinds=_kinds(seen, total), n=gone)


def _counted_frames(
    records: Iterable[Record],
) -> tuple[int, Counter[str], Counter[bytes], Counter[tuple[str, bytes]]] | None:
    """How many of the first records were looked at, their kinds, UDP's targets and ICMP's errors; None: unreadable."""
    seen, asked, errors = Counter[str](), Counter[bytes](), Counter[tuple[str, bytes]]()
    total = 0
    try:
        for record in records:
            total += 1
            _look(record, seen, asked, errors)
            if total == show.MOST_OTHERS:
                break
    except CaptureError:
        return None
    return total, seen, asked, errors


def mostly(records: Iterable[Record], segments: int) -> str | None:
    """What is most of a capture that has only so many segments of TCP, in a few words; None where that is not known."""
    if (counts := _counted_frames(records)) is None:
        return None
    total, seen, _, _ = counts
    if not seen or seen.total() <= max(total / 2, segments):
        return None
    return _kinds(seen, total)


def _kinds(seen: Counter[str], total: int) -> str:
    """How many frames are of which kind?"""
    (kind, number), *more = seen.most_common(show.MOST_WORDS)
    some = "first_" if total == show.MOST_OTHERS else ""
    which = f"of_{some}frames" if number < total else f"all_{some}frames" if total > 1 else "one_frame"
    first = words.say(which, n=number, of=total, kind=kind)
    return words.say("and_more").join([first, *(f"{n:,} {word}" for word, n in more)])


def _look(record: Record, seen: Counter[str], asked: Counter[bytes], errors: Counter[tuple[str, bytes]]) -> None:
    """Counts one frame by what it carries; not at all where dpkt gives up on it."""
    import dpkt

    if record.link == PPP and not record.data.startswith(FRAMED):
        record = record._replace(data=FRAMED + record.data)  # RFC 1661: without what frames it (RFC 1662)
    try:
        layer: Any = packet(record, "") if record.link in READ else None
    except CaptureError:
        return
    kind = None
    while layer is not None and not isinstance(layer, (bytes, dpkt.ip.IP, dpkt.ip6.IP6)):
        kind = getattr(layer, "type", None) if isinstance(layer, dpkt.ethernet.Ethernet) else kind
        layer = getattr(layer, "data", None)
    if layer is None or isinstance(layer, bytes):
        if kind in ETHERTYPES:
            seen[ETHERTYPES[kind]] += 1
        return
    word = IP_PROTOCOLS.get(_carried(layer))
    inner = layer.data
    if word is None:
        return
    if isinstance(inner, dpkt.udp.UDP):
        asked[bytes(layer.dst)] += 1
        ports = [port for port in (inner.sport, inner.dport) if port in UDP_PORTS]
        word = words.say("by_its_port", protocol=UDP_PORTS[min(ports)]) if ports else word
    seen[word] += 1
    quoted = _quoted(inner)
    if quoted is not None:
        errors[quoted] += 1


def _carried(layer: Any) -> int:
    """The number of what this IP packet carries: IPv6 has it behind its extension headers."""
    number = getattr(layer, "p", None)
    return int(layer.nxt if number is None else number)


READ = (0, 1, 9, 12, 14, 101, 108, 113, 228, 229, 276)
"""Link types of which dpkt gives the packet inside."""


def _quoted(inner: Any) -> tuple[str, bytes] | None:
    """Of an ICMP error: which, and to whom the UDP datagram went that it quotes."""
    import dpkt

    version = 4 if isinstance(inner, dpkt.icmp.ICMP) else 6 if isinstance(inner, dpkt.icmp6.ICMP6) else None
    if version is None:
        return None
    key = (version, inner.type)
    word = "time_exceeded" if key in TIME_EXCEEDED else "unreachable" if key in UNREACHABLE else None
    quoted = getattr(inner.data, "data", None)
    if word is None or not isinstance(quoted, (dpkt.ip.IP, dpkt.ip6.IP6)) or _carried(quoted) != UDP:
        return None
    return word, bytes(quoted.dst)


TABLE = re.compile(r"\b(?:update|into|from|join|table)\s+[\"`\[]?([\w.]+)", re.IGNORECASE)
"""The tables that a statement names."""
LOCKING = ("UPDATE", "INSERT", "DELETE", "REPLACE", "MERGE", "ALTER", "DROP", "TRUNCATE", "LOCK")
"""Statements that keep a lock until their transaction ends; a SELECT does so with "for update" or "for share"."""
FOR_UPDATE = re.compile(r"\bfor\s+(?:update|share)\b", re.IGNORECASE)
BEGINS, DONE = ("BEGIN", "START"), ("COMMIT", "ROLLBACK")
MOST_STATEMENTS = 50_000
"""Of a server that answered more of them transactions are not looked at."""
IDLE, IDLE_MS = 0.75, 1000.0
"""A transaction is its client's where that took this share of it, and so long: a person sees it."""


class _Transaction(NamedTuple):
    """One transaction: its stream, first and last row, when it began and ended, when each table was locked first, and
    how long its client sent nothing while it held these locks, in ns."""

    stream: int
    first: int
    last: int
    begun: int
    ending: int
    ended: int
    locked: dict[str, int]
    idle: int
    explicit: bool


def _locks(method: str, target: str) -> bool:
    return method in LOCKING or (method == "SELECT" and FOR_UPDATE.search(target) is not None)


def _transactions(
    rows: Sequence[int], columns: Mapping[str, Sequence[Any]], start: Array, end: Array
) -> Iterator[_Transaction]:
    """The transactions of these statements, which stand in the order of their streams and beginnings."""
    locked: dict[str, int] = {}
    stream, begin, idle, explicit, done = -1, -1, 0, False, 0
    for row in rows:
        method, target = columns["method"][row] or "", columns["target"][row] or ""
        if columns["stream"][row] != stream or method in BEGINS:
            stream, begin, locked, idle, explicit, done = columns["stream"][row], row, {}, 0, method in BEGINS, 0
        elif begin < 0:
            begin, done = row, 0
        idle += max(int(start[row]) - done, 0) if done and locked else 0  # before it nobody waits for this client
        done = int(end[row])
        if method in DONE:
            yield _Transaction(stream, begin, row, int(start[begin]), int(start[row]), done, locked, idle, explicit)
            begin, locked, idle, explicit, done = -1, {}, 0, False, 0
        elif _locks(method, target):
            for name in TABLE.findall(target):
                locked.setdefault(name.lower(), int(start[row]))


def transactions(server: Server, tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Transactions in which the client took the time while it held locks."""
    import numpy as np

    exchanges = tables["exchanges"]
    method, methods = arrays.codes(exchanges, "method")
    ends = [methods.index(word) for word in DONE if word in methods]
    if not ends or len(server.rows) > MOST_STATEMENTS or not np.isin(method[server.rows], ends).any():
        return []
    stream, start = (arrays.numbers(exchanges, name) for name in ("stream", "start"))
    order = server.rows[np.lexsort((start[server.rows], stream[server.rows]))]
    names = ["method", "target", "stream", "exchange", "request_first_frame"]
    columns = {name: arrays.taken(exchanges, name, order).to_pylist() for name in names}
    end = arrays.filled(exchanges, "end", 0)
    every = list(_transactions(range(len(order)), columns, start[order], end[order]))
    slept = [one for one in every if one.explicit and one.idle >= IDLE * (one.ended - one.begun)]
    slept = [one for one in slept if one.idle >= IDLE_MS * MS and one.locked]
    return [_client_took(server, slept, len(every), columns, tables)] if slept else []


def _client_took(
    server: Server, slept: list[_Transaction], of: int, columns: Mapping[str, Sequence[Any]],
    tables: Mapping[str, pa.Table],
) -> Finding:  # fmt: skip
    worst = max(slept, key=lambda one: one.idle)
    [client] = arrays.looked_up(tables["streams"], "stream", _streams_of([worst]), ("client",))
    frames = (columns["request_first_frame"][worst.first], columns["request_first_frame"][worst.last])
    values = {
        "server": server.name, "client": client[0], "n": len(slept), "span_ms": worst.idle / MS,
        "took_ms": (worst.ended - worst.begun) / MS, "frame": frames[0], "commit_frame": frames[1],
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="client_in_transaction", owner="client",
        client=client[0], clients=len(server.clients), streams=len({one.stream for one in slept}),
        exchanges=len(slept), of_exchanges=of, total_ms=sum(one.idle for one in slept) / MS, max_ms=worst.idle / MS,
        worst_exchange=columns["exchange"][worst.last],
        worst_stream=worst.stream, worst_ms=worst.idle / MS, worst_frames=frames,
        filter=f"tcp.stream eq {worst.stream}", harm="late", sentence="client_in_transaction", values=values,
    )  # fmt: skip


def _streams_of(some: Sequence[_Transaction]) -> Array:
    import numpy as np

    found: Array = np.array([one.stream for one in some], np.int64)
    return found
