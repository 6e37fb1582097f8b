"""Findings about long-lived connections that were ended or held up.

Brokers that block their publishers; MQTT devices that share a client id; idle time-outs of servers and balancers;
receive windows that stay closed; RSTs that a middlebox forged. Reads streams, exchanges, pushes and packets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from latpcap import arrays
from latpcap.findings.evidence import called, request, wait_finding
from latpcap.findings.pushes import NOTICES, Pushed
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits import slow_requests, stream_ends
from latpcap.user_waits.segments import segments
from latpcap.user_waits.servers import Server
from latpcap.words import say

MIN_BLOCKED_SHARE = 0.75
"""Smallest share of a request's latency during which the broker blocked for that to be its cause."""
MIN_TAKEOVERS = 3
"""Fewest sessions that ended soon after another login with their client id."""
MAX_TAKEOVER_NS = 1_000_000_000
"""Longest time from that login to the session's end."""
MAX_IDLE_RATIO = 1.02
"""Largest ratio of two silences that one timer ended."""
MIN_IDLE_MS = 5_000.0
"""Shortest silence that ends a session."""
MAX_RETURN_NS = 30_000_000_000
"""Longest time until the client reconnects."""
MIN_SINGLE_IDLE_MS = 10_000.0
"""Shortest silence after which a single close shows a timer."""
MAX_TIMER_DELAY_MS = 50.0
"""Longest time past a whole second at which a single close shows a timer."""
CLOSE_NOTICE_NS = 500_000_000
"""A segment sent at most this long before the close announces it (a TLS alert, a WebSocket close): not counted."""
LONG_LIVED = ("mqtt", "amqp", "stomp", "nats", "websocket", "xmpp", "irc", "imap")
"""Protocols whose connections stay open while nothing is sent."""
SWITCHING_PROTOCOLS = 101
"""HTTP status of an upgrade to WebSocket (RFC 9110 section 15.2.2)."""


def find(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Return the findings about sessions of all servers."""
    return [*_shared_client_ids(tables), *_idle_timeouts(tables), *_closed_windows(tables), *_forged_resets(tables)]


def blocked(server: Server, tables: Mapping[str, pa.Table], pushed: Pushed) -> Finding | None:
    """Find a broker that blocked its publishers (AMQP connection.blocked) during most of a slow request."""
    stretches, notices = tables["stretches"], pushed.notices()
    if notices is None or not len(server.slow):
        return None
    stream, time, frame = (arrays.numbers(notices, name) for name in ("stream", "start", "first_frame"))
    is_start = arrays.equals(notices, "method", NOTICES[0])
    streams, start, end = (arrays.numbers(stretches, name)[server.slow] for name in ("stream", "start", "end"))
    hits: list[tuple[float, int, int]] = []
    for row, number, start_ns, end_ns in zip(
        server.slow.tolist(), streams.tolist(), start.tolist(), end.tolist(), strict=True
    ):
        same_stream = stream == number
        for notice_row in np.flatnonzero(same_stream & is_start & (time < end_ns)).tolist():
            unblocked = time[same_stream & ~is_start & (time > time[notice_row])]
            resumed = min(end_ns, int(unblocked.min())) if len(unblocked) else end_ns
            if resumed - max(start_ns, int(time[notice_row])) >= MIN_BLOCKED_SHARE * (end_ns - start_ns):
                hits.append(((end_ns - start_ns) / NS_PER_MS, row, int(frame[notice_row])))
                break
    if not hits:
        return None
    hits.sort()
    worst, row, notice_frame = hits[-1]
    blocked_request = request(stretches, row)
    values = {
        "server": server.name, "n": len(hits), "span_ms": (hits[0][0], worst), "frame": notice_frame,
        "name": called(blocked_request["method"], blocked_request["target"]),
    }  # fmt: skip
    return wait_finding(
        server, blocked_request, worst, "broker_blocked", values, clients=len(server.clients), exchanges=len(hits),
        total_ms=sum(hit[0] for hit in hits), median_ms=hits[len(hits) // 2][0],
        worst_frames=(blocked_request["request_first_frame"], notice_frame),
    )  # fmt: skip


class _Session(NamedTuple):
    """One MQTT connection: the client's address, and when it logged in and ended, in ns; `frame` is its CONNECT."""

    client: str
    stream: int
    start: int
    end: int
    frame: int


def _shared_client_ids(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """Find MQTT clients at several addresses that log in with one client id.

    The broker closes the older session at each login (rule MQTT-3.1.4-2 of MQTT 3.1.1), and its client logs in again.
    """
    stretches, streams = tables["stretches"], tables["streams"]
    is_connect = arrays.equals(stretches, "protocol", "mqtt") & arrays.equals(stretches, "method", "CONNECT")
    rows = np.flatnonzero(is_connect)
    if len(rows) < MIN_TAKEOVERS:
        return
    columns = ("server", "server_port", "client")
    endpoints = arrays.looked_up(streams, "stream", arrays.numbers(stretches, "stream")[rows], columns)
    ends_ns = dict(zip(*(arrays.numbers(streams, name).tolist() for name in ("stream", "end")), strict=True))
    names = ("target", "stream", "request_first_frame")
    sessions: dict[tuple[str, int, str], list[_Session]] = defaultdict(list)
    start = arrays.numbers(stretches, "start")[rows].tolist()
    logins = zip(*(arrays.taken(stretches, name, rows).to_pylist() for name in names), strict=True)
    for (target, stream, frame), (host, port, client), start_ns in zip(logins, endpoints, start, strict=True):
        if target:
            sessions[host, port, target].append(_Session(client, stream, start_ns, ends_ns[stream], frame))
    for (host, port, name), sessions_of_id in sessions.items():
        sessions_of_id.sort(key=lambda session: session.start)
        ended = [
            (old, new)
            for old, new in pairwise(sessions_of_id)
            if old.client != new.client and 0 <= old.end - new.start <= MAX_TAKEOVER_NS
        ]
        if len(ended) >= MIN_TAKEOVERS and len({old.client for old, _ in ended}) > 1:
            yield _takeover_finding((host, port), name, sessions_of_id, ended)


def _takeover_finding(
    server: tuple[str, int], name: str, sessions: Sequence[_Session], ended: Sequence[tuple[_Session, _Session]]
) -> Finding:
    """Return the finding of one client id; `ended`: each session that another login ended, with that login."""
    away_ms = []
    for old, _ in ended:
        returns = [session.start for session in sessions if session.client == old.client and session.start > old.end]
        away_ms.append((min(returns, default=sessions[-1].end) - old.end) / NS_PER_MS)
    durations_ms = sorted((old.end - old.start) / NS_PER_MS for old, _ in ended)
    clients = sorted({old.client for old, _ in ended})
    old, new = ended[0]
    values = {
        "server": endpoint(*server), "id": name, "n": len(ended), "client": clients[0], "other": clients[1],
        "lasted_ms": durations_ms[len(durations_ms) // 2], "frame": new.frame, "span_ms": (min(away_ms), max(away_ms)),
    }  # fmt: skip
    return Finding.wait(
        server, "client_id_twice", "client", "never", away_ms, values, clients=len(clients), client=clients[0],
        streams=len(ended), of_streams=len(sessions), worst_stream=old.stream, worst_frames=(old.frame, new.frame),
        filter=wireshark_filter(old.stream),
    )  # fmt: skip


class _IdleClose(NamedTuple):
    """A session that its server closed, after `idle_ms` without data."""

    idle_ms: float
    stream: int
    end: int
    """When it was closed, in ns."""
    frame: int


def _idle_timeouts(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find long-lived sessions that the server closed after equal silences and whose clients reconnected.

    The reconnects show that the client did not want the session to end: a server or balancer timed it out.
    """
    streams, stretches, events = tables["streams"], tables["stretches"], segments(tables)
    if events is None or not stretches.num_rows:
        return []
    long_lived = arrays.equals(stretches, "protocol", *LONG_LIVED) | slow_requests.event_streams(stretches)
    long_lived |= arrays.numbers(stretches, "status").astype(float) == SWITCHING_PROTOCOLS
    number = arrays.numbers(streams, "stream")
    candidates = np.isin(number, np.unique(arrays.numbers(stretches, "stream")[long_lived]))
    candidates &= arrays.equals(streams, "closed_by", "server_fin", "server_rst")
    candidates &= arrays.numbers(streams, "end") - arrays.numbers(streams, "start") >= MIN_IDLE_MS * NS_PER_MS
    if not candidates.any():
        return []
    courses = stream_ends.courses(events, number[candidates])
    names = ("server", "server_port", "client")
    endpoints = arrays.looked_up(streams, "stream", np.array(list(courses), number.dtype), names)
    groups: dict[tuple[str, int, str], list[_IdleClose]] = defaultdict(list)
    for (stream, course), (server, port, client) in zip(courses.items(), endpoints, strict=True):
        close = course.closes(client=False)
        if close is None:
            continue
        data = np.flatnonzero((course.len > 1) & (course.time < course.time[close] - CLOSE_NOTICE_NS))
        if len(data):
            idle_ms = int(course.time[close] - course.time[data[-1]]) / NS_PER_MS
            idle_close = _IdleClose(idle_ms, stream, int(course.time[close]), int(course.frame[close]))
            groups[server, port, client].append(idle_close)
    starts = _starts(streams)
    findings = (_idle_finding(*key, closes, starts.get(key, [])) for key, closes in groups.items())
    return [finding for finding in findings if finding is not None]


def _idle_finding(
    server: str, port: int, client: str, closes: Sequence[_IdleClose], starts: Sequence[int]
) -> Finding | None:
    """Return the finding of one client and server, if one timer closed their sessions; `starts`: of all of them."""
    returns = [next((start - close.end for start in starts if start >= close.end), None) for close in closes]
    returns_ms = [ns / NS_PER_MS for ns in returns if ns is not None and ns <= MAX_RETURN_NS]
    shortest, longest = (
        min(close.idle_ms for close in closes),
        max(closes, key=lambda close: close.idle_ms),
    )
    lacks_timer = len(closes) == 1 and (shortest < MIN_SINGLE_IDLE_MS or shortest % 1e3 > MAX_TIMER_DELAY_MS)
    are_equal = shortest >= MIN_IDLE_MS and longest.idle_ms <= MAX_IDLE_RATIO * shortest
    if lacks_timer or not are_equal or 2 * len(returns_ms) < len(closes):
        return None
    values = {
        "server": endpoint(server, port), "n": len(closes), "idle_ms": shortest, "client": client,
        "frame": longest.frame, "span_ms": (min(returns_ms), max(returns_ms)), "half_ms": shortest / 2,
    }  # fmt: skip
    return Finding.wait(
        (server, port), "session_idled", "server", "late", returns_ms, values, clients=1, client=client,
        streams=len(closes), of_streams=len(starts), total_ms=max(sum(returns_ms), LIMITS["stuck_ms"]),
        worst_stream=longest.stream, worst_frames=(longest.frame,), filter=wireshark_filter(longest.stream),
    )  # fmt: skip


class _ClosedWindow(NamedTuple):
    """A receiver's window that stayed closed."""

    closed_ms: float
    frame: int
    has_opened: bool
    """Whether it opened again."""
    stream: int
    client: str


class _ForgedReset(NamedTuple):
    """A connection that an RST ended although its apparent sender went on."""

    lasted_ms: float
    frame: int
    stream: int
    client: str


def _closed_windows(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find receivers whose window stayed closed while the sender had more data (it probed), by server and side.

    Streams whose requests and transfers already account for at least half of that time are left out.
    """
    events, streams = segments(tables), tables["streams"]
    if events is None or not streams.num_rows:
        return []
    groups: dict[tuple[str, int, bool], list[_ClosedWindow]] = defaultdict(list)
    key, _, counts = events.noted("zero_window")
    closed = arrays.distinct(key[counts > 1] >> 1)  # each window probe is answered with a closed window again
    courses = stream_ends.courses(events, closed)
    accounted_ms = _accounted_closed_ms(tables) if courses else {}
    names = ("server", "server_port", "client")
    endpoints = arrays.looked_up(streams, "stream", closed[: len(courses)], names)
    for (stream, course), (server, port, client) in zip(courses.items(), endpoints, strict=True):
        for by_client in (False, True):
            spans = course.closed_windows(by_client)
            if spans and 2 * accounted_ms.get((stream, by_client), 0.0) < sum(span for span, _, _ in spans):
                groups[server, port, by_client] += [_ClosedWindow(*span, stream, client) for span in spans]
    return [_closed_window_finding(*key, cases) for key, cases in groups.items()]


def _forged_resets(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """Find connections that an RST ended although its apparent sender went on: a middlebox sent it."""
    events, streams = segments(tables), tables["streams"]
    if events is None or not streams.num_rows:
        return
    groups: dict[tuple[str, int, bool], list[_ForgedReset]] = defaultdict(list)
    for by_client in (False, True):
        closed = arrays.equals(streams, "closed_by", "client_rst" if by_client else "server_rst")
        # connections with data only: a refused handshake is another finding
        closed &= arrays.numbers(streams, "client_payload_bytes") + arrays.numbers(streams, "server_payload_bytes") > 0
        number = arrays.numbers(streams, "stream")[closed]
        courses = stream_ends.courses(events, number)
        endpoints = arrays.looked_up(streams, "stream", number[: len(courses)], ("server", "server_port", "client"))
        for (stream, course), (server, port, client) in zip(courses.items(), endpoints, strict=True):
            index = course.goes_on_after_reset(by_client)
            if index is not None:
                lasted_ms = int(course.end - course.time[0]) / NS_PER_MS
                reset = _ForgedReset(lasted_ms, int(course.frame[index]), stream, client)
                groups[server, port, by_client].append(reset)
    for (server, port, by_client), resets in groups.items():
        longest = max(resets)
        ends = (longest.client, endpoint(server, port))
        sender, other = ends if by_client else reversed(ends)
        values = {"who": sender, "other": other, "n": len(resets), "frame": longest.frame}
        yield Finding.wait(
            (server, port), "reset_between", "network", "never", [reset.lasted_ms for reset in resets], values,
            median_ms=None, clients=len({reset.client for reset in resets}), client=longest.client, streams=len(resets),
            of_streams=len(resets), worst_stream=longest.stream, worst_frames=(longest.frame,),
            filter=wireshark_filter(longest.stream),
        )  # fmt: skip


def _accounted_closed_ms(tables: Mapping[str, pa.Table]) -> dict[tuple[int, bool], float]:
    """Return the ms for which requests and transfers are known to have waited for closed windows.

    Keys: the stream, and whether the client's window was closed. Requests count for both sides.
    """
    stretches, accounted_ms = tables["stretches"], defaultdict[tuple[int, bool], float](float)
    if stretches.num_rows:
        waited_ms = np.nan_to_num(arrays.numbers(stretches, "zero_window_ms").astype(float))
        rows = np.flatnonzero(waited_ms)
        streams = arrays.numbers(stretches, "stream")[rows].tolist()
        for stream, ms in zip(streams, waited_ms[rows].tolist(), strict=True):
            for by_client in (False, True):
                accounted_ms[stream, by_client] += ms
    for row in tables["transfers"].to_pylist() if "transfers" in tables else ():
        if row["limited_by"].startswith("receiver"):
            accounted_ms[row["stream"], row["direction"] == "to_client"] += row["duration_ms"]
    return accounted_ms


def _closed_window_finding(server: str, port: int, by_client: bool, windows: list[_ClosedWindow]) -> Finding:
    """Return the finding of the windows of one side."""
    windows.sort()
    longest = windows[-1]
    side = "client" if by_client else "server"
    values = {
        "server": endpoint(server, port), "client": longest.client, "n": len(windows),
        "span_ms": (windows[0].closed_ms, longest.closed_ms), "frame": longest.frame,
        "still": "" if longest.has_opened else say("still_closed"),
    }  # fmt: skip
    return Finding.wait(
        (server, port), f"took_nothing_{side}", side, "late" if longest.has_opened else "never",
        [window.closed_ms for window in windows], values, cause="zero_window",
        clients=len({window.client for window in windows}), client=longest.client,
        streams=len({window.stream for window in windows}), worst_stream=longest.stream, worst_frames=(longest.frame,),
        filter=wireshark_filter(longest.stream),
    )  # fmt: skip


def _starts(streams: pa.Table) -> dict[tuple[str, int, str], list[int]]:
    """Return the starts of the connections between each server, port and client, ascending, in ns."""
    starts: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    rows = zip(*(streams[name].to_pylist() for name in ("server", "server_port", "client")), strict=True)
    connections = zip(rows, arrays.numbers(streams, "start").tolist(), strict=True)
    for key, start in sorted(connections, key=lambda row: row[1]):
        starts[key].append(start)
    return starts
