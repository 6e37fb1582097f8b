"""Count the requests and responses that tshark finds in a stream, from the fields of its dissectors.

`ORACLES` names for each protocol its dissector, the fields to request, and the function that counts them. Only Redis is
counted from the bytes of both sides, by `resp`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

Fields = dict[str, list[str]]
Segments = list[tuple[bool, Fields]]
"""The segments of one stream in order: whether the client sent it, and tshark's fields."""
Counts = tuple[int, int]
"""Numbers of requests and responses."""


def either(requests: Callable[[Fields], int], responses: Callable[[Fields], int]) -> Callable[[Segments], Counts]:
    """Count requests and responses of both sides."""
    return lambda segments: (
        sum(requests(fields) for _, fields in segments),
        sum(responses(fields) for _, fields in segments),
    )


def both(requests_in: Callable[[Fields], int], responses_in: Callable[[Fields], int]) -> Callable[[Segments], Counts]:
    """Count requests of the client and responses of the server, at most one per request so far.

    Other messages of the server are not responses: a greeting, a response to a request before the capture, further
    lines of a response with several codes.
    """

    def count(segments: Segments) -> Counts:
        requests = answers = 0
        for client, fields in segments:
            if client:
                requests += requests_in(fields)
            else:
                answers = min(requests, answers + responses_in(fields))
        return requests, answers

    return count


def apart(requests: Callable[[Fields], int], responses: Callable[[Fields], int]) -> Callable[[Segments], Counts]:
    """Count requests of the client and responses of the server, without relating them."""
    return lambda segments: (
        sum(requests(fields) for client, fields in segments if client),
        sum(responses(fields) for client, fields in segments if not client),
    )


def values(name: str, *wanted: str, but: tuple[str, ...] = ()) -> Callable[[Fields], int]:
    """Count the values of a field that are in `wanted`, or without `wanted` those that are not in `but`."""
    return lambda fields: sum(v in wanted if wanted else v not in but for v in fields[name])


def added(*counts: Callable[[Fields], int]) -> Callable[[Fields], int]:
    return lambda fields: sum(count(fields) for count in counts)


def final(name: str) -> Callable[[Fields], int]:
    """Count the final status codes: all but 1xx, and 101."""
    return lambda fields: sum(not v.startswith("1") or v == "101" for v in fields[name])


def http2(segments: Segments) -> Counts:
    """Count without pushed resources, which have a request (the promise) and a status of their own."""
    pushed = sum(len(fields["http2.push_promise.promised_stream_id"]) for _, fields in segments)
    requests = sum(len(fields["http2.headers.method"]) for _, fields in segments)
    return requests - pushed, sum(final("http2.headers.status")(fields) for _, fields in segments) - pushed


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
    requests = responses = 0
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
                    requests += 1
                if word in {"Execute", "Sync", "Flush"}:
                    prepares = False
                if word in {"Sync", "Simple query"}:
                    group.clear()
            elif waiting and word in PG_ENDS[waiting[0]]:
                responses += 1
                waiting.pop(0)
    return requests, responses


def imap(segments: Segments) -> Counts:
    """Count by tags, since tshark shows the lines of a literal and DONE as commands."""
    request_tags: set[str] = set()
    answered_tags: set[str] = set()
    for client, fields in segments:
        if client:
            request_tags |= set(fields["imap.request_tag"])
        else:
            answered_tags |= set(fields["imap.response_tag"]) & request_tags
    # a word at a line's beginning in a mail's text is not a tag that the server knows
    return len(answered_tags), len(answered_tags)


RESP_PUSHES = {b"message", b"pmessage", b"smessage", b"invalidate"}
RESP_CHANNELS = re.compile(rb"[sp]?(un)?subscribe", re.IGNORECASE)


def resp_values(text: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield type and lines of each top-level value."""
    offset = 0
    open_counts: list[int] = []
    reply_type, lines = b"", list[bytes]()
    while (end := text.find(b"\r\n", offset)) >= 0:
        head, line = text[offset : offset + 1], text[offset + 1 : end]
        offset = end + 2
        if not open_counts:
            reply_type, lines = head, []
        if head in b"*~>%" and line.isdigit() and int(line):
            open_counts.append(int(line) * (2 if head == b"%" else 1))
            continue
        if head in b"$=!" and line.isdigit():
            line, offset = text[offset : offset + int(line)], offset + int(line) + 2
        lines.append(line)
        while open_counts:
            open_counts[-1] -= 1
            if open_counts[-1]:
                break
            open_counts.pop()
        if not open_counts:
            yield reply_type, lines


def resp(client_bytes: bytes, server_bytes: bytes) -> Counts:
    """Count commands and replies. A subscription has a reply per channel; pushed messages are not replies."""
    commands = [lines for _, lines in resp_values(client_bytes)]
    replies = list(resp_values(server_bytes))
    pushed = sum(
        (reply_type in b"*>" and lines[0] in RESP_PUSHES)
        or (reply_type == b"+" and re.match(rb"\d{9,}\.\d+ \[", lines[0]) is not None)
        for reply_type, lines in replies
    )
    reply_lines = [lines for _, lines in replies]
    channels = [sum(bool(RESP_CHANNELS.fullmatch(lines[0])) for lines in side) for side in (commands, reply_lines)]
    return len(commands), min(len(commands), len(replies) - pushed - channels[1] + channels[0])


def mongodb(segments: Segments) -> Counts:
    """Count messages. A client's message with "more to come" has no response, a server's is followed by another one."""
    requests = sum(
        values("mongo.response_to", "0x00000000")(fields) - values("mongo.msg.flags.moretocome", "1")(fields)
        for client, fields in segments
        if client
    )
    return requests, sum(len(fields["mongo.response_to"]) for client, fields in segments if not client)


def smtp(segments: Segments) -> Counts:
    """Count commands, and the content after each 354. A 334 requests more of a log-in and is not a response."""
    requests = responses = 0
    for client, fields in segments:
        if client:
            requests += max(len(fields["smtp.req.command"]), len(fields["smtp.command_line"]))
            continue
        for code in fields["smtp.response.code"]:
            responses = min(requests, responses + (code != "334"))
            requests += code == "354"
    return requests, responses


MYSQL_SILENT = ("1", "24", "25")
"""Commands without a response: quit, send long data, close a statement."""
AMQP_ASKS = {("20", "10"), ("20", "40"), ("40", "10"), ("40", "20"), ("60", "10"), ("60", "20"), ("60", "30")} | {
    *(("50", method) for method in ("10", "20", "30", "40", "50")),
    *(("90", method) for method in ("10", "20", "30")),
    ("10", "50"),
    ("60", "70"),
    ("85", "10"),
}
AMQP_ANSWERS = {(class_id, str(int(method) + 1)) for class_id, method in AMQP_ASKS} | {("60", "72")}


AMQP_CONFIRMS = {("60", "80"), ("60", "120")}
AMQP_FIELDS = ("channel", "method.class", "method.method", "method.arguments.delivery_tag", "method.arguments.multiple")


def amqp(segments: Segments) -> Counts:
    """Methods and their "-ok", or the channel's end in its place; each publish that the server confirms, by its tag or
    with all before it.
    """
    requests = responses = 0
    last: Counter[str] = Counter()
    for client, fields in segments:
        channels, *method_fields, tags, multiple_flags = (fields[f"amqp.{name}"] for name in AMQP_FIELDS)
        methods = list(zip(*method_fields, strict=False))
        if client:
            requests += sum(method in AMQP_ASKS for method in methods)
            continue
        responses += sum(method in AMQP_ANSWERS or method == ("20", "40") for method in methods)
        if not set(methods) <= AMQP_CONFIRMS:
            continue
        for channel, tag, multiple in zip(channels, map(int, tags), multiple_flags, strict=False):
            confirmed = max(1, tag - last[channel]) if multiple == "1" else 1
            last[channel] = tag
            requests += confirmed
            responses += confirmed
    return requests, responses


AMQP_TAGGED = {("60", "60"), ("60", "71"), ("60", "80"), ("60", "90"), ("60", "120")}


class Oracle(NamedTuple):
    dissector: str
    """For `-d`; none where tshark finds it by itself."""
    fields: tuple[str, ...]
    count: Callable[[Segments], Counts]


def lines(dissector: str, request_field: str, response_field: str, *interim: str) -> Oracle:
    """An oracle for a protocol of command lines and responses with codes."""
    count = both(values(request_field), values(response_field, but=interim))
    return Oracle(dissector, (request_field, response_field), count)


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
    "mongodb": Oracle("mongo", ("mongo.response_to", "mongo.msg.flags.moretocome"), mongodb),
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
    "smtp": Oracle("smtp", ("smtp.req.command", "smtp.command_line", "smtp.response.code"), smtp),
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
            # "pending" is not the final response
            lambda fields: (
                values("smb2.flags.response", "1")(fields)
                + values("smb.flags.response", "1")(fields)
                - values("smb2.nt_status", "0x00000103")(fields)
            ),
        ),
    ),
    "rpc": Oracle("rpc", ("rpc.msgtyp",), either(values("rpc.msgtyp", "0"), values("rpc.msgtyp", "1"))),
    "sip": Oracle(
        "sip", ("sip.Method", "sip.Status-Code"), either(values("sip.Method", but=("ACK",)), final("sip.Status-Code"))
    ),
    "rtsp": Oracle("rtsp", ("rtsp.method", "rtsp.status"), either(values("rtsp.method"), final("rtsp.status"))),
    "modbus": Oracle("mbtcp", ("modbus.func_code",), both(values("modbus.func_code"), values("modbus.func_code"))),
}
