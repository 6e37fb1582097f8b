"""What do the headers say that the table of events does not keep? Reads a capture a second time, and gives columns.

As the analysis sees them: of the innermost IP header, also behind tunnels and fragments. Kept out of `events`, because
a time to live that nobody asks for costs every capture time and memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.reading.recorded import Recorded

COLUMNS = ("ttl", "dscp", "ecn", "ip_id", "seq_raw", "ack_raw")


def table(capture: Recorded, events: pa.Table) -> pa.Table:
    """These columns for these events, beside their `frame`. Null: the header was damaged; of `ip_id`: IPv6.

    CaptureError where the capture cannot be read twice.
    """
    import numpy as np
    import pyarrow as pa

    from latpcap import arrays

    read = np.frombuffer(b"".join(capture.headers_again()), "<i8").reshape(-1, 6)
    frames = arrays.numbers(events, "frame").astype(np.int64)
    known = np.ones(len(frames), bool)
    if not np.array_equal(read[:, 0], frames):
        rows = np.searchsorted(read[:, 0], frames)  # of several segments in one frame the first
        rows = np.minimum(rows, max(len(read) - 1, 0))
        read = read[rows] if len(read) else np.zeros((len(frames), 6), np.int64)
        known = read[:, 0] == frames
    _, seq, ack, ident, ttl, tos = read.T
    columns = {"ttl": ttl, "dscp": tos >> 2, "ecn": tos & 3, "ip_id": ident, "seq_raw": seq, "ack_raw": ack}
    lacking = {name: ~known | (values < 0) for name, values in columns.items()}
    made = {name: pa.array(values, pa.int64(), mask=lacking[name]) for name, values in columns.items()}
    fields = [events.schema.field("frame"), *(pa.field(name, pa.int64()) for name in made)]
    return pa.table([events["frame"], *made.values()], schema=pa.schema(fields))
