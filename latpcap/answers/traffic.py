"""Requests and responses of one server, counted by protocol, method and status.

If nearly all responses have one status, the headline begins with that: a redirect loop, missing pages, refused logins.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from latpcap import arrays, spill, words
from latpcap import presentation as show
from latpcap.findings.round_trips import REDIRECTS
from latpcap.format import printable
from latpcap.lazy import np, pa
from latpcap.user_waits.slow_requests import UNREAD
from latpcap.vocabulary import PROTOCOLS

if TYPE_CHECKING:
    from latpcap.arrays import Array

LOGINS = (401, 407, 530, 535)
"""Status codes for a refused login: HTTP, HTTP proxies, FTP and SMTP."""
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
"""Usual protocols of TCP ports (IANA register). Used only in sentences, never for a verdict."""
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
"""Names of status codes (RFC 4511, MS-ERREF) for sentences; tables and JSON have the codes."""
BY_PORT, UNKNOWN = " by its port", "unknown protocol"
UNREAD_TRAITS = {"rlogin": "person", "socks": "tunnel"}
"""Traits of protocols in `TCP_PORTS` without a reader, as `PROTOCOLS` has them for the others."""


class Traffic(TypedDict):
    """The requests to one server and its responses; the `MAX_WORDS` most frequent methods and statuses, in that order.

    `asked_again` counts redirected requests for `target`, the one redirected most; `kind` is None if most are fine.
    """

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


def of(stretches: pa.Table, rows: Array, port: int, software: str | None, names: list[str]) -> Traffic:
    """Count the exchanges in these rows, which are ascending and not empty.

    `port` and `software` name a protocol without a reader; `names` are the server's names in requests.
    """
    (protocol, protocols), (method, methods) = arrays.codes(stretches, "protocol"), arrays.codes(stretches, "method")
    counts = spill.count_codes(protocol, len(protocols), rows)
    has_reader = np.array([word != UNREAD for word in protocols])  # decides between equal counts
    main_protocol = protocols[int(np.lexsort((has_reader, counts))[-1])]
    target, targets = arrays.codes(stretches, "target")
    statuses, redirects_by_target = Counter[str](), np.zeros(len(targets) + 1, np.int64)
    errors = redirected = refused = 0
    for span, batch in arrays.sliced(stretches):
        # bounds of the rows' type: otherwise numpy converts all rows to the type of the bounds
        begin, end = np.searchsorted(rows, np.array([span.start, span.stop], rows.dtype))
        part_rows = rows[begin:end] - rows.dtype.type(span.start)
        status = arrays.numbers(batch, "status")[part_rows].astype(float)
        statuses.update(_status_words(batch, part_rows, status))
        errors += _errors(batch, part_rows)
        redirects = np.isin(status, REDIRECTS)
        redirected, refused = redirected + int(redirects.sum()), refused + int(np.isin(status, LOGINS).sum())
        part_targets = target[span][part_rows][redirects].astype(np.int64)
        redirects_by_target += np.bincount(part_targets + 1, minlength=len(redirects_by_target))
    redirect_counts = redirects_by_target[1:]  # without the first, of requests without a target
    main_target = int(redirect_counts.argmax()) if redirect_counts.any() else -1
    asked_again, target_name = (
        (0, None) if main_target < 0 else (int(redirect_counts[main_target]), targets[main_target])
    )
    traffic: Traffic = {
        "protocol": _called(main_protocol, port, software),
        "names": [printable(name) for name in names],
        "requests": len(rows),
        "methods": _counted(spill.count_codes(method, len(methods), rows), methods),
        "statuses": dict(statuses.most_common(show.MAX_WORDS)),
        "answers": statuses.total(),
        "errors": errors,
        "asked_again": asked_again,
        "target": target_name,
        "kind": None,
    }
    traffic["kind"] = _kind(traffic, redirected, refused)
    if traffic["kind"] == "redirect_loop" and _gap_s(stretches, rows, target == main_target) > show.MAX_LOOP_GAP_S:
        traffic["kind"] = None
    return traffic


def _gap_s(stretches: pa.Table, rows: Array, is_wanted: Array) -> float:
    """Return the median time from a response to the next request for the same target, in s."""
    wanted_rows = rows[spill.take(is_wanted, rows)]
    starts, ends = (
        np.sort(arrays.taken(stretches, name, wanted_rows).cast("int64").to_numpy()) for name in ("start", "end")
    )
    return float(np.median(starts[1:] - ends[:-1])) / 1e9 if len(wanted_rows) > 1 else 0.0


def _status_words(stretches: pa.Table, rows: Array, status: Array) -> Counter[str]:
    """Count the statuses of responses, by the protocol's word, else by number, in order of first appearance."""
    text, texts = arrays.codes(stretches, "status_text")
    text = text[rows]
    worded = [bool(word) for word in texts]
    is_worded = np.array([*worded, False])[text]
    code = np.where(is_worded | (status != status), -1.0, status)
    counts: dict[str, int] = {}
    key = np.where(is_worded, -2.0 - text, code)  # words are below -1, -1 is none, codes are never negative
    values, first, times = np.unique(key, return_index=True, return_counts=True)
    for index in np.argsort(first).tolist():
        value = int(values[index])
        if value != -1:
            word = printable(texts[-2 - value] if value < 0 else f"{value}")
            counts[word] = counts.get(word, 0) + int(times[index])
    return Counter(counts)


def _errors(stretches: pa.Table, rows: Array) -> int:
    """Count the responses that are errors in their protocol, except connections that a side reset."""
    cut, cuts = arrays.codes(stretches, "cut_by")
    was_not_reset = cut[rows] != arrays.code_of(cuts, "reset")
    return int((was_not_reset & (np.nan_to_num(arrays.numbers(stretches, "error")[rows].astype(float)) == 1)).sum())


def _counted(counts: Array, texts: list[str]) -> dict[str, int]:
    """Return the `MAX_WORDS` most frequent words with their counts."""
    order = np.argsort(-counts, kind="stable")[: show.MAX_WORDS]
    return {printable(texts[i]): int(counts[i]) for i in order.tolist() if counts[i]}


def _called(protocol: str, port: int, software: str | None) -> str:
    """Return the protocol's name; without a reader, by the server's software or its usual port."""
    if protocol != UNREAD:
        return protocol
    if software and software.upper().startswith("SSH"):
        return "SSH"
    return f"{TCP_PORTS[port]}{BY_PORT}" if port in TCP_PORTS else UNKNOWN


def _kind(traffic: Traffic, redirected: int, refused: int) -> str | None:
    """Return the kind of trouble that the responses show; None where most are fine."""
    if not traffic["answers"]:
        return None
    is_http = traffic["protocol"] in ("http", "http2")
    if traffic["errors"] and not is_http and traffic["errors"] >= show.MIN_ERROR_SHARE * traffic["answers"]:
        return "errors"
    if traffic["answers"] < show.MIN_ANSWERS:
        return None
    min_answers = show.MOST_ANSWERS_SHARE * traffic["answers"]
    if redirected >= min_answers and traffic["asked_again"] >= show.MIN_LOOP_REQUESTS:
        return "redirect_loop"
    if refused >= min_answers:
        return "logins_refused"
    return "errors" if traffic["errors"] >= min_answers else None


def sentence(traffic: Traffic, server: str) -> str | None:
    """Return the beginning of a headline about the kind of responses, where nearly all are alike; else None."""
    if traffic["kind"] is None:
        return None
    status, count = next(iter(traffic["statuses"].items()))
    kind = traffic["kind"]
    if kind == "errors" and count < show.MOST_ANSWERS_SHARE * traffic["answers"]:
        kind = "mixed_errors"
    elif kind == "errors" and traffic["answers"] == 1:
        kind = "one_error"
    target = printable(traffic["target"] or "")[: show.MAX_NAME_LETTERS]
    return words.say(
        kind,
        server=server, status=_status(traffic, status), statuses=_answers(traffic), n=count, of=traffic["answers"],
        target=target, again=traffic["asked_again"],
    )  # fmt: skip


def _status(traffic: Traffic, code: str) -> str:
    return STATUSES.get(traffic["protocol"], {}).get(code, code)


def _answers(traffic: Traffic) -> str:
    """Return words for the statuses of the responses and their counts."""
    return words.say("and_more").join(f"{n:,} x {_status(traffic, code)}" for code, n in traffic["statuses"].items())


def line(traffic: Traffic) -> str:
    """Return the line of an answer with the numbers of requests and responses."""
    requests, names = (
        words.say("turns" if has_unknown_protocol(traffic) else "requests", n=traffic["requests"]),
        traffic["names"],
    )
    sentence = "traffic" if not names else "traffic_for" if len(names) == 1 else "traffic_for_some"
    name, other_count = names[0] if names else "", len(names) - 1
    return words.joined([
        words.say(sentence, many=requests, protocol=traffic["protocol"], name=name, n=other_count),
        words.say("and_more").join(f"{n:,} {word}" for word, n in traffic["methods"].items()),
        words.say("traffic_answers", statuses=_answers(traffic)) if traffic["statuses"] else "",
    ])  # fmt: skip


def has_unknown_protocol(traffic: Traffic) -> bool:
    """Return whether no reader knows the protocol, so that a turn may not be a request."""
    return traffic["protocol"] == UNKNOWN or traffic["protocol"].endswith(BY_PORT)


def is_typed_by_person(traffic: Traffic) -> bool:
    """Return whether a person types in this protocol."""
    return _has(traffic, "person")


def is_login_only(traffic: Traffic) -> bool:
    """Return whether only the login of an interactive session is readable."""
    return _has(traffic, "person") and list(traffic["methods"]) == ["handshake"]


def is_tunnel(traffic: Traffic) -> bool:
    """Return whether the protocol carries packets of others, which are not answered here."""
    return _has(traffic, "tunnel")


def _has(traffic: Traffic, trait: str) -> bool:
    name = traffic["protocol"].removesuffix(BY_PORT).lower()
    return trait in PROTOCOLS.get(name, ()) or UNREAD_TRAITS.get(name) == trait
