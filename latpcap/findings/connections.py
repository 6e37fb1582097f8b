"""Find what happened to connections rather than to requests: floods of SYNs, refusals, resets, failed TLS handshakes.

They take no request's time, so that they rank below the findings that do. A flood of SYNs is the exception, since it
may be why nobody is answered. The reason of a failed TLS handshake is its unencrypted alert (RFC 8446 6).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.findings.evidence import request
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, Completeness
from latpcap.user_waits.segments import segments
from latpcap.user_waits.servers import server_keys
from latpcap.vocabulary import LIKELY, SEEN, worth

if TYPE_CHECKING:
    from latpcap.arrays import Array

SYN_RTO_NS = 1_000_000_000
"""The first retransmission timeout of a SYN (RFC 6298 2.1)."""
MIN_OUTAGE = 3
"""Fewest unanswered connections that are an outage, not an accident."""
PASSIVE_NS = 1_000_000_000
"""Longest time between the answer that names a port and the FTP client's data connection to it."""
ALERT = " alert "
"""Between the side and the alert in `status_text` of a handshake."""
HINTS = {
    "trust": ("unknown_ca", "bad_certificate", "certificate_unknown", "unsupported_certificate", "certificate_revoked"),
    "expired": ("certificate_expired",),
    "versions": ("handshake_failure", "protocol_version", "insufficient_security", "inappropriate_fallback"),
    "name": ("no_application_protocol",),
    "client": ("certificate_required", "access_denied"),
}
"""Alerts by the sentence (`alert_…`) about what mends them."""


def of(table: pa.Table, probes: pa.Table | None = None) -> list[Finding]:
    """Return the findings about connections of the table of streams, floods first, then by number of connections.

    `probes` has the SYNs that ICMP answered; without it they count as never answered.
    """
    streams = _StreamArrays(table)
    is_expired, is_unreachable = (streams.answered_by(probes, word) for word in ("time_exceeded", "unreachable"))
    findings: list[Finding] = []
    floods: list[int] = []
    for server, rows in streams.by_server(streams.half_open):
        flood = _flood(streams, server, rows)
        if flood:
            findings.append(flood)
            floods.append(server)
    is_explained = np.zeros(len(streams.of), bool)
    is_explained[[*floods, *streams.server[is_expired].tolist()]] = True
    half_open = streams.half_open & ~_by_code(is_explained, streams.server)
    is_silent = streams.half_open & ~streams.answered & ~is_expired & ~is_unreachable & ~streams.cut_off()
    is_unanswered = half_open & is_silent & ~streams.has_one_way_client()
    for mask, sentence in (
        (streams.port_answers(), "unanswered_port"),
        (~streams.port_answers() & streams.host_answers(), "unanswered_host"),
        (~streams.host_answers(), "unanswered_all"),
    ):
        outages = _events(streams, "unanswered", "server", is_unanswered & mask, sentence)
        findings += [_outage(streams, outage, is_unanswered & mask) for outage in outages]
    traces = _events(streams, "traceroute", "client", is_expired, "traced")
    findings += [_traced(streams, trace, is_silent) for trace in traces]
    findings += _events(streams, "unreachable", "network", is_unreachable & streams.half_open, "unreachable")
    findings += _events(streams, "half_open", "client", half_open & streams.answered, "half_open")
    is_refused = (streams.code & Completeness.SYN != 0) & (streams.code & Completeness.SYN_ACK == 0)
    findings += _events(streams, "refused", "server", is_refused & streams.reset_by("server"), "refused")
    has_data = streams.code & Completeness.DATA != 0
    for side in ("server", "client"):
        findings += _events(streams, "reset", side, has_data & streams.reset_by(side), f"reset_by_{side}")
    findings.sort(key=attrgetter("server", "server_port", "cause"))
    # floods first, then the findings with the most streams
    return sorted(findings, key=lambda finding: (finding.cause != "syn_flood", -(finding.streams or 0)))


def noted(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Find closed receive windows of servers and clients, and paths that marked packets (ECN): facts, no faults."""
    events, streams = segments(tables), tables["streams"]
    if events is None or not streams.num_rows:
        return []
    findings: list[Finding] = []
    for side in (0, 1):
        keys, frames, counts = events.noted("zero_window")
        is_side = keys & 1 == side
        values = {"side": "client" if side else "server"}
        findings += _noted(streams, "zero_window", keys[is_side] >> 1, frames[is_side], counts[is_side], values)
    keys, frames, counts = events.noted("reports")
    is_agreed = np.isin(keys >> 1, events.noted("agreed")[0] >> 1)
    return findings + _noted(streams, "ecn", keys[is_agreed] >> 1, frames[is_agreed], counts[is_agreed], {})


def passive(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """Find unanswered data connections of FTP's passive mode (RFC 959, RFC 2428): to the port that the server named."""
    streams, stretches = tables["streams"], tables["stretches"]
    if not stretches.num_rows:
        return
    passive_mode = arrays.equals(stretches, "method", "PASV", "EPSV") & arrays.equals(stretches, "protocol", "ftp")
    entered_rows = np.flatnonzero(passive_mode & np.isin(arrays.numbers(stretches, "status"), (227, 229)))
    if not len(entered_rows):
        return
    control_rows = spill.positions_of(
        arrays.numbers(streams, "stream"), arrays.numbers(stretches, "stream")[entered_rows]
    )
    client, _ = arrays.codes(streams, "client")
    start, end = arrays.numbers(streams, "start"), arrays.numbers(streams, "end")
    ports_named: dict[int, list[tuple[int, int]]] = defaultdict(list)
    named_ns = arrays.numbers(stretches, "end")[entered_rows].tolist()
    for named_at, control in sorted(zip(named_ns, control_rows.tolist(), strict=True)):
        ports_named[int(client[control])].append((named_at, control))
    code, answered = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets") > 0
    unanswered = np.flatnonzero((code & Completeness.SYN != 0) & ~answered & np.isin(client, list(ports_named)))
    groups: dict[tuple[str, int, str], list[tuple[float, dict[str, Any]]]] = defaultdict(list)
    for row in unanswered.tolist():
        named_before = ports_named[int(client[row])]
        last = bisect_right(named_before, int(start[row]), key=lambda port: port[0]) - 1
        named_at, control = named_before[last]
        if 0 <= start[row] - named_at <= PASSIVE_NS:
            names = ["server", "server_port", "client", "stream", "first_frame"]
            data, ftp = (streams.select(names).slice(stream_row, 1).to_pylist()[0] for stream_row in (row, control))
            waited_ms = (end[row] - start[row]) / NS_PER_MS
            groups[ftp["server"], ftp["server_port"], data["server"]].append((waited_ms, data))
    for (server, port, data_host), cases in groups.items():
        cases.sort(key=lambda case: case[0])
        worst, data = cases[-1]
        sentence = "ftp_port" if data_host == server else "ftp_address"
        values = {"server": endpoint(server, port), "other": endpoint(data_host, data["server_port"]), "n": len(cases),
                  "span_ms": (cases[0][0], worst)}  # fmt: skip
        yield Finding.wait(
            (server, port), sentence, "network" if data_host == server else "server", "never",
            [waited_ms for waited_ms, _ in cases], values, median_ms=None,
            clients=len({stream["client"] for _, stream in cases}), client=data["client"], streams=len(cases),
            worst_stream=data["stream"], worst_frames=(data["first_frame"],), filter=wireshark_filter(data["stream"]),
        )  # fmt: skip


def _noted(
    streams: pa.Table, cause: str, stream: Array, frame: Array, counts: Array, values: Mapping[str, Any]
) -> list[Finding]:
    """Return a finding for each server of these streams, the one with the most of these packets first."""
    if not len(stream):
        return []
    _, server_numbers, stream_counts = arrays.grouped(server_keys(streams))
    stream_rows = spill.positions_of(arrays.numbers(streams, "stream"), stream)
    servers, findings = server_numbers[stream_rows], []
    for number in arrays.distinct(servers).tolist():
        is_of_server = servers == number
        worst = int(counts[is_of_server].argmax())
        [row] = streams.select(["server", "server_port", "client", "stream"]).slice(
            int(stream_rows[is_of_server][worst]), 1
        ).to_pylist()  # fmt: skip
        count = int(counts[is_of_server].sum())
        end = endpoint(row["server"], row["server_port"])
        findings.append(Finding(
            kind="connection", server=row["server"], server_port=row["server_port"], cause=cause,
            owner=values.get("side", "network"), streams=int(is_of_server.sum()),
            of_streams=int(stream_counts[number]),
            confidence=SEEN, worst_stream=row["stream"],
            worst_frames=(int(frame[is_of_server][worst]),), filter=wireshark_filter(row['stream']), sentence=cause,
            values={"server": end, "n": count, "frame": int(frame[is_of_server][worst]), **values},
        ))  # fmt: skip
    return sorted(findings, key=lambda finding: -(finding.values or {})["n"])


class _StreamArrays:
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
        return self._closed_by == arrays.code_of(self._words, word)

    def answered_by(self, probes: pa.Table | None, answer: str) -> Array:
        """Return the streams that ICMP answered with this message."""
        if probes is None or not probes.num_rows:
            return np.zeros(len(self.code), bool)
        is_answer = arrays.equals(probes, "answer", answer)
        numbers = arrays.numbers(probes, "stream")[is_answer]
        return np.isin(arrays.numbers(self._streams, "stream"), numbers)

    def cut_off(self) -> Array:
        """Return the stream whose only packet, a SYN, is the capture's last one; its answer may have come later."""
        last, packets = arrays.numbers(self._streams, "last_frame"), arrays.numbers(self._streams, "client_packets")
        newest = max((last[span].max() for span in spill.parts(len(last))), default=0)
        spans = spill.parts(len(last))
        return spill.from_pieces("bool", ((packets[span] == 1) & (last[span] == newest) for span in spans))

    def port_answers(self) -> Array:
        """Return the streams to a port that answered another connection."""
        return _shared(self.server, self.answered)

    def host_answers(self) -> Array:
        """Return the streams to an address that answered another connection, on any port."""
        address, _ = arrays.codes(self._streams, "server")
        return _shared(address, self.answered)

    def has_one_way_client(self) -> Array:
        """Return the streams of clients whose connections with data mostly lack the servers' packets."""
        answering, one_way = (np.zeros(len(self._clients), np.int64) for _ in range(2))
        for span in spill.parts(len(self._client)):
            client, answered = self._client[span], self.answered[span]
            np.add.at(answering, client[answered | self.half_open[span]], 1)
            np.add.at(one_way, client[(self.code[span] & Completeness.DATA != 0) & ~answered], 1)
        return _by_code(one_way > answering, self._client)

    def by_server(self, mask: Array) -> Iterator[tuple[int, Array]]:
        """Yield each server with its rows among these streams, in rising order."""
        spans = spill.parts(len(mask))
        yield from spill.positions_by_key(
            spill.from_pieces("int32", (np.where(mask[span], self.server[span], -1) for span in spans))
        ).items()

    def name(self, server: int) -> tuple[str, int]:
        """Return the address and port of a server."""
        [row] = self._streams.select(["server", "server_port"]).slice(int(self._first[server]), 1).to_pylist()
        return row["server"], row["server_port"]

    def server_number(self, finding: Finding, mask: Array) -> int:
        """Return the number of the server of a finding about these streams."""
        numbers = (number for number, _ in self.by_server(mask))
        return next(number for number in numbers if self.name(number) == (finding.server, finding.server_port))

    def first(self, rows: Array) -> dict[str, Any]:
        """Return number, client and first frame of the earliest of these streams."""
        firsts = [rows[span][self.frame[rows[span]].argmin()] for span in spill.parts(len(rows))]
        first = int(min(firsts, key=lambda row: self.frame[row]))
        [row] = self._streams.select(["stream", "client", "first_frame"]).slice(first, 1).to_pylist()
        return dict(row)

    def clients(self, rows: Array) -> int:
        """Return the number of client addresses of these streams."""
        return 1 if len(rows) == 1 else len(arrays.distinct(spill.take(self._client, rows)))


def _by_code(value_by_code: Array, codes: Array) -> Array:
    """Return for each row the value of its code."""
    return spill.from_pieces("bool", (value_by_code[codes[span]] for span in spill.parts(len(codes))))


def _shared(codes: Array, mask: Array) -> Array:
    """Return the rows that share their code with a marked row."""
    is_shared = np.zeros(int(codes.max()) + 1 if len(codes) else 0, bool)
    for span in spill.parts(len(codes)):
        is_shared[codes[span][mask[span]]] = True
    return _by_code(is_shared, codes)


def _flood(streams: _StreamArrays, server: int, half_open: Array) -> Finding | None:
    total = int(streams.of[server])
    if len(half_open) < LIMITS["flood_connections"] or len(half_open) < LIMITS["flood_share"] * total:
        return None
    starts = streams.start[half_open]
    seconds = max(int(starts.max() - starts.min()) / 1e9, 1e-3)
    rate = len(half_open) / seconds
    if rate < LIMITS["flood_per_s"]:
        return None
    sources = streams.clients(half_open)
    is_certain = sources >= LIMITS["flood_sources"] and rate >= LIMITS["flood_sure_per_s"]
    confidence = SEEN if is_certain else LIKELY
    values = {"sources": sources, "rate": rate, "answered": int(streams.answered[half_open].sum())}
    flood = _event(streams, "syn_flood", "client", server, half_open, confidence, "syn_flood", values)
    return replace(flood, rate_per_s=rate)


def _outage(streams: _StreamArrays, finding: Finding, unanswered: Array) -> Finding:
    """Add the clients' wait to a finding if most connections to a port that answered others got no answer."""
    count, total = finding.streams or 0, finding.of_streams or 0
    if count < MIN_OUTAGE or 2 * count < total or count == total:
        return finding
    is_of_server = unanswered & (streams.server == streams.server_number(finding, unanswered))
    # a SYN that was not repeated waited for its first timeout, or for the rest of the capture
    remaining = np.minimum(streams.end.max() - streams.start[is_of_server], SYN_RTO_NS)
    waited_ns = np.maximum(streams.end[is_of_server] - streams.start[is_of_server], remaining)
    ms = waited_ns / NS_PER_MS
    values = {**(finding.values or {}), "waited": words.say("unanswered_waited", span_ms=(ms.min(), ms.max()))}
    return replace(finding, harm="never", total_ms=float(ms.sum()), max_ms=float(ms.max()), values=values)


def _traced(streams: _StreamArrays, trace: Finding, silent: Array) -> Finding:
    """Add to a traceroute how many of its other SYNs were lost, or reached the target."""
    is_of_server = streams.server == streams.server_number(trace, streams.half_open)
    lost, reached = int((is_of_server & silent).sum()), int((is_of_server & streams.answered).sum())
    parts = [words.say("traced_lost", n=lost)] if lost else []
    parts += [words.say("traced_reached", n=reached)] if reached else []
    details = words.say("traced_rest", parts=words.say("and_more").join(parts)) if parts else ""
    return replace(trace, values={**(trace.values or {}), "rest": details})


def _events(streams: _StreamArrays, cause: str, owner: str, mask: Array, sentence: str) -> list[Finding]:
    """Return a finding for each server of these streams."""
    confidence = worth(cause)
    by_server = streams.by_server(mask)
    return [_event(streams, cause, owner, server, rows, confidence, sentence) for server, rows in by_server]


def _event(
    streams: _StreamArrays, cause: str, owner: str, server: int, rows: Array, confidence: float, sentence: str,
    more_values: Mapping[str, Any] | None = None,
) -> Finding:  # fmt: skip
    (address, port), first = streams.name(server), streams.first(rows)
    total, clients = int(streams.of[server]), streams.clients(rows)
    phrase = "only_connection" if total == 1 else "some_connections"
    values = {
        "n": len(rows), "of": total, "rest": "", "waited": "",
        "connections": words.say(phrase, n=len(rows), of=total, server=endpoint(address, port)), **(more_values or {}),
    }  # fmt: skip
    return Finding(
        kind="connection", server=address, server_port=port, cause=cause, owner=owner, clients=clients,
        client=first["client"] if clients == 1 else None, streams=len(rows), of_streams=total,
        confidence=confidence, worst_stream=first["stream"], worst_frames=(first["first_frame"],),
        filter=wireshark_filter(first['stream']), sentence=sentence, values=values,
    )  # fmt: skip


def alerts(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """Find TLS handshakes that an alert ended; by server and alert."""
    stretches, streams = tables["stretches"], tables["streams"]
    code, texts = arrays.codes(stretches, "status_text")
    alert_by_code = {index: text.split(ALERT, 1) for index, text in enumerate(texts) if text and ALERT in text}
    if not alert_by_code:
        return
    is_handshake = arrays.equals(stretches, "method", "handshake")
    rows = np.flatnonzero(np.isin(code, [*alert_by_code]) & is_handshake)
    stream = arrays.numbers(stretches, "stream")
    names = ("server", "server_port", "client")
    ends = arrays.looked_up(streams, "stream", stream[rows], names)
    all_ends = arrays.looked_up(streams, "stream", stream[np.flatnonzero(is_handshake)], names)
    groups: dict[tuple[str, int, str, str], list[tuple[int, str]]] = defaultdict(list)
    for row, (server, port, client) in zip(rows.tolist(), ends, strict=True):
        side, alert = alert_by_code[int(code[row])]
        groups[server, port, side, alert].append((row, client))
    for (server, port, side, alert), cases in groups.items():
        first = request(stretches, cases[0][0])
        hint_id = next((hint for hint, alerts in HINTS.items() if alert in alerts), "other")
        if hint_id == "trust" and side == "server":
            hint_id = "client"
        total = sum(1 for host, number, _ in all_ends if (host, number) == (server, port))
        start, end = (arrays.numbers(stretches, name)[[row for row, _ in cases]] for name in ("start", "end"))
        took_ms = (end - start) / NS_PER_MS
        values = {
            "server": endpoint(server, port), "n": len(cases), "of": total, "side": side, "alert": alert,
            "frame": first["request_first_frame"], "hint": words.say(f"alert_{hint_id}"),
        }  # fmt: skip
        yield Finding.wait(
            (server, port), "tls_alert", side, "never", took_ms.tolist(), values, median_ms=None, worst_ms=None,
            clients=len({client for _, client in cases}), exchanges=len(cases), of_exchanges=total,
            worst_exchange=first["exchange"], worst_stream=first["stream"],
            worst_frames=(first["request_first_frame"],), filter=wireshark_filter(first["stream"]),
        )  # fmt: skip
