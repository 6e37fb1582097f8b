"""The shares of protocols in the frames: the tree of Wireshark's Statistics > Protocol Hierarchy.

Up to TCP and UDP frames are counted as in Wireshark. Above TCP each segment with payload counts for the protocol of its
stream ("data" if there is none); Wireshark counts the segments in which a message ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from latpcap.lazy import np, pa
from latpcap.statistics import layers

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded


_NAMES = {"turns": "data"}
"""Wireshark's name of payload of an unknown protocol."""
_MAX_DEPTH = 32
"""Upper bound on the layers of a frame that are counted."""


def hierarchy(capture: Recorded) -> pa.Table:
    """Return one row per protocol below the one that carries it; see `Capture.hierarchy`."""
    from latpcap.statistics.conversations import left_by_filter

    unfiltered = capture.unfiltered
    sizes = np.frombuffer(b"".join(unfiltered.heads()), "<i8").reshape(-1, 3)[:, 1].tolist()
    above, left_frames = _above_tcp(unfiltered), left_by_filter(capture)
    counts: dict[tuple[str, ...], list[int]] = {}
    for frame_layers in layers.decode(unfiltered.records()):
        if left_frames is not None and frame_layers.frame not in left_frames:
            continue
        path = frame_layers.path[:_MAX_DEPTH]
        if path[-1:] == ["tcp"] and frame_layers.frame in above:
            path.append(above[frame_layers.frame])
        size = sizes[frame_layers.frame - 1]
        for depth in range(1, len(path) + 1):
            row = counts.setdefault(tuple(path[:depth]), [0, 0, 0])
            row[0] += 1
            row[1] += size
            row[2] += depth == len(path)
    rows = list(_in_tree(counts, ()))
    frames, size = (sum(row[at] for row in rows if row["level"] == 0) or 1 for at in ("frames", "bytes"))
    for entry in rows:
        entry |= {"frames_share": entry["frames"] / frames, "bytes_share": entry["bytes"] / size}
    schema = pa.schema(
        [
            ("path", pa.string()), ("protocol", pa.string()), ("level", pa.uint8()), ("frames", pa.uint64()),
            ("bytes", pa.uint64()), ("frames_share", pa.float64()), ("bytes_share", pa.float64()),
            ("end_frames", pa.uint64()),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def _in_tree(counts: dict[tuple[str, ...], list[int]], below: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    inside = [path for path in counts if path[:-1] == below]
    for path in sorted(inside, key=lambda path: (-counts[path][0], path)):
        frames, size, ends = counts[path]
        row: dict[str, Any] = {
            "path": ":".join(path),
            "protocol": path[-1],
            "level": len(below),
            "frames": frames,
            "bytes": size,
        }
        yield row | {"end_frames": ends}
        yield from _in_tree(counts, path)


def _above_tcp(capture: Recorded) -> dict[int, str]:
    """Return the protocol of each frame's payload, where its stream was recognised."""
    streams = capture.arrow("streams").select(["stream", "protocol"]).to_pylist()
    protocols = {row["stream"]: _NAMES.get(row["protocol"], row["protocol"]) for row in streams if row["protocol"]}
    events = (capture.arrow("events")[name].to_pylist() for name in ("frame", "stream", "len"))
    return {
        frame: protocols[stream]
        for frame, stream, length in zip(*events, strict=True)
        if length and stream in protocols
    }
