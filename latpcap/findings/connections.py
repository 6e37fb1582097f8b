"""Find what happened to connections rather than to requests: floods of SYNs, refusals, resets, failed TLS handshakes.

They take no request's time, so that they rank below the findings that do. A flood of SYNs is the exception, since it
may be why nobody is answered. The reason of a failed TLS handshake is its unencrypted alert (RFC 8446 6).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, Completeness
from latpcap.user_waits.cause_totals import endpoint, server_keys
from latpcap.user_waits.segments import segments
from latpcap.vocabulary import LIKELY, SEEN, worth

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

SYN_RTO_NS = 1_000_000_000
"""The first retransmission timeout of a SYN (RFC 6298 2.1)."""
MIN_OUTAGE = 3
"""Fewest unanswered connections that are an outage, not an accident."""
PASSIVE_NS = 1_000_000_000
"""Longest time between the answer that names a port and the FTP client's data connection to it."""
ALERT = " alert "
HINTS = {
    "trust": ("unknown_ca", "bad_certificate", "certificate_unknown", "unsupported_certificate", "certificate_revoked"),
    "expired": ("certificate_expired",),
    "versions": ("handshake_failure", "protocol_version", "insufficient_security", "inappropriate_fallback"),
    "name": ("no_application_protocol",),
    "client": ("certificate_required", "access_denied"),
}
"""Alerts by the sentence (`alert_…`) about what mends them."""


def of(streams: pa.Table, probes: pa.Table | None = None) -> list[Finding]:
    """Return the findings about connections, floods first, then by the number of connections.

    `probes` has the SYNs that ICMP answered; without it they count as never answered.
    """
    import numpy as np

    seen = _Seen(streams)
    expired, unreachable = (seen.answered_by(probes, word) for word in ("time_exceeded", "unreachable"))
    findings: list[Finding] = []
    floods: list[int] = []
    for server, rows in seen.by_server(seen.half_open):
        flood = _flood(seen, server, rows)
        if flood:
            findings.append(flood)
            floods.append(server)
    is_explained = np.zeros(len(seen.of), bool)
    is_explained[[*floods, *seen.server[expired].tolist()]] = True
    unexplained = ~_by_code(is_explained, seen.server)
    answered = seen.answered
    silent = seen.half_open & ~answered & ~expired & ~unreachable & ~seen.cut_off()
    unanswered = silent & unexplained & ~seen.has_one_way_client()
    for which, sentence in (
        (seen.port_answers(), "unanswered_port"),
        (~seen.port_answers() & seen.host_answers(), "unanswered_host"),
        (~seen.host_answers(), "unanswered_all"),
    ):
        mute = _events(seen, "unanswered", "server", unanswered & which, sentence)
        findings += [_outage(seen, event, unanswered & which) for event in mute]
    findings += [_traced(seen, event, silent) for event in _events(seen, "traceroute", "client", expired, "traced")]
    findings += _events(seen, "unreachable", "network", unreachable & seen.half_open, "unreachable")
    findings += _events(seen, "half_open", "client", seen.half_open & unexplained & answered, "half_open")
    refused = (seen.code & Completeness.SYN != 0) & (seen.code & Completeness.SYN_ACK == 0) & seen.reset_by("server")
    findings += _events(seen, "refused", "server", refused, "refused")
    for side in ("server", "client"):
        findings += _events(
            seen, "reset", side, (seen.code & Completeness.DATA != 0) & seen.reset_by(side), f"reset_by_{side}"
        )
    return sorted(findings, key=lambda e: (e.cause != "syn_flood", -(e.streams or 0), e.server, e.server_port, e.cause))


def noted(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find closed receive windows of servers and clients, and paths that marked packets (ECN): facts, no faults."""
    import numpy as np

    events, streams = segments(tables), tables["streams"]
    if events is None or not streams.num_rows:
        return []
    findings: list[Finding] = []
    for side in (0, 1):
        key, frame, often = events.noted("zero_window")
        mine = key & 1 == side
        values = {"side": "client" if side else "server"}
        findings += _noted(streams, "zero_window", key[mine] >> 1, frame[mine], often[mine], values)
    key, frame, often = events.noted("reports")
    agreed = np.isin(key >> 1, events.noted("agreed")[0] >> 1)
    return findings + _noted(streams, "ecn", key[agreed] >> 1, frame[agreed], often[agreed], {})


def passive(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find unanswered data connections of FTP's passive mode (RFC 959, RFC 2428): to the port that the server named."""
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
    mute = np.flatnonzero((code & Completeness.SYN != 0) & ~answered & np.isin(client, list(named)))
    groups: dict[tuple[str, int, str], list[tuple[float, dict[str, Any]]]] = defaultdict(list)
    for row in mute.tolist():
        before = named[int(client[row])]
        at, control = before[bisect_right(before, int(start[row]), key=lambda one: one[0]) - 1]
        if 0 <= start[row] - at <= PASSIVE_NS:
            names = ["server", "server_port", "client", "stream", "first_frame"]
            data, ftp = (streams.select(names).slice(one, 1).to_pylist()[0] for one in (row, control))
            waited = (end[row] - start[row]) / NS_PER_MS
            groups[ftp["server"], ftp["server_port"], data["server"]].append((waited, data))
    made = []
    for (server, port, data_host), cases in groups.items():
        cases.sort(key=lambda case: case[0])
        worst, data = cases[-1]
        sentence = "ftp_port" if data_host == server else "ftp_address"
        values = {"server": endpoint(server, port), "other": endpoint(data_host, data["server_port"]), "n": len(cases),
                  "span_ms": (cases[0][0], worst)}  # fmt: skip
        made.append(Finding(
            kind="wait", server=server, server_port=port, cause=sentence,
            owner="network" if data_host == server else "server",
            clients=len({of["client"] for _, of in cases}), client=data["client"], streams=len(cases),
            total_ms=sum(case[0] for case in cases),
            max_ms=worst, harm="never",
            worst_stream=data["stream"], worst_ms=worst, worst_frames=(data["first_frame"],),
            filter=wireshark_filter(data['stream']), sentence=sentence, values=values,
        ))  # fmt: skip
    return made


def _noted(
    streams: pa.Table, cause: str, stream: Array, frame: Array, often: Array, values: Mapping[str, Any]
) -> list[Finding]:
    """Return a finding for each server of these streams, the one with the most of these packets first."""
    if not len(stream):
        return []
    _, server, of = arrays.grouped(server_keys(streams))
    places = spill.places(arrays.numbers(streams, "stream"), stream)
    servers, findings = server[places], []
    for one in arrays.distinct(servers).tolist():
        rows = servers == one
        worst = int(often[rows].argmax())
        [row] = streams.select(["server", "server_port", "client", "stream"]).slice(
            int(places[rows][worst]), 1
        ).to_pylist()  # fmt: skip
        count = int(often[rows].sum())
        end = endpoint(row["server"], row["server_port"])
        findings.append(
            Finding(
                kind="connection", server=row["server"], server_port=row["server_port"], cause=cause,
                owner=values.get("side", "network"), streams=int(rows.sum()), of_streams=int(of[one]),
                confidence=SEEN, worst_stream=row["stream"],
                worst_frames=(int(frame[rows][worst]),), filter=wireshark_filter(row['stream']), sentence=cause,
                values={"server": end, "n": count, "frame": int(frame[rows][worst]), **values},
            )
        )  # fmt: skip
    return sorted(findings, key=lambda e: -(e.values or {})["n"])


class _Seen:
    """The streams as arrays, since a flood has millions of them. Servers are numbered; `of` counts their streams."""

    def __init__(self, streams: pa.Table):
        self._streams = streams
        self._first, self.server, self.of = arrays.grouped(server_keys(streams))
        self.end = arrays.numbers(streams, "end")
        self.start, self.frame = arrays.numbers(streams, "start"), arrays.numbers(streams, "first_frame")
        self.code = arrays.numbers(streams, "completeness")
        spans = spill.parts(streams.num_rows)
        answers = arrays.numbers(streams, "server_packets")
        self.answered = spill.from_pieces("bool", (answers[span] > 0 for span in spans))
        self._closed_by, self._words = arrays.codes(streams, "closed_by")
        self._client, self._clients = arrays.codes(streams, "client")
        # streams with a SYN whose handshake was neither completed nor refused
        self.half_open = (
            (self.code & Completeness.SYN != 0)
            & (self.code & (Completeness.ACK | Completeness.DATA) == 0)
            & ~self.reset_by("server")
        )

    def reset_by(self, side: str) -> Array:
        """Return the streams that this side's RST closed."""
        word = f"{side}_rst"
        by: Array = self._closed_by == arrays.code_of(self._words, word)
        return by

    def answered_by(self, probes: pa.Table | None, answer: str) -> Array:
        """Return the streams that ICMP answered with this message."""
        import numpy as np

        if probes is None or not probes.num_rows:
            return np.zeros(len(self.code), bool)
        hit = arrays.equals(probes, "answer", answer)
        numbers = arrays.numbers(probes, "stream")[hit]
        which: Array = np.isin(arrays.numbers(self._streams, "stream"), numbers)
        return which

    def cut_off(self) -> Array:
        """Return the stream whose only packet, a SYN, is the capture's last one; its answer may have come later."""
        last, packets = arrays.numbers(self._streams, "last_frame"), arrays.numbers(self._streams, "client_packets")
        most = max((last[span].max() for span in spill.parts(len(last))), default=0)
        spans = spill.parts(len(last))
        return spill.from_pieces("bool", ((packets[span] == 1) & (last[span] == most) for span in spans))

    def port_answers(self) -> Array:
        """Return the streams to a port that answered another connection."""
        return _shared(self.server, self.answered)

    def host_answers(self) -> Array:
        """Return the streams to an address that answered another connection, on any port."""
        address, _ = arrays.codes(self._streams, "server")
        return _shared(address, self.answered)

    def has_one_way_client(self) -> Array:
        """Return the streams of clients whose connections with data mostly lack the servers' packets."""
        import numpy as np

        answering, one_way = (np.zeros(len(self._clients), np.int64) for _ in range(2))
        for span in spill.parts(len(self._client)):
            client, answered = self._client[span], self.answered[span]
            np.add.at(answering, client[answered | self.half_open[span]], 1)
            np.add.at(one_way, client[(self.code[span] & Completeness.DATA != 0) & ~answered], 1)
        return _by_code(one_way > answering, self._client)

    def by_server(self, which: Array) -> Iterator[tuple[int, Array]]:
        """Yield each server with its rows among these streams, in rising order."""
        import numpy as np

        spans = spill.parts(len(which))
        yield from spill.places_by_key(
            spill.from_pieces("int32", (np.where(which[span], self.server[span], -1) for span in spans))
        ).items()

    def name(self, server: int) -> tuple[str, int]:
        """Return the address and port of a server."""
        [row] = self._streams.select(["server", "server_port"]).slice(int(self._first[server]), 1).to_pylist()
        return row["server"], row["server_port"]

    def place(self, event: Finding, which: Array) -> int:
        """Return the number of the server of a finding about these streams."""
        names = (place for place, _ in self.by_server(which))
        return next(place for place in names if self.name(place) == (event.server, event.server_port))

    def first(self, rows: Array) -> dict[str, Any]:
        """Return number, client and first frame of the earliest of these streams."""
        firsts = [rows[span][self.frame[rows[span]].argmin()] for span in spill.parts(len(rows))]
        first = int(min(firsts, key=lambda row: self.frame[row]))
        [row] = self._streams.select(["stream", "client", "first_frame"]).slice(first, 1).to_pylist()
        return dict(row)

    def clients(self, rows: Array) -> int:
        """Return the number of client addresses of these streams."""
        return 1 if len(rows) == 1 else len(arrays.distinct(spill.take(self._client, rows)))


def _by_code(known: Array, codes: Array) -> Array:
    """Return for each row the value of its code in `known`."""
    return spill.from_pieces("bool", (known[codes[span]] for span in spill.parts(len(codes))))


def _shared(codes: Array, which: Array) -> Array:
    """Return the rows that share their code with a row of `which`."""
    import numpy as np

    known = np.zeros(int(codes.max()) + 1 if len(codes) else 0, bool)
    for span in spill.parts(len(codes)):
        known[codes[span][which[span]]] = True
    return _by_code(known, codes)


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
    certain = sources >= LIMITS["flood_sources"] and rate >= LIMITS["flood_sure_per_s"]
    sure = SEEN if certain else LIKELY
    values = {"sources": sources, "rate": rate, "answered": int(seen.answered[half_open].sum())}
    flood = _event(seen, "syn_flood", "client", server, half_open, sure, "syn_flood", values)
    return replace(flood, rate_per_s=rate)


def _outage(seen: _Seen, event: Finding, unanswered: Array) -> Finding:
    """Add the clients' wait to a finding if most connections to a port that answered others got no answer."""
    hit, of = event.streams or 0, event.of_streams or 0
    if hit < MIN_OUTAGE or 2 * hit < of or hit == of:
        return event
    import numpy as np

    mine = unanswered & (seen.server == seen.place(event, unanswered))
    # a SYN that was not repeated waited for its first timeout, or for the rest of the capture
    left = np.minimum(seen.end.max() - seen.start[mine], SYN_RTO_NS)
    waited = np.maximum(seen.end[mine] - seen.start[mine], left)
    ms = waited / NS_PER_MS
    values = {**(event.values or {}), "waited": words.say("unanswered_waited", span_ms=(ms.min(), ms.max()))}
    return replace(event, harm="never", total_ms=float(ms.sum()), max_ms=float(ms.max()), values=values)


def _traced(seen: _Seen, event: Finding, silent: Array) -> Finding:
    """Add to a traceroute how many of its other SYNs were lost, or reached the target."""
    mine = seen.server == seen.place(event, seen.half_open)
    lost, reached = int((mine & silent).sum()), int((mine & seen.answered).sum())
    parts = [words.say("traced_lost", n=lost)] if lost else []
    parts += [words.say("traced_reached", n=reached)] if reached else []
    rest = words.say("and_more").join(parts)
    return replace(event, values={**(event.values or {}), "rest": words.say("traced_rest", parts=rest) if rest else ""})


def _events(seen: _Seen, cause: str, owner: str, which: Array, sentence: str) -> list[Finding]:
    """Return a finding for each server of these streams."""
    sure = worth(cause)
    return [_event(seen, cause, owner, server, rows, sure, sentence) for server, rows in seen.by_server(which)]


def _event(
    seen: _Seen, cause: str, owner: str, server: int, rows: Array, sure: float, sentence: str,
    more: Mapping[str, Any] | None = None,
) -> Finding:  # fmt: skip
    (address, port), first, of, clients = seen.name(server), seen.first(rows), int(seen.of[server]), seen.clients(rows)
    many = "only_connection" if of == 1 else "some_connections"
    values = {
        "n": len(rows), "of": of, "rest": "", "waited": "",
        "connections": words.say(many, n=len(rows), of=of, server=endpoint(address, port)), **(more or {}),
    }  # fmt: skip
    return Finding(
        kind="connection", server=address, server_port=port, cause=cause, owner=owner, clients=clients,
        client=first["client"] if clients == 1 else None, streams=len(rows), of_streams=of,
        confidence=sure, worst_stream=first["stream"], worst_frames=(first["first_frame"],),
        filter=wireshark_filter(first['stream']), sentence=sentence, values=values,
    )  # fmt: skip


def alerts(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find TLS handshakes that an alert ended; by server and alert."""
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    code, texts = arrays.codes(exchanges, "status_text")
    places = [place for place, text in enumerate(texts) if text and ALERT in text]
    if not places:
        return []
    shakes = arrays.equals(exchanges, "method", "handshake")
    rows = np.flatnonzero(np.isin(code, places) & shakes)
    stream = arrays.numbers(exchanges, "stream")
    names = ("server", "server_port", "client")
    ends = arrays.looked_up(streams, "stream", stream[rows], names)
    every = arrays.looked_up(streams, "stream", stream[np.flatnonzero(shakes)], names)
    groups: dict[tuple[str, int, str], list[tuple[int, str]]] = defaultdict(list)
    for row, (server, port, client) in zip(rows.tolist(), ends, strict=True):
        groups[server, port, texts[int(code[row])]].append((row, client))
    findings = []
    for (server, port, text), mine in groups.items():
        side, _, alert = text.partition(ALERT)
        columns = ["exchange", "stream", "request_first_frame", "start", "end"]
        [first] = exchanges.select(columns).slice(mine[0][0], 1).to_pylist()
        kind = next((hint for hint, known in HINTS.items() if alert in known), "other")
        if kind == "trust" and side == "server":
            kind = "client"
        of = sum(1 for s, p, _ in every if (s, p) == (server, port))
        start, end = (arrays.numbers(exchanges, c)[[row for row, _ in mine]] for c in ("start", "end"))
        took = (end - start) / NS_PER_MS
        values = {
            "server": endpoint(server, port), "n": len(mine), "of": of, "side": side, "alert": alert,
            "frame": first["request_first_frame"], "hint": words.say(f"alert_{kind}"),
        }  # fmt: skip
        findings.append(
            Finding(
                kind="wait", server=server, server_port=port, cause="tls_alert", owner=side,
                clients=len({client for _, client in mine}), exchanges=len(mine), of_exchanges=of,
                total_ms=float(took.sum()), max_ms=float(took.max()),  worst_exchange=first["exchange"],
                worst_stream=first["stream"],
                worst_frames=(first["request_first_frame"],), filter=wireshark_filter(first['stream']), harm="never",
                sentence="tls_alert", values=values,
            )
        )  # fmt: skip
    return findings
