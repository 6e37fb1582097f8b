"""The numbers of a time-sequence graph of one direction of a stream, as columns. Draws nothing.

Reads the stream's `events` and `causes`. Times are seconds in the capture; sequence numbers are relative, as in
Wireshark.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from latpcap import arrays
from latpcap.lazy import np, pa, pc
from latpcap.options import Side
from latpcap.tables import REPEATED

COLUMNS = 1_600
"""Width of a picture in pixels; marks in one column are joined."""
_BINS = 80
"""Upper bound on the bins of the throughput."""
SENDERS = ("client", "server")


@dataclass(frozen=True, slots=True)
class Stall:
    """A wait within an exchange that is long enough to be marked."""

    cause: str
    begin: float
    """Seconds in the capture, as `end`."""
    end: float
    grade: str
    from_frame: int
    to_frame: int

    @property
    def ms(self) -> float:
        """Its length in ms."""
        return (self.end - self.begin) * 1e3


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a transfer, a row of `transfers`; `begin` and `end` in seconds of the capture."""

    limited_by: str
    begin: float
    end: float
    rate_mbit: float | None
    grade: str


@dataclass(frozen=True, slots=True)
class Line:
    """A step line: each value holds until the next point."""

    seconds: Any
    values: Any


@dataclass(frozen=True, slots=True)
class Spans:
    """Vertical marks, each at an instant, from its first sequence number to the one after its last."""

    seconds: Any
    low: Any
    high: Any

    def __len__(self) -> int:
        return len(self.seconds)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Everything that is drawn of one direction."""

    sender: str
    span: tuple[float, float]
    """First and last instant shown, in seconds of the capture."""
    segments: Spans
    """New data."""
    repeats: Spans
    """Retransmissions."""
    late: Spans
    """Segments out of order."""
    sacks: Spans
    ack: Line
    """Cumulative ACK of the receiver."""
    window: Line | None
    """End of the receiver's window as a sequence number; None if its scale is not known."""
    duplicates: Line
    zero_windows: Line
    flight: Line
    """Bytes in flight."""
    rtt: Line
    """ms from a segment to its ACK at the point of capture."""
    bins: tuple[Any, Any, Any]
    """Edges in seconds, and Mbit/s sent and acknowledged in each bin."""
    payload: int
    """Bytes."""
    drawn: int
    """Marks in `segments`, after neighbours were joined."""
    total: int
    """Segments of new data."""
    stalls: tuple[Stall, ...] = field(default=())
    room: Line | None = None
    """Size of the receiver's window in bytes; None if its scale is not known."""
    limits: tuple[Limit, ...] = field(default=())


def read(
    events: pa.Table,
    causes: pa.Table | None,
    *,
    sender: Side | None,
    frames: tuple[int, int] | None,
    start_ns: int,
    mark_ms: float,
    transfers: pa.Table | None = None,
) -> Numbers:
    """Compute the graph from the tables of one stream. Options as those of `TimeSequence`."""
    length = events["len"].to_numpy().astype("int64")
    sender = _chosen_sender(sender, events["from_client"].to_numpy(), length)
    kinds = _Kinds.of(events, sender, frames)
    is_shown, is_data, is_back = kinds.is_shown, kinds.is_data, kinds.is_back
    if not is_data.any():
        where = "" if frames is None else f" in frames {frames[0]} to {frames[1]}"
        raise ValueError(f"the {sender} sends no data{where}: there is nothing to draw")
    seconds = (arrays.nanoseconds(events["time"]) - start_ns) / 1e9
    seq, ack = events["seq"].to_numpy(), events["ack"].to_numpy()
    span = (float(seconds[is_shown].min()), float(seconds[is_shown].max()))
    is_new = is_data & ~kinds.is_repeat & ~kinds.is_late

    def marks(rows: Any) -> Spans:
        return _joined(seconds[rows], seq[rows], (seq + length)[rows], span)

    segments = marks(is_new)
    window = room = None
    if kinds.is_scale_known and is_back.any():
        size = events["window"].to_numpy().astype("int64")
        window = _thinned(seconds[is_back], (ack + size)[is_back], span)
        room = _thinned(seconds[is_back], size[is_back], span)
    has_flight = is_data & events["bytes_in_flight"].is_valid().to_numpy()
    has_rtt = is_back & events["ack_rtt_ms"].is_valid().to_numpy()
    is_duplicate = is_back & events["duplicate_ack"].to_numpy()
    is_zero = is_shown & ~kinds.by_sender & events["zero_window"].to_numpy()
    return Numbers(
        sender=sender,
        span=span,
        segments=segments,
        repeats=marks(is_data & kinds.is_repeat),
        late=marks(is_data & kinds.is_late),
        sacks=_sacks(events, is_back, seconds, span),
        ack=_thinned(seconds[is_back], np.maximum.accumulate(ack[is_back]) if is_back.any() else ack[is_back], span),
        window=window,
        duplicates=_thinned(seconds[is_duplicate], ack[is_duplicate], span),
        zero_windows=_thinned(seconds[is_zero], ack[is_zero], span),
        flight=_thinned(seconds[has_flight], _filled(events["bytes_in_flight"])[has_flight], span),
        rtt=_thinned(seconds[has_rtt], events["ack_rtt_ms"].to_numpy()[has_rtt], span),
        bins=_rates(seconds, length, is_data, kinds.is_repeat, ack, is_back, span),
        payload=int(length[is_data].sum()),
        drawn=len(segments),
        total=int(is_new.sum()),
        stalls=() if causes is None else _stalls(causes, start_ns, span, mark_ms),
        room=room,
        limits=() if transfers is None else _limits(transfers, sender, start_ns, span),
    )


@dataclass(frozen=True)
class _Kinds:
    """The segments of a stream by what the graph draws them as, each a mask of all segments."""

    is_shown: Any
    by_sender: Any
    is_data: Any
    """Shown, with data of the sender."""
    is_back: Any
    """Shown, an ACK of the receiver."""
    is_repeat: Any
    is_late: Any
    """Out of order and no repeat."""
    is_scale_known: bool
    """Whether the receiver's SYN is there, which carries its window scale."""

    @classmethod
    def of(cls, events: pa.Table, sender: Side, frames: tuple[int, int] | None) -> _Kinds:
        """Return the kinds of the segments of `events`; those of other frames are not shown."""
        flags = events["flags"].cast(pa.string())
        frame, by_sender = events["frame"].to_numpy(), events["from_client"].to_numpy() == (sender == "client")
        is_shown = np.ones(len(frame), bool) if frames is None else (frame >= frames[0]) & (frame <= frames[1])
        is_repeat = np.logical_or.reduce([events[name].to_numpy() for name in REPEATED])
        return cls(
            is_shown=is_shown,
            by_sender=by_sender,
            is_data=is_shown & by_sender & (events["len"].to_numpy() > 0),
            is_back=is_shown & ~by_sender & pc.match_substring(flags, "ACK").to_numpy(),
            is_repeat=is_repeat,
            is_late=events["out_of_order"].to_numpy() & ~is_repeat,
            is_scale_known=bool((pc.match_substring(flags, "SYN").to_numpy() & ~by_sender).any()),
        )


def _chosen_sender(sender: Side | None, from_client: Any, length: Any) -> Side:
    """Return the wanted sender, or the one that sends more. ValueError for another word, and without a segment."""
    if sender is not None and sender not in SENDERS:
        raise ValueError(f"no sender {sender!r}; known are {' and '.join(SENDERS)}")
    if len(length) == 0:
        raise ValueError("no TCP segment: there is nothing to draw")
    return sender or ("client" if length[from_client].sum() > length[~from_client].sum() else "server")


def _filled(column: Any) -> Any:
    return column.fill_null(0).to_numpy().astype("int64")


def _column(seconds: Any, span: tuple[float, float]) -> Any:
    """Return the column of the picture that an instant falls in."""
    return ((seconds - span[0]) / ((span[1] - span[0]) or 1.0) * COLUMNS).astype("int64")


def _joined(seconds: Any, low: Any, high: Any, span: tuple[float, float]) -> Spans:
    """Join segments of one column of the picture whose bytes are adjacent into one mark, if there are many."""
    if len(seconds) <= 2 * COLUMNS:
        return Spans(seconds, low, high)
    column = _column(seconds, span)
    order = np.lexsort((low, column))
    column, low, high, seconds = column[order], low[order], high[order], seconds[order]
    width = int(high.max()) + 1
    reach = np.maximum.accumulate(high + column * width)  # sequence numbers of two columns never meet
    apart = np.ones(len(column), bool)
    apart[1:] = (low[1:] + column[1:] * width > reach[:-1]) | (column[1:] != column[:-1])
    first = np.flatnonzero(apart)
    return Spans(seconds[first], low[first], np.maximum.reduceat(high, first))


def _thinned(seconds: Any, values: Any, span: tuple[float, float]) -> Line:
    """Keep the first, last, least and greatest value of each column of the picture, if there are many."""
    if len(seconds) <= 4 * COLUMNS:
        return Line(seconds, values)
    column = _column(seconds, span)
    keep = np.zeros(len(column), bool)
    edges = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    keep[edges] = True
    keep[np.append(edges[1:] - 1, len(column) - 1)] = True
    for sign in (1, -1):
        order = np.lexsort((sign * values, column))
        keep[order[np.flatnonzero(np.diff(column[order], prepend=-1))]] = True
    return Line(seconds[keep], values[keep])


def _sacks(events: pa.Table, back: Any, seconds: Any, span: tuple[float, float]) -> Spans:
    """Return the blocks of the receiver's SACK options, at the instant of the ACK that carried them."""
    has_sack = back & events["sack"].is_valid().to_numpy()
    if not has_sack.any():
        empty = np.empty(0, "int64")
        return Spans(np.empty(0), empty, empty)
    lists = events["sack"].filter(pa.array(has_sack)).combine_chunks()
    counts = lists.value_lengths().to_numpy()
    blocks = lists.flatten()
    left, right = blocks.field("left").to_numpy(), blocks.field("right").to_numpy()
    return _joined(np.repeat(seconds[has_sack], counts), left, right, span)


def _rates(
    seconds: Any, length: Any, data: Any, repeated: Any, ack: Any, back: Any, span: tuple[float, float]
) -> tuple[Any, Any, Any]:
    """Return edges of bins in s, and Mbit/s of payload sent (with retransmissions) and acknowledged in each."""
    span_s = span[1] - span[0]
    step = span_s / _BINS if span_s else 1.0
    unit = 10.0 ** np.floor(np.log10(step))
    step = float(unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= step * 0.999))
    edges = np.arange(0, max(1, np.ceil(span_s / step - 1e-9)) + 1) * step + span[0]
    sent = np.histogram(seconds[data], edges, weights=length[data])[0]
    acknowledged = np.zeros(len(edges) - 1)
    if back.any():
        reached = np.maximum.accumulate(ack[back])
        steps = np.diff(reached, prepend=reached[0])
        acknowledged = np.histogram(seconds[back], edges, weights=steps)[0]
    return edges, sent * 8 / step / 1e6, acknowledged * 8 / step / 1e6


def _limits(transfers: pa.Table, sender: str, start_ns: int, span: tuple[float, float]) -> tuple[Limit, ...]:
    """Return the transfers of this sender in the time shown."""
    direction = "to_client" if sender == "server" else "to_server"
    begins, ends = ((arrays.nanoseconds(transfers[name]) - start_ns) / 1e9 for name in ("start", "end"))
    rows = transfers.select(["direction", "limited_by", "rate_mbit", "grade"]).to_pylist()
    return tuple(
        Limit(row["limited_by"], max(begin, span[0]), min(end, span[1]), row["rate_mbit"], row["grade"])
        for row, begin, end in zip(rows, begins.tolist(), ends.tolist(), strict=True)
        if row["direction"] == direction and end > span[0] and begin < span[1]
    )


def _stalls(causes: pa.Table, start_ns: int, span: tuple[float, float], mark_ms: float) -> tuple[Stall, ...]:
    """Return the causes of at least `mark_ms` in the time shown; adjacent rows of one cause are joined."""
    stalls: list[Stall] = []
    long = causes.filter(pc.greater_equal(causes["duration_ms"], mark_ms))
    begins, ends = ((arrays.nanoseconds(long[name]) - start_ns) / 1e9 for name in ("start", "end"))
    rows = long.select(["cause", "grade", "from_frame", "to_frame"]).to_pylist()
    for row, begin, end in sorted(zip(rows, begins, ends, strict=True), key=lambda transfer: transfer[1]):
        if end <= span[0] or begin >= span[1]:
            continue
        last = stalls[-1] if stalls else None
        if last and (last.cause, last.grade) == (row["cause"], row["grade"]) and abs(last.end - begin) < 1e-9:
            stalls[-1] = replace(last, end=end, to_frame=row["to_frame"])
        else:
            stalls.append(Stall(row["cause"], begin, end, row["grade"], row["from_frame"], row["to_frame"]))
    return tuple(stalls)
