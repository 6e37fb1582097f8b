"""What happened to connections rather than to requests? Streams in; floods, refusals and resets out.

These take no exchange's time, so they never rank above what does; a flood of SYNs is the exception, since it may
be why nobody is answered.

Was it DNS, and what of it? Lookups of names in; findings out: a name server that does not answer, answers that were
lost, a slow one, names of a search list; and a few numbers with a sentence, whether it is DNS or not.

Each is a fact of the questions and their answers. What a resolver waits before it asks again is its own timer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from latpcap import arrays, spill, words
from latpcap.findings.schema import Finding, Harmful
from latpcap.format import printable
from latpcap.limits import LIMITS
from latpcap.user_waits import lookups as asking
from latpcap.user_waits import services
from latpcap.user_waits.cause_totals import endpoint, server_keys
from latpcap.user_waits.lookups import (
    AGAIN_MS,
    LATE_MS,
    NEIGHBOUR,
    SERVICES,
    Question,
    Resolution,
    address_in,
    owner_of,
    questions,
    resolutions,
)
from latpcap.user_waits.segments import segments
from latpcap.vocabulary import LIKELY, SEEN, worth
from latpcap.words import joined, say

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

SYN, SYN_ACK, ACK, DATA, FIN, RST = 1, 2, 4, 8, 16, 32
"""Bits of Wireshark's completeness."""
FIRST_TIMER_NS = 1_000_000_000
"""A SYN's first timer: RFC 6298 2.1."""
OUTAGE = 3
"""So many connections without an answer are no accident."""


def of(streams: pa.Table, probes: pa.Table | None = None) -> list[Finding]:
    """What did the connections suffer that no exchange shows? Floods first, then by count.

    `probes` says which SYNs ICMP has answered; without it they count as never answered.
    """
    import numpy as np

    seen = _Seen(streams)
    expired, unreachable = (seen.answered_by(probes, word) for word in ("time_exceeded", "unreachable"))
    found: list[Finding] = []
    floods: list[int] = []
    for server, rows in seen.by_server(seen.half_open):
        flood = _flood(seen, server, rows)
        if flood:
            found.append(flood)
            floods.append(server)
    loud = np.zeros(len(seen.of), bool)
    loud[[*floods, *seen.server[expired].tolist()]] = True
    quiet = ~_each(loud, seen.server)
    answered = seen.answered
    silent = seen.half_open & ~answered & ~expired & ~unreachable & ~seen.cut_off()
    unanswered = silent & quiet & ~seen.deaf()
    for there, sentence in (
        (seen.there(), "unanswered_port"),
        (~seen.there() & seen.alive(), "unanswered_host"),
        (~seen.alive(), "unanswered_all"),
    ):
        mute = _events(seen, "unanswered", "server", unanswered & there, sentence)
        found += [_outage(seen, event, unanswered & there) for event in mute]
    found += [_traced(seen, event, silent) for event in _events(seen, "traceroute", "client", expired, "traced")]
    found += _events(seen, "unreachable", "network", unreachable & seen.half_open, "unreachable")
    found += _events(seen, "half_open", "client", seen.half_open & quiet & answered, "half_open")
    refused = (seen.code & SYN != 0) & (seen.code & SYN_ACK == 0) & seen.reset_by("server")
    found += _events(seen, "refused", "server", refused, "refused")
    for side in ("server", "client"):
        found += _events(seen, "reset", side, (seen.code & DATA != 0) & seen.reset_by(side), f"reset_by_{side}")
    return sorted(found, key=lambda e: (e.cause != "syn_flood", -(e.streams or 0), e.server, e.server_port, e.cause))


def noted(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Which servers, or their clients, closed their window, and whose packets did the path mark (ECN)? Facts, and
    nobody's fault.
    """
    import numpy as np

    events, streams = segments(tables), tables["streams"]
    if events is None or not streams.num_rows:
        return []
    found: list[Finding] = []
    for side in (0, 1):
        key, frame, often = events.noted("zero_window")
        mine = key & 1 == side
        values = {"side": "client" if side else "server"}
        found += _noted(streams, "zero_window", key[mine] >> 1, frame[mine], often[mine], values)
    key, frame, often = events.noted("reports")
    agreed = np.isin(key >> 1, events.noted("agreed")[0] >> 1)
    return found + _noted(streams, "ecn", key[agreed] >> 1, frame[agreed], often[agreed], {})


PASSIVE_NS = 1_000_000_000
"""An FTP client connects for the data at once after the answer that names the port."""


def passive(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Connections for an FTP transfer, to where the server had its client connect, that nobody answered."""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    if not exchanges.num_rows:
        return []
    passive_mode = arrays.equals(exchanges, "method", "PASV", "EPSV") & arrays.equals(exchanges, "protocol", "ftp")
    entered = np.flatnonzero(passive_mode & np.isin(arrays.numbers(exchanges, "status"), (227, 229)))
    if not len(entered):
        return []
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream")[entered])
    client, _ = arrays.codes(streams, "client")
    start, end = arrays.numbers(streams, "start"), arrays.numbers(streams, "end")
    named: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for at, control in sorted(zip(arrays.numbers(exchanges, "end")[entered].tolist(), place.tolist(), strict=True)):
        named[int(client[control])].append((at, control))
    code, answered = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets") > 0
    mute = np.flatnonzero((code & SYN != 0) & ~answered & np.isin(client, list(named)))
    groups: dict[tuple[str, int, str], list[tuple[float, dict[str, Any]]]] = defaultdict(list)
    for row in mute.tolist():
        before = named[int(client[row])]
        at, control = before[bisect_right(before, int(start[row]), key=lambda one: one[0]) - 1]
        if 0 <= start[row] - at <= PASSIVE_NS:
            names = ["server", "server_port", "client", "stream", "first_frame"]
            data, ftp = (streams.select(names).slice(one, 1).to_pylist()[0] for one in (row, control))
            waited = (end[row] - start[row]) / 1e6
            groups[ftp["server"], ftp["server_port"], data["server"]].append((waited, data))
    made = []
    for (server, port, there), cases in groups.items():
        cases.sort(key=lambda case: case[0])
        worst, data = cases[-1]
        sentence = "ftp_port" if there == server else "ftp_address"
        values = {"server": endpoint(server, port), "other": endpoint(there, data["server_port"]), "n": len(cases),
                  "span_ms": (cases[0][0], worst)}  # fmt: skip
        made.append(Finding(
            kind="wait", server=server, server_port=port, cause=sentence,
            owner="network" if there == server else "server",
            clients=len({of["client"] for _, of in cases}), client=data["client"], streams=len(cases),
            total_ms=sum(case[0] for case in cases),
            max_ms=worst, harm="never",
            worst_stream=data["stream"], worst_ms=worst, worst_frames=(data["first_frame"],),
            filter=f"tcp.stream eq {data['stream']}", sentence=sentence, values=values,
        ))  # fmt: skip
    return made


def _noted(
    streams: pa.Table, cause: str, stream: Array, frame: Array, often: Array, values: Mapping[str, Any]
) -> list[Finding]:
    """One finding a server of these streams, that with the most of these packets first."""
    if not len(stream):
        return []
    _, server, of = arrays.grouped(server_keys(streams))
    places = spill.places(arrays.numbers(streams, "stream"), stream)
    mine, found = server[places], []
    for one in arrays.distinct(mine).tolist():
        rows = mine == one
        worst = int(often[rows].argmax())
        [row] = streams.select(["server", "server_port", "client", "stream"]).slice(
            int(places[rows][worst]), 1
        ).to_pylist()  # fmt: skip
        count = int(often[rows].sum())
        end = endpoint(row["server"], row["server_port"])
        found.append(
            Finding(
                kind="connection", server=row["server"], server_port=row["server_port"], cause=cause,
                owner=values.get("side", "network"), streams=int(rows.sum()), of_streams=int(of[one]),
                confidence=SEEN, worst_stream=row["stream"],
                worst_frames=(int(frame[rows][worst]),), filter=f"tcp.stream eq {row['stream']}", sentence=cause,
                values={"server": end, "n": count, "frame": int(frame[rows][worst]), **values},
            )
        )  # fmt: skip
    return sorted(found, key=lambda e: -(e.values or {})["n"])


class _Seen:
    """The streams as arrays: a flood has millions of them. A server is a number; `of` its streams."""

    def __init__(self, streams: pa.Table):
        self._streams = streams
        self._first, self.server, self.of = arrays.grouped(server_keys(streams))
        self.end = arrays.numbers(streams, "end")
        self.start, self.frame = arrays.numbers(streams, "start"), arrays.numbers(streams, "first_frame")
        self.code = arrays.numbers(streams, "completeness")
        spans = spill.parts(streams.num_rows)
        answers = arrays.numbers(streams, "server_packets")
        self.answered = spill.made("bool", (answers[span] > 0 for span in spans))
        self._closed_by, self._words = arrays.codes(streams, "closed_by")
        self._client, self._clients = arrays.codes(streams, "client")
        # a SYN that was never followed by the rest of its handshake, nor refused
        self.half_open = (self.code & SYN != 0) & (self.code & (ACK | DATA) == 0) & ~self.reset_by("server")

    def reset_by(self, side: str) -> Array:
        """Which streams did this side's RST close?"""
        word = f"{side}_rst"
        by: Array = self._closed_by == arrays.code_of(self._words, word)
        return by

    def answered_by(self, probes: pa.Table | None, answer: str) -> Array:
        """Which streams did ICMP answer so?"""
        import numpy as np

        if probes is None or not probes.num_rows:
            return np.zeros(len(self.code), bool)
        code, words = arrays.codes(probes, "answer")
        hit = code == arrays.code_of(words, answer)
        numbers = arrays.numbers(probes, "stream")[hit]
        which: Array = np.isin(arrays.numbers(self._streams, "stream"), numbers)
        return which

    def cut_off(self) -> Array:
        """Which streams are one SYN, the last TCP packet of all? Its answer may have come behind the capture's end."""
        last, packets = arrays.numbers(self._streams, "last_frame"), arrays.numbers(self._streams, "client_packets")
        most = max((last[span].max() for span in spill.parts(len(last))), default=0)
        spans = spill.parts(len(last))
        return spill.made("bool", ((packets[span] == 1) & (last[span] == most) for span in spans))

    def there(self) -> Array:
        """Which streams are to a port that answered another connection?"""
        return _shared(self.server, self.answered)

    def alive(self) -> Array:
        """Which streams are to an address that answered another connection, on any port?"""
        address, _ = arrays.codes(self._streams, "server")
        return _shared(address, self.answered)

    def deaf(self) -> Array:
        """Which streams are of a client of whose connections with data only its own packets were captured, mostly?"""
        import numpy as np

        answering, alone = (np.zeros(len(self._clients), np.int64) for _ in range(2))
        for span in spill.parts(len(self._client)):
            client, answered = self._client[span], self.answered[span]
            np.add.at(answering, client[answered | self.half_open[span]], 1)
            np.add.at(alone, client[(self.code[span] & DATA != 0) & ~answered], 1)
        return _each(alone > answering, self._client)

    def by_server(self, which: Array) -> Iterator[tuple[int, Array]]:
        """The rows of these streams, server by server, rising."""
        import numpy as np

        spans = spill.parts(len(which))
        yield from spill.split(
            spill.made("int32", (np.where(which[span], self.server[span], -1) for span in spans))
        ).items()

    def name(self, server: int) -> tuple[str, int]:
        """Address and port."""
        [row] = self._streams.select(["server", "server_port"]).slice(int(self._first[server]), 1).to_pylist()
        return row["server"], row["server_port"]

    def place(self, event: Finding, which: Array) -> int:
        """The server that a finding about these streams is of."""
        names = (place for place, _ in self.by_server(which))
        return next(place for place in names if self.name(place) == (event.server, event.server_port))

    def first(self, rows: Array) -> dict[str, Any]:
        """What of these came first: its number, client and frame."""
        firsts = [rows[span][self.frame[rows[span]].argmin()] for span in spill.parts(len(rows))]
        first = int(min(firsts, key=lambda row: self.frame[row]))
        [row] = self._streams.select(["stream", "client", "first_frame"]).slice(first, 1).to_pylist()
        return dict(row)

    def clients(self, rows: Array) -> int:
        """How many addresses do these streams come from?"""
        return 1 if len(rows) == 1 else len(arrays.distinct(spill.taken(self._client, rows)))


def _each(known: Array, codes: Array) -> Array:
    """For each row the truth of its code."""
    return spill.made("bool", (known[codes[span]] for span in spill.parts(len(codes))))


def _shared(codes: Array, which: Array) -> Array:
    """Which rows have a code that one of these has?"""
    import numpy as np

    known = np.zeros(int(codes.max()) + 1 if len(codes) else 0, bool)
    for span in spill.parts(len(codes)):
        known[codes[span][which[span]]] = True
    return _each(known, codes)


def _flood(seen: _Seen, server: int, half_open: Array) -> Finding | None:
    of = int(seen.of[server])
    if len(half_open) < LIMITS["flood_connections"] or len(half_open) < LIMITS["flood_share"] * of:
        return None
    starts = seen.start[half_open]
    seconds = max(int(starts.max() - starts.min()) / 1e9, 1e-3)
    rate = len(half_open) / seconds
    if rate < LIMITS["flood_per_s"]:
        return None
    sources = seen.clients(half_open)
    many = sources >= LIMITS["flood_sources"]
    certain = many and rate >= LIMITS["flood_sure_per_s"]
    sure = SEEN if certain else LIKELY
    values = {"sources": sources, "rate": rate, "answered": int(seen.answered[half_open].sum())}
    found = _event(seen, "syn_flood", "client", server, half_open, sure, "syn_flood", values)
    return replace(found, rate_per_s=rate)


def _outage(seen: _Seen, event: Finding, unanswered: Array) -> Finding:
    """It with what clients waited, where the port answered others and most of the connections got nothing."""
    hit, of = event.streams or 0, event.of_streams or 0
    if hit < OUTAGE or 2 * hit < of or hit == of:
        return event
    import numpy as np

    mine = unanswered & (seen.server == seen.place(event, unanswered))
    # where a SYN was not repeated, its first timer, or the rest of the capture, passed without an answer
    left = np.minimum(seen.end.max() - seen.start[mine], FIRST_TIMER_NS)
    waited = np.maximum(seen.end[mine] - seen.start[mine], left)
    return replace(event, harm="never", total_ms=float(waited.sum()) / 1e6)


def _traced(seen: _Seen, event: Finding, silent: Array) -> Finding:
    """A traceroute, with what became of its other SYNs."""
    mine = seen.server == seen.place(event, seen.half_open)
    lost, reached = int((mine & silent).sum()), int((mine & seen.answered).sum())
    parts = [words.say("traced_lost", n=lost)] if lost else []
    parts += [words.say("traced_reached", n=reached)] if reached else []
    rest = words.say("and_more").join(parts)
    return replace(event, values={**(event.values or {}), "rest": words.say("traced_rest", parts=rest) if rest else ""})


def _events(seen: _Seen, cause: str, owner: str, which: Array, sentence: str) -> list[Finding]:
    """One finding a server that these streams are of."""
    sure = worth(cause)
    return [_event(seen, cause, owner, server, rows, sure, sentence) for server, rows in seen.by_server(which)]


def _event(
    seen: _Seen, cause: str, owner: str, server: int, rows: Array, sure: float, sentence: str,
    more: Mapping[str, Any] | None = None,
) -> Finding:  # fmt: skip
    (address, port), first, of, clients = seen.name(server), seen.first(rows), int(seen.of[server]), seen.clients(rows)
    many = "only_connection" if of == 1 else "some_connections"
    values = {
        "n": len(rows), "of": of, "rest": "",
        "connections": words.say(many, n=len(rows), of=of, server=endpoint(address, port)), **(more or {}),
    }  # fmt: skip
    return Finding(
        kind="connection", server=address, server_port=port, cause=cause, owner=owner, clients=clients,
        client=first["client"] if clients == 1 else None, streams=len(rows), of_streams=of,
        confidence=sure, worst_stream=first["stream"], worst_frames=(first["first_frame"],),
        filter=f"tcp.stream eq {first['stream']}", sentence=sentence, values=values,
    )  # fmt: skip


AFTER = 0.25
"""Of a wait for a name, the server's own work behind it is at most this share; else the wait is mostly that work."""


def of_lookups(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """What names were waited for, by reason."""
    rows, every = resolutions(tables["lookups"]), questions(tables["lookups"])
    reverse = _reverse([q for q in every if q.kind == "PTR"], tables)
    link = [q for q in every if q.kind in NEIGHBOUR]
    if not rows:
        return reverse + _neighbours(link)
    groups: dict[tuple[str, str], list[tuple[float, Resolution, Question]]] = defaultdict(list)
    for place, (sentence, waited, question) in asking.late(rows).items():
        groups[sentence, question.server].append((waited, rows[place], question))
    slow = [_lookup_finding(sentence, cases, len(rows)) for (sentence, _), cases in groups.items()]
    return slow + reverse + _neighbours(link)


def _reverse(questions: list[Question], tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Servers that looked up the name of a client's address while that client waited for them.

    The wait is from the first of these questions to the answer of the server. Where the name came long before that
    answer, the server had more to do, and it is not this.
    """
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    (server, servers), (client, clients) = (arrays.codes(streams, name) for name in ("server", "client"))
    hosts, others = ({name: code for code, name in enumerate(names)} for names in (servers, clients))
    pairs: dict[int, list[Question]] = defaultdict(list)
    for q in questions:
        host, other = hosts.get(q.client), others.get(address_in(q.name) or "")
        if host is not None and other is not None:
            pairs[host << 32 | other].append(q)
    if not pairs or not exchanges.num_rows:
        return []
    latest = {pair: np.maximum.accumulate([q.end or 0 for q in some]) for pair, some in pairs.items()}
    key = server.astype(np.int64) << 32 | client
    place = spill.places(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    sent, begun = arrays.numbers(exchanges, "request_end"), arrays.filled(exchanges, "response_start", 0)
    port, stream = arrays.numbers(streams, "server_port"), arrays.numbers(exchanges, "stream")
    groups: dict[tuple[str, int, str], list[tuple[float, Question, int]]] = defaultdict(list)
    for row in np.flatnonzero(np.isin(key, list(pairs))[place] & (begun > 0)).tolist():
        pair, end = int(key[place[row]]), int(begun[row])
        first, last = (bisect_left(pairs[pair], at, key=lambda q: q.start) for at in (int(sent[row]), end))
        if first == last:
            continue
        q, known = pairs[pair][first], int(latest[pair][last - 1])
        waited, then = (end - q.start) / 1e6, (end - known) / 1e6 if known > q.start else 0.0
        if waited - then >= LATE_MS and then <= AFTER * waited:
            groups[q.client, int(port[place[row]]), q.server].append((waited, q, int(stream[row])))
    return [_reverse_finding(host, number, cases) for (host, number, _), cases in groups.items()]


def _reverse_finding(host: str, port: int, cases: list[tuple[float, Question, int]]) -> Finding:
    cases.sort(key=lambda case: case[0])
    worst, q, stream = cases[-1]
    values = {
        "n": len(cases), "span_ms": (cases[0][0], worst), "server": endpoint(host, port), "name": printable(q.name),
        "other": endpoint(q.server, q.server_port),
        "came": say("reverse_never" if q.end is None else "reverse_late"),
    }  # fmt: skip
    return Finding(
        kind="wait", server=host, server_port=port, cause="dns_reverse", owner="dns",
        clients=len({q.name for _, q, _ in cases}),
        exchanges=len(cases), total_ms=sum(waited for waited, *_ in cases), median_ms=cases[len(cases) // 2][0],
        max_ms=worst, harm="late", worst_stream=stream, worst_ms=worst,
        worst_frames=tuple(f for f in (q.frame, q.answer) if f is not None), sentence="dns_reverse", values=values,
    )  # fmt: skip


def _neighbours(questions: list[Question]) -> list[Finding]:
    """Hosts on the link that answered only when they were asked again: what is sent to them waits meanwhile. One that
    never answers may not be there, and nobody may miss it.
    """
    groups: dict[tuple[str, str], list[tuple[float, Question]]] = defaultdict(list)
    for q in questions:
        waited = 0.0 if q.end is None else (q.end - q.start) / 1e6
        if waited >= AGAIN_MS:
            groups[q.client, q.server].append((waited, q))
    return [_neighbour(sorted(cases, key=lambda case: case[0])) for cases in groups.values()]


def _neighbour(cases: list[tuple[float, Question]]) -> Finding:
    worst, q = cases[-1]
    values = {
        "n": len(cases), "span_ms": (cases[0][0], worst), "address": q.name, "client": q.client,
        "requests": q.repeats + 1,
        "what": q.kind,
    }  # fmt: skip
    return Finding(
        kind="wait", server=q.server, server_port=0, cause="arp_late", owner="network", clients=1, client=q.client,
        exchanges=len(cases), of_exchanges=len(cases), total_ms=sum(waited for waited, _ in cases),
        median_ms=cases[len(cases) // 2][0], max_ms=worst, harm="late",
        worst_ms=worst,
        worst_frames=tuple(f for f in (q.frame, q.answer) if f is not None), sentence="arp_late", values=values,
    )  # fmt: skip


def of_services(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Servers of other services over UDP that answered late or never, by reason, service and server."""
    groups: dict[tuple[str, str, str], list[services.Case]] = defaultdict(list)
    for case in services.late(questions(tables["lookups"]), tables["streams"]).values():
        groups[case.reason, case.question.kind, case.question.server].append(case)
    return [_service_finding(sorted(cases, key=lambda case: case.waited_ms)) for cases in groups.values()]


def _service_finding(cases: list[services.Case]) -> Finding:
    worst = cases[-1]
    q, then, reason = worst.question, worst.then, worst.reason
    values = {
        "protocol": q.kind, "n": len(cases), "span_ms": (cases[0].waited_ms, worst.waited_ms), "client": q.client,
        "server": endpoint(q.server, q.server_port), "repeats": q.repeats + 1, "address": q.name,
        "checks": worst.checks,
        "then": say("datagram_then", other=endpoint(then.server, then.server_port)) if then and then.end else "",
    }  # fmt: skip
    frames = tuple(frame for frame in (q.frame, q.answer) if frame is not None)
    return Finding(
        kind="wait", server=q.server, server_port=q.server_port, cause=reason, owner=services.owner_of(reason),
        clients=len({case.question.client for case in cases}), client=q.client,
        total_ms=sum(case.waited_ms for case in cases), median_ms=cases[len(cases) // 2].waited_ms,
        max_ms=worst.waited_ms, harm="never" if reason == "dhcp_never" else "late",
        worst_ms=worst.waited_ms,
        worst_frames=frames, filter=f"frame.number in {{{', '.join(map(str, frames))}}}", sentence=reason,
        values=values,
    )  # fmt: skip


def _lookup_finding(sentence: str, cases: list[tuple[float, Resolution, Question]], of: int) -> Finding:
    cases.sort(key=lambda case: case[0])
    worst, row, question = cases[-1]
    never: Harmful = "never" if sentence == "dns_never" else "late"
    needless = {q.name.lower() for q in row.questions if q.status == "NXDOMAIN" and q.name.lower() != row.name.lower()}
    answers = [q for q in row.questions if q.end is not None and q.server != question.server]
    others = [((q.end or 0) - q.start) / 1e6 for q in answers]
    values = {
        "n": len(cases),
        "span_ms": (cases[0][0], worst),
        "server": endpoint(question.server, question.server_port),
        "name": printable(row.name),
        "tried": printable(question.name),
        "kind": question.kind,
        "needless": len(needless),
        "questions": sum(q.status == "NXDOMAIN" for q in row.questions),
        "status": question.status or "",
        "other": f"{answers[0].server}" if answers else "",
        "other_ms": others[0] if others else 0.0,
    }
    return Finding(
        kind="wait", server=question.server, server_port=question.server_port, cause=sentence, owner=owner_of(sentence),
        clients=len({r.client for _, r, _ in cases}), client=row.client, exchanges=len(cases), of_exchanges=of,
        total_ms=sum(w for w, *_ in cases), median_ms=cases[len(cases) // 2][0], max_ms=worst, harm=never,
        worst_ms=worst,
        worst_frames=tuple(f for f in (question.frame, question.answer) if f is not None),
        sentence=sentence, values=values,
    )  # fmt: skip


class Lookups(TypedDict):
    """How long names took to look up; None where nothing was answered, or nothing came of it."""

    lookups: int
    unanswered: int
    failed: int
    median_ms: float | None
    max_ms: float | None
    max_name: str | None
    max_frame: int | None
    connects: int
    connect_ms: float | None
    connect_name: str | None
    connect_frame: int | None


def summary(tables: Mapping[str, pa.Table]) -> Lookups | None:
    """What the lookups cost, and what connects waited for them; None where there is no lookup."""
    import numpy as np

    table, connects = _names(tables["lookups"]), tables["connects"]
    if not table.num_rows:
        return None
    took = arrays.numbers(table, "latency_ms")
    done = np.flatnonzero(~np.isnan(took))
    worst = int(done[np.argmax(took[done])]) if len(done) else None
    waited = arrays.numbers(connects, "dns_ms") if connects.num_rows else np.zeros(0)
    led = np.flatnonzero(~np.isnan(waited))
    longest = int(led[np.argmax(waited[led])]) if len(led) else None
    return {
        "lookups": table.num_rows,
        "unanswered": table.num_rows - len(done),
        "failed": sum(word == "SERVFAIL" for word in table["status_text"].to_pylist()),
        "median_ms": arrays.percentile(np.sort(took[done]), 0.5) if len(done) else None,
        "max_ms": None if worst is None else float(took[worst]),
        "max_name": None if worst is None else table["target"][worst].as_py(),
        "max_frame": None if worst is None else table["request_frame"][worst].as_py(),
        "connects": len(led),
        "connect_ms": None if longest is None else float(waited[longest]),
        "connect_name": None if longest is None else connects["dns_name"][longest].as_py(),
        "connect_frame": None if longest is None else connects["first_frame"][longest].as_py(),
    }


def _names(table: pa.Table) -> pa.Table:
    """Without questions for a host on the link, and requests to other services."""
    other = arrays.equals(table, "method", *NEIGHBOUR, *SERVICES)
    return table.take(arrays.column((~other).nonzero()[0])) if other.any() else table


def matters(dns: Lookups) -> bool:
    """Whether a connect waited for a name, or a name took long."""
    waits = [dns["connect_ms"] or 0.0, dns["max_ms"] or 0.0]
    return max(waits) >= LIMITS["setup_ms"] or dns["unanswered"] == dns["lookups"]


def line(dns: Lookups) -> str:
    """Is it DNS? A sentence that says so, or that it is not."""
    limit, lookups, unanswered = LIMITS["setup_ms"], dns["lookups"], dns["unanswered"]
    rest = say("dns_unanswered", n=unanswered, of=lookups) if unanswered else ""
    if dns["connect_ms"] is not None and dns["connect_ms"] >= limit:
        name, frame = printable(dns["connect_name"] or ""), f"{dns['connect_frame']}"
        return joined([say("dns_before_connect", took_ms=dns["connect_ms"], name=name, frame=frame), rest])
    if dns["max_ms"] is not None and dns["max_ms"] >= limit:
        name, frame = printable(dns["max_name"] or ""), f"{dns['max_frame']}"
        return joined([say("dns_took", took_ms=dns["max_ms"], name=name, frame=frame), rest])
    if dns["max_ms"] is None:
        return say("dns_only_unanswered" if lookups == 1 else "dns_none_answered", n=lookups)
    took = say(
        "dns_quick" if lookups - unanswered > 1 else "dns_one_quick",
        n=lookups - unanswered, median_ms=dns["median_ms"] or 0.0, most_ms=dns["max_ms"],
    )  # fmt: skip
    nothing = not rest and dns["max_ms"] < LIMITS["slow_ms"]
    return say("dns_is_not_it", took=took) if nothing else joined([took, rest])
