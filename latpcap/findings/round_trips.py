"""How many round trips did the work take, and which of them would fewer spare? Requests and TLS handshakes in; findings
out: requests one after the other, a new TLS connection for each request, certificates beyond the initial window.

Nothing here is slow by itself: it is the path's round trip, so many times. What is parallel, or waits for its program,
is no such work.
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
LEAST_TRIP_MS = 5.0
"""On a shorter path no number of round trips is felt before some hundreds."""
LEAST_MS = 200.0
"""So long all of them together are worth a line: a person sees it (Nielsen, 0.1 to 1 s)."""
MOST_PATH = 0.75
"""Of a request that only waits for the path at least this share is the path's."""
AT_ONCE = 0.25
"""The next one follows within this share of the round trip: the program waited for nothing else."""
SOON = 3.0
"""So many round trips at most one of a run pauses, whose pauses altogether are few."""
RUN = 16
"""So many requests one after the other are a loop over rows, not a page's few steps."""
CONNECTS = 3
"""So many connections with one request each are a habit."""
REDIRECTED, FOLLOWED_MS = 2, 50.0
"""So many redirects in a row are more than one to HTTPS; programs follow them at once."""
WINDOW = 0.5
"""A server's flight that waits for an ACK waits for a round trip: at least this share of one."""
ALIKE = 0.75
"""So many of a run are one request with other values: a loop over rows."""
MOST_UPLOADS = 100
"""So many uploads are looked at packet by packet."""
IN_TURN = 5
"""So many connections one after the other for one request each are no accident."""
SPREAD = 0.1
"""A timer's waits are within this of each other."""


def trips(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Work that took more round trips than it has to, by server."""
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
    """Columns of streams, and of which stream each request is."""

    def __init__(self, streams: pa.Table, place: Array):
        self.place = place
        self.number = arrays.numbers(streams, "stream")
        self.server, self.servers = arrays.codes(streams, "server")
        self.port = arrays.numbers(streams, "server_port")
        self.client, self.clients = arrays.codes(streams, "client")
        self.start = arrays.numbers(streams, "start")
        self.rtt = arrays.numbers(streams, "initial_rtt_ms").astype(float)

    def groups(self, places: Array) -> dict[tuple[str, int], Array]:
        """Positions in `places` (of streams) by server."""
        import numpy as np

        key = self.server[places].astype(np.int64) << 16 | self.port[places].astype(np.int64)
        order = np.argsort(key, kind="stable")
        edges = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if len(key) else order
        parts = np.split(order, edges[1:]) if len(key) else []
        return {(self.servers[int(self.server[places[p[0]]])], int(self.port[places[p[0]]])): p for p in parts}


def _certificates(columns: _StreamColumns, rows: pa.Table, hello: Array, took: Array, path: Array) -> list[Finding]:
    """TLS handshakes in which the server's certificates waited for its congestion window."""
    import numpy as np

    if not hello.any():
        return []
    waited = np.nan_to_num(arrays.numbers(rows, "cwnd_ms").astype(float))
    at = np.flatnonzero(hello & (waited > 0))
    findings = []
    for server, mine in columns.groups(columns.place[at]).items():
        here = at[mine]
        rtt = np.nan_to_num(columns.rtt[columns.place[here]])
        here = here[(waited[here] >= WINDOW * rtt) & (rtt >= LEAST_TRIP_MS)]
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
    """Servers of which each request, or nearly, got a TLS connection of its own."""
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
        alone = here[(each == 1) & (rtt >= LEAST_TRIP_MS)]
        if len(alone) < CONNECTS or 2 * len(alone) < len(here):
            continue
        spent = took[alone] + np.nan_to_num(columns.rtt[columns.place[alone]])
        if spent.sum() >= LEAST_MS:
            findings.append(_row("tls_each", "client", "path", server, columns, rows, alone, spent, len(here), took))
    return findings


def _in_turn(columns: _StreamColumns, rows: pa.Table, wanted: Array, took: Array, path: Array) -> list[Finding]:
    """Requests one after the other on a connection, each of which waited for the path and hardly for anything else."""
    import numpy as np

    at = np.flatnonzero(wanted)
    if len(at) < RUN:
        return []
    at = at[np.lexsort((arrays.numbers(rows, "start")[at], columns.place[at]))]
    start, end = arrays.numbers(rows, "start")[at], arrays.numbers(rows, "end")[at]
    # at the server the way to the client and back lies between an answer and the next request
    rtt = np.nan_to_num(columns.rtt[columns.place[at]])
    away = np.where(path[at] < LEAST_TRIP_MS, rtt, 0.0)
    path, took_here = path[at] + away, took[at] + away
    felt, gap = path >= LEAST_TRIP_MS, (start[1:] - end[:-1]) / NS_PER_MS - away[:-1]
    follows = felt[1:] & felt[:-1] & (columns.place[at][1:] == columns.place[at][:-1])
    follows &= (gap >= -AT_ONCE * away[:-1]) & (gap <= SOON * path[1:])
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    mine, ms_all, apart = (
        sums[ends + 1] - sums[begins] for sums in (np.r_[0.0, np.cumsum(ms)] for ms in (path, took_here, away))
    )
    # one that takes long makes no other loop of it
    passed = (end[ends] - start[begins]) / NS_PER_MS - (ms_all - apart) - (apart - away[ends])  # between them
    long = (ends - begins + 1 >= RUN) & (mine >= MOST_PATH * ms_all) & (passed <= AT_ONCE * mine)
    runs = list(zip(begins[long].tolist(), ends[long].tolist(), strict=True))
    findings = []
    places = columns.place[at[np.array([begin for begin, _ in runs], np.int64)]]
    for server, which in columns.groups(places).items():
        here = np.concatenate([np.arange(runs[run][0], runs[run][1] + 1) for run in which.tolist()])
        first, last = max((runs[run] for run in which.tolist()), key=lambda run: run[1] - run[0])
        if took_here[here].sum() >= LEAST_MS:
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
    """What most of these requests are, in words; "" where they are of many kinds."""
    import numpy as np

    (method, methods), (target, targets) = (arrays.codes(rows, name) for name in ("method", "target"))
    kinds, often = np.unique(np.stack([method[here], target[here]]), axis=1, return_counts=True)
    most = int(often.argmax())
    if often[most] < ALIKE * len(here):
        return ""
    verb, name = (names[int(code)] if code >= 0 else None for code, names in zip(
        kinds[:, most], (methods, targets), strict=True))  # fmt: skip
    return words.say("in_turn_alike", n=int(often[most]), name=called(verb, name))


def _connects_in_turn(
    columns: _StreamColumns, rows: pa.Table, wanted: Array, hello: Array, took: Array
) -> list[Finding]:
    """A client that fetches one thing after the other, each over a connection of its own, on a long path."""
    import numpy as np

    if not wanted.any():
        return []
    last, first = np.zeros(len(columns.number), np.int64), np.full(len(columns.number), -1, np.int64)
    at = np.flatnonzero(wanted)
    np.maximum.at(last, columns.place[at], arrays.numbers(rows, "end")[at])
    first[columns.place[at][::-1]] = at[::-1]
    once = (np.bincount(columns.place[at], minlength=len(last)) == 1) & (columns.rtt >= LEAST_TRIP_MS)
    once &= np.bincount(columns.place[hello], minlength=len(last)) == 0  # `_each` has those
    which = np.flatnonzero(once)
    key = (
        (columns.client[which].astype(np.int64) << 40)
        | (columns.server[which].astype(np.int64) << 16)
        | columns.port[which]
    )
    which = which[np.lexsort((columns.start[which], key))]
    key = np.sort(key)
    # the next SYN comes a round trip after the answer left at the server, at once at the client
    gap = (columns.start[which[1:]] - last[which[:-1]]) / NS_PER_MS
    follows = (key[1:] == key[:-1]) & (gap >= -AT_ONCE) & (gap <= (1 + AT_ONCE) * columns.rtt[which[1:]])
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    runs = [(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True) if b - a + 1 >= IN_TURN]
    findings = []
    for begin, end in runs:
        streams = which[begin : end + 1]
        here = first[streams]
        trip = float(np.median(columns.rtt[streams]))
        whole = float(last[streams[-1]] - columns.start[streams[0]]) / NS_PER_MS
        if whole < LEAST_MS or 2 * len(streams) * trip < MOST_PATH * whole:
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


BLOCK, BLOCKS_OF_ALL = 4_096, 0.9
"""A block of an upload has so many bytes and more; such blocks are this share of what was sent, and waits for the path
are `MOST_BLOCKS` of the time: the rest is what sending a block takes."""
MOST_BLOCKS = 0.6


def blocks(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Uploads in blocks, each sent only when the one before was answered, where no reader sees requests."""
    import numpy as np

    streams, exchanges, events = tables["streams"], tables["exchanges"], segments(tables)
    if events is None:
        return []
    number, sent = arrays.numbers(streams, "stream"), arrays.numbers(streams, "client_payload_bytes")
    rtt = _trips_ms(streams)
    which = (sent >= RUN * BLOCK) & (arrays.numbers(streams, "server_payload_bytes") < sent) & (rtt >= LEAST_TRIP_MS)
    read, often = np.unique(arrays.numbers(exchanges, "stream"), return_counts=True)
    which &= ~np.isin(number, read[often >= RUN])
    if not which.any() or which.sum() > MOST_UPLOADS:
        return []
    table = events.of_streams(number[which])
    stream, time, length, frame = (arrays.numbers(table, name) for name in ("stream", "time", "len", "frame"))
    client = arrays.numbers(table, "from_client").astype(bool)
    found_ = []
    for place in np.flatnonzero(which).tolist():
        mine = np.flatnonzero((stream == number[place]) & (length > 0))
        turns = np.flatnonzero(np.diff(client[mine], prepend=~client[mine[:1]]))
        size = np.add.reduceat(length[mine].astype(np.int64), turns)
        block = np.flatnonzero(client[mine[turns]] & (size >= BLOCK))
        if len(block) < RUN or size[block].sum() < BLOCKS_OF_ALL * sent[place]:
            continue
        begun = time[mine[turns[block]]]
        whole, path = float(begun[-1] - begun[0]) / NS_PER_MS, (len(block) - 1) * float(rtt[place])
        if whole < LEAST_MS or not MOST_BLOCKS * whole <= path <= whole:
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
        found_.append(made)
    return found_


LATER, LATER_MS = 1.1, 2.0
"""The next message follows within so many round trips, and this: nothing else was waited for."""
ACKS = {"amqp": (21, 21), "mqtt": (4, 6)}
"""Bytes of what acknowledges a message of a broker, by protocol: AMQP's basic.ack, MQTT's PUBACK and PUBCOMP. What has
others may be a request, and the message its answer."""


def messages(tables: Mapping[str, pa.Table], pushed: Pushed | None) -> list[Finding]:
    """Messages of which a broker sends the next one only when the client has acknowledged the one before: that is a
    round trip for each, or what the client's program takes for it.
    """
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    if events is None or pushed is None:
        return []
    number, trips_ms = arrays.numbers(streams, "stream"), np.nan_to_num(_trips_ms(streams))
    which = (pushed.of_streams(number) >= IN_TURN) & arrays.equals(streams, "protocol", *ACKS)
    if not which.any() or which.sum() > MOST_UPLOADS:
        return []
    table = events.of_streams(number[which])
    stream, time, length, frame = (arrays.numbers(table, name) for name in ("stream", "time", "len", "frame"))
    client = arrays.numbers(table, "from_client").astype(bool)
    made = []
    for place in np.flatnonzero(which).tolist():
        mine = np.flatnonzero((stream == number[place]) & (length > 1))
        sent = np.flatnonzero(np.diff(client[mine], prepend=True) & ~client[mine])[
            1:
        ]  # the first has no message before
        trip, at = float(trips_ms[place]), mine[sent]
        prompt = (time[at] - time[mine[sent - 1]]) / NS_PER_MS <= LATER * trip + LATER_MS
        [row] = streams.select(["server", "server_port", "client", "protocol"]).slice(place, 1).to_pylist()
        least, most = ACKS[row["protocol"]]
        prompt &= (length[mine[sent - 1]] >= least) & (length[mine[sent - 1]] <= most)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], prompt[1:], [False]]).astype(np.int8)))
        begin, after = max(zip(edges[::2], edges[1::2], strict=True), key=lambda run: run[1] - run[0], default=(0, 0))
        apart: Array = np.diff(time[at[begin : after + 1]].astype(np.int64)) / NS_PER_MS
        each = float(np.median(apart)) if len(apart) else 0.0
        long = np.flatnonzero(2 * apart >= each)  # a log-in's steps are shorter
        run, whole = len(long) + 1, float(apart[long].sum())
        by_path = each <= LATER * trip + LATER_MS
        if not len(long) or (by_path and (run < RUN or trip < LEAST_TRIP_MS or whole < LEAST_MS)):
            continue
        if not by_path and (run < IN_TURN or whole < LIMITS["stuck_ms"] or each < trip + LIMITS["slow_ms"]):
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
    """The shortest round trip that is known of each stream; not a number where none is."""
    import numpy as np

    first = arrays.numbers(streams, "initial_rtt_ms").astype(float)
    legs = [arrays.numbers(streams, f"{side}_rtt_ms").astype(float) for side in ("client", "server")]
    shortest: Array = np.fmin(first, np.where(np.isnan(first), np.nan, np.nan_to_num(legs[0]) + np.nan_to_num(legs[1])))
    return shortest


def expects(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Uploads whose client paused in each as long as one does that expects a 100 Continue; None where there are none.

    They pause as long as each other; a program that has its data late pauses as it comes.
    """
    import numpy as np

    rows = tables["exchanges"]
    uploads = arrays.equals(rows, "method", "POST", "PUT", "PATCH") & arrays.equals(rows, "protocol", "http")
    every = server.rows[uploads[server.rows]]
    thought = next((item for item in items if item.cause == "client_think"), None)
    if thought is None or len(every) < CONNECTS:
        return None
    mine = uploads[thought.rows]
    here, waited = thought.rows[mine], thought.ms[mine]
    timed = np.array([fixes.waits_for_continue(ms) for ms in waited.tolist()], bool)
    here, waited = here[timed], waited[timed]
    if len(here) < CONNECTS or 2 * len(here) < len(every) or np.ptp(waited) > SPREAD * waited.min():
        return None
    began, whole = (arrays.filled(rows, name, 0)[here] for name in ("response_start", "request_end"))
    if (began < whole).any():
        return None  # a 100 Continue came before the body
    streams = tables["streams"]
    columns = _StreamColumns(streams, spill.places(arrays.numbers(streams, "stream"), arrays.numbers(rows, "stream")))
    ends = server.address, server.port
    return _row("expect_continue", "client", "late", ends, columns, rows, here, waited, len(every), waited)


def _redirects(columns: _StreamColumns, rows: pa.Table, wanted: Array, took: Array) -> list[Finding]:
    """Redirects that a client follows at once, several in a row, each with its request and maybe its connection."""
    import numpy as np

    away = wanted & np.isin(arrays.numbers(rows, "status").astype(float), REDIRECTS)
    if away.sum() < REDIRECTED:
        return []
    at = np.flatnonzero(wanted)
    start, end = arrays.numbers(rows, "start"), arrays.numbers(rows, "end")
    opens = arrays.numbers(rows, "index") == 0
    begin = np.where(opens, np.minimum(columns.start[columns.place], start), start)
    at = at[np.lexsort((begin[at], columns.client[columns.place[at]]))]
    # each to the one that its client begins next, on any connection
    pause = (begin[at[1:]] - end[at[:-1]]) / NS_PER_MS
    follows = away[at[:-1]] & (columns.client[columns.place[at[1:]]] == columns.client[columns.place[at[:-1]]])
    follows &= (
        (pause >= 0) & (pause <= FOLLOWED_MS) & (np.nan_to_num(columns.rtt[columns.place[at[:-1]]]) >= LEAST_TRIP_MS)
    )
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    runs = [(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True) if b - a >= REDIRECTED]
    findings = []
    firsts = columns.place[at[np.array([a for a, _ in runs], np.int64)]]
    for server, mine in columns.groups(firsts).items():
        chains = [runs[run] for run in mine.tolist()]
        here = np.concatenate([at[a:b] for a, b in chains])
        spent = np.concatenate([begin[at[a + 1 : b + 1]] - begin[at[a:b]] for a, b in chains]) / NS_PER_MS
        a, b = max(chains, key=lambda chain: begin[at[chain[1]]] - begin[at[chain[0]]])
        if spent.sum() < LEAST_MS:
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
    spare = float(waited.sum()) * (1 - 1 / len(here) if harm == "path" else 1)  # one of them has to be
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
