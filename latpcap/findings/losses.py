"""How many segments were lost? Streams in, a count out: at their sender of what was sent again, less what the receiver
had already; elsewhere of what never came by, where hosts number their packets. Wireshark's labels are no count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from latpcap import arrays, longarrays
from latpcap.limits import LIMITS

if TYPE_CHECKING:
    import pyarrow as pa

SIDES = {"client": "server", "server": "client"}


LOSS = ("fast_retransmit", "tlp", "rto")


def lost(streams: pa.Table, exchanges: pa.Table) -> int:
    """Segments lost on the way, both directions of all streams; those that the capture alone lacks are none of them."""
    import numpy as np

    hit = []
    for _, rows in arrays.sliced(exchanges):
        waited = sum(
            (np.nan_to_num(arrays.numbers(rows, f"{cause}_ms").astype(float)) for cause in LOSS),
            np.zeros(rows.num_rows),
        )
        hit.append(arrays.distinct(arrays.numbers(rows, "stream")[waited > 0]))
    mended = np.concatenate(hit) if hit else np.zeros(0, np.int64)
    total = 0
    for _, rows in arrays.sliced(streams):
        repairs = np.isin(arrays.numbers(rows, "stream"), mended)
        position, positions = arrays.codes(rows, "position")
        for side, peer in SIDES.items():
            again, late, needless, spurious, packets = (
                arrays.numbers(rows, f"{whose}_{what}").astype(np.int64)
                for whose, what in (
                    (side, "retransmissions"),
                    (side, "out_of_order"),
                    (peer, "dsacks"),
                    (side, "spurious_retransmissions"),
                    (side, "packets"),
                )
            )
            ours, theirs = (
                position == (positions.index(f"at_{s}") if f"at_{s}" in positions else -2) for s in (side, peer)
            )
            needless = np.maximum(needless, spurious)  # a DSACK may tell of the same repeat
            # what is out of order where it is sent was sent before; nobody overtakes there
            repaired = np.maximum(np.where(ours, again + late, again) - needless, 0)
            skipped = arrays.numbers(rows, f"{side}_unseen_frames").astype(float)
            unseen = np.nan_to_num(skipped).astype(np.int64)
            told = (unseen <= LIMITS["unseen_most_share"] * (unseen + packets)) & repairs
            repaired = np.maximum(repaired, np.where(told, unseen, 0))
            # at the receiver each number came by, or was lost
            repaired = np.where(theirs & ~np.isnan(skipped) & (unseen == 0), 0, repaired)
            total += int(repaired.sum())
    return total


def of_exchanges(rows: arrays.Array, tables: Mapping[str, pa.Table]) -> int:
    """Segments lost on the streams of these rows of the exchanges."""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    numbers = arrays.distinct(longarrays.taken(arrays.numbers(exchanges, "stream"), rows))
    mine = np.flatnonzero(np.isin(arrays.numbers(streams, "stream"), numbers))
    return lost(streams.take(arrays.column(mine)), exchanges)
