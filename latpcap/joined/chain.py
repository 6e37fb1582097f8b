"""`Chain`, more than two captures of the same traffic in order from the client, with each exchange over all of them.

Reads the joined pairs of neighbours ("legs"). The latency at the first point is divided into the ways between
neighbours, out and back, and the time beyond the last point; the sum is exact to the nanosecond. The client's holds are
measured at the first point, each way by its own leg, the server's part at the last point.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from latpcap import arrays
from latpcap.format import shortest
from latpcap.lazy import np, pa, pc, pd
from latpcap.tables import NS_PER_MS, to_pandas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latpcap.arrays import Array
    from latpcap.joined.answer import ChainWhy
    from latpcap.joined.joined import Joined
    from latpcap.plot.flow.lifelines import PointsGraph

MAX_POINTS = len(ascii_lowercase)
"""Upper bound on the captures: columns name each by a letter."""
REST = "rest"
"""The place of time that no capture explains."""


class Chain:
    """Three or more captures of the same traffic, from the client's side on.

    `legs` are the joined pairs of neighbours (`Joined`, each with its clock, packets and fates). `exchanges` has the
    exchanges that are complete at all points. `names` are the captures; columns call them a, b, c and so on.
    """

    def __init__(self, legs: Sequence[Joined]):
        self.legs = tuple(legs)
        self.names = (legs[0].names[0], *(leg.names[1] for leg in legs))
        self.broken = list(dict.fromkeys(problem for leg in legs for problem in leg.broken))

    @property
    def letters(self) -> list[str]:
        """The letters of the points in names of columns."""
        return list(ascii_lowercase[: len(self.names)])

    @property
    def _ways(self) -> list[str]:
        return [f"{letter}_{next_letter}" for letter, next_letter in pairwise(self.letters)]

    @cached_property
    def _rows(self) -> list[Array]:
        """Of each leg, the rows of the exchanges that all points have, in the order of the first leg."""
        numbers = [(leg.arrow("exchanges")["a_exchange"].to_numpy(), leg.arrow("exchanges")["b_exchange"].to_numpy())
                   for leg in self.legs]  # fmt: skip
        rows = [np.arange(len(numbers[0][0]))]
        for (_, of_before), (of_next, _) in pairwise(numbers):
            wanted = of_before[rows[-1]]
            order = np.argsort(of_next, kind="stable")
            position = np.minimum(np.searchsorted(of_next[order], wanted), max(len(of_next) - 1, 0))
            is_known = of_next[order][position] == wanted if len(of_next) else np.zeros(len(wanted), bool)
            rows = [leg_rows[is_known] for leg_rows in rows]
            rows.append(order[position[is_known]] if len(of_next) else position[is_known])
        return rows

    @cached_property
    def _exchanges(self) -> pa.Table:
        """The exchanges that are at all points, with their ms on each way and beyond the last point."""
        tables = [leg.arrow("exchanges").take(pa.array(rows)) for leg, rows in zip(self.legs, self._rows, strict=True)]
        first = tables[0]
        columns: dict[str, Any] = {"a_exchange": first["a_exchange"]}
        points = zip(self.letters[1:], tables, strict=True)
        columns |= {f"{letter}_exchange": table["b_exchange"] for letter, table in points}
        columns |= {name: first[name] for name in ("protocol", "method", "target", "status", "start", "latency_ms")}

        def whole_ns(table: pa.Table, name: str) -> Array:
            return np.rint(table[name].to_numpy() * NS_PER_MS).astype(np.int64)

        out_ns = {f"{way}_out_ms": whole_ns(table, "out_ms") for way, table in zip(self._ways, tables, strict=True)}
        back_ns = {f"{way}_back_ms": whole_ns(table, "back_ms") for way, table in zip(self._ways, tables, strict=True)}
        # the clocks' rates differ: the difference is counted as time beyond the last point
        far_ns = whole_ns(first, "latency_ms") - sum(out_ns.values()) - sum(back_ns.values())
        for name, value in {**out_ns, "far_ms": far_ns, **dict(reversed(back_ns.items()))}.items():
            columns[name] = pa.array(value / NS_PER_MS)
        for way, table in zip(self._ways, tables, strict=True):
            columns[f"{way}_clock_error_ms"] = table["clock_error_ms"]
        return pa.table(columns)

    def arrow(self, name: str = "exchanges") -> pa.Table:
        """Return `exchanges` as a pyarrow.Table; KeyError for another name: packets and parts belong to each leg."""
        if name != "exchanges":
            raise KeyError(f"no table {name!r} over more than two captures; each leg has its own")
        return self._exchanges

    @property
    def exchanges(self) -> pd.DataFrame:
        """Where the time of each exchange was spent: a row per exchange that is complete at all points.

        `a_exchange`, `b_exchange`, `c_exchange` ... are numbers of each capture's own table. `latency_ms` at the first
        point is the sum of `a_b_out_ms`, `b_c_out_ms` ... (the request's last byte between neighbours), `far_ms`
        (beyond the last point) and `b_c_back_ms`, `a_b_back_ms`; `a_b_clock_error_ms` ... bound both ways.
        """
        return to_pandas(self._exchanges)

    def places(self, row: int | None = None) -> dict[str, float]:
        """Return the milliseconds by place, of one row of `exchanges` or of all. They add up to the latency.

        `held` and `client` are at the first point, `a_b`, `b_c` ... between neighbours, `far` beyond the last point,
        `rest` has no known place.
        """
        table, ways = self._exchanges, self._ways
        latency = table["latency_ms"].to_numpy()
        places = {
            "held": self._part(0, "client", "delayed_ack", True),
            "client": self._part(0, "client", "delayed_ack", False),
        }
        for number, way in enumerate(ways):
            places[way] = self._part(number, "between", None, True)
        places["far"] = self._part(len(ways) - 1, "server", None, True)
        places[REST] = latency - sum(places.values())
        # where two captures contradict each other only the ways are known
        wrong = places[REST] < -1e-6
        for way in ways:
            plain = table[f"{way}_out_ms"].to_numpy() + table[f"{way}_back_ms"].to_numpy()
            places[way] = np.where(wrong, plain, places[way])
        for name in ("held", "client", REST):
            places[name] = np.where(wrong, 0.0, places[name])
        places["far"] = np.where(wrong, table["far_ms"].to_numpy(), places["far"])
        rows = slice(None) if row is None else slice(row, row + 1)
        return {name: float(values[rows].sum()) for name, values in places.items()}

    def _part(self, leg: int, place: str, cause: str | None, alike: bool) -> Array:
        """Return the ms of each exchange in a leg's parts at this place: of `cause`, or of all other causes if not
        `alike`.
        """
        joined = self.legs[leg]
        parts = joined.arrow("parts")
        is_wanted = pc.equal(parts["place"], place)
        if cause is not None:
            is_cause = pc.equal(parts["cause"], cause)
            is_wanted = pc.and_(is_wanted, is_cause if alike else pc.invert(is_cause))
        parts = parts.filter(is_wanted)
        numbers = joined.arrow("exchanges")["a_exchange"].to_numpy()[self._rows[leg]]
        order = np.argsort(numbers, kind="stable")
        numbers_of_parts = parts["a_exchange"].to_numpy()
        sums = np.zeros(len(numbers))
        if len(numbers):
            index = np.minimum(np.searchsorted(numbers[order], numbers_of_parts), len(numbers) - 1)
            is_known = numbers[order][index] == numbers_of_parts
            np.add.at(sums, order[index[is_known]], parts["duration_ms"].to_numpy()[is_known])
        return sums

    def flow_graph(
        self,
        *,
        exchange: str | int | None = None,
        stream: int | None = None,
        frames: tuple[int, int] | None = None,
    ) -> PointsGraph:
        """Draw the packets between the points, with all points as lifelines on the clock of the first.

        As `Joined.flow_graph`: `exchange` is typical (the default), worst, first, or a number of A's; `stream` and
        `frames` are A's. ValueError for packets that do not exist, and for more than six points.
        """
        from latpcap.joined import flow_data

        if frames is not None or (stream is not None and exchange is None):
            return flow_data.chained(self.legs, None, (), stream=stream, frames=frames)
        table = self._exchanges
        if stream is not None:
            streams = self.legs[0].arrow("exchanges")["a_stream"].to_numpy()[self._rows[0]]
            table = table.take(arrays.integers(np.flatnonzero(streams == stream), "int64"))
        row = flow_data.chosen(table, exchange or "typical", None)
        index = self._exchanges["a_exchange"].to_pylist().index(row["a_exchange"])
        rows = []
        for leg, rows_of_leg in zip(self.legs, self._rows, strict=True):
            number = leg.arrow("exchanges")["a_exchange"][int(rows_of_leg[index])].as_py()
            rows.append(flow_data.chosen(leg.arrow("exchanges"), number, None))
        return flow_data.chained(self.legs, row, rows, stream=None, frames=None)

    def why(self, *, lang: str | None = None) -> ChainWhy:
        """Answer between which points the time went. Prints as lines; has `to_dict()` and `headline`. `lang`: "en" or
        "zh".
        """
        from latpcap import words
        from latpcap.joined.answer import ChainWhy

        table = self._exchanges
        order = table["latency_ms"].to_numpy().argsort(kind="stable")
        with words.language(lang):
            legs = [leg.why() for leg in self.legs]
            numbers: dict[str, Any] = {
                "schema": 1,
                "names": list(self.names),
                "exchanges": table.num_rows,
                "latency_ms": float(sum(table["latency_ms"].to_pylist())),
                "places": self.places(),
                "typical": None,
                "legs": [leg.to_dict() for leg in legs],
            }
            if len(order):
                row = int(order[(len(order) - 1) // 2])
                numbers["typical"] = {**table.slice(row, 1).drop(["start"]).to_pylist()[0], "places": self.places(row)}
            return ChainWhy(self.names, numbers, legs)

    def __repr__(self) -> str:
        names = " + ".join(shortest(self.names))
        return f"{names}: {self._exchanges.num_rows:,} exchanges at all {len(self.names)} points"
