"""`Recorded`: the interface of a capture whose bytes can be read again, which `Recording` implements; and the tables
that need a second reading: headers and payloads.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from latpcap.errors import NoSuchRowError
from latpcap.lazy import np, pa, pc
from latpcap.tables import HasTables

if TYPE_CHECKING:
    from latpcap.reading.pcapng_blocks import Foreign
    from latpcap.reading.reread import Record, Segments


class Recorded(HasTables, Protocol):
    """A capture with its tables and access to its bytes."""

    format: str

    @property
    def files(self) -> Sequence[str]:
        """The names of its files, in the order in which they were read."""

    @property
    def unfiltered(self) -> Recorded:
        """The capture that this is a filtered part of, or itself."""

    @property
    def others(self) -> list[int]:
        """The frames that pass its filter and are not TCP segments; none without a filter."""

    def records(self, frames: Iterable[int] | None = None) -> Iterator[Record]:
        """These frames with their bytes, or all of them, in file order."""

    def foreign(self, frames: Container[int] | None = None) -> Foreign:
        """What a pcapng file holds besides its packets; of these frames, or of all."""

    @property
    def frames(self) -> int:
        """The number of records."""

    def blocks_again(self) -> list[Iterator[bytes]]:
        """Return the bytes of each pcapng file; none for other formats and unknown sources."""

    def heads(self) -> Iterator[bytes]:
        """Time and lengths of each frame, as `reread.heads` returns them."""

    def headers_again(self) -> Iterator[bytes]:
        """Header fields that `events` lacks, as `reread.headers` returns them."""

    def segments(self, stream: int) -> Segments:
        """Return this stream's segments with their payload, in file order."""


HEADERS = ("ttl", "dscp", "ecn", "ip_id", "seq_raw", "ack_raw", "frame_len")
"""Fields left out of `events`, since they are rarely needed and would cost every capture time and memory."""


def headers(capture: Recorded, events: pa.Table) -> pa.Table:
    """HEADERS of these events, with their `frame`: of the innermost IP header, inside tunnels and fragments, too.

    `frame_len` is the whole frame's length on the wire. Null: the header was damaged; of `ip_id`: IPv6.

    CaptureError where the capture cannot be read twice.
    """
    from latpcap import arrays

    read = np.frombuffer(b"".join(capture.headers_again()), "<i8").reshape(-1, 6)
    frames = arrays.numbers(events, "frame").astype(np.int64)
    is_known = np.ones(len(frames), bool)
    if not np.array_equal(read[:, 0], frames):
        rows = np.searchsorted(read[:, 0], frames)  # the first of several segments in a frame
        rows = np.minimum(rows, max(len(read) - 1, 0))
        read = read[rows] if len(read) else np.zeros((len(frames), 6), np.int64)
        is_known = read[:, 0] == frames
    _, seq, ack, ident, ttl, tos = read.T
    columns = {"ttl": ttl, "dscp": tos >> 2, "ecn": tos & 3, "ip_id": ident, "seq_raw": seq, "ack_raw": ack}
    is_missing = {name: ~is_known | (values < 0) for name, values in columns.items()}
    arrays_by_name = {name: pa.array(values, pa.int64(), mask=is_missing[name]) for name, values in columns.items()}
    sizes = np.frombuffer(b"".join(capture.heads()), "<i8").reshape(-1, 3)[:, 1]
    arrays_by_name["frame_len"] = pa.array(sizes[frames - 1])
    fields = [events.schema.field("frame"), *(pa.field(name, pa.int64()) for name in arrays_by_name)]
    return pa.table([events["frame"], *arrays_by_name.values()], schema=pa.schema(fields))


def payloads(capture: Recorded, stream: int | None, exchange: int | None) -> pa.Table:
    """Return the segments with payload of a stream, or of an exchange; see `Capture.payloads`."""
    if (stream is None) == (exchange is None):
        raise TypeError("payloads takes stream= or exchange=")
    events = capture.arrow("events")
    bounds = None
    if exchange is not None:
        rows = capture.arrow("exchanges")
        matches = rows.filter(pc.equal(rows["exchange"], exchange)).to_pylist()
        if not matches:
            raise NoSuchRowError(f"no exchange {exchange}")
        row = matches[0]
        stream = row["stream"]
        bounds = row["request_first_frame"], row["response_last_frame"] or row["request_last_frame"]
    events = events.filter(pc.equal(events["stream"], stream))
    if not events.num_rows:
        raise NoSuchRowError(f"no stream {stream}")
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
