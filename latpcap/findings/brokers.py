"""Find brokers that send each message only after the acknowledgement of the previous one.

Each message then takes a round trip, or the time of the client's program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.findings.pushes import Pushed
from latpcap.findings.round_trips import MIN_IN_TURN, MIN_RUN, MIN_SUM_MS, MIN_TRIP_MS, find_runs, shortest_trips_ms
from latpcap.findings.schema import Finding
from latpcap.findings.uploads import MAX_STREAMS
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.segments import segments

if TYPE_CHECKING:
    from latpcap.arrays import Array

MAX_LATER_TRIPS = 1.1
"""Longest time until the next message if nothing else was waited for: so many round trips plus `MAX_LATER_MS`."""
MAX_LATER_MS = 2.0
"""See `MAX_LATER_TRIPS`."""
ACKS = {"amqp": (21, 21), "mqtt": (4, 6)}
"""Smallest and largest size in bytes of the acknowledgement of a message: AMQP's basic.ack, MQTT's PUBACK and PUBCOMP.
A packet of another size may be a request."""


def find(tables: Mapping[str, pa.Table], pushed: Pushed | None) -> Iterator[Finding]:
    """Find brokers that send one message at a time; by stream."""
    streams, events = tables["streams"], segments(tables)
    if events is None or pushed is None:
        return
    number, rtt = arrays.numbers(streams, "stream"), np.nan_to_num(shortest_trips_ms(streams))
    is_broker = (pushed.of_streams(number) >= MIN_IN_TURN) & arrays.equals(streams, "protocol", *ACKS)
    broker_rows = np.flatnonzero(is_broker)[:MAX_STREAMS]
    if not len(broker_rows):
        return
    table = events.of_streams(number[broker_rows])
    stream, time, length, frame = (arrays.numbers(table, name) for name in ("stream", "time", "len", "frame"))
    by_client = arrays.numbers(table, "from_client").astype(bool)
    for row in broker_rows.tolist():
        data = np.flatnonzero((stream == number[row]) & (length > 1))
        message_starts = np.flatnonzero(np.diff(by_client[data], prepend=True) & ~by_client[data])
        message_starts = message_starts[1:]  # the first message follows no other
        trip_ms, sent, acks = float(rtt[row]), data[message_starts], data[message_starts - 1]
        [ends] = streams.select(["server", "server_port", "client", "protocol"]).slice(row, 1).to_pylist()
        min_bytes, max_bytes = ACKS[ends["protocol"]]
        is_prompt = (time[sent] - time[acks]) / NS_PER_MS <= MAX_LATER_TRIPS * trip_ms + MAX_LATER_MS
        is_prompt &= (length[acks] >= min_bytes) & (length[acks] <= max_bytes)
        first, last = max(find_runs(is_prompt[1:]), key=lambda run: run[1] - run[0], default=(0, 0))
        apart: Array = np.diff(time[sent[first : last + 1]].astype(np.int64)) / NS_PER_MS
        each_ms = float(np.median(apart)) if len(apart) else 0.0
        long = np.flatnonzero(2 * apart >= each_ms)  # the steps of a log-in are shorter
        run, whole_ms = len(long) + 1, float(apart[long].sum())
        by_path = each_ms <= MAX_LATER_TRIPS * trip_ms + MAX_LATER_MS
        if not len(long) or (by_path and (run < MIN_RUN or trip_ms < MIN_TRIP_MS or whole_ms < MIN_SUM_MS)):
            continue
        is_slow = whole_ms >= LIMITS["stuck_ms"] and each_ms >= trip_ms + LIMITS["slow_ms"]
        if not by_path and (run < MIN_IN_TURN or not is_slow):
            continue
        values = {
            "server": endpoint(ends["server"], ends["server_port"]), "client": ends["client"], "run": run,
            "each_ms": trip_ms if by_path else each_ms, "whole_ms": whole_ms,
        }  # fmt: skip
        sentence = "messages_in_turn" if by_path else "consumer_in_turn"
        yield Finding.wait(
            (ends["server"], ends["server_port"]), sentence, "server" if by_path else "client", "late", [whole_ms],
            values, clients=1, client=ends["client"], streams=1, of_streams=1, worst_stream=int(number[row]),
            worst_frames=tuple(int(frame[sent[first + i]]) for i in (long[-1], long[-1] + 1)),
        )  # fmt: skip
