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
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from latpcap import arrays, spill, words
from latpcap.findings.schema import Finding, Harmful, wireshark_filter
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, SETUP, Completeness
from latpcap.user_waits.cause_totals import endpoint
from latpcap.user_waits.connection_attempts import Ends, Streams, instead, names_of
from latpcap.user_waits.connects import ACK, CLIENT, RST, SYN, Opened, begun, late
from latpcap.user_waits.lookups import Question, address_in, questions
from latpcap.user_waits.segments import segments
from latpcap.vocabulary import LIKELY, PROTOCOLS, SEEN

if TYPE_CHECKING:
    import pyarrow as pa

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
ANSWERED_NS, STRAY_NS = 1_000_000_000, 5_000_000_000
"""Longest time after the last SYN for an answer from another address (the first timeout of a SYN, RFC 6298 2.1), and
after a connection's last packet for a segment from another address (some repeats of a segment)."""
AT_SERVER_RATIO = 4
"""Fewest connections captured at the server for each that seems to be captured elsewhere."""
FORWARDED_NS = 50_000_000
"""Longest time that a NAT takes to send a translated packet on."""
STAMPS = 1 << 32
"""Modulus of TCP's time stamps (RFC 7323 5.5)."""
FEW, ENOUGH = 2, 3
"""Cases that are no accident, and cases without an exception that prove a rule."""
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
"""The causes of time before requests, by the kind of row of "exchanges" that has it (`tables.stretches`)."""


@dataclass(frozen=True)
class LateOpening:
    """A connection whose opening took long or never completed. `sentence` is the id of its finding's sentence."""

    sentence: str
    opened: Opened
    ends: Ends
    waited_ms: float
    extra: tuple[Any, ...] = ()
    """The ends of another connection that takes part, a frame of it, and the id of a phrase about it."""


def find(tables: Mapping[str, pa.Table], busy: Collection[str] = ()) -> tuple[list[Finding], set[int]]:
    """Return the findings, and the streams whose SYNs they explain.

    `busy`: endpoints of servers with a limited number of workers, whose accept queue may be full.
    """
    events = segments(tables)
    if events is None:
        return [], set()
    rows, streams = events.opens.by_stream(), tables["streams"]
    which = late(rows, LIMITS["setup_ms"])[:MAX_OPENINGS]
    if not len(which) and not _strays(rows).any():
        return [], set()
    all_of = Streams(streams, rows)
    opened = [(one, all_of.ends(one.stream)) for one in begun(rows, which)]
    cases: list[LateOpening] = []
    for search in SEARCHES:
        known = {case.opened.stream for case in cases}
        rest = [(one, ends) for one, ends in opened if one.stream not in known]
        cases += search(rest, all_of, tables)
    known = {case.opened.stream for case in cases}
    cases += _full_accept_queue([(one, ends) for one, ends in opened if one.stream not in known], all_of, busy)
    reasons = {case.extra[0] for case in cases if case.sentence == "callback_dead"}
    cases = [case for case in cases if case.sentence != "greeting_late" or case.ends not in reasons]
    cases += _data_elsewhere(all_of, {case.opened.stream for case in cases})
    groups: dict[tuple[str, str, int], list[LateOpening]] = defaultdict(list)
    for case in cases:
        groups[case.sentence, *case.ends.to].append(case)
    return [_finding(of_reason, all_of) for of_reason in groups.values()], {case.opened.stream for case in cases}


def _strays(rows: dict[str, Array]) -> Array:
    """Mark the first row of each stream that begins with a SYN-ACK, or without a SYN and has an RST."""
    import numpy as np

    stream, bits = rows["stream"], rows["bits"]
    if not len(stream):
        return np.zeros(0, bool)
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1]])
    rst = np.maximum.reduceat((bits & RST != 0).astype(np.int8), edges)
    no_syn = bits[edges] & (SYN | ACK | CLIENT) != (SYN | CLIENT)
    is_stray: Array = np.zeros(len(stream), bool)
    is_stray[edges] = no_syn & ((rst > 0) | (bits[edges] & (SYN | ACK) == (SYN | ACK)))
    return is_stray


Opening = tuple[Opened, Ends]


def _answered_elsewhere(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find SYNs whose answer came from an address that received no SYN."""
    import numpy as np

    rows = all_of.rows
    first = np.flatnonzero(_strays(rows) & (rows["bits"] & (SYN | ACK) == (SYN | ACK)))
    answers = {}
    for at in first.tolist():
        number = int(rows["stream"][at])
        ends = all_of.ends(number)
        answers[ends.client, ends.client_port] = (ends, int(rows["time"][at]), int(rows["frame"][at]))
    for one, ends in _rejected(opened, all_of):
        answers.setdefault((ends.client, ends.client_port), (ends, one.answered or 0, one.answer_frame or 0))
    cases = []
    for one, ends in opened:
        answer = answers.get((ends.client, ends.client_port))
        if answer is None or one.answered is not None or answer[0].server == ends.server:
            continue
        if 0 <= answer[1] - one.syns[0] <= ends.end - one.syns[0] + ANSWERED_NS:
            waited = (ends.end - one.syns[0]) / NS_PER_MS
            cases.append(LateOpening("syn_other_address", one, ends, waited, (answer[0], answer[2])))
    return cases


def _rejected(opened: Sequence[Opening], all_of: Streams) -> list[Opening]:
    """Find connections whose SYN-ACK the client rejected, from a port with an unanswered SYN.

    A capture on both sides of a NAT has two copies of the SYN. The client's kernel knows only the first address, and
    answers the SYN-ACK for the second with an RST.
    """
    import numpy as np

    unanswered = {(ends.client, ends.client_port): one for one, ends in opened if one.answered is None}
    reset = arrays.equals(all_of.streams, "closed_by", "client_rst")
    which = np.flatnonzero(reset & (all_of.code & Completeness.DATA == 0) & (all_of.answers > 0))
    ports = {port for _, port in unanswered}
    rows = [at for at in which[:MAX_OPENINGS].tolist() if int(all_of.client_port[at]) in ports]
    cases = []
    for other in begun(all_of.rows, all_of.number[rows]) if rows else []:
        ends = all_of.ends(other.stream)
        one = unanswered.get((ends.client, ends.client_port))
        # a copy of the SYN has its time stamp, and follows at once
        if one is None or not other.answered or one.stamps[0] != other.stamps[0]:
            continue
        if 0 <= other.syns[0] - one.syns[0] <= FORWARDED_NS:
            cases.append((other, ends))
    return cases


def _data_elsewhere(all_of: Streams, known: set[int]) -> list[LateOpening]:
    """Find segments of a connection that arrived from another address, so that the client answered with an RST."""
    import numpy as np

    rows = all_of.rows
    first = np.flatnonzero(_strays(rows) & (rows["bits"] & SYN == 0))
    if not len(first) or len(first) > MAX_OPENINGS:
        return []
    by_client: dict[tuple[str, int], list[int]] = defaultdict(list)
    for at in range(len(all_of.number)):
        by_client[all_of.clients[int(all_of.client_code[at])], int(all_of.client_port[at])].append(at)
    cases = []
    for at in first.tolist():
        number = int(rows["stream"][at])
        ends = all_of.ends(number)
        start, end = (int(times[all_of.place[number]]) for times in (all_of.start, all_of.end))
        for stray in (ends, Ends(ends.server, ends.server_port, ends.client, ends.client_port, None, 0)):
            for place in by_client.get((stray.client, stray.client_port), ()):
                stream = int(all_of.number[place])
                is_during = int(all_of.start[place]) < start <= int(all_of.end[place]) + STRAY_NS
                real = all_of.ends(stream)
                if stream == number or stream in known or not is_during or real.server == stray.server:
                    continue
                if not all_of.answers[place] or not all_of.code[place] & Completeness.DATA:
                    continue
                waited = (max(int(all_of.end[place]), end) - start) / NS_PER_MS
                opened = begun(rows, np.array([stream]))
                if opened:
                    extra = (stray, int(rows["frame"][at]))
                    cases.append(LateOpening("data_other_address", opened[0], real, waited, extra))
                    known.add(stream)
    return cases


def _another_address(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find addresses that did not answer, or refused, before the client connected to another one on the same port."""
    names = names_of(tables["lookups"]) if "lookups" in tables else {}
    cases = []
    for one, ends, begin, other, _ in instead(opened, all_of, names):
        of = "address" if ends.family == other.family else "family"
        how = "refused" if one.refused is not None else "dead"
        cases.append(LateOpening(f"{of}_{how}", one, ends, (begin - one.syns[0]) / NS_PER_MS, (other,)))
    return cases


def _tunnel(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find SYNs in a tunnel with a wrong outer checksum that were answered only after a repeat."""
    code, texts = arrays.codes(tables["issues"], "code")
    if "tunnel_checksum" not in texts:
        return []
    first = int((code == texts.index("tunnel_checksum")).argmax())
    [row] = tables["issues"].select(["frame", "last_frame"]).slice(first, 1).to_pylist()
    cases = []
    for one, ends in opened:
        if len(one.syns) > 1 and row["frame"] <= one.frames[0] <= row["last_frame"]:
            until = one.answered or one.syns[-1]
            cases.append(LateOpening("tunnel_checksum", one, ends, (until - one.syns[0]) / NS_PER_MS))
    return cases


def _old_time_stamp(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find SYNs dropped because their time stamps are older than those of earlier SYNs from the same address.

    Several clients behind one NAT address do so (PAWS per host: Linux before 4.12 with tcp_tw_recycle).
    """
    groups: dict[tuple[str, tuple[str, int]], list[Opening]] = defaultdict(list)
    for one, ends in opened:
        if (one.answered is None or len(one.syns) > 1) and one.stamps[0] >= 0:
            groups[ends.client, ends.to].append((one, ends))
    cases = []
    for (client, server), openings in groups.items():
        if len(openings) < FEW:
            continue
        syns = sorted(
            (time, stamp, one.answered is not None and time == one.syns[-1], one.stream)
            for one in begun(all_of.rows, all_of.to(server, client))
            for time, stamp in zip(one.syns, one.stamps, strict=True)
            if stamp >= 0
        )
        newest, dropped, passed, against = -1, set(), 0, 0
        for _time, stamp, answered, stream in syns:
            is_old = newest >= 0 and 0 < (newest - stamp) % STAMPS < STAMPS // 2
            if answered:
                passed, against = passed + (not is_old and newest >= 0), against + is_old
                newest = stamp if not is_old else newest
            elif is_old:
                dropped.add(stream)
            else:
                against += 1
        if len(dropped) >= FEW and passed >= FEW and not against:
            for one, ends in openings:
                if one.stream in dropped:
                    until = one.answered or one.syns[-1]
                    cases.append(LateOpening("syn_old_stamp", one, ends, (until - one.syns[0]) / NS_PER_MS))
    return cases


def _challenged(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find SYNs answered with an ACK of an older connection, so that the client sent an RST and the SYN once more."""
    return [
        LateOpening("syn_challenged", one, ends, (one.answered - one.syns[0]) / NS_PER_MS)
        for one, ends in opened
        if one.answered is not None and one.gave_up is not None and len(one.syns) > 1 and one.gave_up < one.syns[-1]
    ]


def _ecn(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find SYNs that offer ECN and are never answered, while their repeats without it are."""
    groups: dict[tuple[str, int], list[Opening]] = defaultdict(list)
    for one, ends in opened:
        if one.answered is not None and one.ecn[0] and not one.ecn[-1]:
            groups[ends.to].append((one, ends))
    cases = []
    for server, openings in groups.items():
        every = begun(all_of.rows, all_of.to(server))
        if len(openings) < FEW or any(one.answered is not None and one.ecn[-1] for one in every):
            continue  # a SYN with ECN was answered, so that these were lost
        for one, ends in openings:
            cases.append(LateOpening("syn_ecn", one, ends, ((one.answered or 0) - one.syns[0]) / NS_PER_MS))
    return cases


def _full_accept_queue(opened: Sequence[Opening], all_of: Streams, busy: Collection[str]) -> list[LateOpening]:
    """Find SYNs that reached the server's host and were answered only after a repeat.

    The capture must be at the server, or its requests must wait for a limited number of workers (`busy`).
    """
    cases = []
    at_server: dict[tuple[str, int], bool] = {}
    for one, ends in opened:
        if one.answered is None or len(one.syns) < FEW or one.ecn[0] != one.ecn[-1]:
            continue
        if ends.to not in at_server:
            texts = Counter(all_of.ends(int(number)).position for number in all_of.to(ends.to)[:MAX_OPENINGS])
            is_near = texts["at_server"] > 0 or endpoint(*ends.to) in busy
            # a dropped ACK makes a handshake look as if it were captured between the hosts
            others = texts["at_client"] + texts["between"]
            at_server[ends.to] = is_near and (not others or texts["at_server"] >= AT_SERVER_RATIO * others)
        if at_server[ends.to]:
            cases.append(LateOpening("syn_queue_full", one, ends, (one.answered - one.syns[0]) / NS_PER_MS))
    counts = Counter(case.ends.to for case in cases)
    # a single case may have another reason, unless the server is busy
    return [case for case in cases if counts[case.ends.to] >= FEW or endpoint(*case.ends.to) in busy]


def _greeting(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find servers that send first and whose greeting was complete long after the handshake."""
    cases = []
    known_names: dict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in questions(tables["lookups"]) if "lookups" in tables else ():
        if question.kind == "PTR":
            known_names[question.client, address_in(question.name) or ""].append(question)
    for one, ends in opened:
        if one.answered is None or one.spoke is None or one.greeted is None:
            continue
        waited = (one.greeted - one.answered) / NS_PER_MS
        if waited < GREETING_MS or not all_of.code[all_of.place[one.stream]] & Completeness.DATA:
            continue
        name = _looked_up(known_names.get((ends.server, ends.client), []), one.answered, one.greeted)
        if name is not None:
            lookup = Ends(name.client, name.port, name.server, name.server_port, None, name.start)
            phrase = "reverse_never" if name.end is None else "reverse_late"
            cases.append(LateOpening("greeting_reverse", one, ends, waited, (lookup, name.frame, phrase)))
        else:
            is_partial = one.spoke - one.answered < (1 - REASON_SHARE) * (one.greeted - one.answered)
            cases.append(LateOpening("greeting_partial" if is_partial else "greeting_late", one, ends, waited))
    return cases


def _looked_up(known_names: Sequence[Question], begin: int, end: int) -> Question | None:
    """Return the first of these lookups between `begin` and `end` if they took most of that time."""
    questions = [q for q in known_names if begin <= q.start <= end]
    if not questions:
        return None
    known = max((q.end for q in questions if q.end is not None), default=end) if questions[-1].end is not None else end
    return questions[0] if min(known, end) - questions[0].start >= REASON_SHARE * (end - begin) else None


def _server_waits(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find unanswered SYNs of a server while a client waits for that server's answer or greeting.

    The SYNs go to that client (FTP's active mode, ident, a callback), or to another host that the server needs.
    """
    mute = [(one, ends) for one, ends in opened if one.answered is None and one.refused is None and len(one.syns) > 1]
    hosts = {ends.client for _, ends in mute} & set(all_of.servers)
    if not hosts:
        return []
    waits = _waits(hosts, all_of, tables["exchanges"])
    for one, ends in opened:
        if ends.server in hosts and one.answered is not None and one.greeted is not None:
            waits.append((one.answered, one.greeted, ends))
    waits.sort(key=lambda wait: wait[0])
    begins = [wait[0] for wait in waits]
    cases = []
    for one, ends in mute:
        until = one.syns[-1] + _patience(one)
        for start, end, waiting in waits[: bisect_right(begins, one.syns[0])]:
            whole = one.syns[-1] < end <= until and end - one.syns[0] >= REASON_SHARE * (end - start)
            if waiting.server != ends.client or not whole:
                continue
            word = "onward_dead"
            if waiting.client == ends.server:
                word = "ftp_active" if waiting.server_port == FTP else "callback_dead"
            cases.append(LateOpening(word, one, ends, (end - one.syns[0]) / NS_PER_MS, (waiting,)))
            break
    return cases


def _patience(one: Opened) -> int:
    """Return the longest time in ns that the sender may have waited after its last SYN: until the next one was due."""
    return 2 * (one.syns[-1] - one.syns[-2]) + ANSWERED_NS


def _waits(hosts: Set[str], all_of: Streams, exchanges: pa.Table) -> list[tuple[int, int, Ends]]:
    """Return start, end and ends of the slow requests to these hosts."""
    import numpy as np

    if not exchanges.num_rows:
        return []
    from_hosts = np.isin(all_of.server_code, [all_of.servers.index(host) for host in hosts])
    wanted = np.isin(arrays.numbers(exchanges, "stream"), all_of.number[from_hosts])
    wanted &= ~arrays.equals(exchanges, "protocol", SETUP)
    begin, end = arrays.filled(exchanges, "request_end", 0), arrays.filled(exchanges, "end", 0)
    rows = np.flatnonzero(wanted & (end - begin >= LIMITS["setup_ms"] * NS_PER_MS))[:MAX_OPENINGS]
    stream = arrays.numbers(exchanges, "stream")
    return [(int(begin[row]), int(end[row]), all_of.ends(int(stream[row]))) for row in rows.tolist()]


def _client_pauses(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find unanswered SYNs of a client that paused towards another server until it gave the SYNs up."""
    import numpy as np

    exchanges = tables["exchanges"]
    mute = [(one, ends) for one, ends in opened if one.answered is None and one.refused is None and len(one.syns) > 1]
    if not mute or not exchanges.num_rows:
        return []
    causes = tables["causes"]
    own = np.flatnonzero(arrays.equals(causes, "cause", "client_think"))
    place = spill.places(arrays.numbers(exchanges, "exchange"), arrays.numbers(causes, "exchange")[own])
    thought = np.bincount(place, arrays.numbers(causes, "duration_ms")[own], exchanges.num_rows)
    rows = np.flatnonzero(thought >= LIMITS["setup_ms"])[:MAX_OPENINGS]
    start, end = (arrays.filled(exchanges, name, 0)[rows].tolist() for name in ("start", "end"))
    stream = arrays.numbers(exchanges, "stream")[rows].tolist()
    spans = zip(stream, start, end, thought[rows].tolist(), strict=True)
    client_pauses = [(all_of.ends(number), since, ended, ms) for number, since, ended, ms in spans]
    cases = []
    for one, ends in mute:
        for waiting, since, ended, ms in client_pauses:
            inside = waiting.client == ends.client and since <= one.syns[0] and one.syns[-1] < ended
            waited = (ended - one.syns[0]) / NS_PER_MS
            if inside and waiting.server != ends.server and REASON_SHARE * waited <= ms <= waited / REASON_SHARE:
                cases.append(LateOpening("client_onward", one, ends, min(ms, waited), (waiting,)))
                break
    return cases


def _client_idle(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Find SYNs to a dead host, sent after an answer, whose client was idle meanwhile and went on when it gave up."""
    import numpy as np

    exchanges, alive = tables["exchanges"], {int(code) for code in np.unique(all_of.server_code[all_of.answers > 0])}
    mute = [
        (one, ends) for one, ends in opened
        if one.answered is None and one.refused is None and len(one.syns) > FEW
        and all_of.servers.index(ends.server) not in alive
    ]  # fmt: skip
    if not mute or not exchanges.num_rows or len(mute) > FEW * ENOUGH * ENOUGH:
        return []
    place = spill.places(all_of.number, arrays.numbers(exchanges, "stream"))
    client_of = np.where(~arrays.equals(exchanges, "protocol", SETUP), all_of.client_code[place], -1)
    start, end = arrays.numbers(exchanges, "start"), arrays.filled(exchanges, "end", 0)
    cases = []
    for client in {ends.client for _, ends in mute}:
        code = all_of.clients.index(client)
        rows_of_client, streams = np.flatnonzero(client_of == code), np.flatnonzero(all_of.client_code == code)
        dead = {one.stream for one, ends in mute if ends.client == client}
        others = [at for at in streams.tolist() if int(all_of.number[at]) not in dead]
        begins = [(int(start[row]), int(place[row])) for row in rows_of_client.tolist()]
        begins += [(int(t), at) for at in others for t in (all_of.start[at], all_of.end[at])]
        acts = sorted(begins)
        times = [time for time, _ in acts]
        answers = sorted((int(end[row]), int(place[row])) for row in rows_of_client.tolist() if end[row] > 0)
        known = [time for time, _ in answers]
        for one, ends in mute:
            if ends.client != client:
                continue
            before = bisect_right(known, one.syns[0]) - 1
            after = bisect_left(times, one.syns[1])  # before its second SYN it may close older connections
            led = before >= 0 and one.syns[0] - known[before] <= BEFORE_NS
            is_idle = after < len(times) and one.syns[-1] <= times[after] <= one.syns[-1] + _patience(one)
            if led and is_idle:
                origin = all_of.ends(int(all_of.number[answers[before][1]]))
                cases.append(
                    LateOpening("connect_dead", one, ends, (times[after] - one.syns[0]) / NS_PER_MS, (origin,))
                )
    return cases


SEARCHES = (
    _tunnel, _answered_elsewhere, _server_waits, _client_pauses, _another_address, _client_idle, _old_time_stamp,
    _challenged, _ecn, _greeting,
)  # fmt: skip
"""The searches; an opening belongs to the first that finds it."""


def _finding(cases: list[LateOpening], all_of: Streams) -> Finding:
    cases.sort(key=lambda case: case.waited_ms)
    worst = cases[-1]
    one, ends = worst.opened, worst.ends
    certain = len(cases) >= ENOUGH or worst.sentence in ("syn_other_address", "data_other_address")
    certain |= worst.sentence in ("greeting_late", "greeting_partial", "ftp_active")
    certain |= worst.sentence in ("family_dead", "family_refused") and len(cases) >= FEW
    sure = SEEN if certain else LIKELY
    other: Ends | None = worst.extra[0] if worst.extra else None
    harm: Harmful = "never" if worst.sentence in NEVER and one.answered is None else "late"
    harm = "never" if worst.sentence == "data_other_address" else harm
    frames = [one.frames[0], *one.frames[-1:]]
    if worst.extra[1:]:
        frames = [one.frames[0], worst.extra[1]]
    elif one.answer_frame is not None:
        frames.append(one.answer_frame)
    values = {
        "n": len(cases), "of": all_of.count(ends.to), "span_ms": (cases[0].waited_ms, worst.waited_ms),
        "longest_ms": worst.waited_ms, "server": endpoint(*ends.to), "address": ends.server, "family": ends.family,
        "repeats": len(one.syns),
        "other": endpoint(*other.to) if other else "", "other_address": other.server if other else "",
        "other_family": other.family if other else "", "client": ends.client,
        "came": words.say(worst.extra[2]) if worst.extra[2:] else "",
    }  # fmt: skip
    return Finding(
        kind="wait", server=ends.server, server_port=ends.server_port, cause=worst.sentence,
        owner=OWNERS[worst.sentence], clients=len({case.ends.client for case in cases}), client=ends.client,
        streams=len(cases), of_streams=max(all_of.count(ends.to), len(cases)),
        total_ms=sum(case.waited_ms for case in cases), median_ms=cases[len(cases) // 2].waited_ms,
        max_ms=worst.waited_ms, harm=harm, confidence=sure,
        worst_stream=one.stream, worst_ms=worst.waited_ms, worst_frames=tuple(dict.fromkeys(frames)),
        sentence=worst.sentence, values=values,
    )  # fmt: skip


def before_asking(tables: Mapping[str, pa.Table], known: Set[int] = frozenset()) -> list[Finding]:
    """Find connects that waited for a repeated SYN, late first requests, and requests held by a cork; by server.

    `known`: streams with a better reason for the repeated SYN (`find`).
    """
    streams, exchanges = tables["streams"], tables["exchanges"]
    columns = ["server", "server_port", "client", "protocol", "server_packets", "client_unseen_frames"]
    groups: dict[tuple[str, str, int], list[tuple[float, int, int, int, str]]] = defaultdict(list)
    number, stream = arrays.numbers(exchanges, "exchange"), arrays.numbers(exchanges, "stream")
    frame = arrays.numbers(exchanges, "request_first_frame")
    for cause, late_rows in _late(exchanges).items():
        ms = arrays.numbers(exchanges, f"{cause}_ms")
        ends = arrays.looked_up(streams, "stream", stream[late_rows], columns)
        for row, (server, port, client, protocol, answers, lost) in zip(late_rows.tolist(), ends, strict=True):
            if cause == "syn_rto" and int(stream[row]) in known:
                continue
            if not answers or (cause == "client_think" and "client_first" not in PROTOCOLS.get(protocol, ())):
                continue
            if cause == "client_think" and lost:  # the client may have sent an earlier copy that was lost
                continue
            opening = (float(ms[row]), int(stream[row]), int(number[row]), int(frame[row]), client)
            groups[cause, server, port].append(opening)
    order = sorted(groups.items(), key=lambda g: (g[0][0] != "syn_rto", -max(g[1])[0]))
    return [_before(*key, seen) for key, seen in order]


def _late(exchanges: pa.Table) -> dict[str, Array]:
    """Return by cause the rows that are no requests and have enough of the cause's time."""
    import numpy as np

    rows_by_cause: dict[str, list[Array]] = {cause: [] for cause in ROWS}
    for span, rows in arrays.sliced(exchanges):
        protocol, names = arrays.codes(rows, "protocol")
        if SETUP not in names:
            continue
        before = protocol == names.index(SETUP)
        for cause, places in rows_by_cause.items():
            of_kind = arrays.equals(rows, "method", ROWS[cause])
            late = arrays.numbers(rows, f"{cause}_ms") >= LIMITS["setup_ms"]
            places.append(np.flatnonzero(before & of_kind & late) + span.start)
    return {cause: np.concatenate(places) for cause, places in rows_by_cause.items() if places}


class Pauses(TypedDict):
    """The number and the median length of clients' pauses between requests."""

    count: int
    median_ms: float


def pauses(tables: Mapping[str, pa.Table], server: str, port: int) -> Pauses:
    """Return the pauses of this server's clients between their requests."""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    method, methods = arrays.codes(exchanges, "method")
    ms = arrays.numbers(exchanges, "client_think_ms")
    rows = (
        np.flatnonzero((method == methods.index("pause")) & (ms > 0)) if "pause" in methods else np.zeros(0, np.int64)
    )
    if not len(rows):
        return {"count": 0, "median_ms": 0.0}
    is_server = arrays.equals(streams, "server", server)
    streams_of_server = arrays.numbers(streams, "stream")[is_server & (arrays.numbers(streams, "server_port") == port)]
    latencies = np.sort(ms[rows][np.isin(arrays.numbers(exchanges, "stream")[rows], streams_of_server)])
    return {"count": len(latencies), "median_ms": arrays.percentile(latencies, 0.5) if len(latencies) else 0.0}


def _before(cause: str, server: str, port: int, seen: list[tuple[float, int, int, int, str]]) -> Finding:
    seen.sort()
    times = [s[0] for s in seen]
    worst, typical = seen[-1], seen[len(seen) // 2]
    streams = len({s[1] for s in seen})
    return Finding(
        kind="setup", server=server, server_port=port, cause=cause,
        owner="network" if cause == "syn_rto" else "client",
        clients=len({s[4] for s in seen}), client=worst[4], streams=streams, exchanges=0,
        total_ms=sum(times), median_ms=typical[0], max_ms=worst[0],
        worst_exchange=worst[2], worst_stream=worst[1], worst_ms=worst[0], worst_frames=(worst[3],),
        typical_exchange=typical[2], typical_stream=typical[1], typical_ms=typical[0],
        typical_frames=(typical[3],), fix=words.fix_of(cause),
        filter=wireshark_filter(typical[1], typical[3]),
        sentence=f"setup_{cause}", values={"n": streams, "span_ms": (times[0], times[-1])},
    )  # fmt: skip
