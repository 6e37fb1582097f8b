"""Header fields of HTTP/1 messages, from the bytes of the frames that carried them.

Messages come from `exchanges`; their heads are read from the first frames of each, and their fields belong to the frame
that completes the message, as in Wireshark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.reading.rereadable import Recorded

_FRAMES = 12
"""So many of a message's first data frames may carry its head."""
_HEAD_BYTES = 1 << 16
_FIELDS = {
    "accept", "accept_encoding", "accept_language", "authorization", "cache_control", "connection",
    "content_encoding", "content_type", "cookie", "date", "last_modified", "location", "proxy_authorization",
    "referer", "server", "sec_websocket_accept", "sec_websocket_extensions", "sec_websocket_key",
    "sec_websocket_protocol", "sec_websocket_version", "proxy_authenticate", "set_cookie", "transfer_encoding",
    "upgrade", "user_agent", "www_authenticate", "x_forwarded_for",
}  # fmt: skip
NAMES = {f"http.{name}": name.replace("_", "-") for name in sorted(_FIELDS)}
"""Wireshark's names of headers, and the headers."""
OTHERS = {
    "http.request.version": "HTTP/1.1", "http.response.version": "HTTP/1.1",
    "http.response.phrase": "OK, Not Found ...",
    "http.request.full_uri": "http://, Host and target", "http.request.line": "a header's whole line",
    "http.response.line": "a header's whole line", "http.content_length_header": "Content-Length as text",
    "http.content_length": "Content-Length", "http.cookie_pair": "one cookie, name=value",
    "http.response_for.uri": "of an answer: its request's http.request.full_uri",
}  # fmt: skip


def values(capture: Recorded, http: pa.Table, events: pa.Table) -> dict[str, list[tuple[int, Any]]]:
    """The frame and value of each header field, by name."""
    out: dict[str, list[tuple[int, Any]]] = {}
    messages = list(_messages(http))
    frames = _frames(messages, events)
    wanted = sorted({frame for found in frames for frame in found})
    from latpcap.reading.filters.dissect import values as dissected

    payloads: dict[int, bytes] = {}
    for record in capture.records(wanted):
        payloads[record.frame] = (dissected(record.data, record.link).get("tcp.payload") or [b""])[-1]
    used: dict[tuple[int, bool], int] = {}
    for (_, asks, first, last, start), found in zip(messages, frames, strict=True):
        data = b"".join(payloads.get(frame, b"") for frame in found)[:_HEAD_BYTES]
        at = data.find(start, used.get((first, asks), 0))
        if at < 0:
            continue
        used[first, asks] = at + len(start)
        head = re.split(rb"\r?\n\r?\n", data[at:], maxsplit=1)[0]
        for name, value in _of_head(head.decode("utf-8", "replace"), asks):
            out.setdefault(name, []).append((last, value))
    targets = dict(out.get("http.request.full_uri", ()))
    pairs = zip(http["request_in"].to_pylist(), http["response_in"].to_pylist(), strict=True)
    answers = [(answer, targets[request]) for request, answer in pairs if answer is not None and request in targets]
    return {**out, "http.response_for.uri": answers}


def _messages(http: pa.Table) -> Iterator[tuple[int, bool, int, int, bytes]]:
    """Stream, whether it asks, first frame, the frame that completes it, and how it begins."""
    for row in http.to_pylist():
        if row["request_in"] is not None and row["request_first_frame"] is not None:
            start = f"{row['method']} ".encode()
            yield row["stream"], True, row["request_first_frame"], row["request_in"], start
        if row["response_in"] is not None and row["response_first_frame"] is not None:
            yield row["stream"], False, row["response_first_frame"], row["response_in"], b"HTTP/1"


def _frames(messages: list[tuple[int, bool, int, int, bytes]], events: pa.Table) -> list[list[int]]:
    """The frames with each message's first bytes, each byte once."""
    sides = {(stream, asks) for stream, asks, *_ in messages}
    by_side: dict[tuple[int, bool], list[int]] = {}
    names = ("stream", "from_client", "frame", "len", "retransmission")
    for stream, asks, frame, length, again in zip(*(events[name].to_pylist() for name in names), strict=True):
        if length and not again and (stream, asks) in sides:
            by_side.setdefault((stream, asks), []).append(frame)
    import bisect

    out = []
    for stream, asks, first, last, _ in messages:
        side = by_side.get((stream, asks), [])
        begin = bisect.bisect_left(side, first)
        out.append([frame for frame in side[begin : begin + _FRAMES] if frame <= last] or [first])
    return out


def _of_head(head: str, asks: bool) -> Iterator[tuple[str, Any]]:
    lines = re.split(r"\r?\n", head)
    if asks:
        parts = lines[0].split(" ")
        target = parts[1] if len(parts) > 1 else ""
        if len(parts) > 2:
            yield "http.request.version", parts[-1]
    else:
        parts = lines[0].split(" ", 2)
        target = ""
        yield "http.response.version", parts[0]
        if len(parts) > 2:
            yield "http.response.phrase", parts[2]
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            continue
        value = value.strip()
        yield "http.request.line" if asks else "http.response.line", line + "\r\n"
        known = name.strip().lower()
        if known.replace("-", "_") in _FIELDS:
            yield f"http.{known.replace('-', '_')}", value
            if known == "cookie":
                yield from (("http.cookie_pair", pair.strip()) for pair in value.split(";"))
        elif known == "content-length":
            yield "http.content_length_header", value
            if value.isdecimal() and len(value) < 19:
                yield "http.content_length", int(value)
        elif known == "host" and asks:
            yield "http.request.full_uri", target if "://" in target else f"http://{value}{target}"
