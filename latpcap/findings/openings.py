"""What happened in front of a connection's first byte? How connections began in; findings out.

An address family that nobody answers on, an address that refuses and another that does not, SYNs that meet a
connection of before, that are dropped for what they offer or for their time stamps, that reach a host whose accept
queue is full, or whose answer comes from another address; a server that greets late. SYNs that nobody answers while a
client waits for the host that sends them, or while the host that sends them does nothing else.

Also what took time before the first request: a lost SYN where there is no better reason (`before_asking`), a client
that sent its request late, a cork. That time belongs to no request: nobody waited for an answer. But who opens a
connection waits for it, and the capture shows the pause: it has an owner too, which is not the server's program.
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

MOST = 20_000
"""So many beginnings that took long are looked at."""
GREETING_MS = 300.0
"""A server that speaks first does so at once: what its program does before is its start, or a lookup."""
MOSTLY = 0.75
"""Of a wait, what takes this share is its reason."""
BEFORE_NS = 1_000_000_000
"""What a client does because of an answer it does within this."""
FTP = 21
ANSWERED_NS, STRAY_NS = 1_000_000_000, 5_000_000_000
"""An answer from elsewhere belongs to the last SYN for so long, a segment from elsewhere to a connection that went
quiet for so long: a SYN's first timer (RFC 6298 2.1), and some repeats of a segment."""
SEEN_THERE = 4
"""So many connections seen at the server for each that seems to be seen elsewhere."""
FORWARDED_NS = 50_000_000
"""A packet that is translated leaves the host again within this."""
STAMPS = 1 << 32
"""TCP's time stamps wrap here: RFC 7323 5.5."""
FEW, ENOUGH = 2, 3
"""So many alike are no accident; so many, with no exception, prove the rule."""


@dataclass(frozen=True)
class LateOpening:
    """One beginning that took long, or never came to an end."""

    sentence: str
    opened: Opened
    ends: Ends
    waited_ms: float
    extra: tuple[Any, ...] = ()


def found(tables: Mapping[str, pa.Table], busy: Collection[str] = ()) -> tuple[list[Finding], set[int]]:
    """The findings, and the streams whose SYNs they explain. `busy`: servers that work on a few requests at a time."""
    events = segments(tables)
    if events is None:
        return [], set()
    rows, streams = events.opens.by_stream(), tables["streams"]
    which = late(rows, LIMITS["setup_ms"])[:MOST]
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
    cases += _queue([(one, ends) for one, ends in opened if one.stream not in known], all_of, busy)
    reasons = {case.extra[0] for case in cases if case.sentence == "callback_dead"}
    cases = [case for case in cases if case.sentence != "greeting_late" or case.ends not in reasons]
    cases += _moved(all_of, {case.opened.stream for case in cases})
    groups: dict[tuple[str, str, int], list[LateOpening]] = defaultdict(list)
    for case in cases:
        groups[case.sentence, *case.ends.to].append(case)
    return [_finding(mine, all_of) for mine in groups.values()], {case.opened.stream for case in cases}


def _strays(rows: dict[str, Array]) -> Array:
    """Which streams begin with something else than a client's SYN, and have a RST? Their edges in `rows`."""
    import numpy as np

    stream, bits = rows["stream"], rows["bits"]
    if not len(stream):
        return np.zeros(0, bool)
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1]])
    rst = np.maximum.reduceat((bits & RST != 0).astype(np.int8), edges)
    no_syn = bits[edges] & (SYN | ACK | CLIENT) != (SYN | CLIENT)
    found_: Array = np.zeros(len(stream), bool)
    found_[edges] = no_syn & ((rst > 0) | (bits[edges] & (SYN | ACK) == (SYN | ACK)))
    return found_


Opening = tuple[Opened, Ends]


def _elsewhere(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs whose answer came from an address that got no SYN."""
    import numpy as np

    rows = all_of.rows
    first = np.flatnonzero(_strays(rows) & (rows["bits"] & (SYN | ACK) == (SYN | ACK)))
    from_ = {}
    for at in first.tolist():
        number = int(rows["stream"][at])
        ends = all_of.ends(number)
        from_[ends.client, ends.client_port] = (ends, int(rows["time"][at]), int(rows["frame"][at]))
    for one, ends in _rejected(opened, all_of):
        from_.setdefault((ends.client, ends.client_port), (ends, one.answered or 0, one.answer_frame or 0))
    cases = []
    for one, ends in opened:
        answer = from_.get((ends.client, ends.client_port))
        if answer is None or one.answered is not None or answer[0].server == ends.server:
            continue
        if 0 <= answer[1] - one.syns[0] <= ends.end - one.syns[0] + ANSWERED_NS:
            waited = (ends.end - one.syns[0]) / NS_PER_MS
            cases.append(LateOpening("syn_other_address", one, ends, waited, (answer[0], answer[2])))
    return cases


def _rejected(opened: Sequence[Opening], all_of: Streams) -> list[Opening]:
    """Connections from a port with an unanswered SYN, whose SYN-ACK the client answered with RST: where the capture has
    both copies, before and behind the NAT, the client's kernel knows only the first address.
    """
    import numpy as np

    unanswered = {(ends.client, ends.client_port): one for one, ends in opened if one.answered is None}
    reset = arrays.equals(all_of.streams, "closed_by", "client_rst")
    which = np.flatnonzero(reset & (all_of.code & Completeness.DATA == 0) & (all_of.answers > 0))
    ports = {port for _, port in unanswered}
    rows = [at for at in which[:MOST].tolist() if int(all_of.client_port[at]) in ports]
    cases = []
    for other in begun(all_of.rows, all_of.number[rows]) if rows else []:
        ends = all_of.ends(other.stream)
        one = unanswered.get((ends.client, ends.client_port))
        # the same SYN: its time stamp, and a moment later
        if one is None or not other.answered or one.stamps[0] != other.stamps[0]:
            continue
        if 0 <= other.syns[0] - one.syns[0] <= FORWARDED_NS:
            cases.append((other, ends))
    return cases


def _moved(all_of: Streams, known: set[int]) -> list[LateOpening]:
    """Segments of a connection that came from an address that got no SYN, and that the client answered with RST."""
    import numpy as np

    rows = all_of.rows
    first = np.flatnonzero(_strays(rows) & (rows["bits"] & SYN == 0))
    if not len(first) or len(first) > MOST:
        return []
    here: dict[tuple[str, int], list[int]] = defaultdict(list)
    for at in range(len(all_of.number)):
        here[all_of.clients[int(all_of.client_code[at])], int(all_of.client_port[at])].append(at)
    cases = []
    for at in first.tolist():
        number = int(rows["stream"][at])
        ends = all_of.ends(number)
        for mine, other in ((ends.client, ends.server), (ends.server, ends.client)):
            port = ends.client_port if mine == ends.client else ends.server_port
            for place in here.get((mine, port), ()):
                stream = int(all_of.number[place])
                begun_ = (
                    int(all_of.start[place])
                    < int(all_of.start[all_of.place[number]])
                    <= int(all_of.end[place]) + STRAY_NS
                )
                same = all_of.ends(stream)
                if stream == number or stream in known or not begun_ or same.server == other:
                    continue
                if not all_of.answers[place] or not all_of.code[place] & Completeness.DATA:
                    continue
                until = max(int(all_of.end[place]), int(all_of.end[all_of.place[number]]))
                waited = (until - int(all_of.start[all_of.place[number]])) / NS_PER_MS
                opened = begun(rows, np.array([stream]))
                if opened:
                    stray = Ends(
                        mine, port, other, ends.server_port if mine == ends.client else ends.client_port, None, 0
                    )
                    case = LateOpening("data_other_address", opened[0], same, waited, (stray, int(rows["frame"][at])))
                    cases.append(case)
                    known.add(stream)
    return cases


def _instead(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Addresses that did not answer, or refused, before the same client connected to another one on the same port."""
    names = names_of(tables["lookups"]) if "lookups" in tables else {}
    cases = []
    for one, ends, begin, other, _ in instead(opened, all_of, names):
        of = "address" if ends.family == other.family else "family"
        how = "refused" if one.refused is not None else "dead"
        cases.append(LateOpening(f"{of}_{how}", one, ends, (begin - one.syns[0]) / NS_PER_MS, (other,)))
    return cases


def _tunnel(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs that went through a tunnel with a wrong outer checksum, and were not answered until they came again."""
    code, texts = arrays.codes(tables["issues"], "code")
    if "tunnel_checksum" not in texts:
        return []
    [row] = (
        tables["issues"]
        .select(["frame", "last_frame"])
        .slice(int((code == texts.index("tunnel_checksum")).argmax()), 1)
        .to_pylist()
    )
    cases = []
    for one, ends in opened:
        if len(one.syns) > 1 and row["frame"] <= one.frames[0] <= row["last_frame"]:
            until = one.answered or one.syns[-1]
            cases.append(LateOpening("tunnel_checksum", one, ends, (until - one.syns[0]) / NS_PER_MS))
    return cases


def _paws(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs that a server leaves unanswered whose time stamps are older than those of others from the same address."""
    groups: dict[tuple[str, tuple[str, int]], list[Opening]] = defaultdict(list)
    for one, ends in opened:
        if (one.answered is None or len(one.syns) > 1) and one.stamps[0] >= 0:
            groups[ends.client, ends.to].append((one, ends))
    cases = []
    for (client, server), mine in groups.items():
        if len(mine) < FEW:
            continue
        syns = sorted(
            (time, stamp, one.answered is not None and time == one.syns[-1], one.stream)
            for one in begun(all_of.rows, all_of.to(server, client))
            for time, stamp in zip(one.syns, one.stamps, strict=True)
            if stamp >= 0
        )
        newest, dropped, passed, against = -1, set(), 0, 0
        for _time, stamp, answered, stream in syns:
            old = newest >= 0 and 0 < (newest - stamp) % STAMPS < STAMPS // 2
            if answered:
                passed, against = passed + (not old and newest >= 0), against + old
                newest = stamp if not old else newest
            elif old:
                dropped.add(stream)
            else:
                against += 1
        if len(dropped) >= FEW and passed >= FEW and not against:
            for one, ends in mine:
                if one.stream in dropped:
                    until = one.answered or one.syns[-1]
                    cases.append(LateOpening("syn_old_stamp", one, ends, (until - one.syns[0]) / NS_PER_MS))
    return cases


def _challenged(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs that were answered for a connection of before: the client sent a RST, and the SYN again."""
    return [
        LateOpening("syn_challenged", one, ends, (one.answered - one.syns[0]) / NS_PER_MS)
        for one, ends in opened
        if one.answered is not None and one.gave_up is not None and len(one.syns) > 1 and one.gave_up < one.syns[-1]
    ]


def _ecn(opened: Sequence[Opening], all_of: Streams, _: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs that offer ECN and are never answered, while their repeats without it are."""
    groups: dict[tuple[str, int], list[Opening]] = defaultdict(list)
    for one, ends in opened:
        if one.answered is not None and one.ecn[0] and not one.ecn[-1]:
            groups[ends.to].append((one, ends))
    cases = []
    for server, mine in groups.items():
        every = begun(all_of.rows, all_of.to(server))
        if len(mine) < FEW or any(one.answered is not None and one.ecn[-1] for one in every):
            continue  # one that was answered passed: then these were lost
        for one, ends in mine:
            cases.append(LateOpening("syn_ecn", one, ends, ((one.answered or 0) - one.syns[0]) / NS_PER_MS))
    return cases


def _queue(opened: Sequence[Opening], all_of: Streams, busy: Collection[str]) -> list[LateOpening]:
    """SYNs that came to the server's own host, or near it while requests wait there for each other: it answered them
    only when they came again.
    """
    cases = []
    at_server: dict[tuple[str, int], bool] = {}
    for one, ends in opened:
        if one.answered is None or len(one.syns) < FEW or one.ecn[0] != one.ecn[-1]:
            continue
        if ends.to not in at_server:
            texts = Counter(all_of.ends(int(number)).position for number in all_of.to(ends.to)[:MOST])
            near = texts["at_server"] > 0 or endpoint(*ends.to) in busy
            # (an ACK that was dropped with the SYN makes a handshake look as if it were seen between)
            others = texts["at_client"] + texts["between"]
            at_server[ends.to] = near and (not others or texts["at_server"] >= SEEN_THERE * others)
        if at_server[ends.to]:
            cases.append(LateOpening("syn_queue_full", one, ends, (one.answered - one.syns[0]) / NS_PER_MS))
    often = Counter(case.ends.to for case in cases)
    # one alone may have another reason, unless requests wait there for each other
    return [case for case in cases if often[case.ends.to] >= FEW or endpoint(*case.ends.to) in busy]


def _greeting(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """Servers that speak first, and whose greeting was whole long after the handshake."""
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
            there = Ends(name.client, name.port, name.server, name.server_port, None, name.start)
            came = "reverse_never" if name.end is None else "reverse_late"
            cases.append(LateOpening("greeting_reverse", one, ends, waited, (there, name.frame, came)))
        else:
            partly = one.spoke - one.answered < (1 - MOSTLY) * (one.greeted - one.answered)
            cases.append(LateOpening("greeting_partial" if partly else "greeting_late", one, ends, waited))
    return cases


def _looked_up(known_names: Sequence[Question], begin: int, end: int) -> Question | None:
    """The first of these lookups in this time, where they took most of it."""
    mine = [q for q in known_names if begin <= q.start <= end]
    if not mine:
        return None
    known = max((q.end for q in mine if q.end is not None), default=end) if mine[-1].end is not None else end
    return mine[0] if min(known, end) - mine[0].start >= MOSTLY * (end - begin) else None


def _meanwhile(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs of a server that nobody answers, while a client waits for an answer of that server, or for its greeting: to
    that client (FTP's active mode, ident, a callback), or to another host that it needs.
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
            whole = one.syns[-1] < end <= until and end - one.syns[0] >= MOSTLY * (end - start)
            if waiting.server != ends.client or not whole:
                continue
            word = "onward_dead"
            if waiting.client == ends.server:
                word = "ftp_active" if waiting.server_port == FTP else "callback_dead"
            cases.append(LateOpening(word, one, ends, (end - one.syns[0]) / NS_PER_MS, (waiting,)))
            break
    return cases


def _patience(one: Opened) -> int:
    """How long after its last SYN may who sent these SYNs have waited? Less than until the next one, in ns."""
    return 2 * (one.syns[-1] - one.syns[-2]) + ANSWERED_NS


def _waits(hosts: Set[str], all_of: Streams, exchanges: pa.Table) -> list[tuple[int, int, Ends]]:
    """When requests to these hosts waited long for the end of their answers."""
    import numpy as np

    if not exchanges.num_rows:
        return []
    mine = np.isin(all_of.server_code, [all_of.servers.index(host) for host in hosts])
    wanted = np.isin(arrays.numbers(exchanges, "stream"), all_of.number[mine])
    wanted &= ~arrays.equals(exchanges, "protocol", SETUP)
    begin, end = arrays.filled(exchanges, "request_end", 0), arrays.filled(exchanges, "end", 0)
    rows = np.flatnonzero(wanted & (end - begin >= LIMITS["setup_ms"] * NS_PER_MS))[:MOST]
    stream = arrays.numbers(exchanges, "stream")
    return [
        (int(begin[row]), int(end[row]), all_of.ends(int(stream[row]))) for row in rows.tolist()
    ]  # fmt: skip


def _held_by_client(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs that nobody answers, of a client that meanwhile keeps another server waiting, until it gives up."""
    import numpy as np

    exchanges = tables["exchanges"]
    mute = [(one, ends) for one, ends in opened if one.answered is None and one.refused is None and len(one.syns) > 1]
    if not mute or not exchanges.num_rows:
        return []
    causes = tables["causes"]
    own = np.flatnonzero(arrays.equals(causes, "cause", "client_think"))
    place = spill.places(arrays.numbers(exchanges, "exchange"), arrays.numbers(causes, "exchange")[own])
    thought = np.bincount(place, arrays.numbers(causes, "duration_ms")[own], exchanges.num_rows)
    rows = np.flatnonzero(thought >= LIMITS["setup_ms"])[:MOST]
    start, end = (arrays.filled(exchanges, name, 0)[rows].tolist() for name in ("start", "end"))
    stream = arrays.numbers(exchanges, "stream")[rows].tolist()
    spans = zip(stream, start, end, thought[rows].tolist(), strict=True)
    kept_waiting = [(all_of.ends(number), since, ended, ms) for number, since, ended, ms in spans]
    cases = []
    for one, ends in mute:
        for waiting, since, ended, ms in kept_waiting:
            inside = waiting.client == ends.client and since <= one.syns[0] and one.syns[-1] < ended
            waited = (ended - one.syns[0]) / NS_PER_MS
            if inside and waiting.server != ends.server and MOSTLY * waited <= ms <= waited / MOSTLY:
                cases.append(LateOpening("client_onward", one, ends, min(ms, waited), (waiting,)))
                break
    return cases


def _nothing_else(opened: Sequence[Opening], all_of: Streams, tables: Mapping[str, pa.Table]) -> list[LateOpening]:
    """SYNs to a host that answers nothing, of a client that came there from an answer, did nothing else meanwhile, and
    went on when it gave up.
    """
    import numpy as np

    exchanges, alive = tables["exchanges"], {int(code) for code in np.unique(all_of.server_code[all_of.answers > 0])}
    mute = [
        (one, ends) for one, ends in opened
        if one.answered is None and one.refused is None and len(one.syns) > FEW
        and all_of.servers.index(ends.server) not in alive
    ]  # fmt: skip
    if not mute or not exchanges.num_rows or len(mute) > FEW * ENOUGH * ENOUGH:
        return []
    clients = {ends.client for _, ends in mute}
    place = spill.places(all_of.number, arrays.numbers(exchanges, "stream"))
    who = np.where(~arrays.equals(exchanges, "protocol", SETUP), all_of.client_code[place], -1)
    start, end = arrays.numbers(exchanges, "start"), arrays.filled(exchanges, "end", 0)
    cases = []
    for client in clients:
        code = all_of.clients.index(client)
        mine, streams = np.flatnonzero(who == code), np.flatnonzero(all_of.client_code == code)
        dead = {one.stream for one, ends in mute if ends.client == client}
        others = [at for at in streams.tolist() if int(all_of.number[at]) not in dead]
        begins = [(int(start[row]), int(place[row])) for row in mine.tolist()]
        begins += [(int(t), at) for at in others for t in (all_of.start[at], all_of.end[at])]
        acts = sorted(begins)
        times = [time for time, _ in acts]
        answers = sorted((int(end[row]), int(place[row])) for row in mine.tolist() if end[row] > 0)
        known = [time for time, _ in answers]
        for one, ends in mute:
            if ends.client != client:
                continue
            before = bisect_right(known, one.syns[0]) - 1
            after = bisect_left(times, one.syns[1])  # until then it may have closed what came before
            led = before >= 0 and one.syns[0] - known[before] <= BEFORE_NS
            alone = after < len(times) and one.syns[-1] <= times[after] <= one.syns[-1] + _patience(one)
            if led and alone:
                there = all_of.ends(int(all_of.number[answers[before][1]]))
                cases.append(LateOpening("connect_dead", one, ends, (times[after] - one.syns[0]) / NS_PER_MS, (there,)))
    return cases


SEARCHES = (
    _tunnel, _elsewhere, _meanwhile, _held_by_client, _instead, _nothing_else, _paws, _challenged, _ecn, _greeting,
)  # fmt: skip
"""What a beginning may be a case of; the first that knows it."""
NEVER = ("syn_other_address", "data_other_address", "syn_old_stamp")
"""What of these did not get through in the end."""
OWNERS = {
    "syn_other_address": "network", "data_other_address": "network", "family_dead": "network",
    "address_dead": "network", "family_refused": "client", "address_refused": "client", "syn_old_stamp": "server",
    "syn_challenged": "client", "syn_ecn": "network", "tunnel_checksum": "network", "syn_queue_full": "server",
    "greeting_late": "server", "greeting_partial": "server", "greeting_reverse": "dns", "onward_dead": "network",
    "callback_dead": "network", "ftp_active": "network", "connect_dead": "network",
    "client_onward": "network",
}  # fmt: skip


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


ROWS = {"syn_rto": "connect", "client_think": "connect", "cork": "pause"}
"""Of which rows beside the requests each of them is."""


def before_asking(tables: Mapping[str, pa.Table], known: Set[int] = frozenset()) -> list[Finding]:
    """Set-ups that waited for a repeated SYN, those whose client sent its request late, and requests that a cork held;
    by server, the longest first. Of the streams `known` there is a better reason why a SYN was sent again.
    """
    streams, exchanges = tables["streams"], tables["exchanges"]
    columns = ["server", "server_port", "client", "protocol", "server_packets", "client_unseen_frames"]
    groups: dict[tuple[str, str, int], list[tuple[float, int, int, int, str]]] = defaultdict(list)
    number, stream = arrays.numbers(exchanges, "exchange"), arrays.numbers(exchanges, "stream")
    frame = arrays.numbers(exchanges, "request_first_frame")
    for cause, mine in _late(exchanges).items():
        ms = arrays.numbers(exchanges, f"{cause}_ms")
        ends = arrays.looked_up(streams, "stream", stream[mine], columns)
        for row, (server, port, client, spoken, answers, lost) in zip(mine.tolist(), ends, strict=True):
            if cause == "syn_rto" and int(stream[row]) in known:
                continue
            if not answers or (cause == "client_think" and "client_first" not in PROTOCOLS.get(spoken, ())):
                continue
            if cause == "client_think" and lost:  # it may have sent it before, and the request was lost
                continue
            found = (float(ms[row]), int(stream[row]), int(number[row]), int(frame[row]), client)
            groups[cause, server, port].append(found)
    order = sorted(groups.items(), key=lambda g: (g[0][0] != "syn_rto", -max(g[1])[0]))
    return [_before(*key, seen) for key, seen in order]


def _late(exchanges: pa.Table) -> dict[str, Array]:
    """The rows that are no requests and have enough of a cause's time, by cause."""
    import numpy as np

    found: dict[str, list[Array]] = {cause: [] for cause in ROWS}
    for span, rows in arrays.sliced(exchanges):
        protocol, names = arrays.codes(rows, "protocol")
        if SETUP not in names:
            continue
        before = protocol == names.index(SETUP)
        for cause, places in found.items():
            of_kind = arrays.equals(rows, "method", ROWS[cause])
            late = arrays.numbers(rows, f"{cause}_ms") >= LIMITS["setup_ms"]
            places.append(np.flatnonzero(before & of_kind & late) + span.start)
    return {cause: np.concatenate(places) for cause, places in found.items() if places}


class Pauses(TypedDict):
    """How often, and how long at the median, clients paused between their requests."""

    count: int
    median_ms: float


def pauses(tables: Mapping[str, pa.Table], server: str, port: int) -> Pauses:
    """How often, and how long at the median (ms), did this server's clients pause between their requests?"""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    method, methods = arrays.codes(exchanges, "method")
    ms = arrays.numbers(exchanges, "client_think_ms")
    rows = (
        np.flatnonzero((method == methods.index("pause")) & (ms > 0)) if "pause" in methods else np.zeros(0, np.int64)
    )
    if not len(rows):
        return {"count": 0, "median_ms": 0.0}
    here = arrays.equals(streams, "server", server)
    mine = arrays.numbers(streams, "stream")[here & (arrays.numbers(streams, "server_port") == port)]
    found = np.sort(ms[rows][np.isin(arrays.numbers(exchanges, "stream")[rows], mine)])
    return {"count": len(found), "median_ms": arrays.percentile(found, 0.5) if len(found) else 0.0}


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
