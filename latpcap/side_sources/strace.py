"""Compares a trace of system calls with the capture: options of sockets, and when late segments were written.

Reads lines of `strace -f -tt -e trace=network,write,writev,sendfile,close -p PID` (also `-ttt`, `-y`, `-yy`). A
connection is identified by the address of accept or connect, or by `-yy`. Times of day have neither date nor zone: the
offset to the capture's clock is estimated from the starts of the connections.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latpcap import arrays
from latpcap.errors import LatpcapError
from latpcap.lazy import np
from latpcap.side_sources.source import CONFIRMS, CONTRADICTS, SideSource, lines_of
from latpcap.tables import HasTables
from latpcap.vocabulary import cause_names
from latpcap.words import joined, say

_CALL = re.compile(
    r"^(?:\[pid +(?P<pid>\d{1,10})\] |(?P<bare>\d{1,10}) +)?(?P<time>\d\d:\d\d:\d\d\.\d{1,9}|\d{1,10}\.\d{1,9}) "
    r"(?P<rest>.*)$"
)
_WHOLE = re.compile(r"^(?P<name>\w+)\((?P<given>.*)\) += (?P<result>-?\d{1,18})(?P<behind>.*)$")
_RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>")
_DESCRIPTOR = re.compile(r"^(\d{1,9})(?:<([^>]*(?:->[^>]*)?)>)?")
_PEER = re.compile(r"sin6?_port=htons\((\d{1,5})\).*?(?:inet_addr\(\"|inet_pton\(AF_INET6, \")([^\"]+)\"")
_ENDS = re.compile(r"\[?([0-9a-fA-F.:]+?)\]?:(\d{1,5})->\[?([0-9a-fA-F.:]+?)\]?:(\d{1,5})")
_OPTION = re.compile(r"(?:SOL_TCP|IPPROTO_TCP), (TCP_NODELAY|TCP_CORK|TCP_QUICKACK), \[(\d{1,5})\]")
_WRITES = frozenset(("write", "writev", "send", "sendto", "sendmsg", "sendmmsg", "sendfile", "sendfile64", "splice"))
_STALLS = cause_names("stall")
_DAY_S = 86_400.0
_ZONE_S = 900.0
"""Time zones differ by multiples of this."""
_MAX_APART_S = 5.0
"""Upper bound on the difference between the clocks of trace and capture, apart from the time zone."""
_ROUNDING_S = 1e-5
"""Rounding of timestamps: traces and captures have microseconds."""
_KERNEL_MS = 1.0
"""A segment that left within this time of its write was not held: the kernel's own work, and the delay by strace."""


@dataclass
class _Socket:
    """A connection in the trace; times in seconds on the trace's clock."""

    began: float
    is_server: bool
    peer: tuple[str, int]
    own_port: int | None = None
    options: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    writes: list[float] = field(default_factory=list)
    """The time of each write."""
    written: list[int] = field(default_factory=list)
    """The bytes written up to and including each write."""


def compare(capture: HasTables, path: str | Path) -> SideSource:
    """Compare the options of sockets and the times of writes with the waits that the capture shows.

    LatpcapError where the file cannot be read, or no line of it is a system call with its time.
    """
    calls = list(_calls(lines_of(path)))
    if not calls:
        raise LatpcapError(
            f"{path}: has no system call with its time: trace with "
            "`strace -f -tt -e trace=network,write,writev,sendfile,close`"
        )
    sockets = _sockets(calls)
    streams = capture.arrow("streams").select(["stream", "client", "client_port", "server", "server_port"]).to_pylist()
    starts = (arrays.filled(capture.arrow("streams"), "start", 0) / 1e9).tolist()
    pairs, offset = _paired(sockets, streams, starts, has_date=calls[0][0] > _DAY_S)
    numbers: dict[str, Any] = {"connections": len(sockets), "matched": len(pairs), "calls": len(calls)}
    if not pairs:
        return SideSource("strace", (say("trace_none"),), numbers)
    numbers["servers"] = sorted({(streams[row]["server"], streams[row]["server_port"]) for _, row in pairs})
    sentences = [_options(pairs, numbers)]
    sentences += _dated(capture, pairs, offset, numbers)
    return SideSource("strace", tuple(sentences), numbers)


def _calls(lines: list[str]) -> Iterator[tuple[float, str, str, str, int, str]]:
    """Yield calls as time, process, name, arguments, result, text after the result; interrupted calls are joined."""
    begun: dict[str, tuple[float, str]] = {}
    for line in lines:
        call = _CALL.match(line)
        if not call:
            continue
        process, rest = call["pid"] or call["bare"] or "", call["rest"]
        when = _seconds(call["time"])
        if rest.endswith("<unfinished ...>"):
            begun[process] = when, rest.removesuffix("<unfinished ...>")
            continue
        if resumed := _RESUMED.match(rest):
            if process not in begun:
                continue
            when, first = begun.pop(process)
            rest = first.rstrip() + rest[resumed.end() :]
        if whole := _WHOLE.match(rest):
            yield when, process, whole["name"], whole["given"], int(whole["result"]), whole["behind"]


def _seconds(text: str) -> float:
    hours, *others = text.split(":")
    return float(hours) if not others else int(hours) * 3600 + int(others[0]) * 60 + float(others[1])


class _Descriptors:
    """The sockets of each process by file descriptor.

    Threads share descriptors but have another pid: a descriptor that one process has is found for all.
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[str, _Socket]] = {}

    def get(self, process: str, number: str) -> _Socket | None:
        by_process = self._held.get(number, {})
        return by_process.get(process) or (next(iter(by_process.values())) if len(by_process) == 1 else None)

    def put(self, process: str, number: str, socket: _Socket) -> None:
        self._held.setdefault(number, {})[process] = socket

    def drop(self, process: str, number: str) -> None:
        by_process = self._held.get(number, {})
        by_process.pop(process if process in by_process or len(by_process) != 1 else next(iter(by_process)), None)


def _sockets(calls: list[tuple[float, str, str, str, int, str]]) -> list[_Socket]:
    """Return the connections, each with its options and writes; an accepted one inherits its listener's options."""
    sockets: list[_Socket] = []
    descriptors = _Descriptors()
    fresh: dict[str, dict[str, list[tuple[float, int]]]] = {}
    for when, process, name, given, result, behind in calls:
        at = _DESCRIPTOR.match(given)
        number = at[1] if at else ""
        open_socket = descriptors.get(process, number)
        if name in ("accept", "accept4") and result >= 0 and (peer := _PEER.search(given)):
            socket = _Socket(when, True, (peer[2], int(peer[1])))
            socket.options = {option: list(values) for option, values in fresh.get(number, {}).items()}
            descriptors.put(process, str(result), socket)
            fresh.pop(str(result), None)
            sockets.append(socket)
        elif name == "connect" and (result == 0 or "EINPROGRESS" in behind) and (peer := _PEER.search(given)):
            open_socket = _Socket(when, False, (peer[2], int(peer[1])), options=fresh.pop(number, {}))
            descriptors.put(process, number, open_socket)
            sockets.append(open_socket)
        elif name == "socket" and result >= 0:
            descriptors.drop(process, str(result))
            fresh.pop(str(result), None)
        elif name == "close":
            descriptors.drop(process, number)
            fresh.pop(number, None)
        elif name == "setsockopt" and result == 0 and (option := _OPTION.search(given)):
            options = open_socket.options if open_socket else fresh.setdefault(number, {})
            options.setdefault(option[1], []).append((when, int(option[2])))
        elif name in _WRITES and result > 0 and open_socket:
            open_socket.writes.append(when)
            open_socket.written.append((open_socket.written[-1] if open_socket.written else 0) + result)
        if at and at[2] and open_socket and (ends := _ENDS.search(at[2])):
            open_socket.own_port = int(ends[2])
    return sockets


def _paired(
    sockets: list[_Socket], streams: list[dict[str, Any]], starts: list[float], *, has_date: bool
) -> tuple[list[tuple[_Socket, int]], float]:
    """Return each socket with the position of its stream, and the offset to add to the trace's times."""
    rows_of_end: dict[tuple[str, int], list[int]] = {}
    for number, stream in enumerate(streams):
        rows_of_end.setdefault((stream["client"], stream["client_port"]), []).append(number)
        rows_of_end.setdefault((stream["server"], stream["server_port"]), []).append(number)
    steps = Counter(
        _step(starts[stream_row] - socket.began, has_date=has_date)
        for socket in sockets
        for stream_row in rows_of_end.get(socket.peer, ())
    )
    if not steps:
        return [], 0.0
    offset = min(step for step, hits in steps.items() if hits == max(steps.values()))
    pairs: list[tuple[_Socket, int]] = []
    paired: set[int] = set()
    for socket in sockets:
        nearby = [
            (abs(starts[stream_row] - socket.began - offset), stream_row)
            for stream_row in rows_of_end.get(socket.peer, ())
            if stream_row not in paired and (socket.own_port is None or socket.own_port in _ports(streams[stream_row]))
        ]
        if nearby and min(nearby)[0] <= _MAX_APART_S:
            paired.add(min(nearby)[1])
            pairs.append((socket, min(nearby)[1]))
    return pairs, offset


def _step(difference_s: float, *, has_date: bool) -> float:
    """Return the difference of clocks by time zone, a multiple of 15 minutes; 0 for times since 1970 (`has_date`)."""
    return 0.0 if has_date else round(difference_s / _ZONE_S) * _ZONE_S


def _ports(row: dict[str, Any]) -> tuple[int, int]:
    return row["client_port"], row["server_port"]


def _options(pairs: list[tuple[_Socket, int]], numbers: dict[str, Any]) -> str:
    """Return the sentence about the options that were set on the matched connections."""
    sides = {socket.is_server for socket, _ in pairs}
    numbers["side"] = " and ".join(word for word, side in (("client", False), ("server", True)) if side in sides)
    phrases = []
    for option in ("TCP_NODELAY", "TCP_CORK", "TCP_QUICKACK"):
        states = Counter(_state(socket.options.get(option, [])) for socket, _ in pairs)
        numbers[option.lower()] = dict(states)
        if option == "TCP_NODELAY" or set(states) != {"never set"}:
            phrases.append(f"{option} " + ", ".join(f"{word} ({hits:,})" for word, hits in states.most_common()))
    return say("trace_options", side=numbers["side"], n=len(pairs), options=joined(phrases))


def _state(values: list[tuple[float, int]]) -> str:
    kinds = {bool(value) for _, value in values}
    return "never set" if not values else "set on and off" if len(kinds) > 1 else "on" if kinds.pop() else "off"


def _dated(
    capture: HasTables, pairs: list[tuple[_Socket, int]], offset: float, numbers: dict[str, Any]
) -> Iterator[str]:
    """Yield sentences about when late segments were written: for waits of the kernel, and for those of the program."""
    spent, untraced = _times_after_write(capture, pairs, offset)
    (stall_ms, held_ms), (program_ms, late_ms) = spent["held"], spent["program"]
    numbers |= {"stall_ms": stall_ms, "stall_held_ms": held_ms, "program_ms": program_ms, "program_held_ms": late_ms}
    numbers["untraced"] = untraced
    contradicts = numbers["contradicts"] = []
    if stall_ms:
        share = held_ms / stall_ms
        if share <= CONTRADICTS:
            contradicts.append("stall")
        yield say(f"trace_held{_verdict(share)}", spent_ms=stall_ms, share=share)
    if program_ms:
        share = 1 - late_ms / program_ms
        if share <= CONTRADICTS:
            contradicts.append("program")
        yield say(f"trace_late{_verdict(share)}", spent_ms=program_ms, share=share)


def _times_after_write(
    capture: HasTables, pairs: list[tuple[_Socket, int]], offset: float
) -> tuple[dict[str, list[float]], int]:
    """Return for "held" and "program" waits their ms and those after the write; and the number without a write."""
    causes, streams = capture.arrow("causes"), capture.arrow("streams")
    exchanges = capture.arrow("exchanges")
    stream_of = dict(
        zip(arrays.numbers(exchanges, "exchange").tolist(), arrays.numbers(exchanges, "stream").tolist(), strict=True)
    )
    number = arrays.numbers(streams, "stream")
    sockets = {int(number[row]): socket for socket, row in pairs}
    (cause, words), exchange = arrays.codes(causes, "cause"), arrays.filled(causes, "exchange", -1)
    owner, owners = arrays.codes(causes, "owner")
    start, end = (arrays.filled(causes, name, 0) for name in ("start", "end"))
    is_own = owner != arrays.code_of(owners, "backend")  # time of a backend is on another connection
    stalls = np.isin(cause, [code for code, word in enumerate(words) if word in _STALLS])
    frame = arrays.filled(causes, "to_frame", -1)
    table = capture.arrow("events")
    columns = (arrays.filled(table, name, 0).tolist() for name in ("frame", "from_client", "seq", "len"))
    events = {number: values for number, *values in zip(*columns, strict=True)}
    untraced = 0
    spent = {"held": [0.0, 0.0], "program": [0.0, 0.0]}
    for word, kind in [
        *((stall, "held") for stall in _STALLS),
        *((think, "program") for think in cause_names("server", "client")),
    ]:
        if word not in words:
            continue
        for row in np.flatnonzero((cause == words.index(word)) & is_own).tolist():
            socket = sockets.get(stream_of.get(int(exchange[row]), -1))
            is_own_side = socket is not None and (owners[int(owner[row])] == "server") == socket.is_server
            if socket is None or is_own_side == (word == "delayed_ack"):  # a held ACK delays the other side's data
                continue
            last = row  # a stall may have several rows: the late segment leaves at the end of the last one
            while kind == "held" and last + 1 < len(cause) and start[last + 1] == end[last] and stalls[last + 1]:
                last += 1
            segment = events.get(int(frame[last]))
            if segment is None or (segment[0] == socket.is_server) or not segment[2]:
                continue  # it did not end with data of this side
            write_row = bisect.bisect_left(socket.written, segment[1])
            began, ended, left_s = (ns / 1e9 - offset for ns in (start[row], end[row], end[last]))
            if write_row == len(socket.writes) or socket.writes[write_row] > left_s + _ROUNDING_S:
                untraced += 1  # sendfile was not traced, or the connection is older than the trace
                continue
            held_ms = max(0.0, ended - max(socket.writes[write_row], began)) * 1e3
            total_ms = (ended - began) * 1e3
            spent[kind][0] += total_ms
            spent[kind][1] += held_ms if held_ms > _KERNEL_MS else 0.0
    return spent, untraced


def _verdict(share: float) -> str:
    return "" if share >= CONFIRMS else "_not" if share <= CONTRADICTS else "_part"
