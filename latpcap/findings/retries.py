"""Find connections and requests that clients repeated until the server accepted one.

Connections were refused with an RST; requests were answered "later" (429, 503, and 4yz in mail and FTP). Each refusal
is quick. The user waits for the pauses between the tries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from latpcap import arrays, spill
from latpcap.findings import evidence
from latpcap.findings.schema import Finding
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, Completeness, request_mask

if TYPE_CHECKING:
    from latpcap.arrays import Array

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


def runs(tries: list[Try]) -> Iterator[Run]:
    """Return the runs among one client's tries of one thing, without those of periodic checks."""
    tries.sort()
    failed: list[Try] = []
    for i, attempt in enumerate(tries):
        if attempt.refused:
            failed.append(attempt)
        elif failed:
            pause = attempt.start - failed[-1].start
            next_pause = tries[i + 1].start - attempt.start if i + 1 < len(tries) else None
            is_periodic = next_pause is not None and abs(next_pause - pause) <= MAX_PACE_CHANGE * pause
            if not is_periodic and attempt.start - failed[0].start >= LIMITS["setup_ms"] * NS_PER_MS:
                yield Run(failed, attempt)
            failed = []


def find(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find connections and requests that were repeated until they were accepted, by server."""
    return [*_refused(tables["streams"]), *_later(tables["streams"], tables["stretches"])]


def _refused(streams: pa.Table) -> Iterable[Finding]:
    """Find connections refused with an RST until the same client's next one was accepted."""
    accepted = arrays.numbers(streams, "completeness") & Completeness.SYN_ACK != 0
    refused = ~accepted & arrays.equals(streams, "closed_by", "server_rst")
    if not refused.any() or not accepted.any():
        return
    (client, _), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port")
    pairs = server.astype(np.int64) << 32 | client.astype(np.int64)
    rows = np.flatnonzero(np.isin(pairs, pairs[refused]) & (refused | accepted))
    keys = server[rows], port[rows], client[rows]
    for (host, number), runs_of_server in _runs_by_server(streams, rows, keys, refused).items():
        values = {"of": int(((server == host) & (port == number)).sum())}
        clients = len(np.unique(client[[run.success.row for run in runs_of_server]]))
        ends = servers[host], number
        yield _finding("refused_until", ends, runs_of_server, values, clients, streams, "streams", "first_frame")


def _later(streams: pa.Table, stretches: pa.Table) -> Iterable[Finding]:
    """Find requests answered 429 or 503, or 4yz in mail and FTP, until the client's next equal one was accepted."""
    if not stretches.num_rows:
        return
    status = np.nan_to_num(arrays.numbers(stretches, "status").astype(float))
    is_request = request_mask(stretches)
    has_transient = arrays.equals(stretches, "protocol", "smtp", "ftp")
    later = np.where(has_transient, np.isin(status, TRANSIENT), np.isin(status, LATER)) & is_request
    if not later.any():
        return
    (method, _), (target, _) = arrays.codes(stretches, "method"), arrays.codes(stretches, "target")
    rows = np.flatnonzero(np.isin(target, target[later]) & (status > 0))
    stream_rows = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream"))
    (client, _), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port")
    keys = *(column[stream_rows[rows]] for column in (server, port, client)), method[rows], target[rows]
    for (host, number), runs_of_server in _runs_by_server(stretches, rows, keys, later).items():
        first = _longest(runs_of_server).failed[0].row
        request = evidence.request(stretches, first)
        is_of_server = (server == host) & (port == number)
        values: dict[str, int | str] = {
            "status": int(status[first]),
            "name": evidence.called(request["method"], request["target"]),
            "of": int(is_of_server[stream_rows[is_request]].sum()),
        }
        clients = len(np.unique(client[stream_rows[[run.success.row for run in runs_of_server]]]))
        ends = servers[host], number
        yield _finding(
            "later_until", ends, runs_of_server, values, clients, stretches, "exchanges", "request_first_frame"
        )


def _runs_by_server(
    table: pa.Table, rows: Array, keys: Sequence[Array], refused: Array
) -> dict[tuple[int, int], list[Run]]:
    """Return the runs among these rows of a table; rows with equal `keys` (server, port, ...) try one thing."""
    start, end = arrays.numbers(table, "start"), arrays.numbers(table, "end")
    tries: dict[tuple[int, ...], list[Try]] = defaultdict(list)
    for row, *key in zip(rows.tolist(), *(key.tolist() for key in keys), strict=True):
        tries[tuple(key)].append(Try(int(start[row]), int(end[row]), row, bool(refused[row])))
    by_server: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for (host, port, *_), tries_of_thing in tries.items():
        by_server[host, port] += runs(tries_of_thing)
    return {server: runs_of_server for server, runs_of_server in by_server.items() if runs_of_server}


def _longest(runs_of_server: list[Run]) -> Run:
    return max(runs_of_server, key=lambda run: run.waited_ms)


def _finding(
    sentence: str, server: tuple[str, int], runs_of_server: list[Run], more_values: Mapping[str, int | str],
    clients: int, table: pa.Table, unit: Literal["streams", "exchanges"], frame_column: str,
) -> Finding:  # fmt: skip
    """Return the finding of one server; `unit` is what `table` has in its rows."""
    waited_ms = sorted(run.waited_ms for run in runs_of_server)
    tries = sum(len(run.failed) for run in runs_of_server)
    longest = _longest(runs_of_server)
    rows = [longest.failed[0].row, longest.success.row]
    frames = tuple(int(frame) for frame in arrays.numbers(table, frame_column)[rows])
    values = {"server": endpoint(*server), "n": tries, "span_ms": (waited_ms[0], waited_ms[-1]), "frame": frames[0]}
    counts: dict[str, Any] = {unit: tries, f"of_{unit}": more_values["of"]}
    return Finding.wait(
        server, sentence, "server", "late", waited_ms, {**values, **more_values}, clients=clients,
        worst_stream=int(arrays.numbers(table, "stream")[rows[0]]), worst_frames=frames, **counts,
    )  # fmt: skip
