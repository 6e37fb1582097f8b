"""Find round trips that could be saved: sequential requests, a TLS connection per request, large certificates.

Reads requests and TLS handshakes. Each step takes a normal round trip, and only their number is large. Requests that
run in parallel, or wait for their program, are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from latpcap import arrays, spill, words
from latpcap.findings import fixes
from latpcap.findings.evidence import called
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding, Harmful
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, SETUP
from latpcap.user_waits.cause_totals import CauseTotal, Server, endpoint
from latpcap.user_waits.segments import segments

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

REDIRECTS = (301, 302, 303, 307, 308)
MIN_TRIP_MS = 5.0
"""Shortest round trip examined; on a shorter path a user notices only hundreds of round trips."""
MIN_SUM_MS = 200.0
"""Shortest sum worth a row: users notice a delay from 0.1 to 1 s on (Nielsen)."""
MIN_PATH_SHARE = 0.75
"""Smallest share of the path in the time of requests that wait only for the path."""
MAX_GAP_SHARE = 0.25
"""Longest gap before the next request, as a share of the round trip, if the program waited for nothing else."""
MAX_GAP_TRIPS = 3.0
"""Longest single gap in a run of sequential requests, in round trips; `MAX_GAP_SHARE` bounds their sum."""
MIN_RUN = 16
"""Fewest sequential requests that are a loop over rows, not the few steps of a page."""
MIN_CONNECTS = 3
"""Fewest connections with a single request that show a habit."""
MIN_REDIRECTS, MAX_REDIRECT_GAP_MS = 2, 50.0
"""Fewest redirects in a row, since one to HTTPS is normal, and the longest gap before a program follows one."""
MIN_WINDOW_WAIT = 0.5
"""Shortest wait of a server's handshake flight for an ACK, as a share of the round trip."""
MIN_ALIKE_SHARE = 0.75
"""Smallest share of a run that repeats one request with other values."""
MAX_STREAMS = 100
"""Upper bound on the streams examined packet by packet."""
MIN_IN_TURN = 5
"""Fewest connections (or messages) in sequence that are no accident."""
MAX_TIMER_SPREAD = 0.1
"""Largest spread of waits that one timer ended, as a share of the shortest."""
MIN_BLOCK_BYTES, MIN_BLOCKS_SHARE = 4_096, 0.9
"""Fewest bytes of a block of an upload, and the smallest share of the upload that such blocks carry."""
MIN_WAIT_SHARE = 0.6
"""Smallest share of the upload's time that round trips take; the rest is the sending of the blocks."""
MAX_LATER_TRIPS, MAX_LATER_MS = 1.1, 2.0
"""Longest time until the next message, in round trips plus ms, if nothing else was waited for."""
ACKS = {"amqp": (21, 21), "mqtt": (4, 6)}
"""Smallest and largest size in bytes of the acknowledgement of a message: AMQP's basic.ack, MQTT's PUBACK and PUBCOMP.
A packet of another size may be a request."""


def trips(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find requests and handshakes that took more round trips than necessary, by server."""
    import numpy as np

    streams, rows = tables["streams"], tables["exchanges"]
    if not rows.num_rows:
        return []
    wanted = ~arrays.equals(rows, "protocol", SETUP)
    wanted &= arrays.numbers(rows, "complete").astype(bool)
    hello = wanted & arrays.equals(rows, "method", "handshake")
    hello &= arrays.equals(rows, "protocol", "tls")
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(rows, "stream"))
    took, path = (np.nan_to_num(arrays.numbers(rows, f"{name}_ms").astype(float)) for name in ("latency", "network"))
    columns = _StreamColumns(streams, place)
    findings = _certificates(columns, rows, hello, took, path)
    findings += _each(columns, rows, hello, wanted & ~hello, took)
    findings += _redirects(columns, rows, wanted & ~hello, took)
    findings += _connects_in_turn(columns, rows, wanted, hello, took)
    return findings + _in_turn(columns, rows, wanted & ~hello, took, path)


class _StreamColumns:
    """Columns of "streams"; `place` is the row of each request's stream."""

    def __init__(self, streams: pa.Table, place: Array):
        self.place = place
        self.number = arrays.numbers(streams, "stream")
        self.server, self.servers = arrays.codes(streams, "server")
        self.port = arrays.numbers(streams, "server_port")
        self.client, self.clients = arrays.codes(streams, "client")
        self.start = arrays.numbers(streams, "start")
        self.rtt = arrays.numbers(streams, "initial_rtt_ms").astype(float)

    def groups(self, places: Array) -> dict[tuple[str, int], Array]:
        """Group positions in `places`, which are rows of "streams", by server."""
        import numpy as np

        key = self.server[places].astype(np.int64) << 16 | self.port[places].astype(np.int64)
        order = np.argsort(key, kind="stable")
        edges = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if len(key) else order
        parts = np.split(order, edges[1:]) if len(key) else []
        return {(self.servers[int(self.server[places[p[0]]])], int(self.port[places[p[0]]])): p for p in parts}


def _certificates(columns: _StreamColumns, rows: pa.Table, hello: Array, took: Array, path: Array) -> list[Finding]:
    """Find TLS handshakes in which the server's certificates waited for its congestion window."""
    import numpy as np

    if not hello.any():
        return []
    waited = np.nan_to_num(arrays.numbers(rows, "cwnd_ms").astype(float))
    at = np.flatnonzero(hello & (waited > 0))
    findings = []
    for server, mine in columns.groups(columns.place[at]).items():
        here = at[mine]
        rtt = np.nan_to_num(columns.rtt[columns.place[here]])
        here = here[(waited[here] >= MIN_WINDOW_WAIT * rtt) & (rtt >= MIN_TRIP_MS)]
        if len(here):
            many = int((hello & np.isin(columns.place, _streams(columns, server))).sum())
            findings.append(
                _row("tls_certificates", "server", "late", server, columns, rows, here, waited[here], many, took)
            )
    return findings


def _streams(columns: _StreamColumns, server: tuple[str, int]) -> Array:
    import numpy as np

    findings: Array = np.flatnonzero((columns.server == columns.servers.index(server[0])) & (columns.port == server[1]))
    return findings


def _each(columns: _StreamColumns, rows: pa.Table, hello: Array, wanted: Array, took: Array) -> list[Finding]:
    """Find servers where most TLS connections carry a single request."""
    import numpy as np

    if not hello.any():
        return []
    requests = np.bincount(columns.place[wanted], minlength=len(columns.number))
    at = np.flatnonzero(hello)
    findings = []
    for server, mine in columns.groups(columns.place[at]).items():
        here = at[mine]
        rtt = np.nan_to_num(columns.rtt[columns.place[here]])
        each = requests[columns.place[here]]
        alone = here[(each == 1) & (rtt >= MIN_TRIP_MS)]
        if len(alone) < MIN_CONNECTS or 2 * len(alone) < len(here):
            continue
        spent = took[alone] + np.nan_to_num(columns.rtt[columns.place[alone]])
        if spent.sum() >= MIN_SUM_MS:
            findings.append(_row("tls_each", "client", "path", server, columns, rows, alone, spent, len(here), took))
    return findings


def _in_turn(columns: _StreamColumns, rows: pa.Table, wanted: Array, took: Array, path: Array) -> list[Finding]:
    """Find runs of sequential requests on a connection that waited almost only for the path."""
    import numpy as np

    at = np.flatnonzero(wanted)
    if len(at) < MIN_RUN:
        return []
    at = at[np.lexsort((arrays.numbers(rows, "start")[at], columns.place[at]))]
    start, end = arrays.numbers(rows, "start")[at], arrays.numbers(rows, "end")[at]
    # in a capture at the server the round trip lies between an answer and the next request
    rtt = np.nan_to_num(columns.rtt[columns.place[at]])
    away = np.where(path[at] < MIN_TRIP_MS, rtt, 0.0)
    path, took_here = path[at] + away, took[at] + away
    felt, gap = path >= MIN_TRIP_MS, (start[1:] - end[:-1]) / NS_PER_MS - away[:-1]
    follows = felt[1:] & felt[:-1] & (columns.place[at][1:] == columns.place[at][:-1])
    follows &= (gap >= -MAX_GAP_SHARE * away[:-1]) & (gap <= MAX_GAP_TRIPS * path[1:])
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    mine, ms_all, apart = (
        sums[ends + 1] - sums[begins] for sums in (np.r_[0.0, np.cumsum(ms)] for ms in (path, took_here, away))
    )
    # sums over each run, so that a single slow request does not split it
    passed = (
        (end[ends] - start[begins]) / NS_PER_MS - (ms_all - apart) - (apart - away[ends])
    )  # gaps between the requests
    long = (ends - begins + 1 >= MIN_RUN) & (mine >= MIN_PATH_SHARE * ms_all) & (passed <= MAX_GAP_SHARE * mine)
    runs = list(zip(begins[long].tolist(), ends[long].tolist(), strict=True))
    findings = []
    places = columns.place[at[np.array([begin for begin, _ in runs], np.int64)]]
    for server, which in columns.groups(places).items():
        here = np.concatenate([np.arange(runs[run][0], runs[run][1] + 1) for run in which.tolist()])
        first, last = max((runs[run] for run in which.tolist()), key=lambda run: run[1] - run[0])
        if took_here[here].sum() >= MIN_SUM_MS:
            extra: dict[str, float | str] = {
                "run": last - first + 1, "whole_ms": (end[last] - start[first]) / NS_PER_MS,
                "path_ms": float(path[first : last + 1].sum()), "trip_ms": float(np.median(path[here])),
                "alike": _alike(rows, at[first : last + 1]),
            }  # fmt: skip
            many = int((wanted & np.isin(columns.place, _streams(columns, server))).sum())
            spent = took_here[here]
            findings.append(
                _row("in_turn", "client", "path", server, columns, rows, at[here], spent, many, took, extra)
            )
    return findings


def _alike(rows: pa.Table, here: Array) -> str:
    """Return a phrase about the request that most of these are; "" if they are of many kinds."""
    import numpy as np

    (method, methods), (target, targets) = (arrays.codes(rows, name) for name in ("method", "target"))
    kinds, often = np.unique(np.stack([method[here], target[here]]), axis=1, return_counts=True)
    most = int(often.argmax())
    if often[most] < MIN_ALIKE_SHARE * len(here):
        return ""
    verb, name = (names[int(code)] if code >= 0 else None for code, names in zip(
        kinds[:, most], (methods, targets), strict=True))  # fmt: skip
    return words.say("in_turn_alike", n=int(often[most]), name=called(verb, name))


def _connects_in_turn(
    columns: _StreamColumns, rows: pa.Table, wanted: Array, hello: Array, took: Array
) -> list[Finding]:
    """Find clients that send sequential requests, each over a new connection, on a long path."""
    import numpy as np

    if not wanted.any():
        return []
    last, first = np.zeros(len(columns.number), np.int64), np.full(len(columns.number), -1, np.int64)
    at = np.flatnonzero(wanted)
    np.maximum.at(last, columns.place[at], arrays.numbers(rows, "end")[at])
    first[columns.place[at][::-1]] = at[::-1]
    once = (np.bincount(columns.place[at], minlength=len(last)) == 1) & (columns.rtt >= MIN_TRIP_MS)
    once &= np.bincount(columns.place[hello], minlength=len(last)) == 0  # `_each` has those
    which = np.flatnonzero(once)
    key = (
        (columns.client[which].astype(np.int64) << 40)
        | (columns.server[which].astype(np.int64) << 16)
        | columns.port[which]
    )
    which = which[np.lexsort((columns.start[which], key))]
    key = np.sort(key)
    # the next SYN follows at once in a capture at the client, and after a round trip at the server
    gap = (columns.start[which[1:]] - last[which[:-1]]) / NS_PER_MS
    follows = (key[1:] == key[:-1]) & (gap >= -MAX_GAP_SHARE) & (gap <= (1 + MAX_GAP_SHARE) * columns.rtt[which[1:]])
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    runs = [(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True) if b - a + 1 >= MIN_IN_TURN]
    findings = []
    for begin, end in runs:
        streams = which[begin : end + 1]
        here = first[streams]
        trip = float(np.median(columns.rtt[streams]))
        whole = float(last[streams[-1]] - columns.start[streams[0]]) / NS_PER_MS
        if whole < MIN_SUM_MS or 2 * len(streams) * trip < MIN_PATH_SHARE * whole:
            continue
        server = columns.servers[int(columns.server[streams[0]])], int(columns.port[streams[0]])
        own = float(took[here].sum())
        spent = np.r_[np.diff(columns.start[streams]), last[streams[-1]] - columns.start[streams[-1]]] / NS_PER_MS
        extra: dict[str, float | str] = {
            "whole_ms": whole, "trip_ms": trip, "client": columns.clients[int(columns.client[streams[0]])],
            "own_ms": own / len(streams),
        }  # fmt: skip
        many = int((wanted & np.isin(columns.place, _streams(columns, server))).sum())
        findings.append(
            _row("connects_in_turn", "client", "path", server, columns, rows, here, spent, many, took, extra)
        )
    return findings


def blocks(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find uploads in blocks, each sent after the answer to the previous one, in protocols without a reader."""
    import numpy as np

    streams, exchanges, events = tables["streams"], tables["exchanges"], segments(tables)
    if events is None:
        return []
    number, sent = arrays.numbers(streams, "stream"), arrays.numbers(streams, "client_payload_bytes")
    rtt = _trips_ms(streams)
    which = (
        (sent >= MIN_RUN * MIN_BLOCK_BYTES)
        & (arrays.numbers(streams, "server_payload_bytes") < sent)
        & (rtt >= MIN_TRIP_MS)
    )
    read, often = np.unique(arrays.numbers(exchanges, "stream"), return_counts=True)
    which &= ~np.isin(number, read[often >= MIN_RUN])
    if not which.any() or which.sum() > MAX_STREAMS:
        return []
    table = events.of_streams(number[which])
    stream, time, length, frame = (arrays.numbers(table, name) for name in ("stream", "time", "len", "frame"))
    client = arrays.numbers(table, "from_client").astype(bool)
    findings = []
    for place in np.flatnonzero(which).tolist():
        mine = np.flatnonzero((stream == number[place]) & (length > 0))
        turns = np.flatnonzero(np.diff(client[mine], prepend=~client[mine[:1]]))
        size = np.add.reduceat(length[mine].astype(np.int64), turns)
        block = np.flatnonzero(client[mine[turns]] & (size >= MIN_BLOCK_BYTES))
        if len(block) < MIN_RUN or size[block].sum() < MIN_BLOCKS_SHARE * sent[place]:
            continue
        begun = time[mine[turns[block]]]
        whole, path = float(begun[-1] - begun[0]) / NS_PER_MS, (len(block) - 1) * float(rtt[place])
        if whole < MIN_SUM_MS or not MIN_WAIT_SHARE * whole <= path <= whole:
            continue
        [row] = streams.select(["server", "server_port", "client"]).slice(place, 1).to_pylist()
        values = {
            "server": endpoint(row["server"], row["server_port"]), "client": row["client"], "n": len(block),
            "sent": f"{size[block].sum() / 1e6:,.3g} MB", "block": f"{np.median(size[block]) / 1e3:,.3g} kB",
            "trip_ms": float(rtt[place]), "whole_ms": whole, "path_ms": path,
        }  # fmt: skip
        at = int(frame[mine[turns[block[0]]]]), int(frame[mine[turns[block[1]]]])
        made = Finding(
            kind="wait", server=row["server"], server_port=row["server_port"], cause="blocks_in_turn", owner="client",
            clients=1, client=row["client"], streams=1, of_streams=1, total_ms=path, median_ms=whole, max_ms=whole,
            harm="path", worst_stream=int(number[place]), worst_ms=whole, worst_frames=at,
            sentence="blocks_in_turn", values=values,
        )  # fmt: skip
        findings.append(made)
    return findings


def messages(tables: Mapping[str, pa.Table], pushed: Pushed | None) -> list[Finding]:
    """Find brokers that send each message only after the acknowledgement of the previous one.

    Each message then takes a round trip, or the time of the client's program.
    """
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    if events is None or pushed is None:
        return []
    number, trips_ms = arrays.numbers(streams, "stream"), np.nan_to_num(_trips_ms(streams))
    which = (pushed.of_streams(number) >= MIN_IN_TURN) & arrays.equals(streams, "protocol", *ACKS)
    if not which.any() or which.sum() > MAX_STREAMS:
        return []
    table = events.of_streams(number[which])
    stream, time, length, frame = (arrays.numbers(table, name) for name in ("stream", "time", "len", "frame"))
    client = arrays.numbers(table, "from_client").astype(bool)
    made = []
    for place in np.flatnonzero(which).tolist():
        mine = np.flatnonzero((stream == number[place]) & (length > 1))
        sent = np.flatnonzero(np.diff(client[mine], prepend=True) & ~client[mine])
        sent = sent[1:]  # the first message follows no other
        trip, at = float(trips_ms[place]), mine[sent]
        prompt = (time[at] - time[mine[sent - 1]]) / NS_PER_MS <= MAX_LATER_TRIPS * trip + MAX_LATER_MS
        [row] = streams.select(["server", "server_port", "client", "protocol"]).slice(place, 1).to_pylist()
        least, most = ACKS[row["protocol"]]
        prompt &= (length[mine[sent - 1]] >= least) & (length[mine[sent - 1]] <= most)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], prompt[1:], [False]]).astype(np.int8)))
        begin, after = max(zip(edges[::2], edges[1::2], strict=True), key=lambda run: run[1] - run[0], default=(0, 0))
        apart: Array = np.diff(time[at[begin : after + 1]].astype(np.int64)) / NS_PER_MS
        each = float(np.median(apart)) if len(apart) else 0.0
        long = np.flatnonzero(2 * apart >= each)  # the steps of a log-in are shorter
        run, whole = len(long) + 1, float(apart[long].sum())
        by_path = each <= MAX_LATER_TRIPS * trip + MAX_LATER_MS
        if not len(long) or (by_path and (run < MIN_RUN or trip < MIN_TRIP_MS or whole < MIN_SUM_MS)):
            continue
        if not by_path and (run < MIN_IN_TURN or whole < LIMITS["stuck_ms"] or each < trip + LIMITS["slow_ms"]):
            continue
        values = {
            "server": endpoint(row["server"], row["server_port"]), "client": row["client"], "run": run,
            "each_ms": trip if by_path else each, "whole_ms": whole,
        }  # fmt: skip
        sentence = "messages_in_turn" if by_path else "consumer_in_turn"
        made.append(Finding(
            kind="wait", server=row["server"], server_port=row["server_port"], cause=sentence,
            owner="server" if by_path else "client", clients=1, client=row["client"], streams=1, of_streams=1,
            total_ms=whole, median_ms=whole, max_ms=whole, harm="late", worst_stream=int(number[place]),
            worst_ms=whole, worst_frames=tuple(int(frame[at[begin + place]]) for place in (long[-1], long[-1] + 1)),
            sentence=sentence,
            values=values,
        ))  # fmt: skip
    return made


def _trips_ms(streams: pa.Table) -> Array:
    """Return the shortest known round trip of each stream; NaN without one."""
    import numpy as np

    first = arrays.numbers(streams, "initial_rtt_ms").astype(float)
    legs = [arrays.numbers(streams, f"{side}_rtt_ms").astype(float) for side in ("client", "server")]
    shortest: Array = np.fmin(first, np.where(np.isnan(first), np.nan, np.nan_to_num(legs[0]) + np.nan_to_num(legs[1])))
    return shortest


def expects(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find uploads whose client waited for "100 Continue" until its timer expired; None without them.

    All these pauses are equally long. A program whose data is late pauses for varying times.
    """
    import numpy as np

    rows = tables["exchanges"]
    uploads = arrays.equals(rows, "method", "POST", "PUT", "PATCH") & arrays.equals(rows, "protocol", "http")
    every = server.rows[uploads[server.rows]]
    thought = next((item for item in items if item.cause == "client_think"), None)
    if thought is None or len(every) < MIN_CONNECTS:
        return None
    mine = uploads[thought.rows]
    here, waited = thought.rows[mine], thought.ms[mine]
    timed = np.array([fixes.waits_for_continue(ms) for ms in waited.tolist()], bool)
    here, waited = here[timed], waited[timed]
    if len(here) < MIN_CONNECTS or 2 * len(here) < len(every) or np.ptp(waited) > MAX_TIMER_SPREAD * waited.min():
        return None
    began, whole = (arrays.filled(rows, name, 0)[here] for name in ("response_start", "request_end"))
    if (began < whole).any():
        return None  # a 100 Continue arrived before the body
    streams = tables["streams"]
    columns = _StreamColumns(streams, spill.places(arrays.numbers(streams, "stream"), arrays.numbers(rows, "stream")))
    ends = server.address, server.port
    return _row("expect_continue", "client", "late", ends, columns, rows, here, waited, len(every), waited)


def _redirects(columns: _StreamColumns, rows: pa.Table, wanted: Array, took: Array) -> list[Finding]:
    """Find several redirects in a row that the client followed at once, each with a request and maybe a connection."""
    import numpy as np

    away = wanted & np.isin(arrays.numbers(rows, "status").astype(float), REDIRECTS)
    if away.sum() < MIN_REDIRECTS:
        return []
    at = np.flatnonzero(wanted)
    start, end = arrays.numbers(rows, "start"), arrays.numbers(rows, "end")
    opens = arrays.numbers(rows, "index") == 0
    begin = np.where(opens, np.minimum(columns.start[columns.place], start), start)
    at = at[np.lexsort((begin[at], columns.client[columns.place[at]]))]
    # compare each with the client's next request, on any connection
    pause = (begin[at[1:]] - end[at[:-1]]) / NS_PER_MS
    follows = away[at[:-1]] & (columns.client[columns.place[at[1:]]] == columns.client[columns.place[at[:-1]]])
    follows &= (
        (pause >= 0)
        & (pause <= MAX_REDIRECT_GAP_MS)
        & (np.nan_to_num(columns.rtt[columns.place[at[:-1]]]) >= MIN_TRIP_MS)
    )
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    runs = [(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True) if b - a >= MIN_REDIRECTS]
    findings = []
    firsts = columns.place[at[np.array([a for a, _ in runs], np.int64)]]
    for server, mine in columns.groups(firsts).items():
        chains = [runs[run] for run in mine.tolist()]
        here = np.concatenate([at[a:b] for a, b in chains])
        spent = np.concatenate([begin[at[a + 1 : b + 1]] - begin[at[a:b]] for a, b in chains]) / NS_PER_MS
        a, b = max(chains, key=lambda chain: begin[at[chain[1]]] - begin[at[chain[0]]])
        if spent.sum() < MIN_SUM_MS:
            continue
        [named] = rows.select(["method", "target"]).slice(int(at[a]), 1).to_pylist()
        extra = {
            "run": b - a, "whole_ms": float(begin[at[b]] - begin[at[a]]) / NS_PER_MS,
            "connects": int(opens[at[a:b]].sum()), "name": called(named["method"], named["target"]),
        }  # fmt: skip
        findings.append(_row("redirects", "server", "path", server, columns, rows, here, spent, len(here), took, extra))
    return findings


def _row(
    sentence: str, owner: str, harm: Harmful, server: tuple[str, int], columns: _StreamColumns, rows: pa.Table,
    here: Array, waited: Array, many: int, took: Array, extra: Mapping[str, float | str] | None = None,
) -> Finding:  # fmt: skip
    worst = int(waited.argmax())
    row, ordered = int(here[worst]), sorted(waited.tolist())
    frame = int(arrays.numbers(rows, "request_first_frame")[row])
    spare = float(waited.sum()) * (1 - 1 / len(here) if harm == "path" else 1)  # one of them is necessary
    values = {
        "n": len(here), "of": many, "server": endpoint(*server), "span_ms": (ordered[0], ordered[-1]),
        "sum_ms": float(waited.sum()), "trip_ms": float(columns.rtt[columns.place[row]]), **(extra or {}),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server[0], server_port=server[1], cause=sentence, owner=owner, exchanges=len(here),
        of_exchanges=many, total_ms=spare, median_ms=ordered[len(ordered) // 2], max_ms=ordered[-1],
        harm=harm,
        worst_stream=int(columns.number[columns.place[row]]), worst_exchange=int(arrays.numbers(rows, "exchange")[row]),
        worst_ms=ordered[-1], worst_frames=(frame,), sentence=sentence, values=values,
    )  # fmt: skip
