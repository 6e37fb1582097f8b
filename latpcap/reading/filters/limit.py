"""Reduce a capture's tables to the rows that pass a display filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap.lazy import np, pa, pc, pd
from latpcap.reading.filters.evaluate import datagrams, mask
from latpcap.tables import LINKS, as_exchanges, of_rows

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded


def tables(capture: Recorded, expression: str) -> dict[str, pa.Table]:
    """Return the tables that the filter changes, by name.

    `events`: the segments that pass. `streams`: the streams with such a segment; their rows are unchanged.
    `exchanges`, `connects`, `pushes`, `gaps`: the rows to which such a segment belongs (see `_kept`), with their
    `causes`. `transfers`: those of the remaining streams. `lookups`: those whose query or response passes. All other
    tables describe endpoints and files and stay as they are.

    Raises FilterError for a mistake in the expression.
    """
    events = capture.arrow("events")
    events = events.filter(mask(capture, expression))
    streams = capture.arrow("streams")
    streams = streams.filter(pc.is_in(streams["stream"], value_set=pc.unique(events["stream"])))
    exchanges = capture.arrow("exchanges")
    limited = {"exchanges": exchanges.filter(_kept(exchanges, events))}
    for name in ("connects", "pushes", "gaps"):
        table = capture.arrow(name)
        limited[name] = (
            table.filter(_kept(as_exchanges(table, name, exchanges.schema), events)) if table.num_rows else table
        )
    lookups = capture.arrow("lookups")
    if lookups.num_rows:
        segments = events["frame"].combine_chunks()
        passed = pa.concat_arrays([datagrams(capture, expression).cast(segments.type), segments])
        passes = (pc.is_in(lookups[name], value_set=passed) for name in ("request_frame", "response_frame"))
        lookups = lookups.filter(pc.or_(*passes))
    causes = of_rows(capture.arrow("causes"), {link: limited[name][link] for link, name in LINKS.items()})
    transfers = capture.arrow("transfers")
    transfers = transfers.filter(pc.is_in(transfers["stream"], value_set=streams["stream"].combine_chunks()))
    limited["transfers"] = transfers
    return {"events": events, "streams": streams, **limited, "causes": causes, "lookups": lookups}


def _kept(exchanges: pa.Table, events: pa.Table) -> pa.Array:
    """Return a mask of the exchanges that a segment of `events` belongs to.

    A segment with data belongs to the message whose first and last frame enclose it, so that pipelined neighbours are
    not included. A segment without data belongs to every exchange whose first and last frame enclose it. An exchange
    without a response lasts until the end of its stream.
    """

    def numbers(table: pa.Table, name: str, unknown: int) -> Any:
        return table[name].cast("int64").fill_null(unknown).to_numpy()

    never = np.iinfo(np.int64).max
    segments = pd.DataFrame({name: numbers(events, name, 0) for name in ("stream", "frame")})
    from_client = events["from_client"].to_numpy()
    has_data = numbers(events, "len", 0) > 0
    streams = numbers(exchanges, "stream", 0)
    first, request_end = (numbers(exchanges, f"request_{which}_frame", never) for which in ("first", "last"))
    answered, last = (numbers(exchanges, f"response_{which}_frame", never) for which in ("first", "last"))
    is_kept = np.zeros(len(streams), bool)
    for chosen, begin, end in (
        (has_data & from_client, first, request_end),
        (has_data & ~from_client, answered, last),
        (~has_data, first, last),
    ):
        spans = pd.DataFrame({"stream": streams, "begin": begin, "end": end, "row": range(len(streams))})
        spans = spans.sort_values("begin")
        nearest = pd.merge_asof(
            spans, segments[chosen], left_on="begin", right_on="frame", by="stream", direction="forward"
        )
        is_kept[nearest["row"][nearest["frame"] <= nearest["end"]]] = True
    return pa.array(is_kept)
