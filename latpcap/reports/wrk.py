"""The report that wrk would have printed for the requests of a capture.

The rules are those of wrk's src/wrk.c and src/stats.c: samples in microseconds, the correction for coordinated
omission, ranks and units. A request that is in progress when wrk stops, the last of each connection, is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap import arrays
from latpcap.format import endpoint, ms
from latpcap.lazy import np, pa, pc
from latpcap.reports.report_text import Report, Subject, binary, metric, padded, time_us
from latpcap.tables import Needed, TableSlice

if TYPE_CHECKING:
    from latpcap.arrays import Array

HTTP = ("http", "http2")
PERCENTILES = (50, 75, 90, 99)
"""Percentiles of latency that wrk prints."""
TIMEOUT_US = 2_000_000
"""wrk's --timeout: longer requests are not samples."""
SAMPLE_NS = 100_000_000
"""Interval of wrk's samples of Req/Sec: 100 ms."""
AT_ONCE_MS = 1.0
"""Upper bound on the median pause between two requests, less the shortest, of a client without think time such as wrk.
In 33 of 34 recordings of wrk with 1 to 100 connections it was at most 0.84 ms, in one 1.01 ms.
"""


def needed() -> Needed:
    """Return the columns that `report` reads: of `events` FIN and RST of clients, and data of servers."""
    exchanges = ("stream", "protocol", "start", "end", "complete", "status", "latency_ms", "client_latency_ms")
    events = ("time", "stream", "from_client", "flags", "len", "retransmission")
    return {
        "exchanges": TableSlice(exchanges),
        "streams": TableSlice(("server", "server_port", "start")),
        "events": TableSlice(events, _ends_or_answers),
    }


def _ends_or_answers(events: pa.Table) -> pa.ChunkedArray:
    ends = pc.match_substring_regex(events["flags"].cast(pa.string()), "FIN|RST")
    return pc.if_else(events["from_client"], ends, pc.greater(events["len"], 0))


def report(capture: Subject, server: str | None) -> Report:
    """Return wrk's report for `server`, or the server with the most HTTP requests. ValueError without any."""
    exchanges, streams = capture.arrow("exchanges"), capture.arrow("streams")
    name, server_rows, ends = _server(exchanges, streams, server)
    counted_rows, cut = _counted(exchanges, server_rows)
    if not len(counted_rows):
        raise ValueError(f"{name} answered no request that wrk would count")
    begin, stop = _run(capture, streams, exchanges, server_rows)
    busy = _busy_ms(exchanges, server_rows, counted_rows)
    us = _latency_us(exchanges, counted_rows, busy)
    timeouts = int((us > TIMEOUT_US).sum())
    samples = np.sort(us[us <= TIMEOUT_US])
    connections = len(np.unique(arrays.numbers(exchanges, "stream")[server_rows]))
    runtime_us = max((stop - begin) / 1000, 1.0)
    if not len(samples):
        raise ValueError(f"every request to {name} took longer than wrk's timeout of {TIMEOUT_US / 1e6:g} s")
    numbers = statistics(samples, runtime_us, len(counted_rows), connections)
    rates = _rates(arrays.numbers(exchanges, "end")[counted_rows], begin, stop)
    read_bytes = _bytes(capture, ends, stop)
    status = arrays.numbers(exchanges, "status")[counted_rows].astype(float)
    errors = int((status > 399).sum())
    count = len(counted_rows)
    numbers |= {"server": name, "connections": connections, "requests": count, "runtime_s": runtime_us / 1e6}
    numbers |= {"bytes": read_bytes, "requests_per_s": count * 1e6 / runtime_us, "cut": cut, "errors": errors}
    lines = [
        f"Running {runtime_us / 1e6:.0f}s test @ http://{name.removesuffix(':80')}/",
        f"  {connections} connections",
        f"  Thread Stats{'Avg':>6}{'Stdev':>11}{'Max':>8}{'+/- Stdev':>12}",
        _row("Latency", [time_us(numbers[k] * 1000) for k in ("mean_ms", "stdev_ms", "max_ms")], numbers["within"]),
    ]
    if len(rates) > 1:
        spread = float(rates.std(ddof=1))
        around = 100 * float((np.abs(rates - rates.mean()) <= spread).mean())
        row = [metric(float(v)) for v in (rates.mean(), spread, rates.max())]
        lines.append(_row("Req/Sec", row, around))
    lines.append("  Latency Distribution")
    lines += [f"{rank:>7}%{padded(time_us(numbers[f'p{rank}_ms'] * 1000), 10)}" for rank in PERCENTILES]
    lines.append(f"  {count} requests in {time_us(runtime_us)}, {binary(read_bytes)}B read")
    if timeouts:
        lines.append(f"  Socket errors: connect 0, read 0, write 0, timeout {timeouts}")
    if errors:
        lines.append(f"  Non-2xx or 3xx responses: {errors}")
    lines.append(f"Requests/sec: {numbers['requests_per_s']:9.2f}")
    lines.append(f"Transfer/sec: {binary(read_bytes * 1e6 / runtime_us):>10}B")
    numbers |= {"busy_ms": None if busy is None else float(busy.mean())}
    return Report("wrk", lines, _unknown(exchanges, counted_rows, cut, busy), numbers)


def _server(exchanges: pa.Table, streams: pa.Table, wanted: str | None) -> tuple[str, Array, list[int]]:
    """Return the server with the most HTTP requests: its name, the rows of these requests, and its streams."""
    code, words = arrays.codes(exchanges, "protocol")
    is_http = np.isin(code, [words.index(word) for word in HTTP if word in words])
    streams_of: dict[str, list[int]] = {}
    columns = ("stream", "server", "server_port")
    for stream, address, port in zip(*(streams[column].to_pylist() for column in columns), strict=True):
        if wanted in (None, address, endpoint(address, port)):
            streams_of.setdefault(endpoint(address, port), []).append(stream)
    stream_of_exchange = arrays.numbers(exchanges, "stream")
    last_stream = max((stream for numbers in streams_of.values() for stream in numbers), default=0)
    requests_of = np.bincount(stream_of_exchange[is_http], minlength=last_stream + 1)
    counts = {name: int(requests_of[numbers].sum()) for name, numbers in streams_of.items()}
    server = max(counts, key=lambda name: counts[name], default="")
    if not counts.get(server):
        raise ValueError(f"no HTTP request{f' to {wanted}' if wanted else ''} in this capture: wrk counts those")
    return server, np.flatnonzero(is_http & np.isin(stream_of_exchange, streams_of[server])), streams_of[server]


def _counted(exchanges: pa.Table, server_rows: Array) -> tuple[Array, int]:
    """Return the requests that wrk counts, and the number of answered ones that were in progress when it stopped.

    wrk sends the next request at once. So the last request of a connection was in progress when wrk stopped; the only
    request of a connection was so if no connection began a request after its response.
    """
    stream, start = arrays.numbers(exchanges, "stream")[server_rows], arrays.numbers(exchanges, "start")[server_rows]
    order = np.lexsort((start, stream))
    is_last = np.zeros(len(server_rows), bool)
    is_last[order[np.r_[np.flatnonzero(np.diff(stream[order])), len(order) - 1]]] = True
    _, connection_of, times = np.unique(stream, return_inverse=True, return_counts=True)
    is_late = arrays.numbers(exchanges, "end")[server_rows] >= start.max()
    under_way = is_last & ((times[connection_of] > 1) | is_late) & (len(times) > 1)
    done = arrays.numbers(exchanges, "complete")[server_rows].astype(bool)
    return server_rows[done & ~under_way], int((done & under_way).sum())


def _run(capture: Subject, streams: pa.Table, exchanges: pa.Table, server_rows: Array) -> tuple[int, int]:
    """Begin and end of the run: the first connection's SYN, and the first connection that its client closed."""
    stream = np.unique(arrays.numbers(exchanges, "stream")[server_rows])
    rows = np.isin(arrays.numbers(streams, "stream"), stream)
    start, end = arrays.numbers(exchanges, "start")[server_rows], arrays.numbers(exchanges, "end")[server_rows]
    begin = int(min(arrays.numbers(streams, "start")[rows].min(), start.min()))
    events = capture.arrow("events")
    flags, words = arrays.codes(events, "flags")
    closing = np.isin(flags, [code for code, word in enumerate(words) if "FIN" in word or "RST" in word])
    closing &= arrays.numbers(events, "from_client").astype(bool) & np.isin(arrays.numbers(events, "stream"), stream)
    time = arrays.numbers(events, "time")[closing]
    time = time[time >= start.max()]
    return begin, int(time.min()) if len(time) else int(end.max())


def _busy_ms(exchanges: pa.Table, server_rows: Array, counted_rows: Array) -> Array | None:
    """Return the time until the client read each response, in ms; None for clients that pause between requests.

    wrk's clock stops when it reads the response, and it sends the next request at once. So the time from a response to
    the next request, less the shortest of all, is the time in which wrk was busy with its other connections.
    """
    stream, start = arrays.numbers(exchanges, "stream")[server_rows], arrays.numbers(exchanges, "start")[server_rows]
    order = np.lexsort((start, stream))
    same = stream[order][1:] == stream[order][:-1]
    pause = np.full(len(server_rows), np.nan)
    after = (start[order][1:] - arrays.numbers(exchanges, "end")[server_rows][order][:-1]) / 1e6
    pause[order[:-1][same]] = after[same]
    pause = pause[np.isin(server_rows, counted_rows)]
    pauses = pause[~np.isnan(pause)]
    if not len(pauses) or pauses.min() < 0 or np.median(pauses) - pauses.min() > AT_ONCE_MS:
        return None
    return np.nan_to_num(pause - pauses.min())


def _latency_us(exchanges: pa.Table, rows: Array, busy: Array | None) -> Array:
    """Latency in whole microseconds as wrk's clock has it, plus the time that the client was `busy`: at the client if
    that is known, else at the capture.
    """
    at_capture = arrays.numbers(exchanges, "latency_ms")[rows].astype(float)
    at_client = arrays.numbers(exchanges, "client_latency_ms")[rows].astype(float)
    latency_ms = np.where(np.isnan(at_client), at_capture, at_client) + (0.0 if busy is None else busy)
    return np.floor(latency_ms * 1000).astype(np.int64)


def statistics(us: Array, runtime_us: float, complete: int, connections: int) -> dict[str, Any]:
    """Return wrk's numbers of these sorted samples, corrected for coordinated omission, in ms."""
    interval = int(runtime_us // max(complete // max(connections, 1), 1))
    corrected = us
    if complete >= connections and interval > 0:
        added = [us]
        for value in us[us > 2 * interval - 1].tolist():
            added.append(np.arange(value - interval, interval, -interval, dtype=np.int64))
        corrected = np.sort(np.concatenate(added))
    mean, stdev = float(corrected.mean()), float(corrected.std(ddof=1)) if len(corrected) > 1 else 0.0
    within = 100 * float(((corrected >= mean - stdev) & (corrected <= mean + stdev)).mean())
    numbers: dict[str, Any] = {"mean_ms": mean / 1000, "stdev_ms": stdev / 1000, "max_ms": float(us[-1]) / 1000}
    numbers |= {"within": within, "corrected": len(corrected) - len(us)}
    for rank in PERCENTILES:
        position = int(rank / 100 * len(corrected) + 0.5 + 0.5)  # half away from zero
        numbers[f"p{rank}_ms"] = float(corrected[min(max(position, 1), len(corrected)) - 1]) / 1000
    return numbers


def _rates(ends: Array, begin: int, stop: int) -> Array:
    """Return the responses per second in each whole interval of `SAMPLE_NS`."""
    edges = np.arange(begin, stop, SAMPLE_NS)
    return np.histogram(ends, edges)[0] * 10.0 if len(edges) > 1 else np.zeros(0)


def _bytes(capture: Subject, streams: list[int], stop: int) -> int:
    """Return the bytes that the server sent before the end of the run: wrk counts responses in progress, too."""
    events = capture.arrow("events")
    sent = ~arrays.numbers(events, "from_client").astype(bool)
    sent &= ~arrays.numbers(events, "retransmission").astype(bool)
    sent &= np.isin(arrays.numbers(events, "stream"), streams) & (arrays.numbers(events, "time") <= stop)
    return int(arrays.numbers(events, "len")[sent].sum())


def _row(name: str, values: list[str], within: float) -> str:
    cells = (padded(value, width) for value, width in zip(values, (8, 10, 9), strict=True))
    return f"    {name:<10}{''.join(cells)}{within:8.2f}%"


def _unknown(exchanges: pa.Table, counted_rows: Array, cut: int, busy: Array | None) -> list[str]:
    there = arrays.numbers(exchanges, "client_latency_ms")[counted_rows].astype(float)
    notes = ["threads: a capture does not know them, Req/Sec is that of all together (wrk: of each thread)"]
    if np.isnan(there).all():
        notes.append("latency is as the capture saw it: the path to the client is not known, wrk's has it")
    if busy is None:
        notes.append(
            "the client's own scheduling is in wrk's latency, and here nothing shows it: it does not ask at once"
        )
    else:
        notes.append(
            f"an answer waited {ms(float(busy.mean()))} ms for the client, by its next requests: in wrk's latency"
        )
    if cut:
        notes.append(f"{cut:,} answered requests were under way when the run stopped: wrk counts them nowhere")
    return notes


__all__ = ["report", "statistics"]
