"""What is left of a capture behind a display filter? Makes the smaller tables of a filtered `Capture`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap.reading.filters.evaluate import datagrams, mask
from latpcap.tables import LINKS, as_exchanges, of_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.reading.rereadable import Recorded


def tables(capture: Recorded, expression: str) -> dict[str, pa.Table]:
    """Which rows does the filter leave?

    `events`: the segments that pass. `streams`: those with such a segment, each row as it is. `exchanges`,
    `connects`, `pushes`, `gaps`: those that such a segment belongs to (see `_kept`), whole, and their `causes`.
    `transfers`: those of these streams, whole.
    `lookups`: those whose question or answer passes. Other tables are about endpoints and files and stay as they are.
    FilterError for a mistake in the expression.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    events = capture.arrow("events")
    events = events.filter(mask(capture, expression))
    streams = capture.arrow("streams")
    streams = streams.filter(pc.is_in(streams["stream"], value_set=pc.unique(events["stream"])))
    limited = {"exchanges": _exchanges(capture.arrow("exchanges"), events)}
    schema = limited["exchanges"].schema
    for name in ("connects", "pushes", "gaps"):
        table = capture.arrow(name)
        limited[name] = table.filter(_kept(as_exchanges(table, name, schema), events)) if table.num_rows else table
    lookups = capture.arrow("lookups")
    if lookups.num_rows:
        segments = events["frame"].combine_chunks()
        passed = pa.concat_arrays([datagrams(capture, expression).cast(segments.type), segments])
        kept = (pc.is_in(lookups[name], value_set=passed) for name in ("request_frame", "response_frame"))
        lookups = lookups.filter(pc.or_(*kept))
    causes = of_rows(capture.arrow("causes"), {link: limited[name][link] for link, name in LINKS.items()})
    moved = capture.arrow("transfers")
    moved = moved.filter(pc.is_in(moved["stream"], value_set=streams["stream"].combine_chunks()))
    limited["transfers"] = moved
    return {"events": events, "streams": streams, **limited, "causes": causes, "lookups": lookups}


def _exchanges(exchanges: pa.Table, events: pa.Table) -> pa.Table:
    return exchanges.filter(_kept(exchanges, events))


def _kept(exchanges: pa.Table, events: pa.Table) -> pa.Array:
    """An exchange is left if a segment that passed carries a part of it, or is an ACK between its first and last frame.

    Data belongs to the message whose frames it lies between, so that a pipelined neighbour is not taken along. The last
    frame of an exchange without an answer is the end of its stream.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    def numbers(table: pa.Table, name: str, unknown: int) -> Any:
        return table[name].cast("int64").fill_null(unknown).to_numpy()

    never = np.iinfo(np.int64).max
    segments = pd.DataFrame({name: numbers(events, name, 0) for name in ("stream", "frame")})
    asks = events["from_client"].to_numpy()
    data = numbers(events, "len", 0) > 0
    of = numbers(exchanges, "stream", 0)
    first, request_end = (numbers(exchanges, f"request_{which}_frame", never) for which in ("first", "last"))
    answered, last = (numbers(exchanges, f"response_{which}_frame", never) for which in ("first", "last"))
    kept = np.zeros(len(of), bool)
    for chosen, begin, end in ((data & asks, first, request_end), (data & ~asks, answered, last), (~data, first, last)):
        spans = pd.DataFrame({"stream": of, "begin": begin, "end": end, "row": range(len(of))}).sort_values("begin")
        found = pd.merge_asof(
            spans, segments[chosen], left_on="begin", right_on="frame", by="stream", direction="forward"
        )
        kept[found["row"][found["frame"] <= found["end"]]] = True
    return pa.array(kept)
