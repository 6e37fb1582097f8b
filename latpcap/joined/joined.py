"""`Joined`, two captures of the same traffic on one clock.

Each capture is read once. Claims are limited to what packets prove. An asymmetric path looks like a clock offset, so
every instant of B has an error bound. A packet counts as lost only by proof, or where the other capture is complete.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from latpcap import spill
from latpcap.format import escaped, shortest
from latpcap.tables import to_pandas

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from latpcap.joined import packet_fates, rewrites
    from latpcap.joined.answer import JoinedWhy
    from latpcap.joined.capture_point import Point
    from latpcap.joined.clock import Clock
    from latpcap.joined.exchanges import Matched
    from latpcap.joined.pairing import Pairing
    from latpcap.plot.delays import DelayPlot
    from latpcap.plot.flow.lifelines import PointsGraph

TABLES = ("packets", "exchanges", "parts")


class Joined:
    """Two captures of the same traffic on A's clock.

    Tables are pandas frames (`packets`, `exchanges`, `parts`) or Arrow tables by `arrow(name)`. `clock` has offset,
    rate, steps and bounds of B's clock; `way` lists what was changed between the points; `broken` are the damaged
    files. `proxied`: the captures share requests but no packets. `one_file`: A and B are sides of a proxy in one
    capture.
    """

    def __init__(self, a: Point, b: Point, pairing: Pairing | None, matched: Matched):
        self._a, self._b, self._pairing, self._matched = a, b, pairing, matched
        self.names = a.name, b.name
        self.proxied = pairing is None
        self.one_file = a is b
        self.broken = a.broken if self.one_file else [*a.broken, *b.broken]
        self.clock: Clock = matched.clock

    @cached_property
    def way(self) -> rewrites.Way:
        """What was changed between the points; empty for a proxy."""
        from latpcap.joined import rewrites

        return rewrites.Way() if self._pairing is None else rewrites.find_rewrites(self._a, self._b, self._pairing)

    @cached_property
    def _fates(self) -> tuple[packet_fates.Fates, packet_fates.Fates] | None:
        from latpcap.joined import packet_fates

        fates = None if self._pairing is None else packet_fates.classify(self._a, self._b, self._pairing)
        spill.trim_heap()
        return fates

    @cached_property
    def _packets(self) -> pa.Table:
        from latpcap.joined import tables

        return tables.packets(self._a, self._b, self._pairing, self._fates, self.clock)

    @cached_property
    def _exchanges(self) -> pa.Table:
        from latpcap.joined import tables

        table = tables.exchanges(self._a, self._b, self._matched)
        spill.release_memory()
        spill.trim_heap()
        return table

    @cached_property
    def _parts(self) -> pa.Table:
        from latpcap.joined import shares

        parts = shares.cut_exchanges(self._a, self._b, self._pairing, self._fates, self._matched)
        table = shares.table(parts, self._exchanges)
        spill.trim_heap()
        return table

    def arrow(self, name: str) -> pa.Table:
        """Return `packets`, `exchanges` or `parts` as a pyarrow.Table; KeyError for another name, and for `packets`
        with `one_file`.
        """
        tables = TABLES[1:] if self.one_file else TABLES
        if name not in tables:
            raise KeyError(f"no table {name!r}; there are {', '.join(tables)}")
        return getattr(self, f"_{name}")

    @property
    def packets(self) -> pd.DataFrame:
        """The fate of each packet: a row per packet of either capture, in order of time.

        `a_frame, b_frame` (null: not in that capture), `a_stream, b_stream`, `a_time, b_time` (both on A's clock),
        `direction` ("a_to_b", "b_to_a"), `delay_ms`, `clock_error_ms` (error bound of `b_time` and `delay_ms`; null
        where only one direction was seen), `fate` (passed, lost, doubled, made, unseen, outside, unknown), `because`,
        and `part` (true for a part of a segment that was merged or split, which has several rows).
        """
        return to_pandas(self._packets)

    @property
    def exchanges(self) -> pd.DataFrame:
        """Where the time of each exchange was spent: a row per exchange that is complete in both captures.

        `a_exchange, b_exchange` are numbers in each capture's own table. `latency_ms` is A's, from the request's last
        byte to the response's last. It is the sum of `out_ms` (the request's last byte from A to B), `far_ms` (until
        the response's last byte left B) and `back_ms`. `clock_error_ms` bounds the error of `out_ms` and of `back_ms`;
        their sum has no such error. `method`, `target` and `status` are A's.
        """
        return to_pandas(self._exchanges)

    @property
    def parts(self) -> pd.DataFrame:
        """The parts of each exchange by place and cause: consecutive rows that add up to its latency.

        `a_exchange, b_exchange`, `place` (client, between, server, unknown), `cause` (as in a capture's `causes`),
        `duration_ms`, `clock_error_ms` (0.0 where one clock measured it), `grade`, `because`.
        """
        return to_pandas(self._parts)

    def why(self, *, lang: str | None = None) -> JoinedWhy:
        """Answer where between the two points the time went. Prints as lines; has `to_dict()` and `headline`.

        One capture proves or refutes what the other makes probable: the client's capture shows how long the client held
        an acknowledgement, both show which packet was lost between them. `lang`: "en" (the default) or "zh"; ValueError
        for another.
        """
        from latpcap import words
        from latpcap.joined import answer, tables

        with words.language(lang):
            packets = tables.tally(self._a, self._b, self._pairing, self._fates, self.clock)
            spill.release_memory()
            numbers = answer.numbers(
                packets, self._exchanges, self._parts, self.clock, self.way, self.proxied, self.one_file
            )
            return answer.JoinedWhy(self.names[:1] if self.one_file else self.names, numbers)

    @property
    def points(self) -> tuple[Point, Point]:
        """Both captures: A, B."""
        return self._a, self._b

    def delays(self) -> DelayPlot:
        """Plot the packets' delay over time with the clock's error bound, and the packets that were lost.

        ValueError where no packet is at both points, as with a proxy between them.
        """
        from latpcap.plot.delays import DelayPlot

        return DelayPlot.from_table(self._packets, title=" and ".join(map(escaped, shortest(self.names))))

    def flow_graph(
        self,
        *,
        exchange: str | int | None = None,
        stream: int | None = None,
        frames: tuple[int, int] | None = None,
    ) -> PointsGraph:
        """Draw the packets between the points, with both points as lifelines on A's clock.

        `exchange` is typical (the default), worst, first, or a number of A's. `stream` and `frames` are A's; without
        `exchange` all of their packets are drawn. The slant of an arrow is the packet's delay; a cross ends a lost
        packet. ValueError for an exchange, stream or frame that does not exist.
        """
        from latpcap.joined import flow_data

        return flow_data.graph(self, exchange=exchange, stream=stream, frames=frames)

    def __repr__(self) -> str:
        if self.one_file:
            return f"{self.names[0]}: both sides of a proxy, {self._exchanges.num_rows:,} exchanges"
        both = "a proxy between" if self._pairing is None else f"{len(self._pairing.a):,} packets at both"
        return f"{self.names[0]} + {self.names[1]}: {both}, {self._exchanges.num_rows:,} exchanges"
