"""Which bytes did each segment carry? Reads a capture a second time for one stream's payload, segment by segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.reading.recorded import Recorded


def of(capture: Recorded, stream: int | None, exchange: int | None) -> pa.Table:
    """The segments with payload of a stream, or of an exchange; see `Capture.payloads`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (stream is None) == (exchange is None):
        raise TypeError("payloads takes stream= or exchange=")
    events = capture.arrow("events")
    bounds = None
    if exchange is not None:
        rows = capture.arrow("exchanges")
        found = rows.filter(pc.equal(rows["exchange"], exchange)).to_pylist()
        if not found:
            raise IndexError(f"no exchange {exchange}")
        row = found[0]
        stream = row["stream"]
        bounds = row["request_first_frame"], row["response_last_frame"] or row["request_last_frame"]
    events = events.filter(pc.equal(events["stream"], stream))
    if not events.num_rows:
        raise IndexError(f"no stream {stream}")
    if bounds is not None:
        events = events.filter(
            pc.and_(pc.greater_equal(events["frame"], bounds[0]), pc.less_equal(events["frame"], bounds[1]))
        )
    events = events.filter(pc.greater(events["len"], 0)).select(["frame", "from_client", "seq", "len"])
    carried = {}
    for frame, _, seq, _, _, _, payload in capture.segments(int(stream or 0)):
        carried[frame, seq] = payload
    keys = zip(events["frame"].to_pylist(), events["seq"].to_pylist(), strict=True)
    return events.append_column("payload", pa.array([carried.get(key, b"") for key in keys], pa.binary()))
