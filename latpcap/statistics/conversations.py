"""Tables of conversations and endpoints, counted as Wireshark does.

TCP is counted from `events`, all other layers from the frames, which are read again. Bytes are those of whole frames on
the wire. `a` is the sender of the conversation's first packet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from latpcap.lazy import np, pa
from latpcap.statistics import layers

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded
    from latpcap.statistics.layers import End

Layer: TypeAlias = Literal["eth", "ip", "ipv6", "tcp", "udp"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
_NS = 1e9
_Packet: TypeAlias = tuple[str, "int | None", "End", "End", int]
"""Layer, number of its stream (of TCP and UDP), source, destination, and number of the frame."""


def _packets(capture: Recorded, wanted: tuple[Layer, ...], frames: set[int] | None) -> Iterator[_Packet]:
    """Yield every packet of the wanted layers; `frames` limits the frames, None means all."""
    if set(wanted) - {"tcp"}:
        streams: dict[frozenset[End], int] = {}
        for frame_layers in layers.decode(capture.unfiltered.records()):
            for layer, source, target in frame_layers.ends:
                number = None
                if layer == "udp":
                    number = streams.setdefault(frozenset((source, target)), len(streams))
                if layer in wanted and (frames is None or frame_layers.frame in frames):
                    yield layer, number, source, target, frame_layers.frame
    if "tcp" in wanted:
        names = ("stream", "src", "sport", "dst", "dport", "frame")
        columns = (capture.arrow("events")[name].to_pylist() for name in names)
        for stream, src, sport, dst, dport, frame in zip(*columns, strict=True):
            yield "tcp", stream, (src, sport), (dst, dport), frame


def _layers_of(layer: Layer | None) -> tuple[Layer, ...]:
    if layer is None:
        return LAYERS
    if layer not in LAYERS:
        raise ValueError(f"layer={layer!r} is not one of {', '.join(LAYERS)}")
    return (layer,)


def _heads(capture: Recorded) -> tuple[list[int], list[int]]:
    """Return time (ns since 1970) and length on the wire (bytes) of each frame; frame numbers are the indexes."""
    table = np.frombuffer(b"".join(capture.unfiltered.heads()), "<i8").reshape(-1, 3)
    return [0, *table[:, 0].tolist()], [0, *table[:, 1].tolist()]


def left_by_filter(capture: Recorded) -> set[int] | None:
    """Return the frames that the capture's filter leaves; None without a filter."""
    if capture.unfiltered is capture:
        return None
    return {*capture.arrow("events")["frame"].to_pylist(), *capture.others}


def conversations(capture: Recorded, layer: Layer | None = None) -> pa.Table:
    """Return a row for each pair of ends of one layer, or of all; see `Capture.conversations`."""
    times, sizes = _heads(capture)
    rows: dict[tuple[object, ...], _Pair] = {}
    for kind, number, source, target, frame in _packets(capture, _layers_of(layer), left_by_filter(capture)):
        key = (kind, number) if number is not None else (kind, frozenset((source, target)))
        pair = rows.get(key)
        if pair is None:
            pair = rows[key] = _Pair(kind, number, source, target, times[frame])
        pair.start, pair.end = min(pair.start, times[frame]), max(pair.end, times[frame])
        direction = pair.forth if source == pair.a else pair.back
        direction[0] += 1
        direction[1] += sizes[frame]
    pairs = sorted(rows.values(), key=lambda pair: (*_sort_key(pair.layer, pair.forth[1] + pair.back[1]), pair.start))
    return pa.Table.from_pylist([pair.row(times[1]) for pair in pairs], schema=_conversation_schema())


def _sort_key(layer: str, size: int) -> tuple[int, int]:
    """Return the sort key of a row: by layer, then by falling size."""
    return [*LAYERS].index(layer), -size  # type: ignore[arg-type]


class _Pair:
    """Counts of one conversation: packets and bytes from `a` to `b` (`forth`) and from `b` to `a` (`back`)."""

    def __init__(self, layer: str, stream: int | None, a: End, b: End, start: int) -> None:
        self.layer, self.stream, self.a, self.b = layer, stream, a, b
        self.start = self.end = start
        self.forth, self.back = [0, 0], [0, 0]

    def row(self, zero: int) -> dict[str, object]:
        (packets, size), (packets_back, size_back) = self.forth, self.back
        duration_s = (self.end - self.start) / _NS
        return {
            "layer": self.layer, "stream": self.stream,
            "a": self.a[0], "a_port": self.a[1], "b": self.b[0], "b_port": self.b[1],
            "packets": packets + packets_back, "bytes": size + size_back, "packets_a_to_b": packets,
            "bytes_a_to_b": size, "packets_b_to_a": packets_back, "bytes_b_to_a": size_back, "start": self.start,
            "start_s": (self.start - zero) / _NS, "duration_s": duration_s,
            "bits_per_s_a_to_b": 8 * size / duration_s if duration_s > 0 else None,
            "bits_per_s_b_to_a": 8 * size_back / duration_s if duration_s > 0 else None,
        }  # fmt: skip


def _conversation_schema() -> pa.Schema:
    word, number, port, rate = pa.string(), pa.uint64(), pa.uint16(), pa.float64()
    return pa.schema(
        [
            ("layer", word), ("stream", pa.uint32()), ("a", word), ("a_port", port), ("b", word), ("b_port", port),
            ("packets", number), ("bytes", number), ("packets_a_to_b", number), ("bytes_a_to_b", number),
            ("packets_b_to_a", number), ("bytes_b_to_a", number), ("start", pa.timestamp("ns", "UTC")),
            ("start_s", rate), ("duration_s", rate), ("bits_per_s_a_to_b", rate), ("bits_per_s_b_to_a", rate),
        ]
    )  # fmt: skip


def endpoints(capture: Recorded, layer: Layer | None = None) -> pa.Table:
    """Return a row for each end of one layer, or of all; see `Capture.endpoints`."""
    times, sizes = _heads(capture)
    rows: dict[tuple[str, End], list[int]] = {}
    for kind, _, source, target, frame in _packets(capture, _layers_of(layer), left_by_filter(capture)):
        for first_count, end in ((0, source), (2, target)):
            row = rows.setdefault((kind, end), [0, 0, 0, 0, times[frame], times[frame]])
            row[first_count] += 1
            row[first_count + 1] += sizes[frame]
            row[4], row[5] = min(row[4], times[frame]), max(row[5], times[frame])
    table = []
    for (kind, end), row in sorted(
        rows.items(), key=lambda entry: (*_sort_key(entry[0][0], entry[1][1] + entry[1][3]), entry[1][4])
    ):
        sent, sent_bytes, received, received_bytes, start, last = row
        table.append(
            {
                "layer": kind, "address": end[0], "port": end[1], "packets": sent + received,
                "bytes": sent_bytes + received_bytes, "packets_sent": sent, "bytes_sent": sent_bytes,
                "packets_received": received, "bytes_received": received_bytes, "start": start,
                "start_s": (start - times[1]) / _NS, "duration_s": (last - start) / _NS,
            }
        )  # fmt: skip
    word, number, rate = pa.string(), pa.uint64(), pa.float64()
    schema = pa.schema(
        [
            ("layer", word), ("address", word), ("port", pa.uint16()), ("packets", number), ("bytes", number),
            ("packets_sent", number), ("bytes_sent", number), ("packets_received", number), ("bytes_received", number),
            ("start", pa.timestamp("ns", "UTC")), ("start_s", rate), ("duration_s", rate),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(table, schema=schema)
