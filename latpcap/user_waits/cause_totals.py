"""Add up the time of each cause: reads the tables of one capture, returns a `CauseTotal` per server, cause and owner.

All time of every exchange is given to some cause. Nagle's wait and the delayed ACKs inside it are added up as one cause
with two owners, the stall.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from latpcap import arrays, spill
from latpcap import presentation as show
from latpcap.limits import LIMITS
from latpcap.tables import SETUP
from latpcap.user_waits import slow_requests as slowness
from latpcap.vocabulary import BACKEND, CAUSES, PROVEN, SIDES, STALL, cause_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from latpcap.arrays import Array

_SITE = re.compile(r"%[\w.+-]+(?=[\]:]|$)")
COHORTS = {"p50": (0.45, 0.55), "p90": (0.88, 0.92), "p99": (0.985, 0.995)}
"""The exchanges that represent a percentile: those whose rank by latency lies between these shares."""
IDLE_STREAM = "waits_for_event"
"""Grounds (column `because`) of a program's time between the pieces of an event stream: nobody waits for it."""
TCP_WAITS = cause_names("stall", "windows", "loss")
"""Causes in which TCP, and no program, kept an exchange waiting."""
RANKS = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
"""The rank of each percentile, as a share of the exchanges."""


@dataclass
class Server:
    """The exchanges of one server, the fast ones first."""

    address: str
    port: int
    rows: Array
    """Positions in the table of exchanges, by latency."""
    latency: Array
    total_ms: float
    """Sum of all its latencies."""
    slow: Array
    """The slow ones of `rows`, by latency."""
    unread: int
    """Number of the slow ones that are turns of a protocol without a reader."""
    all_requests: Array
    """Positions of all its requests, including those that are not judged."""
    cut: int
    """Number of judged requests that are incomplete: their latencies are what was captured of them."""
    incomplete: int
    """Number of incomplete requests that are not judged."""
    goodbyes: int
    """Number of those that are a client's last message before it closed: a quit, an unbind, a terminate."""
    polls: int
    """Number of long polls, which are not judged if the server has other requests."""
    clients: list[str]

    @property
    def waited_for(self) -> Array:
        """The slow rows that decide on the main cause; none if most are turns of a protocol without a reader."""
        return self.slow if 2 * self.unread <= len(self.slow) else self.slow[:0]

    @property
    def name(self) -> str:
        """Address and port, as `endpoint` writes them."""
        return endpoint(self.address, self.port)


@dataclass
class CauseTotal:
    """The time of one cause in one server's exchanges; `rows` and `ms` have one entry per exchange that it hit."""

    server: Server
    cause: str
    owner: str
    held_by: str | None
    rows: Array
    ms: Array
    causes: Array
    """Positions in the table of causes."""
    confidence: float
    proven: int
    """Number of exchanges in which this cause is proven."""

    @cached_property
    def total_ms(self) -> float:
        """Sum of `ms`."""
        found = float(self.ms.sum())
        spill.release_memory()
        return found

    @cached_property
    def ordered(self) -> Array:
        """`ms`, rising."""
        found = spill.from_pieces(self.ms.dtype, (self.ms[span] for span in spill.parts(len(self.ms))))
        found.sort()
        spill.release_memory()
        return found


def endpoint(address: str, port: int) -> str:
    """Return address and port as Wireshark and URLs write them: IPv6 addresses in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def without_site(address: str) -> str:
    """Return an address, or address and port, without the site that an archive appends to a private address."""
    return _SITE.sub("", address)


class CauseTotals:
    """The time of one capture by server and cause.

    `servers` are sorted by the product of number and time of their slow requests, then by time. `slow_ms` is the
    threshold beyond the path's round trip from which a request is slow; None for the protocols' own.
    """

    def __init__(self, streams: pa.Table, exchanges: pa.Table, causes: pa.Table, slow_ms: float | None = None):
        import numpy as np

        self._exchanges, self.slow_ms = exchanges, slow_ms
        place = _server_of_exchange(streams, exchanges)
        self.servers, judged, self._which = _servers(place, streams, exchanges, slow_ms)
        self._row = spill.places(arrays.numbers(exchanges, "exchange"), arrays.numbers(causes, "exchange"))
        self._duration = arrays.numbers(causes, "duration_ms")
        self._confidence, self._levels = arrays.levels(causes, "confidence")
        self._label, self._words = _labels(causes)
        spans = spill.parts(len(judged))
        owner = spill.from_pieces("int32", (np.where(judged[span], self._which[span], -1) for span in spans))
        whose = spill.take(owner, self._row)
        stream = slowness.streams(exchanges)
        if stream.any():
            whose[arrays.equals(causes, "because", IDLE_STREAM) & spill.take(stream, self._row)] = -1
        self._pieces, self._bounds = spill.grouped(whose, len(arrays.distinct(place)))
        self._spent: dict[str, list[CauseTotal]] = {}

    def put_first(self, name: str, called: Callable[[Server], list[str]]) -> None:
        """Move the server of this address, address and port, or `called` name to the front. ValueError without one."""
        mine = named(name, self.servers, called)
        self.servers = mine + [s for s in self.servers if s not in mine]

    def spent(self, server: Server) -> list[CauseTotal]:
        """Return the causes of this server's time, the most important first.

        They are sorted by family, that with the most time of the slow requests first, and then by time.
        """
        if server.name not in self._spent:
            self._spent[server.name] = self._split_up(server)
        return self._spent[server.name]

    def _split_up(self, server: Server) -> list[CauseTotal]:
        number = int(self._which[server.rows[0]])
        mine = self._pieces[slice(*self._bounds[number : number + 2].tolist())]
        found = []
        every = len(mine) == len(self._label)  # the server has all rows, so that their places need no look-up
        for code, pick in spill.places_by_key(self._label if every else spill.take(self._label, mine)).items():
            cause, owner = self._words[code]
            which = pick if every else spill.take(mine, pick)
            row, duration = spill.take(self._row, which), spill.take(self._duration, which)
            rows, ms = arrays.sums(row, duration)
            if ms.sum() <= 0:
                continue
            level = spill.take(self._confidence, which)
            proven = (row[span][(self._levels >= PROVEN)[level[span]]] for span in spill.parts(len(row)))
            found.append(
                CauseTotal(
                    server=server,
                    cause=cause,
                    owner=owner,
                    held_by=SIDES.get(owner) if cause == STALL else None,
                    rows=rows,
                    ms=ms,
                    causes=which,
                    confidence=_middle(self._levels, level, duration),
                    proven=len(arrays.distinct(spill.from_pieces(row.dtype, proven))),
                )
            )
        families = slowness.by_family(found, server.waited_for, len(server.rows))
        order = {name: place for place, name in enumerate(families)}
        few = slowness.few(server.waited_for, len(server.rows))

        def key(item: CauseTotal) -> tuple[int, float, float, str, str]:
            family = slowness.family(item.cause)
            place = order.get(family, len(order))
            ms = 0.0 if few and item.cause == "network" else families.get(family, {}).get(item.cause, 0.0)
            return place, -ms, -item.total_ms, item.cause, item.owner

        return sorted(found, key=key)


def servers(streams: pa.Table, exchanges: pa.Table) -> list[Server]:
    """Return the servers that received requests, in the order of `CauseTotals.servers`."""
    return _servers(_server_of_exchange(streams, exchanges), streams, exchanges, None)[0]


def named(name: str, among: Sequence[Server], called: Callable[[Server], list[str]]) -> list[Server]:
    """Return the servers of this address, address and port, or `called` name. ValueError without one."""
    mine = [s for s in among if name in (s.name, s.address)]
    mine = mine or [s for s in among if name in (without_site(s.name), without_site(s.address))]
    mine = mine or [s for s in among if name.lower() in map(str.lower, called(s))]
    if not mine:
        known = ", ".join(s.name for s in among[:5])
        raise ValueError(f"no server {name} received requests; there are: {known or 'none'}")
    return mine


def _servers(
    place: Array, streams: pa.Table, exchanges: pa.Table, slow_ms: float | None
) -> tuple[list[Server], Array, Array]:
    """Return the servers, the one whose slow requests did the most harm first.

    Also returns for each exchange whether it is judged, and a number of its server. Complete exchanges are judged. A
    server without a complete answer is judged by the answers that began. Exchanges that never ended are judged if TCP
    kept them waiting longer than all complete ones. There may be as many servers as exchanges, so that arrays over all
    servers are used instead of a loop.
    """
    import numpy as np

    seen = _Seen(streams, exchanges, slow_ms)
    first, which, _ = arrays.grouped(place)
    first = place[first]
    count, total = len(first), exchanges.num_rows

    def each(of: Callable[[slice], Array], weights: Array | None = None) -> Array:
        """Return for each server the number of these exchanges, or the sum of their weights."""
        found = np.zeros(count)
        for span in spill.parts(total):
            rows = np.flatnonzero(of(span)) + span.start
            found += np.bincount(which[rows], None if weights is None else weights[rows], count)
        return found

    def answered(span: slice) -> Array:
        return seen.requests[span] & seen.complete[span]

    waited = each(lambda span: answered(span) & seen.waited[span]) > 0

    def done(span: slice) -> Array:
        return answered(span) & (seen.waited[span] | ~waited[which[span]])

    def poll(span: slice) -> Array:
        return answered(span) & ~seen.waited[span] & waited[which[span]]

    def stuck(span: slice) -> Array:
        return seen.requests[span] & ~seen.complete[span] & (seen.stuck[span] > LIMITS["stuck_ms"])

    none = each(done) == 0
    held = none | ~(each(stuck, seen.stuck) <= each(done, seen.time))

    def waiting(span: slice) -> Array:
        begun = seen.requests[span] & ~seen.complete[span] & seen.begun[span] & none[which[span]]
        found: Array = stuck(span) & held[which[span]] | begun
        return found

    judged = spill.from_pieces("bool", (done(span) | waiting(span) for span in spill.parts(total)))

    def missing(span: slice) -> Array:
        return seen.requests[span] & ~judged[span] & ~poll(span)

    by_time = spill.selected(spill.argsort(seen.time), judged)
    rows, bounds = spill.grouped(spill.take(which, by_time), count)
    rows = spill.take(by_time, rows)
    slow = spill.selected(rows, seen.late)
    requests, request_bounds = spill.grouped(
        spill.from_pieces("int32", (np.where(seen.requests[s], which[s], -1) for s in spill.parts(total))), count
    )
    slow_bounds = np.r_[0, np.cumsum(each(lambda span: judged[span] & seen.late[span]))].astype(int)
    latency = spill.take(seen.time, rows)
    some = np.flatnonzero(np.diff(bounds))
    sums = _sums(latency, bounds[some])
    late_ms = np.zeros(count)
    late = np.flatnonzero(np.diff(slow_bounds))
    late_ms[late] = _sums(spill.take(seen.time, slow), slow_bounds[late])
    counts = [
        each(of).astype(int).tolist()
        for of in (
            lambda span: judged[span] & seen.late[span] & seen.unread[span],
            waiting,
            missing,
            lambda span: missing(span) & seen.goodbye[span],
            poll,
        )
    ]
    ends = _ends(first, streams)
    clients = _clients(rows, which, first, streams, seen.stream_row)
    cuts, slow_cuts, request_cuts = bounds.tolist(), slow_bounds.tolist(), request_bounds.tolist()
    found = []
    for at, spent, harmed in zip(some.tolist(), sums.tolist(), late_ms[some].tolist(), strict=True):
        mine = slice(*cuts[at : at + 2])
        unread, cut, incomplete, goodbyes, polls = (of[at] for of in counts)
        server = Server(
            *ends[at], rows=rows[mine], latency=latency[mine], total_ms=spent,
            slow=slow[slice(*slow_cuts[at : at + 2])], unread=unread,
            all_requests=requests[slice(*request_cuts[at : at + 2])], cut=cut, incomplete=incomplete,
            goodbyes=goodbyes, polls=polls, clients=clients[at],
        )  # fmt: skip
        harm = (len(server.slow) - show.UNREAD_WEIGHT * unread) * harmed
        found.append((-harm, -spent, server.name, server))
    found.sort(key=lambda one: one[:3])
    return [server for *_, server in found], judged, which


def _sums(values: Array, begins: Array) -> Array:
    """Return the sum of the values from each of these places to the next."""
    import numpy as np

    found: Array = np.add.reduceat(values, begins) if len(begins) else np.zeros(0)
    spill.release_memory()
    return found


def _ends(first: Array, streams: pa.Table) -> list[tuple[str, int]]:
    """Return address and port of each server, by its number from `_server_of_exchange`."""
    found = []
    sides = {side: (*arrays.codes(streams, side), arrays.numbers(streams, f"{side}_port")) for side in SIDES}
    for place in first.tolist():
        words, ends, ports = sides["server" if place < streams.num_rows else "client"]
        at = place % streams.num_rows
        found.append((ends[int(words[at])], int(ports[at])))
    return found


def _clients(rows: Array, which: Array, first: Array, streams: pa.Table, stream_row: Array) -> list[list[str]]:
    """Return the client addresses of each server, sorted; `rows` must be grouped by server."""
    import numpy as np

    sides = {side: arrays.codes(streams, side) for side in SIDES}
    width = max((len(addresses) for _, addresses in sides.values()), default=0)
    pairs = []
    for span in spill.parts(len(rows)):
        mine = rows[span]
        at, server = stream_row[mine], which[mine].astype(np.int64)
        code = np.where(first[server] < streams.num_rows, sides["client"][0][at], sides["server"][0][at])
        pairs.append(arrays.distinct(server * width + code))
    known = arrays.distinct(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)
    found: list[list[str]] = [[] for _ in range(len(first))]
    answers = (first < streams.num_rows).tolist()
    for server, code in zip((known // max(width, 1)).tolist(), (known % max(width, 1)).tolist(), strict=True):
        found[server].append(sides["client" if answers[server] else "server"][1][code])
    for names in found:
        names.sort()
    return found


class _Seen:
    """Properties of each exchange that decide whether it is judged and whether it was slow."""

    KINDS: ClassVar = {
        "complete": "bool", "begun": "bool", "requests": "bool", "late": "bool", "unread": "bool", "goodbye": "bool",
        "waited": "bool", "time": "float64", "stuck": "float64",
    }  # fmt: skip
    complete: Array
    begun: Array
    requests: Array
    late: Array
    unread: Array
    goodbye: Array
    waited: Array
    time: Array
    stuck: Array

    def __init__(self, streams: pa.Table, exchanges: pa.Table, slow_ms: float | None):
        self.stream_row = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
        columns = {name: spill.Column(kind) for name, kind in self.KINDS.items()}
        for span, rows in arrays.sliced(exchanges):
            for name, values in self._of(streams, rows, self.stream_row[span], slow_ms).items():
                columns[name].add(values)
        for name, column in columns.items():
            setattr(self, name, column.array())
        spill.release_memory()

    @staticmethod
    def _of(streams: pa.Table, exchanges: pa.Table, stream_row: Array, slow_ms: float | None) -> dict[str, Array]:
        import numpy as np

        complete = arrays.numbers(exchanges, "complete").astype(bool)
        begun = ~np.isnan(arrays.numbers(exchanges, "response_first_frame").astype(float))
        times = {c: arrays.numbers(exchanges, f"{c}_ms") for c in CAUSES}
        whole = sum(times.values(), np.zeros(exchanges.num_rows))
        time = np.where(complete, arrays.numbers(exchanges, "latency_ms"), whole)
        stream = slowness.streams(exchanges)
        return {
            "complete": complete,
            "begun": begun,
            # a complete exchange without an answer is a subscription whose protocol has none
            "requests": ~arrays.equals(exchanges, "protocol", SETUP) & ~(complete & ~begun),
            "late": slowness.late(exchanges, time, slow_ms),
            "unread": slowness.unread(exchanges),
            "waited": ~slowness.polls(exchanges),
            "goodbye": ~complete & ~begun & _is_goodbye(streams, exchanges, stream_row),
            # users wait for the first event of a stream; later ones are sent when there is something to report
            "time": np.where(stream, slowness.waits_for_streams(exchanges, time, slow_ms)[0], time),
            "stuck": sum((times[c] for c in TCP_WAITS), np.zeros(exchanges.num_rows)),
        }


def _is_goodbye(streams: pa.Table, exchanges: pa.Table, stream_row: Array) -> Array:
    """Return the exchanges without a method after which the client closed at once."""
    ended = arrays.numbers(streams, "end")[stream_row] - arrays.numbers(exchanges, "request_end")
    nameless = arrays.codes(exchanges, "method")[0] < 0
    fins: Array = arrays.equals(exchanges, "cut_by", "fin")
    fins = fins & arrays.equals(streams, "closed_by", "client_fin")[stream_row]
    found: Array = nameless & fins & (ended < LIMITS["goodbye_ns"])
    return found


def _server_of_exchange(streams: pa.Table, exchanges: pa.Table) -> Array:
    """Return a number for the server of each exchange: the first row of `streams` with the same server.

    If the accepting side sends the requests, the server is the stream's client. Its number is the first row with that
    client, plus the number of streams.
    """
    import numpy as np

    if not exchanges.num_rows:
        return np.zeros(0, np.int64)
    first, which, _ = arrays.grouped(server_keys(streams))
    rows = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    turned = arrays.numbers(exchanges, "server_asks").astype(bool)
    if not turned.any():
        return spill.from_pieces("int32", (first[which[rows[span]]] for span in spill.parts(len(rows))))
    client, own, _ = arrays.grouped(arrays.codes(streams, "client")[0])
    answers = streams.num_rows + client[own]
    spans = spill.parts(len(rows))
    return spill.from_pieces("int32", (np.where(turned[s], answers[rows[s]], first[which[rows[s]]]) for s in spans))


def server_keys(streams: pa.Table) -> Array:
    """Return a number for the server of each stream, made of its address and port."""
    import numpy as np

    server, _ = arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port")
    spans = spill.parts(streams.num_rows)
    return spill.from_pieces("int64", (server[span].astype(np.int64) << 16 | port[span] for span in spans))


def _labels(causes: pa.Table) -> tuple[Array, dict[int, tuple[str, str]]]:
    """Return for each row of "causes" the number of its cause and owner, and the cause and owner of each number."""
    import numpy as np

    cause, cause_words = arrays.codes(causes, "cause")
    parent, parent_words = arrays.codes(causes, "parent")
    owner, owner_words = arrays.codes(causes, "owner")
    rule, _ = arrays.codes(causes, "rule")
    owner_words = [*owner_words, *(w for w in SIDES if w not in owner_words)]
    nagle, held = arrays.code_of(cause_words, "nagle"), arrays.code_of(cause_words, "delayed_ack")
    width = len(owner_words)
    within, behind = arrays.code_of(parent_words, "nagle"), arrays.code_of(owner_words, BACKEND)
    # Nagle's part of a stall has the same rule as the held ACK; other waits of Nagle have other rules
    spans = list(spill.parts(causes.num_rows))
    rules = set[int]()
    for span in spans:
        rules.update(arrays.distinct(rule[span][(cause[span] == held) & (parent[span] == within)]).tolist())
    # the owner of a stall is the side that can mend it: the sender, which is the peer of the held ACK's owner
    other = np.array([owner_words.index(SIDES.get(w, w)) for w in owner_words], np.int16)
    label = spill.Column("int16")
    for span in spans:
        inside = (cause[span] == held) & (parent[span] == within)
        stall = inside | ((cause[span] == nagle) & np.isin(rule[span], list(rules)))
        stall |= (owner[span] == behind) & np.isin(cause[span], (nagle, held))
        whose = np.where(inside, other[owner[span]], owner[span])
        label.add(np.where(stall, len(cause_words), cause[span]).astype(np.int16) * np.int16(width) + whose)
    names, found = [*cause_words, STALL], label.array()
    return found, {int(n): (names[n // width], owner_words[n % width]) for n in arrays.distinct(found)}


def _middle(levels: Array, codes: Array, weights: Array) -> float:
    """Return the weighted median of a few levels; `codes` and `weights` have one entry per row."""
    import numpy as np

    spent = spill.sum_weights(codes, weights, len(levels))
    order = np.argsort(levels)
    total = np.cumsum(spent[order])
    return float(levels[order][np.searchsorted(total, total[-1] / 2)])


def cohort(item: CauseTotal, name: str) -> tuple[float, float]:
    """Return the part of a percentile of latency that this cause took: in ms, and as a share.

    The share is measured over the exchanges around the percentile (`COHORTS`).
    """
    import numpy as np

    server = item.server
    low, high = COHORTS[name]
    count = len(server.rows)
    start = min(int(low * count), count - 1)
    around = slice(start, max(start + 1, int(high * count)))
    near = spill.row_mask(server.rows[around], int(max(server.rows[around].max(), item.rows[-1])) + 1)
    spans = spill.parts(len(item.rows))
    taken = float(np.concatenate([item.ms[span][near[item.rows[span]]] for span in spans]).sum())
    of = float(server.latency[around].sum())
    spill.release_memory()
    share = min(1.0, taken / of) if of > 0 else 0.0
    return share * arrays.percentile(server.latency, RANKS[name]), share
