"""How many segments were lost? Streams in, a count out: of what was sent again, less what the receiver had already, and
of what never came by where hosts number their packets. Wireshark's labels are no count of losses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latpcap import arrays
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
    repairs = np.isin(arrays.numbers(streams, "stream"), np.concatenate(hit) if hit else [])
    total = 0
    for side, peer in SIDES.items():
        again = arrays.numbers(streams, f"{side}_retransmissions").astype(np.int64)
        needless = arrays.numbers(streams, f"{peer}_dsacks").astype(np.int64)
        repaired = np.maximum(again - needless, 0)
        if "client_unseen_frames" in streams.column_names:  # not stored by older versions
            unseen = np.nan_to_num(arrays.numbers(streams, f"{side}_unseen_frames").astype(float)).astype(np.int64)
            packets = arrays.numbers(streams, f"{side}_packets").astype(np.int64)
            told = (unseen <= LIMITS["unseen_most_share"] * (unseen + packets)) & repairs
            repaired = np.maximum(repaired, np.where(told, unseen, 0))
        total += int(repaired.sum())
    return total
