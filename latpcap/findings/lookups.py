"""Was it DNS, and what of it? Lookups of names in; findings out: a name server that does not answer, answers that were
lost, a slow one, names of a search list; and a few numbers with a sentence, whether it is DNS or not.

Each is a fact of the questions and their answers. What a resolver waits before it asks again is its own timer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from latpcap import arrays, spill
from latpcap.findings.schema import Finding, Harmful
from latpcap.format import printable
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits import lookups as asking
from latpcap.user_waits import services
from latpcap.user_waits.cause_totals import endpoint
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
from latpcap.words import joined, say

if TYPE_CHECKING:
    import pyarrow as pa


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
        waited, then = (end - q.start) / NS_PER_MS, (end - known) / NS_PER_MS if known > q.start else 0.0
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
    """Hosts on the link that answered only a repeated request: what is sent to them waits meanwhile. One that
    never answers may not be there, and nobody may miss it.
    """
    groups: dict[tuple[str, str], list[tuple[float, Question]]] = defaultdict(list)
    for q in questions:
        waited = 0.0 if q.end is None else (q.end - q.start) / NS_PER_MS
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
    """Servers of other services over UDP that answered late, never or with errors, by reason, service and server."""
    groups: dict[tuple[str, str, str], list[services.ServiceWait]] = defaultdict(list)
    rows = questions(tables["lookups"])
    for case in services.late(rows, tables["streams"]).values():
        groups[case.reason, case.question.kind, case.question.server].append(case)
    late = [_service_finding(sorted(cases, key=lambda case: case.waited_ms)) for cases in groups.values()]
    return late + [_failure_finding(failure) for failure in services.failed(rows)]


def _failure_finding(failure: services.Failure) -> Finding:
    first, *_ = found = failure.questions
    took = sorted(((q.end or q.start) - q.start) / NS_PER_MS for q in found)
    frames = tuple(frame for frame in (first.frame, first.answer) if frame is not None)
    values = {
        "protocol": first.kind, "server": endpoint(first.server, first.server_port), "n": len(found),
        "of": failure.of, "status": printable(first.status or ""), "frame": first.frame,
    }  # fmt: skip
    return Finding(
        kind="wait", server=first.server, server_port=first.server_port, cause="datagram_failed", owner="server",
        clients=len({q.client for q in found}), client=first.client, exchanges=len(found), of_exchanges=failure.of,
        total_ms=sum(took), median_ms=took[len(took) // 2], max_ms=took[-1], worst_ms=took[-1],
        harm="never" if first.kind in services.ADMIT else "late",
        worst_frames=frames, filter=f"frame.number in {{{', '.join(map(str, frames))}}}", sentence="datagram_failed",
        values=values,
    )  # fmt: skip


def _service_finding(cases: list[services.ServiceWait]) -> Finding:
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
    others = [((q.end or 0) - q.start) / NS_PER_MS for q in answers]
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


def line(dns: Lookups, late: bool) -> str:
    """Is it DNS? A sentence either way; `late`: a finding names a wait for a name."""
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
    nothing = not rest and not late and dns["max_ms"] < LIMITS["slow_ms"]
    return say("dns_is_not_it", took=took) if nothing else joined([took, rest])
