"""Find waits before a connection's first byte, from how connections began.

- An address or address family that does not answer, or refuses, while another one works.
- SYNs that meet an older connection, are dropped for their options or time stamps, meet a full accept queue, or are
  answered from another address.
- Servers whose greeting is late, and unanswered SYNs of a host while a client waits for that host.

Also time before the first request (`before_asking`): a lost SYN without a better reason, a client that sent its
request late, a cork. That time belongs to no request, but the user waits for it, and its owner is not the server's
program.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict

from latpcap import arrays, spill, words
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, Completeness, request_mask
from latpcap.user_waits.connection_attempts import SYN_RTO_NS, Ends, Streams, fallbacks, is_loopback, names_of
from latpcap.user_waits.connects import ACK, CLIENT, RST, SYN, Opened, late_streams, opened_streams
from latpcap.user_waits.lookups import Question, address_in, questions
from latpcap.user_waits.segments import segments
from latpcap.vocabulary import LIKELY, PROTOCOLS, SEEN

if TYPE_CHECKING:
    from latpcap.arrays import Array

MAX_OPENINGS = 20_000
"""Upper bound on the slow openings examined."""
GREETING_MS = 300.0
"""A later greeting of a server that sends first is late: the time goes to the program's start, or to a lookup."""
REASON_SHARE = 0.75
"""Share of a wait that makes an event its reason."""
BEFORE_NS = 1_000_000_000
"""Longest time between an answer and a connection that the client opens because of it."""
FTP = 21
ANSWERED_NS = 1_000_000_000
"""Longest time after the last SYN for an answer from another address: the first timeout of a SYN (RFC 6298 2.1)."""
STRAY_NS = 5_000_000_000
"""Longest time after a connection's last packet for a segment from another address: some repeats of a segment."""
AT_SERVER_RATIO = 4
"""Fewest connections captured at the server for each that seems to be captured elsewhere."""
FORWARDED_NS = 50_000_000
"""Longest time that a NAT takes to send a translated packet on."""
STAMPS = 1 << 32
"""Modulus of TCP's time stamps (RFC 7323 5.5)."""
MIN_CASES = 2
"""Fewest cases that are not an accident."""
CERTAIN_CASES = 3
"""Fewest cases without an exception that prove a rule."""
MIN_SYNS = 2
"""SYNs of a connection that was asked for again."""
MAX_UNANSWERED = 18
"""Unanswered connections beyond which a search for the reason is left out."""
CERTAIN_FROM = {
    "syn_other_address": 1, "data_other_address": 1, "greeting_late": 1, "greeting_partial": 1, "ftp_active": 1,
    "family_dead": MIN_CASES, "family_refused": MIN_CASES,
}  # fmt: skip
"""Fewest cases that make a sentence certain, where fewer than `CERTAIN_CASES` do."""
NEVER = ("syn_other_address", "data_other_address", "syn_old_stamp")
"""Sentences of openings that failed, unless the SYN was answered in the end."""
OWNERS = {
    "syn_other_address": "network", "data_other_address": "network", "family_dead": "network",
    "address_dead": "network", "family_refused": "client", "address_refused": "client", "syn_old_stamp": "server",
    "syn_challenged": "client", "syn_ecn": "network", "tunnel_checksum": "network", "syn_queue_full": "server",
    "greeting_late": "server", "greeting_partial": "server", "greeting_reverse": "dns", "onward_dead": "network",
    "callback_dead": "network", "ftp_active": "network", "connect_dead": "network",
    "client_onward": "network",
}  # fmt: skip
ROWS = {"syn_rto": "connect", "client_think": "connect", "cork": "pause"}
"""The causes of time before requests, with the `method` of the stretches that have it (`tables.read_stretches`)."""


@dataclass(frozen=True)
class LateOpening:
    """A connection whose opening took long or never completed. `sentence` is the id of its finding's sentence."""

    sentence: str
    opened: Opened
    ends: Ends
    waited_ms: float
    other: Ends | None = None
    """The ends of another connection that takes part."""
    other_frame: int | None = None
    """A frame of it."""
    phrase: str | None = None
    """The id of a phrase about it."""


def find(tables: Mapping[str, pa.Table], busy: Collection[str] = ()) -> tuple[list[Finding], set[int]]:
    """Return the findings, and the streams whose SYNs they explain.

    `busy`: endpoints of servers with a limited number of workers, whose accept queue may be full.
    """
    events = segments(tables)
    if events is None:
        return [], set()
    rows = events.opens.by_stream()
    late_rows = late_streams(rows, LIMITS["setup_ms"])[:MAX_OPENINGS]
    if not len(late_rows) and not _strays(rows).any():
        return [], set()
    streams = Streams(tables["streams"], rows)
    openings = [(opened, streams.ends(opened.stream)) for opened in opened_streams(rows, late_rows)]
    late_openings: list[LateOpening] = []
    for search in SEARCHES:
        late_openings += search(_unexplained(openings, late_openings), streams, tables)
    late_openings += _full_accept_queue(_unexplained(openings, late_openings), streams, busy)
    called_back = {opening.other for opening in late_openings if opening.sentence == "callback_dead"}
    late_openings = [
        opening for opening in late_openings if opening.sentence != "greeting_late" or opening.ends not in called_back
    ]
    late_openings += _data_elsewhere(streams, {opening.opened.stream for opening in late_openings})
    groups: dict[tuple[str, str, int], list[LateOpening]] = defaultdict(list)
    for opening in late_openings:
        groups[opening.sentence, *opening.ends.to].append(opening)
    explained = {opening.opened.stream for opening in late_openings}
    return [_finding(of_reason, streams) for of_reason in groups.values()], explained


Opening = tuple[Opened, Ends]
Tables: TypeAlias = "Mapping[str, pa.Table]"


def _unexplained(openings: Sequence[Opening], late_openings: Sequence[LateOpening]) -> list[Opening]:
    explained = {opening.opened.stream for opening in late_openings}
    return [(opened, ends) for opened, ends in openings if opened.stream not in explained]


def _strays(rows: dict[str, Array]) -> Array:
    """Mark the first row of each stream that begins with a SYN-ACK, or without a SYN and has an RST."""
    stream, bits = rows["stream"], rows["bits"]
    if not len(stream):
        return np.zeros(0, bool)
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1]])
    rst = np.maximum.reduceat((bits & RST != 0).astype(np.int8), edges)
    no_syn = bits[edges] & (SYN | ACK | CLIENT) != (SYN | CLIENT)
    is_stray: Array = np.zeros(len(stream), bool)
    is_stray[edges] = no_syn & ((rst > 0) | (bits[edges] & (SYN | ACK) == (SYN | ACK)))
    return is_stray


def _answered_elsewhere(openings: Sequence[Opening], streams: Streams, _: Tables) -> Iterator[LateOpening]:
    """Find SYNs whose answer came from an address that received no SYN."""
    rows = streams.rows
    stray_rows = np.flatnonzero(_strays(rows) & (rows["bits"] & (SYN | ACK) == (SYN | ACK)))
    answers = {}
    for row in stray_rows.tolist():
        ends = streams.ends(int(rows["stream"][row]))
        answers[ends.client, ends.client_port] = (ends, int(rows["time"][row]), int(rows["frame"][row]))
    for opened, ends in _rejected(openings, streams):
        answers.setdefault((ends.client, ends.client_port), (ends, opened.answered or 0, opened.answer_frame or 0))
    for opened, ends in openings:
        other, answered, frame = answers.get((ends.client, ends.client_port), (ends, 0, 0))
        if opened.answered is not None or other.server == ends.server:
            continue
        if opened.syns[0] <= answered <= ends.end + ANSWERED_NS:
            waited_ms = opened.ms_until(ends.end)
            yield LateOpening("syn_other_address", opened, ends, waited_ms, other, frame)


def _rejected(openings: Sequence[Opening], streams: Streams) -> Iterator[Opening]:
    """Find connections whose SYN-ACK the client rejected, from a port with an unanswered SYN.

    A capture on both sides of a NAT has two copies of the SYN. The client's kernel knows only the first address, and
    answers the SYN-ACK for the second with an RST.
    """
    unanswered = {(ends.client, ends.client_port): opened for opened, ends in openings if opened.answered is None}
    is_reset = arrays.equals(streams.streams, "closed_by", "client_rst")
    rejected_rows = np.flatnonzero(is_reset & (streams.code & Completeness.DATA == 0) & (streams.answers > 0))
    ports = {port for _, port in unanswered}
    rows_of_ports = [row for row in rejected_rows[:MAX_OPENINGS].tolist() if int(streams.client_port[row]) in ports]
    for other in opened_streams(streams.rows, streams.number[rows_of_ports]) if rows_of_ports else []:
        ends = streams.ends(other.stream)
        opened = unanswered.get((ends.client, ends.client_port))
        # a copy of the SYN has its time stamp, and follows at once
        if opened is None or not other.answered or opened.stamps[0] != other.stamps[0]:
            continue
        if 0 <= other.syns[0] - opened.syns[0] <= FORWARDED_NS:
            yield other, ends


def _data_elsewhere(streams: Streams, explained: set[int]) -> Iterator[LateOpening]:
    """Find segments of a connection that arrived from another address, so that the client answered with an RST."""
    rows = streams.rows
    stray_rows = np.flatnonzero(_strays(rows) & (rows["bits"] & SYN == 0))[:MAX_OPENINGS]
    if not len(stray_rows):
        return
    by_client: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in range(len(streams.number)):
        by_client[streams.clients[int(streams.client_code[row])], int(streams.client_port[row])].append(row)
    for row in stray_rows.tolist():
        stray_stream = int(rows["stream"][row])
        stray = streams.ends(stray_stream)
        start, end = (int(times[streams.row_by_stream[stray_stream]]) for times in (streams.start, streams.end))
        for other in (stray, Ends(stray.server, stray.server_port, stray.client, stray.client_port, None, 0)):
            for real_row in by_client.get((other.client, other.client_port), ()):
                stream = int(streams.number[real_row])
                is_during = int(streams.start[real_row]) < start <= int(streams.end[real_row]) + STRAY_NS
                ends = streams.ends(stream)
                if stream == stray_stream or stream in explained or not is_during or ends.server == other.server:
                    continue
                if not streams.answers[real_row] or not streams.code[real_row] & Completeness.DATA:
                    continue
                waited_ms = (max(int(streams.end[real_row]), end) - start) / NS_PER_MS
                for opened in opened_streams(rows, np.array([stream])):
                    frame = int(rows["frame"][row])
                    yield LateOpening("data_other_address", opened, ends, waited_ms, other, frame)
                    explained.add(stream)


def _another_address(openings: Sequence[Opening], streams: Streams, tables: Tables) -> Iterator[LateOpening]:
    """Find addresses that did not answer, or refused, before the client connected to another one on the same port."""
    names = names_of(tables["lookups"]) if "lookups" in tables else {}
    for opened, ends, other_start, other, _ in fallbacks(openings, streams, names):
        level = "address" if ends.family == other.family else "family"
        outcome = "refused" if opened.refused is not None else "dead"
        yield LateOpening(f"{level}_{outcome}", opened, ends, opened.ms_until(other_start), other)


def _tunnel(openings: Sequence[Opening], streams: Streams, tables: Tables) -> Iterator[LateOpening]:
    """Find SYNs in a tunnel with a wrong outer checksum that were answered only after a repeat."""
    code, texts = arrays.codes(tables["issues"], "code")
    if "tunnel_checksum" not in texts:
        return
    first = int((code == texts.index("tunnel_checksum")).argmax())
    [row] = tables["issues"].select(["frame", "last_frame"]).slice(first, 1).to_pylist()
    for opened, ends in openings:
        if len(opened.syns) > 1 and row["frame"] <= opened.frames[0] <= row["last_frame"]:
            yield LateOpening("tunnel_checksum", opened, ends, opened.ms_until(opened.settled))


def _old_time_stamp(openings: Sequence[Opening], streams: Streams, _: Tables) -> Iterator[LateOpening]:
    """Find SYNs dropped because their time stamps are older than those of earlier SYNs from the same address.

    Several clients behind one NAT address do so (PAWS per host: Linux before 4.12 with tcp_tw_recycle).
    """
    groups: dict[tuple[str, tuple[str, int]], list[Opening]] = defaultdict(list)
    for opened, ends in openings:
        if (opened.answered is None or len(opened.syns) > 1) and opened.stamps[0] >= 0:
            groups[ends.client, ends.to].append((opened, ends))
    for (client, server), openings_of_group in groups.items():
        if len(openings_of_group) < MIN_CASES:
            continue
        syns = sorted(
            (time, stamp, opened.answered is not None and time == opened.syns[-1], opened.stream)
            for opened in opened_streams(streams.rows, streams.to(server, client))
            for time, stamp in zip(opened.syns, opened.stamps, strict=True)
            if stamp >= 0
        )
        newest, dropped, passed, exceptions = -1, set(), 0, 0
        for _time, stamp, was_answered, stream in syns:
            is_old = newest >= 0 and 0 < (newest - stamp) % STAMPS < STAMPS // 2
            if was_answered:
                passed, exceptions = passed + (not is_old and newest >= 0), exceptions + is_old
                newest = stamp if not is_old else newest
            elif is_old:
                dropped.add(stream)
            else:
                exceptions += 1
        if len(dropped) >= MIN_CASES and passed >= MIN_CASES and not exceptions:
            yield from [
                LateOpening("syn_old_stamp", opened, ends, opened.ms_until(opened.settled))
                for opened, ends in openings_of_group
                if opened.stream in dropped
            ]


def _challenged(openings: Sequence[Opening], streams: Streams, _: Tables) -> list[LateOpening]:
    """Find SYNs answered with an ACK of an older connection, so that the client sent an RST and the SYN once more."""
    return [
        LateOpening("syn_challenged", opened, ends, opened.ms_until(opened.answered))
        for opened, ends in openings
        if opened.answered is not None
        and opened.gave_up is not None
        and len(opened.syns) > 1
        and opened.gave_up < opened.syns[-1]
    ]


def _ecn(openings: Sequence[Opening], streams: Streams, _: Tables) -> Iterator[LateOpening]:
    """Find SYNs that offer ECN and are never answered, while their repeats without it are."""
    groups: dict[tuple[str, int], list[Opening]] = defaultdict(list)
    for opened, ends in openings:
        if opened.answered is not None and opened.ecn[0] and not opened.ecn[-1]:
            groups[ends.to].append((opened, ends))
    for server, openings_of_server in groups.items():
        all_openings = opened_streams(streams.rows, streams.to(server))
        has_answered_ecn = any(opened.answered is not None and opened.ecn[-1] for opened in all_openings)
        if len(openings_of_server) < MIN_CASES or has_answered_ecn:
            continue  # a SYN with ECN was answered, so that these were lost
        for opened, ends in openings_of_server:
            yield LateOpening("syn_ecn", opened, ends, opened.ms_until(opened.settled))


def _full_accept_queue(openings: Sequence[Opening], streams: Streams, busy: Collection[str]) -> list[LateOpening]:
    """Find SYNs that reached the server's host and were answered only after a repeat.

    The capture must be at the server, or its requests must wait for a limited number of workers (`busy`).
    """
    late_openings = []
    at_server: dict[tuple[str, int], bool] = {}
    for opened, ends in openings:
        if opened.answered is None or len(opened.syns) < MIN_SYNS or opened.ecn[0] != opened.ecn[-1]:
            continue
        if ends.to not in at_server:
            positions = Counter(streams.ends(int(number)).position for number in streams.to(ends.to)[:MAX_OPENINGS])
            is_near = positions["at_server"] > 0 or endpoint(*ends.to) in busy
            # a dropped ACK makes a handshake look as if it were captured between the hosts
            elsewhere = positions["at_client"] + positions["between"]
            at_server[ends.to] = is_near and (not elsewhere or positions["at_server"] >= AT_SERVER_RATIO * elsewhere)
        if at_server[ends.to]:
            late_openings.append(LateOpening("syn_queue_full", opened, ends, opened.ms_until(opened.answered)))
    counts = Counter(opening.ends.to for opening in late_openings)
    # a single case may have another reason, unless the server is busy
    servers = {server for server, count in counts.items() if count >= MIN_CASES or endpoint(*server) in busy}
    return [opening for opening in late_openings if opening.ends.to in servers]


def _greeting(openings: Sequence[Opening], streams: Streams, tables: Tables) -> Iterator[LateOpening]:
    """Find servers that send first and whose greeting was complete long after the handshake."""
    lookups_of_address: dict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in questions(tables["lookups"]) if "lookups" in tables else ():
        if question.kind == "PTR":
            lookups_of_address[question.client, address_in(question.name) or ""].append(question)
    for opened, ends in openings:
        if opened.answered is None or opened.spoke is None or opened.greeted is None:
            continue
        waited_ms = (opened.greeted - opened.answered) / NS_PER_MS
        if waited_ms < GREETING_MS or not streams.code[streams.row_by_stream[opened.stream]] & Completeness.DATA:
            continue
        lookup = _looked_up(lookups_of_address.get((ends.server, ends.client), []), opened.answered, opened.greeted)
        if lookup is not None:
            lookup_ends = Ends(lookup.client, lookup.port, lookup.server, lookup.server_port, None, lookup.start)
            phrase = "reverse_never" if lookup.end is None else "reverse_late"
            yield LateOpening("greeting_reverse", opened, ends, waited_ms, lookup_ends, lookup.frame, phrase)
        else:
            is_partial = opened.spoke - opened.answered < (1 - REASON_SHARE) * (opened.greeted - opened.answered)
            yield LateOpening("greeting_partial" if is_partial else "greeting_late", opened, ends, waited_ms)


def _looked_up(lookups: Sequence[Question], begin: int, end: int) -> Question | None:
    """Return the first of these lookups between `begin` and `end` if they took most of that time."""
    questions = [question for question in lookups if begin <= question.start <= end]
    if not questions:
        return None
    ends = [question.end for question in questions if question.end is not None]
    last_end = max(ends) if questions[-1].end is not None else end
    return questions[0] if min(last_end, end) - questions[0].start >= REASON_SHARE * (end - begin) else None


def _server_waits(openings: Sequence[Opening], streams: Streams, tables: Tables) -> Iterator[LateOpening]:
    """Find unanswered SYNs of a server while a client waits for that server's answer or greeting.

    The SYNs go to that client (FTP's active mode, ident, a callback), or to another host that the server needs.
    """
    unanswered = [(opened, ends) for opened, ends in openings if opened.answered is None and opened.refused is None]
    askers = {ends.client for _, ends in unanswered}
    loopback = [server for server in streams.servers if is_loopback(server)]
    recorded = streams.recorded_hosts() if loopback else set()
    hosts = askers & set(streams.servers)
    if askers & recorded:
        hosts |= set(loopback)
    if not hosts:
        return
    waits = _waits(hosts, streams, tables["stretches"])
    for opened, ends in openings:
        if ends.server in hosts and opened.answered is not None and opened.greeted is not None:
            waits.append((opened.answered, opened.greeted, ends))
    waits.sort(key=lambda wait: wait[0])
    begins = [wait[0] for wait in waits]
    late_openings = []
    for opened, ends in unanswered:
        until = opened.syns[-1] + _patience(opened)
        for start, end, waiting in waits[: bisect_right(begins, opened.syns[0])]:
            spans_syns = opened.syns[-1] < end <= until and end - opened.syns[0] >= REASON_SHARE * (end - start)
            is_same_host = waiting.server == ends.client or (ends.client in recorded and is_loopback(waiting.server))
            if not is_same_host or not spans_syns:
                continue
            sentence = "onward_dead"
            if waiting.client == ends.server:
                sentence = "ftp_active" if waiting.server_port == FTP else "callback_dead"
            late_openings.append(LateOpening(sentence, opened, ends, opened.ms_until(end), waiting))
            break
    single = Counter(ends.to for opened, ends in unanswered if not opened.has_no_reply)
    counts = Counter(opening.ends.to for opening in late_openings if not opening.opened.has_no_reply)
    for opening in late_openings:
        count = counts[opening.ends.to]
        # a single SYN may have been lost, or be sent for another reason; then others come without a wait
        if opening.opened.has_no_reply or count >= max(CERTAIN_CASES, REASON_SHARE * single[opening.ends.to]):
            yield opening


def _patience(opened: Opened) -> int:
    """Return the longest time in ns that the sender may have waited after its last SYN: until the next one was due."""
    if len(opened.syns) < MIN_SYNS:
        return SYN_RTO_NS
    return 2 * (opened.syns[-1] - opened.syns[-2]) + ANSWERED_NS


def _waits(hosts: Set[str], streams: Streams, stretches: pa.Table) -> list[tuple[int, int, Ends]]:
    """Return start, end and ends of the slow requests to these hosts."""
    if not stretches.num_rows:
        return []
    from_hosts = np.isin(streams.server_code, [streams.servers.index(host) for host in hosts])
    is_wanted = np.isin(arrays.numbers(stretches, "stream"), streams.number[from_hosts])
    is_wanted &= request_mask(stretches)
    begin, end = arrays.filled(stretches, "request_end", 0), arrays.filled(stretches, "end", 0)
    rows = np.flatnonzero(is_wanted & (end - begin >= LIMITS["setup_ms"] * NS_PER_MS))[:MAX_OPENINGS]
    stream = arrays.numbers(stretches, "stream")
    return [(int(begin[row]), int(end[row]), streams.ends(int(stream[row]))) for row in rows.tolist()]


def _client_pauses(openings: Sequence[Opening], streams: Streams, tables: Tables) -> Iterator[LateOpening]:
    """Find unanswered SYNs of a client that paused towards another server until it gave the SYNs up."""
    stretches = tables["stretches"]
    unanswered = [(opened, ends) for opened, ends in openings if opened.has_no_reply]
    if not unanswered or not stretches.num_rows:
        return
    causes = tables["causes"]
    thinking = np.flatnonzero(arrays.equals(causes, "cause", "client_think"))
    exchange_rows = spill.positions_of(
        arrays.numbers(stretches, "exchange"), arrays.numbers(causes, "exchange")[thinking]
    )
    sums_ms = np.bincount(exchange_rows, arrays.numbers(causes, "duration_ms")[thinking], stretches.num_rows)
    slow_rows = np.flatnonzero(sums_ms >= LIMITS["setup_ms"])[:MAX_OPENINGS]
    start, end = (arrays.filled(stretches, name, 0)[slow_rows].tolist() for name in ("start", "end"))
    stream = arrays.numbers(stretches, "stream")[slow_rows].tolist()
    spans = zip(stream, start, end, sums_ms[slow_rows].tolist(), strict=True)
    client_pauses = [(streams.ends(number), since, ended, ms) for number, since, ended, ms in spans]
    for opened, ends in unanswered:
        for waiting, since, ended, thought_ms in client_pauses:
            is_inside = waiting.client == ends.client and since <= opened.syns[0] and opened.syns[-1] < ended
            waited_ms = opened.ms_until(ended)
            has_same_length = REASON_SHARE * waited_ms <= thought_ms <= waited_ms / REASON_SHARE
            if is_inside and waiting.server != ends.server and has_same_length:
                yield LateOpening("client_onward", opened, ends, min(thought_ms, waited_ms), waiting)
                break


def _client_idle(openings: Sequence[Opening], streams: Streams, tables: Tables) -> Iterator[LateOpening]:
    """Find SYNs to a dead host, sent after an answer, whose client was idle meanwhile and went on when it gave up."""
    stretches, alive = tables["stretches"], {int(code) for code in np.unique(streams.server_code[streams.answers > 0])}
    unanswered = [
        (opened, ends)
        for opened, ends in openings
        if opened.has_no_reply and len(opened.syns) > MIN_SYNS and streams.servers.index(ends.server) not in alive
    ]
    if not unanswered or not stretches.num_rows or len(unanswered) > MAX_UNANSWERED:
        return
    stream_rows = spill.positions_of(streams.number, arrays.numbers(stretches, "stream"))
    client_codes = np.where(request_mask(stretches), streams.client_code[stream_rows], -1)
    start, end = arrays.numbers(stretches, "start"), arrays.filled(stretches, "end", 0)
    for client in {ends.client for _, ends in unanswered}:
        code = streams.clients.index(client)
        request_rows = np.flatnonzero(client_codes == code)
        dead = {opened.stream for opened, ends in unanswered if ends.client == client}
        other_rows = np.flatnonzero((streams.client_code == code) & ~np.isin(streams.number, list(dead)))
        act_times = start[request_rows], streams.start[other_rows], streams.end[other_rows]
        instants = sorted(instant for times in act_times for instant in times.tolist())
        answers = sorted((int(end[row]), int(stream_rows[row])) for row in request_rows.tolist() if end[row] > 0)
        answer_times = [time for time, _ in answers]
        for opened, ends in unanswered:
            if ends.client != client:
                continue
            last_answer = bisect_right(answer_times, opened.syns[0]) - 1
            was_led = last_answer >= 0 and opened.syns[0] - answer_times[last_answer] <= BEFORE_NS
            next_act = bisect_left(instants, opened.syns[1])  # before its second SYN it may close older connections
            last_syn = opened.syns[-1]
            if was_led and next_act < len(instants) and last_syn <= instants[next_act] <= last_syn + _patience(opened):
                origin = streams.ends(int(streams.number[answers[last_answer][1]]))
                yield LateOpening("connect_dead", opened, ends, opened.ms_until(instants[next_act]), origin)


SEARCHES = (
    _tunnel, _answered_elsewhere, _server_waits, _client_pauses, _another_address, _client_idle, _old_time_stamp,
    _challenged, _ecn, _greeting,
)  # fmt: skip
"""The searches; an opening belongs to the first that finds it."""


def _finding(openings: list[LateOpening], streams: Streams) -> Finding:
    """Return the finding of late openings of one kind; the longest wait is its worst case."""
    openings.sort(key=lambda opening: opening.waited_ms)
    worst = openings[-1]
    opened, ends = worst.opened, worst.ends
    other = worst.other
    is_never = worst.sentence == "data_other_address" or (worst.sentence in NEVER and opened.answered is None)
    frames = [opened.frames[0], *opened.frames[-1:]]
    if worst.other_frame is not None:
        frames = [opened.frames[0], worst.other_frame]
    elif opened.answer_frame is not None:
        frames.append(opened.answer_frame)
    values = {
        "n": len(openings), "of": streams.count(ends.to), "span_ms": (openings[0].waited_ms, worst.waited_ms),
        "longest_ms": worst.waited_ms, "server": endpoint(*ends.to), "address": ends.server, "family": ends.family,
        "repeats": len(opened.syns),
        "other": endpoint(*other.to) if other else "", "other_address": other.server if other else "",
        "other_family": other.family if other else "", "client": ends.client,
        "came": words.say(worst.phrase) if worst.phrase else "",
    }  # fmt: skip
    return Finding.wait(
        ends.to, worst.sentence, OWNERS[worst.sentence], "never" if is_never else "late",
        [opening.waited_ms for opening in openings], values, clients=len({opening.ends.client for opening in openings}),
        client=ends.client, streams=len(openings), of_streams=max(streams.count(ends.to), len(openings)),
        confidence=SEEN if len(openings) >= CERTAIN_FROM.get(worst.sentence, CERTAIN_CASES) else LIKELY,
        worst_stream=opened.stream, worst_frames=tuple(dict.fromkeys(frames)),
    )  # fmt: skip


class Delay(NamedTuple):
    """Time before a request: its length, and the row of "exchanges" that has it."""

    ms: float
    stream: int
    exchange: int
    frame: int
    client: str


def before_asking(tables: Tables, explained: Set[int] = frozenset()) -> list[Finding]:
    """Find connects that waited for a repeated SYN, late first requests, and requests held by a cork; by server.

    `explained`: streams with a better reason for the repeated SYN (`find`).
    """
    streams, stretches = tables["streams"], tables["stretches"]
    columns = ["server", "server_port", "client", "protocol", "server_packets", "client_unseen_frames"]
    groups: dict[tuple[str, str, int], list[Delay]] = defaultdict(list)
    exchange_numbers, stream_numbers = arrays.numbers(stretches, "exchange"), arrays.numbers(stretches, "stream")
    frames = arrays.numbers(stretches, "request_first_frame")
    for cause, late_rows in _late_rows(stretches).items():
        ms = arrays.numbers(stretches, f"{cause}_ms")
        ends = arrays.looked_up(streams, "stream", stream_numbers[late_rows], columns)
        for row, (server, port, client, protocol, answers, lost) in zip(late_rows.tolist(), ends, strict=True):
            if cause == "syn_rto" and int(stream_numbers[row]) in explained:
                continue
            if not answers or (cause == "client_think" and "client_first" not in PROTOCOLS.get(protocol, ())):
                continue
            if cause == "client_think" and lost:  # the client may have sent an earlier copy that was lost
                continue
            delay = Delay(
                float(ms[row]), int(stream_numbers[row]), int(exchange_numbers[row]), int(frames[row]), client
            )
            groups[cause, server, port].append(delay)
    order = sorted(groups.items(), key=lambda group: (group[0][0] != "syn_rto", -max(group[1]).ms))
    return [_before(*key, delays) for key, delays in order]


def _late_rows(stretches: pa.Table) -> dict[str, Array]:
    """Return by cause the rows that are not requests and have enough of the cause's time."""
    rows_by_cause: dict[str, list[Array]] = {cause: [] for cause in ROWS}
    for span, rows in arrays.sliced(stretches):
        is_no_request = ~request_mask(rows)
        for cause, row_parts in rows_by_cause.items():
            is_of_kind = arrays.equals(rows, "method", ROWS[cause])
            is_late = arrays.numbers(rows, f"{cause}_ms") >= LIMITS["setup_ms"]
            row_parts.append(np.flatnonzero(is_no_request & is_of_kind & is_late) + span.start)
    return {cause: np.concatenate(row_parts) for cause, row_parts in rows_by_cause.items() if row_parts}


class Pauses(TypedDict):
    """The number and the median length of clients' pauses between requests."""

    count: int
    median_ms: float


def pauses(tables: Tables, server: str, port: int) -> Pauses:
    """Return the pauses of this server's clients between their requests."""
    streams, stretches = tables["streams"], tables["stretches"]
    method, methods = arrays.codes(stretches, "method")
    ms = arrays.numbers(stretches, "client_think_ms")
    rows = (
        np.flatnonzero((method == methods.index("pause")) & (ms > 0)) if "pause" in methods else np.zeros(0, np.int64)
    )
    if not len(rows):
        return {"count": 0, "median_ms": 0.0}
    is_server = arrays.equals(streams, "server", server)
    streams_of_server = arrays.numbers(streams, "stream")[is_server & (arrays.numbers(streams, "server_port") == port)]
    pauses_ms = np.sort(ms[rows][np.isin(arrays.numbers(stretches, "stream")[rows], streams_of_server)])
    return {"count": len(pauses_ms), "median_ms": arrays.percentile(pauses_ms, 0.5) if len(pauses_ms) else 0.0}


def _before(cause: str, server: str, port: int, delays: list[Delay]) -> Finding:
    delays.sort()
    worst, typical = delays[-1], delays[len(delays) // 2]
    streams = len({delay.stream for delay in delays})
    return Finding(
        kind="setup", server=server, server_port=port, cause=cause,
        owner="network" if cause == "syn_rto" else "client",
        clients=len({delay.client for delay in delays}), client=worst.client, streams=streams, exchanges=0,
        total_ms=sum(delay.ms for delay in delays), median_ms=typical.ms, max_ms=worst.ms,
        worst_exchange=worst.exchange, worst_stream=worst.stream, worst_ms=worst.ms, worst_frames=(worst.frame,),
        typical_exchange=typical.exchange, typical_stream=typical.stream, typical_ms=typical.ms,
        typical_frames=(typical.frame,), fix=words.fix_of(cause),
        filter=wireshark_filter(typical.stream, typical.frame),
        sentence=f"setup_{cause}", values={"n": streams, "span_ms": (delays[0].ms, worst.ms)},
    )  # fmt: skip
