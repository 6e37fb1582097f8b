"""Find uploads in blocks, each sent after the answer to the previous one, in protocols without a reader.

Each block takes a round trip, in which the line is idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from latpcap import arrays
from latpcap.findings.round_trips import MIN_RUN, MIN_SUM_MS, MIN_TRIP_MS, shortest_trips_ms
from latpcap.findings.schema import Finding
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.segments import segments

MAX_STREAMS = 100
"""Upper bound on the streams examined packet by packet: the largest uploads."""
MIN_BLOCK_BYTES = 4_096
"""Fewest bytes of a block of an upload."""
MIN_BLOCKS_SHARE = 0.9
"""Smallest share of the upload that such blocks carry."""
MIN_WAIT_SHARE = 0.6
"""Smallest share of the upload's time that round trips take; the rest is the sending of the blocks."""


def find(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """Find uploads in blocks, each sent after the answer to the previous one, in protocols without a reader."""
    streams, stretches, events = tables["streams"], tables["stretches"], segments(tables)
    if events is None:
        return
    number, sent_bytes = arrays.numbers(streams, "stream"), arrays.numbers(streams, "client_payload_bytes")
    rtt = shortest_trips_ms(streams)
    is_upload = (sent_bytes >= MIN_RUN * MIN_BLOCK_BYTES) & (rtt >= MIN_TRIP_MS)
    is_upload &= arrays.numbers(streams, "server_payload_bytes") < sent_bytes
    with_requests, counts = np.unique(arrays.numbers(stretches, "stream"), return_counts=True)
    is_upload &= ~np.isin(number, with_requests[counts >= MIN_RUN])
    upload_rows = np.flatnonzero(is_upload)
    upload_rows = upload_rows[np.argsort(-sent_bytes[upload_rows].astype(np.int64), kind="stable")[:MAX_STREAMS]]
    upload_rows.sort()
    if not len(upload_rows):
        return
    table = events.of_streams(number[upload_rows])
    stream, time, length, frame = (arrays.numbers(table, name) for name in ("stream", "time", "len", "frame"))
    by_client = arrays.numbers(table, "from_client").astype(bool)
    for row in upload_rows.tolist():
        data = np.flatnonzero((stream == number[row]) & (length > 0))
        turns = np.flatnonzero(np.diff(by_client[data], prepend=~by_client[data[:1]]))
        size = np.add.reduceat(length[data].astype(np.int64), turns)
        block_turns = np.flatnonzero(by_client[data[turns]] & (size >= MIN_BLOCK_BYTES))
        if len(block_turns) < MIN_RUN or size[block_turns].sum() < MIN_BLOCKS_SHARE * sent_bytes[row]:
            continue
        first_segments = data[turns[block_turns]]
        whole_ms = float(time[first_segments[-1]] - time[first_segments[0]]) / NS_PER_MS
        path_ms = (len(block_turns) - 1) * float(rtt[row])
        if whole_ms < MIN_SUM_MS or not MIN_WAIT_SHARE * whole_ms <= path_ms <= whole_ms:
            continue
        [ends] = streams.select(["server", "server_port", "client"]).slice(row, 1).to_pylist()
        values = {
            "server": endpoint(ends["server"], ends["server_port"]), "client": ends["client"], "n": len(block_turns),
            "sent": f"{size[block_turns].sum() / 1e6:,.3g} MB",
            "block": f"{np.median(size[block_turns]) / 1e3:,.3g} kB",
            "trip_ms": float(rtt[row]), "whole_ms": whole_ms, "path_ms": path_ms,
        }  # fmt: skip
        yield Finding.wait(
            (ends["server"], ends["server_port"]), "blocks_in_turn", "client", "path", [whole_ms], values, clients=1,
            client=ends["client"], streams=1, of_streams=1, total_ms=path_ms, worst_stream=int(number[row]),
            worst_frames=tuple(frame[first_segments[:2]].tolist()),
        )  # fmt: skip
