"""Header fields and bodies of HTTP/1 messages, read from the frames that carried them (RFC 9112).

The messages are those of `exchanges`. Heads are read from the first frames of each message; bodies, only if a filter
names them, from all frames. As in Wireshark, the fields belong to the frame that completes the message.
"""

from __future__ import annotations

import base64
import bisect
import contextlib
import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.reading.rereadable import Recorded

_MAX_HEAD_FRAMES = 12
"""Upper bound on the frames with data that are searched for a message's head."""
_HEAD_BYTES = 1 << 16
"""Upper bound on the bytes of a head."""
_BODY_BYTES = 1 << 24
"""Upper bound on the bytes of a message with its body, and of the body decompressed."""
_FIELDS = {
    "accept", "accept_encoding", "accept_language", "authorization", "cache_control", "connection",
    "content_encoding", "content_type", "cookie", "date", "last_modified", "location", "proxy_authorization",
    "referer", "server", "sec_websocket_accept", "sec_websocket_extensions", "sec_websocket_key",
    "sec_websocket_protocol", "sec_websocket_version", "proxy_authenticate", "set_cookie", "transfer_encoding",
    "upgrade", "user_agent", "www_authenticate", "x_forwarded_for",
}  # fmt: skip
NAMES = {f"http.{name}": name.replace("_", "-") for name in sorted(_FIELDS)}
"""Header by Wireshark's name of the field."""
OTHERS = {
    "http.request.version": "HTTP/1.1", "http.response.version": "HTTP/1.1",
    "http.response.phrase": "OK, Not Found ...",
    "http.request.full_uri": "http://, Host and target", "http.request.line": "a header's whole line",
    "http.response.line": "a header's whole line", "http.content_length_header": "Content-Length as text",
    "http.content_length": "Content-Length", "http.cookie_pair": "one cookie, name=value",
    "http.authbasic": "user and password of Authorization",
    "http.response_for.uri": "of an answer: its request's http.request.full_uri",
}  # fmt: skip
BODIES = {
    "http.file_data": "a body, without its chunks and unpacked", "http.chunk_data": "what a chunk carries",
    "http.chunk_boundary": "the end of a chunk's line",
}  # fmt: skip
"""Fields with bytes of a body, and their meanings."""
CHUNKS = {"http.chunk_size": "bytes of a chunk; the last has 0"}
_STATUSES_WITHOUT_BODY = {"1", "204", "304"}
"""Statuses of responses without a body; "1" stands for 1xx (RFC 9112, section 6.3)."""


def values(
    capture: Recorded, http: pa.Table, events: pa.Table, *, bodies: bool = False
) -> dict[str, list[tuple[int, Any]]]:
    """Return frame and value of each header field, and with `bodies` of each body field, by name.

    `http` is from `http.completed`.
    """
    values_of: dict[str, list[tuple[int, Any]]] = {}
    # 1. Read the payload of all frames that carry a wanted part of a message.
    messages = list(messages_of(http))
    frames = frames_of(messages, events, None if bodies else _MAX_HEAD_FRAMES)
    wanted = sorted({frame for message_frames in frames for frame in message_frames})
    from latpcap.reading.filters.dissect import values as dissected

    payloads: dict[int, bytes] = {}
    for record in capture.records(wanted):
        payloads[record.frame] = (dissected(record.data, record.link).get("tcp.payload") or [b""])[-1]
    # 2. Read each message. Pipelined messages may begin in one frame, so the search goes on after the previous one.
    searched: dict[tuple[int, bool], int] = {}
    names = ("response_in", "response_first_frame", "method")
    methods = {
        (answer, first): method
        for answer, first, method in zip(*(http[name].to_pylist() for name in names), strict=True)
    }
    for (_, is_request, first, last, start), message_frames in zip(messages, frames, strict=True):
        data = b"".join(payloads.get(frame, b"") for frame in message_frames)[: _BODY_BYTES if bodies else _HEAD_BYTES]
        offset = data.find(start, searched.get((first, is_request), 0))
        if offset < 0:
            continue
        searched[first, is_request] = offset + len(start)
        head, *after_head = re.split(rb"\r?\n\r?\n", data[offset:], maxsplit=1)
        fields = list(_head_fields(head[:_HEAD_BYTES].decode("utf-8", "replace"), is_request))
        if bodies and after_head and not _has_no_body(head, is_request, methods.get((last, first))):
            fields += _body_fields(after_head[0], dict(fields), is_request)
        for name, value in fields:
            values_of.setdefault(name, []).append((last, value))
    # 3. Add the request's URI to the responses.
    targets = dict(values_of.get("http.request.full_uri", ()))
    pairs = zip(http["request_in"].to_pylist(), http["response_in"].to_pylist(), strict=True)
    answers = [(answer, targets[request]) for request, answer in pairs if answer is not None and request in targets]
    return {**values_of, "http.response_for.uri": answers}


def _has_no_body(head: bytes, is_request: bool, method: str | None) -> bool:
    status = head.split(b" ", 2)[1:2]
    code = status[0].decode("latin-1") if status else ""
    return not is_request and (method == "HEAD" or code in _STATUSES_WITHOUT_BODY or code[:1] in _STATUSES_WITHOUT_BODY)


def _body_fields(data: bytes, head: dict[str, Any], is_request: bool) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a body; `data` may go on with the next message."""
    if "chunked" in head.get("http.transfer_encoding", "").lower():
        body = b""
        while line := re.match(rb"([0-9a-fA-F]{1,8})[^\n]*\n", data):
            size, data = int(line[1], 16), data[line.end() :]
            yield "http.chunk_size", size
            if size:
                yield "http.chunk_data", data[:size]
            body += data[:size]
            yield "http.chunk_boundary", data[size : size + 2]
            data = data[size + 2 :]
            if not size:
                break
    elif "http.content_length" in head:
        body = data[: head["http.content_length"]]
    else:
        body = b"" if is_request else data
    if head.get("http.content_encoding", "").lower() in ("gzip", "x-gzip", "deflate"):
        body = _unpacked(body)
    if body:
        yield "http.file_data", body


def _unpacked(body: bytes) -> bytes:
    """Decompress a body; return it unchanged if it is damaged."""
    for window in (47, -15):  # a header of gzip or zlib, or raw deflate
        try:
            return zlib.decompressobj(window).decompress(body, _BODY_BYTES)
        except zlib.error:
            continue
    return body


def messages_of(http: pa.Table) -> Iterator[tuple[int, bool, int, int, bytes]]:
    """Yield stream, is-request, first frame, completing frame and first bytes of each message."""
    for row in http.to_pylist():
        if row["request_in"] is not None and row["request_first_frame"] is not None:
            start = f"{row['method']} ".encode()
            yield row["stream"], True, row["request_first_frame"], row["request_in"], start
        if row["response_in"] is not None and row["response_first_frame"] is not None:
            yield row["stream"], False, row["response_first_frame"], row["response_in"], b"HTTP/1"


def data_frames(events: pa.Table, sides: set[tuple[int, bool]]) -> dict[tuple[int, bool], list[int]]:
    """Return the frames with data, without retransmissions, by stream and from-client, for the wanted `sides`."""
    by_sender: dict[tuple[int, bool], list[int]] = {}
    names = ("stream", "from_client", "frame", "len", "retransmission")
    columns = (events[name].to_pylist() for name in names)
    for stream, from_client, frame, length, is_repeat in zip(*columns, strict=True):
        if length and not is_repeat and (stream, from_client) in sides:
            by_sender.setdefault((stream, from_client), []).append(frame)
    return by_sender


def frames_of(
    messages: list[tuple[int, bool, int, int, bytes]], events: pa.Table, max_frames: int | None = None
) -> list[list[int]]:
    """Return the frames with data of each message, without retransmissions; at most the first `max_frames`."""
    by_side = data_frames(events, {(stream, is_request) for stream, is_request, *_ in messages})
    frames = []
    for stream, is_request, first, last, _ in messages:
        side = by_side.get((stream, is_request), [])
        begin = bisect.bisect_left(side, first)
        candidates = side[begin : None if max_frames is None else begin + max_frames]
        frames.append([frame for frame in candidates if frame <= last] or [first])
    return frames


def _basic(text: str) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(ValueError):
        yield "http.authbasic", base64.b64decode(text, validate=True).decode("utf-8", "replace")


def _head_fields(head: str, is_request: bool) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the fields of an HTTP head."""
    lines = re.split(r"\r?\n", head)
    if is_request:
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
        yield "http.request.line" if is_request else "http.response.line", line + "\r\n"
        lower_name = name.strip().lower()
        if lower_name.replace("-", "_") in _FIELDS:
            yield f"http.{lower_name.replace('-', '_')}", value
            if lower_name == "authorization" and value.lower().startswith("basic "):
                yield from _basic(value[6:])
            if lower_name == "cookie":
                yield from (("http.cookie_pair", pair.strip()) for pair in value.split(";"))
        elif lower_name == "content-length":
            yield "http.content_length_header", value
            if value.isdecimal() and len(value) < 19:
                yield "http.content_length", int(value)
        elif lower_name == "host" and is_request:
            yield "http.request.full_uri", target if "://" in target else f"http://{value}{target}"
