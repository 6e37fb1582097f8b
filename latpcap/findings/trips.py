"""How many round trips did the work take, and which of them would fewer spare? Requests and TLS handshakes in; findings
out: requests one after the other, a new TLS connection for each request, certificates beyond the initial window.

Nothing here is slow by itself: it is the path's round trip, so many times. What is parallel, or waits for its program,
is no such work.

Then what clients tried again after a while, because a server would not take it: connections that were refused until one
was accepted, requests that were answered "later" (429, 503; 4yz in mail and FTP) until one was not. Each refusal and
each of these answers takes no time. The pause until the next try is what a user waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays, spill
from latpcap.account.totals import endpoint
from latpcap.findings import traffic
from latpcap.findings.schema import Finding, Harmful
from latpcap.findings.traffic import REDIRECTS
from latpcap.limits import LIMITS
from latpcap.tables import SETUP
from latpcap.vocabulary import PROVEN

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

LEAST_TRIP_MS = 5.0
"""On a shorter path no number of round trips is felt before some hundreds."""
LEAST_MS = 200.0
"""So long all of them together are worth a line: a person sees it (Nielsen, 0.1 to 1 s)."""
MOST_PATH = 0.75
"""Of a request that only waits for the path at least this share is the path's."""
AT_ONCE = 0.25
"""The next one follows within this share of the round trip: the program waited for nothing else."""
RUN = 16
"""So many requests one after the other are a loop over rows, not a page's few steps."""
CONNECTS = 3
"""So many connections with one request each are a habit."""
REDIRECTED, FOLLOWED_MS = 2, 50.0
"""So many redirects in a row are more than one to HTTPS; programs follow them at once."""
WINDOW = 0.5
"""A server's flight that waits for an ACK waits for a round trip: at least this share of one."""
SURE = 0.9


def found(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Work that took more round trips than it has to, by server."""
    import numpy as np

    streams, rows = tables["streams"], tables["exchanges"]
    if not rows.num_rows:
        return []
    protocol, words = arrays.codes(rows, "protocol")
    method, methods = arrays.codes(rows, "method")
    asked = protocol != arrays.code_of(words, SETUP)
    asked &= arrays.numbers(rows, "complete").astype(bool)
    hello = asked & (method == arrays.code_of(methods, "handshake"))
    hello &= protocol == arrays.code_of(words, "tls")
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(rows, "stream"))
    took, path = (np.nan_to_num(arrays.numbers(rows, f"{name}_ms").astype(float)) for name in ("latency", "network"))
    of = _Of(streams, place)
    found_ = _certificates(of, rows, hello, took, path)
    found_ += _each(of, rows, hello, asked & ~hello, took)
    found_ += _redirects(of, rows, asked & ~hello, took)
    return found_ + _in_turn(of, rows, asked & ~hello, took, path)


class _Of:
    """Whose request is which row?"""

    def __init__(self, streams: pa.Table, place: Array):
        self.place = place
        self.number = arrays.numbers(streams, "stream")
        self.server, self.servers = arrays.codes(streams, "server")
        self.port = arrays.numbers(streams, "server_port")
        self.client, _ = arrays.codes(streams, "client")
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


def _certificates(of: _Of, rows: pa.Table, hello: Array, took: Array, path: Array) -> list[Finding]:
    """TLS handshakes in which the server's certificates waited for its congestion window."""
    import numpy as np

    if not hello.any():
        return []
    waited = np.nan_to_num(arrays.numbers(rows, "cwnd_ms").astype(float))
    at = np.flatnonzero(hello & (waited > 0))
    made_ = []
    for server, mine in of.groups(of.place[at]).items():
        here = at[mine]
        rtt = np.nan_to_num(of.rtt[of.place[here]])
        here = here[(waited[here] >= WINDOW * rtt) & (rtt >= LEAST_TRIP_MS)]
        if len(here):
            many = int((hello & np.isin(of.place, _streams(of, server))).sum())
            made_.append(_row("tls_certificates", "server", "late", server, of, rows, here, waited[here], many, took))
    return made_


def _streams(of: _Of, server: tuple[str, int]) -> Array:
    import numpy as np

    found_: Array = np.flatnonzero((of.server == of.servers.index(server[0])) & (of.port == server[1]))
    return found_


def _each(of: _Of, rows: pa.Table, hello: Array, asked: Array, took: Array) -> list[Finding]:
    """Servers of which each request, or nearly, got a TLS connection of its own."""
    import numpy as np

    if not hello.any():
        return []
    requests = np.bincount(of.place[asked], minlength=len(of.number))
    at = np.flatnonzero(hello)
    made_ = []
    for server, mine in of.groups(of.place[at]).items():
        here = at[mine]
        rtt = np.nan_to_num(of.rtt[of.place[here]])
        each = requests[of.place[here]]
        alone = here[(each == 1) & (rtt >= LEAST_TRIP_MS)]
        if len(alone) < CONNECTS or 2 * len(alone) < len(here):
            continue
        spent = took[alone] + np.nan_to_num(of.rtt[of.place[alone]])
        if spent.sum() >= LEAST_MS:
            made_.append(_row("tls_each", "client", "path", server, of, rows, alone, spent, len(here), took))
    return made_


def _in_turn(of: _Of, rows: pa.Table, asked: Array, took: Array, path: Array) -> list[Finding]:
    """Requests one after the other on a connection, each of which waited for the path and hardly for anything else."""
    import numpy as np

    at = np.flatnonzero(asked)
    if len(at) < RUN:
        return []
    at = at[np.lexsort((arrays.numbers(rows, "start")[at], of.place[at]))]
    start, end = arrays.numbers(rows, "start")[at], arrays.numbers(rows, "end")[at]
    alone = (path[at] >= MOST_PATH * took[at]) & (path[at] >= LEAST_TRIP_MS)
    gap = (start[1:] - end[:-1]) / 1e6
    follows = alone[1:] & alone[:-1] & (of.place[at][1:] == of.place[at][:-1])
    follows &= (gap >= 0) & (gap <= AT_ONCE * path[at][1:])
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    long = ends - begins + 1 >= RUN
    runs = list(zip(begins[long].tolist(), ends[long].tolist(), strict=True))
    made_ = []
    places = of.place[at[np.array([begin for begin, _ in runs], np.int64)]]
    for server, mine in of.groups(places).items():
        here = np.concatenate([at[runs[run][0] : runs[run][1] + 1] for run in mine.tolist()])
        longest = max((runs[run] for run in mine.tolist()), key=lambda run: run[1] - run[0])
        span = (end[longest[1]] - start[longest[0]]) / 1e6
        if took[here].sum() >= LEAST_MS:
            extra = {"run": longest[1] - longest[0] + 1, "whole_ms": span, "trip_ms": float(np.median(path[here]))}
            many = int((asked & np.isin(of.place, _streams(of, server))).sum())
            row = _row("in_turn", "client", "path", server, of, rows, here, took[here], many, took, extra)
            made_.append(row)
    return made_


def _redirects(of: _Of, rows: pa.Table, asked: Array, took: Array) -> list[Finding]:
    """Redirects that a client follows at once, several in a row, each with its request and maybe its connection."""
    import numpy as np

    away = asked & np.isin(arrays.numbers(rows, "status").astype(float), REDIRECTS)
    if away.sum() < REDIRECTED:
        return []
    at = np.flatnonzero(asked)
    start, end = arrays.numbers(rows, "start"), arrays.numbers(rows, "end")
    opens = arrays.numbers(rows, "index") == 0
    begin = np.where(opens, np.minimum(of.start[of.place], start), start)
    at = at[np.lexsort((begin[at], of.client[of.place[at]]))]
    # each to the one that its client begins next, on any connection
    pause = (begin[at[1:]] - end[at[:-1]]) / 1e6
    follows = away[at[:-1]] & (of.client[of.place[at[1:]]] == of.client[of.place[at[:-1]]])
    follows &= (pause >= 0) & (pause <= FOLLOWED_MS) & (np.nan_to_num(of.rtt[of.place[at[:-1]]]) >= LEAST_TRIP_MS)
    edges = np.flatnonzero(np.diff(np.r_[False, follows, False].astype(np.int8)))
    runs = [(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True) if b - a >= REDIRECTED]
    made_ = []
    firsts = of.place[at[np.array([a for a, _ in runs], np.int64)]]
    for server, mine in of.groups(firsts).items():
        chains = [runs[run] for run in mine.tolist()]
        here = np.concatenate([at[a:b] for a, b in chains])
        spent = np.concatenate([begin[at[a + 1 : b + 1]] - begin[at[a:b]] for a, b in chains]) / 1e6
        a, b = max(chains, key=lambda chain: begin[at[chain[1]]] - begin[at[chain[0]]])
        if spent.sum() < LEAST_MS:
            continue
        [named] = rows.select(["method", "target"]).slice(int(at[a]), 1).to_pylist()
        extra = {
            "run": b - a, "whole_ms": float(begin[at[b]] - begin[at[a]]) / 1e6, "connects": int(opens[at[a:b]].sum()),
            "name": traffic.called(named["method"], named["target"]),
        }  # fmt: skip
        made_.append(_row("redirects", "server", "path", server, of, rows, here, spent, len(here), took, extra))
    return made_


def _row(
    sentence: str, owner: str, harm: Harmful, server: tuple[str, int], of: _Of, rows: pa.Table, here: Array,
    waited: Array, many: int, took: Array, extra: Mapping[str, float | str] | None = None,
) -> Finding:  # fmt: skip
    worst = int(waited.argmax())
    row, ordered = int(here[worst]), sorted(waited.tolist())
    frame = int(arrays.numbers(rows, "request_first_frame")[row])
    spare = float(waited.sum()) * (1 - 1 / len(here) if harm == "path" else 1)  # one of them has to be
    values = {
        "n": len(here), "of": many, "server": endpoint(*server), "span_ms": (ordered[0], ordered[-1]),
        "sum_ms": float(waited.sum()), "trip_ms": float(of.rtt[of.place[row]]), **(extra or {}),
    }  # fmt: skip
    return Finding(
        kind="wait", server=server[0], server_port=server[1], cause=sentence, owner=owner, exchanges=len(here),
        of_exchanges=many, total_ms=spare, median_ms=ordered[len(ordered) // 2], max_ms=ordered[-1],
        harm=harm, grade="proven" if SURE >= PROVEN else "probable", confidence=SURE,
        worst_stream=int(of.number[of.place[row]]), worst_exchange=int(arrays.numbers(rows, "exchange")[row]),
        worst_ms=ordered[-1], worst_frames=(frame,), sentence=sentence, values=values,
    )  # fmt: skip


SYN_ACK = 2
"""Bit of Wireshark's completeness."""
LATER = (429, 503)
"""Too many requests, service unavailable: "come back later" (RFC 6585 4, RFC 9110 15.6.4)."""
TRANSIENT = range(400, 500)
"""Of mail and FTP: not now (RFC 5321 4.2.1, RFC 959 4.2.1); a server that delays unknown senders answers so, too."""
LONGEST_NS = 1_800_000_000_000
"""A program that tries again does so within this, a mail server's queue too (RFC 5321 4.5.4.1); what comes later is
another piece of work."""
RHYTHM = 0.25
"""What goes on at the same pace, within this share of it, after it was accepted is a check that repeats anyway."""


class Try(NamedTuple):
    """One try: a connection or a request. `row` is its position in its table."""

    start: int
    end: int
    row: int
    refused: bool


class Run(NamedTuple):
    """Tries that failed one after the other, and the one that did not."""

    failed: list[Try]
    success: Try

    @property
    def waited_ms(self) -> float:
        """From the first try to the one that was accepted."""
        return (self.success.start - self.failed[0].start) / 1e6


def runs(tries: list[Try]) -> list[Run]:
    """The runs of one client's tries of one thing, less those of a check that repeats at the same pace anyway."""
    tries.sort()
    found: list[Run] = []
    failed: list[Try] = []
    for at, one in enumerate(tries):
        if failed and one.start - failed[-1].end > LONGEST_NS:
            failed = []
        if one.refused:
            failed.append(one)
        elif failed:
            pause = one.start - failed[-1].start
            then = tries[at + 1].start - one.start if at + 1 < len(tries) else None
            same_pace = then is not None and abs(then - pause) <= RHYTHM * pause
            if not same_pace and one.start - failed[0].start >= LIMITS["setup_ms"] * 1e6:
                found.append(Run(failed, one))
            failed = []
    return found


def tried_again(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Connections and requests that were tried again until they were accepted, by server."""
    return [*_refused(tables["streams"]), *_later(tables["streams"], tables["exchanges"])]


def _refused(streams: pa.Table) -> Iterable[Finding]:
    """Connections that a RST answered, until the same client's next one was accepted."""
    import numpy as np

    accepted = arrays.numbers(streams, "completeness") & SYN_ACK != 0
    closed, words = arrays.codes(streams, "closed_by")
    refused = ~accepted & (closed == arrays.code_of(words, "server_rst"))
    if not refused.any() or not accepted.any():
        return
    (client, _), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port, start = arrays.numbers(streams, "server_port"), arrays.numbers(streams, "start")
    end = arrays.numbers(streams, "end")
    pairs = server.astype(np.int64) << 32 | client.astype(np.int64)
    mine = np.flatnonzero(np.isin(pairs, pairs[refused]) & (refused | accepted))
    tries: dict[tuple[int, int, int], list[Try]] = defaultdict(list)
    for at in mine.tolist():
        key = int(server[at]), int(port[at]), int(client[at])
        tries[key].append(Try(int(start[at]), int(end[at]), at, bool(refused[at])))
    by_server: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for (host, number, _), some in tries.items():
        by_server[host, number] += runs(some)
    for (host, number), these in by_server.items():
        if these:
            of = int(((server == host) & (port == number)).sum())
            clients = len(np.unique(client[[run.success.row for run in these]]))
            frames = [int(f) for f in arrays.numbers(streams, "first_frame")[_ends(these)]]
            stream = int(arrays.numbers(streams, "stream")[_longest(these).failed[0].row])
            ends = servers[host], number
            yield _retry("refused_until", ends, these, {"of": of}, clients, frames, stream, streams=of)


def _later(streams: pa.Table, exchanges: pa.Table) -> Iterable[Finding]:
    """Requests answered 429 or 503, or 4yz in mail and FTP, until the same client's next one for the same was not."""
    import numpy as np

    if not exchanges.num_rows:
        return
    status = np.nan_to_num(arrays.numbers(exchanges, "status").astype(float))
    protocol, words = arrays.codes(exchanges, "protocol")
    requests = protocol != arrays.code_of(words, SETUP)
    transient = arrays.equals(exchanges, "protocol", "smtp", "ftp")
    later = np.where(transient, np.isin(status, TRANSIENT), np.isin(status, LATER)) & requests
    if not later.any():
        return
    (method, _), (target, _) = arrays.codes(exchanges, "method"), arrays.codes(exchanges, "target")
    rows = np.flatnonzero(np.isin(target, target[later]) & (status > 0))
    every = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    place = every[rows]
    (client, _), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port")
    start, end = arrays.numbers(exchanges, "start"), arrays.numbers(exchanges, "end")
    tries: dict[tuple[int, ...], list[Try]] = defaultdict(list)
    for at, where in zip(rows.tolist(), place.tolist(), strict=True):
        key = int(server[where]), int(port[where]), int(client[where]), int(method[at]), int(target[at])
        tries[key].append(Try(int(start[at]), int(end[at]), at, bool(later[at])))
    by_server: dict[tuple[int, int], list[tuple[int, Run]]] = defaultdict(list)
    for (host, number, who, *_), some in tries.items():
        by_server[host, number] += [(who, run) for run in runs(some)]
    for (host, number), pairs in by_server.items():
        if not pairs:
            continue
        these = [run for _, run in pairs]
        first = _longest(these).failed[0].row
        [named] = exchanges.select(["method", "target", "stream"]).slice(first, 1).to_pylist()
        here = (server == host) & (port == number)
        of = int(here[every[requests]].sum())
        values: dict[str, int | str] = {
            "status": int(status[first]),
            "name": traffic.called(named["method"], named["target"]),
            "of": of,
        }
        frames = [int(f) for f in arrays.numbers(exchanges, "request_first_frame")[_ends(these)]]
        clients = len({who for who, _ in pairs})
        ends = servers[host], number
        yield _retry("later_until", ends, these, values, clients, frames, named["stream"], exchanges=of)


def _longest(these: list[Run]) -> Run:
    return max(these, key=lambda run: run.waited_ms)


def _ends(these: list[Run]) -> list[int]:
    """Rows of the first try of the longest wait, and of the one that was accepted."""
    run = _longest(these)
    return [run.failed[0].row, run.success.row]


def _retry(
    sentence: str, server: tuple[str, int], these: list[Run], extra: Mapping[str, int | str], clients: int,
    frames: list[int], stream: int, streams: int = 0, exchanges: int = 0,
) -> Finding:  # fmt: skip
    waited = sorted(run.waited_ms for run in these)
    tries = sum(len(run.failed) for run in these)
    values = {"server": endpoint(*server), "n": tries, "span_ms": (waited[0], waited[-1]), "frame": frames[0], **extra}
    return Finding(
        kind="wait", server=server[0], server_port=server[1], cause=sentence, owner="server", clients=clients,
        exchanges=tries if exchanges else None, of_exchanges=exchanges or None,
        streams=tries if streams else None, of_streams=streams or None,
        total_ms=sum(waited), median_ms=waited[len(waited) // 2], max_ms=waited[-1], harm="late", grade="proven",
        confidence=LIMITS["alert_confidence"], worst_stream=stream, worst_ms=waited[-1], worst_frames=tuple(frames),
        sentence=sentence, values=values,
    )  # fmt: skip
