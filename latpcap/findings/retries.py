"""Find connections and requests that clients repeated until the server accepted one.

Connections were refused with an RST; requests were answered "later" (429, 503, and 4yz in mail and FTP). Each refusal
is quick. The user waits for the pauses between the tries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays, spill
from latpcap.findings.evidence import called
from latpcap.findings.schema import Finding
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, SETUP, Completeness
from latpcap.user_waits.cause_totals import endpoint

if TYPE_CHECKING:
    import pyarrow as pa


LATER = (429, 503)
"""Too many requests, service unavailable: "come back later" (RFC 6585 4, RFC 9110 15.6.4)."""
TRANSIENT = range(400, 500)
"""Temporary errors of mail and FTP (RFC 5321 4.2.1, RFC 959 4.2.1), also of servers that greylist unknown senders."""
MAX_PACE_CHANGE = 0.25
"""A periodic check goes on after it was accepted, at the same pace within this share."""


class Try(NamedTuple):
    """One try, a connection or a request; times in ns, `row` is its position in its table."""

    start: int
    end: int
    row: int
    refused: bool


class Run(NamedTuple):
    """Consecutive failed tries and the successful one after them."""

    failed: list[Try]
    success: Try

    @property
    def waited_ms(self) -> float:
        """Time from the first try to the successful one."""
        return (self.success.start - self.failed[0].start) / NS_PER_MS


def runs(tries: list[Try]) -> list[Run]:
    """Return the runs among one client's tries of one thing, without those of periodic checks."""
    tries.sort()
    found: list[Run] = []
    failed: list[Try] = []
    for at, one in enumerate(tries):
        if one.refused:
            failed.append(one)
        elif failed:
            pause = one.start - failed[-1].start
            then = tries[at + 1].start - one.start if at + 1 < len(tries) else None
            same_pace = then is not None and abs(then - pause) <= MAX_PACE_CHANGE * pause
            if not same_pace and one.start - failed[0].start >= LIMITS["setup_ms"] * NS_PER_MS:
                found.append(Run(failed, one))
            failed = []
    return found


def find(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find connections and requests that were repeated until they were accepted, by server."""
    return [*_refused(tables["streams"]), *_later(tables["streams"], tables["exchanges"])]


def _refused(streams: pa.Table) -> Iterable[Finding]:
    """Find connections refused with an RST until the same client's next one was accepted."""
    import numpy as np

    accepted = arrays.numbers(streams, "completeness") & Completeness.SYN_ACK != 0
    refused = ~accepted & arrays.equals(streams, "closed_by", "server_rst")
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
    """Find requests answered 429 or 503, or 4yz in mail and FTP, until the client's next equal one was accepted."""
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
            "name": called(named["method"], named["target"]),
            "of": of,
        }
        frames = [int(f) for f in arrays.numbers(exchanges, "request_first_frame")[_ends(these)]]
        clients = len({who for who, _ in pairs})
        ends = servers[host], number
        yield _retry("later_until", ends, these, values, clients, frames, named["stream"], exchanges=of)


def _longest(these: list[Run]) -> Run:
    return max(these, key=lambda run: run.waited_ms)


def _ends(these: list[Run]) -> list[int]:
    """Return the rows of the first and of the successful try of the longest run."""
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
        kind="wait", server=server[0], server_port=server[1], cause=sentence, owner="server",
        clients=clients,
        exchanges=tries if exchanges else None, of_exchanges=exchanges or None,
        streams=tries if streams else None, of_streams=streams or None,
        total_ms=sum(waited), median_ms=waited[len(waited) // 2], max_ms=waited[-1], harm="late",
        worst_stream=stream, worst_ms=waited[-1], worst_frames=tuple(frames),
        sentence=sentence, values=values,
    )  # fmt: skip
