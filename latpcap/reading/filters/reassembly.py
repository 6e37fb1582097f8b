"""Fields of reassembled messages: Wireshark's `tcp.segment`, `tcp.reassembled_in` and related fields.

Covers HTTP/1 messages, DNS over TCP and TLS records. Wireshark also reassembles protocols that are not dissected here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from latpcap.reading.filters.heads import frames_of, messages_of

if TYPE_CHECKING:
    import pyarrow as pa


NUMBERS = {
    "tcp.segment": "the frames that carried a message which this one completes",
    "tcp.segment.count": "how many", "tcp.reassembled.length": "bytes of the message",
    "tcp.reassembled_in": "the frame that completes the message",
}  # fmt: skip
"""Numeric fields and their meanings."""
FIELDS = {*NUMBERS, "tcp.segments", "tcp.segment_data"}

Joined = tuple[list[int], int]
"""The frames that carried a message, and its length in bytes."""


def of_tables(table: pa.Table, events: pa.Table) -> Iterator[Joined]:
    """Yield the messages that more than one frame carried; `table` is from `http.completed`."""
    messages = list(messages_of(table))
    lengths = {row[f"{side}_in"]: row[f"{side}_bytes"] for row in table.to_pylist() for side in ("request", "response")}
    for (*_, last, _), frames in zip(messages, frames_of(messages, events), strict=True):
        if len(frames) > 1:
            yield frames, lengths[last] or 0


def values(joined: list[Joined], payloads: dict[int, bytes], repeats: set[int]) -> dict[str, list[tuple[int, Any]]]:
    """Return frame and value of each field, by name. Frames in `repeats` have segment data, too."""
    fields: dict[str, list[tuple[int, Any]]] = {name: [] for name in FIELDS}
    for frames, length in joined:
        last = frames[-1]
        fields["tcp.segments"].append((last, 1))
        fields["tcp.segment.count"].append((last, len(frames)))
        fields["tcp.reassembled.length"].append((last, length))
        fields["tcp.segment"] += [(last, frame) for frame in frames]
        fields["tcp.reassembled_in"] += [(frame, last) for frame in frames[:-1]]
    parts = repeats.union(*(frames for frames, _ in joined))
    fields["tcp.segment_data"] = [(frame, payloads[frame]) for frame in sorted(parts & payloads.keys())]
    return fields
