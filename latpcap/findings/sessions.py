"""Who ended, or held up, a session that is meant to last? Streams, exchanges, pushes and packets in; findings out.

A broker that takes nothing more from its publishers, for want of memory or disk; two devices with one client id, each
of which throws the other out; a balancer or server that closes whatever is idle for so long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays
from latpcap.findings.evidence import called
from latpcap.findings.pushes import NOTICES, Pushed
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits import slow_requests, stream_ends
from latpcap.user_waits.cause_totals import Server, endpoint
from latpcap.user_waits.segments import segments
from latpcap.words import say

if TYPE_CHECKING:
    import pyarrow as pa

MOSTLY = 0.75
"""Of a wait, what takes this share is its reason."""
TAKEOVERS, TAKEN_NS = 3, 1_000_000_000
"""So many sessions that ended within this behind another's log-in with their id are no accident."""
ALIKE = 1.02
"""A timer ends what it ends within this of each other."""
IDLE_MS, BACK_NS = 5_000.0, 30_000_000_000
"""A session ended after a silence that lasted so long, and its client came back within this."""
WHOLE_MS, ONCE_MS = 50.0, 10_000.0
"""A silence that is whole seconds, and so much more at most, was ended by a timer; a single one of this length."""
LAST_WORDS_NS = 500_000_000
"""What a side sends so shortly before it closes announces that."""
LASTING = ("mqtt", "amqp", "stomp", "nats", "websocket", "xmpp", "irc", "imap")
"""Protocols whose connections stay open while nothing is sent."""
SWITCHED = 101
"""The status of an upgrade to WebSocket: RFC 9110 15.2.2."""


def found(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """The findings about sessions of all servers."""
    return [*_taken_over(tables), *_idled(tables), *_took_nothing(tables), *_reset_between(tables)]


def blocked(server: Server, tables: Mapping[str, pa.Table], pushed: Pushed) -> Finding | None:
    """Did this broker block its publishers? None unless it sent that while a request waited."""
    import numpy as np

    exchanges, notices = tables["exchanges"], pushed.notices()
    if notices is None or not len(server.slow):
        return None
    stream, time, frame = (arrays.numbers(notices, name) for name in ("stream", "start", "first_frame"))
    starts = arrays.equals(notices, "method", NOTICES[0])
    of, start, end = (arrays.numbers(exchanges, name)[server.slow] for name in ("stream", "start", "end"))
    hits: list[tuple[float, int, int]] = []
    for row, number, begun, ended in zip(server.slow.tolist(), of.tolist(), start.tolist(), end.tolist(), strict=True):
        mine = stream == number
        for at in np.flatnonzero(mine & starts & (time < ended)).tolist():
            over = time[mine & ~starts & (time > time[at])]
            until = min(ended, int(over.min())) if len(over) else ended
            if until - max(begun, int(time[at])) >= MOSTLY * (ended - begun):
                hits.append(((ended - begun) / NS_PER_MS, row, int(frame[at])))
                break
    if not hits:
        return None
    hits.sort()
    worst, row, first = hits[-1]
    [one] = (
        exchanges.select(["exchange", "stream", "request_first_frame", "method", "target"]).slice(row, 1).to_pylist()
    )
    values = {
        "server": server.name, "n": len(hits), "span_ms": (hits[0][0], worst), "frame": first,
        "name": called(one["method"], one["target"]),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="broker_blocked", owner="server",
        clients=len(server.clients), exchanges=len(hits), of_exchanges=len(server.rows),
        total_ms=sum(hit[0] for hit in hits), median_ms=hits[len(hits) // 2][0], max_ms=worst, harm="late",
        worst_exchange=one["exchange"], worst_stream=one["stream"], worst_ms=worst,
        worst_frames=(one["request_first_frame"], first), filter=wireshark_filter(one["stream"]),
        sentence="broker_blocked", values=values,
    )  # fmt: skip


class _Session(NamedTuple):
    """One connection: who had it, on which stream, when it logged in and when it ended, in ns."""

    client: str
    stream: int
    start: int
    end: int
    frame: int


def _taken_over(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Clients of MQTT at several addresses that log in with one client id: the broker closes the other's session."""
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    which = arrays.equals(exchanges, "protocol", "mqtt") & arrays.equals(exchanges, "method", "CONNECT")
    rows = np.flatnonzero(which)
    if len(rows) < TAKEOVERS:
        return []
    ends = ("server", "server_port", "client", "end")
    of = arrays.looked_up(streams, "stream", arrays.numbers(exchanges, "stream")[rows], ends)
    until = dict(
        zip(
            arrays.numbers(streams, "stream").tolist(),
            arrays.numbers(streams, "end").tolist(),
            strict=True,
        )
    )
    names = ("target", "stream", "request_first_frame")
    sessions: dict[tuple[str, int, str], list[_Session]] = defaultdict(list)
    start = arrays.numbers(exchanges, "start")[rows].tolist()
    columns = zip(
        *(arrays.taken(exchanges, name, rows).to_pylist() for name in names),
        strict=True,
    )
    for (target, stream, frame), (host, port, client, _), begun in zip(columns, of, start, strict=True):
        if target:
            sessions[host, port, target].append(_Session(client, stream, begun, until[stream], frame))
    made = []
    for (host, port, name), mine in sessions.items():
        mine.sort(key=lambda one: one.start)
        thrown = [(a, b) for a, b in pairwise(mine) if a.client != b.client and 0 <= a.end - b.start <= TAKEN_NS]
        if len(thrown) >= TAKEOVERS and len({old.client for old, _ in thrown}) > 1:
            made.append(_takeover((host, port), name, mine, thrown))
    return made


def _takeover(
    server: tuple[str, int],
    name: str,
    sessions: Sequence[_Session],
    thrown: Sequence[tuple[_Session, _Session]],
) -> Finding:
    away = []
    for old, _ in thrown:
        back = [one.start for one in sessions if one.client == old.client and one.start > old.end]
        away.append((min(back, default=sessions[-1].end) - old.end) / NS_PER_MS)
    lasted = sorted((old.end - old.start) / NS_PER_MS for old, _ in thrown)
    clients = sorted({old.client for old, _ in thrown})
    old, new = thrown[0]
    values = {
        "server": endpoint(*server), "id": name, "n": len(thrown), "client": clients[0], "other": clients[1],
        "lasted_ms": lasted[len(lasted) // 2], "frame": new.frame, "span_ms": (min(away), max(away)),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server[0], server_port=server[1], cause="client_id_twice", owner="client",
        clients=len(clients), client=clients[0], streams=len(thrown), of_streams=len(sessions), total_ms=sum(away),
        median_ms=sorted(away)[len(away) // 2], max_ms=max(away), harm="never", worst_stream=old.stream,
        worst_ms=max(away), worst_frames=(old.frame, new.frame), filter=wireshark_filter(old.stream),
        sentence="client_id_twice", values=values,
    )  # fmt: skip


def _idled(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Sessions that are meant to last and that the server's side closed after one and the same silence, whose clients
    came back: nobody wanted them to end.
    """
    import numpy as np

    streams, exchanges, events = (
        tables["streams"],
        tables["exchanges"],
        segments(tables),
    )
    if events is None or not exchanges.num_rows:
        return []
    lasting = arrays.equals(exchanges, "protocol", *LASTING) | slow_requests.streams(exchanges)
    lasting |= arrays.numbers(exchanges, "status").astype(float) == SWITCHED
    number = arrays.numbers(streams, "stream")
    which = np.isin(number, np.unique(arrays.numbers(exchanges, "stream")[lasting]))
    which &= arrays.equals(streams, "closed_by", "server_fin", "server_rst")
    which &= arrays.numbers(streams, "end") - arrays.numbers(streams, "start") >= IDLE_MS * NS_PER_MS
    if not which.any():
        return []
    courses = stream_ends.courses(events, number[which])
    names = ("server", "server_port", "client")
    ends = arrays.looked_up(streams, "stream", np.array(list(courses), number.dtype), names)
    groups: dict[tuple[str, int, str], list[tuple[float, int, int, int]]] = defaultdict(list)
    for (stream, course), (server, port, client) in zip(courses.items(), ends, strict=True):
        shut = course.closes(client=False)
        if shut is None:
            continue
        sent = np.flatnonzero((course.len > 1) & (course.time < course.time[shut] - LAST_WORDS_NS))
        if len(sent):
            idle = int(course.time[shut] - course.time[sent[-1]]) / NS_PER_MS
            groups[server, port, client].append((idle, stream, int(course.time[shut]), int(course.frame[shut])))
    start = _starts(streams)
    made = []
    for (server, port, client), cases in groups.items():
        silences = [case[0] for case in cases]
        later = start.get((server, port, client), [])
        next_at = [next((at for at in later if at >= shut), shut + BACK_NS + 1) for _, _, shut, _ in cases]
        gaps = [at - shut for at, (_, _, shut, _) in zip(next_at, cases, strict=True)]
        back = [gap / NS_PER_MS for gap in gaps if gap <= BACK_NS]
        once = len(cases) == 1 and (silences[0] < ONCE_MS or silences[0] % 1e3 > WHOLE_MS)
        alike = min(silences) >= IDLE_MS and max(silences) <= ALIKE * min(silences)
        if once or not alike or 2 * len(back) < len(cases):
            continue
        _, stream, _, frame = max(cases, key=lambda case: case[0])
        values = {
            "server": endpoint(server, port), "n": len(cases), "idle_ms": min(silences), "client": client,
            "frame": frame, "span_ms": (min(back), max(back)), "half_ms": min(silences) / 2,
        }  # fmt: skip
        made.append(
            Finding(
                kind="wait", server=server, server_port=port, cause="session_idled", owner="server", clients=1,
                client=client, streams=len(cases), of_streams=len(later), total_ms=max(sum(back), LIMITS["stuck_ms"]),
                median_ms=sorted(back)[len(back) // 2], max_ms=max(back), harm="late", worst_stream=stream,
                worst_ms=max(back), worst_frames=(frame,), filter=wireshark_filter(stream), sentence="session_idled",
                values=values,
            )
        )  # fmt: skip
    return made


def _took_nothing(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Whose window was closed for long while the other side had more to send, as its probes show? By server and side.

    What requests and transfers are already known to have waited for it is not counted again.
    """
    events, streams = segments(tables), tables["streams"]
    if events is None or not streams.num_rows:
        return []
    groups: dict[tuple[str, int, bool], list[tuple[float, int, bool, int, str]]] = defaultdict(list)
    key, _, often = events.noted("zero_window")
    closed = arrays.distinct(key[often > 1] >> 1)  # (each probe is answered with a closed window)
    courses = stream_ends.courses(events, closed)
    known = _known_closed(tables) if courses else {}
    names = ("server", "server_port", "client")
    ends = arrays.looked_up(streams, "stream", closed[: len(courses)], names)
    for (stream, course), (server, port, client) in zip(courses.items(), ends, strict=True):
        for by_client in (False, True):
            spans = course.closed_windows(by_client)
            if spans and 2 * known.get((stream, by_client), 0.0) < sum(span for span, _, _ in spans):
                groups[server, port, by_client] += [(*one, stream, client) for one in spans]
    return [_took_nothing_finding(*at, cases) for at, cases in groups.items()]


def _reset_between(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Connections that an RST ended while its sender went on: it was not its own. By server and side."""
    events, streams = segments(tables), tables["streams"]
    if events is None or not streams.num_rows:
        return []
    groups: dict[tuple[str, int, bool], list[tuple[float, int, int, str]]] = defaultdict(list)
    for by_client in (False, True):
        closed = arrays.equals(streams, "closed_by", "client_rst" if by_client else "server_rst")
        # (a handshake that is refused is another thing)
        closed &= arrays.numbers(streams, "client_payload_bytes") + arrays.numbers(streams, "server_payload_bytes") > 0
        number = arrays.numbers(streams, "stream")[closed]
        courses = stream_ends.courses(events, number)
        ends = arrays.looked_up(streams, "stream", number[: len(courses)], ("server", "server_port", "client"))
        for (stream, course), (server, port, client) in zip(courses.items(), ends, strict=True):
            place = course.goes_on_after_reset(by_client)
            if place is not None:
                lasted = int(course.end - course.time[0]) / NS_PER_MS
                groups[server, port, by_client].append((lasted, int(course.frame[place]), stream, client))
    made = []
    for (server, port, by_client), cases in groups.items():
        lasted, frame, stream, client = max(cases)
        who, other = (client, endpoint(server, port)) if by_client else (endpoint(server, port), client)
        values = {"who": who, "other": other, "n": len(cases), "frame": frame}
        made.append(Finding(
            kind="wait", server=server, server_port=port, cause="reset_between", owner="network",
            clients=len({case[-1] for case in cases}), client=client, streams=len(cases), of_streams=len(cases),
            total_ms=sum(case[0] for case in cases), max_ms=lasted, harm="never", worst_stream=stream,
            worst_ms=lasted, worst_frames=(frame,), filter=wireshark_filter(stream),
            sentence="reset_between", values=values,
        ))  # fmt: skip
    return made


def _known_closed(tables: Mapping[str, pa.Table]) -> dict[tuple[int, bool], float]:
    """How long, in ms, are requests and transfers known to have waited for windows? By stream and whose they are."""
    import numpy as np

    exchanges, found = tables["exchanges"], defaultdict[tuple[int, bool], float](float)
    if exchanges.num_rows:
        waited = np.nan_to_num(arrays.numbers(exchanges, "zero_window_ms").astype(float))
        rows = np.flatnonzero(waited)
        for stream, ms in zip(arrays.numbers(exchanges, "stream")[rows].tolist(), waited[rows].tolist(), strict=True):
            for by_client in (False, True):
                found[stream, by_client] += ms
    for row in tables["transfers"].to_pylist() if "transfers" in tables else ():
        if row["limited_by"].startswith("receiver"):
            found[row["stream"], row["direction"] == "to_client"] += row["duration_ms"]
    return found


def _took_nothing_finding(
    server: str, port: int, by_client: bool, cases: list[tuple[float, int, bool, int, str]]
) -> Finding:
    cases.sort()
    worst, frame, opened, stream, client = cases[-1]
    side = "client" if by_client else "server"
    values = {
        "server": endpoint(server, port), "client": client, "n": len(cases), "span_ms": (cases[0][0], worst),
        "frame": frame, "still": "" if opened else say("still_closed"),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server, server_port=port, cause="zero_window", owner=side,
        clients=len({case[-1] for case in cases}), client=client, streams=len({case[-2] for case in cases}),
        total_ms=sum(case[0] for case in cases), median_ms=cases[len(cases) // 2][0], max_ms=worst,
        harm="late" if opened else "never", worst_stream=stream, worst_ms=worst, worst_frames=(frame,),
        filter=wireshark_filter(stream), sentence=f"took_nothing_{side}", values=values,
    )  # fmt: skip


def _starts(streams: pa.Table) -> dict[tuple[str, int, str], list[int]]:
    """When connections between these ends began, in order."""
    found: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    rows = zip(*(streams[name].to_pylist() for name in ("server", "server_port", "client")), strict=True)
    begun = zip(rows, arrays.numbers(streams, "start").tolist(), strict=True)
    for key, at in sorted(begun, key=lambda one: one[1]):
        found[key].append(at)
    return found
