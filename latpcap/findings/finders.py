"""Run all finders over a capture.

Reads the tables of one capture and returns one table. Its rows are in the order of `FINDERS`: floods of SYNs, the
causes of the requests' time, other waits, connections, then socket options that nobody waited for. Only tables are
read, so that stored results give the same rows as a capture in memory. To add a finder, append it to `FINDERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from latpcap import words
from latpcap.findings import (
    brokers,
    connections,
    latency,
    lookups,
    openings,
    pushes,
    quality,
    queues,
    retries,
    round_trips,
    sessions,
    silence,
    socket_options,
    transfers,
    uploads,
)
from latpcap.findings.schema import Finding, schema
from latpcap.findings.search import Search
from latpcap.findings.tables import pushes_of, with_stretches
from latpcap.lazy import pa
from latpcap.user_waits import cause_totals


def table(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the findings of a capture as a table with the columns of `schema()`, in the order of `FINDERS`.

    `tables` maps "streams", "exchanges", "causes", "evidence" and "issues" to the tables of one capture (or of one of
    its streams). Optional tables and what needs them: "connects" and "gaps" (waits before requests), "pushes" with
    "gaps" (unrequested messages), "events" (harmless delayed ACKs, silent peers), "probes" (SYNs answered by ICMP),
    "lookups" (DNS), "transfers" (downloads and uploads). Raises KeyError if one of the five is missing.
    """
    return pa.Table.from_pylist([finding.to_dict() for finding in rows(tables)], schema=schema())


def _latency(search: Search) -> Iterator[Finding]:
    for server in search.main_servers:
        evidence = search.evidence.get((server.address, server.port), [])
        yield from latency.find(server, search.totals, search.tables, evidence, search.checks)
        queue = queues.find(server, search.totals.spent(server), search.tables)
        if queue is not None:
            yield queues.finding(queue, server)


def _pushes(search: Search) -> list[Finding]:
    if search.pushed is None:
        return []
    tables, slow_ms = search.tables, search.totals.slow_ms
    return pushes.find(search.pushed, tables["streams"], search.evidence, search.checks, slow_ms)


def _silences(search: Search) -> list[Finding]:
    # streams whose data went to another address are explained by that finding
    moved = {finding.worst_stream for finding in search.openings[0] if finding.cause == "data_other_address"}
    return [finding for finding in silence.find(search.tables, search.pushed) if finding.worst_stream not in moved]


def _transfers(search: Search) -> list[Finding]:
    # an upload that waited for "100 Continue" was not slowed by the network
    paused = {(wait.server, wait.server_port) for wait in search.waits_at_servers if wait.sentence == "expect_continue"}
    slow = [finding for finding in transfers.find(search.tables) if (finding.server, finding.server_port) not in paused]
    return slow + search.queue_costs


def _servers_left(search: Search) -> list[Finding]:
    servers = search.totals.servers[len(search.main_servers) :] if search.max_servers is None else []
    if not servers:
        return []
    slow, requests = sum(len(server.slow) for server in servers), sum(len(server.rows) for server in servers)
    return [Finding(
        kind="rest", server=servers[0].address, server_port=servers[0].port, cause="unknown", owner="unknown",
        exchanges=slow, of_exchanges=requests, grade="unknown", confidence=0.0, sentence="servers_left",
        values={"n": len(servers), "requests": requests, "slow": slow, "most": len(search.main_servers)},
    )]  # fmt: skip


@dataclass(frozen=True)
class Finder:
    """One entry of `FINDERS`."""

    find: Callable[[Search], Iterable[Finding]]
    needs: tuple[str, ...] = ()
    """Optional tables without which it is skipped."""


FINDERS = (
    # floods of SYNs, which may be why nobody is answered
    Finder(lambda search: [finding for finding in search.connections if finding.cause == "syn_flood"]),
    # causes that took the time of requests, and queues inside a server's time
    Finder(_latency),
    # waits at a server that are not work: locks, pools of workers, proxies, transactions
    Finder(lambda search: search.waits_at_servers),
    # waits before the first request of a connection
    Finder(lambda search: search.openings[0]),
    # unrequested messages that waited in their sender's kernel
    Finder(_pushes),
    # peers that do not answer, or stopped answering
    Finder(_silences),
    # what else happened to connections
    Finder(lambda search: [finding for finding in search.connections if finding.cause != "syn_flood"]),
    # round trips that fewer would spare
    Finder(lambda search: round_trips.find(search.tables)),
    Finder(lambda search: uploads.find(search.tables)),
    Finder(lambda search: brokers.find(search.tables, search.pushed)),
    # pauses before a connection's first request
    Finder(lambda search: openings.before_asking(search.tables, search.openings[1])),
    # late or failed lookups of names
    Finder(lambda search: lookups.of_lookups(search.tables), ("lookups",)),
    # late or missing answers of services over UDP
    Finder(lambda search: lookups.of_services(search.tables), ("lookups",)),
    # tries that were repeated until a server accepted
    Finder(lambda search: retries.find(search.tables)),
    # sessions that waited for another session
    Finder(lambda search: sessions.find(search.tables)),
    # failed TLS handshakes
    Finder(lambda search: connections.alerts(search.tables)),
    # what limited downloads and uploads, and what they cost others
    Finder(_transfers, ("transfers",)),
    # FTP data connections that nobody answered
    Finder(lambda search: connections.passive(search.tables)),
    # closed windows and ECN marks
    Finder(lambda search: connections.noted(search.tables)),
    # socket options and delayed ACKs that nobody waited for
    Finder(lambda search: socket_options.suspects(search.tables)),
    Finder(lambda search: socket_options.of_options(search.tables["evidence"])),
    Finder(lambda search: socket_options.held_for_nobody(search.tables)),
    # servers beyond `MAX_SERVERS`
    Finder(_servers_left),
)
"""The finders, in the order of their rows. What several of them read is a property of `Search`, so that they may run
in any order."""


def rows(
    tables: Mapping[str, pa.Table],
    checks: Sequence[quality.Check] | None = None,
    totals: cause_totals.CauseTotals | None = None,
    max_servers: int | None = None,
) -> list[Finding]:
    """Return the findings, in the order of `FINDERS`.

    `checks` and `totals` are computed from the tables unless given. `max_servers` limits the latency findings to that
    many servers, those whose slow requests did the most harm. Without it the limit is `MAX_SERVERS`, and a row of
    kind "rest" counts the others.
    """
    pushed, tables = pushes_of(tables), with_stretches(tables)
    checks = quality.judge(tables) if checks is None else checks
    totals = totals or cause_totals.CauseTotals(tables["streams"], tables["stretches"], tables["causes"])
    search = Search(tables, pushed, checks, totals, max_servers)
    finders = [finder for finder in FINDERS if all(name in tables for name in finder.needs)]
    findings = [finding for finder in finders for finding in finder.find(search)]
    numbered = enumerate(transfers.excused(findings, search.queue_costs))
    return [replace(_with_text(finding), finding=number) for number, finding in numbered]


def _with_text(finding: Finding) -> Finding:
    """Return the finding with its sentence written out, and the sentence's fix unless it has a fix of its own."""
    if finding.sentence is None:
        return finding
    values = finding.values or {}
    return replace(
        finding, text=words.say(finding.sentence, **values), fix=finding.fix or words.fix(finding.sentence, **values)
    )
