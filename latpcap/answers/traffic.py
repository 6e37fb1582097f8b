"""Which requests, and which answers? Requests of one server in; counts by protocol, method and status out.

Where one status is nearly all that a server answers, that is the answer before any time is: a redirect loop, pages that
are not there, logins that are refused.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from latpcap import arrays, spill, words
from latpcap import presentation as show
from latpcap.findings.round_trips import REDIRECTS
from latpcap.format import printable
from latpcap.user_waits.slow_requests import UNREAD
from latpcap.vocabulary import PROTOCOLS

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

LOGINS = (401, 407, 530, 535)
"""Codes by which HTTP, proxies, FTP and SMTP refuse who somebody claims to be."""
TCP_PORTS = {
    21: "FTP", 22: "SSH", 23: "telnet", 25: "SMTP", 53: "DNS", 80: "HTTP", 88: "Kerberos", 102: "ISO-TSAP (S7)",
    110: "POP3", 119: "NNTP", 135: "RPC", 139: "SMB", 143: "IMAP", 179: "BGP", 389: "LDAP", 443: "TLS", 445: "SMB",
    465: "SMTP", 502: "Modbus", 513: "rlogin", 514: "RSH", 515: "LPD", 548: "AFP", 554: "RTSP", 587: "SMTP", 631: "IPP",
    636: "LDAP", 873: "rsync", 993: "IMAP", 995: "POP3", 1080: "SOCKS", 1194: "OpenVPN", 1433: "TDS", 1521: "Oracle",
    1883: "MQTT", 2049: "NFS", 2404: "IEC 104", 3128: "HTTP", 3260: "iSCSI", 3268: "LDAP", 3306: "MySQL", 3389: "RDP",
    3868: "Diameter", 4730: "Gearman", 4840: "OPC UA", 5060: "SIP", 5222: "XMPP", 5269: "XMPP", 5432: "PostgreSQL",
    5672: "AMQP", 5900: "VNC", 6379: "Redis", 6633: "OpenFlow", 6653: "OpenFlow", 6667: "IRC", 8080: "HTTP",
    9042: "Cassandra", 9092: "Kafka", 9100: "a printer", 11211: "memcached", 20000: "DNP3",
    27017: "MongoDB", 44818: "EtherNet/IP",
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
UNREAD_TRAITS = {"rlogin": "person", "socks": "tunnel"}
"""What the core's list of readers would say of protocols that have no reader: those of `TCP_PORTS`."""


class Traffic(TypedDict):
    """The requests to one server, and its answers; the most frequent first, and at most `MOST` of each."""

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
    often = spill.count_codes(spoken, len(protocols), rows)
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
    targets_seen = seen[1:]  # the first are requests without a target
    first = int(targets_seen.argmax()) if targets_seen.any() else -1
    again, which = (0, None) if first < 0 else (int(targets_seen[first]), targets[first])
    found: Traffic = {
        "protocol": _called(most, port, software),
        "names": [printable(name) for name in names],
        "requests": len(rows),
        "methods": _counted(spill.count_codes(method, len(methods), rows), methods),
        "statuses": dict(counted_words.most_common(show.MAX_WORDS)),
        "answers": counted_words.total(),
        "errors": errors,
        "asked_again": again,
        "target": which,
        "kind": None,
    }
    found["kind"] = _kind(found, away, refused)
    if found["kind"] == "redirect_loop" and _gap_s(exchanges, rows, target == first) > show.MAX_LOOP_GAP_S:
        found["kind"] = None
    return found


def _gap_s(exchanges: pa.Table, rows: Array, wanted: Array) -> float:
    """How long after its answer came the next equal request, at the median? In seconds."""
    import numpy as np

    mine = rows[spill.take(wanted, rows)]
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


def _counted(seen: Array, texts: list[str]) -> dict[str, int]:
    import numpy as np

    order = np.argsort(-seen, kind="stable")[: show.MAX_WORDS]
    return {printable(texts[i]): int(seen[i]) for i in order.tolist() if seen[i]}


def _called(protocol: str, port: int, software: str | None) -> str:
    if protocol != UNREAD:
        return protocol
    if software and software.upper().startswith("SSH"):
        return "SSH"
    return f"{TCP_PORTS[port]}{BY_PORT}" if port in TCP_PORTS else UNKNOWN


def _kind(found: Traffic, away: int, refused: int) -> str | None:
    """Which kind of trouble do the answers show? None where most are fine, and where none shows what it is."""
    if not found["answers"]:
        return None
    everyday = found["protocol"] in ("http", "http2")
    if found["errors"] and not everyday and found["errors"] >= show.MIN_ERROR_SHARE * found["answers"]:
        return "errors"
    if found["answers"] < show.MIN_ANSWERS:
        return None
    share = show.MOST_ANSWERS_SHARE * found["answers"]
    if away >= share and found["asked_again"] >= show.MIN_LOOP_REQUESTS:
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
    if kind == "errors" and many < show.MOST_ANSWERS_SHARE * t["answers"]:
        kind = "mixed_errors"
    elif kind == "errors" and t["answers"] == 1:
        kind = "one_error"
    target = printable(t["target"] or "")[: show.MAX_NAME_LETTERS]
    return words.say(
        kind,
        server=server, status=_status(t, status), statuses=_answers(t), n=many, of=t["answers"], target=target,
        again=t["asked_again"],
    )  # fmt: skip


def _status(t: Traffic, code: str) -> str:
    return STATUSES.get(t["protocol"], {}).get(code, code)


def _answers(t: Traffic) -> str:
    """How the answers ended, and how many so."""
    return words.say("and_more").join(f"{n:,} x {_status(t, code)}" for code, n in t["statuses"].items())


def line(t: Traffic) -> str:
    """The requests and answers, counted, in a line."""
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
