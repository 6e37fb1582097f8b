"""What did the program do at its sockets, and when?

Lines of `strace -f -tt -e trace=network,write,writev,sendfile,close -p PID` (also `-ttt`, `-y`, `-yy`): which options a
connection's socket had, and when the bytes were written that left late. A trace identifies a connection by accept's or
connect's address (or by `-yy`), and a time of day without date or zone; the offset to the capture's clock is found by
the connections' own beginnings.
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
_DAY_S, _ZONE_S = 86_400.0, 900.0
_NEAR_S = 5.0
"""How far a trace's clock may be from the capture's, apart from the time zone."""
_ROUNDING_S = 1e-5
"""Traces and captures count microseconds."""
_KERNEL_MS = 1.0
"""What left within this of its write was not held: a kernel's own work, and strace's brake on the program."""


@dataclass
class _Socket:
    """A connection as a trace shows it."""

    began: float
    server: bool
    peer: tuple[str, int]
    own_port: int | None = None
    options: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    writes: list[float] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    """How many bytes were written with each of these."""


def compare(capture: HasTables, path: str | Path) -> SideSource:
    """Which options did these sockets have, and what does the trace say of the waits that the capture shows?

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
    pairs, offset = _paired(sockets, streams, starts, whole=calls[0][0] > _DAY_S)
    numbers: dict[str, Any] = {"connections": len(sockets), "matched": len(pairs), "calls": len(calls)}
    if not pairs:
        return SideSource("strace", (say("trace_none"),), numbers)
    numbers["servers"] = sorted({(streams[place]["server"], streams[place]["server_port"]) for _, place in pairs})
    sentences = [_options(pairs, numbers)]
    sentences += _dated(capture, pairs, offset, numbers)
    return SideSource("strace", tuple(sentences), numbers)


def _calls(lines: list[str]) -> Iterator[tuple[float, str, str, str, int, str]]:
    """Time, process, name, arguments, result, what stands behind it; from two lines where a process was interrupted."""
    begun: dict[str, tuple[float, str]] = {}
    for line in lines:
        found = _CALL.match(line)
        if not found:
            continue
        who, rest = found["pid"] or found["bare"] or "", found["rest"]
        when = _seconds(found["time"])
        if rest.endswith("<unfinished ...>"):
            begun[who] = when, rest.removesuffix("<unfinished ...>")
            continue
        if resumed := _RESUMED.match(rest):
            if who not in begun:
                continue
            when, first = begun.pop(who)
            rest = first.rstrip() + rest[resumed.end() :]
        if whole := _WHOLE.match(rest):
            yield when, who, whole["name"], whole["given"], int(whole["result"]), whole["behind"]


def _seconds(text: str) -> float:
    hours, *others = text.split(":")
    return float(hours) if not others else int(hours) * 3600 + int(others[0]) * 60 + float(others[1])


class _Numbers:
    """What each process's descriptors are. A thread of another number has those of the one process that has them."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, _Socket]] = {}

    def get(self, who: str, number: str) -> _Socket | None:
        held = self._held.get(number, {})
        return held.get(who) or (next(iter(held.values())) if len(held) == 1 else None)

    def put(self, who: str, number: str, socket: _Socket) -> None:
        self._held.setdefault(number, {})[who] = socket

    def drop(self, who: str, number: str) -> None:
        held = self._held.get(number, {})
        held.pop(who if who in held or len(held) != 1 else next(iter(held)), None)


def _sockets(calls: list[tuple[float, str, str, str, int, str]]) -> list[_Socket]:
    """The connections, each with its options and writes; an accepted one begins with its listener's options."""
    found: list[_Socket] = []
    numbers = _Numbers()
    fresh: dict[str, dict[str, list[tuple[float, int]]]] = {}
    for when, who, name, given, result, behind in calls:
        at = _DESCRIPTOR.match(given)
        number = at[1] if at else ""
        known = numbers.get(who, number)
        if name in ("accept", "accept4") and result >= 0 and (peer := _PEER.search(given)):
            socket = _Socket(when, True, (peer[2], int(peer[1])))
            socket.options = {option: list(values) for option, values in fresh.get(number, {}).items()}
            numbers.put(who, str(result), socket)
            fresh.pop(str(result), None)
            found.append(socket)
        elif name == "connect" and (result == 0 or "EINPROGRESS" in behind) and (peer := _PEER.search(given)):
            known = _Socket(when, False, (peer[2], int(peer[1])), options=fresh.pop(number, {}))
            numbers.put(who, number, known)
            found.append(known)
        elif name == "socket" and result >= 0:
            numbers.drop(who, str(result))
            fresh.pop(str(result), None)
        elif name == "close":
            numbers.drop(who, number)
            fresh.pop(number, None)
        elif name == "setsockopt" and result == 0 and (option := _OPTION.search(given)):
            held = known.options if known else fresh.setdefault(number, {})
            held.setdefault(option[1], []).append((when, int(option[2])))
        elif name in _WRITES and result > 0 and known:
            known.writes.append(when)
            known.written.append((known.written[-1] if known.written else 0) + result)
        if at and at[2] and known and (ends := _ENDS.search(at[2])):
            known.own_port = int(ends[2])
    return found


def _paired(
    sockets: list[_Socket], streams: list[dict[str, Any]], starts: list[float], *, whole: bool
) -> tuple[list[tuple[_Socket, int]], float]:
    """Each socket with its stream's place, and what is to be added to the trace's times."""
    places: dict[tuple[str, int], list[int]] = {}
    for place, row in enumerate(streams):
        places.setdefault((row["client"], row["client_port"]), []).append(place)
        places.setdefault((row["server"], row["server_port"]), []).append(place)
    steps = Counter(
        _step(starts[place] - socket.began, whole=whole) for socket in sockets for place in places.get(socket.peer, ())
    )
    if not steps:
        return [], 0.0
    offset = min(step for step, hits in steps.items() if hits == max(steps.values()))
    pairs: list[tuple[_Socket, int]] = []
    taken: set[int] = set()
    for socket in sockets:
        near = [
            (abs(starts[place] - socket.began - offset), place)
            for place in places.get(socket.peer, ())
            if place not in taken and (socket.own_port is None or socket.own_port in _ports(streams[place]))
        ]
        if near and min(near)[0] <= _NEAR_S:
            taken.add(min(near)[1])
            pairs.append((socket, min(near)[1]))
    return pairs, offset


def _step(apart: float, *, whole: bool) -> float:
    """A time zone and a date: whole quarters of an hour."""
    return 0.0 if whole else round(apart / _ZONE_S) * _ZONE_S


def _ports(row: dict[str, Any]) -> tuple[int, int]:
    return row["client_port"], row["server_port"]


def _options(pairs: list[tuple[_Socket, int]], numbers: dict[str, Any]) -> str:
    """What was set on the matched connections."""
    sides = {socket.server for socket, _ in pairs}
    numbers["side"] = " and ".join(word for word, side in (("client", False), ("server", True)) if side in sides)
    seen = []
    for option in ("TCP_NODELAY", "TCP_CORK", "TCP_QUICKACK"):
        states = Counter(_state(socket.options.get(option, [])) for socket, _ in pairs)
        numbers[option.lower()] = dict(states)
        if option == "TCP_NODELAY" or set(states) != {"never set"}:
            seen.append(f"{option} " + ", ".join(f"{word} ({hits:,})" for word, hits in states.most_common()))
    return say("trace_options", side=numbers["side"], n=len(pairs), options=joined(seen))


def _state(values: list[tuple[float, int]]) -> str:
    kinds = {bool(value) for _, value in values}
    return "never set" if not values else "set on and off" if len(kinds) > 1 else "on" if kinds.pop() else "off"


def _dated(
    capture: HasTables, pairs: list[tuple[_Socket, int]], offset: float, numbers: dict[str, Any]
) -> Iterator[str]:
    """Of the waits that are called the kernel's, and of the program's: when was the late segment written?"""
    import numpy as np

    causes, streams = capture.arrow("causes"), capture.arrow("streams")
    exchanges = capture.arrow("exchanges")
    stream_of = dict(
        zip(arrays.numbers(exchanges, "exchange").tolist(), arrays.numbers(exchanges, "stream").tolist(), strict=True)
    )
    number = arrays.numbers(streams, "stream")
    sockets = {int(number[place]): socket for socket, place in pairs}
    (cause, words), exchange = arrays.codes(causes, "cause"), arrays.filled(causes, "exchange", -1)
    owner, owners = arrays.codes(causes, "owner")
    start, end = (arrays.filled(causes, name, 0) for name in ("start", "end"))
    here = owner != arrays.code_of(owners, "backend")  # those are of another connection
    stalls = np.isin(cause, [code for code, word in enumerate(words) if word in _STALLS])
    frame = arrays.filled(causes, "to_frame", -1)
    table = capture.arrow("events")
    columns = (arrays.filled(table, name, 0).tolist() for name in ("frame", "from_client", "seq", "len"))
    events = {number: rest for number, *rest in zip(*columns, strict=True)}
    untraced = 0
    spent = {"held": [0.0, 0.0], "program": [0.0, 0.0]}
    for word, kind in [
        *((stall, "held") for stall in _STALLS),
        *((think, "program") for think in cause_names("server", "client")),
    ]:
        if word not in words:
            continue
        for row in np.flatnonzero((cause == words.index(word)) & here).tolist():
            socket = sockets.get(stream_of.get(int(exchange[row]), -1))
            ours = socket is not None and (owners[int(owner[row])] == "server") == socket.server
            if socket is None or ours == (word == "delayed_ack"):  # who holds an ACK lets the other side wait
                continue
            last = row  # a stall is its rows in a row: the late segment leaves at the end of the last
            while kind == "held" and last + 1 < len(cause) and start[last + 1] == end[last] and stalls[last + 1]:
                last += 1
            segment = events.get(int(frame[last]))
            if segment is None or (segment[0] == socket.server) or not segment[2]:
                continue  # it did not end with data of this side
            late = bisect.bisect_left(socket.written, segment[1])
            began, ended, left = (ns / 1e9 - offset for ns in (start[row], end[row], end[last]))
            if late == len(socket.writes) or socket.writes[late] > left + _ROUNDING_S:
                untraced += 1  # sendfile was not traced, or the connection is older than the trace
                continue
            held_ms = max(0.0, ended - max(socket.writes[late], began)) * 1e3
            total_ms = (ended - began) * 1e3
            spent[kind][0] += total_ms
            spent[kind][1] += held_ms if held_ms > _KERNEL_MS else 0.0
    (stalled, held), (thought, late_ms) = spent["held"], spent["program"]
    numbers |= {"stall_ms": stalled, "stall_held_ms": held, "program_ms": thought, "program_held_ms": late_ms}
    numbers["untraced"] = untraced
    contradicts = numbers["contradicts"] = []
    if stalled:
        share = held / stalled
        if share <= CONTRADICTS:
            contradicts.append("stall")
        yield say(f"trace_held{_verdict(share)}", spent_ms=stalled, share=share)
    if thought:
        share = 1 - late_ms / thought
        if share <= CONTRADICTS:
            contradicts.append("program")
        yield say(f"trace_late{_verdict(share)}", spent_ms=thought, share=share)


def _verdict(share: float) -> str:
    return "" if share >= CONFIRMS else "_not" if share <= CONTRADICTS else "_part"
